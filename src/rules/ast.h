/* SPDX-License-Identifier: Apache-2.0 */
/* ast.h - a rules file as a tree, after names and types were checked.
 *
 * Private to rules/ and prove/.  One arena holds the tree; nothing in it changes
 * after rules_load().  docs/rules.md has the language; the semantics in one place:
 *
 * A trace is a list of events: user, confirm, call (one that was let through),
 * ok and fail (its result), end.  A call that was refused is no event.
 * A rule `forall v. VERB CALL where G unless U` is asked before a call that
 * matches CALL: the variables are bound by the equalities in CALL.  G and U are
 * formulas, true, false or unknown (Kleene): a comparison with something absent
 * is unknown, and an event whose pattern or `where` is unknown is too.  forbid, ask and sandbox fire unless G is false or U is true;
 * allow fires if G is true and U is false.  So an absent argument satisfies
 * no guard, whichever way the guard is written.
 * Temporal operators speak of the events before the call, the last one being
 * "now": once, historically, previously, since, count, seq have the usual
 * past-time meaning; over the empty trace once, since, previously and events are
 * false and historically is true.
 * Below a temporal operator stand events only, never comparisons with the
 * present call, and an event there binds all of the variables of the outermost
 * temporal operator or none: so a state is a few bits per tuple of values, and
 * what happens to all other tuples is the same for all of them.
 */
#pragma once
#include "base/arena.h"
#include "json/json.h"
#include "rules/pattern.h"
#include "rules/rules.h"

struct rl_pos {
	uint32_t line, column; /* of the first character, from 1 */
};

/* A set of tools: those of the manifest a name, a glob, a set or an effect stands for. */
struct rl_tools {
	const char *text;       /* as written, for messages: "cancel_*", "WRITE", "*" */
	const uint32_t *ids;    /* sorted indexes into rules->tools */
	uint32_t n;
	bool end;               /* the pseudo tool `end` */
};

/* name=value in a call pattern. */
enum rl_arg_kind { RL_ARG_ANY, RL_ARG_VAR, RL_ARG_CONST, RL_ARG_PATTERN };

struct rl_arg {
	const char *name; /* a path: "order.id", "items[0]" */
	const struct rl_step *path;
	uint32_t steps;
	enum rl_arg_kind kind;
	uint32_t var;                  /* RL_ARG_VAR: index into rule->vars */
	const char *var_name;          /* its name, for messages */
	const struct json *value;      /* RL_ARG_CONST */
	const struct pattern *pattern; /* RL_ARG_PATTERN */
	struct rl_pos pos;
};

struct rl_call {
	struct rl_tools tools;
	const struct rl_arg *args;
	uint32_t n_args;
	struct rl_pos pos;
};

enum rl_event { RL_EV_USER, RL_EV_CONFIRM, RL_EV_CALL, RL_EV_OK, RL_EV_FAIL };

/* One step of a path into a JSON value: .name, [3], or [TERM] (a key or an index). */
struct rl_step {
	const char *key;             /* NULL: index */
	int64_t index;
	const struct rl_term *term;  /* not NULL: computed */
};

enum rl_term_kind {
	RL_T_CONST,   /* value */
	RL_T_ARG,     /* path into the present call's arguments, from their top; in an event's `where`, that event's */
	RL_T_RESULT,  /* only in an event's `where`: path into its result */
	RL_T_VAR,     /* a forall variable, or an all/any variable (local) */
	RL_T_LOCAL,
	RL_T_LAST,    /* last(CALL).path: the result of the latest ok event */
	RL_T_COUNT,   /* count(PAST) [within] as a number */
	RL_T_SUM,     /* sum(CALL-event, ARG) [within]: past is the event, call its call, path and a the argument */
	RL_T_LEN,     /* len(t): elements, members, or characters */
	RL_T_KEYS,    /* keys(t): an array of an object's keys */
	RL_T_VALUES,
	RL_T_ADD, RL_T_SUB, RL_T_MUL,
	RL_T_SET,     /* {"a", "b"}: constants */
	RL_T_SESSION, /* session.NAME: asked of the host (rules_world) */
	RL_T_EFFECTS, /* effects: those of the tool called */
	RL_T_TOOL,    /* tool: its name */
	RL_T_FROM,    /* from(ARG): a set of provenance classes; asked of the host. FROM, SHELL, EFFECT_OF: a is the RL_T_ARG */
	RL_T_SHELL,   /* shell(ARG): "safe" | "uncertain" | "unsafe"; asked of the host */
	RL_T_EFFECT_OF, /* reads(ARG) writes(ARG) deletes(ARG) hosts(ARG) runs(ARG): sets of strings of a shell command */
};

struct rl_term {
	enum rl_term_kind kind;
	struct rl_pos pos;
	const struct json *value;     /* CONST, SET (an array) */
	const char *name;             /* ARG (top name), SESSION, VAR, LOCAL, EFFECT_OF (which) */
	uint32_t var;                 /* VAR, LOCAL: index */
	const struct rl_step *path;   /* ARG, RESULT, LAST, LOCAL */
	uint32_t steps;
	const struct rl_term *a, *b;  /* operands */
	const struct rl_call *call;   /* LAST, SUM */
	const struct rl_formula *past; /* COUNT: what is counted; SUM: the event */
	uint64_t within_ms;           /* COUNT, SUM: 0 is without end */
	uint32_t id;                  /* LAST, COUNT, SUM: the place of its state in the monitor */
};

enum rl_op {
	/* of any formula */
	RL_TRUE, RL_FALSE, RL_NOT, RL_AND, RL_OR,
	/* about the present call */
	RL_EQ, RL_NE, RL_LT, RL_LE, RL_GT, RL_GE,
	RL_IN,       /* a is an element of b; a an array: every element is */
	RL_CONTAINS, /* b is an element of a, or a part of the string a */
	RL_MATCHES,  /* a ~ pattern, the whole of it; a an array: every element */
	RL_UNDER,    /* a (a path, or a set of them, all) is at or below b, lexically, after . and ..; some of them: unknown */
	RL_OUTSIDE,  /* the opposite */
	RL_PRESENT,  /* present(ARG) */
	RL_ALL, RL_ANY, /* all x in TERM: F */
	/* about the past */
	RL_EVENT, RL_ONCE, RL_HIST, RL_PREV, RL_SINCE, RL_SEQ,
};

struct rl_formula {
	enum rl_op op;
	struct rl_pos pos;
	const struct rl_formula *a, *b;     /* NOT AND OR ONCE HIST PREV; `a SINCE b` */
	const struct rl_term *l, *r;        /* comparisons; PRESENT: l; ALL, ANY: l is what is looped over, a the body */
	const struct pattern *pattern;      /* MATCHES */
	uint32_t var;                       /* ALL, ANY: the local's index: how many others it stands in, below RL_MAX_LOCALS (8) */
	const char *local;                  /* ALL, ANY: the local's name, for messages */
	enum rl_event event;                /* EVENT */
	const struct rl_call *call;         /* EVENT: CALL, OK, FAIL */
	const struct rl_formula *where;     /* EVENT: over its own arguments and result; may be NULL */
	const struct rl_formula *const *seq; /* SEQ: events in order */
	uint32_t n_seq;
	bool temporal;                      /* an event or temporal operator is here or below */
	uint32_t id;                        /* of an outermost temporal formula: its place in the monitor; else UINT32_MAX */
};

struct rl_rule {
	const char *name;
	enum rules_verdict verb;            /* RULES_DENY for forbid */
	const char *const *vars;
	uint32_t n_vars;
	const struct rl_call *call;
	const struct rl_formula *where, *unless; /* may be NULL: true; false */
	bool required;                      /* was written `require B after A` */
	bool each;                          /* an obligation at `end` that has variables: every tuple must hold */
	const char *because, *fix;
	struct rl_pos pos;
	uint32_t end_line;                  /* the text is lines pos.line to end_line */
};

/* assert reachable|unreachable PAST [to depth N]; */
struct rl_assert {
	bool reachable;
	const struct rl_formula *past;
	uint32_t depth; /* 0: the default */
	struct rl_pos pos;
	const char *text; /* the statement, as written */
};

/* One event of an inline test. */
enum rl_test_kind { RL_TEST_CALL, RL_TEST_USER, RL_TEST_CONFIRM, RL_TEST_WAIT, RL_TEST_END };

struct rl_test_event {
	enum rl_test_kind kind;
	uint32_t tool;
	const struct json *args, *result; /* result NULL: `ok` without one */
	bool fail;
	uint64_t wait_ms;
	const char *text;
	struct rl_pos pos;
};

struct rl_test {
	enum rules_verdict expect;
	const char *by; /* may be NULL */
	struct rl_pos by_pos;
	const struct rl_test_event *events;
	uint32_t n;
	struct rl_pos pos;
};

/* All of a loaded file. */
struct rules {
	struct cs_arena arena;
	const char *name; /* of the file, for messages */
	const struct rules_tool *tools;
	uint32_t n_tools;
	enum rules_verdict fallback; /* `default V;` */
	bool has_fallback;
	const struct rl_rule *rules;
	uint32_t n_rules;
	const struct rl_assert *asserts;
	uint32_t n_asserts;
	const struct rl_test *tests;
	uint32_t n_tests;
	/* Every outermost temporal formula and its rule; rl_formula.id indexes it. */
	const struct rl_past {
		const struct rl_formula *formula;
		uint32_t rule;              /* UINT32_MAX: of an assert */
		const uint32_t *vars;       /* the rule's variables it mentions, in order */
		uint32_t n_vars;
	} *pasts;
	uint32_t n_pasts;
	/* Every last, count and sum; rl_term.id indexes it. */
	const struct rl_kept {
		const struct rl_term *term;
		uint32_t rule;
		const uint32_t *vars;
		uint32_t n_vars;
	} *kept;
	uint32_t n_kept;
	struct rules_warning *warnings;
	uint32_t n_warnings;
	const struct rules_part *parts;
	size_t n_parts;
	struct rl_plan *plan; /* what all monitors share (monitor_internal.h); made by rules_load() */
};
