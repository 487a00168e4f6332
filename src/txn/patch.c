/* SPDX-License-Identifier: Apache-2.0 */
/* patch.c - two texts as the hunks of a unified diff. */
#include "base/mem.h"
#include "base/text.h"
#include "txn/lines.h"
#include "txn/txn.h"

#include <stdlib.h>
#include <string.h>

enum { BINARY_HEAD = 8 << 10 };

bool txn_is_binary(const char *data, size_t len)
{
	size_t n = 0;

	if (!len)
		return false;
	if (len > LINES_BYTES || memchr(data, 0, len < BINARY_HEAD ? len : BINARY_HEAD))
		return true;
	for (const char *p = data, *end = data + len; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
		if (++n > LINES_COUNT)
			return true;
	return false;
}

/* ---- text for a terminal ---- */

/* How much of p is what nearly all text is, and stays as it is. */
static size_t plain(const char *p, size_t left)
{
	size_t n = 0;

	while (n < left && p[n] >= ' ' && p[n] < 0x7f && p[n] != '\\')
		n++;
	return n;
}

/* How much of p can be escaped at once: no TAB, no NUL, no character cut in two. */
static size_t piece(const char *p, size_t left, size_t most)
{
	size_t n = 0;

	while (n < left && n < most && p[n] && p[n] != '\t')
		n++;
	if (n == most && n < left)
		for (size_t back = 1; back <= 3; back++)
			if (((unsigned char)p[n - back] & 0xc0) == 0xc0)
				return n - back;
	return n;
}

/* As cs_escape(), for bytes that may hold a NUL; a TAB stays. */
static void escape(struct cs_buf *out, const char *p, size_t left)
{
	char part[1024];

	while (left) {
		size_t n = plain(p, left);

		if (n) {
			cs_buf_add(out, p, n);
		} else if ((n = piece(p, left, sizeof part - 1))) {
			memcpy(part, p, n);
			part[n] = 0;
			cs_escape(out, part);
		} else {
			cs_buf_str(out, *p ? "\t" : "\\x00");
			n = 1;
		}
		p += n;
		left -= n;
	}
}

/* ---- hunks ---- */

/* A run of removed lines and what was put in its place; either may be empty. */
struct run {
	size_t a0, a1, b0, b1;
};

struct writer {
	struct cs_buf *out;
	const struct lines *a, *b;
	const struct txn_patch_opts *o;
};

static void write_line(const struct writer *w, char sign, const struct lines *l, size_t i)
{
	const char *text = l->data + l->at[i], *paint = sign == '-' ? "\033[31m" : sign == '+' ? "\033[32m" : NULL;
	size_t len = lines_len(l, i);
	bool whole = text[len - 1] == '\n';

	if (w->o->colour && paint)
		cs_buf_str(w->out, paint);
	cs_buf_char(w->out, sign);
	if (w->o->escape)
		escape(w->out, text, len - whole);
	else
		cs_buf_add(w->out, text, len - whole);
	if (w->o->colour && paint)
		cs_buf_str(w->out, "\033[m");
	cs_buf_str(w->out, whole ? "\n" : "\n\\ No newline at end of file\n");
}

static void write_range(struct cs_buf *out, char sign, size_t from, size_t to)
{
	/* An empty range is named by the line before it. */
	cs_buf_fmt(out, "%c%zu", sign, from + (to > from));
	if (to - from != 1)
		cs_buf_fmt(out, ",%zu", to - from);
}

static void write_hunk(const struct writer *w, const struct run *r, size_t n)
{
	const struct run *last = r + n - 1;
	size_t before = r->a0 < w->o->context ? r->a0 : w->o->context;
	size_t rest = w->a->n - last->a1, after = rest < w->o->context ? rest : w->o->context;
	size_t at = r->a0 - before;

	if (w->o->colour)
		cs_buf_str(w->out, "\033[36m");
	cs_buf_str(w->out, "@@ ");
	write_range(w->out, '-', at, last->a1 + after);
	cs_buf_char(w->out, ' ');
	write_range(w->out, '+', r->b0 - before, last->b1 + after);
	cs_buf_str(w->out, w->o->colour ? " @@\033[m\n" : " @@\n");
	for (; r <= last; r++) {
		for (; at < r->a0; at++)
			write_line(w, ' ', w->a, at);
		for (; at < r->a1; at++)
			write_line(w, '-', w->a, at);
		for (size_t i = r->b0; i < r->b1; i++)
			write_line(w, '+', w->b, i);
	}
	for (; at < last->a1 + after; at++)
		write_line(w, ' ', w->a, at);
}

/* The next run at or after i, j; false at the end. */
static bool next_run(const struct writer *w, size_t i, size_t j, struct run *ret)
{
	const struct lines *a = w->a, *b = w->b;

	while (i < a->n && j < b->n && !a->changed[i] && !b->changed[j])
		i++, j++;
	*ret = (struct run){ i, i, j, j };
	while (ret->a1 < a->n && a->changed[ret->a1])
		ret->a1++;
	while (ret->b1 < b->n && b->changed[ret->b1])
		ret->b1++;
	return ret->a1 > i || ret->b1 > j;
}

static void write_hunks(const struct writer *w, struct run *runs)
{
	struct run next;
	size_t n = 0;

	for (bool more = next_run(w, 0, 0, &next); more && !w->out->over; more = next_run(w, next.a1, next.b1, &next)) {
		/* Runs whose context would touch are one hunk. */
		if (n && next.a0 - runs[n - 1].a1 > 2 * (size_t)w->o->context) {
			write_hunk(w, runs, n);
			n = 0;
		}
		runs[n++] = next;
	}
	if (n)
		write_hunk(w, runs, n);
}

static size_t count(const struct lines *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->changed[i];
	return n;
}

struct txn_lines txn_patch(struct cs_buf *out, const char *a, size_t a_len, const char *b, size_t b_len, const struct txn_patch_opts *o)
{
	struct lines la, lb;
	struct writer w = { .out = out, .a = &la, .b = &lb, .o = o };
	struct txn_lines ret;
	struct run *runs;

	lines_split(&la, a, a_len);
	lines_split(&lb, b, b_len);
	lines_diff(&la, &lb);
	ret = (struct txn_lines){ .added = count(&lb), .removed = count(&la) };
	runs = cs_calloc(ret.added + ret.removed, sizeof *runs);
	write_hunks(&w, runs);
	free(runs);
	lines_done(&la);
	lines_done(&lb);
	return ret;
}
