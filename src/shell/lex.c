/* SPDX-License-Identifier: Apache-2.0 */
/* lex.c - the bytes of a script: what may not be in one, blanks, newlines, quotes, here-documents. */
#include "shell/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void rd_fail(struct reader *r, enum cs_code code, size_t pos, const char *fmt, ...)
{
	char msg[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	if (pos > r->s.end)
		pos = r->s.end;
	if (r->late && code == CS_E_INVALID)
		code = CS_E_UNSUPPORTED;
	r->code = code;
	r->at = r->s.map ? r->s.map[pos] : pos;
	(void)cs_fail(r->err, code, 0, "%s", msg);
	longjmp(r->out, 1);
}

void *rd_room(struct reader *r, size_t size)
{
	void *p = sh_arena_take(r->arena, size);

	if (!p)
		rd_fail(r, CS_E_LIMIT, r->s.pos, "out of memory");
	return p;
}

void *rd_new(struct reader *r, size_t size)
{
	if (++r->nodes > SH_NODES_MAX)
		rd_fail(r, CS_E_LIMIT, r->s.pos, "more than %d parts", SH_NODES_MAX);
	return rd_room(r, size);
}

char *rd_copy(struct reader *r, const char *text, size_t len)
{
	char *p = rd_room(r, len + 1);

	if (len)
		memcpy(p, text, len);
	return p;
}

void rd_enter(struct reader *r)
{
	if (++r->depth > SH_DEPTH_MAX)
		rd_fail(r, CS_E_LIMIT, r->s.pos, "nested more than %d deep", SH_DEPTH_MAX);
}

void rd_pay(struct reader *r, size_t bytes)
{
	if (bytes > r->work)
		rd_fail(r, CS_E_LIMIT, r->s.pos, "too much has to be read again and again");
	r->work -= bytes;
}

struct sh_place rd_place(const struct reader *r, size_t from, size_t to)
{
	size_t a = from < r->s.end ? from : r->s.end, b = to < r->s.end ? to : r->s.end;

	if (r->s.map) {
		a = r->s.map[a];
		b = r->s.map[b];
	}
	return (struct sh_place){ .at = (uint32_t)a, .len = (uint32_t)(b > a ? b - a : 0) };
}

void rd_put(struct reader *r, char c)
{
	if (r->n == r->room) {
		size_t room = r->room ? r->room * 2 : 256;
		char *p = realloc(r->scratch, room);

		if (!p)
			rd_fail(r, CS_E_LIMIT, r->s.pos, "out of memory");
		r->scratch = p;
		r->room = room;
	}
	r->scratch[r->n++] = c;
}

/* 0, or the length of the character at s and its code point. */
static size_t decode(const unsigned char *s, size_t len, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : (s[0] & 0xf8) == 0xf0 ? 4 : 0;
	uint32_t u;

	if (!n || n > len)
		return 0;
	u = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		u = u << 6 | (s[i] & 0x3f);
	}
	if (u < least[n] || u > 0x10ffff || (u >= 0xd800 && u <= 0xdfff))
		return 0;
	*ret = u;
	return n;
}

/* Characters that are not seen, or that change how others are seen: what a person approves must be what runs. */
static const char *hidden(uint32_t u)
{
	if (u < 0x20 || (u >= 0x7f && u < 0xa0))
		return u == '\t' || u == '\n' || u == '\r' ? NULL : "control character";
	if ((u >= 0x202a && u <= 0x202e) || (u >= 0x2066 && u <= 0x2069) || u == 0x200e || u == 0x200f || u == 0x61c)
		return "bidirectional control";
	if ((u >= 0x200b && u <= 0x200d) || (u >= 0x2060 && u <= 0x2064) || u == 0xfeff || u == 0xad || u == 0x180e || u == 0x34f)
		return "zero-width character";
	if (u == 0x2028 || u == 0x2029 || u == 0x115f || u == 0x1160 || u == 0x3164 || u == 0xffa0 || (u >= 0xe0000 && u <= 0xe007f))
		return "invisible character";
	return NULL;
}

void rd_check_text(struct reader *r)
{
	const unsigned char *t = (const unsigned char *)r->s.t;
	const char *why;
	uint32_t u = 0;
	size_t n;

	for (size_t i = 0; i < r->s.end; i += n) {
		n = 1;
		if (t[i] >= 0x20 && t[i] < 0x7f)
			continue;
		if (!t[i])
			rd_fail(r, CS_E_UNSUPPORTED, i, "a NUL byte");
		n = decode(t + i, r->s.end - i, &u);
		if (!n)
			rd_fail(r, CS_E_UNSUPPORTED, i, "byte 0x%02x is not UTF-8", t[i]);
		why = hidden(u);
		if (why)
			rd_fail(r, CS_E_UNSUPPORTED, i, "U+%04X, a %s", u, why);
	}
}

bool rd_shown(const char *text, size_t len)
{
	const unsigned char *t = (const unsigned char *)text;
	uint32_t u = 0;

	for (size_t i = 0, n; i < len; i += n) {
		n = decode(t + i, len - i, &u);
		if (!n || hidden(u))
			return false;
	}
	return true;
}

bool rd_is_name(const char *s, size_t len)
{
	if (!len || !rd_name_start((unsigned char)s[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!rd_name_char((unsigned char)s[i]))
			return false;
	return true;
}

void rd_blanks(struct reader *r)
{
	int c;

	while ((c = rd_cur(r)) == ' ' || c == '\t')
		r->s.pos++;
	if (c == '#')
		while (r->s.pos < r->s.end && r->s.t[r->s.pos] != '\n')
			r->s.pos++;
}

size_t rd_bare(const struct reader *r, char *dst, size_t size, size_t *ret_end)
{
	size_t pos = r->s.pos, n = 0;
	int c;

	while (!rd_is_break(c = rd_after(r, pos, &pos))) {
		if (c == '\'' || c == '"' || c == '\\' || c == '$' || c == '`' || n + 1 >= size)
			return 0;
		dst[n++] = (char)c;
		pos++;
	}
	/* a<(b) is one word */
	if ((c == '<' || c == '>') && rd_after(r, pos + 1, NULL) == '(')
		return 0;
	dst[n] = '\0';
	if (ret_end)
		*ret_end = pos;
	return n;
}

void rd_single(struct reader *r)
{
	const char *from = r->s.t + r->s.pos, *end = memchr(from, '\'', r->s.end - r->s.pos);

	if (!end)
		rd_fail(r, CS_E_INVALID, r->s.pos, "no closing '");
	for (; from < end; from++)
		rd_put(r, *from);
	r->s.pos = (size_t)(end - r->s.t) + 1;
}

static int hex(int c)
{
	return rd_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void put_utf8(struct reader *r, uint32_t u)
{
	if (u < 0x80) {
		rd_put(r, (char)u);
	} else if (u < 0x800) {
		rd_put(r, (char)(0xc0 | u >> 6));
		rd_put(r, (char)(0x80 | (u & 0x3f)));
	} else if (u < 0x10000) {
		rd_put(r, (char)(0xe0 | u >> 12));
		rd_put(r, (char)(0x80 | (u >> 6 & 0x3f)));
		rd_put(r, (char)(0x80 | (u & 0x3f)));
	} else {
		rd_put(r, (char)(0xf0 | u >> 18));
		rd_put(r, (char)(0x80 | (u >> 12 & 0x3f)));
		rd_put(r, (char)(0x80 | (u >> 6 & 0x3f)));
		rd_put(r, (char)(0x80 | (u & 0x3f)));
	}
}

/* \u or \x and so on, after the letter: its digits, at most `most`.  Returns how many there were. */
static int digits(struct reader *r, int most, uint32_t *ret)
{
	uint32_t u = 0;
	int n = 0, d;

	while (n < most && (d = hex(rd_peek(r, r->s.pos))) >= 0) {
		u = u << 4 | (uint32_t)d;
		r->s.pos++;
		n++;
	}
	*ret = u;
	return n;
}

static void unicode_escape(struct reader *r, int c)
{
	size_t at = r->s.pos;
	uint32_t u;

	if (!digits(r, c == 'u' ? 4 : 8, &u)) {
		rd_put(r, '\\');
		rd_put(r, (char)c);
		return;
	}
	if (!u || u > 0x10ffff || (u >= 0xd800 && u <= 0xdfff))
		rd_fail(r, CS_E_UNSUPPORTED, at, "\\%c%X in $'..' is no character", c, u);
	put_utf8(r, u);
}

/* One escape, after the backslash.  False: a NUL, which ends the text for bash. */
static bool escape(struct reader *r)
{
	static const char from[] = "abeEfnrtv\\'\"?", to[] = "\a\b\033\033\f\n\r\t\v\\'\"?";
	int c = rd_peek(r, r->s.pos++), d;
	const char *known = c > 0 ? strchr(from, c) : NULL;
	uint32_t u = 0;

	if (known) {
		rd_put(r, to[known - from]);
		return true;
	}
	if (c >= '0' && c <= '7') {
		u = (uint32_t)(c - '0');
		for (int i = 0; i < 2 && (d = rd_peek(r, r->s.pos)) >= '0' && d <= '7'; i++, r->s.pos++)
			u = u << 3 | (uint32_t)(d - '0');
		u &= 0xff;
	} else if (c == 'x') {
		if (rd_peek(r, r->s.pos) == '{')
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "\\x{ in $'..'");
		if (!digits(r, 2, &u)) {
			rd_put(r, '\\');
			u = 'x';
		}
	} else if (c == 'u' || c == 'U') {
		unicode_escape(r, c);
		return true;
	} else if (c == 'c') {
		c = rd_peek(r, r->s.pos++);
		if (c < 0x20 || c > 0x7e || c == '\\' || c == '\'')
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "\\c without a letter in $'..'");
		if (c >= 'a' && c <= 'z')
			c -= 'a' - 'A';
		u = c == '?' ? 0x7f : (uint32_t)c & 0x1f;
	} else {
		rd_put(r, '\\');
		u = (uint32_t)c;
	}
	if (!u)
		return false;
	rd_put(r, (char)u);
	return true;
}

/* After $': what it means, into scratch. */
void rd_dollar_quote(struct reader *r)
{
	size_t keep = 0, at = r->s.pos;
	bool ended = false;
	int c;

	while ((c = rd_peek(r, r->s.pos++)) != '\'') {
		if (c < 0 || (c == '\\' && r->s.pos >= r->s.end))
			rd_fail(r, CS_E_INVALID, at, "no closing ' of $'");
		if (c != '\\') {
			rd_put(r, (char)c);
		} else if (!escape(r) && !ended) {
			ended = true;
			keep = r->n;
		}
	}
	if (ended)
		r->n = keep;
}

/* The index after the quote that ends what begins at pos, for rd_close_paren(). */
static size_t skip_quote(const struct reader *r, size_t pos, int quote, bool escapes)
{
	for (int c; (c = rd_peek(r, pos)) >= 0; pos++) {
		if (c == quote)
			return pos + 1;
		if (c == '\\' && escapes)
			pos++;
	}
	return SIZE_MAX;
}

/* One byte within a pair; *top is what it stands in.  Returns the index to go on at. */
static size_t pair_step(const struct reader *r, size_t pos, char *stack, size_t *top)
{
	int c = rd_peek(r, pos), next = rd_peek(r, pos + 1);
	char in = stack[*top - 1];

	if (c == '\\')
		return pos + 2;
	if (c == '`')
		return skip_quote(r, pos + 1, '`', true);
	if (c == '\'' && in != '"')
		return skip_quote(r, pos + 1, '\'', pos && r->s.t[pos - 1] == '$');
	if ((in == '(' && c == ')') || (in == '{' && c == '}') || (in == '"' && c == '"')) {
		--*top;
	} else if (*top < SH_DEPTH_MAX + 1) {
		if (c == '"' || (c == '(' && in == '(')) {
			stack[(*top)++] = (char)c;
		} else if (c == '$' && in != '(' && (next == '(' || next == '{')) {
			stack[(*top)++] = (char)next;
			return pos + 2;
		}
	}
	return pos + 1;
}

size_t rd_close_paren(struct reader *r, size_t pos)
{
	char stack[SH_DEPTH_MAX + 2] = "(";
	size_t top = 1, from = pos;

	while (pos < r->s.end) {
		size_t next = pair_step(r, pos, stack, &top);

		if (!top || next >= r->s.end) {
			rd_pay(r, (next > r->s.end ? r->s.end : next) - from);
			return top ? SIZE_MAX : pos;
		}
		pos = next;
	}
	return SIZE_MAX;
}

/* rd_close_paren() found none.  It does not look into $(..), where a here-document or a comment can hide what it counts. */
void rd_no_close(struct reader *r, size_t from, const char *what)
{
	bool certain = !memmem(r->s.t + from + 2, r->s.end - from - 2, "$(", 2);

	rd_fail(r, certain ? CS_E_INVALID : CS_E_UNSUPPORTED, from, "no closing )) of %s", what);
}

/* bash joins lines as it counts parentheses, and only then reads commands: a comment would go on. */
void rd_refuse_continuation(struct reader *r, size_t from, size_t to)
{
	const char *at = memmem(r->s.t + from, to - from, "\\\n", 2);

	if (at)
		rd_fail(r, CS_E_UNSUPPORTED, (size_t)(at - r->s.t), "a line that goes on within (( that is no arithmetic");
}

/* One line of a here-document as bash sees it: over newlines that a backslash hides.  Sets where it ends (at its newline) and
 * whether it is the delimiter. */
struct line {
	size_t from, end;
	bool joined, last;
};

static void read_line(const struct reader *r, const struct sh_redirect *d, size_t pos, struct line *l)
{
	const char *want = d->delimiter;
	size_t n = 0, len = strlen(want);
	bool same = true;
	int c;

	*l = (struct line){ .from = pos };
	if (d->heredoc_tabs)
		while (rd_peek(r, pos) == '\t')
			pos++;
	for (;; pos++) {
		c = rd_peek(r, pos);
		if (c == '\\' && !d->heredoc_quoted) {
			if (rd_peek(r, pos + 1) == '\n') {
				l->joined = true;
				pos++;
				continue;
			}
			if (rd_peek(r, pos + 1) >= 0) {
				/* the character after it is not looked at: "\\" before a newline does not hide it */
				for (int i = 0; i < 2; i++) {
					same = same && n < len && want[n] == r->s.t[pos + (size_t)i];
					n++;
				}
				pos++;
				continue;
			}
		}
		if (c < 0 || c == '\n')
			break;
		same = same && n < len && want[n] == (char)c;
		n++;
	}
	l->end = pos;
	l->last = same && n == len;
}

/* In $(..), bash also takes "EOF)" as the end, with a warning in some versions. */
static void refuse_closing(struct reader *r, const struct sh_redirect *d, size_t from)
{
	size_t len = strlen(d->delimiter);

	while (d->heredoc_tabs && rd_peek(r, from) == '\t')
		from++;
	if (r->substitutions && r->s.end - from > len && !memcmp(r->s.t + from, d->delimiter, len) && r->s.t[from + len] == ')')
		rd_fail(r, CS_E_UNSUPPORTED, from, "here-document ended by its delimiter and ')' on one line");
}

/* The body with hidden newlines and tabs taken out. */
static struct source plain_body(struct reader *r, const struct sh_redirect *d, size_t from, size_t to)
{
	size_t len = to - from, n = 0;
	uint32_t *map;
	char *t;
	bool start = true;

	rd_pay(r, len);
	t = rd_room(r, len + 1);
	map = rd_room(r, (len + 1) * sizeof *map);
	for (size_t i = from; i < to; i++) {
		char c = r->s.t[i];

		if (d->heredoc_tabs && start && c == '\t')
			continue;
		start = false;
		if (c == '\\' && !d->heredoc_quoted && i + 1 < to) {
			if (r->s.t[++i] == '\n')
				continue;
			map[n] = r->s.map ? r->s.map[i - 1] : (uint32_t)(i - 1);
			t[n++] = c;
			c = r->s.t[i];
		}
		if (c == '\n')
			start = true;
		map[n] = r->s.map ? r->s.map[i] : (uint32_t)i;
		t[n++] = c;
	}
	map[n] = r->s.map ? r->s.map[to] : (uint32_t)to;
	return (struct source){ .t = t, .end = n, .map = map };
}

static void read_here(struct reader *r, struct sh_redirect *d)
{
	size_t from = r->s.pos, pos = from;
	bool change = false;
	struct source outer;
	struct line l;

	for (;; pos = l.end + 1) {
		if (pos >= r->s.end)
			rd_fail(r, CS_E_UNSUPPORTED, from, "here-document without its end, '%.40s'", d->delimiter);
		refuse_closing(r, d, pos);
		read_line(r, d, pos, &l);
		if (l.last)
			break;
		change = change || l.joined || (d->heredoc_tabs && r->s.t[pos] == '\t');
	}
	outer = r->s;
	if (change) {
		r->s = plain_body(r, d, from, pos);
	} else {
		r->s.pos = from;
		r->s.end = pos;
	}
	r->late++;
	d->target = rd_body(r, d->heredoc_quoted);
	r->late--;
	r->s = outer;
	r->s.pos = l.end < r->s.end ? l.end + 1 : r->s.end;
}

/* Whether bash reads a here-document at a new line within an array or [[ ]] depends on how far ahead it has read. */
void rd_refuse_waiting(struct reader *r)
{
	if (r->here && rd_cur(r) == '\n')
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "a new line within an array or [[ ]], and a here-document waiting");
}

bool rd_newline(struct reader *r)
{
	struct pending *p;

	if (rd_cur(r) != '\n')
		return false;
	r->s.pos++;
	while ((p = r->here)) {
		r->here = p->next;
		if (!r->here)
			r->here_end = &r->here;
		read_here(r, p->redirect);
	}
	return true;
}

void rd_newlines(struct reader *r)
{
	do
		rd_blanks(r);
	while (rd_newline(r));
}
