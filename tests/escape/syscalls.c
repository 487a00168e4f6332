/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls.c - the kernel's surface: calls, namespaces, other ABIs, numbers of the future. */
#include "escape.h"

#include <sys/syscall.h>

#define FILTERED "EPERM ENOSYS"
#define MOUNTS "mounts, CVE-2022-0185"
#define CODE "code in the kernel"
#define PEER "another process's memory"
#define KEYS "keyrings, CVE-2016-0728"
#define URING "io_uring, CVE-2026-43494"
#define NUMA "memory policy"
#define CLOCK "the host's clock"
#define NESTED "nested namespaces, CVE-2022-0185, CVE-2023-0386, CVE-2024-1086"
#define ABI "foreign ABI"

/* The kernel looks at the arguments first: without the filter they are reached. */
#define CALL(id_, call, class_)                                                                                      \
	{ id_, call " is refused", class_, { "call", call }, FILTERED, .how = BY_OFF, .off = "seccomp" }
/* It asks for a capability first: the control has all of them. */
#define CALL_NS(id_, call, class_) { id_, call " is refused", class_, { "call", call }, FILTERED, .how = BY_NS }
#define CALL_ROOT(id_, call, class_)                                                                                 \
	{ id_, call " is refused", class_, { "call", call }, FILTERED, .how = BARE, .flag = ROOT_ONLY }
#define UNSHARE(kind)                                                                                                \
	{ "S26", "no new " kind " namespace by unshare", NESTED, { "unshare", kind }, FILTERED, .how = BY_NS },      \
	{ "S26", "without the filter no new " kind " namespace by unshare", NESTED ", second wall", { "unshare", kind }, \
	  "EPERM ENOSPC", .how = BY_NS, .with = "seccomp" }
#define CLONE(kind)                                                                                                  \
	{ "S28", "no new " kind " namespace by clone", NESTED, { "clone", kind }, FILTERED, .how = BY_NS }
#define CLONE3(kind)                                                                                                 \
	{ "S29", "no new " kind " namespace by clone3", NESTED, { "clone3", kind }, FILTERED, .how = BY_NS }
#define SETNS(kind)                                                                                                  \
	{ "S27", "the " kind " namespace is not entered by setns", "namespaces", { "setns", kind, "self" }, FILTERED,  \
	  .how = BY_NS }

static const struct row rows[] = {
	CALL_ROOT("S01", "kexec_load", CODE), CALL_ROOT("S01", "kexec_file_load", CODE),
	CALL("S02", "mount", MOUNTS), CALL("S03", "umount2", MOUNTS),
	CALL_NS("S04", "fsopen", MOUNTS), CALL("S04", "fsconfig", MOUNTS), CALL_NS("S04", "fsmount", MOUNTS),
	CALL_NS("S04", "fspick", MOUNTS), CALL("S05", "open_tree", MOUNTS), CALL("S05", "open_tree_attr", MOUNTS),
	CALL_NS("S06", "move_mount", MOUNTS), CALL("S07", "mount_setattr", MOUNTS), CALL_NS("S08", "pivot_root", MOUNTS),
	CALL("S09", "chroot", "the root"), CALL("S10", "swapon", "swap"), CALL_ROOT("S10", "swapoff", "swap"),
	CALL_NS("S11", "reboot", "restart"), CALL_ROOT("S12", "init_module", CODE), CALL_ROOT("S12", "finit_module", CODE),
	CALL_ROOT("S12", "delete_module", CODE), CALL("S13", "iopl", "hardware"), CALL("S14", "ioperm", "hardware"),
	CALL("S15", "modify_ldt", "segments, CVE-2015-5157"), CALL("S16", "bpf", CODE ", CVE-2021-3490"),
	{ "S17", "ptrace of a child is refused", PEER, { "trace-child" }, FILTERED, .how = BY_OFF, .off = "seccomp" },
	{ "S17", "PTRACE_TRACEME is refused", PEER, { "traceme" }, FILTERED, .how = BY_OFF, .off = "seccomp" },
	CALL("S18", "process_vm_readv", PEER), CALL("S18", "process_vm_writev", PEER), CALL("S19", "pidfd_getfd", PEER),
	CALL("S20", "kcmp", PEER), CALL("S21", "process_madvise", PEER), CALL("S21", "process_mrelease", PEER),
	CALL("S22", "keyctl", KEYS), CALL("S22", "add_key", KEYS), CALL("S22", "request_key", KEYS),
	CALL("S23", "perf_event_open", "counters, CVE-2013-2094"), CALL("S24", "userfaultfd", "stopped faults"),
	CALL_ROOT("S24", "userfaultfd_kernel", "stopped faults of the kernel"),
	{ "S24", "/dev/userfaultfd is not there", "stopped faults", { "dev", "/dev/userfaultfd" }, "ENOENT", .how = BARE,
	  .flag = ROOT_ONLY },
	CALL("S25", "io_uring_setup", URING), CALL("S25", "io_uring_enter", URING), CALL("S25", "io_uring_register", URING),

	UNSHARE("user"), UNSHARE("mnt"), UNSHARE("pid"), UNSHARE("net"), UNSHARE("ipc"), UNSHARE("uts"), UNSHARE("cgroup"),
	UNSHARE("time"),
	{ "S26", "without the filter a user namespace is refused by its count", NESTED ", second wall", { "unshare", "user" },
	  "ENOSPC EPERM", .how = BY_OFF, .with = "seccomp,landlock", .off = "seccomp,landlock,nesting" },
	{ "S26", "no power comes from a user namespace", NESTED, { "userns-power" }, FILTERED, .how = BY_OFF,
	  .off = "seccomp,nesting,landlock" },
	SETNS("mnt"), SETNS("net"), SETNS("uts"), SETNS("ipc"), SETNS("cgroup"),
	{ "S27", "no namespace of process 1 is entered", "namespaces", { "setns", "mnt", "1" }, "EPERM EACCES ENOENT", .how = BY_NS },
	{ "S27", "no namespace is entered by pidfd", "namespaces", { "setns", "uts", "1", "pidfd" }, "EPERM EACCES", .how = BY_NS },
	{ "S27", "setns is refused before it looks", "namespaces", { "call", "setns" }, FILTERED, .how = BY_OFF, .off = "seccomp" },
	CLONE("user"), CLONE("mnt"), CLONE("pid"), CLONE("net"), CLONE("ipc"), CLONE("uts"), CLONE("cgroup"),
	{ "S28", "without the filter no user namespace by clone", NESTED ", second wall", { "clone", "user" }, "ENOSPC EPERM",
	  .how = BY_OFF, .with = "seccomp", .off = "seccomp,nesting" },
	{ "S28", "high bits hide no user namespace from clone", NESTED ", CVE-2019-10063", { "clone", "user", "high" }, FILTERED,
	  .how = BY_OFF, .off = "seccomp,nesting" },
	CLONE3("user"), CLONE3("mnt"), CLONE3("pid"), CLONE3("net"), CLONE3("ipc"), CLONE3("uts"), CLONE3("cgroup"), CLONE3("time"),
	{ "S29", "without the filter no user namespace by clone3", NESTED ", second wall", { "clone3", "user" }, "ENOSPC EPERM",
	  .how = BY_OFF, .with = "seccomp", .off = "seccomp,nesting" },

	CALL("S30", "open_by_handle_at", "Shocker"), CALL("S31", "personality", "layout made predictable"),
	CALL_NS("S32", "sethostname", "names of the host"), CALL_NS("S32", "setdomainname", "names of the host"),
	CALL("S33", "settimeofday", CLOCK), CALL("S33", "clock_settime", CLOCK), CALL("S33", "clock_adjtime", CLOCK),
	{ "S33", "adjtimex sets nothing", CLOCK, { "adjtimex" }, FILTERED, .how = BARE, .flag = ROOT_ONLY },
	{ "S33", "without the filter adjtimex sets nothing", CLOCK ", second wall", { "adjtimex" }, "EPERM", .how = BARE,
	  .flag = ROOT_ONLY, .with = "seccomp" },
	 CALL_ROOT("S34", "acct", "accounting"), CALL("S34", "quotactl", "quota"),
	CALL("S34", "quotactl_fd", "quota"), CALL_ROOT("S35", "syslog", "the kernel's log"),
	CALL("S36", "fanotify_init", "file events"), CALL("S36", "fanotify_mark", "file events"),
	CALL("S36", "lookup_dcookie", "paths by cookie"),
	{ "S37", "vhangup is refused", "terminals", { "vhangup" }, FILTERED, .how = BARE, .flag = ROOT_ONLY },
	CALL("S37", "vmsplice", "pages given away, CVE-2008-0600"),
	CALL("S38", "move_pages", NUMA), CALL("S38", "mbind", NUMA), CALL("S38", "set_mempolicy", NUMA),
	CALL("S38", "get_mempolicy", NUMA), CALL("S38", "migrate_pages", NUMA), CALL("S38", "set_mempolicy_home_node", NUMA),
	{ "S39", "the memory map is not rewritten", "prctl", { "mm" }, "EPERM EINVAL", .how = BARE, .cap = 24 + 1 },
	{ "S39", "no second listener sits on the filter", "seccomp", { "listener" }, FILTERED " EBUSY", .how = BARE },

	{ "S41", "the i386 ABI ends the process", ABI ", 32-bit calls", { "int80", "20" }, "SIGSYS", .how = BY_OFF, .off = "seccomp" },
	{ "S41", "i386 socketcall ends the process", ABI ", hidden arguments", { "int80", "102" }, "SIGSYS", .how = BY_OFF,
	  .off = "seccomp" },
	{ "S42", "the x32 ABI ends the process", ABI ", CVE-2014-0038", { "x32", "39" }, "SIGSYS ENOSYS", .how = BY_OFF,
	  .off = "seccomp" },
	{ "S42", "x32 exec ends the process", ABI ", CVE-2014-0038", { "x32", "520" }, "SIGSYS ENOSYS", .how = BY_OFF,
	  .off = "seccomp" },
	CALL("S43", "uselib", "obsolete"), CALL("S43", "nfsservctl", "obsolete"), CALL("S43", "_sysctl", "obsolete"),
	{ "S44", "high bits hide no personality", "high argument bits, CVE-2019-10063", { "personality-high" }, FILTERED, .how = BY_OFF,
	  .off = "seccomp" },
	{ "S44", "high bits hide no fast open", "high argument bits, CVE-2019-10063", { "fastopen-high" }, FILTERED, .how = BY_OFF,
	  .off = "seccomp" },
};

/* ---- every number ----------------------------------------------------------- */

enum { SWEEP_LAST = 600, FUTURE = 453 };

/* What a program may never reach, whatever list the filter was made from. */
static const int never[] = {
	SYS_kexec_load, SYS_kexec_file_load, SYS_mount, SYS_umount2, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
	SYS_open_tree, SYS_move_mount, SYS_mount_setattr, SYS_pivot_root, SYS_chroot, SYS_swapon, SYS_swapoff, SYS_reboot,
	SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_bpf, SYS_ptrace,
	SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_kcmp, SYS_process_madvise, SYS_keyctl, SYS_add_key,
	SYS_request_key, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
	SYS_unshare, SYS_setns, SYS_clone3, SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_sethostname, SYS_setdomainname,
	SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_acct, SYS_quotactl, SYS_quotactl_fd, SYS_syslog,
	SYS_fanotify_init, SYS_fanotify_mark, SYS_lookup_dcookie, SYS_vhangup, SYS_vmsplice, SYS_move_pages, SYS_mbind,
	SYS_migrate_pages, SYS_set_mempolicy, SYS_uselib, SYS_nfsservctl, SYS__sysctl, SYS_create_module,
	SYS_get_kernel_syms, SYS_query_module, SYS_getpmsg, SYS_putpmsg, SYS_afs_syscall, SYS_tuxcall, SYS_security,
	SYS_vserver, SYS_epoll_ctl_old, SYS_epoll_wait_old, SYS_memfd_secret,
};

/* What the answers to `sweep` were: fills want[nr]. */
static int parse(const char *out, char got[SWEEP_LAST + 1][16])
{
	int n = 0, nr;
	char word[16];

	for (const char *l = out; l && *l; l = strchr(l, '\n') ? strchr(l, '\n') + 1 : NULL)
		if (sscanf(l, "%d %15s", &nr, word) == 2 && nr >= 0 && nr <= SWEEP_LAST) {
			snprintf(got[nr], sizeof got[nr], "%s", word);
			n++;
		}
	return n;
}

static void sweep(bool sandbox)
{
	static char got[SWEEP_LAST + 1][16];
	static struct t_result r;
	struct place *p = place_make();
	int reached = 0, bad = 0;

	run_in(p, &r, &(struct run){ .off = sandbox ? NULL : "seccomp", .cmd = WORDLIST("@P", "sweep", "0", "600") });
	if (parse(r.out, got) != SWEEP_LAST + 1)
		T_FAIL("the sweep did not finish: status %d '%.200s'", r.status, r.err);
	for (size_t i = 0; i < COUNT(never); i++) {
		bool stopped = !strcmp(got[never[i]], "EPERM") || !strcmp(got[never[i]], "ENOSYS");

		reached += !stopped;
		if (sandbox && !stopped) {
			printf("# call %d: %s\n", never[i], got[never[i]]);
			bad++;
		}
	}
	for (int nr = FUTURE; nr <= SWEEP_LAST; nr++)
		if (sandbox && strcmp(got[nr], "ENOSYS")) {
			printf("# call %d is newer than the list: %s, not ENOSYS\n", nr, got[nr]);
			bad++;
		}
	if (sandbox)
		for (int nr = 0; nr <= SWEEP_LAST; nr++)
			if (!strcmp(got[nr], "SIGSYS")) {
				printf("# call %d kills\n", nr);
				bad++;
			}
	if (bad)
		T_FAIL("%d calls are not refused as they should be", bad);
	if (!sandbox && reached < 30)
		T_FAIL("control: only %d of %zu calls reached the kernel", reached, COUNT(never));
}

static void sweep_inside(void) { sweep(true); }
static void sweep_outside(void) { sweep(false); }

/* No x32 number gets through, whatever it is. */
static void sweep_x32(bool sandbox)
{
	static char got[SWEEP_LAST + 1][16];
	static struct t_result r;
	struct place *p = place_make();
	int killed = 0;

	run_in(p, &r, &(struct run){ .off = sandbox ? NULL : "seccomp", .cmd = WORDLIST("@P", "sweep", "0", "600", "x32") });
	if (parse(r.out, got) != SWEEP_LAST + 1)
		T_FAIL("the sweep did not finish: status %d '%.200s'", r.status, r.err);
	for (int nr = 0; nr <= SWEEP_LAST; nr++)
		killed += !strcmp(got[nr], "SIGSYS");
	if (sandbox && killed != SWEEP_LAST + 1)
		T_FAIL("only %d of %d x32 numbers kill", killed, SWEEP_LAST + 1);
	if (!sandbox && killed)
		T_FAIL("control: %d numbers kill without the filter", killed);
}

static void x32_inside(void) { sweep_x32(true); }
static void x32_outside(void) { sweep_x32(false); }

static const struct scene scenes[] = {
	{ "S40", "every call number up to 600 has the fate it should", "new and forgotten calls", sweep_inside, sweep_outside },
	{ "S42", "every x32 number ends the process", ABI, x32_inside, x32_outside },
};

TEST_TABLE(syscalls)
{
	add_rows(rows, COUNT(rows));
	add_scenes(scenes, COUNT(scenes));
}
