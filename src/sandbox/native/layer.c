/* SPDX-License-Identifier: Apache-2.0 */
/* layer.c - a host directory below a private layer that takes the writes.
 *
 * overlayfs: the base (mapped to the sandbox's user as root), a small layer of
 * whiteouts for what is hidden, and an upper layer in the private tmpfs or,
 * with older upper layers below it, on disk (store.c).
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { STATE_FILE_MAX = 64 << 20 };

static int fail(struct native_plan *p, int sys, const char *what, const char *path)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, sys, "%s '%s'", what, path);
}

/* What stands at rel in the topmost layer that says anything about it; false: nothing, or deleted. */
static bool stat_merged(const struct native_overlay *o, const char *rel, struct stat *st)
{
	for (size_t i = 0; i < o->n_lowers; i++)
		if (fstatat(o->lowers[i], rel, st, AT_SYMLINK_NOFOLLOW) == 0)
			return !(S_ISCHR(st->st_mode) && st->st_rdev == 0);
	return false;
}

/* Hidden names below a layer are whiteouts in a small layer of our own between
 * the upper and all others: to the program they are not there at all. */
static int hide_in_layer(const struct native_overlay *below, int mask, const char *rel)
{
	char part[4096];
	size_t len = strlen(rel);
	struct stat st;

	if (len >= sizeof part)
		return errno = ENAMETOOLONG, -1;
	for (size_t i = 1; i < len; i++) {
		if (rel[i] != '/')
			continue;
		memcpy(part, rel, i);
		part[i] = 0;
		if (!stat_merged(below, part, &st) || !S_ISDIR(st.st_mode))
			return 0; /* gone meanwhile: nothing to hide */
		if (mkdirat(mask, part, 0700) < 0) {
			if (errno != EEXIST)
				return -1;
			continue;
		}
		/* The topmost directory lends its mode and times to the merged one. */
		struct timespec times[2] = { st.st_atim, st.st_mtim };

		if (fchmodat(mask, part, st.st_mode & 0777, 0) < 0 || utimensat(mask, part, times, AT_SYMLINK_NOFOLLOW) < 0)
			return -1;
	}
	/* ENOTDIR: what it lies in is hidden already. */
	return mknodat(mask, rel, S_IFCHR, 0) < 0 && errno != EEXIST && errno != ENOTDIR ? -1 : 0;
}

static bool hides_something(const struct native_plan *p, const struct sandbox_bind *b)
{
	for (size_t i = 0; i < p->spec->n_hide; i++)
		if (native_below(p->spec->hide[i], native_target(b)))
			return true;
	return false;
}

static int fill_mask(struct native_plan *p, const struct sandbox_bind *b, const struct native_overlay *below, int mask)
{
	for (size_t i = 0; i < p->spec->n_hide; i++) {
		const char *rel = native_below(p->spec->hide[i], native_target(b));

		if (rel && hide_in_layer(below, mask, rel) < 0)
			return fail(p, errno, "hide", p->spec->hide[i]);
	}
	return 0;
}

static int make_layer_dir(struct native_plan *p, const char *kind, size_t i, mode_t mode)
{
	char name[24];

	snprintf(name, sizeof name, "%s%zu", kind, i);
	if (mkdirat(p->tmpfs_fd, name, 0700) < 0 || fchmodat(p->tmpfs_fd, name, mode, 0) < 0)
		return -1;
	return openat(p->tmpfs_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The upper layer and overlayfs' work directory: on disk if the caller gave a place, else in the private tmpfs. */
static int open_upper(struct native_plan *p, size_t i, const struct stat *st, int userns, int *ret_upper, int *ret_work)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	char name[24];

	if (p->binds[i]->store)
		return native_store_open(p, i, st, userns, ret_upper, ret_work);
	*ret_upper = make_layer_dir(p, p->binds[i]->scratch ? "su" : "up", i, st->st_mode & 0777);
	*ret_work = make_layer_dir(p, "wk", i, 0700);
	if (*ret_upper < 0 || *ret_work < 0)
		return fail(p, errno, "make a layer over", p->binds[i]->source);
	snprintf(name, sizeof name, "%s%zu", p->binds[i]->scratch ? "su" : "up", i);
	(void)utimensat(p->tmpfs_fd, name, times, AT_SYMLINK_NOFOLLOW); /* the merged directory shows them */
	return 0;
}

/* The base, mapped to the sandbox's user.  Where that cannot be done others' files stay others', and that is said. */
int native_open_base(struct native_plan *p, size_t i, int src, int userns)
{
	char name[24];
	int fd = -1;

	snprintf(name, sizeof name, "lo%zu", i);
	if (userns >= 0) {
		fd = native_clone_attached(src, userns, p->tmpfs_fd, name);
		p->report->unmapped |= fd < 0;
	}
	return fd >= 0 ? fd : fcntl(src, F_DUPFD_CLOEXEC, 3);
}

/* The mask goes first among the lower layers, and is made from what they hold. */
static int put_mask(struct native_plan *p, size_t i, const struct stat *st, struct native_overlay *o, int *layers)
{
	int mask;

	if (!hides_something(p, p->binds[i]))
		return 0;
	mask = make_layer_dir(p, "mk", i, st->st_mode & 0777);
	if (mask < 0)
		return fail(p, errno, "make a layer over", p->binds[i]->source);
	if (fill_mask(p, p->binds[i], o, mask) < 0)
		return -1;
	layers[0] = mask;
	o->lowers = layers;
	o->n_lowers++;
	return 0;
}

int native_layer_mount(struct native_plan *p, size_t i, const struct stat *st, const struct native_layers *l)
{
	const struct sandbox_bind *b = p->binds[i];
	CS_FREE int *layers = cs_calloc(l->n_lowers + 2, sizeof *layers); /* mask, older uppers, base */
	struct native_overlay o = { .upper = l->upper, .work = l->work, .lowers = layers + 1, .n_lowers = l->n_lowers + 1,
				    .userxattr = p->builder_userns, .disk = l->disk, .scratch = p->tmpfs_fd,
				    .redirect = !l->disk || (b->redirect && !l->n_lowers) };
	int fd;

	if (l->n_lowers > NATIVE_LOWERS_MAX)
		return cs_fail(&p->report->err, CS_E_LIMIT, 0, "%zu layers over '%s', at most %d", l->n_lowers, b->source, NATIVE_LOWERS_MAX);
	for (size_t k = 0; k < l->n_lowers; k++)
		layers[1 + k] = l->lowers[k];
	layers[1 + l->n_lowers] = l->base;
	if (put_mask(p, i, st, &o, layers) < 0)
		return -1;
	fd = native_overlay_mount(&o);
	if (fd < 0 && l->disk)
		(void)native_store_refused(p, errno, b->source);
	else if (fd < 0)
		(void)cs_fail(&p->report->err, CS_E_UNSUPPORTED, errno,
			      "make a private layer over '%s' (overlayfs); `--workspace-mode read` does without", b->source);
	if (layers[0] > 0)
		close(layers[0]);
	return fd;
}

/* A directory in the upper layer lends its owner to the merged one.  Bounded: who has more directories
 * there than this finds some of them closed. */
static void own_directories(int base, int upper, unsigned depth, unsigned *left)
{
	CS_FD int fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CS_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d)
		return;
	(void)CS_TAKE_FD(fd); /* the stream's now */
	while (*left && depth && (e = readdir(d))) {
		CS_FD int from = -1, to = -1;

		if (e->d_type != DT_DIR || !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || mkdirat(upper, e->d_name, 0755) < 0)
			continue;
		--*left;
		from = openat(base, e->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		to = openat(upper, e->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (from >= 0 && to >= 0)
			own_directories(from, to, depth - 1, left);
	}
}

static void own_scratch(const char *path, unsigned depth, unsigned left, int base, int upper)
{
	CS_FD int from = -1, to = -1;

	if (*path && mkdirat(upper, path, 0755) < 0)
		return; /* then it cannot be written, and the program is told */
	from = openat(base, *path ? path : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	to = openat(upper, *path ? path : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from >= 0 && to >= 0)
		own_directories(from, to, depth, &left);
}

static int copy_file(int base, int upper, const char *name, const struct stat *st)
{
	CS_FD int from = openat(base, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	CS_FD int to = from < 0 ? -1 : openat(upper, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	off_t left = st->st_size;

	if (to < 0)
		return -1;
	while (left > 0) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);

		if (n <= 0)
			return -1;
		left -= n;
	}
	return fchmod(to, st->st_mode & 0777) < 0 ? -1 : futimens(to, times);
}

/* Package managers link to the files of their state, which only the owner may. What cannot be copied stays another's,
 * and the program is told when it tries. */
static void own_files(int base, int upper)
{
	CS_FD int fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CS_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	unsigned left = 64;
	struct dirent *e;
	struct stat st;

	if (!d)
		return;
	(void)CS_TAKE_FD(fd); /* the stream's now */
	while (left && (e = readdir(d))) {
		if (e->d_type != DT_REG || fstatat(base, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_size > STATE_FILE_MAX)
			continue;
		if (copy_file(base, upper, e->d_name, &st) < 0)
			(void)unlinkat(upper, e->d_name, 0);
		left--;
	}
}

/* Rootless the base stays its owners', and nobody inside has power over them. */
static void own_base(const struct native_plan *p, const struct sandbox_bind *b, int base, int upper)
{
	if (!p->ids.root) {
		own_scratch(b->scratch, 8, 2048, base, upper);
		return;
	}
	own_scratch("", 5, 16384, base, upper); /* packages go anywhere, and mostly not deep */
	if (native_below(b->source, "/var"))
		own_files(base, upper);
}

int native_bind_layer(struct native_plan *p, size_t i, int src, const struct stat *st, int userns)
{
	const struct sandbox_bind *b = p->binds[i];
	CS_FD int upper = -1, work = -1, base = -1, fd = -1;
	struct native_layers l = { .disk = b->store != 0 };

	if (open_upper(p, i, st, userns, &upper, &work) < 0)
		return -1;
	base = native_open_base(p, i, src, userns);
	if (base < 0)
		return fail(p, errno, "open the base of", b->source);
	if (b->scratch && userns < 0)
		own_base(p, b, base, upper);
	l.upper = upper;
	l.work = work;
	l.base = base;
	if (l.disk) {
		l.lowers = p->stores[i].lowers;
		l.n_lowers = b->n_lowers;
	}
	fd = native_layer_mount(p, i, st, &l);
	return fd < 0 ? -1 : native_attach_fd(p, fd, native_target(b), true);
}
