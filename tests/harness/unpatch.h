/* SPDX-License-Identifier: Apache-2.0 */
/* unpatch.h - applies the hunks of a unified diff, strictly: every line that is kept or removed must be
 * there, every number must be right.  For tests of what writes such hunks. */
#pragma once
#include "base/buf.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct unpatch {
	const char *p, *end;    /* the hunks */
	const char *a, *a_end;  /* what is left of the old text */
	size_t a_line, b_line;  /* lines done */
	size_t added, removed;
	struct cs_buf *out;
};

static inline bool unpatch_word(struct unpatch *u, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(u->end - u->p) < n || memcmp(u->p, word, n))
		return false;
	u->p += n;
	return true;
}

static inline bool unpatch_number(struct unpatch *u, size_t *ret)
{
	const char *start = u->p;

	for (*ret = 0; u->p < u->end && *u->p >= '0' && *u->p <= '9'; u->p++)
		*ret = *ret * 10 + (size_t)(*u->p - '0');
	return u->p > start;
}

/* "-3,7": ret_from is how many lines come before. */
static inline bool unpatch_range(struct unpatch *u, const char *sign, size_t *ret_from, size_t *ret_n)
{
	*ret_n = 1;
	if (!unpatch_word(u, sign) || !unpatch_number(u, ret_from))
		return false;
	if (unpatch_word(u, ",") && !unpatch_number(u, ret_n))
		return false;
	if (*ret_n && !(*ret_from)--)
		return false;
	return true;
}

/* The next line of the old text, its newline included. */
static inline size_t unpatch_old(const struct unpatch *u)
{
	const char *nl = u->a < u->a_end ? memchr(u->a, '\n', (size_t)(u->a_end - u->a)) : NULL;

	return nl ? (size_t)(nl + 1 - u->a) : (size_t)(u->a_end - u->a);
}

static inline bool unpatch_line(struct unpatch *u, size_t *left_a, size_t *left_b)
{
	static const char none[] = "\n\\ No newline at end of file\n";
	char sign = *u->p++;
	const char *text = u->p, *nl = u->p < u->end ? memchr(u->p, '\n', (size_t)(u->end - u->p)) : NULL;
	size_t len;

	if (!nl)
		return false;
	len = (size_t)(nl + 1 - text);
	u->p = nl;
	if (unpatch_word(u, none))
		len--;
	else
		u->p = nl + 1;
	if (sign != ' ' && sign != '-' && sign != '+')
		return false;
	if (sign != '+') {
		if (!*left_a || unpatch_old(u) != len || memcmp(u->a, text, len))
			return false;
		u->a += len;
		u->a_line++;
		--*left_a;
	}
	if (sign != '-') {
		if (!*left_b)
			return false;
		cs_buf_add(u->out, text, len);
		u->b_line++;
		--*left_b;
	}
	u->added += sign == '+';
	u->removed += sign == '-';
	return true;
}

static inline bool unpatch_hunk(struct unpatch *u)
{
	size_t a_from, a_n, b_from, b_n;

	if (!unpatch_word(u, "@@ ") || !unpatch_range(u, "-", &a_from, &a_n) || !unpatch_word(u, " ") ||
	    !unpatch_range(u, "+", &b_from, &b_n) || !unpatch_word(u, " @@\n") || a_from < u->a_line)
		return false;
	while (u->a_line < a_from) {
		size_t len = unpatch_old(u);

		if (!len)
			return false;
		cs_buf_add(u->out, u->a, len);
		u->a += len;
		u->a_line++;
		u->b_line++;
	}
	if (u->b_line != b_from)
		return false;
	while (a_n || b_n)
		if (u->p >= u->end || !unpatch_line(u, &a_n, &b_n))
			return false;
	return true;
}

/* Appends the new text to out; false if the patch does not fit. */
static inline bool unpatch(struct cs_buf *out, const char *a, size_t a_len, const char *p, size_t p_len, size_t *ret_added, size_t *ret_removed)
{
	struct unpatch u = { .p = p, .end = p + p_len, .a = a, .a_end = a + a_len, .out = out };

	while (u.p < u.end)
		if (!unpatch_hunk(&u))
			return false;
	cs_buf_add(out, u.a, (size_t)(u.a_end - u.a));
	*ret_added = u.added;
	*ret_removed = u.removed;
	return !out->over;
}
