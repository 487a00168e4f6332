/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - one transaction in its store: begin, lock, rest, throw away. */
#include "txn/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/text.h"

const char *txn_state_name(enum txn_state s)
{
	static const char *const name[] = { "live", "pending", "committed" };

	return name[s];
}

static struct txn *new_txn(void)
{
	struct txn *t = cs_new(struct txn);

	t->dir = t->ws = t->head = t->store.dir = -1;
	return t;
}

void txn_close(struct txn *t)
{
	int fds[3];

	if (!t)
		return;
	fds[0] = t->dir, fds[1] = t->ws, fds[2] = t->head;
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	store_done(&t->store);
	txn_about_done(&t->about);
	free(t);
}

const struct txn_about *txn_about(const struct txn *t)
{
	return &t->about;
}

int txn_dir(const struct txn *t)
{
	return t->dir;
}

int txn_workspace(const struct txn *t)
{
	return t->ws;
}

bool txn_needs_import(const struct txn *t)
{
	return t->store.inside;
}

enum txn_state txn_state(const struct txn *t)
{
	return t->live && !commit_parts(t->dir) ? TXN_LIVE : commit_parts(t->dir) ? TXN_COMMITTED : TXN_PENDING;
}

/* The lock goes with the open file: it ends with whoever holds a copy, not with the first close. */
int store_lock(int fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &l);
}

/* ---- begin ---- */

static void new_id(char *ret, unsigned letters)
{
	static const char alphabet[] = "abcdefghijkmnpqrstuvwxyz23456789";
	unsigned char random[12];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		memset(random, (int)getpid(), sizeof random); /* taken ids are tried again */
	memcpy(ret, "t-", 2);
	for (unsigned i = 0; i < letters; i++)
		ret[2 + i] = alphabet[random[i] % 32];
	ret[2 + letters] = 0;
}

static bool is_used(const struct txn *t, const char *id)
{
	CS_FREE char *path = cs_printf("%s/%s", t->key, id);

	return faccessat(t->store.dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- spares ----
 *
 * Making and removing half a dozen directories on disk costs more than all the rest of a transaction
 * that changes nothing, and most do not.  So a few empty ones are kept and used again. */

enum { SPARES = 4 };

static void spare_name(char ret[24], int i)
{
	snprintf(ret, 24, "spare/%d", i);
}

static bool take_spare(const struct txn *t, int live)
{
	char name[24];

	for (int i = 0; i < SPARES; i++) {
		spare_name(name, i);
		if (act_rename(t->store.dir, name, live, t->about.id, RENAME_NOREPLACE) == 0)
			return true;
		if (errno != ENOENT)
			return false;
	}
	return false;
}

/* Only one that nobody can tell from a new one. */
static bool is_as_new(const struct txn *t)
{
	struct cs_buf xattrs CS_BUF_AUTO = CS_BUF(TXN_XATTR_MAX);
	struct cs_strv names = { 0 };
	CS_FD int up = openat(t->dir, "up", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool as_new = up >= 0 && scan_names(t->dir, &names) == 0 && names.n == 3 && xattrs_read(up, ".", &xattrs) == 0 && xattrs.len == 0;

	cs_strv_done(&names);
	return as_new;
}

/* overlayfs makes its work directory anew, and taking the old one apart is what takes time: that is
 * done while the next program runs. */
static bool put_work_aside(const struct txn *t)
{
	CS_FD int trash = store_open_dir(&t->store, "trash", true);
	char name[32];

	snprintf(name, sizeof name, "%s.wk", t->about.id);
	return trash >= 0 && act_rename(t->dir, "wk", trash, name, RENAME_NOREPLACE) == 0;
}

static bool is_work(const char *name)
{
	size_t n = strlen(name);

	return n > 3 && !strcmp(name + n - 3, ".wk");
}

static void remove_work(const struct txn *t)
{
	CS_FD int trash = store_open_dir(&t->store, "trash", false);
	struct cs_strv names = { 0 };
	unsigned removed = 0;

	if (trash >= 0 && scan_names(trash, &names) == 0)
		for (size_t i = 0; i < names.n && removed < 2; i++)
			if (is_work(names.v[i]))
				removed += act_remove_tree(trash, names.v[i]) == 0;
	cs_strv_done(&names);
}

static bool give_spare(const struct txn *t, int live)
{
	char name[24];

	if (t->store.inside || !is_as_new(t) || (mkdirat(t->store.dir, "spare", 0700) < 0 && errno != EEXIST) || !put_work_aside(t))
		return false;
	for (int i = 0; i < SPARES; i++) {
		spare_name(name, i);
		if (act_rename(live, t->about.id, t->store.dir, name, RENAME_NOREPLACE) == 0)
			return true;
		if (errno != EEXIST)
			return false;
	}
	return false;
}

static int make_dir(struct txn *t, int live)
{
	for (unsigned attempt = 0; attempt < 64; attempt++) {
		new_id(t->about.id, attempt < 8 ? 4 : 8);
		if (is_used(t, t->about.id))
			continue;
		if (take_spare(t, live) || act_mkdir(live, t->about.id, 0700) == 0) {
			t->dir = openat(live, t->about.id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			return t->dir < 0 ? -1 : 0;
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* Attributes of the workspace's root, ACLs among them, are those of the layer's. */
static int copy_xattrs(int from, int to)
{
	struct cs_buf all CS_BUF_AUTO = CS_BUF(TXN_XATTR_MAX);
	const char *at, *end;

	if (xattrs_read(from, ".", &all) < 0)
		return -1;
	for (at = all.data, end = at + all.len; at < end;) {
		const char *value = at + strlen(at) + 1 + 4;
		uint32_t size;

		memcpy(&size, value - 4, 4);
		if (fsetxattr(to, at, value, size, 0) < 0 && errno != EPERM && errno != ENOTSUP)
			return -1;
		at = value + size;
	}
	return 0;
}

static int give_to(int fd, const struct stat *owner)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	return st.st_uid == owner->st_uid && st.st_gid == owner->st_gid ? 0 : fchown(fd, owner->st_uid, owner->st_gid);
}

static int make_layer(struct txn *t)
{
	struct stat st;
	CS_FD int up = -1, wk = -1;
	struct timespec times[2];

	if (fstat(t->ws, &st) < 0 || (act_mkdir(t->dir, "up", 0700) < 0 && errno != EEXIST) ||
	    (act_mkdir(t->dir, "wk", 0700) < 0 && errno != EEXIST))
		return -1;
	up = openat(t->dir, "up", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	wk = openat(t->dir, "wk", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	if (up < 0 || wk < 0)
		return -1;
	/* The directory, too: the layer is mapped as the workspace is, and who is not mapped may not even pass.
	 * Nobody else gets here: the store is ours alone. */
	if (geteuid() == 0 && (give_to(up, &st) < 0 || give_to(wk, &st) < 0 || give_to(t->dir, &st) < 0))
		return -1;
	if (copy_xattrs(t->ws, up) < 0 || fchmod(up, st.st_mode & 07777) < 0 || futimens(up, times) < 0)
		return -1;
	return 0;
}

static int make_head(struct txn *t, struct cs_err *err)
{
	int r;

	t->head = openat(t->dir, "head", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (t->head < 0 || store_lock(t->head) < 0 || ftruncate(t->head, 0) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make the head of a transaction in '%s'", t->store.path);
	r = head_write(t, err);
	if (r == 0)
		head_stamp(t);
	return r;
}

static int make(struct txn *t, struct cs_err *err)
{
	CS_FD int live = store_open_dir(&t->store, "live", true);
	int r = 0;

	/* Whoever recovers waits here: a half-made one is not a left one. */
	if (live < 0 || flock(live, LOCK_SH) < 0 || make_dir(t, live) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "begin a transaction in '%s'", t->store.path);
	t->live = true;
	if (make_layer(t) < 0)
		r = cs_fail(err, CS_E_SYSTEM, errno, "make a layer in '%s'", t->store.path);
	if (r == 0)
		r = make_head(t, err);
	if (r < 0)
		(void)act_remove_tree(live, t->about.id); /* if it stays, recovery takes it */
	return r;
}

static int open_workspace(struct txn *t)
{
	struct stat st;

	t->ws = open(t->about.workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->ws < 0 || fstat(t->ws, &st) < 0)
		return -1;
	if (t->about.ino && st.st_ino != t->about.ino) {
		close(t->ws);
		t->ws = -1;
		return errno = ESTALE, -1;
	}
	t->about.ino = st.st_ino;
	return 0;
}

int txn_begin(struct txn_about *a, struct txn **ret, struct cs_err *err)
{
	struct txn *t = new_txn();
	struct timespec now;
	int r;

	t->about = *a;
	*a = (struct txn_about){ 0 };
	clock_gettime(CLOCK_REALTIME, &now);
	t->about.created = (uint64_t)now.tv_sec;
	t->about.created_ns = (uint32_t)now.tv_nsec;
	t->about.ino = 0;
	store_key(t->key, t->about.workspace);
	if (open_workspace(t) < 0)
		r = cs_fail(err, CS_E_SYSTEM, errno, "open the workspace '%s'", t->about.workspace);
	else
		r = store_for(t->about.workspace, t->ws, &t->store, err);
	if (r == 0)
		r = make(t, err);
	if (r < 0) {
		txn_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

/* Field 22 of /proc/PID/stat: when it started, so that another one of its number is not waited for. */
static uint64_t start_of(uint64_t pid, char *ret_state)
{
	char path[64], text[1024], *at;
	unsigned long long v = 0;

	snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
	if (sys_get(AT_FDCWD, path, text, sizeof text) < 0 || !(at = strrchr(text, ')')) || !at[1])
		return 0;
	*ret_state = at[2];
	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%llu", &v) == 1 ? v : 0;
}

void txn_started(struct txn *t, pid_t pid)
{
	char state;

	t->start.pid = (uint64_t)pid;
	t->start.pid_start = start_of(t->start.pid, &state);
	head_put_start(t);
	remove_work(t); /* there is nothing else to do until it ends */
}

/* Its owner was killed, and the kernel is ending what it had started. */
static void wait_for_program(const struct txn *t)
{
	const struct timespec nap = { 0, 2000000 };
	char state = 0;

	for (int i = 0; i < 2500 && t->start.pid; i++) {
		if (start_of(t->start.pid, &state) != t->start.pid_start || state == 'Z' || state == 'X')
			return;
		(void)nanosleep(&nap, NULL);
	}
}

/* ---- opening ---- */

int store_open_txn(const struct txn_store *s, const char *folder, const char *id, struct txn **ret, struct cs_err *err)
{
	struct txn *t = new_txn();
	CS_FREE char *path = cs_printf("%s/%s", folder, id);
	int r = 0;

	t->store = (struct txn_store){ fcntl(s->dir, F_DUPFD_CLOEXEC, 3), cs_strdup(s->path), s->inside };
	t->live = !strcmp(folder, "live");
	t->dir = openat(s->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->dir < 0)
		r = cs_fail(err, CS_E_NOT_FOUND, errno, "there is no transaction '%s'", id);
	if (r == 0) {
		t->head = openat(t->dir, "head", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		r = t->head < 0 ? cs_fail(err, CS_E_INVALID, errno, "'%s' has no head", id) : 0;
	}
	if (r == 0 && store_lock(t->head) < 0)
		r = cs_fail(err, CS_E_CONFLICT, 0, "%s is in use: its program still runs, or another command works on it (of a session `caisson steps %s` tells, and "
			    "`caisson end %s` ends it)", id, id, id);
	if (r == 0 && (r = head_read(t->head, t, err)) < 0)
		r = cs_wrap(err, r, "%s", id);
	if (r == 0 && strcmp(t->about.id, id) != 0)
		r = cs_fail(err, CS_E_INVALID, 0, "'%s' holds the head of another transaction", id);
	if (r < 0) {
		txn_close(t);
		return r;
	}
	store_key(t->key, t->about.workspace);
	if (t->live)
		wait_for_program(t);
	(void)open_workspace(t); /* gone or replaced: said by whoever needs it */
	*ret = t;
	return 0;
}

/* ---- rest ---- */

int store_rest(struct txn *t, struct cs_err *err)
{
	CS_FD int from = -1, to = -1;

	if (!t->live)
		return 0;
	from = store_open_dir(&t->store, "live", false);
	to = store_open_dir(&t->store, t->key, true);
	if (from < 0 || to < 0 || act_rename(from, t->about.id, to, t->about.id, RENAME_NOREPLACE) < 0 || act_sync(to) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "put %s to rest", t->about.id);
	t->live = false;
	return 0;
}

int store_wake(struct txn *t, struct cs_err *err)
{
	CS_FD int from = -1, to = -1;

	if (t->live)
		return 0;
	from = store_open_dir(&t->store, t->key, false);
	to = store_open_dir(&t->store, "live", true);
	if (from < 0 || to < 0 || act_rename(from, t->about.id, to, t->about.id, RENAME_NOREPLACE) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "take up %s", t->about.id);
	t->live = true;
	return 0;
}

static void log_counts(const struct txn *t, const char *event, const struct txn_changes *c)
{
	char text[128];

	snprintf(text, sizeof text, "added=%zu changed=%zu deleted=%zu bytes=%llu", c->added, c->changed, c->deleted, (unsigned long long)c->bytes);
	store_log(t, event, text);
}

int txn_keep(struct txn *t, const struct txn_changes *c, struct cs_err *err)
{
	int r;

	if (commit_has_journal(t))
		return cs_fail(err, CS_E_CONFLICT, 0, "its commit was cut short: the next command finishes it");
	if (act_sync_fs(t->dir) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "sync %s to disk", t->about.id);
	r = store_rest(t, err);
	if (r == 0 && c)
		log_counts(t, "pending", c);
	return r;
}

bool txn_is_empty(const struct txn *t)
{
	struct cs_strv names = { 0 };
	CS_FD int up = openat(t->dir, "up", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat a, b;
	bool empty;

	if (up < 0)
		return errno == ENOENT;
	empty = scan_names(up, &names) == 0 && names.n == 0;
	/* The root's own attributes may have changed all the same. */
	if (empty && t->ws >= 0 && fstat(up, &a) == 0 && fstat(t->ws, &b) == 0)
		empty = compare_entry(&(struct compared){ up, ".", &a, false }, &(struct compared){ t->ws, ".", &b, false }) == 0;
	cs_strv_done(&names);
	return empty;
}

/* ---- the end ---- */

void store_log(const struct txn *t, const char *event, const char *rest)
{
	struct cs_buf line CS_BUF_AUTO = CS_BUF(16384);
	CS_FD int fd = openat(t->store.dir, "log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct timespec now;
	struct tm tm;
	char when[32];

	clock_gettime(CLOCK_REALTIME, &now);
	if (fd < 0 || !gmtime_r(&now.tv_sec, &tm) || !strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return;
	cs_buf_fmt(&line, "%s %s %s %s%s", when, t->about.id, event, rest, *rest ? " " : "");
	cs_escape(&line, t->about.workspace);
	cs_buf_char(&line, '\n');
	if (!line.over)
		(void)cs_write_all(fd, line.data, line.len); /* a full disk costs the line, not the act */
}

static void remove_all(int trash)
{
	struct cs_strv names = { 0 };

	if (scan_names(trash, &names) == 0)
		for (size_t i = 0; i < names.n; i++)
			(void)act_remove_tree(trash, names.v[i]); /* what stays is tried again by the next command */
	cs_strv_done(&names);
}

void store_empty_trash(const struct txn_store *s)
{
	CS_FD int trash = store_open_dir(s, "trash", false);
	struct cs_strv names = { 0 };
	bool any = false;
	pid_t pid;

	if (trash >= 0 && scan_names(trash, &names) == 0)
		for (size_t i = 0; i < names.n; i++)
			any |= !is_work(names.v[i]); /* those are for remove_work() */
	cs_strv_done(&names);
	if (!any)
		return;
	pid = fork();
	if (pid < 0)
		return; /* the next command tries again */
	if (pid > 0) {
		(void)waitpid(pid, NULL, 0);
		return;
	}
	/* Nobody waits for it, and it holds nothing of ours open. */
	(void)setsid();
	if (fork() > 0)
		_exit(0);
	(void)dup2(trash, 3);
	(void)close_range(4, ~0u, 0);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	(void)!open("/dev/null", O_RDWR);
	(void)!open("/dev/null", O_RDWR);
	(void)!open("/dev/null", O_RDWR);
	remove_all(3);
	_exit(0);
}

int store_trash(struct txn *t, struct cs_err *err)
{
	CS_FD int from = store_open_dir(&t->store, t->live ? "live" : t->key, false), to = -1;
	char name[64];

	if (from < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "open where %s is kept", t->about.id);
	if (t->live && txn_is_empty(t) && give_spare(t, from))
		return 0;
	if (txn_is_empty(t) && !commit_parts(t->dir)) /* a handful of calls */
		return act_remove_tree(from, t->about.id) < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "remove %s", t->about.id) : 0;
	to = store_open_dir(&t->store, "trash", true);
	snprintf(name, sizeof name, "%s.%lld", t->about.id, (long long)head_boot_offset() ^ (long long)getpid());
	if (to < 0 || act_rename(from, t->about.id, to, name, 0) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "throw %s away", t->about.id);
	store_empty_trash(&t->store);
	return 0;
}

/* Only said to be: an undo puts what was committed back into `up`, between what is there. */
int txn_drop_rest(struct txn *t, struct cs_err *err)
{
	if (commit_has_journal(t))
		return cs_fail(err, CS_E_CONFLICT, 0, "a commit of %s was cut short and could not be finished", t->about.id);
	if ((act_mkdir(t->dir, DROPPED, 0700) < 0 && errno != EEXIST) || act_sync(t->dir) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "throw the rest of %s away", t->about.id);
	store_log(t, "rest-rolled-back", "");
	return 0;
}

bool txn_is_dropped(const struct txn *t)
{
	return commit_parts(t->dir) && faccessat(t->dir, DROPPED, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int txn_discard(struct txn *t, const char *why, struct cs_err *err)
{
	bool empty = txn_is_empty(t);
	int r;

	/* What the workspace had before may be in its undo set, and nowhere else. */
	if (commit_has_journal(t))
		return cs_fail(err, CS_E_CONFLICT, 0, "a commit of %s was cut short and could not be finished: it is not thrown away", t->about.id);
	r = store_trash(t, err);

	if (r == 0 && !empty)
		store_log(t, why, "");
	return r;
}
