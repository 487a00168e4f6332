/* SPDX-License-Identifier: Apache-2.0 */
/* as_user.c - run a command as somebody else would:
 *
 *     as_user root COMMAND...     as we are; must be root
 *     as_user user COMMAND...     as an ordinary user.  Root becomes uid and gid 61234, which
 *                                 nobody has, with no other group and no capability
 *     as_user userns COMMAND...   as root of a user namespace, as in a rootless container: root
 *                                 gives it 65536 ids from 1000000 on and a /run of its own,
 *                                 an ordinary user gives it the one id it has
 *
 * HOME, TMPDIR and XDG_RUNTIME_DIR are a fresh directory, owned by who runs the command and
 * removed afterwards; exit status is the command's, or 128+n. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLAIN_ID = 61234, RANGE_FIRST = 1000000, RANGE = 65536 };

static void die(const char *what)
{
	fprintf(stderr, "as_user: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void put_map(pid_t pid, const char *which, unsigned outside, unsigned count)
{
	char path[64], text[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, which);
	snprintf(text, sizeof text, "0 %u %u", outside, count);
	put(path, text);
}

static void become_plain(void)
{
	if (geteuid() != 0)
		return;
	if (setgroups(0, NULL) < 0 || setresgid(PLAIN_ID, PLAIN_ID, PLAIN_ID) < 0 || setresuid(PLAIN_ID, PLAIN_ID, PLAIN_ID) < 0)
		die("become an ordinary user");
}

static void enter_userns(int ready, int go)
{
	char c;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		die("unshare");
	if (write(ready, "x", 1) != 1 || read(go, &c, 1) != 1)
		die("wait for the id maps");
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		die("become its root");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("run", "/run", "tmpfs", 0, "mode=755") < 0)
		die("its own /run");
	/* What an exec of a root-owned program would have given back. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		die("dumpable");
}

static int open_up(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)f;
	if (type == FTW_D || type == FTW_DNR)
		(void)chmod(path, (st->st_mode & 07777) | 0700);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st; (void)type; (void)f;
	(void)remove(path);
	return 0;
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/csuser.XXXXXX";
	int plain, userns, ready[2], go[2], st;
	unsigned owner = geteuid(), group = getegid();
	pid_t pid;
	char c;

	if (argc < 3)
		return fprintf(stderr, "usage: as_user root|user|userns COMMAND...\n"), 125;
	plain = !strcmp(argv[1], "user");
	userns = !strcmp(argv[1], "userns");
	if (!plain && !userns && (strcmp(argv[1], "root") || geteuid() != 0))
		return fprintf(stderr, "as_user: '%s' is no mode that we can take\n", argv[1]), 125;
	if (geteuid() == 0 && (plain || userns))
		owner = group = plain ? PLAIN_ID : RANGE_FIRST;
	if (!mkdtemp(dir) || chmod(dir, 0755) < 0 || (geteuid() == 0 && chown(dir, owner, group) < 0))
		die(dir);
	setenv("HOME", dir, 1);
	setenv("TMPDIR", dir, 1);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
		die("pipe");

	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (plain)
			become_plain();
		if (userns)
			enter_userns(ready[1], go[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of ids clears it */
		execvp(argv[2], argv + 2);
		die(argv[2]);
	}
	close(ready[1]);
	if (userns && read(ready[0], &c, 1) == 1) {
		int range = geteuid() == 0;

		if (!range) {
			char path[64];

			snprintf(path, sizeof path, "/proc/%d/setgroups", (int)pid);
			put(path, "deny");
		}
		put_map(pid, "uid_map", range ? RANGE_FIRST : geteuid(), range ? RANGE : 1);
		put_map(pid, "gid_map", range ? RANGE_FIRST : getegid(), range ? RANGE : 1);
		(void)!write(go[1], "x", 1);
	}
	while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
		;
	(void)nftw(dir, open_up, 32, FTW_PHYS | FTW_MOUNT);
	(void)nftw(dir, remove_one, 32, FTW_PHYS | FTW_MOUNT | FTW_DEPTH);
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}
