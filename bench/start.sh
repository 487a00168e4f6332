#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# start.sh - how long `caisson run -- true` takes, beside the peers.
#
#     bench/start.sh [--rounds N] [--json] [--check]
#
# All commands are interleaved in one run of build/bench/start (see start.c).
# Prints one table as root and one as an unprivileged user (only the latter when
# not root).  --check exits 1 when a documented ratio does not hold.
#
# Every peer is started in the fastest way that still gives what it is used for:
# all namespaces, read-only system, fresh /proc, /dev, /tmp.  crun refuses hybrid
# control groups, so its runner lives where the unified tree is unmounted.
set -u
. "$(dirname "$0")/lib.sh"

# Nobody should pay for a search through somebody's long PATH.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin
rounds=300 json='' check=''
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2; shift ;;
	--quick) rounds=120 ;;
	--json) json=--json ;;
	--check) check=1 ;;
	*) bench_die "usage: start.sh [--rounds N] [--quick] [--json] [--check]" ;;
	esac
	shift
done
bench_build
bench_tmp

bwrap_args='--unshare-all --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp true'
# Everything but the control groups and the layer over the workspace.
lean_args='run --quiet --off limit-memory,limit-pids,limit-cpu --workspace-mode none -- true'

# lines_for WHO KEYS: the commands to measure; KEYS go to every one of them.
lines_for()
{
	local who=$1 keys=$2 t=$BENCH_TMP b=$BENCH_TMP/bin slow=$((rounds / 15 + 1)) medium=$((rounds / 60 + 1))
	local nocg=--cgroup-manager=disabled drop=drop=/sys/fs/cgroup/unified passwd=bind=$t/passwd:/etc/passwd

	# Only root can give a peer what it lacks here.
	[ "$(id -u)" = 0 ] || drop='' passwd=''

	echo "'exec, no C library' $keys -- $b/bare"
	echo "'exec, static C library' $keys -- $b/static"
	echo "'exec, dynamic (true)' $keys -- true"
	echo "bwrap $keys -- bwrap $bwrap_args"
	echo "crun $keys $drop -- crun $nocg --root $t/$who/crun run -b $t/$who/bundle bench-crun-$$"
	[ "$who" = user ] ||
		echo "'crun, cgroups' $keys $drop -- crun --root $t/$who/crun run -b $t/$who/bundle bench-crun-cg-$$"
	echo "runc $keys every=$medium -- runc --root $t/$who/runc run -b $t/$who/bundle bench-runc-$$"
	if [ "$who" = user ]; then
		echo "firejail $keys every=$medium $passwd -- firejail --quiet --noprofile true"
		echo "runsc $keys every=$slow -- runsc --rootless --root $t/$who/runsc --network=none --platform=ptrace do true"
	else
		echo "firejail $keys every=$medium -- firejail --quiet --noprofile true"
		echo "runsc $keys every=$slow -- runsc --root $t/$who/runsc --network=none --platform=ptrace run -bundle $t/$who/bundle bench-runsc-$$"
	fi
	echo "caisson $keys -- $b/caisson run --quiet -- true"
	echo "'caisson, lean' $keys -- $b/caisson-test $lean_args"
	echo "'caisson, 5,000 files in the workspace' $keys -- $b/caisson run --quiet -w $t/full -- true"
}

prepare()
{
	local who=$1 d=$BENCH_TMP/$1
	shift
	mkdir -p "$d/ws" "$d/home" "$d/crun" "$d/runc" "$d/runsc"
	/usr/bin/env python3 "$BENCH_TOP/bench/bundle.py" "$d/bundle" "$@"
}

# measure WHO KEYS: one table on standard output; the JSON is kept for --check.
measure()
{
	local who=$1 out=$BENCH_TMP/$1.json
	local peers=(--peer bwrap --peer crun)
	[ "$who" = user ] || peers+=(--peer 'crun, cgroups')
	lines_for "$who" "$2" > "$BENCH_TMP/$who.lines"
	if [ -n "$json$check" ]; then
		"$BENCH_BIN/start" --rounds "$rounds" "${peers[@]}" --json --file "$BENCH_TMP/$who.lines" > "$out"
		[ -z "$json" ] || cat "$out"
	else
		"$BENCH_BIN/start" --rounds "$rounds" "${peers[@]}" --file "$BENCH_TMP/$who.lines"
	fi
}

# The documented ratios of the medians.  Like with like: crun with control groups beside all of
# Caisson, crun without them beside Caisson without them (an ordinary user has none here).
judge()
{
	/usr/bin/env python3 - "$@" <<'PY'
import json, os, sys
bad = 0
for path in sys.argv[1:]:
    who = os.path.basename(path).removesuffix(".json")
    rows = {c["name"]: c for c in json.load(open(path))["commands"]}
    crun = "crun" if who == "user" else "crun, cgroups"
    for name, peer, most in (("caisson", "bwrap", 0.7), ("caisson", crun, 0.5), ("caisson, lean", "bwrap", 0.6), ("caisson, lean", "crun", 0.5)):
        row = rows[name]
        ratio = row.get("ratio", {}).get(peer, {})
        if not ratio:
            print(f"not measured: {who}: {name} to {peer}: {row['error'] or rows[peer]['error']}")
            bad += 1
            continue
        holds = ratio["p50"] <= most
        bad += not holds
        print(f"{'holds' if holds else 'FAILS'}: {who}: {name} is {ratio['p50']:.2f} of {peer} "
              f"(best runs: {ratio['min']:.2f}), at most {most}")
sys.exit(bad > 0)
PY
}

# A workspace with something in it, which is searched for secrets before a start.
mkdir -p "$BENCH_TMP"/full/dir{1..50}
for d in "$BENCH_TMP"/full/dir*; do (cd "$d" && touch file{1..100}); done

me=$(id -u)
judged=()
if [ "$me" = 0 ]; then
	prepare root
	[ -n "$json$check" ] || printf '\nAs root:\n\n'
	measure root "cwd=$BENCH_TMP/root/ws env=HOME=$BENCH_TMP/root/home"
	judged+=("$BENCH_TMP/root.json")
	prepare user --rootless $BENCH_UID
	{ cat /etc/passwd; echo "bench:x:$BENCH_UID:$BENCH_UID::$BENCH_TMP/user/home:/bin/sh"; } > "$BENCH_TMP/passwd"
	chown -R $BENCH_UID:$BENCH_UID "$BENCH_TMP/user"
	keys="uid=$BENCH_UID"
else
	prepare user --rootless "$me"
	keys=
fi
[ -n "$json$check" ] || printf '\nAs an unprivileged user:\n\n'
measure user "$keys cwd=$BENCH_TMP/user/ws env=HOME=$BENCH_TMP/user/home env=XDG_RUNTIME_DIR=$BENCH_TMP/user"
judged+=("$BENCH_TMP/user.json")
[ -z "$check" ] || judge "${judged[@]}"
