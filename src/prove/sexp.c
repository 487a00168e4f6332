/* SPDX-License-Identifier: Apache-2.0 */
#include "prove/sexp.h"

#include <string.h>

enum { DEPTH_MAX = 64, NODES_MAX = 400000 };

struct reader {
	struct cs_arena *arena;
	const char *at, *end;
	unsigned nodes;
};

static void skip_space(struct reader *r)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
		r->at++;
}

static bool read_string(struct reader *r, struct sexp *s)
{
	const char *from = ++r->at;
	char *to;
	size_t n = 0;

	while (r->at < r->end && (*r->at != '"' || (r->at + 1 < r->end && r->at[1] == '"')))
		r->at += *r->at == '"' ? 2 : 1;
	if (r->at >= r->end)
		return false;
	to = cs_arena_dup(r->arena, from, (size_t)(r->at - from));
	if (!to)
		return false;
	for (const char *c = from; c < r->at; c++) {
		to[n++] = *c;
		c += *c == '"';
	}
	to[n] = 0;
	r->at++;
	s->kind = SEXP_STRING;
	s->text = to;
	return true;
}

static bool read_word(struct reader *r, struct sexp *s)
{
	const char *from = r->at;

	if (*r->at == '|') {
		do
			r->at++;
		while (r->at < r->end && *r->at != '|');
		if (r->at >= r->end)
			return false;
		r->at++;
	} else {
		while (r->at < r->end && *r->at && !strchr(" \t\r\n()\"", *r->at))
			r->at++;
	}
	if (r->at == from)
		return false;
	s->kind = SEXP_WORD;
	s->text = cs_arena_dup(r->arena, from, (size_t)(r->at - from));
	return s->text != NULL;
}

static bool read_all(struct reader *r, unsigned depth, const struct sexp **ret);

static bool read_one(struct reader *r, unsigned depth, struct sexp *s)
{
	if (++r->nodes > NODES_MAX || depth > DEPTH_MAX)
		return false;
	if (*r->at == '"')
		return read_string(r, s);
	if (*r->at != '(')
		return read_word(r, s);
	r->at++;
	s->kind = SEXP_LIST;
	if (!read_all(r, depth + 1, &s->kids) || r->at >= r->end || *r->at != ')')
		return false;
	r->at++;
	return true;
}

/* Up to the end, or the bracket that closes the list we are in. */
static bool read_all(struct reader *r, unsigned depth, const struct sexp **ret)
{
	const struct sexp **tail = ret;

	*ret = NULL;
	for (;;) {
		struct sexp *s;

		skip_space(r);
		if (r->at >= r->end || *r->at == ')')
			return true;
		s = cs_arena_new(r->arena, struct sexp);
		if (!s || !read_one(r, depth, s))
			return false;
		*tail = s;
		tail = &s->next;
	}
}

int sexp_read(struct cs_arena *a, const char *text, size_t len, const struct sexp **ret)
{
	struct reader r = { .arena = a, .at = text, .end = text + len };

	return read_all(&r, 0, ret) && r.at == r.end ? 0 : -1;
}

const struct sexp *sexp_at(const struct sexp *list, size_t index)
{
	const struct sexp *s = list && list->kind == SEXP_LIST ? list->kids : NULL;

	while (s && index--)
		s = s->next;
	return s;
}

bool sexp_is(const struct sexp *s, const char *word)
{
	return s && s->kind == SEXP_WORD && !strcmp(s->text, word);
}
