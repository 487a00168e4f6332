/* SPDX-License-Identifier: Apache-2.0 */
/* http2_client.c - requests: what the session with the client calls. */
#include "egress/edge/http2_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool submit_up(struct stream2 *t)
{
	struct h2 *h = t->h;
	struct head *q = &t->req;
	const nghttp2_nv lead[] = { h2_pseudo(":method", q->method), h2_pseudo(":scheme", (char[]){ "https" }),
				    h2_pseudo(":authority", q->authority), h2_pseudo(":path", q->target) };
	nghttp2_data_provider from = { .source.ptr = t, .read_callback = h2_read_up };
	size_t n, size = q->size + strlen(q->method) + strlen(q->target) + strlen(q->authority);
	nghttp2_nv *nv = h2_make_nv(&h->i->carry, q, lead, sizeof lead / sizeof *lead, &n);

	t->sid = nghttp2_submit_request(h->s, NULL, nv, n, t->up_end ? NULL : &from, t);
	free(nv);
	head_done(q); /* it held secrets */
	if (t->sid < 0) {
		t->sid = 0;
		h2_reset_client(t, NGHTTP2_REFUSED_STREAM);
		return true;
	}
	return intercept_count(h->i, size, 0);
}

/* Its head is whole.  false: the connection was killed. */
static bool begin_request(struct stream2 *t)
{
	struct intercept *i = t->h->i;
	struct net_verdict v = { 0 };
	struct refusal no;

	if (!t->req.method || !t->req.target) {
		h2_reset_client(t, NGHTTP2_PROTOCOL_ERROR);
		return true;
	}
	if (!carry_request(&i->carry, &t->req, &no)) {
		t->method = cs_strdup(t->req.method);
		t->path = cs_strdup(t->req.target);
		h2_answer_self(t, &no);
		return !intercept_is_over(i);
	}
	t->method = cs_strdup(t->req.method);
	t->path = cs_strdup(t->req.target);
	if (!t->h->s) {
		refuse(&no, 502, "bad_gateway", "%s", i->up_why);
		if (i->up_fix)
			snprintf(no.fix, sizeof no.fix, "%s", i->up_fix);
		h2_answer_self(t, &no);
		return !intercept_is_over(i);
	}
	i->owner.judge(i->owner.arg, t->method, t->path, &v);
	if (intercept_is_over(i))
		return false;
	if (!v.ok) {
		refuse(&no, 403, "refused", "%s", v.reason);
		snprintf(no.fix, sizeof no.fix, "%s", v.fix);
		h2_answer_self(t, &no);
		return !intercept_is_over(i);
	}
	if (!carry_secrets(&i->carry, &t->req, &no)) {
		h2_answer_self(t, &no);
		return !intercept_is_over(i);
	}
	return submit_up(t);
}

static int c_begin_headers(nghttp2_session *c, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = h2_by_client(h, f->hd.stream_id);

	(void)c;
	if (f->hd.type != NGHTTP2_HEADERS)
		return 0;
	if (!h->i->head_since)
		h->i->head_since = loop_now(h->i->loop);
	if (f->headers.cat == NGHTTP2_HCAT_REQUEST && !t) {
		if (h->ending || h->n >= STREAMS_HARD || (h->s && !nghttp2_session_check_request_allowed(h->s))) {
			(void)nghttp2_submit_rst_stream(h->c, NGHTTP2_FLAG_NONE, f->hd.stream_id, NGHTTP2_REFUSED_STREAM);
			h->i->head_since = 0;
			return 0;
		}
		h2_add_stream(h, f->hd.stream_id);
	} else if (t) {
		t->trailing = true;
	}
	return 0;
}

static bool set_once(char **to, const uint8_t *value, size_t n)
{
	if (*to)
		return false;
	*to = cs_strndup((const char *)value, n);
	return true;
}

static bool add_pseudo(struct head *q, const uint8_t *name, size_t nl, const uint8_t *value, size_t vl)
{
	if (memchr(value, 0, vl) || !text_is_value((const char *)value, vl) || vl > HEAD_LINE_MAX)
		return false;
	if (h2_is_text(":method", name, nl))
		return set_once(&q->method, value, vl);
	if (h2_is_text(":path", name, nl))
		return set_once(&q->target, value, vl);
	if (h2_is_text(":authority", name, nl))
		return set_once(&q->authority, value, vl);
	return h2_is_text(":scheme", name, nl) && h2_is_text("https", value, vl);
}

static int c_header(nghttp2_session *c, const nghttp2_frame *f, const uint8_t *name, size_t nl, const uint8_t *value, size_t vl,
		    uint8_t flags, void *arg)
{
	struct stream2 *t = h2_by_client(arg, f->hd.stream_id);

	(void)c;
	(void)flags;
	if (!t || t->trailing) /* trailers of requests go no further */
		return 0;
	if (nl && name[0] == ':' ? add_pseudo(&t->req, name, nl, value, vl) : h2_add_field(&t->req, name, nl, value, vl))
		return 0;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int c_frame(nghttp2_session *c, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = h2_by_client(h, f->hd.stream_id);

	(void)c;
	if (h2_is_control(f) && h2_too_many(h, &h->controls, CONTROLS_MAX))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (f->hd.type == NGHTTP2_HEADERS)
		h->i->head_since = 0;
	if (!t || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
		return 0;
	if (f->hd.flags & NGHTTP2_FLAG_END_STREAM)
		t->up_end = true;
	if (f->hd.type == NGHTTP2_HEADERS && !t->trailing)
		return begin_request(t) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
	h2_wake_up(t);
	return 0;
}

/* Content of a request that goes no further.  A reset overtakes what is still to be sent, so it waits
 * until the answer is out, and until then no more is taken than the window allows. */
static void drain(struct stream2 *t, size_t n)
{
	t->drained += n;
	if (t->drained <= DRAIN_MAX)
		(void)nghttp2_session_consume(t->h->c, t->cid, n);
	else
		t->up_held += n; /* given back when the stream goes */
	if (t->drained > DRAIN_MAX && t->sent)
		h2_reset_client(t, NGHTTP2_NO_ERROR);
}

static int c_data(nghttp2_session *c, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = h2_by_client(h, id);

	(void)flags;
	if (!t) {
		(void)nghttp2_session_consume(c, id, n);
		return 0;
	}
	if (t->self || t->server_gone || !bytes_add(&t->up, data, n)) {
		drain(t, n);
		return 0;
	}
	t->up_held += n;
	h2_wake_up(t);
	return 0;
}

static int c_close_stream(nghttp2_session *c, int32_t id, uint32_t code, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = h2_by_client(h, id);

	(void)c;
	if (code != NGHTTP2_NO_ERROR) {
		h->i->head_since = 0;
		if (h2_too_many(h, &h->resets, RESETS_MAX))
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (!t)
		return 0;
	t->client_gone = true;
	h2_reset_server(t, code == NGHTTP2_NO_ERROR ? NGHTTP2_CANCEL : code);
	h2_drop_if_over(t);
	return intercept_is_over(h->i) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int c_sent(nghttp2_session *c, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = h2_by_client(h, f->hd.stream_id);

	(void)c;
	if (!t || !(f->hd.flags & NGHTTP2_FLAG_END_STREAM) || (f->hd.type != NGHTTP2_DATA && f->hd.type != NGHTTP2_HEADERS))
		return 0;
	t->sent = true;
	h2_tell_done(t, t->status, NULL);
	if (!t->up_end && (t->server_gone || t->drained > DRAIN_MAX)) /* nobody reads what else it sends */
		h2_reset_client(t, NGHTTP2_NO_ERROR);
	return intercept_is_over(h->i) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

void h2_client_callbacks(nghttp2_session_callbacks *cb)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, c_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, c_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, c_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, c_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, c_close_stream);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, c_sent);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, h2_on_invalid_header);
}
