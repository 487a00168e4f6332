/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - savepoints: layers over one another.
 *
 *   layers/N/{up,wk}   what the steps that shared layer N wrote
 *   merged/A-B/        layers A to B in one, so that lookups stay short
 *   steps              a line for each step
 *
 * A step that changed nothing costs nothing: the next one uses its layer.  After
 * every 16 layers, those are merged into one of the next size by hard links, so
 * that 4,096 steps need no more than 48 lower layers; the layers themselves stay,
 * for a rollback to any step.
 */
#include "txn/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FAN = 16 };

bool steps_any(const struct txn *t)
{
	return faccessat(t->dir, "layers", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_layer(const struct txn *t, uint32_t n, const char *part)
{
	char path[48];

	snprintf(path, sizeof path, "layers/%u%s%s", n, *part ? "/" : "", part);
	return openat(t->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void merged_name(char ret[48], uint32_t a, uint32_t b)
{
	snprintf(ret, 48, "merged/%u-%u", a, b);
}

/* ---- which lower layers ---- */

/* The largest merged run of layers that ends at n; 1 if there is none. */
static uint32_t run_ending_at(const struct txn *t, uint32_t n)
{
	uint32_t best = 1;

	for (uint32_t size = FAN; size <= n && n % size == 0; size *= FAN) {
		char name[48];

		merged_name(name, n - size + 1, n);
		if (faccessat(t->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			break;
		best = size;
	}
	return best;
}

static void add_lower(int **fds, size_t *n, int fd)
{
	int *grown = cs_calloc(*n + 1, sizeof *grown);

	if (*n)
		memcpy(grown, *fds, *n * sizeof *grown);
	free(*fds);
	*fds = grown;
	(*fds)[(*n)++] = fd;
}

/* Layers n, n-1, ... 1, merged ones where there are. */
static int open_lowers(const struct txn *t, uint32_t n, int **ret, size_t *ret_n)
{
	while (n) {
		uint32_t size = run_ending_at(t, n);
		char name[48];
		int fd;

		merged_name(name, n - size + 1, n);
		fd = size > 1 ? openat(t->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : open_layer(t, n, "up");
		if (fd < 0)
			return -1;
		add_lower(ret, ret_n, fd);
		n -= size;
	}
	return 0;
}

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(fds);
}

/* ---- merging ---- */

/* Oldest first, under another name until it is whole. */
static int merge_run(const struct txn *t, uint32_t a, uint32_t b, uint32_t piece, struct cs_err *err)
{
	char name[48], piece_name[48];
	CS_FD int to = -1;
	int r = 0;

	if ((act_mkdir(t->dir, "merged", 0700) < 0 && errno != EEXIST) || act_remove_tree(t->dir, "merged/new") < 0 ||
	    act_mkdir(t->dir, "merged/new", 0700) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "merge layers");
	to = openat(t->dir, "merged/new", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (uint32_t at = a; r == 0 && at <= b; at += piece) {
		merged_name(piece_name, at, at + piece - 1);
		CS_FD int from = piece > 1 ? openat(t->dir, piece_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : open_layer(t, at, "up");

		r = from < 0 || to < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "merge layers") : merge_layer(to, from, MERGE_LINK, err);
	}
	merged_name(name, a, b);
	if (r == 0 && act_rename(t->dir, "merged/new", t->dir, name, RENAME_NOREPLACE) < 0)
		r = cs_fail(err, CS_E_SYSTEM, errno, "merge layers");
	return r;
}

static int merge_if_due(const struct txn *t, uint32_t n, struct cs_err *err)
{
	for (uint32_t size = FAN; n && n % size == 0; size *= FAN) {
		char name[48];
		int r;

		merged_name(name, n - size + 1, n);
		if (faccessat(t->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue; /* by a savepoint that failed after this */
		r = merge_run(t, n - size + 1, n, size / FAN, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- savepoints ---- */

static bool is_empty_layer(int up)
{
	struct cs_strv names = { 0 };
	bool empty = scan_names(up, &names) == 0 && names.n == 0;

	cs_strv_done(&names);
	return empty;
}

/* The root of a new layer looks as the root of the one beneath. */
static int copy_root(int from, int to)
{
	struct timespec times[2];
	struct stat st;

	if (fstat(from, &st) < 0)
		return -1;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	if (geteuid() == 0 && fchown(to, st.st_uid, st.st_gid) < 0)
		return -1;
	return fchmod(to, st.st_mode & 07777) < 0 || futimens(to, times) < 0 ? -1 : 0;
}

static bool same_root(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && compare_entry(&(struct compared){ a, ".", &x, false }, &(struct compared){ b, ".", &y, false }) == 0;
}

/* Under another name until it is whole: a crash leaves no layer whose root is not as it should be. */
static int fill_layer(const struct txn *t, int below)
{
	CS_FD int dir = -1, up = -1, wk = -1;

	if (act_remove_tree(t->dir, "layers/new") < 0 || act_mkdir(t->dir, "layers/new", 0700) < 0 || act_mkdir(t->dir, "layers/new/up", 0700) < 0 ||
	    act_mkdir(t->dir, "layers/new/wk", 0700) < 0)
		return -1;
	dir = openat(t->dir, "layers/new", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	up = openat(t->dir, "layers/new/up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	wk = openat(t->dir, "layers/new/wk", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Its owner's: who mounts it has that id, and no power over what is root's. */
	if (dir < 0 || up < 0 || wk < 0 || copy_root(below, dir) < 0 || fchmod(dir, 0700) < 0 || copy_root(below, wk) < 0 || fchmod(wk, 0700) < 0)
		return -1;
	return copy_xattrs_all(below, ".", up, ".") < 0 ? -1 : copy_root(below, up);
}

static int make_layer(struct txn *t, uint32_t n)
{
	CS_FD int below = n > 1 ? open_layer(t, n - 1, "up") : fcntl(t->ws, F_DUPFD_CLOEXEC, 3);
	char path[48];

	if (below < 0 || (act_mkdir(t->dir, "layers", 0700) < 0 && errno != EEXIST) || fill_layer(t, below) < 0)
		return -1;
	snprintf(path, sizeof path, "layers/%u", n);
	/* What is there is of a savepoint that failed: nothing was ever mounted on it. */
	if (act_rename(t->dir, "layers/new", t->dir, path, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EEXIST || act_remove_tree(t->dir, path) < 0)
		return -1;
	return act_rename(t->dir, "layers/new", t->dir, path, RENAME_NOREPLACE);
}

/* Did the steps since the last savepoint write nothing? */
static bool can_reuse(const struct txn *t)
{
	CS_FD int up = t->layer ? open_layer(t, t->layer, "up") : -1;
	CS_FD int below = t->layer > 1 ? open_layer(t, t->layer - 1, "up") : fcntl(t->ws, F_DUPFD_CLOEXEC, 3);

	return up >= 0 && is_empty_layer(up) && same_root(up, below);
}

static int add_layer(struct txn *t, struct cs_err *err)
{
	int r = t->layer ? merge_if_due(t, t->layer, err) : 0;

	if (r == 0 && make_layer(t, t->layer + 1) < 0)
		r = cs_fail(err, CS_E_SYSTEM, errno, "make a savepoint");
	if (r == 0)
		t->layer++;
	return r;
}

int txn_savepoint(struct txn *t, uint32_t mounted, struct txn_savepoint *ret, struct cs_err *err)
{
	bool reuse = can_reuse(t);
	int r = reuse ? 0 : add_layer(t, err);

	*ret = (struct txn_savepoint){ .layer = t->layer, .store = -1 };
	if (r < 0 || (reuse && mounted == t->layer))
		return r;
	ret->mount = true;
	ret->store = open_layer(t, t->layer, "");
	if (ret->store < 0 || open_lowers(t, t->layer - 1, &ret->lowers, &ret->n_lowers) < 0) {
		r = cs_fail(err, CS_E_SYSTEM, errno, "open the layers");
		txn_savepoint_done(ret);
	}
	return r;
}

void txn_savepoint_done(struct txn_savepoint *s)
{
	if (s->store >= 0)
		close(s->store);
	close_all(s->lowers, s->n_lowers);
	*s = (struct txn_savepoint){ .store = -1 };
}

uint32_t txn_layer(const struct txn *t)
{
	return t->layer;
}

/* ---- the record ---- */

static int append(struct txn *t, const struct cs_buf *line, struct cs_err *err)
{
	CS_FD int fd = openat(t->dir, "steps", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || line->over || cs_fault("write") || cs_write_all(fd, line->data, line->len) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "record a step");
	return 0;
}

int txn_step_record(struct txn *t, struct txn_step *s, struct cs_err *err)
{
	struct cs_buf line CS_BUF_AUTO = CS_BUF(1 << 16);

	s->n = ++t->steps;
	cs_buf_fmt(&line, "step %u %u %" PRIu64 " %" PRIu64 " %d %d %.4000s\n", s->n, s->layer, s->started, s->us, s->status, s->background, s->command);
	return append(t, &line, err);
}

struct steps {
	struct txn_step *v;
	size_t n;
};

static void read_step(struct steps *all, const char *line)
{
	struct txn_step s = { 0 };
	unsigned back = 0;
	int at = 0, background = 0;

	if (sscanf(line, "rollback %u", &back) == 1) {
		for (size_t i = 0; i < all->n; i++)
			all->v[i].undone |= all->v[i].n >= back;
		return;
	}
	if (sscanf(line, "step %u %u %" SCNu64 " %" SCNu64 " %d %d %n", &s.n, &s.layer, &s.started, &s.us, &s.status, &background, &at) != 6 || !at)
		return;
	s.background = background;
	s.command = cs_strdup(line + at);
	if (all->n % 64 == 0) {
		struct txn_step *grown = cs_calloc(all->n + 64, sizeof *grown);

		if (all->n)
			memcpy(grown, all->v, all->n * sizeof *grown);
		free(all->v);
		all->v = grown;
	}
	all->v[all->n++] = s;
}

static void read_steps(const struct txn *t, struct steps *all)
{
	CS_FD int fd = openat(t->dir, "steps", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[8192];

	if (!f)
		return;
	(void)CS_TAKE_FD(fd); /* the stream's now */
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		read_step(all, line);
	}
	(void)fclose(f); /* only read */
}

static void steps_done(struct steps *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->v[i].command);
	free(all->v);
}

/* A layer that a later step used as well: this one had written nothing, or there would have been a new one,
 * unless there was none because something was left running. */
static bool wrote_nothing(const struct steps *all, size_t i)
{
	for (size_t k = 0; k <= i; k++)
		if (all->v[k].layer == all->v[i].layer && !all->v[k].undone && all->v[k].background)
			return false;
	for (size_t k = i + 1; k < all->n; k++)
		if (all->v[k].layer == all->v[i].layer && !all->v[k].undone)
			return true;
	return false;
}

int txn_steps(struct txn *t, txn_step_visit visit, void *arg, struct cs_err *err)
{
	struct steps all = { 0 };
	int r = 0;

	(void)err;
	read_steps(t, &all);
	for (size_t i = 0; i < all.n; i++)
		all.v[i].nothing = wrote_nothing(&all, i);
	for (size_t i = 0; r == 0 && i < all.n; i++)
		r = visit(t, &all.v[i], arg);
	steps_done(&all);
	return r;
}

int txn_step_changes(struct txn *t, const struct txn_step *s, struct txn_changes *ret, struct cs_err *err)
{
	CS_FD int up = open_layer(t, s->layer, "up");
	struct scan_layers l = { .upper = up, .quick = true };
	int *lowers = NULL;
	size_t n = 0;
	int r;

	*ret = (struct txn_changes){ 0 };
	if (up < 0 || s->undone || s->nothing)
		return 0;
	if (open_lowers(t, s->layer - 1, &lowers, &n) < 0) {
		close_all(lowers, n);
		return cs_fail(err, CS_E_SYSTEM, errno, "open the layers");
	}
	add_lower(&lowers, &n, fcntl(t->ws, F_DUPFD_CLOEXEC, 3));
	l.lower = lowers;
	l.n_lower = n;
	r = scan_layer(&l, NULL, ret, err);
	close_all(lowers, n);
	return r;
}

/* ---- going back ---- */

static int drop_merged(const struct txn *t, uint32_t from)
{
	CS_FD int dir = openat(t->dir, "merged", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cs_strv names = { 0 };
	int r = dir < 0 ? 0 : scan_names(dir, &names);

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		unsigned a, b;

		if (sscanf(names.v[i], "%u-%u", &a, &b) == 2 && b >= from)
			r = act_remove_tree(dir, names.v[i]);
	}
	cs_strv_done(&names);
	return r;
}

int txn_rollback_to(struct txn *t, uint32_t step, struct cs_err *err)
{
	struct steps all = { 0 };
	struct cs_buf line CS_BUF_AUTO = CS_BUF(64);
	uint32_t layer = 0, first = 0;
	int r = 0;

	read_steps(t, &all);
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i].n == step && !all.v[i].undone)
			layer = all.v[i].layer;
	for (size_t i = 0; i < all.n && !first; i++)
		if (all.v[i].layer == layer && all.v[i].n < step && !all.v[i].undone && all.v[i].background)
			first = all.v[i].n;
	steps_done(&all);
	if (layer && first)
		return cs_fail(err, CS_E_CONFLICT, 0, "there is no savepoint before step %u: step %u was left running (`caisson rollback %s@%u` goes back to before both)",
			       step, first, t->about.id, first);
	if (!layer)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "%s has no step %u to go back to (`caisson steps %s` lists them)", t->about.id, step, t->about.id);
	cs_buf_fmt(&line, "rollback %u\n", step);
	if (drop_merged(t, layer) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "drop merged layers");
	/* Newest first, each at once: whatever is left after a crash is a state that was. */
	while (r == 0 && t->layer >= layer) {
		char path[48];

		snprintf(path, sizeof path, "layers/%u", t->layer);
		if (act_remove_tree(t->dir, "dropped") < 0 || act_rename(t->dir, path, t->dir, "dropped", 0) < 0)
			r = cs_fail(err, CS_E_SYSTEM, errno, "drop a layer");
		else
			t->layer--;
	}
	(void)act_remove_tree(t->dir, "dropped"); /* the next one tries again */
	return r < 0 ? r : append(t, &line, err);
}

/* ---- the end ---- */

static uint32_t newest_layer(const struct txn *t)
{
	CS_FD int dir = openat(t->dir, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cs_strv names = { 0 };
	uint32_t newest = 0;

	if (dir >= 0 && scan_names(dir, &names) == 0)
		for (size_t i = 0; i < names.n; i++) {
			unsigned n;

			if (sscanf(names.v[i], "%u", &n) == 1 && n > newest)
				newest = n;
		}
	cs_strv_done(&names);
	return newest;
}

/* Oldest first into `up`; each is removed once it is used up, so a crash is no more than a pause. */
int txn_flatten(struct txn *t, struct cs_err *err)
{
	uint32_t last = newest_layer(t);
	CS_FD int up = openat(t->dir, "up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = 0;

	if (!steps_any(t))
		return 0;
	if (up < 0 || act_remove_tree(t->dir, "merged") < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "put the layers together");
	for (uint32_t n = 1; r == 0 && n <= last; n++) {
		CS_FD int layer = open_layer(t, n, "up");
		char path[48];

		if (layer < 0)
			continue; /* done before a crash, or never made whole */
		r = merge_layer(up, layer, MERGE_MOVE, err);
		snprintf(path, sizeof path, "layers/%u", n);
		if (r == 0 && act_remove_tree(t->dir, path) < 0)
			r = cs_fail(err, CS_E_SYSTEM, errno, "put the layers together");
	}
	/* What one step made and another removed: a program never made such, and a commit does not look for them. */
	if (r == 0 && t->ws >= 0)
		r = merge_tidy(up, t->ws, err);
	if (r == 0 && act_remove_tree(t->dir, "layers") < 0)
		r = cs_fail(err, CS_E_SYSTEM, errno, "put the layers together");
	return r;
}

int txn_fork(struct txn *from, struct txn **ret, struct cs_err *err)
{
	const struct txn_about *a = &from->about;
	struct txn_about b = { .workspace = cs_strdup(a->workspace), .profile = cs_strdup(a->profile), .command = cs_printf("fork of %s", a->id), .steps = a->steps };
	struct txn *t;
	CS_FD int up = -1;
	int r;

	cs_strv_copy(&b.protect, &a->protect);
	cs_strv_copy(&b.allow, &a->allow);
	cs_strv_copy(&b.hidden, &a->hidden);
	r = txn_begin(&b, &t, err);
	if (r < 0) {
		txn_about_done(&b);
		return r;
	}
	/* What it was begun from is what the first one was begun from. */
	t->start = from->start;
	t->start.pid = t->start.pid_start = 0;
	head_put_start(t);
	if (make_layer(t, 1) < 0)
		r = cs_fail(err, CS_E_SYSTEM, errno, "make a copy of %s", a->id);
	up = open_layer(t, 1, "up");
	for (uint32_t n = 1; r == 0 && n <= from->layer; n++) {
		CS_FD int layer = open_layer(from, n, "up");

		r = layer < 0 || up < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "make a copy of %s", a->id) : merge_layer(up, layer, MERGE_COPY, err);
	}
	if (r < 0) {
		(void)txn_discard(t, "fork-failed", NULL);
		txn_close(t);
		return r;
	}
	t->layer = 1;
	*ret = t;
	return 0;
}
