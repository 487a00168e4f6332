#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What working inside costs: the same work natively, in caisson with the
workspace under a private layer, in caisson with the workspace written for real,
and in bubblewrap.

    bench/inside.py [--rounds N] [--quick] [--json] [--check] [--only NAME,..]

The work is in inside.c, which times itself: starting a sandbox is in no figure.
Places take turns in a new order every round.  A ratio is to native; the first
is of the medians by the clock, the one in brackets of the least CPU time, which
other programs on the machine disturb least.  File work is done on the file system of TMPDIR and,
as root, on a tmpfs too.  The layer is a tmpfs, so only there like meets like: the
difference is overlayfs, which costs the same with any of its mount options.  Next
to a disk the layer looks better than it is, more so where ext4 has to search for
inodes that have been free for a while.
--check exits 1 when a documented bound holds neither for the best runs by the
clock nor for CPU time."""
import argparse
import io
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES, REPO_FILES, STATUS_RUNS, ARCHIVE_FILES = 60, 3000, 5, 20000
PLACES = ("native", "caisson", "caisson, for real", "bwrap")

# name, arguments of `inside`, operations in it (0: not a per-call figure), the
# file systems to do it on, how many times the native cost is promised at most
DISK, TMPFS, BOTH = 1, 2, 3
UNTAR = ["run", "d=inside.tree.$(date +%s%N); mkdir $d && echo $d > tree", "tar -xf files.tar -C \"$(cat tree)\""]
WORK = [
    ("CPU", ["cpu"], 0, DISK, 1.03),
    ("build, make -j2 of 60 files", ["run", "make -s -C proj clean", "make -s -C proj -j2"], 0, DISK, 1.03),
    ("getppid", ["getppid", "1000000"], 1000000, DISK, 1.15),
    ("pipe write and read", ["pipe", "300000"], 300000, DISK, 1.15),
    ("ioctl", ["ioctl", "1000000"], 1000000, DISK, None),
    ("fork, exit and wait", ["fork", "1000"], 1000, DISK, 1.15),
    ("stat", ["stat", "300000"], 300000, BOTH, None),
    ("open and close", ["open", "200000"], 200000, BOTH, None),
    ("create 20,000 files, bare calls", ["unpack", "20000"], 0, TMPFS, None),
    ("tar xf of 20,000 files", UNTAR, 0, TMPFS, None),
    ("tar xf of 20,000 files, on disk", UNTAR, 0, DISK, 1.5),
    (f"git status, {REPO_FILES} files", ["run", "git -C repo status >/dev/null",
     f"for i in $(seq {STATUS_RUNS}); do git -C repo status >/dev/null || exit; done"], STATUS_RUNS, BOTH, 1.5),
]


def make_project(path):
    """SOURCES files of C, each big enough that the compiler has work."""
    os.makedirs(path)
    names = [f"unit{i}" for i in range(SOURCES)]
    for n, name in enumerate(names):
        with open(f"{path}/{name}.c", "w") as f:
            f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n")
            for i in range(25):
                f.write(f"static int f{i}(int a, const char *s)\n{{\n\tint t[16] = {{ {i}, {n} }}, r = a;\n"
                        f"\tfor (int k = 0; k < 64; k++) r += t[k & 15] * (int)strlen(s) ^ (k << {i % 7});\n"
                        f"\tif (r < 0) printf(\"%d %s\\n\", r, s);\n\treturn r + (int)sqrt((double)a);\n}}\n")
            calls = " + ".join(f"f{i}({i}, s)" for i in range(25))
            f.write(f"int {name}(const char *s);\nint {name}(const char *s)\n{{\n\treturn {calls};\n}}\n")
    with open(f"{path}/main.c", "w") as f:
        f.write("".join(f"int {n}(const char *);\n" for n in names))
        f.write("int main(void)\n{\n\treturn (" + " + ".join(f'{n}("x")' for n in names) + ") == 1;\n}\n")
    objs = " ".join(f"{n}.o" for n in names + ["main"])
    with open(f"{path}/Makefile", "w") as f:
        f.write(f"all: prog\nprog: {objs}\n\t$(CC) -o $@ $^ -lm\n%.o: %.c\n\t$(CC) -O1 -c -o $@ $<\n"
                "clean:\n\trm -f *.o prog\n")


def make_archive(path):
    with tarfile.open(path, "w") as t:
        for i in range(ARCHIVE_FILES):
            member = tarfile.TarInfo(f"dir{i // 100}/file{i}")
            member.size = 3000
            t.addfile(member, io.BytesIO(b"x" * 3000))


def make_repo(path):
    for d in range(REPO_FILES // 50):
        os.makedirs(f"{path}/dir{d}")
        for i in range(50):
            with open(f"{path}/dir{d}/file{i}", "w") as f:
                f.write(f"{d} {i}\n" * 20)
    env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
    git = ["git", "-C", path, "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "files"]):
        subprocess.run(git + args, check=True, env=env)


def make_workspace(path, tools):
    os.makedirs(path)
    shutil.copy(tools["inside"], f"{path}/inside")
    make_project(f"{path}/proj")
    make_repo(f"{path}/repo")
    make_archive(f"{path}/files.tar")


def wrap(place, ws, tools):
    """The words that come before the work itself."""
    run = [tools["caisson"], "run", "--quiet", "--memory", "8G", "--pids", "4096", "--disk", "4G",
           "--cpus", str(os.cpu_count())]
    if place == "caisson":
        return run + ["-w", ws, "--"]
    if place == "caisson, for real":
        return run + ["-w", ws, "--workspace-mode", "write", "--"]
    if place == "bwrap":
        return [tools["bwrap"], "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
                "--tmpfs", "/tmp", "--bind", ws, ws, "--chdir", ws, "--"]
    return []


def once(place, ws, tools, args):
    r = subprocess.run(wrap(place, ws, tools) + [f"{ws}/inside"] + args, cwd=ws, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    figures = r.stdout.split()
    if r.returncode != 0 or len(figures) != 2:
        raise RuntimeError((r.stderr.strip().splitlines() or [f"exit {r.returncode}"])[-1])
    return int(figures[0]), int(figures[1])


def makes_tree(args):
    return any("unpack" in a or "inside.tree" in a for a in args)


def sweep(ws):
    """Take away the trees that were made, but not from a disk file system (see inside.c)."""
    if file_system(ws) == "tmpfs":
        for name in os.listdir(ws):
            if name.startswith("inside.tree."):
                shutil.rmtree(f"{ws}/{name}")


def measure(ws, tools, args, rounds):
    """{place: [(clock ns, CPU ns), ..]}, and {place: why not}."""
    times, failed = {p: [] for p in PLACES}, {}
    for p in PLACES:
        if p != "native" and not tools[p.split(",")[0]]:
            failed[p] = "not installed"
    for _ in range(rounds):
        for p in random.sample(PLACES, len(PLACES)):
            if p in failed:
                continue
            try:
                times[p].append(once(p, ws, tools, args))
            except RuntimeError as e:
                failed[p] = str(e)
        if makes_tree(args):
            sweep(ws)
    return times, failed


def summarise(name, ops, most, times, failed):
    row = {"work": name, "operations": ops, "at_most": most, "failed": failed, "places": {}}
    for p, v in times.items():
        if v:
            row["places"][p] = {"p50_ns": statistics.median(w for w, _ in v), "min_ns": min(w for w, _ in v),
                                "cpu_ns": min(c for _, c in v), "runs": len(v)}
    native = row["places"].get("native")
    for v in row["places"].values():
        v["ratio_p50"] = v["p50_ns"] / native["p50_ns"]
        v["ratio_min"] = v["min_ns"] / native["min_ns"]
        v["ratio_cpu"] = v["cpu_ns"] / native["cpu_ns"]
    return row


def cost(place, ops):
    ns = place["p50_ns"]
    if ops > 100:
        return f"{ns / ops / 1000:.2f} µs"
    return f"{ns / max(ops, 1) / 1e6:.0f} ms"


def print_table(rows):
    print("| work | native | " + " | ".join(PLACES[1:]) + " | promised |")
    print("|---|--:|" + "--:|" * len(PLACES))
    for r in rows:
        native = r["places"].get("native")
        cells = [cost(native, r["operations"]) if native else "–"]
        for p in PLACES[1:]:
            v = r["places"].get(p)
            cells.append(f"{v['ratio_p50']:.2f} ({v['ratio_cpu']:.2f})" if v else "–")
        cells.append(f"≤ {r['at_most']}" if r["at_most"] else "")
        print(f"| {r['work']} | " + " | ".join(cells) + " |")
    missing = {}
    for r in rows:
        for p, why in r["failed"].items():
            missing.setdefault((p, why), []).append(r["work"])
    for (p, why), works in missing.items():
        print(f"\nNot measured in {p} ({why}): {', '.join(works) if len(works) < len(rows) else 'everything'}")


def judge(rows):
    bad = 0
    for r in rows:
        for p in ("caisson", "caisson, for real"):
            v = r["places"].get(p)
            if not r["at_most"]:
                continue
            if not v:
                print(f"not measured: {r['work']} in {p}: {r['failed'].get(p)}")
                bad += 1
            else:
                best = min(v["ratio_min"], v["ratio_cpu"])
                holds = best <= r["at_most"]
                bad += not holds
                print(f"{'holds' if holds else 'FAILS'}: {r['work']} in {p}: {best:.2f} of native, at most {r['at_most']}")
    return bad


def file_system(path):
    return subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", path], capture_output=True, text=True).stdout.strip()


def pick(spaces, where):
    """spaces[0] is the disk, spaces[1] a tmpfs, if we could have one."""
    return [s for i, s in enumerate(spaces) if where & (1 << i)] or spaces[:1]


def own_mounts():
    """As root, go on in a mount namespace of our own, where a tmpfs is ours to mount."""
    if os.geteuid() == 0 and "CAISSON_BENCH_OWN_MOUNTS" not in os.environ and shutil.which("unshare"):
        os.environ["CAISSON_BENCH_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable] + sys.argv)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--quick", action="store_true", help="3 rounds")
    p.add_argument("--json", action="store_true")
    p.add_argument("--check", action="store_true")
    p.add_argument("--only", default="", help="work whose name begins with one of these")
    p.add_argument("--caisson", default=f"{TOP}/build/caisson")
    p.add_argument("--inside", default=f"{TOP}/build/bench/inside")
    a = p.parse_args()
    own_mounts()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tools = {"caisson": a.caisson if os.access(a.caisson, os.X_OK) else None, "bwrap": shutil.which("bwrap"),
             "inside": a.inside}
    tmp = tempfile.mkdtemp(prefix="caisson-bench.")
    mounted = False
    rows = []
    try:
        spaces = [(file_system(tmp), f"{tmp}/ws")]
        if os.geteuid() == 0:
            os.mkdir(f"{tmp}/tmpfs")
            mounted = subprocess.run(["mount", "-t", "tmpfs", "bench", f"{tmp}/tmpfs"]).returncode == 0
            if mounted:
                spaces.append(("tmpfs", f"{tmp}/tmpfs/ws"))
        for _, ws in spaces:
            make_workspace(ws, tools)
        for name, args, ops, where, most in WORK:
            if a.only and not name.startswith(tuple(a.only.split(","))):
                continue
            for fs, ws in pick(spaces, where):
                rounds = 3 if a.quick or fs != "tmpfs" and makes_tree(args) else a.rounds
                times, failed = measure(ws, tools, args, rounds)
                rows.append(summarise(f"{name} ({fs})" if where != DISK else name, ops, most, times, failed))
    finally:
        if mounted:
            subprocess.run(["umount", "-l", f"{tmp}/tmpfs"])
        shutil.rmtree(tmp, ignore_errors=True)
    if a.json:
        json.dump(rows, sys.stdout, indent=1)
        print()
    elif a.check:
        sys.exit(1 if judge(rows) else 0)
    else:
        print_table(rows)


if __name__ == "__main__":
    main()
