/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/manifest.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEXT_MAX = 4 << 20,
	ARENA_MAX = 128 << 20,
	TOOLS_MAX = 1024, /* names are compared in pairs */
	NAME_MAX_BYTES = 128,
};

/* Where a tool stands: told in every error. */
struct place {
	const char *origin;
	size_t index;
};

static int wrong(const struct place *p, struct cs_err *err, const char *what)
{
	char shown[160];

	return cs_fail(err, CS_E_INVALID, 0, "%s: tools[%zu]: %s", cs_escape_to(shown, sizeof shown, p->origin), p->index, what);
}

static int too_large(const char *origin, struct cs_err *err)
{
	char shown[160];

	return cs_fail(err, CS_E_LIMIT, 0, "%s: too large: at most %d bytes, %d tools", cs_escape_to(shown, sizeof shown, origin), TEXT_MAX, TOOLS_MAX);
}

/* ---- one tool ---- */

static const struct json *first_of(const struct json *v, const char *const *keys)
{
	for (; *keys; keys++)
		if (json_get(v, *keys))
			return json_get(v, *keys);
	return NULL;
}

/* NULL and absent are the same. */
static int take_object(const struct json *v, const struct json **ret)
{
	if (!v || json_is(v, JSON_NULL))
		return 0;
	*ret = v;
	return json_is(v, JSON_OBJECT) ? 0 : -1;
}

static int take_text(const struct json *v, const char **ret)
{
	if (!v || json_is(v, JSON_NULL))
		return 0;
	*ret = json_str(v);
	return *ret ? 0 : -1;
}

static int take_fields(const struct json *v, struct manifest_tool *t, const struct place *p, struct cs_err *err)
{
	static const char *const input[] = { "inputSchema", "input_schema", "parameters", NULL };
	static const char *const output[] = { "outputSchema", "output_schema", NULL };

	if (take_text(json_get(v, "name"), &t->name) < 0 || !t->name || !*t->name)
		return wrong(p, err, "no name: each tool needs one, a string without NUL");
	if (strlen(t->name) > NAME_MAX_BYTES)
		return wrong(p, err, "the name is longer than 128 bytes");
	if (take_text(json_get(v, "description"), &t->description) < 0)
		return wrong(p, err, "description is not a string without NUL");
	if (take_text(json_get(v, "title"), &t->title) < 0)
		return wrong(p, err, "title is not a string without NUL");
	if (take_object(first_of(v, input), &t->input) < 0)
		return wrong(p, err, "the schema of its input is not an object");
	if (take_object(first_of(v, output), &t->output) < 0)
		return wrong(p, err, "outputSchema is not an object");
	if (take_object(json_get(v, "annotations"), &t->annotations) < 0)
		return wrong(p, err, "annotations is not an object");
	return 0;
}

static void add_member(struct json_member *m, uint32_t *n, const char *key, const struct json *v)
{
	if (!v)
		return;
	m[*n] = (struct json_member){ .key = key, .key_len = (uint32_t)strlen(key), .value = *v };
	++*n;
}

/* What is hashed: under MCP's names, whichever were used.  The title is in it too: clients show it. */
static int make_whole(struct cs_arena *a, struct manifest_tool *t)
{
	struct json_member *m = cs_arena_get(a, 6, sizeof *m);
	struct json *whole = cs_arena_new(a, struct json);
	struct cs_buf text CS_BUF_AUTO = CS_BUF(TEXT_MAX * 2);
	const struct json *name = json_new_str(a, t->name, strlen(t->name));
	const struct json *description = t->description ? json_new_str(a, t->description, strlen(t->description)) : NULL;
	const struct json *title = t->title ? json_new_str(a, t->title, strlen(t->title)) : NULL;
	uint8_t hash[CS_SHA256_SIZE];

	if (!m || !whole || !name || a->over)
		return -1;
	whole->type = JSON_OBJECT;
	whole->members = m;
	add_member(m, &whole->n, "name", name);
	add_member(m, &whole->n, "title", title);
	add_member(m, &whole->n, "description", description);
	add_member(m, &whole->n, "inputSchema", t->input);
	add_member(m, &whole->n, "outputSchema", t->output);
	add_member(m, &whole->n, "annotations", t->annotations);
	json_write_canonical(&text, whole);
	if (text.over)
		return -1;
	cs_sha256(cs_buf_text(&text), text.len, hash);
	cs_sha256_hex(hash, t->hash);
	t->whole = whole;
	return 0;
}

static int read_tool(struct manifest *m, const struct json *v, const char *server, size_t i, struct cs_err *err)
{
	struct place p = { m->origin, i };
	struct manifest_tool *t = &m->tools[i];
	int r;

	if (json_is(json_get(v, "function"), JSON_OBJECT))
		v = json_get(v, "function");
	if (!json_is(v, JSON_OBJECT))
		return wrong(&p, err, "not an object");
	r = take_fields(v, t, &p, err);
	if (r < 0)
		return r;
	t->server = server;
	return make_whole(&m->arena, t) < 0 ? too_large(m->origin, err) : 0;
}

/* ---- the whole ---- */

static const struct json *list_of(const struct json *root)
{
	if (json_is(root, JSON_ARRAY))
		return root;
	if (json_get(root, "result")) /* the answer as it went over the wire */
		root = json_get(root, "result");
	return json_is(json_get(root, "tools"), JSON_ARRAY) ? json_get(root, "tools") : NULL;
}

static int read_tools(struct manifest *m, const struct json *root, struct cs_err *err)
{
	const struct json *list = list_of(root);
	const char *server = json_str(json_get(root, "server"));
	char shown[160];
	int r = 0;

	if (!list)
		return cs_fail(err, CS_E_INVALID, 0, "%s: no tools: an array of tools is wanted, or {\"tools\": [...]} as tools/list answers",
			       cs_escape_to(shown, sizeof shown, m->origin));
	m->tools = list->n <= TOOLS_MAX ? cs_arena_get(&m->arena, list->n + 1, sizeof *m->tools) : NULL;
	if (!m->tools)
		return too_large(m->origin, err);
	for (m->n = 0; r >= 0 && m->n < list->n; m->n++)
		r = read_tool(m, json_at(list, m->n), server, m->n, err);
	return r;
}

int manifest_read(const char *origin, const char *text, size_t len, struct manifest **ret, struct cs_err *err)
{
	struct manifest *m = cs_new(struct manifest);
	const struct json *root = NULL;
	char shown[160];
	int r;

	m->arena.max = ARENA_MAX;
	m->origin = cs_arena_dup(&m->arena, origin, strlen(origin));
	r = len > TEXT_MAX ? too_large(origin, err) : json_read(&m->arena, text, len, NULL, &root, err);
	if (r < 0 && len <= TEXT_MAX)
		r = cs_wrap(err, r, "%s", cs_escape_to(shown, sizeof shown, origin));
	if (r >= 0)
		r = read_tools(m, root, err);
	if (r < 0)
		return manifest_free(m), r;
	*ret = m;
	return 0;
}

void manifest_free(struct manifest *m)
{
	if (!m)
		return;
	cs_arena_done(&m->arena);
	free(m);
}

struct manifest_tool *manifest_find(const struct manifest *m, const char *name)
{
	for (size_t i = 0; m && i < m->n; i++)
		if (!strcmp(m->tools[i].name, name))
			return &m->tools[i];
	return NULL;
}

void manifest_quarantine(struct manifest_tool *t, bool refused, const char *fmt, ...)
{
	va_list ap;

	if (t->quarantine[0] && (t->refused || !refused))
		return;
	t->refused = refused;
	va_start(ap, fmt);
	(void)vsnprintf(t->quarantine, sizeof t->quarantine, fmt, ap); /* cut is well */
	va_end(ap);
}
