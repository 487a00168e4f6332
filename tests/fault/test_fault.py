#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A transaction cut off, or refused by the disk, at every call that changes something: the workspace is
wholly before or wholly after, the list says which, nothing is lost and everything can go on.

    test_fault.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path             the program to test (default: build/test/caisson; it needs fault points)
    CS_FAULTS=all            every fault at every point, not a sample (minutes)
    CS_SEED=n                another sample
    CS_FAULT_DIR=path        work there, not on a tmpfs

Every fault meets a scene made from nothing (scene.py).  Prints TAP lines and ends with `N passed, M failed`.
"""
import concurrent.futures
import errno
import os
import queue
import random
import time

import place
import scene
from place import Place
from test_run import Suite, check, equal, note

test = Suite()
SEED = int(os.environ.get("CS_SEED", "1"))
ALL_FAULTS = os.environ.get("CS_FAULTS") == "all"
WORKERS = max(2, min(8, (os.cpu_count() or 2)))


def sweep(m, plan, one, seconds):
    """one(place, *step) for every step of the plan, or for as many as the time allows; all failures are told."""
    todo = list(plan)
    if not ALL_FAULTS:
        random.Random(SEED).shuffle(todo)
    end = time.monotonic() + seconds
    free = queue.SimpleQueue()
    for _ in range(WORKERS):
        free.put(Place(m))
    wrong, done = [], 0

    def go(step):
        if not ALL_FAULTS and time.monotonic() > end:
            return None
        p = free.get()
        try:
            one(p, *step)
            return ""
        except AssertionError as e:
            return f"{step}: {e}"
        except Exception as e:  # noqa: BLE001
            return f"{step}: {type(e).__name__}: {e}"
        finally:
            free.put(p)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for answer in pool.map(go, todo):
            if answer is not None:
                done += 1
                wrong += [answer] if answer else []
    for w in wrong[:8]:
        note(w)
    return done, wrong


def finish(m, what, points, done, wrong, total):
    note(f"{m.name}: {what}: {points} points, {done} of {total} faults made")
    m.cmd("gc")
    check(not wrong, f"{len(wrong)} of {done} went wrong")


# ---- what is cut off ----


class Commit:
    word = "commit"
    start = staticmethod(Place.pending)

    def act(self, p, **kw):
        return p.cmd("commit", **kw)

    def looks(self, p):
        return ("before", p.before), ("after", p.after)

    def fits(self, p, state, listed):
        equal([t["state"] for t in listed], ["committed" if state == "after" else "pending"], f"listed, with the workspace {state}")

    def go_on(self, p, state):
        """Commit and undo still work, and make of the workspace what they always did."""
        for word in ("commit", "undo", "commit") if state == "before" else ("undo", "commit"):
            p.good(word)
            p.is_now(*(("before", p.before) if word == "undo" else ("after", p.after)), f"a later {word}")
        check(b"nothing left" in p.good("commit").stderr, "there was something to commit again")


class Undo(Commit):
    word = "undo"
    start = staticmethod(Place.committed)

    def act(self, p, **kw):
        return p.cmd("undo", **kw)

    def looks(self, p):
        return ("after", p.after), ("before", p.before)


class Partial(Commit):
    word = "commit ID PATH..."

    def act(self, p, **kw):
        return p.cmd("commit", p.id, *scene.PARTS, **kw)

    def looks(self, p):
        return ("before", p.before), ("partly", scene.partial(p.before, p.after, scene.PARTS))

    def fits(self, p, state, listed):
        equal([t["state"] for t in listed], ["committed" if state == "partly" else "pending"], f"listed, with the workspace {state}")

    def go_on(self, p, state):
        # After a crash a directory's own attributes may count as edited: nobody can tell.
        p.good("commit", "--theirs")
        p.is_now("after", p.after, "commit of the rest")
        p.good("undo")
        p.is_now("before", p.before, "undo of all")


class Rollback(Commit):
    word = "rollback"

    def act(self, p, **kw):
        r = p.cmd("rollback", **kw)
        time.sleep(0.002)  # the trash is emptied by a process of its own
        return r

    def looks(self, p):
        return (("before", p.before),)

    def fits(self, p, state, listed):
        check([t["state"] for t in listed] in (["pending"], []), f"listed: {listed}")

    def go_on(self, p, state):
        if not p.listed():
            return
        p.good("commit")
        p.is_now("after", p.after, "a commit instead")


class Rest(Commit):
    word = "rollback of what a commit left"

    def start(self, p):
        Place.pending(p)
        p.good("commit", p.id, *scene.PARTS)

    def act(self, p, **kw):
        return p.cmd("rollback", p.id, **kw)

    def looks(self, p):
        return (("partly", scene.partial(p.before, p.after, scene.PARTS)),)

    def fits(self, p, state, listed):
        equal([t["state"] for t in listed], ["committed"], "listed")

    def go_on(self, p, state):
        if p.cmd("diff", "--name-status").stdout:  # cut off before it counted
            p.good("rollback", p.id)
        equal(p.cmd("diff", "--name-status").stdout, b"", "the rest")
        p.good("undo")
        p.is_now("before", p.before, "undo of all")
        p.good("commit", "--theirs")
        p.is_now("after", p.after, "commit of all")


class Run(Commit):
    word = "run --commit always"
    start = staticmethod(Place.build)

    def act(self, p, **kw):
        p.after = None
        return p.run("always", **kw)

    def fits(self, p, state, listed):
        want = (["committed"],) if state == "after" else (["pending"],) if p.after else (["pending"], [])
        check([t["state"] for t in listed] in want, f"listed, with the workspace {state}: {listed}")

    def go_on(self, p, state):
        if p.listed() and p.after:
            Commit.go_on(self, p, state)


ACTS = (Commit(), Undo(), Partial(), Rollback(), Rest(), Run())


def points_of(m, act, recover_from=None):
    """The names of the points that it passes; or that recovery passes after a kill at one."""
    p = Place(m)
    act.start(p)
    if recover_from:
        act.act(p, fault=recover_from)
        p.cmd("txn", "list", listed=True)
    else:
        r = act.act(p, listed=True)
        equal(r.returncode, 0, f"without a fault: {r.stderr!r}")
        p.state(*act.looks(p)[-1:])
        time.sleep(0.3 if act.word == "rollback" else 0)
    return p.points()


def settled(p, act, said):
    """After whatever happened and the next command: one of the two states, told truly, nothing in between, all of it usable."""
    r = p.cmd("txn", "list")
    equal(r.returncode, 0, f"the next command ({r.stderr!r})")
    state = p.state(*act.looks(p))
    act.fits(p, state, p.listed())
    equal(p.leftovers(), [], f"left in the store ({said})")
    act.go_on(p, state)
    equal(p.leftovers(), [], "left in the store at the end")
    return state


def kills(act):
    def one(p, n):
        act.start(p)
        r = act.act(p, fault=n)
        # The trash is emptied in the background: there the fault meets another process.
        check(r.returncode in (-9, 137) or act.word == "rollback", f"not killed: {r.returncode} {r.stderr!r}")
        settled(p, act, r.stderr.decode(errors="replace"))
    return one


def refusals(act):
    def one(p, n, number):
        act.start(p)
        r = act.act(p, fault=f"{n}:{number}")
        said = r.stderr.decode(errors="replace")
        check(r.returncode >= 0, f"crashed: {r.returncode} {said!r}")
        if r.returncode:
            check("caisson: " in said, f"status {r.returncode} and no message: {said!r}")
        settled(p, act, said)
    return one


for _act in ACTS:
    @test(f"`{_act.word}` killed at every point: before or after, listed as such, and commit and undo go on from there")
    def _(m, act=_act):
        points = points_of(m, act)
        done, wrong = sweep(m, [(n,) for n in range(1, len(points) + 1)], kills(act), 3.5)
        finish(m, act.word, len(points), done, wrong, len(points))

    @test(f"`{_act.word}` with ENOSPC and EIO at every point: an error or a success, before or after, nothing lost")
    def _(m, act=_act):
        points = points_of(m, act)
        plan = [(n, e) for n in range(1, len(points) + 1) for e in (errno.ENOSPC, errno.EIO)]
        done, wrong = sweep(m, plan, refusals(act), 2.5)
        finish(m, act.word, len(points), done, wrong, len(plan))


for _act in (Commit(), Undo()):
    @test(f"the recovery of a cut-off `{_act.word}`, itself killed or refused at every point, is taken up again")
    def _(m, act=_act):
        total = len(points_of(m, act))
        rnd = random.Random(SEED)
        firsts = range(1, total + 1) if ALL_FAULTS else sorted(rnd.sample(range(1, total + 1), 6))
        plan, most = [], 0
        for n in firsts:
            again = len(points_of(m, act, n))
            most = max(most, again)
            plan += [(n, k, e) for k in range(1, again + 1) for e in ("", f":{errno.ENOSPC}")]

        def one(p, n, k, e):
            act.start(p)
            act.act(p, fault=n)
            r = p.cmd("txn", "list", fault=f"{k}{e}")
            check(r.returncode in ((0,) if e else (-9,)), f"the recovery: {r.returncode} {r.stderr!r}")
            settled(p, act, r.stderr.decode(errors="replace"))
        done, wrong = sweep(m, plan, one, 3)
        finish(m, f"recovery of {act.word} from {len(firsts)} points", most, done, wrong, len(plan))


if __name__ == "__main__":
    place.main(test)
