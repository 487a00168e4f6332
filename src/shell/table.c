/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - tables: which row is a command's, and how one table stands on another.
 *
 * Rows of a profile that is not trusted are applied beside those below them, and both count: by construction nothing
 * that they say can make a command look safer. */
#include "shell/table_run.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static const struct sh_row *find_in(const struct sh_table *t, const char *name)
{
	size_t lo = 0, hi = t->n_names;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int c = strcmp(t->strings + t->names[mid].name, name);

		if (c == 0)
			return &t->rows[t->names[mid].row];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

bool tbl_find_row(const struct sh_table *t, const char *name, struct tbl_hit *ret)
{
	for (; t; t = t->base) {
		const struct sh_row *row = find_in(t, name);

		if (row) {
			*ret = (struct tbl_hit){ t, row };
			return true;
		}
	}
	return false;
}

/* ---- the whole ---- */

static void apply_with(const struct sh_table *t, const struct sh_arg *argv, size_t n, struct sh_findings *ret)
{
	uint32_t inline_operands[OPERANDS_INLINE];
	struct tbl_run r = { .t = t, .argv = argv, .n = n, .f = ret };
	CS_FREE uint32_t *heap = NULL;

	if (argv[0].known != SH_LITERAL || strlen(argv[0].text) >= sizeof r.name - 1 || strchr(argv[0].text, ' ') ||
	    !tbl_find_row(t, argv[0].text, &r.hit)) {
		snprintf(r.name, sizeof r.name, "the table");
		ret->does |= SH_DOES_UNKNOWN;
		tbl_unknown(&r, 0, "%s is not a command of %s");
		return;
	}
	snprintf(r.name, sizeof r.name, "%s", argv[0].text);
	/* A word is at most one operand. */
	if (n > OPERANDS_INLINE)
		heap = cs_calloc(n, sizeof *heap);
	r.operands = heap ? heap : inline_operands;
	tbl_apply_row(&r);
	if (r.no_pager)
		ret->does &= ~(unsigned)SH_DOES_TERMINAL;
	if (ret->command_at) /* it is given to that, and not shown */
		ret->does &= ~(unsigned)SH_DOES_ENVIRONMENT;
}

/* Whether this layer alone says anything of the command or its subcommands. */
static bool touches(const struct sh_table *t, const char *command)
{
	size_t len = strlen(command);

	for (size_t i = 0; i < t->n_names; i++) {
		const char *s = t->strings + t->names[i].name;

		if (!strncmp(s, command, len) && (!s[len] || s[len] == ' '))
			return true;
	}
	return false;
}

static bool same(const struct sh_finding *a, const struct sh_finding *b)
{
	return a->role == b->role && a->arg == b->arg && a->end == b->end && a->text == b->text && a->known == b->known &&
	       (a->lang == b->lang || (a->lang && b->lang && !strcmp(a->lang, b->lang))) &&
	       (a->role != SH_ROLE_UNKNOWN || (a->why && b->why && !strcmp(a->why, b->why)));
}

/* Everything of both. */
static void merge(struct sh_findings *to, struct sh_findings *from)
{
	size_t had = to->n;
	struct sh_made **tail = &to->made;

	for (size_t i = 0; i < from->n; i++) {
		bool dup = false;

		for (size_t k = 0; k < had && had <= 64 && !dup; k++)
			dup = same(&to->v[k], &from->v[i]);
		if (!dup)
			sh_findings_add(to, from->v[i]);
	}
	to->does |= from->does;
	to->does_why = to->does_why ? to->does_why : from->does_why;
	to->command_at = to->command_at ? to->command_at : from->command_at;
	to->appends_words |= from->appends_words;
	to->stdin_words |= from->stdin_words;
	to->replace_paths &= from->replace_paths;
	to->replace = to->replace ? to->replace : from->replace;
	while (*tail)
		tail = &(*tail)->next;
	*tail = from->made;
	from->made = NULL;
	sh_findings_done(from);
}

void sh_table_apply(const struct sh_table *t, const struct sh_arg *argv, size_t n, struct sh_findings *ret)
{
	*ret = (struct sh_findings){ 0 };
	if (!n) {
		ret->does |= SH_DOES_UNKNOWN;
		return;
	}
	/* Rows that may only narrow: what the table below says stays, and theirs comes on top. */
	if (!t->trusted && t->base) {
		sh_table_apply(t->base, argv, n, ret);
		if (argv[0].known == SH_LITERAL && touches(t, argv[0].text)) {
			struct sh_findings more = { 0 };

			apply_with(t, argv, n, &more);
			merge(ret, &more);
		}
		return;
	}
	apply_with(t, argv, n, ret);
}

void sh_findings_done(struct sh_findings *f)
{
	while (f->made) {
		struct sh_made *next = f->made->next;

		free(f->made);
		f->made = next;
	}
	free(f->v);
	*f = (struct sh_findings){ 0 };
}

struct extended {
	struct sh_table table; /* first */
	struct sh_rows rows;
};

int sh_table_extend(const struct sh_table *base, const char *rows, size_t len, const char *origin, bool trusted, struct sh_table **ret,
		    struct cs_err *err)
{
	struct extended *e = cs_new(struct extended);
	int r;

	sh_rows_init(&e->rows);
	r = sh_rows_add(&e->rows, rows, len, origin, err);
	if (r < 0) {
		sh_rows_done(&e->rows);
		free(e);
		return r;
	}
	sh_rows_table(&e->rows, &e->table);
	e->table.base = base;
	e->table.trusted = trusted;
	*ret = &e->table;
	return 0;
}

void sh_table_free(struct sh_table *t)
{
	struct extended *e = (struct extended *)(void *)t;

	if (!e)
		return;
	sh_rows_done(&e->rows);
	free(e);
}

bool sh_table_has(const struct sh_table *t, const char *name)
{
	struct tbl_hit h;

	return tbl_find_row(t, name, &h);
}

size_t sh_table_count(const struct sh_table *t)
{
	size_t n = 0;

	for (; t; t = t->base)
		for (size_t i = 0; i < t->n_names; i++)
			n += !strchr(t->strings + t->names[i].name, ' ');
	return n;
}
