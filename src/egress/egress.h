/* SPDX-License-Identifier: Apache-2.0 */
/* egress.h - the network boundary, seen from who starts sandboxes.
 *
 * What it knows      how a profile's network becomes addresses, ports, files and
 *                    variables of a sandbox, and how the boundary is started and
 *                    spoken to.  The boundary itself is a program of its own,
 *                    caisson-edge (egress/edge/), which serves any number of sandboxes.
 * May include        base/, sys/, netpolicy/, profile/.
 * Trust              the profile is the operator's.  What the boundary says is ours, but it
 *                    reads hostile bytes all day: it is taken as bounded text and numbers.
 * Ownership          egress_new() and egress_box_new() give objects that the caller frees;
 *                    a box goes before its egress.
 * Failure            fail closed: without the boundary a sandbox's network answers nothing.
 *
 * The boundary starts when something first happens that needs it: a lookup or a
 * connection waits in a socket meanwhile.  Only a certificate of its own, or ports to
 * publish, start it before the sandbox.  If it dies it is started again in the same way, with
 * the rules as they were changed; with certificates it is not, because those inside trust
 * the old one, and with budgets, or when what was reached is to be told, it is not, because
 * nobody knows any more.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"
#include "sys/sys.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct egress;
struct egress_box;

struct egress_box_opts {
	const char *id;
	const struct profile *profile;
	bool learn;             /* every public name and port is allowed, and noted */
	bool reached;           /* what was reached is told at the end, as with learn */
	int log;                /* events as JSON lines go there; -1: nowhere.  Stays the caller's. */
	const int *rules;       /* the network as another box's is now (egress_box_rules()); NULL: the profile's own */
	const char *control;    /* where `caisson net` finds it: a socket is made at this path; NULL: nowhere */
};

enum { EGRESS_FILES_MAX = 24 };

/* What the sandbox is to have.  Lives as long as the box. */
struct egress_plan {
	const struct sys_net_range *addresses, *ranges;
	size_t n_addresses, n_ranges;
	const uint16_t *ports;
	size_t n_ports;
	struct egress_file {
		const char *path;
		const char *data;
		size_t len;
	} files[EGRESS_FILES_MAX];
	size_t n_files;
	struct cs_strv env;     /* NAME=VALUE: placeholders, and where trust is to be found */
};

struct egress *egress_new(void);
void egress_free(struct egress *e);
/* In a forked child: neither the process nor the sockets' names are its own; free it then. */
void egress_forget(struct egress *e);
int egress_box_new(struct egress *e, const struct egress_box_opts *o, struct egress_box **ret, struct cs_err *err);
/* The rules as they are, changes while it runs included; the caller closes it. */
int egress_box_rules(const struct egress_box *b);
const struct egress_plan *egress_box_plan(const struct egress_box *b);
/* The sandbox's network, as sandbox_take_network() gives it: namespace, UDP, TCP, listeners.  Taken. */
void egress_box_serve(struct egress_box *b, const int *take_fds, size_t n);
/* The program is about to connect there (a stream, or datagrams): a listener is made if the policy wants one.
 * true: it is ours to serve or to refuse, and is told at the end. */
bool egress_box_connecting(struct egress_box *b, const void *sockaddr, size_t len, bool stream);
void egress_box_free(struct egress_box *b);

/* Readable when egress_handle() has something to do. */
int egress_fd(const struct egress *e);
void egress_handle(struct egress *e);

#define EGRESS_KINDS(X)          \
	X(LOOKUP, "lookup")      \
	X(CONNECT, "connect")    \
	X(REQUEST, "request")    \
	X(BUDGET, "budget")      \
	X(REACHED, "reached") /* not a refusal: learnt, or told at the end */

enum egress_kind {
#define X(id, name) EGRESS_##id,
	EGRESS_KINDS(X)
#undef X
};
const char *egress_kind_name(enum egress_kind k);

/* One line of what happened, with how often.  All text is escaped already. */
struct egress_told {
	uint32_t kind, count;
	char what[280];   /* "api.example.com:8080", "GET api.example.com/x" */
	char reason[160];
	char fix[192];    /* "" when nothing would allow it; of REACHED the rule that suffices */
};
struct egress_totals {
	uint64_t bytes_in, bytes_out;
	uint32_t connections, requests, lookups, refused, masked, more; /* more: different refusals that are not listed */
};
/* Ends the box's network and tells what it did; visit may be NULL. */
void egress_box_end(struct egress_box *b, struct egress_totals *ret, void (*visit)(const struct egress_told *t, void *arg), void *arg);
/* Says why the boundary is not there although it should be, or NULL. */
const char *egress_trouble(const struct egress *e);

/* Does the boundary start here, with all it needs? */
int egress_probe(struct cs_err *err);

/* One request to a running boundary by its control socket: "show", "allow RULE".  The reply begins with "ok\n", or is
 * an error. */
int egress_control(const char *path, const char *request, struct cs_buf *reply, struct cs_err *err);

/* ---- what the caller and caisson-edge say to one another ---- */

/* One SOCK_SEQPACKET message: this head, then text; descriptors beside it. */
struct egress_message {
	uint32_t what;
	uint32_t box;
	uint32_t a, b;
};
enum egress_what {
	/* to the edge */
	EGRESS_OPEN,      /* text: id NUL placeholders (NAME=TEXT NUL ...); a: flags; fds: profile YAML, to which changes are written [, log] */
	EGRESS_SERVE,     /* fds: [control,] namespace, UDP, TCP, listeners; a: 1 if control is there */
	EGRESS_WANT,      /* text: a sockaddr */
	EGRESS_END,
	/* from it */
	EGRESS_OK,        /* to OPEN, with a: 1: fds: PEM bundle, JKS; to SERVE; to WANT, a: how many listeners were dropped */
	EGRESS_ERROR,     /* a: code; text */
	EGRESS_TOLD,      /* to END: struct egress_told, any number, then */
	EGRESS_TOTALS,    /* struct egress_totals */
};
enum { EGRESS_LEARN = 1, EGRESS_LOG = 2, EGRESS_TELL_REACHED = 4, EGRESS_FDS_MAX = 72, EGRESS_TEXT_MAX = 32768 };
int egress_send(int sock, const struct egress_message *m, const void *text, size_t len, const int *fds, size_t n_fds);
/* Length of the text (NUL-terminated in a buffer of EGRESS_TEXT_MAX + 1), -1: errno, or EPIPE at the end.  *n_fds in: room. */
ssize_t egress_receive(int sock, struct egress_message *m, char *text, int *fds, size_t *n_fds);

/* The ranges that names get their addresses from. */
#define EGRESS_NET4      "198.18.0.0" /* /15: benchmarking, never routed */
#define EGRESS_NET6      "fdca:1550::" /* /64 */
enum { EGRESS_BITS4 = 15, EGRESS_BITS6 = 64 };
