#!/usr/bin/env python3
"""The documents say what the program does.

Blocks that begin with ```console run in README.md and docs/*.md are run: every line "$ command" in one
temporary workspace per document, and its output is compared with the lines below it.  In those, "…" stands
for anything within a line, and a line that is only "…" for any number of lines.
Then: options in --help, manual page, completion and docs/run.md agree; links lead somewhere; every folder
of src/ is in ARCHITECTURE.md and every protection in SECURITY.md; docs/transactions.md has every command about them.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
RELEASE = TOP / "build" / "caisson"
CAISSON = Path(os.environ.get("CAISSON") or RELEASE).resolve()
if "asan" in CAISSON.parts and RELEASE.exists():  # a sanitizer adds words of its own; the documents show the release
    CAISSON = RELEASE
MARKDOWN = sorted([*TOP.glob("*.md"), *TOP.glob("docs/*.md")])
passed = failed = 0


def check(ok, name, *why):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    for line in ([] if ok else why):
        for part in str(line).splitlines():
            print("#", part)
    print("ok" if ok else "not ok", passed + failed, "-", name, flush=True)


def blocks(path):
    """(line number, [(command, [expected lines])]) of every block to be run."""
    found, steps, start = [], None, 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if steps is None:
            if line.strip() == "```console run":
                steps, start = [], number
        elif line.startswith("```"):
            found.append((start, steps))
            steps = None
        elif line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps:
            steps[-1][1].append(line)
        else:
            raise SystemExit(f"{path}:{number}: output before the first command")
    return found


def matches(expected, actual):
    """Whole-line wildcards match any number of lines, as few as possible."""
    parts = []
    for line in expected:
        if line == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append("[^\n]*".join(re.escape(p) for p in line.split("…")) + "\n")
    return re.fullmatch("".join(parts), actual) is not None


def run_blocks(path, tmp):
    name = path.relative_to(TOP)
    work, home, bins = tmp / "work", tmp / "home", tmp / "bin"
    state = tmp / "state"  # not the machine's: other people's transactions are no part of an example
    for d in (work, home, bins):
        d.mkdir()
    (bins / "caisson").symlink_to(CAISSON)
    env = {"PATH": f"{bins}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(home), "LANG": "C.UTF-8",
           "XDG_RUNTIME_DIR": str(home), "TERM": "dumb", "CAISSON_STATE": str(state)}
    for start, steps in blocks(path):
        for command, expected in steps:
            try:
                r = subprocess.run(["bash", "-c", command], cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, timeout=60, check=False)
                out = r.stdout.decode("utf-8", "backslashreplace")
            except subprocess.TimeoutExpired as e:
                out = (e.stdout or b"").decode("utf-8", "backslashreplace") + "[did not end within 60 s]\n"
            check(matches(expected, out), f"{name}:{start}: {command}", "expected:", "\n".join(expected), "seen:", out)


def run(*args):
    return subprocess.run([CAISSON, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=60).stdout.decode()


def long_options(text):
    return {w for w in re.findall(r"--([a-z][a-z-]+)", text)}


def commands():
    lines = run("help").split("Commands\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines]


def options_of(command):
    """As the table has them: from the roff form, which is made of nothing else."""
    return [w.replace("\\-", "-") for w in re.findall(r"^(?:\\fB\\-.\\fR, )?\\fB\\-\\-([^\\]+(?:\\-[^\\]+)*)\\fR", run("help", "--roff", command), re.M)]


# Commands that have a page of their own, or share one.
PAGES = {"run": "run", **dict.fromkeys(("txn", "diff", "commit", "rollback", "undo", "log"), "txn"),
         **dict.fromkeys(("begin", "exec", "steps", "fork", "end"), "session")}


def check_options(tmp):
    man = tmp / "man"
    subprocess.run([TOP / "scripts/make-man", man], check=True, env={**os.environ, "CAISSON": str(CAISSON)})
    shells = {s: run("completion", s) for s in ("bash", "zsh", "fish")}
    overview = (man / "caisson.1").read_text().replace("\\-", "-")
    for command in commands():
        options = options_of(command)
        shown = long_options(run("help", command))
        missing = [o for o in options if o not in shown]
        check(not missing, f"`caisson help {command}` shows every option of its table", missing)
        page = (man / f"caisson-{PAGES[command]}.1").read_text().replace("\\-", "-") if command in PAGES else overview
        missing = [o for o in options if f"--{o}" not in page]
        check(not missing, f"the manual page has every option of {command}", missing)
        check(re.search(rf"^\\fB{command}\\fR", overview, re.M), f"caisson(1) has {command}")
        for shell, text in shells.items():
            missing = [o for o in options if not re.search(rf"(--|-l ){o}\b", text)]
            check(not missing and command in text, f"{shell} completion has {command} and its options", missing)
    options = options_of("run")
    check(len(options) > 20, "the table of `caisson run` can be read", options)
    check(set(options) - {"off"} == long_options(run("run", "--help").split("Options\n")[1].split("\nExamples")[0]) - {"off"},
          "`caisson run --help` has the options of the table and no others")
    guide = (TOP / "docs/run.md").read_text(encoding="utf-8")
    missing = [o for o in options if o not in ("help", "off") and f"--{o}" not in guide]
    check(not missing, "docs/run.md has every option of `caisson run`", missing)
    unknown = long_options(" ".join(re.findall(r"caisson run [^`\n]*", guide))) - set(options) - {"dsik", "user"}
    check(not unknown, "docs/run.md uses no option that `caisson run` lacks", unknown)
    guide = (TOP / "docs/transactions.md").read_text(encoding="utf-8")
    for command in PAGES:
        check(f"`caisson {command}" in guide or f"$ caisson {command}" in guide or f"(caisson {command}" in guide,
              f"docs/transactions.md has `caisson {command}`")
        missing = [o for o in options_of(command) if o not in ("help", "off") and command not in ("run", "begin") and f"--{o}" not in guide]
        check(not missing, f"docs/transactions.md has every option of {command}", missing)
    keys = re.findall(r"^\.B ([a-z_.]+)$", run("help", "--roff", "profile-keys").replace("\\-", "-"), re.M)
    text = (TOP / "docs/profile.md").read_text(encoding="utf-8")
    check(len(keys) > 20 and not [k for k in keys if f"`{k}`" not in text], "docs/profile.md has every key",
          [k for k in keys if f"`{k}`" not in text])
    if shutil.which("groff"):
        for page in sorted(man.iterdir()):
            r = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
            check(not r.stderr, f"{page.name} formats without a warning", r.stderr.decode())
    for page in sorted(man.iterdir()):
        text = page.read_text()
        missing = [s for s in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "FILES", "ENVIRONMENT", "EXAMPLES", "SECURITY",
                               "SEE ALSO") if f"\n.SH {s}\n" not in text]
        check(not missing, f"{page.name} has every section", missing)


def check_result_fields(tmp):
    result = tmp / "result.json"
    subprocess.run([CAISSON, "run", "-q", "--workspace-mode", "none", "--json", result, "--", "true"], check=True, timeout=60)
    fields = re.findall(r'^  "([a-z_]+)":', result.read_text(), re.M)
    text = (TOP / "docs/run.md").read_text(encoding="utf-8")
    missing = [f for f in fields if f"`{f}`" not in text]
    check(fields and not missing, "docs/run.md has every field of the result", missing)


def check_links():
    for path in MARKDOWN:
        bad = []
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
                bad.append(target)
        check(not bad, f"{path.relative_to(TOP)}: every link leads to a file", bad)


def check_tree():
    text = (TOP / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = sorted(str(d.relative_to(TOP)) + "/" for d in (TOP / "src").rglob("*") if d.is_dir())
    missing = [f for f in folders if f"`{f}`" not in text]
    check(folders and not missing, "ARCHITECTURE.md lists every folder of src/", missing)
    missing = [f.name for f in sorted((TOP / "src/sandbox/native").glob("*.c")) if f"`{f.name}`" not in text]
    check(not missing, "ARCHITECTURE.md lists every file of the native back end", missing)
    missing = [f.name for f in sorted((TOP / "src/txn").glob("*.c")) if f"`{f.name}`" not in text]
    check(not missing, "ARCHITECTURE.md lists every file of src/txn/", missing)
    for path in MARKDOWN:
        words = re.findall(r"`((?:src|tests|scripts|tools|profiles|bench|man|packaging)/[A-Za-z0-9_./-]+)`", path.read_text(encoding="utf-8"))
        missing = sorted({w for w in words if not (TOP / w).exists()})
        check(not missing, f"{path.relative_to(TOP)}: every file it names is there", missing)
    security = (TOP / "SECURITY.md").read_text(encoding="utf-8")
    names = [n.replace("\\-", "-") for n in re.findall(r"^\.B (.+)$", run("help", "--roff", "protections"), re.M)]
    missing = [n for n in names if f"`{n}`" not in security]
    check(names and not missing, "SECURITY.md has every protection", missing)
    missing = [f for f in set(re.findall(r"`([a-z]+\.c)`", security)) if not (TOP / "tests/escape" / f).exists()]
    check(not missing, "the attack tests that SECURITY.md names are there", missing)


def check_changelog():
    version = run("version").split()[1]
    text = (TOP / "CHANGELOG.md").read_text(encoding="utf-8")
    check(re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", text, re.M), f"CHANGELOG.md has {version}")


def main():
    if not os.access(CAISSON, os.X_OK):
        raise SystemExit(f"no {CAISSON}: run make first")
    for path in MARKDOWN:
        if blocks(path):
            with tempfile.TemporaryDirectory(prefix="caisson-docs.") as tmp:
                run_blocks(path, Path(tmp))
    with tempfile.TemporaryDirectory(prefix="caisson-docs.") as tmp:
        check_options(Path(tmp))
        check_result_fields(Path(tmp))
    check_links()
    check_tree()
    check_changelog()
    print(f"1..{passed + failed}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
