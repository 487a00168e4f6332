/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - looking into values, comparing and copying them. */
#include "json/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { FEW = 8 }; /* members that are looked up one by one */

const char *json_type_name(enum json_type type)
{
	static const char *const names[] = { "null", "boolean", "number", "string", "array", "object" };

	return (size_t)type < sizeof names / sizeof *names ? names[type] : "unknown";
}

const struct json *json_getn(const struct json *v, const char *key, size_t len)
{
	if (!json_is(v, JSON_OBJECT))
		return NULL;
	for (uint32_t i = 0; i < v->n; i++)
		if (v->members[i].key_len == len && !memcmp(v->members[i].key, key, len))
			return &v->members[i].value;
	return NULL;
}

const struct json *json_get(const struct json *v, const char *key)
{
	return json_getn(v, key, strlen(key));
}

const struct json *json_at(const struct json *v, size_t index)
{
	return json_is(v, JSON_ARRAY) && index < v->n ? &v->items[index] : NULL;
}

const char *json_str(const struct json *v)
{
	return json_is(v, JSON_STRING) && strlen(v->s) == v->n ? v->s : NULL;
}

/* ---- equality ---- */

static int by_key(const void *x, const void *y)
{
	const struct json_member *a = *(const struct json_member *const *)x, *b = *(const struct json_member *const *)y;
	uint32_t n = a->key_len < b->key_len ? a->key_len : b->key_len;
	int c = memcmp(a->key, b->key, n);

	return c ? c : (a->key_len > b->key_len) - (a->key_len < b->key_len);
}

const struct json_member **json_sorted(const struct json *v)
{
	const struct json_member **m = malloc((v->n ? v->n : 1) * sizeof *m);

	if (!m)
		return NULL;
	for (uint32_t i = 0; i < v->n; i++)
		m[i] = &v->members[i];
	if (v->n > 1)
		qsort(m, v->n, sizeof *m, by_key);
	return m;
}

static bool equal_members_looked_up(const struct json *a, const struct json *b)
{
	for (uint32_t i = 0; i < a->n; i++) {
		const struct json_member *m = &a->members[i];
		const struct json *other = json_getn(b, m->key, m->key_len);

		if (!other || !json_equal(&m->value, other))
			return false;
	}
	return true;
}

static bool equal_members(const struct json *a, const struct json *b)
{
	const struct json_member **x, **y;
	bool same = true;

	if (a->n <= FEW)
		return equal_members_looked_up(a, b);
	x = json_sorted(a);
	y = json_sorted(b);
	if (x && y)
		for (uint32_t i = 0; same && i < a->n; i++)
			same = by_key(&x[i], &y[i]) == 0 && json_equal(&x[i]->value, &y[i]->value);
	else
		same = equal_members_looked_up(a, b); /* slower, as right */
	free(x);
	free(y);
	return same;
}

static bool equal_items(const struct json *a, const struct json *b)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (!json_equal(&a->items[i], &b->items[i]))
			return false;
	return true;
}

bool json_equal(const struct json *a, const struct json *b)
{
	if (a->type != b->type)
		return false;
	switch ((enum json_type)a->type) {
	case JSON_NULL:
		return true;
	case JSON_BOOL:
		return a->b == b->b;
	case JSON_NUMBER:
		return json_number_cmp(a, b) == 0;
	case JSON_STRING:
		return a->n == b->n && !memcmp(a->s, b->s, a->n);
	case JSON_ARRAY:
		return a->n == b->n && equal_items(a, b);
	case JSON_OBJECT:
		return a->n == b->n && equal_members(a, b);
	}
	return false;
}

/* ---- hashes: SipHash-1-3, whose collisions nobody finds without the seed ---- */

static inline uint64_t turn(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = turn(v[1], 13) ^ v[0];
	v[0] = turn(v[0], 32);
	v[2] += v[3];
	v[3] = turn(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = turn(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = turn(v[1], 17) ^ v[2];
	v[2] = turn(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t w)
{
	v[3] ^= w;
	sip_round(v);
	v[0] ^= w;
}

uint64_t json_hash_bytes(const void *data, size_t len, uint64_t seed)
{
	/* One 64-bit key in both places: the seed is all there is. */
	uint64_t v[4] = { seed ^ 0x736f6d6570736575, turn(seed, 32) ^ 0x646f72616e646f6d, seed ^ 0x6c7967656e657261,
			  turn(seed, 32) ^ 0x7465646279746573 };
	const unsigned char *p = data;
	uint64_t w, last = (uint64_t)len << 56;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&w, p, 8);
		sip_word(v, w);
	}
	for (size_t i = 0; i < len; i++)
		last |= (uint64_t)p[i] << (8 * i);
	sip_word(v, last);
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t json_seed(void)
{
	static uint64_t seed;
	const void *from; /* 16 random bytes that the kernel gives each program */

	if (!seed) {
		uint64_t s[2] = { 0x9e3779b97f4a7c15, 0 };

		from = (const void *)getauxval(AT_RANDOM);
		if (from)
			memcpy(s, from, sizeof s);
		seed = (s[0] ^ turn(s[1], 29)) | 1;
	}
	return seed;
}

static uint64_t hash_number(const struct json *v, uint64_t seed)
{
	struct json_decimal d;
	int64_t i;

	if (json_int(v, &i))
		return json_hash_bytes(&i, sizeof i, seed);
	json_decimal_of(v, &d);
	return json_hash_bytes(d.digits, (size_t)d.n, seed + (uint64_t)d.point * 2 + d.negative);
}

uint64_t json_hash(const struct json *v, uint64_t seed)
{
	uint64_t h = 0, pair[2];

	seed += (uint64_t)(v->type + 1) * 0x9e3779b97f4a7c15;
	switch ((enum json_type)v->type) {
	case JSON_NULL:
		return json_hash_bytes("", 0, seed);
	case JSON_BOOL:
		return json_hash_bytes(&"ft"[v->b], 1, seed);
	case JSON_NUMBER:
		return hash_number(v, seed);
	case JSON_STRING:
		return json_hash_bytes(v->s, v->n, seed);
	case JSON_ARRAY:
		h = seed;
		for (uint32_t i = 0; i < v->n; i++) {
			pair[0] = h;
			pair[1] = json_hash(&v->items[i], seed);
			h = json_hash_bytes(pair, sizeof pair, seed);
		}
		return h;
	case JSON_OBJECT: /* a sum, so that order does not matter */
		for (uint32_t i = 0; i < v->n; i++) {
			pair[0] = json_hash_bytes(v->members[i].key, v->members[i].key_len, seed);
			pair[1] = json_hash(&v->members[i].value, seed);
			h += json_hash_bytes(pair, sizeof pair, seed);
		}
		return h ^ seed;
	}
	return h;
}

/* ---- making ---- */

static bool copy_into(struct cs_arena *a, struct json *to, const struct json *v);

static bool copy_members(struct cs_arena *a, struct json *to, const struct json *v)
{
	struct json_member *m = cs_arena_get(a, v->n, sizeof *m);

	if (!m)
		return false;
	to->members = m;
	for (uint32_t i = 0; i < v->n; i++) {
		m[i].key = cs_arena_dup(a, v->members[i].key, v->members[i].key_len);
		m[i].key_len = v->members[i].key_len;
		if (!m[i].key || !copy_into(a, &m[i].value, &v->members[i].value))
			return false;
	}
	return true;
}

static bool copy_items(struct cs_arena *a, struct json *to, const struct json *v)
{
	struct json *items = cs_arena_get(a, v->n, sizeof *items);

	if (!items)
		return false;
	to->items = items;
	for (uint32_t i = 0; i < v->n; i++)
		if (!copy_into(a, &items[i], &v->items[i]))
			return false;
	return true;
}

static bool copy_into(struct cs_arena *a, struct json *to, const struct json *v)
{
	*to = *v;
	if (v->type == JSON_ARRAY)
		return copy_items(a, to, v);
	if (v->type == JSON_OBJECT)
		return copy_members(a, to, v);
	if (v->type != JSON_STRING && (v->type != JSON_NUMBER || v->whole))
		return true;
	to->s = cs_arena_dup(a, v->s, v->n);
	return to->s != NULL;
}

const struct json *json_copy(struct cs_arena *to, const struct json *v)
{
	struct json *c = cs_arena_new(to, struct json);

	return c && copy_into(to, c, v) ? c : NULL;
}

const struct json *json_new_str(struct cs_arena *a, const char *s, size_t len)
{
	struct json *v = len < UINT32_MAX ? cs_arena_new(a, struct json) : NULL;

	if (!v)
		return NULL;
	v->type = JSON_STRING;
	v->n = (uint32_t)len;
	v->s = cs_arena_dup(a, s, len);
	return v->s ? v : NULL;
}

const struct json *json_new_int(struct cs_arena *a, int64_t i)
{
	struct json *v = cs_arena_new(a, struct json);

	if (!v)
		return NULL;
	v->type = JSON_NUMBER;
	v->whole = true;
	v->i = i;
	return v;
}
