/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_classify.c - caisson classify: what would this command do? */
#include "act/act.h"
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

enum { EXIT_UNCERTAIN = 10, EXIT_UNSAFE = 11 };

struct classify {
	bool json, lines, resolve;
	const char *profile, *cwd;
	struct profile loaded;
	struct act_policy policy;
};

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct classify *c = arg;

	(void)err;
	if (!strcmp(opt->name, "json"))
		c->json = true;
	else if (!strcmp(opt->name, "lines"))
		c->lines = true;
	else if (!strcmp(opt->name, "resolve"))
		c->resolve = true;
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

static int make_policy(struct classify *c, struct cs_err *err)
{
	struct act_policy_opts o = { .profile = &c->loaded, .cwd = c->cwd, .roots = c->profile != NULL, .really = c->resolve };
	int r;

	if (c->cwd && c->cwd[0] != '/')
		return cs_fail(err, CS_E_INVALID, 0, "--cwd '%s': must be an absolute path", c->cwd);
	r = profile_load(c->profile ? c->profile : "default", &c->loaded, err);
	return r < 0 ? r : act_policy_make(&o, &c->policy, err);
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

/* The next line without its end; 1: there is none; -1: longer than may be. */
static int read_line(struct cs_buf *line)
{
	int c = getc_unlocked(stdin);

	if (c == EOF)
		return 1;
	for (; c != EOF && c != '\n'; c = getc_unlocked(stdin)) {
		if (line->over)
			return -1;
		cs_buf_char(line, (char)c);
	}
	return line->over ? -1 : 0;
}

static int classify_lines(struct classify *c)
{
	struct cs_err err = { 0 };

	for (unsigned long number = 1;; number++) {
		struct cs_buf line CS_BUF_AUTO = CS_BUF(ACT_LINE_MAX), out CS_BUF_AUTO = CS_BUF(16 << 20);
		int r = read_line(&line);

		if (r == 1)
			return fflush(stdout) == 0 ? 0 : 125;
		if (r < 0)
			r = cs_fail(&err, CS_E_LIMIT, 0, "longer than %d bytes", (int)ACT_LINE_MAX);
		else
			r = act_classify_line(&c->policy, cs_buf_text(&line), line.len, &out, &err);
		if (r < 0) {
			say_error("line %lu of standard input is not a JSON string (one command per line, as \"ls -l\"): %s", number, err.msg);
			return 125;
		}
		if (out.over || fwrite(cs_buf_text(&out), 1, out.len, stdout) != out.len) {
			say_error("the answer could not be written");
			return 125;
		}
	}
}

static int classify_one(struct classify *c, const char *text)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(16 << 20);
	struct sh_verdict v;
	int code;

	act_classify(&c->policy, text, strlen(text), &v);
	if (c->json)
		act_verdict_write(&v, text, true, &out);
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
	act_policy_done(&c.policy);
	profile_done(&c.loaded);
	return r;
}
