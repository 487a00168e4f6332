#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody else changes the workspace in the very moment of a commit or an undo.

    test_txn_race.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path                the program to test (default: build/caisson)

Directories are swapped for symlinks that lead outside, in a tight loop: nothing
outside may ever change, while a committer that goes by paths is led out in no
time.  Files are edited in place: no edit may be lost.  Prints TAP lines and ends
with `N passed, M failed`.
"""
import ctypes
import mmap
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from test_run import Suite, check, note, sh, until, worked  # noqa: E402
from test_txn import Ws, tree, unchanged  # noqa: E402

test = Suite()
libc = ctypes.CDLL(None, use_errno=True)
RENAME_EXCHANGE, AT_FDCWD = 2, -100
DIRS = 4


class Writer:
    """A process that calls act(i) without end, and counts in shared memory."""

    def __init__(self, act, pause=0.0):
        self.count = mmap.mmap(-1, 4096)
        self.pid = os.fork()
        if self.pid == 0:
            i = 0
            while True:
                act(i)
                i += 1
                self.count[:8] = struct.pack("Q", i)
                if pause:
                    time.sleep(random.random() * pause)

    def n(self):
        return struct.unpack("Q", self.count[:8])[0]

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return self.n()


def exchange(a, b):
    return libc.renameat2(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE)


def arena(m):
    """A workspace whose directories have a double outside, of the same names."""
    w = Ws(m)
    out = m.mkdir(f"{w.top}/outside")
    for i in range(DIRS):
        for top, text in ((f"d{i}", "base"), (f"../outside/v{i}", "outside")):
            for p in ("f", "gone", "s/f", "s/gone", "del/x", "t"):
                w.put(f"{top}/{p}", f"{text} {i} {p}")
        os.symlink(f"{out}/v{i}", w.path(f"l{i}"))
        m.own(w.path(f"l{i}"))
    return w, out


CHANGES = "; ".join(f"for d in d{i} d{i}/s; do echo new >$d/f; rm $d/gone; echo n >$d/made; mkdir $d/dir; echo k >$d/dir/k; done; rm -r d{i}/del; rm d{i}/t; mkdir d{i}/t; "
                    f"chmod 700 d{i}/s" for i in range(DIRS))


def swapper(w):
    def act(i):
        k = (i * 7) % DIRS
        exchange(w.path(f"d{k}"), w.path(f"l{k}"))
    return act


def settle(w):
    """Every directory at its own name again."""
    for i in range(DIRS):
        if os.path.islink(w.path(f"d{i}")):
            exchange(w.path(f"d{i}"), w.path(f"l{i}"))


@test("a committer that goes by paths is led out of the workspace: the race is real")
def _(m):
    w, out = arena(m)
    before = tree(out)
    p = Writer(swapper(w))
    try:
        def naive():
            for i in range(DIRS):
                for name in ("f", "s/f", "made"):
                    try:
                        if not os.path.islink(w.path(f"d{i}")):  # checked, and used by its path
                            with open(w.path(f"d{i}/{name}"), "w") as f:
                                f.write("led out")
                    except OSError:
                        pass
            return tree(out) != before
        check(until(naive, 60, 0), "never led out: the test tests nothing")
    finally:
        note(f"{p.stop()} swaps")


@test("directories are swapped for links while commits and undos run: nothing outside ever changes")
def _(m):
    w, out = arena(m)
    t = w.run(*sh(CHANGES))
    before, first = tree(out), tree(w.dir)
    got, tries = {}, 0
    p = Writer(swapper(w))
    try:
        end = time.monotonic() + 12
        while (tries < 60 or p.n() < 10000) and (time.monotonic() < end or p.n() < 10000 or tries < 10):
            args = (("commit", t), ("undo", t), ("commit", t, "--theirs"), ("undo", t))[tries % 4]
            r = w.cmd(*args)
            got[args[0], r.status] = got.get((args[0], r.status), 0) + 1
            check(r.status in (0, 1, 125), f"{args}: {r}")
            tries += 1
            if tries % 7 == 0:
                unchanged(out, before, f"outside, after {tries} tries")
    finally:
        swaps = p.stop()
    note(f"{swaps} swaps, {tries} commands: {got}")
    unchanged(out, before, "outside")
    settle(w)
    worked(w.cmd("txn", "list"))
    unchanged(out, before, "outside, after a recovery")
    # Whatever --theirs took away is kept for an undo.
    kept = {e[6] for top in (w.dir, w.state) for e in tree(top).values() if stat.S_ISREG(e[0])}
    lost = [path for path, e in first.items() if stat.S_ISREG(e[0]) and e[6] not in kept]
    check(not lost, f"lost: {lost}")
    unchanged(out, before, "outside, at the end")


@test("the workspace itself is swapped for another directory: the other one is never written")
def _(m):
    w, _out = arena(m)
    t = w.run(*sh(CHANGES))
    other = f"{w.top}/other"
    subprocess.run(["cp", "-a", w.dir, other], check=True)
    before = tree(other)
    p = Writer(lambda i: exchange(w.dir, other))
    got = {}
    try:
        for k in range(20):
            r = w.cmd("commit" if k % 2 == 0 else "undo", t, cwd=w.top)
            got[r.status] = got.get(r.status, 0) + 1
            check(r.status in (0, 1, 125), f"{r}")
    finally:
        swaps = p.stop()
    note(f"{swaps} swaps: {got}")
    check(before in (tree(w.dir), tree(other)), "the other directory was written")


@test("files are edited in place while commits run: no edit is ever lost")
def _(m):
    w = Ws(m, {f"f{i}": "" for i in range(6)})
    files = [w.path(f"f{i}") for i in range(6)]

    def edit(i):
        with open(files[i % 6], "a") as f:
            f.write(f"<{i}>")
    got = {0: 0, 1: 0}
    p = Writer(edit, pause=0.1)
    try:
        for k in range(40):
            t = w.run(*sh(f"sleep 0.0{k % 3}; echo {k} >f{k % 6}; echo {k} >f{(k + 1) % 6}; rm -f f{(k + 3) % 6}"))
            r = w.cmd("commit", t)
            check(r.status in (0, 1), f"commit: {r}")
            got[r.status] += 1
            # One that met an edit stays pending: what was written into its file in the moment before it
            # went back is there.
            if r.status == 0 and k % 4 == 0:
                w.cmd("undo", t)
                w.cmd("commit", t)
    finally:
        n = p.stop()
    # In the workspace, kept for an undo, or in what is pending.
    text = ""
    for top in (w.dir, w.state):
        for path, _, names in os.walk(top):
            for name in names:
                if stat.S_ISREG(os.lstat(os.path.join(path, name)).st_mode):
                    with open(os.path.join(path, name), encoding="utf-8", errors="replace") as f:
                        text += f.read()
    lost = [i for i in range(n) if f"<{i}>" not in text]
    note(f"{n} edits, commits: {got}")
    check(not lost, f"lost edits: {lost[:20]}")
    check(got[0] and n > 20, "nothing was committed, or nothing edited: the test tests nothing")


if __name__ == "__main__":
    test.main()
