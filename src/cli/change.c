/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/change.h"

#include "base/cleanup.h"
#include "base/say.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say_line(const char *line, void *arg)
{
	(void)arg;
	say_error("%s", line); /* shown with --quiet, too: it says what happened to somebody's files */
}

void change_recover(const char *workspace)
{
	(void)txn_recover(workspace, say_line, NULL); /* each is named */
}

/* A file of such a name is ./t-4k2q. */
static bool is_id(const char *word)
{
	return !strncmp(word, "t-", 2) && word[2] && strspn(word + 2, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(word + 2);
}

char *change_take_id(struct cs_strv *words)
{
	char *id;

	if (!words->n || !is_id(words->v[0]))
		return NULL;
	id = words->v[0];
	words->n--;
	memmove(words->v, words->v + 1, words->n * sizeof *words->v);
	words->v[words->n] = NULL;
	return id;
}

/* ---- paths ---- */

/* Takes "." and ".." out by their words alone: the path may exist only in the layer. */
static char *normal(const char *path)
{
	char *out = cs_calloc(1, strlen(path) + 2);
	size_t len = 0;

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && !strncmp(path, "..", 2)) {
			while (len && out[--len] != '/')
				;
		} else if (n && !(n == 1 && *path == '.')) {
			out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
		}
		out[len] = 0;
		path += n + (path[n] == '/');
	}
	return out;
}

static const char *beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strncmp(path, dir, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return path[n] ? path + n + 1 : path + n;
}

int change_paths(const struct txn *t, const struct cs_strv *words, struct cs_strv *ret, struct cs_err *err)
{
	CS_FREE char *here = realpath(".", NULL);
	const char *ws = txn_about(t)->workspace;

	for (size_t i = 0; i < words->n; i++) {
		CS_FREE char *joined = words->v[i][0] == '/' ? cs_strdup(words->v[i]) : cs_printf("%s/%s", here ? here : "", words->v[i]);
		CS_FREE char *path = normal(joined), *from_ws = NULL, *rooted = NULL;
		const char *rel = beneath(path, ws);
		char shown[256];

		if (!rel && words->v[i][0] != '/') { /* typed elsewhere: as beneath the workspace */
			rooted = cs_printf("%s/%s", ws, words->v[i]);
			from_ws = normal(rooted);
			rel = beneath(from_ws, ws);
		}
		if (!rel)
			return cs_fail(err, CS_E_INVALID, 0, "'%s' is not in the workspace of %s, %s", cs_escape_to(shown, sizeof shown, words->v[i]),
				       txn_about(t)->id, ws);
		if (*rel)
			cs_strv_add(ret, rel);
	}
	return 0;
}

/* ---- telling ---- */

void change_summary(const struct txn_changes *c, char *ret, size_t size)
{
	char bytes[32];

	cs_format_size(bytes, sizeof bytes, c->bytes);
	snprintf(ret, size, "%zu added, %zu changed, %zu deleted (%s)", c->added, c->changed, c->deleted, bytes);
}

static void tell_path(const char *path, const char *what)
{
	char shown[512];

	say_error("  %s: %s", cs_escape_to(shown, sizeof shown, path), what);
}

void change_tell_held(const struct txn *t, const struct txn_changes *c)
{
	enum { SHOWN = 20 };
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].hold && n++ < SHOWN)
			tell_path(c->v[i].path, txn_hold_text(c->v[i].hold));
	if (n > SHOWN)
		say_error("  and %zu more; `caisson txn show %s` lists all", n - SHOWN, txn_about(t)->id);
}

static void describe(const struct txn_side *s, char *ret, size_t size)
{
	char bytes[32];

	cs_format_size(bytes, sizeof bytes, s->size);
	if (!s->mode)
		snprintf(ret, size, "not there");
	else if (S_ISDIR(s->mode))
		snprintf(ret, size, "a directory");
	else
		snprintf(ret, size, "%s, mode %o", bytes, s->mode & 07777);
}

void change_tell_conflicts(const struct txn *t, const struct txn_changes *c)
{
	for (size_t i = 0; i < c->n; i++) {
		char ours[64], theirs[64], text[256];

		if (!c->v[i].conflict)
			continue;
		describe(&c->v[i].old, ours, sizeof ours);
		describe(&c->v[i].new, theirs, sizeof theirs);
		snprintf(text, sizeof text, "%s (the workspace's: %s; the program's: %s)", txn_conflict_text(c->v[i].conflict), ours, theirs);
		tell_path(c->v[i].path, text);
	}
	say_error("`caisson diff %s PATH` compares the two; `caisson commit %s --ours` keeps the workspace's, --theirs takes the program's, "
		  "--ours-for PATH and --theirs-for PATH decide one by one",
		  txn_about(t)->id, txn_about(t)->id);
}

/* ---- asking ---- */

bool change_can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

char change_ask(const char *question, const char *letters)
{
	char line[64];

	for (;;) {
		(void)fprintf(stderr, "caisson: %s ", question);
		(void)fflush(stderr);
		if (!fgets(line, sizeof line, stdin))
			return letters[strlen(letters) - 1];
		if (line[0] && strchr(letters, line[0]) && line[0] != '\n')
			return line[0];
	}
}

void change_ask_held(const struct txn_changes *c, struct txn_verdict *v)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct txn_change *x = &c->v[i];
		char shown[256], text[512];

		if (!x->hold || !txn_hold_can_allow(x->hold))
			continue;
		snprintf(text, sizeof text, "%s: %s. Take it? [y]es [n]o [s]kip all such", cs_escape_to(shown, sizeof shown, x->path), txn_hold_text(x->hold));
		switch (change_ask(text, "yns")) {
		case 'y':
			cs_strv_add(&v->allow, x->path);
			i += x->subtree; /* and what is in it */
			break;
		case 's':
			return;
		default:
			break;
		}
	}
}

void change_verdict_done(struct txn_verdict *v)
{
	cs_strv_done(&v->paths);
	cs_strv_done(&v->allow);
	cs_strv_done(&v->ours);
	cs_strv_done(&v->theirs);
}

/* ---- committing ---- */

void change_tell_committed(const struct txn *t, const struct txn_changes *c, const struct txn_outcome *o)
{
	char bytes[32];

	cs_format_size(bytes, sizeof bytes, o->bytes);
	if (!o->added && !o->changed && !o->deleted)
		say_note("%s  nothing was committed", txn_about(t)->id);
	else
		say_note("%s  committed: %zu added, %zu changed, %zu deleted (%s); caisson undo %s takes it back", txn_about(t)->id, o->added,
			 o->changed, o->deleted, bytes, txn_about(t)->id);
	if (o->left)
		say_note("%s  %zu not taken, still pending", txn_about(t)->id, o->left);
	if (!o->held)
		return;
	say_error("%s  %zu held back, still pending:", txn_about(t)->id, o->held);
	change_tell_held(t, c);
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].hold && txn_hold_can_allow(c->v[i].hold)) {
			say_error("take one with: caisson commit %s --allow PATH (--allow '*': all that can be); throw them away with: caisson rollback %s",
				  txn_about(t)->id, txn_about(t)->id);
			return;
		}
}

int change_commit(struct txn *t, struct txn_changes *c, struct txn_verdict *v, bool ask)
{
	struct txn_outcome done;
	struct cs_err err = { 0 };

	if (ask && c->held)
		change_ask_held(c, v);
	if (txn_commit(t, c, v, &done, &err) < 0) {
		say_error("%s: %s", txn_about(t)->id, err.msg);
		if (err.code == CS_E_CONFLICT && c->conflicts)
			change_tell_conflicts(t, c);
		return cs_code_exit(err.code);
	}
	change_tell_committed(t, c, &done);
	return done.held ? 1 : 0;
}

/* ---- after a run ---- */

void change_tell_pending(const struct txn *t, const struct txn_changes *c)
{
	char text[128];

	change_summary(c, text, sizeof text);
	say_note("%s  %s  pending: caisson diff, commit or rollback %s", txn_about(t)->id, text, txn_about(t)->id);
}

static void keep(struct txn *t, const struct txn_changes *c, struct session_result *r)
{
	struct cs_err err = { 0 };

	if (txn_keep(t, c, &err) < 0) {
		say_error("%s: %s", txn_about(t)->id, err.msg);
		return;
	}
	r->change.fate = "pending";
	change_tell_pending(t, c);
}

static int commit(struct txn *t, struct txn_changes *c, struct session_result *r, bool ask)
{
	struct txn_verdict v = { 0 };
	struct cs_err err = { 0 };
	int code;

	if (ask) { /* the answer took its time */
		txn_changes_done(c);
		txn_lock(t);
		if (txn_scan_quick(t, c, &err) < 0)
			say_error("%s: %s", txn_about(t)->id, err.msg);
	}
	code = change_commit(t, c, &v, ask);

	if (code <= 1 && txn_state(t) == TXN_COMMITTED)
		r->change.fate = "committed";
	else
		keep(t, c, r);
	change_verdict_done(&v);
	return code ? 1 : 0;
}

static void discard(struct txn *t, struct session_result *r)
{
	struct cs_err err = { 0 };

	r->change.fate = "rolled back";
	if (txn_discard(t, "rolled-back", &err) < 0)
		say_error("%s", err.msg);
}

char change_ask_commit(struct txn *t, const struct txn_changes *c)
{
	char text[128], question[320], answer;

	change_summary(c, text, sizeof text);
	snprintf(question, sizeof question, "%s  %s   commit? [y]es [n]o [d]iff [k]eep", txn_about(t)->id, text);
	while ((answer = change_ask(question, "yndk")) == 'd')
		change_show_diff(t);
	return answer;
}

static int ask(struct txn *t, struct txn_changes *c, struct session_result *r)
{
	switch (change_ask_commit(t, c)) {
	case 'y':
		return commit(t, c, r, true);
	case 'n':
		discard(t, r);
		return 0;
	default:
		keep(t, c, r);
		return 0;
	}
}

static int judge(const struct profile *p, struct txn *t, struct txn_changes *c, struct session_result *r)
{
	switch (p->commit) {
	case PROFILE_COMMIT_ALWAYS:
		return commit(t, c, r, false);
	case PROFILE_COMMIT_ON_SUCCESS:
		if (r->exit_code == 0)
			return commit(t, c, r, false);
		break;
	case PROFILE_COMMIT_AUTO:
	case PROFILE_COMMIT_ASK:
		if (change_can_ask())
			return ask(t, c, r);
		break;
	case PROFILE_COMMIT_NEVER:
		discard(t, r);
		return 0;
	default:
		break;
	}
	keep(t, c, r);
	return 0;
}

int change_fate(const struct profile *p, struct session_result *r)
{
	struct txn_changes c = { 0 };
	struct cs_err err = { 0 };
	struct txn *t = r->txn;
	int code = 0;

	if (!t)
		return 0;
	r->txn = NULL;
	if (p->commit == PROFILE_COMMIT_ALWAYS || p->commit == PROFILE_COMMIT_ON_SUCCESS)
		txn_lock(t);
	if (txn_scan_quick(t, &c, &err) < 0) {
		say_error("%s: %s", txn_about(t)->id, err.msg);
		(void)txn_keep(t, NULL, &err);
		r->change.fate = "pending";
	} else if (txn_changes_nothing(&c)) {
		(void)txn_discard(t, "empty", &err); /* opened for writing and left as it was; made and removed again */
	} else {
		snprintf(r->change.id, sizeof r->change.id, "%s", txn_about(t)->id);
		r->change.added = c.added;
		r->change.changed = c.changed;
		r->change.deleted = c.deleted;
		r->change.bytes = c.bytes;
		r->change.held = c.held;
		r->change.conflicts = c.conflicts;
		code = judge(p, t, &c, r);
	}
	txn_changes_done(&c);
	txn_close(t);
	return code;
}
