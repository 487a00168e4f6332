/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - the transaction that takes what is written in the workspace. */
#include "session/session.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static void add_hidden(const struct session_spec *s, struct cs_strv *ret)
{
	size_t n = strlen(s->workspace);

	for (size_t i = 0; i < s->hide.n; i++)
		if (!strncmp(s->hide.v[i], s->workspace, n) && s->hide.v[i][n] == '/')
			cs_strv_add(ret, s->hide.v[i] + n + 1);
}

char *session_command_line(char *const *argv)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(4096);

	for (size_t i = 0; argv[i] && b.len < 1000; i++) {
		if (i)
			cs_buf_char(&b, ' ');
		cs_escape(&b, argv[i]);
	}
	return cs_strdup(cs_buf_text(&b));
}

int session_txn_begin(const struct session_opts *o, const struct session_spec *s, bool steps, struct txn **ret, struct cs_err *err)
{
	const struct profile *p = o->profile;
	struct txn_about a = { .steps = steps };
	int r;

	a.workspace = cs_strdup(s->workspace);
	a.profile = cs_strdup(p->name ? p->name : "");
	a.command = session_command_line(o->argv);
	cs_strv_copy(&a.protect, &p->commit_protect);
	cs_strv_copy(&a.allow, &p->commit_allow);
	add_hidden(s, &a.hidden);
	r = txn_begin(&a, ret, err);
	if (r < 0)
		txn_about_done(&a);
	return r;
}

void session_result_done(struct session_result *r)
{
	free(r->network.told);
	r->network = (struct session_network){ 0 };
}

void session_discard(struct session_result *r)
{
	if (!r->txn)
		return;
	(void)txn_discard(r->txn, "rolled-back", NULL); /* what stays is pending, and named by the next command */
	txn_close(r->txn);
	r->txn = NULL;
}
