/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - where paths lead on this machine, now.
 *
 * It is a look at one moment: a link can be another one when the command runs, and inside the sandbox some directories are
 * others.  So it tells of what is there, and is no wall; the sandbox is.  Names are opened with O_PATH, which runs nothing and
 * waits for nobody; magic links of /proc are not followed, since they are those of this process. */
#include "act/act.h"

#include "base/cleanup.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

struct looking {
	struct act_policy *p;
	sh_found found;
	void *to;
	bool last;    /* the last name itself is meant */
	bool pattern;
};

static int open_name(struct looking *l, const char *path, uint64_t flags)
{
	if (!l->p->left) {
		errno = EAGAIN;
		return -1;
	}
	l->p->left--;
	return sys_openat2(AT_FDCWD, path, O_CLOEXEC | flags, RESOLVE_NO_MAGICLINKS);
}

static char *name_of(int fd)
{
	char link[64], real[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, real, sizeof real - 1);
	return n > 0 && (size_t)n < sizeof real - 1 && *real == '/' ? cs_strndup(real, (size_t)n) : NULL;
}

/* 0: *ret is its real path, or NULL: there is none to tell.  -1: it cannot be looked at. */
static int follow(struct looking *l, const char *path, bool last, unsigned depth, char **ret);

/* Of "/a/b": "/a" and "b".  false: the last name is none that could be made. */
static bool split(const char *path, char **ret_parent, char **ret_name)
{
	size_t n = strlen(path);
	const char *slash;

	while (n > 1 && path[n - 1] == '/')
		n--;
	slash = memrchr(path, '/', n);
	if (!slash || n == 1)
		return false;
	*ret_name = cs_strndup(slash + 1, n - (size_t)(slash + 1 - path));
	*ret_parent = slash == path ? cs_strdup("/") : cs_strndup(path, (size_t)(slash - path));
	return strcmp(*ret_name, ".") != 0 && strcmp(*ret_name, "..") != 0;
}

/* What the link says, from the directory that it lies in. */
static int follow_dangling(struct looking *l, int fd, const char *parent, unsigned depth, char **ret)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof target - 1);
	CS_FREE char *path = NULL;

	if (n <= 0 || (size_t)n == sizeof target - 1)
		return -1;
	target[n] = '\0';
	path = *target == '/' ? cs_strdup(target) : cs_printf("%s/%s", parent, target);
	return follow(l, path, /* last= */ false, depth + 1, ret);
}

/* What would be made there: the directory is real, the name is as it is written. */
static int follow_missing(struct looking *l, const char *path, bool last, unsigned depth, char **ret)
{
	CS_FREE char *parent = NULL, *name = NULL, *real = NULL;
	CS_FD int fd = -1;
	int r;

	if (!split(path, &parent, &name))
		return 0;
	if (!last) {
		CS_FREE char *bare = cs_printf("%s/%s", strcmp(parent, "/") ? parent : "", name);

		fd = open_name(l, bare, O_PATH | O_NOFOLLOW);
		if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
			return -1;
		if (fd >= 0)
			return follow_dangling(l, fd, parent, depth, ret);
	}
	r = follow(l, parent, /* last= */ false, depth + 1, &real);
	if (r == 0 && real)
		*ret = cs_printf("%s/%s", strcmp(real, "/") ? real : "", name);
	return r;
}

static int follow(struct looking *l, const char *path, bool last, unsigned depth, char **ret)
{
	CS_FD int fd = depth < DEPTH_MAX ? open_name(l, path, O_PATH | (last ? O_NOFOLLOW : 0)) : -1;

	*ret = NULL;
	if (depth >= DEPTH_MAX)
		return -1;
	if (fd >= 0) {
		*ret = name_of(fd);
		return *ret ? 0 : -1;
	}
	if (errno == ENOENT)
		return follow_missing(l, path, last, depth, ret);
	return errno == ENOTDIR ? 0 : -1; /* a file with names below it: nothing can be done there */
}

static bool look_one(struct looking *l, const char *path)
{
	CS_FREE char *real = NULL;

	if (follow(l, path, l->last, 0, &real) < 0)
		return false;
	/* Of the names that a pattern stands for, those that are what they are called are in the pattern. */
	if (real && !(l->pattern && !strcmp(real, path)))
		l->found(l->to, real);
	return true;
}

/* ---- patterns ---- */

static bool look_pattern(struct looking *l, const char *done, const char *rest, unsigned depth);

/* One name that matches: on to the next part of the pattern, or it is one that is meant. */
static bool look_match(struct looking *l, const char *dir, const char *name, const char *rest, unsigned depth)
{
	CS_FREE char *path = cs_printf("%s/%s", dir, name);

	return *rest ? look_pattern(l, path, rest, depth + 1) : look_one(l, path);
}

static bool look_in(struct looking *l, const char *dir, const char *part, const char *rest, unsigned depth)
{
	CS_FD int fd = open_name(l, *dir ? dir : "/", O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	bool all = true;

	if (!d)
		return errno == ENOENT || errno == ENOTDIR; /* then nothing matches */
	(void)CS_TAKE_FD(fd);
	for (const struct dirent *e; all && (e = readdir(d));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		all = l->p->left != 0;
		l->p->left -= all;
		if (all && fnmatch(part, e->d_name, FNM_PERIOD) == 0)
			all = look_match(l, dir, e->d_name, rest, depth);
	}
	closedir(d);
	return all;
}

/* A pattern stands for names that are there; an x below a * for directories that have it.  What cannot be told is there. */
static bool is_there(struct looking *l, const char *path)
{
	CS_FD int fd = open_name(l, path, O_PATH | O_NOFOLLOW);

	return fd >= 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* done: a path without patterns, "" for the root; rest begins with '/' or is empty. */
static bool look_pattern(struct looking *l, const char *done, const char *rest, unsigned depth)
{
	CS_FREE char *path = cs_strdup(done);

	if (depth > DEPTH_MAX)
		return false;
	while (*rest) {
		size_t n = strcspn(rest + 1, "/");
		CS_FREE char *part = cs_strndup(rest + 1, n);
		char *longer;

		rest += 1 + n;
		if (!n)
			continue;
		if (strpbrk(part, "*?[\\"))
			return look_in(l, path, part, rest, depth);
		longer = cs_printf("%s/%s", path, part);
		free(path);
		path = longer;
	}
	return !depth || is_there(l, path) ? look_one(l, *path ? path : "/") : true;
}

bool act_look(void *arg, const char *path, unsigned how, sh_found found, void *to)
{
	struct looking l = { .p = arg, .found = found, .to = to, .last = how & SH_LOOK_LAST, .pattern = how & SH_LOOK_PATTERN };

	if (*path != '/' || strlen(path) >= PATH_MAX)
		return false;
	return l.pattern ? look_pattern(&l, "", path, 0) : look_one(&l, path);
}
