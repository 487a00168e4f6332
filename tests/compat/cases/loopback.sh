# SPDX-License-Identifier: Apache-2.0
# title: a server and a client meet on loopback, over TCP, UDP and IPv6
# needs: python3
python3 - <<'PY'
import http.server, socket, threading, urllib.request
h = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
h.RequestHandlerClass.log_message = lambda *a: None
threading.Thread(target=h.serve_forever, daemon=True).start()
open("page", "w").write("page" * 1000)
print(len(urllib.request.urlopen(f"http://127.0.0.1:{h.server_port}/page").read()), urllib.request.urlopen(f"http://localhost:{h.server_port}/page").status)
h.shutdown()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0))
c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); c.sendto(b"udp", u.getsockname()); print(u.recv(9))
print(socket.gethostbyname("localhost"), socket.getaddrinfo("localhost", 80, socket.AF_INET)[0][4])
s = socket.create_server(("0.0.0.0", 0)); c = socket.create_connection(("127.0.0.2", s.getsockname()[1])); p, _ = s.accept(); c.sendall(b"x" * 100000); c.shutdown(socket.SHUT_WR)
n = 0
while d := p.recv(65536): n += len(d)
print(n); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536); c.close()
try: socket.create_connection(("127.0.0.1", 1))
except OSError as e: print(type(e).__name__)
try:
    v = socket.create_server(("::1", 0), family=socket.AF_INET6); w = socket.create_connection(v.getsockname()[:2]); v.accept()[0].sendall(b"six"); print(w.recv(9))
except OSError as e: print("no IPv6", type(e).__name__)
PY
exec 3<>/dev/tcp/127.0.0.1/1 || echo 'nobody there'
