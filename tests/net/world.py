# SPDX-License-Identifier: Apache-2.0
"""A small internet for tests, in network namespaces of their own.

    host   the namespace that Caisson runs in: 10.99.0.1, and a route to everywhere
    world  behind a veth: "public" servers, a "private" one, a "metadata" service,
           a name server that can lie

What its servers heard is in files that seen(), raw() and asked() read: tests run side by side, so
each puts a word of its own into what it sends, and looks for that.

No packet leaves the machine: neither namespace has any other interface.  enter() must come
first: it starts the program again in new namespaces (root only).
"""
import base64
import gzip
import http.server
import json
import os
import shutil
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DNS = "9.9.9.9"
PUBLIC, PUBLIC2, PUBLIC6 = "93.184.216.34", "151.101.1.69", "2606:2800:220:1::1"
PRIVATE, METADATA, CGNAT, PRIVATE6 = "10.77.0.5", "169.254.169.254", "100.64.7.7", "fd00:77::5"
METADATA6 = "fd00:ec2::254"
ALL = [PUBLIC, PUBLIC2, PRIVATE, METADATA, CGNAT, DNS, "64.6.64.6", "10.77.0.6", "10.78.0.5", "169.254.7.7", "198.18.0.1", "192.0.2.1"]
ALL6 = [PUBLIC6, PRIVATE6, METADATA6, "64:ff9b::a4d:5", "64:ff9b::a9fe:a9fe", "2002:a4d:5::1", "2001::f5b2:fffa", "::a4d:5"]
TCP_PORTS = (22, 5432, 7777, 8000, 8001, 8002, 8003, 853)  # echo what they hear, after a line that says where they are
HTTP_PORTS, TLS_PORTS = (80, 8080), (443, 8443)
RAW_PORT, RAW_TLS_PORT = 8081, 8444  # write down every byte, and answer every piece with 200
LIAR_PORT = 9443    # TLS with a certificate that nobody has signed
SILENT_PORT = 9999  # takes connections and says nothing
H2_PORT = 8445      # HTTP/2 alone, by node, where there is one
OWN_PORT = 7777     # the host's own servers: they say where they are, as those above

ZONE = {
    "public.example.com": ["A " + PUBLIC, "AAAA " + PUBLIC6],
    "four.example.com": ["A " + PUBLIC],
    "six.example.com": ["AAAA " + PUBLIC6],
    "second.example.com": ["A " + PUBLIC2],
    "api.example.com": ["A " + PUBLIC],
    "a.wild.example.org": ["A " + PUBLIC],
    "b.wild.example.org": ["A " + PUBLIC2],
    "private.example.com": ["A " + PRIVATE],
    "metadata.example.com": ["A " + METADATA],
    "loop.example.com": ["A 127.0.0.1"],
    "loop6.example.com": ["AAAA ::1"],
    "zero.example.com": ["A 0.0.0.0"],
    "own.example.com": ["A 10.99.0.1"],
    "own-public.example.com": ["A 198.41.0.4"],
    "cgnat.example.com": ["A " + CGNAT],
    "multicast.example.com": ["A 224.0.0.1"],
    "mapped.example.com": ["AAAA ::ffff:" + PRIVATE],
    "nat64.example.com": ["AAAA 64:ff9b::a4d:5"],
    "sixtofour.example.com": ["AAAA 2002:a4d:5::1"],
    "teredo.example.com": ["AAAA 2001::f5b2:fffa"],
    "private6.example.com": ["AAAA " + PRIVATE6],
    "metadata6.example.com": ["AAAA " + METADATA6],
    "alias.example.com": ["CNAME middle.example.com"],
    "middle.example.com": ["CNAME public.example.com"],
    "trap.example.com": ["CNAME trap2.example.com"],
    "trap2.example.com": ["CNAME private.example.com"],
    "mixed.example.com": ["A " + PRIVATE, "A " + PUBLIC],
    "mixed6.example.com": ["A " + PRIVATE, "AAAA " + PUBLIC6],
    "metadata.google.internal": ["A " + METADATA],
    "loop2.example.com": ["A 127.8.9.1"],
    "zero6.example.com": ["AAAA ::"],
    "own6.example.com": ["AAAA fd99::1"],
    "linklocal.example.com": ["A 169.254.7.7"],
    "linklocal6.example.com": ["AAAA fe80::1"],
    "multicast6.example.com": ["AAAA ff02::1"],
    "broadcast.example.com": ["A 255.255.255.255"],
    "compat.example.com": ["AAAA ::" + PRIVATE],
    "mappedloop.example.com": ["AAAA ::ffff:127.0.0.1"],
    "mappedmeta.example.com": ["AAAA ::ffff:" + METADATA],
    "nat64meta.example.com": ["AAAA 64:ff9b::a9fe:a9fe"],
    "ours.example.com": ["A 198.18.0.1"],
    "documentation.example.com": ["A 192.0.2.1"],
    "loopchain.example.com": ["CNAME loopchain2.example.com"],
    "loopchain2.example.com": ["CNAME loopchain.example.com"],
    "short.example.com": ["A " + PUBLIC],
    "nested.pub.example.com": ["A " + PUBLIC],
    "deep.nested.pub.example.com": ["A " + PUBLIC],
    "pub.example.com": ["A " + PUBLIC],
    "evil.example.net": ["A " + PUBLIC2],
    "evilexample.com": ["A " + PUBLIC2],
    "db.internal.example.com": ["A " + PRIVATE],
}


def run(*argv, **kw):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


def enter():
    """Start again in network, mount and (for what is left) pid namespaces of our own."""
    if os.environ.get("CS_WORLD") == str(os.getppid()) or os.environ.get("CS_WORLD") == "in":
        return
    os.environ["CS_WORLD"] = "in"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, *sys.argv])


# ---- what runs in the world ----


def put(kind, what):
    with open(os.environ["CS_WORLD_LOG"] + "." + kind, "a") as f:
        f.write(json.dumps(what) + "\n")


def name_bytes(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.split(".") if p) + b"\0"


class Names:
    """A name server; `rebind.example.com` is public when first asked and private after that, `flip-N` too."""

    def __init__(self):
        self.asked = {}
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((DNS, 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def records(self, name, kind):
        if name.endswith(".tunnel.example.org"):
            return ["A " + PUBLIC]
        if name.startswith(("rebind", "flip-")):
            n = self.asked.get((name, kind), 0)
            self.asked[name, kind] = n + 1
            return ["A " + (PUBLIC if n == 0 else PRIVATE)]
        return ZONE.get(name)

    def answer(self, q):
        at, labels = 12, []
        while q[at]:
            labels.append(q[at + 1:at + 1 + q[at]].decode("latin1"))
            at += 1 + q[at]
        name, kind = ".".join(labels).lower(), struct.unpack(">H", q[at + 1:at + 3])[0]
        question = q[12:at + 5]
        put("dns", {"name": name, "type": kind})
        if name == "silent.example.com":
            return None
        if name == "broken.example.com":
            return q[:2] + struct.pack(">HHHHH", 0x8182, 1, 0, 0, 0) + question
        found = self.records(name, kind)
        rrs, now = b"", name
        n = 0
        for _ in range(8):
            recs = found if now == name else ZONE.get(now, [])
            nxt = None
            for r in recs or []:
                t, v = r.split(" ", 1)
                if t == "CNAME":
                    nxt = v
                    body, code = name_bytes(v), 5
                elif t == "A" and kind == 1:
                    body, code = socket.inet_aton(v), 1
                elif t == "AAAA" and kind == 28:
                    body, code = socket.inet_pton(socket.AF_INET6, v), 28
                else:
                    continue
                ttl = 0 if name.startswith(("rebind", "flip-")) else 30
                rrs += name_bytes(now) + struct.pack(">HHIH", code, 1, ttl, len(body)) + body
                n += 1
            if not nxt:
                break
            now = nxt
        rcode = 3 if found is None else 0
        return q[:2] + struct.pack(">HHHHH", 0x8180 | rcode, 1, n, 0, 0) + question + rrs

    def serve(self):
        while True:
            q, who = self.sock.recvfrom(4096)
            try:
                a = self.answer(q)
            except Exception:
                continue
            if a:
                self.sock.sendto(a, who)


class Web(http.server.BaseHTTPRequestHandler):
    """Says what it was asked, as JSON; /echo gives the body back, /redirect?URL sends there, /size/N is N bytes,
    /slow/N is N lines in chunks, one each 0.3 s, /git/NAME is a repository in the world's directory
    (/git/basic... for who has a name and a password)."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def reply(self, body, kind="application/json", status=200, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for k, v in headers:
            self.send_header(k, v)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def git(self, body):
        if self.path.startswith("/git/basic") and not (self.headers.get("Authorization") or "").startswith("Basic "):
            return self.reply(b"", status=401, headers=[("WWW-Authenticate", 'Basic realm="git"')])
        path, _, query = self.path.removeprefix("/git").partition("?")
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": os.path.dirname(os.environ["CS_WORLD_LOG"]) + "/git", "GIT_HTTP_EXPORT_ALL": "1",
               "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type") or "",
               "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
               "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "", "REMOTE_USER": "somebody", "REMOTE_ADDR": self.client_address[0]}
        out = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE, check=False).stdout
        head, _, body = out.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode("latin1").split("\r\n") if ": " in line)
        self.reply(body, headers.pop("Content-Type", "text/plain"), int(headers.pop("Status", "200").split()[0]), headers.items())
        return None

    def do(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        if "chunked" in (self.headers.get("Transfer-Encoding") or ""):
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                body += self.rfile.read(n)
                self.rfile.readline()
                if not n:
                    break
        put("http", {"at": self.connection.getsockname()[0].removeprefix("::ffff:"), "port": self.connection.getsockname()[1],
                     "tls": isinstance(self.connection, ssl.SSLSocket), "method": self.command, "path": self.path, "headers": self.headers.items(),
                     "body": body.decode("latin1")[:4096]})
        if self.path.startswith("/echo"):
            return self.reply(body, "application/octet-stream")
        if self.path.startswith("/headers-echo"):
            text = json.dumps(dict(self.headers.items())).encode()
            return self.reply(text, headers=[("X-Seen", self.headers.get("Authorization", ""))])
        if self.path.startswith("/forms"):
            said = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            forms = {"plain": said, "base64": base64.b64encode(said.encode()).decode(),
                     "base64 of one more": base64.b64encode(b"a" + said.encode() + b"c").decode(),
                     "base64 of more": base64.b64encode(b"ab" + said.encode() + b"c").decode(),
                     "url": base64.urlsafe_b64encode(said.encode()).decode(), "percent": "".join(f"%{b:02x}" for b in said.encode()),
                     "json": "".join(f"\\u{ord(c):04x}" for c in said)}
            text = "".join(f"{k}={v}\n" for k, v in forms.items()).encode()
            return self.reply(text, "text/plain", headers=[(f"X-{k.replace(' ', '-')}", v) for k, v in forms.items()])
        if self.path.startswith("/split"):  # the secret comes in two pieces
            said = (self.headers.get("Authorization") or "").encode()
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (said[:12], said[12:15], said[15:]):
                if part:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                    self.wfile.flush()
                    time.sleep(0.05)
            self.wfile.write(b"0\r\n\r\n")
            return
        if self.path.startswith("/gzip"):
            return self.reply(gzip.compress(json.dumps(dict(self.headers.items())).encode()), headers=[("Content-Encoding", "gzip")])
        if self.path.startswith("/redirect?"):
            return self.reply(b"", status=302, headers=[("Location", self.path.split("?", 1)[1])])
        if self.path.startswith("/slow/"):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(int(self.path[6:])):
                line = f"data: {i}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                time.sleep(0.3)
            self.wfile.write(b"0\r\n\r\n")
            return None
        if self.path.startswith("/git/"):
            return self.git(body)
        if self.path.startswith("/size/"):
            return self.reply(b"x" * int(self.path[6:]), "application/octet-stream")
        self.reply(json.dumps({"at": self.connection.getsockname()[0].removeprefix("::ffff:"), "host": self.headers.get("Host"), "path": self.path,
                               "method": self.command, "headers": dict(self.headers.items())}).encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = do

    def log_message(self, *a):
        pass


class Threading(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    address_family = socket.AF_INET6
    request_queue_size = 512

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, *a):
        pass


class Tls(Threading):
    context = None

    def get_request(self):
        s, who = self.socket.accept()
        return s, who

    def finish_request(self, request, who):
        request.settimeout(20)
        try:
            s = self.context.wrap_socket(request, server_side=True)
        except (OSError, ssl.SSLError):
            return
        s.settimeout(None)
        self.RequestHandlerClass(s, who, self)


def listen(port):
    return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)


def serve(listener, one):
    def each():
        while True:
            c = listener.accept()[0]
            threading.Thread(target=guarded, args=(one, c), daemon=True).start()
    threading.Thread(target=each, daemon=True).start()


def guarded(one, c):
    with c:
        try:
            one(c)
        except OSError:
            pass


def where(c):
    return "at {} {}\n".format(c.getsockname()[0].removeprefix("::ffff:"), c.getsockname()[1]).encode()


def echo(c):
    c.sendall(where(c))
    while b := c.recv(1 << 16):
        c.sendall(b)


def record(c):
    """Nothing is understood here: what came is written down, and each piece is answered."""
    number = f"{os.getpid()}-{time.monotonic_ns()}"
    while b := c.recv(1 << 16):
        put("raw", {"conn": number, "at": c.getsockname()[0].removeprefix("::ffff:"), "port": c.getsockname()[1], "data": b.decode("latin1")})
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nraw\n")


def silence(c):
    while c.recv(1 << 16):
        pass


def with_tls(context, one):
    def wrapped(c):
        c.settimeout(20)
        with context.wrap_socket(c, server_side=True) as s:
            s.settimeout(None)
            one(s)
    return wrapped


def tls_context(directory, name):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(f"{directory}/{name}.pem")
    return c


def world_main(directory):
    good = Tls.context = tls_context(directory, "server")
    for p in map(int, os.environ["CS_WORLD_ECHO"].split()):
        serve(listen(p), echo)
    for p in HTTP_PORTS:
        threading.Thread(target=Threading(("::", p), Web).serve_forever, daemon=True).start()
    for p in TLS_PORTS:
        threading.Thread(target=Tls(("::", p), Web).serve_forever, daemon=True).start()
    serve(listen(RAW_PORT), record)
    serve(listen(RAW_TLS_PORT), with_tls(good, record))
    serve(listen(LIAR_PORT), with_tls(tls_context(directory, "liar"), record))
    serve(listen(SILENT_PORT), silence)
    Names()
    node = shutil.which("node")
    h2 = subprocess.Popen([node, HERE + "/h2.js", "server", str(H2_PORT), directory], stdout=subprocess.DEVNULL) if node else None
    print("ready", flush=True)
    sys.stdin.read()  # until who started us is gone
    if h2:
        h2.kill()


# ---- the host's side ----


class World:
    def __init__(self, echo_ports=TCP_PORTS):
        self.servers = []
        self.dir = tempfile.mkdtemp(prefix="cs-world-")
        os.chmod(self.dir, 0o755)
        self.log = self.dir + "/heard"
        self.ca = self.dir + "/ca.pem"
        for kind in ("http", "raw", "dns"):
            open(f"{self.log}.{kind}", "w").close()
        self.make_certificates()
        env = {**os.environ, "CS_WORLD_LOG": self.log, "CS_WORLD_ECHO": " ".join(map(str, echo_ports)), "CS_WORLD": "in"}
        self.proc = subprocess.Popen(["unshare", "--net", sys.executable, __file__, "--wait", self.dir], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, env=env)
        self.proc.stdout.readline()  # its namespace is there
        self.make_network()
        self.proc.stdin.write(b"go\n")
        self.proc.stdin.flush()
        if self.proc.stdout.readline() != b"ready\n":
            raise RuntimeError("the world does not start")
        self.make_files()
        serve(listen(OWN_PORT), echo)
        self.env = {"SSL_CERT_FILE": self.ca}

    def make_certificates(self):
        d = self.dir
        names = sorted(n for n in ZONE if n.endswith((".com", ".org", ".net"))) + ["*.wild.example.org", "rebind.example.com"]
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", d + "/ca.key", "-out", self.ca,
            "-days", "30", "-subj", "/CN=the world's CA", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", d + "/server.key", "-out", d + "/server.csr",
            "-subj", "/CN=world")
        with open(d + "/ext", "w") as f:
            f.write("subjectAltName=" + ",".join("DNS:" + n for n in names) + "\nextendedKeyUsage=serverAuth\n")
        run("openssl", "x509", "-req", "-in", d + "/server.csr", "-CA", self.ca, "-CAkey", d + "/ca.key", "-CAcreateserial", "-days", "30",
            "-extfile", d + "/ext", "-out", d + "/server.crt")
        with open(d + "/server.pem", "w") as out:
            for p in ("/server.key", "/server.crt"):
                out.write(open(d + p).read())
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", d + "/liar.pem", "-out", d + "/liar.crt",
            "-days", "30", "-subj", "/CN=public.example.com", "-addext", "subjectAltName=" + ",".join("DNS:" + n for n in names))
        with open(d + "/liar.pem", "a") as out:
            out.write(open(d + "/liar.crt").read())

    def make_network(self):
        ns = ["nsenter", f"--net=/proc/{self.proc.pid}/ns/net"]
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "cs0", "type", "veth", "peer", "name", "cs1", "netns", str(self.proc.pid))
        run("ip", "addr", "add", "10.99.0.1/24", "dev", "cs0")
        run("ip", "addr", "add", "198.41.0.4/32", "dev", "cs0")  # an own address that looks public
        run("ip", "addr", "add", "fd99::1/64", "dev", "cs0", "nodad")
        run("ip", "link", "set", "cs0", "up")
        run(*ns, "ip", "link", "set", "lo", "up")
        run(*ns, "ip", "link", "set", "cs1", "up")
        run(*ns, "ip", "addr", "add", "10.99.0.2/24", "dev", "cs1")
        run(*ns, "ip", "addr", "add", "fd99::2/64", "dev", "cs1", "nodad")
        for a in ALL:
            run(*ns, "ip", "addr", "add", a + "/32", "dev", "lo")
        for a in ALL6:
            run(*ns, "ip", "addr", "add", a + "/128", "dev", "lo")
        run("ip", "route", "add", "default", "via", "10.99.0.2")
        run("ip", "-6", "route", "add", "default", "via", "fd99::2")

    def make_files(self):
        for name, text in (("resolv.conf", f"nameserver {DNS}\n"), ("hosts", "127.0.0.1 localhost\n")):
            with open(f"{self.dir}/{name}", "w") as f:
                f.write(text)
            run("mount", "--bind", f"{self.dir}/{name}", "/etc/" + name)

    def spawn(self, argv, **kw):
        """A server of somebody else's in the world, until the world ends."""
        p = subprocess.Popen(["nsenter", f"--net=/proc/{self.proc.pid}/ns/net", *argv], stdin=subprocess.DEVNULL, **kw)
        self.servers.append(p)
        return p

    def heard(self, kind):
        with open(f"{self.log}.{kind}") as f:
            return [json.loads(x) for x in f.read().splitlines()]

    def seen(self, word=""):
        """Requests that servers of HTTP took, with the word somewhere in them."""
        return [r for r in self.heard("http") if word in json.dumps(r)]

    def raw(self, word=""):
        """What came to a recorder, one text for each connection, with the word in it."""
        texts = {}
        for r in self.heard("raw"):
            texts[r["conn"]] = texts.get(r["conn"], "") + r["data"]
        return [t for t in texts.values() if word in t]

    def asked(self, word=""):
        """Names that the name server was asked for."""
        return [r["name"] for r in self.heard("dns") if word in r["name"]]

    def close(self):
        for p in self.servers:
            p.terminate()
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.proc.stdin.close()
        try:
            self.proc.wait(5)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        for name in ("resolv.conf", "hosts"):
            subprocess.run(["umount", "/etc/" + name], check=False)
        subprocess.run(["rm", "-rf", self.dir], check=False)


if __name__ == "__main__" and sys.argv[1:2] == ["--wait"]:
    print("here", flush=True)
    sys.stdin.readline()
    world_main(sys.argv[2])
