/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - what the classifier is to go by: roots, secrets, rows and links, as the profile has them. */
#include "act/act.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_TO_LOOK_AT = 1 << 16, ROWS_TEXT_MAX = 1 << 20 };

static bool is_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/' || n == 1);
}

static const char *keep(struct act_policy *p, char *take_text)
{
	cs_strv_take(&p->strings, take_text);
	return take_text;
}

/* ---- rows ---- */

static int add_table(struct act_policy *p, const char *rows, size_t len, const char *origin, bool trusted, struct cs_err *err)
{
	const struct sh_table *below = p->n_tables ? p->tables[p->n_tables - 1] : sh_table_builtin();
	int r = len ? sh_table_extend(below, rows, len, origin ? origin : "shell.commands", trusted, &p->tables[p->n_tables], err) : 0;

	if (r == 0 && len)
		p->n_tables++;
	return r;
}

/* What one file has in the place of ours. */
static int add_trusted(struct act_policy *p, const struct profile *profile, const char *workspace, unsigned source, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(ROWS_TEXT_MAX);
	const char *origin = NULL;

	for (size_t i = 0; i < profile->shell.n_rows; i++) {
		const struct profile_row *row = &profile->shell.rows[i];

		if (row->source != source || !profile_row_counts(profile, i, workspace) || profile_row_trust(profile, row, workspace))
			continue;
		cs_buf_fmt(&text, "%s: %s\n", row->name, row->row);
		origin = row->file;
	}
	return add_table(p, cs_buf_text(&text), text.len, origin, /* trusted= */ true, err);
}

/* One that narrows: a table for each, since any number of them may be about the same command. */
static int add_narrow(struct act_policy *p, const struct profile *profile, const char *workspace, size_t i, struct cs_err *err)
{
	const struct profile_row *row = &profile->shell.rows[i];
	CS_FREE char *text = NULL;

	if (!profile_row_counts(profile, i, workspace) || !profile_row_trust(profile, row, workspace))
		return 0;
	text = cs_printf("%s: %s\n", row->name, row->row);
	return add_table(p, text, strlen(text), row->file, /* trusted= */ false, err);
}

/* Those that take the place of ours come first: what narrows stands over all of them. */
static int make_tables(struct act_policy *p, const struct profile *profile, const char *workspace, struct cs_err *err)
{
	const struct profile_shell *s = &profile->shell;
	int r = 0;

	if (!s->n_rows)
		return 0;
	p->tables = cs_calloc(s->sources + s->n_rows + 1, sizeof *p->tables);
	for (unsigned source = 0; source <= s->sources && r == 0; source++)
		r = add_trusted(p, profile, workspace, source, err);
	p->n_trusted = p->n_tables;
	for (size_t i = 0; i < s->n_rows && r == 0; i++)
		r = add_narrow(p, profile, workspace, i, err);
	return r;
}

/* ---- the whole ---- */

static void add_roots(struct act_policy *p, const struct profile *profile, const char *workspace)
{
	struct sh_policy *y = &p->policy;
	size_t first = p->strings.n;

	if (workspace)
		cs_strv_add(&p->strings, workspace);
	cs_strv_add(&p->strings, "/tmp");
	cs_strv_add(&p->strings, "/dev");
	cs_strv_add(&p->strings, "/proc");
	cs_strv_copy(&p->strings, &profile->files_read);
	cs_strv_copy(&p->strings, &profile->files_write);
	y->roots = (const char *const *)p->strings.v + first;
	y->n_roots = p->strings.n - first;
	y->secrets = (const char *const *)profile->files_hide.v;
	y->n_secrets = profile->files_hide.n;
}

int act_policy_make(const struct act_policy_opts *o, struct act_policy *ret, struct cs_err *err)
{
	const char *dir = o->workspace ? o->workspace : ".", *home = getenv("HOME");
	CS_FREE char *workspace = realpath(dir, NULL), *here = realpath(".", NULL);
	bool none = o->profile->workspace == PROFILE_WS_NONE;
	struct sh_policy *y = &ret->policy;
	int r;

	*ret = (struct act_policy){ 0 };
	if (!workspace)
		return cs_fail(err, CS_E_NOT_FOUND, errno, "'%s'", dir);
	r = make_tables(ret, o->profile, workspace, err);
	if (r < 0) {
		act_policy_done(ret);
		return r;
	}
	y->home = home && home[0] == '/' ? keep(ret, cs_strdup(home)) : NULL;
	if (o->cwd)
		y->cwd = keep(ret, cs_strdup(o->cwd));
	else if (none)
		y->cwd = keep(ret, cs_strdup("/home/agent")); /* where a sandbox without a workspace starts */
	else
		y->cwd = keep(ret, cs_strdup(here && is_within(here, workspace) ? here : workspace));
	if (!o->cwd && !none)
		y->workspace = keep(ret, cs_strdup(workspace));
	y->look = o->really ? act_look : NULL;
	y->look_arg = ret;
	y->own = o->own;
	y->n_own = o->n_own;
	y->table = ret->n_trusted ? ret->tables[ret->n_trusted - 1] : NULL;
	/* Last: it points into the vector. */
	if (o->roots)
		add_roots(ret, o->profile, none ? NULL : workspace);
	return 0;
}

void act_policy_done(struct act_policy *p)
{
	while (p->n_tables)
		sh_table_free(p->tables[--p->n_tables]);
	free(p->tables);
	cs_strv_done(&p->strings);
	*p = (struct act_policy){ 0 };
}

/* ---- the verdict ---- */

static bool has_effect(const struct sh_verdict *v, const struct sh_effect *e)
{
	for (size_t i = 0; i < v->n_effects; i++)
		if (v->effects[i].kind == e->kind && v->effects[i].forbidden == e->forbidden && !strcmp(v->effects[i].object, e->object))
			return true;
	return false;
}

static bool has_reason(const struct sh_verdict *v, const struct sh_reason *r)
{
	for (size_t i = 0; i < v->n_reasons; i++)
		if (!strcmp(v->reasons[i].text, r->text))
			return true;
	return false;
}

static void *grown(void *from, size_t n, size_t more, size_t size)
{
	void *to = cs_calloc(n + more + 1, size);

	if (n)
		memcpy(to, from, n * size);
	free(from);
	return to;
}

/* Everything of both, and the worse of the two classes. */
static void add_verdict(struct sh_verdict *to, struct sh_verdict *from)
{
	to->effects = grown(to->effects, to->n_effects, from->n_effects, sizeof *to->effects);
	to->reasons = grown(to->reasons, to->n_reasons, from->n_reasons, sizeof *to->reasons);
	for (size_t i = 0; i < from->n_effects; i++)
		if (!has_effect(to, &from->effects[i])) {
			to->effects[to->n_effects++] = from->effects[i];
			from->effects[i].object = from->effects[i].by = NULL;
		}
	for (size_t i = 0; i < from->n_reasons; i++)
		if (!has_reason(to, &from->reasons[i])) {
			to->reasons[to->n_reasons++] = from->reasons[i];
			from->reasons[i].text = NULL;
		}
	to->class = from->class > to->class ? from->class : to->class;
	to->parsed &= from->parsed;
	to->complete &= from->complete;
	sh_verdict_done(from);
}

void act_classify(struct act_policy *p, const char *text, size_t len, struct sh_verdict *ret)
{
	struct sh_policy narrow = p->policy;
	struct sh_verdict more;

	p->left = NAMES_TO_LOOK_AT;
	p->policy.look_arg = narrow.look_arg = p; /* the caller may have moved it */
	sh_classify(text, len, &p->policy, ret);
	if (p->n_tables == p->n_trusted)
		return;
	/* Not by one pass with all rows: a row that others wrote could say that a command works in another directory, or that
	 * a word stands for something else, and so take away what is known.  With two, it can only add. */
	p->left = NAMES_TO_LOOK_AT;
	narrow.table = p->tables[p->n_tables - 1];
	sh_classify(text, len, &narrow, &more);
	add_verdict(ret, &more);
}
