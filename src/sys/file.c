/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sys.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

int sys_open_path(const char *path)
{
	int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC, RESOLVE_NO_MAGICLINKS);

	/* openat2 is missing before Linux 5.6 and below filters that do not know it. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open(path, O_PATH | O_CLOEXEC);
	return fd;
}

int sys_put(int dir, const char *path, const char *text)
{
	CS_FD int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	if (fd < 0)
		return -1;
	return write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

ssize_t sys_get(int dir, const char *path, char *buf, size_t size)
{
	CS_FD int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;

	if (fd < 0)
		return -1;
	while (used + 1 < size) {
		ssize_t n = read(fd, buf + used, size - 1 - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	buf[used] = 0;
	return (ssize_t)used;
}

int sys_get_u64(int dir, const char *path, uint64_t *ret)
{
	char text[64], *end;
	unsigned long long v;

	if (sys_get(dir, path, text, sizeof text) < 0)
		return -1;
	if (!strncmp(text, "max", 3)) {
		*ret = UINT64_MAX;
		return 0;
	}
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || end == text)
		return -1;
	*ret = v;
	return 0;
}

/* struct statx, as far as it is used here; the kernel fills 256 bytes. */
union statx_words {
	struct {
		uint32_t mask;
		char upto_btime[0x50 - 4];
		int64_t btime_sec;
		uint32_t btime_nsec;
		char upto_mnt[0x90 - 0x5c];
		uint64_t mnt_id;
	} f;
	char bytes[256];
};
_Static_assert(offsetof(union statx_words, f.btime_sec) == 0x50 && offsetof(union statx_words, f.mnt_id) == 0x90, "as the kernel has it");

enum { STATX_BTIME_BIT = 0x800, STATX_MNT_ID_BIT = 0x1000 };

static int statx_words(int dir, const char *name, unsigned flags, unsigned want, union statx_words *ret)
{
	memset(ret, 0, sizeof *ret);
	return (int)syscall(SYS_statx, dir, name, flags, want, ret);
}

uint64_t sys_mount_id(int fd)
{
	union statx_words x;

	return statx_words(fd, "", AT_EMPTY_PATH, STATX_MNT_ID_BIT, &x) == 0 && x.f.mask & STATX_MNT_ID_BIT ? x.f.mnt_id : 0;
}

int sys_birth_time(int dir, const char *name, struct timespec *ret)
{
	union statx_words x;

	if (statx_words(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME_BIT, &x) < 0 || !(x.f.mask & STATX_BTIME_BIT))
		return -1;
	*ret = (struct timespec){ (time_t)x.f.btime_sec, x.f.btime_nsec };
	return 0;
}

void sys_dir_start(struct sys_dir *d, int fd)
{
	d->fd = fd;
	d->at = d->len = 0;
}

const struct dirent *sys_dir_next(struct sys_dir *d)
{
	const struct dirent *e;

	if (d->at == d->len) {
		d->at = 0;
		d->len = syscall(SYS_getdents64, d->fd, d->block, sizeof d->block);
		if (d->len <= 0)
			return d->len = 0, NULL;
	}
	e = (const void *)(d->block + d->at);
	d->at += e->d_reclen;
	return e;
}

bool sys_find_tool(const char *name, char ret[64])
{
	static const char *const places[] = { "/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(ret, 64, "%s/%s", places[i], name);
		if (access(ret, X_OK) == 0)
			return true;
	}
	return false;
}
