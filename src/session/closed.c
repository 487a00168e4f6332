/* SPDX-License-Identifier: Apache-2.0 */
/* closed.c - what the system's directories keep from everybody.
 *
 * Where the program owns a layer over them as root does, file modes keep nothing from it: password
 * hashes, keys and what services log in with would be open.  So what the host does not let everybody
 * read is not there at all.
 */
#include "session/session.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { ENTRIES_MAX = 500000, DEPTH_MAX = 32 };

struct closed {
	struct cs_strv *ret;
	size_t entries;
	bool partly;
};

static bool is_open(const struct stat *st)
{
	mode_t need = S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;

	return S_ISLNK(st->st_mode) || (st->st_mode & need) == need;
}

static void look_into(struct closed *c, int dir, const char *path, unsigned depth)
{
	static struct sys_dir levels[DEPTH_MAX];
	struct sys_dir *d = &levels[depth];
	const struct dirent *e;
	struct stat st;

	sys_dir_start(d, dir);
	while ((e = sys_dir_next(d)) && !c->partly) {
		CS_FREE char *full = NULL;
		CS_FD int sub = -1;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || e->d_type == DT_LNK)
			continue;
		if (++c->entries > ENTRIES_MAX || depth + 1 == DEPTH_MAX) {
			c->partly = true;
			break;
		}
		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* gone meanwhile */
		if (is_open(&st) && !S_ISDIR(st.st_mode))
			continue;
		full = cs_printf("%s/%s", path, e->d_name);
		if (!is_open(&st)) {
			cs_strv_add(c->ret, full);
			continue;
		}
		sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			look_into(c, sub, full, depth + 1);
	}
}

void session_find_closed(const char *path, struct cs_strv *ret, bool *ret_partly)
{
	struct closed c = { .ret = ret };
	CS_FD int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0)
		look_into(&c, dir, path, 0);
	*ret_partly |= c.partly;
}
