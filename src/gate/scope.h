/* SPDX-License-Identifier: Apache-2.0 */
/* scope.h - is a tool wider than what it says, or than what is declared of it?
 *
 * A tool says what it is by MCP's annotations; what is not said counts as the protocol has it,
 * which is the worst: it changes things, destroys, and reaches the world.  A profile declares of
 * each tool its effects and its sinks, the arguments that decide where something goes.
 * Trusts the profile; a manifest is hostile.
 */
#pragma once
#include "gate/gate.h"
#include "gate/manifest.h"

/* what: one sentence, escaped.  check: "annotations" or "scope". */
typedef void (*scope_tell)(const char *check, const char *what, void *arg);

void scope_annotations(const struct manifest_tool *t, scope_tell tell, void *arg);
void scope_check(const struct gate_policy *p, const struct manifest_tool *t, scope_tell tell, void *arg);

/* ---- what hosts ask of a policy ---- */
/* The argument of this tool that is a shell command; NULL: none. */
const char *scope_shell(const struct gate_policy *p, const char *tool);
/* How long an approval can wait, and be used. */
uint64_t scope_approval_ms(const struct gate_policy *p);
