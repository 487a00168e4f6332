/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_txn.c - caisson txn, commit, rollback, undo and log. */
#include "cli/change.h"
#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/say.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int failed(const struct cs_err *err)
{
	say_error("%s", err->msg);
	return cs_code_exit(err->code);
}

static int print(const struct cs_buf *b)
{
	return cs_write_all(STDOUT_FILENO, cs_buf_text(b), b->len) < 0 ? 125 : 0;
}

/* ---- txn list ---- */

struct listing {
	struct cs_json *json;
	struct cs_buf *out;
	unsigned n;
};

static void list_json(struct cs_json *j, const struct txn_entry *e)
{
	cs_json_object(j, NULL);
	cs_json_str(j, "id", e->about->id);
	cs_json_str(j, "state", txn_state_name(e->state));
	cs_json_bool(j, "busy", e->busy);
	cs_json_u64(j, "created", e->about->created);
	cs_json_str(j, "workspace", e->about->workspace);
	cs_json_str(j, "profile", e->about->profile);
	cs_json_str(j, "command", e->about->command);
	cs_json_end(j, '}');
}

/* In seconds at first, then in minutes. */
static uint64_t age_ms(uint64_t s)
{
	return (s < 60 ? s : s / 60 * 60) * 1000;
}

static int list_one(const struct txn_entry *e, void *arg)
{
	struct listing *l = arg;
	char age[32], where[256];
	uint64_t now = (uint64_t)time(NULL);

	if (l->json) {
		list_json(l->json, e);
		return 0;
	}
	if (l->n++ == 0)
		cs_buf_fmt(l->out, "%-10s %-10s %-6s %-32s %s\n", "ID", "STATE", "AGE", "WORKSPACE", "COMMAND");
	cs_format_duration(age, sizeof age, age_ms(now > e->about->created ? now - e->about->created : 0));
	cs_buf_fmt(l->out, "%-10s %-10s %-6s %-32s %s\n", e->about->id, txn_state_name(e->state), age,
		   cs_escape_to(where, sizeof where, e->about->workspace), e->about->command);
	return 0;
}

struct txn_args {
	bool json, all;
};

static int txn_list_command(const struct txn_args *a)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(64 << 20);
	struct cs_json j = { 0 };
	struct listing l = { .json = a->json ? &j : NULL, .out = &out };

	if (a->json) {
		cs_json_begin(&j, &out, true);
		cs_json_array(&j, NULL);
	}
	(void)txn_list(a->all ? NULL : ".", list_one, &l); /* list_one() never stops it */
	if (a->json)
		cs_json_end(&j, ']');
	else if (!l.n)
		say_note("no transactions %s", a->all ? "at all" : "in this workspace (--all shows those elsewhere)");
	return print(&out);
}

/* ---- txn show ---- */

static void show_json(const struct txn *t, const struct txn_changes *c, struct cs_buf *out)
{
	const struct txn_about *a = txn_about(t);
	struct cs_json j;

	cs_json_begin(&j, out, true);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "id", a->id);
	cs_json_str(&j, "state", txn_state_name(txn_state(t)));
	cs_json_str(&j, "workspace", a->workspace);
	cs_json_str(&j, "profile", a->profile);
	cs_json_str(&j, "command", a->command);
	cs_json_u64(&j, "created", a->created);
	cs_json_u64(&j, "added", c->added);
	cs_json_u64(&j, "changed", c->changed);
	cs_json_u64(&j, "deleted", c->deleted);
	cs_json_u64(&j, "bytes", c->bytes);
	cs_json_array(&j, "held");
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].hold) {
			cs_json_object(&j, NULL);
			cs_json_str(&j, "path", c->v[i].path);
			cs_json_str(&j, "why", txn_hold_text(c->v[i].hold));
			cs_json_end(&j, '}');
		}
	cs_json_end(&j, ']');
	cs_json_array(&j, "conflicts");
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].conflict) {
			cs_json_object(&j, NULL);
			cs_json_str(&j, "path", c->v[i].path);
			cs_json_str(&j, "why", txn_conflict_text(c->v[i].conflict));
			cs_json_end(&j, '}');
		}
	cs_json_end(&j, ']');
	cs_json_end(&j, '}');
}

static void show_text(const struct txn *t, const struct txn_changes *c, struct cs_buf *out)
{
	const struct txn_about *a = txn_about(t);
	char text[128], when[64] = "", shown[512];
	time_t made = (time_t)a->created;
	struct tm tm;

	change_summary(c, text, sizeof text);
	if (localtime_r(&made, &tm))
		(void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
	cs_buf_fmt(out, "%s  %s  %s\n", a->id, txn_state_name(txn_state(t)), when);
	cs_buf_fmt(out, "  workspace  %s\n", cs_escape_to(shown, sizeof shown, a->workspace));
	cs_buf_fmt(out, "  command    %s\n", a->command);
	cs_buf_fmt(out, "  pending    %s\n", text);
	for (size_t i = 0; i < c->n; i++) {
		cs_escape_to(shown, sizeof shown, c->v[i].path);
		if (c->v[i].hold)
			cs_buf_fmt(out, "  held       %s: %s\n", shown, txn_hold_text(c->v[i].hold));
		if (c->v[i].conflict)
			cs_buf_fmt(out, "  conflict   %s: %s\n", shown, txn_conflict_text(c->v[i].conflict));
	}
}

static int txn_show_command(const struct txn_args *a, const char *id)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(64 << 20);
	struct cs_err err = { 0 };
	struct txn_changes c;
	struct txn *t;

	if (txn_find(id, ".", &t, &err) < 0)
		return failed(&err);
	if (txn_scan_quick(t, &c, &err) < 0) {
		txn_close(t);
		return failed(&err);
	}
	(a->json ? show_json : show_text)(t, &c, &out);
	txn_changes_done(&c);
	txn_close(t);
	return print(&out);
}

static int take_txn(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct txn_args *a = arg;

	(void)value, (void)err;
	a->json |= !strcmp(opt->name, "json");
	a->all |= !strcmp(opt->name, "all");
	return 0;
}

static int txn_command(struct cs_strv *words, const struct txn_args *a)
{
	static const char *const names[] = { "list", "show" };
	struct cs_err err = { 0 };
	const char *what = words->n ? words->v[0] : "list", *near;
	char shown[64];

	if (!strcmp(what, "list") && words->n <= 1)
		return txn_list_command(a);
	if (!strcmp(what, "show") && words->n <= 2)
		return txn_show_command(a, words->n > 1 ? words->v[1] : NULL);
	near = cs_nearest(what, names, 2);
	if (near && !strcmp(near, what))
		(void)cs_fail(&err, CS_E_INVALID, 0, "too many words: caisson txn list, or caisson txn show [ID]");
	else
		(void)cs_fail(&err, CS_E_INVALID, 0, "`caisson txn %s`: use list or show [ID]%s%s%s", cs_escape_to(shown, sizeof shown, what),
			      near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	return cli_usage_error(&err);
}

int cmd_txn(int argc, char **argv)
{
	struct txn_args a = { 0 };
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	int code;

	if (cli_parse_words(cli_find("txn"), argc, argv, take_txn, &a, &words, &err) < 0) {
		code = cli_usage_error(&err);
	} else {
		change_recover(NULL);
		code = txn_command(&words, &a);
	}
	cs_strv_done(&words);
	return code;
}

/* ---- commit ---- */

struct commit_args {
	struct txn_verdict v;
	struct cs_strv allow, ours, theirs; /* as typed */
	bool yes;
};

static int take_commit(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct commit_args *a = arg;

	(void)err;
	if (!strcmp(opt->name, "allow"))
		cs_strv_add(&a->allow, value);
	else if (!strcmp(opt->name, "ours"))
		a->v.conflicts = TXN_OURS;
	else if (!strcmp(opt->name, "theirs"))
		a->v.conflicts = TXN_THEIRS;
	else if (!strcmp(opt->name, "ours-for"))
		cs_strv_add(&a->ours, value);
	else if (!strcmp(opt->name, "theirs-for"))
		cs_strv_add(&a->theirs, value);
	else if (!strcmp(opt->name, "yes"))
		a->yes = true;
	else if (!strcmp(opt->name, "quiet"))
		say_set_level(SAY_QUIET);
	return 0;
}

static int commit_paths(const struct txn *t, struct commit_args *a, const struct cs_strv *words, struct cs_err *err)
{
	int r = change_paths(t, words, &a->v.paths, err);

	if (r == 0)
		r = change_paths(t, &a->ours, &a->v.ours, err);
	if (r == 0)
		r = change_paths(t, &a->theirs, &a->v.theirs, err);
	if (r == 0 && cs_strv_has(&a->allow, "*"))
		cs_strv_add(&a->v.allow, "*");
	else if (r == 0)
		r = change_paths(t, &a->allow, &a->v.allow, err);
	return r;
}

static bool is_changed_at(const struct txn_changes *c, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < c->n; i++)
		if (!strncmp(c->v[i].path, path, n) && (!c->v[i].path[n] || c->v[i].path[n] == '/'))
			return true;
	return false;
}

/* A path that nothing changed at is a slip of the keyboard; if all are, there is nothing to do. */
static int check_paths(const struct txn_changes *c, const struct cs_strv *paths, struct cs_err *err)
{
	size_t idle = 0;
	char shown[256];

	for (size_t i = 0; i < paths->n; i++)
		if (!is_changed_at(c, paths->v[i])) {
			idle++;
			say_note("nothing is changed at '%s'", cs_escape_to(shown, sizeof shown, paths->v[i]));
		}
	return idle && idle == paths->n ? cs_fail(err, CS_E_NOT_FOUND, 0, "nothing to commit there; `caisson diff --name-status` lists what is changed") : 0;
}

static int commit_found(struct txn *t, struct commit_args *a, const struct cs_strv *words)
{
	struct cs_err err = { 0 };
	struct txn_changes c = { 0 };
	int code;

	if (commit_paths(t, a, words, &err) < 0)
		return cli_usage_error(&err);
	txn_lock(t);
	if (txn_check(t, &err) < 0 || txn_scan_quick(t, &c, &err) < 0)
		return failed(&err);
	if (check_paths(&c, &a->v.paths, &err) < 0) {
		txn_changes_done(&c);
		return failed(&err);
	}
	if (txn_changes_nothing(&c)) {
		say_note("%s has nothing%s to commit", txn_about(t)->id, txn_state(t) == TXN_COMMITTED ? " left" : "");
		txn_changes_done(&c);
		return 0;
	}
	code = change_commit(t, &c, &a->v, !a->yes && !a->allow.n && change_can_ask());
	txn_changes_done(&c);
	return code;
}

int cmd_commit(int argc, char **argv)
{
	struct commit_args a = { 0 };
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	CS_FREE char *id = NULL;
	struct txn *t;
	int code;

	if (cli_parse_words(cli_find("commit"), argc, argv, take_commit, &a, &words, &err) < 0) {
		code = cli_usage_error(&err);
	} else {
		change_recover(NULL);
		id = change_take_id(&words);
		if (txn_find(id, ".", &t, &err) < 0) {
			code = failed(&err);
		} else {
			code = commit_found(t, &a, &words);
			txn_close(t);
		}
	}
	change_verdict_done(&a.v);
	cs_strv_done(&a.allow);
	cs_strv_done(&a.ours);
	cs_strv_done(&a.theirs);
	cs_strv_done(&words);
	return code;
}

/* ---- rollback and undo ---- */

static int take_quiet(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	(void)value, (void)arg, (void)err;
	if (!strcmp(opt->name, "quiet"))
		say_set_level(SAY_QUIET);
	return 0;
}

/* What a commit left: held back, or not asked for. */
static int drop_rest(struct txn *t)
{
	const char *id = txn_about(t)->id;
	struct txn_changes c = { 0 };
	struct cs_err err = { 0 };
	char text[128];
	bool none;

	if (txn_scan_quick(t, &c, &err) < 0)
		return failed(&err);
	none = txn_changes_nothing(&c);
	change_summary(&c, text, sizeof text);
	txn_changes_done(&c);
	if (none) {
		say_error("%s is committed: `caisson undo %s` takes it back", id, id);
		return 1;
	}
	if (txn_drop_rest(t, &err) < 0)
		return failed(&err);
	say_note("%s  rolled back what was not committed: %s; what was committed stays (caisson undo %s makes all of it pending again)", id, text, id);
	return 0;
}

static int roll_back(struct txn *t)
{
	struct cs_err err = { 0 };
	char id[TXN_ID_MAX];

	snprintf(id, sizeof id, "%s", txn_about(t)->id);
	if (txn_state(t) == TXN_COMMITTED)
		return drop_rest(t);
	if (txn_discard(t, "rolled-back", &err) < 0)
		return failed(&err);
	say_note("%s  rolled back: what was written is gone, the workspace was not touched", id);
	return 0;
}

static int undo(struct txn *t)
{
	struct cs_strv conflicts = { 0 };
	struct txn_outcome done;
	struct cs_err err = { 0 };
	const char *id = txn_about(t)->id;
	int r = txn_undo(t, &conflicts, &done, &err);

	if (r < 0) {
		say_error("%s: %s", id, err.msg);
		for (size_t i = 0; i < conflicts.n && i < 20; i++) {
			char shown[256];

			say_error("  %s", cs_escape_to(shown, sizeof shown, conflicts.v[i]));
		}
		if (conflicts.n > 20)
			say_error("  and %zu more", conflicts.n - 20);
	} else {
		say_note("%s  undone: %zu removed, %zu restored, %zu brought back; it is pending again (caisson commit or rollback %s)", id, done.added,
			 done.changed, done.deleted, id);
	}
	cs_strv_done(&conflicts);
	return r < 0 ? cs_code_exit(err.code) : 0;
}

static int on_one(const char *command, int argc, char **argv, int (*act)(struct txn *))
{
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	CS_FREE char *id = NULL;
	struct txn *t;
	int code;

	if (cli_parse_words(cli_find(command), argc, argv, take_quiet, NULL, &words, &err) < 0) {
		code = cli_usage_error(&err);
	} else {
		id = change_take_id(&words);
		change_recover(NULL);
		if (words.n) {
			char shown[128];

			(void)cs_fail(&err, CS_E_INVALID, 0, "`caisson %s` takes one ID (t-...)%s, not '%s'", command,
				      strcmp(command, "rollback") ? "" : " or ID@STEP with a step's number", cs_escape_to(shown, sizeof shown, words.v[0]));
			code = cli_usage_error(&err);
		} else if (txn_find(id, ".", &t, &err) < 0) {
			code = failed(&err);
		} else {
			code = act(t);
			txn_close(t);
		}
	}
	cs_strv_done(&words);
	return code;
}

/* "t-4k2q@3": a live session goes back to before its third step. */
static bool is_step(const char *word, char id[TXN_ID_MAX], uint64_t *step)
{
	const char *at = strchr(word, '@');

	if (!at || at - word >= TXN_ID_MAX || cs_parse_u64(at + 1, step) < 0 || *step > UINT32_MAX)
		return false;
	snprintf(id, TXN_ID_MAX, "%.*s", (int)(at - word), word);
	return true;
}

static int roll_back_to(const char *id, uint64_t step)
{
	struct cs_err err = { 0 };

	if (session_rollback(id, (uint32_t)step, &err) < 0)
		return failed(&err);
	say_note("%s  is as it was before step %llu", id, (unsigned long long)step);
	return 0;
}

int cmd_rollback(int argc, char **argv)
{
	char id[TXN_ID_MAX];
	uint64_t step;

	for (int i = 1; i < argc; i++)
		if (argc == 2 && is_step(argv[i], id, &step))
			return roll_back_to(id, step);
	return on_one("rollback", argc, argv, roll_back);
}

int cmd_undo(int argc, char **argv)
{
	return on_one("undo", argc, argv, undo);
}

/* ---- log ---- */

struct log_out {
	struct cs_json *json;
	struct cs_buf *out;
};

static void log_line(const char *text, void *arg)
{
	struct log_out *l = arg;
	char when[32], id[32], event[32];
	int at = 0;

	if (sscanf(text, "%31s %31s %31s %n", when, id, event, &at) != 3)
		return;
	if (!l->json) {
		cs_buf_fmt(l->out, "%s\n", text);
		return;
	}
	cs_json_object(l->json, NULL);
	cs_json_str(l->json, "time", when);
	cs_json_str(l->json, "id", id);
	cs_json_str(l->json, "event", event);
	cs_json_str(l->json, "detail", text + at);
	cs_json_end(l->json, '}');
}

int cmd_log(int argc, char **argv)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(256 << 20);
	struct txn_args a = { 0 };
	struct cs_strv words = { 0 };
	struct cs_json j = { 0 };
	struct log_out l = { .out = &out };
	struct cs_err err = { 0 };
	int r = cli_parse_words(cli_find("log"), argc, argv, take_txn, &a, &words, &err);

	if (r == 0 && words.n)
		r = cs_fail(&err, CS_E_INVALID, 0, "`caisson log` takes no argument");
	cs_strv_done(&words);
	if (r < 0)
		return cli_usage_error(&err);
	change_recover(NULL);
	if (a.json) {
		l.json = &j;
		cs_json_begin(&j, &out, true);
		cs_json_array(&j, NULL);
	}
	txn_log(a.all ? NULL : ".", log_line, &l);
	if (a.json)
		cs_json_end(&j, ']');
	return print(&out);
}
