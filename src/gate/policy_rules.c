/* SPDX-License-Identifier: Apache-2.0 */
/* policy_rules.c - the rules of a policy: its own, and those that its tools' conditions are. */
#include "gate/policy.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t lines_in(const char *s, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += s[i] == '\n';
	return n;
}

static void add_part(struct reading *r, const char *name, uint32_t line)
{
	if (r->n_parts < sizeof r->parts / sizeof *r->parts)
		r->parts[r->n_parts++] = (struct rules_part){ name, r->lines + 1, line };
}

void policy_rules_add(struct reading *r, const char *name, uint32_t line, const char *text, size_t len)
{
	add_part(r, name, line);
	r->rules.max = GATE_POLICY_MAX;
	cs_buf_add(&r->rules, text, len);
	cs_buf_char(&r->rules, '\n');
	r->lines += lines_in(text, len) + 1;
}

/* A tool's name as a part of a rule's. */
static void name_after(const char *tool, char *ret, size_t size)
{
	snprintf(ret, size, "%s", tool);
	for (char *c = ret; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_'))
			*c = '-';
}

int policy_condition(struct reading *r, const struct json *v, const char *tool, bool after)
{
	const struct json_place *at = json_place_of(&r->places, v);
	CS_BUF_AUTO struct cs_buf text = CS_BUF(64 << 10);
	const char *s = json_str(v);
	char name[80];

	if (!v)
		return 0;
	if (!s || strchr(s, ';'))
		return policy_bad(r, v, "a condition is a formula as in rules, without ';'");
	name_after(tool, name, sizeof name);
	if (!after) {
		cs_buf_fmt(&text, "rule before-%s: forbid \"%s\" unless (%s) because \"a condition of %s does not hold\";", name, tool, s, tool);
		policy_rules_add(r, r->path, at ? at->line : 1, text.data, text.len);
		return 0;
	}
	/* Asked right after the result: it is the last event. */
	r->after.max = GATE_POLICY_MAX;
	cs_buf_fmt(&r->after, "rule after-%s: forbid end unless not (ok(\"%s\") and not ok(\"%s\" where (%s)));\n", name, tool, tool, s);
	return 0;
}

/* "rules:7:3: ..." with the name and the line of the part that line 7 is in. */
static void retell(struct reading *r, const struct cs_err *inner)
{
	unsigned line, column;
	int used = 0;
	const struct rules_part *in = NULL;

	if (sscanf(inner->msg, "rules:%u:%u: %n", &line, &column, &used) == 2 && used)
		for (size_t i = 0; i < r->n_parts; i++)
			if (r->parts[i].from <= line)
				in = &r->parts[i];
	if (in)
		cs_fail(r->err, inner->code, inner->sys, "%s:%u:%u: %s", in->name, line - in->from + in->first, column, inner->msg + used);
	else
		cs_fail(r->err, inner->code, inner->sys, "%s: %s", r->path, inner->msg);
}

static int load(struct reading *r, const struct cs_buf *text, const struct rules_tool *tools, struct rules **ret)
{
	struct cs_err inner = { 0 };
	int k;

	if (text->over)
		return cs_fail(r->err, CS_E_LIMIT, 0, "%s: the rules are too long", r->path);
	k = rules_load("rules", cs_buf_text(text), text->len, tools, r->p->n_tools, ret, &inner);
	if (k < 0)
		retell(r, &inner);
	return k;
}

int policy_rules_load(struct reading *r)
{
	struct gate_policy *p = r->p;
	struct rules_tool *tools = cs_arena_get(&p->arena, p->n_tools + 1, sizeof *tools);
	int k;

	if (!tools)
		return cs_fail(r->err, CS_E_LIMIT, 0, "%s: too many tools", r->path);
	for (size_t i = 0; i < p->n_tools; i++)
		tools[i] = (struct rules_tool){ p->tools[i].name, p->tools[i].input_doc, p->tools[i].output_doc, p->tools[i].effects };
	if ((k = load(r, &r->rules, tools, &p->rules)) < 0)
		return k;
	rules_set_parts(p->rules, r->parts, r->n_parts);
	for (size_t i = 0; i < p->n_tools; i++)
		p->tools[i].index = rules_tool_index(p->rules, p->tools[i].name);
	return r->after.len ? load(r, &r->after, tools, &p->after) : 0;
}

void policy_rules_done(struct reading *r)
{
	cs_buf_done(&r->rules);
	cs_buf_done(&r->after);
}

/* As `caisson classify --profile` sees the world: the profile's files, from where we stand. */
int policy_shell(struct gate_policy *p, struct cs_err *err)
{
	CS_FREE char *here = getcwd(NULL, 0);
	const char *home = getenv("HOME");

	if (!here)
		return cs_fail(err, CS_E_SYSTEM, errno, "the working directory");
	cs_strv_add(&p->roots, here);
	cs_strv_add(&p->roots, "/tmp");
	cs_strv_add(&p->roots, "/dev");
	cs_strv_add(&p->roots, "/proc");
	cs_strv_copy(&p->roots, &p->profile.files_read);
	cs_strv_copy(&p->roots, &p->profile.files_write);
	p->shell = (struct sh_policy){
		.cwd = p->roots.v[0],
		.workspace = p->roots.v[0],
		.home = home && home[0] == '/' ? home : NULL,
		.roots = (const char *const *)p->roots.v,
		.n_roots = p->roots.n,
		.secrets = (const char *const *)p->profile.files_hide.v,
		.n_secrets = p->profile.files_hide.n,
		.own = (const char *const *)p->own.v,
		.n_own = p->own.n,
	};
	return 0;
}
