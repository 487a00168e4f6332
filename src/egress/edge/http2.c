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
#include "egress/edge/intercept_internal.h"

#include <ctype.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	STREAMS = 100,
	STREAMS_HARD = 200,            /* with those that one end has closed already */
	STREAM_WINDOW = 256 * 1024,
	SESSION_WINDOW = 1024 * 1024,
	DRAIN_MAX = 64 * 1024,
	INTERIM_MAX = 16,
	WINDOW_MS = 10 * 1000,         /* in which there may be at most: */
	RESETS_MAX = 300,
	CONTROLS_MAX = 2000,
};

struct stream2 {
	struct stream2 *next;
	struct h2 *h;
	int32_t cid, sid;         /* with the client, with the server; 0: none */
	struct head req, resp;    /* while they come */
	char *method, *path;      /* until `done` was told */
	struct bytes up, down;    /* content on its way */
	size_t up_held, down_held; /* received and not yet acknowledged */
	bool up_end, down_end;    /* no more comes */
	bool answered;            /* the client has a head */
	bool self;                /* it is ours: the request goes no further */
	bool sent;                /* the answer is out */
	bool client_gone, server_gone;
	bool trailing;            /* the head that comes is trailers */
	bool unmasked;            /* the mask has seen the end */
	struct head trailers;
	size_t drained, masked;
	unsigned interim;
	struct mask *mask;
	int status;
};

struct h2 {
	struct intercept *i;
	nghttp2_session *c, *s;   /* server of the client, client of the server */
	struct stream2 *streams;
	size_t n;
	bool ending;              /* no new streams */
	uint64_t window_since;
	unsigned resets, controls;
};

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

static nghttp2_mem wiping = { NULL, wipe_malloc, wipe_block, wipe_calloc, wipe_realloc };

/* ---- streams ---- */

static struct stream2 *by_client(struct h2 *h, int32_t id)
{
	struct stream2 *t = h->streams;

	while (t && (t->cid != id || t->client_gone))
		t = t->next;
	return t;
}

static struct stream2 *by_server(struct h2 *h, int32_t id)
{
	struct stream2 *t = h->streams;

	while (t && (!t->sid || t->sid != id || t->server_gone))
		t = t->next;
	return t;
}

static void tell_done(struct stream2 *t, int status, const char *why)
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

static void free_stream(struct stream2 *t)
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
static void drop_if_over(struct stream2 *t)
{
	struct h2 *h = t->h;
	struct stream2 **at = &h->streams;

	if (!t->client_gone || (t->sid && !t->server_gone))
		return;
	if (t->up_held)
		(void)nghttp2_session_consume_connection(h->c, t->up_held);
	if (t->down_held && h->s)
		(void)nghttp2_session_consume_connection(h->s, t->down_held);
	tell_done(t, t->status, "the stream was reset");
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	h->n--;
	free_stream(t);
}

static struct stream2 *add_stream(struct h2 *h, int32_t id)
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

static void reset_client(struct stream2 *t, uint32_t code)
{
	if (!t->client_gone)
		(void)nghttp2_submit_rst_stream(t->h->c, NGHTTP2_FLAG_NONE, t->cid, code);
}

static void reset_server(struct stream2 *t, uint32_t code)
{
	if (t->sid && !t->server_gone)
		(void)nghttp2_submit_rst_stream(t->h->s, NGHTTP2_FLAG_NONE, t->sid, code);
}

static void say_goaway(struct h2 *h)
{
	if (h->ending)
		return;
	h->ending = true;
	(void)nghttp2_submit_goaway(h->c, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->c), NGHTTP2_NO_ERROR, NULL, 0);
}

/* Resets and frames that carry nothing cost us more than they cost who sends them. */
static bool too_many(struct h2 *h, unsigned *counter, unsigned max)
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
static nghttp2_nv *make_nv(const struct carry *c, struct head *h, const nghttp2_nv *lead, size_t n_lead, size_t *ret_n)
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

static nghttp2_nv pseudo(const char *name, char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE };
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

static ssize_t read_up(nghttp2_session *s, int32_t id, uint8_t *to, size_t n, uint32_t *flags, nghttp2_data_source *src, void *arg)
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
		nghttp2_nv *nv = make_nv(&t->h->i->carry, &t->trailers, NULL, 0, &n);

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		(void)nghttp2_submit_trailer(t->h->c, t->cid, nv, n);
		free(nv);
	}
}

static ssize_t read_down(nghttp2_session *c, int32_t id, uint8_t *to, size_t n, uint32_t *flags, nghttp2_data_source *src, void *arg)
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

static void answer_self(struct stream2 *t, const struct refusal *no)
{
	struct cs_buf json = CS_BUF(4096);
	char status[8], length[24];
	nghttp2_data_provider from = { .source.ptr = t, .read_callback = read_down };
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
		reset_client(t, NGHTTP2_INTERNAL_ERROR);
	} else {
		const nghttp2_nv nv[] = { pseudo(":status", status), pseudo("content-type", (char[]){ "application/json" }),
					  pseudo("content-length", length) };

		(void)nghttp2_submit_response(t->h->c, t->cid, nv, sizeof nv / sizeof *nv, is_head ? NULL : &from);
	}
	cs_buf_done(&json);
	tell_done(t, no->status, no->reason);
}

static void fail_upstream(struct stream2 *t, const char *reason)
{
	struct refusal no;

	refuse(&no, 502, "bad_gateway", "%s", reason);
	answer_self(t, &no);
	reset_server(t, NGHTTP2_CANCEL);
}

/* ---- the request ---- */

static bool submit_up(struct stream2 *t)
{
	struct h2 *h = t->h;
	struct head *q = &t->req;
	const nghttp2_nv lead[] = { pseudo(":method", q->method), pseudo(":scheme", (char[]){ "https" }),
				    pseudo(":authority", q->authority), pseudo(":path", q->target) };
	nghttp2_data_provider from = { .source.ptr = t, .read_callback = read_up };
	size_t n, size = q->size + strlen(q->method) + strlen(q->target) + strlen(q->authority);
	nghttp2_nv *nv = make_nv(&h->i->carry, q, lead, sizeof lead / sizeof *lead, &n);

	t->sid = nghttp2_submit_request(h->s, NULL, nv, n, t->up_end ? NULL : &from, t);
	free(nv);
	head_done(q); /* it held secrets */
	if (t->sid < 0) {
		t->sid = 0;
		reset_client(t, NGHTTP2_REFUSED_STREAM);
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
		reset_client(t, NGHTTP2_PROTOCOL_ERROR);
		return true;
	}
	if (!carry_request(&i->carry, &t->req, &no)) {
		t->method = cs_strdup(t->req.method);
		t->path = cs_strdup(t->req.target);
		answer_self(t, &no);
		return !intercept_is_over(i);
	}
	t->method = cs_strdup(t->req.method);
	t->path = cs_strdup(t->req.target);
	if (!t->h->s) {
		refuse(&no, 502, "bad_gateway", "%s", i->up_why);
		answer_self(t, &no);
		return !intercept_is_over(i);
	}
	i->owner.judge(i->owner.arg, t->method, t->path, &v);
	if (intercept_is_over(i))
		return false;
	if (!v.ok) {
		refuse(&no, 403, "refused", "%s", v.reason);
		snprintf(no.fix, sizeof no.fix, "%s", v.fix);
		answer_self(t, &no);
		return !intercept_is_over(i);
	}
	if (!carry_secrets(&i->carry, &t->req, &no)) {
		answer_self(t, &no);
		return !intercept_is_over(i);
	}
	return submit_up(t);
}

static int c_begin_headers(nghttp2_session *c, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = by_client(h, f->hd.stream_id);

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
		add_stream(h, f->hd.stream_id);
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

static bool is_text(const char *want, const uint8_t *s, size_t n)
{
	return n == strlen(want) && !memcmp(s, want, n);
}

static bool add_pseudo(struct head *q, const uint8_t *name, size_t nl, const uint8_t *value, size_t vl)
{
	if (memchr(value, 0, vl) || !text_is_value((const char *)value, vl) || vl > HEAD_LINE_MAX)
		return false;
	if (is_text(":method", name, nl))
		return set_once(&q->method, value, vl);
	if (is_text(":path", name, nl))
		return set_once(&q->target, value, vl);
	if (is_text(":authority", name, nl))
		return set_once(&q->authority, value, vl);
	return is_text(":scheme", name, nl) && is_text("https", value, vl);
}

/* nghttp2 has looked already; this is the second wall. */
static bool add_field(struct head *q, const uint8_t *name, size_t nl, const uint8_t *value, size_t vl)
{
	for (size_t i = 0; i < nl; i++)
		if (isupper(name[i]))
			return false;
	return text_is_token((const char *)name, nl) && text_is_value((const char *)value, vl) && !memchr(value, 0, vl) &&
	       !is_text("transfer-encoding", name, nl) && !is_text("connection", name, nl) &&
	       head_add(q, (const char *)name, nl, (const char *)value, vl);
}

static int c_header(nghttp2_session *c, const nghttp2_frame *f, const uint8_t *name, size_t nl, const uint8_t *value, size_t vl,
		    uint8_t flags, void *arg)
{
	struct stream2 *t = by_client(arg, f->hd.stream_id);

	(void)c;
	(void)flags;
	if (!t || t->trailing) /* trailers of requests go no further */
		return 0;
	if (nl && name[0] == ':' ? add_pseudo(&t->req, name, nl, value, vl) : add_field(&t->req, name, nl, value, vl))
		return 0;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* Without this, nghttp2 leaves the header out and goes on. */
static int on_invalid_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t nl, const uint8_t *value,
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

static void wake_up(struct stream2 *t)
{
	if (t->sid && !t->server_gone)
		(void)nghttp2_session_resume_data(t->h->s, t->sid); /* fails if it does not wait: fine */
}

static void wake_down(struct stream2 *t)
{
	if (t->answered && !t->client_gone)
		(void)nghttp2_session_resume_data(t->h->c, t->cid);
}

static bool is_control(const nghttp2_frame *f)
{
	return f->hd.type == NGHTTP2_PING || f->hd.type == NGHTTP2_SETTINGS || f->hd.type == NGHTTP2_PRIORITY ||
	       f->hd.type == NGHTTP2_PRIORITY_UPDATE || (f->hd.type == NGHTTP2_DATA && !f->hd.length);
}

static int c_frame(nghttp2_session *c, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = by_client(h, f->hd.stream_id);

	(void)c;
	if (is_control(f) && too_many(h, &h->controls, CONTROLS_MAX))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (f->hd.type == NGHTTP2_HEADERS)
		h->i->head_since = 0;
	if (!t || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
		return 0;
	if (f->hd.flags & NGHTTP2_FLAG_END_STREAM)
		t->up_end = true;
	if (f->hd.type == NGHTTP2_HEADERS && !t->trailing)
		return begin_request(t) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
	wake_up(t);
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
		reset_client(t, NGHTTP2_NO_ERROR);
}

static int c_data(nghttp2_session *c, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = by_client(h, id);

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
	wake_up(t);
	return 0;
}

static int c_close_stream(nghttp2_session *c, int32_t id, uint32_t code, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = by_client(h, id);

	(void)c;
	if (code != NGHTTP2_NO_ERROR) {
		h->i->head_since = 0;
		if (too_many(h, &h->resets, RESETS_MAX))
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (!t)
		return 0;
	t->client_gone = true;
	reset_server(t, code == NGHTTP2_NO_ERROR ? NGHTTP2_CANCEL : code);
	drop_if_over(t);
	return intercept_is_over(h->i) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int c_sent(nghttp2_session *c, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = by_client(h, f->hd.stream_id);

	(void)c;
	if (!t || !(f->hd.flags & NGHTTP2_FLAG_END_STREAM) || (f->hd.type != NGHTTP2_DATA && f->hd.type != NGHTTP2_HEADERS))
		return 0;
	t->sent = true;
	tell_done(t, t->status, NULL);
	if (!t->up_end && (t->server_gone || t->drained > DRAIN_MAX)) /* nobody reads what else it sends */
		reset_client(t, NGHTTP2_NO_ERROR);
	return intercept_is_over(h->i) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* ---- the answer ---- */

static int s_begin_headers(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	struct stream2 *t = by_server(arg, f->hd.stream_id);

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
	struct stream2 *t = by_server(arg, f->hd.stream_id);

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
	if (is_text(":status", name, nl) ? parse_status(&t->resp, value, vl) : add_field(&t->resp, name, nl, value, vl))
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
	nghttp2_data_provider from = { .source.ptr = t, .read_callback = read_down };
	size_t n, size = t->resp.size;

	if (t->resp.status == 101 || !t->resp.status || !carry_response(&i->carry, &t->resp, !end, &t->masked, &no)) {
		fail_upstream(t, t->resp.status == 101 || !t->resp.status ? "the server changed the protocol" : no.reason);
		return !intercept_is_over(i);
	}
	snprintf(status, sizeof status, "%d", t->resp.status);
	lead = pseudo(":status", status);
	nv = make_nv(&i->carry, &t->resp, &lead, 1, &n);
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
	const nghttp2_nv nv = pseudo(":status", (char[]){ "100" });

	if (t->resp.status == 101 || ++t->interim > INTERIM_MAX) {
		fail_upstream(t, "the server changed the protocol, or has too many interim answers");
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
		reset_client(t, NGHTTP2_INTERNAL_ERROR);
	t->down_end = true;
	wake_down(t);
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
	struct stream2 *t = by_server(h, f->hd.stream_id);
	bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;

	(void)s;
	if (is_control(f) && too_many(h, &h->controls, CONTROLS_MAX))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (f->hd.type == NGHTTP2_GOAWAY)
		say_goaway(h);
	if (t && f->hd.type == NGHTTP2_HEADERS && !s_headers(t, end))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (t && f->hd.type == NGHTTP2_DATA && end && !t->self)
		end_answer(t);
	return 0;
}

static int s_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *arg)
{
	struct stream2 *t = by_server(arg, id);

	(void)flags;
	if (!t || t->self || t->client_gone || !t->answered) {
		(void)nghttp2_session_consume(s, id, n);
		return 0;
	}
	t->down_held += n;
	if (!add_down(t, data, n, /* last= */ false)) {
		reset_client(t, NGHTTP2_INTERNAL_ERROR);
		return 0;
	}
	wake_down(t);
	return 0;
}

/* The server's part is over: in order if its answer is whole. */
static void server_closed(struct stream2 *t, uint32_t code)
{
	t->server_gone = true;
	if (!t->self && !t->client_gone) {
		if (!t->down_end)
			reset_client(t, code == NGHTTP2_NO_ERROR ? NGHTTP2_INTERNAL_ERROR : code);
		else if (t->sent && !t->up_end)
			reset_client(t, NGHTTP2_NO_ERROR);
	}
	if (t->up.len) { /* nobody takes it any more */
		bytes_drop(&t->up, t->up.len);
		(void)nghttp2_session_consume_connection(t->h->c, t->up_held);
		t->up_held = 0;
	}
	drop_if_over(t);
}

static int s_close_stream(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
	struct h2 *h = arg;
	struct stream2 *t = by_server(h, id);

	(void)s;
	if (t)
		server_closed(t, code);
	return intercept_is_over(h->i) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

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
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, c_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, c_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, c_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, c_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, c_close_stream);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, c_sent);
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
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, s_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, s_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, s_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, s_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, s_close_stream);
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
		free_stream(t);
	}
	free(h);
}

void h2_over(struct h2 *h, const char *why)
{
	for (struct stream2 *t = h->streams; t; t = t->next)
		tell_done(t, t->status, why ? why : "the connection ended");
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
			server_closed(t, NGHTTP2_INTERNAL_ERROR);
	}
	if (intercept_is_over(h->i))
		return;
	say_goaway(h);
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
		say_goaway(h); /* without a server there was one answer to give */
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
