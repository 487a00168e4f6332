/* SPDX-License-Identifier: Apache-2.0 */
/* eval_number.c - sums and products of decimals, exactly.
 *
 * 0.1 + 0.2 is 0.3 here: a limit on money must not depend on how a double rounds.
 * What does not fit 38 digits is no number, and what is compared with it is unknown.
 */
#include "rules/monitor_internal.h"

#include <inttypes.h>
#include <string.h>

enum { SCALE_MAX = 30, DIGITS_MAX = 36 };

static bool times_ten(__int128 *v)
{
	return !__builtin_mul_overflow(*v, (__int128)10, v);
}

/* "-12.50e3" by the grammar of JSON, which the reader has checked. */
static bool of_text(const char *s, struct rl_num *ret)
{
	bool negative = *s == '-', behind = false;
	long exponent = 0;
	int digits = 0;

	*ret = (struct rl_num){ 0 };
	for (s += negative; *s && *s != 'e' && *s != 'E'; s++) {
		if (*s == '.') {
			behind = true;
			continue;
		}
		if (++digits > DIGITS_MAX || *s < '0' || *s > '9' || !times_ten(&ret->digits))
			return false;
		ret->digits += *s - '0';
		ret->scale += behind;
	}
	if (*s) {
		bool down = *++s == '-';

		for (s += down || *s == '+'; *s; s++) {
			if (*s < '0' || *s > '9' || exponent > 1000)
				return false;
			exponent = exponent * 10 + (*s - '0');
		}
		exponent = down ? -exponent : exponent;
	}
	for (; exponent > 0; exponent--)
		if (ret->scale > 0)
			ret->scale--;
		else if (ret->digits && !times_ten(&ret->digits))
			return false;
	if (ret->scale - exponent > SCALE_MAX)
		return ret->digits == 0 && (ret->scale = 0, true);
	ret->scale -= (int)exponent;
	if (negative)
		ret->digits = -ret->digits;
	return true;
}

bool rl_num_of(const struct json *v, struct rl_num *ret)
{
	if (!json_is(v, JSON_NUMBER))
		return false;
	if (v->whole) {
		*ret = (struct rl_num){ .digits = v->i };
		return true;
	}
	return of_text(v->s, ret);
}

static bool rescale(struct rl_num *n, int scale)
{
	for (; n->scale < scale; n->scale++)
		if (!times_ten(&n->digits))
			return false;
	return true;
}

/* The fewest digits: otherwise a long sum of small amounts would run out of room. */
static void trim(struct rl_num *n)
{
	for (; n->scale > 0 && n->digits % 10 == 0; n->scale--)
		n->digits /= 10;
}

bool rl_num_add(const struct rl_num *a, const struct rl_num *b, struct rl_num *ret)
{
	struct rl_num x = *a, y = *b;

	if (!rescale(&x, y.scale) || !rescale(&y, x.scale) || __builtin_add_overflow(x.digits, y.digits, &x.digits))
		return false;
	trim(&x);
	*ret = x;
	return true;
}

bool rl_num_mul(const struct rl_num *a, const struct rl_num *b, struct rl_num *ret)
{
	struct rl_num x = { .scale = a->scale + b->scale };

	if (__builtin_mul_overflow(a->digits, b->digits, &x.digits))
		return false;
	trim(&x);
	if (x.scale > SCALE_MAX)
		return false;
	*ret = x;
	return true;
}

const struct json *rl_num_json(struct cs_arena *a, const struct rl_num *n)
{
	char text[64], *p = text + sizeof text;
	unsigned __int128 rest = n->digits < 0 ? -(unsigned __int128)n->digits : (unsigned __int128)n->digits;
	struct json *v;
	int behind = n->scale;

	if (!n->scale && n->digits >= INT64_MIN && n->digits <= INT64_MAX)
		return json_new_int(a, (int64_t)n->digits);
	for (*--p = '\0'; rest || behind >= 0; rest /= 10) {
		*--p = (char)('0' + (int)(rest % 10));
		if (--behind == 0)
			*--p = '.';
	}
	if (n->digits < 0)
		*--p = '-';
	v = cs_arena_new(a, struct json);
	if (!v)
		return NULL;
	v->type = JSON_NUMBER;
	v->n = (uint32_t)strlen(p);
	v->s = cs_arena_dup(a, p, v->n);
	return v->s ? v : NULL;
}
