#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ways round a wall that stands: descriptors that are more than files, secrets that
lie where nobody looks, limits that are counted in the wrong place.

    test_side_doors.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path                  the program to test (default: build/caisson)

Each has a control: the same thing without the sandbox, or where the wall is not
in question, works.  Prints TAP lines and ends with `N passed, M failed`.
"""
import os
import socket
import sys
import threading

sys.dont_write_bytecode = True
from test_run import Suite, check, equal, holds, py, refused, sh  # noqa: E402

test = Suite()

AGAIN = ("import ctypes, socket, struct, sys\nc = ctypes.CDLL(None, use_errno=True)\n"
         "a = struct.pack('=H14x', 0); b = struct.pack('=H', 2) + struct.pack('>H', int(sys.argv[1])) + bytes([127, 0, 0, 1]) + bytes(8)\n"
         "print(c.connect(0, a, 16), c.connect(0, b, 16))\n"
         "try: print(socket.socket(fileno=0).recv(64))\nexcept OSError as e: print(e)\n")


def listener():
    s = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            with c:
                c.sendall(b"service of the host")
    threading.Thread(target=serve, daemon=True).start()
    return s, s.getsockname()[1]


def connected():
    with socket.create_server(("127.0.0.1", 0)) as s:
        a = socket.create_connection(s.getsockname())
        b, _ = s.accept()
    return a, b


@test("a TCP connection on standard input gives its bytes and not the host's network")
def _(m):
    service, port = listener()
    with service:
        for where in ("outside", "inside"):
            a, b = connected()
            with a, b:
                a.sendall(b"typed\n")
                if where == "outside":
                    r = m.call(["python3", "-c", AGAIN, str(port)], stdin=b)
                    holds(r.out, "service of the host", "control: without the sandbox it is reached")
                else:
                    r = m.run("--", "python3", "-c", AGAIN, str(port), stdin=b)
                    check("service of the host" not in r.out, f"the host's loopback was reached: {r}")
        a, b = connected()
        with a, b:
            a.sendall(b"typed\n")
            a.shutdown(socket.SHUT_WR)
            equal(m.run("--", "cat", stdin=b).out, "typed\n", "what was typed")


@test("a socket that is no connected stream is refused as a standard stream")
def _(m):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u, socket.create_server(("127.0.0.1", 0)) as s:
        for x in (u, s):
            refused(m.run("--", "true", stdin=x), "standard input is a socket")


@test("a secret in a directory that is bound inside the workspace's layer is hidden")
def _(m):
    ws = m.fresh("ws")
    for d in ("rw", "ro"):
        m.mkdir(f"{ws}/{d}")
        m.put(f"{ws}/{d}/.env", "SECRET")
        m.put(f"{ws}/{d}/plain", "plain")
        m.put(f"{ws}/{d}/named", "SECRET")
    flags = ("-w", ws, "--rw", f"{ws}/rw", "--ro", f"{ws}/ro", "--hide", f"{ws}/rw/named", "--hide", f"{ws}/ro/named")
    for d in ("rw", "ro"):
        equal(m.run(*flags, *sh(f"cat {d}/plain"), cwd=ws).out, "plain", "control")
    r = m.run(*flags, *sh("cat rw/.env; cat rw/named ro/named"), cwd=ws)
    check("SECRET" not in r.out, f"shown: {r}")


@test("--hide with a path through a symlink hides what it leads to")
def _(m):
    ws = m.fresh("ws")
    m.mkdir(f"{ws}/k")
    m.put(f"{ws}/k/f", "SECRET")
    os.symlink("k", f"{ws}/kk")
    link = f"{m.fresh('link')}/ws"
    os.symlink(ws, link)
    for mode in ("layer", "read", "write"):
        for flags in (("-w", link, "--hide", f"{link}/k/f"), ("-w", ws, "--hide", f"{ws}/kk/f")):
            r = m.run("--workspace-mode", mode, *flags, *sh("cat k/f"), cwd=ws)
            check("SECRET" not in r.out, f"shown in {mode} with {flags}: {r}")


@test("a directory that cannot be searched is hidden as a whole", modes=("user",))
def _(m):
    ws = m.fresh("ws")
    m.mkdir(f"{ws}/locked")
    m.put(f"{ws}/locked/.env", "SECRET")
    os.chmod(f"{ws}/locked", 0)
    try:
        r = m.run("-w", ws, *sh("chmod 700 locked; cat locked/.env"), cwd=ws)
    finally:
        os.chmod(f"{ws}/locked", 0o755)
    check("SECRET" not in r.out, f"shown: {r}")


@test("a secret moved to where other people's code lies is found there")
def _(m):
    ws = m.fresh("ws")
    m.mkdir(f"{ws}/node_modules")
    m.put(f"{ws}/node_modules/.env", "SECRET")
    m.put(f"{ws}/node_modules/index.js", "code")
    equal(m.run("-w", ws, *sh("cat node_modules/index.js"), cwd=ws).out, "code", "control")
    check("SECRET" not in m.run("-w", ws, *sh("cat node_modules/.env"), cwd=ws).out, "shown")


@test("a Unix socket of the host is not there, below .git either")
def _(m):
    ws = m.fresh("ws")
    m.mkdir(f"{ws}/.git")
    for path in (f"{ws}/service", f"{ws}/.git/daemon.ipc"):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
            os.chmod(path, 0o777)
            s.listen()
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(path)  # control
            r = m.run("-w", ws, "--workspace-mode", "read", *py(f"import socket; socket.socket(socket.AF_UNIX).connect({path!r}); print('reached')"), cwd=ws)
            check("reached" not in r.out, f"{path} was reached")


@test("a search for secrets that was cut short is said, with --quiet and in the JSON, too")
def _(m):
    ws = m.fresh("ws")
    deep = ws
    for i in range(10):
        deep = m.mkdir(f"{deep}/d")
    r = m.result("--quiet", "-w", ws, *sh("true"), cwd=ws)
    equal(r.result["hidden_partly"], True, "in the JSON")
    holds(r.err, "--hide", "standard error")
    equal(m.result("-w", m.fresh("ws"), *sh("true")).result["hidden_partly"], False, "control")


@test("CPU time of children that nobody waits for counts", modes=("root",))
def _(m):
    burn = ("import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nfor i in range(30):\n p = os.fork()\n if p == 0:\n"
            "  t = time.process_time()\n  while time.process_time() - t < .1: pass\n  os._exit(0)\n try: os.waitpid(p, 0)\n except OSError: pass\n")
    r = m.result("--cpu-time", "600ms", *py(burn))
    equal((r.status, r.result["reason"]), (137, "cpu_time"), f"{r}")
    equal(m.result(*py(burn)).status, 0, "control")


@test("where whole CPUs are the limit the program does not take more", modes=("user",))
def _(m):
    more = "import os\ntry: os.sched_setaffinity(0, range(os.cpu_count() + 8))\nexcept OSError as e: print(e.errno)\nprint(len(os.sched_getaffinity(0)))"
    if m.result("--cpus", "1", *sh("true")).result["protections"]["limit-cpu"] == "on":
        return
    equal(m.run("--cpus", "1", *py(more)).out, "1\n1\n", "errno and CPUs")
    equal(m.run(*py("import os; os.sched_setaffinity(0, os.sched_getaffinity(0))")).status, 0, "control")


@test("memory held by a thread whose first thread has ended counts")
def _(m):
    eat = ("import ctypes, threading, time\ndef eat():\n time.sleep(.2); b = bytearray(300 << 20); time.sleep(2); import os; os._exit(0)\n"
           "threading.Thread(target=eat).start()\nctypes.CDLL(None).syscall({exit}, 0)\n")
    r = m.result("--memory", "64M", *py(eat.format(exit=60 if os.uname().machine == "x86_64" else 93)))
    equal((r.status, r.result["reason"]), (137, "memory"), f"{r}")


@test("--max-output counts what goes out through standard input")
def _(m):
    path = m.put(f"{m.fresh('out')}/file")
    for flags, most in ((("--max-output", "1k"), 1024), ((), 1 << 20)):
        with open(path, "r+b") as f:
            f.truncate(0)
            m.run(*flags, *sh("head -c 100000 /dev/zero >&0"), stdin=f)
        size = os.path.getsize(path)
        check(size <= most and (flags or size == 100000), f"{size} bytes with {flags}")


@test("--json follows no symlink and waits for no FIFO")
def _(m):
    d = m.fresh("json")
    m.put(f"{d}/victim", "kept")
    os.symlink("victim", f"{d}/link")
    os.mkfifo(f"{d}/fifo")
    m.own(f"{d}/fifo")
    for name in ("link", "fifo"):
        refused(m.run("--json", f"{d}/{name}", "--", "true", timeout=5), "--json")
    with open(f"{d}/victim", encoding="utf-8") as f:
        equal(f.read(), "kept", "what the link leads to")


if __name__ == "__main__":
    test.main()
