# SPDX-License-Identifier: Apache-2.0
# title: a program that wants the network is told at once, not kept waiting
# needs: python3
# expect: inside
timeout 10 python3 - <<'PY'
import socket, sys, time
t = time.monotonic()
for where in (("192.0.2.1", 80), ("example.org", 80)):
    try:
        socket.create_connection(where, timeout=8)
        sys.exit("connected!")
    except OSError as e:
        print(where[0], e)
assert time.monotonic() - t < 3, "took too long"
PY
[ $? = 0 ] || exit 1
if [ -x /usr/bin/curl ]; then timeout 10 curl -sS http://192.0.2.1/; code=$?; [ $code -ge 6 ] && [ $code -le 7 ] || { echo "curl: $code"; exit 1; }; fi
