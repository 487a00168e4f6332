#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Claude Code and Codex themselves, with `caisson hook` as docs/hooks.md has it.

    test_hook_clients.py [WORD]     run the tests whose sentence holds WORD

The clients are those of agents/package-lock.json, by npm, below build/.  There is no account and no model: model.py
plays a script of tool calls, and what the client sends back as their results is what the model would read.  Whether a call was
made is seen in the files.

Clients and model run in a network namespace that has nothing but loopback, with homes of the tests' own.
`/srv` and `/etc` are the tests' own, too: the first is a place outside of every workspace, and in the
second lie the settings that docs/hooks.md has.  A client that cannot be had is skipped; with CS_TESTS_MUST_RUN or CI=true that is a
failure.  Needs root, for the namespaces.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration"), HERE]
sys.dont_write_bytecode = True
import test_run as t  # noqa: E402
from model import Call, Model  # noqa: E402
from test_run import check, equal, holds, lacks, note  # noqa: E402

MUST_RUN = bool(os.environ.get("CS_TESTS_MUST_RUN")) or os.environ.get("CI") == "true"
INSTALLED = os.path.join(t.ROOT, "build", "agents")
CLAUDE, CODEX = "@anthropic-ai/claude-code-*/claude", "@openai/codex-*/vendor/*/bin/codex"
SECONDS = 40  # for one client's run
OUTSIDE = "/srv"
AGENTS = None  # where the clients lie
test = t.Suite()

PROFILE = """
tools:
  default: deny
  allow: [Bash, Read]
  ask: [Write, apply_patch]
  each:
    Bash: { effects: [exec, read, write], shell: command }
    Read: { effects: [read] }
    Write: { effects: [write] }
    apply_patch: { effects: [write] }
rules: |
  rule inside: forbid Write unless file_path under session.workspace because "the file is not in the workspace";
"""


COMMAND = "timeout 100 {} || {{ echo caisson failed >&2; exit 2; }}"
MANAGED = {"claude-code": "/etc/claude-code/managed-settings.json", "codex": "/etc/codex/requirements.toml"}
EVENTS = {"claude-code": ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit"), "codex": ("PreToolUse", "PostToolUse", "UserPromptSubmit")}


def as_json(command, events, matcher, timeout=120):
    def group(name):
        return {**({} if name == "UserPromptSubmit" else {"matcher": matcher}), "hooks": [{"type": "command", "command": command, "timeout": timeout}]}
    return {"hooks": {name: [group(name)] for name in events}}


def as_toml(command, events, timeout=120):
    text = "[features]\nhooks = true\n"
    for name in events:
        matcher = "" if name == "UserPromptSubmit" else 'matcher = ".*"\n'
        text += f'\n[[hooks.{name}]]\n{matcher}[[hooks.{name}.hooks]]\ntype = "command"\ntimeout = {timeout}\ncommand = {json.dumps(command)}\n'
    return text


# ---- sessions ----


class Session:
    """Directories of one session, and a victim outside of its workspace."""

    def __init__(self, m, client):
        self.m, self.client = m, client
        self.dir = m.mkdir(tempfile.mkdtemp(dir=OUTSIDE))  # not in /tmp: a client may keep programs in its home
        self.ws, self.home, self.tmp, self.state = (m.mkdir(f"{self.dir}/{d}", 0o700) for d in ("ws", "home", "tmp", "state"))
        self.profile = m.put(f"{self.dir}/agent.yaml", PROFILE)
        m.put(f"{self.ws}/hello.txt", "hello\n")
        self.victim = m.mkdir(f"{self.dir}/victim")
        m.put(f"{self.victim}/file", "x")
        self.rm = f"rm -r {self.victim}"
        self.patch = "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch\n"

    def hook(self, more="", program=None):
        """What docs/hooks.md has, with this test's program and policy."""
        return COMMAND.format(f"{program or self.m.caisson} hook {self.client} --profile {self.profile}{more}")

    def caisson(self, *args):
        return self.m.cmd(*args, env={"CAISSON_STATE": self.state}, cwd=self.ws)

    def approve(self):
        """As the user would, on another terminal."""
        asked = json.loads(self.caisson("approvals", "list", "--json").out)
        equal(len(asked), 1, f"questions: {asked}")
        equal(self.caisson("approvals", "allow", asked[0]["id"], "--by", "test").status, 0, "allow")

    def alive(self):
        return os.path.exists(self.victim + "/file")

    def log(self):
        """What the gate was told: [(type, command or tool, or whether it went well)]."""
        lines = []
        for path in glob.glob(self.state + "/hooks/*"):
            with open(path) as f:
                lines += [json.loads(line) for line in f]
        return [(x["type"], x.get("args", {}).get("command", x.get("tool", x.get("ok")))) for x in lines]

    def heard(self, calls, went_well):
        log = self.log()
        got = (log[0][0], [kind for kind, _ in log].count("call"), log.count(("result", True)))
        equal(got, ("user", calls, went_well), f"what the gate heard: {log}")

    def play(self, argv, env, turns, ends=True):
        """The client's run.  ends: the model is heard to the end of its script."""
        with Model(*turns) as model:
            r = self.m.call(argv(model), env={"HOME": self.home, "TMPDIR": self.tmp, "CAISSON_STATE": self.state, **env(model)}, cwd=self.ws, timeout=SECONDS)
        equal(model.wrong, [], f"what the stand-in did not understand ({r})")
        if ends:
            equal(sorted(model.results), sorted(i for n in range(len(model.turns)) for i in model.ids(n)), f"results ({r})")
        r.model = model
        r.told = lambda turn, i=0: model.result(turn, i) or ""
        return r


class ClaudeCode(Session):
    def __init__(self, m):
        super().__init__(m, "claude-code")

    def run(self, *turns, hook=None, managed=True, events=EVENTS["claude-code"], timeout=120, ends=True):
        text = json.dumps(as_json(hook, events, "*", timeout) if hook else {})
        settings(self.client, text if managed else None)
        self.m.mkdir(self.home + "/.claude")
        self.m.put(self.home + "/.claude/settings.json", "{}" if managed else text)
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1"}
        return self.play(lambda model: [find(CLAUDE), "-p", "please do it", "--model", "stand-in", "--allowedTools", "Bash", "Write", "Edit"],
                         lambda model: {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none", **quiet}, turns, ends)

    @staticmethod
    def bash(command):
        return Call("Bash", command=command, description="test")


CONFIG = """
model = "{model}"
model_provider = "local"
check_for_update_on_startup = false
[model_providers.local]
name = "local"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
metrics_exporter = "none"
trace_exporter = "none"
[features] # else it looks for hosts, and waits for their names
plugins = false
apps = false
"""


class Codex(Session):
    DIRECT, SCRIPTS = "gpt-5.5", "gpt-6.1-sol"  # names alone: how the client lets this one, and that one, call its tools

    def __init__(self, m):
        super().__init__(m, "codex")

    def run(self, *turns, hook=None, managed=True, trust=False, events=EVENTS["codex"], timeout=120, model=DIRECT, config="", ends=True):
        settings(self.client, as_toml(hook, events, timeout) if hook and managed else None)
        base = self.m.mkdir(self.home + "/.codex")
        if hook and not managed:
            self.m.put(base + "/hooks.json", json.dumps(as_json(hook, events, ".*", timeout)))

        def argv(stand_in):
            self.m.put(base + "/config.toml", CONFIG.format(url=stand_in.url, model=model) + config)
            return [find(CODEX), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
                    *(["--dangerously-bypass-hook-trust"] if trust else []), "please do it"]
        return self.play(argv, lambda _: {"STAND_IN_KEY": "none"}, turns, ends)

    @staticmethod
    def bash(command, **more):
        return Call("exec_command", cmd=command, **more)


def settings(client, text):
    """Those of the machine, which the client's user cannot change; None: none."""
    if text is not None:
        with open(MANAGED[client], "w") as f:
            f.write(text)
    elif os.path.exists(MANAGED[client]):
        os.unlink(MANAGED[client])


def find(pattern):
    found = sorted(glob.glob(f"{AGENTS}/node_modules/{pattern}"))
    return found[0] if found else None


@test("what is set up here is what docs/hooks.md has", modes=("root",))
def _(m):
    with open(t.ROOT + "/docs/hooks.md") as f:
        text = f.read()
    blocks = dict(re.findall(r"^In `(/etc/\S+)`:\n\n```\w+\n(.*?)^```", text, re.M | re.S))
    command = {c: COMMAND.format(f"caisson hook {c} --profile /etc/agent.yaml") for c in EVENTS}
    equal(json.loads(blocks[MANAGED["claude-code"]]), as_json(command["claude-code"], EVENTS["claude-code"], "*"), "Claude Code")
    equal(blocks[MANAGED["codex"]], as_toml(command["codex"], EVENTS["codex"]), "Codex")
    with open(HERE + "/agents/package.json") as f:
        for version in json.load(f)["dependencies"].values():
            holds(text, f" {version}", "the versions that were tried")


# ---- Claude Code ----


@test("claude-code: the control: without the hook the command runs that the policy denies")
def _(m):
    s = ClaudeCode(m)
    r = s.run(s.bash("ls"), s.bash(s.rm))
    holds(r.told(0), "hello.txt", "ls")
    check(not s.alive(), f"it is still there: {r.told(1)}")


@test("claude-code: what is allowed runs, what is denied does not and the model is told by which rule, a question waits for a person")
def _(m):
    s = ClaudeCode(m)
    new = Call("Write", file_path=s.ws + "/new", content="one\n")

    def again(_):
        s.approve()
        return s.ws + "/new"
    r = s.run(s.bash("ls"),                                                            # 0
              s.bash(s.rm),                                                            # 1
              Call("Write", file_path=s.victim + "/more", content="x"),                # 2
              new,                                                                     # 3
              Call("Write", file_path=again, content="one\n"),                         # 4
              [s.bash("cat hello.txt"), s.bash(s.rm + " # too")],                      # 5
              s.bash("echo two >made; cat made"),                                      # 6
              Call("Edit", file_path=s.ws + "/hello.txt", old_string="hello", new_string="bye"),  # 7
              s.bash("cat nosuch"),                                                    # 8
              hook=s.hook())
    holds(r.told(0), "hello.txt", "ls")
    holds(r.told(1), "caisson: shell: ", "rm")
    holds(r.told(2), "caisson: inside: the file is not in the workspace", "a write outside")
    holds(r.told(3), "caisson: tool: ", "a question that nobody answers is a refusal")
    equal((r.model.failed["call_01_00"], r.model.failed["call_02_00"], r.model.failed["call_03_00"]), (True, True, True), "they failed")
    equal(r.model.failed["call_04_00"], False, f"approved: {r.told(4)}")
    holds(r.told(5, 0), "hello", "of two at once, one")
    holds(r.told(5, 1), "caisson: shell: ", "of two at once, the other")
    holds(r.told(6), "two", "what ran in a sandbox")
    holds(r.told(7), "caisson: tool: ", "a tool that the policy has not")
    equal((s.alive(), os.listdir(s.victim)), (True, ["file"]), "the victim")
    equal(sorted(set(os.listdir(s.ws)) - {".caisson"}), ["hello.txt", "made", "new"], "the workspace")
    s.heard(calls=10, went_well=4)
    check(("result", False) in s.log(), "what failed was told")


def failures(new, told):
    """A hook that fails, in every way: with the command of the document it is a refusal."""
    for what, command in [("caisson is not there", lambda s: s.hook(program="/nonexistent/caisson")),
                          ("the policy is not there", lambda s: s.hook(" --profile /nonexistent")),
                          ("the policy is not there, and nothing behind", lambda s: f"{s.m.caisson} hook {s.client} --profile /nonexistent"),
                          ("the hook is killed", lambda s: COMMAND.format("sh -c 'kill -9 $$'")),
                          ("the hook takes too long", lambda s: COMMAND.format("sleep 30").replace("timeout 100", "timeout 1"))]:
        s = new()
        r = s.run(s.bash(s.rm), hook=command(s), events=["PreToolUse"])
        check(s.alive(), f"{what}: it ran: {r}")
        holds(r.told(0), told, what)
        note(f"{what}: {' '.join(r.told(0).split())[:300]}")
    s = new()
    r = s.run(s.bash(s.rm), hook=s.hook(" --profile /nonexistent"), ends=False)
    equal((s.alive(), r.model.requests), (True, []), "when the prompt is judged as well, the model is not asked")


def no_answers(new, silent):
    """What the client takes for no answer at all, and goes on."""
    for what, hook, timeout in [("a program that is not there", "/nonexistent/caisson hook", 120), ("one that was killed", "kill -9 $$", 120),
                                ("one that is slower than the client waits", "sleep 5; echo no >&2; exit 2", 1)] + silent:
        s = new()
        r = s.run(s.bash(s.rm), hook=hook, events=["PreToolUse"], timeout=timeout)
        check(not s.alive(), f"{what} refuses now, and docs/hooks.md says otherwise: {r.told(0)}")


@test("claude-code: a hook that fails is a refusal, with the command of the document", modes=("user",))
def _(m):
    failures(lambda: ClaudeCode(m), "PreToolUse:Bash hook error")


@test("claude-code: why the document has that command: what the client takes for no answer", modes=("user",))
def _(m):
    no_answers(lambda: ClaudeCode(m), [])


@test("claude-code: what the agent writes into the workspace switches off hooks of the user's, and none of the machine's", modes=("user",))
def _(m):
    for managed in (False, True):
        s = ClaudeCode(m)

        def off(_):
            m.mkdir(s.ws + "/.claude")
            m.put(s.ws + "/.claude/settings.json", '{"disableAllHooks":true}')
            time.sleep(2)  # it is seen in the middle of the session
            return s.rm
        r = s.run(s.bash(s.rm), Call("Bash", command=off, description="test"), hook=s.hook(), managed=managed)
        holds(r.told(0), "caisson: shell: ", "before")
        equal(s.alive(), managed, f"managed {managed}: {r.told(1)}")


# ---- Codex ----


@test("codex: the control: a hook that nobody has trusted is not run, and the command runs that the policy denies")
def _(m):
    s = Codex(m)
    r = s.run(s.bash("ls"), s.bash(s.rm), hook=s.hook(), managed=False)
    holds(r.told(0), "hello.txt", "ls")
    equal((s.alive(), s.log()), (False, []), "the victim, and what the gate heard")


@test("codex: what is allowed runs, what is denied does not and the model is told by which rule, a question waits for a person")
def _(m):
    s = Codex(m)
    sandboxed = []

    def again(_):
        s.approve()
        return s.patch

    def told_form(model):
        sandboxed.append(re.search(r"run it in a sandbox: (.*) \(instead: ", model.result(5))[1])
        return sandboxed[0]
    r = s.run(s.bash("ls"),                                    # 0
              s.bash(s.rm),                                    # 1
              s.bash("rm -r victim", workdir=s.dir),           # 2
              Call("apply_patch", input=s.patch),              # 3
              Call("apply_patch", input=again),                # 4
              s.bash("echo two >made; cat made"),              # 5
              s.bash(told_form),                               # 6
              Call("view_image", path=s.ws + "/hello.txt"),    # 7
              hook=s.hook())
    holds(r.told(0), "hello.txt", "ls")
    holds(r.told(1), "caisson: shell: ", "rm")
    holds(r.told(2), "caisson: workspace: ", "a directory that is not in the workspace")
    holds(r.told(3), "caisson approvals allow a-", "a question")
    lacks(r.told(4), "caisson", "approved")
    holds(r.told(6), "two", f"what it was told to use instead: {sandboxed}")
    holds(r.told(7), "caisson: tool: ", "a tool that the policy has not")
    check(s.alive(), "the victim is gone")
    equal(sorted(set(os.listdir(s.ws)) - {".caisson"}), ["hello.txt", "made", "new"], "the workspace")
    s.heard(calls=7, went_well=3)


@test("codex: calls in a script of the model's are judged one by one; --rewrite moves a command into the sandbox; hooks.json, trusted")
def _(m):
    s = Codex(m)

    def script(tool, **args):
        what = json.dumps(args.get("patch", args))
        return Call("exec", input=f"text(await tools.{tool}({what}));")
    r = s.run(script("exec_command", cmd="ls"), script("exec_command", cmd=s.rm), script("exec_command", cmd="echo two >made; cat made"),
              script("apply_patch", patch=s.patch), hook=s.hook(" --rewrite"), managed=False, trust=True, model=Codex.SCRIPTS)
    holds(r.told(0), "hello.txt", "ls")
    holds(r.told(1), "caisson: shell: ", "rm")
    holds(r.told(2), "two", "what ran in a sandbox")
    holds(r.told(3), "caisson approvals allow a-", "a question")
    check(s.alive(), "the victim is gone")
    equal(sorted(set(os.listdir(s.ws)) - {".caisson"}), ["hello.txt", "made"], "the workspace")


@test("codex: what goes to the input of a program that runs already is not told to hooks", modes=("user",))
def _(m):
    s = Codex(m)
    r = s.run(s.bash("cat", tty=True, yield_time_ms=250),
              Call("write_stdin", session_id=lambda model: int(re.search(r"session ID (\d+)", model.result(0))[1]), chars="typed\n", yield_time_ms=250),
              hook=s.hook())
    holds(r.told(1), "typed", "what cat said")
    equal([what for kind, what in s.log() if kind == "call"], ["cat"], "write_stdin is told now: docs/hooks.md says otherwise")


@test("codex: a hook that fails is a refusal, with the command of the document", modes=("user",))
def _(m):
    failures(lambda: Codex(m), "blocked by PreToolUse hook")


@test("codex: why the document has that command: what the client takes for no answer", modes=("user",))
def _(m):
    no_answers(lambda: Codex(m), [("one that refuses without a word", "exit 2", 120)])


@test("codex: what the user's settings say does not switch off hooks of the machine's, with its feature held", modes=("user",))
def _(m):
    for managed in (False, True):
        s = Codex(m)
        r = s.run(s.bash(s.rm), hook=s.hook(), managed=managed, trust=True, config="hooks = false\n")
        equal(s.alive(), managed, f"managed {managed}: {r.told(0)}")


@test("nothing but loopback is there", modes=("root",))
def _(m):
    with open("/proc/net/dev") as f:
        equal([line.split(":")[0].strip() for line in f if ":" in line], ["lo"], "interfaces")


# ---- what they run in ----


def run(*argv, **kw):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=300, **kw)


def install():
    """The clients of the lock file, once; why not, or None."""
    lock, there = HERE + "/agents/package-lock.json", INSTALLED + "/package-lock.json"
    done = INSTALLED + "/done"
    with open(lock) as f:
        want = f.read()
    if os.path.exists(done) and os.path.exists(there):
        with open(there) as f:
            if f.read() == want:
                return None
    if not shutil.which("npm"):
        return "npm is not installed"
    shutil.rmtree(INSTALLED, ignore_errors=True)
    os.makedirs(INSTALLED)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(f"{HERE}/agents/{name}", INSTALLED)
    start = time.monotonic()
    try:
        # Scripts of packages would run as root, with a network: they are not needed.
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=INSTALLED)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
        return f"npm: {(e.output or b'').decode('utf-8', 'replace').strip()[-600:] or e}"
    with open(done, "w"):
        pass
    note(f"clients installed in {time.monotonic() - start:.0f} s")
    return None


def enter():
    """Start again with mounts and a network of our own, once the clients are there."""
    if os.environ.get("CS_AGENTS") == "in":
        return
    why = install()
    if why:
        print(f"{'not ok' if MUST_RUN else 'ok'} 1 - the clients' hooks # SKIP {' '.join(why.split())}")
        print("0 passed, 1 failed" if MUST_RUN else "0 passed, 0 failed, 1 skipped")
        sys.exit(MUST_RUN)
    os.environ["CS_AGENTS"] = "in"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def set_up(base):
    """Nothing of this is seen outside: the mounts are our own."""
    run("ip", "link", "set", "lo", "up")
    for name in ("agents", "etc"):
        os.mkdir(f"{base}/{name}")
        os.chmod(f"{base}/{name}", 0o755)
    run("mount", "--bind", "-o", "ro", INSTALLED, base + "/agents")  # the ordinary user may not reach the original
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", base + "/etc")
    run("cp", "-a", "/etc/.", base + "/etc")
    run("mount", "--bind", base + "/etc", "/etc")
    for path in map(os.path.dirname, MANAGED.values()):
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        os.chmod(path, 0o755)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", OUTSIDE)


def main():
    global AGENTS
    if os.geteuid() != 0:
        print(f"{'not ok' if MUST_RUN else 'ok'} 1 - the clients' hooks # SKIP needs root")
        print("0 passed, 1 failed" if MUST_RUN else "0 passed, 0 failed, 1 skipped")
        sys.exit(MUST_RUN)
    enter()
    base = tempfile.mkdtemp(prefix="cs-agents-")
    os.chmod(base, 0o755)
    AGENTS = base + "/agents"
    try:
        set_up(base)
        missing = tuple(client for client, pattern in (("claude-code", CLAUDE), ("codex", CODEX)) if not find(pattern))
        for client in missing:
            note(f"npm has no {client} for this machine")
        left_out = [] if MUST_RUN else [x for x in test.tests if missing and x[0].startswith(missing)]
        test.tests = [x for x in test.tests if x not in left_out]
        test.main(skipped=sum(len(x[2]) for x in left_out))
    finally:
        for name in ("agents", "etc"):
            subprocess.run(["umount", "--lazy", f"{base}/{name}"], stderr=subprocess.DEVNULL, check=False, timeout=20)
        for name in ("agents", "etc", ""):
            try:
                os.rmdir(f"{base}/{name}")
            except OSError as e:
                note(e)


if __name__ == "__main__":
    main()
