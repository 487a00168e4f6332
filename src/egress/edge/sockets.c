/* SPDX-License-Identifier: Apache-2.0 */
/* sockets.c - sockets in a sandbox's network namespace.
 *
 * A socket stays in the namespace that it was made in, whoever holds it.  A helper
 * that shares our memory and descriptors enters the namespace, makes a few, and
 * ends.  Rootless it passes through the user namespace that owns the network: who
 * made that one may. */
#include "egress/edge/edge.h"

#include "base/cleanup.h"
#include "sys/sys.h"

#include <errno.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct job {
	struct box *box;
	const struct sys_net_range *route; /* or NULL: make spare sockets */
	int sys;
};

static int enter(int netns)
{
	int owner = ioctl(netns, NS_GET_USERNS);

	/* Fails when it is our own already, or when it is not needed: what follows tells. */
	if (owner >= 0) {
		(void)setns(owner, CLONE_NEWUSER);
		close(owner);
	}
	return setns(netns, CLONE_NEWNET);
}

static int fresh(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 && errno == EAFNOSUPPORT ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : fd;
}

static int do_job(void *arg)
{
	struct job *j = arg;
	struct box *b = j->box;

	j->sys = 0;
	if (enter(b->netns) < 0) {
		j->sys = errno;
		return 0;
	}
	if (j->route) {
		j->sys = sys_net_take(j->route, 1, false) < 0 ? errno : 0;
		return 0;
	}
	while (b->n_spare < sizeof b->spare / sizeof *b->spare) {
		int fd = fresh();

		if (fd < 0) {
			j->sys = errno;
			return 0;
		}
		b->spare[b->n_spare++] = fd;
	}
	return 0;
}

static int run_inside(struct job *j)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid;

	j->sys = ECHILD;
	/* VFORK: we wait while it uses our memory. */
	pid = clone(do_job, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, j);
	if (pid < 0)
		return -1;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	errno = j->sys;
	return j->sys ? -1 : 0;
}

int box_socket(struct box *b)
{
	struct job j = { .box = b };

	if (!b->n_spare && run_inside(&j) < 0 && !b->n_spare)
		return -1;
	return b->spare[--b->n_spare];
}

int box_route(struct box *b, const struct net_addr *net, unsigned bits)
{
	struct sys_net_range r = { .family = net->family, .bits = (uint8_t)bits };
	struct job j = { .box = b, .route = &r };

	memcpy(r.addr, net->b, sizeof r.addr);
	return run_inside(&j);
}

struct net_addr sockaddr_addr(const void *sockaddr, uint16_t *ret_port)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in4;

	memcpy(&in4, sockaddr, sizeof in4);
	*ret_port = ntohs(in4.sin_port);
	if (in4.sin_family == AF_INET)
		return net_addr_of(AF_INET, &in4.sin_addr);
	memcpy(&in6, sockaddr, sizeof in6);
	return net_addr_of(AF_INET6, &in6.sin6_addr);
}

socklen_t sockaddr_make(const struct net_addr *a, uint16_t port, bool mapped, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *in6 = (void *)ret;
	struct sockaddr_in *in4 = (void *)ret;

	*ret = (struct sockaddr_storage){ 0 };
	if (a->family == 4 && !mapped) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		memcpy(&in4->sin_addr, a->b, 4);
		return sizeof *in4;
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	if (a->family == 4) {
		in6->sin6_addr.s6_addr[10] = in6->sin6_addr.s6_addr[11] = 0xff;
		memcpy(in6->sin6_addr.s6_addr + 12, a->b, 4);
	} else {
		memcpy(&in6->sin6_addr, a->b, 16);
	}
	return sizeof *in6;
}
