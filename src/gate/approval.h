/* SPDX-License-Identifier: Apache-2.0 */
/* approval.h - questions to a person that outlive the process that asked them.
 *
 * An approval is for one exact effect: the canonical JSON of the call (tool, arguments,
 * role), a shell command's text, and the SHA-256 of the files it names.  It is used once,
 * before it expires.  "Always" stores that exact effect, and can be withdrawn.
 * A store is a directory of mode 0700, one file per approval, changed by rename only, so a
 * crash leaves an approval asked, answered or used, and never two uses of one answer.
 * Only a person or a separate approver answers: the agent's side has no way to.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum approval_state { APPROVAL_ASKED, APPROVAL_ALLOWED, APPROVAL_DENIED, APPROVAL_USED, APPROVAL_EXPIRED };

struct approval {
	char id[40];
	char hash[65];            /* of the effect */
	enum approval_state state;
	char *session, *agent, *role, *rule, *reason; /* who asked, and why it is a question */
	char *effect;             /* canonical JSON */
	uint64_t asked_ms, expires_ms, answered_ms;
	char *by;                 /* who answered */
	bool always;
	uint64_t used_ms;
};

const char *approval_state_name(enum approval_state s);

struct approvals;
int approvals_open(const char *dir, struct approvals **ret, struct cs_err *err); /* NULL: the user's own store */
void approvals_close(struct approvals *a);
int approval_ask(struct approvals *s, struct approval *a, struct cs_err *err); /* fills id and hash of *a */
int approval_get(struct approvals *s, const char *id, struct approval *ret, struct cs_err *err); /* id or its unique beginning */
void approval_done(struct approval *a);
int approval_answer(struct approvals *s, const char *id, bool allow, bool always, const char *by, uint64_t now_ms, struct cs_err *err);
/* Uses up an answer for this effect: 1 allowed (or always), 0 there is none, -EACCES-like CS_E_DENIED if it was denied. */
int approval_take(struct approvals *s, const struct json *effect, uint64_t now_ms, struct approval *ret, struct cs_err *err);
int approval_list(struct approvals *s, struct approval **ret, size_t *ret_n, struct cs_err *err);
int approval_withdraw(struct approvals *s, const char *id, struct cs_err *err); /* an "always" */

/* ---- what is asked ---- */

struct approval_call {
	const char *tool, *role; /* role may be NULL: "default" */
	const char *policy;      /* under which it is asked: a yes is not for another one; NULL: none */
	const struct json *args; /* an object */
	const char *command;     /* of a tool that runs one; NULL */
	const char *cwd;         /* NULL: relative names mean nothing, and no file is looked for */
};
/* The exact effect: {"args":...,"command":...,"cwd":...,"files":{PATH: SHA-256},"policy":...,"role":...,"tool":...}.  Files are those that
 * the strings of the arguments, and the words of the command, name and that exist: what `sh deploy.sh` does is in deploy.sh.
 * Paths are escaped (cs_escape), for they need not be UTF-8. */
int approval_effect(struct cs_arena *a, const struct approval_call *c, const struct json **ret, struct cs_err *err);

/* For people: who asks, why, and every part of the effect, escaped; a line each. */
void approval_show(const struct approval *a, struct cs_buf *out);
/* The whole as a JSON object, as the store has it. */
void approval_write(const struct approval *a, struct cs_buf *out);

/* ---- who answers ---- */

enum approval_reply { APPROVAL_NO_REPLY, APPROVAL_REPLY_DENY, APPROVAL_REPLY_ALLOW, APPROVAL_REPLY_ALWAYS };
enum { APPROVAL_PROMPT_MAX = 8192 }; /* bytes shown: more is not answered at a prompt, where it would scroll away */

/* Asks at the terminal of this process (/dev/tty): no reply if there is none, or if it is too much to show.
 * Silence for timeout_ms is a denial, and what was typed before the question counts for nothing. */
enum approval_reply approval_prompt(const struct approval *a, uint64_t timeout_ms);
/* Runs the approver's program, without a shell: the approval as JSON on its standard input; 0 allows, 1 denies,
 * anything else, or silence for timeout_ms, is no reply.  *why has it in words; may be NULL. */
enum approval_reply approval_hook(const char *const *argv, const struct approval *a, uint64_t timeout_ms, struct cs_err *why);
