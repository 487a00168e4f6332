/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.c - naming what the filter refused.
 *
 * The notifier is for telling, never for deciding: a refused call gets EPERM
 * whatever we think of it, and connect(2) is let through to a network
 * namespace that holds nothing but loopback.  So it does not matter that the
 * program could change the address after we have read it.
 */
#include "sandbox/native/internal.h"
#include "sandbox/native/syscalls.h"

#include <arpa/inet.h>
#include <asm/unistd.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE (1UL << 0)
#endif

static const char *call_name(int nr)
{
	switch (nr) {
#define X(name)         \
	case __NR_##name: \
		return #name;
		SYSCALLS_REFUSE(X)
#undef X
	case __NR_clone:
		return "clone into a new namespace";
#ifdef __NR_mknod
	case __NR_mknod:
#endif
	case __NR_mknodat:
		return "mknod of a device";
	default:
		return "a system call";
	}
}

static const char *ioctl_name(uint32_t request)
{
	switch (request) {
	case TIOCSTI:
		return "ioctl TIOCSTI (type into the terminal)";
	case TIOCLINUX:
		return "ioctl TIOCLINUX (paste into the console)";
	case TIOCSETD:
		return "ioctl TIOCSETD (terminal line discipline)";
	default:
		return "ioctl TIOCCONS (take the console)";
	}
}

bool native_name_destination(const void *addr, size_t len, char *ret, size_t size)
{
	struct sockaddr_storage ss = { 0 };
	char host[INET6_ADDRSTRLEN];

	memcpy(&ss, addr, len < sizeof ss ? len : sizeof ss);
	if (ss.ss_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *in = (const void *)&ss;
		bool dns = ntohs(in->sin_port) == 53;

		if ((ntohl(in->sin_addr.s_addr) >> 24 == 127 && !dns) || in->sin_addr.s_addr == 0)
			return false;
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
		snprintf(ret, size, dns ? "look up a name (%s:%u)" : "connect to %s:%u", host, ntohs(in->sin_port));
		return true;
	}
	if (ss.ss_family == AF_INET6 && len >= 24 /* without the scope id */) {
		const struct sockaddr_in6 *in = (const void *)&ss;

		if (IN6_IS_ADDR_LOOPBACK(&in->sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&in->sin6_addr) ||
		    (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr) && in->sin6_addr.s6_addr[12] == 127))
			return false;
		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
		snprintf(ret, size, "connect to [%s]:%u", host, ntohs(in->sin6_port));
		return true;
	}
	return false;
}

static bool is_loopback_name_service(const struct sockaddr_storage *ss)
{
	const struct sockaddr_in *in = (const void *)ss;

	return ss->ss_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 24 == 127;
}

/* By the name of the socket's protocol.  A descriptor of it would tell as well, but whoever closes a
 * socket last may have to wait for its peer, and the program could see to it that this is us. */
static bool is_datagram(const struct seccomp_notif *n)
{
	char path[48], protocol[16];

	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)n->pid, (int)n->data.args[0]);
	return getxattr(path, "system.sockprotoname", protocol, sizeof protocol) > 3 && !strncmp(protocol, "UDP", 3);
}

/* false: it is none to tell of. */
static bool read_destination(const struct seccomp_notif *n, const struct sandbox_network *net, char *ret, size_t size)
{
	struct sockaddr_storage ss = { 0 };
	size_t len = n->data.args[2] < sizeof ss ? (size_t)n->data.args[2] : sizeof ss;
	struct iovec here = { &ss, len }, there = { (void *)(uintptr_t)n->data.args[1], len };

	if (process_vm_readv((pid_t)n->pid, &here, 1, &there, 1, 0) != (ssize_t)len)
		return false;
	if (!native_name_destination(&ss, len, ret, size))
		return false;
	return !net || !(is_loopback_name_service(&ss) || net->connecting(&ss, len, !is_datagram(n), net->arg));
}

static bool describe(const struct seccomp_notif *n, const struct sandbox_network *net, struct sandbox_refusal *ret)
{
	*ret = (struct sandbox_refusal){ .kind = SANDBOX_REFUSED_CALL, .by = "seccomp", .pid = (pid_t)n->pid };
	if (n->data.nr == __NR_connect) {
		ret->kind = SANDBOX_REFUSED_CONNECT;
		ret->by = "netns";
		ret->fix = net ? "only names can be reached, and networks that a rule names: --allow NAME or --allow CIDR:PORT"
			       : "this sandbox has no network: --allow NAME gives it one name";
		return read_destination(n, net, ret->what, sizeof ret->what);
	}
	snprintf(ret->what, sizeof ret->what, "%s",
		 n->data.nr == __NR_ioctl ? ioctl_name((uint32_t)n->data.args[1]) : call_name(n->data.nr));
	return true;
}

int native_refusal(int listener, const struct sandbox_network *net, struct sandbox_refusal *ret)
{
	struct seccomp_notif n = { 0 };
	struct seccomp_notif_resp r = { 0 };
	bool tell;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
		return errno == EINTR || errno == ENOENT ? 0 : -1; /* ENOENT: the caller was killed meanwhile */
	tell = describe(&n, net, ret);
	r.id = n.id;
	if (n.data.nr == __NR_connect)
		r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		r.error = -EPERM;
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r); /* fails only when nobody waits any more */
	return tell;
}
