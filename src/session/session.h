/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - one run: profile + sandbox + relay + limits + record, from start to end.
 *
 * What it knows      how a profile becomes a sandbox, which secrets to hide, who
 *                    is told what, where running sandboxes are recorded.
 * May include        base/, sys/, txn/, profile/, sandbox/.
 * Trust              the caller (person or script) is trusted; the workspace's
 *                    content and everything from inside is not.
 * Ownership          session_run() blocks until all of the sandbox has ended and
 *                    fills a result.  If the program wrote in the workspace, the
 *                    result holds the transaction, which the caller must judge
 *                    (txn_commit, txn_keep, txn_discard) and close.
 * Failure            fail closed: what cannot be set up is not run.
 *
 * Records: one file per running sandbox below session_dir(), named by its id,
 * locked by its supervisor for as long as it lives.  A file nobody has locked
 * is what a killed supervisor left; any later command clears it and the empty
 * control groups it names.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "egress/egress.h"
#include "profile/profile.h"
#include "sandbox/sandbox.h"
#include "txn/txn.h"

#include <stdbool.h>
#include <stdint.h>

#define SESSION_REASONS(X)                  \
	X(EXITED, "exited")                 \
	X(SIGNALLED, "signalled")           \
	X(TIMEOUT, "timeout")               \
	X(MEMORY, "memory")                 \
	X(DISK, "disk")                     \
	X(OUTPUT, "output")                 \
	X(CPU_TIME, "cpu_time")             \
	X(CANCELLED, "cancelled")           \
	X(REFUSED, "refused")               \
	X(NOT_STARTED, "not_started")

enum session_reason {
#define X(id, name) SESSION_##id,
	SESSION_REASONS(X)
#undef X
};
const char *session_reason_name(enum session_reason r);

struct session_opts {
	const struct profile *profile;
	const char *workspace;    /* NULL: the current directory */
	bool force;               /* allow / and the home directory as workspace */
	const char *cwd;          /* inside; NULL: the current directory if it is there, else the workspace */
	char *const *argv;
	const char *path;         /* PATH inside; NULL: the system's directories */
	const char *learn;        /* open to public names, and the profile that would have sufficed goes there; NULL: no */
	bool reached;             /* tell which hosts were reached, as result.network.told */
	const char *net_log;      /* every event of the network as a line of JSON; NULL: no */
	protection_set off;       /* test builds only */
};

enum { SESSION_REFUSALS_MAX = 64, SESSION_TOLD_MAX = 1024 };

struct session_spec;

/* What a session did over its network. */
struct session_network {
	bool on;
	struct egress_totals totals;
	struct egress_told *told; /* refusals, and with learn or reached what was reached */
	size_t n_told;
	bool told_cut;            /* there was more than is told */
	enum {
		SESSION_LEARN_NONE,   /* not asked for, not started, or it could not be written (trouble) */
		SESSION_LEARN_WRITTEN,
		SESSION_LEARN_KEPT,   /* nothing was learnt: what stood there stays */
	} learn;
	size_t learnt;            /* rules */
	char trouble[256];        /* "" unless the boundary failed */
};

struct session_result {
	char id[16];
	enum session_reason reason;
	int exit_code;            /* what caisson run exits with */
	int signal;               /* 0, or what ended the program */
	struct cs_err err;        /* for REFUSED and NOT_STARTED */
	uint64_t wall_ms, output_bytes;
	bool output_counted;
	struct sandbox_usage usage;
	protection_set active;
	char why_off[PROT_MAX][64];
	struct {
		struct sandbox_refusal what;
		unsigned count;
	} refusals[SESSION_REFUSALS_MAX];
	size_t n_refusals;
	unsigned refusals_more;   /* different ones beyond those */
	struct session_network network; /* session_result_done() frees it */
	size_t hidden;            /* secrets that were hidden in the workspace */
	bool hidden_partly;       /* the search for them was cut short */
	struct sandbox_step steps[32];
	size_t n_steps;
	struct txn *txn;          /* NULL: nothing was written, or it was not to be kept */
	/* What became of it; the caller fills this in. */
	struct {
		char id[TXN_ID_MAX];
		const char *fate;     /* "committed", "pending", "rolled back"; NULL: there was none */
		size_t added, changed, deleted, held, conflicts;
		uint64_t bytes;
	} change;
};

void session_result_done(struct session_result *r);
/* Throws the result's transaction away, if there is one. */
void session_discard(struct session_result *r);
/* Always fills *ret; returns its exit_code. */
int session_run(const struct session_opts *o, struct session_result *ret);
/* What a command exits with whose program was not started: 125, 126 or 127.  Never 1, which a conflict is elsewhere
 * and the program's own here. */
int session_exit_unstarted(enum cs_code code);
void session_result_json(const struct session_opts *o, const struct session_result *r, struct cs_buf *out);
/* --dry-run: the plan in words. */
int session_explain(const struct session_opts *o, struct cs_buf *out, struct cs_err *err);

/* ---- change.c, signals.c: what a run and a session share ---- */
int session_txn_begin(const struct session_opts *o, const struct session_spec *s, bool steps, struct txn **ret, struct cs_err *err);
char *session_command_line(char *const *argv); /* escaped; the caller's to free */
/* Blocks what is to be passed on to the program; readable when one came. */
int session_open_signals(void);

/* ---- keeper.c, client.c: a sandbox that stays alive and takes commands, step by step ---- */

/* Starts a keeper in the background, which outlives the caller; returns when the sandbox stands. */
int session_begin(const struct session_opts *o, char ret_id[TXN_ID_MAX], struct cs_err *err);

struct session_step {
	const char *id;
	char *const *argv;
	const struct cs_strv *env;  /* NAME=VALUE, on top of the session's own */
	const char *cwd;            /* inside; NULL: the session's */
	bool background;            /* what it leaves running stays */
	uint64_t timeout;           /* ms; 0: the profile's */
};
/* Runs one; *ret_exit is what the caller exits with, *ret_step its number. */
int session_exec(const struct session_step *s, int *ret_exit, uint32_t *ret_step, struct cs_err *err);
/* Back to before a step. */
int session_rollback(const char *id, uint32_t step, struct cs_err *err);
int session_fork(const char *id, char ret_id[TXN_ID_MAX], struct cs_err *err);
/* Ends it; what it wrote is pending then, or (*ret_empty) nothing. *ret_mode: its profile's word on that. */
int session_end(const char *id, bool *ret_empty, enum profile_commit *ret_mode, struct cs_err *err);
bool session_is_live(const char *id);
void session_clear_sockets(void); /* of keepers that were killed */
/* The keeper's socket. */
int session_socket_path(const char *id, char *ret, size_t size, struct cs_err *err);

/* ---- net.c: `caisson net` ---- */
int session_net_path(const char *id, char *ret, size_t size, struct cs_err *err);
/* One request to the network boundary of a running sandbox; the reply begins with "ok\n". */
int session_net_call(const char *id, const char *request, struct cs_buf *reply, struct cs_err *err);

/* ---- spec.c: from a profile and options to a sandbox's spec ---- */
struct session_spec {
	struct sandbox_spec spec;
	struct sandbox_bind *binds;
	struct cs_strv strings;   /* owns what spec points to */
	struct cs_strv env, hide;
	char *workspace, *cwd;
	struct sandbox_bind *layer; /* the workspace's bind if it is one, else NULL */
	const char *hide_partly;  /* a directory that was too large to search through, or NULL */
};
int session_spec_make(const struct session_opts *o, struct session_spec *ret, struct cs_err *err);
void session_spec_env(struct session_spec *s, const char *assignment); /* NAME=VALUE, instead of one that is there */
void session_spec_done(struct session_spec *s);

/* hide.c: names below dir that match the profile's patterns, as absolute paths. Sets *ret_partly
 * when the search was cut short. */
int session_find_hidden(const char *dir, const struct cs_strv *patterns, struct cs_strv *ret, bool *ret_partly, struct cs_err *err);
/* closed.c: what below path not everybody may read, as absolute paths; likewise. */
void session_find_closed(const char *path, struct cs_strv *ret, bool *ret_partly);

/* ---- registry.c ---- */
struct session_entry {
	char id[16];
	pid_t supervisor;
	uint64_t started;         /* seconds since the epoch */
	char profile[64];
	char workspace[256];
	char command[256];        /* escaped */
	bool alive;
	struct cs_strv cgroups;
};
typedef void (*session_visit)(const struct session_entry *e, void *arg);

int session_dir(char *ret, size_t size, struct cs_err *err);
int session_own_dir(const char *path, struct cs_err *err); /* makes it; CS_E_DENIED if it is not ours alone */
void session_new_id(char ret[16]);
/* Records a running sandbox; the returned descriptor holds the lock and *ret_path names the file. */
int session_record(const char *id, const struct session_opts *o, const char *workspace, const char *const *cgroups,
		   size_t n_cgroups, char *ret_path, size_t size);
int session_list(session_visit visit, void *arg, struct cs_err *err);
/* 1: it has ended; 0: it was told to, and has not within seconds.  CS_E_NOT_FOUND if none such runs. */
int session_kill(const char *id, int sig, struct cs_err *err);
/* Clears what killed supervisors left; looks at no more than max entries (0: all), and not at `own`,
 * which is alive (NULL: none). Returns how many. */
int session_gc(unsigned max, const char *own, struct cs_err *err);
