/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hello.c - hostile bytes as the beginning of a connection.  A verdict must not change with more
 * bytes, nor with how they are cut into records. */
#include "egress/edge/hello.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_name(const struct hello *h)
{
	char again[NET_NAME_MAX];
	struct net_addr a;
	struct in_addr in;

	must(h->has_name == (*h->name != 0));
	if (!h->has_name)
		return;
	must(net_name_canonical(h->name, strlen(h->name), again, NULL) == 0 && !strcmp(h->name, again));
	must(net_addr_parse(h->name, &a) < 0 && inet_aton(h->name, &in) == 0);
}

static bool same(const struct hello *a, const struct hello *b)
{
	return a->has_name == b->has_name && !strcmp(a->name, b->name) && a->ech == b->ech && a->h2 == b->h2 &&
	       a->http11 == b->http11 && a->alpn == b->alpn;
}

/* The same handshake bytes, one to a record. */
static void cut_small(const uint8_t *data, size_t size, const struct hello *want)
{
	uint8_t *cut = malloc(size * 6 + 1);
	size_t n = 0, left = 0;
	struct hello h;

	for (size_t at = 5, record = 0; at < size && data[record] == 22; record = at, at += 5) {
		left = (size_t)data[record + 3] << 8 | data[record + 4];
		for (; left && at < size; left--, at++) {
			memcpy(cut + n, "\x16\x03\x03\x00\x01", 5);
			cut[n + 5] = data[at];
			n += 6;
		}
	}
	must(hello_parse(cut, n, &h) == HELLO_DONE && same(&h, want));
	free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hello h, before;
	enum hello_state s = hello_parse(data, size, &h), was;

	check_name(&h);
	must((s == HELLO_BAD) == (h.why != NULL));
	if (s != HELLO_DONE)
		must(!h.has_name && !h.alpn && !h.ech);
	else
		cut_small(data, size, &h);
	/* What was decided with fewer bytes stays. */
	for (size_t n = size > 64 ? size - 64 : 0; n < size; n++) {
		was = hello_parse(data, n, &before);
		must(was == HELLO_MORE || (was == s && same(&before, &h)));
	}
	return 0;
}
