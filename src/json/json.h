/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - JSON texts as values.
 *
 * Knows RFC 8259, strictly: UTF-8 only, no comments, no trailing commas, no NaN,
 * no lone surrogates, and a key may stand in an object once (two readers that
 * pick different ones of two equal keys are an attack on whoever checks first).
 * Trusts nothing: length, depth and number of values are limited.
 * Owns nothing: a value lives in the arena it was read into, is never changed,
 * and may point into other values of the same arena.  The text itself may go.
 *
 * Writing: base/json.h writes from C; json_write() writes a value.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	uint8_t type;
	bool whole; /* a number that is an int64: `i` has it; else `s` has its text */
	uint32_t n; /* bytes of s, elements of items, members of members */
	union {
		bool b;
		int64_t i;
		const char *s; /* NUL-terminated as well; may hold NULs */
		const struct json *items;
		const struct json_member *members; /* in the order of the text */
	};
};

struct json_member {
	const char *key;
	uint32_t key_len;
	struct json value;
};

enum {
	JSON_DEPTH_MAX = 1000, /* whatever the limits say: values are walked by recursion */
	JSON_DIGITS_MAX = 1000,
	JSON_EXPONENT_MAX = 1000, /* of the powers of ten that a number's digits stand for, both signs */
};

struct json_limits {
	uint32_t depth;  /* 0: 64 */
	uint32_t values; /* 0: 1,000,000 */
};

/* One whole text; anything but white space after it is an error. Errors are
 * "line:column: what" with CS_E_INVALID, or CS_E_LIMIT. `limits` may be NULL.
 * Takes as many bytes of the arena as the text has, and up to 32 for each value. */
int json_read(struct cs_arena *a, const char *text, size_t len, const struct json_limits *limits,
	      const struct json **ret, struct cs_err *err);

/* NULL where there is none, or v is NULL or not an object/array: chains need no checks. */
const struct json *json_get(const struct json *v, const char *key);
const struct json *json_getn(const struct json *v, const char *key, size_t len);
const struct json *json_at(const struct json *v, size_t index);
/* The text of a string value without NULs inside; else NULL. */
const char *json_str(const struct json *v);
static inline bool json_is(const struct json *v, enum json_type type)
{
	return v && v->type == type;
}
double json_num(const struct json *v);            /* a number's nearest double */
bool json_int(const struct json *v, int64_t *ret); /* true for 3 and 3.0, exactly */
bool json_whole(const struct json *v);             /* a number of any size without a fraction: 3, 3.0, 1e300 */
const char *json_type_name(enum json_type type);  /* "null", "boolean", "number", ... */

/* As JSON Schema has it: 1 == 1.0, objects without order, numbers exactly (not by double). */
bool json_equal(const struct json *a, const struct json *b);
int json_number_cmp(const struct json *a, const struct json *b); /* -1 0 1, exactly */
/* Whether v / of is whole, exactly; false where `of` is 0. */
bool json_number_multiple(const struct json *v, const struct json *of);
/* Equal values have equal hashes. A seed that others do not know keeps them from making collisions. */
uint64_t json_hash(const struct json *v, uint64_t seed);

/* A copy in another arena that shares nothing. NULL if that is over. */
const struct json *json_copy(struct cs_arena *to, const struct json *v);
/* Strings and numbers from C, in an arena. */
const struct json *json_new_str(struct cs_arena *a, const char *s, size_t len);
const struct json *json_new_int(struct cs_arena *a, int64_t i);

/* Compact. */
void json_write(struct cs_buf *b, const struct json *v);
/* The one text that equal values share: keys sorted by bytes, numbers in one spelling, no spaces. */
void json_write_canonical(struct cs_buf *b, const struct json *v);
