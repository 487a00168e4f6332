/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - from changes and a verdict to a list of steps.
 *
 * A new directory of which everything is taken goes in one rename, however much
 * it holds; so does a deleted one.  Directories of the base that were renamed
 * leave their place first, deepest first, so that chains and swaps of names
 * need no further thought.  Last come the directories' own attributes, because
 * every rename in a directory changes its times.
 */
#include "txn/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* A directory in which something is moved: its name afterwards, and where the base has it now. */
struct parent {
	char *path, *base;
};

struct planner {
	const struct txn *t;
	const struct txn_changes *c;
	const struct txn_verdict *v;
	struct journal *j;
	bool *take;              /* per change */
	uint32_t *taken, *moves; /* sums over the changes before it */
	struct parent *parents;
	size_t n_parents, cap_parents;
	int up;
};

/* ---- what is taken ---- */

static bool is_allowed(const struct txn_verdict *v, const struct txn_change *c)
{
	return txn_hold_can_allow(c->hold) && (cs_strv_has(&v->allow, "*") || judge_listed(&v->allow, c->path));
}

static bool is_asked_for(const struct txn_verdict *v, const struct txn_change *c)
{
	return !v->paths.n || judge_listed(&v->paths, c->path);
}

static bool is_taken(const struct txn_verdict *v, const struct txn_change *c)
{
	if (!is_asked_for(v, c) || (c->hold && !is_allowed(v, c)))
		return false;
	if (!c->conflict || judge_listed(&v->theirs, c->path))
		return true;
	return !judge_listed(&v->ours, c->path) && v->conflicts == TXN_THEIRS;
}

static void clear(struct planner *p, size_t i)
{
	for (size_t k = i; k <= i + p->c->v[i].subtree; k++)
		p->take[k] = false;
}

static void sum(struct planner *p)
{
	for (size_t i = 0; i < p->c->n; i++) {
		p->taken[i + 1] = p->taken[i] + p->take[i];
		p->moves[i + 1] = p->moves[i] + (p->c->v[i].kind == TXN_RENAMED);
	}
}

static bool all_taken(const struct planner *p, size_t i)
{
	size_t end = i + p->c->v[i].subtree + 1;

	return p->taken[end] - p->taken[i] == end - i;
}

static bool any_taken(const struct planner *p, size_t i)
{
	return p->taken[i + p->c->v[i].subtree + 1] != p->taken[i];
}

static bool any_moves(const struct planner *p, size_t i)
{
	return p->moves[i + p->c->v[i].subtree + 1] != p->moves[i];
}

static void choose(struct planner *p)
{
	for (size_t i = 0; i < p->c->n; i++)
		p->take[i] = is_taken(p->v, &p->c->v[i]);
	sum(p);
	/* These cannot be taken in part. */
	for (size_t i = 0; i < p->c->n; i++) {
		const struct txn_change *c = &p->c->v[i];

		if ((c->kind == TXN_TYPE && (S_ISDIR(c->new.mode) ? !p->take[i] : !all_taken(p, i))) || (c->kind == TXN_RENAMED && !p->take[i]))
			clear(p, i);
	}
	sum(p);
}

static bool is_quiet(const struct txn_change *c)
{
	return c->kind == TXN_CHANGED && S_ISDIR(c->new.mode) && !(c->differs & ~(unsigned)TXN_TIMES);
}

static void tally(const struct planner *p, struct txn_outcome *out)
{
	for (size_t i = 0; i < p->c->n; i++) {
		const struct txn_change *c = &p->c->v[i];

		if (is_quiet(c))
			continue;
		if (!p->take[i]) {
			bool held = is_asked_for(p->v, c) && c->hold && !is_allowed(p->v, c);

			out->held += held;
			out->left += !held;
			continue;
		}
		out->added += c->kind == TXN_ADDED;
		out->deleted += c->kind == TXN_DELETED;
		out->changed += c->kind != TXN_ADDED && c->kind != TXN_DELETED;
		if (S_ISREG(c->new.mode))
			out->bytes += c->new.size;
	}
}

/* ---- steps ---- */

static struct step_file file_of(const struct txn_side *s)
{
	return (struct step_file){ s->ino, S_ISDIR(s->mode) ? s->mode & 07777 : s->size, { s->mtime, s->mtime_ns } };
}

static char *parent_path(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? cs_strndup(path, (size_t)(slash - path)) : cs_strdup(".");
}

static void note_parent(struct planner *p, char *take_path, char *take_base)
{
	if (p->n_parents && !strcmp(p->parents[p->n_parents - 1].path, take_path) && !strcmp(p->parents[p->n_parents - 1].base, take_base)) {
		free(take_path);
		free(take_base);
		return;
	}
	if (p->n_parents == p->cap_parents) {
		size_t cap = p->cap_parents ? p->cap_parents * 2 : 32;
		struct parent *grown = cs_calloc(cap, sizeof *grown);

		if (p->n_parents)
			memcpy(grown, p->parents, p->n_parents * sizeof *grown);
		free(p->parents);
		p->parents = grown;
		p->cap_parents = cap;
	}
	p->parents[p->n_parents++] = (struct parent){ take_path, take_base };
}

static struct step *emit(struct planner *p, enum step_kind kind, const struct txn_change *c)
{
	struct step *s = journal_add(p->j, kind, c->path);

	s->was = file_of(&c->old);
	s->is = file_of(&c->new);
	s->marked = c->new.mode && (S_ISDIR(c->new.mode) || c->attrs & ATTR_MARK) ? c->new.mode : 0; /* of a directory: something in it, perhaps */
	note_parent(p, parent_path(c->path), parent_path(c->base ? c->base : c->path));
	return s;
}

static int read_meta(int dir, const char *name, struct step_meta *m)
{
	struct cs_buf x CS_BUF_AUTO = CS_BUF(TXN_XATTR_MAX);
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || xattrs_read(dir, name, &x) < 0)
		return -1;
	*m = (struct step_meta){ st.st_mode & 07777, st.st_uid, st.st_gid, { st.st_atim.tv_sec, (uint32_t)st.st_atim.tv_nsec },
				 { st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec }, NULL, (uint32_t)x.len };
	m->xattrs = cs_calloc(1, x.len + 1);
	if (x.len)
		memcpy(m->xattrs, x.data, x.len);
	return 0;
}

static int make_directory(struct planner *p, const struct txn_change *c, struct cs_err *err)
{
	struct step *s = emit(p, STEP_MKDIR, c);
	CS_FD int dir = act_open_dir(p->up, c->path);

	if (dir < 0 || read_meta(dir, ".", &s->new) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "read a new directory");
	return 0;
}

static void leave_places(struct planner *p)
{
	struct cs_strv from = { 0 };

	for (size_t i = 0; i < p->c->n; i++)
		if (p->c->v[i].kind == TXN_RENAMED && p->take[i])
			from.n++;
	for (size_t left = from.n; left; left--) {
		const struct txn_change *last = NULL;

		for (size_t i = 0; i < p->c->n; i++) { /* the greatest that is not there yet: few are ever renamed */
			const struct txn_change *c = &p->c->v[i];
			const char *bound = p->j->n ? p->j->v[p->j->n - 1].path : NULL;

			if (c->kind == TXN_RENAMED && p->take[i] && (!bound || strcmp(c->from, bound) < 0) &&
			    (!last || strcmp(c->from, last->from) > 0))
				last = c;
		}
		if (!last)
			return;
		journal_add(p->j, STEP_TAKE, last->from)->was = file_of(&last->old);
		note_parent(p, parent_path(last->from), parent_path(last->from));
	}
}

static void put_in_place(struct planner *p, const struct txn_change *c)
{
	for (size_t i = 0; i < p->j->n; i++) {
		const struct step *take = &p->j->v[i];
		struct step *s;

		if (take->kind != STEP_TAKE || strcmp(take->path, c->from) != 0)
			continue;
		uint32_t n = take->n;

		s = emit(p, STEP_PLACE, c);
		s->n = n;
		s->is = s->was;
		note_parent(p, cs_strdup(c->path), cs_strdup(c->from));
		return;
	}
}

static int walk(struct planner *p, size_t i, size_t end, struct cs_err *err)
{
	for (; i < end; i += p->c->v[i].subtree + 1) {
		const struct txn_change *c = &p->c->v[i];
		bool dir = S_ISDIR(c->kind == TXN_DELETED ? c->old.mode : c->new.mode);
		bool whole = all_taken(p, i) && !any_moves(p, i), inside = false;
		int r = 0;

		if (!any_taken(p, i))
			continue;
		switch (c->kind) {
		case TXN_DELETED:
			if (whole)
				(void)emit(p, STEP_TAKE, c);
			inside = !whole;
			break;
		case TXN_ADDED:
			if (whole)
				(void)emit(p, STEP_PUT, c);
			else if (dir)
				r = make_directory(p, c, err);
			inside = !whole && dir;
			break;
		case TXN_TYPE:
			(void)emit(p, whole ? STEP_SWAP : STEP_TAKE, c);
			if (!whole)
				r = make_directory(p, c, err);
			inside = !whole;
			break;
		case TXN_CHANGED:
			if (!dir)
				(void)emit(p, STEP_SWAP, c);
			else if (p->take[i])
				note_parent(p, cs_strdup(c->path), cs_strdup(c->base ? c->base : c->path));
			inside = dir;
			break;
		case TXN_RENAMED:
			put_in_place(p, c);
			inside = true;
			break;
		}
		if (r == 0 && inside)
			r = walk(p, i + 1, i + 1 + c->subtree, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- directories that stay ---- */

static int by_path(const void *a, const void *b)
{
	const struct parent *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : strcmp(x->base, y->base);
}

/* Is the directory itself among the changes, and taken? */
static bool takes_meta(const struct planner *p, const char *path)
{
	size_t lo = 0, hi = p->c->n;

	/* Not sorted as strings ("a.b" before "a/b"), so walk down through the subtrees. */
	while (lo < hi) {
		const struct txn_change *c = &p->c->v[lo];

		if (!strcmp(c->path, path) && c->kind != TXN_DELETED)
			return p->take[lo];
		if (c->kind != TXN_DELETED && c->subtree && judge_listed(&(struct cs_strv){ .v = (char *[]){ c->path }, .n = 1 }, path)) {
			hi = lo + 1 + c->subtree;
			lo++;
		} else {
			lo += c->subtree + 1;
		}
	}
	return false;
}

/* The rest of path beneath dir; NULL if it is not beneath it. */
static const char *beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/') ? path + n : NULL;
}

/* Where a directory of the base stands afterwards: one that is moved takes it along.  NULL: it goes with a deleted one, or something
 * else comes in its place.  The caller's to free. */
static char *ends_up_at(const struct planner *p, const char *base)
{
	char *now = cs_strdup(base); /* where it is after each step; NULL: in the undo set, as `rest` of n */
	CS_FREE char *rest = NULL;
	uint64_t n = 0;

	/* Names are those of the moment: once another directory stands in its place, they are that one's. */
	for (size_t i = 0; p->moves[p->c->n] && i < p->j->n; i++) {
		const struct step *s = &p->j->v[i];
		const char *below = now ? beneath(now, s->path) : NULL;

		if (below && s->kind == STEP_SWAP) {
			free(now);
			return NULL;
		}
		if (below && s->kind == STEP_TAKE) {
			free(rest);
			rest = cs_strdup(below);
			n = s->n;
			free(now);
			now = NULL;
		} else if (!now && s->kind == STEP_PLACE && s->n == n) {
			now = cs_printf("%s%s", s->path, rest);
		}
	}
	return now;
}

static void copy_meta(struct step_meta *to, const struct step_meta *from)
{
	free(to->xattrs);
	*to = *from;
	to->xattrs = cs_calloc(1, from->xattrs_len + 1);
	memcpy(to->xattrs, from->xattrs, from->xattrs_len);
}

/* The way back: as it is now, where it stands now. */
static int settle_back(struct planner *p, const char *path, struct cs_err *err)
{
	CS_FD int base = act_open_dir(p->t->ws, path);
	struct stat st;
	struct step *s;

	if (base < 0)
		return 0; /* new */
	s = journal_add(p->j, STEP_META, path);
	if (fstat(base, &st) < 0 || read_meta(base, ".", &s->old) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "read a directory's attributes");
	s->was = (struct step_file){ .ino = st.st_ino, .size = st.st_mode & 07777 };
	copy_meta(&s->new, &s->old);
	return 0;
}

/* The way forth; its step holds both where it keeps its name. */
static int settle_forth(struct planner *p, const struct parent *d, struct step *s, struct cs_err *err)
{
	CS_FD int up = act_open_dir(p->up, d->path), base = act_open_dir(p->t->ws, d->base);
	struct stat st, there;
	struct step_meta old;

	if (up < 0 || base < 0)
		return 0; /* new, or gone: it has no attributes to be kept */
	if (!s) {
		s = journal_add(p->j, STEP_META, d->path);
		if (read_meta(base, ".", &s->old) < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "read a directory's attributes");
	}
	old = s->old;
	free(s->new.xattrs);
	if (fstat(up, &st) < 0 || fstat(base, &there) < 0 || read_meta(up, ".", &s->new) < 0) {
		s->new.xattrs = NULL;
		return cs_fail(err, CS_E_SYSTEM, errno, "read a directory's attributes");
	}
	s->is = (struct step_file){ .ino = there.st_ino, .size = st.st_mode & 07777 };
	if (!takes_meta(p, d->path)) { /* only its times: what the program saw */
		const struct txn_stamp atime = s->new.atime, mtime = s->new.mtime;

		copy_meta(&s->new, &old);
		s->new.atime = atime;
		s->new.mtime = mtime;
	}
	return 0;
}

static int settle_directory(struct planner *p, const struct parent *d, struct cs_err *err)
{
	bool stays = !strcmp(d->path, d->base);
	size_t n = p->j->n;
	int r = settle_back(p, d->base, err);
	CS_FREE char *there = ends_up_at(p, d->base);

	if (r < 0 || !there || strcmp(there, d->path) != 0)
		return r; /* what stands there afterwards is another one */
	return settle_forth(p, d, stays && p->j->n > n ? &p->j->v[n] : NULL, err);
}

static int settle_directories(struct planner *p, struct cs_err *err)
{
	if (p->n_parents)
		qsort(p->parents, p->n_parents, sizeof *p->parents, by_path);
	for (size_t i = 0; i < p->n_parents; i++) {
		int r;

		if (i && !by_path(&p->parents[i], &p->parents[i - 1]))
			continue;
		r = settle_directory(p, &p->parents[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

int plan_make(const struct txn *t, const struct txn_changes *c, const struct txn_verdict *v, struct journal *ret,
	      struct txn_outcome *out, struct cs_err *err)
{
	CS_FREE bool *take = cs_calloc(c->n + 1, sizeof *take);
	CS_FREE uint32_t *taken = cs_calloc(c->n + 1, sizeof *taken), *moves = cs_calloc(c->n + 1, sizeof *moves);
	CS_FD int up = openat(t->dir, "up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct planner p = { .t = t, .c = c, .v = v, .j = ret, .take = take, .taken = taken, .moves = moves, .up = up };
	int r;

	*ret = (struct journal){ 0 };
	*out = (struct txn_outcome){ 0 };
	if (up < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "open the layer");
	choose(&p);
	tally(&p, out);
	leave_places(&p);
	r = walk(&p, 0, c->n, err);
	if (r == 0)
		r = settle_directories(&p, err);
	for (size_t i = 0; i < p.n_parents; i++) {
		free(p.parents[i].path);
		free(p.parents[i].base);
	}
	free(p.parents);
	return r;
}

/* ---- before anything is moved ---- */

static int clean_names(int dir, const char *name, const char *names, ssize_t len)
{
	for (const char *n = names; n < names + len; n += strlen(n) + 1) {
		size_t prefix = strlen(xattrs_prefix());

		if (strncmp(n, xattrs_prefix(), prefix) != 0)
			continue;
		if (!xattrs_is_overlay(n)) { /* the program's own, allowed by name: by its real name */
			char real[256], value[4096];
			ssize_t size = xattrs_get(dir, name, n, value, sizeof value);

			snprintf(real, sizeof real, "%.*s%s", (int)(prefix - strlen("overlay.")), n, n + prefix);
			if (size < 0 || act_setxattr_at(dir, name, real, value, (size_t)size) < 0)
				return -1;
		}
		if (act_delxattr_at(dir, name, n) < 0 && errno != ENODATA)
			return -1;
	}
	return 0;
}

/* Not inlined: its buffers, once for every directory on the way down, would be more than a stack. */
static __attribute__((noinline)) int clean_one(int dir, const char *name)
{
	char names[4096];
	ssize_t len = xattrs_list(dir, name, names, sizeof names);

	if (len < 0 && errno != ENOTSUP)
		return -1;
	return clean_names(dir, name, names, len);
}

/* Attributes of a file can be changed by who may write it. */
static int clean_readonly(int dir, const char *name, mode_t mode)
{
	int r, sys;

	if (fchmodat(dir, name, (mode & 07777) | 0600, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	r = clean_one(dir, name);
	sys = errno;
	if (fchmodat(dir, name, mode & 07777, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	errno = sys;
	return r;
}

static int clean(int dir, const char *name, mode_t mode, unsigned depth)
{
	if (S_ISLNK(mode))
		return 0; /* overlayfs marks none */
	if (clean_one(dir, name) < 0 && (errno != EACCES || clean_readonly(dir, name, mode) < 0))
		return -1;
	if (S_ISDIR(mode)) {
		CS_FD int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		struct cs_strv inside = { 0 };
		int r = sub < 0 || depth > TXN_DEPTH_MAX ? -1 : scan_names(sub, &inside);

		for (size_t i = 0; r == 0 && i < inside.n; i++) {
			struct stat st;

			r = fstatat(sub, inside.v[i], &st, AT_SYMLINK_NOFOLLOW);
			if (r == 0)
				r = clean(sub, inside.v[i], st.st_mode, depth + 1);
		}
		cs_strv_done(&inside);
		return r;
	}
	return 0;
}

int plan_stage(const struct txn *t, const struct journal *j, struct cs_err *err)
{
	CS_FD int up = openat(t->dir, "up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct near_dir near = { .root = up, .fd = -1 };
	int r = 0;

	if (up < 0 || (act_mkdir(t->dir, "undo", 0700) < 0 && errno != EEXIST))
		return cs_fail(err, CS_E_SYSTEM, errno, "make room for the undo set");
	for (size_t i = 0; r == 0 && i < j->n; i++) {
		const struct step *s = &j->v[i];
		const char *name;
		char shown[256];
		int dir;

		if ((s->kind != STEP_PUT && s->kind != STEP_SWAP) || !s->marked)
			continue;
		dir = near_parent(&near, s->path, &name);
		if (dir < 0 || clean(dir, name, s->marked, 0) < 0)
			r = cs_fail(err, CS_E_SYSTEM, errno, "make '%s' ready", cs_escape_to(shown, sizeof shown, s->path));
	}
	near_forget(&near);
	return r;
}
