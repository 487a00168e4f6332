/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - connections from outside to a port inside.
 *
 * Only to ports that were declared, and only at loopback inside: a server there that
 * listens on every address is reached, too. */
#include "egress/edge/edge.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 5000 };

struct visit {
	struct visit *next, **prev;
	struct box *box;
	uint16_t port;
	int client;
	struct watch inside;
	struct timer timer;
	struct pair *pair;
	struct use use;
	uint64_t started;
	bool dead;
};

static void free_visit(void *arg)
{
	free(arg);
}

static void end(struct visit *v, const char *why)
{
	struct loop *l = v->box->edge->loop;
	uint64_t ms = loop_now(l) - v->started;
	struct event e = { .what = "publish", .port = v->port, .bytes_in = &v->use.bytes_in, .bytes_out = &v->use.bytes_out, .ms = &ms, .reason = why };
	int fd = v->inside.fd;

	if (v->dead)
		return;
	v->dead = true;
	tell_event(v->box, &e);
	loop_untimer(l, &v->timer);
	loop_unwatch(l, &v->inside);
	if (fd >= 0)
		close(fd);
	reset_and_close(v->client);
	*v->prev = v->next;
	if (v->next)
		v->next->prev = v->prev;
	loop_defer(l, free_visit, v);
}

/* From outside: what goes in counts as in. */
static bool count(void *arg, uint64_t to_inside, uint64_t from_inside)
{
	struct visit *v = arg;

	v->use.bytes_in += to_inside;
	v->use.bytes_out += from_inside;
	return true;
}

static void passed(void *arg, const char *why)
{
	struct visit *v = arg;

	v->pair = NULL;
	end(v, why);
}

static void on_inside(struct watch *w, uint32_t events)
{
	struct visit *v = LOOP_OF(w, struct visit, inside);
	struct pair_owner owner = { .arg = v, .count = count, .closed = passed };
	int fd = w->fd, error = 0, client = v->client;
	socklen_t len = sizeof error;

	(void)events;
	loop_unwatch(v->box->edge->loop, w);
	loop_untimer(v->box->edge->loop, &v->timer);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error) {
		close(fd);
		end(v, "nobody listens there inside");
		return;
	}
	v->pair = pair_new(v->box->edge->loop, client, fd, &owner);
	if (!v->pair) {
		close(fd);
		end(v, "out of descriptors");
		return;
	}
	v->client = -1;
}

static void on_time(struct timer *t)
{
	end(LOOP_OF(t, struct visit, timer), "nobody answers inside");
}

static void connect_inside(struct visit *v)
{
	static const struct net_addr loopback = { 4, { 127, 0, 0, 1 } };
	struct loop *l = v->box->edge->loop;
	struct sockaddr_storage ss;
	int fd = v->box->netns >= 0 ? box_socket(v->box) : -1, domain = AF_INET6, r;
	socklen_t len = sizeof domain;

	if (fd < 0) {
		end(v, "the sandbox is not there yet");
		return;
	}
	(void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	len = sockaddr_make(&loopback, v->port, domain == AF_INET6, &ss);
	r = connect(fd, (struct sockaddr *)&ss, len);
	if ((r < 0 && errno != EINPROGRESS) || loop_watch(l, &v->inside, fd, EPOLLOUT) < 0) {
		close(fd);
		end(v, "nobody listens there inside");
		return;
	}
	loop_timer(l, &v->timer, CONNECT_MS);
}

static void on_published(struct watch *w, uint32_t events)
{
	struct published *p = LOOP_OF(w, struct published, watch);
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct visit *v;

	(void)events;
	if (fd < 0)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	v = cs_new(struct visit);
	v->box = p->box;
	v->port = p->port;
	v->client = fd;
	v->inside = (struct watch){ .fd = -1, .ready = on_inside };
	v->timer.fire = on_time;
	v->started = loop_now(p->box->edge->loop);
	v->next = p->box->visits;
	v->prev = &p->box->visits;
	if (v->next)
		v->next->prev = &v->next;
	p->box->visits = v;
	connect_inside(v);
}

/* "127.0.0.1:8080:80": where, which port outside, which inside.  The profile has checked it. */
static int parse(const char *text, struct net_addr *addr, unsigned *outside, unsigned *inside)
{
	char host[64] = "127.0.0.1";
	const char *at = strrchr(text, ':'), *mid;

	if (!at || sscanf(at + 1, "%u", inside) != 1)
		return -1;
	for (mid = at - 1; mid > text && mid[-1] != ':'; mid--)
		;
	if (mid > text)
		snprintf(host, sizeof host, "%.*s", (int)(mid - 1 - text), text);
	if (host[0] == '[' && strlen(host) > 2) {
		memmove(host, host + 1, strlen(host));
		host[strlen(host) - 1] = 0;
	}
	return sscanf(mid, "%u", outside) == 1 ? net_addr_parse(host, addr) : -1;
}

static int publish_one(struct box *b, const char *text, struct cs_err *err)
{
	struct published *p;
	struct sockaddr_storage ss;
	struct net_addr addr;
	unsigned outside, inside;
	socklen_t len;
	CS_FD int fd = -1;

	if (parse(text, &addr, &outside, &inside) < 0)
		return cs_fail(err, CS_E_INVALID, 0, "--publish %s: wants [ADDRESS:]PORT:PORT", text);
	len = sockaddr_make(&addr, (uint16_t)outside, false, &ss);
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0 || bind(fd, (struct sockaddr *)&ss, len) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return cs_fail(err, errno == EADDRINUSE ? CS_E_CONFLICT : CS_E_SYSTEM, errno, "publish %s", text);
	p = cs_new(struct published);
	p->box = b;
	p->port = (uint16_t)inside;
	p->watch.ready = on_published;
	if (loop_watch(b->edge->loop, &p->watch, fd, EPOLLIN) < 0) {
		free(p);
		return cs_fail(err, CS_E_SYSTEM, errno, "publish %s", text);
	}
	(void)CS_TAKE_FD(fd);
	p->next = b->published;
	b->published = p;
	return 0;
}

int publish_open(struct box *b, struct cs_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->profile.network.publish.n; i++)
		r = publish_one(b, b->profile.network.publish.v[i], err);
	return r;
}

void publish_end(struct box *b)
{
	while (b->published) {
		struct published *p = b->published;
		int fd = p->watch.fd;

		b->published = p->next;
		loop_unwatch(b->edge->loop, &p->watch);
		close(fd);
		free(p);
	}
	while (b->visits) {
		if (b->visits->pair)
			pair_cut(b->visits->pair);
		else
			end(b->visits, "the sandbox has ended");
	}
}
