/* SPDX-License-Identifier: Apache-2.0 */
/* sys.h - the kernel, one function per thing we ask of it.
 *
 * What it knows      system calls and kernel files.  Nothing about sandboxes.
 * May include        base/ only.
 * Trust              callers give paths and names they have already judged.
 * Failure            raw calls return -1 and set errno as the kernel does; the
 *                    functions with a cs_err follow base/err.h.
 * After clone        everything here but cgroup_* may run between clone and
 *                    exec: no allocation, no locks, no stdio.
 */
#pragma once
#include "base/compat.h"
#include "base/err.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Calls that Debian 12's C library has no function for. */
static inline pid_t sys_clone3(struct clone_args *a)
{
	return (pid_t)syscall(SYS_clone3, a, sizeof *a);
}
static inline int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags, .resolve = resolve };
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}
static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}
static inline int sys_seccomp(unsigned op, unsigned flags, const void *arg)
{
	return (int)syscall(SYS_seccomp, op, flags, arg);
}
static inline int sys_new_session_keyring(void)
{
	return (int)syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL);
}
static inline int sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* A system call that leaves errno alone, for processes that share our memory: a call of theirs
 * that fails must not change what a call of ours reported.  Returns -errno. */
static inline long sys_raw(long nr, long a, long b, long c)
{
#if defined __x86_64__
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
#elif defined __aarch64__
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#else
#error "no raw system call for this architecture yet"
#endif
}

/* A descriptor for a path that follows symlinks but never /proc's magic ones. */
int sys_open_path(const char *path);

/* Write a whole small file / read one (NUL-terminated, cut at size). */
int sys_put(int dir, const char *path, const char *text);
ssize_t sys_get(int dir, const char *path, char *buf, size_t size);
int sys_get_u64(int dir, const char *path, uint64_t *ret);

/* What older C libraries have no statx(2) for.  0 if it is not known. */
uint64_t sys_mount_id(int fd);
int sys_birth_time(int dir, const char *name, struct timespec *ret); /* -1: not recorded there */

/* The absolute name of a program in the system's directories, whatever PATH says. */
bool sys_find_tool(const char *name, char ret[64]);

/* A directory, entry by entry.  opendir(3) would allocate for each, and reads little at a time. */
struct sys_dir {
	int fd;
	long at, len;
	_Alignas(struct dirent) char block[32768];
};
void sys_dir_start(struct sys_dir *d, int fd);       /* fd stays the caller's */
const struct dirent *sys_dir_next(struct sys_dir *d); /* NULL: no more, or unreadable */

/* net.c: a new network namespace with loopback up, made by a helper process while the caller
 * goes on; it is the slowest of the namespaces by far.  sys_netns_enter() waits and moves in. */
struct sys_netns {
	pid_t pid;
	int fd;
	int sys; /* errno of the helper, 0 */
	char stack[8192] __attribute__((aligned(16)));
};
int sys_netns_make(struct sys_netns *n);
int sys_netns_enter(struct sys_netns *n);

/* Of the network namespace we are in, over netlink.  A range is made ours: whatever is sent there is
 * delivered here.  An address is given to loopback, so that programs which look whether there is a
 * network find one.  Without IPv6 both do nothing for it. */
struct sys_net_range {
	uint8_t family; /* 4, 6 */
	uint8_t bits;
	uint8_t addr[16];
};
int sys_net_take(const struct sys_net_range *ranges, size_t n, bool as_addresses);
/* A non-blocking listener on every address of both families, or (without IPv6) of one. */
int sys_net_listen(uint16_t port);

/* pass.c: descriptors beside a message.  Room is SYS_FDS_ROOM(n) bytes, aligned as struct cmsghdr is. */
#define SYS_FDS_ROOM(n) CMSG_SPACE((n) * sizeof(int))
void sys_put_fds(struct msghdr *m, void *room, const int *fds, size_t n);
/* How many were taken.  A sender may pass more than was asked for (the room is rounded up): those are closed. */
size_t sys_take_fds(struct msghdr *m, int *fds, size_t max);

/* landlock.c: raw Landlock, newest ABI known here is 7. */
enum { SYS_LANDLOCK_ABI_MAX = 7 };
int sys_landlock_abi(void);  /* 0: none */
uint64_t sys_landlock_fs_all(int abi);
uint64_t sys_landlock_fs_read(void);   /* execute, read file, read dir */
uint64_t sys_landlock_fs_file(int abi); /* rights that can be given on a file */
int sys_landlock_create(int abi);      /* a ruleset that handles all of the ABI, scopes included */
int sys_landlock_allow(int ruleset, int fd, uint64_t rights);
int sys_landlock_enter(int ruleset);

/* caps.c: give up every capability for good: bounding set, securebits, all sets. */
int sys_drop_caps(void);
/* All but these (bits by number), which CAP_SETPCAP must not be among. */
int sys_keep_caps(uint64_t keep);

/* cgroup.c */
enum sys_cgroup_mode { SYS_CGROUP_NONE, SYS_CGROUP_V1, SYS_CGROUP_HYBRID, SYS_CGROUP_V2 };
/* CPUACCT only counts, and only v1 has it apart; UNIFIED is the one directory of v2. */
enum sys_cgroup_ctl { SYS_CG_MEMORY, SYS_CG_PIDS, SYS_CG_CPU, SYS_CG_CPUACCT, SYS_CG_UNIFIED, SYS_CG_MAX };

struct sys_cgroup {
	enum sys_cgroup_mode mode;
	char path[SYS_CG_MAX][256]; /* directories made by us, "" if none; in v2 only UNIFIED */
	int dir[SYS_CG_MAX];        /* descriptors of those, -1 */
	int why[SYS_CG_MAX];        /* errno for those that could not be made */
};

enum sys_cgroup_mode sys_cgroup_mode(void);
const char *sys_cgroup_mode_name(enum sys_cgroup_mode m);
const char *sys_cgroup_ctl_name(enum sys_cgroup_ctl c);
/* Where NAME would stand for each wanted controller: below the cgroup we are in or, in v2,
 * below the nearest ancestor that can hold it.  Nothing is made yet, so that the paths can
 * be recorded first: who is killed in between leaves nothing that nobody knows of. */
void sys_cgroup_plan(struct sys_cgroup *cg, const char *name, unsigned want);
/* Makes what was planned.  What cannot be made is left out with its errno. */
void sys_cgroup_create(struct sys_cgroup *cg);
void sys_cgroup_make(struct sys_cgroup *cg, const char *name, unsigned want); /* both */
bool sys_cgroup_has(const struct sys_cgroup *cg, enum sys_cgroup_ctl c);
/* The current process joins; called in the child, by path: the groups may have been made
 * after it was cloned.  CLONE_INTO_CGROUP did v2 already. */
int sys_cgroup_join_v1(const struct sys_cgroup *cg);
bool sys_cgroup_remove(struct sys_cgroup *cg); /* after everything in it has ended; false: some are left */
void sys_cgroup_init(struct sys_cgroup *cg);
