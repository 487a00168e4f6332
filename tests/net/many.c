/* SPDX-License-Identifier: Apache-2.0 */
/* many.c - one boundary, many networks: connections come and go, some of them stall.
 *
 *     many BOXES CONNECTIONS SECONDS PHASES
 *
 * Makes BOXES network namespaces as a sandbox's are made, has one caisson-edge (beside this
 * program) serve them, and keeps CONNECTIONS of each open: they connect, speak a few
 * times, end, and begin again; networks come and go, too.  Time is cut into PHASES, in turns
 * without and with stalled peers of every kind.  The result is one line of JSON; test_many.py
 * judges it.  Root only, in a network namespace of its own with loopback up. */
#include "base/cleanup.h"
#include "base/text.h"
#include "egress/internal.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	ECHO = 7101, MUTE, FULL, FLOOD, /* ports of the servers */
	NAMES = 8, WORDS = 4, STALLED_BOXES = 10, STALLED_EACH = 2, STALLED_BUFFER = 16384,
	MUTE_MAX = 4096, MUTE_US = 5000000,
	LIFE_MS = 2000, TICK_MS = 10, REPLACE_MS = 500, SAMPLES = 1 << 20,
};

#define STALLS(X) X(MUTE_SERVER) X(NO_HELLO) X(HALF_HELLO) X(NO_SYN_ACK) X(DEAF_CLIENT) X(SILENT_DNS)
enum stall {
#define X(name) STALL_##name,
	STALLS(X)
#undef X
	STALL_MAX
};
static const char *const stall_name[] = { "mute.test", "tls.test", "tls.test", "full.test", "flood.test", "lost.example.net" };

struct source {         /* what an event points to */
	enum { AT_EDGE, AT_CONN, AT_DNS, AT_STALL } kind;
};

struct conn {
	struct source source;
	struct box *box;
	int fd;                 /* -1: waits until `at` */
	int words;              /* that were answered */
	bool asked;             /* a word is on its way */
	uint64_t at;            /* us: when to go on, or when it began to wait */
};

struct stalled {
	struct source source;
	struct box *box;
	enum stall kind;
	int fd;
};

struct box {
	struct source source;   /* of its socket for lookups */
	struct egress_box *egress;
	int netns, dns;
	uint32_t addr[NAMES + STALL_MAX]; /* 0: not known yet */
	uint32_t done;          /* connections that were answered */
	struct conn *conns;
	struct stalled stalled[STALL_MAX * STALLED_EACH];
};

struct series {
	float v[SAMPLES];
	size_t n;
};

static struct egress *egress;
static struct profile profile;
static struct box *boxes;
static int n_boxes, n_conns, home, epoll;
static struct series setup[2], word[2];
static uint64_t failures, moved, replaced, connections, remapped, lookups, totals_wrong;
static bool stalling;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "many: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- servers ---- */

static int listen_on(int port, int backlog)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, little = STALLED_BUFFER;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (port != ECHO) { /* filling what is never read is no work of those who measure */
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
	}
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, backlog) < 0)
		die("listen");
	return fd;
}

/* Its queue is full: who comes now gets no answer. */
static void fill(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	for (int i = 0; i < 4; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		(void)connect(fd, (struct sockaddr *)&a, sizeof a);
	}
}

static void serve_one(int ep, int fd, uint32_t mode)
{
	static char buf[65536];
	ssize_t n;

	if (mode == FLOOD) {
		n = send(fd, buf, sizeof buf, MSG_NOSIGNAL);
	} else {
		n = recv(fd, buf, sizeof buf, 0);
		if (n > 0)
			n = send(fd, buf, (size_t)n, MSG_NOSIGNAL);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		(void)epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL);
		close(fd);
	}
}

static _Noreturn void servers(int ready)
{
	int ep = epoll_create1(0), listeners[] = { listen_on(ECHO, 4096), listen_on(MUTE, 4096), listen_on(FULL, 0), listen_on(FLOOD, 4096) };
	struct epoll_event ev[256];
	struct {
		int fd;
		uint64_t until;
	} mute[MUTE_MAX];
	size_t first = 0, last = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint32_t i = 0; i < 4; i++)
		if (ECHO + i != FULL)
			epoll_ctl(ep, EPOLL_CTL_ADD, listeners[i], &(struct epoll_event){ .events = EPOLLIN, .data.u64 = (uint64_t)(ECHO + i) << 32 | (uint32_t)listeners[i] });
	fill(FULL);
	(void)write(ready, "x", 1);
	for (;;) {
		int n = epoll_wait(ep, ev, 256, 200);

		for (; first < last && mute[first % MUTE_MAX].until < now_us(); first++)
			close(mute[first % MUTE_MAX].fd);
		for (int i = 0; i < n; i++) {
			int fd = (int)(uint32_t)ev[i].data.u64, c;
			uint32_t mode = (uint32_t)(ev[i].data.u64 >> 32);

			if (mode < 100) {
				serve_one(ep, fd, mode + ECHO);
				continue;
			}
			while ((c = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
				if (mode == MUTE && last - first == MUTE_MAX)
					close(c);
				else if (mode == MUTE) /* those are only kept */
					mute[last % MUTE_MAX].fd = c, mute[last++ % MUTE_MAX].until = now_us() + MUTE_US;
				else
					epoll_ctl(ep, EPOLL_CTL_ADD, c, &(struct epoll_event){ .events = mode == FLOOD ? EPOLLOUT : EPOLLIN,
											       .data.u64 = (uint64_t)(mode - ECHO) << 32 | (uint32_t)c });
		}
	}
}

static void start_servers(void)
{
	int ready[2];
	char c;

	if (pipe(ready) < 0)
		die("pipe");
	if (fork() == 0)
		servers(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		die("start the servers");
}

/* ---- networks ---- */

static void go_to(int netns)
{
	if (setns(netns, CLONE_NEWNET) < 0)
		die("setns");
}

static int resolver(int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || (type == SOCK_STREAM && listen(fd, 16) < 0))
		die("a resolver's socket");
	return fd;
}

static void look_up(struct box *b, int which)
{
	static const char head[] = "\0\0\1\0\0\1\0\0\0\0\0\0";
	char q[256], name[64];
	size_t n = 12;

	if (which < NAMES)
		snprintf(name, sizeof name, "n%d.test", which);
	else
		snprintf(name, sizeof name, "%s", stall_name[which - NAMES]);
	memcpy(q, head, 12);
	q[1] = (char)which;
	for (char *at = name, *dot; at; at = dot ? dot + 1 : NULL) {
		size_t len;

		dot = strchr(at, '.');
		len = dot ? (size_t)(dot - at) : strlen(at);
		q[n++] = (char)len;
		memcpy(q + n, at, len);
		n += len;
	}
	memcpy(q + n, "\0\0\1\0\1", 5);
	(void)send(b->dns, q, n + 5, MSG_DONTWAIT);
}

static void on_dns(struct box *b)
{
	uint8_t a[512];
	ssize_t n;

	while ((n = recv(b->dns, a, sizeof a, MSG_DONTWAIT)) > 0) {
		uint32_t addr;

		if (n < 20 || a[1] >= NAMES + STALL_MAX || (a[3] & 15) != 0 || a[7] != 1)
			continue; /* no address: silent, or too many */
		memcpy(&addr, a + n - 4, 4);
		for (ssize_t i = n - 16; i > 12; i--) /* the answer's type A and length 4; what follows is EDNS or nothing */
			if (a[i] == 0 && a[i + 1] == 1 && a[i + 8] == 0 && a[i + 9] == 4)
				memcpy(&addr, a + i + 10, 4);
		lookups++;
		if (b->addr[a[1]] && b->addr[a[1]] != addr)
			remapped++;
		b->addr[a[1]] = addr;
	}
}

static void open_box(struct box *b)
{
	static int number;
	char id[32];
	struct egress_box_opts o = { .id = id, .profile = &profile, .log = -1 };
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct sockaddr_in dns = { .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct egress_plan *p;
	struct cs_err err = { 0 };
	int fds[EGRESS_BOX_FDS];
	size_t n = 0;

	snprintf(id, sizeof id, "many-%d", ++number);
	if (egress_box_new(egress, &o, &b->egress, &err) < 0) {
		fprintf(stderr, "many: %s\n", err.msg);
		exit(1);
	}
	p = egress_box_plan(b->egress);
	if (unshare(CLONE_NEWNET) < 0)
		die("unshare");
	b->dns = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ioctl(b->dns, SIOCSIFFLAGS, &lo) < 0 || sys_net_take(p->addresses, p->n_addresses, true) < 0 || sys_net_take(p->ranges, p->n_ranges, false) < 0)
		die("set up a network");
	b->netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	fds[n++] = fcntl(b->netns, F_DUPFD_CLOEXEC, 3);
	fds[n++] = resolver(SOCK_DGRAM);
	fds[n++] = resolver(SOCK_STREAM);
	for (size_t i = 0; i < p->n_ports; i++)
		fds[n++] = sys_net_listen(p->ports[i]);
	if (connect(b->dns, (struct sockaddr *)&dns, sizeof dns) < 0)
		die("connect to the resolver");
	epoll_ctl(epoll, EPOLL_CTL_ADD, b->dns, &(struct epoll_event){ .events = EPOLLIN, .data.ptr = b });
	memset(b->addr, 0, sizeof b->addr);
	b->done = 0;
	for (int i = 0; i < NAMES + STALL_SILENT_DNS; i++)
		look_up(b, i);
	egress_box_serve(b->egress, fds, n);
	go_to(home);
}

static void hang_up(int *fd)
{
	if (*fd >= 0)
		close(*fd); /* which takes it out of epoll */
	*fd = -1;
}

static void close_box(struct box *b)
{
	struct egress_totals t;

	for (int i = 0; i < n_conns; i++)
		hang_up(&b->conns[i].fd);
	for (int i = 0; i < STALL_MAX * STALLED_EACH; i++)
		hang_up(&b->stalled[i].fd);
	egress_box_end(b->egress, &t, NULL, NULL);
	if (t.connections < b->done)
		totals_wrong++;
	egress_box_free(b->egress);
	b->egress = NULL;
	hang_up(&b->dns);
	hang_up(&b->netns);
}

/* ---- connections ---- */

static int dial(const struct box *b, uint32_t addr, uint16_t port, void *source, uint32_t events)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = addr };
	int fd, on = 1, little = STALLED_BUFFER;

	go_to(b->netns);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		die("socket");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (((struct source *)source)->kind == AT_STALL) {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
	}
	if ((connect(fd, (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){ .events = events, .data.ptr = source }) < 0)
		hang_up(&fd);
	return fd;
}

static uint64_t pause_us(void)
{
	return (uint64_t)(rand() % (2 * LIFE_MS * 1000 / (WORDS + 1)));
}

static void begin(struct conn *c)
{
	int which = rand() % NAMES;

	c->words = 0;
	c->asked = false;
	c->at = now_us();
	if (rand() % 16 == 0)
		look_up(c->box, which);
	if (!c->box->addr[which]) { /* not answered yet */
		look_up(c->box, which);
		c->at += 200000;
		return;
	}
	c->fd = dial(c->box, c->box->addr[which], 80, c, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	if (c->fd < 0)
		failures++;
	connections++;
}

static void note(struct series *s, uint64_t us)
{
	if (s->n < SAMPLES)
		s->v[s->n++] = (float)us;
}

static void say(struct conn *c)
{
	c->asked = send(c->fd, "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static void on_conn(struct conn *c, uint32_t events)
{
	char buf[64];
	ssize_t n;
	uint64_t now = now_us();

	if (events & EPOLLOUT && !c->words && !c->asked)
		say(c); /* the first word, as soon as it is there */
	n = recv(c->fd, buf, sizeof buf, 0);
	if (n < 0 && errno == EAGAIN && !(events & (EPOLLERR | EPOLLHUP)))
		return;
	if (n <= 0) {
		failures++;
		hang_up(&c->fd);
		c->at = now + pause_us();
		return;
	}
	note(c->words ? &word[stalling] : &setup[stalling], now - c->at);
	moved += (uint64_t)n;
	if (!c->words++)
		c->box->done++;
	c->asked = false;
	c->at = now + pause_us();
}

/* What is due. */
static void tick(void)
{
	uint64_t now = now_us();

	for (int i = 0; i < n_boxes; i++)
		for (int k = 0; k < n_conns && boxes[i].egress; k++) {
			struct conn *c = &boxes[i].conns[k];

			if (c->fd >= 0 && (c->asked || !c->words) && now - c->at > 20000000 && now > c->at) { /* nobody should wait for so long */
				failures++;
				hang_up(&c->fd);
				c->at = now;
			}
			if (now < c->at || (c->fd >= 0 && (c->asked || !c->words)))
				continue;
			if (c->fd < 0) {
				begin(c);
			} else if (c->words > WORDS) {
				hang_up(&c->fd);
				c->at = now + pause_us();
			} else {
				c->at = now;
				say(c);
			}
		}
	go_to(home);
}

/* ---- those that stall ---- */

static void on_stalled(struct stalled *s, uint32_t events)
{
	static const char waste[65536];

	if (events & EPOLLOUT && s->kind == STALL_MUTE_SERVER)
		while (send(s->fd, waste, sizeof waste, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
			;
	else if (events & EPOLLOUT && s->kind == STALL_HALF_HELLO)
		(void)send(s->fd, "\26\3\1\2\0", 5, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
		hang_up(&s->fd);
}

static void stall(void)
{
	for (int i = 0; i < STALLED_BOXES && i < n_boxes; i++)
		for (int k = 0; k < STALL_MAX * STALLED_EACH && boxes[i].egress; k++) {
			struct stalled *s = &boxes[i].stalled[k];
			uint32_t addr = boxes[i].addr[NAMES + s->kind];

			if (s->kind == STALL_SILENT_DNS) {
				if (rand() % 8 == 0)
					look_up(&boxes[i], NAMES + STALL_SILENT_DNS);
			} else if (s->fd < 0 && addr)
				s->fd = dial(&boxes[i], addr, s->kind == STALL_NO_HELLO || s->kind == STALL_HALF_HELLO ? 443 : 80, s,
					     (s->kind == STALL_MUTE_SERVER || s->kind == STALL_HALF_HELLO ? (uint32_t)EPOLLOUT : 0) | EPOLLRDHUP | EPOLLET);
		}
	go_to(home);
}

static void relent(void)
{
	for (int i = 0; i < n_boxes; i++)
		for (int k = 0; k < STALL_MAX * STALLED_EACH; k++)
			hang_up(&boxes[i].stalled[k].fd);
}

/* ---- the boundary, seen from outside ---- */

struct look {
	int fds, pipes;
	long rss_kib;
};

static struct look look(void)
{
	struct look l = { 0 };
	char path[64], target[64];
	struct dirent *e;
	FILE *f;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/fd", egress->pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target - 1);

		if (n <= 0)
			continue;
		if (!strncmp(target, "pipe:", 5))
			l.pipes++;
		else
			l.fds++;
	}
	if (d)
		closedir(d);
	snprintf(path, sizeof path, "/proc/%d/status", egress->pid);
	f = fopen(path, "r");
	while (f && fgets(target, sizeof target, f))
		(void)sscanf(target, "VmRSS: %ld", &l.rss_kib);
	if (f)
		fclose(f);
	return l;
}

static void handle(int wait_ms)
{
	struct epoll_event ev[512];
	int n = epoll_wait(epoll, ev, 512, wait_ms);

	for (int i = 0; i < n; i++) {
		struct source *s = ev[i].data.ptr;

		if (s->kind == AT_EDGE)
			egress_handle(egress);
		else if (s->kind == AT_DNS)
			on_dns((struct box *)s);
		else if (s->kind == AT_STALL && ((struct stalled *)s)->fd >= 0)
			on_stalled((struct stalled *)s, ev[i].events);
		else if (s->kind == AT_CONN && ((struct conn *)s)->fd >= 0)
			on_conn((struct conn *)s, ev[i].events);
	}
}

/* Until every connection has been closed and the boundary has seen it. */
static struct look quiet(void)
{
	struct look now = look(), before;
	int same = 0;

	for (int i = 0; i < n_boxes; i++)
		for (int k = 0; k < n_conns && boxes[i].egress; k++)
			hang_up(&boxes[i].conns[k].fd);
	relent();
	for (int i = 0; i < 200 && same < 95; i++) { /* what dials is given up after eight seconds */
		uint64_t until = now_us() + 100000;

		before = now;
		while (now_us() < until)
			handle(10);
		now = look();
		same = now.fds == before.fds ? same + 1 : 0;
	}
	return now;
}

/* ms: what it lasts. */
static void churn(uint64_t ms, bool with_stalled, bool replace)
{
	static struct source edge = { AT_EDGE };
	uint64_t end = now_us() + ms * 1000, next = 0, next_replace = now_us() + REPLACE_MS * 1000;

	epoll_ctl(epoll, EPOLL_CTL_ADD, egress_fd(egress), &(struct epoll_event){ .events = EPOLLIN, .data.ptr = &edge });
	stalling = with_stalled;
	for (uint64_t now; (now = now_us()) < end;) {
		handle(next > now ? (int)((next - now) / 1000) + 1 : 0);
		if (now < next)
			continue;
		next = now + TICK_MS * 1000;
		tick();
		if (with_stalled)
			stall();
		if (replace && now >= next_replace) {
			struct box *b = &boxes[STALLED_BOXES + rand() % (n_boxes - STALLED_BOXES)];

			close_box(b);
			open_box(b);
			replaced++;
			next_replace = now + REPLACE_MS * 1000;
		}
	}
	relent();
}

/* ---- the result ---- */

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void tell(const char *name, struct series *s)
{
	qsort(s->v, s->n, sizeof *s->v, by_value);
	printf("{\"what\": \"%s\", \"n\": %zu, \"p50\": %.0f, \"p99\": %.0f}", name, s->n, s->n ? s->v[s->n / 2] : 0, s->n ? s->v[s->n * 99 / 100] : 0);
	s->n = 0;
}

static void load_profile(void)
{
	struct cs_buf yaml CS_BUF_AUTO = CS_BUF(65536);
	struct cs_err err = { 0 };

	cs_buf_str(&yaml, "network:\n  allow: [\"*.test:80/tcp\", \"tls.test:443/tls\", \"lost.example.net:80/tcp\"]\n  hosts:\n");
	for (int i = 0; i < NAMES; i++)
		cs_buf_fmt(&yaml, "    n%d.test: 127.0.0.1:%d\n", i, ECHO);
	cs_buf_fmt(&yaml, "    tls.test: 127.0.0.1:%d\n    mute.test: 127.0.0.1:%d\n    full.test: 127.0.0.1:%d\n    flood.test: 127.0.0.1:%d\n", ECHO, MUTE, FULL, FLOOD);
	if (profile_load_text(cs_buf_text(&yaml), yaml.len, "many", &profile, &err) < 0) {
		fprintf(stderr, "many: %s\n", err.msg);
		exit(1);
	}
}

static void prepare(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	egress = egress_new();
	boxes = cs_calloc((size_t)n_boxes, sizeof *boxes);
	for (int i = 0; i < n_boxes; i++) {
		struct box *b = &boxes[i];

		b->source.kind = AT_DNS;
		b->conns = cs_calloc((size_t)n_conns, sizeof *b->conns);
		for (int k = 0; k < n_conns; k++)
			b->conns[k] = (struct conn){ { AT_CONN }, b, -1, 0, false, now_us() + pause_us() };
		for (int k = 0; k < STALL_MAX * STALLED_EACH; k++)
			b->stalled[k] = (struct stalled){ { AT_STALL }, b, (enum stall)(k % STALL_MAX), -1 };
		open_box(b);
	}
}

int main(int argc, char **argv)
{
	int seconds = argc == 5 ? atoi(argv[3]) : 0, phases = argc == 5 ? atoi(argv[4]) : 0, status = 0;
	struct look warm, end, last;
	uint64_t began;

	n_boxes = argc == 5 ? atoi(argv[1]) : 0;
	n_conns = argc == 5 ? atoi(argv[2]) : 0;
	if (n_boxes <= STALLED_BOXES || n_conns < 1 || seconds < 1 || phases < 2)
		return fprintf(stderr, "usage: many BOXES CONNECTIONS SECONDS PHASES\n"), 2;
	(void)signal(SIGPIPE, SIG_IGN);
	load_profile();
	start_servers();
	prepare();
	/* Both kinds once, so that what is kept for later is there. */
	churn(2000, true, true);
	churn(1000, false, true);
	warm = quiet();
	churn(1000, false, false);
	setup[0].n = setup[1].n = word[0].n = word[1].n = 0;
	failures = moved = connections = replaced = 0;
	began = now_us();
	printf("{\"phases\": [");
	for (int i = 0; i < phases; i++) {
		churn((uint64_t)seconds * 1000 / (uint64_t)phases, i % 2, true);
		printf("%s{\"stalled\": %s, \"setup\": ", i ? ", " : "", i % 2 ? "true" : "false");
		tell("setup", &setup[i % 2]);
		printf(", \"word\": ");
		tell("word", &word[i % 2]);
		printf("}");
	}
	began = now_us() - began;
	end = quiet();
	for (int i = 0; i < n_boxes; i++)
		close_box(&boxes[i]);
	for (int i = 0; i < 20; i++)
		handle(10);
	last = look();
	/* Not egress_free(): it is to end by itself, and to say what it has lost. */
	close(egress->sock);
	if (waitpid(egress->pid, &status, 0) < 0)
		die("wait for the boundary");
	printf("], \"seconds\": %.1f, \"connections\": %lu, \"bytes\": %lu, \"failures\": %lu, \"lookups\": %lu, \"remapped\": %lu, \"replaced\": %lu, "
	       "\"totals_wrong\": %lu, \"restarts\": %u, \"exit\": %d, "
	       "\"warm\": {\"fds\": %d, \"pipes\": %d, \"rss_kib\": %ld}, \"end\": {\"fds\": %d, \"pipes\": %d, \"rss_kib\": %ld}, \"empty\": {\"fds\": %d, \"pipes\": %d, "
	       "\"rss_kib\": %ld}}\n",
	       (double)began / 1e6, connections, moved, failures, lookups, remapped, replaced, totals_wrong, egress->starts - 1,
	       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), warm.fds, warm.pipes, warm.rss_kib, end.fds, end.pipes, end.rss_kib, last.fds,
	       last.pipes, last.rss_kib);
	return 0;
}
