/* SPDX-License-Identifier: Apache-2.0 */
/* procfs.c - /proc and /sys: other processes, kernel settings, kernel memory. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <elf.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SETTING "kernel setting, CVE-2025-31133, CVE-2025-52881"
#define KERNEL "kernel memory, logs and addresses"
#define PEER "other processes"
#define INIT "process 1 is ours, CVE-2019-5736"
#define SYSFS "sysfs"
#define CGROUP "cgroup, CVE-2022-0492"
#define GONE "ENOENT EACCES EROFS EPERM"
#define EMPTY "ENOENT EACCES ENODATA EPERM"

#define SET(path)                                                                                                    \
	{ "P03", path " is not writable", SETTING, { "write", path }, GONE, .how = BARE, .flag = ROOT_ONLY | MAY_LACK }
#define MASK(path)                                                                                                   \
	{ "P04", path " is empty or not there", KERNEL, { "content", path }, EMPTY, .how = BY_OFF, .off = "procfs", .flag = MAY_LACK }
#define MASK_ROOT(path)                                                                                              \
	{ "P04", path " is empty or not there", KERNEL, { "content", path }, EMPTY, .how = BARE, .flag = ROOT_ONLY | MAY_LACK }
/* In the smallest /proc there is nothing but processes. */
#define SMALL(path)                                                                                                  \
	{ "P04", "in the smallest /proc there is no " path, KERNEL ", host facts", { "content", path }, EMPTY,       \
	  .how = BARE, .flags = { "--profile", "@O/pid.yaml" }, .flag = MAY_LACK }
#define NO_SYS(path)                                                                                                 \
	{ "P08", path " is not there", SYSFS, { "exists", path }, "ENOENT", .how = BARE, .flag = MAY_LACK }
#define PEEK(what)                                                                                                   \
	{ "P02", "process 1 does not show its " what, INIT, { "peek", "1", what }, EMPTY, .how = BY_NS }

static const struct row rows[] = {
	{ "P01", "no other process is seen", PEER, { "pids" }, "FEW", .how = BARE },
	{ "P01", "in the smallest /proc no other process is seen", PEER, { "pids" }, "FEW", .how = BARE,
	  .flags = { "--profile", "@O/pid.yaml" } },
	{ "P01", "a process of the host is not reached by number", PEER, { "kill0", "@I" }, "ESRCH EPERM", .how = BARE },
	{ "P01", "without Landlock a process of the host is not reached", PEER ", second wall", { "kill0", "@I" }, "ESRCH EPERM",
	  .how = BARE, .with = "landlock,seccomp" },

	PEEK("environ"), PEEK("mem"), PEEK("root"), PEEK("cwd"), PEEK("fd"), PEEK("exe"), PEEK("maps"), PEEK("ns/net"),
	PEEK("auxv"), PEEK("fdinfo"),

	SET("/proc/sys/kernel/core_pattern"), SET("/proc/sys/kernel/modprobe"), SET("/proc/sys/vm/overcommit_memory"),
	SET("/proc/sys/kernel/panic"), SET("/proc/sysrq-trigger"), SET("/proc/sys/fs/binfmt_misc/register"),
	SET("/proc/irq/default_smp_affinity"), SET("/proc/sys/kernel/hotplug"), SET("/proc/sys/kernel/randomize_va_space"),
	SET("/proc/sys/user/max_user_namespaces"), SET("/proc/sys/fs/protected_symlinks"),
	{ "P03", "network settings are not writable", SETTING, { "write", "/proc/sys/net/ipv4/ip_forward" }, GONE, .how = BY_NS },
	{ "P03", "without filter and Landlock core_pattern is not writable", SETTING ", second wall",
	  { "write", "/proc/sys/kernel/core_pattern" }, GONE, .how = BARE, .with = "seccomp,landlock", .flag = ROOT_ONLY },
	{ "P03", "without masks core_pattern is not writable", SETTING ", the id itself", { "write", "/proc/sys/kernel/core_pattern" },
	  GONE, .how = BARE, .with = "seccomp,landlock,procfs", .flag = ROOT_ONLY },

	MASK_ROOT("/proc/kcore"), MASK("/proc/kallsyms"), MASK("/proc/keys"), MASK("/proc/key-users"), MASK_ROOT("/proc/timer_list"),
	MASK("/proc/sched_debug"), MASK("/proc/config.gz"), MASK("/proc/iomem"), MASK_ROOT("/proc/vmallocinfo"),
	MASK("/proc/interrupts"), MASK("/proc/cmdline"), MASK_ROOT("/proc/slabinfo"), MASK_ROOT("/proc/kpagecount"),
	MASK_ROOT("/proc/pagetypeinfo"),
	SMALL("/proc/diskstats"), SMALL("/proc/partitions"), SMALL("/proc/modules"), SMALL("/proc/zoneinfo"), SMALL("/proc/uptime"),
	SMALL("/proc/sys/kernel/random/boot_id"), SMALL("/proc/version"), SMALL("/proc/meminfo"), SMALL("/proc/net/dev"),
	{ "P04", "the kernel's log is not open", KERNEL, { "dev", "/proc/kmsg" }, EMPTY, .how = BARE, .flag = ROOT_ONLY },

	{ "P05", "the memory of process 1 is not open", INIT, { "mem", "1" }, EMPTY, .how = BY_NS, .control = { "mem", "self" } },
	{ "P06", "ids are not mapped anew", "user namespace, CVE-2013-1959", { "put", "/proc/self/uid_map", "0 0 1" },
	  "EPERM EACCES EROFS", .how = BARE, .control = { "own-map" } },
	{ "P06", "groups are not mapped anew", "user namespace, CVE-2013-1959", { "put", "/proc/self/gid_map", "0 0 1" },
	  "EPERM EACCES EROFS", .how = BARE, .control = { "own-map" } },
	{ "P06", "setgroups is not allowed again", "CVE-2014-8989", { "put", "/proc/self/setgroups", "allow" },
	  "EPERM EACCES EROFS EINVAL", .how = BARE, .control = { "own-map" } },
	{ "P07", "no fresh /proc is mounted", "CVE-2023-27561", { "mount", "proc" }, "EPERM", .how = BY_NS },
	{ "P07", "without the filter no fresh /proc is mounted", "CVE-2023-27561, second wall", { "mount", "proc" }, "EPERM EACCES",
	  .how = BY_NS, .with = "seccomp" },
	{ "P07", "no tmpfs is mounted", "mounts", { "mount", "tmpfs" }, "EPERM", .how = BY_NS },
	{ "P07", "without the filter no tmpfs is mounted", "mounts, second wall", { "mount", "tmpfs" }, "EPERM EACCES", .how = BY_NS,
	  .with = "seccomp,landlock" },

	NO_SYS("/sys/firmware"), NO_SYS("/sys/kernel"), NO_SYS("/sys/fs/cgroup"), NO_SYS("/sys/fs/bpf"), NO_SYS("/sys/class/net"),
	NO_SYS("/sys/module"), NO_SYS("/sys/power"), NO_SYS("/sys/block"), NO_SYS("/sys/kernel/debug"), NO_SYS("/sys/kernel/security"),

	{ "P09", "no cgroup file system is mounted", CGROUP, { "mount", "cgroup2" }, "EPERM", .how = BY_NS },
	{ "P09", "the release agent is not there", CGROUP, { "exists", "/sys/fs/cgroup/memory/release_agent" }, "ENOENT", .how = BARE,
	  .flag = MAY_LACK },
	{ "P09", "the group's members are not writable", CGROUP, { "write", "/sys/fs/cgroup/cgroup.procs" }, "ENOENT", .how = BARE,
	  .flag = ROOT_ONLY | MAY_LACK },
	{ "P09", "the name of the host's group is not shown", CGROUP, { "holds", "/proc/self/cgroup", "caisson" }, "ENODATA", .how = BY_OFF,
	  .off = "cgroupns", .flag = MAY_LACK },
	{ "P10", "nobody gets out of the OOM killer's way", "exhaustion", { "oom", "1000" }, "EACCES EPERM", .how = BARE, .cap = 24 + 1 },

	{ "P11", "the host's memory is not shown", "host facts", { "holds", "/proc/meminfo", "@M" }, "ENODATA ENOENT", .how = BY_OFF,
	  .off = "procfs", .flags = { "--memory", "64M" } },
	{ "P11", "the clock's offsets are not writable", "time namespace", { "own-clock" }, "EACCES EPERM ENOENT EROFS",
	  .how = BY_NS, .control = { "own-clock", "new" } },

	{ "P12", "no other program file opens", INIT, { "exe" }, "ENOENT EACCES EPERM", .how = BARE },
	{ "P12", "without Landlock process 1's program file does not open", INIT ", second wall", { "exe", "1" },
	  "ENOENT EACCES EPERM", .how = BY_NS, .with = "landlock,seccomp", .control = { "exe", "self" } },
};

/* ---- P02: what the launcher was started with ------------------------------ */

static void environ_of(bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;

	setenv("CS_LEAK", "swordfish-7731", 1);
	if (sandbox)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "environ", "swordfish-7731") });
	else
		t_run(&r, WORDLIST(p->probe, "environ", "swordfish-7731"));
	if (sandbox)
		must_refuse(&r, "ENOENT EACCES", "secret of the launcher's environment");
	else
		must_work(&r, "secret of the launcher's environment");
}

static void environ_inside(void) { environ_of(true); }
static void environ_outside(void) { environ_of(false); }

/* ---- P11: the clock ------------------------------------------------------- */

static void uptime(bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	char text[64];
	double host, inside = -1;

	run_in(p, &r, &(struct run){ .off = sandbox ? NULL : "procfs", .cmd = WORDLIST("@P", "read", "/proc/uptime") });
	get_file("/proc/uptime", text, sizeof text);
	host = atof(text);
	if (host < 60)
		T_ABSENT("this host has been up for %.0f s only", host);
	if (said(&r, "OK "))
		inside = atof(answer(&r) + strlen("OK /proc/uptime: "));
	if ((inside > host - 10) == sandbox)
		T_FAIL("%.2f s since boot on the host, %.2f inside", host, inside);
}

static void uptime_inside(void) { uptime(true); }
static void uptime_outside(void) { uptime(false); }

/* ---- P12: the launcher's own program file ---------------------------------- */

static uint64_t file_print(const char *path)
{
	static char buf[1 << 16];
	uint64_t h = 0xcbf29ce484222325ull;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		T_FAIL("open %s: %s", path, strerror(errno));
	while ((n = read(fd, buf, sizeof buf)) > 0)
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ (unsigned char)buf[i]) * 0x100000001b3ull;
	close(fd);
	return h ^ (uint64_t)st.st_mtim.tv_nsec ^ (uint64_t)st.st_ino;
}

static void write_elf(const char *path, const char *interp)
{
	struct { Elf64_Ehdr e; Elf64_Phdr p[2]; char interp[64]; } f = {
		.e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_EXEC,
		       .e_machine = EM_X86_64, .e_version = 1, .e_entry = 0x400000, .e_phoff = sizeof(Elf64_Ehdr),
		       .e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2 },
	};
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	snprintf(f.interp, sizeof f.interp, "%s", interp);
	f.p[0] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = offsetof(__typeof__(f), interp), .p_filesz = strlen(interp) + 1,
			       .p_memsz = strlen(interp) + 1 };
	f.p[1] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x400000, .p_filesz = sizeof f,
			       .p_memsz = sizeof f, .p_align = 4096 };
	if (fd < 0 || write(fd, &f, sizeof f) != sizeof f)
		T_FAIL("write %s: %s", path, strerror(errno));
	close(fd);
}

/* The launcher is told to run a file whose interpreter is the launcher. */
static void own_exe(bool sandbox, bool elf)
{
	struct place *p = place_make();
	static struct t_result r;
	const char *bin = getenv(sandbox ? "CS_CAISSON" : "CS_CAISSON_TEST");
	uint64_t before = file_print(bin);

	if (elf)
		write_elf(place_text(p, "@W/victim"), "/proc/self/exe");
	else
		put_file(place_text(p, "@W/victim"), "#!/proc/self/exe --version\n", 0755);
	run_in(p, &r, &(struct run){ .off = sandbox ? NULL : "landlock", .cmd = WORDLIST("@W/victim") });
	if (file_print(bin) != before)
		T_FAIL("the launcher's program file is changed");
	/* Inside, the launcher's file cannot be executed: 126. Without Landlock it can, and says so. */
	if (sandbox && r.status != 126 && r.status != 127)
		T_FAIL("the launcher was executed inside: exit status %d, '%.200s' '%.200s'", r.status, r.out, r.err);
	if (!sandbox && (r.status == 126 || r.status == 127))
		T_FAIL("control: not executed: '%.200s'", r.err);
}

static void shebang_inside(void) { own_exe(true, false); }
static void shebang_outside(void) { own_exe(false, false); }
static void interp_inside(void) { own_exe(true, true); }
static void interp_outside(void) { own_exe(false, true); }

/* Hold the program file of a running process until it has ended, then write. */
static void hold_inside(void)
{
	struct place *p = place_make();
	static struct t_result r;
	uint64_t before = file_print(getenv("CS_CAISSON"));

	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "exe-hold", "1"), .opts.input = "\n" });
	must_refuse(&r, "ENOENT EACCES EPERM", "program file of process 1");
	if (file_print(getenv("CS_CAISSON")) != before)
		T_FAIL("the launcher's program file is changed");
}

static void hold_outside(void)
{
	struct place *p = place_make();
	struct live victim, thief;
	char pid[16], copy[300];
	static struct t_result r;

	snprintf(copy, sizeof copy, "%s/victim", p->work);
	t_run(&r, WORDLIST("cp", p->probe, copy));
	live_start_bare(&victim, WORDLIST(copy, "sleep", "20"));
	live_wait(&victim, "READY", 5000);
	snprintf(pid, sizeof pid, "%d", (int)victim.pid);
	live_start_bare(&thief, WORDLIST(p->probe, "exe-hold", pid));
	live_wait(&thief, "READY", 5000);
	live_kill(&victim);
	live_say(&thief, "\n");
	live_end(&thief, 5000);
	if (!strstr(thief.seen, "OK"))
		T_FAIL("control: %s", thief.seen);
}

static const struct scene scenes[] = {
	{ "P02", "nothing shows the launcher's environment", "secrets", environ_inside, environ_outside },
	{ "P11", "the host's time since boot is not shown", "host facts", uptime_inside, uptime_outside },
	{ "P12", "a script cannot make the launcher run itself", "CVE-2019-5736", shebang_inside, shebang_outside },
	{ "P12", "an interpreter cannot be the launcher itself", "CVE-2019-5736", interp_inside, interp_outside },
	{ "P12", "the launcher's file cannot be held and overwritten", "CVE-2019-5736", hold_inside, hold_outside },
};

TEST_TABLE(procfs)
{
	add_rows(rows, COUNT(rows));
	add_scenes(scenes, COUNT(scenes));
}
