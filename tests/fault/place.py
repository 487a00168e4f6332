# SPDX-License-Identifier: Apache-2.0
"""Where the fault tests work: a mount namespace of their own, so that whatever ends them, no mount and
no loop device stays; in it a tmpfs, where making a scene and syncing it cost nothing."""
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
os.environ.setdefault("CAISSON", os.path.join(ROOT, "build", "test", "caisson"))  # the one with fault points
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "integration")]
import scene  # noqa: E402
from test_run import check, equal  # noqa: E402

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags=0, options=""):
    if libc.mount(source.encode(), target.encode(), kind.encode() if kind else None, flags, options.encode()) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e), target)


def apart():
    """Root: from here on mounts are ours alone, and end with us."""
    if os.geteuid() != 0:
        return False
    if libc.unshare(CLONE_NEWNS) < 0:
        return False
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    return True


def main(suite, tmpfs=True):
    """As suite.main(), in such a place.  CS_FAULT_DIR: on that file system instead."""
    top = tempfile.mkdtemp(prefix="cs-fault-", dir=os.environ.get("CS_FAULT_DIR"))
    os.chmod(top, 0o755)
    inside = apart()
    if inside and tmpfs and not os.environ.get("CS_FAULT_DIR"):
        mount("tmpfs", top, "tmpfs", 0, "mode=755,size=1g")
    tempfile.tempdir = top
    try:
        suite.main()
    finally:
        if inside:
            libc.umount2(top.encode(), 2)
        shutil.rmtree(top, ignore_errors=True)


class Place:
    """One workspace and one store, and Caisson at work on them."""

    def __init__(self, m, top=None, small=False):
        self.m = m
        self.top = top or m.fresh("place")
        self.ws, self.store, self.list = (os.path.join(self.top, n) for n in ("ws", "store", "list"))
        self.script = os.path.join(m.dir, "scene.py")
        if not os.path.exists(self.script):
            shutil.copy(os.path.join(HERE, "scene.py"), self.script)
        self.word = "small" if small else "all"
        self.before = self.after = self.owners = self.id = None

    def cmd(self, *args, fault=None, listed=False, cwd=None, **env):
        more = {"CAISSON_STATE": self.store, **env}
        if fault:
            more["CAISSON_FAULT"] = str(fault)
        if listed:
            more["CAISSON_FAULT_LIST"] = self.list
        who = {"user": self.m.uid, "group": self.m.uid, "extra_groups": []} if os.geteuid() != self.m.uid else {}
        return subprocess.run([self.m.caisson, *args], env=self.m.env(**more), cwd=cwd or self.ws, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, **who)

    def points(self):
        """The fault points that were passed since the last call."""
        try:
            with open(self.list) as f:
                names = f.read().split()
            os.unlink(self.list)
            return names
        except FileNotFoundError:
            return []

    def build(self):
        for d in (self.ws, self.store):
            self.wipe(d)
        scene.build(self.ws, self.m.uid, foreign=self.m.is_root)
        self.before, self.owners = scene.look(self.ws), scene.owners(self.ws)

    @staticmethod
    def wipe(d):
        if os.path.isdir(d):
            if os.geteuid() != 0:
                for path, dirs, _ in os.walk(d):
                    for n in dirs:
                        if not os.path.islink(os.path.join(path, n)):
                            os.chmod(os.path.join(path, n), 0o700)
            shutil.rmtree(d)

    def run(self, how, **kw):
        r = self.cmd("run", "--commit", how, "--ro", self.script, "--", "python3", "-I", "-S", self.script, self.word, **kw)
        try:
            self.after = json.loads(r.stdout)
        except ValueError:
            self.after = None
        return r

    def pending(self):
        """The scene, and a change set over it that waits."""
        self.build()
        r = self.run("keep")
        check(r.returncode == 0 and self.after, f"the scene's run: {r.returncode} {r.stderr!r}")
        self.id = self.listed()[0]["id"]

    def listed(self):
        r = self.cmd("txn", "list", "--json")
        equal(r.returncode, 0, f"txn list: {r.stderr!r}")
        return json.loads(r.stdout)

    def committed(self):
        self.pending()
        self.good("commit")

    def good(self, *args):
        r = self.cmd(*args)
        equal(r.returncode, 0, f"`caisson {' '.join(args)}`: {r.stderr.decode(errors='replace')!r}")
        return r

    # ---- verdicts ----

    def state(self, *allowed):
        """Which of the named looks the workspace has: whole, or it fails."""
        now = scene.look(self.ws)
        for name, want in allowed:
            if want is not None and now == want:
                self.check_owners(now)
                return name
        gaps = [(name, scene.differ(now, want)) for name, want in allowed if want is not None]
        name, gap = min(gaps, key=lambda g: len(g[1]))
        raise AssertionError(f"the workspace is neither {' nor '.join(n for n, _ in gaps)}; against {name}: {gap}")

    def is_now(self, name, want, what):
        now = scene.look(self.ws)
        check(now == want, f"{what}: not as {name}: {scene.differ(now, want)}")

    def check_owners(self, now):
        foreign = {(12345, 12346)}
        for name, who in scene.owners(self.ws).items():
            check(who == (self.m.uid, self.m.uid) or (who in foreign and name.endswith(("sub/b",))), f"{name!r} belongs to {who}")

    def leftovers(self):
        left = []
        for folder in ("live", "damaged"):
            try:
                left += [f"{folder}/{n}" for n in os.listdir(f"{self.store}/{folder}")]
            except FileNotFoundError:
                pass
        return left
