/* SPDX-License-Identifier: Apache-2.0 */
/* edge.h - how caisson-edge is put together.
 *
 *   main.c       the process: confinement, the socket to who started it
 *   loop.c       one epoll loop
 *   box.c        one sandbox's network: its policy, its listeners, its end
 *   sockets.c    sockets in a sandbox's namespace
 *   names.c      names and the addresses that stand for them; what each has used
 *   ask.c        the program's questions for names
 *   resolve.c    our own, with a cache
 *   conn.c       a connection from inside: whose it is, whether it may, where it goes
 *   pipe.c       bytes from one socket to the other
 *   publish.c    connections from outside to a port inside
 *   control.c    `caisson net`
 *   tell.c       what is told: events, refusals, totals
 *   dns.c hello.c http1.c ...   the bytes of protocols
 *   intercept.c ca.c secret.c mask.c   HTTP that is read on the way
 *
 * Trust: everything from inside and from servers is hostile.  The caller, and
 * who may open the control socket (the same user), are not.
 *
 * Single-threaded; nothing blocks but the making of sockets in a namespace and
 * a secret's command at the start.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "egress/edge/ca.h"
#include "egress/edge/hello.h"
#include "egress/edge/intercept.h"
#include "egress/edge/loop.h"
#include "egress/edge/secret.h"
#include "egress/egress.h"
#include "netpolicy/netpolicy.h"
#include "profile/profile.h"

#include <netinet/in.h>

enum {
	EDGE_CONNS_MAX = 4096,  /* open at once, of one box */
	EDGE_NAMES_MAX = 16384, /* different names a box may ask for */
	EDGE_TOLD_MAX = 64,
	EDGE_ADDRS_MAX = 16,    /* of one name */
	EDGE_ASKS_MAX = 256,    /* questions for names that wait, of one box */
};

/* What the attack tests' positive controls leave out; always on in a release. */
#define EDGE_CHECKS(X) X(address) X(own) X(sni) X(ech) X(host) X(mask) X(rate) X(verify) X(bare)
enum edge_check {
#define X(name) EDGE_CHECK_##name,
	EDGE_CHECKS(X)
#undef X
};
#ifdef CS_TEST_SWITCHES
bool edge_checks(enum edge_check c); /* CAISSON_EDGE_OFF=address,sni */
#else
static inline bool edge_checks(enum edge_check c)
{
	(void)c;
	return true;
}
#endif

struct edge {
	struct loop *loop;
	struct watch sock;
	struct box *boxes;
	struct resolver *resolver;
	SSL_CTX *upstream;     /* made when first needed */
	int maker;             /* who enters namespaces for us; -1: we do */
	bool dropped;          /* what root could do is given up */
};

struct use {
	uint64_t bytes_in, bytes_out;
	uint32_t connections, requests;
};

/* A name that was asked for, or an address that a rule names: who is at the other end. */
struct host {
	struct host *next;     /* in its bucket */
	uint32_t index;        /* of its addresses; 0: an address */
	struct use use;
	uint16_t ports[8];     /* that were reached */
	uint8_t n_ports;
	char name[];
};

struct hosts {
	struct host **buckets, **by_index;
	size_t n_buckets, n, n_index, room_index;
	uint32_t first;        /* index of the first name: different in every process */
};

struct listener {
	struct listener *next;
	struct box *box;
	struct watch watch;
	uint16_t port;
	struct net_addr addr;  /* family 0: every one */
};

struct published {
	struct published *next;
	struct box *box;
	struct watch watch;
	uint16_t port;         /* inside */
};

struct box {
	struct edge *edge;
	struct box *next;
	uint32_t number;
	char id[64];
	struct profile profile;
	struct net_policy policy;
	struct secret *secrets;
	size_t n_secrets;
	struct ca *ca;
	int log, netns, yaml;
	bool tells_reached;
	struct watch udp, tcp, control;
	struct control_client *clients;
	size_t n_clients;
	struct ask *asks;
	size_t n_asks;
	struct stream *streams; /* that ask over TCP */
	size_t n_streams;
	double lookups_left;    /* a bucket of tokens */
	uint64_t lookups_at;
	struct listener *listeners;
	uint32_t dropped;       /* of them, to make room */
	struct published *published;
	struct visit *visits;   /* to published ports */
	struct hosts hosts;
	struct conn *conns;
	size_t n_conns;
	int spare[16];          /* sockets of the namespace, not yet used */
	size_t n_spare;
	struct use use;
	struct egress_totals totals;
	struct egress_told *told;
	size_t n_told;
};

/* ---- box.c ---- */
/* text: id NUL placeholders; takes yaml and log (-1). */
int box_open(struct edge *e, uint32_t number, const char *text, size_t len, int take_yaml, int take_log, bool learn, struct box **ret,
	     struct cs_err *err);
int box_serve(struct box *b, int take_control, const int *take_fds, size_t n, struct cs_err *err);
/* The program is about to connect there. */
int box_want(struct box *b, const struct net_addr *a, uint16_t port, struct cs_err *err);
int box_rule(struct box *b, const char *rule, bool deny, struct cs_err *err); /* while it runs */
void box_free(struct box *b);
int box_remake_policy(struct box *b, struct cs_err *err);
bool box_has_listener(const struct box *b, const struct net_addr *a, uint16_t port);
/* The host that an address inside stands for: a name that was given it, or (literal) itself; NULL: nobody. */
struct host *box_host_at(struct box *b, const struct net_addr *a, bool *ret_literal);

/* ---- sockets.c ---- */
int maker_start(struct edge *e); /* -1: errno */
int box_socket(struct box *b);  /* a fresh one of its namespace: TCP, both families, non-blocking; -1: errno */
int box_socket_at(struct box *b, const struct net_addr *a, uint16_t port); /* the same, bound; any port */
int box_route(struct box *b, const struct net_addr *net, unsigned bits);
struct net_addr sockaddr_addr(const void *sockaddr, uint16_t *ret_port);
/* Of an IPv6 socket when both: IPv4 is mapped. */
socklen_t sockaddr_make(const struct net_addr *a, uint16_t port, bool mapped, struct sockaddr_storage *ret);

/* ---- names.c ---- */
struct host *hosts_get(struct hosts *h, const char *name, bool with_address); /* makes it; NULL: too many */
struct host *hosts_by_addr(const struct hosts *h, const struct net_addr *a);
bool hosts_is_ours(const struct net_addr *a); /* in the range that names are given */
struct net_addr hosts_addr(const struct host *host, int family);             /* 4, 6 */
void hosts_done(struct hosts *h);

/* ---- ask.c ---- */
int ask_serve(struct box *b, int udp, int tcp);
void ask_end(struct box *b);

/* ---- resolve.c ---- */
struct resolver;
struct resolved {
	int error;              /* 0, or: 1 there is no such name, 2 it could not be found out */
	struct net_addr addrs[EDGE_ADDRS_MAX];
	size_t n;
};
struct resolver *resolver_new(struct loop *l, struct cs_err *err);
void resolver_free(struct resolver *r);
struct waiting;
/* The answer comes once, perhaps before this returns (then *ret is NULL). */
void resolve(struct resolver *r, const char *name, void (*answer)(const struct resolved *a, void *arg), void *arg, struct waiting **ret);
void resolve_cancel(struct waiting *w);

/* ---- conn.c ---- */
void conn_accept(struct listener *l);
void conn_cut(struct conn *c, const char *why);      /* ends it with a reset */
void conn_judge_again(struct box *b);                /* the rules have changed */
void conn_cut_all(struct box *b);
void conn_each(struct box *b, void (*visit)(const char *host, uint16_t port, const struct net_addr *at, uint64_t in, uint64_t out, uint64_t ms, void *arg),
	       void *arg);

/* ---- pipe.c: bytes both ways between two sockets ---- */
struct pair;
struct pair_owner {
	void *arg;
	bool (*count)(void *arg, uint64_t out, uint64_t in); /* false: a budget is used up */
	void (*room)(void *arg, uint64_t *ret_out, uint64_t *ret_in); /* how much may go before that; NULL: as much as comes */
	void (*closed)(void *arg, const char *why);          /* once */
};
/* Takes both; out is from a to b. */
struct pair *pair_new(struct loop *l, int take_a, int take_b, const struct pair_owner *owner);
void pair_cut(struct pair *p); /* resets both; closed is called */
void reset_and_close(int fd);

/* ---- publish.c ---- */
int publish_open(struct box *b, struct cs_err *err);
void publish_end(struct box *b);

/* ---- control.c ---- */
int control_serve(struct box *b, int take_fd);
void control_end(struct box *b);

/* ---- tell.c ---- */
void tell_refused(struct box *b, enum egress_kind kind, const char *what, const struct net_verdict *v);
void tell_plain(struct box *b, enum egress_kind kind, const char *what, const char *reason, const char *fix);
void tell_place(const struct net_addr *a, uint16_t port, char *ret, size_t size); /* "10.0.0.1:80", "[fd00::1]:80" */
/* A connection to an address that nobody is at: guessed, kept from a boundary before this one, or loopback in a
 * disguise.  Nothing is told of loopback itself, which is the sandbox's own. */
void tell_nobody(struct box *b, const struct net_addr *a, uint16_t port);
struct event {
	const char *what;       /* "lookup", "connect", "close", "request", "refuse", "publish" */
	const char *name;
	uint16_t port;
	const struct net_addr *addr;
	const char *rule, *reason, *method, *path;
	const uint64_t *bytes_in, *bytes_out, *ms;
	int status;
};
void tell_event(struct box *b, const struct event *e);
/* Budgets: adds, and says which is used up, or NULL. */
void tell_room(const struct box *b, const struct host *h, uint64_t *ret_out, uint64_t *ret_in); /* bytes that are left */
const char *tell_use(struct box *b, struct host *h, uint64_t out, uint64_t in, uint32_t connections, uint32_t requests);
