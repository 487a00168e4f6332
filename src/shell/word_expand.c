/* SPDX-License-Identifier: Apache-2.0 */
/* word_expand.c - what is expanded in a word: $(..) `..` <(..), $x and ${..}. */
#include "shell/word.h"

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
	struct sh_part *p = wd_part(r, b, SH_COMMAND, from);

	p->script = s;
	p->quoted = quoted;
}

static void arithmetic(struct reader *r, struct build *b, bool quoted, size_t from, const char *close)
{
	struct sh_word *words = NULL;
	const char *text = rd_arith(r, close, &words);
	struct sh_part *p = wd_part(r, b, SH_ARITH, from);

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
	p = wd_part(r, b, SH_COMMAND, from);
	p->script = s;
	p->quoted = quoted;
	p->backtick = true;
}

void wd_process(struct reader *r, struct build *b, size_t paren)
{
	size_t from = r->s.pos;
	struct sh_script *s;
	struct sh_part *p;

	wd_flush(r, b);
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
	p = wd_part(r, b, SH_PROCESS, from);
	p->script = s;
	p->direction = r->s.t[from];
}

/* ---- parameters ---- */

bool wd_special(int c)
{
	return c > 0 && strchr("@*#?-$!", c);
}

const char *wd_name(struct reader *r)
{
	int c = rd_cur(r);
	const char *name;

	if (rd_name_start(c)) {
		for (; rd_name_char(c); c = rd_cur(r))
			rd_put(r, r->s.t[r->s.pos++]);
	} else if (rd_digit(c)) {
		for (; rd_digit(c); c = rd_cur(r))
			rd_put(r, r->s.t[r->s.pos++]);
	} else if (wd_special(c)) {
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
	if (!rd_name_char(next) && !(wd_special(next) && closes && (c == '#' || next == '#' || next == '@' || next == '*')))
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
	p->name = wd_name(r);
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
	struct sh_part *p = wd_part(r, b, SH_PARAM, from);

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
		p->name = wd_name(r);
	} else {
		p->name = rd_copy(r, one, 1);
		r->s.pos++;
	}
	param_part(r, b, quoted, from, p)->bare = true;
}

/* At '$' or '`'. */
void wd_expand(struct reader *r, struct build *b, bool quoted)
{
	size_t from = r->s.pos, pos, second;
	int c;

	if (r->s.t[from] == '`') {
		wd_flush(r, b);
		backtick(r, b, quoted, b->here);
		return;
	}
	c = rd_after(r, from + 1, &pos);
	if (c == '(' || c == '{' || c == '[' || rd_name_char(c) || wd_special(c)) {
		wd_flush(r, b);
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
	} else if (rd_name_char(c) || wd_special(c)) {
		simple_param(r, b, quoted, from);
	} else {
		b->lone_dollar = b->lone_dollar || !quoted;
		wd_take(r, b, QUOTED, 1);
	}
}
