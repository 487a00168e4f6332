#!/bin/sh
# test_doctor_verify.sh - caisson doctor and caisson verify, as root and as an
# ordinary user; and verify notices when a protection is missing.
#
# TAP, then `N passed, M failed`.  Works on copies of the binaries, so that a
# build beside it does not change what is being tested.
set -u
cd "$(dirname "$0")/../.." || exit 1
release=${CAISSON:-build/caisson} test=${CAISSON_TEST:-build/test/caisson}
uid=61239
tmp=$(mktemp -d /tmp/caisson-dv.XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
chmod 755 "$tmp"
cp "$release" "$tmp/caisson" && cp "$test" "$tmp/caisson-test" && chmod 755 "$tmp/caisson" "$tmp/caisson-test" || exit 1
mkdir "$tmp/home" "$tmp/home/state"
n=0 passed=0 failed=0 skipped=0

ok() { # RESULT NAME: RESULT is 0 when it is as it should be
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok $n - $2"
	else
		failed=$((failed + 1))
		echo "not ok $n - $2"
		sed 's/^/# /' "$tmp/out" "$tmp/err" 2>/dev/null | head -60
	fi
}

skip() { # NAME WHY
	n=$((n + 1))
	if [ "${CS_TESTS_MUST_RUN:-}" = 1 ]; then
		failed=$((failed + 1))
		echo "not ok $n - $1 (skipped: $2)"
	else
		skipped=$((skipped + 1))
		echo "ok $n - $1 # SKIP $2"
	fi
}

as() { # root|user COMMAND...: output in $tmp/out and $tmp/err
	who=$1
	shift
	if [ "$who" = user ] && [ "$(id -u)" -eq 0 ]; then
		set -- setpriv --reuid $uid --regid $uid --clear-groups -- "$@"
	fi
	(cd / && exec env -u CAISSON_STATE HOME="$tmp/home" XDG_STATE_HOME="$tmp/home/state" timeout 60 "$@") >"$tmp/out" 2>"$tmp/err" </dev/null
}

json() { # EXPRESSION over d, the parsed output: true?
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$tmp/out" "$1" 2>>"$tmp/err"
}

left() { # anything of verify's or doctor's still there?
	find /tmp "$tmp/home" -maxdepth 1 \( -name 'caisson-verify-*' -o -name '.caisson-verify-*' -o -name 'caisson-doctor-*' \) 2>/dev/null
	find /sys/fs/cgroup -maxdepth 6 -name 'caisson-probe-*' 2>/dev/null
	for p in /proc/[0-9]*; do # processes that run our copies
		case $(readlink "$p/exe" 2>/dev/null) in "$tmp"/*) echo "${p#/proc/}" ;; esac
	done
}

check_doctor() {
	as "$1" "$tmp/caisson" doctor
	ok $? "doctor exits 0 for $1"
	grep -q '^[0-9]* of [0-9]* protections active' "$tmp/out"
	ok $? "doctor's table has a last line for $1"
	! grep -q "$(printf '\033')" "$tmp/out"
	ok $? "doctor writes no colours into a file for $1"
	as "$1" "$tmp/caisson" doctor --json
	ok $? "doctor --json exits 0 for $1"
	json 'd["starts"] and d["complete"] and d["kernel"] and d["mode"]'
	ok $? "doctor --json says that sandboxes start for $1"
	json 'len(d["protections"]) >= 26 and all(p["state"] in ("on", "partly", "off") and p["why"] for p in d["protections"])'
	ok $? "doctor --json gives every protection a state and a reason for $1"
	json 'all(set(p) == {"name", "ok", "detail", "fix"} for p in d["probes"]) and len(d["probes"]) > 25'
	ok $? "doctor --json gives every probe a detail for $1"
	json 'all(p["fix"] for p in d["protections"] if p["state"] != "on")'
	ok $? "doctor --json says for all that is not on how to get it, for $1"
}

check_verify() {
	as "$1" "$tmp/caisson" verify
	ok $? "every guarantee holds for $1"
	tail -n 1 "$tmp/out" | grep -q '^\([0-9]*\) of \1 guarantees hold on this host, right now$'
	ok $? "verify's last line says so for $1"
	record=$(sed -n 's/^caisson: recorded in //p' "$tmp/err")
	[ -s "$record" ]
	ok $? "verify names its record for $1"
	python3 - "$record" 2>>"$tmp/err" <<'PY'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
last = [l for l in lines if l["verify"] == lines[-1]["verify"]]
runs = {l["run"]: l for l in last if "run" in l}
assert runs["success"]["reason"] == "exited" and runs["refused"]["reason"] == "refused"
assert runs["success"]["id"].startswith("s-") and runs["refused"]["error"]
assert sum("check" in l for l in last) >= 28 and all(l["verdict"] == "held" for l in last if "check" in l)
PY
	ok $? "the record holds every check, one run that succeeded and one that was refused, for $1"
	as "$1" "$tmp/caisson" verify --quick --json
	ok $? "verify --quick --json exits 0 for $1"
	json 'len(d) >= 20 and all(c["held"] and c["how"] and c["runs"] for c in d)'
	ok $? "verify --json is an array of held guarantees for $1"
}

# PROTECTIONS GUARANTEES: without those, these guarantees are named as broken.
noticed() {
	as "$1" "$tmp/caisson-test" verify --off "$2" --quick --json
	[ $? -eq 1 ] && json "set('$3'.split(',')) <= {c['name'] for c in d if c['verdict'] == 'BROKEN'}"
	ok $? "without $2, verify says that $3 is broken, for $1"
}

everybody() {
	check_doctor "$1"
	check_verify "$1"
	for row in netns:network pidns:processes,sibling,limit-files ipcns:ipc seccomp:seccomp,ptrace,setuid caps:caps fds:descriptors \
		procfs:proc nesting,seccomp:userns nnp,seccomp,landlock:nnp limit-disk:limit-disk,limit-inodes limit-pids:limit-pids; do
		noticed "$1" "${row%:*}" "${row#*:}"
	done
	as "$1" "$tmp/caisson-test" verify --off netns --quick
	[ $? -eq 1 ] && grep -q '^the network is closed  *BROKEN' "$tmp/out" && tail -n 1 "$tmp/out" | grep -q '1 DO NOT$'
	ok $? "the table names the broken guarantee for $1"
	as "$1" "$tmp/caisson" verify --off netns
	[ $? -eq 125 ]
	ok $? "a release build has no --off for $1"
	! as "$1" timeout -s INT 0.3 "$tmp/caisson" verify
	ok $? "an interrupted verify does not say that all is well, for $1"
	record="$tmp/home/state/caisson/verify.jsonl"
	# shellcheck disable=SC2016
	as "$1" sh -c 'exec "$0" verify --quick >&- 2>&- <&-' "$tmp/caisson"
	python3 -c 'import json, sys; [json.loads(l) for l in open(sys.argv[1])]' "$record" 2>"$tmp/err"
	ok $? "with closed descriptors the record stays a record, for $1"
	as "$1" env CAISSON_STATE="$tmp/home/elsewhere" "$tmp/caisson" verify --quick
	[ -s "$tmp/home/elsewhere/verify.jsonl" ]
	ok $? "CAISSON_STATE says where the record is, for $1"
	rm -rf "$tmp/home/elsewhere"
	as "$1" "$tmp/caisson" doctor --jsn
	[ $? -eq 125 ] && grep -q 'did you mean --json' "$tmp/err"
	ok $? "a mistyped option is named for $1"
	left >"$tmp/out"
	[ ! -s "$tmp/out" ]
	ok $? "nothing is left of all that, for $1"
}

if [ "$(id -u)" -eq 0 ]; then
	everybody root
	noticed root userns identity
	rm -r "$tmp/home/state/caisson"
	chown $uid:$uid "$tmp/home" "$tmp/home/state"
	everybody user
else
	skip "as root" "not run by root"
	everybody user
fi

as user "$tmp/caisson" doctor --json && json 'd["starts"]' && as user unshare -Ur sh -c \
	"echo 0 >/proc/sys/user/max_user_namespaces && exec $tmp/caisson doctor --json"
[ $? -eq 1 ] && json 'not d["starts"] and any(p["name"] == "user namespaces" and not p["ok"] and "sysctl -w user.max_user_namespaces" in p["fix"] for p in d["probes"])'
ok $? "where user namespaces are used up, doctor names the setting and the command"

echo "1..$n"
[ $skipped -eq 0 ] && echo "$passed passed, $failed failed" || echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
