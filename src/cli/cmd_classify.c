/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_classify.c - caisson classify: what would this command do? */
#include "cli/classify.h"
#include "cli/cli.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/text.h"
#include "profile/profile.h"
#include "shell/shell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4 << 20, EXIT_UNCERTAIN = 10, EXIT_UNSAFE = 11 };

struct classify {
	bool json, lines;
	const char *profile, *cwd;
	struct profile loaded;
	struct cs_strv roots;
	struct sh_policy policy;
};

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct classify *c = arg;

	(void)err;
	if (!strcmp(opt->name, "json"))
		c->json = true;
	else if (!strcmp(opt->name, "lines"))
		c->lines = true;
	else if (!strcmp(opt->name, "profile"))
		c->profile = value;
	else if (!strcmp(opt->name, "cwd"))
		c->cwd = value;
	return 0;
}

static int exit_of(enum sh_class c)
{
	return c == SH_SAFE ? 0 : c == SH_UNSAFE ? EXIT_UNSAFE : EXIT_UNCERTAIN;
}

/* ---- the policy ---- */

int classify_policy(const struct profile *p, const char *dir, struct sh_policy *ret, struct cs_strv *roots, struct cs_err *err)
{
	CS_FREE char *here = realpath(dir ? dir : ".", NULL);
	const char *home = getenv("HOME");

	if (!here)
		return cs_fail(err, CS_E_NOT_FOUND, errno, "'%s'", dir ? dir : ".");
	*ret = (struct sh_policy){ .home = home && home[0] == '/' ? home : NULL };
	cs_strv_add(roots, here);
	cs_strv_add(roots, "/tmp");
	cs_strv_add(roots, "/dev");
	cs_strv_add(roots, "/proc");
	cs_strv_copy(roots, &p->files_read);
	cs_strv_copy(roots, &p->files_write);
	ret->cwd = roots->v[0];
	ret->roots = (const char *const *)roots->v;
	ret->n_roots = roots->n;
	ret->secrets = (const char *const *)p->files_hide.v;
	ret->n_secrets = p->files_hide.n;
	return 0;
}

static int make_policy(struct classify *c, struct cs_err *err)
{
	int r;

	if (c->cwd && c->cwd[0] != '/')
		return cs_fail(err, CS_E_INVALID, 0, "--cwd '%s': must be an absolute path", c->cwd);
	r = profile_load(c->profile ? c->profile : "default", &c->loaded, err);
	if (r == 0)
		r = classify_policy(&c->loaded, NULL, &c->policy, &c->roots, err);
	if (r < 0)
		return r;
	if (c->cwd)
		c->policy.cwd = c->cwd;
	if (!c->profile) /* everything but secrets */
		c->policy.roots = NULL, c->policy.secrets = NULL, c->policy.n_roots = c->policy.n_secrets = 0;
	return 0;
}

/* ---- for programs ---- */

void classify_json(struct cs_json *j, const struct sh_verdict *v)
{
	cs_json_array(j, "effects");
	for (size_t i = 0; i < v->n_effects; i++) {
		const struct sh_effect *e = &v->effects[i];

		cs_json_object(j, NULL);
		cs_json_str(j, "effect", sh_effect_name(e->kind));
		cs_json_str(j, "object", e->object[0] ? e->object : NULL);
		cs_json_str(j, "by", e->by);
		cs_json_bool(j, "forbidden", e->forbidden);
		cs_json_str(j, "why", e->why);
		cs_json_u64(j, "at", e->at);
		cs_json_u64(j, "length", e->len);
		cs_json_end(j, '}');
	}
	cs_json_end(j, ']');
	cs_json_array(j, "because");
	for (size_t i = 0; i < v->n_effects; i++)
		if (v->effects[i].forbidden)
			cs_json_str(j, NULL, v->effects[i].why);
	for (size_t i = 0; i < v->n_reasons; i++)
		cs_json_str(j, NULL, v->reasons[i].text);
	cs_json_end(j, ']');
}

static void write_json(const struct sh_verdict *v, const char *text, bool pretty, struct cs_buf *out)
{
	struct cs_json j;

	cs_json_begin(&j, out, pretty);
	cs_json_object(&j, NULL);
	if (text)
		cs_json_str(&j, "command", text);
	cs_json_str(&j, "class", sh_class_name(v->class));
	classify_json(&j, v);
	cs_json_end(&j, '}');
}

/* ---- for people ---- */

enum mark { MARK_NONE, MARK_DOUBT, MARK_FORBIDDEN };

static void mark(unsigned char *marks, size_t len, uint32_t at, uint32_t n, enum mark m)
{
	for (size_t i = at; i < (size_t)at + n && i < len; i++)
		if (marks[i] < m)
			marks[i] = (unsigned char)m;
}

static void echo_command(const char *text, size_t len, const struct sh_verdict *v, bool colour, struct cs_buf *out)
{
	static const char *const on[] = { "\033[0m", "\033[33m", "\033[1;31m" };
	CS_FREE unsigned char *marks = cs_calloc(len + 1, 1);
	unsigned char last = MARK_NONE;

	for (size_t i = 0; i < v->n_reasons; i++)
		mark(marks, len, v->reasons[i].at, v->reasons[i].len, MARK_DOUBT);
	for (size_t i = 0; i < v->n_effects; i++)
		if (v->effects[i].forbidden)
			mark(marks, len, v->effects[i].at, v->effects[i].len, MARK_FORBIDDEN);
	for (size_t i = 0; i < len;) {
		size_t n = i + 1;
		CS_FREE char *piece = NULL;

		while (n < len && marks[n] == marks[i] && text[n - 1] != '\n')
			n++;
		piece = cs_strndup(text + i, n - i - (text[n - 1] == '\n'));
		if (colour && marks[i] != last)
			cs_buf_str(out, on[marks[i]]);
		last = marks[i];
		cs_escape(out, piece);
		if (text[n - 1] == '\n')
			cs_buf_str(out, "\n  ");
		i = n;
	}
	if (colour && last != MARK_NONE)
		cs_buf_str(out, on[MARK_NONE]);
	cs_buf_char(out, '\n');
}

static void write_text(const char *text, size_t len, const struct sh_verdict *v, bool colour, struct cs_buf *out)
{
	static const char *const paint[] = { "\033[32m", "\033[33m", "\033[1;31m" };
	char shown[512];

	cs_buf_fmt(out, "%s%s%s\n  ", colour ? paint[v->class] : "", sh_class_name(v->class), colour ? "\033[0m" : "");
	echo_command(text, len, v, colour, out);
	for (size_t i = 0; i < v->n_effects; i++) {
		const struct sh_effect *e = &v->effects[i];

		cs_buf_fmt(out, "%s %-11s %s", e->forbidden ? " !" : "  ", sh_effect_name(e->kind),
			   e->object[0] ? cs_escape_to(shown, sizeof shown, e->object) : "(not known)");
		cs_buf_fmt(out, "  by %s%s%s\n", cs_escape_to(shown, sizeof shown, e->by), e->why ? ": " : "", e->why ? e->why : "");
	}
	for (size_t i = 0; i < v->n_reasons; i++)
		cs_buf_fmt(out, " ? %s\n", v->reasons[i].text); /* escaped when it was made */
}

/* ---- a JSON string per line ---- */

static int hex4(const char *s, unsigned *ret)
{
	*ret = 0;
	for (int i = 0; i < 4; i++) {
		int d = s[i] >= '0' && s[i] <= '9' ? s[i] - '0' : s[i] >= 'a' && s[i] <= 'f' ? s[i] - 'a' + 10 : s[i] >= 'A' && s[i] <= 'F' ? s[i] - 'A' + 10 : -1;

		if (d < 0)
			return -1;
		*ret = *ret * 16 + (unsigned)d;
	}
	return 0;
}

static void add_utf8(struct cs_buf *out, unsigned c)
{
	char b[4];
	int n = 0;

	if (c < 0x80) {
		b[n++] = (char)c;
	} else if (c < 0x800) {
		b[n++] = (char)(0xc0 | c >> 6);
		b[n++] = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		b[n++] = (char)(0xe0 | c >> 12);
		b[n++] = (char)(0x80 | (c >> 6 & 63));
		b[n++] = (char)(0x80 | (c & 63));
	} else {
		b[n++] = (char)(0xf0 | c >> 18);
		b[n++] = (char)(0x80 | (c >> 12 & 63));
		b[n++] = (char)(0x80 | (c >> 6 & 63));
		b[n++] = (char)(0x80 | (c & 63));
	}
	cs_buf_add(out, b, (size_t)n);
}

/* The character after a backslash; how many bytes were taken, or -1. */
static int take_escape(const char *c, struct cs_buf *out)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *known = *c ? strchr(names, *c) : NULL;
	unsigned u, low;

	if (known) {
		cs_buf_char(out, values[known - names]);
		return 1;
	}
	if (*c != 'u' || hex4(c + 1, &u) < 0)
		return -1;
	if (u >= 0xd800 && u < 0xdc00) {
		if (c[5] != '\\' || c[6] != 'u' || hex4(c + 7, &low) < 0 || low < 0xdc00 || low > 0xdfff)
			return -1;
		add_utf8(out, 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00));
		return 11;
	}
	if (u >= 0xdc00 && u < 0xe000)
		return -1;
	add_utf8(out, u);
	return 5;
}

static int parse_json_string(const char *line, struct cs_buf *out)
{
	const char *c = line + strspn(line, " \t");

	if (*c++ != '"')
		return -1;
	while (*c && *c != '"') {
		int n;

		if ((unsigned char)*c < 0x20)
			return -1;
		if (*c != '\\') {
			cs_buf_char(out, *c++);
			continue;
		}
		n = take_escape(c + 1, out);
		if (n < 0)
			return -1;
		c += 1 + n;
	}
	return *c == '"' && c[1 + strspn(c + 1, " \t\r\n")] == 0 ? 0 : -1;
}

static int classify_lines(struct classify *c)
{
	CS_FREE char *line = NULL;
	size_t room = 0;
	ssize_t n;

	for (unsigned long number = 1; (n = getline(&line, &room, stdin)) >= 0; number++) {
		struct cs_buf text CS_BUF_AUTO = CS_BUF(LINE_MAX_BYTES), out CS_BUF_AUTO = CS_BUF(16 << 20);
		struct sh_verdict v;

		if (strlen(line) != (size_t)n || parse_json_string(line, &text) < 0 || text.over) {
			say_error("line %lu of standard input is not a JSON string (one command per line, as \"ls -l\")", number);
			return 125;
		}
		sh_classify(cs_buf_text(&text), text.len, &c->policy, &v);
		write_json(&v, NULL, false, &out);
		sh_verdict_done(&v);
		if (fwrite(cs_buf_text(&out), 1, out.len, stdout) != out.len) {
			say_error("the answer could not be written");
			return 125;
		}
	}
	return fflush(stdout) == 0 ? 0 : 125;
}

static int classify_one(struct classify *c, const char *text)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(16 << 20);
	struct sh_verdict v;
	int code;

	sh_classify(text, strlen(text), &c->policy, &v);
	if (c->json)
		write_json(&v, text, true, &out);
	else
		write_text(text, strlen(text), &v, say_colour(STDOUT_FILENO), &out);
	code = exit_of(v.class);
	sh_verdict_done(&v);
	if (out.over || cs_write_all(STDOUT_FILENO, cs_buf_text(&out), out.len) < 0) {
		say_error("the answer could not be written");
		return 125;
	}
	return code;
}

int cmd_classify(int argc, char **argv)
{
	struct classify c = { 0 };
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	int r = cli_parse_words(cli_find("classify"), argc, argv, take, &c, &words, &err);

	if (r >= 0 && c.lines != (words.n == 0))
		r = cs_fail(&err, CS_E_INVALID, 0, c.lines ? "--lines reads commands from standard input and takes none as words" :
							     "no command: caisson classify 'COMMAND' (one word: quote it)");
	if (r >= 0 && words.n > 1)
		r = cs_fail(&err, CS_E_INVALID, 0, "the command is one word: quote it, as in caisson classify 'ls -l | wc -l'");
	if (r >= 0)
		r = make_policy(&c, &err);
	r = r < 0 ? cli_usage_error(&err) : c.lines ? classify_lines(&c) : classify_one(&c, words.v[0]);
	cs_strv_done(&words);
	cs_strv_done(&c.roots);
	profile_done(&c.loaded);
	return r;
}
