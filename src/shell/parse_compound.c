/* SPDX-License-Identifier: Apache-2.0 */
/* parse_compound.c - groups, if, loops, case. */
#include "shell/internal.h"

#include <stdlib.h>

static struct sh_command *subshell(struct reader *r, size_t from)
{
	struct sh_command *c = rd_command(r, SH_SUBSHELL, from);

	r->s.pos++;
	c->child = rd_list(r);
	rd_blanks(r);
	if (rd_cur(r) != ')')
		rd_unexpected(r, ")");
	r->s.pos++;
	return rd_end(r, c);
}

/* ((..)) or two parentheses, as bash decides: do the closing ones stand side by side? */
static struct sh_command *parenthesis(struct reader *r)
{
	size_t from = r->s.pos, inside, close, must = from == r->inner ? r->inner_close : SIZE_MAX;
	struct sh_command *c;

	r->inner = SIZE_MAX;
	if (rd_two(r, '(', '(', &inside)) {
		close = rd_close_paren(r, inside);
		if (close == SIZE_MAX)
			rd_no_close(r, from, "((");
		if (rd_peek(r, close + 1) == '\\' && rd_peek(r, close + 2) == '\n')
			rd_fail(r, CS_E_UNSUPPORTED, close, "a line that goes on between )) of ((");
		if (rd_peek(r, close + 1) == ')') {
			c = rd_command(r, SH_ARITHMETIC, from);
			r->s.pos = inside;
			c->text = rd_arith(r, "))", &c->words);
			if (r->s.pos != close + 2)
				rd_fail(r, CS_E_UNSUPPORTED, from, "where (( ends is not certain");
			return rd_end(r, c);
		}
		if (memmem(r->s.t + inside, close - inside, "<<", 2))
			rd_fail(r, CS_E_UNSUPPORTED, from, "<< within (( that is no arithmetic");
		if (rd_peek(r, close + 1) == '\n')
			rd_fail(r, CS_E_UNSUPPORTED, close, "a new line right after the first ) of ((");
		rd_refuse_continuation(r, inside, close);
		if (r->here && memchr(r->s.t + inside, '\n', close - inside))
			rd_fail(r, CS_E_UNSUPPORTED, from, "a new line within (( that is no arithmetic, and a here-document waiting");
		r->inner = inside - 1;
		r->inner_close = close;
	}
	c = subshell(r, from);
	if (must != SIZE_MAX && r->s.pos != must + 1)
		rd_fail(r, CS_E_UNSUPPORTED, from, "where (( ends is not certain");
	return c;
}

static struct sh_command *group(struct reader *r, size_t from)
{
	struct sh_command *c = rd_command(r, SH_GROUP, from);

	c->child = rd_list(r);
	rd_expect(r, "}");
	return rd_end(r, c);
}

static struct sh_command *if_command(struct reader *r, size_t from)
{
	struct sh_command *c = rd_command(r, SH_IF, from), **tail = &c->child;

	do {
		*tail = rd_list(r);
		tail = &(*tail)->next;
		rd_expect(r, "then");
		*tail = rd_list(r);
		tail = &(*tail)->next;
	} while (rd_accept(r, "elif"));
	if (rd_accept(r, "else"))
		*tail = rd_list(r);
	rd_expect(r, "fi");
	return rd_end(r, c);
}

static struct sh_command *while_command(struct reader *r, enum sh_command_kind kind, size_t from)
{
	struct sh_command *c = rd_command(r, kind, from);

	c->child = rd_list(r);
	rd_expect(r, "do");
	c->child->next = rd_list(r);
	rd_expect(r, "done");
	return rd_end(r, c);
}

/* do..done, or {..} which bash takes as well. */
static struct sh_command *loop_body(struct reader *r)
{
	bool brace = rd_accept(r, "{");
	struct sh_command *c;

	if (!brace)
		rd_expect(r, "do");
	c = rd_list(r);
	rd_expect(r, brace ? "}" : "done");
	return c;
}

static struct sh_command *for_arith(struct reader *r, size_t from, size_t inside)
{
	struct sh_command *c = rd_command(r, SH_FOR_ARITH, from);
	size_t close = rd_close_paren(r, inside), semicolons = 0;

	if (close == SIZE_MAX || rd_peek(r, close + 1) != ')')
		rd_fail(r, CS_E_UNSUPPORTED, from, "no closing )) of for ((");
	r->s.pos = inside;
	c->text = rd_arith(r, "))", &c->words);
	if (r->s.pos != close + 2)
		rd_fail(r, CS_E_UNSUPPORTED, from, "where (( ends is not certain");
	for (const char *t = c->text; *t; t++) {
		semicolons += *t == ';';
		if (strchr("'\"\\", *t))
			rd_fail(r, CS_E_UNSUPPORTED, from, "a quote in for ((");
	}
	for (const struct sh_word *w = c->words; w && semicolons != 2; w = w->next)
		rd_fail(r, CS_E_UNSUPPORTED, from, "expansions in for (( and not two semicolons");
	if (semicolons != 2)
		rd_fail(r, CS_E_INVALID, from, "for (( without its two semicolons");
	rd_blanks(r);
	if (rd_cur(r) == ';' && !rd_two(r, ';', ';', NULL))
		r->s.pos++;
	rd_newlines(r);
	c->child = loop_body(r);
	return rd_end(r, c);
}

/* The words after "in", to the end of the line or ';'. */
static void for_words(struct reader *r, struct sh_command *c)
{
	struct sh_word **tail = &c->words;

	c->has_in = true;
	for (;;) {
		rd_blanks(r);
		*tail = rd_word(r, WORD_COMMAND);
		if (!*tail)
			break;
		tail = &(*tail)->next;
	}
	if (rd_cur(r) == ';' && !rd_two(r, ';', ';', NULL) && !rd_two(r, ';', '&', NULL))
		r->s.pos++;
	else if (!rd_newline(r))
		rd_unexpected(r, "; or a new line");
	rd_newlines(r);
}

static const char *loop_name(struct reader *r)
{
	struct sh_word *w = rd_word(r, WORD_PLAIN);
	const char *name;

	if (!w)
		rd_unexpected(r, "a name");
	name = rd_literal_of(w);
	if (!name || w->parts->kind != SH_LIT || !rd_is_name(name, strlen(name)))
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "the variable of a loop is not a name");
	return name;
}

static struct sh_command *for_command(struct reader *r, enum sh_command_kind kind, size_t from)
{
	struct sh_command *c;
	size_t inside;

	rd_blanks(r);
	if (kind == SH_FOR && rd_two(r, '(', '(', &inside))
		return for_arith(r, from, inside);
	c = rd_command(r, kind, from);
	c->name = loop_name(r);
	rd_blanks(r);
	if (rd_cur(r) == ';' && !rd_two(r, ';', ';', NULL) && !rd_two(r, ';', '&', NULL)) {
		r->s.pos++;
		rd_newlines(r);
		c->child = loop_body(r);
		return rd_end(r, c);
	}
	if (rd_is(rd_keyword(r, NULL), "{"))
		rd_unexpected(r, "do");
	rd_newlines(r);
	if (rd_accept(r, "in"))
		for_words(r, c);
	c->child = loop_body(r);
	return rd_end(r, c);
}

static struct sh_case_item *case_item(struct reader *r)
{
	struct sh_case_item *i = rd_new(r, sizeof *i);
	struct sh_word **tail = &i->patterns;
	size_t after;

	if (rd_cur(r) == '(')
		r->s.pos++;
	for (;;) {
		rd_blanks(r);
		*tail = rd_word(r, WORD_PLAIN);
		if (!*tail)
			rd_unexpected(r, "a pattern");
		tail = &(*tail)->next;
		rd_blanks(r);
		if (rd_cur(r) != '|')
			break;
		if (rd_two(r, '|', '|', NULL) || rd_two(r, '|', '&', NULL))
			rd_unexpected(r, "a pattern");
		r->s.pos++;
	}
	if (rd_cur(r) != ')')
		rd_unexpected(r, ") after a pattern");
	r->s.pos++;
	rd_newlines(r);
	if (rd_cur(r) != ';' && !rd_is(rd_keyword(r, NULL), "esac"))
		i->body = rd_list(r);
	rd_blanks(r);
	if (rd_two(r, ';', ';', &after)) {
		r->s.pos = after;
		i->end = ';';
		if (rd_cur(r) == '&') {
			r->s.pos++;
			i->end = '+';
		}
	} else if (rd_two(r, ';', '&', &after)) {
		r->s.pos = after;
		i->end = '&';
	} else if (!rd_is(rd_keyword(r, NULL), "esac")) {
		rd_unexpected(r, ";; or esac");
	}
	return i;
}

static struct sh_command *case_command(struct reader *r, size_t from)
{
	struct sh_command *c = rd_command(r, SH_CASE, from);
	struct sh_case_item **tail = &c->items;

	rd_blanks(r);
	c->words = rd_word(r, WORD_PLAIN);
	if (!c->words)
		rd_unexpected(r, "a word after case");
	rd_newlines(r);
	rd_expect(r, "in");
	for (;;) {
		rd_newlines(r);
		if (rd_accept(r, "esac"))
			return rd_end(r, c);
		*tail = case_item(r);
		if (!(*tail)->end) {
			(*tail)->end = ';';
			rd_expect(r, "esac");
			return rd_end(r, c);
		}
		tail = &(*tail)->next;
	}
}

/* A compound command with its redirections, or NULL when none begins here. */
struct sh_command *rd_compound(struct reader *r)
{
	size_t after, from;
	const char *word = rd_keyword(r, &after);
	struct sh_command *c = NULL;

	from = r->s.pos;
	if (!word && rd_cur(r) != '(')
		return NULL;
	rd_enter(r);
	if (!word) {
		c = parenthesis(r);
	} else {
		size_t before = r->s.pos;

		r->s.pos = after;
		if (!strcmp(word, "{"))
			c = group(r, from);
		else if (!strcmp(word, "if"))
			c = if_command(r, from);
		else if (!strcmp(word, "while") || !strcmp(word, "until"))
			c = while_command(r, *word == 'w' ? SH_WHILE : SH_UNTIL, from);
		else if (!strcmp(word, "for") || !strcmp(word, "select"))
			c = for_command(r, *word == 'f' ? SH_FOR : SH_SELECT, from);
		else if (!strcmp(word, "case"))
			c = case_command(r, from);
		else if (!strcmp(word, "[["))
			c = rd_condition(r, from);
		else
			r->s.pos = before;
	}
	rd_leave(r);
	if (c)
		rd_redirects(r, c);
	return c;
}
