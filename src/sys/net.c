/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sys.h"

#include "base/cleanup.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
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

/* ---- routes and addresses ---- */

struct net_message {
	struct nlmsghdr head;
	union {
		struct rtmsg route;
		struct ifaddrmsg addr;
		char room[64];
	};
};

static void add_attr(struct net_message *m, unsigned short type, const void *data, size_t len)
{
	struct rtattr *a = (void *)((char *)m + NLMSG_ALIGN(m->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	m->head.nlmsg_len = NLMSG_ALIGN(m->head.nlmsg_len) + (unsigned)RTA_ALIGN(a->rta_len);
}

static void make_message(struct net_message *m, const struct sys_net_range *r, bool as_address)
{
	uint8_t family = r->family == 4 ? AF_INET : AF_INET6;
	size_t len = r->family == 4 ? 4 : 16;
	uint32_t lo = 1; /* the first interface of every namespace */

	*m = (struct net_message){ .head = { .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE } };
	if (as_address) {
		m->head.nlmsg_type = RTM_NEWADDR;
		m->head.nlmsg_len = NLMSG_LENGTH(sizeof m->addr);
		m->addr = (struct ifaddrmsg){ .ifa_family = family, .ifa_prefixlen = r->bits, .ifa_flags = IFA_F_NODAD | IFA_F_PERMANENT, .ifa_index = lo };
		add_attr(m, IFA_LOCAL, r->addr, len);
		add_attr(m, IFA_ADDRESS, r->addr, len);
		return;
	}
	m->head.nlmsg_type = RTM_NEWROUTE;
	m->head.nlmsg_len = NLMSG_LENGTH(sizeof m->route);
	m->route = (struct rtmsg){ .rtm_family = family, .rtm_dst_len = r->bits, .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_STATIC,
				   .rtm_scope = r->family == 4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE, .rtm_type = RTN_LOCAL };
	add_attr(m, RTA_DST, r->addr, len);
	add_attr(m, RTA_OIF, &lo, sizeof lo);
}

static int ask_kernel(int sock, const struct net_message *m)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
		char more[256];
	} answer;
	ssize_t n;

	if (send(sock, m, m->head.nlmsg_len, 0) < 0)
		return -1;
	n = recv(sock, &answer, sizeof answer, 0);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof answer.body) || answer.head.nlmsg_type != NLMSG_ERROR) {
		errno = EPROTO;
		return -1;
	}
	errno = -answer.body.error;
	return answer.body.error ? -1 : 0;
}

int sys_net_take(const struct sys_net_range *ranges, size_t n, bool as_addresses)
{
	CS_FD int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (sock < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct net_message m;

		make_message(&m, &ranges[i], as_addresses);
		if (ask_kernel(sock, &m) < 0 && !(ranges[i].family == 6 && (errno == EOPNOTSUPP || errno == EAFNOSUPPORT || errno == EACCES)))
			return -1;
	}
	return 0;
}

int sys_net_listen(uint16_t port)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	bool v6 = true;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 && errno == EAFNOSUPPORT) {
		v6 = false;
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	if (fd < 0)
		return -1;
	if (bind(fd, v6 ? (void *)&any6 : (void *)&any4, v6 ? sizeof any6 : sizeof any4) < 0 || listen(fd, SOMAXCONN) < 0) {
		cs_close_p(&fd);
		return -1;
	}
	return fd;
}
