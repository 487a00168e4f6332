# SPDX-License-Identifier: Apache-2.0
"""What tests do inside a sandbox: a list of small questions, answered as JSON.

    python3 -c "$(cat inside.py)" '[{"do": "tcp", "to": "api.example.com", "port": 22}]'

Each answer has `ms`, and either what came back or `error`, the name of an errno or of an exception.
Only the standard library, and nothing imported that is not needed: it runs hundreds of times.
"""
import errno
import json
import socket
import struct
import sys
import time


kept = {}


def connect(p):
    s = socket.socket(socket.AF_INET6 if ":" in p.get("to", "") or p.get("six") else socket.AF_INET) if p.get("address") else None
    if s is None:
        return socket.create_connection((p["to"], p["port"]), p.get("timeout", 8))
    s.settimeout(p.get("timeout", 8))
    s.connect((p["to"], p["port"]))
    return s


def read(s, p):
    """Until the end, until `want` is there, or until nothing comes for a while."""
    got, want = b"", p.get("want", "").encode("latin1")
    try:
        while not want or want not in got:
            b = s.recv(1 << 16)
            if not b:
                return {"got": got.decode("latin1"), "end": "eof"}
            got += b
    except TimeoutError:
        return {"got": got.decode("latin1"), "end": "quiet"}
    except OSError as e:
        return {"got": got.decode("latin1"), "end": errno.errorcode.get(e.errno, type(e).__name__), "text": str(e)}
    return {"got": got.decode("latin1"), "end": "want"}


def talk(s, p):
    says = p.get("say", [])
    for i, part in enumerate([says] if isinstance(says, str) else says):
        if i:
            time.sleep(p.get("pause", 0.1))
        s.sendall(part.encode("latin1") * p.get("repeat", 1))
    s.settimeout(p.get("quiet", p.get("timeout", 8)))
    return read(s, p)


def do_tcp(p):
    with connect(p) as s:
        return {"peer": s.getpeername()[0], **talk(s, p)}


def tls_context(p):
    import ssl
    if p.get("blind"):
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
        if p.get("alpn"):
            c.set_alpn_protocols(p["alpn"])
        return c
    c = ssl.create_default_context(cadata=p.get("ca")) if p.get("ca") else ssl.create_default_context()
    c.check_hostname = False
    if p.get("alpn"):
        c.set_alpn_protocols(p["alpn"])
    return c


def do_tls(p):
    import ssl
    with connect(p) as raw:
        try:
            with tls_context(p).wrap_socket(raw, server_hostname=p.get("sni", p["to"])) as s:
                names = [v for k, v in s.getpeercert().get("subjectAltName", ())] if not p.get("blind") else []
                issuer = dict(x[0] for x in s.getpeercert().get("issuer", ())) if not p.get("blind") else {}
                return {"alpn": s.selected_alpn_protocol(), "names": names[:3], "issuer": issuer.get("commonName"), **talk(s, p)}
        except ssl.SSLError as e:
            return {"error": "TLS", "text": str(e), "reason": e.reason}


def do_hello(p):
    """A ClientHello with an extension added to it; what kind of record answers."""
    import ssl
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        tls_context({"blind": True}).wrap_bio(inward, outward, server_hostname=p.get("sni", p["to"])).do_handshake()
    except ssl.SSLWantReadError:
        pass
    h = bytearray(outward.read())
    if p.get("extension"):
        ext = struct.pack(">HH", p["extension"], 32) + bytes(32)
        at = 5 + 4 + 2 + 32
        at += 1 + h[at]
        at += 2 + struct.unpack(">H", h[at:at + 2])[0]
        at += 1 + h[at]
        h[at:at + 2] = struct.pack(">H", struct.unpack(">H", h[at:at + 2])[0] + len(ext))
        h[6:9] = (int.from_bytes(h[6:9], "big") + len(ext)).to_bytes(3, "big")
        h[3:5] = struct.pack(">H", struct.unpack(">H", h[3:5])[0] + len(ext))
        h += ext
    step = p.get("pieces", len(h))
    with connect(p) as s:
        for i in range(0, len(h), step):
            s.sendall(h[i:i + step])
            if step < len(h):
                time.sleep(0.002)
        got = s.recv(7)
    return {"record": {21: "alert", 22: "handshake"}.get(got[0] if got else None, "nothing"), "alert": got[6] if got[:1] == b"\x15" and len(got) > 6 else None}


def do_lookup(p):
    try:
        got = socket.getaddrinfo(p["name"], p.get("port", 80), type=socket.SOCK_STREAM, flags=p.get("flags", 0))
    except socket.gaierror as e:
        return {"error": {-2: "NONAME", -3: "AGAIN", -4: "FAIL", -5: "NODATA"}.get(e.errno, str(e.errno))}
    return {"addresses": sorted(a[4][0] for a in got)}


def question(p):
    name = bytes.fromhex(p["hex"]) if "hex" in p else b"".join(bytes([len(x)]) + x.encode("latin1") for x in p["name"].split(".") if x) + b"\0"
    return struct.pack(">HHHHHH", p.get("id", 4711), p.get("flags", 0x100), 1, 0, 0, 0) + name + struct.pack(">HH", p.get("type", 1), p.get("class", 1))


def read_answer(m):
    def skip(at):
        while m[at] and m[at] < 0xc0:
            at += 1 + m[at]
        return at + (2 if m[at] >= 0xc0 else 1)
    found, at = [], skip(12) + 4 if struct.unpack(">H", m[4:6])[0] else 12
    for _ in range(struct.unpack(">H", m[6:8])[0]):
        at = skip(at)
        kind, _, ttl, n = struct.unpack(">HHIH", m[at:at + 10])
        data = m[at + 10:at + 10 + n]
        found.append({"type": kind, "ttl": ttl, "value": socket.inet_ntop(socket.AF_INET if n == 4 else socket.AF_INET6, data) if n in (4, 16) else data.hex()})
        at += 10 + n
    return {"rcode": m[3] & 15, "answers": found, "id": struct.unpack(">H", m[:2])[0]}


def do_dns(p):
    q = bytes.fromhex(p["raw"]) if "raw" in p else question(p)
    if p.get("tcp"):
        with socket.create_connection(("127.0.0.1", 53), 4) as s:
            s.sendall(struct.pack(">H", len(q)) + q)
            m = s.recv(4096)[2:]
    else:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(p.get("timeout", 4))
            s.connect(("127.0.0.1", 53))
            s.send(q)
            m = s.recv(4096)
    return read_answer(m) if m else {"error": "EOF"}


def do_flood(p):
    """Many questions at once, for names that differ; how often which answer came."""
    counts, s = {}, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    s.connect(("127.0.0.1", 53))
    s.settimeout(p.get("quiet", 1.5))
    sent = 0
    while sent < p["n"] or sum(counts.values()) < sent:
        for _ in range(min(24, p["n"] - sent)):
            s.send(question({"name": p["name"].replace("#", str(sent)), "id": sent & 0xffff}))
            sent += 1
        try:
            for _ in range(24):
                rcode = str(s.recv(4096)[3] & 15)
                counts[rcode] = counts.get(rcode, 0) + 1
                if sum(counts.values()) == sent:
                    break
        except TimeoutError:
            break
    return {"counts": counts, "sent": sent}


def do_udp(p):
    to = socket.getaddrinfo(p["to"], p["port"], type=socket.SOCK_DGRAM)[0]
    with socket.socket(to[0], socket.SOCK_DGRAM) as s:
        s.settimeout(p.get("timeout", 3))
        start = time.monotonic()
        try:
            s.connect(to[4])
            s.send(b"\xc0\0\0\0\1hello" * 100)
            return {"got": s.recv(100).decode("latin1")}
        except OSError as e:
            return {"error": errno.errorcode.get(e.errno, type(e).__name__), "refused_ms": (time.monotonic() - start) * 1000}


def do_open(p):
    """A connection that stays, under a name."""
    s = connect(p)
    kept[p["as"]] = s
    s.settimeout(p.get("timeout", 8))
    return read(s, p) if p.get("want") else {}


def do_use(p):
    s = kept[p["as"]]
    s.settimeout(p.get("timeout", 8))
    s.sendall(p.get("say", "").encode("latin1"))
    return read(s, p)


def do_listen(p):
    """A server that says hello on each connection and gives back what it hears."""
    import threading
    s = socket.create_server((p.get("at", "127.0.0.1"), p["port"]), family=socket.AF_INET6 if ":" in p.get("at", "") else socket.AF_INET)

    def one(c):
        with c:
            c.sendall(p.get("hello", "own server\n").encode())
            while b := c.recv(1 << 16):
                c.sendall(b)

    def each():
        while True:
            threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
    threading.Thread(target=each, daemon=True).start()
    return {}


def do_code(p):
    room = {**globals(), "result": None}
    exec(p["code"], room)
    return {"result": room["result"]}


def ask(p):
    start = time.monotonic()
    try:
        r = globals()["do_" + p["do"]](p)
    except OSError as e:
        r = {"error": errno.errorcode.get(e.errno, type(e).__name__), "text": str(e)}
    except Exception as e:
        r = {"error": type(e).__name__, "text": str(e)}
    r["ms"] = (time.monotonic() - start) * 1000
    return r


def main(questions):
    if any(q.get("together") for q in questions):
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(64) as pool:
            return list(pool.map(ask, questions))
    return [ask(q) for q in questions]


if __name__ == "__main__" and sys.argv[1:] == ["--serve"]:
    for line in sys.stdin:
        print("\x01" + json.dumps(ask(json.loads(line))), flush=True)
elif __name__ == "__main__" and len(sys.argv) > 1:
    print("\x01" + json.dumps(main(json.loads(sys.argv[1]))), flush=True)
