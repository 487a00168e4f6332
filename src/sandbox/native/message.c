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

#include "base/cleanup.h"

#include <sys/socket.h>
#include <unistd.h>

int native_send_fd(int sock, char what, int fd)
{
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(1)] = { 0 };
	struct iovec iov = { &what, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	sys_put_fds(&m, control, &fd, fd >= 0);
	return sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -1;
}

char native_receive(int sock, bool wait, int *ret_fd)
{
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(1)];
	char what = 0;
	struct iovec iov = { &what, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t n;

	*ret_fd = -1;
	n = recvmsg(sock, &m, (wait ? 0 : MSG_DONTWAIT) | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return 0;
	(void)sys_take_fds(&m, ret_fd, 1);
	if (n != 1 && *ret_fd >= 0) /* a descriptor without a word */
		close(CS_TAKE_FD(*ret_fd));
	return n == 1 ? what : 0;
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
