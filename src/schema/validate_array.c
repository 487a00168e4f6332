/* SPDX-License-Identifier: Apache-2.0 */
/* validate_array.c - an array's items. */
#include "schema/validate.h"

#include "json/hash.h"

#include <inttypes.h>

enum { FEW = 8 }; /* items that are compared each with each */

static bool check_item(struct run *r, const struct node *n, const struct json *v, uint32_t i, const struct at *at)
{
	const struct at here = { .up = at, .index = i, .depth = at->depth + 1 };

	return schema_check(r, n, &v->items[i], &here, NULL);
}

static bool check_items(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	const struct arrays *a = n->arrays;
	bool ok = true;

	for (uint32_t i = 0; i < v->n && (ok || r->mode != QUIET); i++) {
		const struct node *item = i < a->prefix.n ? a->prefix.v[i] : a->rest;

		if (!item)
			break;
		if (r->costly || !schema_spend(r, 1))
			return false;
		if (item == a->rest && item->kind == KIND_NONE)
			return FAILED(r, n, a->rest_keyword, at, "it has %u items; %u are the most", v->n, a->prefix.n);
		ok = check_item(r, item, v, i, at) && ok;
		schema_mark(seen, i);
	}
	if (a->rest && seen)
		seen->all = true;
	return ok;
}

static bool check_contains(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	const struct arrays *a = n->arrays;
	enum mode mode = r->mode;
	uint64_t found = 0;

	r->mode = QUIET;
	for (uint32_t i = 0; i < v->n && !r->costly; i++) {
		if (!check_item(r, a->contains, v, i, at))
			continue;
		found++;
		if (a->contains_marks)
			schema_mark(seen, i);
		if (!seen && found >= a->min_contains && a->max_contains == UINT64_MAX)
			break;
	}
	r->mode = mode;
	if (r->costly)
		return false;
	if (found < a->min_contains)
		return FAILED(r, n, "contains", at, "%" PRIu64 " items are of the kind of which %" PRIu64 " must be there", found, a->min_contains);
	if (found > a->max_contains)
		return FAILED(r, n, "maxContains", at, "%" PRIu64 " items are of the kind of which %" PRIu64 " may be there", found, a->max_contains);
	return true;
}

static bool fail_unique(struct run *r, const struct node *n, const struct at *at, const struct json *v, uint32_t i, uint32_t k)
{
	return schema_failed(r, n, "uniqueItems", at, "the items %u and %u are the same: %s", i < k ? i : k, i < k ? k : i, schema_shown(&v->items[i]));
}

struct slot {
	uint64_t hash;
	uint32_t item; /* 1 + index */
};

static bool unique_hashed(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	size_t size = 32, i;
	uint64_t seed = json_seed();
	struct slot *table;

	while (size < (size_t)v->n * 2)
		size *= 2;
	table = cs_arena_get(&r->arena, size, sizeof *table);
	if (!table) {
		r->costly = true;
		return false;
	}
	for (uint32_t k = 0; k < v->n; k++) {
		uint64_t h = json_hash(&v->items[k], seed);

		for (i = h & (size - 1); table[i].item; i = (i + 1) & (size - 1))
			if (table[i].hash == h && json_equal(&v->items[table[i].item - 1], &v->items[k]))
				return r->mode == QUIET ? false : fail_unique(r, n, at, v, table[i].item - 1, k);
		table[i] = (struct slot){ h, k + 1 };
	}
	return true;
}

static bool check_unique(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	size_t cost = schema_weight(v, r->steps + (size_t)1);

	if (!schema_spend(r, v->n <= FEW ? cost * v->n : cost * 2))
		return false;
	if (v->n > FEW)
		return unique_hashed(r, n, v, at);
	for (uint32_t i = 1; i < v->n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (json_equal(&v->items[i], &v->items[k]))
				return r->mode == QUIET ? false : fail_unique(r, n, at, v, k, i);
	return true;
}

bool schema_check_array(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	const struct arrays *a = n->arrays;
	bool ok = true;

	if (v->n < a->min)
		ok = FAILED(r, n, "minItems", at, "it has %u item%s; %" PRIu64 " are the least", v->n, v->n == 1 ? "" : "s", a->min);
	if (v->n > a->max)
		ok = FAILED(r, n, "maxItems", at, "it has %u items; %" PRIu64 " are the most", v->n, a->max);
	if (a->unique && (ok || r->mode != QUIET))
		ok = check_unique(r, n, v, at) && ok;
	if (ok || r->mode != QUIET)
		ok = check_items(r, n, v, at, seen) && ok;
	if (a->contains && (ok || r->mode != QUIET))
		ok = check_contains(r, n, v, at, seen) && ok;
	return ok;
}
