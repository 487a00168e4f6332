/* SPDX-License-Identifier: Apache-2.0 */
/* word.h - a word that is being put together: shared by the files that read words. */
#pragma once
#include "shell/internal.h"

/* A word that is being put together.  Literal text gathers in r->scratch until something else comes. */
struct build {
	struct sh_part *first, **tail;
	enum { NOTHING, PLAIN, QUOTED } gathering;
	size_t from;       /* of what is gathered */
	bool open, alternatives, pattern; /* unquoted '{'; ',' or ".." after one; '*', '?' or '[' */
	bool tilde_after_colon, lone_dollar;
	bool here;         /* the body of a here-document */
};

/* word.c */
struct sh_part *wd_part(struct reader *r, struct build *b, enum sh_part_kind kind, size_t from);
void wd_flush(struct reader *r, struct build *b);               /* what is gathered becomes a part */
void wd_gather(struct reader *r, struct build *b, int how);
void wd_take(struct reader *r, struct build *b, int how, size_t n); /* n bytes that mean themselves */
void wd_start(struct build *b);
struct sh_word *wd_finish(struct reader *r, struct build *b, size_t from); /* NULL: there is nothing */

/* word_expand.c */
void wd_expand(struct reader *r, struct build *b, bool quoted);  /* at '$' or '`' */
void wd_process(struct reader *r, struct build *b, size_t paren); /* <(..) or >(..) */
const char *wd_name(struct reader *r);                           /* the name that stands here */
bool wd_special(int c);                                          /* $? $# and so on */
