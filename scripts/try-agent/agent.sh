#!/bin/sh
# agent.sh HOME PORT TOKEN COUNT - what agent.py does, for hosts without python3.
# shellcheck disable=SC2016,SC2317 # scripts for other shells; functions that attempt() calls
# It uses what is there (bash, util-linux); what cannot be tried prints no line.
home=$1 port=$2 token=$3 count=$4
case $home in */caisson-try.*/home) ;; *) echo "agent: HOME is not a decoy" >&2; exit 1 ;; esac
tab=$(printf '\t')

attempt() { # NAME COMMAND...: its last line of output is what happened
	name=$1 start=$(date +%s%N)
	shift
	out=$("$@" 2>&1) && state=got || state=stopped
	end=$(date +%s%N)
	text=$(printf '%s\n' "${out:-done}" | tail -n 1 | sed 's/.*: //')
	printf '%s\n' "$name$tab$(awk "BEGIN { printf \"%.2f\", ($end - $start) / 1e6 }")$tab$state$tab$text"
}
have() { command -v "$1" >/dev/null 2>&1; }

# A shell that cannot fork gives up, so the bomb is a shell of its own.  Its processes carry the
# token, so that they can be counted from outside.
bomb() {
	ln -sf "$(command -v sleep)" "sleep.$token"
	# shellcheck disable=SC2016 # for that shell, not for this one
	sh -c 'i=0; while [ $i -lt $1 ]; do "./sleep.$2" 2 & i=$((i + 1)); echo $i >bomb.count; done' bomb "$count" "$token"
	sleep 3
	read -r started <bomb.count
	rm -f bomb.count "sleep.$token"
	[ "$started" -lt "$count" ] || { echo "all $count started"; return 0; }
	echo "$started started, then no more"
	return 1
}
delete() {
	for f in "$home/Documents" "$home/Pictures"; do
		ls "$f" >/dev/null || return 1
		rm -r "$f" || return 1
	done
	echo "deleted Documents, Pictures"
}
append() { echo "# $token" >>"$home/.bashrc" && echo written; }
daemon() { setsid sh -c 'sleep 1; echo "still here" >"daemon.$1"' daemon "$token" >/dev/null 2>&1 </dev/null & echo started; }
tcp() { timeout 1 bash -c "exec 3<>/dev/tcp/$1/$2 && echo $token >&3" 2>&1; case $? in 0) echo connected ;; 124) echo "no answer"; return 1 ;; *) return 1 ;; esac; }
work() {
	sh test.sh >/dev/null 2>&1 && return 1
	sed 's/wc -c/wc -w/' count.sh >count.new && mv count.new count.sh
	sh test.sh >/dev/null 2>&1 || { echo "the test still fails"; return 1; }
	echo "count.sh counted bytes, not words. Repaired. text.txt has $(sh count.sh text.txt) words." >REPORT.md
	echo "repaired count.sh"
}

attempt key cat "$home/.ssh/id_ed25519"
attempt env cat .env
if have bash; then
	# Not without the sandbox: nothing is sent beyond this machine.
	[ -n "${TRY_STAY_HERE:-}" ] || attempt internet tcp 192.0.2.1 443
	[ "$port" -eq 0 ] || attempt loopback tcp 127.0.0.1 "$port"
fi
attempt bomb bomb
attempt write append
if have unshare; then
	attempt userns unshare --user true
	attempt mount unshare --user --map-root-user --mount mount -t tmpfs none .
fi
have strace && attempt ptrace strace -o /dev/null true
attempt delete delete
attempt work work
have setsid && attempt outlive daemon
exit 0
