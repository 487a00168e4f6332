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
from test_run import CAISSON, Suite, check, equal, holds, note, processes, sh, until, worked  # noqa: E402
from test_txn import Ws  # noqa: E402

test = Suite()
NAME = "caisson-scratch-test"
MODULE = NAME.replace("-", "_")
# Where an installer could have left something on the host.
HOST = ("/usr/local", "/usr/bin", "/opt", "/etc", "/var/lib", "/usr/lib/node_modules", "/usr/lib/python3")


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


# ---- packages ----

PKG = "caisson-scratch-test"
HAS_APT = all(os.path.exists(p) for p in ("/usr/bin/apt-get", "/usr/bin/dpkg-deb"))
SOURCE = "rm -rf /etc/apt/sources.list.d/* && echo \"deb [trusted=yes] copy:$PWD/repo ./\" >/etc/apt/sources.list && apt-get -q update"


def deb(w, others=True):
    """A repository in the workspace with one package: another's file, a set-id program, a script that adds an account and gives to it."""
    top = f"{w.top}/package"
    files = {"DEBIAN/control": (f"Package: {PKG}\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@example.org>\nDescription: test\n", 0o644),
             "DEBIAN/postinst": (f"#!/bin/sh\nset -e\nid -u >/var/lib/{PKG}/ran-as\nuseradd --system --no-create-home {PKG}\n" +
                                 (f"chown 34:34 /var/lib/{PKG}/given\nchown {PKG} /var/lib/{PKG}/new\n" if others else ""), 0o755),
             f"usr/bin/{PKG}": ("#!/bin/sh\necho from the package\n", 0o755),
             f"usr/bin/{PKG}-setid": ("#!/bin/sh\n:\n", 0o4755),
             f"etc/{PKG}.conf": ("x\n", 0o644),
             f"var/lib/{PKG}/others": ("x\n", 0o600), f"var/lib/{PKG}/given": ("x\n", 0o640), f"var/lib/{PKG}/new": ("x\n", 0o600)}
    for name, (text, mode) in files.items():
        os.makedirs(os.path.dirname(f"{top}/{name}"), exist_ok=True)
        with open(f"{top}/{name}", "w") as f:
            f.write(text)
        os.chmod(f"{top}/{name}", mode)
    if others:
        os.chown(f"{top}/var/lib/{PKG}/others", 33, 33)
    w.m.mkdir(w.path("repo"))
    out = w.path(f"repo/{PKG}_1.0_all.deb")
    subprocess.run(["dpkg-deb", "-b", top, out], check=True, capture_output=True)
    with open(out, "rb") as f:
        data = f.read()
    w.put("repo/Packages", files["DEBIAN/control"][0] + f"Filename: ./{PKG}_1.0_all.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n")


SHOW = f"{PKG} && cat /var/lib/{PKG}/ran-as && stat -c '%n %u:%g %a' /usr/bin/{PKG}-setid /var/lib/{PKG}/[a-q]* && stat -c '%n is of %U' /var/lib/{PKG}/new"
SHOWN = (f"from the package\n0\n/usr/bin/{PKG}-setid 0:0 4755\n/var/lib/{PKG}/given 34:34 640\n/var/lib/{PKG}/new")


def package_test(w, install):
    before = os.stat("/var/lib/dpkg/status"), os.stat("/etc/passwd"), os.stat("/etc/group")
    r = w.inside(f"({install}) >&2 && {SHOW}")
    worked(r)
    holds(r.out, SHOWN, "inside")
    holds(r.out, f"/var/lib/{PKG}/others 33:33 600\n/var/lib/{PKG}/new is of {PKG}\n", "who owns what")
    check(w.inside(f"({install}) >&2", "plain").status != 0, "without scratch it works, too: this shows nothing")
    equal((os.stat("/var/lib/dpkg/status"), os.stat("/etc/passwd"), os.stat("/etc/group")), before, "the host's files")
    equal(left_on_host(), "", "left on the host")
    equal(w.list(), [], "what is written outside the workspace is no change of it")
    check(w.inside(f"! dpkg -s {PKG} && ! test -e /usr/bin/{PKG}").status == 0, "the next run starts without it")


@test("apt-get install of a package: script, another's file, set-id program, a new account", modes=("root",))
def _(m):
    if not HAS_APT:
        note("no apt-get: not tried")
        return
    w = Place(m)
    deb(w)
    package_test(w, f"{SOURCE} && apt-get -q install -y {PKG}")
    # The downloads are made by a user that may do less: apt says so when it cannot become that user.
    r = w.inside(f"{SOURCE} && apt-get -q install -y {PKG} && grep -c ^_apt: /etc/passwd")
    worked(r)
    check("unsandboxed" not in r.err + r.out, f"apt did not become _apt: {r}")


@test("dpkg -i of the same, and dpkg -P takes it away", modes=("root",))
def _(m):
    if not HAS_APT:
        note("no dpkg: not tried")
        return
    w = Place(m)
    deb(w)
    package_test(w, f"dpkg -i repo/{PKG}_1.0_all.deb")
    worked(w.inside(f"dpkg -i repo/*.deb && rm /var/lib/{PKG}/ran-as && dpkg -P {PKG} && ! test -e /usr/bin/{PKG} && ! test -e /etc/{PKG}.conf"))


@test("where there is one id, apt-get and dpkg install what is all root's, and who fails with more is told why", modes=("user",))
def _(m):
    if not HAS_APT:
        note("no apt-get: not tried")
        return
    w = Place(m)
    deb(w, others=False)
    before = os.stat("/var/lib/dpkg/status")
    for install in (f"{SOURCE} && apt-get -q install -y {PKG}", f"dpkg -i repo/{PKG}_1.0_all.deb"):
        r = w.inside(f"({install}) >&2 && {PKG} && cat /var/lib/{PKG}/ran-as && grep -c ^{PKG}: /etc/passwd && dpkg -P {PKG} >&2")
        worked(r)
        equal(r.out, "from the package\n0\n1\n", "inside")
        check(w.inside(f"({install}) >&2", "plain").status != 0, "without scratch it works, too: this shows nothing")
    equal((os.stat("/var/lib/dpkg/status"), left_on_host(), w.list()), (before, "", []), "the host")
    w = Place(m)
    deb(w)
    r = w.inside(f"dpkg -i repo/{PKG}_1.0_all.deb")
    check(r.status != 0 and "ownership" in r.err, f"a file of another was installed: {r}")
    holds(r.err, "`system: scratch` had one id here", "what is said")
    check("system: scratch" not in w.inside("exit 7", "plain").err, "said without scratch, too")
    check("system: scratch" not in w.inside("true").err, "said to who did not fail")
    equal(w.inside("id -u; touch f && chown 33 f").out, "0\n", "one id")


@test("what is installed belongs to nobody on the host, and no mount of it honours set-id bits", modes=("root",))
def _(m):
    w = Place(m)
    marker = f"31{os.getpid()}.25"
    p = m.start("--profile", "./scratch.yaml", "-w", w.dir, "--commit", "never",
                *sh("for u in 0 33 65535; do touch /usr/bin/of-$u && chown $u:$u /usr/bin/of-$u && chmod 4755 /usr/bin/of-$u || exit 1; done; "
                    f"setpriv --reuid 33 --regid 33 --clear-groups sleep {marker} & echo made; read x; kill $! && echo killed"),
                **{k: v for k, v in w.env({"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}).items() if k != "timeout"})
    try:
        equal(p.stdout.readline(), b"made\n", "inside")
        sleeps = until(lambda: [q for q in processes(marker) if os.path.basename(os.readlink(f"/proc/{q}/exe")) == "sleep"], 10)
        check(sleeps, "no process of another id")
        pid = sleeps[0]
        owners = [os.stat(f"/proc/{pid}/root/usr/bin/of-{u}") for u in (0, 33, 65535)]
        for st in owners:
            check(0x70000000 <= st.st_uid < 0x7fff0000 and st.st_uid == st.st_gid, f"owned by {st.st_uid}:{st.st_gid} on the host")
            check(st.st_mode & 0o4000, "the control: it is set-id")
        equal(owners[2].st_uid - owners[1].st_uid, 65535 - 33, "ids in a row")
        with open(f"/proc/{pid}/status") as f:
            uids = next(line for line in f if line.startswith("Uid:")).split()[1:]
        equal(uids, [str(owners[1].st_uid)] * 4, "who it is on the host")
        with open(f"/proc/{pid}/mountinfo") as f:
            lines = [line.split() for line in f]
        check(len(lines) > 5, "no mounts")
        equal([x[4] for x in lines if "nosuid" not in x[5].split(",")], [], "mounts that honour set-id bits")
        out, _ = p.communicate(b"\n", timeout=20)
        equal(out, b"killed\n", "root's power over another's process")
    finally:
        p.kill()
        p.wait()


@test("the workspace has one owner whoever is root, and a set-id file in it is held back", modes=("root",))
def _(m):
    w = Place(m)
    check(w.inside("chown 33 keep").status != 0, "a file of the workspace was given away")
    for t in w.list():
        w.cmd("rollback", t["id"])
    r = w.inside("touch plain setid && chmod 4755 setid && tar cf t.tar --owner=33 plain && mkdir d && tar xf t.tar -C d && rm t.tar")
    worked(r)
    t = w.list()[-1]["id"]
    up = [os.path.dirname(p) for p in subprocess.run(["find", w.top, "-name", "setid"], capture_output=True, text=True).stdout.split()]
    check(up, "the change set was not found")
    for p in up:
        check(os.stat(os.path.dirname(p)).st_mode & 0o077 == 0, f"{p} can be reached by others")
    r = w.cmd("commit", t)
    holds(r.out + r.err, "setid", "what is told")
    check(w.there("plain") and w.there("d/plain"), "the rest was not committed")
    check(not w.there("setid") or not os.stat(w.path("setid")).st_mode & 0o6000, "a set-id file came to the workspace")
    w.cmd("rollback", t)


@test("what the host keeps from everybody is not there, though root could read it", modes=("root",))
def _(m):
    w = Place(m)
    closed = [p for p in ("/etc/shadow-", "/etc/gshadow-", "/etc/security/opasswd", "/etc/sudoers") if os.path.exists(p) and not os.stat(p).st_mode & 4]
    if not closed:
        note("nothing in /etc is closed: not tried")
    for p in closed:
        check(w.inside(f"! test -e {p}").status == 0, f"{p} is there")
    worked(w.inside("test -r /etc/passwd && test -r /etc/group && test -r /etc/profile"))
    with open("/etc/passwd") as f:
        people = [line.split(":")[0] for line in f if 1000 <= int(line.split(":")[2]) < 65534]
    names = [line.split(":")[0] for line in w.inside("cat /etc/passwd").out.splitlines()]
    check("root" in names and "agent" in names and "daemon" in names, f"accounts: {names}")
    equal([p for p in people if p in names and p != "agent"], [], "people's accounts")


FORKS = """import os, time
made = 0
try:
    for i in range(200):
        if not os.fork():
            os.setresuid(i % 50, i % 50, i % 50)
            time.sleep(3)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
"""


@test("whichever of its ids they run as, processes are counted together, control group or not", modes=("root",))
def _(m):
    w = Place(m, "limits:\n  pids: 40\n")
    w.put("forks.py", FORKS)
    within = int(w.inside("python3 forks.py").out)
    check(20 < within <= 40, f"{within} processes where 40 are allowed")
    # A mount namespace of its own, in which no control group is to be found.
    r = m.call(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"", "sh", CAISSON, "run", "--profile", "./scratch.yaml", "-w", w.dir,
                "--commit", "never", *sh("python3 forks.py")], **w.env({}))
    check(20 < int(r.out) <= 40, f"{r} where 40 are allowed")



if __name__ == "__main__":
    test.main()
