/* SPDX-License-Identifier: Apache-2.0 */
/* protocol.c - lines of JSON in and out. */
#include "gate/internal.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static void complain(struct cs_buf *out, const struct json *event, const char *what, const char *fix)
{
	const char *id = json_str(json_get(event, "id"));
	struct cs_json j;
	char text[600];

	cs_json_begin(&j, out, false);
	cs_json_object(&j, NULL);
	if (id)
		cs_json_str(&j, "id", id);
	cs_json_str(&j, "verdict", "deny");
	cs_json_str(&j, "rule", "protocol");
	cs_json_str(&j, "reason", cs_escape_to(text, sizeof text, what));
	cs_json_str(&j, "fix", fix);
	cs_json_end(&j, '}');
}

static void write_next(struct gate *g, struct cs_json *j, const char *role)
{
	CS_FREE const char **names = cs_calloc(g->policy->n_tools + 1, sizeof *names);
	size_t n = gate_next(g, role, names, g->policy->n_tools);

	cs_json_array(j, "next");
	for (size_t i = 0; i < n; i++)
		cs_json_str(j, NULL, names[i]);
	cs_json_end(j, ']');
}

static void reply(struct gate *g, struct cs_buf *out, const char *id, const char *role, const struct gate_answer *a)
{
	struct cs_json j;

	cs_json_begin(&j, out, false);
	cs_json_object(&j, NULL);
	if (id)
		cs_json_str(&j, "id", id);
	cs_json_str(&j, "verdict", rules_verdict_name(a->verdict));
	if (a->rule[0])
		cs_json_str(&j, "rule", a->rule);
	if (a->reason[0])
		cs_json_str(&j, "reason", a->reason);
	if (a->fix[0])
		cs_json_str(&j, "fix", a->fix);
	if (a->verdict == RULES_DENY)
		write_next(g, &j, role);
	if (a->ended)
		cs_json_bool(&j, "ended", true);
	cs_json_end(&j, '}');
}

/* ---- one kind of event each ---- */

struct event {
	struct gate *g;
	const struct json *v;
	uint64_t t;
	struct cs_buf *out;
};

/* A short text, or NULL; false: it is there and is none. */
static bool word(const struct event *e, const char *key, const char **ret)
{
	const struct json *v = json_get(e->v, key);

	*ret = json_str(v);
	return !v || v->type == JSON_NULL || (*ret && strlen(*ret) <= GATE_NAME_MAX);
}

static void on_user(const struct event *e)
{
	const struct json *text = json_get(e->v, "text");

	if (!json_is(text, JSON_STRING))
		complain(e->out, e->v, "a user event has a text", "send {\"type\":\"user\",\"text\":\"...\"}");
	else
		gate_user(e->g, text->s, text->n, e->t);
}

static void on_plan(const struct event *e)
{
	gate_at(e->g, e->t);
	if (e->g->ended)
		complain(e->out, e->v, "the session is over", "begin a new session");
	else
		plan_submit(e->g, e->v, e->out);
}

static void on_call(const struct event *e)
{
	static const struct json none = { .type = JSON_OBJECT };
	struct gate_call c = { .args = json_get(e->v, "args"), .t_ms = e->t };
	struct gate_answer a;
	int64_t tokens = 0;
	char made[32];

	if (!word(e, "id", &c.id) || !word(e, "tool", &c.tool) || !word(e, "agent", &c.agent) || !word(e, "role", &c.role) || !c.tool) {
		complain(e->out, e->v, "a call has a tool, and id, agent and role are texts of at most 128 bytes",
			 "send {\"type\":\"call\",\"id\":\"1\",\"tool\":\"...\",\"args\":{...}}");
		return;
	}
	if (!c.args)
		c.args = &none;
	if (json_int(json_get(e->v, "tokens"), &tokens) && tokens > 0)
		c.tokens = (uint64_t)tokens;
	if (!c.id) {
		snprintf(made, sizeof made, "#%llu", (unsigned long long)++e->g->made);
		c.id = made;
	}
	gate_check(e->g, &c, &a);
	reply(e->g, e->out, c.id, c.role, &a);
}

static void on_result(const struct event *e)
{
	const struct json *ok = json_get(e->v, "ok");
	struct gate_answer a;
	struct cs_err err = { 0 };
	const char *id;

	if (!word(e, "id", &id) || !id || (ok && ok->type != JSON_BOOL)) {
		complain(e->out, e->v, "a result has an id, and ok is true or false", "send {\"type\":\"result\",\"id\":\"1\",\"ok\":true,\"result\":...}");
		return;
	}
	if (gate_result(e->g, id, !ok || ok->b, json_get(e->v, "result"), e->t, &a, &err) < 0)
		complain(e->out, e->v, err.msg, "send the id of a call that was let through");
	else if (a.verdict != RULES_ALLOW)
		reply(e->g, e->out, id, NULL, &a);
}

static void on_confirm(const struct event *e)
{
	const struct json *verdict = json_get(e->v, "verdict");
	struct gate_answer a;
	struct cs_err err = { 0 };
	const char *id;
	bool allow = !verdict || (json_str(verdict) && !strcmp(json_str(verdict), "allow"));

	if (!word(e, "id", &id) || (!allow && (!json_str(verdict) || strcmp(json_str(verdict), "deny")))) {
		complain(e->out, e->v, "a confirmation's verdict is allow or deny", "send {\"type\":\"confirm\",\"id\":\"1\",\"verdict\":\"allow\"}");
		return;
	}
	if (gate_confirm(e->g, id, allow, e->t, &a, &err) < 0)
		complain(e->out, e->v, err.msg, "send the id of a call that was asked about");
	else if (id)
		reply(e->g, e->out, id, NULL, &a);
}

static void on_next(const struct event *e)
{
	const char *role;
	struct cs_json j;

	if (!word(e, "role", &role))
		role = NULL;
	gate_at(e->g, e->t);
	cs_json_begin(&j, e->out, false);
	cs_json_object(&j, NULL);
	write_next(e->g, &j, role);
	cs_json_end(&j, '}');
}

static void on_end(const struct event *e)
{
	struct gate_answer a;

	gate_end(e->g, e->t, &a);
	a.ended = false; /* that is what was asked for */
	reply(e->g, e->out, NULL, NULL, &a);
}

static const struct kind {
	const char *name;
	bool agent; /* may the agent's side send it? */
	void (*on)(const struct event *e);
} kinds[] = {
	{ "user", false, on_user },   { "plan", true, on_plan },       { "call", true, on_call }, { "result", false, on_result },
	{ "confirm", false, on_confirm }, { "next", true, on_next }, { "end", false, on_end },
};

/* On the agent's side the role is the session's: whoever may choose it has all of them. */
static bool takes_role(const struct event *e)
{
	const struct json *role = json_get(e->v, "role");

	return role && role->type != JSON_NULL && (!json_str(role) || strcmp(json_str(role), e->g->options.role));
}

static bool time_of(const struct event *e, uint64_t *ret)
{
	const struct json *t = json_get(e->v, "t");
	int64_t ms;

	if (!t && e->g->options.clock) {
		*ret = e->g->options.clock(e->g->options.clock_ctx);
		return true;
	}
	if (!json_int(t, &ms) || ms < 0)
		return false;
	*ret = (uint64_t)ms;
	return true;
}

static void dispatch(struct event *e, enum gate_side side)
{
	const char *type = json_str(json_get(e->v, "type"));
	const struct kind *k = NULL;

	for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].name, type))
			k = &kinds[i];
	if (!k)
		complain(e->out, e->v, "there is no such type of event", "send user, plan, call, result, confirm, next or end");
	else if (side == GATE_AGENT && !k->agent)
		complain(e->out, e->v, "only the host's side may send this", "send plan and call");
	else if (side == GATE_AGENT && json_get(e->v, "t") && e->g->options.clock)
		complain(e->out, e->v, "an agent does not tell the time", "leave out t");
	else if (side == GATE_AGENT && takes_role(e))
		complain(e->out, e->v, "an agent does not choose its role", "leave out role; the host's side may send it");
	else if (!time_of(e, &e->t))
		complain(e->out, e->v, "t must be the time in milliseconds since 1970", "send t as a whole number");
	else
		k->on(e);
}

void gate_line(struct gate *g, enum gate_side side, const char *line, size_t len, struct cs_buf *answer)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)64 << 20);
	struct event e = { .g = g, .out = answer };
	struct cs_err err = { 0 };

	if (len > GATE_LINE_MAX)
		complain(answer, NULL, "the line is longer than 4 MiB", "send less");
	else if (json_read(&a, line, len, NULL, &e.v, &err) < 0)
		complain(answer, NULL, err.msg, "send one JSON object a line");
	else if (e.v->type != JSON_OBJECT)
		complain(answer, NULL, "an event is a JSON object", "send one JSON object a line");
	else
		dispatch(&e, side);
}
