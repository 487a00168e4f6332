/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c - expressions, three-valued ones, and JSON values as records of them. */
#include "prove/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Once the arena is over its maximum nothing means anything, and whoever asks the solver looks first. */
static const char none[] = "false";

ex x(struct enc *e, const char *fmt, ...)
{
	va_list ap;
	int n;
	char *to;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	to = n < 0 ? NULL : cs_arena_get(&e->arena, 1, (size_t)n + 1);
	if (!to)
		return none;
	va_start(ap, fmt);
	vsnprintf(to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return to;
}

ex x_not(struct enc *e, ex a)
{
	return x_true(a) ? "false" : x_false(a) ? "true" : x(e, "(not %s)", a);
}

ex x_and(struct enc *e, ex a, ex b)
{
	if (x_false(a) || x_false(b))
		return "false";
	return x_true(a) ? b : x_true(b) ? a : x(e, "(and %s %s)", a, b);
}

ex x_or(struct enc *e, ex a, ex b)
{
	if (x_true(a) || x_true(b))
		return "true";
	return x_false(a) ? b : x_false(b) ? a : x(e, "(or %s %s)", a, b);
}

ex x_ite(struct enc *e, ex c, ex a, ex b)
{
	if (x_true(c) || !strcmp(a, b))
		return a;
	return x_false(c) ? b : x(e, "(ite %s %s %s)", c, a, b);
}

ex x_name(struct enc *e, const char *sort, ex value)
{
	ex name;

	if (strlen(value) < 16)
		return value;
	name = x(e, "d%u", e->fresh++);
	cs_buf_fmt(e->out, "(define-fun %s () %s %s)\n", name, sort, value);
	return name;
}

ex x_fresh(struct enc *e, const char *sort, const char *hint)
{
	ex name = x(e, "%s%u", hint, e->fresh++);

	cs_buf_fmt(e->out, "(declare-const %s %s)\n", name, sort);
	return name;
}

void x_assert(struct enc *e, ex fact)
{
	if (!x_true(fact))
		cs_buf_fmt(e->out, "(assert %s)\n", fact);
}

/* ---- three values ---- */

struct tv tv_of(struct enc *e, ex known, ex value)
{
	known = x_name(e, "Bool", known);
	value = x_name(e, "Bool", value);
	return (struct tv){ .t = x_and(e, known, value), .f = x_and(e, known, x_not(e, value)) };
}

struct tv tv_not(struct tv a)
{
	return (struct tv){ .t = a.f, .f = a.t };
}

static struct tv named(struct enc *e, ex t, ex f)
{
	return (struct tv){ .t = x_name(e, "Bool", t), .f = x_name(e, "Bool", f) };
}

struct tv tv_and(struct enc *e, struct tv a, struct tv b)
{
	return named(e, x_and(e, a.t, b.t), x_or(e, a.f, b.f));
}

struct tv tv_or(struct enc *e, struct tv a, struct tv b)
{
	return named(e, x_or(e, a.t, b.t), x_and(e, a.f, b.f));
}

struct tv tv_free(struct enc *e)
{
	return tv_of(e, x_fresh(e, "Bool", "u"), x_fresh(e, "Bool", "u"));
}

/* ---- values ---- */

static bool single(unsigned mask)
{
	return mask && !(mask & (mask - 1));
}

ex val_is(struct enc *e, const struct val *v, unsigned type)
{
	if (!(v->mask & type))
		return "false";
	return v->tag ? x(e, "(= %s %u)", v->tag, type) : "true";
}

static ex tag_of(struct enc *e, const struct val *v)
{
	return v->tag ? v->tag : x(e, "%u", v->mask);
}

/* "3", "-2.5e3": SMT-LIB has neither a sign nor an exponent. */
static ex number(struct enc *e, const struct json *j, bool *ret_whole)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(2048);
	const char *digits, *mark;
	size_t n;
	long exponent;
	int64_t i;

	*ret_whole = json_int(j, &i);
	if (*ret_whole)
		return i < 0 ? x(e, "(- %llu)", -(unsigned long long)i) : x(e, "%lld", (long long)i);
	digits = j->s + (j->s[0] == '-');
	n = strcspn(digits, "eE");
	mark = memchr(digits, '.', n);
	exponent = digits[n] ? strtol(digits + n + 1, NULL, 10) : 0;
	if (n > 300 || exponent > 300 || exponent < -300)
		return x_fresh(e, "Real", "n"); /* nobody means it: any number */
	cs_buf_fmt(&b, "%s(%s %.*s%s 1", j->s[0] == '-' ? "(- " : "", exponent < 0 ? "/" : "*", (int)n, digits, mark ? "" : ".0");
	for (long k = exponent < 0 ? -exponent : exponent; k > 0; k--)
		cs_buf_char(&b, '0');
	cs_buf_fmt(&b, ".0)%s", j->s[0] == '-' ? ")" : "");
	return x(e, "%s", cs_buf_text(&b));
}

static ex thing(struct enc *e, const struct json *j)
{
	uint32_t i = 0;

	while (i < e->n_things && !json_equal(e->things[i], j))
		i++;
	if (i == e->n_things) {
		if (i == e->cap_things) {
			uint32_t cap = i ? i * 2 : 8;
			const struct json **more = cs_arena_get(&e->arena, cap, sizeof *more);

			if (!more)
				return none;
			if (i)
				memcpy(more, e->things, i * sizeof *more);
			e->things = more;
			e->cap_things = cap;
		}
		e->things[e->n_things++] = j;
		cs_buf_fmt(e->out, "(declare-const o%u O)\n", i);
		for (uint32_t k = 0; k < i; k++)
			cs_buf_fmt(e->out, "(assert (not (= o%u o%u)))\n", k, i);
	}
	return x(e, "o%u", i);
}

struct val val_const(struct enc *e, const struct json *j)
{
	struct val v = { .p = "true" };

	if (!j)
		return val_absent();
	switch ((enum json_type)j->type) {
	case JSON_NULL:
		v.mask = T_NULL;
		break;
	case JSON_BOOL:
		v.mask = T_BOOL;
		v.b = j->b ? "true" : "false";
		break;
	case JSON_NUMBER:
		v.mask = T_NUM;
		v.n = number(e, j, &v.whole);
		break;
	case JSON_STRING:
		v.mask = T_STR;
		v.s = word_of(e, j->s, j->n);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		v.mask = j->type == JSON_ARRAY ? T_ARR : T_OBJ;
		v.o = thing(e, j);
		break;
	}
	return v;
}

struct val val_absent(void)
{
	return (struct val){ .mask = 0, .p = "false" };
}

struct val val_num(ex n, bool whole)
{
	return (struct val){ .mask = T_NUM, .p = "true", .n = n, .whole = whole };
}

struct val val_free(struct enc *e, unsigned mask, bool whole, bool always)
{
	struct val v = { .mask = mask, .whole = whole };

	if (!mask)
		return val_absent();
	v.p = always ? "true" : x_fresh(e, "Bool", "p");
	if (!single(mask)) {
		ex one = "false";

		v.tag = x_fresh(e, "Int", "g");
		for (unsigned bit = T_NULL; bit <= T_OBJ; bit <<= 1)
			if (mask & bit)
				one = x_or(e, one, x(e, "(= %s %u)", v.tag, bit));
		x_assert(e, one);
	}
	if (mask & T_STR) {
		v.s = x_fresh(e, "S", "s");
		words_constrain(e, v.s);
	}
	if (mask & T_NUM)
		v.n = x_fresh(e, whole ? "Int" : "Real", "n");
	if (mask & T_BOOL)
		v.b = x_fresh(e, "Bool", "b");
	if (mask & (T_ARR | T_OBJ))
		v.o = x_fresh(e, "O", "o_");
	return v;
}

static ex real(struct enc *e, const struct val *v)
{
	return v->whole ? x(e, "(to_real %s)", v->n) : v->n;
}

static ex either(struct enc *e, ex c, ex a, ex b)
{
	return a && b ? x_ite(e, c, a, b) : a ? a : b;
}

struct val val_ite(struct enc *e, ex c, const struct val *a, const struct val *b)
{
	struct val v = { .mask = a->mask | b->mask, .p = x_ite(e, c, a->p, b->p) };

	if (!a->mask || !b->mask) { /* one of them is nothing at all */
		v = a->mask ? *a : *b;
		v.p = x_ite(e, c, a->p, b->p);
		return v;
	}
	if (!single(v.mask))
		v.tag = x_ite(e, c, tag_of(e, a), tag_of(e, b));
	v.s = either(e, c, a->s, b->s);
	v.b = either(e, c, a->b, b->b);
	v.o = either(e, c, a->o, b->o);
	v.whole = (!a->n || a->whole) && (!b->n || b->whole);
	if (a->n && b->n && a->whole != b->whole)
		v.n = x_ite(e, c, real(e, a), real(e, b));
	else
		v.n = either(e, c, a->n, b->n);
	return v;
}

struct val val_named(struct enc *e, const struct val *v)
{
	struct val r = *v;

	r.p = x_name(e, "Bool", v->p);
	if (v->tag)
		r.tag = x_name(e, "Int", v->tag);
	if (v->s)
		r.s = x_name(e, "S", v->s);
	if (v->n)
		r.n = x_name(e, v->whole ? "Int" : "Real", v->n);
	if (v->b)
		r.b = x_name(e, "Bool", v->b);
	if (v->o)
		r.o = x_name(e, "O", v->o);
	return r;
}

static ex same(struct enc *e, ex a, ex b)
{
	return !strcmp(a, b) ? "true" : x(e, "(= %s %s)", a, b);
}

static ex same_number(struct enc *e, const struct val *a, const struct val *b)
{
	return a->whole == b->whole ? same(e, a->n, b->n) : same(e, real(e, a), real(e, b));
}

ex val_equal(struct enc *e, const struct val *a, const struct val *b)
{
	ex any = "false";

	for (unsigned bit = T_NULL; bit <= T_OBJ; bit <<= 1) {
		ex both;

		if (!(a->mask & b->mask & bit))
			continue;
		both = x_and(e, val_is(e, a, bit), val_is(e, b, bit));
		switch (bit) {
		case T_NULL: break;
		case T_BOOL: both = x_and(e, both, same(e, a->b, b->b)); break;
		case T_NUM: both = x_and(e, both, same_number(e, a, b)); break;
		case T_STR: both = x_and(e, both, same(e, a->s, b->s)); break;
		default: both = x_and(e, both, same(e, a->o, b->o)); break;
		}
		any = x_or(e, any, both);
	}
	return any;
}

ex val_compare(struct enc *e, const char *op, const struct val *a, const struct val *b)
{
	if (a->whole == b->whole)
		return x(e, "(%s %s %s)", op, a->n, b->n);
	return x(e, "(%s %s %s)", op, real(e, a), real(e, b));
}

/* ---- the memo ---- */

struct memo {
	struct memo *next;
	const void *thing;
	int at, binding;
	struct tv value;
};
enum { MEMO_BUCKETS = 4096 };

static struct memo **bucket(struct enc *e, const void *what, int at, int binding)
{
	uint64_t h = ((uint64_t)(uintptr_t)what >> 4) * 0x9e3779b97f4a7c15u + (uint64_t)(at + 1) * 0xff51afd7ed558ccdu +
		     (uint64_t)(binding + 1) * 0xc4ceb9fe1a85ec53u;

	if (!e->memo)
		e->memo = cs_arena_get(&e->arena, MEMO_BUCKETS, sizeof(struct memo));
	return e->memo ? &e->memo[(h >> 40) % MEMO_BUCKETS].next : NULL;
}

const struct tv *memo_get(struct enc *e, const void *what, int at, int binding)
{
	struct memo **b = bucket(e, what, at, binding);

	for (const struct memo *m = b ? *b : NULL; m; m = m->next)
		if (m->thing == what && m->at == at && m->binding == binding)
			return &m->value;
	return NULL;
}

struct tv memo_put(struct enc *e, const void *what, int at, int binding, struct tv value)
{
	struct memo **b = bucket(e, what, at, binding), *m = cs_arena_new(&e->arena, struct memo);

	if (!b || !m)
		return value;
	*m = (struct memo){ .next = *b, .thing = what, .at = at, .binding = binding, .value = value };
	*b = m;
	return value;
}
