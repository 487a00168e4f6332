/* SPDX-License-Identifier: Apache-2.0 */
/* builtin_run.c - commands that run text: eval, source, trap, and shells. */
#include "shell/walk.h"

#include <stdlib.h>
#include <string.h>

/* All the words, with blanks between them. */
static struct value joined(struct walk *w, const struct args *a, size_t from)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(SHW_VALUE_MAX);

	for (size_t i = from; i < a->n; i++) {
		if (a->v[i].known != SH_LITERAL)
			return value_unknown();
		cs_buf_fmt(&out, "%s%s", i > from ? " " : "", a->v[i].text);
	}
	return out.over || a->endless ? value_unknown() : value_of(w, cs_buf_text(&out), out.len);
}

struct outcome run_eval(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	size_t from = first + 1 < a->n && arg_literal(a, first + 1) && !strcmp(a->v[first + 1].text, "--") ? first + 2 : first + 1;
	struct value v = joined(w, a, from);
	struct outcome o;

	if (from >= a->n && !a->endless)
		return (struct outcome){ .status = -1 };
	if (!v.known) {
		effect_add(w, SH_EFFECT_EXECUTE, "", "eval", &a->v[first], NULL);
		uncertain(w, &a->v[first], "eval: what it would run is not known here");
		s->umbrella = "eval may have changed anything";
		return (struct outcome){ .status = -1 };
	}
	for (size_t i = from; i < a->n; i++)
		if (a->v[i].followed)
			uncertain(w, &a->v[i], "eval: what it runs comes through a variable or a substitution");
	o = walk_text(w, s, v.text, v.len, a->v[first].at, a->v[first].len, in);
	o.status = -1;
	return o;
}

struct outcome run_source(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	const char *path = arg_literal(a, first + 1) ? path_resolve(w, s, a->v[first + 1].text) : NULL;
	const struct file *f = path ? file_find(s, path) : arg_literal(a, first + 1) ? file_find(s, a->v[first + 1].text) : NULL;

	effect_add(w, SH_EFFECT_EXECUTE, path ? path : "", a->v[first].text, &a->v[first], NULL);
	uncertain(w, &a->v[first], "%s runs a file", a->v[first].text);
	if (arg_literal(a, first + 1) && (!strcmp(a->v[first + 1].text, "/dev/stdin") || !strncmp(a->v[first + 1].text, "/dev/fd/0", 9)) && in && in->known)
		return walk_text(w, s, in->text, in->len, a->v[first].at, a->v[first].len, NULL);
	if (f && f->content.known && !f->content.packed)
		return walk_text(w, s, f->content.text, f->content.len, a->v[first].at, a->v[first].len, in);
	s->umbrella = "a file that was read in may have changed anything";
	return (struct outcome){ .status = -1 };
}

struct outcome run_trap(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	size_t i = first + 1;
	struct state sub = state_copy(w, s);

	if (i < a->n && arg_literal(a, i) && (!strcmp(a->v[i].text, "-p") || !strcmp(a->v[i].text, "-l")))
		return (struct outcome){ .status = 0 };
	if (i < a->n && arg_literal(a, i) && !strcmp(a->v[i].text, "--"))
		i++;
	if (i + 1 >= a->n && !a->endless && (i >= a->n || arg_literal(a, i)))
		return (struct outcome){ .status = -1 }; /* `trap SIGNAL`: back to what it was */
	if (!arg_literal(a, i)) {
		uncertain(w, &a->v[first], "trap: what it would run is not known here");
		return (struct outcome){ .status = -1 };
	}
	if (strcmp(a->v[i].text, "-") && *a->v[i].text)
		uncertain(w, &a->v[i], "trap: what it runs runs later, when names may stand for other things"), (void)walk_text(w, &sub, a->v[i].text, strlen(a->v[i].text), a->v[i].at, a->v[i].len, NULL);
	return outcome_quiet(w, -1);
}

/* A shell of its own. */
struct outcome run_shell(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	const char *by = a->v[first].text;
	struct state sub = state_copy(w, s);
	bool reads = false, text = false, checks = false, undone = false;
	struct outcome o = { .status = -1 };
	size_t i = first + 1;

	if (!s->exported_functions)
		sub.functions = NULL;
	if (strcmp(by, "bash") && strcmp(by, "sh") && strcmp(by, "dash"))
		uncertain(w, &a->v[first], "%s is another language, and reads files of its own first", by);
	set_positional(w, &sub, a, a->n);
	for (; i < a->n; i++) {
		const char *t = a->v[i].text;

		if (!arg_literal(a, i)) {
			uncertain(w, &a->v[i], "%s: a word that may be an option is not known here", by);
			break;
		}
		if ((*t != '-' && *t != '+') || !t[1])
			break;
		if (!strcmp(t, "--")) {
			i++;
			break;
		}
		if (t[1] == '-') {
			static const char *const ok[] = { "--norc", "--noprofile", "--posix", "--version", "--help", "--verbose", NULL };

			if (!strcmp(t, "--version") || !strcmp(t, "--help"))
				return (struct outcome){ .status = 0 };
			if (!is_one_of(t, ok))
				uncertain(w, &a->v[i], "%s: option %s reads files, or is not known", by, t);
			if (!strcmp(t, "--rcfile") || !strcmp(t, "--init-file"))
				i++;
			continue;
		}
		if (strspn(t + 1, "abcefhkmnoprstuvxBCEHPT") != strlen(t + 1) || strchr(t, 'r'))
			uncertain(w, &a->v[i], "%s: option %s reads start-up files, or is not known", by, t);
		text |= *t == '-' && strchr(t, 'c') != NULL;
		reads |= *t == '-' && strchr(t, 's') != NULL;
		checks |= *t == '-' && strchr(t, 'n') != NULL;
		undone |= *t == '+' && strpbrk(t, "nco") != NULL;
		if (strchr(t, 'o') && i + 1 < a->n)
			i++;
	}
	if (undone)
		uncertain(w, &a->v[first], "%s: an option is taken back", by);
	if (checks && !undone) { /* read, and not run */
		if (!text && i < a->n)
			effect_path(w, s, SH_EFFECT_READ, &a->v[i], a->v[i].text, by, false);
		return o;
	}
	if (text) {
		if (!arg_literal(a, i)) {
			if (i < a->n || a->endless) {
				effect_add(w, SH_EFFECT_EXECUTE, "", by, &a->v[first], NULL);
				uncertain(w, &a->v[first], "%s -c: what it would run is not known here", by);
			}
			return o;
		}
		if (a->v[i].followed)
			uncertain(w, &a->v[i], "%s -c: what it runs comes through a variable or a substitution", by);
		if (strcmp(by, "bash"))
			doubt_bashisms(w, &a->v[i], a->v[i].text);
		if (a->n > i + 1)
			set_positional(w, &sub, a, i + 1); /* $0 is among them */
		if (a->n > i + 1 && sub.positional_known)
			set_positional(w, &sub, a, i + 2);
		o = walk_text(w, &sub, a->v[i].text, strlen(a->v[i].text), a->v[i].at, a->v[i].len, in);
		s->files = sub.files;
		o.stops = false;
		o.status = -1;
		return o;
	}
	if (i < a->n && !reads) {
		const char *path = arg_literal(a, i) ? path_resolve(w, s, a->v[i].text) : NULL;
		const struct file *f = path ? file_find(s, path) : arg_literal(a, i) ? file_find(s, a->v[i].text) : NULL;

		effect_add(w, SH_EFFECT_EXECUTE, path ? path : "", by, &a->v[i], NULL);
		uncertain(w, &a->v[i], "%s runs a script that is not looked into for a proof", by);
		if (arg_literal(a, i) && !strcmp(a->v[i].text, "/dev/stdin"))
			reads = true;
		else if (f && f->content.known && !f->content.packed)
			return walk_text(w, &sub, f->content.text, f->content.len, a->v[i].at, a->v[i].len, in);
		if (!reads)
			return o;
	}
	effect_add(w, SH_EFFECT_EXECUTE, "standard input", by, &a->v[first], NULL);
	uncertain(w, &a->v[first], "%s runs what comes from standard input", by);
	if (in && in->known && !in->packed)
		o = walk_text(w, &sub, in->text, in->len, a->v[first].at, a->v[first].len, NULL);
	o.stops = false;
	return o;
}
