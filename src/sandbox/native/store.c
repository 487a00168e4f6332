/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - a layer whose writes go to a directory on disk.
 *
 * A store holds `up` and `wk`, made by the caller and owned by the workspace's
 * owner.  As root it is mapped as the workspace is, so that what the program
 * writes belongs to that owner on disk, and nothing has to be given away later.
 *
 * overlayfs mounts on file systems that it then cannot work with (it only warns
 * of missing attributes and file types); those are refused here, before.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

/* ---- the caller's directories in our mount namespace ---- */

int native_reopen(int proc_dir, int fd)
{
	char link[32], path[4096];
	struct stat was, is;
	CS_FD int here = -1;
	ssize_t n;

	snprintf(link, sizeof link, "self/fd/%d", fd);
	n = readlinkat(proc_dir, link, path, sizeof path - 1);
	if (n < 0)
		return -1;
	path[n] = 0;
	here = sys_open_path(path);
	if (here < 0 || fstat(fd, &was) < 0 || fstat(here, &is) < 0)
		return -1;
	if (was.st_dev != is.st_dev || was.st_ino != is.st_ino)
		return errno = ESTALE, -1;
	return CS_TAKE_FD(here);
}

int native_open_stores(struct native_plan *p)
{
	size_t n = p->spec->n_binds;

	p->stores = cs_calloc(n, sizeof *p->stores);
	for (size_t i = 0; i < n; i++) {
		const struct sandbox_bind *b = p->binds[i];
		struct native_store *s = &p->stores[i];

		if (!b->store)
			continue;
		s->lowers = cs_calloc(b->n_lowers, sizeof *s->lowers);
		s->dir = native_reopen(p->proc_fd, b->store);
		for (size_t k = 0; s->dir >= 0 && k < b->n_lowers; k++)
			if ((s->lowers[k] = native_reopen(p->proc_fd, b->lowers[k])) < 0)
				s->dir = -1;
		if (s->dir < 0)
			return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "open the layers on disk over '%s'", b->source);
	}
	return 0;
}

/* ---- what overlayfs needs of an upper layer ---- */

/* An overlay tells deleted names from others by their type in the listing. */
static bool lists_types(int dir)
{
	CS_FD int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CS_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool known = true;

	if (!d)
		return false;
	(void)CS_TAKE_FD(fd);
	while (known && (e = readdir(d)))
		known = e->d_type != DT_UNKNOWN;
	return known;
}

static bool has_attributes(int work, bool userxattr)
{
	const char *name = userxattr ? "user.overlay.caisson" : "trusted.overlay.caisson";
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", work); /* the descriptor is only a path */
	if (setxattr(path, name, "", 0, 0) < 0)
		return false;
	return removexattr(path, name) == 0;
}

const char *native_store_lacks(int dir, int work, bool userxattr)
{
	if (!lists_types(dir))
		return "that file system does not list the types of files (xfs: ftype=1)";
	if (!has_attributes(work, userxattr))
		return "that file system has no extended attributes";
	return NULL;
}

/* ---- opening them as layers ---- */

static int refuse(struct native_plan *p, int sys, const char *why, const char *source)
{
	p->report->bad_store = true;
	return cs_fail(&p->report->err, CS_E_UNSUPPORTED, sys, "%s (for the changes of '%s')", why, source);
}

int native_store_unmapped(struct native_plan *p, int sys, const char *source)
{
	return refuse(p, sys, "that file system cannot map ids", source);
}

int native_store_refused(struct native_plan *p, int sys, const char *source)
{
	return refuse(p, sys,
		      sys == ELOOP ? "a layer on disk cannot lie around the workspace"
				   : "overlayfs cannot keep a layer in that directory (on overlayfs itself, NFS or FUSE it cannot)",
		      source);
}

/* The merged directory shows the upper's times: as long as nothing was written, those of what is below. */
static void lend_times(int upper, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	CS_FD int fd = openat(upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CS_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int names = 0;

	if (!d)
		return;
	(void)CS_TAKE_FD(fd);
	while (names < 3 && readdir(d))
		names++;
	if (names == 2) /* . and .. */
		(void)futimens(dirfd(d), times); /* decoration */
}

static int map_lowers(struct native_plan *p, struct native_store *s, size_t i, int userns)
{
	char name[48];

	for (size_t k = 0; k < p->binds[i]->n_lowers && userns >= 0; k++) {
		CS_FD int old = s->lowers[k];

		snprintf(name, sizeof name, "lo%zu-%zu", i, k);
		s->lowers[k] = native_clone_attached(old, userns, p->tmpfs_fd, name);
		if (s->lowers[k] < 0)
			return -1;
	}
	return 0;
}

int native_store_parts(struct native_plan *p, const struct sandbox_bind *b, int dir, int *ret_upper, int *ret_work)
{
	CS_FD int upper = openat(dir, "up", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CS_FD int work = openat(dir, "wk", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (upper < 0 || work < 0)
		return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "open 'up' and 'wk' of the layer over '%s'", b->source);
	*ret_upper = CS_TAKE_FD(upper);
	*ret_work = CS_TAKE_FD(work);
	return 0;
}

int native_store_check(struct native_plan *p, const struct sandbox_bind *b, int dir, int upper, int work, const struct stat *below)
{
	const char *lacks;
	struct stat st;

	if (fstat(upper, &st) < 0 || (p->ids.ranged && st.st_uid != p->ids.uid))
		return cs_fail(&p->report->err, CS_E_INVALID, 0, "the layer on disk over '%s' has another owner than that", b->source);
	lacks = native_store_lacks(dir, work, p->builder_userns);
	if (lacks)
		return refuse(p, 0, lacks, b->source);
	lend_times(upper, below);
	return 0;
}

int native_store_open(struct native_plan *p, size_t i, const struct stat *base, int userns, int *ret_upper, int *ret_work)
{
	const struct sandbox_bind *b = p->binds[i];
	struct native_store *s = &p->stores[i];
	CS_FD int mapped = -1;
	struct stat top = *base;
	char name[24];
	int dir = s->dir;

	snprintf(name, sizeof name, "st%zu", i);
	if (userns >= 0) {
		mapped = native_clone_attached(s->dir, userns, p->tmpfs_fd, name);
		if (mapped < 0 || map_lowers(p, s, i, userns) < 0)
			return native_store_unmapped(p, errno, b->source);
		dir = mapped;
	}
	if (b->n_lowers)
		(void)fstat(s->lowers[0], &top);
	if (native_store_parts(p, b, dir, ret_upper, ret_work) < 0)
		return -1;
	return native_store_check(p, b, dir, *ret_upper, *ret_work, &top);
}
