/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - puts judgement, pumps and terminal together; see relay.h.
 *
 * What the caller has to know beyond relay.h:
 *
 * - relay_open() must come before anything else is opened when 0-2 may be closed:
 *   a closed one is filled with /dev/null and stays so until relay_free().
 * - SIGPIPE is ignored by the process.
 * - relay_suspend() uses only tcgetpgrp, getpgrp and tcsetattr and may be called
 *   from a signal handler that then ends the process.
 * - relay_drain() also ends the input side: what a file on standard input was read
 *   ahead is given back (see give_back).  It may be called again while
 *   relay_active(), so that a reader who is slow but alive loses nothing; a
 *   negative timeout waits as long as that takes.
 * - At most five entries come from relay_poll().
 *
 * A regular file opened for reading and writing (`<>file`) passes as it is when
 * reopening is barred: the program gets the rights it was given, no more.  Opening
 * it again with fewer would give it an offset of its own, and `caisson run` in the
 * middle of a script must move the script's offset; for the same reason a pump
 * reads and writes the caller's description of a file and never one of ours, which
 * also keeps O_APPEND.
 */
#include "base/cleanup.h"
#include "base/mem.h"
#include "session/relay_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { IN, OUT, ERR, SCREEN, KEYS, N_PUMPS }; /* the first three are descriptors too */
enum { RELAY_POLLS = N_PUMPS, TICK = N_PUMPS }; /* an entry of relay_poll() is a pump, or TICK */

struct relay {
	struct relay_opts o;
	struct relay_tty tty;
	struct pump pump[N_PUMPS];
	int given[3];     /* pipe ends for the program, ours until relay_started() */
	int peek;         /* the program's end of the input pipe: how much did it not read? */
	off_t in_pos;     /* where our reading left the input file */
	bool filled[3];   /* /dev/null is ours to close */
	bool over, ended;
	uint64_t bytes;
	unsigned char asked[RELAY_POLLS]; /* the pump (or TICK) of each entry */
	size_t n_asked;
};

static bool counted(unsigned i)
{
	return i == OUT || i == ERR || i == SCREEN;
}

/* ---- opening ---- */

static bool needs_pipe(const struct relay *r, int fd, enum judge_kind kind)
{
	if (kind == JUDGE_MEMFD || kind == JUDGE_SOCKET || (kind == JUDGE_FILE && !r->o.reopen_safe))
		return true;
	/* With a limit on output nothing that can be written passes uncounted, by whatever number. */
	return r->o.max_output != 0 && (fd != 0 || (fcntl(0, F_GETFL) & O_ACCMODE) != O_RDONLY);
}

static int open_pipe(struct relay *r, int fd, int *ret_stdio, struct cs_err *err)
{
	struct pump_end theirs = pump_borrow(fd);
	int p[2], own = -1;

	/* No O_NONBLOCK on the program's end: it expects an ordinary pipe. */
	if (pipe2(p, O_CLOEXEC) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make a pipe for the program");
	if (fcntl(p[fd == 0], F_SETFL, O_NONBLOCK) < 0) {
		int e = errno;

		close(p[0]);
		close(p[1]);
		return cs_fail(err, CS_E_SYSTEM, e, "make a pipe for the program");
	}
	if (fd != 0 && theirs.way == PUMP_CAREFUL)
		own = judge_reopen(fd, O_WRONLY);
	if (own >= 0)
		theirs = pump_own(own);
	if (fd == 0)
		pump_init(&r->pump[IN], theirs, pump_own(p[1]));
	else
		pump_init(&r->pump[fd], pump_own(p[0]), theirs);
	*ret_stdio = r->given[fd] = p[fd != 0];
	return 0;
}

/* Where the program's screen goes: a descriptor that is a terminal and can be written. */
static struct pump_end screen_end(const enum judge_kind kind[3])
{
	static const int order[3] = { 1, 2, 0 };

	for (int i = 0; i < 3; i++) {
		int fd = order[i], own;

		if (kind[fd] != JUDGE_TTY)
			continue;
		own = judge_reopen(fd, O_WRONLY);
		if (own >= 0)
			return pump_own(own);
		if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
			return pump_borrow(fd);
	}
	return (struct pump_end){ .fd = -1 };
}

static enum tty_mode choose_mode(const enum judge_kind kind[3], const struct stat st[3])
{
	if (kind[0] != JUDGE_TTY)
		return TTY_OUT;
	if (kind[1] == JUDGE_TTY && st[0].st_rdev == st[1].st_rdev && tcgetpgrp(0) >= 0)
		return TTY_FULL;
	return TTY_LINE;
}

static int open_terminal(struct relay *r, const enum judge_kind kind[3], const struct stat st[3], struct cs_err *err)
{
	enum tty_mode mode = choose_mode(kind, st);
	int real = kind[0] == JUDGE_TTY ? 0 : kind[1] == JUDGE_TTY ? 1 : 2;
	struct pump_end master;
	int e;

	e = tty_open(&r->tty, mode, real, err);
	if (e < 0)
		return e;
	master = (struct pump_end){ .fd = r->tty.master, .way = PUMP_NONBLOCK };
	pump_init(&r->pump[SCREEN], master, screen_end(kind));
	if (mode != TTY_OUT) {
		int own = judge_reopen(0, O_RDONLY);

		pump_init(&r->pump[KEYS], own >= 0 ? pump_own(own) : pump_borrow(0), master);
	}
	return 0;
}

static int open_one(struct relay *r, int fd, const enum judge_kind kind[3], const struct stat st[3], int stdio[3],
		    struct cs_err *err)
{
	stdio[fd] = fd;
	switch (kind[fd]) {
	case JUDGE_TTY:
		if (r->tty.mode == TTY_NONE) {
			int e = open_terminal(r, kind, st, err);

			if (e < 0)
				return e;
		}
		stdio[fd] = r->tty.slave;
		return 0;
	case JUDGE_GONE:
		r->given[fd] = stdio[fd] = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (stdio[fd] < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "open /dev/null");
		return 0;
	case JUDGE_PASS:
	case JUDGE_FILE:
	case JUDGE_MEMFD:
	case JUDGE_SOCKET:
	default:
		break;
	}
	if (!needs_pipe(r, fd, kind[fd]))
		return 0;
	/* `>log 2>&1`: one pipe for both keeps the order between them. */
	if (fd == 2 && r->pump[OUT].used && judge_same_file(1, 2)) {
		stdio[2] = stdio[1];
		return 0;
	}
	return open_pipe(r, fd, &stdio[fd], err);
}

static void free_p(struct relay **r)
{
	relay_free(*r);
}

int relay_open(const struct relay_opts *o, struct relay **ret, int ret_stdio[3], bool *ret_tty, struct cs_err *err)
{
	CS_CLEANUP(free_p) struct relay *r = cs_new(struct relay);
	enum judge_kind kind[3];
	struct stat st[3];
	int stdio[3], e;

	r->o = *o;
	r->peek = -1;
	r->tty.master = r->tty.slave = r->tty.tick = -1;
	for (int i = 0; i < 3; i++)
		r->given[i] = -1;
	/* All three first, so that nothing else that is opened becomes one of them. */
	for (int i = 0; i < 3; i++) {
		e = judge_fill(i, err);
		if (e < 0)
			return e;
		r->filled[i] = e > 0;
	}
	for (int i = 0; i < 3; i++) {
		e = judge_fd(i, &kind[i], &st[i], err);
		if (e < 0)
			return e;
	}
	for (int i = 0; i < 3; i++) {
		e = open_one(r, i, kind, st, stdio, err);
		if (e < 0)
			return e;
	}
	memcpy(ret_stdio, stdio, sizeof stdio);
	*ret_tty = kind[0] == JUDGE_TTY;
	*ret = CS_TAKE_PTR(r);
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void relay_started(struct relay *r)
{
	/* Kept, not closed: it says how much of the input the program left unread.  The
	 * price is that a program which closes its input is not noticed; the pipe just
	 * stays full. */
	if (r->pump[IN].used)
		r->peek = CS_TAKE_FD(r->given[0]);
	for (int i = 0; i < 3; i++)
		close_fd(&r->given[i]);
	close_fd(&r->tty.slave);
	r->tty.started = true;
	tty_enter(&r->tty);
}

/* ---- moving ---- */

/* The person's terminal is gone, or nothing inside has the pty open any more.
 * Closing the master hangs up on whoever is left. */
static void end_terminal(struct relay *r)
{
	pump_done(&r->pump[SCREEN]);
	pump_done(&r->pump[KEYS]);
	close_fd(&r->tty.master);
}

static void end_pump(struct relay *r, unsigned i)
{
	if (i == SCREEN || i == KEYS)
		end_terminal(r);
	else
		pump_done(&r->pump[i]);
}

/* Count what came and cut it where the limit is. */
static void count(struct relay *r, struct pump *p)
{
	uint64_t max = r->o.max_output;

	if (max && p->len > max - r->bytes) {
		p->len = (size_t)(max - r->bytes);
		r->over = true;
	}
	r->bytes += p->len;
}

static void keys_eof(struct relay *r, struct pump *p)
{
	if (r->tty.mode != TTY_LINE || p->hup) {
		end_terminal(r);
		return;
	}
	p->eof = false;
	p->off = 0;
	p->len = 1;
	p->buf[0] = tty_line_eof(&r->tty);
}

static void flush(struct relay *r, unsigned i)
{
	struct pump *p = &r->pump[i];

	if (p->done || pump_flush(p) == PUMP_OK)
		return;
	/* PUMP_EOF: all is moved.  PUMP_BROKEN: our end of the program's pipe is closed
	 * too, so that it gets the SIGPIPE or EPIPE it would have had without us. */
	end_pump(r, i);
}

static void fill(struct relay *r, unsigned i)
{
	struct pump *p = &r->pump[i];

	if (i == KEYS && !tty_may_read(&r->tty) && !p->hup)
		return;
	if (pump_fill(p) == PUMP_EOF) {
		if (i == KEYS)
			keys_eof(r, p);
	} else if (p->len && counted(i)) {
		count(r, p);
	} else if (p->len && i == IN) {
		r->in_pos = lseek(0, 0, SEEK_CUR);
	}
}

/* What is pump i waiting for?  False: for nothing that poll(2) could tell. */
static bool ask(struct relay *r, unsigned i, struct pollfd *ret)
{
	const struct pump *p = &r->pump[i];

	if (p->len) {
		*ret = (struct pollfd){ .fd = p->to.fd, .events = POLLOUT };
		return true;
	}
	*ret = (struct pollfd){ .fd = p->from.fd, .events = POLLIN };
	if (counted(i))
		return !r->over;
	if (r->ended)
		return false;
	if (i == KEYS && !tty_may_read(&r->tty)) {
		if (r->tty.suspended)
			return false;
		ret->fd = tty_tick(&r->tty);
	}
	return ret->fd >= 0;
}

/* Asked for is only what can be acted upon: poll(2) reports POLLHUP and POLLERR of
 * every descriptor it is given, wanted or not, and would not wait any more. */
size_t relay_poll(struct relay *r, struct pollfd *fds, size_t max)
{
	size_t n = 0;

	if (max > RELAY_POLLS)
		max = RELAY_POLLS;
	if (!r->ended)
		tty_sync(&r->tty);
	for (unsigned i = 0; i < N_PUMPS; i++) {
		const struct pump *p = &r->pump[i];

		if (!p->used || p->done || n == max || !ask(r, i, &fds[n]))
			continue;
		r->asked[n] = fds[n].fd == r->tty.tick ? TICK : (unsigned char)i;
		n++;
	}
	r->n_asked = n;
	return n;
}

void relay_handle(struct relay *r, const struct pollfd *fds, size_t n)
{
	if (n > r->n_asked)
		n = r->n_asked;
	for (size_t k = 0; k < n; k++) {
		unsigned i = r->asked[k];

		if (!fds[k].revents)
			continue;
		if (i == TICK) {
			tty_ticked(&r->tty);
			continue;
		}
		if (r->pump[i].done)
			continue;
		r->pump[i].hup = fds[k].revents & POLLHUP;
		if (!r->pump[i].len)
			fill(r, i);
		flush(r, i);
	}
	r->n_asked = 0;
}

bool relay_active(const struct relay *r)
{
	for (unsigned i = 0; i < N_PUMPS; i++)
		if (r->pump[i].used && !r->pump[i].done)
			return true;
	return false;
}

bool relay_over(const struct relay *r)
{
	return r->over;
}

/* A reader that went away is no loss: the program was told with SIGPIPE. */
int relay_lost(const struct relay *r)
{
	for (unsigned i = OUT; i <= ERR; i++)
		if (r->pump[i].lost && r->pump[i].lost != EPIPE)
			return r->pump[i].lost;
	return 0;
}

uint64_t relay_bytes(const struct relay *r)
{
	return r->bytes;
}

/* ---- terminal ---- */

void relay_resize(struct relay *r)
{
	tty_resize(&r->tty);
}

void relay_suspend(struct relay *r)
{
	r->tty.suspended = true;
	tty_leave(&r->tty);
}

void relay_resume(struct relay *r)
{
	r->tty.suspended = false;
	/* Whoever had the terminal meanwhile set its modes: what we did is undone, and
	 * what we find is what is to be restored. */
	r->tty.changed = false;
	if (r->tty.started)
		tty_enter(&r->tty);
	tty_resize(&r->tty);
}

/* ---- the end ---- */

/* `while read x; do caisson run -- y; done <list` works because y leaves the list
 * alone; our read-ahead must not eat it.  Put the offset back to the first byte the
 * program did not read, unless somebody else moved it meanwhile. */
static void give_back(struct relay *r)
{
	struct pump *p = &r->pump[IN];
	int in_pipe = 0;
	off_t unread;

	if (!p->used || r->peek < 0)
		return;
	(void)ioctl(r->peek, FIONREAD, &in_pipe);
	unread = (off_t)p->len + in_pipe;
	if (unread > 0 && lseek(0, 0, SEEK_CUR) == r->in_pos)
		(void)lseek(0, -unread, SEEK_CUR);
	close_fd(&r->peek);
	pump_done(p);
}

static void end_input(struct relay *r)
{
	r->ended = true;
	give_back(r);
	pump_done(&r->pump[KEYS]);
}

/* Nothing more will come from the program and all of it is moved. */
static void settle_over(struct relay *r)
{
	for (unsigned i = OUT; i <= SCREEN; i++)
		if (r->over && r->pump[i].used && !r->pump[i].done && !r->pump[i].len)
			end_pump(r, i);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void relay_drain(struct relay *r, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;

	end_input(r);
	for (;;) {
		struct pollfd fds[RELAY_POLLS];
		int64_t left = timeout_ms < 0 ? -1 : end - now_ms();
		size_t n;
		int k;

		settle_over(r);
		n = relay_poll(r, fds, RELAY_POLLS);
		if (n == 0)
			return;
		k = poll(fds, n, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return;
		relay_handle(r, fds, n);
	}
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	end_input(r);
	tty_done(&r->tty);
	for (unsigned i = 0; i < N_PUMPS; i++)
		pump_done(&r->pump[i]);
	for (int i = 0; i < 3; i++) {
		close_fd(&r->given[i]);
		if (r->filled[i])
			close(i);
	}
	free(r);
}
