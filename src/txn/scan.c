/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - from a layer to a list of changes.
 *
 * Walks the upper layer beside the lower ones, by descriptor, following no
 * symlink.  What was copied up and not changed is left out.  A deleted
 * directory is listed with all it held.
 *
 * A renamed directory of the base (root's overlayfs only) carries a redirect:
 * the place in the base where its content lies.  Those are found first, because
 * the place they left must then count as empty.
 */
#include "txn/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

struct scanner {
	const struct scan_layers *l;
	const struct txn_start *start;
	struct txn_changes *out;
	size_t cap;
	struct cs_strv moved;   /* places in the base that renamed directories left */
	bool have_moved;        /* they were looked for */
	bool clock_back;
	struct cs_buf path, base; /* of the directory we are in, "" at the top, else ending in '/' */
	struct cs_err *err;
};

/* One directory: its descriptors in every layer, -1 where it is not. */
struct place {
	int upper;
	int *lower;
	bool opaque;
	unsigned depth;
};

/* One name in the upper layer, looked at once. */
struct found {
	const char *name;
	struct stat st;
	unsigned attrs; /* ATTR_*: without ATTR_MARK there is no use in asking for a mark */
};

static int fail(struct scanner *s, const char *what, const char *name)
{
	char shown[256];

	return cs_fail(s->err, CS_E_SYSTEM, errno, "%s '%s%s'", what, cs_buf_text(&s->path), cs_escape_to(shown, sizeof shown, name));
}

bool layer_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

ssize_t layer_xattr(int dir, const char *name, const char *what, char *buf, size_t size)
{
	char full[64];

	snprintf(full, sizeof full, "%s%s", xattrs_prefix(), what);
	return xattrs_get(dir, name, full, buf, size);
}

static bool is_opaque(int dir, const char *name)
{
	char v[8];

	return layer_xattr(dir, name, "opaque", v, sizeof v) == 1 && v[0] == 'y';
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_dir(int dir, const struct dirent *e)
{
	struct stat st;

	return e->d_type == DT_DIR || (e->d_type == DT_UNKNOWN && fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode));
}

static int list(int dir, bool only_dirs, struct cs_strv *ret)
{
	CS_FD int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CS_DIR DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!d)
		return -1;
	(void)CS_TAKE_FD(copy); /* the stream's now */
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && (!only_dirs || is_dir(dir, e)))
			cs_strv_add(ret, e->d_name);
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof *ret->v, by_name);
	return 0;
}

int scan_names(int dir, struct cs_strv *ret)
{
	return list(dir, false, ret);
}

/* ---- the list ---- */

static struct txn_side side(const struct stat *st)
{
	return (struct txn_side){ .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid, .size = (uint64_t)st->st_size,
				  .mtime = st->st_mtim.tv_sec, .mtime_ns = (uint32_t)st->st_mtim.tv_nsec, .ino = st->st_ino };
}

/* The analyzer loses sight of what a grown array holds. */
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static struct txn_change *add(struct scanner *s, const char *name, enum txn_kind kind)
{
	struct txn_changes *o = s->out;
	struct txn_change *c;

	if (o->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64;
		void *grown = s->cap >= TXN_CHANGES_MAX ? NULL : realloc(o->v, cap * sizeof *o->v);

		if (!grown) {
			(void)cs_fail(s->err, CS_E_LIMIT, 0, "more than %zu changes", o->n);
			return NULL;
		}
		s->cap = cap;
		o->v = grown;
	}
	c = &o->v[o->n++];
	*c = (struct txn_change){ .kind = kind, .path = cs_printf("%s%s", cs_buf_text(&s->path), name) };
	if (strcmp(cs_buf_text(&s->path), cs_buf_text(&s->base)))
		c->base = cs_printf("%s%s", cs_buf_text(&s->base), name);
	return c;
}
#pragma GCC diagnostic pop

static bool is_our_doing(const struct scanner *s, const char *name, const struct stat *st)
{
	CS_FREE char *path = s->l->done ? cs_printf("%s%s", cs_buf_text(&s->path), name) : NULL;

	return path && done_touched(s->l->done, path, st);
}

static enum txn_conflict conflict_of(const struct scanner *s, int dir, const char *name, const struct stat *st)
{
	struct timespec born;

	if (!s->start)
		return TXN_CLEAN;
	if (!stamp_at_or_after(&st->st_ctim, &s->start->stamp))
		return s->clock_back ? TXN_CLOCK : TXN_CLEAN;
	if (is_our_doing(s, name, st))
		return TXN_CLEAN;
	if (sys_birth_time(dir, name, &born) == 0 && stamp_at_or_after(&born, &s->start->stamp))
		return TXN_CREATED;
	return TXN_EDITED;
}

/* A name that is new here was perhaps copied from one that is gone by now. */
static enum txn_conflict removed_meanwhile(const struct scanner *s, const struct place *p, const struct found *f)
{
	char v[256];

	return s->start && f->attrs & ATTR_MARK && layer_xattr(p->upper, f->name, "origin", v, sizeof v) >= 0 ? TXN_REMOVED : TXN_CLEAN;
}

/* What differs; -1 with errno.  A quick look does not read a file whose time says that it was written, unless what
 * it holds counts: content that is new makes a set-user-id file another matter. */
static int compare(const struct scanner *s, const struct place *p, const struct found *f, int low_dir, const char *low_name, const struct stat *low)
{
	const struct compared a = { p->upper, f->name, &f->st, !(f->attrs & ATTR_OWN) }, b = { low_dir, low_name, low, false };
	int differs = compare_stat(&f->st, low);

	if (s->l->quick && S_ISREG(f->st.st_mode) && differs & TXN_TIMES && !((f->st.st_mode | low->st_mode) & (S_ISUID | S_ISGID)))
		return differs | TXN_CONTENT;
	return compare_entry(&a, &b);
}

static void enter(struct scanner *s, const char *name, size_t keep[2])
{
	keep[0] = s->path.len;
	keep[1] = s->base.len;
	cs_buf_fmt(&s->path, "%s/", name);
	cs_buf_fmt(&s->base, "%s/", name);
}

void path_cut(struct cs_buf *b, size_t len)
{
	b->len = len;
	if (b->data)
		b->data[len] = 0;
}

static void leave(struct scanner *s, const size_t keep[2])
{
	path_cut(&s->path, keep[0]);
	path_cut(&s->base, keep[1]);
}

/* ---- lower layers ---- */

static bool is_moved(const struct scanner *s, const char *name)
{
	CS_FREE char *path = s->moved.n ? cs_printf("%s%s", cs_buf_text(&s->base), name) : NULL;

	return path && cs_strv_has(&s->moved, path);
}

/* Which layer has it; -1: none, or it is deleted there. */
static int find_lower(const struct scanner *s, const struct place *p, const char *name, struct stat *ret)
{
	for (size_t i = 0; i < s->l->n_lower; i++) {
		if (p->lower[i] < 0 || fstatat(p->lower[i], name, ret, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (layer_is_whiteout(ret) || (i + 1 == s->l->n_lower && is_moved(s, name)))
			return -1;
		return (int)i;
	}
	return -1;
}

static int open_sub(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void close_lowers(const struct scanner *s, int *lower)
{
	for (size_t i = 0; i < s->l->n_lower; i++)
		if (lower[i] >= 0)
			close(lower[i]);
	free(lower);
}

/* The same directory in the first layer that has it and those beneath that it does not hide. */
static int *open_lowers(const struct scanner *s, const struct place *p, const char *name, int first)
{
	size_t n = s->l->n_lower;
	int *sub = cs_calloc(n, sizeof *sub);
	bool hidden = first < 0;

	for (size_t i = 0; i < n; i++) {
		struct stat st;

		sub[i] = -1;
		if (hidden || (int)i < first || p->lower[i] < 0 || fstatat(p->lower[i], name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (!S_ISDIR(st.st_mode) || (i + 1 == n && is_moved(s, name)))
			break;
		sub[i] = open_sub(p->lower[i], name);
		hidden = i + 1 < n && is_opaque(p->lower[i], name);
	}
	for (size_t i = 0; i < n; i++) /* after the break */
		if (sub[i] == 0)
			sub[i] = -1;
	return sub;
}

static int union_of_lowers(const struct scanner *s, const struct place *p, struct cs_strv *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < s->l->n_lower; i++)
		if (p->lower[i] >= 0 && scan_names(p->lower[i], ret) < 0)
			return -1;
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof *ret->v, by_name);
	for (size_t i = 0; i < ret->n; i++) {
		if (n && !strcmp(ret->v[n - 1], ret->v[i])) {
			free(ret->v[i]);
			continue;
		}
		ret->v[n++] = ret->v[i];
	}
	ret->n = n;
	return 0;
}

/* ---- the walk ---- */

static int walk(struct scanner *s, struct place *p);
static int deleted(struct scanner *s, const struct place *p, const char *name, int at, const struct stat *st);

static int deleted_content(struct scanner *s, const struct place *p, const char *name, int at)
{
	struct place sub = { .upper = -1, .lower = open_lowers(s, p, name, at), .depth = p->depth + 1 };
	struct cs_strv names = { 0 };
	size_t keep[2];
	int r = 0;

	enter(s, name, keep);
	if (sub.depth > TXN_DEPTH_MAX)
		r = cs_fail(s->err, CS_E_LIMIT, 0, "directories are nested deeper than %d", TXN_DEPTH_MAX);
	else if (union_of_lowers(s, &sub, &names) < 0)
		r = fail(s, "list", "");
	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		struct stat st;
		int in = find_lower(s, &sub, names.v[i], &st);

		if (in >= 0)
			r = deleted(s, &sub, names.v[i], in, &st);
	}
	leave(s, keep);
	close_lowers(s, sub.lower);
	cs_strv_done(&names);
	return r;
}

static int deleted(struct scanner *s, const struct place *p, const char *name, int at, const struct stat *st)
{
	CS_FREE char *path = s->l->done ? cs_printf("%s%s", cs_buf_text(&s->path), name) : NULL;
	struct txn_change *c;
	size_t i = s->out->n;
	int r = 0;

	if (path && done_covers(s->l->done, path))
		return 0; /* it was deleted or replaced by us, and is somebody's by now */
	c = add(s, name, TXN_DELETED);
	if (!c)
		return -CS_E_LIMIT;
	c->old = side(st);
	c->conflict = conflict_of(s, p->lower[at], name, st);
	if (S_ISDIR(st->st_mode))
		r = deleted_content(s, p, name, at);
	s->out->v[i].subtree = (uint32_t)(s->out->n - 1 - i);
	return r;
}

static int walk_into(struct scanner *s, const struct place *p, const char *name, int *take_lower, bool opaque, const char *base)
{
	struct place sub = { .upper = open_sub(p->upper, name), .lower = take_lower, .opaque = opaque, .depth = p->depth + 1 };
	size_t keep[2];
	int r;

	enter(s, name, keep);
	if (base) {
		CS_FREE char *was = cs_strdup(cs_buf_text(&s->base));

		path_cut(&s->base, 0);
		cs_buf_fmt(&s->base, "%s/", base);
		r = sub.upper < 0 ? fail(s, "open", "") : walk(s, &sub);
		path_cut(&s->base, 0);
		cs_buf_str(&s->base, was);
	} else {
		r = sub.upper < 0 ? fail(s, "open", "") : sub.depth > TXN_DEPTH_MAX
			? cs_fail(s->err, CS_E_LIMIT, 0, "directories are nested deeper than %d", TXN_DEPTH_MAX) : walk(s, &sub);
	}
	leave(s, keep);
	if (sub.upper >= 0)
		close(sub.upper);
	close_lowers(s, sub.lower);
	return r;
}

/* The place in the base that a redirect names, beneath its root; NULL if it has none. */
static __attribute__((noinline)) char *redirect_of(const struct scanner *s, const struct place *p, const struct found *f)
{
	char v[PATH_MAX];
	ssize_t n = s->l->n_lower == 1 && f->attrs & ATTR_MARK ? layer_xattr(p->upper, f->name, "redirect", v, sizeof v - 1) : -1;

	if (n <= 0)
		return NULL;
	v[n] = 0;
	return v[0] == '/' ? cs_strdup(v + 1) : cs_printf("%s%s", cs_buf_text(&s->base), v);
}

static int renamed(struct scanner *s, const struct place *p, const struct found *f, char *take_from)
{
	const char *name = f->name;
	CS_FREE char *from = take_from;
	int *lower = cs_calloc(s->l->n_lower, sizeof *lower);
	struct txn_change *c;
	struct stat was, there;
	size_t i;
	int r, at = find_lower(s, p, name, &there);

	if (at >= 0 && (r = deleted(s, p, name, at, &there)) < 0) {
		free(lower);
		return r;
	}
	i = s->out->n;
	c = add(s, name, TXN_RENAMED);
	lower[0] = act_open_dir(s->l->lower[0], from);
	if (!c || lower[0] < 0 || fstat(lower[0], &was) < 0) {
		if (c && lower[0] < 0)
			c->conflict = TXN_REMOVED;
		was = f->st;
	}
	if (!c) {
		close_lowers(s, lower);
		return -CS_E_LIMIT;
	}
	c->new = side(&f->st);
	c->attrs = f->attrs;
	c->old = side(&was);
	c->from = cs_strdup(from);
	if (lower[0] >= 0)
		c->differs = (unsigned)(compare(s, p, f, lower[0], ".", &was) & ~TXN_CONTENT);
	r = walk_into(s, p, name, lower, false, from);
	s->out->v[i].subtree = (uint32_t)(s->out->n - 1 - i);
	return r;
}

static int directory(struct scanner *s, const struct place *p, const struct found *f, int at, const struct stat *low)
{
	const char *name = f->name;
	/* What lies in a directory that is cut off from the base is cut off, too, without a mark of its own. */
	bool both = at >= 0 && S_ISDIR(low->st_mode), opaque = both && (p->opaque || (f->attrs & ATTR_MARK && is_opaque(p->upper, name)));
	struct txn_change *c = NULL;
	size_t i = s->out->n;
	int r, differs = 0;

	if (both) {
		differs = compare(s, p, f, p->lower[at], name, low);
		if (differs < 0)
			return fail(s, "compare", name);
	}
	if (!both || differs) {
		c = add(s, name, at < 0 ? TXN_ADDED : both ? TXN_CHANGED : TXN_TYPE);
		if (!c)
			return -CS_E_LIMIT;
		c->new = side(&f->st);
		c->attrs = f->attrs;
		c->differs = (unsigned)differs;
		if (at >= 0)
			c->old = side(low);
		if (at < 0)
			c->conflict = removed_meanwhile(s, p, f);
		else if (!both || differs & ~TXN_TIMES) /* a new entry in it, too, changes a directory's times */
			c->conflict = conflict_of(s, p->lower[at], name, low);
	}
	r = walk_into(s, p, name, open_lowers(s, p, name, both ? at : -1), opaque, NULL);
	if (c) /* the list may have moved */
		s->out->v[i].subtree = (uint32_t)(s->out->n - 1 - i);
	return r;
}

static int file(struct scanner *s, const struct place *p, const struct found *f, int at, const struct stat *low)
{
	const char *name = f->name;
	bool same_type = at >= 0 && (low->st_mode & S_IFMT) == (f->st.st_mode & S_IFMT);
	struct txn_change *c;
	int differs = 0;

	if (same_type) {
		differs = compare(s, p, f, p->lower[at], name, low);
		if (differs < 0)
			return fail(s, "compare", name);
		if (!differs && (!S_ISREG(f->st.st_mode) || f->st.st_nlink < 2))
			return 0;
		if (!differs)
			differs = TXN_LINKS; /* perhaps: see origin_drop_unlinked() */
	}
	c = add(s, name, at < 0 ? TXN_ADDED : same_type ? TXN_CHANGED : TXN_TYPE);
	if (!c)
		return -CS_E_LIMIT;
	c->new = side(&f->st);
	c->attrs = f->attrs;
	c->differs = (unsigned)differs;
	if (at < 0) {
		c->conflict = removed_meanwhile(s, p, f);
		return 0;
	}
	c->old = side(low);
	c->conflict = conflict_of(s, p->lower[at], name, low);
	if (S_ISDIR(low->st_mode)) { /* what it held is deleted with it */
		size_t i = s->out->n - 1;
		int r = deleted_content(s, p, name, at);

		s->out->v[i].subtree = (uint32_t)(s->out->n - 1 - i);
		return r;
	}
	return 0;
}

static int entry(struct scanner *s, const struct place *p, const char *name)
{
	struct found f = { .name = name };
	struct stat low;
	char *from;
	int at = find_lower(s, p, name, &low);

	if (fstatat(p->upper, name, &f.st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return fail(s, "look at", name);
		return p->opaque && at >= 0 ? deleted(s, p, name, at, &low) : 0;
	}
	if (layer_is_whiteout(&f.st))
		return at >= 0 ? deleted(s, p, name, at, &low) : 0;
	f.attrs = xattrs_look(p->upper, name);
	if (!S_ISDIR(f.st.st_mode))
		return file(s, p, &f, at, &low);
	from = redirect_of(s, p, &f);
	return from ? renamed(s, p, &f, from) : directory(s, p, &f, at, &low);
}

/* The workspace's own attributes. */
static int top_directory(struct scanner *s, const struct place *p)
{
	struct found f = { .name = "." };
	struct stat low;
	struct txn_change *c;
	int differs;

	if (fstat(p->upper, &f.st) < 0 || fstat(p->lower[s->l->n_lower - 1], &low) < 0)
		return fail(s, "look at", ".");
	f.attrs = xattrs_look(p->upper, ".");
	differs = compare(s, p, &f, p->lower[s->l->n_lower - 1], ".", &low);
	if (differs <= 0)
		return differs < 0 ? fail(s, "compare", ".") : 0;
	c = add(s, ".", TXN_CHANGED);
	if (!c)
		return -CS_E_LIMIT;
	c->old = side(&low);
	c->new = side(&f.st);
	c->attrs = f.attrs;
	c->differs = (unsigned)differs;
	if (differs & ~TXN_TIMES)
		c->conflict = conflict_of(s, p->lower[s->l->n_lower - 1], ".", &low);
	return 0;
}

static int walk(struct scanner *s, struct place *p)
{
	struct cs_strv names = { 0 };
	int r = 0;

	if (s->path.over || s->base.over)
		return cs_fail(s->err, CS_E_LIMIT, 0, "a path is too long");
	if (scan_names(p->upper, &names) < 0)
		r = fail(s, "list", "");
	/* Cut off from the base: what only the base has is deleted. */
	if (r == 0 && p->opaque && union_of_lowers(s, &(struct place){ .lower = p->lower }, &names) < 0)
		r = fail(s, "list", "");
	for (size_t i = 0; r >= 0 && i < names.n; i++)
		r = entry(s, p, names.v[i]);
	cs_strv_done(&names);
	return r;
}

/* ---- places that renamed directories left ---- */

/* Where the base has what lies here as dir/name.  Not inlined: its buffer, once for every directory on
 * the way down, would be more than a stack. */
static __attribute__((noinline)) char *place_in_base(int dir, const char *name, const char *base, bool *ret_moved)
{
	char v[PATH_MAX];
	ssize_t n = layer_xattr(dir, name, "redirect", v, sizeof v - 1);

	v[n > 0 ? n : 0] = 0;
	*ret_moved = n > 0;
	return *v == '/' ? cs_strdup(v + 1) : cs_printf("%s%s%s", base, *base ? "/" : "", *v ? v : name);
}

static int find_moved(struct scanner *s, int dir, const char *base, unsigned depth)
{
	struct cs_strv names = { 0 };
	int r = list(dir, true, &names) < 0 ? fail(s, "list", "") : 0;

	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		CS_FD int sub = -1;
		CS_FREE char *at = NULL;
		bool moved;

		if (depth > TXN_DEPTH_MAX)
			continue;
		at = place_in_base(dir, names.v[i], base, &moved);
		if (moved)
			cs_strv_add(&s->moved, at);
		sub = open_sub(dir, names.v[i]);
		r = sub < 0 ? fail(s, "open", names.v[i]) : find_moved(s, sub, at, depth + 1);
	}
	cs_strv_done(&names);
	return r;
}

/* ---- all of it ---- */

static void count(struct txn_changes *c)
{
	c->added = c->changed = c->deleted = c->conflicts = 0;
	c->bytes = 0;
	for (size_t i = 0; i < c->n; i++) {
		const struct txn_change *x = &c->v[i];

		if (x->conflict)
			c->conflicts++;
		if (x->kind == TXN_CHANGED && S_ISDIR(x->new.mode) && !(x->differs & ~(unsigned)TXN_TIMES))
			continue; /* only because something in it changed */
		c->added += x->kind == TXN_ADDED;
		c->deleted += x->kind == TXN_DELETED;
		c->changed += x->kind != TXN_ADDED && x->kind != TXN_DELETED;
		if (S_ISREG(x->new.mode))
			c->bytes += x->new.size;
	}
}

static void allow_many_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max && l.rlim_cur < 65536) {
		l.rlim_cur = l.rlim_max < 65536 ? l.rlim_max : 65536;
		(void)setrlimit(RLIMIT_NOFILE, &l); /* without it only very deep trees fail */
	}
}

int scan_layer(const struct scan_layers *l, const struct txn_start *start, struct txn_changes *ret, struct cs_err *err)
{
	struct scanner s = { .l = l, .start = start, .out = ret, .path = CS_BUF(1 << 20), .base = CS_BUF(1 << 20), .err = err };
	CS_FREE int *lower = cs_calloc(l->n_lower, sizeof *lower);
	struct place top = { .upper = l->upper, .lower = lower };
	int r;

	*ret = (struct txn_changes){ 0 };
	allow_many_files();
	for (size_t i = 0; i < l->n_lower; i++)
		lower[i] = l->lower[i];
	if (start)
		s.clock_back = start->boot_id == head_boot_id() && head_boot_offset() < start->boot_offset - 1000;
	/* Only root's overlayfs writes redirects, and only root can read them. */
	r = l->n_lower == 1 && geteuid() == 0 ? find_moved(&s, l->upper, "", 0) : 0;
	if (r >= 0)
		r = top_directory(&s, &top);
	if (r >= 0)
		r = walk(&s, &top);
	if (r >= 0 && ret->n)
		origin_drop_unlinked(ret);
	if (r >= 0 && start && l->n_lower == 1)
		origin_find_renamed(l, start, ret);
	count(ret);
	cs_buf_done(&s.path);
	cs_buf_done(&s.base);
	cs_strv_done(&s.moved);
	if (r < 0)
		txn_changes_done(ret);
	return r;
}

void txn_changes_done(struct txn_changes *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].path);
		free(c->v[i].from);
		free(c->v[i].base);
	}
	free(c->v);
	*c = (struct txn_changes){ 0 };
}

bool txn_changes_nothing(const struct txn_changes *c)
{
	return !c->added && !c->changed && !c->deleted;
}
