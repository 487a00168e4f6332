#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`caisson classify` and `caisson sh` by their effects.

    test_sh.py [WORD]      run the tests whose sentence holds WORD
    CAISSON=path           the program to test (default: build/caisson)

Every test runs as the calling user and, when that is root, again as an ordinary user.
"""
import json
import os
import pty
import select
import sys
import time

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


def at_terminal(m, ws, command, answers, *args):
    """The same with a person: answers are typed one after another, each when a question stands there."""
    out = os.path.join(m.fresh("json"), "r")
    master, slave = pty.openpty()
    p = m.popen([m.caisson, "sh", "-w", ws, "--json", out, *args, command], cwd=ws, env={"CAISSON_STATE": m.fresh("state")}, stdin=slave, stderr=slave)
    os.close(slave)
    text, asked, end = "", 0, time.monotonic() + 20
    while time.monotonic() < end:
        if not select.select([master], [], [], 0.2)[0]:
            if p.poll() is not None:
                break
            continue
        try:
            text += os.read(master, 65536).decode("utf-8", "replace")
        except OSError:
            break
        if asked < len(answers) and text.rstrip().endswith(("[y/n]", "[k]eep")):
            os.write(master, answers[asked].encode() + b"\n")
            asked, text = asked + 1, text + "\n"
    os.close(master)
    p.communicate(timeout=10)
    with open(out, encoding="utf-8") as f:
        result = json.load(f)
    return p.returncode, result, text


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
    for command in ("git status", "go build", "cargo build", "pip list"):
        name = command.split()[0]
        lacks(m.cmd("classify", command).out, f"{name} {name} ", "the name once, before what it does")


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


@test("classify: a link counts for where it leads when that is asked for, and the reason names both")
def _(m):
    d, far = workspace(m, a="x\n"), m.fresh("far")
    os.makedirs(f"{far}/.ssh")
    m.put(f"{far}/.ssh/id_rsa", "key")
    for name, target in (("key", f"{far}/.ssh/id_rsa"), ("inner", "a"), ("out", "/srv"), ("dangling", "/srv/nothere"), ("k.txt", "key")):
        os.symlink(target, f"{d}/{name}")
    for command, words, really in (("cat key", "safe", "unsafe"), ("cat inner", "safe", "safe"), ("cat out/x", "safe", "uncertain"), ("cat *.txt", "safe", "unsafe"),
                                   ("echo > dangling", "uncertain", "unsafe"), ("cat out/../nothere", "safe", "uncertain"), ("cat nothere", "safe", "safe")):
        for flags, want in (([], words), (["--resolve"], really)):
            r = m.cmd("classify", "--json", "-p", "default", *flags, command, cwd=d)
            v = json.loads(r.out)
            equal(v["class"], want, f"{command} {flags}")
    v = json.loads(m.cmd("classify", "--json", "--resolve", "cat key", cwd=d).out)
    check(any(f"{d}/key leads to {far}/.ssh/id_rsa" in b for b in v["because"]), f"the reason: {v['because']}")
    r = m.cmd("classify", "--resolve", "--lines", cwd=d, input=b'"cat key"\n"cat inner"\n')
    equal([json.loads(x)["class"] for x in r.out.splitlines()], ["unsafe", "safe"], "lines")


@test("sh: a link out of what may be read, or to a secret, is not followed unasked")
def _(m):
    ws, far = workspace(m, a="x\n"), m.fresh("far")
    m.put(f"{far}/credentials", "secret\n")
    os.symlink(f"{far}/credentials", f"{ws}/link")
    r = run_sh(m, ws, "cat link")
    equal((r.status, r.result["path"], r.out), (125, "refused", ""), "cat link")
    holds(r.err, f"{far}/credentials", "message")
    os.symlink("a", f"{ws}/inner")
    r = run_sh(m, ws, "cat inner")
    equal((r.status, r.out, r.result["path"]), (0, "x\n", "safe, without a shell"), "a link within")


@test("sh: paths mean what they mean where the command runs, also below the workspace's root")
def _(m):
    ws = workspace(m, a="top\n")
    os.makedirs(f"{ws}/sub")
    m.put(f"{ws}/sub/b", "below\n")
    if m.uid:
        os.chown(f"{ws}/sub", m.uid, m.uid)
    out = os.path.join(m.fresh("json"), "r")
    for command, want in (("cat b", "below\n"), ("cat ../a", "top\n")):
        r = m.cmd("sh", "-w", ws, "--json", out, command, cwd=f"{ws}/sub", env={"CAISSON_STATE": m.fresh("state")})
        equal((r.status, r.out), (0, want), command)
    r = m.cmd("sh", "-w", ws, "--json", out, "sed -i s/top/TOP/ ../a", cwd=f"{ws}/sub", env={"CAISSON_STATE": m.fresh("state")})
    equal((r.status, read(ws, "a")), (0, "TOP\n"), f"a change above, in the workspace ({r.err})")


@test("sh: a profile says what becomes of what is unsafe, uncertain and unexpected, and flags narrow a locked one")
def _(m):
    ws, far = workspace(m, a="one\n"), m.fresh("far")
    surprise = "python3 -c \"open('surprise', 'w').write('x')\""
    m.put(f"{far}/p.yaml", "shell: {uncertain: refuse}\n")
    r = run_sh(m, ws, "touch x", "-p", f"{far}/p.yaml")
    equal((r.status, r.result["path"], r.result["class"]), (125, "refused", "uncertain"), "uncertain: refuse")
    holds(r.err, "writes", "message")
    equal(run_sh(m, ws, "cat a", "-p", f"{far}/p.yaml").status, 0, "what is safe")
    r = run_sh(m, ws, "touch x", "-p", f"{far}/p.yaml", "--uncertain", "commit")
    equal((r.status, r.result["fate"]), (0, "committed"), "a flag")
    r = run_sh(m, ws, surprise, "--unexpected", "rollback")
    equal((r.status, r.result["fate"], os.path.exists(f"{ws}/surprise")), (0, "rolled back", False), "unexpected: rollback")
    r = run_sh(m, ws, surprise, "--unexpected", "commit")
    equal((r.status, r.result["fate"], os.path.exists(f"{ws}/surprise")), (0, "committed", True), "unexpected: commit")
    m.put(f"{far}/p.yaml", "locked: true\nshell: {uncertain: ask, unexpected: ask}\n")
    for flags in (["--ask"], ["--unsafe", "ask"], ["--uncertain", "commit"], ["--unexpected", "commit"]):
        r = m.cmd("sh", "-w", ws, "-p", f"{far}/p.yaml", *flags, "touch y", cwd=ws)
        equal(r.status, 125, f"{flags}")
        holds(r.err, "locked", f"{flags}")
    r = run_sh(m, ws, "touch y", "-p", f"{far}/p.yaml", "--uncertain", "refuse")
    equal(r.result["path"], "refused", "narrowed")
    r = run_sh(m, ws, "touch y", "-p", f"{far}/p.yaml")
    equal((r.status, r.result["fate"], os.path.exists(f"{ws}/y")), (0, "pending", False), "uncertain: ask, and nobody to ask")
    r = run_sh(m, ws, "rm -rf /srv/data", "--ask")
    equal((r.status, r.result["path"], r.result["asked"]), (125, "refused", False), "unsafe: ask, and nobody to ask")


@test("sh: at a terminal a person is asked, and the answer counts")
def _(m):
    surprise = "python3 -c \"open('surprise', 'w').write('x')\""
    for answer, fate in (("y", "committed"), ("n", "rolled back"), ("k", "pending")):
        ws = workspace(m, a="one\n")
        _, result, text = at_terminal(m, ws, surprise, [answer], "--keep-failed")  # however it ends
        equal((result["fate"], result["asked"]), (fate, True), f"{answer}: {text}")
        equal(os.path.exists(f"{ws}/surprise"), fate == "committed", answer)
        holds(text, "not predicted: surprise", "what was seen")
        holds(text, "predicted: execute", "beside what was thought")
    ws = workspace(m, a="one\n")
    status, result, text = at_terminal(m, ws, "rm -rf a /srv/data", ["n"], "--ask")
    equal((status, result["path"], result["asked"], os.path.exists(f"{ws}/a")), (125, "refused", True, True), f"no ({text})")
    _, result, text = at_terminal(m, ws, "rm -rf a /srv/data", ["y"], "--ask")
    equal((result["path"], result["asked"]), ("transaction", True), f"yes ({text})")
    status, result, text = at_terminal(m, ws, "rm -rf /srv/data", [])
    equal((status, result["path"], result["asked"]), (125, "refused", False), f"not asked ({text})")


@test("a profile's rows say what a command does; those that others could have written only narrow")
def _(m):
    ws, far = workspace(m, a="x\n"), m.fresh("far")
    text = "shell:\n  commands:\n    mytool: --quiet | read...\n    rm: harmless -r -f | inert...\n    head: '| read... !network'\n"

    def classes(profile):
        return [json.loads(m.cmd("classify", "--json", "-p", profile, c, cwd=ws).out)["class"] for c in ("mytool --quiet a", "rm -rf /srv/data", "head a")]

    m.put(f"{far}/p.yaml", text)
    m.put(f"{ws}/p.yaml", text)
    equal(classes("default"), ["uncertain", "unsafe", "safe"], "without rows")
    equal(classes(f"{far}/p.yaml"), ["safe", "safe", "uncertain"], "of a trusted file (the control)")
    equal(classes(f"{ws}/p.yaml"), ["uncertain", "unsafe", "uncertain"], "of a file in the workspace")
    os.chmod(f"{far}/p.yaml", 0o666)
    equal(classes(f"{far}/p.yaml"), ["uncertain", "unsafe", "uncertain"], "of a file that others may write")
    r = m.cmd("profile", "explain", f"{far}/p.yaml")
    holds(r.out, "others may write it", "explain")
    m.put(f"{far}/q.yaml", "shell:\n  commands:\n    mytool: --quiet | raed...\n")
    r = m.cmd("profile", "check", f"{far}/q.yaml")
    equal(r.status, 1, "check")
    holds(r.err, f"{far}/q.yaml:3:13: shell.commands: mytool: 'raed", "message")
    r = run_sh(m, ws, "rm -rf /srv/data", "-p", f"{ws}/p.yaml")
    equal((r.status, r.result["path"]), (125, "refused"), "sh")


@test("sh: the result is not written through a link, and a place that cannot be written stops it before anything runs")
def _(m):
    ws, far = workspace(m, a="one\n"), m.fresh("far")
    m.put(f"{far}/precious", "keep\n")
    os.symlink(f"{far}/precious", f"{ws}/result")
    for path in (f"{ws}/result", f"{ws}/nosuch/result"):
        r = m.cmd("sh", "-w", ws, "--json", path, "touch x", cwd=ws, env={"CAISSON_STATE": m.fresh("state")})
        equal((r.status, os.path.exists(f"{ws}/x"), read(far, "precious")), (125, False, "keep\n"), path)


@test("bad usage of classify and sh is an error that says what is right")
def _(m):
    for args in (["classify"], ["classify", "ls", "-l"], ["classify", "--lines", "ls"], ["classify", "--cwd", "x", "ls"], ["sh"], ["sh", "a", "b"],
                 ["sh", "--profile", "nosuch", "ls"]):
        r = m.cmd(*args)
        equal((r.status, r.out), (125, ""), f"{args}")
        check(r.err.startswith("caisson: "), f"{args}: {r.err}")


if __name__ == "__main__":
    test.main()
