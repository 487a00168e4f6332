/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h - what the files of `caisson gate` share. */
#pragma once
#include "base/mem.h"
#include "act/act.h"
#include "gate/gate.h"

struct gate_cli {
	const char *profile, *role, *record, *replay, *socket;
	bool agent;
	bool approvals, prompt; /* questions go to the store; to the terminal */
	const char *store;      /* NULL: the user's own */
	struct cs_strv approver;
	struct gate_policy *policy;
	int record_fd; /* -1: none */
	struct act_policy shell;
};

enum { GATE_IN_MAX = 4 << 20, GATE_OUT_MAX = 16 << 20 };

/* The clock of a session: what it said last goes into the record, and comes from there in a replay. */
struct gate_time {
	uint64_t now;
	bool fixed;
};
uint64_t gate_time_now(void *ctx);
/* For gate_options.classify: the profile's own rows are used. ctx: struct act_policy. */
void gate_shell(void *ctx, const char *text, size_t len, struct sh_verdict *ret);
/* As the policy's profile has it; the gate looks at no files, so links are not followed.  workspace NULL: here. */
int gate_shell_make(const struct gate_policy *p, const char *workspace, struct act_policy *ret, struct cs_err *err);

/* One line in, recorded, and the answer appended.  Negative: the record cannot be written, so nothing may happen. */
int gate_serve_line(struct gate_cli *c, struct gate *g, struct gate_time *t, const char *session, enum gate_side side, const char *line,
		    size_t len, struct cs_buf *answer);
/* A question that was asked: has it an answer? */
enum gate_settled { GATE_OPEN, GATE_SETTLED_YES, GATE_SETTLED_NO };
enum gate_settled gate_settle(const struct gate_cli *c, const struct json *call, const struct json *answer, const char *session, uint64_t now,
			      char approval[40]);
/* --socket: until a signal. */
int gate_serve(struct gate_cli *c);
