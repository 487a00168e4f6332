/* SPDX-License-Identifier: Apache-2.0 */
/* conn.c - a connection from inside: whose it is, whether it may, where it goes.
 *
 * The address that was connected to says which name was meant.  The name is looked
 * up by us, each address is judged, and the one that was judged is the one that is
 * connected to: nothing is looked up twice.  Then bytes are passed on as they are, or
 * (intercept.h) read as HTTP. */
#include "egress/edge/edge.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HELLO_MS = 10000, CONNECT_MS = 8000, DRAIN_MS = 1000, ACCEPTS = 64 };

enum conn_state { CONN_HELLO, CONN_DIAL, CONN_PAIR, CONN_INTERCEPT, CONN_DRAIN, CONN_DEAD };

struct conn {
	struct box *box;
	struct conn *next, **prev;
	enum conn_state state;
	struct host *host;
	bool literal;           /* an address that a rule names, and no name */
	struct net_addr dest;   /* as the program sees it */
	uint16_t port;
	enum net_proto proto;
	char rule[128];
	struct hello hello;
	int client;             /* ours until it is handed on */
	bool low;               /* it wakes us only when there is much to read */
	struct watch watch;     /* of the client, while we read from it */
	struct watch server;    /* while it connects */
	struct timer timer;
	struct waiting *waiting;
	struct net_addr addrs[EDGE_ADDRS_MAX];
	size_t n_addrs, next_addr;
	uint16_t dial_port;
	struct net_addr at;     /* connected to */
	int error;              /* errno of the last that could not be */
	struct pair *pair;
	struct intercept *intercept;
	const struct secret **secrets;
	struct use use;
	uint64_t started;
};

/* "api.example.com:443", "[2001:db8::1]:443" */
static const char *label(const struct conn *c, char ret[NET_NAME_MAX + 16])
{
	bool six = c->literal && c->dest.family == 6;

	snprintf(ret, NET_NAME_MAX + 16, "%s%.253s%s:%u", six ? "[" : "", c->host->name, six ? "]" : "", c->port);
	return ret;
}

/* ---- the end ---- */

static void free_conn(void *arg)
{
	struct conn *c = arg;

	free(c->secrets);
	free(c);
}

static void end(struct conn *c, const char *why)
{
	struct box *b = c->box;
	uint64_t ms = loop_now(b->edge->loop) - c->started;
	struct event e = { .what = "close", .name = c->host->name, .port = c->port, .addr = &c->at, .rule = c->rule, .reason = why,
			   .bytes_in = &c->use.bytes_in, .bytes_out = &c->use.bytes_out, .ms = &ms };

	if (c->state == CONN_DEAD)
		return;
	if (c->at.family)
		tell_event(b, &e);
	c->state = CONN_DEAD;
	loop_unwatch(b->edge->loop, &c->watch);
	if (c->server.fd >= 0) {
		int fd = c->server.fd;

		loop_unwatch(b->edge->loop, &c->server);
		close(fd);
	}
	loop_untimer(b->edge->loop, &c->timer);
	resolve_cancel(c->waiting);
	c->waiting = NULL;
	reset_and_close(c->client);
	c->client = -1;
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	b->n_conns--;
	loop_defer(b->edge->loop, free_conn, c);
}

static void on_drain(struct watch *w, uint32_t events)
{
	struct conn *c = LOOP_OF(w, struct conn, watch);
	char waste[4096];
	ssize_t n;

	(void)events;
	while ((n = recv(c->client, waste, sizeof waste, MSG_DONTWAIT)) > 0)
		;
	if (n < 0 && errno == EAGAIN)
		return;
	end(c, NULL);
}

/* A last word, then nothing more: what the client still says is read away, or the word would be lost. */
static void end_with(struct conn *c, const void *word, size_t len)
{
	struct loop *l = c->box->edge->loop;

	(void)setsockopt(c->client, SOL_SOCKET, SO_RCVLOWAT, &(int){ 1 }, sizeof(int));
	if (send(c->client, word, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 || shutdown(c->client, SHUT_WR) < 0) {
		end(c, NULL);
		return;
	}
	c->state = CONN_DRAIN;
	c->watch.ready = on_drain;
	if (c->watch.fd < 0 && loop_watch(l, &c->watch, c->client, EPOLLIN) < 0) {
		end(c, NULL);
		return;
	}
	loop_timer(l, &c->timer, DRAIN_MS);
}

static void on_time(struct timer *t);

/* Refused: an answer in the protocol that is spoken, if it has one. */
static void say_no(struct conn *c, const char *reason, const char *fix)
{
	static const uint8_t access_denied[] = { 21, 3, 3, 0, 2, 2, 49 }; /* a TLS alert */
	struct cs_buf body CS_BUF_AUTO = CS_BUF(4096), head CS_BUF_AUTO = CS_BUF(8192);
	struct cs_json j;

	if (c->proto == NET_TLS) {
		end_with(c, access_denied, sizeof access_denied);
		return;
	}
	if (c->proto != NET_HTTP) {
		end(c, reason);
		return;
	}
	cs_json_begin(&j, &body, false);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "error", "refused");
	cs_json_str(&j, "by", "caisson");
	cs_json_str(&j, "reason", reason);
	if (fix && *fix)
		cs_json_str(&j, "allow", fix);
	cs_json_end(&j, '}');
	cs_buf_fmt(&head, "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", body.len,
		   cs_buf_text(&body));
	end_with(c, cs_buf_text(&head), head.len);
}

static void refuse(struct conn *c, const char *reason, const char *fix)
{
	char shown[NET_NAME_MAX + 16];

	tell_plain(c->box, EGRESS_CONNECT, label(c, shown), reason, fix);
	say_no(c, reason, fix);
}

static void on_time(struct timer *t)
{
	struct conn *c = LOOP_OF(t, struct conn, timer);

	if (c->state == CONN_DRAIN)
		end(c, NULL);
	else
		refuse(c, c->proto == NET_TLS ? "no TLS greeting came in time" : "nothing came in time", NULL);
}

void conn_cut(struct conn *c, const char *why)
{
	if (c->state == CONN_PAIR)
		pair_cut(c->pair);
	else if (c->state == CONN_INTERCEPT)
		intercept_cut(c->intercept, why);
	else
		end(c, why);
}

void conn_cut_all(struct box *b)
{
	while (b->conns)
		conn_cut(b->conns, "the sandbox has ended");
}

/* ---- passing on ---- */

static bool count(void *arg, uint64_t out, uint64_t in)
{
	struct conn *c = arg;
	char shown[NET_NAME_MAX + 16];
	const char *why = tell_use(c->box, c->host, out, in, 0, 0);

	c->use.bytes_out += out;
	c->use.bytes_in += in;
	if (why)
		tell_plain(c->box, EGRESS_BUDGET, label(c, shown), why, "raise network.budgets in the profile, or --net-budget");
	return !why;
}

static void room(void *arg, uint64_t *ret_out, uint64_t *ret_in)
{
	const struct conn *c = arg;

	tell_room(c->box, c->host, ret_out, ret_in);
}

static void passed(void *arg, const char *why)
{
	struct conn *c = arg;

	c->pair = NULL;
	c->intercept = NULL;
	end(c, why);
}

static void connected(struct conn *c, int fd)
{
	static const int on = 1;
	struct pair_owner owner = { .arg = c, .count = count, .room = room, .closed = passed };
	struct event e = { .what = "connect", .name = c->host->name, .port = c->port, .addr = &c->at, .rule = c->rule };
	int client = c->client;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	tell_event(c->box, &e);
	if (c->state == CONN_INTERCEPT) {
		intercept_dialled(c->intercept, fd, NULL);
		return;
	}
	loop_untimer(c->box->edge->loop, &c->timer);
	loop_unwatch(c->box->edge->loop, &c->watch);
	if (c->low)
		(void)setsockopt(client, SOL_SOCKET, SO_RCVLOWAT, &on, sizeof on);
	c->pair = pair_new(c->box->edge->loop, client, fd, &owner);
	if (!c->pair) {
		close(fd);
		end(c, "out of descriptors");
		return;
	}
	c->client = -1; /* the pair's now */
	c->state = CONN_PAIR;
}

/* ---- dialling ---- */

static void dial_next(struct conn *c);

static void give_up(struct conn *c, const char *why)
{
	struct event e = { .what = "fail", .name = c->host->name, .port = c->port, .reason = why };

	tell_event(c->box, &e);
	if (c->state == CONN_INTERCEPT)
		intercept_dialled(c->intercept, -1, why);
	else
		end(c, why);
}

static void on_server(struct watch *w, uint32_t events)
{
	struct conn *c = LOOP_OF(w, struct conn, server);
	int fd = w->fd, error = 0;
	socklen_t len = sizeof error;

	(void)events;
	loop_unwatch(c->box->edge->loop, w);
	loop_untimer(c->box->edge->loop, &c->timer);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error) {
		c->error = error;
		close(fd);
		dial_next(c);
		return;
	}
	connected(c, fd);
}

static void on_connect_time(struct timer *t)
{
	struct conn *c = LOOP_OF(t, struct conn, timer);
	int fd = c->server.fd;

	loop_unwatch(c->box->edge->loop, &c->server);
	close(fd);
	c->error = ETIMEDOUT;
	dial_next(c);
}

/* Reached, from here on: something goes out, whether it is answered or not. */
static void note_port(struct host *h, uint16_t port)
{
	for (int i = 0; i < h->n_ports; i++)
		if (h->ports[i] == port)
			return;
	if (h->n_ports < sizeof h->ports / sizeof *h->ports)
		h->ports[h->n_ports++] = port;
}

static void dial_next(struct conn *c)
{
	struct loop *l = c->box->edge->loop;
	struct sockaddr_storage ss;
	char why[160];

	while (c->next_addr < c->n_addrs) {
		const struct net_addr *a = &c->addrs[c->next_addr++];
		socklen_t len = sockaddr_make(a, c->dial_port, false, &ss);
		int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0) {
			c->error = errno;
			continue;
		}
		c->at = *a;
		note_port(c->host, c->port);
		/* The second time: on the same host it is there by then.  Who reads HTTP is told later, not while it asks. */
		if (connect(fd, (struct sockaddr *)&ss, len) == 0 ||
		    (errno == EINPROGRESS && c->state != CONN_INTERCEPT && connect(fd, (struct sockaddr *)&ss, len) == 0)) {
			connected(c, fd);
			return;
		}
		if ((errno != EINPROGRESS && errno != EALREADY) || loop_watch(l, &c->server, fd, EPOLLOUT) < 0) {
			c->error = errno;
			close(fd);
			continue;
		}
		c->timer.fire = on_connect_time;
		loop_timer(l, &c->timer, CONNECT_MS);
		return;
	}
	c->at = (struct net_addr){ 0 };
	snprintf(why, sizeof why, "%s", strerror(c->error ? c->error : ENETUNREACH));
	give_up(c, why);
}

/* An address is this host's own if it can be bound to. */
static bool is_own(const struct net_addr *a)
{
	struct sockaddr_storage ss;
	socklen_t len = sockaddr_make(a, 0, false, &ss);
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool own = fd >= 0 && bind(fd, (struct sockaddr *)&ss, len) == 0;

	if (fd >= 0)
		close(fd);
	return own && edge_checks(EDGE_CHECK_own);
}

/* Those of the addresses that may be connected to; the verdict on the last that may not. */
static void judge_addrs(struct conn *c, const struct resolved *r, struct net_verdict *last)
{
	for (size_t i = 0; i < r->n; i++) {
		struct net_verdict v;

		net_judge_address(&c->box->policy, c->host->name, &r->addrs[i], c->port, is_own(&r->addrs[i]), &v);
		if (v.ok || !edge_checks(EDGE_CHECK_address))
			c->addrs[c->n_addrs++] = r->addrs[i];
		else
			*last = v;
	}
}

/* Refused when it was about to be dialled: HTTP that is being read gets its answer as such. */
static void refuse_late(struct conn *c, const struct net_verdict *v)
{
	char shown[NET_NAME_MAX + 16];

	if (c->state != CONN_INTERCEPT) {
		refuse(c, v->reason, v->fix);
		return;
	}
	tell_refused(c->box, EGRESS_CONNECT, label(c, shown), v);
	intercept_dialled(c->intercept, -1, v->reason);
}

static void on_resolved(const struct resolved *r, void *arg)
{
	struct conn *c = arg;
	struct net_verdict v = { 0 };

	c->waiting = NULL;
	if (r->error) {
		give_up(c, r->error == 1 ? "there is no such name" : "the name could not be looked up");
		return;
	}
	judge_addrs(c, r, &v);
	if (c->n_addrs)
		dial_next(c);
	else
		refuse_late(c, &v);
}

static void dial(struct conn *c)
{
	const struct net_host *h = c->literal ? NULL : net_policy_host(&c->box->policy, c->host->name);
	struct waiting *w = NULL;

	c->n_addrs = c->next_addr = 0;
	c->error = 0;
	c->dial_port = c->port;
	if (h) { /* the operator's word, unless another word of theirs denies it */
		struct net_verdict v;

		net_judge_address(&c->box->policy, c->host->name, &h->addr, h->port ? h->port : c->port, false, &v);
		if (!v.ok && v.rule) {
			refuse_late(c, &v);
			return;
		}
	}
	if (h || c->literal) {
		c->addrs[c->n_addrs++] = h ? h->addr : c->dest;
		if (h && h->port)
			c->dial_port = h->port;
		dial_next(c);
		return;
	}
	resolve(c->box->edge->resolver, c->host->name, on_resolved, c, &w);
	if (w)
		c->waiting = w;
}

static void go(struct conn *c)
{
	struct loop *l = c->box->edge->loop;

	c->state = CONN_DIAL;
	loop_untimer(l, &c->timer);
	/* Not looked at until there is somebody to hear it. */
	loop_unwatch(l, &c->watch);
	dial(c);
}

/* ---- HTTP that is read ---- */

static void want_dial(void *arg)
{
	dial(arg);
}

/* A query can hold anything, a token too: it is neither judged nor told. */
static const char *without_query(const char *path)
{
	static char cut[8192];

	snprintf(cut, sizeof cut, "%.*s", (int)strcspn(path, "?"), path);
	return cut;
}

static void judge_request(void *arg, const char *method, const char *full, struct net_verdict *ret)
{
	const char *path = strcspn(full, "?") < 8192 ? without_query(full) : full;
	struct conn *c = arg;
	char what[NET_NAME_MAX + 320];
	const char *why = tell_use(c->box, c->host, 0, 0, 0, 1);

	c->box->totals.requests++;
	net_judge_request(&c->box->policy, c->host->name, c->port, method, path, ret);
	snprintf(what, sizeof what, "%.32s %s%.200s", method, c->host->name, path);
	if (ret->ok && why) {
		*ret = (struct net_verdict){ .fix = "raise network.budgets in the profile, or --net-budget" };
		snprintf(ret->reason, sizeof ret->reason, "%s", why);
		tell_refused(c->box, EGRESS_BUDGET, what, ret);
	} else if (!ret->ok) {
		tell_refused(c->box, EGRESS_REQUEST, what, ret);
	}
}

static void request_done(void *arg, const char *method, const char *path, int status, const char *why, size_t masked)
{
	struct conn *c = arg;
	struct event e = { .what = "request", .name = c->host->name, .port = c->port, .method = method, .path = without_query(path), .status = status, .reason = why };
	char what[NET_NAME_MAX + 320];

	c->box->totals.masked += (uint32_t)masked;
	tell_event(c->box, &e);
	/* Judged requests are told of by judge_request(); these were not for this host, or could be read in two ways. */
	if (why && (status == 400 || status == 405 || status == 417 || status == 421 || status == 431 || status == 501)) {
		snprintf(what, sizeof what, "%.32s %s%.200s", method, c->host->name, without_query(path));
		tell_plain(c->box, EGRESS_REQUEST, what, why, NULL);
	}
}

static void untrusted(void *arg, const char *why, const char *fix)
{
	struct conn *c = arg;
	char shown[NET_NAME_MAX + 16];

	tell_plain(c->box, EGRESS_CONNECT, label(c, shown), why, fix);
}

static size_t collect_secrets(struct conn *c)
{
	size_t n = 0;

	c->secrets = cs_calloc(c->box->n_secrets + 1, sizeof(struct secret *));
	for (size_t i = 0; i < c->box->n_secrets && !c->literal; i++)
		if (secret_is_for(&c->box->secrets[i], c->host->name, c->port))
			c->secrets[n++] = &c->box->secrets[i];
	return n;
}

static bool has_secret(const struct conn *c)
{
	for (size_t i = 0; i < c->box->n_secrets && !c->literal; i++)
		if (secret_is_for(&c->box->secrets[i], c->host->name, c->port))
			return true;
	return false;
}

static void read_http(struct conn *c, bool tls)
{
	struct edge *e = c->box->edge;
	struct intercept_opts o = { .loop = e->loop, .name = c->host->name, .port = c->port, .client = c->client,
				    .owner = { c, want_dial, judge_request, count, request_done, passed, untrusted } };

	if (tls && !c->box->ca) {
		refuse(c, "the boundary has no certificate for this host", NULL);
		return;
	}
	loop_untimer(e->loop, &c->timer);
	loop_unwatch(e->loop, &c->watch);
	(void)setsockopt(c->client, SOL_SOCKET, SO_RCVLOWAT, &(int){ 1 }, sizeof(int));
	if (tls) {
		o.ca = c->box->ca;
		o.hello = &c->hello;
		o.upstream = e->upstream;
		o.n_secrets = collect_secrets(c);
		o.secrets = c->secrets;
	}
	c->state = CONN_INTERCEPT;
	c->client = -1;
	c->intercept = intercept_new(&o);
}

/* ---- the greeting ---- */

static void judge_hello(struct conn *c)
{
	bool named = c->hello.has_name && !strcmp(c->hello.name, c->host->name);
	char why[160];

	if (!c->literal && !named && edge_checks(EDGE_CHECK_sni)) {
		if (c->hello.has_name)
			snprintf(why, sizeof why, "TLS is for '%.48s', but the name that was looked up is '%.48s'", c->hello.name, c->host->name);
		else
			snprintf(why, sizeof why, "TLS does not say which server is meant (no server name)");
		refuse(c, why, NULL);
		return;
	}
	if (c->literal && c->hello.has_name) { /* a rule for an address does not undo a denied name */
		struct net_verdict v;

		net_judge_name(&c->box->policy, c->hello.name, c->port, &v);
		if (!v.ok && v.rule) {
			refuse(c, v.reason, v.fix);
			return;
		}
	}
	if (c->hello.ech && c->box->policy.ech_deny && edge_checks(EDGE_CHECK_ech)) {
		refuse(c, "TLS hides which server is meant (encrypted client hello)", "network.ech: allow in the profile");
		return;
	}
	if (!c->literal && (has_secret(c) || net_policy_has_requests(&c->box->policy, c->host->name, c->port)))
		read_http(c, true);
	else
		go(c);
}

static void on_hello(struct watch *w, uint32_t events)
{
	static uint8_t buf[HELLO_MAX + 4096];
	struct conn *c = LOOP_OF(w, struct conn, watch);
	ssize_t n = recv(c->client, buf, sizeof buf, MSG_PEEK | MSG_DONTWAIT);
	int more;

	(void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		end(c, NULL);
		return;
	}
	switch (hello_parse(buf, (size_t)n, &c->hello)) {
	case HELLO_MORE:
		if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) || n == sizeof buf) {
			end(c, NULL);
			return;
		}
		more = (int)n + 1; /* wake us when there is more than we know */
		(void)setsockopt(c->client, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more);
		c->low = true;
		return;
	case HELLO_DONE:
		judge_hello(c);
		return;
	case HELLO_NOT_TLS:
		refuse(c, "this rule is for TLS, and something else is spoken", "write the rule with /tcp or /http");
		return;
	case HELLO_BAD:
		refuse(c, c->hello.why, NULL);
	}
}

static void begin(struct conn *c)
{
	struct loop *l = c->box->edge->loop;

	if (c->proto == NET_HTTP) {
		read_http(c, false);
		return;
	}
	if (has_secret(c) || net_policy_has_requests(&c->box->policy, c->host->name, c->port))
		c->proto = NET_TLS;
	if (c->proto == NET_TCP) {
		go(c);
		return;
	}
	c->state = CONN_HELLO;
	c->watch.ready = on_hello;
	if (loop_watch(l, &c->watch, c->client, EPOLLIN | EPOLLRDHUP) < 0) {
		end(c, NULL);
		return;
	}
	c->timer.fire = on_time;
	loop_timer(l, &c->timer, HELLO_MS);
}

/* ---- accepting ---- */

static void judge_place(struct conn *c, struct net_verdict *v)
{
	struct net_verdict own;

	if (!c->literal) {
		net_judge_name(&c->box->policy, c->host->name, c->port, v);
		return;
	}
	net_judge_literal(&c->box->policy, &c->dest, c->port, v);
	if (v->ok && is_own(&c->dest)) {
		net_judge_address(&c->box->policy, "", &c->dest, c->port, true, &own);
		if (!own.ok)
			*v = own;
	}
}

static void judge(struct conn *c)
{
	struct net_verdict v;
	const char *why;

	judge_place(c, &v);
	c->proto = v.ok ? v.proto : c->port == 443 ? NET_TLS : c->port == 80 ? NET_HTTP : NET_TCP;
	if (!v.ok) {
		refuse(c, v.reason, v.fix);
		return;
	}
	if (v.rule)
		snprintf(c->rule, sizeof c->rule, "%.127s", v.rule->text);
	c->box->totals.connections++;
	why = tell_use(c->box, c->host, 0, 0, 1, 0);
	if (why) {
		char shown[NET_NAME_MAX + 16];

		tell_plain(c->box, EGRESS_BUDGET, label(c, shown), why, "raise network.budgets in the profile, or --net-budget");
		say_no(c, why, "raise network.budgets in the profile, or --net-budget");
		return;
	}
	if (c->box->n_conns > EDGE_CONNS_MAX) {
		refuse(c, "too many connections are open at once", NULL);
		return;
	}
	begin(c);
}

static void take(struct box *b, int fd)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof ss;
	struct net_addr dest;
	struct host *h;
	struct conn *c;
	uint16_t port;
	bool literal;

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0) {
		reset_and_close(fd);
		return;
	}
	dest = sockaddr_addr(&ss, &port);
	h = box_host_at(b, &dest, &literal);
	if (!h) { /* loopback, or an address that stands for nobody */
		tell_nobody(b, &dest, port);
		reset_and_close(fd);
		return;
	}
	c = cs_new(struct conn);
	c->box = b;
	c->host = h;
	c->literal = literal;
	c->dest = dest;
	c->port = port;
	c->client = fd;
	c->watch.fd = c->server.fd = -1;
	c->server.ready = on_server;
	c->timer.fire = on_time;
	c->started = loop_now(b->edge->loop);
	c->next = b->conns;
	c->prev = &b->conns;
	if (c->next)
		c->next->prev = &c->next;
	b->conns = c;
	b->n_conns++;
	judge(c);
}

void conn_accept(struct listener *l)
{
	for (int i = 0; i < ACCEPTS; i++) {
		int fd = accept4(l->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		take(l->box, fd);
	}
}

/* ---- while it runs ---- */

void conn_judge_again(struct box *b)
{
	for (struct conn *c = b->conns, *next; c; c = next) {
		struct net_verdict v;

		next = c->next;
		if (c->state == CONN_DRAIN)
			continue;
		if (c->literal)
			net_judge_literal(&b->policy, &c->dest, c->port, &v);
		else
			net_judge_name(&b->policy, c->host->name, c->port, &v);
		if (v.ok && !c->literal && c->at.family && !net_policy_host(&b->policy, c->host->name))
			net_judge_address(&b->policy, c->host->name, &c->at, c->port, false, &v);
		if (!v.ok)
			conn_cut(c, "no longer allowed");
	}
}

void conn_each(struct box *b, void (*visit)(const char *host, uint16_t port, const struct net_addr *at, uint64_t in, uint64_t out, uint64_t ms, void *arg),
	       void *arg)
{
	for (const struct conn *c = b->conns; c; c = c->next)
		visit(c->host->name, c->port, &c->at, c->use.bytes_in, c->use.bytes_out, loop_now(b->edge->loop) - c->started, arg);
}
