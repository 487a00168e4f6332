#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes alive at once: what one costs, how fast they come, what is left.

    bench/many.py [--count N] [--jobs N] [--user] [--json] [--check] [-- CAISSON-FLAG...]

Starts N sandboxes that do nothing, waits until the program in each has said so,
adds up the proportional set size of our side of every one (the supervisor and
the sandbox's process 1; not the program), ends them, and compares the host with
what it was before: processes, mounts, control groups, temporary and state files.
Anything more than before is printed and the exit status is 1; so it is when one
of them had no record, which `caisson ps` and `caisson gc` live by.

With --user (for root) the sandboxes belong to an unprivileged user; who is not
root cannot read the memory of our processes, which do not allow it.

Only processes that were started here are ever signalled.  As a child subreaper
we also become the parent of anything that outlives its own."""
import argparse
import contextlib
import ctypes
import json
import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PR_SET_CHILD_SUBREAPER = 36
SETTLE_SECONDS = 10
USER = 61234


def proc_starttime(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return None if fields[0] == "Z" else fields[19]
    except (OSError, IndexError):
        return None


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def pss(pid):
    """(bytes, private bytes), or None when the process has gone or may not be read."""
    total = private = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            for line in f:
                if line.startswith("Pss:"):
                    total = int(line.split()[1]) * 1024
                elif line.startswith("Private_"):
                    private += int(line.split()[1]) * 1024
    except OSError:
        return None
    return total, private


def meminfo():
    with open("/proc/meminfo") as f:
        return {k: int(v.split()[0]) * 1024 for k, v in (l.split(":", 1) for l in f)}


# ---- what the host looks like ----

def tree(top, depth):
    """Names below top, so deep; unreadable places are left out."""
    found = set()
    try:
        for e in os.scandir(top):
            found.add(e.path)
            if depth > 1 and e.is_dir(follow_symlinks=False):
                found |= tree(e.path, depth - 1)
    except OSError:
        pass
    return found


def cgroup_dirs():
    found = set()
    for d, names, _ in os.walk("/sys/fs/cgroup", followlinks=False):
        found.update(os.path.join(d, n) for n in names)
    return found


def state_places():
    home = os.path.expanduser("~")
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    others = [(f"{d}/caisson-{u}", 4) for d in ("/tmp", "/run", "/dev/shm") for u in (os.getuid(), USER)]
    state = os.environ.get("XDG_STATE_HOME", f"{home}/.local/state")
    cache = os.environ.get("XDG_CACHE_HOME", f"{home}/.cache")
    return [("/run/caisson", 4), (f"{runtime}/caisson", 4), (f"{state}/caisson", 4), (f"{cache}/caisson", 4),
            ("/var/lib/caisson", 4), *others]


def snapshot(ours):
    """ours: our own directory, which changes while we run."""
    with open("/proc/self/mountinfo") as f:
        mounts = {" ".join(l.split()[2:5]) for l in f}
    files, state = set(), set()
    for place in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", "/run/lock"):
        files |= tree(place, 1)
    for place, depth in state_places():
        state |= tree(place, depth)
    files = {p for p in files if not p.startswith(ours)}
    return {"mounts": mounts, "cgroups": cgroup_dirs(), "temporary files": files, "state files": state}


def our_ids(pids):
    """Names of the sandboxes whose supervisors these are, from their records."""
    found = set()
    for place, depth in state_places():
        for path in tree(place, depth):
            try:
                with open(path, errors="replace") as f:
                    m = re.search(r"^supervisor (\d+)$", f.read(4096), re.M)
            except OSError:
                continue
            if m and int(m[1]) in pids:
                found.add(os.path.basename(path))
    return found


def only_ours(paths, ids):
    """Other people's sandboxes and temporary files come and go meanwhile.  What has
    a sandbox's name in it is ours if that is one of ours; of the rest, a leak would
    have left something for every run, so a few things are somebody else's."""
    named = [p for p in paths if set(re.findall(r"\bs-[a-z0-9]{7}\b", p)) & ids]
    nameless = [p for p in paths if not re.search(r"\bs-[a-z0-9]{7}\b", p)]
    return sorted(named + (nameless if len(nameless) * 10 >= len(ids) else []))


def left_over(before, ours, known, ids):
    """What is there now and was not; asked again for a while, because the kernel
    takes control groups and mounts away a little later."""
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        now = snapshot(ours)
        extra = {k: only_ours(now[k] - before[k], ids) for k in before}
        alive = [str(p) for p, t in known.items() if proc_starttime(p) == t]
        alive += [f"{p} (child of ours)" for p in children(os.getpid()) if proc_starttime(p)]
        extra["processes"] = alive
        if not any(extra.values()) or time.monotonic() > end:
            return extra
        time.sleep(0.25)


# ---- the sandboxes ----

class Fleet:
    def __init__(self, command, workspace, uid):
        self.command, self.workspace = command, workspace
        self.who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        self.procs = []
        self.said, self.say = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.say, True)
        self.log = tempfile.TemporaryFile()

    def start(self, count, jobs):
        """Start count of them, jobs at a time; seconds from the first to the last that spoke."""
        begin = time.monotonic()
        spoken = 0
        while spoken < count:
            while len(self.procs) < count and len(self.procs) - spoken < jobs:
                self.procs.append(subprocess.Popen(self.command, cwd=self.workspace, stdin=subprocess.DEVNULL,
                                                   stdout=self.say, stderr=self.log, **self.who))
            ready, _, _ = select.select([self.said], [], [], 20)
            if not ready:
                raise RuntimeError(f"{spoken} of {count} started, then nothing for 20 s: {self.errors()}")
            spoken += len(os.read(self.said, 65536))
            if any(p.poll() is not None for p in self.procs[-jobs:]):
                raise RuntimeError(f"a sandbox ended by itself: {self.errors()}")
        return time.monotonic() - begin

    def errors(self):
        self.log.seek(0)
        return self.log.read(2000).decode(errors="replace").strip() or "no message"

    def end(self):
        begin = time.monotonic()
        for p in self.procs:
            if p.poll() is None:
                p.terminate()
        limit = time.monotonic() + 60
        for p in self.procs:
            try:
                p.wait(max(0.1, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        return time.monotonic() - begin


def our_side(fleet):
    """[(supervisor pid, process 1 pid, payload pid)]"""
    found = []
    for p in fleet.procs:
        first = children(p.pid)
        inner = [c for f in first for c in children(f)]
        found.append((p.pid, first, inner))
    return found


def measure_memory(sides):
    """Bytes per sandbox of our side, the payload's, and how many could be read."""
    ours, own, payload = [], [], []
    for supervisor, first, inner in sides:
        parts = [pss(p) for p in [supervisor] + first]
        if all(parts) and first:
            ours.append(sum(p[0] for p in parts))
            own.append(sum(p[1] for p in parts))
        payload += [p[0] for p in map(pss, inner) if p]
    return ours, own, payload


def put_away(known):
    """End what should have ended: reported already, and ours, so not to be left behind."""
    for p, t in known.items():
        if t and proc_starttime(p) == t:
            with contextlib.suppress(ProcessLookupError):  # its process 1 went first
                os.kill(p, signal.SIGKILL)
    end = time.monotonic() + 5
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < end:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.01)


def kib(values):
    return round(statistics.mean(values) / 1024, 1) if values else None


def run(a, tmp):
    uid = USER if a.user and os.geteuid() == 0 else None
    if uid is not None:
        os.mkdir(f"{tmp}/home")
        os.chown(f"{tmp}/home", uid, uid)
        os.environ["HOME"] = f"{tmp}/home"
    shutil.copy(a.caisson, f"{tmp}/caisson")
    workspace = f"{tmp}/ws"
    os.mkdir(workspace)
    shutil.copy(a.payload, f"{workspace}/payload")
    fleet = Fleet([f"{tmp}/caisson", "run", "--quiet", *a.flags, "--", f"{workspace}/payload", "wait"], workspace, uid)
    # One run first: directories that are made once and stay are not left over.
    subprocess.run(fleet.command[:-1], cwd=workspace, stdout=subprocess.DEVNULL, stderr=fleet.log, **fleet.who)
    before = snapshot(tmp)
    free = meminfo()["MemAvailable"]
    known, ids = {}, set()
    try:
        seconds = fleet.start(a.count, a.jobs)
        sides = our_side(fleet)
        for supervisor, first, inner in sides:
            known.update((p, proc_starttime(p)) for p in [supervisor] + first + inner)
        time.sleep(0.5)
        ids = our_ids({p.pid for p in fleet.procs})
        taken = free - meminfo()["MemAvailable"]
        ours, own, payload = measure_memory(sides)
    finally:
        ended = fleet.end()
    left = left_over(before, tmp, {p: t for p, t in known.items() if t}, ids)
    put_away(known)
    result = {
        "count": a.count, "jobs": a.jobs, "cpus": os.cpu_count(), "uid": os.getuid() if uid is None else uid,
        "start_seconds": round(seconds, 3), "starts_per_second": round(a.count / seconds, 1),
        "starts_per_second_per_cpu": round(a.count / seconds / os.cpu_count(), 1),
        "end_seconds": round(ended, 3), "processes_per_sandbox": round(len(known) / a.count, 2),
        "pss_read": len(ours), "pss_kib_mean": kib(ours), "pss_kib_max": round(max(ours) / 1024, 1) if ours else None,
        "private_kib_mean": kib(own), "payload_pss_kib_mean": kib(payload),
        "memory_of_host_kib": round(taken / a.count / 1024, 1),
        "recorded": len(ids), "left_over": left,
    }
    return result


def print_table(r):
    rows = [
        ("sandboxes alive at once", r["count"]),
        ("of them on record (caisson ps)", r["recorded"]),
        ("processes per sandbox, the program included", r["processes_per_sandbox"]),
        ("our side of one (supervisor and process 1), proportional set size", f"{r['pss_kib_mean']} KiB, at most {r['pss_kib_max']} KiB" if r["pss_read"] else "only root can read it"),
        ("of that in pages nobody shares", f"{r['private_kib_mean']} KiB" if r["pss_read"] else "–"),
        ("memory of the host per sandbox, kernel and program included", f"{r['memory_of_host_kib']} KiB"),
        (f"started per second ({r['jobs']} at a time, {r['cpus']} CPUs)", r["starts_per_second"]),
        ("started per second and CPU", r["starts_per_second_per_cpu"]),
        ("all ended within", f"{r['end_seconds']} s"),
    ]
    rows += [(f"{k} more than before", len(v)) for k, v in r["left_over"].items()]
    print("| | |\n|---|--:|")
    for name, value in rows:
        print(f"| {name} | {value} |")
    for what, names in r["left_over"].items():
        for n in names[:10]:
            print(f"\nleft over, {what}: {n}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--jobs", type=int, default=2 * os.cpu_count(), help="how many are being started at a time")
    p.add_argument("--user", action="store_true", help="as root: as an unprivileged user")
    p.add_argument("--json", action="store_true")
    p.add_argument("--check", action="store_true", help="also exit 1 when our side takes 1 MiB or more")
    p.add_argument("--caisson", default=f"{TOP}/build/caisson")
    p.add_argument("--payload", default=f"{TOP}/build/bench/bare")
    p.add_argument("flags", nargs="*", help="passed on to caisson run")
    a = p.parse_args()
    if not os.access(a.caisson, os.X_OK):
        sys.exit(f"many: {a.caisson} is not there")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda *_: sys.exit(143))
    tmp = tempfile.mkdtemp(prefix="caisson-bench.")
    try:
        os.chmod(tmp, 0o755)
        r = run(a, tmp)
    except RuntimeError as e:
        sys.exit(f"many: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    if a.json:
        json.dump(r, sys.stdout, indent=1)
        print()
    else:
        print_table(r)
    fat = a.check and (not r["pss_kib_max"] or r["pss_kib_mean"] >= 1024)
    sys.exit(1 if fat or r["recorded"] != r["count"] or any(r["left_over"].values()) else 0)


if __name__ == "__main__":
    main()
