#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`caisson classify` and `caisson sh` by their effects.

    test_sh.py [WORD]      run the tests whose sentence holds WORD
    CAISSON=path           the program to test (default: build/caisson)

Every test runs as the calling user and, when that is root, again as an ordinary user.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
from test_run import Suite, check, equal, holds, lacks  # noqa: E402

test = Suite()


def workspace(m, **files):
    d = m.fresh("sh")
    for name, text in files.items():
        m.put(os.path.join(d, name), text)
    return d


def run_sh(m, ws, command, *args):
    """What `caisson sh` did, with what --json wrote."""
    out = os.path.join(m.fresh("json"), "r")
    r = m.cmd("sh", "-w", ws, "--json", out, *args, command, cwd=ws, env={"CAISSON_STATE": m.fresh("state")})
    with open(out, encoding="utf-8") as f:
        r.result = json.load(f)
    return r


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


@test("classify: a class, effects, reasons and an exit status for each of the three")
def _(m):
    for command, name, status in (("ls -l", "safe", 0), ("touch x", "uncertain", 10), ("rm -rf /srv/data", "unsafe", 11)):
        r = m.cmd("classify", "--json", command)
        equal((r.status, json.loads(r.out)["class"]), (status, name), command)
        r = m.cmd("classify", command)
        equal((r.status, r.out.splitlines()[0]), (status, name), command)
    v = json.loads(m.cmd("classify", "--json", "echo a; rm -rf /srv/data").out)
    e = [x for x in v["effects"] if x["forbidden"]]
    equal([(x["effect"], x["object"], x["by"]) for x in e], [("delete", "/srv/data", "rm")], "effects")
    equal("echo a; rm -rf /srv/data"[e[0]["at"]:e[0]["at"] + e[0]["length"]], "/srv/data", "where it stands")


@test("classify: many lines, in order; what is no JSON string is an error with its line")
def _(m):
    lines = ["ls", "rm -rf /srv/data", "echo 'a\nb' | wc", "touch x", "echo \"unclosed"]
    r = m.cmd("classify", "--lines", input="".join(json.dumps(x) + "\n" for x in lines).encode())
    equal((r.status, [json.loads(x)["class"] for x in r.out.splitlines()]), (0, ["safe", "unsafe", "safe", "uncertain", "uncertain"]), "classes")
    r = m.cmd("classify", "--lines", input=b'"ls"\nls\n')
    equal(r.status, 125, "status")
    holds(r.err, "line 2", "message")


@test("classify: control characters of a command do not reach the terminal")
def _(m):
    r = m.cmd("classify", "echo '\x1b]0;title\x07'")
    lacks(r.out + r.err, "\x1b", "output")
    equal(r.status, 10, "status")


@test("classify: a profile says what may be read and what is secret")
def _(m):
    d = workspace(m)
    m.put(f"{d}/p.yaml", "extends: none\nfiles:\n  read: [/usr]\n  hide: ['*.secret']\n")
    for command, name in (("cat /usr/a", "safe"), ("cat /srv/a", "uncertain"), ("cat a.secret", "unsafe"), ("cat a.txt", "safe")):
        r = m.cmd("classify", "--json", "--profile", f"{d}/p.yaml", command, cwd=d)
        equal(json.loads(r.out)["class"], name, command)


@test("sh: what is safe runs at once, cannot write, and needs no shell when its words are literal")
def _(m):
    ws = workspace(m, a="b\na\nb\n")
    r = run_sh(m, ws, "sort a | uniq -c | sort -rn")
    equal((r.status, r.out.split(), r.result["path"]), (0, ["2", "b", "1", "a"], "safe, without a shell"), "a pipeline")
    r = run_sh(m, ws, "cat a")
    equal((r.status, r.out, r.result["path"]), (0, "b\na\nb\n", "safe, without a shell"), "one command")
    r = run_sh(m, ws, "for x in 1 2; do echo $x; done")
    equal((r.status, r.out, r.result["path"]), (0, "1\n2\n", "safe"), "a loop")
    equal(r.result["transaction"], None, "transaction")


@test("sh: the status of a pipeline is its last command's; a missing command is 127")
def _(m):
    ws = workspace(m, a="x\n")
    equal(run_sh(m, ws, "cat a | grep -q y").status, 1, "grep")
    equal(run_sh(m, ws, "cat nothere | wc -l").status, 0, "wc")
    equal(run_sh(m, ws, "head -c 1000000 /dev/zero | head -c 1").status, 0, "a reader that leaves")


@test("sh: what is uncertain is a transaction, committed when it ended well and changed what was predicted")
def _(m):
    ws = workspace(m, a="one\n")
    r = run_sh(m, ws, "sed -i s/one/two/ a")
    equal((r.status, r.result["path"], r.result["fate"], read(ws, "a")), (0, "transaction", "committed", "two\n"), "sed -i")
    equal((r.result["changes_predicted"], r.result["changes_not_predicted"]), (1, 0), "changes")


@test("sh: a command that fails is rolled back, or kept when that is asked for")
def _(m):
    ws = workspace(m, a="one\n")
    r = run_sh(m, ws, "echo two > a; false")
    equal((r.status, read(ws, "a")), (1, "one\n"), "rolled back")
    holds(r.err, "rolled back", "message")
    r = run_sh(m, ws, "echo two > a; false", "--keep-failed")
    equal((r.status, r.result["fate"], read(ws, "a")), (1, "pending", "one\n"), "kept")


@test("sh: changes that were not predicted are named, and not committed unasked")
def _(m):
    ws = workspace(m, a="one\n")
    r = run_sh(m, ws, "python3 -c \"open('surprise', 'w').write('x')\"")
    equal((r.status, r.result["changes_not_predicted"], r.result["fate"]), (0, 1, "pending"), "result")
    holds(r.err, "not predicted: surprise", "message")
    check(not os.path.exists(f"{ws}/surprise"), "it is not in the workspace")


@test("sh: what is unsafe does not run")
def _(m):
    ws = workspace(m, a="one\n")
    r = run_sh(m, ws, "echo gone > a; rm -rf /srv/data")
    equal((r.status, r.result["path"], r.result["class"], read(ws, "a")), (125, "refused", "unsafe", "one\n"), "result")
    holds(r.err, "/srv/data", "message")


@test("bad usage of classify and sh is an error that says what is right")
def _(m):
    for args in (["classify"], ["classify", "ls", "-l"], ["classify", "--lines", "ls"], ["classify", "--cwd", "x", "ls"], ["sh"], ["sh", "a", "b"],
                 ["sh", "--profile", "nosuch", "ls"]):
        r = m.cmd(*args)
        equal((r.status, r.out), (125, ""), f"{args}")
        check(r.err.startswith("caisson: "), f"{args}: {r.err}")


if __name__ == "__main__":
    test.main()
