/* SPDX-License-Identifier: Apache-2.0 */
/* past.c - formulas over the events before, unrolled.
 *
 * Three-valued throughout, as in the monitor: an event that lacks an argument that
 * a formula asks for may or may not be one that is meant.
 */
#include "prove/internal.h"

#include <string.h>

static const struct tv no = { "false", "true" }, yes = { "true", "false" };

static struct tv sure(struct enc *e, ex value)
{
	return (struct tv){ .t = value, .f = x_not(e, value) };
}

static struct tv pick(struct enc *e, ex c, struct tv a, struct tv b)
{
	return (struct tv){ .t = x_name(e, "Bool", x_ite(e, c, a.t, b.t)), .f = x_name(e, "Bool", x_ite(e, c, a.f, b.f)) };
}

/* ---- events ---- */

ex tools_called(struct enc *e, const struct policy *pol, const struct rl_tools *t, int step)
{
	ex any = "false";

	if (t->n == pol->r->n_tools && t->n == e->n_tools)
		return e->steps[step].call;
	for (uint32_t i = 0; i < t->n; i++)
		any = x_or(e, any, e->steps[step].tool[pol->tool[t->ids[i]]]);
	return x_name(e, "Bool", any);
}

static ex event_kind(const struct scope *s, const struct rl_formula *f, int at)
{
	const struct step *st = &s->e->steps[at / 2];
	bool second = at & 1;

	switch (f->event) {
	case RL_EV_USER: return second ? "false" : st->user;
	case RL_EV_CONFIRM: return second ? "false" : st->confirm;
	case RL_EV_CALL: return second ? "false" : tools_called(s->e, s->pol, &f->call->tools, at / 2);
	case RL_EV_OK: return second ? x_and(s->e, st->ok, tools_called(s->e, s->pol, &f->call->tools, at / 2)) : "false";
	case RL_EV_FAIL: return second ? x_and(s->e, st->fail, tools_called(s->e, s->pol, &f->call->tools, at / 2)) : "false";
	}
	return "false";
}

static bool call_binds(const struct rl_call *c)
{
	for (uint32_t i = 0; c && i < c->n_args; i++)
		if (c->args[i].kind == RL_ARG_VAR)
			return true;
	return false;
}

/* An event and the values that it binds to the rule's variables. */
struct match {
	struct tv fits; /* its pattern and its `where`, whatever the values are; unknown if one is absent */
	ex same;        /* the values are those of the present call */
};

static struct match match_at(const struct scope *s, const struct rl_formula *f, int at)
{
	struct match m = { .fits = sure(s->e, event_kind(s, f, at)), .same = "true" };
	struct enc *e = s->e;
	ex bound = "true";

	if (x_false(m.fits.t) || !f->call)
		return m;
	for (uint32_t i = 0; i < f->call->n_args; i++) {
		const struct rl_arg *a = &f->call->args[i];
		const struct slot *slot;

		if (a->kind != RL_ARG_VAR) {
			m.fits = tv_and(e, m.fits, arg_matches(s, a, at / 2));
			continue;
		}
		slot = slot_find(e, SLOT_ARG, a->path, a->steps);
		bound = x_and(e, bound, slot ? slot->at[at / 2].p : "false");
		if (slot && a->var < s->n_vars)
			m.same = x_and(e, m.same, val_equal(e, &slot->at[at / 2], &s->vars[a->var]));
	}
	if (f->where) {
		struct scope in = *s;

		in.step = at / 2;
		in.in_event = true;
		in.end = false;
		m.fits = tv_and(e, m.fits, formula(&in, f->where));
	}
	m.fits.t = x_name(e, "Bool", x_and(e, m.fits.t, bound));
	m.same = s->other && call_binds(f->call) ? "false" : x_name(e, "Bool", m.same);
	return m;
}

/* A value that is absent may have been any: then the event may have been meant whatever the others are. */
struct tv event_at(const struct scope *s, const struct rl_formula *f, int at)
{
	struct match m = match_at(s, f, at);
	struct enc *e = s->e;

	if (x_true(m.same))
		return m.fits;
	return (struct tv){ .t = x_name(e, "Bool", x_and(e, m.fits.t, m.same)),
			    .f = x_name(e, "Bool", x_or(e, m.fits.f, x_and(e, m.fits.t, x_not(e, m.same)))) };
}

/* ---- operators ---- */

/* Does its value depend on the rule's variables? */
static bool binds(const struct rl_formula *f)
{
	if (!f)
		return false;
	for (uint32_t i = 0; i < f->n_seq; i++)
		if (binds(f->seq[i]))
			return true;
	return call_binds(f->call) || binds(f->a) || binds(f->b);
}

/* Was there an event at this position at all? */
static ex happened(const struct scope *s, int at)
{
	return at & 1 ? s->e->steps[at / 2].result : "true";
}

/* The first n events of a sequence, in order, up to here. */
static struct tv sequence(const struct scope *s, const struct rl_formula *f, uint32_t n, int at, int binding)
{
	const struct tv *known;
	struct tv before, now;

	if (n == 0)
		return yes;
	if (at < 0)
		return no;
	known = memo_get(s->e, &f->seq[n - 1], at, binding);
	if (known)
		return *known;
	before = sequence(s, f, n, at - 1, binding);
	now = tv_and(s->e, event_at(s, f->seq[n - 1], at), sequence(s, f, n - 1, at - 1, binding));
	return memo_put(s->e, &f->seq[n - 1], at, binding, tv_or(s->e, before, now));
}

static struct tv first(const struct scope *s, const struct rl_formula *f)
{
	switch (f->op) {
	case RL_TRUE: case RL_HIST: return yes;
	case RL_NOT: return tv_not(past(s, f->a, -1));
	case RL_AND: return tv_and(s->e, past(s, f->a, -1), past(s, f->b, -1));
	case RL_OR: return tv_or(s->e, past(s, f->a, -1), past(s, f->b, -1));
	default: return no;
	}
}

static struct tv after(const struct scope *s, const struct rl_formula *f, int at, int binding)
{
	struct enc *e = s->e;

	switch (f->op) {
	case RL_TRUE: return yes;
	case RL_NOT: return tv_not(past(s, f->a, at));
	case RL_AND: return tv_and(e, past(s, f->a, at), past(s, f->b, at));
	case RL_OR: return tv_or(e, past(s, f->a, at), past(s, f->b, at));
	case RL_EVENT: return at & 1 ? pick(e, happened(s, at), event_at(s, f, at), past(s, f, at - 1)) : event_at(s, f, at);
	case RL_ONCE: return tv_or(e, past(s, f->a, at), past(s, f, at - 1));
	case RL_HIST: return tv_and(e, past(s, f->a, at), past(s, f, at - 1));
	case RL_SINCE: return tv_or(e, past(s, f->b, at), tv_and(e, past(s, f->a, at), past(s, f, at - 1)));
	case RL_PREV:
		if (at == 0)
			return no;
		return at & 1 ? pick(e, happened(s, at), past(s, f->a, at - 1), past(s, f, at - 1)) : past(s, f->a, at - 1);
	case RL_SEQ: return sequence(s, f, f->n_seq, at, binding);
	default: return no;
	}
}

struct tv past(const struct scope *s, const struct rl_formula *f, int at)
{
	int binding = binds(f) ? s->binding : -1;
	const struct tv *known;

	if (at < 0)
		return first(s, f);
	known = memo_get(s->e, f, at, binding);
	return known ? *known : memo_put(s->e, f, at, binding, after(s, f, at, binding));
}

/* ---- last, count, sum ---- */

static struct val result_at(const struct scope *s, const struct rl_term *t, int step, const void *arg)
{
	(void)arg;
	return inside_value(s, SLOT_RESULT, t, step);
}

/* The variables that a call binds have a value. */
static ex bound_by(const struct scope *s, const struct rl_call *c)
{
	ex all = "true";

	for (uint32_t i = 0; c && i < c->n_args; i++)
		if (c->args[i].kind == RL_ARG_VAR)
			all = x_and(s->e, all, c->args[i].var < s->n_vars ? s->vars[c->args[i].var].p : "false");
	return all;
}

static ex bound_in(const struct scope *s, const struct rl_formula *f)
{
	ex all;

	if (!f)
		return "true";
	all = x_and(s->e, bound_by(s, f->call), x_and(s->e, bound_in(s, f->a), bound_in(s, f->b)));
	for (uint32_t i = 0; i < f->n_seq; i++)
		all = x_and(s->e, all, bound_in(s, f->seq[i]));
	return all;
}

/* As it is asked at the present call: of values that are absent nothing is known. */
struct tv past_now(const struct scope *s, const struct rl_formula *f)
{
	struct tv v = past(s, f, 2 * s->step - 1);
	ex bound = x_name(s->e, "Bool", bound_in(s, f));

	return (struct tv){ .t = x_and(s->e, bound, v.t), .f = x_and(s->e, bound, v.f) };
}

/* From the latest step back; where one may have been meant and may not, nothing is known. */
struct val past_last_by(const struct scope *s, const struct rl_term *t, last_fn *at, const void *arg)
{
	struct rl_formula ok = { .op = RL_EVENT, .event = RL_EV_OK, .call = t->call };
	struct enc *e = s->e;
	struct val v = val_absent();

	for (int i = 0; i < s->step; i++) {
		struct match m = match_at(s, &ok, 2 * i + 1);
		struct val here = at(s, t, i, arg);

		v.p = x_and(e, v.p, x_or(e, m.fits.t, m.fits.f));
		v = val_ite(e, x_name(e, "Bool", x_and(e, m.fits.t, m.same)), &here, &v);
		v = val_named(e, &v);
	}
	v.p = x_and(e, v.p, bound_by(s, t->call));
	return v;
}

struct val past_last(const struct scope *s, const struct rl_term *t)
{
	return past_last_by(s, t, result_at, NULL);
}

static ex in_window(const struct scope *s, const struct rl_term *t, int step)
{
	struct enc *e = s->e;

	if (!t->within_ms)
		return "true";
	return x(e, "(< (- %s %s) %llu)", s->end ? "t_end" : e->steps[s->step].t, e->steps[step].t, (unsigned long long)t->within_ms);
}

/* Known only if it is known of every event whether it counts. */
struct val past_count(const struct scope *s, const struct rl_term *t)
{
	struct enc *e = s->e;
	ex sum = "0", known = bound_in(s, t->past);

	if (t->within_ms && t->past->op != RL_EVENT) /* the monitor does not know either */
		return val_absent();
	for (int at = 0; at < 2 * s->step; at++) {
		struct tv v = past(s, t->past, at);
		ex here = x_and(e, happened(s, at), in_window(s, t, at / 2));

		if (x_false(v.t) && x_true(v.f))
			continue;
		here = x_name(e, "Bool", here);
		known = x_and(e, known, x_or(e, x_not(e, here), x_or(e, v.t, v.f)));
		sum = x_name(e, "Int", x(e, "(+ %s (ite %s 1 0))", sum, x_and(e, here, v.t)));
	}
	return (struct val){ .mask = T_NUM, .p = x_name(e, "Bool", known), .n = sum, .whole = true };
}

struct val past_sum(const struct scope *s, const struct rl_term *t)
{
	const struct slot *slot = slot_find(s->e, SLOT_ARG, t->path, t->steps);
	struct enc *e = s->e;
	ex sum = "0.0", known = bound_in(s, t->past);

	if (!slot)
		return asked_term(s, t);
	for (int at = 0; at < 2 * s->step; at++) {
		const struct val *arg = &slot->at[at / 2];
		struct tv v = event_at(s, t->past, at);
		ex here, number;

		if (x_false(v.t) && x_true(v.f))
			continue;
		here = x_name(e, "Bool", in_window(s, t, at / 2));
		number = x_and(e, arg->p, val_is(e, arg, T_NUM));
		known = x_and(e, known, x_or(e, x_not(e, here), x_or(e, v.f, x_and(e, v.t, number))));
		if (arg->n)
			sum = x_name(e, "Real", x(e, "(+ %s (ite %s %s 0.0))", sum, x_and(e, here, v.t),
						  arg->whole ? x(e, "(to_real %s)", arg->n) : arg->n));
	}
	return (struct val){ .mask = T_NUM, .p = x_name(e, "Bool", known), .n = sum };
}
