/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sys.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
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
