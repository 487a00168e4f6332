/* SPDX-License-Identifier: Apache-2.0 */
/* tell.c - what is told: events as they happen, refusals and totals at the end.
 *
 * Names, methods and paths are hostile text: refusals are escaped here, and an
 * event is JSON, whose strings hold no byte that acts on a terminal. */
#include "egress/edge/edge.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void add_told(struct box *b, const struct egress_told *t)
{
	for (size_t i = 0; i < b->n_told; i++)
		if (b->told[i].kind == t->kind && !strcmp(b->told[i].what, t->what) && !strcmp(b->told[i].reason, t->reason)) {
			b->told[i].count++;
			return;
		}
	if (b->n_told == EDGE_TOLD_MAX) {
		b->totals.more++;
		return;
	}
	if (!b->told)
		b->told = cs_calloc(EDGE_TOLD_MAX, sizeof *b->told);
	b->told[b->n_told] = *t;
	b->told[b->n_told++].count = 1;
}

void tell_plain(struct box *b, enum egress_kind kind, const char *what, const char *reason, const char *fix)
{
	struct egress_told t = { .kind = kind };
	struct event e = { .what = "refuse", .name = what, .reason = reason };

	b->totals.refused++;
	cs_escape_to(t.what, sizeof t.what, what);
	cs_escape_to(t.reason, sizeof t.reason, reason);
	cs_escape_to(t.fix, sizeof t.fix, fix ? fix : "");
	add_told(b, &t);
	tell_event(b, &e);
}

void tell_refused(struct box *b, enum egress_kind kind, const char *what, const struct net_verdict *v)
{
	tell_plain(b, kind, what, v->reason, v->fix);
}

void tell_place(const struct net_addr *a, uint16_t port, char *ret, size_t size)
{
	char text[64];

	net_addr_format(a, text, sizeof text);
	snprintf(ret, size, a->family == 6 ? "[%s]:%u" : "%s:%u", text, port);
}

void tell_nobody(struct box *b, const struct net_addr *a, uint16_t port)
{
	static const struct net_addr loopback4 = { 4, { 127 } }, loopback6 = { 6, { [15] = 1 } };
	enum net_class c = net_addr_class(a);
	const char *why = "too many different hosts were tried";
	char what[80];

	if (net_addr_within(a, &loopback4, 8) || net_addr_equal(a, &loopback6))
		return;
	if (hosts_is_ours(a))
		why = "this address stands for no name that was looked up";
	else if (c == NET_LOOPBACK || c == NET_UNSPECIFIED)
		why = "this is loopback in a disguise, and loopback is the sandbox's own";
	tell_place(a, port, what, sizeof what);
	tell_plain(b, EGRESS_CONNECT, what, why, NULL);
}

void tell_event(struct box *b, const struct event *e)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(65536);
	struct timespec now;
	struct cs_json j;
	char addr[64];
	long ms;

	if (b->log < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	ms = now.tv_nsec / 1000000;
	cs_json_begin(&j, &text, false);
	cs_json_object(&j, NULL);
	cs_json_num(&j, "time", (double)now.tv_sec + (double)ms / 1000);
	cs_json_str(&j, "sandbox", b->id);
	cs_json_str(&j, "event", e->what);
	if (e->name)
		cs_json_str(&j, "name", e->name);
	if (e->port)
		cs_json_u64(&j, "port", e->port);
	if (e->addr && e->addr->family) {
		net_addr_format(e->addr, addr, sizeof addr);
		cs_json_str(&j, "address", addr);
	}
	if (e->method)
		cs_json_str(&j, "method", e->method);
	if (e->path)
		cs_json_str(&j, "path", e->path);
	if (e->status)
		cs_json_i64(&j, "status", e->status);
	if (e->rule)
		cs_json_str(&j, "rule", e->rule);
	if (e->reason)
		cs_json_str(&j, "reason", e->reason);
	if (e->bytes_out)
		cs_json_u64(&j, "bytes_out", *e->bytes_out);
	if (e->bytes_in)
		cs_json_u64(&j, "bytes_in", *e->bytes_in);
	if (e->ms)
		cs_json_u64(&j, "ms", *e->ms);
	cs_json_end(&j, '}');
	(void)cs_write_all(b->log, cs_buf_text(&text), text.len); /* a full disk must not end the network */
}

static const char *over(const struct profile_budget *limit, const struct use *u, bool host)
{
	if (limit->bytes_out && u->bytes_out > limit->bytes_out)
		return host ? "the host's budget of bytes out is used up" : "the budget of bytes out is used up";
	if (limit->bytes_in && u->bytes_in > limit->bytes_in)
		return host ? "the host's budget of bytes in is used up" : "the budget of bytes in is used up";
	if (limit->connections && u->connections > limit->connections)
		return host ? "the host's budget of connections is used up" : "the budget of connections is used up";
	if (limit->requests && u->requests > limit->requests)
		return host ? "the host's budget of requests is used up" : "the budget of requests is used up";
	return NULL;
}

static void add(struct use *u, uint64_t out, uint64_t in, uint32_t connections, uint32_t requests)
{
	u->bytes_out += out;
	u->bytes_in += in;
	u->connections += connections;
	u->requests += requests;
}

const char *tell_use(struct box *b, struct host *h, uint64_t out, uint64_t in, uint32_t connections, uint32_t requests)
{
	const struct profile_network *n = &b->profile.network;
	const char *why;

	add(&b->use, out, in, connections, requests);
	add(&h->use, out, in, connections, requests);
	why = over(&n->budget, &b->use, false);
	return why ? why : over(&n->per_host, &h->use, true);
}

static uint64_t less(uint64_t room, uint64_t limit, uint64_t used)
{
	uint64_t left = used < limit ? limit - used : 0;

	return limit && left < room ? left : room;
}

void tell_room(const struct box *b, const struct host *h, uint64_t *ret_out, uint64_t *ret_in)
{
	const struct profile_network *n = &b->profile.network;

	*ret_out = less(less(UINT64_MAX, n->budget.bytes_out, b->use.bytes_out), n->per_host.bytes_out, h->use.bytes_out);
	*ret_in = less(less(UINT64_MAX, n->budget.bytes_in, b->use.bytes_in), n->per_host.bytes_in, h->use.bytes_in);
}
