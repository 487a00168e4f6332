/* SPDX-License-Identifier: Apache-2.0 */
/* hook_client.c - the words of each client.
 *
 * Claude Code   one JSON object on standard input, hook_event_name says which; answered by an object with
 *               hookSpecificOutput.permissionDecision allow, deny or ask; exit status 2 blocks, with standard error
 *               as the reason, and any other status is an error that blocks nothing.
 * Codex         the same names, but only `deny` is a decision (and `allow` with updatedInput, where it is supported):
 *               an answer it does not support is dropped and the call is made.  So what it cannot say is said as deny.
 * generic       docs/hooks.md. */
#include "cli/hook.h"

#include "base/json.h"
#include "base/text.h"
#include "rules/rules.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_BYTES = 128, SESSION_BYTES = 1024, PATH_BYTES = 4096 };

static const char *const clients[] = { [HOOK_CLAUDE_CODE] = "claude-code", [HOOK_CODEX] = "codex", [HOOK_GENERIC] = "generic" };

bool hook_client_of(const char *name, enum hook_client *ret)
{
	for (size_t i = 0; i < sizeof clients / sizeof *clients; i++)
		if (!strcmp(clients[i], name)) {
			*ret = (enum hook_client)i;
			return true;
		}
	return false;
}

bool hook_can_ask(enum hook_client c)
{
	return c != HOOK_CODEX;
}

/* ---- in ---- */

/* A text of at most `most` bytes; absent and null are NULL.  false: it is something else. */
static bool text(const struct json *v, const char *key, size_t most, const char **ret)
{
	const struct json *x = json_get(v, key);

	*ret = NULL;
	if (!x || json_is(x, JSON_NULL))
		return true;
	*ret = json_str(x);
	return *ret && strlen(*ret) <= most;
}

static const struct keys {
	const char *name, *session, *id, *tool, *agent, *args, *result, *text;
} keys[] = {
	[HOOK_CLAUDE_CODE] = { "hook_event_name", "session_id", "tool_use_id", "tool_name", "agent_id", "tool_input", "tool_response", "prompt" },
	[HOOK_CODEX] = { "hook_event_name", "session_id", "tool_use_id", "tool_name", "agent_id", "tool_input", "tool_response", "prompt" },
	[HOOK_GENERIC] = { "event", "session", "id", "tool", "agent", "args", "result", "text" },
};

static const struct {
	const char *name;
	bool generic, ok;
	enum hook_kind kind;
} events[] = {
	{ "PreToolUse", false, true, HOOK_CALL }, { "PostToolUse", false, true, HOOK_RESULT }, { "PostToolUseFailure", false, false, HOOK_RESULT },
	{ "UserPromptSubmit", false, true, HOOK_USER }, { "call", true, true, HOOK_CALL }, { "result", true, true, HOOK_RESULT },
	{ "user", true, true, HOOK_USER },
};

/* Clients have events that are nobody's business here; a caller of the generic hook has those it was told of.  A name that
 * is one of ours but for its letters' case is a mistake in both: let pass, the call would go unjudged. */
static int read_kind(enum hook_client c, struct hook_event *e, struct cs_err *err)
{
	char shown[128];

	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		if (events[i].generic != (c == HOOK_GENERIC) || strcasecmp(events[i].name, e->name) != 0)
			continue;
		if (strcmp(events[i].name, e->name) != 0)
			return cs_fail(err, CS_E_INVALID, 0, "%s: unknown event '%s' (did you mean '%s'?)", clients[c],
				       cs_escape_to(shown, sizeof shown, e->name), events[i].name);
		e->kind = events[i].kind;
		e->ok = events[i].ok;
		return 0;
	}
	if (c != HOOK_GENERIC)
		return 0;
	return cs_fail(err, CS_E_INVALID, 0, "%s: unknown event '%s': call, result or user", clients[c], cs_escape_to(shown, sizeof shown, e->name));
}

static int read_event(enum hook_client c, const struct json *v, struct hook_event *e, struct cs_err *err)
{
	const struct keys *k = &keys[c];

	if (!text(v, k->name, NAME_BYTES, &e->name) || !e->name)
		return cs_fail(err, CS_E_INVALID, 0, "%s: %s says nowhere which event it is", clients[c], k->name);
	if (!text(v, k->session, SESSION_BYTES, &e->session) || !e->session || !*e->session)
		return cs_fail(err, CS_E_INVALID, 0, "%s: %s is wanted, a text of at most %d bytes", clients[c], k->session, SESSION_BYTES);
	if (!text(v, k->id, NAME_BYTES, &e->id) || !text(v, k->tool, NAME_BYTES, &e->tool) || !text(v, k->agent, NAME_BYTES, &e->agent) ||
	    !text(v, "cwd", PATH_BYTES, &e->cwd))
		return cs_fail(err, CS_E_INVALID, 0, "%s: %s, %s and %s are texts of at most %d bytes", clients[c], k->id, k->tool, k->agent, NAME_BYTES);
	return read_kind(c, e, err);
}

static int read_parts(enum hook_client c, const struct json *v, struct hook_event *e, struct cs_err *err)
{
	const struct keys *k = &keys[c];
	const struct json *ok = json_get(v, "ok");

	e->args = json_get(v, k->args);
	e->result = json_get(v, k->result);
	if (!e->result && c != HOOK_GENERIC && e->kind == HOOK_RESULT)
		e->result = json_get(v, "error"); /* of a call that failed: Claude Code; it is what the model reads */
	e->text = json_get(v, k->text);
	/* Of a call that it refused itself, or that its user did, Claude Code tells hooks of the machine's settings as of one that went
	 * well, with this text where the tool's answer would be. */
	e->refused = c == HOOK_CLAUDE_CODE && e->kind == HOOK_RESULT && e->ok && json_is(e->result, JSON_STRING) && !strncmp(e->result->s, "Error: ", 7);
	e->ok = e->ok && !e->refused;
	if (c == HOOK_GENERIC && e->kind == HOOK_RESULT && ok)
		e->ok = json_is(ok, JSON_BOOL) && ok->b;
	if (e->kind == HOOK_CALL && (!e->tool || !*e->tool || !json_is(e->args, JSON_OBJECT)))
		return cs_fail(err, CS_E_INVALID, 0, "%s: %s: %s and %s are wanted, a text and an object", clients[c], e->name, k->tool, k->args);
	if (e->kind == HOOK_USER && !json_is(e->text, JSON_STRING))
		return cs_fail(err, CS_E_INVALID, 0, "%s: %s: %s is wanted, a text", clients[c], e->name, k->text);
	return 0;
}

int hook_parse(enum hook_client c, struct cs_arena *a, const char *input, size_t len, struct hook_event *ret, struct cs_err *err)
{
	struct hook_event e = { .kind = HOOK_OTHER };
	const struct json *v;
	int r = json_read(a, input, len, NULL, &v, err);

	if (r < 0)
		return cs_wrap(err, r, "%s: standard input", clients[c]);
	if (!json_is(v, JSON_OBJECT))
		return cs_fail(err, CS_E_INVALID, 0, "%s: standard input is not a JSON object", clients[c]);
	r = read_event(c, v, &e, err);
	if (r >= 0)
		r = read_parts(c, v, &e, err);
	if (r >= 0)
		*ret = e;
	return r;
}

/* ---- out ---- */

static void write_args(struct cs_buf *out, const char *key, const struct json *args)
{
	cs_buf_fmt(out, ",\"%s\":", key);
	json_write(out, args);
}

static void decision(struct cs_buf *out, const char *word, const struct hook_answer *a)
{
	struct cs_json j;

	cs_json_begin(&j, out, false);
	cs_json_object(&j, NULL);
	cs_json_object(&j, "hookSpecificOutput");
	cs_json_str(&j, "hookEventName", "PreToolUse");
	cs_json_str(&j, "permissionDecision", word);
	if (a->reason[0])
		cs_json_str(&j, "permissionDecisionReason", a->reason);
	if (a->args && strcmp(word, "deny") != 0)
		write_args(out, "updatedInput", a->args);
	cs_json_end(&j, '}');
	cs_json_end(&j, '}');
}

/* After the fact: the model is told, and that is all that can be done. */
static void block(struct cs_buf *out, const struct hook_answer *a)
{
	struct cs_json j;

	cs_json_begin(&j, out, false);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "decision", "block");
	cs_json_str(&j, "reason", a->reason);
	cs_json_end(&j, '}');
}

static void write_call(enum hook_client c, const struct hook_style *s, const struct hook_answer *a, struct cs_buf *out)
{
	bool pass = a->verdict == RULES_ALLOW || (a->verdict == RULES_SANDBOX && a->rewritten);

	if (!pass)
		decision(out, a->verdict == RULES_ASK && hook_can_ask(c) ? "ask" : "deny", a);
	else if (a->args || (c == HOOK_CLAUDE_CODE && !s->defer))
		decision(out, "allow", a);
	/* else nothing: Codex takes that, and only that, for "go on" */
}

static void write_generic(const struct hook_answer *a, struct cs_buf *out)
{
	struct cs_json j;

	cs_json_begin(&j, out, false);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "verdict", rules_verdict_name(a->verdict));
	if (a->rule[0])
		cs_json_str(&j, "rule", a->rule);
	if (a->reason[0])
		cs_json_str(&j, "reason", a->reason);
	if (a->fix[0])
		cs_json_str(&j, "fix", a->fix);
	if (a->approval[0])
		cs_json_str(&j, "approval", a->approval);
	if (a->args)
		write_args(out, "args", a->args);
	cs_json_end(&j, '}');
}

void hook_write(enum hook_client c, const struct hook_style *s, const struct hook_event *e, const struct hook_answer *a, struct cs_buf *out)
{
	if (c == HOOK_GENERIC)
		write_generic(a, out);
	else if (e->kind == HOOK_CALL)
		write_call(c, s, a, out);
	else if (e->kind == HOOK_RESULT && a->verdict == RULES_DENY)
		block(out, a);
}
