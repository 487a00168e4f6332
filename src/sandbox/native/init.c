/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - process 1 inside.
 *
 * First it is the builder: it has capabilities over the new namespaces and
 * none over the host's that it did not have before.  Once the program runs it
 * gives everything up, keeps one socket to the caller, and reaps.  When it
 * ends, the kernel ends every process in the sandbox.
 */
#include "sandbox/native/internal.h"

#include <errno.h>
#include <grp.h>
#include <linux/magic.h>
#include <linux/securebits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

static int fail(struct native_plan *p, const char *what)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "%s", what);
}

int native_missing(struct native_plan *p, enum protection prot, int sys, const char *what)
{
	p->report->why[prot] = sys ? sys : ENOSYS;
	if (!(p->spec->require & PROT_BIT(prot)))
		return 0;
	return cs_fail(&p->report->err, CS_E_UNSUPPORTED, sys,
		       "%s cannot be had here, and the profile requires '%s' (see `caisson doctor`)", what, protection_name(prot));
}

static int die_with_parent(struct native_plan *p)
{
	struct pollfd peer = { .fd = p->sock, .events = POLLIN };

	if (!native_on(p, PROT_PDEATH))
		return 0;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return fail(p, "PR_SET_PDEATHSIG");
	/* It may have died before that line. */
	if (poll(&peer, 1, 0) == 1 && peer.revents & POLLHUP)
		_exit(125);
	native_active(p, PROT_PDEATH);
	return 0;
}

static int open_host_proc(struct native_plan *p)
{
	struct statfs fs;

	p->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->proc_fd < 0 || fstatfs(p->proc_fd, &fs) < 0)
		return fail(p, "open /proc");
	if (fs.f_type != PROC_SUPER_MAGIC) { /* CVE-2025-52881: writes meant for procfs, sent elsewhere */
		errno = EINVAL;
		return fail(p, "/proc is not procfs");
	}
	return 0;
}

/* As root the caller's pipes and our pty belong to root, and `>/dev/stdout` opens them anew:
 * they become the sandbox's.  Nothing that has a name is touched. */
void native_own_stdio(const struct native_ids *ids, const int stdio[3], bool tty)
{
	for (int i = 0; i < 3; i++) {
		struct statfs fs;

		if (fstatfs(stdio[i], &fs) == 0 && (fs.f_type == PIPEFS_MAGIC || (tty && isatty(stdio[i]))))
			(void)!fchown(stdio[i], ids->uid, ids->gid); /* without it only reopening fails */
	}
}

/* Become the sandbox's own id, and keep the power to build. */
static int take_ids(struct native_plan *p)
{
	if (p->builder_userns && p->ids.wide)
		return native_expect(p, 'M', NULL); /* more than our own id only others can map */
	if (p->builder_userns) {
		if (native_write_maps(p->proc_fd, "self", 0, p->ids.uid, 0, p->ids.gid) < 0)
			return fail(p, "write id maps (are user namespaces restricted here? see `caisson doctor`)");
		return 0;
	}
	if (!p->spec->stem)
		native_own_stdio(&p->ids, p->spec->stdio, p->spec->tty);
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(p->ids.gid, p->ids.gid, p->ids.gid) < 0 || setresuid(p->ids.uid, p->ids.uid, p->ids.uid) < 0)
		return fail(p, "take the sandbox's ids");
	if (native_on(p, PROT_PDEATH) && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) /* the change of ids cleared it */
		return fail(p, "PR_SET_PDEATHSIG");
	native_active(p, PROT_IDRANGE);
	return 0;
}

int native_expect(struct native_plan *p, char what, int *ret_fd)
{
	int fd = -1;

	if (native_receive(p->sock, true, &fd) != what)
		return cs_fail(&p->report->err, CS_E_SYSTEM, 0, "the caller gave up");
	if (ret_fd)
		*ret_fd = fd;
	return 0;
}

static int join_cgroups(struct native_plan *p)
{
	const struct profile_limits *l = p->spec->limits;
	struct sys_cgroup *cg = &p->report->cgroup;
	bool v2 = cg->mode == SYS_CGROUP_V2;
	static const struct {
		enum sys_cgroup_ctl ctl;
		enum protection prot;
		const char *what;
	} of[] = { { SYS_CG_MEMORY, PROT_LIMIT_MEMORY, "a memory control group" },
		   { SYS_CG_PIDS, PROT_LIMIT_PIDS, "a process limit" },
		   { SYS_CG_CPU, PROT_LIMIT_CPU, "a CPU control group" } };
	unsigned want = native_cgroup_wanted(l, p->spec->off);

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		if (!(want & 1u << of[i].ctl)) {
			p->report->why[of[i].prot] = ENODATA; /* no such limit was asked for */
			if (p->spec->require & PROT_BIT(of[i].prot))
				return cs_fail(&p->report->err, CS_E_INVALID, 0, "'%s' is required, but there is no such limit: set it in the profile or by a flag",
					       protection_name(of[i].prot));
			continue;
		}
		if (cg->path[v2 ? SYS_CG_UNIFIED : of[i].ctl][0])
			native_active(p, of[i].prot);
		else if (of[i].ctl == SYS_CG_PIDS) /* RLIMIT_NPROC, per user namespace, does it too */
			native_active(p, of[i].prot);
		else if (native_missing(p, of[i].prot, cg->why[v2 ? SYS_CG_UNIFIED : of[i].ctl], of[i].what) < 0)
			return -1;
	}
	if (sys_cgroup_join_v1(cg) < 0)
		return fail(p, "join control group");
	/* After joining, so that the view starts at our own group. */
	if (native_on(p, PROT_CGROUPNS)) {
		if (unshare(CLONE_NEWCGROUP) < 0)
			return native_missing(p, PROT_CGROUPNS, errno, "a cgroup namespace");
		native_active(p, PROT_CGROUPNS);
	}
	return 0;
}

/* Where memory is sampled, System V segments are what no sample sees: the namespace gets a quarter
 * of the limit for them.  Where a control group counts them this is not needed, and fails. */
static void bound_sysv_memory(struct native_plan *p)
{
	char text[32];

	snprintf(text, sizeof text, "%llu", (unsigned long long)(p->spec->limits->memory / 4 / 4096));
	if (p->builder_userns && p->spec->limits->memory && native_on(p, PROT_IPCNS) && native_on(p, PROT_LIMIT_MEMORY))
		(void)sys_put(p->proc_fd, "sys/kernel/shmall", text); /* before Linux 5.19 only the host's root may */
}

/* Time since boot starts at the sandbox's start: what runs inside learns nothing of the host's, and
 * ps agrees with itself.  Needs Linux 6.3, where a vfork child enters its namespace at exec; it is
 * decoration, so where it cannot be had nothing is said. */
static void own_clock(struct native_plan *p)
{
	struct utsname u;
	struct timespec up;
	char text[64];
	int major = 0, minor = 0;

	if (!native_on(p, PROT_PROCFS) || uname(&u) < 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2 || major < 6 || (major == 6 && minor < 3))
		return;
	clock_gettime(CLOCK_BOOTTIME, &up);
	snprintf(text, sizeof text, "boottime -%lld 0", (long long)up.tv_sec);
	p->own_clock = unshare(0x00000080 /* CLONE_NEWTIME */) == 0 && sys_put(p->proc_fd, "self/timens_offsets", text) == 0;
}

static int own_names(struct native_plan *p)
{
	if (setsid() < 0)
		return fail(p, "setsid");
	for (int i = 0; p->spec->tty && i < 3; i++) /* the pty that the relay made */
		if (isatty(p->spec->stdio[i])) {
			if (ioctl(p->spec->stdio[i], TIOCSCTTY, 0) < 0)
				return fail(p, "take the terminal");
			break;
		}
	p->umask = umask(022);
	if (native_on(p, PROT_UTSNS) && (sethostname(NATIVE_HOST, sizeof NATIVE_HOST - 1) < 0 || setdomainname("", 0) < 0))
		return fail(p, "set the host name");
	bound_sysv_memory(p);
	own_clock(p);
	if (native_on(p, PROT_KEYRING)) {
		if (sys_new_session_keyring() < 0 && errno != ENOSYS)
			return native_missing(p, PROT_KEYRING, errno, "a session keyring");
		native_active(p, PROT_KEYRING);
	}
	return 0;
}

static int build(struct native_plan *p)
{
	static const enum protection by_clone[] = { PROT_PIDNS, PROT_IPCNS, PROT_UTSNS };
	static struct sys_netns netns;

	native_step(p, STEP_CLONE);
	for (size_t i = 0; i < sizeof by_clone / sizeof *by_clone; i++)
		if (native_on(p, by_clone[i]))
			native_active(p, by_clone[i]);
	native_active(p, PROT_ENV);
	if (die_with_parent(p) < 0 || open_host_proc(p) < 0)
		return -1;
	if (take_ids(p) < 0 || own_names(p) < 0)
		return -1;
	if (!p->ids.ranged)
		if (native_missing(p, PROT_IDRANGE, p->ids.why, "an id range of its own") < 0)
			return -1;
	native_step(p, STEP_IDS);
	if (native_on(p, PROT_NETNS) && sys_netns_make(&netns) < 0)
		return fail(p, "make a network namespace");
	native_step(p, STEP_NETNS);
	if (native_build_root(p) < 0)
		return -1;
	/* While the host's /sys is still in sight.  The caller has had all this time to make them. */
	if (native_expect(p, 'C', NULL) < 0 || join_cgroups(p) < 0)
		return -1;
	if (native_on(p, PROT_NETNS)) {
		if (sys_netns_enter(&netns) < 0)
			return fail(p, "enter the network namespace");
		native_active(p, PROT_NETNS);
		if (p->spec->network && native_open_network(p) < 0)
			return -1;
	}
	native_step(p, STEP_JOIN);
	if (native_enter_root(p) < 0)
		return -1;
	native_step(p, STEP_PIVOT);
	return 0;
}

/* Nothing of the caller's command line or environment is left in /proc/1: the kernel says where
 * they lie (fields 48 to 51 of stat). */
int native_wipe_strings(const struct native_plan *p)
{
	char text[1024], *at;
	unsigned long long v[4];

	if (sys_get(p->proc_fd, "self/stat", text, sizeof text) < 0 || !(at = strrchr(text, ')')))
		return -1;
	for (int field = 2; field < 48 && at; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, "%llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3]) != 4)
		return -1;
	for (int i = 0; i < 4; i += 2)
		if (v[i] && v[i + 1] > v[i])
			explicit_bzero((void *)(uintptr_t)v[i], (size_t)(v[i + 1] - v[i]));
	return 0;
}

static int confine(struct native_plan *p)
{
	unsigned keep = (unsigned)p->sock;

	/* An id of its own, so that the program cannot trace it; the real id stays the
	 * program's, so that it can pass signals on without a capability. */
	if (p->ids.ranged && (setresgid(p->ids.gid, p->ids.gid + 1, p->ids.gid + 1) < 0 ||
			      setresuid(p->ids.uid, p->ids.uid + 1, p->ids.uid + 1) < 0))
		return fail(p, "take process 1's own id");
	if (sys_drop_caps() < 0)
		return fail(p, "drop process 1's capabilities");
	if ((native_on(p, PROT_PDEATH) && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(p, "confine process 1");
	if ((keep > 0 && close_range(0, keep - 1, 0) < 0) || close_range(keep + 1, ~0u, 0) < 0)
		return fail(p, "close process 1's descriptors");
	return 0;
}

/* Signals from outside carry no sender we could see; from inside they do. */
static void forward(int fd, pid_t program)
{
	struct signalfd_siginfo si;

	while (read(fd, &si, sizeof si) == sizeof si)
		if (si.ssi_signo != SIGCHLD && si.ssi_pid == 0)
			(void)kill(native_is_for_group(si.ssi_signo) ? -program : program, (int)si.ssi_signo); /* may be gone already */
}

/* Reap whatever has ended.  True when the program itself has. */
static bool reap(struct native_plan *p, pid_t program)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) > 0) {
		if (pid != program)
			continue;
		if (WIFSTOPPED(status)) {
			/* Ctrl-Z; a program that stops itself otherwise stops only itself. */
			if (WSTOPSIG(status) == SIGTSTP)
				(void)send(p->sock, "S", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			continue;
		}
		native_step(p, STEP_PROGRAM);
		p->report->status = status;
		atomic_store(&p->report->state, NATIVE_ENDED);
		return true;
	}
	return false;
}

static _Noreturn void supervise(struct native_plan *p, pid_t program, const sigset_t *all)
{
	int fd = signalfd(-1, all, SFD_CLOEXEC | SFD_NONBLOCK);
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .fd = p->sock } };

	if (fd < 0 || (native_on(p, PROT_INIT) && native_filter_init() < 0))
		_exit(125);
	for (;;) {
		if (reap(p, program))
			_exit(0);
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			_exit(125);
		if (fds[1].revents & POLLHUP) { /* the caller is gone */
			if (native_on(p, PROT_PDEATH))
				_exit(125);
			fds[1].fd = -1;
		}
		forward(fd, program);
	}
}

_Noreturn void native_init(struct native_plan *p)
{
	pid_t program = -1;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (build(p) < 0)
		goto failed;
	/* The program's child writes its own id maps through /proc/self, which must be its own. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) {
		(void)fail(p, "PR_SET_DUMPABLE");
		goto failed;
	}
	if (native_spawn_payload(p, &program) < 0)
		goto failed;
	(void)native_send_fd(p->sock, 'T', p->tmpfs_fd); /* for accounting only */
	if (atomic_load(&p->report->state) == NATIVE_FAILED)
		_exit(125);
	if (native_wipe_strings(p) < 0) {
		(void)fail(p, "wipe process 1's command line and environment");
		goto failed;
	}
	if (native_on(p, PROT_INIT)) {
		if (confine(p) < 0)
			goto failed;
		native_active(p, PROT_INIT);
	}
	atomic_store(&p->report->state, NATIVE_RUNNING);
	supervise(p, program, &all);
failed:
	atomic_store(&p->report->state, NATIVE_FAILED);
	_exit(125);
}
