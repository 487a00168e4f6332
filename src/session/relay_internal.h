/* SPDX-License-Identifier: Apache-2.0 */
/* relay_internal.h - shared by relay*.c (and their unit test) only.
 *
 *     relay_judge.c   what are descriptors 0-2, and may the program have them?
 *     relay_pump.c    one direction of bytes: a source, a buffer, a destination
 *     relay_tty.c     the caller's terminal and the pty that stands in for it
 *     relay.c         puts the three together behind relay.h
 */
#pragma once
#include "session/relay.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <termios.h>

/* ---- relay_judge.c ---- */

enum judge_kind {
	JUDGE_PASS,  /* pipe, FIFO, Unix stream, character device: as it is */
	JUDGE_FILE,  /* regular file that can be passed when reopening is barred */
	JUDGE_MEMFD, /* regular file that Landlock does not see: never passed */
	JUDGE_SOCKET, /* a stream of the host's network: its bytes pass, it does not */
	JUDGE_TTY,
	JUDGE_GONE,  /* a terminal that hung up: /dev/null stands in */
};

/* Fills a closed descriptor with /dev/null.  1: it was closed, 0: it was open. */
int judge_fill(int fd, struct cs_err *err);
int judge_fd(int fd, enum judge_kind *ret, struct stat *ret_st, struct cs_err *err);
/* Do a and b share one file offset and one set of flags, so that what is written
 * to both comes out in the order of writing? */
bool judge_same_file(int a, int b);
/* A description of our own for the pipe or terminal behind fd, non-blocking; -1: cannot be had. */
int judge_reopen(int fd, int access_mode);

/* ---- relay_pump.c ---- */

enum { PUMP_BUF = 65536, PUMP_CHUNK = 4096 };
_Static_assert((int)PUMP_CHUNK <= PIPE_BUF, "a pipe that polls writable takes a chunk without blocking");

/* How an end may be touched without blocking. */
enum pump_way {
	PUMP_NONBLOCK, /* O_NONBLOCK is set: read or write at will */
	PUMP_SOCKET,   /* MSG_DONTWAIT does it per call */
	PUMP_REGULAR,  /* never blocks in poll(2)'s sense */
	PUMP_CAREFUL,  /* shared blocking description: poll first, then one chunk */
};

struct pump_end {
	int fd; /* -1: closed, or (destination) nowhere */
	bool own;
	enum pump_way way;
};

enum pump_result { PUMP_OK, PUMP_EOF, PUMP_BROKEN };

struct pump {
	struct pump_end from, to;
	char *buf; /* NULL until the first byte comes */
	size_t off, len;
	bool used, eof, done;
	bool hup; /* the last poll(2) said POLLHUP */
	int lost; /* errno for which the destination takes no more */
};

void pump_init(struct pump *p, struct pump_end from, struct pump_end to);
struct pump_end pump_borrow(int fd);
struct pump_end pump_own(int take_fd);
/* One read into the empty buffer.  PUMP_EOF at the end or on an error of the source. */
enum pump_result pump_fill(struct pump *p);
/* Write until empty or not ready.  PUMP_BROKEN: the destination takes no more, ever. */
enum pump_result pump_flush(struct pump *p);
void pump_done(struct pump *p);

/* ---- relay_tty.c ---- */

/* FULL  0 and 1 are our controlling terminal.  It goes raw; the pty does all line
 *       editing, echo, signals and output processing.
 * LINE  0 is a terminal, but 1 is not (`caisson run -- x | less`), or it is not our
 *       controlling one.  Others may be using that terminal at the same time, so it
 *       stays as it is and does the line editing; the pty has EXTPROC set, which
 *       says exactly that, and changes the program makes (no echo for a password)
 *       are copied to the real one.
 * OUT   only 1 or 2 are terminals.  The keyboard is not ours to read and the terminal
 *       stays as it is; the pty does no output processing so that it happens once. */
enum tty_mode { TTY_NONE, TTY_FULL, TTY_LINE, TTY_OUT };

struct relay_tty {
	enum tty_mode mode;
	int real;             /* borrowed: whose size and modes we follow */
	int master, slave;    /* -1 when closed */
	int tick;             /* timerfd while the keyboard is another's; -1 */
	bool started, suspended;
	bool changed;         /* the real terminal's modes are not as found */
	bool settled;         /* the pty's modes came from a terminal that was ours */
	bool line_over;       /* LINE: end of file was sent, the pty is on its own */
	struct termios saved; /* the real terminal's, as found */
	struct termios given; /* the pty's, as we set them */
	struct termios inner; /* the pty's, when last looked at */
};

int tty_open(struct relay_tty *t, enum tty_mode mode, int real, struct cs_err *err);
void tty_resize(struct relay_tty *t);
void tty_enter(struct relay_tty *t); /* our modes, if we are in the foreground */
void tty_leave(struct relay_tty *t); /* modes as found; async-signal-safe */
void tty_sync(struct relay_tty *t);  /* notice `fg`, `bg` and the program's mode changes */
bool tty_may_read(const struct relay_tty *t); /* is the keyboard ours right now? */
/* A descriptor that becomes readable when it is time to ask again; -1 if it cannot be had. */
int tty_tick(struct relay_tty *t);
void tty_ticked(struct relay_tty *t);
/* LINE: the person typed end of file; returns the byte that says so to the program. */
char tty_line_eof(struct relay_tty *t);
void tty_done(struct relay_tty *t);
