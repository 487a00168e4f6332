# SPDX-License-Identifier: Apache-2.0
"""A small internet for tests, in network namespaces of their own.

    host   the namespace that Caisson runs in: 10.99.0.1, and a route to everywhere
    world  behind a veth: "public" servers, a "private" one, a "metadata" service,
           a name server that can lie

No packet leaves the machine: neither namespace has any other interface.  enter() must come
first: it starts the program again in new namespaces (root only).
"""
import http.server
import json
import os
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
ALL = [PUBLIC, PUBLIC2, PRIVATE, METADATA, CGNAT, DNS, "64.6.64.6"]
ALL6 = [PUBLIC6, PRIVATE6, METADATA6, "64:ff9b::a4d:5", "2002:a4d:5::1", "2001::f5b2:fffa"]
TCP_PORTS = (22, 5432, 7777)  # echo what they hear, after a line that says where they are

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
    "metadata.google.internal": ["A " + METADATA],
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


def name_bytes(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.split(".") if p) + b"\0"


class Names:
    """A name server; `rebind.example.com` is public when first asked and private after that, `flip-N` too."""

    def __init__(self):
        self.asked, self.log = {}, []
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
        self.log.append((name, kind))
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
    """Says what it was asked, as JSON; /echo gives the body back, /redirect?URL sends there, /size/N is N bytes."""
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
        with open(os.environ["CS_WORLD_LOG"], "a") as f:
            f.write(json.dumps({"at": self.connection.getsockname()[0], "port": self.connection.getsockname()[1], "method": self.command,
                                "path": self.path, "headers": self.headers.items(), "body": body.decode("latin1")[:4096]}) + "\n")
        if self.path.startswith("/echo"):
            return self.reply(body, "application/octet-stream")
        if self.path.startswith("/headers-echo"):
            text = json.dumps(dict(self.headers.items())).encode()
            return self.reply(text, headers=[("X-Seen", self.headers.get("Authorization", ""))])
        if self.path.startswith("/gzip"):
            import gzip
            return self.reply(gzip.compress(json.dumps(dict(self.headers.items())).encode()), headers=[("Content-Encoding", "gzip")])
        if self.path.startswith("/redirect?"):
            return self.reply(b"", status=302, headers=[("Location", self.path.split("?", 1)[1])])
        if self.path.startswith("/size/"):
            return self.reply(b"x" * int(self.path[6:]), "application/octet-stream")
        self.reply(json.dumps({"at": self.connection.getsockname()[0], "host": self.headers.get("Host"), "path": self.path,
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


def echo(port):
    s = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)

    def one(c):
        with c:
            try:
                c.sendall(f"at {c.getsockname()[0].removeprefix('::ffff:')} {port}\n".encode())
                while b := c.recv(1 << 16):
                    c.sendall(b)
            except OSError:
                pass

    def serve():
        while True:
            threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()


def world_main(directory):
    for p in TCP_PORTS:
        echo(p)
    threading.Thread(target=Threading(("::", 80), Web).serve_forever, daemon=True).start()
    Tls.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    Tls.context.load_cert_chain(directory + "/server.pem")
    threading.Thread(target=Tls(("::", 443), Web).serve_forever, daemon=True).start()
    Names()
    print("ready", flush=True)
    sys.stdin.read()  # until who started us is gone


# ---- the host's side ----


class World:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="cs-world-")
        os.chmod(self.dir, 0o755)
        self.log = self.dir + "/requests"
        self.ca = self.dir + "/ca.pem"
        open(self.log, "w").close()
        self.make_certificates()
        env = {**os.environ, "CS_WORLD_LOG": self.log, "CS_WORLD": "in"}
        self.proc = subprocess.Popen(["unshare", "--net", sys.executable, __file__, "--wait", self.dir], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, env=env)
        self.proc.stdout.readline()  # its namespace is there
        self.make_network()
        self.proc.stdin.write(b"go\n")
        self.proc.stdin.flush()
        if self.proc.stdout.readline() != b"ready\n":
            raise RuntimeError("the world does not start")
        self.make_files()
        self.env = {"SSL_CERT_FILE": self.ca}

    def make_certificates(self):
        d = self.dir
        names = sorted(n for n in ZONE if n.endswith((".com", ".org"))) + ["*.wild.example.org", "rebind.example.com"]
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

    def requests(self):
        """What servers of HTTP were asked since the last call."""
        with open(self.log) as f:
            lines = [json.loads(x) for x in f]
        open(self.log, "w").close()
        return lines

    def close(self):
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
