/* SPDX-License-Identifier: Apache-2.0 */
/* origin.h - where does this value come from?
 *
 * Keeps what a session has seen: the user's words, and the scalars of results by how far
 * their source is to be believed.  A value is looked up whole, normalised (case, white
 * space, a link's scheme, www. and last slash), never as a part of a word: 'a' is in
 * every text.  Bounded: what does not fit any more is not known, and so comes from nowhere.
 *
 * What a model made up from what it read (a sum, a date in other words) comes from
 * nowhere, too: such an argument is no sink, or is derived in the plan.
 */
#pragma once
#include "json/json.h"

#include <stdbool.h>

/* The better first. */
enum origin_class { ORIGIN_USER, ORIGIN_TRUSTED, ORIGIN_STRUCTURED, ORIGIN_FREE, ORIGIN_NOWHERE, ORIGIN_MAX };
const char *origin_name(enum origin_class c); /* user trusted structured free nowhere */

struct origin;
struct origin *origin_new(size_t max_bytes); /* 0: 16 MiB */
void origin_free(struct origin *o);
struct origin *origin_fork(const struct origin *o);

void origin_user(struct origin *o, const char *text, size_t len);

/* How a result's fields are to be taken. */
struct origin_source {
	bool trusted;                 /* all of it but the free fields */
	const char *const *free_fields; /* names, at any depth: written by anyone */
	size_t n_free;
	const char *const *trusted_fields;
	size_t n_trusted;
	bool guessed;                 /* a text that happens to look like fields: whoever wrote it may have made it look so */
};
void origin_result(struct origin *o, const struct json *result, const struct origin_source *s);

/* The worst class of the scalars in v, and of the keys that `schema` (may be NULL) does not name; `ret_which` is the scalar, or
 * the object with the key. null, true and false are of no account. */
enum origin_class origin_of(struct origin *o, const struct json *v, const struct json *schema, const struct json **ret_which);
/* The same for what looks like an address in the text of v: links and e-mail addresses. None: ORIGIN_USER. What a reader's
 * program may take for a link is one: any scheme, //host, numbers for a host, dots of other scripts. */
enum origin_class origin_of_links(struct origin *o, const struct json *v, struct cs_arena *a, const struct json **ret_which);
/* The same scalar, after normalising. */
bool origin_same(const struct json *a, const struct json *b);
size_t origin_bytes(const struct origin *o);
