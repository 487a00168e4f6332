#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`caisson sh` over the network: hosts that were reached, beside those that were predicted.

    test_sh.py [WORD]    run the tests whose sentence holds WORD

As root only, in the small internet of world.py; every test runs with Caisson as root and as an ordinary user.
"""
import json
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import NetSuite, check, children, equal, holds, until  # noqa: E402
from world import DNS, PRIVATE, PUBLIC  # noqa: E402

test = NetSuite()
REACH = "python3 -c \"import socket; s = socket.create_connection(('four.example.com', 7777)); s.sendall(b'x'); s.recv(9); open('f', 'w').write('y')\" f"


def sh(m, command, *flags, rules=("four.example.com:7777", "second.example.com:7777")):
    ws, out = m.fresh("ws"), os.path.join(m.fresh("json"), "r")
    profile = os.path.join(m.fresh("p"), "p.yaml")
    m.put(profile, "network: {allow: [%s]}\n" % ", ".join(f'"{r}"' for r in rules))
    r = m.cmd("sh", "-w", ws, "-p", profile, "--json", out, *flags, command, cwd=ws)
    with open(out, encoding="utf-8") as f:
        r.result = json.load(f)
    r.hosts = [(x["host"], x["predicted"], x["refused"]) for x in r.result["observed"]["hosts"]]
    r.ws = ws
    return r


@test("a host that was predicted and reached is told, and what was changed is committed")
def _(m):
    r = sh(m, "head -n 1 < /dev/tcp/four.example.com/7777 > got")
    equal((r.status, r.hosts), (0, [("four.example.com:7777", True, False)]), f"hosts ({r.err})")
    equal((r.result["fate"], r.result["hosts_not_predicted"]), ("committed", 0), "fate")
    check(os.path.exists(f"{r.ws}/got"), "the change is there")
    holds(r.err, "reached, and predicted: four.example.com:7777", "message")


@test("a host that was reached and not predicted is told, and nothing is committed unasked")
def _(m):
    r = sh(m, f"{REACH}; touch f")
    equal(r.status, 0, f"it ran ({r.err})")
    equal(r.hosts, [("four.example.com:7777", False, False)], "hosts")
    equal((r.result["fate"], r.result["hosts_not_predicted"], r.result["changes_not_predicted"]), ("pending", 1, 0), "fate")
    check(not os.path.exists(f"{r.ws}/f"), "the change is not there")
    holds(r.err, "reached, and not predicted: four.example.com:7777", "message")


@test("another host than the predicted one is not predicted, and the profile may have that rolled back")
def _(m):
    r = sh(m, f"head -n 1 < /dev/tcp/second.example.com/7777 > f; {REACH}", "--unexpected", "rollback")
    equal(sorted(r.hosts), [("four.example.com:7777", False, False), ("second.example.com:7777", True, False)], f"hosts ({r.err})")
    equal(r.result["fate"], "rolled back", "fate")


@test("a host that was tried and refused is told as that")
def _(m):
    r = sh(m, "python3 -c \"import socket\ntry: socket.create_connection(('private.example.com', 7777))\nexcept OSError: open('f', 'w')\"; touch f")
    check(r.hosts and all(refused and not predicted and h.startswith("private.example.com") for h, predicted, refused in r.hosts), f"hosts {r.hosts} {r.err}")
    equal(r.result["fate"], "pending", "fate")


@test("a name that a rule allows and whose address is refused was not reached; one where nobody listens was")
def _(m):
    r = sh(m, "python3 -c \"import socket\nfor a in ('private.example.com', 7777), ('four.example.com', 9):\n  try: socket.create_connection(a)\n  except OSError: pass\"",
           rules=("private.example.com:7777", "four.example.com:9"))
    equal(sorted(r.hosts), [("four.example.com:9", False, False), ("private.example.com:7777", False, True)], f"hosts ({r})")


@test("what was tried without a network is told: lookups, and bare addresses on every port")
def _(m):
    code = "import socket; from contextlib import suppress\nfor a in (('%s', 80), ('%s', 443)):\n with suppress(OSError): socket.create_connection(a)"
    ws, out = m.fresh("ws"), os.path.join(m.fresh("json"), "r")
    for command, hosts in (("curl -s http://evil.example.com/", [(f"{DNS}:53", True, True)]), (f"curl -s http://{PRIVATE}/", [(f"{PRIVATE}:80", True, False)]),
                           ("python3 -c \"%s\"" % (code % (PRIVATE, PUBLIC)), [(f"{PRIVATE}:80", False, False), (f"{PUBLIC}:443", False, False)])):
        r = m.cmd("sh", "-w", ws, "--json", out, command, cwd=ws)
        with open(out, encoding="utf-8") as f:
            result = json.load(f)
        seen = [(x["host"], x["predicted"], x["lookup"]) for x in result["observed"]["hosts"]]
        equal(seen, hosts, f"{command} ({r})")
        check(all(x["refused"] for x in result["observed"]["hosts"]), f"refused: {result['observed']}")
        for h, _, _ in hosts:
            holds(r.err, h, "message")
        holds(r.err, "has no network", "and why")
    r = m.cmd("sh", "-w", ws, "-q", "--json", out, "touch f", cwd=ws)
    with open(out, encoding="utf-8") as f:
        equal(json.load(f)["observed"]["hosts"], [], "control: who tries nothing")


@test("what was tried without a network and not predicted is not committed unasked")
def _(m):
    ws, out = m.fresh("ws"), os.path.join(m.fresh("json"), "r")
    for port, fate in ((7777, "pending"), (0, "committed")):
        code = f"import socket; from contextlib import suppress\nwith suppress(OSError): {port} and socket.create_connection(('{PUBLIC}', {port}))"
        r = m.cmd("sh", "-w", ws, "--json", out, f'python3 -c "{code}"; touch f{port}', cwd=ws)
        with open(out, encoding="utf-8") as f:
            result = json.load(f)
        equal((r.status, result["fate"], result["hosts_not_predicted"]), (0, fate, int(bool(port))), f"{r}")


@test("what is safe has no network")
def _(m):
    r = sh(m, "cat /etc/hostname")
    equal((r.status, r.result["path"], r.hosts), (0, "safe, without a shell", []), "result")


@test("a boundary that was killed takes its account with it: that counts as not predicted")
def _(m):
    ws, out = m.fresh("ws"), os.path.join(m.fresh("json"), "r")
    profile = os.path.join(m.fresh("p"), "p.yaml")
    m.put(profile, 'network: {allow: ["four.example.com:7777"]}\n')
    # It has reached its host, and waits for a file until the boundary is gone.
    command = "head -n 1 < /dev/tcp/four.example.com/7777 > got; sleep 3"
    p = m.popen([m.caisson, "sh", "-w", ws, "-p", profile, "--json", out, command], cwd=ws)
    edge = until(lambda: [c for c in children(p.pid) if "caisson-edge" in exe(c)], 5)
    check(edge, "no boundary was started")
    time.sleep(1)
    os.kill(edge[0], signal.SIGKILL)
    err = p.communicate(timeout=30)[1].decode()
    with open(out, encoding="utf-8") as f:
        result = json.load(f)
    equal((result["observed"]["partly"], result["fate"]), (True, "pending"), f"result ({err})")


def exe(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


if __name__ == "__main__":
    test.main()
