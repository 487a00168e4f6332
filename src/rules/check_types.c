/* SPDX-License-Identifier: Apache-2.0 */
/* check_types.c - names of arguments and fields, and types, against the schemas of the tools.
 *
 * A rule that looks at an argument which no call has, or compares a number with a
 * string, would be unknown for ever; so it is an error.  What may be meant and may
 * be a slip is a warning.
 */
#include "rules/internal.h"

#include <stdio.h>
#include <string.h>

/* Where a formula stands. */
struct scope {
	struct parser *p;
	const struct rl_call *call;  /* the present call, or the event's; NULL: none (an assertion) */
	const struct rl_formula *event; /* inside its `where` */
	const struct rl_rule *rule;
	struct rl_type vars[RL_MAX_VARS];
	struct rl_type locals[RL_MAX_LOCALS];
	const struct rl_term *over[RL_MAX_LOCALS]; /* the lists that they are from */
	const char *guarded[32]; /* arguments that `present` was asked of */
	uint32_t n_guarded;
};

static void term_type(struct scope *s, const struct rl_term *t, struct rl_type *ret);
static void check(struct scope *s, const struct rl_formula *f);

static const char *show_term(struct parser *p, const struct rl_term *t)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(4096);

	rl_print_term(t, &b);
	return rl_escape(p, cs_buf_text(&b));
}

static const char *show_value(struct parser *p, const struct json *v)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(4096);

	json_write(&b, v);
	return rl_escape(p, cs_buf_text(&b));
}

/* ---- paths ---- */

static const char *suggest_field(struct parser *p, const struct rl_type *t, const char *key)
{
	const char *names[256];

	return rl_suggest(p, key, names, rl_type_fields(t, names, 256));
}

/* Up to and with step `n`, as written. */
static const char *path_text(struct parser *p, const struct rl_step *path, uint32_t n)
{
	struct rl_term t = { .kind = RL_T_LOCAL, .name = "", .path = path, .steps = n };
	const char *text = show_term(p, &t);

	return *text == '.' ? text + 1 : text;
}

/* Whose steps they are, for messages only: made when one is needed. */
struct owner {
	enum { OF_TOOL, OF_RESULT, OF_LOCAL } kind;
	uint32_t tool;
	const char *local;
};

static const char *owner_text(struct parser *p, const struct owner *o)
{
	char text[240];
	const char *copy;

	snprintf(text, sizeof text, "%s`%s`", o->kind == OF_TOOL ? "tool " : o->kind == OF_RESULT ? "the result of tool " : "",
		 o->kind == OF_LOCAL ? o->local : rl_escape(p, p->r->tools[o->tool].name));
	copy = cs_arena_dup(p->a, text, strlen(text));
	return copy ? copy : "";
}

static void fail_step(struct parser *p, enum rl_step_result r, const struct rl_type *t, const struct rl_step *path, uint32_t at, struct rl_pos pos, const struct owner *o)
{
	const char *who = owner_text(p, o);

	if (r == RL_STEP_NO_FIELD)
		rl_fail(p, pos, "%s has no %s `%s`%s", who, at == 0 && o->kind == OF_TOOL ? "argument" : "field", path_text(p, path, at + 1), suggest_field(p, t, path[at].key));
	else if (at)
		rl_fail(p, pos, "`%s` of %s is %s and has no %s", path_text(p, path, at), who, rl_type_name(t->mask), path[at].key || path[at].term ? "fields" : "elements");
	else
		rl_fail(p, pos, "%s is %s and has no %s", who, rl_type_name(t->mask), path[at].key || path[at].term ? "fields" : "elements");
}

/* The type behind the steps. */
static bool walk(struct scope *s, struct rl_type *t, const struct rl_step *path, uint32_t n, struct rl_pos pos, const struct owner *o)
{
	for (uint32_t i = 0; i < n && !s->p->failed; i++) {
		struct rl_type next;
		enum rl_step_result r;

		if (path[i].term)
			term_type(s, path[i].term, &next);
		r = rl_type_step(t, &path[i], &next);
		if (r != RL_STEP_OK)
			fail_step(s->p, r, t, path, i, pos, o);
		*t = next;
	}
	return !s->p->failed;
}

/* Is the first step an argument of this tool at all? */
static bool has_argument(const struct rules_tool *tool, const struct rl_step *first)
{
	struct rl_type t, next;

	rl_type_of(tool->input, &t);
	return rl_type_step(&t, first, &next) != RL_STEP_NO_FIELD;
}

static void fail_lacking(struct parser *p, const struct rl_call *c, const struct rl_step *first, struct rl_pos pos, uint32_t tool, bool some_have)
{
	const char *name = rl_escape(p, p->r->tools[tool].name);
	struct rl_type t;

	rl_type_of(p->r->tools[tool].input, &t);
	if (some_have)
		rl_fail(p, pos, "tool `%s`, one of `%s`, has no argument `%s`; name the tools that have it, or write a rule for each", name,
			rl_escape(p, c->tools.text), rl_escape(p, first->key));
	else
		rl_fail(p, pos, "tool `%s` has no argument `%s`%s", name, rl_escape(p, first->key), suggest_field(p, &t, first->key));
}

/* An argument of a call: the types of all the tools it may be. `every`: each tool must have it. */
static void look_at_tools(struct scope *s, const struct rl_call *c, const struct rl_step *path, uint32_t n, struct rl_pos pos, bool every, struct rl_type *ret)
{
	struct parser *p = s->p;
	uint32_t lacks = UINT32_MAX, have = 0;

	*ret = (struct rl_type){ 0 };
	p->work += c->tools.n;
	if (p->work > RL_MAX_WORK)
		rl_fail_limit(p, pos, "too many arguments of too many tools to check; name fewer tools");
	for (uint32_t i = 0; i < c->tools.n && !p->failed; i++) {
		uint32_t tool = c->tools.ids[i];
		struct rl_type one;

		if (!has_argument(&p->r->tools[tool], &path[0])) {
			lacks = lacks == UINT32_MAX ? tool : lacks;
			continue;
		}
		rl_type_of(p->r->tools[tool].input, &one);
		if (!walk(s, &one, path, n, pos, &(struct owner){ .kind = OF_TOOL, .tool = tool }))
			return;
		have++;
		rl_type_join(ret, &one);
	}
	if (!c->tools.n)
		rl_type_any(ret, TY_ANY);
	if (p->failed || lacks == UINT32_MAX)
		return;
	ret->optional = true;
	if (!have || every)
		fail_lacking(p, c, &path[0], pos, lacks, have > 0);
}

/* The same set and the same argument, in rule after rule: once is enough. Sets are told apart by their text. */
static void argument_type(struct scope *s, const struct rl_call *c, const struct rl_step *path, uint32_t n, struct rl_pos pos, bool every, struct rl_type *ret)
{
	CS_BUF_AUTO struct cs_buf key = CS_BUF(1 << 16);
	struct parser *p = s->p;
	const char *kept;
	uint32_t at;

	if (c->tools.n < 8 || n != 1) {
		look_at_tools(s, c, path, n, pos, every, ret);
		return;
	}
	cs_buf_fmt(&key, "%d %s %s", every, path[0].key, c->tools.text);
	if (!key.over && rl_map_find(&p->seen, cs_buf_text(&key), &at)) {
		*ret = p->seen_types[at];
		return;
	}
	look_at_tools(s, c, path, n, pos, every, ret);
	kept = cs_arena_dup(p->a, cs_buf_text(&key), key.len);
	p->seen_types = rl_grow(p, p->seen_types, p->seen.n, sizeof *p->seen_types);
	if (p->failed || !kept || key.over)
		return;
	p->seen_types[p->seen.n] = *ret;
	rl_map_add(p, &p->seen, kept, p->seen.n);
}

static void result_type(struct scope *s, const struct rl_call *c, const struct rl_step *path, uint32_t n, struct rl_pos pos, struct rl_type *ret)
{
	*ret = (struct rl_type){ 0 };
	s->p->work += c->tools.n;
	if (s->p->work > RL_MAX_WORK)
		rl_fail_limit(s->p, pos, "too many results of too many tools to check; name fewer tools");
	for (uint32_t i = 0; i < c->tools.n && !s->p->failed; i++) {
		struct rl_type one;

		rl_type_of(s->p->r->tools[c->tools.ids[i]].output, &one);
		if (walk(s, &one, path, n, pos, &(struct owner){ .kind = OF_RESULT, .tool = c->tools.ids[i] }))
			rl_type_join(ret, &one);
	}
	if (!c->tools.n)
		rl_type_any(ret, TY_ANY);
}

/* ---- patterns ---- */

/* The end of a name like example.com, at a dot: how long the top-level domain behind it is. */
static bool domain_behind(const char *dot)
{
	static const char *const tlds[] = { "com", "org", "net", "io", "dev", "ai", "app", "gov", "edu", "co", "uk", "de", "eu", "info", "cloud" };

	for (size_t i = 0; i < sizeof tlds / sizeof *tlds; i++) {
		size_t n = strlen(tlds[i]);

		if (!strncmp(dot + 1, tlds[i], n) && (!dot[n + 1] || strchr("/)|:\\", dot[n + 1])))
			return true;
	}
	return false;
}

static void lint_pattern(struct parser *p, const struct pattern *pattern, struct rl_pos pos)
{
	const char *text = pattern_text(pattern);
	bool in_class = false;

	for (const char *s = text; *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (*s == '[' || *s == ']')
			in_class = *s == '[';
		else if (*s == '.' && !in_class && s > text && (((s[-1] | 32) >= 'a' && (s[-1] | 32) <= 'z') || (s[-1] >= '0' && s[-1] <= '9')) && domain_behind(s))
			rl_warn(p, pos, "in the pattern \"%s\" the `.` before `%.8s` fits any character; write `\\\\.%.8s`", rl_escape(p, text), rl_escape(p, s + 1),
				rl_escape(p, s + 1));
	}
}

/* ---- values ---- */

static void arg_term_type(struct scope *s, const struct rl_term *t, struct rl_type *ret)
{
	rl_type_any(ret, TY_ANY);
	if (!s->call)
		rl_fail(s->p, t->pos, "`%s` is an argument of a call, and an assertion is about no call; put it into an event, as in call(TOOL where ...)", show_term(s->p, t));
	else if (s->call->tools.end)
		rl_fail(s->p, t->pos, "`end` has no arguments, so there is no `%s`", show_term(s->p, t));
	else
		argument_type(s, s->call, t->path, t->steps, t->pos, /* every= */ false, ret);
}

static bool is_guarded(const struct scope *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_guarded; i++)
		if (!strcmp(s->guarded[i], name))
			return true;
	return false;
}

/* As an operand: an argument that may be left out makes the comparison unknown. */
static void warn_optional(struct scope *s, const struct rl_term *t, const struct rl_type *type)
{
	struct rl_type top;
	const char *name = t->name;

	if (t->kind != RL_T_ARG || !type->optional || s->p->failed || is_guarded(s, name))
		return;
	argument_type(s, s->call, t->path, 1, t->pos, /* every= */ false, &top);
	if (!top.optional || (top.open && !top.n))
		return;
	name = rl_escape(s->p, name);
	if (s->event)
		rl_warn(s->p, t->pos, "`%s` may be absent: an event without it never fits; say so with `present(%s) and ...`, or `not present(%s) or ...`", name, name, name);
	else
		rl_warn(s->p, t->pos, "`%s` may be absent: the condition is then unknown, and the rule %s; say what is meant with `present(%s) and ...` or `not present(%s) or ...`",
			name, s->rule && s->rule->verb == RULES_ALLOW ? "does not allow" : "fires", name, name);
}

static void want(struct scope *s, const struct rl_term *t, unsigned mask, const char *who, const char *needs, struct rl_type *ret)
{
	term_type(s, t, ret);
	warn_optional(s, t, ret);
	if (!s->p->failed && !(ret->mask & mask))
		rl_fail(s->p, t->pos, "%s needs %s, but `%s` is %s", who, needs, show_term(s->p, t), rl_type_name(ret->mask));
}

static void list_of(struct rl_type *ret, unsigned element)
{
	*ret = (struct rl_type){ .mask = TY_ARRAY, .element = element, .open = true };
}

static void function_type(struct scope *s, const struct rl_term *t, struct rl_type *ret)
{
	struct rl_type a;

	if (t->kind == RL_T_LEN) {
		want(s, t->a, TY_STRING | TY_ARRAY | TY_OBJECT, "`len`", "a string, a list or an object", &a);
		rl_type_any(ret, TY_NUMBER);
	} else if (t->kind == RL_T_KEYS || t->kind == RL_T_VALUES) {
		want(s, t->a, TY_OBJECT, t->kind == RL_T_KEYS ? "`keys`" : "`values`", "an object", &a);
		list_of(ret, t->kind == RL_T_KEYS ? TY_STRING : TY_ANY);
	} else if (t->kind == RL_T_FROM) {
		term_type(s, t->a, &a);
		list_of(ret, TY_STRING);
	} else { /* of a shell command: a line, or its words */
		want(s, t->a, TY_STRING | TY_ARRAY, t->kind == RL_T_SHELL ? "`shell`" : "this question about a command", "a command (a string or a list)", &a);
		if (t->kind == RL_T_SHELL)
			rl_type_any(ret, TY_STRING);
		else
			list_of(ret, TY_STRING);
	}
}

static void check_call(struct scope *s, const struct rl_call *c, bool trigger);

static void kept_type(struct scope *s, const struct rl_term *t, struct rl_type *ret)
{
	rl_type_any(ret, TY_NUMBER);
	if (t->kind == RL_T_LAST) {
		check_call(s, t->call, /* trigger= */ false);
		if (!s->p->failed)
			result_type(s, t->call, t->path, t->steps, t->pos, ret);
	} else {
		check(s, t->past);
	}
	if (t->kind == RL_T_SUM && !s->p->failed) {
		struct rl_type a;

		argument_type(s, t->call, t->path, t->steps, t->a->pos, /* every= */ true, &a);
		if (!s->p->failed && !(a.mask & TY_NUMBER))
			rl_fail(s->p, t->a->pos, "`sum` adds numbers, but `%s` is %s", show_term(s->p, t->a), rl_type_name(a.mask));
	}
}

static void own_result_type(struct scope *s, const struct rl_term *t, struct rl_type *ret)
{
	rl_type_any(ret, TY_ANY);
	if (!s->event || s->event->event == RL_EV_CALL)
		rl_fail(s->p, t->pos, "a call has no result yet; write ok(...) or fail(...)");
	else if (s->event->event == RL_EV_OK) /* what a tool says when it fails has no schema */
		result_type(s, s->call, t->path, t->steps, t->pos, ret);
}

static void arithmetic_type(struct scope *s, const struct rl_term *t, struct rl_type *ret)
{
	const char *op = t->kind == RL_T_ADD ? "`+`" : t->kind == RL_T_SUB ? "`-`" : "`*`";
	struct rl_type a;

	want(s, t->a, TY_NUMBER, op, "numbers", &a);
	if (!s->p->failed)
		want(s, t->b, TY_NUMBER, op, "numbers", &a);
	rl_type_any(ret, TY_NUMBER);
}

/* A name that the session does not have would be unknown for ever. */
static void session_type(struct parser *p, const struct rl_term *t, struct rl_type *ret)
{
	const char *names[RL_SESSION_NAMES];

	for (size_t i = 0; i < RL_SESSION_NAMES; i++) {
		names[i] = rl_session_names[i].name;
		if (!strcmp(names[i], t->name)) {
			rl_type_any(ret, rl_session_names[i].mask);
			return;
		}
	}
	rl_fail(p, t->pos, "the session has no `%s`%s", rl_escape(p, t->name),
		*rl_suggest(p, t->name, names, RL_SESSION_NAMES) ? rl_suggest(p, t->name, names, RL_SESSION_NAMES) :
		"; it has untrusted, sensitive, secret, planned, suspicion, role, agent and workspace");
}

static void term_type(struct scope *s, const struct rl_term *t, struct rl_type *ret)
{
	rl_type_any(ret, TY_ANY);
	if (s->p->failed)
		return;
	switch (t->kind) {
	case RL_T_CONST: rl_type_any(ret, 1u << t->value->type); break;
	case RL_T_SET: list_of(ret, TY_ANY); break;
	case RL_T_ARG: arg_term_type(s, t, ret); break;
	case RL_T_RESULT: own_result_type(s, t, ret); break;
	case RL_T_VAR: *ret = s->vars[t->var]; break;
	case RL_T_LOCAL:
		*ret = s->locals[t->var];
		walk(s, ret, t->path, t->steps, t->pos, &(struct owner){ .kind = OF_LOCAL, .local = t->name });
		break;
	case RL_T_LAST: case RL_T_COUNT: case RL_T_SUM: kept_type(s, t, ret); break;
	case RL_T_ADD: case RL_T_SUB: case RL_T_MUL: arithmetic_type(s, t, ret); break;
	case RL_T_SESSION: session_type(s->p, t, ret); break;
	case RL_T_EFFECTS: list_of(ret, TY_STRING); break;
	case RL_T_TOOL: rl_type_any(ret, TY_STRING); break;
	case RL_T_LEN: case RL_T_KEYS: case RL_T_VALUES: case RL_T_FROM: case RL_T_SHELL: case RL_T_EFFECT_OF: function_type(s, t, ret); break;
	}
	if (!s->call && (t->kind == RL_T_TOOL || t->kind == RL_T_EFFECTS))
		rl_fail(s->p, t->pos, "an assertion is about no call, so there is no `%s`", show_term(s->p, t));
}

/* ---- comparisons ---- */

/* A constant beside a term that has only so many values. */
static void check_words(struct scope *s, const struct rl_term *t, const struct json *v, struct rl_pos pos, const char *const *words, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++)
		if (json_str(v) && !strcmp(json_str(v), words[i]))
			return;
	rl_fail(s->p, pos, "`%s` is never %s%s%s", show_term(s->p, t), show_value(s->p, v), what, json_str(v) ? rl_suggest(s->p, json_str(v), words, n) : "");
}

/* An effect or an origin, by itself or as the element of a list that a variable goes through: the words it may be. */
static const char *const *words_of(const struct scope *s, const struct rl_term *t)
{
	static const char *const origins[5] = { "user", "trusted", "structured", "free", "nowhere" };

	if (t->kind == RL_T_LOCAL && !t->steps && s->over[t->var])
		t = s->over[t->var];
	return t->kind == RL_T_EFFECTS ? rl_effect_names : t->kind == RL_T_FROM ? origins : NULL;
}

static void check_const(struct scope *s, const struct rl_term *t, const struct rl_type *type, const struct json *v, struct rl_pos pos)
{
	static const char *const shells[] = { "safe", "uncertain", "unsafe" };
	const char *words[256];

	if (s->p->failed)
		return;
	if (t->kind == RL_T_TOOL && json_str(v) && rl_tool_find(s->p, json_str(v)) < 0)
		rl_fail(s->p, pos, "unknown tool %s%s", show_value(s->p, v), rl_tool_suggest(s->p, json_str(v)));
	else if (t->kind == RL_T_SHELL)
		check_words(s, t, v, pos, shells, 3, "");
	else if (!(type->mask & 1u << v->type))
		rl_fail(s->p, pos, "`%s` is %s, but %s is %s", show_term(s->p, t), rl_type_name(type->mask), show_value(s->p, v), rl_type_name(1u << v->type));
	else if (json_is(v, JSON_STRING) && words_of(s, t))
		check_words(s, t, v, pos, words_of(s, t), 5, "");
	else if (!rl_type_admits(type, v))
		check_words(s, t, v, pos, words, rl_type_enum(type, words, 256), " by its schema");
}

/* Each of a set's constants beside what is looked for in it. */
static void check_set(struct scope *s, const struct rl_term *t, const struct rl_type *type, const struct rl_term *set)
{
	struct rl_type element = *type;

	if (set->kind != RL_T_SET || type->mask == TY_ANY)
		return;
	if (type->mask & TY_ARRAY)
		rl_type_element(type, &element);
	if (type->mask & ~(unsigned)TY_ARRAY)
		rl_type_join(&element, type);
	for (uint32_t i = 0; i < set->value->n && !s->p->failed; i++)
		check_const(s, t, &element, &set->value->items[i], set->pos);
}

static void check_equal(struct scope *s, const struct rl_formula *f)
{
	struct rl_type l, r;

	want(s, f->l, TY_ANY, "", "", &l);
	want(s, f->r, TY_ANY, "", "", &r);
	if (f->r->kind == RL_T_CONST)
		check_const(s, f->l, &l, f->r->value, f->r->pos);
	else if (f->l->kind == RL_T_CONST)
		check_const(s, f->r, &r, f->l->value, f->l->pos);
	else if (!s->p->failed && !(l.mask & r.mask))
		rl_fail(s->p, f->pos, "`%s` is %s, but `%s` is %s: they are never equal", show_term(s->p, f->l), rl_type_name(l.mask), show_term(s->p, f->r), rl_type_name(r.mask));
	if (!s->p->failed)
		check_set(s, f->l, &l, f->r);
	if (!s->p->failed)
		check_set(s, f->r, &r, f->l);
}

static void check_order(struct scope *s, const struct rl_formula *f)
{
	static const char *const ops[] = { [RL_LT] = "`<`", [RL_LE] = "`<=`", [RL_GT] = "`>`", [RL_GE] = "`>=`" };
	struct rl_type t;

	want(s, f->l, TY_NUMBER, ops[f->op], "numbers", &t);
	want(s, f->r, TY_NUMBER, ops[f->op], "numbers", &t);
}

/* A constant that is looked for in a list. */
static void check_element(struct scope *s, const struct rl_term *list, const struct rl_type *type, const struct rl_term *value)
{
	struct rl_type element;

	rl_type_element(type, &element);
	check_const(s, list, &element, value->value, value->pos);
}

static void check_in(struct scope *s, const struct rl_formula *f)
{
	struct rl_type l, r;

	want(s, f->l, TY_ANY, "", "", &l);
	want(s, f->r, TY_ARRAY, "`in`", "a set or a list on its right", &r);
	if (!s->p->failed)
		check_set(s, f->l, &l, f->r);
	if (s->p->failed || f->r->kind == RL_T_SET)
		return;
	check_set(s, f->r, &r, f->l);
	if (f->l->kind == RL_T_CONST)
		check_element(s, f->r, &r, f->l);
}

static void check_contains(struct scope *s, const struct rl_formula *f)
{
	struct rl_type l, r;

	want(s, f->l, TY_STRING | TY_ARRAY, "`contains`", "a string or a list on its left", &l);
	want(s, f->r, l.mask == TY_STRING ? TY_STRING : TY_ANY, "a string's `contains`", "a string", &r);
	if (s->p->failed || f->r->kind != RL_T_CONST || !(l.mask & TY_ARRAY) || l.mask & TY_STRING)
		return;
	check_element(s, f->l, &l, f->r);
}

static void check_quantifier(struct scope *s, const struct rl_formula *f)
{
	struct rl_type over;

	want(s, f->l, TY_ARRAY, f->op == RL_ALL ? "`all`" : "`any`", "a list", &over);
	if (s->p->failed)
		return;
	rl_type_element(&over, &s->locals[f->var]);
	s->over[f->var] = f->l;
	check(s, f->a);
}

/* ---- calls and events ---- */

static void check_bound_type(struct scope *s, const struct rl_arg *a, const struct rl_type *t, bool trigger)
{
	struct rl_type *var = &s->vars[a->var];

	if (!trigger && !(t->mask & var->mask))
		rl_fail(s->p, a->pos, "the variable `%s` is %s, but the argument `%s` is %s", a->var_name, rl_type_name(var->mask), rl_escape(s->p, a->name), rl_type_name(t->mask));
	else if (trigger && var->mask && !(t->mask & var->mask))
		rl_fail(s->p, a->pos, "the variable `%s` is bound to %s and to %s", a->var_name, rl_type_name(var->mask), rl_type_name(t->mask));
	else if (trigger)
		*var = *t;
	var->optional = false;
}

static void check_call(struct scope *s, const struct rl_call *c, bool trigger)
{
	struct parser *p = s->p;

	for (uint32_t i = 0; i < c->n_args && !p->failed; i++) {
		const struct rl_arg *a = &c->args[i];
		struct rl_term as_term = { .kind = RL_T_ARG, .name = a->path[0].key, .path = a->path, .steps = a->steps };
		struct rl_type t;

		argument_type(s, c, a->path, a->steps, a->pos, /* every= */ true, &t);
		if (p->failed)
			return;
		if (a->kind == RL_ARG_CONST)
			check_const(s, &as_term, &t, a->value, a->pos);
		else if (a->kind == RL_ARG_VAR)
			check_bound_type(s, a, &t, trigger);
		else if (a->kind == RL_ARG_PATTERN && !(t.mask & (TY_STRING | TY_ARRAY)))
			rl_fail(p, a->pos, "a pattern needs a string, but the argument `%s` is %s", rl_escape(p, a->name), rl_type_name(t.mask));
		if (a->kind == RL_ARG_PATTERN)
			lint_pattern(p, a->pattern, a->pos);
	}
}

static void gather_guards(struct scope *s, const struct rl_formula *f)
{
	if (!f || s->n_guarded >= sizeof s->guarded / sizeof *s->guarded)
		return;
	if (f->op == RL_PRESENT)
		s->guarded[s->n_guarded++] = f->l->name;
	gather_guards(s, f->a);
	gather_guards(s, f->b);
}

/* With a scope of its own: its arguments, its result, no variables. */
static void check_event(struct scope *s, const struct rl_formula *f)
{
	struct scope own = { .p = s->p, .call = f->call, .event = f, .rule = s->rule };

	if (!f->call)
		return;
	check_call(s, f->call, /* trigger= */ false);
	if (!f->where || s->p->failed)
		return;
	gather_guards(&own, f->where);
	check(&own, f->where);
}

static void check(struct scope *s, const struct rl_formula *f)
{
	struct rl_type t;

	if (!f || s->p->failed)
		return;
	switch (f->op) {
	case RL_TRUE: case RL_FALSE: break;
	case RL_NOT: case RL_AND: case RL_OR: case RL_ONCE: case RL_HIST: case RL_PREV: case RL_SINCE:
		check(s, f->a);
		check(s, f->b);
		break;
	case RL_EQ: case RL_NE: check_equal(s, f); break;
	case RL_LT: case RL_LE: case RL_GT: case RL_GE: check_order(s, f); break;
	case RL_IN: check_in(s, f); break;
	case RL_CONTAINS: check_contains(s, f); break;
	case RL_MATCHES:
		want(s, f->l, TY_STRING | TY_ARRAY, "`~`", "a string", &t);
		lint_pattern(s->p, f->pattern, f->pos);
		break;
	case RL_UNDER: case RL_OUTSIDE:
		want(s, f->l, TY_STRING | TY_ARRAY, f->op == RL_UNDER ? "`under`" : "`outside`", "a path (a string or a list of them)", &t);
		want(s, f->r, TY_STRING, f->op == RL_UNDER ? "`under`" : "`outside`", "a path on its right", &t);
		break;
	case RL_PRESENT: term_type(s, f->l, &t); break;
	case RL_ALL: case RL_ANY: check_quantifier(s, f); break;
	case RL_EVENT: check_event(s, f); break;
	case RL_SEQ:
		for (uint32_t i = 0; i < f->n_seq; i++)
			check(s, f->seq[i]);
		break;
	}
}

/* ---- statements ---- */

/* A note for each rule that no test speaks of: a rule that was never seen to fire is a hope. */
static void note_untested(struct parser *p)
{
	bool *tested = rl_get(p, p->r->n_rules + (size_t)1, 1);
	uint32_t at;

	if (!tested)
		return;
	for (uint32_t i = 0; i < p->r->n_tests; i++)
		if (p->r->tests[i].by && rl_map_find(&p->rule_names, p->r->tests[i].by, &at))
			tested[at] = true;
	for (uint32_t i = 0; i < p->r->n_rules && !p->failed; i++)
		if (!tested[i])
			rl_warn(p, p->r->rules[i].pos, "note: no test shows rule `%s` at work; add `test %s [...] by %s;`", p->r->rules[i].name,
				rules_verdict_name(p->r->rules[i].verb), p->r->rules[i].name);
}

/* An obligation's variables get their types from the event that it follows from. */
static void check_rule(struct parser *p, const struct rl_rule *rule)
{
	struct scope s = { .p = p, .call = rule->call, .rule = rule };

	if (rule->required)
		check_call(&s, rule->unless->a->a->a->call ? rule->unless->a->a->a->call : rule->call, /* trigger= */ true);
	else
		check_call(&s, rule->call, /* trigger= */ true);
	gather_guards(&s, rule->where);
	gather_guards(&s, rule->unless);
	check(&s, rule->where);
	check(&s, rule->unless);
}

static void check_test_args(struct parser *p, const struct rl_test_event *e)
{
	struct rl_type top, t;

	rl_type_of(p->r->tools[e->tool].input, &top);
	for (uint32_t i = 0; i < e->args->n && !p->failed; i++) {
		const struct json_member *m = &e->args->members[i];
		struct rl_step step = { .key = m->key };
		struct scope s = { .p = p };
		struct rl_term as_term = { .kind = RL_T_ARG, .name = m->key, .path = &step, .steps = 1 };

		if (rl_type_step(&top, &step, &t) == RL_STEP_NO_FIELD)
			rl_fail(p, e->pos, "tool `%s` has no argument `%s`%s", rl_escape(p, p->r->tools[e->tool].name), rl_escape(p, m->key), suggest_field(p, &top, m->key));
		else
			check_const(&s, &as_term, &t, &m->value, e->pos);
	}
}

static void check_test_result(struct parser *p, const struct rl_test_event *e)
{
	struct rl_type top, t;

	if (!e->result || e->fail)
		return;
	rl_type_of(p->r->tools[e->tool].output, &top);
	if (!(top.mask & 1u << e->result->type)) {
		rl_fail(p, e->pos, "the result of tool `%s` is %s, but %s is %s", rl_escape(p, p->r->tools[e->tool].name), rl_type_name(top.mask),
			show_value(p, e->result), rl_type_name(1u << e->result->type));
		return;
	}
	for (uint32_t i = 0; e->result->type == JSON_OBJECT && i < e->result->n && !p->failed; i++) {
		const struct json_member *m = &e->result->members[i];
		struct rl_step step = { .key = m->key };

		if (rl_type_step(&top, &step, &t) == RL_STEP_NO_FIELD)
			rl_fail(p, e->pos, "the result of tool `%s` has no field `%s`%s", rl_escape(p, p->r->tools[e->tool].name), rl_escape(p, m->key), suggest_field(p, &top, m->key));
		else if (!(t.mask & 1u << m->value.type))
			rl_fail(p, e->pos, "the field `%s` of the result of tool `%s` is %s, but %s is %s", rl_escape(p, m->key), rl_escape(p, p->r->tools[e->tool].name),
				rl_type_name(t.mask), show_value(p, &m->value), rl_type_name(1u << m->value.type));
	}
}

static void check_test(struct parser *p, const struct rl_test *t)
{
	for (uint32_t i = 0; i < t->n && !p->failed; i++)
		if (t->events[i].kind == RL_TEST_CALL) {
			check_test_args(p, &t->events[i]);
			if (!p->failed)
				check_test_result(p, &t->events[i]);
		}
}

void rl_check_types(struct parser *p)
{
	for (uint32_t i = 0; i < p->r->n_rules && !p->failed; i++)
		check_rule(p, &p->r->rules[i]);
	for (uint32_t i = 0; i < p->r->n_asserts && !p->failed; i++)
		check(&(struct scope){ .p = p }, p->r->asserts[i].past);
	for (uint32_t i = 0; i < p->r->n_tests && !p->failed; i++)
		check_test(p, &p->r->tests[i]);
	if (!p->failed)
		note_untested(p);
}
