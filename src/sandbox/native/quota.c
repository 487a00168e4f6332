/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - what a layer on disk takes up.
 *
 * No quota of the file system can be counted on, so it is sampled, by the
 * caller.  A walk through the store says exactly what it holds, but is dear.
 * The file system's free space is cheap: by as much as it has shrunk since the
 * last walk the store can have grown, and only when that comes near the limit
 * is the store walked again.  Others may have written that, or may have freed
 * as much as the program wrote; so it is also walked from time to time.
 *
 * The walk is among hostile files.  What cannot be read (mode 0, rootless) or
 * lies too deep makes it incomplete; then all that the file system lost counts
 * as the program's, for somebody who hides files has no claim to the doubt.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { DEPTH_MAX = 128, PART = 1 << 16 };

struct tally {
	uint64_t bytes, parts;        /* parts: of inodes, PART to one */
	uint64_t max_bytes, max_parts; /* beyond these nothing needs to be known exactly */
	bool incomplete;
};

/* All links of a file lie in the store, so each counts for its share: no need to remember which were seen. */
static void count(struct tally *t, const struct stat *st)
{
	uint64_t links = S_ISDIR(st->st_mode) || st->st_nlink < 1 ? 1 : st->st_nlink;

	t->bytes += (uint64_t)st->st_blocks * 512 / links;
	t->parts += (PART + links - 1) / links;
}

static bool full(const struct tally *t)
{
	return t->bytes > t->max_bytes || t->parts > t->max_parts;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by DEPTH_MAX */
static void walk(struct tally *t, int parent, const char *name, int depth)
{
	CS_FD int fd = depth > DEPTH_MAX ? -1 : openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CS_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		t->incomplete |= depth > DEPTH_MAX || errno != ENOENT;
		return;
	}
	(void)CS_TAKE_FD(fd);
	while (!full(t) && (e = readdir(d))) {
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		count(t, &st);
		if (S_ISDIR(st.st_mode))
			walk(t, dirfd(d), e->d_name, depth + 1);
	}
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static bool look_free(const struct native_quota *q, struct native_free *ret)
{
	struct statfs fs;

	if (fstatfs(q->dir, &fs) < 0)
		return false;
	/* What is dirty and not allocated yet is taken off already (ext4, xfs, btrfs). */
	*ret = (struct native_free){ (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize, fs.f_ffree };
	return true;
}

static void walk_store(struct native_quota *q, const struct native_free *now, const struct native_room *room, pid_t init)
{
	struct tally t = { .max_bytes = room->bytes, .max_parts = room->inodes > UINT64_MAX / PART ? UINT64_MAX : room->inodes * PART }, work;
	uint64_t start = native_now(), hidden = less(q->free.bytes, now->bytes), hidden_inodes = less(q->free.inodes, now->inodes);

	walk(&t, q->dir, "up", 0);
	work = t;
	walk(&work, q->dir, "wk", 0); /* rootless nobody may read all of it, and nothing stays there */
	t.bytes = work.bytes;
	t.parts = work.parts;
	if (init > 0 && !full(&t))
		t.bytes += native_usage_unlinked(init);
	if (t.incomplete && t.bytes < q->used.bytes + hidden)
		t.bytes = q->used.bytes + hidden;
	if (t.incomplete && t.parts / PART < q->used.inodes + hidden_inodes)
		t.parts = (q->used.inodes + hidden_inodes) * PART;
	q->used = (struct native_room){ t.bytes, (t.parts + PART / 2) / PART };
	q->free = *now; /* of before the walk: what came during it counts next time */
	q->walked_ns = native_now();
	q->took_ns = q->walked_ns - start;
	q->known = true;
}

/* Has so much gone that the rest could be used up by the next look? */
static bool near(uint64_t shrunk, uint64_t rest)
{
	return shrunk > rest / 10 * 8;
}

static bool due(const struct native_quota *q, const struct native_free *now, const struct native_room *rest, bool last)
{
	uint64_t since = native_now() - q->walked_ns, pause = q->took_ns * 20;
	bool changed = !q->known || now->bytes != q->free.bytes || now->inodes != q->free.inodes;

	if (!changed || last || !q->known)
		return changed;
	if (near(less(q->free.bytes, now->bytes), rest->bytes) || near(less(q->free.inodes, now->inodes), rest->inodes))
		return since >= q->took_ns; /* at most half of our time */
	return since >= (pause > 1000000000u ? pause : 1000000000u);
}

/* What is only supposed never reaches the limit by itself. */
static uint64_t supposed(uint64_t shrunk, uint64_t rest, uint64_t slack)
{
	uint64_t most = less(rest, slack);

	return shrunk < most ? shrunk : most;
}

void native_quota_add(struct native_quota *q, const struct native_room *limit, pid_t init, bool last, struct sandbox_usage *u)
{
	struct native_room room = { less(limit->bytes, u->disk_now + q->below.bytes), less(limit->inodes, u->inodes_now + q->below.inodes) };
	struct native_room rest = { less(room.bytes, q->used.bytes), less(room.inodes, q->used.inodes) };
	struct native_free now;

	u->disk_now += q->below.bytes;
	u->inodes_now += q->below.inodes;
	if (q->dir < 0 || !look_free(q, &now))
		return;
	if (due(q, &now, &rest, last)) {
		walk_store(q, &now, &room, init);
		u->disk_now += q->used.bytes;
		u->inodes_now += q->used.inodes;
		return;
	}
	u->disk_now += q->used.bytes + supposed(less(q->free.bytes, now.bytes), rest.bytes, NATIVE_DISK_SLACK);
	u->inodes_now += q->used.inodes + supposed(less(q->free.inodes, now.inodes), rest.inodes, 1);
}

static bool is_empty(int dir, const char *name)
{
	CS_FD int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CS_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int names = 0;

	if (!d)
		return false;
	(void)CS_TAKE_FD(fd);
	while (names < 3 && readdir(d))
		names++;
	return names == 2; /* . and .. */
}

/* What the topmost layer holds stays counted once it is a lower one. */
static void freeze(struct native_quota *q)
{
	const struct native_room all = { UINT64_MAX, UINT64_MAX };
	struct sandbox_usage u = { 0 };
	struct stat st;

	q->below = (struct native_room){ 0 };
	native_quota_add(q, &all, -1, true, &u);
	if (q->dir < 0 || fstatat(q->dir, "up", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	q->frozen = realloc(q->frozen, (q->n_frozen + 1) * sizeof *q->frozen);
	if (!q->frozen)
		abort();
	q->frozen[q->n_frozen++] = (struct native_frozen){ st.st_dev, st.st_ino, q->used };
}

/* What is below: of the frozen ones those that are among the lowers.  The others were given up, or merged. */
static void count_below(struct native_quota *q, const int *lowers, size_t n_lowers)
{
	CS_FREE bool *below = cs_calloc(q->n_frozen + 1, sizeof *below);
	size_t kept = 0;

	for (size_t i = 0; i < n_lowers; i++) {
		struct stat st;

		for (size_t k = fstat(lowers[i], &st) < 0 ? q->n_frozen : 0; k < q->n_frozen; k++)
			below[k] |= q->frozen[k].dev == st.st_dev && q->frozen[k].ino == st.st_ino;
	}
	for (size_t k = 0; k < q->n_frozen; k++) {
		if (!below[k])
			continue;
		q->below.bytes += q->frozen[k].used.bytes;
		q->below.inodes += q->frozen[k].used.inodes;
		q->frozen[kept++] = q->frozen[k];
	}
	q->n_frozen = kept;
}

static int open_top(struct native_quota *q, int store);

void native_quota_push(struct sandbox *s, size_t bind, int store, const int *lowers, size_t n_lowers)
{
	for (size_t i = 0; i < s->n_quotas; i++) {
		struct native_quota *q = &s->quotas[i];

		if (q->bind != bind)
			continue;
		freeze(q);
		count_below(q, lowers, n_lowers);
		close(q->dir);
		(void)open_top(q, store); /* without a descriptor it counts what is below */
	}
}

static int open_top(struct native_quota *q, int store)
{
	q->dir = fcntl(store, F_DUPFD_CLOEXEC, 3);
	q->used = (struct native_room){ 0 };
	q->walked_ns = native_now();
	q->took_ns = 0;
	if (q->dir < 0 || !look_free(q, &q->free))
		return -1;
	q->known = is_empty(q->dir, "up");
	return 0;
}

int native_quota_open(struct native_quota *q, size_t bind, int store)
{
	*q = (struct native_quota){ .bind = bind };
	return open_top(q, store);
}

void native_quota_done(struct native_quota *q)
{
	if (q->dir >= 0)
		close(q->dir);
	q->dir = -1;
	free(q->frozen);
	q->frozen = NULL;
}
