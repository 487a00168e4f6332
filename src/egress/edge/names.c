/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - names and the addresses that stand for them.
 *
 * A name keeps its address for as long as its sandbox lives, and no two share
 * one, so an address says which name was meant.  Where numbers begin is chosen
 * anew in each process: an address that a program kept from an earlier one stands
 * for nobody, and not for somebody else. */
#include "egress/edge/edge.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { SPACE4 = 1 << 17, RESERVED = 16 }; /* addresses in the range; the first few are loopback's own */

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;

	while (*s)
		h = (h ^ (uint8_t)*s++) * 16777619u;
	return h;
}

static void grow(struct hosts *h)
{
	size_t n = h->n_buckets ? h->n_buckets * 2 : 64;
	struct host **b = cs_calloc(n, sizeof *b);

	for (size_t i = 0; i < h->n_buckets; i++)
		for (struct host *e = h->buckets[i], *next; e; e = next) {
			size_t at = hash(e->name) & (n - 1);

			next = e->next;
			e->next = b[at];
			b[at] = e;
		}
	free(h->buckets);
	h->buckets = b;
	h->n_buckets = n;
}

static struct host *hosts_find(const struct hosts *h, const char *name)
{
	if (!h->n_buckets)
		return NULL;
	for (struct host *e = h->buckets[hash(name) & (h->n_buckets - 1)]; e; e = e->next)
		if (!strcmp(e->name, name))
			return e;
	return NULL;
}

static void give_index(struct hosts *h, struct host *e)
{
	if (!h->first) {
		if (getrandom(&h->first, sizeof h->first, 0) != sizeof h->first)
			abort();
		h->first = RESERVED + h->first % (SPACE4 - EDGE_NAMES_MAX - RESERVED);
	}
	if (h->n_index == h->room_index) {
		h->room_index = h->room_index ? h->room_index * 2 : 64;
		h->by_index = realloc(h->by_index, h->room_index * sizeof(struct host *)); /* NOLINT(bugprone-suspicious-realloc-usage) */
		if (!h->by_index)
			abort();
	}
	e->index = h->first + (uint32_t)h->n_index;
	h->by_index[h->n_index++] = e;
}

struct host *hosts_get(struct hosts *h, const char *name, bool with_address)
{
	struct host *e = hosts_find(h, name);
	size_t at, len = strlen(name);

	if (!e) {
		if (h->n >= EDGE_NAMES_MAX)
			return NULL;
		if (h->n >= h->n_buckets)
			grow(h);
		e = cs_calloc(1, sizeof *e + len + 1);
		memcpy(e->name, name, len + 1);
		at = hash(name) & (h->n_buckets - 1);
		e->next = h->buckets[at];
		h->buckets[at] = e;
		h->n++;
	}
	if (with_address && !e->index)
		give_index(h, e);
	return e;
}

static struct net_addr base(int family)
{
	struct net_addr a = { 0 };

	(void)net_addr_parse(family == 4 ? EGRESS_NET4 : EGRESS_NET6, &a); /* constants */
	return a;
}

struct net_addr hosts_addr(const struct host *host, int family)
{
	struct net_addr a = base(family);
	size_t low = family == 4 ? 0 : 12;

	for (int i = 0; i < 4; i++)
		a.b[low + (size_t)i] |= (uint8_t)(host->index >> (24 - 8 * i));
	return a;
}

bool hosts_is_ours(const struct net_addr *a)
{
	struct net_addr net = base(a->family);

	return net_addr_within(a, &net, a->family == 4 ? EGRESS_BITS4 : EGRESS_BITS6);
}

struct host *hosts_by_addr(const struct hosts *h, const struct net_addr *a)
{
	size_t low = a->family == 4 ? 0 : 12;
	struct net_addr net = base(a->family);
	uint32_t v = 0;

	if (!hosts_is_ours(a))
		return NULL;
	for (size_t i = 0; i < 4; i++)
		v = v << 8 | (uint8_t)(a->b[low + i] ^ (a->family == 4 ? net.b[i] : 0));
	for (size_t i = 8; a->family == 6 && i < 12; i++)
		if (a->b[i])
			return NULL;
	return v >= h->first && v - h->first < h->n_index ? h->by_index[v - h->first] : NULL;
}

void hosts_done(struct hosts *h)
{
	for (size_t i = 0; i < h->n_buckets; i++)
		for (struct host *e = h->buckets[i], *next; e; e = next) {
			next = e->next;
			free(e);
		}
	free(h->buckets);
	free(h->by_index);
	*h = (struct hosts){ 0 };
}
