/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_session.c - caisson exec, steps, fork and end: a sandbox that stays. `begin` is in cmd_run.c,
 * because it takes what `run` takes. */
#include "cli/change.h"
#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/say.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(const struct cs_err *err)
{
	say_error("%s", err->msg);
	return cs_code_exit(err->code);
}

/* ---- exec ---- */

struct exec_args {
	struct session_step step;
	struct cs_strv env;
};

static int take_exec(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct exec_args *a = arg;

	if (!strcmp(opt->name, "background")) {
		a->step.background = true;
	} else if (!strcmp(opt->name, "cwd")) {
		a->step.cwd = value;
	} else if (!strcmp(opt->name, "env")) {
		if (!strchr(value, '=') || *value == '=')
			return cs_fail(err, CS_E_INVALID, 0, "--env '%s': a session takes NAME=VALUE", value);
		cs_strv_add(&a->env, value);
	} else if (!strcmp(opt->name, "timeout")) {
		if (cs_parse_duration(value, &a->step.timeout) < 0 || !a->step.timeout)
			return cs_fail(err, CS_E_INVALID, 0, "--timeout '%s' is not a time, such as 30s or 10m", value);
	} else if (!strcmp(opt->name, "quiet")) {
		say_set_level(SAY_QUIET);
	}
	return 0;
}

int cmd_exec(int argc, char **argv)
{
	struct exec_args a = { 0 };
	struct cs_err err = { 0 };
	int first = cli_parse(cli_find("exec"), argc, argv, take_exec, &a, &err), code = 0;
	uint32_t step;

	if (first >= 0 && first < argc) {
		a.step.id = argv[first++];
		if (first < argc && !strcmp(argv[first], "--"))
			first++;
	}
	if (first >= 0 && first >= argc)
		first = cs_fail(&err, CS_E_INVALID, 0, "a session and a command, please: caisson exec [OPTION...] ID -- COMMAND [ARG...]");
	if (first < 0) {
		cs_strv_done(&a.env);
		return cli_usage_error(&err);
	}
	a.step.argv = argv + first;
	a.step.env = &a.env;
	if (session_exec(&a.step, &code, &step, &err) < 0)
		code = failed(&err);
	cs_strv_done(&a.env);
	return code;
}

/* ---- steps ---- */

struct step_list {
	struct cs_buf *out;
	struct cs_json *json;
	unsigned n;
};

static void status_words(int status, char *ret, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(ret, size, "sig %d", WTERMSIG(status));
	else
		snprintf(ret, size, "%d", WEXITSTATUS(status));
}

static void step_json(struct cs_json *j, const struct txn_step *s, const struct txn_changes *c)
{
	cs_json_object(j, NULL);
	cs_json_u64(j, "step", s->n);
	cs_json_str(j, "command", s->command);
	cs_json_u64(j, "started", s->started);
	cs_json_u64(j, "us", s->us);
	cs_json_i64(j, "exit_code", WIFSIGNALED(s->status) ? 128 + WTERMSIG(s->status) : WEXITSTATUS(s->status));
	cs_json_bool(j, "background", s->background);
	cs_json_bool(j, "rolled_back", s->undone);
	cs_json_u64(j, "added", c->added);
	cs_json_u64(j, "changed", c->changed);
	cs_json_u64(j, "deleted", c->deleted);
	cs_json_array(j, "paths");
	for (size_t i = 0; i < c->n && i < 1000; i++) {
		char kind[2] = { (char)c->v[i].kind, 0 };

		cs_json_object(j, NULL);
		cs_json_str(j, "kind", kind);
		cs_json_str(j, "path", c->v[i].path);
		cs_json_end(j, '}');
	}
	cs_json_end(j, ']');
	cs_json_end(j, '}');
}

static void step_text(struct step_list *l, const struct txn_step *s, const struct txn_changes *c)
{
	char status[16], took[32], what[96];

	if (l->n++ == 0)
		cs_buf_fmt(l->out, "%-5s %-7s %-9s %-34s %s\n", "STEP", "STATUS", "TIME", "CHANGES", "COMMAND");
	status_words(s->status, status, sizeof status);
	snprintf(took, sizeof took, "%.1fms", (double)s->us / 1000);
	if (s->undone)
		snprintf(what, sizeof what, "rolled back");
	else if (!(c->added + c->changed + c->deleted))
		snprintf(what, sizeof what, "none");
	else
		snprintf(what, sizeof what, "%zu added, %zu changed, %zu deleted", c->added, c->changed, c->deleted);
	cs_buf_fmt(l->out, "%-5u %-7s %-9s %-34s %s%s\n", s->n, status, took, what, s->command,
		   s->background ? "  [left running: no savepoint until it ended]" : "");
}

static int show_step(struct txn *t, const struct txn_step *s, void *arg)
{
	struct step_list *l = arg;
	struct txn_changes c;
	struct cs_err err = { 0 };

	if (txn_step_changes(t, s, &c, &err) < 0)
		say_error("step %u: %s", s->n, err.msg);
	if (l->json)
		step_json(l->json, s, &c);
	else
		step_text(l, s, &c);
	txn_changes_done(&c);
	return 0;
}

static int take_json(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	(void)value, (void)err;
	*(bool *)arg |= !strcmp(opt->name, "json");
	if (!strcmp(opt->name, "quiet"))
		say_set_level(SAY_QUIET);
	return 0;
}

/* The one word that is an id. */
static int one_id(const char *command, int argc, char **argv, bool *json, struct cs_strv *words, struct cs_err *err)
{
	int r = cli_parse_words(cli_find(command), argc, argv, take_json, json, words, err);

	if (r == 0 && words->n != 1)
		r = cs_fail(err, CS_E_INVALID, 0, "which session? caisson %s ID (`caisson ps` lists them)", command);
	return r;
}

static int steps(const char *id, bool json)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(256 << 20);
	struct cs_json j = { 0 };
	struct step_list l = { .out = &out, .json = json ? &j : NULL };
	struct cs_err err = { 0 };
	struct txn *t;

	if (txn_peek(id, &t, &err) < 0)
		return failed(&err);
	if (json) {
		cs_json_begin(&j, &out, true);
		cs_json_array(&j, NULL);
	}
	(void)txn_steps(t, show_step, &l, &err);
	if (json)
		cs_json_end(&j, ']');
	else if (!l.n)
		say_note("%s has no steps", id);
	txn_close(t);
	return cs_write_all(STDOUT_FILENO, cs_buf_text(&out), out.len) < 0 ? 125 : 0;
}

int cmd_steps(int argc, char **argv)
{
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	bool json = false;
	int code = one_id("steps", argc, argv, &json, &words, &err) < 0 ? cli_usage_error(&err) : steps(words.v[0], json);

	cs_strv_done(&words);
	return code;
}

/* ---- fork and end ---- */

int cmd_fork(int argc, char **argv)
{
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	char id[TXN_ID_MAX];
	bool json = false;
	int code = 0;

	if (one_id("fork", argc, argv, &json, &words, &err) < 0)
		code = cli_usage_error(&err);
	else if (session_fork(words.v[0], id, &err) < 0)
		code = failed(&err);
	else
		printf("%s\n", id);
	cs_strv_done(&words);
	return code;
}

struct end_args {
	enum profile_commit commit;
	bool given;
};

static int take_end(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	static const struct {
		const char *name;
		enum profile_commit mode;
	} modes[] = { { "ask", PROFILE_COMMIT_ASK }, { "keep", PROFILE_COMMIT_KEEP }, { "always", PROFILE_COMMIT_ALWAYS }, { "never", PROFILE_COMMIT_NEVER } };
	struct end_args *a = arg;

	if (!strcmp(opt->name, "quiet"))
		say_set_level(SAY_QUIET);
	if (strcmp(opt->name, "commit") != 0)
		return 0;
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (!strcmp(value, modes[i].name)) {
			a->commit = modes[i].mode;
			a->given = true;
			return 0;
		}
	return cs_fail(err, CS_E_INVALID, 0, "--commit '%s': it is ask, keep, always or never", value);
}

static int end(const char *id, const struct end_args *a)
{
	struct profile p = { 0 };
	enum profile_commit mode;
	struct session_result r = { 0 };
	struct cs_err err = { 0 };
	bool empty;

	if (session_end(id, &empty, &mode, &err) < 0)
		return failed(&err);
	p.commit = a->given ? a->commit : mode;
	if (empty) {
		say_note("%s  ended; nothing was changed", id);
		return 0;
	}
	if (txn_find(id, ".", &r.txn, &err) < 0)
		return failed(&err);
	return change_fate(&p, &r);
}

int cmd_end(int argc, char **argv)
{
	struct end_args a = { .commit = PROFILE_COMMIT_AUTO };
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	int code, r = cli_parse_words(cli_find("end"), argc, argv, take_end, &a, &words, &err);

	if (r == 0 && words.n != 1)
		r = cs_fail(&err, CS_E_INVALID, 0, "which session? caisson end ID (`caisson ps` lists them)");
	code = r < 0 ? cli_usage_error(&err) : end(words.v[0], &a);
	cs_strv_done(&words);
	return code;
}
