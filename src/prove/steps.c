/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - the variables of a trace, and what the rules say at each of its steps. */
#include "prove/internal.h"

#include <string.h>

enum { ARENA_MAX = 512 << 20, PAIRWISE = 40 };

void enc_init(struct enc *e, struct cs_buf *out)
{
	*e = (struct enc){ .arena = CS_ARENA(ARENA_MAX), .out = out };
	cs_buf_str(out, "(declare-sort S 0)\n(declare-sort O 0)\n(declare-const t_end Int)\n(declare-const plain Bool)\n");
}

void enc_done(struct enc *e)
{
	cs_arena_done(&e->arena);
}

static int tool_index(struct enc *e, const struct rules_tool *t)
{
	for (uint32_t i = 0; i < e->n_tools; i++)
		if (!strcmp(e->tools[i].name, t->name))
			return (int)i;
	e->tools[e->n_tools] = (struct tool){ .name = t->name, .input = t->input, .output = t->output, .effects = t->effects };
	return (int)e->n_tools++;
}

int enc_policy(struct enc *e, const struct rules *r, const char *prefix, struct policy *ret)
{
	struct tool *tools = cs_arena_get(&e->arena, e->n_tools + r->n_tools + 1, sizeof *tools);
	int *map = cs_arena_get(&e->arena, r->n_tools + 1, sizeof *map);

	if (!tools || !map)
		return -1;
	if (e->n_tools)
		memcpy(tools, e->tools, e->n_tools * sizeof *tools);
	e->tools = tools;
	for (uint32_t i = 0; i < r->n_tools; i++)
		map[i] = tool_index(e, &r->tools[i]);
	*ret = (struct policy){ .r = r, .tool = map, .prefix = prefix };
	collect(e, ret);
	for (uint32_t i = 0; i <= r->n_rules; i++)
		cs_buf_fmt(e->out, "(declare-const %s%u Bool)\n", prefix, i);
	return 0;
}

/* ---- one step ---- */

static void at_most_one(struct enc *e, const ex *v, uint32_t n)
{
	if (n > PAIRWISE) {
		cs_buf_str(e->out, "(assert ((_ at-most 1)");
		for (uint32_t i = 0; i < n; i++)
			cs_buf_fmt(e->out, " %s", v[i]);
		cs_buf_str(e->out, "))\n");
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i; k++)
			cs_buf_fmt(e->out, "(assert (not (and %s %s)))\n", v[i], v[k]);
}

static bool declare_step(struct enc *e, uint32_t i)
{
	struct step *s = &e->steps[i];
	ex *kinds = cs_arena_get(&e->arena, e->n_tools + 2, sizeof *kinds);

	if (!kinds)
		return false;
	s->tool = kinds;
	s->call = "false";
	for (uint32_t t = 0; t < e->n_tools; t++) {
		kinds[t] = x_fresh(e, "Bool", "k");
		s->call = x_or(e, s->call, kinds[t]);
	}
	s->call = x_name(e, "Bool", s->call);
	s->user = kinds[e->n_tools] = x_fresh(e, "Bool", "k");
	s->confirm = kinds[e->n_tools + 1] = x_fresh(e, "Bool", "k");
	x_assert(e, x_or(e, s->call, x_or(e, s->user, s->confirm)));
	at_most_one(e, kinds, e->n_tools + 2);
	s->ok = x_fresh(e, "Bool", "k");
	s->fail = x_fresh(e, "Bool", "k");
	x_assert(e, x(e, "(=> %s (and %s (not %s)))", s->ok, s->call, s->fail));
	x_assert(e, x(e, "(=> %s %s)", s->fail, s->call));
	s->result = x_name(e, "Bool", x_or(e, s->ok, s->fail));
	s->t = "0";
	if (e->timed) {
		s->t = x_fresh(e, "Int", "t");
		x_assert(e, x(e, "(and (>= %s %s) (<= %s t_end))", s->t, i ? e->steps[i - 1].t : "0", s->t));
	}
	return true;
}

void enc_settle(struct enc *e)
{
	inside_settle(e);
	slots_settle(e);
	words_settle(e);
}

bool enc_steps(struct enc *e, uint32_t n)
{
	if (!e->steps) {
		e->steps = cs_arena_get(&e->arena, PROVE_DEPTH_MAX + 1, sizeof *e->steps);
		for (uint32_t i = 0; e->steps && i < e->n_slots; i++)
			e->slots[i].at = cs_arena_get(&e->arena, PROVE_DEPTH_MAX + 1, sizeof *e->slots[i].at);
	}
	while (e->steps && !e->arena.over && e->n_steps < n && n <= PROVE_DEPTH_MAX) {
		if (!declare_step(e, e->n_steps))
			break;
		slots_declare(e, e->n_steps);
		e->n_steps++;
	}
	return !e->arena.over && e->n_steps >= n;
}

/* ---- one rule at one step ---- */

static struct tv both(struct enc *e, struct tv a, const struct scope *s, const struct rl_formula *f)
{
	return f ? tv_and(e, a, formula(s, f)) : a;
}

/* Not known to be false, and not known to be excused; `allow` must be known to be true, and not to be excused. */
static ex fires_if(const struct scope *s, const struct rl_rule *r, struct tv match)
{
	struct enc *e = s->e;
	struct tv g = both(e, match, s, r->where);
	struct tv u = r->unless ? formula(s, r->unless) : (struct tv){ "false", "true" };

	return r->verb == RULES_ALLOW ? x_and(e, g.t, u.f) : x_and(e, x_not(e, g.f), x_not(e, u.t));
}

/* The pattern of the call, and the values that it gives to the variables. */
static struct tv bind(const struct scope *s, const struct rl_call *c, struct val *vars)
{
	struct enc *e = s->e;
	ex called = tools_called(e, s->pol, &c->tools, s->step);
	struct tv m = { .t = called, .f = x_not(e, called) };

	for (uint32_t i = 0; i < s->n_vars; i++)
		vars[i] = val_absent();
	for (uint32_t i = 0; i < c->n_args; i++) {
		const struct rl_arg *a = &c->args[i];
		const struct slot *slot = slot_find(e, SLOT_ARG, a->path, a->steps);
		struct val v = slot ? slot->at[s->step] : val_absent();

		if (a->kind != RL_ARG_VAR) {
			m = tv_and(e, m, arg_matches(s, a, s->step));
		} else if (!vars[a->var].mask) {
			vars[a->var] = v;
			m = tv_and(e, m, (struct tv){ .t = v.p, .f = "false" });
		} else {
			struct tv again = tv_of(e, x_and(e, v.p, vars[a->var].p), val_equal(e, &v, &vars[a->var]));

			m = tv_and(e, m, again);
			vars[a->var] = val_ite(e, vars[a->var].p, &vars[a->var], &v);
		}
	}
	return m;
}

static ex fires_at_call(struct enc *e, const struct policy *p, const struct rl_rule *r, int k)
{
	struct val *vars = cs_arena_get(&e->arena, r->n_vars + 1, sizeof *vars);
	struct scope s = { .e = e, .pol = p, .step = k, .vars = vars, .n_vars = r->n_vars, .binding = (int)e->fresh++ };
	struct tv m;

	if (!vars)
		return "false";
	if (r->call->tools.end)
		return "false";
	m = bind(&s, r->call, vars);
	return x_false(m.t) && x_true(m.f) ? "false" : fires_if(&s, r, m);
}

/* ---- obligations: at the end, for every tuple of values that some event had ---- */

static const struct rl_formula *next_event(const struct rl_formula *f, const struct rl_formula *after, bool *found)
{
	const struct rl_formula *r;

	if (!f)
		return NULL;
	if (f->op == RL_EVENT && f->call) {
		if (*found)
			return f;
		*found = f == after;
		return NULL;
	}
	r = next_event(f->a, after, found);
	return r ? r : next_event(f->b, after, found);
}

/* The values that an event at a step gives to the variables. False: not to all of them. */
static bool bind_event(struct enc *e, const struct rl_formula *event, uint32_t step, struct val *vars, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		vars[i] = val_absent();
	for (uint32_t i = 0; i < event->call->n_args; i++) {
		const struct rl_arg *a = &event->call->args[i];
		const struct slot *slot = slot_find(e, SLOT_ARG, a->path, a->steps);

		if (a->kind == RL_ARG_VAR && slot && a->var < n)
			vars[a->var] = slot->at[step];
	}
	for (uint32_t i = 0; i < n; i++)
		if (!vars[i].mask)
			return false;
	return true;
}

static ex all_there(struct enc *e, const struct val *vars, uint32_t n)
{
	ex all = "true";

	for (uint32_t i = 0; i < n; i++)
		all = x_and(e, all, vars[i].p);
	return all;
}

static ex fires_for_some(struct enc *e, const struct policy *p, const struct rl_rule *r, int k)
{
	struct val *vars = cs_arena_get(&e->arena, r->n_vars + 1, sizeof *vars);
	struct scope s = { .e = e, .pol = p, .step = k, .vars = vars, .n_vars = r->n_vars, .binding = (int)e->fresh++, .end = true, .other = true };
	ex any;

	for (uint32_t i = 0; vars && i < r->n_vars; i++)
		vars[i] = (struct val){ .mask = T_NULL, .p = "true" }; /* never looked at */
	any = vars ? fires_if(&s, r, (struct tv){ "true", "false" }) : "false";
	for (const struct rl_formula *ev = next_event(r->unless, NULL, &(bool){ true }); ev; ev = next_event(r->unless, ev, &(bool){ false }))
		for (int i = 0; i < k; i++) {
			ex had;

			s.other = false;
			s.binding = (int)e->fresh++;
			s.vars = vars = cs_arena_get(&e->arena, r->n_vars + 1, sizeof *vars);
			if (!vars || !bind_event(e, ev, (uint32_t)i, vars, r->n_vars))
				continue;
			had = x_and(e, tools_called(e, p, &ev->call->tools, i), all_there(e, vars, r->n_vars));
			any = x_name(e, "Bool", x_or(e, any, x_and(e, had, fires_if(&s, r, (struct tv){ "true", "false" }))));
		}
	return any;
}

static ex fires_at_end(struct enc *e, const struct policy *p, const struct rl_rule *r, int k)
{
	struct scope s = { .e = e, .pol = p, .step = k, .binding = (int)e->fresh++, .end = true };

	if (!r->call->tools.end)
		return "false";
	return r->each ? fires_for_some(e, p, r, k) : fires_if(&s, r, (struct tv){ "true", "false" });
}

ex rule_fires(struct enc *e, const struct policy *p, uint32_t rule, int k, bool end)
{
	const struct rl_rule *r = &p->r->rules[rule];
	const struct tv *known = memo_get(e, r, k, end);
	struct tv v;

	if (known)
		return known->t;
	v.t = x_name(e, "Bool", end ? fires_at_end(e, p, r, k) : fires_at_call(e, p, r, k));
	v.f = x_not(e, v.t);
	return memo_put(e, r, k, end, v).t;
}

/* ---- all rules ---- */

ex switch_of(struct enc *e, const struct policy *p, uint32_t rule)
{
	return x(e, "%s%u", p->prefix, rule);
}

static ex some_fires(struct enc *e, const struct policy *p, int k, bool end, enum rules_verdict least)
{
	ex any = "false";

	for (uint32_t i = 0; i < p->r->n_rules; i++)
		if (p->r->rules[i].verb >= least)
			any = x_or(e, any, rule_fires(e, p, i, k, end));
	return x_name(e, "Bool", any);
}

ex step_legal(struct enc *e, const struct policy *p, int k, bool end)
{
	ex all = "true";

	for (uint32_t i = 0; i < p->r->n_rules; i++) {
		ex fires = rule_fires(e, p, i, k, end);

		if (p->r->rules[i].verb == RULES_DENY && !x_false(fires))
			all = x_and(e, all, x(e, "(=> %s %s)", switch_of(e, p, i), x_not(e, fires)));
	}
	if (!end && rules_fallback(p->r, RULES_ALLOW) == RULES_DENY)
		all = x_and(e, all, x(e, "(=> (and %s %s) %s)", switch_of(e, p, p->r->n_rules), e->steps[k].call, some_fires(e, p, k, end, RULES_ALLOW)));
	if (!end) /* a tool that this file does not know is not let through */
		for (uint32_t t = 0; t < e->n_tools; t++) {
			bool mine = false;

			for (uint32_t i = 0; i < p->r->n_tools; i++)
				mine |= p->tool[i] == (int)t;
			all = mine ? all : x_and(e, all, x_not(e, e->steps[k].tool[t]));
		}
	return x_name(e, "Bool", all);
}

ex verdict_at_least(struct enc *e, const struct policy *p, int k, bool end, enum rules_verdict v)
{
	ex strict = v == RULES_ALLOW ? "true" : some_fires(e, p, k, end, v);

	if (!end && rules_fallback(p->r, RULES_ALLOW) >= v)
		strict = x_or(e, strict, x_not(e, some_fires(e, p, k, end, RULES_ALLOW)));
	if (!end)
		for (uint32_t t = 0; t < e->n_tools; t++) {
			bool mine = false;

			for (uint32_t i = 0; i < p->r->n_tools; i++)
				mine |= p->tool[i] == (int)t;
			strict = mine ? strict : x_or(e, strict, e->steps[k].tool[t]);
		}
	return x_name(e, "Bool", strict);
}
