/* SPDX-License-Identifier: Apache-2.0 */
/* syntax_dump.h - a script in one line, for tests to compare.
 *
 * Commands are (kind child ...), a simple one is (word ...).  In words: 'quoted' <glob> <bad glob!> ~{user} @{a,b} @{1..3};
 * ${x} with its operator and arguments, ${x/[arg|arg2]}; $(..) `(..) $((..)) <(..); a " before what stands in double quotes. */
#pragma once
#include "base/buf.h"
#include "shell/syntax.h"

static void dump_commands(struct cs_buf *b, const struct sh_command *c);
static void dump_word(struct cs_buf *b, const struct sh_word *w);
static void dump_assign(struct cs_buf *b, const struct sh_assign *a);

static void dump_text(struct cs_buf *b, const char *t, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)t[i];

		if (c == '\n')
			cs_buf_str(b, "\\n");
		else if (c < 0x20 || c == 0x7f)
			cs_buf_fmt(b, "\\%o", c);
		else
			cs_buf_char(b, (char)c);
	}
}

static void dump_param(struct cs_buf *b, const struct sh_param *p)
{
	cs_buf_fmt(b, "${%s%s%s", p->length ? "#" : "", p->indirect ? "!" : "", p->name);
	if (p->index) {
		cs_buf_str(b, "[");
		dump_word(b, p->index);
		cs_buf_str(b, "]");
	}
	cs_buf_str(b, p->op);
	if (p->arg || p->arg2 || p->empty2) {
		cs_buf_str(b, "[");
		if (p->arg)
			dump_word(b, p->arg);
		if (p->arg2 || p->empty2)
			cs_buf_str(b, "|");
		if (p->arg2)
			dump_word(b, p->arg2);
		cs_buf_str(b, "]");
	}
	cs_buf_str(b, "}");
}

static void dump_list(struct cs_buf *b, const struct sh_word *w, const char *between)
{
	for (; w; w = w->next) {
		dump_word(b, w);
		if (w->next)
			cs_buf_str(b, between);
	}
}

static void dump_part(struct cs_buf *b, const struct sh_part *p)
{
	if (p->quoted)
		cs_buf_str(b, "\"");
	switch (p->kind) {
	case SH_LIT:
		dump_text(b, p->text, p->len);
		break;
	case SH_QUOTED:
		cs_buf_str(b, "'");
		dump_text(b, p->text, p->len);
		cs_buf_str(b, "'");
		break;
	case SH_GLOB:
		cs_buf_fmt(b, "<%s%s>", p->text, p->bad ? "!" : "");
		break;
	case SH_TILDE:
		cs_buf_fmt(b, "~{%s}", p->text);
		break;
	case SH_PARAM:
		dump_param(b, p->param);
		break;
	case SH_COMMAND:
		cs_buf_str(b, p->backtick ? "`" : "$");
		dump_commands(b, p->script->first);
		break;
	case SH_ARITH:
		cs_buf_str(b, p->bracket ? "$[" : "$((");
		dump_text(b, p->text, p->len);
		cs_buf_str(b, p->words ? ";" : "");
		dump_list(b, p->words, " ");
		cs_buf_str(b, p->bracket ? "]" : "))");
		break;
	case SH_PROCESS:
		cs_buf_char(b, p->direction);
		dump_commands(b, p->script->first);
		break;
	case SH_BRACE:
		cs_buf_str(b, "@{");
		dump_list(b, p->words, p->sequence ? ".." : ",");
		cs_buf_str(b, "}");
		break;
	case SH_ARRAY:
		dump_assign(b, p->assign);
		break;
	default:
		cs_buf_str(b, "?");
	}
}

static void dump_word(struct cs_buf *b, const struct sh_word *w)
{
	for (const struct sh_part *p = w->parts; p; p = p->next)
		dump_part(b, p);
}

static void dump_assign(struct cs_buf *b, const struct sh_assign *a)
{
	cs_buf_str(b, a->name);
	if (a->index) {
		cs_buf_str(b, "[");
		dump_word(b, a->index);
		cs_buf_str(b, "]");
	}
	cs_buf_str(b, a->append ? "+=" : "=");
	if (a->value)
		dump_word(b, a->value);
	if (!a->array)
		return;
	cs_buf_str(b, "(");
	dump_list(b, a->items, " ");
	for (const struct sh_assign *k = a->keyed; k; k = k->next) {
		if (k->index)
			dump_assign(b, k);
		else
			dump_word(b, k->value);
		if (k->next)
			cs_buf_str(b, " ");
	}
	cs_buf_str(b, ")");
}

static void dump_redirects(struct cs_buf *b, const struct sh_redirect *d)
{
	static const char *const text[] = { "<", ">", ">>", ">|", "<>", "<&", ">&", "&>", "&>>", "<<", "<<<" };

	for (; d; d = d->next) {
		cs_buf_str(b, " ");
		if (d->fd_name)
			cs_buf_fmt(b, "{%s}", d->fd_name);
		if (d->fd >= 0)
			cs_buf_fmt(b, "%d", d->fd);
		cs_buf_str(b, text[d->kind]);
		if (d->kind == SH_HEREDOC)
			cs_buf_fmt(b, "%s%s%s:", d->heredoc_tabs ? "-" : "", d->heredoc_quoted ? "'" : "", d->delimiter);
		dump_word(b, d->target);
	}
}

static void dump_simple(struct cs_buf *b, const struct sh_command *c)
{
	for (const struct sh_assign *a = c->assigns; a; a = a->next) {
		dump_assign(b, a);
		if (a->next || c->words)
			cs_buf_str(b, " ");
	}
	dump_list(b, c->words, " ");
}

static void dump_command(struct cs_buf *b, const struct sh_command *c)
{
	static const char *const names[] = { "", "pipe", "and", "or", "seq", "bg", "not", "time", "subshell", "group", "if", "while", "until",
					     "for", "select", "for((", "case", "function", "[[", "((", "coproc" };

	cs_buf_str(b, "(");
	cs_buf_str(b, names[c->kind]);
	if (c->posix_time)
		cs_buf_str(b, " -p");
	if (c->name)
		cs_buf_fmt(b, " %s", c->name);
	if (c->has_in)
		cs_buf_str(b, " in");
	if (c->text) {
		cs_buf_str(b, " ");
		dump_text(b, c->text, strlen(c->text));
	}
	if (c->kind != SH_SIMPLE && c->words) {
		cs_buf_str(b, " ");
		dump_list(b, c->words, " ");
	}
	if (c->kind == SH_SIMPLE)
		dump_simple(b, c);
	for (const struct sh_case_item *i = c->items; i; i = i->next) {
		cs_buf_str(b, " ");
		dump_list(b, i->patterns, "|");
		cs_buf_str(b, ")");
		dump_commands(b, i->body);
		cs_buf_char(b, i->end);
	}
	if (c->child) {
		cs_buf_str(b, " ");
		for (const struct sh_command *k = c->child; k; k = k->next) {
			dump_command(b, k);
			if (k->next)
				cs_buf_str(b, k->both ? "&" : " ");
		}
	}
	dump_redirects(b, c->redirects);
	cs_buf_str(b, ")");
}

static void dump_commands(struct cs_buf *b, const struct sh_command *c)
{
	if (c)
		dump_command(b, c);
	else
		cs_buf_str(b, "()");
}
