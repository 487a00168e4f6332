/* SPDX-License-Identifier: Apache-2.0 */
/* escape.h - attack tests: every attack has a line of its own, and beside it
 * its positive control, the same attack where what stops it is left out.
 *
 * An attack without a working control proves nothing: the program may have
 * failed because of a typing error.  So a control that does not succeed fails
 * the suite, unless the kernel or the caller, asked directly, cannot do it at
 * all; then it is skipped with what they answered.
 *
 * Both are judged by what the probe (tests/harness/probe.c) says inside and by
 * what the host's own files look like afterwards, never by our messages.
 *
 * Needs      CS_CAISSON (release), CS_CAISSON_TEST (with --off), CS_PROBE, and
 *            CS_MODE=root|user|userns; `tests/escape/run MODE` sets all four.
 *
 * In the words of a row @W is the workspace, @O a directory outside that is not
 * given to the sandbox, @S one that flags may share, @H the caller's home,
 * @P the probe inside, @I the process id of the test, @A a name of its own,
 * @M the first line of the host's /proc/meminfo.
 */
#pragma once
#include "t.h"

#include <stdint.h>
#include <sys/types.h>

enum mode { MODE_ROOT, MODE_USER, MODE_USERNS };
enum mode mode(void);
const char *mode_name(void);
/* An environment variable that has to be there. */
const char *escape_env(const char *name);

enum { WORDS = 8 };

/* How the control is taken. */
enum control {
	BY_OFF,    /* with the protections in `off` left out */
	BY_FLAGS,  /* with the flags in `instead` in place of `flags` */
	BARE,      /* outside, as the caller */
	BY_NS,     /* outside, with capabilities over fresh namespaces */
};

enum row_flag {
	ROOT_ONLY = 1,   /* control: only the host's root may do this at all */
	MAY_LACK = 2,    /* control: the machine or the caller may have nothing to attack; what it answers is the reason */
	CHANGES = 4,     /* control: the shared directory looks different afterwards */
	TOUCHES = 8,     /* attack: may change the shared directory, it was given that */
	NO_SUID = 16,    /* attack: no set-id file may be in the shared directory; control: one is */
};

struct row {
	const char *id;            /* group */
	const char *name;          /* a sentence */
	const char *class;         /* what it is an instance of */
	const char *probe[WORDS];
	const char *refused;       /* what NO may be followed by, words */
	enum control how;
	const char *off;           /* BY_OFF: control without these */
	const char *with;          /* attack: already without these, to test the layers behind */
	unsigned flag;
	const char *flags[WORDS];
	const char *instead[WORDS];
	const char *control[WORDS]; /* other words for the control */
	int cap;                    /* control: needs this capability over the host (number + 1) */
	const char *ended;          /* attack: refused too if this limit ended it before it could answer */
};

/* An attack that is not one run of the probe: two functions. */
struct scene {
	const char *id, *name, *class;
	void (*attack)(void);
	void (*control)(void);
};

#define COUNT(a) (sizeof(a) / sizeof *(a))
void add_rows(const struct row *r, size_t n);
void add_scenes(const struct scene *s, size_t n);

/* Where a test takes place; made by place_make(), removed with the test. */
struct place {
	char top[128], work[160], out[160], share[160], home[160], probe[200], name[64];
	uint64_t before, before_out; /* prints: of both directories, of the outside alone */
};
struct place *place_make(void);
/* A number that changes when anything in the outside or shared directory does. */
uint64_t place_print(const struct place *p, int with_share);
/* Is there a set-id file in the shared directory? */
bool place_has_suid(const struct place *p);
/* @X in text; static storage, one of 32. */
const char *place_text(const struct place *p, const char *text);

/* caisson run [--off OFF] FLAGS -- CMD, in the workspace.  NULL ends both lists. */
struct run {
	const char *off;           /* not NULL: the test binary without these (may be "") */
	const char *const *flags;
	const char *const *cmd;
	struct t_run_opts opts;
};
void run_in(const struct place *p, struct t_result *r, const struct run *how);
#define WORDLIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* A run that goes on while the test does something. */
struct live { pid_t pid; int in, out; char seen[8192]; size_t len; };
void live_start(const struct place *p, struct live *l, const struct run *how);
void live_start_bare(struct live *l, const char *const cmd[]);
/* Until the output holds text; fails the test after ms. */
void live_wait(struct live *l, const char *text, int ms);
void live_say(struct live *l, const char *text);
/* Waits for the end; exit status or 128+n, -1 if it has not ended in ms (it is left alone then). */
int live_end(struct live *l, int ms);
void live_kill(struct live *l);

/* The answer line of a probe ("OK ..."), or "" */
const char *answer(const struct t_result *r);
bool said(const struct t_result *r, const char *start);
void must_refuse(const struct t_result *r, const char *errnos, const char *what);
void must_work(const struct t_result *r, const char *what);

/* Small things */
void put_file(const char *path, const char *text, unsigned file_mode);
void get_file(const char *path, char *buf, size_t size);
bool exists(const char *path);
/* Does somebody hold the lock (LOCK_SH by the probe)? */
bool lock_held(const char *path);
bool lock_free_within(const char *path, int ms);
/* "reason" of a --json result, "" if there is none. */
const char *json_reason(const char *path);
/* Does the release build say that this protection is on here? */
bool is_on(const struct place *p, const char *protection);
bool have_cap(int cap);
/* What sandboxes left on the host: mounts, and control groups of ours with nobody in
 * them that were not there at first.  Call leftovers_before(), do things, ask. */
void leftovers_before(void);
void leftovers_none(void);
void leftovers_control(void); /* that the counting counts */
/* The test goes on in mount (and, if it must, user) namespaces of its own; shared: propagation on. */
void own_mounts(bool shared);
