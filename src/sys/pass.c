/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - descriptors beside a message (SCM_RIGHTS). */
#include "sys/sys.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void sys_put_fds(struct msghdr *m, void *room, const int *fds, size_t n)
{
	struct cmsghdr *c = room; /* the first, and only one */

	m->msg_control = n ? room : NULL;
	m->msg_controllen = n ? CMSG_SPACE(n * sizeof *fds) : 0;
	if (!n)
		return;
	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof *fds) };
	memcpy(CMSG_DATA(c), fds, n * sizeof *fds);
}

size_t sys_take_fds(struct msghdr *m, int *fds, size_t max)
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t got = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

		for (size_t i = 0; i < got; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (n < max)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}
