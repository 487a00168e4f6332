/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - a network that ends at the caller.
 *
 * The namespace holds a loopback and nothing else, and belongs to a user
 * namespace that the program cannot enter.  Local routes deliver what is sent to
 * the caller's ranges to sockets made here, which are handed out: who serves them
 * stands outside, and the program can do no more than connect to them.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

static int fail(struct native_plan *p, const char *what)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "%s", what);
}

static int hand_out(struct native_plan *p, int take_fd)
{
	CS_FD int fd = take_fd;

	if (fd < 0)
		return fail(p, "make a socket in the network namespace");
	return native_send_fd(p->sock, 'N', fd) < 0 ? fail(p, "hand out a socket") : 0;
}

/* Where programs look for a resolver, also when they find no /etc/resolv.conf. */
static int open_resolver(int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || (type == SOCK_STREAM && listen(fd, 16) < 0)))
		cs_close_p(&fd), fd = -1;
	return fd;
}

int native_open_network(struct native_plan *p)
{
	const struct sandbox_network *n = p->spec->network;

	if (sys_net_take(n->addresses, n->n_addresses, true) < 0 || sys_net_take(n->ranges, n->n_ranges, false) < 0)
		return fail(p, "set up the network namespace");
	if (hand_out(p, openat(p->proc_fd, "self/ns/net", O_RDONLY | O_CLOEXEC)) < 0 || hand_out(p, open_resolver(SOCK_DGRAM)) < 0 ||
	    hand_out(p, open_resolver(SOCK_STREAM)) < 0)
		return -1;
	for (size_t i = 0; i < n->n_ports; i++)
		if (hand_out(p, sys_net_listen(n->ports[i])) < 0)
			return -1;
	return 0;
}
