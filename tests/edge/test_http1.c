/* SPDX-License-Identifier: Apache-2.0 */
/* test_http1.c - HTTP/1.1 as text, and what is carried of it. */
#include "egress/edge/intercept_internal.h"
#include "harness/t.h"

static enum http1_result parse(const char *text, struct head *h, struct refusal *no)
{
	size_t scan = 0, used;

	return http1_request(text, strlen(text), &scan, h, &used, no);
}

TEST(a_head_that_comes_byte_by_byte_is_read_once)
{
	static const char q[] = "POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nX:  y \t\r\n\r\nabc";
	struct head h = { 0 };
	struct refusal no;
	size_t scan = 0, used = 0, n;

	for (n = 1; n < sizeof q; n++) {
		enum http1_result r = http1_request(q, n, &scan, &h, &used, &no);

		T_TRUE(r != HTTP1_BAD);
		if (r == HTTP1_DONE)
			break;
		T_INT(scan, n);
	}
	T_INT(n, sizeof q - 1 - 3);
	T_INT(used, n);
	T_STR(h.method, "POST");
	T_STR(h.target, "/a?b");
	T_STR(h.authority, "x");
	T_INT(h.body, BODY_LENGTH);
	T_INT(h.length, 3);
	T_INT(h.n, 1);
	T_STR(h.f[0].value, "y");
	head_done(&h);
}

TEST(what_is_wrong_is_seen_before_the_head_is_whole)
{
	struct head h = { 0 };
	struct refusal no;

	T_INT(parse("GET / HTTP/1.1\r\nX: a\n", &h, &no), HTTP1_BAD);
	T_INT(no.status, 400);
	T_INT(parse("GET / HTTP/1.1\r\nX: a\rb", &h, &no), HTTP1_BAD);
	T_INT(parse("GET / HTTP/1.1\r\nX: a\r", &h, &no), HTTP1_MORE);
	T_INT(parse("GET / HTTP/1.1\r\nX: a", &h, &no), HTTP1_MORE);
}

TEST(a_head_written_anew_holds_what_was_understood)
{
	struct carry c = { .name = "x.example", .port = 8443 };
	struct head h = { 0 };
	struct refusal no;
	struct bytes out = { .max = 4096 };

	T_INT(parse("GET https://X.example:8443?q HTTP/1.1\r\nA:1\r\nhost: X.example:8443\r\nConnection: b\r\nB: 2\r\nTransfer-Encoding: CHUNKED\r\n\r\n", &h, &no),
	      HTTP1_DONE);
	T_TRUE(carry_request(&c, &h, &no));
	T_TRUE(http1_write_request(&h, /* close= */ true, &out) && bytes_add(&out, "", 1));
	T_STR(bytes_at(&out), "GET /?q HTTP/1.1\r\nHost: x.example:8443\r\nA: 1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
	bytes_done(&out);
	head_done(&h);
}

TEST(chunks_may_be_cut_anywhere)
{
	static const char text[] = "5;a=\"b\"\r\nhello\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nNEXT";

	for (size_t step = 1; step < sizeof text; step++) {
		struct http1_body b;
		char got[64] = "";
		size_t at = 0, len;
		const char *piece;

		http1_body_begin(&b, BODY_CHUNKED, 0);
		while (!b.done) {
			size_t n = sizeof text - 1 - at < step ? sizeof text - 1 - at : step;
			ssize_t r = http1_body_take(&b, text + at, n, &piece, &len);

			T_TRUE(r > 0);
			strncat(got, piece, len);
			at += (size_t)r;
		}
		T_STR(got, "hello0123456789");
		T_STR(text + at, "NEXT");
	}
}

TEST(trailers_and_extensions_without_end_are_refused)
{
	struct http1_body b;
	const char *piece;
	size_t len;
	char line[128];
	ssize_t r = 0;

	memset(line, 'x', sizeof line);
	http1_body_begin(&b, BODY_CHUNKED, 0);
	T_INT(http1_body_take(&b, "5;", 2, &piece, &len), 2);
	for (int i = 0; i < 100 && r >= 0; i++)
		r = http1_body_take(&b, line, sizeof line, &piece, &len);
	T_INT(r, -1);
	http1_body_begin(&b, BODY_CHUNKED, 0);
	T_INT(http1_body_take(&b, "0\r\n", 3, &piece, &len), 3);
	r = 0;
	for (int i = 0; i < 10000 && r >= 0; i++)
		r = http1_body_take(&b, "a: b\r\n", 6, &piece, &len);
	T_INT(r, -1);
}

TEST(a_queue_keeps_its_bytes_in_order_and_its_maximum)
{
	struct bytes b = { .max = 3000 };
	unsigned char in = 0, out = 0, block[700];

	for (int i = 0; i < 1000; i++) {
		for (size_t k = 0; k < sizeof block; k++)
			block[k] = in++;
		T_TRUE(bytes_add(&b, block, sizeof block));
		while (b.len > (size_t)(i % 3) * 700) {
			T_INT((unsigned char)*bytes_at(&b), out++);
			bytes_drop(&b, 1);
		}
	}
	T_TRUE(!bytes_add(&b, block, sizeof block) || b.len <= 3000);
	for (int i = 0; i < 10; i++)
		(void)bytes_add(&b, block, sizeof block);
	T_TRUE(b.len <= 3000);
	bytes_done(&b);
}

TEST(two_secrets_for_one_header_are_told_apart_by_their_placeholders)
{
	const struct secret a = { .name = (char *)"A", .placeholder = (char *)"caisson-secret-A-0", .value = (char *)"value-of-a", .value_len = 10,
				  .header = (char *)"Authorization", .format = (char *)"Bearer {}" };
	const struct secret b = { .name = (char *)"B", .placeholder = (char *)"caisson-secret-B-0", .value = (char *)"value-of-b", .value_len = 10,
				  .header = (char *)"authorization", .format = (char *)"token {}" };
	const struct secret *const both[] = { &a, &b };
	struct carry c = { .name = "x", .port = 443, .secrets = both, .n_secrets = 2 };
	struct head h = { 0 };
	struct refusal no;

	head_add(&h, "Authorization", 13, "token caisson-secret-B-0", 24);
	T_TRUE(carry_secrets(&c, &h, &no));
	T_STR(head_get(&h, "authorization"), "token value-of-b");
	T_INT(head_remove(&h, "authorization"), 1);
	T_TRUE(carry_secrets(&c, &h, &no));
	T_STR(head_get(&h, "authorization"), "Bearer value-of-a");
	T_INT(head_remove(&h, "authorization"), 1);
	head_done(&h);
}
