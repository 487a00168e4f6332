/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h - reading a policy: what policy.c and policy_*.c share. */
#pragma once
#include "gate/internal.h"
#include "json/yaml.h"

struct reading {
	struct gate_policy *p;
	const char *path;
	struct json_places places;
	struct cs_err *err;
	bool locked; /* some profile that was read is */
	struct cs_buf rules, after;
	struct rules_part parts[64];
	size_t n_parts;
	uint32_t lines, after_lines;
};

int policy_bad(struct reading *r, const struct json *v, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int policy_verdict(struct reading *r, const struct json *v, const char *what, enum rules_verdict *ret);
int policy_keys(struct reading *r, const struct json *v, const char *what, const char *const *keys);
int policy_strings(struct reading *r, const struct json *v, const char *what, const char *const **ret, size_t *ret_n);

/* ---- policy_lists.c ---- */
/* What the lists name is there, once all tools are known. */
int policy_lists_check(struct reading *r);

/* ---- policy_rules.c ---- */
void policy_rules_add(struct reading *r, const char *name, uint32_t line, const char *text, size_t len);
/* before: and after: of a tool, as rules. */
int policy_condition(struct reading *r, const struct json *v, const char *tool, bool after);
int policy_rules_load(struct reading *r);
void policy_rules_done(struct reading *r);
/* What the classifier of shell commands is to know. */
int policy_shell(struct gate_policy *p, struct cs_err *err);
