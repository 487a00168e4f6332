/* SPDX-License-Identifier: Apache-2.0 */
/* origin.c - where does this value come from? */
#include "gate/origin.h"

#include "base/mem.h"
#include "json/hash.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TOKEN_MAX = 1024,        /* bytes of a normalised scalar that is kept whole */
	STRUCTURED_MAX = 200,    /* a longer string, or one of many lines, is free text wherever it stands */
	USER_MAX = 256 << 10,
	DEPTH_MAX = 64,
	LINK_MAX = 4096,         /* bytes of a word that is looked at for where it leads */
	WORK_MAX = 256 << 20,    /* bytes of the user's text that one question may search; beyond, nobody has said it */
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
	uint64_t work;       /* of the question that is being answered */
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
	return p && n ? memcpy(cs_calloc(1, n), p, n) : NULL;
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

/* The next word of text from *at as it stands: where it begins, and how long it is. 0: there is none. */
static size_t next_span(const char *text, size_t len, size_t *at, const char **ret)
{
	size_t from = *at, n = 0;

	while (from < len && is_break((unsigned char)text[from]))
		from++;
	while (from + n < len && !is_break((unsigned char)text[from + n]))
		n++;
	*at = from + n;
	*ret = text + from;
	return n;
}

/* The next word, lowered and trimmed, into w. 0: there is none. TOKEN_MAX: it does not fit, and is nobody's word;
 * a caller that asks about a value may not pass over it. */
static size_t next_word(const char *text, size_t len, size_t *at, char w[TOKEN_MAX])
{
	const char *s;
	size_t n;

	while ((n = next_span(text, len, at, &s))) {
		if (n >= TOKEN_MAX)
			return TOKEN_MAX;
		for (size_t i = 0; i < n; i++)
			w[i] = (char)lower((unsigned char)s[i]);
		n = trim_word(w, n);
		if (n)
			return n;
	}
	return 0;
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

	/* A double would make one of ids that differ in their last digits. */
	if (!v->whole && (v->n > 16 || json_whole(v))) {
		if (!json_int(v, &i)) {
			if (v->n >= TOKEN_MAX)
				return 0;
			memcpy(out, v->s, v->n);
			return v->n;
		}
	}
	if (json_int(v, &i))
		n = snprintf(out, TOKEN_MAX, "%lld", (long long)i);
	else
		n = snprintf(out, TOKEN_MAX, "%.15g", json_num(v));
	return n > 0 && n < TOKEN_MAX ? (size_t)n : 0;
}

/* ---- the set ---- */

/* The words are strangers': with a seed they cannot be chosen to collide. No answer depends on it. */
static uint64_t hash_of(const char *s, size_t n)
{
	return json_hash_bytes(s, n, json_seed());
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
		if (n < TOKEN_MAX)
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
		if (n == TOKEN_MAX)
			continue;
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
	take(o, result, s, s->trusted ? ORIGIN_TRUSTED : s->guessed || result->type == JSON_STRING ? ORIGIN_FREE : ORIGIN_STRUCTURED, 0);
}

/* ---- what is asked ---- */

/* The words of w stand in the user's text one after the other. */
static bool user_said(struct origin *o, const char *w, size_t n)
{
	char phrase[TOKEN_MAX + 2];

	if (!o->user_len || n + 2 > sizeof phrase || o->work > WORK_MAX)
		return false;
	o->work += o->user_len;
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
		if (k == TOKEN_MAX || !seen(o, w, k))
			return false;
	return true;
}

/* A phrase that somebody is known to have said as it stands. */
static enum origin_class phrase_class(struct origin *o, const char *w, size_t n)
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
static enum origin_class pieced_class(struct origin *o, const char *w, size_t n)
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

static enum origin_class class_of(struct origin *o, const char *w, size_t n)
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

/* Does the schema name such a property, at any depth? Then the key is the tool's word and not the caller's. */
static bool schema_names(const struct json *schema, const char *key, size_t len, int depth)
{
	if (!schema || depth > DEPTH_MAX)
		return false;
	for (uint32_t i = 0; schema->type == JSON_ARRAY && i < schema->n; i++)
		if (schema_names(&schema->items[i], key, len, depth + 1))
			return true;
	for (uint32_t i = 0; schema->type == JSON_OBJECT && i < schema->n; i++) {
		const struct json_member *m = &schema->members[i];

		if ((!strcmp(m->key, "properties") && json_getn(&m->value, key, len)) || schema_names(&m->value, key, len, depth + 1))
			return true;
	}
	return false;
}

static void look(struct origin *o, const struct json *v, const struct json *schema, enum origin_class *ret, const struct json **which,
		 int depth)
{
	char w[TOKEN_MAX];

	if (*ret == ORIGIN_NOWHERE)
		return;
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
			look(o, &v->items[i], schema, ret, which, depth + 1);
		break;
	case JSON_OBJECT:
		for (uint32_t i = 0; i < v->n; i++) {
			const struct json_member *m = &v->members[i];

			/* {"mallory@evil.test": true} is as good a way to say it as any. */
			if (!schema_names(schema, m->key, m->key_len, 0))
				worst(class_of(o, w, normalise(m->key, m->key_len, w)), v, ret, which);
			look(o, &m->value, schema, ret, which, depth + 1);
		}
		break;
	default:
		break;
	}
}

enum origin_class origin_of(struct origin *o, const struct json *v, const struct json *schema, const struct json **ret_which)
{
	enum origin_class c = ORIGIN_USER;

	o->work = 0;
	look(o, v, schema, &c, ret_which, 0);
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

/* ---- links ---- */

static bool is_host_byte(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c >= 0x80;
}

/* Four numbers. */
static bool is_ipv4(const char *w, size_t n)
{
	unsigned dots = 0, digits = 0;

	for (size_t i = 0; i < n; i++)
		if (w[i] == '.' && digits) {
			dots++;
			digits = 0;
		} else if (w[i] < '0' || w[i] > '9' || ++digits > 3) {
			return false;
		}
	return dots == 3 && digits;
}

/* host.tld with a letter first in its last label: "3.5" and "e.g" are none. */
static bool is_host(const char *w, size_t n)
{
	const char *dot;

	while (n && *w == '.') {
		w++;
		n--;
	}
	while (n && w[n - 1] == '.')
		n--;
	if (is_ipv4(w, n))
		return true;
	dot = memrchr(w, '.', n);
	if (!dot || (size_t)(dot - w) + 2 >= n)
		return false;
	for (const char *p = dot + 1; p < w + n; p++)
		if (*p == '_' || (p == dot + 1 && ((*p >= '0' && *p <= '9') || *p == '-')))
			return false;
	return true;
}

/* name@host, or something with a host in it before its path. */
static bool is_address(const char *w, size_t n)
{
	size_t end = 0, from = 0;
	const char *at;

	while (end < n && !strchr("/\\#", w[end]))
		end++;
	at = memrchr(w, '@', end);
	if (at > w && at + 1 < w + end && is_host_byte((unsigned char)at[1]))
		return true;
	for (size_t i = 0; i <= end; i++)
		if (i == end || !is_host_byte((unsigned char)w[i])) {
			if (is_host(w + from, i - from))
				return true;
			from = i + 1;
		}
	return false;
}

/* Would somebody's program make a link of it? */
static bool is_link(const char *w, size_t n)
{
	static const char *const schemes[] = { "javascript:", "vbscript:", "data:", "mailto:", "tel:", "sms:", "file:", "http:", "https:" };
	const char *coded = memmem(w, n, "&#", 2); /* of HTML: any character may stand behind it */
	size_t slashes = 0;

	if (memmem(w, n, "://", 3) || (coded && coded + 2 < w + n && (coded[2] == 'x' || (coded[2] >= '0' && coded[2] <= '9'))))
		return true;
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (begins(w, n, schemes[i]) && n > strlen(schemes[i]))
			return true;
	while (slashes < n && (w[slashes] == '/' || w[slashes] == '\\'))
		slashes++;
	return is_address(w + (slashes >= 2 ? slashes : 0), n - (slashes >= 2 ? slashes : 0));
}

/* As a browser reads a host: small letters, and what is a wide form of ASCII, or a dot of another script, as ASCII. */
static size_t fold(const char *s, size_t len, char out[LINK_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < LINK_MAX; i++) {
		const unsigned char *c = (const unsigned char *)s + i;

		if (len - i < 3 || (c[0] != 0xef && c[0] != 0xe3)) {
			out[n++] = (char)lower(c[0]);
			continue;
		}
		if ((c[0] == 0xe3 && c[1] == 0x80 && c[2] == 0x82) || (c[0] == 0xef && c[1] == 0xbd && c[2] == 0xa1))
			out[n++] = '.';
		else if (c[0] == 0xef && c[1] == 0xbc && c[2] >= 0x81)
			out[n++] = (char)lower((unsigned char)(c[2] - 0x81 + '!'));
		else if (c[0] == 0xef && c[1] == 0xbd && c[2] <= 0x9e)
			out[n++] = (char)(c[2] - 0x80 + '`');
		else {
			out[n++] = (char)c[0];
			continue;
		}
		i += 2;
	}
	return n;
}

/* A word that is too long to look at leads somewhere if any part of it says so. */
static bool leads(const char *s, size_t len)
{
	char w[LINK_MAX];

	return is_link(w, fold(s, len, w)) || (len > LINK_MAX && (memmem(s, len, "://", 3) || memchr(s, '@', len)));
}

static void text_links(struct origin *o, const char *s, size_t len, struct cs_arena *a, enum origin_class *ret, const struct json **which)
{
	char w[TOKEN_MAX];
	const char *span;
	size_t at = 0, n;

	while (*ret != ORIGIN_NOWHERE && (n = next_span(s, len, &at, &span))) {
		enum origin_class c;

		if (!leads(span, n))
			continue;
		/* A part of a longer phrase that the user wrote is as good as the user's. */
		c = class_of(o, w, normalise(span, n, w));
		if (c > *ret)
			worst(c, json_new_str(a, span, n < TOKEN_MAX ? n : TOKEN_MAX), ret, which);
	}
}

static void look_links(struct origin *o, const struct json *v, struct cs_arena *a, enum origin_class *ret, const struct json **which,
		       int depth)
{
	if (depth > DEPTH_MAX) {
		worst(ORIGIN_NOWHERE, v, ret, which);
		return;
	}
	if (v->type == JSON_STRING)
		text_links(o, v->s, v->n, a, ret, which);
	if (v->type == JSON_ARRAY)
		for (uint32_t i = 0; i < v->n; i++)
			look_links(o, &v->items[i], a, ret, which, depth + 1);
	if (v->type == JSON_OBJECT)
		for (uint32_t i = 0; i < v->n; i++) {
			text_links(o, v->members[i].key, v->members[i].key_len, a, ret, which);
			look_links(o, &v->members[i].value, a, ret, which, depth + 1);
		}
}

enum origin_class origin_of_links(struct origin *o, const struct json *v, struct cs_arena *a, const struct json **ret_which)
{
	enum origin_class c = ORIGIN_USER;

	o->work = 0;
	look_links(o, v, a, &c, ret_which, 0);
	return c;
}
