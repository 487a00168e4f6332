/* SPDX-License-Identifier: Apache-2.0 */
/* carry.c - what a request and a response may carry.
 *
 * The same for HTTP/1.1 and HTTP/2, so that neither is a way around the other.
 * Heads come here parsed, and with framing taken out of them.
 */
#include "egress/edge/edge.h"
#include "egress/edge/intercept_internal.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_ipv6(const struct carry *c)
{
	return strchr(c->name, ':');
}

/* name, name. or either with our port; an address of IPv6 in brackets */
static bool is_our_authority(const struct carry *c, const char *text)
{
	size_t n = strlen(c->name);
	bool six = is_ipv6(c);
	char port[8];

	if (!edge_checks(EDGE_CHECK_host))
		return true;
	if ((six && *text++ != '[') || strncasecmp(text, c->name, n) != 0)
		return false;
	text += n;
	if (six && *text != ']')
		return false;
	if (six || *text == '.')
		text++;
	if (!*text)
		return true;
	snprintf(port, sizeof port, "%u", c->port);
	return *text == ':' && !strcmp(text + 1, port);
}

static bool has_port(const char *authority)
{
	const char *end = strchr(authority, ']');

	return strchr(end ? end : authority, ':');
}

static char *own_authority(const struct carry *c, bool port)
{
	const char *a = is_ipv6(c) ? "[" : "", *z = is_ipv6(c) ? "]" : "";

	return port ? cs_printf("%s%s%s:%u", a, c->name, z, c->port) : cs_printf("%s%s%s", a, c->name, z);
}

/* "scheme://authority/path": only HTTP/1.1 has it.  What is left is the path. */
static bool to_origin_form(const struct carry *c, struct head *h, struct refusal *no)
{
	const char *p = strstr(h->target, "://"), *end;
	char *authority, *path;
	bool ours;

	if (!p || (strncasecmp(h->target, "https://", 8) && strncasecmp(h->target, "http://", 7)))
		return refuse(no, 400, "bad_request", "the request's target is not a path");
	p += 3;
	end = p + strcspn(p, "/?");
	authority = cs_strndup(p, (size_t)(end - p));
	ours = is_our_authority(c, authority) && !strcasecmp(authority, h->authority);
	free(authority);
	if (!ours)
		return refuse(no, 421, "misdirected", "this connection is for %s only", c->name);
	path = cs_printf("%s%s", *end == '/' ? "" : "/", end);
	wipe_free(h->target);
	h->target = path;
	return true;
}

static bool check_target(const struct carry *c, struct head *h, struct refusal *no)
{
	if (h->target[0] == '/')
		return true;
	if (!strcmp(h->target, "*") && !strcmp(h->method, "OPTIONS"))
		return true;
	if (h->h2)
		return refuse(no, 400, "bad_request", "the request's target is not a path");
	return to_origin_form(c, h, no);
}

static bool is_hop_only(const char *name)
{
	static const char *const names[] = { "connection", "keep-alive", "te", "trailer", "upgrade", "http2-settings" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return !strncasecmp(name, "proxy-", 6);
}

static bool is_secrets_header(const struct carry *c, const char *name)
{
	for (size_t i = 0; i < c->n_secrets; i++)
		if (!strcasecmp(name, c->secrets[i]->header))
			return true;
	return false;
}

/* What Connection may not take out of a message. */
static bool is_protected(const struct carry *c, const char *name)
{
	static const char *const names[] = { "host", "authorization", "content-length", "transfer-encoding", "content-encoding", "cookie" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return is_secrets_header(c, name);
}

/* Calls fn with each word of a comma-separated list; false as soon as fn says so. */
static bool each_word(const char *list, bool (*fn)(const char *word, void *arg), void *arg)
{
	char word[256];

	while (*list) {
		size_t n = strcspn(list, ","), a = 0, z = n;
		const char *rest = list + n;

		while (a < z && (list[a] == ' ' || list[a] == '\t'))
			a++;
		while (z > a && (list[z - 1] == ' ' || list[z - 1] == '\t'))
			z--;
		if (z - a >= sizeof word)
			return false;
		memcpy(word, list + a, z - a);
		word[z - a] = 0;
		if (word[0] && !fn(word, arg))
			return false;
		list = *rest ? rest + 1 : rest;
	}
	return true;
}

struct named {
	const struct carry *c;
	struct head *h;
	struct cs_strv drop;
};

static bool one_named(const char *word, void *arg)
{
	struct named *n = arg;

	if (!text_is_token(word, strlen(word)) || is_protected(n->c, word))
		return false;
	if (!strcasecmp(word, "close"))
		n->h->close = true;
	if (n->drop.n < 64)
		cs_strv_add(&n->drop, word);
	return n->drop.n < 64;
}

/* Drops what is for one hop, and what Connection says is. */
static bool drop_hop(const struct carry *c, struct head *h)
{
	struct named n = { .c = c, .h = h };
	bool ok = true;

	for (size_t i = 0; ok && i < h->n; i++)
		if (!strcasecmp(h->f[i].name, "connection"))
			ok = each_word(h->f[i].value, one_named, &n);
	for (size_t i = 0; ok && i < n.drop.n; i++)
		head_remove(h, n.drop.v[i]);
	cs_strv_done(&n.drop);
	for (size_t i = h->n; ok && i-- > 0;) {
		const char *name = h->f[i].name;

		/* HTTP/2 keeps `te: trailers`: without it gRPC servers refuse. */
		if (is_hop_only(name) && !(h->h2 && !strcasecmp(name, "te") && !strcasecmp(h->f[i].value, "trailers")))
			head_remove_at(h, i);
	}
	return ok;
}

static bool is_websocket(const char *word, void *arg)
{
	(void)arg;
	return strncasecmp(word, "websocket", 9) != 0;
}

/* An upgraded connection is bytes that nobody here can judge or mask.  An offer of h2c may be ignored
 * (RFC 9110, 7.8) and is; a websocket handshake that is not answered helps nobody, so it is refused. */
static bool check_upgrade(const struct head *h, struct refusal *no)
{
	for (size_t i = 0; i < h->n; i++)
		if (!strcasecmp(h->f[i].name, "upgrade") && !each_word(h->f[i].value, is_websocket, NULL))
			return refuse(no, 501, "not_supported",
				      "websockets are not passed to hosts whose requests are judged or given secrets");
	return true;
}

static bool check_authority(const struct carry *c, struct head *h, struct refusal *no)
{
	char *own;

	if (!h->authority)
		return refuse(no, 400, "bad_request", "the request does not say for which host it is");
	if (!is_our_authority(c, h->authority))
		return refuse(no, 421, "misdirected", "this connection is for %s only", c->name);
	for (size_t i = 0; i < h->n; i++) /* HTTP/2 may have it beside :authority */
		if (!strcasecmp(h->f[i].name, "host") && !is_our_authority(c, h->f[i].value))
			return refuse(no, 421, "misdirected", "this connection is for %s only", c->name);
	own = !edge_checks(EDGE_CHECK_host) ? cs_strdup(h->authority) : own_authority(c, has_port(h->authority));
	/* The absolute form is compared with what was sent, before it is brought into ours. */
	if (!check_target(c, h, no)) {
		free(own);
		return false;
	}
	wipe_free(h->authority);
	h->authority = own;
	return true;
}

static bool is_not_close(const char *word, void *arg)
{
	(void)arg;
	return strcasecmp(word, "close") != 0;
}

bool carry_request(const struct carry *c, struct head *h, struct refusal *no)
{
	const char *expect = head_get(h, "expect");

	/* Whatever comes of it: who will not ask again waits for the end. */
	for (size_t i = 0; i < h->n; i++)
		h->close |= !strcasecmp(h->f[i].name, "connection") && !each_word(h->f[i].value, is_not_close, NULL);

	if (strlen(h->method) > METHOD_MAX || !text_is_token(h->method, strlen(h->method)))
		return refuse(no, 400, "bad_request", "the request's method is not one");
	/* TRACE would have the server repeat what we put in. */
	if (!strcmp(h->method, "CONNECT") || !strcmp(h->method, "TRACE"))
		return refuse(no, 405, "not_supported", "%s is not passed on", h->method);
	if (!text_is_target(h->target, strlen(h->target)))
		return refuse(no, 400, "bad_request", "the request's target holds bytes that it may not");
	if (!check_authority(c, h, no) || !check_upgrade(h, no))
		return false;
	if (expect && strcasecmp(expect, "100-continue"))
		return refuse(no, 417, "bad_request", "an unknown expectation");
	h->expect = expect && !h->http10;
	if (!drop_hop(c, h))
		return refuse(no, 400, "bad_request", "Connection names a header that it may not");
	head_remove(h, "host");
	if (!h->expect)
		head_remove(h, "expect");
	return true;
}

/* Is an earlier secret already in this header? */
static bool is_taken(const struct carry *c, size_t upto, const char *header)
{
	for (size_t i = 0; i < upto; i++)
		if (!strcasecmp(c->secrets[i]->header, header))
			return true;
	return false;
}

bool carry_secrets(const struct carry *c, struct head *h, struct refusal *no)
{
	char **values;
	bool ok = true;

	if (!c->n_secrets)
		return true;
	/* All from what was sent: one secret's value is never another's input. */
	values = cs_calloc(c->n_secrets, sizeof *values);
	for (size_t i = 0; i < c->n_secrets; i++) {
		const struct secret *s = c->secrets[i];
		const char *sent = head_get(h, s->header);

		/* Two for one header: the one that was asked for by its placeholder, else the first. */
		if (!is_taken(c, i, s->header) || (sent && strstr(sent, s->placeholder)))
			values[i] = secret_header(s, sent);
	}
	for (size_t i = 0; i < c->n_secrets; i++)
		if (values[i]) {
			ok = ok && text_is_value(values[i], strlen(values[i])) && head_set(h, c->secrets[i]->header, values[i]);
			wipe_free(values[i]);
		}
	free(values);
	/* What is compressed cannot be masked, nor what comes in parts over several answers. */
	ok = ok && head_set(h, "Accept-Encoding", "identity");
	head_remove(h, "range");
	head_remove(h, "if-range");
	return ok || refuse(no, 431, "bad_request", "the request's head is too large to add a secret");
}

static bool is_identity(const char *word, void *arg)
{
	(void)arg;
	return !strcasecmp(word, "identity");
}

static bool is_encoded(const struct head *h)
{
	for (size_t i = 0; i < h->n; i++)
		if (!strcasecmp(h->f[i].name, "content-encoding") && !each_word(h->f[i].value, is_identity, NULL))
			return true;
	return false;
}

bool carry_response(const struct carry *c, struct head *h, bool body, size_t *masked, struct refusal *no)
{
	if (!drop_hop(c, h))
		return refuse(no, 502, "bad_response", "the server's Connection names a header that it may not");
	head_remove(h, "alt-svc"); /* leads to where nobody listens */
	if (!c->heads)
		return true;
	if (body && is_encoded(h))
		return refuse(no, 502, "bad_response", "the server sent encoded content, in which secrets cannot be found");
	if (h->reason)
		*masked += mask_text(c->heads, h->reason, strlen(h->reason));
	for (size_t i = 0; i < h->n; i++) {
		*masked += mask_text(c->heads, h->f[i].name, strlen(h->f[i].name));
		*masked += mask_text(c->heads, h->f[i].value, strlen(h->f[i].value));
	}
	return true;
}

/* ---- bodies ---- */

enum { PIECE_MAX = 16 * 1024, FORM_MAX = 16 }; /* bytes of the longest form, for each of the value's */

struct mask *masks_get(struct masks *p, const struct carry *c)
{
	size_t longest = 0;

	if (!c->heads)
		return NULL;
	for (size_t i = 0; i < c->n_secrets; i++)
		if (c->secrets[i]->value_len > longest)
			longest = c->secrets[i]->value_len;
	if (!p->clean.data) {
		p->clean.max = PIECE_MAX + longest * FORM_MAX + 1024;
		p->clean.cap = p->clean.max + 1;
		p->clean.data = cs_calloc(p->clean.cap, 1);
	}
	return p->n ? p->spare[--p->n] : mask_new(c->secrets, c->n_secrets);
}

void masks_put(struct masks *p, struct mask *m, bool ended)
{
	if (m && ended && p->n < sizeof p->spare / sizeof *p->spare)
		p->spare[p->n++] = m;
	else
		mask_free(m);
}

void masks_done(struct masks *p)
{
	while (p->n)
		mask_free(p->spare[--p->n]);
	if (p->clean.data)
		OPENSSL_cleanse(p->clean.data, p->clean.cap);
	cs_buf_done(&p->clean);
}

bool masks_feed(struct masks *p, struct mask *m, const void *data, size_t n, bool last, size_t *masked)
{
	p->clean.len = 0;
	p->clean.over = false;
	*masked += mask_feed(m, data, n, last, &p->clean);
	return !p->clean.over;
}
