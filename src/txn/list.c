/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - finding and listing transactions, the log, the limits of age and size. */
#include "txn/internal.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- finding ---- */

struct finding {
	const char *id, *dir;
	char folder[24], found_id[TXN_ID_MAX]; /* the newest so far */
	uint64_t created;
	struct txn **ret;
	struct cs_err *err;
};

static bool is_id(const char *s)
{
	return !strncmp(s, "t-", 2) && strlen(s) < TXN_ID_MAX && !strchr(s, '/');
}

/* Its head without its lock: for looking only. */
static int peek(const struct txn_store *s, const char *folder, const char *id, struct txn *t)
{
	CS_FREE char *path = cs_printf("%s/%s/head", folder, id);
	CS_FD int fd = openat(s->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	*t = (struct txn){ .dir = -1, .ws = -1, .head = -1, .store = { .dir = -1 } };
	return fd < 0 ? -1 : head_read(fd, t, NULL);
}

static int each_folder(const struct txn_store *s, int (*visit)(const struct txn_store *, const char *, void *), void *arg)
{
	struct cs_strv names = { 0 };
	int r = 0;

	if (scan_names(s->dir, &names) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < names.n; i++)
		if (!strncmp(names.v[i], "w-", 2) || !strcmp(names.v[i], "live"))
			r = visit(s, names.v[i], arg);
	cs_strv_done(&names);
	return r;
}

static int by_id_in(const struct txn_store *s, const char *folder, void *arg)
{
	struct finding *f = arg;
	CS_FREE char *path = cs_printf("%s/%s", folder, f->id);
	int r;

	if (faccessat(s->dir, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	r = store_open_txn(s, folder, f->id, f->ret, f->err);
	return r < 0 ? r : 1;
}

static int by_id(const struct txn_store *s, void *arg)
{
	return each_folder(s, by_id_in, arg);
}

static uint64_t age_order(const struct txn_about *a)
{
	return a->created * 1000000000u + a->created_ns;
}

/* The newest in the folder of one workspace. */
static int newest_in(const struct txn_store *s, const char *folder, struct finding *f)
{
	CS_FD int dir = store_open_dir(s, folder, false);
	struct cs_strv names = { 0 };

	if (dir < 0 || scan_names(dir, &names) < 0)
		return 0;
	for (size_t i = 0; i < names.n; i++) {
		struct stat st;

		if (!is_id(names.v[i]) || fstatat(dir, names.v[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		struct txn t;

		if (peek(s, folder, names.v[i], &t) == 0 && age_order(&t.about) >= f->created) {
			f->created = age_order(&t.about);
			snprintf(f->folder, sizeof f->folder, "%s", folder);
			snprintf(f->found_id, sizeof f->found_id, "%s", names.v[i]);
		}
		txn_about_done(&t.about);
	}
	cs_strv_done(&names);
	return 0;
}

static int latest(const struct txn_store *s, void *arg)
{
	struct finding *f = arg;
	CS_FREE char *at = cs_strdup(f->dir);

	for (;;) { /* the workspace is the directory, or one above it */
		char key[24];
		int r;

		store_key(key, *at ? at : "/");
		f->found_id[0] = 0;
		(void)newest_in(s, key, f);
		if (f->found_id[0]) {
			r = store_open_txn(s, f->folder, f->found_id, f->ret, f->err);
			return r < 0 ? r : 1;
		}
		if (!*at || !at[1])
			return 0;
		*strrchr(at, '/') = 0;
	}
}

int txn_find(const char *id, const char *workspace, struct txn **ret, struct cs_err *err)
{
	CS_FREE char *dir = realpath(workspace ? workspace : ".", NULL);
	struct finding f = { .id = id, .dir = dir ? dir : "/", .ret = ret, .err = err };
	char shown[128];
	int r = store_each(f.dir, id ? by_id : latest, &f);

	if (r == 0 && id)
		r = store_each(NULL, by_id, &f);
	if (r == 0 && id)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "there is no transaction '%s' (`caisson txn list --all` shows them)", cs_escape_to(shown, sizeof shown, id));
	if (r == 0)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "there is no transaction in '%s' (`caisson txn list --all` shows those elsewhere)",
			       cs_escape_to(shown, sizeof shown, f.dir));
	return r < 0 ? r : 0;
}

static int peek_in(const struct txn_store *s, const char *folder, void *arg)
{
	struct finding *f = arg;
	CS_FREE char *path = cs_printf("%s/%s", folder, f->id);
	CS_FD int dir = openat(s->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct txn *t;

	if (dir < 0)
		return 0;
	t = cs_new(struct txn);
	if (peek(s, folder, f->id, t) < 0) {
		txn_close(t);
		return 0;
	}
	t->store.dir = -1;
	t->dir = CS_TAKE_FD(dir);
	t->live = !strcmp(folder, "live");
	t->ws = open(t->about.workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	*f->ret = t;
	return 1;
}

static int peek_store(const struct txn_store *s, void *arg)
{
	return each_folder(s, peek_in, arg);
}

int txn_peek(const char *id, struct txn **ret, struct cs_err *err)
{
	CS_FREE char *dir = realpath(".", NULL);
	struct finding f = { .id = id, .ret = ret, .err = err };
	char shown[64];
	int r = store_each(dir ? dir : "/", peek_store, &f);

	if (r == 0)
		r = store_each(NULL, peek_store, &f);
	return r ? 0 : cs_fail(err, CS_E_NOT_FOUND, 0, "there is no transaction '%s'", cs_escape_to(shown, sizeof shown, id));
}

/* ---- listing ---- */

struct listed {
	struct txn_about about;
	enum txn_state state;
	bool busy;
	uint64_t order;
};

struct listing {
	struct listed *v;
	size_t n, cap;
	const char *dir; /* only workspaces at or above it, or beneath it */
};

static void keep_entry(struct listing *l, struct txn *t, enum txn_state state, bool busy)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 32;
		struct listed *grown = cs_calloc(cap, sizeof *grown);

		if (l->n)
			memcpy(grown, l->v, l->n * sizeof *grown);
		free(l->v);
		l->v = grown;
		l->cap = cap;
	}
	l->v[l->n++] = (struct listed){ t->about, state, busy, age_order(&t->about) };
	t->about = (struct txn_about){ 0 };
}

static bool is_in_use(const struct txn_store *s, const char *folder, const char *id)
{
	CS_FREE char *path = cs_printf("%s/%s/head", folder, id);
	CS_FD int fd = openat(s->dir, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

static bool is_of(const struct txn *t, const char *dir)
{
	size_t n = strlen(t->about.workspace);

	return !dir || (!strncmp(dir, t->about.workspace, n) && (!dir[n] || dir[n] == '/'));
}

static int list_folder(const struct txn_store *s, const char *folder, void *arg)
{
	struct listing *l = arg;
	CS_FD int dir = store_open_dir(s, folder, false);
	struct cs_strv names = { 0 };

	if (dir < 0 || scan_names(dir, &names) < 0)
		return 0;
	for (size_t i = 0; i < names.n; i++) {
		struct txn t;
		CS_FD int sub = is_id(names.v[i]) ? openat(dir, names.v[i], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

		if (sub < 0)
			continue;
		if (peek(s, folder, names.v[i], &t) == 0 && is_of(&t, l->dir))
			keep_entry(l, &t, commit_parts(sub) ? TXN_COMMITTED : !strcmp(folder, "live") ? TXN_LIVE : TXN_PENDING,
				   is_in_use(s, folder, names.v[i]));
		txn_about_done(&t.about);
	}
	cs_strv_done(&names);
	return 0;
}

static int list_store(const struct txn_store *s, void *arg)
{
	return each_folder(s, list_folder, arg);
}

static int newest_first(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return x->order < y->order ? 1 : x->order > y->order ? -1 : strcmp(x->about.id, y->about.id);
}

static void collect(const char *workspace, struct listing *l)
{
	CS_FREE char *dir = workspace ? realpath(workspace, NULL) : NULL;

	l->dir = dir;
	(void)store_each(dir, list_store, l); /* a store that cannot be read has nothing to show */
	l->dir = NULL;
	if (l->n)
		qsort(l->v, l->n, sizeof *l->v, newest_first);
}

static void listing_done(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		txn_about_done(&l->v[i].about);
	free(l->v);
}

int txn_list(const char *workspace, txn_visit visit, void *arg)
{
	struct listing l = { 0 };
	int r = 0;

	collect(workspace, &l);
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		struct txn_entry e = { .about = &l.v[i].about, .state = l.v[i].state, .busy = l.v[i].busy };

		r = visit(&e, arg);
	}
	listing_done(&l);
	return r;
}

/* ---- the log ---- */

struct log_reading {
	void (*line)(const char *, void *);
	void *arg;
	const char *dir;
};

static int read_log(const struct txn_store *s, void *arg)
{
	struct log_reading *l = arg;
	CS_FD int fd = openat(s->dir, "log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	struct cs_buf where CS_BUF_AUTO = CS_BUF(16384);
	char line[16384];

	if (!f)
		return 0;
	(void)CS_TAKE_FD(fd); /* the stream's now */
	if (l->dir)
		cs_escape(&where, l->dir);
	while (fgets(line, sizeof line, f)) {
		char *space;

		line[strcspn(line, "\n")] = 0;
		space = strstr(line, " /");
		if (l->dir && (!space || strcmp(space + 1, cs_buf_text(&where)) != 0))
			continue;
		l->line(line, l->arg);
	}
	(void)fclose(f); /* only read */
	return 0;
}

void txn_log(const char *workspace, void (*line)(const char *, void *), void *arg)
{
	CS_FREE char *dir = workspace ? realpath(workspace, NULL) : NULL;
	struct log_reading l = { line, arg, dir };

	(void)store_each(dir, read_log, &l); /* a store that cannot be read has nothing to show */
}

/* ---- limits ---- */

static uint64_t tree_size(int dir, unsigned depth)
{
	struct cs_strv names = { 0 };
	uint64_t sum = 0;

	if (depth > TXN_DEPTH_MAX || scan_names(dir, &names) < 0)
		return 0;
	for (size_t i = 0; i < names.n; i++) {
		struct stat st;
		CS_FD int sub = -1;

		if (fstatat(dir, names.v[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		sum += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && (sub = openat(dir, names.v[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0)
			sum += tree_size(sub, depth + 1);
	}
	cs_strv_done(&names);
	return sum;
}

/* Was anything left out of its last commit?  Who cannot tell must not drop it. */
static bool has_pending(const struct txn *t)
{
	uint32_t parts = commit_parts(t->dir);
	char name[24];
	struct journal j;
	bool whole;

	if (!parts)
		return true;
	if (txn_is_dropped(t))
		return false;
	commit_part_name(name, parts - 1);
	if (journal_read(t->dir, name, &j, NULL) < 0)
		return true;
	whole = j.whole;
	journal_done(&j);
	return !whole;
}

struct found {
	bool pending;
	const char *why;
	uint64_t size;
};

static bool drop(struct txn *t, const struct found *f, bool only_name, txn_said said, void *arg)
{
	bool committed = commit_parts(t->dir) > 0, dropped = !only_name && store_trash(t, NULL) == 0;
	char line[400], size[32], shown[128];

	cs_format_size(size, sizeof size, f->size);
	snprintf(line, sizeof line, "%s: %s (%s, %s, in %s)%s", t->about.id,
		 f->pending ? (dropped ? (committed ? "can no longer be undone, and what was left of it is dropped without having been committed"
						    : "dropped without having been committed")
				       : (committed ? "committed in part, the rest is pending" : "pending"))
			    : dropped ? "can no longer be undone" : "committed",
		 f->why, size, cs_escape_to(shown, sizeof shown, t->about.workspace),
		 dropped ? "" : !only_name ? ": it could not be dropped"
				: committed ? ": commit the rest, undo it, or gc --pending drops it" : ": commit it, roll it back, or gc --pending drops it");
	said(line, arg);
	if (dropped)
		store_log(t, "expired", f->why);
	return dropped;
}

int txn_gc(const struct txn_gc *g, txn_said said, void *arg)
{
	struct listing l = { 0 };
	struct timespec now;
	uint64_t total[2] = { 0 }; /* of undo sets, of pending ones */
	int dropped = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	collect(NULL, &l);
	for (size_t i = 0; i < l.n; i++) { /* newest first: the oldest are those beyond the size */
		struct found f;
		struct txn *t;
		bool old = g->age && l.v[i].about.created + g->age < (uint64_t)now.tv_sec, big;

		if (l.v[i].busy || l.v[i].state == TXN_LIVE || txn_find(l.v[i].about.id, l.v[i].about.workspace, &t, NULL) < 0)
			continue;
		if (commit_has_journal(t)) { /* the workspace's own files may be in it */
			txn_close(t);
			continue;
		}
		f = (struct found){ has_pending(t), old ? "too old" : "too much is kept", tree_size(t->dir, 0) };
		total[f.pending] += f.size;
		big = g->size && total[f.pending] > g->size;
		if (old || big)
			dropped += drop(t, &f, f.pending && !g->pending, said, arg);
		txn_close(t);
	}
	listing_done(&l);
	return dropped;
}
