/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - where transactions are kept.
 *
 * A commit is renames, and those do not cross mounts, so a store must stand on
 * the workspace's own mount; and overlayfs takes no upper layer that lies in
 * its own base.  In this order:
 *
 *   1. the state directory: /var/lib/caisson, or ~/.local/state/caisson
 *   2. .caisson-UID beside the workspace
 *   3. .caisson in the workspace, when that is the root of a mount: no layer
 *      can stand there, so the program writes to memory and what it changed is
 *      copied there when it ends
 *
 * Stores of the second and third kind are written down in the state directory,
 * so that they are found without knowing the workspace.
 */
#include "txn/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/state.h"
#include "base/text.h"

uint64_t txn_hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}

void store_key(char ret[24], const char *workspace)
{
	snprintf(ret, 24, "w-%016llx", (unsigned long long)txn_hash(workspace));
}

char *txn_state_dir(void)
{
	return cs_state_dir();
}

static int make_parents(const char *path)
{
	CS_FREE char *copy = cs_strdup(path);

	for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return -1;
		*p = '/';
	}
	return 0;
}

/* Ours alone, or it is not used: what lies in it is committed with our rights. */
static int open_store(const char *path, bool make)
{
	CS_FD int fd = -1;
	struct stat st;

	if (make && mkdir(path, 0700) < 0 && errno == ENOENT && (make_parents(path) < 0 || (mkdir(path, 0700) < 0 && errno != EEXIST)))
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return errno = EPERM, -1;
	return CS_TAKE_FD(fd);
}

static bool is_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (path[n] == '/' || !path[n] || (n && dir[n - 1] == '/'));
}

static char *sibling_path(const char *workspace)
{
	const char *slash = strrchr(workspace, '/');

	return cs_printf("%.*s/.caisson-%u", (int)(slash - workspace), workspace, (unsigned)geteuid());
}

static char *inside_path(const char *workspace)
{
	return cs_printf("%s/.caisson", workspace);
}

/* ---- stores elsewhere are remembered ---- */

static bool is_remembered(const char *list, const char *path)
{
	size_t n = strlen(path);

	for (const char *p = list; (p = strstr(p, path)); p += n)
		if ((p == list || p[-1] == '\n') && p[n] == '\n')
			return true;
	return false;
}

static void read_list(int state, struct cs_buf *ret)
{
	CS_FD int fd = openat(state, "stores", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		(void)cs_buf_read_fd(ret, fd, "stores", NULL); /* a list too long is as good as none */
}

static void remember(const char *path)
{
	struct cs_buf list CS_BUF_AUTO = CS_BUF(1 << 20);
	CS_FREE char *state = txn_state_dir(), *line = cs_printf("%s\n", path);
	CS_FD int dir = state ? open_store(state, true) : -1, fd = -1;

	if (dir < 0 || strchr(path, '\n'))
		return; /* it is found through its workspace only */
	read_list(dir, &list);
	if (is_remembered(cs_buf_text(&list), path))
		return;
	fd = openat(dir, "stores", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)cs_write_all(fd, line, strlen(line));
}

/* ---- choosing ---- */

static bool try_store(char *take_path, const char *workspace, int ws, bool inside, struct txn_store *ret)
{
	CS_FREE char *path = take_path;
	CS_FD int fd = -1;

	if (!path || (!inside && is_within(path, workspace)))
		return false;
	fd = open_store(path, true);
	if (fd < 0 || sys_mount_id(fd) != sys_mount_id(ws))
		return false;
	*ret = (struct txn_store){ CS_TAKE_FD(fd), CS_TAKE_PTR(path), inside };
	return true;
}

static bool is_mount_root(const char *workspace, int ws)
{
	CS_FREE char *up = cs_printf("%s/..", workspace);
	CS_FD int fd = open(up, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || sys_mount_id(fd) != sys_mount_id(ws);
}

int store_for(const char *workspace, int ws, struct txn_store *ret, struct cs_err *err)
{
	char shown[256];

	if (try_store(txn_state_dir(), workspace, ws, false, ret))
		return 0;
	if ((!is_mount_root(workspace, ws) && try_store(sibling_path(workspace), workspace, ws, false, ret)) ||
	    try_store(inside_path(workspace), workspace, ws, true, ret)) {
		remember(ret->path);
		return 0;
	}
	return cs_fail(err, CS_E_UNSUPPORTED, errno,
		       "there is no place for a change set on the mount of '%s': not the state directory, not beside it, not in it "
		       "(--commit never keeps what is written in memory and throws it away)",
		       cs_escape_to(shown, sizeof shown, workspace));
}

int txn_place(const char *workspace, char **ret_path, int *ret_fd, bool *ret_inside, struct cs_err *err)
{
	CS_FREE char *real = realpath(workspace, NULL);
	CS_FD int ws = real ? open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct txn_store s = { .dir = -1 };
	int r;

	if (ws < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "open '%s'", workspace);
	r = store_for(real, ws, &s, err);
	if (r < 0)
		return r;
	*ret_path = s.path;
	*ret_fd = s.dir;
	*ret_inside = s.inside;
	return 0;
}

void store_done(struct txn_store *s)
{
	if (s->dir >= 0)
		close(s->dir);
	free(s->path);
	*s = (struct txn_store){ .dir = -1 };
}

int store_open_dir(const struct txn_store *s, const char *name, bool make)
{
	if (make && mkdirat(s->dir, name, 0700) < 0 && errno != EEXIST)
		return -1;
	return openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- all that may hold something ---- */

static int visit_path(char *take_path, bool inside, store_visit visit, void *arg)
{
	CS_FREE char *path = take_path;
	struct txn_store s = { .dir = path ? open_store(path, false) : -1, .path = path, .inside = inside };
	int r = s.dir < 0 ? 0 : visit(&s, arg);

	if (s.dir >= 0)
		close(s.dir);
	return r;
}

static int visit_remembered(store_visit visit, void *arg)
{
	struct cs_buf list CS_BUF_AUTO = CS_BUF(1 << 20);
	CS_FREE char *state = txn_state_dir();
	CS_FD int dir = state ? open_store(state, false) : -1;
	char *save = NULL;
	int r = 0;

	if (dir < 0)
		return 0;
	read_list(dir, &list);
	for (char *p = list.data ? strtok_r(list.data, "\n", &save) : NULL; p && r == 0; p = strtok_r(NULL, "\n", &save)) {
		const char *name = strrchr(p, '/');

		r = visit_path(cs_strdup(p), name && !strcmp(name, "/.caisson"), visit, arg);
	}
	return r;
}

static int visit_near(const char *dir, store_visit visit, void *arg)
{
	CS_FREE char *at = cs_strdup(dir);
	int r = 0;

	while (r == 0 && at[1]) {
		r = visit_path(sibling_path(at), false, visit, arg);
		if (r == 0)
			r = visit_path(inside_path(at), true, visit, arg);
		*strrchr(at, '/') = 0;
		if (!*at)
			break;
	}
	return r;
}

int store_each(const char *dir, store_visit visit, void *arg)
{
	int r = visit_path(txn_state_dir(), false, visit, arg);

	if (r == 0)
		r = dir ? visit_near(dir, visit, arg) : visit_remembered(visit, arg);
	return r;
}
