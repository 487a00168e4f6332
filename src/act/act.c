/* SPDX-License-Identifier: Apache-2.0 */
/* act.c - the three ways, and what becomes of what was changed. */
#include "act/act.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_REFUSED = 125, LISTED_MAX = 1000 };

struct act {
	const struct act_opts *o;
	struct act_result *r;
	struct profile p;          /* narrowed to what the way needs */
	struct act_policy policy;
	struct cs_strv argv;
	bool direct;               /* no shell is needed */
};

const char *act_way_name(enum act_way w)
{
	static const char *const names[] = {
#define X(id, name) [ACT_##id] = name,
		ACT_WAYS(X)
#undef X
	};
	return names[w];
}

const char *act_fate_name(enum act_fate f)
{
	static const char *const names[] = {
#define X(id, name) [ACT_FATE_##id] = name,
		ACT_FATES(X)
#undef X
	};
	return names[f];
}

/* ---- what is run ---- */

/* The command as words: its own; those of a pipeline, for ourselves to run (stages.c); or bash's. */
static void make_argv(struct act *a)
{
	struct cs_strv stages[SH_STAGES_MAX] = { 0 };
	size_t n = sh_direct(a->o->text, strlen(a->o->text), stages);
	const char *self = n > 1 ? a->o->self : NULL;

	a->direct = n == 1 || self;
	if (!a->direct) {
		static const char *const bash[] = { "bash", "--norc", "--noprofile", "-c" };

		for (size_t i = 0; i < sizeof bash / sizeof *bash; i++)
			cs_strv_add(&a->argv, bash[i]);
		cs_strv_add(&a->argv, a->o->text);
	}
	if (self) {
		cs_strv_add(&a->argv, self);
		cs_strv_add(&a->argv, ACT_STAGES);
		cs_strv_add(&a->p.files_read, self); /* it must be there inside */
	}
	for (size_t i = 0; i < n; i++) {
		if (self)
			cs_strv_take(&a->argv, cs_printf("%zu", stages[i].n));
		for (size_t k = 0; a->direct && k < stages[i].n; k++)
			cs_strv_add(&a->argv, stages[i].v[k]);
		cs_strv_done(&stages[i]);
	}
}

static void run(struct act *a)
{
	struct session_opts o = { .profile = &a->p, .workspace = a->o->workspace, .cwd = a->policy.policy.cwd, .argv = a->argv.v, .reached = true };
	struct act_result *r = a->r;

	make_argv(a);
	o.argv = a->argv.v;
	r->run = cs_new(struct session_result);
	r->exit_code = session_run(&o, r->run);
	if (r->run->err.code)
		r->err = r->run->err;
}

static void run_safe(struct act *a)
{
	if (a->p.workspace != PROFILE_WS_NONE)
		a->p.workspace = PROFILE_WS_READ;
	a->p.commit = PROFILE_COMMIT_NEVER;
	profile_close_network(&a->p);
	run(a);
	a->r->way = a->direct ? ACT_DIRECT : ACT_SAFE;
	session_discard(a->r->run); /* there is none: nothing can be written */
	act_compare(&a->r->verdict, "", NULL, a->r->run, &a->r->observed);
}

/* ---- what becomes of it ---- */

static void discard(struct act_result *r)
{
	struct cs_err err = { 0 };

	r->fate = ACT_FATE_ROLLED_BACK;
	if (txn_discard(r->txn, "rolled-back", &err) < 0) {
		r->fate = ACT_FATE_PENDING;
		r->err = err;
	}
}

static void keep(struct act_result *r)
{
	struct cs_err err = { 0 };

	r->fate = ACT_FATE_PENDING;
	if (txn_keep(r->txn, &r->changes, &err) < 0)
		r->err = err;
}

static void commit(struct act_result *r, struct txn_verdict *v)
{
	/* Since it was looked at somebody may have been asked, or have edited the workspace. */
	txn_changes_done(&r->changes);
	r->changes = (struct txn_changes){ 0 };
	txn_lock(r->txn);
	if (txn_scan_quick(r->txn, &r->changes, &r->err) >= 0 && txn_commit(r->txn, &r->changes, v, &r->outcome, &r->err) >= 0 &&
	    txn_state(r->txn) == TXN_COMMITTED)
		r->fate = ACT_FATE_COMMITTED;
	else
		keep(r);
}

static void ask(struct act *a)
{
	struct txn_verdict v = { 0 };
	enum act_answer answer = ACT_LATER;

	if (a->o->ask) {
		a->r->asked = true;
		answer = a->o->ask(ACT_MAY_COMMIT, a->r, &v.allow, a->o->arg);
	}
	if (answer == ACT_YES)
		commit(a->r, &v);
	else if (answer == ACT_NO)
		discard(a->r);
	else
		keep(a->r);
	cs_strv_done(&v.allow);
}

enum plan { PLAN_COMMIT, PLAN_ASK, PLAN_KEEP, PLAN_ROLLBACK };

/* commit.mode is about every run and can only make this stricter: what it would commit is still held against the prediction. */
static enum plan plan(const struct act *a)
{
	const struct profile *p = a->o->profile;
	const struct act_result *r = a->r;

	if (p->commit == PROFILE_COMMIT_NEVER)
		return PLAN_ROLLBACK;
	if (p->commit == PROFILE_COMMIT_KEEP || (p->commit == PROFILE_COMMIT_ON_SUCCESS && r->exit_code))
		return PLAN_KEEP;
	if ((r->observed.unexpected || r->observed.partly) && p->shell.unexpected == PROFILE_UNEXPECTED_ROLLBACK)
		return PLAN_ROLLBACK;
	if (p->commit == PROFILE_COMMIT_ASK || p->shell.uncertain != PROFILE_UNCERTAIN_COMMIT)
		return PLAN_ASK;
	if ((r->observed.unexpected || r->observed.partly) && p->shell.unexpected != PROFILE_UNEXPECTED_COMMIT)
		return PLAN_ASK;
	return r->exit_code && p->commit != PROFILE_COMMIT_ALWAYS ? PLAN_ASK : PLAN_COMMIT;
}

static void judge_changes(struct act *a)
{
	struct act_result *r = a->r;
	struct txn_verdict none = { 0 };

	if (r->exit_code && !a->o->keep_failed) {
		r->failed = true;
		discard(r);
		return;
	}
	switch (plan(a)) {
	case PLAN_COMMIT: commit(r, &none); break;
	case PLAN_ASK: ask(a); break;
	case PLAN_KEEP: keep(r); break;
	case PLAN_ROLLBACK: discard(r); break;
	}
}

static void run_in_transaction(struct act *a)
{
	struct act_result *r = a->r;
	const char *workspace = a->policy.policy.workspace;
	struct cs_err err = { 0 };

	if (a->p.workspace == PROFILE_WS_WRITE)
		a->p.workspace = PROFILE_WS_LAYER;
	a->p.commit = PROFILE_COMMIT_KEEP; /* so that there is one to look at; what becomes of it is ours to say */
	r->way = ACT_TRANSACTION;
	(void)txn_recover(a->o->workspace, a->o->said, a->o->arg);
	run(a);
	r->txn = CS_TAKE_PTR(r->run->txn);
	if (r->txn && txn_scan_quick(r->txn, &r->changes, &err) < 0) {
		r->err = err;
		r->observed.partly = true;
		keep(r);
		return;
	}
	act_compare(&r->verdict, workspace ? workspace : "", &r->changes, r->run, &r->observed);
	if (!r->txn)
		return;
	if (txn_changes_nothing(&r->changes))
		(void)txn_discard(r->txn, "empty", &err); /* opened for writing and left as it was; made and removed again */
	else
		judge_changes(a);
}

/* ---- the whole ---- */

static bool may_run(struct act *a)
{
	const struct profile_shell *s = &a->o->profile->shell;

	if (a->r->verdict.class == SH_UNCERTAIN)
		return s->uncertain != PROFILE_UNCERTAIN_REFUSE;
	if (a->r->verdict.class == SH_SAFE)
		return true;
	if (s->unsafe != PROFILE_UNSAFE_ASK || !a->o->ask)
		return false;
	a->r->asked = true;
	return a->o->ask(ACT_MAY_RUN, a->r, NULL, a->o->arg) == ACT_YES;
}

int act_run(const struct act_opts *o, struct act_result *ret)
{
	struct act a = { .o = o, .r = ret };
	struct act_policy_opts po = { .profile = o->profile, .workspace = o->workspace, .roots = true, .really = true };

	*ret = (struct act_result){ .way = ACT_REFUSED, .exit_code = EXIT_REFUSED, .verdict = { .class = SH_UNSAFE } };
	if (act_policy_make(&po, &a.policy, &ret->err) < 0)
		return ret->exit_code;
	profile_copy(o->profile, &a.p);
	act_classify(&a.policy, o->text, strlen(o->text), &ret->verdict);
	if (o->judged)
		o->judged(ret, o->arg);
	if (may_run(&a)) {
		if (ret->verdict.class == SH_SAFE)
			run_safe(&a);
		else
			run_in_transaction(&a);
	}
	act_policy_done(&a.policy);
	profile_done(&a.p);
	cs_strv_done(&a.argv);
	return ret->exit_code;
}

void act_result_done(struct act_result *r)
{
	sh_verdict_done(&r->verdict);
	act_observed_done(&r->observed);
	txn_changes_done(&r->changes);
	txn_close(r->txn);
	if (r->run)
		session_result_done(r->run);
	free(r->run);
	*r = (struct act_result){ 0 };
}

/* ---- for programs ---- */

static size_t count_unexpected(const struct act_seen *v, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += !v[i].predicted;
	return found;
}

static void list_seen(struct cs_json *j, const char *key, const char *name, const struct act_seen *v, size_t n, bool hosts)
{
	cs_json_array(j, key);
	for (size_t i = 0; i < n && i < LISTED_MAX; i++) {
		cs_json_object(j, NULL);
		cs_json_str(j, name, v[i].what);
		cs_json_bool(j, "predicted", v[i].predicted);
		if (hosts) {
			cs_json_bool(j, "refused", v[i].refused);
			cs_json_bool(j, "lookup", v[i].lookup);
		}
		cs_json_end(j, '}');
	}
	cs_json_end(j, ']');
}

void act_result_json(const struct act_opts *o, const struct act_result *r, struct cs_buf *out)
{
	const struct act_observed *seen = &r->observed;
	size_t strange = count_unexpected(seen->files, seen->n_files);
	struct cs_json j;

	cs_json_begin(&j, out, true);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "command", o->text);
	cs_json_str(&j, "class", sh_class_name(r->verdict.class));
	cs_json_str(&j, "path", act_way_name(r->way));
	cs_json_bool(&j, "asked", r->asked);
	cs_json_i64(&j, "exit_code", r->exit_code);
	cs_json_str(&j, "error", r->err.code ? r->err.msg : NULL);
	cs_json_str(&j, "transaction", r->txn && r->fate ? txn_about(r->txn)->id : NULL);
	cs_json_str(&j, "fate", act_fate_name(r->fate));
	cs_json_u64(&j, "changes_predicted", seen->n_files - strange);
	cs_json_u64(&j, "changes_not_predicted", strange);
	cs_json_u64(&j, "hosts_not_predicted", count_unexpected(seen->hosts, seen->n_hosts));
	cs_json_object(&j, "observed");
	list_seen(&j, "files", "path", seen->files, seen->n_files, false);
	list_seen(&j, "hosts", "host", seen->hosts, seen->n_hosts, true);
	cs_json_bool(&j, "partly", seen->partly || seen->n_files > LISTED_MAX || seen->n_hosts > LISTED_MAX);
	cs_json_end(&j, '}');
	act_verdict_json(&j, &r->verdict);
	cs_json_end(&j, '}');
}
