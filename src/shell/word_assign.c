/* SPDX-License-Identifier: Apache-2.0 */
/* word_assign.c - assignments and arrays. */
#include "shell/word.h"

/* Does name=, name+= or name[..]= stand here?  With compound_only: name=( or name+=(. */
bool rd_assign_follows(struct reader *r, bool compound_only)
{
	struct source save = r->s;
	size_t pos = r->s.pos, raw;
	int c = rd_after(r, pos, &pos);

	if (!rd_name_start(c))
		return false;
	while (rd_name_char(c = rd_after(r, pos, &pos)))
		pos++;
	if (c == '[' && !compound_only) {
		raw = ++pos;
		r->s.pos = pos;
		(void)rd_word(r, WORD_INDEX);
		if (rd_cur(r) != ']')
			rd_fail(r, CS_E_INVALID, raw, "no closing ] of an index");
		pos = r->s.pos + 1;
		rd_pay(r, pos - save.pos);
		r->s = save;
		c = rd_after(r, pos, &pos);
		if (c != '=' && !(c == '+' && rd_after(r, pos + 1, NULL) == '=')) {
			for (size_t i = raw; i < pos; i++)
				if (rd_is_break((unsigned char)r->s.t[i]) || strchr("'\"\\$`", r->s.t[i]))
					rd_fail(r, CS_E_UNSUPPORTED, raw, "a command's name with an index");
			return false;
		}
	}
	if (c == '+')
		c = rd_after(r, pos + 1, &pos);
	if (c != '=')
		return false;
	return !compound_only || rd_after(r, pos + 1, NULL) == '(';
}

static void array_element(struct reader *r, struct sh_assign *e)
{
	struct source save = r->s;
	size_t from = r->s.pos, end;
	int c;

	e->name = "";
	if (rd_cur(r) == '[') {
		r->s.pos++;
		e->index = rd_word(r, WORD_INDEX);
		if (rd_cur(r) != ']')
			rd_fail(r, CS_E_INVALID, from, "no closing ] of an index");
		end = ++r->s.pos;
		c = rd_cur(r);
		if (c == '+' && rd_after(r, r->s.pos + 1, NULL) == '=') {
			e->append = true;
			r->s.pos++;
			c = rd_cur(r);
		}
		if (c == '=') {
			if (!e->index)
				rd_fail(r, CS_E_UNSUPPORTED, from, "an empty index");
			r->s.pos++;
			e->value = rd_word(r, WORD_VALUE);
			e->place = rd_place(r, from, r->s.pos);
			return;
		}
		rd_pay(r, end - from);
		for (size_t i = from; i < end; i++)
			if (rd_is_break((unsigned char)r->s.t[i]) || strchr("'\"\\$`", r->s.t[i]))
				rd_fail(r, CS_E_UNSUPPORTED, from, "an element that looks like an index");
		e->index = NULL;
		e->append = false;
		r->s = save;
	}
	e->value = rd_word(r, WORD_COMMAND);
	if (!e->value)
		rd_fail(r, CS_E_INVALID, r->s.pos, "not a word in an array");
	e->place = e->value->place;
}

/* After '(' of name=(, to and over ')'. */
static void array(struct reader *r, struct sh_assign *a)
{
	struct sh_assign **tail = &a->keyed;
	struct sh_word **items = &a->items;
	size_t from = r->s.pos;
	bool keys = false;

	rd_enter(r);
	for (;;) {
		struct sh_assign *e;

		rd_blanks(r);
		rd_refuse_waiting(r);
		rd_newlines(r);
		if (rd_cur(r) == ')')
			break;
		if (rd_cur(r) < 0)
			rd_fail(r, CS_E_INVALID, from, "no closing ) of an array");
		e = rd_new(r, sizeof *e);
		array_element(r, e);
		keys = keys || e->index;
		*tail = e;
		tail = &e->next;
	}
	r->s.pos++;
	rd_leave(r);
	if (keys)
		return;
	for (struct sh_assign *e = a->keyed; e; e = e->next) {
		*items = e->value;
		items = &e->value->next;
	}
	a->keyed = NULL;
}

/* rd_assign_follows() has said yes. */
struct sh_assign *rd_assign(struct reader *r)
{
	struct sh_assign *a = rd_new(r, sizeof *a);
	size_t from = r->s.pos;

	a->name = wd_name(r);
	if (rd_cur(r) == '[') {
		r->s.pos++;
		a->index = rd_word(r, WORD_INDEX);
		if (!a->index)
			rd_fail(r, CS_E_UNSUPPORTED, from, "an empty index");
		(void)rd_cur(r);
		r->s.pos++;
	}
	if (rd_cur(r) == '+') {
		a->append = true;
		r->s.pos++;
	}
	(void)rd_cur(r);
	r->s.pos++;
	if (rd_cur(r) == '(') {
		r->s.pos++;
		a->array = true;
		if (a->index)
			rd_fail(r, CS_E_UNSUPPORTED, from, "an array as an element");
		array(r, a);
		if (!rd_is_break(rd_cur(r)) || rd_cur(r) == '(')
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "something right after an array");
		if ((rd_cur(r) == '<' || rd_cur(r) == '>') && rd_after(r, r->s.pos + 1, NULL) == '(')
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "something right after an array");
	} else {
		a->value = rd_word(r, WORD_VALUE);
	}
	a->place = rd_place(r, from, r->s.pos);
	return a;
}
