#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `caisson rules prove` costs, with the solver: a desk of 16 tools and 9 rules, and the
retail policy, whose 10 rules look into results with keys that are computed.

    bench/prove.py [--quick]

Wall clock and processor time (ours and the solver's) of whole runs, the median of several."""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
CAISSON = os.environ.get("CAISSON") or str(TOP / "build" / "caisson")
DESK = TOP / "bench" / "prove" / "desk.rules"
RETAIL = TOP / "policies" / "retail.rules"
ROUNDS = 3 if "--quick" in sys.argv else 11
PLAN = {"steps": [{"tool": "find_user_id_by_email", "args": {"email": "$user"}}, {"tool": "get_user_details", "args": {"user_id": "$1"}},
                  {"tool": "get_order_details", "args": {"order_id": "W1"}}, {"confirm": True},
                  {"tool": "modify_pending_order_payment", "args": {"order_id": "W1", "payment_method_id": "$2.payment"}}]}


def cpu():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def measure(*args):
    """(wall, processor, questions, not proved), medians."""
    wall, used = [], []
    for _ in range(ROUNDS):
        at, before = time.monotonic(), cpu()
        r = subprocess.run([CAISSON, "rules", "prove", "--json", *args], capture_output=True, text=True, check=False)
        wall.append(time.monotonic() - at)
        used.append(cpu() - before)
        report = json.loads(r.stdout)["files"][0]
    open_ = sum(f["outcome"] == "cannot" for f in report["findings"])
    return statistics.median(wall), statistics.median(used), report["questions"], open_


def main():
    with tempfile.TemporaryDirectory() as d:
        plan, wider = Path(d, "plan.json"), Path(d, "wider.rules")
        plan.write_text(json.dumps(PLAN), encoding="utf-8")
        wider.write_text("\n".join(line for line in DESK.read_text(encoding="utf-8").splitlines() if not line.startswith("rule yes:")), encoding="utf-8")
        print(f"Load average {os.getloadavg()[0]:.1f}; median of {ROUNDS}.\n")
        print("| 16 tools, 9 rules | wall clock | processor | questions | not proved |\n|---|--:|--:|--:|--:|")
        for name, args in (("all checks, 3 assertions, depth 4", ["--depth", "4", DESK]), ("the same, depth 8", ["--depth", "8", DESK]),
                           ("the same, depth 12", ["--depth", "12", DESK]), ("narrower than itself, depth 8", ["--against", DESK, DESK]),
                           ("against a wider one, depth 8", ["--against", DESK, wider]), ("a plan of 5 steps", ["--plan", plan, DESK]),
                           ("policies/retail.rules (16 tools, 10 rules), depth 8", [RETAIL])):
            w, c, q, o = measure(*map(str, args))
            print(f"| {name} | {w:.2f} s | {c:.2f} s | {q} | {o} |", flush=True)


main()
