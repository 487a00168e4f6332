/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - from rules to SMT-LIB, and back from a model to a trace.
 *
 * A trace of K steps is K sets of variables.  A step is one of: a call with its
 * result (ok, fail, or none yet), a word of the user, a confirmation.  So a step
 * is up to two events, and a formula over the past has a value after each:
 * position 2i is after the first event of step i, 2i+1 after its result (the same
 * as 2i where there is none), -1 before everything.
 *
 * A JSON value is a record of expressions (struct val): is it there, of which type
 * is it, and what is it as each of the types it may have.  Strings are elements of
 * an uninterpreted sort, patterns predicates on it: only equality and the patterns
 * can be asked of a string, and which sets of patterns a string can fit at once
 * is worked out beforehand (combos.c).  That keeps the theory of strings, the
 * slowest and least complete, out of the search.
 *
 * What has no encoding (provenance, shell classes, lengths, loops over elements, computed indexes)
 * is a free variable, one for each place and step: everything that can happen can
 * happen in the model, too.  So "no" from the solver is a proof, and "yes" is a
 * conjecture that the monitor itself is asked about (trace.c).  Under the assumption
 * `plain` none of these is known, which gives traces that are more likely to hold up.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"
#include "prove/prove.h"
#include "prove/solver.h"
#include "rules/ast.h"
#include "rules/rules.h"

typedef const char *ex; /* an SMT-LIB expression, in the arena */

enum { T_NULL = 1, T_BOOL = 2, T_NUM = 4, T_STR = 8, T_ARR = 16, T_OBJ = 32, T_ALL = 63 };

/* Sorts: S of strings, O of arrays and objects; numbers are Int or Real. */
struct val {
	unsigned mask;  /* the types it may have */
	ex p;           /* is it there (and known) */
	ex tag;         /* the bit of its type; NULL: mask has one */
	ex s, n, b, o;  /* what it is as a string, number, boolean, array or object; NULL: mask excludes that */
	bool whole;     /* n is an Int */
};

/* Three-valued: known to be true, known to be false. */
struct tv {
	ex t, f;
};

struct scope;

enum slot_kind { SLOT_ARG, SLOT_RESULT };

struct toolset {
	bool *in; /* by index in enc */
	uint32_t n;
};

/* A place in the arguments or the result that some rule looks at. */
struct slot {
	enum slot_kind kind;
	struct toolset of;          /* of which tools: of the others it might as well not be there */
	const char *path;           /* ".order.id", "[0]"; "" is all of it */
	const struct rl_step *steps;
	uint32_t n;
	struct val *at;             /* one per step */
};

/* What is asked of the inside of an object or array, with a key or a value that is computed: is there an entry
 * [KEY], what is at [KEY].REST, is VALUE an element (of an array) or one of the values (of an object)?  Of each
 * step these are functions of the key or the value: the same for equal ones, and free where no fixed place is meant. */
struct family {
	enum family_kind { FAM_ENTRY, FAM_AT, FAM_ELEMENT, FAM_VALUE } kind;
	enum slot_kind in;
	struct toolset of;
	const struct rl_step *path; /* to the object or array: fixed */
	uint32_t n;
	const struct rl_step *rest; /* AT: below the entry, fixed */
	uint32_t n_rest;
	const char *text;           /* names it */
	const struct rl_step *known; /* the keys or indexes just below that are places of their own */
	uint32_t n_known;
	bool wide;                  /* too many of those: no encoding */
	uint32_t declared;          /* steps whose functions are */
	unsigned mask;              /* AT: the types there may be */
	bool whole;
};

/* A question that was put to a family: what it needs in the trace if the answer is yes. */
struct demand {
	struct demand *next;
	const struct family *f;
	int step;        /* whose arguments or result are meant */
	int asker;       /* the call that asked; with `end`, after so many steps */
	bool end;
	struct val what; /* the key or the value */
	struct val v;    /* AT: what is there. Others: p is the answer, for what is no place of its own */
};

/* A property of strings: fits a pattern or, without one, is a path below another. */
struct pred {
	const struct pattern *pattern;
	const char *under;
};

struct word { /* a string that stands in a rule, a schema or a plan */
	const char *s;
	size_t len;
};

struct tool {
	const char *name;
	const struct json *input, *output;
	unsigned effects;
};

struct policy {
	const struct rules *r;
	const int *tool;    /* index in r -> index in enc */
	const char *prefix; /* of the switches: "now", "was"; no variable begins so */
};

struct step {
	ex *tool;         /* is it a call of this one */
	ex call, user, confirm;
	ex ok, fail, result; /* the second event; either of the two */
	ex t;
};

struct memo;

struct enc {
	struct cs_arena arena;
	struct cs_buf *out;
	unsigned fresh;
	struct tool *tools;
	uint32_t n_tools;
	struct slot *slots;
	uint32_t n_slots, cap_slots;
	struct family *families;
	uint32_t n_families, cap_families;
	struct demand *demands;
	struct pred *preds;
	uint32_t n_preds, cap_preds;
	struct word *words;
	uint32_t n_words, cap_words;
	const struct json **things; /* arrays and objects that stand in a rule */
	uint32_t n_things, cap_things;
	const char *classes[64]; /* of provenance, that some rule names */
	uint32_t n_classes;
	struct combo {
		uint64_t bits;       /* of the patterns that fit, in the order of preds */
		const char *example; /* a string; may be NULL */
	} *combos;
	uint32_t n_combos;
	bool settled; /* `okS` says which patterns a string can fit at once */
	struct step *steps;
	uint32_t n_steps, cap_steps;
	bool every;        /* places are looked at whichever the tool is */
	bool timed;        /* some rule has a window */
	bool fail_results; /* some rule looks into what a failed call gave */
	struct memo *memo;
	struct asked *asked;
};

/* ---- expr.c ---- */
ex x(struct enc *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
ex x_not(struct enc *e, ex a);
ex x_and(struct enc *e, ex a, ex b);
ex x_or(struct enc *e, ex a, ex b);
ex x_ite(struct enc *e, ex c, ex a, ex b);
/* A name for it, so that it is written once. */
ex x_name(struct enc *e, const char *sort, ex value);
ex x_fresh(struct enc *e, const char *sort, const char *hint);
void x_assert(struct enc *e, ex fact);
static inline bool x_true(ex a) { return a[0] == 't' && a[1] == 'r' && !a[4]; }
static inline bool x_false(ex a) { return a[0] == 'f' && a[1] == 'a' && !a[5]; }

struct tv tv_of(struct enc *e, ex known, ex value);
struct tv tv_not(struct tv a);
struct tv tv_and(struct enc *e, struct tv a, struct tv b);
struct tv tv_or(struct enc *e, struct tv a, struct tv b);
struct tv tv_free(struct enc *e);

ex val_is(struct enc *e, const struct val *v, unsigned type); /* given that it is there */
struct val val_const(struct enc *e, const struct json *j);
struct val val_free(struct enc *e, unsigned mask, bool whole, bool always);
struct val val_absent(void);
struct val val_num(ex n, bool whole);
struct val val_ite(struct enc *e, ex c, const struct val *a, const struct val *b);
struct val val_named(struct enc *e, const struct val *v);
ex val_equal(struct enc *e, const struct val *a, const struct val *b); /* given that both are there */
ex val_compare(struct enc *e, const char *op, const struct val *a, const struct val *b); /* given that both are numbers */

/* What was worked out before: (what, position, binding). */
const struct tv *memo_get(struct enc *e, const void *what, int at, int binding);
struct tv memo_put(struct enc *e, const void *what, int at, int binding, struct tv value);

/* Room for one more after n. */
bool enc_grow(struct enc *e, void **v, uint32_t n, uint32_t *cap, size_t size);

/* ---- words.c: strings and what can be asked of them ---- */
ex word_of(struct enc *e, const char *s, size_t len);
uint32_t pred_of(struct enc *e, struct pred p);
struct pred pred_part(struct enc *e, const char *part); /* has this in it */
struct pred pred_rooted(struct enc *e);                 /* begins with / */
struct pred pred_relative(struct enc *e);               /* a path that does not */
struct pred pred_detour(struct enc *e);                 /* has . or .. or an empty part */
struct pred pred_below(struct enc *e, const char *base); /* is a plain relative path or begins with it */
bool pred_is_plain_path(const char *base);              /* "." or a relative one without detours */
ex pred_holds(struct enc *e, uint32_t pred, ex string);
bool pred_test(const struct pred *p, const char *s, size_t len);
/* After all rules were collected: which predicates can go together. */
void words_settle(struct enc *e);
void words_constrain(struct enc *e, ex string); /* it is one of those that exist */
/* A string for which exactly these predicates hold, other than those in `taken`. NULL: none was found. */
const char *word_find(struct enc *e, const bool *holds, const struct word *taken, size_t n_taken);

/* ---- combos.c: fills enc.combos; false: not with all there are ---- */
enum { COMBOS_MAX = 1024 };
bool combos_find(struct enc *e);

/* ---- slots.c: what is looked at, and of which types it is ---- */
void collect(struct enc *e, const struct policy *p);
void slot_add(struct enc *e, enum slot_kind kind, const struct rl_step *steps, uint32_t n, const struct toolset *of);
void slots_settle(struct enc *e); /* after collecting, before the first step */
void toolset_add(struct enc *e, struct toolset *to, const struct toolset *more);
bool toolset_has(const struct enc *e, const struct toolset *s, uint32_t tool);
const struct slot *slot_find(const struct enc *e, enum slot_kind kind, const struct rl_step *steps, uint32_t n);
bool path_text(const struct rl_step *steps, uint32_t n, struct cs_buf *b); /* false: it is computed */
/* The schema of a place below one; `required`: it is always there. NULL schema: anything. */
struct place {
	const struct json *schema;
	bool required, never;
};
struct place schema_at(const struct json *schema, const struct rl_step *steps, uint32_t n);
/* The schema of what is below under a name that the schema does not name (or an index, for arrays). */
struct place schema_other(const struct json *schema, bool array);
unsigned schema_types(const struct json *schema, bool *ret_whole);
ex schema_fits(struct enc *e, const struct val *v, const struct json *schema); /* given that it is there */
ex slot_happens(struct enc *e, enum slot_kind kind, uint32_t step, uint32_t tool);
void slots_declare(struct enc *e, uint32_t step);

/* ---- inside.c: keys, elements and paths that are computed ---- */
void inside_collect(struct enc *e, const struct rl_term *t, const struct toolset *of); /* a path with a computed step */
bool inside_is_set(const struct rl_term *set);                        /* can be asked for an element */
void inside_collect_set(struct enc *e, const struct rl_term *set, const struct toolset *of);
void inside_settle(struct enc *e);
/* What a path leads to in the arguments or the result of a step. */
struct val inside_value(const struct scope *s, enum slot_kind kind, const struct rl_term *t, int step);
/* Is it an element: p says whether that is known, b whether it is. False: has no encoding. */
bool inside_has(const struct scope *s, const struct rl_term *set, const struct val *v, struct val *ret);

/* ---- asked.c: what only the host knows, and what has no encoding ---- */
enum asked_kind { ASKED_FORMULA, ASKED_TERM, ASKED_SESSION, ASKED_SHELL, ASKED_FROM };
struct asked { /* one variable, or set of them, for each place and step */
	struct asked *next;
	enum asked_kind kind;
	const char *key;       /* what is asked, as text */
	int step;
	bool end;
	struct tv tv;          /* FORMULA; FROM: is this class one of them */
	struct val val;        /* TERM, SESSION, SHELL */
	const char *name;      /* SESSION; FROM: the class, NULL: some other */
	const struct rl_term *arg; /* SHELL, FROM: of what */
};

/* ---- formula.c ---- */
struct scope {
	struct enc *e;
	const struct policy *pol;
	int step;               /* of the present call; of the event, in its `where` */
	const struct val *vars; /* of the rule */
	uint32_t n_vars;
	int binding;            /* names the values of the variables, for the memo */
	bool in_event;
	bool end;               /* the present call is `end`: it has no arguments */
	bool other;             /* the variables have values that no event has had */
};
struct tv formula(const struct scope *s, const struct rl_formula *f);
struct val term(const struct scope *s, const struct rl_term *t);
struct tv asked_formula(const struct scope *s, const struct rl_formula *f);
struct val asked_term(const struct scope *s, const struct rl_term *t);
struct tv asked_from(const struct scope *s, const struct rl_term *from, const char *class);
/* A formula over the past, after position `at`. */
struct tv past(const struct scope *s, const struct rl_formula *f, int at);
struct tv past_now(const struct scope *s, const struct rl_formula *f);
struct val past_last(const struct scope *s, const struct rl_term *t);
/* What `at` makes of each step's result, for the latest that `t` means. */
typedef struct val last_fn(const struct scope *s, const struct rl_term *t, int step, const void *arg);
struct val past_last_by(const struct scope *s, const struct rl_term *t, last_fn *at, const void *arg);
struct val past_count(const struct scope *s, const struct rl_term *t);
struct val past_sum(const struct scope *s, const struct rl_term *t);
/* An event itself, at a position that has one: 2i the call, 2i+1 its result. */
struct tv event_at(const struct scope *s, const struct rl_formula *f, int at);
ex tools_called(struct enc *e, const struct policy *pol, const struct rl_tools *t, int step);
struct tv arg_matches(const struct scope *s, const struct rl_arg *a, int step);

/* ---- steps.c ---- */
void enc_init(struct enc *e, struct cs_buf *out);
void enc_done(struct enc *e);
int enc_policy(struct enc *e, const struct rules *r, const char *prefix, struct policy *ret);
void enc_settle(struct enc *e); /* after the policies, before the first step */
bool enc_steps(struct enc *e, uint32_t n); /* so many there are; false: too large */
/* Would this rule fire at the call of step k; at an `end` after k steps? */
ex rule_fires(struct enc *e, const struct policy *p, uint32_t rule, int k, bool end);
ex switch_of(struct enc *e, const struct policy *p, uint32_t rule);
/* Is the call of step k let through, as far as the rules that are switched on say? */
ex step_legal(struct enc *e, const struct policy *p, int k, bool end);
/* Is the verdict on it at least this strict (all rules)? */
ex verdict_at_least(struct enc *e, const struct policy *p, int k, bool end, enum rules_verdict v);

/* ---- trace.c: a model as a trace, and what the monitor says of it ---- */
struct trace_step {
	enum { STEP_CALL, STEP_USER, STEP_CONFIRM } kind;
	uint32_t tool; /* index in enc */
	const struct json *args, *result;
	enum { RESULT_OK, RESULT_FAIL, RESULT_NONE } outcome;
	uint64_t t_ms;
};
struct trace {
	struct enc *e;
	struct cs_arena *arena;
	struct trace_step *steps;
	uint32_t n;
	uint64_t end_ms;
	struct model *model;
	int world_step; /* whose answers of the host count now */
	bool world_end;
};
/* After SOLVER_SAT: the first n steps. False: the model cannot be read, or no strings were found for it. */
bool trace_read(struct trace *t, struct enc *e, struct solver *s, struct cs_arena *a, uint32_t n);
void trace_write(const struct trace *t, struct cs_buf *b);

/* What the monitor says of the last step or, with `end`, of an end after all of them. */
struct replay {
	bool legal; /* all calls before were let through */
	enum rules_verdict verdict;
	const char *rule; /* that the verdict is due to; NULL: none fired */
};
struct replay trace_replay(struct trace *t, const struct policy *p, bool end);
struct replay trace_replay_without(struct trace *t, const struct policy *p, uint32_t rule, bool end);
bool trace_fires(struct trace *t, const struct policy *p, uint32_t rule, bool end);
/* Is this formula known to be true after all steps? */
bool trace_holds(struct trace *t, const struct policy *p, const struct rl_formula *f);

/* ---- search.c ---- */

/* One run of the solver over one encoding. */
struct job {
	struct enc e;
	struct solver *s;
	struct policy p, old;    /* `old` has no rules but in prove_against() */
	struct prove_report *report;
	uint32_t depth;
	bool deeper;             /* nobody asked for a depth: where rules count further than that, go on */
	uint32_t n_legal;        /* literals that were made */
	struct cs_arena scratch; /* of one question */
};

/* Something that some trace may do after k steps. */
struct goal {
	ex (*target)(struct job *j, const struct goal *g, uint32_t k);
	bool (*verify)(struct job *j, const struct goal *g, struct trace *t);
	uint32_t index;
	const void *arg;
	uint32_t least, most;  /* steps */
	bool last_legal;       /* the last call is let through as well */
	bool often_never;      /* it is likely that nothing does, whether the calls before are let through or not: ask that first */
	/* What was found. */
	enum { GOAL_NONE, GOAL_REACHED, GOAL_UNDECIDED } state; /* NONE: no trace does, to `most` steps */
	uint32_t k;
	const char *trace, *why;
	struct replay replay;
	uint32_t again; /* private, k + 1: its trace there did not hold up */
};

int job_start(struct job *j, const struct prove_options *o, struct prove_report *report, struct cs_err *err);
void job_end(struct job *j);
/* The shortest trace for each. */
void search(struct job *j, struct goal *goals, uint32_t n);
/* Which rules it is due to that no trace reaches the goal: none of them can be left out. Ends with NULL; NULL: not known.
 * Without `legal`, that no trace does, be it legal or not. */
const char *const *blame(struct job *j, struct goal *g, bool legal);
/* "name, name and name" */
const char *names_text(struct job *j, const char *const *names);
/* A literal that implies it. */
ex literal(struct job *j, ex fact);
/* All rules on, the first n calls let through, then these. */
enum solver_answer ask_legal(struct job *j, const bool *off, uint32_t n, const ex *more, size_t n_more);
struct prove_finding *report_add(struct job *j, enum prove_about about, enum prove_outcome outcome, const char *name);
const char *report_text(struct job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
