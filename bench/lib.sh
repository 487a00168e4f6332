# SPDX-License-Identifier: Apache-2.0
# lib.sh - what the benchmark scripts share; sourced, not run.
#
# BENCH_TOP    the source tree
# BENCH_BIN    where the drivers are built
# BENCH_TMP    a directory of this run, removed at its end; anyone may enter it
# BENCH_UID    the user that "unprivileged" means when root measures
#
# Binaries are copied to BENCH_TMP before they are measured: an unprivileged
# user may not be able to enter the source tree.

BENCH_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BENCH_BIN=$BENCH_TOP/build/bench
BENCH_UID=61234

bench_die() { echo "bench: $*" >&2; exit 2; }

bench_build()
{
	local cc=${CC:-gcc} flags="-std=gnu17 -D_GNU_SOURCE -O2 -g -Wall -Wextra"
	local from=$BENCH_TOP/bench

	mkdir -p "$BENCH_BIN"
	bench_newer "$from/start.c" "$BENCH_BIN/start" && $cc $flags -o "$BENCH_BIN/start" "$from/start.c"
	bench_newer "$from/inside.c" "$BENCH_BIN/inside" && $cc $flags -static -o "$BENCH_BIN/inside" "$from/inside.c"
	bench_newer "$from/payload.c" "$BENCH_BIN/static" && $cc $flags -static -o "$BENCH_BIN/static" "$from/payload.c"
	bench_newer "$from/payload.c" "$BENCH_BIN/bare" &&
		$cc $flags -fno-stack-protector -DNO_LIBC -nostdlib -static -o "$BENCH_BIN/bare" "$from/payload.c"
	bench_newer "$from/net.c" "$BENCH_BIN/net" && $cc $flags -o "$BENCH_BIN/net" "$from/net.c" -lssl -lcrypto -lpthread
	$cc $flags -DCAISSON_VERSION='""' -I"$BENCH_TOP/src" -I"$BENCH_TOP/build" -o "$BENCH_BIN/rules" "$from/rules.c" \
		"$BENCH_TOP"/src/rules/*.c "$BENCH_TOP"/src/json/*.c "$BENCH_TOP"/src/base/*.c -lyaml -lm
	[ -x "$BENCH_BIN/rules" ] && [ -x "$BENCH_BIN/start" ] && [ -x "$BENCH_BIN/net" ] && [ -x "$BENCH_BIN/inside" ] && [ -x "$BENCH_BIN/static" ] && [ -x "$BENCH_BIN/bare" ] ||
		bench_die "could not build the drivers"
}

bench_newer() { [ ! -e "$2" ] || [ "$1" -nt "$2" ]; }

bench_tmp()
{
	BENCH_TMP=$(mktemp -d "${TMPDIR:-/tmp}/caisson-bench.XXXXXX") || exit 2
	chmod 755 "$BENCH_TMP"
	trap 'bench_clean' EXIT
	trap 'exit 130' INT TERM HUP
	mkdir "$BENCH_TMP/bin"
	cp "$BENCH_BIN"/* "$BENCH_TMP/bin/"
	[ ! -x "$BENCH_TOP/build/caisson" ] || cp "$BENCH_TOP/build/caisson" "$BENCH_TMP/bin/caisson"
	[ ! -x "$BENCH_TOP/build/test/caisson" ] || cp "$BENCH_TOP/build/test/caisson" "$BENCH_TMP/bin/caisson-test"
}

bench_clean() { [ -n "$BENCH_TMP" ] && rm -rf -- "$BENCH_TMP"; }

# The machine, as a line to put above a table.
bench_machine()
{
	local model
	model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1)
	echo "Linux $(uname -r), $(nproc) CPUs (${model:-unknown}), $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo) memory, $(date -u +%Y-%m-%d)"
}
