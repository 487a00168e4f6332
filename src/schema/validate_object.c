/* SPDX-License-Identifier: Apache-2.0 */
/* validate_object.c - an object's members, names and their company. */
#include "schema/validate.h"

#include "json/hash.h"

#include <inttypes.h>
#include <string.h>

static const struct property *property_of(const struct objects *o, const struct json_member *m)
{
	if (o->table) {
		uint32_t at = (uint32_t)json_hash_bytes(m->key, m->key_len, o->seed) & (o->table_size - 1);

		for (; o->table[at]; at = (at + 1) & (o->table_size - 1)) {
			const struct property *p = &o->properties[o->table[at] - 1];

			if (p->len == m->key_len && !memcmp(p->key, m->key, p->len))
				return p;
		}
		return NULL;
	}
	for (uint32_t i = 0; i < o->n; i++)
		if (o->properties[i].len == m->key_len && !memcmp(o->properties[i].key, m->key, m->key_len))
			return &o->properties[i];
	return NULL;
}

static bool check_member(struct run *r, const struct node *n, const struct json_member *m, const struct at *at)
{
	const struct at here = { .up = at, .key = m->key, .key_len = m->key_len, .depth = at->depth + 1 };

	return schema_check(r, n, &m->value, &here, NULL);
}

/* "Known are ..." helps whoever has misspelled one. */
static bool fail_additional(struct run *r, const struct node *n, const char *keyword, const struct json_member *m, const struct at *at)
{
	CS_BUF_AUTO struct cs_buf known = CS_BUF(1024);
	const struct objects *o = n->objects;

	for (uint32_t i = 0; i < o->n && known.len < 160; i++)
		if (o->properties[i].node)
			cs_buf_fmt(&known, "%s%s", known.len ? ", " : "; known are ", schema_shown_text(o->properties[i].key, o->properties[i].len));
	return schema_failed(r, n, keyword, at, "the property %s is not allowed%s", schema_shown_text(m->key, m->key_len), cs_buf_text(&known));
}

static bool check_rest(struct run *r, const struct node *n, const struct json_member *m, const struct at *at)
{
	if (n->objects->rest->kind == KIND_NONE)
		return r->mode == QUIET ? false : fail_additional(r, n, "additionalProperties", m, at);
	return check_member(r, n->objects->rest, m, at);
}

static bool check_name(struct run *r, const struct node *n, const struct json_member *m, const struct at *at)
{
	struct json name = { .type = JSON_STRING, .n = m->key_len, .s = m->key };
	const struct at here = { .up = at, .key = m->key, .key_len = m->key_len, .depth = at->depth + 1 };

	if (n->objects->names->kind == KIND_NONE)
		return FAILED(r, n, "propertyNames", at, "the property %s is not allowed", schema_shown(&name));
	if (schema_check(r, n->objects->names, &name, &here, NULL))
		return true;
	return FAILED(r, n, "propertyNames", at, "the name of the property %s is not allowed", schema_shown(&name));
}

/* One member by "properties", "patternProperties", and "additionalProperties" if neither has it. */
static bool check_one(struct run *r, const struct node *n, const struct json *v, uint32_t i, const struct at *at, struct seen *seen, uint32_t *required)
{
	const struct objects *o = n->objects;
	const struct json_member *m = &v->members[i];
	const struct property *p = property_of(o, m);
	bool ok = true, known = false;

	if (p) {
		*required += p->required;
		if (p->node) {
			known = true;
			ok = check_member(r, p->node, m, at);
		}
	}
	for (uint32_t k = 0; k < o->n_patterns && (ok || r->mode != QUIET); k++)
		if (schema_matches(r, o->patterns[k].pattern, m->key, m->key_len)) {
			known = true;
			ok = check_member(r, o->patterns[k].node, m, at) && ok;
		}
	if (!known && o->rest) {
		known = true;
		ok = check_rest(r, n, m, at) && ok;
	}
	if (known)
		schema_mark(seen, i);
	if (o->names && (ok || r->mode != QUIET))
		ok = check_name(r, n, m, at) && ok;
	return ok;
}

static bool fail_required(struct run *r, const struct node *n, const struct json *v, const struct at *at)
{
	for (uint32_t i = 0; i < n->objects->n; i++) {
		const struct property *p = &n->objects->properties[i];

		if (!p->required || !schema_spend(r, 1 + v->n / 8) || json_getn(v, p->key, p->len))
			continue;
		schema_failed(r, n, "required", at, "the property %s is missing", schema_shown_text(p->key, p->len));
	}
	return false;
}

static bool check_names_there(struct run *r, const struct node *n, const struct dependency *d, const struct json *v, const struct at *at)
{
	bool ok = true;

	for (uint32_t i = 0; i < d->names->n && (ok || r->mode != QUIET); i++) {
		const struct json *name = &d->names->items[i];

		if (!schema_spend(r, 1 + v->n / 8))
			return false;
		if (!json_getn(v, name->s, name->n))
			ok = FAILED(r, n, "dependentRequired", at, "the property %s is missing, which %s needs", schema_shown(name), schema_shown_text(d->key, d->len));
	}
	return ok;
}

static bool check_dependencies(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	bool ok = true;

	for (uint32_t i = 0; i < n->objects->n_dependencies && (ok || r->mode != QUIET); i++) {
		const struct dependency *d = &n->objects->dependencies[i];

		if (!schema_spend(r, 1 + v->n / 8))
			return false;
		if (!json_getn(v, d->key, d->len))
			continue;
		if (d->names)
			ok = check_names_there(r, n, d, v, at) && ok;
		else
			ok = schema_check(r, d->node, v, at, seen) && ok;
	}
	return ok;
}

bool schema_check_object(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	const struct objects *o = n->objects;
	uint32_t required = 0;
	bool ok = true;

	if (v->n < o->min)
		ok = FAILED(r, n, "minProperties", at, "it has %u propert%s; %" PRIu64 " are the least", v->n, v->n == 1 ? "y" : "ies", o->min);
	if (v->n > o->max)
		ok = FAILED(r, n, "maxProperties", at, "it has %u properties; %" PRIu64 " are the most", v->n, o->max);
	for (uint32_t i = 0; i < v->n && (ok || r->mode != QUIET); i++) {
		if (r->costly || !schema_spend(r, 1))
			return false;
		ok = check_one(r, n, v, i, at, seen, &required) && ok;
	}
	if (!ok && r->mode == QUIET)
		return false;
	if (required < o->required)
		ok = r->mode == QUIET ? false : fail_required(r, n, v, at);
	return (o->n_dependencies == 0 || check_dependencies(r, n, v, at, seen)) && ok;
}

static bool unevaluated_members(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	bool ok = true;

	for (uint32_t i = 0; i < v->n && (ok || r->mode != QUIET); i++) {
		if (schema_marked(seen, i))
			continue;
		if (!schema_spend(r, 1))
			return false;
		if (n->objects->unevaluated->kind == KIND_NONE)
			ok = r->mode == QUIET ? false : fail_additional(r, n, "unevaluatedProperties", &v->members[i], at);
		else
			ok = check_member(r, n->objects->unevaluated, &v->members[i], at) && ok;
	}
	seen->all = true;
	return ok;
}

static bool unevaluated_items(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	bool ok = true;

	for (uint32_t i = 0; i < v->n && (ok || r->mode != QUIET); i++) {
		const struct at here = { .up = at, .index = i, .depth = at->depth + 1 };

		if (schema_marked(seen, i))
			continue;
		if (!schema_spend(r, 1))
			return false;
		if (n->arrays->unevaluated->kind == KIND_NONE)
			ok = FAILED(r, n, "unevaluatedItems", &here, "this item is not allowed");
		else
			ok = schema_check(r, n->arrays->unevaluated, &v->items[i], &here, NULL) && ok;
	}
	seen->all = true;
	return ok;
}

bool schema_check_unevaluated(struct run *r, const struct node *n, const struct json *v, const struct at *at, struct seen *seen)
{
	if (v->type == JSON_OBJECT && n->objects && n->objects->unevaluated)
		return unevaluated_members(r, n, v, at, seen);
	if (v->type == JSON_ARRAY && n->arrays && n->arrays->unevaluated)
		return unevaluated_items(r, n, v, at, seen);
	return true;
}
