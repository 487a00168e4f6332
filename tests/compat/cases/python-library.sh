# SPDX-License-Identifier: Apache-2.0
# title: python3 threads, asyncio, subprocess, tempfile and friends
# needs: python3
python3 - <<'PY'
import asyncio, ctypes, fcntl, gzip, hashlib, json, mmap, os, pathlib, pwd, queue, random, resource, select, shutil
import signal, socket, ssl, subprocess, sys, tempfile, threading, time, urllib.request, uuid, zoneinfo
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(16) as e:
    print(sum(e.map(lambda x: x * x, range(100))))
ev = threading.Event(); t = threading.Timer(0.05, ev.set); t.start(); print(ev.wait(5))

async def go():
    async def echo(r, w):
        w.write((await r.readline()).upper()); await w.drain(); w.close()
    s = await asyncio.start_server(echo, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*s.sockets[0].getsockname())
    w.write(b"hello\n"); print(await r.readline()); w.close(); s.close()
    p = await asyncio.create_subprocess_exec("sh", "-c", "cat; exit 4", stdin=-1, stdout=-1)
    print(await p.communicate(b"piped"), p.returncode)
    loop = asyncio.get_running_loop(); print(await loop.run_in_executor(None, lambda: 42))
    await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(100)))
asyncio.run(go())

print(subprocess.run(["sort"], input="b\na\n", capture_output=True, text=True).stdout.split())
print(subprocess.run("exit 9", shell=True).returncode, subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)
try: subprocess.run(["sleep", "9"], timeout=0.1)
except subprocess.TimeoutExpired: print("timed out")
with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile(dir=d) as f, tempfile.TemporaryFile() as g:
    f.write(b"x" * 10); f.flush(); print(os.stat(f.name).st_size); g.write(b"y"); print(g.tell())
with open("m", "wb+") as f:
    f.truncate(8192)
    m = mmap.mmap(f.fileno(), 8192); m[4096:4101] = b"mmap!"; m.flush(); print(m.find(b"mmap!")); m.close()
    fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); print("locked")
    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_WILLNEED); os.fdatasync(f.fileno())
    print(os.sendfile(os.open("s", os.O_RDWR | os.O_CREAT), f.fileno(), 0, 100))
a = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS); a[0] = 1; print(len(a))
fd = os.memfd_create("x"); os.write(fd, b"memfd"); print(os.pread(fd, 9, 0))
p = select.epoll(); r, w = os.pipe(); p.register(r, select.EPOLLIN); os.write(w, b"1"); print(p.poll(1)[0][1])
signal.signal(signal.SIGALRM, lambda *_: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.02); signal.pause()
print(signal.sigtimedwait([signal.SIGUSR1], 0.01), os.sched_yield(), os.getpriority(os.PRIO_PROCESS, 0))
os.sched_setaffinity(0, os.sched_getaffinity(0)); print(len(os.urandom(16)), len(uuid.uuid4().hex))
print(ssl.create_default_context().verify_mode.name, zoneinfo.ZoneInfo("Europe/Zurich").utcoffset(None) is None)
print(hashlib.sha256(gzip.decompress(gzip.compress(b"z" * 1000))).hexdigest()[:16])
lib = ctypes.CDLL(None); cb = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
arr = (ctypes.c_int * 3)(3, 1, 2)
lib.qsort(arr, 3, 4, cb(lambda x, y: ctypes.c_int.from_address(x).value - ctypes.c_int.from_address(y).value)); print(list(arr))
e = os.eventfd(3) if hasattr(os, "eventfd") else None; print(os.eventfd_read(e) if e else 3)
os.mkfifo("ff"); os.symlink("m", "lnk"); os.link("m", "hard"); os.chmod("m", 0o600); os.utime("m", (1, 2)); print(os.stat("m").st_mtime)
print(sorted(os.listdir(".")), shutil.which("sh"), os.path.exists(os.path.expanduser("~")))
pid, st = os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 6"], {}), 0); print(os.waitstatus_to_exitcode(st))
fd = os.pidfd_open(os.getpid()); signal.pidfd_send_signal(fd, 0); print("pidfd")
sys.setrecursionlimit(20000); threading.stack_size(64 << 20)
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
t = threading.Thread(target=lambda: print(deep(9000))); t.start(); t.join()
PY
