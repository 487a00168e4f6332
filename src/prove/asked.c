/* SPDX-License-Identifier: Apache-2.0 */
/* asked.c - what only the host knows (provenance, shell classes, the session), and
 * what has no encoding: free variables, the same one wherever the same is asked of
 * the same call.  The key is the text of what is asked, so that two versions of a
 * file share it. */
#include "prove/internal.h"

#include <string.h>

/* ---- keys ---- */

static void key_formula(struct cs_buf *b, const struct rl_formula *f);

static void key_path(struct cs_buf *b, const struct rl_step *steps, uint32_t n);

static void key_call(struct cs_buf *b, const struct rl_call *c)
{
	cs_buf_char(b, '(');
	for (uint32_t i = 0; i < c->tools.n; i++)
		cs_buf_fmt(b, "%u,", c->tools.ids[i]);
	for (uint32_t i = 0; i < c->n_args; i++) {
		key_path(b, c->args[i].path, c->args[i].steps);
		cs_buf_fmt(b, "=%d:%u:%s", (int)c->args[i].kind, c->args[i].var, c->args[i].pattern ? pattern_text(c->args[i].pattern) : "");
		if (c->args[i].value)
			json_write(b, c->args[i].value);
	}
	cs_buf_char(b, ')');
}

static void key_term(struct cs_buf *b, const struct rl_term *t)
{
	if (!t)
		return;
	cs_buf_fmt(b, "(%d %s %u %llu ", (int)t->kind, t->name ? t->name : "", t->var, (unsigned long long)t->within_ms);
	if (t->value)
		json_write(b, t->value);
	key_path(b, t->path, t->steps);
	if (t->call)
		key_call(b, t->call);
	key_term(b, t->a);
	key_term(b, t->b);
	key_formula(b, t->past);
	cs_buf_char(b, ')');
}

static void key_path(struct cs_buf *b, const struct rl_step *steps, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (steps[i].term)
			key_term(b, steps[i].term);
		else
			cs_buf_fmt(b, "/%s:%lld", steps[i].key ? steps[i].key : "", (long long)steps[i].index);
}

static void key_formula(struct cs_buf *b, const struct rl_formula *f)
{
	if (!f)
		return;
	cs_buf_fmt(b, "[%d %u %d %s ", (int)f->op, f->var, (int)f->event, f->pattern ? pattern_text(f->pattern) : "");
	key_term(b, f->l);
	key_term(b, f->r);
	if (f->call)
		key_call(b, f->call);
	key_formula(b, f->a);
	key_formula(b, f->b);
	key_formula(b, f->where);
	for (uint32_t i = 0; i < f->n_seq; i++)
		key_formula(b, f->seq[i]);
	cs_buf_char(b, ']');
}

/* ---- one variable for each ---- */

/* What an unknown comparison is due to, if anything is: an argument or a result that is not there. */
static bool may_be_absent(const struct rl_term *t)
{
	return t && (t->kind == RL_T_ARG || t->kind == RL_T_RESULT || t->kind == RL_T_LAST || t->kind == RL_T_SESSION);
}

static struct asked *find(const struct scope *s, enum asked_kind kind, const char *key)
{
	for (struct asked *a = s->e->asked; a; a = a->next)
		if (a->kind == kind && a->step == s->step && a->end == s->end && !strcmp(a->key, key))
			return a;
	return NULL;
}

static struct asked *add(const struct scope *s, enum asked_kind kind, const char *key)
{
	static struct asked spare;
	struct asked *a = cs_arena_new(&s->e->arena, struct asked);

	if (!a) { /* the arena is over, and nothing will be asked of the solver any more */
		spare = (struct asked){ .kind = kind, .key = "", .tv = { "false", "false" }, .val = val_absent() };
		return &spare;
	}
	*a = (struct asked){ .next = s->e->asked, .kind = kind, .key = x(s->e, "%s", key), .step = s->step, .end = s->end };
	s->e->asked = a;
	return a;
}

/* Known only where both sides are there; in a trace that is `plain`, not at all. */
static struct tv new_answer(const struct scope *s, const struct rl_formula *f)
{
	struct enc *e = s->e;
	ex known = x_fresh(e, "Bool", "u"), value = x_fresh(e, "Bool", "u");

	x_assert(e, x(e, "(not (and plain %s))", known));
	if (may_be_absent(f->l))
		known = x_and(e, known, term(s, f->l).p);
	if (may_be_absent(f->r))
		known = x_and(e, known, term(s, f->r).p);
	return tv_of(e, known, value);
}

struct tv asked_formula(const struct scope *s, const struct rl_formula *f)
{
	struct cs_buf key CS_BUF_AUTO = CS_BUF(1 << 20);
	struct asked *a;

	key_formula(&key, f);
	a = find(s, ASKED_FORMULA, cs_buf_text(&key));
	if (!a) {
		a = add(s, ASKED_FORMULA, cs_buf_text(&key));
		a->tv = new_answer(s, f);
	}
	return a->tv;
}

static struct val new_value(const struct scope *s, enum asked_kind kind)
{
	static const char *const classes[] = { "safe", "uncertain", "unsafe" };
	struct val v = val_free(s->e, kind == ASKED_SHELL ? T_STR : T_ALL, false, false);
	ex any = "false";

	if (kind != ASKED_SHELL)
		return v;
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		any = x_or(s->e, any, x(s->e, "(= %s %s)", v.s, word_of(s->e, classes[i], strlen(classes[i]))));
	x_assert(s->e, any);
	return v;
}

/* Of an argument that is absent nothing is known. */
static ex there(const struct scope *s, const struct rl_term *arg)
{
	return arg ? term(s, arg).p : "true";
}

struct val asked_term(const struct scope *s, const struct rl_term *t)
{
	enum asked_kind kind = t->kind == RL_T_SESSION ? ASKED_SESSION : t->kind == RL_T_SHELL ? ASKED_SHELL : ASKED_TERM;
	struct cs_buf key CS_BUF_AUTO = CS_BUF(1 << 20);
	struct asked *a;

	key_term(&key, t);
	a = find(s, kind, cs_buf_text(&key));
	if (!a) {
		struct val v = new_value(s, kind);

		if (kind == ASKED_SHELL)
			v.p = x_and(s->e, v.p, there(s, t->a));
		if (kind == ASKED_TERM)
			x_assert(s->e, x(s->e, "(not (and plain %s))", v.p));
		a = add(s, kind, cs_buf_text(&key));
		a->val = v;
		a->name = t->name;
		a->arg = t->a;
	}
	return a->val;
}

/* Is the class one of those that the argument comes from; NULL: is some class that no rule names? */
struct tv asked_from(const struct scope *s, const struct rl_term *from, const char *class)
{
	struct cs_buf key CS_BUF_AUTO = CS_BUF(1 << 16);
	struct cs_buf whole CS_BUF_AUTO = CS_BUF(1 << 16);
	struct asked *a, *known;

	key_term(&key, from);
	cs_buf_fmt(&whole, "%s%s%s", cs_buf_text(&key), class ? "=" : "", class ? class : "");
	a = find(s, ASKED_FROM, cs_buf_text(&whole));
	if (a)
		return a->tv;
	known = find(s, ASKED_FORMULA, cs_buf_text(&key));
	if (!known) { /* whether the host knows at all: one answer for all classes */
		known = add(s, ASKED_FORMULA, cs_buf_text(&key));
		known->tv.t = x_fresh(s->e, "Bool", "u");
		known->tv.f = "false";
	}
	a = add(s, ASKED_FROM, cs_buf_text(&whole));
	a->tv = tv_of(s->e, x_and(s->e, known->tv.t, there(s, from->a)), x_fresh(s->e, "Bool", "u"));
	a->name = class;
	a->arg = from->a;
	return a->tv;
}
