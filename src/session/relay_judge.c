/* SPDX-License-Identifier: Apache-2.0 */
/* relay_judge.c - what are descriptors 0-2, and may the program have them? */
#include "base/cleanup.h"
#include "session/relay_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

static const char *const names[3] = { "standard input", "standard output", "standard error" };

int judge_fill(int fd, struct cs_err *err)
{
	int null;

	if (fcntl(fd, F_GETFD) >= 0)
		return 0;
	/* No O_CLOEXEC: it stands where an inherited descriptor would.  It also
	 * stays there, so that no later open(2) of ours becomes descriptor 1 or 2
	 * and receives messages. */
	null = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
	if (null < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "%s is closed and /dev/null cannot be opened", names[fd]);
	if (null != fd) {
		int r = dup2(null, fd) < 0 ? errno : 0;

		close(null);
		if (r)
			return cs_fail(err, CS_E_SYSTEM, r, "put /dev/null on %s", names[fd]);
	}
	return 1;
}

static int judge_regular(int fd, const struct stat *st, enum judge_kind *ret, struct cs_err *err)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "examine %s", names[fd]);
	switch ((unsigned long)fs.f_type) {
	case NSFS_MAGIC:
	case PID_FS_MAGIC:
	case SECRETMEM_MAGIC:
		return cs_fail(err, CS_E_DENIED, 0,
			       "%s is a handle to a process or namespace, not a file: redirect it to a file or /dev/null",
			       names[fd]);
	default:
		break;
	}
	/* A memfd lives on a kernel-internal mount, which Landlock leaves alone: the
	 * program could reopen a read-only one for writing.  It is unlinked shmem or
	 * hugetlbfs, and only those answer F_GET_SEALS. */
	*ret = st->st_nlink == 0 && fcntl(fd, F_GET_SEALS) >= 0 ? JUDGE_MEMFD : JUDGE_FILE;
	return 0;
}

static enum judge_kind judge_device(int fd)
{
	struct termios t;

	if (ioctl(fd, TCGETS, &t) == 0)
		return JUDGE_TTY;
	/* EIO: hung up.  Reopened through /proc/self/fd it would be alive again. */
	return errno == EIO ? JUDGE_GONE : JUDGE_PASS;
}

static int option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof value;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

/* A socket belongs to the network it was made in, and can be connected anew from wherever it is
 * held: in the program's hands it would be a way out.  Only a connected Unix stream cannot. */
static int judge_socket(int fd, const char *fix, enum judge_kind *ret, struct cs_err *err)
{
	int type = option(fd, SO_TYPE);

	if (type != SOCK_STREAM || option(fd, SO_ACCEPTCONN) != 0)
		return cs_fail(err, CS_E_DENIED, 0, "%s is a socket, and no connected stream: the program could reach the network through it; %s",
			       names[fd], fix);
	*ret = option(fd, SO_DOMAIN) == AF_UNIX ? JUDGE_PASS : JUDGE_SOCKET;
	return 0;
}

int judge_fd(int fd, enum judge_kind *ret, struct stat *ret_st, struct cs_err *err)
{
	const char *fix = fd == 0 ? "redirect it from a file or from /dev/null" : "redirect it to a file or to /dev/null";
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, ret_st) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "examine %s", names[fd]);
	if (flags & O_PATH)
		return cs_fail(err, CS_E_DENIED, 0, "%s is a path handle (O_PATH), which cannot be read or written: %s",
			       names[fd], fix);
	switch (ret_st->st_mode & S_IFMT) {
	case S_IFIFO:
		*ret = JUDGE_PASS;
		return 0;
	case S_IFSOCK:
		return judge_socket(fd, fix, ret, err);
	case S_IFCHR:
		*ret = judge_device(fd);
		return 0;
	case S_IFREG:
		return judge_regular(fd, ret_st, ret, err);
	case S_IFDIR:
		return cs_fail(err, CS_E_DENIED, 0, "%s is a directory: the program could reach host files through it; %s",
			       names[fd], fix);
	case S_IFBLK:
		return cs_fail(err, CS_E_DENIED, 0,
			       "%s is a block device: the program could reach a whole disk through it; copy what it needs "
			       "through a pipe (cat or dd), or %s",
			       names[fd], fix);
	default: /* epoll, eventfd, KVM, perf ... carry powers that we cannot judge */
		return cs_fail(err, CS_E_DENIED, 0, "%s is a kernel object, not a file, pipe or terminal: %s", names[fd], fix);
	}
}

bool judge_same_file(int a, int b)
{
	struct stat x, y;
	pid_t self = getpid();

	if (fstat(a, &x) < 0 || fstat(b, &y) < 0 || x.st_dev != y.st_dev || x.st_ino != y.st_ino)
		return false;
	/* Pipes and sockets have no offset: the same object is enough. */
	if (S_ISFIFO(x.st_mode) || S_ISSOCK(x.st_mode))
		return true;
	return syscall(SYS_kcmp, self, self, KCMP_FILE, a, b) == 0;
}

/* O_NONBLOCK belongs to the open file description, and that of 0-2 is shared with
 * our parent shell and the rest of the pipeline: a second description gives us
 * non-blocking reads and writes that nobody else notices.  Not to be had without
 * /proc or when the terminal belongs to another user (su): then PUMP_CAREFUL. */
int judge_reopen(int fd, int access_mode)
{
	CS_FD int own = -1;
	struct stat a, b;
	char path[32];
	unsigned pty;

	if (fstat(fd, &a) < 0 || (!S_ISFIFO(a.st_mode) && !isatty(fd)))
		return -1; /* opening a device may do things */
	if (S_ISCHR(a.st_mode) && ioctl(fd, TIOCGPTN, &pty) == 0)
		return -1; /* a pty master: opening it again makes another pty */
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	own = open(path, access_mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own < 0 || fstat(own, &b) < 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return -1;
	return CS_TAKE_FD(own);
}
