# SPDX-License-Identifier: Apache-2.0
"""fetch_asyncio.py URL [CA-FILE]: the head, then the body."""
import asyncio
import ssl
import sys
import urllib.parse

u = urllib.parse.urlsplit(sys.argv[1])


async def main():
    tls = ssl.create_default_context(cafile=sys.argv[2] if len(sys.argv) > 2 else None) if u.scheme == "https" else None
    reader, writer = await asyncio.open_connection(u.hostname, u.port or (443 if tls else 80), ssl=tls)
    writer.write(f"GET {u.path} HTTP/1.1\r\nHost: {u.netloc}\r\nConnection: close\r\n\r\n".encode())
    text = (await reader.read(-1)).decode()
    writer.close()
    if text.split(" ")[1] != "200":
        sys.exit(text)
    sys.stdout.write(text)

try:
    asyncio.run(main())
except OSError as e:
    sys.exit(f"{type(e).__name__}: {e}")
