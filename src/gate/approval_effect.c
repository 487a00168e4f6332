/* SPDX-License-Identifier: Apache-2.0 */
/* approval_effect.c - the exact effect that is approved, and how it is shown.
 *
 * A name says nothing about what is behind it: with `sh deploy.sh` a person approves deploy.sh as it is
 * now, so the content of every file that the call names is part of the effect.  A file that changes, comes
 * or goes makes it another effect. */
#include "gate/approval.h"
#include "gate/flat.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/text.h"
#include "shell/shell.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	FILES_MAX = 64,
	PATH_BYTES = 4096,
	DEPTH = 64,
	READ_BYTES = 1 << 16,
};
static const uint64_t bytes_max = 256u << 20; /* of all files together */

struct found {
	struct cs_arena *arena;
	const char *cwd;
	struct json_member v[FILES_MAX];
	uint32_t n;
	uint64_t bytes;
	struct cs_err *err;
	int r;
};

/* A path is bytes, an effect is JSON and so UTF-8. Escaped, two paths are never one. NULL: too large. */
static const char *path_text(struct cs_arena *a, const char *path)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(PATH_BYTES * 8);

	cs_escape(&b, path);
	return b.over ? NULL : cs_arena_dup(a, cs_buf_text(&b), b.len);
}

/* ---- files ---- */

static int hash_file(struct found *f, int fd, const char *path, char ret[65])
{
	struct cs_sha256 h;
	uint8_t hash[CS_SHA256_SIZE];
	char block[READ_BYTES], shown[160];
	ssize_t n;

	cs_sha256_init(&h);
	while ((n = read(fd, block, sizeof block)) > 0) {
		f->bytes += (uint64_t)n;
		if (f->bytes > bytes_max)
			return cs_fail(f->err, CS_E_LIMIT, 0, "the files it names are too large to approve: '%s'", cs_escape_to(shown, sizeof shown, path));
		cs_sha256_add(&h, block, (size_t)n);
	}
	if (n < 0)
		return cs_fail(f->err, CS_E_SYSTEM, errno, "read '%s', which is named", cs_escape_to(shown, sizeof shown, path));
	cs_sha256_end(&h, hash);
	cs_sha256_hex(hash, ret);
	return 0;
}

static bool is_known(const struct found *f, const char *path)
{
	CS_BUF_AUTO struct cs_buf key = CS_BUF(PATH_BYTES * 8);

	if (f->n)
		cs_escape(&key, path);
	for (uint32_t i = 0; i < f->n; i++)
		if (!strcmp(f->v[i].key, cs_buf_text(&key)))
			return true;
	return false;
}

static int add_file(struct found *f, int fd, const char *path)
{
	char hex[65];
	const struct json *value;
	const char *key;

	if (f->n == FILES_MAX)
		return cs_fail(f->err, CS_E_LIMIT, 0, "it names more than %d files: too many to approve", FILES_MAX);
	if (hash_file(f, fd, path, hex) < 0)
		return -1;
	value = json_new_str(f->arena, hex, 64);
	key = path_text(f->arena, path);
	if (!value || !key)
		return cs_fail(f->err, CS_E_LIMIT, 0, "the effect is too large");
	f->v[f->n++] = (struct json_member){ .key = key, .key_len = (uint32_t)strlen(key), .value = *value };
	return 0;
}

/* Most words are no files; those that are, and cannot be read, cannot be approved. */
static void try_path(struct found *f, const char *name, size_t len)
{
	CS_FREE char *path = NULL;
	CS_FD int fd = -1;
	struct stat st;

	if (f->r < 0 || !len || len >= PATH_BYTES || memchr(name, 0, len) || (*name != '/' && !f->cwd))
		return;
	path = *name == '/' ? cs_strndup(name, len) : cs_printf("%s/%.*s", f->cwd, (int)len, name);
	if (is_known(f, path) || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		char shown[160];

		f->r = cs_fail(f->err, CS_E_SYSTEM, errno, "open '%s', which is named", cs_escape_to(shown, sizeof shown, path));
		return;
	}
	if (add_file(f, fd, path) < 0)
		f->r = -CS_E_LIMIT;
}

static void try_strings(struct found *f, const struct json *v, unsigned depth)
{
	if (depth > DEPTH)
		return;
	if (json_is(v, JSON_STRING))
		try_path(f, v->s, v->n);
	for (size_t i = 0; json_is(v, JSON_ARRAY) && i < v->n; i++)
		try_strings(f, &v->items[i], depth + 1);
	for (size_t i = 0; json_is(v, JSON_OBJECT) && i < v->n; i++)
		try_strings(f, &v->members[i].value, depth + 1);
}

/* What the command is found to touch, and every word that is the name of a file. */
static void try_command(struct found *f, const char *command)
{
	struct sh_policy policy = { .cwd = f->cwd, .home = getenv("HOME") };
	struct sh_verdict v;

	sh_classify(command, strlen(command), &policy, &v);
	for (size_t i = 0; i < v.n_effects; i++)
		try_path(f, v.effects[i].object, strlen(v.effects[i].object));
	sh_verdict_done(&v);
	for (const char *p = command; *p;) {
		size_t n;

		p += strspn(p, " \t\n;|&<>()'\"=");
		n = strcspn(p, " \t\n;|&<>()'\"=");
		try_path(f, p, n);
		p += n;
	}
}

/* ---- the effect ---- */

static int put(struct cs_arena *a, struct json_member *m, uint32_t *n, const char *key, const char *text)
{
	const struct json *v = text ? json_new_str(a, text, strlen(text)) : NULL;

	if (!text)
		return 0;
	if (!v)
		return -1;
	m[*n] = (struct json_member){ .key = key, .key_len = (uint32_t)strlen(key), .value = *v };
	++*n;
	return 0;
}

static int put_path(struct cs_arena *a, struct json_member *m, uint32_t *n, const char *key, const char *path)
{
	const char *text = path ? path_text(a, path) : NULL;

	return path && !text ? -1 : put(a, m, n, key, text);
}

static void put_value(struct json_member *m, uint32_t *n, const char *key, struct json v)
{
	m[*n] = (struct json_member){ .key = key, .key_len = (uint32_t)strlen(key), .value = v };
	++*n;
}

int approval_effect(struct cs_arena *a, const struct approval_call *c, const struct json **ret, struct cs_err *err)
{
	struct found f = { .arena = a, .cwd = c->cwd && *c->cwd == '/' ? c->cwd : NULL, .err = err };
	struct json *effect = cs_arena_new(a, struct json);
	struct json_member *m = cs_arena_get(a, 8, sizeof *m), *files;

	try_strings(&f, c->args, 0);
	if (c->command && f.cwd)
		try_command(&f, c->command);
	if (f.r < 0)
		return f.r;
	files = cs_arena_get(a, f.n + 1, sizeof *files);
	if (!effect || !m || !files || a->over)
		return cs_fail(err, CS_E_LIMIT, 0, "the effect is too large");
	memcpy(files, f.v, f.n * sizeof *files);
	effect->type = JSON_OBJECT;
	effect->members = m;
	if (put(a, m, &effect->n, "tool", c->tool) < 0 || put(a, m, &effect->n, "role", c->role ? c->role : "default") < 0 ||
	    put(a, m, &effect->n, "command", c->command) < 0 || put_path(a, m, &effect->n, "policy", c->policy) < 0 ||
	    put_path(a, m, &effect->n, "cwd", f.cwd) < 0)
		return cs_fail(err, CS_E_LIMIT, 0, "the effect is too large");
	put_value(m, &effect->n, "args", *c->args);
	if (f.n)
		put_value(m, &effect->n, "files", (struct json){ .type = JSON_OBJECT, .n = f.n, .members = files });
	*ret = effect;
	return 0;
}

/* ---- showing ---- */

static void show_time(struct cs_buf *out, const char *what, uint64_t ms)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	if (ms && gmtime_r(&t, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm))
		cs_buf_fmt(out, "%-9s %s\n", what, text);
}

static void show_text(struct cs_buf *out, const char *what, const char *text)
{
	if (!text || !*text)
		return;
	cs_buf_fmt(out, "%-9s ", what);
	cs_escape(out, text);
	cs_buf_char(out, '\n');
}

void approval_show(const struct approval *a, struct cs_buf *out)
{
	struct cs_arena arena CS_ARENA_AUTO = CS_ARENA(64 << 20);
	struct flat lines FLAT_AUTO = { 0 };
	const struct json *effect = NULL;

	show_text(out, "id", a->id);
	cs_buf_fmt(out, "%-9s %s%s\n", "state", approval_state_name(a->state), a->always ? ", always" : "");
	show_text(out, "agent", a->agent);
	show_text(out, "session", a->session);
	show_text(out, "role", a->role);
	show_text(out, "rule", a->rule);
	show_text(out, "reason", a->reason);
	show_time(out, "asked", a->asked_ms);
	show_time(out, "answered", a->answered_ms);
	show_text(out, "by", a->by);
	show_time(out, "used", a->used_ms);
	if (!a->always)
		show_time(out, "until", a->expires_ms);
	cs_buf_fmt(out, "%-9s %s\n", "hash", a->hash);
	cs_buf_str(out, "effect\n");
	if (json_read(&arena, a->effect, strlen(a->effect), NULL, &effect, NULL) < 0)
		return;
	flat_make(&lines, effect);
	for (size_t i = 0; i < lines.n; i++)
		cs_buf_fmt(out, "  %s: %s\n", lines.v[i].path, lines.v[i].text);
}
