/* SPDX-License-Identifier: Apache-2.0 */
/* table_run.h - one command being judged: shared by the parts of the engine.
 *
 * table.c finds rows and puts tables together; table_words.c parses options as the command would; table_operands.c says
 * which operand is what; table_value.c makes findings of words. */
#pragma once
#include "shell/table_internal.h"

enum { CHAIN_MAX = 4, OPERANDS_INLINE = 64, DEFERRED_MAX = 8 };

struct tbl_hit {
	const struct sh_table *t;
	const struct sh_row *row;
};

struct tbl_run {
	const struct sh_table *t;
	const struct sh_arg *argv;
	size_t n;
	struct sh_findings *f;
	char name[128];            /* "git remote" */
	struct tbl_hit hit;
	struct tbl_hit chain[CHAIN_MAX]; /* rows above whose options are valid here too */
	size_t n_chain;
	unsigned modes;
	uint32_t *operands;
	size_t n_operands;
	bool no_pager;
	bool unsure;               /* a word may be an option: said once */
	struct deferred {          /* arguments whose role the mode decides */
		const struct sh_table *t;
		const struct sh_slot *slot;
		size_t arg;
		const char *text;
	} deferred[DEFERRED_MAX];
	size_t n_deferred;
};

struct sh_made {
	struct sh_made *next;
	char text[];
};

void tbl_unknown(struct tbl_run *r, size_t i, const char *fmt);
void tbl_take_does(struct tbl_run *r, uint32_t does, const struct tbl_hit *h);
bool tbl_pattern_may_begin(const char *p, char with);
bool tbl_may_begin(const struct sh_arg *a, char with);
bool tbl_is_literal(const struct sh_arg *a, const char *s);
bool tbl_is_many(const struct sh_arg *a);
bool tbl_is_assignment(const char *s);
void tbl_emit(struct tbl_run *r, const struct sh_table *t, const struct sh_slot *s, size_t i, const char *text, enum sh_known known);
void tbl_value(struct tbl_run *r, const struct sh_table *t, const struct sh_slot *s, size_t i, const char *text);
void tbl_settle(struct tbl_run *r);
void tbl_command(struct tbl_run *r, size_t i, size_t end);
bool tbl_takes_rest(struct tbl_run *r, const struct sh_slot *s, size_t op);
bool tbl_find_row(const struct sh_table *t, const char *name, struct tbl_hit *ret);
void tbl_operands(struct tbl_run *r);
void tbl_apply_row(struct tbl_run *r);
