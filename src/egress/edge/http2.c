/* SPDX-License-Identifier: Apache-2.0 */
/* http2.c - HTTP/2: a session with the client, one with the server, streams mapped one to one.
 *
 * Frames, HPACK, flow control and the rules of RFC 9113 about messages are
 * nghttp2's.  Ours is which request becomes a stream to the server and with which
 * head, and that bytes are acknowledged to one end only when the other end's
 * session took them: so what is held is bounded by the windows we give.
 *
 * One turn:  bytes in -> nghttp2 -> callbacks here, which submit frames on the other
 * session -> bytes out.  Callbacks never free a stream that nghttp2 may still ask
 * for; it goes when both ends have closed it.
 */
#include "egress/edge/http2_internal.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory that is wiped ---- */

union block {
	size_t size;
	max_align_t align;
};

static void *wipe_malloc(size_t size, void *arg)
{
	union block *b = size < SIZE_MAX - sizeof *b ? malloc(sizeof *b + size) : NULL;

	(void)arg;
	if (!b)
		return NULL;
	b->size = size;
	return b + 1;
}

static void wipe_block(void *p, void *arg)
{
	union block *b;

	(void)arg;
	if (!p)
		return;
	b = (union block *)p - 1;
	OPENSSL_cleanse(b + 1, b->size);
	free(b);
}

/* gcc 12 takes a pointer behind the head of a block for none at all, and the block for lost. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
static void *wipe_calloc(size_t n, size_t size, void *arg)
{
	void *p = size && n > SIZE_MAX / size ? NULL : wipe_malloc(n * size, arg);

	if (p)
		memset(p, 0, n * size);
	return p;
}

static void *wipe_realloc(void *old, size_t size, void *arg)
{
	void *p = wipe_malloc(size, arg);
	size_t had = old ? ((union block *)old - 1)->size : 0;

	if (!p)
		return NULL;
	if (old)
		memcpy(p, old, had < size ? had : size);
	wipe_block(old, arg);
	return p;
}
#pragma GCC diagnostic pop

static nghttp2_mem wiping = { NULL, wipe_malloc, wipe_block, wipe_calloc, wipe_realloc };

/* ---- sessions ---- */

static nghttp2_option *options(void)
{
	nghttp2_option *o = NULL;

	if (nghttp2_option_new(&o))
		abort();
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_max_outbound_ack(o, 200);
	nghttp2_option_set_max_settings(o, 32);
	nghttp2_option_set_max_continuations(o, 8);
	nghttp2_option_set_stream_reset_rate_limit(o, RESETS_MAX, RESETS_MAX / 10);
	nghttp2_option_set_max_reserved_remote_streams(o, 0);
	nghttp2_option_set_max_send_header_block_length(o, 2 * HEAD_MAX + SECRET_MAX);
	nghttp2_option_set_peer_max_concurrent_streams(o, STREAMS);
	nghttp2_option_set_no_closed_streams(o, 1);
	return o;
}

static void new_client_session(struct h2 *h)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEAD_MAX },
	};
	nghttp2_session_callbacks *cb;
	nghttp2_option *o = options();

	if (nghttp2_session_callbacks_new(&cb))
		abort();
	h2_client_callbacks(cb);
	if (nghttp2_session_server_new3(&h->c, cb, h, o, &wiping))
		abort();
	(void)nghttp2_submit_settings(h->c, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
	(void)nghttp2_session_set_local_window_size(h->c, NGHTTP2_FLAG_NONE, 0, SESSION_WINDOW);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(o);
}

static void new_server_session(struct h2 *h)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEAD_MAX },
	};
	nghttp2_session_callbacks *cb;
	nghttp2_option *o = options();

	/* Some servers send space around values; it is taken off here. */
	nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(o, 1);
	if (nghttp2_session_callbacks_new(&cb))
		abort();
	h2_server_callbacks(cb);
	if (nghttp2_session_client_new3(&h->s, cb, h, o, &wiping))
		abort();
	(void)nghttp2_submit_settings(h->s, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
	(void)nghttp2_session_set_local_window_size(h->s, NGHTTP2_FLAG_NONE, 0, SESSION_WINDOW);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(o);
}

struct h2 *h2_new(struct intercept *i, bool upstream)
{
	struct h2 *h = cs_new(struct h2);

	h->i = i;
	h->window_since = loop_now(i->loop);
	new_client_session(h);
	if (upstream)
		new_server_session(h);
	return h;
}

void h2_free(struct h2 *h)
{
	if (!h)
		return;
	nghttp2_session_del(h->c);
	nghttp2_session_del(h->s);
	while (h->streams) {
		struct stream2 *t = h->streams;

		h->streams = t->next;
		h2_free_stream(t);
	}
	free(h);
}

void h2_over(struct h2 *h, const char *why)
{
	for (struct stream2 *t = h->streams; t; t = t->next)
		h2_tell_done(t, t->status, why ? why : "the connection ended");
}

/* ---- turns ---- */

static bool feed(struct h2 *h, nghttp2_session *session, struct stream *from)
{
	ssize_t used;

	/* Who does not read what is due is not listened to. */
	if (!from->in.len || from->out.len >= STREAM_OUT_SOFT)
		return false;
	used = nghttp2_session_mem_recv(session, (const uint8_t *)bytes_at(&from->in), from->in.len);
	if (intercept_is_over(h->i))
		return false;
	if (used < 0) {
		char why[160];

		snprintf(why, sizeof why, "HTTP/2 with the %s failed: %s", session == h->c ? "client" : "server", nghttp2_strerror((int)used));
		intercept_kill(h->i, why);
		return false;
	}
	bytes_drop(&from->in, (size_t)used);
	return used > 0;
}

static bool drain_session(struct h2 *h, nghttp2_session *session, struct stream *to)
{
	const uint8_t *data;
	bool moved = false;

	while (to->out.len < STREAM_OUT_SOFT) {
		ssize_t n = nghttp2_session_mem_send(session, &data);

		if (intercept_is_over(h->i))
			return false;
		if (n < 0 || (n > 0 && !bytes_add(&to->out, data, (size_t)n))) {
			intercept_kill(h->i, "HTTP/2 could not be written");
			return false;
		}
		if (!n)
			return moved;
		moved = true;
	}
	return moved;
}

/* The server is gone: streams that it has not answered end, the others are still passed on. */
static void server_gone(struct h2 *h)
{
	struct stream2 *t = h->streams, *next;

	for (; t && !intercept_is_over(h->i); t = next) {
		next = t->next;
		if (t->sid && !t->server_gone)
			h2_server_closed(t, NGHTTP2_INTERNAL_ERROR);
	}
	if (intercept_is_over(h->i))
		return;
	h2_say_goaway(h);
	intercept_drop_upstream(h->i);
}

static bool server_is_gone(const struct h2 *h)
{
	const struct stream *s = &h->i->server;

	return h->i->up == UP_OPEN &&
	       (((s->eof || s->broken) && !s->in.len) || (!nghttp2_session_want_read(h->s) && !nghttp2_session_want_write(h->s) && !s->out.len));
}

static bool step_server(struct h2 *h)
{
	struct stream *s = &h->i->server;
	bool moved;

	if (!h->s || h->i->up != UP_OPEN)
		return false;
	moved = stream_flush(s);
	moved |= stream_fill(s);
	moved |= feed(h, h->s, s);
	if (intercept_is_over(h->i))
		return false;
	moved |= drain_session(h, h->s, s);
	if (!intercept_is_over(h->i) && server_is_gone(h)) {
		server_gone(h);
		moved = true;
	}
	return moved;
}

/* Nothing more is to come and nothing to go. */
static void end_if_over(struct h2 *h)
{
	struct stream *c = &h->i->client;

	if (!h->s && h->n == 0 && nghttp2_session_get_last_proc_stream_id(h->c) > 0)
		h2_say_goaway(h); /* without a server there was one answer to give */
	if ((h->ending && !h->n && !nghttp2_session_want_write(h->c)) ||
	    (!nghttp2_session_want_read(h->c) && !nghttp2_session_want_write(h->c)) || (c->eof && !c->in.len))
		intercept_close(h->i, h->s ? NULL : h->i->up_why);
}

bool h2_step(struct h2 *h)
{
	struct intercept *i = h->i;
	struct stream *c = &i->client;
	bool moved = stream_flush(c);

	moved |= stream_fill(c);
	if (c->broken || c->deaf || c->hup) {
		intercept_kill(i, h->n ? "the client left" : NULL);
		return false;
	}
	moved |= feed(h, h->c, c);
	if (intercept_is_over(i))
		return false;
	moved |= step_server(h);
	if (intercept_is_over(i))
		return false;
	moved |= drain_session(h, h->c, c);
	if (intercept_is_over(i))
		return false;
	end_if_over(h);
	return moved || i->phase != PH_OPEN;
}
