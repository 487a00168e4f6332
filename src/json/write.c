/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - values into text.
 *
 * Canonical numbers are spelled as ECMAScript spells them (and so RFC 8785), but
 * of the exact decimal.  Keys are sorted by their bytes, which is by code point.
 */
#include "json/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void write_string(struct cs_buf *b, const char *s, size_t len)
{
	static const char short_for[] = "\b\t\n\f\r\"\\", letter[] = "btnfr\"\\";
	size_t start = 0;

	cs_buf_char(b, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		const char *at;

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		cs_buf_add(b, s + start, i - start);
		start = i + 1;
		at = memchr(short_for, c, sizeof short_for - 1);
		if (at)
			cs_buf_fmt(b, "\\%c", letter[at - short_for]);
		else
			cs_buf_fmt(b, "\\u%04x", c);
	}
	cs_buf_add(b, s + start, len - start);
	cs_buf_char(b, '"');
}

static void add_digits(struct cs_buf *b, const struct json_decimal *d, int from, int to)
{
	for (int i = from; i < to; i++)
		cs_buf_char(b, (char)('0' + (i < d->n ? d->digits[i] : 0)));
}

static void add_zeros(struct cs_buf *b, int n)
{
	while (n-- > 0)
		cs_buf_char(b, '0');
}

static void canonical_number(struct cs_buf *b, const struct json *v)
{
	struct json_decimal d;

	json_decimal_of(v, &d);
	if (!d.n) {
		cs_buf_char(b, '0');
		return;
	}
	if (d.negative)
		cs_buf_char(b, '-');
	if (d.point > 21 || d.point <= -6) {
		add_digits(b, &d, 0, 1);
		if (d.n > 1)
			cs_buf_char(b, '.');
		add_digits(b, &d, 1, d.n);
		cs_buf_fmt(b, "e%+d", d.point - 1);
		return;
	}
	if (d.point <= 0) {
		cs_buf_str(b, "0.");
		add_zeros(b, -d.point);
		add_digits(b, &d, 0, d.n);
		return;
	}
	add_digits(b, &d, 0, d.point);
	if (d.n > d.point) {
		cs_buf_char(b, '.');
		add_digits(b, &d, d.point, d.n);
	}
}

static void write_number(struct cs_buf *b, const struct json *v, bool canonical)
{
	if (v->whole)
		cs_buf_fmt(b, "%" PRId64, v->i);
	else if (canonical)
		canonical_number(b, v);
	else
		cs_buf_add(b, v->s, v->n);
}

static void write_value(struct cs_buf *b, const struct json *v, bool canonical);

static void write_object(struct cs_buf *b, const struct json *v, bool canonical)
{
	const struct json_member **sorted = NULL;

	if (canonical) {
		sorted = json_sorted(v);
		if (!sorted) {
			b->over = true;
			return;
		}
	}
	cs_buf_char(b, '{');
	for (uint32_t i = 0; i < v->n; i++) {
		const struct json_member *m = sorted ? sorted[i] : &v->members[i];

		if (i)
			cs_buf_char(b, ',');
		write_string(b, m->key, m->key_len);
		cs_buf_char(b, ':');
		write_value(b, &m->value, canonical);
	}
	cs_buf_char(b, '}');
	free(sorted);
}

static void write_array(struct cs_buf *b, const struct json *v, bool canonical)
{
	cs_buf_char(b, '[');
	for (uint32_t i = 0; i < v->n; i++) {
		if (i)
			cs_buf_char(b, ',');
		write_value(b, &v->items[i], canonical);
	}
	cs_buf_char(b, ']');
}

static void write_value(struct cs_buf *b, const struct json *v, bool canonical)
{
	switch ((enum json_type)v->type) {
	case JSON_NULL:
		cs_buf_str(b, "null");
		break;
	case JSON_BOOL:
		cs_buf_str(b, v->b ? "true" : "false");
		break;
	case JSON_NUMBER:
		write_number(b, v, canonical);
		break;
	case JSON_STRING:
		write_string(b, v->s, v->n);
		break;
	case JSON_ARRAY:
		write_array(b, v, canonical);
		break;
	case JSON_OBJECT:
		write_object(b, v, canonical);
		break;
	}
}

void json_write(struct cs_buf *b, const struct json *v)
{
	write_value(b, v, false);
}

void json_write_canonical(struct cs_buf *b, const struct json *v)
{
	write_value(b, v, true);
}
