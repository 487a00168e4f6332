# SPDX-License-Identifier: Apache-2.0
# title: ulimit works and shows the limits that were asked for
# needs: bash
# expect: inside
# flags: --files 300
fail() { echo "FAIL: $*"; bad=1; }
ulimit -a || fail 'ulimit -a'
[ "$(ulimit -n)" = 300 ] || fail "open files: $(ulimit -n)"
[ "$(ulimit -c)" = 0 ] || fail "core: $(ulimit -c)"
(ulimit -n 50 && [ "$(ulimit -n)" = 50 ]) || fail 'cannot lower a limit'
(ulimit -Hn 400) 2>/dev/null && fail 'raised a limit'
(for i in $(seq 10 320); do eval "exec $i</dev/null" || exit 1; done) 2>/dev/null && fail 'more than 300 files open'
[ -z "$bad" ]
