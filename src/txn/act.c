/* SPDX-License-Identifier: Apache-2.0 */
/* act.c - every call of a transaction that changes the disk, each behind a fault point. */
#include "txn/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

int act_write(int fd, const void *data, size_t size)
{
	CS_FAULT("write");
	return cs_write_all(fd, data, size);
}

int act_pwrite(int fd, const void *data, size_t size)
{
	ssize_t n;

	CS_FAULT("pwrite");
	n = pwrite(fd, data, size, 0);
	if (n >= 0 && (size_t)n != size)
		return errno = ENOSPC, -1;
	return n < 0 ? -1 : 0;
}

int act_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	CS_FAULT("rename");
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int act_mkdir(int dir, const char *name, mode_t mode)
{
	CS_FAULT("mkdir");
	return mkdirat(dir, name, mode);
}

int act_whiteout(int dir, const char *name)
{
	CS_FAULT("mknod");
	return mknodat(dir, name, S_IFCHR, 0);
}

int act_unlink(int dir, const char *name, int flags)
{
	CS_FAULT("unlink");
	return unlinkat(dir, name, flags);
}

/* The power-loss test's positive control: without syncs it must find a loss. */
static bool syncs(void)
{
#ifdef CS_TEST_SWITCHES
	return !getenv("CAISSON_NO_SYNC");
#else
	return true;
#endif
}

int act_sync_fs(int fd)
{
	CS_FAULT("syncfs");
	return syncs() ? syncfs(fd) : 0;
}

int act_sync(int fd)
{
	CS_FAULT("fsync");
	return syncs() ? fsync(fd) : 0;
}

int act_chmod(int fd, mode_t mode)
{
	CS_FAULT("chmod");
	return fchmod(fd, mode);
}

int act_chmod_at(int dir, const char *name, mode_t mode)
{
	CS_FAULT("chmod");
	return fchmodat(dir, name, mode, AT_SYMLINK_NOFOLLOW);
}

int act_chown(int fd, uid_t uid, gid_t gid)
{
	CS_FAULT("chown");
	return fchown(fd, uid, gid);
}

int act_times(int fd, const struct timespec t[2])
{
	CS_FAULT("utimens");
	return futimens(fd, t);
}

int act_setxattr(int fd, const char *name, const void *value, size_t size)
{
	CS_FAULT("setxattr");
	return fsetxattr(fd, name, value, size, 0);
}

int act_delxattr(int fd, const char *name)
{
	CS_FAULT("removexattr");
	return fremovexattr(fd, name);
}

int act_setxattr_at(int dir, const char *name, const char *attr, const void *value, size_t size)
{
	CS_FAULT("setxattr");
	return xattrs_set(dir, name, attr, value, size);
}

int act_delxattr_at(int dir, const char *name, const char *attr)
{
	CS_FAULT("removexattr");
	return xattrs_remove(dir, name, attr);
}

/* ---- paths ---- */

enum { BENEATH = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

static int open_short(int root, const char *path)
{
	return sys_openat2(root, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, BENEATH);
}

/* Paths longer than the kernel takes at once are walked in pieces. */
static int open_long(int root, const char *path)
{
	char part[PATH_MAX];
	CS_FD int at = -1;

	while (*path) {
		size_t len = strlen(path), cut = len < sizeof part ? len : sizeof part - 1;
		int next;

		while (cut < len && cut > 0 && path[cut] != '/')
			cut--;
		if (!cut)
			return errno = ENAMETOOLONG, -1;
		memcpy(part, path, cut);
		part[cut] = 0;
		next = open_short(at < 0 ? root : at, part);
		if (next < 0)
			return -1;
		if (at >= 0)
			close(at);
		at = next;
		path += cut + (path[cut] == '/');
	}
	return CS_TAKE_FD(at);
}

int act_open_dir(int root, const char *path)
{
	return strlen(path) < PATH_MAX ? open_short(root, path) : open_long(root, path);
}

int act_parent(int root, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	CS_FREE char *dir = slash ? cs_strndup(path, (size_t)(slash - path)) : NULL;

	*ret_name = slash ? slash + 1 : path;
	if (!**ret_name || !strcmp(*ret_name, ".") || !strcmp(*ret_name, ".."))
		return errno = EINVAL, -1;
	return act_open_dir(root, dir ? dir : "");
}

int near_parent(struct near_dir *c, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	CS_FREE char *dir = NULL;
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (c->fd >= 0 && strlen(c->dir) == len && !memcmp(c->dir, path, len))
		return c->fd;
	dir = cs_strndup(path, len);
	fd = act_parent(c->root, path, ret_name);
	if (fd < 0)
		return -1;
	if (c->fd >= 0)
		close(c->fd);
	free(c->dir);
	c->fd = fd;
	c->dir = CS_TAKE_PTR(dir);
	return fd;
}

void near_forget(struct near_dir *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->dir);
	c->fd = -1;
	c->dir = NULL;
}

/* ---- removal ---- */

static int remove_content(int dir, unsigned depth);

static int remove_one(int dir, const char *name, unsigned depth)
{
	CS_FD int sub = -1;

	if (act_unlink(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if ((errno != EISDIR && errno != EPERM) || depth > TXN_DEPTH_MAX)
		return -1;
	sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sub < 0 && errno == EACCES && fchmodat(dir, name, 0700, 0) == 0) /* overlayfs makes its work directory 0000 */
		sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sub < 0)
		return -1;
	if (faccessat(sub, ".", W_OK | X_OK, AT_EACCESS) < 0)
		(void)fchmod(sub, 0700); /* if that fails, so does what follows */
	if (remove_content(sub, depth + 1) < 0)
		return -1;
	return act_unlink(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -1 : 0;
}

static int remove_content(int dir, unsigned depth)
{
	CS_FD int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	CS_DIR DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!d)
		return -1;
	(void)CS_TAKE_FD(copy); /* the stream's now */
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && remove_one(dir, e->d_name, depth) < 0)
			return -1;
	return 0;
}

int act_remove_tree(int dir, const char *name)
{
	return remove_one(dir, name, 0);
}
