/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - a trace is watched: events are noted, calls are asked about.
 *
 * Cost and state do not grow with the length of the trace.  What grows with the
 * number of different values in it has a limit, behind which everything that would
 * have to be known is unknown, and unknown satisfies nothing.
 */
#include "rules/monitor_internal.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { TUPLES = 65536, VALUE_BYTES = 16 << 10, BYTES = 64 << 20 };

/* ---- tuples of values ---- */

static uint32_t id_of(struct rules_monitor *m, const struct json *v)
{
	uint32_t id;

	for (uint32_t i = 0; i < m->n_cache; i++)
		if (m->cache[i].v == v)
			return m->cache[i].id;
	id = rl_values_find(&m->values, v);
	if (m->n_cache < RL_ID_CACHE) {
		m->cache[m->n_cache].v = v;
		m->cache[m->n_cache++].id = id;
	}
	return id;
}

enum rl_truth rl_ids_of(struct rl_eval *e, const uint32_t *vars, uint32_t n, uint32_t *ids, bool *ret_any)
{
	enum rl_truth t = RL_IS_TRUE;

	*ret_any = false;
	for (uint32_t i = 0; i < n; i++)
		*ret_any |= e->vars[vars[i]] == &rl_any;
	for (uint32_t i = 0; i < n && !*ret_any; i++) {
		const struct json *v = e->vars[vars[i]];

		if (!v)
			return RL_IS_UNKNOWN;
		ids[i] = v == &rl_other ? RL_NONE : id_of(e->m, v);
		if (ids[i] == RL_NONE)
			t = RL_IS_FALSE;
	}
	return t;
}

uint32_t rl_tuple_add(struct rules_monitor *m, struct rl_table *t, const struct json *const *values)
{
	uint32_t n = 0, at = RL_NONE;

	while (n < t->width) {
		m->ids[n] = rl_values_take(&m->values, &m->mem, values[n]);
		if (m->ids[n] == RL_NONE)
			break;
		n++;
	}
	if (n == t->width)
		at = rl_table_add(t, &m->mem, m->ids);
	if (at == RL_NONE) {
		t->full = true;
		while (n--)
			rl_values_drop(&m->values, &m->mem, m->ids[n]);
	}
	return at;
}

void rl_tuple_drop(struct rules_monitor *m, struct rl_table *t, uint32_t i)
{
	for (uint32_t k = 0; k < t->width; k++)
		rl_values_drop(&m->values, &m->mem, rl_table_key(t, i)[k]);
	rl_table_remove(t, i);
}

/* ---- asking ---- */

/* Room in the scratch arena is for one question. */
static struct rl_eval begin(struct rules_monitor *m, const struct rules_world *w, const struct rules_event *ev)
{
	struct rl_eval e = { .m = m, .world = w, .tool = RL_NONE, .now = m->now };

	cs_arena_reset(&m->scratch);
	m->n_cache = 0;
	if (!ev)
		return e;
	if (ev->kind == RULES_EV_CALL || ev->kind == RULES_EV_OK || ev->kind == RULES_EV_FAIL)
		e.tool = (uint32_t)ev->tool;
	e.args = ev->args;
	e.result = ev->result;
	if (ev->t_ms > e.now)
		e.now = ev->t_ms;
	return e;
}

struct fired {
	bool yes, unknown;
};

/* With the variables bound and `match` being how well the call fits. */
static struct fired fires(struct rl_eval *e, const struct rl_rule *r, enum rl_truth match)
{
	rl_set where = rl_only(match), unless = RL_MAY_FALSE;

	if (where != RL_MAY_FALSE && r->where)
		where = rl_and(where, rl_eval(e, r->where));
	if (where == RL_MAY_FALSE || (r->verb == RULES_ALLOW && where != RL_MAY_TRUE))
		return (struct fired){ false, false };
	if (r->unless)
		unless = rl_eval(e, r->unless);
	if (r->verb == RULES_ALLOW)
		return (struct fired){ unless == RL_MAY_FALSE, false };
	return (struct fired){ unless != RL_MAY_TRUE, where != RL_MAY_TRUE || unless != RL_MAY_FALSE };
}

static void set_values(struct rl_eval *e, const struct rl_rule *r, struct rules_hit *ret)
{
	struct json *v = cs_arena_get(&e->m->scratch, r->n_vars, sizeof *v);

	for (uint32_t i = 0; v && i < r->n_vars; i++)
		v[i] = *e->vars[i];
	ret->values = v;
	ret->n_values = v ? r->n_vars : 0;
}

static void hit(struct rl_eval *e, const struct rl_rule *r, const struct fired *f, struct rules_hit *ret)
{
	ret->allowed |= r->verb == RULES_ALLOW;
	if (r->verb == RULES_SANDBOX && !ret->sandbox)
		ret->sandbox = r->name;
	if (ret->rule && ret->verdict >= r->verb)
		return;
	ret->verdict = r->verb;
	ret->rule = r->name;
	ret->because = r->because;
	ret->fix = r->fix;
	ret->line = r->pos.line;
	ret->unknown = f->unknown;
	ret->over = f->unknown && e->over;
	ret->values = NULL;
	ret->n_values = 0;
}

static void ask(struct rl_eval *e, const struct rl_rule *r, struct rules_hit *ret)
{
	struct fired f;

	/* What cannot be stricter than what has fired can only say that something was allowed, or is to be caged. */
	if (ret->rule && ret->verdict >= r->verb && (r->verb == RULES_ALLOW ? ret->allowed : r->verb != RULES_SANDBOX || ret->sandbox))
		return;
	e->over = false;
	memset(e->vars, 0, r->n_vars * sizeof *e->vars);
	f = fires(e, r, rl_match(e, r->call, e->vars));
	if (f.yes)
		hit(e, r, &f, ret);
}

/* ---- obligations: for every tuple of values there was, and for all others ---- */

struct search {
	const struct rl_rule *rule;
	uint64_t serial; /* of the earliest tuple that fails; 0: none */
	struct rules_hit hit;
};

static void search_table(struct rl_eval *e, struct search *s, const struct rl_table *t)
{
	for (uint32_t i = 0; i < t->used; i++) {
		uint64_t serial = rl_table_row(t, i)->serial;
		struct fired f;

		if (!serial || (s->serial && serial >= s->serial))
			continue;
		for (uint32_t k = 0; k < t->width; k++)
			e->vars[k] = e->m->values.items[rl_table_key(t, i)[k]].v;
		e->m->n_cache = 0;
		e->over = false;
		f = fires(e, s->rule, RL_IS_TRUE);
		if (!f.yes)
			continue;
		s->serial = serial;
		s->hit = (struct rules_hit){ 0 };
		hit(e, s->rule, &f, &s->hit);
		set_values(e, s->rule, &s->hit);
	}
}

static void ask_each(struct rl_eval *e, uint32_t rule, struct rules_hit *ret)
{
	const struct rules *r = e->m->rules;
	struct search s = { .rule = &r->rules[rule] };
	struct fired f;

	if (ret->rule && ret->verdict >= s.rule->verb)
		return;
	/* First of all: while the tuples are gone through, none may be forgotten. */
	for (uint32_t i = 0; i < r->n_pasts; i++)
		if (r->pasts[i].rule == rule)
			rl_unit_settle(e->m, e->m->plan->unit_of_past[i]);
	for (uint32_t i = 0; i < r->n_pasts && !s.serial; i++)
		if (r->pasts[i].rule == rule && r->pasts[i].n_vars == s.rule->n_vars)
			search_table(e, &s, &e->m->units[e->m->plan->unit_of_past[i]].tuples);
	if (s.serial) {
		s.hit.allowed = ret->allowed;
		s.hit.sandbox = s.hit.sandbox ? s.hit.sandbox : ret->sandbox;
		*ret = s.hit;
		return;
	}
	for (uint32_t i = 0; i < s.rule->n_vars; i++)
		e->vars[i] = &rl_other;
	e->over = false;
	f = fires(e, s.rule, RL_IS_TRUE);
	if (f.yes)
		hit(e, s.rule, &f, ret);
}

/* ---- the interface ---- */

void rules_monitor_check(struct rules_monitor *m, const struct rules_event *ev, const struct rules_world *w, struct rules_hit *ret)
{
	struct rl_eval e = begin(m, w, ev);
	const struct rules *r = m->rules;
	const struct rl_runs *runs = &m->plan->rules_by_tool;
	uint32_t key = ev->kind == RULES_EV_END ? r->n_tools : (uint32_t)ev->tool;

	*ret = (struct rules_hit){ .verdict = ev->kind == RULES_EV_END ? RULES_ALLOW : rules_fallback(r, RULES_ALLOW) };
	e.vars = m->vars;
	if (ev->kind == RULES_EV_END)
		e.args = NULL;
	else if (ev->kind != RULES_EV_CALL || key >= r->n_tools) {
		/* No tool that the rules were loaded with: whoever asks has made a mistake. */
		*ret = (struct rules_hit){ .verdict = RULES_DENY, .unknown = true };
		return;
	}
	for (uint32_t i = runs->start[key]; i < runs->start[key + 1]; i++)
		if (r->rules[runs->list[i]].each)
			ask_each(&e, runs->list[i], ret);
		else
			ask(&e, &r->rules[runs->list[i]], ret);
}

void rules_monitor_note(struct rules_monitor *m, const struct rules_event *ev, const struct rules_world *w)
{
	struct rl_eval e = begin(m, w, ev);
	const struct rl_runs *units = &m->plan->units_by_event, *keeps = &m->plan->keeps_by_event;
	uint32_t key = rl_event_key(m->rules, ev);

	e.in_event = true;
	m->now = e.now;
	for (uint32_t i = key == RL_NONE ? 0 : units->start[key]; key != RL_NONE && i < units->start[key + 1]; i++)
		rl_unit_event(&e, units->list[i], ev);
	m->events++;
	for (uint32_t i = key == RL_NONE ? 0 : keeps->start[key]; key != RL_NONE && i < keeps->start[key + 1]; i++)
		rl_keep_event(&e, keeps->list[i], ev);
}

/* How arguments that are not there yet may fit. A variable that is bound for the first time fits whatever it is. */
static rl_set match_any(const struct rl_call *c, const struct json **vars)
{
	rl_set s = RL_MAY_TRUE;

	for (uint32_t i = 0; i < c->n_args; i++) {
		const struct rl_arg *a = &c->args[i];
		bool fits = a->kind == RL_ARG_ANY || (a->kind == RL_ARG_VAR && !vars[a->var]);

		s = rl_and(s, fits ? RL_MAY_TRUE | RL_MAY_UNKNOWN : RL_MAY_ALL);
		if (a->kind == RL_ARG_VAR)
			vars[a->var] = &rl_any;
	}
	return s;
}

static bool sure_to_fire(struct rl_eval *e, const struct rl_rule *r)
{
	rl_set where;

	memset(e->vars, 0, r->n_vars * sizeof *e->vars);
	where = match_any(r->call, e->vars);
	if (!(where & RL_MAY_FALSE) && r->where)
		where = rl_and(where, rl_eval(e, r->where));
	return !(where & RL_MAY_FALSE) && !(r->unless && rl_eval(e, r->unless) & RL_MAY_TRUE);
}

void rules_monitor_next(struct rules_monitor *m, const struct rules_world *w, bool *may)
{
	const struct rules *r = m->rules;
	const struct rl_runs *runs = &m->plan->rules_by_tool;

	for (uint32_t t = 0; t < r->n_tools; t++) {
		struct rl_eval e = begin(m, w, NULL);

		e.vars = m->vars;
		e.any = true;
		e.tool = t;
		may[t] = true;
		for (uint32_t i = runs->start[t]; may[t] && i < runs->start[t + 1]; i++)
			may[t] = r->rules[runs->list[i]].verb != RULES_DENY || !sure_to_fire(&e, &r->rules[runs->list[i]]);
	}
}

uint64_t rules_monitor_bytes(const struct rules_monitor *m)
{
	return m->mem.used;
}

/* ---- life ---- */

/* Memory whose size the rules alone decide. */
static void *fixed(struct rules_monitor *m, size_t n, size_t size)
{
	m->mem.used += n * size;
	return cs_calloc(n ? n : 1, size);
}

static void get_room(struct rules_monitor *m)
{
	const struct rl_plan *p = m->plan;
	size_t atoms = p->max_atoms, vars = p->max_vars;

	m->node_values = fixed(m, p->max_nodes, sizeof *m->node_values);
	m->atom_values = fixed(m, 3 * atoms, sizeof *m->atom_values);
	m->touched = fixed(m, atoms, sizeof *m->touched);
	m->bound = fixed(m, (atoms + 1) * vars, sizeof *m->bound);
	m->vars = fixed(m, vars, sizeof *m->vars);
	m->ids = fixed(m, vars + atoms, sizeof *m->ids);
	m->new_bits = fixed(m, (atoms + 1) * p->max_words, sizeof *m->new_bits);
	m->units = fixed(m, p->n_units, sizeof *m->units);
	m->keeps = fixed(m, m->rules->n_kept, sizeof *m->keeps);
	m->scratch.max = RL_SCRATCH_MAX;
}

static struct rules_monitor *new_empty(const struct rules *r, const struct rl_plan *plan, const struct rules_limits *l)
{
	struct rules_monitor *m = cs_new(struct rules_monitor);

	m->mem.used = sizeof *m;
	m->rules = r;
	m->plan = plan;
	m->limits.tuples = l && l->tuples ? l->tuples : TUPLES;
	m->limits.value_bytes = l && l->value_bytes ? l->value_bytes : VALUE_BYTES;
	m->limits.bytes = l && l->bytes ? l->bytes : BYTES;
	m->mem.max = m->limits.bytes;
	m->values.free = RL_NONE;
	m->values.value_max = m->limits.value_bytes;
	get_room(m);
	m->fixed_bytes = m->mem.used;
	return m;
}

/* Others must not be able to prepare values that collide. Nothing but time depends on it. */
static uint64_t random_seed(void)
{
	uint64_t seed = (uint64_t)(uintptr_t)&seed;

	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) < 0)
		seed *= 0x9e3779b97f4a7c15u;
	return seed;
}

struct rules_monitor *rules_monitor_new(const struct rules *r, const struct rules_limits *limits)
{
	struct rl_plan *own = r->plan ? NULL : rl_plan_new(r);
	struct rules_monitor *m;

	if (!r->plan && !own)
		return NULL;
	m = new_empty(r, own ? own : r->plan, limits);
	m->own_plan = own;
	m->values.seed = random_seed();
	for (uint32_t i = 0; i < m->plan->n_units; i++)
		rl_unit_init(m, i);
	for (uint32_t i = 0; i < r->n_kept; i++)
		rl_keep_init(m, i);
	return m;
}

void rules_monitor_free(struct rules_monitor *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->plan->n_units; i++)
		rl_unit_done(m, i);
	for (uint32_t i = 0; i < m->rules->n_kept; i++)
		rl_keep_done(m, i);
	for (uint32_t i = 0; i < m->values.used; i++)
		rl_release(&m->mem, m->values.items[i].v, m->values.items[i].size);
	rl_release(&m->mem, m->values.items, m->values.cap * sizeof *m->values.items);
	rl_release(&m->mem, m->values.heads, m->values.n_heads * sizeof *m->values.heads);
	rl_release(&m->mem, m->seen, m->n_seen * sizeof *m->seen);
#ifdef CS_TEST_SWITCHES
	if (m->mem.used != m->fixed_bytes)
		abort(); /* rules_monitor_bytes() has not told the truth */
#endif
	free(m->node_values);
	free(m->atom_values);
	free(m->touched);
	free((void *)m->bound);
	free((void *)m->vars);
	free(m->ids);
	free(m->new_bits);
	free(m->units);
	free(m->keeps);
	cs_arena_done(&m->scratch);
	rl_plan_free(m->own_plan);
	free(m);
}

static bool copy_values(struct rules_monitor *to, const struct rl_values *from)
{
	struct rl_values *v = &to->values;
	bool ok = true;

	*v = *from;
	v->heads = from->n_heads ? rl_resize(&to->mem, NULL, 0, from->n_heads * sizeof *v->heads) : NULL;
	v->items = from->cap ? rl_resize(&to->mem, NULL, 0, from->cap * sizeof *v->items) : NULL;
	if ((from->n_heads && !v->heads) || (from->cap && !v->items)) {
		v->used = 0;
		return false;
	}
	if (v->heads)
		memcpy(v->heads, from->heads, from->n_heads * sizeof *v->heads);
	for (uint32_t i = 0; v->items && i < from->used; i++) {
		v->items[i] = from->items[i];
		if (!v->items[i].v)
			continue;
		v->items[i].v = rl_pack(&to->mem, from->items[i].v, SIZE_MAX, &v->items[i].size);
		ok = ok && v->items[i].v;
	}
	return ok;
}

/* The plan is shared, except by monitors of rules that have none: those make one each. */
struct rules_monitor *rules_monitor_fork(const struct rules_monitor *m)
{
	struct rl_plan *own = m->own_plan ? rl_plan_new(m->rules) : NULL;
	struct rules_monitor *f;
	bool ok;

	if (m->own_plan && !own)
		return NULL;
	f = new_empty(m->rules, own ? own : m->plan, &m->limits);
	f->own_plan = own;
	f->events = m->events;
	f->now = m->now;
	ok = copy_values(f, &m->values);
	for (uint32_t i = 0; i < m->plan->n_units; i++)
		ok = rl_unit_copy(f, m, i) && ok;
	for (uint32_t i = 0; i < m->rules->n_kept; i++)
		ok = rl_keep_copy(f, m, i) && ok;
	if (ok)
		return f;
	rules_monitor_free(f);
	return NULL;
}
