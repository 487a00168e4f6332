/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c - what a formula is, for a call or for any call of a tool.
 *
 * One evaluator for two questions.  For a call that is there, every formula is
 * true, false or unknown.  For a tool whose arguments are not there yet, a formula
 * is the set of what it may be; sets are combined element by element as if the
 * operands were independent, so they may be too large and are never too small.
 */
#include "rules/monitor_internal.h"

#include <string.h>

const struct json rl_any = { .type = JSON_NULL }, rl_other = { .type = JSON_NULL };

rl_set rl_not(rl_set a)
{
	return (rl_set)((a & RL_MAY_UNKNOWN) | (a & RL_MAY_FALSE ? RL_MAY_TRUE : 0) | (a & RL_MAY_TRUE ? RL_MAY_FALSE : 0));
}

rl_set rl_and(rl_set a, rl_set b)
{
	rl_set r = (a | b) & RL_MAY_FALSE;

	if ((a & RL_MAY_UNKNOWN && b & (RL_MAY_UNKNOWN | RL_MAY_TRUE)) || (b & RL_MAY_UNKNOWN && a & (RL_MAY_UNKNOWN | RL_MAY_TRUE)))
		r |= RL_MAY_UNKNOWN;
	return (rl_set)(r | (a & b & RL_MAY_TRUE));
}

static rl_set or(rl_set a, rl_set b)
{
	return rl_not(rl_and(rl_not(a), rl_not(b)));
}

/* ---- terms ---- */

static const struct json *step_by(const struct json *v, const struct json *by)
{
	int64_t i;

	if (json_is(by, JSON_STRING))
		return json_getn(v, by->s, by->n);
	if (json_int(by, &i) && i >= 0)
		return json_at(v, (size_t)i);
	return NULL;
}

const struct json *rl_walk(struct rl_eval *e, const struct json *v, const struct rl_step *path, uint32_t steps)
{
	for (uint32_t i = 0; i < steps && v; i++) {
		const struct json *by;

		if (v == &rl_any)
			return v;
		if (!path[i].term) {
			v = path[i].key ? json_get(v, path[i].key) : path[i].index >= 0 ? json_at(v, (size_t)path[i].index) : NULL;
			continue;
		}
		by = rl_eval_term(e, path[i].term);
		v = by == &rl_any ? by : by ? step_by(v, by) : NULL;
	}
	return v;
}

static struct json *new_array(struct rl_eval *e, uint32_t n, struct json **ret_items)
{
	struct json *v = cs_arena_new(&e->m->scratch, struct json);

	*ret_items = cs_arena_get(&e->m->scratch, n, sizeof **ret_items);
	if (!v || !*ret_items)
		return NULL;
	*v = (struct json){ .type = JSON_ARRAY, .n = n, .items = *ret_items };
	return v;
}

static void set_str(struct json *v, const char *s, size_t len)
{
	*v = (struct json){ .type = JSON_STRING, .n = (uint32_t)len, .s = s };
}

static const struct json *members_of(struct rl_eval *e, const struct json *v, bool keys)
{
	struct json *items, *array;

	if (!json_is(v, JSON_OBJECT))
		return NULL;
	array = new_array(e, v->n, &items);
	for (uint32_t i = 0; array && i < v->n; i++)
		if (keys)
			set_str(&items[i], v->members[i].key, v->members[i].key_len);
		else
			items[i] = v->members[i].value;
	return array;
}

static const struct json *length_of(struct rl_eval *e, const struct json *v)
{
	int64_t n = 0;

	if (json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT))
		return json_new_int(&e->m->scratch, v->n);
	if (!json_is(v, JSON_STRING))
		return NULL;
	for (uint32_t i = 0; i < v->n; i++)
		n += ((unsigned char)v->s[i] & 0xc0) != 0x80; /* the first byte of a character */
	return json_new_int(&e->m->scratch, n);
}

static const struct json *arithmetic(struct rl_eval *e, enum rl_term_kind kind, const struct json *a, const struct json *b)
{
	struct rl_num x, y;

	if (!rl_num_of(a, &x) || !rl_num_of(b, &y))
		return NULL;
	if (kind == RL_T_SUB)
		y.digits = -y.digits;
	if (kind == RL_T_MUL ? !rl_num_mul(&x, &y, &x) : !rl_num_add(&x, &y, &x))
		return NULL;
	return rl_num_json(&e->m->scratch, &x);
}

static const struct json *tool_name(struct rl_eval *e)
{
	const char *name = e->tool == RL_NONE ? "end" : e->m->rules->tools[e->tool].name;

	return json_new_str(&e->m->scratch, name, strlen(name));
}

static const struct json *tool_effects(struct rl_eval *e)
{
	static const char *const names[] = { "reads", "writes", "net", "runs", "spends" };
	struct json *items, *array;

	if (e->tool == RL_NONE)
		return NULL;
	array = new_array(e, 5, &items);
	if (!array)
		return NULL;
	array->n = 0;
	for (uint32_t i = 0; i < 5; i++)
		if (e->m->rules->tools[e->tool].effects & 1u << i)
			set_str(&items[array->n++], names[i], strlen(names[i]));
	return array;
}

/* What only the host knows, of an argument that is there. */
static const struct json *ask(struct rl_eval *e, const struct rl_term *t, const struct json *of)
{
	const struct rules_world *w = e->world;
	struct cs_arena *a = &e->m->scratch;

	if (!w)
		return NULL;
	switch (t->kind) {
	case RL_T_SESSION: return w->session ? w->session(w->ctx, a, t->name) : NULL;
	case RL_T_FROM: return w->from ? w->from(w->ctx, a, of) : NULL;
	case RL_T_SHELL: return w->shell ? w->shell(w->ctx, a, of) : NULL;
	default: return w->shell_effect ? w->shell_effect(w->ctx, a, t->name, of) : NULL;
	}
}

static const struct json *unary(struct rl_eval *e, const struct rl_term *t)
{
	const struct json *a = rl_eval_term(e, t->a);

	if (!a || a == &rl_any)
		return a;
	switch (t->kind) {
	case RL_T_LEN: return length_of(e, a);
	case RL_T_KEYS: return members_of(e, a, true);
	case RL_T_VALUES: return members_of(e, a, false);
	default: return ask(e, t, a);
	}
}

static const struct json *binary(struct rl_eval *e, const struct rl_term *t)
{
	const struct json *a = rl_eval_term(e, t->a), *b = a ? rl_eval_term(e, t->b) : NULL;

	if (!a || !b)
		return NULL;
	return a == &rl_any || b == &rl_any ? &rl_any : arithmetic(e, t->kind, a, b);
}

const struct json *rl_eval_term(struct rl_eval *e, const struct rl_term *t)
{
	switch (t->kind) {
	case RL_T_CONST:
	case RL_T_SET:
		return t->value;
	case RL_T_ARG:
		return e->any ? &rl_any : rl_walk(e, e->args, t->path, t->steps);
	case RL_T_RESULT:
		return e->in_event ? rl_walk(e, e->result, t->path, t->steps) : NULL;
	case RL_T_VAR:
		return e->vars && e->vars[t->var] != &rl_other ? e->vars[t->var] : NULL;
	case RL_T_LOCAL:
		return t->var < RL_LOCALS_MAX ? rl_walk(e, e->locals[t->var], t->path, t->steps) : NULL;
	case RL_T_LAST:
	case RL_T_COUNT:
	case RL_T_SUM:
		return e->in_event || t->id >= e->m->rules->n_kept ? NULL : rl_keep_value(e, t);
	case RL_T_ADD:
	case RL_T_SUB:
	case RL_T_MUL:
		return binary(e, t);
	case RL_T_SESSION:
		return ask(e, t, NULL);
	case RL_T_EFFECTS:
		return tool_effects(e);
	case RL_T_TOOL:
		return tool_name(e);
	default:
		return unary(e, t);
	}
}

/* ---- formulas ---- */

static rl_set compared(struct rl_eval *e, const struct rl_formula *f)
{
	const struct json *a = rl_eval_term(e, f->l), *b = f->op == RL_MATCHES || !a ? a : rl_eval_term(e, f->r);

	if (!a || !b)
		return RL_MAY_UNKNOWN;
	if (a == &rl_any || b == &rl_any)
		return RL_MAY_ALL;
	return rl_only(f->op == RL_MATCHES ? rl_matches(a, f->pattern) : rl_compare(f->op, a, b));
}

static rl_set present(struct rl_eval *e, const struct rl_formula *f)
{
	const struct json *v = rl_eval_term(e, f->l);

	if (v == &rl_any)
		return RL_MAY_TRUE | RL_MAY_FALSE;
	return v ? RL_MAY_TRUE : RL_MAY_FALSE;
}

static rl_set quantified(struct rl_eval *e, const struct rl_formula *f)
{
	const struct json *over = rl_eval_term(e, f->l);
	rl_set r = f->op == RL_ALL ? RL_MAY_TRUE : RL_MAY_FALSE;

	if (f->var >= RL_LOCALS_MAX)
		return RL_MAY_UNKNOWN;
	if (over == &rl_any) { /* none, or some of which each is anything, or it is not there */
		e->locals[f->var] = over;
		return (rl_set)(r | RL_MAY_UNKNOWN | rl_eval(e, f->a));
	}
	if (!json_is(over, JSON_ARRAY))
		return RL_MAY_UNKNOWN;
	for (uint32_t i = 0; i < over->n; i++) {
		e->locals[f->var] = &over->items[i];
		r = f->op == RL_ALL ? rl_and(r, rl_eval(e, f->a)) : or(r, rl_eval(e, f->a));
		if (r == (f->op == RL_ALL ? RL_MAY_FALSE : RL_MAY_TRUE))
			break;
	}
	return r;
}

static rl_set past(struct rl_eval *e, const struct rl_formula *f)
{
	uint32_t unit = f->id < e->m->rules->n_pasts && !e->in_event ? e->m->plan->unit_of_past[f->id] : RL_NONE;

	return unit == RL_NONE ? RL_MAY_UNKNOWN : rl_unit_value(e, unit, e->m->rules->pasts[f->id].vars);
}

rl_set rl_eval(struct rl_eval *e, const struct rl_formula *f)
{
	rl_set a;

	if (f->id != UINT32_MAX)
		return past(e, f);
	switch (f->op) {
	case RL_TRUE: return RL_MAY_TRUE;
	case RL_FALSE: return RL_MAY_FALSE;
	case RL_NOT: return rl_not(rl_eval(e, f->a));
	case RL_AND:
		a = rl_eval(e, f->a);
		return a == RL_MAY_FALSE ? a : rl_and(a, rl_eval(e, f->b));
	case RL_OR:
		a = rl_eval(e, f->a);
		return a == RL_MAY_TRUE ? a : or(a, rl_eval(e, f->b));
	case RL_PRESENT: return present(e, f);
	case RL_ALL:
	case RL_ANY: return quantified(e, f);
	default:
		return f->op < RL_EVENT ? compared(e, f) : past(e, f);
	}
}

/* ---- call patterns ---- */

static enum rl_truth match_var(const struct json **vars, uint32_t var, const struct json *v)
{
	if (!vars[var])
		vars[var] = v;
	return vars[var] == v || json_equal(vars[var], v) ? RL_IS_TRUE : RL_IS_FALSE;
}

static enum rl_truth match_arg(struct rl_eval *e, const struct rl_arg *arg, const struct json **vars)
{
	const struct json *v = rl_walk(e, e->args, arg->path, arg->steps);

	if (!v)
		return RL_IS_UNKNOWN;
	switch (arg->kind) {
	case RL_ARG_VAR: return match_var(vars, arg->var, v);
	case RL_ARG_CONST: return json_equal(arg->value, v) ? RL_IS_TRUE : RL_IS_FALSE;
	case RL_ARG_PATTERN: return rl_matches(v, arg->pattern);
	default: return RL_IS_TRUE;
	}
}

static bool has_tool(const struct rl_tools *t, uint32_t tool)
{
	uint32_t lo = 0, hi = t->n;

	if (tool == RL_NONE)
		return t->end;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t->ids[mid] < tool)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n && t->ids[lo] == tool;
}

enum rl_truth rl_match(struct rl_eval *e, const struct rl_call *c, const struct json **vars)
{
	enum rl_truth t = RL_IS_TRUE, one;

	if (!has_tool(&c->tools, e->tool))
		return RL_IS_FALSE;
	for (uint32_t i = 0; i < c->n_args; i++) {
		one = match_arg(e, &c->args[i], vars);
		if (one == RL_IS_FALSE)
			return one;
		t = one < t ? one : t;
	}
	return t;
}
