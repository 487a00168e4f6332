/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - both ends of a connection, for bench/net.py.
 *
 *     net server PORT TLS_PORT CERTIFICATE   listens on every address, until standard input ends
 *     net client HOST PORT TLS_PORT [PROXY_HOST PROXY_PORT]
 *
 * The client reads commands, one a line, and answers each with a line:
 *
 *     connect N            N times: connect, a byte there, a byte back, close -> microseconds of each
 *     stream up|down S MS  S connections at once -> bytes per second
 *     talk N               N bytes there and back, one after another, on one connection -> microseconds of each
 *     https N              N times: connect, TLS, GET of one byte, close -> microseconds of each
 *     download S MS        S connections of HTTPS at once -> bytes per second
 *
 * The first byte of a connection to PORT says what it is for: 'e' echo, 'u' the server
 * reads, 'd' the server writes.  With a proxy each connection begins with CONNECT. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 256 << 10, STREAMS_MAX = 64, TIMES_MAX = 100000 };

static char chunk[CHUNK];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "net: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- the server ---- */

struct served {
	int fd;
	char mode; /* 0: not said yet */
};

static int listen_on(const char *port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, off = 0;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 4096) < 0)
		die("listen");
	return fd;
}

/* false: it has ended. */
static int serve(int epoll, struct served *s)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT, .data.ptr = s };
	ssize_t n = 1;

	if (!s->mode) {
		n = recv(s->fd, &s->mode, 1, 0);
		if (n == 1 && s->mode == 'd')
			(void)epoll_ctl(epoll, EPOLL_CTL_MOD, s->fd, &ev);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
	}
	if (s->mode == 'd') {
		n = send(s->fd, chunk, CHUNK, MSG_NOSIGNAL);
		return n > 0 || errno == EAGAIN;
	}
	n = recv(s->fd, chunk, CHUNK, 0);
	if (n > 0 && s->mode == 'e')
		n = send(s->fd, chunk, (size_t)n, MSG_NOSIGNAL);
	return n > 0 || (n < 0 && errno == EAGAIN);
}

static SSL_CTX *server_tls;

/* "GET /N": N bytes. */
static void *serve_tls(void *arg)
{
	int fd = (int)(intptr_t)arg, len = 0;
	SSL *ssl = SSL_new(server_tls);
	char head[8192], *page = calloc(1, CHUNK);

	SSL_set_fd(ssl, fd);
	if (SSL_accept(ssl) != 1)
		goto end;
	for (;;) {
		int n = SSL_read(ssl, head + len, (int)sizeof head - 1 - len);
		long long left;
		char *rest;

		if (n <= 0)
			break;
		len += n;
		head[len] = 0;
		rest = strstr(head, "\r\n\r\n");
		if (!rest)
			continue;
		left = atoll(head + 5);
		len = 0;
		n = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %lld\r\n\r\n", left);
		if (left < 4096) { /* one write */
			memset(head + n, 'x', (size_t)left);
			n += (int)left;
			left = 0;
		}
		if (SSL_write(ssl, head, n) != n)
			break;
		for (; left > 0; left -= n) {
			n = SSL_write(ssl, page, left < CHUNK ? (int)left : CHUNK);
			if (n <= 0)
				goto end;
		}
	}
end:
	SSL_free(ssl);
	close(fd);
	free(page);
	return NULL;
}

static _Noreturn void *accept_tls(void *arg)
{
	pthread_attr_t detached;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (;;) {
		int fd = accept4((int)(intptr_t)arg, NULL, NULL, SOCK_CLOEXEC);
		pthread_t t;

		if (fd >= 0 && pthread_create(&t, &detached, serve_tls, (void *)(intptr_t)fd))
			close(fd);
	}
}

static int server(const char *port, const char *tls_port, const char *cert)
{
	struct epoll_event ev[256], add = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC), listener = listen_on(port);
	struct served in = { .fd = 0 }, door = { .fd = listener };
	pthread_t t;

	server_tls = SSL_CTX_new(TLS_server_method());
	if (SSL_CTX_use_certificate_chain_file(server_tls, cert) != 1 || SSL_CTX_use_PrivateKey_file(server_tls, cert, SSL_FILETYPE_PEM) != 1)
		die(cert);
	if (pthread_create(&t, NULL, accept_tls, (void *)(intptr_t)listen_on(tls_port)))
		die("start a thread");
	add.data.ptr = &in;
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &add);
	add.data.ptr = &door;
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &add);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll, ev, 256, -1);

		for (int i = 0; i < n; i++) {
			struct served *s = ev[i].data.ptr;

			if (s == &in)
				return 0;
			if (s == &door) {
				s = calloc(1, sizeof *s);
				s->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
				add.data.ptr = s;
				if (s->fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd, &add) < 0)
					free(s);
				continue;
			}
			if (!serve(epoll, s)) {
				close(s->fd);
				free(s);
			}
		}
	}
}

/* ---- the client ---- */

static struct sockaddr_storage plain, tls;
static socklen_t addr_len;
static const char *host, *connect_plain, *connect_tls;
static SSL_CTX *client_tls;
static double times[TIMES_MAX];

static void look_up(const char *name, const char *port, struct sockaddr_storage *ret)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_INET }, *found;
	int e = getaddrinfo(name, port, &hints, &found);

	if (e) {
		fprintf(stderr, "net: %s: %s\n", name, gai_strerror(e));
		exit(1);
	}
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	addr_len = found->ai_addrlen;
	freeaddrinfo(found);
}

static int dial(const struct sockaddr_storage *to, const char *proxy_head)
{
	int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	char answer[1024];
	size_t n = 0;

	if (fd < 0)
		die("socket");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, (const struct sockaddr *)to, addr_len) < 0)
		die("connect");
	if (!proxy_head)
		return fd;
	if (send(fd, proxy_head, strlen(proxy_head), MSG_NOSIGNAL) < 0)
		die("ask the proxy");
	while (n < 4 || memcmp(answer + n - 4, "\r\n\r\n", 4)) {
		if (n == sizeof answer || recv(fd, answer + n, 1, 0) != 1)
			die("the proxy's answer");
		n++;
	}
	if (memcmp(answer + 8, " 200", 4))
		die("the proxy says no");
	return fd;
}

static void tell_times(int n)
{
	for (int i = 0; i < n; i++)
		printf("%.1f ", times[i]);
	putchar('\n');
}

static void bench_connect(int n)
{
	for (int i = 0; i < n; i++) {
		double at = now_us();
		int fd = dial(&plain, connect_plain);
		char b[2] = "ex";

		if (send(fd, b, 2, MSG_NOSIGNAL) != 2 || recv(fd, b, 1, 0) != 1)
			die("echo");
		close(fd);
		times[i] = now_us() - at;
	}
	tell_times(n);
}

static void bench_talk(int n)
{
	int fd = dial(&plain, connect_plain);
	char b = 'e';

	if (send(fd, &b, 1, MSG_NOSIGNAL) != 1)
		die("send");
	for (int i = 0; i < n; i++) {
		double at = now_us();

		if (send(fd, &b, 1, MSG_NOSIGNAL) != 1 || recv(fd, &b, 1, 0) != 1)
			die("echo");
		times[i] = now_us() - at;
	}
	close(fd);
	tell_times(n);
}

/* The first quarter is to get going. */
static void bench_stream(int down, int streams, int ms)
{
	struct pollfd p[STREAMS_MAX];
	double began, from = 0, now;
	long long moved = 0;

	for (int i = 0; i < streams; i++) {
		p[i] = (struct pollfd){ .fd = dial(&plain, connect_plain), .events = down ? POLLIN : POLLOUT };
		if (send(p[i].fd, down ? "d" : "u", 1, MSG_NOSIGNAL) != 1)
			die("send");
		(void)fcntl(p[i].fd, F_SETFL, O_NONBLOCK);
	}
	began = now_us();
	for (;;) {
		if (poll(p, (nfds_t)streams, 5000) <= 0)
			die("nothing moves");
		for (int i = 0; i < streams; i++) {
			ssize_t n = 0;

			if (p[i].revents)
				n = down ? recv(p[i].fd, chunk, CHUNK, 0) : send(p[i].fd, chunk, CHUNK, MSG_NOSIGNAL);
			if (n < 0 && errno != EAGAIN)
				die("stream");
			if (n > 0)
				moved += n;
		}
		now = now_us();
		if (!from && now - began > ms * 250.0)
			from = now, moved = 0;
		if (now - began > ms * 1000.0)
			break;
	}
	for (int i = 0; i < streams; i++)
		close(p[i].fd);
	printf("%.0f\n", (double)moved * 1e6 / (now - from));
}

static SSL *dial_tls(void)
{
	SSL *s = SSL_new(client_tls);

	SSL_set_fd(s, dial(&tls, connect_tls));
	SSL_set_tlsext_host_name(s, host);
	SSL_set1_host(s, host);
	if (SSL_connect(s) != 1) {
		ERR_print_errors_fp(stderr);
		die("TLS");
	}
	return s;
}

static void hang_up(SSL *s)
{
	int fd = SSL_get_fd(s);

	SSL_free(s);
	close(fd);
}

static void ask_for(SSL *s, const char *what)
{
	char head[512];
	int n = snprintf(head, sizeof head, "GET /%s HTTP/1.1\r\nHost: %s\r\nAccept: */*\r\n\r\n", what, host);

	if (SSL_write(s, head, n) != n)
		die("ask");
}

static void bench_https(int n)
{
	for (int i = 0; i < n; i++) {
		double at = now_us();
		SSL *s = dial_tls();
		int got = 0, k;

		ask_for(s, "1");
		do {
			k = SSL_read(s, chunk + got, CHUNK - got - 1);
			if (k <= 0)
				die("answer");
			got += k;
			chunk[got] = 0;
		} while (!strstr(chunk, "\r\n\r\nx"));
		if (memcmp(chunk, "HTTP/1.1 200", 12))
			die(chunk);
		hang_up(s);
		times[i] = now_us() - at;
	}
	tell_times(n);
}

static void bench_download(int streams, int ms)
{
	struct pollfd p[STREAMS_MAX];
	SSL *s[STREAMS_MAX];
	double began, from = 0, now;
	long long moved = 0;

	for (int i = 0; i < streams; i++) {
		s[i] = dial_tls();
		p[i] = (struct pollfd){ .fd = SSL_get_fd(s[i]), .events = POLLIN };
		ask_for(s[i], "1000000000000");
		(void)fcntl(p[i].fd, F_SETFL, O_NONBLOCK);
	}
	began = now_us();
	do {
		if (poll(p, (nfds_t)streams, 5000) <= 0)
			die("nothing moves");
		for (int i = 0; i < streams; i++) {
			int n, k = 0;

			if (!p[i].revents)
				continue;
			while (k++ < 16 && (n = SSL_read(s[i], chunk, CHUNK)) > 0)
				moved += n;
			if (k <= 16 && SSL_get_error(s[i], n) != SSL_ERROR_WANT_READ)
				die("download");
		}
		now = now_us();
		if (!from && now - began > ms * 250.0)
			from = now, moved = 0;
	} while (now - began < ms * 1000.0);
	for (int i = 0; i < streams; i++)
		hang_up(s[i]);
	printf("%.0f\n", (double)moved * 1e6 / (now - from));
}

static int client(char **argv, int argc)
{
	char line[256], way[16], heads[2][512];
	int n, ms;

	host = argv[0];
	look_up(argc > 3 ? argv[3] : host, argc > 3 ? argv[4] : argv[1], &plain);
	look_up(argc > 3 ? argv[3] : host, argc > 3 ? argv[4] : argv[2], &tls);
	if (argc > 3) {
		for (int i = 0; i < 2; i++)
			snprintf(heads[i], sizeof heads[i], "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host, argv[1 + i], host, argv[1 + i]);
		connect_plain = heads[0];
		connect_tls = heads[1];
	}
	client_tls = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_default_verify_paths(client_tls);
	SSL_CTX_set_verify(client_tls, SSL_VERIFY_PEER, NULL);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "connect %d", &n) == 1 && n <= TIMES_MAX)
			bench_connect(n);
		else if (sscanf(line, "talk %d", &n) == 1 && n <= TIMES_MAX)
			bench_talk(n);
		else if (sscanf(line, "stream %15s %d %d", way, &n, &ms) == 3 && n <= STREAMS_MAX)
			bench_stream(!strcmp(way, "down"), n, ms);
		else if (sscanf(line, "https %d", &n) == 1 && n <= TIMES_MAX)
			bench_https(n);
		else if (sscanf(line, "download %d %d", &n, &ms) == 2 && n <= STREAMS_MAX)
			bench_download(n, ms);
		else
			die(line);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit files;

	(void)signal(SIGPIPE, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	if (argc == 5 && !strcmp(argv[1], "server"))
		return server(argv[2], argv[3], argv[4]);
	if ((argc == 5 || argc == 7) && !strcmp(argv[1], "client"))
		return client(argv + 2, argc - 2);
	fprintf(stderr, "usage: net server PORT TLS_PORT CERTIFICATE | net client HOST PORT TLS_PORT [PROXY_HOST PROXY_PORT]\n");
	return 2;
}
