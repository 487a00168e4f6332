/* SPDX-License-Identifier: Apache-2.0 */
/* relay_tty.c - the caller's terminal and the pty that stands in for it.
 *
 * Modes are changed with TCSANOW: waiting for output to drain would let a stuck
 * terminal stop us, and output is processed when written, not when sent.
 *
 * What is typed ahead while a FULL session runs belongs to the program and is gone
 * with it, as with ssh: there is no way back into a terminal's queue but TIOCSTI,
 * which this file exists to keep away from.
 */
#include "base/cleanup.h"
#include "session/relay_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* LINE: a pager behind us in the pipeline has made the terminal its own. */
static bool taken(const struct relay_tty *t, const struct termios *now)
{
	return t->mode == TTY_LINE && !t->changed && !(now->c_lflag & ICANON) && tcgetpgrp(t->real) >= 0;
}

/* The pty's modes, from the real terminal's. */
static struct termios adapt(const struct relay_tty *t)
{
	struct termios m = t->saved;

	if (t->mode != TTY_FULL)
		m.c_oflag &= ~(tcflag_t)OPOST;
	if (t->mode == TTY_LINE)
		m.c_lflag |= EXTPROC;
	if (taken(t, &t->saved)) { /* a pager was faster than we: these are its modes */
		m.c_iflag |= ICRNL;
		m.c_lflag |= ICANON | ECHO | ECHOE | ECHOK | ISIG | IEXTEN;
	}
	return m;
}

/* Not posix_openpt() and friends: grantpt() and ptsname() are about /dev/pts paths,
 * which may not be there, and pull the user database into a static program. */
int tty_open(struct relay_tty *t, enum tty_mode mode, int real, struct cs_err *err)
{
	CS_FD int master = -1, slave = -1;
	int unlock = 0;

	master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno,
			       "no private terminal for the program (redirect its input and output to do without): /dev/ptmx");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return cs_fail(err, CS_E_SYSTEM, errno,
			       "no private terminal for the program (redirect its input and output to do without): pty peer");
	*t = (struct relay_tty){ .mode = mode, .real = real, .master = -1, .slave = -1, .tick = -1 };
	if (tcgetattr(real, &t->saved) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "read the terminal's modes");
	t->given = adapt(t);
	if (tcsetattr(slave, TCSANOW, &t->given) < 0 || tcgetattr(slave, &t->given) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "set the private terminal's modes");
	t->inner = t->given;
	t->master = CS_TAKE_FD(master);
	t->slave = CS_TAKE_FD(slave);
	tty_resize(t);
	return 0;
}

void tty_resize(struct relay_tty *t)
{
	struct winsize now, then;

	if (t->mode == TTY_NONE || t->master < 0 || ioctl(t->real, TIOCGWINSZ, &now) < 0)
		return;
	/* The kernel sends SIGWINCH to the program only when the size is another. */
	if (ioctl(t->master, TIOCGWINSZ, &then) < 0 || memcmp(&now, &then, sizeof now) != 0)
		(void)ioctl(t->master, TIOCSWINSZ, &now);
}

static bool foreground(const struct relay_tty *t)
{
	pid_t group = tcgetpgrp(t->real);

	/* ENOTTY: not our controlling terminal, so there is no foreground to be in. */
	if (group < 0)
		return t->mode == TTY_LINE && errno == ENOTTY;
	return group == getpgrp();
}

static bool same_input(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof a->c_cc) == 0;
}

/* What the real terminal should be in for the program: raw, or (LINE) what the
 * program made of its own.  False: as it is. */
static bool wanted(const struct relay_tty *t, struct termios *ret)
{
	*ret = t->saved;
	if (t->mode == TTY_FULL) {
		cfmakeraw(ret);
		return true;
	}
	if (same_input(&t->inner, &t->given))
		return false;
	ret->c_iflag = t->inner.c_iflag;
	ret->c_lflag = t->inner.c_lflag & ~(tcflag_t)EXTPROC;
	memcpy(ret->c_cc, t->inner.c_cc, sizeof ret->c_cc);
	return true;
}

/* A job started with & copied the modes of a shell that was editing its command
 * line.  If the program left them alone, give it the right ones now. */
static void settle(struct relay_tty *t)
{
	struct termios now;

	t->settled = true;
	if (tcgetattr(t->master, &now) < 0 || !same_input(&now, &t->given))
		return;
	t->given = adapt(t);
	(void)tcsetattr(t->master, TCSANOW, &t->given); /* on a master: the slave's modes */
	(void)tcgetattr(t->master, &t->given);
	t->inner = t->given;
}

void tty_enter(struct relay_tty *t)
{
	struct termios m;

	if ((t->mode != TTY_FULL && t->mode != TTY_LINE) || t->suspended || t->master < 0 || !foreground(t))
		return;
	if (!t->changed) {
		if (tcgetattr(t->real, &m) < 0 || taken(t, &m))
			return;
		t->saved = m;
		if (!t->settled)
			settle(t);
	}
	if (wanted(t, &m))
		t->changed = tcsetattr(t->real, TCSANOW, &m) == 0 || t->changed;
	else
		tty_leave(t);
}

void tty_leave(struct relay_tty *t)
{
	if (!t->changed)
		return;
	t->changed = false;
	/* In the background it is another's to set, and SIGTTOU would stop us. */
	if (foreground(t))
		(void)tcsetattr(t->real, TCSANOW, &t->saved);
}

static void mirror(struct relay_tty *t)
{
	struct termios now;

	if (t->line_over || t->master < 0 || tcgetattr(t->master, &now) < 0)
		return;
	if (!(now.c_lflag & EXTPROC)) { /* `stty sane` */
		now.c_lflag |= EXTPROC;
		(void)tcsetattr(t->master, TCSANOW, &now);
	}
	if (same_input(&now, &t->inner) && t->settled && (t->changed || same_input(&now, &t->given)))
		return;
	t->inner = now;
	tty_enter(t);
}

void tty_sync(struct relay_tty *t)
{
	if (!t->started || t->suspended)
		return;
	if (t->mode == TTY_FULL) {
		struct termios now;

		/* We were stopped and the shell took the terminal, all without our knowing. */
		if (t->changed && tcgetattr(t->real, &now) == 0 && (now.c_lflag & ICANON))
			t->changed = false;
		if (!t->changed)
			tty_enter(t);
	} else if (t->mode == TTY_LINE) {
		mirror(t);
	}
}

bool tty_may_read(const struct relay_tty *t)
{
	struct termios now, want;
	pid_t group;

	if (!t->started || t->suspended)
		return false;
	group = tcgetpgrp(t->real);
	if (group >= 0 && group != getpgrp())
		return false; /* reading would be SIGTTIN */
	if (t->mode != TTY_LINE || tcgetattr(t->real, &now) < 0)
		return true; /* on a dead terminal the read says so */
	if (!t->changed)
		return !taken(t, &now);
	(void)wanted(t, &want);
	return (now.c_lflag & ICANON) == (want.c_lflag & ICANON);
}

/* Nothing tells a running job that `fg` made it the foreground one (no SIGCONT: it
 * was not stopped), or that the pager behind it has ended.  So look four times a
 * second, but only while the keyboard is another's. */
int tty_tick(struct relay_tty *t)
{
	static const struct itimerspec quarter = { .it_value.tv_nsec = 250000000 };
	struct itimerspec now;

	if (t->tick < 0)
		t->tick = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (t->tick < 0)
		return -1;
	if (timerfd_gettime(t->tick, &now) == 0 && now.it_value.tv_sec == 0 && now.it_value.tv_nsec == 0)
		(void)timerfd_settime(t->tick, 0, &quarter, NULL);
	return t->tick;
}

void tty_ticked(struct relay_tty *t)
{
	uint64_t n;

	(void)!read(t->tick, &n, sizeof n); /* only to make it unreadable */
}

/* With EXTPROC the end-of-file byte counts only when nothing else is in the queue.
 * Without it the byte is a record of its own, whatever came before. */
char tty_line_eof(struct relay_tty *t)
{
	struct termios m;

	t->line_over = true;
	if (tcgetattr(t->master, &m) < 0)
		return 4;
	m.c_lflag &= ~(tcflag_t)(EXTPROC | ECHO | ECHONL);
	(void)tcsetattr(t->master, TCSANOW, &m);
	return (char)m.c_cc[VEOF];
}

void tty_done(struct relay_tty *t)
{
	if (t->mode == TTY_NONE)
		return;
	tty_leave(t);
	if (t->master >= 0)
		close(t->master);
	if (t->slave >= 0)
		close(t->slave);
	if (t->tick >= 0)
		close(t->tick);
	t->master = t->slave = t->tick = -1;
}
