/* SPDX-License-Identifier: Apache-2.0 */
/* gate_ask.c - caisson gate: a question goes to the store of approvals, to a person, or to an approver's program. */
#include "cli/gate.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/say.h"
#include "gate/approval.h"
#include "gate/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 60 * 1000 };

/* The exact effect that is asked about. */
static int effect_of(const struct gate_cli *c, struct cs_arena *a, const struct json *call, const struct json **ret, struct cs_err *err)
{
	struct approval_call q = { .tool = json_str(json_get(call, "tool")), .role = json_str(json_get(call, "role")), .args = json_get(call, "args") };
	static const struct json none = { .type = JSON_OBJECT };
	const char *shell = scope_shell(c->policy, q.tool);
	CS_FREE char *path = realpath(c->profile, NULL);
	char cwd[4096];

	q.policy = path ? path : c->profile;
	if (!q.role)
		q.role = c->role;
	if (!q.args)
		q.args = &none;
	q.command = shell ? json_str(json_get(q.args, shell)) : NULL;
	q.cwd = getcwd(cwd, sizeof cwd);
	return approval_effect(a, &q, ret, err);
}

static char *copy(const char *s)
{
	return s ? cs_strdup(s) : NULL;
}

static int put_question(const struct gate_cli *c, struct approvals *s, const struct json *call, const struct json *answer, const struct json *effect,
			const char *session, uint64_t now, struct approval *q, struct cs_err *err)
{
	CS_BUF_AUTO struct cs_buf text = CS_BUF(GATE_OUT_MAX);

	json_write_canonical(&text, effect);
	*q = (struct approval){
		.asked_ms = now,
		.expires_ms = now + scope_approval_ms(c->policy),
		.session = cs_strdup(session[0] ? session : "standard input"),
		.agent = copy(json_str(json_get(call, "agent"))),
		.role = copy(json_str(json_get(call, "role"))),
		.rule = copy(json_str(json_get(answer, "rule"))),
		.reason = copy(json_str(json_get(answer, "reason"))),
		.effect = cs_strdup(cs_buf_text(&text)),
	};
	return approval_ask(s, q, err);
}

/* A person at the terminal, or the approver's program. */
static enum approval_reply reply_to(const struct gate_cli *c, const struct approval *q)
{
	struct cs_err why = { 0 };
	enum approval_reply r = APPROVAL_NO_REPLY;

	if (c->approver.n)
		r = approval_hook((const char *const *)c->approver.v, q, ANSWER_MS, &why);
	if (r == APPROVAL_NO_REPLY && why.msg[0])
		say_note("the approver gave no answer: %s", why.msg);
	if (r == APPROVAL_NO_REPLY && c->prompt)
		r = approval_prompt(q, scope_approval_ms(c->policy));
	return r;
}

/* 1 allowed, 0 nobody has answered yet, negative: denied, or an error. */
static int settle(const struct gate_cli *c, struct approvals *s, const struct json *call, const struct json *answer, const char *session, uint64_t now,
		  char approval[40], struct cs_err *err)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)64 << 20);
	const struct json *effect = NULL;
	struct approval q = { 0 };
	enum approval_reply reply;
	int r = effect_of(c, &a, call, &effect, err);

	if (r < 0 || (r = approval_take(s, effect, now, NULL, err)) != 0)
		return r;
	r = put_question(c, s, call, answer, effect, session, now, &q, err);
	if (r >= 0) {
		snprintf(approval, 40, "%s", q.id);
		reply = reply_to(c, &q);
		if (reply != APPROVAL_NO_REPLY)
			r = approval_answer(s, q.id, reply != APPROVAL_REPLY_DENY, reply == APPROVAL_REPLY_ALWAYS, c->approver.n ? c->approver.v[0] : "the terminal",
					    now, err);
		r = r < 0 || reply == APPROVAL_NO_REPLY ? r : approval_take(s, effect, now, NULL, err);
	}
	approval_done(&q);
	return r;
}

enum gate_settled gate_settle(const struct gate_cli *c, const struct json *call, const struct json *answer, const char *session, uint64_t now,
			      char approval[40])
{
	struct approvals *s = NULL;
	struct cs_err err = { 0 };
	int r = approvals_open(c->store, &s, &err);

	approval[0] = 0;
	if (r >= 0) {
		r = settle(c, s, call, answer, session, now, approval, &err);
		approvals_close(s);
	}
	if (r == -CS_E_DENIED)
		return GATE_SETTLED_NO;
	if (r < 0)
		say_error("approvals: %s", err.msg);
	return r > 0 ? GATE_SETTLED_YES : GATE_OPEN;
}
