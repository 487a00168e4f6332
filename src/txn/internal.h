/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - how transactions are put together.
 *
 *   store.c     where they are kept
 *   keep.c      one of them in its store: begin, lock, rest, throw away
 *   list.c      finding and listing them, the log, the limits of age and size
 *   head.c      what is written down at the start
 *   act.c       every call that changes the disk, each behind a fault point
 *   scan.c      from a layer to a list of changes
 *   origin.c    which of those were only renamed, or only linked to
 *   judge.c     what is held back, and where the workspace was changed meanwhile
 *   done.c      what earlier commits of the same transaction did
 *   compare.c   whether two files differ, and in what
 *   xattrs.c    extended attributes, by directory and name
 *   plan.c      from changes and a verdict to a list of steps
 *   journal.c   that list on disk, and back, trusting nothing
 *   apply.c     one step, forth or back, as often as you like
 *   commit.c    commit, undo
 *   recover.c   what a crash left
 *   steps.c     savepoints: layers over one another
 *   merge.c     two layers become one
 *   copy.c      a file or a layer, copied
 *   import.c    a layer that was kept in memory comes to disk
 *   patch.c, rename.c   for people to read
 *
 * Layers are overlayfs upper directories: a character device 0:0 is a deleted
 * name, the attribute "opaque" cuts a directory off from the base, "redirect"
 * says which directory of the base a renamed one is.  As root these attributes
 * are trusted.overlay.*, in a user namespace user.overlay.*; both are read.
 */
#pragma once
#include "base/cleanup.h"
#include "base/fault.h"
#include "sys/sys.h"
#include "base/text.h"
#include "txn/txn.h"

#include <time.h>

enum {
	TXN_DEPTH_MAX = 2000,       /* directories in one another */
	TXN_CHANGES_MAX = 4000000,
	TXN_XATTR_MAX = 1 << 18,    /* all attributes of one directory */
};

struct txn_stamp {
	int64_t sec;
	uint32_t nsec;
};

/* What is known of the start, in head after the checked part; written once the program is about to run. */
struct txn_start {
	struct txn_stamp stamp;     /* an edit from here on has a ctime at or after it */
	int64_t boot_offset;        /* realtime minus boottime, ms: tells if the clock was set back */
	uint64_t boot_id;
	uint64_t pid, pid_start;    /* process 1 of the sandbox */
	uint32_t crc;               /* of the above: a damaged one counts as none */
};

struct txn_store {
	int dir;
	char *path;
	bool inside;                /* it lies in the workspace itself: no layer can stand in it */
};

struct txn {
	struct txn_about about;
	struct txn_store store;
	struct txn_start start;
	struct txn_stamp floor;     /* coarse clocks: txn_settle() waits until time is past it */
	bool coarse;
	int dir, ws, head;          /* head holds the lock */
	char key[24];               /* the workspace's folder in the store */
	bool live;                  /* stands in live/, else in its workspace's folder */
	uint32_t layer, steps;      /* of a session: the newest of each */
};

/* ---- head.c ---- */
int head_write(struct txn *t, struct cs_err *err);
int head_read(int fd, struct txn *t, struct cs_err *err);
/* The same from memory: what the fuzzer calls. */
int head_parse(const char *data, size_t size, struct txn *t, struct cs_err *err);
void head_put_start(struct txn *t);
void head_stamp(struct txn *t);
int64_t head_boot_offset(void);
uint64_t head_boot_id(void);

/* ---- store.c: where ---- */
uint64_t txn_hash(const char *text);
void store_key(char ret[24], const char *workspace);
/* The store for a workspace, made if need be. */
int store_for(const char *workspace, int ws, struct txn_store *ret, struct cs_err *err);
void store_done(struct txn_store *s);
typedef int (*store_visit)(const struct txn_store *s, void *arg);
/* Every store that may hold transactions of the directory or of one above it (NULL: of any workspace
 * known). Stops at non-zero and returns it. */
int store_each(const char *dir, store_visit visit, void *arg);
int store_open_dir(const struct txn_store *s, const char *name, bool make);

/* ---- keep.c: one transaction in its store ---- */
int store_lock(int fd);                               /* 0; -1: somebody has it */
int store_rest(struct txn *t, struct cs_err *err);    /* from live/ to its workspace's folder */
int store_wake(struct txn *t, struct cs_err *err);    /* and back */
void store_log(const struct txn *t, const char *event, const char *rest);
/* Opens STORE/folder/id. Locked, or CS_E_CONFLICT when somebody works on it. */
int store_open_txn(const struct txn_store *s, const char *folder, const char *id, struct txn **ret, struct cs_err *err);
int store_trash(struct txn *t, struct cs_err *err);
/* In the background, if there is anything. */
void store_empty_trash(const struct txn_store *s);

/* ---- act.c: -1 and errno on failure ---- */
int act_write(int fd, const void *data, size_t size);
int act_pwrite(int fd, const void *data, size_t size); /* at the start */
int act_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int act_mkdir(int dir, const char *name, mode_t mode);
int act_whiteout(int dir, const char *name);
int act_unlink(int dir, const char *name, int flags);
int act_sync_fs(int fd);
int act_sync(int fd);
int act_chmod(int fd, mode_t mode);
int act_chmod_at(int dir, const char *name, mode_t mode);
int act_chown(int fd, uid_t uid, gid_t gid);
int act_times(int fd, const struct timespec t[2]);
int act_setxattr(int fd, const char *name, const void *value, size_t size);
int act_delxattr(int fd, const char *name);
int act_setxattr_at(int dir, const char *name, const char *attr, const void *value, size_t size);
int act_delxattr_at(int dir, const char *name, const char *attr);
int act_remove_tree(int dir, const char *name);
/* "a/b/c" beneath root: its parent directory, never through a symlink or into another mount; *ret_name
 * points at the last name. */
int act_parent(int root, const char *path, const char **ret_name);
int act_open_dir(int root, const char *path);
/* The same for paths that come in the order of the tree: the last directory stays open.  It is found by its
 * path: forget it when it may have gone elsewhere. */
struct near_dir {
	int root, fd;
	char *dir;
};
int near_parent(struct near_dir *c, const char *path, const char **ret_name);
void near_forget(struct near_dir *c);

/* ---- scan.c ---- */
bool layer_is_whiteout(const struct stat *st);
/* overlayfs's attribute of dir/name: its length, -1 if it has none. */
ssize_t layer_xattr(int dir, const char *name, const char *what, char *buf, size_t size);
/* How the list of lower directories is walked, newest first; the last is the base. */
struct scan_layers {
	int upper;
	const int *lower;
	size_t n_lower;
	bool quick;              /* a file with another time counts as changed, unread */
	const struct done *done; /* what earlier commits of the same transaction did; NULL: nothing */
};
/* start: edits of the base from then on are conflicts; NULL: none are. */
int scan_layer(const struct scan_layers *l, const struct txn_start *start, struct txn_changes *ret, struct cs_err *err);
int scan_names(int dir, struct cs_strv *ret); /* sorted */
void path_cut(struct cs_buf *b, size_t len); /* back to what it was before something was appended */

/* ---- origin.c ---- */
/* A renamed file has no base at its place: it is not one that somebody deleted. */
void origin_find_renamed(const struct scan_layers *l, const struct txn_start *start, struct txn_changes *list);
/* A file with a second name that is not in the list is not a change. */
void origin_drop_unlinked(struct txn_changes *c);

/* ---- done.c: what earlier commits of the same transaction did; NULL: nothing ---- */
struct done {
	struct cs_strv paths, touched; /* sorted; touched: directories that something was moved in or out of */
	struct txn_stamp after;        /* changes by others since then have a ctime at or after it */
	int undo;                      /* what was taken out of the base; -1: nothing */
};
int done_read(const struct txn *t, struct done *ret, struct cs_err *err);
void done_done(struct done *d);
bool done_covers(const struct done *d, const char *path);  /* it, or a directory above it, was committed */
bool done_touched(const struct done *d, const char *path, const struct stat *st); /* its ctime is our own doing */

/* ---- compare.c ---- */
struct compared {
	int dir;
	const char *name;
	const struct stat *st;
	bool plain;          /* of the first: it is known to have no attributes */
};
/* TXN_* bits in which the two differ; both exist and have the same type. -1 with errno. */
int compare_entry(const struct compared *a, const struct compared *b);
int compare_stat(const struct stat *a, const struct stat *b); /* as far as that tells */

/* ---- xattrs.c: of dir/name, following no symlink; -1 with errno ---- */
ssize_t xattrs_list(int dir, const char *name, char *ret, size_t size);
ssize_t xattrs_get(int dir, const char *name, const char *attr, void *ret, size_t size);
int xattrs_set(int dir, const char *name, const char *attr, const void *value, size_t size);
int xattrs_remove(int dir, const char *name, const char *attr);
/* What one look at the names tells. */
enum {
	ATTR_OWN = 1,     /* it has some that are not overlayfs's */
	ATTR_MARK = 2,    /* it has some that are to be taken off, or renamed, before it is moved */
	ATTR_CAPS = 4,
	ATTR_POSES = 8,   /* the program's own, named as overlayfs's are */
	ATTR_MANY = 16,   /* too many to be looked through; ATTR_OWN and ATTR_MARK are set, too */
	ATTR_UNREAD = 32, /* the same for another reason */
};
unsigned xattrs_look(int dir, const char *name);
/* All attributes of dir/name but overlayfs's own, escaped ones by their real name, sorted; each as
 * name, NUL, 4 bytes of length, value. */
int xattrs_read(int dir, const char *name, struct cs_buf *ret);
/* "user.overlay.x" or "trusted.overlay.x"; with *ret_real set to the name without an escape, if it is one. */
bool xattrs_is_overlay(const char *name);
/* "user.overlay." or "trusted.overlay.": the one that overlayfs uses for our layers.  The other is
 * the program's own to write, and means nothing. */
const char *xattrs_prefix(void);

/* ---- judge.c ---- */
void judge_holds(const struct txn *t, struct txn_changes *c);
bool judge_matches(const struct cs_strv *patterns, const char *path);
bool judge_listed(const struct cs_strv *paths, const char *path); /* one of them, or beneath one */
bool stamp_at_or_after(const struct timespec *ctime, const struct txn_stamp *s);

/* ---- plan.c, journal.c, apply.c ---- */
enum step_kind {
	STEP_PUT = 1,   /* from the layer into the workspace, where nothing is */
	STEP_SWAP = 2,  /* from the layer into the workspace; the old one to the undo set */
	STEP_TAKE = 3,  /* from the workspace to the undo set */
	STEP_PLACE = 4, /* from the undo set into the workspace, elsewhere: a renamed directory */
	STEP_MKDIR = 5, /* a new directory of which not everything is taken */
	STEP_META = 6,  /* mode, owner, times, attributes of a directory that stays */
	STEP_KIND_MAX
};

struct step_meta {
	uint32_t mode, uid, gid;
	struct txn_stamp atime, mtime;
	char *xattrs;       /* as of xattrs_read() */
	uint32_t xattrs_len;
};

/* A file or directory as it was when it was judged: a later edit shows. */
struct step_file {
	uint64_t ino, size;         /* of a directory its permissions are the size: to be moved it may have to be opened */
	struct txn_stamp mtime;
};

struct step {
	enum step_kind kind;
	uint32_t n;                 /* names its place in the undo set; PLACE: that of its TAKE */
	char *path;                 /* beneath the workspace */
	struct step_file was, is;   /* what stands there before, and after */
	uint32_t marked;            /* not on disk: to be moved, and has attributes of overlayfs: its mode; 0: none, or already off */
	struct step_meta old, new;  /* META: the new one is for where is.ino stands, the old one, going back, for where
				     * was.ino does; 0: not in that direction.  MKDIR has only the new one */
};

struct journal {
	bool undo;              /* the direction in which it is being applied */
	bool calm;              /* nobody had edited anything that the transaction touches: when done, or
				 * taken back, what is there is what a new commit starts from */
	bool whole;             /* and nothing was left out */
	uint32_t part;          /* the first commit of a transaction is 0, the next 1, ... */
	struct txn_stamp after; /* in a finished one: an edit since has a ctime at or after it */
	struct step *v;
	size_t n, cap;
};
struct step *journal_add(struct journal *j, enum step_kind kind, const char *path);
void journal_done(struct journal *j);
int journal_write(int dir, const char *name, const struct journal *j, struct cs_err *err); /* durable when it returns */
int journal_read(int dir, const char *name, struct journal *ret, struct cs_err *err);
/* The same from memory: what the fuzzer calls. */
int journal_parse(const char *data, size_t len, struct journal *ret, struct cs_err *err);
/* Rewrites direction and time in place: takes no space, so it works on a full disk.  Durable if it
 * turns the direction around. */
int journal_rewrite_head(int dir, const char *name, const struct journal *j, struct cs_err *err);
int journal_stamp(int dir, const char *name, struct journal *j, struct cs_err *err);

int plan_make(const struct txn *t, const struct txn_changes *c, const struct txn_verdict *v, struct journal *ret,
	      struct txn_outcome *out, struct cs_err *err);
/* Takes overlayfs's attributes off what will be moved. */
int plan_stage(const struct txn *t, const struct journal *j, struct cs_err *err);

struct applied {
	size_t lost;    /* steps for which neither the old nor the new one was found */
	size_t late;    /* replaced ones that were edited after they had been judged */
	char *first;    /* the path of the first such one */
};
/* Makes every step true, in order; or untrue, in reverse. Steps that are so already are left alone. */
int apply_journal(const struct txn *t, const struct journal *j, struct applied *ret, struct cs_err *err);

/* ---- copy.c ---- */
ssize_t read_full(int fd, char *buf, size_t size); /* less only at the end of the file */
int copy_file(int from, const char *name, const struct stat *st, int to); /* no directory; content, not attributes */
int copy_attributes(int from, const char *name, const struct stat *st, uid_t uid, gid_t gid, int to);
int copy_content(int in, int out, off_t size);   /* shared blocks where the file system can; holes stay holes */
int copy_xattrs_all(int from, const char *name, int to, const char *as);

/* Files with several names, while a tree is copied. */
struct links {
	struct linked {
		uint64_t ino;
		char *path;   /* NULL: no entry */
	} *v;
	size_t n, cap;        /* cap: a power of two */
};
/* True: to/name is another name of a copy made before.  Else path, beneath top, is where the first one comes. */
bool links_again(struct links *l, int top, const struct stat *st, int to, const char *name, const char *path);
void links_done(struct links *l);

/* ---- merge.c ---- */
enum merge_how {
	MERGE_MOVE,  /* the newer layer is used up; can be cut off and done again */
	MERGE_LINK,  /* files get another name: for layers that are only read */
	MERGE_COPY,
};
/* What the newer layer says goes over the older one; both are directories' descriptors. */
int merge_layer(int older, int newer, enum merge_how how, struct cs_err *err);
/* Takes the whiteouts out of a layer that hide nothing of the base. */
int merge_tidy(int up, int base, struct cs_err *err);

/* ---- steps.c ---- */
bool steps_any(const struct txn *t);

/* ---- commit.c ---- */
#define JOURNAL "journal"
#define DROPPED "dropped" /* what is left in `up` counts no more */
bool txn_is_dropped(const struct txn *t);
void commit_part_name(char ret[24], uint32_t part);
uint32_t commit_parts(int dir); /* finished journals */
/* From the commit point on: apply, sync, mark as done.  Recovery comes here, too. */
int commit_apply(struct txn *t, struct journal *j, struct applied *ret, struct cs_err *err);
bool commit_has_journal(const struct txn *t);
