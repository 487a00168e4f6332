/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - another profile of the same content, to be narrowed for one command while the first stays. */
#include "profile/internal.h"

#include <string.h>

static char *copy_text(const char *s)
{
	return s ? cs_strdup(s) : NULL;
}

static void copy_secrets(const struct profile_network *from, struct profile_network *to)
{
	to->secrets = NULL;
	if (!from->n_secrets)
		return;
	to->secrets = cs_calloc(from->n_secrets, sizeof *to->secrets);
	for (size_t i = 0; i < from->n_secrets; i++) {
		const struct profile_secret *s = &from->secrets[i];
		struct profile_secret *t = &to->secrets[i];

		*t = (struct profile_secret){ copy_text(s->name), copy_text(s->from), { 0 }, copy_text(s->header), copy_text(s->format) };
		cs_strv_copy(&t->hosts, &s->hosts);
	}
}

static void copy_rows(const struct profile_shell *from, struct profile_shell *to)
{
	to->rows = NULL;
	if (!from->n_rows)
		return;
	to->rows = cs_calloc(PROFILE_MAX_ROWS, sizeof *to->rows);
	for (size_t i = 0; i < from->n_rows; i++) {
		to->rows[i] = from->rows[i];
		to->rows[i].name = copy_text(from->rows[i].name);
		to->rows[i].row = copy_text(from->rows[i].row);
		to->rows[i].file = copy_text(from->rows[i].file);
	}
}

static void copy_list(const struct key *k, const struct profile *from, struct profile *to)
{
	struct cs_strv *list = key_at(k, to);

	*list = (struct cs_strv){ 0 };
	cs_strv_copy(list, key_at(k, from));
}

void profile_copy(const struct profile *p, struct profile *ret)
{
	*ret = *p;
	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];

		if (k->type == KEY_NAME || k->type == KEY_TEXT || k->type == KEY_EXTENDS)
			*(char **)key_at(k, ret) = copy_text(*(char **)key_at(k, p));
		else if (k->type == KEY_ENVVARS || k->type == KEY_HOSTS || (key_is_list(k) && k->type != KEY_PROTECTIONS))
			copy_list(k, p, ret);
	}
	copy_secrets(&p->network, &ret->network);
	copy_rows(&p->shell, &ret->shell);
}
