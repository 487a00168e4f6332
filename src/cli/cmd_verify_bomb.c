/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify_bomb.c - probes that use something up.
 *
 *   bomb KIND AMOUNT LOCK|- DIR
 *
 * With LOCK it first leaves a process behind that has nothing to do with its
 * maker any more and holds a lock on that file: when the limit has ended the
 * sandbox, the lock must be free.  Every AMOUNT is small enough for any host.
 */
#include "cli/cmd_verify.h"

#include "base/cleanup.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int stopped_after(unsigned long n, const char *what)
{
	dprintf(1, "stopped after %lu %s: %s", n, what, strerrordesc_np(errno));
	return PROBE_REFUSED;
}

static int use_memory(unsigned long mib, const char *dir)
{
	(void)dir;
	for (unsigned long i = 0; i < mib; i++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return stopped_after(i, "MiB");
		memset(p, 0x5a, 1 << 20);
		if (i % 8 == 7) /* not faster than a sampled limit can promise */
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return PROBE_DID;
}

static int use_pids(unsigned long n, const char *dir)
{
	pid_t pids[256];
	unsigned long made = 0;
	int r = PROBE_DID;

	(void)dir;
	for (; made < n && made < 256; made++) {
		pids[made] = fork();
		if (pids[made] == 0)
			for (;;)
				pause();
		if (pids[made] < 0) {
			r = stopped_after(made, "processes");
			break;
		}
	}
	while (made-- > 0) {
		kill(pids[made], SIGKILL);
		(void)waitpid(pids[made], NULL, 0);
	}
	return r;
}

static int use_disk(unsigned long mib, const char *dir)
{
	static char block[1 << 16];
	CS_FREE char *path = NULL;
	CS_FD int fd = -1;

	if (asprintf(&path, "%s/filler", dir) < 0)
		return PROBE_BROKEN;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	(void)signal(SIGXFSZ, SIG_IGN);
	for (unsigned long i = 0; i < mib * 16; i++)
		if (fd < 0 || write(fd, block, sizeof block) != (ssize_t)sizeof block)
			return stopped_after(i / 16, "MiB");
	return PROBE_DID;
}

static int use_inodes(unsigned long n, const char *dir)
{
	char name[32];

	if (chdir(dir) < 0)
		return PROBE_BROKEN;
	for (unsigned long i = 0; i < n; i++) {
		CS_FD int fd = -1;

		snprintf(name, sizeof name, "filler-%lu", i);
		fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0)
			return stopped_after(i, "files");
	}
	return PROBE_DID;
}

static int use_files(unsigned long n, const char *dir)
{
	(void)dir;
	for (unsigned long i = 0; i < n; i++)
		if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
			return stopped_after(i, "open files");
	return PROBE_DID;
}

static int use_output(unsigned long kib, const char *dir)
{
	static char block[1024];

	(void)dir;
	memset(block, '.', sizeof block);
	for (unsigned long i = 0; i < kib; i++)
		if (cs_write_all(1, block, sizeof block) < 0)
			return PROBE_REFUSED;
	return PROBE_DID;
}

static int use_wall(unsigned long ms, const char *dir)
{
	struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	(void)dir;
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
	return PROBE_DID;
}

static int use_cpu(unsigned long ms, const char *dir)
{
	struct timespec t = { 0 };

	(void)dir;
	while ((unsigned long)t.tv_sec * 1000 + (unsigned long)t.tv_nsec / 1000000 < ms)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return PROBE_DID;
}

static const struct {
	const char *kind;
	int (*fn)(unsigned long amount, const char *dir);
} bombs[] = { { "memory", use_memory }, { "pids", use_pids },	  { "disk", use_disk }, { "inodes", use_inodes },
	      { "files", use_files },	{ "output", use_output }, { "wall", use_wall }, { "cpu", use_cpu } };

static _Noreturn void outlive(const char *lock, int tell)
{
	int fd = open(lock, O_RDWR | O_CLOEXEC);

	(void)setsid();
	for (int sig = 1; sig < 32; sig++)
		(void)signal(sig, SIG_IGN);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || write(tell, "l", 1) != 1)
		_exit(1);
	for (int i = 0; i < 3; i++) /* or the reader would wait for our end */
		close(i);
	close(tell);
	for (;;)
		pause();
}

/* A daemon that holds the lock; then wait until the outside has seen that it does. */
static bool leave_daemon(const char *lock)
{
	int p[2];
	pid_t pid;
	char c;

	if (pipe2(p, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return false;
	if (pid == 0) {
		(void)setsid();
		if (fork() == 0)
			outlive(lock, p[1]);
		_exit(0);
	}
	close(p[1]);
	(void)waitpid(pid, NULL, 0);
	if (read(p[0], &c, 1) != 1)
		return false;
	close(p[0]);
	dprintf(1, "locked\n");
	return read(0, &c, 1) == 1;
}

int verify_bomb(int argc, char **argv)
{
	if (argc != 4)
		return PROBE_BROKEN;
	if (strcmp(argv[2], "-") && !leave_daemon(argv[2])) {
		dprintf(1, "the daemon could not take its lock");
		return PROBE_BROKEN;
	}
	for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++)
		if (!strcmp(bombs[i].kind, argv[0]))
			return bombs[i].fn(strtoul(argv[1], NULL, 10), argv[3]);
	return PROBE_BROKEN;
}
