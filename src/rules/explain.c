/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - a rule in plain words.
 *
 * One sentence for what is asked and when, one for what follows.  Every node has
 * words of its own; brackets appear only where the words alone could be read two ways.
 */
#include "rules/internal.h"

#include "base/text.h"

#include <string.h>

/* How a condition is said: as it is, or as it must be; as it stands, or its opposite. */
enum { TOLD = 0, NOT = 1, MUST = 2 };

static void say(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b);
static void say_term(const struct rl_term *t, const struct rl_rule *rule, struct cs_buf *b);

/* ---- calls ---- */

static void say_tools(const struct rl_tools *t, struct cs_buf *b)
{
	if (t->end)
		cs_buf_str(b, "the end of the session");
	else if (!strcmp(t->text, "*"))
		cs_buf_str(b, "any tool");
	else if (strpbrk(t->text, "*?{"))
		cs_buf_fmt(b, "any of %s", t->text);
	else
		cs_buf_str(b, t->text);
}

/* What a variable stands for: the argument of the call that the rule is asked about. */
static const char *meaning(const struct rl_rule *rule, uint32_t var)
{
	const struct rl_call *c = rule->required ? rule->unless->a->a->a->call : rule->call;

	for (uint32_t i = 0; i < c->n_args; i++)
		if (c->args[i].kind == RL_ARG_VAR && c->args[i].var == var)
			return c->args[i].name;
	return rule->vars[var];
}

static void say_same(const struct rl_arg *a, const struct rl_rule *rule, struct cs_buf *b)
{
	const char *name = meaning(rule, a->var);

	cs_buf_fmt(b, "the same %s", name);
	if (strcmp(name, a->name) != 0)
		cs_buf_fmt(b, " (as its %s)", a->name);
}

static void say_args(const struct rl_call *c, const struct rl_rule *rule, struct cs_buf *b)
{
	for (uint32_t i = 0; i < c->n_args; i++) {
		const struct rl_arg *a = &c->args[i];

		cs_buf_str(b, i == 0 ? " with " : i + 1 == c->n_args ? " and " : ", ");
		if (a->kind == RL_ARG_VAR && rule)
			say_same(a, rule, b);
		else if (a->kind == RL_ARG_PATTERN)
			cs_buf_fmt(b, "a %s of the form \"%s\"", a->name, pattern_text(a->pattern));
		else if (a->kind == RL_ARG_CONST) {
			cs_buf_fmt(b, "the %s ", a->name);
			json_write(b, a->value);
		} else {
			cs_buf_fmt(b, "some %s", a->name);
		}
	}
}

/* The call that a rule is asked about: a variable there is just the argument. */
static void say_trigger(const struct rl_call *c, struct cs_buf *b)
{
	bool more = false;

	say_tools(&c->tools, b);
	for (uint32_t i = 0; i < c->n_args; i++) {
		const struct rl_arg *a = &c->args[i];

		if (a->kind == RL_ARG_VAR || a->kind == RL_ARG_ANY)
			continue;
		cs_buf_fmt(b, "%s%s ", more ? " and " : " with the ", a->name);
		if (a->kind == RL_ARG_PATTERN)
			cs_buf_fmt(b, "of the form \"%s\"", pattern_text(a->pattern));
		else
			json_write(b, a->value);
		more = true;
	}
}

/* ---- events ---- */

/* "a call of refund with the same o as order that succeeded" */
static void say_event(const struct rl_formula *f, const struct rl_rule *rule, struct cs_buf *b)
{
	if (f->event == RL_EV_USER || f->event == RL_EV_CONFIRM) {
		cs_buf_str(b, f->event == RL_EV_USER ? "a message of the user" : "a confirmation by the user");
		return;
	}
	cs_buf_str(b, f->event == RL_EV_CALL || strpbrk(f->call->tools.text, "*?{") ? "a call of " : "a ");
	say_tools(&f->call->tools, b);
	say_args(f->call, rule, b);
	if (f->event != RL_EV_CALL)
		cs_buf_str(b, f->event == RL_EV_OK ? " that succeeded" : " that failed");
	if (f->where) {
		cs_buf_str(b, " (where ");
		say(f->where, TOLD, rule, b);
		cs_buf_char(b, ')');
	}
}

static void say_seq(const struct rl_formula *f, const struct rl_rule *rule, struct cs_buf *b)
{
	for (uint32_t i = 0; i < f->n_seq; i++) {
		cs_buf_str(b, i ? ", later " : "first ");
		say_event(f->seq[i], rule, b);
	}
}

/* Of a formula about the past, at one moment of it. */
static bool is_event(const struct rl_formula *f)
{
	return f->op == RL_EVENT || f->op == RL_SEQ;
}

static void say_thing(const struct rl_formula *f, const struct rl_rule *rule, struct cs_buf *b)
{
	if (f->op == RL_SEQ)
		say_seq(f, rule, b);
	else
		say_event(f, rule, b);
}

/* a or b or c, all of them events: "A, or B" */
static bool all_events(const struct rl_formula *f)
{
	return is_event(f) || (f->op == RL_OR && all_events(f->a) && all_events(f->b));
}

static void say_things(const struct rl_formula *f, const struct rl_rule *rule, struct cs_buf *b)
{
	if (f->op == RL_OR) {
		say_things(f->a, rule, b);
		cs_buf_str(b, " or ");
		say_things(f->b, rule, b);
	} else {
		say_thing(f, rule, b);
	}
}

static void say_quoted(const struct rl_formula *f, const struct rl_rule *rule, struct cs_buf *b)
{
	cs_buf_char(b, '(');
	say(f, TOLD, rule, b);
	cs_buf_char(b, ')');
}

/* "there must not have been", "there was": the four ways. */
static const char *there(unsigned mood)
{
	static const char *const words[] = { "there was ", "there was not ", "there must have been ", "there must not have been " };

	return words[mood & 3];
}

static const char *it_held(unsigned mood)
{
	static const char *const words[] = { "it held that ", "it did not hold that ", "it must have held that ", "it must not have held that " };

	return words[mood & 3];
}

static void say_once(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b)
{
	if (all_events(f->a)) {
		cs_buf_str(b, there(mood));
		say_things(f->a, rule, b);
		return;
	}
	cs_buf_str(b, mood & NOT ? "at every moment before " : "at some moment before ");
	cs_buf_str(b, it_held(mood));
	say_quoted(f->a, rule, b);
}

/* Always not is not once. */
static void say_historically(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b)
{
	if (f->a->op == RL_NOT && all_events(f->a->a)) {
		cs_buf_str(b, there(mood ^ NOT));
		say_things(f->a->a, rule, b);
		return;
	}
	cs_buf_str(b, mood & NOT ? "at some moment before " : "at every moment before ");
	cs_buf_str(b, it_held(mood));
	say_quoted(f->a, rule, b);
}

static void say_since(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b)
{
	bool plain = all_events(f->b) && f->a->op == RL_NOT && all_events(f->a->a);

	if (plain) {
		if (mood & NOT)
			cs_buf_str(b, mood & MUST ? "it must not be so that " : "it is not so that ");
		cs_buf_str(b, there(mood & NOT ? TOLD : mood));
		say_things(f->b, rule, b);
		cs_buf_str(b, ", and since then not ");
		say_things(f->a->a, rule, b);
		return;
	}
	cs_buf_str(b, mood & NOT ? "at no moment before " : "at some moment before ");
	cs_buf_str(b, it_held(mood & ~(unsigned)NOT));
	say_quoted(f->b, rule, b);
	cs_buf_str(b, ", and at every moment since that ");
	say_quoted(f->a, rule, b);
}

static void say_now(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b)
{
	if (f->op == RL_SEQ) {
		cs_buf_str(b, there(mood));
		say_seq(f, rule, b);
		return;
	}
	cs_buf_str(b, f->op == RL_PREV ? "one step before the latest event, " : "as the latest event, ");
	if (f->op == RL_PREV && !is_event(f->a)) {
		cs_buf_str(b, it_held(mood));
		say_quoted(f->a, rule, b);
		return;
	}
	cs_buf_str(b, there(mood));
	say_thing(f->op == RL_PREV ? f->a : f, rule, b);
}

/* ---- values ---- */

static void say_path(const struct rl_step *s, uint32_t n, struct cs_buf *b)
{
	struct rl_term t = { .kind = RL_T_LOCAL, .name = "", .path = s, .steps = n };
	size_t at = b->len;

	rl_print_term(&t, b);
	/* No dot in front. */
	if (b->len > at && b->data[at] == '.') {
		memmove(b->data + at, b->data + at + 1, b->len - at);
		b->len--;
	}
}

static void say_within(uint64_t ms, struct cs_buf *b)
{
	if (!ms)
		return;
	cs_buf_str(b, " within the last ");
	rl_print_duration(ms, b);
}

static void say_kept(const struct rl_term *t, const struct rl_rule *rule, struct cs_buf *b)
{
	if (t->kind == RL_T_LAST) {
		if (t->steps) {
			cs_buf_str(b, "the ");
			say_path(t->path, t->steps, b);
			cs_buf_str(b, " in ");
		}
		cs_buf_str(b, "the latest result of ");
		say_tools(&t->call->tools, b);
		say_args(t->call, rule, b);
		return;
	}
	if (t->kind == RL_T_SUM) {
		cs_buf_str(b, "the sum of ");
		say_path(t->path, t->steps, b);
		cs_buf_str(b, " over every time of ");
	} else {
		cs_buf_str(b, "the number of times of ");
	}
	if (all_events(t->past))
		say_things(t->past, rule, b);
	else
		say_quoted(t->past, rule, b);
	say_within(t->within_ms, b);
}

static void say_set(const struct json *set, struct cs_buf *b)
{
	for (uint32_t i = 0; i < set->n; i++) {
		cs_buf_str(b, i == 0 ? "" : i + 1 == set->n ? " or " : ", ");
		json_write(b, &set->items[i]);
	}
}

static void say_two(const struct rl_term *t, const char *word, const struct rl_rule *rule, struct cs_buf *b)
{
	say_term(t->a, rule, b);
	cs_buf_fmt(b, " %s ", word);
	say_term(t->b, rule, b);
}

static void say_of(const char *what, const struct rl_term *t, const struct rl_rule *rule, struct cs_buf *b)
{
	cs_buf_str(b, what);
	say_term(t->a, rule, b);
}

static void say_effect_of(const struct rl_term *t, const struct rl_rule *rule, struct cs_buf *b)
{
	static const struct { const char *name, *words; } all[] = {
		{ "reads", "what is read by " }, { "writes", "what is written by " }, { "deletes", "what is deleted by " },
		{ "hosts", "the hosts spoken to by " }, { "runs", "the programs run by " },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i].name, t->name))
			say_of(all[i].words, t, rule, b);
}

static void say_term(const struct rl_term *t, const struct rl_rule *rule, struct cs_buf *b)
{
	switch (t->kind) {
	case RL_T_CONST: json_write(b, t->value); break;
	case RL_T_ARG: cs_buf_str(b, "its "); say_path(t->path, t->steps, b); break;
	case RL_T_RESULT:
		cs_buf_str(b, t->steps ? "the result's " : "the result");
		say_path(t->path, t->steps, b);
		break;
	case RL_T_VAR: case RL_T_LOCAL: rl_print_term(t, b); break;
	case RL_T_LAST: case RL_T_COUNT: case RL_T_SUM: say_kept(t, rule, b); break;
	case RL_T_LEN: say_of("the length of ", t, rule, b); break;
	case RL_T_KEYS: say_of("the keys of ", t, rule, b); break;
	case RL_T_VALUES: say_of("the values of ", t, rule, b); break;
	case RL_T_ADD: say_two(t, "plus", rule, b); break;
	case RL_T_SUB: say_two(t, "minus", rule, b); break;
	case RL_T_MUL: say_two(t, "times", rule, b); break;
	case RL_T_SET: say_set(t->value, b); break;
	case RL_T_SESSION: cs_buf_fmt(b, "the session's %s", t->name); break;
	case RL_T_EFFECTS: cs_buf_str(b, "the tool's effects"); break;
	case RL_T_TOOL: cs_buf_str(b, "the tool"); break;
	case RL_T_FROM: say_of("the origins of ", t, rule, b); break;
	case RL_T_SHELL: say_of("the class of the command in ", t, rule, b); break;
	case RL_T_EFFECT_OF: say_effect_of(t, rule, b); break;
	}
}

/* ---- conditions ---- */

static void say_compare(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b)
{
	static const char *const verbs[] = { "is ", "is not ", "must be ", "must not be " };
	static const struct { const char *word; unsigned not; } words[] = {
		[RL_EQ] = { "", 0 }, [RL_NE] = { "", NOT }, [RL_LT] = { "below ", 0 }, [RL_LE] = { "above ", NOT }, [RL_GT] = { "above ", 0 }, [RL_GE] = { "below ", NOT },
		[RL_IN] = { "one of ", 0 }, [RL_MATCHES] = { "of the form ", 0 }, [RL_UNDER] = { "at or below ", 0 }, [RL_OUTSIDE] = { "outside of ", 0 },
	};
	static const char *const contains[] = { " contains ", " does not contain ", " must contain ", " must not contain " };

	say_term(f->l, rule, b);
	if (f->op == RL_CONTAINS)
		cs_buf_str(b, contains[mood & 3]);
	else
		cs_buf_fmt(b, " %s%s", verbs[(mood ^ words[f->op].not) & 3], words[f->op].word);
	if (f->op == RL_MATCHES)
		cs_buf_fmt(b, "\"%s\"", pattern_text(f->pattern));
	else
		say_term(f->r, rule, b);
}

static void say_quantifier(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b)
{
	/* not all x: F is some x: not F; not any x: F is every x: not F. */
	cs_buf_fmt(b, "for %s %s in ", (f->op == RL_ALL) != (mood & NOT) ? "every" : "some", f->local);
	say_term(f->l, rule, b);
	cs_buf_str(b, ", ");
	say(f->a, mood, rule, b);
}

static void say_joined(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b)
{
	bool is_and = (f->op == RL_AND) != (mood & NOT); /* De Morgan */
	const struct rl_formula *sides[] = { f->a, f->b };

	for (int i = 0; i < 2; i++) {
		const struct rl_formula *s = sides[i];
		bool mixed = (s->op == RL_AND || s->op == RL_OR) && s->op != f->op;

		cs_buf_str(b, i ? is_and ? ", and " : ", or " : "");
		cs_buf_str(b, mixed ? "(" : "");
		say(s, mood, rule, b);
		cs_buf_str(b, mixed ? ")" : "");
	}
}

static void say_present(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b)
{
	static const char *const words[] = { " is given", " is not given", " must be given", " must not be given" };

	say_term(f->l, rule, b);
	cs_buf_str(b, words[mood & 3]);
}

static void say(const struct rl_formula *f, unsigned mood, const struct rl_rule *rule, struct cs_buf *b)
{
	switch (f->op) {
	case RL_TRUE: case RL_FALSE: cs_buf_str(b, (f->op == RL_TRUE) != (mood & NOT) ? "in every case" : "in no case"); break;
	case RL_NOT: say(f->a, mood ^ NOT, rule, b); break;
	case RL_AND: case RL_OR: say_joined(f, mood, rule, b); break;
	case RL_PRESENT: say_present(f, mood, rule, b); break;
	case RL_ALL: case RL_ANY: say_quantifier(f, mood, rule, b); break;
	case RL_ONCE: say_once(f, mood, rule, b); break;
	case RL_HIST: say_historically(f, mood, rule, b); break;
	case RL_SINCE: say_since(f, mood, rule, b); break;
	case RL_EVENT: case RL_PREV: case RL_SEQ: say_now(f, mood, rule, b); break;
	default: say_compare(f, mood, rule, b); break;
	}
}

/* ---- a rule ---- */

static void say_required(const struct rl_rule *rule, struct cs_buf *b)
{
	CS_BUF_AUTO struct cs_buf due = CS_BUF(1 << 16);

	say_event(rule->unless->a->a->a, NULL, &due);
	cs_buf_fmt(b, "When the session ends: every %s must have been followed by ", cs_buf_text(&due) + (due.len > 2 ? 2 : 0)); /* without "a " */
	say_event(rule->unless->b->b, rule, b);
	cs_buf_str(b, ". Otherwise: deny.");
}

static void say_rule(const struct rl_rule *rule, struct cs_buf *b)
{
	bool allows = rule->verb == RULES_ALLOW;

	cs_buf_str(b, "Before ");
	say_trigger(rule->call, b);
	if (rule->where) {
		cs_buf_str(b, ", if ");
		say(rule->where, TOLD, rule, b);
		cs_buf_str(b, allows ? "" : " (or that is not known)");
	}
	if (rule->unless) {
		cs_buf_str(b, allows ? ", unless " : ": ");
		say(rule->unless, allows ? TOLD : MUST, rule, b);
	}
	cs_buf_fmt(b, rule->unless && !allows ? ". Otherwise: %s." : ": %s.", rules_verdict_name(rule->verb));
}

static int say_whole(const struct rl_rule *rule, struct cs_buf *out, struct cs_err *err)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 20);

	if (rule->required)
		say_required(rule, &b);
	else
		say_rule(rule, &b);
	if (rule->because)
		cs_buf_fmt(&b, " Because: %s.", rule->because);
	if (rule->fix)
		cs_buf_fmt(&b, " To do: %s.", rule->fix);
	if (b.over)
		return cs_fail(err, CS_E_LIMIT, 0, "the rule `%s` is too long to be told", rule->name);
	cs_escape(out, cs_buf_text(&b));
	return 0;
}

int rules_explain(const struct rules *r, const char *rule, struct cs_buf *out, struct cs_err *err)
{
	const char *names[256], *near;
	uint32_t n = r->n_rules < 256 ? r->n_rules : 256;
	char shown[128];

	for (uint32_t i = 0; i < r->n_rules; i++) {
		int k;

		if (i < n)
			names[i] = r->rules[i].name;
		if (rule && strcmp(r->rules[i].name, rule) != 0)
			continue;
		if (!rule)
			cs_buf_fmt(out, "%s: ", r->rules[i].name);
		k = say_whole(&r->rules[i], out, err);
		if (k < 0 || rule)
			return k;
		cs_buf_char(out, '\n');
	}
	if (!rule)
		return 0;
	near = cs_nearest(rule, names, n);
	return cs_fail(err, CS_E_NOT_FOUND, 0, "no rule `%s`%s%s%s", cs_escape_to(shown, sizeof shown, rule), near ? "; did you mean `" : "",
		       near ? near : "", near ? "`?" : "");
}
