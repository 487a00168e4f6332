/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - the socket between process 1 and the caller.
 *
 * SOCK_SEQPACKET; one byte says what it is.  To the caller: 'T' the private
 * tmpfs (with a descriptor), 'L' the refusal notifier (with a descriptor), 'S'
 * the program has stopped.  From the caller, while it builds alongside: 'I' a
 * user namespace for an idmapped bind (with a descriptor), 'C' the control
 * groups are made.  Nothing else is taken, and at most one descriptor.
 */
#include "sandbox/native/internal.h"

#include <string.h>
#include <sys/socket.h>

int native_send_fd(int sock, char what, int fd)
{
	char control[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec iov = { &what, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	if (fd < 0)
		m.msg_controllen = 0;
	return sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -1;
}

char native_receive(int sock, bool wait, int *ret_fd)
{
	char what = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &what, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *c;

	*ret_fd = -1;
	if (recvmsg(sock, &m, (wait ? 0 : MSG_DONTWAIT) | MSG_CMSG_CLOEXEC) != 1)
		return 0;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return what;
}

int native_close_but(const int *keep, size_t n)
{
	unsigned from = 0;

	/* The lowest of those that are left, again and again: they are few. */
	for (;;) {
		unsigned next = ~0u;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next > from && close_range(from, next == ~0u ? next : next - 1, 0) < 0)
			return -1;
		if (next == ~0u)
			return 0;
		from = next + 1;
	}
}
