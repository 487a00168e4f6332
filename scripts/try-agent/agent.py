#!/usr/bin/env python3
"""The agent of `make try`: one honest piece of work, and attacks on the way.

agent.py HOME PORT TOKEN COUNT

HOME is a decoy made by scripts/try; the current directory is a project below it.
Every attempt prints one line: name, milliseconds, "got" or "stopped", what happened.
agent.sh does the same where there is no python3.
"""
import ctypes
import errno
import os
import signal
import socket
import subprocess
import sys
import time

HOME, PORT, TOKEN, COUNT = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
if "/caisson-try." not in HOME or not HOME.endswith("/home"):
    sys.exit("agent: HOME is not a decoy")
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER, PTRACE_ATTACH, PTRACE_DETACH = 0x20000, 0x10000000, 16, 17


def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def attempt(name, what):
    start = time.perf_counter()
    try:
        state, text = "got", what() or "done"
    except OSError as e:
        state, text = "stopped", e.strerror or str(e)
        if isinstance(e, (socket.timeout, TimeoutError)):
            text = "no answer"
    except LookupError as e:
        state, text = "stopped", str(e.args[0])
    ms = (time.perf_counter() - start) * 1000
    print(name, f"{ms:.2f}", state, text.replace("\n", " ").strip(), sep="\t", flush=True)


def in_child(fn):
    """Run fn in a child; its OSError becomes ours."""
    pid = os.fork()
    if pid == 0:
        try:
            fn()
        except OSError as e:
            os._exit(e.errno if 0 < e.errno < 255 else 255)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, os.strerror(code) if code > 0 else f"killed by signal {-code}")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def connect(host, port):
    with socket.create_connection((host, port), timeout=1) as s:
        s.sendall(TOKEN.encode())
    return "connected"


def fork_bomb():
    children, why = [], None
    try:
        for _ in range(COUNT):
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            children.append(pid)
    except OSError as e:
        why = e
    time.sleep(0.4)  # so that it can be counted from outside
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if why:
        raise LookupError(f"{len(children)} started, then {errno.errorcode.get(why.errno, why.errno)}")
    return f"all {COUNT} started"


def write_outside():
    with open(HOME + "/.bashrc", "a", encoding="utf-8") as f:
        f.write(f"# {TOKEN}\n")
    return "written"


def become_root():
    in_child(lambda: call("unshare", CLONE_NEWUSER))
    return "root in a new namespace"


def mount():
    def go():
        try:
            call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
        except OSError:
            if os.geteuid() == 0:  # without a sandbox this would really mount
                raise
        call("mount", b"none", os.getcwd().encode(), b"tmpfs", 0, None)
    in_child(go)
    return "mounted"


def trace():
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    try:
        call("ptrace", PTRACE_ATTACH, pid, None, None)
        os.waitpid(pid, 0)
        call("ptrace", PTRACE_DETACH, pid, None, None)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return "attached"


def delete_home():
    gone = []
    for name in ("Documents", "Pictures"):  # what a decoy home holds, and never anything else
        folder = os.path.join(HOME, name)
        for f in os.listdir(folder):
            os.unlink(os.path.join(folder, f))
        os.rmdir(folder)
        gone.append(name)
    return "deleted " + ", ".join(gone)


def outlive():
    """A daemon: it leaves the process group, the session and its parent, and acts after our end."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(0, 3)
        time.sleep(1)
        with open("daemon." + TOKEN, "w", encoding="utf-8") as f:
            f.write("still here\n")
        os._exit(0)
    os.wait()
    return "started"


def work():
    """The honest part: a test fails; find out why, repair it, see it pass, report."""
    if subprocess.run(["sh", "test.sh"], check=False, stdout=subprocess.DEVNULL).returncode == 0:
        raise LookupError("the test passes already")
    text = read("count.sh").replace("wc -c", "wc -w")
    with open("count.sh", "w", encoding="utf-8") as f:
        f.write(text)
    words = subprocess.run(["sh", "count.sh", "text.txt"], check=True, capture_output=True, text=True).stdout.strip()
    if subprocess.run(["sh", "test.sh"], check=False, stdout=subprocess.DEVNULL).returncode:
        raise LookupError("the test still fails")
    with open("REPORT.md", "w", encoding="utf-8") as f:
        f.write(f"count.sh counted bytes, not words. Repaired. text.txt has {words} words.\n")
    return "repaired count.sh"


attempt("key", lambda: read(HOME + "/.ssh/id_ed25519"))
attempt("env", lambda: read(".env"))
if not os.environ.get("TRY_STAY_HERE"):  # not without the sandbox: nothing is sent beyond this machine
    attempt("internet", lambda: connect("192.0.2.1", 443))
attempt("loopback", lambda: connect("127.0.0.1", PORT))
attempt("bomb", fork_bomb)
attempt("write", write_outside)
attempt("userns", become_root)
attempt("mount", mount)
attempt("ptrace", trace)
attempt("delete", delete_home)
attempt("work", work)
attempt("outlive", outlive)
