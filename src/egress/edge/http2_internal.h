/* SPDX-License-Identifier: Apache-2.0 */
/* http2_internal.h - HTTP/2 in parts.
 *
 *   http2.c         the two sessions and their turns
 *   http2_client.c  what the client's session calls: requests
 *   http2_server.c  what the server's session calls: answers
 *   http2_stream.c  what both do with a stream
 */
#pragma once
#include "egress/edge/intercept_internal.h"

#include <nghttp2/nghttp2.h>

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

/* ---- http2_stream.c ---- */

struct stream2 *h2_by_client(struct h2 *h, int32_t id);
struct stream2 *h2_by_server(struct h2 *h, int32_t id);
void h2_tell_done(struct stream2 *t, int status, const char *why); /* once */
void h2_free_stream(struct stream2 *t);
void h2_drop_if_over(struct stream2 *t); /* both ends are done with it; t may be gone then */
struct stream2 *h2_add_stream(struct h2 *h, int32_t id);
void h2_reset_client(struct stream2 *t, uint32_t code);
void h2_reset_server(struct stream2 *t, uint32_t code);
void h2_say_goaway(struct h2 *h);
bool h2_too_many(struct h2 *h, unsigned *counter, unsigned max); /* then the connection was killed */
nghttp2_nv *h2_make_nv(const struct carry *c, struct head *h, const nghttp2_nv *lead, size_t n_lead, size_t *ret_n); /* freed by the caller */
nghttp2_nv h2_pseudo(const char *name, char *value);
ssize_t h2_read_up(nghttp2_session *s, int32_t id, uint8_t *to, size_t n, uint32_t *flags, nghttp2_data_source *src, void *arg);
ssize_t h2_read_down(nghttp2_session *c, int32_t id, uint8_t *to, size_t n, uint32_t *flags, nghttp2_data_source *src, void *arg);
void h2_answer_self(struct stream2 *t, const struct refusal *no);
void h2_fail_upstream(struct stream2 *t, const char *reason);
bool h2_is_text(const char *want, const uint8_t *s, size_t n);
bool h2_add_field(struct head *q, const uint8_t *name, size_t nl, const uint8_t *value, size_t vl); /* false: not to be passed */
int h2_on_invalid_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t nl, const uint8_t *value, size_t vl,
			 uint8_t flags, void *arg);
void h2_wake_up(struct stream2 *t);
void h2_wake_down(struct stream2 *t);
bool h2_is_control(const nghttp2_frame *f);

/* ---- http2_client.c, http2_server.c ---- */

void h2_client_callbacks(nghttp2_session_callbacks *cb);
void h2_server_callbacks(nghttp2_session_callbacks *cb);
void h2_server_closed(struct stream2 *t, uint32_t code); /* the server's part is over; t may be gone then */
