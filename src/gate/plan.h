/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - a plan is judged before the first act, and calls are held to it.
 *
 * A plan is a list of steps with symbolic arguments: a literal, "$user" (to be found in
 * the user's words), "$K.path" (that field of step K's result; [*] is any element), or "?"
 * (not known yet).  Strings that begin with "$" or are "?" are written {"literal": "..."}.
 */
#pragma once
#include "base/buf.h"
#include "json/json.h"
#include "rules/rules.h"

struct gate;
struct gate_probe;
struct gate_answer;
struct plan;

/* Judges, writes the answer ({"type":"plan","verdict":...,"steps":[...]}) and, unless it is
 * rejected, makes it the session's plan. A later plan replaces what is left of an earlier one; an act that it adds after
 * strangers' text was read counts as one outside of the plan. */
void plan_submit(struct gate *g, const struct json *event, struct cs_buf *answer);
void plan_free(struct plan *p);
/* Which step this call is; raises the answer if it is none, or departs from it. That a value is what the plan named does not
 * make its source better: the origin of sinks is asked about all the same. */
void plan_hold(struct gate *g, struct gate_probe *q, struct gate_answer *ret);
void plan_note(struct gate *g, int step);                               /* it was let through */
void plan_result(struct gate *g, int step, bool ok, const struct json *result);
