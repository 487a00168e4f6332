/* SPDX-License-Identifier: Apache-2.0 */
/* http1.c - HTTP/1.1 as text (RFC 9112), read strictly.
 *
 * Two parsers that disagree about where a message ends are how requests are
 * smuggled.  So whatever could be read in two ways is refused, and what is
 * accepted is not passed on as it came: heads are written anew from what was
 * understood, and bodies are framed anew.
 *
 * Not accepted though some do: lines that end in LF alone, folded lines, space
 * before a colon, empty lines before a request, Content-Length beside
 * Transfer-Encoding or more than once, any coding but `chunked`.
 */
#include "egress/edge/intercept_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- heads ---- */

/* Everything up to the empty line: the head's length.  Bytes no head may hold are seen as they come. */
static enum http1_result find_end(const char *data, size_t n, size_t *scan, size_t *ret_len, struct refusal *no)
{
	for (size_t i = *scan; i < n; i++) {
		if (i >= HEAD_MAX) {
			refuse(no, 431, "bad_message", "the head is larger than %d KiB", HEAD_MAX / 1024);
			return HTTP1_BAD;
		}
		if (data[i] == 0 || (data[i] == '\n' && (i == 0 || data[i - 1] != '\r')) ||
		    (i > 0 && data[i - 1] == '\r' && data[i] != '\n')) {
			refuse(no, 400, "bad_message", "a line of the head does not end in CR LF, or holds a NUL");
			return HTTP1_BAD;
		}
		if (data[i] == '\n' && i >= 3 && data[i - 2] == '\n') {
			*ret_len = i + 1;
			return HTTP1_DONE;
		}
		*scan = i + 1;
	}
	if (n > HEAD_LINE_MAX && !memchr(data, '\n', HEAD_LINE_MAX)) {
		refuse(no, 414, "bad_message", "the first line is longer than %d KiB", HEAD_LINE_MAX / 1024);
		return HTTP1_BAD;
	}
	return HTTP1_MORE;
}

struct framing {
	unsigned lengths, codings;
	bool bad_length, bad_coding;
};

static bool parse_length(const char *s, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if (n == 0 || n > 18)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	*ret = v;
	return true;
}

static bool is_name(const char *s, size_t n, const char *name)
{
	return n == strlen(name) && !strncasecmp(s, name, n);
}

static bool add_field(struct head *h, struct framing *fr, const char *name, size_t nl, const char *value, size_t vl)
{
	if (is_name(name, nl, "content-length")) {
		fr->lengths++;
		if (!parse_length(value, vl, &h->length))
			fr->bad_length = true;
		h->has_length = true;
		return true;
	}
	if (is_name(name, nl, "transfer-encoding")) {
		fr->codings++;
		if (!is_name(value, vl, "chunked"))
			fr->bad_coding = true;
		return true;
	}
	return head_add(h, name, nl, value, vl);
}

/* One line, without its CR LF. */
static bool parse_field(struct head *h, struct framing *fr, const char *line, size_t n, struct refusal *no)
{
	const char *colon = memchr(line, ':', n), *value;
	size_t vl;

	if (!colon || !text_is_token(line, (size_t)(colon - line)))
		return refuse(no, 400, "bad_message", "a header's name holds bytes that it may not");
	value = colon + 1;
	vl = n - (size_t)(value - line);
	while (vl && (*value == ' ' || *value == '\t')) {
		value++;
		vl--;
	}
	while (vl && (value[vl - 1] == ' ' || value[vl - 1] == '\t'))
		vl--;
	if (!text_is_value(value, vl))
		return refuse(no, 400, "bad_message", "a header's value holds control bytes");
	if (!add_field(h, fr, line, (size_t)(colon - line), value, vl))
		return refuse(no, 431, "bad_message", "more than %d headers", HEAD_FIELDS);
	return true;
}

static bool parse_fields(struct head *h, struct framing *fr, const char *p, const char *end, struct refusal *no)
{
	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));

		if (eol - p == 1) /* the empty line */
			return true;
		if (!parse_field(h, fr, p, (size_t)(eol - 1 - p), no))
			return false;
		p = eol + 1;
	}
	return true;
}

static bool check_framing(struct head *h, const struct framing *fr, struct refusal *no)
{
	if (fr->codings && fr->lengths)
		return refuse(no, 400, "bad_message", "both Content-Length and Transfer-Encoding");
	if (fr->codings > 1 || fr->bad_coding || (fr->codings && h->http10))
		return refuse(no, 400, "bad_message", "a Transfer-Encoding other than chunked");
	if (fr->lengths > 1 || fr->bad_length)
		return refuse(no, 400, "bad_message", "Content-Length is not one number");
	return true;
}

/* "HTTP/1.x" */
static bool parse_version(const char *s, struct head *h)
{
	if (strncmp(s, "HTTP/1.", 7) || (s[7] != '0' && s[7] != '1'))
		return false;
	h->http10 = s[7] == '0';
	return true;
}

static bool parse_request_line(struct head *h, const char *line, size_t n, struct refusal *no)
{
	const char *a = memchr(line, ' ', n), *b;

	if (n > HEAD_LINE_MAX)
		return refuse(no, 414, "bad_message", "the first line is longer than %d KiB", HEAD_LINE_MAX / 1024);
	b = a ? memchr(a + 1, ' ', n - (size_t)(a + 1 - line)) : NULL;
	if (!b || n - (size_t)(b + 1 - line) != 8 || !text_is_token(line, (size_t)(a - line)) ||
	    !text_is_target(a + 1, (size_t)(b - a - 1)))
		return refuse(no, 400, "bad_message", "the first line is not METHOD TARGET HTTP/1.1");
	if (!parse_version(b + 1, h))
		return refuse(no, 505, "bad_message", "neither HTTP/1.1 nor HTTP/1.0");
	h->method = cs_strndup(line, (size_t)(a - line));
	h->target = cs_strndup(a + 1, (size_t)(b - a - 1));
	return true;
}

static bool take_host(struct head *h, struct refusal *no)
{
	const char *host = head_get(h, "host");

	if (!host)
		return refuse(no, 400, "bad_message", "no Host header");
	h->authority = cs_strdup(host);
	if (head_remove(h, "host") != 1)
		return refuse(no, 400, "bad_message", "more than one Host header");
	return true;
}

static bool parse_request(const char *data, size_t len, struct head *h, struct refusal *no)
{
	const char *eol = memchr(data, '\n', len);
	struct framing fr = { 0 };

	if (!parse_request_line(h, data, (size_t)(eol - 1 - data), no) || !parse_fields(h, &fr, eol + 1, data + len, no) ||
	    !check_framing(h, &fr, no) || !take_host(h, no))
		return false;
	h->body = fr.codings ? BODY_CHUNKED : h->has_length && h->length ? BODY_LENGTH : BODY_NONE;
	return true;
}

enum http1_result http1_request(const char *data, size_t n, size_t *scan, struct head *ret, size_t *ret_used, struct refusal *no)
{
	enum http1_result r = find_end(data, n, scan, ret_used, no);

	if (r == HTTP1_DONE && !parse_request(data, *ret_used, ret, no))
		r = HTTP1_BAD;
	if (r == HTTP1_BAD)
		head_done(ret);
	return r;
}

static bool parse_status_line(struct head *h, const char *line, size_t n, struct refusal *no)
{
	if (n < 12 || n > HEAD_LINE_MAX || !parse_version(line, h) || line[8] != ' ' || line[9] < '1' || line[9] > '5' ||
	    line[10] < '0' || line[10] > '9' || line[11] < '0' || line[11] > '9' || (n > 12 && line[12] != ' ') ||
	    !text_is_value(line, n))
		return refuse(no, 502, "bad_response", "the server's answer does not begin as one");
	h->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + line[11] - '0';
	h->reason = n > 13 ? cs_strndup(line + 13, n - 13) : cs_strdup("");
	return true;
}

static bool parse_response(const char *data, size_t len, const char *method, struct head *h, struct refusal *no)
{
	const char *eol = memchr(data, '\n', len);
	struct framing fr = { 0 };

	if (!parse_status_line(h, data, (size_t)(eol - 1 - data), no) || !parse_fields(h, &fr, eol + 1, data + len, no) ||
	    !check_framing(h, &fr, no))
		return false;
	if (h->status < 200 || h->status == 204) {
		h->body = BODY_NONE;
		h->has_length = false;
		h->length = 0;
	} else if (!strcmp(method, "HEAD") || h->status == 304) {
		h->body = BODY_NONE;
	} else {
		h->body = fr.codings ? BODY_CHUNKED : !h->has_length ? BODY_CLOSE : h->length ? BODY_LENGTH : BODY_NONE;
	}
	if (h->http10)
		h->close = true;
	return true;
}

enum http1_result http1_response(const char *data, size_t n, size_t *scan, const char *method, struct head *ret, size_t *ret_used,
				 struct refusal *no)
{
	enum http1_result r = find_end(data, n, scan, ret_used, no);

	if (r == HTTP1_DONE && !parse_response(data, *ret_used, method, ret, no))
		r = HTTP1_BAD;
	if (r == HTTP1_BAD) {
		head_done(ret);
		no->status = 502;
		no->error = "bad_response";
	}
	return r;
}

/* ---- writing ---- */

static bool write_line(struct bytes *out, const char *name, const char *value)
{
	return bytes_str(out, name) && bytes_str(out, ": ") && bytes_str(out, value) && bytes_str(out, "\r\n");
}

static bool write_rest(const struct head *h, bool close, struct bytes *out)
{
	char number[32];

	for (size_t i = 0; i < h->n; i++)
		if (!write_line(out, h->f[i].name, h->f[i].value))
			return false;
	snprintf(number, sizeof number, "%llu", (unsigned long long)h->length);
	if (h->body == BODY_CHUNKED) {
		if (!write_line(out, "Transfer-Encoding", "chunked"))
			return false;
	} else if (h->has_length && h->body != BODY_CLOSE && !write_line(out, "Content-Length", number)) {
		return false;
	}
	if (close && !write_line(out, "Connection", "close"))
		return false;
	return bytes_str(out, "\r\n");
}

bool http1_write_request(const struct head *h, bool close, struct bytes *out)
{
	return bytes_str(out, h->method) && bytes_str(out, " ") && bytes_str(out, h->target) && bytes_str(out, " HTTP/1.1\r\n") &&
	       write_line(out, "Host", h->authority) && write_rest(h, close, out);
}

bool http1_write_response(const struct head *h, bool close, struct bytes *out)
{
	char line[32];

	snprintf(line, sizeof line, "HTTP/1.1 %03d ", h->status);
	return bytes_str(out, line) && bytes_str(out, h->reason) && bytes_str(out, "\r\n") && write_rest(h, close, out);
}

bool http1_write_chunk(const void *data, size_t n, struct bytes *out)
{
	char line[24];

	/* Of no bytes: the last one, with no trailers. */
	snprintf(line, sizeof line, "%zx\r\n", n);
	return bytes_str(out, line) && bytes_add(out, data, n) && bytes_str(out, "\r\n");
}

/* ---- bodies ---- */

enum { CHUNK_SIZE, CHUNK_EXT, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_DATA_CR, CHUNK_DATA_LF, TRAILER, TRAILER_LF };
enum { CHUNK_DIGITS = 15, CHUNK_LINE_MAX = 1024, TRAILERS_MAX = 16 * 1024 };

void http1_body_begin(struct http1_body *b, enum body_kind kind, uint64_t length)
{
	*b = (struct http1_body){ .kind = kind, .left = kind == BODY_LENGTH ? length : 0 };
	b->done = kind == BODY_NONE || (kind == BODY_LENGTH && !length);
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool chunk_size_byte(struct http1_body *b, char c)
{
	int v = hex(c);

	if (v >= 0) {
		b->left = b->left << 4 | (unsigned)v;
		return ++b->digits <= CHUNK_DIGITS;
	}
	if (!b->digits)
		return false;
	b->line = 0;
	/* An extension begins with ';'.  Space before it (RFC 9112: "bad whitespace") is not taken. */
	b->state = c == '\r' ? CHUNK_SIZE_LF : CHUNK_EXT;
	return c == '\r' || c == ';';
}

/* A byte of an extension or a trailer, which are dropped. */
static bool is_extra(struct http1_body *b, char c)
{
	return ((unsigned char)c >= 0x20 || c == '\t') && c != 0x7f && ++b->line <= CHUNK_LINE_MAX;
}

static bool trailer_end(struct http1_body *b, char c)
{
	if (c != '\n')
		return false;
	b->done = !b->line;
	b->line = 0;
	b->state = TRAILER;
	return true;
}

/* One byte of what is not content. */
static bool chunk_byte(struct http1_body *b, char c)
{
	switch (b->state) {
	case CHUNK_SIZE:
		return chunk_size_byte(b, c);
	case CHUNK_EXT:
		if (c == '\r')
			b->state = CHUNK_SIZE_LF;
		return c == '\r' || is_extra(b, c);
	case CHUNK_SIZE_LF:
		b->state = b->left ? CHUNK_DATA : TRAILER;
		b->line = 0;
		return c == '\n';
	case CHUNK_DATA_CR:
		b->state = CHUNK_DATA_LF;
		return c == '\r';
	case CHUNK_DATA_LF:
		b->state = CHUNK_SIZE;
		b->digits = 0;
		return c == '\n';
	case TRAILER:
		if (c == '\r')
			b->state = TRAILER_LF;
		/* A line that begins with space would be folded into the one before. */
		return c == '\r' || ((b->line || (c != ' ' && c != '\t')) && is_extra(b, c) && ++b->extra <= TRAILERS_MAX);
	case TRAILER_LF:
		return trailer_end(b, c);
	default:
		return false;
	}
}

static size_t take_content(struct http1_body *b, const char *data, size_t n, const char **ret, size_t *ret_len)
{
	if (b->kind != BODY_CLOSE && n > b->left)
		n = (size_t)b->left;
	*ret = data;
	*ret_len = n;
	if (b->kind != BODY_CLOSE)
		b->left -= n;
	return n;
}

ssize_t http1_body_take(struct http1_body *b, const char *data, size_t n, const char **ret, size_t *ret_len)
{
	size_t used = 0;

	*ret = data;
	*ret_len = 0;
	if (b->done)
		return 0;
	if (b->kind != BODY_CHUNKED) {
		used = take_content(b, data, n, ret, ret_len);
		b->done = b->kind == BODY_LENGTH && !b->left;
		return (ssize_t)used;
	}
	while (used < n && !b->done && b->state != CHUNK_DATA)
		if (!chunk_byte(b, data[used++]))
			return -1;
	if (b->state == CHUNK_DATA && used < n) {
		used += take_content(b, data + used, n - used, ret, ret_len);
		if (!b->left)
			b->state = CHUNK_DATA_CR;
	}
	return (ssize_t)used;
}
