/* SPDX-License-Identifier: Apache-2.0 */
/* resources.c - using everything up.  Every bomb is small enough not to hurt
 * the machine if the limit does not hold. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BOMB "exhaustion"
#define PRIORITY "priority over others"
#define RAISE(name, what)                                                                                            \
	{ "R18", "the limit on " what " is not raised", PRIORITY, { "raise-limit", name }, "EPERM", .how = BARE, .cap = 24 + 1 }

static const struct row rows[] = {
	{ "R01", "processes end at the limit", BOMB, { "forks", "60" }, "EAGAIN", .how = BY_FLAGS, .flags = { "--pids", "32" },
	  .instead = { "--pids", "128" } },
	{ "R01", "threads end at the limit", BOMB, { "threads", "60" }, "EAGAIN", .how = BY_FLAGS, .flags = { "--pids", "32" },
	  .instead = { "--pids", "128" } },
	{ "R01", "the process limit is what stops them", BOMB, { "forks", "60" }, "EAGAIN", .how = BY_OFF, .off = "limit-pids",
	  .flags = { "--pids", "32" } },
	{ "R05", "files end at the limit of the layer", BOMB, { "inodes", "@W", "9000" }, "ENOSPC EDQUOT", .how = BY_FLAGS,
	  .flags = { "--profile", "@O/small.yaml", "--commit", "never" }, .instead = { 0 } },
	{ "R05", "files end at the limit of /tmp", BOMB, { "inodes", "/tmp", "9000" }, "ENOSPC EDQUOT", .how = BY_FLAGS,
	  .flags = { "--profile", "@O/small.yaml" }, .instead = { 0 } },
	{ "R06", "a file of a terabyte of nothing is not made", BOMB, { "sparse", "@W/hole", "hole" }, "EFBIG ENOSPC", .how = BARE },
	{ "R09", "descriptors end at the limit", BOMB, { "fds-many", "100" }, "EMFILE", .how = BY_FLAGS, .flags = { "--files", "64" },
	  .instead = { "--files", "256" } },
	{ "R09", "epoll objects end with the descriptors", BOMB, { "objects", "epoll", "100" }, "EMFILE", .how = BY_FLAGS,
	  .flags = { "--files", "64" }, .instead = { "--files", "256" } },
	{ "R09", "inotify objects end with the descriptors", BOMB, { "objects", "inotify", "100" }, "EMFILE", .how = BY_FLAGS,
	  .flags = { "--files", "64" }, .instead = { "--files", "256" } },
	{ "R09", "the descriptor limit is not raised", BOMB, { "raise-limit", "nofile" }, "EPERM", .how = BARE, .cap = 24 + 1,
	  .flags = { "--files", "64" } },
	{ "R17", "the core limit is not raised", "core dumps", { "core-limit" }, "EPERM", .how = BY_OFF, .off = "nocore",
	  .flag = MAY_LACK },
	{ "R18", "no real-time priority", PRIORITY, { "priority", "fifo" }, "EPERM", .how = BARE, .flag = ROOT_ONLY },
	{ "R18", "no higher priority", PRIORITY, { "priority", "nice" }, "EPERM EACCES", .how = BARE, .flag = ROOT_ONLY },
	{ "R18", "no real-time I/O", PRIORITY, { "priority", "ionice" }, "EPERM", .how = BARE, .flag = ROOT_ONLY },
	{ "R18", "no 64 MiB of locked memory", PRIORITY, { "priority", "mlock" }, "EPERM ENOMEM EAGAIN", .how = BARE, .flag = ROOT_ONLY },
	RAISE("memlock", "locked memory"), RAISE("rtprio", "real-time priority"), RAISE("nproc", "processes"),
};

/* ---- a run that a limit ends -------------------------------------------------------- */

struct ending {
	const char *flags[8];
	const char *cmd[8];
	const char *reason;  /* of --json */
	int status;          /* 0: any but 0 */
	int within_ms;
};

/* The whole tree dead, the reason named, the host unharmed, in time. */
static void ends(const struct ending *e)
{
	struct place *p = place_make();
	static struct t_result r;
	const char *flags[16];
	int n = 0;

	for (; e->flags[n]; n++)
		flags[n] = e->flags[n];
	flags[n++] = "--json";
	flags[n++] = "@O/result.json";
	flags[n++] = "--rw";
	flags[n++] = "@S";
	flags[n] = NULL;
	run_in(p, &r, &(struct run){ .flags = flags, .cmd = e->cmd, .opts.timeout_ms = e->within_ms + 5000 });
	if (r.timed_out)
		T_FAIL("still running after %d ms", e->within_ms + 5000);
	if (e->status ? r.status != e->status : r.status == 0)
		T_FAIL("exit status %d, want %d: '%.200s' '%.300s'", r.status, e->status, answer(&r), r.err);
	if (strcmp(json_reason(place_text(p, "@O/result.json")), e->reason))
		T_FAIL("reason '%s', want '%s' (exit status %d, '%.300s')", json_reason(place_text(p, "@O/result.json")), e->reason,
		       r.status, answer(&r));
	if (r.ms > e->within_ms)
		T_FAIL("it took %ld ms, at most %d", r.ms, e->within_ms);
	if (!lock_free_within(place_text(p, "@S/lock"), 500))
		T_FAIL("a process of the sandbox is still there");
	if (r.held)
		T_FAIL("something still holds the output open");
}

/* The control: the same with room, or without a limit, goes on. */
static void goes_on(const char *off, const char *const flags[], const char *const cmd[], const char *what)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .off = off, .flags = flags, .cmd = cmd });
	must_work(&r, what);
}

static void bomb_in(void)
{
	ends(&(struct ending){ .flags = { "--pids", "64", "--timeout", "1s" }, .cmd = { "@P", "bomb" }, .reason = "timeout", .status = 124,
			       .within_ms = 3000 });
}

static void bomb_out(void) { goes_on(NULL, WORDLIST("--pids", "128"), WORDLIST("@P", "forks", "100"), "many processes"); }

#define EAT(fn, kind)                                                                                                \
	static void fn##_in(void)                                                                                    \
	{                                                                                                            \
		ends(&(struct ending){ .flags = { "--memory", "48M", "--disk", "400M", "--timeout", "20s" },         \
				       .cmd = { "@P", "eat", kind, "220" }, .reason = "memory", .status = 137,       \
				       .within_ms = 10000 });                                                        \
	}                                                                                                            \
	static void fn##_out(void)                                                                                   \
	{                                                                                                            \
		goes_on(NULL, WORDLIST("--memory", "400M", "--disk", "400M"), WORDLIST("@P", "eat", kind, "220"), kind); \
	}
EAT(eat_anon, "anon")
EAT(eat_shared, "shared")
EAT(eat_memfd, "memfd")
EAT(eat_shm, "shm")

/* Counted by a control group.  Where there is none no sample sees a segment that nobody has attached,
 * so the namespace itself has a quarter of the limit for them: the program is refused, not ended. */
static void eat_sysv_in(void)
{
	struct place *p = place_make();
	static struct t_result r;

	if (is_on(p, "limit-memory")) {
		ends(&(struct ending){ .flags = { "--memory", "48M", "--timeout", "20s" }, .cmd = { "@P", "eat", "sysv", "220" },
				       .reason = "memory", .status = 137, .within_ms = 10000 });
		return;
	}
	run_in(p, &r, &(struct run){ .flags = WORDLIST("--memory", "48M", "--timeout", "20s"), .cmd = WORDLIST("@P", "eat", "sysv", "220") });
	if (r.status != 1 || !strstr(r.out, "ENOSPC"))
		T_FAIL("exit status %d, want 1 and ENOSPC: '%s' '%s'", r.status, r.out, r.err);
}

static void eat_sysv_out(void) { goes_on(NULL, WORDLIST("--memory", "1G"), WORDLIST("@P", "eat", "sysv", "220"), "sysv"); }

static void eat_off(void) { goes_on("limit-memory", WORDLIST("--memory", "48M", "--disk", "400M"), WORDLIST("@P", "eat", "anon", "220"), "memory"); }

/* Memory that no process maps and no descriptor tells the size of: only a control group sees it.
 * What is sampled is stated in SECURITY.md, and this is what it leaves out. */
static void buffers_in(void)
{
	if (!is_on(place_make(), "limit-memory"))
		T_ABSENT("without a memory control group socket buffers are bounded by --files and --pids alone (SECURITY.md)");
	ends(&(struct ending){ .flags = { "--memory", "48M", "--timeout", "20s" }, .cmd = { "@P", "eat-buffers", "220" },
			       .reason = "memory", .status = 137, .within_ms = 10000 });
}

static void buffers_out(void) { goes_on(NULL, WORDLIST("--memory", "500M"), WORDLIST("@P", "eat-buffers", "220"), "socket buffers"); }

/* Several processes, none of which is over the limit alone. */
static void eat_many_in(void)
{
	ends(&(struct ending){ .flags = { "--memory", "64M", "--timeout", "20s" },
			       .cmd = { "/bin/sh", "-c", "for i in 1 2 3 4 5 6; do \"$0\" eat anon 40 & done; wait; \"$0\" sleep 1", "@P" },
			       .reason = "memory", .status = 137, .within_ms = 10000 });
}

static void eat_many_out(void)
{
	goes_on(NULL, WORDLIST("--memory", "500M"),
		WORDLIST("/bin/sh", "-c", "for i in 1 2 3 4 5 6; do \"$0\" eat anon 40 & done; wait; \"$0\" sleep 0", "@P"), "memory");
}

static void disk_in(void)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .flags = WORDLIST("--disk", "16M"),
				     .cmd = WORDLIST("/bin/sh", "-c", "for d in . /tmp \"$HOME\" /dev/shm; do \"$0\" fill $d/x 6; done", "@P") });
	/* Together: 24 MiB in four places, each of them within the limit alone. */
	if (!strstr(r.out, "NO ENOSPC") && !strstr(r.out, "NO EFBIG") && r.status != 137)
		T_FAIL("24 MiB went into 16: '%.300s'", r.out);
}

static void disk_out(void)
{
	goes_on(NULL, WORDLIST("--disk", "64M"),
		WORDLIST("/bin/sh", "-c", "for d in . /tmp \"$HOME\" /dev/shm; do \"$0\" fill $d/x 6 || exit; done", "@P"), "disk");
}

/* ---- R07: depth ------------------------------------------------------------------------- */

static void deep_in(void)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "deep", "/tmp", "3000") });
	/* Made or refused, but the sandbox ends and nothing is left. */
	if (!said(&r, "OK") && !said(&r, "NO "))
		T_FAIL("status %d: %s", r.status, r.err);
	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "deep", "@W", "3000") });
	if (!said(&r, "OK") && !said(&r, "NO "))
		T_FAIL("status %d: %s", r.status, r.err);
	T_TRUE(!exists(place_text(p, "@W/d")));
}

static void deep_out(void)
{
	struct place *p = place_make();
	static struct t_result r;

	t_run(&r, WORDLIST(p->probe, "deep", p->work, "60"));
	must_work(&r, "depth");
	T_TRUE(exists(place_text(p, "@W/d")));
}

/* ---- R09: objects that outlive ------------------------------------------------------------ */

static const char *ipc_key(key_t *key)
{
	static char text[16];

	*key = 0x0ca15500 + (key_t)(getpid() & 0xff);
	snprintf(text, sizeof text, "%d", (int)*key);
	return text;
}

/* Is it there?  It may be somebody else's. */
static bool segment_seen(key_t key)
{
	return shmget(key, 0, 0) >= 0 || errno == EACCES;
}

static void sysv_in(void)
{
	struct place *p = place_make();
	static struct t_result r;
	key_t key;
	const char *text = ipc_key(&key);

	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "ipc", "shm", "make", text) });
	must_work(&r, "make a segment");
	if (segment_seen(key))
		T_FAIL("the segment is on the host");
}

/* Made in the host's own namespace; its maker takes it away again, for nobody else may. */
static void sysv_out(void)
{
	struct place *p = place_make();
	struct live l;
	key_t key;
	const char *text = ipc_key(&key);
	bool seen;

	live_start(p, &l, &(struct run){ .off = "ipcns", .cmd = WORDLIST("@P", "ipc", "shm", "make", text, "wait", "remove") });
	live_wait(&l, "READY", 5000);
	seen = segment_seen(key);
	live_say(&l, "\n");
	live_end(&l, 3000);
	T_TRUE(seen);
	T_TRUE(!segment_seen(key));
}

/* ---- R10: output ----------------------------------------------------------------------------- */

static void flood(const char *fd)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .flags = WORDLIST("--max-output", "1M", "--json", "@O/result.json"), .cmd = WORDLIST("@P", "flood", "200", fd) });
	if (r.timed_out)
		T_FAIL("wedged");
	if (r.out_total + r.err_total > 4 << 20)
		T_FAIL("%zu bytes came through a limit of 1 MiB", r.out_total + r.err_total);
	if (r.out_total + r.err_total < 500000)
		T_FAIL("only %zu bytes: the output until then should be kept", r.out_total + r.err_total);
	T_INT(r.status, 137);
	T_STR(json_reason(place_text(p, "@O/result.json")), "output");
}

static void flood_in(void) { flood("1"); }
static void flood_err_in(void) { flood("2"); }

static void flood_out(void)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "flood", "8") });
	T_INT(r.status, 0);
	T_TRUE(r.out_total >= 8 << 20);
}

static void flood_err_out(void)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "flood", "8", "2") });
	T_INT(r.status, 0);
	T_TRUE(r.err_total >= 8 << 20);
}

/* ---- R11, R12: time ----------------------------------------------------------------------------- */

static void spin_in(void)
{
	ends(&(struct ending){ .flags = { "--timeout", "500ms" }, .cmd = { "@P", "spin", "0", "64" }, .reason = "timeout", .status = 124,
			       .within_ms = 2500 });
}

static void cpu_in(void)
{
	ends(&(struct ending){ .flags = { "--cpu-time", "500ms", "--timeout", "20s" }, .cmd = { "@P", "spin", "0", "1" },
			       .reason = "cpu_time", .status = 137, .within_ms = 4000 });
}

/* Many short lives: no process is over its own limit. */
static void cpu_many_in(void)
{
	ends(&(struct ending){ .flags = { "--cpu-time", "1s", "--timeout", "20s" },
			       .cmd = { "/bin/sh", "-c", "while :; do i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; /bin/true; done" },
			       .reason = "cpu_time", .status = 137, .within_ms = 8000 });
}

static void spin_out(void) { goes_on(NULL, WORDLIST("--timeout", "20s"), WORDLIST("@P", "spin", "1"), "a second of CPU"); }
static void cpu_out(void) { goes_on(NULL, WORDLIST("--cpu-time", "20s"), WORDLIST("@P", "spin", "1"), "a second of CPU"); }

static void sleep_in(void)
{
	ends(&(struct ending){ .flags = { "--timeout", "300ms" }, .cmd = { "@P", "sleep", "30", "@S/lock" }, .reason = "timeout",
			       .status = 124, .within_ms = 1500 });
}

static void deaf_in(void)
{
	ends(&(struct ending){ .flags = { "--timeout", "300ms" }, .cmd = { "@P", "ignore", "30", "@S/lock" }, .reason = "timeout",
			       .status = 124, .within_ms = 3500 });
}

static void stopped_in(void)
{
	ends(&(struct ending){ .flags = { "--timeout", "300ms" }, .cmd = { "@P", "stop", "@S/lock" }, .reason = "timeout",
			       .status = 124, .within_ms = 3500 });
}

static void brood_in(void)
{
	ends(&(struct ending){ .flags = { "--timeout", "400ms" }, .cmd = { "@P", "brood", "@S/lock" }, .reason = "timeout",
			       .status = 124, .within_ms = 3500 });
}

static void execs_in(void)
{
	ends(&(struct ending){ .flags = { "--timeout", "400ms" }, .cmd = { "@P", "exec-loop" }, .reason = "timeout", .status = 124,
			       .within_ms = 2500 });
}

static void no_timeout(const char *const cmd[])
{
	struct place *p = place_make();
	struct live l;

	live_start(p, &l, &(struct run){ .flags = WORDLIST("--rw", "@S"), .cmd = cmd });
	if (live_end(&l, 900) >= 0)
		T_FAIL("control: it ended by itself: '%s'", l.seen);
	live_kill(&l);
}

static void sleep_out(void) { no_timeout(WORDLIST("@P", "sleep", "30", "@S/lock")); }
static void deaf_out(void) { no_timeout(WORDLIST("@P", "ignore", "30", "@S/lock")); }
static void stopped_out(void) { no_timeout(WORDLIST("@P", "stop", "@S/lock")); }
static void brood_out(void) { no_timeout(WORDLIST("@P", "brood", "@S/lock")); }
static void execs_out(void) { no_timeout(WORDLIST("@P", "exec-loop")); }

/* ---- R13: a daemon --------------------------------------------------------------------------------- */

static void daemon_in(void)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .flags = WORDLIST("--rw", "@S"), .cmd = WORDLIST("@P", "daemon", "@S/lock", "30") });
	must_work(&r, "the daemon started");
	if (r.ms > 3000)
		T_FAIL("the run did not return with its command: %ld ms", r.ms);
	if (!lock_free_within(place_text(p, "@S/lock"), 300))
		T_FAIL("the daemon outlived the run");
	if (r.held)
		T_FAIL("the output is still held open");
}

static void daemon_out(void)
{
	struct place *p = place_make();
	static struct t_result r;

	t_run(&r, WORDLIST(p->probe, "daemon", place_text(p, "@S/lock"), "30"));
	must_work(&r, "the daemon started");
	if (!lock_held(place_text(p, "@S/lock")))
		T_FAIL("control: the daemon is gone");
	T_TRUE(r.held);
}

/* ---- R14: zombies ------------------------------------------------------------------------------------ */

static void orphans_in(void)
{
	struct place *p = place_make();
	static struct t_result r;

	/* Far more than the limit, one after the other: process 1 has to reap them. */
	run_in(p, &r, &(struct run){ .flags = WORDLIST("--pids", "32"), .cmd = WORDLIST("@P", "orphans", "600") });
	must_work(&r, "orphans");
	run_in(p, &r, &(struct run){ .flags = WORDLIST("--pids", "32"), .cmd = WORDLIST("@P", "zombies", "200") });
	must_refuse(&r, "EAGAIN", "zombies count");
}

static void orphans_out(void)
{
	struct place *p = place_make();
	static struct t_result r;

	t_run(&r, WORDLIST(p->probe, "zombies", "200"));
	must_work(&r, "zombies");
}

/* ---- R16: whose signal was it ------------------------------------------------------------------------- */

static void spoof(const char *sig, int status, const char *reason)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .flags = WORDLIST("--json", "@O/result.json", "--timeout", "20s"), .cmd = WORDLIST("@P", "suicide", sig) });
	T_INT(r.status, status);
	T_STR(json_reason(place_text(p, "@O/result.json")), reason);
}

static void spoof_in(void)
{
	spoof("9", 137, "signalled");
	spoof("14", 142, "signalled");
	spoof("24", 152, "signalled"); /* SIGXCPU: not the CPU limit */
	spoof("25", 153, "signalled"); /* SIGXFSZ: not the disk limit */
}

static void spoof_out(void)
{
	ends(&(struct ending){ .flags = { "--timeout", "200ms" }, .cmd = { "@P", "sleep", "30" }, .reason = "timeout", .status = 124,
			       .within_ms = 2000 });
}

/* ---- R17: core dumps -------------------------------------------------------------------------------------- */

static bool core_in(const char *dir)
{
	static struct t_result r;

	t_run(&r, WORDLIST("sh", "-c", "ls \"$0\" | grep -c '^core'", dir));
	return atoi(r.out) > 0;
}

static void core(bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	struct rlimit l = { RLIM_INFINITY, RLIM_INFINITY };
	char text[256];

	get_file("/proc/sys/kernel/core_pattern", text, sizeof text);
	if (text[0] == '|' || text[0] == '/')
		T_ABSENT("core dumps of this host go elsewhere: %s", text);
	getrlimit(RLIMIT_CORE, &l);
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_CORE, &l);
	if (!sandbox && l.rlim_max == 0)
		T_ABSENT("this caller may make no core dumps at all");
	if (sandbox)
		run_in(p, &r, &(struct run){ .flags = WORDLIST("--rw", "@S"), .cmd = WORDLIST("@P", "core", "@S") });
	else
		run_in(p, &r, &(struct run){ .off = "nocore,landlock", .flags = WORDLIST("--rw", "@S"), .cmd = WORDLIST("@P", "core", "@S") });
	T_INT(r.status, 128 + SIGABRT);
	if (core_in(p->share) == sandbox)
		T_FAIL("there is %s core dump", sandbox ? "a" : "no");
}

static void core_inside(void) { core(true); }
static void core_outside(void) { core(false); }

/* ---- R19: nothing stays behind ------------------------------------------------------------------------------- */

static void many(void)
{
	struct place *p = place_make();
	static struct t_result r;
	int fds;

	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "id") }); /* what the first run makes once */
	leftovers_before();
	fds = t_count_fds();
	for (int i = 0; i < 60; i++) {
		run_in(p, &r, &(struct run){ .flags = WORDLIST("--memory", "64M", "--timeout", "10s"), .cmd = WORDLIST("@P", i % 3 ? "id" : "orphans", "3") });
		if (!said(&r, "OK"))
			T_FAIL("run %d: %s %s", i, answer(&r), r.err);
	}
	T_INT(t_count_fds(), fds);
	leftovers_none();
}

static void many_out(void) { leftovers_control(); }

static const struct scene scenes[] = {
	{ "R01", "a fork bomb is contained and ended", BOMB, bomb_in, bomb_out },
	{ "R02", "a memory bomb is ended", BOMB, eat_anon_in, eat_anon_out },
	{ "R02", "the memory limit is what ends it", BOMB, eat_anon_in, eat_off },
	{ "R02", "many processes share one memory limit", BOMB, eat_many_in, eat_many_out },
	{ "R03", "shared memory counts", BOMB, eat_shared_in, eat_shared_out },
	{ "R03", "memory of a memfd counts", BOMB, eat_memfd_in, eat_memfd_out },
	{ "R03", "memory of /dev/shm counts", BOMB, eat_shm_in, eat_shm_out },
	{ "R03", "memory of System V segments counts", BOMB, eat_sysv_in, eat_sysv_out },
	{ "R03", "memory in socket buffers counts", BOMB, buffers_in, buffers_out },
	{ "R04", "all private files share one disk limit", BOMB, disk_in, disk_out },
	{ "R07", "a deep directory neither hangs nor stays", BOMB, deep_in, deep_out },
	{ "R09", "a System V segment does not outlive the sandbox", "leftovers", sysv_in, sysv_out },
	{ "R10", "a flood on standard output is cut off", BOMB, flood_in, flood_out },
	{ "R10", "a flood on standard error is cut off", BOMB, flood_err_in, flood_err_out },
	{ "R11", "64 spinning threads end at the time limit", BOMB, spin_in, spin_out },
	{ "R11", "a spinning process ends at the CPU limit", BOMB, cpu_in, cpu_out },
	{ "R11", "many short processes share one CPU limit", BOMB, cpu_many_in, cpu_out },
	{ "R12", "sleeping past the time limit does not help", "time limit", sleep_in, sleep_out },
	{ "R12", "ignoring all signals does not help", "time limit", deaf_in, deaf_out },
	{ "R12", "being stopped does not help", "time limit", stopped_in, stopped_out },
	{ "R12", "a family of daemons does not help", "time limit", brood_in, brood_out },
	{ "R13", "a daemon does not outlive the command", "daemons", daemon_in, daemon_out },
	{ "R14", "orphans are reaped, zombies are counted", BOMB, orphans_in, orphans_out },
	{ "R15", "a process that keeps calling exec is ended", "pid reuse", execs_in, execs_out },
	{ "R16", "an end is not mistaken for a limit", "spoofing", spoof_in, spoof_out },
	{ "R17", "no core dump is written", "core dumps", core_inside, core_outside },
	{ "R19", "sixty sandboxes leave nothing behind", "leftovers", many, many_out },
};

TEST_TABLE(resources)
{
	add_rows(rows, COUNT(rows));
	add_scenes(scenes, COUNT(scenes));
}
