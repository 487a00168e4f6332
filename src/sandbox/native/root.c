/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - the new root.
 *
 * One tmpfs, bounded in bytes and files, holds everything the program can
 * write: its subdirectories become the root, /tmp, the home, /dev/shm and the
 * upper layers.  The tmpfs itself is attached outside the new root and goes
 * away with the old one, so no path leads to an upper layer.
 *
 * Every source is opened once and then used by descriptor; every target is
 * looked up below the new root with no symlink followed, because a bind that
 * came before may hold the program's own files (runc CVE-2021-30465 and its
 * many successors).  Flags are set before a mount is attached.
 */
#include "sandbox/native/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { EMPTY = AT_EMPTY_PATH };

static int fail(struct native_plan *p, int sys, const char *what, const char *path)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, sys, "%s '%s'", what, path);
}

/* ---- targets ---- */

/* mkdir -p below the new root; existing parts may be other mounts. */
static int make_dirs(int root, const char *path, mode_t mode)
{
	char part[4096];
	size_t len = strlen(path);

	if (len >= sizeof part)
		return errno = ENAMETOOLONG, -1;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdirat(root, part, mode) < 0 && errno != EEXIST && errno != EROFS)
			return -1;
	}
	return 0;
}

/* A descriptor for the place inside, made if it is missing and ours to make. */
static int open_target(struct native_plan *p, const char *path, bool dir)
{
	const uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	const char *rel = path + 1;
	int fd = sys_openat2(p->root_fd, rel, O_PATH | O_CLOEXEC, resolve);
	char parent[4096];
	const char *slash = strrchr(rel, '/');

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (dir) {
		if (make_dirs(p->root_fd, rel, 0755) < 0)
			return -1;
	} else {
		CS_FD int file = -1;

		if (slash) {
			snprintf(parent, sizeof parent, "%.*s", (int)(slash - rel), rel);
			if (make_dirs(p->root_fd, parent, 0755) < 0)
				return -1;
		}
		file = openat(p->root_fd, rel, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0444);
		if (file < 0)
			return -1;
	}
	return sys_openat2(p->root_fd, rel, O_PATH | O_CLOEXEC, resolve);
}

int native_attach_fd(struct native_plan *p, int mount, const char *path, bool dir)
{
	CS_FD int to = open_target(p, path, dir);

	if (to < 0)
		return fail(p, errno, errno == ELOOP ? "a symlink stands in the way of" : "make room for", path);
	if (move_mount(mount, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return fail(p, errno, "attach", path);
	return 0;
}

int native_attach(struct native_plan *p, const char *entry, const char *path, bool writable)
{
	CS_FD int fd = open_tree(writable ? p->tmpfs_fd : p->ro_fd, entry, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return fail(p, errno, "prepare", path);
	if (move_mount(fd, "", p->root_fd, path + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(p, errno, "attach", path);
	return 0;
}

static int put_new(int dir, const char *name, const char *data, size_t len)
{
	CS_FD int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0444);

	if (fd < 0)
		return -1;
	return cs_write_all(fd, data, len);
}

int native_provide(struct native_plan *p, const char *name, const char *path, const char *data, size_t len)
{
	if (put_new(p->root_fd, path + 1, data, len) == 0)
		return 0;
	if (errno != EROFS && errno != EEXIST && errno != EACCES)
		return fail(p, errno, "write", path);
	if (put_new(p->tmpfs_fd, name, data, len) < 0)
		return fail(p, errno, "write", path);
	if (native_attach(p, name, path, false) < 0)
		/* Nothing there to cover, in a directory that is not ours: then nothing leaks either. */
		return p->report->err.sys == ENOENT ? 0 : -1;
	return 0;
}

/* ---- the tmpfs ---- */

static bool hides_a_source(const struct native_plan *p, const char *dir)
{
	for (size_t i = 0; i < p->spec->n_binds; i++)
		if (!strcmp(p->binds[i]->source, dir) || native_below(p->binds[i]->source, dir))
			return true;
	return false;
}

/* Somewhere in the old root, where it goes away with it and hides nothing we still need.  On /
 * itself it would hide nothing either, but then takes a second unmount, which waits for RCU. */
static int attach_tmpfs(struct native_plan *p)
{
	static const char *const places[] = { "/mnt", "/media", "/srv", "/boot", "/var", "/home", "/tmp" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (!hides_a_source(p, places[i]) &&
		    move_mount(p->tmpfs_fd, "", AT_FDCWD, places[i], MOVE_MOUNT_F_EMPTY_PATH) == 0)
			return 0;
	p->tmpfs_on_root = true;
	return move_mount(p->tmpfs_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
}

static int make_tmpfs(struct native_plan *p)
{
	static const struct {
		const char *name;
		mode_t mode;
	} dirs[] = { { "root", 0755 }, { "home", 0755 }, { "tmp", 01777 }, { "shm", 01777 } };
	const struct profile_limits *l = p->spec->limits;
	CS_FD int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	char text[32];

	if (fs < 0)
		return fail(p, errno, "open file system", "tmpfs");
	if (native_on(p, PROT_LIMIT_DISK)) {
		snprintf(text, sizeof text, "%" PRIu64, l->disk);
		if (l->disk && fsconfig(fs, FSCONFIG_SET_STRING, "size", text, 0) < 0)
			return fail(p, errno, "set tmpfs size", text);
		snprintf(text, sizeof text, "%" PRIu64, l->inodes);
		if (l->inodes && fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", text, 0) < 0)
			return fail(p, errno, "set tmpfs nr_inodes", text);
	}
	if (fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(p, errno, "make", "tmpfs");
	p->tmpfs_fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (p->tmpfs_fd < 0)
		return fail(p, errno, "mount", "tmpfs");
	if (attach_tmpfs(p) < 0)
		return fail(p, errno, "attach", "tmpfs");
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		if (mkdirat(p->tmpfs_fd, dirs[i].name, dirs[i].mode) < 0 ||
		    (dirs[i].mode & 01000 && fchmodat(p->tmpfs_fd, dirs[i].name, dirs[i].mode, 0) < 0))
			return fail(p, errno, "mkdir", dirs[i].name);
	if (native_on(p, PROT_LIMIT_DISK) && l->disk)
		native_active(p, PROT_LIMIT_DISK);
	return 0;
}

/* A symlink costs less than a mount, but nothing can be bound below it. */
static int make_var_tmp(struct native_plan *p)
{
	for (size_t i = 0; i < p->spec->n_binds; i++)
		if (native_below(native_target(p->binds[i]), "/var/tmp")) {
			if (mkdirat(p->root_fd, "var/tmp", 01777) < 0)
				return fail(p, errno, "mkdir", "/var/tmp");
			return native_attach(p, "tmp", "/var/tmp", true);
		}
	return symlinkat("/tmp", p->root_fd, "var/tmp") < 0 ? fail(p, errno, "link", "/var/tmp") : 0;
}

static int make_root(struct native_plan *p)
{
	static const char *const dirs[] = { "tmp", "home", "home/agent", "dev", "dev/shm", "dev/pts", "proc", "etc", "var", "run" };

	p->root_fd = open_tree(p->tmpfs_fd, "root", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (p->root_fd < 0 || move_mount(p->root_fd, "", p->tmpfs_fd, "root", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(p, errno, "make", "/");
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		if (mkdirat(p->root_fd, dirs[i], 0755) < 0)
			return fail(p, errno, "mkdir", dirs[i]);
	if (native_attach(p, "tmp", "/tmp", true) < 0 || native_attach(p, "home", NATIVE_HOME, true) < 0 ||
	    native_attach(p, "shm", "/dev/shm", true) < 0)
		return -1;
	if (p->ids.root && native_make_var(p) < 0)
		return -1;
	return make_var_tmp(p);
}

/* ---- binds ---- */

/* "/bin -> usr/bin" stays a symlink: merged systems have five of those.  1: done. */
static int keep_symlink(struct native_plan *p, const struct sandbox_bind *b)
{
	char to[256];
	ssize_t n;

	if (!b->optional || strchr(b->source + 1, '/'))
		return 0;
	n = readlink(b->source, to, sizeof to - 1);
	if (n < 0 && (errno == EINVAL || errno == ENOENT))
		return 0;
	if (n < 0)
		return fail(p, errno, "look at", b->source);
	to[n] = 0;
	return symlinkat(to, p->root_fd, native_target(b) + 1) < 0 ? fail(p, errno, "link", b->source) : 1;
}

static int bind_ro(struct native_plan *p, const struct sandbox_bind *b, int src, bool dir)
{
	struct mount_attr a = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	CS_FD int fd = open_tree(src, "", EMPTY | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0 || mount_setattr(fd, "", EMPTY | AT_RECURSIVE, &a, sizeof a) < 0)
		return fail(p, errno, "bind read-only", b->source);
	return native_attach_fd(p, fd, native_target(b), dir);
}

static int bind_rw(struct native_plan *p, const struct sandbox_bind *b, int src, bool dir, int userns)
{
	CS_FD int fd = native_clone_mapped(src, userns);

	if (fd < 0 && errno == EINVAL && userns >= 0)
		return cs_fail(&p->report->err, CS_E_UNSUPPORTED, EINVAL,
			       "'%s' is on a file system that cannot map ids, so the sandbox's user could not write there; "
			       "use a private layer (without --rw), or run as an ordinary user", b->source);
	if (fd < 0)
		return fail(p, errno, "bind", b->source);
	return native_attach_fd(p, fd, native_target(b), dir);
}

static int bind_one(struct native_plan *p, size_t i)
{
	const struct sandbox_bind *b = p->binds[i];
	CS_FD int src = -1;
	struct stat st;
	bool dir;
	int kept = keep_symlink(p, b);

	if (kept)
		return kept < 0 ? kept : 0;
	src = sys_open_path(b->source);
	if (src < 0 && b->optional && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return 0;
	if (src < 0 || fstat(src, &st) < 0)
		return fail(p, errno, "open", b->source);
	if (p->maps[i]) {
		/* The owner that is mapped must be this one's: the path may lead elsewhere by now. */
		if (st.st_uid != p->owners[i].uid || st.st_gid != p->owners[i].gid)
			return cs_fail(&p->report->err, CS_E_CONFLICT, 0, "'%s' was exchanged while the sandbox was being built", b->source);
		if (native_expect(p, 'I', &p->idmap[i]) < 0)
			return -1;
	}
	dir = S_ISDIR(st.st_mode);
	if (!dir && !S_ISREG(st.st_mode))
		return cs_fail(&p->report->err, CS_E_DENIED, 0, "'%s' is neither a file nor a directory: not given to a sandbox", b->source);
	switch (b->kind) {
	case SANDBOX_RO:
		return bind_ro(p, b, src, dir);
	case SANDBOX_RW:
		return bind_rw(p, b, src, dir, p->idmap[i]);
	case SANDBOX_LAYER:
		return native_bind_layer(p, i, src, &st, p->idmap[i]);
	}
	return cs_fail(&p->report->err, CS_E_INVALID, 0, "bind '%s': unknown kind", b->source);
}

/* Read-only binds that lie in nothing writable come first and are timed apart;
 * the others follow with parents before children. */
static bool is_system(const struct native_plan *p, size_t i)
{
	if (p->binds[i]->kind != SANDBOX_RO)
		return false;
	for (size_t k = 0; k < i; k++)
		if (p->binds[k]->kind != SANDBOX_RO && native_below(native_target(p->binds[i]), native_target(p->binds[k])))
			return false;
	return true;
}

static int bind_some(struct native_plan *p, bool system)
{
	for (size_t i = 0; i < p->spec->n_binds; i++)
		if (is_system(p, i) == system && bind_one(p, i) < 0)
			return -1;
	return 0;
}

/* The innermost bind decides: what is bound inside a layer lies on top of its whiteouts. */
static bool in_layer(const struct native_plan *p, const char *path)
{
	const struct sandbox_bind *inner = NULL;

	for (size_t b = 0; b < p->spec->n_binds; b++) /* parents before children */
		if (native_below(path, native_target(p->binds[b])) || !strcmp(path, native_target(p->binds[b])))
			inner = p->binds[b];
	return inner && inner->kind == SANDBOX_LAYER && native_below(path, native_target(inner));
}

/* Hidden paths that no layer took care of: cover them with nothing. */
static int hide_rest(struct native_plan *p)
{
	for (size_t i = 0; i < p->spec->n_hide; i++) {
		const char *path = p->spec->hide[i];
		CS_FD int to = -1, cover = -1;
		struct stat st;

		if (in_layer(p, path))
			continue;
		to = sys_openat2(p->root_fd, path + 1, O_PATH | O_CLOEXEC, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
		if (to < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES))
			continue;
		if (to < 0 || fstat(to, &st) < 0)
			return fail(p, errno, "hide", path);
		cover = open_tree(p->ro_fd, S_ISDIR(st.st_mode) ? "nodir" : "nofile", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		if (cover < 0 || move_mount(cover, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
			return fail(p, errno, "hide", path);
	}
	return 0;
}

/* A second mount of the tmpfs, read-only: a clone of any part of it is read-only from birth. */
static int make_read_only_twin(struct native_plan *p)
{
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC };

	p->ro_fd = open_tree(p->tmpfs_fd, "", EMPTY | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (p->ro_fd < 0 || mount_setattr(p->ro_fd, "", EMPTY, &ro, sizeof ro) < 0 || mkdirat(p->tmpfs_fd, "ro", 0700) < 0 ||
	    move_mount(p->ro_fd, "", p->tmpfs_fd, "ro", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(p, errno, "make a read-only twin of", "tmpfs");
	return 0;
}

int native_build_root(struct native_plan *p)
{
	struct mount_attr private = { .propagation = MS_PRIVATE };
	CS_FD int nofile = -1;

	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof private) < 0)
		return fail(p, errno, "make mounts private below", "/");
	native_active(p, PROT_MOUNTNS);
	if (native_open_stores(p) < 0) /* while nothing stands on their paths yet */
		return -1;
	if (make_tmpfs(p) < 0 || make_root(p) < 0)
		return -1;
	/* What covers hidden and masked things: nothing, which nobody may open. */
	if (make_read_only_twin(p) < 0)
		return -1;
	nofile = openat(p->tmpfs_fd, "nofile", O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0);
	if (nofile < 0 || mkdirat(p->tmpfs_fd, "nodir", 0) < 0)
		return fail(p, errno, "make", "covers");
	native_step(p, STEP_TMPFS);
	if (bind_some(p, true) < 0)
		return -1;
	native_step(p, STEP_BINDS);
	if (bind_some(p, false) < 0)
		return -1;
	native_step(p, STEP_LAYER);
	if (p->ids.root && native_make_accounts(p) < 0)
		return -1;
	if (native_build_etc(p) < 0)
		return -1;
	native_step(p, STEP_ETC);
	if (native_build_dev(p) < 0)
		return -1;
	native_step(p, STEP_DEV);
	if (native_build_proc(p) < 0)
		return -1;
	native_step(p, STEP_PROC);
	return hide_rest(p);
}

/* Nothing may be stacked on our root: "/.." is looked up through what is. */
static bool root_is_bare(void)
{
	struct stat plain, top;

	return stat("/", &plain) == 0 && stat("/..", &top) == 0 && plain.st_dev == top.st_dev && plain.st_ino == top.st_ino;
}

int native_enter_root(struct native_plan *p)
{
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY };
	char cwd[8];

	if (fchdir(p->root_fd) < 0 || mount_setattr(p->root_fd, "", EMPTY, &ro, sizeof ro) < 0 || sys_pivot_root(".", ".") < 0)
		return fail(p, errno, "change to", "/");
	/* The old root lies on "." now, and on it perhaps the tmpfs. */
	if ((p->tmpfs_on_root && umount2(".", MNT_DETACH) < 0) || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return fail(p, errno, "detach the old", "/");
	/* Outside the root getcwd(2) says "(unreachable)": CVE-2024-21626's sign. */
	if (syscall(SYS_getcwd, cwd, sizeof cwd) < 0 || strcmp(cwd, "/") || !root_is_bare()) {
		errno = EXDEV;
		return fail(p, errno, "leave the old", "/");
	}
	native_active(p, PROT_ROOTFS);
	return 0;
}
