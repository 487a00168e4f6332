/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.h - how `caisson diff` is put together.
 *
 *   cmd_diff.c        the command: options, which transaction, which paths, the pager
 *   cmd_diff_expand.c what a replaced or renamed directory held, file by file
 *   cmd_diff_read.c   the two sides of a change, and names
 *   cmd_diff_patch.c  a patch as git's
 *   cmd_diff_list.c   --stat, --name-status, --json
 *
 * Names and content are the program's.  For a terminal they are escaped; else
 * bytes are exact and names quoted as git does, so that `git apply` takes the
 * patch.  What git has no word for stands in lines "# caisson: PATH: ...",
 * which patch programs pass over.
 */
#pragma once
#include "base/buf.h"
#include "txn/txn.h"

#include <stdbool.h>

enum diff_form { DIFF_PATCH, DIFF_STAT, DIFF_NAMES, DIFF_JSON };

struct diff {
	struct txn *t;
	struct txn_changes changes;
	struct cs_strv paths;      /* beneath the workspace; none: all */
	enum diff_form form;
	bool colour;
	bool escape;               /* a person reads it at a terminal */
	unsigned width;            /* of the terminal */
	struct cs_buf out;         /* not written yet */
	bool closed;               /* nobody reads any more */
	bool failed;               /* something could not be read or written */
};

/* ---- cmd_diff.c ---- */
bool diff_shows(const struct diff *d, const struct txn_change *c);
void diff_flush(struct diff *d);           /* when it is worth a write */

/* ---- cmd_diff_expand.c ---- */
void diff_expand(struct diff *d);

/* ---- cmd_diff_read.c ---- */
struct diff_content {
	struct cs_buf text;
	bool large, binary;        /* not compared by lines; a large one was not read, either */
};
struct diff_sides {
	struct diff_content old, new;
	bool unreadable;           /* one of them, and that was said */
};
/* The content of what was and what is, as far as each has one. */
void diff_read(struct diff *d, const struct txn_change *c, struct diff_sides *ret);
void diff_sides_done(struct diff_sides *s);

const char *diff_old_path(const struct txn_change *c); /* where it was before */
bool diff_has_content(mode_t mode);                    /* a file or a symlink: git knows it */
bool diff_content_differs(const struct txn_change *c);
/* PREFIX and path as one word: escaped, or quoted as git does. */
void diff_name(const struct diff *d, struct cs_buf *out, const char *prefix, const char *path);
/* "# caisson: PATH: held back: ..." where there is a reason. */
void diff_verdicts(struct diff *d, const struct txn_change *c);
void diff_remark(struct diff *d, const struct txn_change *c, bool loud, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- cmd_diff_patch.c, cmd_diff_list.c ---- */
void diff_patch(struct diff *d);
void diff_stat(struct diff *d);
void diff_names(struct diff *d);
void diff_json(struct diff *d);
