/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - a client, the boundary and a server, in one process, over loopback.
 *
 * The boundary's loop runs in the main thread.  The server has a thread of its
 * own per connection, and the client is a function in another; both block.
 */
#pragma once
#include "egress/edge/intercept.h"
#include "harness/t.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define NAME        "api.example.com"
#define VALUE       "s3cr3t/Value+0123456789"
#define PLACEHOLDER "caisson-secret-GH-00112233445566778899aabbccddeeff"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>

/* Freed memory keeps what was in it, for w_in_memory(). */
const char *__asan_default_options(void); /* NOLINT(bugprone-reserved-identifier) */
const char *__asan_default_options(void)
{
	return "max_free_fill_size=0";
}
#endif

struct conn { /* blocking, of the test's client or server */
	int fd;
	SSL *ssl;
};

struct world {
	/* set by a test before world_run() */
	bool plain;                  /* no TLS */
	bool secret;                 /* one secret, in Authorization */
	bool refuse_dial;
	uint64_t budget;             /* 0: none */
	struct hello hello;          /* what the client will offer */
	const char *cert_name;       /* the server's; NULL: NAME */
	bool stranger;               /* the server's CA is not trusted */
	const char *server_alpn;     /* NULL: "http/1.1" */
	const char *reply;           /* the server's answer to every request; NULL: "200, ok" */
	size_t reply_len;            /* 0: strlen */
	void (*serve)(struct world *w, struct conn *c); /* NULL: by reply */
	void (*client)(struct world *w);
	bool apart;                  /* the server is a process: what it knows is not in our memory */
	struct timer *on_new;        /* fires 300 ms after a connection came... */
	struct box **latest;         /* ...which is this one */

	/* seen; the server's under the lock */
	pthread_mutex_t lock;
	char seen[1 << 20];          /* all bytes the server read */
	size_t n_seen;
	int served, connections;
	char done[8192];             /* "GET /x 200 why\n" each */
	char closed[1024];
	int n_closed, n_done, n_new, n_untrusted;
	char untrusted[600];         /* what was told of the last: why; fix */
	size_t masked;
	uint64_t out, in;
	int statuses[64];

	struct loop *loop;
	struct ca *ca, *server_ca;
	SSL_CTX *verify;
	int port, server_port, listener, server_listener, stop_fd;
	struct watch accept, stop;
	char ca_file[256];
	struct secret sec;
	const struct secret *secrets[1];
	bool client_over;
	pthread_t threads[256];
	int n_threads;
};

struct box { /* one intercepted connection */
	struct world *w;
	struct intercept *i;
};

static inline int listen_on(int *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	T_INT(bind(fd, (struct sockaddr *)&a, n), 0);
	T_INT(listen(fd, 64), 0);
	getsockname(fd, (struct sockaddr *)&a, &n);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static inline int connect_to(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port) };
	struct timeval tv = { .tv_sec = 10 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		T_FAIL("connect: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

/* ---- the owner ---- */

static inline void w_dial(void *arg)
{
	struct box *b = arg;
	int fd;

	if (b->w->refuse_dial) {
		intercept_dialled(b->i, -1, "connection refused (test)");
		return;
	}
	fd = connect_to(b->w->server_port);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	intercept_dialled(b->i, fd, NULL);
}

static inline void w_judge(void *arg, const char *method, const char *path, struct net_verdict *ret)
{
	(void)arg;
	*ret = (struct net_verdict){ .ok = strncmp(path, "/deny", 5) && strcmp(method, "DELETE") };
	if (!ret->ok) {
		snprintf(ret->reason, sizeof ret->reason, "no rule allows %s \"%.40s\"", method, path);
		snprintf(ret->fix, sizeof ret->fix, "--allow '%s %s %.40s'", NAME, method, path);
	}
}

static inline bool w_count(void *arg, uint64_t out, uint64_t in)
{
	struct world *w = ((struct box *)arg)->w;

	w->out += out;
	w->in += in;
	return !w->budget || w->out + w->in <= w->budget;
}

static inline void w_done(void *arg, const char *method, const char *path, int status, const char *why, size_t masked)
{
	struct world *w = ((struct box *)arg)->w;
	size_t n = strlen(w->done);

	snprintf(w->done + n, sizeof w->done - n, "%s %.60s %d%s%s\n", method, path, status, why ? " " : "", why ? why : "");
	if (w->n_done < 64)
		w->statuses[w->n_done] = status;
	w->n_done++;
	w->masked += masked;
}

static inline void w_closed(void *arg, const char *why)
{
	struct box *b = arg;
	size_t n = strlen(b->w->closed);

	b->w->n_closed++;
	snprintf(b->w->closed + n, sizeof b->w->closed - n, "%s\n", why ? why : "-");
	free(b);
}

static inline void w_untrusted(void *arg, const char *why, const char *fix)
{
	struct world *w = ((struct box *)arg)->w;

	w->n_untrusted++;
	snprintf(w->untrusted, sizeof w->untrusted, "%s; %s", why, fix ? fix : "-");
}

static inline void w_accept(struct watch *watch, uint32_t events)
{
	struct world *w = LOOP_OF(watch, struct world, accept);
	struct box *b;
	int fd = accept4(w->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;

	(void)events;
	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	b = calloc(1, sizeof *b);
	b->w = w;
	w->n_new++;
	b->i = intercept_new(&(struct intercept_opts){
		.loop = w->loop, .name = NAME, .port = w->plain ? 80 : 443, .client = fd, .ca = w->plain ? NULL : w->ca,
		.hello = &w->hello, .upstream = w->verify, .secrets = w->secrets, .n_secrets = w->secret,
		.owner = { b, w_dial, w_judge, w_count, w_done, w_closed, w_untrusted },
	});
	if (w->on_new) {
		*w->latest = b;
		loop_timer(w->loop, w->on_new, 300);
	}
}

static inline void w_tick(struct timer *t);

struct w_end { struct timer t; struct world *w; int turns; };
static struct w_end w_ending;

static inline void w_tick(struct timer *t)
{
	struct world *w = w_ending.w;

	if (w->n_closed == w->n_new || ++w_ending.turns > 500)
		loop_stop(w->loop);
	else
		loop_timer(w->loop, t, 10);
}

static inline void w_stop(struct watch *watch, uint32_t events)
{
	struct world *w = LOOP_OF(watch, struct world, stop);

	(void)events;
	loop_unwatch(w->loop, watch);
	w_ending = (struct w_end){ .t.fire = w_tick, .w = w };
	loop_timer(w->loop, &w_ending.t, 10);
}

/* ---- both peers ---- */

static inline ssize_t c_read(struct conn *c, void *to, size_t n)
{
	return c->ssl ? SSL_read(c->ssl, to, (int)n) : read(c->fd, to, n);
}

static inline bool c_write(struct conn *c, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t r = c->ssl ? SSL_write(c->ssl, p, (int)n) : send(c->fd, p, n, MSG_NOSIGNAL);

		if (r <= 0)
			return false;
		p += r;
		n -= (size_t)r;
	}
	return true;
}

static inline bool c_say(struct conn *c, const char *text)
{
	return c_write(c, text, strlen(text));
}

static inline void c_close(struct conn *c)
{
	if (c->ssl) {
		SSL_shutdown(c->ssl);
		SSL_free(c->ssl);
	}
	close(c->fd);
	free(c);
}

/* ---- the server ---- */

static inline void w_saw(struct world *w, const void *data, size_t n)
{
	pthread_mutex_lock(&w->lock);
	if (n > sizeof w->seen - 1 - w->n_seen)
		n = sizeof w->seen - 1 - w->n_seen;
	memcpy(w->seen + w->n_seen, data, n);
	w->n_seen += n;
	w->seen[w->n_seen] = 0;
	pthread_mutex_unlock(&w->lock);
}

/* Reads one request, as a server that trusts its client would; false: the connection ended. */
static inline bool serve_read(struct world *w, struct conn *c, char *head, size_t size)
{
	size_t n = 0;
	char *cl;
	ssize_t r;

	while (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4)) {
		if (n + 1 >= size || (r = c_read(c, head + n, 1)) <= 0)
			return false;
		w_saw(w, head + n, 1);
		n++;
	}
	head[n] = 0;
	if ((cl = strcasestr(head, "\r\ncontent-length:"))) {
		for (long left = atol(cl + 17); left > 0; left -= r) {
			char buf[4096];

			if ((r = c_read(c, buf, left < (long)sizeof buf ? (size_t)left : sizeof buf)) <= 0)
				return false;
			w_saw(w, buf, (size_t)r);
		}
	} else if (strcasestr(head, "\r\ntransfer-encoding: chunked")) {
		char tail[5] = { 0 };

		while (memcmp(tail, "0\r\n\r\n", 5)) { /* good enough for bodies without it */
			char b;

			if (c_read(c, &b, 1) <= 0)
				return false;
			w_saw(w, &b, 1);
			memmove(tail, tail + 1, 4);
			tail[4] = b;
		}
	}
	pthread_mutex_lock(&w->lock);
	w->served++;
	pthread_mutex_unlock(&w->lock);
	return true;
}

static inline void serve_reply(struct world *w, struct conn *c)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	char *head = malloc(1 << 17);

	while (serve_read(w, c, head, 1 << 17)) {
		const char *reply = w->reply ? w->reply : ok;

		if (!c_write(c, reply, w->reply_len ? w->reply_len : strlen(reply)))
			break;
		/* no framing: the end is the end */
		if (!strcasestr(reply, "content-length") && !strcasestr(reply, "chunked"))
			break;
	}
	free(head);
}

static inline int w_server_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in, unsigned n, void *arg)
{
	struct world *w = arg;
	const char *want = w->server_alpn ? w->server_alpn : "http/1.1";

	(void)ssl;
	for (unsigned at = 0; at < n; at += 1U + in[at])
		if (in[at] == strlen(want) && !memcmp(in + at + 1, want, in[at])) {
			*out = in + at + 1;
			*out_len = in[at];
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_NOACK;
}

struct w_job { struct world *w; int fd; };

static inline void *w_connection(void *arg)
{
	struct w_job *job = arg;
	struct world *w = job->w;
	struct conn *c = calloc(1, sizeof *c);

	c->fd = job->fd;
	free(job);
	if (!w->plain) {
		SSL_CTX *ctx;
		SSL *ssl;

		pthread_mutex_lock(&w->lock);
		ctx = ca_context(w->server_ca, w->cert_name ? w->cert_name : NAME, NULL);
		SSL_CTX_set_alpn_select_cb(ctx, w_server_alpn, w);
		ssl = SSL_new(ctx);
		pthread_mutex_unlock(&w->lock);
		SSL_set_fd(ssl, c->fd);
		c->ssl = ssl;
		if (SSL_accept(ssl) != 1) {
			SSL_free(ssl);
			close(c->fd);
			free(c);
			return NULL;
		}
	}
	(w->serve ? w->serve : serve_reply)(w, c);
	c_close(c);
	return NULL;
}

static inline void *w_server(void *arg)
{
	struct world *w = arg;
	int fd;

	while ((fd = accept(w->server_listener, NULL, NULL)) >= 0) {
		struct w_job *job = malloc(sizeof *job);
		struct timeval tv = { .tv_sec = 10 };
		int one = 1;

		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		*job = (struct w_job){ w, fd };
		w->connections++;
		pthread_create(&w->threads[w->n_threads++], NULL, w_connection, job);
	}
	return NULL;
}

/* ---- the client ---- */

static inline struct conn *w_connect_alpn(struct world *w, const char *alpn, size_t alpn_len)
{
	struct conn *c = calloc(1, sizeof *c);
	SSL_CTX *ctx;

	c->fd = connect_to(w->port);
	if (w->plain)
		return c;
	ctx = SSL_CTX_new(TLS_client_method());
	T_INT(SSL_CTX_load_verify_file(ctx, w->ca_file), 1);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	c->ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_tlsext_host_name(c->ssl, NAME);
	SSL_set1_host(c->ssl, NAME);
	if (alpn)
		SSL_set_alpn_protos(c->ssl, (const unsigned char *)alpn, (unsigned)alpn_len);
	if (SSL_connect(c->ssl) != 1) {
		ERR_print_errors_fp(stdout);
		T_FAIL("client handshake");
	}
	return c;
}

static inline struct conn *w_connect(struct world *w)
{
	return w_connect_alpn(w, NULL, 0);
}

/* Sends, then reads until the other end closes (or says nothing for ms). */
static inline size_t w_talk_on(struct conn *c, const void *data, size_t n, char *ret, size_t size, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	size_t got = 0;
	ssize_t r;

	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	(void)c_write(c, data, n);
	while (got + 1 < size && (r = c_read(c, ret + got, size - 1 - got)) > 0)
		got += (size_t)r;
	ret[got] = 0;
	return got;
}

static inline size_t w_talk(struct world *w, const void *data, size_t n, char *ret, size_t size, int ms)
{
	struct conn *c = w_connect(w);
	size_t got = w_talk_on(c, data, n, ret, size, ms);

	c_close(c);
	return got;
}

static inline void *w_client(void *arg)
{
	struct world *w = arg;
	uint64_t one = 1;

	w->client(w);
	if (write(w->stop_fd, &one, sizeof one) < 0)
		abort();
	return NULL;
}

/* How often the text is in memory that can be written, freed memory included (the sanitizer keeps it for a while).
 * backwards: the text the other way round, so that this code does not find itself. */
static inline int w_in_memory(const char *backwards)
{
	size_t n = strlen(backwards), size = 1 << 20;
	char *text = malloc(n), *block = malloc(size), line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC), found = 0;

	for (size_t i = 0; i < n; i++)
		text[i] = backwards[n - 1 - i];
	while (fgets(line, sizeof line, maps)) {
		unsigned long long from, to;
		char mode[8];

		if (sscanf(line, "%llx-%llx %7s", &from, &to, mode) != 3 || strncmp(mode, "rw", 2) || to - from > 1ULL << 30)
			continue; /* larger: the sanitizer's own */
		for (unsigned long long at = from; at < to; at += size - n) {
			ssize_t r = pread(mem, block, to - at < size ? to - at : size, (off_t)at);

			for (char *p = block; r > 0 && (p = memmem(p, (size_t)(block + r - p), text, n)); p++) {
				unsigned long long where = at + (unsigned long long)(p - block);

				/* not our own copies */
				if (where - (uintptr_t)text < n || where - (uintptr_t)block < size)
					continue;
				found++;
				printf("# the value is at %llx: %s", where, line);
			}
		}
	}
	fclose(maps);
	close(mem);
	free(block);
	explicit_bzero(text, n);
	free(text);
	return found;
}

/* ---- all of it ---- */

static inline void world_run(struct world *w)
{
	struct cs_buf pem = CS_BUF(65536);
	struct cs_err err = { 0 };
	struct ca *trusted;
	pthread_t server, client;
	pid_t apart = -1;
	FILE *f;

	signal(SIGPIPE, SIG_IGN);
	pthread_mutex_init(&w->lock, NULL);
	w->sec = (struct secret){ .name = (char *)"GH", .placeholder = (char *)PLACEHOLDER, .value = (char *)VALUE,
				  .value_len = strlen(VALUE), .header = (char *)"Authorization", .format = (char *)"Bearer {}" };
	w->secrets[0] = &w->sec;
	T_INT(ca_new("edge", &w->ca, &err), 0);
	T_INT(ca_new("server", &w->server_ca, &err), 0);
	trusted = w->server_ca;
	snprintf(w->ca_file, sizeof w->ca_file, "%s/server.pem", t_tmpdir());
	ca_pem(w->stranger ? w->ca : trusted, &pem);
	f = fopen(w->ca_file, "w");
	fwrite(pem.data, 1, pem.len, f);
	fclose(f);
	w->verify = intercept_upstream_context(w->ca_file, &err);
	T_TRUE(w->verify);
	cs_buf_done(&pem);
	snprintf(w->ca_file, sizeof w->ca_file, "%s/edge.pem", t_tmpdir());
	ca_pem(w->ca, &pem);
	f = fopen(w->ca_file, "w");
	fwrite(pem.data, 1, pem.len, f);
	fclose(f);
	cs_buf_done(&pem);

	w->loop = loop_new();
	w->listener = listen_on(&w->port);
	w->server_listener = listen_on(&w->server_port);
	w->stop_fd = eventfd(0, 0);
	w->accept.ready = w_accept;
	w->stop.ready = w_stop;
	loop_watch(w->loop, &w->accept, w->listener, EPOLLIN);
	loop_watch(w->loop, &w->stop, w->stop_fd, EPOLLIN);
	if (w->apart && (apart = fork()) == 0) {
		w_server(w);
		_exit(0);
	}
	if (!w->apart)
		pthread_create(&server, NULL, w_server, w);
	pthread_create(&client, NULL, w_client, w);
	T_INT(loop_run(w->loop), 0);
	pthread_join(client, NULL);
	if (w->apart) {
		kill(apart, SIGKILL);
		waitpid(apart, NULL, 0);
	} else {
		shutdown(w->server_listener, SHUT_RDWR);
		pthread_join(server, NULL);
	}
	for (int i = 0; i < w->n_threads; i++)
		pthread_join(w->threads[i], NULL);
	T_INT(w->n_closed, w->n_new); /* each ended, once */
	loop_free(w->loop);
	close(w->listener);
	close(w->server_listener);
	close(w->stop_fd);
	SSL_CTX_free(w->verify);
	ca_free(w->ca);
	ca_free(w->server_ca);
	/* Whatever happened, the client's side of our logs never holds the value. */
	T_TRUE(!strstr(w->done, VALUE));
	T_TRUE(!strstr(w->closed, VALUE));
	if (w->apart)
		T_INT(w_in_memory("9876543210+eulaV/t3rc3s"), 0);
#if defined(__SANITIZE_ADDRESS__)
	if (__lsan_do_recoverable_leak_check())
		T_FAIL("leaks");
#endif
}
