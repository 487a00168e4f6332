/* SPDX-License-Identifier: Apache-2.0 */
/* solver.h - Z3 as a process of its own, spoken to in SMT-LIB 2.
 *
 * Knows      how to find, start, limit, ask and end it.
 * Trusts     nothing it says: an answer that is late, garbled or none is SOLVER_UNKNOWN,
 *            and after a garbled one every further answer is, too.
 * Owns       the process.  It has limits on memory and processor time, no terminal, an
 *            empty environment, and ends when we do.
 *
 * Rejected   libz3: it would make a static 2 MB program a dynamic 30 MB one, its limits
 *            are requests rather than walls, and its crash would be ours.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "prove/sexp.h"

#include <stdint.h>

enum solver_answer { SOLVER_SAT, SOLVER_UNSAT, SOLVER_UNKNOWN };

struct solver;

struct solver_limits {
	uint64_t query_ms, total_ms; /* of one question; of all */
	uint64_t memory;
};

/* `program`: a path, or NULL for z3 in PATH. CS_E_NOCMD if there is none. */
int solver_start(const char *program, const struct solver_limits *limits, struct solver **ret, struct cs_err *err);
void solver_free(struct solver *s);

/* What is to be said next goes here; it is sent with the next question. */
struct cs_buf *solver_text(struct solver *s);
/* Satisfiable together with these literals? */
enum solver_answer solver_check(struct solver *s, const char *const *assume, size_t n);
/* After SOLVER_SAT: "((name value) ...)", in `a`. NULL: no answer. */
const struct sexp *solver_values(struct solver *s, struct cs_arena *a, const char *names);
/* After SOLVER_UNSAT: "(literal ...)". */
const struct sexp *solver_core(struct solver *s, struct cs_arena *a);
/* Why it is unknown: "the time was up", "no answer: ...". */
const char *solver_why(const struct solver *s);
unsigned solver_questions(const struct solver *s);
