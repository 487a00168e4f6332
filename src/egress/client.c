/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - starting caisson-edge, and speaking to it.
 *
 * Everything is request and answer: it never speaks first, so a socket that is
 * readable between requests means that it has ended. */
#include "egress/internal.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 15, BUNDLE_MAX = 8 << 20 };

const char *egress_kind_name(enum egress_kind k)
{
	static const char *const names[] = {
#define X(id, name) [EGRESS_##id] = name,
		EGRESS_KINDS(X)
#undef X
	};
	return k < sizeof names / sizeof *names ? names[k] : "?";
}

struct egress *egress_new(void)
{
	struct egress *e = cs_new(struct egress);

	e->sock = e->pid = -1;
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	return e;
}

const char *egress_trouble(const struct egress *e)
{
	return e->trouble[0] ? e->trouble : NULL;
}

int egress_fd(const struct egress *e)
{
	return e->epoll;
}

/* ---- the process ---- */

/* Beside us, or where an installation puts it. */
static int find_edge(char *ret, size_t size, struct cs_err *err)
{
	static const char *const places[] = { "", "../libexec/caisson/", "../lib/caisson/" };
	char self[512], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n <= 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "find out where this program is");
	self[n] = 0;
	slash = strrchr(self, '/');
	if (slash)
		slash[1] = 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (snprintf(ret, size, "%s%scaisson-edge", self, places[i]) < (int)size && access(ret, X_OK) == 0)
			return 0;
	return cs_fail(err, CS_E_NOT_FOUND, 0, "the network boundary, caisson-edge, is not installed: it belongs beside this program or in ../libexec/caisson/");
}

static _Noreturn void become_edge(const char *path, int sock)
{
	static char name[] = "caisson-edge";
	char *argv[] = { name, NULL };
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || (sock != 3 && dup2(sock, 3) < 0) || fcntl(3, F_SETFD, 0) < 0)
		_exit(125);
	(void)close_range(4, ~0u, 0);
	(void)setsid(); /* keys on our terminal are not for it */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(path, argv);
	_exit(125);
}

static int start_edge(struct egress *e, struct cs_err *err)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = e };
	char path[600];
	int pair[2], r;

	if (e->sock >= 0)
		return 0;
	if (e->starts >= EGRESS_RESTARTS_MAX)
		return cs_fail(err, CS_E_SYSTEM, 0, "the network boundary has ended unexpectedly %u times: it is not started again", e->starts);
	r = find_edge(path, sizeof path, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make a socket pair");
	e->pid = fork();
	if (e->pid == 0)
		become_edge(path, pair[1]);
	close(pair[1]);
	if (e->pid < 0 || epoll_ctl(e->epoll, EPOLL_CTL_ADD, pair[0], &ev) < 0) {
		close(pair[0]);
		return cs_fail(err, CS_E_SYSTEM, errno, "start the network boundary");
	}
	(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	e->sock = pair[0];
	e->starts++;
	return 0;
}

static void watch_box(struct egress_box *b, bool on);

/* What it served waits in its sockets until the next start; where it cannot go on they are closed, so
 * that nothing hangs. */
static void lose_edge(struct egress *e, const char *why)
{
	if (e->sock < 0)
		return;
	close(e->sock);
	e->sock = -1;
	if (e->pid > 0) {
		(void)kill(e->pid, SIGKILL);
		(void)waitpid(e->pid, NULL, 0);
	}
	e->pid = -1;
	snprintf(e->trouble, sizeof e->trouble, "the network boundary ended unexpectedly%s%s", why ? ": " : "", why ? why : "");
	for (struct egress_box *b = e->boxes; b; b = b->next) {
		bool served = b->served;

		b->lost |= b->open && (b->intercepts || b->publishes || b->budgets || b->reached);
		b->open = b->served = false;
		if (served && !b->lost)
			watch_box(b, true);
		if (!b->lost)
			continue;
		for (size_t i = 0; i < b->n_fds; i++)
			close(b->fds[i]);
		b->n_fds = 0;
	}
}

/* One request and its answer. */
static int ask(struct egress *e, struct egress_message *m, const void *text, size_t len, const int *fds, size_t n_fds, int *ret_fds,
	       size_t *n_ret, struct cs_err *err)
{
	char answer[EGRESS_TEXT_MAX + 1];
	size_t none = 0;

	if (egress_send(e->sock, m, text, len, fds, n_fds) < 0 || egress_receive(e->sock, m, answer, ret_fds, n_ret ? n_ret : &none) < 0) {
		int sys = errno;

		lose_edge(e, sys == EAGAIN ? "it did not answer" : NULL);
		return cs_fail(err, CS_E_SYSTEM, sys == EPIPE ? 0 : sys, "the network boundary does not answer");
	}
	if (m->what == EGRESS_ERROR)
		return cs_fail(err, m->a > CS_OK && m->a < CS_CODE_MAX ? (enum cs_code)m->a : CS_E_SYSTEM, 0, "%s", answer);
	return 0;
}

/* ---- boxes ---- */

static int memory_file(const void *data, size_t len)
{
	CS_FD int fd = memfd_create("caisson-profile", MFD_CLOEXEC);

	if (fd < 0 || cs_write_all(fd, data, len) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return CS_TAKE_FD(fd);
}

static int take_bundle(struct cs_buf *b, int take_fd, struct cs_err *err)
{
	CS_FD int fd = take_fd;

	b->max = BUNDLE_MAX;
	return lseek(fd, 0, SEEK_SET) < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "read the certificates") : cs_buf_read_fd(b, fd, "the certificates", err);
}

static int open_box(struct egress_box *b, struct cs_err *err)
{
	struct egress_message m = { EGRESS_OPEN, b->number, (b->learn ? EGRESS_LEARN : 0) | (b->log >= 0 ? EGRESS_LOG : 0) | (b->reached ? EGRESS_TELL_REACHED : 0), 0 };
	struct cs_buf text CS_BUF_AUTO = CS_BUF(EGRESS_TEXT_MAX);
	int fds[2], got[2] = { -1, -1 }, r;
	size_t n = 2;

	if (b->open)
		return 0;
	r = start_edge(b->egress, err);
	if (r < 0)
		return r;
	if (lseek(b->yaml, 0, SEEK_SET) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "hand the profile to the network boundary");
	cs_buf_add(&text, b->id, strlen(b->id) + 1);
	for (size_t i = 0; i < b->placeholders.n; i++)
		cs_buf_add(&text, b->placeholders.v[i], strlen(b->placeholders.v[i]) + 1);
	fds[0] = b->yaml;
	fds[1] = b->log;
	r = ask(b->egress, &m, text.data, text.len, fds, b->log >= 0 ? 2 : 1, got, &n, err);
	if (r == 0 && m.a == 1 && n == 2 && !b->bundle.len) {
		r = take_bundle(&b->bundle, CS_TAKE_FD(got[0]), err);
		if (r == 0)
			r = take_bundle(&b->jks, CS_TAKE_FD(got[1]), err);
		if (r == 0)
			egress_plan_trust(b);
	}
	for (int i = 0; i < 2; i++)
		cs_close_p(&got[i]);
	b->open = r == 0;
	return r;
}

static int listen_control(struct egress_box *b, const char *path, struct cs_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof a.sun_path)
		return cs_fail(err, CS_E_LIMIT, 0, "'%s' is too long for a socket", path);
	memcpy(a.sun_path, path, strlen(path) + 1);
	(void)unlink(path); /* of a dead one of the same id */
	b->control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (b->control < 0 || bind(b->control, (struct sockaddr *)&a, sizeof a) < 0 || chmod(path, 0600) < 0 || listen(b->control, 8) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "listen at '%s'", path);
	b->control_path = cs_strdup(path);
	return 0;
}

static bool has_budgets(const struct profile_budget *b)
{
	return b->bytes_out || b->bytes_in || b->connections || b->requests;
}

static int keep_profile(struct egress_box *b, const struct profile *p, struct cs_err *err)
{
	struct cs_buf yaml CS_BUF_AUTO = CS_BUF(1 << 20);

	if (profile_network_text(p, &yaml) < 0)
		return cs_fail(err, CS_E_LIMIT, 0, "the profile's network is too long");
	b->yaml = memory_file(cs_buf_text(&yaml), yaml.len);
	return b->yaml < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "keep the profile's network") : 0;
}

int egress_box_rules(const struct egress_box *b)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", b->yaml);
	return open(path, O_RDONLY | O_CLOEXEC); /* with a place to read from of its own */
}

static int load_rules(int fd, struct profile *ret, struct cs_err *err)
{
	struct cs_buf yaml CS_BUF_AUTO = CS_BUF(1 << 20);
	int r = lseek(fd, 0, SEEK_SET) < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "read the rules") : cs_buf_read_fd(&yaml, fd, "the rules", err);

	return r < 0 ? r : profile_load_text(cs_buf_text(&yaml), yaml.len, "the rules", ret, err);
}

static int new_box(struct egress *e, const struct egress_box_opts *o, const struct profile *profile, struct egress_box **ret, struct cs_err *err)
{
	const struct profile_network *n = &profile->network;
	struct egress_box *b = cs_new(struct egress_box);
	int r;

	b->egress = e;
	b->number = ++e->last_box;
	b->id = cs_strdup(o->id);
	b->learn = o->learn;
	b->reached = o->reached;
	b->publishes = n->publish.n > 0;
	b->log = o->log >= 0 ? fcntl(o->log, F_DUPFD_CLOEXEC, 3) : -1;
	b->control = -1;
	b->yaml = -1;
	b->budgets = has_budgets(&n->budget) || has_budgets(&n->per_host);
	b->next = e->boxes;
	e->boxes = b;
	r = keep_profile(b, profile, err);
	if (r == 0)
		r = egress_plan_make(b, n, err);
	if (r == 0 && o->control)
		r = listen_control(b, o->control, err);
	if (r == 0 && (b->intercepts || b->publishes))
		r = open_box(b, err);
	if (r < 0) {
		egress_box_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

int egress_box_new(struct egress *e, const struct egress_box_opts *o, struct egress_box **ret, struct cs_err *err)
{
	struct profile changed = { 0 };
	int r = o->rules ? load_rules(*o->rules, &changed, err) : 0;

	if (r == 0)
		r = new_box(e, o, o->rules ? &changed : o->profile, ret, err);
	profile_done(&changed);
	return r;
}

const struct egress_plan *egress_box_plan(const struct egress_box *b)
{
	return &b->plan;
}

/* Until the boundary has them, we look whether something comes. */
static void watch_box(struct egress_box *b, bool on)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = b };

	for (size_t i = 1; i < b->n_fds; i++) /* not the namespace */
		(void)epoll_ctl(b->egress->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, b->fds[i], &ev);
	if (b->control >= 0)
		(void)epoll_ctl(b->egress->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, b->control, &ev);
}

static void forget_listening(struct egress_box *b);

static int serve_box(struct egress_box *b, struct cs_err *err)
{
	struct egress_message m = { EGRESS_SERVE, b->number, b->control >= 0, 0 };
	int fds[EGRESS_BOX_FDS + 1], r;
	size_t n = 0;

	if (b->served)
		return 0;
	if (b->lost)
		return cs_fail(err, CS_E_SYSTEM, 0, "%s", b->egress->trouble);
	r = open_box(b, err);
	if (r < 0)
		return r;
	if (b->control >= 0)
		fds[n++] = b->control;
	memcpy(fds + n, b->fds, b->n_fds * sizeof *fds);
	r = ask(b->egress, &m, NULL, 0, fds, n + b->n_fds, NULL, NULL, err);
	b->served = r == 0;
	forget_listening(b);
	return r;
}

/* What cannot be served is closed: refused at once, not left hanging. */
static void fail_box(struct egress_box *b, const struct cs_err *err)
{
	snprintf(b->egress->trouble, sizeof b->egress->trouble, "%.*s", (int)sizeof b->egress->trouble - 1, err->msg);
	b->lost = true;
	for (size_t i = 0; i < b->n_fds; i++)
		close(b->fds[i]);
	b->n_fds = 0;
}

static void wake_box(struct egress_box *b)
{
	struct cs_err err = { 0 };

	watch_box(b, false);
	if (serve_box(b, &err) < 0)
		fail_box(b, &err);
}

void egress_box_serve(struct egress_box *b, const int *take_fds, size_t n)
{
	memcpy(b->fds, take_fds, n * sizeof *b->fds);
	b->n_fds = n;
	watch_box(b, true);
	if (b->open) /* it runs already: then at once */
		wake_box(b);
}

static bool has_port(const struct egress_box *b, uint16_t port)
{
	for (size_t i = 0; i < b->plan.n_ports; i++)
		if (b->ports[i] == port)
			return true;
	return false;
}

static bool is_listening(const struct egress_box *b, const void *sockaddr, size_t len)
{
	for (size_t i = 0; i < sizeof b->listening / sizeof *b->listening; i++)
		if (len && b->listening[i].len == len && !memcmp(b->listening[i].sockaddr, sockaddr, len))
			return true;
	return false;
}

static void forget_listening(struct egress_box *b)
{
	memset(b->listening, 0, sizeof b->listening);
}

/* dropped: what the boundary says with it.  It drops one only when it makes another. */
static void note_listening(struct egress_box *b, const void *sockaddr, size_t len, uint32_t dropped)
{
	struct egress_listening *l = &b->listening[b->next_listening++ % (sizeof b->listening / sizeof *b->listening)];

	if (dropped != b->dropped)
		forget_listening(b);
	b->dropped = dropped;
	if (len > sizeof l->sockaddr)
		return;
	memcpy(l->sockaddr, sockaddr, len);
	l->len = len;
}

bool egress_box_connecting(struct egress_box *b, const void *sockaddr, size_t len, bool stream)
{
	struct egress_message m = { EGRESS_WANT, b->number, 0, 0 };
	struct cs_err err = { 0 };
	uint16_t port;

	memcpy(&port, (const char *)sockaddr + 2, sizeof port); /* the same place in both families */
	port = (uint16_t)(port >> 8 | port << 8);
	if (egress_plan_covers(b, sockaddr, len) && (has_port(b, port) || port == 0))
		return true;
	/* Resolvers connect datagram sockets, and send nothing, to see which of a name's addresses have a route. */
	if (!stream)
		return egress_plan_covers(b, sockaddr, len);
	if (!b->served && !b->lost && b->n_fds)
		wake_box(b);
	if (!b->served)
		return false;
	if (is_listening(b, sockaddr, len))
		return true;
	if (ask(b->egress, &m, sockaddr, len, NULL, 0, NULL, NULL, &err) < 0) /* refused is refused */
		forget_listening(b);
	else
		note_listening(b, sockaddr, len, m.a);
	return b->served;
}

void egress_handle(struct egress *e)
{
	struct epoll_event ev[16];
	int n = epoll_wait(e->epoll, ev, 16, 0);

	for (int i = 0; i < n; i++) {
		if (ev[i].data.ptr == e) {
			lose_edge(e, NULL);
			return; /* what else was ready is so still */
		}
	}
	for (int i = 0; i < n; i++) {
		struct egress_box *b = ev[i].data.ptr;

		if (!b->served && !b->lost)
			wake_box(b);
	}
}

void egress_box_end(struct egress_box *b, struct egress_totals *ret, void (*visit)(const struct egress_told *t, void *arg), void *arg)
{
	struct egress_message m = { EGRESS_END, b->number, 0, 0 };
	char text[EGRESS_TEXT_MAX + 1];
	int sock = b->egress->sock;

	*ret = (struct egress_totals){ 0 };
	if (!b->open || egress_send(sock, &m, NULL, 0, NULL, 0) < 0)
		return;
	b->open = b->served = false;
	for (;;) {
		size_t none = 0;
		ssize_t n = egress_receive(sock, &m, text, NULL, &none);
		struct egress_told t;

		if (n < 0 || (m.what != EGRESS_TOLD && m.what != EGRESS_TOTALS)) {
			lose_edge(b->egress, NULL);
			return;
		}
		if (m.what == EGRESS_TOTALS) {
			memcpy(ret, text, (size_t)n < sizeof *ret ? (size_t)n : sizeof *ret);
			return;
		}
		if ((size_t)n != sizeof t || !visit)
			continue;
		memcpy(&t, text, sizeof t);
		t.what[sizeof t.what - 1] = t.reason[sizeof t.reason - 1] = t.fix[sizeof t.fix - 1] = 0;
		visit(&t, arg);
	}
}

void egress_box_free(struct egress_box *b)
{
	struct egress_box **at;

	if (!b)
		return;
	for (at = &b->egress->boxes; *at != b; at = &(*at)->next)
		;
	*at = b->next;
	for (size_t i = 0; i < b->n_fds; i++)
		close(b->fds[i]);
	cs_close_p(&b->log);
	cs_close_p(&b->control);
	if (b->control_path)
		(void)unlink(b->control_path);
	free(b->control_path);
	free(b->id);
	free(b->resolv);
	cs_strv_done(&b->trusting);
	cs_close_p(&b->yaml);
	cs_buf_done(&b->bundle);
	cs_buf_done(&b->jks);
	cs_strv_done(&b->placeholders);
	cs_strv_done(&b->plan.env);
	free(b);
}

void egress_free(struct egress *e)
{
	if (!e)
		return;
	if (e->sock >= 0)
		close(e->sock); /* then it ends by itself */
	if (e->pid > 0) {
		(void)kill(e->pid, SIGKILL); /* at once: what it knew has been asked */
		(void)waitpid(e->pid, NULL, 0);
	}
	close(e->epoll);
	free(e);
}

int egress_probe(struct cs_err *err)
{
	static const char text[] = "extends: none\nname: probe\nnetwork:\n  allow: [\"probe.example.com\"]\n";
	struct egress_box_opts o = { .id = "probe", .log = -1 };
	struct egress_totals totals;
	struct egress_box *b = NULL;
	struct profile p = { 0 };
	struct egress *e = egress_new();
	int r = profile_load_text(text, sizeof text - 1, "probe", &p, err);

	o.profile = &p;
	if (r == 0)
		r = egress_box_new(e, &o, &b, err);
	if (r == 0)
		r = open_box(b, err);
	if (r == 0)
		egress_box_end(b, &totals, NULL, NULL);
	if (r == 0 && egress_trouble(e))
		r = cs_fail(err, CS_E_SYSTEM, 0, "%s", egress_trouble(e));
	egress_box_free(b);
	egress_free(e);
	profile_done(&p);
	return r;
}

void egress_forget(struct egress *e)
{
	e->pid = -1;
	for (struct egress_box *b = e->boxes; b; b = b->next) {
		free(b->control_path);
		b->control_path = NULL;
	}
}

int egress_control(const char *path, const char *request, struct cs_buf *reply, struct cs_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	CS_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	if (strlen(path) >= sizeof a.sun_path)
		return cs_fail(err, CS_E_LIMIT, 0, "'%s' is too long for a socket", path);
	memcpy(a.sun_path, path, strlen(path) + 1);
	if (fd < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make a socket");
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		return cs_fail(err, errno == ENOENT || errno == ECONNREFUSED ? CS_E_NOT_FOUND : CS_E_SYSTEM, errno == ENOENT ? 0 : errno,
			       "no running sandbox of that id has a network (`caisson ps` lists those that run)");
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (cs_write_all(fd, request, strlen(request)) < 0 || cs_write_all(fd, "\n", 1) < 0 || shutdown(fd, SHUT_WR) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "speak to the network boundary");
	r = cs_buf_read_fd(reply, fd, "the network boundary's answer", err);
	if (r < 0)
		return r;
	if (!strncmp(cs_buf_text(reply), "error ", 6))
		return cs_fail(err, CS_E_DENIED, 0, "%.*s", (int)strcspn(cs_buf_text(reply) + 6, "\n"), cs_buf_text(reply) + 6);
	if (strncmp(cs_buf_text(reply), "ok\n", 3))
		return cs_fail(err, CS_E_SYSTEM, 0, "the network boundary does not answer");
	return 0;
}
