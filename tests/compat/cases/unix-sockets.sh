# SPDX-License-Identifier: Apache-2.0
# title: unix sockets: by path, abstract, pairs, passed descriptors
# needs: python3
python3 - <<'PY'
import array, os, socket, struct, threading
for name in ("sock", f"\0compat-{os.getpid()}", f"/tmp/compat-{os.getpid()}"):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen()
    def serve():
        c, _ = s.accept(); c.sendall(c.recv(10).upper()); c.close()
    t = threading.Thread(target=serve); t.start()
    c = socket.socket(socket.AF_UNIX); c.connect(name); c.sendall(b"hello"); print(c.recv(10)); t.join(); s.close()
os.unlink(name)
a, b = socket.socketpair(); r, w = os.pipe(); os.write(w, b"passed")
socket.send_fds(a, [b"x"], [r]); _, fds, _, _ = socket.recv_fds(b, 9, 1); print(os.read(fds[0], 9))
pid, uid, gid = struct.unpack("3i", a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)); print(pid == os.getpid(), uid == os.getuid())
d, e = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); d.send(b"dgram"); print(e.recv(9))
f, g = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); f.send(b"1"); f.send(b"2"); print(g.recv(9), g.recv(9))
PY
