/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - /proc.
 *
 * A fresh instance that shows the sandbox's processes only (hidepid).  In the
 * `pid` form the kernel leaves everything else out.  In the `full` form, which
 * programs like ps, free, node and the JVM need, what tells of the host or can
 * change it is covered, unconditionally and whatever the file modes say, and a
 * few files are replaced by ones that tell of the sandbox's own limits.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>

/* Each costs two mounts' worth of time at the start and again at the end, so
 * this is what can change the host or tell enough about it to attack it: what
 * Docker masks or makes read-only, and then the kernel's addresses, keys, log,
 * configuration and command line, and the interrupt counts that betray what
 * others type. */
static const char *const masked_dirs[] = { "acpi", "asound", "bus", "fs", "irq", "scsi" };
static const char *const masked_files[] = {
	"cmdline", "config.gz", "interrupts", "iomem",	     "kallsyms",   "kcore",	  "key-users",	 "keys",
	"kmsg",	   "latency_stats", "modules", "sched_debug", "sysrq-trigger", "timer_list", "timer_stats", "vmallocinfo",
};

static int fail(struct native_plan *p, int sys, const char *what, const char *path)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, sys, "%s '/proc/%s'", what, path);
}

static int mount_proc(const char *subset)
{
	CS_FD int fs = fsopen("proc", FSOPEN_CLOEXEC);

	if (fs < 0)
		return -1;
	/* 2 is "invisible" in the words of kernels before 5.8 as well. */
	if (fsconfig(fs, FSCONFIG_SET_STRING, "hidepid", "2", 0) < 0)
		return -1;
	if (subset && fsconfig(fs, FSCONFIG_SET_STRING, "subset", subset, 0) < 0)
		return -1;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

/* mount(2) with paths, where one call does what takes five with descriptors: both ends are ours,
 * the tmpfs and procfs, and a bind of the read-only twin is read-only.  The working directory is
 * the private tmpfs, with the twin at "ro" and the new root at "root". */
static int cover(struct native_plan *p, const char *with, const char *name)
{
	char from[64], to[64];

	snprintf(from, sizeof from, "ro/%s", with);
	snprintf(to, sizeof to, "root/proc/%s", name);
	if (mount(from, to, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
		return fail(p, errno, "mask", name);
	return 0;
}

static int mask(struct native_plan *p)
{
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
	CS_FD int sys = open_tree(p->root_fd, "proc/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (sys < 0 || mount_setattr(sys, "", AT_EMPTY_PATH, &ro, sizeof ro) < 0 ||
	    move_mount(sys, "", p->root_fd, "proc/sys", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(p, errno, "make read-only", "sys");
	for (size_t i = 0; i < sizeof masked_dirs / sizeof *masked_dirs; i++)
		if (cover(p, "nodir", masked_dirs[i]) < 0)
			return -1;
	for (size_t i = 0; i < sizeof masked_files / sizeof *masked_files; i++)
		if (cover(p, "nofile", masked_files[i]) < 0)
			return -1;
	return 0;
}

/* ---- files that tell of the sandbox ---- */

static unsigned cpus_here(void)
{
	cpu_set_t set; /* and not get_nprocs(), which reads a file of /sys */

	return sched_getaffinity(0, sizeof set, &set) < 0 ? 1 : (unsigned)CPU_COUNT(&set);
}

static unsigned cpus_shown(const struct native_plan *p)
{
	unsigned have = cpus_here(), want = (unsigned)ceil(p->spec->limits->cpus);

	return want && want < have ? want : have;
}

static void meminfo(const struct native_plan *p, char *buf, size_t size)
{
	struct sysinfo si;
	uint64_t total, avail, limit = p->spec->limits->memory;

	sysinfo(&si);
	total = (uint64_t)si.totalram * si.mem_unit;
	avail = (uint64_t)si.freeram * si.mem_unit;
	if (limit && limit < total)
		total = limit;
	if (avail > total)
		avail = total;
	snprintf(buf, size,
		 "MemTotal:       %8" PRIu64 " kB\nMemFree:        %8" PRIu64 " kB\nMemAvailable:   %8" PRIu64
		 " kB\nBuffers:               0 kB\nCached:                0 kB\nSwapCached:            0 kB\n"
		 "Active:                0 kB\nInactive:              0 kB\nSwapTotal:             0 kB\n"
		 "SwapFree:              0 kB\nDirty:                 0 kB\nWriteback:             0 kB\n"
		 "AnonPages:             0 kB\nMapped:                0 kB\nShmem:                 0 kB\n"
		 "Slab:                  0 kB\nSReclaimable:          0 kB\nSUnreclaim:            0 kB\n"
		 "CommitLimit:    %8" PRIu64 " kB\nCommitted_AS:          0 kB\n"
		 "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n",
		 total >> 10, avail >> 10, avail >> 10, total >> 10);
}

static void stat_file(const struct native_plan *p, char *buf, size_t size)
{
	unsigned n = cpus_shown(p);
	size_t used = (size_t)snprintf(buf, size, "cpu  0 0 0 0 0 0 0 0 0 0\n");
	struct timespec up;

	clock_gettime(CLOCK_BOOTTIME, &up); /* processes' start times count from there, so it stays true */

	for (unsigned i = 0; i < n && used + 128 < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "cpu%u 0 0 0 0 0 0 0 0 0 0\n", i);
	snprintf(buf + used, size - used, "intr 0\nctxt 0\nbtime %lld\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n",
		 (long long)(time(NULL) - (p->own_clock ? 0 : up.tv_sec)));
}

/* The first n "processor" blocks of the host's cpuinfo. */
static void cpuinfo(unsigned n, char *buf, size_t size)
{
	char *at = buf;

	if (sys_get(AT_FDCWD, "/proc/cpuinfo", buf, size) < 0)
		buf[0] = 0;
	while (n-- && (at = strstr(at, "\n\n")))
		at += 2;
	if (at)
		*at = 0;
}

static int show(struct native_plan *p, const char *name, const char *text)
{
	char entry[32];
	CS_FD int fd = -1;
	size_t len = strlen(text);

	snprintf(entry, sizeof entry, "proc-%s", name);
	fd = openat(p->tmpfs_fd, entry, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return fail(p, errno, "write", name);
	return cover(p, entry, name);
}

static int show_limits(struct native_plan *p)
{
	static char text[65536];

	meminfo(p, text, sizeof text);
	if (show(p, "meminfo", text) < 0)
		return -1;
	stat_file(p, text, sizeof text);
	if (show(p, "stat", text) < 0 || show(p, "loadavg", "0.00 0.00 0.00 1/2 2\n") < 0)
		return -1;
	if (cpus_shown(p) == cpus_here())
		return 0;
	cpuinfo(cpus_shown(p), text, sizeof text);
	return show(p, "cpuinfo", text);
}

/* No procfs at all (an outer container has covered its own): the few files that can be had. */
static int without_procfs(struct native_plan *p, int why)
{
	static char text[65536];

	if (native_missing(p, PROT_PROCFS, why, "a /proc of our own") < 0)
		return -1;
	meminfo(p, text, sizeof text);
	if (native_provide(p, "proc-meminfo", "/proc/meminfo", text, strlen(text)) < 0)
		return -1;
	stat_file(p, text, sizeof text);
	if (native_provide(p, "proc-stat", "/proc/stat", text, strlen(text)) < 0)
		return -1;
	cpuinfo(cpus_shown(p), text, sizeof text);
	return native_provide(p, "proc-cpuinfo", "/proc/cpuinfo", text, strlen(text));
}

int native_build_proc(struct native_plan *p)
{
	bool full = p->spec->proc == PROFILE_PROC_FULL;
	CS_FD int fd = mount_proc(full ? NULL : "pid");

	if (fd < 0 && full)
		fd = mount_proc("pid"); /* a masked outer /proc may still allow the subset */
	if (fd < 0)
		return without_procfs(p, errno);
	if (move_mount(fd, "", p->root_fd, "proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(p, errno, "attach", "");
	if (fchdir(p->tmpfs_fd) < 0)
		return fail(p, errno, "prepare", "");
	if (native_on(p, PROT_PROCFS) && full && faccessat(p->root_fd, "proc/sys", F_OK, 0) == 0) {
		if (mask(p) < 0 || show_limits(p) < 0)
			return -1;
	}
	if (native_on(p, PROT_PROCFS))
		native_active(p, PROT_PROCFS);
	return 0;
}
