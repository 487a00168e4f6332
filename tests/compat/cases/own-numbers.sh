# SPDX-License-Identifier: Apache-2.0
# title: ps, free, uptime, nproc, df and top show the sandbox's own numbers
# needs: ps free uptime top
# expect: inside
# flags: --memory 256M --cpus 1 --pids 64
fail() { echo "FAIL: $*"; bad=1; }
ps aux > ps.out || fail "ps aux: $?"; cat ps.out
[ "$(wc -l < ps.out)" -le 6 ] && [ "$(wc -l < ps.out)" -ge 2 ] || fail 'ps shows more than the sandbox'
grep -q 'case.sh' ps.out || fail 'ps does not show this script'
ps -ef > /dev/null || fail 'ps -ef'
free -m > free.out || fail "free: $?"; cat free.out
mem=$(awk '/^Mem:/ {print $2}' free.out); [ "$mem" -gt 200 ] && [ "$mem" -le 256 ] || fail "free says $mem MiB of 256"
uptime > up.out || fail "uptime: $?"; cat up.out
up=$(cut -d. -f1 /proc/uptime); [ "$up" -lt 60 ] || [ "$HOST_UPTIME" -lt 60 ] || fail "uptime is $up s"
sleep 1.1; [ "$(cut -d. -f1 /proc/uptime)" -gt "$up" ] || fail 'uptime stands still'
ps -o etimes= -p $$; [ "$(ps -o etimes= -p $$)" -lt 60 ] || fail "ps says this script has run for $(ps -o etime= -p $$)"
started=$(date -d "$(ps -o lstart= -p $$)" +%s) && [ $(($(date +%s) - started)) -lt 60 ] && [ $(($(date +%s) - started)) -gt -5 ] || fail "ps says it began on $(ps -o lstart= -p $$), now is $(date)"
echo "nproc $(nproc), cpuinfo $(grep -c ^processor /proc/cpuinfo)"
[ "$(grep -c ^processor /proc/cpuinfo)" = 1 ] || fail 'cpuinfo shows more than 1 CPU'
[ "$(nproc)" = 1 ] || fail "nproc says $(nproc)"
df -h . /tmp / > df.out || fail "df: $?"; cat df.out
df > /dev/null || fail "df without a path: $?"
TERM=xterm top -bn1 > top.out 2> top.err || fail "top: $? $(cat top.err)"; head -5 top.out
grep -q 'Tasks:' top.out || fail 'top shows no tasks'
vmstat > vm.out 2>&1 || fail "vmstat: $(cat vm.out)"
cat /proc/loadavg > /dev/null || fail loadavg
mount > /dev/null 2>&1 || cat /proc/mounts > /dev/null || fail 'no /proc/mounts'
python3 -c 'import os; print(os.cpu_count(), os.getloadavg(), os.sysconf("SC_PHYS_PAGES") > 0)' || fail python
[ -z "$bad" ]
