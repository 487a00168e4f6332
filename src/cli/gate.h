/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h - what the files of `caisson gate` share. */
#pragma once
#include "gate/gate.h"

struct gate_cli {
	const char *profile, *role, *record, *replay, *socket;
	bool agent;
	struct gate_policy *policy;
	int record_fd; /* -1: none */
};

enum { GATE_IN_MAX = 4 << 20, GATE_OUT_MAX = 16 << 20 };

/* The clock of a session: what it said last goes into the record, and comes from there in a replay. */
struct gate_time {
	uint64_t now;
	bool fixed;
};
uint64_t gate_time_now(void *ctx);

/* One line in, recorded, and the answer appended.  Negative: the record cannot be written, so nothing may happen. */
int gate_serve_line(struct gate_cli *c, struct gate *g, struct gate_time *t, const char *session, enum gate_side side, const char *line,
		    size_t len, struct cs_buf *answer);
/* --socket: until a signal. */
int gate_serve(struct gate_cli *c);
