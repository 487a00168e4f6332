/* SPDX-License-Identifier: Apache-2.0 */
/* intercept_internal.h - the parts of interception.
 *
 *   bytes.c      a queue of bytes that wipes what it lets go of
 *   stream.c     a socket, plain or TLS, with a queue for each direction
 *   head.c       a request's or response's head, and JSON answers of our own
 *   carry.c      what a request and a response may carry: the one place, for both protocols
 *   http1.c      HTTP/1.1 as text: parsing, framing, writing.  No sockets.
 *   exchange.c   HTTP/1.1 between two streams, one request after another
 *   http2*.c     HTTP/2: two sessions, streams mapped one to one (http2_internal.h)
 *   intercept.c  the life of a connection: dialling, handshakes, time, the end
 *
 * Upstream heads hold secrets, and responses may echo them before they are masked:
 * whatever such bytes were in is wiped before it is freed.
 */
#pragma once
#include "egress/edge/intercept.h"

#include <sys/types.h>

/* ---- bytes.c ---- */

struct bytes {
	char *data;
	size_t at, len, cap; /* at: where the len unread bytes begin */
	size_t max;
};
bool bytes_add(struct bytes *b, const void *data, size_t n); /* false: past max or no memory; nothing was added */
bool bytes_str(struct bytes *b, const char *s);
char *bytes_room(struct bytes *b, size_t want, size_t *ret_room); /* space behind the end; NULL: none */
void bytes_took(struct bytes *b, size_t n);                       /* n were written into that space */
void bytes_drop(struct bytes *b, size_t n);                       /* from the front; wiped */
void bytes_done(struct bytes *b);
static inline const char *bytes_at(const struct bytes *b)
{
	return b->data + b->at;
}
void wipe_free(char *s); /* a string, or NULL */

/* ---- stream.c ---- */

enum {
	STREAM_IN_MAX = 80 * 1024,   /* a whole head and some */
	STREAM_OUT_SOFT = 128 * 1024, /* no more is asked for */
	STREAM_OUT_MAX = 512 * 1024,  /* with what a mask lets go at once */
};

struct stream {
	struct loop *loop;
	struct watch watch;
	int fd; /* -1: not there */
	SSL *ssl;
	struct bytes in, out;
	bool eof;       /* the peer has ended, in order */
	bool broken;    /* it has not, or nothing more can be read */
	bool deaf;      /* it cannot be written to; there may be something to read still */
	bool hup;       /* reported once by epoll and not watched since */
	bool tls_out;   /* TLS must write before it can go on */
	void (*ready)(struct stream *s);
};
void stream_open(struct stream *s, struct loop *l, int take_fd, void (*ready)(struct stream *s));
void stream_tls(struct stream *s, SSL *take_ssl);
int stream_handshake(struct stream *s); /* 1: done, 0: later, -1: failed */
bool stream_fill(struct stream *s);     /* something came: bytes, or the end */
bool stream_flush(struct stream *s);    /* something went */
void stream_discard(struct stream *s, size_t *budget); /* reads and forgets */
void stream_end(struct stream *s);      /* says goodbye; nothing is to follow */
void stream_watch(struct stream *s, bool read);
void stream_detach(struct stream *s);   /* closes the socket; the buffers stay until... */
void stream_done(struct stream *s);     /* ...now */
static inline bool stream_is_open(const struct stream *s)
{
	return s->fd >= 0;
}

/* ---- head.c ---- */

enum {
	HEAD_MAX = 64 * 1024,
	HEAD_LINE_MAX = 16 * 1024,
	HEAD_FIELDS = 200,
	METHOD_MAX = 32,
};

enum body_kind { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_CLOSE };

struct field {
	char *name, *value;
};

struct head {
	char *method, *target;  /* request; target as sent, later in origin form */
	char *authority;        /* Host or :authority, as sent */
	int status;             /* response */
	char *reason;
	struct field *f;        /* without those of framing: Content-Length, Transfer-Encoding */
	size_t n;
	size_t size;            /* of all texts */
	enum body_kind body;
	bool has_length;
	uint64_t length;
	bool http10, close, expect;
	bool h2;
};
bool head_add(struct head *h, const char *name, size_t name_len, const char *value, size_t value_len); /* false: too much */
bool head_set(struct head *h, const char *name, const char *value); /* removes all others of the name */
const char *head_get(const struct head *h, const char *name);       /* the first, or NULL */
size_t head_remove(struct head *h, const char *name);
void head_remove_at(struct head *h, size_t at);
void head_done(struct head *h); /* wipes */

bool text_is_token(const char *s, size_t n);
bool text_is_value(const char *s, size_t n);  /* no control bytes but TAB */
bool text_is_target(const char *s, size_t n); /* printable ASCII, no space, no fragment */

/* Why a message goes no further, as the client is told. */
struct refusal {
	int status;
	const char *error;  /* one word */
	char reason[224];
	char fix[192];      /* "" : none */
};
bool refuse(struct refusal *no, int status, const char *error, const char *fmt, ...) /* false, always */
	__attribute__((format(printf, 4, 5)));
void refusal_json(const struct refusal *no, struct cs_buf *out);
const char *status_text(int status);

/* ---- carry.c ---- */

struct carry {
	const char *name;
	uint16_t port;
	const struct secret *const *secrets;
	size_t n_secrets;
	struct mask *heads; /* NULL: no secrets */
};
/* Is this request for our name, and one that can be passed on?  Drops what is for one hop only, and
 * brings target and authority into one form. */
bool carry_request(const struct carry *c, struct head *h, struct refusal *no);
/* After the verdict: secrets, and what they need. */
bool carry_secrets(const struct carry *c, struct head *h, struct refusal *no);
/* Drops what is for one hop only; masks.  body: one follows. */
bool carry_response(const struct carry *c, struct head *h, bool body, size_t *masked, struct refusal *no);

/* Masks for bodies.  Making one is work (0.7 ms), so those whose stream has come to its end are used again. */
struct masks {
	struct mask *spare[8];
	size_t n;
	struct cs_buf clean; /* never grows, for that would leave copies of what is not masked yet */
};
struct mask *masks_get(struct masks *p, const struct carry *c); /* NULL: no secrets */
void masks_put(struct masks *p, struct mask *m, bool ended);    /* NULL is fine */
void masks_done(struct masks *p);
/* A piece of a body through its mask, into p->clean.  false: no room; the stream is lost. */
bool masks_feed(struct masks *p, struct mask *m, const void *data, size_t n, bool last, size_t *masked);

/* ---- http1.c ---- */

enum http1_result { HTTP1_MORE, HTTP1_DONE, HTTP1_BAD };

/* A head at the front of data.  *scan: how much was already looked at; 0 at first.  DONE: *ret_used
 * bytes were the head, and *ret holds it.  BAD: *no says why (requests: what to answer). */
enum http1_result http1_request(const char *data, size_t n, size_t *scan, struct head *ret, size_t *ret_used, struct refusal *no);
/* method: of the request it answers */
enum http1_result http1_response(const char *data, size_t n, size_t *scan, const char *method, struct head *ret, size_t *ret_used,
				 struct refusal *no);
/* With framing by h->body; close: the connection ends after it. */
bool http1_write_request(const struct head *h, bool close, struct bytes *out);
bool http1_write_response(const struct head *h, bool close, struct bytes *out);

struct http1_body {
	enum body_kind kind;
	uint64_t left;       /* of the length, or of the chunk */
	unsigned state;
	size_t line;         /* bytes of the line so far */
	size_t digits;
	size_t extra;        /* bytes of trailers so far */
	bool done;
};
void http1_body_begin(struct http1_body *b, enum body_kind kind, uint64_t length);
/* Looks at n bytes: returns how many it is done with, of which *ret_len at *ret are content.  -1: broken.
 * Call again until b->done or it takes nothing. */
ssize_t http1_body_take(struct http1_body *b, const char *data, size_t n, const char **ret, size_t *ret_len);
bool http1_write_chunk(const void *data, size_t n, struct bytes *out);

/* ---- exchange.c, http2.c ---- */

struct exchange;
struct exchange *exchange_new(struct intercept *i);
void exchange_free(struct exchange *x);
bool exchange_step(struct exchange *x);       /* something moved */
void exchange_over(struct exchange *x, const char *why); /* the connection is: requests under way end */

struct h2;
struct h2 *h2_new(struct intercept *i, bool upstream);
void h2_free(struct h2 *h);
bool h2_step(struct h2 *h);
void h2_over(struct h2 *h, const char *why);

/* ---- intercept.c ---- */

enum upstream { UP_NONE, UP_DIALLING, UP_TLS, UP_OPEN, UP_FAILED };
enum phase { PH_START, PH_UPSTREAM, PH_CLIENT_TLS, PH_OPEN, PH_CLOSING, PH_LINGER, PH_DEAD };

struct intercept {
	struct loop *loop;
	char *name;
	uint16_t port;
	struct ca *ca;
	SSL_CTX *verify;
	struct hello hello;
	struct intercept_owner owner;
	const struct secret **secrets;
	struct carry carry;
	struct masks masks;
	struct stream client, server;
	enum upstream up;
	char up_why[256];       /* of UP_FAILED */
	const char *up_fix;     /* constant, or NULL */
	bool up_h2;             /* the server chose it */
	enum phase phase;
	struct timer limit;
	uint64_t deadline;      /* of the phase; 0: none */
	uint64_t last;          /* something moved */
	uint64_t head_since;    /* a request's head has begun; 0: none */
	size_t linger;          /* bytes that may still be thrown away */
	bool pumping, again, deferred;
	const char *why;        /* the end is near */
	char why_text[256];
	struct exchange *h1;
	struct h2 *h2;
};
void intercept_want_upstream(struct intercept *i); /* UP_NONE: dial */
void intercept_drop_upstream(struct intercept *i);
/* Ends after what is queued for the client has gone. */
void intercept_close(struct intercept *i, const char *why);
/* Ends now.  The object is only freed at the turn's end, but `closed` is called. */
void intercept_kill(struct intercept *i, const char *why);
bool intercept_count(struct intercept *i, uint64_t out, uint64_t in); /* false: it has been killed */
static inline bool intercept_is_over(const struct intercept *i)
{
	return i->phase == PH_DEAD;
}
