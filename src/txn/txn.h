/* SPDX-License-Identifier: Apache-2.0 */
/* txn.h - change sets over a directory: begin, look, commit, roll back, undo, recover.
 *
 * What it knows      a workspace (the base), a change set that overlayfs wrote
 *                    over it, how to make the base equal to what the program
 *                    saw, in one step that a crash cannot halve, and how to
 *                    take that step back.
 * May include        base/, sys/.  Never knows why a transaction is made.
 * Trust              the caller is trusted.  The content of a change set, every
 *                    name in it, and the base's content are not.  Paths are
 *                    resolved by descriptor beneath the workspace, never
 *                    through a symlink, never across a mount.
 * Ownership          txn_begin() and txn_find() give a transaction that is
 *                    locked for the caller until txn_close().
 * Failure            nothing in the workspace is touched before a complete
 *                    journal is on disk; once it is, every command that follows
 *                    finishes what was begun.  See docs/format-transaction.md.
 *
 * A transaction lives in a store, a directory on the workspace's own mount:
 *
 *   STORE/live/ID/       one that is being written or moved: locked by its owner
 *   STORE/WORKSPACE/ID/  at rest: pending or committed
 *   STORE/trash/         thrown away, not yet removed
 *   STORE/log            what became of each
 *
 * An unlocked one in live/ is what a crash left; txn_recover() takes it on.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { TXN_ID_MAX = 16 };

struct txn;

enum txn_state {
	TXN_LIVE,      /* a sandbox writes into it */
	TXN_PENDING,   /* waits for a verdict */
	TXN_COMMITTED, /* done; can be undone */
};
const char *txn_state_name(enum txn_state s);

/* What is written down once, at the start. */
struct txn_about {
	char id[TXN_ID_MAX];
	char *workspace;          /* its real path */
	char *profile, *command;  /* for people; escaped */
	struct cs_strv protect;   /* names that are asked for one by one */
	struct cs_strv allow;     /* and those that are not */
	struct cs_strv hidden;    /* paths beneath the workspace that the program could not see */
	uint64_t ino;             /* of the workspace */
	uint64_t created;         /* seconds since the epoch */
	uint32_t created_ns;
	bool steps;               /* a session with savepoints */
};
void txn_about_done(struct txn_about *a);

/* ---- one transaction ---- */

/* a->id is filled in; everything else is given.  Makes `up` and `wk` for the workspace's owner. */
int txn_begin(struct txn_about *a, struct txn **ret, struct cs_err *err);
/* The program's first process: whoever recovers waits for its end. */
void txn_started(struct txn *t, pid_t pid);
/* Waits, on kernels whose file times are coarse, until an edit can be told from one before the start. */
void txn_settle(const struct txn *t);
/* By id, or the latest of a workspace when id is NULL. */
int txn_find(const char *id, const char *workspace, struct txn **ret, struct cs_err *err);
void txn_close(struct txn *t);

const struct txn_about *txn_about(const struct txn *t);
enum txn_state txn_state(const struct txn *t);
int txn_dir(const struct txn *t);       /* holds `up` and `wk` */
int txn_workspace(const struct txn *t); /* the base */
/* No place for a layer on the workspace's mount: the program writes to memory, and
 * txn_import() copies its layer here afterwards. */
bool txn_needs_import(const struct txn *t);
int txn_import(struct txn *t, int upper, struct cs_err *err);

/* ---- what it would change ---- */

enum txn_kind { TXN_ADDED = 'A', TXN_CHANGED = 'M', TXN_DELETED = 'D', TXN_TYPE = 'T', TXN_RENAMED = 'R' };

/* Of a changed one: what differs. */
enum { TXN_CONTENT = 1, TXN_MODE = 2, TXN_OWNER = 4, TXN_TIMES = 8, TXN_XATTR = 16, TXN_TARGET = 32, TXN_LINKS = 64 };

/* Why one is held back unless it is allowed by name. */
#define TXN_HOLDS(X)                                                                                        \
	X(SPECIAL, "a device, socket or FIFO is never committed")                                           \
	X(SETID, "it is set-user-id or set-group-id")                                                       \
	X(CAPS, "it carries file capabilities")                                                             \
	X(OVERLAY, "it carries attributes of overlayfs, which could hide files from a later run")           \
	X(LINK_OUT, "a symlink that leads out of the workspace")                                            \
	X(PROTECTED, "a protected name: others execute or obey it")                                         \
	X(HIDDEN, "the program could not see what it replaces: it is hidden from it")                       \
	X(RESERVED, "this name is Caisson's own")
enum txn_hold {
	TXN_FREE,
#define X(id, text) TXN_##id,
	TXN_HOLDS(X)
#undef X
};
const char *txn_hold_text(enum txn_hold h);
bool txn_hold_can_allow(enum txn_hold h);

/* The workspace is not what the program started from. */
#define TXN_CONFLICTS(X)                                                      \
	X(EDITED, "changed in the workspace since the start")                 \
	X(CREATED, "made or replaced in the workspace since the start")       \
	X(REMOVED, "deleted in the workspace since the start")                \
	X(CLOCK, "the clock was set back: nobody can tell if it was changed")
enum txn_conflict {
	TXN_CLEAN,
#define X(id, text) TXN_##id,
	TXN_CONFLICTS(X)
#undef X
};
const char *txn_conflict_text(enum txn_conflict c);

struct txn_side {
	mode_t mode;      /* 0: not there */
	uid_t uid;
	gid_t gid;
	uint64_t size;
	int64_t mtime;    /* seconds */
	uint32_t mtime_ns;
	uint64_t ino;
};

struct txn_change {
	char *path;                 /* beneath the workspace; any bytes but NUL */
	char *from;                 /* RENAMED: where it was, else NULL */
	char *base;                 /* where the workspace has it now if elsewhere: beneath a renamed directory */
	enum txn_kind kind;
	unsigned differs;           /* TXN_CONTENT, ... of a CHANGED one */
	unsigned attrs;             /* what there is to say of the new one's extended attributes: ATTR_* of internal.h */
	struct txn_side old, new;
	enum txn_hold hold;
	enum txn_conflict conflict;
	uint32_t subtree;           /* how many changes after this one lie beneath it */
};

struct txn_changes {
	struct txn_change *v;       /* a directory before what it holds, names sorted */
	size_t n;
	size_t added, changed, deleted;
	uint64_t bytes;             /* of new content */
	size_t held, conflicts;
};
int txn_scan(struct txn *t, struct txn_changes *ret, struct cs_err *err);
/* The same for who does not ask what differs: a file with another time is not read, its content counts as changed. */
int txn_scan_quick(struct txn *t, struct txn_changes *ret, struct cs_err *err);
void txn_changes_done(struct txn_changes *c);
/* Nothing but directories whose times changed because something in them came and went. */
bool txn_changes_nothing(const struct txn_changes *c);
/* The content before and after; -1 with errno. Symlinks: as readlink(2). */
int txn_open_old(const struct txn *t, const struct txn_change *c);
int txn_open_new(const struct txn *t, const struct txn_change *c);
ssize_t txn_link_old(const struct txn *t, const struct txn_change *c, char *buf, size_t size);
ssize_t txn_link_new(const struct txn *t, const struct txn_change *c, char *buf, size_t size);

/* ---- verdicts ---- */

enum txn_side_choice { TXN_STOP, TXN_OURS, TXN_THEIRS };

struct txn_verdict {
	struct cs_strv paths;       /* only these and what is beneath; empty: all */
	struct cs_strv allow;       /* held ones that are taken; "*" for all that can be */
	/* Where both changed one: STOP changes nothing; OURS takes the workspace's, THEIRS the program's. */
	enum txn_side_choice conflicts;
	struct cs_strv ours, theirs; /* the same by path */
};

struct txn_outcome {
	size_t added, changed, deleted; /* now in the workspace */
	size_t held, left;              /* not taken: held back; not asked for */
	uint64_t bytes;
};

/* Can it be committed or undone at all? Says why not: its workspace is gone, its journal is damaged. */
int txn_check(struct txn *t, struct cs_err *err);
/* Until the commit or txn_close() nobody else commits in that workspace: what is looked at now stays true. */
void txn_lock(struct txn *t);
/* CS_E_CONFLICT: nothing was changed, and the changes say where. */
int txn_commit(struct txn *t, struct txn_changes *c, const struct txn_verdict *v, struct txn_outcome *ret, struct cs_err *err);
/* Back to pending, as if it had not been committed. conflicts names the paths that were edited since. */
int txn_undo(struct txn *t, struct cs_strv *conflicts, struct txn_outcome *ret, struct cs_err *err);
/* Stays, on disk when this returns. */
int txn_keep(struct txn *t, const struct txn_changes *c, struct cs_err *err);
/* Of a committed one: what its commits left is thrown away, and comes back only with all the rest, by an undo. */
int txn_drop_rest(struct txn *t, struct cs_err *err);
/* Thrown away at once; what is large is removed in the background. */
int txn_discard(struct txn *t, const char *why, struct cs_err *err);
/* Nothing was written: leaves no trace. */
bool txn_is_empty(const struct txn *t);

/* Where most are kept, whether or not it is there yet; NULL: nowhere. The caller's to free. */
char *txn_state_dir(void);

/* Where changes of a workspace would be kept: the directory's path (the caller's to free), a descriptor
 * of it, and whether no layer can stand there. */
int txn_place(const char *workspace, char **ret_path, int *ret_fd, bool *ret_inside, struct cs_err *err);

/* ---- all of them ---- */

struct txn_entry {
	const struct txn_about *about;
	enum txn_state state;
	bool busy;                 /* somebody works on it now */
};
typedef int (*txn_visit)(const struct txn_entry *e, void *arg);
/* Of one workspace, or of all when NULL; newest first.  Ends with the first that visit does not return 0 for. */
int txn_list(const char *workspace, txn_visit visit, void *arg);

/* Finishes or keeps what a crash left. said is called with one line for each. Returns how many. */
typedef void (*txn_said)(const char *line, void *arg);
int txn_recover(const char *workspace, txn_said said, void *arg);

/* Committed ones older than age seconds, or beyond size bytes in all (oldest first), lose their undo.  Those
 * with anything pending, if only a part of it, are named, and dropped only with pending set; they have the same
 * limits for themselves.  Returns how many were dropped. */
struct txn_gc {
	uint64_t age, size;        /* 0: no limit */
	bool pending;
};
int txn_gc(const struct txn_gc *g, txn_said said, void *arg);

/* The log's lines, oldest first: "TIME ID EVENT COUNTS WORKSPACE". */
void txn_log(const char *workspace, void (*line)(const char *text, void *arg), void *arg);

/* ---- steps: savepoints in a transaction that stays alive ---- */

/* Where the next step writes.  Layers are directories that hold `up` and `wk`. */
struct txn_savepoint {
	uint32_t layer;      /* counts from 1 */
	bool mount;          /* it must be mounted; else it is, and the last step changed nothing: it is used again */
	int store;           /* the layer to mount */
	int *lowers;         /* `up`s of older ones, newest first */
	size_t n_lowers;
};
/* mounted: which layer is now, 0: none. */
int txn_savepoint(struct txn *t, uint32_t mounted, struct txn_savepoint *ret, struct cs_err *err);
void txn_savepoint_done(struct txn_savepoint *s);
uint32_t txn_layer(const struct txn *t); /* the newest, 0: none */

struct txn_step {
	uint32_t n, layer;
	uint64_t started;    /* seconds since the epoch */
	uint64_t us;         /* it took */
	int status;          /* as of waitpid(2) */
	bool background;     /* it went on: no savepoint after it until it ended */
	bool undone;         /* rolled back since */
	bool nothing;        /* its layer holds what a later step wrote */
	char *command;       /* escaped */
};
/* Appends it to the record; n is filled in. */
int txn_step_record(struct txn *t, struct txn_step *s, struct cs_err *err);
typedef int (*txn_step_visit)(struct txn *t, const struct txn_step *s, void *arg);
int txn_steps(struct txn *t, txn_step_visit visit, void *arg, struct cs_err *err);
/* What the step changed, as far as later steps have not been merged over it. */
int txn_step_changes(struct txn *t, const struct txn_step *s, struct txn_changes *ret, struct cs_err *err);
/* Drops the layers of this step and of all after it; the next savepoint starts from what was before. */
int txn_rollback_to(struct txn *t, uint32_t step, struct cs_err *err);
/* All layers become one, as if there had been one run. */
int txn_flatten(struct txn *t, struct cs_err *err);
/* A new transaction with a copy of what this one has written. */
int txn_fork(struct txn *from, struct txn **ret, struct cs_err *err);
/* One that somebody else has locked, only to be looked at. */
int txn_peek(const char *id, struct txn **ret, struct cs_err *err);

/* ---- patch.c: two texts, line by line ---- */

struct txn_lines {
	size_t added, removed;
};
struct txn_patch_opts {
	unsigned context;          /* lines around a change */
	bool colour;
	bool escape;               /* for a terminal: control bytes become \xNN */
};
/* True if it is not text: a NUL among the first 8 KiB, or too large to be compared by lines. */
bool txn_is_binary(const char *data, size_t len);
/* Appends the hunks (no file header) that turn a into b; counts lines. Never more than a bounded
 * amount of work: very different texts come out as one removed and one added block. */
struct txn_lines txn_patch(struct cs_buf *out, const char *a, size_t a_len, const char *b, size_t b_len, const struct txn_patch_opts *o);
/* rename.c: pairs of a deleted and an added file of equal (or nearly equal) content become RENAMED. */
void txn_find_renames(const struct txn *t, struct txn_changes *c);
