/* SPDX-License-Identifier: Apache-2.0 */
/* relay_pump.c - one direction of bytes: a source, a buffer, a destination.
 *
 * The buffer is filled only when empty, which keeps it one array without a ring
 * and bounds what we hold to one read; it appears with the first byte, so that an
 * idle relay costs no memory.  SIGPIPE must be ignored by the process: a pipe has
 * no MSG_NOSIGNAL.
 *
 * Rejected: splice(2).  It cannot count to the byte what a limit lets through
 * without a second pipe, and does not work from a pty master.
 */
#include "base/mem.h"
#include "session/relay_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct pump_end pump_borrow(int fd)
{
	struct stat st;
	enum pump_way way = PUMP_CAREFUL;

	if (fstat(fd, &st) == 0) {
		if (S_ISREG(st.st_mode))
			way = PUMP_REGULAR;
		else if (S_ISSOCK(st.st_mode))
			way = PUMP_SOCKET;
	}
	return (struct pump_end){ .fd = fd, .way = way };
}

struct pump_end pump_own(int take_fd)
{
	return (struct pump_end){ .fd = take_fd, .own = true, .way = PUMP_NONBLOCK };
}

void pump_init(struct pump *p, struct pump_end from, struct pump_end to)
{
	*p = (struct pump){ .from = from, .to = to, .used = true };
}

static bool ready_now(int fd, short what)
{
	struct pollfd f = { .fd = fd, .events = what };

	return poll(&f, 1, /* timeout= */ 0) > 0;
}

enum pump_result pump_fill(struct pump *p)
{
	ssize_t n;

	if (p->from.way == PUMP_CAREFUL && !ready_now(p->from.fd, POLLIN))
		return PUMP_OK;
	if (!p->buf)
		p->buf = cs_calloc(1, PUMP_BUF);
	n = read(p->from.fd, p->buf, PUMP_BUF);
	if (n > 0) {
		p->off = 0;
		p->len = (size_t)n;
		return PUMP_OK;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return PUMP_OK;
	/* 0 is the end; so is EIO, from a pty master whose slaves are all closed, and
	 * no other error leaves anything to read either. */
	p->eof = true;
	return PUMP_EOF;
}

static ssize_t write_some(const struct pump_end *to, const char *data, size_t len)
{
	switch (to->way) {
	case PUMP_SOCKET:
		return send(to->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	case PUMP_CAREFUL:
		if (!ready_now(to->fd, POLLOUT)) {
			errno = EAGAIN;
			return -1;
		}
		return write(to->fd, data, len < PUMP_CHUNK ? len : PUMP_CHUNK);
	case PUMP_NONBLOCK:
	case PUMP_REGULAR:
	default:
		return write(to->fd, data, len);
	}
}

enum pump_result pump_flush(struct pump *p)
{
	if (p->to.fd < 0)
		p->len = 0; /* nowhere to show it */
	while (p->len > 0) {
		ssize_t n = write_some(&p->to, p->buf + p->off, p->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return PUMP_OK;
		if (n <= 0) {
			p->lost = n < 0 ? errno : EIO;
			return PUMP_BROKEN;
		}
		p->off += (size_t)n;
		p->len -= (size_t)n;
	}
	return p->eof ? PUMP_EOF : PUMP_OK;
}

static void end_done(struct pump_end *e)
{
	if (e->own && e->fd >= 0)
		close(e->fd);
	e->fd = -1;
}

void pump_done(struct pump *p)
{
	if (!p->used)
		return;
	end_done(&p->from);
	end_done(&p->to);
	free(p->buf);
	p->buf = NULL;
	p->len = 0;
	p->done = true;
}
