/* SPDX-License-Identifier: Apache-2.0 */
/* lex.c - tokens, and what every part of the loader needs: errors, memory, names. */
#include "rules/internal.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fail_with(struct parser *p, enum cs_code code, struct rl_pos pos, const char *fmt, va_list ap)
{
	char what[640], name[96];

	if (p->failed)
		return;
	p->failed = true;
	vsnprintf(what, sizeof what, fmt, ap);
	cs_fail(p->err, code, 0, "%s:%u:%u: %s", cs_escape_to(name, sizeof name, p->name), pos.line, pos.column, what);
	p->tok = (struct token){ .kind = TK_END, .pos = pos, .start = p->end, .text = "" };
	p->at = p->end;
}

void rl_fail(struct parser *p, struct rl_pos pos, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_with(p, CS_E_INVALID, pos, fmt, ap);
	va_end(ap);
}

void rl_fail_limit(struct parser *p, struct rl_pos pos, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_with(p, CS_E_LIMIT, pos, fmt, ap);
	va_end(ap);
}

/* Once per place and text. */
void rl_warn(struct parser *p, struct rl_pos pos, const char *fmt, ...)
{
	struct rules_warning *v = p->r->warnings;
	char text[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	for (uint32_t i = 0, n = p->r->n_warnings; i < n && i < 16; i++)
		if (v[n - 1 - i].line == pos.line && !strcmp(v[n - 1 - i].text, text))
			return;
	v = rl_grow(p, v, p->r->n_warnings, sizeof *v);
	if (p->failed || !v)
		return;
	p->r->warnings = v;
	v += p->r->n_warnings++;
	*v = (struct rules_warning){ pos.line, pos.column, cs_arena_dup(p->a, text, strlen(text)) };
	if (!v->text)
		v->text = "";
}

void *rl_get(struct parser *p, size_t n, size_t size)
{
	void *v = cs_arena_get(p->a, n, size);

	if (!v)
		rl_fail_limit(p, p->tok.pos, "the file needs too much memory; write fewer rules or smaller tool sets");
	return v;
}

void *rl_grow(struct parser *p, void *v, uint32_t n, size_t size)
{
	void *wider;

	if (n & (n - 1) || (n == 0 && v))
		return v;
	wider = rl_get(p, n ? (size_t)n * 2 : 1, size);
	if (wider && n)
		memcpy(wider, v, n * size);
	return wider;
}

bool rl_enter(struct parser *p)
{
	if (++p->nesting <= RL_MAX_NESTING)
		return true;
	rl_fail_limit(p, p->tok.pos, "nested deeper than %d; split the rule", RL_MAX_NESTING);
	return false;
}

void rl_leave(struct parser *p)
{
	p->nesting--;
}

const char *rl_escape(struct parser *p, const char *s)
{
	char out[160];

	cs_escape_to(out, sizeof out, s);
	s = cs_arena_dup(p->a, out, strlen(out));
	return s ? s : "?";
}

const char *rl_suggest(struct parser *p, const char *word, const char *const *names, size_t n)
{
	const char *near = cs_nearest(word, names, n);
	char out[200], shown[160];

	if (!near)
		return "";
	snprintf(out, sizeof out, "; did you mean `%s`?", cs_escape_to(shown, sizeof shown, near));
	near = cs_arena_dup(p->a, out, strlen(out));
	return near ? near : "";
}

/* ---- names ---- */

static uint32_t hash_of(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

static struct rl_map_slot *slot_of(struct rl_map_slot *slots, uint32_t cap, const char *name)
{
	uint32_t i = hash_of(name) & (cap - 1);

	while (slots[i].name && strcmp(slots[i].name, name) != 0)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

bool rl_map_find(const struct rl_map *m, const char *name, uint32_t *ret)
{
	const struct rl_map_slot *s = m->cap ? slot_of(m->slots, m->cap, name) : NULL;

	if (!s || !s->name)
		return false;
	if (ret)
		*ret = s->index;
	return true;
}

void rl_map_add(struct parser *p, struct rl_map *m, const char *name, uint32_t index)
{
	if (m->n * 2 >= m->cap) {
		uint32_t cap = m->cap ? m->cap * 2 : 16;
		struct rl_map_slot *wider = rl_get(p, cap, sizeof *wider);

		if (!wider)
			return;
		for (uint32_t i = 0; i < m->cap; i++)
			if (m->slots[i].name)
				*slot_of(wider, cap, m->slots[i].name) = m->slots[i];
		m->slots = wider;
		m->cap = cap;
	}
	*slot_of(m->slots, m->cap, name) = (struct rl_map_slot){ name, index };
	m->n++;
}

/* ---- tokens ---- */

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The text is UTF-8: a character is a byte that continues none. */
static void step(struct parser *p)
{
	if (*p->at == '\n') {
		p->at_pos.line++;
		p->at_pos.column = 1;
	} else if (((unsigned char)*p->at & 0xc0) != 0x80) {
		p->at_pos.column++;
	}
	p->at++;
}

static char peek(const struct parser *p, size_t n)
{
	return (size_t)(p->end - p->at) > n ? p->at[n] : '\0';
}

static void skip_blank(struct parser *p)
{
	for (;;) {
		char c = peek(p, 0);

		if (c == '#')
			while (p->at < p->end && *p->at != '\n')
				step(p);
		else if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
			step(p);
		else
			return;
	}
}

static void finish(struct parser *p, enum token_kind kind, const char *from)
{
	p->tok.kind = kind;
	p->tok.start = from;
	p->tok.len = (size_t)(p->at - from);
	if (kind != TK_PUNCT && kind != TK_STRING) {
		p->tok.text_len = (uint32_t)p->tok.len;
		p->tok.text = cs_arena_dup(p->a, from, p->tok.len);
		if (!p->tok.text)
			rl_get(p, p->a->max, 2); /* says so */
	}
}

static int hex4(const struct parser *p)
{
	int v = 0;

	for (size_t i = 0; i < 4; i++) {
		char c = peek(p, i);
		int d = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

static void skip(struct parser *p, size_t n)
{
	while (n--)
		step(p);
}

/* Behind \u. Never longer than its source. */
static size_t unicode_escape(struct parser *p, struct rl_pos pos, char *out)
{
	int hi = hex4(p), lo;

	if (hi < 0 || (hi >= 0xdc00 && hi < 0xe000)) {
		rl_fail(p, pos, "\\u needs four hexadecimal digits that are a character");
		return 0;
	}
	skip(p, 4);
	if (hi < 0xd800 || hi >= 0xdc00)
		return put_utf8(out, (uint32_t)hi);
	if (peek(p, 0) == '\\' && peek(p, 1) == 'u') {
		skip(p, 2);
		lo = hex4(p);
		if (lo >= 0xdc00 && lo < 0xe000) {
			skip(p, 4);
			return put_utf8(out, 0x10000 + ((uint32_t)(hi - 0xd800) << 10) + (uint32_t)(lo - 0xdc00));
		}
	}
	rl_fail(p, pos, "\\u%04x is half of a surrogate pair; the other half must follow", (unsigned)hi);
	return 0;
}

static size_t escape(struct parser *p, char *out)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	struct rl_pos pos = p->at_pos;
	const char *known;
	char c;

	step(p);
	c = peek(p, 0);
	if (c == 'u') {
		step(p);
		return unicode_escape(p, pos, out);
	}
	known = c ? strchr(names, c) : NULL;
	if (!known) {
		rl_fail(p, pos, "unknown escape in a string; JSON's are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX (a backslash of a pattern is written \\\\)");
		return 0;
	}
	step(p);
	*out = values[known - names];
	return 1;
}

static void lex_string(struct parser *p)
{
	const char *from = p->at, *close = p->at + 1;
	size_t n = 0;
	char *out;

	while (close < p->end && *close != '"' && *close != '\n')
		close += *close == '\\' && close + 1 < p->end ? 2 : 1;
	if (close >= p->end || *close != '"') {
		rl_fail(p, p->tok.pos, "this string does not end on its line; close it with \"");
		return;
	}
	out = rl_get(p, (size_t)(close - from) + 1, 1);
	step(p);
	while (!p->failed && p->at < close) {
		if (*p->at == '\\') {
			n += escape(p, out + n);
		} else if ((unsigned char)*p->at < 0x20) {
			rl_fail(p, p->at_pos, "a control character in a string; write it as \\u%04x", (unsigned char)*p->at);
		} else {
			out[n++] = *p->at;
			step(p);
		}
	}
	if (p->failed)
		return;
	step(p);
	finish(p, TK_STRING, from);
	p->tok.text = out;
	p->tok.text_len = (uint32_t)n;
}

static void lex_number(struct parser *p)
{
	const char *from = p->at;
	bool zero = peek(p, 0) == '0';
	size_t digits = 0;
	enum token_kind kind = TK_NUMBER;

	for (; is_digit(peek(p, 0)); digits++)
		step(p);
	if (zero && digits > 1) {
		rl_fail(p, p->tok.pos, "a number does not begin with 0; leave the zero out");
		return;
	}
	if (peek(p, 0) == '.' && is_digit(peek(p, 1)))
		for (step(p); is_digit(peek(p, 0));)
			step(p);
	if ((peek(p, 0) | 32) == 'e' && (is_digit(peek(p, 1)) || ((peek(p, 1) == '-' || peek(p, 1) == '+') && is_digit(peek(p, 2)))))
		for (skip(p, 2); is_digit(peek(p, 0));)
			step(p);
	for (; is_alpha(peek(p, 0)) || (kind == TK_DURATION && is_digit(peek(p, 0))); kind = TK_DURATION)
		step(p);
	finish(p, kind, from);
}

static void lex_punct(struct parser *p)
{
	static const char pairs[][3] = { "==", "!=", "<=", ">=", "->" };
	const char *from = p->at;
	char c = peek(p, 0), d = peek(p, 1), shown[16];

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		if (c == pairs[i][0] && d == pairs[i][1]) {
			skip(p, 2);
			p->tok.op = RL_TWO(c, d);
			finish(p, TK_PUNCT, from);
			return;
		}
	if (!strchr("(){}[],;:.=<>~+-*?|", c)) {
		char one[5] = { 0 };

		for (size_t i = 0; i < 4 && (i == 0 || ((unsigned char)peek(p, i) & 0xc0) == 0x80); i++)
			one[i] = peek(p, i);
		rl_fail(p, p->tok.pos, "unexpected character `%s`%s", cs_escape_to(shown, sizeof shown, one),
			c == '\'' ? "; strings are written in \"double quotes\"" :
			c == '&' ? "; write `and`" : c == '!' ? "; write `not`" : c == '/' ? "; a comment begins with #" : "");
		return;
	}
	if (c == '|' && d == '|') {
		rl_fail(p, p->tok.pos, "unexpected `||`; write `or`");
		return;
	}
	step(p);
	p->tok.op = (unsigned char)c;
	finish(p, TK_PUNCT, from);
}

void rl_next(struct parser *p)
{
	const char *from;
	char c;

	if (p->failed)
		return;
	p->last_end = p->at_pos;
	skip_blank(p);
	p->tok = (struct token){ .kind = TK_END, .pos = p->at_pos, .start = p->at, .text = "" };
	if (p->at >= p->end)
		return;
	c = *p->at;
	from = p->at;
	if (is_alpha(c)) {
		while (is_alpha(peek(p, 0)) || is_digit(peek(p, 0)))
			step(p);
		finish(p, TK_NAME, from);
	} else if (is_digit(c)) {
		lex_number(p);
	} else if (c == '"') {
		lex_string(p);
	} else {
		lex_punct(p);
	}
}

void rl_retake_word(struct parser *p)
{
	if (p->failed || p->tok.kind == TK_END || p->tok.kind == TK_STRING)
		return;
	p->at = p->tok.start;
	p->at_pos = p->tok.pos;
	for (;;) {
		char c = peek(p, 0);

		if (!is_alpha(c) && !is_digit(c) && !(c && strchr("*?./", c)) && !(c == '-' && peek(p, 1) != '>'))
			break;
		step(p);
	}
	if (p->at == p->tok.start) { /* no word: as it was */
		p->at = p->tok.start + p->tok.len;
		p->at_pos.column += (uint32_t)p->tok.len;
		return;
	}
	finish(p, TK_NAME, p->tok.start);
}

bool rl_is(const struct parser *p, int op)
{
	return p->tok.kind == TK_PUNCT && p->tok.op == op;
}

bool rl_is_word(const struct parser *p, const char *word)
{
	return p->tok.kind == TK_NAME && p->tok.text && !strcmp(p->tok.text, word);
}

bool rl_take(struct parser *p, int op)
{
	bool is = rl_is(p, op);

	if (is)
		rl_next(p);
	return is;
}

bool rl_take_word(struct parser *p, const char *word)
{
	bool is = rl_is_word(p, word);

	if (is)
		rl_next(p);
	return is;
}

const char *rl_show_token(const struct parser *p, char *dst, size_t size)
{
	char raw[48], shown[64];
	size_t n = p->tok.len < sizeof raw - 1 ? p->tok.len : sizeof raw - 1;

	if (p->tok.kind == TK_END) {
		snprintf(dst, size, "the end of the file");
		return dst;
	}
	memcpy(raw, p->tok.start, n);
	raw[n] = '\0';
	snprintf(dst, size, "`%s`", cs_escape_to(shown, sizeof shown, raw));
	return dst;
}

void rl_expect(struct parser *p, int op, const char *where)
{
	char got[80], want[3] = { (char)(op & 255), (char)(op >> 8), 0 };

	if (rl_take(p, op))
		return;
	rl_show_token(p, got, sizeof got);
	/* A statement that was not ended is found at the next one; what is to be mended is before. */
	if (op == ';')
		rl_fail(p, p->last_end, "expected `;` %s, got %s", where, got);
	else
		rl_fail(p, p->tok.pos, "expected `%s` %s, got %s", want, where, got);
}

void rl_expect_word(struct parser *p, const char *word, const char *where)
{
	char got[80];

	if (!rl_take_word(p, word))
		rl_fail(p, p->tok.pos, "expected `%s` %s, got %s", word, where, rl_show_token(p, got, sizeof got));
}
