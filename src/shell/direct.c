/* SPDX-License-Identifier: Apache-2.0 */
/* direct.c - commands that need no shell: their words are what is run. */
#include "shell/shell.h"

#include "base/mem.h"
#include "shell/syntax.h"

#include <stdlib.h>
#include <string.h>

/* What bash does itself, perhaps in another way than the program of that name. */
static bool is_builtin(const char *name)
{
	static const char *const names[] = { ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt",
					     "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg",
					     "getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd",
					     "pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "test", "times",
					     "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* The literal of a word, or NULL. */
static char *literal(const struct sh_word *w)
{
	struct cs_buf text = CS_BUF(SH_TEXT_MAX);
	char *ret = NULL;

	for (const struct sh_part *p = w->parts; p; p = p->next) {
		if (p->kind != SH_LIT && p->kind != SH_QUOTED)
			goto out;
		cs_buf_add(&text, p->text, p->len);
	}
	if (!text.over)
		ret = cs_strndup(cs_buf_text(&text), text.len);
out:
	cs_buf_done(&text);
	return ret;
}

static bool stage(const struct sh_command *c, struct cs_strv *ret)
{
	if (c->kind != SH_SIMPLE || c->assigns || c->redirects || !c->words || c->both)
		return false;
	for (const struct sh_word *w = c->words; w; w = w->next) {
		char *word = literal(w);

		if (!word)
			return false;
		cs_strv_take(ret, word);
	}
	return !is_builtin(ret->v[0]);
}

size_t sh_direct(const char *text, size_t len, struct cs_strv ret[SH_STAGES_MAX])
{
	struct sh_script *s = NULL;
	struct cs_err err = { 0 };
	const struct sh_command *c;
	size_t n = 0;
	uint32_t at;
	bool ok;

	if (sh_parse(text, len, &s, &at, &err) < 0)
		return 0;
	c = s->first && !s->first->next ? s->first : NULL;
	if (c && c->kind == SH_PIPE && !c->redirects)
		c = c->child;
	ok = c != NULL;
	for (; ok && c; c = c->next) {
		ok = n < SH_STAGES_MAX && stage(c, &ret[n]);
		n += n < SH_STAGES_MAX;
	}
	sh_free(s);
	if (ok)
		return n;
	for (size_t i = 0; i < n; i++)
		cs_strv_done(&ret[i]);
	return 0;
}
