/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h - regular expressions in the strict sense, always on the whole string.
 *
 * Characters, . [] [^] \d \w \s, groups, |, ? * + {n,m}.  No anchors (the whole
 * string is meant, always: writing ^ or $ is an error that says so), no
 * back-references, no look-around: what is left is matched in linear time and
 * can be handed to a solver.  Over Unicode characters, not bytes.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct pattern;

/* In the arena. Errors name the character: "unclosed [ at 5". At most 2,000 states. */
int pattern_compile(struct cs_arena *a, const char *text, const struct pattern **ret, struct cs_err *err);
bool pattern_match(const struct pattern *p, const char *s, size_t len);
const char *pattern_text(const struct pattern *p);
/* The same language as an SMT-LIB (theory of strings) term of sort RegLan. */
void pattern_smt(const struct pattern *p, struct cs_buf *b);
