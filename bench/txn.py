#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a transaction costs: begin, roll back, commit, undo, work inside, steps.

    bench/txn.py [--quick] [--only ITEM,..] [--dir DIR] [--no-image] [--json] [--check]

ITEM is begin, rollback, commit, build, files, steps or other.  One table each.
Every figure stands beside a peer's of the same run, taken in turns; commands are
timed by build/bench/start (see start.c), work inside by build/bench/inside.  A
cell is the median with (least to 90th percentile, or most when there are few).
Ratios are of medians.  A commit waits for the disk, so what others write then
counts: the file system is synced before each sample, and the table with dirty
data says what it costs when it is not clean.

DIR is a directory on a disk (default: /var/tmp); everything is made in a new
directory there and is gone afterwards: sessions, mounts, files.  As root it is an
ext4 image with default options, in a mount namespace of our own: what the host's
own was mounted with decides more than anything else.  Without a journal and with
`discard`, for one, each directory that is removed waits for the disk, 0.1 to 4 ms,
and a transaction has six.  --no-image measures on DIR itself.  Takes less than five
minutes.  --check exits 1 when an aim is missed."""
import argparse
import contextlib
import io
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

sys.dont_write_bytecode = True
import inside  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUN = ["run", "--quiet", "--memory", "8G", "--pids", "4096", "--disk", "4G", "--cpus", str(os.cpu_count())]
UNTAR_FILES, IMAGE_GIB = 20000, 12


class Figures:
    """Samples of one thing, in ms."""

    def __init__(self, v):
        self.v = sorted(v)

    @property
    def p50(self):
        return statistics.median(self.v)

    def __str__(self):
        high = self.v[len(self.v) * 9 // 10]
        digits = 2 if self.p50 < 20 else 1 if self.p50 < 100 else 0
        return f"{self.p50:.{digits}f} ms ({self.v[0]:.{digits}f}–{high:.{digits}f})"


class Summary(Figures):
    """The same from start's JSON, which is in µs."""

    def __init__(self, row):
        super().__init__([row["min"] / 1000, row["p50"] / 1000, row["p90"] / 1000])

    def __str__(self):
        return f"{self.v[1]:.2f} ms ({self.v[0]:.2f}–{self.v[2]:.2f})"


def quote(word):
    return f"'{word}'"


class Bench:
    def __init__(self, a, tmp):
        self.a, self.tmp = a, tmp
        self.bin = f"{tmp}/bin"
        os.mkdir(tmp)
        self.sessions, self.mounts, self.tables, self.aims = [], [], [], []
        os.mkdir(self.bin)
        for name in ("bench/start", "bench/bare", "bench/inside", "caisson"):
            shutil.copy(f"{TOP}/build/{name}", self.bin)
        os.mkdir(f"{tmp}/home")
        os.environ.update(CAISSON_STATE=f"{tmp}/state", HOME=f"{tmp}/home", GIT_CONFIG_NOSYSTEM="1")
        self.caisson = f"{self.bin}/caisson"

    # ---- running ----

    def start(self, lines, rounds, warmup=3):
        """lines: [(name, words, cwd)]; {name: start's row}."""
        text = "\n".join(f"{quote(n)} cwd={cwd} -- " + " ".join(map(quote, words)) for n, words, cwd in lines)
        out = self.call([f"{self.bin}/start", "--rounds", str(rounds), "--warmup", str(warmup), "--json", "--file", "-"], text=text)
        rows = {r["name"]: r for r in json.loads(out)["commands"]}
        for r in rows.values():
            if r["error"] or not r["runs"]:
                raise RuntimeError(f"{r['name']}: {r['error']}")
        return rows

    def once(self, words, cwd=None):
        """One run of a command; ms."""
        return self.start([("once", words, cwd or self.tmp)], 1, 0)["once"]["p50"] / 1000

    def call(self, words, cwd=None, text=None):
        r = subprocess.run(words, cwd=cwd or self.tmp, input=text, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL if text is None else None)
        if r.returncode != 0:
            raise RuntimeError(f"{' '.join(words)[:200]}: exit {r.returncode} {r.stderr.strip()[-300:]}")
        return r.stdout

    def change(self, ws, *words, flags=()):
        """A run that leaves a pending transaction; its id."""
        r = subprocess.run([self.caisson, "run", "--commit", "keep", *flags, "--", *words], cwd=ws, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
        found = re.search(r"\bt-[a-z0-9]+\b", r.stderr)
        if r.returncode != 0 or not found:
            raise RuntimeError(f"{' '.join(words)[:100]}: exit {r.returncode} {r.stderr.strip()[-300:]}")
        return found[0]

    def begin(self, ws):
        id = self.call([self.caisson, "begin", "--quiet"], cwd=ws).strip()
        self.sessions.append(id)
        return id

    def end(self, id):
        subprocess.run([self.caisson, "end", "--quiet", "--commit", "never", id], cwd=self.tmp, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.sessions.remove(id)

    def settle(self):
        """Until what is removed in the background has gone."""
        end = time.monotonic() + 30
        trash = f"{self.tmp}/state/trash"
        while os.path.isdir(trash) and os.listdir(trash) and time.monotonic() < end:
            time.sleep(0.02)

    def timed(self, words, cwd):
        """(clock ms, CPU ms) as `inside` prints them."""
        wall, cpu = map(int, self.call(words, cwd=cwd).split())
        return wall / 1e6, cpu / 1e6

    def clean(self):
        for id in list(self.sessions):
            self.end(id)
        for m in self.mounts:
            subprocess.run(["umount", m] if os.geteuid() == 0 else ["fusermount3", "-u", m], stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while os.path.isdir(self.tmp) and time.monotonic() < end:  # something may be removing its part of it
            shutil.rmtree(self.tmp, ignore_errors=True)

    # ---- telling ----

    def table(self, title, head, rows, notes=()):
        self.tables.append((title, head, rows, list(notes)))
        if self.a.json or self.a.check:
            return
        print(f"\n### {title}\n\n| " + " | ".join(head) + " |\n|---|" + "--:|" * (len(head) - 1))
        for r in rows:
            print("| " + " | ".join(map(str, r)) + " |")
        for n in notes:
            print(f"\n{n}")
        sys.stdout.flush()

    def aim(self, what, value, most, unit=""):
        """A cell: the value beside its aim."""
        holds = value <= most
        self.aims.append({"what": what, "value": round(value, 4), "at_most": most, "unit": unit, "holds": holds})
        return f"{value:.2f}{unit} (≤ {most}{unit}{'' if holds else ': missed'})"


# ---- a file system ----

def mount_image(tmp):
    """An ext4 of our own at tmp/fs; False: it cannot be had."""
    image, at = f"{tmp}/image", f"{tmp}/fs"
    os.mkdir(at)
    with open(image, "w") as f:
        f.truncate(IMAGE_GIB << 30)

    def out(*words):
        r = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return r.stdout.strip() if r.returncode == 0 else None

    loop = None
    if out("mkfs.ext4", "-q", "-F", "-N", "1000000", "-E", "lazy_itable_init=0,lazy_journal_init=0", image) is not None:
        loop = out("losetup", "--find", "--show", "--direct-io=on", image) or out("losetup", "--find", "--show", image)
    mounted = loop is not None and out("mount", loop, at) is not None
    if loop is not None:
        out("losetup", "--detach", loop)  # once nothing uses it
    return mounted


def file_system_line(path):
    line = subprocess.run(["findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", path], capture_output=True, text=True).stdout
    return " ".join(line.split())


# ---- files ----

def fill(path, count, size=0, mark="x", per_dir=100):
    """count files of so many bytes, per_dir in a directory."""
    data = (mark * size).encode()
    for d in range((count + per_dir - 1) // per_dir):
        os.makedirs(f"{path}/d{d}", exist_ok=True)
        for i in range(min(per_dir, count - d * per_dir)):
            fd = os.open(f"{path}/d{d}/f{i}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.write(fd, data)
            os.close(fd)


# ---- 1. begin and roll back ----

def bare_profile(path):
    """The default profile without patterns of what to hide."""
    with open(f"{TOP}/profiles/default.yaml") as f:
        text = f.read()
    text = re.sub(r"\n  hide:\n(?:    .*\n|\n)*", "\n", text).replace("name: default", "name: bench")
    with open(path, "w") as f:
        f.write(text)


def item_begin(b):
    sizes = [0, 1000, 200000]
    bare_profile(f"{b.tmp}/bench.yaml")
    run = [b.caisson, "run", "--quiet"]
    lines = []
    for n in sizes:
        ws = f"{b.tmp}/begin{n}"
        os.mkdir(ws)
        fill(ws, n, per_dir=1000)
        lines += [(f"none {n}", [*run, "--workspace-mode", "none", "--", "true"], ws),
                  (f"read {n}", [*run, "--workspace-mode", "read", "--", "true"], ws),
                  (f"txn {n}", [*run, "--", "true"], ws),
                  (f"bare {n}", [*run, "--profile", f"{b.tmp}/bench.yaml", "--", "true"], ws)]
    os.sync()
    first = {k: Summary(v) for k, v in b.start(lines, 6).items()}["txn 200000"].p50  # just made: searched each time
    time.sleep(4)  # a search of directories that were changed within seconds is not written down
    b.start(lines, 2)
    rows = {k: Summary(v) for k, v in b.start(lines, 20 if b.a.quick else 60).items()}
    shown = []
    for n in sizes:
        none, read, txn, bare = (rows[f"{k} {n}"] for k in ("none", "read", "txn", "bare"))
        shown.append([f"{n:,} files", none, read, txn, b.aim(f"begin and discard, {n} files, to no workspace", txn.p50 / none.p50, 1.5),
                      f"{txn.p50 - read.p50:.2f} ms", bare])
    growth = rows["txn 200000"].p50 / rows["txn 1000"].p50
    alone = [rows[f"txn {n}"].p50 - rows[f"read {n}"].p50 for n in sizes]
    search = [rows[f"read {n}"].p50 - rows["read 0"].p50 for n in sizes]
    b.table("Begin and discard: `caisson run -- true` in a workspace",
            ["workspace", "no workspace", "read-only", "transaction", "ratio to none", "of it the transaction", "without patterns to hide"], shown,
            [f"Growth from 1,000 to 200,000 files: {b.aim('growth of begin and discard from 1,000 to 200,000 files', growth, 1.2)}. "
             f"The search for secrets, which a read-only workspace has too, takes {search[1]:.2f} and {search[2]:.2f} ms more than in an empty one; "
             f"the transaction itself {alone[0]:.2f}, {alone[1]:.2f} and {alone[2]:.2f} ms. Without patterns the names are still looked through, "
             "for sockets and FIFOs. "
             f"What a search found is known until a directory changes; with the search, the last line's transaction took {first:.2f} ms."])
    for n in sizes:
        shutil.rmtree(f"{b.tmp}/begin{n}")


# ---- 2. rollback; 7. looking ----

def item_rollback(b):
    ws, count = f"{b.tmp}/rollback", 10000
    fill(ws, count, 100)
    peers = {"caisson version": [b.caisson, "version"], "exec, no C library": [f"{b.bin}/bare"]}
    v = {k: [] for k in ["rollback", "rollback, 10 files", "rm", *peers]}
    looks = {"diff --name-status": ["diff", "--name-status"], "diff --stat": ["diff", "--stat"], "diff": ["diff"], "txn show": ["txn", "show"]}
    looked, peer = {k: [] for k in looks}, []
    for _ in range(3 if b.a.quick else 5):
        few = b.change(ws, "sh", "-c", "for f in d0/f?; do echo y >> $f; done")
        many = b.change(ws, "sh", "-c", "for f in d*/*; do echo y >> $f; done")
        shutil.copytree(ws, f"{b.tmp}/copy")
        for k, words in looks.items():
            looked[k].append(b.once([b.caisson, *words, many], ws))
        peer.append(b.once(["sh", "-c", f"diff -rq {ws} {b.tmp}/copy || [ $? = 1 ]"], ws))
        os.sync()
        jobs = dict(peers, rm=["rm", "-rf", f"{b.tmp}/copy"], rollback=[b.caisson, "rollback", "--quiet", many])
        jobs["rollback, 10 files"] = [b.caisson, "rollback", "--quiet", few]
        for k in random.sample(list(jobs), len(jobs)):
            v[k].append(b.once(jobs[k], ws))
            b.settle()
    f = {k: Figures(x) for k, x in v.items()}
    rows = [["`caisson rollback`, 10,000 changed files", f["rollback"], b.aim("rollback of 10,000 changed files", f["rollback"].p50, 5, " ms")],
            ["`caisson rollback`, 10 changed files", f["rollback, 10 files"], ""],
            ["`caisson version`: a process of ours that does nothing", f["caisson version"], ""],
            ["exec of a program without a C library", f["exec, no C library"], ""],
            ["`rm -rf` of a copy of the 10,000 files", f["rm"], ""]]
    b.table("Rolling back", ["command", "time", "aim"], rows)
    shown = [[f"`caisson {k}`, 10,000 changed files", Figures(x), f"{Figures(x).p50 / Figures(peer).p50:.2f}"] for k, x in looked.items()]
    b.table("Looking at 10,000 changed files", ["command", "time", "to `diff -rq`"], [*shown, ["`diff -rq` with a copy", Figures(peer), "1.00"]])
    shutil.rmtree(ws)


# ---- 3. commit, undo ----

def make_dirty(b, mib):
    block = os.urandom(1 << 20)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{b.tmp}/dirty")  # one that is truncated is written at once when it is closed
    fd = os.open(f"{b.tmp}/dirty", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    for _ in range(mib):
        os.write(fd, block)
    os.close(fd)


class Copies:
    """A transaction of count changed files, and rsync's way to the same; each can be repeated."""

    def __init__(self, b, count, fresh=False):
        self.b, self.fresh, self.turn = b, fresh, 0
        self.dir = f"{b.tmp}/commit{count}{'n' if fresh else ''}"
        per = count if fresh else 100
        for name in "ab":
            fill(f"{self.dir}/{name}", count, 4096, name, per)
        self.ws, self.dst = f"{self.dir}/ws", f"{self.dir}/dst"
        for d in (self.ws, self.dst):
            fill(d, 0 if fresh else count, 4096, "x", per)
            os.makedirs(d, exist_ok=True)
        self.change()
        os.sync()

    def change(self):
        self.id = self.b.change(self.ws, "cp", "-r", f"{self.dir}/a/.", ".", flags=["--ro", f"{self.dir}/a", "--disk", "4G"])

    def rsync(self, flags, then=""):
        """From two sources in turns: every file differs every time."""
        self.turn += 1
        if self.fresh:
            shutil.rmtree(self.dst)
            os.mkdir(self.dst)
        source = f"{self.dir}/{'ab'[self.turn % 2]}"
        if not self.fresh:
            stamp = 1700000000 + self.turn  # it compares whole seconds
            for d, _, names in os.walk(source):
                for n in names:
                    os.utime(f"{d}/{n}", (stamp, stamp))
        return ["sh", "-c", f"rsync -a {flags} {source}/ {self.dst}/ {then}"]

    def sample(self, kind, dirty):
        b = self.b
        words = {"commit": lambda: [b.caisson, "commit", "--quiet", "--yes", self.id],
                 "rsync": lambda: self.rsync(""), "sync": lambda: self.rsync("", f"&& sync -f {self.dst}"),
                 "fsync": lambda: self.rsync("--fsync")}[kind]()
        os.sync()
        if dirty:
            make_dirty(b, dirty)
        return b.once(words, self.ws)

    def measure(self, rounds, kinds, dirty=0):
        v, undo = {k: [] for k in kinds}, []
        for _ in range(rounds):
            for k in random.sample(kinds, len(kinds)):
                v[k].append(self.sample(k, dirty))
                if k == "commit":
                    os.sync()
                    undo.append(self.b.once([self.b.caisson, "undo", "--quiet", self.id], self.ws))
                    # One that was committed before has its attributes off already: a new one, as a user has it.
                    self.b.call([self.b.caisson, "rollback", "--quiet", self.id], self.ws)
                    self.change()
        return {k: Figures(x) for k, x in v.items()}, Figures(undo)

    def done(self):
        self.b.call([self.b.caisson, "rollback", "--quiet", self.id], self.ws)
        self.b.settle()
        shutil.rmtree(self.dir)


def commit_row(b, name, f, undo, aimed):
    ratio = f["commit"].p50 / f["rsync"].p50
    return [name, f["commit"], f["rsync"], b.aim(f"commit of {name} to rsync -a", ratio, 0.4) if aimed else f"{ratio:.2f}",
            f["sync"], f"{f['commit'].p50 / f['sync'].p50:.2f}", f.get("fsync", "–"),
            f"{f['commit'].p50 / f['fsync'].p50:.2f}" if "fsync" in f else "–", undo]


def item_commit(b):
    if not shutil.which("rsync"):
        b.table("Commit", ["not measured"], [["rsync is not installed"]])
        return
    head = ["changed, 4 KiB each", "`caisson commit`", "`rsync -a`", "ratio", "`rsync -a`, then sync", "ratio", "`rsync -a --fsync`", "ratio", "`caisson undo`"]
    rows, dirty_rows = [], []
    for count, rounds in ((10, 9), (100, 9), (1000, 9), (10000, 3)):
        c = Copies(b, count)
        kinds = ["commit", "rsync", "sync"] + (["fsync"] if count <= 100 else [])
        f, undo = c.measure(rounds // 3 + 1 if b.a.quick else rounds, kinds)
        rows.append(commit_row(b, f"{count:,} files", f, undo, count == 1000))
        if count == 1000:
            for mib in (64, 512):
                f, undo = c.measure(2 if b.a.quick else 3, ["commit", "rsync", "sync"], mib)
                dirty_rows.append(commit_row(b, f"1,000 files, {mib} MiB dirty", f, undo, False))
        c.done()
    c = Copies(b, 1000, fresh=True)
    f, undo = c.measure(3 if b.a.quick else 9, ["commit", "rsync", "sync"])
    rows.append(commit_row(b, "1,000 new files in a new directory", f, undo, False))
    c.done()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{b.tmp}/dirty")
    b.table("Commit and undo, on disk when they return", head, rows + dirty_rows,
            ["Dirty data is somebody else's on the same file system; it is written by whoever syncs first. `rsync -a` alone leaves its own in memory."])


# ---- 4. a build, 5. many small files ----

def places(b, ws, layered):
    flags = ["--ro", b.bin, "--ro", f"{b.tmp}/files.tar"] if layered else ["--ro", b.bin]
    return {"transaction": [b.caisson, *RUN, "--commit", "keep", *flags, "-w", ws, "--"],
            "direct": [b.caisson, *RUN, "--workspace-mode", "write", *flags, "-w", ws, "--"], "native": []}


def roll_back_all(b, ws):
    for t in json.loads(b.call([b.caisson, "txn", "--json"], ws)):
        b.call([b.caisson, "rollback", "--quiet", t["id"]], ws)
    b.settle()


def item_build(b):
    ws = f"{b.tmp}/build"
    os.mkdir(ws)
    inside.SOURCES = 100
    inside.make_project(f"{ws}/proj")
    v = {k: [] for k in places(b, ws, False)}
    for _ in range(2 if b.a.quick else 4):
        for k in random.sample(list(v), len(v)):
            subprocess.run(["make", "-s", "-C", f"{ws}/proj", "clean"], check=True)
            os.sync()
            v[k].append(b.timed(places(b, ws, False)[k] + [f"{b.bin}/inside", "run", "true", "make -s -C proj -j2"], ws))
    roll_back_all(b, ws)
    wall = {k: Figures([w for w, _ in x]) for k, x in v.items()}
    cpu = {k: Figures([c for _, c in x]) for k, x in v.items()}
    pairs = statistics.median(t[0] / d[0] for t, d in zip(v["transaction"], v["direct"]))
    best = min(wall["transaction"].v) / min(wall["direct"].v)
    rows = [["transaction", wall["transaction"], b.aim("build in a transaction to the directory itself", pairs, 1.03),
             f"{best:.2f}", cpu["transaction"], f"{cpu['transaction'].p50 / cpu['direct'].p50:.2f}"],
            ["directory bound", wall["direct"], "1.00", "1.00", cpu["direct"], "1.00"],
            ["native", wall["native"], f"{wall['native'].p50 / wall['direct'].p50:.2f}", f"{wall['native'].v[0] / wall['direct'].v[0]:.2f}",
             cpu["native"], f"{cpu['native'].p50 / cpu['direct'].p50:.2f}"]]
    b.table("A build: `make -j2` of 100 C files", ["where", "time", "ratio of pairs", "of best runs", "CPU", "ratio"], rows)
    shutil.rmtree(ws)


def make_repo(path, count):
    fill(path, count, 100, per_dir=50)
    git = ["git", "-C", path, "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "files"]):
        subprocess.run(git + args, check=True)


def make_archive(path):
    with tarfile.open(path, "w") as t:
        for i in range(UNTAR_FILES):
            member = tarfile.TarInfo(f"dir{i // 100}/file{i}")
            member.size = 3000
            t.addfile(member, io.BytesIO(b"x" * 3000))


def mount_over(b, kind, ws, n):
    d = f"{b.tmp}/over{n}"
    for name in ("up", "wk", "mnt"):
        os.makedirs(f"{d}/{name}")
    words = ["fuse-overlayfs"] if kind == "fuse-overlayfs" else ["mount", "-t", "overlay", "overlay"]
    b.call([*words, "-o", f"lowerdir={ws},upperdir={d}/up,workdir={d}/wk", f"{d}/mnt"])
    b.mounts.append(f"{d}/mnt")
    return f"{d}/mnt"


def item_files(b):
    ws = f"{b.tmp}/files"
    make_repo(f"{ws}/repo", 20000)
    make_archive(f"{b.tmp}/files.tar")
    works = {"`tar xf`, 20,000 files": ("mkdir tree-$TURN", f"tar -xf {b.tmp}/files.tar -C tree-$TURN"),
             "`git status`, 20,000 files": ("git -C repo status > /dev/null", "git -C repo status > /dev/null")}
    over = ["overlayfs", "fuse-overlayfs"] if os.geteuid() == 0 else ["fuse-overlayfs"]
    names = [*places(b, ws, True), *over]
    v = {w: {p: [] for p in names} for w in works}
    copies, turn, missing = [], 0, ""
    if not shutil.which("fuse-overlayfs"):
        missing = "fuse-overlayfs is not installed."
    for i in range(3 if b.a.quick else 7):
        os.sync()
        copies.append(b.once(["cp", "-a", f"{ws}/repo", f"{b.tmp}/copy{len(copies)}"]))
        for p in random.sample(names, len(names)):
            for w, (prepare, command) in works.items():
                turn += 1
                where = ws
                if p in over:
                    if p == "fuse-overlayfs" and (missing or i > 1):  # takes a quarter of a minute
                        continue
                    try:
                        where = mount_over(b, p, ws, turn)
                    except RuntimeError as e:
                        missing = str(e)
                        continue
                os.sync()
                words = [x.replace("$TURN", str(turn)) for x in (prepare, command)]
                v[w][p].append(b.timed(places(b, ws, True).get(p, []) + [f"{b.bin}/inside", "run", *words], where)[0])
                if where != ws:
                    b.call(["umount", where] if os.geteuid() == 0 else ["fusermount3", "-u", where])
                    b.mounts.remove(where)
    rows = []
    copy = Figures(copies)
    for w in works:
        f = {p: Figures(x) if x else None for p, x in v[w].items()}
        d, fuse = f["direct"].p50, f["fuse-overlayfs"]
        plain = f.get("overlayfs")
        rows.append([w, f["direct"], f["transaction"], b.aim(f"{w} in a transaction to the directory itself", f["transaction"].p50 / d, 1.5),
                     f"{f['transaction'].v[0] / f['direct'].v[0]:.2f}", f"{f['native'].p50 / d:.2f}", f"{plain.p50 / d:.2f} ({plain.v[0] / f['direct'].v[0]:.2f})" if plain else "–",
                     f"{fuse} {fuse.p50 / d:.2f}" if fuse else "–", f"{(copy.p50 + f['native'].p50) / d:.2f}"])
    b.table("Many small files", ["work", "directory bound", "transaction", "ratio", "of best runs", "native: ratio", "the kernel's overlayfs alone, no sandbox: ratio (of best runs)",
             "fuse-overlayfs, no sandbox: ratio", "`cp -a` first, no sandbox: ratio"],
            rows, [f"`cp -a` of the 20,000 files as the snapshot: {copy}."] + ([missing] if missing else []))
    roll_back_all(b, ws)
    for name in os.listdir(b.tmp):
        if name.startswith(("over", "copy", "files")):
            path = f"{b.tmp}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


# ---- 6. steps ----

def item_steps(b):
    ws = f"{b.tmp}/steps"
    os.mkdir(ws)
    shutil.copy(f"{b.bin}/bare", f"{ws}/bare")
    ids = {"nothing": b.begin(ws), "one file": b.begin(ws)}
    lines = [(k, [b.caisson, "exec", "--quiet", id, "--", f"{ws}/bare", *(["to", f"{ws}/out"] if k != "nothing" else [])], ws) for k, id in ids.items()]
    floors = [("client", [b.caisson, "version"], ws), ("program", [f"{b.bin}/bare"], ws), ("program writes", [f"{b.bin}/bare", "to", f"{b.tmp}/out"], ws)]
    points, rounds = (10, 100, 500), 30
    done, rows, kept = 0, [], {}
    for at in points:
        if at > done:
            b.start(lines, at - done, 0)
        kept[at] = {k: Summary(x) for k, x in b.start(lines + floors, rounds, 0).items()}
        for line in lines:  # nothing in between: what is done after a step is told then delays the next
            kept[at][f"{line[0]}, at once"] = Summary(b.start([line], rounds, 0)[line[0]])
        done = at + 2 * rounds
    for k, id in ids.items():
        steps = {s["step"]: s for s in json.loads(b.call([b.caisson, "steps", "--json", id], ws))}
        for at in points:
            own = Figures([steps[n]["us"] / 1000 for n in range(at + 1, at + rounds + 1)])
            f = kept[at]
            program = f["program" if k == "nothing" else "program writes"]
            over, packed = (x.p50 - f["client"].p50 - program.p50 for x in (f[k], f[f"{k}, at once"]))
            rows.append([f"writes {k}, after {at} steps", f[k], f["client"], program,
                         b.aim(f"a step that writes {k}, after {at} steps, without client and program", over, 1, " ms"), own,
                         f"{own.p50 - program.p50:.2f} ms", f[f"{k}, at once"],
                         b.aim(f"the same, one right after the other ({k}, {at} steps)", packed, 1, " ms")])
    b.table("A step in a session", ["step", "`caisson exec`", "client alone", "program alone", "overhead", "by the keeper's record", "less the program",
             "one right after the other", "overhead"], rows,
            ["The savepoint for the next step is made when one has ended; with a pause of 2 ms or so between steps it is in nobody's time, so the last "
             "two columns, without a pause, are what a step costs in all. \"Client alone\" is `caisson version`, \"program alone\" a vfork and exec of it outside."])
    for id in ids.values():
        b.end(id)
    shutil.rmtree(ws)


# ---- 7. fork and the rest ----

def item_other(b):
    ws = f"{b.tmp}/other"
    fill(f"{ws}", 1000, 4096)
    fill(f"{b.tmp}/source", 1000, 4096, "y")
    id = b.call([b.caisson, "begin", "--quiet", "--ro", f"{b.tmp}/source"], cwd=ws).strip()
    b.sessions.append(id)
    b.call([b.caisson, "exec", "--quiet", id, "--", "cp", "-r", f"{b.tmp}/source/.", "."], ws)
    v = {k: [] for k in ("fork", "cp -a", "begin", "end", "rollback")}
    for i in range(3 if b.a.quick else 7):
        os.sync()
        began = time.perf_counter()
        copy = b.call([b.caisson, "fork", id], ws).strip()
        v["fork"].append((time.perf_counter() - began) * 1000)
        b.sessions.append(copy)
        v["cp -a"].append(b.once(["cp", "-a", f"{b.tmp}/source", f"{b.tmp}/copy{i}"]))
        began = time.perf_counter()
        other = b.begin(ws)
        v["begin"].append((time.perf_counter() - began) * 1000)
        v["end"].append(b.once([b.caisson, "end", "--quiet", other], ws))
        b.sessions.remove(other)
        b.call([b.caisson, "exec", "--quiet", copy, "--", "sh", "-c", "for f in d0/*; do echo >> $f; done"], ws)
        v["rollback"].append(b.once([b.caisson, "rollback", f"{copy}@1"], ws))
        b.end(copy)
    f = {k: Figures(x) for k, x in v.items()}
    b.table("Sessions", ["command", "time", "to `cp -a` of the 1,000 files"],
            [["`caisson begin`", f["begin"], ""], ["`caisson end`, nothing written", f["end"], ""],
             ["`caisson fork`, 1,000 changed files of 4 KiB", f["fork"], f"{f['fork'].p50 / f['cp -a'].p50:.2f}"],
             ["`cp -a` of the same", f["cp -a"], "1.00"], ["`caisson rollback ID@STEP`, 100 files", f["rollback"], ""]])
    b.end(id)
    for name in os.listdir(b.tmp):
        if name.startswith(("other", "copy", "source")):
            shutil.rmtree(f"{b.tmp}/{name}")


ITEMS = {"begin": item_begin, "rollback": item_rollback, "commit": item_commit, "build": item_build, "files": item_files,
         "steps": item_steps, "other": item_other}


def tell_end(a, b):
    if a.json:
        json.dump({"aims": b.aims, "tables": [{"title": t, "head": h, "rows": [[str(c) for c in r] for r in rows], "notes": n}
                                              for t, h, rows, n in b.tables]}, sys.stdout, indent=1, ensure_ascii=False)
        print()
    if a.check:
        for x in b.aims:
            print(f"{'holds' if x['holds'] else 'FAILS'}: {x['what']}: {x['value']:.2f}{x['unit']}, at most {x['at_most']}{x['unit']}")
    return 1 if a.check and not all(x["holds"] for x in b.aims) else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--quick", action="store_true", help="fewer rounds")
    p.add_argument("--only", default="", help=", ".join(ITEMS))
    p.add_argument("--dir", default="/var/tmp")
    p.add_argument("--no-image", action="store_true", help="on DIR itself, not on a file system of our own")
    p.add_argument("--json", action="store_true")
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    for need in ("caisson", "bench/start", "bench/bare", "bench/inside"):
        if not os.access(f"{TOP}/build/{need}", os.X_OK):
            sys.exit(f"txn: build/{need} is not there; run make and bench/run")
    only = [x for x in a.only.split(",") if x]
    if set(only) - set(ITEMS):
        sys.exit(f"txn: --only takes {', '.join(ITEMS)}")
    if inside.file_system(a.dir) == "tmpfs":
        sys.exit(f"txn: {a.dir} is memory; name a directory on a disk with --dir")
    inside.own_mounts()
    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda *_: sys.exit(143))
    tmp = tempfile.mkdtemp(prefix="caisson-bench.", dir=a.dir)
    os.chmod(tmp, 0o755)
    try:
        status = measure(a, only, tmp)
    except KeyboardInterrupt:
        status = 130
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    sys.exit(status)


def measure(a, only, tmp):
    own = os.geteuid() == 0 and not a.no_image and mount_image(tmp)
    place = f"{tmp}/fs" if own else tmp
    status = 0
    b = Bench(a, f"{place}/bench")
    if not a.json and not a.check:
        print(f"File system: {file_system_line(place)}{', an image of its own' if own else ''}.")
    try:
        for name, item in ITEMS.items():
            if only and name not in only:
                continue
            try:
                item(b)
            except RuntimeError as e:
                print(f"txn: {name}: {e}", file=sys.stderr)
                status = 1
    finally:
        b.clean()
        if own:
            subprocess.run(["umount", "--lazy", f"{tmp}/fs"])
    return tell_end(a, b) or status


if __name__ == "__main__":
    main()
