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
};

struct approvals;
int approvals_open(const char *dir, struct approvals **ret, struct cs_err *err); /* NULL: the user's own store */
void approvals_close(struct approvals *a);
int approval_ask(struct approvals *a, struct approval *in_out, struct cs_err *err); /* fills id and hash */
int approval_get(struct approvals *a, const char *id, struct approval *ret, struct cs_err *err); /* id or its unique beginning */
void approval_done(struct approval *a);
int approval_answer(struct approvals *a, const char *id, bool allow, bool always, const char *by, uint64_t now_ms, struct cs_err *err);
/* Uses up an answer for this effect: 1 allowed (or always), 0 there is none, -EACCES-like CS_E_DENIED if it was denied. */
int approval_take(struct approvals *a, const struct json *effect, uint64_t now_ms, struct approval *ret, struct cs_err *err);
int approval_list(struct approvals *a, struct approval **ret, size_t *ret_n, struct cs_err *err);
int approval_withdraw(struct approvals *a, const char *id, struct cs_err *err); /* an "always" */
