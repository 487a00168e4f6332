/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - what a sandbox uses, seen through /proc, where no control group counts.
 *
 * Everything inside descends from process 1 (orphans become its children), so
 * the walk costs what runs inside and not what runs on the host.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { WALK_MAX = 4096 };

struct walk {
	pid_t pids[WALK_MAX];
	size_t n, tasks;
	ino_t memfd[512]; /* counted already */
	size_t n_memfd;
};

static void add_children(struct walk *w, pid_t pid)
{
	char path[96], text[16384];
	CS_DIR DIR *d = NULL;
	struct dirent *e;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		char *at = text, *end;

		if (e->d_name[0] == '.')
			continue;
		w->tasks++;
		snprintf(path, sizeof path, "%.20s/children", e->d_name);
		if (sys_get(dirfd(d), path, text, sizeof text) <= 0)
			continue;
		for (long v; v = strtol(at, &end, 10), end != at && w->n < WALK_MAX; at = end)
			w->pids[w->n++] = (pid_t)v;
	}
}

static uint64_t field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) << 10 : 0;
}

/* Resident pages and the page tables for them, from one task's status; 0: it has no memory. */
static uint64_t status_memory(int dir, const char *name)
{
	char path[64], text[4096];

	snprintf(path, sizeof path, "%.20s/status", name);
	if (sys_get(dir, path, text, sizeof text) < 0)
		return 0;
	return field(text, "\nVmRSS:") + field(text, "\nVmPTE:");
}

static uint64_t resident(pid_t pid)
{
	char path[64];
	CS_DIR DIR *d = NULL;
	struct dirent *e;
	uint64_t sum = 0;

	/* A first thread that has ended shows nothing, while others hold the memory. */
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && !sum && (e = readdir(d)))
		if (e->d_name[0] != '.')
			sum = status_memory(dirfd(d), e->d_name);
	return sum;
}

struct shares {
	uint64_t own, shmem; /* proportional, in bytes */
};

static uint64_t page_tables(const char *pid)
{
	char path[64], text[4096];

	snprintf(path, sizeof path, "/proc/%.20s/status", pid);
	return sys_get(AT_FDCWD, path, text, sizeof text) < 0 ? 0 : field(text, "\nVmPTE:");
}

/* Shared pages count once; costs a walk of the page tables, so only when it matters. */
static void add_proportional(pid_t pid, struct shares *s)
{
	char path[64], text[2048];
	uint64_t shmem;

	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
	if (sys_get(AT_FDCWD, path, text, sizeof text) <= 0 || !strstr(text, "\nPss:")) {
		s->own += resident(pid);
		return;
	}
	shmem = field(text, "\nPss_Shmem:");
	s->shmem += shmem;
	snprintf(path, sizeof path, "%d", (int)pid);
	s->own += field(text, "\nPss:") - shmem + page_tables(path);
}

/* Is this inode new to the walk? */
static bool first_time(struct walk *w, ino_t ino)
{
	for (size_t i = 0; i < w->n_memfd; i++)
		if (w->memfd[i] == ino)
			return false;
	if (w->n_memfd < sizeof w->memfd / sizeof *w->memfd)
		w->memfd[w->n_memfd++] = ino;
	return true;
}

/* A memfd that nobody maps is memory all the same, and only its descriptor tells. */
static uint64_t memfds(struct walk *w, pid_t pid)
{
	char path[64], link[16];
	CS_DIR DIR *d = NULL;
	struct dirent *e;
	uint64_t sum = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		struct stat st;
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link);

		if (n < 7 || strncmp(link, "/memfd:", 7) != 0 || fstatat(dirfd(d), e->d_name, &st, 0) < 0)
			continue;
		if (first_time(w, st.st_ino))
			sum += (uint64_t)st.st_blocks * 512;
	}
	return sum;
}

/* A file in a layer that has lost its last name, and is held open. */
static uint64_t unlinked_of(struct walk *w, pid_t pid)
{
	char path[64];
	CS_DIR DIR *d = NULL;
	struct dirent *e;
	uint64_t sum = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		struct stat st;
		struct statfs fs;

		if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, 0) < 0 || st.st_nlink || !S_ISREG(st.st_mode))
			continue;
		snprintf(path, sizeof path, "/proc/%d/fd/%.20s", (int)pid, e->d_name);
		if (statfs(path, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC && first_time(w, st.st_ino))
			sum += (uint64_t)st.st_blocks * 512;
	}
	return sum;
}

static uint64_t cpu_ms(pid_t pid)
{
	static long hz;
	char path[64], text[1024], *at;
	unsigned long long t[4] = { 0 };

	if (!hz)
		hz = sysconf(_SC_CLK_TCK);
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (sys_get(AT_FDCWD, path, text, sizeof text) < 0 || !(at = strrchr(text, ')')))
		return 0;
	/* utime stime cutime cstime are the 12th to 15th words after the name */
	if (sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3]) != 4)
		return 0;
	return (t[0] + t[1] + t[2] + t[3]) * 1000 / (unsigned long long)hz;
}

/* The private files are memory too; mapped shared memory is files or memfds seen from inside. */
static uint64_t total(const struct shares *s, uint64_t files)
{
	return s->own + (s->shmem > files ? s->shmem : files);
}

static void measure_memory(struct walk *w, const struct profile_limits *l, struct sandbox_usage *u)
{
	struct shares s = { 0 };
	uint64_t files = u->disk_now, coarse = 0;

	for (size_t i = 0; i < w->n; i++) {
		coarse += resident(w->pids[i]);
		files += memfds(w, w->pids[i]);
	}
	u->memory_now = coarse + files;
	if (u->memory_now <= l->memory)
		return;
	for (size_t i = 0; i < w->n; i++)
		add_proportional(w->pids[i], &s);
	u->memory_now = total(&s, files);
	u->oom = u->memory_now > l->memory;
}

static void add_all(struct walk *w, pid_t init)
{
	w->n = w->tasks = w->n_memfd = 0;
	w->pids[w->n++] = init;
	for (size_t i = 0; i < w->n; i++)
		add_children(w, w->pids[i]);
}

static bool is_among(pid_t pid, const pid_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == pid)
			return true;
	return false;
}

/* What has ended and only waits to be reaped holds nothing any more. */
static bool is_alive(pid_t pid)
{
	char path[64], text[512], *at;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (sys_get(AT_FDCWD, path, text, sizeof text) < 0 || !(at = strrchr(text, ')')) || !at[1])
		return false;
	return at[2] != 'Z' && at[2] != 'X';
}

size_t native_usage_list(pid_t init, const pid_t *ours, size_t n_ours, pid_t *ret, size_t max)
{
	static struct walk w;
	size_t n = 0;

	add_all(&w, init);
	for (size_t i = 0; i < w.n; i++) {
		if (is_among(w.pids[i], ours, n_ours) || !is_alive(w.pids[i]))
			continue;
		if (n < max)
			ret[n] = w.pids[i];
		n++;
	}
	return n;
}

pid_t native_usage_name(pid_t pid, char *comm, size_t size)
{
	char path[64], text[4096], *at, *end;
	long inside = 0;

	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	if (sys_get(AT_FDCWD, path, comm, size) < 0)
		return 0;
	if (comm[0] && comm[strlen(comm) - 1] == '\n')
		comm[strlen(comm) - 1] = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (sys_get(AT_FDCWD, path, text, sizeof text) < 0 || !(at = strstr(text, "\nNSpid:")))
		return 0;
	for (at += strlen("\nNSpid:"); ; at = end) { /* from the outermost namespace inwards */
		long v = strtol(at, &end, 10);

		if (end == at)
			break;
		inside = v;
		if (*end == '\n')
			break;
	}
	return (pid_t)inside;
}

uint64_t native_usage_unlinked(pid_t init)
{
	static struct walk w;
	uint64_t sum = 0;

	add_all(&w, init);
	for (size_t i = 0; i < w.n; i++)
		sum += unlinked_of(&w, w.pids[i]);
	return sum;
}

void native_usage_procs(pid_t init, const struct profile_limits *l, bool memory, bool cpu, struct sandbox_usage *u)
{
	static struct walk w;

	memory = memory && l->memory;
	cpu = cpu && l->cpu_time;
	if (!memory && !cpu)
		return;
	add_all(&w, init);
	for (size_t i = 0; cpu && i < w.n; i++)
		u->cpu_ms += cpu_ms(w.pids[i]);
	u->processes = w.n;
	/* Nobody counts refused forks here; seen at the limit is what can be said. */
	if (l->pids && w.tasks > l->pids)
		u->pids_denied = 1;
	if (memory)
		measure_memory(&w, l, u);
}
