/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify.h - how `caisson verify` is put together.
 *
 *   cmd_verify.c         the command: order of the checks, table, JSON, exit status
 *   cmd_verify_place.c   the places attacked: sentinels, workspace, home; and their end
 *   cmd_verify_run.c     one probe, in a sandbox or without one
 *   cmd_verify_checks.c  what must not be possible
 *   cmd_verify_limits.c  what must end in a controlled failure
 *   cmd_verify_record.c  the record for the operator
 *   cmd_verify_probe.c   the attacks themselves: our own static binary, entered again
 *                        as `caisson verify --probe WORD ARG...`
 *   cmd_verify_bomb.c    those of them that use something up
 *
 * A guarantee holds when the attack fails inside, nothing of it can be seen
 * outside, and the same attack works without a sandbox: what cannot be shown
 * to be an attack proves nothing, and counts as not held.
 */
#pragma once
#include "session/session.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROBE_DID = 0, PROBE_REFUSED = 1, PROBE_BROKEN = 2 }; /* exit status of a probe */
#define VERIFY_SECRET "CAISSON_VERIFY_SECRET"

struct verify {
	char *self;            /* our binary */
	char token[24];        /* what a leak would show */
	char dir[128];         /* everything that is made lies below here */
	char ws[160], host[160], rw[160], other[160];
	char home[4096];       /* a directory in the caller's home, "" if none can be made */
	int locks[2];          /* on dir and home, while we live */
	bool quick, json;
	protection_set off;    /* test builds only */
};

enum verdict_state { VERDICT_HELD, VERDICT_BROKEN, VERDICT_UNJUDGED };

struct verdict {
	enum verdict_state state;
	char how[240];
	char runs[3][16];      /* ids of the sandboxes that showed it */
	size_t n_runs;
	uint64_t ms;
};

struct check {
	const char *name, *guarantee;
	void (*run)(struct verify *v, struct verdict *ret);
	bool slow;
};
extern const struct check verify_attacks[], verify_limits[]; /* end with name NULL */

/* ---- cmd_verify_run.c ---- */
enum { JOB_WORDS = 12, JOB_SETS = 6 };

struct job {
	const char *words[JOB_WORDS];         /* WORD ARG..., NULL-terminated */
	const char *set[JOB_SETS][2];         /* profile keys and values */
	const char *workspace;                /* NULL: v->ws */
	bool talk;                            /* standard input is a pipe of ours */
};

struct outcome {
	bool ran;            /* the probe itself ended: status is its own */
	int status;
	char text[512];      /* what it printed, escaped */
	struct session_result res; /* of a sandbox */
};

struct running {
	pid_t pid;
	int in, out;         /* -1: none */
	struct session_result *res; /* NULL: without a sandbox */
	char raw[1024];
	size_t len;
	bool late;
};

int job_start_inside(const struct verify *v, const struct job *j, struct running *ret);
int job_start_outside(const struct verify *v, const struct job *j, struct running *ret);
bool job_expect(struct running *r, const char *word); /* has it printed that by now, or in a while? */
void job_finish(struct running *r, struct outcome *ret);
void job_inside(const struct verify *v, const struct job *j, struct outcome *ret);
void job_outside(const struct verify *v, const struct job *j, struct outcome *ret);
bool verify_interrupted(void);
void verify_catch_signals(void);

void verdict_set(struct verdict *ret, enum verdict_state state, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void verdict_run(struct verdict *ret, const struct outcome *o);
/* False, and *ret says so: the sandbox did not start or the probe did not end by itself. */
bool verdict_ran(struct verdict *ret, const struct outcome *o);

/* ---- cmd_verify_place.c ---- */
int place_make(struct verify *v, struct cs_err *err);
void place_remove(struct verify *v);
int place_put(const char *path, const char *text);
bool place_holds(const char *path, const char *text);
void place_end_orphans(void); /* whatever came to us because its parent ended */

/* ---- cmd_verify_record.c ---- */
struct record;
struct record *record_open(char *ret_path, size_t size, struct cs_err *err);
void record_check(struct record *r, const struct check *c, const struct verdict *v);
void record_run(struct record *r, const char *what, const char *word, const struct session_result *res);
void record_close(struct record *r);
void check_record(struct verify *v, struct record *r, const char *path, struct verdict *ret);

/* ---- cmd_verify_probe.c, cmd_verify_bomb.c ---- */
int verify_probe(int argc, char **argv);
int verify_bomb(int argc, char **argv);
