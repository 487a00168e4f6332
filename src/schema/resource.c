/* SPDX-License-Identifier: Apache-2.0 */
/* resource.c - which part of which document a reference means.
 *
 * A document is walked once, through the keywords that hold schemas and nothing
 * else (an "$id" inside an "enum" is data), and each schema in it becomes a
 * place that knows the resource it belongs to.
 */
#include "schema/internal.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

int schema_fail_memory(struct compiler *c)
{
	return cs_fail(c->err, CS_E_LIMIT, 0, "the schema needs more memory than is allowed");
}

static size_t token_len(const char *s, size_t n)
{
	size_t more = 0;

	for (size_t i = 0; i < n; i++)
		more += s[i] == '~' || s[i] == '/';
	return n + more + 1;
}

static char *put_token(char *end, const char *s, size_t n)
{
	end -= token_len(s, n);
	*end = '/';
	for (char *out = end + 1; n; n--, s++) {
		if (*s == '~' || *s == '/') {
			*out++ = '~';
			*out++ = *s == '~' ? '0' : '1';
		} else {
			*out++ = *s;
		}
	}
	return end;
}

/* Written from its end: places know the way up. */
char *schema_place_path(struct cs_arena *a, const struct place *p)
{
	const struct place *top = p;
	size_t n = 0;
	char *r, *end;

	if (!p->resource)
		return NULL;
	for (; top->up && top->resource->root != top->at; top = top->up)
		n += token_len(top->keyword, strlen(top->keyword)) + (top->key ? token_len(top->key, top->key_len) : 0);
	n += strlen(p->resource->uri) + 1;
	r = cs_arena_get(a, n + 1, 1);
	if (!r)
		return NULL;
	end = r + n;
	for (top = p; top->up && top->resource->root != top->at; top = top->up) {
		if (top->key)
			end = put_token(end, top->key, top->key_len);
		end = put_token(end, top->keyword, strlen(top->keyword));
	}
	memcpy(r, p->resource->uri, strlen(p->resource->uri));
	end[-1] = '#';
	return r;
}

int schema_fail_at(struct compiler *c, const struct place *at, const char *fmt, ...)
{
	char what[SCHEMA_WORDS], shown[256];
	char *path = schema_place_path(&c->tmp, at);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return cs_fail(c->err, CS_E_INVALID, 0, "schema %s: %s", path ? cs_escape_to(shown, sizeof shown, path) : "?", what);
}

/* ---- drafts and vocabularies ---- */

static bool same_uri(const char *a, size_t n, const char *b)
{
	if (n && a[n - 1] == '#')
		n--;
	return strlen(b) == n && !memcmp(a, b, n);
}

static bool known_draft(const char *uri, size_t n, enum schema_draft *ret)
{
	if (same_uri(uri, n, "https://json-schema.org/draft/2020-12/schema")) {
		*ret = SCHEMA_2020_12;
		return true;
	}
	if (same_uri(uri, n, "http://json-schema.org/draft-07/schema") || same_uri(uri, n, "https://json-schema.org/draft-07/schema")) {
		*ret = SCHEMA_DRAFT_7;
		return true;
	}
	return false;
}

static int add_vocabulary(struct compiler *c, struct resource *r, const struct json_member *m)
{
	static const struct { const char *name; unsigned is; } rows[] = {
		{ "core", 0 }, { "applicator", VOCAB_APPLICATOR }, { "validation", VOCAB_VALIDATION }, { "unevaluated", VOCAB_UNEVALUATED },
		{ "format-assertion", VOCAB_FORMAT }, { "format-annotation", 0 }, { "meta-data", 0 }, { "content", 0 },
	};
	static const char base[] = "https://json-schema.org/draft/2020-12/vocab/";
	char shown[160];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (m->key_len > sizeof base - 1 && !memcmp(m->key, base, sizeof base - 1) && !strcmp(m->key + sizeof base - 1, rows[i].name)) {
			r->vocabularies |= rows[i].is;
			return 0;
		}
	if (json_is(&m->value, JSON_BOOL) && !m->value.b)
		return 0;
	return cs_fail(c->err, CS_E_UNSUPPORTED, 0, "the schema needs the vocabulary '%s', which is not known", cs_escape_to(shown, sizeof shown, m->key));
}

static const struct json *registered(const struct compiler *c, const char *uri, size_t n)
{
	const struct registry_entry *e = c->options->registry ? c->options->registry->entries : NULL;

	while (e && !same_uri(uri, n, e->uri))
		e = e->next;
	return e ? e->doc : NULL;
}

/* A "$schema" that is of the registry says by its "$vocabulary" which keywords are rules. */
static int dialect_of_document(struct compiler *c, struct resource *r, const struct json *meta)
{
	const struct json *vocabulary = json_get(meta, "$vocabulary"), *id = json_get(meta, "$schema");

	r->draft = SCHEMA_2020_12;
	if (json_is(id, JSON_STRING))
		known_draft(id->s, id->n, &r->draft);
	if (!json_is(vocabulary, JSON_OBJECT) || r->draft == SCHEMA_DRAFT_7)
		return 0;
	r->vocabularies = 0;
	for (uint32_t i = 0; i < vocabulary->n; i++) {
		int e = add_vocabulary(c, r, &vocabulary->members[i]);

		if (e)
			return e;
	}
	return 0;
}

/* From "$schema", if the schema that the resource is has one. */
static int find_dialect(struct compiler *c, struct resource *r)
{
	const struct json *id = json_get(r->root, "$schema"), *meta;
	char shown[160];

	if (!json_is(id, JSON_STRING) || known_draft(id->s, id->n, &r->draft))
		return 0;
	meta = registered(c, id->s, id->n);
	if (meta)
		return dialect_of_document(c, r, meta);
	return cs_fail(c->err, CS_E_UNSUPPORTED, 0,
		       "\"$schema\" is '%s'; known are https://json-schema.org/draft/2020-12/schema and http://json-schema.org/draft-07/schema",
		       cs_escape_to(shown, sizeof shown, id->s));
}

/* ---- the walk ---- */

enum { HOLDS_ONE = 1, HOLDS_LIST = 2, HOLDS_MAP = 4 };
enum { IN_2020 = 1, IN_7 = 2 };

static const struct {
	const char *name;
	uint8_t holds, drafts;
} holders[] = {
	{ "properties", HOLDS_MAP, 3 }, { "patternProperties", HOLDS_MAP, 3 }, { "additionalProperties", HOLDS_ONE, 3 },
	{ "propertyNames", HOLDS_ONE, 3 }, { "$defs", HOLDS_MAP, IN_2020 }, { "definitions", HOLDS_MAP, 3 },
	{ "items", HOLDS_ONE, IN_2020 }, { "items", HOLDS_ONE | HOLDS_LIST, IN_7 }, { "prefixItems", HOLDS_LIST, IN_2020 },
	{ "additionalItems", HOLDS_ONE, IN_7 }, { "contains", HOLDS_ONE, 3 }, { "allOf", HOLDS_LIST, 3 }, { "anyOf", HOLDS_LIST, 3 },
	{ "oneOf", HOLDS_LIST, 3 }, { "not", HOLDS_ONE, 3 }, { "if", HOLDS_ONE, 3 }, { "then", HOLDS_ONE, 3 }, { "else", HOLDS_ONE, 3 },
	{ "dependentSchemas", HOLDS_MAP, IN_2020 }, { "dependencies", HOLDS_MAP, 3 }, { "unevaluatedItems", HOLDS_ONE, IN_2020 },
	{ "unevaluatedProperties", HOLDS_ONE, IN_2020 }, { "contentSchema", HOLDS_ONE, IN_2020 },
};

static int scan(struct compiler *c, struct place at, struct place **ret);

static int add_anchor(struct compiler *c, struct place *p, const char *name)
{
	size_t n = strlen(p->resource->uri) + strlen(name) + 2;
	char *key = cs_arena_get(&c->tmp, n, 1);
	char shown[100];

	if (!key)
		return schema_fail_memory(c);
	snprintf(key, n, "%s#%s", p->resource->uri, name);
	if (schema_map_get(&c->anchors, key, n - 1))
		return schema_fail_at(c, p, "the anchor '%s' is there twice", cs_escape_to(shown, sizeof shown, name));
	return schema_map_put(&c->tmp, &c->anchors, key, n - 1, p) ? 0 : schema_fail_memory(c);
}

static int add_resource(struct compiler *c, struct place *p, const char *uri)
{
	struct resource *r = cs_arena_new(&c->schema->arena, struct resource), *old = schema_map_get(&c->resources, uri, strlen(uri));
	char shown[200];

	if (old && old->root != p->at)
		return schema_fail_at(c, p, "two schemas have the $id '%s'", cs_escape_to(shown, sizeof shown, uri));
	if (!r)
		return schema_fail_memory(c);
	r->uri = cs_arena_dup(&c->schema->arena, uri, strlen(uri));
	r->root = p->at;
	r->draft = p->resource ? p->resource->draft : c->options->draft;
	r->vocabularies = p->resource ? p->resource->vocabularies : VOCAB_ALL;
	r->next = c->list;
	c->list = r;
	p->resource = r;
	if (!r->uri || !schema_map_put(&c->tmp, &c->resources, r->uri, strlen(r->uri), r))
		return schema_fail_memory(c);
	return find_dialect(c, r);
}

static bool has_nul(const struct json *s)
{
	return strlen(s->s) != s->n;
}

static int scan_id(struct compiler *c, struct place *p)
{
	const struct json *id = json_get(p->at, "$id");
	bool old = p->resource->draft == SCHEMA_DRAFT_7;
	const char *fragment;
	char *uri;
	int e = 0;

	/* In draft-07 nothing beside "$ref" counts. */
	if (!id || (old && json_get(p->at, "$ref")))
		return 0;
	if (!json_is(id, JSON_STRING) || has_nul(id))
		return schema_fail_at(c, p, "\"$id\" must be a URI reference");
	uri = schema_uri_resolve(&c->tmp, p->resource->uri, id->s, id->n, &fragment);
	if (!uri)
		return schema_fail_memory(c);
	if (*fragment && !old)
		return schema_fail_at(c, p, "\"$id\" must not have a fragment; that is what \"$anchor\" is for");
	if (id->n && id->s[0] != '#' && strcmp(uri, p->resource->uri) != 0)
		e = add_resource(c, p, uri);
	if (!e && *fragment)
		e = add_anchor(c, p, fragment);
	return e;
}

static int scan_anchors(struct compiler *c, struct place *p)
{
	static const char *const names[] = { "$anchor", "$dynamicAnchor" };

	for (int i = 0; i < 2; i++) {
		const struct json *v = json_get(p->at, names[i]);
		struct dynamic *d;
		int e;

		if (!v)
			continue;
		if (!json_str(v) || !v->n)
			return schema_fail_at(c, p, "\"%s\" must be a name", names[i]);
		if (i == 1 && json_get(p->at, "$anchor") && json_equal(v, json_get(p->at, "$anchor")))
			e = 0;
		else
			e = add_anchor(c, p, v->s);
		if (e)
			return e;
		if (i == 0)
			continue;
		d = cs_arena_new(&c->schema->arena, struct dynamic);
		if (!d || !(d->name = cs_arena_dup(&c->schema->arena, v->s, v->n)))
			return schema_fail_memory(c);
		d->at = p->at;
		d->next = p->resource->dynamics;
		p->resource->dynamics = d;
	}
	return 0;
}

static bool is_schema(const struct json *v)
{
	return json_is(v, JSON_OBJECT) || json_is(v, JSON_BOOL);
}

static int scan_list(struct compiler *c, struct place *p, const char *keyword, const struct json *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		char number[16], *key;
		int n = snprintf(number, sizeof number, "%u", i), e;

		key = cs_arena_dup(&c->tmp, number, (size_t)n);
		if (!key)
			return schema_fail_memory(c);
		e = scan(c, (struct place){ .at = &list->items[i], .resource = p->resource, .up = p, .keyword = keyword, .key = key, .key_len = (uint32_t)n }, NULL);
		if (e)
			return e;
	}
	return 0;
}

static int scan_map(struct compiler *c, struct place *p, const char *keyword, const struct json *map)
{
	for (uint32_t i = 0; i < map->n; i++) {
		const struct json_member *m = &map->members[i];
		int e = scan(c, (struct place){ .at = &m->value, .resource = p->resource, .up = p, .keyword = keyword, .key = m->key, .key_len = m->key_len }, NULL);

		if (e)
			return e;
	}
	return 0;
}

static int scan_inside(struct compiler *c, struct place *p)
{
	uint8_t draft = p->resource->draft == SCHEMA_DRAFT_7 ? IN_7 : IN_2020;

	for (size_t i = 0; i < sizeof holders / sizeof *holders; i++) {
		const struct json *v = holders[i].drafts & draft ? json_get(p->at, holders[i].name) : NULL;
		int e = 0;

		if (!v)
			continue;
		if ((holders[i].holds & HOLDS_MAP) && v->type == JSON_OBJECT)
			e = scan_map(c, p, holders[i].name, v);
		else if ((holders[i].holds & HOLDS_LIST) && v->type == JSON_ARRAY)
			e = scan_list(c, p, holders[i].name, v);
		else if (holders[i].holds & HOLDS_ONE)
			e = scan(c, (struct place){ .at = v, .resource = p->resource, .up = p, .keyword = holders[i].name }, NULL);
		if (e)
			return e;
	}
	return 0;
}

/* What is no schema is no place; whoever needs one there will say so. */
static int scan(struct compiler *c, struct place at, struct place **ret)
{
	struct place *p;
	int e = 0;

	if (!is_schema(at.at))
		return 0;
	p = cs_arena_new(&c->tmp, struct place);
	if (!p)
		return schema_fail_memory(c);
	*p = at;
	if (!schema_map_put(&c->tmp, &c->places, &p->at, sizeof p->at, p))
		return schema_fail_memory(c);
	if (p->at->type == JSON_OBJECT) {
		e = scan_id(c, p);
		if (!e && p->resource->draft == SCHEMA_2020_12)
			e = scan_anchors(c, p);
		if (!e)
			e = scan_inside(c, p);
	}
	if (!e && ret)
		*ret = p;
	return e;
}

int schema_scan_document(struct compiler *c, const struct json *doc, const char *uri, struct place **ret)
{
	struct place top = { .at = doc };
	int e;

	if (!is_schema(doc))
		return cs_fail(c->err, CS_E_INVALID, 0, "a schema is an object, true or false, not %s", json_type_name(doc->type));
	e = add_resource(c, &top, uri);
	return e ? e : scan(c, top, ret);
}

/* ---- references ---- */

/* By where it is said to be, or by its own "$id". */
static const struct registry_entry *entry_of(const struct compiler *c, const char *uri)
{
	const struct registry_entry *e = c->options->registry ? c->options->registry->entries : NULL;

	for (; e; e = e->next) {
		const struct json *id = json_get(e->doc, "$id");

		if (!strcmp(e->uri, uri) || (json_is(id, JSON_STRING) && same_uri(id->s, id->n, uri)))
			return e;
	}
	return NULL;
}

static int read_registered(struct compiler *c, const char *uri)
{
	const struct registry_entry *r = entry_of(c, uri);
	struct place *p;
	int e;

	if (!r || schema_map_get(&c->resources, r->uri, strlen(r->uri)))
		return 0;
	e = schema_scan_document(c, r->doc, r->uri, &p);
	return e ? cs_wrap(c->err, e, "document %s", r->uri) : 0;
}

static int read_meta(struct compiler *c, const char *uri)
{
	const char *text = schema_meta_text(uri);
	const struct json *doc;
	struct place *p;
	int e;

	if (!text)
		return 0;
	e = json_read(&c->tmp, text, strlen(text), NULL, &doc, c->err);
	return e ? e : schema_scan_document(c, doc, uri, &p);
}

static int find_resource(struct compiler *c, const char *uri, struct resource **ret)
{
	int e = 0;

	*ret = schema_map_get(&c->resources, uri, strlen(uri));
	if (*ret)
		return 0;
	e = read_registered(c, uri);
	*ret = schema_map_get(&c->resources, uri, strlen(uri));
	if (*ret || e)
		return e;
	e = read_meta(c, uri);
	*ret = schema_map_get(&c->resources, uri, strlen(uri));
	return e;
}

static const struct json *step(const struct json *v, const char *token, size_t len)
{
	char key[512];
	size_t n = 0;
	unsigned long index;
	char *end;

	if (len >= sizeof key)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		bool escape = token[i] == '~' && i + 1 < len && (token[i + 1] == '0' || token[i + 1] == '1');

		key[n++] = !escape ? token[i] : token[i + 1] == '0' ? '~' : '/';
		i += escape;
	}
	key[n] = '\0';
	if (v->type == JSON_OBJECT)
		return json_getn(v, key, n);
	if (v->type != JSON_ARRAY || !n || key[0] < '0' || key[0] > '9' || (key[0] == '0' && n > 1))
		return NULL;
	index = strtoul(key, &end, 10);
	return *end ? NULL : json_at(v, index);
}

static int follow_pointer(struct compiler *c, struct resource *r, const char *pointer, struct place **ret)
{
	const struct json *v = r->root;
	struct place *p;

	while (v && *pointer == '/') {
		size_t n = strcspn(pointer + 1, "/");

		v = step(v, pointer + 1, n);
		pointer += n + 1;
		p = v ? schema_map_get(&c->places, &v, sizeof v) : NULL;
		if (p)
			r = p->resource;
	}
	if (!v || *pointer || !is_schema(v))
		return 0;
	*ret = schema_map_get(&c->places, &v, sizeof v);
	if (*ret)
		return 0;
	/* Inside a keyword that is not known: it becomes a schema by being referred to. */
	p = schema_map_get(&c->places, &r->root, sizeof r->root);
	return scan(c, (struct place){ .at = v, .resource = r, .up = p, .keyword = "..." }, ret);
}

int schema_resolve(struct compiler *c, const struct place *from, const struct json *ref, struct place **ret, const char **anchor)
{
	const char *fragment;
	struct resource *r = NULL;
	struct place *top;
	char *uri, *key, shown[200];
	int e;

	*anchor = NULL;
	*ret = NULL;
	if (!json_is(ref, JSON_STRING) || has_nul(ref))
		return schema_fail_at(c, from, "a reference must be a URI");
	uri = schema_uri_resolve(&c->tmp, from->resource->uri, ref->s, ref->n, &fragment);
	if (!uri)
		return schema_fail_memory(c);
	e = find_resource(c, uri, &r);
	if (e)
		return e;
	if (!r)
		return schema_fail_at(c, from, "'%s' is not known, and nothing is fetched: put the schema into the document, under \"$defs\"",
				      cs_escape_to(shown, sizeof shown, uri));
	/* A document with an "$id" is known by that and by where it was; its anchors are the former's. */
	top = schema_map_get(&c->places, &r->root, sizeof r->root);
	if (top)
		r = top->resource;
	if (!*fragment || *fragment == '/') {
		e = follow_pointer(c, r, fragment, ret);
	} else {
		size_t n = strlen(r->uri) + strlen(fragment) + 2;

		*anchor = fragment;
		key = cs_arena_get(&c->tmp, n, 1);
		if (!key)
			return schema_fail_memory(c);
		snprintf(key, n, "%s#%s", r->uri, fragment);
		*ret = schema_map_get(&c->anchors, key, n - 1);
	}
	if (e || *ret)
		return e;
	return schema_fail_at(c, from, "the reference '%s' leads to no schema", cs_escape_to(shown, sizeof shown, ref->s));
}
