/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - a tree as text again, in one spelling.  For messages, and for the
 * test that what was printed is read as the same. */
#include "rules/internal.h"

#include "base/text.h"

#include <string.h>

/* As in expr.c: what stands looser than its place is put in brackets. */
enum { LEVEL_QUANTIFIER, LEVEL_OR, LEVEL_AND, LEVEL_SINCE, LEVEL_PREFIX, LEVEL_COMPARE, LEVEL_ADD, LEVEL_MUL, LEVEL_ATOM };

static void print_term(const struct rl_term *t, int least, struct cs_buf *b);
static void print_formula(const struct rl_formula *f, int least, struct cs_buf *b);

static void print_text(const char *s, size_t len, struct cs_buf *b)
{
	json_write(b, &(struct json){ .type = JSON_STRING, .n = (uint32_t)len, .s = s });
}

static bool plain_name(const char *s)
{
	if (!*s || (*s >= '0' && *s <= '9'))
		return false;
	return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] == '\0';
}

static void print_key(const char *s, struct cs_buf *b)
{
	if (plain_name(s))
		cs_buf_str(b, s);
	else
		print_text(s, strlen(s), b);
}

static void print_steps(const struct rl_step *s, uint32_t n, bool dot_first, struct cs_buf *b)
{
	for (uint32_t i = 0; i < n; i++) {
		if (s[i].term) {
			cs_buf_char(b, '[');
			print_term(s[i].term, LEVEL_ADD, b);
			cs_buf_char(b, ']');
		} else if (s[i].key) {
			if (i || dot_first)
				cs_buf_char(b, '.');
			print_key(s[i].key, b);
		} else {
			cs_buf_fmt(b, "[%lld]", (long long)s[i].index);
		}
	}
}

void rl_print_duration(uint64_t ms, struct cs_buf *b)
{
	static const struct { uint64_t ms; const char *unit; } units[] = { { 86400000, "d" }, { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" } };

	for (size_t i = 0; i < 5; i++)
		if (ms % units[i].ms == 0) {
			cs_buf_fmt(b, "%llu%s", (unsigned long long)(ms / units[i].ms), units[i].unit);
			return;
		}
}

static void print_tools(const char *text, struct cs_buf *b)
{
	/* A word, a glob, or a list in braces; any other name was quoted. */
	if (*text == '{' || (*text && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789*?./-")] == '\0' && !strstr(text, "->")))
		cs_buf_str(b, text);
	else
		print_text(text, strlen(text), b);
}

void rl_print_call(const struct rl_call *c, struct cs_buf *b)
{
	print_tools(c->tools.text, b);
	for (uint32_t i = 0; i < c->n_args; i++) {
		const struct rl_arg *a = &c->args[i];

		cs_buf_str(b, i ? ", " : "(");
		print_steps(a->path, a->steps, /* dot_first= */ false, b);
		cs_buf_str(b, a->kind == RL_ARG_PATTERN ? " ~ " : "=");
		if (a->kind == RL_ARG_ANY)
			cs_buf_char(b, '_');
		else if (a->kind == RL_ARG_VAR)
			cs_buf_str(b, a->var_name);
		else if (a->kind == RL_ARG_CONST)
			json_write(b, a->value);
		else
			print_text(pattern_text(a->pattern), strlen(pattern_text(a->pattern)), b);
	}
	if (c->n_args)
		cs_buf_char(b, ')');
}

static void print_within(uint64_t ms, struct cs_buf *b)
{
	if (!ms)
		return;
	cs_buf_str(b, " within ");
	rl_print_duration(ms, b);
}

static void print_set(const struct json *set, struct cs_buf *b)
{
	for (uint32_t i = 0; i < set->n; i++) {
		cs_buf_str(b, i ? ", " : "{");
		json_write(b, &set->items[i]);
	}
	cs_buf_char(b, '}');
}

static void print_function(const struct rl_term *t, const char *name, struct cs_buf *b)
{
	cs_buf_fmt(b, "%s(", name);
	if (t->kind == RL_T_LEN || t->kind == RL_T_KEYS || t->kind == RL_T_VALUES)
		print_term(t->a, LEVEL_ADD, b);
	else
		print_steps(t->path, t->steps, /* dot_first= */ false, b);
	cs_buf_char(b, ')');
}

static void print_arithmetic(const struct rl_term *t, int least, struct cs_buf *b)
{
	int level = t->kind == RL_T_MUL ? LEVEL_MUL : LEVEL_ADD;

	if (level < least)
		cs_buf_char(b, '(');
	print_term(t->a, level, b);
	cs_buf_str(b, t->kind == RL_T_ADD ? " + " : t->kind == RL_T_SUB ? " - " : " * ");
	print_term(t->b, level + 1, b);
	if (level < least)
		cs_buf_char(b, ')');
}

static void print_kept(const struct rl_term *t, struct cs_buf *b)
{
	if (t->kind == RL_T_LAST) {
		cs_buf_str(b, "last(");
		rl_print_call(t->call, b);
		cs_buf_char(b, ')');
		print_steps(t->path, t->steps, /* dot_first= */ true, b);
		return;
	}
	cs_buf_str(b, t->kind == RL_T_COUNT ? "count(" : "sum(");
	print_formula(t->past, LEVEL_QUANTIFIER, b);
	if (t->kind == RL_T_SUM) {
		cs_buf_str(b, ", ");
		print_steps(t->path, t->steps, /* dot_first= */ false, b);
	}
	cs_buf_char(b, ')');
	print_within(t->within_ms, b);
}

/* Arguments whose name is a word of the language are written with `args.` */
static void print_arg(const struct rl_term *t, struct cs_buf *b)
{
	static const char *const words[] = {
		"not", "once", "historically", "previously", "all", "any", "true", "false", "null", "result", "session", "args", "tool", "effects", "user", "confirm",
		"and", "or", "since", "unless", "where", "because", "fix", "within", "in", "contains", "under", "outside", "forall", "rule", "test", "after",
	};
	bool plain = t->name && plain_name(t->name);

	for (size_t i = 0; plain && i < sizeof words / sizeof *words; i++)
		plain = strcmp(t->name, words[i]) != 0;
	cs_buf_str(b, plain ? "" : "args");
	print_steps(t->path, t->steps, /* dot_first= */ !plain, b);
}

static void print_term(const struct rl_term *t, int least, struct cs_buf *b)
{
	switch (t->kind) {
	case RL_T_CONST: json_write(b, t->value); break;
	case RL_T_ARG: print_arg(t, b); break;
	case RL_T_RESULT: cs_buf_str(b, "result"); print_steps(t->path, t->steps, true, b); break;
	case RL_T_VAR: cs_buf_str(b, t->name); break;
	case RL_T_LOCAL: cs_buf_str(b, t->name); print_steps(t->path, t->steps, true, b); break;
	case RL_T_LAST: case RL_T_COUNT: case RL_T_SUM: print_kept(t, b); break;
	case RL_T_LEN: print_function(t, "len", b); break;
	case RL_T_KEYS: print_function(t, "keys", b); break;
	case RL_T_VALUES: print_function(t, "values", b); break;
	case RL_T_ADD: case RL_T_SUB: case RL_T_MUL: print_arithmetic(t, least, b); break;
	case RL_T_SET: print_set(t->value, b); break;
	case RL_T_SESSION: cs_buf_fmt(b, "session.%s", t->name); break;
	case RL_T_EFFECTS: cs_buf_str(b, "effects"); break;
	case RL_T_TOOL: cs_buf_str(b, "tool"); break;
	case RL_T_FROM: print_function(t, "from", b); break;
	case RL_T_SHELL: print_function(t, "shell", b); break;
	case RL_T_EFFECT_OF: print_function(t, t->name, b); break;
	}
}

/* and, or: both sides at their own level, for chains are read as one. */
static void print_binary(const struct rl_formula *f, const char *word, int level, int right, struct cs_buf *b)
{
	print_formula(f->a, level, b);
	cs_buf_fmt(b, " %s ", word);
	print_formula(f->b, right, b);
}

static void print_compare(const struct rl_formula *f, bool negated, struct cs_buf *b)
{
	static const char *const words[] = {
		[RL_EQ] = "==", [RL_NE] = "!=", [RL_LT] = "<", [RL_LE] = "<=", [RL_GT] = ">", [RL_GE] = ">=", [RL_IN] = "in",
		[RL_CONTAINS] = "contains", [RL_MATCHES] = "~", [RL_UNDER] = "under", [RL_OUTSIDE] = "outside",
	};

	print_term(f->l, LEVEL_ADD, b);
	cs_buf_fmt(b, " %s%s ", negated ? "not " : "", words[f->op]);
	if (f->op == RL_MATCHES)
		print_text(pattern_text(f->pattern), strlen(pattern_text(f->pattern)), b);
	else
		print_term(f->r, LEVEL_ADD, b);
}

static void print_event(const struct rl_formula *f, struct cs_buf *b)
{
	static const char *const kinds[] = { [RL_EV_CALL] = "call", [RL_EV_OK] = "ok", [RL_EV_FAIL] = "fail" };

	if (f->event == RL_EV_USER || f->event == RL_EV_CONFIRM) {
		cs_buf_str(b, f->event == RL_EV_USER ? "user" : "confirm");
		return;
	}
	cs_buf_fmt(b, "%s(", kinds[f->event]);
	rl_print_call(f->call, b);
	if (f->where) {
		cs_buf_str(b, " where ");
		print_formula(f->where, LEVEL_QUANTIFIER, b);
	}
	cs_buf_char(b, ')');
}

static void print_seq(const struct rl_formula *f, struct cs_buf *b)
{
	for (uint32_t i = 0; i < f->n_seq; i++) {
		cs_buf_str(b, i ? "; " : "seq(");
		print_event(f->seq[i], b);
	}
	cs_buf_char(b, ')');
}

static int level_of(const struct rl_formula *f)
{
	switch (f->op) {
	case RL_OR: return LEVEL_OR;
	case RL_AND: return LEVEL_AND;
	case RL_SINCE: return LEVEL_SINCE;
	case RL_NOT: return f->a->op == RL_IN ? LEVEL_COMPARE : LEVEL_PREFIX;
	case RL_ONCE: case RL_HIST: case RL_PREV: return LEVEL_PREFIX;
	case RL_ALL: case RL_ANY: return LEVEL_QUANTIFIER; /* takes all that follows */
	case RL_EQ: case RL_NE: case RL_LT: case RL_LE: case RL_GT: case RL_GE: case RL_IN: case RL_CONTAINS: case RL_MATCHES: case RL_UNDER: case RL_OUTSIDE:
		return LEVEL_COMPARE;
	default: return LEVEL_ATOM;
	}
}

static void print_prefix(const struct rl_formula *f, struct cs_buf *b)
{
	cs_buf_str(b, f->op == RL_NOT ? "not " : f->op == RL_ONCE ? "once " : f->op == RL_HIST ? "historically " : "previously ");
	print_formula(f->a, LEVEL_PREFIX, b);
}

static void print_bare(const struct rl_formula *f, struct cs_buf *b)
{
	switch (f->op) {
	case RL_TRUE: cs_buf_str(b, "true"); break;
	case RL_FALSE: cs_buf_str(b, "false"); break;
	case RL_OR: print_binary(f, "or", LEVEL_OR, LEVEL_OR, b); break;
	case RL_AND: print_binary(f, "and", LEVEL_AND, LEVEL_AND, b); break;
	case RL_SINCE: print_binary(f, "since", LEVEL_SINCE, LEVEL_PREFIX, b); break;
	case RL_NOT:
		if (f->a->op == RL_IN)
			print_compare(f->a, /* negated= */ true, b);
		else
			print_prefix(f, b);
		break;
	case RL_ONCE: case RL_HIST: case RL_PREV: print_prefix(f, b); break;
	case RL_PRESENT:
		cs_buf_str(b, "present(");
		print_steps(f->l->path, f->l->steps, /* dot_first= */ false, b);
		cs_buf_char(b, ')');
		break;
	case RL_ALL: case RL_ANY:
		cs_buf_fmt(b, "%s %s in ", f->op == RL_ALL ? "all" : "any", f->local);
		print_term(f->l, LEVEL_ADD, b);
		cs_buf_str(b, ": ");
		print_formula(f->a, LEVEL_QUANTIFIER, b);
		break;
	case RL_EVENT: print_event(f, b); break;
	case RL_SEQ: print_seq(f, b); break;
	default: print_compare(f, /* negated= */ false, b); break;
	}
}

static void print_formula(const struct rl_formula *f, int least, struct cs_buf *b)
{
	bool brackets = level_of(f) < least;

	if (brackets)
		cs_buf_char(b, '(');
	print_bare(f, b);
	if (brackets)
		cs_buf_char(b, ')');
}

void rl_print_formula(const struct rl_formula *f, struct cs_buf *b)
{
	print_formula(f, LEVEL_QUANTIFIER, b);
}

void rl_print_term(const struct rl_term *t, struct cs_buf *b)
{
	print_term(t, LEVEL_ADD, b);
}

/* ---- statements ---- */

/* As it was desugared from; see parse.c. */
static const struct rl_formula *obligation(const struct rl_rule *rule, const struct rl_formula **ret_after)
{
	const struct rl_formula *u = rule->unless;

	if (!rule->required)
		return NULL;
	*ret_after = u->a->a->a;
	return u->b->b;
}

static void print_rule(const struct rl_rule *rule, struct cs_buf *b)
{
	static const char *const verbs[] = { [RULES_ALLOW] = "allow", [RULES_SANDBOX] = "sandbox", [RULES_ASK] = "ask", [RULES_DENY] = "forbid" };
	const struct rl_formula *after = NULL, *due = obligation(rule, &after);

	cs_buf_fmt(b, "rule %s: ", rule->name);
	for (uint32_t i = 0; i < rule->n_vars; i++)
		cs_buf_fmt(b, "%s%s%s", i ? ", " : "forall ", rule->vars[i], i + 1 == rule->n_vars ? ". " : "");
	if (due) {
		cs_buf_str(b, "require ");
		print_event(due, b);
		cs_buf_str(b, " after ");
		print_event(after, b);
	} else {
		cs_buf_fmt(b, "%s ", verbs[rule->verb]);
		rl_print_call(rule->call, b);
	}
	if (!due && rule->where) {
		cs_buf_str(b, " where ");
		rl_print_formula(rule->where, b);
	}
	if (!due && rule->unless) {
		cs_buf_str(b, " unless ");
		rl_print_formula(rule->unless, b);
	}
	if (rule->because) {
		cs_buf_str(b, " because ");
		print_text(rule->because, strlen(rule->because), b);
	}
	if (rule->fix) {
		cs_buf_str(b, " fix ");
		print_text(rule->fix, strlen(rule->fix), b);
	}
	cs_buf_str(b, ";\n");
}

static void print_step(const struct rules *r, const struct rl_test_event *e, struct cs_buf *b)
{
	switch (e->kind) {
	case RL_TEST_USER: cs_buf_str(b, "user "); print_text(e->text, strlen(e->text), b); return;
	case RL_TEST_CONFIRM: cs_buf_str(b, "confirm"); return;
	case RL_TEST_WAIT: cs_buf_str(b, "wait "); rl_print_duration(e->wait_ms, b); return;
	case RL_TEST_END: cs_buf_str(b, "end"); return;
	case RL_TEST_CALL: break;
	}
	print_text(r->tools[e->tool].name, strlen(r->tools[e->tool].name), b);
	cs_buf_char(b, '(');
	for (uint32_t i = 0; i < e->args->n; i++) {
		cs_buf_str(b, i ? ", " : "");
		print_text(e->args->members[i].key, e->args->members[i].key_len, b);
		cs_buf_char(b, '=');
		json_write(b, &e->args->members[i].value);
	}
	cs_buf_char(b, ')');
	if (e->fail || e->result)
		cs_buf_str(b, e->fail ? " -> fail" : " ->");
	if (e->result) {
		cs_buf_char(b, ' ');
		json_write(b, e->result);
	}
}

static void print_test(const struct rules *r, const struct rl_test *t, struct cs_buf *b)
{
	cs_buf_fmt(b, "test %s [", rules_verdict_name(t->expect));
	for (uint32_t i = 0; i < t->n; i++) {
		cs_buf_str(b, i ? ", " : "");
		print_step(r, &t->events[i], b);
	}
	cs_buf_char(b, ']');
	if (t->by)
		cs_buf_fmt(b, " by %s", t->by);
	cs_buf_str(b, ";\n");
}

void rl_print(const struct rules *r, struct cs_buf *b)
{
	if (r->has_fallback)
		cs_buf_fmt(b, "default %s;\n", rules_verdict_name(r->fallback));
	for (uint32_t i = 0; i < r->n_rules; i++)
		print_rule(&r->rules[i], b);
	for (uint32_t i = 0; i < r->n_asserts; i++) {
		cs_buf_fmt(b, "assert %s ", r->asserts[i].reachable ? "reachable" : "unreachable");
		rl_print_formula(r->asserts[i].past, b);
		if (r->asserts[i].depth)
			cs_buf_fmt(b, " to depth %u", r->asserts[i].depth);
		cs_buf_str(b, ";\n");
	}
	for (uint32_t i = 0; i < r->n_tests; i++)
		print_test(r, &r->tests[i], b);
}
