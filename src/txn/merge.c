/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - two layers become one.
 *
 * A whiteout stays one: beneath both lies the base.  A directory that the newer
 * layer made where the older one has a whiteout or a file hid the base without a
 * mark of its own, because the lookup ended at the older layer; in the merged
 * layer it needs the mark.
 */
#include "txn/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

struct merger {
	enum merge_how how;
	struct cs_err *err;
};

static int fail(struct merger *m, const char *name)
{
	char shown[128];

	return cs_fail(m->err, CS_E_SYSTEM, errno, "merge '%s'", cs_escape_to(shown, sizeof shown, name));
}

static int copy_meta(int from, const char *name, const struct stat *st, int to)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (geteuid() == 0 && fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (copy_xattrs_all(from, name, to, name) < 0)
		return -1;
	if (!S_ISLNK(st->st_mode) && fchmodat(to, name, st->st_mode & 07777, 0) < 0)
		return -1;
	return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
}

static int copy_file(int from, const char *name, const struct stat *st, int to)
{
	char target[PATH_MAX];
	ssize_t n;

	if (S_ISREG(st->st_mode)) {
		CS_FD int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		CS_FD int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

		return in < 0 || out < 0 ? -1 : copy_content(in, out, st->st_size);
	}
	if (!S_ISLNK(st->st_mode))
		return mknodat(to, name, st->st_mode, st->st_rdev);
	n = readlinkat(from, name, target, sizeof target - 1);
	if (n < 0)
		return -1;
	target[n] = 0;
	return symlinkat(target, to, name);
}

static int place_file(struct merger *m, int from, const char *name, const struct stat *st, int to)
{
	if (act_remove_tree(to, name) < 0)
		return -1;
	switch (m->how) {
	case MERGE_MOVE:
		return act_rename(from, name, to, name, 0);
	case MERGE_LINK:
		if (linkat(from, name, to, name, 0) == 0)
			return 0;
		break; /* too many links, or a file system without: a copy does as well */
	case MERGE_COPY:
		break;
	}
	if (copy_file(from, name, st, to) < 0)
		return -1;
	return layer_is_whiteout(st) ? 0 : copy_meta(from, name, st, to);
}

static int mark_opaque(int dir, const char *name)
{
	char path[512], full[64];

	if (xattrs_path(dir, name, path, sizeof path) < 0)
		return -1;
	snprintf(full, sizeof full, "%sopaque", xattrs_prefix());
	return lsetxattr(path, full, "y", 1, 0);
}

static bool is_opaque(int dir, const char *name)
{
	char v[8];

	return layer_xattr(dir, name, "opaque", v, sizeof v) == 1 && v[0] == 'y';
}

static int merge_dirs(struct merger *m, int newer, int older, unsigned depth);

static int merge_dir(struct merger *m, int newer, const char *name, const struct stat *st, int older, unsigned depth)
{
	CS_FD int from = -1, to = -1;
	struct stat there;
	bool exists = fstatat(older, name, &there, AT_SYMLINK_NOFOLLOW) == 0, hid = exists && !S_ISDIR(there.st_mode);
	bool opaque = is_opaque(newer, name);

	if (exists && (hid || opaque)) {
		if (act_remove_tree(older, name) < 0)
			return fail(m, name);
		exists = false;
	}
	if (!exists && m->how == MERGE_MOVE && !hid)
		return act_rename(newer, name, older, name, 0) < 0 ? fail(m, name) : 0;
	if (!exists && act_mkdir(older, name, 0700) < 0)
		return fail(m, name);
	from = openat(newer, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	to = openat(older, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 || to < 0)
		return fail(m, name);
	if (merge_dirs(m, from, to, depth + 1) < 0)
		return -CS_E_SYSTEM;
	/* Last: a directory may become closed. */
	if (copy_meta(newer, name, st, older) < 0 || (hid && mark_opaque(older, name) < 0))
		return fail(m, name);
	return m->how == MERGE_MOVE && act_unlink(newer, name, AT_REMOVEDIR) < 0 ? fail(m, name) : 0;
}

static int merge_dirs(struct merger *m, int newer, int older, unsigned depth)
{
	struct cs_strv names = { 0 };
	int r = depth > TXN_DEPTH_MAX || scan_names(newer, &names) < 0 ? fail(m, ".") : 0;

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		struct stat st;

		if (fstatat(newer, names.v[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = fail(m, names.v[i]);
		else if (S_ISDIR(st.st_mode))
			r = merge_dir(m, newer, names.v[i], &st, older, depth);
		else if (place_file(m, newer, names.v[i], &st, older) < 0)
			r = fail(m, names.v[i]);
	}
	cs_strv_done(&names);
	return r;
}

int merge_layer(int older, int newer, enum merge_how how, struct cs_err *err)
{
	struct merger m = { how, err };
	struct timespec times[2];
	struct stat st;
	int r = merge_dirs(&m, newer, older, 0);

	if (r < 0)
		return r;
	if (fstat(newer, &st) < 0)
		return fail(&m, ".");
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	if (copy_xattrs_all(newer, ".", older, ".") < 0 || fchmod(older, st.st_mode & 07777) < 0 ||
	    (geteuid() == 0 && fchown(older, st.st_uid, st.st_gid) < 0) || futimens(older, times) < 0)
		return fail(&m, ".");
	return 0;
}
