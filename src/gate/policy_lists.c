/* SPDX-License-Identifier: Apache-2.0 */
/* policy_lists.c - the names in allow:, ask: and deny: against the tools that there are.
 *
 * A name that no tool has refuses nothing and allows nothing: a slip of the pen that
 * would let the very call through which it was written against.
 */
#include "gate/policy.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static bool is_glob(const char *s)
{
	return strpbrk(s, "*?[\\");
}

/* "; did you mean `NAME`?", or nothing. */
static const char *meant(const char *word, const char *const *names, size_t n, char *ret, size_t size)
{
	const char *near = cs_nearest(word, names, n);
	char shown[160];

	ret[0] = 0;
	if (near)
		snprintf(ret, size, "; did you mean `%s`?", cs_escape_to(shown, sizeof shown, near));
	return ret;
}

static int no_tool(struct reading *r, const struct gate_pattern *x, const char *list)
{
	const char **names = cs_arena_get(&r->p->arena, r->p->n_tools + 1, sizeof *names);
	char near[200], shown[160];

	for (size_t i = 0; names && i < r->p->n_tools; i++)
		names[i] = r->p->tools[i].name;
	(void)meant(x->glob, names, names ? r->p->n_tools : 0, near, sizeof near);
	cs_escape_to(shown, sizeof shown, x->glob);
	if (is_glob(x->glob))
		return policy_bad(r, x->at, "%s: no tool fits `%s`%s", list, shown, near);
	return policy_bad(r, x->at, "%s: there is no tool `%s`%s%s", list, shown, near,
			  near[0] ? "" : r->p->manifest ? "; the manifest has none of that name" : "; declare it under tools: each:, or in a manifest");
}

/* Properties without additionalProperties are taken for all there are, as in rules; where a schema is too clever for that
 * nothing is known. */
static bool sure_to_lack(const struct gate_tool *t, const char *arg)
{
	static const char *const clever[] = { "anyOf", "oneOf", "allOf", "if", "patternProperties", "dependentSchemas", "$dynamicRef", "$ref", "not" };
	const struct json *more = json_get(t->input_doc, "additionalProperties"), *have = json_get(t->input_doc, "properties");

	for (size_t i = 0; i < sizeof clever / sizeof *clever; i++)
		if (json_get(t->input_doc, clever[i]))
			return false;
	if (more && (!json_is(more, JSON_BOOL) || more->b))
		return false;
	return (json_is(have, JSON_OBJECT) || more) && !json_get(have, arg);
}

static int no_argument(struct reading *r, const struct gate_pattern *x, const char *list, const struct gate_tool *t, const char *arg)
{
	const struct json *have = json_get(t->input_doc, "properties");
	size_t n = json_is(have, JSON_OBJECT) ? have->n : 0;
	const char **names = cs_arena_get(&r->p->arena, n + 1, sizeof *names);
	char near[200], shown[160], tool[160];

	for (size_t i = 0; names && i < n; i++)
		names[i] = have->members[i].key;
	return policy_bad(r, x->at, "%s: the tool `%s` has no argument `%s`%s", list, cs_escape_to(tool, sizeof tool, t->name),
			  cs_escape_to(shown, sizeof shown, arg), meant(arg, names, names ? n : 0, near, sizeof near));
}

/* Of the tools that a pattern fits one must have the argument. */
static int check_cond(struct reading *r, const struct gate_pattern *x, const char *list, const char *arg)
{
	const struct gate_tool *lacks = NULL;

	for (size_t i = 0; i < r->p->n_tools; i++) {
		if (!cs_glob(x->glob, r->p->tools[i].name))
			continue;
		if (!sure_to_lack(&r->p->tools[i], arg))
			return 0;
		lacks = lacks ? lacks : &r->p->tools[i];
	}
	return lacks ? no_argument(r, x, list, lacks, arg) : 0;
}

static int check_pattern(struct reading *r, const struct gate_pattern *x, const char *list)
{
	bool fits = !strcmp(x->glob, "*"); /* all of them, be there none */
	int k = 0;

	for (size_t i = 0; !fits && i < r->p->n_tools; i++)
		fits = cs_glob(x->glob, r->p->tools[i].name);
	if (!fits)
		return no_tool(r, x, list);
	for (size_t i = 0; i < x->n_conds && k >= 0; i++)
		k = check_cond(r, x, list, x->conds[i].arg);
	return k;
}

static int check_list(struct reading *r, const struct gate_list *l, const char *list)
{
	const char *self = r->path;
	int k = 0;

	for (size_t i = 0; i < l->n && k >= 0; i++) {
		r->path = l->v[i].file; /* it may be one that the profile extends */
		k = check_pattern(r, &l->v[i], list);
	}
	r->path = self;
	return k;
}

static int check_access(struct reading *r, const struct gate_access *a)
{
	int k = check_list(r, &a->allow, "allow");

	if (k >= 0)
		k = check_list(r, &a->ask, "ask");
	return k < 0 ? k : check_list(r, &a->deny, "deny");
}

int policy_lists_check(struct reading *r)
{
	int k = check_access(r, &r->p->access);

	for (size_t i = 0; i < r->p->n_roles && k >= 0; i++)
		k = check_access(r, &r->p->roles[i].access);
	return k;
}
