/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/flat.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"

#include <string.h>

enum { DEPTH = 64, TEXT_MAX = 16 << 20, PATH_BYTES = 1 << 16 };

void flat_done(struct flat *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].path);
		free(f->v[i].text);
	}
	free(f->v);
	*f = (struct flat){ 0 };
}

/* Strings of JSON may hold NULs; nothing behind one may go unseen. */
static void escape_all(struct cs_buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i <= len; i += strlen(s + i) + 1) {
		if (i)
			cs_buf_str(out, "\\x00");
		cs_escape(out, s + i);
	}
}

static void add_line(struct flat *f, const char *path, const struct json *v)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(TEXT_MAX);

	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 64;
		struct flat_line *more = cs_calloc(cap, sizeof *more);

		if (f->n)
			memcpy(more, f->v, f->n * sizeof *more);
		free(f->v);
		f->v = more;
		f->cap = cap;
	}
	if (json_is(v, JSON_STRING)) {
		cs_buf_char(&text, '"');
		escape_all(&text, v->s, v->n);
		cs_buf_char(&text, '"');
	} else {
		json_write_canonical(&text, v); /* numbers, words, and what is empty */
	}
	f->v[f->n++] = (struct flat_line){ cs_strdup(path), cs_strdup(cs_buf_text(&text)) };
}

static void flatten(struct flat *f, const char *path, const struct json *v, unsigned depth)
{
	bool object = json_is(v, JSON_OBJECT);

	if ((!object && !json_is(v, JSON_ARRAY)) || !v->n || depth > DEPTH) {
		add_line(f, path, v);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		struct cs_buf at CS_BUF_AUTO = CS_BUF(PATH_BYTES);

		cs_buf_str(&at, path);
		if (!object) {
			cs_buf_fmt(&at, "[%zu]", i);
		} else {
			cs_buf_str(&at, *path ? "." : "");
			escape_all(&at, v->members[i].key, v->members[i].key_len);
		}
		flatten(f, cs_buf_text(&at), object ? &v->members[i].value : &v->items[i], depth + 1);
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct flat_line *)a)->path, ((const struct flat_line *)b)->path);
}

void flat_make(struct flat *ret, const struct json *v)
{
	if (!v)
		return;
	flatten(ret, "", v, 0);
	qsort(ret->v, ret->n, sizeof *ret->v, by_path);
}
