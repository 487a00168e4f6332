#!/bin/sh
# The Debian package: builds, installs into an empty root, works, and leaves nothing when removed.
set -u
cd "$(dirname "$0")/../.." || exit 1
n=0 failed=0

ok() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=$((failed + 1)); fi
}
skip_all() {
	echo "1..0 # SKIP $1"
	echo "ok 1 - package # SKIP $1"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}
finish() {
	echo "1..$n"
	echo "$((n - failed)) passed, $failed failed"
	[ "$failed" -eq 0 ]
}

[ "$(id -u)" -eq 0 ] || skip_all "dpkg installs as root only"
command -v dpkg-deb >/dev/null || skip_all "no dpkg here"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
root=$tmp/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
: >"$root/var/lib/dpkg/status"
: >"$root/var/lib/dpkg/available"
# Slim images tell dpkg to leave documents out; here they are what is tested.
pkg() { dpkg --root="$root" --log="$tmp/dpkg.log" --force-depends --force-script-chrootless --path-include='/usr/share/*' "$@"; }
what_is_there() { (cd "$root" && find . -path ./var/lib/dpkg -prune -o -print | sort); }

make --no-print-directory -s deb >"$tmp/build.log" 2>&1
status=$?
ok $status "the package builds"
sed 's/^/# /' "$tmp/build.log"
[ $status -eq 0 ] || { finish; exit 1; }
deb=$(tail -n 1 "$tmp/build.log")

dpkg-deb -f "$deb" Package Version Architecture Maintainer Description >/dev/null
ok $? "its control file can be read"
! readelf -d build/caisson 2>/dev/null | grep -q NEEDED
ok $? "the sandbox's program needs no library"
dpkg-deb -f "$deb" Depends | grep -q libssl3 && dpkg-deb -f "$deb" Depends | grep -q libnghttp2
ok $? "it depends on the network boundary's libraries"
dpkg-deb --fsys-tarfile "$deb" | tar -tv | awk '$2 != "root/root" || ($1 ~ /^.......w/ || $1 ~ /^........w/) { print; bad = 1 } END { exit bad }'
ok $? "everything in it belongs to root and is writable by nobody else"
dpkg-deb -e "$deb" "$tmp/control" && mkdir "$tmp/files" && dpkg-deb -x "$deb" "$tmp/files" && (cd "$tmp/files" && md5sum --quiet -c "$tmp/control/md5sums")
ok $? "its md5sums are right"
[ "$(wc -l <"$tmp/control/md5sums")" -eq "$(find "$tmp/files" -type f | wc -l)" ]
ok $? "its md5sums name every file"

before=$(what_is_there)
pkg -i "$deb" >"$tmp/install.log" 2>&1
status=$?
ok $status "it installs into an empty root"
[ $status -eq 0 ] || sed 's/^/# /' "$tmp/install.log"

[ "$("$root/usr/bin/caisson" version)" = "caisson $(dpkg-deb -f "$deb" Version)" ]
ok $? "the installed program says the package's version"
"$root/usr/bin/caisson" run -q --workspace-mode none -- true
ok $? "the installed program starts a sandbox"
"$root/usr/bin/caisson" run -q --workspace-mode none --allow probe.example.com:80 --host probe.example.com=127.0.0.1 -- getent hosts probe.example.com >/dev/null
ok $? "the installed program finds its network boundary"
for f in man/man1/caisson.1.gz man/man1/caisson-run.1.gz man/man1/caisson-txn.1.gz man/man1/caisson-session.1.gz man/man1/caisson-net.1.gz \
	man/man5/caisson-profile.5.gz doc/caisson/copyright doc/caisson/changelog.gz \
	doc/caisson/README.md bash-completion/completions/caisson zsh/vendor-completions/_caisson \
	fish/vendor_completions.d/caisson.fish; do
	[ -s "$root/usr/share/$f" ]
	ok $? "/usr/share/$f is there"
done
zcat "$root/usr/share/doc/caisson/changelog.gz" | head -n 1 | grep -q "^caisson ($(dpkg-deb -f "$deb" Version)) "
ok $? "its changelog begins with this version"
if command -v groff >/dev/null; then
	for page in "$root"/usr/share/man/man?/*; do
		[ -z "$(zcat "$page" | groff -man -Tutf8 -ww 2>&1 >/dev/null)" ]
		ok $? "$(basename "$page" .gz) formats without a warning"
	done
fi
bash -n "$root/usr/share/bash-completion/completions/caisson"
ok $? "the bash completion parses"
if command -v lintian >/dev/null; then
	lintian --fail-on error "$deb" >"$tmp/lintian.log" 2>&1
	ok $? "lintian finds no error"
	sed 's/^/# /' "$tmp/lintian.log"
fi

mkdir -p "$root/var/lib/caisson" && echo '{}' >"$root/var/lib/caisson/verify.jsonl"
pkg -r caisson >"$tmp/remove.log" 2>&1
ok $? "it is removed"
[ ! -e "$root/usr/bin/caisson" ] && [ -e "$root/var/lib/caisson/verify.jsonl" ]
ok $? "removing keeps the record of verifications"
pkg -P caisson >>"$tmp/remove.log" 2>&1
ok $? "it is purged"
left=$(what_is_there | grep -vxF "$before" || true)
[ -z "$left" ]
ok $? "nothing is left"
[ -z "$left" ] || printf '%s\n' "$left" | sed 's/^/# left: /'
finish
