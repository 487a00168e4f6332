/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - bytes to pointers, by open addressing; keys come from outside, so the hash is seeded. */
#include "schema/internal.h"

#include "json/hash.h"

#include <string.h>

struct map_entry {
	const void *key;
	size_t len;
	void *value;
};

static struct map_entry *slot(const struct map *m, const void *key, size_t len)
{
	size_t at = json_hash_bytes(key, len, json_seed()) & (m->cap - 1);

	while (m->v[at].key && (m->v[at].len != len || memcmp(m->v[at].key, key, len)))
		at = (at + 1) & (m->cap - 1);
	return &m->v[at];
}

void *schema_map_get(const struct map *m, const void *key, size_t len)
{
	return m->cap ? slot(m, key, len)->value : NULL;
}

static bool grow(struct cs_arena *a, struct map *m)
{
	struct map bigger = { .cap = m->cap ? m->cap * 2 : 64, .n = m->n };

	bigger.v = cs_arena_get(a, bigger.cap, sizeof *bigger.v);
	if (!bigger.v)
		return false;
	for (size_t i = 0; i < m->cap; i++)
		if (m->v[i].key)
			*slot(&bigger, m->v[i].key, m->v[i].len) = m->v[i];
	*m = bigger;
	return true;
}

bool schema_map_put(struct cs_arena *a, struct map *m, const void *key, size_t len, void *value)
{
	struct map_entry *e;

	if (m->n * 2 >= m->cap && !grow(a, m))
		return false;
	e = slot(m, key, len);
	m->n += !e->key;
	*e = (struct map_entry){ key, len, value };
	return true;
}
