/* SPDX-License-Identifier: Apache-2.0 */
/* number.c - numbers as the decimals they are written as.
 *
 * Nothing is decided by a double: 0.1 + rounding is how a limit is passed, and
 * 9007199254740993 is not 9007199254740992.  The reader's limits on digits and
 * exponents bound the cost of everything here.
 */
#include "json/internal.h"

#include <stdlib.h>
#include <string.h>

static void trim(struct json_decimal *d)
{
	int zeros = 0;

	while (zeros < d->n && !d->digits[zeros])
		zeros++;
	if (zeros) {
		memmove(d->digits, d->digits + zeros, (size_t)(d->n - zeros));
		d->n -= zeros;
		d->point -= zeros;
	}
	while (d->n && !d->digits[d->n - 1])
		d->n--;
	if (!d->n) {
		d->point = 0;
		d->negative = false;
	}
}

static void of_int(int64_t i, struct json_decimal *d)
{
	uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
	uint8_t low[20];
	int n = 0;

	for (; u; u /= 10)
		low[n++] = (uint8_t)(u % 10);
	d->negative = i < 0;
	d->n = d->point = n;
	for (int k = 0; k < n; k++)
		d->digits[k] = low[n - 1 - k];
	trim(d);
}

void json_decimal_of(const struct json *v, struct json_decimal *d)
{
	const char *p;
	bool behind = false;

	if (v->whole) {
		of_int(v->i, d);
		return;
	}
	p = v->s;
	d->negative = *p == '-';
	d->n = d->point = 0;
	for (p += d->negative; *p && *p != 'e' && *p != 'E'; p++) {
		if (*p == '.') {
			behind = true;
			continue;
		}
		d->digits[d->n++] = (uint8_t)(*p - '0');
		d->point += !behind;
	}
	if (*p)
		d->point += (int)strtol(p + 1, NULL, 10);
	trim(d);
}

int json_decimal_cmp(const struct json_decimal *a, const struct json_decimal *b)
{
	int n = a->n < b->n ? a->n : b->n, c;

	if (!a->n || !b->n)
		return (a->n > 0) - (b->n > 0);
	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	c = memcmp(a->digits, b->digits, (size_t)n);
	if (!c)
		c = a->n - b->n;
	return (c > 0) - (c < 0);
}

int json_number_cmp(const struct json *a, const struct json *b)
{
	struct json_decimal x, y;
	int c;

	if (a->whole && b->whole)
		return (a->i > b->i) - (a->i < b->i);
	json_decimal_of(a, &x);
	json_decimal_of(b, &y);
	if (x.negative != y.negative)
		return x.negative ? -1 : 1;
	c = json_decimal_cmp(&x, &y);
	return x.negative ? -c : c;
}

double json_num(const struct json *v)
{
	if (!json_is(v, JSON_NUMBER))
		return 0;
	return v->whole ? (double)v->i : strtod(v->s, NULL);
}

bool json_int(const struct json *v, int64_t *ret)
{
	struct json_decimal d;
	uint64_t u = 0;

	if (!json_is(v, JSON_NUMBER))
		return false;
	if (v->whole) {
		*ret = v->i;
		return true;
	}
	json_decimal_of(v, &d);
	if (d.n > d.point || d.point > 19)
		return false;
	for (int i = 0; i < d.point; i++)
		u = u * 10 + (i < d.n ? d.digits[i] : 0); /* 19 digits: no overflow */
	if (u > (uint64_t)INT64_MAX + d.negative)
		return false;
	*ret = d.negative ? (int64_t)(0 - u) : (int64_t)u;
	return true;
}

bool json_whole(const struct json *v)
{
	struct json_decimal d;

	if (!json_is(v, JSON_NUMBER))
		return false;
	if (v->whole)
		return true;
	json_decimal_of(v, &d);
	return d.n <= d.point || !d.n;
}

/* ---- multiples ---- */

enum { LIMB = 1000000000, LIMBS = JSON_DIGITS_MAX / 9 + 3 };

/* An unsigned number in base 10^9, the lowest limb first. */
struct big {
	int n;
	uint32_t limb[LIMBS];
};

/* b = b * factor + add */
static void big_step(struct big *b, uint32_t factor, uint32_t add)
{
	uint64_t carry = add;

	for (int i = 0; i < b->n; i++) {
		carry += (uint64_t)b->limb[i] * factor;
		b->limb[i] = (uint32_t)(carry % LIMB);
		carry /= LIMB;
	}
	if (carry)
		b->limb[b->n++] = (uint32_t)carry;
}

static int big_cmp(const struct big *a, const struct big *b)
{
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	for (int i = a->n - 1; i >= 0; i--)
		if (a->limb[i] != b->limb[i])
			return a->limb[i] < b->limb[i] ? -1 : 1;
	return 0;
}

/* a -= b, where a >= b */
static void big_take(struct big *a, const struct big *b)
{
	int64_t borrow = 0;

	for (int i = 0; i < a->n; i++) {
		int64_t x = (int64_t)a->limb[i] - borrow - (i < b->n ? b->limb[i] : 0);

		borrow = x < 0;
		a->limb[i] = (uint32_t)(x + (borrow ? LIMB : 0));
	}
	while (a->n && !a->limb[a->n - 1])
		a->n--;
}

/* digits * 10^zeros divides by `by` without a rest: division by hand, digit after digit. */
static bool divides_big(const struct json_decimal *v, int zeros, const struct json_decimal *by)
{
	struct big rest = { 0 }, div = { 0 };

	for (int i = 0; i < by->n; i++)
		big_step(&div, 10, by->digits[i]);
	for (int i = 0; i < v->n + zeros; i++) {
		if (i >= v->n && !rest.n)
			return true;
		big_step(&rest, 10, i < v->n ? v->digits[i] : 0);
		while (big_cmp(&rest, &div) >= 0)
			big_take(&rest, &div);
	}
	return !rest.n;
}

static bool divides(const struct json_decimal *v, int zeros, const struct json_decimal *by)
{
	unsigned __int128 rest = 0;
	uint64_t div = 0;

	if (by->n > 18)
		return divides_big(v, zeros, by);
	for (int i = 0; i < by->n; i++)
		div = div * 10 + by->digits[i];
	if (!div)
		return false;
	for (int i = 0; i < v->n + zeros; i++) {
		if (i >= v->n && !rest)
			return true;
		rest = (rest * 10 + (i < v->n ? v->digits[i] : 0)) % div;
	}
	return !rest;
}

bool json_number_multiple(const struct json *v, const struct json *of)
{
	struct json_decimal x, y;
	int zeros;

	if (v->whole && of->whole)
		return of->i == 0 ? false : of->i == -1 || v->i % of->i == 0;
	json_decimal_of(v, &x);
	json_decimal_of(of, &y);
	if (!y.n)
		return false;
	if (!x.n)
		return true;
	/* Both as whole numbers times a power of ten; without zeros at the end a number that
	 * has the smaller power can be no multiple of ten times anything. */
	zeros = (x.point - x.n) - (y.point - y.n);
	return zeros >= 0 && divides(&x, zeros, &y);
}
