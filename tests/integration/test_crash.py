#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crash only: whatever is killed and whichever step fails, no process and no mount
survives, nothing is left after the next command, and the program never runs with
a protection silently missing.

    test_crash.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path             the program to test (default: build/caisson)
    CS_FAULTS=all            every fault at every step, not a sample (minutes)
    CS_SEED=n                another sample

Prints TAP lines and ends with `N passed, M failed`.
"""
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from test_run import Suite, check, children, equal, lock_is_free, note, processes, sh, until  # noqa: E402

test = Suite()
SEED = int(os.environ.get("CS_SEED", "1"))
ALL_FAULTS = os.environ.get("CS_FAULTS") == "all"
FAULT_SECONDS = 5  # per test and mode, when sampling
HANG_SECONDS = 4


def mark():
    return f"{random.randrange(10**7, 10**8)}.{os.getpid()}"


class Box:
    """A sandbox with a daemon inside that holds a lock on a file of the host."""

    def __init__(self, m, wait=True):
        self.m, self.mark = m, mark()
        d = m.fresh("rw")
        self.lock = m.put(f"{d}/lock")
        self.p = m.start("--rw", d, *sh(f"setsid -f flock {self.lock} sh -c 'echo up; exec sleep {self.mark}'; exec sleep {self.mark}"))
        if wait:
            check(self.p.stdout.readline() == b"up\n", "the daemon did not start")
            check(not lock_is_free(self.lock), "the daemon does not hold its lock")

    def gone(self):
        return not processes(self.mark) and lock_is_free(self.lock)

    def end(self):
        try:
            self.p.communicate(timeout=2.5)
            ok = until(self.gone, 2)
        except subprocess.TimeoutExpired:
            ok = False
        left = processes(self.mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.p.communicate(timeout=5)
        check(ok, f"2 s after the kill: processes {left}, lock free: {lock_is_free(self.lock)}")


def cleared_by(m, *command):
    """Nothing is left after one command (it may meet a process that is still dying)."""
    m.cmd(*command)
    left = m.left()
    if left:
        time.sleep(0.3)
        m.cmd(*command)
        left = m.left()
    check(not left, f"left after `caisson {' '.join(command)}`: {len(left)}: {left[:4]}")


# ---- kill -9 ----


@test("kill -9 of the supervisor while the program runs: its daemon dies, the next command clears the rest")
def _(m):
    for command in (("gc",), ("run", "--", "true")):
        b = Box(m)
        b.p.kill()
        b.end()
        cleared_by(m, *command)


@test("ps is a next command too: it clears what a killed supervisor left")
def _(m):
    b = Box(m)
    b.p.kill()
    b.end()
    try:
        cleared_by(m, "ps")
    finally:
        m.cmd("gc")


@test("kill -9 of process 1 while the program runs: everything dies, caisson says 137 and clears up by itself")
def _(m):
    for _ in range(5):
        b = Box(m)
        kids = children(b.p.pid)
        equal(len(kids), 1, f"children of the supervisor: {kids}")
        os.kill(kids[0], signal.SIGKILL)
        b.end()
        equal(b.p.returncode, 137, "status")
        check(not m.left(), f"left: {m.left()}")


@test("kill -9 of the program itself: 137, and its daemon dies with it")
def _(m):
    b = Box(m)
    init = children(b.p.pid)[0]
    # Process 1 has two children: the program, by now a sleep, and the daemon's flock.
    program = until(lambda: [p for p in children(init) if p in processes("sleep\0" + b.mark)], 2)
    equal(len(program), 1, f"the program among {children(init)}")
    os.kill(program[0], signal.SIGKILL)
    b.end()
    equal(b.p.returncode, 137, "status")


@test("SIGSTOP and then SIGKILL of the supervisor: a stopped one takes the sandbox along as well")
def _(m):
    b = Box(m)
    b.p.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    b.p.kill()
    b.end()
    cleared_by(m, "gc")


def random_kills(m, first, last, times, victim):
    rnd = random.Random(SEED)
    running = 0
    for i in range(times):
        b = Box(m, wait=False)
        time.sleep(rnd.uniform(first, last))
        running += not lock_is_free(b.lock)
        target = [b.p.pid] if victim == "supervisor" else children(b.p.pid)
        for pid in target:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if victim != "supervisor" and not target:
            b.p.kill()
        try:
            b.end()
        except AssertionError as e:
            raise AssertionError(f"kill {i} of {victim}, {b.p.args}: {e}") from None
    note(f"{m.name}: {times} kills of {victim} between {first * 1000:g} and {last * 1000:g} ms, in {running} the daemon ran")


@test("kill -9 of the supervisor at sixty random instants of the start leaves no process, record or control group")
def _(m):
    random_kills(m, 0, 0.006, 60, "supervisor")
    cleared_by(m, "gc")


@test("kill -9 of the supervisor at random instants of the first 40 ms, the same")
def _(m):
    random_kills(m, 0.004, 0.04, 25, "supervisor")
    cleared_by(m, "gc")


@test("kill -9 of every child of the supervisor at random instants of the start: it ends, says so and clears up")
def _(m):
    random_kills(m, 0.0005, 0.008, 40, "its children")
    check(until(lambda: not m.left(), 1), f"left: {m.left()}")


@test("a kill while process 1 is being built is reported as such, not as the program's end")
def _(m):
    rnd = random.Random(SEED)
    seen = collections.Counter()
    for _ in range(30):
        path = f"{m.fresh('json')}/j"
        p = m.start("--json", path, "--", "sh", "-c", "sleep 5")
        time.sleep(rnd.uniform(0, 0.004))
        kids = children(p.pid)
        for pid in kids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not kids:
            p.terminate()
        out, err = p.communicate(timeout=9)
        seen[p.returncode] += 1
        if p.returncode == 125:
            check(err.startswith(b"caisson: "), f"{err!r}")
        check(p.returncode in (125, 137, 143, -15), f"status {p.returncode}, {err!r}")
    note(f"{m.name}: statuses {dict(seen)}")


# ---- many at once ----


def unlisted(m, ps):
    """Running sandboxes that ps does not know, a second after all of them are up."""
    def missing():
        listed = {e["supervisor"] for e in json.loads(m.cmd("ps", "--json").out)}
        return [p.pid for p in ps if p.pid not in listed]
    until(lambda: not missing(), 1, 0.1)
    return missing()


@test("fifty sandboxes at once are all listed, all end well, and nothing is left")
def _(m):
    ps = [m.start(*sh("echo up; read x"), stdin=subprocess.PIPE) for _ in range(50)]
    for p in ps:
        equal(p.stdout.readline(), b"up\n", "start")
    missing = unlisted(m, ps)
    for p in ps:
        p.communicate(b"\n", timeout=20)
    equal([p.returncode for p in ps], [0] * 50, "statuses")
    equal(missing, [], "not listed by ps")
    check(until(lambda: not m.left(), 1), f"left: {m.left()}")


@test("fifty sandboxes that start and end while gc runs all the time: none is lost, nothing is left")
def _(m):
    stop = f"{m.fresh()}/stop"
    gc = m.popen(["sh", "-c", f"while ! [ -e {stop} ]; do {m.caisson} gc >/dev/null || exit 1; done"])
    lost = 0
    try:
        for _ in range(5):
            ps = [m.start(*sh("echo up; read x"), stdin=subprocess.PIPE) for _ in range(10)]
            for p in ps:
                equal(p.stdout.readline(), b"up\n", "start")
            lost += len(unlisted(m, ps))
            for p in ps:
                p.communicate(b"\n", timeout=20)
            equal([p.returncode for p in ps], [0] * 10, "statuses")
    finally:
        m.put(stop)
        _, err = gc.communicate(timeout=10)
    equal(gc.returncode, 0, f"gc ({err!r})")
    equal(lost, 0, "running sandboxes whose record gc took away")
    check(until(lambda: not m.left(), 1), f"left: {m.left()}")


@test("fifty sandboxes killed at once: one gc clears all of them")
def _(m):
    ps = [m.start("--", "sleep", "60") for _ in range(50)]
    time.sleep(0.5)
    for p in ps:
        p.kill()
    for p in ps:
        p.communicate(timeout=10)
    time.sleep(0.5)
    cleared_by(m, "gc")


# ---- a fault at every step ----

CALLS = ("clone3 clone unshare setns fsopen fsconfig fsmount move_mount open_tree mount_setattr mkdirat mknodat symlinkat fchmodat pivot_root umount2"
         " fchdir chdir setresuid setresgid setgroups prctl capset landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp execve"
         " write open openat openat2 stat lstat access read close_range dup2 fcntl prlimit64 setrlimit getrlimit sethostname setdomainname keyctl setsid socketpair sendmsg recvmsg"
         " poll signalfd4 statfs fstatfs newfstatat fstat mkdir rmdir unlink sched_getaffinity sched_setaffinity ioctl wait4 readlink getcwd"
         " utimensat sendto rt_sigprocmask mmap getdents64").split()
# Nobody reads a message that could not be written, and a program's loader has words of its own.
MUTE = {"write", "mmap"}
SHOWN = ("/proc/self/status", "/proc/self/mountinfo", "/proc/sys/user/max_user_namespaces", "/proc/self/net/dev", "/proc/self/limits",
         "/proc/sys/kernel/hostname", "/etc/shadow", "/root/.profile")
WALLS = {"CapEff": "caps", "CapPrm": "caps", "CapBnd": "caps", "CapInh": "caps", "CapAmb": "caps", "NoNewPrivs": "nnp", "Seccomp": "seccomp",
         "Uid": "userns", "Gid": "userns", "Groups": "userns", "mounts": "rootfs", "interfaces": "netns", "core": "nocore", "processes": "limit-pids",
         "file size": "limit-disk", "open files": None, "hostname": "utsns", "leak": "rootfs"}


def parse(out):
    """What the program inside has shown about its walls: name -> value."""
    got = {}
    for key in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups"):
        hit = re.search(rf"^{key}:\s*(.*?)\s*$", out, re.M)
        if hit:
            got[key] = hit.group(1)
    lines = re.findall(r"^\d+ \d+ \d+:\d+ (\S+) (\S+) (\S+) .*?- (\S+) ", out, re.M)
    if lines and "Inter-|" in out:  # the whole list
        got["mounts"] = sorted((at, opts.split(",")[0], "nosuid" in opts, "nodev" in opts, kind) for _, at, opts, kind in lines)
    if "Inter-|" in out:
        got["interfaces"] = re.findall(r"^\s*(\w+):\s+\d+\s+\d+\s+\d+", out, re.M)
    for key, name in (("core", "Max core file size"), ("processes", "Max processes"), ("file size", "Max file size"), ("open files", "Max open files")):
        hit = re.search(rf"^{name}\s+(\S+\s+\S+)", out, re.M)
        if hit:
            got[key] = hit.group(1)
    hit = re.search(r"(?:inodes|processes|bytes|us|signals)\s*\n(\S+)\n?\Z", out)
    if hit and "Max realtime timeout" in out:
        got["hostname"] = hit.group(1)
    if re.search(r"^root:[*!$]", out, re.M):
        got["leak"] = "/etc/shadow"
    # Where only the narrower /proc can be had, there is nothing in it to mask.
    if "subset=pid" in out:
        got["narrow"] = True
    return got


def differ(key, value, want, narrow):
    """What of a wall is not as it should be, or None."""
    if key == "processes" and value.split() and want.split() and int(value.split()[-1]) <= int(want.split()[-1]):
        return None  # without its control group the limit is the rlimit alone, and that a little lower
    if key != "mounts":
        return None if value == want else f"{value!r}, not {want!r}"
    value, want = set(value), {x for x in want or () if not (narrow and x[0].startswith("/proc/"))}
    more = {x for x in value - want if not (x[0].startswith("/proc/") and x[4] == "tmpfs")}  # another cover takes nothing away
    return None if not more and value >= want else f"missing {sorted(want - value)}, more {sorted(more)}"


class Faults:
    """Runs of one command under strace with one system call made to fail."""

    def __init__(self, m, extra=()):
        self.m, self.extra = m, extra
        self.base = m.fresh("faults")
        self.serial = 0
        self.made = {}  # id of a sandbox -> the fault it met
        log = f"{self.base}/log"
        r, _ = self.go(["-o", log])
        self.reference = parse(r[1])
        check(set(self.reference) >= {"CapEff", "NoNewPrivs", "Seccomp", "Uid", "mounts", "interfaces"},
              f"a run under strace without a fault does not work: {r}")
        equal((self.reference["CapEff"], self.reference["NoNewPrivs"], self.reference["Seccomp"]), ("0" * 16, "1", "2"), "walls without a fault")
        counts = collections.Counter()
        with open(log) as f:
            per = collections.Counter(re.match(r"(\d+) +(\w+)\(", line).groups() for line in f if re.match(r"\d+ +\w+\(", line))
        for (_, call), n in per.items():
            counts[call] = max(counts[call], n)
        self.steps = [(c, n) for c in CALLS for n in range(1, counts[c] + 1)]

    def go(self, options):
        self.serial += 1
        tag, path = f"caisson-fault-{self.serial}", f"{self.base}/json{self.serial}"
        argv = ["strace", "-f", "-qq", "--signal=none", *options, self.m.caisson, "run", "--json", path, "--env", f"TAG={tag}", *self.extra, "--", "cat", *SHOWN]
        who = {"user": self.m.uid, "group": self.m.uid, "extra_groups": []} if os.geteuid() != self.m.uid else {}
        # No preexec_fn: several threads do this at once.
        p = subprocess.Popen(argv, env=self.m.env(), cwd=self.m.ws, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **who)
        try:
            out, err = p.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            alive = [q for q in processes(path) if q != p.pid]
            for pid in alive:
                os.kill(pid, signal.SIGKILL)
            p.kill()
            p.communicate()
            return ("hangs", "", f"{len(alive)} processes of caisson are alive"), {}
        try:
            with open(path) as f:
                result = json.load(f)
        except (OSError, ValueError):
            result = {}
        return (p.returncode, out.decode(errors="replace"), err.decode(errors="replace")), result

    def judge(self, call, n, kind):
        """None, or what is wrong with this run."""
        (status, out, err), result = self.go(["-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{kind}:when={n}"])
        where = f"{call} #{n} {kind}: status {status}"
        if status == "hangs":
            return f"{where} after {HANG_SECONDS} s: {err}"
        self.made[result.get("id")] = where
        got, said = parse(out), result.get("protections", {})
        narrow = got.pop("narrow", False)
        for key, value in got.items():
            wall = WALLS[key]
            stated = wall and said.get(wall, "on") != "on"
            wrong = differ(key, value, self.reference.get(key), narrow)
            if wrong and not stated:
                return f"{where}: the program ran with {key}: {wrong}; stated: {wall} {said.get(wall)!r}"
        if 125 <= status <= 127 and not out:
            # One of ours; the fault is made in every process, and may meet what an earlier run left, too.
            lines = [x for x in err.splitlines() if x and not re.match(r"caisson: t-[a-z0-9]+: ", x)]
            if call not in MUTE and "signal" not in kind and len(lines) != 1:
                return f"{where}: not one line: {err!r}"
            if call not in MUTE and status == 125 and not re.match(r"caisson: .{8,}", err):
                return f"{where}: nothing named: {err!r}"
        elif not out and status in (0, 1) and result.get("reason") != "exited" and call not in MUTE:
            return f"{where}: no output and no error: {err!r}"
        elif status < 0 and "signal" not in kind:
            return f"{where}: the supervisor crashed: {err!r}"
        return None

    def sweep(self, kinds):
        plan = [(c, n, k) for c, n in self.steps for k in kinds]
        if not ALL_FAULTS:
            # The first and last of every call always, the others by chance.
            last = dict(self.steps)
            sure = [(c, n, k) for c, n, k in plan if n in (1, last[c])]
            rest = [x for x in plan if x not in set(sure)]
            rnd = random.Random(SEED)
            rnd.shuffle(sure)
            rnd.shuffle(rest)
            # The walls themselves come first, whatever the time allows.
            walls = {"seccomp", "landlock_restrict_self", "capset", "prctl", "pivot_root", "umount2", "setresuid", "unshare", "setns", "mount_setattr"}
            plan = sorted(sure, key=lambda x: x[0] not in walls) + rest
        end = time.monotonic() + FAULT_SECONDS
        wrong, done = [], 0

        def one(step):
            return None if not ALL_FAULTS and time.monotonic() > end else (self.judge(*step),)
        with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            for answer in pool.map(one, plan):
                if answer:
                    done += 1
                    wrong += [answer[0]] if answer[0] else []
        note(f"{self.m.name}: {done} of {len(plan)} faults made")
        for w in wrong[:12]:
            note(w)
        until(lambda: not processes(self.base), 2)
        wrong += [f"process {p} is left" for p in processes(self.base)]
        self.m.cmd("gc")
        left = until(lambda: not self.m.left(), 0.5) or self.m.left()
        for path in [] if left is True else left:
            sandbox = os.path.basename(path).replace("caisson-", "")
            wrong.append(f"{path} is left after gc; {self.made.get(sandbox, 'its supervisor was killed')}")
            note(wrong[-1])
        check(not wrong, f"{len(wrong)} things went wrong in {done} runs")


@test("a system call that fails, at every step of the start: a run that works or one clear message, never a wall less")
def _(m):
    check(shutil.which("strace"), "strace is not installed")
    Faults(m).sweep(("error=EIO", "error=EPERM"))


@test("a kill at every system call of the start: never a wall less, and nothing is left")
def _(m):
    check(shutil.which("strace"), "strace is not installed")
    Faults(m, ("--max-output", "1M")).sweep(("signal=SIGKILL",))


if __name__ == "__main__":
    test.main()
