/* SPDX-License-Identifier: Apache-2.0 */
/* apply.c - steps, forth or back, as often as you like.
 *
 * Each step looks at which inode stands where and does what is missing, so it
 * can be cut off anywhere and done again.  What neither the old nor the new one
 * is belongs to somebody else: it is left alone and counted.
 */
#include "txn/internal.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct work {
	const struct txn *t;
	const struct journal *j;
	struct near_dir base, up;
	int undo;
	bool places;            /* some directory is renamed */
	bool fresh;             /* nothing of this commit is in the undo set yet */
	bool root;              /* we move what is closed */
	struct applied *ret;
	struct cs_err *err;
};

static uint64_t inode(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

static void lost(struct work *w, const struct step *s)
{
	w->ret->lost++;
	if (!w->ret->first)
		w->ret->first = cs_strdup(s->path);
}

static int failed(struct work *w, const struct step *s)
{
	char shown[256];

	return cs_fail(w->err, CS_E_SYSTEM, errno, "'%s'", cs_escape_to(shown, sizeof shown, s->path));
}

/* ---- renames, also where a directory may not be written ---- */

static mode_t open_up(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || (st.st_mode & 0300) == 0300 || act_chmod(fd, (st.st_mode & 07777) | 0700) < 0)
		return 0;
	return st.st_mode & 07777;
}

/* A directory that changes its parent must be writable itself. */
static mode_t open_up_name(int dir, const char *name, mode_t mode)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (!mode && (st.st_mode & 0200))
		return 0;
	return act_chmod_at(dir, name, mode ? mode : (st.st_mode & 07777) | 0700) < 0 ? 0 : st.st_mode & 07777;
}

static int move(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	mode_t a, b, self, other;
	int r = act_rename(from_dir, from, to_dir, to, flags), sys;

	if (r == 0 || errno != EACCES)
		return r;
	a = open_up(from_dir);
	b = open_up(to_dir);
	self = open_up_name(from_dir, from, 0);
	other = flags & RENAME_EXCHANGE ? open_up_name(to_dir, to, 0) : 0;
	r = act_rename(from_dir, from, to_dir, to, flags);
	sys = errno;
	if (self) /* cut off here, or failed: settle_modes() */
		(void)open_up_name(r == 0 ? to_dir : from_dir, r == 0 ? to : from, self);
	if (other)
		(void)open_up_name(r == 0 ? from_dir : to_dir, r == 0 ? from : to, other);
	if (a)
		(void)act_chmod(from_dir, a);
	if (b)
		(void)act_chmod(to_dir, b);
	errno = sys;
	return r;
}

/* Where nothing stands. -1 with EEXIST if something does. */
static int move_to_empty(int from_dir, const char *from, int to_dir, const char *to)
{
	if (move(from_dir, from, to_dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (inode(to_dir, to)) /* a file system that knows no flags */
		return errno = EEXIST, -1;
	return move(from_dir, from, to_dir, to, 0);
}

static void undo_name(char ret[32], const struct work *w, const struct step *s)
{
	snprintf(ret, 32, "%u-%u", w->j->part, s->n);
}

/* ---- forth ---- */

static int put(struct work *w, const struct step *s)
{
	const char *name, *same;
	int base = near_parent(&w->base, s->path, &name), up;

	if (base < 0)
		return failed(w, s);
	if (inode(base, name) == s->is.ino)
		return 0;
	up = near_parent(&w->up, s->path, &same);
	if (up < 0)
		return failed(w, s);
	if (move_to_empty(up, name, base, name) == 0)
		return 0;
	if (errno != EEXIST && errno != ENOENT)
		return failed(w, s);
	lost(w, s);
	return 0;
}

/* The new one takes the old one's place in one instant; then the old one goes to the undo set. */
static int swap_two_steps(int up, int base, int undo, const char *name, const char *u)
{
	if (move(base, name, undo, u, 0) < 0)
		return -1;
	return move_to_empty(up, name, base, name);
}

static int swap(struct work *w, const struct step *s)
{
	const char *name, *same;
	int base = near_parent(&w->base, s->path, &name), up = near_parent(&w->up, s->path, &same);
	uint64_t there;
	char u[32];

	if (base < 0 || up < 0)
		return failed(w, s);
	undo_name(u, w, s);
	there = inode(base, name);
	if (!w->fresh && inode(w->undo, u)) { /* cut off between two renames, perhaps */
		if (there == s->was.ino && inode(w->undo, u) == s->is.ino) /* on the way back, and turned round */
			return move(w->undo, u, base, name, RENAME_EXCHANGE) < 0 ? failed(w, s) : 0;
		if (!there && inode(up, name) == s->is.ino && move_to_empty(up, name, base, name) < 0)
			return failed(w, s);
		return 0;
	}
	if (there == s->was.ino) {
		if (move(up, name, base, name, RENAME_EXCHANGE) == 0)
			there = s->is.ino;
		else if (errno == EINVAL || errno == ENOSYS)
			return swap_two_steps(up, base, w->undo, name, u) < 0 ? failed(w, s) : 0;
		else
			return failed(w, s);
	}
	if (there != s->is.ino || inode(up, name) != s->was.ino) {
		lost(w, s);
		return 0;
	}
	return move(up, name, w->undo, u, 0) < 0 ? failed(w, s) : 0;
}

static const struct step *placed(const struct work *w, uint32_t n)
{
	for (size_t i = 0; i < w->j->n; i++)
		if (w->j->v[i].kind == STEP_PLACE && w->j->v[i].n == n)
			return &w->j->v[i];
	return NULL;
}

static bool is_placed(struct work *w, const struct step *take)
{
	const struct step *p = w->places ? placed(w, take->n) : NULL;
	const char *name;
	CS_FD int dir = p ? act_parent(w->t->ws, p->path, &name) : -1;

	return dir >= 0 && inode(dir, name) == take->was.ino;
}

static int take(struct work *w, const struct step *s)
{
	const char *name;
	int base = near_parent(&w->base, s->path, &name);
	char u[32];

	undo_name(u, w, s);
	if ((!w->fresh && inode(w->undo, u)) || is_placed(w, s))
		return 0;
	if (base < 0)
		return failed(w, s);
	if (inode(base, name) != s->was.ino) {
		if (inode(base, name))
			lost(w, s);
		return 0;
	}
	return move(base, name, w->undo, u, 0) < 0 ? failed(w, s) : 0;
}

/* Says in the layer which directory of the base a renamed one is; NULL: the one of its own name, by now. */
static int mark_renamed(struct work *w, const struct step *s, const char *from)
{
	CS_FD int dir = act_open_dir(w->up.root, s->path);
	CS_FREE char *value = from ? cs_printf("/%s", from) : NULL;
	int r;

	if (dir < 0)
		return failed(w, s);
	if (value)
		r = act_setxattr(dir, "trusted.overlay.redirect", value, strlen(value));
	else
		r = act_delxattr(dir, "trusted.overlay.redirect");
	return r < 0 && errno != ENODATA ? failed(w, s) : 0;
}

static int place(struct work *w, const struct step *s)
{
	const char *name;
	int base = near_parent(&w->base, s->path, &name);
	char u[32];

	if (base < 0)
		return failed(w, s);
	undo_name(u, w, s);
	if (inode(base, name) == s->is.ino || move_to_empty(w->undo, u, base, name) == 0)
		return mark_renamed(w, s, NULL);
	if (errno != EEXIST && errno != ENOENT)
		return failed(w, s);
	lost(w, s);
	return 0;
}

static int make(struct work *w, const struct step *s)
{
	const char *name;
	int base = near_parent(&w->base, s->path, &name);

	if (base < 0)
		return failed(w, s);
	return act_mkdir(base, name, 0700) < 0 && errno != EEXIST ? failed(w, s) : 0;
}

/* ---- back ---- */

static int unput(struct work *w, const struct step *s)
{
	const char *name, *same;
	int base = near_parent(&w->base, s->path, &name), up = near_parent(&w->up, s->path, &same);

	if (up < 0)
		return failed(w, s);
	if (inode(up, same) == s->is.ino)
		return 0;
	if (base < 0 || inode(base, name) != s->is.ino) {
		lost(w, s);
		return 0;
	}
	return move_to_empty(base, name, up, name) < 0 ? failed(w, s) : 0;
}

static int unswap(struct work *w, const struct step *s)
{
	const char *name, *same;
	int base = near_parent(&w->base, s->path, &name), up = near_parent(&w->up, s->path, &same);
	uint64_t there, kept;
	char u[32];

	undo_name(u, w, s);
	kept = inode(w->undo, u);
	if (base < 0 && !kept)
		return 0; /* in a renamed directory that is not there yet, or not any more */
	if (base < 0 || up < 0)
		return failed(w, s);
	there = inode(base, name);
	if (!kept) { /* never got that far, or all done */
		if (there == s->is.ino && inode(up, name) == s->was.ino)
			return move(up, name, base, name, RENAME_EXCHANGE) < 0 ? failed(w, s) : 0;
		if (!there && inode(up, name) == s->is.ino)
			lost(w, s);
		return 0;
	}
	if (kept == s->was.ino && there == s->is.ino) {
		if (move(w->undo, u, base, name, RENAME_EXCHANGE) == 0)
			return move_to_empty(w->undo, u, up, name) < 0 ? failed(w, s) : 0;
		if (errno != EINVAL && errno != ENOSYS)
			return failed(w, s);
		if (move_to_empty(base, name, up, name) < 0)
			return failed(w, s);
		there = 0;
	}
	if (kept == s->is.ino && there == s->was.ino)
		return move_to_empty(w->undo, u, up, name) < 0 ? failed(w, s) : 0;
	if (kept == s->was.ino && !there)
		return move_to_empty(w->undo, u, base, name) < 0 ? failed(w, s) : 0;
	lost(w, s);
	return 0;
}

static int untake(struct work *w, const struct step *s)
{
	const char *name;
	int base = near_parent(&w->base, s->path, &name);
	char u[32];

	undo_name(u, w, s);
	if (!inode(w->undo, u))
		return 0;
	if (base < 0)
		return failed(w, s);
	if (move_to_empty(w->undo, u, base, name) == 0)
		return 0;
	if (errno != EEXIST)
		return failed(w, s);
	lost(w, s);
	return 0;
}

static int unplace(struct work *w, const struct step *s)
{
	const char *name;
	int base = near_parent(&w->base, s->path, &name);
	char u[32];

	undo_name(u, w, s);
	if (!inode(w->undo, u) && base >= 0 && inode(base, name) == s->is.ino && move(base, name, w->undo, u, 0) < 0)
		return failed(w, s);
	for (size_t i = 0; i < w->j->n; i++)
		if (w->j->v[i].kind == STEP_TAKE && w->j->v[i].n == s->n)
			return mark_renamed(w, s, w->j->v[i].path);
	return 0;
}

static int unmake(struct work *w, const struct step *s)
{
	const char *name;
	int base = near_parent(&w->base, s->path, &name);

	if (base < 0 || act_unlink(base, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
		return failed(w, s);
	lost(w, s); /* somebody put something in it */
	return 0;
}

/* ---- directories that were opened to be moved ---- */

static int settle_mode(int dir, const char *name, const struct step_file *f)
{
	struct stat st;

	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) || st.st_ino != f->ino)
		return 0;
	return (st.st_mode & 07777) == (f->size & 07777) ? 0 : act_chmod_at(dir, name, f->size & 07777);
}

/* Also those that an attempt before this one had opened. */
static int settle_modes(struct work *w, const struct step *s)
{
	const char *name, *same;
	char u[32];
	int base, up;

	if (w->root || s->kind == STEP_META || s->kind == STEP_MKDIR)
		return 0;
	base = near_parent(&w->base, s->path, &name);
	up = near_parent(&w->up, s->path, &same);
	undo_name(u, w, s);
	if (settle_mode(base, name, &s->was) < 0 || settle_mode(base, name, &s->is) < 0 || settle_mode(up, same, &s->is) < 0 ||
	    settle_mode(w->undo, u, &s->was) < 0)
		return failed(w, s);
	return 0;
}

/* ---- directories' own attributes ---- */

struct xattr {
	const char *name, *value;
	uint32_t size;
};

/* The next of a list made by xattrs_read(); false at its end, or where it makes no sense. */
static bool next_xattr(const char **at, const char *end, struct xattr *ret)
{
	const char *nul = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;

	if (!nul || end - nul < 5)
		return false;
	ret->name = *at;
	memcpy(&ret->size, nul + 1, 4);
	ret->value = nul + 5;
	if ((size_t)(end - ret->value) < ret->size)
		return false;
	*at = ret->value + ret->size;
	return true;
}

static bool has_xattr(const struct step_meta *m, const char *name)
{
	const char *at = m->xattrs, *end = m->xattrs + m->xattrs_len;
	struct xattr x;

	while (next_xattr(&at, end, &x))
		if (!strcmp(x.name, name))
			return true;
	return false;
}

/* From whatever it has now. */
static int set_xattrs(int fd, const struct step_meta *to)
{
	struct cs_buf now CS_BUF_AUTO = CS_BUF(TXN_XATTR_MAX);
	const char *at = to->xattrs, *end = to->xattrs + to->xattrs_len;
	struct xattr x;

	if (xattrs_read(fd, ".", &now) < 0)
		return -1;
	if (now.len == to->xattrs_len && (!now.len || !memcmp(now.data, to->xattrs, now.len)))
		return 0;
	while (next_xattr(&at, end, &x))
		if (act_setxattr(fd, x.name, x.value, x.size) < 0)
			return -1;
	at = now.data, end = at + now.len;
	while (next_xattr(&at, end, &x))
		if (!has_xattr(to, x.name) && act_delxattr(fd, x.name) < 0 && errno != ENODATA)
			return -1;
	return 0;
}

static int set_times(int fd, const struct step_meta *to)
{
	const struct timespec times[2] = { { (time_t)to->atime.sec, to->atime.nsec }, { (time_t)to->mtime.sec, to->mtime.nsec } };

	return act_times(fd, times);
}

/* ino: which it must be; 0: any. */
static int set_meta(struct work *w, const struct step *s, uint64_t ino, const struct step_meta *to)
{
	CS_FD int fd = act_open_dir(w->t->ws, s->path);
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
		lost(w, s);
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(w, s);
	if (ino && st.st_ino != ino) {
		lost(w, s);
		return 0;
	}
	if ((st.st_uid != to->uid || st.st_gid != to->gid) && act_chown(fd, to->uid, to->gid) < 0 && errno != EPERM)
		return failed(w, s); /* ownership where permitted */
	/* Attributes of a directory can be changed by who may write it. */
	if (set_xattrs(fd, to) < 0 && (errno != EACCES || act_chmod(fd, to->mode | 0700) < 0 || set_xattrs(fd, to) < 0))
		return failed(w, s);
	if (act_chmod(fd, to->mode) < 0 || set_times(fd, to) < 0)
		return failed(w, s);
	return 0;
}

/* What was moved out of the layer, or back, changed its directories there: a later commit reads them again. */
static int settle_layer(struct work *w, const struct step *s)
{
	CS_FD int fd = act_open_dir(w->up.root, s->path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0; /* it went to the workspace as a whole */
	if ((st.st_mode & 07777) != (s->is.size & 07777) && act_chmod(fd, s->is.size & 07777) < 0)
		return failed(w, s);
	if ((st.st_mtim.tv_sec != s->new.mtime.sec || (uint32_t)st.st_mtim.tv_nsec != s->new.mtime.nsec) && set_times(fd, &s->new) < 0)
		return failed(w, s);
	return 0;
}

static int metas(struct work *w)
{
	bool undo = w->j->undo;

	for (size_t i = w->j->n; i-- > 0;) { /* children first: a parent may become closed */
		const struct step *s = &w->j->v[i];
		uint64_t ino = undo ? s->was.ino : s->is.ino;
		int r = 0;

		if (s->kind == STEP_META && ino)
			r = set_meta(w, s, ino, undo ? &s->old : &s->new);
		else if (s->kind == STEP_MKDIR && !undo)
			r = set_meta(w, s, 0, &s->new);
		if (r == 0 && s->is.ino && (s->kind == STEP_META || s->kind == STEP_MKDIR))
			r = settle_layer(w, s);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- directories that are cut off from the base ---- */

static const char *base_of(const struct work *w, const struct step *meta)
{
	for (size_t i = 0; meta->is.ino != meta->was.ino && i < w->j->n; i++)
		if (w->j->v[i].kind == STEP_META && w->j->v[i].was.ino == meta->is.ino)
			return w->j->v[i].path;
	return meta->path;
}

/* A directory in one that is cut off is so, too; now it says so itself. */
static int cut_off(int up, const char *name, const char *mark)
{
	CS_FD int dir = openat(up, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	mode_t closed;
	char v[8];
	int r;

	if (dir < 0 || layer_xattr(up, name, "redirect", v, 0) >= 0)
		return dir < 0 ? -1 : 0; /* a renamed one is of another place of the base */
	closed = open_up(dir);
	r = act_setxattr(dir, mark, "y", 1);
	return closed && act_chmod(dir, closed) < 0 ? -1 : r;
}

static int hide_by_name(struct work *w, const struct step *s, int up, const char *mark)
{
	CS_FD int base = act_open_dir(w->t->ws, base_of(w, s));
	struct cs_strv names = { 0 };
	struct stat st;
	int r = base < 0 ? 0 : scan_names(base, &names);

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		if (fstatat(up, names.v[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			r = S_ISDIR(st.st_mode) ? cut_off(up, names.v[i], mark) : 0;
		else if (act_whiteout(up, names.v[i]) < 0 && errno != EEXIST)
			r = -1;
	}
	cs_strv_done(&names);
	return r;
}

/* Nothing is moved yet.  What is about to be is not to be hidden by "everything the base has here", which
 * would count as deleted afterwards: each name that the program deleted is marked as such instead. */
static int hide_names(struct work *w, const struct step *s)
{
	char v[8], mark[64];
	CS_FD int up = act_open_dir(w->up.root, s->path);
	mode_t closed;
	int r;

	if (up < 0 || layer_xattr(up, ".", "opaque", v, sizeof v) != 1 || v[0] != 'y')
		return 0;
	snprintf(mark, sizeof mark, "%sopaque", xattrs_prefix());
	closed = open_up(up);
	r = hide_by_name(w, s, up, mark);
	if (r == 0 && act_delxattr(up, mark) < 0 && errno != ENODATA)
		r = -1;
	if (closed && act_chmod(up, closed) < 0)
		r = -1;
	return r < 0 ? failed(w, s) : 0;
}

/* ---- all ---- */

static int one(struct work *w, const struct step *s)
{
	static int (*const forth[STEP_KIND_MAX])(struct work *, const struct step *) = {
		[STEP_PUT] = put, [STEP_SWAP] = swap, [STEP_TAKE] = take, [STEP_PLACE] = place, [STEP_MKDIR] = make,
	};
	static int (*const back[STEP_KIND_MAX])(struct work *, const struct step *) = {
		[STEP_PUT] = unput, [STEP_SWAP] = unswap, [STEP_TAKE] = untake, [STEP_PLACE] = unplace, [STEP_MKDIR] = unmake,
	};
	int (*act)(struct work *, const struct step *) = (w->j->undo ? back : forth)[s->kind];

	int r = act ? act(w, s) : 0;

	/* A directory may have gone elsewhere: what was opened by its path is not it any more. */
	if (s->kind == STEP_TAKE || s->kind == STEP_PLACE || (s->is.ino && s->kind == STEP_SWAP && w->j->undo))
		near_forget(&w->base);
	return r == 0 ? settle_modes(w, s) : r;
}

/* What was replaced and had been edited after it was judged. */
static void find_late(struct work *w)
{
	for (size_t i = 0; i < w->j->n; i++) {
		const struct step *s = &w->j->v[i];
		struct stat st;
		char u[32];

		if (s->kind != STEP_SWAP && s->kind != STEP_TAKE)
			continue;
		undo_name(u, w, s);
		/* A directory's times change when we take something out of it ourselves. */
		if (fstatat(w->undo, u, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != s->was.ino || S_ISDIR(st.st_mode))
			continue;
		if ((uint64_t)st.st_size == s->was.size && st.st_mtim.tv_sec == s->was.mtime.sec && (uint32_t)st.st_mtim.tv_nsec == s->was.mtime.nsec)
			continue;
		w->ret->late++;
		if (!w->ret->first)
			w->ret->first = cs_strdup(s->path);
	}
}

/* Left there by an attempt before this one, perhaps. */
static bool has_undo(const struct work *w)
{
	CS_FD int copy = openat(w->undo, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CS_DIR DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	char part[24];
	int n = snprintf(part, sizeof part, "%u-", w->j->part);

	if (!d)
		return true;
	(void)CS_TAKE_FD(copy); /* the stream's now */
	while ((e = readdir(d)))
		if (!strncmp(e->d_name, part, (size_t)n))
			return true;
	return false;
}

int apply_journal(const struct txn *t, const struct journal *j, struct applied *ret, struct cs_err *err)
{
	CS_FD int up = openat(t->dir, "up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CS_FD int undo = openat(t->dir, "undo", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct work w = { .t = t, .j = j, .base = { .root = t->ws, .fd = -1 }, .up = { .root = up, .fd = -1 }, .undo = undo, .ret = ret, .err = err };
	int r = 0;

	*ret = (struct applied){ 0 };
	if (up < 0 || undo < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "open the change set");
	w.fresh = !has_undo(&w);
	w.root = geteuid() == 0;
	for (size_t i = 0; i < j->n; i++)
		w.places |= j->v[i].kind == STEP_PLACE;
	for (size_t i = 0; r == 0 && !j->undo && i < j->n; i++)
		if (j->v[i].is.ino && (j->v[i].kind == STEP_META || j->v[i].kind == STEP_MKDIR))
			r = hide_names(&w, &j->v[i]);
	for (size_t i = 0; r == 0 && i < j->n; i++)
		r = one(&w, &j->v[j->undo ? j->n - 1 - i : i]);
	if (r == 0)
		r = metas(&w);
	if (r == 0 && !j->undo)
		find_late(&w);
	near_forget(&w.base);
	near_forget(&w.up);
	return r;
}
