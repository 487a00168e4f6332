/* SPDX-License-Identifier: Apache-2.0 */
/* test_http2.c - HTTP/2 through the boundary, from a client to a server; both are nghttp2 without manners. */
#include "edge/world.h"

#include <nghttp2/nghttp2.h>

enum { BIG = 4 << 20, MANY = 60 };

/* ---- the server ---- */

struct peer_stream {
	int32_t id;
	char head[4096];       /* "name: value\n" each */
	char body[1 << 16];
	size_t n_body, total;
	char path[256];
	bool ended, closed;
	uint32_t code;
	/* what is still to be sent */
	const char *parts[4];
	size_t left, part;
	bool trailers;
};

struct peer {
	struct world *w;
	struct conn *c;
	nghttp2_session *s;
	struct peer_stream *t[512];
	int n;
	bool server, goaway, slow;
	int window_stop; /* do not read content of this stream */
};

static struct peer_stream *peer_find(struct peer *p, int32_t id, bool make)
{
	for (int i = 0; i < p->n; i++)
		if (p->t[i]->id == id)
			return p->t[i];
	if (!make || p->n == 512)
		return NULL;
	p->t[p->n] = calloc(1, sizeof **p->t);
	p->t[p->n]->id = id;
	return p->t[p->n++];
}

static int peer_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *n, size_t nl, const uint8_t *v, size_t vl, uint8_t fl,
		       void *arg)
{
	struct peer *p = arg;
	struct peer_stream *t = peer_find(p, f->hd.stream_id, true);
	size_t at = strlen(t->head);

	(void)s;
	(void)fl;
	snprintf(t->head + at, sizeof t->head - at, "%.*s: %.*s\n", (int)nl, n, (int)vl, v);
	if (nl == 5 && !memcmp(n, ":path", 5))
		snprintf(t->path, sizeof t->path, "%.*s", (int)vl, v);
	return 0;
}

static int peer_data(nghttp2_session *s, uint8_t fl, int32_t id, const uint8_t *d, size_t n, void *arg)
{
	struct peer_stream *t = peer_find(arg, id, true);

	(void)s;
	(void)fl;
	t->total += n;
	if (n > sizeof t->body - 1 - t->n_body)
		n = sizeof t->body - 1 - t->n_body;
	memcpy(t->body + t->n_body, d, n);
	t->n_body += n;
	return 0;
}

static int peer_close(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
	struct peer_stream *t = peer_find(arg, id, true);

	(void)s;
	if (!t) /* one of very many */
		return 0;
	t->closed = true;
	t->code = code;
	return 0;
}

static ssize_t peer_read(nghttp2_session *s, int32_t id, uint8_t *to, size_t n, uint32_t *fl, nghttp2_data_source *src, void *arg)
{
	struct peer_stream *t = src->ptr;
	size_t len;

	(void)arg;
	if (t->left) { /* just much */
		n = n < t->left ? n : t->left;
		memset(to, 'x', n);
		t->left -= n;
		if (!t->left)
			*fl |= NGHTTP2_DATA_FLAG_EOF;
		return (ssize_t)n;
	}
	len = t->parts[t->part] ? strlen(t->parts[t->part]) : 0; /* one frame for each part */
	memcpy(to, t->parts[t->part] ? t->parts[t->part] : "", len);
	if (t->parts[t->part])
		t->part++;
	if (!t->parts[t->part]) {
		*fl |= NGHTTP2_DATA_FLAG_EOF;
		if (t->trailers) {
			const nghttp2_nv nv = { (uint8_t *)"grpc-status", (uint8_t *)VALUE, 11, strlen(VALUE), 0 };

			*fl |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			nghttp2_submit_trailer(s, id, &nv, 1);
		}
	}
	return (ssize_t)len;
}

#define NV(n, v) { (uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), strlen(n), strlen(v), 0 }

static void peer_answer(struct peer *p, struct peer_stream *t)
{
	const nghttp2_nv nv[] = { NV(":status", "200"), NV("x-echo", " " VALUE " "), NV("content-encoding", "gzip") };
	nghttp2_data_provider from = { .source.ptr = t, .read_callback = peer_read };
	size_t n = 2;

	t->parts[0] = "ok";
	if (!strcmp(t->path, "/big")) {
		t->left = BIG;
	} else if (!strcmp(t->path, "/echo")) {
		t->parts[0] = "<<s3cr3t/Val";
		t->parts[1] = "ue+01234";
		t->parts[2] = "56789>>";
	} else if (!strcmp(t->path, "/trailers")) {
		t->trailers = true;
	} else if (!strcmp(t->path, "/gzip")) {
		n = 3;
	} else if (!strcmp(t->path, "/reset")) {
		nghttp2_submit_rst_stream(p->s, 0, t->id, NGHTTP2_ENHANCE_YOUR_CALM);
		return;
	} else if (!strcmp(t->path, "/goaway")) {
		nghttp2_submit_goaway(p->s, 0, t->id, 0, NULL, 0);
	}
	if (!strcmp(t->path, "/interim")) {
		const nghttp2_nv early = NV(":status", "103");

		nghttp2_submit_headers(p->s, 0, t->id, NULL, &early, 1, NULL);
	}
	nghttp2_submit_response(p->s, t->id, nv, n, &from);
}

static int peer_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	struct peer *p = arg;
	struct peer_stream *t;

	(void)s;
	if (f->hd.type == NGHTTP2_GOAWAY)
		p->goaway = true;
	if ((f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA) || !(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	t = peer_find(p, f->hd.stream_id, true);
	t->ended = true;
	if (p->server) {
		pthread_mutex_lock(&p->w->lock);
		p->w->served++;
		pthread_mutex_unlock(&p->w->lock);
		peer_answer(p, t);
	}
	return 0;
}

static int peer_begin(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	struct peer *p = arg;

	(void)s;
	/* Nothing but whole heads that nghttp2 liked comes here: that is the point. */
	if (p->server && f->hd.type == NGHTTP2_HEADERS) {
		pthread_mutex_lock(&p->w->lock);
		p->w->statuses[63]++; /* streams begun at the server */
		pthread_mutex_unlock(&p->w->lock);
	}
	return 0;
}

static void peer_init(struct peer *p, struct world *w, struct conn *c, bool server)
{
	nghttp2_session_callbacks *cb;
	const nghttp2_settings_entry e = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100 };

	*p = (struct peer){ .w = w, .c = c, .server = server };
	nghttp2_session_callbacks_new(&cb);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, peer_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, peer_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, peer_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, peer_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, peer_frame);
	if (server)
		nghttp2_session_server_new(&p->s, cb, p);
	else
		nghttp2_session_client_new(&p->s, cb, p);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(p->s, 0, &e, server ? 1 : 0);
}

static void peer_free(struct peer *p)
{
	nghttp2_session_del(p->s);
	for (int i = 0; i < p->n; i++)
		free(p->t[i]);
}

static bool peer_send(struct peer *p)
{
	const uint8_t *d;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(p->s, &d)) > 0)
		if (!c_write(p->c, d, (size_t)n))
			return false;
	return n == 0;
}

/* One read's worth; false: it is over. */
static bool peer_turn(struct peer *p)
{
	uint8_t buf[16384];
	ssize_t n;

	if (!peer_send(p))
		return false;
	if (!nghttp2_session_want_read(p->s) && !nghttp2_session_want_write(p->s))
		return false;
	n = c_read(p->c, buf, sizeof buf);
	return n > 0 && nghttp2_session_mem_recv(p->s, buf, (size_t)n) == n && peer_send(p);
}

static void serve_h2(struct world *w, struct conn *c)
{
	struct peer *p = calloc(1, sizeof *p);

	peer_init(p, w, c, true);
	while (peer_turn(p))
		;
	for (int i = 0; i < p->n; i++) {
		w_saw(w, p->t[i]->head, strlen(p->t[i]->head));
		w_saw(w, p->t[i]->body, p->t[i]->n_body);
	}
	peer_free(p);
	free(p);
}

static struct world *fresh(void)
{
	struct world *w = calloc(1, sizeof *w);

	w->hello = (struct hello){ .has_name = true, .alpn = true, .h2 = true, .http11 = true };
	w->server_alpn = "h2";
	w->serve = serve_h2;
	return w;
}

/* ---- the client ---- */

static struct peer me;

static void me_open(struct world *w)
{
	struct conn *c = w_connect_alpn(w, "\x02h2\x08http/1.1", 12);
	const unsigned char *alpn;
	unsigned n;

	SSL_get0_alpn_selected(c->ssl, &alpn, &n);
	T_TRUE(n == 2);
	peer_init(&me, w, c, false);
}

static void me_close(void)
{
	peer_free(&me);
	c_close(me.c);
}

static int32_t me_ask(const nghttp2_nv *nv, size_t n, struct peer_stream *body)
{
	nghttp2_data_provider from = { .source.ptr = body, .read_callback = peer_read };

	return nghttp2_submit_request(me.s, NULL, nv, n, body ? &from : NULL, NULL);
}

static int32_t me_get(const char *path)
{
	const nghttp2_nv nv[] = { NV(":method", "GET"), NV(":scheme", "https"), NV(":authority", NAME), NV(":path", path) };

	return me_ask(nv, 4, NULL);
}

static struct peer_stream *me_wait(int32_t id)
{
	struct peer_stream *t;

	while (!(t = peer_find(&me, id, false)) || !t->closed)
		if (!peer_turn(&me))
			break;
	t = peer_find(&me, id, true);
	return t;
}

static void c_simple(struct world *w)
{
	struct peer_stream *t;

	me_open(w);
	t = me_wait(me_get("/a"));
	T_TRUE(strstr(t->head, ":status: 200\n"));
	T_STR(t->body, "ok");
	t = me_wait(me_get("/deny/b"));
	T_TRUE(strstr(t->head, ":status: 403\n") && strstr(t->head, "content-type: application/json\n"));
	T_TRUE(strstr(t->body, "{\"error\":\"refused\",\"by\":\"caisson\",\"reason\":\"no rule allows GET"));
	t = me_wait(me_get("/interim"));
	T_TRUE(strstr(t->head, ":status: 200\n") && !strstr(t->head, "103"));
	me_close();
}

TEST(requests_go_through_as_streams_and_refused_ones_do_not)
{
	struct world *w = fresh();

	w->client = c_simple;
	world_run(w);
	T_INT(w->served, 2);
	T_INT(w->connections, 1);
	T_TRUE(!strstr(w->seen, "deny"));
	T_STR(w->done, "GET /a 200\nGET /deny/b 403 no rule allows GET \"/deny/b\"\nGET /interim 200\n");
	free(w);
}

static void c_many(struct world *w)
{
	int32_t ids[MANY];

	me_open(w);
	for (int i = 0; i < MANY; i++)
		ids[i] = me_get(i % 3 == 1 ? "/deny" : "/a");
	for (int i = 0; i < MANY; i++) {
		struct peer_stream *t = me_wait(ids[i]);

		T_TRUE(strstr(t->head, i % 3 == 1 ? ":status: 403\n" : ":status: 200\n"));
	}
	me_close();
}

TEST(many_streams_at_once_are_each_judged)
{
	struct world *w = fresh();

	w->client = c_many;
	world_run(w);
	T_INT(w->served, MANY * 2 / 3);
	T_INT(w->n_done, MANY);
	free(w);
}

static void c_big(struct world *w)
{
	int32_t a, b;
	struct peer_stream *t;

	me_open(w);
	a = me_get("/big");
	b = me_get("/big");
	t = me_wait(a);
	T_INT(t->total, BIG);
	T_INT(me_wait(b)->total, BIG);
	me_close();
}

TEST(large_answers_flow_and_are_counted)
{
	struct world *w = fresh();

	w->client = c_big;
	world_run(w);
	T_TRUE(w->in > 2 * BIG);
	free(w);
}

TEST(large_answers_flow_through_a_mask)
{
	struct world *w = fresh();

	w->client = c_big;
	w->secret = true;
	world_run(w);
	T_TRUE(w->in > 2 * BIG);
	free(w);
}

static void c_upload(struct world *w)
{
	const nghttp2_nv nv[] = { NV(":method", "POST"), NV(":scheme", "https"), NV(":authority", NAME), NV(":path", "/up") };
	struct peer_stream *body = calloc(1, sizeof *body), *t;

	body->left = BIG;
	me_open(w);
	t = me_wait(me_ask(nv, 4, body));
	T_TRUE(strstr(t->head, ":status: 200\n"));
	me_close();
	free(body);
}

TEST(large_requests_flow)
{
	struct world *w = fresh();

	w->client = c_upload;
	world_run(w);
	T_TRUE(w->out > BIG);
	free(w);
}

static void c_upload_refused(struct world *w)
{
	const nghttp2_nv nv[] = { NV(":method", "POST"), NV(":scheme", "https"), NV(":authority", NAME), NV(":path", "/deny/up") };
	struct peer_stream *body = calloc(1, sizeof *body), *t;

	body->left = BIG;
	me_open(w);
	t = me_wait(me_ask(nv, 4, body));
	T_TRUE(strstr(t->head, ":status: 403\n") && strstr(t->body, "caisson"));
	t = me_wait(me_get("/a"));
	T_STR(t->body, "ok");
	me_close();
	free(body);
}

TEST(a_refused_upload_leaves_the_connection_usable)
{
	struct world *w = fresh();

	w->client = c_upload_refused;
	world_run(w);
	T_INT(w->served, 1);
	free(w);
}

/* ---- secrets ---- */

static void c_secret(struct world *w)
{
	const nghttp2_nv nv[] = { NV(":method", "GET"), NV(":scheme", "https"), NV(":authority", NAME), NV(":path", "/echo"),
				  NV("authorization", "Bearer " PLACEHOLDER), NV("authorization", "two"), NV("x-other", PLACEHOLDER),
				  NV("accept-encoding", "gzip"), NV("range", "bytes=0-1") };
	struct peer_stream *t;

	me_open(w);
	t = me_wait(me_ask(nv, 9, NULL));
	T_STR(t->body, "<<***********************>>");
	T_TRUE(strstr(t->head, "x-echo: ***********************\n"));
	t = me_wait(me_get("/trailers"));
	T_TRUE(!strstr(t->head, "grpc-status") && !strstr(t->head, VALUE));
	T_STR(t->body, "ok");
	t = me_wait(me_get("/gzip"));
	T_TRUE(strstr(t->head, ":status: 502\n"));
	me_close();
}

TEST(a_secret_goes_into_its_header_and_its_echo_is_masked_over_frames)
{
	struct world *w = fresh();

	w->client = c_secret;
	w->secret = true;
	world_run(w);
	T_TRUE(strstr(w->seen, "authorization: Bearer " VALUE "\n"));
	T_TRUE(!strstr(w->seen, "authorization: two") && strstr(w->seen, "x-other: " PLACEHOLDER "\n"));
	T_TRUE(strstr(w->seen, "accept-encoding: identity\n") && !strstr(w->seen, "encoding: gzip") && !strstr(w->seen, "range:"));
	T_TRUE(w->masked >= 2);
	free(w);
}

static void c_secret_once(struct world *w)
{
	me_open(w);
	T_STR(me_wait(me_get("/echo"))->body, "<<***********************>>");
	me_close();
}

TEST(a_value_is_not_left_in_memory)
{
	struct world *w = fresh();

	w->client = c_secret_once;
	w->secret = w->apart = true;
	world_run(w);
	free(w);
}

static void c_trailers(struct world *w)
{
	struct peer_stream *t;

	me_open(w);
	t = me_wait(me_get("/trailers"));
	T_TRUE(strstr(t->head, "grpc-status: "));
	me_close();
}

TEST(trailers_pass_where_there_are_no_secrets)
{
	struct world *w = fresh();

	w->client = c_trailers;
	world_run(w);
	free(w);
}

/* ---- what must not pass ---- */

static const struct row {
	const char *name;
	nghttp2_nv nv[8];
	size_t n;
	const char *status; /* NULL: the stream is reset */
} rows[] = {
#define ROW(name, status, ...) { name, { __VA_ARGS__ }, sizeof((nghttp2_nv[]){ __VA_ARGS__ }) / sizeof(nghttp2_nv), status }
#define SNV(n, v) { (uint8_t *)n, (uint8_t *)v, sizeof n - 1, sizeof v - 1, 0 }
#define M SNV(":method", "GET")
#define S SNV(":scheme", "https")
#define A SNV(":authority", NAME)
#define P SNV(":path", "/x")
	ROW("authority of another", "421", M, S, SNV(":authority", "evil.example.com"), P),
	ROW("authority with another port", "421", M, S, SNV(":authority", NAME ":8443"), P),
	ROW("host of another beside authority", "421", M, S, A, P, SNV("host", "evil.example.com")),
	ROW("host without authority", "400", M, S, P, SNV("host", NAME)),
	ROW("no authority", NULL, M, S, P),
	ROW("scheme http", NULL, M, SNV(":scheme", "http"), A, P),
	ROW("connect", NULL, SNV(":method", "CONNECT"), SNV(":authority", NAME ":443")),
	ROW("trace", "405", SNV(":method", "TRACE"), S, A, P),
	ROW("extended connect", NULL, SNV(":method", "CONNECT"), SNV(":protocol", "websocket"), S, A, P),
	ROW("path with cr lf", NULL, M, S, A, SNV(":path", "/x HTTP/1.1\r\nHost: evil\r\n\r\n")),
	ROW("path with a space", NULL, M, S, A, SNV(":path", "/x y")),
	ROW("path that is absolute", NULL, M, S, A, SNV(":path", "https://evil.example.com/")),
	ROW("method with a space", NULL, SNV(":method", "GET /evil"), S, A, P),
	ROW("value with cr lf", NULL, M, S, A, P, SNV("x-a", "b\r\nevil: c")),
	ROW("value with lf", NULL, M, S, A, P, SNV("x-a", "b\nevil: c")),
	ROW("value with nul", NULL, M, S, A, P, SNV("x-a", "b\0c")),
	ROW("name with a colon", NULL, M, S, A, P, SNV("x-a: b\r\nevil", "c")),
	ROW("name with a space", NULL, M, S, A, P, SNV("x evil", "c")),
	ROW("empty name", NULL, M, S, A, P, SNV("", "evil")),
	ROW("transfer-encoding", NULL, M, S, A, P, SNV("transfer-encoding", "chunked")),
	ROW("connection", NULL, M, S, A, P, SNV("connection", "close")),
	ROW("upgrade", NULL, M, S, A, P, SNV("upgrade", "websocket")),
	ROW("two methods", NULL, M, SNV(":method", "POST"), S, A, P),
	ROW("two paths", NULL, M, S, A, P, SNV(":path", "/evil")),
	ROW("pseudo header late", NULL, M, S, A, SNV("x-a", "b"), P),
	ROW("unknown pseudo header", NULL, M, S, A, P, SNV(":evil", "1")),
	ROW("content-length without content", NULL, M, S, A, P, SNV("content-length", "5")),
	ROW("content-length twice", NULL, M, S, A, P, SNV("content-length", "0"), SNV("content-length", "1")),
	ROW("content-length not a number", NULL, M, S, A, P, SNV("content-length", "0x0")),
};
static const struct row *row_now;

static void c_row(struct world *w)
{
	struct peer_stream *t;

	me_open(w);
	t = me_wait(me_ask(row_now->nv, row_now->n, NULL));
	if (row_now->status) {
		char want[32];

		snprintf(want, sizeof want, ":status: %s\n", row_now->status);
		T_TRUE(strstr(t->head, want));
	} else {
		T_STR(t->head, "");
	}
	me_close();
}

static void run_row(const void *arg)
{
	struct world *w = fresh();

	row_now = arg;
	w->client = c_row;
	world_run(w);
	T_INT(w->served, 0);
	T_INT(w->statuses[63], 0);
	T_INT(w->n_seen, 0);
	free(w);
}

TEST_TABLE(not_passed)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char name[128];

		snprintf(name, sizeof name, "stream: %s", rows[i].name);
		t_add(name, run_row, &rows[i]);
	}
}

static void c_short_body(struct world *w)
{
	const nghttp2_nv nv[] = { NV(":method", "POST"), NV(":scheme", "https"), NV(":authority", NAME), NV(":path", "/x"),
				  NV("content-length", "50") };
	struct peer_stream body = { .parts = { "short" } }, *t;

	me_open(w);
	t = me_wait(me_ask(nv, 5, &body));
	T_STR(t->head, "");
	T_TRUE(t->code != 0);
	me_close();
}

TEST(content_shorter_than_its_length_is_never_a_whole_request)
{
	struct world *w = fresh();

	w->client = c_short_body;
	world_run(w);
	T_INT(w->served, 0);
	free(w);
}

/* ---- ends ---- */

static void c_reset(struct world *w)
{
	me_open(w);
	T_INT(me_wait(me_get("/reset"))->code, NGHTTP2_ENHANCE_YOUR_CALM);
	T_STR(me_wait(me_get("/a"))->body, "ok");
	me_close();
}

TEST(a_reset_by_the_server_reaches_the_client)
{
	struct world *w = fresh();

	w->client = c_reset;
	world_run(w);
	T_STR(w->done, "GET /reset 0 the stream was reset\nGET /a 200\n");
	free(w);
}

static void c_goaway(struct world *w)
{
	me_open(w);
	T_STR(me_wait(me_get("/goaway"))->body, "ok");
	while (!me.goaway && peer_turn(&me))
		;
	T_TRUE(me.goaway);
	me_close();
}

TEST(a_server_that_goes_away_ends_the_connection_in_order)
{
	struct world *w = fresh();

	w->client = c_goaway;
	world_run(w);
	T_STR(w->closed, "-\n");
	T_STR(w->done, "GET /goaway 200\n");
	free(w);
}

static void c_rapid(struct world *w)
{
	bool alive = true;

	me_open(w);
	for (int i = 0; i < 2000 && alive; i++) {
		int32_t id = me_get("/a");

		alive = peer_send(&me);
		nghttp2_submit_rst_stream(me.s, 0, id, NGHTTP2_CANCEL);
		alive = alive && peer_send(&me);
	}
	while (peer_turn(&me))
		;
	me_close();
}

TEST(rapid_resets_end_the_connection)
{
	struct world *w = fresh();

	w->client = c_rapid;
	world_run(w);
	T_TRUE(w->statuses[63] <= 400);
	free(w);
}

static void c_flood(struct world *w)
{
	bool alive = true;

	me_open(w);
	for (int i = 0; i < 20000 && alive; i++) {
		nghttp2_submit_ping(me.s, 0, NULL);
		alive = peer_send(&me);
	}
	while (peer_turn(&me))
		;
	me_close();
}

TEST(a_flood_of_pings_ends_the_connection)
{
	struct world *w = fresh();

	w->client = c_flood;
	world_run(w);
	T_TRUE(!strcmp(w->closed, "too many resets or empty frames\n") || strcasestr(w->closed, "flood")); /* ours or nghttp2's */
	free(w);
}

static void c_cert(struct world *w)
{
	struct peer_stream *t;

	me_open(w);
	t = me_wait(me_get("/a"));
	T_TRUE(strstr(t->head, ":status: 502\n"));
	T_TRUE(strstr(t->body, "was not accepted: hostname mismatch") && !strstr(t->body, "\"allow\""));
	while (!me.goaway && peer_turn(&me))
		;
	me_close();
}

TEST(a_certificate_for_another_name_is_a_502_in_http_2_too)
{
	struct world *w = fresh();

	w->client = c_cert;
	w->cert_name = "evil.example.com";
	world_run(w);
	T_INT(w->served, 0);
	free(w);
}

static void c_budget(struct world *w)
{
	me_open(w);
	T_TRUE(me_wait(me_get("/big"))->total < BIG);
	me_close();
}

TEST(a_used_up_budget_cuts_all_streams)
{
	struct world *w = fresh();

	w->client = c_budget;
	w->budget = 500000;
	world_run(w);
	T_STR(w->closed, "a budget is used up\n");
	free(w);
}

static void c_leaves(struct world *w)
{
	me_open(w);
	for (int i = 0; i < 20; i++)
		me_get("/big");
	peer_send(&me);
	peer_turn(&me);
	me_close();
}

TEST(a_client_that_leaves_takes_its_streams_along)
{
	struct world *w = fresh();

	w->client = c_leaves;
	world_run(w);
	T_TRUE(w->n_done <= 20);
	free(w);
}

static void c_h1_server(struct world *w)
{
	struct conn *c = w_connect_alpn(w, "\x02h2\x08http/1.1", 12);
	const unsigned char *alpn;
	unsigned n;

	SSL_get0_alpn_selected(c->ssl, &alpn, &n);
	T_TRUE(n == 8);
	c_close(c);
}

TEST(the_client_gets_what_the_server_chose)
{
	struct world *w = fresh();

	w->client = c_h1_server;
	w->server_alpn = "http/1.1";
	w->serve = NULL;
	world_run(w);
	free(w);
}

static void c_curl(struct world *w)
{
	static struct t_result r;
	char to[128];
	const char *argv[] = { "curl", "-sS", "-i", "--http2", "--max-time", "10", "--cacert", w->ca_file, "--connect-to", to, "-d", "hello",
			       "https://" NAME "/curl", "https://" NAME "/deny", NULL };

	snprintf(to, sizeof to, "::127.0.0.1:%d", w->port);
	t_run(&r, argv);
	if (r.status == 127)
		T_SKIP("no curl here");
	T_INT(r.status, 0);
	T_TRUE(!strncmp(r.out, "HTTP/2 200", 10) && strstr(r.out, "\r\n\r\nok") && strstr(r.out, "HTTP/2 403") && strstr(r.out, "\"by\":\"caisson\""));
}

TEST(curl_speaks_http_2_through_it)
{
	struct world *w = fresh();

	w->client = c_curl;
	world_run(w);
	T_INT(w->served, 1);
	T_TRUE(strstr(w->seen, "hello"));
	free(w);
}
