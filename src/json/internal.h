/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the files of json/ share. */
#pragma once
#include "json/hash.h"
#include "json/json.h"

/* A number as 0.d1d2d3... * 10^point, without zeros at either end; zero has no digits. */
struct json_decimal {
	bool negative;
	int n, point;
	uint8_t digits[JSON_DIGITS_MAX];
};

/* `v` is a number. */
void json_decimal_of(const struct json *v, struct json_decimal *d);
/* Both have the same sign or none: by size alone. */
int json_decimal_cmp(const struct json_decimal *a, const struct json_decimal *b);

/* The members of an object in the order of their keys' bytes, to be freed; NULL without memory. */
const struct json_member **json_sorted(const struct json *v);
