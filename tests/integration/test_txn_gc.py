#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""caisson gc: what is kept for undos has an age and a size; nothing pending goes without being named.

    test_txn_gc.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path              the program to test (default: build/caisson)
"""
import json
import os
import sys
import time

sys.dont_write_bytecode = True
from test_run import Suite, check, equal, holds, lacks, sh, until, worked  # noqa: E402
from test_txn import Ws  # noqa: E402

test = Suite()
YES, NO = "can no longer be undone", "pending"


class Place(Ws):
    def __init__(self, m, age="unlimited", size="unlimited"):
        super().__init__(m, {"f": "base"})
        self.m.put(f"{self.top}/limits.yaml", f"commit:\n  keep_age: {age}\n  keep_size: {size}\n")

    def gc(self, *args):
        r = self.cmd("gc", "--profile", f"{self.top}/limits.yaml", *args)
        worked(r)
        return r.out

    def change(self, n, kib=4, commit=True):
        """A transaction that replaces kib KiB by as much."""
        self.put(f"b{n}", os.urandom(kib << 10))
        t = self.run(*sh(f"head -c {kib << 10} /dev/urandom >b{n}"))
        if commit:
            self.commit(t)
        return t

    def ids(self):
        return sorted(x["id"] for x in self.list("--all"))

    def trash(self):
        d = f"{self.state}/trash"
        return os.listdir(d) if os.path.isdir(d) else []


def line_of(out, t):
    found = [x for x in out.splitlines() if x.startswith(f"{t}: ")]
    equal(len(found), 1, f"lines about {t} in {out!r}")
    return found[0]


@test("undo sets that are too old go, each is named, and the workspace and younger ones stay")
def _(m):
    w = Place(m, age="2s")
    old = w.change(1)
    content = w.read("b1")
    equal(w.gc().count(old), 0, "not yet")
    time.sleep(3.2)
    young = w.change(2)
    out = w.gc()
    holds(line_of(out, old), f"{YES} (too old, ", "the old one")
    lacks(out, young, "the young one is not named")
    equal(w.ids(), [young], "left")
    equal(w.read("b1"), content, "what was committed")
    holds(w.undo(old, status=125).err, old, "undo of what is gone")
    w.undo(young)
    holds(w.cmd("log").out, f"{old} expired", "the log")
    check(until(lambda: not w.trash(), 5), f"still in the trash: {w.trash()}")


@test("undo sets beyond the size go, the oldest first")
def _(m):
    w = Place(m, size="2500K")
    ids = [w.change(i, 1024) for i in range(4)]
    out = w.gc()
    for t in ids[:2]:
        holds(line_of(out, t), f"{YES} (too much is kept, 1.0MiB", "one of the older")
    equal(w.ids(), sorted(ids[2:]), "left")
    equal([x for x in w.gc().splitlines() if x.startswith("t-")], [], "a second time there is nothing to do")


@test("pending changes are named and stay, however old and large; --pending drops them and names them")
def _(m):
    w = Place(m, age="1s", size="100K")
    ids = [w.change(i, 256, commit=False) for i in range(2)]
    time.sleep(2.2)
    for _ in range(2):
        out = w.gc()
        for t in ids:
            holds(line_of(out, t), f"{NO} (too old, ", "a pending one")
            holds(line_of(out, t), "gc --pending", "what to do")
        equal(w.ids(), sorted(ids), "still there")
    said = json.loads(w.gc("--pending", "--json"))["transactions"]
    for t in ids:
        holds(line_of("\n".join(said), t), "dropped without having been committed", "a pending one")
    equal(w.ids(), [], "left")
    equal(w.read("f"), "base", "the workspace")


@test("a pending one does not use up the room of undo sets")
def _(m):
    w = Place(m, size="600K")
    done = w.change(1, 256)
    t = w.change(2, 1024, commit=False)
    out = w.gc()
    holds(line_of(out, t), NO, "the pending one")
    lacks(out, done, "the undo set is within the limit")
    w.undo(done)


@test("a commit of which something is still pending counts as pending")
def _(m):
    w = Place(m, age="1s")
    t = w.run(*sh("echo a >a; echo b >b"))
    w.commit(t, "a")
    time.sleep(2.2)
    out = w.gc()
    holds(line_of(out, t), "committed in part, the rest is pending", "named")
    equal(w.ids(), [t], "still there")
    w.commit(t)
    equal(w.read("b"), "b\n", "the rest")
    holds(line_of(w.gc(), t), YES, "whole, it is an undo set as any other")
    equal(w.ids(), [], "left")


@test("what was held back is pending: it is not dropped with the rest; --pending says what it drops")
def _(m):
    w = Place(m, age="1s")
    t = w.run(*sh("echo a >a; ln -s /etc/passwd out"))
    w.commit(t, status=1)
    time.sleep(2.2)
    holds(line_of(w.gc(), t), "committed in part", "named")
    equal(w.ids(), [t], "still there")
    holds(line_of(w.gc("--pending"), t), "what was left of it is dropped", "named again")
    equal(w.ids(), [], "left")


@test("a live session is left alone")
def _(m):
    w = Place(m, age="1s", size="4K")
    r = w.cmd("begin", "-w", w.dir)
    worked(r)
    s = r.out.strip()
    worked(w.cmd("exec", s, "--", "sh", "-c", "echo x >x"))
    time.sleep(2.2)
    lacks(w.gc("--pending"), s, "the session is not named")
    holds(w.cmd("exec", s, "--", "cat", "x").out, "x", "it goes on")
    worked(w.cmd("end", "--commit", "always", s))
    equal(w.read("x"), "x\n", "committed")


if __name__ == "__main__":
    test.main()
