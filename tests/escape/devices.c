/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c - device nodes, and the caller's terminal. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>

#define DEVICE "host device"
#define INJECT "terminal injection, CVE-2017-5226"
#define DEV(path)                                                                                                    \
	{ "D02", path " is not there", DEVICE, { "dev", path }, "ENOENT", .how = BARE, .flag = MAY_LACK }

static const struct row rows[] = {
	DEV("/dev/mem"), DEV("/dev/kmem"), DEV("/dev/port"), DEV("/dev/kmsg"), DEV("/dev/kvm"), DEV("/dev/fuse"), DEV("/dev/vsock"),
	DEV("/dev/vhost-net"), DEV("/dev/vhost-vsock"), DEV("/dev/net/tun"), DEV("/dev/uinput"), DEV("/dev/loop0"),
	DEV("/dev/loop-control"), DEV("/dev/vda"), DEV("/dev/dri/card0"), DEV("/dev/console"), DEV("/dev/ttyS0"), DEV("/dev/tty1"),
	DEV("/dev/vcs"), DEV("/dev/btrfs-control"), DEV("/dev/autofs"), DEV("/dev/hwrng"), DEV("/dev/cpu_dma_latency"),
	DEV("/dev/zram0"), DEV("/dev/vga_arbiter"), DEV("/dev/mapper/control"), DEV("/dev/snapshot"), DEV("/dev/bus/usb"),
	{ "D02", "no device is made in /dev", DEVICE, { "create", "/dev/new", "x" }, "EROFS EACCES", .how = BY_FLAGS,
	  .instead = { 0 }, .control = { "create", "/dev/shm/new", "x" } },
	{ "D08", "without a terminal there is no /dev/tty", INJECT, { "devtty" }, "ENXIO ENOENT EACCES", .how = BARE, .flag = MAY_LACK },
};

/* ---- D01: all of /dev ----------------------------------------------------------- */

static void listing(bool sandbox)
{
	static const char *const fine[] = { "null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr",
					    "ptmx", "pts", "shm", "mqueue" };
	struct place *p = place_make();
	static struct t_result r;
	int strange = 0;
	char *save, *list;

	if (sandbox)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "list", "/dev") });
	else
		t_run(&r, WORDLIST(p->probe, "list", "/dev"));
	if (!said(&r, "OK "))
		T_FAIL("no list: %s %s", answer(&r), r.err);
	list = strdup(answer(&r) + 3);
	for (char *w = strtok_r(list, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		bool ok = false;

		for (size_t i = 0; i < COUNT(fine); i++)
			ok |= !strcmp(w, fine[i]);
		strange += !ok;
		if (!ok && sandbox)
			printf("# /dev/%s\n", w);
	}
	if ((strange != 0) == sandbox)
		T_FAIL("%d entries that are not on the list", strange);
}

static void list_inside(void) { listing(true); }
static void list_outside(void) { listing(false); }

/* ---- a terminal of the caller's -------------------------------------------------- */

struct term { int master, slave; pid_t pid; char seen[65536]; size_t len; };

static void term_open(struct term *t)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	char name[64];
	int nr, zero = 0;

	memset(t, 0, sizeof *t);
	t->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->master < 0 || ioctl(t->master, TIOCSPTLCK, &zero) < 0 || ioctl(t->master, TIOCGPTN, &nr) < 0)
		T_ABSENT("this caller gets no pty: %s", strerror(errno));
	snprintf(name, sizeof name, "/dev/pts/%d", nr);
	t->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->slave < 0)
		t->slave = ioctl(t->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->slave < 0)
		T_ABSENT("this caller cannot open its pty: %s", strerror(errno));
	ioctl(t->slave, TIOCSWINSZ, &size);
}

/* A session of its own on that terminal: as a shell would start it. */
static void term_run(struct term *t, const char *const argv[], const char *cwd)
{
	fflush(stdout);
	t->pid = fork();
	if (t->pid < 0)
		T_FAIL("fork: %s", strerror(errno));
	if (t->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setsid();
	if (ioctl(t->slave, TIOCSCTTY, 0) < 0 || chdir(cwd) < 0)
		_exit(127);
	for (int i = 0; i < 3; i++)
		dup2(t->slave, i);
	execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static void term_read(struct term *t, int ms)
{
	struct pollfd p = { t->master, POLLIN, 0 };
	ssize_t n;

	if (poll(&p, 1, ms) != 1 || t->len >= sizeof t->seen - 1)
		return;
	n = read(t->master, t->seen + t->len, sizeof t->seen - 1 - t->len);
	if (n > 0)
		t->len += (size_t)n;
}

/* Exit status, or -1 when it has not ended in time. */
static int term_end(struct term *t, int ms, bool reading)
{
	long end = t_now_ms() + ms;
	int st;

	for (;;) {
		if (waitpid(t->pid, &st, WNOHANG) == t->pid)
			break;
		if (t_now_ms() > end)
			return -1;
		if (reading)
			term_read(t, 5);
		else
			usleep(5000);
	}
	for (int i = 0; i < 5 && reading; i++)
		term_read(t, 10);
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

static void term_caisson(struct term *t, struct place *p, const char *off, const char *const cmd[])
{
	const char *argv[24];
	int n = 0;

	argv[n++] = getenv(off ? "CS_CAISSON_TEST" : "CS_CAISSON");
	argv[n++] = "run";
	argv[n++] = "--quiet";
	if (off) {
		argv[n++] = "--off";
		argv[n++] = off;
	}
	argv[n++] = "--";
	for (; *cmd && n < 23; cmd++)
		argv[n++] = place_text(p, *cmd);
	argv[n] = NULL;
	term_run(t, argv, p->work);
}

/* Is there input waiting on the caller's terminal that nobody typed? */
static int injected(struct term *t)
{
	struct termios raw;
	int n = 0;

	/* Pushed characters wait for a line end; make them count. */
	tcgetattr(t->slave, &raw);
	raw.c_lflag &= ~(tcflag_t)ICANON;
	tcsetattr(t->slave, TCSANOW, &raw);
	ioctl(t->slave, FIONREAD, &n);
	return n;
}

/* The answer of a probe that ran on the terminal. */
static const char *term_answer(struct term *t)
{
	char *p = t->seen, *best = NULL;

	t->seen[t->len] = '\0';
	while ((p = strpbrk(p, "ONC"))) {
		if (!strncmp(p, "OK ", 3) || !strncmp(p, "NO ", 3) || !strncmp(p, "CANT ", 5))
			best = p;
		p++;
	}
	if (!best)
		return "";
	best[strcspn(best, "\r\n")] = '\0';
	return best;
}

static void on_terminal(const char *word, const char *arg, bool sandbox, bool want_ok)
{
	struct place *p = place_make();
	struct term t;
	int st, n;

	term_open(&t);
	if (sandbox)
		term_caisson(&t, p, NULL, WORDLIST("@P", word, "0", arg ? arg : "low"));
	else
		term_run(&t, WORDLIST(p->probe, word, "0", arg ? arg : "low"), p->work);
	st = term_end(&t, 10000, true);
	n = injected(&t);
	if (st < 0)
		T_FAIL("it did not end");
	if (sandbox && n > 0)
		T_FAIL("%d characters were typed into the caller's terminal", n);
	if (strncmp(term_answer(&t), want_ok ? "OK" : "NO EPERM", want_ok ? 2 : 8))
		T_FAIL("%s: '%s' ('%.300s')", word, term_answer(&t), t.seen);
	if (!sandbox && !strcmp(word, "tiocsti") && n <= 0)
		T_FAIL("control: nothing was injected");
}

static void sti_in(void) { on_terminal("tiocsti", NULL, true, false); }
static void sti_out(void)
{
	char text[8];

	get_file("/proc/sys/dev/tty/legacy_tiocsti", text, sizeof text);
	if (text[0] == '0' && mode() != MODE_ROOT)
		T_ABSENT("this kernel has TIOCSTI switched off");
	on_terminal("tiocsti", NULL, false, true);
}
static void sti_high_in(void) { on_terminal("tiocsti", "high", true, false); }
static void sti_high_out(void) { on_terminal("tiocsti", "high", false, true); }
static void linux_in(void) { on_terminal("tioclinux", NULL, true, false); }
static void linux_out(void) { on_terminal("tioclinux", NULL, false, true); }
static void linux_high_in(void) { on_terminal("tioclinux", "high", true, false); }
static void linux_high_out(void) { on_terminal("tioclinux", "high", false, true); }
static void setd_in(void) { on_terminal("tiocsetd", NULL, true, false); }
static void setd_out(void) { on_terminal("tiocsetd", NULL, false, true); }
static void setd_high_in(void) { on_terminal("tiocsetd", "high", true, false); }
static void setd_high_out(void) { on_terminal("tiocsetd", "high", false, true); }

/* Without the filter: what is pushed goes into a terminal of the sandbox's own. */
static void sti_private(void)
{
	struct place *p = place_make();
	struct term t;

	term_open(&t);
	term_caisson(&t, p, "seccomp", WORDLIST("@P", "tiocsti", "0", "low"));
	if (term_end(&t, 10000, true) < 0)
		T_FAIL("it did not end");
	if (injected(&t) > 0)
		T_FAIL("%d characters were typed into the caller's terminal", injected(&t));
}

/* D06, D08: the terminal inside is not the caller's. */
static void which(bool sandbox, const char *word, const char *arg)
{
	struct place *p = place_make();
	struct term t;
	struct stat st;
	char own[128];

	term_open(&t);
	if (fstat(t.slave, &st) < 0)
		T_FAIL("fstat: %s", strerror(errno));
	snprintf(own, sizeof own, "OK dev=%lu ino=%lu rdev=%u:%u", (unsigned long)st.st_dev, (unsigned long)st.st_ino,
		 major(st.st_rdev), minor(st.st_rdev));
	if (sandbox)
		term_caisson(&t, p, NULL, WORDLIST("@P", word, arg));
	else
		term_run(&t, WORDLIST(p->probe, word, arg), p->work);
	if (term_end(&t, 10000, true) < 0)
		T_FAIL("it did not end");
	if (strncmp(term_answer(&t), "OK dev=", 7))
		T_FAIL("no terminal at all: '%.300s'", t.seen);
	if (!strcmp(term_answer(&t), own) == sandbox)
		T_FAIL("the terminal is %s; the caller's is %s", term_answer(&t), own);
}

static void which_in(void) { which(true, "tty-id", "0"); }
static void which_out(void) { which(false, "tty-id", "0"); }
static void which_err_in(void) { which(true, "tty-id", "2"); }
static void which_err_out(void) { which(false, "tty-id", "2"); }

/* The caller's terminal is still its own after the run. */
static void steal(bool sandbox)
{
	struct place *p = place_make();
	struct term t;

	term_open(&t);
	if (sandbox)
		term_caisson(&t, p, NULL, WORDLIST("@P", "tiocsctty", "0"));
	else
		term_run(&t, WORDLIST(p->probe, "tiocsctty", "0"), p->work);
	if (term_end(&t, 10000, true) < 0)
		T_FAIL("it did not end");
	if (sandbox && strncmp(term_answer(&t), "NO EPERM", 8))
		T_FAIL("'%s'", t.seen);
	if (!sandbox && strncmp(term_answer(&t), "OK", 2))
		T_FAIL("control: '%s'", t.seen);
}

static void steal_in(void) { steal(true); }
static void steal_out(void)
{
	if (mode() != MODE_ROOT)
		T_ABSENT("outside too only the host's root may steal a terminal");
	steal(false);
}

/* ---- D09: our own messages ---------------------------------------------------------- */

/* A command that is not found is named in the message. */
static void message(const char *evil, const char *bytes, bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	bool raw = false;

	if (sandbox)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST(evil) });
	else
		t_run(&r, WORDLIST("sh", "-c", "\"$0\"", evil));
	if (sandbox && (r.status != 127 || r.err_len == 0))
		T_FAIL("status %d, '%s'", r.status, r.err);
	for (; *bytes; bytes++)
		raw |= memchr(r.err, *bytes, r.err_len) != NULL;
	if (raw == sandbox)
		T_FAIL("the message has %s escape sequence", raw ? "the" : "no");
}

#define CLIPBOARD "\033]52;c;ZWNobyBoaQ==\a\033[2J"
#define EIGHT_BIT "x\x9b" "31m\x9d" "0;title\x9c"
static void message_in(void) { message(CLIPBOARD, "\033\a", true); }
static void message_out(void) { message(CLIPBOARD, "\033\a", false); }
static void eight_in(void) { message(EIGHT_BIT, "\x9b\x9d\x9c", true); }
static void eight_out(void) { message(EIGHT_BIT, "\x9b\x9d\x9c", false); }

/* ---- D10: other people's terminals --------------------------------------------------- */

static void others(bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	struct term t;

	term_open(&t);
	if (sandbox)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "foreign-pts", "/dev/pts") });
	else
		t_run(&r, WORDLIST(p->probe, "foreign-pts", "/dev/pts"));
	if (sandbox)
		must_refuse(&r, "ENOENT EACCES", "terminals of the host");
	else
		must_work(&r, "terminals of the host");
}

static void others_in(void) { others(true); }
static void others_out(void)
{
	if (mode() == MODE_USERNS)
		T_ABSENT("the host's devpts gives this caller's ids no terminal of its own by name");
	others(false);
}

/* ---- D11: job-control signals ---------------------------------------------------------- */

static void storm_in(void)
{
	struct place *p = place_make();
	struct term t;

	term_open(&t);
	term_caisson(&t, p, NULL, WORDLIST("@P", "storm"));
	T_INT(term_end(&t, 10000, true), 0);
	if (strncmp(term_answer(&t), "OK", 2))
		T_FAIL("'%s'", t.seen);
}

/* The same against a shell: it is stopped or gone. */
static void storm_out(void)
{
	struct place *p = place_make();
	struct term t;
	char line[300];
	int st;

	term_open(&t);
	snprintf(line, sizeof line, "%s storm; exit 0", p->probe);
	term_run(&t, WORDLIST("/bin/sh", "-c", line), p->work);
	st = term_end(&t, 1500, true);
	if (st == 0)
		T_FAIL("control: the shell took no harm");
	kill(t.pid, SIGKILL);
}

/* ---- D12: a terminal nobody reads --------------------------------------------------------- */

static void unread(bool sandbox)
{
	struct place *p = place_make();
	struct term t;

	term_open(&t);
	if (sandbox)
		term_caisson(&t, p, NULL, WORDLIST("@P", "flood", "64"));
	else
		term_run(&t, WORDLIST(p->probe, "flood", "64"), p->work);
	if (term_end(&t, 300, false) >= 0)
		T_FAIL("64 MiB went into a terminal that nobody reads");
	if (!sandbox) {
		kill(t.pid, SIGKILL);
		return;
	}
	kill(t.pid, SIGTERM);
	if (term_end(&t, 3000, false) < 0)
		T_FAIL("the supervisor hangs: no reaction to SIGTERM in 3 s");
}

static void unread_in(void) { unread(true); }
static void unread_out(void) { unread(false); }

static const struct scene scenes[] = {
	{ "D01", "/dev holds what is on the list and no more", DEVICE, list_inside, list_outside },
	{ "D03", "TIOCSTI is refused", INJECT, sti_in, sti_out },
	{ "D03", "without the filter TIOCSTI reaches a private terminal only", INJECT ", second wall", sti_private, sti_out },
	{ "D04", "TIOCSTI with high bits is refused", INJECT ", CVE-2019-10063", sti_high_in, sti_high_out },
	{ "D05", "TIOCLINUX is refused", INJECT ", CVE-2023-28100", linux_in, linux_out },
	{ "D05", "TIOCLINUX with high bits is refused", INJECT ", CVE-2023-28100", linux_high_in, linux_high_out },
	{ "D06", "the terminal is not stolen", "controlling terminal", steal_in, steal_out },
	{ "D07", "TIOCSETD is refused", "line disciplines, CVE-2017-2636", setd_in, setd_out },
	{ "D07", "TIOCSETD with high bits is refused", "line disciplines, CVE-2017-2636", setd_high_in, setd_high_out },
	{ "D08", "standard input is not the caller's terminal", INJECT, which_in, which_out },
	{ "D08", "standard error is not the caller's terminal", INJECT, which_err_in, which_err_out },
	{ "D09", "escape sequences in a name do not reach the terminal", "terminal escapes", message_in, message_out },
	{ "D09", "8-bit control bytes in a name do not reach the terminal", "terminal escapes", eight_in, eight_out },
	{ "D10", "other people's terminals are not there", INJECT, others_in, others_out },
	{ "D11", "a storm of job-control signals hurts nobody", "supervisor", storm_in, storm_out },
	{ "D12", "a terminal that nobody reads does not hang the supervisor", "supervisor", unread_in, unread_out },
};

TEST_TABLE(devices)
{
	add_rows(rows, COUNT(rows));
	add_scenes(scenes, COUNT(scenes));
}
