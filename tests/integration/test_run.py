#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`caisson run` by its effects: every flag, every exit status, every reason, and bad input.

    test_run.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path           the program to test (default: build/caisson)

Every test runs as the calling user and, when that is root, again as an ordinary
user.  Prints TAP lines and ends with `N passed, M failed`.

The first half is what test_limits.py and test_crash.py use as well: how to start
Caisson as somebody, and how to tell that nothing of it is left.
"""
import ctypes
import fcntl
import json
import os
import random
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CAISSON = os.path.abspath(os.environ.get("CAISSON", os.path.join(ROOT, "build", "caisson")))
OTHER_UID = 61234
CGROUPS = "/sys/fs/cgroup"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
F_OFD_GETLK = 36

# ---- verdicts ----


def check(cond, what):
    if not cond:
        raise AssertionError(what)


def equal(got, want, what):
    check(got == want, f"{what}: got {got!r}, want {want!r}")


def holds(text, part, what):
    check(part in text, f"{what}: no {part!r} in {text!r}")


def lacks(text, part, what):
    check(part not in text, f"{what}: {part!r} in {text!r}")


def until(cond, seconds, step=0.02):
    """Wait until cond() is true; its last value."""
    end = time.monotonic() + seconds
    while True:
        v = cond()
        if v or time.monotonic() >= end:
            return v
        time.sleep(step)


def note(text):
    for line in str(text).splitlines():
        print("# " + line.encode("utf-8", "backslashreplace").decode(), flush=True)


# ---- the host, before and after ----


def is_locked(path):
    """Does somebody hold an OFD or POSIX write lock on the file?"""
    try:
        with open(path, "r+b") as f:
            got = fcntl.fcntl(f, F_OFD_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except OSError:
        return False
    return struct.unpack("hhqqi4x", got)[0] != fcntl.F_UNLCK


def lock_is_free(path):
    """Is no flock(2) held on the file?"""
    with open(path, "a") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            return False


def processes(marker):
    """Host pids whose command line holds the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                text = f.read()
            if marker.encode() in text and int(pid) != os.getpid():
                found.append(int(pid))
        except OSError:
            pass
    return found


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def mounts():
    with open("/proc/self/mountinfo") as f:
        return sorted(" ".join(line.split()[4:]) for line in f)


class Groups:
    """Control groups of our own (v1, hybrid), so that what is found below them is ours alone.
    Under v2 a group with processes hands nothing down: there we compare with what was before."""

    def __init__(self):
        self.mine, self.back = [], []
        self.before = set()
        if os.geteuid() == 0 and not os.path.exists(f"{CGROUPS}/cgroup.controllers"):
            own = {}
            with open("/proc/self/cgroup") as f:
                for line in f:
                    _, names, path = line.rstrip("\n").split(":", 2)
                    own.update((n, path) for n in names.split(","))
            for ctl in ("memory", "pids", "cpu"):
                base = f"{CGROUPS}/{ctl}{own.get(ctl, '/')}".rstrip("/")
                group = f"{base}/cs-test-{os.getpid()}"
                try:
                    os.mkdir(group)
                    self.mine.append(group)
                    with open(f"{group}/cgroup.procs", "w") as f:
                        f.write(str(os.getpid()))
                    self.back.append(base)
                except OSError:
                    pass
        self.before = set(self.left())

    def left(self):
        found = []
        for top in self.mine or [CGROUPS]:
            for path, dirs, _ in os.walk(top):
                found += [os.path.join(path, d) for d in dirs if d.startswith("caisson-")]
        return [p for p in found if p not in self.before]

    def clear(self):
        for path in self.left() if self.mine else []:
            try:
                os.rmdir(path)
            except OSError:
                pass

    def done(self):
        self.clear()
        for base in self.back:
            with open(f"{base}/cgroup.procs", "w") as f:
                f.write(str(os.getpid()))
        for group in self.mine:
            try:
                os.rmdir(group)
            except OSError as e:
                note(f"{group}: {e}")


# ---- starting Caisson as somebody ----


class Result:
    def __init__(self, status, out, err, result, seconds):
        self.status, self.out, self.err, self.result, self.seconds = status, out, err, result, seconds

    def __repr__(self):
        return f"status {self.status}, out {self.out[-600:]!r}, err {self.err[-900:]!r}"


class Mode:
    """Root, or an ordinary user: directories of its own and a way to run things."""

    def __init__(self, name, uid, base, groups):
        self.name, self.uid, self.groups = name, uid, groups
        self.caisson = os.path.join(base, "caisson")
        self.dir = os.path.join(base, name)
        self.ws, self.home, self.run_dir = (os.path.join(self.dir, d) for d in ("ws", "home", "runtime"))
        for d in (self.dir, self.ws, self.home, self.run_dir):
            self.mkdir(d, mode=0o700 if d == self.run_dir else 0o755)
        self.sessions = "/run/caisson/run" if uid == 0 else os.path.join(self.run_dir, "caisson")
        self.records = set(self.record_files())
        self.serial = 0

    is_root = property(lambda self: self.uid == 0)

    def own(self, path):
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def mkdir(self, path, mode=0o755):
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        self.own(path)
        return path

    def fresh(self, word="d"):
        """A new empty directory of this mode's user."""
        self.serial += 1
        return self.mkdir(os.path.join(self.dir, f"{word}{self.serial}"))

    def put(self, path, text="", mode=0o644):
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        self.own(path)
        return path

    def env(self, **more):
        env = {"PATH": SYSTEM_PATH, "HOME": self.home, "XDG_RUNTIME_DIR": self.run_dir, "LANG": "C.UTF-8", "TERM": "dumb"}
        env.update(more)
        return {k: v for k, v in env.items() if v is not None}

    def become(self, prepare=None):
        def inside():
            if prepare:
                prepare()
            if os.geteuid() != self.uid:
                os.setgroups([])
                os.setgid(self.uid)
                os.setuid(self.uid)
        return inside

    def popen(self, argv, env=None, cwd=None, prepare=None, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(argv, env=self.env(**(env or {})), cwd=cwd or self.ws, preexec_fn=self.become(prepare), **kw)

    def call(self, argv, input=None, timeout=20, **kw):
        if input is not None:
            kw["stdin"] = subprocess.PIPE
        start = time.monotonic()
        with self.popen(argv, **kw) as p:
            try:
                out, err = p.communicate(input, timeout)
            except subprocess.TimeoutExpired:
                p.kill()
                p.communicate()
                raise AssertionError(f"no end after {timeout} s: {argv!r}") from None
        text = [(b or b"").decode("utf-8", "surrogateescape") for b in (out, err)]
        return Result(p.returncode, text[0], text[1], None, time.monotonic() - start)

    def cmd(self, *args, **kw):
        return self.call([self.caisson, *args], **kw)

    def run(self, *args, **kw):
        return self.cmd("run", *args, **kw)

    def result(self, *args, **kw):
        """As run(), and what --json wrote."""
        path = os.path.join(self.fresh("json"), "result")
        r = self.run("--json", path, *args, **kw)
        with open(path, encoding="utf-8") as f:
            r.result = json.load(f)
        return r

    def start(self, *args, **kw):
        return self.popen([self.caisson, "run", *args], **kw)

    def record_files(self):
        try:
            return [os.path.join(self.sessions, n) for n in os.listdir(self.sessions)]
        except OSError:
            return []

    def left(self):
        """Records nobody holds and control groups, that were not there before."""
        return [p for p in self.record_files() if p not in self.records and self.is_mine(p) and not is_locked(p)] + self.groups.left()

    def is_mine(self, path):
        """Root's records lie among everybody's: ours name our directories, or were never written."""
        try:
            with open(path) as f:
                text = f.read()
            return not self.is_root or self.dir in text or (not text and os.stat(path).st_mtime < time.time() - 1)
        except OSError:
            return False

    def clear(self):
        """What a failed test has left must not fail the next one."""
        self.cmd("gc")
        for path in self.left():
            try:
                if os.path.isfile(path) and self.is_mine(path):
                    os.unlink(path)
            except OSError:
                pass
        self.groups.clear()


class Suite:
    def __init__(self):
        self.tests = []

    def __call__(self, sentence, modes=("root", "user")):
        def add(fn):
            self.tests.append((sentence, fn, modes))
            return fn
        return add

    def main(self, clean_after_each=True, skipped=0):
        word = sys.argv[1] if len(sys.argv) > 1 else ""
        base = tempfile.mkdtemp(prefix="cs-test-")
        os.chmod(base, 0o755)
        # A copy: the ordinary user may not reach the original, and a rebuild cannot disturb us.
        for program in (CAISSON, CAISSON + "-edge"):
            if os.path.exists(program):
                copy = os.path.join(base, os.path.basename(program))
                shutil.copy2(program, copy)
                os.chmod(copy, 0o755)
        old_mounts = mounts()
        groups = Groups()
        passed = failed = 0
        try:
            if os.geteuid() == 0:
                modes = [Mode("root", 0, base, groups), Mode("user", OTHER_UID, base, groups)]
            else:
                modes = [Mode("user", os.geteuid(), base, groups)]
            for m in modes:
                for sentence, fn, wanted in self.tests:
                    name = f"{m.name}: {sentence}"
                    if m.name not in wanted or word not in name:
                        continue
                    ok = self.one(fn, m, clean_after_each)
                    passed, failed = passed + ok, failed + (not ok)
                    print(f"{'ok' if ok else 'not ok'} {passed + failed} - {name}", flush=True)
            ok = until(lambda: mounts() == old_mounts, 3)
            if not ok:
                note("\n".join(sorted(set(mounts()) ^ set(old_mounts))))
            passed, failed = passed + ok, failed + (not ok)
            print(f"{'ok' if ok else 'not ok'} {passed + failed} - the host's mounts are as before")
        finally:
            groups.done()
            shutil.rmtree(base, ignore_errors=True)
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
        sys.exit(1 if failed else 0)

    @staticmethod
    def one(fn, m, clean):
        good = True
        try:
            fn(m)
        except AssertionError as e:
            note(e)
            good = False
        except Exception:
            note(traceback.format_exc())
            good = False
        if not until(lambda: not processes(m.caisson), 2, 0.05):
            for pid in processes(m.caisson):
                with open(f"/proc/{pid}/status") as f:
                    note(f"still alive: {' '.join(x.strip().replace(chr(9), '') for x in f if x.startswith(('Name', 'State', 'PPid', 'NSpid')))}")
                os.kill(pid, signal.SIGKILL)
            good = False
        # The directory of root's records is shared with whoever else runs Caisson: give them a moment.
        if clean and not until(lambda: not m.left(), 2, 0.1):
            note(f"left behind: {m.left()}")
            m.clear()
            good = False
        return good


test = Suite()


def sh(text):
    return ("--", "sh", "-c", text)


def py(text):
    return ("--", "python3", "-c", text)


def refused(r, *words, status=125):
    """A clear error: the status, one message of ours, the words, no byte that acts on a terminal."""
    equal(r.status, status, f"status ({r})")
    holds(r.err, "caisson: ", "standard error")
    for w in words:
        holds(r.err, w, "standard error")
    bad = [c for c in r.err if (ord(c) < 32 and c != "\n") or ord(c) == 127 or 0xdc80 <= ord(c) <= 0xdcff]
    check(not bad, f"raw bytes {bad!r} in {r.err!r}")
    lines = r.err.splitlines()
    check(all(line.startswith("caisson: ") for line in lines), f"a line without our name: {r.err!r}")


def worked(r, out=None):
    equal(r.status, 0, f"status ({r})")
    if out is not None:
        equal(r.out, out, "standard output")


# ---- files ----


@test("--ro shows a path of the host and nothing can be written there")
def _(m):
    d = m.fresh("data")
    m.put(f"{d}/file", "hello\n")
    equal(m.run(*sh(f"test -e {d}")).status, 1, "without the flag it is not there")
    r = m.run("--ro", d, *sh(f"cat {d}/file; echo x >{d}/file; echo x >{d}/new; rm {d}/file; true"))
    worked(r, "hello\n")
    equal(r.err.count("ead-only file system"), 3, f"refused writes in {r.err!r}")
    with open(f"{d}/file") as f:
        equal(f.read(), "hello\n", "the host's file")
    equal(os.listdir(d), ["file"], "the host's directory")


@test("--ro takes a single file, a relative path, and several of them")
def _(m):
    d = m.fresh("data")
    a, b = m.put(f"{d}/a", "A"), m.put(f"{d}/b", "B")
    worked(m.run("--ro", os.path.basename(d) + "/a", f"--ro={b}", "-w", m.ws, *sh(f"cat {a} {b}"), cwd=m.dir), "AB")


@test("--rw is written for real and the files belong to the directory's owner")
def _(m):
    owners = [(0, 0), (4242, 4343)] if m.is_root else [(m.uid, m.uid)]
    for uid, gid in owners:
        d = m.fresh("rw")
        if m.is_root:
            os.chown(d, uid, gid)
        r = m.run("--rw", d, *sh(f"echo hi >{d}/new && mkdir {d}/sub && stat -c %u:%g {d} {d}/new {d}/sub"))
        worked(r, "1000:1000\n" * 3)
        with open(f"{d}/new") as f:
            equal(f.read(), "hi\n", "the host's file")
        for name in ("new", "sub"):
            st = os.stat(f"{d}/{name}")
            equal((st.st_uid, st.st_gid), (uid, gid), f"owner of {name} on the host")


@test("--rw on a single file changes that file")
def _(m):
    d = m.fresh("rw")
    f = m.put(f"{d}/f", "old")
    m.put(f"{d}/other", "secret")
    worked(m.run("--rw", f, *sh(f"printf new >{f}; ls {d}")), "f\n")
    equal(open(f).read(), "new", "the host's file")


@test("in layer mode the workspace can be changed at will and the host sees nothing of it")
def _(m):
    ws = m.fresh("ws")
    m.put(f"{ws}/keep", "old")
    m.mkdir(f"{ws}/dir")
    m.put(f"{ws}/dir/x", "x")
    before = {n: os.stat(f"{ws}/{n}").st_mtime_ns for n in ("keep", "dir", "dir/x", ".")}
    r = m.run("-w", ws, *sh("echo new >keep && echo n >fresh && rm dir/x && mkdir d2 && mv keep kept && chmod 600 kept"
                            " && cat kept fresh && ls"), cwd=ws)
    worked(r, "new\nn\nd2\ndir\nfresh\nkept\n")
    equal(sorted(os.listdir(ws)), ["dir", "keep"], "the host's directory")
    equal(os.listdir(f"{ws}/dir"), ["x"], "the host's subdirectory")
    equal(open(f"{ws}/keep").read(), "old", "the host's file")
    equal({n: os.stat(f"{ws}/{n}").st_mtime_ns for n in before}, before, "times on the host")
    worked(m.run("-w", ws, *sh("ls"), cwd=ws), "dir\nkeep\n")


@test("--workspace-mode read, write and none do what they say")
def _(m):
    ws = m.fresh("ws")
    m.put(f"{ws}/f", "old")
    r = m.run("--workspace-mode", "read", "-w", ws, *sh("cat f; echo x >f"), cwd=ws)
    equal((r.out, r.status != 0), ("old", True), "read")
    equal(open(f"{ws}/f").read(), "old", "the host's file after read")
    worked(m.run("--workspace-mode", "write", "-w", ws, *sh("echo real >f; echo n >made"), cwd=ws))
    equal(open(f"{ws}/f").read(), "real\n", "the host's file after write")
    equal(os.stat(f"{ws}/made").st_uid, os.stat(ws).st_uid, "owner of a file made in write mode")
    worked(m.run("--workspace-mode", "none", *sh(f"pwd; test -e {ws} || echo absent"), cwd=ws), "/home/agent\nabsent\n")
    refused(m.run("--workspace-mode", "none", "-w", ws, *sh("true")), "workspace")
    refused(m.run("--workspace-mode", "layr", *sh("true")), "layer")


@test("a workspace of another owner can be worked in as root, and stays his", modes=("root",))
def _(m):
    ws = m.fresh("ws")
    m.put(f"{ws}/f", "old")
    for p in (ws, f"{ws}/f"):
        os.chown(p, 4242, 4242)
    os.chmod(f"{ws}/f", 0o600)
    worked(m.run("--workspace-mode", "write", "-w", ws, *sh("cat f && echo new >f && echo n >g && stat -c %u f g"), cwd=ws),
           "old1000\n1000\n")
    for n in ("f", "g"):
        equal(os.stat(f"{ws}/{n}").st_uid, 4242, f"owner of {n}")


SECRETS = (".env", ".env.local", "id_rsa", "deep/er/server.pem", "deep/.npmrc", ".ssh/known", ".aws/credentials", ".git-credentials")
OPEN = (".env.example", "deep/er/plain", "id_rsa.pub", "pem", "src/main.c")


def fill_secrets(m, ws):
    for name in SECRETS + OPEN:
        m.mkdir(os.path.dirname(f"{ws}/{name}"))
        m.put(f"{ws}/{name}", "content of " + name)


@test("secrets in the workspace are hidden in every mode, and what lies beside them is not")
def _(m):
    ws = m.fresh("ws")
    fill_secrets(m, ws)
    for mode in ("layer", "read", "write"):
        r = m.run("--workspace-mode", mode, "-w", ws, "--", "cat", *SECRETS, cwd=ws)
        equal(r.out, "", f"{mode}: secrets read")
        r = m.run("--workspace-mode", mode, "-w", ws, "--", "cat", *OPEN, cwd=ws)
        worked(r, "".join("content of " + n for n in OPEN))
    r = m.result("-w", ws, *sh("find . -type f | sort"), cwd=ws)
    worked(r)
    equal(sorted(r.out.split()), sorted("./" + n for n in OPEN), "files seen in the layer")
    check(r.result["hidden_files"] >= 6, f"hidden_files is {r.result['hidden_files']}")


@test("a hidden name cannot be had back by renaming, linking or through a parent")
def _(m):
    ws = m.fresh("ws")
    fill_secrets(m, ws)
    r = m.run("-w", ws, *sh("mv deep d2; cat d2/er/server.pem d2/.npmrc; ln .env e2; cat e2; cp -r . /tmp/c; cat /tmp/c/.env"
                            " /tmp/c/deep/er/server.pem; mv .ssh s2; cat s2/known; true"), cwd=ws)
    lacks(r.out, "content of", "output")


@test("--hide takes a name, a pattern, a path below the root and an absolute path")
def _(m):
    ws, d = m.fresh("ws"), m.fresh("data")
    for name in ("notes", "a.tmp", "sub/b.tmp", "sub/one", "two/one", "stay"):
        m.mkdir(os.path.dirname(f"{ws}/{name}"))
        m.put(f"{ws}/{name}", name)
    m.put(f"{d}/priv", "priv")
    m.put(f"{d}/pub", "pub")
    r = m.run("--hide", "notes", "--hide", "*.tmp", "--hide", "sub/one", "--ro", d, "--hide", f"{d}/priv",
              *sh(f"cat notes a.tmp sub/b.tmp sub/one two/one stay {d}/pub {d}/priv 2>/dev/null; true"), cwd=ws)
    worked(r, "two/onestaypub")


@test("hidden patterns hold in --rw directories as well")
def _(m):
    d = m.fresh("rw")
    m.put(f"{d}/k.pem", "key")
    m.put(f"{d}/ok", "ok")
    r = m.run("--rw", d, *sh(f"cat {d}/ok {d}/k.pem; rm -f {d}/k.pem; true"))
    equal(r.out, "ok", "output")
    equal(open(f"{d}/k.pem").read(), "key", "the key on the host")


@test("--cwd, -w and the current directory decide where the program starts")
def _(m):
    ws = m.fresh("ws")
    m.mkdir(f"{ws}/sub")
    worked(m.run("--", "pwd", cwd=f"{ws}"), ws + "\n")
    worked(m.run("-w", ws, "--", "pwd", cwd=f"{ws}/sub"), f"{ws}/sub\n")
    worked(m.run("-w", ws, "--", "pwd", cwd=m.dir), ws + "\n")
    worked(m.run("--cwd", "/tmp", "--", "pwd", cwd=ws), "/tmp\n")
    refused(m.run("--cwd", "sub", "--", "pwd", cwd=ws), "--cwd", "absolute")
    refused(m.run("--cwd", "/nowhere", "--", "pwd", cwd=ws), "/nowhere")


# ---- environment, identity ----


@test("--env passes a variable on or sets it, and nothing else comes in")
def _(m):
    r = m.run("--env", "PASSED", "-e", "SET=a b=c", "--env=EMPTY=", "--env", "UNSET_OUTSIDE", "--", "env",
              env={"PASSED": "yes", "SECRET_TOKEN": "hunter2", "LD_PRELOAD": None, "BASH_ENV": "/x"})
    worked(r)
    got = dict(line.split("=", 1) for line in r.out.splitlines())
    equal((got.get("PASSED"), got.get("SET"), got.get("EMPTY")), ("yes", "a b=c", ""), "variables")
    allowed = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "PASSED", "SET", "EMPTY", "PWD"}
    check(set(got) <= allowed, f"more than allowed: {sorted(set(got) - allowed)}")
    equal(got["HOME"], "/home/agent", "HOME")
    for bad in ("1X=2", "A-B=c", "=x", ""):
        refused(m.run("--env", bad, "--", "true"), "env")


@test("no process inside shows the caller's environment or command line")
def _(m):
    r = m.run(*sh("cat /proc/[0-9]*/environ /proc/1/cmdline 2>/dev/null | tr '\\0' '\\n'"), env={"SECRET_TOKEN": "hunter2"})
    lacks(r.out, "hunter2", "output")
    lacks(r.out, m.home, "output")
    lacks(r.out, "caisson", "output")


@test("no descriptor of the caller is open inside")
def _(m):
    fd = os.open("/etc/hostname", os.O_RDONLY)
    try:
        for n in (3, 7, 200):
            os.dup2(fd, n, True)
        r = m.run(*py("import os\nfor n in sorted(map(int, os.listdir('/proc/self/fd'))):\n"
                      " try: os.fstat(n); print(n)\n except OSError: pass"), pass_fds=(3, 7, 200))
    finally:
        for n in {fd, 3, 7, 200}:
            os.close(n)
    worked(r, "0\n1\n2\n")


@test("HOME is private, writable and gone afterwards; the user has a name")
def _(m):
    r = m.run(*sh("cd && pwd && ls -A && echo x >f && cat f && id -un && id -gn && id -u && id -g && getent passwd agent && hostname"))
    worked(r, "/home/agent\nx\nagent\nagent\n1000\n1000\nagent:x:1000:1000:agent:/home/agent:/bin/sh\ncaisson\n")
    worked(m.run(*sh("ls -A ~")), "")
    equal(set(os.listdir(m.home)) - {".local"}, set(), "the caller's home, but for its state directory")


@test("time zone and locale are the caller's")
def _(m):
    for tz in (None, "Asia/Tokyo", "America/St_Johns"):
        outside = m.call(["date", "+%Z %z"], env={"TZ": tz})
        worked(m.run("--", "date", "+%Z %z", env={"TZ": tz}), outside.out)
    code = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.setlocale(locale.LC_CTYPE))"
    for lang in ("C.UTF-8", "C"):
        outside = m.call(["python3", "-c", code], env={"LANG": lang, "LC_TIME": "C"})
        worked(m.run(*py(code), env={"LANG": lang, "LC_TIME": "C"}), outside.out)


@test("standard input, output and error pass through byte for byte")
def _(m):
    data = bytes(range(256)) * 4000
    with m.start("--", "cat", stdin=subprocess.PIPE) as p:
        out, err = p.communicate(data, 20)
    equal((p.returncode, out == data, err), (0, True, b""), "cat")
    r = m.run(*sh("echo o; echo e >&2"))
    equal((r.out, r.err), ("o\n", "e\n"), "both streams")


# ---- profile, require ----


@test("--profile takes a built-in name or a file, and flags override it")
def _(m):
    f = m.put(f"{m.fresh()}/p.yaml", "name: mine\nlimits: {files: 77}\nenv: {set: {FROM: profile}}\nfiles: {hide: [nope]}\n")
    ws = m.fresh("ws")
    m.put(f"{ws}/nope", "x")
    worked(m.run("--profile", f, *sh("ulimit -n; echo $FROM; ls"), cwd=ws), "77\nprofile\n")
    worked(m.run("-p", f, "--files", "55", "--env", "FROM=flag", *sh("ulimit -n; echo $FROM"), cwd=ws), "55\nflag\n")
    r = m.result("--profile", "offline", *sh("echo x >f; true"), cwd=ws)
    equal((r.status, r.result["profile"]), (0, "offline"), "offline")
    refused(m.run("--profile", "ofline", "--", "true"), "offline")
    refused(m.run("--profile", f"{m.dir}/missing.yaml", "--", "true"), "missing.yaml")


@test("a broken profile is refused with file, line and column")
def _(m):
    f = m.put(f"{m.fresh()}/p.yaml", "name: mine\nlimits:\n  memroy: 1G\n")
    refused(m.run("--profile", f, "--", "true"), "p.yaml:3:3", "memory")
    m.put(f, "name: mine\nname: again\n")
    refused(m.run("--profile", f, "--", "true"), "p.yaml:2:")


@test("a locked profile refuses every widening flag and takes the narrower ones")
def _(m):
    f = m.put(f"{m.fresh()}/locked.yaml", "name: l\nlocked: true\nworkspace: read\nlimits: {memory: 256M, pids: 64, wall: 1m}\n")
    for flags in (("--memory", "512M"), ("--pids", "65"), ("--timeout", "2m"), ("--ro", "/var"), ("--rw", m.ws), ("--env", "A=b"),
                  ("--env", "A"), ("--workspace-mode", "write"), ("--workspace-mode", "layer"), ("--hide", "!.ssh"), ("--hide", "except:.ssh"),
                  ("--memory", "unlimited"), ("--timeout", "unlimited"), ("--disk", "unlimited"), ("--require", "!seccomp")):
        refused(m.run("--profile", f, *flags, "--", "true"))
    worked(m.run("--profile", f, "--memory", "128M", "--pids", "32", "--timeout", "30s", "--hide", "x", "--files", "64", "--", "true"))


@test("--require: what is active is accepted, an unknown name is not")
def _(m):
    worked(m.run("--require", "seccomp,landlock,netns", "--", "true"))
    refused(m.run("--require", "secomp", "--", "true"), "seccomp")


@test("--require of what cannot be had starts nothing and says so")
def _(m):
    d = m.fresh("rw")
    name = "limit-cpu" if m.is_root else "limit-memory"  # as root: no CPU limit is set, so none is active
    r = m.result("--require", name, "--rw", d, *sh(f"echo >{d}/ran"))
    equal(os.listdir(d), [], f"the program ran although '{name}' was {r.result['protections'].get(name)!r}")
    refused(r, name)
    equal(r.result["reason"], "refused", "reason")


@test("the strict profile: all protections as root; as a user a refusal that names what is missing")
def _(m):
    r = m.result("--profile", "strict", *sh("echo in"))
    if m.is_root:
        worked(r, "in\n")
        equal({n: v for n, v in r.result["protections"].items() if v != "on"}, {}, "protections that are off")
    else:
        refused(r, "requires")
        equal((r.out, r.result["reason"]), ("", "refused"), "result")


# ---- output flags ----

FIELDS = {"id": str, "argv": list, "profile": str, "exit_code": int, "signal": (int, type(None)), "reason": str, "error": (str, type(None)),
          "wall_ms": int, "cpu_ms": int, "memory_peak_bytes": int, "written_bytes": int, "output_bytes": (int, type(None)),
          "hidden_files": int, "protections": dict, "refused": list}


@test("--json writes one object with every field")
def _(m):
    r = m.result("--max-output", "1M", *py("import time; open('/tmp/f', 'w').write('x' * (1 << 20)); b = bytearray(40 << 20)\n"
                                           "t = time.process_time()\nwhile time.process_time() - t < .1: pass\nprint('12345')"))
    worked(r, "12345\n")
    for name, kind in FIELDS.items():
        check(isinstance(r.result.get(name), kind), f"{name} is {r.result.get(name)!r}")
    j = r.result
    equal((j["exit_code"], j["signal"], j["reason"], j["error"], j["argv"][:2]), (0, None, "exited", None, ["python3", "-c"]), "result")
    equal(j["output_bytes"], 6, "output_bytes")
    check(1 << 20 <= j["written_bytes"] < 4 << 20, f"written_bytes is {j['written_bytes']}")
    check(100 <= j["cpu_ms"] < 5000, f"cpu_ms is {j['cpu_ms']}")
    check(100 <= j["wall_ms"] <= r.seconds * 1000 + 1, f"wall_ms is {j['wall_ms']}")
    check(40 << 20 <= j["memory_peak_bytes"] < 1 << 30, f"memory_peak_bytes is {j['memory_peak_bytes']}")
    must = {"userns", "mountns", "pidns", "ipcns", "utsns", "netns", "rootfs", "procfs", "devfs", "nesting", "caps", "nnp", "fds", "env",
            "nocore", "landlock", "seccomp", "init", "pdeath", "limit-pids", "limit-disk"} | ({"idrange", "limit-memory"} if m.is_root else set())
    equal({n for n in must if j["protections"].get(n) != "on"}, set(), "protections that are off")


@test("--json-fd and --json to a file with older content; the program cannot see either")
def _(m):
    d = m.fresh()
    path = m.put(f"{d}/j", "x" * 9000, 0o666)
    worked(m.run("--json", path, *sh("true")))
    json.load(open(path))
    rd, wr = os.pipe()
    with m.start("--json-fd", str(wr), *sh(f"(echo forged >&{wr}) 2>/dev/null; exit 3"), pass_fds=(wr,)) as p:
        os.close(wr)
        with os.fdopen(rd) as f:
            j = json.load(f)
        p.communicate(timeout=20)
    equal((p.returncode, j["exit_code"]), (3, 3), "status in both places")


@test("arguments with newlines and bytes that are not UTF-8 reach the program and make valid JSON")
def _(m):
    odd = b"a\nb\xff\xfe\x1b[31m\"\\"
    path = f"{m.fresh()}/j"
    r = m.call([m.caisson.encode(), b"run", b"--json", path.encode(), b"--", b"printf", b"%s", odd])
    equal(r.out.encode("utf-8", "surrogateescape"), odd, "output")
    j = json.load(open(path, encoding="utf-8"))
    equal(j["argv"][2], "a\nb\ufffd\ufffd\x1b[31m\"\\", "argv")


@test("--quiet says only errors, --verbose says what is on and what each step took")
def _(m):
    r = m.run("--quiet", "--timeout", "300ms", "--", "sleep", "20")
    equal((r.status, r.err), (124, ""), "quiet")
    refused(m.run("--quiet", "-w", "/nowhere", "--", "true"), "/nowhere")
    r = m.run("--verbose", "--", "true")
    worked(r, "")
    for w in ("on:", "seccomp", " ms ", "exited"):
        holds(r.err, w, "verbose")
    equal(m.run("--", "true").err, "", "by default nothing is said when all is well")


@test("--dry-run prints the plan in words and starts nothing")
def _(m):
    d = m.fresh("rw")
    r = m.run("--dry-run", "--rw", d, "--memory", "64M", "--timeout", "10m", "--env", "A=b", *sh(f"echo >{d}/ran"))
    worked(r)
    for w in (d, "64MiB", "10m", "A=b", "seccomp", "Nothing was started", m.ws):
        holds(r.out, w, "plan")
    equal(os.listdir(d), [], "files made")
    refused(m.run("--dry-run", "-w", "/nowhere", "--", "true"), "/nowhere")


@test("--help of every command exits 0, that of run names every option; version and help work")
def _(m):
    for c in ("run", "profile", "doctor", "verify", "ps", "kill", "gc", "completion"):
        r = m.cmd(c, "--help")
        worked(r)
        holds(r.out, f"caisson {c}", c)
    for flag in ("--ro", "--rw", "--hide", "--env", "--cwd", "--cpus", "--memory", "--pids", "--files", "--disk", "--max-output", "--timeout",
                 "--cpu-time", "--require", "--json", "--quiet", "--verbose", "--dry-run", "--workspace", "--profile"):
        holds(m.run("--help").out, flag, "run --help")
    worked(m.cmd("--version"))
    worked(m.cmd("help"))


# ---- exit status and reason ----


@test("exit status: the program's own, 126, 127, 128+n")
def _(m):
    ws = m.fresh("ws")
    m.put(f"{ws}/plain", "#!/bin/sh\n")
    m.put(f"{ws}/badinterp", "#!/no/such/interpreter\n", 0o755)
    for argv, status, reason, sig in ((("true",), 0, "exited", None), (("sh", "-c", "exit 7"), 7, "exited", None),
                                      (("sh", "-c", "exit 255"), 255, "exited", None), (("no-such-command",), 127, "not_started", None),
                                      (("./no-such-file",), 127, "not_started", None), (("./plain",), 126, "not_started", None),
                                      (("/tmp",), 126, "not_started", None), (("",), 127, "not_started", None),
                                      (("./plain/x",), 127, "not_started", None), (("./badinterp",), 126, "not_started", None),
                                      (("sh", "-c", "kill -KILL $$"), 137, "signalled", 9), (("sh", "-c", "kill -TERM $$"), 143, "signalled", 15),
                                      (("sh", "-c", "kill -SEGV $$"), 139, "signalled", 11)):
        r = m.result("--", *argv, cwd=ws)
        j = r.result
        equal((r.status, j["exit_code"], j["reason"], j["signal"]), (status, status, reason, sig), f"{argv}: {r.err!r}")
        if reason == "not_started":
            refused(r, status=status)
            check(j["error"], f"{argv}: no error in the JSON")


@test("exit status and reason of every limit")
def _(m):
    for flags, argv, status, reason, word in (
            (("--timeout", "300ms"), ("sleep", "30"), 124, "timeout", "--timeout"),
            (("--memory", "64M"), ("python3", "-c", "b = bytearray(1 << 30)"), 137, "memory", "--memory"),
            (("--disk", "8M"), ("dd", "if=/dev/zero", "of=/tmp/f", "bs=1M", "count=64"), 137, "disk", "--disk"),
            (("--max-output", "64K"), ("yes",), 137, "output", "--max-output"),
            (("--cpu-time", "300ms"), ("sh", "-c", "while :; do :; done"), 137, "cpu_time", "--cpu-time")):
        r = m.result(*flags, "--", *argv)
        j = r.result
        equal((r.status, j["exit_code"], j["reason"]), (status, status, reason), f"{argv}: {r.err!r}")
        holds(r.err, word, "standard error")


def started(m, *args, **kw):
    """A sandbox that has said it is up, and the mark of its sleeping process."""
    mark = f"{random.randrange(10**6, 10**7)}.{os.getpid()}"
    # exec: dash, when a signal comes between echo and sleep, waits for sleep all the same
    p = m.start(*args, *sh(f"echo up; exec sleep {mark}"), **kw)
    check(p.stdout.readline() == b"up\n", f"did not start: {p.stderr.read() if p.poll() is not None else ''!r}")
    return p, mark


@test("a signal to caisson ends the program: cancelled, 128+n, nothing survives")
def _(m):
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        path = f"{m.fresh()}/j"
        p, mark = started(m, "--json", path)
        p.send_signal(sig)
        _, err = p.communicate(timeout=8)
        j = json.load(open(path))
        equal((p.returncode, j["reason"], j["signal"]), (128 + sig, "cancelled", int(sig)), f"{sig!r}: {err!r}")
        equal(processes(mark), [], "processes left")


@test("a program that ignores SIGTERM is ended by the second one")
def _(m):
    path = f"{m.fresh()}/j"
    p = m.start("--json", path, *sh("trap '' TERM INT; echo up; while :; do sleep 1; done"))
    p.stdout.readline()
    start = time.monotonic()
    for _ in range(2):
        p.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    p.communicate(timeout=8)
    equal((p.returncode, json.load(open(path))["reason"]), (143, "cancelled"), "result")
    check(time.monotonic() - start < 3, "it took too long")


@test("a program that handles SIGTERM ends in its own way")
def _(m):
    path = f"{m.fresh()}/j"
    p = m.start("--json", path, *sh("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done"))
    p.stdout.readline()
    p.send_signal(signal.SIGTERM)
    out, _ = p.communicate(timeout=8)
    equal((p.returncode, out, json.load(open(path))["reason"]), (5, b"bye\n", "exited"), "result")


# ---- refusals ----


@test("what was refused is listed: ptrace by the filter, a connection by the network")
def _(m):
    r = m.result(*py("import ctypes, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n"
                     "for _ in range(3): print(libc.ptrace(0, 0, 0, 0), ctypes.get_errno())\n"
                     "s = socket.socket(); print(s.connect_ex(('192.0.2.1', 443)) != 0)"))
    worked(r, "-1 1\n" * 3 + "True\n")
    got = {x["what"]: x for x in r.result["refused"]}
    equal((got.get("ptrace") or {}).get("count"), 3, f"ptrace in {got}")
    equal(got["ptrace"]["by"], "seccomp", "by")
    dest = [x for x in got.values() if "192.0.2.1" in x["what"]]
    equal([(x["by"], x["count"]) for x in dest], [("netns", 1)], f"connect in {got}")
    check(":443" in dest[0]["what"] and dest[0]["fix"], f"{dest}")
    holds(r.err, "ptrace", "standard error")
    holds(r.err, "192.0.2.1", "standard error")


@test("loopback works inside and is not the host's")
def _(m):
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        r = m.run(*py("import socket\na = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()\n"
                      "b = socket.create_connection(a.getsockname()); print('own')\n"
                      f"c = socket.socket(); print(c.connect_ex(('127.0.0.1', {port})) != 0)"))
    worked(r, "own\nTrue\n")


# ---- ps, kill, gc ----


def listed(m):
    r = m.cmd("ps", "--json")
    worked(r)
    return json.loads(r.out)


@test("ps lists a running sandbox, kill ends it, and then it is gone")
def _(m):
    p, mark = started(m)
    mine = [e for e in listed(m) if e["supervisor"] == p.pid]
    equal(len(mine), 1, "entries")
    e = mine[0]
    equal((e["profile"], e["workspace"]), ("default", m.ws), "entry")
    holds(e["command"], mark, "command")
    check(abs(e["started"] - time.time()) < 10, f"started {e['started']}")
    holds(m.cmd("ps").out, e["id"], "table")
    worked(m.cmd("kill", e["id"]))
    check(p.poll() is not None, "kill came back before it had ended")
    p.communicate(timeout=8)
    equal((p.returncode, processes(mark)), (143, []), "after kill")
    equal([x for x in listed(m) if x["id"] == e["id"]], [], "still listed")
    r = m.cmd("kill", e["id"])
    refused(r, e["id"], status=1)


@test("a script whose interpreter is not there is said to be that, not to be missing")
def _(m):
    m.put(os.path.join(m.ws, "orphan"), "#!/nope/interpreter\n", 0o755)
    r = m.run("--", "./orphan")
    equal(r.status, 126, f"status ({r})")
    holds(r.err, "interpreter", "what is said")
    r = m.run("--env", "PATH=" + m.ws, "--", "orphan")
    equal(r.status, 126, f"found in PATH ({r})")
    holds(r.err, "interpreter", "what is said")


@test("a variable that is not set is named when it is to be passed")
def _(m):
    holds(m.run("--env", "NO_SUCH_VARIABLE", "--", "true").err, "--env NO_SUCH_VARIABLE: it is not set here", "what is said")
    equal(m.run("--env", "PATH", "--env", "A=b", "--", "true").err, "", "and not else")


@test("kill --force ends everything at once and gc clears the record")
def _(m):
    p, mark = started(m)
    e = [e for e in listed(m) if e["supervisor"] == p.pid][0]
    worked(m.cmd("kill", "--force", e["id"]))
    p.communicate(timeout=8)
    equal(p.returncode, -9, "status")
    check(until(lambda: not processes(mark), 2), "processes left")
    path = os.path.join(m.sessions, e["id"])
    check(os.path.exists(path), "the record is what a killed supervisor leaves")
    r = m.cmd("gc", "--json")
    worked(r)
    check(json.loads(r.out)["cleared"] >= 1, r.out)
    check(not os.path.exists(path), "the record is still there")


@test("kill and gc with bad arguments")
def _(m):
    refused(m.cmd("kill"), "ps")
    for bad in ("s-nothere", "../../etc/passwd", "s-../x", "", "s-\n\x1b[31m", "s-" + "x" * 300):
        refused(m.cmd("kill", bad), status=1)
    refused(m.cmd("gc", "x"))
    refused(m.cmd("ps", "x"))
    refused(m.cmd("ps", "--jsno"), "--json")


@test("a command with escape sequences is shown harmlessly by ps")
def _(m):
    p = m.popen([m.caisson, "run", "--", "sh", "-c", "echo up; sleep 60", "\x1b]0;owned\x07\x9b31m\u202e\n"])
    p.stdout.readline()
    r = m.cmd("ps")
    table = m.cmd("ps", "--json")
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=8)
    for c in ("\x1b", "\x07", "\u202e", "\x9b"):
        lacks(r.out, c, "table")
    json.loads(table.out)


# ---- completion ----


@test("completion for bash parses and completes commands, options, profiles and modes")
def _(m):
    r = m.cmd("completion", "bash")
    worked(r)
    f = m.put(f"{m.fresh()}/c.bash", r.out)
    worked(m.call(["bash", "-n", f]))
    bindir = m.fresh("bin")
    os.symlink(m.caisson, f"{bindir}/caisson")

    def complete(*words):
        script = f". {f}; COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; _caisson; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return m.call(["bash", "-c", script], env={"PATH": f"{bindir}:{SYSTEM_PATH}"}).out.split()
    equal(complete("caisson", "ru"), ["run", "rules"], "ru")
    equal(complete("caisson", "run", "--workspace"), ["--workspace", "--workspace-mode"], "--workspace")
    equal(complete("caisson", "run", "--profile", "st"), ["strict"], "--profile st")
    equal(complete("caisson", "run", "--workspace-mode", "l"), ["layer"], "mode")
    equal(complete("caisson", "profile", "exp"), ["explain"], "profile exp")
    holds(complete("caisson", "run", "--", "ec"), "echo", "commands after --")
    options = {w.strip(",") for w in m.run("--help").out.split() if w.startswith("--") and len(w) > 2}
    check(set(complete("caisson", "run", "--")) >= {o for o in options if o[2:].replace("-", "").isalpha()} - {"--help"},
          f"not completed: {options - set(complete('caisson', 'run', '--'))}")
    p, _ = started(m)
    e = [e for e in listed(m) if e["supervisor"] == p.pid][0]
    ids = complete("caisson", "kill", "s-")
    p.kill()
    p.communicate()
    holds(ids, e["id"], "ids of running sandboxes")
    m.cmd("gc")


@test("completion for zsh and fish names every option; another shell is refused")
def _(m):
    for shell in ("zsh", "fish"):
        r = m.cmd("completion", shell)
        worked(r)
        for name in ("workspace-mode", "max-output", "json-fd"):
            holds(r.out, name, shell)
    for args in (("tcsh",), (), ("bash", "zsh")):
        refused(m.cmd("completion", *args), "bash")


# ---- bad input ----


@test("a missing command is refused")
def _(m):
    for args in ((), ("--",), ("--memory", "64M"), ("--quiet", "--")):
        refused(m.run(*args), "command")
    refused(m.cmd("rnu", "--", "true"), "run")
    equal(m.cmd().status, 125, "no arguments at all")


@test("an unknown flag is refused and the nearest one named")
def _(m):
    for bad, near in (("--memroy", "--memory"), ("--timout=5s", "--timeout"), ("--read-only", None), ("-Z", None), ("--Json", "--json"),
                      ("--\x1b[31m", None), ("---", None)):
        r = m.run(bad, "--", "true")
        refused(r)
        if near:
            holds(r.err, near, bad)


@test("a flag without value, or with an impossible one, is refused")
def _(m):
    for args in (("--memory",), ("-t",), ("--quiet=yes", "--", "true"), ("--memory", "", "--", "true"), ("--memory", "0", "--", "true"),
                 ("--memory", "-1", "--", "true"), ("--memory", "64Q", "--", "true"), ("--memory", "1e9", "--", "true"),
                 ("--memory", "99999999999T", "--", "true"), ("--pids", "0", "--", "true"), ("--pids", "1.5", "--", "true"),
                 ("--cpus", "0", "--", "true"), ("--cpus", "nan", "--", "true"), ("--cpus", "-1", "--", "true"), ("--timeout", "5x", "--", "true"),
                 ("--timeout", "-5s", "--", "true"), ("--disk", "ten", "--", "true"), ("--files", "0x10", "--", "true"),
                 ("--max-output", "1 M", "--", "true"), ("--cpu-time", "0", "--", "true"), ("--json-fd", "x", "--", "true"),
                 ("--json-fd", "977", "--", "true"), ("--json-fd", "-1", "--", "true"), ("--json-fd", "99999999999", "--", "true")):
        r = m.run(*args)
        refused(r, args[0].split("=")[0])


@test("an unreadable, missing or odd workspace is refused")
def _(m):
    f = m.put(f"{m.fresh()}/file")
    refused(m.run("-w", f, "--", "true"), f)
    refused(m.run("-w", f"{m.dir}/no/such", "--", "true"), "no/such")
    refused(m.run("-w", "", "--", "true"), "workspace")
    for p in ("/proc", "/dev", "/sys", "/proc/self", "/sys/fs"):
        refused(m.run("-w", p, "--", "true"), "workspace")
    if not m.is_root:
        d = m.fresh()
        os.chmod(d, 0)
        refused(m.run("-w", d, "--", "true"), d)
        os.chmod(d, 0o755)
    gone = m.fresh()
    r = m.run("--", "true", cwd=gone, prepare=lambda: os.rmdir(gone))
    refused(r, "workspace")
    loop = f"{m.fresh()}/loop"
    os.symlink(loop, loop)
    refused(m.run("-w", loop, "--", "true"), "loop")


@test("the root and the home directory are refused as workspaces; --force allows the home")
def _(m):
    m.put(f"{m.home}/project", "here")
    link = f"{m.fresh()}/link"
    os.symlink(m.home, link)
    for flags in (("-w", "/"), ("-w", "/../"), ("-w", "/", "--force"), ("-w", "/usr/..")):
        refused(m.run(*flags, "--", "true"), "workspace")
    for flags in (("-w", m.home), ("-w", m.home + "/"), ("-w", link), ("-w", m.home + "/../home")):
        refused(m.run(*flags, "--", "true"), "home")
    refused(m.run("--", "true", cwd=m.home), "home")
    worked(m.run("--force", "--", "cat", "project", cwd=m.home), "here")
    os.unlink(f"{m.home}/project")


@test("relative and symlinked paths are resolved once, and mean what they mean outside")
def _(m):
    d = m.fresh("rel")
    ws = m.mkdir(f"{d}/real")
    m.put(f"{ws}/f", "F")
    data = m.mkdir(f"{d}/data")
    m.put(f"{data}/x", "X")
    os.symlink("real", f"{d}/link")
    os.symlink("data", f"{d}/dlink")
    worked(m.run("-w", "real", "--", "cat", "f", cwd=d), "F")
    worked(m.run("-w", "./link/../link", *sh("pwd; cat f"), cwd=d), f"{ws}\nF")
    worked(m.run("-w", "real", "--ro", "data", *sh(f"cat {data}/x"), cwd=d), "X")
    worked(m.run("-w", "real", "--ro", "./data", *sh(f"cat {data}/x"), cwd=d), "X")
    worked(m.run("-w", "real", "--rw", "dlink", *sh(f"echo Y >{data}/y; cat {data}/x"), cwd=d), "X")
    equal(open(f"{data}/y").read(), "Y\n", "written through a symlink")
    worked(m.run("-w", "real", "--ro", "dlink", *sh(f"cat {d}/dlink/x"), cwd=d), "X")


@test("--ro and --rw take a path with .. as -w does")
def _(m):
    d = m.fresh("rel")
    ws, data = m.mkdir(f"{d}/ws"), m.mkdir(f"{d}/data")
    m.put(f"{data}/x", "X")
    worked(m.run("-w", "../ws", *sh("pwd"), cwd=data), ws + "\n")
    for flag in ("--ro", "--rw"):
        worked(m.run(flag, "../data", *sh(f"cat {data}/x"), cwd=ws), "X")


@test("missing or odd --ro and --rw paths are refused")
def _(m):
    d = m.fresh("rw")
    for flag in ("--ro", "--rw"):
        refused(m.run(flag, f"{d}/none", *sh("true")), flag, "none")
        refused(m.run(flag, "/proc/1", *sh("true")))
        refused(m.run(flag, "/dev", *sh("true")))
        refused(m.run(flag, f"{d}/new\nline", *sh("true")))
    os.mkfifo(f"{d}/fifo")
    m.own(f"{d}/fifo")
    refused(m.run("--ro", f"{d}/fifo", *sh("true")), "fifo")


@test("an empty --ro or --rw (an unset variable) is refused, and is not the current directory")
def _(m):
    ws, here = m.fresh("ws"), m.fresh("here")
    for flag in ("--ro", "--rw"):
        r = m.run(flag, "", "-w", ws, *sh(f"echo x >{here}/written"), cwd=here)
        equal(os.listdir(here), [], f"{flag} '' gave the current directory away")
        refused(r, flag)


@test("workspace and files with newlines and bytes that are not UTF-8 work, and are shown escaped")
def _(m):
    odd = m.fresh("odd").encode() + b"/new\nline\xff\x1b[31m"
    sub = odd + b"/d\n\xfe"
    for d in (odd, sub):
        os.mkdir(d)
        m.own(d)
    for name, text in ((sub + b"/id_rsa", b"key"), (sub + b"/ok\n\xfd", b"ok")):
        with open(name, "wb") as f:
            f.write(text)
        m.own(name)
    r = m.call([m.caisson.encode(), b"run", b"-w", odd, b"--", b"sh", b"-c", b"cat */ok*; cat */id_rsa; pwd"])
    equal(r.out.encode("utf-8", "surrogateescape"), b"ok" + odd + b"\n", f"output ({r.err!r})")
    equal(r.status, 0, "status")
    refused(m.call([m.caisson.encode(), b"run", b"-w", odd + b"x", b"--", b"true"]))


ODD = b"new\nline\xff\x1b[31m"


def odd_values(m, *rows):
    for args in rows:
        argv = [m.caisson.encode(), *args]
        refused(m.call(argv), status=127 if args[1] == b"--" else 125)


@test("odd bytes in the value of --ro, --rw, --hide, --env, --require and limits are shown escaped")
def _(m):
    odd_values(m, *((b"run", flag, m.dir.encode() + b"/" + ODD, b"--", b"true") for flag in (b"--ro", b"--rw", b"--hide")),
               (b"run", b"--env", b"A\x1b=1", b"--", b"true"), (b"run", b"--require", ODD, b"--", b"true"),
               (b"run", b"--memory", ODD, b"--", b"true"), (b"run", b"--timeout", ODD, b"--", b"true"),
               (b"run", b"--workspace-mode", ODD, b"--", b"true"), (b"run", b"--" + ODD, b"--", b"true"))


@test("odd bytes in the value of --profile are shown escaped")
def _(m):
    odd_values(m, (b"run", b"--profile", ODD, b"--", b"true"), (b"run", b"--profile", b"./" + ODD + b".yaml", b"--", b"true"))


@test("odd bytes in the value of --json and --json-fd are shown escaped")
def _(m):
    odd_values(m, (b"run", b"--json", b"/nowhere/" + ODD, b"--", b"true"), (b"run", b"--json-fd", ODD, b"--", b"true"))


@test("odd bytes in the value of --cwd and in the command are shown escaped")
def _(m):
    odd_values(m, (b"run", b"--cwd", ODD, b"--", b"true"), (b"run", b"--cwd", b"/" + ODD, b"--", b"true"), (b"run", b"--", ODD))


@test("odd bytes in commands and their arguments are shown escaped")
def _(m):
    odd_values(m, (ODD, b"x"), (b"completion", ODD), (b"gc", ODD), (b"ps", ODD), (b"profile", ODD), (b"help", ODD))


@test("a profile that is a directory, a device, a FIFO, empty or unreadable is refused without hanging")
def _(m):
    d = m.fresh()
    refused(m.run("--profile", d, "--", "true"), "directory")
    refused(m.run("--profile", d + "/", "--", "true"), "directory")
    refused(m.run("--profile", "/dev/zero", "--", "true"))
    refused(m.run("--profile", "/dev/null", "--", "true", timeout=5))
    os.mkfifo(f"{d}/fifo.yaml")
    m.own(f"{d}/fifo.yaml")
    refused(m.run("--profile", f"{d}/fifo.yaml", "--", "true", timeout=5), "fifo.yaml")
    m.put(f"{d}/big.yaml", "#" * (1 << 20))
    refused(m.run("--profile", f"{d}/big.yaml", "--", "true"), "big.yaml")
    m.put(f"{d}/bin.yaml", b"\x7fELF\x00\xff\xfe")
    refused(m.run("--profile", f"{d}/bin.yaml", "--", "true"), "bin.yaml")
    if not m.is_root:
        m.put(f"{d}/no.yaml", "name: x\n", 0)
        refused(m.run("--profile", f"{d}/no.yaml", "--", "true"), "no.yaml")


@test("with few descriptors left it works or says so, and leaves nothing")
def _(m):
    if "asan" in CAISSON:
        return note("a sanitizer build needs descriptors of its own to start")
    # A process 1 that was killed half-way must not look like a program that ended.
    for n in list(range(3, 24)) + [32]:
        def tight(n=n):
            resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
        r = m.run("--", "echo", "hi", prepare=tight, close_fds=True)
        if r.status == 0:
            equal(r.out, "hi\n", f"output with {n} descriptors")
        else:
            refused(r)
            equal(r.out, "", f"output with {n} descriptors")
    equal(r.status, 0, "status with 32 descriptors")


def closing(*fds):
    def prepare():
        for fd in fds:
            os.close(fd)
    return prepare


@test("closed standard descriptors: it works as with /dev/null or says so")
def _(m):
    # What Python hands over on 0-2 is set before preexec_fn, so they can be closed there.
    for fds in ((0,), (1,), (0, 1), (2,), (0, 1, 2)):
        d = m.fresh("rw")
        r = m.run("--rw", d, *sh(f"cat >/dev/null; echo out; echo err >&2; ls -l /proc/self/fd >{d}/fds; echo ran >{d}/ran"), prepare=closing(*fds))
        if r.status == 0:
            equal(open(f"{d}/ran").read(), "ran\n", f"{fds} closed: effect")
        elif 2 not in fds:
            refused(r)
        else:
            equal(r.status, 125, f"{fds} closed")


@test("with standard descriptors closed, the file of --json is never the program's")
def _(m):
    for fds in ((0,), (1,), (0, 1), (2,), (0, 1, 2)):
        path = f"{m.fresh()}/j"
        r = m.run("--json", path, *sh("echo FORGED; echo FORGED >&2; cat; true"), prepare=closing(*fds))
        if not os.path.exists(path):
            equal(r.status, 125, f"{fds} closed: no result")
            continue
        text = open(path).read()
        check("FORGED" not in text.replace("echo FORGED", ""), f"{fds} closed: the program wrote into the result: {text[:200]!r}")
        try:
            j = json.loads(text)
        except ValueError as e:
            raise AssertionError(f"{fds} closed: {e}: {text[:200]!r}") from None
        equal(j["exit_code"], r.status, f"{fds} closed: status")


@test("standard input that is a directory is refused")
def _(m):
    fd = os.open(m.ws, os.O_RDONLY)
    try:
        refused(m.run("--", "true", stdin=fd), "directory")
    finally:
        os.close(fd)


@test("a full disk for --json is an error, exit 125")
def _(m):
    r = m.run("--json", "/dev/full", "--", "echo", "hi")
    equal((r.status, r.out), (125, "hi\n"), f"{r}")
    holds(r.err, "/dev/full", "standard error")
    r = m.run("--json", "/dev/full", *sh("exit 3"))
    equal(r.status, 3, "the program's own failure comes first")
    holds(r.err, "/dev/full", "standard error")


@test("--json into a missing directory or onto a directory starts nothing")
def _(m):
    d = m.fresh("rw")
    for path in (f"{d}/no/such", d, ""):
        refused(m.run("--json", path, "--rw", d, *sh(f"echo >{d}/ran")), "--json")
    equal(os.listdir(d), [], "the program ran")


def full_disk_at(path):
    """In a mount namespace of its own: a tmpfs on path that cannot take another byte."""
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare():
        if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x4000 | 0x40000, None):
            os._exit(99)
        st = os.stat(path)
        if libc.mount(b"none", path.encode(), b"tmpfs", 0, b"size=4096,mode=0700"):
            os._exit(99)
        with open(f"{path}/filler", "wb") as f:
            f.write(b"x" * 4096)
        os.chown(path, st.st_uid, st.st_gid)
    return prepare


@test("a full disk where sandboxes are recorded stops no run and leaves no record there")
def _(m):
    if os.geteuid() != 0:
        return
    worked(m.cmd("ps"))  # makes the directory
    d = m.fresh("rw")
    ready = full_disk_at(m.sessions)

    def prepare():
        ready()
        # Seen from this namespace only, so one of us stays to look at it afterwards.
        pid = os.fork()
        if pid:
            _, st = os.waitpid(pid, 0)
            with open(f"{d}/after", "w") as f:
                f.write(f"{os.waitstatus_to_exitcode(st)} {sorted(os.listdir(m.sessions))}")
            os._exit(0)
    r = m.run("--", "echo", "hi", prepare=prepare)
    status, names = open(f"{d}/after").read().split(" ", 1)
    if status == "0":
        equal(r.out, "hi\n", "output")
    else:
        equal(status, "125", f"status ({r})")
    equal(names, "['filler']", "names in the directory of records")


@test("an empty environment is no obstacle")
def _(m):
    with subprocess.Popen([m.caisson, "run", "--", "sh", "-c", "echo $HOME"], env={"XDG_RUNTIME_DIR": m.run_dir}, cwd=m.ws, preexec_fn=m.become(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        out, err = p.communicate(timeout=10)
    equal((p.returncode, out, err), (0, b"/home/agent\n", b""), "run")


@test("the umask and the ignored signals of the caller do not weaken the inside")
def _(m):
    def prepare():
        os.umask(0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    d = m.fresh("rw")
    r = m.run("--rw", d, *sh(f"umask; stat -c %a / /etc /home /home/agent /tmp; touch {d}/f"), prepare=prepare)
    worked(r)
    equal(r.out.split()[1:], ["755", r.out.split()[2], "755", "755", "1777"], "modes of directories")
    check(stat.S_IMODE(os.stat(f"{d}/f").st_mode) == 0o666, "the caller's umask holds for what is made for real")


if __name__ == "__main__":
    test.main()
