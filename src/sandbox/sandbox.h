/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h - the interface every isolation back end implements.
 *
 * What it knows      how to start a program that can do only what a spec says,
 *                    how to end it, and what became of it.
 * May include        base/, sys/, profile/ (for names and limits).
 * Trust              a spec is built by us from a profile and flags; everything
 *                    the program inside says or does is hostile.
 * Ownership          sandbox_start() gives a sandbox the caller frees with
 *                    sandbox_free(), which also ends it.  A spec and all it
 *                    points to must live until sandbox_start() returns.
 * Threads            none: the caller must be single-threaded at sandbox_start(),
 *                    because the native back end goes on after clone without exec.
 * Failure            nothing is started unless every required protection is
 *                    active; sandbox_start() reports which was missing and why.
 */
#pragma once
#include "base/err.h"
#include "profile/profile.h"
#include "sys/sys.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum sandbox_bind_kind {
	SANDBOX_RO,       /* host path, read-only, recursively */
	SANDBOX_RW,       /* host path, written for real */
	SANDBOX_LAYER,    /* host path below a private layer that takes the writes */
};

struct sandbox_bind {
	enum sandbox_bind_kind kind;
	const char *source;  /* absolute host path */
	const char *target;  /* absolute path inside; NULL: the same */
	bool optional;       /* a missing source is skipped, not an error */
	/* SANDBOX_LAYER in memory over a system directory: as root all of it is the program's, with `installs`
	 * by the owners it has; else the directories at and below this path in it ("": all) are, and what they
	 * hold.  NULL: it is none. */
	const char *scratch;
	/* SANDBOX_LAYER on disk.  0 (which is never a store): the writes go to private memory and end
	 * with the sandbox.  Else a descriptor of a directory that holds `up` (mode and owner of the
	 * source) and `wk` (same owner), which take them; inside the source it must be hidden.  Nothing there is synced: the
	 * caller does that, once the sandbox has ended.  As root what is written belongs to the source's
	 * owner on disk.  If overlayfs cannot work there sandbox_start() fails with CS_E_UNSUPPORTED. */
	int store;
	const int *lowers;   /* with a store: older `up`s between it and the source, newest first */
	size_t n_lowers;
	bool redirect;       /* as root: let directories of the source be renamed, which leaves notes
			      * (redirects) in `up`; only without lowers, and `up` cannot become one */
};

/* A file that the sandbox finds at a path, read-only, in the place of the host's or of none. */
struct sandbox_file {
	const char *path;    /* absolute; a missing directory is made where the root is the sandbox's own */
	const char *data;
	size_t len;
};

/* A network that ends at the caller: what is sent to one of the ranges is delivered to listeners that
 * the caller holds.  There is no route to anywhere else. */
struct sandbox_network {
	const struct sys_net_range *addresses; /* loopback's own, besides 127.0.0.1 and ::1 */
	size_t n_addresses;
	const struct sys_net_range *ranges;
	size_t n_ranges;
	const uint16_t *ports;                 /* listened on, at every address */
	size_t n_ports;                        /* at most SANDBOX_PORTS_MAX */
	/* The program is about to connect to an address that is not loopback's: it waits until this returns.
	 * For telling and preparing, not for deciding: it may have changed it meanwhile.  false: it is
	 * nobody's, and to be told as refused. */
	bool (*connecting)(const void *sockaddr, size_t len, bool stream, void *arg);
	void *arg;
};
enum { SANDBOX_PORTS_MAX = 64, SANDBOX_NET_FDS = 3 + SANDBOX_PORTS_MAX };

struct sandbox_spec {
	const char *id;
	char *const *argv;
	char *const *env;
	const char *cwd;                  /* inside */
	const char *path;                 /* PATH to look argv[0] up in, inside */
	const struct sandbox_bind *binds;
	size_t n_binds;
	const char *const *hide;          /* absolute paths inside that must not be there */
	size_t n_hide;
	const struct sandbox_file *files;
	size_t n_files;
	const struct sandbox_network *network; /* NULL: a loopback of its own and nothing else */
	const struct profile_limits *limits;
	enum profile_proc proc;
	int stdio[3];                     /* become 0, 1, 2 */
	bool tty;                         /* stdio[0] is a terminal of ours: make it the controlling one */
	protection_set require;
	protection_set off;               /* left out on purpose; 0 but in test builds */
	/* Packages are to be installed in the system's layers: the program is root inside, with the capabilities of an
	 * installer over its own ids alone, a /var and a /run to write to, and the system's accounts.  As root it has
	 * 65,536 ids that are nobody's; else its caller's subordinate ones, if there are any and nothing
	 * but the system can be written; else it is the only one, and can give no file away. */
	bool installs;
	bool one_id;                      /* then that one in any case */
	bool stem;                        /* no program: argv to tty are not looked at; it waits for sandbox_exec() */
	bool notify;                      /* report refused system calls through sandbox_refusal_fd() */
	/* Called once with the control groups that are about to be made, so that they can be
	 * recorded before they exist.  NULL: not wanted. */
	void (*record)(const char *const *cgroups, size_t n, void *arg);
	void *record_arg;
};

/* A program to run in a sandbox that waits for commands (a stem). */
struct sandbox_command {
	char *const *argv;
	char *const *env;
	const char *cwd;     /* inside */
	const char *path;    /* PATH to look argv[0] up in, inside */
	int stdio[3];        /* become 0, 1, 2 */
	bool tty;            /* one of them is a terminal of ours: gets a session, and it as the controlling one */
};

enum sandbox_refusal_kind { SANDBOX_REFUSED_CALL, SANDBOX_REFUSED_CONNECT };

/* One thing the program was refused. */
struct sandbox_refusal {
	enum sandbox_refusal_kind kind;
	char what[96];       /* "ptrace"; of CONNECT "connect to 192.0.2.1:443" or "look up a name (192.0.2.1:53)" */
	const char *by;      /* "seccomp", "netns" */
	const char *fix;     /* how to allow it, or NULL when nothing does */
	pid_t pid;
};

struct sandbox_usage {
	uint64_t cpu_ms;
	uint64_t memory_now, memory_peak;  /* bytes; 0 when not known */
	uint64_t disk_now, disk_limit;     /* bytes in private files */
	uint64_t inodes_now, inodes_limit;
	bool disk_sampled;                 /* no file system holds these limits: who samples must */
	uint64_t processes;
	uint64_t pids_denied;              /* forks refused by the process limit */
	bool oom;                          /* the memory limit killed something */
};

struct sandbox_exit {
	bool started;        /* false: err says why the program never ran */
	bool killed_outside; /* the whole sandbox was killed, not its program */
	int status;          /* as of waitpid(2), if started and not killed_outside */
	struct cs_err err;
};

/* A step of the start with its time since sandbox_start() was entered. */
struct sandbox_step {
	const char *name;
	uint64_t ns;
};

struct sandbox;

int sandbox_start(const struct sandbox_spec *spec, struct sandbox **ret, struct cs_err *err);
/* What was written in the one layer that is kept in private memory, also after the end; -1 if there is none. */
int sandbox_layer(struct sandbox *s);
/* Can a layer be kept in that directory?  Makes and removes a directory in it. */
int sandbox_layer_probe(int dir, struct cs_err *err);
/* Of a sandbox with a network, once: its namespace, sockets for UDP and TCP at 127.0.0.1:53, then the listeners
 * in the order of the ports; the caller's.  How many; 0: not yet. Comes with sandbox_event_fd(). */
size_t sandbox_take_network(struct sandbox *s, int ret[SANDBOX_NET_FDS]);
void sandbox_free(struct sandbox *s);
/* In a forked child of the caller: lets go of what it holds of the sandbox, which stays the parent's. */
void sandbox_forget(struct sandbox *s);

int sandbox_pidfd(const struct sandbox *s);      /* readable when all of it has ended */
pid_t sandbox_pid(const struct sandbox *s);      /* its first process, as the host sees it */
int sandbox_refusal_fd(struct sandbox *s);       /* readable when a refusal waits; -1 if none ever will */
/* 1: *ret filled. 0: nothing there now. */
int sandbox_next_refusal(struct sandbox *s, struct sandbox_refusal *ret);
/* Readable when the program stopped (Ctrl-Z); reading is sandbox_take_stop(). */
int sandbox_event_fd(const struct sandbox *s);
bool sandbox_take_stop(struct sandbox *s);       /* true once per stop */
void sandbox_signal(struct sandbox *s, int sig); /* to the program */
void sandbox_kill(struct sandbox *s);            /* all of it, now */
/* The inside has hung up: take what is to be told at the end while it is being torn down. */
void sandbox_look_last(struct sandbox *s);
/* Waits for the end of everything inside and clears what the host kept for it. */
void sandbox_wait(struct sandbox *s, struct sandbox_exit *ret);
/* The workspace's files could not be given to the sandbox's user: they can be read, not changed. */
bool sandbox_unmapped(const struct sandbox *s);
bool sandbox_has_block(const struct sandbox *s); /* of ids: see the spec's installs */
bool sandbox_cleared(const struct sandbox *s);   /* after the wait: no control group is left */
void sandbox_usage(struct sandbox *s, struct sandbox_usage *ret);
protection_set sandbox_active(const struct sandbox *s);
const char *sandbox_why_off(const struct sandbox *s, enum protection p); /* NULL if active or unknown */
size_t sandbox_steps(const struct sandbox *s, struct sandbox_step *ret, size_t max);

/* ---- of a sandbox started with spec.stem ----
 *
 * It lives until sandbox_kill(), or until the caller does.  sandbox_event_fd() is readable when
 * there may be something for sandbox_take_ended() or sandbox_take_stop(). */

/* Starts a command; any number may run.  Returns once it has been executed: CS_E_NOCMD and
 * CS_E_NOEXEC if it could not be, CS_E_INVALID if its directory is not there.  The first call
 * waits until the sandbox stands, and reports what kept it from that. */
int sandbox_exec(struct sandbox *s, const struct sandbox_command *c, pid_t *ret_pid_inside, struct cs_err *err);
/* A command has ended, with a status as of waitpid(2): once for each; false: none (yet). */
bool sandbox_take_ended(struct sandbox *s, pid_t *pid_inside, int *status);
/* To a command; what a keyboard sends goes to its process group.  Nothing if it has ended. */
void sandbox_signal_command(struct sandbox *s, pid_t pid_inside, int sig);
size_t sandbox_processes(struct sandbox *s); /* how many there are besides ours; zombies do not count */
/* Names up to 256 processes besides ours (names are hostile text), then ends all.  How many there
 * were, or a negative code.  Commands among them are told by sandbox_take_ended(), too. */
int sandbox_sweep(struct sandbox *s, void (*name)(const char *comm, pid_t pid_inside, void *arg), void *arg);
/* Ends all without a count or a name, and what starts commands with them, until sandbox_ready():
 * for a layer that is to follow.  sandbox_exec() and sandbox_push_layer() make it ready themselves. */
int sandbox_clear(struct sandbox *s);
void sandbox_ready(struct sandbox *s);
/* Puts a new store and lowers (as in struct sandbox_bind; at most 250) in the place of the old ones,
 * at a layer with a store.  CS_E_CONFLICT while a process besides ours is there.  On failure the
 * old layer stays, or (CS_E_SYSTEM) nothing may be there: end the sandbox then. */
int sandbox_push_layer(struct sandbox *s, size_t bind, int store, const int *lowers, size_t n_lowers, struct cs_err *err);
