/* SPDX-License-Identifier: Apache-2.0 */
/* prove.h - what rules can and cannot lead to, for every trace up to a depth.
 *
 * Knows      how to put rules to a solver (a process of its own, solver.h), and what to ask.
 * Trusts     the rules as loaded; neither the solver's time nor its word: "sat" is a trace,
 *            and a trace is shown only after the monitor itself has agreed to it.  "unsat" is
 *            taken as a proof.  Everything else is "cannot prove", with the reason.
 * Owns       reports own their text.
 *
 * A step is a call with its result (or without one yet), a word of the user, or a
 * confirmation.  Calls fit their tool's schema and name no argument that it does not;
 * a result comes before the next call, or not at all.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "json/json.h"
#include "rules/rules.h"

#include <stdint.h>

enum { PROVE_DEPTH = 8, PROVE_DEPTH_MAX = 24 };

struct prove_options {
	const char *solver;   /* NULL: z3 in PATH */
	uint32_t depth;       /* 0: PROVE_DEPTH */
	uint64_t query_ms, total_ms; /* 0: 10 s, 60 s */
};

enum prove_outcome {
	PROVE_FINE,    /* as it should be, for every trace to that depth, or shown by the trace */
	PROVE_FOUND,   /* something is wrong */
	PROVE_NOTE,    /* worth knowing, not wrong by itself */
	PROVE_CANNOT,  /* not decided; `why` says why */
};

enum prove_about {
	PROVE_TOOL,       /* can this tool be called? */
	PROVE_RULE,       /* can this rule fire? */
	PROVE_SUBSUMED,   /* does this rule change anything? */
	PROVE_OBLIGATION, /* can a session end after what this rule obliges to? */
	PROVE_ASSERT,
	PROVE_NARROWER,   /* does the new file allow nothing that the old one does not? */
	PROVE_STEP,       /* is this step of the plan legal? */
};

struct prove_finding {
	enum prove_about about;
	enum prove_outcome outcome;
	const char *name;         /* of the tool, the rule; the text of the assertion; the plan's call */
	uint32_t line;            /* of the rule or assertion; the number of the plan's step; 0: none */
	uint32_t depth;           /* to which it was looked at */
	const char *text;         /* one line, in words */
	const char *why;          /* CANNOT */
	const char *const *rules; /* that it is due to, ends with NULL; may be NULL */
	const char *trace;        /* a line per step, as in an inline test; NULL: none */
	const char *verdict;      /* STEP: "legal" "may be refused" "may be asked about" "never legal" "not reached" */
};

struct prove_report {
	struct cs_arena arena;
	struct prove_finding *findings;
	uint32_t n, cap;
	uint32_t depth, questions;
	uint64_t ms;
};

const char *prove_about_name(enum prove_about a);
const char *prove_outcome_name(enum prove_outcome o);

/* Dead tools, dead rules, rules that change nothing, obligations, assertions. */
int prove_rules(const struct rules *r, const struct prove_options *o, struct prove_report *ret, struct cs_err *err);
/* Does `r` let nothing through that `old` would not, or would ask about? */
int prove_against(const struct rules *r, const struct rules *old, const struct prove_options *o, struct prove_report *ret, struct cs_err *err);
/* {"steps": [{"tool": "t", "args": {"a": 1, "b": "$1.items[0].id", "c": "$user", "d": "?"}}]} */
int prove_plan(const struct rules *r, const struct json *plan, const struct prove_options *o, struct prove_report *ret, struct cs_err *err);
void prove_report_done(struct prove_report *r);
