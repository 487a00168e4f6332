/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sys.h"

#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* The helper shares our memory, errno with it, so it asks the kernel directly:
 * a call of its that fails must not change what a call of ours reported. */
static long raw(long nr, long a, long b, long c)
{
	long r;
#if defined __x86_64__
	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#elif defined __aarch64__
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	r = x0;
#else
#error "no raw system call for this architecture yet"
#endif
	return r;
}

static long make_netns(struct sys_netns *n)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	long sock, r = raw(SYS_unshare, CLONE_NEWNET, 0, 0);

	if (r < 0)
		return r;
	sock = raw(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* any family carries SIOCSIFFLAGS */
	if (sock < 0)
		return sock;
	r = raw(SYS_ioctl, sock, SIOCSIFFLAGS, (long)&lo);
	(void)raw(SYS_close, sock, 0, 0);
	if (r < 0)
		return r;
	r = raw(SYS_openat, AT_FDCWD, (long)"/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (r < 0)
		return r;
	n->fd = (int)r;
	return 0;
}

static int helper(void *arg)
{
	struct sys_netns *n = arg;

	n->sys = (int)-make_netns(n);
	(void)raw(SYS_exit_group, 0, 0, 0);
	return 0;
}

int sys_netns_make(struct sys_netns *n)
{
	n->fd = -1;
	n->sys = 0;
	n->pid = clone(helper, n->stack + sizeof n->stack, CLONE_VM | CLONE_FILES | SIGCHLD, n);
	return n->pid < 0 ? -1 : 0;
}

int sys_netns_enter(struct sys_netns *n)
{
	int r;

	while (waitpid(n->pid, NULL, __WALL) < 0)
		if (errno != EINTR)
			return -1;
	if (n->sys) {
		errno = n->sys;
		return -1;
	}
	r = setns(n->fd, CLONE_NEWNET);
	close(n->fd);
	return r;
}
