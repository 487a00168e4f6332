/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff_expand.c - what a renamed directory holds, file by file.
 *
 * A change set names a directory that was renamed as a whole once.  git knows
 * only files: in a patch those beneath it are renamed one by one.
 */
#include "cli/cmd_diff.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { DEPTH_MAX = 2000 };

/* An old path that the list has already. */
struct known {
	const char *path;
	bool closed; /* what is beneath it, too */
};

struct expander {
	struct diff *d;
	struct txn_change *v; /* the longer list */
	size_t n, cap;
	struct known *known;  /* sorted */
	size_t n_known;
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->path, ((const struct known *)b)->path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void append(struct expander *e, const struct txn_change *c)
{
	if (e->n == e->cap) {
		struct txn_change *grown = cs_calloc(e->cap * 2 + 64, sizeof *grown);

		if (e->n)
			memcpy(grown, e->v, e->n * sizeof *grown);
		free(e->v);
		e->v = grown;
		e->cap = e->cap * 2 + 64;
	}
	e->v[e->n++] = *c;
}

static bool wants(const struct txn_change *c)
{
	return c->kind == TXN_RENAMED && S_ISDIR(c->new.mode);
}

static int list_old(const struct diff *d, const char *path, struct cs_strv *ret, int *ret_dir)
{
	const struct txn_change at = { .path = (char *)(uintptr_t)path, .kind = TXN_DELETED };
	CS_FD int fd = txn_open_old(d->t, &at);
	CS_FD int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	CS_DIR DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	if (!dir)
		return -1;
	(void)CS_TAKE_FD(copy); /* the stream's now */
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			cs_strv_add(ret, e->d_name);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof *ret->v, by_name);
	*ret_dir = CS_TAKE_FD(fd);
	return 0;
}

static void walk(struct expander *e, const char *from, const char *to, unsigned depth);

/* Of the directories the topmost is enough. */
static void one(struct expander *e, const struct stat *st, const char *from, const char *to, unsigned depth)
{
	const struct known key = { .path = from }, *k = bsearch(&key, e->known, e->n_known, sizeof key, by_path);
	struct txn_change c = { .kind = TXN_RENAMED };

	if (k && (k->closed || !S_ISDIR(st->st_mode)))
		return;
	if (S_ISDIR(st->st_mode)) {
		walk(e, from, to, depth);
		return;
	}
	c.old = (struct txn_side){ .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid, .size = (uint64_t)st->st_size,
				   .mtime = st->st_mtim.tv_sec, .ino = st->st_ino };
	c.new = c.old;
	c.path = cs_strdup(to);
	c.from = cs_strdup(from);
	append(e, &c);
}

static void walk(struct expander *e, const char *from, const char *to, unsigned depth)
{
	struct cs_strv names = { 0 };
	CS_FD int dir = -1;
	char shown[256];

	if (depth > DEPTH_MAX || list_old(e->d, from, &names, &dir) < 0) {
		say_error("cannot list '%s': %s", cs_escape_to(shown, sizeof shown, from), depth > DEPTH_MAX ? "too deep" : strerror(errno));
		e->d->failed = true;
	}
	for (size_t i = 0; i < names.n; i++) {
		CS_FREE char *old = cs_printf("%s/%s", from, names.v[i]), *new = cs_printf("%s/%s", to, names.v[i]);
		struct stat st;

		if (fstatat(dir, names.v[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			one(e, &st, old, new, depth + 1);
	}
	cs_strv_done(&names);
}

static void note_known(struct expander *e, const struct txn_changes *c)
{
	e->known = cs_calloc(c->n, sizeof *e->known);
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].kind != TXN_ADDED)
			e->known[e->n_known++] = (struct known){ diff_old_path(&c->v[i]), c->v[i].kind != TXN_CHANGED };
	qsort(e->known, e->n_known, sizeof *e->known, by_path);
}

void diff_expand(struct diff *d)
{
	struct txn_changes *c = &d->changes;
	struct expander e = { .d = d };
	size_t found = 0;

	for (size_t i = 0; i < c->n; i++)
		found += wants(&c->v[i]);
	if (!found || d->form != DIFF_PATCH)
		return;
	note_known(&e, c);
	for (size_t i = 0; i < c->n; i++) {
		const struct txn_change *x = &c->v[i];

		append(&e, x);
		if (wants(x))
			walk(&e, diff_old_path(x), x->path, 0);
	}
	free(e.known);
	free(c->v);
	c->v = e.v;
	c->n = e.n;
}
