/* SPDX-License-Identifier: Apache-2.0 */
/* inside.c - pieces of work to be timed inside a sandbox and outside.
 *
 *     inside WORK [COUNT] [PATH]       prints the nanoseconds the work took, on the
 *                                      clock and of CPU time
 *     inside run 'PREPARE' 'COMMAND'   both by sh; only COMMAND is timed
 *
 * The clocks run in here, so the cost of starting the sandbox is in no figure.
 * Whatever a piece of work needs (files, pipes) is made before the clock
 * starts, and nothing is removed while it runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FILES_PER_DIR = 100, FILE_BYTES = 3000 };

static void die(const char *what)
{
	fprintf(stderr, "inside: %s: %s\n", what, strerror(errno));
	exit(2);
}

struct cost { uint64_t wall, cpu; };

/* CPU time of this process and of the children it has waited for. */
static uint64_t cpu_ns(void)
{
	struct timespec t;
	struct rusage ru;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	getrusage(RUSAGE_CHILDREN, &ru);
	return (uint64_t)(t.tv_sec + ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000u + (uint64_t)t.tv_nsec +
	       (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000u;
}

static struct cost now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (struct cost){ (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec, cpu_ns() };
}

static struct cost since(struct cost begin)
{
	struct cost end = now();

	return (struct cost){ end.wall - begin.wall, end.cpu - begin.cpu };
}

/* Integer, floating point and memory, nothing that enters the kernel. */
static struct cost work_cpu(long count, const char *path)
{
	enum { WORDS = 1 << 17 };
	static uint32_t table[WORDS];
	uint64_t x = 88172645463325252u;
	struct cost begin;
	volatile double sum = 0;
	double f = 1;

	(void)path;
	for (long i = 0; i < WORDS; i++)
		table[i] = (uint32_t)i;
	begin = now();
	for (long i = 0; i < count; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		table[x % WORDS] += (uint32_t)(x >> 32) ^ table[(x >> 20) % WORDS];
		f = f * 1.0000001 + (double)(x & 0xff);
	}
	sum = f + table[x % WORDS];
	(void)sum;
	return since(begin);
}

static struct cost work_getppid(long count, const char *path)
{
	struct cost begin = now();

	(void)path;
	for (long i = 0; i < count; i++)
		syscall(SYS_getppid);
	return since(begin);
}

static struct cost work_pipe(long count, const char *path)
{
	struct cost begin;
	char c = 'x';
	int p[2];

	(void)path;
	if (pipe(p) < 0)
		die("pipe");
	begin = now();
	for (long i = 0; i < count; i++)
		if (write(p[1], &c, 1) != 1 || read(p[0], &c, 1) != 1)
			die("pipe");
	return since(begin);
}

static struct cost work_ioctl(long count, const char *path)
{
	struct cost begin;
	int p[2], n;

	(void)path;
	if (pipe(p) < 0)
		die("pipe");
	begin = now();
	for (long i = 0; i < count; i++)
		if (ioctl(p[0], FIONREAD, &n) < 0)
			die("ioctl");
	return since(begin);
}

static struct cost work_fork(long count, const char *path)
{
	struct cost begin = now();

	(void)path;
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			die("fork");
	}
	return since(begin);
}

static void make_file(const char *name, const char *text, size_t len)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		die(name);
	close(fd);
}

static struct cost work_stat(long count, const char *path)
{
	struct stat st;
	struct cost begin;
	char name[4096];

	snprintf(name, sizeof name, "%s/inside.stat", path);
	make_file(name, "x", 1);
	begin = now();
	for (long i = 0; i < count; i++)
		if (stat(name, &st) < 0)
			die(name);
	begin = since(begin);
	unlink(name);
	return begin;
}

static struct cost work_open(long count, const char *path)
{
	struct cost begin;
	char name[4096];

	snprintf(name, sizeof name, "%s/inside.open", path);
	make_file(name, "x", 1);
	begin = now();
	for (long i = 0; i < count; i++) {
		int fd = open(name, O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			die(name);
		close(fd);
	}
	begin = since(begin);
	unlink(name);
	return begin;
}

/* What an archiver does: create, write, set mode and times, close. */
static void unpack_one(int dir, const char *name, const char *text)
{
	static const struct timespec times[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, FILE_BYTES) != FILE_BYTES || fchmod(fd, 0644) < 0 || futimens(fd, times) < 0)
		die(name);
	close(fd);
}

/* The tree is left where it is.  Removing it would spoil the next run: ext4 does
 * not give a freed inode away for half a minute, and until then every create
 * wades through all of them. */
static struct cost work_unpack(long count, const char *path)
{
	char text[FILE_BYTES], top[4096], name[64];
	int root, dir = -1;
	struct cost begin;

	memset(text, 'x', sizeof text);
	snprintf(top, sizeof top, "%s/inside.tree.%llu", path, (unsigned long long)now().wall);
	if (mkdir(top, 0700) < 0 || (root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		die(top);
	begin = now();
	for (long i = 0; i < count; i++) {
		if (i % FILES_PER_DIR == 0) {
			snprintf(name, sizeof name, "dir%ld", i / FILES_PER_DIR);
			if (dir >= 0)
				close(dir);
			if (mkdirat(root, name, 0755) < 0 || (dir = openat(root, name, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
				die(name);
		}
		snprintf(name, sizeof name, "file%ld", i);
		unpack_one(dir, name, text);
	}
	begin = since(begin);
	close(dir);
	close(root);
	return begin;
}

static struct cost work_run(const char *prepare, const char *command)
{
	struct cost begin;

	/* Both say what they have to say to standard error: standard output is the figure. */
	if (dup2(dup(1), 9) < 0 || dup2(2, 1) < 0)
		die("dup");
	if (system(prepare) != 0)
		die(prepare);
	begin = now();
	if (system(command) != 0)
		die(command);
	begin = since(begin);
	dup2(9, 1);
	return begin;
}

static const struct work {
	const char *name;
	struct cost (*fn)(long count, const char *path);
	long count;
} works[] = {
	{ "cpu", work_cpu, 60000000 },    { "getppid", work_getppid, 1000000 }, { "pipe", work_pipe, 300000 },
	{ "ioctl", work_ioctl, 1000000 }, { "fork", work_fork, 1000 },          { "stat", work_stat, 300000 },
	{ "open", work_open, 200000 },    { "unpack", work_unpack, 20000 },
};

static int print(struct cost c)
{
	printf("%llu %llu\n", (unsigned long long)c.wall, (unsigned long long)c.cpu);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "run"))
		return print(work_run(argv[2], argv[3]));
	for (size_t i = 0; argc > 1 && i < sizeof works / sizeof *works; i++)
		if (!strcmp(argv[1], works[i].name)) {
			long count = argc > 2 && atol(argv[2]) > 0 ? atol(argv[2]) : works[i].count;

			return print(works[i].fn(count, argc > 3 ? argv[3] : "."));
		}
	fprintf(stderr, "usage: inside WORK [COUNT] [PATH] | inside run PREPARE COMMAND\n");
	return 2;
}
