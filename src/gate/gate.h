/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h - may this happen? allow, sandbox, ask or deny, before anything does.
 *
 * Knows      tools and who may call them, plans, where values come from, budgets,
 *            and the rules (rules/).  Judges only: nothing is executed here.
 * Trusts     the policy file; the host's side of a connection (what the user said,
 *            results, confirmations).  The agent's side is trusted with nothing:
 *            it can ask, by `plan` and `call`, and that is all.
 * Promises   the same events give the same answers: no clock but the events' `t`,
 *            no randomness, no file is read after the policy was loaded, but for
 *            approvals, which are events themselves when they are given.
 * Owns       a policy is never changed after loading and may be shared by many
 *            gates; a gate is one session, for one thread at a time.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"
#include "profile/profile.h"
#include "rules/rules.h"
#include "shell/shell.h"

#include <stdbool.h>
#include <stdint.h>

struct gate_policy;
struct gate;

/* path: a profile with the keys tools, roles, rules, gate (docs/gates.md). */
int gate_policy_load(const char *path, struct gate_policy **ret, struct cs_err *err);
/* Only its rules, as they are checked against its tools. To be freed with rules_free(). */
int gate_policy_rules(const char *path, struct rules **ret, struct cs_err *err);
/* The files that it was read from, absolute: what it judges may not write them. */
const struct cs_strv *gate_policy_own(const struct gate_policy *p);
/* Where its calls are made from now on, both absolute; a policy is loaded for the current directory.  Relative names in commands
 * lie in cwd; the workspace is what may be written.  false: out of memory. */
bool gate_policy_place(struct gate_policy *p, const char *workspace, const char *cwd);
const struct profile *gate_policy_profile(const struct gate_policy *p);
void gate_policy_free(struct gate_policy *p);

struct gate_options {
	const char *role;          /* of calls that name none; NULL: "default" */
	uint64_t (*clock)(void *); /* for events without `t`, ms since 1970; NULL: such an event is refused */
	void *clock_ctx;
	/* As sh_classify(), with what a profile adds to it; NULL: by the built-in table. */
	void (*classify)(void *ctx, const char *text, size_t len, struct sh_verdict *ret);
	void *classify_ctx;
};

struct gate *gate_new(const struct gate_policy *p, const struct gate_options *o);
void gate_free(struct gate *g);

/* ---- one JSON line in, at most one out ---- */
enum gate_side { GATE_HOST, GATE_AGENT };
/* Appends a line with its newline for a plan, a call, a confirm by id, an end, and for whatever is wrong;
 * nothing else is answered.  Never fails: what is wrong is told in the answer and changes nothing. */
void gate_line(struct gate *g, enum gate_side side, const char *line, size_t len, struct cs_buf *answer);

/* ---- the same as calls ---- */
struct gate_call {
	const char *id;    /* may be NULL: then its result cannot be told */
	const char *agent, *role, *tool;
	const struct json *args; /* an object */
	uint64_t t_ms;
	uint64_t tokens;   /* that it cost so far, if the host counts them */
};

struct gate_answer {
	enum rules_verdict verdict;
	char rule[64];     /* a rule's name, or what refused: "tool", "schema", "plan", "origin", "budget", "loop", ... */
	char reason[512];  /* escaped: nothing of the agent's can act on a terminal */
	char fix[256];     /* what to do instead; may be empty */
	char approval[40]; /* of an ask: the id under which it can be approved */
	bool ended;        /* the session is over: too many refusals */
	bool confirmed;    /* a person has said yes: the questions that were asked are answered, refusals stand */
	char asked[8][64]; /* by whom it was asked about; all of them are told in the reason */
	unsigned n_asked;
};

void gate_user(struct gate *g, const char *text, size_t len, uint64_t t_ms);
/* Judges and, if it may be, counts it as made. */
void gate_check(struct gate *g, const struct gate_call *c, struct gate_answer *ret);
/* Its result; ok == false: it failed.  The answer is a denial if the result breaks what the tool promises. CS_E_NOT_FOUND
 * for a call that is not running. */
int gate_result(struct gate *g, const char *id, bool ok, const struct json *result, uint64_t t_ms, struct gate_answer *ret,
		struct cs_err *err);
/* id NULL: the user said yes to what comes next.  Else the answer to a question: it is judged anew, without questions. */
int gate_confirm(struct gate *g, const char *id, bool allow, uint64_t t_ms, struct gate_answer *ret, struct cs_err *err);
/* The obligations. The session is over, whatever the answer. */
void gate_end(struct gate *g, uint64_t t_ms, struct gate_answer *ret);
/* Tools that may be allowed now: never too few.  Names live as long as the policy. */
size_t gate_next(struct gate *g, const char *role, const char **ret, size_t max);
/* Bytes that the session holds. */
uint64_t gate_bytes(const struct gate *g);
