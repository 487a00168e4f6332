/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_table.c - memory that is counted, values kept once, tables of tuples.
 *
 * A value is kept once however many formulas speak of it; their tables have its
 * number.  So a call hashes each of its arguments once, and a thousand tables
 * compare integers.  Nothing depends on the order in a hash table.
 */
#include "rules/monitor_internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *rl_resize(struct rl_mem *mem, void *p, size_t old, size_t size)
{
	void *new;

	if (size > old && (mem->used > mem->max || size - old > mem->max - mem->used))
		return NULL;
	new = p ? realloc(p, size ? size : 1) : malloc(size ? size : 1);
	if (!new)
		return NULL;
	mem->used += size - old;
	return new;
}

void rl_release(struct rl_mem *mem, void *p, size_t size)
{
	if (!p)
		return;
	free(p);
	mem->used -= size;
}

/* ---- copies of values ---- */

/* Structures first, texts behind them: nothing needs padding. */
static void measure(const struct json *v, size_t *structs, size_t *texts)
{
	switch (v->type) {
	case JSON_NUMBER:
		*texts += v->whole ? 0 : v->n + 1;
		break;
	case JSON_STRING:
		*texts += v->n + 1;
		break;
	case JSON_ARRAY:
		*structs += (size_t)v->n * sizeof(struct json);
		for (uint32_t i = 0; i < v->n; i++)
			measure(&v->items[i], structs, texts);
		break;
	case JSON_OBJECT:
		*structs += (size_t)v->n * sizeof(struct json_member);
		for (uint32_t i = 0; i < v->n; i++) {
			*texts += v->members[i].key_len + 1;
			measure(&v->members[i].value, structs, texts);
		}
		break;
	default:
		break;
	}
}

struct place {
	char *structs, *texts;
};

static const char *put_text(struct place *p, const char *s, uint32_t len)
{
	char *to = p->texts;

	memcpy(to, s, len);
	to[len] = '\0';
	p->texts += len + 1;
	return to;
}

static void put(struct place *p, struct json *to, const struct json *v)
{
	*to = *v;
	if (v->type == JSON_STRING || (v->type == JSON_NUMBER && !v->whole)) {
		to->s = put_text(p, v->s, v->n);
	} else if (v->type == JSON_ARRAY) {
		struct json *items = (struct json *)(void *)p->structs;

		p->structs += (size_t)v->n * sizeof *items;
		to->items = items;
		for (uint32_t i = 0; i < v->n; i++)
			put(p, &items[i], &v->items[i]);
	} else if (v->type == JSON_OBJECT) {
		struct json_member *members = (struct json_member *)(void *)p->structs;

		p->structs += (size_t)v->n * sizeof *members;
		to->members = members;
		for (uint32_t i = 0; i < v->n; i++) {
			members[i].key = put_text(p, v->members[i].key, v->members[i].key_len);
			members[i].key_len = v->members[i].key_len;
			put(p, &members[i].value, &v->members[i].value);
		}
	}
}

struct json *rl_pack(struct rl_mem *mem, const struct json *v, size_t max, size_t *ret_size)
{
	size_t structs = sizeof *v, texts = 0;
	struct place p;
	char *block;

	measure(v, &structs, &texts);
	if (structs + texts > max)
		return NULL;
	block = rl_resize(mem, NULL, 0, structs + texts);
	if (!block)
		return NULL;
	p.structs = block + sizeof *v;
	p.texts = block + structs;
	put(&p, (struct json *)(void *)block, v);
	*ret_size = structs + texts;
	return (struct json *)(void *)block;
}

/* ---- chained hashing, for both kinds of table ---- */

/* Grows `*p` from `old` to `n` elements of `size` bytes. */
static bool grow(struct rl_mem *mem, void *p, uint32_t old, uint32_t n, size_t size)
{
	void *new, *was;

	memcpy(&was, p, sizeof was);
	if (!size)
		return true;
	new = rl_resize(mem, was, old * size, n * size);
	if (!new)
		return false;
	memcpy(p, &new, sizeof new);
	return true;
}

static bool grow_heads(struct rl_mem *mem, uint32_t **heads, uint32_t *n)
{
	uint32_t more = *n ? *n * 2 : 8;

	if (!grow(mem, heads, *n, more, sizeof **heads))
		return false;
	memset(*heads, 0xff, more * sizeof **heads);
	*n = more;
	return true;
}

/* ---- values ---- */

static void values_link(struct rl_values *s, uint32_t id)
{
	uint32_t *head = &s->heads[s->items[id].hash & (s->n_heads - 1)];

	s->items[id].next = *head;
	*head = id;
}

static uint32_t values_seek(const struct rl_values *s, const struct json *v, uint64_t hash)
{
	uint32_t id;

	if (!s->n_heads)
		return RL_NONE;
	for (id = s->heads[hash & (s->n_heads - 1)]; id != RL_NONE; id = s->items[id].next)
		if (s->items[id].hash == hash && json_equal(s->items[id].v, v))
			break;
	return id;
}

uint32_t rl_values_find(const struct rl_values *s, const struct json *v)
{
	return values_seek(s, v, json_hash(v, s->seed));
}

static uint32_t values_place(struct rl_values *s, struct rl_mem *mem)
{
	uint32_t id = s->free, cap = s->cap ? s->cap * 2 : 8;

	if (s->live >= s->n_heads) {
		if (!grow_heads(mem, &s->heads, &s->n_heads))
			return RL_NONE;
		for (uint32_t i = 0; i < s->used; i++)
			if (s->items[i].refs)
				values_link(s, i);
	}
	if (id != RL_NONE) {
		s->free = s->items[id].next;
		return id;
	}
	if (s->used == s->cap) {
		if (!grow(mem, &s->items, s->cap, cap, sizeof *s->items))
			return RL_NONE;
		s->cap = cap;
	}
	s->items[s->used] = (struct rl_value){ 0 };
	return s->used++;
}

uint32_t rl_values_take(struct rl_values *s, struct rl_mem *mem, const struct json *v)
{
	uint64_t hash = json_hash(v, s->seed);
	uint32_t id = values_seek(s, v, hash);
	struct json *copy;
	size_t size;

	if (id != RL_NONE) {
		s->items[id].refs++;
		return id;
	}
	copy = rl_pack(mem, v, s->value_max, &size);
	if (!copy)
		return RL_NONE;
	id = values_place(s, mem);
	if (id == RL_NONE) {
		rl_release(mem, copy, size);
		return RL_NONE;
	}
	s->items[id] = (struct rl_value){ .v = copy, .hash = hash, .size = size, .refs = 1 };
	s->live++;
	values_link(s, id);
	return id;
}

void rl_values_drop(struct rl_values *s, struct rl_mem *mem, uint32_t id)
{
	struct rl_value *v = &s->items[id];
	uint32_t *p;

	if (--v->refs)
		return;
	for (p = &s->heads[v->hash & (s->n_heads - 1)]; *p != id; p = &s->items[*p].next)
		;
	*p = v->next;
	rl_release(mem, v->v, v->size);
	*v = (struct rl_value){ .next = s->free };
	s->free = id;
	s->live--;
}

/* ---- tuples ---- */

void rl_table_init(struct rl_table *t, uint32_t width, uint32_t stride, uint32_t max, uint64_t seed)
{
	uint32_t align = _Alignof(max_align_t), at = (uint32_t)(sizeof(struct rl_row) + width * sizeof(uint32_t));

	/* States of up to 8 bytes' alignment need no more. */
	if (stride % align)
		align = 8;
	at = (at + align - 1) & ~(align - 1);
	*t = (struct rl_table){ .width = width, .stride = stride, .state_at = at, .row_size = (at + stride + align - 1) & ~(align - 1), .max = max,
				.free = RL_NONE, .seed = seed };
}

static uint64_t tuple_hash(const struct rl_table *t, const uint32_t *ids)
{
	uint64_t h = t->seed;

	for (uint32_t i = 0; i < t->width; i++) {
		h = (h ^ ids[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	return h;
}

uint32_t rl_table_find(const struct rl_table *t, const uint32_t *ids)
{
	uint32_t i;

	if (!t->live)
		return RL_NONE;
	for (i = t->heads[tuple_hash(t, ids) & (t->n_heads - 1)]; i != RL_NONE; i = rl_table_row(t, i)->next) {
		const uint32_t *key = rl_table_key(t, i);
		uint32_t k = 0;

		while (k < t->width && key[k] == ids[k])
			k++;
		if (k == t->width)
			break;
	}
	return i;
}

static void table_link(struct rl_table *t, uint32_t i)
{
	uint32_t *head = &t->heads[tuple_hash(t, rl_table_key(t, i)) & (t->n_heads - 1)];

	rl_table_row(t, i)->next = *head;
	*head = i;
}

/* A free row's number. Fails before anything has changed. */
static uint32_t table_place(struct rl_table *t, struct rl_mem *mem)
{
	uint32_t i = t->free, cap = t->cap ? t->cap * 2 : t->width ? 8 : 1;

	if (t->live >= t->max)
		return RL_NONE;
	/* Half full at most: a wrong row is a wait for memory. */
	if (t->live * 2 >= t->n_heads) {
		if (!grow_heads(mem, &t->heads, &t->n_heads))
			return RL_NONE;
		for (uint32_t k = 0; k < t->used; k++)
			if (rl_table_row(t, k)->serial)
				table_link(t, k);
	}
	if (i != RL_NONE) {
		t->free = rl_table_row(t, i)->next;
		return i;
	}
	if (t->used == t->cap) {
		if (!grow(mem, &t->rows, t->cap, cap, t->row_size))
			return RL_NONE;
		t->cap = cap;
	}
	return t->used++;
}

uint32_t rl_table_add(struct rl_table *t, struct rl_mem *mem, const uint32_t *ids)
{
	uint32_t i = table_place(t, mem);
	struct rl_row *row;

	if (i == RL_NONE) {
		t->full = true;
		return i;
	}
	row = rl_table_row(t, i);
	memset(row, 0, t->row_size);
	if (t->width)
		memcpy(row->key, ids, t->width * sizeof *ids);
	row->serial = ++t->arrivals;
	t->live++;
	table_link(t, i);
	return i;
}

void rl_table_remove(struct rl_table *t, uint32_t i)
{
	uint32_t *p = &t->heads[tuple_hash(t, rl_table_key(t, i)) & (t->n_heads - 1)];
	struct rl_row *row = rl_table_row(t, i);

	while (*p != i)
		p = &rl_table_row(t, *p)->next;
	*p = row->next;
	row->next = t->free;
	row->serial = 0;
	t->free = i;
	t->live--;
}

void rl_table_done(struct rl_table *t, struct rl_mem *mem)
{
	rl_release(mem, t->heads, t->n_heads * sizeof *t->heads);
	rl_release(mem, t->rows, (size_t)t->cap * t->row_size);
	rl_table_init(t, t->width, t->stride, t->max, t->seed);
}

static bool dup(struct rl_mem *mem, void *to, const void *from, size_t size)
{
	void *p = NULL;

	if (from && size) {
		p = rl_resize(mem, NULL, 0, size);
		if (!p)
			return false;
		memcpy(p, from, size);
	}
	memcpy(to, &p, sizeof p);
	return true;
}

bool rl_table_copy(struct rl_table *to, const struct rl_table *from, struct rl_mem *mem)
{
	*to = *from;
	to->heads = NULL;
	to->rows = NULL;
	return dup(mem, &to->heads, from->heads, from->n_heads * sizeof *to->heads) &&
	       dup(mem, &to->rows, from->rows, (size_t)from->cap * from->row_size);
}
