# SPDX-License-Identifier: Apache-2.0
# title: tmux runs a shell in a detached session
# needs: tmux
export TERM=xterm
tmux -S "$PWD/s" -f /dev/null new-session -d -x 80 -y 24 -s a 'sh' || exit 1
tmux -S "$PWD/s" send-keys -t a 'echo typed $((6 * 7)) > out; tty > tty; stty size > size' Enter
for i in $(seq 50); do [ -s size ] && break; sleep 0.1; done
cat out size; sed 's/[0-9]*$/N/' tty; tmux -S "$PWD/s" list-sessions -F '#S #{session_windows}'; tmux -S "$PWD/s" kill-server
