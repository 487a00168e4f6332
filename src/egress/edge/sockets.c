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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 16 };

/* What is to be done in a namespace. */
struct order {
	enum { MAKE_SPARE, MAKE_BOUND, ADD_ROUTE } what;
	struct sys_net_range net; /* of BOUND the address */
	uint16_t port;
};

struct job {
	int netns;
	struct order order;
	int fds[BATCH];
	size_t n;
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

/* In there, where ports below 1024 may be had. */
static int bound(const struct order *o)
{
	struct net_addr a = { .family = o->net.family };
	struct sockaddr_storage ss;
	int fd = fresh(), domain = AF_INET6;
	socklen_t len = sizeof domain;

	if (fd < 0)
		return -1;
	memcpy(a.b, o->net.addr, sizeof a.b);
	(void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	len = sockaddr_make(&a, o->port, domain == AF_INET6, &ss);
	/* A local route is enough to bind to an IPv4 address; IPv6 wants it to be an interface's own. */
	if (domain == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &(int){ 1 }, sizeof(int));
	if (bind(fd, (struct sockaddr *)&ss, len) < 0)
		cs_close_p(&fd), fd = -1;
	return fd;
}

static int do_job(void *arg)
{
	struct job *j = arg;

	j->sys = 0;
	if (enter(j->netns) < 0) {
		j->sys = errno;
		return 0;
	}
	if (j->order.what == ADD_ROUTE) {
		j->sys = sys_net_take(&j->order.net, 1, false) < 0 ? errno : 0;
		return 0;
	}
	if (j->order.what == MAKE_BOUND) {
		j->fds[0] = bound(&j->order);
		j->n = j->fds[0] >= 0;
		j->sys = j->n ? 0 : errno;
		return 0;
	}
	for (j->n = 0; j->n < BATCH; j->n++) {
		j->fds[j->n] = fresh();
		if (j->fds[j->n] < 0) {
			j->sys = j->n ? 0 : errno;
			return 0;
		}
	}
	return 0;
}

static int run_inside(struct job *j)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid;

	j->n = 0;
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

/* ---- the maker: what keeps the power to enter namespaces when we give ours up ---- */

/* Not into the namespace that we stand in ourselves: that one is the host's. */
static bool is_own(int netns)
{
	struct stat a, b;

	return fstat(netns, &a) < 0 || stat("/proc/self/ns/net", &b) < 0 || (a.st_ino == b.st_ino && a.st_dev == b.st_dev);
}

static _Noreturn void make_forever(int sock)
{
	char text[EGRESS_TEXT_MAX + 1];

	for (;;) {
		struct egress_message m;
		struct job j = { .netns = -1 };
		size_t n = 1;
		ssize_t len = egress_receive(sock, &m, text, &j.netns, &n);

		if (len < 0)
			_exit(0);
		if ((size_t)len == sizeof j.order)
			memcpy(&j.order, text, sizeof j.order);
		if (n != 1 || (size_t)len != sizeof j.order || is_own(j.netns))
			j.sys = EPERM;
		else
			(void)run_inside(&j); /* j.sys tells */
		m = (struct egress_message){ .a = (uint32_t)j.sys };
		if (egress_send(sock, &m, NULL, 0, j.fds, j.n) < 0)
			_exit(0);
		for (size_t i = 0; i < j.n; i++)
			close(j.fds[i]);
		cs_close_p(&j.netns);
	}
}

int maker_start(struct edge *e)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (dup2(pair[1], 3) < 0 || close_range(4, ~0u, 0) < 0)
			_exit(125);
		make_forever(3);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -1;
	}
	e->maker = pair[0];
	return 0;
}

static int ask_maker(struct edge *e, struct job *j)
{
	struct egress_message m = { 0 };
	char text[EGRESS_TEXT_MAX + 1];

	j->n = BATCH;
	if (egress_send(e->maker, &m, &j->order, sizeof j->order, &j->netns, 1) < 0 ||
	    egress_receive(e->maker, &m, text, j->fds, &j->n) < 0) {
		j->n = 0;
		return -1;
	}
	errno = (int)m.a;
	return m.a ? -1 : 0;
}

static int get_done(struct box *b, struct job *j)
{
	return b->edge->maker >= 0 ? ask_maker(b->edge, j) : run_inside(j);
}

int box_socket(struct box *b)
{
	struct job j = { .netns = b->netns };

	if (!b->n_spare) {
		if (get_done(b, &j) < 0)
			return -1;
		for (; b->n_spare < j.n; b->n_spare++)
			b->spare[b->n_spare] = j.fds[b->n_spare];
	}
	return b->n_spare ? b->spare[--b->n_spare] : -1;
}

int box_route(struct box *b, const struct net_addr *net, unsigned bits)
{
	struct job j = { .netns = b->netns, .order = { ADD_ROUTE, { .family = net->family, .bits = (uint8_t)bits }, 0 } };

	memcpy(j.order.net.addr, net->b, sizeof j.order.net.addr);
	return get_done(b, &j);
}

int box_socket_at(struct box *b, const struct net_addr *a, uint16_t port)
{
	struct job j = { .netns = b->netns, .order = { MAKE_BOUND, { .family = a->family }, port } };

	memcpy(j.order.net.addr, a->b, sizeof j.order.net.addr);
	return get_done(b, &j) < 0 || j.n != 1 ? -1 : j.fds[0];
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
