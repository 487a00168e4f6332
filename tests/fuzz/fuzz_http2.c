/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_http2.c - bytes of a hostile client into its session, and of a hostile server into the other.
 *
 * The first byte says how what follows is cut: pieces go to the one or the other
 * in turn.  The sockets are pairs that nobody reads; what the server would get is
 * checked: no request for another host, none that was refused, the secret's header
 * once. */
#include "egress/edge/intercept_internal.h"

#include <nghttp2/nghttp2.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(e) ((e) ? (void)0 : abort())

static int done, judged, closed;

static void f_dial(void *arg)
{
	(void)arg;
}

static void f_judge(void *arg, const char *method, const char *path, struct net_verdict *ret)
{
	(void)arg;
	MUST(text_is_token(method, strlen(method)) && text_is_target(path, strlen(path)));
	judged++;
	*ret = (struct net_verdict){ .ok = strncmp(path, "/deny", 5) != 0 };
}

static bool f_count(void *arg, uint64_t out, uint64_t in)
{
	(void)arg;
	(void)out;
	(void)in;
	return true;
}

static void f_done(void *arg, const char *method, const char *path, int status, const char *why, size_t masked)
{
	(void)arg;
	(void)method;
	(void)path;
	(void)status;
	(void)why;
	(void)masked;
	done++;
}

static void f_closed(void *arg, const char *why)
{
	(void)arg;
	(void)why;
	closed++;
}

static void f_untrusted(void *arg, const char *why, const char *fix)
{
	(void)arg;
	(void)why;
	(void)fix;
}

/* ---- what the server would see ---- */

struct seen {
	bool authority, auth;
};

static int u_begin(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	(void)s;
	(void)f;
	*(struct seen *)arg = (struct seen){ 0 };
	return 0;
}

static bool is(const char *want, const uint8_t *s, size_t n)
{
	return n == strlen(want) && !memcmp(s, want, n);
}

static int u_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *n, size_t nl, const uint8_t *v, size_t vl, uint8_t fl, void *arg)
{
	struct seen *seen = arg;

	(void)s;
	(void)f;
	(void)fl;
	if (is(":authority", n, nl)) {
		MUST(is("api.example.com", v, vl) || is("api.example.com:443", v, vl));
		seen->authority = true;
	}
	if (is(":path", n, nl))
		MUST(vl < 5 || memcmp(v, "/deny", 5));
	if (is("authorization", n, nl)) {
		MUST(!seen->auth && memmem(v, vl, "0123456789abcdef", 16));
		seen->auth = true;
	}
	MUST(!is("host", n, nl) && !is("range", n, nl) && !is("connection", n, nl));
	return 0;
}

static int u_invalid(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *n, size_t nl, const uint8_t *v, size_t vl, uint8_t fl, void *arg)
{
	(void)s;
	(void)f;
	(void)n;
	(void)nl;
	(void)v;
	(void)vl;
	(void)fl;
	(void)arg;
	abort();
}

static int u_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	struct seen *seen = arg;

	(void)s;
	if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST)
		MUST(seen->authority && seen->auth);
	return 0;
}

static nghttp2_session *observer(struct seen *seen)
{
	nghttp2_session_callbacks *cb;
	nghttp2_session *s;

	nghttp2_session_callbacks_new(&cb);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, u_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, u_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, u_invalid);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, u_frame);
	nghttp2_session_server_new(&s, cb, seen);
	nghttp2_session_callbacks_del(cb);
	return s;
}

/* ---- the box ---- */

static void nothing(struct stream *s)
{
	(void)s;
}

static void make(struct intercept *i, struct loop *l, int *ends)
{
	int a[2], b[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a) && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b));
	stream_open(&i->client, l, a[0], nothing);
	stream_open(&i->server, l, b[0], nothing);
	ends[0] = a[1];
	ends[1] = b[1];
	i->up = UP_OPEN;
	i->phase = PH_OPEN;
	i->h2 = h2_new(i, true);
}

static void look(nghttp2_session *o, int fd)
{
	uint8_t buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof buf)) > 0)
		(void)nghttp2_session_mem_recv(o, buf, (size_t)n);
}

static void turns(struct intercept *i, nghttp2_session *o, int *ends)
{
	uint8_t waste[65536];

	for (int k = 0; k < 64 && i->phase == PH_OPEN && h2_step(i->h2); k++) {
		look(o, ends[1]);
		while (read(ends[0], waste, sizeof waste) > 0)
			;
	}
	look(o, ends[1]);
}

static void stop(void *l)
{
	loop_stop(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct secret secret = { .name = (char *)"S", .placeholder = (char *)"caisson-secret-S-0", .value = (char *)"0123456789abcdef",
					      .value_len = 16, .header = (char *)"Authorization", .format = (char *)"Bearer {}" };
	static const struct secret *const secrets[] = { &secret };
	struct loop *l = loop_new();
	struct intercept *i = cs_new(struct intercept);
	struct seen seen = { 0 };
	nghttp2_session *o = observer(&seen);
	int ends[2];
	size_t cut = size ? data[0] : 0, at = 1;
	bool to_server = false;

	signal(SIGPIPE, SIG_IGN);
	done = judged = closed = 0;
	i->loop = l;
	i->name = cs_strdup("api.example.com");
	i->port = 443;
	i->carry = (struct carry){ .name = i->name, .port = 443, .secrets = secrets, .n_secrets = 1 };
	i->carry.heads = mask_new(secrets, 1); /* freed with the box */
	i->owner = (struct intercept_owner){ NULL, f_dial, f_judge, f_count, f_done, f_closed, f_untrusted };
	make(i, l, ends);
	while (at < size && i->phase == PH_OPEN) {
		size_t n = size - at, max = cut == 0xff ? SIZE_MAX : cut * 8 + 1;

		if (n > max)
			n = max;
		(void)!write(ends[to_server ? 1 : 0], data + at, n);
		at += n;
		/* 0xff, or an odd number: all of it is the client's */
		if (!(cut & 1))
			to_server = !to_server;
		turns(i, o, ends);
	}
	shutdown(ends[0], SHUT_WR);
	turns(i, o, ends);
	if (i->phase != PH_DEAD)
		intercept_kill(i, NULL);
	MUST(closed == 1);
	MUST(done >= judged);
	loop_defer(l, stop, l); /* what was deferred before is freed first */
	(void)loop_run(l);
	nghttp2_session_del(o);
	close(ends[0]);
	close(ends[1]);
	loop_free(l);
	return 0;
}
