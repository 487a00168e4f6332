/* SPDX-License-Identifier: Apache-2.0 */
/* mask.h - a stream in which secrets become as many asterisks.
 *
 * Found: the value as it is; with any of its bytes percent-escaped (either case of
 * hex, `+` for a space); with any of its bytes or characters JSON-escaped (\/ \" \\
 * \uXXXX, pairs too); in base64 or base64url at any of the three alignments, and in
 * hex, both with escapes and with line ends within.  The length never changes, so
 * framing stays right.  Only what could still become a match is held back, so a
 * stream of events is not delayed.
 *
 * Not found: a value that is split, compressed, encrypted or encoded twice. */
#pragma once
#include "egress/edge/secret.h"

#include <stddef.h>
#include <stdint.h>

struct mask;
/* The secrets stay the caller's and must outlive the mask. */
struct mask *mask_new(const struct secret *const *secrets, size_t n);
void mask_free(struct mask *m); /* wipes */
/* Takes n bytes; what can be passed on is appended to out.  last: nothing is held back any more.
 * Returns how many matches were masked (those that overlap count as one).  An out that is over got nothing, and
 * the stream is lost. */
size_t mask_feed(struct mask *m, const void *data, size_t n, bool last, struct cs_buf *out);
/* A whole short text, in place (header values). */
size_t mask_text(struct mask *m, char *text, size_t n);
