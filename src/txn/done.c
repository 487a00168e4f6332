/* SPDX-License-Identifier: Apache-2.0 */
/* done.c - what earlier commits of the same transaction did.
 *
 * A commit in parts leaves traces that look like somebody's changes: every rename
 * changes the times of a directory and of the file's other hard links, and what
 * the layer still says is deleted is somebody's by now if it is there again.
 */
#include "txn/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct cs_strv *v)
{
	if (v->n)
		qsort(v->v, v->n, sizeof *v->v, by_text);
}

static bool has(const struct cs_strv *v, const char *text)
{
	return v->n && bsearch(&text, v->v, v->n, sizeof *v->v, by_text);
}

static void note(struct done *d, const struct step *s)
{
	const char *slash = strrchr(s->path, '/');

	if (s->kind == STEP_META)
		return;
	cs_strv_take(&d->touched, slash ? cs_strndup(s->path, (size_t)(slash - s->path)) : cs_strdup("."));
	if (s->kind != STEP_PLACE && s->kind != STEP_MKDIR)
		cs_strv_add(&d->paths, s->path);
}

int done_read(const struct txn *t, struct done *ret, struct cs_err *err)
{
	uint32_t parts = commit_parts(t->dir);

	*ret = (struct done){ .undo = openat(t->dir, "undo", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) };
	for (uint32_t i = 0; i < parts; i++) {
		struct journal j;
		char name[24];
		int r;

		commit_part_name(name, i);
		r = journal_read(t->dir, name, &j, err);
		if (r < 0) {
			done_done(ret);
			return r;
		}
		for (size_t k = 0; k < j.n; k++)
			note(ret, &j.v[k]);
		ret->after = j.after;
		journal_done(&j);
	}
	sort(&ret->paths);
	sort(&ret->touched);
	return 0;
}

void done_done(struct done *d)
{
	cs_strv_done(&d->paths);
	cs_strv_done(&d->touched);
	if (d->undo >= 0)
		close(d->undo);
	d->undo = -1;
}

bool done_covers(const struct done *d, const char *path)
{
	CS_FREE char *at = d && d->paths.n ? cs_strdup(path) : NULL;

	for (char *slash = at; slash; slash = strrchr(at, '/')) {
		if (slash != at)
			*slash = 0;
		if (has(&d->paths, at))
			return true;
		if (!strchr(at, '/'))
			break;
	}
	return false;
}

bool done_touched(const struct done *d, const char *path, const struct stat *st)
{
	if (!d || !d->touched.n || stamp_at_or_after(&st->st_mtim, &d->after) || stamp_at_or_after(&st->st_ctim, &d->after))
		return false;
	return S_ISDIR(st->st_mode) ? has(&d->touched, path) : st->st_nlink > 1;
}
