# SPDX-License-Identifier: Apache-2.0
# title: inside there is a user agent, a home, and a host name of our own
# needs: bash
# expect: inside
fail() { echo "FAIL: $*"; bad=1; }
getent passwd agent || fail 'no passwd entry agent'
id; [ "$(id -un)" = agent ] || fail "user is $(id -un)"
[ "$(id -u)" != 0 ] || fail 'user id is 0'
[ -n "$(id -gn)" ] || fail 'group has no name'
[ "$(whoami)" = agent ] || fail whoami
hostname; [ "$(hostname)" != "$HOST_NAME" ] || fail 'the host name is the host'"'"'s'
[ "$(uname -n)" = "$(hostname)" ] || fail 'uname -n and hostname differ'
getent hosts "$(hostname)" > /dev/null || fail 'own host name does not resolve'
[ "$(getent passwd agent | cut -d: -f6)" = "$HOME" ] || fail "HOME is $HOME"
[ -d "$HOME" ] && [ -w "$HOME" ] && touch "$HOME/x" || fail 'HOME cannot be written'
[ "$(cd && pwd)" = "$HOME" ] || fail 'cd'
[ -w /tmp ] && touch /tmp/x || fail '/tmp cannot be written'
[ "$USER" = agent ] || fail "USER is '$USER'"
[ "$LOGNAME" = agent ] || fail "LOGNAME is '$LOGNAME'"
[ "$(stat -c %U .)" = agent ] || fail "the workspace belongs to $(stat -c %U .)"
touch /usr/x 2>/dev/null && fail '/usr can be written'
[ -r /etc/os-release ] || fail 'no /etc/os-release'
[ -r /etc/hosts ] || fail 'no /etc/hosts'
[ -r /etc/nsswitch.conf ] || fail 'no /etc/nsswitch.conf'
# Programs that ask who they are.
[ ! -x /usr/bin/ssh-keygen ] || ssh-keygen -q -t ed25519 -N '' -f key < /dev/null || fail ssh-keygen
[ ! -x /usr/bin/node ] || [ "$(node -p 'os.userInfo().username')" = agent ] || fail 'node: os.userInfo()'
[ ! -x /usr/bin/python3 ] || [ "$(python3 -c 'import getpass; print(getpass.getuser())')" = agent ] || fail 'python: getuser()'
[ -z "$bad" ]
