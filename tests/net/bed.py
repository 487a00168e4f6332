# SPDX-License-Identifier: Apache-2.0
"""How the tests of the network boundary run: a world, two users, and questions asked inside.

Tests run side by side (they mostly wait), each in sandboxes of its own; what must be alone says so.
Root's records lie in a directory of the tests' own, mounted over /run/caisson in their mount namespace.
"""
import concurrent.futures
import itertools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "integration")]
import world  # noqa: E402
from test_run import CAISSON, OTHER_UID, ROOT, SYSTEM_PATH, Mode, Result, check, children, equal, holds, lacks, mounts, note, processes, until  # noqa: E402,F401

SWITCHED = os.path.join(ROOT, "build", "test")  # a build whose checks can be left out
PYTHON = shutil.which("python3", path=SYSTEM_PATH)
with open(os.path.join(HERE, "inside.py")) as f:
    INSIDE = f.read()
WORKERS = int(os.environ.get("CS_WORKERS", "4"))


class NoGroups:
    def left(self):
        return []

    clear = left


def word():
    """A text that is nowhere else: what a test looks for in what servers heard."""
    return "w" + secrets.token_hex(8)


class NetMode(Mode):
    def __init__(self, name, uid, base, w):
        self.world, self.lock, self.numbers = w, threading.Lock(), itertools.count()
        super().__init__(name, uid, base, NoGroups())
        self.base = base
        self.switched = os.path.join(base, "switched", "caisson")
        self.state = self.mkdir(os.path.join(self.dir, "state"), 0o700)

    def fresh(self, word="d"):
        return self.mkdir(os.path.join(self.dir, f"{word}{next(self.numbers)}"))

    def env(self, **more):
        return super().env(**{**self.world.env, "CAISSON_STATE": self.state, **more})

    def popen(self, argv, env=None, cwd=None, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(argv, env=self.env(**(env or {})), cwd=cwd or self.fresh("ws"), user=self.uid, group=self.uid, extra_groups=[], **kw)

    def program(self, off):
        return self.caisson if off is None else self.switched

    def inside(self, flags, questions, off=None, env=None, timeout=40, json_out=True):
        """Ask in a sandbox with these flags.  off: the checks that are left out ("" for none, in the build that could)."""
        path = os.path.join(self.fresh("json"), "result")
        env = {**(env or {}), **({"CAISSON_EDGE_OFF": off} if off else {})}
        argv = [self.program(off), "run", "--json", path, *flags, "--", PYTHON, "-c", INSIDE, json.dumps(questions)]
        r = self.call(argv, env=env, timeout=timeout)
        check("\x01" in r.out, f"no answers: {r}")
        r.answers = json.loads(r.out.split("\x01", 1)[1])
        with open(path) as f:
            r.result = json.load(f)
        r.network = r.result["network"]
        r.refusals = [x["reason"] for x in r.network["refusals"]] if r.network else []
        return r

    def live(self, *flags, off=None, env=None):
        return Live(self, flags, off, env)

    def edges(self):
        return edges(self.base, self.uid)


class Live:
    """A sandbox that answers one question after another."""

    def __init__(self, m, flags, off, env):
        self.m = m
        self.json = os.path.join(m.fresh("json"), "result")
        env = {**(env or {}), **({"CAISSON_EDGE_OFF": off} if off else {})}
        self.proc = m.popen([m.program(off), "run", "--json", self.json, *flags, "--", PYTHON, "-c", INSIDE, "--serve"], env=env, stdin=subprocess.PIPE)
        self._id = None

    def ask(self, **q):
        self.send(**q)
        return self.answer()

    def send(self, **q):
        self.proc.stdin.write(json.dumps(q).encode() + b"\n")
        self.proc.stdin.flush()

    def answer(self):
        line = self.proc.stdout.readline()
        if not line:
            raise AssertionError(f"the sandbox has ended: {self.proc.communicate()[1][-600:]!r}")
        return json.loads(line[1:])

    @property
    def id(self):
        if not self._id:
            def find():
                listed = json.loads(self.m.cmd("ps", "--json").out)
                return next((x["id"] for x in listed if x["supervisor"] == self.proc.pid), None)
            self._id = until(find, 5)
        return self._id

    def net(self, *args):
        return self.m.cmd("net", self.id, *args)

    def show(self):
        r = self.net("show", "--json")
        equal(r.status, 0, f"net show ({r})")
        return json.loads(r.out)

    def edges(self):
        return [p for p in edges(self.m.base) if parent(p) == self.proc.pid]

    def end(self, timeout=20):
        try:
            out, err = self.proc.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.communicate()
            raise AssertionError(f"the sandbox does not end within {timeout} s") from None
        r = Result(self.proc.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), None, 0)
        try:
            with open(self.json) as f:
                r.result = json.load(f)
            r.network = r.result["network"]
            r.refusals = [x["reason"] for x in r.network["refusals"]] if r.network else []
        except (OSError, ValueError):
            pass
        return r

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.proc.poll() is None:
            self.proc.terminate()
        try:
            self.proc.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.communicate()
        return False


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


# ---- questions ----


def allow(*rules):
    return [x for r in rules for x in ("--allow", r)]


def tcp(to, port, **kw):
    return {"do": "tcp", "to": to, "port": port, "want": "\n", **kw}


def direct(to, port, **kw):
    """To an address as it stands, without a look at names."""
    return {"do": "tcp", "to": to, "port": port, "want": "\n", "address": True, **kw}


def request(host, path="/", method="GET", headers=(), body="", close=True):
    head = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    if body:
        head.append(f"Content-Length: {len(body)}")
    if close:
        head.append("Connection: close")
    return "\r\n".join(head) + "\r\n\r\n" + body


def http(to, path="/", port=80, host=None, **kw):
    more = {k: kw.pop(k) for k in ("method", "headers", "body", "close") if k in kw}
    return {"do": "tcp", "to": to, "port": port, "say": request(host or to, path, **more), **kw}


def https(w, to, path="/", port=443, host=None, **kw):
    """ca: whom the program trusts; None: what the sandbox gives it."""
    more = {k: kw.pop(k) for k in ("method", "headers", "body", "close") if k in kw}
    with open(w.ca) as f:
        ca = f.read()
    return {"do": "tls", "to": to, "port": port, "ca": ca, "say": request(host or to, path, **more), **kw}


def edges(base, uid=None):
    """The boundary's processes that were started from our copies."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe").startswith(base + "/") and "caisson-edge" in os.readlink(f"/proc/{pid}/exe") and \
                    (uid is None or os.stat(f"/proc/{pid}").st_uid == uid or proc_uid(pid) == uid) and state(pid) != "Z":
                found.append(int(pid))
        except OSError:
            pass
    return found


def proc_uid(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(x.split()[1]) for x in f if x.startswith("Uid:"))


def state(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def ours(base):
    """Every process that runs one of our copies."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe").startswith(base + "/"):
                found.append(int(pid))
        except OSError:
            pass
    return found


class NetSuite:
    def __init__(self):
        self.tests = []

    def __call__(self, sentence, modes=("root", "user"), alone=False):
        def add(fn):
            self.tests.append((sentence, fn, modes, alone))
            return fn
        return add

    def main(self):
        if os.geteuid() != 0:
            print("1..0 # skip: needs root, to make network namespaces")
            if os.environ.get("CS_TESTS_MUST_RUN"):
                print("0 passed, 1 failed")
                sys.exit(1)
            print("0 passed, 0 failed, 1 skipped")
            sys.exit(0)
        world.enter()
        self.word = sys.argv[1] if len(sys.argv) > 1 else ""
        self.count, self.failed, self.lock = 0, 0, threading.Lock()
        base = tempfile.mkdtemp(prefix="cs-net-")
        os.chmod(base, 0o755)
        os.mkdir(base + "/switched")
        for src, to in ((os.path.dirname(CAISSON), base), (SWITCHED, base + "/switched")):
            for name in ("caisson", "caisson-edge"):
                shutil.copy2(os.path.join(src, name), to)
                os.chmod(os.path.join(to, name), 0o755)
        os.makedirs("/run/caisson", exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/run/caisson"], check=True)
        w = world.World()
        try:
            self.all([NetMode("root", 0, base, w), NetMode("user", OTHER_UID, base, w)], base)
        finally:
            w.close()
            for pid in ours(base):
                os.kill(pid, signal.SIGKILL)
            subprocess.run(["umount", "/run/caisson"], check=False)
            shutil.rmtree(base, ignore_errors=True)
        print(f"{self.count - self.failed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)

    def all(self, modes, base):
        before = mounts()
        todo = [(m, *t) for m in modes for t in self.tests if m.name in t[2] and self.word in f"{m.name}: {t[0]}"]
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda t: self.one(t[0], t[1], t[2]), [t for t in todo if not t[4]]))
        for t in todo:
            if t[4]:
                self.one(t[0], t[1], t[2])
        self.verdict("no process of ours is left", [] if until(lambda: not ours(base), 3) else [f"left: {ours(base)}"])
        self.verdict("the mounts are as before", [] if until(lambda: mounts() == before, 3) else sorted(set(mounts()) ^ set(before)))
        for m in modes:
            live = m.sessions + ".live"
            left = [f for d in (m.sessions, live) if os.path.isdir(d) for f in os.listdir(d)]
            self.verdict(f"{m.name}: no record and no socket is left", left)

    def one(self, m, sentence, fn):
        start, notes = time.monotonic(), []
        try:
            fn(m)
        except AssertionError as e:
            notes = [str(e)]
        except Exception:
            notes = [traceback.format_exc()]
        self.verdict(f"{m.name}: {sentence}", notes, time.monotonic() - start)

    def verdict(self, name, notes, seconds=0):
        with self.lock:
            for n in notes:
                note(n)
            self.count += 1
            self.failed += bool(notes)
            slow = f" # {seconds:.1f} s" if seconds > 3 else ""
            print(f"{'not ok' if notes else 'ok'} {self.count} - {name}{slow}", flush=True)
