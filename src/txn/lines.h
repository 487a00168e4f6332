/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - two texts as lines, and which of them differ.  Private to txn/.
 *
 * A line is its bytes with the newline; only the last may lack it, and then it
 * differs from the same one that has it.  The bytes are the program's: they
 * choose the worst case if there is one, so hashes are keyed, and the search
 * has a budget (lines.c).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINES_BYTES = 16 << 20, LINES_COUNT = 1 << 20 }; /* beyond either a text is not compared */

struct lines {
	const char *data;       /* the caller's */
	size_t *at;             /* n + 1 offsets: line i is at[i] .. at[i + 1] */
	size_t n;
	unsigned char *changed; /* n: not in the other text */
};

void lines_split(struct lines *l, const char *data, size_t len);
void lines_done(struct lines *l);
/* Sets `changed` of both.  What is left unset is equal, in order, on both sides. */
void lines_diff(struct lines *a, struct lines *b);

/* Keyed: another value in every process. */
uint64_t lines_hash(const char *data, size_t len);

static inline size_t lines_len(const struct lines *l, size_t i)
{
	return l->at[i + 1] - l->at[i];
}
