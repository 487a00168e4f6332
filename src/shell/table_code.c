/* SPDX-License-Identifier: Apache-2.0 */
/* table_code.c - whether a program for sed, awk or jq does more than print.
 *
 * These are readers of the three languages that know just enough to find every place where a file is opened or a program
 * is run.  Where versions of sed and awk read a text in different ways, and where ours may be wrong about where a
 * regular expression ends, the answer is UNKNOWN. */
#include "shell/table_internal.h"

#include <ctype.h>
#include <string.h>

struct code {
	const char *p;
	size_t arg;
	struct sh_findings *ret;
	enum sh_code_verdict worst;
};

static void found(struct code *c, enum sh_code_verdict v, const char *text, size_t len)
{
	enum sh_role role = v == SH_CODE_READS ? SH_ROLE_READ : v == SH_CODE_WRITES ? SH_ROLE_WRITE : SH_ROLE_SHELL;
	static const char *const standard[] = { "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/null" };

	for (size_t i = 0; text && v != SH_CODE_EXECUTES && i < sizeof standard / sizeof *standard; i++)
		if (strlen(standard[i]) == len && !memcmp(standard[i], text, len))
			return;
	if (v > c->worst)
		c->worst = v;
	if (c->ret)
		sh_findings_add(c->ret, (struct sh_finding){ .role = role, .arg = c->arg, .text = text ? sh_findings_copy(c->ret, text, len) : "",
							     .known = text ? SH_LITERAL : SH_DYNAMIC });
}

/* ---- sed ---- */

/* Up to the closing delimiter; p is behind it then.  A delimiter within brackets does not close; to a sed that thinks it
 * does, the expression ends in an open bracket, which is an error. */
static bool sed_part(struct code *c, char delimiter, bool regex)
{
	for (; *c->p && *c->p != delimiter; c->p++) {
		if (*c->p == '\n')
			return false;
		if (*c->p == '\\') {
			if (!*++c->p)
				return false;
		} else if (*c->p == '[' && regex) {
			const char *q = c->p + 1;

			q += *q == '^';
			q += *q == ']';
			for (; *q != ']'; q++) {
				/* Whether \] closes is not the same everywhere. */
				if (!*q || *q == '\n' || (*q == '\\' && (q[1] == ']' || q[1] == '\n' || !q[1])))
					return false;
				if (*q == '\\') {
					q++;
					continue;
				}
				if (*q == '[' && strchr(".:=", q[1]) && q[1]) {
					char kind[3] = { q[1], ']', '\0' };
					const char *end = strstr(q + 2, kind);

					if (!end || memchr(q, '\n', (size_t)(end - q)))
						return false;
					q = end + 1;
				}
			}
			c->p = q;
		}
	}
	if (!*c->p)
		return false;
	c->p++;
	return true;
}

static void blanks(struct code *c)
{
	while (*c->p == ' ' || *c->p == '\t')
		c->p++;
}

static void digits(struct code *c)
{
	while (isdigit((unsigned char)*c->p))
		c->p++;
}

/* An address. False: not understood. Nothing at all is well. */
static bool sed_address(struct code *c)
{
	char delimiter = *c->p;

	if (isdigit((unsigned char)*c->p)) {
		digits(c);
		blanks(c);
		if (*c->p == '~') {
			c->p++;
			digits(c);
		}
		return true;
	}
	if (*c->p == '$') {
		c->p++;
		return true;
	}
	if (delimiter == '\\') {
		delimiter = *++c->p;
		if (!ispunct((unsigned char)delimiter) || delimiter == '\\')
			return false;
	} else if (delimiter != '/') {
		return true;
	}
	c->p++;
	if (!sed_part(c, delimiter, /* regex= */ true))
		return false;
	while (*c->p == 'I' || *c->p == 'M')
		c->p++;
	return true;
}

static bool sed_addresses(struct code *c)
{
	if (!sed_address(c))
		return false;
	blanks(c);
	if (*c->p == ',') {
		c->p++;
		blanks(c);
		if (*c->p == '+' || *c->p == '~') {
			c->p++;
			if (!isdigit((unsigned char)*c->p))
				return false;
		}
		if (!sed_address(c))
			return false;
		blanks(c);
	}
	while (*c->p == '!' || *c->p == ' ' || *c->p == '\t')
		c->p++;
	return true;
}

/* The rest of the line is a file's name. */
static bool sed_file(struct code *c, enum sh_code_verdict v)
{
	size_t n;

	blanks(c);
	n = strcspn(c->p, "\n");
	if (!n)
		return false;
	found(c, v, c->p, n);
	c->p += n;
	return true;
}

/* Text of a, i, c: to a line's end without a backslash. */
static void sed_text(struct code *c)
{
	for (; *c->p && *c->p != '\n'; c->p++)
		if (*c->p == '\\' && c->p[1])
			c->p++;
}

static bool sed_end(struct code *c)
{
	blanks(c);
	return !*c->p || strchr(";\n}#", *c->p) != NULL;
}

static bool sed_substitute(struct code *c)
{
	char delimiter = *c->p;

	if (!ispunct((unsigned char)delimiter) || delimiter == '\\')
		return false;
	c->p++;
	if (!sed_part(c, delimiter, /* regex= */ true))
		return false;
	/* A newline in the replacement has a backslash before it. */
	if (!sed_part(c, delimiter, /* regex= */ false))
		return false;
	for (;; c->p++) {
		if (*c->p == 'w') {
			c->p++;
			return sed_file(c, SH_CODE_WRITES);
		}
		if (*c->p == 'e')
			found(c, SH_CODE_EXECUTES, NULL, 0);
		else if (!*c->p || !strchr("gpiImM0123456789", *c->p))
			return sed_end(c);
	}
}

static bool sed_command(struct code *c)
{
	char what = *c->p++;
	size_t n;

	switch (what) {
	case '{':
		return true;
	case '}': case '=': case 'd': case 'D': case 'g': case 'G': case 'h': case 'H': case 'n': case 'N': case 'p': case 'P':
	case 'x': case 'z': case 'F':
		return sed_end(c);
	case 'l': case 'L': case 'q': case 'Q':
		blanks(c);
		digits(c);
		return sed_end(c);
	case ':': case 'b': case 't': case 'T':
		blanks(c);
		n = strcspn(c->p, ";\n}# \t");
		/* A label with more in it is read by some to the end of the line. */
		for (size_t i = 0; i < n; i++)
			if (!isalnum((unsigned char)c->p[i]) && !strchr("_-.", c->p[i]))
				return false;
		c->p += n;
		return sed_end(c) && (what != ':' || *c->p != '}');
	case 'a': case 'i': case 'c':
		sed_text(c);
		return true;
	case 'r': case 'R':
		return sed_file(c, SH_CODE_READS);
	case 'w': case 'W':
		return sed_file(c, SH_CODE_WRITES);
	case 'e':
		blanks(c);
		n = strcspn(c->p, "\n");
		found(c, SH_CODE_EXECUTES, n ? c->p : NULL, n);
		c->p += n;
		return true;
	case 's':
		return sed_substitute(c);
	case 'y':
		if (!ispunct((unsigned char)*c->p) || *c->p == '\\')
			return false;
		what = *c->p++;
		if (!sed_part(c, what, /* regex= */ false))
			return false;
		return sed_part(c, what, /* regex= */ false) && sed_end(c);
	default:
		return false;
	}
}

enum sh_code_verdict sh_sed_judge(const char *script, size_t arg, struct sh_findings *ret)
{
	struct code c = { .p = script, .arg = arg, .ret = ret };

	for (;;) {
		while (*c.p == ';' || isspace((unsigned char)*c.p))
			c.p++;
		if (!*c.p)
			return c.worst;
		if (*c.p == '#') {
			c.p += strcspn(c.p, "\n");
			continue;
		}
		if (!sed_addresses(&c) || !*c.p || !sed_command(&c))
			return SH_CODE_UNKNOWN;
	}
}

/* ---- awk ---- */

enum token { T_NONE, T_END, T_NEWLINE, T_OPERAND, T_STRING, T_WORD, T_OPERATOR, T_CLOSE };

struct awk {
	struct code c;
	enum token prev;
	const char *word;        /* of T_WORD, T_STRING */
	size_t word_len;
	int depth;               /* of parentheses */
	int print_depth;         /* of the print statement we are in; -1: none */
	bool getline;            /* in a statement with getline */
	bool continued;          /* the last token goes on over a newline */
};

static bool is_word(const struct awk *a, const char *s)
{
	return a->prev == T_WORD && strlen(s) == a->word_len && !memcmp(a->word, s, a->word_len);
}

/* Behind these a '/' begins a regular expression; behind other words it divides. */
static bool before_regex(const struct awk *a)
{
	static const char *const words[] = { "print", "printf", "return", "in", "else", "do", "case", "exit" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (is_word(a, words[i]))
			return true;
	return false;
}

static bool awk_string(struct awk *a)
{
	a->word = ++a->c.p;
	for (; *a->c.p != '"'; a->c.p++) {
		if (!*a->c.p || *a->c.p == '\n')
			return false;
		if (*a->c.p == '\\' && !*++a->c.p)
			return false;
	}
	a->word_len = (size_t)(a->c.p++ - a->word);
	/* gawk opens sockets by such names. */
	if (a->word_len >= 5 && !memcmp(a->word, "/inet", 5))
		return false;
	a->prev = T_STRING;
	return true;
}

/* As in sed: to an awk that ends it at a slash within brackets, it is an error. */
static bool awk_regex(struct awk *a)
{
	bool bracket = false;

	for (a->c.p++; *a->c.p != '/' || bracket; a->c.p++) {
		if (!*a->c.p || *a->c.p == '\n')
			return false;
		if (*a->c.p == '\\') {
			if (!*++a->c.p || *a->c.p == '\n' || (bracket && *a->c.p == ']'))
				return false;
		} else if (*a->c.p == '[' && !bracket) {
			bracket = true;
			if (a->c.p[1] == '^')
				a->c.p++;
			if (a->c.p[1] == ']')
				a->c.p++;
		} else if (*a->c.p == '[' && strchr(".:=", a->c.p[1]) && a->c.p[1]) {
			char kind[3] = { a->c.p[1], ']', '\0' };
			const char *end = strstr(a->c.p + 2, kind);

			if (!end || memchr(a->c.p, '\n', (size_t)(end - a->c.p)))
				return false;
			a->c.p = end + 1;
		} else if (*a->c.p == ']') {
			bracket = false;
		}
	}
	a->c.p++;
	a->prev = T_OPERAND;
	return true;
}

static void awk_blanks(struct awk *a)
{
	for (;;) {
		if (*a->c.p == ' ' || *a->c.p == '\t' || *a->c.p == '\r')
			a->c.p++;
		else if (a->c.p[0] == '\\' && a->c.p[1] == '\n')
			a->c.p += 2;
		else if (*a->c.p == '#')
			a->c.p += strcspn(a->c.p, "\n");
		else
			return;
	}
}

/* A string that stands alone as what is opened or run: nothing is joined to it. NULL: anything else. */
static const char *awk_literal(struct awk *a, const char *ends, size_t *ret_len)
{
	const char *start, *p;

	awk_blanks(a);
	if (*a->c.p != '"')
		return NULL;
	start = a->c.p + 1;
	for (p = start; *p && *p != '"' && *p != '\\' && *p != '\n'; p++)
		;
	if (*p != '"')
		return NULL; /* with escapes it is another text */
	*ret_len = (size_t)(p - start);
	for (p++; *p == ' ' || *p == '\t'; p++)
		;
	return !*p || strchr(ends, *p) ? start : NULL;
}

static bool awk_open(struct awk *a, enum sh_code_verdict v)
{
	size_t len = 0;
	const char *text = awk_literal(a, ";}\n)", &len);

	if (text && len >= 5 && !memcmp(text, "/inet", 5))
		return false;
	found(&a->c, v, text, len);
	a->prev = T_OPERATOR;
	return true;
}

static void end_statement(struct awk *a)
{
	a->print_depth = -1;
	a->getline = false;
}

static bool awk_word(struct awk *a)
{
	a->word = a->c.p;
	while (isalnum((unsigned char)*a->c.p) || *a->c.p == '_')
		a->c.p++;
	a->word_len = (size_t)(a->c.p - a->word);
	a->prev = T_WORD;
	if (is_word(a, "print") || is_word(a, "printf")) {
		a->print_depth = a->depth;
	} else if (is_word(a, "getline")) {
		a->getline = true;
	} else if (is_word(a, "system")) {
		size_t len = 0;
		const char *text = NULL;

		awk_blanks(a);
		if (*a->c.p == '(') {
			a->c.p++;
			a->depth++;
			text = awk_literal(a, ")", &len);
		}
		found(&a->c, SH_CODE_EXECUTES, text, len);
		a->prev = T_OPERATOR;
	} else if (is_word(a, "ARGV") || is_word(a, "ARGC") || is_word(a, "extension") || is_word(a, "SYMTAB") || is_word(a, "FUNCTAB")) {
		return false; /* other files are read, other code is run */
	}
	a->continued = is_word(a, "do") || is_word(a, "else");
	return true;
}

static bool awk_pipe(struct awk *a)
{
	size_t len = 0;
	const char *text;
	bool had_string = a->prev == T_STRING && !memchr(a->word, '\\', a->word_len);

	a->c.p += a->c.p[1] == '&' ? 2 : 1;
	awk_blanks(a);
	/* "command" | getline, if nothing is joined to the string; else what is behind */
	text = awk_literal(a, ";}\n)", &len);
	if (!text && had_string && !strncmp(a->c.p, "getline", 7)) {
		found(&a->c, SH_CODE_EXECUTES, a->word, a->word_len);
		found(&a->c, SH_CODE_EXECUTES, NULL, 0);
	} else {
		found(&a->c, SH_CODE_EXECUTES, text, len);
	}
	a->prev = T_OPERATOR;
	return true;
}

static bool awk_operator(struct awk *a)
{
	char ch = *a->c.p, next = a->c.p[1];

	switch (ch) {
	case '@': case '`': case '\\': case '\'':
		return false;
	case '(':
		a->depth++;
		break;
	case ')':
		a->depth--;
		a->c.p++;
		a->prev = T_CLOSE;
		return true;
	case ']':
		a->c.p++;
		a->prev = T_CLOSE;
		return true;
	case ';': case '{': case '}':
		end_statement(a);
		a->continued = ch == '{';
		break;
	case '|':
		if (next == '|') {
			a->c.p++;
			a->continued = true;
			break;
		}
		return awk_pipe(a);
	case '&': case ',': case '?': case ':':
		a->c.p += next == '&' && ch == '&';
		a->continued = true;
		break;
	case '>':
		if (a->print_depth >= 0 && a->depth <= a->print_depth) {
			a->c.p += next == '>' ? 2 : 1;
			return awk_open(a, SH_CODE_WRITES);
		}
		if (next == '>')
			return false;
		a->c.p += next == '=';
		break;
	case '<':
		if (a->getline) {
			a->c.p++;
			return awk_open(a, SH_CODE_READS);
		}
		a->c.p += next == '=';
		break;
	case '+': case '-':
		/* i++ / 2: what a slash behind it is, is not certain */
		if (next == ch) {
			a->c.p += 2;
			awk_blanks(a);
			a->prev = T_OPERATOR;
			return *a->c.p != '/';
		}
		break;
	default:
		break;
	}
	a->c.p++;
	a->prev = T_OPERATOR;
	return true;
}

static bool awk_token(struct awk *a)
{
	char ch = *a->c.p;

	if (ch == '\n') {
		a->c.p++;
		if (!a->continued) {
			end_statement(a);
			a->prev = T_NEWLINE;
		}
		return true;
	}
	a->continued = false;
	if (ch == '"')
		return awk_string(a);
	if (ch == '/') {
		bool operand = a->prev == T_OPERAND || a->prev == T_STRING || a->prev == T_CLOSE || (a->prev == T_WORD && !before_regex(a));

		if (a->getline && a->prev == T_WORD)
			return false;
		/* `if (x) /re/`: behind a closing parenthesis it may be either */
		if (a->prev == T_CLOSE)
			return !strchr(a->c.p + 1, '/') && (a->c.p++, a->prev = T_OPERATOR, true);
		if (!operand)
			return awk_regex(a);
		a->c.p++;
		a->prev = T_OPERATOR;
		return true;
	}
	if (isalpha((unsigned char)ch) || ch == '_')
		return awk_word(a);
	if (isdigit((unsigned char)ch) || (ch == '.' && isdigit((unsigned char)a->c.p[1]))) {
		while (isalnum((unsigned char)*a->c.p) || *a->c.p == '.')
			a->c.p++;
		a->prev = T_OPERAND;
		return true;
	}
	if (!isprint((unsigned char)ch) && !isspace((unsigned char)ch))
		return false;
	return awk_operator(a);
}

enum sh_code_verdict sh_awk_judge(const char *script, size_t arg, struct sh_findings *ret)
{
	struct awk a = { .c = { .p = script, .arg = arg, .ret = ret }, .prev = T_NEWLINE, .print_depth = -1 };

	for (;;) {
		awk_blanks(&a);
		if (!*a.c.p)
			return a.c.worst;
		if (!awk_token(&a))
			return SH_CODE_UNKNOWN;
	}
}

/* ---- jq ---- */

/* It opens nothing but modules. */
enum sh_code_verdict sh_jq_judge(const char *script, size_t arg, struct sh_findings *ret)
{
	static const char *const words[] = { "import", "include", "modulemeta", "get_search_list" };
	(void)arg;
	(void)ret;

	for (const char *p = script; *p;) {
		size_t n = 0;

		while (isalnum((unsigned char)p[n]) || p[n] == '_')
			n++;
		for (size_t i = 0; n && i < sizeof words / sizeof *words; i++)
			if (strlen(words[i]) == n && !memcmp(words[i], p, n))
				return SH_CODE_UNKNOWN;
		p += n ? n : 1;
	}
	return SH_CODE_HARMLESS;
}
