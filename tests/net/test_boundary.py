#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network boundary in ordinary use: rules, names, ports, budgets, changes while it runs, and what may be killed.

    test_boundary.py [WORD]    run the tests whose sentence holds WORD
    CAISSON=path               the program to test (default: build/caisson)

As root only: it makes namespaces with a small internet in them (world.py).  Every test runs with Caisson as
root and as an ordinary user.  Prints TAP lines and ends with `N passed, M failed`.
"""
import json
import os
import re
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import (INSIDE, PYTHON, NetSuite, allow, check, children, direct, edges, equal, holds, http, https, lacks, processes, tcp, until, word)  # noqa: E402
from world import METADATA, PRIVATE, PRIVATE6, PUBLIC, PUBLIC2, PUBLIC6, RAW_PORT  # noqa: E402

test = NetSuite()
AT_ONCE = 700  # ms, on a machine that does other things as well; a time-out would be seconds


def reached(a, address, port, what=""):
    equal(a.get("got"), f"at {address} {port}\n", f"{what} ({a})")


def not_reached(a, what=""):
    check(not a.get("got"), f"{what}: something came back: {a}")
    check(a["ms"] < AT_ONCE, f"{what}: refused only after {a['ms']:.0f} ms")


def ok200(a, what=""):
    check(a.get("got", "").startswith("HTTP/1.1 200 "), f"{what}: {a}")


# ---- rules ----


@test("a name without a port is 443 by TLS and 80 by HTTP, and nothing else")
def _(m):
    r = m.inside(allow("public.example.com"), [http("public.example.com"), https(m.world, "public.example.com"), tcp("public.example.com", 7777),
                                               tcp("public.example.com", 22), tcp("second.example.com", 80)])
    ok200(r.answers[0], "port 80")
    ok200(r.answers[1], "port 443")
    equal(r.answers[1]["issuer"], "the world's CA", "TLS is not touched")
    for a in r.answers[2:]:
        not_reached(a)
    holds(r.refusals, "no rule allows public.example.com:7777", "refusals")
    holds(r.refusals, "no rule allows second.example.com", "refusals")


@test("*.name is every name below it at any depth, and not the name itself or one that ends like it")
def _(m):
    names = ["nested.pub.example.com", "deep.nested.pub.example.com", "pub.example.com", "evilexample.com", "public.example.com"]
    r = m.inside(allow("*.pub.example.com:7777"), [tcp(n, 7777) for n in names])
    reached(r.answers[0], PUBLIC, 7777)
    reached(r.answers[1], PUBLIC, 7777)
    for n, a in zip(names[2:], r.answers[2:]):
        not_reached(a, n)
    r = m.inside(allow("*.example.com:7777"), [tcp("evilexample.com", 7777), tcp("four.example.com", 7777)])
    not_reached(r.answers[0])
    reached(r.answers[1], PUBLIC, 7777)


@test("* is every public name, and no private one")
def _(m):
    r = m.inside(allow("*:7777"), [tcp("four.example.com", 7777), tcp("b.wild.example.org", 7777), tcp("private.example.com", 7777)])
    reached(r.answers[0], PUBLIC, 7777)
    reached(r.answers[1], PUBLIC2, 7777)
    not_reached(r.answers[2])


@test("ports: one, a range, all of them")
def _(m):
    ports = [8000, 8001, 8002, 8003, 7777]
    r = m.inside(allow("four.example.com:8000-8002", "second.example.com:*"),
                 [tcp("four.example.com", p) for p in ports] + [tcp("second.example.com", p) for p in (22, 5432, 8003)])
    for p, a in zip(ports[:3], r.answers):
        reached(a, PUBLIC, p)
    for p, a in zip(ports[3:], r.answers[3:]):
        not_reached(a, str(p))
    for p, a in zip((22, 5432, 8003), r.answers[5:]):
        reached(a, PUBLIC2, p, f"`:*` and {p}")


@test("a network with a port is open to addresses and to names that lie there, on that port alone")
def _(m):
    qs = [direct(PRIVATE, 5432), tcp("private.example.com", 5432), direct(PRIVATE, 7777), direct("10.78.0.5", 5432), direct(PUBLIC, 5432),
          tcp("private.example.com", 7777)]
    r = m.inside(allow("10.77.0.0/16:5432", "private.example.com:5432", "private.example.com:7777"), qs)
    reached(r.answers[0], PRIVATE, 5432)
    reached(r.answers[1], PRIVATE, 5432)
    for q, a in zip(qs[2:], r.answers[2:]):
        not_reached(a, str(q))


@test("IPv6: names, networks and addresses")
def _(m):
    qs = [tcp("six.example.com", 7777), direct(PRIVATE6, 7777), direct(PRIVATE6, 5432), direct(PUBLIC6, 5432), tcp("private6.example.com", 7777),
          direct(PUBLIC6, 22), {"do": "code", "code": "result=[ask({'do':'tcp','to':a[4][0],'port':7777,'address':1,'want':'\\n'}) "
                                "for a in socket.getaddrinfo('six.example.com',7777,type=socket.SOCK_STREAM)]"}]
    r = m.inside(allow("six.example.com:7777", "[fd00:77::/32]:7777", f"[{PUBLIC6}]:22", "private6.example.com:7777"), qs)
    reached(r.answers[0], PUBLIC6, 7777)
    equal(len(r.answers[6]["result"]), 2, "addresses of both families")
    for a in r.answers[6]["result"]:
        reached(a, PUBLIC6, 7777, "a name by either family")
    reached(r.answers[1], PRIVATE6, 7777)
    not_reached(r.answers[2])
    not_reached(r.answers[3])
    reached(r.answers[4], PRIVATE6, 7777)
    reached(r.answers[5], PUBLIC6, 22)


@test("plain HTTP to addresses, of IPv6 too")
def _(m):
    def ask(to, port, host):
        return direct(to, port, say=f"GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n", want="")
    r = m.inside(allow(f"{PUBLIC}:80", f"[{PUBLIC6}]", f"[{PRIVATE6}]:8080/http"),
                 [ask(PUBLIC, 80, PUBLIC), ask(PUBLIC6, 80, f"[{PUBLIC6}]"), ask(PRIVATE6, 8080, f"[{PRIVATE6}]:8080"), ask(PUBLIC6, 80, PUBLIC6), ask(PUBLIC6, 80, "[::1]")])
    for a in r.answers[:3]:
        ok200(a)
    for a in r.answers[3:]:
        holds(a.get("got", ""), "HTTP/1.1 421", "another host")


@test("/tcp, /tls and /http say what is spoken on any port")
def _(m):
    n = "four.example.com"
    r = m.inside(allow(n + ":443/tcp", n + ":8443/tls", n + ":8080/http", n + ":7777/tls", n + ":8000/http"),
                 [https(m.world, n, sni="second.example.com", ca=None, blind=True), https(m.world, n, port=8443), http(n, port=8443),
                  http(n, port=8080, host=n + ":8080"), tcp(n, 7777, say="hello\r\n\r\n"), tcp(n, 8000, say="nonsense\r\n\r\n")])
    ok200(r.answers[0], "tcp does not look")
    ok200(r.answers[1], "tls on 8443")
    equal(r.answers[2].get("got", ""), "\x15\x03\x03\x00\x02\x02\x31", "HTTP on a tls rule gets the alert access_denied")
    ok200(r.answers[3], "http on 8080")
    lacks(r.answers[4].get("got", ""), "at ", "not TLS")
    lacks(r.answers[5].get("got", ""), "at ", "not HTTP")
    holds(r.answers[5].get("got", ""), "HTTP/1.1 400", "nonsense to a http rule")


@test("deny wins, wherever it stands and however broad what allows is")
def _(m):
    n = "four.example.com"
    r = m.inside(["--deny", n, *allow("*.example.com:7777", n + ":7777", "second.example.com:8000-8003", "six.example.com:7777"), "--deny", "second.example.com:8001",
                  "--deny", "[2606:2800::/32]"],
                 [tcp(n, 7777), tcp("second.example.com", 8000), tcp("second.example.com", 8001), tcp("public.example.com", 7777), tcp("six.example.com", 7777)])
    not_reached(r.answers[0])
    reached(r.answers[1], PUBLIC2, 8000)
    not_reached(r.answers[2])
    reached(r.answers[3], PUBLIC, 7777, "its IPv4 address is not denied")
    not_reached(r.answers[4], "at a denied address")
    check(any("denied by the rule" in x for x in r.refusals), f"{r.refusals}")


@test("hosts give a name its address, private ones too, and another port")
def _(m):
    r = m.inside(["--host", f"db.test={PRIVATE}:5432", "--host", f"four.example.com={PUBLIC2}", *allow("db.test:6000", "four.example.com:7777")],
                 [tcp("db.test", 6000), tcp("four.example.com", 7777), tcp("db.test", 5432), {"do": "lookup", "name": "db.test"}])
    reached(r.answers[0], PRIVATE, 5432)
    reached(r.answers[1], PUBLIC2, 7777)
    not_reached(r.answers[2])
    check(PRIVATE not in r.answers[3]["addresses"], "inside it is an address of ours")
    r = m.inside(["--host", f"db.test={PRIVATE}:5432", *allow("four.example.com:7777")], [tcp("db.test", 5432)])
    not_reached(r.answers[0], "an address is no permission")
    equal(m.world.asked("db.test"), [], "asked of nobody")


@test("a program's own servers on loopback work, on ports that are allowed outside as well")
def _(m):
    n = "four.example.com"
    own = "own server\n"
    with m.live(*allow(n + ":8080", n + ":8001")) as s:
        equal(s.ask(do="listen", port=8080).get("error"), None, "bind to 8080")
        equal(s.ask(**tcp("127.0.0.1", 8080)).get("got"), own, "loopback")
        ok200(s.ask(**http(n, port=8080)), "outside, on the same port")
        equal(s.ask(**tcp("127.0.0.1", 8080)).get("got"), own, "loopback, after that")
        reached(s.ask(**tcp(n, 8001)), PUBLIC, 8001)
        for at, port in (("0.0.0.0", 8000), ("::", 8002), ("::1", 8001), ("127.0.0.1", 8001), ("127.0.0.1", 9000)):
            a = s.ask(do="listen", at=at, port=port)
            equal(a.get("error"), None, f"bind to {at}:{port} ({a})")
            equal(s.ask(**tcp("::1" if ":" in at else "127.0.0.1", port)).get("got"), own, f"{at}:{port}")
        reached(s.ask(**tcp(n, 8001)), PUBLIC, 8001, "a server of its own does not stand in for others")


# ---- names ----


@test("A and AAAA are answered with addresses of ours, over UDP and TCP, in any case and with a final dot")
def _(m):
    qs = [{"do": "dns", "name": "public.example.com"}, {"do": "dns", "name": "public.example.com", "type": 28}, {"do": "dns", "name": "PubLIC.eXample.com."},
          {"do": "dns", "name": "public.example.com", "tcp": True}, {"do": "dns", "name": "public.example.com", "type": 28, "tcp": True},
          {"do": "lookup", "name": "public.example.com."}, {"do": "lookup", "name": "PUBLIC.EXAMPLE.COM", "flags": int(socket.AI_ADDRCONFIG)}]
    r = m.inside(allow("public.example.com:7777"), qs)
    a4, a6 = r.answers[0]["answers"][0], r.answers[1]["answers"][0]
    check(a4["value"].startswith(("198.18.", "198.19.")), f"{a4}")
    check(a6["value"].startswith("fdca:1550:"), f"{a6}")
    check(0 < a4["ttl"] <= 300, f"a time to live: {a4}")
    for i, want in ((2, a4), (3, a4), (4, a6)):
        equal(r.answers[i]["answers"], [want], f"question {i}")
    for i in (5, 6):
        equal(r.answers[i]["addresses"], sorted([a4["value"], a6["value"]]), f"getaddrinfo, question {i}")


@test("an alias is followed, and what does not exist is said not to at once")
def _(m):
    w = word()
    r = m.inside(allow("*.example.com:7777"), [tcp("alias.example.com", 7777), {"do": "lookup", "name": "nothing.example.com"},
                                                {"do": "lookup", "name": f"{w}.example.net"}, {"do": "lookup", "name": "loopchain.example.com"}])
    check(r.answers[0].get("got", "") in (f"at {PUBLIC} 7777\n", f"at {PUBLIC6} 7777\n"), f"{r.answers[0]}")
    equal(r.answers[1].get("error"), "NONAME", "a name that is not there")
    equal(r.answers[2].get("error"), "NONAME", "a name that is not allowed")
    check(r.answers[2]["ms"] < AT_ONCE, f"{r.answers[2]}")
    check("error" in r.answers[3], f"{r.answers[3]}")
    equal(m.world.asked(w), [], "a name that is not allowed is asked of nobody")


@test("a name server that does not answer costs seconds and nobody else's time")
def _(m):
    r = m.inside(allow("*.example.com:7777"), [{"do": "lookup", "name": "silent.example.com", "together": True}, tcp("four.example.com", 7777),
                                                {"do": "lookup", "name": "broken.example.com"}])
    check("error" in r.answers[0] and r.answers[0]["ms"] < 12000, f"{r.answers[0]}")
    reached(r.answers[1], PUBLIC, 7777)
    check(r.answers[1]["ms"] < 2000, f"{r.answers[1]}")
    check("error" in r.answers[2], f"{r.answers[2]}")


@test("UDP is refused at once with an error, also on 443, so that QUIC falls back")
def _(m):
    qs = [{"do": "udp", "to": n, "port": p} for n, p in (("public.example.com", 443), ("public.example.com", 4433), ("127.0.0.1", 5353))]
    qs += [{"do": "udp", "to": a, "port": 443} for a in (PUBLIC, PUBLIC6, METADATA)]
    r = m.inside(allow("public.example.com"), qs)
    for q, a in zip(qs[:3], r.answers):
        equal(a.get("error"), "ECONNREFUSED", f"{q}")
    for q, a in zip(qs[3:], r.answers[3:]):
        equal(a.get("error"), "ENETUNREACH", f"{q}")
    slow = [a for a in r.answers if a["refused_ms"] > 100]
    check(len(slow) < 2, f"within 100 ms: {slow}")


@test("ICMP is not there, and addresses that no rule names are unreachable at once")
def _(m):
    code = ("result=[]\nfor t in (socket.SOCK_DGRAM, socket.SOCK_RAW):\n try:\n  s=socket.socket(socket.AF_INET,t,socket.IPPROTO_ICMP)\n"
            "  s.settimeout(1)\n  s.sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0',('93.184.216.34',0))\n  s.recv(99)\n  result.append('answer')\n"
            " except OSError as e:\n  result.append(type(e).__name__)\n")
    places = [PUBLIC, PUBLIC2, PRIVATE, METADATA, "10.99.0.1", "198.41.0.4", PUBLIC6, PRIVATE6, "fd99::1"]
    r = m.inside(allow("public.example.com"), [{"do": "code", "code": code}] + [direct(a, 443) for a in places])
    lacks(r.answers[0]["result"], "answer", "ICMP")
    for p, a in zip(places, r.answers[1:]):
        equal(a.get("error"), "ENETUNREACH", p)
        check(a["ms"] < AT_ONCE, f"{p}: {a}")


# ---- what is told ----


@test("what was refused is listed at the end, with the flag that would allow it, and that flag does")
def _(m):
    qs = [tcp("four.example.com", 7777), tcp("four.example.com", 7777), tcp("second.example.com", 443), direct(PRIVATE, 5432)]
    r = m.inside(allow("four.example.com"), qs)
    # Each of both addresses, perhaps tried more than once.
    check(re.search(r"refused: connect four.example.com:7777 \(by network, \d+ times\): no rule allows four.example.com:7777; --allow four.example.com:7777\n",
                    r.err), f"at the end: {r.err}")
    holds(r.err, "refused: lookup second.example.com (by network", "at the end")
    holds(r.err, "--allow second.example.com", "at the end")
    told = {x["what"]: x for x in r.network["refusals"]}
    check(told["four.example.com:7777"]["count"] >= 2, "count")
    fix = told["four.example.com:7777"]["fix"].split()
    check(r.network["refused"] >= 3, f"{r.network}")
    r = m.inside(fix, qs[:1])
    reached(r.answers[0], PUBLIC, 7777)
    lacks(r.err, "refused", "nothing is refused now")
    equal(r.network["connections"], 1, "connections")


@test("--net-log has lookups, connections with bytes and time, and refusals, in JSON")
def _(m):
    log = m.fresh("log") + "/net.jsonl"
    m.inside(["--net-log", log, *allow("four.example.com:7777", "four.example.com")],
             [tcp("four.example.com", 7777, say="12345\n", want="12345"), tcp("second.example.com", 80), http("four.example.com", "/a?b")])
    with open(log) as f:
        events = [json.loads(x) for x in f]
    by = {}
    for e in events:
        check(e["sandbox"].startswith("s-") and e["time"] > 1e9, f"{e}")
        by.setdefault(e["event"], []).append(e)
    equal({e["name"] for e in by["lookup"]}, {"four.example.com"}, "lookups")
    equal(by["lookup"][0]["rule"].split(":")[0], "four.example.com", "the rule of a lookup")
    c = next(e for e in by["connect"] if e["port"] == 7777)
    equal((c["name"], c["address"], c["rule"]), ("four.example.com", PUBLIC, "four.example.com:7777"), "connect")
    c = next(e for e in by["close"] if e["port"] == 7777)
    equal((c["bytes_out"], c["bytes_in"]), (6, len(f"at {PUBLIC} 7777\n12345\n")), "bytes")
    check(0 <= c["ms"] < 20000, f"{c}")
    check(any(e["name"].startswith("second.example.com") and "no rule allows" in e["reason"] for e in by["refuse"]), f"{by['refuse']}")
    q = by["request"][0]
    equal((q["method"], q["path"], q["status"]), ("GET", "/a", 200), "request")


@test("--learn writes a profile that suffices, and refuses what is always refused")
def _(m):
    d = m.fresh("learn")
    qs = [tcp("four.example.com", 7777), http("second.example.com"), https(m.world, "public.example.com", port=8443), tcp("private.example.com", 7777),
          tcp("api.example.com", 7777), tcp("metadata.google.internal", 7777), direct(METADATA, 80), tcp("own-public.example.com", 7777)]
    r = m.inside(["--learn", d + "/p.yaml", "--deny", "api.example.com"], qs)
    reached(r.answers[0], PUBLIC, 7777)
    ok200(r.answers[1])
    ok200(r.answers[2])
    for a in r.answers[3:]:
        not_reached(a)
    with open(d + "/p.yaml") as f:
        text = f.read()
    for rule in ("four.example.com:7777", "second.example.com", "public.example.com:8443"):
        holds(text, rule, "the profile")
    for name in ("private.example.com", "api.example.com", "metadata", "own-public.example.com"):
        lacks(text, name, "the profile: what was refused")
    r = m.inside(["--profile", d + "/p.yaml"], qs + [tcp("four.example.com", 8000), tcp("api.example.com", 80)])
    reached(r.answers[0], PUBLIC, 7777)
    ok200(r.answers[1])
    ok200(r.answers[2])
    for a in r.answers[3:]:
        not_reached(a)


@test("--learn writes the addresses of names that were given with --host and used")
def _(m):
    p = os.path.join(m.fresh("learn"), "p.yaml")
    qs = [tcp("db.internal.example", 7777), tcp("six.given.example", 7777), tcp("four.example.com", 7777)]
    r = m.inside(["--learn", p, "--host", f"db.internal.example={PRIVATE}", "--host", f"six.given.example=[{PUBLIC6}]:8000", "--host", f"unused.example={PRIVATE}"], qs)
    again = m.inside(["--profile", p], qs)
    for x in (r, again):
        reached(x.answers[0], PRIVATE, 7777)
        reached(x.answers[1], PUBLIC6, 8000)
        reached(x.answers[2], PUBLIC, 7777)
    with open(p) as f:
        lacks(f.read(), "unused.example", "what was not used")


@test("--learn: a file that cannot be written costs no run, and a run that learns nothing leaves what was learnt before")
def _(m):
    d = m.fresh("learn")
    ran = os.path.join(m.fresh("ws"), "ran")
    os.mkfifo(d + "/fifo")
    os.symlink(d + "/p.yaml", d + "/link")
    os.chmod(m.put(d + "/closed"), 0o444)
    for bad in ["/nope/x", d, d + "/fifo", d + "/link", "/dev/null"] + ([] if m.is_root else [d + "/closed", "/etc/x"]):
        r = m.run("--learn", bad, "--rw", os.path.dirname(ran), "--", "touch", ran)
        equal((r.status, os.path.exists(ran)), (125, False), f"{bad} ({r})")
        lacks(r.err, "learnt", f"{bad}: nothing was")
    r = m.run("--learn", d + "/new", "--", "no-such-program")
    equal((r.status, os.path.exists(d + "/new")), (127, False), "not started, and no file")
    m.inside(["--learn", d + "/p.yaml"], [tcp("four.example.com", 7777)])
    with open(d + "/p.yaml") as f:
        before = f.read()
    holds(before, "four.example.com:7777", "control: it was learnt")
    r = m.run("--learn", d + "/p.yaml", "--", "true")
    with open(d + "/p.yaml") as f:
        equal((r.status, f.read()), (0, before), "left as it was")
    holds(r.err, "left as it was", "and said")
    r = m.run("--learn", d + "/new", "--", "true")
    with open(d + "/new") as f:
        holds(f.read(), "allow: []", "a new one says that nothing is needed")


# ---- while it runs ----


@test("caisson net: shows, allows and denies while it runs, and cuts what is no longer allowed")
def _(m):
    with m.live(*allow("four.example.com:7777")) as s:
        reached(s.ask(do="open", **{"as": "a"}, to="four.example.com", port=7777, want="\n"), PUBLIC, 7777)
        not_reached(s.ask(**tcp("second.example.com", 8000)))
        shown = s.show()
        equal(shown["allow"], ["four.example.com:7777"], "rules")
        equal([(o["name"], o["port"], o["address"]) for o in shown["open"]], [("four.example.com", 7777, PUBLIC)], "open")
        equal(shown["connections"], 1, "connections")
        check(any("second.example.com" in x["what"] for x in shown["refusals"]), f"{shown}")
        text = s.net("show")
        holds(text.out, "allow  four.example.com:7777\n", "show")
        holds(text.out, "open:\n", "show")
        equal(s.net("allow", "second.example.com:8000").status, 0, "allow")
        reached(s.ask(**tcp("second.example.com", 8000)), PUBLIC2, 8000, "a new rule holds at once")
        equal(s.net("allow", "10.77.0.0/16:5432").status, 0, "allow a network")
        reached(s.ask(**direct(PRIVATE, 5432)), PRIVATE, 5432, "a new network is reached at once")
        equal(s.ask(do="use", **{"as": "a"}, say="x\n", want="x\n").get("got"), "x\n", "still open")
        equal(s.net("deny", "four.example.com").status, 0, "deny")
        a = s.ask(do="use", **{"as": "a"}, say="y\n", timeout=2)
        check(a.get("error") in ("EPIPE", "ECONNRESET") or a.get("end") in ("ECONNRESET", "eof"), f"it is cut: {a}")
        equal(a.get("got", ""), "", "cut")
        not_reached(s.ask(**tcp("four.example.com", 7777)))
        equal(s.net("deny", "10.77.0.0/16").status, 0, "deny a network")
        not_reached(s.ask(**direct(PRIVATE, 5432)))
        for bad in (("allow", "https://x.org/"), ("allow",), ("forget", "x.org"), ("show", "x")):
            equal(s.net(*bad).status, 125, f"{bad}")
    equal(m.cmd("net", "s-aaaaaaa", "show").status, 125, "no such sandbox")


@test("under a locked profile only deny is taken while it runs")
def _(m):
    d = m.fresh("locked")
    m.put(d + "/p.yaml", "locked: true\nnetwork:\n  allow: ['*.example.com:7777']\n")
    with m.live("--profile", d + "/p.yaml") as s:
        reached(s.ask(**tcp("four.example.com", 7777)), PUBLIC, 7777)
        r = s.net("allow", "four.example.com:8000")
        equal(r.status, 125, f"allow ({r})")
        holds(r.err, "locked", "why")
        not_reached(s.ask(**tcp("four.example.com", 8000)))
        equal(s.net("deny", "four.example.com").status, 0, "deny")
        not_reached(s.ask(**tcp("four.example.com", 7777)))
        reached(s.ask(**tcp("second.example.com", 7777)), PUBLIC2, 7777)
    for flags in (["--allow", "x.org"], ["--learn", d + "/l"], ["--host", "x.org=1.2.3.4"], ["--publish", "9990:80"], ["--secret", "A_B=env@four.example.com"]):
        r = m.run("--profile", d + "/p.yaml", *flags, "--", "true", env={"A_B": "12345678901"})
        equal(r.status, 125, f"{flags} ({r})")


# ---- budgets ----


def budget_case(m, key, value, qs, flags):
    r = m.inside(["--net-budget", f"{key}={value}", *flags], qs)
    kind = key.rsplit(".", 1)[-1].replace("_", " ")
    who = "the host's budget of" if key.startswith("per_host") else "the budget of"
    check(any(x == f"{who} {kind} is used up" for x in r.refusals), f"{key}: {r.refusals} ({r})")
    holds(r.err, f"{who} {kind} is used up", "at the end")
    return r


@test("budgets of connections, in all and for each name")
def _(m):
    flags = allow("four.example.com:7777", "second.example.com:7777")
    one, two = tcp("four.example.com", 7777), tcp("second.example.com", 7777)
    r = budget_case(m, "connections", "2", [one, two, one], flags)
    reached(r.answers[1], PUBLIC2, 7777)
    not_reached(r.answers[2])
    r = budget_case(m, "per_host.connections", "1", [one, two, one], flags)
    reached(r.answers[1], PUBLIC2, 7777)
    not_reached(r.answers[2])


@test("budgets of bytes out and in, in all and for each name, cut what is open")
def _(m):
    flags = allow("four.example.com:7777", "four.example.com", "second.example.com")
    big = {"do": "tcp", "to": "four.example.com", "port": 7777, "say": "x" * 1000, "repeat": 300, "timeout": 4}
    load = http("four.example.com", "/size/300000")
    other = http("second.example.com", "/size/1000")
    r = budget_case(m, "bytes_out", "100K", [big, other], flags)
    check(len(r.answers[0].get("got", "")) < 300000, "it is cut")
    check(r.network["bytes_out"] < 300000 + 66000, f"{r.network}")
    lacks(r.answers[1].get("got", ""), "HTTP/1.1 200", "nothing goes any more")
    r = budget_case(m, "bytes_in", "100K", [load, other], flags)
    check(len(r.answers[0].get("got", "")) < 300000, "it is cut")
    r = budget_case(m, "per_host.bytes_in", "100K", [load, other], flags)
    ok200(r.answers[1], "another host has its own")
    r = budget_case(m, "per_host.bytes_out", "100K", [big, other], flags)
    ok200(r.answers[1], "another host has its own")


@test("a budget of bytes is not overdrawn, however many connections and however fast")
def _(m):
    w, n = word(), "public.example.com"
    code = (f"c=[socket.create_connection(('{n}',{RAW_PORT})) for _ in range(24)]\nfor s in c: s.setblocking(False)\nfor i in range(40):\n for s in c:\n"
            f"  try: s.send(b'{w}'*4000)\n  except OSError: pass\n time.sleep(0.01)\nresult=1\n")
    r = m.inside(["--net-budget", "bytes_out=20K", *allow(f"{n}:{RAW_PORT}/tcp")], [{"do": "code", "code": code}])
    holds(r.refusals, "the budget of bytes out is used up", "told")
    arrived = until(lambda: sum(map(len, m.world.raw(w))), 2)
    check(0 < arrived <= 20480, f"{arrived} bytes arrived of 20480")
    qs = [{"do": "tcp", "to": "four.example.com", "port": 443, "say": "x", "timeout": 3}, http("four.example.com", "/size/2000000", timeout=3)]
    r = m.inside(["--net-budget", "per_host.bytes_in=30K", *allow("four.example.com")], qs[1:])
    check(len(r.answers[0].get("got", "")) <= 30720, f"{len(r.answers[0].get('got', ''))} bytes came of 30720")
    r = m.inside(["--net-budget", "bytes_in=30K", *allow("four.example.com:80/tcp")], qs[1:])
    check(0 < len(r.answers[0].get("got", "")) <= 30720, f"{len(r.answers[0].get('got', ''))} bytes came of 30720")


@test("budgets of requests, in all and for each name, are said in a 403")
def _(m):
    flags = allow("four.example.com", "second.example.com")
    one, two = http("four.example.com"), http("second.example.com")
    r = budget_case(m, "requests", "2", [one, two, one], flags)
    ok200(r.answers[1])
    holds(r.answers[2]["got"], "HTTP/1.1 403", "beyond")
    holds(r.answers[2]["got"], "the budget of requests is used up", "beyond")
    r = budget_case(m, "per_host.requests", "1", [one, two, one], flags)
    ok200(r.answers[1])
    holds(r.answers[2]["got"], "HTTP/1.1 403", "beyond")


# ---- publishing ----


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def visit(port, host="127.0.0.1", say=b"hello\n"):
    try:
        with socket.create_connection((host, port), 5) as s:
            s.sendall(say)
            got = b""
            while not got.endswith(say) and (b := s.recv(1000)):
                got += b
            return got.decode()
    except OSError as e:
        return type(e).__name__


@test("--publish reaches a server inside, at the address that was said; other ports are not reached")
def _(m):
    a, b, c = free_port(), free_port(), free_port()
    with m.live("--publish", f"{a}:3000", "--publish", f"[::1]:{b}:3001", "--publish", f"{c}:3002", *allow("four.example.com:7777")) as s:
        for port in (3000, 3001, 4000):
            s.ask(do="listen", port=port, at="0.0.0.0" if port == 3001 else "127.0.0.1", hello=f"inside {port}\n")
        equal(visit(a), "inside 3000\nhello\n", "IPv4")
        equal(visit(b, "::1"), "inside 3001\nhello\n", "IPv6")
        holds(("", "ConnectionResetError"), visit(c), "nobody listens inside")
        for port in (3000, 4000):
            equal(visit(port), "ConnectionRefusedError", "not published")
        equal(visit(a, "10.99.0.1"), "ConnectionRefusedError", "at another address")
        reached(s.ask(**tcp("four.example.com", 7777)), PUBLIC, 7777)
        r = m.run("--publish", f"{a}:3000", "--", "true")
        equal(r.status, 125, f"the same port twice ({r})")
        holds(r.err, f"publish 127.0.0.1:{a}:3000" if "publish 127" in r.err else f"{a}:3000", "which")
        holds(r.err, "in use", "why")
        equal(len(r.err.splitlines()), 1, f"one line: {r.err!r}")
        out = os.path.join(m.fresh("json"), "r")
        equal((m.run("--publish", f"{a}:3000", "--json", out, "--", "true").status, m.cmd("begin", "--publish", f"{a}:3000").status), (125, 125), "run, begin")
        with open(out) as f:
            result = json.load(f)
        equal((result["exit_code"], result["reason"]), (125, "not_started"), "the result")
    equal(until(lambda: visit(a) == "ConnectionRefusedError", 3), True, "gone with the sandbox")


@test("a sandbox with nothing but published ports reaches nothing")
def _(m):
    p = free_port()
    with m.live("--publish", f"{p}:3000") as s:
        not_reached(s.ask(**tcp("four.example.com", 7777)))
        equal(s.ask(**direct(PUBLIC, 80)).get("error"), "ENETUNREACH", "directly")
        s.ask(do="listen", port=3000)
        equal(visit(p), "own server\nhello\n", "published")


# ---- sessions ----


@test("sessions have the network in every step, in copies too, until they end")
def _(m):
    ws = m.fresh("session")
    r = m.cmd("begin", "-w", ws, *allow("four.example.com:7777", "four.example.com:8000"), cwd=ws)
    equal(r.status, 0, f"begin ({r})")
    ids = [r.out.strip()]

    def step(id, *qs):
        r = m.cmd("exec", id, "--", PYTHON, "-c", INSIDE, json.dumps(qs), cwd=ws, timeout=40)
        check("\x01" in r.out, f"{r}")
        return json.loads(r.out.split("\x01", 1)[1])
    try:
        for _ in range(2):
            a = step(ids[0], tcp("four.example.com", 7777), tcp("second.example.com", 7777))
            reached(a[0], PUBLIC, 7777)
            not_reached(a[1])
        equal(m.cmd("net", ids[0], "allow", "second.example.com:7777").status, 0, "net allow")
        reached(step(ids[0], tcp("second.example.com", 7777))[0], PUBLIC2, 7777, "while it runs")
        equal(m.cmd("net", ids[0], "deny", "four.example.com:8000").status, 0, "net deny")
        not_reached(step(ids[0], tcp("four.example.com", 8000))[0], "denied")
        r = m.cmd("fork", ids[0], cwd=ws)
        equal(r.status, 0, f"fork ({r})")
        ids += r.out.split()
        reached(step(ids[1], tcp("four.example.com", 7777))[0], PUBLIC, 7777, "in a copy")
        not_reached(step(ids[1], tcp("four.example.com", 8000))[0], "denied in a copy")
        reached(step(ids[1], tcp("second.example.com", 7777))[0], PUBLIC2, 7777, "allowed in a copy")
        holds(m.cmd("net", ids[1], "show").out, "four.example.com:7777", "show of a copy")
        reached(step(ids[0], tcp("four.example.com", 7777))[0], PUBLIC, 7777, "in the first, still")
    finally:
        for id in ids:
            e = m.cmd("end", "--commit", "never", id, cwd=ws)
            if e.status:
                m.cmd("kill", "--force", id)
    check(until(lambda: m.cmd("net", ids[0], "show").status != 0, 5), "the network ends with the session")


# ---- what may be killed ----


@test("no boundary is started for a program that does not use the network")
def _(m):
    with m.live(*allow("four.example.com:7777")) as s:
        equal(s.ask(do="code", code="result=1")["result"], 1, "it runs")
        equal(s.edges(), [], "no process")
        reached(s.ask(**tcp("four.example.com", 7777)), PUBLIC, 7777)
        equal(len(s.edges()), 1, "one process when it is used")
    equal(m.inside([], [{"do": "code", "code": "result=1"}]).network, None, "no network, no report")


@test("the boundary killed: connections are lost, the next one works, nothing hangs")
def _(m):
    with m.live(*allow("four.example.com:7777", "four.example.com:8000")) as s:
        for port in (7777, 8000, 7777):
            reached(s.ask(do="open", **{"as": "a"}, to="four.example.com", port=port, want="\n"), PUBLIC, port)
            e = s.edges()
            equal(len(e), 1, "one process")
            os.kill(e[0], signal.SIGKILL)
            a = s.ask(do="use", **{"as": "a"}, say="x\n", want="x\n", timeout=4)
            check(a.get("error") or a.get("end") in ("eof", "ECONNRESET"), f"lost: {a}")
            until(lambda: not [p for p in s.edges() if p == e[0]], 3)
        a = s.ask(**tcp("four.example.com", 7777))
        check(a["ms"] < 8000, f"{a}")
        not_reached({**s.ask(**tcp("second.example.com", 7777)), "ms": 0}, "refused, still")
        s.proc.stdin.close()
        s.proc.stdin = None
        r = s.end()
        holds(r.err, "the network boundary ended unexpectedly", "it is said")


@test("the boundary killed: what was denied while it ran stays denied, what was allowed stays allowed")
def _(m):
    with m.live(*allow("four.example.com:7777", "second.example.com:7777")) as s:
        reached(s.ask(**tcp("four.example.com", 7777)), PUBLIC, 7777)
        for change in (("deny", "four.example.com"), ("allow", "second.example.com:8000"), ("allow", "10.77.0.0/16:5432")):
            equal(s.net(*change).status, 0, f"{change}")
        for _ in range(2):
            os.kill(s.edges()[0], signal.SIGKILL)
            until(lambda: not s.edges(), 3)
            time.sleep(0.2)
            not_reached(s.ask(**tcp("four.example.com", 7777)), "denied")
            reached(s.ask(**tcp("second.example.com", 8000)), PUBLIC2, 8000)
            reached(s.ask(**direct(PRIVATE, 5432)), PRIVATE, 5432)
        equal(s.show()["deny"], ["four.example.com"], "rules")


@test("with budgets, the boundary killed: nothing can be used a second time")
def _(m):
    with m.live("--net-budget", "connections=2", *allow("four.example.com:7777")) as s:
        reached(s.ask(**tcp("four.example.com", 7777)), PUBLIC, 7777)
        os.kill(s.edges()[0], signal.SIGKILL)
        until(lambda: not s.edges(), 3)
        time.sleep(0.2)
        for _ in range(2):
            a = s.ask(**tcp("four.example.com", 7777))
            check(not a.get("got") and a["ms"] < 12000, f"{a}")
        s.proc.stdin.close()
        s.proc.stdin = None
        holds(s.end().err, "the network boundary ended unexpectedly", "it is said")


@test("more ports than can be listened on at once are reached one after another")
def _(m):
    code = ("a=socket.gethostbyname('four.example.com')\nn={}\nfor p in [7777,*range(20000,20600),7777,8000]:\n s=socket.socket(); s.settimeout(3)\n"
            " try: s.connect((a,p)); n[p]=s.recv(99).decode()\n except OSError as e: n[p]=''\n s.close()\nresult=[n[7777],n[8000]]")
    a = m.inside(allow("four.example.com:*"), [{"do": "code", "code": code}]).answers[0]
    equal(a.get("result"), [f"at {PUBLIC} 7777\n", f"at {PUBLIC} 8000\n"], f"{a}")


@test("the boundary killed at any moment while many connect: refused or served, never hanging, never more than allowed")
def _(m):
    code = ("import threading,random\nn={'ok':0,'no':0,'bad':0}\n"
            "def f():\n for i in range(25):\n  for to,port in (('four.example.com',7777),('second.example.com',7777)):\n"
            "   a=ask({'do':'tcp','to':to,'port':port,'want':'\\n','timeout':6})\n   k='ok' if a.get('got') else 'no'\n"
            "   if to[0]=='s' and a.get('got'): k='bad'\n   if a['ms']>9000: k='bad'\n   n[k]+=1\n"
            "t=[threading.Thread(target=f) for _ in range(4)]\n[x.start() for x in t]\n[x.join() for x in t]\nresult=n\n")
    with m.live(*allow("four.example.com:7777")) as s:
        s.send(do="code", code=code)
        for i in range(3):
            e = until(s.edges, 5)
            time.sleep(0.05 * (i + 1))
            for p in e or ():
                try:
                    os.kill(p, signal.SIGKILL)
                except OSError:
                    pass
        n = s.answer()["result"]
        equal(n["bad"], 0, f"{n}")
        check(n["ok"] > 0, f"it comes back: {n}")


@test("with secrets, the boundary killed: the network stays off, and it is said why")
def _(m):
    flags = [*allow("four.example.com", "second.example.com:7777"), "--secret", "TOKEN_A=env@four.example.com"]
    with m.live(*flags, env={"TOKEN_A": "a-value-of-some-length"}) as s:
        reached(s.ask(**tcp("second.example.com", 7777)), PUBLIC2, 7777)
        os.kill(s.edges()[0], signal.SIGKILL)
        until(lambda: not s.edges(), 3)
        time.sleep(0.3)
        for q in (tcp("second.example.com", 7777), http("four.example.com")):
            a = s.ask(**q)
            check(not a.get("got") and a["ms"] < 12000, f"{a}")
        equal(s.edges(), [], "it is not started again")
        s.proc.stdin.close()
        s.proc.stdin = None
        holds(s.end().err, "the network boundary ended unexpectedly", "it is said")


def namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def below(pid):
    """The namespaces of a process's children and theirs, but not our own."""
    pids, found = [pid], set()
    for p in pids:
        found.add(namespace(p))
        pids += children(p)
    return found - {None, namespace("self")}


def in_use(spaces):
    return [p for p in filter(str.isdigit, os.listdir("/proc")) if namespace(p) in spaces]


@test("caisson killed: no boundary, no namespace, and gc clears the socket", alone=True)
def _(m):
    for moment in ("used", "unused", "busy"):
        with m.live(*allow("four.example.com:7777")) as s:
            s.ask(do="code", code="result=1")
            if moment != "unused":
                reached(s.ask(do="open", **{"as": "a"}, to="four.example.com", port=7777, want="\n"), PUBLIC, 7777)
            if moment == "busy":
                s.send(do="code", code="\nwhile 1: ask({'do':'tcp','to':'four.example.com','port':7777,'want':'x'*9})\n")
                time.sleep(0.2)
            id = s.id
            live = f"{m.sessions}.live/{id}.net"
            check(os.path.exists(live), f"the socket {live}")
            spaces = below(s.proc.pid)
            check(spaces, "it has a network of its own")
            os.kill(s.proc.pid, signal.SIGKILL)
            s.proc.wait()
            check(until(lambda: not s.edges() and not edges(m.base), 5), f"{moment}: a boundary is left: {edges(m.base)}")
            check(until(lambda: not in_use(spaces), 5), f"{moment}: a namespace is left, with {in_use(spaces)}")
            check(os.path.exists(live), "what a killed one left")
            os.utime(live, (1, 1))  # a young one may be about to be listened at
            equal(m.cmd("net", id, "show").status, 125, "nobody answers there")
            m.cmd("gc")
            check(not os.path.exists(live), f"{moment}: gc leaves {live}")


@test("caisson killed at any moment of its start: nothing is left", alone=True)
def _(m):
    port, w, spaces = free_port(), word(), set()
    flags = [*allow("four.example.com", "four.example.com:7777"), "--secret", "TOKEN_A=env@four.example.com", "--publish", f"{port}:3000"]
    question = json.dumps([tcp("four.example.com", 7777, note=w)] * 50)
    for i in range(12):
        p = m.popen([m.caisson, "run", *flags, "--", PYTHON, "-c", INSIDE, question], env={"TOKEN_A": "a-value-of-some-length"})
        time.sleep(0.012 * i)
        spaces |= below(p.pid)
        p.kill()
        p.communicate()
        check(until(lambda: not edges(m.base), 5), f"after {12 * i} ms a boundary is left")
        check(until(lambda: visit(port) == "ConnectionRefusedError", 5), "the published port is free")
    check(until(lambda: not in_use(spaces) and not processes(w), 5), f"left: {in_use(spaces)} {processes(w)}")
    live = f"{m.sessions}.live"
    for f in os.listdir(live) if os.path.isdir(live) else ():
        os.utime(f"{live}/{f}", (1, 1))
    m.cmd("gc")
    equal(os.listdir(live) if os.path.isdir(live) else [], [], "sockets")


@test("gc leaves the socket of a sandbox that runs")
def _(m):
    with m.live(*allow("four.example.com:7777")) as s:
        reached(s.ask(**tcp("four.example.com", 7777)), PUBLIC, 7777)
        m.cmd("gc")
        equal(s.show()["connections"], 1, "it answers")


@test("many sandboxes at once each have their own rules")
def _(m):
    many = [m.live(*allow(f"{n}:7777")) for n in ("four.example.com", "second.example.com", "api.example.com", "b.wild.example.org") for _ in range(2)]
    names = ("four.example.com", "second.example.com", "api.example.com", "b.wild.example.org")
    try:
        for s in many:
            for n in names:
                s.send(**tcp(n, 7777))
        for i, s in enumerate(many):
            for k, n in enumerate(names):
                a = s.answer()
                equal(bool(a.get("got")), k == i // 2, f"sandbox {i} to {n}: {a}")
    finally:
        for s in many:
            s.__exit__()


@test("real clients inside: curl, wget, python and git over HTTPS")
def _(m):
    d = m.fresh("clients")
    with open(m.world.ca) as f:
        m.put(d + "/ca.pem", f.read())
    flags = ["--ro", d, *allow("public.example.com", "four.example.com"), "--env", f"SSL_CERT_FILE={d}/ca.pem"]
    r = m.run(*flags, "--", "sh", "-c",
              f"curl -sS --cacert {d}/ca.pem https://public.example.com/a; echo; wget -qO- --ca-certificate={d}/ca.pem https://four.example.com/b; echo; "
              f"SSL_CERT_FILE={d}/ca.pem python3 -c 'import urllib.request as u; print(u.urlopen(\"https://four.example.com/c\").read().decode())'; "
              f"GIT_SSL_CAINFO={d}/ca.pem git ls-remote https://public.example.com/x.git 2>&1; curl -sS http://second.example.com/", timeout=60)
    for path in "abc":
        holds(r.out, f'"path": "/{path}"', f"{r}")
    check("Could not resolve" in r.err, f"{r}")
    check(any(x["path"].startswith("/x.git/info/refs") for x in m.world.seen("x.git")), f"git reached it: {r}")


if __name__ == "__main__":
    test.main()
