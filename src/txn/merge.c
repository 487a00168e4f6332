/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - two layers become one.
 *
 * A whiteout stays one: beneath both lies the base.  A directory that the newer
 * layer made where the older one has a whiteout or a file hid the base without a
 * mark of its own, because the lookup ended at the older layer; in the merged
 * layer it needs the mark.
 *
 * What is not finished when the power fails is done again, so the newer layer
 * must still say all: the mark is put there before the older one's whiteout goes.
 * An ordinary user may not write to a directory that a program has closed, nor
 * read what it has made unreadable: such are opened, and closed again.
 */
#include "txn/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct merger {
	enum merge_how how;
	struct cs_err *err;
	int top;              /* the older layer, and where in it we are: "" at the top, else ending in '/' */
	struct cs_buf path;
	struct links links;   /* of what is copied */
};

static int fail(struct merger *m, const char *name)
{
	char shown[128];

	return cs_fail(m->err, CS_E_SYSTEM, errno, "merge '%s'", cs_escape_to(shown, sizeof shown, name));
}

/* An ordinary user must open what a program has closed.  True: it was changed. */
static bool open_up(int dir, const char *name, const struct stat *st, mode_t need)
{
	return geteuid() != 0 && (st->st_mode & need) != need && fchmodat(dir, name, (st->st_mode & 07777) | need, 0) == 0;
}

/* Attributes that the newer one no longer has; overlayfs's own are another matter. */
static int drop_xattrs(int from, const char *name, int to)
{
	char names[4096];
	ssize_t len = xattrs_list(to, name, names, sizeof names);

	for (const char *n = names; len > 0 && n < names + len; n += strlen(n) + 1)
		if (strncmp(n, xattrs_prefix(), strlen(xattrs_prefix())) != 0 && xattrs_get(from, name, n, NULL, 0) < 0 && errno == ENODATA &&
		    xattrs_remove(to, name, n) < 0)
			return -1;
	return 0;
}

static int copy_meta(int from, const char *name, const struct stat *st, int to)
{
	return copy_attributes(from, name, st, st->st_uid, st->st_gid, to);
}

/* ---- where things come from ----
 *
 * overlayfs notes the origin of what it copied up, and what has one but no base any more was deleted by
 * somebody meanwhile.  In the newer layer that may be a file of the older one: then the older one's counts. */

struct origin {
	char v[256];
	ssize_t len; /* -1: none */
};

static void get_origin(int dir, const char *name, struct origin *ret)
{
	ret->len = layer_xattr(dir, name, "origin", ret->v, sizeof ret->v);
}

static int put_origin(int dir, const char *name, const struct stat *st, const struct origin *o)
{
	bool opened = !S_ISLNK(st->st_mode) && open_up(dir, name, st, 0200);
	char full[64];
	int r;

	snprintf(full, sizeof full, "%sorigin", xattrs_prefix());
	r = o->len < 0 ? xattrs_remove(dir, name, full) : xattrs_set(dir, name, full, o->v, (size_t)o->len);
	if (opened)
		(void)fchmodat(dir, name, st->st_mode & 07777, 0);
	return r < 0 && errno != ENODATA && errno != ENOTSUP && errno != EPERM ? -1 : 0;
}

static int copy_whole(int from, const char *name, const struct stat *st, int to)
{
	bool opened = S_ISREG(st->st_mode) && open_up(from, name, st, 0400);
	int r = copy_file(from, name, st, to);

	if (r == 0 && !layer_is_whiteout(st))
		r = copy_meta(from, name, st, to);
	if (opened)
		(void)fchmodat(from, name, st->st_mode & 07777, 0);
	return r;
}

/* Another name of what was copied before. */
static bool link_again(struct merger *m, const struct stat *st, int to, const char *name)
{
	size_t len = m->path.len;
	bool linked;

	cs_buf_str(&m->path, name);
	linked = !m->path.over && links_again(&m->links, m->top, st, to, name, cs_buf_text(&m->path));
	path_cut(&m->path, len);
	return linked;
}

/* 1: as another name of one that is there already. */
static int place_anew(struct merger *m, int from, const char *name, const struct stat *st, int to)
{
	if (act_remove_tree(to, name) < 0)
		return -1;
	if (m->how == MERGE_MOVE && act_rename(from, name, to, name, 0) == 0)
		return 0;
	if (m->how == MERGE_MOVE && errno != EACCES)
		return -1;
	if (m->how == MERGE_COPY && link_again(m, st, to, name))
		return 1;
	/* Too many links, or a file system without: a copy does as well. */
	if (m->how != MERGE_COPY && linkat(from, name, to, name, 0) == 0)
		return 0;
	return copy_whole(from, name, st, to);
}

static int place_file(struct merger *m, int from, const char *name, const struct stat *st, int to)
{
	struct stat there;
	bool is_next = !layer_is_whiteout(st) && fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && !layer_is_whiteout(&there);
	struct origin older, newer;
	int r;

	if (m->how == MERGE_LINK || !is_next)
		return place_anew(m, from, name, st, to);
	get_origin(to, name, &older);
	get_origin(from, name, &newer);
	r = place_anew(m, from, name, st, to);
	return r || newer.len < 0 ? r : put_origin(to, name, st, &older);
}

static int mark_opaque(int dir, const char *name)
{
	char full[64];

	snprintf(full, sizeof full, "%sopaque", xattrs_prefix());
	return xattrs_set(dir, name, full, "y", 1);
}

static bool is_opaque(int dir, const char *name)
{
	char v[8];

	return layer_xattr(dir, name, "opaque", v, sizeof v) == 1 && v[0] == 'y';
}

static int merge_dirs(struct merger *m, int newer, int older, unsigned depth);

static int merge_into(struct merger *m, int newer, const char *name, const struct stat *st, int older, bool is_next, unsigned depth)
{
	CS_FD int from = openat(newer, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CS_FD int to = openat(older, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	size_t len = m->path.len;
	struct origin was;
	int r;

	if (from < 0 || to < 0)
		return fail(m, name);
	cs_buf_fmt(&m->path, "%s/", name);
	r = merge_dirs(m, from, to, depth + 1);
	path_cut(&m->path, len);
	if (r < 0)
		return -CS_E_SYSTEM;
	get_origin(older, name, &was);
	/* Last: a directory may become closed. */
	if (drop_xattrs(newer, name, older) < 0 || copy_meta(newer, name, st, older) < 0)
		return fail(m, name);
	return is_next && put_origin(older, name, st, &was) < 0 ? fail(m, name) : 0;
}

/* Where there is none yet. */
static int place_dir(struct merger *m, int newer, const char *name, int older)
{
	if (m->how == MERGE_MOVE && act_rename(newer, name, older, name, 0) == 0)
		return 1;
	if (m->how == MERGE_MOVE && errno != EACCES)
		return -1;
	return act_mkdir(older, name, 0700);
}

static int merge_dir(struct merger *m, int newer, const char *name, const struct stat *st, int older, unsigned depth)
{
	struct stat there;
	bool exists = fstatat(older, name, &there, AT_SYMLINK_NOFOLLOW) == 0, hid = exists && !S_ISDIR(there.st_mode);
	bool opened = open_up(newer, name, st, 0700), opaque = is_opaque(newer, name);
	int r = hid && !opaque ? mark_opaque(newer, name) : 0;

	if (r == 0 && exists && (hid || opaque)) {
		r = act_remove_tree(older, name);
		exists = false;
	}
	if (r == 0 && exists)
		(void)open_up(older, name, &there, 0700); /* if that fails, so does what follows */
	else if (r == 0)
		r = place_dir(m, newer, name, older);
	if (r == 1) /* moved as it was, but for its mode */
		return opened && fchmodat(older, name, st->st_mode & 07777, 0) < 0 ? fail(m, name) : 0;
	r = r < 0 ? fail(m, name) : merge_into(m, newer, name, st, older, exists, depth);
	if (r == 0 && m->how == MERGE_MOVE)
		(void)act_unlink(newer, name, AT_REMOVEDIR); /* in a closed one it stays until the layer goes */
	else if (opened)
		(void)fchmodat(newer, name, st->st_mode & 07777, 0);
	return r;
}

static int merge_dirs(struct merger *m, int newer, int older, unsigned depth)
{
	struct cs_strv names = { 0 };
	int r = depth > TXN_DEPTH_MAX || scan_names(newer, &names) < 0 ? fail(m, ".") : 0;

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		struct stat st;

		if (fstatat(newer, names.v[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = fail(m, names.v[i]);
		else if (S_ISDIR(st.st_mode))
			r = merge_dir(m, newer, names.v[i], &st, older, depth);
		else if (place_file(m, newer, names.v[i], &st, older) < 0)
			r = fail(m, names.v[i]);
	}
	cs_strv_done(&names);
	return r;
}

int merge_layer(int older, int newer, enum merge_how how, struct cs_err *err)
{
	struct merger m = { .how = how, .err = err, .top = older, .path = CS_BUF(1 << 20) };
	struct timespec times[2];
	struct stat st, there;
	int r;

	/* Now: what is moved away changes the time. */
	if (fstat(newer, &st) < 0 || fstat(older, &there) < 0)
		return fail(&m, ".");
	(void)open_up(older, ".", &there, 0700);
	r = merge_dirs(&m, newer, older, 0);
	links_done(&m.links);
	cs_buf_done(&m.path);
	if (r < 0)
		return r;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	if (drop_xattrs(newer, ".", older) < 0 || copy_xattrs_all(newer, ".", older, ".") < 0 || fchmod(older, st.st_mode & 07777) < 0 ||
	    (geteuid() == 0 && fchown(older, st.st_uid, st.st_gid) < 0) || futimens(older, times) < 0)
		return fail(&m, ".");
	return 0;
}

/* ---- whiteouts that hide nothing ---- */

static int tidy(struct merger *m, int up, int base, unsigned depth);

static int tidy_dir(struct merger *m, int up, const char *name, const struct stat *st, int base, unsigned depth)
{
	bool opened = open_up(up, name, st, 0700);
	CS_FD int sub = openat(up, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CS_FD int below = base < 0 || is_opaque(up, name) ? -1 : openat(base, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = sub < 0 ? fail(m, name) : tidy(m, sub, below, depth + 1);

	if (opened)
		(void)fchmodat(up, name, st->st_mode & 07777, 0);
	return r;
}

/* base: -1 where nothing of it shows. */
static bool hides_nothing(int base, const char *name)
{
	struct stat st;

	return base < 0 || (fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && (errno == ENOENT || errno == ENOTDIR));
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as TXN_DEPTH_MAX allows */
static int tidy(struct merger *m, int up, int base, unsigned depth)
{
	struct cs_strv names = { 0 };
	struct stat st, own;
	bool removed = false;
	int r = depth > TXN_DEPTH_MAX || fstat(up, &own) < 0 || scan_names(up, &names) < 0 ? fail(m, ".") : 0;

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		const char *name = names.v[i];

		if (fstatat(up, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = fail(m, name);
		else if (S_ISDIR(st.st_mode))
			r = tidy_dir(m, up, name, &st, base, depth);
		else if (layer_is_whiteout(&st) && hides_nothing(base, name)) {
			r = act_unlink(up, name, 0) < 0 ? fail(m, name) : 0;
			removed = true;
		}
	}
	cs_strv_done(&names);
	if (r == 0 && removed && futimens(up, (struct timespec[]){ own.st_atim, own.st_mtim }) < 0)
		r = fail(m, ".");
	return r;
}

int merge_tidy(int up, int base, struct cs_err *err)
{
	struct merger m = { .how = MERGE_MOVE, .err = err };
	struct stat st;
	bool opened = fstat(up, &st) == 0 && open_up(up, ".", &st, 0700);
	int r = tidy(&m, up, base, 0);

	if (opened)
		(void)fchmod(up, st.st_mode & 07777);
	return r;
}
