# SPDX-License-Identifier: Apache-2.0
# title: openssl, bc, diff, patch and other small tools
# needs: bash
have() { [ -n "$(type -P "$1")" ]; }
have openssl && { openssl rand -hex 8 | wc -c; echo x | openssl dgst -sha256; openssl genpkey -algorithm ed25519 2>/dev/null | head -1; }
have bc && echo '2^64' | bc; have patch && { seq 5 > a; seq 6 > b; diff -u a b | patch -s a && cmp a b && echo patched; }
have file && file -b case.sh; have xxd && echo hi | xxd -p; have rsync && { mkdir r; echo 1 > r/1; rsync -a r/ s/ && ls s; }
have flock && flock lock echo locked; have column && printf 'a b\nc d\n' | column -t; have rev && echo abc | rev
have lscpu && lscpu > /dev/null 2>&1; have getconf && getconf PAGE_SIZE; have m4 && echo 'define(x,5)x' | m4; have jq && echo '{"a":[1,2]}' | jq -c .a
have taskset && taskset -c 0 echo pinned; have ionice && ionice -c3 echo idle; have chrt && chrt -b 0 echo batch; have prlimit && prlimit -n >/dev/null && echo prlimit
have less && echo text | less -F; have uuidgen && uuidgen | wc -c; have hexdump && echo a | hexdump -C | head -1
