/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c - the places in arguments and results that rules look at, and of which
 * types they are by the tools' schemas.
 *
 * Calls are taken to fit their schema and to have no argument that it does not
 * name; results likewise.  A schema that is not understood ($ref, anyOf, ...)
 * allows everything. */
#include "prove/internal.h"

#include <string.h>

bool path_text(const struct rl_step *steps, uint32_t n, struct cs_buf *b)
{
	for (uint32_t i = 0; i < n; i++) {
		if (steps[i].term)
			return false;
		if (steps[i].key)
			cs_buf_fmt(b, ".%zu:%s", strlen(steps[i].key), steps[i].key);
		else
			cs_buf_fmt(b, "[%lld]", (long long)steps[i].index);
	}
	return !b->over;
}

static struct slot *seek(const struct enc *e, enum slot_kind kind, const char *path)
{
	for (uint32_t i = 0; i < e->n_slots; i++)
		if (e->slots[i].kind == kind && !strcmp(e->slots[i].path, path))
			return &e->slots[i];
	return NULL;
}

const struct slot *slot_find(const struct enc *e, enum slot_kind kind, const struct rl_step *steps, uint32_t n)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(4096);

	return path_text(steps, n, &b) ? seek(e, kind, cs_buf_text(&b)) : NULL;
}

/* ---- sets of tools ---- */

void toolset_add(struct enc *e, struct toolset *to, const struct toolset *more)
{
	if (more->n > to->n) {
		bool *in = cs_arena_get(&e->arena, more->n, sizeof *in);

		if (!in)
			return;
		if (to->n)
			memcpy(in, to->in, to->n * sizeof *in);
		*to = (struct toolset){ .in = in, .n = more->n };
	}
	for (uint32_t i = 0; i < more->n; i++)
		to->in[i] |= more->in[i];
}

bool toolset_has(const struct enc *e, const struct toolset *s, uint32_t tool)
{
	return e->every || (tool < s->n && s->in[tool]);
}

static struct toolset toolset_of(struct enc *e, const struct policy *p, const struct rl_call *c)
{
	struct toolset s = { .in = cs_arena_get(&e->arena, e->n_tools + 1, sizeof *s.in), .n = 0 };

	if (!s.in)
		return s;
	s.n = e->n_tools;
	for (uint32_t i = 0; c && i < c->tools.n; i++)
		s.in[p->tool[c->tools.ids[i]]] = true;
	return s;
}

/* ---- places ---- */

static struct slot *new_slot(struct enc *e, enum slot_kind kind, const char *path)
{
	if (!enc_grow(e, (void **)&e->slots, e->n_slots, &e->cap_slots, sizeof *e->slots))
		return NULL;
	e->slots[e->n_slots] = (struct slot){ .kind = kind, .path = x(e, "%s", path) };
	return &e->slots[e->n_slots++];
}

void slot_add(struct enc *e, enum slot_kind kind, const struct rl_step *steps, uint32_t n, const struct toolset *of)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(4096);
	struct slot *s;

	if ((n && !steps) || !path_text(steps, n, &b))
		return;
	s = seek(e, kind, cs_buf_text(&b));
	if (!s) {
		s = new_slot(e, kind, cs_buf_text(&b));
		if (!s)
			return;
		s->steps = steps;
		s->n = n;
	}
	if (of)
		toolset_add(e, &s->of, of);
}

static bool lies_in(const struct slot *in, const struct slot *out)
{
	return in->kind == out->kind && out->n < in->n && !strncmp(in->path, out->path, strlen(out->path));
}

/* Where something in it is looked at, it is too. */
void slots_settle(struct enc *e)
{
	for (uint32_t i = 0; i < e->n_slots; i++)
		for (uint32_t k = 0; k < e->n_slots; k++)
			if (lies_in(&e->slots[i], &e->slots[k]))
				toolset_add(e, &e->slots[k].of, &e->slots[i].of);
}

/* ---- collecting ---- */

struct reader {
	struct enc *e;
	const struct policy *p;
	struct toolset of; /* the call whose arguments or result are meant */
};

static void collect_formula(const struct reader *r, const struct rl_formula *f);

static void collect_call(const struct reader *r, const struct rl_call *c)
{
	struct toolset of = toolset_of(r->e, r->p, c);

	for (uint32_t i = 0; c && i < c->n_args; i++) {
		slot_add(r->e, SLOT_ARG, c->args[i].path, c->args[i].steps, &of);
		if (c->args[i].kind == RL_ARG_PATTERN)
			pred_of(r->e, (struct pred){ .pattern = c->args[i].pattern });
	}
}

/* last(CALL) and sum(CALL, ARG) speak of other calls than the present one. */
static struct toolset meant(const struct reader *r, const struct rl_term *t)
{
	return t->kind == RL_T_LAST || t->kind == RL_T_SUM ? toolset_of(r->e, r->p, t->call) : r->of;
}

static void collect_path(const struct reader *r, const struct rl_term *t)
{
	struct toolset of = meant(r, t);

	switch (t->kind) {
	case RL_T_ARG: case RL_T_SUM: case RL_T_FROM: case RL_T_SHELL: case RL_T_EFFECT_OF:
		slot_add(r->e, SLOT_ARG, t->path, t->steps, &of);
		break;
	case RL_T_RESULT: case RL_T_LAST:
		slot_add(r->e, SLOT_RESULT, t->path, t->steps, &of);
		break;
	default:
		return;
	}
	if (t->kind == RL_T_ARG || t->kind == RL_T_RESULT || t->kind == RL_T_LAST)
		inside_collect(r->e, t, &of);
}

static void collect_term(const struct reader *r, const struct rl_term *t)
{
	struct reader other = *r;

	if (!t)
		return;
	collect_path(r, t);
	r->e->timed |= t->within_ms > 0;
	collect_call(r, t->call);
	other.of = meant(r, t);
	collect_term(&other, t->a);
	collect_term(r, t->b);
	collect_formula(r, t->past);
	for (uint32_t i = 0; i < t->steps; i++)
		collect_term(r, t->path[i].term);
}

static void collect_set(const struct reader *r, const struct rl_term *set)
{
	struct toolset of;

	if (!inside_is_set(set))
		return;
	of = meant(r, set->kind == RL_T_KEYS || set->kind == RL_T_VALUES ? set->a : set);
	inside_collect_set(r->e, set, &of);
}

static const char *const_text(const struct rl_term *t)
{
	return t && t->kind == RL_T_CONST ? json_str(t->value) : NULL;
}

static void add_class(struct enc *e, const char *name)
{
	for (uint32_t i = 0; i < e->n_classes; i++)
		if (!strcmp(e->classes[i], name))
			return;
	if (e->n_classes < sizeof e->classes / sizeof *e->classes)
		e->classes[e->n_classes++] = name;
}

/* The names that a provenance is compared with. */
static void collect_classes(struct enc *e, const struct rl_term *from, const struct rl_term *with)
{
	const char *name;

	if (!from || !with || from->kind != RL_T_FROM)
		return;
	name = const_text(with);
	if (name)
		add_class(e, name);
	if (with->kind != RL_T_SET)
		return;
	for (uint32_t i = 0; i < with->value->n; i++)
		if (json_str(&with->value->items[i]))
			add_class(e, json_str(&with->value->items[i]));
}

static void collect_formula(const struct reader *r, const struct rl_formula *f)
{
	struct enc *e = r->e;
	struct reader event = *r;

	if (!f)
		return;
	collect_formula(r, f->a);
	collect_formula(r, f->b);
	collect_term(r, f->l);
	collect_term(r, f->r);
	collect_call(r, f->call);
	if (f->where) {
		event.of = toolset_of(e, r->p, f->call);
		collect_formula(&event, f->where);
	}
	e->fail_results |= f->op == RL_EVENT && f->event == RL_EV_FAIL && f->where;
	for (uint32_t i = 0; i < f->n_seq; i++)
		collect_formula(r, f->seq[i]);
	if (f->op == RL_MATCHES && f->l->kind != RL_T_TOOL)
		pred_of(e, (struct pred){ .pattern = f->pattern });
	if (f->op == RL_CONTAINS && const_text(f->r))
		pred_of(e, pred_part(e, const_text(f->r)));
	if ((f->op == RL_UNDER || f->op == RL_OUTSIDE) && const_text(f->r) && const_text(f->r)[0] == '/') {
		pred_of(e, (struct pred){ .under = const_text(f->r) });
		pred_of(e, pred_rooted(e));
	}
	if ((f->op == RL_UNDER || f->op == RL_OUTSIDE) && const_text(f->r) && pred_is_plain_path(const_text(f->r))) {
		pred_of(e, pred_relative(e));
		pred_of(e, pred_detour(e));
		if (strcmp(const_text(f->r), ".") != 0)
			pred_of(e, pred_below(e, const_text(f->r)));
	}
	if (f->op == RL_IN)
		collect_set(r, f->r);
	if (f->op == RL_CONTAINS)
		collect_set(r, f->l);
	collect_classes(e, f->l, f->r);
	collect_classes(e, f->r, f->l);
}

void collect(struct enc *e, const struct policy *p)
{
	const struct rules *rules = p->r;
	struct reader r = { .e = e, .p = p };

	for (uint32_t i = 0; i < rules->n_rules; i++) {
		r.of = toolset_of(e, p, rules->rules[i].call);
		collect_call(&r, rules->rules[i].call);
		collect_formula(&r, rules->rules[i].where);
		collect_formula(&r, rules->rules[i].unless);
	}
	r.of = (struct toolset){ .n = 0 };
	for (uint32_t i = 0; i < rules->n_asserts; i++)
		collect_formula(&r, rules->asserts[i].past);
}

/* ---- schemas ---- */

static bool understood(const struct json *schema)
{
	static const char *const no[] = { "$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if" };

	if (!json_is(schema, JSON_OBJECT))
		return false;
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		if (json_get(schema, no[i]))
			return false;
	return true;
}

static bool lists(const struct json *array, const char *s)
{
	for (uint32_t i = 0; json_is(array, JSON_ARRAY) && i < array->n; i++)
		if (json_str(&array->items[i]) && !strcmp(json_str(&array->items[i]), s))
			return true;
	return false;
}

struct place schema_other(const struct json *schema, bool array)
{
	const struct json *more = json_get(schema, "additionalProperties");

	if (!understood(schema))
		return (struct place){ .schema = NULL };
	if (array)
		return (struct place){ .schema = json_get(schema, "items") };
	if (json_is(more, JSON_OBJECT))
		return (struct place){ .schema = more };
	return (struct place){ .never = json_is(more, JSON_BOOL) ? !more->b : json_get(schema, "properties") != NULL };
}

static struct place step_into(const struct json *schema, const struct rl_step *s, bool required)
{
	const struct json *found = s->key && understood(schema) ? json_get(json_get(schema, "properties"), s->key) : NULL;

	if (!found)
		return schema_other(schema, !s->key);
	return (struct place){ .schema = found, .required = required && lists(json_get(schema, "required"), s->key) };
}

struct place schema_at(const struct json *schema, const struct rl_step *steps, uint32_t n)
{
	struct place p = { .schema = schema, .required = schema != NULL };

	for (uint32_t i = 0; i < n && !p.never; i++) {
		bool whole;

		if (schema_types(p.schema, &whole) != T_OBJ && i > 0)
			p.required = false;
		p = step_into(p.schema, &steps[i], p.required);
	}
	return p;
}

static unsigned type_bit(const char *name, bool *ret_whole)
{
	static const struct { const char *name; unsigned bit; } types[] = {
		{ "null", T_NULL }, { "boolean", T_BOOL }, { "number", T_NUM }, { "integer", T_NUM },
		{ "string", T_STR }, { "array", T_ARR }, { "object", T_OBJ },
	};

	for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
		if (!strcmp(types[i].name, name)) {
			*ret_whole |= !strcmp(name, "integer");
			return types[i].bit;
		}
	return T_ALL;
}

static unsigned bit_of(const struct json *v)
{
	static const unsigned bits[] = { T_NULL, T_BOOL, T_NUM, T_STR, T_ARR, T_OBJ };

	return bits[v->type];
}

unsigned schema_types(const struct json *schema, bool *ret_whole)
{
	const struct json *type = json_get(schema, "type"), *list = json_get(schema, "enum"), *only = json_get(schema, "const");
	unsigned mask = 0;

	*ret_whole = false;
	if (!understood(schema))
		return T_ALL;
	if (json_is(type, JSON_STRING))
		return type_bit(json_str(type), ret_whole);
	if (json_is(type, JSON_ARRAY)) {
		bool number = false;

		for (uint32_t i = 0; i < type->n; i++) {
			mask |= type_bit(json_str(&type->items[i]), ret_whole);
			number |= json_str(&type->items[i]) && !strcmp(json_str(&type->items[i]), "number");
		}
		*ret_whole &= !number;
		return mask;
	}
	for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->n; i++)
		mask |= bit_of(&list->items[i]);
	if (only)
		mask |= bit_of(only);
	return mask ? mask : T_ALL;
}

/* ---- variables for a step ---- */

static struct place place_of(const struct enc *e, const struct slot *s, uint32_t tool)
{
	if (!toolset_has(e, &s->of, tool))
		return (struct place){ .never = true };
	return schema_at(s->kind == SLOT_ARG ? e->tools[tool].input : e->tools[tool].output, s->steps, s->n);
}

static ex one_of(struct enc *e, const struct val *v, const struct json *list)
{
	ex any = "false";

	for (uint32_t i = 0; i < list->n; i++) {
		struct val c = val_const(e, &list->items[i]);

		any = x_or(e, any, val_equal(e, v, &c));
	}
	return any;
}

static ex bounded(struct enc *e, const struct val *v, const char *op, const struct json *bound)
{
	struct val c;

	if (!json_is(bound, JSON_NUMBER) || !v->n)
		return "true";
	c = val_const(e, bound);
	return x_or(e, x_not(e, val_is(e, v, T_NUM)), val_compare(e, op, v, &c));
}

ex schema_fits(struct enc *e, const struct val *v, const struct json *schema)
{
	const struct json *list = json_get(schema, "enum"), *only = json_get(schema, "const");
	bool whole;
	unsigned mask = schema_types(schema, &whole);
	ex type = "false", all;

	if (!understood(schema))
		return "true";
	for (unsigned bit = T_NULL; bit <= T_OBJ; bit <<= 1)
		if (mask & bit)
			type = x_or(e, type, val_is(e, v, bit));
	all = (mask & v->mask) == v->mask ? "true" : type;
	if (json_is(list, JSON_ARRAY))
		all = x_and(e, all, one_of(e, v, list));
	if (only) {
		struct val c = val_const(e, only);

		all = x_and(e, all, val_equal(e, v, &c));
	}
	if (whole && v->n && !v->whole)
		all = x_and(e, all, x_or(e, x_not(e, val_is(e, v, T_NUM)), x(e, "(is_int %s)", v->n)));
	all = x_and(e, all, bounded(e, v, ">=", json_get(schema, "minimum")));
	all = x_and(e, all, bounded(e, v, "<=", json_get(schema, "maximum")));
	all = x_and(e, all, bounded(e, v, ">", json_get(schema, "exclusiveMinimum")));
	return x_and(e, all, bounded(e, v, "<", json_get(schema, "exclusiveMaximum")));
}

/* The union over all tools: which types, and whether a number is whole everywhere. */
static unsigned types_of(const struct enc *e, const struct slot *s, bool *ret_whole)
{
	unsigned mask = s->kind == SLOT_RESULT && e->fail_results ? T_ALL : 0;

	*ret_whole = !mask;
	for (uint32_t t = 0; t < e->n_tools; t++) {
		struct place p = place_of(e, s, t);
		bool whole = false;
		unsigned m = p.never ? 0 : p.schema ? schema_types(p.schema, &whole) : T_ALL;

		mask |= m;
		*ret_whole &= whole || !(m & T_NUM);
	}
	return mask;
}

ex slot_happens(struct enc *e, enum slot_kind kind, uint32_t step, uint32_t tool)
{
	const struct step *at = &e->steps[step];

	return kind == SLOT_ARG ? at->tool[tool] : x_and(e, at->tool[tool], at->ok);
}

static void declare(struct enc *e, struct slot *s, uint32_t step)
{
	bool whole;
	unsigned mask = types_of(e, s, &whole);
	struct val v = val_free(e, mask, whole, /* always= */ true);
	ex there = "false", maybe = NULL;

	for (uint32_t t = 0; mask && t < e->n_tools; t++) {
		struct place p = place_of(e, s, t);
		ex here = slot_happens(e, s->kind, step, t);

		if (p.never)
			continue;
		if (!p.required && !maybe)
			maybe = x_fresh(e, "Bool", "p");
		there = x_or(e, there, p.required ? here : x_and(e, here, maybe));
		if (p.schema) {
			ex fact = schema_fits(e, &v, p.schema);

			if (!x_true(fact))
				x_assert(e, x(e, "(=> %s %s)", here, fact));
		}
	}
	if (s->kind == SLOT_RESULT && e->fail_results)
		there = x_or(e, there, x_and(e, e->steps[step].fail, maybe ? maybe : x_fresh(e, "Bool", "p")));
	v.p = mask ? x_name(e, "Bool", there) : "false";
	s->at[step] = v;
}

/* Neighbours in one array: the second is there only if the first is. */
static bool later_element(const struct slot *a, const struct slot *b)
{
	size_t stem;

	if (a->kind != b->kind || a->n != b->n || !a->n || a->steps[a->n - 1].key || b->steps[b->n - 1].key)
		return false;
	stem = (size_t)(strrchr(a->path, '[') - a->path);
	return a->steps[a->n - 1].index > b->steps[b->n - 1].index && !strncmp(a->path, b->path, stem + 1);
}

/* What lies in something is there only if that is an object, or an array. */
static void tie(struct enc *e, uint32_t step)
{
	for (uint32_t i = 0; i < e->n_slots; i++)
		for (uint32_t k = 0; k < e->n_slots; k++) {
			const struct slot *in = &e->slots[i], *out = &e->slots[k];
			const struct val *a = &in->at[step], *b = &out->at[step];

			if (later_element(in, out))
				x_assert(e, x(e, "(=> %s %s)", a->p, b->p));
			if (!lies_in(in, out))
				continue;
			x_assert(e, x(e, "(=> %s %s)", a->p, x_and(e, b->p, val_is(e, b, in->steps[out->n].key ? T_OBJ : T_ARR))));
		}
}

void slots_declare(struct enc *e, uint32_t step)
{
	for (uint32_t i = 0; i < e->n_slots; i++)
		declare(e, &e->slots[i], step);
	tie(e, step);
}
