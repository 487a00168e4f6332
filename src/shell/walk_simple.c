/* SPDX-License-Identifier: Apache-2.0 */
/* walk_simple.c - simple commands: assignments, functions, which program a name stands for. */
#include "shell/walk.h"

#include <fnmatch.h>
#include <string.h>

static void set_array(struct walk *w, struct state *s, const struct sh_assign *a)
{
	struct var *v = var_make(w, s, a->name);
	struct args items = { 0 };

	for (const struct sh_word *i = a->items; i && !w->spent; i = i->next)
		expand_word(w, s, i, &items);
	for (const struct sh_assign *k = a->keyed; k && !w->spent; k = k->next) {
		if (k->index)
			scan_index(w, s, k->index);
		if (k->value)
			scan_word(w, s, k->value);
	}
	*v = (struct var){ .next = v->next, .name = v->name, .hash = v->hash, .set = true, .array = true };
	if (a->keyed || a->append || items.endless)
		return;
	v->items = keep_bytes(w->mem, (items.n + 1) * sizeof *v->items);
	for (size_t i = 0; i < items.n; i++)
		v->items[i] = items.v[i].known == SH_LITERAL ? value_of(w, items.v[i].text, strlen(items.v[i].text)) : value_unknown();
	v->n_items = items.n;
}

static void assign(struct walk *w, struct state *s, const struct sh_assign *a, bool lasts)
{
	struct arg v = { .text = keep_text(w->mem, "", 0), .known = SH_LITERAL, PLACE(w, a) };

	if (a->array) {
		set_array(w, s, a);
		look_at_variable(w, s, a->name, &(struct arg){ .known = SH_DYNAMIC, PLACE(w, a), .text = v.text });
		return;
	}
	if (a->index)
		scan_index(w, s, a->index);
	if (a->value)
		v = expand_one(w, s, a->value);
	look_at_variable(w, s, a->name, &v);
	if (!lasts) {
		look_at_exported(w, a->name, &v);
		return;
	}
	if (a->index || a->append || v.known != SH_LITERAL)
		var_forget(w, s, a->name);
	else
		var_set(w, s, a->name, value_of(w, v.text, strlen(v.text)));
}

void scan_assign(struct walk *w, struct state *s, const struct sh_assign *a)
{
	assign(w, s, a, true);
}

struct function *function_find(const struct state *s, const char *name)
{
	uint32_t hash = s->functions ? hash_text(0, name) : 0;

	for (struct function *f = s->functions; f; f = f->next)
		if (f->hash == hash && !strcmp(f->name, name))
			return f;
	return NULL;
}

static struct outcome call(struct walk *w, struct state *s, const struct function *f, const struct args *a, size_t first, const struct value *in)
{
	struct args old = s->positional;
	bool old_known = s->positional_known;
	const struct { bool nested; uint32_t at, len; } outer = { w->nested, w->at, w->len };
	struct outcome o;

	set_positional(w, s, a, first + 1);
	if (!w->nested) { /* what it is made of stands where it was defined */
		w->nested = f->nested;
		w->at = f->at;
		w->len = f->len;
	}
	w->depth++;
	o = walk_command(w, s, f->body, in);
	w->depth--;
	w->nested = outer.nested;
	w->at = outer.at;
	w->len = outer.len;
	s->positional = old;
	s->positional_known = old_known;
	o.stops = false;
	o.status = -1; /* return may come from anywhere */
	return o;
}

static const char *const program_dirs[] = { "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/" };

static const char *in_program_dir(const char *path)
{
	for (size_t i = 0; i < sizeof program_dirs / sizeof *program_dirs; i++) {
		size_t n = strlen(program_dirs[i]);

		if (!strncmp(path, program_dirs[i], n) && path[n] && !strchr(path + n, '/'))
			return path + n;
	}
	return NULL;
}

/* A command by its path. NULL: it is not one that the table could know. */
static const char *program_at(struct walk *w, struct state *s, const struct arg *a, struct value *ret_script)
{
	const char *path = path_resolve(w, s, a->text);
	const struct file *f = path ? file_find(s, path) : NULL;

	*ret_script = value_unknown();
	if (f && f->program)
		return f->program;
	if (f) {
		*ret_script = f->content;
		return NULL;
	}
	return path ? in_program_dir(path) : NULL;
}

/* Names that a pattern could stand for: enough of them to see what would be worst. */
static void try_pattern(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	static const char *const names[] = { "rm", "rmdir", "unlink", "shred", "dd", "mv", "sh", "bash", "find", "truncate", "chmod", "chown", "curl", "wget", "sudo" };
	const char *pattern = a->v[first].text;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t d = 0; d < sizeof program_dirs / sizeof *program_dirs; d++) {
			const char *path = keep_printf(w->mem, "%s%s", program_dirs[d], names[i]);
			struct args copy = { 0 };

			if (fnmatch(pattern, *pattern == '/' ? path : names[i], FNM_PATHNAME) != 0)
				continue;
			args_add(w, &copy, (struct arg){ .text = keep_text(w->mem, names[i], strlen(names[i])), .known = SH_LITERAL, .at = a->v[first].at, .len = a->v[first].len });
			for (size_t k = first + 1; k < a->n; k++)
				args_add(w, &copy, a->v[k]);
			w->depth++;
			(void)walk_args(w, s, &copy, 0, NULL);
			w->depth--;
			break;
		}
}

static struct outcome run_unknown(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	const struct arg *name = &a->v[first];

	if (name->known == SH_PATTERN)
		try_pattern(w, s, a, first);
	effect_add(w, SH_EFFECT_EXECUTE, name->known == SH_LITERAL ? name->text : "", name->known == SH_LITERAL ? name->text : "?", name, NULL);
	uncertain(w, name, name->known == SH_LITERAL ? "%s is not a command that the table knows" : "which command is run is not known here", name->text);
	return (struct outcome){ .status = -1 };
}

/* A word that came to nothing could be one after all: only who does nothing with any word does not mind. */
static void doubt_vanished(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	static const char *const indifferent[] = { "echo", ":", "true", "false" };

	for (size_t i = 0; i < sizeof indifferent / sizeof *indifferent; i++)
		if (a->v[first].known == SH_LITERAL && !a->v[first].followed && !strcmp(a->v[first].text, indifferent[i]) && !function_find(s, indifferent[i]))
			return;
	uncertain(w, &a->v[first], "a word that is left out here comes through a variable or a substitution");
}

static bool is_shells_own(const char *name)
{
	static const char *const not_own[] = { "sh", "bash", "dash", "cp", "ln", "mv", "install", "busybox", "toybox", "true", "false", "echo", "printf" };

	for (size_t i = 0; i < sizeof not_own / sizeof *not_own; i++)
		if (!strcmp(name, not_own[i]))
			return false;
	return true;
}

static struct outcome walk_named(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in, bool functions)
{
	struct outcome o = { .status = -1 };
	const struct function *f;
	struct value script, out;
	const char *program;
	struct args named;

	if (first >= a->n || too_much(w, &a->v[first]))
		return o;
	if (a->vanished && first == 0)
		doubt_vanished(w, s, a, first);
	if (a->v[first].known != SH_LITERAL)
		return run_unknown(w, s, a, first);
	if (a->v[first].followed)
		uncertain(w, &a->v[first], "the name of the command %s comes through a variable or a substitution", a->v[first].text);
	if (s->umbrella)
		uncertain(w, &a->v[first], "%s", s->umbrella);
	f = functions ? function_find(s, a->v[first].text) : NULL;
	if (f && s->shadowed)
		uncertain(w, &a->v[first], "%s has more than one definition", a->v[first].text);
	if (f)
		return call(w, s, f, a, first, in);
	if (s->shadowed && functions)
		uncertain(w, &a->v[first], "%s may be a function that is defined on another way through the script", a->v[first].text);
	named = *a;
	if (strchr(a->v[first].text, '/')) {
		program = program_at(w, s, &a->v[first], &script);
		if (!program && script.known) {
			struct state sub = state_copy(w, s);

			uncertain(w, &a->v[first], "%s is a script that was written here", a->v[first].text);
			return walk_text(w, &sub, script.text, script.len, a->v[first].at, a->v[first].len, in);
		}
		if (!program && strstr(a->v[first].text, "/ld-linux") && a->n > first + 1) {
			uncertain(w, &a->v[first], "a program is started through the dynamic linker");
			return walk_args(w, s, a, first + 1, in);
		}
		if (!program)
			return run_unknown(w, s, a, first);
		named = (struct args){ 0 };
		for (size_t i = 0; i < a->n; i++)
			args_add(w, &named, a->v[i]);
		named.endless = a->endless;
		named.v[first].text = keep_text(w->mem, program, strlen(program));
	}
	if (named.v != a->v) { /* by its path it is no builtin, and need not be there */
		struct state sub = state_copy(w, s);

		if (run_builtin(w, &sub, &named, first, in, &o)) {
			s->files = sub.files;
			if (is_shells_own(named.v[first].text))
				uncertain(w, &a->v[first], "%s is not the shell's own %s", a->v[first].text, named.v[first].text);
			o.stops = false;
			o.status = -1;
			return o;
		}
	} else if (run_builtin(w, s, &named, first, in, &o)) {
		return o;
	}
	if (s->path_changed && named.v[first].text == a->v[first].text)
		uncertain(w, &a->v[first], "PATH was changed: %s may be another program", a->v[first].text);
	out = output_of(w, s, &named, first, in);
	o = apply_findings(w, s, &named, first, in);
	if (out.known)
		o.out = out;
	return o;
}

struct outcome walk_args(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	return walk_named(w, s, a, first, in, true);
}

struct outcome walk_program(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	return walk_named(w, s, a, first, in, false);
}

struct outcome walk_simple(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct outcome o = { .status = 0 };
	struct args a = { 0 };
	struct plumbing p = { 0 };
	bool was_piped = w->piped;

	for (const struct sh_word *x = c->words; x && !w->spent; x = x->next)
		expand_word(w, s, x, &a);
	for (const struct sh_assign *x = c->assigns; x && !w->spent; x = x->next)
		assign(w, s, x, a.n == 0);
	plumb(w, s, c->redirects, &p);
	if (p.has_in)
		in = &p.in;
	if (p.drops_out)
		w->piped = false; /* it goes elsewhere, perhaps to a terminal */
	if (a.n) {
		o = walk_args(w, s, &a, 0, in);
		if (c->assigns)
			o.out = value_unknown();
	} else {
		o.status = -1;
		o.out = c->redirects ? value_unknown() : value_of(w, "", 0); /* $(<file) is what the file holds */
		if (a.vanished || a.endless)
			uncertain(w, &(struct arg){ PLACE(w, c) }, "which command is run is not known here");
	}
	w->piped = was_piped;
	if (c->redirects)
		o.status = -1, o.stops = false; /* a redirection that fails is all that happens */
	drain(w, s, &p, &o);
	return o;
}

/* Where bash and a plain /bin/sh read the same text in different ways. */
void doubt_bashisms(struct walk *w, const struct arg *a, const char *text)
{
	static const char *const only[] = { "[[", "((", "$'", "$\"", "&>", ">&", "|&", "<(", ">(", "<<<", ";&", "+=", "=(", "$[", "function", "select", "coproc", "time", "source", "declare", "local", "alias", "{" };

	for (size_t i = 0; i < sizeof only / sizeof *only; i++) {
		const char *at = strstr(text, only[i]);

		if (!at || (!strcmp(only[i], ">&") && (at[2] == '1' || at[2] == '2') && !strstr(at + 2, ">&")))
			continue;
		uncertain(w, a, "%s does not mean the same to every sh", only[i]);
		return;
	}
}
