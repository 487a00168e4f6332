/* SPDX-License-Identifier: Apache-2.0 */
/* mask.c - a set of threads, each a place in one form of one secret.
 *
 * Every byte is looked at once.  A thread is born where a form may begin and
 * dies with the first byte that cannot go on; one that comes to the end of its
 * form has its bytes masked.  Ambiguity (a value that holds '%', a backslash
 * that may be itself or begin an escape) is no special case: a thread becomes
 * two.  Two that have come to the same place become one, the longer, so there
 * are never more than there are places.  Where there is no thread, a filter
 * over three bytes says where the next may begin.
 *
 * The forms are not written out: what a thread waits for is computed from the
 * value, so that this file makes no copy of a secret in any form.  Bytes that
 * are held back are such a copy, and are wiped.
 *
 * Rejected: decoding the stream and searching the result.  It can be decoded
 * in more than one way, and each has to be searched. */
#include "egress/edge/mask.h"

#include "base/buf.h"
#include "base/mem.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum form {
	TEXT,
	BASE64_0, /* at a multiple of three bytes */
	BASE64_1,
	BASE64_2,
	HEX,
	FORMS,
	UNBORN = FORMS, /* an escape from which any of the others may come */
};

/* What part of an escape has been read. */
enum part {
	PLAIN,
	PERCENT,   /* %   */
	PERCENT_1, /* %4  */
	SLASH,     /* \   */
	U_0,       /* \u  */
	U_1,
	U_2,
	U_3,
	LOW_SLASH, /* \ud83d: the other half of the pair must follow */
	LOW_U,
	LOW_0,
	LOW_1,
	LOW_2,
	LOW_3,
};

/* Of a line end within base64 or hex.  Only one: what is held back must have an end, and the empty line
 * after an event must not be waited for. */
enum wrap { NO_WRAP, WRAP_CR, WRAP_LF };

struct thread {
	uint64_t start; /* in the stream */
	uint32_t pos;   /* bytes, characters or nibbles that have been read */
	uint32_t secret;
	uint16_t acc;   /* digits of an escape */
	uint8_t form, part, wrap;
};

struct threads {
	struct thread *v;
	size_t n, cap;
};

/* Where a stream stands. */
struct stream {
	struct threads now, next;
	uint32_t *slots; /* of next, by hash: i + 1; empty while next is short */
	size_t n_slots;
	uint64_t at;     /* bytes read */
	uint64_t masked; /* the end of the last match */
};

/* A form that begins with some character. */
struct start {
	uint32_t secret;
	uint8_t form;
};

enum { FILTER_BITS = 17, SHORT = 8 };

struct mask {
	const struct secret **secrets; /* the caller's; they outlive this */
	size_t n;
	struct start *starts;          /* those that begin with c: from first[c] to first[c + 1] */
	uint32_t first[257];
	uint64_t filter[(1 << FILTER_BITS) / 64];
	struct stream stream;
	char *held;
	size_t n_held, held_cap;
};

/* ---- the characters of a form ---- */

static int hex_value(unsigned c)
{
	if (c - '0' < 10)
		return (int)(c - '0');
	c |= 0x20;
	return c - 'a' < 6 ? (int)(c - 'a' + 10) : -1;
}

/* Both alphabets at once. */
static int base64_value(unsigned c)
{
	if (c - 'A' < 26)
		return (int)(c - 'A');
	if (c - 'a' < 26)
		return (int)(c - 'a' + 26);
	if (c - '0' < 10)
		return (int)(c - '0' + 52);
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

static unsigned byte_at(const struct secret *s, size_t i)
{
	return (unsigned char)s->value[i];
}

/* The first character that holds any bit of the value, and the number of those that do. */
static size_t base64_first(unsigned form)
{
	return (form - BASE64_0) * 8 / 6;
}

static size_t form_len(const struct secret *s, unsigned form)
{
	if (form == TEXT)
		return s->value_len;
	if (form == HEX)
		return s->value_len * 2;
	return ((form - BASE64_0 + s->value_len) * 8 + 5) / 6 - base64_first(form);
}

/* The six bits of a character, and which of them the value decides: at both ends others have a say. */
static unsigned base64_want(const struct secret *s, unsigned form, size_t pos, unsigned *ret_bits)
{
	size_t lead = form - BASE64_0, bit = (base64_first(form) + pos) * 6, j = bit / 8, n = s->value_len;
	unsigned shift = 10 - (unsigned)(bit % 8), w = 0, k = 0;

	if (j >= lead && j - lead < n) {
		w = byte_at(s, j - lead) << 8;
		k = 0xff00;
	}
	if (j + 1 >= lead && j + 1 - lead < n) {
		w |= byte_at(s, j + 1 - lead);
		k |= 0xff;
	}
	*ret_bits = k >> shift & 63;
	return w >> shift & 63;
}

static bool base64_is(const struct secret *s, unsigned form, size_t pos, unsigned c)
{
	int v = base64_value(c);
	unsigned bits, want;

	if (v < 0)
		return false;
	want = base64_want(s, form, pos, &bits);
	return ((unsigned)v & bits) == want;
}

static bool char_is(const struct secret *s, const struct thread *t, unsigned c)
{
	if (t->form == TEXT)
		return byte_at(s, t->pos) == c;
	if (t->form == HEX)
		return hex_value(c) == (int)(byte_at(s, t->pos / 2) >> (t->pos % 2 ? 0 : 4) & 15);
	return base64_is(s, t->form, t->pos, c);
}

static bool is_wrap(const struct thread *t, unsigned c)
{
	return t->form != TEXT && t->pos && ((c == '\r' && t->wrap == NO_WRAP) || (c == '\n' && t->wrap < WRAP_LF));
}

/* The character of the value that begins here, as UTF-8 of more than one byte; its length, or 0. */
static unsigned code_point(const struct secret *s, const struct thread *t, uint32_t *ret)
{
	unsigned b = t->form == TEXT ? byte_at(s, t->pos) : 0, n = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : 2;
	uint32_t cp = b & (0xffu >> (n + 1));

	if (b < 0xc2 || b > 0xf4 || n > s->value_len - t->pos)
		return 0;
	for (unsigned i = 1; i < n; i++) {
		b = byte_at(s, t->pos + i);
		if ((b & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (b & 0x3f);
	}
	*ret = cp;
	return cp <= 0x10ffff ? n : 0;
}

/* The code unit of \uXXXX that would stand for it: of a pair, the first or the second. */
static unsigned unit_of(uint32_t cp, bool low)
{
	if (cp < 0x10000)
		return low ? 0x10000 : cp; /* no second: nothing has this value */
	cp -= 0x10000;
	return low ? 0xdc00 + (cp & 0x3ff) : 0xd800 + (cp >> 10);
}

/* ---- threads ---- */

static void *grow(void *v, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 32;
	void *p = cs_calloc(want, size);

	if (v)
		memcpy(p, v, *cap * size);
	free(v);
	*cap = want;
	return p;
}

static size_t slot_of(const struct stream *st, const struct thread *t)
{
	uint64_t h = (uint64_t)t->pos << 32 | (uint64_t)t->acc << 16 | (uint64_t)t->form << 8 | t->part;

	h = (h ^ (uint64_t)t->secret << 40 ^ (uint64_t)t->wrap << 24) * 0x9e3779b97f4a7c15u;
	return (size_t)(h >> 32) & (st->n_slots - 1);
}

static bool same_place(const struct thread *a, const struct thread *b)
{
	return a->pos == b->pos && a->secret == b->secret && a->form == b->form && a->part == b->part && a->acc == b->acc &&
	       a->wrap == b->wrap;
}

static void index_next(struct stream *st, size_t i)
{
	size_t k = slot_of(st, &st->next.v[i]);

	while (st->slots[k])
		k = (k + 1) & (st->n_slots - 1);
	st->slots[k] = (uint32_t)i + 1;
}

/* The slots are made when a list stops being short, or outgrows them. */
static void index_all(struct stream *st)
{
	if (st->n_slots < st->next.cap * 4) {
		free(st->slots);
		st->n_slots = st->next.cap * 4;
		st->slots = cs_calloc(st->n_slots, sizeof *st->slots);
	} else if (st->next.n > SHORT) {
		return;
	}
	for (size_t i = 0; i < st->next.n; i++)
		index_next(st, i);
}

static void clear_slots(struct stream *st)
{
	if (st->next.n <= SHORT)
		return;
	if (st->next.n > st->n_slots / 16) {
		memset(st->slots, 0, st->n_slots * sizeof *st->slots);
		return;
	}
	/* A search for what is known to be there need not stop at holes. */
	for (size_t i = 0; i < st->next.n; i++) {
		size_t k = slot_of(st, &st->next.v[i]);

		while (st->slots[k] != i + 1)
			k = (k + 1) & (st->n_slots - 1);
		st->slots[k] = 0;
	}
}

/* The one of next that is where t is. */
static struct thread *find(struct stream *st, const struct thread *t)
{
	if (st->next.n <= SHORT) {
		for (size_t i = 0; i < st->next.n; i++)
			if (same_place(&st->next.v[i], t))
				return &st->next.v[i];
		return NULL;
	}
	for (size_t k = slot_of(st, t); st->slots[k]; k = (k + 1) & (st->n_slots - 1))
		if (same_place(&st->next.v[st->slots[k] - 1], t))
			return &st->next.v[st->slots[k] - 1];
	return NULL;
}

static void add(struct stream *st, const struct thread *t)
{
	struct thread *o = find(st, t);

	if (o) {
		if (t->start < o->start)
			o->start = t->start;
		return;
	}
	if (!st->next.v || st->next.n == st->next.cap) {
		st->next.v = grow(st->next.v, &st->next.cap, sizeof *st->next.v);
		if (st->next.n > SHORT)
			index_all(st);
	}
	if (st->next.n == SHORT)
		index_all(st);
	st->next.v[st->next.n++] = *t;
	if (st->next.n > SHORT)
		index_next(st, st->next.n - 1);
}

/* Where finished threads are noted. */
struct text {
	char *v;
	uint64_t start; /* v[0] in the stream */
	size_t matches;
};

static void finish(struct stream *st, struct text *x, uint64_t start)
{
	uint64_t end = st->at + 1;

	memset(x->v + (start - x->start), '*', end - start);
	if (start >= st->masked)
		x->matches++;
	st->masked = end;
}

/* The thread has read `by` more of its form. */
static void advance(struct stream *st, const struct secret *s, const struct thread *t, unsigned by, struct text *x)
{
	struct thread d = *t;

	d.pos += by;
	d.part = PLAIN;
	d.acc = 0;
	d.wrap = NO_WRAP;
	if (d.pos < form_len(s, d.form))
		add(st, &d);
	else if (x)
		finish(st, x, d.start);
}

static void go(struct stream *st, const struct thread *t, enum part part, unsigned acc)
{
	struct thread d = *t;

	d.part = (uint8_t)part;
	d.acc = (uint16_t)acc;
	add(st, &d);
}

/* A character, as it is or out of an escape. */
static void take_char(struct stream *st, const struct secret *s, const struct thread *t, unsigned c, struct text *x)
{
	if (char_is(s, t, c))
		advance(st, s, t, 1, x);
	if (is_wrap(t, c)) {
		struct thread d = *t;

		d.part = PLAIN;
		d.acc = 0;
		d.wrap = c == '\r' ? WRAP_CR : WRAP_LF;
		add(st, &d);
	}
}

/* Can any character with this first hex digit come next? */
static bool half_may_be(const struct secret *s, const struct thread *t, unsigned high)
{
	if (t->form == TEXT)
		return byte_at(s, t->pos) >> 4 == high;
	if (high < 2)
		return high == 0 && is_wrap(t, '\n');
	for (unsigned c = high << 4; high < 8 && c < (high << 4) + 16; c++)
		if (char_is(s, t, c))
			return true;
	return false;
}

/* The next digit of \uXXXX. */
static void take_digit(struct stream *st, const struct secret *s, const struct thread *t, unsigned c, struct text *x)
{
	bool low = t->part >= LOW_0;
	unsigned k = t->part - (low ? LOW_0 : U_0), shift = 4 * (3 - k), acc, unit, len;
	int h = hex_value(c);
	uint32_t cp;

	if (h < 0)
		return;
	acc = (unsigned)t->acc << 4 | (unsigned)h;
	len = code_point(s, t, &cp);
	unit = len ? unit_of(cp, low) : 0x10000;
	if (k == 3) {
		if (!low && acc < 0x100)
			take_char(st, s, t, acc, x);
		if (acc == unit && (low || cp < 0x10000))
			advance(st, s, t, len, x);
		else if (acc == unit)
			go(st, t, LOW_SLASH, 0);
	} else if (acc == unit >> shift || (!low && (k < 2 ? acc == 0 : acc < 16 && half_may_be(s, t, acc)))) {
		go(st, t, (enum part)(t->part + 1), acc);
	}
}

static void take_plain(struct stream *st, const struct secret *s, const struct thread *t, unsigned c, struct text *x)
{
	take_char(st, s, t, c, x);
	if (c == '%')
		go(st, t, PERCENT, 0);
	else if (c == '\\')
		go(st, t, SLASH, 0);
	else if (c == '+' && t->form == TEXT && byte_at(s, t->pos) == ' ')
		advance(st, s, t, 1, x);
}

static void take_escaped(struct stream *st, const struct secret *s, const struct thread *t, unsigned c, struct text *x)
{
	if (c == 'u')
		go(st, t, U_0, 0);
	else if (c == '/' || c == '"' || c == '\\')
		take_char(st, s, t, c, x);
	else if (c == 'n' || c == 'r')
		take_char(st, s, t, c == 'n' ? '\n' : '\r', x);
}

static void take_unborn(const struct mask *m, struct stream *st, const struct thread *t, unsigned c, struct text *x);

static void step_thread(const struct mask *m, struct stream *st, const struct thread *t, unsigned c, struct text *x)
{
	const struct secret *s = m->secrets[t->secret];
	int h;

	if (t->part == PLAIN) {
		take_plain(st, s, t, c, x);
		return;
	}
	if (t->form == UNBORN) {
		take_unborn(m, st, t, c, x);
		return;
	}
	h = hex_value(c);
	switch ((enum part)t->part) {
	case PLAIN:
		break;
	case PERCENT:
		if (h >= 0 && half_may_be(s, t, (unsigned)h))
			go(st, t, PERCENT_1, (unsigned)h);
		break;
	case PERCENT_1:
		if (h >= 0)
			take_char(st, s, t, (unsigned)t->acc << 4 | (unsigned)h, x);
		break;
	case SLASH:
		take_escaped(st, s, t, c, x);
		break;
	case LOW_SLASH:
		if (c == '\\')
			go(st, t, LOW_U, 0);
		break;
	case LOW_U:
		if (c == 'u')
			go(st, t, LOW_0, 0);
		break;
	case U_0: case U_1: case U_2: case U_3:
	case LOW_0: case LOW_1: case LOW_2: case LOW_3:
		take_digit(st, s, t, c, x);
		break;
	}
}

/* ---- where a form may begin ---- */

/* All that begin with this character, which stood at `start`, perhaps as an escape. */
static void born(const struct mask *m, struct stream *st, uint64_t start, unsigned c, struct text *x)
{
	for (uint32_t i = m->first[c]; i < m->first[c + 1]; i++) {
		struct thread t = { .start = start, .secret = m->starts[i].secret, .form = m->starts[i].form };

		advance(st, m->secrets[t.secret], &t, 1, x);
	}
}

/* The values that begin with a character of more than one byte, of which this is \uXXXX or its first half. */
static void born_wide(const struct mask *m, struct stream *st, uint64_t start, unsigned unit, struct text *x)
{
	for (uint32_t i = 0; i < m->n; i++) {
		struct thread t = { .start = start, .secret = i, .form = TEXT };
		uint32_t cp;
		unsigned len = byte_at(m->secrets[i], 0) < 0x80 ? 0 : code_point(m->secrets[i], &t, &cp);

		if (!len || unit != unit_of(cp, false))
			continue;
		if (cp < 0x10000)
			advance(st, m->secrets[i], &t, len, x);
		else
			go(st, &t, LOW_SLASH, 0);
	}
}

/* One thread reads an escape at the beginning for all; with one for each form of each secret a text of nothing but
 * escapes would be slow. */
static void take_unborn(const struct mask *m, struct stream *st, const struct thread *t, unsigned c, struct text *x)
{
	int h = hex_value(c);
	unsigned acc = (unsigned)t->acc << 4 | (unsigned)(h & 15);

	if (t->part == SLASH && c == 'u')
		go(st, t, U_0, 0);
	else if (t->part == SLASH && (c == '/' || c == '"' || c == '\\'))
		born(m, st, t->start, c, x);
	else if (t->part == SLASH || h < 0)
		return;
	else if (t->part == PERCENT_1)
		born(m, st, t->start, acc, x);
	else if (t->part != U_3)
		go(st, t, (enum part)(t->part + 1), acc);
	else {
		if (acc < 0x100)
			born(m, st, t->start, acc, x);
		born_wide(m, st, t->start, acc, x);
	}
}

static void begin(const struct mask *m, struct stream *st, unsigned c, struct text *x)
{
	struct thread t = { .start = st->at, .form = UNBORN };

	born(m, st, st->at, c, x);
	if (c == '%')
		go(st, &t, PERCENT, 0);
	else if (c == '\\')
		go(st, &t, SLASH, 0);
	for (t.form = TEXT; c == '+' && t.secret < m->n; t.secret++)
		if (byte_at(m->secrets[t.secret], 0) == ' ')
			advance(st, m->secrets[t.secret], &t, 1, x);
}

static uint32_t filter_hash(uint32_t three)
{
	return three * 0x9e3779b1u >> (32 - FILTER_BITS);
}

static bool may_begin(const struct mask *m, uint32_t three)
{
	uint32_t h = filter_hash(three);

	return m->filter[h / 64] >> (h % 64) & 1;
}

static uint32_t three_at(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

/* Every byte that this thread might take, and perhaps others. */
static const char *may_take(const struct mask *m, const struct thread *t, char room[8])
{
	static const char hex[] = "0123456789abcdefABCDEF", hex_or[] = "0123456789abcdefABCDEF%\\\r\n";
	static const char b64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_%\\\r\n";
	const struct secret *s = m->secrets[t->secret];
	unsigned bits, v;

	if (t->part == SLASH)
		return "u/\"\\nr";
	if (t->part == LOW_SLASH || t->part == LOW_U)
		return "\\u";
	if (t->part != PLAIN)
		return hex;
	if (t->form == HEX)
		return hex_or;
	if (t->form == TEXT) {
		room[0] = s->value[t->pos];
		memcpy(room + 1, "%\\+", 4);
		return room;
	}
	v = base64_want(s, t->form, t->pos, &bits);
	if (bits != 63)
		return b64;
	room[0] = b64[v];
	room[1] = v < 62 ? '%' : b64[v + 2];
	memcpy(room + 2, "%\\\r\n", 5);
	return room;
}

/* Empties next, into memory of the caller's. */
static struct thread *take_next(struct stream *st, size_t *ret_n)
{
	struct thread *v = cs_calloc(st->next.n, sizeof *v);

	*ret_n = st->next.n;
	for (size_t i = 0; i < st->next.n; i++)
		v[i] = st->next.v[i];
	clear_slots(st);
	st->next.n = 0;
	return v;
}

/* Notes all beginnings of three bytes that have come this far: `depth` bytes, and next is what they lead to. */
static void note_beginnings(struct mask *m, uint32_t sofar, unsigned depth)
{
	struct stream *st = &m->stream;
	struct thread *v;
	char room[8];
	size_t n;

	if (depth == 3 && st->next.n)
		m->filter[filter_hash(sofar) / 64] |= 1ull << filter_hash(sofar) % 64;
	if (depth == 3 || !st->next.n) {
		clear_slots(st);
		st->next.n = 0;
		return;
	}
	v = take_next(st, &n);
	for (size_t i = 0; i < n; i++)
		for (const char *c = may_take(m, &v[i], room); *c; c++) {
			step_thread(m, st, &v[i], (unsigned char)*c, NULL);
			note_beginnings(m, sofar | (uint32_t)(unsigned char)*c << 8 * depth, depth + 1);
		}
	free(v);
}

static void note_starts(struct mask *m)
{
	struct thread t = { 0 };
	uint32_t n = 0;

	/* Of base64 in the middle of a character there are sixteen, in two alphabets. */
	m->starts = cs_calloc(m->n * 32, sizeof *m->starts);
	for (unsigned c = 0; c < 256; c++) {
		m->first[c] = n;
		for (t.secret = 0; t.secret < m->n; t.secret++)
			for (t.form = TEXT; t.form < (base64_value(c) < 0 ? TEXT + 1 : FORMS); t.form++)
				if (char_is(m->secrets[t.secret], &t, c))
					m->starts[n++] = (struct start){ t.secret, t.form };
	}
	m->first[256] = n;
}

/* ---- streams ---- */

static void step(const struct mask *m, struct stream *st, unsigned c, bool fresh, struct text *x)
{
	struct threads was;

	for (size_t i = 0; i < st->now.n; i++)
		step_thread(m, st, &st->now.v[i], c, x);
	if (fresh)
		begin(m, st, c, x);
	st->at++;
	clear_slots(st);
	was = st->now;
	st->now = st->next;
	st->next = was;
	st->next.n = 0;
}

/* The first place from i on where a form may begin, or where there are less than three bytes left. */
static size_t skip(const struct mask *m, const unsigned char *p, size_t i, size_t n)
{
	uint32_t four;

	for (; i + 4 <= n; i++) {
		memcpy(&four, p + i, 4);
		if (may_begin(m, le32toh(four) & 0xffffff))
			return i;
	}
	while (i + 3 <= n && !may_begin(m, three_at(p + i)))
		i++;
	return i;
}

/* Reads x->v from st->at on, up to n bytes of it in all. */
static void run(const struct mask *m, struct stream *st, struct text *x, size_t n)
{
	const unsigned char *p = (const unsigned char *)x->v;
	size_t i = (size_t)(st->at - x->start);

	if (!m->n) {
		st->at = x->start + n;
		return;
	}
	while (i < n) {
		if (!st->now.n)
			i = skip(m, p, i, n);
		st->at = x->start + i;
		/* The filter looks ahead; at the end of what there is, the threads find out. */
		step(m, st, p[i], i + 3 > n || may_begin(m, three_at(p + i)), x);
		i++;
	}
}

static uint64_t oldest(const struct stream *st)
{
	uint64_t o = st->at;

	for (size_t i = 0; i < st->now.n; i++)
		if (st->now.v[i].start < o)
			o = st->now.v[i].start;
	return o;
}

static void stream_done(struct stream *st)
{
	if (st->now.v)
		explicit_bzero(st->now.v, st->now.cap * sizeof *st->now.v);
	if (st->next.v)
		explicit_bzero(st->next.v, st->next.cap * sizeof *st->next.v);
	free(st->now.v);
	free(st->next.v);
	free(st->slots);
	*st = (struct stream){ 0 };
}

struct mask *mask_new(const struct secret *const *secrets, size_t n)
{
	struct mask *m = cs_new(struct mask);

	m->secrets = cs_calloc(n, sizeof *m->secrets);
	m->n = n;
	for (size_t i = 0; i < n; i++)
		m->secrets[i] = secrets[i];
	note_starts(m);
	for (unsigned c = 0; n && c < 256; c++) {
		begin(m, &m->stream, c, NULL);
		note_beginnings(m, c, 1);
	}
	return m;
}

void mask_free(struct mask *m)
{
	if (!m)
		return;
	stream_done(&m->stream);
	if (m->held)
		explicit_bzero(m->held, m->held_cap);
	free(m->held);
	free(m->starts);
	free(m->secrets);
	explicit_bzero(m, sizeof *m); /* the filter tells something of how secrets begin */
	free(m);
}

/* Moves the end of out, which may not go on yet, to where the next bytes find it. */
static void hold_back(struct mask *m, struct cs_buf *out, size_t n)
{
	if (n > m->held_cap) {
		if (m->held)
			explicit_bzero(m->held, m->held_cap);
		free(m->held);
		m->held_cap = n < 128 ? 256 : n * 2;
		m->held = cs_calloc(m->held_cap, 1);
	}
	if (n)
		memcpy(m->held, out->data + out->len - n, n);
	m->n_held = n;
	out->len -= n;
	if (n)
		explicit_bzero(out->data + out->len, n);
}

size_t mask_feed(struct mask *m, const void *data, size_t n, bool last, struct cs_buf *out)
{
	struct stream *st = &m->stream;
	size_t before = out->len, whole = m->n_held + n;
	struct text x = { .start = st->at - m->n_held };

	cs_buf_add(out, m->held, m->n_held);
	cs_buf_add(out, data, n);
	if (out->over) {
		/* Nothing of a stream that has lost bytes is to be passed on. */
		if (out->len > before)
			explicit_bzero(out->data + before, out->len - before);
		out->len = before;
		stream_done(st);
		m->n_held = 0;
		return 0;
	}
	if (whole) {
		x.v = out->data + before;
		run(m, st, &x, whole);
	}
	hold_back(m, out, last ? 0 : (size_t)(st->at - oldest(st)));
	if (last)
		st->now.n = 0;
	return x.matches;
}

size_t mask_text(struct mask *m, char *text, size_t n)
{
	struct stream st = { 0 };
	struct text x = { .v = text };

	run(m, &st, &x, n);
	stream_done(&st);
	return x.matches;
}
