/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - whether two files differ, and in what. */
#include "txn/internal.h"

#include <errno.h>
#include <string.h>

/* ---- attributes ---- */

static int xattrs_differ(const struct compared *a, const struct compared *b)
{
	struct cs_buf x CS_BUF_AUTO = CS_BUF(TXN_XATTR_MAX), y CS_BUF_AUTO = CS_BUF(TXN_XATTR_MAX);

	if ((!a->plain && xattrs_read(a->dir, a->name, &x) < 0) || xattrs_read(b->dir, b->name, &y) < 0)
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

/* ---- all ---- */

int compare_stat(const struct stat *a, const struct stat *b)
{
	int differs = 0;

	if ((a->st_mode ^ b->st_mode) & 07777)
		differs |= TXN_MODE;
	if (a->st_uid != b->st_uid || a->st_gid != b->st_gid)
		differs |= TXN_OWNER;
	if (a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec)
		differs |= TXN_TIMES;
	return differs;
}

int compare_entry(const struct compared *a, const struct compared *b)
{
	int differs = compare_stat(a->st, b->st), r = 0;
	mode_t type = a->st->st_mode;

	if (S_ISREG(type)) {
		r = a->st->st_size != b->st->st_size ? 1 : content_differs(a->dir, a->name, b->dir, b->name, (uint64_t)a->st->st_size);
		differs |= r > 0 ? TXN_CONTENT : 0;
	} else if (S_ISLNK(type)) {
		r = link_differs(a->dir, a->name, b->dir, b->name);
		differs |= r > 0 ? TXN_TARGET : 0;
	} else if (!S_ISDIR(type) && a->st->st_rdev != b->st->st_rdev) {
		differs |= TXN_CONTENT;
	}
	if (r < 0)
		return -1;
	r = xattrs_differ(a, b);
	if (r < 0)
		return -1;
	return differs | (r ? TXN_XATTR : 0);
}
