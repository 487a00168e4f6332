/* SPDX-License-Identifier: Apache-2.0 */
/* probe_proc.c - /proc, /sys and the processes behind them. */
#include "probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Any process but ourselves, our forebears and our children. */
static int do_pids(int argc, char **argv)
{
	char line[1500] = "", path[300], comm[64];
	size_t len = 0;
	int others = 0, most = argc > 1 ? atoi(argv[1]) : 3;
	DIR *d = opendir("/proc");

	if (!d)
		return p_no(errno, "opendir /proc");
	for (struct dirent *e; (e = readdir(d)); ) {
		ssize_t n;
		int fd;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		others++;
		snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd >= 0 ? read(fd, comm, sizeof comm - 1) : 0;
		if (fd >= 0)
			close(fd);
		comm[n > 0 ? n - 1 : 0] = '\0';
		if (len + 100 < sizeof line)
			len += (size_t)snprintf(line + len, sizeof line - len, "%s:%s ", e->d_name, comm);
	}
	closedir(d);
	if (others > most)
		return p_ok("%d processes: %s", others, line);
	return p_word("FEW", "%d processes: %s", others, line);
}

/* Is this process (by host number) there?  argv[1]: pid. */
static int do_kill0(int argc, char **argv)
{
	(void)argc;
	return p_result(kill((pid_t)atoi(argv[1]), 0), "kill 0");
}

/* argv[1]: pid, argv[2]: signal.  Still there afterwards? */
static int do_signal(int argc, char **argv)
{
	pid_t pid = (pid_t)atoi(argv[1]);

	(void)argc;
	if (kill(pid, atoi(argv[2])) < 0)
		return p_no(errno, "kill %d", (int)pid);
	usleep(50000);
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return p_ok("process %d is gone", (int)pid);
	return p_word("ALIVE", "process %d took signal %s and lives", (int)pid, argv[2]);
}

/* The control of do_signal: a process of our own takes it. */
static int do_suicide_watch(int argc, char **argv)
{
	pid_t pid = fork();
	int st;

	(void)argc;
	if (pid < 0)
		return p_cant("fork: %s", strerror(errno));
	if (pid == 0)
		for (;;)
			pause();
	usleep(10000);
	if (kill(pid, atoi(argv[1])) < 0)
		return p_no(errno, "kill");
	waitpid(pid, &st, 0);
	return WIFSIGNALED(st) ? p_ok("process %d is gone", (int)pid) : p_word("ALIVE", "it lives");
}

static int find_text(const char *buf, ssize_t n, const char *text)
{
	return n > 0 && memmem(buf, (size_t)n, text, strlen(text)) != NULL;
}

/* argv[1]: text that only a foreign environment or command line holds. */
static int do_environ(int argc, char **argv)
{
	static const char *const names[] = { "environ", "cmdline", "comm", "auxv", "stat" };
	static char buf[1 << 17];
	char path[300];
	DIR *d = opendir("/proc");
	int seen = 0, own = (int)getpid();

	(void)argc;
	if (!d)
		return p_no(errno, "opendir /proc");
	for (struct dirent *e; (e = readdir(d)); ) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			ssize_t n;
			int fd;

			/* We were told what to look for. */
			if (atoi(e->d_name) == own && i == 1)
				continue;
			snprintf(path, sizeof path, "/proc/%s/%s", e->d_name, names[i]);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				continue;
			n = read(fd, buf, sizeof buf);
			close(fd);
			seen++;
			/* argv[1] of an init that carries the command line is our own words again. */
			if (find_text(buf, n, argv[1]) && i != 1)
				return p_ok("found in %s", path);
		}
	}
	closedir(d);
	return p_no(ENOENT, "not in %d files", seen);
}

/* argv[1]: pid, argv[2]: what below /proc/PID. */
static int do_peek(int argc, char **argv)
{
	char path[300], buf[64];
	struct stat st;
	ssize_t n;
	int fd;

	(void)argc;
	snprintf(path, sizeof path, "/proc/%s/%s", argv[1], argv[2]);
	if (!strcmp(argv[2], "root") || !strcmp(argv[2], "cwd") || !strcmp(argv[2], "exe") || !strncmp(argv[2], "ns/", 3)) {
		if (stat(path, &st) < 0)
			return p_no(errno, "stat %s", path);
		return p_ok("%s leads to inode %lu", path, (unsigned long)st.st_ino);
	}
	if (!strcmp(argv[2], "fd") || !strcmp(argv[2], "map_files") || !strcmp(argv[2], "fdinfo")) {
		DIR *d = opendir(path);
		int k = 0;

		if (!d)
			return p_no(errno, "opendir %s", path);
		while (readdir(d))
			k++;
		return k > 2 ? p_ok("%s has %d entries", path, k - 2) : p_no(ENOENT, "%s is empty", path);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return p_no(errno, "open %s", path);
	n = read(fd, buf, sizeof buf);
	if (n < 0 && errno == EIO) /* there is nothing at address 0, but we may look */
		return p_ok("opened %s", path);
	if (n < 0)
		return p_no(errno, "read %s", path);
	return n ? p_ok("%zd bytes of %s", n, path) : p_no(ENODATA, "%s is empty", path);
}

/* A masked file opens but holds nothing. */
static int do_content(int argc, char **argv)
{
	char buf[256];
	ssize_t n;
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	(void)argc;
	if (fd < 0)
		return p_no(errno, "open %s", argv[1]);
	n = read(fd, buf, sizeof buf);
	if (n < 0)
		return p_no(errno, "read %s", argv[1]);
	return n ? p_ok("%zd bytes, first line %.60s", n, strtok(buf, "\n") ? buf : "") : p_no(ENODATA, "%s is empty", argv[1]);
}

/* Kernel pointers in a file that may exist as long as they are not there. */
static int do_pointers(int argc, char **argv)
{
	static char buf[1 << 16];
	ssize_t n;
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);

	(void)argc;
	if (fd < 0)
		return p_no(errno, "open %s", argv[1]);
	n = read(fd, buf, sizeof buf - 1);
	if (n <= 0)
		return p_no(n < 0 ? errno : ENODATA, "read %s", argv[1]);
	buf[n] = '\0';
	return strstr(buf, "ffffffff") ? p_ok("addresses in %s", argv[1]) : p_no(ENODATA, "no addresses in %s", argv[1]);
}

/* Does the file hold the text? */
static int do_holds(int argc, char **argv)
{
	static char buf[1 << 16];
	ssize_t n;
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);

	(void)argc;
	if (fd < 0)
		return p_no(errno, "open %s", argv[1]);
	n = read(fd, buf, sizeof buf);
	return find_text(buf, n, argv[2]) ? p_ok("%s holds %s", argv[1], argv[2]) : p_no(ENODATA, "%s: %.*s", argv[1], n > 60 ? 60 : (int)n, buf);
}

static int do_mount_proc(int argc, char **argv)
{
	const char *type = argc > 1 ? argv[1] : "proc";

	(void)mkdir("probe-mnt", 0755);
	if (mount(type, "probe-mnt", type, 0, NULL) < 0)
		return p_no(errno, "mount %s", type);
	umount2("probe-mnt", MNT_DETACH);
	return p_ok("mounted %s", type);
}

/* Own read-only page, through /proc/self/mem: allowed, but only to oneself. */
static int do_mem(int argc, char **argv)
{
	char path[64];
	const char *who = argc > 1 ? argv[1] : "self";
	static const char page[4096] __attribute__((aligned(4096))) = "x";
	int fd;

	snprintf(path, sizeof path, "/proc/%s/mem", who);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return p_no(errno, "open %s", path);
	if (!strcmp(who, "self"))
		return p_result(pwrite(fd, "y", 1, (off_t)(uintptr_t)page), "write own read-only page");
	return p_ok("opened %s read-write", path);
}

/* A process of another user namespace or uid: pid 1. */
static int do_ptrace(int argc, char **argv)
{
	pid_t pid = (pid_t)atoi(argv[1]);

	(void)argc;
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
		return p_no(errno, "PTRACE_SEIZE %d", (int)pid);
	return p_ok("seized %d", (int)pid);
}

static int do_vm_read(int argc, char **argv)
{
	char buf[8];
	unsigned long at = 0x400000;
	struct iovec l = { buf, 8 }, r = { (void *)at, 8 };
	long n;

	/* Our own image has the same base as any other static program of this link. */
	r.iov_base = argc > 2 ? (void *)strtoul(argv[2], NULL, 16) : (void *)(uintptr_t)&probes_proc;
	n = process_vm_readv((pid_t)atoi(argv[1]), &l, 1, &r, 1, 0);
	if (n < 0 && (errno == EFAULT || errno == EIO))
		return p_ok("reached the memory of %s", argv[1]);
	return p_result(n, "process_vm_readv");
}

static int do_vm_write(int argc, char **argv)
{
	char buf[8] = "";
	struct iovec l = { buf, 0 }, r = { (void *)8, 8 };
	long n;

	(void)argc;
	l.iov_len = 8; /* to address 8, which no process has: nothing is ever written */
	n = process_vm_writev((pid_t)atoi(argv[1]), &l, 1, &r, 1, 0);
	if (n < 0 && errno == EFAULT)
		return p_ok("reached the memory of %s", argv[1]);
	return p_result(n, "process_vm_writev");
}

static int do_getfd(int argc, char **argv)
{
	int pfd = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);

	(void)argc;
	if (pfd < 0)
		return p_no(errno, "pidfd_open %s", argv[1]);
	for (int fd = 0; fd < 16; fd++) {
		int got = (int)syscall(SYS_pidfd_getfd, pfd, fd, 0);

		if (got >= 0)
			return p_ok("took descriptor %d of %s", fd, argv[1]);
		if (errno != EBADF)
			return p_no(errno, "pidfd_getfd");
	}
	return p_ok("%s has no descriptor, but was asked", argv[1]);
}

static int do_kcmp(int argc, char **argv)
{
	(void)argc;
	return p_result(syscall(SYS_kcmp, getpid(), atoi(argv[1]), 0 /* KCMP_FILE */, 0, 0), "kcmp");
}

/* The way of CVE-2019-5736: hold the program file of a process through /proc,
 * and open it for writing as soon as nobody runs it.  Without a pid: any. */
static int do_exe(int argc, char **argv)
{
	char path[300];
	DIR *d;
	int last = ENOENT;

	if (argc > 1) {
		snprintf(path, sizeof path, "/proc/%s/exe", argv[1]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		return fd < 0 ? p_no(errno, "open %s", path) : p_ok("hold %s", path);
	}
	d = opendir("/proc");
	if (!d)
		return p_no(errno, "opendir /proc");
	for (struct dirent *e; (e = readdir(d)); ) {
		int fd;

		/* Only what is not ourselves: our own file is the sandbox's own. */
		if (!isdigit((unsigned char)e->d_name[0]) || atoi(e->d_name) == (int)getpid())
			continue;
		snprintf(path, sizeof path, "/proc/%s/exe", e->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return p_ok("opened %s", path);
		last = errno;
	}
	closedir(d);
	return p_no(last, "no other program file opens");
}

/* Hold, wait for the process to end (a line on standard input), then open for writing. */
static int do_exe_hold(int argc, char **argv)
{
	char path[64], c;
	int fd;

	(void)argc;
	snprintf(path, sizeof path, "/proc/%s/exe", argv[1]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return p_no(errno, "open %s", path);
	puts("READY");
	if (read(0, &c, 1) != 1)
		return p_cant("no line to wait for");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return p_result(open(path, O_WRONLY | O_CLOEXEC), "program file for writing");
}

/* Write a small text; the file is one of the kernel's that guards itself, or a mask. */
static int do_put(int argc, char **argv)
{
	int fd = open(argv[1], O_WRONLY | O_CLOEXEC);

	(void)argc;
	if (fd < 0)
		return p_no(errno, "open %s", argv[1]);
	return p_result(write(fd, argv[2], strlen(argv[2])), "write");
}

static int do_oom(int argc, char **argv)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC), now;
	char text[16] = "";

	(void)argc;
	if (fd < 0)
		return p_no(errno, "open");
	if (read(fd, text, sizeof text - 1) < 0)
		return p_no(errno, "read");
	now = atoi(text);
	snprintf(text, sizeof text, "%d", now - atoi(argv[1]));
	if (pwrite(fd, text, strlen(text), 0) < 0)
		return p_no(errno, "%d to %s", now, text);
	return p_ok("%d to %s", now, text);
}

#define KERNEL "kernel memory, logs or addresses"
#define INIT "the runtime's own process is taken over from inside, CVE-2019-5736, CVE-2016-9962"
const struct probe probes_proc[] = {
	{ "pids", "P01", "other processes are seen", do_pids, 0, "[MOST]" },
	{ "kill0", "P01", "other processes are reached", do_kill0, 1, "PID" },
	{ "signal", "T11", "the first process is ended from inside", do_signal, 2, "PID SIGNAL" },
	{ "suicide-watch", "T11", "control of signal", do_suicide_watch, 1, "SIGNAL" },
	{ "environ", "P02", "the launcher's environment", do_environ, 1, "TEXT" },
	{ "peek", "P02", INIT, do_peek, 2, "PID FILE" },
	{ "put", "P03", "a kernel setting is written", do_put, 2, "PATH TEXT" },
	{ "content", "P04", KERNEL, do_content, 1, "PATH" },
	{ "pointers", "P04", KERNEL, do_pointers, 1, "PATH" },
	{ "holds", "P09", "a file tells of the host", do_holds, 2, "PATH TEXT" },
	{ "mem", "P05", "/proc/PID/mem", do_mem, 0, "[PID]" },
	{ "mount", "P07", "a fresh kernel file system", do_mount_proc, 0, "[TYPE]" },
	{ "oom", "P10", "out of the way of the OOM killer", do_oom, 1, "LESS" },
	{ "ptrace", "T10", INIT, do_ptrace, 1, "PID" },
	{ "vm-read", "T10", INIT, do_vm_read, 1, "PID [ADDRESS]" },
	{ "vm-write", "T10", INIT, do_vm_write, 1, "PID" },
	{ "getfd", "T10", INIT, do_getfd, 1, "PID" },
	{ "kcmp", "T10", INIT, do_kcmp, 1, "PID" },
	{ "exe", "P12", "the launcher's program file, CVE-2019-5736", do_exe, 0, "[PID]" },
	{ "exe-hold", "P12", "the launcher's program file, CVE-2019-5736", do_exe_hold, 1, "PID" },
	{ 0 },
};
