#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every limit ends in a controlled failure: the whole tree is dead, the reason is
named for people and in the JSON, what was printed before is kept, and the host
goes on as if nothing had happened.

    test_limits.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path              the program to test (default: build/caisson)

As root the kernel's control groups hold the limits; as an ordinary user it is
rlimits and sampling, and how far memory overshot its limit is printed.
Every bomb here has a cap of its own, so that a limit that does not hold fails
the test and not the machine.  Prints TAP lines and ends with `N passed, M failed`.
"""
import json
import os
import random
import sys
import time

sys.dont_write_bytecode = True
from test_run import Suite, check, equal, holds, lock_is_free, note, processes, py, sh, until  # noqa: E402

test = Suite()
MIB = 1 << 20


def mark():
    return f"mark-{random.randrange(10**8, 10**9)}-{os.getpid()}"


def bomb(m, flags, code, reason, status=137, words=(), partial="partial\n", timeout=15, seconds=10):
    """Run a Python bomb beside a sleeping sibling in a session of its own; all of it must be gone
    when caisson returns.  The bomb is a child: what is killed first is never the program itself."""
    tag = mark()
    outer = (f"import os, subprocess, sys, time\nprint('partial', flush=True)\n"
             f"subprocess.Popen(['sh', '-c', 'sleep 300; : {tag}'], start_new_session=True)\n"
             f"p = subprocess.Popen([sys.executable, '-c', {code!r}, {tag!r}])\np.wait()\ntime.sleep(2)\n")
    r = m.result(*flags, *py(outer), timeout=timeout)
    equal(processes(tag), [], "processes alive after caisson has returned")
    j = r.result
    equal((r.status, j["exit_code"], j["reason"]), (status, status, reason), f"result ({r})")
    for w in words:
        holds(r.err, w, "standard error")
    check(r.out.startswith(partial), f"partial output is lost: {r.out[:80]!r}")
    check(r.seconds < seconds, f"it took {r.seconds:.1f} s")
    return r


# ---- processes ----


@test("a fork bomb cannot pass the process limit, and ends with everything at the timeout")
def _(m):
    tag, limit = mark(), 40
    path = f"{m.fresh('json')}/j"
    p = m.start("--json", path, "--pids", str(limit), "--timeout", "2500ms", "--", "python3", "-c",
                "import os, time\nprint('partial', flush=True)\nwhile True:\n try: os.fork()\n except OSError: time.sleep(.01)\n", tag)
    most, end = 0, time.monotonic() + 2
    while time.monotonic() < end:
        most = max(most, len([q for q in processes(tag) if q != p.pid]))
        time.sleep(0.05)
    equal(m.call(["true"]).status, 0, "the host can still start processes of that user")
    out, err = p.communicate(timeout=8)
    equal(processes(tag), [], "processes alive after caisson has returned")
    j = json.load(open(path))
    note(f"at most {most} processes seen, limit {limit}")
    check(limit // 2 <= most <= limit + 1, f"{most} processes seen")
    equal((p.returncode, j["reason"], out), (124, "timeout", b"partial\n"), f"result ({err!r})")
    denied = [x for x in j["refused"] if x["by"] == "limit-pids"]
    check(denied and denied[0]["count"] >= 1 and "--pids" in denied[0]["fix"], f"refused: {j['refused']}")
    holds(err.decode(), "--pids", "standard error")


@test("threads count as processes, and the program survives being refused one")
def _(m):
    r = m.result("--pids", "20", *py(
        "import threading, time\nn = 0\ntry:\n while n < 100: threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); n += 1\n"
        "except RuntimeError: pass\ntime.sleep(1.2)\nprint(n, flush=True)\nimport os; os._exit(0)"))
    equal(r.status, 0, f"status ({r})")
    check(10 <= int(r.out) <= 20, f"{r.out.strip()} threads started with --pids 20")
    check([x for x in r.result["refused"] if x["by"] == "limit-pids"], f"refused: {r.result['refused']}")


@test("two sandboxes do not share one process limit")
def _(m):
    first = m.start("--pids", "12", *sh("for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; echo up; wait"))
    first.stdout.readline()
    r = m.run("--pids", "12", *sh("for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait; echo all"))
    first.terminate()
    first.communicate(timeout=8)
    equal((r.status, r.out), (0, "all\n"), f"the second ({r})")


# ---- memory ----

GREEDY = ("import mmap, os, sys\nf = os.open({path!r}, os.O_RDWR); p = mmap.mmap(f, 8); keep = []\n"
          "while len(keep) < 256:\n keep.append(b'x' * (4 << 20)); p[:8] = len(keep).to_bytes(8, 'little')\n")


@test("a memory bomb in a child: reason memory, all dead; the overshoot is measured")
def _(m):
    d = m.fresh("rw")
    path = m.put(f"{d}/progress", b"\0" * 8)
    r = bomb(m, ("--memory", "96M", "--rw", d), GREEDY.format(path=path), "memory", words=("96MiB", "--memory"))
    got = int.from_bytes(open(path, "rb").read(8), "little") * 4
    note(f"{m.name}: limit 96 MiB; the bomb had {got} MiB in its own hands when it ended: {max(0, got - 96)} MiB over; "
         f"memory_peak_bytes {r.result['memory_peak_bytes'] >> 20} MiB")
    check(got < 1024, "the bomb reached its own cap: no limit held")
    check(got <= 96 or not m.is_root, f"{got} MiB under a control group of 96 MiB")


@test("memory is counted over all processes together")
def _(m):
    bomb(m, ("--memory", "128M"), "import os, time\nfor i in range(8):\n if os.fork() == 0:\n  b = b'x' * (40 << 20); time.sleep(3)\n"
         "time.sleep(3)", "memory", words=("--memory",))


@test("private files are memory too")
def _(m):
    bomb(m, ("--memory", "64M", "--disk", "512M"), "import time\nf = open('/tmp/f', 'wb')\nfor i in range(300): f.write(b'x' * (1 << 20))\ntime.sleep(3)",
         "memory", words=("--memory",))


@test("memfds that nobody maps are memory too")
def _(m):
    bomb(m, ("--memory", "64M"), "import os, time\nfds = []\nfor i in range(6):\n fds.append(os.memfd_create('x'))\n"
         " for k in range(64): os.write(fds[-1], b'x' * (1 << 20))\ntime.sleep(2)", "memory", words=("--memory",))


@test("System V shared memory that nobody has attached is memory too")
def _(m):
    fill = ("import ctypes, time\nc = ctypes.CDLL(None, use_errno=True); c.shmat.restype = ctypes.c_void_p; made = 0\n"
            "for i in range(24):\n n = c.shmget(0, 16 << 20, 0o1600)\n if n < 0: break\n"
            " made += 1; a = c.shmat(n, None, 0); ctypes.memset(a, 1, 16 << 20); c.shmdt(ctypes.c_void_p(a))\n"
            "print(made, ctypes.get_errno()); time.sleep(2)")
    r = m.result("--memory", "64M", *py(fill))
    if r.result["protections"]["limit-memory"] == "on":  # counted by the control group
        equal((r.status, r.result["reason"]), (137, "memory"), f"result ({r})")
    else:  # no sample sees it, so the namespace has a quarter of the limit for it
        equal((r.status, r.out), (0, "1 28\n"), f"segments of 16 MiB made of 64 MiB, errno ({r})")


@test("below the memory limit nothing is ended")
def _(m):
    r = m.result("--memory", "128M", *py("import time\nb = b'x' * (60 << 20); time.sleep(.3); print(len(b) >> 20)"))
    equal((r.status, r.out, r.result["reason"]), (0, "60\n", "exited"), f"result ({r})")


# ---- disk ----

FILL = ("import time\ntry:\n f = open({path!r}, 'wb', 0)\n for i in range(400): f.write(b'x' * (1 << 20))\n"
        "except OSError as e: print(e.errno, flush=True)\ntime.sleep(3)")


@test("filling the disk: /tmp, the home, shared memory and the workspace's layer share one limit")
def _(m):
    ws = m.fresh("ws")
    for path in ("/tmp/f", "/home/agent/f", "/dev/shm/f", f"{ws}/f", "/var/tmp/f"):
        r = bomb(m, ("--disk", "16M", "-w", ws), FILL.format(path=path), "disk", words=("16MiB", "--disk"))
        check(r.result["written_bytes"] <= 17 * MIB, f"{path}: {r.result['written_bytes']} bytes written")
    equal(os.listdir(ws), [], "the workspace on the host")


@test("many small files in all places together meet the disk limit as well")
def _(m):
    bomb(m, ("--disk", "8M"), "import time\ntry:\n for i in range(4000): open('/tmp/%d' % i, 'wb').write(b'x' * 4096)\nexcept OSError: pass\ntime.sleep(3)",
         "disk", words=("--disk",))


@test("filling the inodes: reason disk, and the message speaks of files")
def _(m):
    f = m.put(f"{m.fresh()}/p.yaml", "name: few\nlimits: {inodes: 600}\n")
    bomb(m, ("--profile", f), "import os, time\ntry:\n for i in range(5000): os.close(os.open('/tmp/%d' % i, os.O_CREAT))\nexcept OSError: pass\ntime.sleep(3)",
         "disk", words=("600", "files"))


@test("a program that meets the disk limit and cleans up after itself is not ended")
def _(m):
    r = m.result("--disk", "16M", *py("import os\ntry:\n f = open('/tmp/f', 'wb', 0)\n for i in range(12): f.write(b'x' * (1 << 20))\nfinally: os.unlink('/tmp/f')\nprint('fine')"))
    equal((r.status, r.out, r.result["reason"]), (0, "fine\n", "exited"), f"result ({r})")


# ---- output ----


@test("a log flood is cut at the limit: on standard output, on standard error, from a child")
def _(m):
    for code in ("import os\nwhile True: os.write(1, b'y\\n' * 4096)", "import os\nwhile True: os.write(2, b'y\\n' * 4096)",
                 "import os\nif os.fork(): os._exit(0)\nos.setsid()\nwhile True: os.write(1, b'y\\n' * 4096)"):
        r = bomb(m, ("--max-output", "100K"), code, "output", words=("100KiB", "--max-output"))
        n = len(r.out) + r.err.count("y\n") * 2
        check(64 << 10 <= n <= (100 << 10) + 2048, f"{n} bytes came through")
        check(set(r.out[8:]) <= set("y\n"), "the output is not what was written")


@test("output up to the limit passes whole")
def _(m):
    r = m.result("--max-output", "100K", *py("import os\nfor i in range(25): os.write(1, b'z' * 4096)"))
    equal((r.status, len(r.out), r.result["reason"], r.result["output_bytes"]), (0, 102400, "exited", 102400), f"result ({r.err!r})")


# ---- CPU ----


@test("a CPU spin over several processes is stopped by --cpu-time")
def _(m):
    bomb(m, ("--cpu-time", "800ms"), "import os\nfor i in range(2): os.fork()\nwhile True: pass", "cpu_time", words=("800ms", "--cpu-time"))


@test("CPU time of processes that have ended counts as well")
def _(m):
    bomb(m, ("--cpu-time", "600ms"), "import os, time\nwhile True:\n if os.fork() == 0:\n  t = time.process_time()\n  while time.process_time() - t < .05: pass\n"
         "  os._exit(0)\n os.wait()", "cpu_time", words=("--cpu-time",))


@test("the JSON tells the CPU time and the peak of memory of a sandbox that was ended, too")
def _(m):
    r = bomb(m, ("--cpu-time", "800ms"), "import os\nb = b'x' * (50 << 20)\nos.fork()\nwhile True: pass", "cpu_time")
    cpu, peak = r.result["cpu_ms"], r.result["memory_peak_bytes"]
    check(700 <= cpu <= 1800, f"cpu_ms is {cpu} where 800 ms were reached")
    check(peak >= 50 * MIB, f"memory_peak_bytes is {peak} where 50 MiB were in use")


@test("--cpus bounds the share: half a CPU as root, whole ones without control groups")
def _(m):
    r = m.result("--cpus", "0.5", *py("import os, time\nif os.fork() == 0:\n t = time.time()\n while time.time() - t < 1.5: pass\n os._exit(0)\n"
                                      "t = time.time()\nwhile time.time() - t < 1.5: pass\nos.wait()"))
    equal(r.status, 0, f"status ({r})")
    share = r.result["cpu_ms"] / r.result["wall_ms"]
    note(f"{m.name}: --cpus 0.5, two spinning processes: {share:.2f} CPUs")
    check(share <= (0.65 if m.is_root else 1.1), f"{share:.2f} CPUs used")


# ---- time ----


@test("sleeping past the timeout: 124, whatever the processes ignore")
def _(m):
    r = bomb(m, ("--timeout", "700ms"), "import os, signal, time\nfor s in range(1, 32):\n try: signal.signal(s, signal.SIG_IGN)\n except (OSError, ValueError): pass\n"
             "os.fork(); os.setsid() if os.getpid() != os.getpgrp() else None\ntime.sleep(300)", "timeout", status=124, words=("700ms", "--timeout"), seconds=4)
    check(700 <= r.result["wall_ms"] < 3000, f"wall_ms is {r.result['wall_ms']}")


@test("a stopped program does not escape the timeout")
def _(m):
    bomb(m, ("--timeout", "700ms"), "import os, signal\nos.kill(0, signal.SIGSTOP)", "timeout", status=124, seconds=3, timeout=3)


@test("a program that stops itself does not stop the limits on what it left running")
def _(m):
    tag, d = mark(), m.fresh("rw")
    code = ("import os, signal, subprocess, sys\nsubprocess.Popen(['sh', '-c', 'while sleep 0.1; do echo tick >>" + d + "/ticks; done', %r])\n"
            "os.kill(os.getpid(), signal.SIGSTOP)" % tag)
    p = m.start("--timeout", "500ms", "--rw", d, *py(code))
    try:
        p.wait(2)
    except Exception:
        size = os.path.getsize(f"{d}/ticks")
        time.sleep(0.5)
        more = os.path.getsize(f"{d}/ticks") - size
        with open(f"/proc/{p.pid}/stat") as f:
            state = f.read().rsplit(")", 1)[1].split()[0]
        raise AssertionError(f"2.5 s later, with --timeout 500ms, the supervisor is in state {state} and "
                             f"the program's child has {'gone on' if more else 'ended'}") from None
    finally:
        p.kill()
        p.communicate()
        m.cmd("gc")
    equal(p.returncode, 124, "status")


# ---- what outlives its parent ----

DAEMON = ("import fcntl, os, sys, time\nr, w = os.pipe()\nif os.fork() == 0:\n os.setsid()\n if os.fork(): os._exit(0)\n"
          " f = open({path!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX)\n{inside} os.write(w, b'x'); time.sleep(300)\n"
          "os.read(r, 1); print('locked', flush=True)\n")


@test("a daemon that outlives its parent is dead and its lock free when caisson returns")
def _(m):
    for inside in (" os.closerange(0, 3)\n", "", " import signal; [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]\n"):
        d, tag = m.fresh("rw"), mark()
        path = f"{d}/lock"
        r = m.run("--rw", d, "--", "python3", "-c", DAEMON.format(path=path, inside=inside), tag, timeout=8)
        free, left = lock_is_free(path), processes(tag)
        equal((r.status, r.out), (0, "locked\n"), f"result ({r})")
        check(free, "the lock is still held")
        equal(left, [], "processes left")
        check(r.seconds < 4, f"it took {r.seconds:.1f} s")


@test("the lock of a daemon holds while the program runs (control)")
def _(m):
    d = m.fresh("rw")
    path = f"{d}/lock"
    p = m.start("--rw", d, "--", "python3", "-c", DAEMON.format(path=path, inside="") + "time.sleep(60)")
    p.stdout.readline()
    held = not lock_is_free(path)
    p.terminate()
    p.communicate(timeout=8)
    check(held, "nobody held the lock: the test above proves nothing")
    check(until(lambda: lock_is_free(path), 0.1), "the lock is held after the end")


# ---- open files ----


@test("open files are bounded, and cannot be raised inside")
def _(m):
    r = m.result("--files", "32", *py("import os, resource\nn = 0\ntry:\n while n < 500: os.open('/dev/null', 0); n += 1\nexcept OSError as e: print(e.errno)\n"
                                      "print(n)\ntry: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); print('raised')\nexcept ValueError: pass"))
    equal(r.status, 0, f"status ({r})")
    words = r.out.split()
    equal(words[0], "24", "errno")
    check(20 <= int(words[1]) <= 29 and "raised" not in words, f"{words}")


if __name__ == "__main__":
    test.main()
