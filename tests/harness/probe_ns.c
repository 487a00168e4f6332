/* SPDX-License-Identifier: Apache-2.0 */
/* probe_ns.c - namespaces: making new ones, entering others, telling which. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static const struct { const char *name; unsigned long flag; } kinds[] = {
	{ "user", CLONE_NEWUSER }, { "mnt", CLONE_NEWNS }, { "pid", CLONE_NEWPID }, { "net", CLONE_NEWNET },
	{ "ipc", CLONE_NEWIPC }, { "uts", CLONE_NEWUTS }, { "cgroup", CLONE_NEWCGROUP }, { "time", CLONE_NEWTIME },
};

static unsigned long flag_of(const char *name)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].name, name))
			return kinds[i].flag;
	return 0;
}

static int do_unshare(int argc, char **argv)
{
	unsigned long f = flag_of(argv[1]);

	if (!f)
		return p_cant("no such namespace");
	if (argc > 2 && !strcmp(argv[2], "high"))
		f |= 1ul << 40;
	return p_result(syscall(SYS_unshare, f), "unshare");
}

static int finish(long pid, const char *what)
{
	if (pid < 0)
		return p_no(errno, "%s", what);
	if (pid == 0)
		_exit(0);
	waitpid((pid_t)pid, NULL, __WALL);
	return p_ok("%s = %ld", what, pid);
}

static int do_clone(int argc, char **argv)
{
	unsigned long f = flag_of(argv[1]);

	if (!f)
		return p_cant("no such namespace");
	if (f == CLONE_NEWTIME)
		return p_cant("clone(2) cannot make a time namespace");
	if (argc > 2 && !strcmp(argv[2], "high"))
		f |= 1ul << 40; /* the kernel looks at 32 bits */
	return finish(syscall(SYS_clone, f | SIGCHLD, 0, 0, 0, 0), "clone");
}

static int do_clone3(int argc, char **argv)
{
	struct clone_args a = { .flags = flag_of(argv[1]), .exit_signal = SIGCHLD };

	(void)argc;
	if (!a.flags)
		return p_cant("no such namespace");
	return finish(syscall(SYS_clone3, &a, sizeof a), "clone3");
}

static int do_setns(int argc, char **argv)
{
	char path[64];
	int fd;

	if (argc > 3 && !strcmp(argv[3], "pidfd"))
		fd = (int)syscall(SYS_pidfd_open, atoi(argv[2]), 0);
	else {
		snprintf(path, sizeof path, "/proc/%s/ns/%s", argv[2], argv[1]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return p_no(errno, "open the namespace of %s", argv[2]);
	return p_result(setns(fd, (int)flag_of(argv[1])), "setns");
}

/* Its number, to be compared with the host's. */
static int do_ns_id(int argc, char **argv)
{
	char path[64], link[64];
	ssize_t n;

	(void)argc;
	snprintf(path, sizeof path, "/proc/self/ns/%s", argv[1]);
	n = readlink(path, link, sizeof link - 1);
	if (n < 0)
		return p_no(errno, "readlink %s", path);
	link[n] = '\0';
	return p_ok("%s", link);
}

/* A new user namespace, and in it what makes them dangerous: a mount. */
static int do_userns_power(int argc, char **argv)
{
	(void)argc; (void)argv;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) < 0)
		return p_no(errno, "unshare");
	return p_result(mount("none", "/tmp", "tmpfs", 0, NULL), "mount in a user namespace of our own");
}

/* The control of writing id maps: those of a user namespace of our own. */
static int do_own_map(int argc, char **argv)
{
	char text[32];
	int fd;

	(void)argc; (void)argv;
	snprintf(text, sizeof text, "0 %u 1", (unsigned)geteuid());
	if (unshare(CLONE_NEWUSER) < 0)
		return p_no(errno, "unshare");
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return p_no(errno, "open uid_map");
	return p_result(write(fd, text, strlen(text)), "write uid_map");
}

static int do_own_clock(int argc, char **argv)
{
	static const char text[] = "boottime 1000 0";
	int fd;

	if (argc > 1 && !strcmp(argv[1], "new") && unshare(CLONE_NEWTIME) < 0)
		return p_no(errno, "unshare");
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return p_no(errno, "open timens_offsets");
	return p_result(write(fd, text, sizeof text - 1), "write timens_offsets");
}

#define NESTED "nested user namespace: the door to kernel bugs, CVE-2022-0185, CVE-2023-0386, CVE-2024-1086"
const struct probe probes_ns[] = {
	{ "unshare", "S26", NESTED, do_unshare, 1, "KIND [high]" },
	{ "clone", "S28", NESTED, do_clone, 1, "KIND [high]" },
	{ "clone3", "S29", NESTED, do_clone3, 1, "KIND" },
	{ "setns", "S27", "another namespace is entered", do_setns, 2, "KIND PID [pidfd]" },
	{ "ns-id", "I10", "which namespace", do_ns_id, 1, "KIND" },
	{ "own-clock", "P11", "the clock is shifted", do_own_clock, 0, "[new]" },
	{ "own-map", "P06", "ids are mapped anew", do_own_map, 0, NULL },
	{ "userns-power", "S26", NESTED, do_userns_power, 0, NULL },
	{ 0 },
};
