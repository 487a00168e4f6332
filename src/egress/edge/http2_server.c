/* SPDX-License-Identifier: Apache-2.0 */
/* http2_server.c - answers: what the session with the server calls. */
#include "egress/edge/http2_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static int s_begin_headers(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	struct stream2 *t = h2_by_server(arg, f->hd.stream_id);

	(void)s;
	if (t && f->hd.type == NGHTTP2_HEADERS) { /* nothing is to be pushed */
		head_done(&t->resp);
		t->resp.h2 = true;
	}
	return 0;
}

static bool parse_status(struct head *r, const uint8_t *value, size_t n)
{
	if (n != 3 || value[0] < '1' || value[0] > '5' || !isdigit(value[1]) || !isdigit(value[2]))
		return false;
	r->status = (value[0] - '0') * 100 + (value[1] - '0') * 10 + value[2] - '0';
	return true;
}

static int s_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t nl, const uint8_t *value, size_t vl,
		    uint8_t flags, void *arg)
{
	struct stream2 *t = h2_by_server(arg, f->hd.stream_id);

	(void)s;
	(void)flags;
	if (!t || t->self || f->hd.type != NGHTTP2_HEADERS)
		return 0;
	while (vl && (value[vl - 1] == ' ' || value[vl - 1] == '\t'))
		vl--;
	while (vl && (*value == ' ' || *value == '\t')) {
		value++;
		vl--;
	}
	if (h2_is_text(":status", name, nl) ? parse_status(&t->resp, value, vl) : h2_add_field(&t->resp, name, nl, value, vl))
		return 0;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static bool begin_answer(struct stream2 *t, bool end)
{
	struct h2 *h = t->h;
	struct intercept *i = h->i;
	struct refusal no;
	char status[8];
	nghttp2_nv lead, *nv;
	nghttp2_data_provider from = { .source.ptr = t, .read_callback = h2_read_down };
	size_t n, size = t->resp.size;

	if (t->resp.status == 101 || !t->resp.status || !carry_response(&i->carry, &t->resp, !end, &t->masked, &no)) {
		h2_fail_upstream(t, t->resp.status == 101 || !t->resp.status ? "the server changed the protocol" : no.reason);
		return !intercept_is_over(i);
	}
	snprintf(status, sizeof status, "%d", t->resp.status);
	lead = h2_pseudo(":status", status);
	nv = h2_make_nv(&i->carry, &t->resp, &lead, 1, &n);
	t->answered = true;
	t->status = t->resp.status;
	t->down_end = end;
	if (!end)
		t->mask = masks_get(&i->masks, &i->carry);
	if (!t->client_gone)
		(void)nghttp2_submit_response(h->c, t->cid, nv, n, end ? NULL : &from);
	free(nv);
	head_done(&t->resp);
	return intercept_count(i, 0, size);
}

static bool interim(struct stream2 *t)
{
	const nghttp2_nv nv = h2_pseudo(":status", (char[]){ "100" });

	if (t->resp.status == 101 || ++t->interim > INTERIM_MAX) {
		h2_fail_upstream(t, "the server changed the protocol, or has too many interim answers");
		return !intercept_is_over(t->h->i);
	}
	if (t->resp.status == 100 && !t->client_gone)
		(void)nghttp2_submit_headers(t->h->c, NGHTTP2_FLAG_NONE, t->cid, NULL, &nv, 1, NULL);
	return true;
}

/* Content, which is masked on its way.  false: no room, which the windows should not allow. */
static bool add_down(struct stream2 *t, const void *data, size_t n, bool last)
{
	struct masks *m = &t->h->i->masks;

	if (!t->mask)
		return bytes_add(&t->down, data, n);
	if (!masks_feed(m, t->mask, data, n, last, &t->masked))
		return false;
	t->unmasked = last;
	return bytes_add(&t->down, m->clean.data, m->clean.len);
}

static void end_answer(struct stream2 *t)
{
	if (t->down_end)
		return;
	if (!add_down(t, "", 0, /* last= */ true))
		h2_reset_client(t, NGHTTP2_INTERNAL_ERROR);
	t->down_end = true;
	h2_wake_down(t);
}

static void take_trailers(struct stream2 *t)
{
	/* Where there are secrets they are dropped: a part of one could hide there. */
	if (t->h->i->carry.heads)
		return;
	head_done(&t->trailers);
	t->trailers = t->resp;
	t->resp = (struct head){ .h2 = true };
}

static bool s_headers(struct stream2 *t, bool end)
{
	if (t->self)
		return true;
	if (t->answered) {
		take_trailers(t);
		if (end)
			end_answer(t);
		return true;
	}
	return t->resp.status < 200 && t->resp.status ? interim(t) : begin_answer(t, end);
}

static int s_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = h2_by_server(h, f->hd.stream_id);
	bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;

	(void)s;
	if (h2_is_control(f) && h2_too_many(h, &h->controls, CONTROLS_MAX))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (f->hd.type == NGHTTP2_GOAWAY)
		h2_say_goaway(h);
	if (t && f->hd.type == NGHTTP2_HEADERS && !s_headers(t, end))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (t && f->hd.type == NGHTTP2_DATA && end && !t->self)
		end_answer(t);
	return 0;
}

static int s_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *arg)
{
	struct stream2 *t = h2_by_server(arg, id);

	(void)flags;
	if (!t || t->self || t->client_gone || !t->answered) {
		(void)nghttp2_session_consume(s, id, n);
		return 0;
	}
	t->down_held += n;
	if (!add_down(t, data, n, /* last= */ false)) {
		h2_reset_client(t, NGHTTP2_INTERNAL_ERROR);
		return 0;
	}
	h2_wake_down(t);
	return 0;
}

/* The server's part is over: in order if its answer is whole. */
void h2_server_closed(struct stream2 *t, uint32_t code)
{
	t->server_gone = true;
	if (!t->self && !t->client_gone) {
		if (!t->down_end)
			h2_reset_client(t, code == NGHTTP2_NO_ERROR ? NGHTTP2_INTERNAL_ERROR : code);
		else if (t->sent && !t->up_end)
			h2_reset_client(t, NGHTTP2_NO_ERROR);
	}
	if (t->up.len) { /* nobody takes it any more */
		bytes_drop(&t->up, t->up.len);
		(void)nghttp2_session_consume_connection(t->h->c, t->up_held);
		t->up_held = 0;
	}
	h2_drop_if_over(t);
}

static int s_close_stream(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = h2_by_server(h, id);

	(void)s;
	if (t)
		h2_server_closed(t, code);
	return intercept_is_over(h->i) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

void h2_server_callbacks(nghttp2_session_callbacks *cb)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, s_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, s_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, s_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, s_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, s_close_stream);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, h2_on_invalid_header);
}
