#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`system: scratch`: installers work inside, and nothing of it is left.

    test_txn_scratch.py [WORD]     run the tests whose sentence holds WORD
    CAISSON=path                   the program to test (default: build/caisson)

Real installers where the host has them in /usr; nothing comes from a network.  Each
test has a control: the same without `system: scratch` is refused.
"""
import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

sys.dont_write_bytecode = True
from test_run import Suite, check, equal, holds, note, sh, worked  # noqa: E402
from test_txn import Ws  # noqa: E402

test = Suite()
NAME = "caisson-scratch-test"
MODULE = NAME.replace("-", "_")
# Where an installer could have left something on the host.
HOST = ("/usr/local", "/opt", "/etc", "/usr/lib/node_modules", "/usr/lib/python3")


def left_on_host():
    return subprocess.run(["find", *[d for d in HOST if os.path.isdir(d)], "-name", "*caisson*scratch*test*"], capture_output=True, text=True).stdout


class Place(Ws):
    def __init__(self, m, more=""):
        super().__init__(m, {"keep": "kept\n", "scratch.yaml": f"name: installs\nsystem: scratch\n{more}", "plain.yaml": "name: plain\n"})

    def inside(self, script, profile="scratch", **kw):
        return self.m.run("--profile", f"./{profile}.yaml", "-w", self.dir, "--commit", "keep", *sh(script), **self.env(kw))

    def installs(self, script, shows):
        """It works and can be used, inside; the control cannot; and the host has nothing of it."""
        r = self.inside(script)
        worked(r)
        holds(r.out, shows, "inside")
        check(self.inside(script, "plain").status != 0, "without scratch it works, too: this shows nothing")
        equal(left_on_host(), "", "left on the host")
        equal(self.list(), [], "what is written outside the workspace is no change of it")
        check(self.inside(f"! find /usr/local /opt -name '*{NAME}*' | grep .").status == 0, "the next run starts without it")


@test("a write to /usr/local and to /opt works, is seen inside, and is gone afterwards")
def _(m):
    Place(m).installs(f"mkdir -p /usr/local/share/{NAME} /opt/{NAME}/bin && printf '#!/bin/sh\\necho it runs\\n' >/opt/{NAME}/bin/tool && "
                      f"chmod 755 /opt/{NAME}/bin/tool && ln -s /opt/{NAME}/bin/tool /usr/local/bin/{NAME} && {NAME}", "it runs")


@test("what the base has there can be replaced and deleted, inside only", modes=("root",))
def _(m):
    w = Place(m)
    before = os.stat("/etc/profile"), os.stat("/usr/bin/env")
    worked(w.inside("echo other >/etc/profile && rm /usr/bin/env && ! test -e /usr/bin/env && grep -q other /etc/profile"))
    equal((os.stat("/etc/profile"), os.stat("/usr/bin/env")), before, "the host's files")


def wheel(path):
    """A wheel by hand: one module, one command."""
    files = {f"{MODULE}.py": "def main():\n    print('from the wheel')\n",
             f"{MODULE}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n",
             f"{MODULE}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{MODULE}-1.0.dist-info/entry_points.txt": f"[console_scripts]\n{NAME} = {MODULE}:main\n"}
    record = "".join(f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(t.encode()).digest()).decode().rstrip('=')},{len(t)}\n"
                     for n, t in files.items()) + f"{MODULE}-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as z:
        for n, t in {**files, f"{MODULE}-1.0.dist-info/RECORD": record}.items():
            z.writestr(n, t)
    os.chmod(path, 0o644)


@test("pip install of a package: its command runs, its module is found")
def _(m):
    if subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True).returncode:
        note("no pip in /usr: not tried")
        return
    w = Place(m)
    wheel(w.path(f"{MODULE}-1.0-py3-none-any.whl"))
    system = "--break-system-packages" if "--break-system-packages" in subprocess.run(
        ["/usr/bin/python3", "-m", "pip", "install", "--help"], capture_output=True, text=True).stdout else ""
    # Not --user: where the directory can be written, pip installs for all.
    w.installs(f"/usr/bin/python3 -m pip install -q --no-index --no-cache-dir --disable-pip-version-check --root-user-action=ignore {system} "
               f"./{MODULE}-1.0-py3-none-any.whl && {NAME} && "
               f"PYTHONPATH=$(dirname $(find /usr/local/lib -name {MODULE}.py)) /usr/bin/python3 -c 'import {MODULE}; {MODULE}.main()'", "from the wheel")


def npm_package(path):
    files = {"package.json": json.dumps({"name": NAME, "version": "1.0.0", "bin": {NAME: "tool.js"}}),
             "tool.js": "#!/usr/bin/env node\nconsole.log('from npm')\n"}
    top = path + ".d"
    os.makedirs(f"{top}/package")
    for n, t in files.items():
        with open(f"{top}/package/{n}", "w") as f:
            f.write(t)
        os.chmod(f"{top}/package/{n}", 0o755)
    with tarfile.open(path, "w:gz") as z:
        z.add(f"{top}/package", "package")
    shutil.rmtree(top)
    os.chmod(path, 0o644)


@test("npm install -g of a package: its command runs")
def _(m):
    if not os.path.exists("/usr/bin/npm") or not os.path.exists("/usr/bin/node"):
        note("no npm in /usr: not tried")
        return
    w = Place(m)
    npm_package(w.path("package.tgz"))
    w.installs(f"npm install -g --offline --no-audit --no-fund --prefix /usr/local ./package.tgz >/dev/null && {NAME}", "from npm")


@test("the disk limit holds for it, and the host's disk is not what fills up")
def _(m):
    w = Place(m, "limits:\n  disk: 16M\n")
    r = w.inside(f"head -c 8M /dev/zero >/usr/local/{NAME} && echo fits && head -c 64M /dev/zero >/opt/{NAME}; echo $?; ls -l /opt/{NAME}")
    holds(r.out, "fits\n", "below the limit")
    check("fits\n0\n" not in r.out, f"64 MiB went into 16: {r}")
    equal(left_on_host(), "", "left on the host")


@test("in a session it is kept from step to step, and gone with it; a fork starts without it")
def _(m):
    w = Place(m)
    r = w.cmd("begin", "--profile", "./scratch.yaml", "-w", w.dir)
    worked(r)
    s = r.out.strip()
    try:
        worked(w.cmd("exec", s, "--", "sh", "-c", f"mkdir -p /opt/{NAME} && echo installed >/opt/{NAME}/f"))
        holds(w.cmd("exec", s, "--", "cat", f"/opt/{NAME}/f").out, "installed", "the next step")
        f = w.cmd("fork", s).out.strip()
        check(w.cmd("exec", f, "--", "test", "-e", f"/opt/{NAME}").status != 0, "the fork has it")
        worked(w.cmd("end", "--commit", "never", f))
    finally:
        w.cmd("end", "--commit", "never", s)
    equal(left_on_host(), "", "left on the host")
    equal(w.list(), [], "transactions")


if __name__ == "__main__":
    test.main()
