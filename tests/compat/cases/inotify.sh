# SPDX-License-Identifier: Apache-2.0
# title: inotify tells of changes in the workspace and in /tmp
# needs: python3
python3 - <<'PY'
import ctypes, os, struct, tempfile
c = ctypes.CDLL(None, use_errno=True)
for d in ("watched", tempfile.mkdtemp()):
    os.makedirs(d, exist_ok=True)
    fd = c.inotify_init1(0o4000)
    assert c.inotify_add_watch(fd, d.encode(), 0x100 | 0x2 | 0x200 | 0x8) > 0, os.strerror(ctypes.get_errno())
    with open(f"{d}/f", "w") as f: f.write("x")
    os.unlink(f"{d}/f")
    data, seen = os.read(fd, 4096), []
    while data:
        _, mask, _, n = struct.unpack_from("iIII", data); seen.append((hex(mask), data[16:16 + n].rstrip(b"\0"))); data = data[16 + n:]
    print(seen)
PY
