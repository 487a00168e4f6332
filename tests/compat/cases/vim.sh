# SPDX-License-Identifier: Apache-2.0
# title: vim edits a file
# needs: vim
export TERM=xterm
printf 'one\ntwo\n' > f
vim -Nu NONE -es -c '%s/two/2/' -c 'normal Gothree' -c 'call writefile([system("echo shell")], "s")' -c 'wq' f; echo $?
cat f; head -1 s
