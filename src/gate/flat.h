/* SPDX-License-Identifier: Apache-2.0 */
/* flat.h - a value as lines "path: text" for people, in order of the paths, so that two can be compared.
 *
 * Paths and strings are escaped.  Owned by the caller: {0}, flat_make(), flat_done().
 */
#pragma once
#include "json/json.h"

#include <stddef.h>

struct flat_line {
	char *path, *text;
};

struct flat {
	struct flat_line *v;
	size_t n, cap;
};

#define FLAT_AUTO __attribute__((__cleanup__(flat_done)))

void flat_make(struct flat *ret, const struct json *v); /* NULL: no lines */
void flat_done(struct flat *f);
