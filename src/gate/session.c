/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - one session: its life, its calls in flight, its results. */
#include "gate/internal.h"

#include "base/text.h"
#include "json/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gate *gate_new(const struct gate_policy *p, const struct gate_options *o)
{
	struct gate *g = cs_new(struct gate);

	g->policy = p;
	if (o)
		g->options = *o;
	if (!g->options.role)
		g->options.role = "default";
	g->monitor = rules_monitor_new(p->rules, NULL);
	if (p->after)
		g->after = rules_monitor_new(p->after, NULL);
	g->origin = origin_new(0);
	g->budget = budget_new(p);
	g->scratch = (struct cs_arena)CS_ARENA((size_t)32 << 20);
	world_init(g);
	return g;
}

static void flight_free(struct gate_flight *f)
{
	cs_arena_done(&f->arena);
	free(f);
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	for (struct gate_flight *f = g->flights, *next; f; f = next) {
		next = f->next;
		flight_free(f);
	}
	gate_classify_done(g);
	plan_free(g->plan);
	rules_monitor_free(g->monitor);
	rules_monitor_free(g->after);
	origin_free(g->origin);
	budget_free(g->budget);
	cs_arena_done(&g->scratch);
	free(g);
}

uint64_t gate_bytes(const struct gate *g)
{
	uint64_t n = sizeof *g + rules_monitor_bytes(g->monitor) + origin_bytes(g->origin);

	for (const struct gate_flight *f = g->flights; f; f = f->next)
		n += sizeof *f + f->arena.used;
	return n;
}

/* Time never runs backwards. */
void gate_at(struct gate *g, uint64_t t_ms)
{
	cs_arena_reset(&g->scratch);
	if (!g->begun)
		g->t_first = t_ms;
	g->begun = true;
	if (t_ms > g->t_ms)
		g->t_ms = t_ms;
}

static void note(struct gate *g, const struct rules_event *e)
{
	rules_monitor_note(g->monitor, e, &g->world);
	if (g->after)
		rules_monitor_note(g->after, e, &g->world);
}

void gate_user(struct gate *g, const char *text, size_t len, uint64_t t_ms)
{
	gate_at(g, t_ms);
	g->heard = false;
	origin_user(g->origin, text, len);
	note(g, &(struct rules_event){ .kind = RULES_EV_USER, .t_ms = g->t_ms });
}

/* ---- calls ---- */

struct gate_flight *gate_flight_find(struct gate *g, const char *id)
{
	for (struct gate_flight *f = g->flights; id && f; f = f->next)
		if (!strcmp(f->id, id))
			return f;
	return NULL;
}

static void flight_drop(struct gate *g, struct gate_flight *gone)
{
	for (struct gate_flight **f = &g->flights; *f; f = &(*f)->next)
		if (*f == gone) {
			*f = gone->next;
			g->flight_bytes -= gone->arena.used;
			flight_free(gone);
			g->n_flights--;
			return;
		}
}

/* NULL: its arguments are too large to be kept. */
static struct gate_flight *flight_new(struct gate *g, const struct gate_call *c, const struct gate_tool *t, enum gate_state state)
{
	struct gate_flight *f = cs_new(struct gate_flight);

	f->arena = (struct cs_arena)CS_ARENA((size_t)64 << 20); /* what a line of GATE_LINE_MAX can come to */
	f->args = json_copy(&f->arena, c->args);
	if (!f->args) {
		flight_free(f);
		return NULL;
	}
	f->tokens = c->tokens;
	snprintf(f->id, sizeof f->id, "%s", c->id);
	snprintf(f->agent, sizeof f->agent, "%s", c->agent ? c->agent : "");
	snprintf(f->role, sizeof f->role, "%s", c->role);
	f->state = state;
	f->tool = t;
	f->step = -1;
	f->next = g->flights;
	g->flights = f;
	g->n_flights++;
	g->flight_bytes += f->arena.used;
	return f;
}

void gate_grant(struct gate *g, const struct gate_call *c, const struct gate_tool *t, int step)
{
	struct gate_flight *f = gate_flight_find(g, c->id);

	if (f) {
		f->state = GATE_RUNNING;
		f->step = step;
	}
	note(g, &(struct rules_event){ .kind = RULES_EV_CALL, .tool = t->index, .args = c->args, .t_ms = g->t_ms });
	budget_note(g, c, t);
	if (step >= 0)
		plan_note(g, step);
}

/* The same rule again and again: whoever asks is not going to learn. */
static void count_denial(struct gate *g, struct gate_answer *a)
{
	unsigned i = 0;

	while (i < g->n_denials && strcmp(g->denials[i].rule, a->rule))
		i++;
	if (i == sizeof g->denials / sizeof *g->denials)
		i--;
	else if (i == g->n_denials)
		g->denials[g->n_denials++] = (struct gate_denial){ .n = 0 };
	snprintf(g->denials[i].rule, sizeof g->denials[i].rule, "%s", a->rule);
	if (++g->denials[i].n >= g->policy->denials && g->policy->denials)
		g->ended = true;
	a->ended = g->ended;
}

static const struct gate_tool *find_tool(struct gate *g, const char *name, struct gate_answer *ret)
{
	const struct gate_policy *p = g->policy;
	const struct gate_tool *t = gate_tool_find(p, name);
	const char **names, *near;
	char fix[200];

	if (t)
		return t;
	names = cs_arena_get(&g->scratch, p->n_tools + 1, sizeof *names);
	for (size_t i = 0; names && i < p->n_tools; i++)
		names[i] = p->tools[i].name;
	near = names ? cs_nearest(name, names, p->n_tools) : NULL;
	if (near)
		snprintf(fix, sizeof fix, "the policy has a tool '%s': call that, if it is meant", near);
	gate_raise(ret, RULES_DENY, "tool", near ? fix : "use a tool that the policy has; it has those that its manifest or tools: each: names", "there is no tool '%s'",
		   name);
	return NULL;
}

static bool may_begin(struct gate *g, const struct gate_call *c, struct gate_answer *ret)
{
	if (g->ended)
		gate_raise(ret, RULES_DENY, "session", "begin a new session", "the session is over");
	else if (c->id && gate_flight_find(g, c->id))
		gate_raise(ret, RULES_DENY, "protocol", "give every call an id of its own", "the call '%s' is not answered yet", c->id);
	else if (g->n_flights >= GATE_CALLS_MAX || g->flight_bytes > GATE_FLIGHTS_MAX)
		gate_raise(ret, RULES_DENY, "protocol", "tell the results of calls", "%u calls have no result yet", g->n_flights);
	else if (!c->args || c->args->type != JSON_OBJECT)
		gate_raise(ret, RULES_DENY, "protocol", "send args as an object", "the arguments are no object");
	return ret->verdict == RULES_ALLOW;
}

void gate_check(struct gate *g, const struct gate_call *c, struct gate_answer *ret)
{
	struct gate_call call = *c;
	struct gate_probe p = { .call = &call, .step = -1 };
	struct gate_flight *f = NULL;

	*ret = (struct gate_answer){ .verdict = RULES_ALLOW };
	gate_at(g, c->t_ms);
	if (!call.role)
		call.role = g->options.role;
	if (!may_begin(g, &call, ret)) {
		ret->ended = g->ended;
		return;
	}
	p.tool = find_tool(g, call.tool, ret);
	if (p.tool)
		gate_judge(g, &p, ret);
	if (ret->verdict != RULES_DENY && call.id && !(f = flight_new(g, &call, p.tool, GATE_ASKED)))
		gate_raise(ret, RULES_DENY, "protocol", "send less", "the arguments are too large to be kept");
	if (ret->verdict == RULES_DENY || !p.tool)
		count_denial(g, ret);
	else if (ret->verdict != RULES_ASK)
		gate_grant(g, &call, p.tool, p.step);
	else if (f)
		f->answer = *ret;
}

int gate_confirm(struct gate *g, const char *id, bool allow, uint64_t t_ms, struct gate_answer *ret, struct cs_err *err)
{
	struct gate_flight *f = gate_flight_find(g, id);
	struct gate_probe p = { .step = -1 };
	struct gate_call call;

	*ret = (struct gate_answer){ .verdict = RULES_ALLOW };
	gate_at(g, t_ms);
	if (!id) {
		if (allow)
			note(g, &(struct rules_event){ .kind = RULES_EV_CONFIRM, .t_ms = g->t_ms });
		return 0;
	}
	if (g->ended) {
		gate_raise(ret, RULES_DENY, "session", "begin a new session", "the session is over");
		ret->ended = true;
		return 0;
	}
	if (!f || f->state != GATE_ASKED)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "no call '%s' waits for an answer", id);
	if (!allow) {
		gate_raise(ret, RULES_DENY, "person", "do something else", "a person said no");
		flight_drop(g, f);
		count_denial(g, ret);
		return 0;
	}
	/* Time has passed since it was asked: everything but the questions is looked at again. */
	call = (struct gate_call){ .id = f->id, .agent = f->agent, .role = f->role, .tool = f->tool->name, .args = f->args, .t_ms = g->t_ms,
				    .tokens = f->tokens };
	p.call = &call;
	p.tool = f->tool;
	p.confirmed = &f->answer;
	gate_judge(g, &p, ret);
	if (ret->verdict == RULES_DENY) {
		flight_drop(g, f);
		count_denial(g, ret);
	} else if (ret->verdict == RULES_ASK) {
		f->answer = *ret; /* something new: it waits on */
	} else {
		gate_grant(g, &call, f->tool, p.step);
	}
	return 0;
}

/* ---- results ---- */

/* A line each; what stands before a colon on the first is its heading. */
static const struct json *lines_of(struct cs_arena *a, const struct json *v)
{
	struct json *r = cs_arena_new(a, struct json), *items;
	const char *s = v->s, *end = v->s + v->n;
	uint32_t n = 1;

	for (uint32_t i = 0; i < v->n; i++)
		n += v->s[i] == '\n';
	items = cs_arena_get(a, n, sizeof *items);
	if (!r || !items)
		return v;
	r->type = JSON_ARRAY;
	r->items = items;
	while (s < end) {
		const char *eol = memchr(s, '\n', (size_t)(end - s));
		const char *to = eol ? eol : end, *colon = memmem(s, (size_t)(to - s), ": ", 2);

		if (r->n == 0 && colon)
			s = colon + 2;
		if (to > s)
			items[r->n++] = (struct json){ .type = JSON_STRING, .s = s, .n = (uint32_t)(to - s) };
		s = to + 1;
	}
	/* They share the text, but a string ends in a NUL. */
	for (uint32_t i = 0; i < r->n; i++) {
		const char *copy = cs_arena_dup(a, items[i].s, items[i].n);

		if (!copy)
			return v;
		items[i].s = copy;
	}
	return r;
}

const struct json *gate_structure(struct cs_arena *a, enum gate_format format, const struct json *v)
{
	const struct json *r = v;

	if (!v || v->type != JSON_STRING || format == GATE_FORMAT_TEXT)
		return v;
	if (format == GATE_FORMAT_LINES)
		return lines_of(a, v);
	if (format == GATE_FORMAT_YAML)
		return json_read_yaml(a, v->s, v->n, NULL, NULL, &r, NULL) < 0 ? v : r;
	if (format == GATE_FORMAT_AUTO && (!v->n || !strchr("{[", v->s[0])))
		return v;
	return json_read(a, v->s, v->n, NULL, &r, NULL) < 0 ? v : r;
}

/* Words that attacks like to use. They decide nothing: session.suspicion is there for rules to ask about. */
static unsigned suspicious(const struct json *v, unsigned depth)
{
	static const char *const words[] = { "ignore previous instructions", "ignore all previous", "disregard the above",
					     "<important>", "important message from me", "system prompt", "new instructions:",
					     "do not tell the user", "before you can solve the task" };
	unsigned n = 0;

	if (depth > 64)
		return 0;
	if (v->type == JSON_STRING)
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			n += strcasestr(v->s, words[i]) != NULL;
	for (uint32_t i = 0; v->type == JSON_ARRAY && i < v->n; i++)
		n += suspicious(&v->items[i], depth + 1);
	for (uint32_t i = 0; v->type == JSON_OBJECT && i < v->n; i++)
		n += suspicious(&v->members[i].value, depth + 1);
	return n;
}

static void learn(struct gate *g, const struct gate_tool *t, const struct json *result, bool guessed)
{
	struct origin_source s = { .trusted = t->trusted, .free_fields = t->free_fields, .n_free = t->n_free,
				   .trusted_fields = t->trusted_fields, .n_trusted = t->n_trusted, .guessed = guessed };

	if (!t->trusted || t->n_free)
		g->untrusted = g->heard = true;
	g->sensitive |= t->sensitive || t->secret;
	g->secret |= t->secret;
	if (!result)
		return;
	g->suspicion += suspicious(result, 0);
	origin_result(g->origin, result, &s);
}

/* The policy says nothing about the tool's fields, and the text just began like JSON: so can a stranger's page. */
static bool is_guess(const struct gate_tool *t)
{
	return t->format == GATE_FORMAT_AUTO && !t->n_free && !t->n_trusted && !t->output;
}

static bool keeps_promise(struct gate *g, const struct gate_flight *f, const struct json *result, struct gate_answer *ret)
{
	struct schema_report report = { .name = "result" };
	static const struct json nothing = { .type = JSON_NULL };

	(void)g;
	if (!f->tool->output || schema_validate(f->tool->output, result ? result : &nothing, &report))
		return true;
	gate_raise(ret, RULES_DENY, "output", "treat the call as failed", "the result of %s does not fit its schema: %s", f->tool->name,
		   report.failures[0].message);
	return false;
}

static void check_after(struct gate *g, const struct gate_flight *f, struct gate_answer *ret)
{
	struct rules_hit hit = { 0 };

	if (!g->after)
		return;
	rules_monitor_check(g->after, &(struct rules_event){ .kind = RULES_EV_END, .t_ms = g->t_ms }, &g->world, &hit);
	if (hit.rule && hit.verdict == RULES_DENY)
		gate_raise(ret, RULES_DENY, hit.rule, "treat the call as failed, and roll it back", "a condition on the result of %s does not hold",
			   f->tool->name);
}

int gate_result(struct gate *g, const char *id, bool ok, const struct json *result, uint64_t t_ms, struct gate_answer *ret,
		struct cs_err *err)
{
	struct gate_flight *f = gate_flight_find(g, id);
	const struct json *v;

	*ret = (struct gate_answer){ .verdict = RULES_ALLOW };
	gate_at(g, t_ms);
	if (!f || f->state != GATE_RUNNING)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "no call '%s' is running", id ? id : "");
	v = gate_structure(&g->scratch, f->tool->format, result);
	ok = keeps_promise(g, f, v, ret) && ok;
	note(g, &(struct rules_event){ .kind = ok ? RULES_EV_OK : RULES_EV_FAIL, .tool = f->tool->index, .args = f->args, .result = v,
				       .t_ms = g->t_ms });
	if (ok)
		check_after(g, f, ret);
	learn(g, f->tool, v, v != result && is_guess(f->tool));
	budget_result(g, f, v);
	if (f->step >= 0)
		plan_result(g, f->step, ok, v);
	flight_drop(g, f);
	return 0;
}

void gate_end(struct gate *g, uint64_t t_ms, struct gate_answer *ret)
{
	struct rules_hit hit = { 0 };

	*ret = (struct gate_answer){ .verdict = RULES_ALLOW };
	gate_at(g, t_ms);
	rules_monitor_check(g->monitor, &(struct rules_event){ .kind = RULES_EV_END, .t_ms = g->t_ms }, &g->world, &hit);
	if (hit.rule)
		gate_raise(ret, hit.verdict, hit.rule, hit.fix, "%s", hit.because ? hit.because : "something that had to be done was not");
	g->ended = ret->ended = true;
}

size_t gate_next(struct gate *g, const char *role, const char **ret, size_t max)
{
	const struct gate_policy *p = g->policy;
	size_t n = 0, count = rules_tool_count(p->rules);
	bool *may = cs_arena_get(&g->scratch, count + 1, sizeof *may);

	if (g->ended || !may)
		return 0;
	rules_monitor_next(g->monitor, &g->world, may);
	for (size_t i = 0; i < p->n_tools && n < max; i++) {
		const struct gate_tool *t = &p->tools[i];

		if ((t->in && t->in->quarantine[0]) || t->index < 0 || !may[t->index])
			continue;
		if (gate_may_access(p, role ? role : g->options.role, t->name))
			ret[n++] = t->name;
	}
	return n;
}
