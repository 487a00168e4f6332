/* SPDX-License-Identifier: Apache-2.0 */
/* mask.h - a stream in which secrets become as many asterisks.
 *
 * Found: the value as it is; with any of its bytes percent-escaped (either case of
 * hex); with any of its bytes JSON-escaped (\/ \" \\ \u00xx); in base64 or base64url at any of the three
 * alignments.  The length never changes, so framing stays right.  Only what could still become a match is held back, so a
 * stream of events is not delayed. */
#pragma once
#include "egress/edge/secret.h"

#include <stddef.h>
#include <stdint.h>

struct mask;
struct mask *mask_new(const struct secret *const *secrets, size_t n);
void mask_free(struct mask *m); /* wipes */
/* Takes n bytes; what can be passed on is appended to out.  last: nothing is held back any more.
 * Returns how many matches were masked. */
size_t mask_feed(struct mask *m, const void *data, size_t n, bool last, struct cs_buf *out);
/* A whole short text, in place (header values). */
size_t mask_text(struct mask *m, char *text, size_t n);
