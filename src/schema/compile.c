/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - a document becomes nodes that need it no more. */
#include "schema/internal.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEMA_MEMORY = 64 << 20, REGISTRY_MEMORY = 64 << 20 };

struct schema_registry *schema_registry_new(void)
{
	struct schema_registry *r = cs_new(struct schema_registry);

	r->arena.max = REGISTRY_MEMORY;
	return r;
}

int schema_registry_add(struct schema_registry *reg, const char *uri, const struct json *doc, struct cs_err *err)
{
	struct registry_entry *e = cs_arena_new(&reg->arena, struct registry_entry);

	if (e) {
		e->uri = cs_arena_dup(&reg->arena, uri, strlen(uri));
		e->doc = json_copy(&reg->arena, doc);
	}
	if (!e || !e->uri || !e->doc)
		return cs_fail(err, CS_E_LIMIT, 0, "the documents that schemas may refer to need more memory than is allowed");
	e->next = reg->entries;
	reg->entries = e;
	return 0;
}

void schema_registry_free(struct schema_registry *reg)
{
	if (!reg)
		return;
	cs_arena_done(&reg->arena);
	free(reg);
}

const struct node *schema_node_of(struct compiler *c, struct place *p)
{
	struct node *n;

	if (p->node)
		return p->node;
	n = cs_arena_new(&c->schema->arena, struct node);
	if (!n)
		return NULL;
	n->resource = p->resource;
	n->path = schema_place_path(&c->schema->arena, p);
	if (!n->path)
		return NULL;
	p->resource->used = true;
	p->node = n;
	*c->waiting_end = p;
	c->waiting_end = &p->next;
	return n;
}

static int compile_waiting(struct compiler *c)
{
	while (c->waiting) {
		struct place *p = c->waiting;
		int e = schema_compile_place(c, p);

		if (e)
			return e;
		c->waiting = p->next;
		if (!c->waiting)
			c->waiting_end = &c->waiting;
	}
	return 0;
}

/* Whatever a "$dynamicRef" may find in a resource that a check can be in. */
static int compile_dynamics(struct compiler *c)
{
	bool again = true;

	while (again) {
		again = false;
		for (struct resource *r = c->list; r; r = r->next)
			for (struct dynamic *d = r->used ? r->dynamics : NULL; d; d = d->next) {
				struct place *p = schema_map_get(&c->places, &d->at, sizeof d->at);
				int e;

				if (d->node || !p)
					continue;
				d->node = schema_node_of(c, p);
				if (!d->node)
					return schema_fail_memory(c);
				again = true;
				e = compile_waiting(c);
				if (e)
					return e;
			}
	}
	return 0;
}

/* What points into the documents must not be used again. */
static void forget(struct compiler *c)
{
	for (struct resource *r = c->list; r; r = r->next) {
		r->root = NULL;
		for (struct dynamic *d = r->dynamics; d; d = d->next)
			d->at = NULL;
	}
}

static int compile(struct compiler *c, const struct json *doc)
{
	struct place *root;
	int e = schema_scan_document(c, doc, "", &root);

	if (e)
		return e;
	c->schema->root = schema_node_of(c, root);
	if (!c->schema->root)
		return schema_fail_memory(c);
	e = compile_waiting(c);
	if (!e)
		e = compile_dynamics(c);
	forget(c);
	return e;
}

int schema_compile(const struct json *doc, const struct schema_options *options, struct schema **ret, struct cs_err *err)
{
	static const struct schema_options none;
	struct compiler c = { .tmp = CS_ARENA(SCHEMA_MEMORY), .options = options ? options : &none, .err = err };
	int e;

	c.schema = cs_new(struct schema);
	c.schema->arena.max = SCHEMA_MEMORY;
	c.waiting_end = &c.waiting;
	e = compile(&c, doc);
	cs_arena_done(&c.tmp);
	if (e) {
		schema_free(c.schema);
		return e;
	}
	*ret = c.schema;
	return 0;
}

void schema_free(struct schema *s)
{
	if (!s)
		return;
	schema_patterns_free(s->patterns);
	schema_matcher_free(s->matcher);
	cs_arena_done(&s->arena);
	free(s);
}
