/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - small things with words: escaping, sizes, durations, near misses. */
#pragma once
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Append s so that no byte of it can act on a terminal, a log or a shell
 * reading it back: control bytes, DEL and non-UTF-8 become \xNN, a backslash
 * becomes \\, Unicode bidi and zero-width controls become \u{NNNN}. */
void cs_escape(struct cs_buf *b, const char *s);
/* The same into a caller's array; ends in "..." when cut. Returns dst. */
char *cs_escape_to(char *dst, size_t size, const char *s);

/* In place: every byte that could act on a terminal, or forge a line, becomes '?'. */
void cs_blunt(char *s);

/* "64M", "2GiB", "1.5g", "4096".  K, M, G, T are powers of 1024 in every spelling. */
int cs_parse_size(const char *s, uint64_t *ret);
/* "250ms", "1s", "10m", "2h", "1d"; a bare number is seconds. In milliseconds. */
int cs_parse_duration(const char *s, uint64_t *ret_ms);
int cs_parse_u64(const char *s, uint64_t *ret);
/* "0.5", "2": above 0. */
int cs_parse_cpus(const char *s, double *ret);

void cs_format_size(char *dst, size_t size, uint64_t bytes);        /* "1.5GiB" */
void cs_format_duration(char *dst, size_t size, uint64_t ms);       /* "90s" */

/* The candidate closest to word, or NULL when none is close enough to suggest. */
const char *cs_nearest(const char *word, const char *const *candidates, size_t n);
/* Shell-style pattern for one path component: * ? [..]. */
bool cs_glob(const char *pattern, const char *name);
