#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The policies meet their aims on the public traces (bench/gates/score.py), and their own tests pass."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from bed import CAISSON, DATA, TOP, Skip, equal, main, run, test  # noqa: E402


def score(only):
    if not os.path.isdir(DATA):
        raise Skip("no data: %s is not there" % DATA)
    r = subprocess.run([os.path.join(TOP, "bench/gates/score.py"), DATA, "--only", only, "--json"], capture_output=True, text=True, timeout=900,
                       env={**os.environ, "CAISSON": CAISSON})
    if r.returncode:
        raise AssertionError(r.stderr)
    return json.loads(r.stdout)


@test("tau-bench: every compliant trace is allowed, every mutant denied at its event by its rule")
def _():
    s = score("tau")
    equal(s["missed"], [], "missed")
    equal(s["tau"]["compliant"][1] > 300 and len(s["tau"]) > 10, True, "all of it was played")


@test("AgentDojo: benign tasks pass, attacks are stopped, with a plan and without")
def _():
    s = score("dojo")
    equal(s["missed"], [], "missed")
    equal(sum(r["attacks"] for r in s["agentdojo"]) > 800, True, "all of it was played")


@test("every policy under policies/ loads, every rule in it has a test, and its tests pass")
def _():
    names = sorted(n for n in os.listdir(os.path.join(TOP, "policies")) if n.endswith(".yaml"))
    equal(len(names) >= 8, True, "there are some")
    for name in names:
        r = run("gate", "--profile", os.path.join(TOP, "policies", name), input='{"type":"next"}\n')
        equal(r.returncode, 0, name + ": " + r.stderr)
        equal(bool(json.loads(r.stdout)["next"]), True, name + " allows something")
        r = run("rules", "test", os.path.join(TOP, "policies", name))
        equal(r.returncode, 0, name + ": " + r.stdout + r.stderr)
        r = run("rules", "check", os.path.join(TOP, "policies", name))
        equal((r.returncode, "warning" in r.stdout + r.stderr), (0, False), name + ": " + r.stdout + r.stderr)


main()
