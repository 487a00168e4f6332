/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - the program's questions for names.
 *
 * An allowed name that exists gets an address of ours; everything else is "no such
 * name" at once: other refusals make some resolvers wait and try again.  Only
 * questions for addresses of allowed names are ever asked outside, and only so many in a
 * second: names are no tunnel. */
#include "egress/edge/edge.h"

#include "base/mem.h"
#include "egress/edge/dns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TTL = 60, BURST = 512, PER_SECOND = 64, STREAMS_MAX = 16, STREAM_MS = 10000 };

/* A question over TCP: one connection, one after another. */
struct stream {
	struct watch watch;
	struct timer timer;
	struct stream *next;
	struct box *box;
	struct ask *ask;        /* that waits, or NULL */
	uint8_t buf[2 + DNS_QUERY_MAX];
	size_t len;
	bool dead;
};

/* A question that waits for an answer from outside. */
struct ask {
	struct ask *next;
	struct box *box;
	struct stream *stream;  /* NULL: over UDP */
	struct sockaddr_in from;
	struct waiting *waiting;
	struct host *host;
	uint8_t msg[DNS_QUERY_MAX];
	size_t len;
};

static void close_stream(struct stream *s);

static void reply(struct box *b, struct stream *s, const struct sockaddr_in *to, const uint8_t *msg, size_t len)
{
	uint8_t framed[2 + DNS_ANSWER_MAX];

	if (!s) {
		(void)sendto(b->udp.fd, msg, len, MSG_DONTWAIT, (const struct sockaddr *)to, sizeof *to); /* lost: it asks again */
		return;
	}
	framed[0] = (uint8_t)(len >> 8);
	framed[1] = (uint8_t)len;
	memcpy(framed + 2, msg, len);
	if (send(s->watch.fd, framed, len + 2, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)len + 2)
		close_stream(s); /* who does not read its answers asks no more */
}

static void answer(struct box *b, struct stream *s, const struct sockaddr_in *to, const struct dns_query *q, int rcode, const struct net_addr *a)
{
	uint8_t msg[DNS_ANSWER_MAX];

	reply(b, s, to, msg, dns_answer(q, rcode, a, a ? 1 : 0, TTL, msg));
}

static void drop_ask(struct box *b, struct ask *a)
{
	struct ask **at = &b->asks;

	while (*at && *at != a)
		at = &(*at)->next;
	if (*at) {
		*at = a->next;
		b->n_asks--;
	}
	if (a->stream)
		a->stream->ask = NULL;
	resolve_cancel(a->waiting);
	free(a);
}

static void answer_host(struct box *b, struct stream *s, const struct sockaddr_in *to, const struct dns_query *q, const struct host *h)
{
	struct net_addr addr = hosts_addr(h, q->type == DNS_A ? 4 : 6);

	answer(b, s, to, q, DNS_NOERROR, &addr);
}

static void resolved(const struct resolved *r, void *arg)
{
	struct ask *a = arg;
	struct stream *s = a->stream;
	struct dns_query q;

	a->waiting = NULL;
	a->stream = NULL;
	if (s)
		s->ask = NULL;
	if (dns_parse_query(a->msg, a->len, &q) == 0) {
		if (r->error)
			answer(a->box, s, &a->from, &q, r->error == 1 ? DNS_NXDOMAIN : DNS_SERVFAIL, NULL);
		else
			answer_host(a->box, s, &a->from, &q, a->host);
	}
	drop_ask(a->box, a);
}

/* Tokens: a burst, then so many in a second. */
static bool may_ask(struct box *b)
{
	uint64_t now = loop_now(b->edge->loop);

	b->lookups_left += (double)(now - b->lookups_at) * PER_SECOND / 1000;
	b->lookups_at = now;
	if (b->lookups_left > BURST)
		b->lookups_left = BURST;
	if (b->lookups_left < 1 && edge_checks(EDGE_CHECK_rate))
		return false;
	b->lookups_left--;
	return true;
}

static void refuse(struct box *b, struct stream *s, const struct sockaddr_in *to, const struct dns_query *q, const char *reason, const char *fix)
{
	tell_plain(b, EGRESS_LOOKUP, q->shown, reason, fix);
	answer(b, s, to, q, DNS_NXDOMAIN, NULL);
}

static const char *type_name(uint16_t type, char *ret, size_t size)
{
	static const struct {
		uint16_t type;
		const char *name;
	} known[] = { { 2, "NS" }, { 5, "CNAME" }, { 6, "SOA" }, { 10, "NULL" }, { 12, "PTR" }, { 15, "MX" }, { 16, "TXT" }, { 33, "SRV" },
		      { 64, "SVCB" }, { 65, "HTTPS" }, { 255, "ANY" } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].type == type)
			return known[i].name;
	snprintf(ret, size, "TYPE%u", type);
	return ret;
}

/* Of an allowed name, something else than its addresses: there is none. */
static void refuse_type(struct box *b, struct stream *s, const struct sockaddr_in *to, const struct dns_query *q)
{
	char type[16], what[NET_NAME_MAX + 16];

	if (q->type != DNS_HTTPS && q->type != DNS_HTTPS - 1) { /* which clients ask for as a matter of course */
		snprintf(what, sizeof what, "%s %s", type_name(q->type, type, sizeof type), q->shown);
		tell_plain(b, EGRESS_LOOKUP, what, "only addresses are looked up (A and AAAA)", NULL);
	}
	answer(b, s, to, q, DNS_NOERROR, NULL);
}

static void ask_outside(struct box *b, struct stream *s, const struct sockaddr_in *from, const struct dns_query *q, struct host *h,
			const uint8_t *msg, size_t len)
{
	struct waiting *w = NULL;
	struct ask *a;

	if (b->n_asks >= EDGE_ASKS_MAX) {
		tell_plain(b, EGRESS_LOOKUP, q->shown, "too many lookups wait for an answer", NULL);
		answer(b, s, from, q, DNS_SERVFAIL, NULL);
		return;
	}
	a = cs_new(struct ask);
	a->box = b;
	a->stream = s;
	a->host = h;
	if (from)
		a->from = *from;
	memcpy(a->msg, msg, len);
	a->len = len;
	a->next = b->asks;
	b->asks = a;
	b->n_asks++;
	if (s)
		s->ask = a;
	resolve(b->edge->resolver, q->name, resolved, a, &w);
	if (w) /* else it was answered at once, and `a` is gone */
		a->waiting = w;
}

static void take_query(struct box *b, struct stream *s, const struct sockaddr_in *from, const uint8_t *msg, size_t len)
{
	struct dns_query q;
	struct net_verdict v;
	struct host *h;
	int rc = dns_parse_query(msg, len, &q);
	struct event e = { .what = "lookup" };

	if (rc < 0)
		return;
	b->totals.lookups++;
	if (rc > 0) {
		tell_plain(b, EGRESS_LOOKUP, "(a question that is none)", "the message is malformed or of a kind that is not answered", NULL);
		answer(b, s, from, &q, rc, NULL);
		return;
	}
	if (!may_ask(b)) {
		tell_plain(b, EGRESS_LOOKUP, "(more lookups)", "too many lookups in a short time", NULL);
		answer(b, s, from, &q, DNS_SERVFAIL, NULL);
		return;
	}
	if (!q.name[0]) {
		refuse(b, s, from, &q, "this is no name that could be reached", NULL);
		return;
	}
	net_judge_lookup(&b->policy, q.name, &v);
	if (!v.ok) {
		refuse(b, s, from, &q, v.reason, v.fix);
		return;
	}
	if (q.class != DNS_IN || (q.type != DNS_A && q.type != DNS_AAAA)) {
		refuse_type(b, s, from, &q);
		return;
	}
	h = hosts_get(&b->hosts, q.name, true);
	if (!h) {
		refuse(b, s, from, &q, "too many different names were looked up", NULL);
		return;
	}
	e.name = q.name;
	e.rule = v.rule ? v.rule->text : NULL;
	tell_event(b, &e);
	if (net_policy_host(&b->policy, q.name))
		answer_host(b, s, from, &q, h);
	else
		ask_outside(b, s, from, &q, h, msg, len);
}

static void on_udp(struct watch *w, uint32_t events)
{
	struct box *b = LOOP_OF(w, struct box, udp);

	(void)events;
	for (int i = 0; i < 32; i++) {
		uint8_t msg[DNS_QUERY_MAX + 1];
		struct sockaddr_in from;
		socklen_t len = sizeof from;
		ssize_t n = recvfrom(w->fd, msg, sizeof msg, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from, &len);

		if (n < 0)
			return;
		if (n > (ssize_t)DNS_QUERY_MAX) {
			b->totals.lookups++;
			tell_plain(b, EGRESS_LOOKUP, "(a question that is none)", "a question of more than 512 bytes", NULL);
			continue;
		}
		take_query(b, NULL, &from, msg, (size_t)n);
	}
}

/* ---- over TCP ---- */

static void free_stream(void *arg)
{
	free(arg);
}

static void close_stream(struct stream *s)
{
	struct stream **at = &s->box->streams;
	int fd = s->watch.fd;

	if (s->dead)
		return;
	s->dead = true;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	s->box->n_streams--;
	loop_unwatch(s->box->edge->loop, &s->watch);
	loop_untimer(s->box->edge->loop, &s->timer);
	close(fd);
	if (s->ask)
		drop_ask(s->box, s->ask);
	loop_defer(s->box->edge->loop, free_stream, s);
}

static void on_stream_time(struct timer *t)
{
	close_stream(LOOP_OF(t, struct stream, timer));
}

static void on_stream(struct watch *w, uint32_t events)
{
	struct stream *s = LOOP_OF(w, struct stream, watch);
	ssize_t n = recv(w->fd, s->buf + s->len, sizeof s->buf - s->len, MSG_DONTWAIT);
	size_t want;

	(void)events;
	if (n == 0 || (n < 0 && errno != EAGAIN) || s->ask /* one at a time */) {
		close_stream(s);
		return;
	}
	s->len += n > 0 ? (size_t)n : 0;
	want = s->len >= 2 ? (size_t)(s->buf[0] << 8 | s->buf[1]) : 0;
	if (s->len >= 2 && want > DNS_QUERY_MAX) {
		close_stream(s);
		return;
	}
	if (s->len < 2 || s->len < want + 2)
		return;
	if (s->len > want + 2) { /* two at once */
		close_stream(s);
		return;
	}
	s->len = 0;
	take_query(s->box, s, NULL, s->buf + 2, want);
}

static void on_tcp(struct watch *w, uint32_t events)
{
	struct box *b = LOOP_OF(w, struct box, tcp);
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct stream *s;

	(void)events;
	if (fd < 0)
		return;
	s = b->n_streams < STREAMS_MAX ? cs_new(struct stream) : NULL;
	if (!s || loop_watch(b->edge->loop, &s->watch, fd, EPOLLIN) < 0) {
		free(s);
		reset_and_close(fd);
		return;
	}
	b->n_streams++;
	s->next = b->streams;
	b->streams = s;
	s->box = b;
	s->watch.ready = on_stream;
	s->timer.fire = on_stream_time;
	loop_timer(b->edge->loop, &s->timer, STREAM_MS);
}

int ask_serve(struct box *b, int udp, int tcp)
{
	b->udp.ready = on_udp;
	b->tcp.ready = on_tcp;
	b->lookups_left = BURST;
	b->lookups_at = loop_now(b->edge->loop);
	return loop_watch(b->edge->loop, &b->udp, udp, EPOLLIN) < 0 || loop_watch(b->edge->loop, &b->tcp, tcp, EPOLLIN) < 0 ? -1 : 0;
}

void ask_end(struct box *b)
{
	int fds[] = { b->udp.fd, b->tcp.fd };

	while (b->streams)
		close_stream(b->streams);
	while (b->asks)
		drop_ask(b, b->asks);
	loop_unwatch(b->edge->loop, &b->udp);
	loop_unwatch(b->edge->loop, &b->tcp);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}
