# SPDX-License-Identifier: Apache-2.0
# title: bash controls jobs, traps and signals
# needs: bash
# status: 3
set -m
sleep 30 & sleep 31 &
jobs | tr -s ' '
kill %1; wait %1; echo "first: $?"
kill -STOP %2; sleep 0.1; jobs %2 | tr -s ' '
kill -CONT %2; kill %2; wait %2; echo "second: $?"
(sleep 0.1; exit 7) & wait $!; echo "third: $?"
sleep 0.05 & fg %% >/dev/null; echo "fourth: $?"
trap 'echo caught USR1' USR1; kill -USR1 $$
trap 'echo caught CHLD' CHLD; /bin/true; trap - CHLD
trap 'echo at the end' EXIT
timeout 0.2 sleep 5; echo "timeout: $?"
timeout -s KILL 0.2 sleep 5; echo "killed: $?"
bash -c 'kill -TERM $$'; echo "term: $?"
bash -c 'kill -SEGV $$' 2>/dev/null; echo "segv: $?"
nohup sh -c 'echo nohup' 2>/dev/null
setsid sh -c 'echo own session'
pids=; for i in $(seq 20); do (exit $i) & pids+=" $!"; done; n=0; for p in $pids; do wait "$p"; n=$((n + $?)); done; echo "sum $n"
exit 3
