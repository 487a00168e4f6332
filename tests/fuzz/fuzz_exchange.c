/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_exchange.c - HTTP/1.1 between a hostile client and a hostile server.
 *
 * Input: pieces, each behind a byte: bit 7 says whose it is (1: the server's), the
 * others how long it is.  Whatever the two say, the server gets whole requests, each of
 * which was judged and allowed, each with the secret in its header once; and the
 * client gets the value from nobody. */
#include "egress/edge/intercept_internal.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(e) ((e) ? (void)0 : abort())
#define VALUE   "0123456789abcdef"

static struct intercept *box;
static int allowed, closed, done, judged, got;
static int client_end, server_end; /* server_end: of the latest connection */
static struct bytes to_server, to_client;
static struct http1_body body;
static bool in_body;

/* What the server makes of what it has read. */
static void server_reads(void)
{
	for (;;) {
		struct head h = { 0 };
		struct refusal no;
		size_t scan = 0, used, times = 0, len;
		const char *piece;

		if (!to_server.len)
			return;
		if (in_body) {
			ssize_t r = http1_body_take(&body, bytes_at(&to_server), to_server.len, &piece, &len);

			MUST(r >= 0);
			bytes_drop(&to_server, (size_t)r);
			in_body = !body.done;
			continue;
		}
		switch (http1_request(bytes_at(&to_server), to_server.len, &scan, &h, &used, &no)) {
		case HTTP1_MORE:
			return;
		case HTTP1_BAD:
			abort();
		case HTTP1_DONE:
		default:
			break;
		}
		MUST(++got <= allowed);
		MUST(!strcmp(h.authority, "api.example.com") || !strcmp(h.authority, "api.example.com:80"));
		MUST(strncmp(h.target, "/deny", 5) && (h.target[0] == '/' || h.target[0] == '*'));
		for (size_t i = 0; i < h.n; i++)
			times += !strcasecmp(h.f[i].name, "authorization");
		MUST(times == 1 && strstr(head_get(&h, "authorization"), VALUE));
		MUST(!strcmp(head_get(&h, "accept-encoding"), "identity") && !head_get(&h, "range") && !head_get(&h, "upgrade"));
		http1_body_begin(&body, h.body, h.length);
		in_body = !body.done;
		head_done(&h);
		bytes_drop(&to_server, used);
	}
}

static void look(void)
{
	char buf[32768];
	ssize_t n;

	while (server_end >= 0 && (n = read(server_end, buf, sizeof buf)) > 0)
		MUST(bytes_add(&to_server, buf, (size_t)n));
	server_reads();
	while ((n = read(client_end, buf, sizeof buf)) > 0) {
		MUST(bytes_add(&to_client, buf, (size_t)n));
		/* The value in one piece, as it is: masked, also over pieces.  (Chunk sizes may come between.) */
		MUST(!memmem(bytes_at(&to_client), to_client.len, VALUE, sizeof VALUE - 1));
		if (to_client.len > 64)
			bytes_drop(&to_client, to_client.len - 64);
	}
}

static void f_dial(void *arg)
{
	int s[2];

	(void)arg;
	look();
	if (server_end >= 0)
		close(server_end);
	bytes_drop(&to_server, to_server.len); /* a request that was cut off */
	in_body = false;
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
	server_end = s[1];
	intercept_dialled(box, s[0], NULL);
}

static void f_judge(void *arg, const char *method, const char *path, struct net_verdict *ret)
{
	(void)arg;
	MUST(text_is_token(method, strlen(method)) && text_is_target(path, strlen(path)));
	*ret = (struct net_verdict){ .ok = strncmp(path, "/deny", 5) != 0 };
	allowed += ret->ok;
	judged++;
}

static bool f_count(void *arg, uint64_t out, uint64_t in)
{
	(void)arg;
	(void)out;
	(void)in;
	return true;
}

static void f_done(void *arg, const char *method, const char *path, int status, const char *why, size_t masked)
{
	(void)arg;
	(void)method;
	(void)path;
	(void)status;
	(void)why;
	(void)masked;
	done++;
}

static void f_closed(void *arg, const char *why)
{
	(void)arg;
	(void)why;
	closed++;
}

static void f_untrusted(void *arg, const char *why, const char *fix)
{
	(void)arg;
	(void)why;
	(void)fix;
}

static void stop(void *l)
{
	loop_stop(l);
}

/* All that can happen without waiting. */
static void run(struct loop *l)
{
	for (int i = 0; i < 3; i++) {
		loop_defer(l, stop, l);
		(void)loop_run(l);
		look();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct secret secret = { .name = (char *)"S", .placeholder = (char *)"caisson-secret-S-0", .value = (char *)VALUE,
					      .value_len = 16, .header = (char *)"Authorization", .format = (char *)"Bearer {}" };
	static const struct secret *const secrets[] = { &secret };
	struct loop *l = loop_new();
	int s[2];

	signal(SIGPIPE, SIG_IGN);
	allowed = closed = done = judged = got = 0;
	in_body = false;
	server_end = -1;
	to_server = (struct bytes){ .max = 1 << 22 };
	to_client = (struct bytes){ .max = 1 << 22 };
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
	client_end = s[1];
	box = intercept_new(&(struct intercept_opts){ .loop = l, .name = "api.example.com", .port = 80, .client = s[0], .secrets = secrets,
						      .n_secrets = 1, .owner = { NULL, f_dial, f_judge, f_count, f_done, f_closed, f_untrusted } });
	run(l);
	for (size_t at = 0; at < size && !closed;) {
		bool server = data[at] & 0x80;
		size_t n = (size_t)(data[at++] & 0x7f) * 4 + 1;

		if (n > size - at)
			n = size - at;
		if (n && (!server || server_end >= 0))
			(void)!write(server ? server_end : client_end, data + at, n);
		at += n;
		run(l);
	}
	if (!closed && server_end >= 0)
		shutdown(server_end, SHUT_WR);
	run(l);
	shutdown(client_end, SHUT_WR);
	run(l);
	if (!closed)
		intercept_cut(box, "over");
	run(l);
	MUST(closed == 1 && done >= judged);
	close(client_end);
	if (server_end >= 0)
		close(server_end);
	bytes_done(&to_server);
	bytes_done(&to_client);
	loop_free(l);
	return 0;
}
