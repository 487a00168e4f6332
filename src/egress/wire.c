/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/egress.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int egress_send(int sock, const struct egress_message *m, const void *text, size_t len, const int *fds, size_t n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(EGRESS_FDS_MAX * sizeof(int))] = { 0 };
	struct iovec iov[2] = { { (void *)(uintptr_t)m, sizeof *m }, { (void *)(uintptr_t)text, len } };
	struct msghdr h = { .msg_iov = iov, .msg_iovlen = len ? 2 : 1 };

	if (len > EGRESS_TEXT_MAX || n_fds > EGRESS_FDS_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	if (n_fds) {
		struct cmsghdr *c;

		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n_fds * sizeof *fds);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof *fds);
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof *fds);
	}
	while (sendmsg(sock, &h, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

ssize_t egress_receive(int sock, struct egress_message *m, char *text, int *fds, size_t *n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(EGRESS_FDS_MAX * sizeof(int))] = { 0 };
	struct iovec iov[2] = { { m, sizeof *m }, { text, EGRESS_TEXT_MAX } };
	struct msghdr h = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control };
	size_t room = *n_fds;
	ssize_t n;

	*n_fds = 0;
	while ((n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
		size_t got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && i < got; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (*n_fds < room)
				fds[(*n_fds)++] = fd;
			else
				close(fd);
		}
	}
	if (n < (ssize_t)sizeof *m) {
		while (*n_fds)
			close(fds[--*n_fds]);
		errno = n == 0 ? EPIPE : EBADMSG;
		return -1;
	}
	text[n - (ssize_t)sizeof *m] = 0;
	return n - (ssize_t)sizeof *m;
}
