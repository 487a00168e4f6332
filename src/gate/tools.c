/* SPDX-License-Identifier: Apache-2.0 */
/* tools.c - which tool a call means, and who may call it. */
#include "gate/internal.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *key, const void *tool)
{
	return strcmp(key, ((const struct gate_tool *)tool)->name);
}

const struct gate_tool *gate_tool_find(const struct gate_policy *p, const char *name)
{
	return p->n_tools ? bsearch(name, p->tools, p->n_tools, sizeof *p->tools, by_name) : NULL;
}

bool gate_acts(const struct gate_tool *t)
{
	return !t->effects || (t->effects & ~(unsigned)RULES_READ);
}

static bool cond_holds(const struct gate_cond *c, const struct json *args)
{
	const struct json *v = json_get(args, c->arg);

	if (!v)
		return false; /* what is absent is equal to nothing */
	if (c->pattern)
		return v->type == JSON_STRING && pattern_match(c->pattern, v->s, v->n);
	return json_equal(v, c->value);
}

bool gate_pattern_matches(const struct gate_pattern *p, const char *tool, const struct json *args)
{
	if (!cs_glob(p->glob, tool))
		return false;
	for (size_t i = 0; i < p->n_conds; i++)
		if (!cond_holds(&p->conds[i], args))
			return false;
	return true;
}

static const struct gate_pattern *in_list(const struct gate_list *l, const char *tool, const struct json *args)
{
	for (size_t i = 0; i < l->n; i++)
		if (gate_pattern_matches(&l->v[i], tool, args))
			return &l->v[i];
	return NULL;
}

/* For a refusal: null is as good as absent, 5 as good as "5", and what a tool makes of ["secret"] where "secret" was meant
 * nobody knows. */
static bool may_hold(const struct gate_cond *c, const struct json *args)
{
	const struct json *v = json_get(args, c->arg);
	bool text = v && (v->type == JSON_STRING || v->type == JSON_NUMBER);

	if (!v || cond_holds(c, args))
		return true;
	if (c->pattern)
		return v->type != JSON_STRING;
	if (v->type == c->value->type)
		return false;
	return !text || (c->value->type != JSON_STRING && c->value->type != JSON_NUMBER) || origin_same(v, c->value);
}

/* A refusal is about arguments that may be left out, too: a condition on one that is not there refuses. */
static bool may_match(const struct gate_pattern *p, const char *tool, const struct json *args)
{
	if (!cs_glob(p->glob, tool))
		return false;
	for (size_t i = 0; i < p->n_conds; i++)
		if (!may_hold(&p->conds[i], args))
			return false;
	return true;
}

static const struct gate_pattern *may_be_in(const struct gate_list *l, const char *tool, const struct json *args)
{
	for (size_t i = 0; i < l->n; i++)
		if (may_match(&l->v[i], tool, args))
			return &l->v[i];
	return NULL;
}

/* No list has it: a list that has it with other arguments says which. */
static void fix_default(const struct gate_access *a, const char *where, const char *tool, struct gate_leave *ret)
{
	const char *first = a->otherwise == RULES_ASK ? "a person must say yes, or " : "";

	for (size_t i = 0; i < a->allow.n; i++)
		if (cs_glob(a->allow.v[i].glob, tool)) {
			snprintf(ret->fix, sizeof ret->fix, "%scall it with arguments that %s: allow: has (line %u)", first, where, a->allow.v[i].line);
			return;
		}
	snprintf(ret->fix, sizeof ret->fix, "%sname it under %s: allow: in the profile", first, where);
}

static enum rules_verdict ask_access(const struct gate_access *a, const char *whose, const char *where, const char *tool,
				     const struct json *args, struct gate_leave *ret)
{
	const struct gate_pattern *hit;
	char *reason = ret->reason;
	size_t size = sizeof ret->reason;

	ret->by_default = false;

	if ((hit = may_be_in(&a->deny, tool, args))) {
		snprintf(reason, size, "%s denies '%s' (line %u)", whose, hit->glob, hit->line);
		snprintf(ret->fix, sizeof ret->fix, "%sdeny wins over ask and allow: only without that line would it be allowed",
			 hit->n_conds ? "call it with other arguments; " : "");
		return RULES_DENY;
	}
	if ((hit = may_be_in(&a->ask, tool, args))) {
		snprintf(reason, size, "%s asks about '%s' (line %u)", whose, hit->glob, hit->line);
		snprintf(ret->fix, sizeof ret->fix, "a person must say yes%s; ask wins over allow: only without that line is nobody asked",
			 hit->n_conds ? ", or call it with other arguments" : "");
		return RULES_ASK;
	}
	if (in_list(&a->allow, tool, args))
		return RULES_ALLOW;
	snprintf(reason, size, "%s does not allow it; its default is %s", whose, rules_verdict_name(a->otherwise));
	fix_default(a, where, tool, ret);
	ret->by_default = true;
	return a->otherwise;
}

static const struct gate_role *find_role(const struct gate_policy *p, const char *role)
{
	for (size_t i = 0; role && i < p->n_roles; i++)
		if (!strcmp(p->roles[i].name, role))
			return &p->roles[i];
	return NULL;
}

bool gate_role_known(const struct gate_policy *p, const char *role)
{
	return find_role(p, role) || (p->n_roles == 0 && role && !strcmp(role, "default"));
}

/* Where there are roles, both the policy and the role must agree; the stricter counts. */
void gate_access(const struct gate_policy *p, const char *role, const char *tool, const struct json *args, struct gate_leave *ret)
{
	const struct gate_role *r = find_role(p, role);
	struct gate_leave own = { 0 };
	char name[200], where[200];

	ret->verdict = ask_access(&p->access, "the policy", "tools", tool, args, ret);
	if (!r)
		return;
	snprintf(name, sizeof name, "the role %.120s", r->name);
	snprintf(where, sizeof where, "roles: %.120s", r->name);
	own.verdict = ask_access(&r->access, name, where, tool, args, &own);
	own.by_default = false; /* a role's default is not for rules to lift */
	own.sandbox = ret->verdict == RULES_SANDBOX;
	if (own.verdict > ret->verdict || (own.verdict == ret->verdict && ret->by_default && own.verdict != RULES_ALLOW))
		*ret = own;
	else
		ret->sandbox = own.verdict == RULES_SANDBOX;
}

/* Over-approximates: a condition on arguments may hold for some, and so may a rule that lifts the default. */
static bool never(const struct gate_access *a, const char *tool, bool liftable)
{
	for (size_t i = 0; i < a->deny.n; i++)
		if (!a->deny.v[i].n_conds && cs_glob(a->deny.v[i].glob, tool))
			return true;
	if (a->otherwise != RULES_DENY || liftable)
		return false;
	for (size_t i = 0; i < a->allow.n; i++)
		if (cs_glob(a->allow.v[i].glob, tool))
			return false;
	for (size_t i = 0; i < a->ask.n; i++)
		if (cs_glob(a->ask.v[i].glob, tool))
			return false;
	return true;
}

/* Is there an `allow` rule that may be about it? */
static bool may_lift(const struct gate_policy *p, const char *tool)
{
	return !p->no_allow && rules_tool_allowable(p->rules, rules_tool_index(p->rules, tool));
}

bool gate_may_access(const struct gate_policy *p, const char *role, const char *tool)
{
	const struct gate_role *r = find_role(p, role);

	return !never(&p->access, tool, may_lift(p, tool)) && (r ? !never(&r->access, tool, /* liftable= */ false) : gate_role_known(p, role));
}
