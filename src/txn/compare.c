/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - whether two files differ, and in what. */
#include "txn/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

/* ---- attributes ---- */

int xattrs_path(int dir, const char *name, char *ret, size_t size)
{
	return snprintf(ret, size, "/proc/self/fd/%d/%s", dir, name) < (int)size ? 0 : (errno = ENAMETOOLONG, -1);
}

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

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(const char *path, struct cs_strv *ret)
{
	ssize_t len = llistxattr(path, NULL, 0);
	CS_FREE char *names = len > 0 ? cs_calloc(1, (size_t)len + 1) : NULL;

	if (len < 0)
		return errno == ENOTSUP ? 0 : -1;
	if (len == 0 || (len = llistxattr(path, names, (size_t)len)) < 0)
		return (int)len;
	for (const char *n = names; n < names + len; n += strlen(n) + 1)
		if (!xattrs_is_overlay(n) && strcmp(n, "security.selinux") != 0)
			cs_strv_add(ret, n);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof *ret->v, by_name);
	return 0;
}

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

static int add_value(struct cs_buf *b, const char *path, const char *name)
{
	CS_FREE char *value = cs_calloc(1, TXN_XATTR_MAX);
	ssize_t len = lgetxattr(path, name, value, TXN_XATTR_MAX);
	uint32_t n = (uint32_t)len;

	if (len < 0)
		return -1;
	cs_buf_add(b, &n, sizeof n);
	cs_buf_add(b, value, n);
	return 0;
}

int xattrs_read(int dir, const char *name, struct cs_buf *ret)
{
	char path[512];
	struct cs_strv names = { 0 };
	int r = xattrs_path(dir, name, path, sizeof path);

	if (r == 0)
		r = list_names(path, &names);
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		add_real_name(ret, names.v[i]);
		r = add_value(ret, path, names.v[i]);
	}
	cs_strv_done(&names);
	if (ret->over)
		return errno = E2BIG, -1;
	return r;
}

static int xattrs_differ(int a_dir, const char *a, int b_dir, const char *b)
{
	struct cs_buf x CS_BUF_AUTO = CS_BUF(TXN_XATTR_MAX), y CS_BUF_AUTO = CS_BUF(TXN_XATTR_MAX);

	if (xattrs_read(a_dir, a, &x) < 0 || xattrs_read(b_dir, b, &y) < 0)
		return -1;
	return x.len != y.len || (x.len && memcmp(x.data, y.data, x.len));
}

/* ---- content ---- */

/* Both have this size.  The buffers are made once: for small files that would be most of the work. */
static int content_differs(int a_dir, const char *a, int b_dir, const char *b, uint64_t size)
{
	enum { CHUNK = 1 << 17 };
	static char mx[CHUNK], my[CHUNK];
	CS_FD int x = openat(a_dir, a, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	CS_FD int y = openat(b_dir, b, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (x < 0 || y < 0)
		return errno == EACCES || errno == EPERM ? 1 : -1; /* unreadable: who knows */
	while (size) {
		size_t want = size < CHUNK ? (size_t)size : CHUNK;
		ssize_t n = read_full(x, mx, want), m = read_full(y, my, want);

		if (n < 0 || m < 0)
			return -1;
		if (n != m || memcmp(mx, my, (size_t)n))
			return 1;
		if ((size_t)n < want)
			return 0; /* both were cut short meanwhile */
		size -= want;
	}
	return 0;
}

static int link_differs(int a_dir, const char *a, int b_dir, const char *b)
{
	char x[PATH_MAX], y[PATH_MAX];
	ssize_t n = readlinkat(a_dir, a, x, sizeof x), m = readlinkat(b_dir, b, y, sizeof y);

	if (n < 0 || m < 0)
		return -1;
	return n != m || memcmp(x, y, (size_t)n);
}

int compare_entry(int a_dir, const char *a, const struct stat *a_st, int b_dir, const char *b, const struct stat *b_st)
{
	int differs = 0, r = 0;

	if (S_ISREG(a_st->st_mode)) {
		r = a_st->st_size != b_st->st_size ? 1 : content_differs(a_dir, a, b_dir, b, (uint64_t)a_st->st_size);
		differs |= r > 0 ? TXN_CONTENT : 0;
	} else if (S_ISLNK(a_st->st_mode)) {
		r = link_differs(a_dir, a, b_dir, b);
		differs |= r > 0 ? TXN_TARGET : 0;
	} else if (!S_ISDIR(a_st->st_mode) && a_st->st_rdev != b_st->st_rdev) {
		differs |= TXN_CONTENT;
	}
	if (r < 0)
		return -1;
	r = xattrs_differ(a_dir, a, b_dir, b);
	if (r < 0)
		return -1;
	differs |= r ? TXN_XATTR : 0;
	if ((a_st->st_mode ^ b_st->st_mode) & 07777)
		differs |= TXN_MODE;
	if (a_st->st_uid != b_st->st_uid || a_st->st_gid != b_st->st_gid)
		differs |= TXN_OWNER;
	if (a_st->st_mtim.tv_sec != b_st->st_mtim.tv_sec || a_st->st_mtim.tv_nsec != b_st->st_mtim.tv_nsec)
		differs |= TXN_TIMES;
	return differs;
}
