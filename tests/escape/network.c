/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - ways out over sockets, and sockets the kernel should not be asked for. */
#include "escape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define EGRESS "egress"
#define META "egress, metadata service"
#define FAMILY "socket family, CVE-2026-31431 (AF_ALG), CVE-2025-21756 (AF_VSOCK)"
#define NETLINK "netlink family, CVE-2023-31248, CVE-2024-1086"
#define PROTO "protocol that rules on TCP do not see"
#define ADMIN "network administration, CVE-2026-46331"
#define NO_WAY "ENETUNREACH EHOSTUNREACH EADDRNOTAVAIL EACCES EINVAL"

#define OUT(id_, class_, kind, host, port)                                                                           \
	{ id_, "no way to " host " port " port " by " kind, class_, { "connect", kind, host, port }, NO_WAY, .how = BY_NS,  \
	  .control = { "connect-self", kind, host, port } }
#define FAM(name, nr, type, proto)                                                                                   \
	{ "N14", "no " name " socket", FAMILY, { "family", nr, type, proto }, "EAFNOSUPPORT", .how = BY_OFF, .off = "seccomp" }
#define NL(name, nr)                                                                                                 \
	{ "N15", "no netlink " name, NETLINK, { "family", "16", "3", nr }, "EAFNOSUPPORT EPROTONOSUPPORT EPERM", .how = BY_OFF, \
	  .off = "seccomp" }
#define PRO(name, fam, type, nr)                                                                                     \
	{ "N16", "no " name, PROTO, { "socket", fam, type, nr }, "EPROTONOSUPPORT ESOCKTNOSUPPORT EPERM", .how = BY_OFF,    \
	  .off = "seccomp" }
#define ADM(name_, ...)                                                                                              \
	{ .id = "N17", .name = name_, .class = ADMIN, .probe = { __VA_ARGS__ }, .refused = "EPERM EACCES", .how = BY_NS }
#define ADM2(name_, ...)                                                                                             \
	{ .id = "N17", .name = name_, .class = ADMIN ", second wall", .probe = { __VA_ARGS__ },                      \
	  .refused = "EPERM EACCES", .how = BY_NS, .with = "seccomp,landlock" }

static const struct row rows[] = {
	{ "N01", "there is no interface but loopback", EGRESS, { "ifs" }, "ENODEV", .how = BY_OFF, .off = "netns", .flag = MAY_LACK },
	OUT("N01", META, "tcp", "169.254.169.254", "80"), OUT("N01", META, "udp", "169.254.169.254", "80"),
	OUT("N01", META, "tcp", "fd00:ec2::254", "80"), OUT("N01", META, "tcp", "100.100.100.200", "80"),
	OUT("N02", EGRESS, "tcp", "10.0.0.1", "22"), OUT("N02", EGRESS, "tcp", "192.168.0.1", "80"),
	OUT("N02", EGRESS, "tcp", "172.16.0.1", "443"), OUT("N02", EGRESS, "tcp", "100.64.0.1", "80"),
	OUT("N02", EGRESS, "udp", "192.0.2.1", "9"),
	OUT("N03", EGRESS, "tcp", "fc00::1", "80"), OUT("N03", EGRESS, "tcp", "64:ff9b::7f00:1", "80"),
	OUT("N03", EGRESS, "tcp", "2002:7f00:1::1", "80"), OUT("N03", EGRESS, "tcp", "2001:db8::1", "443"),
	{ "N03", "no way to ::ffff:192.0.2.1", EGRESS, { "connect", "tcp", "::ffff:192.0.2.1", "80" }, NO_WAY, .how = BY_NS,
	  .control = { "connect-self", "tcp", "192.0.2.1", "80" } },
	OUT("N06", "DNS tunnel", "udp", "192.0.2.53", "53"), OUT("N06", "DNS tunnel", "tcp", "192.0.2.53", "53"),
	OUT("N06", "DNS tunnel", "tcp", "192.0.2.53", "853"),

	{ "N10", "a socket outside is not there", "pathname sockets", { "unix", "path", "/run/systemd/private" }, "ENOENT", .how = BARE,
	  .flag = ROOT_ONLY | MAY_LACK },
	{ "N10", "the host's /run is not there", "pathname sockets", { "exists", "/run/lock" }, "ENOENT", .how = BARE, .flag = MAY_LACK },

	{ "N12", "no raw socket", "forged packets", { "socket", "2", "3", "1" }, "EPROTONOSUPPORT EPERM ESOCKTNOSUPPORT", .how = BY_NS },
	{ "N12", "no raw IPv6 socket", "forged packets", { "socket", "10", "3", "58" }, "EPROTONOSUPPORT EPERM ESOCKTNOSUPPORT", .how = BY_NS },
	{ "N12", "no packet socket", "forged packets, CVE-2020-14386", { "socket", "17", "3", "768" }, "EAFNOSUPPORT EPERM", .how = BY_NS },
	{ "N12", "no ping socket", "forged packets", { "socket", "2", "2", "1" }, "EPROTONOSUPPORT EPERM EACCES", .how = BARE,
	  .flag = MAY_LACK },
	{ "N12", "without the filter no raw socket", "forged packets, second wall", { "socket", "2", "3", "1" }, "EPERM", .how = BY_NS,
	  .with = "seccomp" },
	{ "N12", "without the filter no packet socket", "forged packets, second wall", { "socket", "17", "3", "768" }, "EPERM", .how = BY_NS,
	  .with = "seccomp" },
	{ "N13", "no vsock to the hypervisor", FAMILY, { "socket", "40", "1", "0" }, "EAFNOSUPPORT", .how = BY_OFF, .off = "seccomp" },
	{ "N13", "no vsock datagrams", FAMILY, { "socket", "40", "2", "0" }, "EAFNOSUPPORT", .how = BY_OFF, .off = "seccomp" },
	{ "N13", "high bits hide no vsock", FAMILY ", CVE-2019-10063", { "socket-high", "40", "1", "0" }, "EAFNOSUPPORT", .how = BY_OFF,
	  .off = "seccomp" },

	FAM("AF_ALG", "38", "5", "0"), FAM("AF_KEY", "15", "3", "2"), FAM("AF_XDP", "44", "3", "0"), FAM("AF_RXRPC", "33", "2", "2"),
	FAM("AF_TIPC", "30", "1", "0"), FAM("AF_RDS", "21", "5", "0"), FAM("AF_SMC", "43", "1", "0"), FAM("AF_KCM", "41", "2", "0"),
	FAM("AF_CAN", "29", "3", "1"), FAM("AF_BLUETOOTH", "31", "3", "1"), FAM("AF_QIPCRTR", "42", "2", "0"),
	FAM("AF_PPPOX", "24", "1", "0"), FAM("AF_LLC", "26", "1", "0"), FAM("AF_IB", "27", "1", "0"), FAM("AF_PHONET", "35", "2", "0"),
	FAM("AF_IEEE802154", "36", "2", "0"), FAM("AF_CAIF", "37", "1", "0"), FAM("AF_NFC", "39", "5", "0"),
	FAM("AF_MCTP", "45", "2", "0"), FAM("AF_APPLETALK", "5", "2", "0"), FAM("AF_X25", "9", "5", "0"), FAM("AF_AX25", "3", "2", "0"),
	FAM("AF_ISDN", "34", "3", "0"), FAM("AF_ATMPVC", "8", "2", "0"),
	{ "N14", "high bits hide no family", FAMILY ", CVE-2019-10063", { "socket-high", "44", "3", "0" }, "EAFNOSUPPORT", .how = BY_NS },
	{ "N14", "no socketpair of another family", FAMILY, { "socketpair", "30", "1", "0" }, "EAFNOSUPPORT", .how = BY_OFF, .off = "seccomp" },

	NL("NETFILTER", "12"), NL("XFRM", "6"), NL("AUDIT", "9"), NL("KOBJECT_UEVENT", "15"), NL("SOCK_DIAG", "4"), NL("GENERIC", "16"),
	NL("RDMA", "20"), NL("CRYPTO", "21"), NL("CONNECTOR", "11"), NL("SELINUX", "7"), NL("SCSITRANSPORT", "18"), NL("ISCSI", "8"),
	{ "N15", "high bits hide no netlink family", NETLINK, { "socket-high", "16", "3", "12" },
	  "EAFNOSUPPORT EPROTONOSUPPORT EPERM", .how = BY_OFF, .off = "seccomp" },

	PRO("MPTCP", "2", "1", "262"), PRO("MPTCP over IPv6", "10", "1", "262"), PRO("SCTP", "2", "1", "132"), PRO("DCCP", "2", "6", "33"),
	PRO("UDPLITE", "2", "2", "136"), PRO("L2TP", "2", "2", "115"), PRO("SMC over TCP", "2", "1", "256"),
	{ "N16", "no TCP Fast Open by sendto", PROTO, { "fastopen", "sendto" }, "EPERM", .how = BY_OFF, .off = "seccomp" },
	{ "N16", "no TCP Fast Open by sendmsg", PROTO, { "fastopen", "sendmsg" }, "EPERM", .how = BY_OFF, .off = "seccomp" },
	{ "N16", "no out-of-band data on Unix sockets", "CVE-2025-38236", { "oob" }, "EPERM", .how = BY_OFF, .off = "seccomp" },

	ADM("no virtual interface is made", "link-new", "veth"), ADM("no bridge is made", "link-new", "bridge"),
	ADM("loopback is not switched off", "lo", "down"), ADM("no address is added", "addr", "10.9.9.9"),
	ADM("no packet is marked", "sockopt", "mark"),
	{ "N17", "no buffer is forced", ADMIN, { "sockopt", "rcvbufforce" }, "EPERM EACCES", .how = BARE, .flag = ROOT_ONLY },
	ADM("no transparent socket", "sockopt", "transparent"), ADM("the network is not left by setns", "setns", "net", "self"),
	ADM2("without the filter no interface is made", "link-new", "veth"),
	ADM2("without the filter loopback is not switched off", "lo", "down"),
	ADM2("without the filter no address is added", "addr", "10.9.9.9"),
	{ "N19", "no ring to connect past the filter", "io_uring", { "uring" }, "ENOSYS EPERM", .how = BY_OFF, .off = "seccomp" },
};

/* ---- something to reach on the host ---------------------------------------- */

static int listen_tcp(int family, int *port)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *a = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	socklen_t len = family == AF_INET ? sizeof v4 : sizeof v6;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, a, len) < 0 || listen(fd, 16) < 0 || getsockname(fd, a, &len) < 0)
		T_ABSENT("no listener on loopback: %s", strerror(errno));
	*port = ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port);
	return fd;
}

static int listen_unix(const char *name, bool abstract)
{
	struct sockaddr_un u = { .sun_family = AF_UNIX };
	size_t off = abstract ? 1 : 0;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(u.sun_path + off, sizeof u.sun_path - off, "%s", name);
	if (fd < 0 || bind(fd, (struct sockaddr *)&u, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + off + strlen(name) + !abstract)) < 0 ||
	    listen(fd, 16) < 0)
		T_FAIL("listen on %s: %s", name, strerror(errno));
	return fd;
}

static void reach_loopback(bool sandbox)
{
	static const struct { const char *host; int family; } to[] = {
		{ "127.0.0.1", AF_INET }, { "::ffff:127.0.0.1", AF_INET }, { "127.1.2.3", AF_INET }, { "::1", AF_INET6 },
	};
	struct place *p = place_make();
	static struct t_result r;

	for (size_t i = 0; i < COUNT(to); i++) {
		char port[16];
		int nr, fd = listen_tcp(to[i].family, &nr);

		/* 127.1.2.3 is loopback too, but the listener is on .1 only. */
		if (i == 2 && !sandbox)
			continue;
		snprintf(port, sizeof port, "%d", nr);
		run_in(p, &r, &(struct run){ .off = sandbox ? NULL : "netns", .cmd = WORDLIST("@P", "connect", "tcp", to[i].host, port) });
		if (sandbox)
			must_refuse(&r, "ECONNREFUSED ENETUNREACH EADDRNOTAVAIL", to[i].host);
		else
			must_work(&r, to[i].host);
		close(fd);
	}
}

static void loop_inside(void) { reach_loopback(true); }
static void loop_outside(void) { reach_loopback(false); }

static void reach_abstract(const char *off, bool refused)
{
	struct place *p = place_make();
	static struct t_result r;

	listen_unix(p->name, true);
	run_in(p, &r, &(struct run){ .off = off, .cmd = WORDLIST("@P", "unix", "abstract", "@A") });
	if (refused)
		must_refuse(&r, "ECONNREFUSED EPERM EACCES", "abstract socket of the host");
	else
		must_work(&r, "abstract socket of the host");
}

static void abstract_inside(void) { reach_abstract(NULL, true); }
static void abstract_landlock(void) { reach_abstract("netns", true); }
static void abstract_outside(void) { reach_abstract("netns,landlock", false); }

static void reach_path(const char *where, bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	const char *path = place_text(p, where);

	listen_unix(path, false);
	if (sandbox)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "unix", "path", path) });
	else
		t_run(&r, WORDLIST(p->probe, "unix", "path", path));
	if (sandbox)
		must_refuse(&r, "ENOENT ECONNREFUSED EACCES EPERM", "socket of the host");
	else
		must_work(&r, "socket of the host");
}

static void path_inside(void) { reach_path("@O/sock", true); }
static void path_outside(void) { reach_path("@O/sock", false); }
static void ws_inside(void) { reach_path("@W/sock", true); }
static void ws_outside(void) { reach_path("@W/sock", false); }

/* ---- a directory passed over standard input -------------------------------- */

static int scm_pair[2];

static void scm_prepare(void *arg)
{
	(void)arg;
	dup2(scm_pair[1], 0);
}

static void scm(const char *off, bool refused)
{
	struct place *p = place_make();
	static struct t_result r;
	int dir = open(p->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } c = {
		.h = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS },
	};
	struct iovec io = { (void *)(uintptr_t)"x", 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c };

	memcpy(CMSG_DATA(&c.h), &dir, sizeof dir);
	if (dir < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, scm_pair) < 0 || sendmsg(scm_pair[0], &m, 0) != 1)
		T_FAIL("pass a directory: %s", strerror(errno));
	run_in(p, &r, &(struct run){ .off = off, .cmd = WORDLIST("@P", "scm", "secret"), .opts.prepare = scm_prepare });
	if (refused)
		must_refuse(&r, "EACCES EBADF EPERM ENOTSOCK", "host directory over a socket");
	else
		must_work(&r, "host directory over a socket");
}

static void scm_inside(void) { scm(NULL, true); }
static void scm_outside(void) { scm("landlock", false); }

/* ---- two sandboxes ---------------------------------------------------------- */

static void siblings(const char *kind, const char *off, bool refused)
{
	struct place *p = place_make();
	static struct t_result r;
	struct live l;
	char name[64];

	if (!strcmp(kind, "tcp"))
		snprintf(name, sizeof name, "%d", 20000 + (int)getpid() % 30000);
	else
		snprintf(name, sizeof name, "%s", p->name);
	live_start(p, &l, &(struct run){ .off = off, .cmd = WORDLIST("@P", "serve", kind, name) });
	live_wait(&l, "READY", 5000);
	run_in(p, &r, &(struct run){ .off = off, .cmd = !strcmp(kind, "tcp") ? WORDLIST("@P", "connect", "tcp", "127.0.0.1", name)
									      : WORDLIST("@P", "unix", kind, name) });
	live_say(&l, "\n");
	live_end(&l, 5000);
	if (refused)
		must_refuse(&r, "ECONNREFUSED EPERM EACCES ENOENT", "socket of another sandbox");
	else
		must_work(&r, "socket of another sandbox");
}

static void sib_tcp_inside(void) { siblings("tcp", NULL, true); }
static void sib_tcp_outside(void) { siblings("tcp", "netns,landlock", false); }
static void sib_abs_inside(void) { siblings("abstract", NULL, true); }
static void sib_abs_outside(void) { siblings("abstract", "netns,landlock", false); }

static const struct scene scenes[] = {
	{ "N08", "services on the host's loopback are out of reach", "egress", loop_inside, loop_outside },
	{ "N09", "an abstract socket of the host is out of reach", "abstract sockets, CVE-2020-15257", abstract_inside, abstract_outside },
	{ "N09", "without its own network Landlock bars abstract sockets", "abstract sockets, second wall", abstract_landlock,
	  abstract_outside },
	{ "N10", "a socket in a directory outside is out of reach", "pathname sockets", path_inside, path_outside },
	{ "N10", "a socket in the workspace is out of reach", "pathname sockets", ws_inside, ws_outside },
	{ "N11", "a directory passed over a socket shows nothing", "SCM_RIGHTS", scm_inside, scm_outside },
	{ "N18", "two sandboxes do not meet on loopback", "siblings", sib_tcp_inside, sib_tcp_outside },
	{ "N18", "two sandboxes do not meet on abstract sockets", "siblings", sib_abs_inside, sib_abs_outside },
};

TEST_TABLE(network)
{
	add_rows(rows, COUNT(rows));
	add_scenes(scenes, COUNT(scenes));
}
