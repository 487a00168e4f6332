/* SPDX-License-Identifier: Apache-2.0 */
/* screen.h - does a text hide something, or speak to the model?
 *
 * Knows      characters that are not seen or pass for others, and turns of phrase that
 *            descriptions of tools have no use for.
 * Promises   little: words are heuristics.  They raise suspicion and decide nothing by
 *            themselves; a description that is suspected is shown to a person before the
 *            tool can be called.  Hidden characters are facts.
 * Trust      every text is hostile; what is looked at is bounded.
 *
 * Texts are folded before words are sought: letters that look like ASCII ones, accents, wide
 * and mathematical forms become those, invisible characters go, tag characters become what
 * they spell.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { SCREEN_SUSPICIOUS = 2 }; /* the score from which a person is asked */

struct screen {
	unsigned score;
	bool hidden;     /* characters that are not seen, or change what is */
	char why[160];   /* what weighed most; empty: nothing */
};

/* Adds to *s, so that one verdict can be made of many texts. */
void screen_text(struct screen *s, const char *text, size_t len);
/* A value that a schema would fill in by itself: places, commands and options in it are suspicious. */
void screen_default(struct screen *s, const char *text, size_t len);

/* Of names: at most `most` insertions, deletions, replacements and swaps of neighbours apart; false: more. */
bool screen_near(const char *a, const char *b, size_t most);
/* The character at s, which ends with a NUL. */
unsigned screen_character(const char *s);
/* The same to the eye: case, - and _, 0 and o, 1 and l, doubled letters. */
bool screen_alike(const char *a, const char *b);
