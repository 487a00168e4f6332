# SPDX-License-Identifier: Apache-2.0
# title: python3 makes a virtual environment and pip installs from a directory
# needs: python3
# timeout: 90
set -e
python3 - <<'PY'
import zipfile, os
os.mkdir("wheels")
def wheel(name, code, needs=""):
    info = f"{name}-1.0.dist-info"
    files = {f"{name}/__init__.py": code, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{info}/entry_points.txt": f"[console_scripts]\n{name}-cmd = {name}:main\n"}
    files[f"{info}/RECORD"] = "".join(f"{f},,\n" for f in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(f"wheels/{name}-1.0-py3-none-any.whl", "w") as z:
        for n, t in files.items():
            z.writestr(n, t)
wheel("lower", "def word(): return 'lower'\ndef main(): print('cmd')\n")
wheel("upper", "import lower\ndef main(): print(lower.word().upper())\n", "Requires-Dist: lower\n")
PY
python3 -m venv env
. env/bin/activate
pip --disable-pip-version-check --no-cache-dir install -q --no-index --find-links wheels upper
pip --disable-pip-version-check list --format=freeze 2>/dev/null | grep -E '^(upper|lower)=='
upper-cmd
python -c 'import sys, upper; upper.main(); print(sys.prefix != sys.base_prefix, sys.prefix)'
