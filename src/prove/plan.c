/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - a plan whose arguments are partly known: which of its calls are sure to be legal?
 *
 * {"steps": [{"tool": "get_order", "args": {"id": "$user"}},
 *            {"confirm": true},
 *            {"tool": "refund", "args": {"order": "$1.id", "amount": "?"}}]}
 *
 * "?" is a value that is not known yet, "$user" one that the user will give, "$N.path" a
 * place in the result of step N; "$$x" is the string "$x".  Everything else is meant as
 * it stands.  A step is reached if those before it were legal and succeeded.
 */
#include "prove/internal.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATH_MAX_STEPS = 32 };

struct plan {
	struct job j;
	const struct json *steps;
	uint32_t n;
};

/* ---- values of a plan ---- */

enum ref_kind { REF_LITERAL, REF_FREE, REF_RESULT, REF_BAD };

struct ref {
	enum ref_kind kind;
	uint32_t step; /* RESULT: from 0 */
	struct rl_step path[PATH_MAX_STEPS];
	uint32_t n;
};

static const char *read_key(struct cs_arena *a, const char *s, struct rl_step *to)
{
	size_t n = strcspn(s, ".[");

	to->key = n ? cs_arena_dup(a, s, n) : NULL;
	return to->key ? s + n : NULL;
}

static const char *read_index(const char *s, struct rl_step *to)
{
	char *end;

	if (*s < '0' || *s > '9')
		return NULL;
	to->index = strtol(s, &end, 10);
	return *end == ']' && end - s < 10 ? end + 1 : NULL;
}

/* "$2.items[0].id" */
static void read_ref(struct cs_arena *a, const char *s, uint32_t at, struct ref *ret)
{
	char *rest;
	unsigned long step = strtoul(s + 1, &rest, 10);

	ret->kind = REF_BAD;
	if (rest == s + 1 || step < 1 || step > at)
		return;
	ret->step = (uint32_t)step - 1;
	for (s = rest; s && *s; ) {
		struct rl_step *to = &ret->path[ret->n];

		if (ret->n == PATH_MAX_STEPS)
			return;
		s = *s == '.' ? read_key(a, s + 1, to) : *s == '[' ? read_index(s + 1, to) : NULL;
		ret->n++;
	}
	if (s)
		ret->kind = REF_RESULT;
}

static void ref_of(struct cs_arena *a, const struct json *v, uint32_t at, struct ref *ret)
{
	const char *s = json_str(v);

	*ret = (struct ref){ .kind = REF_LITERAL };
	if (!s || (s[0] != '$' && strcmp(s, "?") != 0) || (s[0] == '$' && s[1] == '$'))
		return;
	if (!strcmp(s, "?") || !strcmp(s, "$user"))
		ret->kind = REF_FREE;
	else
		read_ref(a, s, at, ret);
}

static bool has_ref(struct cs_arena *a, const struct json *v, uint32_t at)
{
	struct ref r;

	ref_of(a, v, at, &r);
	if (r.kind != REF_LITERAL)
		return true;
	for (uint32_t i = 0; json_is(v, JSON_ARRAY) && i < v->n; i++)
		if (has_ref(a, &v->items[i], at))
			return true;
	for (uint32_t i = 0; json_is(v, JSON_OBJECT) && i < v->n; i++)
		if (has_ref(a, &v->members[i].value, at))
			return true;
	return false;
}

/* "$$x" means "$x". */
static const struct json *literal_of(struct cs_arena *a, const struct json *v)
{
	const char *s = json_str(v);

	return s && s[0] == '$' && s[1] == '$' ? json_new_str(a, s + 1, strlen(s + 1)) : v;
}

/* ---- checking its shape ---- */

static int bad_step(struct cs_err *err, uint32_t i, const char *what)
{
	return cs_fail(err, CS_E_INVALID, 0, "step %u: %s", i + 1, what);
}

static int check_refs(struct plan *p, const struct json *v, uint32_t at, struct cs_err *err)
{
	struct ref r;
	char shown[100];
	int e = 0;

	ref_of(&p->j.e.arena, v, at, &r);
	if (r.kind == REF_BAD)
		return cs_fail(err, CS_E_INVALID, 0, "step %u: '%s' is neither $user nor a place in an earlier result, as $1.items[0].id; a string that begins with $ is written $$",
			       at + 1, cs_escape_to(shown, sizeof shown, json_str(v)));
	if (r.kind == REF_RESULT && !json_str(json_get(&p->steps->items[r.step], "tool")))
		return bad_step(err, at, "it refers to the result of a step that is no call");
	for (uint32_t i = 0; e == 0 && json_is(v, JSON_ARRAY) && i < v->n; i++)
		e = check_refs(p, &v->items[i], at, err);
	for (uint32_t i = 0; e == 0 && json_is(v, JSON_OBJECT) && i < v->n; i++)
		e = check_refs(p, &v->members[i].value, at, err);
	return e;
}

static int check_step(struct plan *p, uint32_t i, struct cs_err *err)
{
	const struct json *s = &p->steps->items[i], *args = json_get(s, "args");
	const char *tool = json_str(json_get(s, "tool"));
	char shown[100];

	if (!tool && !json_get(s, "confirm") && !json_get(s, "user"))
		return bad_step(err, i, "{\"tool\": NAME, \"args\": {...}}, {\"confirm\": true} or {\"user\": true}");
	if (tool && rules_tool_index(p->j.p.r, tool) < 0)
		return cs_fail(err, CS_E_INVALID, 0, "step %u: there is no tool '%s'", i + 1, cs_escape_to(shown, sizeof shown, tool));
	if (args && !json_is(args, JSON_OBJECT))
		return bad_step(err, i, "\"args\" is an object");
	return args ? check_refs(p, args, i, err) : 0;
}

static int check_plan(struct plan *p, const struct json *plan, struct cs_err *err)
{
	int e = 0;

	p->steps = json_is(plan, JSON_ARRAY) ? plan : json_get(plan, "steps");
	if (!json_is(p->steps, JSON_ARRAY))
		return cs_fail(err, CS_E_INVALID, 0, "an object with an array \"steps\"");
	p->n = p->steps->n;
	if (p->n == 0 || p->n > PROVE_DEPTH_MAX)
		return cs_fail(err, CS_E_INVALID, 0, "%u steps; a plan has 1 to %d", p->n, PROVE_DEPTH_MAX);
	for (uint32_t i = 0; e == 0 && i < p->n; i++)
		e = check_step(p, i, err);
	return e;
}

/* ---- places that the plan speaks of ---- */

static const struct rl_step *joined(struct plan *p, const struct rl_step *a, uint32_t n, const struct rl_step *b, uint32_t m)
{
	struct rl_step *s = cs_arena_get(&p->j.e.arena, n + m + 1, sizeof *s);

	if (s && n)
		memcpy(s, a, n * sizeof *s);
	if (s && m)
		memcpy(s + n, b, m * sizeof *s);
	return s;
}

/* Every argument that is a literal, and every place below that is not. */
static void add_places(struct plan *p, const struct json *v, uint32_t at, struct rl_step *path, uint32_t n)
{
	struct enc *e = &p->j.e;
	struct ref r;

	ref_of(&e->arena, v, at, &r);
	if (r.kind == REF_RESULT)
		slot_add(e, SLOT_RESULT, joined(p, r.path, r.n, NULL, 0), r.n, NULL);
	if (r.kind != REF_LITERAL || !has_ref(&e->arena, v, at)) {
		if (n)
			slot_add(e, SLOT_ARG, joined(p, path, n, NULL, 0), n, NULL);
		return;
	}
	for (uint32_t i = 0; n < PATH_MAX_STEPS && i < v->n; i++) {
		path[n] = (struct rl_step){ .key = v->type == JSON_OBJECT ? v->members[i].key : NULL, .index = i };
		add_places(p, v->type == JSON_OBJECT ? &v->members[i].value : &v->items[i], at, path, n + 1);
	}
}

/* What a rule looks at in an argument that is a place in an earlier result lies in that result. */
static void add_result_places(struct plan *p, uint32_t at)
{
	const struct json *args = json_get(&p->steps->items[at], "args");
	struct enc *e = &p->j.e;
	uint32_t n = e->n_slots;

	for (uint32_t i = 0; args && i < n; i++) {
		const struct slot s = e->slots[i];
		const struct json *v = args;
		struct ref r;

		for (uint32_t k = 0; s.kind == SLOT_ARG && k < s.n && v; k++) {
			v = s.steps[k].key ? json_get(v, s.steps[k].key) : json_at(v, (size_t)s.steps[k].index);
			if (!v)
				break;
			ref_of(&e->arena, v, at, &r);
			if (r.kind == REF_RESULT && r.n + s.n - k - 1 < PATH_MAX_STEPS)
				slot_add(e, SLOT_RESULT, joined(p, r.path, r.n, s.steps + k + 1, s.n - k - 1), r.n + s.n - k - 1, NULL);
		}
	}
}

/* ---- what the plan says of each place ---- */

static void fix_to(struct plan *p, const struct val *v, const struct val *to)
{
	struct enc *e = &p->j.e;

	x_assert(e, x(e, "(= %s %s)", v->p, to->p));
	x_assert(e, x(e, "(=> %s %s)", v->p, val_equal(e, v, to)));
}

static void fix_slot(struct plan *p, const struct slot *s, uint32_t at, const struct json *args)
{
	struct enc *e = &p->j.e;
	const struct val *v = &s->at[at];
	const struct json *j = args;
	struct val c;

	for (uint32_t k = 0; k < s->n; k++) {
		const struct slot *from;
		struct ref r;

		j = !j ? NULL : s->steps[k].key ? json_get(j, s->steps[k].key) : json_at(j, (size_t)s->steps[k].index);
		if (!j)
			break;
		ref_of(&e->arena, j, at, &r);
		if (r.kind == REF_LITERAL)
			continue;
		if (k + 1 == s->n) /* without it the call would not be made */
			x_assert(e, v->p);
		if (r.kind != REF_RESULT)
			return;
		from = slot_find(e, SLOT_RESULT, joined(p, r.path, r.n, s->steps + k + 1, s->n - k - 1), r.n + s->n - k - 1);
		if (from)
			fix_to(p, v, &from->at[r.step]);
		return;
	}
	if (!j) {
		x_assert(e, x_not(e, v->p));
		return;
	}
	if (has_ref(&e->arena, j, at)) { /* an object or array with something unknown in it: its places are fixed one by one */
		x_assert(e, x_and(e, v->p, val_is(e, v, json_is(j, JSON_OBJECT) ? T_OBJ : T_ARR)));
		return;
	}
	c = val_const(e, literal_of(&e->arena, j));
	fix_to(p, v, &c);
}

static void fix_step(struct plan *p, uint32_t i)
{
	const struct json *s = &p->steps->items[i];
	const char *tool = json_str(json_get(s, "tool"));
	struct enc *e = &p->j.e;

	if (!tool) {
		x_assert(e, json_get(s, "confirm") ? e->steps[i].confirm : e->steps[i].user);
		return;
	}
	x_assert(e, e->steps[i].tool[p->j.p.tool[rules_tool_index(p->j.p.r, tool)]]);
	for (uint32_t k = 0; k < e->n_slots; k++)
		if (e->slots[k].kind == SLOT_ARG)
			fix_slot(p, &e->slots[k], i, json_get(s, "args"));
}

/* ---- asking ---- */

static bool verify_verdict(struct job *j, const struct goal *g, struct trace *t)
{
	struct goal *to = (struct goal *)g;

	to->replay = trace_replay(t, &j->p, false);
	return to->replay.legal && (g->arg ? to->replay.verdict >= *(const enum rules_verdict *)g->arg : to->replay.verdict != RULES_DENY);
}

static ex verdict_target(struct job *j, const struct goal *g, uint32_t k)
{
	ex ok = "true";

	for (uint32_t i = 0; i + 1 < k; i++)
		ok = x_and(&j->e, ok, x_or(&j->e, j->e.steps[i].ok, x_not(&j->e, j->e.steps[i].call)));
	return g->arg ? x_and(&j->e, ok, verdict_at_least(&j->e, &j->p, (int)k - 1, false, *(const enum rules_verdict *)g->arg)) : ok;
}

static struct goal find(struct plan *p, uint32_t i, const enum rules_verdict *least)
{
	struct goal g = { .target = verdict_target, .verify = verify_verdict, .arg = least, .least = i + 1, .most = i + 1, .last_legal = !least };

	search(&p->j, &g, 1);
	return g;
}

/* Whether the calls can be made at all, whatever the rules say. */
static enum solver_answer fits(struct plan *p, uint32_t i)
{
	struct job *j = &p->j;
	struct goal g = { .target = verdict_target };
	ex q = literal(j, verdict_target(j, &g, i + 1));

	return solver_check(j->s, &q, 1);
}

static struct prove_finding *add(struct plan *p, uint32_t i, enum prove_outcome outcome, const char *verdict)
{
	const char *tool = json_str(json_get(&p->steps->items[i], "tool"));
	struct prove_finding *f = report_add(&p->j, PROVE_STEP, outcome, report_text(&p->j, "%s", tool));

	f->line = i + 1;
	f->verdict = verdict;
	f->text = verdict;
	return f;
}

static void tell_undecided(struct plan *p, uint32_t i, const char *why)
{
	struct prove_finding *f = add(p, i, PROVE_CANNOT, "cannot prove");

	f->text = "is it legal?";
	f->why = report_text(&p->j, "%s", why);
}

static void tell_never(struct plan *p, uint32_t i, struct goal *legal)
{
	struct prove_finding *f;
	const char *const *rules;

	if (fits(p, i) == SOLVER_UNSAT) {
		add(p, i, PROVE_FOUND, "never legal")->text = "never legal: it does not fit its tool's schema, or what it refers to is never there";
		return;
	}
	rules = blame(&p->j, legal, true);
	f = add(p, i, PROVE_FOUND, "never legal");
	f->rules = rules && rules[0] ? rules : NULL;
	f->text = report_text(&p->j, "can never be legal%s%s", f->rules ? ": because of " : "", names_text(&p->j, rules));
}

static void tell_maybe(struct plan *p, uint32_t i, const struct goal *g, const char *verdict)
{
	struct prove_finding *f = add(p, i, g->replay.verdict == RULES_DENY ? PROVE_FOUND : PROVE_NOTE, verdict);
	const char **rules = cs_arena_get(&p->j.report->arena, 2, sizeof *rules);

	if (rules && g->replay.rule)
		rules[0] = report_text(&p->j, "%s", g->replay.rule);
	f->rules = rules && rules[0] ? rules : NULL;
	f->text = report_text(&p->j, "%s%s%s", verdict, f->rules ? ", by " : "", f->rules ? rules[0] : "");
	f->trace = g->trace;
}

/* False: no later step is reached. */
static bool judge(struct plan *p, uint32_t i)
{
	static const enum rules_verdict deny = RULES_DENY, ask = RULES_SANDBOX;
	struct goal legal = find(p, i, NULL), refused, asked;

	if (legal.state == GOAL_NONE) {
		tell_never(p, i, &legal);
		return false;
	}
	refused = find(p, i, &deny);
	if (refused.state == GOAL_REACHED) {
		tell_maybe(p, i, &refused, "may be refused");
		return true;
	}
	if (refused.state == GOAL_UNDECIDED) {
		tell_undecided(p, i, refused.why);
		return true;
	}
	asked = find(p, i, &ask);
	if (asked.state == GOAL_REACHED)
		tell_maybe(p, i, &asked, asked.replay.verdict == RULES_ASK ? "may be asked about" : "may be put into a sandbox");
	else if (asked.state == GOAL_UNDECIDED)
		tell_undecided(p, i, asked.why);
	else
		add(p, i, PROVE_FINE, "legal")->text = "sure to be legal";
	return true;
}

static void judge_all(struct plan *p)
{
	struct rl_step path[PATH_MAX_STEPS + 1];
	bool reached = true;

	for (uint32_t i = 0; i < p->n; i++)
		if (json_get(&p->steps->items[i], "args"))
			add_places(p, json_get(&p->steps->items[i], "args"), i, path, 0);
	for (uint32_t i = p->n; i-- > 0;) /* what step 3 takes from 2 may come from 1 */
		add_result_places(p, i);
	p->j.e.every = true; /* the plan says which tool it is, and fixes every place */
	enc_settle(&p->j.e);
	if (!enc_steps(&p->j.e, p->n)) {
		tell_undecided(p, 0, "the rules are too many for this plan");
		return;
	}
	for (uint32_t i = 0; i < p->n; i++)
		fix_step(p, i);
	for (uint32_t i = 0; i < p->n; i++) {
		if (!json_str(json_get(&p->steps->items[i], "tool")))
			continue;
		if (reached)
			reached = judge(p, i);
		else
			add(p, i, PROVE_NOTE, "not reached")->text = "not reached: a step before can never be legal";
	}
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int prove_plan(const struct rules *r, const struct json *plan, const struct prove_options *o, struct prove_report *ret, struct cs_err *err)
{
	uint64_t from = now_ms();
	struct plan p = { .n = 0 };
	int e = job_start(&p.j, o, ret, err);

	if (e == 0 && enc_policy(&p.j.e, r, "now", &p.j.p) < 0)
		e = cs_fail(err, CS_E_LIMIT, 0, "%s: too large to be proved", r->name);
	if (e == 0)
		e = check_plan(&p, plan, err);
	if (e == 0) {
		ret->depth = p.n;
		p.j.depth = p.n;
		judge_all(&p);
	}
	job_end(&p.j);
	ret->ms = now_ms() - from;
	return e;
}
