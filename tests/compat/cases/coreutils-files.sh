# SPDX-License-Identifier: Apache-2.0
# title: coreutils handle files, links, modes and times
# needs: bash
mkdir -p a/b/c; echo hello > a/f; cp a/f a/g; cp -a a copy; mv a/g a/b/h; ln a/f a/hard; ln -s f a/soft
ls -lRn --time-style=+ a | sed -E 's/^(.{10}) +([0-9]+) [0-9]+ [0-9]+ +([0-9]+)/\1 \2 \3/;s/^(d.{9} [0-9]+) [0-9]+/\1/;/^total/d'
stat -c '%n %F %a %h %s' a/f a/soft a/b/h
readlink a/soft; realpath --relative-to=. a/b/../soft
chmod 640 a/f; chmod u+x,g-r a/b/h; stat -c '%a %n' a/f a/b/h
touch -d '2001-02-03 04:05:06 UTC' a/f; TZ=UTC stat -c '%y' a/f
touch -hd '2002-01-01 UTC' a/soft; TZ=UTC stat -c '%y' a/soft
install -m 755 a/f inst; install -d -m 700 dd/ee; stat -c '%a %n' inst dd/ee
truncate -s 1M sparse; fallocate -l 64K alloc && stat -c '%s' sparse alloc
dd if=/dev/zero of=dd.out bs=4k count=8 conv=fsync 2>/dev/null; cksum dd.out
cp --sparse=always dd.out dd.sp; cmp dd.out dd.sp && echo same
mv -n inst a/f; mv -b copy/f a/f; ls a; rm -r copy dd; rmdir a/b/c; ls
mktemp -p . tmp.XXXXXX | sed -E 's/[^.]{6}$/XXXXXX/'
mktemp | grep -c '^/tmp/'
mkdir ro; chmod 555 ro; [ -w . ] && echo writable
split -n 3 dd.out part.; ls part.*; cat part.* | cmp - dd.out && echo whole
shred -u -n 1 part.aa && ls part.*
sync -f a/f && echo synced
test -d a -a -f a/f -a -L a/soft -a ! -e nothing && echo tested
find . -type l -printf '%P %l\n' | sort; find . -newer a/f -name 'dd*' | sort
du -s --apparent-size sparse | cut -f1
pathchk -p a/f && basename a/f .x && dirname a/b/h; namei a/b/h
