/* SPDX-License-Identifier: Apache-2.0 */
/* origin.c - where does this value come from? */
#include "gate/origin.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TOKEN_MAX = 1024,        /* bytes of a normalised scalar that is kept whole */
	STRUCTURED_MAX = 200,    /* a longer string, or one of many lines, is free text wherever it stands */
	USER_MAX = 256 << 10,
	DEPTH_MAX = 64,
};

const char *origin_name(enum origin_class c)
{
	static const char *const names[] = { "user", "trusted", "structured", "free", "nowhere" };

	return c < ORIGIN_MAX ? names[c] : "?";
}

/* A set of texts, each with the classes it was seen in. */
struct entry {
	uint64_t hash;
	uint32_t at, len; /* in text */
	uint8_t classes;  /* 1 << enum origin_class */
};

struct origin {
	struct entry *table; /* open addressing; len UINT32_MAX is never: classes == 0 is empty */
	size_t cap, n;
	char *text;          /* the entries' bytes */
	size_t used, size;
	char *user;          /* the user's words, normalised: " book a table at nine " */
	size_t user_len;
	size_t max;
};

struct origin *origin_new(size_t max_bytes)
{
	struct origin *o = cs_new(struct origin);

	o->max = max_bytes ? max_bytes : (size_t)16 << 20;
	return o;
}

void origin_free(struct origin *o)
{
	if (!o)
		return;
	free(o->table);
	free(o->text);
	free(o->user);
	free(o);
}

static void *dup_bytes(const void *p, size_t n)
{
	void *to = n ? cs_calloc(1, n) : NULL;

	if (n)
		memcpy(to, p, n);
	return to;
}

struct origin *origin_fork(const struct origin *o)
{
	struct origin *f = cs_new(struct origin);

	*f = *o;
	f->table = dup_bytes(o->table, o->cap * sizeof *o->table);
	f->text = dup_bytes(o->text, o->size);
	f->user = dup_bytes(o->user, o->user_len + (o->user != NULL));
	return f;
}

size_t origin_bytes(const struct origin *o)
{
	return sizeof *o + o->cap * sizeof *o->table + o->size + o->user_len;
}

/* ---- words ---- */

static bool is_space(unsigned char c)
{
	return c <= ' ' || c == 0x7f;
}

/* Ends a word wherever it stands; what is left out here is part of addresses, numbers, names. */
static bool is_break(unsigned char c)
{
	return is_space(c) || strchr("\"'`,;()[]{}<>|*!?=", c);
}

static unsigned char lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

static bool begins(const char *s, size_t n, const char *with)
{
	size_t k = strlen(with);

	return n >= k && memcmp(s, with, k) == 0;
}

/* Drops what does not change where a link leads, and the punctuation of the sentence around. In place. */
static size_t trim_word(char *s, size_t n)
{
	size_t from = 0;

	while (n && (s[n - 1] == '.' || s[n - 1] == ':'))
		n--;
	if (begins(s, n, "https://"))
		from = 8;
	else if (begins(s, n, "http://"))
		from = 7;
	if (begins(s + from, n - from, "www."))
		from += 4;
	if (from || memchr(s, '.', n))
		while (n > from && s[n - 1] == '/')
			n--;
	memmove(s, s + from, n - from);
	return n - from;
}

/* The next word of text from *at, lowered and trimmed, into w. 0: there is none. */
static size_t next_word(const char *text, size_t len, size_t *at, char w[TOKEN_MAX])
{
	for (;;) {
		size_t from = *at, n = 0;

		while (from < len && is_break((unsigned char)text[from]))
			from++;
		if (from == len) {
			*at = len;
			return 0;
		}
		while (from + n < len && !is_break((unsigned char)text[from + n]))
			n++;
		*at = from + n;
		if (n >= TOKEN_MAX)
			continue; /* no value is that long */
		for (size_t i = 0; i < n; i++)
			w[i] = (char)lower((unsigned char)text[from + i]);
		n = trim_word(w, n);
		if (n)
			return n;
	}
}

/* A scalar as words with one space between: "  Sarah  Baker," and "sarah baker" are the same. Too long: 0. */
static size_t normalise(const char *text, size_t len, char out[TOKEN_MAX])
{
	char w[TOKEN_MAX];
	size_t at = 0, n = 0, k;

	while ((k = next_word(text, len, &at, w))) {
		if (n + k + 2 > TOKEN_MAX)
			return 0;
		if (n)
			out[n++] = ' ';
		memcpy(out + n, w, k);
		n += k;
	}
	return n;
}

static size_t number_text(const struct json *v, char out[TOKEN_MAX])
{
	int64_t i;
	int n;

	if (json_int(v, &i))
		n = snprintf(out, TOKEN_MAX, "%lld", (long long)i);
	else
		n = snprintf(out, TOKEN_MAX, "%.15g", json_num(v));
	return n > 0 && n < TOKEN_MAX ? (size_t)n : 0;
}

/* ---- the set ---- */

static uint64_t hash_of(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
	return h ^ h >> 29;
}

static struct entry *slot(const struct origin *o, const char *s, size_t n, uint64_t hash)
{
	for (size_t i = hash & (o->cap - 1);; i = (i + 1) & (o->cap - 1)) {
		struct entry *e = &o->table[i];

		if (!e->classes || (e->hash == hash && e->len == n && memcmp(o->text + e->at, s, n) == 0))
			return e;
	}
}

static bool make_room(struct origin *o, size_t bytes)
{
	size_t cap = o->cap ? o->cap : 256, size = o->size ? o->size : 4096;
	struct entry *old = o->table;
	size_t old_cap = o->cap;

	while (size < o->used + bytes)
		size *= 2;
	if ((o->n + 1) * 2 > cap || !o->cap)
		cap = o->cap ? cap * 2 : cap;
	if (cap * sizeof *old + size > o->max)
		return false;
	if (size != o->size) {
		char *more = realloc(o->text, size);

		if (!more)
			return false;
		o->text = more;
		o->size = size;
	}
	if (cap == o->cap)
		return true;
	o->table = cs_calloc(cap, sizeof *o->table);
	o->cap = cap;
	for (size_t i = 0; i < old_cap; i++)
		if (old[i].classes)
			*slot(o, o->text + old[i].at, old[i].len, old[i].hash) = old[i];
	free(old);
	return true;
}

static void put(struct origin *o, const char *s, size_t n, enum origin_class c)
{
	uint64_t hash = hash_of(s, n);
	struct entry *e;

	if (!n || !make_room(o, n))
		return;
	e = slot(o, s, n, hash);
	if (!e->classes) {
		*e = (struct entry){ .hash = hash, .at = (uint32_t)o->used, .len = (uint32_t)n };
		memcpy(o->text + o->used, s, n);
		o->used += n;
		o->n++;
	}
	e->classes |= (uint8_t)(1u << c);
}

static unsigned seen(const struct origin *o, const char *s, size_t n)
{
	return o->cap && n ? slot(o, s, n, hash_of(s, n))->classes : 0;
}

/* ---- what was seen ---- */

static void put_words(struct origin *o, const char *text, size_t len)
{
	char w[TOKEN_MAX];
	size_t at = 0, n;

	while ((n = next_word(text, len, &at, w)))
		put(o, w, n, ORIGIN_FREE);
}

void origin_user(struct origin *o, const char *text, size_t len)
{
	char w[TOKEN_MAX], *grown;
	size_t at = 0, n;

	if (len > USER_MAX || o->user_len + 2 * len + 4 > USER_MAX * 2)
		return;
	grown = realloc(o->user, o->user_len + 2 * len + 4);
	if (!grown)
		return;
	o->user = grown;
	if (o->user_len == 0)
		o->user[o->user_len++] = ' ';
	while ((n = next_word(text, len, &at, w))) {
		memcpy(o->user + o->user_len, w, n);
		o->user_len += n;
		o->user[o->user_len++] = ' ';
	}
	o->user[o->user_len++] = '\n'; /* what is said in two messages is no one phrase */
	o->user[o->user_len++] = ' ';
}

static bool named(const char *const *list, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], key))
			return true;
	return false;
}

static void take_string(struct origin *o, const struct json *v, enum origin_class c)
{
	char w[TOKEN_MAX];
	size_t n;

	if (c == ORIGIN_STRUCTURED && (v->n > STRUCTURED_MAX || memchr(v->s, '\n', v->n)))
		c = ORIGIN_FREE;
	n = normalise(v->s, v->n, w);
	if (n && c != ORIGIN_FREE)
		put(o, w, n, c);
	put_words(o, v->s, v->n);
}

static void take(struct origin *o, const struct json *v, const struct origin_source *s, enum origin_class c, int depth)
{
	char w[TOKEN_MAX];

	if (depth > DEPTH_MAX)
		return;
	switch (v->type) {
	case JSON_STRING:
		take_string(o, v, c);
		break;
	case JSON_NUMBER:
		put(o, w, number_text(v, w), c);
		break;
	case JSON_ARRAY:
		for (uint32_t i = 0; i < v->n; i++)
			take(o, &v->items[i], s, c, depth + 1);
		break;
	case JSON_OBJECT:
		for (uint32_t i = 0; i < v->n; i++) {
			const struct json_member *m = &v->members[i];
			enum origin_class below = c;

			if (named(s->free_fields, s->n_free, m->key))
				below = ORIGIN_FREE;
			else if (c != ORIGIN_FREE && named(s->trusted_fields, s->n_trusted, m->key))
				below = ORIGIN_TRUSTED;
			take_string(o, &(struct json){ .type = JSON_STRING, .n = m->key_len, .s = m->key }, c);
			take(o, &m->value, s, below, depth + 1);
		}
		break;
	default:
		break;
	}
}

void origin_result(struct origin *o, const struct json *result, const struct origin_source *s)
{
	if (!result)
		return;
	/* A text as a whole is nobody's field. */
	take(o, result, s, s->trusted ? ORIGIN_TRUSTED : result->type == JSON_STRING ? ORIGIN_FREE : ORIGIN_STRUCTURED, 0);
}

/* ---- what is asked ---- */

/* The words of w stand in the user's text one after the other. */
static bool user_said(const struct origin *o, const char *w, size_t n)
{
	char phrase[TOKEN_MAX + 2];

	if (!o->user_len || n + 2 > sizeof phrase)
		return false;
	phrase[0] = ' ';
	memcpy(phrase + 1, w, n);
	phrase[n + 1] = ' ';
	return memmem(o->user, o->user_len, phrase, n + 2) != NULL;
}

/* Every word of it was in some free text: good enough to say so, since free and nowhere are both doubtful. */
static bool all_words_seen(const struct origin *o, const char *s, size_t n)
{
	char w[TOKEN_MAX];
	size_t at = 0, k;

	while ((k = next_word(s, n, &at, w)))
		if (!seen(o, w, k))
			return false;
	return true;
}

/* A phrase that somebody is known to have said as it stands. */
static enum origin_class phrase_class(const struct origin *o, const char *w, size_t n)
{
	unsigned c = seen(o, w, n);

	if (user_said(o, w, n))
		return ORIGIN_USER;
	if (c & 1u << ORIGIN_TRUSTED)
		return ORIGIN_TRUSTED;
	return c & 1u << ORIGIN_STRUCTURED ? ORIGIN_STRUCTURED : ORIGIN_NOWHERE;
}

/* "dinner at" of the user's and "chez nous" of a field make "dinner at chez nous": the best way to cut it into such
 * phrases; its worst phrase is its class. The ends of words are `at`, best[i] is for the first i words. */
static enum origin_class pieced_class(const struct origin *o, const char *w, size_t n)
{
	enum { WORDS = 32 };
	enum origin_class best[WORDS + 1] = { ORIGIN_USER };
	size_t at[WORDS + 1] = { 0 }, words = 0;

	for (size_t i = 0; i <= n; i++)
		if (i == n || w[i] == ' ') {
			if (words == WORDS)
				return ORIGIN_NOWHERE;
			at[++words] = i + 1;
		}
	for (size_t to = 1; to <= words; to++) {
		best[to] = ORIGIN_NOWHERE;
		for (size_t from = 0; from < to; from++) {
			enum origin_class c = best[from];

			if (c >= best[to])
				continue;
			enum origin_class piece = phrase_class(o, w + at[from], at[to] - 1 - at[from]);

			c = piece > c ? piece : c;
			if (c < best[to])
				best[to] = c;
		}
	}
	return best[words];
}

static enum origin_class class_of(const struct origin *o, const char *w, size_t n)
{
	enum origin_class c = phrase_class(o, w, n);

	if (c == ORIGIN_NOWHERE && n)
		c = pieced_class(o, w, n);
	return c == ORIGIN_NOWHERE && n && all_words_seen(o, w, n) ? ORIGIN_FREE : c;
}

static void worst(enum origin_class c, const struct json *v, enum origin_class *ret, const struct json **which)
{
	if (c <= *ret)
		return;
	*ret = c;
	if (which)
		*which = v;
}

static void look(const struct origin *o, const struct json *v, enum origin_class *ret, const struct json **which, int depth)
{
	char w[TOKEN_MAX];

	if (depth > DEPTH_MAX) {
		worst(ORIGIN_NOWHERE, v, ret, which);
		return;
	}
	switch (v->type) {
	case JSON_STRING:
		if (v->n)
			worst(class_of(o, w, normalise(v->s, v->n, w)), v, ret, which);
		break;
	case JSON_NUMBER:
		worst(class_of(o, w, number_text(v, w)), v, ret, which);
		break;
	case JSON_ARRAY:
		for (uint32_t i = 0; i < v->n; i++)
			look(o, &v->items[i], ret, which, depth + 1);
		break;
	case JSON_OBJECT:
		for (uint32_t i = 0; i < v->n; i++)
			look(o, &v->members[i].value, ret, which, depth + 1);
		break;
	default:
		break;
	}
}

enum origin_class origin_of(const struct origin *o, const struct json *v, const struct json **ret_which)
{
	enum origin_class c = ORIGIN_USER;

	look(o, v, &c, ret_which, 0);
	return c;
}

static size_t scalar_text(const struct json *v, char out[TOKEN_MAX])
{
	return v->type == JSON_STRING ? normalise(v->s, v->n, out) : v->type == JSON_NUMBER ? number_text(v, out) : 0;
}

bool origin_same(const struct json *a, const struct json *b)
{
	char x[TOKEN_MAX], y[TOKEN_MAX];
	size_t n = scalar_text(a, x);

	return n && n == scalar_text(b, y) && memcmp(x, y, n) == 0;
}

/* name@host.tld, or host.tld[/path] with a letter in its last label: "3.5" and "e.g" are none. */
static bool is_address(const char *w, size_t n)
{
	const char *slash = memchr(w, '/', n), *at, *dot;
	size_t host = slash ? (size_t)(slash - w) : n;

	at = memchr(w, '@', host);
	if (at) {
		host -= (size_t)(at - w) + 1;
		w = at + 1;
	}
	dot = memrchr(w, '.', host);
	if (!dot || dot == w || (size_t)(dot - w) + 2 >= host)
		return false;
	for (const char *p = dot + 1; p < w + host; p++)
		if (!((*p >= 'a' && *p <= 'z') || (unsigned char)*p >= 0x80 || *p == '-' || (p > dot + 1 && *p >= '0' && *p <= '9') || *p == ':'))
			return false;
	return true;
}

static void look_links(const struct origin *o, const struct json *v, struct cs_arena *a, enum origin_class *ret,
		       const struct json **which, int depth)
{
	char w[TOKEN_MAX];
	size_t at = 0, n;

	if (depth > DEPTH_MAX)
		return;
	if (v->type == JSON_STRING)
		while ((n = next_word(v->s, v->n, &at, w)))
			if (is_address(w, n)) {
				/* A part of a longer phrase that the user wrote is as good as the user's. */
				enum origin_class c = class_of(o, w, n);

				worst(c, c > *ret ? json_new_str(a, w, n) : v, ret, which);
			}
	if (v->type == JSON_ARRAY)
		for (uint32_t i = 0; i < v->n; i++)
			look_links(o, &v->items[i], a, ret, which, depth + 1);
	if (v->type == JSON_OBJECT)
		for (uint32_t i = 0; i < v->n; i++)
			look_links(o, &v->members[i].value, a, ret, which, depth + 1);
}

enum origin_class origin_of_links(const struct origin *o, const struct json *v, struct cs_arena *a, const struct json **ret_which)
{
	enum origin_class c = ORIGIN_USER;

	look_links(o, v, a, &c, ret_which, 0);
	return c;
}
