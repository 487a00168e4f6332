/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock by number: Debian 12's headers know ABI 2, the kernels we meet know 7. */
#include "sys/sys.h"

#include <errno.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_V1_LAST = 1 << 12,
	FS_REFER = 1 << 13,     /* ABI 2 */
	FS_TRUNCATE = 1 << 14,  /* ABI 3 */
	FS_IOCTL_DEV = 1 << 15, /* ABI 5 */
};

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct __attribute__((packed)) path_beneath {
	uint64_t allowed;
	int32_t fd;
};

int sys_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* VERSION */);

	if (abi <= 0)
		return 0;
	return abi > SYS_LANDLOCK_ABI_MAX ? SYS_LANDLOCK_ABI_MAX : (int)abi;
}

uint64_t sys_landlock_fs_all(int abi)
{
	uint64_t all = (FS_V1_LAST << 1) - 1;

	if (abi >= 2)
		all |= FS_REFER;
	if (abi >= 3)
		all |= FS_TRUNCATE;
	if (abi >= 5)
		all |= FS_IOCTL_DEV;
	return all;
}

uint64_t sys_landlock_fs_read(void)
{
	return FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
}

uint64_t sys_landlock_fs_file(int abi)
{
	return sys_landlock_fs_all(abi) & (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV);
}

int sys_landlock_create(int abi)
{
	struct ruleset_attr attr = { .fs = sys_landlock_fs_all(abi) };
	size_t size = sizeof attr.fs;

	/* TCP rules (ABI 4) are not asked for: the network namespace is the wall,
	 * and inside it loopback must work.  Scopes (ABI 6): abstract sockets and
	 * signals stay inside. */
	if (abi >= 4)
		size = 2 * sizeof(uint64_t);
	if (abi >= 6) {
		attr.scoped = 3;
		size = sizeof attr;
	}
	return (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
}

int sys_landlock_allow(int ruleset, int fd, uint64_t rights)
{
	struct path_beneath rule = { .allowed = rights, .fd = fd };

	return (int)syscall(SYS_landlock_add_rule, ruleset, 1 /* PATH_BENEATH */, &rule, 0);
}

int sys_landlock_enter(int ruleset)
{
	return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}
