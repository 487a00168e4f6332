/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory that is freed all at once.
 *
 * For trees whose size follows outside input: an arena has a maximum, and once
 * it is passed every further request gives NULL ("over"), so a parser checks
 * where it allocates and fails with CS_E_LIMIT.  A reset keeps the first chunk,
 * so a loop that parses message after message does not go to malloc again.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct cs_arena_chunk;

struct cs_arena {
	struct cs_arena_chunk *chunks; /* the newest first */
	size_t used, max;              /* bytes handed out; the most there may be */
	bool over;
};

#define CS_ARENA(limit) { .max = (limit) }
#define CS_ARENA_AUTO __attribute__((__cleanup__(cs_arena_done)))

/* Zeroed, aligned to 16 bytes. NULL once the maximum is passed. */
void *cs_arena_get(struct cs_arena *a, size_t n, size_t size);
#define cs_arena_new(a, type) ((type *)cs_arena_get((a), 1, sizeof(type)))
/* A NUL-terminated copy. */
char *cs_arena_dup(struct cs_arena *a, const char *s, size_t len);
void cs_arena_reset(struct cs_arena *a);
void cs_arena_done(struct cs_arena *a);
