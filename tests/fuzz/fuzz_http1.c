/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_http1.c - HTTP/1.1 as text.  What is accepted and written anew reads as the same message, with
 * nothing behind it; and a body has the same content however it is cut into pieces. */
#include "egress/edge/intercept_internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(e) ((e) ? (void)0 : abort())

static bool same_fields(const struct head *a, const struct head *b)
{
	if (a->n != b->n || a->body != b->body || a->length != b->length)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->f[i].name, b->f[i].name) || strcmp(a->f[i].value, b->f[i].value))
			return false;
	return true;
}

static void must_be_one(const struct bytes *out)
{
	int ends = 0;

	for (size_t i = 0; i + 3 < out->len; i++)
		ends += !memcmp(bytes_at(out) + i, "\r\n\r\n", 4);
	MUST(ends == 1 && !memcmp(bytes_at(out) + out->len - 4, "\r\n\r\n", 4));
	MUST(!memchr(bytes_at(out), 0, out->len));
}

/* Reads a body twice: in one piece, and byte by byte. */
static void body(const struct head *h, const char *data, size_t n)
{
	struct http1_body a, b;
	struct bytes whole = { .max = 1 << 22 }, parts = { .max = 1 << 22 };
	const char *piece;
	size_t len, at = 0, bt = 0;
	ssize_t r = 0;

	http1_body_begin(&a, h->body, h->length);
	while (!a.done && at < n && (r = http1_body_take(&a, data + at, n - at, &piece, &len)) > 0) {
		MUST(bytes_add(&whole, piece, len));
		at += (size_t)r;
	}
	http1_body_begin(&b, h->body, h->length);
	while (!b.done && bt < n) {
		ssize_t k = http1_body_take(&b, data + bt, 1, &piece, &len);

		if (k < 0)
			break;
		MUST(k == 1);
		MUST(bytes_add(&parts, piece, len));
		bt++;
	}
	MUST(a.done == b.done);
	if (a.done)
		MUST(at == bt && whole.len == parts.len && (!whole.len || !memcmp(bytes_at(&whole), bytes_at(&parts), whole.len)));
	bytes_done(&whole);
	bytes_done(&parts);
}

static void request(const char *data, size_t n)
{
	struct carry c = { .name = "api.example.com", .port = 443 };
	struct head h = { 0 }, again = { 0 };
	struct bytes out = { .max = 1 << 20 };
	struct refusal no;
	size_t scan = 0, used, used2;
	enum http1_result r = http1_request(data, n, &scan, &h, &used, &no);

	if (r != HTTP1_DONE) {
		MUST(!h.n && !h.method);
		return;
	}
	MUST(used <= n);
	body(&h, data + used, n - used);
	if (carry_request(&c, &h, &no)) {
		MUST(h.target[0] == '/' || !strcmp(h.target, "*"));
		MUST(!strncmp(h.authority, "api.example.com", 15));
		MUST(http1_write_request(&h, /* close= */ false, &out));
		must_be_one(&out);
		scan = 0;
		MUST(http1_request(bytes_at(&out), out.len, &scan, &again, &used2, &no) == HTTP1_DONE);
		MUST(used2 == out.len);
		MUST(!strcmp(h.method, again.method) && !strcmp(h.target, again.target) && !strcmp(h.authority, again.authority));
		MUST(same_fields(&h, &again));
		head_done(&again);
	}
	bytes_done(&out);
	head_done(&h);
}

static void response(const char *data, size_t n, const char *method)
{
	struct carry c = { .name = "api.example.com", .port = 443 };
	struct head h = { 0 }, again = { 0 };
	struct bytes out = { .max = 1 << 20 };
	struct refusal no;
	size_t scan = 0, used, used2, masked = 0;

	if (http1_response(data, n, &scan, method, &h, &used, &no) != HTTP1_DONE) {
		MUST(!h.n && !h.reason);
		return;
	}
	body(&h, data + used, n - used);
	if (carry_response(&c, &h, h.body != BODY_NONE, &masked, &no)) {
		MUST(http1_write_response(&h, /* close= */ false, &out));
		must_be_one(&out);
		scan = 0;
		MUST(http1_response(bytes_at(&out), out.len, &scan, method, &again, &used2, &no) == HTTP1_DONE);
		MUST(used2 == out.len && again.status == h.status && !strcmp(again.reason, h.reason));
		MUST(same_fields(&h, &again));
		head_done(&again);
	}
	bytes_done(&out);
	head_done(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	request((const char *)data, size);
	response((const char *)data, size, "GET");
	response((const char *)data, size, "HEAD");
	return 0;
}
