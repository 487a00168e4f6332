/* SPDX-License-Identifier: Apache-2.0 */
/* validate_logic.c - nodes that look at the same value: references, and, or, not, if. */
#include "schema/validate.h"

#include <string.h>

/* Whether the node holds, without a word. What it looked at counts only if it does. */
static bool holds(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	enum mode mode = r->mode;
	struct seen own;
	bool ok;

	r->mode = QUIET;
	if (!seen) {
		ok = schema_check(r, n, v, at, NULL);
	} else {
		ok = schema_seen_init(r, &own, v) && schema_check(r, n, v, at, &own);
		if (ok)
			schema_seen_merge(seen, &own);
	}
	r->mode = mode;
	return ok && !r->costly;
}

static bool check_all(struct run *r, const struct nodes *all, const struct json *v, const struct at *at, struct seen *seen)
{
	bool ok = true;

	for (uint32_t i = 0; i < all->n && (ok || r->mode != QUIET) && !r->costly; i++)
		ok = schema_check(r, all->v[i], v, at, seen) && ok;
	return ok;
}

/* Of alternatives that all fail: the one that fails furthest inside, and of those in the fewest places,
 * is what was meant. */
static const struct node *nearest(struct run *r, const struct nodes *list, const struct json *v, const struct at *at)
{
	enum mode mode = r->mode;
	uint32_t outer_deepest = r->deepest, outer_failures = r->failures, deepest = 0, fewest = UINT32_MAX;
	const struct node *best = NULL;

	r->mode = SCORE;
	for (uint32_t i = 0; i < list->n && !r->costly; i++) {
		r->deepest = r->failures = 0;
		schema_check(r, list->v[i], v, at, NULL);
		if (!best || r->deepest > deepest || (r->deepest == deepest && r->failures < fewest)) {
			best = list->v[i];
			deepest = r->deepest;
			fewest = r->failures;
		}
	}
	r->mode = mode;
	r->deepest = outer_deepest;
	r->failures = outer_failures;
	return best;
}

static bool fail_none(struct run *r, const struct node *n, const char *keyword, const struct nodes *list, const struct json *v, const struct at *at)
{
	const struct node *best;

	schema_failed(r, n, keyword, at, "it has none of the %u forms that are allowed", list->n);
	if (r->mode != TELL)
		return false;
	best = nearest(r, list, v, at);
	if (best && !r->costly)
		schema_check(r, best, v, at, NULL);
	return false;
}

static bool check_any(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	const struct nodes *any = &n->logic->any;
	bool ok = false;

	/* Each that holds adds to what was looked at. */
	for (uint32_t i = 0; i < any->n && (!ok || seen) && !r->costly; i++)
		ok = holds(r, any->v[i], v, at, seen) || ok;
	if (ok || r->costly)
		return ok && !r->costly;
	return r->mode == QUIET ? false : fail_none(r, n, "anyOf", any, v, at);
}

static bool check_one(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	const struct nodes *one = &n->logic->one;
	uint32_t first = 0, found = 0;

	for (uint32_t i = 0; i < one->n && !r->costly; i++) {
		if (!holds(r, one->v[i], v, at, seen))
			continue;
		if (found++)
			return FAILED(r, n, "oneOf", at, "it has two forms at once, the ones numbered %u and %u, where one is allowed", first + 1, i + 1);
		first = i;
	}
	if (found || r->costly)
		return found && !r->costly;
	return r->mode == QUIET ? false : fail_none(r, n, "oneOf", one, v, at);
}

static bool check_if(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	const struct node *next = holds(r, n->logic->when, v, at, seen) ? n->logic->then : n->logic->otherwise;

	if (r->costly)
		return false;
	return !next || schema_check(r, next, v, at, seen);
}

static bool check_not(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	bool is = holds(r, n->logic->no, v, at, NULL);

	if (r->costly)
		return false;
	return !is || FAILED(r, n, "not", at, "%s is what it must not be", schema_shown(v));
}

/* The outermost resource that the check came through and that has the anchor. */
static const struct node *dynamic_target(struct run *r, const struct logic *l)
{
	const struct node *to = l->dynamic;

	if (!l->dynamic_name)
		return to;
	for (const struct scope *s = r->scope; s; s = s->outer)
		for (const struct dynamic *d = s->resource->dynamics; d; d = d->next)
			if (schema_spend(r, 1) && d->node && !strcmp(d->name, l->dynamic_name))
				to = d->node;
	return to;
}

bool schema_check_logic(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	const struct logic *l = n->logic;
	bool ok = true, tell = r->mode != QUIET;

	if (l->ref)
		ok = schema_check(r, l->ref, v, at, seen);
	if (l->dynamic && (ok || tell))
		ok = schema_check(r, dynamic_target(r, l), v, at, seen) && ok;
	if (l->all.n && (ok || tell))
		ok = check_all(r, &l->all, v, at, seen) && ok;
	if (l->any.n && (ok || tell))
		ok = check_any(r, n, v, at, seen) && ok;
	if (l->one.n && (ok || tell))
		ok = check_one(r, n, v, at, seen) && ok;
	if (l->no && (ok || tell))
		ok = check_not(r, n, v, at) && ok;
	if (l->when && (ok || tell))
		ok = check_if(r, n, v, at, seen) && ok;
	return ok;
}
