/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - could somebody else have written this profile?
 *
 * What a profile says of a sandbox is the caller's to want: they name it.  What it says of a command is another matter, since it
 * decides what runs unasked, and a file that the program itself may have written would then vouch for the program. */
#include "profile/internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHERS_WRITE = S_IWGRP | S_IWOTH };

static bool is_ours(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

/* In a directory that others may write they can put another file in this one's place, unless it is sticky. */
static bool is_firm(const char *dir)
{
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && is_ours(&st) && (!(st.st_mode & OTHERS_WRITE) || st.st_mode & S_ISVTX);
}

static const char *doubt_place(const char *path)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof dir, "%s", path);
	for (char *slash; (slash = strrchr(dir, '/'));) {
		slash[slash == dir] = '\0'; /* the root is "/" */
		if (!is_firm(dir))
			return "a directory that it lies in can be changed by others";
		if (slash == dir)
			return NULL;
	}
	return "its place is not known";
}

const char *trust_doubt(int fd, char **ret_real)
{
	char link[64], real[PATH_MAX];
	struct stat st, there;
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, real, sizeof real - 1);
	if (n <= 0 || (size_t)n == sizeof real - 1 || *real != '/')
		return "its place is not known";
	real[n] = '\0';
	*ret_real = cs_strdup(real);
	if (fstat(fd, &st) < 0 || lstat(real, &there) < 0 || st.st_ino != there.st_ino || st.st_dev != there.st_dev)
		return "its place is not known";
	if (!is_ours(&st))
		return "it belongs to somebody else";
	if (st.st_mode & OTHERS_WRITE)
		return "others may write it (chmod go-w)";
	if (st.st_nlink > 1)
		return "it has a second name, which may lie anywhere";
	return doubt_place(real);
}

/* By what the directories are and not by what they are called: links and bind mounts give them other names. */
static bool lies_in(const char *path, const char *dir)
{
	char up[PATH_MAX];
	struct stat want, st;

	if (stat(dir, &want) < 0)
		return false; /* then nothing can be written there */
	snprintf(up, sizeof up, "%s", path);
	for (char *slash; (slash = strrchr(up, '/'));) {
		if (stat(up, &st) == 0 && st.st_dev == want.st_dev && st.st_ino == want.st_ino)
			return true;
		if (slash == up && !up[1])
			return false;
		slash[slash == up] = '\0';
	}
	return false;
}

const char *profile_row_trust(const struct profile *p, const struct profile_row *r, const char *workspace)
{
	if (r->careful)
		return "it is written as one that only narrows, or what it extends is locked";
	if (r->doubt || !r->file)
		return r->doubt;
	if (workspace && lies_in(r->file, workspace))
		return "its file lies in the workspace";
	for (size_t i = 0; i < p->files_write.n; i++)
		if (lies_in(r->file, p->files_write.v[i]))
			return "its file lies where the program may write (files.write)";
	return NULL;
}
