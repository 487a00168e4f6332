/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - finds the name in a ClientHello (RFC 8446 4.1.2, RFC 6066 3, RFC 7301).
 *
 *   record      type 22, version 3.x, length 1-16384, fragment
 *   handshake   type 1, length (3 bytes), body; over as many records as it likes
 *   body        version, random 32, session id <=32, ciphers, compressions, extensions
 *   extension   type, length, data; each type once
 *
 * The server reads the same bytes and must come to the same name, or a program
 * could show us one and the server another.  So whatever a strict server would
 * refuse, and whatever two servers might read differently, is HELLO_BAD: lengths
 * that do not meet exactly, an extension twice, two names, a name that needs
 * interpretation.  What follows in later records (early data) is not ours. */
#include "egress/edge/hello.h"

#include <string.h>

enum {
	RECORD_HEADER = 5,
	RECORD_MAX = 16384,
	HANDSHAKE = 22,
	CLIENT_HELLO = 1,
	EXT_SERVER_NAME = 0,
	EXT_ALPN = 16,
	EXT_ECH_FIRST = 0xfe08, /* drafts; 0xfe0d is the one that became the standard */
	EXT_ECH = 0xfe0d,
	EXT_ESNI = 0xffce,
};

/* Bytes that are left to read.  Reading past them gives zeros and sets bad. */
struct part {
	const uint8_t *p;
	size_t n;
	bool bad;
};

static struct part take(struct part *from, size_t n)
{
	struct part got = { from->p, n, false };

	if (from->bad || n > from->n) {
		from->bad = true;
		from->n = 0;
		return (struct part){ from->p, 0, true };
	}
	from->p += n;
	from->n -= n;
	return got;
}

/* A number of `bytes` bytes. */
static size_t number(struct part *from, size_t bytes)
{
	struct part got = take(from, bytes);
	size_t v = 0;

	for (size_t i = 0; i < got.n; i++)
		v = v << 8 | got.p[i];
	return v;
}

/* A vector with a length of `bytes` bytes before it. */
static struct part vector(struct part *from, size_t bytes)
{
	return take(from, number(from, bytes));
}

static const char *read_server_name(struct part ext, struct hello *h)
{
	struct part list = vector(&ext, 2), name;
	size_t type;

	if (list.bad || ext.n)
		return "the server name extension has wrong lengths";
	type = number(&list, 1);
	name = vector(&list, 2);
	if (name.bad)
		return "the server name extension has wrong lengths";
	if (type != 0)
		return "the server name is not a host name";
	if (list.n)
		return "there is more than one server name";
	/* RFC 6066 has no trailing dot here; servers differ in whether it is another name. */
	if (name.n == 0 || name.p[name.n - 1] == '.' || net_name_canonical((const char *)name.p, name.n, h->name, NULL) < 0)
		return "the server name is not a name";
	h->has_name = true;
	return NULL;
}

static bool is(const struct part *p, const char *text)
{
	return p->n == strlen(text) && !memcmp(p->p, text, p->n);
}

static const char *read_alpn(struct part ext, struct hello *h)
{
	struct part list = vector(&ext, 2);

	if (list.bad || ext.n || list.n == 0)
		return "the ALPN extension has wrong lengths";
	while (list.n) {
		struct part proto = vector(&list, 1);

		if (proto.bad || proto.n == 0)
			return "the ALPN extension has wrong lengths";
		h->h2 |= is(&proto, "h2");
		h->http11 |= is(&proto, "http/1.1");
	}
	h->alpn = true;
	return NULL;
}

static const char *read_extensions(struct part all, struct hello *h)
{
	uint8_t seen[65536 / 8] = { 0 };
	const char *why = NULL;

	while (all.n && !why) {
		size_t type = number(&all, 2);
		struct part ext = vector(&all, 2);

		if (ext.bad)
			return "an extension has a wrong length";
		if (seen[type / 8] & 1 << type % 8)
			return "an extension is there twice";
		seen[type / 8] |= (uint8_t)(1 << type % 8);
		if (type == EXT_SERVER_NAME)
			why = read_server_name(ext, h);
		else if (type == EXT_ALPN)
			why = read_alpn(ext, h);
		else if ((type >= EXT_ECH_FIRST && type <= EXT_ECH) || type == EXT_ESNI)
			h->ech = true;
	}
	return why;
}

/* NULL, or why it is bad. */
static const char *read_body(struct part body, struct hello *h)
{
	struct part session, ciphers, compressions, extensions;

	if (number(&body, 2) >> 8 != 3)
		return "the version is none of TLS";
	take(&body, 32);
	session = vector(&body, 1);
	ciphers = vector(&body, 2);
	compressions = vector(&body, 1);
	if (body.bad || session.n > 32 || ciphers.n == 0 || ciphers.n % 2 || compressions.n == 0)
		return "the hello has wrong lengths";
	if (body.n == 0)
		return NULL; /* as SSL 3 and some TLS 1.0 clients send it */
	extensions = vector(&body, 2);
	if (extensions.bad || body.n)
		return "the extensions have a wrong length";
	return read_extensions(extensions, h);
}

static enum hello_state bad(struct hello *h, const char *why)
{
	*h = (struct hello){ .why = why };
	return HELLO_BAD;
}

/* The handshake bytes of all records so far.  *ret_whole: as many as the message says it has.
 * Returns HELLO_DONE when it is whole. */
static enum hello_state gather(const uint8_t *p, size_t len, uint8_t all[HELLO_MAX], size_t *ret_whole, const char **why)
{
	size_t n = 0, whole = 0;

	for (;;) {
		size_t fragment, here;

		if (len > 0 && p[0] != HANDSHAKE)
			return *why = "another record is amid the hello", n ? HELLO_BAD : HELLO_NOT_TLS;
		if (len > 1 && p[1] != 3)
			return *why = "a record is of no version of TLS", n ? HELLO_BAD : HELLO_NOT_TLS;
		if (len > 2 && p[2] > 4)
			return *why = "a record is of no version of TLS", HELLO_BAD;
		if (len < RECORD_HEADER)
			return HELLO_MORE;
		fragment = (size_t)p[3] << 8 | p[4];
		if (fragment == 0 || fragment > RECORD_MAX)
			return *why = "a record is empty or too long", HELLO_BAD;
		p += RECORD_HEADER;
		len -= RECORD_HEADER;
		here = fragment < len ? fragment : len;
		if (n + here > HELLO_MAX)
			return *why = "the hello is too long", HELLO_BAD;
		memcpy(all + n, p, here);
		n += here;
		if (n > 0 && all[0] != CLIENT_HELLO)
			return *why = "the first message is not a hello", HELLO_BAD;
		if (n >= 4)
			whole = 4 + ((size_t)all[1] << 16 | (size_t)all[2] << 8 | all[3]);
		if (whole > HELLO_MAX)
			return *why = "the hello is too long", HELLO_BAD;
		/* Nothing can come after it before the server has spoken: a second hello least of all. */
		if (whole && n + (fragment - here) > whole)
			return *why = "something follows the hello in its record", HELLO_BAD;
		if (whole && n == whole)
			return *ret_whole = whole, HELLO_DONE;
		if (here < fragment)
			return HELLO_MORE;
		p += here;
		len -= here;
	}
}

enum hello_state hello_parse(const uint8_t *bytes, size_t len, struct hello *ret)
{
	uint8_t all[HELLO_MAX];
	enum hello_state s;
	size_t whole = 0;
	const char *why = NULL;

	*ret = (struct hello){ 0 };
	s = gather(bytes, len, all, &whole, &why);
	if (s == HELLO_BAD)
		return bad(ret, why);
	if (s != HELLO_DONE)
		return s;
	why = read_body((struct part){ all + 4, whole - 4, false }, ret);
	return why ? bad(ret, why) : HELLO_DONE;
}
