/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - what is known while a script is walked. */
#include "shell/walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory: all of a walk's goes at once ---- */

struct block {
	struct block *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

struct memory {
	struct block *blocks;
	size_t taken;
};

struct memory *memory_new(void)
{
	return cs_new(struct memory);
}

void memory_free(struct memory *m)
{
	while (m->blocks) {
		struct block *b = m->blocks;

		m->blocks = b->next;
		free(b);
	}
	free(m);
}

size_t memory_taken(const struct memory *m)
{
	return m->taken;
}

void *keep_bytes(struct memory *m, size_t n)
{
	enum { BLOCK = 16384 };
	struct block *b = m->blocks;
	size_t size = (n + 15) & ~(size_t)15;
	void *p;

	if (!b || b->size - b->used < size) {
		size_t room = size > BLOCK ? size : BLOCK;

		b = cs_calloc(1, sizeof *b + room);
		b->size = room;
		b->next = m->blocks;
		m->blocks = b;
	}
	p = b->bytes + b->used;
	b->used += size;
	m->taken += size;
	return p;
}

char *keep_text(struct memory *m, const char *s, size_t n)
{
	char *p = keep_bytes(m, n + 1);

	if (n)
		memcpy(p, s, n);
	p[n] = 0;
	return p;
}

char *keep_printf(struct memory *m, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf((char[1]){ 0 }, 0, fmt, ap);
	va_end(ap);
	p = keep_bytes(m, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

/* ---- work ---- */

bool spent(struct walk *w)
{
	if (!w->spent && w->work + memory_taken(w->mem) / WORK_BYTES > SHW_WORK) {
		w->spent = true;
		uncertain(w, NULL, "too much to look at: the rest is not");
	}
	return w->spent;
}

void work(struct walk *w, size_t units)
{
	w->work += units < SHW_WORK ? units : SHW_WORK;
	(void)spent(w);
}

/* FNV-1a: for finding, not for keeping anything apart that matters; texts are compared afterwards. */
uint32_t hash_text(uint32_t seed, const char *s)
{
	uint32_t h = seed ^ 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

struct value value_of(struct walk *w, const char *text, size_t len)
{
	if (len > SHW_VALUE_MAX || memchr(text, 0, len))
		return value_unknown();
	return (struct value){ .known = true, .text = keep_text(w->mem, text, len), .len = len };
}

struct value value_join(struct walk *w, const struct value *a, const struct value *b)
{
	char *text;

	if (a->len + b->len > SHW_VALUE_MAX)
		return value_unknown();
	text = keep_bytes(w->mem, a->len + b->len + 1);
	memcpy(text, a->text, a->len);
	memcpy(text + a->len, b->text, b->len);
	text[a->len + b->len] = 0;
	return (struct value){ .known = true, .text = text, .len = a->len + b->len };
}

/* ---- variables ---- */

static struct var *find_var(const struct state *s, const char *name, uint32_t hash)
{
	for (struct var *v = s->vars; v; v = v->next)
		if (v->hash == hash && !strcmp(v->name, name))
			return v;
	return NULL;
}

struct var *var_find(const struct state *s, const char *name)
{
	return s->vars ? find_var(s, name, hash_text(0, name)) : NULL;
}

struct var *var_make(struct walk *w, struct state *s, const char *name)
{
	struct var *v = var_find(s, name);

	if (v)
		return v;
	v = keep_bytes(w->mem, sizeof *v);
	if (++w->n_vars > SHW_NAMES) { /* it is not known */
		uncertain(w, NULL, "more than %d variables", SHW_NAMES);
		*v = (struct var){ .name = keep_text(w->mem, name, strlen(name)), .hash = hash_text(0, name) };
		return v;
	}
	*v = (struct var){ .next = s->vars, .name = keep_text(w->mem, name, strlen(name)), .hash = hash_text(0, name) };
	s->vars = v;
	return v;
}

void var_set(struct walk *w, struct state *s, const char *name, struct value value)
{
	struct var *v = var_make(w, s, name);

	v->set = true;
	v->array = false;
	v->value = value;
	v->items = NULL;
	v->n_items = 0;
}

void var_forget(struct walk *w, struct state *s, const char *name)
{
	var_set(w, s, name, value_unknown());
}

/* ---- files that the script has written ---- */

struct file *file_find(const struct state *s, const char *path)
{
	uint32_t hash = s->files ? hash_text(0, path) : 0;

	for (struct file *f = s->files; f; f = f->next)
		if (f->hash == hash && !strcmp(f->path, path))
			return f;
	return NULL;
}

void file_set(struct walk *w, struct state *s, const char *path, struct value content, const char *program)
{
	struct file *f = keep_bytes(w->mem, sizeof *f);

	/* Beyond that nothing more is known of any: what was noted may have been written over. */
	if (++w->n_files > SHW_NAMES) {
		uncertain(w, NULL, "more than %d times a file is written", SHW_NAMES);
		s->files = NULL;
		return;
	}
	*f = (struct file){ .next = s->files, .path = path, .hash = hash_text(0, path), .content = content, .program = program };
	s->files = f;
}

/* ---- branches ---- */

struct state state_copy(struct walk *w, const struct state *s)
{
	struct state c = *s;
	struct var **at = &c.vars;

	/* Variables change in place; files and functions are only added in front. */
	for (const struct var *v = s->vars; v; v = v->next) {
		struct var *n = keep_bytes(w->mem, sizeof *n);

		*n = *v;
		*at = n;
		at = &n->next;
	}
	*at = NULL;
	return c;
}

static bool same_value(const struct value *a, const struct value *b)
{
	return a->known && b->known && a->len == b->len && !memcmp(a->text, b->text, a->len);
}

void state_join(struct walk *w, struct state *into, const struct state *other)
{
	for (struct var *v = into->vars; v && !spent(w); v = v->next) {
		const struct var *o = find_var(other, v->name, v->hash);

		work(w, 1);
		if (!o || o->array || v->array || !same_value(&v->value, &o->value))
			v->value = value_unknown(), v->items = NULL, v->n_items = 0, v->array = false;
	}
	for (const struct var *o = other->vars; o; o = o->next)
		if (!find_var(into, o->name, o->hash))
			var_forget(w, into, o->name);
	if (into->cwd && (!other->cwd || strcmp(into->cwd, other->cwd)))
		into->cwd = NULL;
	if (!into->also)
		into->also = other->also;
	into->exported_functions |= other->exported_functions;
	into->path_changed |= other->path_changed;
	into->shadowed |= other->shadowed || into->functions != other->functions;
	if (into->functions != other->functions && other->functions)
		into->functions = other->functions; /* the later view; names are doubted anyway */
	if (!into->umbrella)
		into->umbrella = other->umbrella;
	into->positional_known &= other->positional_known;
	/* What a branch wrote may be there. */
	if (other->files && into->files != other->files)
		into->files = other->files;
}
