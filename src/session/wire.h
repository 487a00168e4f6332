/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - what a client and a session's keeper say to one another.
 *
 * Frames over a Unix stream socket in a directory of the user's own: a head, a
 * bounded payload and, with an EXEC, three descriptors.  Both ends are this
 * program, run by the same user; sizes are checked all the same.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

enum wire_what {
	/* to the keeper */
	WIRE_EXEC = 1,  /* a: WIRE_TTY and WIRE_BACKGROUND, b: ms it may take; payload: words; three descriptors */
	WIRE_SIGNAL,    /* a: to the step that runs */
	WIRE_ROLLBACK,  /* a: step */
	WIRE_FORK,
	WIRE_END,
	/* to the client */
	WIRE_STARTED,
	WIRE_NOTE,      /* payload: a line for the person */
	WIRE_EXIT,      /* a: exit status for the client, b: step */
	WIRE_OK,        /* payload: an id, or nothing; to END b: enum profile_commit */
	WIRE_ERROR,     /* a: enum cs_code, payload: message */
	WIRE_STOPPED,   /* the step was stopped from the keyboard */
};
enum { WIRE_TTY = 1, WIRE_BACKGROUND = 2, WIRE_MAX = 2 << 20 };

struct wire {
	uint32_t what, a;
	uint64_t b;
	uint32_t len, zero;
};

int wire_send(int fd, const struct wire *w, const void *payload, const int *fds, size_t n_fds);
/* One whole frame. ret must have a maximum; n_fds tells how many fit and how many came.  0: the peer is gone. */
int wire_receive(int fd, struct wire *w, struct cs_buf *ret, int *fds, size_t *n_fds);

/* The words of an EXEC: two counts, then the command, its variables and its directory, each ending in NUL. */
struct wire_words {
	char **argv, **env;  /* they point into the payload; env starts with the session's own */
	const char *cwd;
	uint32_t argc, envc;
};
int wire_words(char *data, size_t len, char *const *own, struct wire_words *ret, struct cs_err *err);
void wire_words_done(struct wire_words *w);
