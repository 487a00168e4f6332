/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h - a YAML document as a JSON value.
 *
 * For policies that people write, and for results that tools print as YAML.
 * Only what JSON can say: no anchors, aliases, tags or merge keys (an alias makes a
 * small text a huge tree), one document, keys once.  A plain scalar is null (~, null
 * or nothing), true, false, a number if JSON would call it one, else a string.
 */
#pragma once
#include "json/json.h"

/* Where a value begins in the text, for messages. */
struct json_place {
	const struct json *value;
	uint32_t line, column; /* from 1 */
};

struct json_places {
	struct json_place *v;
	size_t n, cap;
};

/* `places` may be NULL. Errors are "line:column: what". */
int json_read_yaml(struct cs_arena *a, const char *text, size_t len, const struct json_limits *limits,
		   struct json_places *places, const struct json **ret, struct cs_err *err);
/* NULL: not known. */
const struct json_place *json_place_of(const struct json_places *p, const struct json *v);
void json_places_done(struct json_places *p);
