/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify_place.c - the places that are attacked.
 *
 * One directory in /tmp, open to everybody, so that no file mode is what
 * stops an attack, and one in the caller's home.  Files hold a random token
 * and nothing else.
 */
#include "cli/cmd_verify.h"

#include "base/cleanup.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* A key where keys lie: in the home directory, in a directory of its own. */
static void fill_home(struct verify *v)
{
	const char *home = getenv("HOME");
	char key[4200];

	if (!home || *home != '/' || snprintf(v->home, sizeof v->home, "%s/.caisson-verify-XXXXXX", home) >= (int)sizeof v->home || !mkdtemp(v->home)) {
		v->home[0] = 0;
		return;
	}
	snprintf(key, sizeof key, "%s/.ssh", v->home);
	if (chmod(v->home, 0755) < 0 || make_dir(key) < 0 || put_at(key, "id_ed25519", v->token) < 0)
		place_remove(v);
}

int place_make(struct verify *v, struct cs_err *err)
{
	static char template[] = "/tmp/caisson-verify-XXXXXX";

	make_token(v);
	if (!mkdtemp(template))
		return cs_fail(err, CS_E_SYSTEM, errno, "make a directory in /tmp");
	snprintf(v->dir, sizeof v->dir, "%s", template);
	snprintf(v->ws, sizeof v->ws, "%s/workspace", v->dir);
	snprintf(v->host, sizeof v->host, "%s/host", v->dir);
	snprintf(v->rw, sizeof v->rw, "%s/rw", v->dir);
	snprintf(v->other, sizeof v->other, "%s/neighbour", v->dir);
	if (chmod(v->dir, 0755) < 0 || fill(v) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "fill '%s'", v->dir);
	fill_home(v);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	(void)remove(path); /* what stays is found by the rmdir of its parent */
	return 0;
}

void place_remove(struct verify *v)
{
	if (v->dir[0])
		(void)nftw(v->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (v->home[0])
		(void)nftw(v->home, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	v->dir[0] = v->home[0] = 0;
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
