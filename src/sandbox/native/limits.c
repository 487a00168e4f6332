/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - what a sandbox may use up.
 *
 * The kernel enforces what it can: control groups where we may make them, the
 * private tmpfs for disk, rlimits always, as the second wall.  What is left
 * (memory and CPU time without control groups) is sampled by the session.
 */
#include "sandbox/native/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>

unsigned native_cgroup_wanted(const struct profile_limits *l, protection_set off)
{
	unsigned want = 0;

	if (l->memory && !(off & PROT_BIT(PROT_LIMIT_MEMORY)))
		want |= 1u << SYS_CG_MEMORY;
	if (l->pids && !(off & PROT_BIT(PROT_LIMIT_PIDS)))
		want |= 1u << SYS_CG_PIDS;
	if (l->cpus > 0 && !(off & PROT_BIT(PROT_LIMIT_CPU)))
		want |= 1u << SYS_CG_CPU;
	if (l->cpu_time)
		want |= 1u << SYS_CG_CPUACCT;
	return want;
}

static int put(int dir, const char *file, struct cs_err *err, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static int put(int dir, const char *file, struct cs_err *err, const char *fmt, ...)
{
	char text[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (sys_put(dir, file, text) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "control group: write '%s' to %s", text, file);
	return 0;
}

enum { CPU_PERIOD_US = 100000 };

static int limit_v1(struct sys_cgroup *cg, const struct profile_limits *l, unsigned own, struct cs_err *err)
{
	int r = 0;

	if (sys_cgroup_has(cg, SYS_CG_MEMORY)) {
		r = put(cg->dir[SYS_CG_MEMORY], "memory.limit_in_bytes", err, "%" PRIu64, l->memory);
		/* Swap accounting may be off; then there is no file, and without swap no need. */
		(void)put(cg->dir[SYS_CG_MEMORY], "memory.memsw.limit_in_bytes", NULL, "%" PRIu64, l->memory);
	}
	if (r == 0 && sys_cgroup_has(cg, SYS_CG_PIDS))
		r = put(cg->dir[SYS_CG_PIDS], "pids.max", err, "%" PRIu64, l->pids + own);
	if (r == 0 && sys_cgroup_has(cg, SYS_CG_CPU)) {
		r = put(cg->dir[SYS_CG_CPU], "cpu.cfs_period_us", err, "%d", CPU_PERIOD_US);
		if (r == 0)
			r = put(cg->dir[SYS_CG_CPU], "cpu.cfs_quota_us", err, "%.0f", l->cpus * CPU_PERIOD_US);
	}
	return r;
}

static int limit_v2(struct sys_cgroup *cg, const struct profile_limits *l, unsigned own, struct cs_err *err)
{
	int dir = cg->dir[SYS_CG_UNIFIED], r = 0;

	if (dir < 0)
		return 0;
	if (l->memory) {
		r = put(dir, "memory.max", err, "%" PRIu64, l->memory);
		(void)put(dir, "memory.swap.max", NULL, "0"); /* absent without swap */
		(void)put(dir, "memory.oom.group", NULL, "1");
	}
	if (r == 0 && l->pids)
		r = put(dir, "pids.max", err, "%" PRIu64, l->pids + own);
	if (r == 0 && l->cpus > 0)
		r = put(dir, "cpu.max", err, "%.0f %d", l->cpus * CPU_PERIOD_US, CPU_PERIOD_US);
	return r;
}

int native_cgroup_limit(struct sys_cgroup *cg, const struct profile_limits *l, unsigned own, struct cs_err *err)
{
	if (cg->mode == SYS_CGROUP_V2)
		return limit_v2(cg, l, own, err);
	return limit_v1(cg, l, own, err);
}

static int rlimit(int what, uint64_t value)
{
	struct rlimit now, want;

	if (getrlimit(what, &now) < 0)
		return -1;
	if (now.rlim_max != RLIM_INFINITY && value > now.rlim_max)
		value = now.rlim_max;
	want.rlim_cur = want.rlim_max = value;
	return setrlimit(what, &want);
}

/* Programs size themselves by the CPUs they may run on, so these are as many as the limit, rounded
 * up; without a cpu control group that is also the limit itself, 1.5 becoming 2, and that is said. */
static int limit_cpus_by_affinity(double cpus)
{
	cpu_set_t have, want;
	int left = (int)ceil(cpus), first = (int)(native_now() / 1000 % CPU_SETSIZE);

	if (sched_getaffinity(0, sizeof have, &have) < 0)
		return -1;
	CPU_ZERO(&want);
	/* From a place that differs, so that many sandboxes do not share one CPU. */
	for (int i = 0; i < CPU_SETSIZE && left > 0; i++) {
		int c = (first + i) % CPU_SETSIZE;

		if (!CPU_ISSET(c, &have))
			continue;
		CPU_SET(c, &want);
		left--;
	}
	return sched_setaffinity(0, sizeof want, &want);
}

static bool has_pids_cgroup(const struct native_plan *p)
{
	const struct sys_cgroup *cg = &p->report->cgroup;

	return cg->path[cg->mode == SYS_CGROUP_V2 ? SYS_CG_UNIFIED : SYS_CG_PIDS][0];
}

int native_limit_processes(const struct native_plan *p, unsigned more)
{
	const struct profile_limits *l = p->spec->limits;

	if (!l->pids || !native_on(p, PROT_LIMIT_PIDS))
		return 0;
	return rlimit(RLIMIT_NPROC, l->pids + (has_pids_cgroup(p) ? 8 : 0) + native_own_processes(p->spec) - 1 + more);
}

int native_rlimits(const struct native_plan *p)
{
	const struct profile_limits *l = p->spec->limits;

	if (native_on(p, PROT_NOCORE) && rlimit(RLIMIT_CORE, 0) < 0)
		return -1;
	if (rlimit(RLIMIT_MEMLOCK, 64 << 10) < 0 || rlimit(RLIMIT_RTPRIO, 0) < 0 || rlimit(RLIMIT_NICE, 0) < 0)
		return -1;
	if (l->files && rlimit(RLIMIT_NOFILE, l->files) < 0)
		return -1;
	/* Counted per user namespace since Linux 5.14, so it bounds this sandbox alone.  A little
	 * above the control group's limit, where there is one: that one can say it was hit. */
	if (native_limit_processes(p, 0) < 0)
		return -1;
	/* What one file may hold; sockets' and memfds' too, which no tmpfs bounds. */
	if (l->disk && native_on(p, PROT_LIMIT_DISK) && rlimit(RLIMIT_FSIZE, l->disk) < 0)
		return -1;
	if (l->cpu_time && rlimit(RLIMIT_CPU, l->cpu_time / 1000 + 1) < 0)
		return -1;
	if (l->cpus > 0 && native_on(p, PROT_LIMIT_CPU) && limit_cpus_by_affinity(l->cpus) < 0)
		return -1;
	return 0;
}
