/* SPDX-License-Identifier: Apache-2.0 */
/* intercept.c - the life of an intercepted connection.
 *
 *   PH_START -> PH_UPSTREAM -> PH_CLIENT_TLS -> PH_OPEN -> PH_CLOSING -> PH_LINGER -> PH_DEAD
 *
 * The server comes first: which protocol it chooses decides what the client is
 * offered.  If it cannot be reached, or is not who it should be, TLS with the
 * client is finished all the same, because a 502 with a reason can be read by
 * whoever runs the client, and a broken handshake cannot.  Plain HTTP begins
 * at PH_OPEN, and its server is dialled for the first request that may pass.
 */
#include "egress/edge/edge.h"
#include "egress/edge/intercept_internal.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DIAL_MS = 30 * 1000,
	HANDSHAKE_MS = 15 * 1000,
	HEAD_MS = 30 * 1000,
	IDLE_MS = 10 * 60 * 1000,
	CLOSE_MS = 30 * 1000,
	LINGER_MS = 2 * 1000,
	LINGER_BYTES = 1024 * 1024,
	ROUNDS = 16, /* then others have their turn */
};

static void pump(struct intercept *i);

/* ---- the end ---- */

static void free_now(void *arg)
{
	struct intercept *i = arg;

	exchange_free(i->h1);
	h2_free(i->h2);
	stream_done(&i->client);
	stream_done(&i->server);
	masks_done(&i->masks);
	mask_free(i->carry.heads);
	free(i->secrets);
	free(i->name);
	free(i);
}

void intercept_kill(struct intercept *i, const char *why)
{
	if (i->phase == PH_DEAD)
		return;
	i->phase = PH_DEAD;
	loop_untimer(i->loop, &i->limit);
	stream_detach(&i->client);
	stream_detach(&i->server);
	if (i->h1)
		exchange_over(i->h1, why);
	if (i->h2)
		h2_over(i->h2, why);
	i->owner.closed(i->owner.arg, why);
	loop_defer(i->loop, free_now, i);
}

void intercept_cut(struct intercept *i, const char *why)
{
	intercept_kill(i, why);
}

void intercept_close(struct intercept *i, const char *why)
{
	if (i->phase >= PH_CLOSING)
		return;
	i->phase = PH_CLOSING;
	if (why) {
		snprintf(i->why_text, sizeof i->why_text, "%s", why);
		i->why = i->why_text;
	}
	intercept_drop_upstream(i);
	i->head_since = 0;
	i->deadline = loop_now(i->loop) + CLOSE_MS;
}

bool intercept_count(struct intercept *i, uint64_t out, uint64_t in)
{
	if (intercept_is_over(i))
		return false;
	if (!i->owner.count(i->owner.arg, out, in))
		intercept_kill(i, "a budget is used up");
	return !intercept_is_over(i);
}

/* ---- the server ---- */

static void upstream_failed(struct intercept *i, const char *why)
{
	stream_done(&i->server);
	i->server.fd = -1;
	i->up = UP_FAILED;
	snprintf(i->up_why, sizeof i->up_why, "%s", why ? why : "the server cannot be reached");
	i->up_fix = NULL;
	i->deadline = 0;
}

void intercept_want_upstream(struct intercept *i)
{
	i->up = UP_DIALLING;
	i->deadline = loop_now(i->loop) + DIAL_MS;
	i->owner.dial(i->owner.arg);
}

void intercept_drop_upstream(struct intercept *i)
{
	if (i->up == UP_TLS || i->up == UP_OPEN) {
		if (i->up == UP_OPEN && i->server.ssl)
			stream_end(&i->server);
		stream_done(&i->server);
		i->server.fd = -1;
	}
	if (i->up != UP_FAILED)
		i->up = UP_NONE;
	i->deadline = 0;
}

static void on_server(struct stream *s)
{
	pump(LOOP_OF(s, struct intercept, server));
}

static void on_client(struct stream *s)
{
	pump(LOOP_OF(s, struct intercept, client));
}

static SSL *server_ssl(struct intercept *i)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1", one[] = "\x08http/1.1", two[] = "\x02h2";
	bool first = i->phase == PH_UPSTREAM; /* later connections must be what the first one was: HTTP/1.1 */
	bool h2 = first && i->hello.h2, h1 = !h2 || i->hello.http11;
	SSL *ssl = SSL_new(i->verify);

	if (!ssl)
		return NULL;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	SSL_set_verify(ssl, edge_checks(EDGE_CHECK_verify) ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	if (!SSL_set_tlsext_host_name(ssl, i->name) || !SSL_set1_host(ssl, i->name) ||
	    SSL_set_alpn_protos(ssl, h2 && h1 ? both : h2 ? two : one,
				(unsigned)((h2 && h1 ? sizeof both : h2 ? sizeof two : sizeof one) - 1))) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_connect_state(ssl);
	return ssl;
}

void intercept_dialled(struct intercept *i, int take_fd, const char *why)
{
	SSL *ssl = NULL;

	if (i->phase == PH_DEAD || i->up != UP_DIALLING) {
		if (take_fd >= 0)
			close(take_fd);
		return;
	}
	i->deadline = 0;
	if (take_fd < 0) {
		upstream_failed(i, why);
	} else {
		stream_open(&i->server, i->loop, take_fd, on_server);
		i->up = UP_OPEN;
		if (i->ca) {
			ssl = server_ssl(i);
			i->up = UP_TLS;
			i->deadline = loop_now(i->loop) + HANDSHAKE_MS;
			if (ssl)
				stream_tls(&i->server, ssl);
			else
				upstream_failed(i, "TLS could not be set up");
		}
	}
	pump(i);
}

/* Who signed it is not known here; other faults are the certificate's own. */
static const char *trusting(long verify)
{
	switch (verify) {
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_UNTRUSTED:
		return getenv("SSL_CERT_FILE") ? "if it is to be trusted: the file that SSL_CERT_FILE names has to hold the certificate of who signed it" :
						 "if it is to be trusted: start caisson with SSL_CERT_FILE=FILE, a file with the certificate of who signed it";
	default:
		return NULL;
	}
}

static void handshake_failed(struct intercept *i)
{
	long verify = SSL_get_verify_result(i->server.ssl);
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	char why[256];

	if (verify != X509_V_OK)
		snprintf(why, sizeof why, "the certificate of %s was not accepted: %s", i->name, X509_verify_cert_error_string(verify));
	else
		snprintf(why, sizeof why, "TLS with %s failed: %s", i->name, reason ? reason : "the connection ended");
	upstream_failed(i, why);
	if (verify == X509_V_OK)
		return;
	i->up_fix = trusting(verify);
	i->owner.untrusted(i->owner.arg, i->up_why, i->up_fix);
}

static bool server_handshake(struct intercept *i)
{
	const unsigned char *alpn;
	unsigned n;
	int r = stream_handshake(&i->server);

	if (r == 0)
		return false;
	if (r < 0) {
		handshake_failed(i);
		return true;
	}
	SSL_get0_alpn_selected(i->server.ssl, &alpn, &n);
	i->up = UP_OPEN;
	i->deadline = 0;
	if (i->phase == PH_UPSTREAM)
		i->up_h2 = n == 2 && !memcmp(alpn, "h2", 2);
	return true;
}

/* ---- the client ---- */

/* Exactly what the server chose; without a server, the best of what is offered. */
static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in, unsigned n, void *arg)
{
	struct intercept *i = SSL_get_app_data(ssl);
	const char *want = i->up_h2 ? "h2" : "http/1.1";

	(void)arg;
	for (unsigned at = 0; at < n && in[at] <= n - at - 1; at += 1U + in[at])
		if (in[at] == strlen(want) && !memcmp(in + at + 1, want, in[at])) {
			*out = in + at + 1;
			*out_len = in[at];
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void begin_client_tls(struct intercept *i)
{
	SSL_CTX *ctx = ca_context(i->ca, i->name, /* err= */ NULL);
	SSL *ssl = ctx ? SSL_new(ctx) : NULL;

	if (!ssl) {
		intercept_kill(i, "no certificate could be made");
		return;
	}
	if (i->up == UP_FAILED)
		i->up_h2 = i->hello.h2;
	/* On the shared context, but always the same: who asks is found by the connection. */
	SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
	SSL_set_app_data(ssl, i);
	SSL_set_accept_state(ssl);
	stream_tls(&i->client, ssl);
	i->phase = PH_CLIENT_TLS;
	i->deadline = loop_now(i->loop) + HANDSHAKE_MS;
}

static void open_now(struct intercept *i)
{
	i->phase = PH_OPEN;
	i->deadline = 0;
	if (i->up_h2)
		i->h2 = h2_new(i, i->up == UP_OPEN);
	else
		i->h1 = exchange_new(i);
}

static bool client_handshake(struct intercept *i)
{
	const char *sni;
	char name[NET_NAME_MAX];
	const unsigned char *alpn;
	unsigned n;
	int r = stream_handshake(&i->client);

	if (r == 0)
		return false;
	if (r < 0) {
		const char *reason = ERR_reason_error_string(ERR_peek_last_error());
		char why[200];

		snprintf(why, sizeof why, "TLS with the client failed: %s", reason ? reason : "the connection ended");
		intercept_kill(i, why);
		return true;
	}
	/* The hello that was looked at and the one that was answered are the same bytes, but a hello after
	 * a retry is another one. */
	sni = SSL_get_servername(i->client.ssl, TLSEXT_NAMETYPE_host_name);
	SSL_get0_alpn_selected(i->client.ssl, &alpn, &n);
	if (!sni || net_name_canonical(sni, strlen(sni), name, NULL) || strcmp(name, i->name) || i->up_h2 != (n == 2))
		intercept_kill(i, "the client changed its mind within the handshake");
	else
		open_now(i);
	return true;
}

/* ---- turns ---- */

static bool closing(struct intercept *i)
{
	bool moved = stream_flush(&i->client);

	if (i->client.broken || i->client.deaf) {
		intercept_kill(i, i->why);
		return false;
	}
	if (i->client.out.len)
		return moved;
	/* A socket closed with bytes unread is reset, and what was just sent may be lost with it. */
	stream_end(&i->client);
	i->phase = PH_LINGER;
	i->linger = LINGER_BYTES;
	i->deadline = loop_now(i->loop) + LINGER_MS;
	return true;
}

static bool lingering(struct intercept *i)
{
	stream_discard(&i->client, &i->linger);
	if (i->client.eof || i->client.broken || i->client.hup || !i->linger)
		intercept_kill(i, i->why);
	return false;
}

static bool step(struct intercept *i)
{
	bool moved = false;

	if (i->up == UP_TLS)
		moved = server_handshake(i);
	switch (i->phase) {
	case PH_UPSTREAM:
		if (i->client.hup) {
			intercept_kill(i, "the client left");
		} else if (i->up == UP_OPEN || i->up == UP_FAILED) {
			begin_client_tls(i);
			moved = true;
		}
		return moved;
	case PH_CLIENT_TLS:
		return client_handshake(i) || moved;
	case PH_OPEN:
		return (i->h1 ? exchange_step(i->h1) : h2_step(i->h2)) || moved;
	case PH_CLOSING:
		return closing(i);
	case PH_LINGER:
		return lingering(i);
	case PH_START:
	case PH_DEAD:
	default:
		return false;
	}
}

static uint64_t due(const struct intercept *i)
{
	uint64_t at = i->last + IDLE_MS;

	if (i->deadline && i->deadline < at)
		at = i->deadline;
	if (i->head_since && i->head_since + HEAD_MS < at)
		at = i->head_since + HEAD_MS;
	return at;
}

static void set_timer(struct intercept *i)
{
	uint64_t at = due(i), now = loop_now(i->loop);

	if (!i->limit.at || at < i->limit.at) /* a later one is set when the earlier fires */
		loop_timer(i->loop, &i->limit, at > now ? at - now : 0);
}

static void on_time(struct timer *t)
{
	struct intercept *i = LOOP_OF(t, struct intercept, limit);
	uint64_t now = loop_now(i->loop);

	if (due(i) > now) {
		set_timer(i);
		return;
	}
	if (i->deadline && i->deadline <= now) {
		if (i->up == UP_DIALLING || i->up == UP_TLS) {
			upstream_failed(i, "the server did not answer in time");
			pump(i);
			return;
		}
		intercept_kill(i, i->phase == PH_CLIENT_TLS ? "the client's handshake took too long" : i->why);
	} else if (i->head_since && i->head_since + HEAD_MS <= now) {
		intercept_kill(i, "a request's head took too long");
	} else {
		intercept_kill(i, "nothing was said for too long");
	}
}

static void pump_again(void *arg)
{
	struct intercept *i = arg;

	i->deferred = false;
	if (i->phase != PH_DEAD)
		pump(i);
}

static void watch_both(struct intercept *i)
{
	stream_watch(&i->client, i->phase != PH_UPSTREAM && i->phase != PH_START);
	/* What a server says before the client is there waits. */
	stream_watch(&i->server, i->up == UP_TLS || (i->up == UP_OPEN && i->phase == PH_OPEN));
}

static void pump(struct intercept *i)
{
	int rounds = 0;

	if (i->pumping) {
		i->again = true;
		return;
	}
	i->pumping = true;
	do {
		i->again = false;
		if (step(i)) {
			i->again = true;
			i->last = loop_now(i->loop);
		}
	} while (i->again && i->phase != PH_DEAD && ++rounds < ROUNDS);
	i->pumping = false;
	if (i->phase == PH_DEAD)
		return;
	if (i->again && !i->deferred) {
		i->deferred = true;
		loop_defer(i->loop, pump_again, i);
	}
	watch_both(i);
	set_timer(i);
}

static void start(void *arg)
{
	struct intercept *i = arg;

	if (i->phase == PH_DEAD)
		return;
	if (i->ca) {
		i->phase = PH_UPSTREAM;
		intercept_want_upstream(i);
		if (i->phase == PH_DEAD)
			return;
	} else {
		open_now(i);
	}
	pump(i);
}

struct intercept *intercept_new(const struct intercept_opts *o)
{
	struct intercept *i = cs_new(struct intercept);

	i->loop = o->loop;
	i->name = cs_strdup(o->name);
	i->port = o->port;
	i->ca = o->ca;
	i->verify = o->upstream;
	if (o->hello)
		i->hello = *o->hello;
	i->owner = o->owner;
	i->carry = (struct carry){ .name = i->name, .port = o->port, .n_secrets = o->n_secrets };
	if (o->n_secrets) {
		/* The secrets live on, but the array may go when `closed` is called, and we a little later. */
		i->secrets = cs_calloc(o->n_secrets, sizeof(struct secret *));
		memcpy(i->secrets, o->secrets, o->n_secrets * sizeof(struct secret *));
		i->carry.secrets = i->secrets;
		if (edge_checks(EDGE_CHECK_mask))
			i->carry.heads = mask_new(i->secrets, o->n_secrets);
	}
	i->limit.fire = on_time;
	i->last = loop_now(i->loop);
	i->server.fd = -1;
	stream_open(&i->client, i->loop, o->client, on_client);
	/* Not from within here: the owner has no pointer to us yet. */
	loop_defer(i->loop, start, i);
	return i;
}

SSL_CTX *intercept_upstream_context(const char *ca_file, struct cs_err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	bool ok;

	if (!ctx) {
		cs_fail(err, CS_E_SYSTEM, 0, "no TLS context");
		return NULL;
	}
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	ok = SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) &&
	     (ca_file ? SSL_CTX_load_verify_file(ctx, ca_file) : SSL_CTX_set_default_verify_paths(ctx));
	if (!ok) {
		SSL_CTX_free(ctx);
		cs_fail(err, CS_E_INVALID, 0, "certificates to verify servers with cannot be read from '%s'", ca_file ? ca_file : "the system");
		return NULL;
	}
	return ctx;
}
