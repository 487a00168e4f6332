/* SPDX-License-Identifier: Apache-2.0 */
/* word.c - words and what is in them: quotes, expansions, tildes; arithmetic; assignments. */
#include "shell/internal.h"

/* A word that is being put together.  Literal text gathers in r->scratch until something else comes. */
struct build {
	struct sh_part *first, **tail;
	enum { NOTHING, PLAIN, QUOTED } gathering;
	size_t from;       /* of what is gathered */
	bool open, alternatives, pattern; /* unquoted '{'; ',' or ".." after one; '*', '?' or '[' */
	bool tilde_after_colon, lone_dollar;
	bool here;         /* the body of a here-document */
};

static void expand(struct reader *r, struct build *b, bool quoted);
static void double_quoted(struct reader *r, struct build *b);

static struct sh_part *add_part(struct reader *r, struct build *b, enum sh_part_kind kind, size_t from)
{
	struct sh_part *p = rd_new(r, sizeof *p);

	p->kind = kind;
	p->place = rd_place(r, from, r->s.pos);
	*b->tail = p;
	b->tail = &p->next;
	return p;
}

static void flush(struct reader *r, struct build *b)
{
	struct sh_part *p;

	if (b->gathering == NOTHING)
		return;
	p = add_part(r, b, b->gathering == PLAIN ? SH_LIT : SH_QUOTED, b->from);
	p->text = rd_copy(r, r->scratch, r->n);
	p->len = r->n;
	r->n = 0;
	b->gathering = NOTHING;
}

static void gather(struct reader *r, struct build *b, int how)
{
	if ((int)b->gathering == how)
		return;
	flush(r, b);
	b->gathering = how;
	b->from = r->s.pos;
}

/* Take n bytes that mean themselves. */
static void take(struct reader *r, struct build *b, int how, size_t n)
{
	gather(r, b, how);
	for (; n && r->s.pos < r->s.end; n--)
		rd_put(r, r->s.t[r->s.pos++]);
}

static void start(struct build *b)
{
	*b = (struct build){ .tail = NULL };
	b->tail = &b->first;
}

static struct sh_word *finish(struct reader *r, struct build *b, size_t from)
{
	struct sh_word *w;

	flush(r, b);
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

/* ---- substitutions ---- */

/* From after '(' to and over ')'. */
static struct sh_script *nested(struct reader *r)
{
	size_t from = r->s.pos;
	struct sh_script *s;

	rd_enter(r);
	r->substitutions++;
	r->first_in_substitution = true;
	s = rd_script(r, ')');
	if (rd_cur(r) != ')')
		rd_fail(r, CS_E_INVALID, from, "no closing ) of a substitution");
	r->s.pos++;
	r->substitutions--;
	rd_leave(r);
	return s;
}

static void substitution(struct reader *r, struct build *b, bool quoted, size_t from)
{
	struct sh_script *s = nested(r);
	struct sh_part *p = add_part(r, b, SH_COMMAND, from);

	p->script = s;
	p->quoted = quoted;
}

static void arithmetic(struct reader *r, struct build *b, bool quoted, size_t from, const char *close)
{
	struct sh_word *words = NULL;
	const char *text = rd_arith(r, close, &words);
	struct sh_part *p = add_part(r, b, SH_ARITH, from);

	p->text = text;
	p->len = strlen(text);
	p->words = words;
	p->quoted = quoted;
	p->bracket = *close == ']';
}

/* After "$(" with another '(' at `second`: bash takes it for arithmetic if the two end side by side. */
static void arithmetic_or_not(struct reader *r, struct build *b, bool quoted, size_t from, size_t second)
{
	size_t first = r->s.pos, end = rd_close_paren(r, second + 1);

	if (end == SIZE_MAX)
		rd_no_close(r, from, "$((");
	if (rd_peek(r, end + 1) == '\\' && rd_peek(r, end + 2) == '\n')
		rd_fail(r, CS_E_UNSUPPORTED, end, "a line that goes on between )) of $((");
	if (rd_peek(r, end + 1) == ')') {
		r->s.pos = second + 1;
		arithmetic(r, b, quoted, from, "))");
		if (r->s.pos != end + 2)
			rd_fail(r, CS_E_UNSUPPORTED, from, "where $(( ends is not certain");
		return;
	}
	end = rd_close_paren(r, first);
	if (end == SIZE_MAX)
		rd_no_close(r, from, "$((");
	rd_refuse_continuation(r, first, end);
	r->late++;
	substitution(r, b, quoted, from);
	r->late--;
	if (r->s.pos != end + 1)
		rd_fail(r, CS_E_UNSUPPORTED, from, "where $(( ends is not certain");
}

/* The text within `..`, without the backslashes that are its own. */
static struct source backtick_source(struct reader *r, bool quoted)
{
	size_t from = r->s.pos, pos = from, n = 0;
	uint32_t *map;
	char *t;
	int c;

	while ((c = rd_peek(r, pos)) != '`') {
		if (c < 0)
			rd_fail(r, CS_E_INVALID, from, "no closing `");
		pos += c == '\\' ? 2 : 1;
	}
	if (pos > r->s.end)
		rd_fail(r, CS_E_INVALID, from, "no closing `");
	rd_pay(r, pos - from);
	t = rd_copy(r, r->s.t + from, pos - from);
	map = rd_room(r, (pos - from + 1) * sizeof *map);
	for (size_t i = from; i < pos; i++) {
		c = rd_peek(r, i);
		if (c == '\\') {
			int next = rd_peek(r, i + 1);

			if (next == '\n') {
				i++;
				continue;
			}
			if (next == '$' || next == '`' || next == '\\' || (quoted && next == '"')) {
				c = next;
				i++;
			} else {
				map[n] = r->s.map ? r->s.map[i] : (uint32_t)i;
				t[n++] = '\\';
				c = next;
				i++;
			}
		}
		map[n] = r->s.map ? r->s.map[i] : (uint32_t)i;
		t[n++] = (char)c;
	}
	t[n] = '\0';
	map[n] = r->s.map ? r->s.map[pos] : (uint32_t)pos;
	r->s.pos = pos + 1;
	return (struct source){ .t = t, .end = n, .map = map };
}

static void backtick(struct reader *r, struct build *b, bool quoted, bool plain_quotes)
{
	size_t from = r->s.pos++;
	struct source inner = backtick_source(r, quoted && !plain_quotes), outer = r->s;
	unsigned substitutions = r->substitutions;
	struct sh_script *s;
	struct sh_part *p;

	rd_enter(r);
	r->late++;
	r->s = inner;
	r->substitutions = 0;
	r->first_in_substitution = true; /* as in $(..), so that it can be printed as one */
	s = rd_script(r, -1);
	r->s = outer;
	r->substitutions = substitutions;
	r->late--;
	rd_leave(r);
	p = add_part(r, b, SH_COMMAND, from);
	p->script = s;
	p->quoted = quoted;
	p->backtick = true;
}

static void process(struct reader *r, struct build *b, size_t paren)
{
	size_t from = r->s.pos;
	struct sh_script *s;
	struct sh_part *p;

	flush(r, b);
	r->s.pos = paren + 1;
	if (rd_after(r, r->s.pos, NULL) == '(') {
		/* looked at only when it runs; until then the parentheses are counted */
		size_t end = rd_close_paren(r, r->s.pos);

		if (end == SIZE_MAX)
			rd_no_close(r, from, r->s.t[from] == '<' ? "<((" : ">((");
		rd_refuse_continuation(r, r->s.pos, end);
		r->late++;
		s = nested(r);
		r->late--;
		if (r->s.pos != end + 1)
			rd_fail(r, CS_E_UNSUPPORTED, from, "where %c(( ends is not certain", r->s.t[from]);
	} else {
		s = nested(r);
	}
	p = add_part(r, b, SH_PROCESS, from);
	p->script = s;
	p->direction = r->s.t[from];
}

/* ---- parameters ---- */

static bool special(int c)
{
	return c > 0 && strchr("@*#?-$!", c);
}

static const char *param_name(struct reader *r)
{
	int c = rd_cur(r);
	const char *name;

	if (rd_name_start(c)) {
		for (; rd_name_char(c); c = rd_cur(r))
			rd_put(r, r->s.t[r->s.pos++]);
	} else if (rd_digit(c)) {
		for (; rd_digit(c); c = rd_cur(r))
			rd_put(r, r->s.t[r->s.pos++]);
	} else if (special(c)) {
		rd_put(r, r->s.t[r->s.pos++]);
	} else {
		rd_fail(r, c < 0 ? CS_E_INVALID : CS_E_UNSUPPORTED, r->s.pos, "bad substitution");
	}
	name = rd_copy(r, r->scratch, r->n);
	r->n = 0;
	return name;
}

/* ${#..} and ${!..}: what the sign means depends on what follows. */
static void param_sign(struct reader *r, struct sh_param *p)
{
	size_t pos, after;
	int c = rd_cur(r), next = rd_after(r, r->s.pos + 1, &pos);
	bool closes = rd_after(r, pos + 1, &after) == '}';

	if ((c != '#' && c != '!') || next == '}')
		return;
	if (!rd_name_char(next) && !(special(next) && closes && (c == '#' || next == '#' || next == '@' || next == '*')))
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "${%c with something else than a name", c);
	if (c == '#')
		p->length = true;
	else
		p->indirect = true;
	r->s.pos = pos;
}

static bool param_op(struct reader *r, struct sh_param *p)
{
	static const char *const ops[] = { ":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", ":", "-",
					   "=",  "?",  "+",  "#",  "%",  "/",  "^",  "," };
	size_t pos = r->s.pos, second;
	int c = rd_after(r, pos, &pos), next = rd_after(r, pos + 1, &second);

	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (ops[i][0] == c && (!ops[i][1] || ops[i][1] == next)) {
			p->op = ops[i];
			r->s.pos = ops[i][1] ? second + 1 : pos + 1;
			return true;
		}
	return false;
}

static void param_at(struct reader *r, struct sh_param *p)
{
	size_t pos;
	int c = rd_after(r, r->s.pos + 1, &pos);
	char op[3] = { '@', (char)c, 0 };

	if (p->indirect && c == '}') {
		p->op = "@";
		r->s.pos = pos;
		return;
	}
	if (c <= 0 || !strchr("UuLQEPAaKk", c) || rd_after(r, pos + 1, NULL) != '}')
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "bad substitution: ${..@%c", c > 0x20 && c < 0x7f ? c : '?');
	p->op = rd_copy(r, op, 2);
	r->s.pos = pos + 1;
}

static void param_args(struct reader *r, struct sh_param *p, bool quoted, bool here)
{
	enum word_kind kind = quoted && strchr("-=?+", p->op[strlen(p->op) - 1]) ? WORD_PARAM_QUOTED : WORD_PARAM;

	if (here && quoted && memchr(r->s.t + r->s.pos, '\n', r->s.end - r->s.pos) == r->s.t + r->s.pos)
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a line end within ${ in a here-document");
	if (!strcmp(p->op, ":"))
		kind = WORD_SUBSTRING;
	else if (p->op[0] == '/')
		kind = WORD_REPLACE;
	p->arg = rd_word(r, kind);
	if (kind == WORD_REPLACE && rd_cur(r) == '/') {
		r->s.pos++;
		p->arg2 = rd_word(r, WORD_PARAM);
		if (!p->arg2)
			p->empty2 = true;
	} else if (kind == WORD_SUBSTRING && rd_cur(r) == ':') {
		r->s.pos++;
		p->arg2 = rd_word(r, WORD_SUBSTRING);
		if (!p->arg2)
			p->empty2 = true;
	}
}

/* In a here-document quotes within ${x:-..} are neither quotes nor quite literal. */
static void refuse_quotes(struct reader *r, size_t from)
{
	for (size_t i = from; i < r->s.pos; i++)
		if (strchr("'\"\\", r->s.t[i]))
			rd_fail(r, CS_E_UNSUPPORTED, i, "a quote within ${ in a here-document");
}

/* After "${". */
static struct sh_param *braced(struct reader *r, bool quoted, bool here)
{
	struct sh_param *p = rd_new(r, sizeof *p);
	size_t from = r->s.pos;

	rd_enter(r);
	p->op = "";
	param_sign(r, p);
	p->name = param_name(r);
	if (rd_cur(r) == '[') {
		if (!rd_name_start((unsigned char)p->name[0]))
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "bad substitution: an index of $%s", p->name);
		r->s.pos++;
		r->late++; /* bash looks for the '}' first */
		p->index = rd_word(r, WORD_INDEX);
		r->late--;
		if (!p->index || rd_cur(r) != ']')
			rd_fail(r, CS_E_UNSUPPORTED, from, "bad substitution: no index within [ ]");
		r->s.pos++;
	}
	if (p->length && rd_cur(r) != '}')
		rd_fail(r, rd_cur(r) < 0 ? CS_E_INVALID : CS_E_UNSUPPORTED, from, "bad substitution: more after ${#%s", p->name);
	if (rd_cur(r) == '@') {
		param_at(r, p);
	} else if (rd_cur(r) == '*' && p->indirect && rd_after(r, r->s.pos + 1, NULL) == '}') {
		p->op = "*";
		r->s.pos++;
	} else if (rd_cur(r) != '}' && param_op(r, p)) {
		param_args(r, p, quoted, here);
	}
	if (rd_cur(r) != '}')
		rd_fail(r, rd_cur(r) < 0 ? CS_E_INVALID : CS_E_UNSUPPORTED, from, rd_cur(r) < 0 ? "no closing } of ${" : "bad substitution");
	if (here)
		refuse_quotes(r, from);
	r->s.pos++;
	rd_leave(r);
	return p;
}

static struct sh_part *param_part(struct reader *r, struct build *b, bool quoted, size_t from, struct sh_param *param)
{
	struct sh_part *p = add_part(r, b, SH_PARAM, from);

	p->param = param;
	p->quoted = quoted;
	return p;
}

static void simple_param(struct reader *r, struct build *b, bool quoted, size_t from)
{
	struct sh_param *p = rd_new(r, sizeof *p);
	char one[2] = { r->s.t[r->s.pos], 0 };

	p->op = "";
	if (rd_name_start((unsigned char)one[0])) {
		p->name = param_name(r);
	} else {
		p->name = rd_copy(r, one, 1);
		r->s.pos++;
	}
	param_part(r, b, quoted, from, p)->bare = true;
}

/* At '$' or '`'. */
static void expand(struct reader *r, struct build *b, bool quoted)
{
	size_t from = r->s.pos, pos, second;
	int c;

	if (r->s.t[from] == '`') {
		flush(r, b);
		backtick(r, b, quoted, b->here);
		return;
	}
	c = rd_after(r, from + 1, &pos);
	if (c == '(' || c == '{' || c == '[' || rd_name_char(c) || special(c)) {
		flush(r, b);
		r->s.pos = pos;
	}
	if (c == '(') {
		r->s.pos++;
		if (rd_after(r, r->s.pos, &second) == '(')
			arithmetic_or_not(r, b, quoted, from, second);
		else
			substitution(r, b, quoted, from);
	} else if (c == '{') {
		struct sh_param *p;

		r->s.pos++;
		p = braced(r, quoted, b->here);
		param_part(r, b, quoted, from, p);
	} else if (c == '[') {
		r->s.pos++;
		arithmetic(r, b, quoted, from, "]");
	} else if (rd_name_char(c) || special(c)) {
		simple_param(r, b, quoted, from);
	} else {
		b->lone_dollar = b->lone_dollar || !quoted;
		take(r, b, QUOTED, 1);
	}
}

/* ---- quotes ---- */

/* A backslash where only some characters are escaped by it. */
static void weak_backslash(struct reader *r, struct build *b, const char *which)
{
	int next = rd_peek(r, r->s.pos + 1);

	if (next > 0 && strchr(which, next)) {
		gather(r, b, QUOTED);
		r->s.pos++;
	}
	take(r, b, QUOTED, 1);
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
			expand(r, b, true);
		else
			take(r, b, QUOTED, 1);
	}
	if (empty)
		gather(r, b, QUOTED);
	r->s.pos++;
}

/* '..', $'..', ".." or $".." here?  Then it is read. */
static bool quotes(struct reader *r, struct build *b)
{
	size_t pos = r->s.pos;
	int c = r->s.t[pos];
	bool dollar = c == '$';

	if (dollar)
		c = rd_after(r, pos + 1, &pos);
	if (c != '\'' && c != '"')
		return false;
	if (c == '\'')
		gather(r, b, QUOTED);
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
	gather(r, b, QUOTED);
	if (r->s.pos + 1 < r->s.end)
		r->s.pos++;
	take(r, b, QUOTED, 1);
	while ((rd_peek(r, r->s.pos) & 0xc0) == 0x80 && r->s.pos < r->s.end) /* all of the character */
		take(r, b, QUOTED, 1);
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
	flush(r, b);
	for (size_t i = from + 1; i < end; i++)
		if (r->s.t[i] != '\\' && r->s.t[i] != '\n')
			rd_put(r, r->s.t[i]);
	r->s.pos = end;
	p = add_part(r, b, SH_TILDE, from);
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
	take(r, b, PLAIN, 1);
	if (tilde_here && rd_cur(r) == '~' && !tilde(r, b, kind))
		take(r, b, PLAIN, 1);
}

/* Quotes, a backslash, an expansion: what is the same in all unquoted words.  False: something else is here. */
static bool common(struct reader *r, struct build *b, int c)
{
	if (c == '\\')
		strong_backslash(r, b);
	else if (c == '\'' || c == '"')
		(void)quotes(r, b);
	else if (c == '`')
		expand(r, b, false);
	else if (c == '$' && !quotes(r, b))
		expand(r, b, false);
	else if (c != '$')
		return false;
	return true;
}

static bool process_here(struct reader *r, struct build *b, int c)
{
	size_t paren;

	if ((c != '<' && c != '>') || rd_after(r, r->s.pos + 1, &paren) != '(')
		return false;
	process(r, b, paren);
	return true;
}

/* A word of a command, as far as it goes. */
static void ordinary(struct reader *r, struct build *b, enum word_kind kind)
{
	int c = rd_cur(r);

	b->tilde_after_colon = kind == WORD_VALUE;
	if (c == '~')
		(void)(tilde(r, b, kind) || (take(r, b, PLAIN, 1), true));
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

	flush(r, b);
	for (size_t i = 0; i < n; i++) {
		(void)rd_cur(r);
		rd_put(r, r->s.t[r->s.pos++]);
	}
	p = add_part(r, b, SH_GLOB, from);
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
		(void)(tilde(r, b, WORD_PATTERN) || (take(r, b, PLAIN, 1), true));
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
			take(r, b, PLAIN, 1);
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
			take(r, b, PLAIN, 1);
			continue;
		}
		if (c == '$' && next != '{' && next != '(' && !rd_name_char(next) && !special(next) && next != '"' && next != '\'')
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
		take(r, b, PLAIN, 1);
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
		(void)(tilde(r, b, kind) || (take(r, b, PLAIN, 1), true));
	while ((c = rd_cur(r)) >= 0 && c != '}' && !(c == '/' && kind == WORD_REPLACE)) {
		if (common(r, b, c) || process_here(r, b, c))
			continue;
		note(b, c, 0);
		take(r, b, PLAIN, 1);
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
			take(r, b, QUOTED, (size_t)(end - at) + 1);
		} else if (c == '$' && rd_after(r, r->s.pos + 1, NULL) == '\'') {
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "$' within \"${..}\"");
		} else if (c == '$' && rd_after(r, r->s.pos + 1, NULL) == '"') {
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "$\" within \"${..}\"");
		} else if ((c == '<' || c == '>') && rd_after(r, r->s.pos + 1, NULL) == '(') {
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "%c( within \"${..}\"", c);
		} else if (c == '$' || c == '`') {
			expand(r, b, true);
		} else {
			take(r, b, QUOTED, 1);
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
		take(r, b, PLAIN, 1);
	}
}

struct sh_word *rd_word(struct reader *r, enum word_kind kind)
{
	size_t from = r->s.pos;
	struct sh_word *w;
	struct build b;

	start(&b);
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
	w = finish(r, &b, from);
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

	start(&b);
	b.here = true;
	if (r->s.pos == r->s.end)
		gather(r, &b, QUOTED);
	if (quoted)
		take(r, &b, QUOTED, r->s.end - r->s.pos);
	while ((c = rd_peek(r, r->s.pos)) >= 0) {
		if (c == '\\')
			weak_backslash(r, &b, "$`\\");
		else if (c == '$' || c == '`')
			expand(r, &b, true);
		else
			take(r, &b, QUOTED, 1);
	}
	return finish(r, &b, from);
}

/* ---- arithmetic ---- */

/* One expansion within an expression, as a word of its own. */
static void expression_part(struct reader *r, struct sh_word ***tail)
{
	size_t from = r->s.pos;
	struct sh_word *w;
	struct build b;

	start(&b);
	r->late++; /* bash counts parentheses here, and looks at ${..} later */
	expand(r, &b, true);
	r->late--;
	w = finish(r, &b, from);
	if (!w || w->parts->kind == SH_QUOTED)
		return;
	**tail = w;
	*tail = &w->next;
}

static void refuse_parens(struct reader *r, size_t from)
{
	if (rd_peek(r, from + 1) != '{')
		return;
	for (size_t i = from; i < r->s.pos; i++)
		if (strchr("()'\"\\", r->s.t[i]))
			rd_fail(r, CS_E_UNSUPPORTED, i, "a quote or parenthesis within ${ in arithmetic");
}

const char *rd_arith(struct reader *r, const char *close, struct sh_word **ret_words)
{
	size_t from = r->s.pos, depth = 0, at;
	char open = *close == ')' ? '(' : '[';
	bool quoted = false;
	const char *text;
	int c;

	rd_enter(r);
	for (;;) {
		at = r->s.pos;
		c = rd_peek(r, at);
		if (c < 0)
			rd_fail(r, CS_E_INVALID, from, "no closing %s of arithmetic", close);
		if (c == '\\') {
			int next = rd_peek(r, at + 1);

			if (next == '$' || next == '`')
				rd_fail(r, CS_E_UNSUPPORTED, at, "a backslash in arithmetic may not protect what follows");
			r->s.pos += next < 0 ? 1 : 2;
			continue;
		}
		if (c == '$' && (rd_after(r, at + 1, NULL) == '\'' || rd_after(r, at + 1, NULL) == '"') && !quoted)
			rd_fail(r, CS_E_UNSUPPORTED, at, "$' or $\" in arithmetic");
		if (c == '$' || c == '`') {
			expression_part(r, &ret_words);
			refuse_parens(r, at);
			continue;
		}
		if (c == '\'' && !quoted) {
			const char *end = memchr(r->s.t + at + 1, '\'', r->s.end - at - 1);
			size_t len = end ? (size_t)(end - r->s.t) - at : 0;

			if (!end)
				rd_fail(r, CS_E_INVALID, at, "no closing '");
			if (memchr(r->s.t + at, '$', len) || memchr(r->s.t + at, '`', len))
				rd_fail(r, CS_E_UNSUPPORTED, at, "' ' in arithmetic may not protect what is in it");
			r->s.pos = at + len + 1;
			continue;
		}
		if (c == '"') {
			quoted = !quoted;
		} else if (!quoted && c == open) {
			depth++;
		} else if (!quoted && c == *close) {
			if (!depth)
				break;
			depth--;
		}
		r->s.pos++;
	}
	text = rd_copy(r, r->s.t + from, at - from);
	if (strncmp(r->s.t + at, close, r->s.end - at < strlen(close) ? r->s.end - at : strlen(close)) != 0)
		rd_fail(r, CS_E_UNSUPPORTED, at, "where arithmetic ends is not certain");
	r->s.pos = at + strlen(close);
	rd_leave(r);
	return text;
}

/* ---- assignments ---- */

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

	a->name = param_name(r);
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
