#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random operations on the tree in the current directory, the same ones for the same seed and tree.

    ops.py SEED COUNT rename|copy     do them, then print the trace and the tree as JSON

Runs inside the sandbox over the base, and outside over a plain copy of it: both must end alike.
Every written file gets a time that the seed decides, so that times can be compared, too.  With
`copy` a directory is renamed the way programs do it where rename(2) says EXDEV.
"""
import errno
import hashlib
import json
import os
import random
import stat
import sys

NAMES = ["a", "b", "c", "d", "e", "f", "A", "a b", "\u00e9", "-x"]
FILE_MODES = [0o644, 0o600, 0o755, 0o664, 0o640, 0o444]
DIR_MODES = [0o755, 0o700, 0o775, 0o711, 0o750]
EPOCH = 1_600_000_000_000_000_000


def xattrs(path):
    try:
        return {n: os.getxattr(path, n, follow_symlinks=False).hex() for n in sorted(os.listxattr(path, follow_symlinks=False))
                if n.startswith("user.") and not n.startswith("user.overlay.")}
    except OSError:
        return {}


def digest(path):
    try:
        with open(path, "rb") as f:
            return hashlib.sha1(f.read()).hexdigest()
    except OSError as e:
        return errno.errorcode[e.errno]


def entry(path, dir_times=False):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    e = {"type": kind, "mode": stat.S_IMODE(st.st_mode), "xattrs": xattrs(path)}
    if stat.S_ISREG(kind):
        e["size"], e["sha"] = st.st_size, digest(path)
    elif stat.S_ISLNK(kind):
        e["target"] = os.readlink(path)
    if dir_times or not stat.S_ISDIR(kind):
        e["mtime"] = st.st_mtime_ns
    return e


def walk(top="."):
    """Every path below, directories before what they hold, sorted."""
    for name in sorted(os.listdir(top)):
        path = name if top == "." else f"{top}/{name}"
        yield path
        if stat.S_ISDIR(os.lstat(path).st_mode):
            yield from walk(path)


def listing(dir_times=False):
    return {p: entry(p, dir_times) for p in walk()}


class Tree:
    """The operations.  What fails fails alike in both: its errno goes to the trace."""

    def __init__(self, seed, how):
        self.r = random.Random(seed)
        self.how, self.clock = how, 0

    # Choices do not depend on what failed before, only on the tree, so both make the same ones.
    def paths(self, want=lambda mode: True):
        return [p for p in walk() if want(os.lstat(p).st_mode)]

    def some(self, want=lambda mode: True):
        found = self.paths(want)
        return self.r.choice(found) if found else None

    def file(self):
        return self.some(stat.S_ISREG)

    def place(self):
        """A name in some directory, there or not."""
        d = self.r.choice(["."] + self.paths(stat.S_ISDIR))
        name = self.r.choice(NAMES)
        return name if d == "." else f"{d}/{name}"

    def content(self):
        n = self.r.choice([0, 1, 10, 100, 4096, 5000, 70000])
        return bytes(self.r.getrandbits(8) for _ in range(min(n, 64))) * (n // 64 + 1)

    def stamp(self, path):
        self.clock += 1
        t = EPOCH + self.clock * 1_000_000_007
        os.utime(path, ns=(t, t), follow_symlinks=False)

    def put(self, path, data, flags):
        fd = os.open(path, flags | os.O_NOFOLLOW, 0o644)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)
        self.stamp(path)

    def remove(self, path):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            for name in sorted(os.listdir(path)):
                self.remove(f"{path}/{name}")
            os.rmdir(path)
        else:
            os.unlink(path)

    def copy(self, a, b):
        st = os.lstat(a)
        if stat.S_ISDIR(st.st_mode):
            os.mkdir(b)
            for name in sorted(os.listdir(a)):
                self.copy(f"{a}/{name}", f"{b}/{name}")
        elif stat.S_ISLNK(st.st_mode):
            os.symlink(os.readlink(a), b)
        else:
            with open(a, "rb") as f:
                data = f.read()
            with open(b, "wb") as f:
                f.write(data)
        if not stat.S_ISLNK(st.st_mode):
            for n, v in xattrs(a).items():
                os.setxattr(b, n, bytes.fromhex(v))
            os.chmod(b, stat.S_IMODE(st.st_mode))
        os.utime(b, ns=(st.st_mtime_ns, st.st_mtime_ns), follow_symlinks=False)

    # ---- one function an operation: pick with self.r first, act then ----

    def op_create(self):
        p, data = self.place(), self.content()
        self.put(p, data, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def op_create_new(self):
        p, data = self.place(), self.content()
        self.put(p, data, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def op_append(self):
        p, data = self.file(), self.content()
        if p:
            self.put(p, data[:50], os.O_WRONLY | os.O_APPEND)

    def op_overwrite(self):
        p, data = self.file(), self.content()
        if p:
            self.put(p, data[:7], os.O_WRONLY)

    def op_truncate(self):
        p, n = self.file(), self.r.choice([0, 1, 5000])
        if p:
            os.truncate(p, n)
            self.stamp(p)

    def op_save(self):
        """As editors do: a new file over the old one."""
        p, data = self.file(), self.content()
        if p:
            tmp = p + "~"
            self.put(tmp, data, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.rename(tmp, p)

    def op_rewrite_same(self):
        """Copied up, and left as it was."""
        p = self.file()
        if p:
            st = os.lstat(p)
            with open(p, "r+b") as f:
                b = f.read(1)
                f.seek(0)
                f.write(b)
            os.utime(p, ns=(st.st_mtime_ns, st.st_mtime_ns))

    def op_mkdir(self):
        p, mode = self.place(), self.r.choice(DIR_MODES)
        os.mkdir(p)
        os.chmod(p, mode)

    def op_unlink(self):
        p = self.some(lambda m: not stat.S_ISDIR(m))
        if p:
            os.unlink(p)

    def op_remove(self):
        p = self.some()
        if p and self.r.random() < 0.6:
            self.remove(p)

    def op_recreate(self):
        """Away with a directory and a new one in its place: opaque."""
        p, n = self.some(stat.S_ISDIR), self.r.choice(NAMES)
        if p:
            self.remove(p)
            os.mkdir(p)
            self.put(f"{p}/{n}", b"new", os.O_WRONLY | os.O_CREAT)

    def op_rename(self):
        a, b = self.some(), self.place()
        if not a or b == a or b.startswith(a + "/"):
            return
        if self.how == "copy" and stat.S_ISDIR(os.lstat(a).st_mode):
            if os.path.lexists(b):
                return
            self.copy(a, b)
            self.remove(a)
        else:
            os.rename(a, b)

    def op_swap(self):
        a, b = self.some(), self.some()
        if not a or a == b or a.startswith(b + "/") or b.startswith(a + "/"):
            return
        if self.how == "copy" and any(stat.S_ISDIR(os.lstat(p).st_mode) for p in (a, b)):
            return
        t = "swap-t"
        os.rename(a, t)
        os.rename(b, a)
        os.rename(t, b)

    def op_chain(self):
        """A directory into one that was renamed itself."""
        a, b, n = self.some(stat.S_ISDIR), self.some(stat.S_ISDIR), self.r.choice(NAMES)
        if not a or not b or a == b or b.startswith(a + "/") or self.how == "copy":
            return
        os.rename(a, f"{b}/{n}")

    def op_symlink(self):
        p, t = self.place(), self.r.choice(["a", "b", "c/d", "nowhere", "./e"])
        os.symlink(t, p)
        self.stamp(p)

    def op_link(self):
        a, b = self.file(), self.place()
        if a:
            os.link(a, b)

    def op_chmod(self):
        p = self.some(lambda m: not stat.S_ISLNK(m))
        if p:
            d = stat.S_ISDIR(os.lstat(p).st_mode)
            os.chmod(p, self.r.choice(DIR_MODES + [0o555] if d else FILE_MODES))

    def op_utime(self):
        p = self.some(lambda m: not stat.S_ISDIR(m))
        if p:
            self.stamp(p)

    def op_xattr(self):
        p, n, v = self.some(lambda m: not stat.S_ISLNK(m)), self.r.choice(["user.x", "user.y"]), self.r.choice([b"", b"1", b"v" * 300])
        if p:
            os.setxattr(p, n, v)

    def op_delxattr(self):
        p = self.some(lambda m: not stat.S_ISLNK(m))
        names = sorted(xattrs(p)) if p else []
        if names:
            os.removexattr(p, names[0])

    def op_file_to_dir(self):
        p, n = self.some(lambda m: not stat.S_ISDIR(m)), self.r.choice(NAMES)
        if p:
            os.unlink(p)
            os.mkdir(p)
            self.put(f"{p}/{n}", b"in it", os.O_WRONLY | os.O_CREAT)

    def op_dir_to_file(self):
        p, link = self.some(stat.S_ISDIR), self.r.random() < 0.4
        if p and self.r.random() < 0.5:
            self.remove(p)
            if link:
                os.symlink("a", p)
                self.stamp(p)
            else:
                self.put(p, b"was a directory", os.O_WRONLY | os.O_CREAT)

    OPS = [op_create] * 5 + [op_create_new] * 2 + [op_append] * 3 + [op_overwrite] * 2 + [op_truncate, op_save, op_save, op_rewrite_same] + \
          [op_mkdir] * 5 + [op_unlink] * 2 + [op_remove, op_recreate] + [op_rename] * 6 + [op_swap, op_chain, op_symlink, op_symlink] + \
          [op_link] * 3 + [op_chmod] * 3 + [op_utime, op_xattr, op_xattr, op_delxattr, op_file_to_dir, op_dir_to_file]

    def run(self, count):
        trace = []
        for _ in range(count):
            # Its own generator for each: an operation that gives up early draws fewer numbers.
            op, self.r = self.r.choice(self.OPS), random.Random(self.r.getrandbits(64))
            try:
                op(self)
                trace.append(op.__name__[3:])
            except OSError as e:
                trace.append(f"{op.__name__[3:]}:{errno.errorcode.get(e.errno, e.errno)}")
        return trace


if __name__ == "__main__":
    os.umask(0o022)
    done = Tree(int(sys.argv[1]), sys.argv[3]).run(int(sys.argv[2]))
    print(json.dumps([done, listing()]))
