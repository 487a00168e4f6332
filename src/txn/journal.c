/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - the steps of a commit on disk, and back, trusting nothing.
 *
 * docs/format-transaction.md has the bytes.  Numbers are little-endian.  The
 * head has a checksum of its own because it is rewritten in place: direction and
 * time change, the steps never do.
 */
#include "txn/internal.h"

#include "base/crc.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is written as the machine has it");

static const char magic[8] = "CSNJRNL1", tail_magic[8] = "CSNJEND1";

struct disk_head {
	char magic[8];
	uint32_t undo, part;
	uint64_t count;
	int64_t after_sec;
	uint32_t after_nsec, flags;
	uint32_t zero, crc; /* crc of all before it */
};
_Static_assert(sizeof(struct disk_head) == 48, "as documented");

struct disk_step {
	uint32_t kind, n;
	uint64_t was_ino, was_size, is_ino, is_size;
	int64_t was_sec, is_sec;
	uint32_t was_nsec, is_nsec;
	uint32_t path_len, metas; /* metas: 0, 1 (new) or 2 (old, new) */
};
_Static_assert(sizeof(struct disk_step) == 72, "as documented");

struct disk_meta {
	uint32_t mode, uid, gid, xattrs_len;
	int64_t atime_sec, mtime_sec;
	uint32_t atime_nsec, mtime_nsec;
};
_Static_assert(sizeof(struct disk_meta) == 40, "as documented");

struct disk_frame {
	uint32_t len, crc;
};

enum { FLAG_CALM = 1, FLAG_WHOLE = 2, FLAGS = FLAG_CALM | FLAG_WHOLE };
enum { PATH_LIMIT = 1 << 20, STEP_LIMIT = PATH_LIMIT + 2 * TXN_XATTR_MAX + 256 };
#define JOURNAL_LIMIT ((size_t)1 << 31)

/* ---- in memory ---- */

struct step *journal_add(struct journal *j, enum step_kind kind, const char *path)
{
	struct step *s;

	if (j->n == j->cap) {
		size_t cap = j->cap ? j->cap * 2 : 32;
		struct step *grown = cs_calloc(cap, sizeof *grown);

		if (j->n)
			memcpy(grown, j->v, j->n * sizeof *grown);
		free(j->v);
		j->v = grown;
		j->cap = cap;
	}
	s = &j->v[j->n];
	*s = (struct step){ .kind = kind, .n = (uint32_t)j->n, .path = cs_strdup(path) };
	j->n++;
	return s;
}

void journal_done(struct journal *j)
{
	for (size_t i = 0; i < j->n; i++) {
		free(j->v[i].path);
		free(j->v[i].old.xattrs);
		free(j->v[i].new.xattrs);
	}
	free(j->v);
	*j = (struct journal){ 0 };
}

/* ---- writing ---- */

static struct disk_head head_of(const struct journal *j)
{
	struct disk_head h = { .undo = j->undo, .part = j->part, .count = j->n, .after_sec = j->after.sec, .after_nsec = j->after.nsec,
			       .flags = (j->calm ? FLAG_CALM : 0u) | (j->whole ? FLAG_WHOLE : 0u) };

	memcpy(h.magic, magic, sizeof magic);
	h.crc = cs_crc32c(0, &h, offsetof(struct disk_head, crc));
	return h;
}

static uint32_t metas_of(enum step_kind k)
{
	return k == STEP_META ? 2 : k == STEP_MKDIR ? 1 : 0;
}

static void put_meta(struct cs_buf *b, const struct step_meta *m)
{
	struct disk_meta d = { m->mode, m->uid, m->gid, m->xattrs_len, m->atime.sec, m->mtime.sec, m->atime.nsec, m->mtime.nsec };

	cs_buf_add(b, &d, sizeof d);
	cs_buf_add(b, m->xattrs ? m->xattrs : "", m->xattrs_len);
}

static void put_step(struct cs_buf *all, const struct step *s)
{
	struct disk_step d = { .kind = s->kind, .n = s->n, .was_ino = s->was.ino, .was_size = s->was.size, .is_ino = s->is.ino,
			       .is_size = s->is.size, .was_sec = s->was.mtime.sec, .is_sec = s->is.mtime.sec,
			       .was_nsec = s->was.mtime.nsec, .is_nsec = s->is.mtime.nsec, .path_len = (uint32_t)strlen(s->path),
			       .metas = metas_of(s->kind) };
	struct disk_frame f = { 0 };
	size_t at = all->len, body = at + sizeof f;

	cs_buf_add(all, &f, sizeof f);
	cs_buf_add(all, &d, sizeof d);
	cs_buf_add(all, s->path, d.path_len);
	if (d.metas == 2)
		put_meta(all, &s->old);
	if (d.metas)
		put_meta(all, &s->new);
	if (all->over)
		return;
	f.len = (uint32_t)(all->len - body);
	f.crc = cs_crc32c(0, all->data + body, f.len);
	memcpy(all->data + at, &f, sizeof f);
}

int journal_write(int dir, const char *name, const struct journal *j, struct cs_err *err)
{
	struct cs_buf all CS_BUF_AUTO = CS_BUF(JOURNAL_LIMIT);
	struct disk_head h = head_of(j);
	struct disk_frame end = { .len = (uint32_t)j->n };
	CS_FD int fd = -1;
	char new_name[64];

	cs_buf_add(&all, &h, sizeof h);
	for (size_t i = 0; i < j->n; i++)
		put_step(&all, &j->v[i]);
	cs_buf_add(&all, tail_magic, sizeof tail_magic);
	end.crc = cs_crc32c(0, &end.len, sizeof end.len);
	cs_buf_add(&all, &end, sizeof end);
	if (all.over)
		return cs_fail(err, CS_E_LIMIT, 0, "too many changes for one journal");
	snprintf(new_name, sizeof new_name, "%s.new", name);
	fd = openat(dir, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || act_write(fd, all.data, all.len) < 0 || act_sync(fd) < 0 || act_rename(dir, new_name, dir, name, 0) < 0) {
		(void)cs_fail(err, CS_E_SYSTEM, errno, "write the journal");
		(void)act_unlink(dir, new_name, 0); /* it takes room that may be scarce */
		return -CS_E_SYSTEM;
	}
	if (act_sync(dir) < 0) {
		(void)cs_fail(err, CS_E_SYSTEM, errno, "write the journal");
		(void)act_unlink(dir, name, 0); /* nothing was done yet; if it stays, the next command does it */
		return -CS_E_SYSTEM;
	}
	return 0;
}

int journal_rewrite_head(int dir, const char *name, const struct journal *j, struct cs_err *err)
{
	struct disk_head h = head_of(j);
	CS_FD int fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || act_pwrite(fd, &h, sizeof h) < 0 || (j->undo && act_sync(fd) < 0))
		return cs_fail(err, CS_E_SYSTEM, errno, "write the journal's head");
	return 0;
}

int journal_stamp(int dir, const char *name, struct journal *j, struct cs_err *err)
{
	/* See head_stamp(). */
	for (int i = 0; i < 3; i++) {
		struct stat st;
		int r = journal_rewrite_head(dir, name, j, err);

		if (r < 0)
			return r;
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "look at the journal");
		j->after = (struct txn_stamp){ st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec };
	}
	return journal_rewrite_head(dir, name, j, err);
}

/* ---- reading ---- */

struct reader {
	const char *at, *end;
};

static const void *get(struct reader *r, size_t n)
{
	const char *at = r->at;

	if ((size_t)(r->end - r->at) < n)
		return NULL;
	r->at += n;
	return at;
}

static int damaged(struct cs_err *err, const char *what)
{
	return cs_fail(err, CS_E_INVALID, 0, "the journal is damaged (%s): nothing is done with it", what);
}

/* Beneath the workspace by its words: no empty, "." or ".." component. */
static bool sane_path(const char *p, size_t len, bool dot)
{
	size_t start = 0;

	if (!len || len > PATH_LIMIT || memchr(p, 0, len))
		return false;
	if (dot && len == 1 && *p == '.')
		return true;
	for (size_t i = 0; i <= len; i++) {
		if (i < len && p[i] != '/')
			continue;
		if (i == start || (i - start == 1 && p[start] == '.') || (i - start == 2 && !memcmp(p + start, "..", 2)))
			return false;
		start = i + 1;
	}
	return true;
}

static bool get_meta(struct reader *r, struct step_meta *m)
{
	struct disk_meta d;
	const void *p = get(r, sizeof d);

	if (!p)
		return false;
	memcpy(&d, p, sizeof d);
	*m = (struct step_meta){ d.mode & 07777, d.uid, d.gid, { d.atime_sec, d.atime_nsec }, { d.mtime_sec, d.mtime_nsec }, NULL, 0 };
	p = d.xattrs_len <= TXN_XATTR_MAX ? get(r, d.xattrs_len) : NULL;
	if (!p)
		return false;
	m->xattrs = cs_calloc(1, d.xattrs_len + 1);
	memcpy(m->xattrs, p, d.xattrs_len);
	m->xattrs_len = d.xattrs_len;
	return true;
}

static int parse_step(struct reader *r, struct journal *j, struct cs_err *err)
{
	struct disk_step d;
	const char *p = get(r, sizeof d), *path;
	CS_FREE char *text = NULL;
	struct step *s;

	if (!p)
		return damaged(err, "a step is cut short");
	memcpy(&d, p, sizeof d);
	path = d.path_len <= PATH_LIMIT ? get(r, d.path_len) : NULL;
	if (!path || d.kind < STEP_PUT || d.kind >= STEP_KIND_MAX || d.metas != metas_of((enum step_kind)d.kind))
		return damaged(err, "a step of no known kind");
	if (!sane_path(path, d.path_len, d.kind == STEP_META))
		return damaged(err, "a path that is none");
	text = cs_strndup(path, d.path_len);
	s = journal_add(j, (enum step_kind)d.kind, text);
	s->n = d.n;
	s->was = (struct step_file){ d.was_ino, d.was_size, { d.was_sec, d.was_nsec } };
	s->is = (struct step_file){ d.is_ino, d.is_size, { d.is_sec, d.is_nsec } };
	if ((d.metas == 2 && !get_meta(r, &s->old)) || (d.metas && !get_meta(r, &s->new)) || r->at != r->end)
		return damaged(err, "a step's metadata");
	return 0;
}

static int parse_steps(struct reader *r, uint64_t count, struct journal *j, struct cs_err *err)
{
	for (uint64_t i = 0; i < count; i++) {
		struct disk_frame f = { 0 };
		const void *p = get(r, sizeof f);
		struct reader body;
		int e;

		if (p)
			memcpy(&f, p, sizeof f);
		body.at = p && f.len <= STEP_LIMIT ? get(r, f.len) : NULL;
		if (!body.at || cs_crc32c(0, body.at, f.len) != f.crc)
			return damaged(err, "a step's checksum");
		body.end = body.at + f.len;
		e = parse_step(&body, j, err);
		if (e < 0)
			return e;
	}
	return 0;
}

static int parse_end(struct reader *r, uint64_t count, struct cs_err *err)
{
	const char *m = get(r, sizeof tail_magic);
	struct disk_frame end;
	const void *p = get(r, sizeof end);

	if (!m || !p || memcmp(m, tail_magic, sizeof tail_magic))
		return damaged(err, "it has no end");
	memcpy(&end, p, sizeof end);
	if (end.len != (uint32_t)count || end.crc != cs_crc32c(0, &end.len, sizeof end.len) || r->at != r->end)
		return damaged(err, "its end");
	return 0;
}

int journal_parse(const char *data, size_t len, struct journal *ret, struct cs_err *err)
{
	struct reader r = { data, data + len };
	struct disk_head h;
	const void *p = get(&r, sizeof h);
	int e;

	*ret = (struct journal){ 0 };
	if (!p)
		return damaged(err, "it is cut short");
	memcpy(&h, p, sizeof h);
	if (memcmp(h.magic, magic, sizeof magic - 1))
		return damaged(err, "it is not one");
	if (h.magic[7] != magic[7]) /* the version: told before the checksum, whose place it may move */
		return cs_fail(err, CS_E_UNSUPPORTED, 0, "the journal was written by another version of Caisson (this one reads format %c)", magic[7]);
	if (h.crc != cs_crc32c(0, &h, offsetof(struct disk_head, crc)))
		return damaged(err, "its head's checksum");
	if (h.undo > 1 || h.flags & ~(uint32_t)FLAGS || h.zero || h.count > TXN_CHANGES_MAX * 2ull || h.count * sizeof(struct disk_step) > len)
		return damaged(err, "its head");
	ret->undo = h.undo;
	ret->calm = h.flags & FLAG_CALM;
	ret->whole = h.flags & FLAG_WHOLE;
	ret->part = h.part;
	ret->after = (struct txn_stamp){ h.after_sec, h.after_nsec };
	e = parse_steps(&r, h.count, ret, err);
	if (e == 0)
		e = parse_end(&r, h.count, err);
	if (e < 0)
		journal_done(ret);
	return e;
}

int journal_read(int dir, const char *name, struct journal *ret, struct cs_err *err)
{
	struct cs_buf all CS_BUF_AUTO = CS_BUF(JOURNAL_LIMIT);
	CS_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	*ret = (struct journal){ 0 };
	if (fd < 0)
		return cs_fail(err, errno == ENOENT ? CS_E_NOT_FOUND : CS_E_SYSTEM, errno, "open the journal");
	r = cs_buf_read_fd(&all, fd, "journal", err);
	return r < 0 ? r : journal_parse(cs_buf_text(&all), all.len, ret, err);
}
