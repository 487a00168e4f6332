/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - writes JSON into a cs_buf.
 *
 * Strings may hold any bytes: what is not UTF-8 comes out as U+FFFD, so the
 * result is always valid JSON.  Commas are placed by the writer.
 */
#pragma once
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct cs_json {
	struct cs_buf *out;
	unsigned depth;
	bool more[32]; /* per depth: a comma is due before the next item */
	bool pretty;
};

void cs_json_begin(struct cs_json *j, struct cs_buf *out, bool pretty);
/* key is NULL inside arrays and at the top. */
void cs_json_object(struct cs_json *j, const char *key);
void cs_json_array(struct cs_json *j, const char *key);
void cs_json_end(struct cs_json *j, char bracket); /* '}' or ']' */
void cs_json_str(struct cs_json *j, const char *key, const char *value); /* NULL value: null */
void cs_json_u64(struct cs_json *j, const char *key, uint64_t value);
void cs_json_i64(struct cs_json *j, const char *key, int64_t value);
void cs_json_num(struct cs_json *j, const char *key, double value);
void cs_json_bool(struct cs_json *j, const char *key, bool value);
void cs_json_null(struct cs_json *j, const char *key);
