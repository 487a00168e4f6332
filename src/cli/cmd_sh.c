/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sh.c - caisson sh: one command line, looked at before it runs.  What is done is in act/; here it is asked and told. */
#include "act/act.h"
#include "cli/change.h"
#include "cli/cli.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/say.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_REFUSED = 125, SHOWN_MAX = 8 };

struct sh {
	const char *profile, *json;
	struct cs_strv keys, values, origins; /* of the profile, in order */
	struct act_opts o;
};

static void override(struct sh *s, const char *key, const char *value, const char *name)
{
	cs_strv_add(&s->keys, key);
	cs_strv_add(&s->values, value);
	cs_strv_take(&s->origins, cs_printf("--%s", name));
}

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct sh *s = arg;

	(void)err;
	if (opt->key)
		override(s, opt->key, value ? value : "ask", opt->name); /* --ask is short for --unsafe ask */
	else if (!strcmp(opt->name, "profile"))
		s->profile = value;
	else if (!strcmp(opt->name, "workspace"))
		s->o.workspace = value;
	else if (!strcmp(opt->name, "json"))
		s->json = value;
	else if (!strcmp(opt->name, "keep-failed"))
		s->o.keep_failed = true;
	else if (!strcmp(opt->name, "quiet"))
		say_set_level(SAY_QUIET);
	return 0;
}

static int load_profile(const struct sh *s, struct profile *p, struct cs_err *err)
{
	int r = profile_load(s->profile ? s->profile : "default", p, err);

	for (size_t i = 0; i < s->keys.n && r >= 0; i++)
		r = profile_set(p, s->keys.v[i], s->values.v[i], s->origins.v[i], err);
	return r;
}

/* ---- telling ---- */

static void tell_verdict(const struct act_result *r, bool reasons)
{
	const struct sh_verdict *v = &r->verdict;
	char object[256];

	for (size_t i = 0; i < v->n_effects; i++)
		if (v->effects[i].forbidden)
			say_error("%s: %s %s: %s", sh_class_name(v->class), sh_effect_name(v->effects[i].kind),
				  cs_escape_to(object, sizeof object, v->effects[i].object[0] ? v->effects[i].object : "(not known)"), v->effects[i].why);
	for (size_t i = 0; reasons && i < v->n_reasons && i < SHOWN_MAX; i++)
		say_error("%s: %s", sh_class_name(v->class), v->reasons[i].text); /* escaped when it was made */
}

/* What was thought, for who reads what was not. */
static void tell_predicted(const struct act_result *r)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(2048);
	size_t n = 0;

	for (size_t i = 0; i < r->verdict.n_effects; i++) {
		const struct sh_effect *e = &r->verdict.effects[i];

		if (e->kind == SH_EFFECT_READ || n++ >= SHOWN_MAX)
			continue;
		cs_buf_fmt(&text, "%s%s ", text.len ? ", " : "", sh_effect_name(e->kind));
		cs_escape(&text, e->object[0] ? e->object : "(not known)");
	}
	if (n > SHOWN_MAX)
		cs_buf_fmt(&text, " and %zu more", n - SHOWN_MAX);
	say_note("predicted: %s", n ? cs_buf_text(&text) : "nothing but reading");
}

static void tell_files(const struct act_observed *o)
{
	char shown[256];
	size_t n = 0;

	for (size_t i = 0; i < o->n_files; i++)
		if (!o->files[i].predicted && n++ < SHOWN_MAX)
			say_note("changed, and not predicted: %s", cs_escape_to(shown, sizeof shown, o->files[i].what));
	if (n > SHOWN_MAX)
		say_note("changed, and not predicted: %zu more", n - SHOWN_MAX);
}

static void tell_hosts(const struct act_observed *o)
{
	for (size_t i = 0; i < o->n_hosts && i < SHOWN_MAX; i++) {
		const struct act_seen *h = &o->hosts[i];

		/* A name has no port; the server that would have been asked for one has. */
		say_note("%s, and %spredicted: %s%s", !h->refused ? "reached" : h->lookup ? "tried to look up and refused" : "tried to reach and refused",
			 h->predicted ? "" : "not ", h->lookup && strchr(h->what, ':') ? "a name, asked of " : "", h->what);
	}
	if (o->n_hosts > SHOWN_MAX)
		say_note("and %zu more hosts; --json lists them", o->n_hosts - SHOWN_MAX);
}

/* Of those that were refused, what would allow them. */
static void tell_allowing(const struct act_result *r)
{
	if (!r->observed.n_hosts || !r->run || r->run->network.on)
		return;
	if (r->way == ACT_TRANSACTION)
		say_note("this sandbox has no network: `network: {allow: [NAME]}` in a profile (-p FILE) gives it one name");
	else
		say_note("what is judged to be safe has no network");
}

static void tell_observed(const struct act_result *r)
{
	const struct act_observed *o = &r->observed;

	if (o->unexpected)
		tell_predicted(r);
	tell_files(o);
	tell_hosts(o);
	tell_allowing(r);
	if (o->partly)
		say_note("not all that it did over the network can be told: that counts as not predicted");
}

static void tell_fate(const struct act_result *r)
{
	switch (r->fate) {
	case ACT_FATE_NONE:
		break;
	case ACT_FATE_COMMITTED:
		change_tell_committed(r->txn, &r->changes, &r->outcome);
		break;
	case ACT_FATE_PENDING:
		if (r->err.code == CS_E_CONFLICT && r->changes.conflicts)
			change_tell_conflicts(r->txn, &r->changes);
		change_tell_pending(r->txn, &r->changes);
		break;
	case ACT_FATE_ROLLED_BACK:
		if (r->failed)
			say_note("it failed (status %d): what it changed was rolled back (--keep-failed keeps it)", r->exit_code);
		else
			say_note("what it changed was rolled back");
		break;
	}
}

static void tell(const struct act_result *r)
{
	if (r->err.code)
		say_error("%s", r->err.msg);
	if (r->way == ACT_REFUSED && !r->err.code) {
		if (!r->asked)
			tell_verdict(r, r->verdict.class != SH_UNSAFE);
		say_error("refused; nothing was run (caisson classify shows the whole of it)");
	}
	if (r->way == ACT_REFUSED)
		return;
	if (!(r->asked && r->txn && r->fate)) /* else it was told before the question */
		tell_observed(r);
	tell_fate(r);
}

/* ---- asking ---- */

static enum act_answer ask(enum act_question q, const struct act_result *r, struct cs_strv *allow, void *arg)
{
	struct txn_verdict v = { 0 };
	char answer;

	(void)arg;
	if (q == ACT_MAY_RUN) {
		tell_verdict(r, false);
		return change_ask("run it in a transaction all the same? [y/n] ", "yn") == 'y' ? ACT_YES : ACT_NO;
	}
	tell_observed(r);
	answer = change_ask_commit(r->txn, &r->changes);
	if (answer == 'y' && r->changes.held)
		change_ask_held(&r->changes, &v);
	cs_strv_copy(allow, &v.allow);
	change_verdict_done(&v);
	return answer == 'y' ? ACT_YES : answer == 'n' ? ACT_NO : ACT_LATER;
}

static void said(const char *line, void *arg)
{
	(void)arg;
	say_error("%s", line); /* shown with --quiet, too: it says what happened to somebody's files */
}

/* ---- the command ---- */

/* Before anything runs, so that a bad path costs nothing, and what a command has put there since is not followed. */
static int open_result(const char *path, struct cs_err *err)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, fd;
	char shown[256];

	if (strncmp(path, "/dev/", 5) && strncmp(path, "/proc/", 6))
		flags |= O_NOFOLLOW;
	fd = open(path, flags, 0644);
	if (fd < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "--json '%s'", cs_escape_to(shown, sizeof shown, path));
	(void)fcntl(fd, F_SETFL, 0); /* not O_NONBLOCK any more */
	return fd;
}

static int write_result(const struct sh *s, int fd, const struct act_result *r)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(16 << 20);
	struct stat st;

	if (fd < 0)
		return r->exit_code;
	act_result_json(&s->o, r, &out);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && strncmp(s->json, "/dev/", 5))
		(void)!ftruncate(fd, 0);
	if (out.over || cs_write_all(fd, cs_buf_text(&out), out.len) < 0) {
		say_error("cannot write the result to %s", s->json);
		return r->exit_code ? r->exit_code : EXIT_REFUSED;
	}
	return r->exit_code;
}

static int run(struct sh *s)
{
	CS_FREE char *self = realpath("/proc/self/exe", NULL);
	struct cs_err err = { 0 };
	CS_FD int fd = s->json ? open_result(s->json, &err) : -1;
	struct act_result r;
	int code;

	if (s->json && fd < 0)
		return cli_usage_error(&err);
	s->o.self = self;
	s->o.ask = change_can_ask() ? ask : NULL;
	s->o.said = said;
	(void)act_run(&s->o, &r);
	tell(&r);
	code = write_result(s, fd, &r);
	act_result_done(&r);
	return code;
}

int cmd_sh(int argc, char **argv)
{
	struct sh s = { 0 };
	struct cs_strv words = { 0 };
	struct profile p = { 0 };
	struct cs_err err = { 0 };
	int r = cli_parse_words(cli_find("sh"), argc, argv, take, &s, &words, &err);

	if (r >= 0 && words.n != 1)
		r = cs_fail(&err, CS_E_INVALID, 0, "one command line, as one word: caisson sh 'ls -l | wc -l'");
	if (r >= 0)
		r = load_profile(&s, &p, &err);
	s.o.profile = &p;
	s.o.text = words.n ? words.v[0] : NULL;
	r = r < 0 ? cli_usage_error(&err) : run(&s);
	cs_strv_done(&words);
	cs_strv_done(&s.keys);
	cs_strv_done(&s.values);
	cs_strv_done(&s.origins);
	profile_done(&p);
	return r;
}
