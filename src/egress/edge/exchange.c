/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - HTTP/1.1 between a client and a server, one request after another.
 *
 * A request that is still to be answered has the connection for itself: the next
 * one, if it was sent already, waits in the client's buffer.  So nothing that a
 * server sends can be taken for the answer to another request. */
#include "egress/edge/intercept_internal.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAIN_MAX = 64 * 1024, PIECE = 16 * 1024, INTERIM_MAX = 16 };

enum ask { ASK_HEAD, ASK_UPSTREAM, ASK_BODY, ASK_DRAIN, ASK_SENT };
enum answer { ANSWER_NONE, ANSWER_HEAD, ANSWER_BODY };

struct exchange {
	struct intercept *i;
	enum ask ask;
	enum answer answer;
	struct head req;              /* until it is sent */
	size_t scan;                  /* of the head that is being read, on either side */
	struct http1_body body_out, body_in;
	enum body_kind client_framing; /* of the answer, as we write it */
	size_t drained;
	char *method, *path;          /* of the request under way; NULL: none */
	int status;
	size_t masked;
	struct mask *mask;
	unsigned interim;
	bool old;                     /* the client speaks HTTP/1.0 */
	bool close, server_close, expect;
	bool reused;                  /* the server has answered on this connection before */
};

struct exchange *exchange_new(struct intercept *i)
{
	struct exchange *x = cs_new(struct exchange);

	x->i = i;
	return x;
}

static void forget_request(struct exchange *x)
{
	head_done(&x->req);
	free(x->method);
	free(x->path);
	masks_put(&x->i->masks, x->mask, x->body_in.done);
	x->method = x->path = NULL;
	x->mask = NULL;
	x->status = 0;
	x->masked = 0;
	x->interim = 0;
	x->expect = x->server_close = false;
	x->answer = ANSWER_NONE;
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	forget_request(x);
	free(x);
}

static void tell_done(struct exchange *x, int status, const char *why)
{
	struct intercept_owner *o = &x->i->owner;
	char *method = x->method, *path = x->path;

	if (!method)
		return;
	x->method = x->path = NULL; /* once */
	o->done(o->arg, method, path, status, why, x->masked);
	free(method);
	free(path);
}

void exchange_over(struct exchange *x, const char *why)
{
	tell_done(x, x->status, why ? why : "the connection ended");
}

static void next_request(struct exchange *x)
{
	forget_request(x);
	x->ask = ASK_HEAD;
	x->scan = 0;
}

/* ---- answers of our own ---- */

static void begin_drain(struct exchange *x, enum body_kind kind, uint64_t length)
{
	http1_body_begin(&x->body_out, kind, length);
	x->drained = 0;
	x->ask = ASK_DRAIN;
}

/* The request, whose body is still to come, goes no further.  close: nor does the connection. */
static void answer_self(struct exchange *x, const struct refusal *no, bool close)
{
	struct intercept *i = x->i;
	enum body_kind kind = x->req.body;
	uint64_t length = x->req.length;
	struct cs_buf json = CS_BUF(4096);
	struct head h = { .status = no->status, .body = BODY_LENGTH, .has_length = true };
	bool is_head = x->method && !strcmp(x->method, "HEAD"), ok;

	/* A client that waits for 100 may or may not send its body after this: no telling what comes next. */
	close = close || x->old || x->close || x->expect || (kind == BODY_LENGTH && length > DRAIN_MAX);
	refusal_json(no, &json);
	h.length = json.len;
	h.reason = cs_strdup(status_text(no->status));
	ok = head_add(&h, "Content-Type", 12, "application/json", 16) && http1_write_response(&h, close, &i->client.out) &&
	     (is_head || bytes_add(&i->client.out, json.data, json.len));
	head_done(&h);
	cs_buf_done(&json);
	tell_done(x, no->status, no->reason);
	if (intercept_is_over(i))
		return;
	if (!ok) {
		intercept_kill(i, no->reason);
		return;
	}
	forget_request(x);
	if (close)
		intercept_close(i, no->status == 403 ? NULL : no->reason);
	else
		begin_drain(x, kind, length);
}

static void fail_upstream(struct exchange *x, const char *reason)
{
	struct refusal no;

	intercept_drop_upstream(x->i);
	refuse(&no, 502, "bad_gateway", "%s", reason);
	if (x->i->up == UP_FAILED && x->i->up_fix)
		snprintf(no.fix, sizeof no.fix, "%s", x->i->up_fix);
	answer_self(x, &no, /* close= */ true);
}

/* ---- the request ---- */

static void judge(struct exchange *x)
{
	struct intercept *i = x->i;
	struct net_verdict v = { 0 };
	struct refusal no;

	i->owner.judge(i->owner.arg, x->method, x->path, &v);
	if (intercept_is_over(i))
		return;
	if (!v.ok) {
		refuse(&no, 403, "refused", "%s", v.reason);
		memcpy(no.fix, v.fix, sizeof no.fix);
		no.fix[sizeof no.fix - 1] = 0;
		answer_self(x, &no, /* close= */ false);
		return;
	}
	if (!carry_secrets(&i->carry, &x->req, &no)) {
		answer_self(x, &no, /* close= */ false);
		return;
	}
	x->ask = ASK_UPSTREAM;
}

static void begin_request(struct exchange *x)
{
	struct refusal no;
	bool ok;

	x->old = x->req.http10;
	ok = carry_request(&x->i->carry, &x->req, &no);
	x->method = cs_strdup(x->req.method);
	x->path = cs_strdup(x->req.target);
	x->expect = x->req.expect;
	x->close = x->close || x->req.close || x->old;
	if (ok)
		judge(x);
	else
		answer_self(x, &no, /* close= */ no.status == 400 || no.status == 417);
}

static bool read_request(struct exchange *x)
{
	struct intercept *i = x->i;
	struct stream *c = &i->client;
	struct refusal no;
	size_t used;

	if (!c->in.len) {
		if (c->eof)
			intercept_close(i, NULL);
		return false;
	}
	if (c->out.len >= STREAM_OUT_SOFT) /* it asks, but does not read the answers */
		return false;
	if (!i->head_since)
		i->head_since = loop_now(i->loop);
	switch (http1_request(bytes_at(&c->in), c->in.len, &x->scan, &x->req, &used, &no)) {
	case HTTP1_MORE:
		if (c->eof)
			intercept_kill(i, "the client left within a request's head");
		return false;
	case HTTP1_BAD:
		i->head_since = 0;
		x->method = cs_strdup("?"); /* it is told of, too */
		x->path = cs_strdup("/?");
		answer_self(x, &no, /* close= */ true);
		return true;
	case HTTP1_DONE:
	default:
		i->head_since = 0;
		x->scan = 0;
		bytes_drop(&c->in, used);
		begin_request(x);
		return true;
	}
}

static bool send_head(struct exchange *x)
{
	struct intercept *i = x->i;
	size_t before = i->server.out.len;

	if (!http1_write_request(&x->req, x->old, &i->server.out)) {
		fail_upstream(x, "the request's head does not fit");
		return true;
	}
	if (!intercept_count(i, i->server.out.len - before, 0))
		return true;
	http1_body_begin(&x->body_out, x->req.body, x->req.length);
	x->ask = x->body_out.done ? ASK_SENT : ASK_BODY;
	x->answer = ANSWER_HEAD;
	x->scan = 0;
	/* The parts that held secrets are not needed any more. */
	head_done(&x->req);
	return true;
}

static bool await_upstream(struct exchange *x)
{
	struct intercept *i = x->i;

	/* It closed while idle, or said something nobody asked for. */
	if (i->up == UP_OPEN && (i->server.eof || i->server.broken || i->server.deaf || i->server.in.len)) {
		intercept_drop_upstream(i);
		x->reused = false;
	}
	switch (i->up) {
	case UP_NONE:
		intercept_want_upstream(i);
		return true;
	case UP_OPEN:
		return send_head(x);
	case UP_FAILED:
		fail_upstream(x, i->up_why);
		return true;
	case UP_DIALLING:
	case UP_TLS:
	default:
		return false;
	}
}

static void bad_body(struct exchange *x)
{
	struct refusal no;

	intercept_drop_upstream(x->i);
	if (x->answer == ANSWER_BODY) {
		intercept_kill(x->i, "the request's body is framed wrongly");
		return;
	}
	refuse(&no, 400, "bad_message", "the request's body is framed wrongly");
	answer_self(x, &no, /* close= */ true);
}

/* Content of the request's body that is there and has room.  drain: it is thrown away. */
static bool move_request_body(struct exchange *x, bool drain)
{
	struct intercept *i = x->i;
	struct bytes *in = &i->client.in, *out = &i->server.out;
	bool moved = false;

	while (!x->body_out.done && in->len && (drain || out->len < STREAM_OUT_SOFT)) {
		const char *piece;
		size_t n, before = out->len;
		ssize_t used = http1_body_take(&x->body_out, bytes_at(in), in->len < PIECE ? in->len : PIECE, &piece, &n);
		bool ok = true;

		if (used < 0) {
			if (drain) /* it has its answer */
				intercept_close(i, "the request's body is framed wrongly");
			else
				bad_body(x);
			return true;
		}
		if (drain)
			x->drained += (size_t)used;
		else if (n)
			ok = x->body_out.kind == BODY_CHUNKED ? http1_write_chunk(piece, n, out) : bytes_add(out, piece, n);
		bytes_drop(in, (size_t)used);
		if (ok && !drain && x->body_out.done && x->body_out.kind == BODY_CHUNKED)
			ok = http1_write_chunk(NULL, 0, out);
		if (!ok) {
			intercept_kill(i, "no memory");
			return true;
		}
		if (!drain && !intercept_count(i, out->len - before, 0))
			return true;
		if (drain && x->drained > DRAIN_MAX) {
			intercept_close(i, NULL);
			return true;
		}
		moved = true;
	}
	return moved;
}

static bool request_body(struct exchange *x)
{
	struct intercept *i = x->i;
	bool moved = move_request_body(x, /* drain= */ false);

	if (i->phase != PH_OPEN || x->ask != ASK_BODY)
		return moved;
	if (x->body_out.done) {
		x->ask = ASK_SENT;
		return true;
	}
	if (i->client.eof && !i->client.in.len)
		intercept_kill(i, "the client left within a request's body");
	return moved;
}

static bool drain(struct exchange *x)
{
	struct intercept *i = x->i;
	bool moved = move_request_body(x, /* drain= */ true);

	if (i->phase != PH_OPEN || x->ask != ASK_DRAIN)
		return moved;
	if (x->body_out.done) {
		next_request(x);
		return true;
	}
	if (i->client.eof && !i->client.in.len)
		intercept_close(i, NULL);
	return moved;
}

/* ---- the answer ---- */

static void end_exchange(struct exchange *x)
{
	struct intercept *i = x->i;
	bool close = x->close || x->ask != ASK_SENT; /* what it still sends belongs to the request that is over */

	tell_done(x, x->status, NULL);
	if (intercept_is_over(i))
		return;
	if (x->server_close || i->server.in.len) {
		intercept_drop_upstream(i);
		x->reused = false;
	} else {
		x->reused = true;
	}
	if (close) {
		forget_request(x);
		intercept_close(i, NULL);
	} else {
		next_request(x);
	}
}

/* 100 is passed to those who wait for it, the others are of no use to anybody. */
static bool interim(struct exchange *x, const struct head *h)
{
	x->scan = 0;
	if (h->status == 101 || ++x->interim > INTERIM_MAX) {
		fail_upstream(x, h->status == 101 ? "the server changed the protocol" : "too many interim responses");
		return true;
	}
	if (h->status == 100 && x->expect && !bytes_str(&x->i->client.out, "HTTP/1.1 100 Continue\r\n\r\n"))
		intercept_kill(x->i, "no memory");
	return true;
}

static bool begin_answer(struct exchange *x, struct head *h)
{
	struct intercept *i = x->i;
	size_t before = i->client.out.len;
	struct refusal no;
	bool has_body = h->body != BODY_NONE;
	enum body_kind kind = h->body;

	if (!carry_response(&i->carry, h, has_body, &x->masked, &no)) {
		fail_upstream(x, no.reason);
		return true;
	}
	x->server_close = h->close || kind == BODY_CLOSE;
	if (kind == BODY_CHUNKED || kind == BODY_CLOSE)
		h->body = x->old ? BODY_CLOSE : BODY_CHUNKED;
	if (!http1_write_response(h, x->close, &i->client.out)) {
		fail_upstream(x, "the response's head does not fit");
		return true;
	}
	x->status = h->status;
	x->client_framing = h->body;
	if (!intercept_count(i, 0, i->client.out.len - before))
		return true;
	http1_body_begin(&x->body_in, kind, h->length);
	x->answer = ANSWER_BODY;
	if (has_body)
		x->mask = masks_get(&i->masks, &i->carry);
	if (x->body_in.done)
		end_exchange(x);
	return true;
}

static void no_answer(struct exchange *x)
{
	struct intercept *i = x->i;

	/* A server may close a connection that was idle, just as a request comes: the client is shown what
	 * it would have seen, and asks again. */
	if (x->reused && !i->server.in.len && !x->interim)
		intercept_close(i, "the server closed an idle connection");
	else
		fail_upstream(x, "the server ended the connection without an answer");
}

static bool read_answer(struct exchange *x)
{
	struct intercept *i = x->i;
	struct stream *s = &i->server;
	struct head h = { 0 };
	struct refusal no;
	size_t used;
	bool moved;

	if (i->client.out.len >= STREAM_OUT_SOFT)
		return false;
	switch (s->in.len ? http1_response(bytes_at(&s->in), s->in.len, &x->scan, x->method, &h, &used, &no) : HTTP1_MORE) {
	case HTTP1_MORE:
		if (s->eof || s->broken)
			no_answer(x);
		return s->eof || s->broken;
	case HTTP1_BAD:
		fail_upstream(x, no.reason);
		return true;
	case HTTP1_DONE:
	default:
		bytes_drop(&s->in, used);
		moved = h.status < 200 ? interim(x, &h) : begin_answer(x, &h);
		head_done(&h);
		return moved;
	}
}

static bool write_content(struct exchange *x, const void *data, size_t n, bool last)
{
	struct bytes *out = &x->i->client.out;
	bool chunked = x->client_framing == BODY_CHUNKED;

	if (n && !(chunked ? http1_write_chunk(data, n, out) : bytes_add(out, data, n)))
		return false;
	return !(last && chunked) || http1_write_chunk(NULL, 0, out);
}

static bool pass_content(struct exchange *x, const char *piece, size_t n, bool last)
{
	struct bytes *out = &x->i->client.out;
	size_t before = out->len;
	bool ok;

	if (x->mask)
		ok = masks_feed(&x->i->masks, x->mask, piece, n, last, &x->masked) &&
		     write_content(x, x->i->masks.clean.data, x->i->masks.clean.len, last);
	else
		ok = write_content(x, piece, n, last);
	if (!ok)
		intercept_kill(x->i, "no memory");
	return ok && intercept_count(x->i, 0, out->len - before);
}

/* The server has ended: the body too, if that is how it is framed. */
static bool answer_ends(struct exchange *x)
{
	struct intercept *i = x->i;

	if (i->server.in.len || !(i->server.eof || i->server.broken))
		return false;
	if (x->body_in.kind != BODY_CLOSE || i->server.broken) {
		/* Without an end of its framing, the client sees that something is missing. */
		intercept_kill(i, "the server's answer ended early");
		return true;
	}
	x->body_in.done = true;
	if (pass_content(x, "", 0, /* last= */ true))
		end_exchange(x);
	return true;
}

static bool answer_body(struct exchange *x)
{
	struct intercept *i = x->i;
	struct bytes *in = &i->server.in;
	bool moved = false;

	while (in->len && i->client.out.len < STREAM_OUT_SOFT) {
		const char *piece;
		size_t n;
		ssize_t used = http1_body_take(&x->body_in, bytes_at(in), in->len < PIECE ? in->len : PIECE, &piece, &n);

		if (used < 0) {
			intercept_kill(i, "the server's answer is framed wrongly");
			return true;
		}
		if ((n || x->body_in.done) && !pass_content(x, piece, n, x->body_in.done))
			return true;
		bytes_drop(in, (size_t)used);
		moved = true;
		if (x->body_in.done) {
			end_exchange(x);
			return true;
		}
	}
	return answer_ends(x) || moved;
}

/* ---- turns ---- */

static bool ask_step(struct exchange *x)
{
	switch (x->ask) {
	case ASK_HEAD:
		return read_request(x);
	case ASK_UPSTREAM:
		return await_upstream(x);
	case ASK_BODY:
		return request_body(x);
	case ASK_DRAIN:
		return drain(x);
	case ASK_SENT:
	default:
		return false;
	}
}

static bool answer_step(struct exchange *x)
{
	switch (x->answer) {
	case ANSWER_HEAD:
		return read_answer(x);
	case ANSWER_BODY:
		return answer_body(x);
	case ANSWER_NONE:
	default:
		return false;
	}
}

/* A server that ended while nobody was asking anything is let go of. */
static void drop_idle_server(struct exchange *x)
{
	struct intercept *i = x->i;

	if (x->answer != ANSWER_NONE || i->up != UP_OPEN || !(i->server.eof || i->server.broken))
		return;
	intercept_drop_upstream(i);
	x->reused = false;
}

/* The client is gone, not only done with sending: with TLS nobody closes one half. */
static bool client_left(const struct exchange *x)
{
	const struct stream *c = &x->i->client;

	return c->broken || c->deaf || c->hup || (c->eof && c->ssl && x->ask == ASK_SENT);
}

bool exchange_step(struct exchange *x)
{
	struct intercept *i = x->i;
	bool moved = stream_flush(&i->client);

	moved |= stream_fill(&i->client);
	if (i->up == UP_OPEN) {
		moved |= stream_flush(&i->server);
		moved |= stream_fill(&i->server);
		drop_idle_server(x);
	}
	if (client_left(x)) {
		intercept_kill(i, x->method ? "the client left" : NULL);
		return false;
	}
	moved |= ask_step(x);
	if (i->phase != PH_OPEN)
		return true;
	moved |= answer_step(x);
	return moved;
}
