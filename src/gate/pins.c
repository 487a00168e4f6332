/* SPDX-License-Identifier: Apache-2.0 */
/* pins.c - the tools that were approved, in a file that people keep under version control.
 *
 *   {"version":1,"tools":{NAME:{"hash":HEX,"tool":{...},"approved":{"by":WHO,"at":WHEN}}}}
 *
 * Names in order and one indentation, so that a change of it reads well.  A hash that is not
 * that of the tool beside it is an error: someone has edited one of the two by hand. */
#include "gate/flat.h"
#include "gate/manifest.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX = 16 << 20, ARENA_MAX = 256 << 20 };

struct pin {
	const char *name, *by, *at;
	char hash[65];
	const struct json *tool;
};

struct pins {
	struct cs_arena arena;
	struct pin *v; /* sorted by name */
	size_t n, cap;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pin *)a)->name, ((const struct pin *)b)->name);
}

static struct pin *find(const struct pins *p, const char *name)
{
	struct pin key = { .name = name };

	return p && p->n ? bsearch(&key, p->v, p->n, sizeof key, by_name) : NULL;
}

static struct pin *add(struct pins *p)
{
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 32;
		struct pin *v = cs_calloc(cap, sizeof *v);

		if (p->n)
			memcpy(v, p->v, p->n * sizeof *v);
		free(p->v);
		p->v = v;
		p->cap = cap;
	}
	return &p->v[p->n++];
}

static bool hash_of(const struct json *tool, char ret[65])
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(FILE_MAX);
	uint8_t hash[CS_SHA256_SIZE];

	json_write_canonical(&text, tool);
	cs_sha256(cs_buf_text(&text), text.len, hash);
	cs_sha256_hex(hash, ret);
	return !text.over;
}

/* ---- reading ---- */

static int read_pin(struct pins *p, const struct json_member *m, struct cs_err *err)
{
	const struct json *tool = json_get(&m->value, "tool"), *approved = json_get(&m->value, "approved");
	const char *hash = json_str(json_get(&m->value, "hash"));
	char shown[96], real[65];
	struct pin *pin;

	cs_escape_to(shown, sizeof shown, m->key);
	if (!hash || !json_is(tool, JSON_OBJECT))
		return cs_fail(err, CS_E_INVALID, 0, "tools.%s: a hash and a tool are wanted", shown);
	if (!hash_of(tool, real) || strcmp(real, hash))
		return cs_fail(err, CS_E_INVALID, 0, "tools.%s: the hash %.80s is not that of the tool beside it (%s): approve it again",
			       shown, hash[strspn(hash, "0123456789abcdef")] ? "there" : hash, real);
	if (!json_str(json_get(tool, "name")) || strcmp(json_str(json_get(tool, "name")), m->key))
		return cs_fail(err, CS_E_INVALID, 0, "tools.%s: the tool has another name", shown);
	pin = add(p);
	*pin = (struct pin){ .name = m->key, .tool = tool, .by = json_str(json_get(approved, "by")), .at = json_str(json_get(approved, "at")) };
	memcpy(pin->hash, real, sizeof pin->hash);
	return 0;
}

static int read_pins(struct pins *p, const char *text, size_t len, struct cs_err *err)
{
	const struct json *root, *tools;
	int64_t version = 0;
	int r = json_read(&p->arena, text, len, NULL, &root, err);

	if (r < 0)
		return r;
	tools = json_get(root, "tools");
	if (!json_int(json_get(root, "version"), &version) || version != 1)
		return cs_fail(err, CS_E_UNSUPPORTED, 0, "not a file of pins of version 1");
	if (!json_is(tools, JSON_OBJECT))
		return cs_fail(err, CS_E_INVALID, 0, "tools is not an object");
	for (size_t i = 0; r >= 0 && i < tools->n; i++)
		r = read_pin(p, &tools->members[i], err);
	if (p->n)
		qsort(p->v, p->n, sizeof *p->v, by_name);
	return r;
}

int pins_load(const char *path, struct pins **ret, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(FILE_MAX);
	struct pins *p = cs_new(struct pins);
	CS_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char shown[256];
	int r = 0;

	p->arena.max = ARENA_MAX;
	cs_escape_to(shown, sizeof shown, path);
	if (fd < 0 && errno != ENOENT)
		r = cs_fail(err, CS_E_SYSTEM, errno, "open the pins '%s'", shown);
	else if (fd >= 0)
		r = cs_buf_read_fd(&text, fd, shown, err);
	if (r >= 0 && fd >= 0) {
		r = read_pins(p, cs_buf_text(&text), text.len, err);
		if (r < 0)
			r = cs_wrap(err, r, "%s", shown);
	}
	if (r < 0)
		return pins_free(p), r;
	*ret = p;
	return 0;
}

void pins_free(struct pins *p)
{
	if (!p)
		return;
	cs_arena_done(&p->arena);
	free(p->v);
	free(p);
}

/* ---- judging ---- */

enum pin_state pins_state(const struct pins *p, const struct manifest_tool *t)
{
	const struct pin *pin = find(p, t->name);

	return !pin ? PIN_NONE : strcmp(pin->hash, t->hash) ? PIN_CHANGED : PIN_SAME;
}

size_t pins_apply(const struct pins *p, struct manifest *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct manifest_tool *t = &m->tools[i];
		enum pin_state s = pins_state(p, t);

		if (s == PIN_NONE)
			manifest_quarantine(t, false, "not approved yet");
		else if (s == PIN_CHANGED)
			manifest_quarantine(t, false, "changed since it was approved");
		else if (!t->refused)
			t->quarantine[0] = 0; /* a person has seen what was suspected */
		n += t->quarantine[0] != 0;
	}
	return n;
}

void pins_missing(const struct pins *p, const struct manifest *m, void (*tell)(const char *name, void *arg), void *arg)
{
	for (size_t i = 0; i < p->n; i++)
		if (!manifest_find(m, p->v[i].name))
			tell(p->v[i].name, arg);
}

/* ---- showing ---- */

static void show(struct cs_buf *out, char sign, const struct flat_line *l, bool colour)
{
	cs_buf_fmt(out, "%s%c %s: %s%s\n", !colour ? "" : sign == '-' ? "\033[31m" : "\033[32m", sign, l->path, l->text, colour ? "\033[0m" : "");
}

void pins_diff(const struct pins *p, const struct manifest_tool *t, bool colour, struct cs_buf *out)
{
	const struct pin *pin = find(p, t->name);
	struct flat old FLAT_AUTO = { 0 }, new FLAT_AUTO = { 0 };
	size_t i = 0, k = 0;

	flat_make(&old, pin ? pin->tool : NULL);
	flat_make(&new, t->whole);
	while (i < old.n || k < new.n) {
		int c = i == old.n ? 1 : k == new.n ? -1 : strcmp(old.v[i].path, new.v[k].path);
		bool same = !c && !strcmp(old.v[i].text, new.v[k].text);

		if (c <= 0 && !same)
			show(out, '-', &old.v[i], colour);
		if (c >= 0 && !same)
			show(out, '+', &new.v[k], colour);
		i += c <= 0;
		k += c >= 0;
	}
}

/* ---- changing ---- */

void pins_approve(struct pins *p, const struct manifest_tool *t, const char *by, const char *at)
{
	struct pin *pin = find(p, t->name);

	if (!pin) {
		pin = add(p);
		pin->name = cs_arena_dup(&p->arena, t->name, strlen(t->name));
	}
	memcpy(pin->hash, t->hash, sizeof pin->hash);
	pin->tool = json_copy(&p->arena, t->whole);
	pin->by = cs_arena_dup(&p->arena, by, strlen(by));
	pin->at = cs_arena_dup(&p->arena, at, strlen(at));
	if (!p->arena.over)
		qsort(p->v, p->n, sizeof *p->v, by_name);
}

static void write_pin(struct cs_buf *out, const struct pin *pin, bool last)
{
	struct cs_json j;

	cs_buf_str(out, "    ");
	cs_json_begin(&j, out, false);
	cs_json_str(&j, NULL, pin->name);
	cs_buf_fmt(out, ": {\n      \"hash\": \"%s\",\n      \"tool\": ", pin->hash);
	json_write_canonical(out, pin->tool);
	cs_buf_str(out, ",\n      \"approved\": ");
	cs_json_begin(&j, out, false);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "by", pin->by);
	cs_json_str(&j, "at", pin->at);
	cs_json_end(&j, '}');
	cs_buf_fmt(out, "\n    }%s\n", last ? "" : ",");
}

/* A new file beside the old one, and the name is moved: readers see one or the other. */
static int replace(const char *path, const struct cs_buf *text, struct cs_err *err)
{
	CS_FREE char *temporary = cs_printf("%s.new", path);
	CS_FD int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	char shown[256];

	if (fd < 0 || cs_write_all(fd, cs_buf_text(text), text->len) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0) {
		int e = errno;

		(void)unlink(temporary);
		return cs_fail(err, CS_E_SYSTEM, e, "write the pins '%s'", cs_escape_to(shown, sizeof shown, path));
	}
	return 0;
}

int pins_save(const struct pins *p, const char *path, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(FILE_MAX);

	cs_buf_str(&text, "{\n  \"version\": 1,\n  \"tools\": {\n");
	for (size_t i = 0; i < p->n; i++)
		write_pin(&text, &p->v[i], i + 1 == p->n);
	cs_buf_str(&text, "  }\n}\n");
	if (text.over || p->arena.over)
		return cs_fail(err, CS_E_LIMIT, 0, "the pins are larger than %d bytes", FILE_MAX);
	return replace(path, &text, err);
}
