/* SPDX-License-Identifier: Apache-2.0 */
/* parse_redirect.c - redirections, and the delimiters of here-documents. */
#include "shell/internal.h"

#include <stdlib.h>

/* 2> or {fd}> here?  Then r stands on the operator after. */
bool rd_descriptor(struct reader *r, int *ret_fd, const char **ret_name)
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
		rd_unexpected(r, "the delimiter of a here-document");
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

	if ((rd_cur(r) == '{' || rd_digit(rd_cur(r))) && rd_descriptor(r, &fd, &name))
		rd_unexpected(r, "a word after a redirection");
}

/* The text of a word that is one literal; NULL: it is not. */
const char *rd_literal_of(const struct sh_word *w)
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
		rd_unexpected(r, "a word after a redirection");
	if (d->kind != SH_DUP_OUT || !all_literal(d->target) || (d->fd >= 0 && d->fd != 1) || d->fd_name)
		return;
	text = rd_literal_of(d->target);
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
struct sh_redirect *rd_redirect(struct reader *r)
{
	struct sh_redirect *d;
	const char *name = NULL;
	size_t from, which, after;
	int fd = -1;

	rd_blanks(r);
	from = r->s.pos;
	if (rd_cur(r) == '{' || rd_digit(rd_cur(r)))
		(void)rd_descriptor(r, &fd, &name);
	if (!operator_here(r, &which, &after)) {
		if (r->s.pos != from && (fd >= 0 || name))
			rd_unexpected(r, "a redirection");
		return NULL;
	}
	if ((fd >= 0 || name) && operators[which].text[0] == '&')
		rd_unexpected(r, "a redirection");
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
			rd_unexpected(r, "a word after a redirection");
	}
	d->place = rd_place(r, from, r->s.pos);
	return d;
}

/* After a compound command.  A word after one of these is no longer taken for a reserved one. */
void rd_redirects(struct reader *r, struct sh_command *c)
{
	struct sh_redirect **tail = &c->redirects;

	while (*tail)
		tail = &(*tail)->next;
	if (!(*tail = rd_redirect(r)))
		return;
	for (;; tail = &(*tail)->next) {
		rd_cover(c, (*tail)->place);
		if (!((*tail)->next = rd_redirect(r)))
			break;
	}
	if (!rd_is_break(rd_cur(r)))
		rd_unexpected(r, "an end of the command");
}
