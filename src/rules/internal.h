/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the parts of the loader of rules, for src/rules only.
 *
 * Text becomes tokens (lex.c), tokens a tree with names resolved (decl.c for
 * tools and sets, expr.c for formulas, parse.c for statements), and the tree is
 * checked against the tools' schemas and given the monitor's numbers (check.c).
 *
 * An error is sticky: the first one is kept, and from then on every token is the
 * end of the file.  So no function here has an error path of its own; loops end
 * at TK_END, and whoever looks into what a callee gave asks p->failed first.
 */
#pragma once
#include "rules/ast.h"

enum {
	RL_MAX_TEXT = 1 << 20,
	RL_MAX_NESTING = 64,
	RL_MAX_RULES = 10000,
	RL_MAX_TOOLS = 10000,
	RL_MAX_TOOL_SETS = 10000, /* different ones that a file speaks of */
	RL_MAX_VARS = 8,
	RL_MAX_LOCALS = 8,        /* all/any inside one another */
	RL_MAX_STATE_BITS = 64,
	RL_MAX_WORK = 20000000,   /* looks at an argument of one tool, while types are checked */
};

enum token_kind { TK_END, TK_NAME, TK_STRING, TK_NUMBER, TK_DURATION, TK_PUNCT };

/* Of two characters, the second one in the high byte. */
#define RL_TWO(a, b) ((a) | (b) << 8)

struct token {
	enum token_kind kind;
	struct rl_pos pos;
	const char *start;  /* in the text of the file */
	size_t len;
	const char *text;   /* NAME, STRING (decoded), NUMBER, DURATION: NUL-terminated, in the arena */
	uint32_t text_len;
	int op;             /* PUNCT: the character, or RL_TWO() */
};

/* name -> index; open addressing. */
struct rl_map {
	struct rl_map_slot { const char *name; uint32_t index; } *slots;
	uint32_t cap, n;
};

struct rl_type;

struct parser {
	const char *name, *text, *end;
	const char *at;          /* behind the token */
	struct rl_pos at_pos;
	struct token tok;
	struct rl_pos last_end;  /* where the token before ended: "; is missing here" */
	bool failed;
	struct cs_err *err;
	struct rules *r;
	struct cs_arena *a;
	unsigned nesting;

	struct rules_tool *tools; /* those of the caller and the file's own */
	struct rl_map tool_names, set_names, rule_names, tool_sets;
	const struct rl_tools **sets; /* by set_names and tool_sets */
	uint32_t n_sets;

	/* Of large sets, what was found out about an argument: check_types.c. */
	struct rl_map seen;
	struct rl_type *seen_types;
	uint32_t work;

	/* The scope of a formula. */
	const char *vars[RL_MAX_VARS];
	uint32_t n_vars;
	const char *locals[RL_MAX_LOCALS];
	uint32_t n_locals;
	bool in_event; /* inside an event's `where` */
};

/* ---- lex.c ---- */
void rl_warn(struct parser *p, struct rl_pos pos, const char *fmt, ...) __attribute__((format(printf, 3, 4), cold));
void rl_fail(struct parser *p, struct rl_pos pos, const char *fmt, ...) __attribute__((format(printf, 3, 4), cold));
void rl_fail_limit(struct parser *p, struct rl_pos pos, const char *fmt, ...) __attribute__((format(printf, 3, 4), cold));
void rl_next(struct parser *p);
/* The token again, as the name of a tool or a glob: cancel_*, fs.read-file. Quoted names stay strings. */
void rl_retake_word(struct parser *p);
bool rl_is(const struct parser *p, int op);
bool rl_is_word(const struct parser *p, const char *word);
bool rl_take(struct parser *p, int op);
bool rl_take_word(struct parser *p, const char *word);
void rl_expect(struct parser *p, int op, const char *where);
void rl_expect_word(struct parser *p, const char *word, const char *where);
const char *rl_show_token(const struct parser *p, char *dst, size_t size); /* for messages */
const char *rl_escape(struct parser *p, const char *s);                    /* for messages, in the arena */
/* Ends in failure rather than NULL wherever p->failed is looked at; NULL once the arena is over. */
void *rl_get(struct parser *p, size_t n, size_t size);
/* Room for one more after n of them; the array doubles. */
void *rl_grow(struct parser *p, void *v, uint32_t n, size_t size);
bool rl_enter(struct parser *p); /* one level of nesting; false where it is too deep */
void rl_leave(struct parser *p);
bool rl_map_find(const struct rl_map *m, const char *name, uint32_t *ret);
void rl_map_add(struct parser *p, struct rl_map *m, const char *name, uint32_t index);
/* "; did you mean `x`?" or "". */
const char *rl_suggest(struct parser *p, const char *word, const char *const *names, size_t n);

/* ---- value.c ---- */
void rl_value(struct parser *p, struct json *ret);   /* any JSON value */
bool rl_literal(struct parser *p, struct json *ret); /* a string, number, boolean or null, if one stands here */
const struct json *rl_json_str(struct parser *p, const char *s);

/* ---- decl.c ---- */
void rl_declare(struct parser *p);                           /* first pass: tools and sets */
void rl_skip_statement(struct parser *p);
void rl_tool_ref(struct parser *p, struct rl_tools *ret);    /* a name, a set, a glob, * */
void rl_tool_list(struct parser *p, struct rl_tools *ret);   /* that, or several in braces */
int rl_tool_find(const struct parser *p, const char *name);  /* -1: none */
const char *rl_tool_suggest(struct parser *p, const char *word);
unsigned rl_effect(const char *word);                        /* 0: none */
extern const char *const rl_effect_names[5];                 /* bit i of rules_tool.effects */

/* ---- expr.c ---- */
const struct rl_formula *rl_parse_formula(struct parser *p);
const struct rl_formula *rl_parse_event(struct parser *p);
const struct rl_call *rl_parse_call(struct parser *p, bool may_end);
struct rl_formula *rl_formula_new(struct parser *p, enum rl_op op, struct rl_pos pos);

/* ---- parse.c ---- */
void rl_parse(struct parser *p);

/* ---- print.c ---- */
void rl_print_call(const struct rl_call *c, struct cs_buf *b);
void rl_print_formula(const struct rl_formula *f, struct cs_buf *b);
void rl_print_term(const struct rl_term *t, struct cs_buf *b);
void rl_print_duration(uint64_t ms, struct cs_buf *b);
/* The rules and assertions of a file, and its tests, in one spelling; tools and sets are not written. */
void rl_print(const struct rules *r, struct cs_buf *b);

/* ---- type.c: what a JSON Schema says about a place in a value ---- */
enum {
	TY_NULL = 1 << JSON_NULL, TY_BOOL = 1 << JSON_BOOL, TY_NUMBER = 1 << JSON_NUMBER, TY_STRING = 1 << JSON_STRING,
	TY_ARRAY = 1 << JSON_ARRAY, TY_OBJECT = 1 << JSON_OBJECT, TY_ANY = 63,
	TY_ALTERNATIVES = 8,
};

struct rl_type {
	unsigned mask;
	unsigned element; /* of lists that no schema speaks of: the mask of their elements; 0: not known */
	bool optional; /* may be absent although the value as a whole fits */
	/* Where the value may come from; more than TY_ALTERNATIVES: nothing is known but the mask. */
	struct rl_type_from { const struct json *schema, *root; } from[TY_ALTERNATIVES];
	uint32_t n;
	bool open; /* something is not known: no error may be derived from `from` */
};

void rl_type_any(struct rl_type *t, unsigned mask);
void rl_type_of(const struct json *schema, struct rl_type *ret);
void rl_type_join(struct rl_type *into, const struct rl_type *other);
enum rl_step_result { RL_STEP_OK, RL_STEP_NO_FIELD, RL_STEP_NOT_OBJECT, RL_STEP_NOT_ARRAY };
/* What stands behind a step; a step that is computed goes to any element. */
enum rl_step_result rl_type_step(const struct rl_type *t, const struct rl_step *s, struct rl_type *ret);
void rl_type_element(const struct rl_type *t, struct rl_type *ret);
/* False where no value there can equal v. */
bool rl_type_admits(const struct rl_type *t, const struct json *v);
/* The strings of an enum or const there, if all there may be; 0: none or not known. */
size_t rl_type_enum(const struct rl_type *t, const char **ret, size_t max);
size_t rl_type_fields(const struct rl_type *t, const char **ret, size_t max);
const char *rl_type_name(unsigned mask); /* "a number", "a string or null" */

/* What a host tells of its session (gate/world.c). */
enum { RL_SESSION_NAMES = 8 };
extern const struct rl_session_name {
	const char *name;
	unsigned mask;
} rl_session_names[RL_SESSION_NAMES];

/* ---- check.c ---- */
void rl_check(struct parser *p);

/* ---- check_types.c: terms against the schemas of tools; warnings ---- */
void rl_check_types(struct parser *p);
