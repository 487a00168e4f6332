/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c - formulas, terms, events and call patterns.
 *
 * One climb over precedences for conditions and values alike: "(" may open
 * either, and which it was is known only behind the ")".  Chains of `and` and `or`
 * become balanced trees, so that no reader of the tree recurses as deep as a
 * chain is long.
 */
#include "rules/internal.h"

#include "base/text.h"

#include <string.h>

/* A condition or a value; neither after an error. */
struct item {
	struct rl_formula *f;
	struct rl_term *t;
	struct rl_pos pos;
	unsigned depth;
};

/* Loosest first. */
enum { BP_OR = 1, BP_AND, BP_SINCE, BP_PREFIX, BP_COMPARE, BP_ADD, BP_MUL, BP_ATOM };

static struct item parse(struct parser *p, int least);

struct rl_formula *rl_formula_new(struct parser *p, enum rl_op op, struct rl_pos pos)
{
	struct rl_formula *f = rl_get(p, 1, sizeof *f);

	if (!f)
		return NULL;
	f->op = op;
	f->pos = pos;
	f->id = UINT32_MAX;
	return f;
}

static struct rl_term *term_new(struct parser *p, enum rl_term_kind kind, struct rl_pos pos)
{
	struct rl_term *t = rl_get(p, 1, sizeof *t);

	if (!t)
		return NULL;
	t->kind = kind;
	t->pos = pos;
	t->id = UINT32_MAX;
	return t;
}

static const char *text_of(struct parser *p, const struct item *i)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(4096);

	if (i->t)
		rl_print_term(i->t, &b);
	return rl_escape(p, cs_buf_text(&b));
}

/* True or false, whatever the session. */
static bool is_flag(const struct rl_term *t)
{
	for (size_t i = 0; t && t->kind == RL_T_SESSION && i < RL_SESSION_NAMES; i++)
		if (!strcmp(rl_session_names[i].name, t->name))
			return rl_session_names[i].mask == TY_BOOL;
	return false;
}

static struct rl_formula *want_formula(struct parser *p, const struct item *i)
{
	if (!p->failed && !i->f && is_flag(i->t))
		rl_fail(p, i->pos, "`%s` is a value where a condition is needed; write `%s == true`", text_of(p, i), text_of(p, i));
	else if (!p->failed && !i->f)
		rl_fail(p, i->pos, "`%s` is a value where a condition is needed; compare it with something", text_of(p, i));
	return p->failed ? NULL : i->f;
}

static struct rl_term *want_term(struct parser *p, const struct item *i)
{
	if (!p->failed && !i->t)
		rl_fail(p, i->pos, "a condition stands where a value is needed");
	return p->failed ? NULL : i->t;
}

static struct item of_formula(struct rl_formula *f, unsigned depth)
{
	return (struct item){ .f = f, .pos = f ? f->pos : (struct rl_pos){ 0, 0 }, .depth = depth };
}

static struct item of_term(struct rl_term *t, unsigned depth)
{
	return (struct item){ .t = t, .pos = t ? t->pos : (struct rl_pos){ 0, 0 }, .depth = depth };
}

static unsigned deeper(struct parser *p, const struct item *a, const struct item *b)
{
	unsigned d = (a->depth > b->depth ? a->depth : b->depth) + 1;

	if (d > RL_MAX_NESTING)
		rl_fail_limit(p, b->pos, "nested deeper than %d; split the rule", RL_MAX_NESTING);
	return d;
}

/* ---- paths ---- */

struct path {
	struct rl_step *steps;
	uint32_t n;
};

static struct rl_step *add_step(struct parser *p, struct path *path)
{
	if (path->n >= RL_MAX_NESTING) {
		rl_fail_limit(p, p->tok.pos, "a path of more than %d steps", RL_MAX_NESTING);
		return NULL;
	}
	path->steps = rl_grow(p, path->steps, path->n, sizeof *path->steps);
	return p->failed ? NULL : &path->steps[path->n++];
}

static void add_key(struct parser *p, struct path *path)
{
	struct rl_step *s;

	if ((p->tok.kind != TK_NAME && p->tok.kind != TK_STRING) || strlen(p->tok.text) != p->tok.text_len) {
		rl_fail(p, p->tok.pos, "expected the name of a field");
		return;
	}
	s = add_step(p, path);
	if (!s)
		return;
	s->key = p->tok.text;
	rl_next(p);
}

/* Behind "[". */
static void add_index(struct parser *p, struct path *path, bool computed)
{
	struct rl_pos pos = p->tok.pos;
	struct item i = parse(p, BP_ADD);
	struct rl_term *t = want_term(p, &i);
	struct rl_step *s = t ? add_step(p, path) : NULL;

	if (!s)
		return;
	if (t->kind == RL_T_CONST && t->value->type == JSON_STRING && strlen(t->value->s) == t->value->n)
		s->key = t->value->s;
	else if (t->kind == RL_T_CONST && t->value->type == JSON_NUMBER && t->value->whole && t->value->i >= 0)
		s->index = t->value->i;
	else if (t->kind == RL_T_CONST)
		rl_fail(p, pos, "an index is a whole number from 0, or a string");
	else if (!computed)
		rl_fail(p, pos, "an index is a number or a string here");
	else
		s->term = t;
	rl_expect(p, ']', "after the index");
}

/* .name and [index], as many as follow. */
static void add_steps(struct parser *p, struct path *path, bool computed)
{
	if (!rl_enter(p))
		return;
	while (!p->failed)
		if (rl_take(p, '.'))
			add_key(p, path);
		else if (rl_take(p, '['))
			add_index(p, path, computed);
		else
			break;
	rl_leave(p);
}

/* Where nothing but a path may stand: its first name may be quoted, and any word. `args.` may come first. */
static struct path parse_path(struct parser *p)
{
	struct path path = { 0 };

	if (rl_is_word(p, "args") && p->at < p->end && *p->at == '.') {
		rl_next(p);
		rl_next(p);
	}
	add_key(p, &path);
	add_steps(p, &path, /* computed= */ false);
	return path;
}

static const char *path_text(struct parser *p, const struct path *path)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(64 << 10);
	const char *s;

	for (uint32_t i = 0; i < path->n; i++)
		if (path->steps[i].key)
			cs_buf_fmt(&b, "%s%s", i ? "." : "", path->steps[i].key);
		else
			cs_buf_fmt(&b, "[%lld]", (long long)path->steps[i].index);
	s = cs_arena_dup(p->a, cs_buf_text(&b), b.len);
	return s ? s : "";
}

static struct rl_term *arg_term(struct parser *p, struct rl_pos pos, const struct path *path)
{
	struct rl_term *t = term_new(p, RL_T_ARG, pos);

	if (!t || p->failed || !path->n)
		return NULL;
	t->name = path->steps[0].key;
	t->path = path->steps;
	t->steps = path->n;
	return t;
}

/* ---- calls and events ---- */

static bool find_name(const char *const *names, uint32_t n, const char *word, uint32_t *ret)
{
	while (n--)
		if (!strcmp(names[n], word)) {
			*ret = n;
			return true;
		}
	return false;
}

static void arg_value(struct parser *p, struct rl_arg *arg)
{
	struct json v, *value;
	uint32_t local;
	char got[80];

	if (rl_literal(p, &v)) {
		value = rl_get(p, 1, sizeof *value);
		if (!value)
			return;
		*value = v;
		arg->kind = RL_ARG_CONST;
		arg->value = value;
	} else if (p->tok.kind == TK_NAME && !strcmp(p->tok.text, "_")) {
		arg->kind = RL_ARG_ANY;
		rl_next(p);
	} else if (p->tok.kind == TK_NAME && find_name(p->vars, p->n_vars, p->tok.text, &arg->var)) {
		arg->kind = RL_ARG_VAR;
		arg->var_name = p->vars[arg->var];
		rl_next(p);
	} else if (p->tok.kind == TK_NAME && find_name(p->locals, p->n_locals, p->tok.text, &local)) {
		rl_fail(p, p->tok.pos, "`%s` is a variable of `all` or `any`: the past is remembered for variables of `forall` only", p->tok.text);
	} else if (p->tok.kind == TK_NAME) {
		rl_fail(p, p->tok.pos, "unknown variable `%s`%s", p->tok.text,
			p->n_vars ? rl_suggest(p, p->tok.text, p->vars, p->n_vars) : "; write `forall` before the rule, or quotes for a string");
	} else {
		rl_fail(p, p->tok.pos, "expected a variable, a constant or `_`, got %s", rl_show_token(p, got, sizeof got));
	}
}

static const struct pattern *parse_pattern(struct parser *p)
{
	const struct pattern *pattern = NULL;
	struct cs_err why = { 0 };

	if (p->tok.kind != TK_STRING) {
		rl_fail(p, p->tok.pos, "expected a pattern in quotes after `~`");
		return NULL;
	}
	if (strlen(p->tok.text) != p->tok.text_len)
		rl_fail(p, p->tok.pos, "a pattern cannot hold the character \\u0000");
	else if (pattern_compile(p->a, p->tok.text, &pattern, &why) < 0 && why.code == CS_E_LIMIT)
		rl_fail_limit(p, p->tok.pos, "in the pattern: %s", why.msg);
	else if (!pattern)
		rl_fail(p, p->tok.pos, "in the pattern: %s", why.msg);
	rl_next(p);
	return pattern;
}

static void parse_arg(struct parser *p, struct rl_arg *arg)
{
	struct path path;
	char got[80];

	arg->pos = p->tok.pos;
	path = parse_path(p);
	if (p->failed)
		return;
	arg->name = path_text(p, &path);
	arg->path = path.steps;
	arg->steps = path.n;
	if (rl_take(p, '=')) {
		arg_value(p, arg);
	} else if (rl_take(p, '~')) {
		arg->kind = RL_ARG_PATTERN;
		arg->pattern = parse_pattern(p);
	} else {
		rl_fail(p, p->tok.pos, "expected `=` or `~` after the argument `%s`, got %s%s", rl_escape(p, arg->name), rl_show_token(p, got, sizeof got),
			p->tok.kind == TK_PUNCT && p->tok.op != ')' && p->tok.op != ',' ? "; other comparisons go into `where`" : "");
	}
}

const struct rl_call *rl_parse_call(struct parser *p, bool may_end)
{
	struct rl_call *c = rl_get(p, 1, sizeof *c);
	struct rl_arg *args = NULL;

	if (!c)
		return NULL;
	c->pos = p->tok.pos;
	if (rl_is_word(p, "end")) {
		if (!may_end)
			rl_fail(p, c->pos, "`end` is not an event; an obligation is `require B after A`");
		c->tools = (struct rl_tools){ .text = "end", .end = true };
		rl_next(p);
		return c;
	}
	rl_tool_list(p, &c->tools);
	if (!rl_take(p, '('))
		return p->failed ? NULL : c;
	while (!p->failed && !rl_is(p, ')')) {
		if (c->n_args)
			rl_expect(p, ',', "between arguments");
		args = rl_grow(p, args, c->n_args, sizeof *args);
		if (p->failed)
			return NULL;
		parse_arg(p, &args[c->n_args++]);
	}
	rl_expect(p, ')', "after the arguments");
	c->args = args;
	return p->failed ? NULL : c;
}

static bool next_is(const struct parser *p, char c)
{
	const char *s = p->at;

	while (s < p->end && (*s == ' ' || *s == '\t'))
		s++;
	return s < p->end && *s == c;
}

static bool event_kind(const struct parser *p, enum rl_event *ret)
{
	static const char *const names[] = { [RL_EV_USER] = "user", [RL_EV_CONFIRM] = "confirm", [RL_EV_CALL] = "call", [RL_EV_OK] = "ok", [RL_EV_FAIL] = "fail" };

	for (enum rl_event e = RL_EV_USER; e <= RL_EV_FAIL; e++)
		if ((e < RL_EV_CALL || next_is(p, '(')) && rl_is_word(p, names[e])) {
			*ret = e;
			return true;
		}
	return false;
}

static void event_where(struct parser *p, struct rl_formula *f)
{
	/* Inside, a name is an argument of the event; variables around it are not seen. */
	uint32_t locals = p->n_locals;

	p->in_event = true;
	p->n_locals = 0;
	f->where = rl_parse_formula(p);
	p->in_event = false;
	p->n_locals = locals;
}

const struct rl_formula *rl_parse_event(struct parser *p)
{
	struct rl_formula *f = rl_formula_new(p, RL_EVENT, p->tok.pos);
	char got[80];

	if (!f)
		return NULL;
	if (!event_kind(p, &f->event)) {
		rl_fail(p, f->pos, "expected an event (call(...), ok(...), fail(...), user or confirm), got %s", rl_show_token(p, got, sizeof got));
		return NULL;
	}
	if (p->in_event) {
		rl_fail(p, f->pos, "an event inside the `where` of an event; that speaks of the event's own arguments and result only");
		return NULL;
	}
	rl_next(p);
	if (f->event == RL_EV_USER || f->event == RL_EV_CONFIRM)
		return f;
	rl_expect(p, '(', "after the kind of event");
	f->call = p->failed ? NULL : rl_parse_call(p, /* may_end= */ false);
	if (rl_take_word(p, "where"))
		event_where(p, f);
	rl_expect(p, ')', "after the event");
	return p->failed ? NULL : f;
}

/* ---- values ---- */

static void no_memory_of_past(struct parser *p, struct rl_pos pos, const char *what)
{
	if (p->in_event)
		rl_fail(p, pos, "`%s` inside the `where` of an event; that speaks of the event's own arguments and result only", what);
}

static uint64_t parse_within(struct parser *p)
{
	uint64_t ms = 0;

	if (!rl_take_word(p, "within"))
		return 0;
	if ((p->tok.kind != TK_DURATION && p->tok.kind != TK_NUMBER) || cs_parse_duration(p->tok.text, &ms) < 0 || ms == 0)
		rl_fail(p, p->tok.pos, "expected a duration after `within`, as in 250ms, 30s, 10m, 2h or 1d");
	rl_next(p);
	return ms;
}

static struct rl_term *parse_last(struct parser *p, struct rl_pos pos)
{
	struct rl_term *t = term_new(p, RL_T_LAST, pos);
	struct path path = { 0 };

	if (!t)
		return NULL;
	no_memory_of_past(p, pos, "last");
	rl_expect(p, '(', "after `last`");
	t->call = p->failed ? NULL : rl_parse_call(p, /* may_end= */ false);
	rl_expect(p, ')', "after the call");
	add_steps(p, &path, /* computed= */ true);
	t->path = path.steps;
	t->steps = path.n;
	return t;
}

static struct rl_term *parse_count(struct parser *p, struct rl_pos pos)
{
	struct rl_term *t = term_new(p, RL_T_COUNT, pos);

	if (!t)
		return NULL;
	no_memory_of_past(p, pos, "count");
	rl_expect(p, '(', "after `count`");
	t->past = rl_parse_formula(p);
	rl_expect(p, ')', "after what is counted");
	t->within_ms = parse_within(p);
	return t;
}

static struct rl_term *parse_sum(struct parser *p, struct rl_pos pos)
{
	struct rl_term *t = term_new(p, RL_T_SUM, pos);
	struct rl_pos path_pos;
	struct path path;

	if (!t)
		return NULL;
	no_memory_of_past(p, pos, "sum");
	rl_expect(p, '(', "after `sum`");
	t->past = rl_parse_event(p);
	if (!p->failed && !t->past->call)
		rl_fail(p, t->past->pos, "user and confirm have no arguments to add up; write call(...), ok(...) or fail(...)");
	rl_expect(p, ',', "and the argument that is added up");
	path_pos = p->tok.pos;
	path = parse_path(p);
	rl_expect(p, ')', "after the argument");
	t->within_ms = parse_within(p);
	if (p->failed)
		return NULL;
	t->call = t->past->call;
	t->path = path.steps;
	t->steps = path.n;
	t->a = arg_term(p, path_pos, &path);
	return t;
}

/* len(T), keys(T), values(T). */
static struct rl_term *parse_unary(struct parser *p, enum rl_term_kind kind, struct rl_pos pos)
{
	struct rl_term *t = term_new(p, kind, pos);
	struct item i;

	if (!t)
		return NULL;
	rl_expect(p, '(', "after the function");
	i = parse(p, BP_ADD);
	t->a = want_term(p, &i);
	rl_expect(p, ')', "after the value");
	return t;
}

/* from(ARG), shell(ARG), reads(ARG)...: asked of the host. */
static struct rl_term *parse_asked(struct parser *p, enum rl_term_kind kind, struct rl_pos pos, const char *name)
{
	struct rl_term *t = term_new(p, kind, pos);
	struct path path;
	struct rl_pos path_pos;

	if (!t)
		return NULL;
	t->name = name;
	rl_expect(p, '(', "after the function");
	path_pos = p->tok.pos;
	path = parse_path(p);
	rl_expect(p, ')', "after the argument");
	t->a = arg_term(p, path_pos, &path);
	t->path = path.steps;
	t->steps = path.n;
	return t;
}

static struct rl_term *parse_set(struct parser *p, struct rl_pos pos)
{
	struct rl_term *t = term_new(p, RL_T_SET, pos);
	struct json *items = NULL, *set;
	uint32_t n = 0;
	char got[80];

	while (!p->failed && !rl_is(p, '}')) {
		if (n)
			rl_expect(p, ',', "between the elements of the set");
		items = rl_grow(p, items, n, sizeof *items);
		if (p->failed)
			return NULL;
		if (!rl_literal(p, &items[n++]))
			rl_fail(p, p->tok.pos, "expected a constant in the set, got %s%s", rl_show_token(p, got, sizeof got),
				p->tok.kind == TK_NAME ? "; strings are written in quotes" : "");
	}
	if (!p->failed && !n)
		rl_fail(p, pos, "an empty set; nothing is in it");
	rl_expect(p, '}', "after the set");
	set = rl_get(p, 1, sizeof *set);
	if (p->failed || !t || !set)
		return NULL;
	*set = (struct json){ .type = JSON_ARRAY, .n = n, .items = items };
	t->value = set;
	return t;
}

static struct rl_term *parse_function(struct parser *p)
{
	static const struct { const char *name; enum rl_term_kind kind; } functions[] = {
		{ "last", RL_T_LAST }, { "count", RL_T_COUNT }, { "sum", RL_T_SUM }, { "len", RL_T_LEN }, { "keys", RL_T_KEYS },
		{ "values", RL_T_VALUES }, { "from", RL_T_FROM }, { "shell", RL_T_SHELL }, { "reads", RL_T_EFFECT_OF },
		{ "writes", RL_T_EFFECT_OF }, { "deletes", RL_T_EFFECT_OF }, { "hosts", RL_T_EFFECT_OF }, { "runs", RL_T_EFFECT_OF },
	};
	enum { N = sizeof functions / sizeof *functions };
	struct rl_pos pos = p->tok.pos;
	const char *name = p->tok.text, *names[N];

	for (size_t i = 0; i < N; i++) {
		names[i] = functions[i].name;
		if (strcmp(functions[i].name, name) != 0)
			continue;
		rl_next(p);
		switch (functions[i].kind) {
		case RL_T_LAST: return parse_last(p, pos);
		case RL_T_COUNT: return parse_count(p, pos);
		case RL_T_SUM: return parse_sum(p, pos);
		case RL_T_LEN: case RL_T_KEYS: case RL_T_VALUES: return parse_unary(p, functions[i].kind, pos);
		default: return parse_asked(p, functions[i].kind, pos, name);
		}
	}
	if (rl_tool_find(p, name) >= 0 || rl_map_find(&p->set_names, name, NULL))
		rl_fail(p, pos, "`%s` is a tool, not a condition; write once call(%s(...)) or once ok(%s(...))", name, name, name);
	else
		rl_fail(p, pos, "unknown function `%s`%s", rl_escape(p, name), rl_suggest(p, name, names, N));
	return NULL;
}

/* A name that is no word of the language: a variable or an argument. */
static struct rl_term *parse_name(struct parser *p)
{
	struct rl_pos pos = p->tok.pos;
	const char *name = p->tok.text;
	struct path path = { 0 };
	struct rl_term *t;
	uint32_t at;

	if (find_name(p->locals, p->n_locals, name, &at)) {
		t = term_new(p, RL_T_LOCAL, pos);
		rl_next(p);
		add_steps(p, &path, /* computed= */ true);
	} else if (find_name(p->vars, p->n_vars, name, &at)) {
		if (p->in_event)
			rl_fail(p, pos, "the variable `%s` inside the `where` of an event; bind it in the event's call, as in (id=%s)", name, name);
		t = term_new(p, RL_T_VAR, pos);
		rl_next(p);
		if (rl_is(p, '.') || rl_is(p, '['))
			rl_fail(p, p->tok.pos, "the variable `%s` has no fields; bind it to the field, as in (order.id=%s)", name, name);
	} else {
		add_key(p, &path);
		add_steps(p, &path, /* computed= */ true);
		return arg_term(p, pos, &path);
	}
	if (!t)
		return NULL;
	t->name = name;
	t->var = at;
	t->path = path.steps;
	t->steps = path.n;
	return t;
}

static struct rl_term *parse_session(struct parser *p, struct rl_pos pos)
{
	struct rl_term *t = term_new(p, RL_T_SESSION, pos);

	rl_next(p);
	rl_expect(p, '.', "and a name after `session`");
	if (!p->failed && p->tok.kind != TK_NAME)
		rl_fail(p, p->tok.pos, "expected a name after `session.`");
	if (p->failed || !t)
		return NULL;
	t->name = p->tok.text;
	rl_next(p);
	return t;
}

static struct rl_term *parse_result(struct parser *p, struct rl_pos pos)
{
	struct rl_term *t = term_new(p, RL_T_RESULT, pos);
	struct path path = { 0 };

	if (!p->in_event)
		rl_fail(p, pos, "`result` is that of an event: write ok(... where result ...), or last(...) for an earlier result%s",
			"; an argument of that name is `args.result`");
	rl_next(p);
	add_steps(p, &path, /* computed= */ true);
	if (p->failed || !t)
		return NULL;
	t->path = path.steps;
	t->steps = path.n;
	return t;
}

static struct rl_term *parse_word_term(struct parser *p)
{
	struct rl_pos pos = p->tok.pos;
	struct path path;
	struct rl_term *t;

	if (rl_is_word(p, "result"))
		return parse_result(p, pos);
	if (rl_is_word(p, "session"))
		return parse_session(p, pos);
	if (rl_is_word(p, "args")) {
		if (!next_is(p, '.')) {
			rl_fail(p, pos, "expected `args.` and the name of an argument");
			return NULL;
		}
		path = parse_path(p);
		return arg_term(p, pos, &path);
	}
	if (rl_is_word(p, "tool") || rl_is_word(p, "effects")) {
		t = term_new(p, rl_is_word(p, "tool") ? RL_T_TOOL : RL_T_EFFECTS, pos);
		rl_next(p);
		if (rl_is(p, '.') || rl_is(p, '['))
			rl_fail(p, pos, "this is a word of the language and has no fields; an argument of that name is written `args.NAME`");
		return t;
	}
	return next_is(p, '(') ? parse_function(p) : parse_name(p);
}

/* ---- conditions ---- */

static struct item parse_prefix(struct parser *p, enum rl_op op)
{
	struct rl_formula *f = rl_formula_new(p, op, p->tok.pos);
	struct item i;

	rl_next(p);
	i = parse(p, BP_PREFIX);
	if (!want_formula(p, &i) || !f)
		return (struct item){ 0 };
	f->a = i.f;
	return of_formula(f, deeper(p, &i, &i));
}

static struct item parse_quantifier(struct parser *p, enum rl_op op)
{
	struct rl_formula *f = rl_formula_new(p, op, p->tok.pos);
	struct item over, body;
	uint32_t at;

	rl_next(p);
	if (p->failed || p->tok.kind != TK_NAME) {
		rl_fail(p, p->tok.pos, "expected a name, as in `all x in items: x.price < 10`");
		return (struct item){ 0 };
	}
	if (find_name(p->vars, p->n_vars, p->tok.text, &at) || find_name(p->locals, p->n_locals, p->tok.text, &at))
		rl_fail(p, p->tok.pos, "`%s` is a variable already; choose another name", p->tok.text);
	if (p->n_locals >= RL_MAX_LOCALS)
		rl_fail_limit(p, p->tok.pos, "more than %d of `all` and `any` in one another", RL_MAX_LOCALS);
	if (p->failed || !f)
		return (struct item){ 0 };
	f->var = p->n_locals;
	f->local = p->tok.text;
	p->locals[p->n_locals] = p->tok.text;
	rl_next(p);
	rl_expect_word(p, "in", "after the name");
	over = parse(p, BP_ADD);
	f->l = want_term(p, &over);
	rl_expect(p, ':', "and a condition after what is looped over");
	p->n_locals++;
	body = parse(p, BP_OR);
	p->n_locals--;
	f->a = want_formula(p, &body);
	if (p->failed)
		return (struct item){ 0 };
	return of_formula(f, deeper(p, &over, &body));
}

static struct item parse_present(struct parser *p)
{
	struct rl_formula *f = rl_formula_new(p, RL_PRESENT, p->tok.pos);
	struct rl_pos pos;
	struct path path;

	rl_next(p);
	rl_expect(p, '(', "after `present`");
	pos = p->tok.pos;
	path = parse_path(p);
	rl_expect(p, ')', "after the argument");
	if (p->failed || !f)
		return (struct item){ 0 };
	f->l = arg_term(p, pos, &path);
	return of_formula(f, 1);
}

static struct item parse_seq(struct parser *p)
{
	struct rl_formula *f = rl_formula_new(p, RL_SEQ, p->tok.pos);
	const struct rl_formula **seq = NULL;

	rl_next(p);
	rl_expect(p, '(', "after `seq`");
	do {
		if (p->failed || !f)
			return (struct item){ 0 };
		seq = rl_grow(p, seq, f->n_seq, sizeof *seq);
		if (!p->failed)
			seq[f->n_seq++] = rl_parse_event(p);
	} while (rl_take(p, ';'));
	rl_expect(p, ')', "after the events");
	if (p->failed)
		return (struct item){ 0 };
	f->seq = seq;
	return of_formula(f, 1);
}

/* `user` and `confirm` may be arguments too: what follows tells. */
static bool used_as_value(const struct parser *p)
{
	static const char *const after[] = { "in", "contains", "under", "outside" };
	const char *s = p->at;

	while (s < p->end && (*s == ' ' || *s == '\t'))
		s++;
	if (s < p->end && strchr("=!<>~.[+-*", *s))
		return true;
	for (size_t i = 0; i < 4; i++) {
		size_t n = strlen(after[i]);

		if ((size_t)(p->end - s) > n && !strncmp(s, after[i], n) && strchr(" \t\n{", s[n]))
			return true;
	}
	return false;
}

static struct item parse_word(struct parser *p)
{
	static const struct { const char *word; enum rl_op op; } prefixes[] = {
		{ "not", RL_NOT }, { "once", RL_ONCE }, { "historically", RL_HIST }, { "previously", RL_PREV },
	};
	enum rl_event e;

	for (size_t i = 0; i < 4; i++)
		if (rl_is_word(p, prefixes[i].word))
			return parse_prefix(p, prefixes[i].op);
	if (rl_is_word(p, "all") || rl_is_word(p, "any"))
		return parse_quantifier(p, rl_is_word(p, "all") ? RL_ALL : RL_ANY);
	if (rl_is_word(p, "present") && next_is(p, '('))
		return parse_present(p);
	if (rl_is_word(p, "seq") && next_is(p, '('))
		return parse_seq(p);
	if (event_kind(p, &e) && !(e < RL_EV_CALL && used_as_value(p)))
		return of_formula((struct rl_formula *)rl_parse_event(p), 1);
	return of_term(parse_word_term(p), 1);
}

static struct item parse_constant(struct parser *p, struct rl_pos pos)
{
	struct json v, *value;
	struct rl_term *t;

	if (!rl_literal(p, &v))
		return (struct item){ 0 };
	t = term_new(p, RL_T_CONST, pos);
	value = rl_get(p, 1, sizeof *value);
	if (p->failed || !t || !value)
		return (struct item){ 0 };
	*value = v;
	t->value = value;
	return of_term(t, 1);
}

static bool at_reserved(const struct parser *p)
{
	static const char *const words[] = { "and", "or", "since", "unless", "where", "because", "fix", "within", "in", "contains", "under", "outside", "forall", "rule", "test", "after" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (rl_is_word(p, words[i]))
			return true;
	return false;
}

/* true and false alone are conditions; beside a comparison they are values. */
static struct item parse_truth(struct parser *p)
{
	struct rl_pos pos = p->tok.pos;
	bool is = rl_is_word(p, "true");

	if (used_as_value(p))
		return parse_constant(p, pos);
	rl_next(p);
	return of_formula(rl_formula_new(p, is ? RL_TRUE : RL_FALSE, pos), 1);
}

static struct item parse_atom(struct parser *p)
{
	struct rl_pos pos = p->tok.pos;
	struct item i = { 0 };
	char got[80];

	if (rl_take(p, '(')) {
		i = parse(p, BP_OR);
		rl_expect(p, ')', "after what stands in brackets");
		return i;
	}
	if (rl_take(p, '{'))
		return of_term(parse_set(p, pos), 1);
	if (rl_is_word(p, "true") || rl_is_word(p, "false"))
		return parse_truth(p);
	if (p->tok.kind == TK_STRING || p->tok.kind == TK_NUMBER || rl_is(p, '-') || rl_is_word(p, "null"))
		i = parse_constant(p, pos);
	else if (p->tok.kind == TK_NAME && !at_reserved(p))
		return parse_word(p);
	if (!p->failed && !i.t)
		rl_fail(p, pos, "expected a condition or a value, got %s", rl_show_token(p, got, sizeof got));
	return i;
}

/* ---- operators ---- */

struct infix {
	int bp;
	int op;       /* rl_op, or rl_term_kind of arithmetic */
	bool negated; /* not in */
};

static bool comparison(const struct parser *p, int *ret)
{
	static const struct { int op; enum rl_op is; } signs[] = {
		{ RL_TWO('=', '='), RL_EQ }, { RL_TWO('!', '='), RL_NE }, { '<', RL_LT }, { RL_TWO('<', '='), RL_LE },
		{ '>', RL_GT }, { RL_TWO('>', '='), RL_GE }, { '~', RL_MATCHES },
	};
	static const struct { const char *word; enum rl_op is; } words[] = {
		{ "in", RL_IN }, { "contains", RL_CONTAINS }, { "under", RL_UNDER }, { "outside", RL_OUTSIDE },
	};

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (rl_is(p, signs[i].op)) {
			*ret = (int)signs[i].is;
			return true;
		}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (rl_is_word(p, words[i].word)) {
			*ret = (int)words[i].is;
			return true;
		}
	return false;
}

static bool infix_here(const struct parser *p, struct infix *ret)
{
	*ret = (struct infix){ 0 };
	if (rl_is_word(p, "or"))
		*ret = (struct infix){ BP_OR, RL_OR, false };
	else if (rl_is_word(p, "and"))
		*ret = (struct infix){ BP_AND, RL_AND, false };
	else if (rl_is_word(p, "since"))
		*ret = (struct infix){ BP_SINCE, RL_SINCE, false };
	else if (rl_is_word(p, "not")) /* behind a value: `not in` */
		*ret = (struct infix){ BP_COMPARE, RL_IN, true };
	else if (comparison(p, &ret->op))
		ret->bp = BP_COMPARE;
	else if (rl_is(p, '+') || rl_is(p, '-'))
		*ret = (struct infix){ BP_ADD, rl_is(p, '+') ? RL_T_ADD : RL_T_SUB, false };
	else if (rl_is(p, '*'))
		*ret = (struct infix){ BP_MUL, RL_T_MUL, false };
	return ret->bp != 0;
}

static struct item arithmetic(struct parser *p, const struct item *left, const struct infix *in)
{
	struct rl_term *t = term_new(p, (enum rl_term_kind)in->op, left->pos);
	struct item right;

	if (!want_term(p, left))
		return (struct item){ 0 };
	rl_next(p);
	right = parse(p, in->bp + 1);
	if (!want_term(p, &right))
		return (struct item){ 0 };
	t->a = left->t;
	t->b = right.t;
	return of_term(t, deeper(p, left, &right));
}

static struct item compare(struct parser *p, const struct item *left, const struct infix *in)
{
	struct rl_formula *f = rl_formula_new(p, (enum rl_op)in->op, left->pos), *not;
	struct item right = { 0 };
	int again;

	if (!want_term(p, left))
		return (struct item){ 0 };
	f->l = left->t;
	rl_next(p);
	if (in->negated)
		rl_expect_word(p, "in", "after `not`");
	if (in->op == RL_MATCHES) {
		f->pattern = parse_pattern(p);
	} else {
		/* Behind a comparison true and false are values. */
		right = rl_is_word(p, "true") || rl_is_word(p, "false") ? parse_constant(p, p->tok.pos) : parse(p, BP_ADD);
		f->r = want_term(p, &right);
	}
	if (!p->failed && comparison(p, &again))
		rl_fail(p, p->tok.pos, "two comparisons in a row; join them with `and`");
	if (p->failed)
		return (struct item){ 0 };
	if (!in->negated)
		return of_formula(f, deeper(p, left, &right));
	not = rl_formula_new(p, RL_NOT, f->pos);
	if (!not)
		return (struct item){ 0 };
	not->a = f;
	return of_formula(not, deeper(p, left, &right));
}

static struct item since(struct parser *p, const struct item *left)
{
	struct rl_formula *f = rl_formula_new(p, RL_SINCE, left->pos);
	struct item right;

	if (!want_formula(p, left))
		return (struct item){ 0 };
	rl_next(p);
	right = parse(p, BP_SINCE + 1);
	if (!want_formula(p, &right))
		return (struct item){ 0 };
	f->a = left->f;
	f->b = right.f;
	return of_formula(f, deeper(p, left, &right));
}

static struct rl_formula *balanced(struct parser *p, enum rl_op op, struct rl_formula **v, uint32_t n)
{
	struct rl_formula *f;

	if (n == 1)
		return v[0];
	f = rl_formula_new(p, op, v[0]->pos);
	if (!f)
		return NULL;
	f->a = balanced(p, op, v, (n + 1) / 2);
	f->b = balanced(p, op, v + (n + 1) / 2, n / 2);
	return f;
}

/* left op b op c ...: the whole chain at once. */
static struct item chain(struct parser *p, const struct item *left, const struct infix *in)
{
	const char *word = in->op == RL_OR ? "or" : "and";
	struct rl_formula **v = rl_grow(p, NULL, 0, sizeof *v);
	struct item deepest = *left;
	uint32_t n = 1;

	if (!want_formula(p, left))
		return (struct item){ 0 };
	v[0] = left->f;
	while (rl_take_word(p, word)) {
		struct item next = parse(p, in->bp + 1);

		v = rl_grow(p, v, n, sizeof *v);
		if (!want_formula(p, &next))
			return (struct item){ 0 };
		v[n++] = next.f;
		if (next.depth > deepest.depth)
			deepest = next;
	}
	if (p->failed)
		return (struct item){ 0 };
	return of_formula(balanced(p, (enum rl_op)in->op, v, n), deeper(p, left, &deepest));
}

static struct item parse(struct parser *p, int least)
{
	struct item left = { 0 };
	struct infix in;

	if (!rl_enter(p))
		return left;
	left = parse_atom(p);
	/* A word in front of a comparison takes all of it; what begins with a condition ends before. */
	while (!p->failed && infix_here(p, &in) && in.bp >= least) {
		if (in.bp == BP_SINCE)
			left = since(p, &left);
		else if (in.bp < BP_SINCE)
			left = chain(p, &left, &in);
		else if (in.bp == BP_COMPARE)
			left = compare(p, &left, &in);
		else
			left = arithmetic(p, &left, &in);
	}
	rl_leave(p);
	return left;
}

const struct rl_formula *rl_parse_formula(struct parser *p)
{
	struct item i = parse(p, BP_OR);

	return want_formula(p, &i);
}
