/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the checks of one call, in their order; the strictest answer wins, the first of equals is told. */
#include "gate/internal.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool was_asked(const struct gate_answer *a, const char *rule)
{
	for (unsigned i = 0; i < a->n_asked; i++)
		if (!strcmp(a->asked[i], rule))
			return true;
	return false;
}

/* A person who is asked for one reason is told of the others: their yes is to all of them, and to no more. */
static void add_question(struct gate_answer *a, const char *rule, const char *reason)
{
	size_t n = strlen(a->reason);

	if (was_asked(a, rule) || a->n_asked == sizeof a->asked / sizeof *a->asked)
		return;
	snprintf(a->asked[a->n_asked++], sizeof *a->asked, "%s", rule);
	if (a->verdict == RULES_ASK && n + 3 < sizeof a->reason)
		snprintf(a->reason + n, sizeof a->reason - n, "; %.*s", (int)(sizeof a->reason - n - 3), reason);
}

void gate_raise(struct gate_answer *a, enum rules_verdict v, const char *rule, const char *fix, const char *fmt, ...)
{
	char reason[1024], shown[sizeof a->reason], name[sizeof a->rule];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
	cs_escape_to(shown, sizeof shown, reason);
	cs_escape_to(name, sizeof name, rule);
	if (v == RULES_ASK && a->confirmed && was_asked(a, name))
		return;
	if (v == RULES_ASK)
		add_question(a, name, shown);
	if (v <= a->verdict)
		return;
	a->verdict = v;
	memcpy(a->reason, shown, sizeof shown);
	memcpy(a->rule, name, sizeof name);
	cs_escape_to(a->fix, sizeof a->fix, fix ? fix : "");
}

const char *gate_show(struct gate *g, const struct json *v)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(160);
	const char *s;

	if (!v)
		return "nothing";
	json_write(&b, v);
	if (b.over)
		return "a long value";
	s = cs_arena_dup(&g->scratch, cs_buf_text(&b), b.len);
	return s ? s : "...";
}

/* ---- one by one ---- */

static void no_role(const struct gate_policy *p, const char *role, struct gate_answer *ret)
{
	CS_BUF_AUTO struct cs_buf fix = CS_BUF(1 << 16);

	if (!p->n_roles)
		cs_buf_str(&fix, "the policy has no roles: leave the role out");
	else
		cs_buf_str(&fix, strcmp(role, "default") ? "use a role that the policy has: "
							 : "where there are roles each call needs one, its own or by --role: ");
	for (size_t i = 0; i < p->n_roles; i++)
		cs_buf_fmt(&fix, "%s%s", i ? ", " : "", p->roles[i].name);
	gate_raise(ret, RULES_DENY, "role", cs_buf_text(&fix), "there is no role '%s'", role);
}

static void check_tool(struct gate *g, struct gate_probe *p, struct gate_answer *ret)
{
	const char *role = p->call->role;

	if (p->tool->in && p->tool->in->quarantine[0])
		gate_raise(ret, RULES_DENY, "quarantine", "a person must look at it: caisson tools diff, then caisson tools approve",
			   "the tool %s is in quarantine: %s", p->tool->name, p->tool->in->quarantine);
	if (!gate_role_known(g->policy, role))
		no_role(g->policy, role, ret);
	gate_access(g->policy, role, p->tool->name, p->call->args, &p->leave);
	if (p->leave.sandbox)
		gate_raise(ret, RULES_SANDBOX, "tool", NULL, "the policy or the role wants it caged");
	if (!p->leave.by_default)
		gate_raise(ret, p->leave.verdict, "tool", p->leave.fix, "%s", p->leave.reason);
}

static void check_schema(struct gate *g, struct gate_probe *p, struct gate_answer *ret)
{
	struct schema_report report = { .name = "args" };

	(void)g;
	if (!p->tool->input || schema_validate(p->tool->input, p->call->args, &report))
		return;
	gate_raise(ret, RULES_DENY, "schema", "send arguments that fit the tool's schema", "%s", report.failures[0].message);
}

static const char *fix_of_origin(enum origin_class c)
{
	return c == ORIGIN_NOWHERE ? "use a value from the user's words or from a tool's result as it stands"
				   : "ask the user to name it";
}

static void check_sink(struct gate *g, struct gate_probe *p, const struct gate_sink *s, struct gate_answer *ret)
{
	const struct json *v = json_get(p->call->args, s->arg), *which = v;
	enum origin_class c;

	if (!v)
		return;
	c = s->links ? origin_of_links(g->origin, v, &g->scratch, &which) : origin_of(g->origin, v, p->tool->input_doc, &which);
	gate_raise(ret, s->verdict[c], "origin", fix_of_origin(c), "%s of %s is %s, which %s", s->arg, p->tool->name, gate_show(g, which),
		   c == ORIGIN_NOWHERE ? "neither the user nor any result named"
		   : c == ORIGIN_FREE  ? "comes from text that anybody may have written"
				       : "is not from a source that may decide it");
}

static void check_origin(struct gate *g, struct gate_probe *p, struct gate_answer *ret)
{
	for (size_t i = 0; i < p->tool->n_sinks; i++)
		check_sink(g, p, &p->tool->sinks[i], ret);
}

static void check_rules(struct gate *g, struct gate_probe *p, struct gate_answer *ret)
{
	struct rules_event e = { .kind = RULES_EV_CALL, .tool = p->tool->index, .args = p->call->args, .t_ms = g->t_ms };
	struct rules_hit hit = { 0 };

	rules_monitor_check(g->monitor, &e, &g->world, &hit);
	if (p->leave.by_default && (!hit.allowed || g->policy->no_allow))
		gate_raise(ret, p->leave.verdict, "tool", p->leave.fix, "%s", p->leave.reason);
	if (hit.sandbox)
		gate_raise(ret, RULES_SANDBOX, hit.sandbox, NULL, "the rule wants it caged");
	if (!hit.rule)
		gate_raise(ret, hit.verdict, "default", "write a rule that allows it", "no rule is about it, and the rules' default is %s",
			   rules_verdict_name(hit.verdict));
	else
		gate_raise(ret, hit.verdict, hit.rule, hit.fix, "%s%s", hit.because ? hit.because : "the rule does not allow it now",
			   hit.unknown ? " (something it asks for is absent or not known)" : "");
}

static void check_shell(struct gate *g, struct gate_probe *p, struct gate_answer *ret)
{
	const struct json *command = p->tool->shell ? json_get(p->call->args, p->tool->shell) : NULL;
	const struct sh_verdict *v;
	const char *why = NULL;

	if (!p->tool->shell)
		return;
	if (!command || !json_str(command)) {
		gate_raise(ret, RULES_DENY, "shell", "send the command as one string", "%s of %s is no text", p->tool->shell, p->tool->name);
		return;
	}
	v = gate_classify(g, command);
	for (size_t i = 0; i < v->n_effects && !why; i++)
		if (v->effects[i].forbidden)
			why = v->effects[i].why;
	if (!why && v->n_reasons)
		why = v->reasons[0].text;
	gate_raise(ret, g->policy->shell_verdict[v->class], "shell", "write a command whose effects can be read from it", "the command is %s: %s",
		   sh_class_name(v->class), why ? why : "it changes something");
}

static void check_two(struct gate *g, struct gate_probe *p, struct gate_answer *ret)
{
	if (g->untrusted && g->sensitive && gate_acts(p->tool))
		gate_raise(ret, g->policy->rule_of_two, "rule-of-two", "ask the user",
			   "the session has read private data and text from strangers, and %s would change or send something", p->tool->name);
}

void gate_judge(struct gate *g, struct gate_probe *p, struct gate_answer *ret)
{
	static void (*const checks[])(struct gate *, struct gate_probe *, struct gate_answer *) = {
		check_tool, check_schema, plan_hold, check_rules, check_origin, check_shell, check_two,
	};

	*ret = (struct gate_answer){ .verdict = RULES_ALLOW, .confirmed = p->confirmed != NULL };
	if (p->confirmed) {
		memcpy(ret->asked, p->confirmed->asked, sizeof ret->asked);
		ret->n_asked = p->confirmed->n_asked;
	}
	g->role = p->call->role;
	g->agent = p->call->agent;
	g->tool = p->tool;
	for (size_t i = 0; i < sizeof checks / sizeof *checks && ret->verdict != RULES_DENY; i++)
		checks[i](g, p, ret);
	if (ret->verdict != RULES_DENY)
		budget_check(g, p, ret);
}
