/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_plan.c - what a monitor needs to know of the rules, made once for all monitors. */
#include "rules/monitor_internal.h"

#include "base/mem.h"
#include "rules/internal.h"

#include <stdlib.h>
#include <string.h>

enum { PLAN_MAX = 512 << 20, SHARED_TEXT_MAX = 64 << 10 };

/* ---- what is written twice is watched once ----
 *
 * Rules about many tools often have the same condition. Two formulas of one file that are written with the same text
 * over variables of the same names, in the same order, have the same state: whichever call binds them. */

struct sharing {
	struct shared {
		char *text;
		uint32_t number;
	} *slots;
	uint32_t cap;
};

static bool sharing_init(struct sharing *s, uint32_t n)
{
	for (s->cap = 16; s->cap < 2 * n; s->cap *= 2)
		;
	s->slots = calloc(s->cap, sizeof *s->slots);
	return s->slots != NULL;
}

static void sharing_done(struct sharing *s)
{
	for (uint32_t i = 0; s->slots && i < s->cap; i++)
		free(s->slots[i].text);
	free(s->slots);
}

/* The number of the first that has this text, or `number`, which is the first then. */
static uint32_t share(struct sharing *s, const struct cs_buf *text, uint32_t number)
{
	uint32_t h = 2166136261u;

	if (text->over)
		return number;
	for (size_t i = 0; i < text->len; i++)
		h = (h ^ (unsigned char)text->data[i]) * 16777619u;
	for (h &= s->cap - 1; s->slots[h].text; h = (h + 1) & (s->cap - 1))
		if (!strcmp(s->slots[h].text, cs_buf_text(text)))
			return s->slots[h].number;
	s->slots[h].text = cs_strdup(cs_buf_text(text));
	s->slots[h].number = number;
	return number;
}

static void put_vars(struct cs_buf *b, const struct rl_rule *r, const uint32_t *vars, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		cs_buf_fmt(b, "%s ", r->vars[vars[i]]);
	cs_buf_char(b, ':');
}

/* ---- formulas as lists of nodes ---- */

struct builder {
	struct rl_plan *plan;
	struct rl_unit *unit;
	struct rl_node *nodes; /* NULL: only counted */
	struct rl_atom *atoms;
	uint32_t n_nodes, n_atoms;
};

static uint32_t put_node(struct builder *b, struct rl_node n)
{
	n.slot = RL_NONE;
	if (b->nodes)
		b->nodes[b->n_nodes] = n;
	return b->n_nodes++;
}

static bool binds(const struct rl_call *c)
{
	for (uint32_t i = 0; c && i < c->n_args; i++)
		if (c->args[i].kind == RL_ARG_VAR)
			return true;
	return false;
}

static struct rl_atom atom_of(const struct rl_formula *f)
{
	return (struct rl_atom){ .event = f, .open = binds(f->call) };
}

static uint32_t put_event(struct builder *b, const struct rl_formula *f)
{
	if (b->atoms)
		b->atoms[b->n_atoms] = atom_of(f);
	return put_node(b, (struct rl_node){ .op = RL_EVENT, .atom = b->n_atoms++ });
}

static uint32_t put_formula(struct builder *b, const struct rl_formula *f)
{
	uint32_t x, y = RL_NONE;

	switch (f->op) {
	case RL_EVENT:
		return put_event(b, f);
	case RL_SEQ:
		for (uint32_t i = 0; i < f->n_seq; i++) {
			x = put_event(b, f->seq[i]);
			y = put_node(b, (struct rl_node){ .op = RL_SEQ, .a = x, .b = y });
		}
		return y;
	case RL_AND:
	case RL_OR:
	case RL_SINCE:
		x = put_formula(b, f->a);
		y = put_formula(b, f->b);
		return put_node(b, (struct rl_node){ .op = f->op, .a = x, .b = y });
	case RL_NOT:
	case RL_ONCE:
	case RL_HIST:
	case RL_PREV:
		x = put_formula(b, f->a);
		return put_node(b, (struct rl_node){ .op = f->op, .a = x });
	case RL_TRUE:
	case RL_FALSE:
		return put_node(b, (struct rl_node){ .op = f->op });
	default: /* the loader lets no comparison in; nothing is known of one */
		return put_node(b, (struct rl_node){ .op = RL_EQ });
	}
}

static void give_slot(struct rl_unit *u, struct rl_node *n)
{
	if (n->slot == RL_NONE)
		n->slot = u->n_slots++;
}

/* What must be remembered: the operators that look at their own last value, what `previously` looks at,
 * and the whole, which is what is asked for: it gets slot 0. */
static void give_slots(struct rl_unit *u, struct rl_node *nodes)
{
	give_slot(u, &nodes[u->n_nodes - 1]);
	for (uint32_t i = 0; i < u->n_nodes; i++) {
		enum rl_op op = nodes[i].op;

		if (op == RL_ONCE || op == RL_HIST || op == RL_SINCE || op == RL_SEQ)
			give_slot(u, &nodes[i]);
		if (op == RL_PREV) {
			give_slot(u, &nodes[nodes[i].a]);
			u->n_prev++;
		}
	}
	u->words = (u->n_slots + 31) / 32;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static bool build_unit(struct rl_plan *p, struct rl_unit *u, const struct rl_formula *f)
{
	struct builder b = { .plan = p, .unit = u };

	(void)put_formula(&b, f);
	b.nodes = cs_arena_get(&p->arena, b.n_nodes, sizeof *b.nodes);
	b.atoms = cs_arena_get(&p->arena, b.n_atoms + 1, sizeof *b.atoms);
	if (!b.nodes || !b.atoms)
		return false;
	b.n_nodes = b.n_atoms = 0;
	(void)put_formula(&b, f);
	u->nodes = b.nodes;
	u->n_nodes = b.n_nodes;
	u->atoms = b.atoms;
	u->n_atoms = b.n_atoms;
	give_slots(u, b.nodes);
	p->max_nodes = larger(p->max_nodes, u->n_nodes);
	p->max_atoms = larger(p->max_atoms, u->n_atoms);
	p->max_words = larger(p->max_words, u->words);
	return true;
}

/* ---- how far a count within a time must count ---- */

struct survey {
	struct rl_plan *plan;
};

static void survey_formula(struct survey *s, const struct rl_formula *f);

/* `beside` is what the term is compared with, or NULL where more than its order matters. */
static void survey_term(struct survey *s, const struct rl_term *t, const struct rl_term *beside)
{
	int64_t limit;

	if (!t)
		return;
	if (t->kind == RL_T_COUNT && t->id != UINT32_MAX) {
		struct rl_keep *k = &s->plan->keeps[s->plan->keep_of_kept[t->id]];

		if (beside && beside->kind == RL_T_CONST && json_int(beside->value, &limit) && limit < RL_WINDOW_MAX)
			k->window = larger(k->window, limit < 0 ? 1 : (uint32_t)limit + 1);
		else
			k->saturates = false;
	}
	survey_term(s, t->a, NULL);
	survey_term(s, t->b, NULL);
	for (uint32_t i = 0; i < t->steps; i++)
		survey_term(s, t->path[i].term, NULL);
}

static void survey_formula(struct survey *s, const struct rl_formula *f)
{
	bool order;

	if (!f)
		return;
	order = f->op >= RL_EQ && f->op <= RL_GE;
	survey_term(s, f->l, order ? f->r : NULL);
	survey_term(s, f->r, order ? f->l : NULL);
	survey_formula(s, f->a);
	survey_formula(s, f->b);
}

/* ---- units and keeps ---- */

static uint32_t vars_of_rule(const struct rules *r, uint32_t rule)
{
	return rule < r->n_rules ? r->rules[rule].n_vars : 0;
}

static bool build_pasts(const struct rules *r, struct rl_plan *p, struct sharing *s)
{
	for (uint32_t i = 0; i < r->n_pasts; i++) {
		CS_BUF_AUTO struct cs_buf text = CS_BUF(SHARED_TEXT_MAX);
		const struct rl_past *past = &r->pasts[i];
		struct rl_unit *u = &p->units[p->n_units];

		p->unit_of_past[i] = RL_NONE;
		if (past->rule >= r->n_rules)
			continue;
		put_vars(&text, &r->rules[past->rule], past->vars, past->n_vars);
		rl_print_formula(past->formula, &text);
		p->unit_of_past[i] = share(s, &text, p->n_units);
		if (p->unit_of_past[i] != p->n_units)
			continue;
		u->vars = past->vars;
		u->n_vars = past->n_vars;
		u->rule_vars = vars_of_rule(r, past->rule);
		if (!build_unit(p, u, past->formula))
			return false;
		p->n_units++;
		p->max_vars = larger(p->max_vars, u->rule_vars);
	}
	return true;
}

static bool build_keep(const struct rules *r, struct rl_plan *p, uint32_t i)
{
	const struct rl_kept *kept = &r->kept[i];
	struct rl_keep *k = &p->keeps[i];

	k->term = kept->term;
	k->vars = kept->vars;
	k->n_vars = kept->n_vars;
	k->rule_vars = vars_of_rule(r, kept->rule);
	k->unit = RL_NONE;
	k->saturates = kept->term->kind == RL_T_COUNT;
	p->max_vars = larger(p->max_vars, k->rule_vars);
	if (kept->rule >= r->n_rules || kept->term->kind == RL_T_LAST)
		return true;
	if (kept->term->kind == RL_T_COUNT && !kept->term->within_ms) {
		struct rl_unit *u = &p->units[p->n_units];

		u->vars = kept->vars;
		u->n_vars = kept->n_vars;
		u->rule_vars = k->rule_vars;
		u->counting = true;
		k->unit = p->n_units++;
		return build_unit(p, u, kept->term->past);
	}
	if (kept->term->past->op == RL_EVENT)
		k->atom = atom_of(kept->term->past);
	return true;
}

static uint32_t first_like(const struct rules *r, uint32_t i, struct sharing *s)
{
	CS_BUF_AUTO struct cs_buf text = CS_BUF(SHARED_TEXT_MAX);
	const struct rl_kept *k = &r->kept[i];

	if (k->rule >= r->n_rules)
		return i;
	cs_buf_char(&text, '='); /* no formula's text begins so */
	put_vars(&text, &r->rules[k->rule], k->vars, k->n_vars);
	rl_print_term(k->term, &text);
	return share(s, &text, i);
}

static bool build_keeps(const struct rules *r, struct rl_plan *p, struct sharing *sharing)
{
	struct survey s = { .plan = p };

	for (uint32_t i = 0; i < r->n_kept; i++) {
		p->keep_of_kept[i] = first_like(r, i, sharing);
		if (p->keep_of_kept[i] == i && !build_keep(r, p, i))
			return false;
	}
	for (uint32_t i = 0; i < r->n_rules; i++) {
		survey_formula(&s, r->rules[i].where);
		survey_formula(&s, r->rules[i].unless);
	}
	for (uint32_t i = 0; i < r->n_kept; i++)
		if (!p->keeps[i].saturates)
			p->keeps[i].window = RL_WINDOW_MAX;
	return true;
}

/* ---- who is to be told of which event ---- */

static uint32_t n_keys(const struct rules *r)
{
	return 2 + 3 * r->n_tools;
}

uint32_t rl_event_key(const struct rules *r, const struct rules_event *e)
{
	if (e->kind == RULES_EV_USER || e->kind == RULES_EV_CONFIRM)
		return e->kind == RULES_EV_CONFIRM;
	if (e->kind == RULES_EV_END || e->tool < 0 || (uint32_t)e->tool >= r->n_tools)
		return RL_NONE;
	return 2 + 3 * (uint32_t)e->tool + (uint32_t)(e->kind - RULES_EV_CALL);
}

/* Adds `number` to the runs of the keys of an event; a number that is added twice in a row to a run is there once. */
struct runs_builder {
	struct rl_runs *runs;
	uint32_t *last; /* per key: the number added last, plus one */
	bool fill;
};

static void add_to_run(struct runs_builder *b, uint32_t key, uint32_t number)
{
	if (b->last[key] == number + 1)
		return;
	b->last[key] = number + 1;
	if (b->fill)
		b->runs->list[b->runs->start[key]++] = number;
	else
		b->runs->start[key + 1]++;
}

static void add_event(struct runs_builder *b, enum rl_event kind, const struct rl_call *c, uint32_t number)
{
	if (kind == RL_EV_USER || kind == RL_EV_CONFIRM) {
		add_to_run(b, kind == RL_EV_CONFIRM, number);
		return;
	}
	for (uint32_t i = 0; c && i < c->tools.n; i++)
		add_to_run(b, 2 + 3 * c->tools.ids[i] + (uint32_t)(kind - RL_EV_CALL), number);
}

static void add_units(const struct rules *r, const struct rl_plan *p, struct runs_builder *b)
{
	(void)r;
	for (uint32_t i = 0; i < p->n_units; i++)
		for (uint32_t k = 0; k < p->units[i].n_atoms; k++)
			add_event(b, p->units[i].atoms[k].event->event, p->units[i].atoms[k].event->call, i);
}

static void add_keeps(const struct rules *r, const struct rl_plan *p, struct runs_builder *b)
{
	for (uint32_t i = 0; i < r->n_kept; i++) {
		const struct rl_keep *k = &p->keeps[i];

		if (r->kept[i].rule >= r->n_rules || p->keep_of_kept[i] != i || k->unit != RL_NONE)
			continue;
		if (k->term->kind == RL_T_LAST)
			add_event(b, RL_EV_OK, k->term->call, i);
		else if (k->atom.event)
			add_event(b, k->atom.event->event, k->atom.event->call, i);
	}
}

static void add_rules(const struct rules *r, const struct rl_plan *p, struct runs_builder *b)
{
	(void)p;
	for (uint32_t i = 0; i < r->n_rules; i++) {
		const struct rl_tools *t = &r->rules[i].call->tools;

		for (uint32_t k = 0; k < t->n; k++)
			add_to_run(b, t->ids[k], i);
		if (t->end)
			add_to_run(b, r->n_tools, i);
	}
}

typedef void (*adder)(const struct rules *, const struct rl_plan *, struct runs_builder *);

/* Twice over everything: how long the runs are, then the runs. */
static bool build_runs(const struct rules *r, struct rl_plan *p, struct rl_runs *runs, uint32_t keys, adder add)
{
	struct runs_builder b = { .runs = runs };

	runs->start = cs_arena_get(&p->arena, (size_t)keys + 2, sizeof *runs->start);
	b.last = calloc((size_t)keys + 1, sizeof *b.last);
	if (!runs->start || !b.last) {
		free(b.last);
		return false;
	}
	add(r, p, &b);
	for (uint32_t i = 0; i < keys; i++)
		runs->start[i + 1] += runs->start[i];
	runs->list = cs_arena_get(&p->arena, (size_t)runs->start[keys] + 1, sizeof *runs->list);
	if (runs->list) {
		for (uint32_t i = 0; i <= keys; i++)
			b.last[i] = 0;
		b.fill = true;
		add(r, p, &b);
		/* Filling has moved every start to its end, which is the start of the next. */
		for (uint32_t i = keys; i > 0; i--)
			runs->start[i] = runs->start[i - 1];
		runs->start[0] = 0;
	}
	free(b.last);
	return runs->list != NULL;
}

static bool build_watched(const struct rules *r, struct rl_plan *p)
{
	struct sharing s = { 0 };
	bool ok = sharing_init(&s, r->n_pasts + r->n_kept) && build_pasts(r, p, &s) && build_keeps(r, p, &s);

	sharing_done(&s);
	return ok;
}

static bool build(const struct rules *r, struct rl_plan *p)
{
	for (uint32_t i = 0; i < r->n_rules; i++)
		p->max_vars = larger(p->max_vars, r->rules[i].n_vars);
	p->units = cs_arena_get(&p->arena, (size_t)r->n_pasts + r->n_kept + 1, sizeof *p->units);
	p->unit_of_past = cs_arena_get(&p->arena, (size_t)r->n_pasts + 1, sizeof *p->unit_of_past);
	p->keeps = cs_arena_get(&p->arena, (size_t)r->n_kept + 1, sizeof *p->keeps);
	p->keep_of_kept = cs_arena_get(&p->arena, (size_t)r->n_kept + 1, sizeof *p->keep_of_kept);
	return p->units && p->unit_of_past && p->keeps && p->keep_of_kept && build_watched(r, p) &&
	       build_runs(r, p, &p->units_by_event, n_keys(r), add_units) &&
	       build_runs(r, p, &p->keeps_by_event, n_keys(r), add_keeps) &&
	       build_runs(r, p, &p->rules_by_tool, r->n_tools + 1, add_rules);
}

struct rl_plan *rl_plan_new(const struct rules *r)
{
	struct rl_plan *p = cs_new(struct rl_plan);

	p->arena.max = PLAN_MAX;
	if (build(r, p))
		return p;
	rl_plan_free(p);
	return NULL;
}

void rl_plan_free(struct rl_plan *p)
{
	if (!p)
		return;
	cs_arena_done(&p->arena);
	free(p);
}
