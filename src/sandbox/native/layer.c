/* SPDX-License-Identifier: Apache-2.0 */
/* layer.c - a host directory below a private layer that takes the writes.
 *
 * overlayfs: the base (mapped to the sandbox's user as root), a small layer of
 * whiteouts for what is hidden, and an upper layer in the private tmpfs.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { EMPTY = AT_EMPTY_PATH };

static int fail(struct native_plan *p, int sys, const char *what, const char *path)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, sys, "%s '%s'", what, path);
}

/* A clone of src whose owner's files belong to the sandbox's user; -1: not possible there. */
int native_clone_mapped(int src, int userns)
{
	struct mount_attr a = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	unsigned deep = userns < 0 ? AT_RECURSIVE : 0;
	CS_FD int fd = open_tree(src, "", EMPTY | deep | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (userns >= 0) {
		a.attr_set |= MOUNT_ATTR_IDMAP;
		a.userns_fd = (uint64_t)userns;
	}
	if (fd < 0 || mount_setattr(fd, "", EMPTY | deep, &a, sizeof a) < 0)
		return -1;
	return CS_TAKE_FD(fd);
}

/* Hidden names below a layer are whiteouts in a small layer of our own between
 * the base and the upper: to the program they are not there at all. */
static int hide_in_layer(int base, int mask, const char *rel)
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
		if (fstatat(base, part, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
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
	return mknodat(mask, rel, S_IFCHR, 0) < 0 && errno != EEXIST ? -1 : 0;
}

static bool hides_something(const struct native_plan *p, const struct sandbox_bind *b)
{
	for (size_t i = 0; i < p->spec->n_hide; i++)
		if (native_below(p->spec->hide[i], native_target(b)))
			return true;
	return false;
}

static int fill_mask(struct native_plan *p, const struct sandbox_bind *b, int base, int mask)
{
	for (size_t i = 0; i < p->spec->n_hide; i++) {
		const char *rel = native_below(p->spec->hide[i], native_target(b));

		if (rel && hide_in_layer(base, mask, rel) < 0)
			return fail(p, errno, "hide", p->spec->hide[i]);
	}
	return 0;
}

static int overlay_by_path(struct native_plan *p, int fs, int lower, int mask, int upper, int work)
{
	char text[128];

	(void)p;
	if (mask >= 0)
		snprintf(text, sizeof text, "/proc/self/fd/%d:/proc/self/fd/%d", mask, lower);
	else
		snprintf(text, sizeof text, "/proc/self/fd/%d", lower);
	if (fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", text, 0) < 0)
		return -1;
	snprintf(text, sizeof text, "/proc/self/fd/%d", upper);
	if (fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", text, 0) < 0)
		return -1;
	snprintf(text, sizeof text, "/proc/self/fd/%d", work);
	return fsconfig(fs, FSCONFIG_SET_STRING, "workdir", text, 0);
}

static int overlay_mount(struct native_plan *p, int lower, int mask, int upper, int work)
{
	CS_FD int fs = fsopen("overlay", FSOPEN_CLOEXEC);

	if (fs < 0)
		return -1;
	/* In a user namespace overlayfs keeps its notes in user.* attributes; with real
	 * root it can also rename directories of the base. */
	if (p->builder_userns ? fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0
			      : fsconfig(fs, FSCONFIG_SET_STRING, "redirect_dir", "on", 0) < 0)
		return -1;
	if (overlay_by_path(p, fs, lower, mask, upper, work) < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int make_layer_dir(struct native_plan *p, const char *kind, size_t i, mode_t mode)
{
	char name[24];

	snprintf(name, sizeof name, "%s%zu", kind, i);
	if (mkdirat(p->tmpfs_fd, name, 0700) < 0 || fchmodat(p->tmpfs_fd, name, mode, 0) < 0)
		return -1;
	return openat(p->tmpfs_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int native_bind_layer(struct native_plan *p, const struct sandbox_bind *b, size_t i, int src, const struct stat *st, int userns)
{
	CS_FD int upper = make_layer_dir(p, "up", i, st->st_mode & 0777), work = make_layer_dir(p, "wk", i, 0700);
	CS_FD int mask = -1, base = -1, place = -1, fd = -1;
	bool hides = hides_something(p, b);

	if (hides)
		mask = make_layer_dir(p, "mk", i, st->st_mode & 0777);
	if (upper < 0 || work < 0 || (hides && mask < 0))
		return fail(p, errno, "make a layer over", b->source);
	if (userns >= 0) {
		/* Attached outside the new root: overlayfs wants its layers in our namespace. */
		base = native_clone_mapped(src, userns);
		place = make_layer_dir(p, "lo", i, 0700);
		if (base >= 0 && (place < 0 || move_mount(base, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0))
			return fail(p, errno, "attach the base of", b->source);
	}
	if (base < 0 && userns >= 0)
		p->report->unmapped = true; /* none possible there: others' files stay others', and that is said */
	if (base < 0)
		base = fcntl(src, F_DUPFD_CLOEXEC, 3);
	if (hides && fill_mask(p, b, base, mask) < 0)
		return -1;
	fd = overlay_mount(p, base, mask, upper, work);
	if (fd < 0)
		return cs_fail(&p->report->err, CS_E_UNSUPPORTED, errno,
			       "make a private layer over '%s' (overlayfs); `--workspace-mode read` does without", b->source);
	return native_attach_fd(p, fd, native_target(b), true);
}
