/* SPDX-License-Identifier: Apache-2.0 */
/* checks.c - what is asked of one file, and of a file against its predecessor. */
#include "prove/internal.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *prove_about_name(enum prove_about a)
{
	static const char *const names[] = { "tool", "rule", "subsumed", "obligation", "assert", "narrower", "step" };

	return names[a];
}

const char *prove_outcome_name(enum prove_outcome o)
{
	static const char *const names[] = { "fine", "found", "note", "cannot" };

	return names[o];
}

/* What a search left open, and what no search has looked at, is never called fine. */
static void put_open(struct job *j, struct prove_finding *f, const struct goal *g)
{
	f->outcome = PROVE_CANNOT;
	f->why = report_text(j, "%s", g->why ? g->why : "the solver does not know");
}

/* ---- tools: can each be called? ---- */

static ex tool_target(struct job *j, const struct goal *g, uint32_t k)
{
	return k ? j->e.steps[k - 1].tool[g->index] : "false";
}

static bool tool_verify(struct job *j, const struct goal *g, struct trace *t)
{
	struct replay r = trace_replay(t, &j->p, false);

	return r.legal && r.verdict != RULES_DENY && t->steps[t->n - 1].tool == g->index;
}

static void tell_tool(struct job *j, struct goal *g)
{
	const char *name = report_text(j, "%s", j->e.tools[g->index].name);
	struct prove_finding *f = report_add(j, PROVE_TOOL, PROVE_FINE, name);

	if (g->state == GOAL_REACHED) {
		f->text = report_text(j, "can be called, after %u step%s", g->k - 1, g->k == 2 ? "" : "s");
		f->trace = g->trace;
	} else if (g->state == GOAL_UNDECIDED) {
		put_open(j, f, g);
		f->text = "can it be called?";
	} else {
		const char *const *rules = blame(j, g, true);
		bool several = rules && rules[0] && rules[1];

		f->outcome = PROVE_FOUND;
		f->rules = rules;
		if (several)
			f->text = report_text(j, "can never be called within %u steps: %s contradict one another; without any one of them it could be",
					      g->most, names_text(j, rules));
		else if (rules && rules[0])
			f->text = report_text(j, "can never be called within %u steps: %s forbids it", g->most, rules[0]);
		else
			f->text = report_text(j, "can never be called within %u steps", g->most);
	}
}

static void check_tools(struct job *j)
{
	uint32_t n = j->e.n_tools;
	struct goal *goals = cs_calloc(n + 1, sizeof *goals);

	for (uint32_t i = 0; i < n; i++)
		goals[i] = (struct goal){ .target = tool_target, .verify = tool_verify, .index = i, .least = 1, .most = j->depth, .last_legal = true };
	search(j, goals, n);
	for (uint32_t i = 0; i < n; i++)
		tell_tool(j, &goals[i]);
	free(goals);
}

/* ---- rules: can each fire, and does it change anything? ---- */

static bool at_end(const struct job *j, uint32_t rule)
{
	return j->p.r->rules[rule].call->tools.end;
}

/* After k steps; a call is the last of them. */
static ex fires_after(struct job *j, uint32_t rule, uint32_t k)
{
	bool end = at_end(j, rule);

	return !end && k == 0 ? "false" : rule_fires(&j->e, &j->p, rule, end ? (int)k : (int)k - 1, end);
}

/* The largest number that something counted is compared with: so many events must be there before it makes a difference. */
static uint32_t counts_to(const struct rl_formula *f)
{
	const struct rl_term *of = !f || !f->l || !f->r ? NULL : f->l->kind == RL_T_COUNT ? f->r : f->r->kind == RL_T_COUNT ? f->l : NULL;
	uint32_t a, b;
	int64_t n;

	if (!f)
		return 0;
	if (of && of->kind == RL_T_CONST && json_int(of->value, &n))
		return n < 0 ? 0 : n > 1000000 ? 1000000 : (uint32_t)n;
	a = counts_to(f->a);
	b = counts_to(f->b);
	return a > b ? a : b;
}

static uint32_t rule_counts_to(const struct rl_rule *r)
{
	uint32_t a = counts_to(r->where), b = counts_to(r->unless);

	return a > b ? a : b;
}

/* How far to look for a trace on which it fires: past what it counts. */
static uint32_t depth_for(const struct job *j, const struct rl_rule *r)
{
	uint32_t need = rule_counts_to(r) + 2;

	if (!j->deeper || need <= j->depth || need > PROVE_DEPTH_MAX)
		return j->depth;
	return need;
}

static ex rule_target(struct job *j, const struct goal *g, uint32_t k)
{
	return fires_after(j, g->index, k);
}

static bool rule_verify(struct job *j, const struct goal *g, struct trace *t)
{
	bool end = at_end(j, g->index);

	return trace_replay(t, &j->p, end).legal && trace_fires(t, &j->p, g->index, end);
}

/* Fires, and without it the verdict would be another. */
static ex change_target(struct job *j, const struct goal *g, uint32_t k)
{
	struct enc *e = &j->e;
	const struct rules *r = j->p.r;
	enum rules_verdict v = r->rules[g->index].verb;
	enum rules_verdict otherwise = at_end(j, g->index) ? RULES_ALLOW : rules_fallback(r, RULES_ALLOW);
	ex stricter = "false", any = "false", changes;

	for (uint32_t i = 0; i < r->n_rules; i++) {
		ex fires = i == g->index || at_end(j, i) != at_end(j, g->index) ? "false" : fires_after(j, i, k);

		any = x_or(e, any, fires);
		if (r->rules[i].verb >= v)
			stricter = x_or(e, stricter, fires);
	}
	changes = x_and(e, any, x_not(e, stricter));
	if (otherwise != v)
		changes = x_or(e, changes, x_not(e, any));
	return x_and(e, fires_after(j, g->index, k), changes);
}

static bool change_verify(struct job *j, const struct goal *g, struct trace *t)
{
	bool end = at_end(j, g->index);
	struct replay with = trace_replay(t, &j->p, end), without = trace_replay_without(t, &j->p, g->index, end);

	return with.legal && with.verdict != without.verdict;
}

/* It fires, and none of the rules that say the same or more. */
static ex bare_target(struct job *j, const struct goal *g, uint32_t k)
{
	struct enc *e = &j->e;
	ex all = fires_after(j, g->index, k);

	for (uint32_t i = 0; i < j->p.r->n_rules; i++)
		if (i != g->index && at_end(j, i) == at_end(j, g->index) && j->p.r->rules[i].verb >= j->p.r->rules[g->index].verb)
			all = x_and(e, all, x(e, "(=> %s %s)", switch_of(e, &j->p, i), x_not(e, fires_after(j, i, k))));
	return all;
}

/* The same after steps that are legal whichever switches are off. */
static ex cover_target(struct job *j, const struct goal *g, uint32_t k)
{
	struct enc *e = &j->e;
	ex all = bare_target(j, g, k);

	for (uint32_t i = 0; i + !at_end(j, g->index) < k; i++)
		all = x_and(e, all, x_not(e, verdict_at_least(e, &j->p, (int)i, false, RULES_DENY)));
	return all;
}

/* The rules that say the same or more wherever this one fires. */
static const char *const *covered_by(struct job *j, const struct goal *g)
{
	struct goal cover = { .target = bare_target, .index = g->index, .least = g->least, .most = g->most };
	const char *const *rules = blame(j, &cover, /* legal= */ false);

	if (rules)
		return rules;
	cover.target = cover_target;
	return blame(j, &cover, /* legal= */ true);
}

static void tell_change(struct job *j, struct goal *g)
{
	const struct rl_rule *r = &j->p.r->rules[g->index];
	struct prove_finding *f;
	const char *const *rules;

	if (g->state == GOAL_REACHED)
		return;
	f = report_add(j, PROVE_SUBSUMED, PROVE_NOTE, report_text(j, "%s", r->name));
	f->line = r->pos.line;
	if (g->state == GOAL_UNDECIDED) {
		put_open(j, f, g);
		f->text = "does it change anything?";
		return;
	}
	rules = covered_by(j, g);
	f->rules = rules && rules[0] ? rules : NULL;
	f->text = f->rules ? report_text(j, "changes nothing within %u steps: whenever it fires, %s%s does too", g->most, rules[1] ? "one of " : "", names_text(j, rules)) :
			     report_text(j, "changes nothing within %u steps: the verdict is the same without it", g->most);
}

static void tell_rule(struct job *j, struct goal *g)
{
	const struct rl_rule *r = &j->p.r->rules[g->index];
	struct prove_finding *f = report_add(j, PROVE_RULE, PROVE_FINE, report_text(j, "%s", r->name));

	f->line = r->pos.line;
	f->depth = g->most;
	if (g->state == GOAL_REACHED) {
		f->text = report_text(j, "can fire, after %u step%s", at_end(j, g->index) ? g->k : g->k - 1, g->k - !at_end(j, g->index) == 1 ? "" : "s");
		f->trace = g->trace;
	} else if (g->state == GOAL_UNDECIDED) {
		put_open(j, f, g);
		f->text = "can it fire?";
	} else {
		uint32_t counted = rule_counts_to(r);
		bool shallow = counted >= g->most;

		f->outcome = shallow ? PROVE_NOTE : PROVE_FOUND;
		f->text = shallow ? report_text(j, "does not fire within %u steps, which is no wonder: it counts to %u", g->most, counted) :
				    report_text(j, "can never fire within %u steps", g->most);
	}
}

static void check_rules(struct job *j)
{
	uint32_t n = j->p.r->n_rules, live = 0;
	struct goal *fire = cs_calloc(n + 1, sizeof *fire), *change = cs_calloc(n + 1, sizeof *change);

	for (uint32_t i = 0; i < n; i++)
		fire[i] = (struct goal){ .target = rule_target, .verify = rule_verify, .index = i, .least = !at_end(j, i), .most = depth_for(j, &j->p.r->rules[i]),
					 .last_legal = at_end(j, i) };
	search(j, fire, n);
	for (uint32_t i = 0; i < n; i++) {
		tell_rule(j, &fire[i]);
		if (fire[i].state == GOAL_REACHED) {
			change[live] = fire[i];
			change[live].target = change_target;
			change[live].verify = change_verify;
			change[live].often_never = true;
			change[live++].state = GOAL_NONE;
		}
	}
	search(j, change, live);
	for (uint32_t i = 0; i < live; i++)
		tell_change(j, &change[i]);
	free(fire);
	free(change);
}

/* ---- obligations: can a session still end? ---- */

/* It was due at some point, and then the session ended well. */
static ex settle_target(struct job *j, const struct goal *g, uint32_t k)
{
	ex due = "false";

	for (uint32_t i = 0; i <= k; i++)
		due = x_or(&j->e, due, rule_fires(&j->e, &j->p, g->index, (int)i, true));
	return x_and(&j->e, due, step_legal(&j->e, &j->p, (int)k, true));
}

static bool settle_verify(struct job *j, const struct goal *g, struct trace *t)
{
	struct replay r = trace_replay(t, &j->p, true);
	bool due = false;
	uint32_t n = t->n;

	for (t->n = 0; t->n < n && !due; t->n++)
		due = trace_fires(t, &j->p, g->index, true);
	t->n = n;
	return r.legal && r.verdict != RULES_DENY && due;
}

static void check_obligation(struct job *j, uint32_t rule)
{
	const struct rl_rule *r = &j->p.r->rules[rule];
	struct goal g = { .target = settle_target, .verify = settle_verify, .index = rule, .most = j->depth, .last_legal = true };
	struct prove_finding *f;
	const char *const *rules;

	search(j, &g, 1);
	f = report_add(j, PROVE_OBLIGATION, PROVE_FINE, report_text(j, "%s", r->name));
	f->line = r->pos.line;
	f->trace = g.trace;
	f->text = "what it obliges to can be done before the session ends";
	if (g.state == GOAL_UNDECIDED) {
		put_open(j, f, &g);
		f->text = "can a session end after it has become due?";
	} else if (g.state == GOAL_NONE) {
		rules = blame(j, &g, true);
		f->outcome = PROVE_FOUND;
		f->rules = rules && rules[0] ? rules : NULL;
		f->text = report_text(j, "once it is due no session can end within %u steps%s%s", g.most, f->rules ? ": because of " : "", names_text(j, rules));
	}
}

static void check_obligations(struct job *j)
{
	for (uint32_t i = 0; i < j->p.r->n_rules; i++)
		if (at_end(j, i) && j->p.r->rules[i].verb == RULES_DENY)
			check_obligation(j, i);
}

/* ---- assertions ---- */

static ex assert_target(struct job *j, const struct goal *g, uint32_t k)
{
	struct scope s = { .e = &j->e, .pol = &j->p, .step = (int)k, .binding = -1, .end = true };

	return formula(&s, g->arg).t;
}

static bool assert_verify(struct job *j, const struct goal *g, struct trace *t)
{
	struct replay r = trace_replay(t, &j->p, true);

	return r.legal && trace_holds(t, &j->p, g->arg);
}

static void tell_assert(struct job *j, const struct rl_assert *a, struct goal *g)
{
	struct prove_finding *f = report_add(j, PROVE_ASSERT, PROVE_FINE, report_text(j, "%s", a->text));

	f->line = a->pos.line;
	f->depth = g->most;
	if (g->state == GOAL_UNDECIDED) {
		put_open(j, f, g);
		f->text = "does it hold?";
	} else if (g->state == GOAL_REACHED) {
		f->outcome = a->reachable ? PROVE_FINE : PROVE_FOUND;
		f->text = report_text(j, "%s in %u step%s", a->reachable ? "holds: reached" : "does not hold: reached", g->k, g->k == 1 ? "" : "s");
		f->trace = g->trace;
	} else {
		f->outcome = a->reachable ? PROVE_FOUND : PROVE_FINE;
		f->text = report_text(j, "%s within %u steps", a->reachable ? "does not hold: unreachable" : "holds: unreachable", g->most);
		if (a->reachable) {
			const char *const *rules = blame(j, g, true);

			f->rules = rules && rules[0] ? rules : NULL;
			if (f->rules)
				f->text = report_text(j, "does not hold: unreachable within %u steps because of %s", g->most, names_text(j, rules));
		}
	}
}

static int check_asserts(struct job *j, struct cs_err *err)
{
	for (uint32_t i = 0; i < j->p.r->n_asserts; i++) {
		const struct rl_assert *a = &j->p.r->asserts[i];
		struct goal g = { .target = assert_target, .verify = assert_verify, .arg = a->past, .most = a->depth ? a->depth : j->depth, .last_legal = true };

		if (g.most > PROVE_DEPTH_MAX)
			return cs_fail(err, CS_E_INVALID, 0, "%s:%u: a depth of %u; the most is %d", j->p.r->name, a->pos.line, g.most, PROVE_DEPTH_MAX);
		search(j, &g, 1);
		tell_assert(j, a, &g);
	}
	return 0;
}

/* ---- the whole ---- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int load(struct job *j, const struct rules *r, const char *prefix, struct policy *ret, struct cs_err *err)
{
	if (enc_policy(&j->e, r, prefix, ret) < 0)
		return cs_fail(err, CS_E_LIMIT, 0, "%s: too large to be proved", r->name);
	if (j->e.n_tools == 0)
		return cs_fail(err, CS_E_INVALID, 0, "%s: no tools are known; declare them with `tool NAME(...);` or give --tools MANIFEST", r->name);
	return 0;
}

int prove_rules(const struct rules *r, const struct prove_options *o, struct prove_report *ret, struct cs_err *err)
{
	uint64_t from = now_ms();
	struct job j;
	int e = job_start(&j, o, ret, err);

	if (e == 0)
		e = load(&j, r, "now", &j.p, err);
	if (e == 0) {
		enc_settle(&j.e);
		check_tools(&j);
		check_rules(&j);
		check_obligations(&j);
		e = check_asserts(&j, err);
	}
	job_end(&j);
	ret->ms = now_ms() - from;
	return e;
}

/* ---- a change that only narrows ---- */

static ex wider_target(struct job *j, const struct goal *g, uint32_t k)
{
	bool end = g->index == j->e.n_tools;
	int at = end ? (int)k : (int)k - 1;
	struct enc *e = &j->e;
	ex any = "false";

	if (at < 0)
		return any;
	for (enum rules_verdict v = RULES_SANDBOX; v <= RULES_DENY; v++)
		any = x_or(e, any, x_and(e, verdict_at_least(e, &j->old, at, end, v), x_not(e, verdict_at_least(e, &j->p, at, end, v))));
	return end ? any : x_and(e, any, e->steps[at].tool[g->index]);
}

static bool wider_verify(struct job *j, const struct goal *g, struct trace *t)
{
	bool end = g->index == j->e.n_tools;
	struct replay now = trace_replay(t, &j->p, end), was = trace_replay(t, &j->old, end);

	((struct goal *)g)->replay = was;
	((struct goal *)g)->arg = rules_verdict_name(now.verdict);
	return now.legal && now.verdict < was.verdict;
}

static void tell_wider(struct job *j, const struct goal *g, const char *old)
{
	const char *name = g->index == j->e.n_tools ? "end" : j->e.tools[g->index].name;
	struct prove_finding *f;

	if (g->state == GOAL_NONE)
		return;
	f = report_add(j, PROVE_NARROWER, PROVE_FOUND, report_text(j, "%s", name));
	if (g->state == GOAL_UNDECIDED) {
		put_open(j, f, g);
		f->text = "is it let through only where it was before?";
		return;
	}
	f->trace = g->trace;
	f->text = report_text(j, "wider: %s now, %s by %s%s%s", (const char *)g->arg, rules_verdict_name(g->replay.verdict), old,
			      g->replay.rule ? ", rule " : "", g->replay.rule ? g->replay.rule : "");
}

int prove_against(const struct rules *r, const struct rules *old, const struct prove_options *o, struct prove_report *ret, struct cs_err *err)
{
	uint64_t from = now_ms();
	struct goal *goals = NULL;
	struct job j;
	uint32_t n;
	int e = job_start(&j, o, ret, err);

	if (e == 0)
		e = load(&j, r, "now", &j.p, err);
	if (e == 0)
		e = load(&j, old, "was", &j.old, err);
	if (e == 0) {
		enc_settle(&j.e);
		n = j.e.n_tools + 1;
		goals = cs_calloc(n, sizeof *goals);
		for (uint32_t i = 0; i < n; i++)
			goals[i] = (struct goal){ .target = wider_target, .verify = wider_verify, .index = i, .least = i + 1 < n, .most = j.depth, .last_legal = i + 1 == n,
						 .often_never = true };
		search(&j, goals, n);
		for (uint32_t i = 0; i < n; i++)
			tell_wider(&j, &goals[i], old->name);
		if (!j.report->n)
			report_add(&j, PROVE_NARROWER, PROVE_FINE, report_text(&j, "%s", r->name))->text =
				report_text(&j, "lets nothing through within %u steps that %s would not", j.depth, old->name);
	}
	free(goals);
	job_end(&j);
	ret->ms = now_ms() - from;
	return e;
}
