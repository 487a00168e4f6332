/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/edge/intercept_internal.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_AT_ONCE = 16 * 1024 };

static void on_event(struct watch *w, uint32_t events)
{
	struct stream *s = LOOP_OF(w, struct stream, watch);

	/* These are reported whatever is asked for, turn after turn: while we are not reading, that would
	 * be a busy loop.  What is still to be read is read without epoll. */
	if (events & (EPOLLHUP | EPOLLERR)) {
		s->hup = true;
		loop_unwatch(s->loop, w);
	}
	s->ready(s);
}

void stream_open(struct stream *s, struct loop *l, int take_fd, void (*ready)(struct stream *s))
{
	*s = (struct stream){ .loop = l, .fd = take_fd, .ready = ready };
	s->in.max = STREAM_IN_MAX;
	s->out.max = STREAM_OUT_MAX;
	s->watch.ready = on_event;
	s->watch.fd = -1;
	if (loop_watch(l, &s->watch, take_fd, 0) < 0)
		s->broken = true;
}

void stream_tls(struct stream *s, SSL *take_ssl)
{
	s->ssl = take_ssl;
	SSL_set_mode(s->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	SSL_set_options(s->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_CLEANSE_PLAINTEXT);
	if (!SSL_set_fd(s->ssl, s->fd))
		s->broken = true;
}

/* What TLS needs before it goes on; false: it failed. */
static bool tls_later(struct stream *s, int r)
{
	switch (SSL_get_error(s->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		return true;
	case SSL_ERROR_WANT_WRITE:
		s->tls_out = true;
		return true;
	default:
		return false;
	}
}

int stream_handshake(struct stream *s)
{
	int r;

	if (s->broken || s->fd < 0)
		return -1;
	ERR_clear_error();
	s->tls_out = false;
	r = SSL_do_handshake(s->ssl);
	if (r == 1)
		return 1;
	if (tls_later(s, r))
		return 0;
	s->broken = true;
	return -1;
}

/* Bytes, or 0: nothing now (or the end: eof, broken). */
static size_t read_some(struct stream *s, char *to, size_t room)
{
	ssize_t n;

	if (s->ssl) {
		int r;

		ERR_clear_error();
		s->tls_out = false;
		r = SSL_read(s->ssl, to, (int)room);
		if (r > 0)
			return (size_t)r;
		if (SSL_get_error(s->ssl, r) == SSL_ERROR_ZERO_RETURN)
			s->eof = true;
		else if (!tls_later(s, r))
			s->broken = true;
		return 0;
	}
	do
		n = read(s->fd, to, room);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return (size_t)n;
	if (n == 0)
		s->eof = true;
	else if (errno != EAGAIN)
		s->broken = true;
	return 0;
}

bool stream_fill(struct stream *s)
{
	bool moved = false;
	size_t room, n;
	char *to;

	while (s->fd >= 0 && !s->eof && !s->broken && (to = bytes_room(&s->in, READ_AT_ONCE, &room))) {
		n = read_some(s, to, room);
		bytes_took(&s->in, n);
		if (n)
			moved = true;
		else
			return moved || s->eof || s->broken;
	}
	return moved;
}

void stream_discard(struct stream *s, size_t *budget)
{
	char waste[4096];
	size_t n;

	bytes_drop(&s->in, s->in.len);
	while (s->fd >= 0 && !s->eof && !s->broken && *budget && (n = read_some(s, waste, sizeof waste)))
		*budget = n < *budget ? *budget - n : 0;
}

static size_t write_some(struct stream *s)
{
	ssize_t n;

	if (s->ssl) {
		int r;

		ERR_clear_error();
		s->tls_out = false;
		r = SSL_write(s->ssl, bytes_at(&s->out), (int)s->out.len);
		if (r > 0)
			return (size_t)r;
		if (!tls_later(s, r))
			s->deaf = true;
		return 0;
	}
	do
		n = send(s->fd, bytes_at(&s->out), s->out.len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return (size_t)n;
	if (errno != EAGAIN)
		s->deaf = true;
	return 0;
}

bool stream_flush(struct stream *s)
{
	bool moved = false;
	size_t n;

	while (s->fd >= 0 && s->out.len && !s->broken && !s->deaf && (n = write_some(s))) {
		bytes_drop(&s->out, n);
		moved = true;
	}
	return moved;
}

void stream_end(struct stream *s)
{
	if (s->fd < 0)
		return;
	if (s->ssl && !s->broken && !s->deaf && SSL_is_init_finished(s->ssl)) {
		ERR_clear_error();
		(void)SSL_shutdown(s->ssl); /* one try: it is a courtesy */
	}
	(void)shutdown(s->fd, SHUT_WR);
}

void stream_watch(struct stream *s, bool read)
{
	uint32_t events = 0;

	if (s->fd < 0 || s->hup)
		return;
	if (read && !s->eof && !s->broken && s->in.len < s->in.max)
		events |= EPOLLIN;
	if (s->tls_out || (s->out.len && !s->deaf))
		events |= EPOLLOUT;
	loop_change(s->loop, &s->watch, events);
}

void stream_detach(struct stream *s)
{
	if (s->fd < 0)
		return;
	loop_unwatch(s->loop, &s->watch);
	close(s->fd);
	s->fd = -1;
}

void stream_done(struct stream *s)
{
	if (!s->loop)
		return;
	stream_detach(s);
	SSL_free(s->ssl);
	s->ssl = NULL;
	bytes_done(&s->in);
	bytes_done(&s->out);
}
