/* SPDX-License-Identifier: Apache-2.0 */
/* probe_sys.c - system calls, one word each, with arguments that the kernel
 * refuses as soon as it looks at them: `OK reached the kernel` means that
 * nothing stood in between.  Where the kernel asks for a capability before it
 * looks at the arguments, EPERM does not tell who refused; the tests then take
 * their control with capabilities. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NR_OPEN_TREE_ATTR = 467, NR_QUOTACTL_FD = 443, NR_PROCESS_MRELEASE = 448, NR_HOME_NODE = 450 };
enum { X32 = 0x40000000 };

#define BAD 8ul
#define ALL (~0ul)

struct call { const char *word; const char *group; const char *what; long nr; unsigned long a[6]; };

#define MOUNTS "mounts are changed, CVE-2022-0185"
#define CODE "code for the kernel is loaded"
#define CLOCK "the host's clock is set"
#define PEER "another process is read or written"
#define KEYS "kernel keyrings, CVE-2016-0728"
#define URING "io_uring: calls that no filter sees, CVE-2026-43494"
#define NUMA "memory policy calls"
static const struct call calls[] = {
	{ "kexec_load", "S01", CODE, SYS_kexec_load, { 0, 0, BAD, 0 } },
	{ "kexec_file_load", "S01", CODE, SYS_kexec_file_load, { ALL, ALL, 0, BAD, 0 } },
	{ "mount", "S02", MOUNTS, SYS_mount, { BAD, BAD, BAD, 0, BAD } },
	{ "umount2", "S03", MOUNTS, SYS_umount2, { (unsigned long)"/", 0xffff } },
	{ "fsopen", "S04", MOUNTS, SYS_fsopen, { (unsigned long)"tmpfs", 0xffff } },
	{ "fsconfig", "S04", MOUNTS, SYS_fsconfig, { ALL, 99, 0, 0, 0 } },
	{ "fsmount", "S04", MOUNTS, SYS_fsmount, { ALL, 0xffff, 0 } },
	{ "fspick", "S04", MOUNTS, SYS_fspick, { ALL, BAD, 0xffff } },
	{ "open_tree", "S05", MOUNTS, SYS_open_tree, { ALL, BAD, 0xffffff } },
	{ "open_tree_attr", "S05", MOUNTS, NR_OPEN_TREE_ATTR, { ALL, BAD, 0, 0, 8 } },
	{ "move_mount", "S06", MOUNTS, SYS_move_mount, { ALL, BAD, ALL, BAD, 0xffffffff } },
	{ "mount_setattr", "S07", MOUNTS, SYS_mount_setattr, { ALL, BAD, 0xffffff, 0, 0 } },
	{ "pivot_root", "S08", MOUNTS, SYS_pivot_root, { BAD, BAD } },
	{ "chroot", "S09", "the root is changed", SYS_chroot, { BAD } },
	{ "swapon", "S10", "swap is changed", SYS_swapon, { BAD, 0xffffffff } },
	{ "swapoff", "S10", "swap is changed", SYS_swapoff, { BAD } },
	{ "reboot", "S11", "the machine is restarted", SYS_reboot, { 0, 0, 0, 0 } },
	{ "init_module", "S12", CODE, SYS_init_module, { BAD, 0, BAD } },
	{ "finit_module", "S12", CODE, SYS_finit_module, { ALL, BAD, 0xffff } },
	{ "delete_module", "S12", CODE, SYS_delete_module, { BAD, 0 } },
	{ "iopl", "S13", "direct hardware access", SYS_iopl, { 4 } },
	{ "ioperm", "S14", "direct hardware access", SYS_ioperm, { ALL, ALL, 1 } },
	{ "modify_ldt", "S15", "segment tables, CVE-2015-5157", SYS_modify_ldt, { 0, 0, 0 } },
	{ "bpf", "S16", CODE ", CVE-2021-3490", SYS_bpf, { 0, BAD, 1 << 20 } },
	{ "process_vm_readv", "S18", PEER, SYS_process_vm_readv, { 0, BAD, 1, BAD, 1, 0xffff } },
	{ "process_vm_writev", "S18", PEER, SYS_process_vm_writev, { 0, BAD, 1, BAD, 1, 0xffff } },
	{ "pidfd_getfd", "S19", PEER, SYS_pidfd_getfd, { ALL, 0, 0 } },
	{ "kcmp", "S20", PEER, SYS_kcmp, { ALL, ALL, 0, 0, 0 } },
	{ "process_madvise", "S21", PEER, SYS_process_madvise, { ALL, BAD, 1, 0, 0xffff } },
	{ "process_mrelease", "S21", PEER, NR_PROCESS_MRELEASE, { ALL, 0xffff } },
	{ "keyctl", "S22", KEYS, SYS_keyctl, { 0, (unsigned long)-3, 0 } },
	{ "add_key", "S22", KEYS, SYS_add_key, { BAD, BAD, BAD, 1, ALL } },
	{ "request_key", "S22", KEYS, SYS_request_key, { BAD, BAD, 0, 0 } },
	{ "perf_event_open", "S23", "performance counters, CVE-2013-2094", SYS_perf_event_open, { BAD, 0, ALL, ALL, 0 } },
	{ "userfaultfd", "S24", "page faults stopped at will: a help for exploits", SYS_userfaultfd, { 1 } },
	{ "userfaultfd_kernel", "S24", "page faults of the kernel stopped at will", SYS_userfaultfd, { 0 } },
	{ "io_uring_setup", "S25", URING, SYS_io_uring_setup, { 1, BAD } },
	{ "io_uring_enter", "S25", URING, SYS_io_uring_enter, { ALL, 0, 0, 0, 0, 0 } },
	{ "io_uring_register", "S25", URING, SYS_io_uring_register, { ALL, 0, 0, 0 } },
	{ "setns", "S27", "another namespace is entered", SYS_setns, { ALL, 0 } },
	{ "open_by_handle_at", "S30", "open by handle (Shocker)", SYS_open_by_handle_at, { ALL, BAD, 0 } },
	{ "personality", "S31", "address space layout is made predictable", SYS_personality, { ADDR_NO_RANDOMIZE } },
	{ "sethostname", "S32", "names of the host are set", SYS_sethostname, { BAD, 8 } },
	{ "setdomainname", "S32", "names of the host are set", SYS_setdomainname, { BAD, 8 } },
	{ "settimeofday", "S33", CLOCK, SYS_settimeofday, { BAD, 0 } },
	{ "clock_settime", "S33", CLOCK, SYS_clock_settime, { 0, BAD } },
	{ "clock_adjtime", "S33", CLOCK, SYS_clock_adjtime, { 0, BAD } },
	{ "acct", "S34", "accounting and quota of the host", SYS_acct, { BAD } },
	{ "quotactl", "S34", "accounting and quota of the host", SYS_quotactl, { 0xff, BAD, 0, BAD } },
	{ "quotactl_fd", "S34", "accounting and quota of the host", NR_QUOTACTL_FD, { ALL, 0xff, 0, BAD } },
	{ "syslog", "S35", "the kernel's log", SYS_syslog, { 10, 0, 0 } },
	{ "fanotify_init", "S36", "file events of the whole host", SYS_fanotify_init, { 0x200, 0 } },
	{ "fanotify_mark", "S36", "file events of the whole host", SYS_fanotify_mark, { ALL, 1, 1, ALL, BAD } },
	{ "lookup_dcookie", "S36", "paths by cookie", SYS_lookup_dcookie, { 0, BAD, 1 } },
	{ "vmsplice", "S37", "pages given to pipes, CVE-2008-0600", SYS_vmsplice, { ALL, BAD, 1, 0 } },
	{ "move_pages", "S38", NUMA, SYS_move_pages, { 0, 0, 0, 0, 0, 0 } },
	{ "mbind", "S38", NUMA, SYS_mbind, { 0, 0, 0, 0, 0, 0 } },
	{ "set_mempolicy", "S38", NUMA, SYS_set_mempolicy, { 0, 0, 0 } },
	{ "get_mempolicy", "S38", NUMA, SYS_get_mempolicy, { 0, 0, 0, 0, 0 } },
	{ "migrate_pages", "S38", NUMA, SYS_migrate_pages, { 0, 0, 0, 0 } },
	{ "set_mempolicy_home_node", "S38", NUMA, NR_HOME_NODE, { 0, 0, 0, 1 } },
	{ "uselib", "S43", "obsolete calls", SYS_uselib, { BAD } },
	{ "nfsservctl", "S43", "obsolete calls", SYS_nfsservctl, { 0 } },
	{ "_sysctl", "S43", "obsolete calls", SYS__sysctl, { BAD } },
	{ 0 },
};

static int do_call(int argc, char **argv)
{
	(void)argc;
	for (const struct call *c = calls; c->word; c++)
		if (!strcmp(c->word, argv[1]))
			return p_reached(syscall(c->nr, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]), c->word);
	return p_cant("no such call: %s", argv[1]);
}

static int do_calls(int argc, char **argv)
{
	(void)argc; (void)argv;
	for (const struct call *c = calls; c->word; c++)
		printf("%s %s %s\n", c->group, c->word, c->what);
	return p_ok("all");
}

/* To set is what is refused; to read is everybody's.  A time in the past of all
 * seconds is EINVAL to whoever may set. */
static int do_adjtimex(int argc, char **argv)
{
	struct timex t = { .modes = ADJ_SETOFFSET, .time = { .tv_sec = 0, .tv_usec = -1 } };

	(void)argc; (void)argv;
	return p_reached(syscall(SYS_adjtimex, &t), "adjtimex");
}

static int hang_up(void *arg)
{
	(void)arg;
	setsid(); /* no terminal: nothing is hung up even if we may */
	return p_result(syscall(SYS_vhangup), "vhangup");
}

static int do_vhangup(int argc, char **argv)
{
	(void)argc; (void)argv;
	return p_in_child(hang_up, NULL);
}

static int traceme(void *arg)
{
	(void)arg;
	return p_result(syscall(SYS_ptrace, 0 /* PTRACE_TRACEME */, 0, 0, 0), "PTRACE_TRACEME");
}

static int do_traceme(int argc, char **argv)
{
	(void)argc; (void)argv;
	return p_in_child(traceme, NULL);
}

/* A child of our own. */
static int do_trace_child(int argc, char **argv)
{
	pid_t pid = fork();
	int r;

	(void)argc; (void)argv;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	r = p_result(syscall(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, pid, 0, 0), "PTRACE_SEIZE");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

static int do_mm(int argc, char **argv)
{
	(void)argc; (void)argv;
	/* Below mmap_min_addr: refused with EINVAL by whoever may ask at all. */
	return p_reached(prctl(PR_SET_MM, PR_SET_MM_START_BRK, 8, 0, 0), "PR_SET_MM");
}

static int do_listener(int argc, char **argv)
{
	struct sock_filter f[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog p = { 1, f };

	(void)argc; (void)argv;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return p_cant("no_new_privs");
	return p_result(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p), "listener");
}

/* A real ring, with which everything else can be asked past the filter. */
static int do_uring(int argc, char **argv)
{
	unsigned char params[256] = { 0 };

	(void)argc; (void)argv;
	return p_result(syscall(SYS_io_uring_setup, 4, params), "io_uring_setup");
}

/* ---- other doors -------------------------------------------------------- */

#ifdef __x86_64__
static long int80(long nr, long a, long b)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(0L), "S"(0L), "D"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	return r;
}

static int call_int80(void *arg)
{
	long nr = *(long *)arg, r = int80(nr, 0, 0);

	/* A kernel without the i386 ABI answers with a signal, a filter too; see the control. */
	if (r < 0 && r > -4096)
		return p_reached((errno = (int)-r, -1), "int 0x80");
	return p_ok("int 0x80 call %ld = %ld", nr, r);
}

static int do_int80(int argc, char **argv)
{
	long nr = atol(argv[1]);

	(void)argc;
	return p_in_child(call_int80, &nr);
}

static int call_x32(void *arg)
{
	long nr = *(long *)arg;

	return p_reached(syscall(X32 | nr, 0, 0, 0), "x32 call");
}

static int do_x32(int argc, char **argv)
{
	long nr = atol(argv[1]);

	(void)argc;
	return p_in_child(call_x32, &nr);
}
#else
static int do_int80(int argc, char **argv) { (void)argc; (void)argv; return p_cant("not on this machine"); }
static int do_x32(int argc, char **argv) { (void)argc; (void)argv; return p_cant("not on this machine"); }
#endif

static int do_personality_high(int argc, char **argv)
{
	(void)argc; (void)argv;
	return p_result(syscall(SYS_personality, 1ul << 32 | ADDR_NO_RANDOMIZE), "personality with high bits");
}

static int do_fastopen_high(int argc, char **argv)
{
	(void)argc; (void)argv;
	return p_reached(syscall(SYS_sendto, ALL, BAD, 1, 1ul << 32 | MSG_FASTOPEN, BAD, 16), "sendto with high bits");
}

/* ---- all of them -------------------------------------------------------- */

/* One call with arguments nobody accepts.  The answer goes through shared
 * memory, for the call may be exit(2). */
static void one(long nr, long *answer, unsigned long flag)
{
	struct itimerval t = { .it_value.tv_usec = 40000 };
	long r;

	setitimer(ITIMER_REAL, &t, NULL);
	r = syscall((long)((unsigned long)nr | flag), ALL, ALL, ALL, ALL, ALL, ALL);
	*answer = r < 0 ? -errno : r;
	_exit(0);
}

static int do_sweep(int argc, char **argv)
{
	long from = atol(argv[1]), to = atol(argv[2]);
	unsigned long flag = argc > 3 && !strcmp(argv[3], "x32") ? X32 : 0;
	long *answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (answer == MAP_FAILED)
		return p_cant("mmap");
	for (long nr = from; nr <= to; nr++) {
		pid_t pid;
		int st;

		*answer = LONG_MIN;
		fflush(stdout);
		pid = fork();
		if (pid < 0)
			return p_cant("fork: %s", strerror(errno));
		if (pid == 0)
			one(nr, answer, flag);
		while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
			;
		if (*answer != LONG_MIN)
			printf("%ld %s\n", nr, *answer >= 0 ? "0" : strerrorname_np((int)-*answer) ? strerrorname_np((int)-*answer) : "E?");
		else if (WIFSIGNALED(st))
			printf("%ld SIG%s\n", nr, sigabbrev_np(WTERMSIG(st)));
		else
			printf("%ld exited\n", nr);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return p_ok("asked %ld to %ld", from, to);
}

const struct probe probes_sys[] = {
	{ "call", "S01", "one system call with bad arguments (see `probe calls`)", do_call, 1, "NAME" },
	{ "calls", "S01", "what `call` knows", do_calls, 0, NULL },
	{ "traceme", "S17", PEER, do_traceme, 0, NULL },
	{ "trace-child", "S17", PEER, do_trace_child, 0, NULL },
	{ "adjtimex", "S33", CLOCK, do_adjtimex, 0, NULL },
	{ "vhangup", "S37", "the terminal is hung up", do_vhangup, 0, NULL },
	{ "mm", "S39", "prctl(PR_SET_MM)", do_mm, 0, NULL },
	{ "listener", "S39", "seccomp listener", do_listener, 0, NULL },
	{ "uring", "N19", URING, do_uring, 0, NULL },
	{ "sweep", "S40", "every call number, also those of the future", do_sweep, 2, "FROM TO [x32]" },
	{ "int80", "S41", "the i386 ABI, where socketcall hides its arguments", do_int80, 1, "NR" },
	{ "x32", "S42", "the x32 ABI, CVE-2014-0038", do_x32, 1, "NR" },
	{ "personality-high", "S44", "high argument bits", do_personality_high, 0, NULL },
	{ "fastopen-high", "S44", "high argument bits", do_fastopen_high, 0, NULL },
	{ 0 },
};
