/* SPDX-License-Identifier: Apache-2.0 */
/* eval_compare.c - comparisons of two values that are there.
 *
 * Values of kinds that cannot be compared (a number < a string, a pattern on an
 * object) are unknown rather than false: `not` must not make a guard of it.
 */
#include "rules/monitor_internal.h"

#include <string.h>

static enum rl_truth of_bool(bool b)
{
	return b ? RL_IS_TRUE : RL_IS_FALSE;
}

static enum rl_truth least(enum rl_truth a, enum rl_truth b)
{
	return a < b ? a : b;
}

static enum rl_truth most(enum rl_truth a, enum rl_truth b)
{
	return a > b ? a : b;
}

static enum rl_truth ordered(enum rl_op op, const struct json *a, const struct json *b)
{
	int c;

	if (!json_is(a, JSON_NUMBER) || !json_is(b, JSON_NUMBER))
		return RL_IS_UNKNOWN;
	c = json_number_cmp(a, b);
	switch (op) {
	case RL_LT: return of_bool(c < 0);
	case RL_LE: return of_bool(c <= 0);
	case RL_GT: return of_bool(c > 0);
	default: return of_bool(c >= 0);
	}
}

static bool has(const struct json *array, const struct json *v)
{
	for (uint32_t i = 0; i < array->n; i++)
		if (json_equal(&array->items[i], v))
			return true;
	return false;
}

static enum rl_truth in(const struct json *a, const struct json *b)
{
	if (!json_is(b, JSON_ARRAY))
		return RL_IS_UNKNOWN;
	if (!json_is(a, JSON_ARRAY))
		return of_bool(has(b, a));
	for (uint32_t i = 0; i < a->n; i++)
		if (!has(b, &a->items[i]))
			return RL_IS_FALSE;
	return RL_IS_TRUE;
}

static enum rl_truth contains(const struct json *a, const struct json *b)
{
	if (json_is(a, JSON_ARRAY))
		return of_bool(has(a, b));
	if (json_is(a, JSON_STRING) && json_is(b, JSON_STRING))
		return of_bool(memmem(a->s, a->n, b->s, b->n) != NULL);
	return RL_IS_UNKNOWN;
}

enum rl_truth rl_matches(const struct json *a, const struct pattern *p)
{
	enum rl_truth t = RL_IS_TRUE;

	if (json_is(a, JSON_STRING))
		return of_bool(pattern_match(p, a->s, a->n));
	if (!json_is(a, JSON_ARRAY))
		return RL_IS_UNKNOWN;
	for (uint32_t i = 0; i < a->n; i++)
		t = least(t, json_is(&a->items[i], JSON_STRING) ? of_bool(pattern_match(p, a->items[i].s, a->items[i].n)) : RL_IS_UNKNOWN);
	return t;
}

/* ---- paths, by their text alone: no file is looked at ---- */

enum { PATH_PARTS = 256 };

struct parts {
	struct {
		const char *s;
		size_t len;
	} v[PATH_PARTS];
	uint32_t n;
	bool absolute;
};

/* False where the text alone does not say which place is meant: nothing, ~, or .. out of a relative path. */
static bool split(const struct json *v, struct parts *p)
{
	const char *s = json_str(v);

	p->n = 0;
	if (!s || !*s || *s == '~')
		return false;
	p->absolute = *s == '/';
	while (*s) {
		size_t len = strcspn(s, "/");

		if (len == 2 && s[0] == '.' && s[1] == '.') {
			if (!p->n && !p->absolute)
				return false;
			p->n -= p->n > 0;
		} else if (len && !(len == 1 && *s == '.')) {
			if (p->n == PATH_PARTS)
				return false;
			p->v[p->n].s = s;
			p->v[p->n++].len = len;
		}
		s += len + (s[len] == '/');
	}
	return true;
}

static enum rl_truth path_under(const struct json *a, const struct json *b)
{
	struct parts x, y;

	/* A relative path is below the workspace, of which the text of an absolute one says nothing. */
	if (!split(a, &x) || !split(b, &y) || x.absolute != y.absolute)
		return RL_IS_UNKNOWN;
	if (x.n < y.n)
		return RL_IS_FALSE;
	for (uint32_t i = 0; i < y.n; i++)
		if (x.v[i].len != y.v[i].len || memcmp(x.v[i].s, y.v[i].s, x.v[i].len) != 0)
			return RL_IS_FALSE;
	return RL_IS_TRUE;
}

static enum rl_truth under_some(const struct json *a, const struct json *b)
{
	enum rl_truth t = RL_IS_FALSE;

	if (!json_is(b, JSON_ARRAY))
		return path_under(a, b);
	for (uint32_t i = 0; i < b->n; i++)
		t = most(t, path_under(a, &b->items[i]));
	return t;
}

/* Of a set of paths: all, or none; some and some not is unknown, which satisfies nothing, whichever way a rule is written.
 * Nothing at all is under everything. */
static enum rl_truth all_under(const struct json *a, const struct json *b)
{
	enum rl_truth least_so = RL_IS_TRUE, most_so = RL_IS_FALSE;

	if (!json_is(a, JSON_ARRAY))
		return under_some(a, b);
	for (uint32_t i = 0; i < a->n; i++) {
		enum rl_truth t = under_some(&a->items[i], b);

		least_so = least(least_so, t);
		most_so = most(most_so, t);
	}
	return !a->n || least_so == most_so ? least_so : RL_IS_UNKNOWN;
}

enum rl_truth rl_compare(enum rl_op op, const struct json *a, const struct json *b)
{
	switch (op) {
	case RL_EQ: return of_bool(json_equal(a, b));
	case RL_NE: return of_bool(!json_equal(a, b));
	case RL_IN: return in(a, b);
	case RL_CONTAINS: return contains(a, b);
	case RL_UNDER: return all_under(a, b);
	case RL_OUTSIDE: return (enum rl_truth)(RL_IS_TRUE - all_under(a, b));
	default: return ordered(op, a, b);
	}
}
