/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_internal.h - a pattern as a tree (for the solver) and as a program (for matching). */
#pragma once
#include "rules/pattern.h"

#include <stdint.h>

enum { PAT_MAX_STATES = 2000, PAT_MAX_NESTING = 64, PAT_MAX_COUNT = 1000, PAT_MAX_CHAR = 0x10ffff };

struct pat_range {
	uint32_t lo, hi;
};

enum pat_kind { PAT_EMPTY, PAT_CLASS, PAT_CAT, PAT_ALT, PAT_REPEAT };

struct pat_node {
	enum pat_kind kind;
	const struct pat_range *ranges;       /* CLASS: sorted, apart from one another; none: fits nothing */
	const struct pat_node *const *kids;   /* CAT, ALT; REPEAT: one */
	uint32_t n;                           /* of ranges or kids */
	uint32_t min, max;                    /* REPEAT; max UINT32_MAX: without end */
	bool chars;                           /* a character is read somewhere below */
};

enum pat_op { PAT_READ, PAT_SPLIT, PAT_JUMP, PAT_END };

struct pat_state {
	uint8_t op;
	uint16_t x, y;               /* SPLIT: both; JUMP: x */
	const struct pat_node *read; /* READ */
};

struct pattern {
	const char *text;
	const struct pat_node *root;
	const struct pat_state *states;
	uint32_t n;
};
