# SPDX-License-Identifier: Apache-2.0
"""A workspace with something of everything, and a program that changes all of it.

    scene.build(dir)         the workspace before, made from nothing each time: the engine
                             goes by inode numbers and change times, which no copy keeps
    scene.py WORD            the program, inside the sandbox: changes the current directory
                             and prints what it then sees, as look() has it, in JSON
    scene.look(dir)          everything that is promised about a tree
    scene.differ(a, b)       where two such looks are not the same, in words

What the program saw when it ended is what a commit must make of the workspace, so
"after" is never computed: it is the program's own look.
"""
import json
import os
import shutil
import stat
import sys

OLD = 1_500_000_000  # seconds; every entry gets a time of its own
ODD = os.fsdecode(b"odd\xff\xfe\x01")
ODD_NEW = os.fsdecode(b"new\xfe\n")
LONG, LONG_NEW, LONG_DIR = "n" * 255, "m" * 255, "d" * 255
PARTS = ("mod", "deldir", "many", "type/f2d", "ro/inner")  # what a partial commit asks for


# ---- looking ----


def entry(path, name, links):
    st = os.lstat(path)
    e = {"type": stat.S_IFMT(st.st_mode), "mode": stat.S_IMODE(st.st_mode), "mtime": st.st_mtime_ns}
    if stat.S_ISLNK(st.st_mode):
        e["target"] = os.readlink(path)
        return e
    if stat.S_ISREG(st.st_mode):
        e["size"] = st.st_size
        with open(path, "rb") as f:
            e["data"] = f.read().hex() if st.st_size < 4096 else hash_of(f)
        if st.st_nlink > 1:
            links.setdefault(st.st_ino, []).append(name)
    x = {n: os.getxattr(path, n).hex() for n in os.listxattr(path) if n.startswith("user.") and not n.startswith("user.overlay.")}
    if x:
        e["xattrs"] = x
    return e


def hash_of(f):
    import zlib
    return f"crc {zlib.crc32(f.read())}"


def look(top):
    links, seen = {}, {}
    todo = [""]
    while todo:
        at = todo.pop()
        path = os.path.join(top, at) if at else top
        e = seen[at or "."] = entry(path, at, links)
        if e["type"] == stat.S_IFDIR:
            todo += [os.path.join(at, n) for n in os.listdir(path)]
    for names in links.values():
        if len(names) > 1:
            for n in names:
                seen[n]["same file as"] = sorted(x for x in names if x != n)
    return seen


def owners(top):
    """Who owns what: apart, because inside a sandbox the numbers are others."""
    seen = {}
    for path, dirs, files in os.walk(top):
        for n in ["."] + dirs + files:
            st = os.lstat(os.path.join(path, n))
            seen[os.path.relpath(os.path.join(path, n), top)] = (st.st_uid, st.st_gid)
    return seen


def differ(a, b, most=6):
    out = []
    for name in sorted(set(a) | set(b)):
        if name not in a or name not in b:
            out.append(f"{name[:40]!r} only in the {'first' if name in a else 'second'}")
        elif a[name] != b[name]:
            keys = [k for k in sorted(set(a[name]) | set(b[name])) if a[name].get(k) != b[name].get(k)]
            out.append(f"{name[:40]!r}: " + ", ".join(f"{k} {str(a[name].get(k))[:40]} / {str(b[name].get(k))[:40]}" for k in keys))
    return out[:most] + ([f"and {len(out) - most} more"] if len(out) > most else [])


# ---- before ----


def put(path, text, mode=0o644):
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)


def tree(top, names):
    for n in names:
        path = os.path.join(top, n)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if n.endswith("/"):
            os.makedirs(path, exist_ok=True)
        else:
            put(path, f"{n[-40:]!a} before\n")


CLOSED = ("ro/inner/sub", "ro/inner", "ro", "rodel/sub", "rodel", "roswap", "roren")


def build(top, uid, foreign=False):
    """foreign: some files belong to somebody else (root's workspace)."""
    os.mkdir(top, 0o755)
    tree(top, ["mod", "mod2", "del", "keep/a", "keep/sub/b", "deldir/a", "deldir/sub/b", "recr/old1", "recr/old2", "recr/sub/x",
               "frename", "keep/frename2", "type/f2d", "type/d2f/x", "type/d2f/sub/y", "type/f2l", "type/d2l/x", "ren/a", "ren/sub/b", "ren/gone", "ren2/a", "s1/one", "s2/two",
               "rp/child/in", "rp/rest", "deep/1/2/3/4/f", "deep/1/2/g", "chmod/x", "mtime/x", "xset/x", "xchange/x",
               "ro/f", "ro/g", "ro/inner/f", "ro/inner/sub/f", "rodel/f", "rodel/sub/f", "roswap/f", "roren/f",
               "hl/1", "hl/3", "empty/", "emptied/only", "fmode", "fmtime", "fxattr", "fxdel", ODD, LONG, LONG_DIR + "/f"])
    for a, b in (("hl/1", "hl/2"), ("hl/3", "hl/4")):
        os.link(f"{top}/{a}", f"{top}/{b}")
    for name, to in (("type/l2f", "../mod"), ("type/l2d", "../keep"), ("type/l2l", "f2d"), ("type/lsame", "nowhere")):
        os.symlink(to, f"{top}/{name}")
    put(f"{top}/big", b"0123456789abcdef" * 8192)
    os.setxattr(f"{top}/xchange", "user.a", b"before")
    os.setxattr(f"{top}/xchange", "user.gone", b"\0\1")
    os.setxattr(f"{top}/fxattr", "user.a", b"before")
    os.setxattr(f"{top}/fxdel", "user.b", b"before")
    os.setxattr(f"{top}/keep/a", "user.kept", b"x")
    os.chmod(f"{top}/mod2", 0o600)
    every = []
    for path, dirs, files in os.walk(top):
        every += [os.path.join(path, n) for n in dirs + files]
    if uid != os.geteuid():
        for p in every + [top]:
            os.chown(p, uid, uid, follow_symlinks=False)
    if foreign:
        for p in ("keep/sub/b", "ren/sub/b"):  # the sandbox has no number for them: it can move, not remove them
            os.chown(f"{top}/{p}", 12345, 12346)
    for p in CLOSED:
        os.chmod(f"{top}/{p}", 0o555)
    for i, p in enumerate(sorted(every, key=len, reverse=True) + [top]):  # children first
        t = (OLD + i) * 10**9 + 123456789 + i
        os.utime(p, ns=(t, t), follow_symlinks=False)


# ---- the program ----


def move(a, b):
    """As mv(1): a directory that cannot be renamed (user's overlayfs) is copied."""
    try:
        os.rename(a, b)
    except OSError:
        shutil.copytree(a, b, symlinks=True)
        shutil.rmtree(a)


def act_small():
    """A handful of changes: for tests in which every step costs much."""
    put("mod", "after\n")
    os.unlink("del")
    shutil.rmtree("deldir")
    os.mkdir("many")
    for i in range(3):
        put(f"many/{i}", f"new {i}\n")
    os.chmod("chmod", 0o700)


def act():
    put("mod", "after\n")
    with open("mod2", "a") as f:
        f.write("more\n")
    with open("big", "r+b") as f:
        f.seek(65536)
        f.write(b"changed")
    os.unlink("del")
    shutil.rmtree("deldir")
    shutil.rmtree("recr")
    os.makedirs("recr/new/in")
    put("recr/old1", "another one\n")
    put("recr/new/in/f", "new\n")

    os.unlink("type/f2d")
    tree("type", ["f2d/in/f", "f2d/g"])
    shutil.rmtree("type/d2f")
    put("type/d2f", "now a file\n", 0o755)
    for name, to in (("f2l", "f2d"), ("d2l", "../mod"), ("l2l", "d2f")):
        path = f"type/{name}"
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        os.symlink(to, path)
    os.unlink("type/l2f")
    put("type/l2f", "now a file\n")
    os.unlink("type/l2d")
    tree("type", ["l2d/f"])

    move("ren", "moved")
    put("moved/a", "renamed and edited\n")
    os.unlink("moved/gone")
    put("moved/sub/new", "new in a renamed one\n")
    os.mkdir("newp")
    os.rename("frename", "frenamed")
    os.rename("keep/frename2", "newp/frenamed2")
    move("ren2", "newp/ren2")
    move("s1", "s")
    move("s2", "s1")
    move("s", "s2")
    move("rp/child", "child")
    shutil.rmtree("rp")
    put("deep/1/2/3/4/f", "deep\n")
    put("deep/1/2/3/new", "deep\n")
    os.unlink("deep/1/2/g")

    os.chmod("chmod", 0o700)
    os.setxattr("xset", "user.new", b"value")
    os.setxattr("xchange", "user.a", b"after")
    os.removexattr("xchange", "user.gone")
    os.utime("mtime", ns=(10**18, 10**18 + 7))
    os.chmod("fmode", 0o755)
    os.utime("fmtime", ns=(10**18, 10**18 + 9))
    os.setxattr("fxattr", "user.a", b"after")
    os.removexattr("fxdel", "user.b")

    for d in ("ro", "ro/inner", "ro/inner/sub", "rodel", "rodel/sub", "roswap", "roren"):
        os.chmod(d, 0o755)
    put("ro/f", "after\n")
    os.unlink("ro/g")
    put("ro/h", "new\n")
    put("ro/inner/new", "new\n")
    shutil.rmtree("ro/inner/sub")
    os.chmod("ro/inner", 0o555)
    os.chmod("ro", 0o555)
    shutil.rmtree("rodel")
    shutil.rmtree("roswap")
    put("roswap", "now a file\n")
    os.chmod("roren", 0o555)
    try:
        os.rename("roren", "roren2")
    except OSError:
        pass  # it may not be renamed, or not in this overlayfs
    tree(".", ["ronew/sub/f", "ronew/g"])
    os.chmod("ronew/sub", 0o555)
    os.chmod("ronew", 0o555)

    put("hl/1", "no longer the second one\n")
    os.unlink("hl/3")
    put("hl/5", "two names\n")
    os.link("hl/5", "hl/6")
    os.link("hl/5", "newp/7")
    os.rmdir("empty")
    os.mkdir("empty2")
    os.unlink("emptied/only")
    put(ODD, "after\n")
    put(ODD_NEW, "new\n")
    put(LONG, "after\n")
    put(LONG_NEW, "new\n")
    shutil.rmtree(LONG_DIR)
    os.mkdir("many")
    for i in range(40):
        put(f"many/{i}", f"new {i}\n")
    os.mkdir("many/sub")
    os.symlink("../1", "many/sub/link")
    os.setxattr(".", "user.top", b"after")
    os.chmod(".", 0o711)


def partial(before, after, paths):
    """What is to be expected when only these paths are committed."""
    def asked(n):
        return any(n == p or n.startswith(p + "/") for p in paths)
    want = {n: e for n, e in before.items() if not asked(n)}
    want.update((n, e) for n, e in after.items() if asked(n))
    for p in paths:  # the directory in which it stands has the time that the program saw, if that changed
        if p in before and p in after and before[p]["type"] == after[p]["type"] == stat.S_IFDIR:
            continue
        up = os.path.dirname(p) or "."
        want[up] = dict(want[up], mtime=after[up]["mtime"])
    return want


if __name__ == "__main__":
    act_small() if sys.argv[1] == "small" else act()
    json.dump(look("."), sys.stdout)
