/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <string.h>

static void quoted(struct cs_buf *b, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	cs_buf_char(b, '"');
	while (*p) {
		size_t n;

		if (*p == '"' || *p == '\\') {
			cs_buf_fmt(b, "\\%c", *p++);
			continue;
		}
		if (*p < 0x20 || *p == 0x7f) {
			cs_buf_fmt(b, "\\u%04x", *p++);
			continue;
		}
		n = *p < 0x80 ? 1 : (*p & 0xe0) == 0xc0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : (*p & 0xf8) == 0xf0 ? 4 : 0;
		for (size_t i = 1; i < n; i++)
			if ((p[i] & 0xc0) != 0x80)
				n = 0;
		/* overlong forms, surrogates and values past U+10FFFF are not UTF-8 either */
		if (n > 1 && (*p < 0xc2 || (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
			      (*p == 0xf0 && p[1] < 0x90) || *p > 0xf4 || (*p == 0xf4 && p[1] > 0x8f)))
			n = 0;
		if (n == 0) {
			cs_buf_str(b, "\xef\xbf\xbd");
			p++;
			continue;
		}
		cs_buf_add(b, p, n);
		p += n;
	}
	cs_buf_char(b, '"');
}

static void lead(struct cs_json *j, const char *key)
{
	if (j->more[j->depth])
		cs_buf_char(j->out, ',');
	j->more[j->depth] = true;
	if (j->pretty && j->depth)
		cs_buf_fmt(j->out, "\n%*s", (int)j->depth * 2, "");
	if (key) {
		quoted(j->out, key);
		cs_buf_str(j->out, j->pretty ? ": " : ":");
	}
}

static void open_level(struct cs_json *j, const char *key, char bracket)
{
	lead(j, key);
	cs_buf_char(j->out, bracket);
	if (j->depth + 1 < sizeof j->more / sizeof *j->more)
		j->depth++;
	else
		j->out->over = true;
	j->more[j->depth] = false;
}

void cs_json_begin(struct cs_json *j, struct cs_buf *out, bool pretty)
{
	*j = (struct cs_json){ .out = out, .pretty = pretty };
}

void cs_json_object(struct cs_json *j, const char *key)
{
	open_level(j, key, '{');
}

void cs_json_array(struct cs_json *j, const char *key)
{
	open_level(j, key, '[');
}

void cs_json_end(struct cs_json *j, char bracket)
{
	bool filled = j->more[j->depth];

	if (j->depth)
		j->depth--;
	if (j->pretty && filled)
		cs_buf_fmt(j->out, "\n%*s", (int)j->depth * 2, "");
	cs_buf_char(j->out, bracket);
	if (j->depth == 0)
		cs_buf_char(j->out, '\n');
}

void cs_json_str(struct cs_json *j, const char *key, const char *value)
{
	lead(j, key);
	if (value)
		quoted(j->out, value);
	else
		cs_buf_str(j->out, "null");
}

void cs_json_u64(struct cs_json *j, const char *key, uint64_t value)
{
	lead(j, key);
	cs_buf_fmt(j->out, "%llu", (unsigned long long)value);
}

void cs_json_i64(struct cs_json *j, const char *key, int64_t value)
{
	lead(j, key);
	cs_buf_fmt(j->out, "%lld", (long long)value);
}

void cs_json_num(struct cs_json *j, const char *key, double value)
{
	lead(j, key);
	if (isfinite(value))
		cs_buf_fmt(j->out, "%.15g", value); /* a time in seconds has 13 digits before it is of use */
	else
		cs_buf_str(j->out, "null"); /* JSON has no word for it */
}

void cs_json_bool(struct cs_json *j, const char *key, bool value)
{
	lead(j, key);
	cs_buf_str(j->out, value ? "true" : "false");
}

void cs_json_null(struct cs_json *j, const char *key)
{
	lead(j, key);
	cs_buf_str(j->out, "null");
}
