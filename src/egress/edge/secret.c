/* SPDX-License-Identifier: Apache-2.0 */
/* secret.c - reading, holding and placing secrets.
 *
 * A value is read straight into pages of its own that are locked and left out
 * of core dumps; it passes through no other buffer here.  Only secret_header()
 * makes a copy, which its caller wipes. */
#include "egress/edge/secret.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	TIME_LIMIT_MS = 10 * 1000,
	TICK_MS = 20,
	OUTPUT_MAX = 64 * 1024, /* of a command; its first line is at most SECRET_MAX */
	HEADER_MAX = 64 * 1024,
};

/* ---- where values are ---- */

/* The head of a value's pages.  A variable is wiped from the environment when it is read; a second secret that
 * names the same one finds it here. */
struct area {
	struct area *next;
	size_t size, refs;
	char variable[128]; /* "" unless from the environment */
	size_t len;
	char value[];
};

enum { AREA_SIZE = 20 * 1024 };
_Static_assert(AREA_SIZE >= sizeof(struct area) + SECRET_MAX + 3, "a line, its CR LF and one byte more");

static struct area *areas;

static struct area *area_of(char *value)
{
	return (struct area *)(void *)(value - offsetof(struct area, value));
}

static struct area *area_new(struct cs_err *err)
{
	struct area *a = mmap(NULL, AREA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (a == MAP_FAILED)
		return cs_fail(err, CS_E_SYSTEM, errno, "memory for a secret"), NULL;
	if (mlock(a, AREA_SIZE) < 0) {
		int e = errno;

		(void)munmap(a, AREA_SIZE);
		return cs_fail(err, CS_E_SYSTEM, e, "lock the memory of a secret (see `ulimit -l`)"), NULL;
	}
	(void)madvise(a, AREA_SIZE, MADV_DONTDUMP); /* an old kernel without it still does not swap */
	a->size = AREA_SIZE;
	a->refs = 1;
	a->next = areas;
	areas = a;
	return a;
}

/* Gives back the pages that the value did not need; locked memory is scarce.  They have been wiped. */
static void area_trim(struct area *a)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), keep = (sizeof *a + a->len + page) / page * page;

	if (keep < a->size && munmap((char *)a + keep, a->size - keep) == 0)
		a->size = keep;
}

static void area_unref(struct area *a)
{
	struct area **at = &areas;

	if (!a || --a->refs)
		return;
	while (*at && *at != a)
		at = &(*at)->next;
	if (*at)
		*at = a->next;
	explicit_bzero(a, a->size);
	(void)munmap(a, a->size);
}

static void area_unref_p(struct area **a)
{
	area_unref(*a);
}

/* ---- reading ---- */

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Cuts the area at the first line's end and wipes the rest.  true: the line was there whole. */
static bool cut_line(struct area *a)
{
	char *nl = memchr(a->value, '\n', a->len);
	size_t was = a->len;

	if (nl)
		a->len = (size_t)(nl - a->value);
	while (a->len && a->value[a->len - 1] == '\r')
		a->len--;
	explicit_bzero(a->value + a->len, was - a->len);
	return nl;
}

/* One read.  1: more may come; 0: the end, or enough; -1: errno. */
static int read_some(int fd, struct area *a)
{
	size_t room = AREA_SIZE - sizeof *a - 1 - a->len;
	ssize_t n = room ? read(fd, a->value + a->len, room) : 0;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : -1;
	a->len += (size_t)n;
	return n && !memchr(a->value, '\n', a->len);
}

static int from_file(const char *path, struct area *a, struct cs_err *err)
{
	/* Nonblocking: a FIFO that nobody writes to must not hold the start up. */
	CS_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	long end = now_ms() + TIME_LIMIT_MS;
	struct stat st;
	char shown[256];

	cs_escape_to(shown, sizeof shown, path);
	if (fd < 0)
		return cs_fail(err, errno == ENOENT ? CS_E_NOT_FOUND : CS_E_SYSTEM, errno, "open '%s'", shown);
	if (fstat(fd, &st) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "stat '%s'", shown);
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return cs_fail(err, CS_E_INVALID, 0, "'%s' is neither a file nor a pipe", shown);
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long left = end - now_ms();
		int r = left > 0 ? poll(&p, 1, (int)left) : 0;

		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0)
			return cs_fail(err, CS_E_LIMIT, 0, "nothing came from '%s' within %d s", shown, TIME_LIMIT_MS / 1000);
		r = r < 0 ? -1 : read_some(fd, a);
		if (r < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "read '%s'", shown);
		if (r == 0)
			return 0;
	}
}

static int from_env(const char *variable, struct area **a, struct cs_err *err)
{
	char *v, shown[160];
	size_t n;

	if (strlen(variable) >= sizeof (*a)->variable)
		return cs_fail(err, CS_E_INVALID, 0, "the name of its variable is too long");
	for (struct area *had = areas; had; had = had->next)
		if (*variable && !strcmp(had->variable, variable)) {
			area_unref(*a);
			*a = had;
			had->refs++;
			return 0;
		}
	v = getenv(variable);
	if (!v)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "the variable %s is not set",
			       cs_escape_to(shown, sizeof shown, variable));
	n = strlen(v);
	if (n > SECRET_MAX + 2)
		return cs_fail(err, CS_E_LIMIT, 0, "longer than %d bytes", SECRET_MAX);
	memcpy((*a)->value, v, n);
	(*a)->len = n;
	memcpy((*a)->variable, variable, strlen(variable) + 1);
	/* unsetenv() only forgets where it was; /proc/PID/environ would go on showing it. */
	explicit_bzero(v, n);
	(void)unsetenv(variable);
	return 0;
}

/* ---- a command ---- */

static int start_command(const char *line, pid_t *ret_pid, int *ret_fd, struct cs_err *err)
{
	char sh[] = "sh", c[] = "-c";
	CS_FREE char *text = cs_strdup(line);
	char *argv[] = { sh, c, text, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int p[2], e;

	if (pipe2(p, O_CLOEXEC) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make a pipe");
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, p[1], 1);
	/* What it complains of may hold what it was to print. */
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addclosefrom_np(&files, 3);
	posix_spawnattr_init(&attr);
	/* A session of its own: it can ask no terminal, and is killed with what it started. */
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	e = posix_spawn(ret_pid, "/bin/sh", &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	(void)close(p[1]);
	if (e) {
		(void)close(p[0]);
		return cs_fail(err, CS_E_SYSTEM, e, "start /bin/sh");
	}
	*ret_fd = p[0];
	return 0;
}

/* Reads and forgets what follows the first line.  As read_some(). */
static int read_away(int fd, size_t *total)
{
	char chunk[4096];
	ssize_t n = read(fd, chunk, sizeof chunk);
	int e = errno;

	explicit_bzero(chunk, sizeof chunk);
	errno = e;
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : -1;
	*total += (size_t)n;
	return n > 0;
}

struct command {
	pid_t pid;
	int fd, status;
	bool ended, eof, have_line;
	size_t total;
};

/* All that is there now. */
static int drain(struct command *c, struct area *a, struct cs_err *err)
{
	for (;;) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		int r;

		if (poll(&p, 1, 0) <= 0)
			return 0;
		r = c->have_line ? read_away(c->fd, &c->total) : read_some(c->fd, a);
		if (r < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "read what its command prints");
		if (r == 0 && !c->have_line && a->len && (memchr(a->value, '\n', a->len) || a->len > SECRET_MAX + 2)) {
			c->have_line = true;
			continue;
		}
		if (r == 0) {
			c->eof = true;
			return 0;
		}
		if (c->total > OUTPUT_MAX)
			return cs_fail(err, CS_E_LIMIT, 0, "its command prints more than %d bytes", OUTPUT_MAX);
	}
}

/* Until it has ended; what it left in the background may hold the pipe open for as long as it likes. */
static int await(struct command *c, struct area *a, struct cs_err *err)
{
	long end = now_ms() + TIME_LIMIT_MS;

	while (!c->ended) {
		struct pollfd p = { .fd = c->eof ? -1 : c->fd, .events = POLLIN };
		pid_t w;
		int r;

		(void)poll(&p, 1, TICK_MS);
		w = waitpid(c->pid, &c->status, WNOHANG);
		if (w < 0 && errno != EINTR)
			return cs_fail(err, CS_E_SYSTEM, errno, "wait for its command");
		c->ended = w == c->pid;
		r = c->eof ? 0 : drain(c, a, err);
		if (r < 0)
			return r;
		if (!c->ended && now_ms() > end)
			return cs_fail(err, CS_E_LIMIT, 0, "its command has not ended within %d s", TIME_LIMIT_MS / 1000);
	}
	if (WIFSIGNALED(c->status))
		return cs_fail(err, CS_E_SYSTEM, 0, "its command was ended by signal %d", WTERMSIG(c->status));
	if (WEXITSTATUS(c->status))
		return cs_fail(err, CS_E_SYSTEM, 0, "its command ended with status %d", WEXITSTATUS(c->status));
	return 0;
}

static int from_command(const char *line, struct area *a, struct cs_err *err)
{
	struct command c = { .fd = -1 };
	int r;

	r = start_command(line, &c.pid, &c.fd, err);
	if (r < 0)
		return r;
	r = await(&c, a, err);
	if (!c.ended) {
		/* Not waited for yet, so the number still is this group's. */
		(void)kill(-c.pid, SIGKILL);
		(void)kill(c.pid, SIGKILL);
		while (waitpid(c.pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	(void)close(c.fd);
	return r;
}

/* ---- loading ---- */

static int read_value(const char *from, struct area **a, struct cs_err *err)
{
	if (!strncmp(from, "env:", 4))
		return from_env(from + 4, a, err);
	if (!strncmp(from, "file:/", 6))
		return from_file(from + 5, *a, err);
	if (!strncmp(from, "command:", 8) && from[8])
		return from_command(from + 8, *a, err);
	return cs_fail(err, CS_E_INVALID, 0, "it comes from neither env:VARIABLE, file:/PATH nor command:LINE");
}

static int check_value(struct area *a, struct cs_err *err)
{
	(void)cut_line(a);
	if (a->len > SECRET_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "longer than %d bytes", SECRET_MAX);
	if (a->len < SECRET_MIN)
		return cs_fail(err, CS_E_INVALID, 0, "%s: it must have at least %d bytes", a->len ? "too short" : "empty", SECRET_MIN);
	for (size_t i = 0; i < a->len; i++)
		if ((unsigned char)a->value[i] < 0x20 || a->value[i] == 0x7f)
			return cs_fail(err, CS_E_INVALID, 0, "it holds a control byte (at %zu)", i);
	return 0;
}

/* Framing and routing are not what a secret may decide. */
static bool header_is_fit(const char *h)
{
	static const char *const never[] = { "host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade",
					     "proxy-connection", "keep-alive", "expect", "content-encoding" };
	size_t n = strlen(h);

	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		if (!strcasecmp(h, never[i]))
			return false;
	return n && n <= 128 &&
	       strspn(h, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == n;
}

static bool format_is_fit(const char *f)
{
	const char *at = strstr(f, "{}");

	for (const char *p = f; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	return at && !strstr(at + 2, "{}") && strlen(f) <= 1024;
}

static int take_header(const struct profile_secret *from, struct secret *s, struct cs_err *err)
{
	s->header = cs_strdup(from->header ? from->header : "Authorization");
	s->format = cs_strdup(from->format ? from->format : "Bearer {}");
	if (!header_is_fit(s->header))
		return cs_fail(err, CS_E_INVALID, 0, "its header is not one that can be set");
	if (!format_is_fit(s->format))
		return cs_fail(err, CS_E_INVALID, 0, "its format must hold {} once, and no control bytes");
	return 0;
}

static int take_host(const char *text, struct net_rule *r, struct cs_err *err)
{
	char shown[160];
	int e = net_rule_parse(text, r, err);

	if (e < 0)
		return e;
	cs_escape_to(shown, sizeof shown, text);
	if (r->net.family || !*r->name)
		return cs_fail(err, CS_E_INVALID, 0, "'%s' is an address; a secret is for names, which certificates prove", shown);
	if (!strcmp(r->name, "*"))
		return cs_fail(err, CS_E_INVALID, 0, "a secret for every host would be nobody's secret");
	if (r->methods || r->path || r->proto == NET_TCP)
		return cs_fail(err, CS_E_INVALID, 0, "'%s' is more than NAME[:PORT]", shown);
	/* 80 is not meant by a host without ports: it would be sent in the clear. */
	if (r->default_ports) {
		r->default_ports = false;
		r->port_lo = r->port_hi = 443;
	}
	return 0;
}

static int take_hosts(const struct cs_strv *hosts, struct secret *s, struct cs_err *err)
{
	if (!hosts->n)
		return cs_fail(err, CS_E_INVALID, 0, "it is for no host");
	if (hosts->n > NET_RULES_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "it has more than %d hosts", NET_RULES_MAX);
	s->hosts = cs_calloc(hosts->n, sizeof *s->hosts);
	for (size_t i = 0; i < hosts->n; i++) {
		int r = take_host(hosts->v[i], &s->hosts[i], err);

		if (r == 0 || s->hosts[i].text)
			s->n_hosts++;
		if (r < 0)
			return r;
	}
	return 0;
}

int secret_load(const struct profile_secret *from, const char *placeholder, struct secret *ret, struct cs_err *err)
{
	struct secret s = { .name = cs_strdup(from->name), .placeholder = cs_strdup(placeholder) };
	CS_CLEANUP(area_unref_p) struct area *a = NULL;
	char shown[96];
	int r = take_header(from, &s, err);

	if (r == 0)
		r = take_hosts(&from->hosts, &s, err);
	if (r == 0) {
		a = area_new(err);
		r = a ? read_value(from->from, &a, err) : -CS_E_SYSTEM;
	}
	if (r == 0)
		r = check_value(a, err);
	if (r < 0 || !a) {
		secret_done(&s);
		return cs_wrap(err, r, "secret %s", cs_escape_to(shown, sizeof shown, from->name));
	}
	area_trim(a);
	s.value_len = a->len;
	s.value = a->value; /* NUL-terminated: the pages were zero, and the rest of the line's room is */
	a = NULL;
	*ret = s;
	return 0;
}

void secret_done(struct secret *s)
{
	if (s->value)
		area_unref(area_of(s->value));
	for (size_t i = 0; i < s->n_hosts; i++)
		net_rule_done(&s->hosts[i]);
	free(s->hosts);
	free(s->name);
	free(s->placeholder);
	free(s->header);
	free(s->format);
	*s = (struct secret){ 0 };
}

bool secret_is_for(const struct secret *s, const char *name, uint16_t port)
{
	for (size_t i = 0; i < s->n_hosts; i++)
		if (net_rule_has_port(&s->hosts[i], port) && net_rule_has_name(&s->hosts[i], name))
			return true;
	return false;
}

/* ---- placing ---- */

/* A heap string that never moves, so that no copy is left behind. */
struct fixed {
	char *v;
	size_t n;
};

static void put(struct fixed *f, const char *p, size_t n)
{
	memcpy(f->v + f->n, p, n);
	f->n += n;
	f->v[f->n] = 0;
}

/* The text with the secret in place of every placeholder.  NULL: there is none, or it would be too long. */
static char *replace(const struct secret *s, const char *text, size_t *ret_len)
{
	size_t ph = strlen(s->placeholder), found = 0, size;
	struct fixed f = { 0 };
	const char *at;

	for (at = text; ph && (at = strstr(at, s->placeholder)); at += ph)
		found++;
	size = strlen(text);
	if (!found || size > HEADER_MAX || found > HEADER_MAX / s->value_len + 1)
		return NULL;
	f.v = cs_calloc(size + found * s->value_len + 1, 1);
	while ((at = strstr(text, s->placeholder))) {
		put(&f, text, (size_t)(at - text));
		put(&f, s->value, s->value_len);
		text = at + ph;
	}
	put(&f, text, strlen(text));
	*ret_len = f.n;
	return f.v;
}

static const char b64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *decode(const char *text)
{
	size_t n = strlen(text), out = 0;
	CS_FREE char *d = cs_calloc(n + 1, 1);
	unsigned acc = 0, bits = 0;

	while (n && text[n - 1] == '=')
		n--;
	for (size_t i = 0; i < n; i++) {
		const char *p = strchr(b64, text[i]);

		if (!p)
			return NULL;
		acc = (acc << 6 | (unsigned)(p - b64)) & 0xffff;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		d[out] = (char)(acc >> bits & 0xff);
		if (!d[out++])
			return NULL;
	}
	return CS_TAKE_PTR(d);
}

static void encode(struct fixed *f, const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;

	for (size_t i = 0; i < n; i += 3) {
		unsigned v = (unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
		char q[4] = { b64[v >> 18], b64[v >> 12 & 63], i + 1 < n ? b64[v >> 6 & 63] : '=', i + 2 < n ? b64[v & 63] : '=' };

		put(f, q, 4);
	}
}

/* `Basic` and the base64 of something that holds the placeholder. */
static char *replace_basic(const struct secret *s, const char *sent)
{
	CS_FREE char *plain = NULL, *filled = NULL;
	struct fixed f = { 0 };
	size_t n;

	if (strncasecmp(sent, "Basic ", 6) != 0)
		return NULL;
	sent += 6 + strspn(sent + 6, " ");
	plain = strlen(sent) <= HEADER_MAX ? decode(sent) : NULL;
	filled = plain ? replace(s, plain, &n) : NULL;
	if (!filled)
		return NULL;
	f.v = cs_calloc(6 + (n + 2) / 3 * 4 + 1, 1);
	put(&f, "Basic ", 6);
	encode(&f, filled, n);
	explicit_bzero(filled, n);
	return f.v;
}

static char *fill_format(const struct secret *s)
{
	const char *at = strstr(s->format, "{}");
	struct fixed f = { .v = cs_calloc(strlen(s->format) + s->value_len + 1, 1) };

	put(&f, s->format, (size_t)(at - s->format));
	put(&f, s->value, s->value_len);
	put(&f, at + 2, strlen(at + 2));
	return f.v;
}

static bool is_one_line(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < 0x20 && *text != '\t') || *text == 0x7f)
			return false;
	return true;
}

char *secret_header(const struct secret *s, const char *sent)
{
	char *r = NULL;
	size_t n;

	if (sent && is_one_line(sent)) {
		r = replace(s, sent, &n);
		if (!r)
			r = replace_basic(s, sent);
	}
	return r ? r : fill_format(s);
}
