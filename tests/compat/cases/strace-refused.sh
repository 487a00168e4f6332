# SPDX-License-Identifier: Apache-2.0
# title: strace is refused politely
# needs: strace
# expect: inside
strace -o /dev/null true 2> err; code=$?
cat err; [ $code -ne 0 ] && [ $code -lt 128 ] || { echo "strace ended with $code"; exit 1; }
grep -qi 'not permitted' err || { echo "no word of it being not permitted"; exit 1; }
echo 'still alive'
