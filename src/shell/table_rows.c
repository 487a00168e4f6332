/* SPDX-License-Identifier: Apache-2.0 */
/* table_rows.c - from the text of rows to arrays.  table/README.md describes the language.
 *
 * It runs when we are built, and for the rows of a profile. */
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "shell/table_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct sh_rows *b;
	const char *origin;
	unsigned line;
	struct cs_err *err;
	/* of the row */
	struct sh_row row;
	struct sh_pattern *pattern; /* NULL: still options.  Points to `open`. */
	struct sh_pattern open;
	char modes[SH_ROW_MODES_MAX][16];
	size_t n_modes, n_slots_of_row;
	size_t depth;
};

struct word {
	const char *s;
	size_t len;
};

static int bad(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct reader *r, const char *fmt, ...)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(512);
	char safe[400];
	va_list ap;
	CS_FREE char *made = NULL;

	va_start(ap, fmt);
	if (vasprintf(&made, fmt, ap) < 0)
		made = NULL;
	va_end(ap);
	cs_escape_to(safe, sizeof safe, made ? made : fmt);
	return cs_fail(r->err, CS_E_INVALID, 0, "%s:%u: %s", r->origin, r->line, safe);
}

static bool is(struct word w, const char *s)
{
	return strlen(s) == w.len && !memcmp(w.s, s, w.len);
}

static uint32_t keep(struct reader *r, const char *s, size_t len)
{
	uint32_t at = (uint32_t)r->b->strings.len;

	if (!len)
		return 0;
	cs_buf_add(&r->b->strings, s, len);
	cs_buf_char(&r->b->strings, '\0');
	return at;
}

/* ---- words of the language ---- */

static const char *const role_names[] = {
	[SH_ROLE_INERT] = "inert", [SH_ROLE_READ] = "read", [SH_ROLE_READ_TREE] = "read_tree", [SH_ROLE_WRITE] = "write",
	[SH_ROLE_WRITE_DIR] = "write_dir", [SH_ROLE_DELETE] = "delete", [SH_ROLE_DELETE_TREE] = "delete_tree",
	[SH_ROLE_EXEC] = "exec", [SH_ROLE_COMMAND] = "command", [SH_ROLE_SHELL] = "shell", [SH_ROLE_CODE] = "code",
	[SH_ROLE_HOST] = "host", [SH_ROLE_URL] = "url", [SH_ROLE_PROCESS] = "process", [SH_ROLE_USER] = "user",
	[SH_ROLE_SERVICE] = "service", [SH_ROLE_PACKAGE] = "package", [SH_ROLE_ENV] = "env", [SH_ROLE_CWD] = "cwd",
	[SH_ROLE_UNKNOWN] = "unknown",
};
enum { ROLES = sizeof role_names / sizeof *role_names };

static const struct {
	const char *name;
	uint32_t bit;
} does_names[] = {
	{ "network", SH_DOES_NETWORK }, { "privilege", SH_DOES_PRIVILEGE }, { "persist", SH_DOES_PERSIST },
	{ "process", SH_DOES_PROCESS }, { "device", SH_DOES_DEVICE }, { "write_cwd", SH_DOES_WRITE_CWD },
	{ "exec_cwd", SH_DOES_EXEC_CWD }, { "stdin_code", SH_DOES_READ_STDIN_CODE }, { "system", SH_DOES_SYSTEM },
	{ "unknown", SH_DOES_UNKNOWN }, { "state", SH_DOES_BUILTIN_STATE }, { "secret", SH_DOES_SECRET }, { "terminal", SH_DOES_TERMINAL },
	{ "environment", SH_DOES_ENVIRONMENT },
	{ "appends", SH_ALSO_APPENDS }, { "stdin_words", SH_ALSO_STDIN_WORDS },
}, flag_names[] = {
	{ "gnu", SH_ROW_GNU }, { "stop", SH_ROW_STOP }, { "words", SH_ROW_WORDS }, { "noopt", SH_ROW_NOOPT },
	{ "pure", SH_ROW_PURE }, { "reads", SH_ROW_PURE | SH_ROW_READS }, { "harmless", SH_ROW_PURE | SH_ROW_INERT }, { "sub", SH_ROW_SUB | SH_ROW_STOP },
	{ "inherit", SH_ROW_INHERIT }, { "old", SH_ROW_OLD }, { "keyed", SH_ROW_KEYED }, { "find", SH_ROW_FIND | SH_ROW_WORDS },
	{ "test", SH_ROW_TEST | SH_ROW_NOOPT },
};

static int read_does(struct reader *r, struct word w, uint32_t *ret)
{
	for (size_t i = 0; i < sizeof does_names / sizeof *does_names; i++)
		if (is(w, does_names[i].name)) {
			*ret |= does_names[i].bit;
			return 0;
		}
	return bad(r, "'!%.*s' is not an effect; write one of !network !write_cwd !system ... (see the README)", (int)w.len, w.s);
}

static int read_mode(struct reader *r, struct word w, uint32_t *ret)
{
	if (!w.len || w.len >= sizeof r->modes[0])
		return bad(r, "a mode is a name of 1 to 15 characters, not '%.*s'", (int)w.len, w.s);
	for (size_t i = 0; i < r->n_modes; i++)
		if (is(w, r->modes[i])) {
			*ret |= 1u << i;
			return 0;
		}
	if (r->pattern)
		return bad(r, "no option sets the mode '%.*s'; write :%.*s after one", (int)w.len, w.s, (int)w.len, w.s);
	if (r->n_modes == SH_ROW_MODES_MAX)
		return bad(r, "more than %d modes in one row", SH_ROW_MODES_MAX);
	memcpy(r->modes[r->n_modes], w.s, w.len);
	r->modes[r->n_modes][w.len] = '\0';
	*ret |= 1u << r->n_modes++;
	return 0;
}

static int read_role(struct reader *r, struct word w, uint8_t *role, uint32_t *lang)
{
	if (w.len > 5 && !memcmp(w.s, "code:", 5)) {
		*role = SH_ROLE_CODE;
		*lang = keep(r, w.s + 5, w.len - 5);
		return 0;
	}
	for (size_t i = 0; i < ROLES; i++)
		if (role_names[i] && i != SH_ROLE_CODE && is(w, role_names[i])) {
			*role = (uint8_t)i;
			return 0;
		}
	return bad(r, "'%.*s' is not a role; write read, write, delete, inert, ... (see the README)", (int)w.len, w.s);
}

static const struct {
	const char *name;
	uint8_t role, form, repeat;
} special[] = {
	{ "form", SH_ROLE_READ, SH_FORM_DATA, SH_ONE },        { "sshopt", SH_ROLE_UNKNOWN, SH_FORM_SSH, SH_ONE },
	{ "name", SH_ROLE_INERT, SH_FORM_NAME, SH_ONE },       { "assign", SH_ROLE_ENV, SH_FORM_NAME, SH_ONE },
	{ "command", SH_ROLE_COMMAND, SH_FORM_REST, SH_MANY }, { "command;", SH_ROLE_COMMAND, SH_FORM_UNTIL, SH_MANY },
	{ "env*", SH_ROLE_ENV, SH_FORM_ENVS, SH_MANY },        { "replace", SH_ROLE_INERT, SH_FORM_REPLACE, SH_ONE },
	{ "command-c", SH_ROLE_COMMAND, SH_FORM_REST_C, SH_MANY }, { "count", SH_ROLE_INERT, SH_FORM_COUNT, SH_ONE },
	{ "shown", SH_ROLE_INERT, SH_FORM_SHOWN, SH_ONE },
};

/* [@|remote:] ROLE[+ROLE] [-] [?|...] */
static int read_slot(struct reader *r, struct word w, struct sh_slot *ret)
{
	struct sh_slot s = { 0 };
	const char *plus;
	int e;
	bool by_mode = false;

	/* ROLE=TEXT */
	if (memchr(w.s, '=', w.len)) {
		const char *equal = memchr(w.s, '=', w.len);

		s.form = SH_FORM_FIXED;
		e = read_role(r, (struct word){ w.s, (size_t)(equal - w.s) }, &s.role, &s.lang);
		if (e < 0)
			return e;
		if (s.role == SH_ROLE_CODE || s.role == SH_ROLE_COMMAND)
			return bad(r, "'%.*s': a fixed text is a path or a host", (int)w.len, w.s);
		s.lang = keep(r, equal + 1, w.len - (size_t)(equal + 1 - w.s));
		*ret = s;
		return 0;
	}
	if (w.len > 3 && !memcmp(w.s + w.len - 3, "...", 3)) {
		s.repeat = SH_MANY;
		w.len -= 3;
	} else if (w.len > 1 && w.s[w.len - 1] == '?') {
		s.repeat = SH_MAYBE;
		w.len--;
	}
	for (size_t i = 0; i < sizeof special / sizeof *special; i++)
		if (is(w, special[i].name)) {
			s.role = special[i].role;
			s.form = special[i].form;
			if (special[i].repeat)
				s.repeat = special[i].repeat;
			*ret = s;
			return 0;
		}
	if (w.len > 8 && !memcmp(w.s, "letters:", 8)) {
		if (!memchr(w.s, '/', w.len))
			return bad(r, "'%.*s': write letters:UNKNOWN/ARGUMENT", (int)w.len, w.s);
		s.form = SH_FORM_LETTERS;
		s.lang = keep(r, w.s + 8, w.len - 8);
		*ret = s;
		return 0;
	}
	if (w.len > 1 && w.s[w.len - 1] == '-') {
		s.dash = 1;
		w.len--;
	}
	if (w.len > 1 && w.s[0] == '@') {
		s.form = SH_FORM_AT;
		w.s++, w.len--;
	} else if (w.len > 7 && !memcmp(w.s, "remote:", 7)) {
		s.form = SH_FORM_REMOTE;
		w.s += 7, w.len -= 7;
	}
	plus = memchr(w.s, '+', w.len);
	if (!plus) {
		plus = memchr(w.s, '/', w.len);
		by_mode = plus != NULL;
	}
	if (plus) {
		struct word second = { plus + 1, (size_t)(w.s + w.len - plus - 1) };

		e = read_role(r, second, &s.role2, &s.lang);
		if (e < 0)
			return e;
		w.len = (size_t)(plus - w.s);
	}
	e = read_role(r, w, &s.role, &s.lang);
	if (e < 0)
		return e;
	if (s.role == SH_ROLE_SHELL && s.repeat == SH_MANY)
		s.form = SH_FORM_JOIN;
	if (by_mode)
		s.form = SH_FORM_BY_MODE;
	/* Only the forms of a command say where it ends. */
	if ((s.role == SH_ROLE_COMMAND || s.role2 == SH_ROLE_COMMAND) && s.form != SH_FORM_REST)
		return bad(r, "'command' stands alone, without + or @");
	*ret = s;
	return 0;
}

static int add_slot(struct reader *r, struct word w, bool operand)
{
	struct sh_slot s = { 0 };
	int e = read_slot(r, w, &s);

	if (e < 0)
		return e;
	if (!operand && (s.repeat == SH_MAYBE || (s.repeat == SH_MANY && s.form != SH_FORM_UNTIL)))
		return bad(r, "'%.*s': an option's argument is one word; put this among the operands", (int)w.len, w.s);
	if (!operand && s.form == SH_FORM_FIXED)
		return bad(r, "'%.*s': a fixed text is for operands that are not given; write it in a pattern", (int)w.len, w.s);
	if (operand && s.form == SH_FORM_UNTIL)
		return bad(r, "'command;' is for options of find; an operand is 'command'");
	cs_buf_add(&r->b->slots, &s, sizeof s);
	return 0;
}

static size_t slots(const struct reader *r)
{
	return r->b->slots.len / sizeof(struct sh_slot);
}

/* ---- options ---- */

static const char *text_at(const struct reader *r, uint32_t at)
{
	return r->b->strings.data + at;
}

static int insert_option(struct reader *r, const struct sh_opt *o)
{
	struct sh_opt *v;
	size_t n = r->row.n_opts, i = n;

	if (n == SH_ROW_OPTS_MAX)
		return bad(r, "more than %d options in one row", SH_ROW_OPTS_MAX);
	cs_buf_add(&r->b->opts, o, sizeof *o);
	if (r->b->opts.over)
		return 0;
	v = (struct sh_opt *)(void *)r->b->opts.data + r->row.opt;
	for (; i > 0; i--) {
		int c = strcmp(text_at(r, v[i - 1].name), text_at(r, o->name));

		if (c == 0)
			return bad(r, "option %s is listed twice; remove one", text_at(r, o->name));
		if (c < 0)
			break;
		v[i] = v[i - 1];
	}
	v[i] = *o;
	r->row.n_opts++;
	return 0;
}

/* The roles of an option's arguments: "read" or "inert,read"; "": inert. */
static int read_arguments(struct reader *r, const char *s, size_t len, struct sh_opt *o)
{
	o->slot = (uint16_t)slots(r);
	for (;;) {
		const char *comma = memchr(s, ',', len);
		struct word w = { s, comma ? (size_t)(comma - s) : len };
		int e;

		if (!w.len)
			w = (struct word){ "inert", 5 };
		e = add_slot(r, w, /* operand= */ false);
		if (e < 0)
			return e;
		if (++o->n_slots > 8)
			return bad(r, "more than 8 arguments of one option");
		if (!comma)
			return 0;
		len -= (size_t)(comma + 1 - s);
		s = comma + 1;
	}
}

/* Where the last suffix of the word begins (behind its mark), or 0. */
static size_t last_suffix(struct word w)
{
	static const char *const slashes[] = { "end", "only", "always", "nopager" };
	size_t i = w.len;

	while (i > 1 && (isalnum((unsigned char)w.s[i - 1]) || w.s[i - 1] == '_'))
		i--;
	if (i < 3 || i == w.len)
		return 0;
	if (w.s[i - 1] == '!')
		return i;
	for (size_t k = 0; w.s[i - 1] == '/' && k < sizeof slashes / sizeof *slashes; k++)
		if (is((struct word){ w.s + i, w.len - i }, slashes[k]))
			return i;
	/* code:LANG and remote:ROLE are roles */
	if (w.s[i - 1] != ':' || (i >= 6 && !memcmp(w.s + i - 5, "code:", 5)) || (i >= 8 && !memcmp(w.s + i - 7, "remote:", 7)))
		return 0;
	return i;
}

static int read_suffix(struct reader *r, char mark, struct word w, struct sh_opt *o)
{
	if (mark == '!')
		return read_does(r, w, &o->does);
	if (mark == ':')
		return read_mode(r, w, &o->modes);
	if (is(w, "nopager"))
		o->does |= SH_ALSO_NO_PAGER;
	else
		o->last |= is(w, "end") ? SH_LAST_END : is(w, "only") ? SH_LAST_ONLY : SH_LAST_ALWAYS;
	return 0;
}

/* :mode !does /end.  From left to right, since the order of modes matters: the first of a row decides what a/b is. */
static int read_suffixes(struct reader *r, struct word *w, struct sh_opt *o)
{
	size_t i = last_suffix(*w);
	struct word tail = { w->s + i, w->len - i };
	int e;

	if (!i)
		return 0;
	w->len = i - 1;
	e = read_suffixes(r, w, o);
	return e < 0 ? e : read_suffix(r, w->s[i - 1], tail, o);
}

static int read_option(struct reader *r, struct word w)
{
	struct sh_opt o = { 0 };
	const char *equal;
	size_t name_len;
	int e = read_suffixes(r, &w, &o);

	if (e < 0)
		return e;
	/* dd's keys have their = in the name */
	equal = w.len > 1 ? memchr(w.s + 1, '=', w.len - 1) : NULL;
	name_len = equal ? (size_t)(equal - w.s) : w.len;
	if (w.s[0] != '-' && w.s[0] != '+' && w.s[0] != '@' && equal) {
		name_len++;
		o.arg = SH_ARG_NEEDED;
		e = read_arguments(r, equal + 1, (size_t)(w.s + w.len - equal - 1), &o);
	} else if (equal && equal[-1] == '[' && w.s[w.len - 1] == ']') {
		name_len--;
		o.arg = SH_ARG_ATTACHED;
		e = read_arguments(r, equal + 1, (size_t)(w.s + w.len - equal - 2), &o);
	} else if (equal) {
		o.arg = SH_ARG_NEEDED;
		e = read_arguments(r, equal + 1, (size_t)(w.s + w.len - equal - 1), &o);
	}
	if (e < 0)
		return e;
	if (name_len > 1 && w.s[name_len - 1] == '*') {
		o.prefix = 1;
		name_len--;
		if (!equal) {
			o.arg = SH_ARG_ATTACHED;
			e = read_arguments(r, "", 0, &o);
			if (e < 0)
				return e;
		}
	}
	if (name_len > 64 || (w.s[0] == '-' && name_len < 2))
		return bad(r, "'%.*s' is not an option", (int)w.len, w.s);
	if (w.s[0] == '-' && name_len > 2 && w.s[1] != '-' && !o.prefix && !(r->row.flags & SH_ROW_WORDS))
		return bad(r, "'%.*s': a short option is one letter, unless the row says 'words'", (int)w.len, w.s);
	o.name = keep(r, w.s, name_len);
	return insert_option(r, &o);
}

/* ---- patterns ---- */

static int close_pattern(struct reader *r)
{
	const struct sh_slot *v;
	size_t many = 0, fixed = 0;

	if (!r->pattern)
		return 0;
	v = (const struct sh_slot *)(const void *)r->b->slots.data + r->open.slot;
	r->open.n_slots = (uint8_t)(slots(r) - r->open.slot);
	if (r->b->slots.over)
		return 0;
	for (size_t i = 0; i < r->open.n_slots; i++) {
		if (fixed && v[i].form != SH_FORM_FIXED)
			return bad(r, "a fixed text stands behind the operands");
		fixed += v[i].form == SH_FORM_FIXED;
		if (many && v[i].repeat != SH_ONE && v[i].form != SH_FORM_REST && v[i].form != SH_FORM_REST_C)
			return bad(r, "after '...' only single operands can follow");
		if ((v[i].form == SH_FORM_REST || v[i].form == SH_FORM_REST_C || v[i].form == SH_FORM_JOIN) && i + 1u < r->open.n_slots)
			return bad(r, "this takes all that follows; put it last");
		many += v[i].repeat == SH_MANY && v[i].form != SH_FORM_ENVS;
	}
	cs_buf_add(&r->b->patterns, &r->open, sizeof r->open);
	r->row.n_patterns++;
	r->pattern = NULL;
	return 0;
}

static int open_pattern(struct reader *r)
{
	int e = close_pattern(r);

	if (e < 0)
		return e;
	if (r->row.n_patterns == 64)
		return bad(r, "more than 64 patterns of operands in one row");
	r->open = (struct sh_pattern){ .count = -1, .slot = (uint16_t)slots(r) };
	r->pattern = &r->open;
	return 0;
}

static int read_condition(struct reader *r, struct word w)
{
	while (w.len) {
		const char *comma = memchr(w.s, ',', w.len);
		struct word mode = { w.s, comma ? (size_t)(comma - w.s) : w.len };
		int e = read_mode(r, mode, &r->open.modes);

		if (e < 0 || !comma)
			return e;
		w.len -= mode.len + 1;
		w.s = comma + 1;
	}
	return bad(r, "'@' without a mode");
}

/* A word after '|': a condition (@modes, 2:), an effect, or what an operand is. */
static int read_operand(struct reader *r, struct word w)
{
	if (w.s[0] == '!')
		return read_does(r, (struct word){ w.s + 1, w.len - 1 }, &r->open.does);
	if (slots(r) == r->open.slot) {
		bool role_at = w.s[0] == '@' && w.len > 1 && (is(w, "@read") || is(w, "@read..."));

		if (w.s[0] == '@' && !role_at)
			return read_condition(r, (struct word){ w.s + 1, w.len - 1 });
		if (w.len == 2 && isdigit((unsigned char)w.s[0]) && w.s[1] == ':') {
			r->open.count = (int16_t)(w.s[0] - '0');
			return 0;
		}
	}
	if (slots(r) - r->open.slot >= 32)
		return bad(r, "more than 32 operands in one pattern");
	return add_slot(r, w, /* operand= */ true);
}

/* ---- rows ---- */

static int read_words(struct reader *r, const char *text, size_t len);

/* Macros are kept as NAME NUL TEXT NUL. */
static int use_macro(struct reader *r, struct word w)
{
	const char *p = cs_buf_text(&r->b->macros), *end = p + r->b->macros.len;

	if (r->depth == 4)
		return bad(r, "%%%.*s: sets within sets within sets", (int)w.len, w.s);
	while (p < end) {
		size_t n = strlen(p);
		const char *text = p + n + 1;

		if (is(w, p)) {
			int e;

			r->depth++;
			e = read_words(r, text, strlen(text));
			r->depth--;
			return e;
		}
		p = text + strlen(text) + 1;
	}
	return bad(r, "no set of options is called %%%.*s; define it above as '%%%.*s: ...'", (int)w.len, w.s, (int)w.len, w.s);
}

static int read_word(struct reader *r, struct word w)
{
	if (r->n_slots_of_row > 4096 || slots(r) >= UINT16_MAX - 64)
		return bad(r, "the table is full");
	if (w.s[0] == '%' && w.len > 1)
		return use_macro(r, (struct word){ w.s + 1, w.len - 1 });
	if (w.s[0] == '|') {
		int e = open_pattern(r);

		if (e < 0 || w.len == 1)
			return e;
		return read_operand(r, (struct word){ w.s + 1, w.len - 1 });
	}
	if (r->pattern)
		return read_operand(r, w);
	if (w.s[0] == '!')
		return read_does(r, (struct word){ w.s + 1, w.len - 1 }, &r->row.does);
	if (w.s[0] == '-' || w.s[0] == '+' || memchr(w.s, '=', w.len))
		return read_option(r, w);
	for (size_t i = 0; i < sizeof flag_names / sizeof *flag_names; i++)
		if (is(w, flag_names[i].name)) {
			r->row.flags |= flag_names[i].bit;
			return 0;
		}
	return bad(r, "'%.*s' is neither an option nor a way to parse; operands come after '|'", (int)w.len, w.s);
}

static int read_words(struct reader *r, const char *text, size_t len)
{
	size_t i = 0;

	for (;;) {
		struct word w;
		int e;

		while (i < len && isspace((unsigned char)text[i]))
			i++;
		if (i == len)
			return 0;
		if (text[i] == '"') {
			const char *close = memchr(text + i + 1, '"', len - i - 1);

			if (!close)
				return bad(r, "a quote that does not close");
			r->row.why = keep(r, text + i + 1, (size_t)(close - text) - i - 1);
			i = (size_t)(close - text) + 1;
			continue;
		}
		w.s = text + i;
		while (i < len && !isspace((unsigned char)text[i]))
			i++;
		w.len = (size_t)(text + i - w.s);
		e = read_word(r, w);
		if (e < 0)
			return e;
	}
}

static int insert_name(struct reader *r, const char *name)
{
	struct sh_name entry = { .row = (uint32_t)(r->b->rows.len / sizeof(struct sh_row)) }, *v;
	size_t n = r->b->names.len / sizeof entry, lo = 0, hi = n;

	if (n == SH_ROWS_NAMES_MAX)
		return bad(r, "more than %d commands", SH_ROWS_NAMES_MAX);
	entry.name = keep(r, name, strlen(name));
	cs_buf_add(&r->b->names, &entry, sizeof entry);
	if (r->b->names.over || r->b->strings.over)
		return 0;
	v = (struct sh_name *)(void *)r->b->names.data;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int c = strcmp(text_at(r, v[mid].name), name);

		if (c == 0)
			return bad(r, "'%s' has a row already; keep one", name);
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	memmove(v + lo + 1, v + lo, (n - lo) * sizeof *v);
	v[lo] = entry;
	if (!r->row.name)
		r->row.name = entry.name;
	return 0;
}

/* "docker,podman container ls,list" makes four names. */
static int read_names(struct reader *r, const char *text, size_t len, char *made, size_t at)
{
	size_t i = 0, end;

	while (i < len && isspace((unsigned char)text[i]))
		i++;
	if (i == len) {
		made[at ? at - 1 : 0] = '\0';
		return at ? insert_name(r, made) : bad(r, "a row without a command; write 'name: options | operands'");
	}
	for (end = i; end < len && !isspace((unsigned char)text[end]); end++)
		;
	while (i < end) {
		const char *comma = memchr(text + i, ',', end - i);
		size_t n = comma ? (size_t)(comma - text) - i : end - i;
		int e;

		if (!n || at + n + 2 > 120)
			return bad(r, "an empty or very long name of a command");
		memcpy(made + at, text + i, n);
		made[at + n] = ' ';
		e = read_names(r, text + end, len - end, made, at + n + 1);
		if (e < 0)
			return e;
		i += n + 1;
	}
	return 0;
}

/* The end of the part before ':' ("::" is the row of the command ':'). */
static size_t header_end(const char *text, size_t len)
{
	for (size_t i = 1; i < len; i++)
		if (text[i] == ':' && (i + 1 == len || isspace((unsigned char)text[i + 1])))
			return i;
	return 0;
}

/* One row with its continuation lines. */
static int read_row(struct reader *r, const char *text, size_t len)
{
	size_t head = header_end(text, len);
	char made[128];
	int e;

	if (!head)
		return bad(r, "a row begins with 'name:', with a blank after the colon");
	if (text[0] == '%') {
		cs_buf_add(&r->b->macros, text + 1, head - 1);
		cs_buf_char(&r->b->macros, '\0');
		cs_buf_add(&r->b->macros, text + head + 1, len - head - 1);
		cs_buf_char(&r->b->macros, '\0');
		return 0;
	}
	memset(&r->row, 0, sizeof r->row);
	r->row.opt = (uint32_t)(r->b->opts.len / sizeof(struct sh_opt));
	r->row.pattern = (uint32_t)(r->b->patterns.len / sizeof(struct sh_pattern));
	r->n_modes = 0;
	e = read_names(r, text, head, made, 0);
	if (e >= 0)
		e = read_words(r, text + head + 1, len - head - 1);
	if (e >= 0)
		e = close_pattern(r);
	if (e < 0)
		return e;
	cs_buf_add(&r->b->rows, &r->row, sizeof r->row);
	return 0;
}

/* ---- the whole ---- */

void sh_rows_init(struct sh_rows *b)
{
	*b = (struct sh_rows){
		.strings = CS_BUF(4 << 20), .names = CS_BUF(1 << 20), .rows = CS_BUF(1 << 20), .opts = CS_BUF(8 << 20),
		.patterns = CS_BUF(4 << 20), .slots = CS_BUF(2 << 20), .macros = CS_BUF(1 << 20),
	};
	cs_buf_char(&b->strings, '\0');
	/* The first of each is no one's, so that there always is an array to point into. */
	cs_buf_add(&b->opts, &(struct sh_opt){ 0 }, sizeof(struct sh_opt));
	cs_buf_add(&b->patterns, &(struct sh_pattern){ 0 }, sizeof(struct sh_pattern));
	cs_buf_add(&b->slots, &(struct sh_slot){ 0 }, sizeof(struct sh_slot));
}

void sh_rows_done(struct sh_rows *b)
{
	cs_buf_done(&b->strings);
	cs_buf_done(&b->names);
	cs_buf_done(&b->rows);
	cs_buf_done(&b->opts);
	cs_buf_done(&b->patterns);
	cs_buf_done(&b->slots);
	cs_buf_done(&b->macros);
}

static bool over(const struct sh_rows *b)
{
	return b->strings.over || b->names.over || b->rows.over || b->opts.over || b->patterns.over || b->slots.over || b->macros.over;
}

int sh_rows_add(struct sh_rows *b, const char *text, size_t len, const char *origin, struct cs_err *err)
{
	struct reader r = { .b = b, .origin = origin, .err = err };
	size_t i = 0, line = 0;

	if (len > SH_ROWS_TEXT_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "%s: rows of %zu bytes; at most %d", origin, len, SH_ROWS_TEXT_MAX);
	if (memchr(text, '\0', len))
		return cs_fail(err, CS_E_INVALID, 0, "%s: a NUL byte among the rows; remove it", origin);
	while (i < len) {
		struct cs_buf row CS_BUF_AUTO = CS_BUF(SH_ROWS_TEXT_MAX);
		int e;

		r.line = (unsigned)line + 1;
		/* A row, or a comment, or nothing; then its continuation lines, which begin with a blank. */
		for (bool first = true; i < len; first = false) {
			const char *nl = memchr(text + i, '\n', len - i);
			size_t n = nl ? (size_t)(nl - text) - i : len - i, skip = 0;
			bool blank;

			while (skip < n && isspace((unsigned char)text[i + skip]))
				skip++;
			blank = skip == n || text[i + skip] == '#';
			if (!first && !blank && !skip)
				break;
			if (first && !blank && skip)
				return bad(&r, "a row begins at the start of the line; this one continues nothing");
			if (!blank) {
				cs_buf_add(&row, text + i, n);
				cs_buf_char(&row, ' ');
			}
			i += n + (nl != NULL);
			line++;
			if (first && blank)
				break;
		}
		if (!row.len)
			continue;
		e = read_row(&r, row.data, row.len);
		if (e < 0)
			return e;
		if (over(b))
			return cs_fail(err, CS_E_LIMIT, 0, "%s:%u: the table is full", origin, r.line);
	}
	return 0;
}

void sh_rows_table(const struct sh_rows *b, struct sh_table *ret)
{
	*ret = (struct sh_table){
		.strings = b->strings.data,
		.names = (const struct sh_name *)(const void *)b->names.data,
		.rows = (const struct sh_row *)(const void *)b->rows.data,
		.opts = (const struct sh_opt *)(const void *)b->opts.data,
		.patterns = (const struct sh_pattern *)(const void *)b->patterns.data,
		.slots = (const struct sh_slot *)(const void *)b->slots.data,
		.n_names = b->names.len / sizeof(struct sh_name),
		.n_rows = b->rows.len / sizeof(struct sh_row),
		.n_opts = b->opts.len / sizeof(struct sh_opt),
		.n_patterns = b->patterns.len / sizeof(struct sh_pattern),
		.n_slots = b->slots.len / sizeof(struct sh_slot),
		.n_strings = b->strings.len,
	};
}
