/* SPDX-License-Identifier: Apache-2.0 */
/* parse_condition.c - [[ .. ]]. */
#include "shell/internal.h"

struct cond {
	struct reader *r;
	struct sh_word **tail;
	bool command_position; /* bash would take a reserved word or an assignment for that here */
};

static void cond_add(struct cond *k, struct sh_word *w)
{
	*k->tail = w;
	k->tail = &w->next;
}

static void cond_operator(struct cond *k, const char *text, size_t end_pos)
{
	size_t from = k->r->s.pos;

	k->r->s.pos = end_pos;
	cond_add(k, rd_literal(k->r, text, strlen(text), from, end_pos));
}

static bool cond_end(struct cond *k)
{
	char word[4];

	rd_blanks(k->r);
	return rd_bare(k->r, word, sizeof word, NULL) == 2 && !strcmp(word, "]]");
}

static void cond_newlines(struct cond *k)
{
	rd_blanks(k->r);
	rd_refuse_waiting(k->r);
	while (rd_newline(k->r)) {
		k->command_position = true;
		rd_blanks(k->r);
	}
}

static void cond_word(struct cond *k, enum word_kind kind)
{
	struct reader *r = k->r;
	struct sh_word *w;
	const char *name = NULL;
	int fd;

	rd_blanks(r);
	if (cond_end(k))
		rd_unexpected(r, "a word in [[ ]]");
	if (rd_digit(rd_cur(r)) && kind != WORD_REGEX) {
		struct source save = r->s;

		if (rd_descriptor(r, &fd, &name))
			rd_fail(r, CS_E_INVALID, save.pos, "a number right before %c in [[ ]]", rd_cur(r));
	}
	if (rd_cur(r) == '{' && rd_descriptor(r, &fd, &name))
		rd_fail(r, CS_E_INVALID, r->s.pos, "{%s} right before %c in [[ ]]", name, rd_cur(r));
	if (k->command_position && (rd_keyword(r, NULL) || rd_assign_follows(r, false)))
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a reserved word or an assignment in [[ ]]");
	k->command_position = false;
	w = rd_word(r, kind);
	if (!w)
		rd_unexpected(r, "a word in [[ ]]");
	cond_add(k, w);
}

static bool cond_unary(struct cond *k)
{
	char word[4];

	rd_blanks(k->r);
	return rd_bare(k->r, word, sizeof word, NULL) == 2 && word[0] == '-' && strchr("abcdefghkLnoprstuvwxzGNORS", word[1]);
}

/* The operator between two words, or NULL when there is but one. */
static const char *cond_binary(struct cond *k, size_t *ret_end)
{
	static const char *const all[] = { "=",   "==",  "!=",  "=~",  "-nt", "-ot", "-ef", "-eq", "-ne",
					   "-lt", "-le", "-gt", "-ge", NULL };
	struct reader *r = k->r;
	char word[4];
	int c;

	rd_blanks(r);
	c = rd_cur(r);
	if (c == '<' || c == '>') {
		int next = rd_after(r, r->s.pos + 1, NULL);

		*ret_end = r->s.pos + 1;
		if (next == '<' || next == '>' || next == '&' || next == '(' || next == '|')
			rd_unexpected(r, "an operator in [[ ]]");
		return c == '<' ? "<" : ">";
	}
	if (!rd_bare(r, word, sizeof word, ret_end))
		return NULL;
	for (size_t i = 0; all[i]; i++)
		if (!strcmp(word, all[i]))
			return all[i];
	return NULL;
}

static void cond_or(struct cond *k);

static void cond_pair(struct cond *k)
{
	const char *op;
	size_t op_end = 0;

	cond_word(k, WORD_PLAIN);
	op = cond_binary(k, &op_end);
	if (op) {
		cond_operator(k, op, op_end);
		cond_word(k, !strcmp(op, "=~") ? WORD_REGEX : op[0] == '=' || op[0] == '!' ? WORD_PATTERN : WORD_PLAIN);
		cond_newlines(k);
		return;
	}
	if (!cond_end(k) && !rd_two(k->r, '&', '&', NULL) && !rd_two(k->r, '|', '|', NULL) && rd_cur(k->r) != ')')
		rd_unexpected(k->r, "an operator in [[ ]]");
}

static void cond_term(struct cond *k)
{
	struct reader *r = k->r;
	char word[4];
	size_t after;

	rd_enter(r);
	cond_newlines(k);
	while (rd_bare(r, word, sizeof word, &after) == 1 && word[0] == '!') {
		cond_operator(k, "!", after);
		k->command_position = true;
		cond_newlines(k);
	}
	if (rd_cur(r) == '(') {
		cond_operator(k, "(", r->s.pos + 1);
		if (rd_cur(r) == '(')
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "(( in [[ ]]");
		k->command_position = true;
		cond_or(k);
		rd_blanks(r);
		if (rd_cur(r) != ')')
			rd_unexpected(r, ") in [[ ]]");
		cond_operator(k, ")", r->s.pos + 1);
		cond_newlines(k);
	} else if (cond_unary(k)) {
		cond_word(k, WORD_PLAIN);
		cond_word(k, WORD_PLAIN);
		cond_newlines(k);
	} else {
		cond_pair(k);
	}
	rd_leave(r);
}

static void cond_or(struct cond *k)
{
	size_t after;

	for (;;) {
		cond_term(k);
		rd_blanks(k->r);
		if (rd_two(k->r, '&', '&', &after))
			cond_operator(k, "&&", after);
		else if (rd_two(k->r, '|', '|', &after))
			cond_operator(k, "||", after);
		else
			return;
		k->command_position = true;
	}
}

struct sh_command *rd_condition(struct reader *r, size_t from)
{
	struct sh_command *c = rd_command(r, SH_CONDITION, from);
	struct cond k = { .r = r, .tail = &c->words };

	cond_or(&k);
	rd_expect(r, "]]");
	return rd_end(r, c);
}
