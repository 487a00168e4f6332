/* SPDX-License-Identifier: Apache-2.0 */
/* table_internal.h - the parsed form of rows: flat arrays that point at one another by number, so that the built-in
 * table is constant data without relocations. */
#pragma once
#include "base/buf.h"
#include "shell/table.h"

/* How a word is taken apart before its role applies. */
enum sh_form {
	SH_FORM_PLAIN,
	SH_FORM_AT,      /* @FILE has the role; anything else is text */
	SH_FORM_DATA,    /* NAME=@FILE or NAME=<FILE, as curl -F */
	SH_FORM_SSH,     /* Keyword=value of ssh -o */
	SH_FORM_NAME,    /* of a variable: a subscript would be evaluated */
	SH_FORM_REMOTE,  /* host:path is a HOST, a path has the role */
	SH_FORM_REST,    /* COMMAND: this word and all that follow */
	SH_FORM_REST_C,  /* ... or -c and text for a shell: flock */
	SH_FORM_JOIN,    /* SHELL: this word and all that follow, with blanks between */
	SH_FORM_UNTIL,   /* COMMAND: up to ; or {} + */
	SH_FORM_ENVS,    /* as many NAME=VALUE as there are */
	SH_FORM_BY_MODE, /* the second role if the row's first mode is set: tar -f */
	SH_FORM_FIXED,   /* no operand: `lang` is the text itself. Behind all others. */
	SH_FORM_COUNT,   /* a number that says how long it goes on: small ones only */
	SH_FORM_SHOWN,   /* the name of a variable whose value is shown */
	SH_FORM_LETTERS, /* options without a dash: `lang` is those that are not known, '/', those that take an argument */
	SH_FORM_REPLACE, /* the text that is replaced in the command's words */
	SH_FORM_MAX
};

enum sh_repeat { SH_ONE, SH_MAYBE, SH_MANY };

struct sh_slot {
	uint8_t role, role2;   /* enum sh_role; role2 INERT: none */
	uint8_t form, repeat;
	uint8_t dash;          /* "-" is standard input or output */
	uint8_t spare[3];
	uint32_t lang;         /* into strings; 0: none */
};

/* What follows is operands; alone on the line, it shows something and no more; it is one behind -- as well. */
enum { SH_LAST_END = 1, SH_LAST_ONLY = 2, SH_LAST_ALWAYS = 4 };
enum { SH_ARG_NONE, SH_ARG_NEEDED, SH_ARG_ATTACHED };

struct sh_opt {
	uint32_t name;         /* into strings, with its dashes */
	uint32_t does;         /* enum sh_does and SH_ALSO_* */
	uint32_t modes;
	uint16_t slot;
	uint8_t n_slots, arg;
	uint8_t last;          /* SH_LAST_*: */
	uint8_t prefix;        /* -I*: the rest of the word is its argument */
	uint8_t spare[2];
};

struct sh_pattern {
	uint32_t modes, does;
	int16_t count;         /* of operands; -1: any */
	uint16_t slot;
	uint8_t n_slots;
	uint8_t spare[3];
};

enum { SH_ALSO_APPENDS = 1 << 16, SH_ALSO_STDIN_WORDS = 1 << 17, SH_ALSO_NO_PAGER = 1 << 18 };

enum sh_row_flag {
	SH_ROW_GNU = 1 << 0,      /* getopt_long with every long option listed: abbreviations; --help, --version */
	SH_ROW_STOP = 1 << 1,     /* the first operand ends the options */
	SH_ROW_WORDS = 1 << 2,    /* -name is one option, not five */
	SH_ROW_NOOPT = 1 << 3,    /* no options at all */
	SH_ROW_PURE = 1 << 4,     /* no option of the real command does more than read */
	SH_ROW_INERT = 1 << 5,    /* ... nor even that */
	SH_ROW_SUB = 1 << 6,      /* the first operand is a subcommand */
	SH_ROW_INHERIT = 1 << 7,  /* its options may also stand after the subcommand */
	SH_ROW_OLD = 1 << 8,      /* the first word may be options without a dash */
	SH_ROW_KEYED = 1 << 9,    /* operands are key=value */
	SH_ROW_FIND = 1 << 10,    /* paths, then an expression */
	SH_ROW_READS = 1 << 12,   /* PURE, but an option may name a file that names others */
	SH_ROW_TEST = 1 << 11,    /* an expression of test(1) */
};

struct sh_row {
	uint32_t name, why;    /* into strings; why 0: none */
	uint32_t flags, does;
	uint32_t opt, pattern; /* first of */
	uint16_t n_opts, n_patterns;
};

struct sh_name {
	uint32_t name;         /* "git remote add" */
	uint32_t row;
};

struct sh_table {
	const struct sh_table *base; /* looked at after this one */
	bool trusted;
	const char *strings;         /* begins with a NUL: offset 0 is "" */
	const struct sh_name *names; /* sorted */
	const struct sh_row *rows;
	const struct sh_opt *opts;   /* sorted within a row */
	const struct sh_pattern *patterns;
	const struct sh_slot *slots;
	size_t n_names, n_rows, n_opts, n_patterns, n_slots, n_strings;
};

/* Rows under construction, from one or more texts. */
struct sh_rows {
	struct cs_buf strings, names, rows, opts, patterns, slots, macros;
};

enum { SH_ROWS_TEXT_MAX = 256 << 10, SH_ROWS_NAMES_MAX = 4096, SH_ROW_OPTS_MAX = 1024, SH_ROW_SLOTS_MAX = 255, SH_ROW_MODES_MAX = 24 };

void sh_rows_init(struct sh_rows *b);
int sh_rows_add(struct sh_rows *b, const char *text, size_t len, const char *origin, struct cs_err *err);
/* Points into b. */
void sh_rows_table(const struct sh_rows *b, struct sh_table *ret);
void sh_rows_done(struct sh_rows *b);

/* Findings, for table_code.c: text is copied. */
void sh_findings_add(struct sh_findings *f, struct sh_finding x);
const char *sh_findings_copy(struct sh_findings *f, const char *s, size_t len);
