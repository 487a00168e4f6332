/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify_place.c - the places that are attacked.
 *
 * One directory in /tmp, open to everybody, so that no file mode is what
 * stops an attack, and one in the caller's home.  Files hold a random token
 * and nothing else.  Both are locked while we live; what a killed verify left
 * is not, and the next one removes it.
 */
#include "cli/cmd_verify.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TMP_PREFIX  "caisson-verify-"
#define HOME_PREFIX ".caisson-verify-"

int place_put(const char *path, const char *text)
{
	CS_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	size_t n = strlen(text);

	return fd < 0 || write(fd, text, n) != (ssize_t)n || fchmod(fd, 0644) < 0 ? -1 : 0;
}

bool place_holds(const char *path, const char *text)
{
	char found[256];

	return sys_get(AT_FDCWD, path, found, sizeof found) >= 0 && !strcmp(found, text);
}

static void make_token(struct verify *v)
{
	unsigned char raw[10];

	if (getrandom(raw, sizeof raw, 0) != sizeof raw)
		abort(); /* never fails for so few bytes once the kernel is up */
	for (size_t i = 0; i < sizeof raw; i++)
		snprintf(v->token + 2 * i, 3, "%02x", raw[i]);
}

static int make_dir(const char *path)
{
	return mkdir(path, 0755) < 0 || chmod(path, 0755) < 0 ? -1 : 0;
}

static int put_at(const char *dir, const char *name, const char *text)
{
	char path[4400];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return place_put(path, text);
}

static int fill(struct verify *v)
{
	static const char *const ws[] = { "notes.txt", ".env", "server.pem", "deep/.env", "deep/notes.txt" };
	char path[256];

	if (make_dir(v->ws) < 0 || make_dir(v->host) < 0 || make_dir(v->rw) < 0 || make_dir(v->other) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/deep", v->ws);
	if (make_dir(path) < 0)
		return -1;
	for (size_t i = 0; i < sizeof ws / sizeof *ws; i++)
		if (put_at(v->ws, ws[i], v->token) < 0)
			return -1;
	return put_at(v->host, "sentinel", v->token) < 0 || put_at(v->host, "scratch", v->token) < 0 || put_at(v->rw, "lock", "") < 0 ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	(void)remove(path);
	return 0;
}

static void remove_tree(char *path)
{
	if (path[0])
		(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); /* best effort: nothing in it is of worth */
	path[0] = 0;
}

static int lock_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Directories of ours that nobody has locked, but for those just being made. */
static void clear_left(const char *parent, const char *prefix)
{
	CS_DIR DIR *d = opendir(parent);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		CS_FREE char *path = NULL;
		CS_FD int fd = -1;
		struct stat st;

		if (strncmp(e->d_name, prefix, strlen(prefix)))
			continue;
		path = cs_printf("%s/%s", parent, e->d_name);
		fd = lock_dir(path);
		if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_ctime + 10 < time(NULL))
			remove_tree(path);
	}
}

/* A key where keys lie: in the home directory, in a directory of its own. */
static void fill_home(struct verify *v)
{
	const char *home = getenv("HOME");
	char key[4200];

	if (!home || *home != '/' || snprintf(v->home, sizeof v->home, "%s/" HOME_PREFIX "XXXXXX", home) >= (int)sizeof v->home || !mkdtemp(v->home)) {
		v->home[0] = 0;
		return;
	}
	v->locks[1] = lock_dir(v->home);
	clear_left(home, HOME_PREFIX);
	snprintf(key, sizeof key, "%s/.ssh", v->home);
	if (chmod(v->home, 0755) < 0 || make_dir(key) < 0 || put_at(key, "id_ed25519", v->token) < 0)
		remove_tree(v->home);
}

int place_make(struct verify *v, struct cs_err *err)
{
	const char *where = getenv("TMPDIR");

	v->locks[0] = v->locks[1] = -1;
	make_token(v);
	if (!where || *where != '/' || strlen(where) + sizeof "/" TMP_PREFIX "XXXXXX/workspace" > sizeof v->dir)
		where = "/tmp";
	snprintf(v->dir, sizeof v->dir, "%s/" TMP_PREFIX "XXXXXX", where);
	if (!mkdtemp(v->dir)) {
		v->dir[0] = 0;
		return cs_fail(err, CS_E_SYSTEM, errno, "make a directory in %s", where);
	}
	v->locks[0] = lock_dir(v->dir);
	clear_left(where, TMP_PREFIX);
	snprintf(v->ws, sizeof v->ws, "%s/workspace", v->dir);
	snprintf(v->host, sizeof v->host, "%s/host", v->dir);
	snprintf(v->rw, sizeof v->rw, "%s/rw", v->dir);
	snprintf(v->other, sizeof v->other, "%s/neighbour", v->dir);
	if (chmod(v->dir, 0755) < 0 || fill(v) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "fill '%s'", v->dir);
	fill_home(v);
	return 0;
}

void place_remove(struct verify *v)
{
	remove_tree(v->dir);
	remove_tree(v->home);
	for (int i = 0; i < 2; i++)
		if (v->locks[i] >= 0)
			close(v->locks[i]);
	v->locks[0] = v->locks[1] = -1;
}

/* Only children of ours, by number; verify is the reaper of all below it. */
void place_end_orphans(void)
{
	char path[64], text[4096], *at = text, *end;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	if (sys_get(AT_FDCWD, path, text, sizeof text) <= 0)
		return;
	for (long pid; pid = strtol(at, &end, 10), end != at; at = end) {
		kill((pid_t)pid, SIGKILL);
		(void)waitpid((pid_t)pid, NULL, 0);
	}
}
