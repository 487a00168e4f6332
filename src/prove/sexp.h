/* SPDX-License-Identifier: Apache-2.0 */
/* sexp.h - what a solver answers, as a tree.
 *
 * Knows words, "strings" ("" is a quote inside) and lists.  Trusts nothing: depth
 * and number of nodes are limited, and a text that is not one whole list of
 * expressions is an error.  Owns nothing: the tree lives in the arena.
 */
#pragma once
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

enum sexp_kind { SEXP_WORD, SEXP_STRING, SEXP_LIST };

struct sexp {
	enum sexp_kind kind;
	const char *text;        /* WORD, STRING (unquoted, the solver's own escapes still in it) */
	const struct sexp *kids; /* LIST */
	const struct sexp *next;
};

/* The expressions of a text, one after the other; NULL if there are none. -1: not expressions, or too many. */
int sexp_read(struct cs_arena *a, const char *text, size_t len, const struct sexp **ret);
const struct sexp *sexp_at(const struct sexp *list, size_t index); /* NULL where there is none */
bool sexp_is(const struct sexp *s, const char *word);
