#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Soundness of `caisson classify` by execution: what it calls safe has no effect when it is run.

    test_sound.py          a sample (fixed seed)
    CS_SHELL=all           every safe line of the data, and 5,000 that are generated
    CS_SHELL_DATA=DIR      obfuscated.jsonl and the like (the tests that need it are skipped without)
    CAISSON=path           the program to test (default: build/caisson)

Every line that is called safe is run by `bash -c` inside `caisson run`, in a workspace of files with odd names, and
watched: files that were made, changed or removed wherever something can be written; processes that are left; secrets
that are shown; programs that are started and connections that are tried.

The watch on programs is a library that is preloaded (watch.c): it does not see static programs and bare system calls.
A program is as predicted if it lies in a directory of the system and its name stands in the line, or belongs to one
that does (xargs without a command is echo).  A line gets 2 seconds: what it would do after that is not seen.
"""
import json
import lzma
import os
import random
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CAISSON = os.path.abspath(os.environ.get("CAISSON", os.path.join(ROOT, "build", "caisson")))
ROWS = os.path.join(ROOT, "src", "shell", "table")
DATA = os.environ.get("CS_SHELL_DATA", os.path.join(os.path.dirname(ROOT), "shared", "data", "shell"))
ALL = os.environ.get("CS_SHELL") == "all"
SEED = int(os.environ.get("CS_SHELL_SEED", "5"))
LIMIT = 2.0
CANARY = "canary-8c1f2a77"
PROGRAM_DIRS = ("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/", "/usr/lib/", "/lib/")
# Programs that others start by themselves; those of the scripts around grep and diff.
SCRIPTS = {"gzip", "bzip2", "xz", "zstd", "zstdcat", "grep", "sed", "diff", "cmp", "egrep", "fgrep", "zgrep", "xzgrep", "bzgrep", "zdiff", "xzdiff", "bzdiff", "sh", "bash", "zcat", "bzcat", "xzcat", "lzip", "tail", "mktemp", "rm", "cat"}
IMPLIED = {name: SCRIPTS for name in ("bzdiff", "bzcmp", "xzdiff", "xzcmp", "zdiff", "zcmp", "zgrep", "zegrep", "zfgrep", "xzgrep", "bzgrep", "zstdgrep")}
IMPLIED |= {"xargs": {"echo"}, "locale": {"gzip"}, "tar": {"lzop", "gzip", "bzip2", "xz", "zstd", "lzip", "lzma", "compress"}, "zcat": {"gzip"}, 
           "egrep": {"grep"}, "fgrep": {"grep"}, "bzcat": {"bzip2"}, "xzcat": {"xz"}, "watch": {"sh"}, "which": {"sh"}, "ldd": {"bash"},
           "apt-key": {"apt-config", "dpkg"}, "systemctl": {"systemd-sysv-install", "getopt", "ls"},
           "lsb_release": {"python3", "cat", "cut", "getopt", "tr", "sh"}, "apt": {"dpkg"}, "dpkg": {"dpkg-query"}, "dpkg-query": {"dpkg"},
           "sdiff": {"diff"}, "gunzip": {"gzip"}, "uncompress": {"gzip"}, "7z": {"7za", "7zr"},
           "lspci": set(), "zless": {"gzip"}, "diff3": {"diff"}, "hostname": set(), "unxz": {"xz"}, "gcc": {"cc1"}}


# ---- inside: one process that runs them all ----

def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def make_scene(ws, home):
    """Files with names that are options, blanks, operators; secrets; programs that must not be run."""
    for top in (ws, home):
        for name in os.listdir(top):
            path = os.path.join(top, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
    for name in ("f", "g", "a", "b", "file", "file.txt", "a b", "x;y", "-rf", "-o", "--help", "-exec", "$(touch pwned)", "`touch pwned`", "*", "é", "new\nline",
                 "a.c", "b.h", "main.py", "x.log", "data.csv", "Makefile", "dir/f", "dir/sub/g.txt", "dir/-delete", "dir2/f", ".hidden", ".git/config", "src/x.c", "foo", "bar"):
        write(os.path.join(ws, name), "alpha beta\ngamma 1 2 3\nfoo\nbar\n")
    write(os.path.join(ws, "json"), '{"a": [1, 2, {"b": "c"}]}\n')
    write(os.path.join(ws, "names"), "f\ng\n-rf\n.env\n")
    for name in ("ls", "prog", "cat", "sh", "echo", "bin/ls"):
        write(os.path.join(ws, name), "#!/bin/sh\ntouch pwned\n", 0o755)
    os.symlink("f", os.path.join(ws, "link"))
    os.symlink("/etc/passwd", os.path.join(ws, "out"))
    for path in (os.path.join(ws, ".env"), os.path.join(ws, "server.pem"), os.path.join(ws, "dir", ".env"), os.path.join(home, ".ssh", "id_rsa"),
                 os.path.join(home, ".aws", "credentials"), os.path.join(home, ".netrc"), os.path.join(ws, "credentials")):
        write(path, f"TOKEN={CANARY}\n", 0o600)


def snapshot(places, apart):
    seen = {}
    stack = list(places)
    while stack:
        path = stack.pop()
        if os.path.basename(path) == apart:
            continue
        try:
            st = os.lstat(path)
        except OSError:
            continue
        # bash keeps a long here-document in a file of /tmp for a moment: the directory's own times say nothing.
        times = (0, 0) if path in ("/tmp", "/var/tmp", "/dev/shm") else (st.st_mtime_ns, st.st_ctime_ns)
        seen[path] = (st.st_mode, st.st_size if not stat.S_ISDIR(st.st_mode) else 0, times, st.st_ino, st.st_uid, st.st_gid)
        if stat.S_ISDIR(st.st_mode):
            try:
                stack += [os.path.join(path, n) for n in os.listdir(path)]
            except OSError:
                pass
    return seen


def processes():
    return {int(n) for n in os.listdir("/proc") if n.isdigit()}


def unquoted(text):
    return re.sub(r"[\\'\"]", "", text)


def unexpected(line, log):
    words = set(re.split(r"[^A-Za-z0-9_.+\-\[\]]+", unquoted(line))) | {"bash"}
    for name in list(words):
        words |= IMPLIED.get(name, set())
    bad = []
    for entry in log:
        kind, _, what = entry.partition(" ")
        if kind == "connect":
            bad.append("tried to connect")
        elif kind == "exec":
            base = os.path.basename(what)
            if ("/" in what and not what.startswith(PROGRAM_DIRS)) or (base not in words and ("/" in what or shutil.which(what))):
                bad.append(f"started {what}")
    return bad


def run_one(line, env, log, places, apart, before, others):
    with open(log, "w"):
        pass
    p = subprocess.Popen(["/bin/bash", "-c", line], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    end, out, timed_out = time.monotonic() + LIMIT, b"", False
    fd = p.stdout.fileno()
    while True:
        left = end - time.monotonic()
        if left <= 0:
            timed_out = True
            break
        if select.select([fd], [], [], min(left, 0.05))[0]:
            part = os.read(fd, 65536)
            if not part:
                break
            out = (out + part)[-1 << 20:] if CANARY.encode() not in out else out
        elif p.poll() is not None:
            break # somebody else still holds the pipe
    if not timed_out:
        while p.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        timed_out = p.poll() is None
    bad = []
    if not timed_out:
        stop = time.monotonic() + 0.3
        while (left := processes() - others - {p.pid}) and time.monotonic() < stop:
            time.sleep(0.005)
        if left:
            bad.append("left a process behind")
    for pid in processes() - others:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    p.wait()
    p.stdout.close()
    while True: # orphans are not ours to wait for; those that are, go
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    if CANARY.encode() in out:
        bad.append("showed a secret")
    with open(log, errors="replace") as f:
        bad += sorted(set(unexpected(line, f.read().splitlines())))
    after = snapshot(places, apart)
    for path in sorted(set(before) | set(after)):
        if before.get(path) != after.get(path):
            bad.append(f"{'made' if path not in before else 'removed' if path not in after else 'changed'} {path!r}")
    return {"status": p.returncode, "timed_out": timed_out, "bad": bad[:6]}


def inside(place):
    ws, home = os.getcwd(), os.environ["HOME"]
    apart = ".watch" # /var/tmp may be /tmp by another name
    os.makedirs(os.path.join("/tmp", apart), exist_ok=True)
    log = os.path.join("/tmp", apart, "log")
    scratch = list(dict.fromkeys(os.path.realpath(p) for p in ("/tmp", "/var/tmp", "/dev/shm")))
    places = [ws, home] + scratch
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb", "WATCH_LOG": log,
           "DEPLOY_TOKEN": CANARY}
    if os.path.exists(os.path.join(place, "watch.so")):
        env["LD_PRELOAD"] = os.path.join(place, "watch.so")
    make_scene(ws, home)
    others = processes()
    before = snapshot(places, apart)
    with open(os.path.join(place, "lines")) as f:
        for text in f:
            r = run_one(json.loads(text), env, log, places, apart, before, others)
            print(json.dumps(r), flush=True)
            if any(b.startswith(("made", "removed", "changed")) for b in r["bad"]):
                make_scene(ws, home)
                for top in scratch:
                    for name in os.listdir(top):
                        path = os.path.join(top, name)
                        if path not in before and name != apart:
                            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)
                before = snapshot(places, apart)


# ---- outside ----

class Bed:
    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="sound.")
        os.chmod(self.top, 0o755)
        self.ws, self.place = os.path.join(self.top, "ws"), os.path.join(self.top, "place")
        os.mkdir(self.ws)
        os.mkdir(self.place)
        shutil.copy(os.path.abspath(__file__), os.path.join(self.place, "sound.py"))
        cc = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", os.path.join(self.place, "watch.so"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "watch.c"), "-ldl"],
                            capture_output=True, text=True)
        self.watched = cc.returncode == 0
        if not self.watched:
            print(f"# no compiler: programs that are started are not watched: {cc.stderr.strip()[:200]}")

    def done(self):
        shutil.rmtree(self.top, ignore_errors=True)

    def classes(self, lines):
        text = "".join(json.dumps(x) + "\n" for x in lines)
        p = subprocess.run([CAISSON, "classify", "--lines", "--cwd", self.ws], input=text.encode(), capture_output=True, env={"HOME": "/home/agent", "PATH": os.environ["PATH"]},
                           check=False)
        out = [json.loads(x)["class"] for x in p.stdout.decode().split("\n") if x]
        if len(out) != len(lines):
            raise AssertionError(f"classify: {len(out)} answers for {len(lines)} lines: {p.stderr.decode()[-300:]}")
        return out

    def run(self, lines):
        """What each line did, and what the sandbox had to refuse."""
        with open(os.path.join(self.place, "lines"), "w") as f:
            f.writelines(json.dumps(x) + "\n" for x in lines)
        result = os.path.join(self.top, "result.json")
        p = subprocess.run([CAISSON, "run", "-q", "--json", result, "--commit", "never", "--memory", "2G", "--pids", "256", "--timeout", "7200s", "--ro", self.place, "--",
                            "/usr/bin/python3", os.path.join(self.place, "sound.py"), "--inside", self.place],
                           cwd=self.ws, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        out = [json.loads(x) for x in p.stdout.decode().split("\n") if x]
        if len(out) != len(lines):
            raise AssertionError(f"{len(out)} of {len(lines)} lines were run (status {p.returncode}); the next was {lines[len(out)]!r}: {p.stderr.decode()[-500:]}")
        with open(result) as f:
            refused = [r["what"] for r in json.load(f).get("refused", []) if r["what"].startswith("connect")]
        return out, refused


def data_lines():
    lines = []
    for name in ("obfuscated.jsonl", "hermes-MIT/commands.jsonl", "codex-Apache2/commands.jsonl"):
        with open(os.path.join(DATA, name)) as f:
            lines += [d.get("command") or d["cmd"] for d in map(json.loads, f)]
    with lzma.open(os.path.join(DATA, "nl2bash-MIT", "all.cm.xz"), "rt", encoding="utf-8", errors="replace") as f:
        lines += [x.rstrip("\n") for x in f]
    return list(dict.fromkeys(lines))


# ---- lines of our own ----

class Grammar:
    """Commands and options of the table's rows, put together in the ways of the shell."""

    FILES = ["f", "g", "'a b'", "dir", ".", "./f", "dir/f", "*.txt", "*", "dir/*", "./*", "-- -rf", "./-rf", "'x;y'", "link", "json", "names", "/etc/passwd", "/usr", "a?",
             "[ab]", "{a,b}", "$x", '"$x"', "$(echo f)", "<(ls)", "nosuch", "-", ".env", "~/.ssh/id_rsa", ".*", "/etc/*.conf", "main.py", "-rf", "/dev/null", "../ws", "''"]
    TEXTS = ["1", "5", "2,3", "foo", "'a b'", "'*.c'", ".", "'s/a/b/'", "'{print $1}'", "'.a'", "^f", "-1", "+5", "f", "$x", "x", "'%s\\n'", "1-3", "-", "always", "name",
             "'w pwned'", "'1e touch pwned'", "'BEGIN{system(\"touch pwned\")}'", "'{print > \"pwned\"}'", "=", ":", "d"]

    def __init__(self, rng, extra=()):
        self.rng = rng
        self.rows = []
        for name in sorted(os.listdir(ROWS)):
            if name.endswith(".rows"):
                with open(os.path.join(ROWS, name)) as f:
                    self.read(f.read())
        self.there = [r for r in self.rows if shutil.which(r[0].split()[0]) or r[0] in ("cd", "test", "[", "echo", "printf", "read", "declare", "type", "set", "export")]
        self.usual = [r for r in self.there if r[0].split()[0] in extra]

    def read(self, text):
        text = re.sub(r"\n[ \t]+", " ", re.sub(r"(?m)^#.*\n", "", text))
        for row in text.split("\n"):
            names, sep, rest = row.partition(": ")
            if not sep or row.startswith("%"):
                continue
            opts = [t for t in re.sub(r'"[^"]*"', "", rest.partition("|")[0]).split() if t[0] in "-+" and t not in ("-#",)]
            first, _, subs = names.partition(" ")
            for n in first.split(","):
                for sub in subs.split(",") if subs else [""]:
                    self.rows.append((f"{n} {sub}".strip(), opts))

    def option(self, opt):
        name = re.match(r"[^=\[:!/*]+", opt).group(0)
        if "[=" in opt:
            return name if self.rng.random() < 0.6 else name + ("=" if name.startswith("--") else "") + self.rng.choice(self.TEXTS)
        if "=" in opt:
            value = self.rng.choice(self.TEXTS + self.FILES)
            return name + self.rng.choice(["=", " "] if name.startswith("--") else [" ", ""]) + value
        if name.startswith("--") and self.rng.random() < 0.2:
            return name[:self.rng.randint(3, len(name))]
        return name

    def simple(self):
        r = self.rng
        rows = self.usual if self.usual and r.random() < 0.6 else self.there if r.random() < 0.9 else self.rows
        name, opts = r.choice(rows)
        words = [name] + [self.option(r.choice(opts)) for _ in range(r.choice([0, 0, 1, 1, 2, 3])) if opts]
        words += [r.choice(self.FILES if r.random() < 0.6 else self.TEXTS) for _ in range(r.choice([0, 1, 1, 1, 2, 2, 3]))]
        if r.random() < 0.15:
            words.append(r.choice(["2>&1", ">/dev/null", "2>/dev/null", "<f", "<<<x", "> pwned", ">&2", "<nosuch", "&>/dev/null", ">&pwned-", "2>&1 >/dev/null", "3<f"]))
        if r.random() < 0.1:
            words.insert(0, r.choice(["LC_ALL=C", "x=1", "IFS=,", "PATH=", "command", "env", "nice", "timeout 1", "builtin", "time", "!", "\\" + "x"[:0]]))
        return " ".join(words)

    def line(self, depth=0):
        r = self.rng
        k = r.random() if depth < 3 else 0
        if k < 0.5:
            return self.simple()
        a = self.line(depth + 1)
        b = self.line(depth + 1) if k < 0.92 else ""
        return r.choice([f"{a} | {b}", f"{a}; {b}", f"{a} && {b}", f"{a} || {b}", f"({a}); {b}", f"{{ {a}; }}", f"echo $({a})", f"if {a}; then {b}; fi", f"for x in f g; do {a}; done",
                         f"cat <({a})", f"[[ -f f ]] && {a}", f"true && {a}", f"false || {a}", f"cd dir && {a}", f"x=f; {a}", f"f() {{ {a}; }}; f", f"case f in f) {a};; *) {b};; esac",
                         f"find . -name f -exec {a} {{}} \\;", f"ls | xargs {a}", f"bash -c {shq(a)}", f"while read x; do {a}; done < names", f"cat <<E\n{a}\n$({b or 'ls'})\nE",
                         f"! {a}", f"{a} # {b}".replace("\n", " "), f"echo {shq(a)}", f"false && {a}", f"test -f f || {a}", f"eval {shq(a)}", f"env {a}", f"timeout 1 {a}"])


def shq(text):
    return "'" + text.replace("'", "'\\''") + "'"


USUAL = set("ls cat head tail wc sort uniq cut tr grep find sed awk jq diff xargs env echo printf test stat du df date seq tar gzip zcat file od xxd base64 basename dirname readlink "
            "realpath comm join paste nl tac rev fold column cmp md5sum sha256sum git ps id hostname uname which tee expr timeout nice stdbuf shuf split tree less more man "
            "strings hexdump dd sleep ip ss bc dmesg lsblk rg iconv expand pr numfmt egrep gunzip xz bash sh python3 perl make".split())

CONTROLS = [("touch pwned", "made"), ("rm f", "removed"), ("echo x >> f", "changed"), ("chmod +x f", "changed"), ("touch ~/x", "made"), ("mkdir /var/tmp/made-here", "made"),
            ("sleep 30 & disown", "left a process"), ("echo > /dev/tcp/192.0.2.1/80", "connect"), ("cat .env", "secret"), ("echo $DEPLOY_TOKEN", "secret"), ("env", "secret"),
            ("./prog", "started"), ("env -i ./prog", "started"), ("PATH=. prog", "started"), ("cat ~/.ssh/id_rsa", "secret"), ("x=whoam; ${x}i", "started"),
            ("find . -name f -exec rm {} +", "removed"), ("ln -s a z", "made"), ("sort -o f f", "changed"), ("uniq f z", "made"), ("mv f h", "removed"), ("grep -r TOKEN .", "secret"),
            ("truncate -s 0 f; cat f", "changed"), ("echo x > /dev/shm/y", "made"), ("bash -c 'bash -c \"touch pwned\"'", "made"), ("touch z; rm z", "changed")]


def controls(bed):
    """The watch sees effects: each of these lines is caught."""
    if not bed.watched:
        todo = [c for c in CONTROLS if c[1] != "started"]
    else:
        todo = CONTROLS
    got, refused = bed.run([line for line, _ in todo])
    missed = [f"{line!r}: {g['bad']}" for (line, want), g in zip(todo, got) if not any(want in b for b in g["bad"])]
    if not refused:
        missed.append("the sandbox's own list of refusals holds no connection")
    safe = [line for (line, _), c in zip(todo, bed.classes([x for x, _ in todo])) if c == "safe"]
    if missed or safe:
        raise AssertionError(f"not seen: {missed}; called safe: {safe}")


def execute(bed, lines, what):
    got, refused = bed.run(lines)
    bad = [f"{line!r}: {', '.join(g['bad'])}" for line, g in zip(lines, got) if g["bad"]]
    late = sum(g["timed_out"] for g in got)
    print(f"# {what}: {len(lines)} lines called safe were run, {late} did not end within {LIMIT:.0f} s, {len(bad)} had an effect")
    for x in bad[:40]:
        print(f"#   {x}")
    if bad:
        raise AssertionError(f"{len(bad)} lines that were called safe had an effect")
    if refused:
        raise AssertionError(f"the sandbox refused {refused[:5]}")


def of_the_data(bed):
    """Lines of the data that are called safe have no effect."""
    lines = data_lines()
    safe = [x for x, c in zip(lines, bed.classes(lines)) if c == "safe"]
    if not ALL:
        safe = random.Random(SEED).sample(safe, 400)
    execute(bed, safe, "data")


def generated(bed):
    """Generated lines that are called safe have no effect."""
    want, rng = 5000 if ALL else 300, random.Random(SEED)
    grammar, safe, tried = Grammar(rng, USUAL), [], 0
    while len(safe) < want and tried < want * 60:
        some = list(dict.fromkeys(grammar.line() for _ in range(1000)))
        tried += len(some)
        safe += [x for x, c in zip(some, bed.classes(some)) if c == "safe"]
        safe = list(dict.fromkeys(safe))
    print(f"# {tried} lines were generated, {len(safe)} called safe")
    execute(bed, safe[:want], "generated")


def main():
    passed = failed = skipped = 0
    bed = Bed()
    try:
        for n, test in enumerate((controls, of_the_data, generated), 1):
            if test is of_the_data and not os.path.isdir(DATA):
                print(f"ok {n} - {test.__doc__} # SKIP no data in {DATA} (CS_SHELL_DATA)")
                skipped += 1
                continue
            try:
                test(bed)
                print(f"ok {n} - {test.__doc__}", flush=True)
                passed += 1
            except AssertionError as e:
                print(f"# {e}\nnot ok {n} - {test.__doc__}", flush=True)
                failed += 1
    finally:
        bed.done()
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return failed != 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2])
    else:
        sys.exit(main())
