/* SPDX-License-Identifier: Apache-2.0 */
/* act.h - a shell command, from its text to what became of it: plan, check, act.
 *
 * What it knows      which way a command takes: safe ones run at once, where nothing can be written or reached; uncertain ones
 *                    in a transaction, whose observed effects are held against the predicted ones; unsafe ones not at all,
 *                    unless the profile lets somebody be asked.  How a profile becomes a policy for the classifier, its
 *                    rows a table, and its workspace's links paths.
 * May include        everything but cli/.
 * Trust              the command's text is hostile, and so is the workspace, links in it and profiles in it included.  The
 *                    profile is the operator's; rows of it that others could have written only narrow.
 * Ownership          act_run() fills a result that act_result_done() frees; it holds the transaction's changes until then.
 *                    Nothing is printed and nobody is asked but through struct act_opts.
 * Failure            fail closed: what cannot be judged is uncertain, what cannot be asked is answered no, what cannot be
 *                    compared with the prediction counts as not predicted.
 *
 * What was judged is what runs: a command or a pipeline of literal words from our own tree and without a shell, everything else
 * by the bash whose grammar it was judged by, without start-up files, in the directory that its paths were resolved against. */
#pragma once
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "profile/profile.h"
#include "session/session.h"
#include "shell/shell.h"
#include "txn/txn.h"

/* ---- policy.c: what the classifier is to go by ---- */

struct act_policy {
	struct sh_policy policy;
	struct cs_strv strings;    /* owns what policy points to */
	struct sh_table **tables;  /* the profile's rows: first those that take the place of ours, then those that narrow */
	size_t n_tables, n_trusted;
	unsigned left;             /* how many names may still be looked at */
};
/* workspace, cwd: NULL: here.  roots: what the profile lets be read binds; else everything but secrets may be.  really: links
 * are followed. */
struct act_policy_opts {
	const struct profile *profile;
	const char *workspace, *cwd;
	bool roots, really;
	const char *const *own; /* the policy's own files, which may not be written; not copied */
	size_t n_own;
};
int act_policy_make(const struct act_policy_opts *o, struct act_policy *ret, struct cs_err *err);
void act_policy_done(struct act_policy *p);
/* As sh_classify(); rows that may only narrow have their say in a second pass, and the stricter verdict counts. */
void act_classify(struct act_policy *p, const char *text, size_t len, struct sh_verdict *ret);

/* ---- verdict.c: for programs ---- */

/* "effects" and "because", into an object that is open. */
void act_verdict_json(struct cs_json *j, const struct sh_verdict *v);
/* The whole of it, as an object; text NULL: without the command. */
void act_verdict_write(const struct sh_verdict *v, const char *text, bool pretty, struct cs_buf *out);
/* A line that is one JSON string, a command, to a line that is its verdict. */
enum { ACT_LINE_MAX = 4 << 20 };
int act_classify_line(struct act_policy *p, const char *line, size_t len, struct cs_buf *out, struct cs_err *err);

/* look.c */
bool act_look(void *arg, const char *path, unsigned how, sh_found found, void *to); /* arg: struct act_policy */

/* ---- act.c ---- */

#define ACT_WAYS(X)                                                            \
	X(REFUSED, "refused")           /* nothing was run */                  \
	X(DIRECT, "safe, without a shell")                                     \
	X(SAFE, "safe")                                                        \
	X(TRANSACTION, "transaction")
enum act_way {
#define X(id, name) ACT_##id,
	ACT_WAYS(X)
#undef X
};
const char *act_way_name(enum act_way w);

#define ACT_FATES(X)                \
	X(NONE, NULL)               /* it changed nothing, or could not */ \
	X(COMMITTED, "committed")   \
	X(PENDING, "pending")       \
	X(ROLLED_BACK, "rolled back")
enum act_fate {
#define X(id, name) ACT_FATE_##id,
	ACT_FATES(X)
#undef X
};
const char *act_fate_name(enum act_fate f); /* NULL of NONE */

/* Something that was seen to happen. */
struct act_seen {
	char *what;                /* a path beneath the workspace; HOST:PORT (escaped) */
	bool predicted;
	bool refused;              /* of a host: it was not reached, though it was tried */
	bool lookup;               /* ... a name was asked for; without a network `what` is who was asked, and the name is not known */
};
struct act_observed {
	struct act_seen *files, *hosts;
	size_t n_files, n_hosts;
	size_t expected, unexpected; /* of all of them */
	bool partly;               /* not all can be told, which counts as unexpected */
};

struct act_result {
	struct sh_verdict verdict; /* what was predicted */
	enum act_way way;
	bool asked;                /* somebody had to say yes or no */
	int exit_code;             /* the command's own; 125 refused or not started */
	struct cs_err err;         /* why it could not be run, or what it changed not be committed */
	struct session_result *run; /* NULL: nothing was run */
	struct act_observed observed;
	enum act_fate fate;
	bool failed;               /* rolled back because the command failed */
	struct txn *txn;           /* closed by act_result_done(); NULL: none */
	struct txn_changes changes;
	struct txn_outcome outcome; /* of a commit */
};

enum act_question {
	ACT_MAY_RUN,    /* it is unsafe: run it in a transaction all the same? */
	ACT_MAY_COMMIT, /* it has run: take its changes? */
};
enum act_answer { ACT_NO, ACT_YES, ACT_LATER }; /* LATER: keep the changes, pending */

struct act_opts {
	const char *text;
	const struct profile *profile; /* stays as it is */
	const char *workspace;     /* NULL: the current directory */
	bool keep_failed;          /* what a command that failed has changed is judged like any other's */
	const char *self;          /* the caisson program, for pipelines without a shell; NULL: bash runs those */
	/* NULL: nobody can be asked.  For ACT_MAY_COMMIT held changes that are wanted may be added to allow. */
	enum act_answer (*ask)(enum act_question q, const struct act_result *so_far, struct cs_strv *allow, void *arg);
	/* Its verdict is known, nothing has run yet; may be NULL. */
	void (*judged)(const struct act_result *so_far, void *arg);
	/* What a crash had left was finished; may be NULL. */
	void (*said)(const char *line, void *arg);
	void *arg;
};
/* Always fills *ret; returns its exit_code. */
int act_run(const struct act_opts *o, struct act_result *ret);
void act_result_done(struct act_result *r);
void act_result_json(const struct act_opts *o, const struct act_result *r, struct cs_buf *out);

/* ---- compare.c ---- */
/* What was changed, reached and refused, beside what was predicted.  workspace is its real path. */
void act_compare(const struct sh_verdict *v, const char *workspace, const struct txn_changes *changes, const struct session_result *run,
		 struct act_observed *ret);
void act_observed_done(struct act_observed *o);

/* ---- stages.c: a pipeline without a shell; not for people, but for act_run() inside its sandbox ---- */
#define ACT_STAGES "__stages"
int act_stages_main(int argc, char **argv);
