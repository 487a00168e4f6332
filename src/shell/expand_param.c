/* SPDX-License-Identifier: Apache-2.0 */
/* expand_param.c - ${x#..}, ${x/../..}, ${x:-..} and the like, of constants. */
#include "shell/walk.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { CUT_MAX = 512 }; /* every part of it is tried */

static char *match_cut(struct walk *w, const struct value *v, const char *pattern, bool front, bool longest)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i <= v->len; i++) {
		size_t cut = longest ? v->len - i : i; /* in the order that wins */
		char part[CUT_MAX + 1];

		memcpy(part, front ? v->text : v->text + v->len - cut, cut);
		part[cut] = 0;
		work(w, 1 + (cut + strlen(pattern)) / 16);
		if (w->spent)
			return NULL;
		if (fnmatch(pattern, part, 0) == 0) {
			best = cut;
			break;
		}
	}
	if (best == SIZE_MAX)
		return v->text;
	return front ? keep_text(w->mem, v->text + best, v->len - best) : keep_text(w->mem, v->text, v->len - best);
}

static char *replace(struct walk *w, const struct value *v, const char *what, const char *with, bool all)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(SHW_VALUE_MAX);
	size_t n = strlen(what);
	const char *s = v->text;

	work(w, v->len / 16);
	for (bool more = true; *s;) {
		if (n && more && !strncmp(s, what, n)) {
			cs_buf_str(&out, with);
			s += n;
			more = all;
		} else {
			cs_buf_char(&out, *s++);
		}
	}
	return out.over ? NULL : keep_text(w->mem, cs_buf_text(&out), out.len);
}

static char *change_case(struct walk *w, const struct value *v, const char *op)
{
	char *t = keep_text(w->mem, v->text, v->len);

	for (size_t i = 0; i < v->len && (i == 0 || op[1]); i++)
		t[i] = (char)(*op == '^' ? toupper((unsigned char)t[i]) : tolower((unsigned char)t[i]));
	return t;
}

/* "1", "-2": nothing else, since arithmetic could be anything. */
bool arg_number(const struct arg *a, long *ret)
{
	char *end;

	if (a->known != SH_LITERAL || !a->text || !*a->text)
		return false;
	*ret = strtol(a->text, &end, 10);
	return !*end;
}

static struct value substring(struct walk *w, struct state *s, const struct value *v, const struct sh_param *p)
{
	struct arg from = p->arg ? expand_one(w, s, p->arg) : (struct arg){ 0 };
	struct arg count = p->arg2 ? expand_one(w, s, p->arg2) : (struct arg){ 0 };
	long at = 0, n = (long)v->len;

	while (from.text && *from.text == ' ')
		from.text++;
	if (!p->arg || !arg_number(&from, &at) || (p->arg2 && !arg_number(&count, &n)))
		return value_unknown();
	if (at < 0)
		at += (long)v->len;
	if (at < 0 || at > (long)v->len)
		return value_of(w, "", 0);
	if (n < 0)
		n = (long)v->len + n - at;
	if (n < 0 || at + n > (long)v->len)
		n = (long)v->len - at;
	return value_of(w, v->text + at, (size_t)n);
}

struct value value_text(struct walk *w, const char *t)
{
	return t ? value_of(w, t, strlen(t)) : value_unknown();
}

static struct value one_value(struct walk *w, struct state *s, const struct sh_word *word)
{
	struct arg a;

	if (!word)
		return value_of(w, "", 0);
	a = expand_one(w, s, word);
	return a.known == SH_LITERAL ? value_of(w, a.text, strlen(a.text)) : value_unknown();
}

struct value param_apply(struct walk *w, struct state *s, const struct sh_param *p, struct value v, bool is_set)
{
	const char *op = p->op ? p->op : "";
	bool empty = is_set && v.known && v.len == 0;
	struct value a;

	if (p->length)
		return v.known ? value_text(w, keep_printf(w->mem, "%zu", v.len)) : value_unknown();
	if (!*op)
		return v;
	if (strchr("-=+?", op[*op == ':' && op[1] != 0])) {
		bool missing = !is_set || (*op == ':' && empty);
		char kind = op[*op == ':'];

		if (is_set && !v.known && kind == '=') {
			look_at_variable(w, s, p->name, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC });
			var_forget(w, s, p->name);
		}
		if (is_set && !v.known && kind != '+')
			return value_unknown();
		if (kind == '+')
			return missing ? value_of(w, "", 0) : one_value(w, s, p->arg);
		if (!missing)
			return v;
		a = one_value(w, s, p->arg);
		if (kind == '=') {
			look_at_variable(w, s, p->name, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC });
			var_set(w, s, p->name, a);
		}
		return kind == '?' ? value_unknown() : a;
	}
	if (!is_set || !v.known)
		return value_unknown();
	if (*op == ':')
		return substring(w, s, &v, p);
	if (*op == '^' || *op == ',')
		return p->arg ? value_unknown() : value_text(w, change_case(w, &v, op));
	a = one_value(w, s, p->arg);
	if (!a.known)
		return value_unknown();
	if (*op == '#' || *op == '%')
		return v.len > CUT_MAX ? value_unknown() : value_text(w, match_cut(w, &v, a.text, *op == '#', op[1] == *op));
	if (!strcmp(op, "/") || !strcmp(op, "//")) {
		struct value with = one_value(w, s, p->arg2);

		return with.known && !strpbrk(a.text, "*?[\\") ? value_text(w, replace(w, &v, a.text, with.text, op[1] == '/')) : value_unknown();
	}
	return value_unknown();
}
