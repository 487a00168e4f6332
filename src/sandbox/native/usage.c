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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WALK_MAX = 4096 };

struct walk {
	pid_t pids[WALK_MAX];
	size_t n, tasks;
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

static uint64_t resident(pid_t pid)
{
	char path[64], text[128];
	unsigned long long size, rss;

	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	if (sys_get(AT_FDCWD, path, text, sizeof text) < 0 || sscanf(text, "%llu %llu", &size, &rss) != 2)
		return 0;
	return rss * 4096;
}

/* Shared pages count once; costs a walk of the page tables, so only when it matters. */
static uint64_t proportional(pid_t pid)
{
	char path[64], text[2048], *at;

	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
	if (sys_get(AT_FDCWD, path, text, sizeof text) < 0 || !(at = strstr(text, "\nPss:")))
		return resident(pid);
	return strtoull(at + 5, NULL, 10) << 10;
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

void native_usage_procs(pid_t init, const struct profile_limits *l, bool memory, bool cpu, struct sandbox_usage *u)
{
	static struct walk w;
	uint64_t sum = 0;

	memory = memory && l->memory;
	cpu = cpu && l->cpu_time;
	if (!memory && !cpu)
		return;
	w.n = w.tasks = 0;
	w.pids[w.n++] = init;
	for (size_t i = 0; i < w.n; i++)
		add_children(&w, w.pids[i]);
	for (size_t i = 0; i < w.n; i++) {
		sum += memory ? resident(w.pids[i]) : 0;
		u->cpu_ms += cpu ? cpu_ms(w.pids[i]) : 0;
	}
	u->processes = w.n;
	/* Nobody counts refused forks here; seen at the limit is what can be said. */
	if (l->pids && w.tasks > l->pids)
		u->pids_denied = 1;
	if (!memory)
		return;
	sum += u->disk_now; /* the private files are memory too */
	if (sum > l->memory) {
		sum = u->disk_now;
		for (size_t i = 0; i < w.n; i++)
			sum += proportional(w.pids[i]);
	}
	u->memory_now = sum;
	u->oom = sum > l->memory;
}
