/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - table and entry of the probe; see probe.h.
 *
 *     probe WORD [ARGS]            ask
 *     probe --ns WORD [ARGS]       ask with full capabilities over fresh mount, process, network,
 *                                  IPC, host name and cgroup namespaces (and a user namespace
 *                                  unless we are root): the control of many attacks
 *     probe --list                 the table
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct probe *const tables[] = {
	probes_fs, probes_proc, probes_dev, probes_net, probes_sys, probes_ns, probes_res, probes_id,
};

static void say(const char *head, const char *fmt, va_list ap)
{
	char line[4096];

	vsnprintf(line, sizeof line, fmt, ap);
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = '|';
	printf("%s %s\n", head, line);
	fflush(stdout);
}

int p_ok(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("OK", fmt, ap);
	va_end(ap);
	return P_WORKED;
}

int p_no(int err, const char *fmt, ...)
{
	char head[64];
	const char *name = strerrorname_np(err);
	va_list ap;

	snprintf(head, sizeof head, "NO %s", name ? name : "EUNKNOWN");
	va_start(ap, fmt);
	say(head, fmt, ap);
	va_end(ap);
	return P_DENIED;
}

int p_word(const char *word, const char *fmt, ...)
{
	char head[64];
	va_list ap;

	snprintf(head, sizeof head, "NO %s", word);
	va_start(ap, fmt);
	say(head, fmt, ap);
	va_end(ap);
	return P_DENIED;
}

int p_cant(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("CANT", fmt, ap);
	va_end(ap);
	return P_UNCLEAR;
}

int p_result(long r, const char *what)
{
	return r < 0 ? p_no(errno, "%s", what) : p_ok("%s = %ld", what, r);
}

int p_reached(long r, const char *what)
{
	int e = errno;

	if (r >= 0)
		return p_ok("%s = %ld", what, r);
	if (e == EPERM || e == EACCES || e == ENOSYS || e == ENOSPC || e == EROFS || e == EAFNOSUPPORT || e == EPROTONOSUPPORT)
		return p_no(e, "%s", what);
	return p_ok("%s reached the kernel: %s", what, strerrorname_np(e) ? strerrorname_np(e) : "?");
}

int p_in_child(int (*fn)(void *), void *arg)
{
	int st;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return p_cant("fork: %s", strerror(errno));
	if (pid == 0)
		_exit(fn(arg));
	if (waitpid(pid, &st, 0) != pid)
		return p_cant("waitpid: %s", strerror(errno));
	if (WIFSIGNALED(st)) {
		char word[32];

		snprintf(word, sizeof word, "SIG%s", sigabbrev_np(WTERMSIG(st)) ? sigabbrev_np(WTERMSIG(st)) : "?");
		return p_word(word, "killed");
	}
	return WEXITSTATUS(st);
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -1;
	r = write(fd, text, strlen(text)) < 0 ? -1 : 0;
	close(fd);
	return r;
}

/* Full capabilities over fresh namespaces; the caller goes on as their process 1. */
static int enter_ns(void)
{
	int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	unsigned uid = geteuid(), gid = getegid();
	char map[64];
	pid_t pid;
	int st;

	if (uid != 0)
		flags |= CLONE_NEWUSER;
	if (unshare(flags) < 0)
		return p_cant("unshare: %s", strerror(errno));
	if (uid != 0) {
		snprintf(map, sizeof map, "0 %u 1", uid);
		if (put("/proc/self/setgroups", "deny") < 0 || put("/proc/self/uid_map", map) < 0)
			return p_cant("uid map: %s", strerror(errno));
		snprintf(map, sizeof map, "0 %u 1", gid);
		if (put("/proc/self/gid_map", map) < 0)
			return p_cant("gid map: %s", strerror(errno));
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return p_cant("private mounts: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return p_cant("fork: %s", strerror(errno));
	if (pid > 0) {
		while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
			;
		exit(WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st));
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Our own /proc, so that /proc/self is right; below an outer masked /proc
	 * the kernel refuses it, and the old one has to do. */
	(void)!mount("proc", "/proc", "proc", 0, NULL);
	return -1;
}

static int list(void)
{
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct probe *p = tables[t]; p->word; p++)
			printf("%-4s %-18s %-28s %s\n", p->group, p->word, p->args ? p->args : "", p->what);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* EFBIG is an answer, death is not */
	if (argc > 1 && !strcmp(argv[1], "--list"))
		return list();
	if (argc > 1 && !strcmp(argv[1], "--ns")) {
		int r = enter_ns();

		if (r >= 0)
			return r;
		argc--;
		argv++;
	}
	if (argc < 2)
		return fprintf(stderr, "usage: probe [--ns] WORD [ARGS] | probe --list\n"), P_UNCLEAR;
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct probe *p = tables[t]; p->word; p++)
			if (!strcmp(p->word, argv[1])) {
				if (argc - 2 < p->min_args)
					return p_cant("usage: probe %s %s", p->word, p->args ? p->args : "");
				return p->fn(argc - 1, argv + 1);
			}
	return p_cant("no such probe: %s", argv[1]);
}
