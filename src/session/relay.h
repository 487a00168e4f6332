/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - what the program inside gets as descriptors 0, 1 and 2.
 *
 * A pipe, connected Unix stream, FIFO or character device passes through
 * unchanged; of another stream socket only the bytes do, and other sockets are
 * refused, because whoever holds them can connect them anew.  A
 * terminal never does: the program gets a private pty and we move the bytes,
 * so that it cannot push input into, or keep hold of, the caller's terminal.
 * A directory or block device is refused.  A regular file passes through only
 * when `reopen_safe` (Landlock bars /proc/self/fd from giving it more rights);
 * otherwise a pipe stands in.  With an output limit, 1 and 2 become pipes (or
 * stay the pty) whose bytes are counted.
 *
 * Trust       everything read from the program is hostile bytes that are moved
 *             and counted, never parsed.
 * Ownership   relay_open() makes a relay freed by relay_free(), which restores
 *             the terminal.  ret_stdio are borrowed: valid until relay_started().
 * Blocking    never: all of our ends are non-blocking, each direction has one
 *             64 KiB buffer, and a side that does not drain stops the other.
 *             (The caller's own descriptors 0-2 may be shared with other
 *             processes, so O_NONBLOCK is never set on them; poll(2) first,
 *             then one bounded write.)
 */
#pragma once
#include "base/err.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct relay;

struct relay_opts {
	uint64_t max_output; /* bytes on 1 and 2 together; 0: unlimited */
	bool reopen_safe;
};

/* Judges 0-2, makes ptys and pipes.  *ret_tty: ret_stdio[0] (and every fd that was
 * a terminal) is the slave of our pty and should become the controlling terminal. */
int relay_open(const struct relay_opts *o, struct relay **ret, int ret_stdio[3], bool *ret_tty, struct cs_err *err);
/* The program has its descriptors now: close our copies, put the caller's terminal
 * into raw mode (only when both we are its foreground job and the pty is in use). */
void relay_started(struct relay *r);
/* Fill at most max pollfds with what is to be waited for; returns how many. */
size_t relay_poll(struct relay *r, struct pollfd *fds, size_t max);
/* After poll(2) over those same entries. */
void relay_handle(struct relay *r, const struct pollfd *fds, size_t n);
bool relay_active(const struct relay *r);      /* false: nothing to relay, relay_poll() gives 0 */
bool relay_over(const struct relay *r);        /* the output limit was passed */
uint64_t relay_bytes(const struct relay *r);   /* output bytes moved */
int relay_lost(const struct relay *r);         /* 0, or the errno for which output could not be passed on */
void relay_resize(struct relay *r);            /* on SIGWINCH */
void relay_suspend(struct relay *r);           /* give the terminal back, before we stop ourselves */
void relay_resume(struct relay *r);            /* after SIGCONT */
/* The program has ended: move what is still in the pipes, for at most timeout_ms. */
void relay_drain(struct relay *r, int timeout_ms);
void relay_free(struct relay *r);
