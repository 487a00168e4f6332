/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - a plan is judged, and calls are held to it. */
#include "gate/internal.h"

#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 256, RESULT_MAX = 1 << 20, PATH_MAX_STEPS = 16 };

enum symbol { SYM_LITERAL, SYM_USER, SYM_FIELD, SYM_UNKNOWN };

/* .name, [3], or [*] */
struct ref_step {
	const char *key;
	int64_t index; /* -1: any */
};

struct plan_arg {
	const char *name;
	enum symbol kind;
	const struct json *value; /* of a literal */
	const struct json *text;  /* as it was written */
	int step;                 /* of a field: index */
	struct ref_step path[PATH_MAX_STEPS];
	size_t n_path;
};

enum step_state { STEP_WAITS, STEP_RUNS, STEP_DONE };

struct plan_step {
	const struct gate_tool *tool;
	struct plan_arg *args;
	size_t n_args;
	enum step_state state;
	bool late;                   /* an act that came into the plan after strangers' text was read */
	struct cs_arena arena;       /* of the result */
	const struct json *result;
	/* the judgement */
	enum rules_verdict verdict;
	bool sure;
	char why[256], rule[64];
};

struct plan {
	struct cs_arena arena;
	struct plan_step *steps;
	size_t n;
};

void plan_free(struct plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		cs_arena_done(&p->steps[i].arena);
	cs_arena_done(&p->arena);
	free(p);
}

/* ---- reading ---- */

static bool read_path(struct plan *p, const char *s, struct plan_arg *a)
{
	while (*s) {
		struct ref_step *r = &a->path[a->n_path];
		size_t n;
		char *end;

		if (a->n_path == PATH_MAX_STEPS)
			return false;
		if (!strncmp(s, "[*]", 3)) {
			r->index = -1;
			s += 3;
		} else if (*s == '[') {
			r->index = strtoll(s + 1, &end, 10);
			if (end == s + 1 || *end != ']' || r->index < 0)
				return false;
			s = end + 1;
		} else if (s[0] == '.' && s[1] == '"') {
			n = strcspn(s + 2, "\"");
			if (s[2 + n] != '"' || !(r->key = cs_arena_dup(&p->arena, s + 2, n)))
				return false;
			s += n + 3;
		} else if (*s == '.') {
			n = strcspn(s + 1, ".[");
			if (!n || !(r->key = cs_arena_dup(&p->arena, s + 1, n)))
				return false;
			s += n + 1;
		} else {
			return false;
		}
		a->n_path++;
	}
	return true;
}

static bool read_arg(struct plan *p, size_t step, const struct json_member *m, struct plan_arg *a)
{
	const struct json *literal = m->value.type == JSON_OBJECT && m->value.n == 1 ? json_get(&m->value, "literal") : NULL;
	const char *s = json_str(&m->value);
	char *end;
	long k;

	a->name = m->key;
	a->text = &m->value;
	a->value = literal ? literal : &m->value;
	if (!s || literal)
		return true;
	if (!strcmp(s, "?")) {
		a->kind = SYM_UNKNOWN;
		return true;
	}
	if (s[0] != '$')
		return true;
	if (!strcmp(s, "$user")) {
		a->kind = SYM_USER;
		return true;
	}
	k = strtol(s + 1, &end, 10);
	if (end == s + 1 || k < 1 || (size_t)k > step)
		return false;
	a->kind = SYM_FIELD;
	a->step = (int)k - 1;
	return read_path(p, end, a);
}

static int read_step(struct gate *g, struct plan *p, size_t i, const struct json *v, char *why, size_t size)
{
	struct plan_step *s = &p->steps[i];
	const char *tool = json_str(json_get(v, "tool"));
	const struct json *args = json_get(v, "args");

	s->arena = (struct cs_arena)CS_ARENA(RESULT_MAX * 4);
	s->tool = tool ? gate_tool_find(g->policy, tool) : NULL;
	if (!s->tool) {
		snprintf(why, size, "step %zu: there is no tool '%s'", i + 1, tool ? tool : "");
		return -1;
	}
	if (args && args->type != JSON_OBJECT) {
		snprintf(why, size, "step %zu: args must be an object", i + 1);
		return -1;
	}
	s->n_args = args ? args->n : 0;
	s->args = cs_arena_get(&p->arena, s->n_args, sizeof *s->args);
	for (size_t k = 0; args && s->args && k < s->n_args; k++)
		if (!read_arg(p, i, &args->members[k], &s->args[k])) {
			snprintf(why, size, "step %zu: %s: a reference is $user, ? or $STEP.field with an earlier step", i + 1,
				 args->members[k].key);
			return -1;
		}
	return s->args ? 0 : -1;
}

static struct plan *read_plan(struct gate *g, const struct json *event, char *why, size_t size)
{
	const struct json *copy, *steps = json_get(event, "steps");
	struct plan *p;

	if (!json_is(steps, JSON_ARRAY) || steps->n == 0 || steps->n > STEPS_MAX) {
		snprintf(why, size, "a plan has 1 to %d steps", STEPS_MAX);
		return NULL;
	}
	p = cs_new(struct plan);
	p->arena = (struct cs_arena)CS_ARENA(RESULT_MAX * 4);
	copy = json_copy(&p->arena, steps);
	p->steps = cs_arena_get(&p->arena, steps->n, sizeof *p->steps);
	snprintf(why, size, "the plan is too large");
	if (!copy || !p->steps)
		goto bad;
	for (; p->n < copy->n; p->n++)
		if (read_step(g, p, p->n, json_at(copy, p->n), why, size) < 0) {
			p->n++;
			goto bad;
		}
	return p;
bad:
	plan_free(p);
	return NULL;
}

static const struct plan_arg *arg_of(const struct plan_step *s, const char *name)
{
	for (size_t i = 0; i < s->n_args; i++)
		if (!strcmp(s->args[i].name, name))
			return &s->args[i];
	return NULL;
}

/* ---- judging ---- */

static void rate(struct plan_step *s, enum rules_verdict v, const char *rule, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void rate(struct plan_step *s, enum rules_verdict v, const char *rule, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (v < s->verdict || (v == s->verdict && s->why[0]))
		return;
	s->verdict = v;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	cs_escape_to(s->why, sizeof s->why, text);
	snprintf(s->rule, sizeof s->rule, "%s", rule);
}

static void unsure(struct plan_step *s, const char *what)
{
	s->sure = false;
	if (s->verdict == RULES_ALLOW && !s->why[0])
		snprintf(s->why, sizeof s->why, "%s", what);
}

static bool all_literal(const struct plan_step *s)
{
	for (size_t i = 0; i < s->n_args; i++)
		if (s->args[i].kind != SYM_LITERAL)
			return false;
	return true;
}

/* The arguments that are known; the others are left out, or stand as a text that only the same symbol equals. */
static const struct json *known_args(struct cs_arena *a, const struct plan_step *s, size_t step, bool placeholders)
{
	struct json *v = cs_arena_new(a, struct json);
	struct json_member *m = cs_arena_get(a, s->n_args, sizeof *m);

	if (!v || !m)
		return NULL;
	v->type = JSON_OBJECT;
	v->members = m;
	for (size_t i = 0; i < s->n_args; i++) {
		const struct plan_arg *arg = &s->args[i];
		struct json_member *one = &m[v->n];
		char name[160];
		const struct json *text;

		if (arg->kind != SYM_LITERAL && !placeholders)
			continue;
		*one = (struct json_member){ .key = arg->name, .key_len = (uint32_t)strlen(arg->name), .value = *arg->value };
		v->n++;
		if (arg->kind == SYM_LITERAL)
			continue;
		snprintf(name, sizeof name, "\x01%s.%zu.%zu", arg->kind == SYM_FIELD ? json_str(arg->text) : "?", arg->kind == SYM_FIELD ? 0 : step, i);
		text = json_new_str(a, name, strlen(name));
		if (!text)
			return NULL;
		one->value = *text;
	}
	return v;
}

static bool field_is_free(const struct gate_tool *t, const struct plan_arg *a)
{
	if (t->format == GATE_FORMAT_TEXT || (!a->n_path && t->format != GATE_FORMAT_LINES))
		return !t->trusted;
	for (size_t i = 0; i < a->n_path; i++)
		for (size_t k = 0; k < t->n_free; k++)
			if (a->path[i].key && !strcmp(a->path[i].key, t->free_fields[k]))
				return true;
	return false;
}

static bool field_is_trusted(const struct gate_tool *t, const struct plan_arg *a)
{
	if (t->trusted)
		return true;
	for (size_t i = 0; i < a->n_path; i++)
		for (size_t k = 0; k < t->n_trusted; k++)
			if (a->path[i].key && !strcmp(a->path[i].key, t->trusted_fields[k]))
				return true;
	return false;
}

static enum origin_class class_of(struct gate *g, const struct plan *p, const struct plan_step *s, const struct plan_arg *a)
{
	switch (a->kind) {
	case SYM_LITERAL: return origin_of(g->origin, a->value, s->tool->input_doc, NULL);
	case SYM_USER: return ORIGIN_USER;
	case SYM_UNKNOWN: return ORIGIN_FREE;
	case SYM_FIELD: break;
	}
	if (field_is_free(p->steps[a->step].tool, a))
		return ORIGIN_FREE;
	return field_is_trusted(p->steps[a->step].tool, a) ? ORIGIN_TRUSTED : ORIGIN_STRUCTURED;
}

static void judge_sinks(struct gate *g, struct plan *p, struct plan_step *s)
{
	for (size_t i = 0; i < s->tool->n_sinks; i++) {
		const struct gate_sink *sink = &s->tool->sinks[i];

		for (size_t k = 0; k < s->n_args; k++) {
			const struct plan_arg *a = &s->args[k];
			enum origin_class c;

			if (strcmp(a->name, sink->arg))
				continue;
			if (sink->links) {
				if (a->kind != SYM_LITERAL)
					unsure(s, "links in its text are looked at when it is called");
				continue;
			}
			c = class_of(g, p, s, a);
			if (a->kind == SYM_FIELD || a->kind == SYM_USER)
				unsure(s, "the value must be the field, or the user's word, that the plan names");
			rate(s, sink->verdict[c], "origin", "%s would come from %s", a->name,
			     c == ORIGIN_FREE ? "free text" : c == ORIGIN_NOWHERE ? "nowhere: neither the user nor any result named it" : origin_name(c));
		}
	}
}

/* What the schema says of names; of values only when all are known. */
static void judge_schema(struct gate *g, struct plan_step *s)
{
	const struct json *required = json_get(s->tool->input_doc, "required"), *properties = json_get(s->tool->input_doc, "properties");
	struct schema_report report = { .name = "args" };

	if (!s->tool->input)
		return;
	if (all_literal(s)) {
		const struct json *args = known_args(&g->scratch, s, 0, false);

		if (!args || !schema_validate(s->tool->input, args, &report))
			rate(s, RULES_DENY, "schema", "%s", args ? report.failures[0].message : "too large");
		return;
	}
	unsure(s, "the schema is looked at when it is called");
	for (uint32_t i = 0; json_is(required, JSON_ARRAY) && i < required->n; i++) {
		const char *name = json_str(json_at(required, i));
		size_t k = 0;

		while (k < s->n_args && name && strcmp(s->args[k].name, name))
			k++;
		if (name && k == s->n_args)
			rate(s, RULES_DENY, "schema", "the argument %s is missing", name);
	}
	for (size_t k = 0; properties && k < s->n_args; k++)
		if (!json_get(properties, s->args[k].name))
			rate(s, RULES_DENY, "schema", "%s has no argument %s", s->tool->name, s->args[k].name);
}

/* Twice: with symbols as values that only equal themselves, and with symbols left out. A refusal that is certain in both
 * cannot be avoided by any values. */
static void judge_rules(struct gate *g, struct plan_step *s, size_t step, struct rules_monitor *m[2], bool literal_so_far)
{
	struct rules_hit hit[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		struct rules_event e = { .kind = RULES_EV_CALL, .tool = s->tool->index, .t_ms = g->t_ms };

		e.args = known_args(&g->scratch, s, step, i == 0);
		if (!e.args)
			return;
		rules_monitor_check(m[i], &e, &g->world, &hit[i]);
		rules_monitor_note(m[i], &e, &g->world);
		e.kind = RULES_EV_OK;
		rules_monitor_note(m[i], &e, &g->world);
	}
	if (hit[0].rule && hit[1].rule && hit[0].verdict == RULES_DENY && hit[1].verdict == RULES_DENY && !hit[0].unknown && !hit[1].unknown)
		rate(s, RULES_DENY, hit[1].rule, "%s", hit[1].because ? hit[1].because : "the rule refuses it here, whatever the values");
	else if (hit[0].rule && hit[1].rule && hit[0].verdict == RULES_ASK && hit[1].verdict == RULES_ASK && !hit[0].unknown && !hit[1].unknown)
		rate(s, RULES_ASK, hit[1].rule, "%s", hit[1].because ? hit[1].because : "the rule asks about it");
	else if (hit[0].rule || hit[1].rule) {
		char what[200];

		snprintf(what, sizeof what, "rule %s is looked at when it is called", hit[1].rule ? hit[1].rule : hit[0].rule);
		unsure(s, what);
	}
	if ((!hit[0].rule && hit[0].verdict > RULES_ALLOW) || (!hit[1].rule && hit[1].verdict > RULES_ALLOW))
		unsure(s, "the rules' default is not to allow it; whether a rule does is looked at when it is called");
	if (!literal_so_far && rules_tool_mentioned(g->policy->rules, s->tool->index))
		unsure(s, "rules are looked at when it is called");
}

static void judge(struct gate *g, struct plan *p, const char *role)
{
	struct rules_monitor *m[2] = { rules_monitor_fork(g->monitor), rules_monitor_fork(g->monitor) };
	bool literal = true;

	for (size_t i = 0; i < p->n; i++) {
		struct plan_step *s = &p->steps[i];
		struct gate_leave leave = { 0 };

		s->sure = true;
		literal = literal && all_literal(s);
		if (s->tool->in && s->tool->in->quarantine[0])
			rate(s, RULES_DENY, "quarantine", "the tool is in quarantine: %s", s->tool->in->quarantine);
		if (!gate_may_access(g->policy, role, s->tool->name))
			rate(s, RULES_DENY, "tool", "it is not allowed");
		gate_access(g->policy, role, s->tool->name, known_args(&g->scratch, s, i, false), &leave);
		if (leave.verdict == RULES_ASK)
			rate(s, RULES_ASK, "tool", "%s", leave.reason);
		else if (leave.verdict == RULES_DENY)
			unsure(s, "whether it is allowed depends on its arguments");
		judge_schema(g, s);
		judge_sinks(g, p, s);
		judge_rules(g, s, i, m, literal);
		if (s->tool->shell)
			unsure(s, "the command is looked at when it is called");
	}
	rules_monitor_free(m[0]);
	rules_monitor_free(m[1]);
}

/* The same tool, the same words for each argument, and fields of the same tools' results. */
static bool same_step(const struct plan *p, const struct plan_step *s, const struct plan *q, const struct plan_step *t)
{
	if (s->tool != t->tool || s->n_args != t->n_args)
		return false;
	for (size_t i = 0; i < s->n_args; i++) {
		const struct plan_arg *a = &s->args[i], *b = arg_of(t, a->name);

		if (!b || !json_equal(a->text, b->text) || (a->kind == SYM_FIELD && p->steps[a->step].tool != q->steps[b->step].tool))
			return false;
	}
	return true;
}

/* Whoever wrote what was read may have asked for a new plan. What it adds is not in the plan that was made before. */
static void judge_late(struct gate *g, struct plan *p)
{
	for (size_t i = 0; g->plan && g->heard && i < p->n; i++) {
		struct plan_step *s = &p->steps[i];

		s->late = gate_acts(s->tool);
		for (size_t k = 0; k < g->plan->n && s->late; k++)
			if (g->plan->steps[k].state == STEP_WAITS && !g->plan->steps[k].late && same_step(p, s, g->plan, &g->plan->steps[k]))
				s->late = false;
		if (s->late)
			rate(s, g->policy->extra_write, "plan", "it was not in the plan before text of strangers was read");
	}
}

static void judge_calls(struct gate *g, struct plan *p)
{
	const struct gate_budget *b = &g->policy->budget;

	if (b->calls && p->n > b->calls)
		rate(&p->steps[b->calls], RULES_DENY, "budget", "a session may have %llu calls", (unsigned long long)b->calls);
}

/* ---- answering ---- */

static const char *word_of(const struct plan_step *s)
{
	if (s->verdict == RULES_DENY)
		return "rejected";
	if (s->verdict == RULES_ASK)
		return "ask";
	return s->sure ? "pre-approved" : "check";
}

static void write_answer(struct cs_buf *out, const struct json *id, const struct plan *p, enum rules_verdict verdict, const char *why)
{
	struct cs_json j;

	cs_json_begin(&j, out, false);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "type", "plan");
	if (json_str(id))
		cs_json_str(&j, "id", json_str(id));
	cs_json_str(&j, "verdict", rules_verdict_name(verdict));
	if (why)
		cs_json_str(&j, "reason", why);
	cs_json_array(&j, "steps");
	for (size_t i = 0; p && i < p->n; i++) {
		const struct plan_step *s = &p->steps[i];

		cs_json_object(&j, NULL);
		cs_json_u64(&j, "step", i + 1);
		cs_json_str(&j, "tool", s->tool->name);
		cs_json_str(&j, "verdict", word_of(s));
		if (s->rule[0])
			cs_json_str(&j, "rule", s->rule);
		if (s->why[0])
			cs_json_str(&j, s->verdict == RULES_ALLOW ? "condition" : "reason", s->why);
		cs_json_end(&j, '}');
	}
	cs_json_end(&j, ']');
	cs_json_end(&j, '}');
}

void plan_submit(struct gate *g, const struct json *event, struct cs_buf *answer)
{
	const char *role = json_str(json_get(event, "role"));
	enum rules_verdict worst = RULES_ALLOW;
	char why[256], shown[300];
	struct plan *p = read_plan(g, event, why, sizeof why);

	g->tool = NULL;
	g->role = role ? role : g->options.role;
	g->agent = json_str(json_get(event, "agent"));
	if (!p) {
		cs_escape_to(shown, sizeof shown, why);
		write_answer(answer, json_get(event, "id"), NULL, RULES_DENY, shown);
		return;
	}
	judge(g, p, role ? role : g->options.role);
	judge_late(g, p);
	judge_calls(g, p);
	for (size_t i = 0; i < p->n; i++)
		if (p->steps[i].verdict > worst)
			worst = p->steps[i].verdict;
	write_answer(answer, json_get(event, "id"), p, worst, NULL);
	if (worst == RULES_DENY) {
		plan_free(p);
		return;
	}
	plan_free(g->plan);
	g->plan = p;
	/* What still runs was a step of the old plan: its result is no step's of this one. */
	for (struct gate_flight *f = g->flights; f; f = f->next)
		f->step = -1;
}

/* ---- holding calls to it ---- */

/* Is v one of the values at the path? `want` an array: each of its elements is. */
static bool found_at(const struct json *in, const struct ref_step *path, size_t n, const struct json *want)
{
	if (!in)
		return false;
	if (!n) {
		if (json_equal(in, want))
			return true;
		/* A number that is written as text is the same value. */
		return in->type != want->type && in->type != JSON_ARRAY && in->type != JSON_OBJECT && origin_same(in, want);
	}
	if (path->key)
		return found_at(json_get(in, path->key), path + 1, n - 1, want);
	if (path->index >= 0)
		return found_at(json_at(in, (size_t)path->index), path + 1, n - 1, want);
	for (uint32_t i = 0; in->type == JSON_ARRAY && i < in->n; i++)
		if (found_at(&in->items[i], path + 1, n - 1, want))
			return true;
	/* Not of an object: a path that names no field could mean one that anybody may have written. */
	return false;
}

static bool each_found(const struct plan_step *of, const struct plan_arg *a, const struct json *v)
{
	if (found_at(of->result, a->path, a->n_path, v))
		return true;
	if (v->type != JSON_ARRAY || v->n == 0)
		return false;
	for (uint32_t i = 0; i < v->n; i++)
		if (!found_at(of->result, a->path, a->n_path, &v->items[i]))
			return false;
	return true;
}

/* Something that somebody can have said; true, null and {} are nobody's words. */
static bool is_phrase(const struct json *v)
{
	if (v->type != JSON_ARRAY)
		return v->type == JSON_NUMBER || (v->type == JSON_STRING && v->n);
	for (uint32_t i = 0; i < v->n; i++)
		if (v->items[i].type == JSON_ARRAY || !is_phrase(&v->items[i]))
			return false;
	return v->n > 0;
}

static bool arg_fits(struct gate *g, const struct plan *p, const struct plan_arg *a, const struct json *v)
{
	switch (a->kind) {
	case SYM_LITERAL: return json_equal(a->value, v);
	case SYM_USER: return is_phrase(v) && origin_of(g->origin, v, NULL, NULL) == ORIGIN_USER;
	case SYM_FIELD: return p->steps[a->step].state == STEP_DONE && each_found(&p->steps[a->step], a, v);
	case SYM_UNKNOWN: break;
	}
	return true;
}

/* NULL: it fits; else the argument that does not. */
static const char *departs(struct gate *g, const struct plan *p, const struct plan_step *s, const struct json *args)
{
	for (uint32_t i = 0; i < args->n; i++) {
		const struct plan_arg *a = arg_of(s, args->members[i].key);

		if (!a ? args->members[i].value.type != JSON_NULL : !arg_fits(g, p, a, &args->members[i].value))
			return args->members[i].key;
	}
	for (size_t i = 0; i < s->n_args; i++)
		if (s->args[i].kind != SYM_UNKNOWN && !json_get(args, s->args[i].name))
			return s->args[i].name;
	return NULL;
}

void plan_hold(struct gate *g, struct gate_probe *q, struct gate_answer *ret)
{
	bool acts = gate_acts(q->tool);
	const char *off = NULL;
	size_t near = 0;

	if (!g->plan) {
		if (g->policy->plan_required && acts)
			gate_raise(ret, RULES_DENY, "plan", "send a plan first", "%s acts, and the policy wants a plan before anything acts", q->tool->name);
		return;
	}
	for (size_t i = 0; i < g->plan->n; i++) {
		struct plan_step *s = &g->plan->steps[i];
		const char *arg;

		if (s->tool != q->tool || s->state != STEP_WAITS)
			continue;
		arg = departs(g, g->plan, s, q->call->args);
		if (!arg) {
			q->step = (int)i;
			if (s->late)
				gate_raise(ret, g->policy->extra_write, "plan", "ask the user", "%s was not in the plan before text of strangers was read",
					   q->tool->name);
			return;
		}
		if (!off) {
			off = arg;
			near = i + 1;
		}
	}
	if (off)
		gate_raise(ret, acts ? g->policy->extra_write : g->policy->extra_read, "plan", "keep to the plan, or send a new one",
			   "%s departs from step %zu of the plan in its argument %s", q->tool->name, near, off);
	else
		gate_raise(ret, acts ? g->policy->extra_write : g->policy->extra_read, "plan", "keep to the plan, or send a new one",
			   "%s is not in the plan, or no more", q->tool->name);
}

void plan_note(struct gate *g, int step)
{
	if (g->plan && (size_t)step < g->plan->n)
		g->plan->steps[step].state = STEP_RUNS;
}

void plan_result(struct gate *g, int step, bool ok, const struct json *result)
{
	struct plan_step *s;

	if (!g->plan || (size_t)step >= g->plan->n)
		return;
	s = &g->plan->steps[step];
	/* What failed may be tried again. */
	s->state = ok ? STEP_DONE : STEP_WAITS;
	cs_arena_reset(&s->arena);
	s->result = ok && result ? json_copy(&s->arena, result) : NULL;
}
