/* SPDX-License-Identifier: Apache-2.0 */
/* box.c - one sandbox's network: its policy, its listeners, its end. */
#include "egress/edge/edge.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LISTENERS_MAX = 512 };

/* ---- policy ---- */

int box_remake_policy(struct box *b, struct cs_err *err)
{
	const struct profile_network *n = &b->profile.network;
	struct net_policy p = { .ech_deny = n->ech_deny, .learn = b->policy.learn };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n->allow.n; i++)
		r = net_policy_add(&p, n->allow.v[i], false, err);
	for (size_t i = 0; r == 0 && i < n->deny.n; i++)
		r = net_policy_add(&p, n->deny.v[i], true, err);
	for (size_t i = 0; r == 0 && i < n->hosts.n; i++)
		r = net_policy_add_host(&p, n->hosts.v[i], err);
	if (r < 0) {
		net_policy_done(&p);
		return r;
	}
	net_policy_done(&b->policy);
	b->policy = p;
	return 0;
}

static bool needs_ca(const struct box *b)
{
	for (size_t i = 0; i < b->policy.n_allow; i++)
		if (net_rule_reads_tls(&b->policy.allow[i]))
			return true;
	for (size_t i = 0; i < b->policy.n_deny; i++)
		if (net_rule_reads_tls(&b->policy.deny[i]))
			return true;
	return b->n_secrets > 0;
}

static const char *placeholder_of(const char *text, size_t len, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = text; at < text + len; at += strlen(at) + 1)
		if (!strncmp(at, name, n) && at[n] == '=')
			return at + n + 1;
	return NULL;
}

static int load_secrets(struct box *b, const char *text, size_t len, struct cs_err *err)
{
	const struct profile_network *n = &b->profile.network;

	b->secrets = cs_calloc(n->n_secrets + 1, sizeof *b->secrets);
	for (size_t i = 0; i < n->n_secrets; i++) {
		const char *p = placeholder_of(text, len, n->secrets[i].name);
		int r = p ? secret_load(&n->secrets[i], p, &b->secrets[i], err) : cs_fail(err, CS_E_INVALID, 0, "a secret without a placeholder");

		if (r < 0)
			return r;
		b->n_secrets++;
	}
	return 0;
}

static int read_profile(struct box *b, int fd, struct cs_err *err)
{
	struct cs_buf yaml CS_BUF_AUTO = CS_BUF(1 << 20);
	int r = cs_buf_read_fd(&yaml, fd, "the profile", err);

	return r < 0 ? r : profile_load_text(cs_buf_text(&yaml), yaml.len, "profile", &b->profile, err);
}

int box_open(struct edge *e, uint32_t number, const char *text, size_t len, int take_yaml, int take_log, bool learn, struct box **ret,
	     struct cs_err *err)
{
	struct box *b = cs_new(struct box);
	size_t id = strnlen(text, len);
	int r;

	b->edge = e;
	b->number = number;
	b->log = take_log;
	b->netns = -1;
	b->yaml = take_yaml;
	b->udp.fd = b->tcp.fd = b->control.fd = -1;
	b->policy.learn = learn;
	snprintf(b->id, sizeof b->id, "%.*s", (int)id, text);
	b->next = e->boxes;
	e->boxes = b;
	r = read_profile(b, b->yaml, err);
	if (r == 0)
		r = box_remake_policy(b, err);
	if (r == 0)
		r = load_secrets(b, id < len ? text + id + 1 : text + len, id < len ? len - id - 1 : 0, err);
	if (r == 0 && needs_ca(b))
		r = ca_new(b->id, &b->ca, err);
	/* Now, while whom to trust can be read wherever it is. */
	if (r == 0 && b->ca && !e->upstream && !(e->upstream = intercept_upstream_context(NULL, err)))
		r = -CS_E_SYSTEM;
	if (r == 0)
		r = publish_open(b, err);
	if (r < 0) {
		box_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

/* ---- listeners ---- */

static void on_listener(struct watch *w, uint32_t events)
{
	(void)events;
	conn_accept(LOOP_OF(w, struct listener, watch));
}

static void free_listener(struct box *b, struct listener *l)
{
	int fd = l->watch.fd;

	loop_unwatch(b->edge->loop, &l->watch);
	close(fd);
	free(l);
}

static int add_listener(struct box *b, int take_fd, const struct net_addr *addr, uint16_t port)
{
	struct listener *l = cs_new(struct listener);

	(void)setsockopt(take_fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)); /* what it accepts inherits it */
	l->box = b;
	l->port = port;
	if (addr)
		l->addr = *addr;
	l->watch.ready = on_listener;
	if (loop_watch(b->edge->loop, &l->watch, take_fd, EPOLLIN) < 0) {
		free(l);
		close(take_fd);
		return -1;
	}
	l->next = b->listeners;
	b->listeners = l;
	return 0;
}

int box_serve(struct box *b, int take_control, const int *take_fds, size_t n, struct cs_err *err)
{
	if (b->netns >= 0 || n < 3)
		return cs_fail(err, CS_E_INVALID, 0, "the network of a sandbox comes once, and with three sockets at least");
	b->netns = take_fds[0];
	if (take_control >= 0 && control_serve(b, take_control) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "watch the control socket");
	if (ask_serve(b, take_fds[1], take_fds[2]) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "watch the resolver's sockets");
	for (size_t i = 3; i < n; i++) {
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof ss;
		uint16_t port;

		if (getsockname(take_fds[i], (struct sockaddr *)&ss, &len) < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "a listener that is none");
		(void)sockaddr_addr(&ss, &port);
		if (add_listener(b, take_fds[i], NULL, port) < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "watch a listener");
	}
	return 0;
}

bool box_has_listener(const struct box *b, const struct net_addr *a, uint16_t port)
{
	for (const struct listener *l = b->listeners; l; l = l->next)
		if (l->port == port && (!l->addr.family || net_addr_equal(&l->addr, a)))
			return true;
	return false;
}

struct host *box_host_at(struct box *b, const struct net_addr *a, bool *ret_literal)
{
	char text[64];

	*ret_literal = false;
	if (hosts_is_ours(a))
		return hosts_by_addr(&b->hosts, a);
	if (net_addr_class(a) == NET_LOOPBACK || net_addr_class(a) == NET_UNSPECIFIED) {
		/* Loopback is the sandbox's own; what a rule says of it is meant for the host's, which nobody
		 * can name from inside. */
		return NULL;
	}
	*ret_literal = true;
	net_addr_format(a, text, sizeof text);
	return hosts_get(&b->hosts, text, false);
}

static int listen_at(struct box *b, const struct net_addr *a, uint16_t port, struct cs_err *err)
{
	int fd = box_socket_at(b, a, port);

	if (fd < 0 || listen(fd, SOMAXCONN) < 0) {
		int sys = errno;

		cs_close_p(&fd);
		return cs_fail(err, CS_E_SYSTEM, sys, "listen on port %u inside", port);
	}
	return add_listener(b, fd, a, port) < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "watch a listener") : 0;
}

/* At the most there may be, the one that was made first goes; who connects there again has a new one. */
static void drop_oldest(struct box *b)
{
	struct listener **oldest = NULL, *l;
	size_t n = 0;

	for (struct listener **at = &b->listeners; *at; at = &(*at)->next) {
		n++;
		if ((*at)->addr.family)
			oldest = at;
	}
	if (n < LISTENERS_MAX || !oldest)
		return;
	l = *oldest;
	conn_accept(l); /* who has come already */
	*oldest = l->next;
	b->dropped++;
	free_listener(b, l);
}

/* A listener of a port is there for every address, but only what a rule names comes to it: the rest has no route. */
static bool comes_to_us(const struct box *b, const struct net_addr *a)
{
	if (hosts_is_ours(a))
		return true;
	for (size_t i = 0; i < b->policy.n_allow; i++)
		if (net_addr_within(a, &b->policy.allow[i].net, b->policy.allow[i].bits))
			return true;
	return false;
}

int box_want(struct box *b, const struct net_addr *a, uint16_t port, struct cs_err *err)
{
	struct net_verdict v;
	char what[NET_NAME_MAX + 16];
	bool literal = !hosts_is_ours(a);
	enum net_class c = net_addr_class(a);
	bool own = literal && (c == NET_LOOPBACK || c == NET_UNSPECIFIED);
	const struct host *h = hosts_by_addr(&b->hosts, a);

	if ((comes_to_us(b, a) || !edge_checks(EDGE_CHECK_bare)) && (box_has_listener(b, a, port) || port == 0))
		return 0; /* judged when it has come */
	if (own) /* of a name's address nothing is told yet: the program may listen there itself */
		tell_nobody(b, a, port);
	if (own || (!literal && !h))
		return cs_fail(err, CS_E_DENIED, 0, "this address stands for nobody");
	if (literal)
		net_judge_literal(&b->policy, a, port, &v);
	else
		net_judge_name(&b->policy, h->name, port, &v);
	if (!v.ok) {
		if (literal)
			tell_place(a, port, what, sizeof what);
		else
			snprintf(what, sizeof what, "%.253s:%u", h->name, port);
		tell_refused(b, EGRESS_CONNECT, what, &v);
		return cs_fail(err, CS_E_DENIED, 0, "%s", v.reason);
	}
	drop_oldest(b);
	return listen_at(b, a, port, err);
}

/* ---- while it runs ---- */

/* A network that is named only now is not yet routed to us. */
static int prepare_rule(struct box *b, const char *rule, bool deny, struct cs_err *err)
{
	struct net_rule r;
	int e = net_rule_parse(rule, &r, err);

	if (e < 0)
		return e;
	/* Nobody inside would trust our certificate now. */
	if (net_rule_reads_tls(&r) && !b->ca)
		e = cs_fail(err, CS_E_UNSUPPORTED, 0, "a rule about requests over TLS must be there from the start: programs inside trust no certificate of ours yet");
	if (e == 0 && !deny && r.net.family && box_route(b, &r.net, r.bits) < 0)
		e = cs_fail(err, CS_E_SYSTEM, errno, "route the network to the boundary");
	net_rule_done(&r);
	return e;
}

/* Who is started in our place knows the rules as they are now.  Half of it, if we die meanwhile, is not a profile: then
 * there is no network. */
static int keep_rules(struct box *b, struct cs_err *err)
{
	struct cs_buf yaml CS_BUF_AUTO = CS_BUF(1 << 20);

	if (profile_network_text(&b->profile, &yaml) < 0)
		return cs_fail(err, CS_E_LIMIT, 0, "there are too many rules");
	if (pwrite(b->yaml, "%", 1, 0) != 1 || ftruncate(b->yaml, 1) < 0 || pwrite(b->yaml, yaml.data + 1, yaml.len - 1, 1) != (ssize_t)yaml.len - 1 ||
	    pwrite(b->yaml, yaml.data, 1, 0) != 1)
		return cs_fail(err, CS_E_SYSTEM, errno, "keep the rules");
	return 0;
}

int box_rule(struct box *b, const char *rule, bool deny, struct cs_err *err)
{
	int r = b->profile.locked && !deny ? cs_fail(err, CS_E_DENIED, 0, "the profile is locked: its network can only be narrowed") :
					     prepare_rule(b, rule, deny, err);

	if (r == 0)
		r = profile_set(&b->profile, deny ? "network.deny" : "network.allow", rule, deny ? "net deny" : "net allow", err);
	if (r == 0)
		r = box_remake_policy(b, err);
	if (r < 0)
		return r;
	conn_judge_again(b);
	return keep_rules(b, err);
}

/* ---- the end ---- */

static void end_listeners(struct box *b)
{
	while (b->listeners) {
		struct listener *l = b->listeners;

		b->listeners = l->next;
		free_listener(b, l);
	}
}

static void free_box(void *arg)
{
	struct box *b = arg;

	for (size_t i = 0; i < b->n_secrets; i++)
		secret_done(&b->secrets[i]);
	free(b->secrets);
	ca_free(b->ca);
	hosts_done(&b->hosts);
	net_policy_done(&b->policy);
	profile_done(&b->profile);
	free(b->told);
	free(b);
}

void box_free(struct box *b)
{
	struct box **at = &b->edge->boxes;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	ask_end(b);
	end_listeners(b);
	publish_end(b);
	control_end(b);
	conn_cut_all(b);
	for (size_t i = 0; i < b->n_spare; i++)
		close(b->spare[i]);
	cs_close_p(&b->netns);
	cs_close_p(&b->yaml);
	cs_close_p(&b->log);
	/* Connections that were cut are freed at the turn's end, and look at it until then. */
	loop_defer(b->edge->loop, free_box, b);
}
