/* SPDX-License-Identifier: Apache-2.0 */
/* commit.c - commit and undo.
 *
 *   stage     what will be moved is made ready where it lies
 *   syncfs    its data is on disk
 *   journal   every step, written and synced, then renamed into place: the commit point
 *   apply     renames
 *   syncfs    they are on disk
 *   done      the journal is renamed; it is what an undo starts from
 *
 * A failure after the commit point (a full disk, a file edited in that very
 * moment) turns the journal's direction around, in place, and goes back.
 */
#include "txn/internal.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

void commit_part_name(char ret[24], uint32_t part)
{
	snprintf(ret, 24, "done-%u", part);
}

uint32_t commit_parts(int dir)
{
	char name[24];
	uint32_t n = 0;

	for (;; n++) {
		commit_part_name(name, n);
		if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return n;
	}
}

static int sync_all(const struct txn *t, struct cs_err *err)
{
	/* The store stands on the workspace's own file system. */
	return act_sync_fs(t->dir) < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "sync to disk") : 0;
}

static int sync_file(int dir, const char *name)
{
	CS_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -1 : act_sync(fd);
}

/* ---- from the commit point on ---- */

bool commit_has_journal(const struct txn *t)
{
	return faccessat(t->dir, JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* On disk before the journal goes: without it every path would look edited. */
static int stamp_head(struct txn *t, struct cs_err *err)
{
	head_stamp(t);
	return act_sync(t->head) < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "sync the head of %s", t->about.id) : 0;
}

static int finish_commit(struct txn *t, struct journal *j, struct cs_err *err)
{
	char name[24];
	int r = sync_all(t, err);

	if (r == 0)
		r = journal_stamp(t->dir, JOURNAL, j, err);
	if (r == 0 && j->calm) /* what was left out is compared with what is there now */
		r = stamp_head(t, err);
	commit_part_name(name, j->part);
	if (r == 0 && (act_rename(t->dir, JOURNAL, t->dir, name, 0) < 0 || sync_file(t->dir, name) < 0))
		r = cs_fail(err, CS_E_SYSTEM, errno, "mark the journal as done");
	return r;
}

static int finish_undo(struct txn *t, const struct journal *j, struct cs_err *err)
{
	int r = sync_all(t, err);

	if (r == 0 && j->calm)
		r = stamp_head(t, err);
	if (r == 0 && (act_unlink(t->dir, JOURNAL, 0) < 0 || act_sync(t->dir) < 0))
		r = cs_fail(err, CS_E_SYSTEM, errno, "remove the journal");
	return r;
}

int commit_apply(struct txn *t, struct journal *j, struct applied *ret, struct cs_err *err)
{
	int r = apply_journal(t, j, ret, err);

	if (r < 0)
		return r;
	return j->undo ? finish_undo(t, j, err) : finish_commit(t, j, err);
}

/* It could not be done: go back.  If that fails, too, the next command tries again. */
static int turn_back(struct txn *t, struct journal *j, const char *why, int sys, struct cs_err *err)
{
	struct applied back = { 0 };
	struct cs_err second = { 0 };

	j->undo = !j->undo;
	if (journal_rewrite_head(t->dir, JOURNAL, j, &second) < 0 || sync_file(t->dir, JOURNAL) < 0 || commit_apply(t, j, &back, &second) < 0) {
		free(back.first);
		return cs_fail(err, CS_E_SYSTEM, sys, "%s; going back failed, too (%s): the next command tries again", why, second.msg);
	}
	free(back.first);
	return 0;
}

static int apply_or_go_back(struct txn *t, struct journal *j, struct cs_err *err)
{
	struct applied done = { 0 };
	struct cs_err first = { 0 };
	CS_FREE char *late = NULL;
	char shown[256];
	int r = apply_journal(t, j, &done, &first);

	late = done.first;
	if (r == 0 && !done.late && !done.lost)
		return finish_commit(t, j, err);
	if (r == 0)
		(void)cs_fail(&first, CS_E_CONFLICT, 0, "'%s' was changed in the workspace while it was being committed",
			      cs_escape_to(shown, sizeof shown, late ? late : ""));
	r = turn_back(t, j, first.msg, first.sys, err);
	if (r < 0)
		return r;
	return cs_fail(err, first.code, 0, "%s; nothing was changed", first.msg);
}

/* ---- commit ---- */

/* One commit at a time in a workspace; true if another one was running. */
static bool lock_workspace(const struct txn *t)
{
	if (flock(t->ws, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return false;
	while (flock(t->ws, LOCK_EX) < 0 && errno == EINTR)
		;
	return true;
}

static int check_conflicts(const struct txn_changes *c, const struct txn_verdict *v, struct cs_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct txn_change *x = &c->v[i];

		if (x->conflict && v->conflicts == TXN_STOP && (!v->paths.n || judge_listed(&v->paths, x->path)) &&
		    !judge_listed(&v->ours, x->path) && !judge_listed(&v->theirs, x->path))
			n++;
	}
	if (!n)
		return 0;
	return cs_fail(err, CS_E_CONFLICT, 0, "%zu %s changed in the workspace, too; nothing was committed", n, n == 1 ? "path was" : "paths were");
}

static void log_outcome(const struct txn *t, const char *event, const struct txn_outcome *o)
{
	char text[160];

	snprintf(text, sizeof text, "added=%zu changed=%zu deleted=%zu held=%zu left=%zu bytes=%llu", o->added, o->changed, o->deleted, o->held,
		 o->left, (unsigned long long)o->bytes);
	store_log(t, event, text);
}

static int commit(struct txn *t, struct txn_changes *c, const struct txn_verdict *v, struct txn_outcome *ret, struct cs_err *err)
{
	struct journal j;
	int r = check_conflicts(c, v, err);

	if (r < 0)
		return r;
	r = plan_make(t, c, v, &j, ret, err);
	j.part = commit_parts(t->dir);
	j.calm = !c->conflicts;
	j.whole = !ret->left && !ret->held;
	if (r == 0 && j.n) {
		r = plan_stage(t, &j, err);
		if (r == 0)
			r = sync_all(t, err);
		if (r == 0)
			r = journal_write(t->dir, JOURNAL, &j, err);
		if (r == 0)
			r = apply_or_go_back(t, &j, err);
	}
	journal_done(&j);
	return r;
}

static int check_usable(struct txn *t, struct cs_err *err)
{
	struct journal j;
	int r;

	if (t->ws < 0)
		return cs_fail(err, CS_E_CONFLICT, 0, "the workspace '%s' is gone or was replaced", t->about.workspace);
	/* At rest with a journal: recovery could not read it. */
	if (!commit_has_journal(t))
		return 0;
	r = journal_read(t->dir, JOURNAL, &j, err);
	if (r == 0) {
		journal_done(&j);
		r = store_wake(t, err); /* where recovery looks: what kept it from being finished is gone */
		if (r == 0)
			r = cs_fail(err, CS_E_CONFLICT, 0, "an earlier commit of it was cut short: the next command finishes it");
	}
	return r;
}

void txn_lock(struct txn *t)
{
	if (t->ws >= 0)
		(void)lock_workspace(t);
}

int txn_check(struct txn *t, struct cs_err *err)
{
	return check_usable(t, err);
}

int txn_commit(struct txn *t, struct txn_changes *c, const struct txn_verdict *v, struct txn_outcome *ret, struct cs_err *err)
{
	int r = check_usable(t, err);
	uint32_t parts = commit_parts(t->dir);

	*ret = (struct txn_outcome){ 0 };
	if (r == 0)
		r = store_wake(t, err);
	if (r < 0)
		return r;
	if (lock_workspace(t)) { /* what was looked at is old news */
		txn_changes_done(c);
		r = txn_scan_quick(t, c, err);
	}
	if (r == 0)
		r = commit(t, c, v, ret, err);
	if (r == 0 && commit_parts(t->dir) > parts)
		log_outcome(t, "committed", ret);
	(void)flock(t->ws, LOCK_UN);
	/* A journal that is left is for the next command, which looks in live/. */
	if (!commit_has_journal(t)) {
		int rest = store_rest(t, r == 0 ? err : NULL);

		r = r < 0 ? r : rest;
	}
	return r;
}

/* ---- undo ---- */

static bool is_file(const struct stat *st, const struct step_file *f)
{
	return st->st_ino == f->ino && (S_ISDIR(st->st_mode) || ((uint64_t)st->st_size == f->size && st->st_mtim.tv_sec == f->mtime.sec &&
								(uint32_t)st->st_mtim.tv_nsec == f->mtime.nsec));
}

static bool is_after(const struct timespec *c, const struct txn_stamp *s)
{
	return c->tv_sec > s->sec || (c->tv_sec == s->sec && (uint32_t)c->tv_nsec > s->nsec);
}

/* Anything in it that was changed since? */
static bool edited_since(int dir, const char *name, const struct txn_stamp *after, unsigned depth)
{
	struct stat st;
	struct cs_strv names = { 0 };
	CS_FD int sub = -1;
	bool edited;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	if (is_after(&st.st_ctim, after))
		return true;
	if (!S_ISDIR(st.st_mode))
		return false;
	sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	edited = sub < 0 || depth > TXN_DEPTH_MAX || scan_names(sub, &names) < 0;
	for (size_t i = 0; !edited && i < names.n; i++)
		edited = edited_since(sub, names.v[i], after, depth + 1);
	cs_strv_done(&names);
	return edited;
}

static bool stands_as_committed(const struct txn *t, const struct journal *j, const struct step *s)
{
	const char *name = NULL;
	CS_FD int dir = s->kind == STEP_META ? act_open_dir(t->ws, s->path) : act_parent(t->ws, s->path, &name);
	struct stat st;
	bool there;

	if (s->kind == STEP_META && !s->is.ino)
		return true; /* for the way back alone */
	if (dir < 0)
		return false;
	if (s->kind == STEP_META)
		return fstat(dir, &st) == 0 && st.st_ino == s->is.ino && (st.st_mode & 07777) == s->new.mode;
	there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there)
		return false;
	if (s->kind == STEP_MKDIR)
		return S_ISDIR(st.st_mode);
	if (s->kind == STEP_PLACE)
		return st.st_ino == s->is.ino;
	return is_file(&st, &s->is) && !edited_since(dir, name, &j->after, 0);
}

static bool is_above(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return !strncmp(dir, path, n) && path[n] == '/';
}

/* What a step took away must not have come back; what another step put in its place may stand there, or in a
 * directory that a later one brought as a whole. */
static bool is_filled_by_us(const struct journal *j, const struct step *take)
{
	for (size_t i = 0; i < j->n; i++) {
		const struct step *s = &j->v[i];

		if (s != take && s->kind != STEP_META && !strcmp(s->path, take->path))
			return true;
		if (s > take && (s->kind == STEP_PUT || s->kind == STEP_SWAP || s->kind == STEP_PLACE) && is_above(s->path, take->path))
			return true;
	}
	return false;
}

static bool came_back(const struct txn *t, const struct journal *j, const struct step *s)
{
	const char *name;
	CS_FD int dir = act_parent(t->ws, s->path, &name);
	struct stat st;

	return dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !is_filled_by_us(j, s);
}

/* A later part may have given a directory other attributes: only the last one's are looked at. */
static void check_undo(const struct txn *t, const struct journal *j, bool last, struct cs_strv *conflicts)
{
	for (size_t i = 0; i < j->n; i++) {
		const struct step *s = &j->v[i];
		bool fine = s->kind == STEP_META && !last ? true : s->kind == STEP_TAKE ? !came_back(t, j, s) : stands_as_committed(t, j, s);

		if (!fine)
			cs_strv_add(conflicts, s->path);
	}
}

static void count_undo(const struct journal *j, struct txn_outcome *o)
{
	for (size_t i = 0; i < j->n; i++) {
		o->added += j->v[i].kind == STEP_PUT;
		o->changed += j->v[i].kind == STEP_SWAP || j->v[i].kind == STEP_PLACE;
		o->deleted += j->v[i].kind == STEP_TAKE;
		o->deleted -= j->v[i].kind == STEP_PLACE; /* its TAKE was no deletion */
	}
}

static int check_parts(struct txn *t, uint32_t parts, struct cs_strv *conflicts, struct cs_err *err)
{
	struct txn_stamp after = { 0 };
	int r = 0;

	for (uint32_t i = parts; r == 0 && i-- > 0;) {
		struct journal j;
		char name[24];

		commit_part_name(name, i);
		r = journal_read(t->dir, name, &j, err);
		if (r < 0)
			return r;
		if (i + 1 == parts)
			after = j.after;
		j.after = after; /* a later part moved other names of the same files */
		check_undo(t, &j, i + 1 == parts, conflicts);
		journal_done(&j);
	}
	if (conflicts->n)
		return cs_fail(err, CS_E_CONFLICT, 0, "%zu %s edited since the commit; nothing was undone", conflicts->n,
			       conflicts->n == 1 ? "path was" : "paths were");
	return 0;
}

/* Of what is still pending: was anything edited since? */
static bool is_calm(struct txn *t)
{
	struct txn_changes c;
	bool calm = txn_scan_quick(t, &c, NULL) == 0 && !c.conflicts;

	txn_changes_done(&c);
	return calm;
}

static int undo_or_stay(struct txn *t, struct journal *j, struct cs_err *err)
{
	struct applied done = { 0 };
	struct cs_err first = { 0 };
	int r = commit_apply(t, j, &done, &first);

	free(done.first);
	if (r == 0)
		return 0;
	r = turn_back(t, j, first.msg, first.sys, err);
	return r < 0 ? r : cs_fail(err, first.code, 0, "%s; nothing was undone", first.msg);
}

static int undo_part(struct txn *t, uint32_t part, bool calm, struct txn_outcome *ret, struct cs_err *err)
{
	struct journal j;
	char name[24];
	int r;

	commit_part_name(name, part);
	r = journal_read(t->dir, name, &j, err);
	if (r < 0)
		return r;
	j.undo = true;
	j.calm = calm;
	if (r == 0)
		r = journal_rewrite_head(t->dir, name, &j, err);
	if (r == 0 && (act_rename(t->dir, name, t->dir, JOURNAL, 0) < 0 || act_sync(t->dir) < 0))
		r = cs_fail(err, CS_E_SYSTEM, errno, "start the undo");
	if (r == 0)
		r = undo_or_stay(t, &j, err);
	if (r == 0)
		count_undo(&j, ret);
	journal_done(&j);
	return r;
}

int txn_undo(struct txn *t, struct cs_strv *conflicts, struct txn_outcome *ret, struct cs_err *err)
{
	uint32_t parts = commit_parts(t->dir);
	int r = check_usable(t, err);
	bool calm;

	*ret = (struct txn_outcome){ 0 };
	if (r == 0 && !parts)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "it was not committed: there is nothing to undo");
	if (r == 0)
		r = store_wake(t, err);
	if (r < 0)
		return r;
	(void)lock_workspace(t);
	r = check_parts(t, parts, conflicts, err);
	/* First: were it left until there is nothing committed, a later commit in part would find it. */
	if (r == 0 && act_unlink(t->dir, DROPPED, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = cs_fail(err, CS_E_SYSTEM, errno, "take back that the rest of %s was thrown away", t->about.id);
	calm = r == 0 && is_calm(t);
	while (r == 0 && parts)
		r = undo_part(t, --parts, calm, ret, err);
	(void)flock(t->ws, LOCK_UN);
	if (r == 0)
		log_outcome(t, "undone", ret);
	if (!commit_has_journal(t)) {
		int rest = store_rest(t, r == 0 ? err : NULL);

		r = r < 0 ? r : rest;
	}
	return r;
}

/* ---- looking ---- */

static int look(struct txn *t, bool quick, struct txn_changes *ret, struct cs_err *err)
{
	CS_FD int up = openat(t->dir, "up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct done done;
	struct scan_layers l = { .upper = up, .lower = &t->ws, .n_lower = 1, .quick = quick, .done = &done };
	int r;

	*ret = (struct txn_changes){ 0 };
	if (t->ws < 0)
		return cs_fail(err, CS_E_CONFLICT, 0, "the workspace '%s' is gone or was replaced", t->about.workspace);
	if (up < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "open the layer of %s", t->about.id);
	if (txn_is_dropped(t))
		return 0;
	r = done_read(t, &done, err);
	if (r < 0)
		return r;
	r = scan_layer(&l, &t->start, ret, err);
	if (r == 0)
		judge_holds(t, ret);
	done_done(&done);
	return r;
}

int txn_scan(struct txn *t, struct txn_changes *ret, struct cs_err *err)
{
	return look(t, /* quick= */ false, ret, err);
}

int txn_scan_quick(struct txn *t, struct txn_changes *ret, struct cs_err *err)
{
	return look(t, /* quick= */ true, ret, err);
}

static int open_entry(int root, const char *path)
{
	const char *name;
	CS_FD int dir = act_parent(root, path, &name);

	return dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static ssize_t read_link(int root, const char *path, char *buf, size_t size)
{
	const char *name;
	CS_FD int dir = act_parent(root, path, &name);

	return dir < 0 ? -1 : readlinkat(dir, name, buf, size);
}

static const char *old_path(const struct txn_change *c)
{
	return c->from ? c->from : c->base ? c->base : c->path;
}

int txn_open_old(const struct txn *t, const struct txn_change *c)
{
	return open_entry(t->ws, old_path(c));
}

int txn_open_new(const struct txn *t, const struct txn_change *c)
{
	CS_FD int up = openat(t->dir, "up", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return up < 0 ? -1 : open_entry(up, c->path);
}

ssize_t txn_link_old(const struct txn *t, const struct txn_change *c, char *buf, size_t size)
{
	return read_link(t->ws, old_path(c), buf, size);
}

ssize_t txn_link_new(const struct txn *t, const struct txn_change *c, char *buf, size_t size)
{
	CS_FD int up = openat(t->dir, "up", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return up < 0 ? -1 : read_link(up, c->path, buf, size);
}
