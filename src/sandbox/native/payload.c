/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c - from process 1's child to the program's first instruction.
 *
 * Runs in a vfork child: process 1 sleeps until exec, memory is shared, so
 * nothing is allocated and nothing of process 1's is changed but the report.
 *
 * The order is forced, step by step:
 *   maps        need /proc/self to be ours, so while still dumpable
 *   nesting     needs CAP_SYS_RESOURCE in the new user namespace
 *   rlimits     before capabilities go, or raising a soft limit may fail
 *   caps        bounding set and securebits need CAP_SETPCAP
 *   pdeath      a change of credentials clears it, so after caps
 *   nnp         Landlock and seccomp need it
 *   Landlock    opens paths, so before the filter; rules need the final root
 *   seccomp     last: it forbids most of the above
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int fail(struct native_plan *p, const char *what)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "%s", what);
}

int native_payload_userns(struct native_plan *p)
{
	/* Outside ids are those of the builder's namespace: there the caller is 0. */
	unsigned uid = native_own_uid(p), gid = native_own_gid(p);

	if (!native_on(p, PROT_USERNS))
		return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? fail(p, "PR_SET_DUMPABLE") : 0;
	if (p->program_userns >= 0 && setns(p->program_userns, CLONE_NEWUSER) < 0)
		return fail(p, "enter the user namespace");
	if (p->program_userns < 0 && native_write_maps(p->proc_fd, "self", p->ids.root ? 0 : NATIVE_UID, uid, p->ids.root ? 0 : NATIVE_GID, gid) < 0)
		return fail(p, "write the user namespace's id maps");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(p, "PR_SET_DUMPABLE");
	native_active(p, PROT_USERNS);
	/* Rootless these count against the caller's own, who needs some, too. */
	if (p->builder_userns)
		(void)sys_put(p->proc_fd, "sys/user/max_inotify_instances", "100"); /* read-only in containers */
	if (!native_on(p, PROT_NESTING))
		return 0;
	if (sys_put(p->proc_fd, "sys/user/max_user_namespaces", "0") == 0)
		native_active(p, PROT_NESTING);
	else if (native_on(p, PROT_SECCOMP)) /* /proc/sys is read-only in containers; the filter bars it alone */
		native_active(p, PROT_NESTING);
	else
		return native_missing(p, PROT_NESTING, errno, "a bar on nested user namespaces");
	return 0;
}

/* Which of the program's descriptors is our pty; -1: none. */
static int terminal(const struct native_plan *p)
{
	for (int i = 0; p->spec->tty && i < 3; i++)
		if (isatty(i))
			return i;
	return -1;
}

static int take_stdio(struct native_plan *p)
{
	const int *io = p->spec->stdio;
	pid_t self = getpid();

	for (int i = 0; i < 3; i++) {
		if (io[i] == i) {
			if (fcntl(i, F_SETFD, 0) < 0)
				return fail(p, "keep descriptor open");
		} else if (dup2(io[i], i) < 0) {
			return fail(p, "dup2");
		}
	}
	/* A process group of its own in process 1's session, and not a session: the group of a
	 * session leader is orphaned, and the kernel does not stop those (Ctrl-Z). */
	if (setpgid(0, 0) < 0)
		return fail(p, "setpgid");
	if (terminal(p) >= 0 && ioctl(terminal(p), TIOCSPGRP, &self) < 0) /* SIGTTOU is still blocked */
		return fail(p, "take the terminal's foreground");
	if (!native_on(p, PROT_FDS))
		return 0;
	/* Closed by exec, not now: the way to report a failure is among them. */
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return fail(p, "close inherited descriptors");
	native_active(p, PROT_FDS);
	return 0;
}

/* ---- Landlock ---- */

static bool is_symlink(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

int native_allow(struct native_plan *p, int ruleset, const char *path, uint64_t rights)
{
	CS_FD int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && (errno == ENOENT || errno == EACCES || errno == ENOTDIR || errno == ELOOP))
		return 0; /* optional, not there */
	if (fd < 0)
		return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "Landlock: open '%s'", path);
	if (sys_landlock_allow(ruleset, fd, rights) == 0)
		return 0;
	/* A file takes fewer rights.  A symlink takes none: /bin -> usr/bin, covered by the rule for /usr. */
	if (errno == EINVAL && sys_landlock_allow(ruleset, fd, rights & sys_landlock_fs_file(p->landlock_abi)) == 0)
		return 0;
	if (is_symlink(fd))
		return 0;
	return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "Landlock: rule for '%s'", path);
}

/* A rule at every mount and not one at /: the kernel walks up from the file to
 * the first rule that answers, so near rules make every open cheaper. */
static int allow_all(struct native_plan *p, int ruleset)
{
	static const char *const private[] = { "/tmp", NATIVE_HOME, "/dev/shm", "/var/tmp" };
	uint64_t all = sys_landlock_fs_all(p->landlock_abi), read = sys_landlock_fs_read();
	uint64_t list = 1 << 3 /* read directory */, use = (sys_landlock_fs_file(p->landlock_abi) & ~1ull /* not execute */) | list;

	/* /dev holds harmless devices only and nothing can be made in it; /proc is covered where it matters. */
	if (native_allow(p, ruleset, "/", list) < 0 || native_allow(p, ruleset, "/etc", read) < 0 || native_allow(p, ruleset, "/proc", use | read) < 0 ||
	    native_allow(p, ruleset, "/dev", use) < 0)
		return -1;
	/* The terminal is also reached through /proc/self/fd, by its place in the host's devpts: the rule
	 * is for the file itself, wherever it is found. */
	if (p->spec->tty && native_allow(p, ruleset, "/dev/console", use & ~list) < 0)
		return -1;
	for (size_t i = 0; i < sizeof private / sizeof *private; i++)
		if (native_allow(p, ruleset, private[i], all) < 0)
			return -1;
	if (p->ids.root && (native_allow(p, ruleset, "/var", all) < 0 || native_allow(p, ruleset, "/run", all) < 0))
		return -1;
	for (size_t i = 0; i < p->spec->n_files; i++)
		if (native_allow(p, ruleset, p->spec->files[i].path, read) < 0)
			return -1;
	for (size_t i = 0; i < p->spec->n_binds; i++)
		if (native_allow(p, ruleset, native_target(p->binds[i]), p->binds[i]->kind == SANDBOX_RO ? read : all) < 0)
			return -1;
	/* Files of the caller's may lie where nothing else does, such as /run. */
	for (size_t i = 0; i < p->spec->n_files; i++)
		if (native_allow(p, ruleset, p->spec->files[i].path, read) < 0)
			return -1;
	return 0;
}

int native_payload_ruleset(struct native_plan *p, int *ret)
{
	CS_FD int ruleset = -1;

	*ret = -1;
	if (!native_on(p, PROT_LANDLOCK))
		return 0;
	if (p->landlock_abi == 0)
		return native_missing(p, PROT_LANDLOCK, ENOSYS, "Landlock");
	ruleset = sys_landlock_create(p->landlock_abi);
	if (ruleset < 0)
		return fail(p, "Landlock: make a ruleset");
	if (allow_all(p, ruleset) < 0)
		return -1;
	*ret = CS_TAKE_FD(ruleset);
	return 0;
}

static int enter_landlock(struct native_plan *p)
{
	CS_FD int ruleset = -1;

	if (native_payload_ruleset(p, &ruleset) < 0)
		return -1;
	if (ruleset < 0)
		return 0;
	if (sys_landlock_enter(ruleset) < 0)
		return fail(p, "Landlock: enter the ruleset");
	native_active(p, PROT_LANDLOCK);
	return 0;
}

/* ---- seccomp ---- */

static bool limits_a_store(const struct native_plan *p)
{
	bool any = false;

	for (size_t i = 0; i < p->spec->n_binds; i++)
		any |= p->binds[i]->store != 0;
	return any && p->spec->limits->disk && native_on(p, PROT_LIMIT_DISK);
}

int native_payload_seccomp(struct native_plan *p)
{
	int listener;

	if (!native_on(p, PROT_SECCOMP))
		return 0;
	if (p->spec->limits->cpus > 0 && native_on(p, PROT_LIMIT_CPU) && !(p->report->active & PROT_BIT(PROT_LIMIT_CPU)) &&
	    native_filter_affinity() < 0)
		return fail(p, "keep the CPUs as they are");
	if (limits_a_store(p) && native_filter_reserving() < 0)
		return fail(p, "keep files from reserving space");
	if (native_filter_payload(p, &listener) < 0)
		return native_missing(p, PROT_SECCOMP, errno, "a system-call filter");
	native_active(p, PROT_SECCOMP);
	if (listener >= 0 && native_send_fd(p->sock, 'L', listener) < 0)
		return fail(p, "hand out the refusal notifier");
	return 0;
}

/* ---- exec ---- */

int native_not_executed(struct cs_err *err, const char *name, const char *path, int sys)
{
	if (sys == NATIVE_NO_INTERPRETER)
		return cs_fail(err, CS_E_NOEXEC, 0,
			       "cannot execute '%s': it is there, but not the interpreter that it names (after `#!` in its first line, or the dynamic "
			       "linker of a binary; --ro PATH gives the sandbox more of the host)", name);
	if (sys == ENOENT || sys == ENOTDIR)
		return cs_fail(err, CS_E_NOCMD, 0,
			       "'%s': command not found inside the sandbox (looked in %s; --ro PATH gives it more of the host)",
			       name, strchr(name, '/') ? "that path" : path);
	return cs_fail(err, CS_E_NOEXEC, sys, "cannot execute '%s'", name);
}

/* What kept it from being executed: errno, once told apart what the kernel calls the same. */
static int why_not(const char *path)
{
	int err = errno;

	return err == ENOENT && access(path, F_OK) == 0 ? NATIVE_NO_INTERPRETER : err;
}

int native_exec(char *const *argv, char *const *env, const char *dir)
{
	const char *name = argv[0];
	char path[4096];
	int err, denied = 0;

	if (strchr(name, '/')) {
		execve(name, argv, env);
		return why_not(name);
	}
	while (*name && *dir) {
		size_t n = strcspn(dir, ":");

		if (snprintf(path, sizeof path, "%.*s/%s", (int)n, dir, name) < (int)sizeof path) {
			execve(path, argv, env);
			err = why_not(path);
			if (err != ENOENT && err != ENOTDIR)
				denied = err;
		}
		dir += n + (dir[n] == ':');
	}
	return denied ? denied : ENOENT;
}

static int exec_program(struct native_plan *p)
{
	atomic_store(&p->report->state, NATIVE_EXECING);
	return native_not_executed(&p->report->err, p->spec->argv[0], p->spec->path, native_exec(p->spec->argv, p->spec->env, p->spec->path));
}

/* What an installer needs to give files to others and become others.  They hold over the ids of the
 * program's own user namespace, which are nobody's on the host, and over nothing that it does not own. */
#define INSTALLER                                                                                                    \
	(1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_FSETID | 1u << CAP_KILL | 1u << CAP_SETUID | \
	 1u << CAP_SETGID)

/* From here on nothing can be raised again. */
int native_payload_give_up(struct native_plan *p)
{
	if (native_on(p, PROT_CAPS)) {
		if ((p->ids.root && native_on(p, PROT_USERNS) ? sys_keep_caps(INSTALLER) : sys_drop_caps()) < 0)
			return fail(p, "drop capabilities");
		native_active(p, PROT_CAPS);
	}
	if (native_on(p, PROT_PDEATH) && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return fail(p, "PR_SET_PDEATHSIG");
	if (native_on(p, PROT_NNP) || native_on(p, PROT_SECCOMP) || native_on(p, PROT_LANDLOCK)) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			return fail(p, "PR_SET_NO_NEW_PRIVS");
		native_active(p, PROT_NNP);
	}
	native_step(p, STEP_CAPS);
	return 0;
}

static int become_program(struct native_plan *p)
{
	sigset_t none;

	if (native_payload_userns(p) < 0)
		return -1;
	native_step(p, STEP_USERNS);
	if (take_stdio(p) < 0)
		return -1;
	if (native_rlimits(p) < 0)
		return fail(p, "set resource limits");
	if (native_on(p, PROT_NOCORE))
		native_active(p, PROT_NOCORE);
	umask(p->umask);
	if (chdir(p->spec->cwd) < 0)
		return cs_fail(&p->report->err, CS_E_INVALID, errno, "working directory '%s' inside the sandbox", p->spec->cwd);
	if (native_payload_give_up(p) < 0)
		return -1;
	if (enter_landlock(p) < 0)
		return -1;
	native_step(p, STEP_LANDLOCK);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (native_payload_seccomp(p) < 0)
		return -1;
	native_step(p, STEP_SECCOMP);
	return exec_program(p);
}

static _Noreturn int child(void *arg)
{
	struct native_plan *p = arg;

	native_step(p, STEP_FORK);
	if (become_program(p) < 0)
		atomic_store(&p->report->state, NATIVE_FAILED);
	/* Not _exit(): sanitizers do work there that this stack is not fit for. */
	for (;;)
		(void)sys_raw(SYS_exit_group, 127, 0, 0);
}

int native_spawn_payload(struct native_plan *p, pid_t *ret)
{
	static char stack[65536] __attribute__((aligned(16)));
	int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;

	if (p->ids.wide && native_on(p, PROT_USERNS) && (p->program_userns = native_program_userns(p)) < 0)
		return fail(p, "make a user namespace with a block of ids");
	if (p->spec->stem)
		return native_spawn_stem(p, ret);
	if (native_on(p, PROT_USERNS) && p->program_userns < 0)
		flags |= CLONE_NEWUSER;
	*ret = clone(child, stack + sizeof stack, flags, p);
	if (*ret < 0)
		return fail(p, "make the program's process");
	return 0;
}
