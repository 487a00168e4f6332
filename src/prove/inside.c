/* SPDX-License-Identifier: Apache-2.0 */
/* inside.c - what lies in an object or an array, where the key or the value is computed:
 * `T in keys(P)`, `T in values(P)`, `T in P`, `P[T].name`.
 *
 * Of every step it is a function of the key (the value): free, but the same for equal
 * ones.  Where the key is one of those that are places of their own (because a rule or a
 * schema names them) it is that place.  A "yes" is a demand: whoever writes the trace
 * puts the entry in (model.c).  Indexes that are computed have no encoding. */
#include "prove/internal.h"

#include <string.h>

enum { KNOWN_MAX = 64 }; /* names in one object, before it is taken for something without an encoding */

/* ---- families ---- */

static uint32_t fixed_steps(const struct rl_term *t)
{
	uint32_t n = 0;

	while (n < t->steps && !t->path[n].term)
		n++;
	return n;
}

static bool is_path(const struct rl_term *t)
{
	return t && (t->kind == RL_T_ARG || t->kind == RL_T_RESULT || t->kind == RL_T_LAST);
}

static enum slot_kind kind_of(const struct rl_term *t)
{
	return t->kind == RL_T_ARG ? SLOT_ARG : SLOT_RESULT;
}

/* False: it has a step that is computed. */
static bool name_family(const struct family *f, struct cs_buf *b)
{
	cs_buf_fmt(b, "%d %d ", (int)f->kind, (int)f->in);
	if (!path_text(f->path, f->n, b))
		return false;
	cs_buf_char(b, ' ');
	return path_text(f->rest, f->n_rest, b);
}

static struct family *family_find(const struct enc *e, const struct family *like)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(8192);

	if (!name_family(like, &b))
		return NULL;
	for (uint32_t i = 0; i < e->n_families; i++)
		if (!strcmp(e->families[i].text, cs_buf_text(&b)))
			return e->families[i].wide ? NULL : &e->families[i];
	return NULL;
}

static void family_add(struct enc *e, struct family f, const struct toolset *of)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(8192);
	struct family *known;

	if (!name_family(&f, &b))
		return;
	slot_add(e, f.in, f.path, f.n, of);
	known = family_find(e, &f);
	if (!known && !enc_grow(e, (void **)&e->families, e->n_families, &e->cap_families, sizeof f))
		return;
	if (!known) {
		f.text = x(e, "%s", cs_buf_text(&b));
		known = &e->families[e->n_families++];
		*known = f;
	}
	toolset_add(e, &known->of, of);
}

void inside_collect(struct enc *e, const struct rl_term *t, const struct toolset *of)
{
	uint32_t n = fixed_steps(t);
	struct family f = { .kind = FAM_AT, .in = kind_of(t), .path = t->path, .n = n };

	if (n == t->steps)
		return;
	f.rest = t->path + n + 1;
	f.n_rest = t->steps - n - 1;
	family_add(e, f, of);
	f = (struct family){ .kind = FAM_ENTRY, .in = f.in, .path = f.path, .n = n };
	family_add(e, f, of);
}

static struct family family_of_set(const struct rl_term *set)
{
	const struct rl_term *of = set->kind == RL_T_KEYS || set->kind == RL_T_VALUES ? set->a : set;

	return (struct family){ .kind = set->kind == RL_T_KEYS ? FAM_ENTRY : set->kind == RL_T_VALUES ? FAM_VALUE : FAM_ELEMENT, .in = kind_of(of),
				.path = of->path, .n = of->steps };
}

static const struct rl_term *path_of_set(const struct rl_term *set)
{
	const struct rl_term *of = set->kind == RL_T_KEYS || set->kind == RL_T_VALUES ? set->a : set;

	return is_path(of) ? of : NULL;
}

bool inside_is_set(const struct rl_term *set)
{
	return path_of_set(set) != NULL;
}

void inside_collect_set(struct enc *e, const struct rl_term *set, const struct toolset *of)
{
	family_add(e, family_of_set(set), of);
}

/* ---- the places of their own ---- */

static const struct rl_step *path_to(struct enc *e, const struct family *f, const struct rl_step *by, bool rest)
{
	uint32_t n = f->n + 1 + (rest ? f->n_rest : 0);
	struct rl_step *path = cs_arena_get(&e->arena, n, sizeof *path);

	if (!path)
		return NULL;
	if (f->n)
		memcpy(path, f->path, f->n * sizeof *path);
	path[f->n] = *by;
	if (rest && f->n_rest)
		memcpy(path + f->n + 1, f->rest, f->n_rest * sizeof *path);
	return path;
}

static void know(struct enc *e, struct family *f, const struct rl_step *by)
{
	struct rl_step *more;

	slot_add(e, f->in, path_to(e, f, by, false), f->n + 1, &f->of);
	if (f->n_rest)
		slot_add(e, f->in, path_to(e, f, by, true), f->n + 1 + f->n_rest, &f->of);
	for (uint32_t i = 0; i < f->n_known; i++)
		if (by->key ? !strcmp(f->known[i].key, by->key) : f->known[i].index == by->index)
			return;
	more = f->n_known < KNOWN_MAX ? cs_arena_get(&e->arena, f->n_known + 1, sizeof *more) : NULL;
	f->wide |= !more;
	if (!more)
		return;
	if (f->n_known)
		memcpy(more, f->known, f->n_known * sizeof *more);
	more[f->n_known++] = *by;
	f->known = more;
}

/* What stands before an element is in the array, too. */
static void know_up_to(struct enc *e, struct family *f, const struct rl_step *by)
{
	f->wide |= by->index >= KNOWN_MAX;
	for (int64_t i = 0; !by->key && i < by->index && !f->wide; i++)
		know(e, f, &(struct rl_step){ .index = i });
	know(e, f, by);
}

static const struct json *schema_of(const struct enc *e, const struct family *f, uint32_t tool)
{
	return f->in == SLOT_ARG ? e->tools[tool].input : e->tools[tool].output;
}

static void know_named(struct enc *e, struct family *f)
{
	for (uint32_t t = 0; t < e->n_tools && f->kind != FAM_ELEMENT && !f->wide; t++) {
		const struct json *names = !toolset_has(e, &f->of, t) ? NULL : json_get(schema_at(schema_of(e, f, t), f->path, f->n).schema, "properties");

		for (uint32_t i = 0; json_is(names, JSON_OBJECT) && i < names->n && !f->wide; i++)
			know(e, f, &(struct rl_step){ .key = names->members[i].key });
	}
	for (uint32_t i = 0; i < e->n_slots && !f->wide; i++) {
		const struct slot *s = &e->slots[i];
		struct cs_buf a CS_BUF_AUTO = CS_BUF(4096), b CS_BUF_AUTO = CS_BUF(4096);

		if (s->kind != f->in || s->n <= f->n || !s->steps[f->n].key != (f->kind == FAM_ELEMENT))
			continue;
		if (path_text(s->steps, f->n, &a) && path_text(f->path, f->n, &b) && !strcmp(cs_buf_text(&a), cs_buf_text(&b)))
			know_up_to(e, f, &s->steps[f->n]);
	}
}

/* What a tool's schema says of entries that it does not name; `required` if they are there at all. */
static struct place other_place(const struct enc *e, const struct family *f, uint32_t tool)
{
	struct place p = schema_at(schema_of(e, f, tool), f->path, f->n), at;
	bool whole, sure;

	p.never |= !toolset_has(e, &f->of, tool);
	if (p.never)
		return p;
	p = schema_other(p.schema, f->kind == FAM_ELEMENT);
	p.required = true;
	if (p.never || !f->n_rest)
		return p;
	sure = p.schema && schema_types(p.schema, &whole) == T_OBJ;
	at = schema_at(p.schema, f->rest, f->n_rest);
	at.required &= sure;
	return at;
}

static bool of_failures(const struct enc *e, const struct family *f)
{
	return f->in == SLOT_RESULT && e->fail_results;
}

static void find_types(struct enc *e, struct family *f)
{
	f->mask = of_failures(e, f) ? T_ALL : 0;
	f->whole = !f->mask;
	for (uint32_t t = 0; t < e->n_tools; t++) {
		struct place p = other_place(e, f, t);
		bool whole = false;
		unsigned m = p.never ? 0 : p.schema ? schema_types(p.schema, &whole) : T_ALL;

		f->mask |= m;
		f->whole &= whole || !(m & T_NUM);
	}
}

static struct family *same_object(const struct enc *e, const struct family *f, enum family_kind kind)
{
	return family_find(e, &(struct family){ .kind = kind, .in = f->in, .path = f->path, .n = f->n });
}

void inside_settle(struct enc *e)
{
	uint32_t before, n = e->n_families;

	for (uint32_t i = 0; i < n; i++) { /* an entry has a value, and that is one of the values */
		struct family f = e->families[i];

		if (f.kind == FAM_VALUE && same_object(e, &f, FAM_ENTRY))
			family_add(e, (struct family){ .kind = FAM_AT, .in = f.in, .path = f.path, .n = f.n }, &f.of);
	}
	do { /* what is known of one may be a place in another */
		before = e->n_slots;
		for (uint32_t i = 0; i < e->n_families; i++)
			know_named(e, &e->families[i]);
	} while (e->n_slots != before);
	for (uint32_t i = 0; i < e->n_families; i++)
		find_types(e, &e->families[i]);
}

/* ---- functions ---- */

static ex apply(struct enc *e, const struct family *f, int step, char part, ex to)
{
	return x(e, "(F%u_%d%c %s)", (unsigned)(f - e->families), step, part, to);
}

static void declare_one(struct enc *e, const struct family *f, int step, char part, const char *from, const char *to)
{
	cs_buf_fmt(e->out, "(declare-fun F%u_%d%c (%s) %s)\n", (unsigned)(f - e->families), step, part, from, to);
}

static void declare(struct enc *e, struct family *f, int step)
{
	if (f->declared >> step & 1)
		return;
	f->declared |= 1u << step;
	if (f->kind == FAM_ENTRY) {
		declare_one(e, f, step, 'p', "S", "Bool");
	} else if (f->kind == FAM_AT) {
		declare_one(e, f, step, 'p', "S", "Bool");
		declare_one(e, f, step, 'g', "S", "Int");
		declare_one(e, f, step, 's', "S", "S");
		declare_one(e, f, step, 'n', "S", f->whole ? "Int" : "Real");
		declare_one(e, f, step, 'b', "S", "Bool");
		declare_one(e, f, step, 'o', "S", "O");
	} else {
		declare_one(e, f, step, 'z', "Int", "Bool"); /* null, of 0 */
		declare_one(e, f, step, 's', "S", "Bool");
		declare_one(e, f, step, 'n', "Real", "Bool");
		declare_one(e, f, step, 'b', "Bool", "Bool");
		declare_one(e, f, step, 'o', "O", "Bool");
	}
}

/* Some tool at whose place there may be entries of any name. */
static ex may_have_others(struct enc *e, const struct family *f, int step)
{
	struct family plain = *f;
	ex any = of_failures(e, f) ? e->steps[step].fail : "false";

	plain.n_rest = 0;
	for (uint32_t t = 0; t < e->n_tools; t++)
		if (!other_place(e, &plain, t).never)
			any = x_or(e, any, slot_happens(e, f->in, (uint32_t)step, t));
	return x_name(e, "Bool", any);
}

static struct val base_of(const struct enc *e, const struct family *f, int step)
{
	const struct slot *s = slot_find(e, f->in, f->path, f->n);

	return s ? s->at[step] : val_absent();
}

static struct val known_at(struct enc *e, const struct family *f, uint32_t i, int step, bool rest)
{
	const struct rl_step *path = path_to(e, f, &f->known[i], rest);
	const struct slot *s = path ? slot_find(e, f->in, path, f->n + 1 + (rest ? f->n_rest : 0)) : NULL;

	return s ? s->at[step] : val_absent();
}

static ex named(struct enc *e, const struct family *f, uint32_t i, ex key)
{
	ex word = word_of(e, f->known[i].key, strlen(f->known[i].key));

	return !strcmp(word, key) ? "true" : x(e, "(= %s %s)", key, word);
}

static const struct demand *demand(const struct scope *s, const struct family *f, int step, const struct val *what, const struct val *v)
{
	struct demand *d = cs_arena_new(&s->e->arena, struct demand);

	if (!d)
		return NULL;
	*d = (struct demand){ .next = s->e->demands, .f = f, .step = step, .asker = s->step, .end = s->end, .what = *what, .v = *v };
	s->e->demands = d;
	return d;
}

/* ---- entries ---- */

/* Is there an entry under a key that is no place of its own? */
static ex other_entry(const struct scope *s, struct family *f, const struct val *key, int step)
{
	struct enc *e = s->e;
	struct val base = base_of(e, f, step), v = { .mask = T_BOOL };
	ex all = x_and(e, base.p, val_is(e, &base, T_OBJ));

	if (x_false(all))
		return all;
	declare(e, f, step);
	all = x_and(e, all, x_and(e, key->p, val_is(e, key, T_STR)));
	all = x_and(e, all, x_and(e, may_have_others(e, f, step), apply(e, f, step, 'p', key->s)));
	for (uint32_t i = 0; i < f->n_known; i++)
		all = x_and(e, all, x_not(e, named(e, f, i, key->s)));
	v.p = x_name(e, "Bool", all);
	if (!x_false(v.p))
		demand(s, f, step, key, &v);
	return v.p;
}

static struct val applied(struct enc *e, const struct family *f, int step, ex key)
{
	struct val v = { .mask = f->mask, .whole = f->whole, .p = apply(e, f, step, 'p', key) };
	ex one = "false";

	if (f->mask & (f->mask - 1)) {
		v.tag = apply(e, f, step, 'g', key);
		for (unsigned bit = T_NULL; bit <= T_OBJ; bit <<= 1)
			one = f->mask & bit ? x_or(e, one, x(e, "(= %s %u)", v.tag, bit)) : one;
		x_assert(e, one);
	}
	v.s = f->mask & T_STR ? apply(e, f, step, 's', key) : NULL;
	v.n = f->mask & T_NUM ? apply(e, f, step, 'n', key) : NULL;
	v.b = f->mask & T_BOOL ? apply(e, f, step, 'b', key) : NULL;
	v.o = f->mask & (T_ARR | T_OBJ) ? apply(e, f, step, 'o', key) : NULL;
	if (v.s)
		words_constrain(e, v.s);
	return v;
}

/* The function of the value, by its type. */
static ex chosen(struct enc *e, const struct family *f, const struct val *v, int step)
{
	ex any = "false";

	if (v->mask & T_NULL)
		any = x_or(e, any, x_and(e, val_is(e, v, T_NULL), apply(e, f, step, 'z', "0")));
	if (v->s)
		any = x_or(e, any, x_and(e, val_is(e, v, T_STR), apply(e, f, step, 's', v->s)));
	if (v->n)
		any = x_or(e, any, x_and(e, val_is(e, v, T_NUM), apply(e, f, step, 'n', v->whole ? x(e, "(to_real %s)", v->n) : v->n)));
	if (v->b)
		any = x_or(e, any, x_and(e, val_is(e, v, T_BOOL), apply(e, f, step, 'b', v->b)));
	if (v->o)
		any = x_or(e, any, x_and(e, x_or(e, val_is(e, v, T_ARR), val_is(e, v, T_OBJ)), apply(e, f, step, 'o', v->o)));
	return any;
}

/* The value of an entry is one of the object's values: of the newest demand with those before. */
static void oppose(struct enc *e, const struct demand *d)
{
	const struct family *other = !d || d->f->n_rest || d->f->kind == FAM_ELEMENT ? NULL : same_object(e, d->f, d->f->kind == FAM_VALUE ? FAM_AT : FAM_VALUE);

	for (const struct demand *o = other ? d->next : NULL; o; o = o->next) {
		const struct demand *at = o->f == other && o->step == d->step ? d->f->kind == FAM_AT ? d : o : NULL, *value = at == d ? o : d;

		if (at)
			x_assert(e, x(e, "(=> %s %s)", x_and(e, at->v.p, x_and(e, value->what.p, val_equal(e, &at->v, &value->what))), chosen(e, value->f, &value->what, d->step)));
	}
}

static struct val other_value(const struct scope *s, struct family *f, const struct val *key, int step);

/* What lies below something in the entry is there only if that is. */
static void tie(const struct scope *s, const struct family *f, const struct val *key, int step, ex there)
{
	struct enc *e = s->e;

	for (uint32_t i = 0; i < e->n_families; i++) {
		struct family *out = &e->families[i];
		struct family like = *f;
		struct val v;

		like.n_rest = out->n_rest;
		if (out->kind != FAM_AT || out->n_rest >= f->n_rest || family_find(e, &like) != out)
			continue;
		v = other_value(s, out, key, step);
		x_assert(e, x(e, "(=> %s %s)", there, x_and(e, v.p, val_is(e, &v, f->rest[out->n_rest].key ? T_OBJ : T_ARR))));
	}
}

static struct val other_value(const struct scope *s, struct family *f, const struct val *key, int step)
{
	struct enc *e = s->e;
	struct family *entry = same_object(e, f, FAM_ENTRY);
	ex has = entry && f->mask ? other_entry(s, entry, key, step) : "false", there;
	struct val v;

	if (x_false(has))
		return val_absent();
	declare(e, f, step);
	v = applied(e, f, step, key->s);
	there = of_failures(e, f) ? x_and(e, e->steps[step].fail, v.p) : "false";
	for (uint32_t t = 0; t < e->n_tools; t++) {
		struct place p = other_place(e, f, t);
		ex here = slot_happens(e, f->in, (uint32_t)step, t), fact = p.schema ? schema_fits(e, &v, p.schema) : "true";

		if (p.never)
			continue;
		there = x_or(e, there, p.required ? here : x_and(e, here, v.p));
		if (!x_true(fact))
			x_assert(e, x(e, "(=> (and %s %s) %s)", has, here, fact));
	}
	v.p = x_name(e, "Bool", x_and(e, has, there));
	oppose(e, demand(s, f, step, key, &v));
	tie(s, f, key, step, v.p);
	return v;
}

static struct val value_at(const struct scope *s, struct family *f, const struct val *key, int step)
{
	struct enc *e = s->e;
	struct val v = other_value(s, f, key, step);

	for (uint32_t i = 0; i < f->n_known; i++) {
		struct val known = known_at(e, f, i, step, /* rest= */ true);

		v = val_ite(e, named(e, f, i, key->s), &known, &v);
	}
	v.p = x_and(e, v.p, x_and(e, key->p, val_is(e, key, T_STR)));
	return val_named(e, &v);
}

struct val inside_value(const struct scope *s, enum slot_kind kind, const struct rl_term *t, int step)
{
	uint32_t n = fixed_steps(t);
	struct family like = { .kind = FAM_AT, .in = kind, .path = t->path, .n = n, .rest = t->path + n + 1, .n_rest = t->steps - n - 1 }, *f;
	const struct slot *slot = n == t->steps ? slot_find(s->e, kind, t->path, n) : NULL;
	struct enc *e = s->e;
	struct val key, v, base;

	if (n == t->steps)
		return slot ? slot->at[step] : asked_term(s, t);
	f = family_find(e, &like);
	if (!f)
		return asked_term(s, t);
	key = term(s, t->path[n].term);
	v = key.s ? value_at(s, f, &key, step) : val_absent();
	base = base_of(e, f, step);
	if (key.mask & T_NUM && base.mask & T_ARR) {
		struct val index = asked_term(s, t);

		index.p = x_and(e, x_and(e, index.p, key.p), x_and(e, base.p, val_is(e, &base, T_ARR)));
		v = val_ite(e, val_is(e, &key, T_NUM), &index, &v);
		v = val_named(e, &v);
	}
	return v;
}

/* ---- membership ---- */

static struct val has_entry(const struct scope *s, struct family *f, const struct val *key, int step)
{
	struct enc *e = s->e;
	struct val base = base_of(e, f, step);
	struct val r = { .mask = T_BOOL, .p = x_and(e, key->p, x_and(e, base.p, val_is(e, &base, T_OBJ))) };
	struct family *value = same_object(e, f, FAM_AT);
	ex any = "false";

	if (key->s)
		any = other_entry(s, f, key, step);
	if (key->s && value)
		(void)other_value(s, value, key, step);
	for (uint32_t i = 0; key->s && i < f->n_known; i++)
		any = x_or(e, any, x_and(e, named(e, f, i, key->s), known_at(e, f, i, step, false).p));
	r.b = x_name(e, "Bool", x_and(e, val_is(e, key, T_STR), any));
	r.p = x_name(e, "Bool", r.p);
	return r;
}

/* An element that is no place of its own: fits the schema, and in an array comes behind those that are. */
static ex other_element(const struct scope *s, struct family *f, const struct val *v, int step, ex known)
{
	struct enc *e = s->e;
	struct val extra = { .mask = T_BOOL };
	ex all, fits = of_failures(e, f) ? e->steps[step].fail : "false";

	declare(e, f, step);
	all = x_and(e, known, chosen(e, f, v, step));
	for (uint32_t t = 0; t < e->n_tools; t++) {
		struct place p = other_place(e, f, t);
		ex here = slot_happens(e, f->in, (uint32_t)step, t);

		if (!p.never)
			fits = x_or(e, fits, x_and(e, here, p.schema ? schema_fits(e, v, p.schema) : "true"));
	}
	all = x_and(e, all, x_name(e, "Bool", fits));
	for (uint32_t i = 0; f->kind == FAM_ELEMENT && i < f->n_known; i++)
		all = x_and(e, all, known_at(e, f, i, step, false).p);
	extra.p = x_name(e, "Bool", all);
	oppose(e, demand(s, f, step, v, &extra));
	return extra.p;
}

static struct val has_element(const struct scope *s, struct family *f, const struct val *v, int step)
{
	unsigned type = f->kind == FAM_VALUE ? T_OBJ : T_ARR;
	struct enc *e = s->e;
	struct val base = base_of(e, f, step), r = { .mask = T_BOOL };
	ex any;

	r.p = x_name(e, "Bool", x_and(e, v->p, x_and(e, base.p, val_is(e, &base, type))));
	if (x_false(r.p))
		return val_absent();
	any = other_element(s, f, v, step, r.p);
	for (uint32_t i = 0; i < f->n_known; i++) {
		struct val known = known_at(e, f, i, step, false);

		any = x_or(e, any, x_and(e, known.p, val_equal(e, v, &known)));
	}
	r.b = x_name(e, "Bool", any);
	return r;
}

struct question {
	struct family *f;
	const struct val *v;
};

static struct val has_at(const struct scope *s, const struct rl_term *t, int step, const void *arg)
{
	const struct question *q = arg;

	(void)t;
	return q->f->kind == FAM_ENTRY ? has_entry(s, q->f, q->v, step) : has_element(s, q->f, q->v, step);
}

bool inside_has(const struct scope *s, const struct rl_term *set, const struct val *v, struct val *ret)
{
	const struct rl_term *of = path_of_set(set);
	struct family like = of ? family_of_set(set) : (struct family){ .n = 0 };
	struct question q = { .f = of ? family_find(s->e, &like) : NULL, .v = v };

	if (!q.f)
		return false;
	if (of->kind == RL_T_LAST)
		*ret = past_last_by(s, of, has_at, &q);
	else
		*ret = s->end ? val_absent() : has_at(s, of, s->step, &q);
	return true;
}
