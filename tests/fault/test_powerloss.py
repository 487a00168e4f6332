#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The power goes: what the block layer had at that instant is mounted again, its journal replayed, the next
command run.  The workspace is wholly before or wholly after, and what was reported as done is done.
Then: a file system that is full.

    test_powerloss.py [WORD]     as test_fault.py; needs root, a loop device and mkfs.ext4
                                 (mkfs.xfs and mkfs.btrfs are used as well if they are there)

The file system lies in a file.  A copy of that file taken while it is mounted is what a disk would hold: the
page cache above the loop device is not in it.  Prints TAP lines and ends with `N passed, M failed`.
"""
import os
import random
import shutil
import subprocess
import sys
import time

import place
from place import Place
from test_fault import ALL_FAULTS, SEED, Commit, Run, Undo
from test_run import Suite, check, equal, note

test = Suite()
MiB = 1 << 20
KINDS = {"ext4": (64, ["mkfs.ext4", "-q", "-F"]), "xfs": (320, ["mkfs.xfs", "-q", "-f"]), "btrfs": (128, ["mkfs.btrfs", "-q", "-f"])}
SECONDS = 9  # per test, when sampling


def call(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Disk:
    """A file system in a file, and the copy of it that a power cut would leave."""

    def __init__(self, m, kind):
        self.dir, self.kind = m.fresh("disk"), kind
        self.blank, self.image, self.copy, self.at = (os.path.join(self.dir, n) for n in ("blank", "image", "copy", "mnt"))
        os.mkdir(self.at)
        size, mkfs = KINDS[kind]
        with open(self.blank, "wb") as f:
            f.truncate(size * MiB)
        call(*mkfs, self.blank)
        self.mounted = False

    def mount(self, image):
        call("mount", "-o", "loop", "-t", self.kind, image, self.at)  # the loop device goes with the mount
        self.mounted = True

    def fresh(self):
        self.off()
        call("cp", "--sparse=always", self.blank, self.image)
        self.mount(self.image)

    def cut(self):
        call("cp", "--sparse=always", self.image, self.copy)
        self.off()
        self.mount(self.copy)

    def off(self):
        if self.mounted:
            call("umount", self.at)
            self.mounted = False


def kinds():
    return [k for k, (_, mkfs) in KINDS.items() if shutil.which(mkfs[0])]


def on_disk(m, kind, act, small=False):
    d = Disk(m, kind)
    d.fresh()
    top = os.path.join(d.at, "top")
    os.mkdir(top)
    p = Place(m, top, small=small)
    return d, p


def again(d, p):
    d.fresh()
    os.mkdir(p.top)


def power(m, kind, act):
    """Kills at a sample of points; each with its power cut."""
    d, p = on_disk(m, kind, act)
    try:
        act.start(p)
        r = act.act(p, listed=True)
        equal(r.returncode, 0, f"without a fault: {r.stderr!r}")
        d.cut()  # success was reported: now it must be so
        equal(p.state(*act.looks(p)), act.looks(p)[-1][0], f"{kind}: after `{act.word}` reported success and the power went")
        again(d, p)
        act.start(p)
        act.act(p, listed=True)
        total = len(p.points())
        plan = list(range(1, total + 1))
        if not ALL_FAULTS:
            random.Random(SEED).shuffle(plan)
        end, done, seen = time.monotonic() + SECONDS, 0, {}
        for n in plan:
            if not ALL_FAULTS and time.monotonic() > end:
                break
            again(d, p)
            act.start(p)
            if act.word.startswith("run"):
                os.sync()  # the workspace itself is older than the run
            act.act(p, fault=n)
            d.cut()
            try:
                p.good("txn", "list")
                state = p.state(*act.looks(p))
                seen[state] = seen.get(state, 0) + 1
                listed = p.listed()
                if not act.word.startswith("run"):  # a run that was not reported may have left anything, or nothing
                    act.fits(p, state, listed)
                    act.go_on(p, state)
                equal(p.leftovers(), [], "left in the store")
            except AssertionError as e:
                raise AssertionError(f"{kind}, power cut at point {n} of `{act.word}`: {e}") from None
            done += 1
        note(f"{kind}: {act.word}: {total} points, {done} power cuts: {seen}")
    finally:
        d.off()
        m.cmd("gc")


for _kind in kinds():
    for _act in (Commit(), Undo(), Run()):
        @test(f"{_kind}: power lost at a point of `{_act.word}`: before or after; after a success: after", modes=("root",))
        def _(m, kind=_kind, act=_act):
            power(m, kind, act)

    @test(f"{_kind}: power lost once `run --commit keep` has named its transaction: all of it is there", modes=("root",))
    def _(m, kind=_kind):
        d, p = on_disk(m, kind, None)
        try:
            for _ in range(3):
                again(d, p)
                p.pending()
                d.cut()
                p.is_now("before", p.before, "the workspace")
                equal([t["state"] for t in p.listed()], ["pending"], "listed")
                p.good("commit")
                p.is_now("after", p.after, "committed after the power cut")
        finally:
            d.off()

    @test(f"{_kind}: positive control: without syncs the same power cut loses a commit that was reported", modes=("root",))
    def _(m, kind=_kind):
        d, p = on_disk(m, kind, None)
        try:
            p.pending()
            r = p.cmd("commit", CAISSON_NO_SYNC="1")
            equal(r.returncode, 0, f"commit: {r.stderr!r}")
            d.cut()
            check(place.scene.look(p.ws) != p.after, "nothing was lost: the test shows nothing")
        finally:
            d.off()


# ---- full ----


def fill(path):
    with open(path, "wb", buffering=0) as f:
        for size in (MiB, 65536, 4096, 512):
            try:
                while True:
                    f.write(b"x" * size)
            except OSError:
                pass
    n = 0
    try:  # and no room for another name or inode
        while n < 20000:
            with open(f"{path}.{n}", "wb") as f:
                f.write(b"x")
            n += 1
    except OSError:
        pass


def unfill(path):
    for name in os.listdir(os.path.dirname(path)):
        if name.startswith(os.path.basename(path)):
            os.unlink(os.path.join(os.path.dirname(path), name))


for _act in (Commit(), Undo()):
    @test(f"a full disk before `{_act.word}`: done, or an error and nothing changed; nothing is lost", modes=("root",))
    def _(m, act=_act):
        for kind in kinds()[:1]:
            d, p = on_disk(m, kind, None)
            try:
                act.start(p)
                fill(f"{d.at}/fill")
                r = act.act(p)
                said = r.stderr.decode(errors="replace")
                check(r.returncode >= 0 and (r.returncode == 0 or "caisson: " in said), f"{r.returncode} {said!r}")
                p.cmd("txn", "list")
                state = p.state(*act.looks(p))
                note(f"{kind}, full: {act.word} ends with {r.returncode}, the workspace is {state}: {said.strip()[:160]}")
                if r.returncode == 0:
                    equal(state, act.looks(p)[-1][0], "the workspace after a success")
                unfill(f"{d.at}/fill")
                p.good("txn", "list")
                act.fits(p, p.state(*act.looks(p)), p.listed())
                act.go_on(p, state)
                equal(p.leftovers(), [], "left in the store")
            finally:
                d.off()


@test("a disk that fills up during `run --commit keep`: the workspace is as before, what is named can be committed", modes=("root",))
def _(m):
    for kind in kinds()[:1]:
        for room in (0, 1, 4, 16, 64, 160):
            d, p = on_disk(m, kind, None)
            try:
                p.build()
                os.makedirs(p.store, 0o700, exist_ok=True)
                fill(f"{d.at}/fill")
                for i in range(room):
                    if os.path.exists(f"{d.at}/fill.{i}"):
                        os.unlink(f"{d.at}/fill.{i}")
                size = os.path.getsize(f"{d.at}/fill")
                os.truncate(f"{d.at}/fill", size - room * 4096)
                r = p.run("keep")
                said = r.stderr.decode(errors="replace")
                check(r.returncode >= 0, f"crashed: {r.returncode}")
                p.is_now("before", p.before, f"room for {room} blocks")
                unfill(f"{d.at}/fill")
                listed = p.listed()
                equal(p.leftovers(), [], "left in the store")
                p.is_now("before", p.before, "after the next command")
                if listed and p.after:
                    p.good("commit")
                    p.is_now("after", p.after, "committed when there was room again")
                note(f"{kind}: room for {room} blocks: status {r.returncode}, {[t['state'] for t in listed]}: {said.strip().splitlines()[-1][:100] if said.strip() else ''}")
            finally:
                d.off()


if __name__ == "__main__":
    why = None
    if os.geteuid() != 0:
        why = "needs root"
    elif not kinds() or not os.path.exists("/dev/loop-control"):
        why = "needs a loop device and mkfs.ext4"
    if why:
        must = os.environ.get("CS_TESTS_MUST_RUN") == "1" and os.geteuid() == 0
        print(f"{'not ok' if must else 'ok'} 1 - power loss # SKIP {why}")
        print(f"0 passed, {int(must)} failed" + ("" if must else ", 1 skipped"))
        sys.exit(int(must))
    place.main(test)
