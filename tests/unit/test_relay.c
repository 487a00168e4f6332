/* SPDX-License-Identifier: Apache-2.0 */
/* test_relay.c - session/relay with a forked child in place of the sandbox. */
#include "base/compat.h"
#include "harness/t.h"
#include "session/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>

enum { MIB = 1 << 20 };

/* ---- the rig: our 0-2 replaced, a relay, a child that has what it gives ---- */

struct rig {
	struct relay_opts o;
	struct relay *r;
	int stdio[3];
	bool tty;
	pid_t pid;
	int pidfd, status;
	bool ended;
	int wakes; /* polls that came back with something */
};

/* Failures must reach the TAP stream although 1 is about to be something else: what the
 * harness prints goes there. */
static FILE *report;
#define printf(...) fprintf(report ? report : stdout, __VA_ARGS__)
#undef putchar
#define putchar(c)  fputc((c), report ? report : stdout)

static void keep_stdout(void)
{
	FILE *f = fdopen(fcntl(1, F_DUPFD_CLOEXEC, 100), "w");

	T_TRUE(f);
	setvbuf(f, NULL, _IOLBF, 0);
	report = f;
	signal(SIGPIPE, SIG_IGN);
}

static void set_stdio(int in, int out, int err)
{
	int fds[3] = { in, out, err };

	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0 && fds[i] != i)
			T_INT(dup2(fds[i], i), i);
}

static void rig_open(struct rig *g)
{
	struct cs_err err = { 0 };

	if (relay_open(&g->o, &g->r, g->stdio, &g->tty, &err) < 0)
		T_FAIL("relay_open: %s", err.msg);
}

static void rig_start(struct rig *g, void (*fn)(void))
{
	g->pid = fork();
	T_TRUE(g->pid >= 0);
	if (g->pid == 0) {
		int fds[3];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < 3; i++)
			fds[i] = fcntl(g->stdio[i], F_DUPFD, 200);
		for (int i = 0; i < 3; i++)
			dup2(fds[i], i);
		close_range(3, ~0U, 0);
		signal(SIGPIPE, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		setsid();
		if (g->tty)
			ioctl(0, TIOCSCTTY, 0);
		fn();
		_exit(0);
	}
	g->pidfd = (int)syscall(SYS_pidfd_open, g->pid, 0);
	relay_started(g->r);
}

/* One turn of what a session does; false when the child has ended. */
static bool rig_turn(struct rig *g, int timeout_ms)
{
	struct pollfd fds[16];
	size_t n = relay_poll(g->r, fds, 15);

	fds[n] = (struct pollfd){ .fd = g->pidfd, .events = POLLIN };
	if (poll(fds, n + 1, timeout_ms) > 0)
		g->wakes++;
	relay_handle(g->r, fds, n);
	if (!g->ended && fds[n].revents) {
		T_INT(waitpid(g->pid, &g->status, 0), g->pid);
		g->ended = true;
	}
	return !g->ended;
}

static void rig_end(struct rig *g)
{
	while (rig_turn(g, 5000))
		;
	relay_drain(g->r, 2000);
	relay_free(g->r);
	close(g->pidfd);
}

/* ---- things to read and write ---- */

static unsigned char *random_bytes(size_t n)
{
	unsigned char *b = malloc(n);
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	T_TRUE(b && fd >= 0);
	for (size_t i = 0; i < n;) {
		ssize_t k = read(fd, b + i, n - i);

		T_TRUE(k > 0);
		i += (size_t)k;
	}
	close(fd);
	return b;
}

static int open_at(const char *dir, const char *name, int flags)
{
	char path[300];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		T_FAIL("open %s: %s", path, strerror(errno));
	return fd;
}

static void put(int fd, const void *data, size_t n)
{
	for (size_t i = 0; i < n;) {
		ssize_t k = write(fd, (const char *)data + i, n - i);

		if (k < 0)
			_exit(errno == EPIPE ? 32 : 33);
		i += (size_t)k;
	}
}

static void check_file(int fd, const void *want, size_t n)
{
	char *got = malloc(n + 1);

	T_TRUE(got);
	T_INT(pread(fd, got, n + 1, 0), (long)n);
	T_INT(memcmp(got, want, n), 0);
	free(got);
}

static void child_cat(void)
{
	char buf[10000];
	ssize_t n;

	while ((n = read(0, buf, sizeof buf)) > 0)
		put(1, buf, (size_t)n);
	_exit(n == 0 ? 0 : 9);
}

static void child_nothing(void) {}

/* ---- pass-through ---- */

TEST(pipes_sockets_and_devices_pass_through_and_nothing_is_relayed)
{
	int p[2], s[2], before;
	struct rig g = { .o.reopen_safe = true };
	struct pollfd f[4];

	keep_stdout();
	T_INT(pipe2(p, O_CLOEXEC), 0);
	T_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	set_stdio(p[0], s[0], open("/dev/null", O_WRONLY | O_CLOEXEC));
	before = t_count_fds();
	rig_open(&g);
	for (int i = 0; i < 3; i++)
		T_INT(g.stdio[i], i);
	T_TRUE(!g.tty && !relay_active(g.r));
	T_INT(relay_poll(g.r, f, 4), 0);
	T_INT(t_count_fds(), before);
	relay_free(g.r);
	T_INT(t_count_fds(), before);
}

TEST(regular_files_pass_through_when_reopening_is_barred)
{
	const char *dir = t_tmpdir();
	struct rig g = { .o.reopen_safe = true };

	keep_stdout();
	set_stdio(open_at(dir, "in", O_CREAT | O_RDWR), open_at(dir, "out", O_CREAT | O_WRONLY | O_APPEND), -1);
	rig_open(&g);
	T_INT(g.stdio[0], 0);
	T_INT(g.stdio[1], 1);
	relay_free(g.r);
}

TEST(closed_descriptors_become_dev_null_and_are_closed_again)
{
	struct rig g = { .o.reopen_safe = true };
	struct stat st;
	int before;

	keep_stdout();
	close(0);
	close(1);
	close(2);
	before = t_count_fds();
	rig_open(&g);
	for (int i = 0; i < 3; i++) {
		T_INT(g.stdio[i], i);
		T_INT(fstat(i, &st), 0);
		T_TRUE(S_ISCHR(st.st_mode) && st.st_rdev == 0x103);
		T_INT(fcntl(i, F_GETFD), 0); /* not close-on-exec */
		T_INT(fcntl(i, F_GETFL) & O_ACCMODE, i == 0 ? O_RDONLY : O_WRONLY);
	}
	rig_start(&g, child_cat);
	rig_end(&g);
	T_INT(g.status, 0);
	T_INT(t_count_fds(), before);
}

/* ---- refusals ---- */

static void refused(int in, int out, const char *want)
{
	struct relay_opts o = { .reopen_safe = true };
	struct cs_err err = { 0 };
	struct relay *r = (struct relay *)&o;
	int stdio[3] = { -7, -7, -7 }, before;
	bool tty = true;

	set_stdio(in, out, -1);
	before = t_count_fds();
	T_INT(relay_open(&o, &r, stdio, &tty, &err), -CS_E_DENIED);
	T_STR(err.msg, want);
	T_INT(err.code, CS_E_DENIED);
	T_TRUE(r == (struct relay *)&o && stdio[0] == -7 && tty); /* untouched */
	T_INT(t_count_fds(), before);
}

TEST(a_directory_is_refused_with_the_way_out)
{
	keep_stdout();
	refused(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), -1,
		"standard input is a directory: the program could reach host files through it; "
		"redirect it from a file or from /dev/null");
}

TEST(a_path_handle_is_refused)
{
	keep_stdout();
	refused(-1, open("/dev/null", O_PATH | O_CLOEXEC),
		"standard output is a path handle (O_PATH), which cannot be read or written: "
		"redirect it to a file or to /dev/null");
}

TEST(a_kernel_object_is_refused)
{
	keep_stdout();
	refused(eventfd(0, EFD_CLOEXEC), -1,
		"standard input is a kernel object, not a file, pipe or terminal: redirect it from a file or from /dev/null");
}

TEST(a_namespace_handle_is_refused_although_it_looks_like_a_file)
{
	keep_stdout();
	refused(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), -1,
		"standard input is a handle to a process or namespace, not a file: redirect it to a file or /dev/null");
}

TEST(a_block_device_is_refused)
{
	const char *dir = t_tmpdir();
	char path[300];
	int fd;

	keep_stdout();
	snprintf(path, sizeof path, "%s/blk", dir);
	if (mknod(path, S_IFBLK | 0600, 7 << 8) < 0)
		T_ABSENT("cannot make a block device: %s", strerror(errno));
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		T_ABSENT("cannot open a block device: %s", strerror(errno));
	refused(fd, -1,
		"standard input is a block device: the program could reach a whole disk through it; copy what it needs "
		"through a pipe (cat or dd), or redirect it from a file or from /dev/null");
}

/* ---- files through pipes ---- */

TEST(files_are_pumped_byte_for_byte_when_they_could_be_reopened)
{
	const char *dir = t_tmpdir();
	unsigned char *data = random_bytes(MIB);
	int in = open_at(dir, "in", O_CREAT | O_RDWR), out = open_at(dir, "out", O_CREAT | O_RDWR), before;
	struct rig g = { 0 };

	keep_stdout();
	put(in, data, MIB);
	lseek(in, 0, SEEK_SET);
	set_stdio(in, out, -1);
	before = t_count_fds();
	rig_open(&g);
	T_TRUE(g.stdio[0] > 2 && g.stdio[1] > 2);
	rig_start(&g, child_cat);
	rig_end(&g);
	T_INT(g.status, 0);
	check_file(out, data, MIB);
	T_INT(lseek(in, 0, SEEK_CUR), MIB);
	T_INT(t_count_fds(), before);
	free(data);
}

TEST(a_memfd_is_never_passed)
{
	int fd = memfd_create("x", MFD_CLOEXEC);
	struct rig g = { .o.reopen_safe = true };

	keep_stdout();
	put(fd, "hello", 5);
	lseek(fd, 0, SEEK_SET);
	set_stdio(fd, -1, -1);
	rig_open(&g);
	T_TRUE(g.stdio[0] > 2);
	relay_free(g.r);
}

static void child_reads_ten(void)
{
	char b[10];

	_exit(read(0, b, 10) == 10 ? 0 : 9);
}

TEST(input_that_the_program_did_not_read_is_given_back)
{
	const char *dir = t_tmpdir();
	unsigned char *data = random_bytes(MIB);
	static const size_t sizes[] = { 100, MIB };

	keep_stdout();
	for (int i = 0; i < 2; i++) {
		int in = open_at(dir, "in", O_CREAT | O_TRUNC | O_RDWR);
		struct rig g = { 0 };

		put(in, data, sizes[i]);
		lseek(in, 3, SEEK_SET);
		set_stdio(in, -1, -1);
		rig_open(&g);
		rig_start(&g, child_reads_ten);
		while (rig_turn(&g, 1000))
			usleep(1000);
		rig_end(&g);
		T_INT(g.status, 0);
		T_INT(lseek(in, 0, SEEK_CUR), 13);
		close(in);
	}
	free(data);
}

static void child_says_both(void)
{
	for (int i = 0; i < 200; i++) {
		put(1, "out\n", 4);
		put(2, "err\n", 4);
	}
}

TEST(appending_keeps_what_is_there_and_both_streams_on_one_file_keep_their_order)
{
	const char *dir = t_tmpdir();
	int out = open_at(dir, "log", O_CREAT | O_WRONLY | O_APPEND), rd = open_at(dir, "log", O_RDONLY);
	struct rig g = { .o.max_output = MIB };
	char want[6 + 1600], *p = want;

	keep_stdout();
	put(out, "start\n", 6);
	set_stdio(-1, out, out);
	rig_open(&g);
	T_INT(g.stdio[1], g.stdio[2]);
	rig_start(&g, child_says_both);
	rig_end(&g);
	p = stpcpy(p, "start\n");
	for (int i = 0; i < 200; i++)
		memcpy(p + 8 * i, "out\nerr\n", 8);
	check_file(rd, want, sizeof want);
}

TEST(standard_output_and_error_stay_apart)
{
	const char *dir = t_tmpdir();
	int out = open_at(dir, "out", O_CREAT | O_RDWR), err = open_at(dir, "err", O_CREAT | O_RDWR);
	struct rig g = { .o = { .max_output = MIB, .reopen_safe = true } };
	char want_out[800], want_err[800];

	keep_stdout();
	set_stdio(-1, out, err);
	rig_open(&g);
	rig_start(&g, child_says_both);
	rig_end(&g);
	for (int i = 0; i < 200; i++) {
		memcpy(want_out + 4 * i, "out\n", 4);
		memcpy(want_err + 4 * i, "err\n", 4);
	}
	check_file(out, want_out, 800);
	check_file(err, want_err, 800);
}

/* ---- the limit ---- */

static void child_floods(void)
{
	static char b[5000];

	for (;;) {
		put(1, b, sizeof b);
		put(2, b, sizeof b);
	}
}

static size_t read_all(int fd)
{
	static char b[65536];
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, b, sizeof b)) > 0)
		total += (size_t)n;
	return total;
}

TEST(the_output_limit_is_exact_over_both_streams)
{
	int out[2], err[2], before;
	struct rig g = { .o.max_output = 100001 };
	size_t total = 0;

	keep_stdout();
	T_INT(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
	T_INT(pipe2(err, O_CLOEXEC | O_NONBLOCK), 0);
	set_stdio(-1, out[1], err[1]);
	before = t_count_fds();
	rig_open(&g);
	rig_start(&g, child_floods);
	for (long end = t_now_ms() + 10000; !relay_over(g.r) && t_now_ms() < end;) {
		T_TRUE(rig_turn(&g, 100));
		total += read_all(out[0]) + read_all(err[0]);
	}
	T_TRUE(relay_over(g.r));
	kill(g.pid, SIGKILL);
	while (rig_turn(&g, 100))
		total += read_all(out[0]) + read_all(err[0]);
	relay_drain(g.r, 2000);
	T_TRUE(!relay_active(g.r));
	T_INT(relay_bytes(g.r), 100001);
	relay_free(g.r);
	close(g.pidfd);
	total += read_all(out[0]) + read_all(err[0]);
	T_INT(total, 100001);
	T_INT(t_count_fds(), before);
}

static void child_thousand(void)
{
	char b[1000] = { 0 };

	put(1, b, sizeof b);
}

TEST(exactly_the_limit_is_not_over_it)
{
	struct rig g = { .o.max_output = 1000 };
	int out[2];

	keep_stdout();
	T_INT(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
	set_stdio(-1, out[1], -1);
	rig_open(&g);
	rig_start(&g, child_thousand);
	while (rig_turn(&g, 1000))
		;
	relay_drain(g.r, 1000);
	T_TRUE(!relay_over(g.r));
	T_INT(relay_bytes(g.r), 1000);
	relay_free(g.r);
	T_INT(read_all(out[0]), 1000);
}

/* ---- readers that are slow or gone ---- */

static void child_zeros(void)
{
	static char b[65536];

	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 1000; i++)
		put(1, b, sizeof b);
}

static void closed_reader(const int p[2])
{
	struct rig g = { .o.max_output = 1ULL << 40 };

	set_stdio(-1, p[1], -1);
	close(p[1]);
	rig_open(&g);
	rig_start(&g, child_zeros);
	for (int i = 0; i < 20; i++)
		rig_turn(&g, 10);
	close(p[0]);
	rig_end(&g);
	T_TRUE(WIFEXITED(g.status));
	T_INT(WEXITSTATUS(g.status), 32); /* EPIPE */
}

TEST(when_the_reader_goes_away_the_program_gets_epipe)
{
	int p[2];

	keep_stdout();
	T_INT(pipe2(p, O_CLOEXEC), 0);
	closed_reader(p);
	T_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	closed_reader(p);
}

static void child_both_random(void)
{
	static char b[MIB];
	pid_t pid;

	for (unsigned i = 0; i < sizeof b; i++)
		b[i] = (char)(i * 2654435761u >> 24);
	pid = fork();
	if (pid == 0) {
		put(2, b, 100000);
		_exit(0);
	}
	put(1, b, sizeof b);
	waitpid(pid, NULL, 0);
}

static void slow_reader(bool another_user)
{
	struct rig g = { .o.max_output = 1ULL << 30 };
	static char b[MIB], got[MIB + 1];
	size_t n_err = 0, n_out = 0;
	int out[2], err[2];

	keep_stdout();
	for (unsigned i = 0; i < sizeof b; i++)
		b[i] = (char)(i * 2654435761u >> 24);
	T_INT(pipe2(out, O_CLOEXEC), 0); /* blocking: the relay must not set O_NONBLOCK on it */
	T_INT(pipe2(err, O_CLOEXEC), 0);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	set_stdio(-1, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	if (another_user)
		T_INT(setresuid(65534, 65534, 0), 0);
	rig_open(&g);
	rig_start(&g, child_both_random);
	/* Nobody reads standard output, yet all of standard error arrives. */
	for (long end = t_now_ms() + 10000; n_err < 100000 && t_now_ms() < end;) {
		T_TRUE(rig_turn(&g, 10));
		n_err += read_all(err[0]);
	}
	T_INT(n_err, 100000);
	T_TRUE(!(fcntl(1, F_GETFL) & O_NONBLOCK));
	for (bool alive = true; alive || relay_active(g.r);) {
		ssize_t n = read(out[0], got + n_out, n_out + 3000 < sizeof got ? 3000 : sizeof got - n_out);

		if (n > 0)
			n_out += (size_t)n;
		if (alive)
			alive = rig_turn(&g, 1);
		else
			relay_drain(g.r, 1);
	}
	relay_free(g.r);
	for (ssize_t n; (n = read(out[0], got + n_out, sizeof got - n_out)) > 0;)
		n_out += (size_t)n;
	T_INT(g.status, 0);
	T_INT(n_out, MIB);
	T_INT(memcmp(got, b, MIB), 0);
}

TEST(a_slow_reader_loses_nothing_and_does_not_hold_up_the_other_stream)
{
	slow_reader(/* another_user= */ false);
}

TEST(the_same_when_the_pipe_belongs_to_another_user)
{
	/* /proc/self/fd cannot be used then, and all writes go through poll(2). */
	if (getuid() != 0)
		T_ABSENT("needs two users");
	slow_reader(/* another_user= */ true);
}

static void child_sleeps(void)
{
	for (;;)
		pause();
}

TEST(nothing_to_move_means_no_wakeups)
{
	const char *dir = t_tmpdir();
	int in = open_at(dir, "in", O_CREAT | O_RDWR), out[2];
	struct rig g = { .o.max_output = MIB };

	keep_stdout();
	T_INT(ftruncate(in, MIB), 0); /* more than fits: the pump stays full */
	T_INT(pipe2(out, O_CLOEXEC), 0);
	set_stdio(in, out[1], -1);
	rig_open(&g);
	rig_start(&g, child_sleeps);
	for (int i = 0; i < 5; i++)
		rig_turn(&g, 50);
	g.wakes = 0;
	for (int i = 0; i < 10; i++)
		T_TRUE(rig_turn(&g, 20));
	T_INT(g.wakes, 0);
	kill(g.pid, SIGKILL);
	rig_end(&g);
}

/* ---- terminals ---- */

/* A terminal with us as its session: `term` is what the person has. */
static int term;

static int new_terminal(void)
{
	struct winsize ws = { .ws_row = 37, .ws_col = 91 };
	int zero = 0, slave;

	term = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (term < 0)
		T_ABSENT("no pty here: %s", strerror(errno));
	T_INT(ioctl(term, TIOCSPTLCK, &zero), 0);
	slave = ioctl(term, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	T_TRUE(slave >= 0);
	T_INT(ioctl(term, TIOCSWINSZ, &ws), 0);
	return slave;
}

static void in_session(void (*fn)(int slave))
{
	pid_t pid;
	int status;

	keep_stdout();
	pid = fork();
	if (pid == 0) {
		int slave;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setsid();
		slave = new_terminal();
		T_INT(ioctl(slave, TIOCSCTTY, 0), 0);
		fn(slave);
		fflush(stdout);
		_exit(0);
	}
	T_INT(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		T_FAIL("killed by signal %d", WTERMSIG(status));
	if (status)
		_exit(WEXITSTATUS(status));
}

static tcflag_t lflag(void)
{
	struct termios t;

	T_INT(tcgetattr(term, &t), 0);
	return t.c_lflag;
}

static bool is_raw(void)
{
	return !(lflag() & (ICANON | ECHO | ISIG));
}

static char screen[MIB];
static size_t n_screen;

static void look(void)
{
	ssize_t n;

	while ((n = read(term, screen + n_screen, sizeof screen - n_screen - 1)) > 0)
		n_screen += (size_t)n;
	screen[n_screen] = '\0';
}

/* Turn until the text is on the screen. */
static void expect(struct rig *g, const char *text)
{
	for (long end = t_now_ms() + 5000; t_now_ms() < end;) {
		look();
		if (memmem(screen, n_screen, text, strlen(text)))
			return;
		if (!rig_turn(g, 10)) {
			relay_drain(g->r, 500);
			look();
			if (memmem(screen, n_screen, text, strlen(text)))
				return;
			T_FAIL("the program ended (0x%x) before \"%s\"; screen: \"%s\"", (unsigned)g->status, text, screen);
		}
	}
	T_FAIL("no \"%s\" on the screen: \"%s\"", text, screen);
}

static void type(const char *s)
{
	T_INT(write(term, s, strlen(s)), (long)strlen(s));
}

static void child_shell(void)
{
	struct winsize ws = { 0 };
	char b[200];
	ssize_t n;

	ioctl(0, TIOCGWINSZ, &ws);
	dprintf(1, "%d%d%d %dx%d fg%d\n", isatty(0), isatty(1), isatty(2), ws.ws_row, ws.ws_col, tcgetpgrp(0) == getpgrp());
	while ((n = read(0, b, sizeof b - 1)) > 0) {
		b[n - (b[n - 1] == '\n')] = '\0';
		if (!strcmp(b, "size")) {
			ioctl(0, TIOCGWINSZ, &ws);
			dprintf(1, "now %dx%d\n", ws.ws_row, ws.ws_col);
		} else if (!strcmp(b, "noecho") || !strcmp(b, "echo")) {
			struct termios t;

			tcgetattr(0, &t);
			t.c_lflag = b[0] == 'n' ? t.c_lflag & ~(tcflag_t)ECHO : t.c_lflag | ECHO;
			tcsetattr(0, TCSANOW, &t);
			dprintf(2, "done %s\n", b);
		} else {
			dprintf(1, "got <%s>\n", b);
		}
	}
	dprintf(1, "bye\n");
	_exit(n == 0 ? 5 : 6);
}

static void whole_terminal(int slave)
{
	struct rig g = { 0 };
	struct winsize ws = { .ws_row = 50, .ws_col = 132 };
	tcflag_t found = lflag();
	int before;

	set_stdio(slave, slave, slave);
	before = t_count_fds();
	rig_open(&g);
	T_TRUE(g.tty && g.stdio[0] > 2 && g.stdio[0] == g.stdio[1] && g.stdio[1] == g.stdio[2]);
	T_TRUE(!is_raw());
	rig_start(&g, child_shell);
	T_TRUE(is_raw());
	expect(&g, "111 37x91 fg1\r\n");
	type("hello\r");
	expect(&g, "hello\r\ngot <hello>\r\n"); /* the pty's echo, once, then the answer */
	signal(SIGWINCH, SIG_IGN);
	T_INT(ioctl(term, TIOCSWINSZ, &ws), 0);
	relay_resize(g.r);
	type("size\r");
	expect(&g, "now 50x132\r\n");

	relay_suspend(g.r);
	T_INT(lflag(), found);
	type("early\n");
	for (int i = 0; i < 5; i++)
		rig_turn(&g, 10);
	T_INT(lflag(), found); /* looking around does not take it back */
	relay_resume(g.r);
	T_TRUE(is_raw());
	expect(&g, "got <early>\r\n");

	type("\004");
	rig_end(&g);
	T_INT(WEXITSTATUS(g.status), 5);
	T_INT(lflag(), found);
	T_INT(t_count_fds(), before);
	look();
	T_TRUE(strstr(screen, "bye\r\n"));
}

TEST(a_terminal_is_replaced_by_a_pty_that_echoes_and_has_its_size)
{
	in_session(whole_terminal);
}

static void interrupt(int slave)
{
	struct rig g = { 0 };

	set_stdio(slave, slave, slave);
	rig_open(&g);
	rig_start(&g, child_shell);
	expect(&g, "fg1");
	type("\003");
	rig_end(&g);
	T_TRUE(WIFSIGNALED(g.status) && WTERMSIG(g.status) == SIGINT);
	T_TRUE(!is_raw());
}

TEST(control_c_reaches_the_program_and_not_us)
{
	in_session(interrupt);
}

static void killed(int slave)
{
	struct rig g = { 0 };
	tcflag_t found = lflag();

	set_stdio(slave, slave, slave);
	rig_open(&g);
	rig_start(&g, child_shell);
	expect(&g, "fg1");
	kill(g.pid, SIGKILL);
	rig_end(&g);
	T_INT(lflag(), found);
}

TEST(the_terminal_is_restored_after_the_program_is_killed)
{
	in_session(killed);
}

static void child_dumps(void)
{
	static char b[300000];

	memset(b, 'x', sizeof b);
	put(1, b, sizeof b);
}

static void big_screen(int slave)
{
	struct rig g = { 0 };

	set_stdio(slave, slave, slave);
	rig_open(&g);
	rig_start(&g, child_dumps);
	while (rig_turn(&g, 2))
		look();
	for (int i = 0; i < 2000 && relay_active(g.r); i++) {
		relay_drain(g.r, 1);
		look();
	}
	T_TRUE(!relay_active(g.r));
	T_INT(relay_bytes(g.r), 300000);
	relay_free(g.r);
	look();
	T_INT(n_screen, 300000);
}

TEST(all_of_a_long_screen_arrives)
{
	in_session(big_screen);
}

static void limited_screen(int slave)
{
	struct rig g = { .o.max_output = 1234 };

	set_stdio(slave, slave, slave);
	rig_open(&g);
	rig_start(&g, child_dumps);
	for (int i = 0; i < 500 && !relay_over(g.r); i++)
		rig_turn(&g, 10);
	T_TRUE(relay_over(g.r));
	kill(g.pid, SIGKILL);
	rig_end(&g);
	look();
	T_INT(n_screen, 1234);
}

TEST(the_limit_holds_on_a_terminal_too)
{
	in_session(limited_screen);
}

static void hang_up(int slave)
{
	struct rig g = { 0 };

	set_stdio(slave, slave, slave);
	close(slave);
	signal(SIGHUP, SIG_IGN);
	rig_open(&g);
	rig_start(&g, child_shell);
	expect(&g, "fg1");
	close(term);
	rig_end(&g);
	T_TRUE(WIFSIGNALED(g.status) && WTERMSIG(g.status) == SIGHUP);
}

TEST(hanging_up_the_terminal_hangs_up_on_the_program)
{
	in_session(hang_up);
}

static void background(int slave)
{
	struct rig g = { 0 };
	tcflag_t found = lflag();
	pid_t other;

	set_stdio(slave, slave, slave);
	/* Another group is in the foreground; we are as good as started with &. */
	other = fork();
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		for (;;)
			pause();
	}
	setpgid(other, other);
	signal(SIGTTOU, SIG_IGN);
	T_INT(tcsetpgrp(0, other), 0);
	signal(SIGTTOU, SIG_DFL);
	rig_open(&g);
	rig_start(&g, child_shell);
	expect(&g, "111 37x91");
	type("not for us\n");
	for (int i = 0; i < 10; i++)
		rig_turn(&g, 10);
	T_INT(lflag(), found);
	T_TRUE(!memmem(screen, n_screen, "got <", 5));
	signal(SIGTTOU, SIG_IGN);
	T_INT(tcsetpgrp(0, getpgrp()), 0);
	signal(SIGTTOU, SIG_DFL);
	relay_resume(g.r);
	T_TRUE(is_raw());
	expect(&g, "got <not for us>");
	type("\004");
	rig_end(&g);
	T_INT(WEXITSTATUS(g.status), 5);
	T_INT(lflag(), found);
}

TEST(in_the_background_the_terminal_is_left_alone_until_fg)
{
	in_session(background);
}

/* `caisson run -- x | pager`: the terminal is shared with what is behind us. */
static void shared_input(int slave)
{
	struct rig g = { 0 };
	tcflag_t found = lflag();
	struct termios t;
	char b[256] = "";
	int out[2];
	ssize_t n;

	T_INT(pipe2(out, O_CLOEXEC), 0);
	set_stdio(slave, out[1], slave);
	close(out[1]);
	rig_open(&g);
	T_TRUE(g.tty);
	T_INT(g.stdio[1], 1);
	T_INT(g.stdio[2], g.stdio[0]);
	rig_start(&g, child_shell);
	T_INT(lflag(), found);
	T_TRUE(read(out[0], b, sizeof b) > 0);
	T_STR(b, "101 37x91 fg1\n");
	type("hello\n");
	expect(&g, "hello\r\n"); /* echoed by the real terminal, and only once */
	for (int i = 0; i < 10; i++)
		rig_turn(&g, 10);
	look();
	T_STR(screen, "hello\r\n");
	n = read(out[0], b, sizeof b - 1);
	T_TRUE(n > 0);
	b[n] = '\0';
	T_STR(b, "got <hello>\n");

	type("noecho\n"); /* as for a password */
	expect(&g, "done noecho\r\n");
	rig_turn(&g, 10);
	T_TRUE(!(lflag() & ECHO));
	T_TRUE(lflag() & ICANON);
	type("echo\n");
	expect(&g, "done echo\r\n");
	rig_turn(&g, 10);
	T_INT(lflag(), found);

	T_INT(tcgetattr(slave, &t), 0); /* the pager takes over */
	t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	T_INT(tcsetattr(slave, TCSANOW, &t), 0);
	type("q");
	g.wakes = 0;
	for (int i = 0; i < 10; i++)
		rig_turn(&g, 10);
	T_TRUE(g.wakes <= 1);
	T_INT(read(slave, b, sizeof b), 1); /* its key is there for it */
	t.c_lflag |= ICANON | ECHO;
	T_INT(tcsetattr(slave, TCSANOW, &t), 0);

	type("last\n\004");
	rig_end(&g);
	T_INT(WEXITSTATUS(g.status), 5);
	n = read(out[0], b, sizeof b - 1);
	T_TRUE(n > 0);
	b[n] = '\0';
	T_STR(b, "got <last>\nbye\n");
	T_INT(lflag(), found);
}

TEST(a_terminal_shared_with_a_pipeline_stays_cooked_and_keeps_the_others_keys)
{
	in_session(shared_input);
}

static void faster_pager(int slave)
{
	struct rig g = { 0 };
	tcflag_t found = lflag();
	struct termios t;
	int out[2];
	char b[64];

	T_INT(pipe2(out, O_CLOEXEC), 0);
	T_INT(tcgetattr(slave, &t), 0);
	t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	T_INT(tcsetattr(slave, TCSANOW, &t), 0);
	set_stdio(slave, out[1], slave);
	rig_open(&g);
	rig_start(&g, child_shell);
	T_TRUE(read(out[0], b, sizeof b) > 0);
	type("q");
	for (int i = 0; i < 10; i++)
		rig_turn(&g, 10);
	T_INT(read(slave, b, sizeof b), 1);
	t.c_lflag |= ICANON | ECHO;
	T_INT(tcsetattr(slave, TCSANOW, &t), 0);
	type("noecho\n");
	expect(&g, "done noecho\r\n");
	rig_turn(&g, 10);
	T_INT(lflag(), found & ~(tcflag_t)ECHO);
	type("\004");
	rig_end(&g);
	T_INT(WEXITSTATUS(g.status), 5);
	T_INT(lflag(), found);
}

TEST(a_pager_that_has_the_terminal_before_we_start_keeps_it)
{
	in_session(faster_pager);
}

static void child_prints(void)
{
	dprintf(1, "%d%d%d a\nb\n", isatty(0), isatty(1), isatty(2));
}

static void output_only(int slave)
{
	struct rig g = { 0 };
	tcflag_t found = lflag();
	char b[8];

	set_stdio(open("/dev/null", O_RDONLY | O_CLOEXEC), slave, slave);
	rig_open(&g);
	T_TRUE(!g.tty);
	T_INT(g.stdio[0], 0);
	rig_start(&g, child_prints);
	T_INT(lflag(), found);
	type("keys\n");
	rig_end(&g);
	look();
	T_TRUE(strstr(screen, "011 a\r\nb\r\n")); /* one carriage return each */
	T_INT(read(slave, b, sizeof b), 5);   /* typed ahead for the shell */
}

TEST(with_only_output_on_the_terminal_the_keyboard_is_not_touched)
{
	in_session(output_only);
}

TEST(a_terminal_that_is_not_ours_to_control_still_works)
{
	struct rig g = { 0 };
	int slave;

	keep_stdout();
	setpgid(0, 0);
	slave = new_terminal();
	set_stdio(slave, slave, slave);
	rig_open(&g);
	rig_start(&g, child_shell);
	expect(&g, "111 37x91 fg1\r\n");
	type("x\n\004");
	expect(&g, "got <x>\r\n");
	rig_end(&g);
	T_INT(WEXITSTATUS(g.status), 5);
}

TEST(twenty_relays_in_a_row_leave_no_descriptor)
{
	int out[2], before;

	keep_stdout();
	T_INT(pipe2(out, O_CLOEXEC), 0);
	set_stdio(-1, out[1], out[1]);
	before = t_count_fds();
	for (int i = 0; i < 20; i++) {
		struct rig g = { .o.max_output = MIB };

		rig_open(&g);
		if (i % 2) {
			rig_start(&g, child_nothing);
			rig_end(&g);
		} else {
			relay_free(g.r); /* the start failed */
		}
		T_INT(t_count_fds(), before);
	}
	relay_free(NULL);
}
