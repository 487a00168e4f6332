/* SPDX-License-Identifier: Apache-2.0 */
/* origin.c - once the list of changes is whole: which files were only renamed, or only linked to. */
#include "txn/internal.h"

#include <string.h>

struct after {
	const struct scan_layers *l;
	const struct txn_start *start;
	struct txn_changes *out;
};

/* ---- renamed files ----
 *
 * A file that the program renamed carries its origin, too, and has no base at its new place.  It is
 * one of those whose old place the list holds: the origin ends in the handle of the base's file. */

struct handle {
	unsigned len;
	unsigned char bytes[MAX_HANDLE_SZ];
};

static bool get_handle(int root, const char *path, struct handle *ret)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = { .h = { .handle_bytes = MAX_HANDLE_SZ } };
	const char *name;
	int mount;
	CS_FD int dir = act_parent(root, path, &name);

	if (dir < 0 || name_to_handle_at(dir, name, &u.h, &mount, 0) < 0)
		return false;
	ret->len = u.h.handle_bytes;
	memcpy(ret->bytes, u.h.f_handle, ret->len);
	return true;
}

static int by_bytes(const void *a, const void *b)
{
	const struct handle *x = a, *y = b;

	return x->len != y->len ? (x->len < y->len ? -1 : 1) : memcmp(x->bytes, y->bytes, x->len);
}

static bool ends_in_one(const unsigned char *origin, size_t len, const struct handle *v, size_t n)
{
	struct handle key;

	key.len = n ? v[0].len : 0; /* all of one file system: one length, but for directories */
	if (!key.len || key.len > len)
		return false;
	memcpy(key.bytes, origin + len - key.len, key.len);
	return bsearch(&key, v, n, sizeof *v, by_bytes) != NULL;
}

/* Nothing was removed from a directory that was not changed; if it is not there, look at the one above it. */
static bool parent_is_unchanged(const struct after *s, const struct txn_change *c)
{
	CS_FREE char *at = cs_strdup(c->base ? c->base : c->path);

	for (;;) {
		char *slash = strrchr(at, '/');
		const char *dir = slash ? at : ".";
		struct stat st;
		CS_FD int fd = -1;

		if (slash)
			*slash = 0;
		fd = act_open_dir(s->l->lower[0], dir);
		if (fd >= 0)
			return fstat(fd, &st) == 0 && (!stamp_at_or_after(&st.st_ctim, &s->start->stamp) || done_touched(s->l->done, dir, &st));
		if (!slash)
			return false;
	}
}

/* In a user namespace the kernel writes no handle: a file that was only renamed is known by its size and
 * time, and stands among the handles as one that no file system has. */
static struct handle look_of(uint64_t size, int64_t mtime, uint32_t mtime_ns)
{
	struct handle h = { .len = MAX_HANDLE_SZ };

	memcpy(h.bytes, &size, sizeof size);
	memcpy(h.bytes + 8, &mtime, sizeof mtime);
	memcpy(h.bytes + 16, &mtime_ns, sizeof mtime_ns);
	return h;
}

static bool looks_like_one(const struct txn_side *f, const struct handle *v, size_t n)
{
	struct handle key = look_of(f->size, f->mtime, f->mtime_ns);

	return n && bsearch(&key, v, n, sizeof *v, by_bytes);
}

static void clear_renamed(struct after *s, const struct handle *v, size_t n)
{
	for (size_t i = 0; i < s->out->n; i++) {
		struct txn_change *c = &s->out->v[i];
		const char *name;
		CS_FD int dir = c->conflict == TXN_REMOVED ? act_parent(s->l->upper, c->path, &name) : -1;
		char origin[256];
		ssize_t len = dir < 0 ? -1 : layer_xattr(dir, name, "origin", origin, sizeof origin);

		if (len >= 0 && !S_ISDIR(c->new.mode) && parent_is_unchanged(s, c))
			c->conflict = TXN_CLEAN;
		else if (len > 0 ? ends_in_one((unsigned char *)origin, (size_t)len, v, n) : len == 0 && !S_ISDIR(c->new.mode) && looks_like_one(&c->new, v, n))
			c->conflict = TXN_CLEAN;
	}
}

struct handles {
	struct handle *v;
	size_t n, cap;
};

static void add_handle(struct handles *h, int root, const char *path)
{
	struct stat st;
	const char *name;
	CS_FD int dir = act_parent(root, path, &name);

	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (h->n + 2 > h->cap) {
		size_t cap = h->cap ? h->cap * 2 : 64;
		struct handle *grown = cs_calloc(cap, sizeof *grown);

		if (h->n)
			memcpy(grown, h->v, h->n * sizeof *grown);
		free(h->v);
		h->v = grown;
		h->cap = cap;
	}
	h->v[h->n++] = look_of((uint64_t)st.st_size, st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec);
	h->n += get_handle(root, path, &h->v[h->n]);
}

/* What an earlier commit of the same transaction took away. */
static void add_handles_in(struct handles *h, int dir, unsigned depth)
{
	struct cs_strv names = { 0 };

	if (depth > TXN_DEPTH_MAX || scan_names(dir, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		CS_FD int sub = openat(dir, names.v[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (sub >= 0)
			add_handles_in(h, sub, depth + 1);
		else
			add_handle(h, dir, names.v[i]);
	}
	cs_strv_done(&names);
}

void origin_find_renamed(const struct scan_layers *l, const struct txn_start *start, struct txn_changes *list)
{
	struct after all = { l, start, list }, *s = &all;
	struct handles h = { 0 };
	bool any = false;

	for (size_t i = 0; i < s->out->n; i++)
		any |= s->out->v[i].conflict == TXN_REMOVED;
	if (!any)
		return;
	for (size_t i = 0; i < s->out->n; i++) {
		const struct txn_change *c = &s->out->v[i];

		if (c->old.mode && !S_ISDIR(c->old.mode))
			add_handle(&h, s->l->lower[0], c->base ? c->base : c->path);
	}
	if (s->l->done && s->l->done->undo >= 0)
		add_handles_in(&h, s->l->done->undo, 0);
	if (h.n)
		qsort(h.v, h.n, sizeof *h.v, by_bytes);
	clear_renamed(s, h.v, h.n);
	free(h.v);
}

/* ---- files that were linked to and not changed otherwise ---- */

static int by_inode(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Is it one of two? */
static bool is_twice(const uint64_t *inodes, size_t n, uint64_t ino)
{
	const uint64_t *at = n ? bsearch(&ino, inodes, n, sizeof *inodes, by_inode) : NULL;

	return at && ((at > inodes && at[-1] == ino) || (at + 1 < inodes + n && at[1] == ino));
}

/* A file with a second name that is not in the list (layers share files, too) is not a change. */
void origin_drop_unlinked(struct txn_changes *c)
{
	CS_FREE uint64_t *inodes = cs_calloc(c->n + 1, sizeof *inodes);
	CS_FREE uint32_t *kept = cs_calloc(c->n + 1, sizeof *kept);
	CS_FREE bool *drop = cs_calloc(c->n + 1, sizeof *drop);
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (S_ISREG(c->v[i].new.mode))
			inodes[n++] = c->v[i].new.ino;
	qsort(inodes, n, sizeof *inodes, by_inode);
	for (size_t i = 0; i < c->n; i++) {
		drop[i] = c->v[i].differs == TXN_LINKS && !is_twice(inodes, n, c->v[i].new.ino);
		kept[i + 1] = kept[i] + !drop[i];
	}
	n = 0;
	for (size_t i = 0; i < c->n; i++) {
		struct txn_change x = c->v[i];

		if (drop[i]) {
			free(x.path);
			free(x.base);
			continue;
		}
		x.subtree = kept[i + 1 + x.subtree] - kept[i + 1];
		c->v[n++] = x;
	}
	c->n = n;
}
