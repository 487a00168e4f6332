/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/egress.h"
#include "sys/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int egress_send(int sock, const struct egress_message *m, const void *text, size_t len, const int *fds, size_t n_fds)
{
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(EGRESS_FDS_MAX)] = { 0 };
	struct iovec iov[2] = { { (void *)(uintptr_t)m, sizeof *m }, { (void *)(uintptr_t)text, len } };
	struct msghdr h = { .msg_iov = iov, .msg_iovlen = len ? 2 : 1 };

	if (len > EGRESS_TEXT_MAX || n_fds > EGRESS_FDS_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	sys_put_fds(&h, control, fds, n_fds);
	while (sendmsg(sock, &h, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

ssize_t egress_receive(int sock, struct egress_message *m, char *text, int *fds, size_t *n_fds)
{
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(EGRESS_FDS_MAX)];
	struct iovec iov[2] = { { m, sizeof *m }, { text, EGRESS_TEXT_MAX } };
	struct msghdr h = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control };
	size_t room = *n_fds;
	ssize_t n;

	*n_fds = 0;
	while ((n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return -1;
	*n_fds = sys_take_fds(&h, fds, room);
	if (n < (ssize_t)sizeof *m) {
		while (*n_fds)
			close(fds[--*n_fds]);
		errno = n == 0 ? EPIPE : EBADMSG;
		return -1;
	}
	text[n - (ssize_t)sizeof *m] = 0;
	return n - (ssize_t)sizeof *m;
}
