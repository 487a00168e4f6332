/* SPDX-License-Identifier: Apache-2.0 */
/* compat.h - what glibc has and musl does not.
 *
 * The program is linked statically with musl: starting a static glibc program
 * executes dozens of CPUID instructions, each of which traps in a virtual
 * machine (370 us of 450 where we measured), before main() is reached.  The
 * sanitizer builds use glibc, so both stay honest.
 */
#pragma once
#include <features.h>

#ifndef __GLIBC__
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/mount.h>

#define strerrordesc_np(e) strerror(e) /* constant strings, no lock, no locale data loaded */

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE  (1 << 1)
#endif

#define CLOSE_RANGE_CLOEXEC (1U << 2)
static inline int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}
static inline int fsopen(const char *fs, unsigned flags)
{
	return (int)syscall(SYS_fsopen, fs, flags);
}
static inline int fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}
static inline int fsmount(int fd, unsigned flags, unsigned attr)
{
	return (int)syscall(SYS_fsmount, fd, flags, attr);
}
static inline int open_tree(int dir, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}
static inline int move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}
static inline int mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *a, size_t size)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, a, size);
}
#endif
