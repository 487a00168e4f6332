/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff_list.c - caisson diff --stat, --name-status, --json */
#include "cli/cmd_diff.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* False if lines say nothing about it: binary, unreadable, a directory, or only its metadata differs. */
static bool count_lines(struct diff *d, const struct txn_change *c, struct txn_lines *ret, bool *ret_binary)
{
	const struct txn_patch_opts o = { 0 };
	struct cs_buf none CS_BUF_AUTO = CS_BUF(0);
	struct diff_sides s;
	bool ok;

	*ret = (struct txn_lines){ 0 };
	*ret_binary = false;
	if (!diff_content_differs(c) || !(diff_has_content(c->old.mode) || diff_has_content(c->new.mode)))
		return false;
	diff_read(d, c, &s);
	*ret_binary = s.old.binary || s.new.binary;
	ok = !*ret_binary && !s.unreadable;
	if (ok)
		*ret = txn_patch(&none, cs_buf_text(&s.old.text), s.old.text.len, cs_buf_text(&s.new.text), s.new.text.len, &o);
	diff_sides_done(&s);
	return ok;
}

/* ---- --name-status ---- */

static void add_path(const struct diff *d, struct cs_buf *out, const struct txn_change *c, const char *path)
{
	CS_FREE char *full = S_ISDIR(c->new.mode ? c->new.mode : c->old.mode) ? cs_printf("%s/", path) : cs_strdup(path);

	diff_name(d, out, "", full);
}

void diff_names(struct diff *d)
{
	for (size_t i = 0; i < d->changes.n && !d->closed; i++) {
		const struct txn_change *c = &d->changes.v[i];

		if (!diff_shows(d, c))
			continue;
		cs_buf_fmt(&d->out, "%c\t", c->kind);
		if (c->kind == TXN_RENAMED) {
			add_path(d, &d->out, c, c->from);
			cs_buf_char(&d->out, '\t');
		}
		add_path(d, &d->out, c, c->path);
		cs_buf_char(&d->out, '\n');
		diff_flush(d);
	}
}

/* ---- --stat ---- */

struct row {
	char *name;
	unsigned width;         /* of the name, in columns */
	struct txn_lines lines;
	bool binary;
	uint64_t old, new;      /* sizes of a binary one */
};

struct table {
	struct row *v;
	size_t n, added, removed, most;
	unsigned name, number, graph; /* widths */
	bool binary;
};

/* Columns, if every character takes one. */
static unsigned columns(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* "a/{old => new}/x": what both paths share is written once. */
static void add_rename(const struct diff *d, struct cs_buf *out, const char *from, const char *to)
{
	size_t head = 0, tail = 0, a = strlen(from), b = strlen(to);
	CS_FREE char *old = NULL, *new = NULL, *front = NULL;

	for (size_t i = 0; from[i] && from[i] == to[i]; i++)
		if (from[i] == '/')
			head = i + 1;
	for (size_t i = 1; i <= a - head && i <= b - head && from[a - i] == to[b - i]; i++)
		if (from[a - i] == '/')
			tail = i;
	front = cs_strndup(from, head);
	old = cs_strndup(from + head, a - head - tail);
	new = cs_strndup(to + head, b - head - tail);
	if (!head && !tail) {
		diff_name(d, out, "", from);
		cs_buf_str(out, " => ");
		diff_name(d, out, "", to);
		return;
	}
	diff_name(d, out, "", front);
	cs_buf_char(out, '{');
	diff_name(d, out, "", old);
	cs_buf_str(out, " => ");
	diff_name(d, out, "", new);
	cs_buf_char(out, '}');
	diff_name(d, out, "", to + b - tail);
}

static void add_row(struct diff *d, struct table *t, const struct txn_change *c)
{
	struct cs_buf name CS_BUF_AUTO = CS_BUF(1 << 16);
	struct row *r = &t->v[t->n];

	if (!diff_has_content(c->old.mode) && !diff_has_content(c->new.mode))
		return;
	(void)count_lines(d, c, &r->lines, &r->binary);
	if (c->kind == TXN_RENAMED)
		add_rename(d, &name, c->from, c->path);
	else
		diff_name(d, &name, "", c->path);
	r->name = cs_strdup(cs_buf_text(&name));
	r->width = columns(r->name);
	r->old = c->old.mode ? c->old.size : 0;
	r->new = c->new.mode ? c->new.size : 0;
	t->n++;
	t->added += r->lines.added;
	t->removed += r->lines.removed;
	t->binary |= r->binary;
	if (r->lines.added + r->lines.removed > t->most)
		t->most = r->lines.added + r->lines.removed;
	if (r->width > t->name)
		t->name = r->width;
}

/* The same division of a line as git's: the graph gives way down to three eighths, then names are cut. */
static void lay_out(struct table *t, unsigned width)
{
	unsigned fixed, share;

	t->number = (unsigned)snprintf(NULL, 0, "%zu", t->most);
	if (t->binary && t->number < 3)
		t->number = 3;
	fixed = t->number + 6;
	if (width < 16 + fixed)
		width = 16 + fixed;
	t->graph = t->most < width ? (unsigned)t->most : width;
	if (t->name + fixed + t->graph <= width)
		return;
	share = width * 3 / 8 > fixed + 6 ? width * 3 / 8 - fixed : 6;
	if (t->graph > share)
		t->graph = share;
	if (t->name > width - fixed - t->graph)
		t->name = width - fixed - t->graph;
	else
		t->graph = width - fixed - t->name;
}

static void graph(const struct diff *d, struct cs_buf *out, const struct table *t, const struct txn_lines *l)
{
	size_t plus = l->added, minus = l->removed, all = plus + minus;

	if (all && t->graph < t->most) {
		size_t less = plus < minus ? plus : minus;

		all = 1 + all * (t->graph - 1) / t->most;
		if (all < 2 && less)
			all = 2;
		less = less ? 1 + less * (t->graph - 1) / t->most : 0;
		plus = plus < minus ? less : all - less;
		minus = all - plus;
	}
	cs_buf_str(out, d->colour && plus ? "\033[32m" : "");
	for (size_t i = 0; i < plus; i++)
		cs_buf_char(out, '+');
	cs_buf_str(out, d->colour && plus ? "\033[m" : "");
	cs_buf_str(out, d->colour && minus ? "\033[31m" : "");
	for (size_t i = 0; i < minus; i++)
		cs_buf_char(out, '-');
	cs_buf_str(out, d->colour && minus ? "\033[m" : "");
}

static void write_row(struct diff *d, const struct table *t, const struct row *r)
{
	const char *name = r->name;
	unsigned width = r->width;
	bool cut = width > t->name;

	while (cut && *name && width > t->name - 3) { /* the end of a name says more than its start */
		width -= ((unsigned char)*name & 0xc0) != 0x80;
		do
			name++;
		while (((unsigned char)*name & 0xc0) == 0x80);
	}
	cs_buf_fmt(&d->out, " %s%s%*s | ", cut ? "..." : "", name, (int)(t->name - width - (cut ? 3 : 0)), "");
	if (r->binary) {
		cs_buf_fmt(&d->out, "%*s %llu -> %llu bytes\n", (int)t->number, "Bin", (unsigned long long)r->old, (unsigned long long)r->new);
		return;
	}
	cs_buf_fmt(&d->out, "%*zu", (int)t->number, r->lines.added + r->lines.removed);
	if (r->lines.added + r->lines.removed) {
		cs_buf_char(&d->out, ' ');
		graph(d, &d->out, t, &r->lines);
	}
	cs_buf_char(&d->out, '\n');
}

void diff_stat(struct diff *d)
{
	struct table t = { .v = cs_calloc(d->changes.n, sizeof *t.v) };

	for (size_t i = 0; i < d->changes.n; i++)
		if (diff_shows(d, &d->changes.v[i]))
			add_row(d, &t, &d->changes.v[i]);
	lay_out(&t, d->width);
	for (size_t i = 0; i < t.n; i++) {
		write_row(d, &t, &t.v[i]);
		free(t.v[i].name);
		diff_flush(d);
	}
	free(t.v);
	if (t.n) {
		cs_buf_fmt(&d->out, " %zu file%s changed", t.n, t.n == 1 ? "" : "s");
		if (t.added || !t.removed)
			cs_buf_fmt(&d->out, ", %zu insertion%s(+)", t.added, t.added == 1 ? "" : "s");
		if (t.removed || !t.added)
			cs_buf_fmt(&d->out, ", %zu deletion%s(-)", t.removed, t.removed == 1 ? "" : "s");
		cs_buf_char(&d->out, '\n');
	}
	for (size_t i = 0; i < d->changes.n && !d->closed; i++)
		if (diff_shows(d, &d->changes.v[i])) {
			diff_verdicts(d, &d->changes.v[i]);
			diff_flush(d);
		}
}

/* ---- --json ---- */

static bool is_utf8(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	while (*p) {
		size_t n = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : *p >= 0xf0 && *p < 0xf5 ? 4 : 0;

		if (!n || (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
			return false;
		for (size_t i = 1; i < n; i++)
			if ((p[i] & 0xc0) != 0x80)
				return false;
		p += n;
	}
	return true;
}

static void json_base64(struct cs_json *j, const char *key, const char *s)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 22);

	for (size_t left = strlen(s); left; left -= left < 3 ? left : 3, s += 3) {
		const unsigned char *p = (const unsigned char *)s;
		unsigned v = (unsigned)p[0] << 16 | (left > 1 ? (unsigned)p[1] << 8 : 0) | (left > 2 ? p[2] : 0);

		cs_buf_char(&b, digit[v >> 18]);
		cs_buf_char(&b, digit[v >> 12 & 63]);
		cs_buf_char(&b, left > 1 ? digit[v >> 6 & 63] : '=');
		cs_buf_char(&b, left > 2 ? digit[v & 63] : '=');
		if (left < 3)
			break;
	}
	cs_json_str(j, key, cs_buf_text(&b));
}

static void json_path(struct cs_json *j, const char *key, const char *key64, const char *path)
{
	cs_json_str(j, key, path);
	if (path && !is_utf8(path))
		json_base64(j, key64, path);
}

static void json_side(struct cs_json *j, const char *key, const struct txn_side *s)
{
	const char *type = S_ISREG(s->mode) ? "file" : S_ISDIR(s->mode) ? "directory" : S_ISLNK(s->mode) ? "symlink" :
		S_ISFIFO(s->mode) ? "fifo" : S_ISSOCK(s->mode) ? "socket" : S_ISCHR(s->mode) ? "char" : S_ISBLK(s->mode) ? "block" : "unknown";
	char mode[16];

	if (!s->mode) {
		cs_json_null(j, key);
		return;
	}
	snprintf(mode, sizeof mode, "%04o", (unsigned)s->mode & 07777);
	cs_json_object(j, key);
	cs_json_str(j, "type", type);
	cs_json_str(j, "mode", mode);
	cs_json_u64(j, "size", s->size);
	cs_json_u64(j, "uid", s->uid);
	cs_json_u64(j, "gid", s->gid);
	cs_json_end(j, '}');
}

static void json_differs(struct cs_json *j, unsigned differs)
{
	static const struct {
		unsigned bit;
		const char *name;
	} names[] = { { TXN_CONTENT, "content" }, { TXN_TARGET, "target" }, { TXN_MODE, "mode" },
		      { TXN_OWNER, "owner" }, { TXN_TIMES, "times" }, { TXN_XATTR, "xattr" } };

	cs_json_array(j, "differs");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (differs & names[i].bit)
			cs_json_str(j, NULL, names[i].name);
	cs_json_end(j, ']');
}

static void json_lines(struct cs_json *j, const char *key, bool known, size_t n)
{
	if (known)
		cs_json_u64(j, key, n);
	else
		cs_json_null(j, key);
}

static const char *kind_name(enum txn_kind k)
{
	switch (k) {
	case TXN_ADDED: return "added";
	case TXN_CHANGED: return "changed";
	case TXN_DELETED: return "deleted";
	case TXN_TYPE: return "type";
	case TXN_RENAMED: return "renamed";
	}
	return "unknown";
}

static void json_change(struct diff *d, struct cs_json *j, const struct txn_change *c)
{
	struct txn_lines lines;
	bool binary, known = count_lines(d, c, &lines, &binary);

	cs_json_object(j, NULL);
	json_path(j, "path", "path_base64", c->path);
	cs_json_str(j, "kind", kind_name(c->kind));
	json_path(j, "from", "from_base64", c->from);
	json_side(j, "old", &c->old);
	json_side(j, "new", &c->new);
	json_differs(j, c->differs);
	cs_json_str(j, "hold", c->hold ? txn_hold_text(c->hold) : NULL);
	cs_json_str(j, "conflict", c->conflict ? txn_conflict_text(c->conflict) : NULL);
	json_lines(j, "lines_added", known, lines.added);
	json_lines(j, "lines_removed", known, lines.removed);
	cs_json_end(j, '}');
}

/* Of what is shown: as txn_scan() counts. */
static struct txn_changes count_shown(const struct diff *d)
{
	struct txn_changes n = { 0 };

	for (size_t i = 0; i < d->changes.n; i++) {
		const struct txn_change *c = &d->changes.v[i];

		if (!diff_shows(d, c))
			continue;
		n.added += c->kind == TXN_ADDED;
		n.deleted += c->kind == TXN_DELETED;
		n.changed += c->kind != TXN_ADDED && c->kind != TXN_DELETED;
		n.bytes += S_ISREG(c->new.mode) ? c->new.size : 0;
	}
	return n;
}

void diff_json(struct diff *d)
{
	struct txn_changes n = count_shown(d);
	struct cs_json j;

	cs_json_begin(&j, &d->out, /* pretty= */ true);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "id", txn_about(d->t)->id);
	cs_json_str(&j, "workspace", txn_about(d->t)->workspace);
	cs_json_str(&j, "state", txn_state_name(txn_state(d->t)));
	cs_json_u64(&j, "added", n.added);
	cs_json_u64(&j, "changed", n.changed);
	cs_json_u64(&j, "deleted", n.deleted);
	cs_json_u64(&j, "bytes", n.bytes);
	cs_json_array(&j, "changes");
	for (size_t i = 0; i < d->changes.n && !d->closed; i++) {
		if (!diff_shows(d, &d->changes.v[i]))
			continue;
		json_change(d, &j, &d->changes.v[i]);
		diff_flush(d);
	}
	cs_json_end(&j, ']');
	cs_json_end(&j, '}');
}
