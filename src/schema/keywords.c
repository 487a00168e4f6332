/* SPDX-License-Identifier: Apache-2.0 */
/* keywords.c - one function for each keyword: from JSON to the node. */
#include "schema/internal.h"

#include "base/text.h"
#include "json/hash.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 8 }; /* properties that are compared one by one */

struct job {
	struct compiler *c;
	struct place *p;
	struct node *node;
	const char *keyword;
};

static int fail_type(struct job *j, const char *what)
{
	return schema_fail_at(j->c, j->p, "\"%s\" must be %s", j->keyword, what);
}

/* A part of a node, made when it is first needed. */
#define PART(j, part) ((j)->node->part ? (j)->node->part : ((j)->node->part = new_##part(&(j)->c->schema->arena)))

static struct numbers *new_numbers(struct cs_arena *a)
{
	return cs_arena_new(a, struct numbers);
}

static struct logic *new_logic(struct cs_arena *a)
{
	return cs_arena_new(a, struct logic);
}

static struct strings *new_strings(struct cs_arena *a)
{
	struct strings *s = cs_arena_new(a, struct strings);

	if (s)
		s->max = UINT64_MAX;
	return s;
}

static struct arrays *new_arrays(struct cs_arena *a)
{
	struct arrays *s = cs_arena_new(a, struct arrays);

	if (s) {
		s->max = s->max_contains = UINT64_MAX;
		s->min_contains = 1;
	}
	return s;
}

static struct objects *new_objects(struct cs_arena *a)
{
	struct objects *s = cs_arena_new(a, struct objects);

	if (s)
		s->max = UINT64_MAX;
	return s;
}

/* ---- values of keywords ---- */

static int get_node(struct job *j, const struct json *v, const struct node **ret)
{
	struct place *p = schema_map_get(&j->c->places, &v, sizeof v);

	if (!p)
		return fail_type(j, "a schema: an object, true or false");
	*ret = schema_node_of(j->c, p);
	return *ret ? 0 : schema_fail_memory(j->c);
}

static int get_nodes(struct job *j, const struct json *v, struct nodes *ret)
{
	if (v->type != JSON_ARRAY || !v->n)
		return fail_type(j, "a list of schemas that is not empty");
	ret->v = cs_arena_get(&j->c->schema->arena, v->n, sizeof *ret->v);
	if (!ret->v)
		return schema_fail_memory(j->c);
	ret->n = v->n;
	for (uint32_t i = 0; i < v->n; i++) {
		int e = get_node(j, &v->items[i], &ret->v[i]);

		if (e)
			return e;
	}
	return 0;
}

static int get_count(struct job *j, const struct json *v, uint64_t *ret)
{
	int64_t i;

	if (v->type != JSON_NUMBER || !json_whole(v))
		return fail_type(j, "a whole number");
	if (!json_int(v, &i))
		i = json_num(v) < 0 ? -1 : INT64_MAX; /* more than anything can have */
	if (i < 0)
		return fail_type(j, "a number that is not negative");
	*ret = (uint64_t)i;
	return 0;
}

static int get_number(struct job *j, const struct json *v, const struct json **ret)
{
	if (v->type != JSON_NUMBER)
		return fail_type(j, "a number");
	*ret = json_copy(&j->c->schema->arena, v);
	return *ret ? 0 : schema_fail_memory(j->c);
}

static int get_pattern(struct job *j, const char *text, size_t len, const struct pattern **ret)
{
	struct cs_err err;
	int e = schema_pattern_new(j->c->schema, text, len, ret, &err);

	return e ? schema_fail_at(j->c, j->p, "%s", err.msg) : 0;
}

static bool all_strings(const struct json *v)
{
	if (v->type != JSON_ARRAY)
		return false;
	for (uint32_t i = 0; i < v->n; i++)
		if (v->items[i].type != JSON_STRING)
			return false;
	return true;
}

/* ---- any type ---- */

static int one_type(struct job *j, const struct json *v)
{
	static const char *const names[] = { "null", "boolean", "number", "string", "array", "object", "integer" };
	const char *s = json_str(v);

	for (unsigned i = 0; s && i < sizeof names / sizeof *names; i++)
		if (!strcmp(s, names[i])) {
			j->node->types |= (uint8_t)(1U << i);
			return 0;
		}
	return fail_type(j, "one or more of null, boolean, number, integer, string, array, object");
}

static int kw_type(struct job *j, const struct json *v)
{
	if (v->type != JSON_ARRAY)
		return one_type(j, v);
	if (!v->n)
		return fail_type(j, "a type or a list of types that is not empty");
	for (uint32_t i = 0; i < v->n; i++) {
		int e = one_type(j, &v->items[i]);

		if (e)
			return e;
	}
	return 0;
}

static int make_choices(struct job *j, const struct json *values, uint32_t n, const struct choices **ret)
{
	struct cs_arena *a = &j->c->schema->arena;
	struct choices *c = cs_arena_new(a, struct choices);
	struct json *copies = cs_arena_get(a, n, sizeof *copies);
	uint64_t *hashes = cs_arena_get(a, n, sizeof *hashes);

	if (!c || !copies || !hashes)
		return schema_fail_memory(j->c);
	c->seed = json_seed();
	for (uint32_t i = 0; i < n; i++) {
		const struct json *copy = json_copy(a, &values[i]);

		if (!copy)
			return schema_fail_memory(j->c);
		copies[i] = *copy;
		hashes[i] = json_hash(copy, c->seed);
	}
	c->values = copies;
	c->hashes = hashes;
	c->n = n;
	*ret = c;
	return 0;
}

static int kw_enum(struct job *j, const struct json *v)
{
	if (v->type != JSON_ARRAY)
		return fail_type(j, "a list of values");
	return make_choices(j, v->items, v->n, &j->node->choices);
}

static int kw_const(struct job *j, const struct json *v)
{
	return make_choices(j, v, 1, &j->node->constant);
}

/* ---- numbers ---- */

#define NUMBER_KEYWORD(name, field)                                       \
	static int name(struct job *j, const struct json *v)              \
	{                                                                 \
		struct numbers *n = PART(j, numbers);                     \
		return n ? get_number(j, v, &n->field) : schema_fail_memory(j->c); \
	}
NUMBER_KEYWORD(kw_minimum, minimum)
NUMBER_KEYWORD(kw_maximum, maximum)
NUMBER_KEYWORD(kw_exclusive_minimum, above)
NUMBER_KEYWORD(kw_exclusive_maximum, below)

static int kw_multiple_of(struct job *j, const struct json *v)
{
	static const struct json zero = { .type = JSON_NUMBER, .whole = true };
	struct numbers *n = PART(j, numbers);

	if (!n)
		return schema_fail_memory(j->c);
	if (v->type != JSON_NUMBER || json_number_cmp(v, &zero) <= 0)
		return fail_type(j, "a number above 0");
	return get_number(j, v, &n->multiple);
}

/* ---- counts ---- */

#define COUNT_KEYWORD(name, part, field)                                  \
	static int name(struct job *j, const struct json *v)              \
	{                                                                 \
		struct part *n = PART(j, part);                           \
		return n ? get_count(j, v, &n->field) : schema_fail_memory(j->c); \
	}
COUNT_KEYWORD(kw_min_length, strings, min)
COUNT_KEYWORD(kw_max_length, strings, max)
COUNT_KEYWORD(kw_min_items, arrays, min)
COUNT_KEYWORD(kw_max_items, arrays, max)
COUNT_KEYWORD(kw_min_contains, arrays, min_contains)
COUNT_KEYWORD(kw_max_contains, arrays, max_contains)
COUNT_KEYWORD(kw_min_properties, objects, min)
COUNT_KEYWORD(kw_max_properties, objects, max)

/* ---- strings ---- */

static int kw_pattern(struct job *j, const struct json *v)
{
	struct strings *s = PART(j, strings);

	if (!s)
		return schema_fail_memory(j->c);
	if (v->type != JSON_STRING)
		return fail_type(j, "a string");
	return get_pattern(j, v->s, v->n, &s->pattern);
}

static int kw_format(struct job *j, const struct json *v)
{
	struct strings *s;

	if (!json_str(v))
		return fail_type(j, "a string");
	if (!j->c->options->formats && !(j->p->resource->vocabularies & VOCAB_FORMAT))
		return 0;
	s = PART(j, strings);
	if (!s || !(s->format = cs_arena_dup(&j->c->schema->arena, v->s, v->n)))
		return schema_fail_memory(j->c);
	return 0;
}

/* ---- schemas in a field ---- */

#define NODE_KEYWORD(name, part, field)                                  \
	static int name(struct job *j, const struct json *v)             \
	{                                                                \
		struct part *n = PART(j, part);                          \
		return n ? get_node(j, v, &n->field) : schema_fail_memory(j->c); \
	}
NODE_KEYWORD(kw_not, logic, no)
NODE_KEYWORD(kw_if, logic, when)
NODE_KEYWORD(kw_then, logic, then)
NODE_KEYWORD(kw_else, logic, otherwise)
NODE_KEYWORD(kw_additional_properties, objects, rest)
NODE_KEYWORD(kw_property_names, objects, names)

#define NODES_KEYWORD(name, part, field)                                  \
	static int name(struct job *j, const struct json *v)              \
	{                                                                 \
		struct part *n = PART(j, part);                           \
		return n ? get_nodes(j, v, &n->field) : schema_fail_memory(j->c); \
	}
NODES_KEYWORD(kw_all_of, logic, all)
NODES_KEYWORD(kw_any_of, logic, any)
NODES_KEYWORD(kw_one_of, logic, one)
NODES_KEYWORD(kw_prefix_items, arrays, prefix)

static int kw_unevaluated_properties(struct job *j, const struct json *v)
{
	struct objects *o = PART(j, objects);

	j->node->tracks = true;
	return o ? get_node(j, v, &o->unevaluated) : schema_fail_memory(j->c);
}

static int kw_unevaluated_items(struct job *j, const struct json *v)
{
	struct arrays *a = PART(j, arrays);

	j->node->tracks = true;
	return a ? get_node(j, v, &a->unevaluated) : schema_fail_memory(j->c);
}

/* ---- arrays ---- */

static int kw_items(struct job *j, const struct json *v)
{
	struct arrays *a = PART(j, arrays);

	if (!a)
		return schema_fail_memory(j->c);
	if (v->type == JSON_ARRAY)
		return fail_type(j, "a schema; a list of schemas is called \"prefixItems\" in draft 2020-12, or \"$schema\" is missing");
	a->rest_keyword = "items";
	return get_node(j, v, &a->rest);
}

/* Of draft-07. With a list, "additionalItems" is what "items" became. */
static int kw_items_7(struct job *j, const struct json *v)
{
	struct arrays *a = PART(j, arrays);

	if (!a)
		return schema_fail_memory(j->c);
	if (v->type != JSON_ARRAY) {
		a->rest_keyword = "items";
		return get_node(j, v, &a->rest);
	}
	return v->n ? get_nodes(j, v, &a->prefix) : 0;
}

static int kw_additional_items(struct job *j, const struct json *v)
{
	struct arrays *a = PART(j, arrays);
	const struct node *unused;

	if (!a)
		return schema_fail_memory(j->c);
	if (!json_is(json_get(j->p->at, "items"), JSON_ARRAY))
		return get_node(j, v, &unused); /* without effect, but it must be one */
	a->rest_keyword = "additionalItems";
	return get_node(j, v, &a->rest);
}

static int kw_contains(struct job *j, const struct json *v)
{
	struct arrays *a = PART(j, arrays);

	if (!a)
		return schema_fail_memory(j->c);
	a->contains_marks = j->p->resource->draft == SCHEMA_2020_12;
	return get_node(j, v, &a->contains);
}

static int kw_unique_items(struct job *j, const struct json *v)
{
	struct arrays *a = PART(j, arrays);

	if (v->type != JSON_BOOL)
		return fail_type(j, "true or false");
	if (!a)
		return schema_fail_memory(j->c);
	a->unique = v->b;
	return 0;
}

/* ---- objects ---- */

static uint32_t table_at(const struct objects *o, const char *key, uint32_t len)
{
	uint32_t at = (uint32_t)json_hash_bytes(key, len, o->seed) & (o->table_size - 1);

	while (o->table[at]) {
		const struct property *p = &o->properties[o->table[at] - 1];

		if (p->len == len && !memcmp(p->key, key, len))
			break;
		at = (at + 1) & (o->table_size - 1);
	}
	return at;
}

static bool make_table(struct cs_arena *a, struct objects *o, size_t room)
{
	for (o->table_size = 16; o->table_size < room * 2;)
		o->table_size *= 2;
	o->seed = json_seed();
	o->table = cs_arena_get(a, o->table_size, sizeof *o->table);
	return o->table != NULL;
}

/* The property of that name, which is made if there is none; there is room. */
static struct property *property_of(struct cs_arena *a, struct objects *o, const char *key, uint32_t len)
{
	uint32_t at = table_at(o, key, len);
	struct property *p;

	if (o->table[at])
		return &o->properties[o->table[at] - 1];
	p = &o->properties[o->n];
	p->key = cs_arena_dup(a, key, len);
	p->len = len;
	if (!p->key)
		return NULL;
	o->table[at] = ++o->n;
	return p;
}

static int add_properties(struct job *j, struct objects *o, const struct json *v)
{
	for (uint32_t i = 0; i < v->n; i++) {
		struct property *p = property_of(&j->c->schema->arena, o, v->members[i].key, v->members[i].key_len);
		int e;

		if (!p)
			return schema_fail_memory(j->c);
		e = get_node(j, &v->members[i].value, &p->node);
		if (e)
			return e;
	}
	return 0;
}

static int add_required(struct job *j, struct objects *o, const struct json *v)
{
	for (uint32_t i = 0; i < v->n; i++) {
		struct property *p = property_of(&j->c->schema->arena, o, v->items[i].s, v->items[i].n);

		if (!p)
			return schema_fail_memory(j->c);
		o->required += !p->required;
		p->required = true;
	}
	return 0;
}

/* "properties" and "required" make one table; whichever comes first makes it for both. */
static int named(struct job *j)
{
	struct resource *r = j->p->resource;
	const struct json *props = json_get(j->p->at, "properties"), *required = json_get(j->p->at, "required");
	struct objects *o = PART(j, objects);
	struct cs_arena *a = &j->c->schema->arena;
	size_t room;
	int e = 0;

	if (!o)
		return schema_fail_memory(j->c);
	if (o->properties)
		return 0;
	if (!(r->vocabularies & VOCAB_APPLICATOR))
		props = NULL;
	if (!(r->vocabularies & VOCAB_VALIDATION))
		required = NULL;
	j->keyword = "properties";
	if (props && props->type != JSON_OBJECT)
		return fail_type(j, "an object of schemas");
	j->keyword = "required";
	if (required && !all_strings(required))
		return fail_type(j, "a list of names");
	room = (props ? props->n : 0) + (size_t)(required ? required->n : 0);
	o->properties = cs_arena_get(a, room, sizeof *o->properties);
	if (!o->properties || !make_table(a, o, room))
		return schema_fail_memory(j->c);
	j->keyword = "properties";
	if (props)
		e = add_properties(j, o, props);
	if (!e && required)
		e = add_required(j, o, required);
	if (o->n <= FEW)
		o->table = NULL;
	return e;
}

static int kw_properties(struct job *j, const struct json *v)
{
	(void)v;
	return named(j);
}

static int kw_pattern_properties(struct job *j, const struct json *v)
{
	struct objects *o = PART(j, objects);

	if (v->type != JSON_OBJECT)
		return fail_type(j, "an object of schemas");
	if (!o || !(o->patterns = cs_arena_get(&j->c->schema->arena, v->n, sizeof *o->patterns)))
		return schema_fail_memory(j->c);
	o->n_patterns = v->n;
	for (uint32_t i = 0; i < v->n; i++) {
		const struct json_member *m = &v->members[i];
		int e = get_pattern(j, m->key, m->key_len, &o->patterns[i].pattern);

		if (!e)
			e = get_node(j, &m->value, &o->patterns[i].node);
		if (e)
			return e;
	}
	return 0;
}

static int add_dependency(struct job *j, const struct json_member *m, struct dependency *d)
{
	struct cs_arena *a = &j->c->schema->arena;

	d->key = cs_arena_dup(a, m->key, m->key_len);
	d->len = m->key_len;
	if (!d->key)
		return schema_fail_memory(j->c);
	if (m->value.type != JSON_ARRAY)
		return get_node(j, &m->value, &d->node);
	if (!all_strings(&m->value))
		return fail_type(j, "an object of lists of names");
	d->names = json_copy(a, &m->value);
	return d->names ? 0 : schema_fail_memory(j->c);
}

/* "dependentRequired" has lists, "dependentSchemas" schemas, "dependencies" either. */
static int kw_dependencies(struct job *j, const struct json *v)
{
	struct objects *o = PART(j, objects);
	struct dependency *d;

	if (v->type != JSON_OBJECT)
		return fail_type(j, "an object");
	d = cs_arena_get(&j->c->schema->arena, v->n + (size_t)(o ? o->n_dependencies : 0), sizeof *d);
	if (!o || !d)
		return schema_fail_memory(j->c);
	if (o->n_dependencies)
		memcpy(d, o->dependencies, o->n_dependencies * sizeof *d);
	o->dependencies = d;
	for (uint32_t i = 0; i < v->n; i++) {
		bool list = v->members[i].value.type == JSON_ARRAY;
		int e;

		if (!strcmp(j->keyword, "dependentRequired") && !list)
			return fail_type(j, "an object of lists of names");
		if (!strcmp(j->keyword, "dependentSchemas") && list)
			return fail_type(j, "an object of schemas");
		e = add_dependency(j, &v->members[i], &d[o->n_dependencies++]);
		if (e)
			return e;
	}
	return 0;
}

/* ---- references ---- */

static int refer(struct job *j, const struct json *v, const struct node **ret, struct place **to, const char **anchor)
{
	int e = schema_resolve(j->c, j->p, v, to, anchor);

	if (e)
		return e;
	*ret = schema_node_of(j->c, *to);
	return *ret ? 0 : schema_fail_memory(j->c);
}

static int kw_ref(struct job *j, const struct json *v)
{
	struct logic *l = PART(j, logic);
	struct place *to;
	const char *anchor;

	return l ? refer(j, v, &l->ref, &to, &anchor) : schema_fail_memory(j->c);
}

static int kw_dynamic_ref(struct job *j, const struct json *v)
{
	struct logic *l = PART(j, logic);
	struct place *to;
	const char *anchor;
	int e;

	if (!l)
		return schema_fail_memory(j->c);
	e = refer(j, v, &l->dynamic, &to, &anchor);
	if (e || !anchor)
		return e;
	/* Only a reference that would lead to a "$dynamicAnchor" anyway looks for another one. */
	for (const struct dynamic *d = to->resource->dynamics; d; d = d->next)
		if (d->at == to->at && !strcmp(d->name, anchor))
			l->dynamic_name = d->name;
	return 0;
}

/* ---- the table ---- */

static const struct keyword {
	const char *name;
	int (*compile)(struct job *j, const struct json *v);
	uint8_t in_2020, in_7;
	uint8_t vocabulary; /* 0: core, or all */
} keywords[] = {
	{ "$ref", kw_ref, 1, 1, 0 },
	{ "$dynamicRef", kw_dynamic_ref, 1, 0, 0 },
	{ "type", kw_type, 1, 1, VOCAB_VALIDATION },
	{ "enum", kw_enum, 1, 1, VOCAB_VALIDATION },
	{ "const", kw_const, 1, 1, VOCAB_VALIDATION },
	{ "minimum", kw_minimum, 1, 1, VOCAB_VALIDATION },
	{ "maximum", kw_maximum, 1, 1, VOCAB_VALIDATION },
	{ "exclusiveMinimum", kw_exclusive_minimum, 1, 1, VOCAB_VALIDATION },
	{ "exclusiveMaximum", kw_exclusive_maximum, 1, 1, VOCAB_VALIDATION },
	{ "multipleOf", kw_multiple_of, 1, 1, VOCAB_VALIDATION },
	{ "minLength", kw_min_length, 1, 1, VOCAB_VALIDATION },
	{ "maxLength", kw_max_length, 1, 1, VOCAB_VALIDATION },
	{ "pattern", kw_pattern, 1, 1, VOCAB_VALIDATION },
	{ "format", kw_format, 1, 1, 0 },
	{ "minItems", kw_min_items, 1, 1, VOCAB_VALIDATION },
	{ "maxItems", kw_max_items, 1, 1, VOCAB_VALIDATION },
	{ "uniqueItems", kw_unique_items, 1, 1, VOCAB_VALIDATION },
	{ "minContains", kw_min_contains, 1, 0, VOCAB_VALIDATION },
	{ "maxContains", kw_max_contains, 1, 0, VOCAB_VALIDATION },
	{ "contains", kw_contains, 1, 1, VOCAB_APPLICATOR },
	{ "prefixItems", kw_prefix_items, 1, 0, VOCAB_APPLICATOR },
	{ "items", kw_items, 1, 0, VOCAB_APPLICATOR },
	{ "items", kw_items_7, 0, 1, 0 },
	{ "additionalItems", kw_additional_items, 0, 1, 0 },
	{ "minProperties", kw_min_properties, 1, 1, VOCAB_VALIDATION },
	{ "maxProperties", kw_max_properties, 1, 1, VOCAB_VALIDATION },
	{ "properties", kw_properties, 1, 1, VOCAB_APPLICATOR },
	{ "required", kw_properties, 1, 1, VOCAB_VALIDATION },
	{ "patternProperties", kw_pattern_properties, 1, 1, VOCAB_APPLICATOR },
	{ "additionalProperties", kw_additional_properties, 1, 1, VOCAB_APPLICATOR },
	{ "propertyNames", kw_property_names, 1, 1, VOCAB_APPLICATOR },
	{ "dependentRequired", kw_dependencies, 1, 0, VOCAB_VALIDATION },
	{ "dependentSchemas", kw_dependencies, 1, 0, VOCAB_APPLICATOR },
	{ "dependencies", kw_dependencies, 1, 1, VOCAB_APPLICATOR },
	{ "allOf", kw_all_of, 1, 1, VOCAB_APPLICATOR },
	{ "anyOf", kw_any_of, 1, 1, VOCAB_APPLICATOR },
	{ "oneOf", kw_one_of, 1, 1, VOCAB_APPLICATOR },
	{ "not", kw_not, 1, 1, VOCAB_APPLICATOR },
	{ "if", kw_if, 1, 1, VOCAB_APPLICATOR },
	{ "then", kw_then, 1, 1, VOCAB_APPLICATOR },
	{ "else", kw_else, 1, 1, VOCAB_APPLICATOR },
	{ "unevaluatedItems", kw_unevaluated_items, 1, 0, VOCAB_UNEVALUATED },
	{ "unevaluatedProperties", kw_unevaluated_properties, 1, 0, VOCAB_UNEVALUATED },
};

static const struct keyword *find(const struct resource *r, const struct json_member *m)
{
	for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
		const struct keyword *k = &keywords[i];

		if (!(r->draft == SCHEMA_DRAFT_7 ? k->in_7 : k->in_2020) || strlen(k->name) != m->key_len || memcmp(k->name, m->key, m->key_len))
			continue;
		return k->vocabulary && !(r->vocabularies & k->vocabulary) ? NULL : k;
	}
	return NULL;
}

int schema_compile_place(struct compiler *c, struct place *p)
{
	struct job j = { .c = c, .p = p, .node = p->node };
	bool only_ref = p->resource->draft == SCHEMA_DRAFT_7 && json_get(p->at, "$ref");

	if (p->at->type == JSON_BOOL) {
		p->node->kind = p->at->b ? KIND_ANY : KIND_NONE;
		return 0;
	}
	for (uint32_t i = 0; i < p->at->n; i++) {
		const struct json_member *m = &p->at->members[i];
		const struct keyword *k = find(p->resource, m);
		int e;

		if (!k || (only_ref && strcmp(k->name, "$ref") != 0))
			continue;
		j.keyword = k->name;
		e = k->compile(&j, &m->value);
		if (e)
			return e;
	}
	return 0;
}
