#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands and what `caisson classify` must say of them: cases.jsonl, a command and its class per line.

"not safe" and "not unsafe" are classes, too: what an attack must never be, and what harmless text must never be.
The commands are classified and never run.  Prints TAP lines and ends with `N passed, M failed`.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CAISSON = os.path.abspath(os.environ.get("CAISSON", os.path.join(ROOT, "build", "caisson")))


def main():
    with open(os.path.join(HERE, "cases.jsonl")) as f:
        cases = [json.loads(line) for line in f]
    text = "".join(json.dumps(c["command"]) + "\n" for c in cases)
    p = subprocess.run([CAISSON, "classify", "--lines", "--cwd", "/srv/ws"], input=text.encode(), capture_output=True, env={"HOME": "/home/u", "PATH": os.environ["PATH"]}, check=False)
    answers = [json.loads(line) for line in p.stdout.decode().split("\n") if line]
    failed = 0
    if len(answers) != len(cases):
        print(f"# {len(answers)} answers for {len(cases)} commands: {p.stderr.decode()[-300:]}")
        failed += 1
    for n, (case, got) in enumerate(zip(cases, answers), 1):
        want = case["class"]
        good = got["class"] != want[4:] if want.startswith("not ") else got["class"] == want
        name = json.dumps(case["command"])
        if not good:
            failed += 1
            print(f"# {got['class']}, wanted {want}: {got['because'][:3]}\nnot ok {n} - {name}")
        else:
            print(f"ok {n} - {name} is {want}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
