#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time of one `caisson run -- true` goes, item by item.

    bench/floor.py [--runs N] [--json] [-- CAISSON-FLAG...]

Times of the steps are the launcher's own (--verbose), medians over N runs.  The
rest is measured from outside with build/bench/start: exec of the launcher (as
`caisson version`, which starts and does nothing), `true` by itself, and the
whole.  What no item accounts for is printed too.

System calls are counted with strace, per process; page faults by the kernel."""
import argparse
import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEP = re.compile(r"([\d.]+) ms +\+([\d.]+) +(.+)$")


def steps(command, runs):
    """[(name, median µs)] in the order they happen."""
    times = collections.OrderedDict()
    for _ in range(runs):
        r = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if r.returncode != 0:
            sys.exit(f"floor: {' '.join(command)}: {r.stderr.strip()}")
        for line in r.stderr.splitlines():
            m = STEP.search(line)
            if m:
                times.setdefault(m[3], []).append(float(m[2]) * 1000)
    return [(n, statistics.median(v)) for n, v in times.items()]


def walls(lines, runs):
    r = subprocess.run([f"{TOP}/build/bench/start", "--json", "--rounds", str(runs), *lines], stdout=subprocess.PIPE, check=True)
    rows = {c["name"]: c for c in json.loads(r.stdout)["commands"]}
    for c in rows.values():
        if c["error"]:
            sys.exit(f"floor: {c['name']}: {c['error']}")
    return rows


def calls(command, tmp):
    """[(process, calls, {name: count})] in the order the processes first appear."""
    if not shutil.which("strace"):
        return []
    out = f"{tmp}/strace"
    subprocess.run(["strace", "-f", "-qq", "-o", out, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    found = collections.OrderedDict()
    with open(out, errors="replace") as f:
        for line in f:
            m = re.match(r"(\d+) +(\w+)\(", line)
            if m:
                found.setdefault(m[1], collections.Counter())[m[2]] += 1
    return list(found.values())


def print_report(r):
    print("| step | µs | sum |\n|---|--:|--:|")
    total = 0
    for name, us in r["items"]:
        total += us
        print(f"| {name} | {us:.0f} | {total:.0f} |")
    print(f"| left: reading options, looking through the workspace, reporting | {r['whole'] - total:.0f} | {r['whole']:.0f} |")
    print(f"\nWhole start, p50 {r['whole'] / 1000:.2f} ms, best {r['best'] / 1000:.2f} ms; CPU {r['cpu'] / 1000:.2f} ms; "
          f"{r['faults']} page faults (`true` by itself: {r['true'] / 1000:.2f} ms, {r['faults_true']} faults).")
    if r["calls"]:
        print(f"\n{sum(sum(c.values()) for c in r['calls'])} system calls:\n\n| process | calls | most often |\n|---|--:|---|")
        for i, c in enumerate(r["calls"]):
            name = "supervisor" if i == 0 else "program" if "execve" in c else "process 1" if "pivot_root" in c else "helper"
            most = ", ".join(f"{n} {k}" for n, k in c.most_common(14))
            print(f"| {name} | {sum(c.values())} | {most} |")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--runs", type=int, default=150)
    p.add_argument("--quick", action="store_true", help="60 runs")
    p.add_argument("--json", action="store_true")
    p.add_argument("--caisson", default=f"{TOP}/build/caisson")
    p.add_argument("flags", nargs="*", help="passed on to caisson run")
    a = p.parse_args()
    runs = 60 if a.quick else a.runs
    os.environ["PATH"] = "/usr/bin:/bin:/usr/sbin:/sbin"
    if not os.access(a.caisson, os.X_OK):
        sys.exit(f"floor: {a.caisson} is not there")
    with tempfile.TemporaryDirectory(prefix="caisson-bench.") as tmp:
        os.mkdir(f"{tmp}/ws")
        os.chdir(f"{tmp}/ws")
        run = [a.caisson, "run", *a.flags]
        w = walls([f"whole -- {' '.join(run)} --quiet -- true", f"launcher -- {a.caisson} version", "program -- true"], runs)
        items = [("exec of the launcher, its start and end", w["launcher"]["p50"])]
        items += steps(run + ["--verbose", "--", "true"], runs)
        if not any("program itself" in n for n, _ in items):
            items += [("exec of the program, its start and end", w["program"]["p50"])]
        report = {"items": items, "whole": w["whole"]["p50"], "best": w["whole"]["min"], "cpu": w["whole"]["cpu"],
                  "faults": w["whole"]["faults"], "true": w["program"]["p50"], "faults_true": w["program"]["faults"],
                  "calls": calls(run + ["--quiet", "--", "true"], tmp)}
        os.chdir("/")
    if a.json:
        json.dump(report, sys.stdout, indent=1)
        print()
    else:
        print_report(report)


if __name__ == "__main__":
    main()
