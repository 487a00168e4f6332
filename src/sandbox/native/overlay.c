/* SPDX-License-Identifier: Apache-2.0 */
/* overlay.c - one overlayfs mount from descriptors.
 *
 * Layers are named by /proc/self/fd, so that no name of theirs needs escaping
 * and none is looked up twice.  fsconfig(2) takes strings of up to 255 bytes,
 * which is 13 layers; beyond that `lowerdir+` (Linux 6.8) names them one by
 * one, and before that only mount(2) takes a page of options.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { OPTION_MAX = 256, PAGE = 4096 };

/* Appends; false when it does not fit. */
static bool put(char *text, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static bool put(char *text, size_t size, const char *fmt, ...)
{
	size_t at = strlen(text);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text + at, size - at, fmt, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < size - at;
}

static bool put_lowers(char *text, size_t size, const struct native_overlay *o)
{
	for (size_t i = 0; i < o->n_lowers; i++)
		if (!put(text, size, "%s/proc/self/fd/%d", i ? ":" : "", o->lowers[i]))
			return false;
	return true;
}

static int set(int fs, const char *key, int layer)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", layer);
	return fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

static int set_lowers(int fs, const struct native_overlay *o)
{
	char text[OPTION_MAX] = "";

	if (put_lowers(text, sizeof text, o))
		return fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", text, 0);
	for (size_t i = 0; i < o->n_lowers; i++)
		if (set(fs, "lowerdir+", o->lowers[i]) < 0)
			return -1;
	return 0;
}

/* In a user namespace overlayfs keeps its notes in user.* attributes; with real root it can also
 * rename directories of the base.  Data is never left behind in a lower layer (metacopy).
 *
 * Never an index, which some kernels have by default.  It would keep the names of a base file with
 * hard links together, but only in its own view: a change made through one name is in the upper
 * layer under that name alone, and under the others by an entry of the work directory.  So a commit,
 * a savepoint and a fork would all take back what the program saw under the others; and as
 * upper, work and lower directories are tied to one another, a spare work directory or a
 * layer over another one is ESTALE. */
static int set_behaviour(int fs, const struct native_overlay *o)
{
	if (fsconfig(fs, FSCONFIG_SET_STRING, "index", "off", 0) < 0)
		return -1;
	if (o->userxattr)
		return fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0);
	if (fsconfig(fs, FSCONFIG_SET_STRING, "redirect_dir", o->redirect ? "on" : "nofollow", 0) < 0)
		return -1;
	return fsconfig(fs, FSCONFIG_SET_STRING, "metacopy", "off", 0);
}

static int by_fsopen(const struct native_overlay *o)
{
	CS_FD int fs = fsopen("overlay", FSOPEN_CLOEXEC);

	if (fs < 0 || set_behaviour(fs, o) < 0)
		return -1;
	if (o->disk && fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0)
		return -1;
	if (set_lowers(fs, o) < 0 || set(fs, "upperdir", o->upper) < 0 || set(fs, "workdir", o->work) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* For long lists before Linux 6.8.  mount(2) wants a place: an own one, left again at once. */
static int by_mount(const struct native_overlay *o)
{
	char text[PAGE] = "", place[64];
	CS_FD int fd = -1;

	snprintf(place, sizeof place, "/proc/self/fd/%d/place", o->scratch);
	if (!put(text, sizeof text, "index=off,%s,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d%s,lowerdir=",
		 o->userxattr ? "userxattr" : o->redirect ? "redirect_dir=on,metacopy=off" : "redirect_dir=nofollow,metacopy=off",
		 o->upper, o->work, o->disk ? ",volatile" : "") ||
	    !put_lowers(text, sizeof text, o))
		return errno = E2BIG, -1;
	if (mkdirat(o->scratch, "place", 0700) < 0 && errno != EEXIST)
		return -1;
	if (mount("overlay", place, "overlay", MS_NOSUID | MS_NODEV, text) < 0)
		return -1;
	fd = open_tree(AT_FDCWD, place, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (umount2(place, MNT_DETACH) < 0 || fd < 0)
		return -1;
	return CS_TAKE_FD(fd);
}

/* `volatile` leaves a mark that forbids the next mount, for the data might not have reached the
 * disk.  Whoever mounts a store again has decided what it is worth. */
void native_overlay_unmark(int work)
{
	static const char *const dirs[] = { "work", "work/incompat", "work/incompat/volatile" };

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		if (fchmodat(work, dirs[i], 0700, 0) < 0) /* made with no mode, and rootless the owner wants one */
			return;
	(void)unlinkat(work, "work/incompat/volatile/dirty", 0); /* what stays the mount reports */
	(void)unlinkat(work, dirs[2], AT_REMOVEDIR);
	(void)unlinkat(work, dirs[1], AT_REMOVEDIR);
}

int native_overlay_mount(const struct native_overlay *o)
{
	int fd;

	if (o->disk)
		native_overlay_unmark(o->work);
	fd = by_fsopen(o);
	if (fd < 0 && errno == EINVAL && o->scratch >= 0 && o->n_lowers > OPTION_MAX / sizeof "/proc/self/fd/99")
		fd = by_mount(o);
	return fd;
}

int native_clone_mapped(int src, int userns)
{
	struct mount_attr a = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	unsigned deep = userns < 0 ? AT_RECURSIVE : 0;
	CS_FD int fd = open_tree(src, "", AT_EMPTY_PATH | deep | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (userns >= 0) {
		a.attr_set |= MOUNT_ATTR_IDMAP;
		a.userns_fd = (uint64_t)userns;
	}
	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH | deep, &a, sizeof a) < 0)
		return -1;
	return CS_TAKE_FD(fd);
}

/* The same below scratch, because before Linux 6.15 a layer must be attached in our namespace. */
int native_clone_attached(int src, int userns, int scratch, const char *name)
{
	CS_FD int fd = native_clone_mapped(src, userns);

	if (fd < 0 || (mkdirat(scratch, name, 0700) < 0 && errno != EEXIST) ||
	    move_mount(fd, "", scratch, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -1;
	return CS_TAKE_FD(fd);
}
