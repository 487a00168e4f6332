# SPDX-License-Identifier: Apache-2.0
# title: python3 multiprocessing forks, spawns and shares memory
# needs: python3
cat > mp.py <<'PY'
import multiprocessing as mp, os, sys
from multiprocessing import shared_memory
from concurrent.futures import ProcessPoolExecutor

def square(x):
    return x * x

def fill(name, i):
    m = shared_memory.SharedMemory(name=name)
    m.buf[i] = i + 1
    m.close()

def add(v, lock):
    for _ in range(100):
        with lock:
            v.value += 1

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        c = mp.get_context(method)
        with c.Pool(3) as p:
            print(method, p.map(square, range(6)), flush=True)
        v, lock = c.Value("i", 0), c.Lock()
        ps = [c.Process(target=add, args=(v, lock)) for _ in range(3)]
        [p.start() for p in ps]; [p.join() for p in ps]
        print(v.value, [p.exitcode for p in ps])
    m = shared_memory.SharedMemory(create=True, size=8)
    ps = [mp.Process(target=fill, args=(m.name, i)) for i in range(8)]
    [p.start() for p in ps]; [p.join() for p in ps]
    print(bytes(m.buf[:8])); m.close(); m.unlink()
    with mp.Manager() as man:
        d = man.dict(); d["a"] = 1; print(dict(d))
    q = mp.Queue(); mp.Process(target=q.put, args=("queued",)).start(); print(q.get())
    a, b = mp.Pipe(); a.send({"x": 1}); print(b.recv())
    with ProcessPoolExecutor(2) as e:
        print(list(e.map(square, [7, 8])))
    r, w = os.pipe(); pid = os.fork()
    if not pid:
        os.write(w, b"child"); os._exit(5)
    print(os.read(r, 9), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
python3 mp.py
