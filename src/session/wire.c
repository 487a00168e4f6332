/* SPDX-License-Identifier: Apache-2.0 */
#include "session/wire.h"

#include "base/mem.h"
#include "sys/sys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FDS_MAX = 3 };

static int send_head(int fd, const struct wire *w, const int *fds, size_t n_fds)
{
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(FDS_MAX)] = { 0 };
	struct iovec io = { .iov_base = (void *)(uintptr_t)w, .iov_len = sizeof *w };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

	sys_put_fds(&m, control, fds, n_fds);
	return sendmsg(fd, &m, MSG_NOSIGNAL) == sizeof *w ? 0 : -1;
}

static int send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t r = send(fd, p, n, MSG_NOSIGNAL);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

int wire_send(int fd, const struct wire *w, const void *payload, const int *fds, size_t n_fds)
{
	if (w->len > WIRE_MAX || n_fds > FDS_MAX)
		return errno = EMSGSIZE, -1;
	return send_head(fd, w, fds, n_fds) < 0 ? -1 : send_all(fd, payload, w->len);
}

static int receive_all(int fd, char *p, size_t n)
{
	while (n) {
		ssize_t r = recv(fd, p, n, 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return -1;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

int wire_receive(int fd, struct wire *w, struct cs_buf *ret, int *fds, size_t *n_fds)
{
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(FDS_MAX)];
	struct iovec io = { .iov_base = w, .iov_len = sizeof *w };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	char *data;
	int r;

	*n_fds = n < 0 ? 0 : sys_take_fds(&m, fds, *n_fds);
	if (n == 0)
		return 0;
	if (n != sizeof *w || w->len > WIRE_MAX)
		return -1;
	data = cs_calloc(1, w->len + 1u);
	r = receive_all(fd, data, w->len);
	if (r == 0)
		cs_buf_add(ret, data, w->len);
	free(data);
	return r < 0 || ret->over ? -1 : 1;
}

/* ---- the words of a request ---- */

int wire_words(char *data, size_t len, char *const *own, struct wire_words *ret, struct cs_err *err)
{
	char *at, *end;
	uint32_t n_own = 0;

	*ret = (struct wire_words){ 0 };
	if (len < 9 || data[len - 1])
		return cs_fail(err, CS_E_INVALID, 0, "a request without words");
	at = data + 8;
	end = data + len;
	memcpy(&ret->argc, data, 4);
	memcpy(&ret->envc, data + 4, 4);
	if (!ret->argc || ret->argc > len || ret->envc > len)
		return cs_fail(err, CS_E_INVALID, 0, "a request without a command");
	while (own[n_own])
		n_own++;
	ret->argv = cs_calloc(ret->argc + 1u, sizeof *ret->argv);
	ret->env = cs_calloc(n_own + ret->envc + 1u, sizeof *ret->env);
	for (uint32_t i = 0; i < n_own; i++)
		ret->env[i] = own[i];
	for (uint32_t i = 0; i <= ret->argc + ret->envc; i++, at += strlen(at) + 1) {
		if (at >= end)
			return cs_fail(err, CS_E_INVALID, 0, "a request that is cut short");
		if (i < ret->argc)
			ret->argv[i] = at;
		else if (i < ret->argc + ret->envc)
			ret->env[n_own + i - ret->argc] = at;
		else
			ret->cwd = at;
	}
	return 0;
}

void wire_words_done(struct wire_words *w)
{
	free(w->argv);
	free(w->env);
	*w = (struct wire_words){ 0 };
}
