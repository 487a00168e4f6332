#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on the network boundary, each with a control that shows that the attack is real.

    test_attacks.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path               the program to test (default: build/caisson)

A control is the same attack in build/test/, with that one check left out (CAISSON_EDGE_OFF, see edge.h), or by
another route: a rule that does not look, or no sandbox at all.  As root only: it makes namespaces with a small
internet in them (world.py).  Prints TAP lines and ends with `N passed, M failed`.
"""
import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import HERE, PYTHON, SYSTEM_PATH, NetSuite, allow, check, direct, equal, holds, http, https, lacks, request, tcp, until, word  # noqa: E402
from world import (CGNAT, H2_PORT, LIAR_PORT, METADATA, METADATA6, OWN_PORT, PRIVATE, PRIVATE6, PUBLIC, PUBLIC2, PUBLIC6, RAW_PORT,  # noqa: E402
                   RAW_TLS_PORT, SILENT_PORT)

test = NetSuite()
P = OWN_PORT  # everybody in the world and the host itself listens there, and says where


def got(a):
    return a.get("got", "")


def refused(a, what, slow=3000):
    check(not got(a), f"{what}: something came back: {a}")
    check(a["ms"] < slow, f"{what}: not refused at once: {a}")


# ---- addresses that are never public, and their disguises ----

# name, what it is, where the same name leads with the check left out (None: nobody can be reached there)
SPECIAL = [
    ("private.example.com", "a private address", PRIVATE), ("metadata.example.com", "metadata", METADATA),
    ("loop.example.com", "a loopback address", "127.0.0.1"), ("loop2.example.com", "a loopback address", "127.8.9.1"),
    ("loop6.example.com", "a loopback address", "::1"), ("zero.example.com", "the unspecified address", "127.0.0.1"),
    ("zero6.example.com", "the unspecified address", "::1"), ("own.example.com", "", "10.99.0.1"), ("own6.example.com", "", "fd99::1"),
    ("own-public.example.com", "an address of this machine itself", "198.41.0.4"), ("cgnat.example.com", "carrier", CGNAT),
    ("linklocal.example.com", "a link-local address", "169.254.7.7"), ("linklocal6.example.com", "a link-local address", None),
    ("multicast.example.com", "a multicast address", None), ("multicast6.example.com", "a multicast address", None),
    ("broadcast.example.com", "a reserved address", None), ("documentation.example.com", "a reserved address", "192.0.2.1"),
    ("mapped.example.com", "a private address", PRIVATE), ("mappedloop.example.com", "a loopback address", "127.0.0.1"),
    ("mappedmeta.example.com", "metadata", METADATA), ("compat.example.com", "a private address", "::10.77.0.5"),
    ("nat64.example.com", "a private address", "64:ff9b::a4d:5"), ("nat64meta.example.com", "metadata", "64:ff9b::a9fe:a9fe"),
    ("sixtofour.example.com", "a reserved address", "2002:a4d:5::1"), ("teredo.example.com", "a reserved address", "2001::f5b2:fffa"),
    ("private6.example.com", "a private address", PRIVATE6), ("metadata6.example.com", "metadata", METADATA6),
    ("trap.example.com", "a private address", PRIVATE), ("ours.example.com", "a reserved address", "198.18.0.1"),
]
SPECIAL_RULES = ("*:%d" % P, "*.example.com:%d" % P, "0.0.0.0/0:%d" % P, "[::/0]:%d" % P)


def special_answers(m, off=None, tail=""):
    rules = [f"{n}:{P}" for n, _, _ in SPECIAL] + list(SPECIAL_RULES)
    r = m.inside(allow(*rules), [tcp(n + tail, P, together=True) for n, _, _ in SPECIAL], off=off)
    return r, list(zip(SPECIAL, r.answers))


@test("names of private, loopback, own, link-local, metadata and reserved addresses, in every disguise")
def _(m):
    r, pairs = special_answers(m)
    for (name, kind, _), a in pairs:
        refused(a, name)
        check(any(x.startswith(name + " is at ") and kind in x for x in r.refusals), f"{name}: why: {r.refusals}")
    equal(r.network["bytes_in"], 0, "bytes from there")


@test("names of special addresses: the control reaches every one of them")
def _(m):
    r, pairs = special_answers(m, off="address")
    for (name, _, at), a in pairs:
        equal(got(a), f"at {at} {P}\n" if at else "", name)
    equal(r.refusals, [], "nothing is refused, so connecting was tried")


@test("names of special addresses, in capitals and with a final dot")
def _(m):
    qs = [tcp(n.upper() + ".", P, together=True) for n, _, _ in SPECIAL[:8]]
    for q, a in zip(qs, m.inside(allow("*:%d" % P), qs).answers):
        refused(a, q["to"])
    a = m.inside(allow("*:%d" % P), qs[:1], off="address").answers[0]
    equal(got(a), f"at {PRIVATE} {P}\n", "control")


@test("an address of this host that looks public")
def _(m):
    rules = allow(f"own-public.example.com:{P}", f"198.0.0.0/8:{P}")
    refused(m.inside(rules, [tcp("own-public.example.com", P)]).answers[0], "by name")
    r = m.inside(allow(f"own-public.example.com:{P}", f"private.example.com:{P}"), [tcp("own-public.example.com", P), tcp("private.example.com", P)], off="own")
    equal(got(r.answers[0]), f"at 198.41.0.4 {P}\n", "control")
    refused(r.answers[1], "the other checks hold")
    r = m.inside(allow(f"own-public.example.com:{P}", f"198.41.0.4:{P}"), [tcp("own-public.example.com", P)])
    equal(got(r.answers[0]), f"at 198.41.0.4 {P}\n", "by a rule with that very address")


@test("addresses themselves, written in every way that programs take")
def _(m):
    forms = ["10.77.0.5", "10.77.5", "172818437", "0xa4d0005", "012.0115.0.5", "0xa.77.0.05", "169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.43518",
             "::ffff:10.77.0.5", "::ffff:a4d:5", PRIVATE6, METADATA6, "64:ff9b::a4d:5", "10.99.0.1", "198.41.0.4", "fd99::1", PUBLIC, PUBLIC6]
    rules = allow(f"*:{P}", *SPECIAL_RULES[:2])
    for f, a in zip(forms, m.inside(rules, [tcp(f, P) for f in forms]).answers):
        refused(a, f)
        check(a.get("error") in ("ENETUNREACH", "gaierror", "EINVAL", "ECONNREFUSED") or "gai" in str(a), f"{f}: {a}")
    for f in forms:  # the control: the same without a sandbox
        with socket.create_connection((f, P), 5) as s:
            check(s.recv(99).startswith(b"at "), f"control: {f}")


# What is probed, and what is said of it.
BARE = [(METADATA, "metadata"), (PRIVATE, "a private address"), (CGNAT, "carrier"), ("169.254.7.7", "a link-local address"), ("192.0.2.1", "a reserved address"),
        (PUBLIC, "rules for names do not hold for bare addresses"), ("10.99.0.1", "a private address"), ("198.41.0.4", "bare addresses"), (PRIVATE6, "a private address"),
        (METADATA6, "metadata"), (PUBLIC6, "bare addresses"), ("64:ff9b::a9fe:a9fe", "metadata")]


def place(a, port):
    return f"[{a}]:{port}" if ":" in a else f"{a}:{port}"


def bare_probes(m, flags, ports=(80, 443, 8080), off=None):
    """Each address on each port; answers, and what summary, result and log have for each."""
    log = os.path.join(m.fresh("log"), "log")
    probes = [(a, why, p) for a, why in BARE for p in ports]
    r = m.inside(["--net-log", log, *flags], [direct(a, p, together=True) for a, _, p in probes], off=off)
    with open(log) as f:
        events = [json.loads(x) for x in f]
    told = {x["what"]: x for x in r.network["refusals"] if x["kind"] == "connect"}
    logged = {x["name"]: x for x in events if x["event"] == "refuse"}
    return r, probes, told, logged


@test("a bare address cannot be probed unseen, on ports that rules open for names either")
def _(m):
    for flags in (allow("four.example.com"), allow("*"), allow("four.example.com", "10.78.0.0/16")):
        r, probes, told, logged = bare_probes(m, flags)
        for (a, why, p), answer in zip(probes, r.answers):
            at = place(a, p)
            refused(answer, at)
            check(at in told and why in told[at]["reason"] and told[at]["count"] == 1, f"{flags} {at}: in the result: {told.get(at)}")
            equal(told[at]["fix"].replace("'", ""), "--allow " + (f"[{a}/128]:{p}" if ":" in a else f"{a}/32:{p}"), f"{at}: what would allow it")
            check(at in logged and why in logged[at]["reason"], f"{flags} {at}: in the log: {logged.get(at)}")
        holds(r.err, f"refused: connect {METADATA}:80 (by network): ", "the summary")
    # Controls: with the check left out it is as unseen as it was, somebody is there, and a rule with that very address leads to them.
    r, probes, told, logged = bare_probes(m, allow("four.example.com"), ports=(80, 443), off="bare")
    equal((told, logged), ({}, {}), "control: unseen")
    for answer in r.answers:
        refused(answer, "and refused all the same")
    for a, _ in BARE:
        if a not in ("10.99.0.1", "198.41.0.4"):  # this host listens on another port
            socket.create_connection((a, 80), 5).close()
    r = m.inside(allow(f"{METADATA}:80"), [http(METADATA, host=METADATA)])
    holds(got(r.answers[0]), "HTTP/1.1 200", "control: by a rule with that very address")
    equal(r.refusals, [], "and nothing is refused")


@test("a bare address that a rule came to cover while it runs is told once, and one that stands for nobody is told")
def _(m):
    with m.live(*allow("four.example.com")) as box:
        box.ask(**direct(PRIVATE, 80))
        equal(box.net("allow", "10.77.0.0/16:5432").status, 0, "a rule for its network")
        box.ask(**direct("10.77.0.6", 80))
        equal(got(box.ask(**direct("10.77.0.6", 5432))), "at 10.77.0.6 5432\n", "what is allowed now")
        for a in ("198.18.77.77", "::127.0.0.1"):
            refused(box.ask(**direct(a, 80)), a)
        for a in ("127.0.0.1", "::1"):
            refused(box.ask(**direct(a, 80)), a)
        box.proc.stdin.close()
        box.proc.stdin = None
        r = box.end()
    told = {x["what"]: x["count"] for x in r.network["refusals"]}
    equal(told, {f"{PRIVATE}:80": 1, "10.77.0.6:80": 1, "198.18.77.77:80": 1, "[::7f00:1]:80": 1}, f"what was refused {r.err}")


@test("loopback inside is the sandbox's own, in every form")
def _(m):
    forms = ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost", "::1", "::ffff:127.0.0.1", "0.0.0.0", "0", "::"]
    for f, a in zip(forms, m.inside(allow(f"*:{P}", f"127.0.0.0/8:{P}"), [tcp(f, P) for f in forms]).answers):
        refused(a, f)
    for f in forms:
        with socket.create_connection((f, P), 5) as s:
            check(s.recv(99).startswith(b"at "), f"control: {f}")
    r = m.inside(allow(f"loop.example.com:{P}", f"127.0.0.0/8:{P}"), [tcp("loop.example.com", P)])
    equal(got(r.answers[0]), f"at 127.0.0.1 {P}\n", "by a rule with that very range")


@test("numbers as names in questions of DNS")
def _(m):
    names = ["10.77.5", "172818437", "0xa4d0005", "012.0115.0.5", "127.1", "0x7f000001", "10.77.0.5", "169.254.169.254", "4", "0x", "1.2.3.4.5"]
    r = m.inside(allow("*:%d" % P, "0.0.0.0/0:%d" % P), [{"do": "dns", "name": n} for n in names] + [{"do": "dns", "name": "four.example.com"}])
    for n, a in zip(names, r.answers):
        check(a["rcode"] == 3 and not a["answers"], f"{n}: {a}")
        equal([x for x in m.world.asked(n) if x == n], [], f"{n}: asked of nobody")
    check(r.answers[-1]["answers"], "control: a name")
    for bad in ("10.77.5", "0xa4d0005", "172818437", "010.0.0.1"):
        equal(m.run("--allow", bad + ":80", "--", "true").status, 125, f"a rule with {bad}")


@test("names of metadata services, by rules that are broad, in capitals, with dots")
def _(m):
    names = ["metadata.google.internal", "METADATA.google.internal.", "metadata.goog", "instance-data.ec2.internal", "metadata.c.project.internal", "x.metadata.google.internal"]
    rules = allow(f"*:{P}", f"*.internal:{P}", f"*.google.internal:{P}", f"*.goog:{P}", f"169.254.0.0/16:{P}", f"0.0.0.0/0:{P}")
    r = m.inside(rules, [tcp(n, P) for n in names] + [direct(METADATA, P), tcp("metadata.example.com", P), tcp("linklocal.example.com", P)])
    for n, a in zip(names, r.answers):
        refused(a, n)
    refused(r.answers[6], "its address by a broad rule")
    refused(r.answers[7], "a name of its address by a broad rule")
    equal(got(r.answers[8]), f"at 169.254.7.7 {P}\n", "control: the rest of that range is open")
    r = m.inside(allow(f"metadata.google.internal:{P}", f"{METADATA}:{P}"), [tcp("metadata.google.internal", P), direct(METADATA, P)])
    for a in r.answers:
        equal(got(a), f"at {METADATA} {P}\n", "control: by rules with that very name and address")


@test("answers that mix private and public addresses: only the public one is used")
def _(m):
    qs = [tcp("mixed.example.com", P) for _ in range(6)] + [tcp("mixed6.example.com", P) for _ in range(4)]
    for a in m.inside(allow(f"*.example.com:{P}"), qs).answers:
        check(got(a) in (f"at {PUBLIC} {P}\n", f"at {PUBLIC6} {P}\n"), f"{a}")
    a = m.inside(allow(f"*.example.com:{P}"), qs, off="address").answers
    check(any(PRIVATE in got(x) for x in a), f"control: {a}")


@test("a name that changes between lookup and connection, with a time to live of 0")
def _(m):
    def names():
        return [f"rebind-{word()}.example.com" for _ in range(4)]

    def attack(off, names):
        code = "\n".join([f"names={names!r}", "first=[ask({'do':'lookup','name':n}) for n in names]",
                          "early=[ask({'do':'tcp','to':n,'port':%d,'want':'\\n'}) for n in names[:1]]" % P, "time.sleep(1.3)",
                          "late=[ask({'do':'tcp','to':socket.inet_ntoa(bytes(map(int,f['addresses'][0].split('.')))),'port':%d,'want':'\\n'}) for f in first]" % P,
                          "result=[early,late]"])
        r = m.inside(allow(f"*.example.com:{P}"), [{"do": "code", "code": code}], off=off)
        check(r.answers[0].get("result"), f"{r.answers}")
        return r, *r.answers[0]["result"]
    r, early, late = attack(None, names())
    for a in early:
        check(got(a) in ("", f"at {PUBLIC} {P}\n"), f"public or nowhere: {a}")
    for a in late:
        refused(a, "the address that the name has now")
    check(any(f"is at {PRIVATE}, a private address" in x for x in r.refusals), f"{r.refusals}")
    _, _, late = attack("address", names())
    for a in late:
        equal(got(a), f"at {PRIVATE} {P}\n", "control")


@test("a name that changes all the time never leads to a private address")
def _(m):
    n = f"flip-{word()}.example.com"
    code = f"end=time.monotonic()+2.5\nresult=set()\nwhile time.monotonic()<end: result.add(ask({{'do':'tcp','to':'{n}','port':{P},'want':'\\n'}}).get('got',''))\nresult=list(result)"
    r = m.inside(allow(f"*.example.com:{P}"), [{"do": "code", "code": code}])
    check(set(r.answers[0]["result"]) <= {"", f"at {PUBLIC} {P}\n"}, f"{r.answers}")
    n2 = n.replace("flip-", "flip-c")
    a = m.inside(allow(f"*.example.com:{P}"), [{"do": "code", "code": code.replace(n, n2)}], off="address").answers[0]
    holds(a["result"], f"at {PRIVATE} {P}\n", "control")


@test("a rule for a network opens that network and those ports, and nothing beside")
def _(m):
    qs = [direct("10.77.0.5", 5432), direct("10.77.0.6", 5432), direct("10.77.0.5", P), direct("10.78.0.5", 5432), direct(METADATA, 5432), tcp("own.example.com", 5432),
          direct("64:ff9b::a4d:5", 5432), direct("::ffff:10.77.0.6", 5432), direct(PRIVATE6, 5432)]
    r = m.inside(allow("10.77.0.5/32:5432", "own.example.com:5432"), qs)
    equal(got(r.answers[0]), "at 10.77.0.5 5432\n", "what is allowed")
    for q, a in zip(qs[1:], r.answers[1:]):
        refused(a, str(q["to"]))
    r = m.inside(allow("10.76.0.0/14:5432", f"10.77.0.5:{P}"), qs)
    for i, at in ((0, "10.77.0.5 5432"), (1, "10.77.0.6 5432"), (2, f"10.77.0.5 {P}"), (3, "10.78.0.5 5432")):
        equal(got(r.answers[i]), f"at {at}\n", "control: a wider rule")
    refused(r.answers[4], "metadata")


@test("every public address: 0.0.0.0/0 opens nothing that is special")
def _(m):
    qs = [direct(a, P) for a in (PUBLIC, PRIVATE, METADATA, "10.99.0.1", CGNAT, "169.254.7.7", "192.0.2.1", PRIVATE6, METADATA6, "64:ff9b::a4d:5", "2002:a4d:5::1")]
    r = m.inside(allow(f"0.0.0.0/0:{P}", f"[::/0]:{P}"), qs)
    equal(got(r.answers[0]), f"at {PUBLIC} {P}\n", "control: what is public")
    for q, a in zip(qs[1:], r.answers[1:]):
        refused(a, q["to"])


@test("an own address that a rule for public addresses would cover")
def _(m):
    r = m.inside(allow(f"0.0.0.0/0:{P}"), [direct("198.41.0.4", P)])
    refused(r.answers[0], "this host's own public address, by number")
    with socket.create_connection(("198.41.0.4", P), 5) as s:
        holds(s.recv(99).decode(), "at 198.41.0.4", "control: it listens")


def is_release(m):
    with open(os.path.join(m.base, "caisson-edge"), "rb") as f:
        return b"CAISSON_EDGE_OFF" not in f.read()


@test("switches of the tests do nothing in a release")
def _(m):
    if not is_release(m):
        return  # somebody tries another build
    env = {"CAISSON_EDGE_OFF": "address,own,sni,ech,host,mask,rate,verify,bare"}
    r = m.inside(allow(f"private.example.com:{P}", "four.example.com"), [tcp("private.example.com", P), https(m.world, "four.example.com", sni="second.example.com")], env=env)
    for a in r.answers:
        refused(a, "with the variable set")
    r = m.inside(allow("four.example.com"), [direct(METADATA, 80)], env=env)
    check(r.refusals, "and told")


# ---- TLS ----


@test("TLS for another name, without a name, split into bytes, and no TLS at all")
def _(m):
    n = "four.example.com"
    flags = allow(n, "second.example.com:22", n + ":7777/tls")
    blind = {"blind": True, "ca": None}
    qs = [https(m.world, n, sni="second.example.com", **blind), https(m.world, n, sni="evil.example.net", **blind), https(m.world, n, sni=None, **blind),
          {"do": "hello", "to": n, "port": 443, "sni": "evil.example.net", "pieces": 1}, {"do": "hello", "to": n, "port": 443, "sni": "a." + n},
          {"do": "hello", "to": n, "port": 443, "sni": "evil" + n}, tcp(n, 7777, say="SSH-2.0-x\r\n", timeout=4), tcp(n, 443, say="GET / HTTP/1.1\r\n\r\n", timeout=4)]
    r = m.inside(flags, qs)
    for q, a in zip(qs[:3], r.answers):
        equal(a.get("error"), "TLS", f"SNI {q['sni']}: {a}")
        holds(a["text"].lower(), "access denied", "the alert")
    for q, a in zip(qs[3:6], r.answers[3:]):
        equal((a.get("record"), a.get("alert")), ("alert", 49), f"SNI {q['sni']}")
    for a in r.answers[6:]:
        lacks(got(a), "at ", "not TLS")
        lacks(got(a), "HTTP", "not TLS")
    for why in ("TLS is for 'second.example.com', but the name that was looked up is 'four.example.com'", "TLS does not say which server is meant (no server name)",
                "this rule is for TLS, and something else is spoken"):
        holds(r.refusals, why, "why")
    r = m.inside(flags, qs, off="sni")
    for a in r.answers[:3]:
        holds(got(a), "HTTP/1.1 200", "control")
    for a in r.answers[3:6]:
        equal(a.get("record"), "handshake", "control")
    r = m.inside(allow(n + ":7777"), qs[6:7])
    holds(got(r.answers[0]), "at ", "control: a rule that does not look")
    r = m.inside(flags, [{"do": "hello", "to": n, "port": 443, "sni": "FOUR.example.com"}, {"do": "hello", "to": n, "port": 443, "pieces": 7}])
    for a in r.answers:
        equal(a.get("record"), "handshake", "its own name in capitals, and in pieces")


@test("an encrypted client hello where the profile denies it")
def _(m):
    n, d = "four.example.com", m.fresh("ech")
    m.put(d + "/p.yaml", f"network:\n  allow: [{n}]\n  ech: deny\n")
    qs = [{"do": "hello", "to": n, "port": 443, "extension": 0xfe0d}, {"do": "hello", "to": n, "port": 443, "extension": 0xfe0d, "pieces": 3}, {"do": "hello", "to": n, "port": 443}]
    r = m.inside(["--profile", d + "/p.yaml"], qs)
    for a in r.answers[:2]:
        equal((a.get("record"), a.get("alert")), ("alert", 49), "with the extension")
    equal(r.answers[2].get("record"), "handshake", "without")
    holds(r.refusals, "TLS hides which server is meant (encrypted client hello)", "why")
    for flags, off in ((["--profile", d + "/p.yaml"], "ech"), (allow(n), None)):
        equal(m.inside(flags, qs, off=off).answers[0].get("record"), "handshake", "control")


# ---- HTTP ----


def forged(w):
    """Requests on a connection to public.example.com that mean another host."""
    t, o = f"/{w}", "evil.example.net"
    return {
        "forged Host": [request(o, t)],
        "absolute form": [f"GET http://{o}{t} HTTP/1.1\r\nHost: {o}\r\nConnection: close\r\n\r\n"],
        "absolute form, right Host": [f"GET http://{o}{t} HTTP/1.1\r\nHost: public.example.com\r\nConnection: close\r\n\r\n"],
        "right absolute form, forged Host": [f"GET http://public.example.com{t} HTTP/1.1\r\nHost: {o}\r\nConnection: close\r\n\r\n"],
        "userinfo": [f"GET http://public.example.com@{o}{t} HTTP/1.1\r\nHost: public.example.com@{o}\r\n\r\n"],
        "second request": [request("public.example.com", "/first", close=False), request(o, t)],
        "pipelined": [request("public.example.com", "/first", close=False) + request(o, t)],
        "two Hosts": [f"GET {t} HTTP/1.1\r\nHost: public.example.com\r\nHost: {o}\r\n\r\n"],
        "no Host": [f"GET {t} HTTP/1.1\r\nAccept: */*\r\n\r\n"],
        "another port": [request("public.example.com:8080", t)],
        "a longer name": [request("public.example.com.evil.example.net", t)],
        "CONNECT": [f"CONNECT {o}:80 HTTP/1.1\r\nHost: {o}:80\r\nX: {t}\r\n\r\n"],
        "CONNECT here": [f"CONNECT public.example.com:80 HTTP/1.1\r\nHost: public.example.com:80\r\nX: {t}\r\n\r\n"],
        "Host with a comma": [request(f"public.example.com, {o}", t)],
        "Host with a space before the colon": [f"GET {t} HTTP/1.1\r\nHost : {o}\r\nHost: public.example.com\r\n\r\n"],
    }


@test("plain HTTP for another host than the connection's")
def _(m):
    w = word()
    cases = forged(w)
    qs = [{"do": "tcp", "to": "public.example.com", "port": RAW_PORT, "say": [x.replace("public.example.com", f"public.example.com:{RAW_PORT}") if k not in
           ("another port", "a longer name", "userinfo") else x for x in v], "quiet": 0.6, "pause": 0.3, "together": True} for k, v in cases.items()]
    r = m.inside(allow(f"public.example.com:{RAW_PORT}/http"), qs)
    for k, a in zip(cases, r.answers):
        check(re.search(r"HTTP/1\.1 4\d\d ", got(a)), f"{k}: an answer that says no: {a}")
    equal(m.world.raw(w), [], "what arrived")
    holds(r.refusals, "this connection is for public.example.com only", "told")
    closing = [a for q, a in zip(qs, r.answers) if "Connection: close" in q["say"][0]]
    check(closing and all(a["end"] != "quiet" for a in closing), f"who will not ask again is not left waiting: {closing}")
    r = m.inside(allow(f"public.example.com:{RAW_PORT}/tcp"), qs)
    equal(len(m.world.raw(w)), len(cases), "control: a rule that does not look")
    w = word()
    r = m.inside(allow("public.example.com"), [http("public.example.com", "/" + w, host="evil.example.net")])
    holds(got(r.answers[0]), "HTTP/1.1 421", "on port 80")
    equal(m.world.seen(w), [], "on port 80")
    r = m.inside(allow("public.example.com"), [http("public.example.com", "/" + w, host="evil.example.net")], off="host")
    equal(dict(m.world.seen(w)[0]["headers"])["Host"], "evil.example.net", "control")


def smuggled(host, w):
    """Messages that two readers would take for different requests; the one that is hidden has the word."""
    s = f"DELETE /smuggled-{w} HTTP/1.1\r\nHost: {host}\r\n\r\n"
    n, chunked = len(s), f"0\r\n\r\n{s}"

    def post(*headers, body=""):
        return "\r\n".join(["POST /ok/x HTTP/1.1", f"Host: {host}", *headers]) + "\r\n\r\n" + body
    te = "Transfer-Encoding"
    return {
        "CL.TE": post(f"Content-Length: {len(chunked)}", f"{te}: chunked", body=chunked),
        "TE.CL": post("Content-Length: 4", f"{te}: chunked", body=f"{n:x}\r\n{s}\r\n0\r\n\r\n"),
        "TE.TE, an unknown one": post(f"{te}: chunked", f"{te}: x", body=chunked),
        "TE, an unknown one": post(f"{te}: xchunked", f"Content-Length: {len(chunked)}", body=chunked),
        "TE, not last": post(f"{te}: chunked, identity", body=chunked),
        "TE twice in one": post(f"{te}: chunked, chunked", body=chunked),
        "TE, space before the colon": post(f"{te} : chunked", f"Content-Length: {len(chunked)}", body=chunked),
        "TE, a tab": post(f"{te}:\tchunked", f"Content-Length: {len(chunked)}", body=chunked),
        "TE, vertical tab": post(f"{te}:\x0bchunked", f"Content-Length: {len(chunked)}", body=chunked),
        "TE, folded": post(f"{te}:\r\n chunked", f"Content-Length: {len(chunked)}", body=chunked),
        "TE, with NUL": post(f"{te}: chunked\0", f"Content-Length: {len(chunked)}", body=chunked),
        "TE, in quotes": post(f'{te}: "chunked"', f"Content-Length: {len(chunked)}", body=chunked),
        "TE behind a bare CR": post(f"X: y\r{te}: chunked", f"Content-Length: {len(chunked)}", body=chunked),
        "TE behind a bare LF": post(f"X: y\n{te}: chunked", f"Content-Length: {len(chunked)}", body=chunked),
        "CL twice": post("Content-Length: 0", f"Content-Length: {n}", body=s),
        "CL twice, turned": post(f"Content-Length: {n}", "Content-Length: 0", body=s),
        "CL, a list": post(f"Content-Length: 0, {n}", body=s),
        "CL, a sign": post(f"Content-Length: +{n}", body=s),
        "CL, minus": post("Content-Length: -1", body=s),
        "CL, hex": post(f"Content-Length: 0x{n:x}", body=s),
        "CL, too large": post("Content-Length: 18446744073709551616", body=s),
        "CL, a space in it": post(f"Content-Length: 0 {n}", body=s),
        "CL, folded": post("Content-Length: 0\r\n " + str(n), body=s),
        "CL, with an underscore and a space": post("Content-Length : " + str(n), body=s),
        "a first header that begins with a space": f"POST /ok/x HTTP/1.1\r\n Host: {host}\r\nContent-Length: 0\r\n\r\n{s}",
        "HTTP/1.0 with TE": f"POST /ok/x HTTP/1.0\r\nHost: {host}\r\n{te}: chunked\r\n\r\n{chunked}",
        "HTTP/1.2": f"GET /ok/x HTTP/1.2\r\nHost: {host}\r\n\r\n{s}",
        "HTTP/0.9": f"GET /ok/x\r\n{s}",
        "a space in the target": f"GET /ok/x HTTP/1.1\r\nX: y HTTP/1.1\r\nHost: {host}\r\n\r\n{s}",
        "chunk size with 0x": post(f"{te}: chunked", body=f"0x{n:x}\r\n{s}\r\n0\r\n\r\n"),
        "chunk size too large": post(f"{te}: chunked", body=f"10000000000000000{n:x}\r\n{s}\r\n0\r\n\r\n"),
        "chunk size negative": post(f"{te}: chunked", body=f"-1\r\n{s}\r\n0\r\n\r\n"),
        "chunk ends with LF": post(f"{te}: chunked", body=f"1\r\nx\n{n:x}\r\n{s}\r\n0\r\n\r\n"),
        "chunk extension with LF": post(f"{te}: chunked", body=f"1;a\nx\r\n{s}0\r\n\r\n"),
        "chunk longer than it says": post(f"{te}: chunked", body=f"1\r\nxx{s}\r\n0\r\n\r\n"),
        "bare LF between requests": f"GET /ok/x HTTP/1.1\nHost: {host}\n\n{s}",
    }


def judged(text, allowed):
    """The requests that a strict server finds in what arrived, each of which must be one that is allowed."""
    found, rest = [], text
    while rest:
        head, end, rest = rest.partition("\r\n\r\n")
        check(end, f"a head without an end: {text!r}")
        lines = head.split("\r\n")
        check(re.fullmatch(r"[A-Z]+ \S+ HTTP/1\.1", lines[0]), f"{lines[0]!r} in {text!r}")
        check(not re.search(r"[\r\n\0]", "".join(lines)), f"bare line ends in {head!r}")
        fields = [re.fullmatch(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*", x) for x in lines[1:]]
        check(all(fields), f"a strange line in {head!r}")
        by = {}
        for f in fields:
            by.setdefault(f[1].lower(), []).append(f[2])
        check(len(by.get("host", [])) == 1, f"Host in {head!r}")
        cl, te = by.get("content-length", []), by.get("transfer-encoding", [])
        check(len(cl) + len(te) <= 1 and te in ([], ["chunked"]), f"framing of {head!r}")
        if cl:
            rest = rest[int(cl[0]):]
        while te and rest:  # what was found to be framed wrongly ends in the middle, with the connection
            size, _, rest = rest.partition("\r\n")
            check(re.fullmatch("[0-9a-fA-F]+", size), f"a chunk of size {size!r}")
            check(rest[int(size, 16):int(size, 16) + 2] in ("\r\n", ""), f"a chunk's end: {rest!r}")
            rest = rest[int(size, 16) + 2:]
            if not int(size, 16):
                break
        found.append(lines[0])
        check(re.match(allowed, lines[0]), f"{lines[0]!r} arrived in {text!r}")
    return found


def smuggle(m, kind, host, port, rule, plain_rule, more=()):
    w = word()
    cases = smuggled(f"{host}:{port}", w)
    tls = {"blind": True} if kind == "tls" else {}
    qs = [{"do": kind, "to": host, "port": port, "say": text.replace("/ok/x", f"/ok/x-{w}"), "quiet": 0.7, "together": True, **tls} for text in cases.values()]
    r = m.inside([*allow(rule), *more], qs, timeout=60)
    hidden = f"smuggled-{w}"
    for k, a in zip(cases, r.answers):
        lacks(got(a), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nraw\nHTTP/1.1 200", f"{k}: two answers")
    for text in m.world.raw(w):
        judged(text, r"(POST|GET) /ok/x-" + w)
    check(any(x["kind"] == "request" and x["what"].startswith("? ") for x in r.network["refusals"]), f"told: {r.network}")
    refusals = [k for k, a in zip(cases, r.answers) if re.match(r"HTTP/1\.1 [45]\d\d ", got(a)) or not got(a)]
    check(len(refusals) >= len(cases) - 4, f"refused: {len(refusals)} of {len(cases)}; passed as one request: {set(cases) - set(refusals)}")
    before = len(m.world.raw(hidden))
    m.inside(allow(plain_rule), qs, timeout=60)
    check(len(m.world.raw(hidden)) >= before + len(cases) - 1, "control: a rule that does not look")


@test("smuggling by plain HTTP: what arrives is one request, as it was judged")
def _(m):
    h = "public.example.com"
    smuggle(m, "tcp", h, RAW_PORT, f"{h}:{RAW_PORT}/http GET,POST /ok/**", f"{h}:{RAW_PORT}/tcp")


@test("smuggling through TLS that is ended here")
def _(m):
    h = "public.example.com"
    smuggle(m, "tls", h, RAW_TLS_PORT, f"{h}:{RAW_TLS_PORT}/tls GET,POST /ok/**", f"{h}:{RAW_TLS_PORT}/tcp")


PATHS = ["/other", "/", "/okay/x", "/ok/../other", "/ok/./../other", "/ok/%2e%2e/other", "/ok/.%2e/other", "/ok/%2E%2E%2Fother", "/ok/..%2fother", "/ok%2f..%2fother",
         "/ok//other", "//ok/x", "/ok/\\..\\other", "/ok/..\\other", "/ok/%5c..%5cother", "/ok/..;/other", "/ok/%252e%252e/other", "/ok/x%00/../other", "/OK/x",
         "/%6fk/../x", "/ok/..", "/ok/%2e%2e", "*", "/ok/x/%c0%ae%c0%ae/%c0%ae%c0%ae/other"]


def rules_about_requests(m, kind, port, w):
    h = "public.example.com"
    tls = {"blind": True} if kind == "tls" else {}

    def ask(method, path):
        return {"do": kind, "to": h, "port": port, "say": request(f"{h}:{port}", path.replace("/other", "/other-" + w), method, headers=[f"X-Word: {w}"]), "quiet": 1.0,
                "together": True, **tls}
    bad = [("GET", p) for p in PATHS] + [(x, "/ok/x") for x in ("POST", "DELETE", "get", "GETX", "PATCH", "OPTIONS", "TRACE", "CONNECT")]
    proto = "tls" if kind == "tls" else "http"
    r = m.inside(allow(f"{h}:{port}/{proto} GET,HEAD /ok/**"), [ask(*b) for b in bad])
    for b, a in zip(bad, r.answers):
        check(re.match(r"HTTP/1\.1 4\d\d ", got(a)), f"{b}: {a}")
    equal(m.world.raw(w), [], "what arrived")
    says = got(r.answers[0])
    body = json.loads(says.split("\r\n\r\n", 1)[1])
    equal((body["error"], body["by"]), ("refused", "caisson"), "the answer")
    holds(body["reason"], f"no rule allows GET /other-{w}", "the answer")
    holds(body["allow"], "--allow ", "the answer")
    r = m.inside(allow(f"{h}:{port}/{proto} GET,HEAD /ok/**"), [ask("GET", "/ok/x"), ask("HEAD", "/ok/a/b?../c"), ask("GET", "/ok/a%20b")])
    for a in r.answers:
        holds(got(a), "HTTP/1.1 200", "what is allowed")
    n = len(m.world.raw(w))
    m.inside(allow(f"{h}:{port}/tcp"), [ask(*b) for b in bad])
    equal(len(m.world.raw(w)), n + len(bad), "control: a rule that does not look")


@test("requests that no rule allows, and paths that can be read in two ways, by plain HTTP")
def _(m):
    rules_about_requests(m, "tcp", RAW_PORT, word())


@test("requests that no rule allows, and paths that can be read in two ways, through TLS")
def _(m):
    rules_about_requests(m, "tls", RAW_TLS_PORT, word())


@test("a denial of requests holds for other spellings of the path")
def _(m):
    w, h = word(), "public.example.com"
    paths = ["/admin", "/admin/", "/admin/x", "/ADMIN/x", "/admin;a/x", "/%61dmin/x", "/x/../admin/x", "/x/%2e%2e/admin/x", "//admin/x", "/admin%2fx", "/./admin/x"]

    def ask(p):
        return {"do": "tcp", "to": h, "port": RAW_PORT, "say": request(f"{h}:{RAW_PORT}", p, headers=[f"X-Word: {w}"]), "quiet": 1.0, "together": True}
    flags = [*allow(f"{h}:{RAW_PORT}/http"), "--deny", f"{h}:{RAW_PORT}/http * /admin/**"]
    for p, a in zip(paths, m.inside(flags, [ask(p) for p in paths]).answers):
        check(re.match(r"HTTP/1\.1 4\d\d ", got(a)), f"{p}: {a}")
    equal(m.world.raw(w), [], "what arrived")
    for a in m.inside(flags, [ask("/other"), ask("/x/admin")]).answers:
        holds(got(a), "HTTP/1.1 200", "what is not denied")
    n = len(m.world.raw(w))
    m.inside(allow(f"{h}:{RAW_PORT}/http"), [ask(p) for p in paths])
    check(len(m.world.raw(w)) >= n + 3, "control: without the denial")


# ---- secrets ----


class Secret:
    def __init__(self):
        self.value = "S" + word() + "/+=" + word()
        self.flags = [*allow("api.example.com", "four.example.com", "api.example.com:8443", "public.example.com"), "--secret", "TOKEN_S=env@api.example.com"]
        self.env = {"TOKEN_S": self.value}

    def forms(self):
        """As it is, in base64 at every offset, in percent and JSON escapes."""
        v = self.value.encode()
        yield self.value
        for i in range(3):
            b = base64.b64encode(b"x" * i + v).decode()
            yield b[4 if i else 0:(len(b) // 4 - 1) * 4]
        yield base64.urlsafe_b64encode(v).decode().rstrip("=")[:-2]
        yield "".join(f"%{b:02x}" for b in v)
        yield "".join(f"\\u{b:04x}" for b in v)

    def none_in(self, text, what):
        for f in self.forms():
            check(f not in text, f"{what}: the secret is there, as {f[:24]!r}…")


def ours(to, path, **kw):
    """By TLS that the sandbox is told to trust."""
    more = {k: kw.pop(k) for k in ("method", "headers", "body", "close") if k in kw}
    return {"do": "tls", "to": to, "port": 443, "say": request(kw.pop("host", to), path, **more), **kw}


def with_placeholder(code):
    return {"do": "code", "code": "import os\nP=os.environ['TOKEN_S']\n" + code}


@test("a secret goes to its host, in its header, and the program has a placeholder")
def _(m):
    s, w = Secret(), word()
    log = m.fresh("log") + "/log"
    code = (f"r=lambda h: ask({{'do':'tls','to':'api.example.com','port':443,'say':'GET /{w} HTTP/1.1\\r\\nHost: api.example.com\\r\\n'+h+'Connection: close\\r\\n\\r\\n'}})\n"
            "result=[P, r(''), r('Authorization: token '+P+'\\r\\n'), r('Authorization: Bearer own\\r\\n'), r('Authorization: x\\r\\nAuthorization: y\\r\\n')]")
    r = m.inside(["--net-log", log, *s.flags], [with_placeholder(code)], env=s.env)
    check(r.answers[0].get("result"), f"{r.answers} {r}")
    check(r.answers[0]["result"][0] != s.value, "a placeholder")
    seen = [[v for k, v in x["headers"] if k.lower() == "authorization"] for x in m.world.seen(w)]
    equal(seen[:2], [["Bearer " + s.value], ["token " + s.value]], "what the server saw")
    for v in seen[2:]:
        check(len(v) == 1 and s.value in v[0] or not v, f"one header, ours: {v}")
    with open(log) as f:
        s.none_in(f.read(), "the log")
    s.none_in(json.dumps(r.result), "the result")
    s.none_in(r.err + r.out, "what is printed")


@test("a secret does not go to other hosts, ports, plain HTTP, URLs, bodies or other headers")
def _(m):
    s, w = Secret(), word()
    code = (f"h=lambda to,path='/{w}',head='Authorization: Bearer '+P+'\\r\\nX-Other: '+P+'\\r\\n',body='': 'POST '+path+' HTTP/1.1\\r\\nHost: '+to+'\\r\\n'+head+"
            "'Content-Length: '+str(len(body))+'\\r\\nConnection: close\\r\\n\\r\\n'+body\n"
            "t=lambda to,port,say,do='tls',**k: ask({'do':do,'to':to,'port':port,'say':say,'blind':True,**k})\n"
            "result=[t('four.example.com',443,h('four.example.com')), t('api.example.com',8443,h('api.example.com:8443')), t('api.example.com',80,h('api.example.com'),'tcp'),"
            f"t('api.example.com',443,h('api.example.com','/{w}?key='+P,'X-Other: '+P+'\\r\\nCookie: '+P+'\\r\\n','body='+P))]")
    r = m.inside(s.flags, [with_placeholder(code)], env=s.env)
    check(r.answers[0].get("result"), f"{r.answers}")
    seen = m.world.seen(w)
    equal(len(seen), 4, f"all arrived: {r.answers}")
    for x in seen[:3]:
        s.none_in(json.dumps(x), f"at {x['at']} {x['port']}")
        holds(json.dumps(x["headers"]), "caisson-secret-TOKEN_S", "the placeholder is nothing secret")
    head = [v for k, v in seen[3]["headers"] if k == "Authorization"]
    equal(head, ["Bearer " + s.value], "control: in its header")
    rest = {**seen[3], "headers": [x for x in seen[3]["headers"] if x[0] != "Authorization"]}
    s.none_in(json.dumps(rest), "elsewhere in the request")


@test("a secret does not follow a redirect")
def _(m):
    s, w = Secret(), word()
    code = (f"import subprocess\nresult=subprocess.run(['curl','-sSkL','--max-time','8','-H','Authorization: Bearer '+P,'-H','X-Word: {w}','--location-trusted',"
            f"'https://api.example.com/redirect?https://four.example.com/{w}'],capture_output=True,text=True).stdout")
    r = m.inside(s.flags, [with_placeholder(code)], env=s.env)
    s.none_in(str(r.answers), "what came back")
    seen = m.world.seen(w)
    equal([x["path"] for x in seen], [f"/redirect?https://four.example.com/{w}", f"/{w}"], f"followed: {r.answers}")
    holds(json.dumps(seen[0]), s.value, "control: the first had it")
    s.none_in(json.dumps(seen[1]), "the second")


@test("a secret with a forged Host, in another request on the connection, or with its header taken out")
def _(m):
    s, w = Secret(), word()
    cases = {k: [x.replace("public.example.com", "api.example.com").replace("http://", "https://") for x in v] for k, v in forged(w).items()}
    one = f"GET /{w} HTTP/1.1\r\nHost: api.example.com\r\n"
    cases.update({"Connection takes the header out": [one + "Connection: close, Authorization\r\n\r\n"], "Connection takes Host out": [one + "Connection: Host\r\n\r\n"],
                  "TRACE": [request("api.example.com", "/" + w, "TRACE")], "upgrade": [one + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"]})
    qs = [{"do": "tls", "to": "api.example.com", "port": 443, "say": v, "quiet": 0.7, "pause": 0.3, "together": True} for v in cases.values()]
    r = m.inside(s.flags, qs, env=s.env)
    for k, a in zip(cases, r.answers):
        check(re.search(r"HTTP/1\.1 [45]\d\d ", got(a)), f"{k}: {a}")
    equal([x["path"] for x in m.world.seen(w)], [], "what arrived")
    r = m.inside(s.flags, [ours("api.example.com", "/" + w, host="evil.example.net")], env=s.env, off="host")
    check(m.world.seen(w), f"control: {r.answers}")
    holds(json.dumps(m.world.seen(w)), s.value, "control")


@test("a secret does not go to a server whose certificate nobody has signed")
def _(m):
    s, w = Secret(), word()
    flags = [*allow(f"api.example.com:{LIAR_PORT}/tls"), "--secret", f"TOKEN_S=env@api.example.com:{LIAR_PORT}"]
    q = ours("api.example.com", "/" + w, host=f"api.example.com:{LIAR_PORT}", quiet=4)
    q["port"] = LIAR_PORT
    q["blind"] = True
    log = os.path.join(m.fresh("log"), "log")
    for env in ({}, {"SSL_CERT_FILE": None}):
        r = m.inside(["--net-log", log, *flags], [q], env={**s.env, **env})
        lacks(got(r.answers[0]), "HTTP/1.1 200", "an answer")
        equal(m.world.raw(w), [], "what arrived")
        told = r.network["refusals"]
        equal([(x["kind"], x["what"], x["count"]) for x in told], [("connect", f"api.example.com:{LIAR_PORT}", 1)], "it is told")
        holds(told[0]["reason"], "the certificate of api.example.com was not accepted: self-signed certificate", "why")
        holds(told[0]["fix"], "SSL_CERT_FILE", "what to do")
        holds(r.err, told[0]["reason"], "the summary")
        holds(got(r.answers[0]), "SSL_CERT_FILE", "what the program reads")
    with open(log) as f:
        events = [json.loads(x) for x in f]
    equal([x["name"] for x in events if x["event"] == "refuse" and "was not accepted" in x["reason"]], [f"api.example.com:{LIAR_PORT}"] * 2, "the log")
    r = m.inside(flags, [q], env=s.env, off="verify")
    check(any(s.value in x for x in m.world.raw(w)), f"control: {r.answers}")


@test("a private authority is trusted by SSL_CERT_FILE outside, by nothing that the program says")
def _(m):
    s, w = Secret(), word()
    own = m.put(os.path.join(m.fresh("ca"), "ca.pem"), open(m.world.dir + "/liar.crt").read(), 0o600)
    flags = [*allow(f"api.example.com:{LIAR_PORT}/tls"), "--secret", f"TOKEN_S=env@api.example.com:{LIAR_PORT}"]
    q = ours("api.example.com", "/" + w, host=f"api.example.com:{LIAR_PORT}", quiet=4)
    q["port"] = LIAR_PORT
    q["blind"] = True
    r = m.inside([*flags, "--ro", own, "--env", f"SSL_CERT_FILE={own}"], [q], env=s.env)
    equal((m.world.raw(w), len(r.refusals)), ([], 1), "by a variable inside")
    r = m.inside(flags, [q], env={**s.env, "SSL_CERT_FILE": own})
    holds(got(r.answers[0]), "HTTP/1.1 200", "by the variable outside")
    check(any(s.value in x for x in m.world.raw(w)) and not r.refusals, f"it arrived, and nothing is told: {r.refusals}")
    with open(own, "a") as f, open(m.world.ca) as ca:
        f.write(ca.read())
    r = m.inside([*allow("api.example.com"), "--secret", "TOKEN_S=env@api.example.com"], [ours("api.example.com", "/" + w)], env={**s.env, "SSL_CERT_FILE": own})
    holds(got(r.answers[0]), "HTTP/1.1 200", "a file with several")


@test("an answer that repeats the secret is masked in body and headers, in every form, also in pieces")
def _(m):
    s = Secret()
    paths = ["/headers-echo", "/forms", "/split", "/echo-nothing", "/"]
    r = m.inside(s.flags, [ours("api.example.com", p) for p in paths], env=s.env)
    for p, a in zip(paths, r.answers):
        holds(got(a), "HTTP/1.1 200", p)
        s.none_in(got(a), p)
    holds(got(r.answers[1]), "plain=***", "masked")
    check(r.network["masked"] >= 10, f"{r.network}")
    r = m.inside(s.flags, [ours("api.example.com", p) for p in paths[:3]], env=s.env, off="mask")
    for p, a in zip(paths, r.answers):
        # In chunks as they came: what stands between them is taken out.
        check(s.value in re.sub(r"\r\n(?:[0-9a-f]+\r\n)?", "", got(a)), f"control: {p}: {a}")
    for f in s.forms():
        holds(got(r.answers[1]), f, "control: every form is there")


@test("an answer in an encoding that cannot be read is refused")
def _(m):
    s = Secret()
    q = ours("api.example.com", "/gzip", headers=["Accept-Encoding: gzip"])
    r = m.inside(s.flags, [q], env=s.env)
    holds(got(r.answers[0]), "HTTP/1.1 502", "refused")
    lacks(got(r.answers[0]), "\x1f\x8b", "nothing of it")
    r = m.inside(s.flags, [q], env=s.env, off="mask")
    holds(got(r.answers[0]), "\x1f\x8b", "control")


NODE = shutil.which("node", path=SYSTEM_PATH)


def h2(m, s, requests, off=None):
    """Requests on one connection of HTTP/2, each a head and perhaps a body."""
    d = m.fresh("h2")
    with open(os.path.join(HERE, "h2.js")) as f:
        m.put(d + "/h2.js", f.read())
    flags = ["--ro", d, *allow(f"api.example.com:{H2_PORT}/tls"), "--deny", f"api.example.com:{H2_PORT}/tls DELETE /**", "--secret", f"TOKEN_S=env@api.example.com:{H2_PORT}"]
    argv = [m.program(off), "run", *flags, "--", NODE, d + "/h2.js", "client", "api.example.com", str(H2_PORT), json.dumps([r if isinstance(r, list) else [r] for r in requests])]
    r = m.call(argv, env={**s.env, **({"CAISSON_EDGE_OFF": off} if off else {})}, timeout=40)
    check("\x02" in r.out, f"{r}")
    got = json.loads(r.out.split("\x02", 1)[1])
    equal(got["alpn"], "h2", "the protocol")
    return got["answers"]


@test("HTTP/2: a secret goes with what is meant for its host, and with nothing else; answers are masked")
def _(m):
    if not NODE:
        return
    s, w, o = Secret(), word(), "evil.example.net"
    own = f"api.example.com:{H2_PORT}"
    good = h2(m, s, [{":path": f"/{w}-good"}, {":path": f"/{w}-good", "authorization": "token $TOKEN_S", "x-other": "$TOKEN_S"}, [{":path": f"/{w}-good?$TOKEN_S", ":method": "POST"}, "$TOKEN_S"]])
    equal([a[0] for a in good], [200, 200, 200], f"{good}")
    s.none_in(json.dumps(good), "what came back")
    seen = m.world.seen(w + "-good")
    equal([dict(x["headers"]).get("authorization") for x in seen], ["Bearer " + s.value, "token " + s.value, "Bearer " + s.value], "its header")
    for x in seen:
        s.none_in(json.dumps({**x, "headers": [h for h in x["headers"] if h[0] != "authorization"]}), "elsewhere")
    bad = [{":path": f"/{w}-bad", ":authority": o}, {":path": f"/{w}-bad", ":authority": own, "host": o}, {":path": f"/{w}-bad", ":method": "DELETE"},
           {":path": f"/{w}-bad", ":method": "TRACE"}, {":path": f"https://{o}/{w}-bad"}, {":path": f"/x/../{w}-bad", ":method": "DELETE"},
           {":path": f"/{w}-bad", ":authority": own + "@" + o}, {":path": f"/{w}-bad", ":authority": "api.example.com.evil.example.net"},
           {":path": f"/{w}-bad", ":authority": "api.example.com:443"}, {":method": "CONNECT", ":authority": f"{o}:443", "x": w + "-bad"}]
    for q in bad:  # each on a connection of its own, after a good one
        a = h2(m, s, [{":path": "/first"}, q])
        check(a[1][0] != 200, f"{q}: {a[1]}")
    equal(m.world.seen(w + "-bad"), [], "what arrived")
    a = h2(m, s, [{":path": "/gzip"}])
    check(a[0][0] != 200 and "\x1f\x8b" not in json.dumps(a, ensure_ascii=False), f"an encoding that cannot be read: {a}")
    a = h2(m, s, [{":path": f"/{w}-bad", ":authority": o}], off="host")
    check(any(s.value in json.dumps(x) for x in m.world.seen(w + "-bad")), f"control: {a}")
    holds(json.dumps(h2(m, s, [{":path": "/"}], off="mask")), s.value, "control")


DUMP = r"""
import os, re
out = open(OUT, 'wb')
for d in os.listdir('/proc'):
    if d.isdigit():
        for f in ('environ', 'cmdline', 'maps'):
            try: out.write(open('/proc/%s/%s' % (d, f), 'rb').read())
            except OSError: pass
        try:
            mem = open('/proc/%s/mem' % d, 'rb', 0)
            for line in open('/proc/%s/maps' % d):
                a, b = (int(x, 16) for x in line.split()[0].split('-'))
                if 'r' in line.split()[1] and b - a < 64 << 20 and '[v' not in line:
                    try:
                        mem.seek(a); out.write(mem.read(b - a))
                    except (OSError, ValueError, OverflowError): pass
        except OSError: pass
n = 0
for top in ('/run', '/tmp', '/etc/ssl', '/var/tmp', '/home', '/root', '/dev/shm', os.getcwd(), os.environ.get('HOME', '/')):
    for path, dirs, files in os.walk(top):
        for f in files:
            try:
                p = os.path.join(path, f)
                if os.path.isfile(p) and os.path.getsize(p) < 4 << 20 and p != OUT:
                    out.write(open(p, 'rb').read()); n += 1
            except OSError: pass
out.close()
result = n
"""


@test("a secret is in no environment, file or memory inside, after it was used and repeated")
def _(m):
    s = Secret()

    def attack(off=None, more=()):
        d = m.fresh("dump")
        code = (f"OUT={d + '/dump'!r}\n"
                "kept['a']=[ask({'do':'tls','to':'api.example.com','port':443,'say':'GET '+p+' HTTP/1.1\\r\\nHost: api.example.com\\r\\nConnection: close\\r\\n\\r\\n'}) "
                "for p in ('/headers-echo','/forms','/')]\n" + DUMP)
        r = m.inside(["--rw", d, *more, *s.flags], [{"do": "code", "code": code}], env=s.env, off=off)
        check(r.answers[0].get("result"), f"files were read: {r.answers}")
        with open(d + "/dump", "rb") as f:
            return f.read()
    dump = attack()
    check(len(dump) > 1 << 20 and b"caisson-secret-TOKEN_S" in dump, "memory was read, and the placeholder is there")
    for f in s.forms():
        check(f.encode() not in dump, f"the secret is inside, as {f[:20]!r}")
    check(b"PRIVATE KEY-----\nM" not in dump, "no private key of ours is inside")
    check(s.value.encode() in attack(off="mask"), "control: it would be found")


@test("a secret cannot be passed in by mistake, and must have a rule")
def _(m):
    s = Secret()
    for flags in (["--env", "TOKEN_S"], ["--env", "TOKEN_S=x1234567890"]):
        r = m.run(*s.flags, *flags, "--", "true", env=s.env)
        equal(r.status, 125, f"{flags} ({r})")
        s.none_in(r.err, "the message")
    for bad in ("TOKEN_S=env@*.example.com", "TOKEN_S=env@10.0.0.1", "TOKEN_S=env@", "TOKEN_S=env@nowhere.example.com"):
        equal(m.run(*allow("api.example.com", "*.example.com:8000"), "--secret", bad, "--", "true", env=s.env).status, 125, bad)
    equal(m.run(*s.flags, "--", "true", env={"TOKEN_S": "short"}).status, 125, "too short")
    equal(m.run(*s.flags, "--", "true", env={"TOKEN_S": None}).status, 125, "not there")


# ---- DNS as a tunnel ----


def label(b):
    return (bytes([len(b)]) + b).hex()


@test("questions with bytes that names do not have are asked of nobody")
def _(m):
    w = word().encode()
    tail = label(b"tunnel") + label(b"example") + label(b"org") + "00"
    bad = {"NUL": label(w + b"\0x") + tail, "a dot in a label": label(w + b".x") + tail, "a space": label(w + b" x") + tail, "8 bits": label(w + b"\xff") + tail,
           "a slash": label(w + b"/x") + tail, "escape": label(w + b"\x1b[2J") + tail, "newline": label(w + b"\nx") + tail, "a star": label(w) + label(b"*") + tail,
           "a long label": "40" + (w * 4)[:64].hex() + tail, "a pointer": label(w) + "c00c", "a long name": label(w) + label(b"a" * 63) * 4 + tail,
           "cut": label(w) + label(b"tunnel")[:-4], "an @": label(w + b"@x") + tail, "hyphen first": label(b"-" + w) + tail}
    flags = allow("*.tunnel.example.org:7777")
    r = m.inside(flags, [{"do": "dns", "hex": h, "timeout": 1.5, "together": True} for h in bad.values()])
    for k, a in zip(bad, r.answers):
        check(not a.get("answers"), f"{k}: {a}")
    equal(m.world.asked(w.decode()), [], "asked outside")
    check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\xff]", r.err), f"what is told has no raw bytes: {r.err!r}")
    r = m.inside(flags, [{"do": "dns", "hex": label(w) + tail}])
    check(r.answers[0]["answers"] and m.world.asked(w.decode()), "control: the word alone is a name")


@test("questions of other types, classes and kinds are not passed on and have no answer")
def _(m):
    w = word()
    n = f"{w}.tunnel.example.org"
    types = {"TXT": 16, "NULL": 10, "MX": 15, "CNAME": 5, "SRV": 33, "PTR": 12, "NS": 2, "SOA": 6, "ANY": 255, "AXFR": 252, "HTTPS": 65, "SVCB": 64, "NAPTR": 35, "private": 65280,
             "KEY": 25, "CAA": 257}
    qs = [{"do": "dns", "name": n, "type": t, "timeout": 2} for t in types.values()]
    qs += [{"do": "dns", "name": n, "class": c, "timeout": 2} for c in (3, 4, 255)]
    qs += [{"do": "dns", "name": n, "flags": f, "timeout": 0.7} for f in (0x2900, 0x1000, 0x8100, 0x2000)]
    r = m.inside(allow("*.tunnel.example.org:7777"), qs)
    for q, a in zip(qs, r.answers):
        check(not a.get("answers"), f"{q}: {a}")
    equal(m.world.asked(w), [], "asked outside")
    check(any("only addresses are looked up" in x for x in r.refusals), f"{r.refusals}")
    a = m.inside(allow("*.tunnel.example.org:7777"), [{"do": "dns", "name": n}]).answers[0]
    check(a["answers"] and m.world.asked(w), "control: for an address")


@test("a flood of different names is cut and told of")
def _(m):
    w, n = word(), 1500
    flags = allow("*.tunnel.example.org:7777")
    start = time.monotonic()
    r = m.inside(flags, [{"do": "flood", "name": f"{w}x#.tunnel.example.org", "n": n}, {"do": "flood", "name": f"x#{w}.not-allowed.example.org", "n": 200}])
    seconds = time.monotonic() - start
    most = 512 + 64 * seconds + 64
    counts = r.answers[0]["counts"]
    check(counts.get("0", 0) <= most < n, f"{counts} in {seconds:.1f} s")
    check(counts.get("2", 0) > 0, f"the rest is refused: {counts}")
    check(len(set(m.world.asked(w))) <= most, "asked outside")
    holds(r.refusals, "too many lookups in a short time", "told")
    equal(r.answers[1]["counts"].get("0", 0), 0, "names that are not allowed")
    equal(m.world.asked("not-allowed"), [], "asked outside")
    w = word()
    r = m.inside(flags, [{"do": "flood", "name": f"{w}x#.tunnel.example.org", "n": n}], off="rate")
    check(len(set(m.world.asked(w))) > 0.9 * n, f"control: {r.answers}")


@test("more different names than a sandbox may ask for, slowly enough not to be a flood", modes=("root",))
def _(m):
    w, most = word(), 16384
    r = m.inside(allow("*.tunnel.example.org:7777"), [{"do": "flood", "name": f"{w}x#.tunnel.example.org", "n": most + 600, "quiet": 4}], off="rate", timeout=100)
    equal(len(set(m.world.asked(w))), most, f"asked outside ({r.answers})")
    holds(r.refusals, "too many different names were looked up", "told")


@test("TCP questions: too long, two at once, stalled, too many")
def _(m):
    w = word()
    q = "".join(["126701000001000000000000", label(w.encode()), label(b"tunnel"), label(b"example"), label(b"org"), "0000010001"])
    code = (f"q=bytes.fromhex('{q}')\nf=struct.pack('>H',len(q))+q\n"
            "def go(b,t=1.5):\n try:\n  s=socket.create_connection(('127.0.0.1',53),3)\n  s.settimeout(t)\n  kept[len(kept)]=s\n  s.sendall(b)\n  return s.recv(4096).hex()\n"
            " except OSError as e: return type(e).__name__\n"
            "result=[go(struct.pack('>H',60000)+q),go(f+f),[go(b'\\0',0.01) for _ in range(40)]]\n[s.close() for s in kept.values()]\ntime.sleep(0.3)\nresult.append(go(f))\n")
    r = m.inside(allow("*.tunnel.example.org:7777"), [{"do": "code", "code": code}])
    a = r.answers[0].get("result")
    check(a, f"{r.answers}")
    check(a[0] in ("", "ConnectionResetError"), f"too long: {a[0]}")
    check(a[1] in ("", "ConnectionResetError"), f"two at once: {a[1]}")
    check(len(a[3]) > 40, f"control: one whole question is answered: {a[3]}")


# ---- the sandbox's network namespace ----

BREAKOUT = r"""
import ctypes, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(f):
    try:
        r = f()
        return 'done' if r is None else r
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
def sys_(r):
    if r < 0: raise OSError(ctypes.get_errno(), 'x')
def raw(family, kind, proto=0):
    def f():
        s = socket.socket(family, kind, proto); s.close()
    return f
def route():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    body = struct.pack('BBBBBBBBI', 2, 24, 0, 0, 254, 4, 0, 1, 0) + struct.pack('HH4s', 8, 1, bytes([10, 77, 0, 0])) + struct.pack('HHI', 8, 4, 1)
    s.settimeout(2)
    s.send(struct.pack('IHHII', 16 + len(body), 24, 0x605, 1, 0) + body)
    m = s.recv(4096)
    e = struct.unpack('i', m[16:20])[0]
    if e < 0: raise OSError(-e, 'netlink')
def ioctl_address():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(s, 0x8916, struct.pack('16sHH4s8x8x', b'lo', 2, 0, bytes([127, 0, 0, 9])))
def option(level, name, value):
    def f():
        s = socket.socket(); s.setsockopt(level, name, value); s.close()
    return f
def joins(path):
    def f():
        fd = os.open(path, os.O_RDONLY)
        sys_(libc.setns(fd, 0x40000000))
    return f
def forked(f):
    def g():
        r, w = os.pipe(); pid = os.fork()
        if not pid:
            os.write(w, attempt(f).encode()); os._exit(0)
        os.close(w); os.waitpid(pid, 0); text = os.read(r, 99).decode()
        return text
    return g
def new_userns():
    sys_(libc.unshare(0x10000000 | 0x40000000))
def bind_low():
    s = socket.socket(); s.bind(('127.0.0.1', 81)); s.close()
result = {'AF_PACKET': attempt(raw(17, socket.SOCK_RAW, 0x300)), 'AF_PACKET dgram': attempt(raw(17, socket.SOCK_DGRAM, 0x300)),
  'raw TCP': attempt(raw(socket.AF_INET, socket.SOCK_RAW, 6)), 'raw': attempt(raw(socket.AF_INET6, socket.SOCK_RAW, 255)),
  'a route': attempt(route), 'an address': attempt(ioctl_address), 'IP_TRANSPARENT': attempt(option(0, 19, 1)), 'SO_MARK': attempt(option(1, 36, 1)),
  'setns 1': attempt(joins('/proc/1/ns/net')) if 'JOIN' not in globals() else attempt(forked(joins(JOIN))), 'unshare': attempt(forked(new_userns)),
  'vsock': attempt(raw(40, socket.SOCK_STREAM)), 'bluetooth': attempt(raw(31, socket.SOCK_RAW, 1)), 'xdp': attempt(raw(44, socket.SOCK_RAW))}
"""


@test("raw sockets, packets, routes, addresses, other namespaces: nothing of it can be had")
def _(m):
    r = m.inside(allow("four.example.com:7777"), [{"do": "code", "code": BREAKOUT}, tcp("four.example.com", 7777), direct(PRIVATE, 80)])
    a = r.answers[0].get("result")
    check(a, f"{r.answers}")
    equal({k: v for k, v in a.items() if v == "done"}, {}, "what worked")
    equal(got(r.answers[1]), f"at {PUBLIC} 7777\n", "the network is as it was")
    equal(r.answers[2].get("error"), "ENETUNREACH", "no new route")
    # The control: root without a sandbox, in a namespace of its own.
    room = subprocess.run(["unshare", "--net", PYTHON, "-c", "import errno,json,socket,struct\nJOIN='/proc/self/ns/net'\nimport subprocess\nsubprocess.run(['ip','link','set','lo','up'])\n" +
                           BREAKOUT + "print(json.dumps(result))"], capture_output=True, text=True, timeout=20, check=False)
    control = json.loads(room.stdout.splitlines()[-1])
    for k in ("AF_PACKET", "raw TCP", "a route", "IP_TRANSPARENT", "SO_MARK", "setns 1", "unshare"):
        equal(control[k], "done", f"control: {k} ({room.stderr[-300:]})")


@test("the control sockets of Caisson cannot be reached from inside")
def _(m):
    with m.live(*allow("four.example.com:7777")) as other, m.live(*allow("four.example.com:7777")) as s:
        equal(got(other.ask(**tcp("four.example.com", 7777))), f"at {PUBLIC} 7777\n", "another sandbox runs")
        paths = [f"{m.sessions}.live/{x.id}.net" for x in (s, other)]
        code = f"""
result = {{}}
for p in {paths!r} + ['\\0' + x for x in {paths!r}] + ['\\0caisson', '\\0caisson-edge']:
    c = socket.socket(socket.AF_UNIX)
    try:
        c.connect(p); c.sendall(b'allow *:*\\n'); result[p] = c.recv(99).decode()
    except OSError as e: result[p] = errno.errorcode.get(e.errno)
    c.close()
result['proc'] = [l for l in open('/proc/net/unix').read().split('\\n')[1:] if '/' in l or '@' in l]
import os
result['fds'] = [os.readlink('/proc/self/fd/' + f) for f in os.listdir('/proc/self/fd') if os.path.islink('/proc/self/fd/' + f)]
"""
        a = s.ask(do="code", code=code).get("result")
        check(a, "answers")
        left = [x for x in a.pop("proc") if "caisson" in x or ".net" in x]
        equal(left, [], "/proc/net/unix")
        lacks(str([x for x in a.pop("fds") if x.startswith("socket:")]), "socket", "descriptors inside")
        for k, v in a.items():
            check(v in ("ENOENT", "ECONNREFUSED", "EACCES", "EPERM", "ENOTDIR"), f"{k!r}: {v}")
        for p in paths:  # the control: from outside, by who may
            c = socket.socket(socket.AF_UNIX)
            c.connect(p)
            c.sendall(b"show\n")
            holds(c.recv(9999).decode(), "allow  four.example.com:7777", "control")
            c.close()


@test("the boundary has no power of root while it serves, and nothing of it can be read")
def _(m):
    with m.live(*allow("four.example.com:7777")) as s:
        equal(got(s.ask(**tcp("four.example.com", 7777))), f"at {PUBLIC} 7777\n", "it runs")
        with open(f"/proc/{s.edges()[0]}/status") as f:
            status = dict(x.rstrip("\n").split(":\t", 1) for x in f)
        check("0" not in status["Uid"].split(), f"not root: {status['Uid']}")
        for caps in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            equal(int(status[caps], 16), 0, caps)
        equal(status["NoNewPrivs"], "1", "nothing by exec")
        a = s.ask(do="code", code=f"import os\nresult=[os.path.exists('/proc/{s.edges()[0]}'), [p for p in os.listdir('/proc') if p.isdigit() and 'edge' in open('/proc/'+p+'/comm').read()]]")
        equal(a.get("result"), [False, []], "it is not seen from inside")
        who = 61235  # another user, and the same one: it cannot be traced or read
        for uid in {who, m.uid} - {0} if is_release(m) else ():
            r = subprocess.run(["cat", f"/proc/{s.edges()[0]}/environ", f"/proc/{s.edges()[0]}/maps"], user=uid, group=uid, extra_groups=[], capture_output=True, text=True, check=False)
            equal(r.stdout, "", f"by {uid}")
            holds(r.stderr, "Permission denied", f"by {uid}")
        with open(f"/proc/{os.getpid()}/environ", "rb") as f:
            check(f.read(), "control: a process can be read by who may")


@test("a user that is somebody else cannot change a sandbox's network", modes=("root",))
def _(m):
    with m.live(*allow("four.example.com:7777")) as s:
        path = f"{m.sessions}.live/{s.id}.net"
        code = f"import socket\ns=socket.socket(socket.AF_UNIX)\ns.connect({path!r})\ns.sendall(b'show\\n')\nprint(s.recv(999))"

        def by(uid):
            return subprocess.run([PYTHON, "-c", code], user=uid, group=uid, extra_groups=[], capture_output=True, text=True, timeout=10, check=False)
        equal(got(s.ask(**tcp("four.example.com", 7777))), f"at {PUBLIC} 7777\n", "it runs")
        check("Permission denied" in by(61235).stderr, f"{by(61235)}")
        holds(by(0).stdout, "allow", "control")


@test("an address of another sandbox's name, or of no name, stands for nobody")
def _(m):
    with m.live(*allow("four.example.com", "four.example.com:7777", "second.example.com:7777")) as a, m.live(*allow("second.example.com", "second.example.com:7777")) as b:
        for x in (a, b):
            equal(got(x.ask(**tcp("second.example.com", 7777)))[:3], "at ", "both run")
        theirs = a.ask(do="lookup", name="four.example.com")["addresses"]
        for addr in theirs:
            for port in (443, 80, 7777, 22):
                x = b.ask(**direct(addr, port, say="GET / HTTP/1.1\r\nHost: four.example.com\r\n\r\n", timeout=4))
                # By chance it may stand for the one name that b has: never for a's.
                check(not got(x) or PUBLIC2 in got(x) or " 421 " in got(x), f"{addr}:{port}: {x}")
            holds(got(a.ask(**direct(addr, 80, say=request("four.example.com"), timeout=4))), "HTTP/1.1 200", "control: in its own sandbox")


@test("scanning inside costs nothing outside: no connection, no lookup, no descriptor")
def _(m):
    w = word()
    with m.live(*allow("four.example.com", "four.example.com:7777", "second.example.com:*")) as s:
        equal(got(s.ask(**tcp("four.example.com", 7777))), f"at {PUBLIC} 7777\n", "it runs")
        edge = s.edges()[0]
        before = s.show()
        fds = len(os.listdir(f"/proc/{edge}/fd"))
        code = f"""
import random
n = {{}}
def t(f):
    try: f(); k = 'open'
    except OSError as e: k = errno.errorcode.get(e.errno, type(e).__name__)
    n[k] = n.get(k, 0) + 1
def c(a, p):
    def f():
        s = socket.socket(); s.settimeout(2)
        with s:
            s.connect((a, p)); s.sendall(b'{w}'); s.recv(1); raise OSError(999, 'x')
    t(f)
four = socket.getaddrinfo('four.example.com', 80)[0][4][0] if 0 else socket.gethostbyname('four.example.com')
for i in range(300): c('198.%d.%d.%d' % (random.choice((18, 19)), random.randrange(256), random.randrange(256)), random.choice((443, 80)))
for p in range(1, 1500, 5): c(four, p) if p not in (443, 80, 7777) else 0
for i in range(200): c('10.%d.0.1' % i, 80)
result = n
"""
        r = s.ask(do="code", code=code)
        n = r.get("result")
        check(n, f"{r}")
        check(r["ms"] < 20000, f"at once: {r}")
        check(n.get("open", 0) + n.get("ETIMEDOUT", 0) + n.get("TimeoutError", 0) == 0, f"{n}")
        after = s.show()
        equal(after["connections"], before["connections"], "connections")
        equal(after["lookups"] - before["lookups"] <= 2, True, "lookups")
        check(until(lambda: len(os.listdir(f"/proc/{edge}/fd")) <= fds + 20, 3), f"descriptors: {fds}, now {len(os.listdir(f'/proc/{edge}/fd'))}")
        equal(m.world.raw(w), [], "nothing arrived")
        equal(got(s.ask(**tcp("four.example.com", 7777))), f"at {PUBLIC} 7777\n", "control: what is allowed is reached still")


@test("data with the first packet, and an address changed while it is looked at, go nowhere else")
def _(m):
    w = word()
    code = f"""
import threading, ctypes
result = []
def fast(a, p):
    s = socket.socket(); s.settimeout(3)
    try:
        s.sendto(b'{w}', 0x20000000, (a, p)); return s.recv(99).decode()
    except OSError as e: return errno.errorcode.get(e.errno, type(e).__name__)
four = socket.gethostbyname('four.example.com')
result.append([fast('{PRIVATE}', {P}), fast('{PUBLIC}', {P}), fast(four, 22), fast(four, {P})])
libc = ctypes.CDLL(None, use_errno=True)
def packed(a, p): return struct.pack('=HH4s8x', 2, socket.htons(p), socket.inet_aton(a))
good, bad = packed(four, {P}), packed('{PRIVATE}', {P})
also = packed(four, 22)
buf = ctypes.create_string_buffer(good, 16)
stop = False
def flip():
    while not stop:
        for x in (good, bad, also): ctypes.memmove(buf, x, 16)
t = threading.Thread(target=flip); t.start()
seen = set()
end = time.monotonic() + 2
while time.monotonic() < end:
    s = socket.socket(); s.settimeout(2)
    if libc.connect(s.fileno(), buf, 16) == 0 or ctypes.get_errno() == 115:
        try: seen.add(s.recv(99).decode())
        except OSError as e: seen.add(type(e).__name__)
    s.close()
stop = True; t.join()
result.append(sorted(seen))
"""
    r = m.inside(allow(f"four.example.com:{P}"), [{"do": "code", "code": code}])
    fast, seen = r.answers[0].get("result") or (None, None)
    check(fast, f"{r.answers}")
    check(set(fast) <= {"ENETUNREACH", "ECONNREFUSED", "EPERM"}, f"data with the first packet: {fast}")
    check(set(seen) <= {f"at {PUBLIC} {P}\n", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError", "TimeoutError", ""}, f"{seen}")
    holds(seen, f"at {PUBLIC} {P}\n", "control: the one that is allowed was reached")


# ---- stalling ----


@test("clients that say nothing are closed in time and slow nobody")
def _(m):
    n = "four.example.com"
    code = f"""
stalled = [socket.create_connection(('{n}', 443), 5) for _ in range(150)]
for i, s in enumerate(stalled[:50]): s.sendall(b'\\x16\\x03\\x01\\x02'[:1 + i % 4])
half = [socket.create_connection(('{n}', 80), 5) for _ in range(50)]
for s in half: s.sendall(b'GET / HT')
t = time.monotonic()
fast = [ask({{'do':'tcp','to':'{n}','port':80,'say':'GET / HTTP/1.1\\r\\nHost: {n}\\r\\nConnection: close\\r\\n\\r\\n'}}) for _ in range(20)]
fast += [ask({{'do':'tcp','to':'{n}','port':{P},'want':'\\n'}}) for _ in range(20)]
open_ = stalled
ends = []
for s in open_:
    s.settimeout(max(0.1, 14 - (time.monotonic() - t)))
    try: ends.append(s.recv(99).hex())
    except OSError as e: ends.append(type(e).__name__)
result = [[a['ms'] for a in fast if a.get('got')], ends, time.monotonic() - t]
"""
    r = m.inside(allow(n, f"{n}:{P}"), [{"do": "code", "code": code}], timeout=60)
    a = r.answers[0].get("result")
    check(a, f"{r.answers}")
    equal(len(a[0]), 40, "others are served")
    check(sorted(a[0])[30] < 500, f"at once: {sorted(a[0])[-10:]}")
    equal([x for x in a[1] if x == "TimeoutError"], [], "closed in time")
    check(a[2] < 14, f"{a[2]}")
    holds(r.refusals, "no TLS greeting came in time", "told")


@test("a server that says nothing holds up its own connection and no other")
def _(m):
    n = "four.example.com"
    code = f"""
held = [socket.create_connection(('{n}', {SILENT_PORT}), 5) for _ in range(100)]
for s in held: s.sendall(b'x')
result = [ask({{'do':'tcp','to':'{n}','port':{P},'want':'\\n'}}) for _ in range(20)]
"""
    r = m.inside(allow(f"{n}:{SILENT_PORT}", f"{n}:{P}"), [{"do": "code", "code": code}])
    a = r.answers[0].get("result")
    check(a and all(got(x) for x in a), f"{r.answers}")
    check(sorted(x["ms"] for x in a)[15] < 500, f"{a}")


@test("a client that does not read makes the boundary keep little, and slows nobody")
def _(m):
    n = "four.example.com"
    code = f"""
s = socket.create_connection(('{n}', 80), 5)
s.sendall(b'GET /size/100000000 HTTP/1.1\\r\\nHost: {n}\\r\\n\\r\\n')
t = socket.create_connection(('{n}', {P}), 5)
t.setblocking(False)
sent = 0
end = time.monotonic() + 4
last = time.monotonic()
while time.monotonic() < min(end, last + 0.7):
    try: sent += t.send(b'x' * 65536); last = time.monotonic()
    except BlockingIOError: time.sleep(0.01)
kept['s'], kept['t'] = s, t
result = [sent] + [ask({{'do':'tcp','to':'{n}','port':{P},'want':'\\n'}}) for _ in range(10)]
"""
    with m.live(*allow(n, f"{n}:{P}")) as s:
        r = s.ask(do="code", code=code)
        a = r.get("result")
        check(a and all(got(x) for x in a[1:]), f"{r}")
        check(a[0] < 400 << 20, f"what it took without being read: {a[0]}")  # the kernel's buffers, of eight sockets
        with open(f"/proc/{s.edges()[0]}/status") as f:
            rss = next(int(x.split()[1]) for x in f if x.startswith("VmRSS"))
        check(rss < 60000, f"{rss} KiB in memory")


if __name__ == "__main__":
    test.main()
