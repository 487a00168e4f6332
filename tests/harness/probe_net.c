/* SPDX-License-Identifier: Apache-2.0 */
/* probe_net.c - sockets.  A packet for an address that is not loopback is only
 * ever sent where loopback is the only interface: see guarded(). */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int do_ifs(int argc, char **argv)
{
	struct if_nameindex *all = if_nameindex();
	char line[500] = "";
	size_t len = 0;

	(void)argc; (void)argv;
	if (!all)
		return p_cant("if_nameindex: %s", strerror(errno));
	for (struct if_nameindex *i = all; i->if_index; i++)
		if (strcmp(i->if_name, "lo") && len + 40 < sizeof line)
			len += (size_t)snprintf(line + len, sizeof line - len, "%s ", i->if_name);
	if_freenameindex(all);
	return len ? p_ok("%s", line) : p_no(ENODEV, "nothing but loopback");
}

/* Is there an interface besides loopback that is up? */
static int other_interface(char name[IF_NAMESIZE])
{
	struct if_nameindex *all = if_nameindex();
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), found = all == NULL;

	for (struct if_nameindex *i = all; i && i->if_index && !found; i++) {
		struct ifreq r = { 0 };

		snprintf(r.ifr_name, sizeof r.ifr_name, "%s", i->if_name);
		if (strcmp(i->if_name, "lo") && (ioctl(fd, SIOCGIFFLAGS, &r) < 0 || r.ifr_flags & IFF_UP)) {
			snprintf(name, IF_NAMESIZE, "%s", i->if_name);
			found = 1;
		}
	}
	if (fd >= 0)
		close(fd);
	if (all)
		if_freenameindex(all);
	return found;
}

struct addr { struct sockaddr_storage ss; socklen_t len; };

static int parse(const char *host, const char *port, struct addr *a)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a->ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a->ss;

	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)atoi(port));
		a->len = sizeof *v4;
		return 0;
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)atoi(port));
		a->len = sizeof *v6;
		return 0;
	}
	return -1;
}

static int is_loopback(const char *host)
{
	return !strncmp(host, "127.", 4) || !strcmp(host, "::1") || !strncmp(host, "::ffff:127.", 11);
}

static int connect_to(const char *kind, const char *host, const char *port, int patience)
{
	char name[IF_NAMESIZE] = "?";
	struct timeval t = { .tv_sec = 2 };
	struct addr a;
	int fd;

	if (parse(host, port, &a) < 0)
		return p_cant("bad address %s", host);
	if (!is_loopback(host) && other_interface(name))
		return p_ok("not tried: interface %s is up and leads out", name);
	fd = socket(a.ss.ss_family, (!strcmp(kind, "udp") ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return p_no(errno, "socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
	while (connect(fd, (struct sockaddr *)&a.ss, a.len) < 0) {
		if (patience-- <= 0 || errno != ENETUNREACH)
			return p_no(errno, "connect %s %s:%s", kind, host, port);
		usleep(10000);
	}
	if (!strcmp(kind, "udp") && send(fd, "?", 1, 0) < 0)
		return p_no(errno, "send");
	return p_ok("connected %s %s:%s", kind, host, port);
}

static int do_connect(int argc, char **argv)
{
	(void)argc;
	return connect_to(argv[1], argv[2], argv[3], 0);
}

struct nl_req {
	struct nlmsghdr h;
	union { struct ifinfomsg i; struct ifaddrmsg a; } u;
	char attrs[256];
};

static void nl_attr(struct nl_req *q, unsigned short type, const void *data, size_t len)
{
	struct rtattr *r = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->h.nlmsg_len));

	r->rta_type = type;
	r->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(r), data, len);
	q->h.nlmsg_len = NLMSG_ALIGN(q->h.nlmsg_len) + (unsigned)RTA_ALIGN(RTA_LENGTH(len));
}

static int nl_talk(struct nl_req *q)
{
	struct { struct nlmsghdr h; struct nlmsgerr e; char rest[512]; } ans;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), r;

	if (fd < 0)
		return -1;
	q->h.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	r = send(fd, q, q->h.nlmsg_len, 0) < 0 || recv(fd, &ans, sizeof ans, 0) < 0 ? -1 : 0;
	close(fd);
	if (r == 0 && ans.e.error) {
		errno = -ans.e.error;
		r = -1;
	}
	return r;
}

static int set_lo(int up)
{
	struct nl_req q = { .h = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .nlmsg_type = RTM_NEWLINK } };

	q.u.i.ifi_index = (int)if_nametoindex("lo");
	q.u.i.ifi_change = IFF_UP;
	q.u.i.ifi_flags = up ? IFF_UP : 0;
	return nl_talk(&q);
}

static int add_to_lo(const struct addr *a)
{
	struct nl_req q = {
		.h = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg)), .nlmsg_type = RTM_NEWADDR,
		       .nlmsg_flags = NLM_F_CREATE },
	};
	int v6 = a->ss.ss_family == AF_INET6;
	const void *raw = v6 ? (const void *)&((const struct sockaddr_in6 *)&a->ss)->sin6_addr
			     : (const void *)&((const struct sockaddr_in *)&a->ss)->sin_addr;

	q.u.a.ifa_family = (unsigned char)a->ss.ss_family;
	q.u.a.ifa_prefixlen = v6 ? 128 : 32;
	q.u.a.ifa_flags = v6 ? IFA_F_NODAD : 0;
	q.u.a.ifa_index = if_nametoindex("lo");
	nl_attr(&q, IFA_LOCAL, raw, v6 ? 16 : 4);
	nl_attr(&q, IFA_ADDRESS, raw, v6 ? 16 : 4);
	return nl_talk(&q);
}

/* The control of do_connect: the address is given to our own loopback first. */
static int do_connect_self(int argc, char **argv)
{
	char name[IF_NAMESIZE] = "?";
	struct addr a;
	int fd, udp = !strcmp(argv[1], "udp");

	(void)argc;
	if (other_interface(name))
		return p_cant("interface %s is up: not in a fresh network", name);
	if (parse(argv[2], argv[3], &a) < 0)
		return p_cant("bad address");
	if (set_lo(1) < 0 || (!is_loopback(argv[2]) && add_to_lo(&a) < 0))
		return p_no(errno, "set up loopback");
	fd = socket(a.ss.ss_family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a.ss, a.len) < 0 || (!udp && listen(fd, 1) < 0))
		return p_no(errno, "listen on %s", argv[2]);
	/* The kernel adds an IPv6 address's route a moment later. */
	return connect_to(argv[1], argv[2], argv[3], 200);
}

static socklen_t unix_addr(struct sockaddr_un *u, const char *name, int abstract)
{
	memset(u, 0, sizeof *u);
	u->sun_family = AF_UNIX;
	snprintf(u->sun_path + abstract, sizeof u->sun_path - (size_t)abstract, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)abstract + strlen(name) + !abstract);
}

static int do_unix(int argc, char **argv)
{
	struct sockaddr_un u;
	socklen_t len = unix_addr(&u, argv[2], !strcmp(argv[1], "abstract"));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)argc;
	if (fd < 0)
		return p_no(errno, "socket");
	return p_result(connect(fd, (struct sockaddr *)&u, len), "connect");
}

/* Listen until a line comes: tcp PORT, abstract NAME, path PATH. */
static int do_serve(int argc, char **argv)
{
	struct sockaddr_un u;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int tcp = !strcmp(argv[1], "tcp"), one = 1, r;
	int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char c;

	(void)argc;
	if (fd < 0)
		return p_no(errno, "socket");
	if (tcp) {
		v4.sin_port = htons((uint16_t)atoi(argv[2]));
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		r = bind(fd, (struct sockaddr *)&v4, sizeof v4);
	} else {
		r = bind(fd, (struct sockaddr *)&u, unix_addr(&u, argv[2], !strcmp(argv[1], "abstract")));
	}
	if (r < 0 || listen(fd, 4) < 0)
		return p_no(errno, "listen %s %s", argv[1], argv[2]);
	puts("READY");
	(void)!read(0, &c, 1);
	return p_ok("served");
}

static int do_socket(int argc, char **argv)
{
	int fd = socket(atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));

	(void)argc;
	return p_result(fd, "socket");
}

/* A kernel without the family says EAFNOSUPPORT like a filter.  But it looks at
 * the type first: with one that nothing has, EINVAL is the kernel speaking. */
static int do_family(int argc, char **argv)
{
	enum { NO_TYPE = 12 };
	int fd = socket(atoi(argv[1]), atoi(argv[2]), atoi(argv[3])), err = errno;

	(void)argc;
	if (fd >= 0)
		return p_ok("socket of family %s", argv[1]);
	if (socket(atoi(argv[1]), NO_TYPE, atoi(argv[3])) < 0 && errno == EINVAL)
		return p_ok("family %s reached the kernel: EINVAL, %s", argv[1], strerrorname_np(err));
	return p_no(err, "family %s", argv[1]);
}

/* The kernel looks at 32 bits of each; a filter that compares 64 lets these pass. */
static int do_socket_high(int argc, char **argv)
{
	unsigned long hi = 1ul << 32;

	(void)argc;
	return p_result(syscall(SYS_socket, hi | strtoul(argv[1], NULL, 0), hi | strtoul(argv[2], NULL, 0),
				hi | strtoul(argv[3], NULL, 0)), "socket with high bits");
}

static int do_socketpair(int argc, char **argv)
{
	int fd[2];

	(void)argc;
	return p_result(socketpair(atoi(argv[1]), atoi(argv[2]), atoi(argv[3]), fd), "socketpair");
}

static int do_link_new(int argc, char **argv)
{
	struct nl_req q = {
		.h = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .nlmsg_type = RTM_NEWLINK,
		       .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL },
	};
	char info[64] __attribute__((aligned(4)));
	struct rtattr *k = (struct rtattr *)info;

	(void)argc;
	k->rta_type = IFLA_INFO_KIND;
	k->rta_len = (unsigned short)RTA_LENGTH(strlen(argv[1]));
	memcpy(RTA_DATA(k), argv[1], strlen(argv[1]));
	nl_attr(&q, IFLA_IFNAME, "probe0", 7);
	nl_attr(&q, IFLA_LINKINFO, info, RTA_ALIGN(k->rta_len));
	return p_result(nl_talk(&q), "new interface");
}

static int do_lo(int argc, char **argv)
{
	(void)argc;
	return p_result(set_lo(!strcmp(argv[1], "up")), "set loopback");
}

static int do_addr(int argc, char **argv)
{
	struct addr a;

	(void)argc;
	if (parse(argv[1], "0", &a) < 0)
		return p_cant("bad address");
	return p_result(add_to_lo(&a), "add address");
}

static int do_sockopt(int argc, char **argv)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;

	(void)argc;
	if (fd < 0)
		return p_cant("socket: %s", strerror(errno));
	if (!strcmp(argv[1], "mark"))
		return p_result(setsockopt(fd, SOL_SOCKET, SO_MARK, &one, sizeof one), "SO_MARK");
	if (!strcmp(argv[1], "rcvbufforce"))
		return p_result(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &one, sizeof one), "SO_RCVBUFFORCE");
	if (!strcmp(argv[1], "transparent"))
		return p_result(setsockopt(fd, IPPROTO_IP, 19 /* IP_TRANSPARENT */, &one, sizeof one), "IP_TRANSPARENT");
	return p_cant("no such option");
}

static int listener(struct sockaddr_in *v4)
{
	socklen_t len = sizeof *v4;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), five = 5;

	*v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)v4, len) < 0 || listen(fd, 5) < 0 ||
	    getsockname(fd, (struct sockaddr *)v4, &len) < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN, &five, sizeof five);
	return fd;
}

/* connect() that no filter of connect() sees, to a listener of our own. */
static int do_fastopen(int argc, char **argv)
{
	struct sockaddr_in v4;
	int l = listener(&v4), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	long r;

	(void)argc;
	if (l < 0 || fd < 0)
		return p_cant("listener: %s", strerror(errno));
	if (!strcmp(argv[1], "sendto"))
		r = sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&v4, sizeof v4);
	else {
		struct iovec io = { (void *)"x", 1 };
		struct msghdr m = { .msg_name = &v4, .msg_namelen = sizeof v4, .msg_iov = &io, .msg_iovlen = 1 };

		r = sendmsg(fd, &m, MSG_FASTOPEN);
	}
	return p_result(r, "MSG_FASTOPEN");
}

/* Out-of-band data on a Unix socket: CVE-2025-38236. */
static int do_oob(int argc, char **argv)
{
	int fd[2];

	(void)argc; (void)argv;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0)
		return p_cant("socketpair: %s", strerror(errno));
	return p_result(send(fd[0], "x", 1, MSG_OOB), "MSG_OOB");
}

/* Take a descriptor that comes over standard input and read PATH below it. */
static int do_scm(int argc, char **argv)
{
	char byte, path[4096];
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int) * 4)]; } c;
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c };
	struct cmsghdr *h;
	int dir, fd;

	(void)argc;
	if (recvmsg(0, &m, MSG_CMSG_CLOEXEC) < 0)
		return p_no(errno, "recvmsg");
	h = CMSG_FIRSTHDR(&m);
	if (!h || h->cmsg_type != SCM_RIGHTS)
		return p_no(EBADF, "no descriptor came");
	memcpy(&dir, CMSG_DATA(h), sizeof dir);
	snprintf(path, sizeof path, "%s", argv[1]);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return p_no(errno, "openat below the descriptor");
	return p_ok("read %s below a passed directory", path);
}

#define FAMILY "socket families with a history, CVE-2026-31431 (AF_ALG), CVE-2025-21756 (vsock)"
const struct probe probes_net[] = {
	{ "ifs", "N01", "interfaces that lead out", do_ifs, 0, NULL },
	{ "connect", "N01", "egress, metadata service", do_connect, 3, "tcp|udp HOST PORT" },
	{ "connect-self", "N01", "control of connect: the address is our own", do_connect_self, 3, "tcp|udp HOST PORT" },
	{ "unix", "N09", "sockets of the host", do_unix, 2, "abstract|path NAME" },
	{ "serve", "N18", "something to reach", do_serve, 2, "tcp|abstract|path NAME" },
	{ "socket", "N14", FAMILY, do_socket, 3, "FAMILY TYPE PROTOCOL" },
	{ "family", "N14", FAMILY ", or at least the kernel is asked", do_family, 3, "FAMILY TYPE PROTOCOL" },
	{ "socket-high", "N14", FAMILY ", high argument bits", do_socket_high, 3, "FAMILY TYPE PROTOCOL" },
	{ "socketpair", "N14", FAMILY, do_socketpair, 3, "FAMILY TYPE PROTOCOL" },
	{ "link-new", "N17", "an interface is made", do_link_new, 1, "KIND" },
	{ "lo", "N17", "loopback is changed", do_lo, 1, "up|down" },
	{ "addr", "N17", "an address is added", do_addr, 1, "HOST" },
	{ "sockopt", "N17", "socket options of an administrator", do_sockopt, 1, "mark|rcvbufforce|transparent" },
	{ "fastopen", "N16", "TCP Fast Open: connect by send", do_fastopen, 1, "sendto|sendmsg" },
	{ "oob", "N16", "out-of-band data on Unix sockets, CVE-2025-38236", do_oob, 0, NULL },
	{ "scm", "N11", "a directory passed over a socket", do_scm, 1, "PATH" },
	{ 0 },
};
