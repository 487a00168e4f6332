/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - a layer that was kept in memory comes to disk.
 *
 * Where no layer can stand on the workspace's mount.  Copied to one side and
 * renamed into place: a crash leaves all of it or none.
 */
#include "txn/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

struct importer {
	struct txn *t;
	struct stat owner;   /* of the workspace: what the sandbox's user made belongs to it */
	uid_t uid;           /* the sandbox's user in the layer */
	gid_t gid;
	int top;
	struct links links;  /* files with more than one name keep them */
	struct cs_err *err;
};

static int fail(struct importer *m, const char *path)
{
	char shown[256];

	return cs_fail(m->err, CS_E_SYSTEM, errno, "keep '%s'", cs_escape_to(shown, sizeof shown, path));
}

/* What the sandbox's user made belongs to the workspace's owner. */
static int give_attributes(struct importer *m, int from, const char *name, const struct stat *st, int to)
{
	return copy_attributes(from, name, st, st->st_uid == m->uid ? m->owner.st_uid : st->st_uid,
			       st->st_gid == m->gid ? m->owner.st_gid : st->st_gid, to);
}

static int copy_tree(struct importer *m, int from, int to, const char *path, unsigned depth);

static int copy_dir(struct importer *m, int from, const char *name, int to, const char *path, unsigned depth)
{
	CS_FD int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), out = -1;

	if (in < 0 || mkdirat(to, name, 0700) < 0)
		return fail(m, path);
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return out < 0 ? fail(m, path) : copy_tree(m, in, out, path, depth + 1);
}

static int copy_one(struct importer *m, int from, const char *name, int to, const char *path, unsigned depth)
{
	struct stat st;
	int r = 0;

	if (cs_fault("import") || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, path);
	if (links_again(&m->links, m->top, &st, to, name, path))
		return 0;
	if (S_ISDIR(st.st_mode))
		r = copy_dir(m, from, name, to, path, depth);
	else if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) || layer_is_whiteout(&st) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		r = copy_file(from, name, &st, to);
	else
		return 0; /* a device: it could never be committed */
	if (r < 0)
		return r == -1 ? fail(m, path) : r;
	if (layer_is_whiteout(&st))
		return 0;
	return give_attributes(m, from, name, &st, to) < 0 ? fail(m, path) : 0;
}

static int copy_tree(struct importer *m, int from, int to, const char *path, unsigned depth)
{
	struct cs_strv names = { 0 };
	int r = depth > TXN_DEPTH_MAX || scan_names(from, &names) < 0 ? fail(m, path) : 0;

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		CS_FREE char *sub = cs_printf("%s%s%s", path, *path ? "/" : "", names.v[i]);

		r = copy_one(m, from, names.v[i], to, sub, depth);
	}
	cs_strv_done(&names);
	return r;
}

int txn_import(struct txn *t, int upper, struct cs_err *err)
{
	struct importer m = { .t = t, .top = -1, .err = err };
	struct stat st;
	int r;

	(void)act_remove_tree(t->dir, "up.new");
	if (fstat(t->ws, &m.owner) < 0 || fstat(upper, &st) < 0 || act_mkdir(t->dir, "up.new", 0700) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "keep what was written");
	m.uid = st.st_uid;
	m.gid = st.st_gid;
	m.top = openat(t->dir, "up.new", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = m.top < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "keep what was written") : copy_tree(&m, upper, m.top, "", 0);
	if (r == 0) {
		struct timespec times[2] = { st.st_atim, st.st_mtim };

		/* The root's other attributes are the workspace's, as of the start. */
		if (fchmod(m.top, (st.st_mode & 0777) | (m.owner.st_mode & 07000)) < 0 || (geteuid() == 0 && fchown(m.top, m.owner.st_uid, m.owner.st_gid) < 0) ||
		    futimens(m.top, times) < 0 || act_rename(t->dir, "up.new", t->dir, "up", RENAME_EXCHANGE) < 0)
			r = cs_fail(err, CS_E_SYSTEM, errno, "keep what was written");
	}
	links_done(&m.links);
	if (m.top >= 0)
		close(m.top);
	(void)act_remove_tree(t->dir, "up.new"); /* what is left of it, or the empty one before */
	return r;
}
