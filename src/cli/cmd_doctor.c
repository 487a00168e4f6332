/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c - caisson doctor: what this host can protect, and how to get the rest.
 *
 * Two sources, both made now: attempts at every single thing a sandbox needs
 * (sys/probe.h), and one real sandbox around `true`.  The table of protections
 * comes from the real one alone; the attempts only explain it.
 */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/say.h"
#include "base/text.h"
#include "egress/egress.h"
#include "session/session.h"
#include "txn/txn.h"
#include "sys/probe.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { VERSION_MS = 120, RUNTIMES = 4 };

struct runtime {
	const char *name;
	char path[256], version[96];
	pid_t pid;
	int out;
};

struct row {
	const char *state; /* "on", "partly", "off" */
	char why[256];
	const char *fix;   /* NULL: nothing to do, or nothing can be done */
};

struct findings {
	struct sys_probe probes[SYS_PROBES_MAX];
	size_t n;
	struct runtime runtimes[RUNTIMES];
	struct profile profile;
	struct session_result *run;
	struct row rows[PROT_MAX];
	bool started;
	char mode[256];
};

/* ---- other runtimes ---- */

static bool find_in_path(const char *name, char *ret, size_t size)
{
	const char *dir = getenv("PATH");

	for (; dir && *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		struct stat st;

		if (snprintf(ret, size, "%.*s/%s", (int)strcspn(dir, ":"), dir, name) < (int)size && *ret == '/' && stat(ret, &st) == 0 &&
		    S_ISREG(st.st_mode) && access(ret, X_OK) == 0)
			return true;
	}
	return false;
}

static void ask_version(struct runtime *r)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return;
	r->pid = fork();
	if (r->pid == 0) {
		int null = open("/dev/null", O_RDWR);

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)dup2(null, 0);
		(void)dup2(p[1], 1);
		(void)dup2(null, 2);
		execl(r->path, r->name, "--version", (char *)NULL);
		_exit(127);
	}
	close(p[1]);
	r->out = p[0];
}

static void start_runtimes(struct findings *f)
{
	static const char *const names[RUNTIMES] = { "crun", "runc", "runsc", "kata-runtime" };

	for (size_t i = 0; i < RUNTIMES; i++) {
		struct runtime *r = &f->runtimes[i];

		*r = (struct runtime){ .name = names[i], .pid = -1, .out = -1 };
		if (find_in_path(names[i], r->path, sizeof r->path))
			ask_version(r);
		else
			r->path[0] = 0;
	}
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The first line; who does not answer in time is only named. */
static void finish_runtime(struct runtime *r, int64_t deadline)
{
	struct pollfd fd = { .fd = r->out, .events = POLLIN };
	int64_t left = deadline - now_ms();
	ssize_t n;

	if (r->pid < 0)
		return;
	if (poll(&fd, 1, left > 0 ? (int)left : 0) == 1 && (n = read(r->out, r->version, sizeof r->version - 1)) > 0)
		r->version[n] = 0;
	r->version[strcspn(r->version, "\r\n")] = 0;
	close(r->out);
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void add_runtimes(struct findings *f, int64_t deadline)
{
	for (size_t i = 0; i < RUNTIMES && f->n < SYS_PROBES_MAX; i++) {
		struct runtime *r = &f->runtimes[i];
		struct sys_probe *p = &f->probes[f->n++];
		char shown[128];

		finish_runtime(r, deadline);
		*p = (struct sys_probe){ .name = r->name, .ok = r->path[0], .extra = true };
		cs_escape_to(shown, sizeof shown, r->version[0] ? r->version : r->path);
		snprintf(p->detail, sizeof p->detail, "%s", r->path[0] ? shown : "not in PATH");
	}
}

/* ---- one real sandbox ---- */

static void run_true(struct findings *f, const char *dir)
{
	char *argv[] = { (char[]){ "/bin/true" }, NULL };
	struct session_opts o = { .profile = &f->profile, .workspace = dir, .cwd = dir, .argv = argv };
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		for (int i = 0; i < 3; i++)
			(void)dup2(null, i);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)session_run(&o, f->run);
		session_discard(f->run);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int try_sandbox(struct findings *f, struct cs_err *err)
{
	char dir[] = "/tmp/caisson-doctor-XXXXXX";

	f->run = mmap(NULL, sizeof *f->run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->run == MAP_FAILED)
		return cs_fail(err, CS_E_SYSTEM, errno, "get shared memory");
	f->run->reason = SESSION_NOT_STARTED;
	/* The default profile sets no CPU share; asked for here to see whether one can be had. */
	if (profile_load("default", &f->profile, err) < 0 || profile_set(&f->profile, "limits.cpus", "1", "doctor", err) < 0)
		return -1;
	if (!mkdtemp(dir))
		return cs_fail(err, CS_E_SYSTEM, errno, "make a directory in /tmp");
	run_true(f, dir);
	(void)rmdir(dir);
	f->started = f->run->reason == SESSION_EXITED && f->run->exit_code == 0;
	return 0;
}

static void add_id_range(struct findings *f)
{
	bool on = f->run->active & PROT_BIT(PROT_IDRANGE);
	struct sys_probe *p = &f->probes[f->n];

	if (f->n == SYS_PROBES_MAX)
		return;
	f->n++;
	*p = (struct sys_probe){ .name = "id range", .ok = on, .extra = geteuid() != 0 };
	snprintf(p->detail, sizeof p->detail, "%s",
		 on		? "the sandbox ran under ids of its own"
		 : geteuid()	? "only root can give a sandbox ids of its own"
		 : f->started	? f->run->why_off[PROT_IDRANGE]
				: "the sandbox did not start");
	if (!on && geteuid() == 0)
		snprintf(p->fix, sizeof p->fix, "make /run writable; in a container, map at least 65536 ids into it");
}

/* Where the changes of the directory we are in would be kept. */
static void try_transactions(struct sys_probe *p)
{
	struct cs_err err = { 0 };
	CS_FREE char *path = NULL;
	CS_FD int dir = -1;
	bool inside = false;

	if (txn_place(".", &path, &dir, &inside, &err) < 0) {
		snprintf(p->detail, sizeof p->detail, "%.180s", err.msg);
		return;
	}
	p->ok = !inside && sandbox_layer_probe(dir, &err) == 0;
	if (inside)
		(void)rmdir(path); /* made just now, unless something is kept there */
	if (p->ok) {
		snprintf(p->detail, sizeof p->detail, "changes made here are a layer on disk, in %.120s", path);
		return;
	}
	snprintf(p->detail, sizeof p->detail, "changes made here are kept in memory, and in %.80s at the end", path);
	snprintf(p->fix, sizeof p->fix, "%.200s", inside ? "work in a directory below this mount's root, or keep the state directory on the same mount" : err.msg);
}

static void add_transactions(struct findings *f)
{
	if (f->n == SYS_PROBES_MAX)
		return;
	f->probes[f->n] = (struct sys_probe){ .name = "transactions", .extra = true };
	try_transactions(&f->probes[f->n++]);
}

/* For sandboxes that have a network; without it they have none. */
static void add_boundary(struct findings *f)
{
	struct sys_probe *p = &f->probes[f->n];
	struct cs_err err = { 0 };

	if (f->n == SYS_PROBES_MAX)
		return;
	f->n++;
	*p = (struct sys_probe){ .name = "network boundary", .extra = true };
	p->ok = egress_probe(&err) == 0;
	snprintf(p->detail, sizeof p->detail, "%.180s", p->ok ? "names can be allowed one by one (--allow)" : err.msg);
	if (!p->ok)
		snprintf(p->fix, sizeof p->fix, "install caisson-edge with its libraries: libssl3, libnghttp2-14, libc-ares2, libyaml-0-2");
}

/* ---- protections ---- */

struct explain {
	enum protection prot;
	const char *probe; /* whose detail and fix explain why it is off */
};

static const struct explain explains[] = {
	{ PROT_USERNS, "user namespaces" },   { PROT_MOUNTNS, "mount namespace" }, { PROT_PIDNS, "pid namespace" },
	{ PROT_IPCNS, "ipc namespace" },      { PROT_UTSNS, "uts namespace" },	   { PROT_CGROUPNS, "cgroup namespace" },
	{ PROT_NETNS, "network namespace" },  { PROT_IDRANGE, "id range" },	   { PROT_ROOTFS, "new mount API" },
	{ PROT_PROCFS, "procfs" },	      { PROT_DEVFS, "new mount API" },	   { PROT_NESTING, "nesting sysctl" },
	{ PROT_FDS, "close_range" },	      { PROT_LANDLOCK, "landlock" },	   { PROT_SECCOMP, "seccomp filter" },
	{ PROT_LIMIT_MEMORY, "cgroup memory" }, { PROT_LIMIT_PIDS, "cgroup pids" }, { PROT_LIMIT_CPU, "cgroup cpu" },
	{ PROT_LIMIT_DISK, "tmpfs" },
};

static const struct sys_probe *probe_of(const struct findings *f, enum protection prot)
{
	for (size_t i = 0; i < sizeof explains / sizeof *explains; i++)
		if (explains[i].prot == prot)
			return sys_probe_find(f->probes, f->n, explains[i].probe);
	return NULL;
}

static void say_row(struct row *r, const char *state, const char *why, const char *fix)
{
	r->state = state;
	snprintf(r->why, sizeof r->why, "%s", why);
	r->fix = fix && *fix ? fix : NULL;
}

/* On, but by the second-best way. */
static void judge_active(const struct findings *f, enum protection p, struct row *r)
{
	const struct sys_probe *q = probe_of(f, p);

	say_row(r, "on", protection_what(p), NULL);
	if (p == PROT_LIMIT_PIDS && q && !q->ok)
		say_row(r, "on", "by RLIMIT_NPROC, which counts this sandbox alone; a control group would count exactly", NULL);
	else if (p == PROT_NESTING && q && !q->ok)
		say_row(r, "on", "by the system-call filter alone: /proc/sys cannot be written", NULL);
	else if (p == PROT_LIMIT_CPU)
		say_row(r, "on", "CPU share is bounded by a control group, when --cpus or a profile sets one", NULL);
	else if (p == PROT_LANDLOCK && sys_landlock_abi() < 6)
		say_row(r, "partly", "files only: this kernel's Landlock does not know signals and abstract sockets", "a kernel from 6.12 on");
	else if (p == PROT_PROCFS && q && strstr(q->detail, "subset"))
		say_row(r, "on", q->detail, NULL);
}

static void judge_inactive(const struct findings *f, enum protection p, struct row *r)
{
	const struct sys_probe *q = probe_of(f, p);
	const char *fix = q ? q->fix : NULL;
	char why[256];

	if (p == PROT_LIMIT_MEMORY && f->started) {
		say_row(r, "partly", "no control group: sampled every 5 to 1000 ms, overshoot up to ~100 MiB", fix);
	} else if (p == PROT_LIMIT_CPU && f->started) {
		say_row(r, "partly", "no control group: whole CPUs by affinity, 1.5 becomes 2", fix);
	} else if (p == PROT_IDRANGE && geteuid()) {
		say_row(r, "off", "you are not root: the program runs under your own id, in its own user namespace", "sudo caisson run ...");
	} else {
		const char *off = f->run->why_off[p][0] ? f->run->why_off[p] : f->started ? "not active" : "no sandbox could be started";
		bool more = q && !q->ok && strcmp(q->detail, off);

		snprintf(why, sizeof why, "%.120s%s%.120s", off, more ? ": " : "", more ? q->detail : "");
		say_row(r, "off", why, fix);
	}
}

static void judge(struct findings *f)
{
	for (int p = 0; p < PROT_MAX; p++) {
		/* What a sandbox reached before it failed protects nobody. */
		if (f->started && f->run->active & PROT_BIT(p))
			judge_active(f, (enum protection)p, &f->rows[p]);
		else
			judge_inactive(f, (enum protection)p, &f->rows[p]);
	}
}

/* The rung of the ladder this host stands on. */
static void name_mode(struct findings *f)
{
	protection_set on = f->run->active;
	bool memory = on & PROT_BIT(PROT_LIMIT_MEMORY);

	if (!f->started) {
		snprintf(f->mode, sizeof f->mode, "none: no sandbox can be started here");
		return;
	}
	snprintf(f->mode, sizeof f->mode, "%s %s%s%s%s",
		 on & PROT_BIT(PROT_IDRANGE) ? "root, own ids per sandbox,"
		 : geteuid()		     ? "rootless"
					     : "root of a container, without own ids,",
		 memory ? "with control groups (" : "without control groups", memory ? sys_cgroup_mode_name(sys_cgroup_mode()) : "",
		 memory ? ")" : ": memory is bounded by sampling (overshoot up to ~100 MiB)",
		 on & PROT_BIT(PROT_PROCFS) ? "" : ", without a /proc");
}

static bool is_complete(const struct findings *f)
{
	return f->started && !(f->profile.require & ~f->run->active);
}

/* ---- telling ---- */

static const char *paint(bool colour, const char *state)
{
	if (!colour)
		return "";
	return !strcmp(state, "on") || !strcmp(state, "yes") ? "\033[32m" : !strcmp(state, "partly") || !strcmp(state, "-") ? "\033[33m" : "\033[31m";
}

static void line(bool colour, const char *name, const char *state, const char *why, const char *fix)
{
	printf("  %-21s %s%-7s%s %s\n", name, paint(colour, state), state, colour ? "\033[0m" : "", why);
	if (fix && *fix)
		printf("  %-21s %-7s   to get it: %s\n", "", "", fix);
}

static void print_table(const struct findings *f)
{
	bool colour = say_colour(1);
	unsigned on = 0;

	printf("Tried just now, as %s\n", geteuid() ? "an ordinary user" : "root");
	for (size_t i = 0; i < f->n; i++) {
		const struct sys_probe *p = &f->probes[i];

		line(colour, p->name, p->ok ? "yes" : p->extra ? "-" : "no", p->detail, p->fix);
	}
	printf("\nProtections of a sandbox with the default profile, started just now\n");
	for (int p = 0; p < PROT_MAX; p++) {
		on += !strcmp(f->rows[p].state, "on");
		line(colour, protection_name((enum protection)p), f->rows[p].state, f->rows[p].why, f->rows[p].fix);
	}
	if (!f->started)
		printf("\nno sandbox can be started: %s\n", f->run->err.msg);
	else
		printf("\nmode: %s\n", f->mode);
	printf("%u of %d protections active%s\n", on, PROT_MAX,
	       on == PROT_MAX	? ": this host gives everything"
	       : is_complete(f) ? ": all that the default profile requires"
				: ": the default profile requires more and does not start");
}

static int print_json(const struct findings *f)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	struct cs_json j;

	cs_json_begin(&j, &out, true);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "kernel", f->n ? f->probes[0].detail : NULL);
	cs_json_str(&j, "mode", f->mode);
	cs_json_bool(&j, "starts", f->started);
	cs_json_bool(&j, "complete", is_complete(f));
	cs_json_str(&j, "error", f->started ? NULL : f->run->err.msg);
	cs_json_array(&j, "probes");
	for (size_t i = 0; i < f->n; i++) {
		cs_json_object(&j, NULL);
		cs_json_str(&j, "name", f->probes[i].name);
		cs_json_bool(&j, "ok", f->probes[i].ok);
		cs_json_str(&j, "detail", f->probes[i].detail);
		cs_json_str(&j, "fix", f->probes[i].fix[0] ? f->probes[i].fix : NULL);
		cs_json_end(&j, '}');
	}
	cs_json_end(&j, ']');
	cs_json_array(&j, "protections");
	for (int p = 0; p < PROT_MAX; p++) {
		cs_json_object(&j, NULL);
		cs_json_str(&j, "name", protection_name((enum protection)p));
		cs_json_str(&j, "state", f->rows[p].state);
		cs_json_str(&j, "why", f->rows[p].why);
		cs_json_str(&j, "fix", f->rows[p].fix);
		cs_json_end(&j, '}');
	}
	cs_json_end(&j, ']');
	cs_json_end(&j, '}');
	return cs_write_all(1, cs_buf_text(&out), out.len);
}

static int take_json(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	(void)value, (void)err;
	*(bool *)arg |= !strcmp(opt->name, "json");
	return 0;
}

int cmd_doctor(int argc, char **argv)
{
	static struct findings f;
	struct cs_err err = { 0 };
	bool json = false;
	int64_t deadline;
	int first = cli_parse(cli_find("doctor"), argc, argv, take_json, &json, &err);

	if (first >= 0 && first < argc)
		first = cs_fail(&err, CS_E_INVALID, 0, "`caisson doctor` takes no argument '%s'", argv[first]);
	if (first < 0)
		return cli_usage_error(&err);
	deadline = now_ms() + VERSION_MS;
	start_runtimes(&f);
	f.n = sys_probe_host(f.probes, SYS_PROBES_MAX);
	first = try_sandbox(&f, &err);
	if (first >= 0) {
		add_id_range(&f);
		add_transactions(&f);
		add_boundary(&f);
	}
	add_runtimes(&f, deadline);
	if (first < 0)
		return cli_usage_error(&err);
	judge(&f);
	name_mode(&f);
	if (!json)
		print_table(&f);
	else
		first = print_json(&f);
	if (first < 0 || fflush(stdout) != 0 || ferror(stdout)) {
		say_error("the answer could not be written");
		return 125;
	}
	profile_done(&f.profile);
	return is_complete(&f) ? 0 : 1;
}
