/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - the shortest trace for each of many goals, and whose fault it is if there is none.
 *
 * Steps are added one by one to one solver that remembers what it has learned; every
 * question is put under assumptions: a switch for each rule, a literal for "the call of
 * step i is let through", and one for what is asked.  All goals that are still open are
 * asked about at once, and a model may answer several. */
#include "prove/internal.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERY_MS = 10000, TOTAL_MS = 60000, SCRATCH_MAX = 256 << 20, REPORT_MAX = 64 << 20 };
#define SOLVER_MEMORY (4ULL << 30)

/* ---- a run ---- */

int job_start(struct job *j, const struct prove_options *o, struct prove_report *report, struct cs_err *err)
{
	struct solver_limits l = { .query_ms = o->query_ms ? o->query_ms : QUERY_MS, .total_ms = o->total_ms ? o->total_ms : TOTAL_MS,
				   .memory = SOLVER_MEMORY };
	int r;

	*j = (struct job){ .report = report, .depth = o->depth ? o->depth : PROVE_DEPTH, .deeper = !o->depth, .scratch = CS_ARENA(SCRATCH_MAX) };
	*report = (struct prove_report){ .arena = CS_ARENA(REPORT_MAX), .depth = j->depth };
	if (j->depth > PROVE_DEPTH_MAX)
		return cs_fail(err, CS_E_INVALID, 0, "a depth of %u; the most is %d", j->depth, PROVE_DEPTH_MAX);
	r = solver_start(o->solver, &l, &j->s, err);
	if (r < 0)
		return r;
	enc_init(&j->e, solver_text(j->s));
	return 0;
}

void job_end(struct job *j)
{
	if (j->s)
		j->report->questions = solver_questions(j->s);
	solver_free(j->s);
	enc_done(&j->e);
	cs_arena_done(&j->scratch);
}

void prove_report_done(struct prove_report *r)
{
	cs_arena_done(&r->arena);
}

const char *report_text(struct job *j, const char *fmt, ...)
{
	va_list ap;
	char *to;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	to = n < 0 ? NULL : cs_arena_get(&j->report->arena, 1, (size_t)n + 1);
	if (!to)
		return "";
	va_start(ap, fmt);
	vsnprintf(to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return to;
}

struct prove_finding *report_add(struct job *j, enum prove_about about, enum prove_outcome outcome, const char *name)
{
	static struct prove_finding spare;
	struct prove_report *r = j->report;

	if (r->n == r->cap) {
		uint32_t cap = r->cap ? r->cap * 2 : 32;
		struct prove_finding *more = cs_arena_get(&r->arena, cap, sizeof *more);

		if (!more)
			return &spare;
		if (r->n)
			memcpy(more, r->findings, r->n * sizeof *more);
		r->findings = more;
		r->cap = cap;
	}
	r->findings[r->n] = (struct prove_finding){ .about = about, .outcome = outcome, .name = name, .depth = j->depth, .text = "" };
	return &r->findings[r->n++];
}

/* ---- one question ---- */

ex literal(struct job *j, ex fact)
{
	ex name = x_fresh(&j->e, "Bool", "q");

	cs_buf_fmt(j->e.out, "(assert (=> %s %s))\n", name, fact);
	return name;
}

/* l0, l1, ...: the call of step i is let through. */
static bool need_legal(struct job *j, uint32_t n)
{
	if (!enc_steps(&j->e, n))
		return false;
	for (; j->n_legal < n; j->n_legal++) {
		ex legal = step_legal(&j->e, &j->p, (int)j->n_legal, false);

		cs_buf_fmt(j->e.out, "(declare-const l%u Bool)\n(assert (=> l%u %s))\n", j->n_legal, j->n_legal, legal);
	}
	return !j->e.arena.over;
}

enum solver_answer ask_legal(struct job *j, const bool *off, uint32_t n, const ex *more, size_t n_more)
{
	uint32_t rules = j->p.r->n_rules + 1, used = 0;
	ex *assume;
	enum solver_answer a;

	if (!need_legal(j, n))
		return SOLVER_UNKNOWN;
	assume = cs_calloc(rules + n + n_more + 1, sizeof *assume);
	for (uint32_t i = 0; i < rules; i++)
		if (!off || !off[i])
			assume[used++] = switch_of(&j->e, &j->p, i);
	for (uint32_t i = 0; i < n; i++)
		assume[used++] = x(&j->e, "l%u", i);
	for (size_t i = 0; i < n_more; i++)
		assume[used++] = more[i];
	a = j->e.arena.over ? SOLVER_UNKNOWN : solver_check(j->s, assume, used);
	free(assume);
	return a;
}

/* All rules on, and nothing said about what was let through before: if the answer is no, it is no in every legal trace. */
static enum solver_answer ask_any(struct job *j, const bool *off, ex q)
{
	return ask_legal(j, off, 0, &q, 1);
}

static const char *why_not(const struct job *j)
{
	return j->e.arena.over ? "the rules are too many for this depth" : solver_why(j->s);
}

/* ---- goals ---- */

static uint32_t legal_steps(const struct goal *g, uint32_t k)
{
	return g->last_legal || k == 0 ? k : k - 1;
}

static bool open_at(const struct goal *g, uint32_t k)
{
	return g->state != GOAL_REACHED && k >= g->least && k <= g->most;
}

static void undecided(struct goal *g, const char *why)
{
	g->state = GOAL_UNDECIDED;
	g->why = why;
}

/* The trace of a model in which the goal is true. */
static void take_trace(struct job *j, struct goal *g, struct trace *t)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 20);

	g->again = t->n + 1;
	g->replay = (struct replay){ 0 };
	if (!g->verify(j, g, t)) {
		undecided(g, "the trace found does not hold up: it needs something that has no encoding");
		return;
	}
	trace_write(t, &text);
	g->state = GOAL_REACHED;
	g->k = t->n;
	g->trace = report_text(j, "%s", cs_buf_text(&text));
}

/* One that is asked about, after k steps. */
struct target {
	ex is;      /* NULL: not, or no longer */
	ex implies; /* a literal that does */
};

/* Of all goals that are open; those that differ in what must be legal are asked apart. */
static void find_targets(struct job *j, struct goal *goals, uint32_t n, uint32_t k, bool last, struct target *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		ret[i].is = NULL;
		if (!open_at(&goals[i], k) || goals[i].last_legal != last)
			continue;
		ret[i].is = x_name(&j->e, "Bool", goals[i].target(j, &goals[i], k));
		if (x_false(ret[i].is))
			ret[i].is = NULL;
		else
			ret[i].implies = literal(j, ret[i].is);
	}
}

static ex any_of(struct job *j, const struct target *t, uint32_t n)
{
	ex any = "false";

	for (uint32_t i = 0; i < n; i++)
		any = t[i].is ? x_or(&j->e, any, t[i].implies) : any;
	return any;
}

/* Those that the model satisfies. False: nobody could say. */
static bool take_models(struct job *j, struct goal *goals, uint32_t n, uint32_t k, struct target *t)
{
	struct cs_buf names CS_BUF_AUTO = CS_BUF(16 << 20);
	const struct sexp *v;
	struct trace trace;
	bool some = false, readable;

	for (uint32_t i = 0; i < n; i++)
		if (t[i].is)
			cs_buf_fmt(&names, "%s\n", t[i].is);
	v = names.over ? NULL : solver_values(j->s, &j->scratch, cs_buf_text(&names));
	readable = v && trace_read(&trace, &j->e, j->s, &j->scratch, k);
	v = v ? v->kids : NULL;
	for (uint32_t i = 0; i < n && v; i++) {
		if (!t[i].is)
			continue;
		if (sexp_is(sexp_at(v, 1), "true")) {
			some = true;
			t[i].is = NULL;
			if (readable)
				take_trace(j, &goals[i], &trace);
			else
				undecided(&goals[i], "the trace that was found cannot be written down");
		}
		v = v->next;
	}
	return some;
}

/* Whether no trace reaches any of those of which that is likely, legal or not. */
static bool none_at_all(struct job *j, const struct goal *goals, uint32_t n, const struct target *t)
{
	ex any = "false";

	for (uint32_t i = 0; i < n; i++)
		if (t[i].is && goals[i].often_never)
			any = x_or(&j->e, any, t[i].implies);
	return !x_false(any) && ask_any(j, NULL, literal(j, any)) == SOLVER_UNSAT;
}

/* Those that no trace reaches, legal or not, need not be asked about together with what is legal. */
static void set_aside(struct job *j, struct goal *goals, uint32_t n, struct target *t)
{
	bool none = none_at_all(j, goals, n, t);

	for (uint32_t i = 0; i < n; i++) {
		if (!t[i].is || !goals[i].often_never)
			continue;
		if (none || ask_any(j, NULL, t[i].implies) == SOLVER_UNSAT)
			t[i].is = NULL;
		else
			goals[i].often_never = false; /* nor, most likely, after more steps */
	}
}

/* Once more for those whose trace did not hold up, without anything that has no encoding. */
static void search_plain(struct job *j, struct goal *goals, uint32_t n, uint32_t k, bool last)
{
	for (uint32_t i = 0; i < n; i++) {
		struct goal *g = &goals[i];
		struct target t;
		ex more[2];

		if (g->state != GOAL_UNDECIDED || g->again != k + 1 || g->last_legal != last)
			continue;
		t.is = x_name(&j->e, "Bool", g->target(j, g, k));
		more[0] = t.implies = literal(j, t.is);
		more[1] = "plain";
		cs_arena_reset(&j->scratch);
		if (ask_legal(j, NULL, legal_steps(g, k), more, 2) == SOLVER_SAT)
			take_models(j, g, 1, k, &t);
	}
}

static void search_at(struct job *j, struct goal *goals, uint32_t n, uint32_t k, bool last)
{
	struct target *t = cs_calloc(n + 1, sizeof *t);
	uint32_t steps = last || k == 0 ? k : k - 1;
	enum solver_answer a;

	if (!enc_steps(&j->e, k)) {
		for (uint32_t i = 0; i < n; i++)
			if (open_at(&goals[i], k) && goals[i].last_legal == last)
				undecided(&goals[i], why_not(j));
		free(t);
		return;
	}
	find_targets(j, goals, n, k, last, t);
	set_aside(j, goals, n, t);
	for (ex any = any_of(j, t, n); !x_false(any); any = any_of(j, t, n)) {
		ex q = literal(j, any);

		cs_arena_reset(&j->scratch);
		a = ask_legal(j, NULL, steps, &q, 1);
		if (a == SOLVER_SAT && take_models(j, goals, n, k, t))
			continue;
		for (uint32_t i = 0; a != SOLVER_UNSAT && i < n; i++)
			if (t[i].is)
				undecided(&goals[i], why_not(j));
		break;
	}
	search_plain(j, goals, n, k, last);
	free(t);
}

void search(struct job *j, struct goal *goals, uint32_t n)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = goals[i].most > most ? goals[i].most : most;
	for (uint32_t k = 0; k <= most; k++) {
		search_at(j, goals, n, k, false);
		search_at(j, goals, n, k, true);
	}
}

/* ---- blame ---- */

/* Is the goal out of reach with these rules off? */
static enum solver_answer reach(struct job *j, struct goal *g, const bool *off, bool *core, bool legal)
{
	for (uint32_t k = g->least; k <= g->most; k++) {
		ex q;
		enum solver_answer a;

		if (!enc_steps(&j->e, k))
			return SOLVER_UNKNOWN;
		q = literal(j, x_name(&j->e, "Bool", g->target(j, g, k)));
		a = legal ? ask_legal(j, off, legal_steps(g, k), &q, 1) : ask_any(j, off, q);
		if (a != SOLVER_UNSAT)
			return a;
		if (core) {
			const struct sexp *v = solver_core(j->s, &j->scratch);

			for (const struct sexp *c = v ? v->kids : NULL; c; c = c->next)
				for (uint32_t i = 0; i <= j->p.r->n_rules; i++)
					core[i] |= sexp_is(c, switch_of(&j->e, &j->p, i));
		}
	}
	return SOLVER_UNSAT;
}

static const char *const *names_of(struct job *j, const bool *in)
{
	const struct rules *r = j->p.r;
	const char **names = cs_arena_get(&j->report->arena, r->n_rules + 2, sizeof *names);
	uint32_t n = 0;

	for (uint32_t i = 0; names && i < r->n_rules; i++)
		if (in[i])
			names[n++] = report_text(j, "%s", r->rules[i].name);
	if (names && in[r->n_rules])
		names[n++] = "default deny";
	return names;
}

static uint32_t count(const bool *in, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += in[i];
	return found;
}

const char *const *blame(struct job *j, struct goal *g, bool legal)
{
	uint32_t n = j->p.r->n_rules + 1;
	bool *off = cs_calloc(n, sizeof *off), *core = cs_calloc(n, sizeof *core);
	const char *const *names = NULL;

	cs_arena_reset(&j->scratch);
	if (reach(j, g, off, core, legal) == SOLVER_UNSAT) {
		for (uint32_t i = 0; i < n; i++)
			off[i] = !core[i];
		for (uint32_t i = 0; i < n && (legal || count(core, n) > 1); i++) {
			if (off[i])
				continue;
			off[i] = true; /* can it be done without? */
			off[i] = reach(j, g, off, NULL, legal) == SOLVER_UNSAT;
			core[i] = !off[i];
		}
		names = names_of(j, core);
	}
	free(off);
	free(core);
	return names;
}

const char *names_text(struct job *j, const char *const *names)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(64 << 10);

	for (size_t i = 0; names && names[i]; i++)
		cs_buf_fmt(&b, "%s%s", i == 0 ? "" : names[i + 1] ? ", " : " and ", names[i]);
	return report_text(j, "%s", cs_buf_text(&b));
}
