# SPDX-License-Identifier: Apache-2.0
# title: coreutils and friends work on text
# needs: bash awk sed grep
seq 1000 | sort -R --random-source=/dev/zero | sort -n | head -3
seq 100000 | sort -r -S 1M --parallel=2 | tail -1
printf 'b 2\na 1\nc 3\n' | sort | join - <(printf 'a x\nc z\n')
printf 'a\na\nb\n' | uniq -c | tr -s ' '; seq 10 | tac | paste - - ; seq 5 | shuf --random-source=/dev/zero | sort | wc
echo abcdef | cut -c2-4; echo a:b:c | cut -d: -f2; seq 12 | pr -3 -t -l4; seq 3 | nl; echo -e 'a\tb' | expand -t4
echo hello | md5sum; echo hello | sha256sum; echo hello | b2sum; echo hello | base64; echo aGVsbG8K | base64 -d
echo hello | od -An -tx1; echo 'long line of text here' | fold -w 8; echo 'x  y' | tr -s ' ' '\n'
seq 20 | split -l 7 - s.; wc -l s.*; seq 5 | comm -12 - <(seq 3 8); factor 1234567890; expr 6 \* 7
numfmt --to=iec 1048576; printf '%05.2f|%-5s|%x\n' 3.14159 ab 255; date -u -d @1000000000 +%FT%TZ; seq -s, 1 2 9
echo 'foo bar' | sed -E 's/(o+) (b)/\2\1/'; seq 10 | awk '{s += $1} END {print s, NR}'; seq 30 | grep -cE '^[12]'
printf 'x\n%.0s' {1..5} | xargs -n2 -P2 echo | sort; echo a b c | xargs -I{} echo '[{}]'; seq 5 | tee t | tail -n +4
env -i A=1 env; nice -n 5 nice; stdbuf -oL echo line; yes | head -2; tty; arch >/dev/null && echo arch
printf '%s\n' ä ö z a | sort | tr '\n' ' '; echo; echo -n äö | wc -m; ptx <<< 'one two' | wc -l; tsort <<< 'a b b c'
