/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - variables are bound, the past is of a kind that can be remembered in
 * a few bits, and every outermost formula about it has its number.
 *
 * The tree is const to everyone else; here its last fields are filled in.
 */
#include "rules/internal.h"

#include <stdio.h>
#include <string.h>

/* What stands below one outermost temporal formula. */
struct below {
	const char *op;        /* the operator's word, for messages */
	uint32_t vars;         /* bit i: variable i of the rule is bound by some event */
	uint32_t bits;
};

static bool about_past(enum rl_op op)
{
	return op == RL_EVENT || op == RL_ONCE || op == RL_HIST || op == RL_PREV || op == RL_SINCE || op == RL_SEQ;
}

static const char *word_of(enum rl_op op)
{
	switch (op) {
	case RL_ONCE: return "once";
	case RL_HIST: return "historically";
	case RL_PREV: return "previously";
	case RL_SINCE: return "since";
	case RL_SEQ: return "seq";
	default: return "count";
	}
}

static uint32_t bound_by(const struct rl_call *c)
{
	uint32_t vars = 0;

	for (uint32_t i = 0; c && i < c->n_args; i++)
		if (c->args[i].kind == RL_ARG_VAR)
			vars |= 1u << c->args[i].var;
	return vars;
}

static void names_of(const struct rl_rule *rule, uint32_t vars, char *dst, size_t size)
{
	size_t n = 0;

	dst[0] = '\0';
	for (uint32_t i = 0; rule && i < rule->n_vars && n < size; i++)
		if (vars >> i & 1)
			n += (size_t)snprintf(dst + n, size - n, "%s`%.40s`", n ? ", " : "", rule->vars[i]);
}

/* ---- below a temporal operator ---- */

static const char *shown(struct parser *p, const struct rl_formula *f)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(4096);

	rl_print_formula(f, &b);
	return rl_escape(p, cs_buf_text(&b));
}

static void collect(struct parser *p, const struct rl_formula *f, struct below *b)
{
	if (p->failed)
		return;
	b->bits++;
	switch (f->op) {
	case RL_TRUE: case RL_FALSE: break;
	case RL_NOT: case RL_ONCE: case RL_HIST: case RL_PREV: collect(p, f->a, b); break;
	case RL_AND: case RL_OR: case RL_SINCE:
		collect(p, f->a, b);
		collect(p, f->b, b);
		break;
	case RL_SEQ:
		for (uint32_t i = 0; i < f->n_seq; i++)
			collect(p, f->seq[i], b);
		break;
	case RL_EVENT: b->vars |= bound_by(f->call); break;
	default:
		rl_fail(p, f->pos, "`%s` is about the present call and cannot stand below `%s`, which is about the past; put it into an event, as in call(TOOL where ...)",
			shown(p, f), b->op);
	}
}

/* An event binds all of the variables or none. */
static void check_events(struct parser *p, const struct rl_rule *rule, const struct rl_formula *f, const struct below *b)
{
	char missing[400], got[400];
	uint32_t vars;

	if (p->failed || !f)
		return;
	if (f->op != RL_EVENT) {
		check_events(p, rule, f->a, b);
		check_events(p, rule, f->b, b);
		for (uint32_t i = 0; i < f->n_seq; i++)
			check_events(p, rule, f->seq[i], b);
		return;
	}
	vars = bound_by(f->call);
	if (!vars || vars == b->vars)
		return;
	names_of(rule, vars, got, sizeof got);
	names_of(rule, b->vars & ~vars, missing, sizeof missing);
	rl_fail(p, f->pos, "this event binds %s but not %s; below one `%s` an event binds all variables or none: bind the rest too, or split the formula with `and`",
		got, missing, b->op);
}

static uint32_t *var_list(struct parser *p, uint32_t vars, uint32_t *ret_n)
{
	uint32_t *v = rl_get(p, RL_MAX_VARS, sizeof *v);

	*ret_n = 0;
	for (uint32_t i = 0; v && i < RL_MAX_VARS; i++)
		if (vars >> i & 1)
			v[(*ret_n)++] = i;
	return v;
}

static uint32_t check_below(struct parser *p, const struct rl_rule *rule, const struct rl_formula *f, const char *op)
{
	struct below b = { .op = op };

	collect(p, f, &b);
	check_events(p, rule, f, &b);
	if (!p->failed && b.bits > RL_MAX_STATE_BITS)
		rl_fail_limit(p, f->pos, "%u parts below one temporal formula; its state has %d bits, one for each part: split it with `and`, or use a set of tools instead of `or`",
			      b.bits, RL_MAX_STATE_BITS);
	return b.vars;
}

/* ---- numbers for the monitor ---- */

static void number_past(struct parser *p, uint32_t rule, const struct rl_formula *f)
{
	const struct rl_rule *of = rule == UINT32_MAX ? NULL : &p->r->rules[rule];
	uint32_t vars = check_below(p, of, f, word_of(f->op));
	struct rl_past *v = rl_grow(p, (void *)p->r->pasts, p->r->n_pasts, sizeof *v);

	if (p->failed)
		return;
	p->r->pasts = v;
	v += p->r->n_pasts;
	v->formula = f;
	v->rule = rule;
	v->vars = var_list(p, vars, &v->n_vars);
	((struct rl_formula *)f)->id = p->r->n_pasts++;
}

static bool mark_temporal(const struct rl_formula *f);

static void number_kept(struct parser *p, uint32_t rule, const struct rl_term *t)
{
	const struct rl_rule *of = rule == UINT32_MAX ? NULL : &p->r->rules[rule];
	uint32_t vars = bound_by(t->call);
	struct rl_kept *v;

	if (t->kind == RL_T_COUNT) {
		mark_temporal(t->past);
		vars = check_below(p, of, t->past, "count");
		if (!p->failed && !t->past->temporal)
			rl_fail(p, t->past->pos, "`count` of something that is no event; write count(call(...)), count(ok(...)) or the like");
	} else if (t->kind == RL_T_SUM) {
		mark_temporal(t->past);
	}
	v = rl_grow(p, (void *)p->r->kept, p->r->n_kept, sizeof *v);
	if (p->failed)
		return;
	p->r->kept = v;
	v += p->r->n_kept;
	v->term = t;
	v->rule = rule;
	v->vars = var_list(p, vars, &v->n_vars);
	((struct rl_term *)t)->id = p->r->n_kept++;
}

static void number_term(struct parser *p, uint32_t rule, const struct rl_term *t)
{
	if (!t || p->failed)
		return;
	for (uint32_t i = 0; i < t->steps; i++)
		number_term(p, rule, t->path[i].term);
	if (t->kind == RL_T_LAST || t->kind == RL_T_COUNT || t->kind == RL_T_SUM) {
		number_kept(p, rule, t);
		return;
	}
	number_term(p, rule, t->a);
	number_term(p, rule, t->b);
}

static void number(struct parser *p, uint32_t rule, const struct rl_formula *f)
{
	if (!f || p->failed)
		return;
	if (about_past(f->op)) {
		number_past(p, rule, f);
		return;
	}
	number_term(p, rule, f->l);
	number_term(p, rule, f->r);
	number(p, rule, f->a);
	number(p, rule, f->b);
}

static bool mark_temporal(const struct rl_formula *f)
{
	bool is;

	if (!f)
		return false;
	is = about_past(f->op);
	is |= mark_temporal(f->a);
	is |= mark_temporal(f->b);
	for (uint32_t i = 0; i < f->n_seq; i++)
		is |= mark_temporal(f->seq[i]);
	((struct rl_formula *)f)->temporal = is;
	return is;
}

/* ---- statements ---- */

/* Who binds the variables: the call that the rule is asked about, or what an obligation follows from. */
static void check_bound(struct parser *p, const struct rl_rule *rule)
{
	const struct rl_call *by = rule->required ? rule->unless->a->a->a->call : rule->call;
	uint32_t have = bound_by(by), want = (1u << rule->n_vars) - 1;
	char names[400];

	if ((have & want) == want)
		return;
	names_of(rule, want & ~have, names, sizeof names);
	if (rule->required)
		rl_fail(p, rule->unless->a->a->a->pos, "the event after `after` does not bind %s; write it as an argument there, as in call(TOOL(id=%s))", names,
			rule->vars[__builtin_ctz(want & ~have)]);
	else if (rule->call->tools.end)
		rl_fail(p, rule->call->pos, "`end` binds no variables; write `require B after A`, where A binds %s", names);
	else
		rl_fail(p, rule->call->pos, "the call does not bind %s; write it as an argument of `%s`, as in %s(NAME=%s), or leave it out of `forall`", names,
			rl_escape(p, by->tools.text), rl_escape(p, by->tools.text), rule->vars[__builtin_ctz(want & ~have)]);
}

static void check_rule(struct parser *p, uint32_t at)
{
	const struct rl_rule *rule = &p->r->rules[at];

	check_bound(p, rule);
	mark_temporal(rule->where);
	mark_temporal(rule->unless);
	number(p, at, rule->where);
	number(p, at, rule->unless);
}

static void check_test(struct parser *p, const struct rl_test *t)
{
	const char **names;

	if (!t->by || rl_map_find(&p->rule_names, t->by, NULL))
		return;
	names = rl_get(p, p->r->n_rules + (size_t)1, sizeof *names);
	for (uint32_t i = 0; names && i < p->r->n_rules; i++)
		names[i] = p->r->rules[i].name;
	rl_fail(p, t->by_pos, "unknown rule `%s`%s", rl_escape(p, t->by), names ? rl_suggest(p, t->by, names, p->r->n_rules) : "");
}

void rl_check(struct parser *p)
{
	for (uint32_t i = 0; i < p->r->n_rules && !p->failed; i++)
		check_rule(p, i);
	for (uint32_t i = 0; i < p->r->n_asserts && !p->failed; i++) {
		mark_temporal(p->r->asserts[i].past);
		number(p, UINT32_MAX, p->r->asserts[i].past);
	}
	for (uint32_t i = 0; i < p->r->n_tests && !p->failed; i++)
		check_test(p, &p->r->tests[i]);
	if (!p->failed)
		rl_check_types(p);
}
