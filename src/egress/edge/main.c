/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - caisson-edge: the network boundary of any number of sandboxes.
 *
 * Started by caisson with a socket as descriptor 3; it is not for people to call. When
 * that socket is closed everything here is, and sandboxes are without a network. */
#include "egress/edge/edge.h"

#include "base/cleanup.h"
#include "base/say.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST_BUNDLE "/etc/ssl/certs/ca-certificates.crt"
enum { SOCK = 3, BUNDLE_MAX = 4 << 20 };

/* Nobody reads our memory, we leave no image of it, and we gain nothing by exec. */
static void confine(void)
{
	struct rlimit files, none = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)setrlimit(RLIMIT_CORE, &none);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* connections are descriptors */
	}
#ifndef CS_TEST_SWITCHES
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
}

static struct box *find_box(struct edge *e, uint32_t number)
{
	for (struct box *b = e->boxes; b; b = b->next)
		if (b->number == number)
			return b;
	return NULL;
}

static void answer(uint32_t what, uint32_t a, const void *text, size_t len, const int *fds, size_t n_fds)
{
	struct egress_message m = { what, 0, a, 0 };

	if (egress_send(SOCK, &m, text, len, fds, n_fds) < 0)
		exit(0); /* nobody is there */
}

static void answer_error(const struct cs_err *err)
{
	answer(EGRESS_ERROR, err->code, err->msg, strlen(err->msg), NULL, 0);
}

static int memory_file(const struct cs_buf *b)
{
	int fd = memfd_create("caisson-certificates", MFD_CLOEXEC);

	if (fd >= 0 && cs_write_all(fd, b->data, b->len) < 0)
		cs_close_p(&fd), fd = -1;
	return fd;
}

/* Whom programs inside are to trust: whom the host trusts, and us. */
static int give_trust(struct box *b, struct cs_err *err)
{
	struct cs_buf host CS_BUF_AUTO = CS_BUF(BUNDLE_MAX), pem CS_BUF_AUTO = CS_BUF(BUNDLE_MAX * 2), jks CS_BUF_AUTO = CS_BUF(BUNDLE_MAX * 2);
	CS_FD int from = open(HOST_BUNDLE, O_RDONLY | O_CLOEXEC), a = -1, c = -1;
	int r = from < 0 ? 0 : cs_buf_read_fd(&host, from, HOST_BUNDLE, err), fds[2];

	if (r < 0)
		return r;
	ca_bundle_pem(b->ca, cs_buf_text(&host), &pem);
	r = ca_bundle_jks(b->ca, cs_buf_text(&host), &jks, err);
	if (r < 0)
		return r;
	a = memory_file(&pem);
	c = memory_file(&jks);
	if (a < 0 || c < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "hand out the certificates");
	fds[0] = a, fds[1] = c;
	answer(EGRESS_OK, 1, NULL, 0, fds, 2);
	return 0;
}

static void on_open(struct edge *e, const struct egress_message *m, const char *text, size_t len, int *fds, size_t n)
{
	struct cs_err err = { 0 };
	struct box *b = NULL;
	bool log = m->a & EGRESS_LOG;
	int r;

	if (n != (log ? 2u : 1u) || find_box(e, m->box)) {
		(void)cs_fail(&err, CS_E_INVALID, 0, "not a request to open");
		answer_error(&err);
		return;
	}
	r = box_open(e, m->box, text, len, CS_TAKE_FD(fds[0]), log ? CS_TAKE_FD(fds[1]) : -1, m->a & EGRESS_LEARN, &b, &err);
	if (r == 0)
		b->tells_reached = m->a & (EGRESS_LEARN | EGRESS_TELL_REACHED);
	if (r == 0 && b->ca)
		r = give_trust(b, &err);
	else if (r == 0)
		answer(EGRESS_OK, 0, NULL, 0, NULL, 0);
	if (r < 0)
		answer_error(&err);
}

/* As root: before the first byte from inside is read, all that root could do goes.  Secrets have been
 * read and ports are bound by then; a small process that reads nothing hostile keeps the power to
 * enter namespaces. */
static int drop_root(struct edge *e, struct cs_err *err)
{
	enum { NOBODY = 65534 };

	if (e->dropped || geteuid() != 0)
		return 0;
	if (maker_start(e) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "start the boundary's maker of sockets");
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS, 0, 0, 0) < 0) /* they go below, the bounding set with them */
		return cs_fail(err, CS_E_SYSTEM, errno, "keep capabilities for a moment");
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0) {
		/* Where only a few ids are mapped we stay who we are, without any capability. */
		if (errno != EINVAL)
			return cs_fail(err, CS_E_SYSTEM, errno, "give up root");
	}
	if (sys_drop_caps() < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "give up capabilities");
#ifdef CS_ASAN
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* the search for leaks looks at us from a process of its own */
#endif
	confine(); /* a change of ids undoes part of it */
	e->dropped = true;
	return 0;
}

static void allow_reading(int rules, int abi, const char *path)
{
	CS_FD int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;

	if (fd >= 0 && sys_landlock_allow(rules, fd, sys_landlock_fs_read()) < 0)
		(void)sys_landlock_allow(rules, fd, sys_landlock_fs_read() & sys_landlock_fs_file(abi)); /* a file takes fewer rights */
}

/* What is to be read from here on, and nothing else: whom to trust, whom to ask, libraries. */
static int lock_files(struct cs_err *err)
{
	static const char *const read[] = { "/etc", "/usr", "/lib", "/lib64", "/run/systemd/resolve", "/run/resolvconf", "/dev/null", "/dev/urandom",
					    "/proc/sys/net",
#ifdef CS_ASAN
					    "/proc",
#endif
	};
	static bool done;
	int abi = sys_landlock_abi();
	CS_FD int rules = !done && abi > 0 ? sys_landlock_create(abi) : -1;

	if (rules < 0)
		return 0;
	for (size_t i = 0; i < sizeof read / sizeof *read; i++)
		allow_reading(rules, abi, read[i]);
	allow_reading(rules, abi, getenv("SSL_CERT_DIR"));
	if (sys_landlock_enter(rules) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "enter Landlock");
	done = true;
	return 0;
}

static void on_serve(struct box *b, const struct egress_message *m, int *fds, size_t n)
{
	size_t first = m->a ? 1 : 0;
	struct cs_err err = { 0 };
	int r = n <= first ? cs_fail(&err, CS_E_INVALID, 0, "not a request to serve") : drop_root(b->edge, &err);

	if (r == 0)
		r = lock_files(&err);
	if (r == 0)
		r = box_serve(b, first ? fds[0] : -1, fds + first, n - first, &err);

	/* Whatever came of it, they are the box's: they go with it. */
	for (size_t i = 0; r == 0 && i < n; i++)
		fds[i] = -1;
	if (r < 0)
		answer_error(&err);
	else
		answer(EGRESS_OK, 0, NULL, 0, NULL, 0);
}

static void on_want(struct box *b, const char *text, size_t len)
{
	char sockaddr[sizeof(struct sockaddr_in6)] = { 0 };
	struct cs_err err = { 0 };
	struct net_addr a;
	uint16_t port;

	memcpy(sockaddr, text, len < sizeof sockaddr ? len : sizeof sockaddr);
	a = sockaddr_addr(sockaddr, &port);
	if (box_want(b, &a, port, &err) < 0)
		answer_error(&err);
	else
		answer(EGRESS_OK, b->dropped, NULL, 0, NULL, 0);
}

/* What was reached, as rules that would have sufficed. */
static void tell_reached(struct box *b)
{
	for (size_t i = 0; i < b->hosts.n_buckets; i++)
		for (const struct host *h = b->hosts.buckets[i]; h; h = h->next)
			for (int k = 0; k < h->n_ports; k++) {
				struct egress_told t = { .kind = EGRESS_REACHED, .count = 1 };
				bool six = !h->index && strchr(h->name, ':');

				snprintf(t.what, sizeof t.what, "%.250s", h->name);
				snprintf(t.fix, sizeof t.fix, "%s%.170s%s:%u", six ? "[" : "", h->name, six ? "]" : "", h->ports[k]);
				answer(EGRESS_TOLD, 0, &t, sizeof t, NULL, 0);
			}
}

static void on_end(struct box *b)
{
	struct egress_totals t = b->totals;

	t.bytes_in = b->use.bytes_in;
	t.bytes_out = b->use.bytes_out;
	t.connections = b->use.connections;
	for (size_t i = 0; i < b->n_told; i++)
		answer(EGRESS_TOLD, 0, &b->told[i], sizeof b->told[i], NULL, 0);
	if (b->tells_reached)
		tell_reached(b);
	box_free(b);
	answer(EGRESS_TOTALS, 0, &t, sizeof t, NULL, 0);
}

static void on_caller(struct watch *w, uint32_t events)
{
	static char text[EGRESS_TEXT_MAX + 1];
	struct edge *e = LOOP_OF(w, struct edge, sock);
	int fds[EGRESS_FDS_MAX];
	size_t n = EGRESS_FDS_MAX;
	struct egress_message m;
	ssize_t len = egress_receive(w->fd, &m, text, fds, &n);
	struct box *b;

	(void)events;
	if (len < 0) {
		loop_stop(e->loop);
		return;
	}
	b = find_box(e, m.box);
	if (m.what == EGRESS_OPEN)
		on_open(e, &m, text, (size_t)len, fds, n);
	else if (b && m.what == EGRESS_SERVE)
		on_serve(b, &m, fds, n);
	else if (b && m.what == EGRESS_WANT)
		on_want(b, text, (size_t)len);
	else if (b && m.what == EGRESS_END)
		on_end(b);
	else
		answer_error(&(struct cs_err){ .code = CS_E_INVALID, .msg = "not a request" });
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int main(void)
{
	struct edge e = { .sock = { .fd = -1, .ready = on_caller }, .maker = -1 };
	struct cs_err err = { 0 };
	struct stat st;

	if (fstat(SOCK, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		fputs("caisson-edge is started by caisson, when a sandbox has a network\n", stderr);
		return 125;
	}
	(void)fcntl(SOCK, F_SETFD, FD_CLOEXEC);
	confine();
	e.loop = loop_new();
	e.resolver = e.loop ? resolver_new(e.loop, &err) : NULL;
	if (!e.resolver || loop_watch(e.loop, &e.sock, SOCK, EPOLLIN) < 0 || loop_run(e.loop) < 0) {
		say_error("the network boundary cannot start: %s", err.msg[0] ? err.msg : strerror(errno));
		return 125;
	}
	while (e.boxes)
		box_free(e.boxes);
	SSL_CTX_free(e.upstream);
	resolver_free(e.resolver);
	loop_free(e.loop);
	return 0;
}
