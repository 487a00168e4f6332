#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the network boundary costs: connections, streams, interception, starts.

    bench/net.py [--quick] [--only ITEM,..] [--json] [--check] [--rounds N]

ITEM is connect, stream, tls or start.  One table each.  The same client and server
(net.c) speak directly over loopback, through the boundary, through slirp4netns, through pasta
(over its tap, and over its -T, which splices loopback), and through tinyproxy by
CONNECT.  All of them wait at once and are asked in turns, so that a busy moment hits
everybody; cells are medians of rounds, with least and most; ratios are medians of each
round's ratio to direct, and of best rounds in brackets.  A peer that is not installed is left out.

Everything happens in network namespaces of our own; nothing leaves the machine.
--check exits 1 when an aim is missed."""
import argparse
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PORT, TLS_PORT, PROXY_PORT = 7001, 7002, 7003
NAME, GATEWAY, UID = "bench.test", "10.99.0.2", 61234
SECRET = "not-for-programs"


class Client:
    """One net.c client, wherever it runs; asked by lines."""

    def __init__(self, name, argv, env=None, before=None):
        self.name = name
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env={**os.environ, **(env or {})})
        self.helpers = [before(self.proc.pid)] if before else []
        if not select.select([self.proc.stdout], [], [], 20)[0] or self.proc.stdout.readline() != "ready\n":
            self.proc.kill()
            err = self.end()
            raise RuntimeError(f"{name} does not start: {err.strip()[-300:]}")

    def ask(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()
        answer = self.proc.stdout.readline().split()
        if not answer:
            raise RuntimeError(f"{self.name}: {line}: {self.end().strip()[-300:]}")
        return [float(x) for x in answer]

    def end(self):
        try:
            err = self.proc.communicate(timeout=10)[1]
        except (subprocess.TimeoutExpired, BrokenPipeError, ValueError):
            self.proc.kill()
            self.proc.wait()
            err = ""
        for h in self.helpers:
            if h:
                h.kill()
                h.wait()
        return err


class Bench:
    def __init__(self, a, tmp):
        self.a, self.tmp, self.bin = a, tmp, f"{tmp}/bin"
        self.clients, self.tables, self.aims, self.missing = {}, [], [], []
        os.mkdir(self.bin)
        for name in ("bench/net", "bench/start", "bench/bare", "caisson", "caisson-edge"):
            shutil.copy(f"{TOP}/build/{name}", self.bin)
        os.mkdir(f"{tmp}/home")
        os.environ.update(CAISSON_STATE=f"{tmp}/state", HOME=f"{tmp}/home", BENCH_SECRET=SECRET, SSL_CERT_FILE=f"{tmp}/ca.pem")
        self.net, self.caisson = f"{self.bin}/net", f"{self.bin}/caisson"
        self.certificates()
        self.network()
        self.server = subprocess.Popen([self.net, "server", str(PORT), str(TLS_PORT), f"{tmp}/server.pem"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
        self.server.stdout.readline()
        self.proxy = None

    def call(self, *argv):
        r = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if r.returncode:
            raise RuntimeError(f"{' '.join(argv)[:200]}: exit {r.returncode} {r.stderr.strip()[-300:]}")
        return r.stdout

    def certificates(self):
        t = self.tmp
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self.call("openssl", "req", "-x509", *key, "-keyout", f"{t}/ca.key", "-out", f"{t}/ca.pem", "-days", "2", "-subj", "/CN=bench",
                  "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        self.call("openssl", "req", *key, "-keyout", f"{t}/server.key", "-out", f"{t}/server.csr", "-subj", f"/CN={NAME}")
        with open(f"{t}/ext", "w") as f:
            f.write(f"subjectAltName=DNS:{NAME}\nextendedKeyUsage=serverAuth\n")
        self.call("openssl", "x509", "-req", "-in", f"{t}/server.csr", "-CA", f"{t}/ca.pem", "-CAkey", f"{t}/ca.key", "-CAcreateserial", "-days", "2",
                  "-extfile", f"{t}/ext", "-out", f"{t}/server.crt")
        with open(f"{t}/server.pem", "w") as out:
            out.write(open(f"{t}/server.key").read() + open(f"{t}/server.crt").read())
        for f in os.listdir(t):
            if f.endswith((".key", ".pem")):
                os.chmod(f"{t}/{f}", 0o644)

    def network(self):
        """A host with a way out, as pasta and slirp4netns expect it; behind it is nobody."""
        self.call("ip", "link", "set", "lo", "up")
        self.call("ip", "link", "add", "bench0", "type", "veth", "peer", "name", "bench1")
        self.call("ip", "addr", "add", "10.99.0.1/24", "dev", "bench0")
        self.call("ip", "link", "set", "bench0", "up")
        self.call("ip", "link", "set", "bench1", "up")
        self.call("ip", "route", "add", "default", "via", GATEWAY)

    # ---- who is measured ----

    def run_caisson(self, *flags):
        return [self.caisson, "run", "--quiet", "--workspace-mode", "none", "--ro", self.bin, "--host", f"{NAME}=127.0.0.1", *flags, "--"]

    def open(self, which):
        n = [self.net, "client"]
        ports = [str(PORT), str(TLS_PORT)]
        makers = {
            "direct": lambda: Client("direct", [*n, "127.0.0.1", *ports]),
            "caisson": lambda: Client("caisson", [*self.run_caisson("--allow", f"{NAME}:{PORT}/tcp", "--allow", f"{NAME}:{TLS_PORT}/tcp"), *n, NAME, *ports]),
            "direct, TLS": lambda: Client("direct, TLS", [*n, NAME, *ports]),
            "passed on": lambda: Client("passed on", [*self.run_caisson("--allow", f"{NAME}:{PORT}/tcp", "--allow", f"{NAME}:{TLS_PORT}/tls", "--env",
                                                                        f"SSL_CERT_FILE={self.tmp}/ca.pem", "--ro", f"{self.tmp}/ca.pem"),
                                                      *n, NAME, *ports]),
            "intercepted": lambda: Client("intercepted", [*self.run_caisson("--allow", f"{NAME}:{PORT}/tcp", "--allow", f"{NAME}:{TLS_PORT}", "--secret",
                                                                            f"BENCH_SECRET=env@{NAME}:{TLS_PORT}"), *n, NAME, *ports]),
            "slirp4netns": self.open_slirp,
            "pasta": lambda: Client("pasta", [*self.pasta("none"), *n, GATEWAY, *ports]),
            "pasta -T": lambda: Client("pasta -T", [*self.pasta(f"{PORT},{TLS_PORT}"), *n, "127.0.0.1", *ports]),
            "tinyproxy": self.open_proxy,
        }
        tool = which.split()[0]
        if tool in ("slirp4netns", "pasta", "tinyproxy") and not shutil.which(tool):
            self.missing.append(which)
            return
        try:
            self.clients[which] = makers[which]()
        except RuntimeError as e:
            print(f"net: {e}", file=sys.stderr)
            self.missing.append(which)

    def pasta(self, ports):
        """It does not work as root."""
        user = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups"] if os.stat("/proc/1").st_uid == 0 else []
        return [*user, "pasta", "--config-net", "-4", "-f", "-q", "-t", "none", "-u", "none", "-T", ports, "-U", "none", "--"]

    def open_slirp(self):
        wait = 'until ip addr show tap0 2>/dev/null | grep -q inet; do sleep 0.05; done; exec "$@"'

        def attach(pid):
            for _ in range(200):  # until it is in a namespace of its own
                if os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"):
                    break
                time.sleep(0.02)
            return subprocess.Popen(["slirp4netns", "--configure", "--mtu=65520", str(pid), "tap0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return Client("slirp4netns", ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", wait, "sh", self.net, "client", "10.0.2.2", str(PORT),
                                      str(TLS_PORT)], before=attach)

    def open_proxy(self):
        with open(f"{self.tmp}/tinyproxy.conf", "w") as f:
            f.write(f'Port {PROXY_PORT}\nListen 127.0.0.1\nMaxClients 200\nLogLevel Critical\nLogFile "{self.tmp}/tinyproxy.log"\n')
        self.proxy = subprocess.Popen(["tinyproxy", "-d", "-c", f"{self.tmp}/tinyproxy.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        return Client("tinyproxy", [self.net, "client", "127.0.0.1", str(PORT), str(TLS_PORT), "127.0.0.1", str(PROXY_PORT)])

    def close(self):
        for c in self.clients.values():
            c.end()
        for p in (self.server, self.proxy):
            if p:
                p.kill()
                p.wait()

    # ---- measuring ----

    def rounds(self, line, names, n, reduce):
        """{name: [figure of each round]}; who fails is left out from then on."""
        out = {k: [] for k in names if k in self.clients}
        for _ in range(n):
            for k in list(out):
                try:
                    out[k].append(reduce(self.clients[k].ask(line)))
                except RuntimeError as e:
                    print(f"net: {e}", file=sys.stderr)
                    self.clients.pop(k).end()
                    del out[k]
        return out

    def aim(self, what, value, at_least=None, at_most=None):
        holds = value >= at_least if at_least is not None else value <= at_most
        self.aims.append({"what": what, "value": value, "holds": holds, "aim": f"≥ {at_least:g}" if at_least is not None else f"≤ {at_most:g}"})

    def table(self, title, head, rows, notes=()):
        self.tables.append((title, head, rows, list(notes)))
        if self.a.json or self.a.check:
            return
        print(f"\n### {title}\n\n| {' | '.join(head)} |\n|---{'|--:' * (len(head) - 1)}|")
        for r in rows:
            print(f"| {' | '.join(map(str, r))} |")
        for n in notes:
            print(f"\n{n}")
        sys.stdout.flush()


def median_ratio(v, to):
    return statistics.median(x / y for x, y in zip(v, to))


def ratios(v, to, best=min):
    return f"{median_ratio(v, to):.2f} ({best(v) / best(to):.2f})"


def spread(v, scale, digits, unit):
    return f"{statistics.median(v) / scale:.{digits}f} {unit} ({min(v) / scale:.{digits}f}–{max(v) / scale:.{digits}f})"


PEERS = ("slirp4netns", "pasta", "pasta -T", "tinyproxy")


def item_connect(b):
    n, rounds = (200, 9) if b.a.quick else (500, 21)
    rounds = b.a.rounds or rounds
    for name in ("direct", "caisson", *PEERS):
        b.open(name)
    names = list(b.clients)
    for c in names:
        b.clients[c].ask("connect 50")
    up = b.rounds(f"connect {n}", names, rounds, statistics.median)
    talk = b.rounds(f"talk {n}", names, rounds, statistics.median)
    rows = []
    for k in up:
        rows.append([k, spread(up[k], 1, 0, "µs"), ratios(up[k], up["direct"]), spread(talk[k], 1, 1, "µs") if k in talk else "–",
                     ratios(talk[k], talk["direct"]) if k in talk else "–"])
    for k in up:
        if k in PEERS and "caisson" in up:
            b.aim(f"connection set-up, of {k}'s", median_ratio(up["caisson"], up[k]), at_most=1)
    b.table("Setting up a connection, and a byte there and back",
            ["through", "connect, one byte each way, close", "to direct", "one byte each way on an open connection", "to direct"], rows, missing_note(b))


def missing_note(b):
    return [f"Not measured: {', '.join(b.missing)}."] if b.missing else []


def item_stream(b):
    ms, rounds = (400, 7) if b.a.quick else (1000, 15)
    rounds = b.a.rounds or rounds
    for name in ("direct", "caisson", *PEERS):
        if name not in b.clients and name not in b.missing:
            b.open(name)
    head, cells = ["through"], {}
    for way in ("down", "up"):
        for streams in (1, 8):
            got = b.rounds(f"stream {way} {streams} {ms}", [k for k in ("direct", "caisson", *PEERS)], rounds, lambda v: v[0])
            head += [f"{way}, {streams} stream{'s' if streams > 1 else ''}", "to direct"]
            for k in ("direct", "caisson", *PEERS):
                cells.setdefault(k, []).extend([spread(got[k], 1 << 20, 0, "MiB/s"), ratios(got[k], got["direct"], max)] if k in got else ["–", "–"])
            if "caisson" in got:
                b.aim(f"throughput {way}, {streams}, of direct", median_ratio(got["caisson"], got["direct"]), at_least=0.5)
                for k in PEERS:
                    if k in got:
                        b.aim(f"throughput {way}, {streams}, of {k}'s", median_ratio(got["caisson"], got[k]), at_least=1)
    b.table("Streams", head, [[k, *v] for k, v in cells.items() if set(v) != {"–"}], missing_note(b))


def item_tls(b):
    n, ms, rounds = (30, 400, 7) if b.a.quick else (100, 1000, 15)
    rounds = b.a.rounds or rounds
    with open(f"{b.tmp}/hosts", "w") as f:
        f.write(f"127.0.0.1 localhost {NAME}\n")
    b.call("mount", "--bind", f"{b.tmp}/hosts", "/etc/hosts")  # for the direct one: certificates are for a name
    kinds = ("direct, TLS", "passed on", "intercepted")
    for name in kinds:
        b.open(name)
    b.call("umount", "/etc/hosts")
    for k in kinds:
        if k in b.clients:
            b.clients[k].ask("https 3")
    up = b.rounds(f"https {n}", kinds, rounds, statistics.median)
    one = b.rounds(f"download 1 {ms}", kinds, rounds, lambda v: v[0])
    eight = b.rounds(f"download 8 {ms}", kinds, rounds, lambda v: v[0])
    rows = [[k, spread(up[k], 1000, 2, "ms"), ratios(up[k], up[kinds[0]]), spread(one[k], 1 << 20, 0, "MiB/s"),
             ratios(one[k], one[kinds[0]], max), spread(eight[k], 1 << 20, 0, "MiB/s"), ratios(eight[k], eight[kinds[0]], max)]
            for k in kinds if k in up and k in one and k in eight]
    b.table("HTTPS (HTTP/1.1)", ["through", "connect, TLS, GET, close", "to direct", "one download", "to direct", "eight", "to direct"], rows,
            ["\"Passed on\" is the boundary with a `tls` rule: the greeting is read and nothing is decrypted. \"Intercepted\" is with a secret: TLS ends at the "
             "boundary, which speaks TLS to the server, verified, and looks through what comes back for the secret."])


def item_start(b):
    rounds = 60 if b.a.quick else 300
    rounds = b.a.rounds or rounds
    bare = f"{b.bin}/bare"
    run = f"{b.caisson} run --quiet --workspace-mode none --ro {b.bin}"
    lines = [("without a network", f"{run} -- {bare}"), ("--allow NAME", f"{run} --allow {NAME} -- {bare}"),
             ("--allow NAME --publish", f"{run} --allow {NAME} --publish 127.0.0.1:7009:80 -- {bare}"),
             ("--allow NAME --secret", f"{run} --allow {NAME} --secret BENCH_SECRET=env@{NAME} -- {bare}")]
    text = "\n".join(f"'{n}' cwd={b.tmp} -- {w}" for n, w in lines)
    r = subprocess.run([f"{b.bin}/start", "--rounds", str(rounds), "--warmup", "3", "--json", "--file", "-"], input=text, capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(f"start: {r.stderr.strip()[-300:]}")
    rows = {x["name"]: x for x in json.loads(r.stdout)["commands"]}
    base = rows[lines[0][0]]
    out = []
    for name, _ in lines:
        x = rows[name]
        if x["error"] or not x["runs"]:
            raise RuntimeError(f"{name}: {x['error']}")
        out.append([f"`{name}`" if name.startswith("-") else name, f"{x['p50'] / 1000:.2f} ms ({x['min'] / 1000:.2f}–{x['p90'] / 1000:.2f})",
                    f"{x['p50'] / base['p50']:.2f}", f"{x['min'] / base['min']:.2f}"])
    b.aim("start with a network, of one without", rows[lines[1][0]]["p50"] / base["p50"], at_most=1.6)
    b.table("Starting a sandbox with a network", ["`caisson run`", "start to end", "ratio of medians", "of best runs"], out,
            ["The boundary starts when something first needs it: a sandbox that only may connect pays for a namespace with routes and listeners. A published "
             "port, or a certificate of its own, needs it before."])


ITEMS = {"connect": item_connect, "stream": item_stream, "tls": item_tls, "start": item_start}


def enter():
    """Start again where only we are: nothing leaves the machine."""
    if os.environ.get("CS_BENCH_NET") == "in":
        return
    os.environ["CS_BENCH_NET"] = "in"
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    os.execvp("unshare", ["unshare", *user, "--net", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--quick", action="store_true", help="fewer rounds")
    p.add_argument("--only", default="", help=", ".join(ITEMS))
    p.add_argument("--rounds", type=int, default=0)
    p.add_argument("--json", action="store_true")
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    only = [x for x in a.only.split(",") if x]
    if set(only) - set(ITEMS):
        sys.exit(f"net: --only takes {', '.join(ITEMS)}")
    for need in ("caisson", "caisson-edge", "bench/net", "bench/start", "bench/bare"):
        if not os.access(f"{TOP}/build/{need}", os.X_OK):
            sys.exit(f"net: build/{need} is not there; run make and bench/run")
    enter()
    tmp = tempfile.mkdtemp(prefix="caisson-bench.")
    os.chmod(tmp, 0o755)
    status, b = 0, None
    try:
        b = Bench(a, tmp)
        for name, item in ITEMS.items():
            if only and name not in only:
                continue
            try:
                item(b)
            except (RuntimeError, KeyError, statistics.StatisticsError) as e:
                print(f"net: {name}: {e}", file=sys.stderr)
                status = 1
    except KeyboardInterrupt:
        status = 130
    finally:
        if b:
            b.close()
        shutil.rmtree(tmp, ignore_errors=True)
    if a.json:
        json.dump({"aims": b.aims, "tables": [{"title": t, "head": h, "rows": r, "notes": n} for t, h, r, n in b.tables]}, sys.stdout, indent=1,
                  ensure_ascii=False)
        print()
    if a.check:
        for x in b.aims:
            print(f"{'holds' if x['holds'] else 'FAILS'}: {x['what']}: {x['value']:.2f}, {x['aim']}")
        status = status or int(not all(x["holds"] for x in b.aims))
    sys.exit(status)


if __name__ == "__main__":
    main()
