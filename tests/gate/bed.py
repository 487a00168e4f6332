# SPDX-License-Identifier: Apache-2.0
"""What the gate's tests share: a policy from a text, a session over pipes, and counting."""
import atexit
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CAISSON = os.environ.get("CAISSON", os.path.join(TOP, "build", "caisson"))
DATA = os.environ.get("CS_DATA", os.path.join(os.path.dirname(TOP), "shared", "data"))

_tests = []
_scratch = tempfile.TemporaryDirectory()
atexit.register(_scratch.cleanup)
_n = 0


def test(sentence):
    def keep(f):
        _tests.append((sentence, f))
        return f
    return keep


class Skip(Exception):
    pass


def equal(got, want, what):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


def holds(text, part, what):
    if part not in text:
        raise AssertionError("%s: %r is not in %r" % (what, part, text))


def lacks(text, part, what):
    if part in text:
        raise AssertionError("%s: %r is in %r" % (what, part, text))


def folder():
    global _n
    _n += 1
    d = os.path.join(_scratch.name, str(_n))
    os.mkdir(d)
    return d


def policy(text, **files):
    d = folder()
    for name, content in {"p.yaml": text, **{k.replace("__", "."): v for k, v in files.items()}}.items():
        with open(os.path.join(d, name), "w", encoding="utf-8") as f:
            f.write(content)
    return os.path.join(d, "p.yaml")


def run(*args, input=None, env=None, timeout=60):
    return subprocess.run([CAISSON, *args], input=input, capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})})


class Gate:
    """A session over pipes. Time goes on by a second an event."""

    def __init__(self, path, *args):
        self.proc = subprocess.Popen([CAISSON, "gate", "--profile", path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, bufsize=1)
        self.t, self.n = 1_700_000_000_000, 0
        atexit.register(self.close)

    def tell(self, **e):
        self.t += 1000
        self.raw(json.dumps({"t": self.t, **e}))

    def raw(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()

    def answer(self):
        line = self.proc.stdout.readline()
        if not line:
            raise AssertionError("the gate ended: " + self.proc.stderr.read())
        return json.loads(line)

    def ask(self, **e):
        self.tell(**e)
        return self.answer()

    def call(self, tool, args=None, **more):
        self.n += 1
        return self.ask(**{"type": "call", "id": str(self.n), "tool": tool, "args": args or {}, **more})

    def result(self, value=None, ok=True, id=None):
        self.tell(type="result", id=id or str(self.n), ok=ok, result=value)

    def do(self, tool, args=None, value=None, **more):
        """A call that must be allowed, and its result."""
        a = self.call(tool, args, **more)
        equal(a["verdict"], "allow", "%s: %s" % (tool, a))
        self.result(value)

    def close(self):
        if self.proc.poll() is None:
            self.proc.stdin.close()
            self.proc.wait(timeout=20)
        for f in (self.proc.stdout, self.proc.stderr):
            f.close()


def verdict(a):
    return a["verdict"], a.get("rule")


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    passed = failed = skipped = 0
    chosen = [(s, f) for s, f in _tests if word in s]
    print("1..%d" % len(chosen))
    for i, (sentence, f) in enumerate(chosen, 1):
        try:
            f()
            passed += 1
            print("ok %d - %s" % (i, sentence), flush=True)
        except Skip as e:
            if os.environ.get("CS_TESTS_MUST_RUN") and not str(e).startswith("no data"):
                failed += 1
                print("not ok %d - %s (skipped: %s)" % (i, sentence, e), flush=True)
                continue
            skipped += 1
            print("ok %d - %s # SKIP %s" % (i, sentence, e), flush=True)
        except Exception as e:  # noqa: BLE001
            failed += 1
            for line in ("%s: %s" % (type(e).__name__, e)).splitlines():
                print("# " + line)
            print("not ok %d - %s" % (i, sentence), flush=True)
    print("%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    sys.exit(1 if failed else 0)
