/* SPDX-License-Identifier: Apache-2.0 */
/* word.c - words: quotes, tildes, patterns, and the bodies of here-documents. */
#include "shell/word.h"

struct sh_part *wd_part(struct reader *r, struct build *b, enum sh_part_kind kind, size_t from)
{
	struct sh_part *p = rd_new(r, sizeof *p);

	p->kind = kind;
	p->place = rd_place(r, from, r->s.pos);
	*b->tail = p;
	b->tail = &p->next;
	return p;
}

void wd_flush(struct reader *r, struct build *b)
{
	struct sh_part *p;

	if (b->gathering == NOTHING)
		return;
	p = wd_part(r, b, b->gathering == PLAIN ? SH_LIT : SH_QUOTED, b->from);
	p->text = rd_copy(r, r->scratch, r->n);
	p->len = r->n;
	r->n = 0;
	b->gathering = NOTHING;
}

void wd_gather(struct reader *r, struct build *b, int how)
{
	if ((int)b->gathering == how)
		return;
	wd_flush(r, b);
	b->gathering = how;
	b->from = r->s.pos;
}

/* Take n bytes that mean themselves. */
void wd_take(struct reader *r, struct build *b, int how, size_t n)
{
	wd_gather(r, b, how);
	for (; n && r->s.pos < r->s.end; n--)
		rd_put(r, r->s.t[r->s.pos++]);
}

void wd_start(struct build *b)
{
	*b = (struct build){ .tail = NULL };
	b->tail = &b->first;
}

struct sh_word *wd_finish(struct reader *r, struct build *b, size_t from)
{
	struct sh_word *w;

	wd_flush(r, b);
	if (!b->first)
		return NULL;
	w = rd_new(r, sizeof *w);
	w->parts = b->first;
	w->place = rd_place(r, from, r->s.pos);
	return w;
}

struct sh_word *rd_literal(struct reader *r, const char *text, size_t len, size_t from, size_t to)
{
	struct sh_word *w = rd_new(r, sizeof *w);
	struct sh_part *p = rd_new(r, sizeof *p);

	p->kind = SH_LIT;
	p->text = rd_copy(r, text, len);
	p->len = len;
	p->place = w->place = rd_place(r, from, to);
	w->parts = p;
	return w;
}

/* ---- quotes ---- */

/* A backslash where only some characters are escaped by it. */
static void weak_backslash(struct reader *r, struct build *b, const char *which)
{
	int next = rd_peek(r, r->s.pos + 1);

	if (next > 0 && strchr(which, next)) {
		wd_gather(r, b, QUOTED);
		r->s.pos++;
	}
	wd_take(r, b, QUOTED, 1);
}

/* After the opening '"', to and over the closing one. */
static void double_quoted(struct reader *r, struct build *b)
{
	size_t from = r->s.pos;
	bool empty = true;
	int c;

	while ((c = rd_cur(r)) != '"') {
		empty = false;
		if (c < 0)
			rd_fail(r, CS_E_INVALID, from, "no closing \"");
		if (c == '\\')
			weak_backslash(r, b, "$`\"\\");
		else if (c == '$' || c == '`')
			wd_expand(r, b, true);
		else
			wd_take(r, b, QUOTED, 1);
	}
	if (empty)
		wd_gather(r, b, QUOTED);
	r->s.pos++;
}

/* '..', $'..', ".." or $".." here?  Then it is read. */
static bool quotes(struct reader *r, struct build *b)
{
	size_t pos = r->s.pos;
	int c = (unsigned char)r->s.t[pos];
	bool dollar = c == '$';

	if (dollar)
		c = rd_after(r, pos + 1, &pos);
	if (c != '\'' && c != '"')
		return false;
	if (c == '\'')
		wd_gather(r, b, QUOTED);
	r->s.pos = pos + 1;
	if (c == '"')
		double_quoted(r, b);
	else if (dollar)
		rd_dollar_quote(r);
	else
		rd_single(r);
	return true;
}

static void strong_backslash(struct reader *r, struct build *b)
{
	wd_gather(r, b, QUOTED);
	if (r->s.pos + 1 < r->s.end)
		r->s.pos++;
	wd_take(r, b, QUOTED, 1);
	while ((rd_peek(r, r->s.pos) & 0xc0) == 0x80 && r->s.pos < r->s.end) /* all of the character */
		wd_take(r, b, QUOTED, 1);
}

/* ---- words ---- */

/* Is what begins here, after ~, a prefix that bash would look up?  Where it ends. */
static bool tilde_prefix(struct reader *r, enum word_kind kind, size_t *ret_end)
{
	size_t pos = r->s.pos + 1;
	int c;

	while (rd_name_char(c = rd_after(r, pos, &pos)) || c == '.' || c == '-' || c == '+')
		pos++;
	*ret_end = pos;
	if (c == '{' && kind == WORD_COMMAND)
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "~ before a brace");
	if (c == '/' || c == ':')
		return true;
	return kind == WORD_PARAM ? c == '}' : rd_is_break(c);
}

static bool tilde(struct reader *r, struct build *b, enum word_kind kind)
{
	size_t from = r->s.pos, end;
	struct sh_part *p;

	if (!tilde_prefix(r, kind, &end))
		return false;
	wd_flush(r, b);
	for (size_t i = from + 1; i < end; i++)
		if (r->s.t[i] != '\\' && r->s.t[i] != '\n')
			rd_put(r, r->s.t[i]);
	r->s.pos = end;
	p = wd_part(r, b, SH_TILDE, from);
	p->text = rd_copy(r, r->scratch, r->n);
	p->len = r->n;
	r->n = 0;
	return true;
}

/* "name=", "name+=" or "name[..]=" is what we have so far (with the '=' next). */
static bool assignment_so_far(const struct reader *r, const struct build *b)
{
	size_t n = r->n, i = 0;

	if (b->first || b->gathering != PLAIN)
		return false;
	if (n && r->scratch[n - 1] == '+')
		n--;
	while (i < n && rd_name_char((unsigned char)r->scratch[i]))
		i++;
	if (!rd_is_name(r->scratch, i))
		return false;
	return i == n || (r->scratch[i] == '[' && r->scratch[n - 1] == ']');
}

static void note(struct build *b, int c, int next)
{
	if (c == '{')
		b->open = true;
	else if (b->open && (c == ',' || (c == '.' && next == '.')))
		b->alternatives = true;
	else if (c == '*' || c == '?' || c == '[')
		b->pattern = true;
}

/* An unquoted character of an ordinary word. */
static void plain_char(struct reader *r, struct build *b, enum word_kind kind, int c)
{
	bool tilde_here = false;

	note(b, c, rd_peek(r, r->s.pos + 1));
	if (c == '=' && kind == WORD_COMMAND && !b->tilde_after_colon && assignment_so_far(r, b))
		b->tilde_after_colon = tilde_here = true;
	else if (c == ':' && b->tilde_after_colon)
		tilde_here = true;
	else if (c == '=' && kind == WORD_COMMAND && b->first && b->first->kind == SH_LIT && memchr(b->first->text, '[', b->first->len) &&
		 rd_peek(r, r->s.pos + 1) == '~')
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "~ after an index that is not literal");
	wd_take(r, b, PLAIN, 1);
	if (tilde_here && rd_cur(r) == '~' && !tilde(r, b, kind))
		wd_take(r, b, PLAIN, 1);
}

/* Quotes, a backslash, an expansion: what is the same in all unquoted words.  False: something else is here. */
static bool common(struct reader *r, struct build *b, int c)
{
	if (c == '\\')
		strong_backslash(r, b);
	else if (c == '\'' || c == '"')
		(void)quotes(r, b);
	else if (c == '`')
		wd_expand(r, b, false);
	else if (c == '$' && !quotes(r, b))
		wd_expand(r, b, false);
	else if (c != '$')
		return false;
	return true;
}

static bool process_here(struct reader *r, struct build *b, int c)
{
	size_t paren;

	if ((c != '<' && c != '>') || rd_after(r, r->s.pos + 1, &paren) != '(')
		return false;
	wd_process(r, b, paren);
	return true;
}

/* A word of a command, as far as it goes. */
static void ordinary(struct reader *r, struct build *b, enum word_kind kind)
{
	int c = rd_cur(r);

	b->tilde_after_colon = kind == WORD_VALUE;
	if (c == '~')
		(void)(tilde(r, b, kind) || (wd_take(r, b, PLAIN, 1), true));
	for (;;) {
		c = rd_cur(r);
		if (c < 0)
			return;
		if (common(r, b, c) || process_here(r, b, c))
			continue;
		if (rd_is_break(c))
			return;
		plain_char(r, b, kind, c);
	}
}

/* The glob part that is one piece of syntax: "@(", "|", ")". */
static void syntax_part(struct reader *r, struct build *b, size_t n)
{
	struct sh_part *p;
	size_t from = r->s.pos;

	wd_flush(r, b);
	for (size_t i = 0; i < n; i++) {
		(void)rd_cur(r);
		rd_put(r, r->s.t[r->s.pos++]);
	}
	p = wd_part(r, b, SH_GLOB, from);
	p->text = rd_copy(r, r->scratch, n);
	p->len = n;
	r->n = 0;
}

/* After == in [[ ]]: @(a|b) and its kind are patterns. */
static void pattern(struct reader *r, struct build *b)
{
	unsigned depth = 0;
	int c = rd_cur(r);

	if (c == '~')
		(void)(tilde(r, b, WORD_PATTERN) || (wd_take(r, b, PLAIN, 1), true));
	for (;;) {
		c = rd_cur(r);
		if (c < 0) {
			if (depth)
				rd_fail(r, CS_E_INVALID, r->s.pos, "no closing ) of a pattern");
			return;
		}
		if (common(r, b, c))
			continue;
		if (strchr("?*+@!", c) && rd_after(r, r->s.pos + 1, NULL) == '(') {
			syntax_part(r, b, 2);
			depth++;
		} else if (depth && (c == '|' || c == ')')) {
			depth -= c == ')';
			syntax_part(r, b, 1);
		} else if (depth && rd_is_break(c)) {
			if (c == '(' || ((c == '<' || c == '>') && rd_after(r, r->s.pos + 1, NULL) == '('))
				rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a parenthesis within a pattern");
			wd_take(r, b, PLAIN, 1);
		} else if (!process_here(r, b, c)) {
			if (rd_is_break(c))
				return;
			plain_char(r, b, WORD_PATTERN, c);
		}
	}
}

/* After =~: '(' and '|' belong to the word, and within parentheses so does all else. */
static void regex(struct reader *r, struct build *b)
{
	unsigned depth = 0;

	for (;;) {
		int c = rd_cur(r), next;

		if (c < 0) {
			if (depth)
				rd_fail(r, CS_E_INVALID, r->s.pos, "no closing ) of a regular expression");
			return;
		}
		next = rd_after(r, r->s.pos + 1, NULL);
		if (depth && (c == '`' || (c == '$' && next == '(')))
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a substitution within parentheses of a regular expression");
		if (c == '$' && next != '(' && (rd_is_break(next) || next == '|')) {
			wd_take(r, b, PLAIN, 1);
			continue;
		}
		if (c == '$' && next != '{' && next != '(' && !rd_name_char(next) && !wd_special(next) && next != '"' && next != '\'')
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "$ before something else in a regular expression");
		if (common(r, b, c))
			continue;
		if (c == '(') {
			depth++;
		} else if (c == ')' && depth) {
			depth--;
		} else if (depth && (c == '<' || c == '>') && next == '(') {
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "%c( in a regular expression", c);
		} else if (!depth && c != '|') {
			if (process_here(r, b, c))
				continue;
			if (rd_is_break(c))
				return;
		}
		wd_take(r, b, PLAIN, 1);
	}
}

static void mark_regex(struct sh_part *p)
{
	for (; p; p = p->next)
		if (p->kind == SH_LIT)
			for (size_t i = 0; i < p->len; i++)
				if (!rd_name_char((unsigned char)p->text[i]) && !strchr("-/=:,@%~#", p->text[i]))
					p->kind = SH_GLOB;
}

/* ${x:-..}, ${x#..} and the like when not within "..": to '}', or to '/' of a pattern. */
static void param_word(struct reader *r, struct build *b, enum word_kind kind)
{
	int c = rd_cur(r);

	if (c == '~' && kind == WORD_PARAM)
		(void)(tilde(r, b, kind) || (wd_take(r, b, PLAIN, 1), true));
	while ((c = rd_cur(r)) >= 0 && c != '}' && !(c == '/' && kind == WORD_REPLACE)) {
		if (common(r, b, c) || process_here(r, b, c))
			continue;
		note(b, c, 0);
		wd_take(r, b, PLAIN, 1);
	}
}

/* "${x:-..}": as in double quotes.  bash skips over '..' when it looks for the end, but then takes the quotes literally. */
static void quoted_param_word(struct reader *r, struct build *b)
{
	int c;

	while ((c = rd_cur(r)) >= 0 && c != '}') {
		if (c == '\\') {
			weak_backslash(r, b, "$`\"\\}");
		} else if (c == '"') {
			r->s.pos++;
			double_quoted(r, b);
		} else if (c == '\'') {
			const char *at = r->s.t + r->s.pos, *end = memchr(at + 1, '\'', r->s.end - r->s.pos - 1);

			if (!end)
				rd_fail(r, CS_E_INVALID, r->s.pos, "no closing ' within ${");
			for (const char *p = at; p < end; p++)
				if (strchr("}\"`$\\", *p))
					rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a ' within \"${..}\" before a character with a meaning");
			wd_take(r, b, QUOTED, (size_t)(end - at) + 1);
		} else if (c == '$' && rd_after(r, r->s.pos + 1, NULL) == '\'') {
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "$' within \"${..}\"");
		} else if (c == '$' && rd_after(r, r->s.pos + 1, NULL) == '"') {
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "$\" within \"${..}\"");
		} else if ((c == '<' || c == '>') && rd_after(r, r->s.pos + 1, NULL) == '(') {
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "%c( within \"${..}\"", c);
		} else if (c == '$' || c == '`') {
			wd_expand(r, b, true);
		} else {
			wd_take(r, b, QUOTED, 1);
		}
	}
}

/* An expression: the offset or length of ${x:..:..}, an index. */
static void expression(struct reader *r, struct build *b, enum word_kind kind)
{
	unsigned depth = 0, questions = 0;
	int c, open = kind == WORD_INDEX ? '[' : '(', close = kind == WORD_INDEX ? ']' : ')';

	while ((c = rd_cur(r)) >= 0) {
		if (kind == WORD_INDEX ? c == ']' && !depth : c == '}')
			return;
		if (kind == WORD_SUBSTRING && c == ':' && !depth && !questions)
			return;
		if (c == '\'') {
			const char *at = r->s.t + r->s.pos, *end = memchr(at + 1, '\'', r->s.end - r->s.pos - 1);

			if (!end)
				rd_fail(r, CS_E_INVALID, r->s.pos, "no closing '");
			if (memchr(at, '$', (size_t)(end - at)) || memchr(at, '`', (size_t)(end - at)) || kind == WORD_SUBSTRING)
				rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "' ' within an expression may not protect what is in it");
		}
		if (c == '\\' && (rd_peek(r, r->s.pos + 1) == '$' || rd_peek(r, r->s.pos + 1) == '`'))
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a backslash within an expression may not protect what follows");
		if (c == '$' && rd_after(r, r->s.pos + 1, NULL) == '\'')
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "$' within an expression");
		if ((c == '<' || c == '>') && rd_after(r, r->s.pos + 1, NULL) == '(')
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "%c( within an expression", c);
		if (common(r, b, c))
			continue;
		if (c == '?')
			questions++;
		else if (c == ':' && questions)
			questions--;
		else if (c == open)
			depth++;
		else if (c == close && depth)
			depth--;
		wd_take(r, b, PLAIN, 1);
	}
}

struct sh_word *rd_word(struct reader *r, enum word_kind kind)
{
	size_t from = r->s.pos;
	struct sh_word *w;
	struct build b;

	wd_start(&b);
	switch (kind) {
	case WORD_PATTERN:
		pattern(r, &b);
		break;
	case WORD_REGEX:
		regex(r, &b);
		break;
	case WORD_PARAM:
	case WORD_REPLACE:
		param_word(r, &b, kind);
		break;
	case WORD_PARAM_QUOTED:
		quoted_param_word(r, &b);
		break;
	case WORD_INDEX:
	case WORD_SUBSTRING:
		expression(r, &b, kind);
		break;
	case WORD_COMMAND:
	case WORD_PLAIN:
	case WORD_VALUE:
	default:
		ordinary(r, &b, kind);
		break;
	}
	w = wd_finish(r, &b, from);
	if (!w)
		return NULL;
	if (kind == WORD_COMMAND && b.open && b.alternatives)
		w->parts = rd_braces(r, w->parts, b.lone_dollar);
	if (kind == WORD_REGEX)
		mark_regex(w->parts);
	else if (b.pattern && kind != WORD_VALUE)
		rd_globs(r, &w->parts);
	return w;
}

struct sh_word *rd_body(struct reader *r, bool quoted)
{
	size_t from = r->s.pos;
	struct build b;
	int c;

	wd_start(&b);
	b.here = true;
	if (r->s.pos == r->s.end)
		wd_gather(r, &b, QUOTED);
	if (quoted)
		wd_take(r, &b, QUOTED, r->s.end - r->s.pos);
	while ((c = rd_peek(r, r->s.pos)) >= 0) {
		if (c == '\\')
			weak_backslash(r, &b, "$`\\");
		else if (c == '$' || c == '`')
			wd_expand(r, &b, true);
		else
			wd_take(r, &b, QUOTED, 1);
	}
	return wd_finish(r, &b, from);
}
