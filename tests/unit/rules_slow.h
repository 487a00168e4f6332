/* SPDX-License-Identifier: Apache-2.0 */
/* rules_slow.h - rules as docs/rules.md defines them, over the whole trace.
 *
 * Nothing of the monitor is used: every event is kept, every question is answered
 * from all of them by the definition of each operator, and a variable is its
 * value. Slow, and short enough to be read against the definition. */
#pragma once
#include "rules/ast.h"

#include <stdlib.h>
#include <string.h>

enum { SLOW_EVENTS = 512, SLOW_VARS = 8 };
enum { SF, SU, ST }; /* false < unknown < true */

struct slow {
	const struct rules *r;
	struct rules_event ev[SLOW_EVENTS];
	int n;
	/* The question. */
	const struct json *args;
	int tool; /* -1: end */
	uint64_t now;
	const struct json *var[SLOW_VARS]; /* NULL: absent */
	const struct json *local[SLOW_VARS];
	/* The event whose `where` is asked, or -1. */
	int inside;
	struct cs_arena *a;
};

static int slow_formula(struct slow *s, const struct rl_formula *f);
static const struct json *slow_term(struct slow *s, const struct rl_term *t);

static int s_min(int a, int b) { return a < b ? a : b; }
static int s_max(int a, int b) { return a > b ? a : b; }
static int s_bool(bool b) { return b ? ST : SF; }

static const struct json *slow_path(struct slow *s, const struct json *v, const struct rl_step *p, uint32_t n)
{
	for (uint32_t i = 0; i < n && v; i++) {
		const struct json *by = p[i].term ? slow_term(s, p[i].term) : NULL;

		if (p[i].term && !by)
			return NULL;
		if (p[i].key || (by && by->type == JSON_STRING))
			v = json_get(v, by ? by->s : p[i].key);
		else
			v = json_at(v, (size_t)(by ? by->i : p[i].index));
	}
	return v;
}

/* ---- events ---- */

static bool slow_has_tool(const struct rl_tools *t, int tool)
{
	if (tool < 0)
		return t->end;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->ids[i] == (uint32_t)tool)
			return true;
	return false;
}

/* "An event that gives a variable no value is unknown for every value." */
static bool slow_gives_all(struct slow *s, const struct rl_call *c, const struct json *args)
{
	for (uint32_t i = 0; i < c->n_args; i++) {
		bool given = c->args[i].kind != RL_ARG_VAR;

		for (uint32_t k = 0; k < c->n_args && !given; k++)
			given = c->args[k].kind == RL_ARG_VAR && c->args[k].var == c->args[i].var &&
				slow_path(s, args, c->args[k].path, c->args[k].steps);
		if (!given)
			return false;
	}
	return true;
}

static int slow_match(struct slow *s, const struct rl_call *c, int tool, const struct json *args, const struct json *const *var)
{
	bool all = slow_gives_all(s, c, args);
	int t = all ? ST : SU;
	const struct json *first[SLOW_VARS] = { 0 };

	if (!slow_has_tool(&c->tools, tool))
		return SF;
	for (uint32_t i = 0; i < c->n_args; i++) {
		const struct rl_arg *a = &c->args[i];
		const struct json *v = slow_path(s, args, a->path, a->steps), *want;

		if (!v) {
			t = s_min(t, SU);
			continue;
		}
		switch (a->kind) {
		case RL_ARG_VAR:
			/* Two places of one variable have one value, whatever it is. */
			if (!first[a->var])
				first[a->var] = v;
			want = all && var ? var[a->var] : first[a->var];
			t = s_min(t, s_min(s_bool(json_equal(first[a->var], v)), !want ? SU : s_bool(json_equal(want, v))));
			break;
		case RL_ARG_CONST:
			t = s_min(t, s_bool(json_equal(a->value, v)));
			break;
		case RL_ARG_PATTERN:
			t = s_min(t, v->type == JSON_STRING ? s_bool(pattern_match(a->pattern, v->s, v->n)) : SU);
			break;
		default:
			break;
		}
	}
	return t;
}

static int slow_event(struct slow *s, const struct rl_formula *f, int i)
{
	static const int kinds[] = { [RL_EV_USER] = RULES_EV_USER, [RL_EV_CONFIRM] = RULES_EV_CONFIRM, [RL_EV_CALL] = RULES_EV_CALL,
				     [RL_EV_OK] = RULES_EV_OK, [RL_EV_FAIL] = RULES_EV_FAIL };
	const struct rules_event *e = &s->ev[i];
	int t = ST;

	if ((int)e->kind != kinds[f->event])
		return SF;
	if (f->call)
		t = slow_match(s, f->call, e->tool, e->args, s->var);
	if (f->where && t != SF) {
		int was = s->inside;

		s->inside = i;
		t = s_min(t, slow_formula(s, f->where));
		s->inside = was;
	}
	return t;
}

/* ---- the past: the value of f at every position, v[0] to v[s->n - 1] ---- */

static void slow_past(struct slow *s, const struct rl_formula *f, int *v)
{
	int *a = malloc((size_t)(s->n + 1) * sizeof *a), *b = malloc((size_t)(s->n + 1) * sizeof *b);

	if (f->a)
		slow_past(s, f->a, a);
	if (f->b)
		slow_past(s, f->b, b);
	for (int i = 0; i < s->n; i++) {
		switch (f->op) {
		case RL_TRUE: v[i] = ST; break;
		case RL_FALSE: v[i] = SF; break;
		case RL_NOT: v[i] = ST - a[i]; break;
		case RL_AND: v[i] = s_min(a[i], b[i]); break;
		case RL_OR: v[i] = s_max(a[i], b[i]); break;
		case RL_EVENT: v[i] = slow_event(s, f, i); break;
		case RL_PREV: v[i] = i ? a[i - 1] : SF; break;
		case RL_ONCE:
			v[i] = SF;
			for (int j = 0; j <= i; j++)
				v[i] = s_max(v[i], a[j]);
			break;
		case RL_HIST:
			v[i] = ST;
			for (int j = 0; j <= i; j++)
				v[i] = s_min(v[i], a[j]);
			break;
		case RL_SINCE:
			v[i] = SF;
			for (int j = i, held = ST; j >= 0; held = s_min(held, a[j--]))
				v[i] = s_max(v[i], s_min(b[j], held));
			break;
		default:
			break;
		}
	}
	if (f->op == RL_SEQ) { /* v: the events up to the k-th were seen in order by now */
		for (int i = 0; i < s->n; i++)
			b[i] = ST;
		for (uint32_t k = 0; k < f->n_seq; k++) {
			slow_past(s, f->seq[k], a);
			for (int i = 0; i < s->n; i++) {
				v[i] = SF;
				for (int j = 0; j <= i; j++)
					v[i] = s_max(v[i], s_min(a[j], k == 0 ? ST : j ? b[j - 1] : SF));
			}
			memcpy(b, v, (size_t)s->n * sizeof *b);
		}
	}
	free(a);
	free(b);
}

static int slow_empty(const struct rl_formula *f)
{
	switch (f->op) {
	case RL_TRUE: case RL_HIST: return ST;
	case RL_NOT: return ST - slow_empty(f->a);
	case RL_AND: return s_min(slow_empty(f->a), slow_empty(f->b));
	case RL_OR: return s_max(slow_empty(f->a), slow_empty(f->b));
	default: return SF;
	}
}

/* A formula of which a variable is absent is unknown. */
static bool slow_vars_known(struct slow *s, const uint32_t *vars, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!s->var[vars[i]])
			return false;
	return true;
}

static int slow_now(struct slow *s, const struct rl_formula *f)
{
	const struct rl_past *p = &s->r->pasts[f->id];
	int *v, r;

	if (!slow_vars_known(s, p->vars, p->n_vars))
		return SU;
	if (!s->n)
		return slow_empty(f);
	v = malloc((size_t)s->n * sizeof *v);
	slow_past(s, f, v);
	r = v[s->n - 1];
	free(v);
	return r;
}

/* ---- terms ---- */

static const struct json *slow_kept(struct slow *s, const struct rl_term *t)
{
	const struct rl_kept *k = &s->r->kept[t->id];
	const struct json *r = NULL, *one;
	int64_t sum = 0;
	int *v, hit;

	if (!slow_vars_known(s, k->vars, k->n_vars))
		return NULL;
	if (t->kind == RL_T_LAST) {
		for (int i = s->n - 1; i >= 0; i--) {
			hit = s->ev[i].kind == RULES_EV_OK ? slow_match(s, t->call, s->ev[i].tool, s->ev[i].args, s->var) : SF;
			if (hit != SF)
				return hit == ST ? slow_path(s, s->ev[i].result, t->path, t->steps) : NULL;
		}
		return NULL;
	}
	v = malloc((size_t)(s->n + 1) * sizeof *v);
	slow_past(s, t->past, v);
	for (int i = 0; i < s->n; i++) {
		if (v[i] == SF || (t->within_ms && s->now - s->ev[i].t_ms >= t->within_ms))
			continue;
		one = t->kind == RL_T_SUM ? slow_path(s, s->ev[i].args, t->path, t->steps) : NULL;
		if (v[i] == SU || (t->kind == RL_T_SUM && (!one || one->type != JSON_NUMBER)))
			goto out;
		sum += t->kind == RL_T_SUM ? one->i : 1;
	}
	r = json_new_int(s->a, sum);
out:
	free(v);
	return r;
}

static const struct json *slow_term(struct slow *s, const struct rl_term *t)
{
	const struct json *a, *b;
	const char *name;

	switch (t->kind) {
	case RL_T_CONST: case RL_T_SET: return t->value;
	case RL_T_ARG: return slow_path(s, s->inside >= 0 ? s->ev[s->inside].args : s->args, t->path, t->steps);
	case RL_T_RESULT: return s->inside >= 0 ? slow_path(s, s->ev[s->inside].result, t->path, t->steps) : NULL;
	case RL_T_VAR: return s->var[t->var];
	case RL_T_LOCAL: return slow_path(s, s->local[t->var], t->path, t->steps);
	case RL_T_LAST: case RL_T_COUNT: case RL_T_SUM: return slow_kept(s, t);
	case RL_T_LEN:
		a = slow_term(s, t->a);
		return a && a->type >= JSON_STRING ? json_new_int(s->a, a->n) : NULL;
	case RL_T_ADD: case RL_T_SUB: case RL_T_MUL:
		a = slow_term(s, t->a);
		b = slow_term(s, t->b);
		if (!a || !b || a->type != JSON_NUMBER || b->type != JSON_NUMBER)
			return NULL;
		return json_new_int(s->a, t->kind == RL_T_ADD ? a->i + b->i : t->kind == RL_T_SUB ? a->i - b->i : a->i * b->i);
	case RL_T_TOOL:
		name = s->r->tools[s->inside >= 0 ? s->ev[s->inside].tool : s->tool].name;
		return json_new_str(s->a, name, strlen(name));
	default: return NULL;
	}
}

/* ---- formulas ---- */

static bool slow_in(const struct json *v, const struct json *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (json_equal(v, &set->items[i]))
			return true;
	return false;
}

static int slow_compare(struct slow *s, const struct rl_formula *f)
{
	const struct json *a = slow_term(s, f->l), *b = f->r ? slow_term(s, f->r) : a;
	int c;

	if (!a || !b)
		return SU;
	switch (f->op) {
	case RL_EQ: return s_bool(json_equal(a, b));
	case RL_NE: return s_bool(!json_equal(a, b));
	case RL_IN:
		if (b->type != JSON_ARRAY)
			return SU;
		if (a->type != JSON_ARRAY)
			return s_bool(slow_in(a, b));
		for (uint32_t i = 0; i < a->n; i++)
			if (!slow_in(&a->items[i], b))
				return SF;
		return ST;
	case RL_CONTAINS: return a->type == JSON_ARRAY ? s_bool(slow_in(b, a)) : a->type == JSON_STRING && b->type == JSON_STRING ? s_bool(strstr(a->s, b->s)) : SU;
	case RL_MATCHES: return a->type == JSON_STRING ? s_bool(pattern_match(f->pattern, a->s, a->n)) : SU;
	default:
		if (a->type != JSON_NUMBER || b->type != JSON_NUMBER)
			return SU;
		c = (a->i > b->i) - (a->i < b->i);
		return s_bool(f->op == RL_LT ? c < 0 : f->op == RL_LE ? c <= 0 : f->op == RL_GT ? c > 0 : c >= 0);
	}
}

static int slow_quantified(struct slow *s, const struct rl_formula *f)
{
	const struct json *over = slow_term(s, f->l);
	int r = f->op == RL_ALL ? ST : SF;

	if (!over || over->type != JSON_ARRAY)
		return SU;
	for (uint32_t i = 0; i < over->n; i++) {
		s->local[f->var] = &over->items[i];
		r = f->op == RL_ALL ? s_min(r, slow_formula(s, f->a)) : s_max(r, slow_formula(s, f->a));
	}
	return r;
}

static int slow_formula(struct slow *s, const struct rl_formula *f)
{
	switch (f->op) {
	case RL_TRUE: return ST;
	case RL_FALSE: return SF;
	case RL_NOT: return ST - slow_formula(s, f->a);
	case RL_AND: return s_min(slow_formula(s, f->a), slow_formula(s, f->b));
	case RL_OR: return s_max(slow_formula(s, f->a), slow_formula(s, f->b));
	case RL_PRESENT: return s_bool(slow_term(s, f->l));
	case RL_ALL: case RL_ANY: return slow_quantified(s, f);
	case RL_EVENT: case RL_ONCE: case RL_HIST: case RL_PREV: case RL_SINCE: case RL_SEQ: return slow_now(s, f);
	default: return slow_compare(s, f);
	}
}

/* ---- rules ---- */

static void slow_bind(struct slow *s, const struct rl_call *c)
{
	memset((void *)s->var, 0, sizeof s->var);
	for (uint32_t i = 0; i < c->n_args; i++)
		if (c->args[i].kind == RL_ARG_VAR && !s->var[c->args[i].var])
			s->var[c->args[i].var] = slow_path(s, s->args, c->args[i].path, c->args[i].steps);
}

static bool slow_fires(struct slow *s, const struct rl_rule *r, int match, bool *unknown)
{
	int where = r->where ? s_min(match, slow_formula(s, r->where)) : match, unless = r->unless ? slow_formula(s, r->unless) : SF;

	*unknown = where != ST || unless != SF;
	return r->verb == RULES_ALLOW ? where == ST && unless == SF : where != SF && unless != ST;
}

/* Every tuple of values there are, and one of a value there is not. */
static bool slow_fires_for_some(struct slow *s, const struct rl_rule *r, const struct json *const *domain, int n, uint32_t var, bool *unknown)
{
	if (var == r->n_vars)
		return slow_fires(s, r, ST, unknown);
	for (int i = 0; i < n; i++) {
		s->var[var] = domain[i];
		if (slow_fires_for_some(s, r, domain, n, var + 1, unknown))
			return true;
	}
	return false;
}

static void slow_check(struct slow *s, const struct rules_event *e, const struct json *const *domain, int n_domain, struct rules_hit *ret)
{
	*ret = (struct rules_hit){ .verdict = e->kind == RULES_EV_END ? RULES_ALLOW : rules_fallback(s->r, RULES_ALLOW) };
	s->args = e->args;
	s->tool = e->kind == RULES_EV_END ? -1 : e->tool;
	s->now = s->n && s->ev[s->n - 1].t_ms > e->t_ms ? s->ev[s->n - 1].t_ms : e->t_ms;
	s->inside = -1;
	for (uint32_t i = 0; i < s->r->n_rules; i++) {
		const struct rl_rule *r = &s->r->rules[i];
		bool unknown, fires;
		int match;

		if (!slow_has_tool(&r->call->tools, s->tool))
			continue;
		slow_bind(s, r->call);
		match = slow_match(s, r->call, s->tool, s->args, NULL);
		fires = r->each ? slow_fires_for_some(s, r, domain, n_domain, 0, &unknown) : slow_fires(s, r, match, &unknown);
		if (!fires)
			continue;
		ret->allowed |= r->verb == RULES_ALLOW;
		if (ret->rule && ret->verdict >= r->verb)
			continue;
		ret->verdict = r->verb;
		ret->rule = r->name;
		ret->unknown = unknown;
	}
}

static void slow_note(struct slow *s, const struct rules_event *e)
{
	uint64_t last = s->n ? s->ev[s->n - 1].t_ms : 0;

	s->ev[s->n] = *e;
	if (e->t_ms < last)
		s->ev[s->n].t_ms = last;
	s->n++;
}
