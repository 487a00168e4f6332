/* SPDX-License-Identifier: Apache-2.0 */
/* type.c - what a JSON Schema says about a place in a value.
 *
 * Only what is certain: where a schema is too clever (anyOf, conditions, references
 * into other documents) nothing is known, and no error follows from it.  The
 * exception is deliberate: properties without additionalProperties are taken for
 * all there are, for the one thing a rule must not do is to look at an argument
 * whose name was misspelt.
 */
#include "rules/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REF_HOPS = 16, ALL_OF_DEPTH = 8 };

const struct rl_session_name rl_session_names[RL_SESSION_NAMES] = {
	{ "untrusted", TY_BOOL }, { "sensitive", TY_BOOL }, { "secret", TY_BOOL },   { "planned", TY_BOOL },
	{ "suspicion", TY_NUMBER }, { "role", TY_STRING },  { "agent", TY_STRING }, { "workspace", TY_STRING },
};

void rl_type_any(struct rl_type *t, unsigned mask)
{
	*t = (struct rl_type){ .mask = mask, .open = true };
}

/* ---- references ---- */

/* One part of a JSON pointer, unescaped into key. */
static const char *pointer_part(const char *s, char *key, size_t size)
{
	size_t n = 0;

	for (; *s && *s != '/'; s++) {
		char c = *s;

		if (c == '~' && (s[1] == '0' || s[1] == '1'))
			c = *++s == '0' ? '~' : '/';
		if (n + 1 >= size)
			return NULL;
		key[n++] = c;
	}
	key[n] = '\0';
	return s;
}

static const struct json *at_pointer(const struct json *root, const char *s)
{
	char key[256];

	while (root && *s == '/') {
		s = pointer_part(s + 1, key, sizeof key);
		if (!s)
			return NULL;
		root = json_is(root, JSON_ARRAY) ? json_at(root, strtoul(key, NULL, 10)) : json_get(root, key);
	}
	return s && !*s ? root : NULL;
}

/* NULL: leads out of the document, or in a circle. */
static const struct json *resolve(const struct json *schema, const struct json *root)
{
	for (int hops = 0; hops < REF_HOPS; hops++) {
		const char *ref = json_str(json_get(schema, "$ref"));

		if (!ref)
			return schema;
		if (*ref != '#')
			return NULL;
		schema = at_pointer(root, ref + 1);
		if (!schema)
			return NULL;
	}
	return NULL;
}

/* ---- what a schema allows ---- */

static unsigned mask_of_name(const char *name)
{
	static const struct { const char *name; unsigned mask; } names[] = {
		{ "null", TY_NULL }, { "boolean", TY_BOOL }, { "number", TY_NUMBER }, { "integer", TY_NUMBER },
		{ "string", TY_STRING }, { "array", TY_ARRAY }, { "object", TY_OBJECT },
	};

	for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i].name))
			return names[i].mask;
	return TY_ANY;
}

static unsigned schema_mask(const struct json *s)
{
	const struct json *type = json_get(s, "type"), *list = json_get(s, "enum"), *one = json_get(s, "const");
	unsigned mask = TY_ANY, some = 0;

	if (json_is(type, JSON_STRING))
		mask = mask_of_name(json_str(type));
	for (uint32_t i = 0; json_is(type, JSON_ARRAY) && i < type->n; i++)
		some |= mask_of_name(json_str(json_at(type, i)));
	mask &= some ? some : TY_ANY;
	some = one ? 1u << one->type : 0;
	for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->n; i++)
		some |= 1u << list->items[i].type;
	return mask & (some ? some : TY_ANY);
}

static void add_from(struct rl_type *t, const struct json *schema, const struct json *root)
{
	if (t->n < TY_ALTERNATIVES)
		t->from[t->n++] = (struct rl_type_from){ schema, root };
	else
		t->open = true;
}

static void type_at(const struct json *schema, const struct json *root, struct rl_type *ret)
{
	const struct json *s = resolve(schema, root);

	*ret = (struct rl_type){ .mask = json_is(s, JSON_OBJECT) ? schema_mask(s) : TY_ANY };
	if (json_is(s, JSON_OBJECT))
		add_from(ret, s, root);
	else
		ret->open = true;
}

void rl_type_of(const struct json *schema, struct rl_type *ret)
{
	if (schema)
		type_at(schema, schema, ret);
	else
		rl_type_any(ret, TY_ANY);
}

void rl_type_join(struct rl_type *into, const struct rl_type *other)
{
	into->mask |= other->mask;
	into->element |= other->element;
	into->optional |= other->optional;
	into->open |= other->open;
	for (uint32_t i = 0; i < other->n; i++) {
		bool known = false;

		for (uint32_t k = 0; k < into->n; k++)
			known |= into->from[k].schema == other->from[i].schema;
		if (!known)
			add_from(into, other->from[i].schema, other->from[i].root);
	}
}

/* ---- steps ---- */

enum found { FOUND, OPEN, EXCLUDED };

static bool is_clever(const struct json *s)
{
	static const char *const words[] = { "anyOf", "oneOf", "allOf", "if", "patternProperties", "dependentSchemas", "$dynamicRef", "not" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (json_get(s, words[i]))
			return true;
	return false;
}

static bool requires(const struct json *s, const char *key)
{
	const struct json *list = json_get(s, "required");

	for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->n; i++)
		if (json_str(json_at(list, i)) && !strcmp(json_str(json_at(list, i)), key))
			return true;
	return false;
}

static enum found find_field(const struct json *schema, const struct json *root, const char *key, int depth, const struct json **ret, bool *optional)
{
	const struct json *s = resolve(schema, root), *more, *all;

	*optional = true;
	if (!json_is(s, JSON_OBJECT) || depth > ALL_OF_DEPTH)
		return OPEN;
	if (!(schema_mask(s) & TY_OBJECT))
		return EXCLUDED;
	*ret = json_get(json_get(s, "properties"), key);
	if (*ret) {
		*optional = !requires(s, key);
		return FOUND;
	}
	all = json_get(s, "allOf");
	for (uint32_t i = 0; json_is(all, JSON_ARRAY) && i < all->n; i++)
		if (find_field(json_at(all, i), root, key, depth + 1, ret, optional) == FOUND)
			return FOUND;
	*optional = !requires(s, key);
	more = json_get(s, "additionalProperties");
	if (is_clever(s))
		return OPEN;
	if (json_is(more, JSON_OBJECT)) {
		*ret = more;
		return FOUND;
	}
	if (more)
		return json_is(more, JSON_BOOL) && !more->b ? EXCLUDED : OPEN;
	return json_get(s, "properties") ? EXCLUDED : OPEN;
}

static enum found find_element(const struct json *schema, const struct json *root, int64_t index, const struct json **ret)
{
	const struct json *s = resolve(schema, root), *prefix, *items;

	if (!json_is(s, JSON_OBJECT) || is_clever(s))
		return OPEN;
	if (!(schema_mask(s) & TY_ARRAY))
		return EXCLUDED;
	prefix = json_get(s, "prefixItems");
	items = json_get(s, "items");
	*ret = index >= 0 ? json_at(prefix, (size_t)index) : NULL;
	if (!*ret && json_is(items, JSON_OBJECT) && (index >= 0 || !prefix))
		*ret = items;
	return *ret ? FOUND : OPEN;
}

static void join_found(struct rl_type *ret, enum found f, const struct json *child, const struct json *root)
{
	struct rl_type one;

	if (f == EXCLUDED)
		return;
	if (f == FOUND)
		type_at(child, root, &one);
	else
		rl_type_any(&one, TY_ANY);
	rl_type_join(ret, &one);
}

/* A negative index: any element. */
static enum rl_step_result step_to(const struct rl_type *t, const char *key, int64_t index, struct rl_type *ret)
{
	bool optional = t->optional, one;

	*ret = (struct rl_type){ 0 };
	if (!(t->mask & (key ? TY_OBJECT : TY_ARRAY)))
		return key ? RL_STEP_NOT_OBJECT : RL_STEP_NOT_ARRAY;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct json *child = NULL;
		enum found f = key ? find_field(t->from[i].schema, t->from[i].root, key, 0, &child, &one) :
				     find_element(t->from[i].schema, t->from[i].root, index, &child);

		join_found(ret, f, child, t->from[i].root);
		optional |= key && (f == EXCLUDED || one);
	}
	if (!ret->mask && !t->open)
		return key ? RL_STEP_NO_FIELD : RL_STEP_NOT_ARRAY;
	if (t->open)
		join_found(ret, OPEN, NULL, NULL);
	if (!key && !t->n && t->element)
		rl_type_any(ret, t->element);
	ret->optional = optional;
	return RL_STEP_OK;
}

enum rl_step_result rl_type_step(const struct rl_type *t, const struct rl_step *s, struct rl_type *ret)
{
	if (s->term) {
		rl_type_any(ret, TY_ANY);
		return t->mask & (TY_OBJECT | TY_ARRAY) ? RL_STEP_OK : RL_STEP_NOT_OBJECT;
	}
	return step_to(t, s->key, s->index, ret);
}

void rl_type_element(const struct rl_type *t, struct rl_type *ret)
{
	if (step_to(t, NULL, -1, ret) != RL_STEP_OK)
		rl_type_any(ret, TY_ANY);
	ret->optional = false;
}

/* ---- constants ---- */

static bool schema_admits(const struct json *s, const struct json *v)
{
	const struct json *list = json_get(s, "enum"), *one = json_get(s, "const");
	const char *type = json_str(json_get(s, "type"));
	bool in = !json_is(list, JSON_ARRAY);
	int64_t whole;

	if (!(schema_mask(s) & 1u << v->type) || (one && !json_equal(one, v)))
		return false;
	if (type && !strcmp(type, "integer") && !json_int(v, &whole) && !v->whole && memchr(v->s, '.', v->n))
		return false;
	for (uint32_t i = 0; !in && i < list->n; i++)
		in = json_equal(&list->items[i], v);
	return in;
}

bool rl_type_admits(const struct rl_type *t, const struct json *v)
{
	if (!(t->mask & 1u << v->type))
		return false;
	for (uint32_t i = 0; i < t->n; i++)
		if (schema_admits(t->from[i].schema, v))
			return true;
	return t->open || !t->n;
}

size_t rl_type_enum(const struct rl_type *t, const char **ret, size_t max)
{
	size_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct json *list = json_get(t->from[i].schema, "enum");

		for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->n && n < max; k++)
			if (json_str(&list->items[k]))
				ret[n++] = list->items[k].s;
	}
	return n;
}

size_t rl_type_fields(const struct rl_type *t, const char **ret, size_t max)
{
	size_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct json *fields = json_get(t->from[i].schema, "properties");

		for (uint32_t k = 0; json_is(fields, JSON_OBJECT) && k < fields->n && n < max; k++)
			ret[n++] = fields->members[k].key;
	}
	return n;
}

const char *rl_type_name(unsigned mask)
{
	switch (mask) {
	case TY_NULL: return "null";
	case TY_BOOL: return "a boolean";
	case TY_NUMBER: return "a number";
	case TY_STRING: return "a string";
	case TY_ARRAY: return "a list";
	case TY_OBJECT: return "an object";
	case TY_NUMBER | TY_NULL: return "a number or null";
	case TY_STRING | TY_NULL: return "a string or null";
	case TY_STRING | TY_NUMBER: return "a string or a number";
	default: return "of another type";
	}
}
