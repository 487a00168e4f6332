/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mask.c - secrets in hostile streams.
 *
 * The input is a choice of secrets, a way to cut, and a recipe: bytes to be
 * taken as they are, and among them orders to put a secret there in some form.
 * What must be masked is found again by the plainest of means, so that the
 * length, every byte and the independence of cuts are all checked at once. */
#include "base/buf.h"
#include "egress/edge/mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STREAM_MAX = 2048 };

static const char *const values[] = {
	"hunter2-secret", "aaaaaaaa", "abababab", "50%25%2525", "C:\\u0041\\\\\"/", "two  words +", "p\xc3\xa4ss\xe2\x82\xac\xf0\x9f\x98\x80!",
	"\xfb\xff\xbf\xfb\xff\xbf\xfb\xff\xbf", "\xc3\xc3\xa4\xa4\xf0\x9f\xff\xff", "aHVudGVyMi1z", "6162616261626162", "nnrrnnrr",
};
enum { N_VALUES = sizeof values / sizeof *values };

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* ---- the plainest of means ---- */

struct oracle {
	const char *in;
	size_t n, start;
	const uint8_t *v;
	size_t v_len;
	uint8_t want[64], bits[64]; /* of base64 characters, or nibbles */
	size_t units;
	bool hex;
	char *out;
	unsigned steps;
};

static bool at(const struct oracle *o, size_t p, const char *token, size_t n)
{
	return p <= o->n && o->n - p >= n && !memcmp(o->in + p, token, n);
}

static int number(const struct oracle *o, size_t p, size_t digits)
{
	char t[5] = { 0 };

	if (p > o->n || o->n - p < digits)
		return -1;
	memcpy(t, o->in + p, digits);
	return strspn(t, "0123456789abcdefABCDEF") == digits ? (int)strtol(t, NULL, 16) : -1;
}

/* What stands at p, read in one of four ways: its length, or 0. */
static size_t read_at(const struct oracle *o, size_t p, unsigned kind, int *ret)
{
	static const char names[] = "nr/\"\\", meant[] = "\n\r/\"\\";
	const char *name;

	*ret = -1;
	if (p >= o->n)
		return 0;
	if (kind == 0)
		*ret = (unsigned char)o->in[p];
	else if (kind == 1 && o->in[p] == '%')
		*ret = number(o, p + 1, 2);
	else if (kind == 2 && at(o, p, "\\u", 2))
		*ret = number(o, p + 2, 4);
	else if (kind == 3 && o->in[p] == '\\' && p + 1 < o->n && o->in[p + 1] && (name = strchr(names, o->in[p + 1])))
		*ret = meant[name - names];
	return *ret < 0 ? 0 : kind == 0 ? 1 : kind == 1 ? 3 : kind == 2 ? 6 : 2;
}

static void masked(const struct oracle *o, size_t end)
{
	memset(o->out + o->start, '*', end - o->start);
}

static void text_from(struct oracle *o, size_t p, size_t k)
{
	size_t len;
	int c;

	if (k == o->v_len) {
		masked(o, p);
		return;
	}
	if (p >= o->n || ++o->steps > 100000)
		return;
	for (unsigned kind = 0; kind < 4; kind++)
		if ((len = read_at(o, p, kind, &c)) && c == o->v[k])
			text_from(o, p + len, k + 1);
	if (o->v[k] == ' ' && o->in[p] == '+')
		text_from(o, p + 1, k + 1);
	for (unsigned n = 2; n <= 4 && k + n <= o->v_len; n++) {
		static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 }, bits[] = { 0, 0, 0x1f, 0x0f, 0x07 };
		uint32_t cp = o->v[k] & bits[n];
		bool ok = (o->v[k] & ~bits[n] & 0xff) == lead[n] && o->v[k] >= 0xc2 && o->v[k] <= 0xf4;
		char t[16];

		for (unsigned i = 1; i < n; i++) {
			ok = ok && (o->v[k + i] & 0xc0) == 0x80;
			cp = cp << 6 | (o->v[k + i] & 0x3f);
		}
		if (!ok || cp > 0x10ffff)
			continue;
		if (cp < 0x10000)
			len = (size_t)snprintf(t, sizeof t, "\\u%04x", (unsigned)cp);
		else
			len = (size_t)snprintf(t, sizeof t, "\\u%04x\\u%04x", 0xd800 + (unsigned)((cp - 0x10000) >> 10),
					       0xdc00 + (unsigned)((cp - 0x10000) & 0x3ff));
		if (p + len <= o->n && !strncasecmp(o->in + p, t, len) && at(o, p, "\\u", 2) && (len == 6 || at(o, p + 6, "\\u", 2)))
			text_from(o, p + len, k + n);
	}
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int unit_value(const struct oracle *o, int c)
{
	static const char digits[] = "0123456789abcdef";
	const char *p;

	if (!c)
		return -1;
	if (o->hex) {
		p = strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c);
		return p ? (int)(p - digits) : -1;
	}
	p = strchr(alphabet, c == '-' ? '+' : c == '_' ? '/' : c);
	return p ? (int)(p - alphabet) : -1;
}

static void units_from(struct oracle *o, size_t p, size_t k, unsigned wrap)
{
	size_t len;
	int c;

	if (k == o->units) {
		masked(o, p);
		return;
	}
	if (p >= o->n || ++o->steps > 100000)
		return;
	for (unsigned kind = 0; kind < 4; kind++) {
		if (!(len = read_at(o, p, kind, &c)) || c > 0xff)
			continue;
		if (unit_value(o, c) >= 0 && (unit_value(o, c) & o->bits[k]) == o->want[k])
			units_from(o, p + len, k + 1, 0);
		if (k && c == '\r' && wrap == 0)
			units_from(o, p + len, k, 1);
		if (k && c == '\n' && wrap < 2)
			units_from(o, p + len, k, 2);
	}
}

static void base64_of(const uint8_t *v, size_t n, uint8_t *ret)
{
	for (size_t bit = 0; bit < n * 8; bit++)
		ret[bit / 6] = (uint8_t)(ret[bit / 6] | (v[bit / 8] >> (7 - bit % 8) & 1) << (5 - bit % 6));
}

/* What does not change with what is before and after is what the value decides. */
static void plan_base64(struct oracle *o, unsigned lead)
{
	uint8_t v[64], zero[96] = { 0 }, ones[96] = { 0 };
	size_t whole = lead + o->v_len + 3;

	memset(v, 0, sizeof v);
	memcpy(v + lead, o->v, o->v_len);
	base64_of(v, whole, zero);
	memset(v, 0xff, sizeof v);
	memcpy(v + lead, o->v, o->v_len);
	base64_of(v, whole, ones);
	o->units = 0;
	for (size_t i = 0; i < whole * 8 / 6; i++) {
		uint8_t same = (uint8_t)(~(zero[i] ^ ones[i]) & 63);

		if (!same)
			continue;
		o->bits[o->units] = same;
		o->want[o->units++] = zero[i] & same;
	}
}

static void oracle(const char *value, const char *in, size_t n, char *out)
{
	struct oracle o = { .in = in, .n = n, .v = (const uint8_t *)value, .v_len = strlen(value), .out = out };

	for (o.start = 0; o.start < n; o.start++) {
		o.steps = 0;
		text_from(&o, o.start, 0);
	}
	for (unsigned lead = 0; lead < 4; lead++) {
		plan_base64(&o, lead % 3);
		if (lead == 3) {
			o.hex = true;
			o.units = o.v_len * 2;
			for (size_t i = 0; i < o.units; i++) {
				o.bits[i] = 15;
				o.want[i] = o.v[i / 2] >> (i % 2 ? 0 : 4) & 15;
			}
		}
		for (o.start = 0; o.start < n; o.start++) {
			o.steps = 0;
			units_from(&o, o.start, 0, 0);
		}
	}
}

/* ---- streams ---- */

struct made {
	char v[STREAM_MAX + 512];
	size_t n;
};

static void put(struct made *m, const char *fmt, unsigned c)
{
	m->n += (size_t)snprintf(m->v + m->n, 8, fmt, c);
}

/* how: three bits of form, two of what surrounds or cuts it. */
static void put_secret(struct made *m, const char *value, unsigned how)
{
	size_t n = strlen(value);
	uint8_t v[64] = { 0 }, b[96] = { 0 };
	unsigned lead = how >> 3 & 3;

	for (size_t i = 0; i < n && how % 8 < 5; i++) {
		unsigned c = (unsigned char)value[i], kind = how % 8 == 4 ? (unsigned)(i * 7 + how) % 4 : how % 8;

		if (lead == 3 && i == n - 1)
			break;
		if (kind == 3 && (c == '/' || c == '"' || c == '\\'))
			m->v[m->n++] = '\\';
		if (kind == 1)
			put(m, i % 2 ? "%%%02x" : "%%%02X", c);
		else if (kind == 2)
			put(m, i % 2 ? "\\u%04x" : "\\u%04X", c);
		else
			m->v[m->n++] = (char)c;
	}
	for (size_t i = 0; i < n && how % 8 == 5; i++)
		put(m, lead & 1 ? "%02X" : "%02x", (unsigned char)value[i]);
	if (how % 8 < 6)
		return;
	memset(v, 'x', lead);
	memcpy(v + lead, value, n);
	base64_of(v, lead + n, b);
	for (size_t i = 0; i < ((lead + n) * 8 + 5) / 6; i++) {
		m->v[m->n++] = how % 8 == 7 && b[i] > 61 ? "-_"[b[i] - 62] : alphabet[b[i]];
		if (how % 8 == 7 && i % 8 == 3)
			m->v[m->n++] = '\n';
	}
}

static size_t feed(struct mask *m, const struct made *in, unsigned cut, struct cs_buf *out)
{
	size_t found = 0, i = 0;

	while (i < in->n) {
		size_t piece = cut ? 1 + (cut = cut * 1103515245u + 12345u) / 65536 % 7 : in->n;

		if (piece > in->n - i)
			piece = in->n - i;
		found += mask_feed(m, in->v + i, piece, false, out);
		must(out->len <= i + piece);
		i += piece;
	}
	found += mask_feed(m, "", 0, true, out);
	must(out->len == in->n && !out->over);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct made in;
	static char want[sizeof in.v];
	CS_BUF_AUTO struct cs_buf whole = CS_BUF(1 << 16), pieces = CS_BUF(1 << 16), bytes = CS_BUF(1 << 16);
	struct secret s[2] = { 0 };
	const struct secret *list[2] = { &s[0], &s[1] };
	struct mask *m;
	size_t found, n;

	if (size < 3)
		return 0;
	n = data[0] & 1 ? 2 : 1;
	for (size_t i = 0; i < n; i++) {
		const char *v = values[(data[i] >> 1) % N_VALUES];

		s[i].value = (char *)(uintptr_t)v;
		s[i].value_len = strlen(v);
	}
	in.n = 0;
	for (size_t i = 3; i < size && in.n < STREAM_MAX; i++) {
		if (data[i] >= 0xe0)
			put_secret(&in, s[i % n].value, data[i] & 31);
		else
			in.v[in.n++] = (char)data[i];
	}
	memcpy(want, in.v, in.n);
	for (size_t i = 0; i < n; i++)
		oracle(s[i].value, in.v, in.n, want);
	m = mask_new(list, n);
	found = feed(m, &in, 0, &whole);
	must(!memcmp(cs_buf_text(&whole), want, in.n));
	must(feed(m, &in, data[2] | 1u, &pieces) == found);
	must(!memcmp(cs_buf_text(&pieces), want, in.n));
	for (size_t i = 0; i < in.n; i++)
		mask_feed(m, in.v + i, 1, i + 1 == in.n, &bytes);
	must(!memcmp(cs_buf_text(&bytes), want, in.n));
	must(mask_text(m, in.v, in.n) == found && !memcmp(in.v, want, in.n));
	mask_free(m);
	return 0;
}
