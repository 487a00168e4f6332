/* SPDX-License-Identifier: Apache-2.0 */
#include "json/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define DEPTH 64
#define VALUES 1000000

struct reader {
	yaml_parser_t parser;
	yaml_event_t event;
	struct cs_arena *arena;
	struct json_places *places;
	uint32_t depth, depth_max;
	uint32_t values, values_max;
	struct cs_err *err;
};

/* A child before its siblings are known: values move once, into their parent's array. */
struct child {
	struct json_member m;
	uint32_t line, column;
};

struct children {
	struct child *v;
	size_t n, cap;
};

static int wrong(struct reader *r, enum cs_code code, const char *what)
{
	yaml_mark_t at = r->event.start_mark;

	return cs_fail(r->err, code, 0, "%zu:%zu: %s", at.line + 1, at.column + 1, what);
}

static int next(struct reader *r)
{
	yaml_event_delete(&r->event);
	memset(&r->event, 0, sizeof r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return 0;
	return cs_fail(r->err, CS_E_INVALID, 0, "%zu:%zu: %s", r->parser.problem_mark.line + 1,
		       r->parser.problem_mark.column + 1, r->parser.problem ? r->parser.problem : "not YAML");
}

/* gcc 12 loses sight of p->v when an element of it is written, and takes it for lost. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
static void place(struct reader *r, const struct json *v, uint32_t line, uint32_t column)
{
	struct json_places *p = r->places;

	if (!p)
		return;
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 64;
		struct json_place *more = reallocarray(p->v, cap, sizeof *more);

		if (!more)
			return; /* a place less to name */
		p->v = more;
		p->cap = cap;
	}
	p->v[p->n++] = (struct json_place){ v, line, column };
}
#pragma GCC diagnostic pop

/* -?(0|[1-9]d*)(.d+)?([eE][+-]?d+)?, as JSON has it. */
static bool is_number(const char *s, size_t n, bool *ret_whole)
{
	size_t i = 0, from;

	*ret_whole = true;
	if (i < n && s[i] == '-')
		i++;
	from = i;
	while (i < n && s[i] >= '0' && s[i] <= '9')
		i++;
	if (i == from || (s[from] == '0' && i - from > 1))
		return false;
	if (i < n && s[i] == '.') {
		*ret_whole = false;
		from = ++i;
		while (i < n && s[i] >= '0' && s[i] <= '9')
			i++;
		if (i == from)
			return false;
	}
	if (i < n && (s[i] == 'e' || s[i] == 'E')) {
		*ret_whole = false;
		i++;
		if (i < n && (s[i] == '+' || s[i] == '-'))
			i++;
		from = i;
		while (i < n && s[i] >= '0' && s[i] <= '9')
			i++;
		if (i == from)
			return false;
	}
	return i == n;
}

static bool is_word(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(s, word, n) == 0;
}

static int scalar(struct reader *r, struct json *v)
{
	const char *s = (const char *)r->event.data.scalar.value;
	size_t n = r->event.data.scalar.length;
	bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE, whole;

	if (plain && (n == 0 || is_word(s, n, "~") || is_word(s, n, "null"))) {
		v->type = JSON_NULL;
		return 0;
	}
	if (plain && (is_word(s, n, "true") || is_word(s, n, "false"))) {
		v->type = JSON_BOOL;
		v->b = s[0] == 't';
		return 0;
	}
	v->type = JSON_STRING;
	/* The same bounds as json_read(): longer digits are text. */
	if (plain && n < 400 && is_number(s, n, &whole)) {
		v->type = JSON_NUMBER;
		errno = 0;
		v->i = whole ? strtoll(s, NULL, 10) : 0;
		if (whole && errno == 0) {
			v->whole = true;
			return 0;
		}
	}
	v->n = (uint32_t)n;
	v->s = cs_arena_dup(r->arena, s, n);
	return v->s ? 0 : wrong(r, CS_E_LIMIT, "too large");
}

static struct child *more(struct reader *r, struct children *c)
{
	if (++r->values > r->values_max)
		return NULL;
	if (c->n == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 8;
		struct child *grown = reallocarray(c->v, cap, sizeof *grown);

		if (!grown)
			return NULL;
		c->v = grown;
		c->cap = cap;
	}
	memset(&c->v[c->n], 0, sizeof c->v[0]);
	return &c->v[c->n++];
}

static int by_key(const void *a, const void *b)
{
	const struct json_member *x = *(const struct json_member *const *)a, *y = *(const struct json_member *const *)b;
	uint32_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
	int c = memcmp(x->key, y->key, n);

	return c ? c : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static int keys_once(struct reader *r, const struct json *v)
{
	const struct json_member **by = reallocarray(NULL, v->n + 1u, sizeof *by);
	int k = 0;

	if (!by)
		return wrong(r, CS_E_LIMIT, "too large");
	for (uint32_t i = 0; i < v->n; i++)
		by[i] = &v->members[i];
	qsort(by, v->n, sizeof *by, by_key);
	for (uint32_t i = 1; i < v->n && k == 0; i++)
		if (by_key(&by[i - 1], &by[i]) == 0) {
			const struct json_place *at = json_place_of(r->places, &by[i]->value);

			k = cs_fail(r->err, CS_E_INVALID, 0, "%u:%u: the key \"%.60s\" is there twice",
				    at ? at->line : (unsigned)r->event.start_mark.line + 1, at ? at->column : 1, by[i]->key);
		}
	free(by);
	return k;
}

static int settle_array(struct reader *r, struct children *c, struct json *v)
{
	struct json *items = cs_arena_get(r->arena, c->n, sizeof *items);

	if (!items)
		return wrong(r, CS_E_LIMIT, "too large");
	for (size_t i = 0; i < c->n; i++) {
		items[i] = c->v[i].m.value;
		place(r, &items[i], c->v[i].line, c->v[i].column);
	}
	v->type = JSON_ARRAY;
	v->n = (uint32_t)c->n;
	v->items = items;
	return 0;
}

static int settle_object(struct reader *r, struct children *c, struct json *v)
{
	struct json_member *members = cs_arena_get(r->arena, c->n, sizeof *members);

	if (!members)
		return wrong(r, CS_E_LIMIT, "too large");
	for (size_t i = 0; i < c->n; i++) {
		members[i] = c->v[i].m;
		place(r, &members[i].value, c->v[i].line, c->v[i].column);
	}
	v->type = JSON_OBJECT;
	v->n = (uint32_t)c->n;
	v->members = members;
	return keys_once(r, v);
}

static int value(struct reader *r, struct json *v);

static int key(struct reader *r, struct child *c)
{
	const char *s = (const char *)r->event.data.scalar.value;
	size_t n = r->event.data.scalar.length;

	if (r->event.type != YAML_SCALAR_EVENT)
		return wrong(r, CS_E_INVALID, "a key must be a word");
	if (is_word(s, n, "<<"))
		return wrong(r, CS_E_INVALID, "merge keys (<<) are not read; write the keys out");
	c->m.key = cs_arena_dup(r->arena, s, n);
	c->m.key_len = (uint32_t)n;
	return c->m.key ? 0 : wrong(r, CS_E_LIMIT, "too large");
}

/* Up to the end of the sequence or mapping. */
static int collect(struct reader *r, struct children *c, bool mapping)
{
	yaml_event_type_t end = mapping ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;

	for (;;) {
		struct child *one;
		struct json v = { 0 };
		size_t at = c->n;
		int k = next(r);

		if (k < 0 || r->event.type == end)
			return k;
		one = more(r, c);
		if (!one)
			return wrong(r, CS_E_LIMIT, "too many values");
		if (mapping && ((k = key(r, one)) < 0 || (k = next(r)) < 0))
			return k;
		one->line = (uint32_t)r->event.start_mark.line + 1;
		one->column = (uint32_t)r->event.start_mark.column + 1;
		k = value(r, &v);
		if (k < 0)
			return k;
		c->v[at].m.value = v;
	}
}

static int compound(struct reader *r, struct json *v, bool mapping)
{
	struct children c = { 0 };
	int k;

	if (++r->depth > r->depth_max)
		return wrong(r, CS_E_LIMIT, "nested too deeply");
	k = collect(r, &c, mapping);
	if (k >= 0)
		k = mapping ? settle_object(r, &c, v) : settle_array(r, &c, v);
	free(c.v);
	r->depth--;
	return k;
}

static int value(struct reader *r, struct json *v)
{
	const yaml_event_t *e = &r->event;

	switch (e->type) {
	case YAML_SCALAR_EVENT:
		if (e->data.scalar.anchor || e->data.scalar.tag)
			return wrong(r, CS_E_INVALID, "anchors and tags are not read");
		return scalar(r, v);
	case YAML_SEQUENCE_START_EVENT:
		if (e->data.sequence_start.anchor || e->data.sequence_start.tag)
			return wrong(r, CS_E_INVALID, "anchors and tags are not read");
		return compound(r, v, false);
	case YAML_MAPPING_START_EVENT:
		if (e->data.mapping_start.anchor || e->data.mapping_start.tag)
			return wrong(r, CS_E_INVALID, "anchors and tags are not read");
		return compound(r, v, true);
	case YAML_ALIAS_EVENT:
		return wrong(r, CS_E_INVALID, "aliases (*name) are not read; write the value out");
	default:
		return wrong(r, CS_E_INVALID, "a value is missing");
	}
}

static int document(struct reader *r, struct json *v)
{
	int k = next(r); /* the stream's start */

	if (k == 0)
		k = next(r); /* the document's */
	if (k < 0)
		return k;
	if (r->event.type == YAML_STREAM_END_EVENT)
		return 0; /* an empty text is null */
	if ((k = next(r)) < 0)
		return k;
	place(r, v, (uint32_t)r->event.start_mark.line + 1, (uint32_t)r->event.start_mark.column + 1);
	if ((k = value(r, v)) < 0 || (k = next(r)) < 0 || (k = next(r)) < 0)
		return k;
	return r->event.type == YAML_STREAM_END_EVENT ? 0 : wrong(r, CS_E_INVALID, "only one document is read");
}

int json_read_yaml(struct cs_arena *a, const char *text, size_t len, const struct json_limits *limits,
		   struct json_places *places, const struct json **ret, struct cs_err *err)
{
	struct reader r = { .arena = a, .places = places, .err = err };
	struct json *v = cs_arena_new(a, struct json);
	int k;

	r.depth_max = limits && limits->depth ? limits->depth : DEPTH;
	r.values_max = limits && limits->values ? limits->values : VALUES;
	if (!v || !yaml_parser_initialize(&r.parser))
		return cs_fail(err, CS_E_LIMIT, 0, "1:1: too large");
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	k = document(&r, v);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	*ret = v;
	return k;
}

const struct json_place *json_place_of(const struct json_places *p, const struct json *v)
{
	for (size_t i = 0; p && i < p->n; i++)
		if (p->v[i].value == v)
			return &p->v[i];
	return NULL;
}

void json_places_done(struct json_places *p)
{
	free(p->v);
	*p = (struct json_places){ 0 };
}
