/* SPDX-License-Identifier: Apache-2.0 */
/* http2_stream.c - what both sessions do with a stream: content on its way, answers of our own, its end. */
#include "egress/edge/http2_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- streams ---- */

struct stream2 *h2_by_client(struct h2 *h, int32_t id)
{
	struct stream2 *t = h->streams;

	while (t && (t->cid != id || t->client_gone))
		t = t->next;
	return t;
}

struct stream2 *h2_by_server(struct h2 *h, int32_t id)
{
	struct stream2 *t = h->streams;

	while (t && (!t->sid || t->sid != id || t->server_gone))
		t = t->next;
	return t;
}

void h2_tell_done(struct stream2 *t, int status, const char *why)
{
	struct intercept_owner *o = &t->h->i->owner;
	char *method = t->method, *path = t->path;

	if (!method)
		return;
	t->method = t->path = NULL; /* once */
	o->done(o->arg, method, path, status, why, t->masked);
	free(method);
	free(path);
}

void h2_free_stream(struct stream2 *t)
{
	head_done(&t->req);
	head_done(&t->resp);
	head_done(&t->trailers);
	free(t->method);
	free(t->path);
	bytes_done(&t->up);
	bytes_done(&t->down);
	masks_put(&t->h->i->masks, t->mask, t->unmasked);
	free(t);
}

/* Both ends are done with it: what it held of the sessions' windows is given back. */
void h2_drop_if_over(struct stream2 *t)
{
	struct h2 *h = t->h;
	struct stream2 **at = &h->streams;

	if (!t->client_gone || (t->sid && !t->server_gone))
		return;
	if (t->up_held)
		(void)nghttp2_session_consume_connection(h->c, t->up_held);
	if (t->down_held && h->s)
		(void)nghttp2_session_consume_connection(h->s, t->down_held);
	h2_tell_done(t, t->status, "the stream was reset");
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	h->n--;
	h2_free_stream(t);
}

struct stream2 *h2_add_stream(struct h2 *h, int32_t id)
{
	struct stream2 *t = cs_new(struct stream2);

	t->h = h;
	t->cid = id;
	t->req.h2 = t->resp.h2 = t->trailers.h2 = true;
	/* What windows allow, with what a mask holds back. */
	t->up.max = t->down.max = 2 * STREAM_WINDOW;
	t->next = h->streams;
	h->streams = t;
	h->n++;
	return t;
}

void h2_reset_client(struct stream2 *t, uint32_t code)
{
	if (!t->client_gone)
		(void)nghttp2_submit_rst_stream(t->h->c, NGHTTP2_FLAG_NONE, t->cid, code);
}

void h2_reset_server(struct stream2 *t, uint32_t code)
{
	if (t->sid && !t->server_gone)
		(void)nghttp2_submit_rst_stream(t->h->s, NGHTTP2_FLAG_NONE, t->sid, code);
}

void h2_say_goaway(struct h2 *h)
{
	if (h->ending)
		return;
	h->ending = true;
	(void)nghttp2_submit_goaway(h->c, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->c), NGHTTP2_NO_ERROR, NULL, 0);
}

/* Resets and frames that carry nothing cost us more than they cost who sends them. */
bool h2_too_many(struct h2 *h, unsigned *counter, unsigned max)
{
	uint64_t now = loop_now(h->i->loop);

	if (now - h->window_since > WINDOW_MS) {
		h->window_since = now;
		h->resets = h->controls = 0;
	}
	if (++*counter <= max)
		return false;
	intercept_kill(h->i, "too many resets or empty frames");
	return true;
}

/* ---- heads ---- */

/* An array for nghttp2, of lead (pseudo headers) and the head's fields in lower case.  The strings stay
 * the head's. */
nghttp2_nv *h2_make_nv(const struct carry *c, struct head *h, const nghttp2_nv *lead, size_t n_lead, size_t *ret_n)
{
	nghttp2_nv *nv = cs_calloc(n_lead + h->n + 1, sizeof *nv);

	if (n_lead)
		memcpy(nv, lead, n_lead * sizeof *nv);
	for (size_t i = 0; i < h->n; i++) {
		struct field *f = &h->f[i];
		bool secret = false;

		for (char *p = f->name; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		for (size_t k = 0; k < c->n_secrets; k++)
			secret = secret || !strcasecmp(c->secrets[k]->header, f->name);
		nv[n_lead + i] = (nghttp2_nv){ (uint8_t *)f->name, (uint8_t *)f->value, strlen(f->name), strlen(f->value),
					       secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE };
	}
	*ret_n = n_lead + h->n;
	return nv;
}

nghttp2_nv h2_pseudo(const char *name, char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE };
}

bool h2_is_text(const char *want, const uint8_t *s, size_t n)
{
	return n == strlen(want) && !memcmp(s, want, n);
}

/* nghttp2 has looked already; this is the second wall. */
bool h2_add_field(struct head *q, const uint8_t *name, size_t nl, const uint8_t *value, size_t vl)
{
	for (size_t i = 0; i < nl; i++)
		if (isupper(name[i]))
			return false;
	return text_is_token((const char *)name, nl) && text_is_value((const char *)value, vl) && !memchr(value, 0, vl) &&
	       !h2_is_text("transfer-encoding", name, nl) && !h2_is_text("connection", name, nl) &&
	       head_add(q, (const char *)name, nl, (const char *)value, vl);
}

/* Without this, nghttp2 leaves the header out and goes on. */
int h2_on_invalid_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t nl, const uint8_t *value,
			 size_t vl, uint8_t flags, void *arg)
{
	(void)s;
	(void)f;
	(void)name;
	(void)nl;
	(void)value;
	(void)vl;
	(void)flags;
	(void)arg;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

void h2_wake_up(struct stream2 *t)
{
	if (t->sid && !t->server_gone)
		(void)nghttp2_session_resume_data(t->h->s, t->sid); /* fails if it does not wait: fine */
}

void h2_wake_down(struct stream2 *t)
{
	if (t->answered && !t->client_gone)
		(void)nghttp2_session_resume_data(t->h->c, t->cid);
}

bool h2_is_control(const nghttp2_frame *f)
{
	return f->hd.type == NGHTTP2_PING || f->hd.type == NGHTTP2_SETTINGS || f->hd.type == NGHTTP2_PRIORITY ||
	       f->hd.type == NGHTTP2_PRIORITY_UPDATE || (f->hd.type == NGHTTP2_DATA && !f->hd.length);
}

/* ---- content ---- */

/* Takes up to n bytes for a frame.  Returns how many, 0 if the end is reached, or DEFERRED. */
static ssize_t take(struct bytes *from, bool end, uint8_t *to, size_t n)
{
	if (n > from->len)
		n = from->len;
	if (!n)
		return end ? 0 : NGHTTP2_ERR_DEFERRED;
	memcpy(to, bytes_at(from), n);
	bytes_drop(from, n);
	return (ssize_t)n;
}

ssize_t h2_read_up(nghttp2_session *s, int32_t id, uint8_t *to, size_t n, uint32_t *flags, nghttp2_data_source *src, void *arg)
{
	struct stream2 *t = src->ptr;
	struct h2 *h = arg;
	ssize_t got = take(&t->up, t->up_end, to, n);

	(void)s;
	(void)id;
	if (got > 0) {
		size_t held = (size_t)got < t->up_held ? (size_t)got : t->up_held;

		t->up_held -= held;
		if (t->client_gone)
			(void)nghttp2_session_consume_connection(h->c, held);
		else
			(void)nghttp2_session_consume(h->c, t->cid, held);
		if (!intercept_count(h->i, (uint64_t)got, 0))
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (got >= 0 && t->up_end && !t->up.len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return got;
}

static void end_down(struct stream2 *t, uint32_t *flags)
{
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (t->trailers.n) {
		size_t n;
		nghttp2_nv *nv = h2_make_nv(&t->h->i->carry, &t->trailers, NULL, 0, &n);

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		(void)nghttp2_submit_trailer(t->h->c, t->cid, nv, n);
		free(nv);
	}
}

ssize_t h2_read_down(nghttp2_session *c, int32_t id, uint8_t *to, size_t n, uint32_t *flags, nghttp2_data_source *src, void *arg)
{
	struct stream2 *t = src->ptr;
	struct h2 *h = arg;
	ssize_t got = take(&t->down, t->down_end, to, n);

	(void)c;
	(void)id;
	if (got > 0 && t->down_held) {
		size_t held = (size_t)got < t->down_held ? (size_t)got : t->down_held;

		t->down_held -= held;
		if (t->server_gone)
			(void)nghttp2_session_consume_connection(h->s, held);
		else
			(void)nghttp2_session_consume(h->s, t->sid, held);
	}
	if (got > 0 && !t->self && !intercept_count(h->i, 0, (uint64_t)got))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (got >= 0 && t->down_end && !t->down.len)
		end_down(t, flags);
	return got;
}

/* ---- answers of our own ---- */

void h2_answer_self(struct stream2 *t, const struct refusal *no)
{
	struct cs_buf json = CS_BUF(4096);
	char status[8], length[24];
	nghttp2_data_provider from = { .source.ptr = t, .read_callback = h2_read_down };
	bool is_head = t->method && !strcmp(t->method, "HEAD");

	refusal_json(no, &json);
	snprintf(status, sizeof status, "%d", no->status);
	snprintf(length, sizeof length, "%zu", json.len);
	t->self = t->answered = t->down_end = true;
	t->status = no->status;
	if (t->up_held) { /* the body so far goes nowhere */
		(void)nghttp2_session_consume(t->h->c, t->cid, t->up_held);
		t->up_held = 0;
	}
	bytes_drop(&t->up, t->up.len);
	bytes_drop(&t->down, t->down.len);
	if (!is_head && !bytes_add(&t->down, json.data, json.len)) {
		h2_reset_client(t, NGHTTP2_INTERNAL_ERROR);
	} else {
		const nghttp2_nv nv[] = { h2_pseudo(":status", status), h2_pseudo("content-type", (char[]){ "application/json" }),
					  h2_pseudo("content-length", length) };

		(void)nghttp2_submit_response(t->h->c, t->cid, nv, sizeof nv / sizeof *nv, is_head ? NULL : &from);
	}
	cs_buf_done(&json);
	h2_tell_done(t, no->status, no->reason);
}

void h2_fail_upstream(struct stream2 *t, const char *reason)
{
	struct refusal no;

	refuse(&no, 502, "bad_gateway", "%s", reason);
	h2_answer_self(t, &no);
	h2_reset_server(t, NGHTTP2_CANCEL);
}
