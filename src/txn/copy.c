/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - a file's content and attributes, copied. */
#include "txn/internal.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

static int copy_range(int in, int out, off_t from, off_t to)
{
	CS_FREE char *buf = cs_calloc(1, 1 << 17);

	while (from < to) {
		size_t want = to - from < 1 << 17 ? (size_t)(to - from) : 1 << 17;
		ssize_t n = pread(in, buf, want, from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -1 : 0;
		if (pwrite(out, buf, (size_t)n, from) != n)
			return errno = errno ? errno : ENOSPC, -1;
		from += n;
	}
	return 0;
}

int copy_content(int in, int out, off_t size)
{
	off_t at = 0;

	if (ioctl(out, FICLONE, in) == 0)
		return 0;

	while (at < size) { /* holes stay holes */
		off_t data = lseek(in, at, SEEK_DATA), hole;

		if (data < 0)
			return errno == ENXIO ? ftruncate(out, size) : -1;
		hole = lseek(in, data, SEEK_HOLE);
		if (hole < 0 || copy_range(in, out, data, hole) < 0)
			return -1;
		at = hole;
	}
	return ftruncate(out, size);
}

int copy_xattrs_all(int from, const char *name, int to, const char *as)
{
	char names[4096], value[1 << 16];
	ssize_t len = xattrs_list(from, name, names, sizeof names);

	for (const char *n = names; len > 0 && n < names + len; n += strlen(n) + 1) {
		ssize_t size = xattrs_get(from, name, n, value, sizeof value);

		if (size < 0 || xattrs_set(to, as, n, value, (size_t)size) < 0)
			return -1;
	}
	return 0;
}

int copy_file(int from, const char *name, const struct stat *st, int to)
{
	char target[PATH_MAX];
	ssize_t n;

	if (S_ISREG(st->st_mode)) {
		CS_FD int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		CS_FD int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

		return in < 0 || out < 0 ? -1 : copy_content(in, out, st->st_size);
	}
	if (!S_ISLNK(st->st_mode))
		return mknodat(to, name, st->st_mode, st->st_rdev);
	n = readlinkat(from, name, target, sizeof target - 1);
	if (n < 0)
		return -1;
	target[n] = 0;
	return symlinkat(target, to, name);
}

int copy_attributes(int from, const char *name, const struct stat *st, uid_t uid, gid_t gid, int to)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (geteuid() == 0 && fchownat(to, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (copy_xattrs_all(from, name, to, name) < 0)
		return -1;
	if (!S_ISLNK(st->st_mode) && fchmodat(to, name, st->st_mode & 07777, 0) < 0)
		return -1;
	return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
}

/* ---- hard links ---- */

static struct linked *find_link(const struct links *l, uint64_t ino)
{
	size_t i = (size_t)(ino * 0x9e3779b97f4a7c15u >> 20) & (l->cap - 1);

	while (l->v[i].path && l->v[i].ino != ino)
		i = (i + 1) & (l->cap - 1);
	return &l->v[i];
}

static void grow_links(struct links *l)
{
	struct links old = *l;

	l->cap = old.cap ? old.cap * 2 : 64;
	l->v = cs_calloc(l->cap, sizeof *l->v);
	for (size_t i = 0; i < old.cap; i++)
		if (old.v[i].path)
			*find_link(l, old.v[i].ino) = old.v[i];
	free(old.v);
}

bool links_again(struct links *l, int top, const struct stat *st, int to, const char *name, const char *path)
{
	struct linked *at;

	if (S_ISDIR(st->st_mode) || st->st_nlink < 2 || layer_is_whiteout(st))
		return false;
	if (l->n * 2 >= l->cap)
		grow_links(l);
	at = find_link(l, st->st_ino);
	if (at->path)
		return linkat(top, at->path, to, name, 0) == 0;
	*at = (struct linked){ st->st_ino, cs_strdup(path) };
	l->n++;
	return false;
}

void links_done(struct links *l)
{
	for (size_t i = 0; i < l->cap; i++)
		free(l->v[i].path);
	free(l->v);
	*l = (struct links){ 0 };
}

ssize_t read_full(int fd, char *buf, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t r = read(fd, buf + n, size - n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (r == 0)
			break;
		n += (size_t)r;
	}
	return (ssize_t)n;
}
