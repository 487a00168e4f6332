/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - memory that lives as long as a script. */
#include "shell/internal.h"

#include <stdlib.h>

enum { FIRST = 4096 - 64, LAST = 1 << 20, ALIGN = 8 };

struct block {
	struct block *next;
	size_t used, size;
	_Alignas(16) char data[];
};

struct sh_arena {
	struct block *blocks;
	size_t next_size;
};

struct sh_arena *sh_arena_new(void)
{
	struct sh_arena *a = calloc(1, sizeof *a);

	if (a)
		a->next_size = FIRST;
	return a;
}

static struct block *grow(struct sh_arena *a, size_t size)
{
	size_t room = size > a->next_size ? size : a->next_size;
	struct block *b = calloc(1, sizeof *b + room);

	if (!b)
		return NULL;
	b->size = room;
	b->next = a->blocks;
	a->blocks = b;
	if (a->next_size < LAST)
		a->next_size *= 2;
	return b;
}

void *sh_arena_take(struct sh_arena *a, size_t size)
{
	struct block *b = a->blocks;
	void *p;

	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!b || b->size - b->used < size)
		b = grow(a, size);
	if (!b)
		return NULL;
	p = b->data + b->used;
	b->used += size;
	return p;
}

void sh_arena_free(struct sh_arena *a)
{
	if (!a)
		return;
	for (struct block *b = a->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}
