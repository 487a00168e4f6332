/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_lines.c - hostile bytes as a line of `caisson classify --lines`.
 *
 * What must hold: the answer is one line of JSON with a class; what is refused says why, in one line; a command that came as a
 * string has the class that it has by itself, and rows that others wrote make it no better. */
#include "act/act.h"
#include "base/arena.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char rows[] = "shell: {commands: {cat: harmless | inert..., rm: harmless | inert..., env: stop | command, x: harmless | inert...}}";

static void make(const char *profile, struct profile *p, struct act_policy *policy)
{
	struct act_policy_opts o = { .profile = p, .cwd = "/work", .roots = true };

	if (profile_load_text(profile, strlen(profile), "fuzz.yaml", p, NULL) < 0 || act_policy_make(&o, policy, NULL) < 0)
		abort();
}

/* A line with one string in it, of any bytes. */
static void as_string(const char *text, struct cs_buf *line)
{
	struct cs_json j;

	cs_json_begin(&j, line, false);
	cs_json_str(&j, NULL, text);
}

static int class_of(const struct cs_buf *out)
{
	struct cs_arena a CS_ARENA_AUTO = CS_ARENA((size_t)256 << 20);
	const struct json *v = NULL;
	const char *text;

	if (out->over || memchr(cs_buf_text(out), '\n', out->len) != cs_buf_text(out) + out->len - 1 ||
	    json_read(&a, cs_buf_text(out), out->len, NULL, &v, NULL) < 0 || !json_is(json_get(v, "effects"), JSON_ARRAY))
		abort();
	text = json_str(json_get(v, "class"));
	return !strcmp(text, "safe") ? SH_SAFE : !strcmp(text, "uncertain") ? SH_UNCERTAIN : !strcmp(text, "unsafe") ? SH_UNSAFE : (abort(), 0);
}

static int judge(struct act_policy *p, const char *line, size_t len)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF((size_t)64 << 20);
	struct cs_err err = { 0 };

	if (act_classify_line(p, line, len, &out, &err) == 0)
		return class_of(&out);
	if (!err.code || !*err.msg || strchr(err.msg, '\n') || out.len)
		abort();
	return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct profile plain, narrow;
	static struct act_policy policies[2];
	struct cs_buf line CS_BUF_AUTO = CS_BUF((size_t)64 << 20);
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (!plain.name) {
		setenv("HOME", "/home/fuzz", 1);
		make("{}", &plain, &policies[0]);
		make(rows, &narrow, &policies[1]);
	}
	memcpy(text, data, size);
	text[size] = '\0';
	if (judge(&policies[1], text, size) < judge(&policies[0], text, size))
		abort();
	as_string(text, &line);
	if (judge(&policies[0], cs_buf_text(&line), line.len) < 0 || judge(&policies[1], cs_buf_text(&line), line.len) < judge(&policies[0], cs_buf_text(&line), line.len))
		abort();
	free(text);
	return 0;
}
