/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - statements: rules, assertions, tests. */
#include "rules/internal.h"

#include "base/text.h"

#include <string.h>

const char *rules_verdict_name(enum rules_verdict v)
{
	static const char *const names[] = { [RULES_ALLOW] = "allow", [RULES_SANDBOX] = "sandbox", [RULES_ASK] = "ask", [RULES_DENY] = "deny" };

	return v <= RULES_DENY ? names[v] : "?";
}

static enum rules_verdict parse_verdict(struct parser *p)
{
	static const char *const names[] = { "allow", "sandbox", "ask", "deny" };
	char got[80];

	for (enum rules_verdict v = RULES_ALLOW; v <= RULES_DENY; v++)
		if (rl_take_word(p, names[v]))
			return v;
	rl_fail(p, p->tok.pos, "expected a verdict (allow, ask, sandbox or deny), got %s%s", rl_show_token(p, got, sizeof got),
		rl_is_word(p, "forbid") ? "; did you mean `deny`?" : p->tok.kind == TK_NAME ? rl_suggest(p, p->tok.text, names, 4) : "");
	return RULES_DENY;
}

static void parse_default(struct parser *p)
{
	if (p->r->has_fallback)
		rl_fail(p, p->tok.pos, "`default` is given twice");
	p->r->fallback = parse_verdict(p);
	p->r->has_fallback = true;
	rl_expect(p, ';', "after the default");
}

/* ---- rules ---- */

static bool reserved_variable(const char *name)
{
	static const char *const words[] = { "_", "true", "false", "null", "not", "and", "or", "since", "in", "all", "any", "result", "args", "tool", "effects", "session", "end", "user", "confirm" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcmp(name, words[i]))
			return true;
	return false;
}

static void parse_forall(struct parser *p, struct rl_rule *rule)
{
	const char **vars;

	do {
		if (p->tok.kind != TK_NAME) {
			rl_fail(p, p->tok.pos, "expected a variable, as in `forall o. forbid refund(order=o)`");
			return;
		}
		for (uint32_t i = 0; i < p->n_vars; i++)
			if (!strcmp(p->vars[i], p->tok.text))
				rl_fail(p, p->tok.pos, "the variable `%s` is here twice", p->tok.text);
		if (reserved_variable(p->tok.text))
			rl_fail(p, p->tok.pos, "`%s` is a word of the language; choose another name for the variable", p->tok.text);
		if (p->n_vars >= RL_MAX_VARS)
			rl_fail_limit(p, p->tok.pos, "more than %d variables", RL_MAX_VARS);
		if (p->failed)
			return;
		p->vars[p->n_vars++] = p->tok.text;
		rl_next(p);
	} while (rl_take(p, ','));
	rl_expect(p, '.', "after the variables");
	vars = rl_get(p, p->n_vars, sizeof *vars);
	if (!vars)
		return;
	memcpy(vars, p->vars, p->n_vars * sizeof *vars);
	rule->vars = vars;
	rule->n_vars = p->n_vars;
}

static struct rl_formula *unary(struct parser *p, enum rl_op op, const struct rl_formula *a)
{
	struct rl_formula *f = p->failed || !a ? NULL : rl_formula_new(p, op, a->pos);

	if (f)
		f->a = a;
	return f;
}

static struct rl_formula *binary(struct parser *p, enum rl_op op, const struct rl_formula *a, const struct rl_formula *b)
{
	struct rl_formula *f = p->failed || !a ? NULL : rl_formula_new(p, op, a->pos);

	if (f) {
		f->a = a;
		f->b = b;
	}
	return f;
}

/* require B after A: forbid end unless (historically not A) or (not A since B).
 * The two halves share no node: an id belongs to one outermost formula. */
static void parse_require(struct parser *p, struct rl_rule *rule)
{
	struct rl_call *end = rl_get(p, 1, sizeof *end);
	const struct rl_formula *a, *b, *never, *since;
	struct rl_formula *copy;

	if (!end)
		return;
	end->pos = p->tok.pos;
	end->tools = (struct rl_tools){ .text = "end", .end = true };
	b = rl_parse_event(p);
	rl_expect_word(p, "after", "and an event: `require B after A`");
	a = p->failed ? NULL : rl_parse_event(p);
	copy = p->failed ? NULL : rl_formula_new(p, RL_EVENT, a->pos);
	if (!copy)
		return;
	*copy = *a;
	never = unary(p, RL_HIST, unary(p, RL_NOT, a));
	since = binary(p, RL_SINCE, unary(p, RL_NOT, copy), b);
	rule->verb = RULES_DENY;
	rule->call = end;
	rule->unless = binary(p, RL_OR, never, since);
	rule->required = true;
	rule->each = rule->n_vars > 0;
}

static void parse_verb(struct parser *p, struct rl_rule *rule)
{
	static const struct { const char *word; enum rules_verdict v; } verbs[] = {
		{ "forbid", RULES_DENY }, { "ask", RULES_ASK }, { "sandbox", RULES_SANDBOX }, { "allow", RULES_ALLOW },
	};
	static const char *const names[] = { "forbid", "ask", "sandbox", "allow", "require", "forall" };
	bool found = false;
	char got[80];

	if (rl_take_word(p, "require")) {
		parse_require(p, rule);
		return;
	}
	for (size_t i = 0; i < 4 && !found; i++)
		if (rl_take_word(p, verbs[i].word)) {
			rule->verb = verbs[i].v;
			found = true;
		}
	if (!found) {
		rl_fail(p, p->tok.pos, "expected forbid, ask, sandbox, allow or require, got %s%s", rl_show_token(p, got, sizeof got),
			rl_is_word(p, "deny") ? "; did you mean `forbid`?" : p->tok.kind == TK_NAME ? rl_suggest(p, p->tok.text, names, 6) : "");
		return;
	}
	rule->call = rl_parse_call(p, /* may_end= */ true);
	if (rl_take_word(p, "where"))
		rule->where = rl_parse_formula(p);
	if (rl_take_word(p, "unless"))
		rule->unless = rl_parse_formula(p);
	if (rl_is_word(p, "where"))
		rl_fail(p, p->tok.pos, "`where` comes before `unless`");
}

static const char *parse_text(struct parser *p, const char *after)
{
	const char *s = p->tok.text;

	if (p->tok.kind != TK_STRING || strlen(s) != p->tok.text_len) {
		rl_fail(p, p->tok.pos, "expected a text in quotes after `%s`", after);
		return NULL;
	}
	rl_next(p);
	return s;
}

static void rule_name(struct parser *p, struct rl_rule *rule)
{
	uint32_t at;
	char got[80];

	/* As a word: names with a dash are common. But not with a dot or a star. */
	rl_retake_word(p);
	rule->name = p->tok.text;
	if (p->tok.kind != TK_NAME) {
		rl_fail(p, p->tok.pos, "expected the name of the rule, got %s", rl_show_token(p, got, sizeof got));
		return;
	}
	if (strpbrk(rule->name, "*?./"))
		rl_fail(p, p->tok.pos, "a rule's name has letters, digits, _ and - only");
	else if (rl_map_find(&p->rule_names, rule->name, &at))
		rl_fail(p, p->tok.pos, "a rule `%s` is in line %u already; choose another name", rule->name, p->r->rules[at].pos.line);
	else if (p->r->n_rules >= RL_MAX_RULES)
		rl_fail_limit(p, p->tok.pos, "more than %d rules", RL_MAX_RULES);
	if (p->failed)
		return;
	rl_map_add(p, &p->rule_names, rule->name, p->r->n_rules);
	rl_next(p);
}

static void parse_rule(struct parser *p, struct rl_pos pos)
{
	struct rl_rule rule = { .pos = pos }, *rules;

	p->n_vars = p->n_locals = 0;
	rule_name(p, &rule);
	rl_expect(p, ':', "after the rule's name");
	if (rl_take_word(p, "forall"))
		parse_forall(p, &rule);
	if (!p->failed)
		parse_verb(p, &rule);
	if (rl_take_word(p, "because"))
		rule.because = parse_text(p, "because");
	if (rl_take_word(p, "fix"))
		rule.fix = parse_text(p, "fix");
	rule.end_line = p->tok.pos.line;
	rl_expect(p, ';', "after the rule");
	rules = rl_grow(p, (void *)p->r->rules, p->r->n_rules, sizeof *rules);
	p->n_vars = 0;
	if (p->failed)
		return;
	rules[p->r->n_rules++] = rule;
	p->r->rules = rules;
}

/* ---- assertions ---- */

static void parse_depth(struct parser *p, struct rl_assert *a)
{
	uint64_t n = 0;

	rl_expect_word(p, "depth", "after `to`");
	if (p->tok.kind != TK_NUMBER || cs_parse_u64(p->tok.text, &n) < 0 || n < 1 || n > 1000)
		rl_fail(p, p->tok.pos, "expected a depth from 1 to 1000");
	a->depth = (uint32_t)n;
	rl_next(p);
}

static void parse_assert(struct parser *p, struct rl_pos pos, const char *from)
{
	struct rl_assert a = { .pos = pos }, *v;

	if (rl_take_word(p, "reachable"))
		a.reachable = true;
	else
		rl_expect_word(p, "unreachable", "or `reachable` after `assert`");
	a.past = rl_parse_formula(p);
	if (rl_take_word(p, "to"))
		parse_depth(p, &a);
	if (!p->failed)
		a.text = cs_arena_dup(p->a, from, (size_t)(p->tok.start - from));
	rl_expect(p, ';', "after the assertion");
	v = rl_grow(p, (void *)p->r->asserts, p->r->n_asserts, sizeof *v);
	if (p->failed)
		return;
	v[p->r->n_asserts++] = a;
	p->r->asserts = v;
}

/* ---- tests ---- */

static void test_args(struct parser *p, struct rl_test_event *e)
{
	struct json *args = rl_get(p, 1, sizeof *args);
	struct json_member *m = NULL;
	uint32_t n = 0;

	while (!p->failed && !rl_is(p, ')')) {
		if (n)
			rl_expect(p, ',', "between arguments");
		if (!p->failed && ((p->tok.kind != TK_NAME && p->tok.kind != TK_STRING) || strlen(p->tok.text) != p->tok.text_len))
			rl_fail(p, p->tok.pos, "expected the name of an argument");
		for (uint32_t i = 0; i < n && !p->failed; i++)
			if (!strcmp(m[i].key, p->tok.text))
				rl_fail(p, p->tok.pos, "the argument `%s` is here twice", rl_escape(p, p->tok.text));
		if (n >= 1000)
			rl_fail_limit(p, p->tok.pos, "more than 1000 arguments");
		m = rl_grow(p, m, n, sizeof *m);
		if (p->failed)
			return;
		m[n].key = p->tok.text;
		m[n].key_len = p->tok.text_len;
		rl_next(p);
		rl_expect(p, '=', "and a value after the argument's name");
		rl_value(p, &m[n++].value);
	}
	rl_expect(p, ')', "after the arguments");
	if (p->failed)
		return;
	*args = (struct json){ .type = JSON_OBJECT, .n = n, .members = m };
	e->args = args;
}

static void test_result(struct parser *p, struct rl_test_event *e)
{
	struct json *v;

	e->fail = rl_take_word(p, "fail");
	if (e->fail && (rl_is(p, ',') || rl_is(p, ']')))
		return;
	v = rl_get(p, 1, sizeof *v);
	if (!v)
		return;
	rl_value(p, v);
	e->result = v;
}

static void test_call(struct parser *p, struct rl_test_event *e)
{
	int tool;
	char got[80];

	rl_retake_word(p);
	if (p->tok.kind != TK_NAME && p->tok.kind != TK_STRING) {
		rl_fail(p, p->tok.pos, "expected a call, user, confirm, wait or end, got %s", rl_show_token(p, got, sizeof got));
		return;
	}
	tool = rl_tool_find(p, p->tok.text);
	if (tool < 0) {
		rl_fail(p, p->tok.pos, "unknown tool `%s`%s", rl_escape(p, p->tok.text), rl_tool_suggest(p, p->tok.text));
		return;
	}
	e->kind = RL_TEST_CALL;
	e->tool = (uint32_t)tool;
	rl_next(p);
	rl_expect(p, '(', "after the tool");
	test_args(p, e);
	if (rl_take(p, RL_TWO('-', '>')))
		test_result(p, e);
}

static void test_step(struct parser *p, struct rl_test_event *e)
{
	e->pos = p->tok.pos;
	if (rl_take_word(p, "confirm")) {
		e->kind = RL_TEST_CONFIRM;
	} else if (rl_take_word(p, "end")) {
		e->kind = RL_TEST_END;
	} else if (rl_take_word(p, "user")) {
		e->kind = RL_TEST_USER;
		e->text = parse_text(p, "user");
	} else if (rl_take_word(p, "wait")) {
		e->kind = RL_TEST_WAIT;
		if ((p->tok.kind != TK_DURATION && p->tok.kind != TK_NUMBER) || cs_parse_duration(p->tok.text, &e->wait_ms) < 0)
			rl_fail(p, p->tok.pos, "expected a duration after `wait`, as in 10m");
		rl_next(p);
	} else {
		test_call(p, e);
	}
}

static void parse_test(struct parser *p, struct rl_pos pos)
{
	struct rl_test t = { .pos = pos }, *v;
	struct rl_test_event *events = NULL;

	t.expect = parse_verdict(p);
	rl_expect(p, '[', "and the steps of the test");
	while (!p->failed && !rl_is(p, ']')) {
		if (t.n)
			rl_expect(p, ',', "between steps");
		events = rl_grow(p, events, t.n, sizeof *events);
		if (p->failed)
			return;
		test_step(p, &events[t.n++]);
		if (!p->failed && events[t.n - 1].kind == RL_TEST_END && !rl_is(p, ']'))
			rl_fail(p, p->tok.pos, "nothing comes after `end`");
	}
	if (!p->failed && (!t.n || (events[t.n - 1].kind != RL_TEST_CALL && events[t.n - 1].kind != RL_TEST_END)))
		rl_fail(p, t.n ? events[t.n - 1].pos : p->tok.pos, "a test ends with a call or `end`: that is what gets the verdict");
	rl_expect(p, ']', "after the steps");
	t.events = events;
	if (rl_take_word(p, "by")) {
		rl_retake_word(p);
		t.by = p->tok.text;
		t.by_pos = p->tok.pos;
		if (p->tok.kind != TK_NAME)
			rl_fail(p, p->tok.pos, "expected the name of a rule after `by`");
		rl_next(p);
	}
	rl_expect(p, ';', "after the test");
	v = rl_grow(p, (void *)p->r->tests, p->r->n_tests, sizeof *v);
	if (p->failed)
		return;
	v[p->r->n_tests++] = t;
	p->r->tests = v;
}

/* ---- the file ---- */

static void parse_statement(struct parser *p)
{
	static const char *const words[] = { "default", "tool", "set", "rule", "assert", "test" };
	struct rl_pos pos = p->tok.pos;
	const char *from = p->tok.start;
	char got[80];

	if (rl_take_word(p, "rule"))
		parse_rule(p, pos);
	else if (rl_take_word(p, "test"))
		parse_test(p, pos);
	else if (rl_take_word(p, "assert"))
		parse_assert(p, pos, from);
	else if (rl_take_word(p, "default"))
		parse_default(p);
	else if (rl_is_word(p, "tool") || rl_is_word(p, "set")) /* read before */
		rl_skip_statement(p);
	else
		rl_fail(p, pos, "expected default, tool, set, rule, assert or test, got %s%s", rl_show_token(p, got, sizeof got),
			p->tok.kind == TK_NAME ? rl_suggest(p, p->tok.text, words, 6) : "");
}

void rl_parse(struct parser *p)
{
	rl_declare(p);
	while (p->tok.kind != TK_END)
		parse_statement(p);
}
