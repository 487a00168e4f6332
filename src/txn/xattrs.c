/* SPDX-License-Identifier: Apache-2.0 */
/* xattrs.c - extended attributes of dir/name, following no symlink.
 *
 * Linux 6.13 has calls for that.  Before it a path under /proc does: every call then walks
 * through /proc, which takes three times as long.
 */
#include "txn/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

/* One number on every machine, and newer than the C library. */
enum { NR_SETXATTRAT = 463, NR_GETXATTRAT = 464, NR_LISTXATTRAT = 465, NR_REMOVEXATTRAT = 466 };
enum { LIST_MAX = 1 << 16 }; /* the kernel's own limit */

struct xattr_arg {
	uint64_t value;
	uint32_t size, flags;
};

/* A filter around us may answer EPERM to calls that it does not know. */
static bool has_calls(void)
{
	static int known; /* -1: no */

#ifdef CS_TEST_SWITCHES
	if (!known && getenv("CAISSON_NO_XATTRAT"))
		known = -1;
#endif
	if (!known)
		known = syscall(NR_LISTXATTRAT, AT_FDCWD, "/", AT_SYMLINK_NOFOLLOW, NULL, 0) >= 0 || errno == ENOTSUP ? 1 : -1;
	return known > 0;
}

/* A path under /proc that names dir/name without following it. */
static int proc_path(int dir, const char *name, char *ret, size_t size)
{
	return snprintf(ret, size, "/proc/self/fd/%d/%s", dir, name) < (int)size ? 0 : (errno = ENAMETOOLONG, -1);
}

ssize_t xattrs_list(int dir, const char *name, char *ret, size_t size)
{
	char path[512];

	if (has_calls())
		return syscall(NR_LISTXATTRAT, dir, name, AT_SYMLINK_NOFOLLOW, ret, size);
	return proc_path(dir, name, path, sizeof path) < 0 ? -1 : llistxattr(path, ret, size);
}

ssize_t xattrs_get(int dir, const char *name, const char *attr, void *ret, size_t size)
{
	struct xattr_arg arg = { .value = (uintptr_t)ret, .size = (uint32_t)size };
	char path[512];

	if (has_calls())
		return syscall(NR_GETXATTRAT, dir, name, AT_SYMLINK_NOFOLLOW, attr, &arg, sizeof arg);
	return proc_path(dir, name, path, sizeof path) < 0 ? -1 : lgetxattr(path, attr, ret, size);
}

int xattrs_set(int dir, const char *name, const char *attr, const void *value, size_t size)
{
	struct xattr_arg arg = { .value = (uintptr_t)value, .size = (uint32_t)size };
	char path[512];

	if (has_calls())
		return (int)syscall(NR_SETXATTRAT, dir, name, AT_SYMLINK_NOFOLLOW, attr, &arg, sizeof arg);
	return proc_path(dir, name, path, sizeof path) < 0 ? -1 : lsetxattr(path, attr, value, size, 0);
}

int xattrs_remove(int dir, const char *name, const char *attr)
{
	char path[512];

	if (has_calls())
		return (int)syscall(NR_REMOVEXATTRAT, dir, name, AT_SYMLINK_NOFOLLOW, attr);
	return proc_path(dir, name, path, sizeof path) < 0 ? -1 : lremovexattr(path, attr);
}

/* ---- overlayfs's ---- */

/* In a user namespace nobody can write trusted attributes, overlayfs neither. */
static bool is_host_root(void)
{
	unsigned inside = 1, outside = 1, n = 0;
	char text[64];

	return geteuid() == 0 && sys_get(AT_FDCWD, "/proc/self/uid_map", text, sizeof text) >= 0 &&
	       sscanf(text, "%u %u %u", &inside, &outside, &n) == 3 && !inside && !outside && n == 4294967295u;
}

const char *xattrs_prefix(void)
{
	static const char *prefix;

	if (!prefix)
		prefix = is_host_root() ? "trusted.overlay." : "user.overlay.";
	return prefix;
}

/* Behind overlayfs's prefix, or NULL. */
static const char *behind_prefix(const char *name)
{
	size_t n = strlen(xattrs_prefix());

	return strncmp(name, xattrs_prefix(), n) ? NULL : name + n;
}

bool xattrs_is_overlay(const char *name)
{
	const char *rest = behind_prefix(name);

	return rest && strncmp(rest, "overlay.", 8) != 0; /* "overlay.overlay." is the program's own, escaped */
}

/* ---- names ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One of the file's own: not overlayfs's, nor what the system gives to every file. */
static bool counts(const char *name)
{
	return !xattrs_is_overlay(name) && strcmp(name, "security.selinux") != 0;
}

static int add_names(const char *names, ssize_t len, struct cs_strv *ret)
{
	for (const char *n = names; n < names + len; n += strlen(n) + 1)
		if (counts(n))
			cs_strv_add(ret, n);
	return 0;
}

/* Nearly always a few bytes; more than a list can hold is none that anybody could read. */
static int list_names(int dir, const char *name, struct cs_strv *ret)
{
	char few[512];
	CS_FREE char *many = NULL;
	ssize_t len = xattrs_list(dir, name, few, sizeof few);

	if (len >= 0)
		return add_names(few, len, ret);
	if (errno != ERANGE)
		return errno == ENOTSUP ? 0 : -1;
	many = cs_calloc(1, LIST_MAX);
	len = xattrs_list(dir, name, many, LIST_MAX);
	return len < 0 ? -1 : add_names(many, len, ret);
}

static int sorted_names(int dir, const char *name, struct cs_strv *ret)
{
	int r = list_names(dir, name, ret);

	if (ret->n)
		qsort(ret->v, ret->n, sizeof *ret->v, by_name);
	return r;
}

/* ---- in one look ---- */

unsigned xattrs_look(int dir, const char *name)
{
	char names[4096];
	ssize_t len = xattrs_list(dir, name, names, sizeof names);
	unsigned found = 0;

	if (len < 0)
		return errno == ERANGE || errno == E2BIG ? ATTR_MANY | ATTR_MARK | ATTR_OWN : errno == ENOTSUP ? 0 : ATTR_UNREAD | ATTR_MARK | ATTR_OWN;
	for (const char *n = names; n < names + len; n += strlen(n) + 1) {
		bool overlay = xattrs_is_overlay(n);

		found |= overlay ? ATTR_MARK : 0;
		found |= counts(n) ? ATTR_OWN : 0;
		found |= !strcmp(n, "security.capability") ? ATTR_CAPS : 0;
		found |= !overlay && (!strncmp(n, "user.overlay.", 13) || !strncmp(n, "trusted.overlay.", 16)) ? ATTR_POSES | ATTR_MARK : 0;
	}
	return found;
}

/* ---- to be kept ---- */

/* As the program named it: one level of escape is taken off. */
static void add_real_name(struct cs_buf *b, const char *name)
{
	const char *rest = behind_prefix(name);

	if (rest) {
		cs_buf_add(b, name, (size_t)(rest - name)); /* user.overlay. */
		rest += strlen("overlay.");
	}
	cs_buf_str(b, rest ? rest : name);
	cs_buf_char(b, 0);
}

static int add_value(struct cs_buf *b, int dir, const char *name, const char *attr)
{
	CS_FREE char *value = cs_calloc(1, TXN_XATTR_MAX);
	ssize_t len = xattrs_get(dir, name, attr, value, TXN_XATTR_MAX);
	uint32_t n = (uint32_t)len;

	if (len < 0)
		return -1;
	cs_buf_add(b, &n, sizeof n);
	cs_buf_add(b, value, n);
	return 0;
}

int xattrs_read(int dir, const char *name, struct cs_buf *ret)
{
	struct cs_strv names = { 0 };
	int r = sorted_names(dir, name, &names);

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		add_real_name(ret, names.v[i]);
		r = add_value(ret, dir, name, names.v[i]);
	}
	cs_strv_done(&names);
	if (ret->over)
		return errno = E2BIG, -1;
	return r;
}
