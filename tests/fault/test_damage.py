#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged journals and heads, with the commands that read them: the workspace stays exactly as it is, the
message is clear, nothing that may be the only copy of a file is thrown away, and once the bytes are right
again the work is finished.  Every bit and length is tested in unit/journal; here a sample.

    test_damage.py [WORD]     as test_fault.py
"""
import os
import random

import place
import scene
from place import Place
from test_fault import ALL_FAULTS, SEED
from test_run import Suite, check, equal, note

test = Suite()


def find(p, name):
    for path, _, files in os.walk(p.store):
        if name in files and "/up" not in path and "/undo" not in path:
            return os.path.join(path, name)
    return None


def spots(size, first):
    """Where to turn a bit, or to cut."""
    rnd = random.Random(SEED)
    some = list(range(size)) if ALL_FAULTS else sorted(set(list(range(0, first, 5)) + rnd.sample(range(size), 10)))
    return [("turn", i) for i in some] + [("cut", i) for i in some[::2]]


def damage(path, how, at):
    with open(path, "r+b") as f:
        if how == "cut":
            f.truncate(at)
            return
        f.seek(at)
        b = f.read(1)[0]
        f.seek(at)
        f.write(bytes([b ^ (1 << at % 8)]))


def untouched(p, look, commands, words):
    """Each of the commands refuses, and leaves the workspace alone."""
    said = ""
    for args in commands:
        r = p.cmd(*args)
        text = r.stderr.decode(errors="replace")
        said += text
        check(0 <= r.returncode <= 125, f"`caisson {' '.join(args)}`: {r.returncode} {text!r}")
        check("AddressSanitizer" not in text and "runtime error" not in text, text[:800])
        if args[0] != "txn":
            check(r.returncode != 0, f"`caisson {' '.join(args)}` did something: {text!r}")
        p.is_now("at the damage", look, f"`caisson {' '.join(args)}`")
    check(any(w in said for w in words), f"not clear: {said!r}")


def cut_off(p):
    p.pending()
    p.cmd("commit", fault=60)
    return scene.look(p.ws)


def journal_case(p, how, at):
    look = cut_off(p)
    path = find(p, "journal")
    with open(path, "rb") as f:
        whole = f.read()
    damage(path, how, at)
    untouched(p, look, (("txn", "list"), ("commit", p.id), ("rollback", p.id), ("undo", p.id)), ("damaged", "another version"))
    path = find(p, "journal")
    check(path and os.listdir(os.path.dirname(path) + "/undo"), "the undo set, or the journal, is gone")
    with open(path, "wb") as f:
        f.write(whole)
    p.cmd("commit", p.id)
    p.good("txn", "list")
    p.is_now("after", p.after, "with its journal repaired")
    p.good("undo")
    p.is_now("before", p.before, "undo after the repair")


@test("a damaged journal of a cut-off commit: refused by every command, nothing thrown away, finished once repaired")
def _(m):
    p = Place(m)
    cut_off(p)
    size = os.path.getsize(find(p, "journal"))
    plan = spots(size, 48)
    for how, at in plan:
        try:
            journal_case(p, how, at)
        except AssertionError as e:
            raise AssertionError(f"{how} at {at} of {size}: {e}") from None
    note(f"{m.name}: journal of {size} bytes, {len(plan)} damages")


@test("a journal and a head of another version are refused by name")
def _(m):
    p = Place(m)
    look = cut_off(p)
    path = find(p, "journal")
    damage_byte(path, 7, b"2")
    untouched(p, look, (("txn", "list"), ("commit", p.id)), ("another version",))
    p.pending()
    damage_byte(find(p, "head"), 7, b"2")
    untouched(p, p.before, (("txn", "list"), ("commit", p.id), ("rollback", p.id), ("undo", p.id)), ("another version",))


def damage_byte(path, at, byte):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(byte)


@test("a damaged head: of a pending one, and of a cut-off commit, which is set aside whole")
def _(m):
    p = Place(m)
    p.pending()
    size = os.path.getsize(find(p, "head"))
    plan = [x for x in spots(size - 64, 16)][:16 if not ALL_FAULTS else None]
    for how, at in plan:
        try:
            p.pending()
            damage(find(p, "head"), how, at)
            untouched(p, p.before, (("txn", "list"), ("commit", p.id), ("rollback", p.id), ("undo", p.id)), ("damaged", "another version", "holds the head"))
            look = cut_off(p)
            damage(find(p, "head"), how, at)
            untouched(p, look, (("txn", "list"), ("commit", p.id), ("rollback", p.id)), ("damaged", "another version", "holds the head"))
            path = find(p, "journal")
            check(path and os.listdir(os.path.dirname(path) + "/undo"), "the undo set is gone")
        except AssertionError as e:
            raise AssertionError(f"{how} at {at} of {size}: {e}") from None
    note(f"{m.name}: head of {size} bytes, {len(plan)} damages")


@test("a damaged record of a finished commit: no undo, and the workspace stays")
def _(m):
    p = Place(m)
    p.committed()
    size = os.path.getsize(find(p, "done-0"))
    plan = spots(size, 48)
    path = find(p, "done-0")
    with open(path, "rb") as f:
        whole = f.read()
    for how, at in plan:
        damage(path, how, at)
        untouched(p, p.after, (("undo", p.id), ("txn", "list")), ("damaged", "another version"))
        path = find(p, "done-0")
        check(path, "it is gone")
        with open(path, "wb") as f:
            f.write(whole)
    p.good("undo")
    p.is_now("before", p.before, "undo after the repair")
    note(f"{m.name}: done-0 of {size} bytes, {len(plan)} damages")


if __name__ == "__main__":
    place.main(test)
