/* SPDX-License-Identifier: Apache-2.0 */
/* formula.c - conditions and terms about one call. */
#include "prove/internal.h"

#include <string.h>

static const struct tv no = { "false", "true" }, yes = { "true", "false" };

/* ---- terms ---- */

static struct val at_path(const struct scope *s, enum slot_kind kind, const struct rl_term *t)
{
	return s->end ? val_absent() : inside_value(s, kind, t, s->step);
}

static struct val arithmetic(const struct scope *s, const struct rl_term *t)
{
	const char *op = t->kind == RL_T_ADD ? "+" : t->kind == RL_T_SUB ? "-" : "*";
	struct val a = term(s, t->a), b = term(s, t->b), r;
	struct enc *e = s->e;

	if (!a.n || !b.n)
		return val_absent();
	r = val_num(val_compare(e, op, &a, &b), a.whole && b.whole);
	r.p = x_and(e, x_and(e, a.p, val_is(e, &a, T_NUM)), x_and(e, b.p, val_is(e, &b, T_NUM)));
	return val_named(e, &r);
}

static struct val tool_name(const struct scope *s)
{
	struct val v = { .mask = T_STR, .p = "true" };
	struct enc *e = s->e;
	ex name = word_of(e, e->tools[0].name, strlen(e->tools[0].name));

	if (s->end) {
		v.s = word_of(e, "end", 3);
		return v;
	}
	for (uint32_t i = 1; i < e->n_tools; i++)
		name = x_ite(e, e->steps[s->step].tool[i], word_of(e, e->tools[i].name, strlen(e->tools[i].name)), name);
	v.s = x_name(e, "S", name);
	return v;
}

struct val term(const struct scope *s, const struct rl_term *t)
{
	switch (t->kind) {
	case RL_T_CONST: case RL_T_SET: return val_const(s->e, t->value);
	case RL_T_ARG: return at_path(s, SLOT_ARG, t);
	case RL_T_RESULT: return at_path(s, SLOT_RESULT, t);
	case RL_T_VAR: return t->var < s->n_vars ? s->vars[t->var] : val_absent();
	case RL_T_LAST: return past_last(s, t);
	case RL_T_COUNT: return past_count(s, t);
	case RL_T_SUM: return past_sum(s, t);
	case RL_T_ADD: case RL_T_SUB: case RL_T_MUL: return arithmetic(s, t);
	case RL_T_TOOL: return tool_name(s);
	default: return asked_term(s, t);
	}
}

/* ---- comparisons ---- */

static struct tv equal(const struct scope *s, const struct rl_formula *f)
{
	struct val a = term(s, f->l), b = term(s, f->r);
	struct tv v = tv_of(s->e, x_and(s->e, a.p, b.p), val_equal(s->e, &a, &b));

	return f->op == RL_NE ? tv_not(v) : v;
}

static struct tv ordered(const struct scope *s, const struct rl_formula *f)
{
	const char *op = f->op == RL_LT ? "<" : f->op == RL_LE ? "<=" : f->op == RL_GT ? ">" : ">=";
	struct val a = term(s, f->l), b = term(s, f->r);
	struct enc *e = s->e;
	ex known = x_and(e, a.p, b.p), numbers = x_and(e, val_is(e, &a, T_NUM), val_is(e, &b, T_NUM));
	struct tv v = { "false", "false" };

	if (a.mask & b.mask & T_NUM)
		v = tv_of(e, x_and(e, known, numbers), val_compare(e, op, &a, &b));
	if (a.mask & b.mask & T_STR) { /* the order of strings has no encoding */
		struct tv strings = asked_formula(s, f);
		ex both = x_and(e, known, x_and(e, val_is(e, &a, T_STR), val_is(e, &b, T_STR)));

		v.t = x_or(e, v.t, x_and(e, both, strings.t));
		v.f = x_or(e, v.f, x_and(e, both, strings.f));
	}
	return v;
}

/* What is said of a string; of an array it is said of every element, which has no encoding; of the rest nothing is known. */
static struct tv of_strings(const struct scope *s, const struct rl_formula *f, const struct val *v, struct tv holds)
{
	struct enc *e = s->e;
	ex string = x_and(e, v->p, val_is(e, v, T_STR)), array = x_and(e, v->p, val_is(e, v, T_ARR));
	struct tv r = { .t = x_and(e, string, holds.t), .f = x_and(e, string, holds.f) }, each;

	if (v->mask & T_ARR) {
		each = asked_formula(s, f);
		r.t = x_or(e, r.t, x_and(e, array, each.t));
		r.f = x_or(e, r.f, x_and(e, array, each.f));
	}
	return (struct tv){ .t = x_name(e, "Bool", r.t), .f = x_name(e, "Bool", r.f) };
}

/* A predicate on v's string. */
static struct tv predicate(const struct scope *s, const struct val *v, struct pred p)
{
	return v->s ? tv_of(s->e, "true", pred_holds(s->e, pred_of(s->e, p), v->s)) : no;
}

static struct tv tools_where(const struct scope *s, bool (*test)(const struct tool *t, const void *arg), const void *arg)
{
	struct enc *e = s->e;
	ex any = "false";

	if (s->end)
		return (struct tv){ "false", "false" };
	for (uint32_t i = 0; i < e->n_tools; i++)
		if (test(&e->tools[i], arg))
			any = x_or(e, any, e->steps[s->step].tool[i]);
	return tv_of(e, "true", any);
}

static bool tool_matches(const struct tool *t, const void *pattern)
{
	return pattern_match(pattern, t->name, strlen(t->name));
}

static bool tool_has_effect(const struct tool *t, const void *name)
{
	static const char *const names[] = { "reads", "writes", "net", "runs", "spends" };

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], name))
			return t->effects >> i & 1;
	return false;
}

static struct tv matches(const struct scope *s, const struct rl_formula *f)
{
	struct val v;

	if (f->l->kind == RL_T_TOOL)
		return s->end ? tv_of(s->e, "true", pattern_match(f->pattern, "end", 3) ? "true" : "false") : tools_where(s, tool_matches, f->pattern);
	v = term(s, f->l);
	return of_strings(s, f, &v, predicate(s, &v, (struct pred){ .pattern = f->pattern }));
}

static const char *const_text(const struct rl_term *t)
{
	return t->kind == RL_T_CONST ? json_str(t->value) : NULL;
}

/* Every class of `from` is in the set. */
static struct tv from_within(const struct scope *s, const struct rl_formula *f)
{
	const struct json *set = f->r->value;
	struct tv v = tv_not(asked_from(s, f->l, NULL));

	for (uint32_t k = 0; k < s->e->n_classes; k++) {
		bool listed = false;

		for (uint32_t i = 0; i < set->n; i++)
			listed |= json_str(&set->items[i]) && !strcmp(json_str(&set->items[i]), s->e->classes[k]);
		if (!listed)
			v = tv_and(s->e, v, tv_not(asked_from(s, f->l, s->e->classes[k])));
	}
	return v;
}

/* Of an array each element is asked about, which has no encoding. */
static struct tv or_each(const struct scope *s, const struct rl_formula *f, const struct val *v, struct tv one)
{
	struct enc *e = s->e;
	ex array = x_and(e, v->p, val_is(e, v, T_ARR)), other = x_and(e, v->p, x_not(e, val_is(e, v, T_ARR)));
	struct tv r = { .t = x_and(e, other, one.t), .f = x_and(e, other, one.f) };

	if (v->mask & T_ARR) {
		struct tv each = asked_formula(s, f);

		r = (struct tv){ .t = x_or(e, r.t, x_and(e, array, each.t)), .f = x_or(e, r.f, x_and(e, array, each.f)) };
	}
	return (struct tv){ .t = x_name(e, "Bool", r.t), .f = x_name(e, "Bool", r.f) };
}

/* In something that some call was given or gave: keys(...), values(...), an array. */
static struct tv in_value(const struct scope *s, const struct rl_formula *f)
{
	struct val v = term(s, f->l), has;

	if (f->l->kind == RL_T_FROM || !inside_has(s, f->r, &v, &has))
		return asked_formula(s, f);
	return or_each(s, f, &v, has.mask ? tv_of(s->e, has.p, has.b) : (struct tv){ "false", "false" });
}

static struct tv in(const struct scope *s, const struct rl_formula *f)
{
	struct enc *e = s->e;
	const struct json *set = f->r->kind == RL_T_SET || f->r->kind == RL_T_CONST ? f->r->value : NULL;
	struct val v;
	ex any = "false";

	if (f->r->kind == RL_T_EFFECTS && const_text(f->l))
		return tools_where(s, tool_has_effect, const_text(f->l));
	if (f->r->kind == RL_T_FROM && const_text(f->l))
		return asked_from(s, f->r, const_text(f->l));
	if (!set || set->type != JSON_ARRAY)
		return in_value(s, f);
	if (f->l->kind == RL_T_FROM)
		return from_within(s, f);
	v = term(s, f->l);
	for (uint32_t i = 0; i < set->n; i++) {
		struct val c = val_const(e, &set->items[i]);

		any = x_or(e, any, val_equal(e, &v, &c));
	}
	return or_each(s, f, &v, tv_of(e, v.p, any));
}

/* A string that has a part, or an array that has an element. */
static struct tv contains(const struct scope *s, const struct rl_formula *f)
{
	const char *part = const_text(f->r);
	struct enc *e = s->e;
	struct tv strings, r;
	struct val v, what, has;

	if (part && f->l->kind == RL_T_EFFECTS)
		return tools_where(s, tool_has_effect, part);
	if (part && f->l->kind == RL_T_FROM)
		return asked_from(s, f->l, part);
	what = term(s, f->r);
	if (f->r->kind == RL_T_FROM || !inside_has(s, f->l, &what, &has)) {
		v = part ? term(s, f->l) : val_absent();
		return part ? of_strings(s, f, &v, predicate(s, &v, pred_part(e, part))) : asked_formula(s, f);
	}
	r = has.mask ? tv_of(e, has.p, has.b) : (struct tv){ "false", "false" };
	if (f->l->kind == RL_T_KEYS || f->l->kind == RL_T_VALUES)
		return r;
	v = term(s, f->l);
	if (v.s && what.s) {
		ex both = x_and(e, x_and(e, v.p, val_is(e, &v, T_STR)), x_and(e, what.p, val_is(e, &what, T_STR)));

		strings = part ? predicate(s, &v, pred_part(e, part)) : asked_formula(s, f);
		r.t = x_or(e, r.t, x_and(e, both, strings.t));
		r.f = x_or(e, r.f, x_and(e, both, strings.f));
	}
	return (struct tv){ .t = x_name(e, "Bool", r.t), .f = x_name(e, "Bool", r.f) };
}

/* Below a relative directory.  A path without detours is below it by its text; of one with them the monitor knows. */
static struct tv under_relative(const struct scope *s, const struct rl_formula *f, const struct val *v, const char *base)
{
	struct enc *e = s->e;
	struct tv relative, odd, below, asked = asked_formula(s, f);
	ex straight;

	if (!v->s)
		return no;
	relative = predicate(s, v, pred_relative(e));
	odd = predicate(s, v, pred_detour(e));
	below = strcmp(base, ".") ? predicate(s, v, pred_below(e, base)) : yes;
	straight = x_and(e, relative.t, odd.f);
	return (struct tv){ .t = x_or(e, x_and(e, straight, below.t), x_and(e, x_and(e, relative.t, odd.t), asked.t)),
			    .f = x_or(e, x_and(e, straight, below.f), x_and(e, x_and(e, relative.t, odd.t), asked.f)) };
}

/* Of a path that begins with / the text says where it is; others are left to the monitor. */
static struct tv under(const struct scope *s, const struct rl_formula *f)
{
	const char *base = const_text(f->r);
	struct val v;
	struct tv below, rooted;

	if (!base || !(base[0] == '/' || pred_is_plain_path(base)))
		return asked_formula(s, f);
	v = term(s, f->l);
	if (base[0] != '/')
		return of_strings(s, f, &v, under_relative(s, f, &v, base));
	below = predicate(s, &v, (struct pred){ .under = base });
	rooted = predicate(s, &v, pred_rooted(s->e));
	return of_strings(s, f, &v, (struct tv){ .t = x_and(s->e, rooted.t, below.t), .f = x_and(s->e, rooted.t, below.f) });
}

static struct tv present(const struct scope *s, const struct rl_formula *f)
{
	struct val v = term(s, f->l);

	return tv_of(s->e, "true", v.p);
}

struct tv formula(const struct scope *s, const struct rl_formula *f)
{
	struct enc *e = s->e;

	switch (f->op) {
	case RL_TRUE: return yes;
	case RL_FALSE: return no;
	case RL_NOT: return tv_not(formula(s, f->a));
	case RL_AND: return tv_and(e, formula(s, f->a), formula(s, f->b));
	case RL_OR: return tv_or(e, formula(s, f->a), formula(s, f->b));
	case RL_EQ: case RL_NE: return equal(s, f);
	case RL_LT: case RL_LE: case RL_GT: case RL_GE: return ordered(s, f);
	case RL_IN: return in(s, f);
	case RL_CONTAINS: return contains(s, f);
	case RL_MATCHES: return matches(s, f);
	case RL_UNDER: return under(s, f);
	case RL_OUTSIDE: return tv_not(under(s, f));
	case RL_PRESENT: return present(s, f);
	case RL_ALL: case RL_ANY: return asked_formula(s, f);
	case RL_EVENT: case RL_ONCE: case RL_HIST: case RL_PREV: case RL_SINCE: case RL_SEQ: return past_now(s, f);
	}
	return no;
}

/* ---- patterns of calls ---- */

static struct tv pattern_arg(const struct scope *s, const struct rl_arg *a, const struct val *v)
{
	struct rl_formula f = { .op = RL_MATCHES, .pattern = a->pattern };
	struct rl_term t = { .kind = RL_T_ARG, .path = a->path, .steps = a->steps };

	f.l = &t;
	return of_strings(s, &f, v, predicate(s, v, (struct pred){ .pattern = a->pattern }));
}

struct tv arg_matches(const struct scope *s, const struct rl_arg *a, int step)
{
	const struct slot *slot = slot_find(s->e, SLOT_ARG, a->path, a->steps);
	struct scope there = *s;
	struct val v = slot ? slot->at[step] : val_absent(), c;

	there.step = step;
	switch (a->kind) {
	case RL_ARG_ANY: return (struct tv){ .t = v.p, .f = "false" };
	case RL_ARG_PATTERN: return pattern_arg(&there, a, &v);
	case RL_ARG_CONST: c = val_const(s->e, a->value); break;
	default: c = a->var < s->n_vars ? s->vars[a->var] : val_absent(); break;
	}
	return tv_of(s->e, x_and(s->e, v.p, c.p), val_equal(s->e, &v, &c));
}
