/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK ((size_t)16 << 10)
#define ALIGN 16

struct cs_arena_chunk {
	struct cs_arena_chunk *next;
	size_t used, size;
	_Alignas(ALIGN) unsigned char data[];
};

static struct cs_arena_chunk *chunk_for(struct cs_arena *a, size_t need)
{
	struct cs_arena_chunk *c = a->chunks;
	size_t size;

	if (c && c->size - c->used >= need)
		return c;
	/* Doubling: a tree of n bytes costs log n trips to malloc. */
	size = c ? c->size * 2 : CHUNK;
	if (size > ((size_t)1 << 20))
		size = (size_t)1 << 20;
	if (size < need)
		size = need;
	c = malloc(sizeof *c + size);
	if (!c)
		return NULL;
	c->next = a->chunks;
	c->used = 0;
	c->size = size;
	a->chunks = c;
	return c;
}

void *cs_arena_get(struct cs_arena *a, size_t n, size_t size)
{
	struct cs_arena_chunk *c;
	size_t need;
	void *p;

	if (a->over || __builtin_mul_overflow(n, size, &need) || need > a->max || a->max - need < a->used) {
		a->over = true;
		return NULL;
	}
	need = (need + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (need == 0)
		need = ALIGN;
	c = chunk_for(a, need);
	if (!c) {
		a->over = true;
		return NULL;
	}
	p = c->data + c->used;
	c->used += need;
	a->used += need;
	memset(p, 0, need);
	return p;
}

char *cs_arena_dup(struct cs_arena *a, const char *s, size_t len)
{
	char *p = cs_arena_get(a, len + 1, 1);

	if (p && len)
		memcpy(p, s, len);
	return p;
}

void cs_arena_reset(struct cs_arena *a)
{
	struct cs_arena_chunk *c = a->chunks;

	while (c && c->next) {
		struct cs_arena_chunk *next = c->next;

		free(c);
		c = next;
	}
	if (c)
		c->used = 0;
	a->chunks = c;
	a->used = 0;
	a->over = false;
}

void cs_arena_done(struct cs_arena *a)
{
	cs_arena_reset(a);
	free(a->chunks);
	a->chunks = NULL;
}
