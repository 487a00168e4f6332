#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`caisson hook`: events in the shape that clients send them, and answers in the shape that they take.

    test_hook.py [WORD]    run the tests whose sentence holds WORD
    CAISSON=path           the program to test (default: build/caisson)

Every test runs as the calling user and, when that is root, again as an ordinary user.
"""
import json
import os
import stat
import sys
import threading

sys.dont_write_bytecode = True
from test_run import Suite, check, equal, holds, lacks  # noqa: E402

test = Suite()

PROFILE = """
tools:
  default: deny
  allow: [Bash, Read, Glob]
  ask: [Write, mcp__mail__send]
  each:
    Bash: { effects: [exec, read, write], shell: command }
    Read: { effects: [read] }
    Glob: { effects: [read] }
    Write: { effects: [write] }
    mcp__mail__send: { effects: [write, net], sinks: [to] }
"""


class Session:
    """One session of a client; every event is a process."""

    def __init__(self, m, client="claude-code", profile=PROFILE, args=()):
        self.m, self.client, self.args, self.n = m, client, args, 0
        self.dir = m.fresh("hook")
        self.state = os.path.join(m.mkdir(self.dir + "/st"), "state")
        self.profile = m.put(f"{self.dir}/p.yaml", profile)
        self.ws = m.mkdir(f"{self.dir}/ws")
        self.id = f"session-{self.dir}"

    def raw(self, data, *args, env=None):
        return self.m.cmd("hook", self.client, "--profile", self.profile, *self.args, *args, input=data, cwd=self.ws,
                          env={"CAISSON_STATE": self.state, **(env or {})})

    def send(self, name, **more):
        base = {"session_id": self.id, "transcript_path": f"{self.ws}/t.jsonl", "cwd": self.ws, "permission_mode": "default", "hook_event_name": name}
        if self.client == "codex":
            base.update(turn_id="turn-1", model="gpt-x")
        return self.raw(json.dumps({**base, **more}).encode())

    def pre(self, tool, id=None, **tool_input):
        self.n += 1
        self.last = id or f"toolu_{self.n:04}"
        r = self.send("PreToolUse", tool_name=tool, tool_input=tool_input, tool_use_id=self.last)
        r.answer = json.loads(r.out) if r.out else {}
        out = r.answer.get("hookSpecificOutput", {})
        r.decision, r.reason, r.input = out.get("permissionDecision"), out.get("permissionDecisionReason", ""), out.get("updatedInput")
        if out:
            equal((r.status, out["hookEventName"]), (0, "PreToolUse"), f"{r}")
        return r

    def post(self, tool, response, id=None, event="PostToolUse", **tool_input):
        return self.send(event, tool_name=tool, tool_input=tool_input, tool_response=response, tool_use_id=id or self.last)

    def cmd(self, *args):
        return self.m.cmd(*args, env={"CAISSON_STATE": self.state})

    def log(self):
        d = f"{self.state}/hooks"
        names = os.listdir(d)
        equal(len(names), 1, "logs")
        with open(f"{d}/{names[0]}") as f:
            return [json.loads(line) for line in f]

    def log_path(self):
        return f"{self.state}/hooks/{os.listdir(self.state + '/hooks')[0]}"


# ---- Claude Code ----


@test("claude-code: what is safe is allowed, what is unsafe or unknown is denied with a reason")
def _(m):
    s = Session(m)
    equal(s.pre("Bash", command="ls -l", description="List").decision, "allow", "ls")
    equal(s.post("Bash", {"stdout": "a", "stderr": "", "interrupted": False}).out, "", "a result needs no answer")
    r = s.pre("Bash", command="rm -rf /srv/data")
    equal(r.decision, "deny", "rm")
    check(r.reason, "no reason")
    r = s.pre("WebFetch", url="https://example.com")
    equal(r.decision, "deny", "a tool that the policy has not")
    holds(r.reason, "WebFetch", "reason")
    equal(s.pre("Read", file_path="/usr/x").decision, "allow", "read")


@test("claude-code: an uncertain command is moved into the sandbox, where it does run")
def _(m):
    s = Session(m)
    r = s.pre("Bash", command="echo 'it''s' >\"new file\"; cat 'new file'", description="d", timeout=1000)
    equal(r.decision, "allow", f"{r}")
    equal({k: v for k, v in r.input.items() if k != "command"}, {"description": "d", "timeout": 1000}, "the rest stays")
    holds(r.input["command"], " sh --profile ", "command")
    done = m.call(["bash", "-c", r.input["command"]], cwd=s.ws, env={"CAISSON_STATE": s.state})
    equal((done.status, done.out), (0, "its\n"), f"{done}")
    with open(f"{s.ws}/new file") as f:
        equal(f.read(), "its\n", "it was committed")


@test("claude-code: a question is the user's, an approval from before answers it, and each is used once")
def _(m):
    s = Session(m)
    r = s.pre("Write", file_path=f"{s.ws}/a", content="x")
    equal(r.decision, "ask", f"{r}")
    id = json.loads(s.cmd("approvals", "list", "--json").out)[0]["id"]
    holds(r.reason, id, "the reason names the approval")
    equal(s.cmd("approvals", "allow", id, "--by", "test").status, 0, "allow")
    equal(s.pre("Write", file_path=f"{s.ws}/a", content="y").decision, "ask", "another content")
    equal(s.pre("Write", file_path=f"{s.ws}/a", content="x").decision, "allow", "approved")
    equal(s.pre("Write", file_path=f"{s.ws}/a", content="x").decision, "ask", "once")


@test("claude-code: a file that changed since it was approved is asked about again")
def _(m):
    s = Session(m)
    m.put(f"{s.ws}/a", "one")
    equal(s.pre("Write", file_path=f"{s.ws}/a", content="x").decision, "ask", "first")
    id = json.loads(s.cmd("approvals", "list", "--json").out)[0]["id"]
    equal(s.cmd("approvals", "always", id, "--by", "test").status, 0, "always")
    equal(s.pre("Write", file_path=f"{s.ws}/a", content="x").decision, "allow", "the control")
    m.put(f"{s.ws}/a", "two")
    equal(s.pre("Write", file_path=f"{s.ws}/a", content="x").decision, "ask", "changed")


@test("claude-code: what the user allowed in the client is known to the gate and to the approvals")
def _(m):
    s = Session(m)
    equal(s.pre("Write", file_path=f"{s.ws}/a", content="x").decision, "ask", "asked")
    equal(s.post("Write", {"success": True}).status, 0, "it was made all the same")
    kinds = [x["type"] for x in s.log()]
    equal(kinds, ["call", "approval", "confirm", "result"], "log")
    listed = json.loads(s.cmd("approvals", "list", "--all", "--json").out)
    equal([a["state"] for a in listed], ["used"], "the question is settled")


@test("claude-code: a call that the client refused was not made, though it tells a result")
def _(m):
    s = Session(m, profile=PROFILE + "rules: |\n  rule first: forbid Read unless once ok(Glob) or once ok(Write);\n")
    r = s.pre("Write", file_path=f"{s.ws}/a", content="x")
    equal(r.decision, "ask", "asked")
    equal(s.post("Write", "Error: " + r.reason).status, 0, "refused")
    equal([a["state"] for a in json.loads(s.cmd("approvals", "list", "--json").out)], ["asked"], "the question waits")
    equal(s.pre("Glob", pattern="*").decision, "allow", "glob")
    equal(s.post("Glob", "Error: permission to use Glob was not given").status, 0, "refused by the client's own rules")
    equal(s.pre("Read", file_path="/usr/x").decision, "deny", "nothing has been done")
    equal([(x["type"], x.get("ok")) for x in s.log() if x["type"] in ("confirm", "result")], [("result", False)], "log")
    equal(s.pre("Glob", pattern="*").decision, "allow", "glob")
    s.post("Glob", {"filenames": []})
    equal(s.pre("Read", file_path="/usr/x").decision, "allow", "the control")


@test("claude-code: the session's history counts, over processes")
def _(m):
    s = Session(m, profile=PROFILE + "rules: |\n  rule first: forbid Read unless once ok(Glob);\n")
    if s.send("SessionStart", source="startup").status != 0:
        raise AssertionError("SessionStart")
    r = s.pre("Read", file_path="/usr/x")
    equal(r.decision, "deny", f"{r}")
    equal(s.pre("Glob", pattern="*").decision, "allow", "glob")
    equal(s.pre("Read", file_path="/usr/x").decision, "deny", "it has no result yet")
    s.post("Glob", {"filenames": []}, id="toolu_0002")
    equal(s.pre("Read", file_path="/usr/x").decision, "allow", "now")
    other = Session(m, profile=PROFILE + "rules: |\n  rule first: forbid Read unless once ok(Glob);\n")
    equal(other.pre("Read", file_path="/usr/x").decision, "deny", "another session has its own history")


def decision(r):
    """(decision, reason, changed arguments) of a call's answer."""
    out = json.loads(r.out).get("hookSpecificOutput", {}) if r.out else {}
    equal(r.status, 0, f"{r}")
    return out.get("permissionDecision"), out.get("permissionDecisionReason", ""), out.get("updatedInput")


@test("claude-code: the workspace is the project, also when the shell has gone into a directory of it")
def _(m):
    s = Session(m)
    m.mkdir(f"{s.ws}/sub")
    m.put(f"{s.ws}/x", "one\n")

    def call(id, command):
        r = m.cmd("hook", "claude-code", "--profile", s.profile, cwd=f"{s.ws}/sub", env={"CAISSON_STATE": s.state, "CLAUDE_PROJECT_DIR": s.ws},
                  input=json.dumps({"session_id": s.id, "cwd": f"{s.ws}/sub", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                                    "tool_input": {"command": command}, "tool_use_id": id}).encode())
        return decision(r)
    word, _, changed = call("t1", "cat ../x; rm ../x")
    equal(word, "allow", "in the workspace")
    done = m.call(["bash", "-c", changed["command"]], cwd=f"{s.ws}/sub", env={"CAISSON_STATE": s.state})
    equal((done.status, done.out, os.path.exists(f"{s.ws}/x")), (0, "one\n", False), f"{done}")
    equal(call("t2", "rm ../../../../../../srv/x")[0], "deny", "outside of it")


@test("claude-code: what a call said that failed is its result")
def _(m):
    s = Session(m)
    equal(s.pre("Bash", command="cat nosuch").decision, "allow", "cat")
    r = s.send("PostToolUseFailure", tool_name="Bash", tool_input={"command": "cat nosuch"}, tool_use_id=s.last, error="Exit code 1\nno such file", is_interrupt=False)
    equal(r.status, 0, f"{r}")
    equal([(x["ok"], x["result"]) for x in s.log() if x["type"] == "result"], [(False, "Exit code 1\nno such file")], "log")


@test("claude-code: events that are no matter of ours are left alone")
def _(m):
    s = Session(m)
    for name in ("SessionStart", "SessionEnd", "Stop", "SubagentStop", "Notification", "PreCompact", "SomethingNew"):
        r = s.send(name)
        equal((r.status, r.out, r.err), (0, "", ""), name)
    r = s.send("UserPromptSubmit", prompt="write to bob@example.com")
    equal((r.status, r.out), (0, ""), "prompt")
    equal([x["type"] for x in s.log()], ["user"], "log")


@test("claude-code: --defer leaves what is allowed to the client's own rules, and nothing else")
def _(m):
    s = Session(m, args=["--defer"])
    r = s.pre("Bash", command="ls")
    equal((r.status, r.out), (0, ""), "no opinion")
    equal(s.pre("Bash", command="rm -rf /srv").decision, "deny", "deny")
    check(s.pre("Bash", command="touch x").input, "what is moved is said")


@test("the approver's program answers, or leaves it open")
def _(m):
    d = m.fresh("approver")
    prog = m.put(f"{d}/approver", "#!/bin/sh\ncat >\"$1\"\nexit $2\n", mode=0o755)
    for status, want in ((0, "allow"), (1, "deny"), (7, "ask")):
        s = Session(m, args=["--approver", prog, "--approver", f"{d}/got", "--approver", str(status)])
        equal(s.pre("Write", file_path="/x y", content="$(id)").decision, want, f"status {status}")
        with open(f"{d}/got") as f:
            got = json.load(f)
        equal((got["effect"]["args"], got["effect"]["tool"]), ({"file_path": "/x y", "content": "$(id)"}, "Write"), "what it was told")


# ---- Codex ----


@test("codex: only denials are spoken; a question is a denial that says how to approve")
def _(m):
    s = Session(m, "codex")
    r = s.pre("Bash", command="ls -l")
    equal((r.status, r.out), (0, ""), "allowed: Codex rejects the word, and goes on without")
    equal(s.pre("Bash", command="rm -rf /srv/data").decision, "deny", "deny")
    r = s.pre("mcp__mail__send", to="bob", text="x")
    equal(r.decision, "deny", "ask")
    id = json.loads(s.cmd("approvals", "list", "--json").out)[0]["id"]
    holds(r.reason, f"caisson approvals allow {id}", "reason")
    equal(s.cmd("approvals", "allow", id, "--by", "test").status, 0, "allow")
    r = s.pre("mcp__mail__send", to="bob", text="x")
    equal((r.status, r.out), (0, ""), "approved")
    equal(s.pre("mcp__mail__send", to="bob", text="x").decision, "deny", "once")


@test("codex: an uncertain command is refused with its sandboxed form, which passes; --rewrite changes it at once")
def _(m):
    s = Session(m, "codex")
    r = s.pre("Bash", command="touch 'a b'")
    equal((r.decision, r.input), ("deny", None), "deny")
    holds(r.reason, " sh --profile ", "reason")
    wrapped = f"'{m.caisson}' sh --profile '{s.profile}' 'touch '\\''a b'\\'''"
    r = s.pre("Bash", command=wrapped)
    equal((r.status, r.out), (0, ""), "the form that was told")
    for bad in (wrapped + "; rm -rf /srv", wrapped.replace("'touch", "--workspace / 'touch"), wrapped + " && id", f"x={wrapped}"):
        equal(s.pre("Bash", command=bad).decision, "deny", bad)
    r = s.pre("Bash", command=f"'{m.caisson}' sh --profile '{s.profile}' 'rm -rf /srv/data'")
    equal(r.decision, "deny", "what is inside is judged")
    s = Session(m, "codex", args=["--rewrite"])
    r = s.pre("Bash", command="touch x")
    equal(r.decision, "allow", "rewrite")
    holds(r.input["command"], "'touch x'", "updatedInput")


@test("codex: the model chooses the directory of a call, and neither leaves the workspace by it nor moves it")
def _(m):
    s = Session(m, "codex", args=["--rewrite"])
    m.mkdir(f"{s.ws}/sub")
    m.put(f"{s.ws}/sub/x", "one\n")
    outside = m.mkdir(f"{s.dir}/outside")
    m.put(f"{outside}/keep", "x")
    os.symlink(outside, f"{s.ws}/sub/link")

    def call(command, cwd):
        s.n += 1
        return decision(s.send("PreToolUse", tool_name="Bash", tool_input={"command": command}, tool_use_id=f"c{s.n}", cwd=cwd))
    for cwd in (outside, f"{s.ws}/../outside", f"{s.ws}/sub/link", "/", f"{s.ws}2", f"{s.ws}/nosuch"):
        for command in ("rm keep", "cat keep", f"'{m.caisson}' sh --profile '{s.profile}' 'rm keep'",
                        f"'{m.caisson}' sh --profile '{s.profile}' --workspace '{outside}' 'rm keep'"):
            word, reason, _ = call(command, cwd)
            equal(word, "deny", f"{command} in {cwd}")
            holds(reason, "workspace", "reason")
    equal(call("cat x", f"{s.ws}/sub")[0], None, "a read in the workspace")
    word, _, changed = call("rm x; touch ../y", f"{s.ws}/sub")
    equal(word, "allow", "a change in it")
    done = m.call(["bash", "-c", changed["command"]], cwd=f"{s.ws}/sub", env={"CAISSON_STATE": s.state})
    equal((done.status, sorted(os.listdir(s.ws)), os.listdir(f"{s.ws}/sub")), (0, ["sub", "y"], ["link"]), f"{done}")
    equal(call(changed["command"], f"{s.ws}/sub")[0], None, "the form that was told")
    equal(call(changed["command"].replace(f"--workspace '{s.ws}'", f"--workspace '{outside}'"), f"{s.ws}/sub")[2] is None, False, "another workspace is no such form")
    equal(os.listdir(outside), ["keep"], "outside")


# ---- generic ----


@test("generic: four verdicts, with the rule, the fix, the approval, and changed arguments")
def _(m):
    s = Session(m, "generic")

    def call(tool, **args):
        s.n += 1
        r = s.raw(json.dumps({"event": "call", "session": "g", "id": str(s.n), "tool": tool, "args": args, "cwd": s.ws}).encode())
        equal(r.status, 0, f"{r}")
        return json.loads(r.out)
    equal(call("Bash", command="ls"), {"verdict": "allow"}, "allow")
    v = call("Bash", command="touch x")
    equal(v["verdict"], "sandbox", "sandbox")
    holds(v["args"]["command"], "'touch x'", "args")
    v = call("Write", x=1)
    equal((v["verdict"], v["approval"][:2]), ("ask", "a-"), "ask")
    v = call("nosuch")
    equal((v["verdict"], v["rule"]), ("deny", "tool"), "deny")
    r = s.raw(b'{"event":"result","session":"g","id":"1","ok":true,"result":"text"}')
    equal((r.status, json.loads(r.out)["verdict"]), (0, "allow"), "result")
    r = s.raw(b'{"event":"user","session":"g","text":"hello"}')
    equal(r.status, 0, "user")


# ---- attacks ----


@test("whatever fails is a refusal: status 2, and a reason on standard error")
def _(m):
    good = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/", "tool_use_id": "x"}
    s = Session(m)
    bad = [b"", b"{", b"[]", b"null", b'{"session_id":"s"}', json.dumps({**good, "tool_input": "ls"}).encode(),
           json.dumps({k: v for k, v in good.items() if k != "tool_name"}).encode(), json.dumps({**good, "tool_name": 7}).encode(),
           json.dumps({**good, "session_id": ""}).encode(), json.dumps({**good, "tool_name": "x" * 200}).encode(),
           b'{"session_id":"s","hook_event_name":"Stop","hook_event_name":"PreToolUse"}', b"\xff\xfe", b"[" * 100000]
    for data in bad:
        r = s.raw(data)
        equal((r.status, r.out), (2, ""), f"{data[:80]}")
        check(r.err.startswith("caisson: refused, because the gate failed: "), r.err)
    equal(s.raw(json.dumps(good).encode()).status, 0, "the control")
    broken = Session(m, profile="tools: [")
    equal(broken.raw(json.dumps(good).encode()).status, 2, "a profile that cannot be read")
    for args in ([], ["claude-code"], ["claud", "--profile", s.profile], ["claude-code", "--profile", "/nonexistent"], ["claude-code", "--nosuch"]):
        equal(m.cmd("hook", *args, input=json.dumps(good).encode()).status, 2, f"{args}")
    for client in ("codex", "generic"):
        s = Session(m, client)
        r = s.raw(b"{")
        equal(r.status, 2, client)
        if client == "generic":
            equal(json.loads(r.out)["verdict"], "deny", client)


@test("a log that is damaged, too open, a link or somebody else's is a refusal; a line cut off by a crash is dropped")
def _(m):
    s = Session(m)
    equal(s.pre("Bash", command="ls").decision, "allow", "the control")
    path = s.log_path()
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode")
    equal(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700, "mode of the directory")
    with open(path) as f:
        good = f.read()
    m.put(path, good + '{"type":"call","id":"cut', mode=0o600)
    equal(s.pre("Bash", command="ls").decision, "allow", "a cut line")
    equal([x["type"] for x in s.log()], ["call", "call"], "log")
    m.put(path, good + "garbage\n", mode=0o600)
    equal(s.pre("Bash", command="ls").status, 2, "damaged")
    m.put(path, good, mode=0o644)
    equal(s.pre("Bash", command="ls").status, 2, "others can read it")
    os.chmod(path, 0o600)
    os.rename(path, path + ".away")
    os.symlink(path + ".away", path)
    equal(s.pre("Bash", command="ls").status, 2, "a link")
    os.unlink(path)
    os.rename(path + ".away", path)
    equal(s.pre("Bash", command="ls").decision, "allow", "the control")
    if m.is_root:
        os.chown(path, 1234, 1234)
        equal(s.pre("Bash", command="ls").status, 2, "somebody else's")


@test("the agent does not answer for itself: approvals, pins and their files are out of its reach")
def _(m):
    s = Session(m)
    for command in ("caisson approvals allow a-x --by me", f"{m.caisson} approvals always a-x", "caisson tools approve m.json t --by me",
                    "CAISSON_STATE=/tmp/x caisson sh ls", f"cat {s.state}/approvals/a-x"):
        r = s.pre("Bash", command=command)
        equal(r.decision, "deny", command)
    equal(s.pre("Write", file_path=f"{s.state}/approvals/a-aaaaaaaa", content="{}").decision, "deny", "the store's files")
    equal(s.pre("Bash", command="ls").decision, "allow", "the control")


@test("text of the agent's does not act on a terminal")
def _(m):
    s = Session(m)
    for r in (s.pre("\x1b[2Jtool"), s.pre("Bash", command="rm -rf /\x1b]0;x\x07"), s.pre("Write", file_path="\x1b[31m", content="\u202e")):
        for bad in ("\x1b", "\x07", "\u202e"):
            lacks(r.reason + r.err, bad, "reason")


@test("an event that is not understood is a refusal, unless it is a client's own business")
def _(m):
    s = Session(m, client="generic")
    for event in ("Call", "cal", "PreToolUse", "", "\x1b[2J"):
        r = s.raw(json.dumps({"event": event, "session": "s", "tool": "Glob", "args": {}}).encode())
        equal(r.status, 2, f"generic: {event!r} ({r})")
        lacks(r.out + r.err, "\x1b", "what is said")
    for client in ("claude-code", "codex"):
        s = Session(m, client=client)
        for event, status in (("PreTooluse", 2), ("pretooluse", 2), ("Stop", 0), ("SessionStart", 0)):
            r = s.send(event, tool_name="Glob", tool_input={})
            equal((r.status, bool(r.err)), (status, status == 2), f"{client}: {event} ({r})")


@test("twenty events at once are all in the log, and each call is judged on all before it")
def _(m):
    s = Session(m, profile=PROFILE + "gate:\n  budget: { calls: 7 }\n  loop: 0\n  denials: 0\n")
    got = []

    def one(i):
        r = s.send("PreToolUse", tool_name="Glob", tool_input={"pattern": str(i)}, tool_use_id=f"t{i}")
        got.append(json.loads(r.out)["hookSpecificOutput"]["permissionDecision"])
    threads = [threading.Thread(target=one, args=(i,)) for i in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    equal(len(s.log()), 20, "lines")
    equal((got.count("allow"), got.count("deny")), (7, 13), "verdicts")


if __name__ == "__main__":
    test.main()
