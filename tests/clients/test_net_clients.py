#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that others wrote, inside, through the network boundary to servers that others wrote.

    test_net_clients.py [WORD]     run the tests whose sentence holds WORD

Each client runs as root and as an ordinary user in every way that it can meet the boundary:
untouched TLS, plain HTTP, TLS that is ended at the boundary for a secret, and refusals.  It is
told nothing about the boundary: no proxy, and about certificates only where the server's own
authority is the point.  What clients say when they are refused is noted: that is what a user sees.

A client that is not installed is skipped; with CS_TESTS_MUST_RUN or CI=true that is a failure.
Needs root, for the namespaces that the servers live in.
"""
import glob
import os
import pwd
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration"), os.path.join(HERE, "..", "net")]
sys.dont_write_bytecode = True
import test_run as t  # noqa: E402
import world as w  # noqa: E402
from test_run import check, equal, holds, lacks, note, until  # noqa: E402

MUST_RUN = bool(os.environ.get("CS_TESTS_MUST_RUN")) or os.environ.get("CI") == "true"
FETCH = os.path.join(HERE, "fetch")
SECRET = "hunter2-Zq8/x+correct=horse"
AT_ONCE = 2  # seconds, beyond what the client takes when it succeeds
H2_PORT = 4443
WORLD = None
heard = 0
took = {}    # seconds of (mode, client), when all is well
skipped = []
test = t.Suite()


def find(program):
    places = [t.SYSTEM_PATH, os.environ.get("PATH", ""), "/usr/local/go/bin", *sorted(glob.glob("/usr/lib/postgresql/*/bin"))]
    return shutil.which(program, path=":".join(places))


def client(sentence, *programs):
    """A test, where the programs it needs are there."""
    missing = [p for p in programs if not find(p)]
    if not missing:
        return test(sentence)
    if MUST_RUN:
        def fail(m):
            raise AssertionError(f"not installed: {', '.join(missing)}")
        return lambda fn: test(sentence)(fail)
    skipped.append(f"{sentence}: not installed: {', '.join(missing)}")
    return lambda fn: None


# ---- the clients ----


class Client:
    """argv(url, ca): what fetches it and prints what came, with the server's authority given in the client's own way (or not)."""

    def __init__(self, name, argv, needs=(), body=True):
        self.name, self.argv, self.needs, self.body = name, argv, needs, body


def git(url, ca):
    return ["sh", "-c", 'git "$@" /tmp/repo && cat /tmp/repo/hello', "sh", *(["-c", "http.sslCAInfo=" + ca] if ca else []), "clone", "-q", url]


JAVA = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "Fetch"]  # starts sooner
CLIENTS = [
    Client("curl, HTTP/1.1", lambda url, ca: ["curl", "-sS", "--http1.1", "-i", *(["--cacert", ca] if ca else []), url], ["curl"]),
    Client("curl, HTTP/2 if it can", lambda url, ca: ["curl", "-sS", "--http2", "-i", *(["--cacert", ca] if ca else []), url], ["curl"]),
    Client("wget", lambda url, ca: ["wget", "-nv", "-t", "1", "--content-on-error", "-O-", *(["--ca-certificate=" + ca] if ca else []), url], ["wget"]),
    Client("git", git, ["git"], body=False),
    Client("python urllib", lambda url, ca: ["python3", "fetch_urllib.py", url, *([ca] if ca else [])]),
    Client("python asyncio", lambda url, ca: ["python3", "fetch_asyncio.py", url, *([ca] if ca else [])]),
    Client("node fetch", lambda url, ca: [*(["env", "NODE_EXTRA_CA_CERTS=" + ca] if ca else []), "node", "fetch.mjs", url], ["node"]),
    Client("Java HttpClient", lambda url, ca: ["java", *JAVA, url, *([ca] if ca else [])], ["java", "javac"]),
    Client("Go net/http", lambda url, ca: ["./fetch-go", url, *([ca] if ca else [])], ["go"]),
]


def url_for(c, scheme, host, path):
    return f"{scheme}://{host}/git/repo.git" if not c.body else f"{scheme}://{host}{path}"


def workspace(m):
    """What clients find in the directory that they run in."""
    if not os.path.exists(m.ws + "/world-ca.crt"):
        for path in glob.glob(FETCH + "/*.py") + glob.glob(FETCH + "/*.mjs") + glob.glob(WORLD.dir + "/built/*"):
            m.put(f"{m.ws}/{os.path.basename(path)}", open(path, "rb").read(), 0o755)
        m.put(m.ws + "/world-ca.crt", open(WORLD.ca, "rb").read())
        m.put(m.ws + "/deploy", open(WORLD.dir + "/deploy", "rb").read() if os.path.exists(WORLD.dir + "/deploy") else b"", 0o600)
    requests()


def requests():
    """What servers of HTTP were asked since the last call."""
    global heard
    everything = WORLD.seen()
    new, heard = everything[heard:], len(everything)
    return new


def run(m, *args, **kw):
    workspace(m)
    return m.run(*args, timeout=60, **kw)


def say(c, r):
    """The first lines that the client and Caisson print."""
    lines = [x for x in (r.err + "\n" + r.out).splitlines() if x.strip()]
    for line in lines[:6]:
        note(f"{c}: {line[:300]}")


def quiet(r):
    """Nothing on standard error: programs that are made to trust must not be made to chatter."""
    equal(r.err, "", "standard error")


def well(m, c, r):
    equal(r.status, 0, f"status ({r})")
    if c.body:
        holds(r.out, '"path": "/x"', "what came")
    else:
        holds(r.out, "hello from the world", "what came")
    took[m.name, c.name] = min(r.seconds, took.get((m.name, c.name), 99))


def at_once(m, c, r):
    over = r.seconds - took.get((m.name, c.name if isinstance(c, Client) else c), 0)
    check(over < AT_ONCE, f"refused after {over:.1f} s more than a success takes")


def for_each_client(sentence, but=()):
    def add(fn):
        for c in CLIENTS:
            if not c.name.startswith(but):
                client(f"{c.name}: {sentence}", *c.needs)(lambda m, c=c: fn(m, c))
        return fn
    return add


@for_each_client("TLS goes through untouched, with the server's own certificate")
def _(m, c):
    r = run(m, "--allow", "public.example.com", "--", *c.argv(url_for(c, "https", "public.example.com", "/x"), "world-ca.crt"))
    well(m, c, r)
    check(requests(), "the server saw no request")


@for_each_client("plain HTTP")
def _(m, c):
    r = run(m, "--allow", "public.example.com", "--", *c.argv(url_for(c, "http", "public.example.com", "/x"), None))
    well(m, c, r)


@for_each_client("a secret is added outside, the session's authority is trusted without a word, an echo is masked")
def _(m, c):
    r = run(m, "--allow", "api.example.com", "--secret", "TOKEN=env@api.example.com", "--",
            "sh", "-c", 'echo "inside: $TOKEN"; exec "$@"', "sh", *c.argv(url_for(c, "https", "api.example.com", "/headers-echo"), None),
            env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca})
    equal(r.status, 0, f"status ({r})")
    seen = [dict(q["headers"]).get("Authorization") for q in requests()]
    check(seen and all(s == "Bearer " + SECRET for s in seen), f"the server saw {seen!r}")
    lacks(r.out + r.err, SECRET, "what the client printed")
    check(re.search(r"^inside: caisson-secret-TOKEN-[0-9a-f]{32}$", r.out, re.M), f"the placeholder, in {r.out!r}")
    if c.body:
        holds(r.out, '"Authorization": "Bearer ***', "the echo")
    else:
        holds(r.out, "hello from the world", "what came")
    if c.name != "wget":  # says on standard error what it fetched
        quiet(r)


@for_each_client("a name that no rule allows is refused at once")
def _(m, c):
    r = run(m, "--allow", "public.example.com", "--", *c.argv(url_for(c, "https", "other.example.net", "/x"), None))
    check(r.status not in (0, 125), f"status ({r})")
    holds(r.err, "other.example.net", "standard error")
    holds(r.err, "--allow other.example.net", "standard error")
    say(c.name, r)
    at_once(m, c, r)


@for_each_client("a request that no rule allows gets a 403 that says why, at once")
def _(m, c):
    r = run(m, "--allow", "api.example.com GET /ok/**", "--", *c.argv(url_for(c, "https", "api.example.com", "/x"), None),
            env={"SSL_CERT_FILE": WORLD.ca})
    if not c.name.startswith("curl"):
        check(r.status not in (0, 125), f"status ({r})")
    holds(r.out + r.err, "403", "what the client printed")
    if c.body:
        holds(r.out + r.err, '"by":"caisson"', "what the client printed")
        holds(r.out + r.err, "no rule allows GET /x at api.example.com", "what the client printed")
    equal(requests(), [], "what the server was asked")
    say(c.name, r)
    at_once(m, c, r)


# Node reads no file then: there is none to cover.
@for_each_client("without its environment the session's authority is trusted as well", but=("node",))
def _(m, c):
    r = run(m, "--allow", "api.example.com", "--secret", "TOKEN=env@api.example.com", "--", "env", "-i", "PATH=" + t.SYSTEM_PATH,
            *c.argv(url_for(c, "https", "api.example.com", "/headers-echo"), None), env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca})
    equal(r.status, 0, f"status ({r})")
    check(any("Bearer " + SECRET in str(q["headers"]) for q in requests()), "the server did not see the secret")


@client("Java: every one of the host's trusts the session's authority", "java", "javac")
def _(m):
    for java in sorted({os.path.realpath(p) for p in glob.glob("/usr/lib/jvm/*/bin/java")}):
        r = run(m, "--allow", "api.example.com", "--secret", "TOKEN=env@api.example.com", "--", java, *JAVA, "https://api.example.com/x",
                env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca, "JAVA_HOME": java.removesuffix("/bin/java")})
        equal((r.status, r.err), (0, ""), java)


@client("Java: one that lies where no sandbox sees it is told by a variable, which works as well", "java", "javac")
def _(m):
    d = m.fresh("jdk")
    m.mkdir(d + "/bin")
    m.put(d + "/bin/java", "#!/bin/sh\n", 0o755)
    for env in ({"JAVA_HOME": d}, {"PATH": f"{d}/bin:{t.SYSTEM_PATH}"}):
        r = run(m, "--allow", "api.example.com", "--secret", "TOKEN=env@api.example.com", "--", find("java"), *JAVA, "https://api.example.com/x",
                env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca, **env})
        equal(r.status, 0, f"status ({r})")
        holds(r.err, "Picked up JAVA_TOOL_OPTIONS: -Djavax.net.ssl.trustStore=/run/caisson/", "standard error")


@client("git: a push with a secret, its body in chunks and compressed", "git")
def _(m):
    script = """set -e
        git clone -q https://api.example.com/git/push.git /tmp/r; cd /tmp/r
        git config user.name a; git config user.email a@example.com; git config http.postBuffer 65536
        head -c 3000000 /dev/urandom >big; echo $WHO >who; git add big who; git commit -qm more; git push -q origin HEAD:refs/heads/$WHO
        git fetch -q; git rev-parse HEAD"""
    r = run(m, "--allow", "api.example.com", "--secret", "TOKEN=env@api.example.com", "--", "env", "WHO=" + m.name, "sh", "-c", script,
            env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca})
    equal(r.status, 0, f"status ({r})")
    got = subprocess.run(["git", "--git-dir", WORLD.dir + "/git/push.git", "rev-parse", m.name], stdout=subprocess.PIPE, check=False)
    equal(got.stdout.decode(), r.out, "the commit at the server")


@client("git: the placeholder as a password, of a URL or of a helper, is replaced within its base64", "git")
def _(m):
    import base64
    script = """set -e
        git clone -q https://user:$TOKEN@api.example.com/git/basic.git /tmp/a
        git -c credential.helper='!f() { echo username=user; echo password=$TOKEN; }; f' clone -q https://api.example.com/git/basic.git /tmp/b
        cat /tmp/b/hello"""
    r = run(m, "--allow", "api.example.com", "--secret", "TOKEN=env@api.example.com", "--", "sh", "-c", script,
            env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca})
    equal((r.status, r.out, r.err), (0, "hello from the world\n", ""), "git")
    seen = {dict(q["headers"]).get("Authorization") for q in requests()}
    equal(seen, {"Bearer " + SECRET, "Basic " + base64.b64encode(f"user:{SECRET}".encode()).decode()}, "what the server saw")


@client("curl: large bodies both ways, after Expect and in chunks, while secrets are looked for in them", "curl")
def _(m):
    script = """set -e
        head -c 5000000 /dev/urandom >/tmp/up
        curl -sS --http1.1 -T /tmp/up -o /tmp/1 https://api.example.com/echo; cmp /tmp/up /tmp/1
        curl -sS --http1.1 -H 'Transfer-Encoding: chunked' --data-binary @/tmp/up -o /tmp/2 https://api.example.com/echo; cmp /tmp/up /tmp/2
        curl -sS -w '%{size_download} %{num_connects}\n' -o /dev/null https://api.example.com/size/20000000 -o /dev/null https://api.example.com/size/0"""
    r = run(m, "--allow", "api.example.com", "--secret", "TOKEN=env@api.example.com", "--", "sh", "-c", script,
            env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca})
    equal((r.status, r.out, r.err), (0, "20000000 1\n0 0\n", ""), "curl")


@client("curl: events that a server sends one by one arrive one by one", "curl")
def _(m):
    script = "curl -sSN https://api.example.com/slow/4 | while read -r line; do [ -z \"$line\" ] || echo \"$(date +%s%N) $line\"; done"
    r = run(m, "--allow", "api.example.com", "--secret", "TOKEN=env@api.example.com", "--", "sh", "-c", script,
            env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca})
    equal(r.status, 0, f"status ({r})")
    lines = [x.split(" ", 1) for x in r.out.splitlines()]
    equal([x[1] for x in lines], [f"data: {i}" for i in range(4)], "events")
    took_them = (int(lines[-1][0]) - int(lines[0][0])) / 1e9
    check(took_them > 0.6, f"the first came {took_them:.2f} s before the last, it was sent 0.9 s before")


@client("steps of a session trust and are given secrets, too", "curl", "node")
def _(m):
    workspace(m)
    env = {"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca, "CAISSON_STATE": m.fresh("state")}
    r = m.cmd("begin", "--allow", "api.example.com", "--secret", "TOKEN=env@api.example.com", env=env)
    equal(r.status, 0, f"begin ({r})")
    name = r.out.strip()
    try:
        for c in CLIENTS:
            if c.name.startswith(("curl, HTTP/1", "python urllib", "node")):
                r = m.cmd("exec", name, "--", *c.argv("https://api.example.com/headers-echo", None), env=env)
                equal((r.status, r.err), (0, ""), f"{c.name} ({r})")
                holds(r.out, '"Authorization": "Bearer ***', "the echo")
        equal({dict(q["headers"]).get("Authorization") for q in requests()}, {"Bearer " + SECRET}, "what the server saw")
    finally:
        r = m.cmd("end", "--commit", "never", name, env=env)
    equal(r.status, 0, f"end ({r})")


# ---- HTTP/2 ----

H2_CLIENTS = [
    Client("curl", lambda url, ca: ["curl", "-sS", "-w", "%{http_version}", *(["--cacert", ca] if ca else []), url], ["curl"]),
    Client("node http2", lambda url, ca: [*(["env", "NODE_EXTRA_CA_CERTS=" + ca] if ca else []), "node", "fetch_h2.mjs", url], ["node"]),
    *(c for c in CLIENTS if c.name.startswith(("Java", "Go"))),
]
H2_SAYS = {"curl": "\n2", "node http2": "h2 200,200,200", "Java HttpClient": "HTTP_2 200", "Go net/http": "HTTP/2.0 200"}


def for_each_h2(sentence):
    def add(fn):
        for c in H2_CLIENTS:
            client(f"{c.name}, HTTP/2: {sentence}", "nghttpd", *c.needs)(lambda m, c=c: fn(m, c))
        return fn
    return add


@for_each_h2("TLS goes through untouched")
def _(m, c):
    r = run(m, "--allow", f"public.example.com:{H2_PORT}/tls", "--", *c.argv(f"https://public.example.com:{H2_PORT}/hello", "world-ca.crt"))
    equal(r.status, 0, f"status ({r})")
    holds(r.out, "hello from the world", "what came")
    holds(r.out, H2_SAYS[c.name], "what came")


@for_each_h2("a secret is added outside, what the server says of it is masked")
def _(m, c):
    log = WORLD.dir + "/nghttpd.log"
    start = os.path.getsize(log)
    r = run(m, "--allow", f"api.example.com:{H2_PORT}/tls", "--secret", f"TOKEN=env@api.example.com:{H2_PORT}", "--",
            *c.argv(f"https://api.example.com:{H2_PORT}/leak", None), env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca})
    equal(r.status, 0, f"status ({r})")
    holds(r.out, H2_SAYS[c.name], "what came")
    holds(r.out, "before ***", "what came")
    lacks(r.out + r.err, SECRET, "what the client printed")
    quiet(r)

    def seen():
        with open(log, errors="replace") as f:
            f.seek(start)
            return "authorization: Bearer " + SECRET in f.read()
    check(until(seen, 2), "the server did not see the secret")


@for_each_h2("a request that no rule allows gets a 403 that says why")
def _(m, c):
    r = run(m, "--allow", f"api.example.com:{H2_PORT}/tls GET /ok/**", "--", *c.argv(f"https://api.example.com:{H2_PORT}/leak", None),
            env={"SSL_CERT_FILE": WORLD.ca})
    holds(r.out, H2_SAYS[c.name].replace("200", "403"), "what came")
    holds(r.out, '"by":"caisson"', "what came")


@client("curl, HTTP/2: large bodies both ways at once", "nghttpd", "curl")
def _(m):
    script = f"""set -e
        head -c 5000000 /dev/urandom >/tmp/up
        url=https://api.example.com:{H2_PORT}/echo
        curl -sS -Z -T /tmp/up -o /tmp/1 $url -T /tmp/up -o /tmp/2 $url -w '%{{http_version}}\n'
        cmp /tmp/up /tmp/1; cmp /tmp/up /tmp/2"""
    r = run(m, "--allow", f"api.example.com:{H2_PORT}/tls", "--secret", f"TOKEN=env@api.example.com:{H2_PORT}", "--", "sh", "-c", script,
            env={"TOKEN": SECRET, "SSL_CERT_FILE": WORLD.ca})
    equal((r.status, r.out), (0, "2\n2\n"), f"curl ({r})")


# ---- what is not HTTP ----

SSH = ["-F", "none", "-i", "deploy", "-o", "BatchMode=yes", "-o", "UserKnownHostsFile=/tmp/known", "-o", "StrictHostKeyChecking=accept-new"]


@client("ssh: a command, its input, output and status; a megabyte each way", "ssh", "sshd")
def _(m):
    r = run(m, "--allow", "four.example.com:22", "--", "ssh", *SSH, "root@four.example.com", "echo there; cat; exit 7", input=b"x" * 1000000)
    equal(r.status, 7, f"status ({r})")
    equal(r.out, "there\n" + "x" * 1000000, "output")
    took[m.name, "ssh"] = r.seconds


@client("scp: a file there and back", "scp", "sshd")
def _(m):
    there = f"root@four.example.com:{WORLD.dir}/copied-{m.name}"
    r = run(m, "--allow", "four.example.com:22/tcp", "--", "sh", "-ec",
            'to=$1; shift; head -c 3000000 /dev/urandom >/tmp/a; scp -q "$@" /tmp/a $to; scp -q "$@" $to /tmp/b; cmp /tmp/a /tmp/b; sha256sum </tmp/a',
            "sh", there, *SSH)
    equal(r.status, 0, f"status ({r})")
    got = subprocess.run("sha256sum <" + there.split(":")[1], shell=True, stdout=subprocess.PIPE, check=True)
    equal(r.out, got.stdout.decode(), "the file at the server")


@client("git over ssh", "git", "ssh", "sshd")
def _(m):
    r = run(m, "--allow", "four.example.com:22", "--", "env", "GIT_SSH_COMMAND=ssh " + " ".join(SSH),
            *git(f"root@four.example.com:{WORLD.dir}/git/repo.git", None))
    equal(r.status, 0, f"status ({r})")
    holds(r.out, "hello from the world", "what came")


@client("ssh: a name and a port that no rule allows are refused at once", "ssh", "sshd")
def _(m):
    for allow, host in (("public.example.com", "four.example.com"), ("four.example.com", "four.example.com")):
        r = run(m, "--allow", allow, "--", "ssh", *SSH, "root@" + host, "true")
        equal(r.status, 255, f"status ({r})")
        holds(r.err, "--allow four.example.com", "standard error")
        say(f"ssh, {allow} allowed", r)
        at_once(m, "ssh", r)


def psql(host, query):
    return ["env", "PGPASSWORD=" + SECRET, "PGCONNECT_TIMEOUT=10", "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", query,
            f"host={host} user=tester dbname=postgres sslmode=" + ("verify-full sslrootcert=world-ca.crt" if host[0] > "9" else "require")]


@client("psql: an address in a private range that a rule names", "psql", "initdb", "postgres")
def _(m):
    r = run(m, "--allow", "10.77.0.0/16:5432", "--", *psql(w.PRIVATE, "select 6*7, inet_server_addr(), ssl from pg_stat_ssl where pid=pg_backend_pid()"))
    equal((r.status, r.out, r.err), (0, f"42|{w.PRIVATE}|t\n", ""), "psql")
    took[m.name, "psql"] = r.seconds


@client("psql: a name in that range, with the server's certificate verified, and much data", "psql", "initdb", "postgres")
def _(m):
    r = run(m, "--allow", "private.example.com:5432", "--allow", "10.77.0.0/16:5432", "--",
            *psql("private.example.com", "select repeat('x', 100) from generate_series(1, 20000)"))
    equal((r.status, len(r.out), r.err), (0, 2020000, ""), "psql")


@client("psql: a private address that no rule names, and a name that lies there, are refused at once", "psql", "initdb", "postgres")
def _(m):
    for allow, host in (("10.78.0.0/16:5432", w.PRIVATE), ("private.example.com:5432", "private.example.com")):
        r = run(m, "--allow", allow, "--", *psql(host, "select 1"))
        equal(r.status, 2, f"status ({r})")
        say(f"psql, {allow} allowed", r)
        at_once(m, "psql", r)


# ---- servers ----


def build():
    """Clients in languages that are compiled, outside."""
    out = WORLD.dir + "/built"
    os.mkdir(out)
    if find("javac"):
        w.run(find("javac"), "-d", out, FETCH + "/Fetch.java")
    if find("go"):
        home = os.environ.get("HOME", "/root")
        w.run(find("go"), "build", "-o", out + "/fetch-go", FETCH + "/fetch.go",
              env={"PATH": os.environ["PATH"], "HOME": home, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-ldflags=-s"})


def make_repositories():
    d = WORLD.dir + "/git"
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@example.com"}
    w.run("git", "init", "-q", d + "/work", env=env)
    with open(d + "/work/hello", "w") as f:
        f.write("hello from the world\n")
    with open(d + "/work/big", "wb") as f:
        f.write(os.urandom(2000000))
    w.run("git", "-C", d + "/work", "add", ".", env=env)
    w.run("git", "-C", d + "/work", "commit", "-qm", "one", env=env)
    for name in ("repo", "push", "basic"):
        w.run("git", "clone", "-q", "--bare", d + "/work", f"{d}/{name}.git", env=env)
    w.run("git", "--git-dir", d + "/push.git", "config", "http.receivepack", "true", env=env)


def listens(host, port):
    import socket
    try:
        socket.create_connection((host, port), 1).close()
        return True
    except OSError:
        return False


def start_ssh():
    d = WORLD.dir
    for key in ("hostkey", "deploy"):
        w.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{d}/{key}")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    with open(d + "/sshd_config", "w") as f:
        f.write(f"ListenAddress {w.PUBLIC}\nHostKey {d}/hostkey\nAuthorizedKeysFile {d}/deploy.pub\nStrictModes no\nPermitRootLogin prohibit-password\n"
                "UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\nSubsystem sftp internal-sftp\n")
    WORLD.spawn([find("sshd"), "-D", "-e", "-f", d + "/sshd_config"], stderr=open(d + "/sshd.log", "wb"))
    return w.PUBLIC, 22


def start_postgres():
    d = WORLD.dir + "/pg"
    names = {p.pw_name: p.pw_uid for p in pwd.getpwall()}
    uid = names.get("postgres", names.get("nobody"))
    os.mkdir(d)
    for name in ("server.key", "server.crt"):
        shutil.copy(f"{WORLD.dir}/{name}", f"{d}/{name}")
        os.chmod(f"{d}/{name}", 0o600)
        os.chown(f"{d}/{name}", uid, uid)
    with open(d + "/password", "w") as f:
        f.write(SECRET + "\n")
    os.chown(d, uid, uid)
    os.chmod(d, 0o700)
    os.chown(d + "/password", uid, uid)

    def become():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    w.run(find("initdb"), "-N", "-U", "tester", "-A", "scram-sha-256", "--pwfile", d + "/password", d + "/data", env=env, preexec_fn=become, cwd="/")
    with open(d + "/data/pg_hba.conf", "w") as f:
        f.write("hostssl all all 0.0.0.0/0 scram-sha-256\n")
    log = open(d + "/log", "wb")
    # setpriv, not preexec_fn: entering the namespace needs root.
    WORLD.spawn(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", find("postgres"), "-D", d + "/data", "-c", "listen_addresses=" + w.PRIVATE,
                 "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "ssl=on", "-c", f"ssl_cert_file={d}/server.crt",
                 "-c", f"ssl_key_file={d}/server.key"], env=env, stdout=log, stderr=log, cwd="/")
    return w.PRIVATE, 5432


def start_h2():
    d = WORLD.dir + "/h2"
    os.mkdir(d)
    with open(d + "/hello", "w") as f:
        f.write("hello from the world\n")
    with open(d + "/leak", "w") as f:
        f.write(f"before {SECRET} after\n")
    WORLD.spawn(["stdbuf", "-oL", find("nghttpd"), "-v", "--echo-upload", "-d", d, "-a", w.PUBLIC, str(H2_PORT), WORLD.dir + "/server.key", WORLD.dir + "/server.crt"],
                stdout=open(WORLD.dir + "/nghttpd.log", "wb"), stderr=subprocess.STDOUT)
    return w.PUBLIC, H2_PORT


def main():
    global WORLD
    if os.geteuid() != 0:
        print(f"{'not ok' if MUST_RUN else 'ok'} 1 - third-party clients # SKIP needs root")
        print("0 passed, 1 failed" if MUST_RUN else "0 passed, 0 failed, 1 skipped")
        sys.exit(MUST_RUN)
    w.enter()
    WORLD = w.World(echo_ports=())
    try:
        start = time.monotonic()
        make_repositories()
        places = [fn() for fn, needs in ((start_ssh, ("sshd", "ssh-keygen")), (start_postgres, ("initdb", "postgres", "setpriv")), (start_h2, ("nghttpd",)))
                  if all(map(find, needs))]
        build()
        for place in places:
            check(until(lambda: listens(*place), 20, 0.1), f"no server at {place}")
        note(f"servers and clients are ready after {time.monotonic() - start:.0f} s")
        for why in skipped:
            note("skipped: " + why)
        test.main(skipped=2 * len(skipped))
    finally:
        WORLD.close()


if __name__ == "__main__":
    main()
