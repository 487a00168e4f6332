/* SPDX-License-Identifier: Apache-2.0 */
/* validate.h - one check of one value. */
#pragma once
#include "schema/internal.h"

/* Where in the value we are: known by the way up, on the stack. */
struct at {
	const struct at *up;
	const char *key; /* NULL: the index */
	uint32_t key_len, index;
	uint32_t depth;
};

/* The resources that the check came through, for "$dynamicRef". */
struct scope {
	const struct scope *outer;
	const struct resource *resource;
};

/* Which members or items of one value were looked at by some keyword that passed. */
struct seen {
	bool all;
	uint64_t few[4];
	uint64_t *bits; /* few, or of the arena */
	uint32_t words;
};

/* A first check is quiet and ends at the first failure. Only if there is one, a second finds words for all of them. */
enum mode { QUIET, SCORE, TELL };

struct run {
	const struct schema *schema;
	uint32_t steps, depth;
	bool costly;
	const struct scope *scope;
	struct cs_arena arena;
	enum mode mode;
	uint32_t deepest, failures; /* of SCORE */
	struct schema_report *report;
};

bool schema_check(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen);
bool schema_check_object(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen);
bool schema_check_array(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen);
bool schema_check_logic(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen);
/* After all else of the node. */
bool schema_check_unevaluated(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen);

/* False, and costly, if the budget does not have them. */
static inline bool schema_spend(struct run *r, size_t steps)
{
	if (steps >= r->steps) {
		r->steps = 0;
		r->costly = true;
		return false;
	}
	r->steps -= (uint32_t)steps;
	return true;
}

/* Values inside, and more for long strings, as comparing and hashing cost; `stop` is enough. */
size_t schema_weight(const struct json *v, size_t stop);
bool schema_matches(struct run *r, const struct pattern *p, const char *s, size_t len);

bool schema_seen_init(struct run *r, struct seen *s, const struct json *v);
static inline void schema_mark(struct seen *s, uint32_t i)
{
	if (s)
		s->bits[i / 64] |= (uint64_t)1 << (i % 64);
}
static inline bool schema_marked(const struct seen *s, uint32_t i)
{
	return s->all || (s->bits[i / 64] >> (i % 64) & 1);
}
void schema_seen_merge(struct seen *to, const struct seen *from);

/* The failure is told, or counted, or neither. Always false. */
bool schema_failed(struct run *r, const struct node *n, const char *keyword, const struct at *at, const char *fmt, ...)
	__attribute__((format(printf, 5, 6), cold));
#define FAILED(r, ...) ((r)->mode == QUIET ? false : schema_failed((r), __VA_ARGS__))
/* Short and safe to show; good until the fourth call after. */
const char *schema_shown(const struct json *v);
const char *schema_shown_text(const char *s, size_t len);
