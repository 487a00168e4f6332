/* SPDX-License-Identifier: Apache-2.0 */
/* change.h - what the commands that deal with transactions share. */
#pragma once
#include "base/err.h"
#include "base/mem.h"
#include "profile/profile.h"
#include "session/session.h"
#include "txn/txn.h"

/* Finishes what a crash left and says so; every command that looks at transactions calls it first. */
void change_recover(const char *workspace);
/* "t-4k2q", or nothing: takes it off the words. */
char *change_take_id(struct cs_strv *words);
/* From what a person types in the current directory to paths beneath the workspace. */
int change_paths(const struct txn *t, const struct cs_strv *words, struct cs_strv *ret, struct cs_err *err);
/* "3 added, 1 changed, 2 deleted (1.2MiB)" */
void change_summary(const struct txn_changes *c, char *ret, size_t size);
/* Lists what is held back, and what conflicts. */
void change_tell_held(const struct txn *t, const struct txn_changes *c);
void change_tell_conflicts(const struct txn *t, const struct txn_changes *c);
/* A terminal on both ends: somebody can be asked. */
bool change_can_ask(void);
/* One letter of the given ones; the last is the answer at the end of input. */
char change_ask(const char *question, const char *letters);
/* Whether to take the changes: y, n, or k for later; shows them on the way. */
char change_ask_commit(struct txn *t, const struct txn_changes *c);
/* Asks for each that is held; those that are wanted are added to v->allow. */
void change_ask_held(const struct txn_changes *c, struct txn_verdict *v);
/* Commits and tells.  Returns an exit status. */
int change_commit(struct txn *t, struct txn_changes *c, struct txn_verdict *v, bool ask);
void change_tell_committed(const struct txn *t, const struct txn_changes *c, const struct txn_outcome *o);
void change_tell_pending(const struct txn *t, const struct txn_changes *c);
void change_verdict_done(struct txn_verdict *v);

/* After a run: what becomes of what it wrote.  Fills r->change, closes r->txn.  1 if it was to be committed
 * and, in part or at all, was not. */
int change_fate(const struct profile *p, struct session_result *r);
/* The changes as `caisson diff` shows them. */
void change_show_diff(struct txn *t);
