# SPDX-License-Identifier: Apache-2.0
# title: programs that need a terminal get one
# needs: python3
export TERM=xterm
python3 - <<'PY'
import os, pty, subprocess, tty, termios, struct, fcntl, select
pid, fd = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "tty | sed 's/[0-9]*$/N/'; stty -echo; read x; echo got $x; test -t 0 && echo terminal; exit 3"])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
out = b""
os.write(fd, b"typed\n")
while True:
    try:
        d = os.read(fd, 1000)
    except OSError:
        break
    if not d:
        break
    out += d
lines = out.decode().replace("\r", "").split("\n")
print([l for l in lines if l != "typed"], os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
a, b = pty.openpty(); print(os.isatty(b)); tty.setraw(b); os.write(a, b"raw\x03"); print(os.read(b, 9))
PY
if [ -x /usr/bin/script ]; then script -qec 'bash -ic "sleep 5 & jobs | wc -l; kill %1"' /dev/null < /dev/null 2>/dev/null | tr -d '\r' | grep -c '^1$'; fi
