/* SPDX-License-Identifier: Apache-2.0 */
/* head.c - what is written down when a transaction begins.
 *
 * See docs/format-transaction.md for the bytes.  The checked part never changes;
 * after it stands what is known once the program runs.
 *
 * The start's time stamp.  A commit must know which files of the workspace were
 * edited since the start.  Since Linux 6.13 a file whose times were looked at
 * gets a fine-grained ctime at its next change, and no later change of any file
 * gets an earlier one: looking at head and writing to it again draws a line
 * through time.  Older kernels stamp with the last timer tick; there the program
 * starts only after the next one (txn_settle), so that what has the tick's time
 * was changed before.
 */
#include "txn/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc.h"

static const char magic[8] = "CSNHEAD1";
enum { HEAD_MAX = 16 << 20, FIXED = 16, START = 64 };

static void put_u32(struct cs_buf *b, uint32_t v)
{
	cs_buf_add(b, &v, sizeof v);
}

static void put_u64(struct cs_buf *b, uint64_t v)
{
	cs_buf_add(b, &v, sizeof v);
}

static void put_text(struct cs_buf *b, const char *s)
{
	size_t len = s ? strlen(s) : 0;

	put_u32(b, (uint32_t)len);
	cs_buf_add(b, s ? s : "", len);
}

static void put_list(struct cs_buf *b, const struct cs_strv *v)
{
	put_u32(b, (uint32_t)v->n);
	for (size_t i = 0; i < v->n; i++)
		put_text(b, v->v[i]);
}

static void put_about(struct cs_buf *b, const struct txn_about *a)
{
	put_text(b, a->id);
	put_text(b, a->workspace);
	put_text(b, a->profile);
	put_text(b, a->command);
	put_u64(b, a->ino);
	put_u64(b, a->created);
	put_u32(b, a->created_ns);
	put_u32(b, a->steps);
	put_list(b, &a->protect);
	put_list(b, &a->allow);
	put_list(b, &a->hidden);
}

int head_write(struct txn *t, struct cs_err *err)
{
	struct cs_buf body CS_BUF_AUTO = CS_BUF(HEAD_MAX), all CS_BUF_AUTO = CS_BUF(HEAD_MAX + FIXED + START);
	static const char empty[START];

	put_about(&body, &t->about);
	if (body.over)
		return cs_fail(err, CS_E_LIMIT, 0, "too many hidden or protected names to write down");
	cs_buf_add(&all, magic, sizeof magic);
	put_u32(&all, (uint32_t)body.len);
	put_u32(&all, cs_crc32c(0, body.data, body.len));
	cs_buf_add(&all, body.data, body.len);
	cs_buf_add(&all, empty, sizeof empty);
	if (act_write(t->head, all.data, all.len) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "write the head of a transaction in '%s'", t->store.path);
	return 0;
}

/* ---- reading: everything is checked, nothing is believed ---- */

struct reader {
	const char *at, *end;
	bool bad;
};

static const char *get(struct reader *r, size_t n)
{
	const char *at = r->at;

	if (r->bad || (size_t)(r->end - r->at) < n)
		return r->bad = true, NULL;
	r->at += n;
	return at;
}

static uint32_t get_u32(struct reader *r)
{
	const char *p = get(r, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t get_u64(struct reader *r)
{
	const char *p = get(r, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

static char *get_text(struct reader *r)
{
	uint32_t len = get_u32(r);
	const char *p = get(r, len);

	if (p && memchr(p, 0, len))
		r->bad = true;
	return p && !r->bad ? cs_strndup(p, len) : NULL;
}

static void get_list(struct reader *r, struct cs_strv *ret)
{
	uint32_t n = get_u32(r);

	for (uint32_t i = 0; i < n && !r->bad; i++) {
		char *s = get_text(r);

		if (s)
			cs_strv_take(ret, s);
	}
}

static void get_about(struct reader *r, struct txn_about *a)
{
	CS_FREE char *id = get_text(r);

	snprintf(a->id, sizeof a->id, "%s", id ? id : "");
	a->workspace = get_text(r);
	a->profile = get_text(r);
	a->command = get_text(r);
	a->ino = get_u64(r);
	a->created = get_u64(r);
	a->created_ns = get_u32(r);
	a->steps = get_u32(r) != 0;
	get_list(r, &a->protect);
	get_list(r, &a->allow);
	get_list(r, &a->hidden);
}

static uint32_t start_crc(const struct txn_start *s)
{
	return cs_crc32c(0, s, offsetof(struct txn_start, crc));
}

static int broken(struct cs_err *err, const char *why)
{
	return cs_fail(err, CS_E_INVALID, 0, "its head is damaged (%s)", why);
}

int head_parse(const char *data, size_t size, struct txn *t, struct cs_err *err)
{
	struct reader r;
	uint32_t len, crc;

	if (size < FIXED || memcmp(data, magic, sizeof magic - 1))
		return broken(err, "it is not one");
	if (data[7] != magic[7])
		return cs_fail(err, CS_E_UNSUPPORTED, 0, "it was written by another version of Caisson (this one reads format %c)", magic[7]);
	r = (struct reader){ .at = data + sizeof magic, .end = data + size };
	len = get_u32(&r);
	crc = get_u32(&r);
	if ((size_t)(r.end - r.at) < len || cs_crc32c(0, r.at, len) != crc)
		return broken(err, "checksum");
	r.end = r.at + len;
	get_about(&r, &t->about);
	if (r.bad || r.at != r.end || !t->about.workspace || t->about.workspace[0] != '/')
		return broken(err, "content");
	if (size >= (size_t)FIXED + len + START)
		memcpy(&t->start, r.end, sizeof t->start);
	if (t->start.crc != start_crc(&t->start))
		t->start = (struct txn_start){ 0 };
	return 0;
}

int head_read(int fd, struct txn *t, struct cs_err *err)
{
	struct cs_buf all CS_BUF_AUTO = CS_BUF(HEAD_MAX + FIXED + START);
	int e = cs_buf_read_fd(&all, fd, "head", err);

	return e < 0 ? e : head_parse(cs_buf_text(&all), all.len, t, err);
}

void txn_about_done(struct txn_about *a)
{
	free(a->workspace);
	free(a->profile);
	free(a->command);
	cs_strv_done(&a->protect);
	cs_strv_done(&a->allow);
	cs_strv_done(&a->hidden);
	*a = (struct txn_about){ 0 };
}

/* ---- time ---- */

static int64_t clock_ms(clockid_t c)
{
	struct timespec t;

	clock_gettime(c, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t head_boot_offset(void)
{
	return clock_ms(CLOCK_REALTIME) - clock_ms(CLOCK_BOOTTIME);
}

uint64_t head_boot_id(void)
{
	char text[64] = "";

	(void)sys_get(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text); /* 0 then: never the same boot */
	return *text ? txn_hash(text) : 0;
}

static struct timespec changed_at(int fd)
{
	struct stat st = { 0 };

	(void)fstat(fd, &st); /* our own open file */
	return st.st_ctim;
}

_Static_assert(sizeof(struct txn_start) <= START, "fits");

void head_put_start(struct txn *t)
{
	off_t at = lseek(t->head, 0, SEEK_END);

	t->start.crc = start_crc(&t->start);
	if (at >= START)
		(void)!pwrite(t->head, &t->start, sizeof t->start, at - START); /* without it a commit sees conflicts everywhere */
}

/* A file that was not changed since the last tick gets that tick's time at its next change; only one
 * that was gets a fine-grained one.  So twice, and once more in case a tick fell between. */
void head_stamp(struct txn *t)
{
	struct timespec before = { 0 }, now = { 0 };

	t->start.boot_offset = head_boot_offset();
	t->start.boot_id = head_boot_id();
	for (int i = 0; i < 3; i++) {
		before = now;
		head_put_start(t);
		now = changed_at(t->head);
	}
	t->coarse = before.tv_sec == now.tv_sec && before.tv_nsec == now.tv_nsec;
	t->floor = (struct txn_stamp){ now.tv_sec, (uint32_t)now.tv_nsec };
	t->start.stamp = t->floor;
	if (t->coarse && ++t->start.stamp.nsec == 1000000000)
		t->start.stamp = (struct txn_stamp){ t->floor.sec + 1, 0 };
	head_put_start(t);
}

void txn_settle(const struct txn *t)
{
	const struct timespec nap = { 0, 300000 };
	struct timespec now;

	if (!t->coarse)
		return;
	do {
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		if (now.tv_sec > t->floor.sec || (now.tv_sec == t->floor.sec && (uint32_t)now.tv_nsec > t->floor.nsec))
			return;
	} while (nanosleep(&nap, NULL) == 0);
}

bool stamp_at_or_after(const struct timespec *c, const struct txn_stamp *s)
{
	return c->tv_sec > s->sec || (c->tv_sec == s->sec && (uint32_t)c->tv_nsec >= s->nsec);
}
