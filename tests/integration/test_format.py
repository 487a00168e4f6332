#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/format-transaction.md is what lies on the disk.

A decoder written from that document, and from nothing else, reads the files of commits that were cut off at
every place where a crash can fall (CAISSON_FAULT of the test build, src/base/fault.h).  Every field that the
document has is compared with what the test knows: inode numbers, sizes, times, modes, attributes, names.

    CAISSON=path    a test build (default: build/test/caisson)
"""
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CAISSON = Path(os.environ.get("CAISSON") or TOP / "build" / "test" / "caisson").resolve()
if CAISSON == TOP / "build" / "caisson":  # the release has no fault points
    CAISSON = TOP / "build" / "test" / "caisson"
PUT, SWAP, TAKE, PLACE, MKDIR, META = range(1, 7)
passed = failed = 0


def check(ok, name, *why):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    for line in ([] if ok else why):
        print("#", line)
    print("ok" if ok else "not ok", passed + failed, "-", name, flush=True)


def equal(got, want, name):
    check(got == want, name, f"got {got!r}", f"want {want!r}")


# ---- the decoder ----


def crc32c(data):
    """CRC-32C (Castagnoli): reflected polynomial 0x82f63b78, starts and ends inverted."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Bad(Exception):
    pass


def need(ok, why):
    if not ok:
        raise Bad(why)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        need(self.at + n <= len(self.data), "cut short")
        self.at += n
        return self.data[self.at - n:self.at]

    def unpack(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def text(self):
        return self.take(self.unpack("I")[0])

    def list(self):
        return [self.text() for _ in range(self.unpack("I")[0])]

    def end(self):
        need(self.at == len(self.data), "more than it should be")


def decode_head(data):
    r = Reader(data)
    need(r.take(8) == b"CSNHEAD1", "magic")
    length, crc = r.unpack("II")
    body = r.take(length)
    need(crc32c(body) == crc, "checksum")
    start = r.take(64)
    r.end()
    b, h = Reader(body), {}
    for key in ("id", "workspace", "profile", "command"):
        h[key] = b.text()
    h["ino"], h["created"], h["created_ns"], h["steps"] = b.unpack("QQII")
    for key in ("protect", "allow", "hidden"):
        h[key] = b.list()
    b.end()
    s = struct.unpack("<qI4xqQQQI12x", start)
    h["start"] = dict(zip(("sec", "nsec", "boot_offset", "boot_id", "pid", "pid_start", "crc"), s))
    h["start_ok"] = crc32c(start[:48]) == s[6]
    h["start_rest"] = start[12:16] + start[52:]
    return h


def decode_meta(r):
    m = dict(zip(("mode", "uid", "gid", "xattrs_len", "atime", "mtime", "atime_ns", "mtime_ns"), r.unpack("IIIIqqII")))
    x, m["xattrs"] = Reader(r.take(m["xattrs_len"])), {}
    while x.at < len(x.data):
        name = x.take(x.data.index(b"\0", x.at) - x.at)
        x.take(1)
        m["xattrs"][name.decode()] = x.text()
    return m


def decode_step(data):
    r = Reader(data)
    names = ("kind", "n", "was_ino", "was_size", "is_ino", "is_size", "was_sec", "is_sec", "was_nsec", "is_nsec", "path_len", "metas")
    s = dict(zip(names, r.unpack("IIQQQQqqIIII")))
    need(r.at == 72, "a step is 72 bytes")
    s["path"] = r.take(s["path_len"])
    need(s["metas"] == {META: 2, MKDIR: 1}.get(s["kind"], 0), "number of metas")
    s["old"] = decode_meta(r) if s["metas"] == 2 else None
    s["new"] = decode_meta(r) if s["metas"] else None
    r.end()
    return s


def decode_journal(data):
    r = Reader(data)
    head = r.take(48)
    magic, undo, part, count, sec, nsec, flags, zero, crc = struct.unpack("<8sIIQqIIII", head)
    need(magic == b"CSNJRNL1" and flags < 4 and not zero and undo in (0, 1), "head")
    need(crc32c(head[:44]) == crc, "head's checksum")
    steps = []
    for _ in range(count):
        length, crc = r.unpack("II")
        body = r.take(length)
        need(crc32c(body) == crc, "step's checksum")
        steps.append(decode_step(body))
    need(r.take(8) == b"CSNJEND1", "end")
    last, crc = r.unpack("II")
    need(last == count and crc32c(struct.pack("<I", last)) == crc, "end's checksum")
    r.end()
    return {"undo": undo, "part": part, "after": (sec, nsec), "steps": steps}


# ---- a workspace ----


def fnv1a(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


class Place:
    def __init__(self):
        self.top = Path(tempfile.mkdtemp(prefix="caisson-format."))
        self.ws, self.state = self.top / "work", self.top / "state"
        self.ws.mkdir()
        (self.top / "home").mkdir()
        self.folder = self.state / f"w-{fnv1a(os.fsencode(self.ws)):016x}"
        self.live = self.state / "live"

    def run(self, *args, fault=None, expect=0):
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.top / "home"), "CAISSON_STATE": str(self.state), "LANG": "C.UTF-8",
               "XDG_RUNTIME_DIR": str(self.top / "home")}
        if fault is not None:
            env["CAISSON_FAULT"] = str(fault)
        r = subprocess.run([CAISSON, *args], cwd=self.ws, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=60, check=False)
        if expect is not None and r.returncode != expect:
            raise SystemExit(f"{args}: exit status {r.returncode}: {r.stderr.decode()}")
        return r

    def program(self, script):
        self.run("run", "-q", "--commit", "keep", "--", "sh", "-ec", script)
        ids = [d.name for d in self.folder.iterdir() if not (d / "done-0").exists()]
        return ids[0]

    def done(self):
        for at, folders, _ in os.walk(self.top):  # overlayfs leaves some closed
            for name in folders:
                if not os.path.islink(os.path.join(at, name)):
                    os.chmod(os.path.join(at, name), 0o700)
        shutil.rmtree(self.top)


def filled():
    p = Place()
    for name, text in (("changed", "old"), ("gone", "going"), (".env", "SECRET=decoy"), ("left", "left")):
        (p.ws / name).write_text(text)
    (p.ws / "dir").mkdir(mode=0o755)
    (p.ws / "dir" / "inside").write_text("inside")
    try:
        os.setxattr(p.ws / "dir", "user.note", b"kept")
        p.xattrs = {"user.note": b"kept"}
    except OSError:
        p.xattrs = {}
    return p


SCRIPT = ("echo new content > changed; rm gone; mkdir whole partly; echo a > whole/a; echo b > partly/b; mkfifo partly/fifo; "
          "chmod 700 dir; echo c > dir/c; echo d > left")


def stat_of(path):
    s = os.lstat(path)
    return {"ino": s.st_ino, "size": s.st_mode & 0o7777 if stat.S_ISDIR(s.st_mode) else s.st_size, "time": (s.st_mtime_ns // 10**9, s.st_mtime_ns % 10**9)}


def side(step, which):
    return {"ino": step[f"{which}_ino"], "size": step[f"{which}_size"], "time": (step[f"{which}_sec"], step[f"{which}_nsec"])}


# ---- tests ----


def check_crc():
    equal(crc32c(b"123456789"), 0xE3069283, "the decoder's checksum is CRC-32C")


def check_head():
    p = filled()
    before = time.time()
    tid = p.program(SCRIPT)
    h = decode_head((p.folder / tid / "head").read_bytes())
    s = h["start"]
    equal(h["id"].decode(), tid, "head: id")
    equal(os.fsdecode(h["workspace"]), str(p.ws), "head: workspace")
    equal(h["profile"], b"default", "head: profile")
    equal(h["command"], b"sh -ec " + SCRIPT.encode(), "head: command")
    equal(h["ino"], os.stat(p.ws).st_ino, "head: the workspace's inode")
    check(before - 1 <= h["created"] <= time.time() + 1 and h["created_ns"] < 10**9, "head: created", h)
    equal(h["steps"], 0, "head: not a session")
    check(b".git/hooks" in h["protect"], "head: protected names", h["protect"])
    equal(h["allow"], [b".git/hooks/*.sample"], "head: allowed names")
    check(b".env" in h["hidden"], "head: hidden names", h["hidden"])
    check(h["start_ok"], "head: the start's checksum covers its first 48 bytes")
    equal(h["start_rest"], bytes(16), "head: the start's other bytes are 0")
    check(abs(s["sec"] - h["created"]) <= 1 and s["nsec"] < 10**9, "head: stamp", s)
    want = (time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)) * 1000
    check(abs(s["boot_offset"] - want) < 1000, "head: realtime minus boottime", s, want)
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    equal(s["boot_id"], fnv1a(boot), "head: FNV-1a of the boot id")
    check(s["pid"] > 1 and s["pid_start"] > 0, "head: process 1 and its start", s)
    line = (p.state / "log").read_text().splitlines()[-1]
    check(re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ {tid} pending added=\d+ changed=\d+ deleted=1 bytes=\d+ {re.escape(str(p.ws))}", line),
          "log: a line", line)
    equal(sorted(x.name for x in (p.folder / tid).iterdir()), ["head", "up", "wk"], "a pending one has head, up, wk")
    p.done()


def cut_commit(p, want):
    """A commit killed at its first fault point at which want(its folder) is true."""
    (p.live).mkdir(exist_ok=True)
    for n in range(1, 200):
        r = p.run("commit", "-q", "-y", "dir", "changed", "gone", "whole", "partly", fault=n, expect=None)
        if r.returncode != -signal.SIGKILL:
            raise SystemExit(f"no fault point {n}: {r.returncode} {r.stderr.decode()}")
        there = list(p.live.iterdir()) or list(p.folder.iterdir())
        if want(there[0]):
            return there[0]
        p.run("txn", "list")  # recovers; nothing had happened
    raise SystemExit("never")


def check_journal():
    p = filled()
    tid = p.program(SCRIPT)
    up = p.folder / tid / "up"
    was = {n: stat_of(p.ws / n) for n in ("changed", "gone")}
    new = {n: stat_of(up / n) for n in ("changed", "whole", "partly/b", "dir/c", "dir", "partly")}
    mode = {n: os.lstat(up / n).st_mode & 0o7777 for n in ("dir", "partly")}
    old_dir = os.lstat(p.ws / "dir")
    dir_new = os.lstat(up / "dir")
    there = cut_commit(p, lambda d: (d / "journal").exists())
    equal(there, p.live / tid, "a transaction that is worked on stands in live/")
    j = decode_journal((there / "journal").read_bytes())
    steps = {(s["kind"], os.fsdecode(s["path"])): s for s in j["steps"]}
    equal((j["undo"], j["part"], j["after"]), (0, 0, (0, 0)), "journal: direction, part, no time yet")
    equal(set(steps), {(SWAP, "changed"), (TAKE, "gone"), (PUT, "whole"), (MKDIR, "partly"), (PUT, "partly/b"), (PUT, "dir/c"), (META, "."),
                       (META, "dir")}, "journal: its steps")
    equal([s["n"] for s in j["steps"]], list(range(len(j["steps"]))), "journal: steps are numbered")
    kinds = [s["kind"] for s in j["steps"]]
    check(META not in kinds[:kinds.index(META)] and set(kinds[kinds.index(META):]) == {META}, "journal: metas come last", kinds)
    equal(side(steps[SWAP, "changed"], "was"), was["changed"], "SWAP: what was there: inode, size, time")
    equal(side(steps[SWAP, "changed"], "is"), new["changed"], "SWAP: what will be there")
    equal(side(steps[TAKE, "gone"], "was"), was["gone"], "TAKE: what was there")
    equal(side(steps[TAKE, "gone"], "is")["ino"], 0, "TAKE: nothing will be there")
    equal(side(steps[PUT, "whole"], "is"), new["whole"], "PUT: a directory goes whole")
    equal(side(steps[PUT, "whole"], "was")["ino"], 0, "PUT: nothing was there")
    m = steps[MKDIR, "partly"]["new"]
    equal((m["mode"], steps[MKDIR, "partly"]["old"]), (mode["partly"], None), "MKDIR: one meta")
    m = steps[META, "dir"]
    equal((m["old"]["mode"], m["new"]["mode"]), (0o755, 0o700), "META: modes before and after")
    equal((m["old"]["uid"], m["old"]["gid"]), (old_dir.st_uid, old_dir.st_gid), "META: owner")
    equal(m["old"]["mtime"] * 10**9 + m["old"]["mtime_ns"], old_dir.st_mtime_ns, "META: time before")
    equal(m["new"]["mtime"] * 10**9 + m["new"]["mtime_ns"], dir_new.st_mtime_ns, "META: time after")
    check(m["old"]["atime"] > 0 and m["old"]["atime_ns"] < 10**9, "META: access time", m)
    equal((m["old"]["xattrs"], m["new"]["xattrs"]), (p.xattrs, p.xattrs), "META: attributes")
    equal((p.ws / "changed").read_text(), "old", "nothing is changed by then")

    p.run("txn", "list")
    done = p.folder / tid / "done-0"
    check(done.exists() and not (p.folder / tid / "journal").exists(), "recovery finishes it: journal becomes done-0")
    d = decode_journal(done.read_bytes())
    equal(d["steps"], j["steps"], "done-0: the steps never change")
    check(d["after"][0] > 0, "done-0: the time of the end", d["after"])
    check(d["after"] >= tuple(divmod(os.lstat(p.ws / "changed").st_ctime_ns, 10**9)), "done-0: not before the ctime of what was moved")
    names = {f"0-{steps[k]['n']}": k[1] for k in steps if k[0] in (SWAP, TAKE)}
    equal(sorted(x.name for x in (p.folder / tid / "undo").iterdir()), sorted(names), "undo/PART-STEP holds what was replaced and taken")
    for n, path in names.items():
        equal(os.lstat(p.folder / tid / "undo" / n).st_ino, was[path]["ino"], f"undo/{n} is the old {path}")
    equal((p.ws / "changed").read_text(), "new content\n", "the commit is done")
    equal((p.ws / "left").read_text(), "left", "what was not asked for is not")

    p.run("commit", "-q", "-y", "left")
    d = decode_journal((p.folder / tid / "done-1").read_bytes())
    equal((d["part"], {os.fsdecode(s["path"]) for s in d["steps"] if s["kind"] == SWAP}), (1, {"left"}), "done-1: the second part")
    for n in range(1, 100):
        r = p.run("undo", "-q", fault=n, expect=None)
        path = p.live / tid / "journal"
        if path.exists():
            d = decode_journal(path.read_bytes())
            equal((d["undo"], d["part"]), (1, 1), "undo: the journal's direction is turned, the last part goes first")
            break
        check(r.returncode == -signal.SIGKILL and (p.ws / "left").read_text() == "d\n", f"undo: cut off at {n}, nothing is changed yet")
        p.run("txn", "list")
    p.run("txn", "list")
    equal((p.ws / "left").read_text(), "left", "recovery finishes the undo")
    check(not (p.folder / tid / "done-1").exists() and (p.folder / tid / "done-0").exists(), "the second part is gone, the first is not")
    p.done()


def check_rename():
    if os.geteuid():
        print("# renamed directories are kept as such for root only")
        return
    p = filled()
    ino = os.stat(p.ws / "dir").st_ino
    tid = p.program("mv dir moved")
    there = cut_commit_all(p)
    steps = decode_journal((there / "journal").read_bytes())["steps"]
    take = [s for s in steps if s["kind"] == TAKE]
    place = [s for s in steps if s["kind"] == PLACE]
    equal([(s["path"], s["was_ino"]) for s in take], [(b"dir", ino)], "TAKE: a renamed directory leaves its place")
    equal([(s["path"], s["was_ino"], s["is_ino"]) for s in place], [(b"moved", ino, ino)], "PLACE: and takes another")
    equal(place[0]["n"], take[0]["n"], "PLACE: has its TAKE's number")
    p.run("txn", "list")
    equal(os.stat(p.ws / "moved").st_ino, ino, "it is the same directory")
    check(not list((p.folder / tid / "undo").iterdir()), "nothing of it is left in undo/")
    p.done()


def cut_commit_all(p):
    for n in range(1, 100):
        p.run("commit", "-q", "-y", fault=n, expect=-signal.SIGKILL)
        there = list(p.live.iterdir())
        if there and (there[0] / "journal").exists():
            return there[0]
        p.run("txn", "list")
    raise SystemExit("never")


def check_refusals():
    """Another version is refused, and so is every damaged byte."""
    p = filled()
    tid = p.program("echo x > changed")
    head = p.folder / tid / "head"
    data = head.read_bytes()
    head.write_bytes(b"CSNHEAD2" + data[8:])
    r = p.run("commit", "-y", tid, expect=None)
    check(r.returncode == 125 and b"another version" in r.stderr, "a head of another version is refused", r.stderr)
    for at in (0, 9, 13, 20, 16 + struct.unpack_from("<I", data, 8)[0] - 1):
        head.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
        r = p.run("commit", "-y", tid, expect=None)
        check(r.returncode and (p.ws / "changed").read_text() == "old", f"a head with byte {at} changed is refused", r.stderr)
    head.write_bytes(data)
    there = cut_commit_all(p)
    journal = there / "journal"
    data = journal.read_bytes()
    for at in range(len(data)):
        try:
            decode_journal(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
            check(False, f"the decoder sees that byte {at} of a journal was changed")
        except (Bad, ValueError, UnicodeDecodeError):
            continue
    check(True, "the decoder sees every changed byte of a journal")
    journal.write_bytes(b"CSNJRNL2" + data[8:])
    r = p.run("txn", "list", expect=None)
    check(b"another version" in r.stderr and (p.ws / "changed").read_text() == "old", "a journal of another version is not applied", r.stderr)
    p.done()


def check_session():
    p = filled()
    tid = p.run("begin").stdout.decode().strip()
    try:
        p.run("exec", "--timeout", "30s", tid, "--", "sh", "-c", "echo 1 > s1; exit 3", expect=3)
        p.run("exec", "--timeout", "30s", tid, "--", "sh", "-c", "echo 2 > s2")
        p.run("rollback", f"{tid}@2")
        there = p.live / tid
        h = decode_head((there / "head").read_bytes())
        equal((h["steps"], h["command"]), (1, b"session"), "head: a session")
        lines = (there / "steps").read_text().splitlines()
        m = re.fullmatch(r"step 1 1 (\d+) (\d+) (\d+) 0 sh -c echo 1 > s1; exit 3", lines[0])
        check(m and abs(int(m[1]) - time.time()) < 60 and int(m[3]) == 3 << 8, "steps: number, layer, start, microseconds, status, background, command", lines)
        check(re.fullmatch(r"step 2 2 \d+ \d+ 0 0 sh -c echo 2 > s2", lines[1]), "steps: the second step has the second layer", lines)
        equal(lines[2:], ["rollback 2"], "steps: going back is a line, too")
        equal((there / "layers/1/up/s1").read_text(), "1\n", "layers/N/up holds what step N wrote")
    finally:
        p.run("end", "-q", "--commit", "keep", tid)
    equal((p.folder / tid / "up/s1").read_text(), "1\n", "at the end all layers are one")
    check(not (p.folder / tid / "layers").exists(), "layers/ is gone then")
    p.done()


def main():
    if not os.access(CAISSON, os.X_OK):
        raise SystemExit(f"no {CAISSON}: run `make build/test/caisson` first")
    for test in (check_crc, check_head, check_journal, check_rename, check_refusals, check_session):
        test()
    print(f"1..{passed + failed}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
