/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - a script as text that reads as the same script.
 *
 * One spelling for each thing: '..' for what is quoted, ${x} for parameters, $(..) for substitutions, a new line after every
 * command of a list.  Bodies of here-documents wait for the next new line. */
#include "shell/internal.h"

struct printer {
	struct cs_buf *out;
	struct cs_buf bodies; /* of here-documents, to come after the next new line */
	bool here;            /* within the body of one */
};

/* How literal text is protected: '..' in a word, ".." in an expression, not at all within ${..} in a here-document. */
enum protect { SINGLE, DOUBLE };

static void print_list(struct printer *p, const struct sh_command *c);
static void print_command(struct printer *p, const struct sh_command *c);
static void print_word(struct printer *p, const struct sh_word *w, enum protect how);
static void print_part(struct printer *p, const struct sh_part *part, enum protect how, bool in_quotes);

static void str(struct printer *p, const char *s)
{
	cs_buf_str(p->out, s);
}

static void new_line(struct printer *p)
{
	cs_buf_char(p->out, '\n');
	cs_buf_add(p->out, cs_buf_text(&p->bodies), p->bodies.len);
	p->bodies.len = 0;
}

/* ---- words ---- */

static void print_escapes(struct printer *p, const char *t, size_t len)
{
	str(p, "$'");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)t[i];

		if (c < 0x20 || c >= 0x7f)
			cs_buf_fmt(p->out, "\\%03o", c);
		else if (c == '\'' || c == '\\')
			cs_buf_fmt(p->out, "\\%c", c);
		else
			cs_buf_char(p->out, (char)c);
	}
	str(p, "'");
}

static void print_single(struct printer *p, const char *t, size_t len)
{
	str(p, "'");
	for (size_t i = 0; i < len; i++)
		if (t[i] == '\'')
			str(p, "'\\''");
		else
			cs_buf_char(p->out, t[i]);
	str(p, "'");
}

/* Literal text within double quotes or a here-document. */
static void print_escaped(struct printer *p, const struct sh_part *part, const char *which)
{
	for (size_t i = 0; i < part->len; i++) {
		if (strchr(which, part->text[i]))
			cs_buf_char(p->out, '\\');
		cs_buf_char(p->out, part->text[i]);
	}
}

static void print_quoted(struct printer *p, const struct sh_part *part, enum protect how)
{
	if (p->here) {
		cs_buf_add(p->out, part->text, part->len);
	} else if (how == DOUBLE) {
		str(p, "\"");
		print_escaped(p, part, "$`\"\\");
		str(p, "\"");
	} else if (rd_shown(part->text, part->len)) {
		print_single(p, part->text, part->len);
	} else {
		print_escapes(p, part->text, part->len);
	}
}

static void print_param(struct printer *p, const struct sh_param *x, bool quoted)
{
	/* within "${x:-..}" single quotes would be literal */
	bool word = x->op[0] && strchr("-=?+", x->op[strlen(x->op) - 1]);
	enum protect how = (quoted && word) || !strcmp(x->op, ":") ? DOUBLE : SINGLE;

	cs_buf_fmt(p->out, "${%s%s%s", x->length ? "#" : "", x->indirect ? "!" : "", x->name);
	if (x->index) {
		str(p, "[");
		print_word(p, x->index, DOUBLE);
		str(p, "]");
	}
	str(p, x->op);
	for (const struct sh_part *part = x->arg ? x->arg->parts : NULL; part; part = part->next)
		print_part(p, part, how, p->here || (quoted && word));
	if (x->arg2 || x->empty2)
		cs_buf_char(p->out, x->op[0]);
	if (x->arg2)
		print_word(p, x->arg2, how);
	str(p, "}");
}

/* "!" or "time" without a command needs a new line or ';' after it. */
static bool ends_bare(const struct sh_command *c)
{
	for (;;) {
		if (c->kind == SH_NOT || c->kind == SH_TIME) {
			if (!c->child)
				return true;
		} else if (c->kind != SH_SEQUENCE && c->kind != SH_AND && c->kind != SH_OR) {
			return false;
		}
		for (c = c->child; c->next; c = c->next)
			;
	}
}

static void print_script(struct printer *p, const struct sh_script *s)
{
	struct printer inner = { .out = p->out, .bodies = CS_BUF(p->out->max) };

	if (s->first) {
		str(p, " ");
		print_list(&inner, s->first);
	}
	if (inner.bodies.len || (s->first && ends_bare(s->first)))
		new_line(&inner);
	cs_buf_done(&inner.bodies);
	str(p, ")");
}

static void print_expansion(struct printer *p, const struct sh_part *part)
{
	if (part->kind == SH_PARAM) {
		print_param(p, part->param, part->quoted);
	} else if (part->kind == SH_COMMAND) {
		str(p, "$(");
		print_script(p, part->script);
	} else {
		str(p, part->bracket ? "$[" : "$((");
		cs_buf_add(p->out, part->text, part->len);
		str(p, part->bracket ? "]" : "))");
	}
}

static void print_assign(struct printer *p, const struct sh_assign *a);

static void print_brace(struct printer *p, const struct sh_part *part)
{
	str(p, "{");
	for (const struct sh_word *w = part->words; w; w = w->next) {
		print_word(p, w, SINGLE);
		if (w->next)
			str(p, part->sequence ? ".." : ",");
	}
	str(p, "}");
}

static void print_part(struct printer *p, const struct sh_part *part, enum protect how, bool in_quotes)
{
	switch (part->kind) {
	case SH_LIT:
	case SH_GLOB:
		cs_buf_add(p->out, part->text, part->len);
		break;
	case SH_QUOTED:
		print_quoted(p, part, how);
		break;
	case SH_TILDE:
		str(p, "~");
		str(p, part->text);
		break;
	case SH_PARAM:
	case SH_COMMAND:
	case SH_ARITH:
		if (part->quoted && !in_quotes)
			str(p, "\"");
		print_expansion(p, part);
		if (part->quoted && !in_quotes)
			str(p, "\"");
		break;
	case SH_PROCESS:
		cs_buf_fmt(p->out, "%c(", part->direction);
		print_script(p, part->script);
		break;
	case SH_BRACE:
		print_brace(p, part);
		break;
	case SH_ARRAY:
		print_assign(p, part->assign);
		break;
	default:
		break;
	}
}

static void print_word(struct printer *p, const struct sh_word *w, enum protect how)
{
	for (const struct sh_part *part = w->parts; part; part = part->next)
		print_part(p, part, how, p->here);
}

static void print_words(struct printer *p, const struct sh_word *w)
{
	for (; w; w = w->next) {
		str(p, " ");
		print_word(p, w, SINGLE);
	}
}

static void print_assign(struct printer *p, const struct sh_assign *a)
{
	str(p, a->name);
	if (a->index) {
		str(p, "[");
		print_word(p, a->index, DOUBLE);
		str(p, "]");
	}
	str(p, a->append ? "+=" : "=");
	if (a->value)
		print_word(p, a->value, SINGLE);
	if (!a->array)
		return;
	str(p, "(");
	print_words(p, a->items);
	for (const struct sh_assign *k = a->keyed; k; k = k->next) {
		str(p, " ");
		if (k->index)
			print_assign(p, k);
		else
			print_word(p, k->value, SINGLE);
	}
	str(p, " )");
}

/* ---- redirections ---- */

/* Plain, and no line of the body. */
static bool can_end(const char *delimiter, const struct cs_buf *body)
{
	const char *t = cs_buf_text(body);
	size_t len = strlen(delimiter);

	if (!rd_is_name(delimiter, len))
		return false;
	for (const char *line = t; line < t + body->len; line = strchr(line, '\n') + 1) {
		if (!strncmp(line, delimiter, len) && (line[len] == '\n' || line[len] == ')'))
			return false;
		if (!strchr(line, '\n'))
			break;
	}
	return true;
}

/* Its own delimiter or, if the body as printed has it as a line, "EOF" with as many '_' as it takes. */
static void pick_delimiter(const char *own, const struct cs_buf *body, struct cs_buf *ret)
{
	const char *t = cs_buf_text(body), *end = t + body->len;
	size_t most = 0;

	if (can_end(own, body)) {
		cs_buf_str(ret, own);
		return;
	}
	for (const char *line = t; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t len = stop ? (size_t)(stop - line) : (size_t)(end - line), n = 0;

		if (len >= 3 && !memcmp(line, "EOF", 3)) {
			while (3 + n < len && line[3 + n] == '_')
				n++;
			if (n + 1 > most)
				most = n + 1;
		}
		line += len + 1;
	}
	cs_buf_str(ret, "EOF");
	while (most--)
		cs_buf_char(ret, '_');
}

static void print_here(struct printer *p, const struct sh_redirect *d)
{
	struct cs_buf text = CS_BUF(p->out->max), delimiter = CS_BUF(p->out->max);
	struct printer body = { .out = &text, .here = true };

	for (const struct sh_part *part = d->target->parts; part; part = part->next) {
		if (part->kind == SH_QUOTED && !d->heredoc_quoted)
			print_escaped(&body, part, "$`\\");
		else
			print_part(&body, part, SINGLE, true);
	}
	pick_delimiter(d->delimiter, &text, &delimiter);
	cs_buf_fmt(p->out, d->heredoc_quoted ? "<<'%s'" : "<<%s", cs_buf_text(&delimiter));
	cs_buf_add(&p->bodies, cs_buf_text(&text), text.len);
	cs_buf_add(&p->bodies, cs_buf_text(&delimiter), delimiter.len);
	cs_buf_char(&p->bodies, '\n');
	p->out->over = p->out->over || text.over || p->bodies.over;
	cs_buf_done(&text);
	cs_buf_done(&delimiter);
}

static void print_redirects(struct printer *p, const struct sh_redirect *d)
{
	static const char *const text[] = {
		[SH_IN] = "<",   [SH_OUT] = ">",      [SH_APPEND] = ">>", [SH_CLOBBER] = ">|",      [SH_INOUT] = "<>",      [SH_DUP_IN] = "<&",
		[SH_DUP_OUT] = ">&", [SH_BOTH] = "&>", [SH_BOTH_APPEND] = "&>>", [SH_HERESTRING] = "<<<",
	};

	for (; d; d = d->next) {
		str(p, " ");
		if (d->fd_name)
			cs_buf_fmt(p->out, "{%s}", d->fd_name);
		else if (d->fd >= 0)
			cs_buf_fmt(p->out, "%d", d->fd);
		if (d->kind == SH_HEREDOC) {
			print_here(p, d);
			continue;
		}
		str(p, text[d->kind]);
		str(p, " ");
		print_word(p, d->target, SINGLE);
	}
}

/* ---- commands ---- */

static bool reserved_name(const struct sh_command *c)
{
	const struct sh_part *part = c->words && !c->assigns ? c->words->parts : NULL;

	return part && !part->next && part->kind == SH_LIT && rd_reserved(part->text);
}

static void print_simple(struct printer *p, const struct sh_command *c, bool coproc)
{
	bool first = true, early = c->redirects && !c->assigns && (coproc || reserved_name(c));

	/* >x if, coproc >x a if: the redirection is what makes it a word */
	if (early)
		print_redirects(p, c->redirects);
	for (const struct sh_assign *a = c->assigns; a; a = a->next, first = false) {
		if (!first)
			str(p, " ");
		print_assign(p, a);
	}
	for (const struct sh_word *w = c->words; w; w = w->next, first = false) {
		if (!first || early)
			str(p, " ");
		print_word(p, w, SINGLE);
	}
	if (!early)
		print_redirects(p, c->redirects);
}

/* A list, each command on its line; ends after the last one's new line. */
static void print_block(struct printer *p, const struct sh_command *c)
{
	str(p, " ");
	print_list(p, c);
	new_line(p);
}

static void print_children(struct printer *p, const struct sh_command *c, const char *between)
{
	for (const struct sh_command *k = c->child; k; k = k->next) {
		print_command(p, k);
		if (k->next)
			str(p, k->both ? " |& " : between);
	}
}

static void print_if(struct printer *p, const struct sh_command *c)
{
	const char *word = "if";

	for (const struct sh_command *k = c->child; k; k = k->next) {
		if (!k->next) {
			str(p, "else");
			print_block(p, k);
			break;
		}
		str(p, word);
		print_block(p, k);
		str(p, "then");
		k = k->next;
		print_block(p, k);
		word = "elif";
	}
	str(p, "fi");
}

static void print_body(struct printer *p, const struct sh_command *c)
{
	new_line(p);
	str(p, "do");
	print_block(p, c);
	str(p, "done");
}

static void print_for(struct printer *p, const struct sh_command *c)
{
	if (c->kind == SH_FOR_ARITH) {
		cs_buf_fmt(p->out, "for ((");
		str(p, c->text);
		str(p, "))");
	} else {
		cs_buf_fmt(p->out, "%s %s", c->kind == SH_FOR ? "for" : "select", c->name);
		if (c->has_in)
			str(p, " in");
		print_words(p, c->words);
	}
	print_body(p, c->child);
}

static void print_case(struct printer *p, const struct sh_command *c)
{
	str(p, "case");
	print_words(p, c->words);
	str(p, " in");
	new_line(p);
	for (const struct sh_case_item *i = c->items; i; i = i->next) {
		str(p, "(");
		for (const struct sh_word *w = i->patterns; w; w = w->next) {
			str(p, " ");
			print_word(p, w, SINGLE);
			if (w->next)
				str(p, " |");
		}
		str(p, ")");
		if (i->body)
			print_block(p, i->body);
		str(p, i->end == '+' ? ";;&" : i->end == '&' ? ";&" : ";;");
		new_line(p);
	}
	str(p, "esac");
}

static void print_prefix(struct printer *p, const char *word, const struct sh_command *child)
{
	str(p, word);
	if (!child)
		return;
	str(p, " ");
	print_command(p, child);
}

static void print_kind(struct printer *p, const struct sh_command *c)
{
	switch (c->kind) {
	case SH_SIMPLE:
		print_simple(p, c, /* coproc= */ false);
		break;
	case SH_PIPE:
		print_children(p, c, " | ");
		break;
	case SH_AND:
		print_children(p, c, " && ");
		break;
	case SH_OR:
		print_children(p, c, " || ");
		break;
	case SH_SEQUENCE:
	case SH_BACKGROUND:
		print_list(p, c);
		break;
	case SH_NOT:
		print_prefix(p, "!", c->child);
		break;
	case SH_TIME:
		print_prefix(p, c->posix_time ? "time -p" : "time", c->child);
		break;
	case SH_SUBSHELL:
		str(p, "(");
		print_block(p, c->child);
		str(p, ")");
		break;
	case SH_GROUP:
		str(p, "{");
		print_block(p, c->child);
		str(p, "}");
		break;
	case SH_IF:
		print_if(p, c);
		break;
	case SH_WHILE:
	case SH_UNTIL:
		str(p, c->kind == SH_WHILE ? "while " : "until ");
		print_list(p, c->child);
		print_body(p, c->child->next);
		break;
	case SH_FOR:
	case SH_SELECT:
	case SH_FOR_ARITH:
		print_for(p, c);
		break;
	case SH_CASE:
		print_case(p, c);
		break;
	case SH_FUNCTION:
		cs_buf_fmt(p->out, "function %s () ", c->name);
		print_command(p, c->child);
		break;
	case SH_CONDITION:
		str(p, "[[");
		print_words(p, c->words);
		str(p, " ]]");
		break;
	case SH_ARITHMETIC:
		str(p, "((");
		str(p, c->text);
		str(p, "))");
		break;
	case SH_COPROC:
		str(p, "coproc ");
		if (c->name)
			cs_buf_fmt(p->out, "%s ", c->name);
		if (c->child->kind == SH_SIMPLE)
			print_simple(p, c->child, /* coproc= */ true);
		else
			print_command(p, c->child);
		break;
	default:
		break;
	}
}

static void print_command(struct printer *p, const struct sh_command *c)
{
	print_kind(p, c);
	if (c->kind != SH_SIMPLE)
		print_redirects(p, c->redirects);
}

static void print_item(struct printer *p, const struct sh_command *c)
{
	if (c->kind != SH_BACKGROUND) {
		print_command(p, c);
		return;
	}
	print_command(p, c->child);
	str(p, " &");
}

/* Without a new line after the last. */
static void print_list(struct printer *p, const struct sh_command *c)
{
	if (c->kind != SH_SEQUENCE) {
		print_item(p, c);
		return;
	}
	for (c = c->child; c; c = c->next) {
		print_item(p, c);
		if (c->next)
			new_line(p);
	}
}

void sh_print(const struct sh_script *s, struct cs_buf *out)
{
	struct printer p = { .out = out, .bodies = CS_BUF(out->max) };

	if (s->first) {
		print_list(&p, s->first);
		new_line(&p);
	}
	cs_buf_done(&p.bodies);
}
