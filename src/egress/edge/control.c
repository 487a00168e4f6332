/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - `caisson net`: a line comes, an answer goes.
 *
 * The socket stands in a directory of the same user; who can open it could as well
 * end the sandbox. */
#include "egress/edge/edge.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE_MAX_ = 4096, CLIENT_MS = 10000, ANSWER_MAX = 4 << 20, CLIENTS_MAX = 8 };

struct control_client {
	struct control_client *next, **prev;
	struct box *box;
	struct watch watch;
	struct timer timer;
	char line[LINE_MAX_];
	size_t len, sent;
	struct cs_buf answer;
	bool dead;
};

static void free_client(void *arg)
{
	struct control_client *c = arg;

	cs_buf_done(&c->answer);
	free(c);
}

static void end(struct control_client *c)
{
	struct loop *l = c->box->edge->loop;
	int fd = c->watch.fd;

	if (c->dead)
		return;
	c->dead = true;
	loop_unwatch(l, &c->watch);
	loop_untimer(l, &c->timer);
	close(fd);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->box->n_clients--;
	loop_defer(l, free_client, c);
}

/* ---- what is there ---- */

struct show {
	struct cs_buf *out;
	struct cs_json *json;
};

static void show_conn(const char *host, uint16_t port, const struct net_addr *at, uint64_t in, uint64_t out, uint64_t ms, void *arg)
{
	struct show *s = arg;
	char addr[64] = "";

	if (at->family)
		net_addr_format(at, addr, sizeof addr);
	if (!s->json) {
		cs_buf_fmt(s->out, "  %s:%u  %s  %llu bytes out, %llu in, %llu s\n", host, port, addr[0] ? addr : "connecting",
			   (unsigned long long)out, (unsigned long long)in, (unsigned long long)ms / 1000);
		return;
	}
	cs_json_object(s->json, NULL);
	cs_json_str(s->json, "name", host);
	cs_json_u64(s->json, "port", port);
	cs_json_str(s->json, "address", addr[0] ? addr : NULL);
	cs_json_u64(s->json, "bytes_out", out);
	cs_json_u64(s->json, "bytes_in", in);
	cs_json_u64(s->json, "ms", ms);
	cs_json_end(s->json, '}');
}

static void show_list(struct cs_json *j, const char *key, const struct cs_strv *v)
{
	cs_json_array(j, key);
	for (size_t i = 0; i < v->n; i++)
		cs_json_str(j, NULL, v->v[i]);
	cs_json_end(j, ']');
}

static void show_json(struct box *b, struct cs_buf *out)
{
	const struct profile_network *n = &b->profile.network;
	struct cs_json j;
	struct show s = { out, &j };

	cs_json_begin(&j, out, false);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "id", b->id);
	show_list(&j, "allow", &n->allow);
	show_list(&j, "deny", &n->deny);
	show_list(&j, "hosts", &n->hosts);
	show_list(&j, "publish", &n->publish);
	cs_json_u64(&j, "connections", b->use.connections);
	cs_json_u64(&j, "requests", b->use.requests);
	cs_json_u64(&j, "lookups", b->totals.lookups);
	cs_json_u64(&j, "bytes_out", b->use.bytes_out);
	cs_json_u64(&j, "bytes_in", b->use.bytes_in);
	cs_json_u64(&j, "refused", b->totals.refused);
	cs_json_array(&j, "open");
	conn_each(b, show_conn, &s);
	cs_json_end(&j, ']');
	cs_json_array(&j, "refusals");
	for (size_t i = 0; i < b->n_told; i++) {
		cs_json_object(&j, NULL);
		cs_json_str(&j, "kind", egress_kind_name((enum egress_kind)b->told[i].kind));
		cs_json_str(&j, "what", b->told[i].what);
		cs_json_u64(&j, "count", b->told[i].count);
		cs_json_str(&j, "reason", b->told[i].reason);
		cs_json_str(&j, "fix", b->told[i].fix[0] ? b->told[i].fix : NULL);
		cs_json_end(&j, '}');
	}
	cs_json_end(&j, ']');
	cs_json_end(&j, '}');
}

static void show_text(struct box *b, struct cs_buf *out)
{
	const struct profile_network *n = &b->profile.network;
	struct show s = { .out = out };
	char in[32], sent[32];

	cs_format_size(in, sizeof in, b->use.bytes_in);
	cs_format_size(sent, sizeof sent, b->use.bytes_out);
	for (size_t i = 0; i < n->allow.n; i++)
		cs_buf_fmt(out, "allow  %s\n", n->allow.v[i]);
	for (size_t i = 0; i < n->deny.n; i++)
		cs_buf_fmt(out, "deny   %s\n", n->deny.v[i]);
	for (size_t i = 0; i < n->hosts.n; i++)
		cs_buf_fmt(out, "host   %s\n", n->hosts.v[i]);
	for (size_t i = 0; i < n->publish.n; i++)
		cs_buf_fmt(out, "publish  %s\n", n->publish.v[i]);
	cs_buf_fmt(out, "so far: %u connections, %u requests, %u lookups, %s out, %s in, %u refused\n", b->use.connections, b->use.requests,
		   b->totals.lookups, sent, in, b->totals.refused);
	if (b->conns)
		cs_buf_str(out, "open:\n");
	conn_each(b, show_conn, &s);
	if (b->n_told)
		cs_buf_str(out, "refused:\n");
	for (size_t i = 0; i < b->n_told; i++)
		cs_buf_fmt(out, "  %s: %s%s%s (%u times)\n", b->told[i].what, b->told[i].reason, b->told[i].fix[0] ? "; " : "", b->told[i].fix,
			   b->told[i].count);
}

/* ---- requests ---- */

static void obey(struct control_client *c)
{
	struct box *b = c->box;
	struct cs_err err = { 0 };
	bool deny = !strncmp(c->line, "deny ", 5);

	c->answer = (struct cs_buf)CS_BUF(ANSWER_MAX);
	if (!strcmp(c->line, "show") || !strcmp(c->line, "show json")) {
		cs_buf_str(&c->answer, "ok\n");
		(c->line[4] ? show_json : show_text)(b, &c->answer);
	} else if (deny || !strncmp(c->line, "allow ", 6)) {
		if (box_rule(b, c->line + (deny ? 5 : 6), deny, &err) < 0)
			cs_buf_fmt(&c->answer, "error %s\n", err.msg);
		else
			cs_buf_str(&c->answer, "ok\n");
	} else {
		cs_buf_str(&c->answer, "error not a request: show, allow RULE, deny RULE\n");
	}
}

static void on_write(struct watch *w, uint32_t events)
{
	struct control_client *c = LOOP_OF(w, struct control_client, watch);
	ssize_t n = send(w->fd, c->answer.data + c->sent, c->answer.len - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	c->sent += n > 0 ? (size_t)n : 0;
	if (n < 0 || c->sent == c->answer.len)
		end(c);
}

static void on_read(struct watch *w, uint32_t events)
{
	struct control_client *c = LOOP_OF(w, struct control_client, watch);
	ssize_t n = recv(w->fd, c->line + c->len, sizeof c->line - 1 - c->len, MSG_DONTWAIT);
	char *nl;

	(void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		end(c);
		return;
	}
	c->len += (size_t)n;
	c->line[c->len] = 0;
	nl = memchr(c->line, '\n', c->len);
	if (!nl) {
		if (c->len == sizeof c->line - 1)
			end(c);
		return;
	}
	*nl = 0;
	obey(c);
	w->ready = on_write;
	loop_change(c->box->edge->loop, w, EPOLLOUT);
}

static void on_time(struct timer *t)
{
	end(LOOP_OF(t, struct control_client, timer));
}

static void on_control(struct watch *w, uint32_t events)
{
	struct box *b = LOOP_OF(w, struct box, control);
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct control_client *c;

	(void)events;
	if (fd < 0)
		return;
	c = b->n_clients < CLIENTS_MAX ? cs_new(struct control_client) : NULL;
	if (!c || loop_watch(b->edge->loop, &c->watch, fd, EPOLLIN) < 0) {
		free(c);
		close(fd);
		return;
	}
	c->box = b;
	c->watch.ready = on_read;
	c->timer.fire = on_time;
	c->next = b->clients;
	c->prev = &b->clients;
	if (c->next)
		c->next->prev = &c->next;
	b->clients = c;
	b->n_clients++;
	loop_timer(b->edge->loop, &c->timer, CLIENT_MS);
}

int control_serve(struct box *b, int take_fd)
{
	b->control.ready = on_control;
	return loop_watch(b->edge->loop, &b->control, take_fd, EPOLLIN);
}

void control_end(struct box *b)
{
	int fd = b->control.fd;

	while (b->clients)
		end(b->clients);
	loop_unwatch(b->edge->loop, &b->control);
	if (fd >= 0)
		close(fd);
}
