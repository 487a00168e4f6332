/* SPDX-License-Identifier: Apache-2.0 */
/* classify.h - what the commands that look at shell commands share. */
#pragma once
#include "base/json.h"
#include "base/mem.h"
#include "profile/profile.h"
#include "shell/shell.h"

/* What a profile lets be read, and what it hides; dir is the workspace, NULL: here.  roots owns what the policy points to. */
int classify_policy(const struct profile *p, const char *dir, struct sh_policy *ret, struct cs_strv *roots, struct cs_err *err);
/* "effects" and "because", into an object that is open. */
void classify_json(struct cs_json *j, const struct sh_verdict *v);
