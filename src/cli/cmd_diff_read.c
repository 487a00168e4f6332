/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff_read.c - the two sides of a change, and names. */
#include "cli/cmd_diff.h"

#include "base/cleanup.h"
#include "base/say.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { CONTENT_MAX = 16 << 20 };

/* ---- content ---- */

bool diff_has_content(mode_t mode)
{
	return S_ISREG(mode) || S_ISLNK(mode);
}

bool diff_content_differs(const struct txn_change *c)
{
	return (c->kind != TXN_CHANGED && c->kind != TXN_RENAMED) || c->differs & (TXN_CONTENT | TXN_TARGET);
}

const char *diff_old_path(const struct txn_change *c)
{
	return c->from ? c->from : c->base ? c->base : c->path;
}

static int read_link(const struct diff *d, const struct txn_change *c, bool old, struct cs_buf *ret)
{
	char target[PATH_MAX];
	ssize_t n = old ? txn_link_old(d->t, c, target, sizeof target) : txn_link_new(d->t, c, target, sizeof target);

	if (n < 0)
		return -1;
	cs_buf_add(ret, target, (size_t)n);
	return 0;
}

static int read_file(const struct diff *d, const struct txn_change *c, bool old, struct cs_buf *ret)
{
	CS_FD int fd = old ? txn_open_old(d->t, c) : txn_open_new(d->t, c);
	struct cs_err err = { 0 };

	if (fd < 0)
		return -1;
	if (cs_buf_read_fd(ret, fd, c->path, &err) == 0)
		return 0;
	if (err.code == CS_E_LIMIT)
		return ret->over = true, 0;
	errno = err.sys;
	return -1;
}

static void read_side(struct diff *d, const struct txn_change *c, bool old, struct diff_sides *s)
{
	const struct txn_side *side = old ? &c->old : &c->new;
	struct diff_content *ret = old ? &s->old : &s->new;
	char shown[256];
	int r = 0;

	ret->text = (struct cs_buf)CS_BUF(CONTENT_MAX);
	if (s->unreadable || !diff_has_content(side->mode))
		return;
	if (S_ISREG(side->mode) && side->size > CONTENT_MAX)
		ret->text.over = true; /* no need to read it */
	else
		r = S_ISLNK(side->mode) ? read_link(d, c, old, &ret->text) : read_file(d, c, old, &ret->text);
	if (r < 0) {
		say_error("cannot read '%s' as it %s: %s", cs_escape_to(shown, sizeof shown, c->path), old ? "was" : "is", strerror(errno));
		s->unreadable = d->failed = true;
		return;
	}
	ret->large = ret->text.over;
	ret->binary = ret->large || (S_ISREG(side->mode) && txn_is_binary(cs_buf_text(&ret->text), ret->text.len));
}

void diff_read(struct diff *d, const struct txn_change *c, struct diff_sides *ret)
{
	*ret = (struct diff_sides){ 0 };
	read_side(d, c, /* old= */ true, ret);
	read_side(d, c, /* old= */ false, ret);
}

void diff_sides_done(struct diff_sides *s)
{
	cs_buf_done(&s->old.text);
	cs_buf_done(&s->new.text);
}

/* ---- names ---- */

/* As git's core.quotePath does: what is no plain ASCII is quoted like a string in C. */
static bool needs_quotes(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || (unsigned char)*s >= 0x7f || *s == '"' || *s == '\\')
			return true;
	return false;
}

static void quote(struct cs_buf *out, const char *s)
{
	static const char plain[] = "\a\b\t\n\v\f\r\"\\", letter[] = "abtnvfr\"\\";

	for (; *s; s++) {
		const char *p = strchr(plain, *s);

		if (p)
			cs_buf_fmt(out, "\\%c", letter[p - plain]);
		else if ((unsigned char)*s < ' ' || (unsigned char)*s >= 0x7f)
			cs_buf_fmt(out, "\\%03o", (unsigned char)*s);
		else
			cs_buf_char(out, *s);
	}
}

void diff_name(const struct diff *d, struct cs_buf *out, const char *prefix, const char *path)
{
	bool quotes = !d->escape && needs_quotes(path);

	if (quotes)
		cs_buf_char(out, '"');
	cs_buf_str(out, prefix);
	if (d->escape)
		cs_escape(out, path);
	else
		quote(out, path);
	if (quotes)
		cs_buf_char(out, '"');
}

/* ---- remarks ---- */

void diff_remark(struct diff *d, const struct txn_change *c, bool loud, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (d->colour)
		cs_buf_str(&d->out, loud ? "\033[1;31m" : "\033[1m");
	cs_buf_str(&d->out, "# caisson: ");
	diff_name(d, &d->out, "", c->path);
	if (S_ISDIR(c->new.mode ? c->new.mode : c->old.mode))
		cs_buf_char(&d->out, '/');
	cs_buf_fmt(&d->out, ": %s%s\n", text, d->colour ? "\033[m" : "");
}

void diff_verdicts(struct diff *d, const struct txn_change *c)
{
	if (c->hold)
		diff_remark(d, c, /* loud= */ true, "held back: %s", txn_hold_text(c->hold));
	if (c->conflict)
		diff_remark(d, c, /* loud= */ true, "conflict: %s", txn_conflict_text(c->conflict));
}
