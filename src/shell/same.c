/* SPDX-License-Identifier: Apache-2.0 */
/* same.c - are two scripts the same but for places and spelling? */
#include "shell/internal.h"

static bool same_commands(const struct sh_command *a, const struct sh_command *b);
static bool same_words(const struct sh_word *a, const struct sh_word *b);
static bool same_assigns(const struct sh_assign *a, const struct sh_assign *b);

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_param(const struct sh_param *a, const struct sh_param *b)
{
	if (!a || !b)
		return a == b;
	return same_text(a->name, b->name) && a->length == b->length && a->indirect == b->indirect && same_text(a->op, b->op) &&
	       same_words(a->index, b->index) && same_words(a->arg, b->arg) && same_words(a->arg2, b->arg2) && a->empty2 == b->empty2;
}

static bool same_scripts(const struct sh_script *a, const struct sh_script *b)
{
	if (!a || !b)
		return a == b;
	return same_commands(a->first, b->first);
}

static bool same_parts(const struct sh_part *a, const struct sh_part *b)
{
	for (; a && b; a = a->next, b = b->next) {
		if (a->kind != b->kind || a->quoted != b->quoted || a->bad != b->bad || a->direction != b->direction || a->bracket != b->bracket ||
		    a->sequence != b->sequence || a->len != b->len || !same_text(a->text, b->text))
			return false;
		if (!same_param(a->param, b->param) || !same_scripts(a->script, b->script) || !same_words(a->words, b->words) ||
		    !same_assigns(a->assign, b->assign))
			return false;
	}
	return a == b;
}

static bool same_words(const struct sh_word *a, const struct sh_word *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (!same_parts(a->parts, b->parts))
			return false;
	return a == b;
}

static bool same_assigns(const struct sh_assign *a, const struct sh_assign *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (!same_text(a->name, b->name) || !same_words(a->index, b->index) || a->append != b->append || a->array != b->array ||
		    !same_words(a->value, b->value) || !same_words(a->items, b->items) || !same_assigns(a->keyed, b->keyed))
			return false;
	return a == b;
}

static bool same_redirects(const struct sh_redirect *a, const struct sh_redirect *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (a->kind != b->kind || a->fd != b->fd || !same_text(a->fd_name, b->fd_name) || !same_words(a->target, b->target) ||
		    a->heredoc_quoted != b->heredoc_quoted)
			return false;
	return a == b;
}

static bool same_items(const struct sh_case_item *a, const struct sh_case_item *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (a->end != b->end || !same_words(a->patterns, b->patterns) || !same_commands(a->body, b->body))
			return false;
	return a == b;
}

static bool same_commands(const struct sh_command *a, const struct sh_command *b)
{
	for (; a && b; a = a->next, b = b->next) {
		if (a->kind != b->kind || a->has_in != b->has_in || a->both != b->both || a->posix_time != b->posix_time)
			return false;
		if (!same_text(a->name, b->name) || !same_text(a->text, b->text) || !same_assigns(a->assigns, b->assigns) ||
		    !same_words(a->words, b->words) || !same_redirects(a->redirects, b->redirects))
			return false;
		if (!same_items(a->items, b->items) || !same_commands(a->child, b->child))
			return false;
	}
	return a == b;
}

bool sh_same(const struct sh_script *a, const struct sh_script *b)
{
	return same_scripts(a, b);
}
