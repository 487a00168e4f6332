/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sys.h"

#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* The helper shares our memory, errno with it: see sys_raw(). */
static long make_netns(struct sys_netns *n)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	long sock, r = sys_raw(SYS_unshare, CLONE_NEWNET, 0, 0);

	if (r < 0)
		return r;
	sock = sys_raw(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* any family carries SIOCSIFFLAGS */
	if (sock < 0)
		return sock;
	r = sys_raw(SYS_ioctl, sock, SIOCSIFFLAGS, (long)&lo);
	(void)sys_raw(SYS_close, sock, 0, 0);
	if (r < 0)
		return r;
	r = sys_raw(SYS_openat, AT_FDCWD, (long)"/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (r < 0)
		return r;
	n->fd = (int)r;
	return 0;
}

static int helper(void *arg)
{
	struct sys_netns *n = arg;

	n->sys = (int)-make_netns(n);
	(void)sys_raw(SYS_exit_group, 0, 0, 0);
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
