/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.c - looking names up outside, with a cache.
 *
 * c-ares asks the host's resolvers; CNAMEs are its matter, and what counts is the
 * addresses at their end, which are judged one by one before they are used. */
#include "egress/edge/edge.h"

#include "base/mem.h"

#include <ares.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>

enum {
	TIMEOUT_MS = 2500, TRIES = 2,
	TTL_MIN = 1000, TTL_MAX = 300000, TTL_BAD = 3000, /* ms */
	CACHE_MAX = 4096, BUCKETS = 1024,
	SOCKS_MAX = 64,
};

struct waiting {
	struct waiting *next;
	struct known *known;
	void (*answer)(const struct resolved *a, void *arg);
	void *arg;
};

struct known {
	struct known *newer, *older; /* by use */
	struct known *next;          /* in its bucket */
	struct resolver *resolver;
	bool pending;
	uint64_t until;         /* ms */
	struct resolved result;
	struct waiting *waiting;
	char name[NET_NAME_MAX];
};

struct ares_sock {
	struct watch watch;
	struct resolver *resolver;
};

struct resolver {
	struct loop *loop;
	ares_channel channel;
	struct timespec config; /* of /etc/resolv.conf, when it was read */
	struct timer timer;
	struct ares_sock socks[SOCKS_MAX];
	struct known *newest, *oldest, *buckets[BUCKETS];
	size_t n_cache, n_pending;
};

static void arm(struct resolver *r)
{
	struct timeval tv, *t = ares_timeout(r->channel, NULL, &tv);

	if (t)
		loop_timer(r->loop, &r->timer, (uint64_t)t->tv_sec * 1000 + (uint64_t)t->tv_usec / 1000 + 1);
	else
		loop_untimer(r->loop, &r->timer);
}

static void on_timer(struct timer *t)
{
	struct resolver *r = LOOP_OF(t, struct resolver, timer);

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm(r);
}

static void on_socket(struct watch *w, uint32_t events)
{
	struct ares_sock *s = LOOP_OF(w, struct ares_sock, watch);
	struct resolver *r = s->resolver;
	int fd = w->fd;

	ares_process_fd(r->channel, events & (EPOLLIN | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD, events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
	arm(r);
}

/* c-ares opens and closes sockets as it likes, and says what it waits for. */
static void on_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = arg;
	struct ares_sock *s = NULL;
	uint32_t events = (readable ? (uint32_t)EPOLLIN : 0u) | (writable ? (uint32_t)EPOLLOUT : 0u);

	for (int i = 0; i < SOCKS_MAX && !s; i++)
		if (r->socks[i].watch.fd == fd)
			s = &r->socks[i];
	if (s && !events) {
		loop_unwatch(r->loop, &s->watch);
		return;
	}
	if (s) {
		loop_change(r->loop, &s->watch, events);
		return;
	}
	for (int i = 0; events && i < SOCKS_MAX; i++)
		if (r->socks[i].watch.fd < 0) {
			(void)loop_watch(r->loop, &r->socks[i].watch, fd, events); /* else it times out */
			return;
		}
}

static int open_channel(struct resolver *r)
{
	static char files_first[] = "fb"; /* /etc/hosts, then the resolvers */
	struct ares_options o = { .timeout = TIMEOUT_MS, .tries = TRIES, .sock_state_cb = on_state, .sock_state_cb_data = r, .lookups = files_first };
	struct stat st;

	if (stat("/etc/resolv.conf", &st) == 0)
		r->config = st.st_mtim;
	/* No search list: a name is what it is. */
	return ares_init_options(&r->channel, &o, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS);
}

/* A laptop that changed its network has other resolvers now. */
static void refresh(struct resolver *r)
{
	struct stat st;

	if (r->n_pending || stat("/etc/resolv.conf", &st) < 0 ||
	    (st.st_mtim.tv_sec == r->config.tv_sec && st.st_mtim.tv_nsec == r->config.tv_nsec))
		return;
	ares_destroy(r->channel);
	if (open_channel(r) != ARES_SUCCESS)
		abort(); /* out of memory: who started us starts us again */
}

struct resolver *resolver_new(struct loop *l, struct cs_err *err)
{
	struct resolver *r = cs_new(struct resolver);
	int e = ares_library_init(ARES_LIB_INIT_ALL);

	r->loop = l;
	r->timer.fire = on_timer;
	for (int i = 0; i < SOCKS_MAX; i++)
		r->socks[i] = (struct ares_sock){ { .fd = -1, .ready = on_socket }, r };
	if (e == ARES_SUCCESS)
		e = open_channel(r);
	if (e != ARES_SUCCESS) {
		(void)cs_fail(err, CS_E_SYSTEM, 0, "start the resolver: %s", ares_strerror(e));
		free(r);
		return NULL;
	}
	return r;
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	ares_destroy(r->channel); /* who waits is told */
	loop_untimer(r->loop, &r->timer);
	while (r->newest) {
		struct known *k = r->newest;

		r->newest = k->older;
		free(k);
	}
	ares_library_cleanup();
	free(r);
}

static void take_addrs(struct known *k, const struct ares_addrinfo *ai, uint64_t *ttl)
{
	for (const struct ares_addrinfo_node *n = ai->nodes; n && k->result.n < EDGE_ADDRS_MAX; n = n->ai_next) {
		uint16_t port;

		if (n->ai_family != AF_INET && n->ai_family != AF_INET6)
			continue;
		k->result.addrs[k->result.n++] = sockaddr_addr(n->ai_addr, &port);
		if ((uint64_t)n->ai_ttl * 1000 < *ttl)
			*ttl = n->ai_ttl > 0 ? (uint64_t)n->ai_ttl * 1000 : TTL_MIN;
	}
	for (const struct ares_addrinfo_cname *c = ai->cnames; c; c = c->next)
		if ((uint64_t)c->ttl * 1000 < *ttl)
			*ttl = c->ttl > 0 ? (uint64_t)c->ttl * 1000 : TTL_MIN;
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *ai)
{
	struct known *k = arg;
	struct waiting *w = k->waiting, *next;
	uint64_t ttl = TTL_MAX;

	(void)timeouts;
	k->pending = false;
	k->resolver->n_pending--;
	k->result = (struct resolved){ 0 };
	if (status == ARES_SUCCESS && ai)
		take_addrs(k, ai, &ttl);
	if (ai)
		ares_freeaddrinfo(ai);
	if (!k->result.n) {
		k->result.error = status == ARES_SUCCESS || status == ARES_ENOTFOUND || status == ARES_ENODATA ? 1 : 2;
		ttl = TTL_BAD;
	}
	k->until = loop_now(k->resolver->loop) + ttl;
	k->waiting = NULL;
	for (; w; w = next) {
		next = w->next;
		if (w->answer)
			w->answer(&k->result, w->arg);
		free(w);
	}
}

static struct known **bucket(struct resolver *r, const char *name)
{
	uint32_t h = 2166136261u;

	while (*name)
		h = (h ^ (uint8_t)*name++) * 16777619u;
	return &r->buckets[h % BUCKETS];
}

static void unlink_use(struct resolver *r, struct known *k)
{
	*(k->newer ? &k->newer->older : &r->newest) = k->older;
	*(k->older ? &k->older->newer : &r->oldest) = k->newer;
}

static void link_use(struct resolver *r, struct known *k)
{
	k->newer = NULL;
	k->older = r->newest;
	*(k->older ? &k->older->newer : &r->oldest) = k;
	r->newest = k;
}

static struct known *find(struct resolver *r, const char *name)
{
	struct known *k = *bucket(r, name);

	while (k && strcmp(k->name, name))
		k = k->next;
	if (k && k != r->newest) {
		unlink_use(r, k);
		link_use(r, k);
	}
	return k;
}

/* The oldest that nobody waits for goes. */
static void make_room(struct resolver *r)
{
	struct known *k = r->oldest, **at;

	while (k && k->pending)
		k = k->newer;
	if (r->n_cache < CACHE_MAX || !k)
		return;
	for (at = bucket(r, k->name); *at && *at != k; at = &(*at)->next)
		;
	if (*at)
		*at = k->next;
	unlink_use(r, k);
	r->n_cache--;
	free(k);
}

void resolve(struct resolver *r, const char *name, void (*answer)(const struct resolved *a, void *arg), void *arg, struct waiting **ret)
{
	const struct ares_addrinfo_hints hints = { .ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct known *k = find(r, name);
	struct waiting *w;
	bool ask = !k || (!k->pending && loop_now(r->loop) >= k->until);

	*ret = NULL;
	if (k && !k->pending && !ask) {
		answer(&k->result, arg);
		return;
	}
	if (!k) {
		make_room(r);
		k = cs_new(struct known);
		k->resolver = r;
		memcpy(k->name, name, strlen(name) + 1);
		k->next = *bucket(r, name);
		*bucket(r, name) = k;
		link_use(r, k);
		r->n_cache++;
	}
	w = cs_new(struct waiting);
	*w = (struct waiting){ k->waiting, k, answer, arg };
	k->waiting = w;
	*ret = w;
	if (!ask)
		return;
	refresh(r);
	k->pending = true;
	r->n_pending++;
	ares_getaddrinfo(r->channel, name, NULL, &hints, on_answer, k); /* may answer at once, from /etc/hosts */
	if (!k->pending)
		*ret = NULL;
	arm(r);
}

void resolve_cancel(struct waiting *w)
{
	if (w)
		w->answer = NULL;
}
