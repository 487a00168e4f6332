/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - rows of the table of commands, by the name of their command.
 *
 * Every file's rows are kept beside those of what it extends: whether one takes another's place depends on who could have
 * written it, and that is known for certain only together with the workspace. */
#include "profile/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "shell/table.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 96, ROW_MAX = 16 << 10 };

void profile_shell_done(struct profile_shell *s)
{
	for (size_t i = 0; i < s->n_rows; i++) {
		free(s->rows[i].name);
		free(s->rows[i].row);
		free(s->rows[i].file);
	}
	free(s->rows);
	*s = (struct profile_shell){ 0 };
}

/* ---- which count ---- */

static bool replaces(const struct profile *p, const struct profile_row *r, const char *workspace)
{
	return !profile_row_trust(p, r, workspace);
}

bool profile_row_counts(const struct profile *p, size_t i, const char *workspace)
{
	const struct profile_row *r = &p->shell.rows[i];
	bool main_row = replaces(p, r, workspace);

	if (!r->row)
		return false;
	for (size_t k = i + 1; k < p->shell.n_rows; k++) {
		const struct profile_row *later = &p->shell.rows[k];

		/* A removal takes all of them; a row only the one in whose place it stands. */
		if (!strcmp(later->name, r->name) && replaces(p, later, workspace) && (!later->row || main_row))
			return false;
	}
	return true;
}

size_t rows_names(const struct profile *p, const char ***ret)
{
	const char **names = cs_calloc(p->shell.n_rows + 1, sizeof *names);
	size_t n = 0;

	for (size_t i = 0; i < p->shell.n_rows; i++) {
		bool seen = !profile_row_counts(p, i, /* workspace= */ NULL);

		for (size_t k = 0; k < n && !seen; k++)
			seen = !strcmp(names[k], p->shell.rows[i].name);
		if (!seen)
			names[n++] = p->shell.rows[i].name;
	}
	*ret = names;
	return n;
}

size_t rows_of(const struct profile *p, const char *name, const char ***ret)
{
	const char **rows = cs_calloc(p->shell.n_rows + 1, sizeof *rows);
	size_t n = 1; /* the first is the one in the place of ours, or NULL */

	for (size_t i = 0; i < p->shell.n_rows; i++) {
		const struct profile_row *r = &p->shell.rows[i];

		if (strcmp(r->name, name) != 0 || !profile_row_counts(p, i, /* workspace= */ NULL))
			continue;
		if (replaces(p, r, /* workspace= */ NULL))
			rows[0] = r->row;
		else
			rows[n++] = r->row;
	}
	*ret = rows;
	return n;
}

/* ---- one more ---- */

static int check_name(const struct key *k, const char *name, const struct change *c, struct cs_err *err)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	size_t n = strlen(name);

	if (*name == '%')
		return value_bad(k, name, c, err, "would be a set of options; write them out in each row");
	if (!n || n > 100 || !strchr(first, *name) || name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+, -")] ||
	    name[n - 1] == ' ')
		return value_bad(k, name, c, err, "is not a command's name (as in: deploy, 'git frob', 'pip,pip3 sync')");
	return 0;
}

/* Lines of a block of text are one row. */
static int tidy_row(const struct key *k, const char *text, const struct change *c, char **ret, struct cs_err *err)
{
	CS_FREE char *row = cs_strdup(text);
	size_t n = strlen(row);

	for (size_t i = 0; i < n; i++)
		if (row[i] == '\n' || row[i] == '\t')
			row[i] = ' ';
	while (n && row[n - 1] == ' ')
		row[--n] = '\0';
	if (n > ROW_MAX)
		return value_bad(k, text, c, err, "is longer than a row may be (16 KiB)");
	if (value_has_control(row))
		return value_bad(k, text, c, err, "holds a control byte");
	*ret = CS_TAKE_PTR(row);
	return 0;
}

/* Together with what the same file says of other commands: no name may have two rows in it. */
static int check_row(const struct key *k, const struct profile *p, const struct profile_row *r, const struct change *c, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(PROFILE_MAX_BYTES);
	struct cs_err inner = { 0 };
	char shown[SHOWN];

	for (size_t i = 0; i < p->shell.n_rows; i++) {
		const struct profile_row *o = &p->shell.rows[i];

		if (o->source == r->source && o->row && o->careful == r->careful && !r->careful)
			cs_buf_fmt(&text, "%s: %s\n", o->name, o->row);
	}
	cs_buf_fmt(&text, "%s: %s\n", r->name, r->row);
	if (text.over)
		return profile_fail(err, CS_E_LIMIT, &c->at, "%s: more rows than a profile may hold", k->path);
	if (sh_rows_check(cs_buf_text(&text), text.len, &inner) < 0)
		return profile_fail(err, CS_E_INVALID, &c->at, "%s: %s: %s", k->path, cs_escape_to(shown, sizeof shown, r->name), inner.msg);
	return 0;
}

static int add(const struct key *k, struct profile *p, struct profile_row *take_r, const struct change *c, struct cs_err *err)
{
	struct profile_shell *s = &p->shell;
	int r = 0;

	if (s->n_rows == PROFILE_MAX_ROWS)
		r = profile_fail(err, CS_E_LIMIT, &c->at, "%s: more than %d rows", k->path, PROFILE_MAX_ROWS);
	else if (take_r->row)
		r = check_row(k, p, take_r, c, err);
	if (r < 0) {
		free(take_r->name);
		free(take_r->row);
		free(take_r->file);
		return r;
	}
	if (!s->rows)
		s->rows = cs_calloc(PROFILE_MAX_ROWS, sizeof *s->rows);
	s->rows[s->n_rows++] = *take_r;
	return 0;
}

static struct profile_row new_row(const char *name, const struct profile *p, const struct change *c)
{
	return (struct profile_row){ .name = cs_strdup(name), .file = c->file && c->file->real ? cs_strdup(c->file->real) : NULL,
				     .doubt = c->file ? c->file->doubt : NULL, .careful = c->locked, .source = p->shell.sources };
}

static bool has_row(const struct profile *p, const char *name, unsigned before)
{
	for (size_t i = 0; i < p->shell.n_rows; i++)
		if (p->shell.rows[i].source < before && !strcmp(p->shell.rows[i].name, name) && profile_row_counts(p, i, NULL))
			return true;
	return false;
}

static int remove_rows(const struct key *k, struct profile *p, const char *name, const struct change *c, struct cs_err *err)
{
	char shown[SHOWN];
	struct profile_row r;

	cs_escape_to(shown, sizeof shown, name);
	if (!has_row(p, name, p->shell.sources))
		return profile_fail(err, CS_E_INVALID, &c->at, "%s: '%s' is not inherited, so it cannot be removed", k->path, shown);
	if (c->locked)
		return profile_fail(err, CS_E_DENIED, &c->at, "%s: the profile is locked; to take the row of '%s' away would widen it", k->path, shown);
	if (c->file && c->file->doubt)
		return profile_fail(err, CS_E_DENIED, &c->at, "%s: only a trusted profile takes the row of '%s' away, and this one is not: %s", k->path,
				    shown, c->file->doubt);
	r = new_row(name, p, c);
	return add(k, p, &r, c, err);
}

/* careful: it may only narrow. */
static int add_row(const struct key *k, struct profile *p, const char *name, const char *text, bool careful, const struct change *c, struct cs_err *err)
{
	struct profile_row r;
	char *row = NULL;
	int rc = tidy_row(k, text, c, &row, err);

	if (rc < 0)
		return rc;
	r = new_row(name, p, c);
	r.row = row;
	r.careful |= careful;
	return add(k, p, &r, c, err);
}

static int apply_list(const struct key *k, struct profile *p, const struct node *list, struct change *c, struct cs_err *err)
{
	int r = 0;

	if (!list->child)
		return profile_fail(err, CS_E_INVALID, &c->at, "%s: an empty list; null takes inherited rows away", k->path);
	for (const struct node *i = list->child; i && r >= 0; i = i->next) {
		bool first = i == list->child;

		c->at.line = i->line;
		c->at.col = i->col;
		if (i->kind != NODE_SCALAR || (node_is_null(i) && !first))
			return profile_fail(err, CS_E_INVALID, &c->at, "%s: every item must be a row; the first may be null", k->path);
		if (!node_is_null(i))
			r = add_row(k, p, list->key->text, i->text, /* careful= */ !first, c, err);
	}
	return r;
}

int rows_apply(const struct key *k, struct profile *p, const struct node *map, struct change *c, struct cs_err *err)
{
	int r = 0;

	p->shell.sources++;
	for (const struct node *n = map->child; n && r >= 0; n = n->next) {
		c->at.line = n->key->line;
		c->at.col = n->key->col;
		r = check_name(k, n->key->text, c, err);
		if (r < 0)
			return r;
		c->at.line = n->line;
		c->at.col = n->col;
		if (n->kind == NODE_LIST)
			r = apply_list(k, p, n, c, err);
		else if (n->kind != NODE_SCALAR)
			r = profile_fail(err, CS_E_INVALID, &c->at, "%s: wants a row, or a list of rows, but this is a mapping", k->path);
		else if (node_is_null(n))
			r = remove_rows(k, p, n->key->text, c, err);
		else
			r = add_row(k, p, n->key->text, n->text, /* careful= */ false, c, err);
	}
	return r;
}

int rows_set(const struct key *k, struct profile *p, const char *text, const struct change *c, struct cs_err *err)
{
	const char *eq = strchr(text, '=');
	CS_FREE char *name = eq ? cs_strndup(text, (size_t)(eq - text)) : NULL;
	int r;

	p->shell.sources++;
	if (!eq && *text == '!')
		return remove_rows(k, p, text + 1, c, err);
	if (!eq)
		return profile_fail(err, CS_E_INVALID, &c->at, "%s: wants COMMAND=ROW", k->path);
	r = check_name(k, name, c, err);
	return r < 0 ? r : add_row(k, p, name, eq + 1, /* careful= */ false, c, err);
}
