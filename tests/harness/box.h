/* SPDX-License-Identifier: Apache-2.0 */
/* box.h - a sandbox for tests of the back end, without a session around it.
 *
 * BOX_TEST(name) makes two tests: as root (if we are), and as uid 61234 or whoever we are. */
#pragma once
#include "harness/t.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BOX_UID = 61234, BOX_BINDS = 6 };

struct box {
	char dir[200], ws[256];                /* ws: the workspace, in dir */
	unsigned uid;                          /* who owns it */
	struct profile_limits limits;
	struct sandbox_bind binds[BOX_BINDS];  /* the last is the workspace */
	const char *hide[4];
	size_t n_hide;
	int lowers[64];
};

static inline int box_dir(const struct box *b, const char *rel)
{
	char path[600];
	int fd;

	snprintf(path, sizeof path, "%s/%s", b->dir, rel);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		T_FAIL("mkdir %s: %s", path, strerror(errno));
	if (geteuid() == 0 && chown(path, b->uid, b->uid) < 0)
		T_FAIL("chown %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		T_FAIL("open %s: %s", path, strerror(errno));
	return fd;
}

static inline void box_put(const struct box *b, const char *rel, const char *text)
{
	char path[600];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", b->dir, rel);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		T_FAIL("write %s: %s", path, strerror(errno));
	if (geteuid() == 0 && chown(path, b->uid, b->uid) < 0)
		T_FAIL("chown %s", path);
}

static inline void box_stat(const struct box *b, const char *rel, struct stat *st)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", b->dir, rel);
	if (lstat(path, st) < 0)
		*st = (struct stat){ 0 };
}

static inline bool box_has(const struct box *b, const char *rel)
{
	struct stat st;

	box_stat(b, rel, &st);
	return st.st_ino != 0;
}

/* A store: a directory with `up` and `wk`. */
static inline int box_store(const struct box *b, const char *name)
{
	char rel[300];
	int fd = box_dir(b, name);

	snprintf(rel, sizeof rel, "%s/up", name);
	close(box_dir(b, rel));
	snprintf(rel, sizeof rel, "%s/wk", name);
	close(box_dir(b, rel));
	return fd;
}

static inline int box_upper(const struct box *b, const char *store)
{
	char rel[300];

	snprintf(rel, sizeof rel, "%s/up", store);
	return box_dir(b, rel);
}

static inline void box_init(struct box *b)
{
	static const char *const system[BOX_BINDS - 1] = { "/usr", "/bin", "/lib", "/lib64", "/etc" };

	memset(b, 0, sizeof *b);
	b->uid = BOX_UID;
	snprintf(b->dir, sizeof b->dir, "%s", t_tmpdir());
	snprintf(b->ws, sizeof b->ws, "%s/ws", b->dir);
	close(box_dir(b, "ws"));
	for (int i = 0; i < BOX_BINDS - 1; i++)
		b->binds[i] = (struct sandbox_bind){ .kind = SANDBOX_RO, .source = system[i], .optional = true };
	b->binds[BOX_BINDS - 1] = (struct sandbox_bind){ .kind = SANDBOX_LAYER, .source = b->ws, .target = "/ws" };
	b->limits = (struct profile_limits){ .disk = 256 << 20, .inodes = 20000 };
}

static inline struct sandbox_bind *box_ws(struct box *b)
{
	return &b->binds[BOX_BINDS - 1];
}

static inline struct sandbox_spec box_spec(struct box *b, char *const *argv)
{
	static char *const env[] = { (char *)"PATH=/usr/bin:/bin", NULL };

	return (struct sandbox_spec){ .id = "test", .argv = argv, .env = env, .cwd = "/ws", .path = "/usr/bin:/bin", .binds = b->binds,
				      .n_binds = BOX_BINDS, .hide = b->hide, .n_hide = b->n_hide, .limits = &b->limits, .stdio = { 0, 1, 2 } };
}

/* Runs a shell command in the workspace; its exit status, or 128+n. */
static inline int box_sh(struct box *b, const char *command)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)(uintptr_t)command, NULL };
	struct sandbox_spec spec = box_spec(b, argv);
	struct cs_err err = { 0 };
	struct sandbox_exit end;
	struct sandbox *s;

	if (sandbox_start(&spec, &s, &err) < 0)
		T_FAIL("start: %s", err.msg);
	sandbox_wait(s, &end);
	if (!end.started)
		T_FAIL("not started: %s", end.err.msg);
	sandbox_free(s);
	return WIFSIGNALED(end.status) ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
}

static inline void box_as_user(void)
{
	if (geteuid() != 0)
		return;
	/* Directories are made below TMPDIR, which must be ours. */
	setenv("TMPDIR", "/tmp", 1);
	if (setgroups(0, NULL) < 0 || setresgid(BOX_UID, BOX_UID, BOX_UID) < 0 || setresuid(BOX_UID, BOX_UID, BOX_UID) < 0 ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		T_FAIL("become uid %d: %s", BOX_UID, strerror(errno));
}

#define BOX_TEST(id)                                     \
	static void id(void);                            \
	TEST(id##_as_root)                               \
	{                                                \
		if (geteuid() != 0)                      \
			T_ABSENT("not root");            \
		id();                                    \
	}                                                \
	TEST(id##_as_user)                               \
	{                                                \
		box_as_user();                           \
		id();                                    \
	}                                                \
	static void id(void)
