/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox that waits for commands. */
#include "harness/box.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

static struct sandbox *grow(struct box *b, protection_set off)
{
	struct sandbox_spec spec = box_spec(b, NULL);
	struct cs_err err = { 0 };
	struct sandbox *s;

	spec.stem = true;
	spec.off = off;
	if (sandbox_start(&spec, &s, &err) < 0)
		T_FAIL("start: %s", err.msg);
	return s;
}

static struct sandbox_command sh_command(char **argv, const char *text)
{
	static char *const env[] = { (char *)"PATH=/usr/bin:/bin", (char *)"A=b", NULL };

	argv[0] = (char *)"sh";
	argv[1] = (char *)"-c";
	argv[2] = (char *)(uintptr_t)text;
	argv[3] = NULL;
	return (struct sandbox_command){ .argv = argv, .env = env, .cwd = "/ws", .path = "/usr/bin:/bin", .stdio = { 0, 1, 2 } };
}

static pid_t start(struct sandbox *s, const char *text)
{
	struct cs_err err = { 0 };
	char *argv[4];
	struct sandbox_command c = sh_command(argv, text);
	pid_t pid = 0;

	if (sandbox_exec(s, &c, &pid, &err) < 0)
		T_FAIL("exec: %s", err.msg);
	return pid;
}

static int wait_for(struct sandbox *s, pid_t pid)
{
	struct pollfd p[2] = { { .fd = sandbox_event_fd(s), .events = POLLIN }, { .fd = sandbox_pidfd(s), .events = POLLIN } };
	int status;
	pid_t got;

	for (long until = t_now_ms() + 10000; t_now_ms() < until;) {
		while (sandbox_take_ended(s, &got, &status))
			if (got == pid)
				return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		(void)sandbox_take_stop(s);
		(void)poll(p, 2, 1000);
		if (p[1].revents)
			return -1;
	}
	T_FAIL("command %d does not end", (int)pid);
}

static int run(struct sandbox *s, const char *text)
{
	return wait_for(s, start(s, text));
}

BOX_TEST(commands_follow_one_another)
{
	struct box b;
	struct sandbox *s;

	box_init(&b);
	box_put(&b, "ws/f", "x\n");
	s = grow(&b, 0);
	T_INT(run(s, "test $(cat f) = x && test $A = b && test $(id -u) = 1000"), 0);
	T_INT(run(s, "echo 1 >/tmp/kept; echo 2 >g"), 0);
	T_INT(run(s, "test $(cat /tmp/kept) = 1 && test $(cat g) = 2"), 0);
	T_INT(run(s, "exit 7"), 7);
	T_INT(run(s, "kill -9 $$"), 137);
	T_INT(run(s, "test $PPID -gt 1 && test ! -e /proc/$$/fd/3"), 0);
	T_INT((long)sandbox_processes(s), 0);
	sandbox_free(s);
}

BOX_TEST(what_cannot_be_executed_is_told)
{
	char *argv[] = { (char *)"nothing-of-that-name", NULL };
	struct sandbox_command c;
	struct cs_err err = { 0 };
	struct sandbox *s;
	char *none[4];
	struct box b;
	pid_t pid;
	int status;

	box_init(&b);
	box_put(&b, "ws/text", "x\n");
	s = grow(&b, 0);
	c = sh_command(none, "");
	c.argv = argv;
	T_INT(sandbox_exec(s, &c, &pid, &err), -CS_E_NOCMD);
	T_TRUE(strstr(err.msg, "nothing-of-that-name"));
	argv[0] = (char *)"./text";
	T_INT(sandbox_exec(s, &c, &pid, &err), -CS_E_NOEXEC);
	c = sh_command(none, "true");
	c.cwd = "/none";
	T_INT(sandbox_exec(s, &c, &pid, &err), -CS_E_INVALID);
	usleep(20000);
	T_TRUE(!sandbox_take_ended(s, &pid, &status));
	T_INT(run(s, "true"), 0);
	sandbox_free(s);
}

BOX_TEST(standard_streams_pass_through)
{
	struct cs_err err = { 0 };
	char *argv[4], text[64] = "";
	struct sandbox_command c = sh_command(argv, "read x; echo got $x; echo bad >&2; echo again >/dev/stdout");
	int in[2], out[2];
	struct sandbox *s;
	struct box b;
	pid_t pid;
	ssize_t n;
	size_t len = 0;

	box_init(&b);
	s = grow(&b, 0);
	T_INT(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	c.stdio[0] = in[0];
	c.stdio[1] = c.stdio[2] = out[1];
	T_INT(sandbox_exec(s, &c, &pid, &err), 0);
	close(out[1]);
	T_INT(write(in[1], "it\n", 3), 3);
	while ((n = read(out[0], text + len, sizeof text - 1 - len)) > 0) /* ends: nobody else holds it */
		len += (size_t)n;
	T_STR(text, "got it\nbad\nagain\n");
	T_INT(wait_for(s, pid), 0);
	sandbox_free(s);
}

BOX_TEST(long_command_lines_pass)
{
	static char big[120000], script[200];
	char *argv[6] = { (char *)"sh", (char *)"-c", script, (char *)"x", big, NULL };
	struct cs_err err = { 0 };
	char *none[4];
	struct sandbox_command c = sh_command(none, "");
	struct sandbox *s;
	struct box b;
	pid_t pid;

	box_init(&b);
	memset(big, 'a', sizeof big - 1);
	snprintf(script, sizeof script, "test ${#1} = %zu", sizeof big - 1);
	c.argv = argv;
	s = grow(&b, 0);
	T_INT(sandbox_exec(s, &c, &pid, &err), 0);
	T_INT(wait_for(s, pid), 0);
	sandbox_free(s);
}

BOX_TEST(a_terminal_becomes_the_controlling_one)
{
	struct cs_err err = { 0 };
	char *argv[4], text[256] = "";
	struct sandbox_command c = sh_command(argv, "test -t 0 && echo hello >/dev/tty && ps -o tty= -p $$ >/dev/null; sleep 20");
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	struct sandbox *s;
	struct box b;
	pid_t pid;

	box_init(&b);
	s = grow(&b, 0);
	T_TRUE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	c.stdio[0] = c.stdio[1] = c.stdio[2] = slave;
	c.tty = true;
	T_INT(sandbox_exec(s, &c, &pid, &err), 0);
	T_TRUE(read(master, text, sizeof text - 1) > 0);
	T_TRUE(!strncmp(text, "hello", 5));
	T_INT(write(master, "\3", 1), 1); /* Ctrl-C reaches its group */
	T_INT(wait_for(s, pid), 130);
	T_INT(run(s, "true"), 0);
	sandbox_free(s);
}

static void take_name(const char *comm, pid_t pid, void *arg)
{
	if (!strcmp(comm, "sleep") && pid > 1)
		++*(int *)arg;
}

BOX_TEST(what_runs_on_is_named_and_swept)
{
	struct box b;
	struct sandbox *s;
	int named = 0;
	pid_t server;

	box_init(&b);
	s = grow(&b, 0);
	T_INT(run(s, "sleep 100 & setsid sleep 100 & (sleep 100 &) ; true"), 0);
	server = start(s, "exec sleep 100");
	usleep(50000);
	T_INT((long)sandbox_processes(s), 4);
	T_INT(sandbox_sweep(s, take_name, &named), 4);
	T_INT(named, 4);
	T_INT((long)sandbox_processes(s), 0);
	T_INT(wait_for(s, server), 137);
	T_INT(run(s, "true"), 0);
	sandbox_free(s);
}

BOX_TEST(commands_are_signalled)
{
	struct box b;
	struct sandbox *s;
	pid_t pid;

	box_init(&b);
	s = grow(&b, 0);
	pid = start(s, "trap 'exit 9' TERM; while :; do sleep 0.01; done");
	usleep(50000);
	sandbox_signal_command(s, pid, SIGTERM);
	T_INT(wait_for(s, pid), 9);
	sandbox_signal_command(s, pid, SIGTERM); /* gone: nothing happens */
	pid = start(s, "sleep 100");
	usleep(50000);
	sandbox_signal_command(s, pid, SIGINT);
	T_INT(wait_for(s, pid), 130);
	sandbox_free(s);
}

/* ---- commands against the stem ---- */

static bool has_scopes(void)
{
	return syscall(444 /* landlock_create_ruleset */, NULL, 0, 1) >= 6;
}

BOX_TEST(a_command_cannot_harm_the_stem)
{
	struct box b;
	struct sandbox *s;

	box_init(&b);
	s = grow(&b, 0);
	if (!has_scopes())
		T_ABSENT("Landlock has no signal scope");
	T_INT(run(s, "! kill -9 $PPID && ! kill -STOP $PPID && ! kill -9 1 && ! ls /proc/$PPID/fd/ 2>/dev/null && ! cat /proc/$PPID/mem"), 0);
	/* One command can end another's, as in a shell. */
	T_INT(run(s, "sleep 100 & echo $! >/tmp/pid"), 0);
	T_INT(run(s, "kill $(cat /tmp/pid)"), 0);
	usleep(20000);
	T_INT((long)sandbox_processes(s), 0);
	/* The nursery may be killed and stopped, and grows again. */
	for (int i = 0; i < 50; i++) {
		T_INT(run(s, "kill -9 -1"), 0);
		T_INT(run(s, "exit 4"), 4);
		T_INT(run(s, "kill -STOP -1"), 0);
		T_INT(run(s, "exit 3"), 3);
	}
	sandbox_free(s);
}

BOX_TEST(without_landlock_a_command_can_kill_the_stem)
{
	struct box b;
	struct sandbox *s;

	box_init(&b);
	s = grow(&b, PROT_BIT(PROT_LANDLOCK));
	T_INT(run(s, "true"), 0);
	T_INT(wait_for(s, start(s, "kill -9 $PPID")), -1); /* and with it goes the sandbox */
	sandbox_free(s);
}

BOX_TEST(a_fork_bomb_is_swept)
{
	struct box b;
	struct sandbox *s;

	box_init(&b);
	b.limits.pids = 200;
	s = grow(&b, 0);
	(void)start(s, "exec python3 -c 'import os\nwhile 1:\n try: os.fork()\n except OSError: pass'");
	usleep(500000);
	T_TRUE(sandbox_processes(s) > 20);
	T_TRUE(sandbox_sweep(s, NULL, NULL) > 20);
	T_INT((long)sandbox_processes(s), 0);
	T_INT(run(s, "true"), 0);
	sandbox_free(s);
}

/* ---- layers ---- */

static void push(struct sandbox *s, int store, const int *lowers, size_t n)
{
	struct cs_err err = { 0 };

	if (sandbox_push_layer(s, BOX_BINDS - 1, store, lowers, n, &err) < 0)
		T_FAIL("push: %s", err.msg);
}

BOX_TEST(a_pushed_layer_takes_the_writes)
{
	struct cs_err err = { 0 };
	struct sandbox *s;
	struct box b;
	struct stat st;

	box_init(&b);
	box_put(&b, "ws/base", "base\n");
	box_put(&b, "ws/.env", "secret\n");
	b.hide[b.n_hide++] = "/ws/.env";
	box_ws(&b)->store = box_store(&b, "s1");
	s = grow(&b, 0);
	T_INT(run(s, "echo 1 >one; rm base; test ! -e .env"), 0);
	b.lowers[0] = box_upper(&b, "s1");
	push(s, box_store(&b, "s2"), b.lowers, 1);
	T_INT(run(s, "test $(cat one) = 1 && test ! -e base && test ! -e .env && echo 2 >two && echo x >>one"), 0);
	T_TRUE(box_has(&b, "s2/up/two") && !box_has(&b, "s1/up/two"));
	box_stat(&b, "s2/up/two", &st);
	T_INT(st.st_uid, b.uid);
	box_stat(&b, "s1/up/one", &st);
	T_INT(st.st_size, 2);
	/* Rolled back: the second is forgotten, the first lies below a third. */
	push(s, box_store(&b, "s3"), b.lowers, 1);
	T_INT(run(s, "test $(cat one) = 1 && test ! -e two && test ! -e .env && cd / && mkdir /ws/d"), 0);
	T_TRUE(box_has(&b, "s3/up/d"));
	/* Not while somebody is in there. */
	(void)start(s, "exec sleep 100");
	T_INT(sandbox_push_layer(s, BOX_BINDS - 1, box_store(&b, "s4"), b.lowers, 1, &err), -CS_E_CONFLICT);
	T_INT(sandbox_push_layer(s, 0, 1, NULL, 0, &err), -CS_E_INVALID);
	sandbox_free(s);
}

BOX_TEST(a_failed_push_leaves_the_old_layer)
{
	struct cs_err err = { 0 };
	struct sandbox *s;
	struct box b;

	box_init(&b);
	box_ws(&b)->store = box_store(&b, "s1");
	s = grow(&b, 0);
	T_INT(run(s, "echo 1 >one"), 0);
	T_TRUE(sandbox_push_layer(s, BOX_BINDS - 1, box_dir(&b, "empty"), NULL, 0, &err) < 0);
	T_INT(run(s, "test $(cat one) = 1"), 0);
	sandbox_free(s);
}

BOX_TEST(a_hundred_pushes_with_up_to_twenty_lowers)
{
	struct sandbox *s;
	char name[24], text[160];
	int uppers[101];
	struct box b;

	box_init(&b);
	b.limits.inodes = 200000;
	box_ws(&b)->store = box_store(&b, "s0");
	uppers[0] = box_upper(&b, "s0");
	s = grow(&b, 0);
	T_INT(run(s, "echo 0 >f0"), 0);
	for (int i = 1; i <= 100; i++) {
		int lowers[20], n = 0;

		for (int k = i - 1; k >= 0 && n < 20; k--)
			lowers[n++] = uppers[k];
		snprintf(name, sizeof name, "s%d", i);
		push(s, box_store(&b, name), lowers, (size_t)n);
		uppers[i] = box_upper(&b, name);
		snprintf(text, sizeof text, "test $(cat f%d) = %d && test -e f%d && echo %d >f%d", i - 1, i - 1, i < 20 ? 0 : i - 20, i, i);
		T_INT(run(s, text), 0);
	}
	T_TRUE(box_has(&b, "s100/up/f100"));
	if (has_scopes()) /* the rules were made anew on the way: they still are all there */
		T_INT(run(s, "! kill -9 $PPID"), 0);
	sandbox_free(s);
}

BOX_TEST(cleared_it_is_empty_and_takes_commands_and_layers)
{
	struct sandbox *s;
	struct box b;

	box_init(&b);
	box_ws(&b)->store = box_store(&b, "s1");
	s = grow(&b, 0);
	T_INT(run(s, "sleep 100 & (sleep 100 &) & echo 1 >one"), 0);
	T_INT(sandbox_clear(s), 0);
	T_INT(sandbox_clear(s), 0);
	T_INT((long)sandbox_processes(s), 0);
	T_INT(run(s, "test $(cat one) = 1"), 0); /* made ready by the command */
	T_INT(sandbox_clear(s), 0);
	sandbox_ready(s);
	sandbox_ready(s);
	T_INT(run(s, "exit 4"), 4);
	T_INT(sandbox_clear(s), 0);
	b.lowers[0] = box_upper(&b, "s1");
	push(s, box_store(&b, "s2"), b.lowers, 1);
	T_INT(run(s, "test $(cat one) = 1 && echo 2 >two"), 0);
	T_TRUE(box_has(&b, "s2/up/two"));
	T_INT(sandbox_sweep(s, NULL, NULL), 0);
	T_INT(run(s, "exit 5"), 5);
	sandbox_free(s);
}

BOX_TEST(older_layers_count_against_the_disk_limit)
{
	struct sandbox_usage u;
	struct sandbox *s;
	struct box b;

	box_init(&b);
	b.limits.disk = 64 << 20;
	box_ws(&b)->store = box_store(&b, "s1");
	s = grow(&b, 0);
	T_INT(run(s, "dd if=/dev/zero of=a bs=1M count=40 2>/dev/null"), 0);
	b.lowers[0] = box_upper(&b, "s1");
	push(s, box_store(&b, "s2"), b.lowers, 1);
	T_INT(run(s, "dd if=/dev/zero of=b bs=1M count=30 2>/dev/null"), 0);
	sandbox_usage(s, &u);
	T_TRUE(u.disk_now + 65536 > u.disk_limit);
	push(s, box_store(&b, "s3"), NULL, 0); /* all given up */
	sandbox_usage(s, &u);
	T_TRUE(u.disk_now < (1 << 20));
	sandbox_free(s);
}

/* ---- the end ---- */

/* Everything the sandbox consists of, by the cgroup-free way: a pipe that all of it would hold, were it left. */
static void forked_caller(struct box *b, int report, unsigned delay_us)
{
	struct sandbox *s;
	char *argv[4];
	struct sandbox_command c = sh_command(argv, "sleep 1000 & exec sleep 1000");
	struct cs_err err;
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	box_ws(b)->store = box_store(b, "s1");
	if (delay_us)
		alarm(0);
	(void)!write(report, "s", 1);
	s = grow(b, 0);
	c.stdio[1] = report;
	if (sandbox_exec(s, &c, &pid, &err) == 0)
		(void)!write(report, "r", 1);
	pause();
}

static int count_tree(pid_t pid)
{
	char path[64], text[4096], *at = text, *end;
	FILE *f;
	size_t n;
	int sum = 0;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	for (long v; v = strtol(at, &end, 10), end != at; at = end)
		sum += 1 + count_tree((pid_t)v);
	return sum;
}

BOX_TEST(killing_the_caller_ends_everything)
{
	struct box b;

	box_init(&b);
	/* Orphans come to us, so that what is left can be counted. */
	T_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	for (unsigned i = 0; i < 60; i++) {
		int fds[2], status, quiet;
		char c;
		pid_t pid;

		T_INT(pipe2(fds, O_CLOEXEC), 0);
		pid = fork();
		if (pid == 0) {
			close(fds[0]);
			forked_caller(&b, fds[1], i);
			_exit(1);
		}
		close(fds[1]);
		T_INT(read(fds[0], &c, 1), 1);
		if (i < 50)
			usleep(i * 200); /* somewhere in the start */
		else
			T_INT(read(fds[0], &c, 1), 1);
		kill(pid, SIGKILL);
		/* One that has just lost its parent is in no list for a moment: none must be seen several times. */
		quiet = 0;
		for (long until = t_now_ms() + 5000; t_now_ms() < until && quiet < 5; quiet = count_tree(getpid()) ? 0 : quiet + 1) {
			while (waitpid(-1, &status, WNOHANG) > 0)
				;
			usleep(500);
		}
		T_INT(quiet, 5);
		while (read(fds[0], &c, 1) > 0) /* ends: nobody holds it any more */
			;
		close(fds[0]);
	}
}

