# SPDX-License-Identifier: Apache-2.0
"""fetch_urllib.py URL [CA-FILE]: the status, then the body."""
import ssl
import sys
import urllib.error
import urllib.request

context = ssl.create_default_context(cafile=sys.argv[2]) if len(sys.argv) > 2 else None
try:
    with urllib.request.urlopen(sys.argv[1], context=context) as r:
        print(r.status, r.headers.get("X-Seen", ""))
        sys.stdout.write(r.read().decode())
except urllib.error.HTTPError as e:
    sys.exit(f"{e}: {e.read().decode()}")
except OSError as e:
    sys.exit(str(e))
