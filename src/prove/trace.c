/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - a model as a trace, and the monitor's word on it.
 *
 * The encoding is larger than what can happen, and may have faults; the monitor is
 * what will decide in earnest.  So no trace is shown that it has not gone through.
 */
#include "prove/internal.h"
#include "prove/model.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- from a model ---- */

static bool read_step(struct trace *t, uint32_t i)
{
	struct enc *e = t->e;
	const struct step *s = &e->steps[i];
	struct trace_step *to = &t->steps[i];

	to->t_ms = e->timed ? model_whole(t->model, s->t) : 0;
	to->kind = model_true(t->model, s->user) ? STEP_USER : STEP_CONFIRM;
	for (uint32_t k = 0; k < e->n_tools; k++)
		if (model_true(t->model, s->tool[k])) {
			to->kind = STEP_CALL;
			to->tool = k;
		}
	if (to->kind != STEP_CALL)
		return true;
	to->outcome = model_true(t->model, s->ok) ? RESULT_OK : model_true(t->model, s->fail) ? RESULT_FAIL : RESULT_NONE;
	to->args = model_place(t->model, SLOT_ARG, i, e->tools[to->tool].input);
	if (to->outcome == RESULT_NONE || (!model_has(t->model, SLOT_RESULT, i) && !(to->outcome == RESULT_OK && e->tools[to->tool].output)))
		return to->args != NULL;
	to->result = model_place(t->model, SLOT_RESULT, i, to->outcome == RESULT_OK ? e->tools[to->tool].output : NULL);
	return to->args && to->result;
}

bool trace_read(struct trace *t, struct enc *e, struct solver *s, struct cs_arena *a, uint32_t n)
{
	*t = (struct trace){ .e = e, .arena = a, .n = n };
	t->model = model_read(e, s, a, n);
	t->steps = cs_arena_get(a, n + 1, sizeof *t->steps);
	if (!t->model || !t->steps)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!read_step(t, i))
			return false;
	t->end_ms = e->timed ? model_whole(t->model, "t_end") : 0;
	return true;
}

/* ---- for people, in the language of inline tests ---- */

static bool plain_name(const char *s)
{
	return *s && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(s);
}

static void write_json(struct cs_buf *b, const struct json *v)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 20);

	json_write(&text, v);
	cs_escape(b, cs_buf_text(&text));
}

static void write_call(const struct trace *t, const struct trace_step *s, struct cs_buf *b)
{
	cs_escape(b, t->e->tools[s->tool].name);
	cs_buf_char(b, '(');
	for (uint32_t i = 0; i < s->args->n; i++) {
		const struct json_member *m = &s->args->members[i];

		cs_buf_str(b, i ? ", " : "");
		if (plain_name(m->key)) {
			cs_buf_str(b, m->key);
		} else {
			struct json key = { .type = JSON_STRING, .n = m->key_len, .s = m->key };

			write_json(b, &key);
		}
		cs_buf_char(b, '=');
		write_json(b, &m->value);
	}
	cs_buf_char(b, ')');
	if (s->outcome == RESULT_FAIL)
		cs_buf_str(b, " -> fail");
	if (s->result) {
		cs_buf_str(b, s->outcome == RESULT_OK ? " -> " : " ");
		write_json(b, s->result);
	}
	if (s->outcome == RESULT_NONE)
		cs_buf_str(b, "  # no result yet");
}

void trace_write(const struct trace *t, struct cs_buf *b)
{
	uint64_t now = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct trace_step *s = &t->steps[i];

		if (s->t_ms > now) {
			cs_buf_fmt(b, "wait %llums\n", (unsigned long long)(s->t_ms - now));
			now = s->t_ms;
		}
		if (s->kind == STEP_CALL)
			write_call(t, s, b);
		else
			cs_buf_str(b, s->kind == STEP_USER ? "user \"...\"" : "confirm");
		cs_buf_char(b, '\n');
	}
}

/* ---- the host's answers, as the model has them ---- */

static const struct asked *next_asked(const struct trace *t, const struct asked *a, enum asked_kind kind)
{
	for (; a; a = a->next)
		if (a->kind == kind && a->step == t->world_step && a->end == t->world_end)
			return a;
	return NULL;
}

static const struct json *world_session(void *ctx, struct cs_arena *a, const char *name)
{
	struct trace *t = ctx;

	(void)a;
	for (const struct asked *q = next_asked(t, t->e->asked, ASKED_SESSION); q; q = next_asked(t, q->next, ASKED_SESSION))
		if (!strcmp(q->name, name))
			return model_value(t->model, &q->val);
	return NULL;
}

static const struct json *at(const struct json *v, const struct rl_step *path, uint32_t n)
{
	for (uint32_t i = 0; i < n && v; i++)
		v = path[i].term ? NULL : path[i].key ? json_get(v, path[i].key) : json_at(v, (size_t)path[i].index);
	return v;
}

/* Was it this argument of the step that is asked about? */
static bool about(const struct trace *t, const struct asked *q, const struct json *value)
{
	const struct json *v;

	if (t->world_step >= (int)t->n || !q->arg)
		return false;
	v = at(t->steps[t->world_step].args, q->arg->path, q->arg->steps);
	return v && json_equal(v, value);
}

static const struct json *world_shell(void *ctx, struct cs_arena *a, const struct json *command)
{
	struct trace *t = ctx;

	(void)a;
	for (const struct asked *q = next_asked(t, t->e->asked, ASKED_SHELL); q; q = next_asked(t, q->next, ASKED_SHELL))
		if (about(t, q, command))
			return model_value(t->model, &q->val);
	return NULL;
}

static const struct json *world_from(void *ctx, struct cs_arena *a, const struct json *value)
{
	struct trace *t = ctx;
	struct json *set = cs_arena_new(a, struct json), *items = cs_arena_get(a, 65, sizeof *items);
	bool known = false;

	if (!set || !items)
		return NULL;
	*set = (struct json){ .type = JSON_ARRAY, .items = items };
	for (const struct asked *q = next_asked(t, t->e->asked, ASKED_FROM); q && set->n < 65; q = next_asked(t, q->next, ASKED_FROM)) {
		const char *name = q->name ? q->name : "(another)";

		if (!about(t, q, value))
			continue;
		known |= model_true(t->model, q->tv.t) || model_true(t->model, q->tv.f);
		if (model_true(t->model, q->tv.t))
			items[set->n++] = (struct json){ .type = JSON_STRING, .s = name, .n = (uint32_t)strlen(name) };
	}
	return known ? set : NULL;
}

/* ---- the monitor ---- */

static int own_tool(const struct policy *p, uint32_t tool)
{
	for (uint32_t i = 0; i < p->r->n_tools; i++)
		if (p->tool[i] == (int)tool)
			return (int)i;
	return -1;
}

static struct rules_event call_of(const struct trace *t, const struct policy *p, uint32_t i)
{
	const struct trace_step *s = &t->steps[i];
	struct rules_event ev = { .t_ms = s->t_ms, .args = s->args };

	ev.kind = s->kind == STEP_CALL ? RULES_EV_CALL : s->kind == STEP_USER ? RULES_EV_USER : RULES_EV_CONFIRM;
	ev.tool = s->kind == STEP_CALL ? own_tool(p, s->tool) : 0;
	return ev;
}

static void ask_call(struct trace *t, struct rules_monitor *m, const struct policy *p, uint32_t i, struct rules_hit *ret)
{
	struct rules_world w = { .ctx = t, .session = world_session, .from = world_from, .shell = world_shell };
	struct rules_event ev = call_of(t, p, i);

	t->world_step = (int)i;
	t->world_end = false;
	*ret = (struct rules_hit){ .verdict = RULES_ALLOW };
	if (ev.kind == RULES_EV_CALL && ev.tool < 0)
		ret->verdict = RULES_DENY; /* unknown to this file */
	else if (ev.kind == RULES_EV_CALL)
		rules_monitor_check(m, &ev, &w, ret);
}

static void note(struct trace *t, struct rules_monitor *m, const struct policy *p, uint32_t i)
{
	struct rules_world w = { .ctx = t, .session = world_session, .from = world_from, .shell = world_shell };
	struct rules_event ev = call_of(t, p, i);

	t->world_step = (int)i;
	t->world_end = false;
	if (ev.kind == RULES_EV_CALL && ev.tool < 0)
		return;
	rules_monitor_note(m, &ev, &w);
	if (ev.kind != RULES_EV_CALL || t->steps[i].outcome == RESULT_NONE)
		return;
	ev.kind = t->steps[i].outcome == RESULT_OK ? RULES_EV_OK : RULES_EV_FAIL;
	ev.result = t->steps[i].result;
	rules_monitor_note(m, &ev, &w);
}

static void ask_end(struct trace *t, struct rules_monitor *m, struct rules_hit *ret)
{
	struct rules_world w = { .ctx = t, .session = world_session };
	struct rules_event ev = { .kind = RULES_EV_END, .t_ms = t->end_ms };

	t->world_step = (int)t->n;
	t->world_end = true;
	rules_monitor_check(m, &ev, &w, ret);
}

/* The verdict on the last step or the end by these rules alone, whatever they say before. */
static struct replay run(struct trace *t, const struct policy *p, const struct rules *r, bool end)
{
	struct rules_monitor *m = rules_monitor_new(r, NULL);
	uint32_t before = end ? t->n : t->n - 1;
	struct replay ret = { .legal = true, .verdict = RULES_DENY };
	struct rules_hit hit;

	if (!m)
		return (struct replay){ .legal = false };
	for (uint32_t i = 0; i < before; i++) {
		ask_call(t, m, p, i, &hit);
		ret.legal &= hit.verdict != RULES_DENY;
		note(t, m, p, i);
	}
	if (end)
		ask_end(t, m, &hit);
	else
		ask_call(t, m, p, before, &hit);
	ret.verdict = hit.verdict;
	ret.rule = hit.rule;
	rules_monitor_free(m);
	return ret;
}

/* The same rules, of which only one is ever asked, or (`but`) only the others. UINT32_MAX: none of them. */
static bool some_rules(struct cs_arena *a, const struct rules *r, uint32_t which, bool but, struct rules *ret)
{
	static const struct rl_call never = { .n_args = 0 };
	struct rl_rule *rules = cs_arena_get(a, r->n_rules + 1, sizeof *rules);

	if (!rules)
		return false;
	*ret = *r;
	ret->plan = NULL; /* that of the other rules */
	ret->rules = rules;
	if (r->n_rules)
		memcpy(rules, r->rules, r->n_rules * sizeof *rules);
	for (uint32_t i = 0; i < r->n_rules; i++)
		if ((i == which) == but) {
			rules[i].call = &never;
			rules[i].each = false;
		}
	return true;
}

struct replay trace_replay(struct trace *t, const struct policy *p, bool end)
{
	return run(t, p, p->r, end);
}

struct replay trace_replay_without(struct trace *t, const struct policy *p, uint32_t rule, bool end)
{
	struct rules others;

	if (!some_rules(t->arena, p->r, rule, /* but= */ true, &others))
		return (struct replay){ .legal = false };
	return run(t, p, &others, end);
}

bool trace_fires(struct trace *t, const struct policy *p, uint32_t rule, bool end)
{
	struct rules alone;

	if (!some_rules(t->arena, p->r, rule, /* but= */ false, &alone))
		return false;
	return run(t, p, &alone, end).rule != NULL;
}

/* As a rule that allows to end: it fires where the formula is known to be true. */
bool trace_holds(struct trace *t, const struct policy *p, const struct rl_formula *f)
{
	static const struct rl_call end = { .tools = { .text = "end", .end = true } };
	struct rl_past *pasts = cs_arena_get(t->arena, p->r->n_pasts + 1, sizeof *pasts);
	struct rl_kept *kept = cs_arena_get(t->arena, p->r->n_kept + 1, sizeof *kept);
	struct rules with;
	struct rl_rule *rules;
	struct replay r;

	if (!pasts || !kept || !some_rules(t->arena, p->r, UINT32_MAX, /* but= */ false, &with))
		return false;
	rules = (struct rl_rule *)with.rules;
	rules[with.n_rules] = (struct rl_rule){ .name = "(assert)", .verb = RULES_ALLOW, .call = &end, .where = f };
	for (uint32_t i = 0; i < with.n_pasts; i++) {
		pasts[i] = p->r->pasts[i];
		if (pasts[i].rule == UINT32_MAX)
			pasts[i].rule = with.n_rules;
	}
	for (uint32_t i = 0; i < with.n_kept; i++) {
		kept[i] = p->r->kept[i];
		if (kept[i].rule == UINT32_MAX)
			kept[i].rule = with.n_rules;
	}
	with.pasts = pasts;
	with.kept = kept;
	with.n_rules++;
	r = run(t, p, &with, true);
	return r.rule != NULL;
}
