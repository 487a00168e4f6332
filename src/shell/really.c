/* SPDX-License-Identifier: Apache-2.0 */
/* really.c - what a path is when its links are followed.
 *
 * The words are judged first, as ever.  Then every place that they lead to is judged in the same way, and what that adds stays:
 * a link can make a command less safe and nothing else.  A path goes out as it was written, behind the working directory:
 * `link/../x` is beside what the link leads to, and only who follows it can tell. */
#include "shell/walk.h"

#include <string.h>

struct leads {
	struct walk *w;
	struct state *s;
	enum sh_effect_kind kind;
	struct arg a;          /* the word; what is known of it holds for the place as well */
	const char *path;      /* by its words */
	const char *by;
	const char *same;      /* the place that is none but the words' own */
	const char *rest;      /* behind every place: names that nobody knows begin there */
	bool tree;
};

static size_t count_forbidden(const struct sh_verdict *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_effects; i++)
		n += v->effects[i].forbidden;
	return n;
}

static void on_found(void *to, const char *real)
{
	struct leads *l = to;
	struct walk *w = l->w;
	size_t reasons = w->v->n_reasons, forbidden = count_forbidden(w->v);
	const char *place = keep_printf(w->mem, "%s%s", real, l->rest);

	if (!strcmp(real, l->same))
		return;
	effect_path(w, l->s, l->kind, &l->a, place, l->by, l->tree);
	if (w->v->n_reasons != reasons || count_forbidden(w->v) != forbidden)
		uncertain(w, &l->a, "%s leads to %s", l->path, place);
}

/* Up to the directory in which the names are that nobody knows. */
static char *known_directory(struct walk *w, const char *path, const char *stops)
{
	char *dir = keep_text(w->mem, path, strcspn(path, stops));
	char *slash = strrchr(dir, '/');

	if (slash)
		slash[slash == dir] = '\0';
	return dir;
}

static void look_at(struct leads *l, const char *path, enum sh_known known)
{
	const struct sh_policy *p = l->w->policy;
	bool changes = l->kind != SH_EFFECT_READ;
	unsigned how = l->kind == SH_EFFECT_DELETE ? SH_LOOK_LAST : 0;
	size_t n = strlen(path);

	if (known == SH_PATTERN && !changes)
		how |= SH_LOOK_PATTERN;
	if (known == SH_PREFIX || (known == SH_PATTERN && changes)) {
		path = known_directory(l->w, path, known == SH_PATTERN ? "*?[" : "");
		how = 0;
		l->a.known = SH_PATTERN;
		l->rest = "/*";
		l->same = path_resolve(l->w, l->s, path);
	} else {
		l->a.known = SH_LITERAL;
		l->rest = "";
		l->same = l->path;
	}
	if (n && path[n - 1] == '/')
		how &= ~(unsigned)SH_LOOK_LAST; /* `rm -r link/` is about what is there */
	if (!l->same)
		return;
	if (!p->look(p->look_arg, path, how, on_found, l))
		uncertain(l->w, &l->a, "%s: where %s leads could not be looked at", l->by, path);
}

static void look_from(struct leads *l, const char *dir, const char *text, enum sh_known known)
{
	struct state there = *l->s;

	if (*text != '/' && !dir)
		return; /* not known, and said so */
	there.cwd = dir;
	l->path = path_resolve(l->w, &there, text);
	if (!l->path)
		return;
	look_at(l, *text == '/' ? text : keep_printf(l->w->mem, "%s/%s", dir, text), known);
	if (strstr(text, "..")) /* and if a directory on the way is not there yet */
		look_at(l, l->path, known);
}

void effect_really(struct walk *w, struct state *s, enum sh_effect_kind kind, const struct arg *a, const char *text, const char *by, bool tree)
{
	struct leads l = { .w = w, .s = s, .kind = kind, .a = *a, .by = by, .tree = tree };

	w->looking = true;
	effect_path(w, s, kind, a, text, by, tree);
	if (text && *text && a->known != SH_DYNAMIC) {
		look_from(&l, s->cwd, text, a->known);
		if (s->also && *s->also && *text != '/') /* if cd failed */
			look_from(&l, s->also, text, a->known);
	}
	w->looking = false;
}
