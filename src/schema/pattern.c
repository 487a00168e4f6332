/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - ECMAScript's regular expressions, by PCRE2.
 *
 * A pattern is translated: what means something else in PCRE2, or nothing in
 * ECMAScript, is rewritten or refused, so that no pattern is looser here than
 * its author thinks ("\Z", "(*ACCEPT)", "(?i)").
 *
 * Work is counted: PCRE2 calls back before every item of a pattern, and the
 * distance from where it was the last time is what it did in between.  Its own
 * limits would not do: they start anew at each character of the subject, and
 * do not see how far a repeated character runs.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "schema/internal.h"

#include "base/mem.h"
#include "base/text.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PATTERN_MAX = 4096,
	NEST_MAX = 64,
	MATCH_LIMIT = 1000000,
	DEPTH_LIMIT = 10000,
	HEAP_KIB = 8192,
	CHARS_PER_STEP = 8,
};

struct pattern {
	pcre2_code *code;
	char *text;
	struct pattern *next;
};

struct matcher {
	pcre2_match_data *data;
	pcre2_match_context *context;
	uint32_t *steps;
	size_t last;
};

/* ---- translation ---- */

struct translator {
	const char *p, *end;
	struct cs_buf *out;
	bool in_class, after_quantifier;
	const char *wrong; /* what is wrong, if something is */
};

/* ECMAScript's white space, which is more than ASCII's, and everything else. */
#define SPACES "\\x09-\\x0d\\x20\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}"
#define NO_SPACES                                                                                      \
	"\\x00-\\x08\\x0e-\\x1f\\x21-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}" \
	"\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{d7ff}\\x{e000}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter_or_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* n hexadecimal digits at p; -1 if there are fewer. */
static long hex_at(const struct translator *t, const char *p, int n)
{
	char digits[9] = "";

	if (t->end - p < n)
		return -1;
	for (int i = 0; i < n; i++) {
		if (!is_hex(p[i]))
			return -1;
		digits[i] = p[i];
	}
	return strtol(digits, NULL, 16);
}

static void put_char(struct translator *t, long c)
{
	cs_buf_fmt(t->out, "\\x{%lx}", (unsigned long)c);
}

/* Behind "\u": XXXX, a surrogate pair, or {X...}. */
static void unicode_escape(struct translator *t)
{
	long c = hex_at(t, t->p, 4), low;
	const char *close;

	if (c >= 0) {
		t->p += 4;
		low = t->end - t->p >= 6 && t->p[0] == '\\' && t->p[1] == 'u' ? hex_at(t, t->p + 2, 4) : -1;
		if (c >= 0xd800 && c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
			t->p += 6;
		}
		put_char(t, c);
		return;
	}
	close = t->p < t->end && *t->p == '{' ? memchr(t->p, '}', (size_t)(t->end - t->p)) : NULL;
	c = close && close - t->p > 1 && close - t->p <= 8 ? hex_at(t, t->p + 1, (int)(close - t->p - 1)) : -1;
	if (c < 0) {
		t->wrong = "\\u needs four hexadecimal digits or {...}";
		return;
	}
	t->p = close + 1;
	put_char(t, c);
}

/* PCRE2 knows general categories by their short names only. */
static const char *short_category(const char *name)
{
	static const char *const rows[][2] = {
		{ "Letter", "L" }, { "Cased_Letter", "L&" }, { "Uppercase_Letter", "Lu" }, { "Lowercase_Letter", "Ll" }, { "Titlecase_Letter", "Lt" },
		{ "Modifier_Letter", "Lm" }, { "Other_Letter", "Lo" }, { "Mark", "M" }, { "Nonspacing_Mark", "Mn" }, { "Spacing_Mark", "Mc" },
		{ "Enclosing_Mark", "Me" }, { "Number", "N" }, { "Decimal_Number", "Nd" }, { "digit", "Nd" }, { "Letter_Number", "Nl" }, { "Other_Number", "No" },
		{ "Punctuation", "P" }, { "punct", "P" }, { "Connector_Punctuation", "Pc" }, { "Dash_Punctuation", "Pd" }, { "Open_Punctuation", "Ps" },
		{ "Close_Punctuation", "Pe" }, { "Initial_Punctuation", "Pi" }, { "Final_Punctuation", "Pf" }, { "Other_Punctuation", "Po" },
		{ "Symbol", "S" }, { "Math_Symbol", "Sm" }, { "Currency_Symbol", "Sc" }, { "Modifier_Symbol", "Sk" }, { "Other_Symbol", "So" },
		{ "Separator", "Z" }, { "Space_Separator", "Zs" }, { "Line_Separator", "Zl" }, { "Paragraph_Separator", "Zp" }, { "Other", "C" },
		{ "Control", "Cc" }, { "cntrl", "Cc" }, { "Format", "Cf" }, { "Surrogate", "Cs" }, { "Private_Use", "Co" }, { "Unassigned", "Cn" },
		{ "White_Space", "Xsp" }, { "LC", "L&" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(name, rows[i][0]))
			return rows[i][1];
	return name;
}

/* Behind "\p" or "\P". */
static void property_escape(struct translator *t, char which)
{
	const char *close = t->p < t->end && *t->p == '{' ? memchr(t->p, '}', (size_t)(t->end - t->p)) : NULL;
	char name[64];
	const char *value = name;

	if (!close || close - t->p - 1 >= (long)sizeof name || close - t->p < 2) {
		t->wrong = "\\p needs a name in braces";
		return;
	}
	memcpy(name, t->p + 1, (size_t)(close - t->p - 1));
	name[close - t->p - 1] = '\0';
	for (const char *p = name; *p; p++)
		if (!is_letter_or_digit(*p) && *p != '_' && *p != '=')
			t->wrong = "\\p has a name of letters, digits and _";
	if (!strncmp(name, "General_Category=", 17))
		value += 17;
	else if (!strncmp(name, "gc=", 3))
		value += 3;
	t->p = close + 1;
	cs_buf_fmt(t->out, "\\%c{%s}", which, short_category(value));
}

static void digit_escape(struct translator *t, char c)
{
	bool more = t->p < t->end && *t->p >= '0' && *t->p <= '9';

	if (c == '0' && !more)
		cs_buf_str(t->out, "\\x00");
	else if (c == '0' || t->in_class)
		t->wrong = "an octal escape is none in ECMAScript";
	else
		cs_buf_fmt(t->out, "\\%c", c);
}

static void letter_escape(struct translator *t, char c)
{
	long x;

	if (strchr("dDwWtnrf", c) || c == 'b' || (c == 'B' && !t->in_class)) {
		cs_buf_fmt(t->out, "\\%c", c);
	} else if (c == 's') {
		cs_buf_str(t->out, t->in_class ? SPACES : "[" SPACES "]");
	} else if (c == 'S') {
		cs_buf_str(t->out, t->in_class ? NO_SPACES : "[" NO_SPACES "]");
	} else if (c == 'v') {
		cs_buf_str(t->out, "\\x0b");
	} else if (c == 'u') {
		unicode_escape(t);
	} else if (c == 'p' || c == 'P') {
		property_escape(t, c);
	} else if (c == 'x' && (x = hex_at(t, t->p, 2)) >= 0) {
		t->p += 2;
		put_char(t, x);
	} else if (c == 'c' && t->p < t->end && is_letter_or_digit(*t->p) && *t->p > '9') {
		put_char(t, *t->p++ & 31);
	} else if (c == 'k' && !t->in_class && t->p < t->end && *t->p == '<') {
		cs_buf_str(t->out, "\\k");
	} else {
		t->wrong = "it has an escape that ECMAScript does not have";
	}
}

/* Behind the backslash. */
static void escape(struct translator *t)
{
	char c;

	if (t->p == t->end) {
		t->wrong = "it ends in a backslash";
		return;
	}
	c = *t->p++;
	if (c >= '0' && c <= '9')
		digit_escape(t, c);
	else if (is_letter_or_digit(c))
		letter_escape(t, c);
	else if ((unsigned char)c >= 0x80 || c == '_' || (unsigned char)c < 0x20)
		cs_buf_char(t->out, c);
	else
		cs_buf_fmt(t->out, "\\%c", c);
}

/* Behind '('. */
static void group(struct translator *t)
{
	static const char *const known[] = { "?:", "?=", "?!", "?<=", "?<!" };
	size_t left = (size_t)(t->end - t->p);

	cs_buf_char(t->out, '(');
	if (left && *t->p == '*')
		t->wrong = "'(*' repeats nothing";
	if (!left || *t->p != '?')
		return;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (left >= strlen(known[i]) && !memcmp(t->p, known[i], strlen(known[i]))) {
			cs_buf_str(t->out, known[i]);
			t->p += strlen(known[i]);
			return;
		}
	if (left > 2 && t->p[1] == '<' && (is_letter_or_digit(t->p[2]) || t->p[2] == '_')) {
		cs_buf_str(t->out, "?<");
		t->p += 2;
		return;
	}
	t->wrong = "it has a group (?...) that ECMAScript does not have";
}

/* {n}, {n,} or {n,m} at the brace: its length, or 0. */
static size_t braces(const struct translator *t)
{
	const char *p = t->p;
	bool digits = false;

	for (; p < t->end && ((*p >= '0' && *p <= '9') || (*p == ',' && digits)); p++)
		digits = true;
	return digits && p < t->end && *p == '}' ? (size_t)(p + 1 - t->p) : 0;
}

static void quantifier(struct translator *t, char c)
{
	size_t n = c == '{' ? braces(t) : 0;

	if (c == '{' && !n) {
		cs_buf_str(t->out, "\\{");
		return;
	}
	if (t->after_quantifier) {
		t->wrong = "a repetition is repeated";
		return;
	}
	cs_buf_char(t->out, c);
	cs_buf_add(t->out, t->p, n);
	t->p += n;
	if (t->p < t->end && *t->p == '?') {
		cs_buf_char(t->out, '?');
		t->p++;
	}
	t->after_quantifier = true;
}

static void class_char(struct translator *t, char c)
{
	if (c == '\\') {
		escape(t);
	} else if (c == ']') {
		t->in_class = false;
		cs_buf_char(t->out, c);
	} else if (c == '[') {
		cs_buf_str(t->out, "\\[");
	} else {
		cs_buf_char(t->out, c);
	}
}

static void plain_char(struct translator *t, char c)
{
	if (c == '*' || c == '+' || c == '?' || c == '{') {
		quantifier(t, c);
		return;
	}
	t->after_quantifier = false;
	if (c == '\\') {
		escape(t);
	} else if (c == '[') {
		t->in_class = true;
		cs_buf_char(t->out, c);
		if (t->p < t->end && *t->p == '^')
			cs_buf_char(t->out, *t->p++);
	} else if (c == '.') {
		cs_buf_str(t->out, "[^\\n\\r\\x{2028}\\x{2029}]");
	} else if (c == '(') {
		group(t);
	} else {
		cs_buf_char(t->out, c);
	}
}

static const char *translate(struct translator *t)
{
	while (t->p < t->end && !t->wrong) {
		char c = *t->p++;

		if (!c)
			cs_buf_str(t->out, "\\x00");
		else if (t->in_class)
			class_char(t, c);
		else
			plain_char(t, c);
	}
	if (!t->wrong && t->out->over)
		t->wrong = "it is too long";
	return t->wrong;
}

/* ---- compiling ---- */

static pcre2_code *compile(const char *text, size_t len, char *why, size_t why_size)
{
	CS_BUF_AUTO struct cs_buf out = CS_BUF(PATTERN_MAX * 16);
	struct translator t = { .p = text, .end = text + len, .out = &out };
	pcre2_compile_context *cc;
	pcre2_code *code;
	const char *wrong;
	PCRE2_SIZE at;
	int number;

	if (len > PATTERN_MAX) {
		snprintf(why, why_size, "it has %zu bytes, and %d are the most", len, PATTERN_MAX);
		return NULL;
	}
	wrong = translate(&t);
	if (wrong) {
		snprintf(why, why_size, "%s (at byte %zu)", wrong, (size_t)(t.p - text));
		return NULL;
	}
	cc = pcre2_compile_context_create(NULL);
	if (!cc) {
		snprintf(why, why_size, "there is no memory");
		return NULL;
	}
	pcre2_set_parens_nest_limit(cc, NEST_MAX);
	code = pcre2_compile((PCRE2_SPTR)cs_buf_text(&out), out.len,
			     PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF |
				     PCRE2_AUTO_CALLOUT | PCRE2_NEVER_UCP,
			     &number, &at, cc);
	pcre2_compile_context_free(cc);
	if (!code)
		pcre2_get_error_message(number, (PCRE2_UCHAR *)why, why_size);
	return code;
}

bool schema_pattern_valid(const char *text, size_t len)
{
	char why[160];
	pcre2_code *code = compile(text, len, why, sizeof why);

	pcre2_code_free(code);
	return code != NULL;
}

int schema_pattern_new(struct schema *s, const char *text, size_t len, const struct pattern **ret, struct cs_err *err)
{
	char why[160] = "", shown[120];
	pcre2_code *code = compile(text, len, why, sizeof why);
	struct pattern *p;

	if (!code)
		return cs_fail(err, CS_E_INVALID, 0, "the pattern '%s' cannot be used: %s", cs_escape_to(shown, sizeof shown, text), why);
	p = cs_new(struct pattern);
	p->code = code;
	p->text = cs_strndup(text, len);
	p->next = s->patterns;
	s->patterns = p;
	if (!s->matcher)
		s->matcher = schema_matcher_new();
	*ret = p;
	return 0;
}

const char *schema_pattern_text(const struct pattern *p)
{
	return p->text;
}

void schema_patterns_free(struct pattern *p)
{
	while (p) {
		struct pattern *next = p->next;

		pcre2_code_free(p->code);
		free(p->text);
		free(p);
		p = next;
	}
}

/* ---- matching ---- */

static int on_item(pcre2_callout_block *b, void *arg)
{
	struct matcher *m = arg;
	size_t at = b->current_position, far = at > m->last ? at - m->last : m->last - at;
	size_t cost = 1 + far / CHARS_PER_STEP;

	m->last = at;
	if (cost >= *m->steps) {
		*m->steps = 0;
		return PCRE2_ERROR_CALLOUT;
	}
	*m->steps -= (uint32_t)cost;
	return 0;
}

struct matcher *schema_matcher_new(void)
{
	struct matcher *m = cs_new(struct matcher);

	m->data = pcre2_match_data_create(1, NULL);
	m->context = pcre2_match_context_create(NULL);
	if (!m->context || !m->data)
		return m; /* then nothing matches */
	pcre2_set_callout(m->context, on_item, m);
	pcre2_set_match_limit(m->context, MATCH_LIMIT);
	pcre2_set_depth_limit(m->context, DEPTH_LIMIT);
	pcre2_set_heap_limit(m->context, HEAP_KIB);
	return m;
}

void schema_matcher_free(struct matcher *m)
{
	if (!m)
		return;
	pcre2_match_data_free(m->data);
	pcre2_match_context_free(m->context);
	free(m);
}

int schema_pattern_matches(struct matcher *m, const struct pattern *p, const char *s, size_t len, uint32_t *steps)
{
	size_t cost = 1 + len / CHARS_PER_STEP; /* of looking at it once, which nobody calls back for */
	int r;

	if (!m->data || !m->context || cost >= *steps)
		return -1;
	*steps -= (uint32_t)cost;
	m->steps = steps;
	m->last = 0;
	r = pcre2_match(p->code, (PCRE2_SPTR)s, len, 0, 0, m->data, m->context);
	return r >= 0 ? 1 : r == PCRE2_ERROR_NOMATCH ? 0 : -1;
}
