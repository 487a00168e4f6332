# SPDX-License-Identifier: Apache-2.0
"""A step of a random history, inside a session or in a plain directory.

    session_walk.py SEED OPS     make OPS random changes in the current directory (0: none) and
                                 print what it then looks like, in JSON

The same seed in the same tree makes the same changes, so a plain copy of the workspace is the model.
Everything that may be needed is opened first: what root may on the host, the sandbox's user may not.
"""
import json
import os
import stat
import sys


class Dice:
    """random without its import, which takes longer than a whole step."""

    def __init__(self, seed):
        self.x = (seed * 2654435761 + 12345) & 0xffffffffffffffff

    def below(self, n):
        self.x = (self.x * 6364136223846793005 + 1442695040888963407) & 0xffffffffffffffff
        return (self.x >> 33) % n

    def pick(self, some):
        return some[self.below(len(some))]


def look(top="."):
    seen, todo = {}, [""]
    while todo:
        at = todo.pop()
        path = os.path.join(top, at) if at else top
        st = os.lstat(path)
        e = [stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), st.st_mtime_ns]
        if stat.S_ISLNK(st.st_mode):
            e[1] = os.readlink(path)
        elif stat.S_ISREG(st.st_mode):
            if st.st_mode & 0o400:
                with open(path, "rb") as f:
                    e.append(f.read().hex())
        if not stat.S_ISLNK(st.st_mode) and st.st_mode & 0o400:
            e.append(sorted([n, os.getxattr(path, n).hex()] for n in os.listxattr(path) if n.startswith("user.") and not n.startswith("user.overlay.")))
        seen[at or "."] = e
        if stat.S_ISDIR(st.st_mode):
            todo += [os.path.join(at, n) for n in os.listdir(path)]
    return seen


def is_dir(p):
    return os.path.isdir(p) and not os.path.islink(p)


def remove(p):
    if is_dir(p):
        os.chmod(p, 0o755)
        for n in sorted(os.listdir(p)):
            remove(os.path.join(p, n))
        os.rmdir(p)
    elif os.path.lexists(p):
        os.unlink(p)


def copy(a, b):
    if os.path.islink(a):
        os.symlink(os.readlink(a), b)
    elif is_dir(a):
        mode = stat.S_IMODE(os.stat(a).st_mode)
        os.mkdir(b)
        for n in sorted(os.listdir(a)):
            copy(os.path.join(a, n), os.path.join(b, n))
        os.chmod(b, mode)
    else:
        mode = stat.S_IMODE(os.stat(a).st_mode)
        os.chmod(a, mode | 0o400)
        with open(a, "rb") as f, open(b, "wb") as g:
            g.write(f.read())
        os.chmod(a, mode)
        os.chmod(b, mode)


def write(p, text):
    if os.path.islink(p) or is_dir(p):
        remove(p)
    if os.path.exists(p):
        os.chmod(p, 0o644)
    with open(p, "w") as f:
        f.write(text)
    os.chmod(p, 0o644)


def places():
    """Every directory, and every path, sorted; all of them can be written to afterwards."""
    dirs, every, todo = [], [], ["."]
    while todo:
        d = todo.pop()
        dirs.append(d)
        if stat.S_IMODE(os.stat(d).st_mode) & 0o700 != 0o700:
            os.chmod(d, 0o755)
        for n in sorted(os.listdir(d)):
            p = os.path.join(d, n)
            every.append(p)
            if is_dir(p):
                todo.append(p)
    return sorted(dirs), sorted(every)


NAMES = ["a", "b", "c", "d1", "d2", "x y", "\u00fc"]


def change(dice, serial):
    dirs, every = places()
    at = os.path.join(dice.pick(dirs), dice.pick(NAMES))
    old = dice.pick(every) if every else at
    what = dice.below(15)
    if what <= 2 or not os.path.lexists(old):
        write(at, f"text {serial}\n" * (1 + dice.below(4)))
    elif what == 3 and os.path.isfile(old) and not os.path.islink(old):
        os.chmod(old, 0o644)
        with open(old, "a") as f:
            f.write(f"more {serial}\n")
    elif what <= 5:
        remove(old)
    elif what <= 7:
        remove(at)
        os.mkdir(at)
        write(f"{at}/in", f"new {serial}\n")
    elif what == 8:  # gone and there again: opaque
        if is_dir(old):
            names = os.listdir(old)
            remove(old)
            os.mkdir(old)
            if names and dice.below(2):
                write(os.path.join(old, sorted(names)[0]), f"again {serial}\n")
        else:
            remove(old)
            write(old, f"again {serial}\n")
    elif what == 9:
        remove(at)
        os.symlink(dice.pick(["a", "../b", "nowhere", "/etc"]), at)
    elif what == 10 and not os.path.islink(old):
        os.chmod(old, dice.pick([0o700, 0o755, 0o555, 0o500] if is_dir(old) else [0o600, 0o755, 0o444, 0o400]))
    elif what == 11 and not os.path.islink(old):
        t = (1_400_000_000 + serial) * 10**9 + 1234
        os.utime(old, ns=(t, t))
    elif what == 12 and not os.path.lexists(at) and not (at + "/").startswith(old + "/") and at != old:
        try:
            os.rename(old, at)
        except OSError:
            copy(old, at)
            remove(old)
    elif what == 13 and os.path.isfile(old) and not os.path.islink(old):  # of another type
        remove(old)
        os.mkdir(old)
    elif what == 14 and not os.path.islink(old):
        if not is_dir(old):
            os.chmod(old, 0o644)
        if os.listxattr(old) and "user.test" in os.listxattr(old):
            os.removexattr(old, "user.test")
        else:
            os.setxattr(old, "user.test", b"%d" % serial)


def close_some(dice):
    dirs, every = places()
    for p in reversed(dirs[1:]):
        if dice.below(5) == 0:
            os.chmod(p, 0o555)


def main():
    seed, ops = int(sys.argv[1]), int(sys.argv[2])
    dice = Dice(seed)
    for i in range(ops):
        change(dice, seed % 1000 * 100 + i)
    if ops:
        close_some(dice)
    json.dump(look(), sys.stdout)


if __name__ == "__main__":
    main()
