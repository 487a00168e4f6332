/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - commands, lists and scripts. */
#include "shell/internal.h"

#include <stdlib.h>

static struct sh_command *list(struct reader *r);
static struct sh_command *compound(struct reader *r);

static const char *const reserved[] = { "if",    "then", "else", "elif", "fi",   "case", "esac", "for", "select", "while", "until",
					"do",    "done", "in",   "function", "time", "{",  "}",    "!",   "[[",     "]]",    "coproc" };

bool rd_reserved(const char *word)
{
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (!strcmp(word, reserved[i]))
			return true;
	return false;
}

/* The reserved word that stands here, where one can; NULL: none. */
static const char *keyword(struct reader *r, size_t *ret_end)
{
	char word[12];
	int c;

	rd_blanks(r);
	c = rd_cur(r);
	if (c < 0 || !strchr("itefcswud{}![]", c) || !rd_bare(r, word, sizeof word, ret_end))
		return NULL;
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (!strcmp(word, reserved[i]))
			return reserved[i];
	return NULL;
}

static bool is(const char *a, const char *b)
{
	return a && !strcmp(a, b);
}

static bool accept(struct reader *r, const char *word)
{
	size_t end;

	if (!is(keyword(r, &end), word))
		return false;
	r->s.pos = end;
	return true;
}

static void unexpected(struct reader *r, const char *want) __attribute__((noreturn, cold));
static void unexpected(struct reader *r, const char *want)
{
	char word[24];
	int c = rd_cur(r);

	if (c < 0)
		rd_fail(r, CS_E_INVALID, r->s.pos, "the end comes too early: %s is missing", want);
	if (c == '\n')
		rd_fail(r, CS_E_INVALID, r->s.pos, "unexpected end of line: %s is missing", want);
	if (rd_bare(r, word, sizeof word, NULL))
		rd_fail(r, CS_E_INVALID, r->s.pos, "unexpected '%s': %s is missing", word, want);
	rd_fail(r, CS_E_INVALID, r->s.pos, "unexpected '%c': %s is missing", c > 0x20 && c < 0x7f ? c : '?', want);
}

static void expect(struct reader *r, const char *word)
{
	if (!accept(r, word))
		unexpected(r, word);
}

/* An operator of two bytes here? */
static bool two(struct reader *r, int a, int b, size_t *ret_end)
{
	size_t pos;

	if (rd_cur(r) != a || rd_after(r, r->s.pos + 1, &pos) != b)
		return false;
	if (ret_end)
		*ret_end = pos + 1;
	return true;
}

static struct sh_command *new_command(struct reader *r, enum sh_command_kind kind, size_t from)
{
	struct sh_command *c = rd_new(r, sizeof *c);

	c->kind = kind;
	c->place.at = rd_place(r, from, from).at;
	return c;
}

static struct sh_command *end(const struct reader *r, struct sh_command *c)
{
	c->place.len = rd_place(r, r->s.pos, r->s.pos).at - c->place.at;
	return c;
}

/* To the end of what is last in it: blanks and a comment may have been read since. */
static struct sh_command *cover(struct sh_command *c, struct sh_place last)
{
	c->place.len = last.at + last.len - c->place.at;
	return c;
}

/* ---- redirections ---- */

/* 2> or {fd}> here?  Then r stands on the operator after. */
static bool descriptor(struct reader *r, int *ret_fd, const char **ret_name)
{
	char word[72];
	size_t end, n = rd_bare(r, word, sizeof word, &end);
	int c = n ? rd_peek(r, end) : -1;

	if (c != '<' && c != '>')
		return false;
	if (word[0] == '{' && word[n - 1] == '}') {
		if (!rd_is_name(word + 1, n - 2)) {
			if (memchr(word, '[', n))
				rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a descriptor in an element of an array");
			return false;
		}
		*ret_name = rd_copy(r, word + 1, n - 2);
	} else {
		if (strspn(word, "0123456789") != n)
			return false;
		if (n > 9)
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a large number before a redirection");
		*ret_fd = atoi(word);
	}
	r->s.pos = end;
	return true;
}

static const struct {
	const char *text;
	enum sh_redirect_kind kind;
} operators[] = {
	{ "&>>", SH_BOTH_APPEND }, { "<<<", SH_HERESTRING }, { "<<-", SH_HEREDOC }, { "<<", SH_HEREDOC }, { "&>", SH_BOTH },
	{ ">>", SH_APPEND },       { ">|", SH_CLOBBER },     { "<>", SH_INOUT },    { ">&", SH_DUP_OUT }, { "<&", SH_DUP_IN },
	{ ">", SH_OUT },           { "<", SH_IN },
};

static bool operator_here(struct reader *r, size_t *ret_which, size_t *ret_end)
{
	int c = rd_cur(r);

	if (c != '<' && c != '>' && c != '&')
		return false;
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
		size_t pos = r->s.pos, n = 0;

		while (operators[i].text[n] && rd_after(r, pos, &pos) == operators[i].text[n]) {
			pos++;
			n++;
		}
		if (operators[i].text[n])
			continue;
		if (n == 1 && rd_after(r, pos, NULL) == '(')
			return false; /* <(..) is a word */
		*ret_which = i;
		*ret_end = pos;
		return true;
	}
	return false;
}

/* The delimiter of a here-document: a word of which only the quotes are taken away. */
static void delimiter(struct reader *r, struct sh_redirect *d)
{
	size_t from = r->s.pos;
	int c;

	while (!rd_is_break(c = rd_cur(r))) {
		if (c == '`' || (c == '$' && (rd_after(r, r->s.pos + 1, NULL) == '(' || strchr("{['\"", rd_after(r, r->s.pos + 1, NULL)))))
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "an expansion in the delimiter of a here-document");
		r->s.pos++;
		if (c == '\'') {
			d->heredoc_quoted = true;
			rd_single(r);
		} else if (c == '"') {
			d->heredoc_quoted = true;
			while ((c = rd_cur(r)) != '"') {
				if (c < 0)
					rd_fail(r, CS_E_INVALID, from, "no closing \"");
				if (c == '\\' || c == '$' || c == '`')
					rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "an escape in the delimiter of a here-document");
				rd_put(r, (char)c);
				r->s.pos++;
			}
			r->s.pos++;
		} else if (c == '\\') {
			d->heredoc_quoted = true;
			if (r->s.pos >= r->s.end)
				rd_fail(r, CS_E_UNSUPPORTED, from, "a backslash at the end");
			rd_put(r, r->s.t[r->s.pos++]);
		} else {
			rd_put(r, (char)c);
		}
	}
	if ((c == '<' || c == '>') && rd_after(r, r->s.pos + 1, NULL) == '(')
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "an expansion in the delimiter of a here-document");
	if (r->s.pos == from)
		unexpected(r, "the delimiter of a here-document");
	d->delimiter = rd_copy(r, r->scratch, r->n);
	if (memchr(r->scratch ? r->scratch : "", '\n', r->n))
		rd_fail(r, CS_E_UNSUPPORTED, from, "a newline in the delimiter of a here-document");
	r->n = 0;
}

static void pend(struct reader *r, struct sh_redirect *d)
{
	struct pending *p = rd_new(r, sizeof *p);

	p->redirect = d;
	*r->here_end = p;
	r->here_end = &p->next;
}

/* >1>x: the number belongs to the second, and so the first has no file. */
static void refuse_descriptor(struct reader *r)
{
	const char *name;
	int fd;

	if ((rd_cur(r) == '{' || rd_digit(rd_cur(r))) && descriptor(r, &fd, &name))
		unexpected(r, "a word after a redirection");
}

/* The text of a word that is one literal; NULL: it is not. */
static const char *literal_of(const struct sh_word *w)
{
	const struct sh_part *p = w->parts;

	return p && !p->next && (p->kind == SH_LIT || p->kind == SH_QUOTED) ? p->text : NULL;
}

static bool all_literal(const struct sh_word *w)
{
	for (const struct sh_part *p = w->parts; p; p = p->next)
		if (p->kind != SH_LIT && p->kind != SH_QUOTED)
			return false;
	return true;
}

/* >& and <&: a descriptor or, for >&, maybe a file. */
static void duplicate(struct reader *r, struct sh_redirect *d)
{
	size_t from;
	const char *text;

	rd_blanks(r);
	from = r->s.pos;
	if (rd_cur(r) == '-') {
		r->s.pos++;
		d->target = rd_literal(r, "-", 1, from, r->s.pos);
		return;
	}
	if (rd_cur(r) == '{')
		refuse_descriptor(r);
	d->target = rd_word(r, WORD_COMMAND);
	if (!d->target)
		unexpected(r, "a word after a redirection");
	if (d->kind != SH_DUP_OUT || !all_literal(d->target) || (d->fd >= 0 && d->fd != 1) || d->fd_name)
		return;
	text = literal_of(d->target);
	if (text) {
		size_t digits = strspn(text, "0123456789");

		if (!strcmp(text, "-") || (digits && (!text[digits] || !strcmp(text + digits, "-"))))
			return;
	} else {
		rd_fail(r, CS_E_UNSUPPORTED, from, "a redirection >& to a word in pieces");
	}
	d->kind = SH_BOTH;
	d->fd = -1;
}

/* One redirection, if one is here. */
static struct sh_redirect *redirect(struct reader *r)
{
	struct sh_redirect *d;
	const char *name = NULL;
	size_t from, which, after;
	int fd = -1;

	rd_blanks(r);
	from = r->s.pos;
	if (rd_cur(r) == '{' || rd_digit(rd_cur(r)))
		(void)descriptor(r, &fd, &name);
	if (!operator_here(r, &which, &after)) {
		if (r->s.pos != from && (fd >= 0 || name))
			unexpected(r, "a redirection");
		return NULL;
	}
	if ((fd >= 0 || name) && operators[which].text[0] == '&')
		unexpected(r, "a redirection");
	d = rd_new(r, sizeof *d);
	d->kind = operators[which].kind;
	d->fd = fd;
	d->fd_name = name;
	r->s.pos = after;
	if (d->kind == SH_DUP_IN || d->kind == SH_DUP_OUT) {
		duplicate(r, d);
	} else if (d->kind == SH_HEREDOC) {
		d->heredoc_tabs = operators[which].text[2] == '-';
		rd_blanks(r);
		refuse_descriptor(r);
		delimiter(r, d);
		pend(r, d);
	} else {
		rd_blanks(r);
		refuse_descriptor(r);
		d->target = rd_word(r, d->kind == SH_HERESTRING ? WORD_PLAIN : WORD_COMMAND);
		if (!d->target)
			unexpected(r, "a word after a redirection");
	}
	d->place = rd_place(r, from, r->s.pos);
	return d;
}

/* After a compound command.  A word after one of these is no longer taken for a reserved one. */
static void redirects(struct reader *r, struct sh_command *c)
{
	struct sh_redirect **tail = &c->redirects;

	while (*tail)
		tail = &(*tail)->next;
	if (!(*tail = redirect(r)))
		return;
	for (;; tail = &(*tail)->next) {
		cover(c, (*tail)->place);
		if (!((*tail)->next = redirect(r)))
			break;
	}
	if (!rd_is_break(rd_cur(r)))
		unexpected(r, "an end of the command");
}

/* ---- simple commands and functions ---- */

static bool takes_arrays(const char *name)
{
	static const char *const all[] = { "declare", "typeset", "local", "export", "readonly", "alias", "eval", "let" };

	for (size_t i = 0; name && i < sizeof all / sizeof *all; i++)
		if (!strcmp(name, all[i]))
			return true;
	return false;
}

/* declare x=(..) */
static struct sh_word *array_argument(struct reader *r, const char *command)
{
	struct sh_word *w = rd_new(r, sizeof *w);
	struct sh_part *p = rd_new(r, sizeof *p);

	if (is(command, "alias") || is(command, "eval") || is(command, "let"))
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "an array as an argument of %s", command);
	p->kind = SH_ARRAY;
	p->assign = rd_assign(r);
	p->place = w->place = p->assign->place;
	w->parts = p;
	return w;
}

static const char *function_name(struct reader *r, const struct sh_word *w)
{
	const struct sh_part *p = w->parts;

	if (p->kind != SH_LIT || p->next)
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "the name of a function is not plain");
	return p->text;
}

static struct sh_command *function_body(struct reader *r, const char *name, size_t from)
{
	struct sh_command *c = new_command(r, SH_FUNCTION, from);

	c->name = name;
	rd_newlines(r);
	rd_enter(r);
	c->child = compound(r);
	if (!c->child)
		unexpected(r, "the body of a function");
	rd_leave(r);
	return cover(c, c->child->place);
}

/* After its first word: "()" makes it a function. */
static struct sh_command *maybe_function(struct reader *r, const struct sh_command *c, size_t from)
{
	rd_blanks(r);
	if (rd_cur(r) != '(')
		return NULL;
	if (c->assigns || c->redirects || !c->words || c->words->next)
		unexpected(r, "an end of the command");
	r->s.pos++;
	rd_blanks(r);
	if (rd_cur(r) != ')')
		unexpected(r, "an end of the command");
	r->s.pos++;
	return function_body(r, function_name(r, c->words), from);
}

static struct sh_command *simple(struct reader *r)
{
	size_t from = (rd_blanks(r), r->s.pos);
	struct sh_command *c = new_command(r, SH_SIMPLE, from), *function;
	struct sh_assign **assigns = &c->assigns;
	struct sh_redirect **redirs = &c->redirects;
	struct sh_word **words = &c->words;
	bool arrays = false, blocked = false, mixed = false, assigned;
	const char *name = NULL;
	size_t after = from;

	for (;; after = r->s.pos) {
		if ((*redirs = redirect(r))) {
			redirs = &(*redirs)->next;
			mixed = mixed || c->assigns;
			blocked = true; /* bash forgets by then that arrays are welcome */
			continue;
		}
		if (rd_is_break(rd_cur(r)) && !((rd_cur(r) == '<' || rd_cur(r) == '>')))
			break;
		r->late += mixed; /* bash does not look for an index any more */
		assigned = !c->words && rd_assign_follows(r, false);
		r->late -= mixed;
		if (assigned) {
			*assigns = rd_assign(r);
			if (mixed && ((*assigns)->array || (*assigns)->index))
				rd_fail(r, CS_E_UNSUPPORTED, after, "an array after an assignment and a redirection");
			assigns = &(*assigns)->next;
			continue;
		}
		if (arrays && !blocked && rd_assign_follows(r, true)) {
			*words = array_argument(r, name);
		} else {
			bool first = !c->words;
			char bare[12];

			if (first && rd_bare(r, bare, sizeof bare, NULL))
				arrays = takes_arrays(bare);
			blocked = blocked || rd_cur(r) == '<' || rd_cur(r) == '>';
			*words = rd_word(r, WORD_COMMAND);
			if (!*words)
				unexpected(r, "a word");
			if (first) {
				name = literal_of(*words);
				blocked = false;
			}
		}
		words = &(*words)->next;
	}
	function = maybe_function(r, c, from);
	if (function)
		return function;
	if (!c->words && !c->assigns && !c->redirects)
		unexpected(r, "a command");
	c->place.len = rd_place(r, after, after).at - c->place.at;
	return c;
}

/* ---- compound commands ---- */

static struct sh_command *subshell(struct reader *r, size_t from)
{
	struct sh_command *c = new_command(r, SH_SUBSHELL, from);

	r->s.pos++;
	c->child = list(r);
	rd_blanks(r);
	if (rd_cur(r) != ')')
		unexpected(r, ")");
	r->s.pos++;
	return end(r, c);
}

/* ((..)) or two parentheses, as bash decides: do the closing ones stand side by side? */
static struct sh_command *parenthesis(struct reader *r)
{
	size_t from = r->s.pos, inside, close, must = from == r->inner ? r->inner_close : SIZE_MAX;
	struct sh_command *c;

	r->inner = SIZE_MAX;
	if (two(r, '(', '(', &inside)) {
		close = rd_close_paren(r, inside);
		if (close == SIZE_MAX)
			rd_no_close(r, from, "((");
		if (rd_peek(r, close + 1) == '\\' && rd_peek(r, close + 2) == '\n')
			rd_fail(r, CS_E_UNSUPPORTED, close, "a line that goes on between )) of ((");
		if (rd_peek(r, close + 1) == ')') {
			c = new_command(r, SH_ARITHMETIC, from);
			r->s.pos = inside;
			c->text = rd_arith(r, "))", &c->words);
			if (r->s.pos != close + 2)
				rd_fail(r, CS_E_UNSUPPORTED, from, "where (( ends is not certain");
			return end(r, c);
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
	struct sh_command *c = new_command(r, SH_GROUP, from);

	c->child = list(r);
	expect(r, "}");
	return end(r, c);
}

static struct sh_command *if_command(struct reader *r, size_t from)
{
	struct sh_command *c = new_command(r, SH_IF, from), **tail = &c->child;

	do {
		*tail = list(r);
		tail = &(*tail)->next;
		expect(r, "then");
		*tail = list(r);
		tail = &(*tail)->next;
	} while (accept(r, "elif"));
	if (accept(r, "else"))
		*tail = list(r);
	expect(r, "fi");
	return end(r, c);
}

static struct sh_command *while_command(struct reader *r, enum sh_command_kind kind, size_t from)
{
	struct sh_command *c = new_command(r, kind, from);

	c->child = list(r);
	expect(r, "do");
	c->child->next = list(r);
	expect(r, "done");
	return end(r, c);
}

/* do..done, or {..} which bash takes as well. */
static struct sh_command *loop_body(struct reader *r)
{
	bool brace = accept(r, "{");
	struct sh_command *c;

	if (!brace)
		expect(r, "do");
	c = list(r);
	expect(r, brace ? "}" : "done");
	return c;
}

static struct sh_command *for_arith(struct reader *r, size_t from, size_t inside)
{
	struct sh_command *c = new_command(r, SH_FOR_ARITH, from);
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
	if (rd_cur(r) == ';' && !two(r, ';', ';', NULL))
		r->s.pos++;
	rd_newlines(r);
	c->child = loop_body(r);
	return end(r, c);
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
	if (rd_cur(r) == ';' && !two(r, ';', ';', NULL) && !two(r, ';', '&', NULL))
		r->s.pos++;
	else if (!rd_newline(r))
		unexpected(r, "; or a new line");
	rd_newlines(r);
}

static const char *loop_name(struct reader *r)
{
	struct sh_word *w = rd_word(r, WORD_PLAIN);
	const char *name;

	if (!w)
		unexpected(r, "a name");
	name = literal_of(w);
	if (!name || w->parts->kind != SH_LIT || !rd_is_name(name, strlen(name)))
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "the variable of a loop is not a name");
	return name;
}

static struct sh_command *for_command(struct reader *r, enum sh_command_kind kind, size_t from)
{
	struct sh_command *c;
	size_t inside;

	rd_blanks(r);
	if (kind == SH_FOR && two(r, '(', '(', &inside))
		return for_arith(r, from, inside);
	c = new_command(r, kind, from);
	c->name = loop_name(r);
	rd_blanks(r);
	if (rd_cur(r) == ';' && !two(r, ';', ';', NULL) && !two(r, ';', '&', NULL)) {
		r->s.pos++;
		rd_newlines(r);
		c->child = loop_body(r);
		return end(r, c);
	}
	if (is(keyword(r, NULL), "{"))
		unexpected(r, "do");
	rd_newlines(r);
	if (accept(r, "in"))
		for_words(r, c);
	c->child = loop_body(r);
	return end(r, c);
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
			unexpected(r, "a pattern");
		tail = &(*tail)->next;
		rd_blanks(r);
		if (rd_cur(r) != '|')
			break;
		if (two(r, '|', '|', NULL) || two(r, '|', '&', NULL))
			unexpected(r, "a pattern");
		r->s.pos++;
	}
	if (rd_cur(r) != ')')
		unexpected(r, ") after a pattern");
	r->s.pos++;
	rd_newlines(r);
	if (rd_cur(r) != ';' && !is(keyword(r, NULL), "esac"))
		i->body = list(r);
	rd_blanks(r);
	if (two(r, ';', ';', &after)) {
		r->s.pos = after;
		i->end = ';';
		if (rd_cur(r) == '&') {
			r->s.pos++;
			i->end = '+';
		}
	} else if (two(r, ';', '&', &after)) {
		r->s.pos = after;
		i->end = '&';
	} else if (!is(keyword(r, NULL), "esac")) {
		unexpected(r, ";; or esac");
	}
	return i;
}

static struct sh_command *case_command(struct reader *r, size_t from)
{
	struct sh_command *c = new_command(r, SH_CASE, from);
	struct sh_case_item **tail = &c->items;

	rd_blanks(r);
	c->words = rd_word(r, WORD_PLAIN);
	if (!c->words)
		unexpected(r, "a word after case");
	rd_newlines(r);
	expect(r, "in");
	for (;;) {
		rd_newlines(r);
		if (accept(r, "esac"))
			return end(r, c);
		*tail = case_item(r);
		if (!(*tail)->end) {
			(*tail)->end = ';';
			expect(r, "esac");
			return end(r, c);
		}
		tail = &(*tail)->next;
	}
}

/* ---- [[ ]] ---- */

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
		unexpected(r, "a word in [[ ]]");
	if (rd_digit(rd_cur(r)) && kind != WORD_REGEX) {
		struct source save = r->s;

		if (descriptor(r, &fd, &name))
			rd_fail(r, CS_E_INVALID, save.pos, "a number right before %c in [[ ]]", rd_cur(r));
	}
	if (rd_cur(r) == '{' && descriptor(r, &fd, &name))
		rd_fail(r, CS_E_INVALID, r->s.pos, "{%s} right before %c in [[ ]]", name, rd_cur(r));
	if (k->command_position && (keyword(r, NULL) || rd_assign_follows(r, false)))
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a reserved word or an assignment in [[ ]]");
	k->command_position = false;
	w = rd_word(r, kind);
	if (!w)
		unexpected(r, "a word in [[ ]]");
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
			unexpected(r, "an operator in [[ ]]");
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
	if (!cond_end(k) && !two(k->r, '&', '&', NULL) && !two(k->r, '|', '|', NULL) && rd_cur(k->r) != ')')
		unexpected(k->r, "an operator in [[ ]]");
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
			unexpected(r, ") in [[ ]]");
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
		if (two(k->r, '&', '&', &after))
			cond_operator(k, "&&", after);
		else if (two(k->r, '|', '|', &after))
			cond_operator(k, "||", after);
		else
			return;
		k->command_position = true;
	}
}

static struct sh_command *condition(struct reader *r, size_t from)
{
	struct sh_command *c = new_command(r, SH_CONDITION, from);
	struct cond k = { .r = r, .tail = &c->words };

	cond_or(&k);
	expect(r, "]]");
	return end(r, c);
}

/* ---- commands ---- */

/* A compound command with its redirections, or NULL when none begins here. */
static struct sh_command *compound(struct reader *r)
{
	size_t after, from;
	const char *word = keyword(r, &after);
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
			c = condition(r, from);
		else
			r->s.pos = before;
	}
	rd_leave(r);
	if (c)
		redirects(r, c);
	return c;
}

static struct sh_command *function_command(struct reader *r, size_t from)
{
	struct sh_word *w;
	const char *name;
	size_t close;

	rd_blanks(r);
	w = rd_word(r, WORD_PLAIN);
	if (!w)
		unexpected(r, "the name of a function");
	name = function_name(r, w);
	rd_blanks(r);
	if (rd_cur(r) == '(') {
		size_t pos = r->s.pos + 1;
		int c;

		while ((c = rd_after(r, pos, &pos)) == ' ' || c == '\t')
			pos++;
		close = pos;
		if (c == ')')
			r->s.pos = close + 1;
	}
	return function_body(r, name, from);
}

static struct sh_command *coproc_command(struct reader *r, size_t from)
{
	struct sh_command *c = new_command(r, SH_COPROC, from);
	struct source save;
	struct sh_word *w;
	const char *word;

	rd_enter(r);
	c->child = compound(r);
	if (!c->child) {
		word = keyword(r, NULL);
		if (word && strcmp(word, "time"))
			unexpected(r, "a command after coproc");
		save = r->s;
		if (!rd_is_break(rd_cur(r)) && !rd_assign_follows(r, false)) {
			char bare[64];
			size_t after, n = rd_bare(r, bare, sizeof bare, &after);

			if (n && rd_peek(r, after) != '<' && rd_peek(r, after) != '>') {
				r->s.pos = after;
				word = keyword(r, NULL);
				c->child = compound(r);
				if (!c->child && word && strcmp(word, "time"))
					unexpected(r, "a command after coproc");
				if (c->child && !rd_is_name(bare, n))
					rd_fail(r, CS_E_UNSUPPORTED, from, "the name of a coproc is not a name");
				if (c->child)
					c->name = rd_copy(r, bare, n);
			} else if (!n) {
				w = rd_word(r, WORD_COMMAND);
				rd_pay(r, r->s.pos - save.pos);
				word = w ? keyword(r, NULL) : NULL;
				if ((word && strcmp(word, "time")) || rd_cur(r) == '(')
					rd_fail(r, CS_E_UNSUPPORTED, from, "the name of a coproc is not plain");
			}
		}
		if (!c->child) {
			r->s = save;
			c->child = simple(r);
			if (c->child->kind != SH_SIMPLE)
				rd_fail(r, CS_E_INVALID, from, "a function as a coproc");
		}
	}
	rd_leave(r);
	return cover(c, c->child->place);
}

static struct sh_command *command(struct reader *r)
{
	size_t after, from;
	const char *word = keyword(r, &after);
	struct sh_command *c;

	from = r->s.pos;
	if (word && !strcmp(word, "function")) {
		r->s.pos = after;
		return function_command(r, from);
	}
	if (word && !strcmp(word, "coproc")) {
		r->s.pos = after;
		return coproc_command(r, from);
	}
	c = compound(r);
	if (c)
		return c;
	if (word && strcmp(word, "time") != 0)
		unexpected(r, "a command");
	return simple(r);
}

static struct sh_command *pipeline(struct reader *r)
{
	struct sh_command *first = command(r), *pipe, **tail;
	size_t after;

	rd_blanks(r);
	if (rd_cur(r) != '|' || two(r, '|', '|', NULL))
		return first;
	pipe = new_command(r, SH_PIPE, r->s.pos);
	pipe->place.at = first->place.at;
	pipe->child = first;
	tail = &first->next;
	while (rd_cur(r) == '|' && !two(r, '|', '|', NULL)) {
		bool both = two(r, '|', '&', &after), line;

		if (both)
			first->both = true;
		r->s.pos = both ? after : r->s.pos + 1;
		rd_blanks(r);
		line = rd_cur(r) == '\n';
		rd_newlines(r);
		if (both && line && is(keyword(r, NULL), "time"))
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "time after |&");
		*tail = first = command(r);
		tail = &first->next;
		rd_blanks(r);
	}
	return cover(pipe, first->place);
}

/* bash 5.2 takes "time" as the first word of $(..) for a plain word, and for the reserved one when it runs that; later versions
 * for the reserved one at once.  Only what is the same to both is certain. */
static void check_first_time(struct reader *r, const struct sh_command *c, size_t from)
{
	while (c && c->kind == SH_PIPE)
		c = c->child;
	if (!c || c->kind != SH_SIMPLE || c->assigns || !c->words || c->words->parts->kind == SH_ARRAY)
		rd_fail(r, CS_E_UNSUPPORTED, from, "time before something else than a simple command in a substitution");
	for (const struct sh_word *w = c->words; w; w = w->next)
		if (w->parts->kind == SH_ARRAY)
			rd_fail(r, CS_E_UNSUPPORTED, from, "time before an array in a substitution");
}

static void time_options(struct reader *r, struct sh_command *c)
{
	char word[4];
	size_t after;

	rd_blanks(r);
	if (rd_bare(r, word, sizeof word, &after) == 2 && !strcmp(word, "-p")) {
		c->posix_time = true;
		r->s.pos = after;
		rd_blanks(r);
	}
	if (rd_bare(r, word, sizeof word, &after) == 2 && !strcmp(word, "--")) {
		c->posix_time = true; /* so does bash */
		r->s.pos = after;
	}
}

/* !, time and a pipeline. */
static struct sh_command *timed(struct reader *r)
{
	struct sh_command *top = NULL, **where = &top, *c;
	bool first = r->first_in_substitution;
	size_t start = r->s.pos;
	unsigned depth = r->depth;
	size_t after;

	r->first_in_substitution = false;
	for (;;) {
		size_t from = (rd_blanks(r), r->s.pos);

		if (is(keyword(r, &after), "time")) {
			c = new_command(r, SH_TIME, from);
			r->s.pos = after;
			time_options(r, c);
			if (first && !top && (rd_blanks(r), rd_is_break(rd_cur(r))))
				check_first_time(r, NULL, start);
		} else if (is(keyword(r, &after), "!")) {
			c = new_command(r, SH_NOT, from);
			r->s.pos = after;
		} else {
			break;
		}
		rd_enter(r);
		*where = c;
		where = &c->child;
		rd_blanks(r);
		if (rd_cur(r) < 0 || rd_cur(r) == '\n' || (rd_cur(r) == ';' && !two(r, ';', ';', NULL) && !two(r, ';', '&', NULL))) {
			if (first && top->kind == SH_TIME)
				check_first_time(r, NULL, start);
			for (struct sh_command *k = top; k; k = k->child)
				end(r, k);
			r->depth = depth;
			return top;
		}
	}
	*where = pipeline(r);
	if (first && top->kind == SH_TIME)
		check_first_time(r, top->child, start);
	for (c = top; c && c != *where; c = c->child)
		cover(c, (*where)->place);
	r->depth = depth;
	return top;
}

static struct sh_command *and_or(struct reader *r)
{
	struct sh_command *left = timed(r), *last = NULL;
	unsigned depth = r->depth;
	size_t after;

	for (;;) {
		enum sh_command_kind kind;
		struct sh_command *node;

		rd_blanks(r);
		if (two(r, '&', '&', &after))
			kind = SH_AND;
		else if (two(r, '|', '|', &after))
			kind = SH_OR;
		else
			break;
		r->s.pos = after;
		rd_newlines(r);
		if (last && left->kind == kind) {
			last = last->next = timed(r);
		} else {
			rd_enter(r);
			node = new_command(r, kind, r->s.pos);
			node->place.at = left->place.at;
			node->child = left;
			left = node;
			last = node->child->next = timed(r);
		}
		cover(left, last->place);
	}
	r->depth = depth;
	return left;
}

/* Nothing that could be a command: the end, or what closes something. */
static bool at_close(struct reader *r)
{
	static const char *const closers[] = { "then", "else", "elif", "fi", "do", "done", "esac", "}" };
	const char *word = keyword(r, NULL);
	int c = rd_cur(r);

	if (c < 0 || c == ')' || two(r, ';', ';', NULL) || two(r, ';', '&', NULL))
		return true;
	for (size_t i = 0; word && i < sizeof closers / sizeof *closers; i++)
		if (!strcmp(word, closers[i]))
			return true;
	return false;
}

/* One or more commands with what separates them. */
static struct sh_command *list(struct reader *r)
{
	struct sh_command *first = NULL, **tail = &first, *c, *node;

	rd_enter(r);
	rd_newlines(r);
	if (at_close(r))
		unexpected(r, "a command");
	do {
		c = and_or(r);
		rd_blanks(r);
		if (rd_cur(r) == '&') {
			node = new_command(r, SH_BACKGROUND, r->s.pos);
			node->place.at = c->place.at;
			node->child = c;
			c = node;
			r->s.pos++;
			end(r, c);
		} else if (rd_cur(r) == ';' && !two(r, ';', ';', NULL) && !two(r, ';', '&', NULL)) {
			r->s.pos++;
		} else if (!rd_newline(r)) {
			*tail = c;
			break;
		}
		*tail = c;
		tail = &c->next;
		rd_newlines(r);
	} while (!at_close(r));
	rd_leave(r);
	if (!first->next)
		return first;
	node = new_command(r, SH_SEQUENCE, r->s.pos);
	node->place.at = first->place.at;
	node->child = first;
	return cover(node, c->place);
}

struct sh_script *rd_script(struct reader *r, int close)
{
	struct pending *here = r->here, **here_end = r->here_end;
	struct sh_script *s = rd_new(r, sizeof *s);
	size_t from = r->s.pos;

	r->here = NULL;
	r->here_end = &r->here;
	rd_newlines(r);
	if (rd_cur(r) >= 0 && rd_cur(r) != close)
		s->first = list(r);
	rd_blanks(r);
	if (r->here)
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "here-document without its end, '%.40s'", r->here->redirect->delimiter);
	if (rd_cur(r) >= 0 && rd_cur(r) != close)
		unexpected(r, close == ')' ? ")" : "an end of the command");
	s->text = r->s.t + from;
	s->len = r->s.pos - from;
	r->first_in_substitution = false;
	r->here = here;
	r->here_end = here ? here_end : &r->here;
	return s;
}

/* Apart from sh_parse(), so that nothing here is of its frame: what longjmp() may do to that is not defined. */
static int read_all(struct reader *r, struct sh_script **ret)
{
	size_t len = r->s.end;

	if (setjmp(r->out))
		return -(int)r->code;
	rd_check_text(r);
	r->s.t = rd_copy(r, r->s.t, len);
	*ret = rd_script(r, -1);
	(*ret)->arena = r->arena;
	(*ret)->text = r->s.t;
	(*ret)->len = r->s.end;
	return 0;
}

int sh_parse(const char *text, size_t len, struct sh_script **ret, uint32_t *ret_at, struct cs_err *err)
{
	struct reader r = { .err = err, .s = { .t = text, .end = len }, .work = len * 4 + 4096, .inner = SIZE_MAX };
	struct sh_script *s = NULL;
	int result;

	if (len > SH_TEXT_MAX) {
		if (ret_at)
			*ret_at = SH_TEXT_MAX;
		return cs_fail(err, CS_E_LIMIT, 0, "longer than %d bytes", SH_TEXT_MAX);
	}
	r.here_end = &r.here;
	r.arena = sh_arena_new();
	if (!r.arena)
		return cs_fail(err, CS_E_LIMIT, 0, "out of memory");
	result = read_all(&r, &s);
	free(r.scratch);
	if (result < 0) {
		sh_arena_free(r.arena);
		if (ret_at)
			*ret_at = (uint32_t)r.at;
		return result;
	}
	*ret = s;
	return 0;
}

void sh_free(struct sh_script *s)
{
	if (s)
		sh_arena_free(s->arena);
}
