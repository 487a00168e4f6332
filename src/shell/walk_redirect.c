/* SPDX-License-Identifier: Apache-2.0 */
/* walk_redirect.c - redirections: what is read and written, and what a command then gets or leaves. */
#include "shell/walk.h"

#include <stdlib.h>
#include <string.h>

/* "2", "2-", "-"; anything else behind >& is a file. */
static bool is_descriptor(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return (n && n < 9 && (!s[n] || !strcmp(s + n, "-"))) || !strcmp(s, "-");
}

static void read_from(struct walk *w, struct state *s, const struct sh_redirect *r, struct plumbing *p)
{
	struct arg a = expand_one(w, s, r->target);
	const struct file *f;
	const char *path;

	if (r->kind == SH_HEREDOC || r->kind == SH_HERESTRING) {
		if (r->fd <= 0 && a.known == SH_LITERAL) {
			p->in = value_of(w, r->kind == SH_HERESTRING ? keep_printf(w->mem, "%s\n", a.text) : a.text,
					 strlen(a.text) + (r->kind == SH_HERESTRING));
		} else if (r->fd <= 0) {
			p->in = value_unknown();
		}
		p->has_in |= r->fd <= 0;
		return;
	}
	if (a.known == SH_LITERAL && !strncmp(a.text, "/dev/tcp/", 9)) {
		effect_add(w, SH_EFFECT_NETWORK, a.text, "redirection", &a, NULL);
		uncertain(w, &a, "%s is a connection over the network", a.text);
		return;
	}
	path = a.known == SH_LITERAL ? path_resolve(w, s, a.text) : NULL;
	f = path ? file_find(s, path) : a.known == SH_LITERAL ? file_find(s, a.text) : NULL;
	if (r->fd <= 0) {
		p->has_in = true;
		p->in = f ? f->content : value_unknown();
	}
	if (!f)
		effect_path(w, s, SH_EFFECT_READ, &a, a.text, "<", false);
}

static void write_to(struct walk *w, struct state *s, const struct sh_redirect *r, struct plumbing *p)
{
	struct arg a = expand_one(w, s, r->target);
	bool is_out = r->fd < 0 || r->fd == 1 || r->kind == SH_BOTH || r->kind == SH_BOTH_APPEND;
	const char *path;

	if (a.known == SH_LITERAL && (!strncmp(a.text, "/dev/tcp/", 9) || !strncmp(a.text, "/dev/udp/", 9))) {
		effect_add(w, SH_EFFECT_NETWORK, a.text, "redirection", &a, NULL);
		uncertain(w, &a, "%s is a connection over the network", a.text);
		return;
	}
	path = a.known == SH_LITERAL ? path_resolve(w, s, a.text) : NULL;
	effect_path(w, s, SH_EFFECT_WRITE, &a, a.text, ">", false);
	if (r->fd_name) /* $name stands for the file from now on, also after the command */
		uncertain(w, &a, "a descriptor that is kept in a variable");
	if (!is_out)
		return;
	p->out = path;
	p->drops_out = true;
	p->appends = r->kind == SH_APPEND || r->kind == SH_BOTH_APPEND;
}

static void duplicate(struct walk *w, struct state *s, const struct sh_redirect *r, struct plumbing *p)
{
	struct arg a = expand_one(w, s, r->target);

	if (a.known == SH_LITERAL && is_descriptor(a.text)) {
		if (a.followed)
			uncertain(w, &a, "a descriptor whose number comes through a variable or a substitution");
		if (strtol(a.text, NULL, 10) > 2)
			uncertain(w, &a, "what descriptor %s is open on is not known here", a.text);
		if (r->kind == SH_DUP_IN && r->fd <= 0)
			p->has_in = true, p->in = value_unknown();
		if (r->kind == SH_DUP_OUT && r->fd == -1 && strcmp(a.text, "1"))
			p->drops_out = true;
		return;
	}
	uncertain(w, &a, "a descriptor whose number is not known here");
	if (r->kind == SH_DUP_OUT)
		write_to(w, s, r, p);
}

void plumb(struct walk *w, struct state *s, const struct sh_redirect *r, struct plumbing *p)
{
	for (; r && !w->spent; r = r->next) {
		work(w, WORK_COMMAND);
		switch (r->kind) {
		case SH_IN:
		case SH_HEREDOC:
		case SH_HERESTRING:
			read_from(w, s, r, p);
			break;
		case SH_INOUT:
			read_from(w, s, r, p);
			write_to(w, s, r, p);
			break;
		case SH_OUT:
		case SH_APPEND:
		case SH_CLOBBER:
		case SH_BOTH:
		case SH_BOTH_APPEND:
			write_to(w, s, r, p);
			break;
		case SH_DUP_IN:
		case SH_DUP_OUT:
			duplicate(w, s, r, p);
			break;
		}
	}
}

/* What it printed is in the file now. */
void drain(struct walk *w, struct state *s, const struct plumbing *p, struct outcome *o)
{
	if (p->out) {
		const struct file *old = p->appends ? file_find(s, p->out) : NULL;
		struct value v = o->out;

		if (p->appends && old && old->content.known && v.known)
			v = old->content.packed || v.packed ? value_unknown() : value_join(w, &old->content, &v);
		else if (p->appends)
			v = value_unknown();
		file_set(w, s, p->out, v, NULL);
	}
	if (p->drops_out)
		o->out = value_of(w, "", 0);
}
