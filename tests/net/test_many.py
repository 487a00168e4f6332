#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One boundary and many sandboxes' networks: nothing is lost, and nobody waits for one who stalls.

    tests/net/test_many.py [--full] [--boxes N] [--connections N] [--seconds S] [--show]

200 networks with 20 connections each, 10 s in `make test`, 60 s with --full; then a shorter
run of the boundary under AddressSanitizer with its search for leaks.  many.c does the
work and counts; this judges.  Root only: it makes network namespaces."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import world  # noqa: E402

BUILD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
# What a busy machine may add to the slowest of a hundred: not what a stalled peer would, which is seconds.
NOISE, NOISE_US = 2.0, 30000
PIPES = 128  # that the boundary keeps for later


class Results:
    def __init__(self):
        self.n = self.bad = self.skipped = 0

    def check(self, name, ok, why=""):
        self.n += 1
        if not ok:
            self.bad += 1
            print(f"# {why}")
        print(f"{'ok' if ok else 'not ok'} {self.n} - {name}", flush=True)

    def skip(self, name, why):
        if os.environ.get("CS_TESTS_MUST_RUN") == "1":
            return self.check(name, False, f"skipped, but must run: {why}")
        self.n += 1
        self.skipped += 1
        print(f"ok {self.n} - {name} # SKIP {why}")

    def end(self):
        print(f"1..{self.n}\n{self.n - self.bad - self.skipped} passed, {self.bad} failed" + (f", {self.skipped} skipped" if self.skipped else ""))
        sys.exit(1 if self.bad else 0)


def run(edge, boxes, conns, seconds, phases, tmp):
    for f, name in ((f"{BUILD}/test/many", "many"), (edge, "caisson-edge")):
        shutil.copy(f, f"{tmp}/{name}")
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:exitcode=23", "UBSAN_OPTIONS": "halt_on_error=1"}
    r = subprocess.run([f"{tmp}/many", str(boxes), str(conns), str(seconds), str(phases)], capture_output=True, text=True, env=env, timeout=seconds + 120)
    if r.returncode:
        raise RuntimeError(f"many: exit {r.returncode}: {r.stderr.strip()[-2000:]}")
    return json.loads(r.stdout), r.stderr


def silent_resolver(tmp):
    """Names that are asked outside get no answer, ever."""
    with open(f"{tmp}/resolv.conf", "w") as f:
        f.write("nameserver 127.0.0.9\n")
    subprocess.run(["mount", "--bind", f"{tmp}/resolv.conf", "/etc/resolv.conf"], check=True)
    s = world.socket.socket(world.socket.AF_INET, world.socket.SOCK_DGRAM)
    s.bind(("127.0.0.9", 53))
    return s


def phase(d, stalled, what, p):
    return statistics.median(x[what][p] for x in d["phases"] if x["stalled"] == stalled and x[what]["n"])


def judge_losses(t, d, boxes, conns, err):
    warm, end, empty = d["warm"], d["end"], d["empty"]
    t.check("connections are made, and none fails", d["connections"] >= boxes * conns and not d["failures"], f"{d['connections']} made, {d['failures']} failed")
    t.check("descriptors are as many as before", end["fds"] <= warm["fds"] and end["pipes"] <= PIPES, f"{warm} before, {end} after")
    t.check("networks that end leave no descriptor behind", empty["fds"] <= warm["fds"] - boxes and empty["pipes"] <= PIPES, f"{empty} with none left")
    t.check("a name keeps its address, and lookups make no new one", d["lookups"] > boxes and not d["remapped"], f"{d['remapped']} of {d['lookups']} differ")
    t.check("networks come and go, and each one's totals are told", d["replaced"] > 0 and not d["totals_wrong"], f"{d['replaced']}, wrong: {d['totals_wrong']}")
    t.check("the boundary never ended before it was told to", d["restarts"] == 0 and d["exit"] == 0, f"{d['restarts']} restarts, exit {d['exit']}: {err[-3000:]}")


def judge_memory(t, d):
    was, now = d["warm"]["rss_kib"], d["end"]["rss_kib"]
    t.check("memory is what it was", now <= was * 1.15 + 1024, f"{was} KiB before, {now} KiB after {d['connections']} connections")


def judge_stalled(t, d):
    for what in ("setup", "word"):
        for p in ("p50", "p99"):
            without, with_ = phase(d, False, what, p), phase(d, True, what, p)
            t.check(f"stalled peers slow nobody: {what}, {p}", with_ <= without * NOISE + NOISE_US, f"{without:.0f} µs without, {with_:.0f} µs with")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--full", action="store_true", help="60 s instead of 10")
    p.add_argument("--boxes", type=int, default=200)
    p.add_argument("--connections", type=int, default=20)
    p.add_argument("--seconds", type=int, default=0)
    p.add_argument("--edge", default=f"{BUILD}/test/caisson-edge")
    p.add_argument("--show", action="store_true", help="the figures, too")
    a = p.parse_args()
    t = Results()
    if os.geteuid() != 0:
        t.skip("many networks at once", "only root makes network namespaces for others")
        t.end()
    world.enter()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    tmp = tempfile.mkdtemp(prefix="cs-many-")
    os.chmod(tmp, 0o755)
    try:
        lost = silent_resolver(tmp)
        d, err = run(a.edge, a.boxes, a.connections, a.seconds or (60 if a.full else 10), 12 if a.full else 6, tmp)
        if a.show:
            print("# " + json.dumps(d))
        judge_losses(t, d, a.boxes, a.connections, err)
        judge_memory(t, d)
        judge_stalled(t, d)
        asan = f"{BUILD}/asan/caisson-edge"
        if os.access(asan, os.X_OK):
            print("# under AddressSanitizer")
            d, err = run(asan, max(12, a.boxes // 8), a.connections, 20 if a.full else 4, 2, tmp)
            judge_losses(t, d, max(12, a.boxes // 8), a.connections // 2, err)
        else:
            t.skip("under AddressSanitizer", "build/asan/caisson-edge is not there")
        lost.close()
    except (RuntimeError, subprocess.TimeoutExpired) as e:
        t.check("it runs", False, str(e))
    finally:
        subprocess.run(["umount", "/etc/resolv.conf"], stderr=subprocess.DEVNULL)
        shutil.rmtree(tmp, ignore_errors=True)
    t.end()


if __name__ == "__main__":
    main()
