/* SPDX-License-Identifier: Apache-2.0 */
/* test_intercept.c - HTTP through the boundary, from a client to a server.
 *
 * A client may send anything: what counts is what the server then saw, which is
 * nothing at all or one request that nobody could read in two ways. */
#include "edge/world.h"

#include "egress/edge/intercept_internal.h" /* to let time pass */

static char answer[1 << 20];

static struct world *fresh(void)
{
	struct world *w = calloc(1, sizeof *w);

	w->hello = (struct hello){ .has_name = true };
	return w;
}

static void finish(struct world *w)
{
	world_run(w);
	free(w);
}

/* Of "\r\nName: value" lines in what the server saw. */
static int count_of(const char *text, const char *what)
{
	int n = 0;

	for (const char *p = text; (p = strcasestr(p, what)); p++)
		n++;
	return n;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: " NAME "\r\n\r\n"
#define GET_CLOSE(path) "GET " path " HTTP/1.1\r\nHost: " NAME "\r\nConnection: close\r\n\r\n"

static void ask(struct world *w, const char *request)
{
	memset(answer, 0, 64);
	w_talk(w, request, strlen(request), answer, sizeof answer, 3000);
}

/* ---- what passes ---- */

static void c_simple(struct world *w)
{
	ask(w, GET_CLOSE("/a?b=c"));
	T_TRUE(!strncmp(answer, "HTTP/1.1 200 OK\r\n", 17));
	T_TRUE(strstr(answer, "\r\n\r\nok"));
	T_TRUE(strstr(w->seen, "GET /a?b=c HTTP/1.1\r\nHost: " NAME "\r\n"));
	T_TRUE(!strcasestr(w->seen, "authorization"));
}

TEST(a_request_goes_through_tls_to_the_server_and_its_answer_back)
{
	struct world *w = fresh();

	w->client = c_simple;
	world_run(w);
	T_STR(w->done, "GET /a?b=c 200\n");
	T_STR(w->closed, "-\n");
	T_TRUE(w->out >= 40 && w->in >= 40);
	free(w);
}

TEST(plain_http_goes_the_same_way)
{
	struct world *w = fresh();

	w->plain = true;
	w->client = c_simple;
	finish(w);
}

static void c_keep(struct world *w)
{
	struct conn *c = w_connect(w);

	for (int i = 0; i < 3; i++) {
		T_TRUE(w_talk_on(c, GET("/x"), strlen(GET("/x")), answer, sizeof answer, 300) > 0);
		T_TRUE(strstr(answer, "\r\n\r\nok"));
	}
	c_close(c);
}

TEST(a_connection_serves_several_requests_over_one_to_the_server)
{
	struct world *w = fresh();

	w->client = c_keep;
	world_run(w);
	T_INT(w->served, 3);
	T_INT(w->connections, 1);
	T_INT(w->n_done, 3);
	free(w);
}

static void c_pipelined(struct world *w)
{
	ask(w, GET("/1") GET("/deny/2") GET_CLOSE("/3"));
	T_INT(count_of(answer, "HTTP/1.1 200"), 2);
	T_INT(count_of(answer, "HTTP/1.1 403"), 1);
	T_TRUE(strstr(answer, "HTTP/1.1 403") > strstr(answer, "HTTP/1.1 200"));
	T_TRUE(!strstr(w->seen, "deny"));
}

TEST(pipelined_requests_are_judged_one_by_one)
{
	struct world *w = fresh();

	w->client = c_pipelined;
	world_run(w);
	T_TRUE(!strncmp(w->done, "GET /1 200\nGET /deny/2 403 no rule allows GET \"/deny/2\"\nGET /3 200\n", 60));
	free(w);
}

static void serve_and_close(struct world *w, struct conn *c)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	char head[4096];

	if (serve_read(w, c, head, sizeof head))
		c_write(c, ok, sizeof ok - 1);
}

static void c_redial(struct world *w)
{
	struct conn *c = w_connect(w);

	for (int i = 0; i < 3; i++) {
		T_TRUE(w_talk_on(c, GET("/x"), strlen(GET("/x")), answer, sizeof answer, 300) > 0);
		T_TRUE(strstr(answer, "\r\n\r\nok"));
	}
	c_close(c);
}

TEST(a_server_that_closed_while_idle_is_dialled_again)
{
	struct world *w = fresh();

	w->client = c_redial;
	w->serve = serve_and_close;
	world_run(w);
	T_INT(w->connections, 3);
	free(w);
}

static void c_post(struct world *w)
{
	ask(w, "POST /p HTTP/1.1\r\nHost: " NAME "\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
	       "5;ext=\"a\"\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: x\r\n\r\n");
	T_TRUE(strstr(answer, "200 OK"));
	T_TRUE(strstr(w->seen, "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"));
	T_TRUE(!strstr(w->seen, "ext") && !strstr(w->seen, "Trailer"));
}

TEST(chunks_are_framed_anew_without_extensions_and_trailers)
{
	struct world *w = fresh();

	w->client = c_post;
	finish(w);
}

static void c_old(struct world *w)
{
	ask(w, "GET / HTTP/1.0\r\nHost: " NAME "\r\n\r\n");
	T_TRUE(strstr(answer, "200 OK") && strstr(answer, "Connection: close\r\n") && strstr(answer, "\r\n\r\nhello"));
	T_TRUE(!strcasestr(answer, "chunked"));
	T_TRUE(strstr(w->seen, "GET / HTTP/1.1\r\n"));
}

TEST(http_1_0_gets_no_chunks)
{
	struct world *w = fresh();

	w->client = c_old;
	w->reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
	finish(w);
}

static void c_until_close(struct world *w)
{
	ask(w, GET("/a") GET_CLOSE("/b"));
	T_INT(count_of(answer, "200 OK"), 2);
	T_INT(count_of(answer, "5\r\nhello\r\n0\r\n\r\n"), 2);
}

TEST(an_answer_that_ends_with_its_connection_becomes_chunks)
{
	struct world *w = fresh();

	w->client = c_until_close;
	w->reply = "HTTP/1.1 200 OK\r\n\r\nhello";
	finish(w);
}

static void c_head(struct world *w)
{
	ask(w, "HEAD /a HTTP/1.1\r\nHost: " NAME "\r\n\r\n" GET_CLOSE("/deny"));
	T_TRUE(strstr(answer, "Content-Length: 2\r\n\r\nHTTP/1.1 403"));
}

static void serve_head(struct world *w, struct conn *c)
{
	char head[4096];

	while (serve_read(w, c, head, sizeof head))
		c_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
}

TEST(an_answer_to_head_has_no_body)
{
	struct world *w = fresh();

	w->client = c_head;
	w->serve = serve_head;
	finish(w);
}

static void serve_continue(struct world *w, struct conn *c)
{
	char head[4096];
	size_t n = 0;

	while (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4)) {
		if (c_read(c, head + n, 1) <= 0)
			return;
		w_saw(w, head + n, 1);
		n++;
	}
	c_say(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
	for (int i = 0; i < 4; i++)
		c_read(c, head, 1);
	c_say(c, "HTTP/1.1 204 No Content\r\n\r\n");
}

static void c_continue(struct world *w)
{
	struct conn *c = w_connect(w);
	static const char q[] = "PUT /c HTTP/1.1\r\nHost: " NAME "\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";

	w_talk_on(c, q, sizeof q - 1, answer, sizeof answer, 500);
	T_STR(answer, "HTTP/1.1 100 Continue\r\n\r\n");
	w_talk_on(c, "body", 4, answer, sizeof answer, 500);
	T_TRUE(!strncmp(answer, "HTTP/1.1 204 No Content\r\n", 25));
	c_close(c);
}

TEST(expect_100_continue_is_carried_and_other_interim_answers_are_dropped)
{
	struct world *w = fresh();

	w->client = c_continue;
	w->serve = serve_continue;
	finish(w);
}

/* ---- size and pressure ---- */

enum { BIG = 8 << 20 };

static void serve_big(struct world *w, struct conn *c)
{
	char head[4096], *block = malloc(65536);
	int n = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BIG);
	char ask_[4096];

	memset(block, 'x', 65536);
	if (serve_read(w, c, ask_, sizeof ask_)) {
		c_write(c, head, (size_t)n);
		for (int i = 0; i < BIG / 65536; i++)
			if (!c_write(c, block, 65536))
				break;
	}
	free(block);
}

static void c_big(struct world *w)
{
	struct conn *c = w_connect(w);
	size_t total = 0;
	ssize_t r;

	c_write(c, GET_CLOSE("/big"), strlen(GET_CLOSE("/big")));
	usleep(200000); /* both buffers fill up */
	while ((r = c_read(c, answer, sizeof answer)) > 0)
		total += (size_t)r;
	T_TRUE(total > BIG && total < BIG + 300);
	c_close(c);
}

TEST(a_large_answer_waits_for_a_slow_reader)
{
	struct world *w = fresh();

	w->client = c_big;
	w->serve = serve_big;
	finish(w);
}

TEST(a_large_answer_is_masked_at_its_size)
{
	struct world *w = fresh();

	w->client = c_big;
	w->serve = serve_big;
	w->secret = true;
	finish(w);
}

static void serve_sink(struct world *w, struct conn *c)
{
	char buf[65536], *p;
	size_t n = 0, left;
	ssize_t r;

	(void)w;
	while (n < 4 || memcmp(buf + n - 4, "\r\n\r\n", 4)) {
		if (c_read(c, buf + n, 1) <= 0)
			return;
		n++;
	}
	buf[n] = 0;
	p = strcasestr(buf, "content-length:");
	left = p ? (size_t)atol(p + 15) : 0;
	usleep(200000);
	while (left && (r = c_read(c, buf, sizeof buf)) > 0)
		left -= (size_t)r;
	if (!left)
		c_say(c, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
}

static void c_upload(struct world *w)
{
	struct conn *c = w_connect(w);
	char head[256];
	int n = snprintf(head, sizeof head, "POST /up HTTP/1.1\r\nHost: " NAME "\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", BIG);

	memset(answer, 'y', 65536);
	c_write(c, head, (size_t)n);
	for (int i = 0; i < BIG / 65536; i++)
		T_TRUE(c_write(c, answer, 65536));
	w_talk_on(c, "", 0, answer, sizeof answer, 5000);
	T_TRUE(!strncmp(answer, "HTTP/1.1 201", 12));
	c_close(c);
}

TEST(a_large_request_waits_for_a_slow_server)
{
	struct world *w = fresh();

	w->client = c_upload;
	w->serve = serve_sink;
	finish(w);
}

static void c_budget(struct world *w)
{
	struct conn *c = w_connect(w);

	w_talk_on(c, GET("/big"), strlen(GET("/big")), answer, sizeof answer, 3000);
	c_close(c);
}

TEST(a_used_up_budget_cuts_the_connection)
{
	struct world *w = fresh();

	w->client = c_budget;
	w->serve = serve_big;
	w->budget = 100000;
	world_run(w);
	T_STR(w->closed, "a budget is used up\n");
	T_STR(w->done, "GET /big 200 a budget is used up\n");
	free(w);
}

/* ---- refusals ---- */

static void c_refused(struct world *w)
{
	struct conn *c = w_connect(w);
	static const char q[] = "POST /deny\"x HTTP/1.1\r\nHost: " NAME "\r\nContent-Length: 5\r\n\r\nhello";

	w_talk_on(c, q, sizeof q - 1, answer, sizeof answer, 300);
	T_TRUE(!strncmp(answer, "HTTP/1.1 403 Forbidden\r\n", 24));
	T_TRUE(strstr(answer, "Content-Type: application/json\r\n"));
	T_TRUE(strstr(answer, "{\"error\":\"refused\",\"by\":\"caisson\",\"reason\":\"no rule allows POST \\\"/deny\\\"x\\\"\",\"allow\":\"--allow "));
	w_talk_on(c, GET("/fine"), strlen(GET("/fine")), answer, sizeof answer, 300);
	T_TRUE(strstr(answer, "\r\n\r\nok"));
	c_close(c);
	T_TRUE(!strstr(w->seen, "deny") && !strstr(w->seen, "hello"));
}

TEST(a_refused_request_is_told_why_and_the_connection_lives)
{
	struct world *w = fresh();

	w->client = c_refused;
	finish(w);
}

static void c_refused_big(struct world *w)
{
	static char q[400000];
	int n = snprintf(q, sizeof q, "POST /deny HTTP/1.1\r\nHost: " NAME "\r\nContent-Length: 300000\r\n\r\n");

	memset(q + n, 'z', 300000);
	w_talk(w, q, (size_t)n + 300000, answer, sizeof answer, 3000);
	T_TRUE(!strncmp(answer, "HTTP/1.1 403", 12) && strstr(answer, "Connection: close"));
	T_INT(count_of(answer, "HTTP/1.1 "), 1);
}

TEST(a_refused_request_with_a_large_body_ends_the_connection_and_is_still_answered)
{
	struct world *w = fresh();

	w->client = c_refused_big;
	world_run(w);
	T_INT(w->n_seen, 0);
	free(w);
}

static void c_cert(struct world *w)
{
	ask(w, GET("/x") GET("/y"));
	T_TRUE(!strncmp(answer, "HTTP/1.1 502 Bad Gateway\r\n", 26));
	T_TRUE(strstr(answer, "{\"error\":\"bad_gateway\",\"by\":\"caisson\",\"reason\":\"the certificate of " NAME " was not accepted: "));
	T_INT(count_of(answer, "HTTP/1.1 "), 1);
}

TEST(a_certificate_for_another_name_is_a_502_that_says_so)
{
	struct world *w = fresh();

	w->client = c_cert;
	w->cert_name = "evil.example.com";
	world_run(w);
	T_INT(w->n_seen, 0);
	T_TRUE(strstr(w->closed, "hostname mismatch"));
	T_TRUE(w->n_untrusted == 1 && strstr(w->untrusted, "hostname mismatch; -"));
	free(w);
}

TEST(a_certificate_of_an_unknown_authority_is_a_502_that_says_so)
{
	struct world *w = fresh();

	w->client = c_cert;
	w->stranger = true;
	world_run(w);
	T_INT(w->n_seen, 0);
	free(w);
}

static void c_cert_fix(struct world *w)
{
	c_cert(w);
	T_TRUE(strstr(answer, "\"allow\":\"") && strstr(answer, "SSL_CERT_FILE=FILE"));
}

TEST(who_signed_an_unknown_certificate_can_be_trusted_and_that_is_said)
{
	struct world *w = fresh();

	(void)unsetenv("SSL_CERT_FILE");
	w->client = c_cert_fix;
	w->stranger = true;
	world_run(w);
	T_INT(w->n_untrusted, 1); /* once for the connection, not for each request */
	T_TRUE(strstr(w->untrusted, "the certificate of " NAME " was not accepted: ") && strstr(w->untrusted, "SSL_CERT_FILE=FILE"));
	free(w);
}

static void c_unreachable(struct world *w)
{
	ask(w, GET("/x"));
	T_TRUE(!strncmp(answer, "HTTP/1.1 502 ", 13) && strstr(answer, "connection refused (test)"));
}

TEST(a_server_that_cannot_be_reached_is_a_502_that_says_so)
{
	struct world *w = fresh();

	w->client = c_unreachable;
	w->refuse_dial = true;
	finish(w);
}

/* ---- smuggling: requests ---- */

#define POST_ "POST / HTTP/1.1\r\nHost: " NAME "\r\n"
#define EVIL  "GET /deny/evil HTTP/1.1\r\nHost: " NAME "\r\n\r\n"

static const struct row {
	const char *name, *request;
	int status;  /* of the first answer */
	int reaches; /* requests that the server saw */
} rows[] = {
	{ "content length beside chunked", POST_ "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" EVIL, 400, 0 },
	{ "chunked beside content length", POST_ "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n" EVIL "\r\n0\r\n\r\n", 400, 0 },
	{ "two codings", POST_ "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "coding twice", POST_ "Transfer-Encoding: chunked\r\nTransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "coding list", POST_ "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "coding xchunked", POST_ "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "coding quoted", POST_ "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "coding with vertical tab", POST_ "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "coding folded", POST_ "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "space before colon", POST_ "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "tab before colon", POST_ "Content-Length\t: 5\r\n\r\nhello", 400, 0 },
	{ "name with a space in front", POST_ " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "coding in http 1.0", "POST / HTTP/1.0\r\nHost: " NAME "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 0 },
	{ "two lengths", POST_ "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400, 0 },
	{ "same length twice", POST_ "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400, 0 },
	{ "length list", POST_ "Content-Length: 5, 5\r\n\r\nhello", 400, 0 },
	{ "length with a plus", POST_ "Content-Length: +5\r\n\r\nhello", 400, 0 },
	{ "length negative", POST_ "Content-Length: -1\r\n\r\n", 400, 0 },
	{ "length hex", POST_ "Content-Length: 0x5\r\n\r\nhello", 400, 0 },
	{ "length overflowing", POST_ "Content-Length: 18446744073709551621\r\n\r\nhello", 400, 0 },
	{ "length empty", POST_ "Content-Length:\r\n\r\nhello", 400, 0 },
	{ "bare lf ends a line", "GET / HTTP/1.1\nHost: " NAME "\r\n\r\n", 400, 0 },
	{ "bare lf in a value", "GET / HTTP/1.1\r\nHost: " NAME "\r\nX: a\nEvil: b\r\n\r\n", 400, 0 },
	{ "bare cr in a value", "GET / HTTP/1.1\r\nHost: " NAME "\r\nX: a\rEvil: b\r\n\r\n", 400, 0 },
	{ "cr cr lf", "GET / HTTP/1.1\r\nHost: " NAME "\r\nX: a\r\r\n\r\n", 400, 0 },
	{ "folded line", "GET / HTTP/1.1\r\nHost: " NAME "\r\nX: a\r\n b\r\n\r\n", 400, 0 },
	{ "no colon", "GET / HTTP/1.1\r\nHost: " NAME "\r\nX\r\n\r\n", 400, 0 },
	{ "empty name", "GET / HTTP/1.1\r\nHost: " NAME "\r\n: x\r\n\r\n", 400, 0 },
	{ "high byte in a name", "GET / HTTP/1.1\r\nHost: " NAME "\r\nX\xc3\xa9: x\r\n\r\n", 400, 0 },
	{ "empty line first", "\r\nGET / HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 400, 0 },
	{ "two spaces in the first line", "GET  / HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 400, 0 },
	{ "space in the target", "GET /a b HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 400, 0 },
	{ "tab in the target", "GET /a\tb HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 400, 0 },
	{ "fragment in the target", "GET /a#b HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 400, 0 },
	{ "http 0.9", "GET /\r\n\r\n", 400, 0 },
	{ "http 2.0 as text", "GET / HTTP/2.0\r\nHost: " NAME "\r\n\r\n", 505, 0 },
	{ "no host", "GET / HTTP/1.1\r\n\r\n", 400, 0 },
	{ "two hosts", "GET / HTTP/1.1\r\nHost: " NAME "\r\nHost: evil.example.com\r\n\r\n", 400, 0 },
	{ "the same host twice", "GET / HTTP/1.1\r\nHost: " NAME "\r\nhost: " NAME "\r\n\r\n", 400, 0 },
	{ "another host", "GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", 421, 0 },
	{ "host below ours", "GET / HTTP/1.1\r\nHost: x." NAME "\r\n\r\n", 421, 0 },
	{ "host longer than ours", "GET / HTTP/1.1\r\nHost: " NAME ".evil.com\r\n\r\n", 421, 0 },
	{ "host with user", "GET / HTTP/1.1\r\nHost: " NAME "@evil.com\r\n\r\n", 421, 0 },
	{ "host with another port", "GET / HTTP/1.1\r\nHost: " NAME ":444\r\n\r\n", 421, 0 },
	{ "host with an odd port", "GET / HTTP/1.1\r\nHost: " NAME ":443x\r\n\r\n", 421, 0 },
	{ "host empty", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 421, 0 },
	{ "host with our port", "GET / HTTP/1.1\r\nHost: API.example.com:443\r\n\r\n", 200, 1 },
	{ "absolute form of ours", "GET https://" NAME "/p HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 200, 1 },
	{ "absolute form of another", "GET https://evil.example.com/ HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 421, 0 },
	{ "absolute form, host another", "GET https://" NAME "/ HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", 421, 0 },
	{ "absolute form with user", "GET https://" NAME "@evil.example.com/ HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 421, 0 },
	{ "absolute form of another scheme", "GET ftp://" NAME "/ HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 400, 0 },
	{ "connect", "CONNECT " NAME ":443 HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 405, 0 },
	{ "trace", "TRACE / HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 405, 0 },
	{ "asterisk", "GET * HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 400, 0 },
	{ "path without a slash", "GET deny HTTP/1.1\r\nHost: " NAME "\r\n\r\n", 400, 0 },
	{ "connection names host", "GET / HTTP/1.1\r\nHost: " NAME "\r\nConnection: Host\r\n\r\n", 400, 0 },
	{ "connection names authorization", "GET / HTTP/1.1\r\nHost: " NAME "\r\nConnection: close, Authorization\r\n\r\n", 400, 0 },
	{ "connection names length", POST_ "Content-Length: 5\r\nConnection: content-length\r\n\r\nhello", 400, 0 },
	{ "websocket", "GET / HTTP/1.1\r\nHost: " NAME "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 501, 0 },
	{ "h2c upgrade is ignored",
	  "GET / HTTP/1.1\r\nHost: " NAME "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", 200, 1 },
	{ "unknown expectation", POST_ "Expect: the-moon\r\nContent-Length: 5\r\n\r\nhello", 417, 0 },
	{ "chunk size with a sign", POST_ "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", 400, -1 },
	{ "chunk size hex prefix", POST_ "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", 400, -1 },
	{ "chunk size huge", POST_ "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n", 400, -1 },
	{ "chunk size empty", POST_ "Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", 400, -1 },
	{ "chunk line ends in lf", POST_ "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", 400, -1 },
	{ "chunk longer than its size", POST_ "Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n", 400, -1 },
	{ "chunk extension with lf", POST_ "Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n", 400, -1 },
	{ "chunk extension with cr", POST_ "Transfer-Encoding: chunked\r\n\r\n5;a\rb\r\nhello\r\n0\r\n\r\n", 400, -1 },
	{ "space after a chunk size", POST_ "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", 400, -1 },
	{ "trailer with bare lf", POST_ "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n", 400, -1 },
	{ "trailer folded", POST_ "Transfer-Encoding: chunked\r\n\r\n0\r\n a\r\n\r\n", 400, -1 },
};

static const struct row *row_now;

static void c_row(struct world *w)
{
	ask(w, row_now->request);
}

static void run_row(const void *arg)
{
	struct world *w = fresh();

	row_now = arg;
	w->client = c_row;
	world_run(w);
	T_TRUE(!strncmp(answer, "HTTP/1.1 ", 9));
	T_INT(atoi(answer + 9), row_now->status);
	/* -1: the head was fine and may have gone ahead of its body; never a whole request, nor another. */
	T_INT(w->served, row_now->reaches < 0 ? 0 : row_now->reaches);
	if (!row_now->reaches)
		T_INT(w->n_seen, 0);
	T_TRUE(count_of(w->seen, "HTTP/1.1\r\n") <= 1);
	T_TRUE(!strcasestr(w->seen, "evil"));
	if (row_now->status == 400)
		T_INT(count_of(answer, "HTTP/1.1 "), 1);
	free(w);
}

TEST_TABLE(smuggled)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char name[128];

		snprintf(name, sizeof name, "request: %s", rows[i].name);
		t_add(name, run_row, &rows[i]);
	}
}

static void c_nul(struct world *w)
{
	static const char q[] = "GET / HTTP/1.1\r\nHost: " NAME "\r\nX: a\0b\r\n\r\n";

	w_talk(w, q, sizeof q - 1, answer, sizeof answer, 3000);
	T_INT(atoi(answer + 9), 400);
}

TEST(a_nul_in_a_head_is_refused)
{
	struct world *w = fresh();

	w->client = c_nul;
	world_run(w);
	T_INT(w->n_seen, 0);
	free(w);
}

static void c_large(struct world *w)
{
	static char q[200000];
	int n;

	n = snprintf(q, sizeof q, "GET /");
	memset(q + n, 'a', 20000);
	snprintf(q + n + 20000, 200, " HTTP/1.1\r\nHost: " NAME "\r\n\r\n");
	ask(w, q);
	T_INT(atoi(answer + 9), 414);
	n = snprintf(q, sizeof q, "GET / HTTP/1.1\r\nHost: " NAME "\r\nX: ");
	memset(q + n, 'a', 70000);
	snprintf(q + n + 70000, 200, "\r\n\r\n");
	ask(w, q);
	T_INT(atoi(answer + 9), 431);
	n = snprintf(q, sizeof q, "GET / HTTP/1.1\r\nHost: " NAME "\r\n");
	for (int i = 0; i < 200; i++)
		n += snprintf(q + n, 20, "X: %d\r\n", i);
	snprintf(q + n, 200, "\r\n");
	ask(w, q);
	T_INT(atoi(answer + 9), 431);
}

TEST(heads_that_are_too_large_are_refused)
{
	struct world *w = fresh();

	w->client = c_large;
	world_run(w);
	T_INT(w->n_seen, 0);
	free(w);
}

static void c_hop(struct world *w)
{
	ask(w, "GET / HTTP/1.1\r\nHost: " NAME "\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: a\r\n"
	       "Proxy-Connection: b\r\nTE: trailers\r\nX-Stays: yes\r\n\r\n");
	T_TRUE(strstr(answer, "200 OK"));
	T_TRUE(!strcasestr(w->seen, "x-hop") && !strcasestr(w->seen, "keep-alive") && !strcasestr(w->seen, "proxy-") &&
	       !strcasestr(w->seen, "te:") && strstr(w->seen, "X-Stays: yes\r\n"));
}

TEST(what_is_for_one_hop_goes_no_further)
{
	struct world *w = fresh();

	w->client = c_hop;
	finish(w);
}

/* ---- answers that cannot be trusted ---- */

static const struct answer_row {
	const char *name, *reply;
	int status;
} answer_rows[] = {
	{ "length beside chunked", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 502 },
	{ "two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 502 },
	{ "coded", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 502 },
	{ "bare lf", "HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", 502 },
	{ "folded", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 3\r\n\r\nabc", 502 },
	{ "protocol changed", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\ncontent-length", 502 },
	{ "not http", "SSH-2.0-OpenSSH content-length\r\n\r\n", 502 },
	{ "http 2 as text", "HTTP/2 200 OK\r\nContent-Length: 3\r\n\r\nabc", 502 },
	{ "status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 3\r\n\r\nabc", 502 },
	{ "nothing", "", 502 },
	{ "no reason", "HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc", 200 },
	{ "redirect", "HTTP/1.1 302 Found\r\nLocation: https://other.example.com/\r\nContent-Length: 0\r\n\r\n", 302 },
	{ "not modified with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", 304 },
};
static const struct answer_row *answer_now;

static void c_answer(struct world *w)
{
	ask(w, GET_CLOSE("/x"));
}

static void run_answer_row(const void *arg)
{
	struct world *w = fresh();

	answer_now = arg;
	w->client = c_answer;
	w->reply = answer_now->reply;
	world_run(w);
	T_TRUE(!strncmp(answer, "HTTP/1.1 ", 9));
	T_INT(atoi(answer + 9), answer_now->status);
	T_INT(count_of(answer, "HTTP/1.1 "), 1);
	T_INT(w->n_done, 1);
	free(w);
}

TEST_TABLE(answers)
{
	for (size_t i = 0; i < sizeof answer_rows / sizeof *answer_rows; i++) {
		char name[128];

		snprintf(name, sizeof name, "answer: %s", answer_rows[i].name);
		t_add(name, run_answer_row, &answer_rows[i]);
	}
}

static void c_two_answers(struct world *w)
{
	struct conn *c = w_connect(w);

	w_talk_on(c, GET("/1"), strlen(GET("/1")), answer, sizeof answer, 400);
	T_TRUE(strstr(answer, "\r\n\r\nok") && !strstr(answer, "poison"));
	w_talk_on(c, GET("/2"), strlen(GET("/2")), answer, sizeof answer, 400);
	T_TRUE(strstr(answer, "\r\n\r\nok") && !strstr(answer, "poison"));
	c_close(c);
}

TEST(an_answer_nobody_asked_for_is_not_taken_for_the_next_one)
{
	struct world *w = fresh();

	w->client = c_two_answers;
	w->reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
	world_run(w);
	T_INT(w->connections, 2);
	free(w);
}

static void c_cut_short(struct world *w)
{
	ask(w, GET("/1"));
	T_TRUE(strstr(answer, "200 OK") && !strstr(answer, "\r\n0\r\n"));
}

static void serve_short(struct world *w, struct conn *c)
{
	char head[4096];

	if (serve_read(w, c, head, sizeof head))
		c_say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
}

TEST(an_answer_cut_short_is_not_ended_in_order)
{
	struct world *w = fresh();

	w->client = c_cut_short;
	w->serve = serve_short;
	world_run(w);
	T_STR(w->closed, "the server's answer ended early\n");
	free(w);
}

/* ---- secrets ---- */

static void c_secret(struct world *w)
{
	ask(w, "POST /" PLACEHOLDER " HTTP/1.1\r\nHost: " NAME "\r\nauthorization: Bearer " PLACEHOLDER "\r\nX-Other: " PLACEHOLDER
	       "\r\nAuthorization: second\r\nAccept-Encoding: gzip, br\r\nRange: bytes=0-3\r\nIf-Range: x\r\nConnection: close\r\n"
	       "Content-Length: 50\r\n\r\n" PLACEHOLDER);
	T_TRUE(strstr(answer, "200 OK"));
	T_INT(count_of(w->seen, VALUE), 1);
	T_TRUE(strstr(w->seen, "Authorization: Bearer " VALUE "\r\n"));
	T_INT(count_of(w->seen, "authorization:"), 1);
	T_INT(count_of(w->seen, PLACEHOLDER), 3); /* path, other header, body: as they were */
	T_TRUE(strstr(w->seen, "Accept-Encoding: identity\r\n") && !strstr(w->seen, "gzip"));
	T_TRUE(!strcasestr(w->seen, "range"));
}

TEST(a_secret_goes_into_its_header_and_nowhere_else)
{
	struct world *w = fresh();

	w->client = c_secret;
	w->secret = true;
	finish(w);
}

static void c_secret_unasked(struct world *w)
{
	ask(w, GET_CLOSE("/"));
	T_TRUE(strstr(w->seen, "Authorization: Bearer " VALUE "\r\n"));
}

TEST(a_secret_is_added_when_the_client_sends_none)
{
	struct world *w = fresh();

	w->client = c_secret_unasked;
	w->secret = true;
	finish(w);
}

static void c_secret_refused(struct world *w)
{
	ask(w, GET_CLOSE("/deny"));
	T_INT(atoi(answer + 9), 403);
}

TEST(a_refused_request_carries_no_secret_anywhere)
{
	struct world *w = fresh();

	w->client = c_secret_refused;
	w->secret = true;
	world_run(w);
	T_INT(w->n_seen, 0);
	free(w);
}

/* "s3cr3t/Value+0123456789" in the forms in which servers echo things. */
static const char *const echoes[] = {
	VALUE,
	"s3cr3t%2FValue%2B0123456789",
	"s3cr3t%2fValue%2b0123456789",
	"s3cr3t\\/Value+0123456789",
	"s3cr3t\\u002fValue\\u002B0123456789",
	"czNjcjN0L1ZhbHVlKzAxMjM0NTY3ODk=",
};
static size_t echo_now;
static size_t split_at;

static void serve_echo(struct world *w, struct conn *c)
{
	const char *e = echoes[echo_now];
	char head[8192], out[1024];
	size_t n = strlen(e), at;

	while (serve_read(w, c, head, sizeof head)) {
		int k = snprintf(out, sizeof out, "HTTP/1.1 200 %s\r\nX-Echo: %s\r\nTransfer-Encoding: chunked\r\n\r\n", e, e);

		c_write(c, out, (size_t)k);
		at = split_at < n ? split_at : n - 1;
		k = snprintf(out, sizeof out, "%zx\r\n<<%.*s\r\n", at + 2, (int)at, e);
		c_write(c, out, (size_t)k);
		usleep(20000);
		k = snprintf(out, sizeof out, "%zx\r\n%s>>\r\n0\r\nX-Trailer: %s\r\n\r\n", n - at + 2, e + at, e);
		c_write(c, out, (size_t)k);
	}
}

static void c_echo(struct world *w)
{
	for (echo_now = 0; echo_now < sizeof echoes / sizeof *echoes; echo_now++)
		for (split_at = 1; split_at < 24; split_at += 7) {
			char flat[4096];
			size_t n = 0;

			ask(w, GET_CLOSE("/"));
			T_TRUE(strstr(answer, "X-Echo: *"));
			T_TRUE(!strstr(answer, "X-Trailer"));
			/* without the chunk framing */
			for (const char *p = strstr(answer, "\r\n\r\n") + 4; *p && n < sizeof flat - 1;) {
				char *end;
				size_t len = strtoul(p, &end, 16);

				memcpy(flat + n, end + 2, len);
				n += len;
				p = end + 2 + len + 2;
			}
			flat[n] = 0;
			T_TRUE(!strncmp(flat, "<<*", 3) && !strcmp(flat + n - 2, ">>"));
			T_TRUE(!strstr(answer, "Value") && !strstr(flat, "Value") && !strstr(flat, "L1ZhbHVl"));
			T_INT(n, strlen(echoes[echo_now]) + 4);
		}
}

TEST(an_echoed_secret_is_masked_in_head_and_body_in_every_form_over_chunks)
{
	struct world *w = fresh();

	w->client = c_echo;
	w->serve = serve_echo;
	w->secret = true;
	world_run(w);
	T_TRUE(w->masked >= 3 * 24);
	free(w);
}

static void c_echo_once(struct world *w)
{
	echo_now = 0;
	split_at = 9;
	ask(w, GET_CLOSE("/"));
	T_TRUE(strstr(answer, "X-Echo: *"));
	ask(w, GET_CLOSE("/deny"));
}

TEST(a_value_that_is_left_in_freed_memory_would_be_found)
{
	char *copy = malloc(256);

	strcpy(copy + 100, VALUE);
	__asm__ volatile("" ::"r"(copy) : "memory"); /* it is used, compiler */
	T_TRUE(w_in_memory("9876543210+eulaV/t3rc3s") > 0);
	free(copy);
	T_TRUE(w_in_memory("9876543210+eulaV/t3rc3s") > 0);
}

TEST(a_value_is_not_left_in_memory)
{
	struct world *w = fresh();

	w->client = c_echo_once;
	w->serve = serve_echo;
	w->secret = w->apart = true;
	finish(w);
}

static void c_encoded(struct world *w)
{
	ask(w, GET("/"));
	T_INT(atoi(answer + 9), 502);
	T_TRUE(strstr(answer, "secrets cannot be found") && !strstr(answer, "abc"));
}

TEST(encoded_content_is_refused_where_secrets_are_masked)
{
	struct world *w = fresh();

	w->client = c_encoded;
	w->secret = true;
	w->reply = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc";
	finish(w);
}

static void c_encoded_passes(struct world *w)
{
	ask(w, GET_CLOSE("/"));
	T_INT(atoi(answer + 9), 200);
}

TEST(encoded_content_passes_where_there_are_no_secrets)
{
	struct world *w = fresh();

	w->client = c_encoded_passes;
	w->reply = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc";
	finish(w);
}

/* ---- real clients ---- */

static void curl(struct world *w, const char *http, const char *path, struct t_result *r)
{
	char resolve[128], url[256];
	const char *argv[] = { "curl", "-sS", "-i", http, "--max-time", "10", "--cacert", w->ca_file, "--connect-to", resolve, url, NULL };

	snprintf(resolve, sizeof resolve, "::127.0.0.1:%d", w->port);
	snprintf(url, sizeof url, "%s://" NAME "%s", w->plain ? "http" : "https", path);
	t_run(r, argv);
	if (r->status == 127)
		T_SKIP("no curl here");
}

static void c_curl(struct world *w)
{
	static struct t_result r;

	curl(w, "--http1.1", "/curl?q=1", &r);
	T_INT(r.status, 0);
	T_TRUE(!strncmp(r.out, "HTTP/1.1 200 OK", 15) && strstr(r.out, "\r\n\r\nok"));
	curl(w, "--http1.1", "/deny/curl", &r);
	T_INT(r.status, 0);
	T_TRUE(!strncmp(r.out, "HTTP/1.1 403", 12) && strstr(r.out, "\"by\":\"caisson\""));
}

TEST(curl_speaks_http_1_1_through_it)
{
	struct world *w = fresh();

	w->hello.alpn = w->hello.http11 = true;
	w->client = c_curl;
	finish(w);
}

static void c_curl_many(struct world *w)
{
	static struct t_result r;
	char to[128];
	const char *argv[] = { "curl", "-sS", "-Z", "--parallel-immediate", "--http1.1", "--max-time", "30", "--cacert", w->ca_file, "--connect-to", to,
			       "-w", "%{http_code}\n", "-o", "/dev/null", "https://" NAME "/[1-40]", NULL };

	snprintf(to, sizeof to, "::127.0.0.1:%d", w->port);
	t_run(&r, argv);
	if (r.status == 127)
		T_SKIP("no curl here");
	T_INT(r.status, 0);
	T_INT(count_of(r.out, "200\n"), 40);
}

TEST(many_connections_at_once_are_served)
{
	struct world *w = fresh();

	w->secret = true;
	w->hello.alpn = w->hello.http11 = true;
	w->client = c_curl_many;
	world_run(w);
	T_INT(w->served, 40);
	free(w);
}

/* ---- time ---- */

static struct box *latest;
static int what_is_late;

static void time_passes(struct timer *t)
{
	struct intercept *i = latest->i;

	(void)t;
	if (what_is_late == 0) {
		T_TRUE(i->head_since);
		i->head_since -= 30 * 1000;
	} else if (what_is_late == 1) {
		T_TRUE(!i->head_since);
		i->last -= 10 * 60 * 1000;
	} else {
		T_TRUE(i->deadline);
		i->deadline -= 30 * 1000;
	}
	loop_timer(i->loop, &i->limit, 0);
}

static struct timer late = { .fire = time_passes };

static void c_late_head(struct world *w)
{
	ask(w, "GET / HTTP/1.1\r\nHost: ");
	T_STR(answer, "");
}

static void c_late(struct world *w)
{
	ask(w, "");
	T_STR(answer, "");
}

static void late_world(int what, void (*client)(struct world *w), const char *closed)
{
	struct world *w = fresh();

	what_is_late = what;
	w->client = client;
	w->on_new = &late;
	w->latest = &latest;
	world_run(w);
	T_STR(w->closed, closed);
	free(w);
}

TEST(a_head_that_takes_too_long_ends_the_connection)
{
	late_world(0, c_late_head, "a request's head took too long\n");
}

TEST(a_connection_that_is_idle_for_long_ends)
{
	late_world(1, c_late, "nothing was said for too long\n");
}

static void c_no_hello(struct world *w)
{
	int fd = connect_to(w->port);
	char b;

	T_INT(read(fd, &b, 1), 0);
	close(fd);
}

TEST(a_handshake_that_takes_too_long_ends_the_connection)
{
	late_world(2, c_no_hello, "the client's handshake took too long\n");
}

/* ---- what is left behind ---- */

static void c_half_head(struct world *w)
{
	struct conn *c = w_connect(w);

	c_write(c, "GET / HT", 8);
	c_close(c);
	c = w_connect(w);
	c_write(c, "POST / HTTP/1.1\r\nHost: " NAME "\r\nContent-Length: 100\r\n\r\nhalf", 66);
	usleep(100000);
	c_close(c);
	c = w_connect(w);
	c_write(c, GET("/big"), strlen(GET("/big")));
	T_TRUE(c_read(c, answer, 1000) > 0);
	close(c->fd); /* without a word */
	SSL_free(c->ssl);
	free(c);
	c = calloc(1, sizeof *c);
	c->fd = connect_to(w->port); /* not even a hello */
	c_close(c);
}

TEST(clients_that_leave_at_any_time_leave_nothing_behind)
{
	struct world *w = fresh();
	int before = t_count_fds();

	w->client = c_half_head;
	w->serve = serve_big;
	w->secret = true;
	world_run(w);
	T_INT(w->n_closed, 4);
	T_INT(t_count_fds(), before);
	free(w);
}
