/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - the tree, in the order in which it would run.
 *
 * A branch is left out only if a constant rules it out.  Where two ways meet, what they disagree on is not known. */
#include "shell/walk.h"

#include <string.h>

static const struct arg nowhere;

bool too_much(struct walk *w, const struct arg *a)
{
	work(w, WORK_COMMAND);
	if (!w->spent && w->depth <= SHW_DEPTH)
		return false;
	if (!w->spent)
		uncertain(w, a, "commands within commands, more than %d deep", SHW_DEPTH);
	return true;
}

static struct value join_output(struct walk *w, struct value a, struct value b)
{
	if (!a.known || !b.known || a.packed || b.packed)
		return a.known && !a.packed && a.len == 0 ? b : value_unknown();
	if (!b.len)
		return a;
	return value_join(w, &a, &b);
}

static struct outcome walk_sequence(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct outcome o = { .status = 0, .out = value_of(w, "", 0) };

	for (; c && !w->spent; c = c->next) {
		struct outcome one = walk_command(w, s, c, in);

		o.out = join_output(w, o.out, one.out);
		o.status = one.status;
		if (one.stops) {
			o.stops = true;
			break;
		}
	}
	return o;
}

static bool is_cd(const struct sh_command *c)
{
	return c->kind == SH_SIMPLE && c->words && c->words->parts && c->words->parts->kind == SH_LIT && !c->words->parts->next && !strcmp(c->words->parts->text, "cd");
}

static struct outcome walk_and_or(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	int runs = c->kind == SH_AND ? 0 : 1;
	const struct sh_command *prev = c->child;
	struct outcome o = c->child ? walk_command(w, s, c->child, in) : (struct outcome){ .status = -1 };

	for (const struct sh_command *x = c->child ? c->child->next : NULL; x; x = x->next) {
		struct outcome b;

		if (o.stops || (o.status >= 0 && o.status != runs))
			return o;
		if (o.status < 0 && c->kind == SH_AND) { /* each runs only if all before it did */
			struct state other = state_copy(w, s);

			for (; x && !o.stops; prev = x, x = x->next) {
				if (is_cd(prev))
					other.also = NULL;
				o = walk_command(w, &other, x, in);
				state_join(w, s, &other);
			}
			return (struct outcome){ .status = -1 };
		}
		if (o.status < 0) { /* it may run, or not */
			struct state other = state_copy(w, s);

			(void)walk_command(w, &other, x, in);
			state_join(w, s, &other);
			o = (struct outcome){ .status = -1 };
			continue;
		}
		prev = x;
		b = walk_command(w, s, x, in);
		b.out = join_output(w, o.out, b.out);
		o = b;
	}
	return o;
}

static struct outcome walk_pipe(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct outcome o = { .status = -1 };
	struct value between = in ? *in : value_unknown();
	bool piped = in != NULL, was_piped = w->piped;

	for (const struct sh_command *x = c->child; x; x = x->next) {
		struct state sub = state_copy(w, s);

		if (x->next)
			w->piped = true;
		o = walk_command(w, &sub, x, piped ? &between : NULL);
		w->piped = was_piped;
		between = o.out;
		piped = true;
		/* What it wrote to files stays. */
		s->files = sub.files;
	}
	o.stops = false;
	o.status = -1; /* pipefail */
	return o;
}

static struct outcome walk_if(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct state before;
	struct outcome o;
	bool some = false;

	for (const struct sh_command *x = c->child; x; x = x->next ? x->next->next : NULL) {
		struct outcome cond;

		if (!x->next) { /* else */
			before = state_copy(w, s);
			o = walk_command(w, &before, x, in);
			if (some) {
				state_join(w, s, &before);
				break;
			}
			*s = before;
			return o;
		}
		cond = walk_command(w, s, x, in);
		if (cond.stops)
			return cond;
		if (cond.status == 1)
			continue;
		before = state_copy(w, s);
		o = walk_command(w, &before, x->next, in);
		if (cond.status == 0 && !some) {
			*s = before;
			return o;
		}
		state_join(w, s, &before);
		some = true;
		if (cond.status == 0)
			break;
	}
	return (struct outcome){ .status = -1 };
}

/* Names that a body gives values to: after one round they are not what they were. */
static void forget_assigned(struct walk *w, struct state *s, const struct sh_command *c)
{
	for (; c && !w->spent; c = c->next) {
		work(w, 1);
		for (const struct sh_assign *a = c->assigns; a; a = a->next)
			var_forget(w, s, a->name);
		if (c->kind == SH_FOR || c->kind == SH_SELECT)
			var_forget(w, s, c->name);
		/* read, mapfile, printf -v, declare, let: whatever is a word of theirs could be a name. */
		for (const struct sh_word *x = c->words; x; x = x->next)
			if (x->parts && x->parts->kind == SH_LIT && !x->parts->next && var_find(s, x->parts->text))
				var_forget(w, s, x->parts->text);
		forget_assigned(w, s, c->child);
		for (const struct sh_case_item *i = c->items; i; i = i->next)
			forget_assigned(w, s, i->body);
	}
}

static struct outcome walk_loop(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	const struct sh_command *cond = c->child, *body = cond ? cond->next : NULL;
	struct state round = state_copy(w, s);
	struct outcome o = cond ? walk_command(w, &round, cond, in) : (struct outcome){ .status = -1 };

	if (o.stops || (o.status >= 0 && o.status == (c->kind == SH_WHILE ? 1 : 0))) {
		*s = round;
		return (struct outcome){ .status = 0 };
	}
	if (o.status >= 0)
		uncertain(w, &(struct arg){ PLACE(w, c) }, "a loop that need not end");
	if (body)
		(void)walk_command(w, &round, body, in);
	/* Any later round. */
	forget_assigned(w, s, c->child);
	round = state_copy(w, s);
	if (cond)
		(void)walk_command(w, &round, cond, NULL);
	if (body)
		(void)walk_command(w, &round, body, NULL);
	state_join(w, s, &round);
	return (struct outcome){ .status = -1 };
}

static struct outcome walk_for(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	enum { ROUNDS = 64 };
	struct args words = { 0 };
	bool all = c->has_in;

	for (const struct sh_word *x = c->words; x; x = x->next)
		expand_word(w, s, x, &words);
	for (size_t i = 0; i < words.n; i++)
		all &= words.v[i].known == SH_LITERAL;
	if (words.vanished || words.endless)
		uncertain(w, &(struct arg){ PLACE(w, c) }, "how often this runs depends on a variable or a substitution");
	look_at_variable(w, s, c->name, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, PLACE(w, c) });
	if (all && !words.endless && words.n <= ROUNDS) {
		/* Every word is known: one round each, as it would run. */
		struct outcome o = { .status = 0, .out = value_unknown() };

		for (size_t i = 0; i < words.n && c->child; i++) {
			var_set(w, s, c->name, value_of(w, words.v[i].text, strlen(words.v[i].text)));
			o = walk_command(w, s, c->child, in);
			if (o.stops)
				break;
		}
		o.out = value_unknown();
		o.stops = false;
		o.status = -1;
		return o;
	}
	forget_assigned(w, s, c->child);
	var_forget(w, s, c->name);
	{
		struct state round = state_copy(w, s);

		if (c->child)
			(void)walk_command(w, &round, c->child, in);
		state_join(w, s, &round);
	}
	return (struct outcome){ .status = -1 };
}

static struct outcome walk_case(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct arg subject = c->words ? expand_one(w, s, c->words) : nowhere;
	bool sure = subject.known == SH_LITERAL;

	if (subject.followed)
		uncertain(w, &subject, "which branch is taken depends on a variable or a substitution");
	for (const struct sh_case_item *i = c->items; i && !w->spent; i = i->next) {
		bool matches = false, maybe = !sure;
		struct state branch;

		for (const struct sh_word *p = i->patterns; p; p = p->next) {
			struct arg a = expand_one(w, s, p);

			/* What a pattern matches depends on the locale and on options: only the plainest are certain. */
			if (sure && a.known == SH_PATTERN && !strcmp(a.text, "*") && !a.followed)
				matches = true;
			else if (!sure || a.known != SH_LITERAL || a.followed)
				maybe = true;
			else
				matches |= !strcmp(a.text, subject.text);
		}
		if (!matches && !maybe)
			continue;
		branch = state_copy(w, s);
		if (i->body)
			(void)walk_command(w, &branch, i->body, in);
		state_join(w, s, &branch);
		if (matches && i->end == ';')
			break;
		sure &= i->end == ';'; /* falls through: what follows may run */
	}
	return (struct outcome){ .status = -1 };
}

/* -v NAME: a subscript would be evaluated. */
static void doubt_name(struct walk *w, struct state *s, const struct sh_word *x)
{
	struct arg a = expand_one(w, s, x);

	if (a.known != SH_LITERAL || a.followed || strchr(a.text, '['))
		uncertain(w, &a, "an index is evaluated as arithmetic");
	if (a.known == SH_LITERAL)
		scan_arithmetic(w, s, a.text + strcspn(a.text, "["), a.at, a.len);
}

static void walk_condition(struct walk *w, struct state *s, const struct sh_command *c)
{
	static const char *const numeric[] = { "-eq", "-ne", "-lt", "-le", "-gt", "-ge" };
	const struct sh_word *prev = NULL;

	for (const struct sh_word *x = c->words; x && !w->spent; prev = x, x = x->next) {
		struct arg a = expand_one(w, s, x);
		bool arithmetic = false;

		for (size_t i = 0; i < sizeof numeric / sizeof *numeric; i++)
			arithmetic |= a.known == SH_LITERAL && !strcmp(a.text, numeric[i]);
		if (a.known == SH_LITERAL && !strcmp(a.text, "-v") && x->next)
			doubt_name(w, s, x->next);
		if (!arithmetic)
			continue;
		for (int k = 0; k < 2; k++) { /* both sides are evaluated */
			const struct sh_word *side = k ? x->next : prev;
			struct arg v = side ? expand_one(w, s, side) : nowhere;

			if (v.known == SH_LITERAL && v.text)
				scan_arithmetic(w, s, v.text, c->place.at, c->place.len);
			else if (side)
				uncertain(w, &v, "a value that is not known here is evaluated as arithmetic");
		}
	}
}

static struct outcome walk_kind(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct state sub;
	struct outcome o = { .status = -1 };
	struct function *f;

	switch (c->kind) {
	case SH_SIMPLE:
		return walk_simple(w, s, c, in);
	case SH_PIPE:
		return walk_pipe(w, s, c, in);
	case SH_AND:
	case SH_OR:
		return walk_and_or(w, s, c, in);
	case SH_SEQUENCE:
	case SH_GROUP:
		return walk_sequence(w, s, c->child, in);
	case SH_BACKGROUND:
	case SH_SUBSHELL:
	case SH_COPROC:
		sub = state_copy(w, s);
		o = walk_sequence(w, &sub, c->child, in);
		s->files = sub.files;
		o.stops = false;
		o.status = -1; /* an error in it ends it */
		if (c->kind != SH_SUBSHELL) {
			uncertain(w, &(struct arg){ PLACE(w, c) }, "what runs in the background may outlive the command");
			o = (struct outcome){ .status = -1 };
		}
		return o;
	case SH_NOT:
		o = c->child ? walk_command(w, s, c->child, in) : o;
		o.status = o.status < 0 ? -1 : !o.status;
		return o;
	case SH_TIME:
		return c->child ? walk_command(w, s, c->child, in) : o;
	case SH_IF:
		return walk_if(w, s, c, in);
	case SH_WHILE:
	case SH_UNTIL:
		return walk_loop(w, s, c, in);
	case SH_FOR:
	case SH_SELECT:
		return walk_for(w, s, c, in);
	case SH_FOR_ARITH:
		forget_assigned(w, s, c->child);
		for (const struct sh_word *x = c->words; x; x = x->next)
			scan_word(w, s, x);
		uncertain(w, &(struct arg){ PLACE(w, c) }, "a loop by arithmetic");
		return c->child ? walk_command(w, s, c->child, in) : o;
	case SH_CASE:
		return walk_case(w, s, c, in);
	case SH_FUNCTION:
		if (++w->n_functions > SHW_NAMES) {
			uncertain(w, &(struct arg){ PLACE(w, c) }, "more than %d functions", SHW_NAMES);
			s->umbrella = "not all functions are followed";
			return o;
		}
		if (!strcmp(c->name, "command_not_found_handle")) { /* whichever command that is */
			struct state later = state_copy(w, s);

			uncertain(w, &(struct arg){ PLACE(w, c) }, "%s runs when a command is not there", c->name);
			(void)walk_command(w, &later, c->child, NULL);
		}
		if (function_find(s, c->name)) /* it may not be possible to take its place */
			s->shadowed = true;
		f = keep_bytes(w->mem, sizeof *f);
		*f = (struct function){ .next = s->functions, .name = c->name, .hash = hash_text(0, c->name), .body = c->child, .nested = w->nested, .at = w->at, .len = w->len };
		s->functions = f;
		return (struct outcome){ .status = 0, .out = value_of(w, "", 0) };
	case SH_CONDITION:
		walk_condition(w, s, c);
		return o;
	case SH_ARITHMETIC:
		for (const struct sh_word *x = c->words; x; x = x->next)
			scan_word(w, s, x);
		scan_arithmetic(w, s, c->text, c->place.at, c->place.len);
		return o;
	}
	return o;
}

struct outcome walk_command(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct plumbing p = { 0 };
	struct outcome o = { .status = -1 };

	if (too_much(w, &(struct arg){ PLACE(w, c) }))
		return o;
	if (c->kind == SH_SIMPLE)
		return walk_simple(w, s, c, in);
	w->depth++;
	plumb(w, s, c->redirects, &p);
	o = walk_kind(w, s, c, p.has_in ? &p.in : in);
	if (c->redirects && c->kind != SH_FUNCTION)
		o.status = -1, o.stops = false;
	drain(w, s, &p, &o);
	w->depth--;
	return o;
}

struct outcome walk_script(struct walk *w, struct state *s, const struct sh_script *script, const struct value *in)
{
	struct outcome o = { .status = 0, .out = value_of(w, "", 0) };

	if (!script || !script->first)
		return o;
	w->depth++;
	o = walk_sequence(w, s, script->first, in);
	w->depth--;
	return o;
}

struct outcome walk_text(struct walk *w, struct state *s, const char *text, size_t len, uint32_t at, uint32_t at_len, const struct value *in)
{
	const struct { bool nested; uint32_t at, len; } saved = { w->nested, w->at, w->len };
	struct arg place = { .at = w->nested ? w->at : at, .len = w->nested ? w->len : at_len };
	struct outcome o = { .status = -1 };
	struct sh_script *script = NULL;
	struct cs_err err = { 0 };
	uint32_t where;

	if (too_much(w, &place))
		return o;
	work(w, WORK_PARSE + len / 8);
	if (w->spent)
		return o;
	if (sh_parse(text, len, &script, &where, &err) < 0) {
		uncertain(w, &place, "text that a shell would run cannot be read: %s", err.msg);
		return o;
	}
	w->nested = true;
	w->at = place.at;
	w->len = place.len;
	o = walk_script(w, s, script, in);
	/* Functions that were defined there would point into it: it stays until the end. */
	script_keep(w, script);
	w->nested = saved.nested;
	w->at = saved.at;
	w->len = saved.len;
	return o;
}
