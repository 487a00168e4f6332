/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sh.c - caisson sh: one command line, looked at before it runs.
 *
 * safe       runs at once: workspace read-only, no network, no transaction
 * uncertain  runs in a transaction; what it changed is shown beside what was predicted, and committed if it ended well
 * unsafe     does not run
 *
 * What was judged is what runs: a command or a pipeline of literal words from our own tree and without a shell, everything
 * else by the bash whose grammar it was judged by, without start-up files. */
#include "cli/change.h"
#include "cli/classify.h"
#include "cli/cli.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/say.h"
#include "base/text.h"
#include "shell/shell.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_REFUSED = 125 };

struct sh {
	const char *profile, *workspace, *json, *text;
	bool ask, keep;         /* keep: also what a failed command wrote */
	bool direct;            /* no shell is needed */
	struct profile p;
	struct sh_policy policy;
	struct cs_strv roots, argv;
	struct sh_verdict v;
	const char *path;       /* which way was taken */
	size_t expected, unexpected; /* of what was changed: predicted, and not */
};

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct sh *s = arg;

	(void)err;
	if (!strcmp(opt->name, "profile"))
		s->profile = value;
	else if (!strcmp(opt->name, "workspace"))
		s->workspace = value;
	else if (!strcmp(opt->name, "json"))
		s->json = value;
	else if (!strcmp(opt->name, "ask"))
		s->ask = true;
	else if (!strcmp(opt->name, "keep-failed"))
		s->keep = true;
	else if (!strcmp(opt->name, "quiet"))
		say_set_level(SAY_QUIET);
	return 0;
}

static void tell_verdict(const struct sh *s)
{
	char object[256];

	for (size_t i = 0; i < s->v.n_effects; i++)
		if (s->v.effects[i].forbidden)
			say_error("%s: %s %s: %s", sh_class_name(s->v.class), sh_effect_name(s->v.effects[i].kind),
				  cs_escape_to(object, sizeof object, s->v.effects[i].object[0] ? s->v.effects[i].object : "(not known)"), s->v.effects[i].why);
}

/* The command as words: its own; those of a pipeline, for ourselves to run (stages.c); or bash's. */
static void make_argv(struct sh *s)
{
	struct cs_strv stages[SH_STAGES_MAX] = { 0 };
	size_t n = sh_direct(s->text, strlen(s->text), stages);
	CS_FREE char *self = n > 1 ? realpath("/proc/self/exe", NULL) : NULL;

	s->direct = n == 1 || self;
	if (!s->direct) {
		static const char *const bash[] = { "bash", "--norc", "--noprofile", "-c" };

		for (size_t i = 0; i < sizeof bash / sizeof *bash; i++)
			cs_strv_add(&s->argv, bash[i]);
		cs_strv_add(&s->argv, s->text);
	}
	if (self) {
		cs_strv_add(&s->argv, self);
		cs_strv_add(&s->argv, STAGES);
		cs_strv_add(&s->p.files_read, self); /* it must be there inside */
	}
	for (size_t i = 0; i < n; i++) {
		if (self)
			cs_strv_take(&s->argv, cs_printf("%zu", stages[i].n));
		for (size_t k = 0; s->direct && k < stages[i].n; k++)
			cs_strv_add(&s->argv, stages[i].v[k]);
		cs_strv_done(&stages[i]);
	}
}

/* ---- afterwards ---- */

static bool was_predicted(const struct sh *s, const char *workspace, const struct txn_change *c)
{
	CS_FREE char *path = cs_printf("%s/%s", workspace, c->path);

	for (size_t i = 0; i < s->v.n_effects; i++) {
		const struct sh_effect *e = &s->v.effects[i];
		size_t n = strlen(e->object);

		if ((e->kind == SH_EFFECT_WRITE || e->kind == SH_EFFECT_DELETE) && n && !strncmp(path, e->object, n) && (!path[n] || path[n] == '/'))
			return true;
	}
	return false;
}

static void compare(struct sh *s, struct session_result *res)
{
	struct txn_changes c = { 0 };
	struct cs_err err = { 0 };
	char shown[256];

	if (!res->txn || txn_scan_quick(res->txn, &c, &err) < 0)
		return;
	for (size_t i = 0; i < c.n; i++) {
		bool known;

		if (c.v[i].kind == TXN_CHANGED && S_ISDIR(c.v[i].new.mode) && !(c.v[i].differs & ~(unsigned)(TXN_TIMES | TXN_LINKS)))
			continue; /* something in it came or went */
		known = was_predicted(s, txn_about(res->txn)->workspace, &c.v[i]);

		*(known ? &s->expected : &s->unexpected) += 1;
		if (!known && s->unexpected <= 8)
			say_note("changed, and not predicted: %s", cs_escape_to(shown, sizeof shown, c.v[i].path));
	}
	if (s->unexpected > 8)
		say_note("changed, and not predicted: %zu more", s->unexpected - 8);
	txn_changes_done(&c);
}

static int write_result(const struct sh *s, const struct session_result *res, int code)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(16 << 20);
	CS_FD int fd = -1;
	struct cs_json j;

	if (!s->json)
		return code;
	cs_json_begin(&j, &out, true);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "command", s->text);
	cs_json_str(&j, "class", sh_class_name(s->v.class));
	cs_json_str(&j, "path", s->path);
	cs_json_i64(&j, "exit_code", code);
	cs_json_str(&j, "transaction", res && res->change.fate ? res->change.id : NULL);
	cs_json_str(&j, "fate", res ? res->change.fate : NULL);
	cs_json_u64(&j, "changes_predicted", s->expected);
	cs_json_u64(&j, "changes_not_predicted", s->unexpected);
	classify_json(&j, &s->v);
	cs_json_end(&j, '}');
	fd = open(s->json, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd < 0 || cs_write_all(fd, cs_buf_text(&out), out.len) < 0) {
		say_error("cannot write the result to %s", s->json);
		return code ? code : EXIT_REFUSED;
	}
	return code;
}

/* ---- the three ways ---- */

static int refuse(struct sh *s)
{
	char answer = 'n';

	tell_verdict(s);
	if (s->ask && change_can_ask())
		answer = change_ask("run it in a transaction all the same? [y/n] ", "yn");
	if (answer == 'y')
		return 0;
	s->path = "refused";
	say_error("refused; nothing was run (caisson classify shows the whole of it)");
	return -1;
}

static int run_safe(struct sh *s)
{
	static struct session_result res;
	struct session_opts o = { .profile = &s->p, .workspace = s->workspace, .argv = s->argv.v };
	int code;

	s->path = s->direct ? "safe, without a shell" : "safe";
	if (s->p.workspace != PROFILE_WS_NONE)
		s->p.workspace = PROFILE_WS_READ;
	s->p.commit = PROFILE_COMMIT_NEVER;
	profile_close_network(&s->p);
	code = session_run(&o, &res);
	if (res.err.code)
		say_error("%s", res.err.msg);
	code = write_result(s, &res, code);
	session_result_done(&res);
	return code;
}

static int run_in_transaction(struct sh *s)
{
	static struct session_result res;
	struct session_opts o = { .profile = &s->p, .workspace = s->workspace, .argv = s->argv.v };
	int code;

	s->path = "transaction";
	change_recover(s->workspace);
	code = session_run(&o, &res);
	if (res.err.code)
		say_error("%s", res.err.msg);
	compare(s, &res);
	if (code != 0 && !s->keep && res.txn) {
		session_discard(&res);
		say_note("it failed (status %d): what it changed was rolled back (--keep-failed keeps it)", code);
	} else if (res.txn) {
		if (s->p.commit == PROFILE_COMMIT_AUTO)
			s->p.commit = code == 0 && !s->unexpected ? PROFILE_COMMIT_ALWAYS : PROFILE_COMMIT_AUTO;
		(void)change_fate(&s->p, &res);
	}
	code = write_result(s, &res, code);
	session_result_done(&res);
	return code;
}

int cmd_sh(int argc, char **argv)
{
	struct sh s = { 0 };
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	int r = cli_parse_words(cli_find("sh"), argc, argv, take, &s, &words, &err), code;

	if (r >= 0 && words.n != 1)
		r = cs_fail(&err, CS_E_INVALID, 0, "one command line, as one word: caisson sh 'ls -l | wc -l'");
	if (r >= 0)
		r = profile_load(s.profile ? s.profile : "default", &s.p, &err);
	if (r >= 0)
		r = classify_policy(&s.p, s.workspace, &s.policy, &s.roots, &err);
	if (r < 0) {
		cs_strv_done(&words);
		return cli_usage_error(&err);
	}
	s.text = words.v[0];
	sh_classify(s.text, strlen(s.text), &s.policy, &s.v);
	make_argv(&s);
	if (s.v.class == SH_UNSAFE && refuse(&s) < 0)
		code = write_result(&s, NULL, EXIT_REFUSED);
	else
		code = s.v.class == SH_SAFE ? run_safe(&s) : run_in_transaction(&s);
	sh_verdict_done(&s.v);
	cs_strv_done(&words);
	cs_strv_done(&s.argv);
	cs_strv_done(&s.roots);
	profile_done(&s.p);
	return code;
}
