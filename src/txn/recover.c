/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c - what a crash left.
 *
 * One that stands in live/ and that nobody has locked: with a journal, the
 * commit or undo is finished, in whichever direction it was going; without,
 * what the program wrote becomes pending.  Recovery may itself be cut off
 * anywhere; it starts from what is on disk, as the first one did.
 */
#include "txn/internal.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

struct recovery {
	txn_said said;
	void *arg;
	int n;
};

static void tell(struct recovery *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void tell(struct recovery *r, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	r->n++;
	if (r->said)
		r->said(line, r->arg);
}

/* Named once, and out of the way of the next recovery. */
static void set_aside(const struct txn_store *s, const char *id, const char *why, struct recovery *r)
{
	CS_FD int live = store_open_dir(s, "live", false), to = store_open_dir(s, "damaged", true);
	char shown[64];

	if (live >= 0 && to >= 0 && act_rename(live, id, to, id, RENAME_NOREPLACE) == 0)
		tell(r, "%s: %s; it was set aside in %s/damaged and nothing was changed", cs_escape_to(shown, sizeof shown, id), why, s->path);
}

/* Is nothing edited of what the journal is about?  Somebody may have worked here since the crash. */
static bool is_as_judged(const struct txn *t, const struct journal *j)
{
	for (size_t i = 0; i < j->n; i++) {
		const struct step *s = &j->v[i];
		const char *name;
		CS_FD int dir = s->kind == STEP_META ? -1 : act_parent(t->ws, s->path, &name);
		const struct step_file *f;
		struct stat st;

		if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode))
			continue;
		f = st.st_ino == s->was.ino ? &s->was : &s->is;
		if (st.st_ino != f->ino || (uint64_t)st.st_size != f->size || st.st_mtim.tv_sec != f->mtime.sec || (uint32_t)st.st_mtim.tv_nsec != f->mtime.nsec)
			return false;
	}
	return true;
}

static void finish(struct txn *t, struct journal *j, struct recovery *r)
{
	struct applied done = { 0 };
	struct cs_err err = { 0 };
	const char *what = j->undo ? "the undo" : "the commit";
	char shown[128];

	if (t->ws < 0) {
		tell(r, "%s: %s was cut short and cannot be finished: the workspace '%s' is gone or was replaced", t->about.id, what,
		     cs_escape_to(shown, sizeof shown, t->about.workspace));
		(void)store_rest(t, NULL); /* said once; `commit` says it again */
		return;
	}
	(void)flock(t->ws, LOCK_EX);
	j->calm = j->calm && j->whole && is_as_judged(t, j);
	if (commit_apply(t, j, &done, &err) < 0)
		tell(r, "%s: %s was cut short and could not be finished now: %s", t->about.id, what, err.msg);
	else if (done.lost || done.late)
		tell(r, "%s: finished %s that was cut short; %zu paths were changed by others meanwhile, the first is '%s'", t->about.id, what,
		     done.lost + done.late, cs_escape_to(shown, sizeof shown, done.first ? done.first : ""));
	else
		tell(r, "%s: finished %s that was cut short (%zu steps)", t->about.id, what, j->n);
	free(done.first);
	if (err.code)
		return;
	store_log(t, j->undo ? "recovered-undo" : "recovered-commit", "");
	(void)store_rest(t, NULL);
}

static void keep_written(struct txn *t, struct recovery *r)
{
	struct cs_err err = { 0 };

	(void)act_remove_tree(t->dir, "up.new"); /* a copy that was not finished */
	if (txn_flatten(t, &err) < 0) {
		tell(r, "%s: %s", t->about.id, err.msg);
		return;
	}
	if (commit_parts(t->dir)) {
		(void)store_rest(t, NULL);
		return;
	}
	if (txn_is_empty(t)) {
		(void)store_trash(t, NULL);
		return;
	}
	if (store_rest(t, NULL) < 0)
		return;
	store_log(t, "recovered-pending", "");
	tell(r, "%s: its run was cut short; what it had written is kept: caisson diff %s", t->about.id, t->about.id);
}

/* The disk, or too few descriptors: that says nothing about the transaction, and the next command looks again. */
static bool is_passing(int sys)
{
	return sys && sys != ENOENT && sys != ENOTDIR && sys != ELOOP;
}

/* Nothing in it that anybody could miss: 1; something: 0; it could not be looked at: -1. */
static int is_hollow(const struct txn_store *s, const char *id)
{
	static const char *const parts[] = { JOURNAL, "done-0", "layers", "undo" };
	CS_FREE char *path = cs_printf("live/%s", id);
	CS_FD int dir = openat(s->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CS_FD int up = dir < 0 ? -1 : openat(dir, "up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct cs_strv names = { 0 };
	int r;

	if (dir < 0 || (up < 0 && is_passing(errno)))
		return -1;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (faccessat(dir, parts[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return 0;
		else if (errno != ENOENT)
			return -1;
	r = up >= 0 && scan_names(up, &names) < 0 ? -1 : !names.n;
	cs_strv_done(&names);
	return r;
}

/* It stands there and cannot be opened. */
static void judge_broken(const struct txn_store *s, const char *id, const struct cs_err *err, struct recovery *r)
{
	int hollow = is_passing(err->sys) ? -1 : is_hollow(s, id);
	char shown[64];

	if (is_passing(err->sys)) {
		tell(r, "%s: %s; it was left as it is", cs_escape_to(shown, sizeof shown, id), err->msg);
	} else if (hollow > 0) { /* cut off while it was being made: before any program ran */
		CS_FD int live = store_open_dir(s, "live", false);

		(void)act_remove_tree(live, id);
	} else if (hollow == 0) {
		set_aside(s, id, err->msg, r);
	}
}

static void recover_one(const struct txn_store *s, const char *id, struct recovery *r)
{
	struct txn *t = NULL;
	struct cs_err err = { 0 };
	struct journal j;
	int e = store_open_txn(s, "live", id, &t, &err);

	if (e == -CS_E_CONFLICT || e == -CS_E_NOT_FOUND)
		return; /* somebody's, or gone */
	if (e < 0) {
		judge_broken(s, id, &err, r);
		return;
	}
	(void)act_unlink(t->dir, JOURNAL ".new", 0);
	e = journal_read(t->dir, JOURNAL, &j, &err);
	if (e == 0) {
		finish(t, &j, r);
		journal_done(&j);
	} else if (e == -CS_E_NOT_FOUND) {
		keep_written(t, r);
	} else {
		tell(r, "%s: %s", id, err.msg);
		(void)store_rest(t, NULL); /* said once; `commit` says it again */
	}
	txn_close(t);
}

static int recover_store(const struct txn_store *s, void *arg)
{
	CS_FD int live = store_open_dir(s, "live", false);
	struct cs_strv names = { 0 };

	if (live < 0 || scan_names(live, &names) < 0)
		return 0;
	if (names.n) {
		while (flock(live, LOCK_EX) < 0 && errno == EINTR) /* those being begun are whole after this */
			;
		(void)flock(live, LOCK_UN);
	}
	for (size_t i = 0; i < names.n; i++)
		recover_one(s, names.v[i], arg);
	cs_strv_done(&names);
	store_empty_trash(s); /* if somebody was cut off in it */
	return 0;
}

int txn_recover(const char *workspace, txn_said said, void *arg)
{
	CS_FREE char *dir = realpath(workspace ? workspace : ".", NULL);
	struct recovery r = { .said = said, .arg = arg };

	(void)store_each(dir ? dir : "/", recover_store, &r);
	return r.n;
}
