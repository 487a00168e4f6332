/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.c - against process 1 and the launcher: taking over, outliving; and
 * who is next door. */
#include "escape.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define INIT "process 1 is taken over, CVE-2016-9962"
#define ALONE "siblings"
#define SURVIVE "outliving the supervisor"

#define ON_INIT(word, ...)                                                                                           \
	{ "T10", word " of process 1 is refused", INIT, { word, "1" }, "EPERM ENOSYS EACCES", .how = BY_NS,          \
	  .control = { __VA_ARGS__ } },                                                                              \
	{ "T10", "without the filter " word " of process 1 is refused", INIT ", second wall", { word, "1" },         \
	  "EPERM EACCES ESRCH", .how = BY_NS, .with = "seccomp", .control = { __VA_ARGS__ } },                       \
	{ "T10", "without filter and Landlock " word " of process 1 is refused", INIT ", third wall", { word, "1" }, \
	  "EPERM EACCES ESRCH", .how = BY_NS, .with = "seccomp,landlock", .control = { __VA_ARGS__ } }

static const struct row rows[] = {
	ON_INIT("ptrace", "trace-child"), ON_INIT("vm-read", "vm-read", "1"), ON_INIT("vm-write", "vm-write", "1"),
	ON_INIT("getfd", "getfd", "1"), ON_INIT("kcmp", "kcmp", "1"),
	{ "T10", "files of process 1 are not ours", INIT, { "owner", "/proc/1/environ" }, "EPERM ENOENT EACCES", .how = BARE,
	  .control = { "owner", "/proc/self/environ" } },
	{ "T11", "SIGKILL does not end process 1", INIT, { "signal", "1", "9" }, "ALIVE EPERM ESRCH", .how = BARE,
	  .flag = TOUCHES, .control = { "suicide-watch", "9" } },
	{ "T11", "SIGTERM does not end process 1", INIT, { "signal", "1", "15" }, "ALIVE EPERM ESRCH", .how = BARE,
	  .control = { "suicide-watch", "15" } },
	{ "T11", "SIGSEGV does not end process 1", INIT, { "signal", "1", "11" }, "ALIVE EPERM ESRCH", .how = BARE,
	  .control = { "suicide-watch", "11" } },
	{ "T11", "without filter and Landlock SIGKILL does not end process 1", INIT ", second wall", { "signal", "1", "9" },
	  "ALIVE EPERM ESRCH", .how = BARE, .with = "seccomp,landlock", .control = { "suicide-watch", "9" } },
};

/* ---- the end ----------------------------------------------------------------------------- */

/* Our own children, also adopted ones. */
static int children(pid_t list[64])
{
	char path[64], text[1024], *p, *end;
	int n = 0;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	get_file(path, text, sizeof text);
	for (p = text; n < 64; p = end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		if (list)
			list[n] = (pid_t)pid;
		n++;
	}
	return n;
}

static bool children_gone(int ms)
{
	long end = t_now_ms() + ms;

	while (children(NULL)) {
		if (t_now_ms() > end)
			return false;
		usleep(2000);
	}
	return true;
}

static pid_t child_of(pid_t pid)
{
	char path[64], text[256];

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	get_file(path, text, sizeof text);
	return (pid_t)atoi(text);
}

static void kill_supervisor(int sig, const char *off)
{
	struct place *p = place_make();
	const char *lock = place_text(p, "@S/lock");
	struct live l;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	live_start(p, &l, &(struct run){ .off = off, .flags = WORDLIST("--rw", "@S"), .cmd = WORDLIST("@P", "brood", "@S/lock") });
	live_wait(&l, "READY", 5000);
	T_TRUE(lock_held(lock));
	kill(l.pid, sig);
	if (sig == SIGKILL)
		waitpid(l.pid, NULL, 0);
	else if (live_end(&l, 6000) < 0)
		T_FAIL("the supervisor does not end on signal %d", sig);
	if (off) {
		usleep(400000);
		T_TRUE(lock_held(lock));
		return;
	}
	if (!lock_free_within(lock, 1000))
		T_FAIL("processes of the sandbox survive");
	if (!children_gone(1000))
		T_FAIL("a process of the launcher survives");
}

static void kill_in(void) { kill_supervisor(SIGKILL, NULL); }
static void kill_off(void) { kill_supervisor(SIGKILL, "pdeath"); }
static void term_in(void) { kill_supervisor(SIGTERM, NULL); }
static void hup_in(void) { kill_supervisor(SIGHUP, NULL); }
static void int_in(void) { kill_supervisor(SIGINT, NULL); }

/* The same family under a shell: it stays. */
static void kill_out(void)
{
	struct place *p = place_make();
	const char *lock = place_text(p, "@S/lock");
	struct live l;
	char line[400];

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	snprintf(line, sizeof line, "%s brood %s & wait", p->probe, lock);
	live_start_bare(&l, WORDLIST("/bin/sh", "-c", line));
	live_wait(&l, "READY", 5000);
	kill(l.pid, SIGKILL);
	waitpid(l.pid, NULL, 0);
	usleep(300000);
	T_TRUE(lock_held(lock));
}

/* Process 1 of the sandbox, killed from outside. */
static void init_in(void)
{
	struct place *p = place_make();
	const char *lock = place_text(p, "@S/lock");
	struct live l;
	pid_t init;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	live_start(p, &l, &(struct run){ .flags = WORDLIST("--rw", "@S"), .cmd = WORDLIST("@P", "brood", "@S/lock") });
	live_wait(&l, "READY", 5000);
	init = child_of(l.pid);
	T_TRUE(init > 1);
	T_INT(kill(init, SIGKILL), 0);
	if (live_end(&l, 3000) <= 0)
		T_FAIL("the supervisor did not notice");
	if (!lock_free_within(lock, 1000) || !children_gone(1000))
		T_FAIL("processes of the sandbox survive");
}

enum { MOMENTS = 90, STEP_US = 50 };

static void show_children(void)
{
	pid_t left[64];

	for (int n = children(left), k = 0; k < n; k++) {
		char path[64], text[200];

		snprintf(path, sizeof path, "/proc/%d/status", (int)left[k]);
		get_file(path, text, sizeof text);
		t_note("%.190s", text);
	}
}

/* Killed at every moment of the start: true if nobody survived any of it. */
static bool kill_early(struct place *p)
{
	const char *lock = place_text(p, "@S/lock");
	bool all = true;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < MOMENTS; i++) {
		struct live l;

		live_start(p, &l, &(struct run){ .flags = WORDLIST("--rw", "@S"), .cmd = WORDLIST("@P", "brood", "@S/lock") });
		usleep((useconds_t)(i * STEP_US));
		kill(l.pid, SIGKILL);
		waitpid(l.pid, NULL, 0);
		close(l.in);
		close(l.out);
		if (children_gone(500) && (!lock_held(lock) || lock_free_within(lock, 1000)))
			continue;
		if (all) {
			t_note("killed after %d us:", i * STEP_US);
			show_children();
		}
		all = false;
		pid_t left[64];
		for (int n = children(left), k = 0; k < n; k++)
			kill(left[k], SIGKILL);
		(void)children_gone(1000);
	}
	return all;
}

static void groups_out(void)
{
	leftovers_control();
}

static void early_in(void)
{
	if (!kill_early(place_make()))
		T_FAIL("a process survives");
}

static void early_groups(void)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "id") });
	leftovers_before();
	(void)kill_early(p);
	/* What is empty may stay until the next command. */
	for (int i = 0; i < 5; i++)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "id") });
	must_work(&r, "a run after the killing");
	leftovers_none();
}

/* ---- next door ------------------------------------------------------------------------------ */

/* One makes something and waits, the other looks for it. */
static void pair(const char *off, const char *const make[], const char *const find[], bool refused, const char *what)
{
	struct place *p = place_make();
	static struct t_result r;
	struct live l;

	live_start(p, &l, &(struct run){ .off = off, .cmd = make });
	live_wait(&l, "READY", 5000);
	run_in(p, &r, &(struct run){ .off = off, .cmd = find });
	live_say(&l, "\n");
	live_end(&l, 3000);
	if (refused)
		must_refuse(&r, "ENOENT FEW", what);
	else
		must_work(&r, what);
}

static const char *key(void)
{
	static char text[16];

	snprintf(text, sizeof text, "%d", 0x0ca15600 + (int)(getpid() & 0xff));
	return text;
}

#define MADE(what) WORDLIST("@P", "ipc", what, "make", key(), "wait", "remove")
#define FOUND(what) WORDLIST("@P", "ipc", what, "find", key())
static void sib_shm_in(void) { pair(NULL, MADE("shm"), FOUND("shm"), true, "System V memory"); }
static void sib_shm_out(void) { pair("ipcns,idrange", MADE("shm"), FOUND("shm"), false, "System V memory"); }
/* Landlock refuses message queues altogether; the namespace has to do without it. */
static void sib_mq_in(void) { pair("landlock", MADE("mq"), FOUND("mq"), true, "message queue"); }
static void sib_mq_out(void) { pair("ipcns,idrange,landlock", MADE("mq"), FOUND("mq"), false, "message queue"); }
static void sib_posix_in(void) { pair(NULL, MADE("posix"), FOUND("posix"), true, "POSIX memory"); }

static void sib_posix_out(void)
{
	struct place *p = place_make();
	static struct t_result r;
	struct live l;

	live_start_bare(&l, WORDLIST(p->probe, "ipc", "posix", "make", key(), "wait", "remove"));
	live_wait(&l, "READY", 5000);
	t_run(&r, WORDLIST(p->probe, "ipc", "posix", "find", key()));
	live_say(&l, "\n");
	live_end(&l, 3000);
	must_work(&r, "POSIX memory");
}

static void sib_files(const char *path, bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	struct live l;
	char line[500];

	snprintf(line, sizeof line, "echo shared > %s; echo READY; read x; rm -f %s", place_text(p, path), place_text(p, path));
	if (sandbox)
		live_start(p, &l, &(struct run){ .cmd = WORDLIST("/bin/sh", "-c", line) });
	else
		live_start_bare(&l, WORDLIST("/bin/sh", "-c", line));
	live_wait(&l, "READY", 5000);
	if (sandbox)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "read", path) });
	else
		t_run(&r, WORDLIST(p->probe, "read", place_text(p, path)));
	live_say(&l, "\n");
	live_end(&l, 3000);
	if (sandbox)
		must_refuse(&r, "ENOENT", path);
	else
		must_work(&r, path);
}

static void sib_tmp_in(void) { sib_files("/tmp/@A", true); }
static void sib_tmp_out(void) { sib_files("/tmp/@A", false); }
static void sib_ws_in(void) { sib_files("@W/fresh", true); }
static void sib_ws_out(void) { sib_files("@W/fresh", false); }

static void sib_pids_in(void) { pair(NULL, WORDLIST("@P", "sleep", "2"), WORDLIST("@P", "pids"), true, "processes"); }

static void sib_pids_out(void)
{
	struct place *p = place_make();
	static struct t_result r;

	t_run(&r, WORDLIST(p->probe, "pids"));
	must_work(&r, "processes");
}

/* Two sandboxes share no host id, not even with their own process 1. */
static int uid_of(pid_t pid)
{
	char path[64], text[2048], *p;
	int uid;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	get_file(path, text, sizeof text);
	p = strstr(text, "Uid:");
	return p && sscanf(p, "Uid: %*d %d", &uid) == 1 ? uid : -1; /* the effective one */
}

static void sib_ids(bool sandbox)
{
	struct place *p = place_make();
	struct live a, b;
	int ids[4];

	if (mode() == MODE_USER)
		T_ABSENT("an ordinary user has one id only");
	if (mode() == MODE_USERNS && !is_on(p, "idrange"))
		T_ABSENT("no range of ids can be had in this user namespace, and that is said");
	for (int i = 0; i < 2; i++) {
		struct live *l = i ? &b : &a;

		if (sandbox)
			live_start(p, l, &(struct run){ .cmd = WORDLIST("@P", "sleep", "10") });
		else
			live_start_bare(l, WORDLIST("/bin/sh", "-c", "\"$0\" sleep 10; :", p->probe));
		live_wait(l, "READY", 5000);
		/* Process 1 takes its own id when the program has started. */
		for (int k = 0; k < 100; k++) {
			ids[i] = uid_of(child_of(l->pid));
			ids[2 + i] = sandbox ? uid_of(child_of(child_of(l->pid))) : ids[i];
			if (!sandbox || ids[i] != ids[2 + i])
				break;
			usleep(5000);
		}
	}
	live_kill(&a);
	live_kill(&b);
	t_note("process 1 runs as %d and %d, the program as %d and %d", ids[0], ids[1], ids[2], ids[3]);
	for (int i = 0; i < 4; i++) {
		if (ids[i] < 0)
			T_FAIL("an id could not be read");
		if (sandbox && ids[i] == 0)
			T_FAIL("a process of the sandbox runs as the caller's root");
		for (int k = 0; k < i; k++)
			if (sandbox && ids[i] == ids[k])
				T_FAIL("id %d is used twice", ids[i]);
	}
	if (!sandbox && ids[0] != ids[1])
		T_FAIL("control: %d and %d", ids[0], ids[1]);
}

static void sib_ids_in(void) { sib_ids(true); }
static void sib_ids_out(void) { sib_ids(false); }

static const struct scene scenes[] = {
	{ "R20", "kill -9 of the supervisor ends everything", SURVIVE, kill_in, kill_out },
	{ "R20", "dying with the parent is what ends it", SURVIVE, kill_in, kill_off },
	{ "R20", "SIGTERM to the supervisor ends everything", SURVIVE, term_in, kill_out },
	{ "R20", "SIGHUP to the supervisor ends everything", SURVIVE, hup_in, kill_out },
	{ "R20", "SIGINT to the supervisor ends everything", SURVIVE, int_in, kill_out },
	{ "R20", "killed at any moment of its start it leaves no process", SURVIVE, early_in, kill_out },
	{ "R20", "killed at any moment of its start it leaves no group or mount", SURVIVE, early_groups, groups_out },
	{ "T11", "when process 1 is killed everything ends", SURVIVE, init_in, kill_out },
	{ "T13", "sandboxes do not see each other's processes", ALONE, sib_pids_in, sib_pids_out },
	{ "T13", "sandboxes do not share /tmp", ALONE, sib_tmp_in, sib_tmp_out },
	{ "T13", "sandboxes do not share their layers", ALONE, sib_ws_in, sib_ws_out },
	{ "T13", "sandboxes do not share System V memory", ALONE, sib_shm_in, sib_shm_out },
	{ "T13", "sandboxes do not share message queues", ALONE, sib_mq_in, sib_mq_out },
	{ "T13", "sandboxes do not share POSIX memory", ALONE, sib_posix_in, sib_posix_out },
	{ "T13", "sandboxes share no host id", ALONE, sib_ids_in, sib_ids_out },
};

TEST_TABLE(supervisor)
{
	add_rows(rows, COUNT(rows));
	add_scenes(scenes, COUNT(scenes));
}
