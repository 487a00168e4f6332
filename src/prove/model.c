/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - a solver's model as JSON values.
 *
 * The solver's strings have no characters: each gets some that fit the patterns it
 * satisfies.  Arguments that no rule looks at and the schema asks for are made up.
 */
#include "prove/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 64 << 20, DEPTH_MAX = 32 };

struct found { /* a string of the model and the one we took for it */
	const char *element;
	struct word word;
};

struct model {
	struct enc *e;
	struct cs_arena *arena;
	const struct sexp **values; /* in the order in which they were asked for */
	struct asked_for {
		ex name;
	} *names;
	uint32_t n, cap;
	struct found *found;
	uint32_t n_found, n_steps;
};

/* ---- asking for everything at once ---- */

static void want(struct model *m, ex name)
{
	if (!name)
		return;
	if (m->n == m->cap) {
		uint32_t cap = m->cap ? m->cap * 2 : 256;
		struct asked_for *more = cs_arena_get(m->arena, cap, sizeof *more);

		if (!more)
			return;
		if (m->n)
			memcpy(more, m->names, m->n * sizeof *more);
		m->names = more;
		m->cap = cap;
	}
	m->names[m->n++].name = name;
}

static void want_val(struct model *m, const struct val *v)
{
	want(m, v->p);
	want(m, v->tag);
	want(m, v->n);
	want(m, v->b);
	want(m, v->o);
	want(m, v->s);
	for (uint32_t i = 0; v->s && i < m->e->n_preds; i++)
		want(m, x(m->e, "(P%u %s)", i, v->s));
}

/* Was it asked by one of the first n calls, or an end after them, about one of them? */
static bool counts(const struct demand *d, uint32_t n)
{
	return d->step < (int)n && (d->asker < (int)n || (d->end && d->asker == (int)n));
}

static void want_all(struct model *m, uint32_t n)
{
	struct enc *e = m->e;

	for (uint32_t i = 0; i < e->n_words; i++)
		want(m, x(e, "c%u", i));
	for (uint32_t i = 0; i < e->n_things; i++)
		want(m, x(e, "o%u", i));
	want(m, "t_end");
	for (uint32_t i = 0; i < n; i++) {
		const struct step *s = &e->steps[i];

		for (uint32_t t = 0; t < e->n_tools; t++)
			want(m, s->tool[t]);
		want(m, s->user);
		want(m, s->ok);
		want(m, s->fail);
		want(m, s->t);
		for (uint32_t k = 0; k < e->n_slots; k++)
			want_val(m, &e->slots[k].at[i]);
	}
	for (const struct demand *d = e->demands; d; d = d->next)
		if (counts(d, n)) {
			want_val(m, &d->what);
			want_val(m, &d->v);
		}
	for (const struct asked *a = e->asked; a; a = a->next) {
		if (a->kind == ASKED_FROM) {
			want(m, a->tv.t);
			want(m, a->tv.f);
		} else if (a->kind != ASKED_FORMULA) {
			want_val(m, &a->val);
		}
	}
}

static const struct sexp *value_of(const struct model *m, ex name)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->names[i].name == name || !strcmp(m->names[i].name, name))
			return m->values[i];
	return NULL;
}

bool model_true(const struct model *m, ex name)
{
	return x_true(name) || (!x_false(name) && sexp_is(value_of(m, name), "true"));
}

static const char *element(const struct model *m, ex name)
{
	const struct sexp *v = value_of(m, name);

	return v && v->kind == SEXP_WORD ? v->text : NULL;
}

/* ---- strings ---- */

static struct word *add_found(struct model *m, const char *elem, const char *s, size_t len)
{
	m->found[m->n_found] = (struct found){ .element = elem, .word = { .s = s, .len = len } };
	return &m->found[m->n_found++].word;
}

static const struct word *string_of(struct model *m, ex name)
{
	const char *elem = element(m, name), *s;
	struct enc *e = m->e;
	struct word *taken;
	bool *holds;

	if (!elem)
		return NULL;
	for (uint32_t i = 0; i < m->n_found; i++)
		if (!strcmp(m->found[i].element, elem))
			return &m->found[i].word;
	holds = cs_arena_get(m->arena, e->n_preds + 1, sizeof *holds);
	taken = cs_arena_get(m->arena, m->n_found + 1, sizeof *taken);
	if (!holds || !taken)
		return NULL;
	for (uint32_t i = 0; i < e->n_preds; i++)
		holds[i] = model_true(m, x(e, "(P%u %s)", i, name));
	for (uint32_t i = 0; i < m->n_found; i++)
		taken[i] = m->found[i].word;
	s = word_find(e, holds, taken, m->n_found);
	return s ? add_found(m, elem, s, strlen(s)) : NULL;
}

/* ---- numbers ---- */

/* a/b with at most 15 digits behind the point. */
static void write_ratio(struct cs_buf *b, unsigned long long num, unsigned long long den)
{
	unsigned long long rest = num % den;

	cs_buf_fmt(b, "%llu", num / den);
	if (!rest)
		return;
	cs_buf_char(b, '.');
	for (int i = 0; i < 15 && rest && rest < (1ULL << 60); i++) {
		cs_buf_fmt(b, "%llu", rest * 10 / den);
		rest = rest * 10 % den;
	}
}

/* "3.0" as 3: JSON knows one kind of number, but a schema may want a whole one. */
static bool write_number(struct cs_buf *b, const struct sexp *v)
{
	size_t n;

	if (!v)
		return false;
	if (v->kind == SEXP_LIST && sexp_is(sexp_at(v, 0), "-") && sexp_at(v, 1) && !sexp_at(v, 2)) {
		cs_buf_char(b, '-');
		return write_number(b, sexp_at(v, 1));
	}
	if (v->kind == SEXP_LIST && sexp_is(sexp_at(v, 0), "/")) {
		const struct sexp *num = sexp_at(v, 1), *den = sexp_at(v, 2);

		if (!num || !den || num->kind != SEXP_WORD || den->kind != SEXP_WORD || strtoull(den->text, NULL, 10) == 0)
			return false;
		write_ratio(b, strtoull(num->text, NULL, 10), strtoull(den->text, NULL, 10));
		return true;
	}
	if (v->kind != SEXP_WORD || strspn(v->text, "0123456789.") != strlen(v->text))
		return false;
	n = strlen(v->text);
	if (n > 2 && !strcmp(v->text + n - 2, ".0"))
		n -= 2;
	cs_buf_add(b, v->text, n);
	return true;
}

/* ---- values ---- */

static unsigned type_of(const struct model *m, const struct val *v)
{
	const struct sexp *tag = v->tag ? value_of(m, v->tag) : NULL;

	return tag && tag->kind == SEXP_WORD ? (unsigned)strtoul(tag->text, NULL, 10) : v->mask;
}

static void write_string(struct model *m, struct cs_buf *b, const char *s, size_t len)
{
	struct json j = { .type = JSON_STRING, .n = (uint32_t)len, .s = s };

	(void)m;
	json_write(b, &j);
}

static const struct json *known_thing(const struct model *m, const struct val *v)
{
	const char *elem = element(m, v->o);

	for (uint32_t i = 0; elem && i < m->e->n_things; i++) {
		const char *other = element(m, x(m->e, "o%u", i));

		if (other && !strcmp(other, elem))
			return m->e->things[i];
	}
	return NULL;
}

/* A value that is there and has no places inside that are looked at. */
static bool write_val(struct model *m, struct cs_buf *b, const struct val *v)
{
	const struct word *w;
	const struct json *j;

	switch (type_of(m, v)) {
	case T_NULL:
		cs_buf_str(b, "null");
		return true;
	case T_BOOL:
		cs_buf_str(b, model_true(m, v->b) ? "true" : "false");
		return true;
	case T_NUM:
		return write_number(b, value_of(m, v->n));
	case T_STR:
		w = string_of(m, v->s);
		if (w)
			write_string(m, b, w->s, w->len);
		return w != NULL;
	case T_ARR:
	case T_OBJ:
		j = known_thing(m, v);
		if (j)
			json_write(b, j);
		else
			cs_buf_str(b, type_of(m, v) == T_ARR ? "[]" : "{}");
		return true;
	default:
		return false;
	}
}

static const struct json *parse(struct cs_arena *a, const struct cs_buf *b)
{
	const struct json *j = NULL;

	return !b->over && json_read(a, cs_buf_text(b), b->len, NULL, &j, NULL) == 0 ? j : NULL;
}

const struct json *model_value(struct model *m, const struct val *v)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 20);

	if (!model_true(m, v->p) || !write_val(m, &b, v))
		return NULL;
	return parse(m->arena, &b);
}

/* ---- what nobody looks at, as the schema wants it ---- */

static void write_default(struct cs_buf *b, const struct json *schema, unsigned depth)
{
	const struct json *list = json_get(schema, "enum"), *only = json_get(schema, "const"), *least = json_get(schema, "minimum");
	bool whole, more = false;
	unsigned mask = schema_types(schema, &whole);

	if (only || (json_is(list, JSON_ARRAY) && list->n)) {
		json_write(b, only ? only : &list->items[0]);
	} else if (mask & T_STR) {
		cs_buf_str(b, "\"\"");
	} else if (mask & T_NUM) {
		if (json_is(least, JSON_NUMBER))
			json_write(b, least);
		else
			cs_buf_str(b, "0");
	} else if (mask & T_BOOL) {
		cs_buf_str(b, "false");
	} else if (mask & T_ARR) {
		cs_buf_str(b, "[]");
	} else if (mask & T_OBJ) {
		const struct json *required = json_get(schema, "required");

		cs_buf_char(b, '{');
		for (uint32_t i = 0; json_is(required, JSON_ARRAY) && i < required->n && depth < DEPTH_MAX; i++) {
			if (!json_is(&required->items[i], JSON_STRING))
				continue;
			if (more)
				cs_buf_char(b, ',');
			more = true;
			json_write(b, &required->items[i]);
			cs_buf_char(b, ':');
			write_default(b, json_get(json_get(schema, "properties"), json_str(&required->items[i])), depth + 1);
		}
		cs_buf_char(b, '}');
	} else {
		cs_buf_str(b, "null");
	}
}

/* ---- an object from the places in it ---- */

/* A place that is there. */
struct spot {
	const struct rl_step *steps;
	uint32_t n;
	const struct val *v; /* NULL: whatever the schema allows */
};

struct build {
	struct model *m;
	struct cs_buf *b;
	enum slot_kind kind;
	uint32_t step;
	struct spot *spots;
	uint32_t n;
};

static bool same_step(const struct rl_step *a, const struct rl_step *b)
{
	return a->key && b->key ? !strcmp(a->key, b->key) : !a->key && !b->key && a->index == b->index;
}

static bool below(const struct spot *s, const struct rl_step *path, uint32_t n)
{
	if (s->n < n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!same_step(&s->steps[i], &path[i]))
			return false;
	return true;
}

static bool inside(const struct spot *s, const struct rl_step *path, uint32_t n)
{
	return s->n > n && below(s, path, n);
}

static bool write_place(const struct build *c, const struct rl_step *path, uint32_t n, const struct json *schema);

static void write_key(const struct build *c, const char *key, bool *more)
{
	cs_buf_str(c->b, *more ? "," : "");
	*more = true;
	write_string(c->m, c->b, key, strlen(key));
	cs_buf_char(c->b, ':');
}

static const struct json *member_schema(const struct json *schema, const char *key)
{
	const struct json *named = json_get(json_get(schema, "properties"), key);

	return named ? named : schema_other(schema, false).schema;
}

/* Is there a place below under this name, among the first so many? */
static bool has_member(const struct build *c, const struct rl_step *path, uint32_t n, const char *key, uint32_t among)
{
	for (uint32_t i = 0; i < among; i++)
		if (inside(&c->spots[i], path, n) && c->spots[i].steps[n].key && !strcmp(c->spots[i].steps[n].key, key))
			return true;
	return false;
}

/* The places just below: first those that are looked at, then what the schema requires besides. */
static bool write_members(const struct build *c, const struct rl_step *path, uint32_t n, const struct json *schema)
{
	const struct json *required = json_get(schema, "required");
	bool more = false;

	cs_buf_char(c->b, '{');
	for (uint32_t i = 0; i < c->n; i++) {
		const struct spot *s = &c->spots[i];

		if (!inside(s, path, n) || !s->steps[n].key || has_member(c, path, n, s->steps[n].key, i))
			continue;
		write_key(c, s->steps[n].key, &more);
		if (!write_place(c, s->steps, n + 1, member_schema(schema, s->steps[n].key)))
			return false;
	}
	for (uint32_t i = 0; json_is(required, JSON_ARRAY) && i < required->n; i++) {
		const char *key = json_str(&required->items[i]);

		if (!key || has_member(c, path, n, key, c->n))
			continue;
		write_key(c, key, &more);
		write_default(c->b, json_get(json_get(schema, "properties"), key), 0);
	}
	cs_buf_char(c->b, '}');
	return true;
}

/* The highest index that is looked at; -1: none. */
static int64_t last_index(const struct build *c, const struct rl_step *path, uint32_t n)
{
	int64_t most = -1;

	for (uint32_t i = 0; i < c->n; i++)
		if (inside(&c->spots[i], path, n) && !c->spots[i].steps[n].key && c->spots[i].steps[n].index > most)
			most = c->spots[i].steps[n].index;
	return most;
}

static bool write_elements(const struct build *c, const struct rl_step *path, uint32_t n, const struct json *schema)
{
	int64_t most = last_index(c, path, n);

	if (most > 100)
		return false;
	cs_buf_char(c->b, '[');
	for (int64_t at = 0; at <= most; at++) {
		const struct spot *s = NULL;

		for (uint32_t i = 0; i < c->n; i++)
			if (inside(&c->spots[i], path, n) && !c->spots[i].steps[n].key && c->spots[i].steps[n].index == at)
				s = &c->spots[i];
		if (at)
			cs_buf_char(c->b, ',');
		if (!s)
			write_default(c->b, json_get(schema, "items"), 0);
		else if (!write_place(c, s->steps, n + 1, json_get(schema, "items")))
			return false;
	}
	cs_buf_char(c->b, ']');
	return true;
}

static bool write_place(const struct build *c, const struct rl_step *path, uint32_t n, const struct json *schema)
{
	const struct val *exact = NULL;
	const struct spot *inner = NULL;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct spot *s = &c->spots[i];

		exact = s->n == n && s->v && below(s, path, n) ? s->v : exact;
		inner = inside(s, path, n) ? s : inner;
	}
	if (inner)
		return inner->steps[n].key ? write_members(c, path, n, schema) : write_elements(c, path, n, schema);
	if (exact && type_of(c->m, exact) == T_OBJ && !known_thing(c->m, exact))
		return write_members(c, path, n, schema);
	if (exact)
		return write_val(c->m, c->b, exact);
	write_default(c->b, schema, 0);
	return true;
}

/* ---- the places that are there ---- */

/* What leads from the object to the entry that a demand is about. False: nobody can say what it is. */
static bool step_to(const struct build *c, const struct demand *d, struct rl_step *ret)
{
	const struct family *f = d->f;
	const struct word *w;

	*ret = (struct rl_step){ .key = NULL };
	if (f->kind == FAM_ELEMENT) { /* behind those that are there */
		ret->index = last_index(c, f->path, f->n) + 1;
		return true;
	}
	if (f->kind == FAM_VALUE) {
		ret->key = x(c->m->e, "value%u", c->n);
		return true;
	}
	w = string_of(c->m, d->what.s);
	ret->key = w && strlen(w->s) == w->len ? w->s : NULL;
	return ret->key != NULL;
}

static bool add_spot(struct build *c, const struct demand *d)
{
	const struct family *f = d->f;
	uint32_t n = f->n + 1 + f->n_rest;
	struct rl_step *path = cs_arena_get(c->m->arena, n, sizeof *path);

	if (!path || !step_to(c, d, &path[f->n]))
		return false;
	if (f->n)
		memcpy(path, f->path, f->n * sizeof *path);
	if (f->n_rest)
		memcpy(path + f->n + 1, f->rest, f->n_rest * sizeof *path);
	c->spots[c->n++] = (struct spot){ .steps = path, .n = n, .v = f->kind == FAM_AT ? &d->v : f->kind == FAM_ENTRY ? NULL : &d->what };
	return true;
}

/* One element is enough for two questions about the same. */
static bool have_element(const struct build *c, const struct demand *d)
{
	struct cs_buf a CS_BUF_AUTO = CS_BUF(1 << 20);

	if (d->f->kind != FAM_ELEMENT && d->f->kind != FAM_VALUE)
		return false;
	write_val(c->m, &a, &d->what);
	for (uint32_t i = 0; i < c->n; i++) {
		struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 20);
		const struct spot *s = &c->spots[i];

		if (s->n == d->f->n + 1 && s->v && below(s, d->f->path, d->f->n) && write_val(c->m, &b, s->v) && !strcmp(cs_buf_text(&a), cs_buf_text(&b)))
			return true;
	}
	return false;
}

static bool find_spots(struct build *c)
{
	struct enc *e = c->m->e;
	uint32_t most = e->n_slots + 1;

	for (const struct demand *d = e->demands; d; d = d->next)
		most++;
	c->spots = cs_arena_get(c->m->arena, most, sizeof *c->spots);
	if (!c->spots)
		return false;
	for (uint32_t i = 0; i < e->n_slots; i++)
		if (e->slots[i].kind == c->kind && model_true(c->m, e->slots[i].at[c->step].p))
			c->spots[c->n++] = (struct spot){ .steps = e->slots[i].steps, .n = e->slots[i].n, .v = &e->slots[i].at[c->step] };
	for (const struct demand *d = e->demands; d; d = d->next)
		if (d->f->in == c->kind && d->step == (int)c->step && counts(d, c->m->n_steps) && model_true(c->m, d->v.p) && !have_element(c, d) &&
		    !add_spot(c, d))
			return false;
	return true;
}

const struct json *model_place(struct model *m, enum slot_kind kind, uint32_t step, const struct json *schema)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(4 << 20);
	struct build c = { .m = m, .b = &b, .kind = kind, .step = step };
	bool done = find_spots(&c) && (kind == SLOT_ARG ? write_members(&c, NULL, 0, schema) : write_place(&c, NULL, 0, schema));

	return done ? parse(m->arena, &b) : NULL;
}

bool model_has(const struct model *m, enum slot_kind kind, uint32_t step)
{
	for (uint32_t i = 0; i < m->e->n_slots; i++)
		if (m->e->slots[i].kind == kind && model_true(m, m->e->slots[i].at[step].p))
			return true;
	return false;
}

uint64_t model_whole(const struct model *m, ex name)
{
	const struct sexp *v = value_of(m, name);

	return v && v->kind == SEXP_WORD ? strtoull(v->text, NULL, 10) : 0;
}

/* ---- reading ---- */

struct model *model_read(struct enc *e, struct solver *s, struct cs_arena *a, uint32_t n)
{
	struct model *m = cs_arena_new(a, struct model);
	struct cs_buf names CS_BUF_AUTO = CS_BUF(NAMES_MAX);
	const struct sexp *v;

	if (!m)
		return NULL;
	*m = (struct model){ .e = e, .arena = a, .n_steps = n };
	want_all(m, n);
	for (uint32_t i = 0; i < m->n; i++)
		cs_buf_fmt(&names, "%s\n", m->names[i].name);
	m->values = cs_arena_get(a, m->n + 1, sizeof *m->values);
	m->found = cs_arena_get(a, m->n + e->n_words + 1, sizeof *m->found);
	v = names.over || !m->values || !m->found ? NULL : solver_values(s, a, cs_buf_text(&names));
	if (!v)
		return NULL;
	v = v->kids;
	for (uint32_t i = 0; i < m->n; i++, v = v->next) {
		if (!v || !sexp_at(v, 1))
			return NULL;
		m->values[i] = sexp_at(v, 1);
	}
	for (uint32_t i = 0; i < e->n_words; i++) {
		const char *elem = element(m, x(e, "c%u", i));

		if (!elem)
			return NULL;
		add_found(m, elem, e->words[i].s, e->words[i].len);
	}
	return m;
}
