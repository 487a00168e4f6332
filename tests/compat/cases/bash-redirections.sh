# SPDX-License-Identifier: Apache-2.0
# title: bash substitutes processes and redirects everywhere
# needs: bash
diff <(seq 5) <(seq 2 6)
tee >(sort -r > rev) >(wc -l > count) < <(seq 9) > /dev/null; sleep 0.3; cat rev count
exec 7<> file; echo "through 7" >&7; exec 7>&-; cat file
cat <<< "here string"
cat <<'END' | tr a-z A-Z
here document
END
coproc { while read -r l; do echo "<$l>"; done; }
echo one >&"${COPROC[1]}"; read -r a <&"${COPROC[0]}"; echo "$a"
eval "exec ${COPROC[1]}>&-"; wait
mapfile -t m < <(printf '%s\n' x y z); echo "${#m[@]} ${m[2]}"
set -o pipefail; false | true; echo "pipefail $?"
echo err >&2 2>/dev/null; { echo a; echo b >&2; } 2>&1 | sort
echo in | cat /dev/stdin - < /dev/null; echo fd | cat /dev/fd/0
echo out > /dev/stdout; echo gone > /dev/null
mkfifo p; (echo through a fifo > p) & cat p; wait
: > empty; [ -s empty ] || echo empty
(ulimit -f 1; yes | head -c 4096 > big) 2>/dev/null; stat -c %s big
printf '%s\n' {a..c}{1..2} | paste -sd,
echo $((2**40)) $((0x1f)) "${BASH_VERSINFO[0]}"
shopt -s globstar; mkdir -p d/e; touch d/e/f; printf '%s ' **; echo
read -r -t 0.1 x < <(sleep 1); echo "read timed out: $(($? > 128))"
