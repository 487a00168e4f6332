/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c - a value against a node: what is not of objects, arrays or other nodes. */
#include "schema/validate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 500, RUN_MEMORY = 64 << 20, HASHED = 8 };

bool schema_matches(struct run *r, const struct pattern *p, const char *s, size_t len)
{
	int m = schema_pattern_matches(r->schema->matcher, p, s, len, &r->steps);

	if (m < 0) {
		r->costly = true;
		r->steps = 0;
	}
	return m > 0;
}

/* ---- what was looked at ---- */

bool schema_seen_init(struct run *r, struct seen *s, const struct json *v)
{
	uint32_t n = v->type == JSON_OBJECT || v->type == JSON_ARRAY ? v->n : 0;

	memset(s, 0, sizeof *s);
	s->words = (n + 63) / 64;
	s->bits = s->few;
	if (s->words <= sizeof s->few / sizeof *s->few)
		return true;
	s->bits = schema_spend(r, s->words) ? cs_arena_get(&r->arena, s->words, sizeof *s->bits) : NULL;
	if (!s->bits)
		r->costly = true;
	return s->bits != NULL;
}

void schema_seen_merge(struct seen *to, const struct seen *from)
{
	to->all |= from->all;
	for (uint32_t i = 0; i < to->words; i++)
		to->bits[i] |= from->bits[i];
}

/* ---- type, enum, const ---- */

static bool has_type(const struct node *n, const struct json *v)
{
	if (n->types & (1U << v->type))
		return true;
	return (n->types & TYPE_INTEGER) && v->type == JSON_NUMBER && json_whole(v);
}

static const char *with_article(unsigned type)
{
	static const char *const names[] = { "null", "a boolean", "a number", "a string", "an array", "an object", "an integer" };

	return names[type];
}

static bool fail_type(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	char want[128] = "";
	size_t len = 0;
	int left = __builtin_popcount(n->types);

	for (unsigned i = 0; i < 7; i++)
		if (n->types & (1U << i)) {
			left--;
			len += (size_t)snprintf(want + len, sizeof want - len, "%s%s", with_article(i), left > 1 ? ", " : left ? " or " : "");
		}
	if (v->type == JSON_NUMBER && (n->types & TYPE_INTEGER))
		return schema_failed(r, n, "type", at, "%s is not a whole number; it should be %s", schema_shown(v), want);
	if (v->type == JSON_NULL)
		return schema_failed(r, n, "type", at, "it is null; it should be %s", want);
	return schema_failed(r, n, "type", at, "%s is %s; it should be %s", schema_shown(v), with_article(v->type), want);
}

size_t schema_weight(const struct json *v, size_t stop)
{
	size_t w = 1;

	if (v->type == JSON_STRING || (v->type == JSON_NUMBER && !v->whole))
		return 1 + v->n / 32;
	if (v->type != JSON_ARRAY && v->type != JSON_OBJECT)
		return 1;
	for (uint32_t i = 0; i < v->n && w < stop; i++)
		w += v->type == JSON_ARRAY ? schema_weight(&v->items[i], stop - w) : 1 + schema_weight(&v->members[i].value, stop - w);
	return w;
}

static bool is_choice(struct run *r, const struct choices *c, const struct json *v)
{
	uint64_t h;

	if (!schema_spend(r, schema_weight(v, r->steps + (size_t)1) + c->n / 8))
		return false;
	if (c->n <= HASHED && v->type <= JSON_STRING) {
		for (uint32_t i = 0; i < c->n; i++)
			if (json_equal(&c->values[i], v))
				return true;
		return false;
	}
	h = json_hash(v, c->seed);
	for (uint32_t i = 0; i < c->n; i++)
		if (c->hashes[i] == h && json_equal(&c->values[i], v))
			return true;
	return false;
}

static bool fail_choice(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	CS_BUF_AUTO struct cs_buf all = CS_BUF(1024);

	for (uint32_t i = 0; i < n->choices->n && all.len < 200; i++)
		cs_buf_fmt(&all, "%s%s", i ? ", " : "", schema_shown(&n->choices->values[i]));
	return schema_failed(r, n, "enum", at, "%s is not one of: %s", schema_shown(v), cs_buf_text(&all));
}

/* ---- numbers ---- */

static bool check_multiple(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	const struct json *of = n->numbers->multiple;
	/* Long division of decimals. */
	size_t cost = v->whole && of->whole ? 1 : 64 + (size_t)(v->whole ? 20 : v->n) * (of->whole ? 1 : of->n) / 16;

	if (!schema_spend(r, cost))
		return false;
	return json_number_multiple(v, of) || FAILED(r, n, "multipleOf", at, "%s is not a multiple of %s", schema_shown(v), schema_shown(of));
}

static bool check_number(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	const struct numbers *x = n->numbers;
	bool ok = true;

	if (!v->whole && !schema_spend(r, v->n / 16))
		return false;
	if (x->minimum && json_number_cmp(v, x->minimum) < 0)
		ok = FAILED(r, n, "minimum", at, "%s is less than the minimum %s", schema_shown(v), schema_shown(x->minimum));
	if (x->maximum && json_number_cmp(v, x->maximum) > 0)
		ok = FAILED(r, n, "maximum", at, "%s is more than the maximum %s", schema_shown(v), schema_shown(x->maximum));
	if (x->above && json_number_cmp(v, x->above) <= 0)
		ok = FAILED(r, n, "exclusiveMinimum", at, "%s is not more than %s", schema_shown(v), schema_shown(x->above));
	if (x->below && json_number_cmp(v, x->below) >= 0)
		ok = FAILED(r, n, "exclusiveMaximum", at, "%s is not less than %s", schema_shown(v), schema_shown(x->below));
	return (!x->multiple || check_multiple(r, n, v, at)) && ok;
}

/* ---- strings ---- */

static uint64_t characters(const struct json *v)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < v->n; i++)
		n += ((unsigned char)v->s[i] & 0xc0) != 0x80;
	return n;
}

static bool check_length(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	const struct strings *x = n->strings;
	uint64_t len;

	if (!x->min && x->max == UINT64_MAX)
		return true;
	if (!schema_spend(r, v->n / 32))
		return false;
	len = characters(v);
	if (len < x->min)
		return FAILED(r, n, "minLength", at, "%s has %" PRIu64 " character%s; %" PRIu64 " are the least", schema_shown(v), len, len == 1 ? "" : "s", x->min);
	if (len > x->max)
		return FAILED(r, n, "maxLength", at, "%s has %" PRIu64 " characters; %" PRIu64 " are the most", schema_shown(v), len, x->max);
	return true;
}

static bool check_string(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	const struct strings *x = n->strings;
	bool ok = check_length(r, n, v, at);

	if (!ok && r->mode == QUIET)
		return false;
	if (x->pattern && !schema_matches(r, x->pattern, v->s, v->n))
		ok = FAILED(r, n, "pattern", at, "%s does not match the pattern %s", schema_shown(v),
			    schema_shown_text(schema_pattern_text(x->pattern), strlen(schema_pattern_text(x->pattern))));
	if (x->format) {
		if (!schema_spend(r, v->n / 4))
			return false;
		if (!schema_format(x->format, v->s, v->n))
			ok = FAILED(r, n, "format", at, "%s is not of the format %s", schema_shown(v), schema_shown_text(x->format, strlen(x->format)));
	}
	return ok;
}

/* ---- a node ---- */

static bool check_value(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	bool ok = true;

	if (n->types && !has_type(n, v))
		return r->mode == QUIET ? false : fail_type(r, n, v, at);
	if (n->constant && !is_choice(r, n->constant, v))
		ok = FAILED(r, n, "const", at, "%s is not what it must be: %s", schema_shown(v), schema_shown(n->constant->values));
	if (n->choices && !is_choice(r, n->choices, v))
		ok = r->mode == QUIET ? false : fail_choice(r, n, v, at);
	if (v->type == JSON_NUMBER && n->numbers)
		ok = check_number(r, n, v, at) && ok;
	if (v->type == JSON_STRING && n->strings)
		ok = check_string(r, n, v, at) && ok;
	return ok;
}

static bool check_rules(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	bool ok = check_value(r, n, v, at);

	if (!ok && r->mode == QUIET)
		return false;
	if (v->type == JSON_OBJECT && n->objects)
		ok = schema_check_object(r, n, v, at, seen) && ok;
	else if (v->type == JSON_ARRAY && n->arrays)
		ok = schema_check_array(r, n, v, at, seen) && ok;
	if (n->logic && (ok || r->mode != QUIET))
		ok = schema_check_logic(r, n, v, at, seen) && ok;
	return ok;
}

/* A node with "unevaluated..." asks what its own keywords looked at, not what its neighbours did. */
static bool check_tracking(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *outer)
{
	struct seen own;
	bool ok = schema_seen_init(r, &own, v) && check_rules(r, n, v, at, &own);

	if (ok)
		ok = schema_check_unevaluated(r, n, v, at, &own);
	if (ok && outer)
		schema_seen_merge(outer, &own);
	return ok;
}

bool schema_check(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	struct scope scope = { r->scope, n->resource };
	bool ok;

	if (n->kind == KIND_ANY)
		return true;
	if (n->kind == KIND_NONE)
		return FAILED(r, n, "", at, "nothing is allowed here");
	if (r->depth == DEPTH_MAX)
		r->costly = true;
	if (r->costly || !schema_spend(r, 1))
		return false;
	r->depth++;
	if (!r->scope || r->scope->resource != n->resource)
		r->scope = &scope;
	ok = n->tracks ? check_tracking(r, n, v, at, seen) : check_rules(r, n, v, at, seen);
	r->scope = scope.outer;
	r->depth--;
	return ok;
}

static bool run_once(struct run *r, const struct schema *s, const struct json *v, uint32_t steps)
{
	const struct at top = { 0 };

	r->schema = s;
	r->steps = steps;
	return schema_check(r, s->root, v, &top, NULL) && !r->costly;
}

static void tell_costly(struct schema_report *rep)
{
	struct schema_failure *f = &rep->failures[0];

	memset(f, 0, sizeof *f);
	snprintf(f->keyword, sizeof f->keyword, "#");
	snprintf(f->message, sizeof f->message, "%s: it is too costly to check against its schema", rep->name ? rep->name : "value");
	rep->too_costly = true;
	rep->n = 1;
}

/* A verdict has been given; this only finds words for it. */
static void explain(const struct schema *s, const struct json *v, struct schema_report *rep, uint32_t steps)
{
	struct run r = { .mode = TELL, .report = rep, .arena = CS_ARENA(RUN_MEMORY) };

	run_once(&r, s, v, steps);
	cs_arena_done(&r.arena);
	if (!rep->n)
		tell_costly(rep);
}

bool schema_validate(const struct schema *s, const struct json *value, struct schema_report *report)
{
	struct run r = { .mode = QUIET, .arena = CS_ARENA(RUN_MEMORY) };
	uint32_t steps = report && report->steps ? report->steps : SCHEMA_STEPS;
	bool ok = run_once(&r, s, value, steps);

	cs_arena_done(&r.arena);
	if (!report)
		return ok;
	report->n = 0;
	report->too_costly = false;
	if (r.costly)
		tell_costly(report);
	else if (!ok)
		explain(s, value, report, steps);
	return ok;
}
