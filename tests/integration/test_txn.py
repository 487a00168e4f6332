#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transactions by their effects: run --commit, commit, rollback, undo, txn, log.

    test_txn.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path           the program to test (default: build/caisson)

Every promise is a check on the workspace itself: contents, types, modes, times
to the nanosecond, links, attributes.  What must be refused has a control beside
it that is not.  Prints TAP lines and ends with `N passed, M failed`.
"""
import ctypes
import hashlib
import json
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from test_run import Suite, check, equal, holds, lacks, note, processes, py, sh, until, worked  # noqa: E402

test = Suite()
libc = ctypes.CDLL(None, use_errno=True)


# ---- a workspace and what is in it ----


def digest(path):
    h = hashlib.sha1()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            h.update(block)
    return h.hexdigest()


def tree(top, times=True):
    """Everything below, the directory itself included: what two equal trees have in common."""
    got = {}
    for path, dirs, files in os.walk(os.fsencode(top)):
        for name in [b"."] + files + [d for d in dirs if os.path.islink(os.path.join(path, d))]:
            p = os.path.join(path, name)
            st = os.lstat(p)
            e = [stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns if times else 0]
            if stat.S_ISREG(st.st_mode):
                e += [st.st_size, digest(p), st.st_nlink]
            if stat.S_ISLNK(st.st_mode):
                e.append(os.readlink(p))
            else:
                e.append({n: os.getxattr(p, n) for n in os.listxattr(p)})
            got[os.path.relpath(p, os.fsencode(top))] = e
    return got


def unchanged(ws, before, what):
    now = tree(ws)
    bad = [f"{p!r}: {before.get(p)} -> {now.get(p)}" for p in sorted(set(now) | set(before)) if now.get(p) != before.get(p)]
    check(not bad, f"{what}: " + "; ".join(bad[:5]))


class Ws:
    """A workspace with files in it, a store of its own, and the commands."""

    def __init__(self, m, files=None, name="ws"):
        self.m = m
        self.top = m.fresh("txn")
        self.dir = m.mkdir(f"{self.top}/{name}")
        self.state = f"{self.top}/state"
        for p, text in (files or {}).items():
            self.put(p, text)

    def path(self, p):
        return os.path.join(self.dir, p)

    def put(self, p, text="", mode=0o644):
        d = os.path.dirname(self.path(p))
        if not os.path.isdir(d):
            made = self.dir
            for part in os.path.relpath(d, self.dir).split("/"):
                made = f"{made}/{part}"
                if not os.path.isdir(made):
                    self.m.mkdir(made)
        return self.m.put(self.path(p), text, mode)

    def read(self, p):
        with open(self.path(p), "rb") as f:
            return f.read().decode("utf-8", "surrogateescape")

    def there(self, p):
        return os.path.lexists(self.path(p))

    def env(self, kw):
        kw["env"] = {"CAISSON_STATE": self.state, **(kw.get("env") or {})}
        kw.setdefault("cwd", self.dir)
        kw.setdefault("timeout", 60)
        return kw

    def cmd(self, *args, **kw):
        return self.m.cmd(*args, **self.env(kw))

    def run(self, *args, **kw):
        """A run whose changes stay pending; its id, or None."""
        r = self.m.run("-w", self.dir, "--commit", "keep", *args, **self.env(kw))
        found = re.search(r"(t-[a-z0-9]+)  \d+ added", r.err)
        equal(r.status, 0, f"the run ({r})")
        return found.group(1) if found else None

    def commit(self, *args, status=0, **kw):
        r = self.cmd("commit", *args, **kw)
        equal(r.status, status, f"commit {args} ({r})")
        return r

    def undo(self, *args, status=0, **kw):
        r = self.cmd("undo", *args, **kw)
        equal(r.status, status, f"undo {args} ({r})")
        return r

    def show(self, *args, **kw):
        r = self.cmd("txn", "show", "--json", *args, **kw)
        worked(r)
        return json.loads(r.out)

    def list(self, *args):
        r = self.cmd("txn", "list", "--json", *args)
        worked(r)
        return json.loads(r.out)

    def remove(self):
        """Too deep for what cleans up after the tests."""
        subprocess.run(["rm", "-rf", self.top], check=True)

    def round(self, want=None):
        """Commit, undo, and commit again: the second one is as the first, the undo is exact."""
        before = tree(self.dir)
        self.commit()
        once = tree(self.dir)
        self.undo()
        unchanged(self.dir, before, "after the undo")
        self.commit()
        unchanged(self.dir, once, "after the second commit")
        if want is not None:
            equal({p: self.read(p) for p in want}, want, "contents")


BASE = {"keep": "keep\n", "edit": "old\n", "gone": "gone\n", "d/in": "in\n", "d/e/deep": "deep\n"}
CHANGE = "echo new >edit; rm gone; mkdir n; echo x >n/x; echo y >>d/e/deep; chmod 600 d/in"


def changed(w):
    equal((w.read("edit"), w.there("gone"), w.read("n/x"), w.read("d/e/deep")), ("new\n", False, "x\n", "deep\ny\n"), "the change")
    equal(stat.S_IMODE(os.stat(w.path("d/in")).st_mode), 0o600, "mode of d/in")


# ---- the ways of ending a run ----


@test("nothing in the workspace changes before the commit, and all of it at the commit; undo is exact")
def _(m):
    w = Ws(m, BASE)
    before = tree(w.dir)
    t = w.run(*sh(CHANGE))
    check(t, "no id")
    unchanged(w.dir, before, "before the commit")
    w.show()
    w.cmd("diff", t)
    unchanged(w.dir, before, "after looking at it")
    w.commit(t)
    changed(w)
    w.undo(t)
    unchanged(w.dir, before, "after the undo")
    w.commit(t)
    changed(w)
    w.undo()
    unchanged(w.dir, before, "after the second undo")


@test("--commit keep, always, on-success and never do what they say")
def _(m):
    for mode, code, fate in (("keep", 0, "pending"), ("always", 0, "committed"), ("always", 3, "committed"), ("on-success", 0, "committed"),
                             ("on-success", 3, "pending"), ("ask", 0, "pending"), ("never", 0, None)):
        w = Ws(m, BASE)
        before = tree(w.dir)
        r = m.result("-w", w.dir, "--commit", mode, *sh(f"{CHANGE}; exit {code}"), **w.env({}))
        equal(r.status, code, f"{mode}: status ({r})")
        states = [t["state"] for t in w.list()]
        equal(states, [fate] if fate else [], f"{mode} after {code}")
        if fate == "committed":
            changed(w)
        else:
            unchanged(w.dir, before, mode)
        got = r.result["transaction"]
        if fate:
            equal((got["state"] if "state" in got else got.get("fate"), got["added"], got["changed"], got["deleted"]), (fate, 2, 3, 1), f"{mode}: JSON {got}")
            holds(r.err, got["id"], "standard error")


@test("a run that writes nothing leaves no transaction; one that restores what it wrote neither")
def _(m):
    w = Ws(m, BASE)
    equal(w.run(*sh("cat edit >/dev/null")), None, "id")
    w.run(*py("import os\nst=os.stat('edit'); d=open('edit').read(); open('edit','w').write(d); os.utime('edit', ns=(st.st_atime_ns, st.st_mtime_ns))"))
    equal(w.list(), [], "transactions")


@test("rollback throws away, and only what is pending")
def _(m):
    w = Ws(m, BASE)
    before = tree(w.dir)
    t = w.run(*sh(CHANGE))
    worked(w.cmd("rollback", t))
    unchanged(w.dir, before, "after the rollback")
    equal(w.list(), [], "transactions")
    equal(w.cmd("commit", t).status, 125, "commit of one that is gone")
    t = w.run(*sh(CHANGE))
    w.commit(t)
    equal(w.cmd("rollback", t).status, 1, "rollback of a committed one")
    changed(w)


@test("without an ID the latest one of the workspace is meant, from a directory in it, too")
def _(m):
    w = Ws(m, BASE)
    first = w.run(*sh("echo 1 >one"))
    second = w.run(*sh("echo 2 >two"))
    equal([t["id"] for t in w.list()], [second, first], "newest first")
    w.commit(cwd=w.path("d/e"))
    equal((w.there("one"), w.there("two")), (False, True), "what was committed")
    w.undo(cwd=w.path("d"))
    check(not w.there("two"), "undone from a subdirectory")


@test("only what is asked for is committed, the rest stays, and an undo takes back all parts")
def _(m):
    w = Ws(m, {**BASE, "e/f": "f"})
    before = tree(w.dir)
    t = w.run(*sh(CHANGE + "; echo q >e/f; mv keep kept; ln n/x n/y"))
    r = w.commit(t, "n", "edit")
    holds(r.err, "still pending", "what is said")
    equal((w.read("n/x"), w.read("edit"), w.there("gone"), w.read("d/e/deep")), ("x\n", "new\n", True, "deep\n"), "first part")
    w.commit(t, "keep")
    w.commit(t, os.path.join(w.dir, "d/e"))
    w.commit(t, "in", cwd=w.path("d"))
    w.commit(t)
    changed(w)
    equal((w.read("kept"), w.there("keep"), w.read("e/f")), ("keep\n", False, "q\n"), "the rest")
    equal(os.stat(w.path("n/x")).st_ino, os.stat(w.path("n/y")).st_ino, "hard link")
    holds(w.commit(t).err, "nothing", "a commit of nothing")
    w.undo(t)
    unchanged(w.dir, before, "after the undo")
    w.commit(t)
    changed(w)
    equal(w.cmd("commit", t, "/etc/passwd").status, 125, "a path outside")
    w.undo(t)
    w.commit(t, "no/such", status=125)
    unchanged(w.dir, before, "after a commit of a path that is not in it")


@test("the log tells what became of each, also as JSON")
def _(m):
    w = Ws(m, BASE)
    t = w.run(*sh(CHANGE))
    w.commit(t)
    w.undo(t)
    worked(w.cmd("rollback", t))
    lines = [x.split()[1:3] for x in w.cmd("log").out.splitlines()]
    equal(lines, [[t, "pending"], [t, "committed"], [t, "undone"], [t, "rolled-back"]], "log")
    equal([e["event"] for e in json.loads(w.cmd("log", "--json").out)], ["pending", "committed", "undone", "rolled-back"], "JSON")


# ---- held back ----


def held(w):
    return {h["path"]: h["why"] for h in w.show()["held"]}


def committed_except(w, *paths):
    """The commit takes `fine` and leaves these; each is named."""
    want = set(paths)
    got = held(w)
    equal(set(got), want, "what is held back")
    r = w.commit(status=1)
    for p in paths:
        holds(r.err, p, "what is said")
    equal(w.read("fine"), "fine\n", "what is not held back")
    return got


@test("a device cannot be made inside; FIFOs and sockets are never committed")
def _(m):
    w = Ws(m)
    r = m.run("-w", w.dir, "--commit", "keep", *sh("mknod dev c 1 3 || echo refused; mknod blk b 1 3 || echo refused"), **w.env({}))
    equal(r.out, "refused\nrefused\n", "mknod")
    w.run(*py("import os, socket\nos.mkfifo('fifo'); os.mkdir('s'); socket.socket(socket.AF_UNIX).bind('s/sock'); open('s/f','w'); open('fine','w').write('fine\\n')"))
    committed_except(w, "fifo", "s/sock")
    w.commit("--allow", "*", status=1)
    w.commit("--allow", "fifo", status=1)
    equal((w.there("fifo"), w.there("s/sock"), w.there("s/f")), (False, False, True), "in the workspace")


@test("what a commit left can be thrown away, and comes back only with all of it, by an undo")
def _(m):
    w = Ws(m)
    w.run(*sh("mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; echo fine >fine; echo other >other"))
    w.commit("fine", status=0)
    holds(w.cmd("rollback").err, "what was committed stays", "what is said")
    equal((w.read("fine"), w.there("other"), w.there(".git/hooks/pre-commit")), ("fine\n", False, False), "the workspace")
    equal(w.cmd("diff", "--name-status").out, "", "what is pending")
    holds(w.commit("--allow", "*", status=0).err, "nothing left", "a later commit")
    equal((w.there("other"), w.there(".git/hooks/pre-commit")), (False, False), "the workspace after it")
    r = w.cmd("rollback")
    equal(r.status, 1, f"a second rollback ({r})")
    equal(w.cmd("gc", "--pending").out, "0 cleared\n", "gc")
    w.cmd("undo")
    equal(w.there("fine"), False, "after the undo")
    w.commit("other", status=0)  # it was dropped once: that does not count any more
    holds(w.cmd("diff", "--name-status").out, "fine", "what is pending after it")
    w.cmd("rollback")
    w.cmd("undo")
    w.cmd("rollback")
    equal((w.there("other"), w.there("fine")), (False, False), "in the end")


@test("a commit that takes nothing says so and is not on record")
def _(m):
    w = Ws(m)
    w.run(*sh("mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit"))
    w.commit(status=1)
    before = w.cmd("log").out
    holds(w.commit(status=1).err, "nothing was committed", "what is said")
    equal(w.cmd("log").out, before, "the log")


@test("set-user-id and set-group-id bits are held back until allowed")
def _(m):
    w = Ws(m, {"tool": "#!/bin/sh\n", "old": "#!/bin/sh\n"})
    os.chmod(w.path("tool"), 0o4755)
    os.chmod(w.path("old"), 0o2755)
    r = m.run("-w", w.dir, "--commit", "never", *sh("cp /bin/true x; chmod 4755 x || echo refused; chmod 2755 x || echo refused"), **w.env({}))
    equal(r.out, "refused\nrefused\n", "no program can make one")
    w.run(*sh("mv tool suid; mv old sgid; echo fine >fine"))
    committed_except(w, "suid", "sgid")
    equal((w.there("suid"), w.there("sgid")), (False, False), "in the workspace")
    w.commit("--allow", "suid", status=1)
    check(os.stat(w.path("suid")).st_mode & stat.S_ISUID, "allowed")
    w.commit("--allow", "*")
    check(os.stat(w.path("sgid")).st_mode & stat.S_ISGID, "allowed, too")


@test("file capabilities that a copy takes along are held back", modes=("root",))
def _(m):
    w = Ws(m, {"ping": "#!/bin/sh\n"})
    caps = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
    os.setxattr(w.path("ping"), "security.capability", caps)
    os.chmod(w.path("ping"), 0o755)
    w.run(*sh("mv ping pong; echo fine >fine"))
    committed_except(w, "pong")
    check(not w.there("pong"), "in the workspace")
    w.commit("--allow", "pong")
    equal(os.getxattr(w.path("pong"), "security.capability"), caps, "allowed: it is there")


@test("attributes of overlayfs that a program writes mean nothing and are held back, on the top directory, too")
def _(m):
    w = Ws(m, {"real/f": "f", "real/s/g": "g", "d/h": "h"})
    before = tree(w.dir)
    r = m.run("-w", w.dir, "--commit", "keep", *py(
        "import os\n"
        "open('fine','w').write('fine\\n'); os.mkdir('fake')\n"
        "for p, n, v in (('fake','redirect',b'/real'), ('d','opaque',b'y'), ('.','opaque',b'y'), ('fine2','origin',b'')):\n"
        "  if p == 'fine2': open(p,'w')\n"
        "  for pre in ('user.overlay.', 'trusted.overlay.'):\n"
        "    try: os.setxattr(p, pre + n, v); print(p)\n"
        "    except OSError: pass\n"), **w.env({}))
    worked(r)
    if not r.out:
        note("no such attribute can be set inside")
        return
    names = set(r.out.split())
    equal(set(held(w)), names, "held back")
    w.commit(status=1)
    equal((w.read("real/f"), w.read("real/s/g"), w.read("d/h"), w.read("fine")), ("f", "g", "h", "fine\n"), "the workspace")
    check(not [n for p in (".", "d") for n in os.listxattr(w.path(p)) if "overlay" in n], "attributes")
    w.undo()
    unchanged(w.dir, before, "after the undo")
    w.commit("--allow", "d", status=1)
    check(any("overlay.opaque" in n for n in os.listxattr(w.path("d"))), "allowed by name")


@test("symlinks that lead out are held back, those that stay in are not")
def _(m):
    w = Ws(m, {"a/b/f": "f", "moved/x/y/l2": ""})
    links = {"abs": "/etc/passwd", "up": "../x", "a/up2": "../../x", "a/b/up3": "../../../x", "thr": "a/../../x", "here_out": "here/../x",
             "dot": "./../x", "ws_out": f"{w.dir}/../x", "root": "/", "prefix": f"{w.dir}x/y"}
    fine = {"here": ".", "in": "a/b/f", "a/b/ok": "../../fine", "ws_in": f"{w.dir}/a", "dangling": "nowhere", "a/dots": "...", "sl": "a//b/"}
    w.run(*sh("echo fine >fine; " + "; ".join(f"ln -s '{t}' '{p}'" for p, t in {**links, **fine}.items())))
    committed_except(w, *links)
    for p in links:
        check(not w.there(p), f"{p} is there")
    for p, t in fine.items():
        equal(os.readlink(w.path(p)), t, p)
    w.commit("--allow", "*")
    for p, t in links.items():
        equal(os.readlink(w.path(p)), t, p)


PROTECTED = (".git/hooks/pre-commit", ".git/config", ".GIT/Hooks/post-checkout", "sub/.git/config", "sub/deep/.Git/HOOKS/x", ".bashrc", "x/.envrc2/../.BashRC",
             ".github/workflows/ci.yml", ".GitHub/Workflows/z.yml", ".vscode/tasks.json", "Jenkinsfile", "deep/er/.gitattributes", ".claude/settings.json")
FREE = (".git/objects/ab", ".git/HEAD", "hooks/pre-commit", "config", "git/hooks/x", ".git/hooks/pre-commit.sample", ".githubx/workflows/a", "bashrc")


@test("protected names are held back in any case and at any depth, and so are nested repositories")
def _(m):
    w = Ws(m, {".git/config": "[core]\n", ".git/hooks/old": "old\n", "gone/.git/hooks/h": "h\n", "type/.git/config": "c\n"})
    names = [os.path.normpath(p) for p in PROTECTED]
    w.run(*py("import os\nfor p in %r:\n  os.makedirs(os.path.dirname(p) or '.', exist_ok=True); open(p,'w').write('evil')\n"
              "open('fine','w').write('fine\\n'); os.unlink('.git/hooks/old')\nimport shutil\nshutil.rmtree('gone'); shutil.rmtree('type'); open('type','w')"
              % (names + list(FREE),)))
    got = held(w)
    for p in names + [".git/hooks/old", "gone/.git/hooks/h", "type/.git/config"]:
        check(p in got, f"{p} is not held back: {sorted(got)}")
    for p in FREE:
        check(p not in got, f"{p} is held back")
    w.commit(status=1)
    equal(w.read(".git/config"), "[core]\n", ".git/config")
    for p in names:
        check(p == ".git/config" or not w.there(p), f"{p} is there")
    equal((w.read(".git/hooks/old"), w.read("gone/.git/hooks/h"), w.read("type/.git/config")), ("old\n", "h\n", "c\n"), "deleted ones")
    for p in FREE:
        equal(w.read(p), "evil", p)
    w.commit("--allow", ".git/hooks/pre-commit", status=1)
    equal((w.read(".git/hooks/pre-commit"), w.read(".git/config")), ("evil", "[core]\n"), "one allowed by name")
    w.commit("--allow", "*")
    for p in names:
        equal(w.read(p), "evil", p)
    check(not w.there("gone") and os.path.isfile(w.path("type")), "the rest")


@test("a renamed directory is held back if it brings protected names or leaves with them", modes=("root",))
def _(m):
    w = Ws(m, {"evil/hooks/pre-commit": "x", "evil/config": "x", "sub/.git/config": "y", "plain/f": "f"})
    w.run(*sh("mv evil .git; mv sub away; mv plain simple; echo fine >fine"))
    committed_except(w, ".git", "away")
    equal((w.there(".git"), w.there("away"), w.there("evil/config"), w.there("sub/.git/config"), w.read("simple/f")), (False, False, True, True, "f"), "workspace")
    w.commit("--allow", ".git", "--allow", "away")
    equal((w.read(".git/config"), w.read("away/.git/config"), w.there("evil")), ("x", "y", False), "allowed")


@test("a renamed directory is held back if a link in it leads out at its new place", modes=("root",))
def _(m):
    w = Ws(m, {"a/b/c/f": "f", "x/y/z/f": "f"})
    os.symlink("../../../inside", w.path("a/b/c/l"))
    os.symlink("../in", w.path("x/y/z/l"))
    w.run(*sh("mv a/b/c c; mv x/y/z x/z; echo fine >fine"))
    committed_except(w, "c")
    equal((w.there("c"), w.there("a/b/c/l"), w.there("x/z/l")), (False, True, True), "workspace")
    w.commit("--allow", "c")
    check(w.there("c/l"), "allowed")


@test("the profile's commit.protect and commit.allow decide what is held back")
def _(m):
    w = Ws(m)
    p = m.put(f"{w.top}/p.yaml", "name: p\nextends: default\ncommit:\n  protect: ['*.plan', docs/secret]\n  allow: [ok.plan, .bashrc]\n")
    w.run("-p", p, *sh("mkdir -p docs/secret x; for f in a.plan ok.plan x/B.PLAN .bashrc .zshrc docs/secret/f docs/f fine; do echo fine >$f; done"))
    committed_except(w, "a.plan", "x/B.PLAN", ".zshrc", "docs/secret", "docs/secret/f")
    equal((w.there("ok.plan"), w.there(".bashrc"), w.there("docs/f"), w.there("a.plan")), (True, True, True, False), "workspace")


@test("hidden files are not replaced, nor deleted with their directory, until allowed")
def _(m):
    w = Ws(m, {".env": "SECRET", "d/.env": "S2", "d/f": "f", "e/id_rsa": "S3", "e/g": "g"})
    w.run(*sh("echo fake >.env 2>/dev/null; rm -rf d e 2>/dev/null; mkdir -p n; echo mine >n/.env; echo fine >fine; true"))
    w.commit(status=1) if held(w) else w.commit()
    equal((w.read(".env"), w.read("d/.env"), w.read("e/id_rsa")), ("SECRET", "S2", "S3"), "hidden files")
    equal((w.read("fine"), w.read("n/.env")), ("fine\n", "mine\n"), "its own")


# ---- conflicts ----


PERSON = {
    "edits": ("edit", lambda p: open(p, "a").write("mine\n")),
    "deletes": ("edit", os.unlink),
    "chmods": ("edit", lambda p: os.chmod(p, 0o600)),
    "saves with an editor": ("edit", lambda p: (open(p + "~", "w").write("mine\n"), os.rename(p + "~", p))),
    "edits what was deleted:": ("gone", lambda p: open(p, "a").write("mine\n")),
    "creates the same:": ("n", lambda p: open(p, "w").write("mine\n")),
    "edits in a deleted directory:": ("d/e/deep", lambda p: open(p, "a").write("mine\n")),
    "adds to a deleted directory:": ("d/e/mine", lambda p: open(p, "w").write("mine\n")),
    "edits in a directory that became a file:": ("t/in", lambda p: open(p, "a").write("mine\n")),
    "touches": ("edit", lambda p: os.utime(p)),
    "sets an attribute of": ("edit", lambda p: os.setxattr(p, "user.mine", b"1")),
    "replaces by a directory:": ("edit", lambda p: (os.unlink(p), os.mkdir(p))),
}


@test("what a person changed meanwhile is never overwritten: nothing is committed and every path is named")
def _(m):
    for what, (path, act) in PERSON.items():
        w = Ws(m, {**BASE, "t/in": "in"})
        t = w.run(*sh("echo new >edit; rm gone; echo theirs >n; rm -r d/e; rm -r t; echo t >t; echo fine >fine"))
        act(w.path(path))
        if w.there(path):
            m.own(w.path(path))
        before = tree(w.dir)
        r = w.commit(t, status=1)
        unchanged(w.dir, before, f"a person {what} {path}")
        holds(r.err, path if what != "adds to a deleted directory:" else "d/e", f"a person {what} {path}")
        check(not w.there("fine"), f"{what}: something was committed")
        holds(r.err, "nothing was committed", "what is said")
        w.commit(t, "--ours")
        equal(w.read("fine"), "fine\n", "--ours: the others")
        if what == "edits":
            equal(w.read(path), "old\nmine\n", "--ours")
        w.undo(t)
        unchanged(w.dir, before, f"{what}: undo after --ours")
        w.commit(t, "--theirs")
        equal((w.read("edit"), w.there("gone"), w.read("n"), w.there("d/e"), w.read("t")), ("new\n", False, "theirs\n", False, "t\n"), f"{what}: --theirs")
        w.undo(t)
        unchanged(w.dir, before, f"{what}: undo after --theirs")


@test("--ours-for and --theirs-for decide one by one; other paths can still be committed")
def _(m):
    w = Ws(m, {"a": "a", "b": "b", "c": "c", "d/x": "x"})
    t = w.run(*sh("for f in a b c d/x; do echo theirs >$f; done"))
    for p in ("a", "b", "d/x"):
        w.put(p, "mine")
    before = tree(w.dir)
    w.commit(t, "--ours-for", "a", status=1)
    unchanged(w.dir, before, "one of three decided")
    w.commit(t, "c")
    equal(w.read("c"), "theirs\n", "a path without a conflict")
    w.commit(t, "--ours-for", "a", "--theirs-for", "b", "--theirs-for", "d")
    equal([w.read(p) for p in ("a", "b", "c", "d/x")], ["mine", "theirs\n", "theirs\n", "theirs\n"], "decided")
    w.undo(t)
    equal([w.read(p) for p in ("a", "b", "c", "d/x")], ["mine", "mine", "c", "mine"], "undone")


@test("what a person changed elsewhere is no conflict, nor what was changed just before the start")
def _(m):
    w = Ws(m, BASE)
    for i in range(12):
        for p in ("edit", "d/in"):
            w.put(p, f"before {i}\n")
        os.chmod(w.path("d"), 0o700 + i % 8)
        t = w.run(*sh(f"echo run {i} >edit; rm -f d/in; chmod 755 d; mv keep kept; mv kept keep"))
        w.put("other", str(i))
        w.put("d/e/new", str(i))
        w.commit(t)
        equal(w.read("edit"), f"run {i}\n", "committed")


@test("an edit at the very moment of the start is never lost")
def _(m):
    w = Ws(m, {"f": "0"})
    n = 0

    def writer():
        pid = os.fork()
        if pid:
            return pid
        i = 0
        while True:
            i += 1
            with open(w.path("f"), "w") as f:
                f.write(f"mine {i}")
            time.sleep(0.0005)
    for i in range(25):
        w.put("f", "start")
        pid = writer()
        try:
            t = w.run(*sh("cat f >seen; echo theirs >f"))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        last = w.read("f")
        r = w.cmd("commit", t)
        if r.status == 0:  # it had stopped before the start: the program saw the last one
            equal(w.read("seen"), last, "an edit that the program did not see was overwritten")
        else:
            equal((r.status, w.read("f")), (1, last), "conflict")
            n += 1
        if r.status == 0:
            w.undo(t)
        worked(w.cmd("rollback", t))
    check(n > 0, "no conflict was ever seen: the test tests nothing")


@test("a single edit right after the start is seen, 100 times", modes=("user",))
def _(m):
    # The program itself tells when it runs: the edit comes within the same clock tick.
    w = Ws(m, {"f": "0"})
    for i in range(100):
        w.put("f", "old")
        p = m.start("-w", w.dir, "--commit", "keep", "-q", *sh("echo; read x; echo theirs >f"), stdin=subprocess.PIPE, env={"CAISSON_STATE": w.state}, cwd=w.dir)
        p.stdout.readline()
        with open(w.path("f"), "w") as f:
            f.write("mine")
        p.communicate(b"go\n", 30)
        r = w.cmd("commit")
        equal((r.status, w.read("f")), (1, "mine"), f"try {i}: an edit was lost ({r})")
        worked(w.cmd("rollback"))


@test("two transactions of one workspace do not see one another, and the first to commit wins")
def _(m):
    w = Ws(m, BASE)
    a = w.run(*sh("echo A >edit; echo A >only-a; ls only-b 2>/dev/null; true"))
    b = w.run(*sh("cat edit; echo B >edit; echo B >only-b; test ! -e only-a"))
    w.commit(b)
    before = tree(w.dir)
    r = w.commit(a, status=1)
    holds(r.err, "edit", "the path")
    unchanged(w.dir, before, "the second one")
    w.commit(a, "--ours")
    equal((w.read("edit"), w.read("only-a"), w.read("only-b")), ("B\n", "A\n", "B\n"), "both")


@test("an undo after an edit refuses, names the path and changes nothing")
def _(m):
    for path, act in (("edit", lambda p: open(p, "a").write("mine")), ("n/x", lambda p: open(p, "a").write("mine")), ("n/mine", lambda p: open(p, "w")),
                      ("gone", lambda p: open(p, "w").write("mine")), ("n/x", os.unlink), ("edit", lambda p: os.chmod(p, 0o640))):
        w = Ws(m, BASE)
        t = w.run(*sh(CHANGE))
        w.commit(t, "d")
        w.commit(t)
        act(w.path(path))
        before = tree(w.dir)
        r = w.undo(t, status=1)
        holds(r.err, path.split("/", maxsplit=1)[0], "the path")
        holds(r.err, "nothing was undone", "what is said")
        unchanged(w.dir, before, f"after a refused undo ({path})")


# ---- trees of every kind ----


@test("files become directories and links, directories become files, and back")
def _(m):
    w = Ws(m, {"f1": "1", "f2": "2", "d1/x": "x", "d2/y/z": "z", "d3/k": "k"})
    os.symlink("f1", w.path("l1"))
    os.symlink("d3", w.path("l2"))
    m.own(w.path("l1")), m.own(w.path("l2"))
    w.run(*sh("rm f1; mkdir f1; echo i >f1/i; rm f2; ln -s d3 f2; rm -r d1; echo file >d1; rm -r d2; ln -s f1 d2; rm l1; echo L >l1; rm l2; mkdir l2"))
    w.round({"f1/i": "i\n", "d1": "file\n", "l1": "L\n"})
    equal((os.readlink(w.path("f2")), os.readlink(w.path("d2")), os.path.isdir(w.path("l2"))), ("d3", "f1", True), "links")


@test("a directory that was deleted and made anew keeps nothing of the old one, at any depth")
def _(m):
    w = Ws(m, {"d/a": "a", "d/sub/old": "o", "d/sub/deep/er": "e", "d/gone/x": "x"})
    w.run(*sh("rm -r d; mkdir -p d/sub/deep; echo A >d/a; echo n >d/sub/new; echo n >d/sub/deep/n"))
    w.round({"d/a": "A\n", "d/sub/new": "n\n"})
    equal((sorted(os.listdir(w.path("d"))), os.listdir(w.path("d/sub/deep")), w.there("d/sub/old")), (["a", "sub"], ["n"], False), "content")
    equal(w.show()["deleted"], 0, "nothing is pending")
    holds(w.commit("--theirs").err, "nothing", "a second commit")
    equal(w.read("d/a"), "A\n", "and it deletes nothing")


@test("hard links that the program makes stay links, across directories, and to files of the base")
def _(m):
    w = Ws(m, {"base": "b", "d/other": "o"})
    os.link(w.path("base"), w.path("twin"))
    w.run(*sh("echo n >new; mkdir e; ln new e/n2; ln new d/n3; ln d/other o2; rm d/other; ln -s x s; ln d/n3 e/n4; chmod 600 twin"))
    w.round()
    equal(len({os.stat(w.path(p)).st_ino for p in ("new", "e/n2", "d/n3", "e/n4")}), 1, "inodes of the new one")
    equal((w.read("o2"), os.stat(w.path("o2")).st_nlink), ("o", 1), "the moved one")
    equal(stat.S_IMODE(os.stat(w.path("base")).st_mode), 0o644, "the twin is its own")
    w = Ws(m, {"base": "b"})
    w.run(*sh("ln base second"))
    w.round()
    equal(os.stat(w.path("base")).st_ino, os.stat(w.path("second")).st_ino, "a link to a file of the base")


def acl_for(uid):
    """rwx for the owner, r-x for one more user, who must be known inside, and for the group."""
    none = 0xffffffff
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in ((1, 7, none), (2, 5, uid), (4, 5, none), (0x10, 7, none), (0x20, 0, none)))


@test("attributes and ACLs of files and directories are kept, changed, taken away and restored")
def _(m):
    w = Ws(m, {"f": "f", "d/x": "x", "g": "g", "e/y": "y"})
    for p in ("f", "d", "g", "e"):
        os.setxattr(w.path(p), "user.base", b"1")
    acl, ACL = True, acl_for(m.uid)
    try:
        os.setxattr(w.path("d"), "system.posix_acl_access", ACL)
        os.setxattr(w.path("d"), "system.posix_acl_default", ACL)
        os.setxattr(w.path("g"), "system.posix_acl_access", ACL)
    except OSError:
        acl = False
    w.run(*py("import os\nos.setxattr('f','user.new',b'v'*200); os.removexattr('f','user.base'); os.setxattr('d','user.new',b''); os.setxattr('e','user.base',b'2')\n"
              "open('d/x','a').write('y'); open('g','a').write('h'); os.mkdir('d/sub'); open('d/made','w'); os.setxattr('.','user.top',b'1')"))
    w.round()
    equal((sorted(n for n in os.listxattr(w.path("f"))), os.getxattr(w.path("d"), "user.new"), os.getxattr(w.path("e"), "user.base")), (["user.new"], b"", b"2"), "attributes")
    equal(os.getxattr(w.path("."), "user.top"), b"1", "of the workspace itself")
    if acl:
        equal(os.getxattr(w.path("g"), "system.posix_acl_access"), ACL, "ACL of a changed file")
        equal(os.getxattr(w.path("d"), "system.posix_acl_default"), ACL, "default ACL")
        check("system.posix_acl_default" in os.listxattr(w.path("d/sub")), "a directory made beneath it has it")


@test("empty directories, renames of case only, read-only files and directories")
def _(m):
    w = Ws(m, {"File": "f", "ro/x": "x", "r": "r"})
    os.chmod(w.path("r"), 0o444)
    os.chmod(w.path("ro"), 0o555)
    w.run(*sh("mkdir -p e1/e2; mv File file; mv r r2; chmod 755 ro; echo y >ro/x; echo z >ro/z; chmod 555 ro; mkdir n; echo k >n/k; chmod 400 n/k; chmod 555 n; mkdir c; chmod 700 c"))
    w.round({"file": "f", "r2": "r", "ro/x": "y\n", "n/k": "k\n"})
    equal((w.there("File"), os.listdir(w.path("e1/e2")), stat.S_IMODE(os.stat(w.path("ro")).st_mode)), (False, [], 0o555), "state")


@test("directories are renamed in chains, swaps and into one another", modes=("root",))
def _(m):
    for script in ("mv a t; mv b a; mv t b", "mv a b/c", "mv a x; mv x b/y; mv b z", "mv b/s a/s2; mv a n; rm -r b", "mv a a2; mkdir a; mv a2 a/in; echo n >a/in/n",
                   "mv a/k q; mv a q/a; mv q b/q", "mv a x; mv b a; mv x b; echo z >b/f; rm a/f; chmod 700 a; touch -d @5 b", "rm l; mv a l; mkdir a; mv b a/b", "rm -r b; mv a b; mv b/k a"):
        w = Ws(m, {"a/f": "af", "a/k/g": "ag", "b/f": "bf", "b/s/h": "bh", "l": "l"})
        model = f"{w.top}/model"
        subprocess.run(["cp", "-a", w.dir, model], check=True)
        subprocess.run(["sh", "-c", script], cwd=model, check=True)
        w.run(*sh(script))
        w.round()
        files = lambda t: {p: (e[0], e[1], e[5:7]) for p, e in tree(t, times=False).items()}  # noqa: E731
        equal(files(w.dir), files(model), script)


@test("hostile names are committed as they are and shown escaped")
def _(m):
    names = [b"new\nline", b"esc\x1b[31m", b"x" * 255, b"bad\xff\xfe", b"-rf", b"--theirs", b"t-abcd", b" ", b"a'\"$(x)`", b"\xe2\x80\xae"]
    w = Ws(m)
    w.run(*py(f"import os\nfor n in {names!r}:\n  open(n,'wb').write(b'x'); os.mkdir(b'd'+n[:200]); os.symlink('/etc', b'l'+n[:200])"))
    for args in (("txn", "show"), ("txn", "show", "--json"), ("diff",), ("commit",), ("txn", "list"), ("log",), ("commit", "--", "./t-abcd", "./-rf")):
        r = w.cmd(*args)
        bad = [c for c in r.out + r.err if (ord(c) < 32 and c not in "\n\t") or ord(c) == 127 or 0xdc80 <= ord(c) <= 0xdcff]
        check(not bad, f"{args}: raw bytes {bad!r}")
    for n in names:
        check(os.path.lexists(os.path.join(os.fsencode(w.dir), n)), f"{n!r} is not there")
    w.undo()
    equal(os.listdir(w.dir), [], "undone")
    equal(w.cmd("commit", "t-abcd").status, 125, "t-abcd alone is an ID")
    w.commit("./t-abcd")
    equal(os.listdir(w.dir), ["t-abcd"], "./t-abcd is a path")


@test("trees of 1,500 directories and paths longer than PATH_MAX are committed and undone")
def _(m):
    w = Ws(m)
    mk = "import os\nfor i in range(%d): os.mkdir('%s'); os.chdir('%s')\nopen('leaf','w').write('x')"
    w.run(*py(mk % (1500, "d", "d")))
    w.commit()
    w.undo()
    equal(os.listdir(w.dir), [], "undone")
    w.commit()
    worked(m.call(["python3", "-c", "import os\nfor i in range(1500): os.chdir('d')\nprint(os.listdir('.'))"], cwd=w.dir), "['leaf']\n")
    w.run(*sh("rm -r d"))
    w.commit()
    equal(os.listdir(w.dir), [], "deleted")
    w.remove()
    w = Ws(m)
    n = "n" * 40
    look = f"import os\nfor i in range(120): os.chdir('{n}')\nprint(sorted(os.listdir('.')), open('leaf').read(), int(os.stat('.').st_mtime))"
    m.call(["python3", "-c", mk % (120, n, n) + "\nos.utime('.', (1000, 1000))"], cwd=w.dir)
    worked(m.call(["python3", "-c", look], cwd=w.dir), "['leaf'] x 1000\n")
    w.run(*py(f"import os\nfor i in range(120): os.chdir('{n}')\nopen('leaf','w').write('y'); open('two','w'); os.utime('.', (2000, 2000))"))
    w.commit()
    worked(m.call(["python3", "-c", look], cwd=w.dir), "['leaf', 'two'] y 2000\n")
    w.undo()
    worked(m.call(["python3", "-c", look], cwd=w.dir), "['leaf'] x 1000\n")
    w.remove()


@test("100,000 files are added, and as many deleted one by one; a sparse file stays sparse")
def _(m):
    w = Ws(m)
    n = 100000 if m.is_root else 20000
    t0 = time.monotonic()
    w.run("--disk", "20G", *py(f"import os\nos.mkdir('d')\nfor i in range({n}): os.close(os.open('d/%d' % i, os.O_CREAT|os.O_WRONLY))\n"
              "fd = os.open('sparse', os.O_CREAT|os.O_WRONLY); os.ftruncate(fd, 5 << 30); os.pwrite(fd, b'x', 4 << 30)"), timeout=300)
    t1 = time.monotonic()
    w.commit(timeout=300)
    t2 = time.monotonic()
    equal((len(os.listdir(w.path("d"))), os.stat(w.path("sparse")).st_size), (n, 5 << 30), "committed")
    check(os.stat(w.path("sparse")).st_blocks * 512 < 64 << 20, "it is not sparse any more")
    w.run(*py("import os\nfor f in os.listdir('d'):\n  if f != '7': os.unlink('d/' + f)"), timeout=300)
    t3 = time.monotonic()
    w.commit(timeout=300)
    t4 = time.monotonic()
    equal(os.listdir(w.path("d")), ["7"], "deleted")
    w.undo(timeout=300)
    note(f"{n} files: run {t1 - t0:.1f} s, commit {t2 - t1:.1f} s, deleting {t3 - t2:.1f} s, commit {t4 - t3:.1f} s, undo {time.monotonic() - t4:.1f} s")
    equal(len(os.listdir(w.path("d"))), n, "undone")


# ---- places ----


@test("a workspace that was moved or replaced is said to be so, and nothing is touched")
def _(m):
    w = Ws(m, BASE)
    t = w.run(*sh(CHANGE))
    moved = f"{w.top}/moved"
    os.rename(w.dir, moved)
    before = tree(moved)
    r = w.cmd("commit", t, cwd=w.top)
    equal(r.status, 1, f"gone ({r})")
    holds(r.err, "gone or was replaced", "what is said")
    m.mkdir(w.dir)
    r = w.cmd("commit", t, cwd=w.top)
    equal((r.status, os.listdir(w.dir)), (1, []), f"replaced ({r})")
    unchanged(moved, before, "the moved one")
    os.rmdir(w.dir)
    os.rename(moved, w.dir)
    w.commit(t)
    changed(w)


def on_tmpfs(w, at, script):
    """In a mount namespace of its own, with a tmpfs at `at`."""
    def prepare():
        if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x4000 | 0x40000, None):
            os._exit(99)
        if libc.mount(b"none", at.encode(), b"tmpfs", 0, b"size=64m,mode=0755"):
            os._exit(99)
        os.chown(at, w.m.uid, w.m.uid)
    r = w.m.call(["bash", "-euc", script], prepare=prepare, cwd=w.top, timeout=60, env={"CAISSON_STATE": w.state, "C": w.m.caisson})
    equal(r.status, 0, f"on a tmpfs ({r})")
    return r


PLACES = """
cd "$WS"; $C run --commit keep -w . -- touch made; $C rollback; mkdir -p d; echo old >f; echo x >d/x; ln -s f l
before=$(find . -path ./.caisson -prune -o -printf '%p %y %m %s %T@ %l\\n' | sort)
look() { find . -path ./.caisson -prune -o -printf '%p %y %m %s %T@ %l\\n' | sort; }
$C run --commit keep -w . -- sh -c 'echo new >f; rm -r d; mkdir -p n/m; echo k >n/m/k; ln f f2; chmod 600 f; test ! -e .caisson'
[ "$(look)" = "$before" ] || { echo changed too early; exit 1; }
$C commit
[ "$(cat f f2 n/m/k)" = "new
new
k" ] && [ ! -e d ] && [ f -ef f2 ]
$C undo
[ "$(look)" = "$before" ] || { echo "undo: $(look) instead of $before"; exit 1; }
$C commit
$C txn list --all | grep -q committed
"""


@test("a workspace on a mount of its own keeps its store beside it, or in it when it is the mount's root")
def _(m):
    if os.geteuid() != 0:
        return
    w = Ws(m)
    mnt = m.mkdir(f"{w.top}/mnt")
    r = on_tmpfs(w, mnt, f"mkdir {mnt}/ws; WS={mnt}/ws\n{PLACES}\ntest -d {mnt}/.caisson-{m.uid}; ls -A {mnt}/ws")
    lacks(r.out, ".caisson", "the workspace")
    on_tmpfs(w, mnt, f"WS={mnt}\n{PLACES}\ntest -d {mnt}/.caisson")


# ---- crashes and crowds ----


@test("a killed run: what it wrote is pending, told once; one that wrote nothing leaves nothing")
def _(m):
    w = Ws(m, BASE)
    before = tree(w.dir)
    for script, left in ((CHANGE, 1), ("true", 0)):
        p = m.start("-w", w.dir, "--commit", "always", *sh(f"{script}; echo done; sleep 60"), env={"CAISSON_STATE": w.state}, cwd=w.dir)
        equal(p.stdout.readline(), b"done\n", "the program")
        os.kill(p.pid, signal.SIGKILL)
        p.wait()
        p.stdout.close(), p.stderr.close()
        check(until(lambda: not processes(m.caisson), 10), "something still runs")
        unchanged(w.dir, before, "after the kill")
        r = w.cmd("txn", "list", "--json")
        equal(len(json.loads(r.out)), left, f"transactions ({r})")
        equal(r.err.count("cut short"), left, f"lines ({r.err})")
        lacks(w.cmd("txn", "list").err, "cut short", "told once")
        if left:
            w.commit()
            changed(w)
            w.undo()
            worked(w.cmd("rollback"))
            unchanged(w.dir, before, "after the rollback")
    m.clear()  # the killed ones' records are the next run's to remove


@test("a killed run whose head cannot be read at the moment is left alone, and kept when it can", modes=("user",))
def _(m):
    w = Ws(m, BASE)
    p = m.start("-w", w.dir, "--commit", "always", *sh(f"{CHANGE}; echo done; sleep 60"), env={"CAISSON_STATE": w.state}, cwd=w.dir)
    equal(p.stdout.readline(), b"done\n", "the program")
    os.kill(p.pid, signal.SIGKILL)
    p.wait()
    p.stdout.close(), p.stderr.close()
    check(until(lambda: not processes(m.caisson), 10), "something still runs")
    heads = subprocess.run(["find", w.top, "-path", "*/live/*/head"], capture_output=True, text=True).stdout.split()
    equal(len(heads), 1, "transactions that were cut off")
    os.chmod(heads[0], 0)
    for _ in range(2):
        holds(w.cmd("txn", "list").err, "left as it is", "what is told")
        check(os.path.exists(heads[0]), "it was set aside, or thrown away")
    os.chmod(heads[0], 0o600)
    holds(w.cmd("txn", "list").err, "what it had written is kept", "once it can be read")
    w.commit()
    changed(w)
    m.clear()


@test("many commits of one transaction at once: it is committed once and whole")
def _(m):
    w = Ws(m, BASE)
    t = w.run(*sh(CHANGE + "; for i in $(seq 300); do echo $i >n/$i; done"))
    ps = [m.popen([m.caisson, "commit", t], env={"CAISSON_STATE": w.state}, cwd=w.dir) for _ in range(6)]
    got = [(p.communicate(timeout=60)[1], p.returncode)[1] for p in ps]
    check(0 in got and set(got) <= {0, 1, 125}, f"statuses {got}")
    changed(w)
    equal(len(os.listdir(w.path("n"))), 301, "files")
    equal([x["state"] for x in w.list()], ["committed"], "state")
    w.undo()
    equal(w.read("edit"), "old\n", "undone")


@test("commits of many transactions of one workspace at once: each is whole or not at all")
def _(m):
    w = Ws(m, {f"f{i}": "base" for i in range(40)})
    ids = [w.run(*sh(f"for i in $(seq 0 39); do echo {k} >f$i; done; mkdir d{k}; echo {k} >d{k}/x")) for k in range(5)]
    ps = [m.popen([m.caisson, "commit", t], env={"CAISSON_STATE": w.state}, cwd=w.dir) for t in ids]
    got = [(p.communicate(timeout=60), p.returncode)[1] for p in ps]
    equal(sorted(got), [0, 1, 1, 1, 1], "statuses")
    winner = got.index(0)
    equal({w.read(f"f{i}") for i in range(40)}, {f"{winner}\n"}, "files")
    equal([d for d in os.listdir(w.dir) if d.startswith("d")], [f"d{winner}"], "directories")

@test("of a base file with two names the program sees, and the commit brings, the same: what was changed through one is that one's")
def _(m):
    w = Ws(m, {"a": "old\n"})
    os.link(w.path("a"), w.path("b"))
    r = m.run("-w", w.dir, "--commit", "always", *sh("echo new >a && cat a b"), **w.env({}))
    worked(r)
    seen = r.out.split()
    equal([w.read("a").strip(), w.read("b").strip()], seen, "in the workspace")
    # And it does not become another in the middle: not by a step, not in a fork.
    w = Ws(m, {"a": "old\n"}, name="steps")
    os.link(w.path("a"), w.path("b"))
    s = w.cmd("begin", "-w", w.dir).out.strip()
    try:
        first = w.cmd("exec", s, "--", "sh", "-c", "echo new >a; cat a b").out
        equal(w.cmd("exec", s, "--", "cat", "a", "b").out, first, "the next step")
        f = w.cmd("fork", s).out.strip()
        equal(w.cmd("exec", f, "--", "cat", "a", "b").out, first, "the fork")
        w.cmd("end", "--commit", "never", f)
        worked(w.cmd("end", "--commit", "always", s))
        equal(w.read("a") + w.read("b"), first, "in the workspace")
    finally:
        w.cmd("end", "--commit", "never", s)


if __name__ == "__main__":
    test.main()
