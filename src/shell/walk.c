/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - the tree, in the order in which it would run.
 *
 * A branch is left out only if a constant rules it out.  Where two ways meet, what they disagree on is not known. */
#include "shell/walk.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const struct arg nowhere;

static bool too_much(struct walk *w, const struct arg *a)
{
	work(w, WORK_COMMAND);
	if (!w->spent && w->depth <= SHW_DEPTH)
		return false;
	if (!w->spent)
		uncertain(w, a, "commands within commands, more than %d deep", SHW_DEPTH);
	return true;
}

/* ---- redirections ---- */

struct plumbing {
	struct value in;       /* what is read, if it is redirected */
	bool has_in;
	const char *out;       /* where standard output goes, or NULL: on */
	bool drops_out, appends;
};

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

static void plumb(struct walk *w, struct state *s, const struct sh_redirect *r, struct plumbing *p)
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
static void drain(struct walk *w, struct state *s, const struct plumbing *p, struct outcome *o)
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

/* ---- simple commands ---- */

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
	struct arg v = { .text = keep_text(w->mem, "", 0), .known = SH_LITERAL, .at = a->place.at, .len = a->place.len };

	if (a->array) {
		set_array(w, s, a);
		look_at_variable(w, s, a->name, &(struct arg){ .known = SH_DYNAMIC, .at = a->place.at, .len = a->place.len, .text = v.text });
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

static struct function *find_function(const struct state *s, const char *name)
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
	struct outcome o;

	set_positional(w, s, a, first + 1);
	w->depth++;
	o = walk_command(w, s, f->body, in);
	w->depth--;
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
		if (a->v[first].known == SH_LITERAL && !a->v[first].followed && !strcmp(a->v[first].text, indifferent[i]) && !find_function(s, indifferent[i]))
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
	f = functions ? find_function(s, a->v[first].text) : NULL;
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

static struct outcome walk_simple(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
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
			uncertain(w, &(struct arg){ .at = c->place.at, .len = c->place.len }, "which command is run is not known here");
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

/* ---- lists, branches, loops ---- */

static struct value join_output(struct walk *w, struct value a, struct value b)
{
	if (!a.known || !b.known || a.packed || b.packed)
		return a.known && !a.packed && a.len == 0 ? b : value_unknown();
	if (!b.len)
		return a;
	return value_join(w, &a, &b);
}

static struct outcome walk_sequence(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct outcome o = { .status = 0, .out = value_of(w, "", 0) };

	for (; c && !w->spent; c = c->next) {
		struct outcome one = walk_command(w, s, c, in);

		o.out = join_output(w, o.out, one.out);
		o.status = one.status;
		if (one.stops) {
			o.stops = true;
			break;
		}
	}
	return o;
}

static bool is_cd(const struct sh_command *c)
{
	return c->kind == SH_SIMPLE && c->words && c->words->parts && c->words->parts->kind == SH_LIT && !c->words->parts->next && !strcmp(c->words->parts->text, "cd");
}

static struct outcome walk_and_or(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	int runs = c->kind == SH_AND ? 0 : 1;
	const struct sh_command *prev = c->child;
	struct outcome o = c->child ? walk_command(w, s, c->child, in) : (struct outcome){ .status = -1 };

	for (const struct sh_command *x = c->child ? c->child->next : NULL; x; x = x->next) {
		struct outcome b;

		if (o.stops || (o.status >= 0 && o.status != runs))
			return o;
		if (o.status < 0 && c->kind == SH_AND) { /* each runs only if all before it did */
			struct state other = state_copy(w, s);

			for (; x && !o.stops; prev = x, x = x->next) {
				if (is_cd(prev))
					other.also = NULL;
				o = walk_command(w, &other, x, in);
				state_join(w, s, &other);
			}
			return (struct outcome){ .status = -1 };
		}
		if (o.status < 0) { /* it may run, or not */
			struct state other = state_copy(w, s);

			(void)walk_command(w, &other, x, in);
			state_join(w, s, &other);
			o = (struct outcome){ .status = -1 };
			continue;
		}
		prev = x;
		b = walk_command(w, s, x, in);
		b.out = join_output(w, o.out, b.out);
		o = b;
	}
	return o;
}

static struct outcome walk_pipe(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct outcome o = { .status = -1 };
	struct value between = in ? *in : value_unknown();
	bool piped = in != NULL, was_piped = w->piped;

	for (const struct sh_command *x = c->child; x; x = x->next) {
		struct state sub = state_copy(w, s);

		if (x->next)
			w->piped = true;
		o = walk_command(w, &sub, x, piped ? &between : NULL);
		w->piped = was_piped;
		between = o.out;
		piped = true;
		/* What it wrote to files stays. */
		s->files = sub.files;
	}
	o.stops = false;
	o.status = -1; /* pipefail */
	return o;
}

static struct outcome walk_if(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct state before;
	struct outcome o = { .status = -1 };
	bool some = false;

	for (const struct sh_command *x = c->child; x; x = x->next ? x->next->next : NULL) {
		struct outcome cond;

		if (!x->next) { /* else */
			before = state_copy(w, s);
			o = walk_command(w, &before, x, in);
			if (some)
				state_join(w, s, &before);
			else
				*s = before;
			o.stops = o.stops && !some;
			return some ? (struct outcome){ .status = -1 } : o;
		}
		cond = walk_command(w, s, x, in);
		if (cond.stops)
			return cond;
		if (cond.status == 1)
			continue;
		before = state_copy(w, s);
		o = walk_command(w, &before, x->next, in);
		if (cond.status == 0 && !some) {
			*s = before;
			return o;
		}
		state_join(w, s, &before);
		some = true;
		if (cond.status == 0)
			break;
	}
	return (struct outcome){ .status = -1 };
}

/* Names that a body gives values to: after one round they are not what they were. */
static void forget_assigned(struct walk *w, struct state *s, const struct sh_command *c)
{
	for (; c && !w->spent; c = c->next) {
		work(w, 1);
		for (const struct sh_assign *a = c->assigns; a; a = a->next)
			var_forget(w, s, a->name);
		if (c->kind == SH_FOR || c->kind == SH_SELECT)
			var_forget(w, s, c->name);
		/* read, mapfile, printf -v, declare, let: whatever is a word of theirs could be a name. */
		for (const struct sh_word *x = c->words; x; x = x->next)
			if (x->parts && x->parts->kind == SH_LIT && !x->parts->next && var_find(s, x->parts->text))
				var_forget(w, s, x->parts->text);
		forget_assigned(w, s, c->child);
		for (const struct sh_case_item *i = c->items; i; i = i->next)
			forget_assigned(w, s, i->body);
	}
}

static struct outcome walk_loop(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	const struct sh_command *cond = c->child, *body = cond ? cond->next : NULL;
	struct state round = state_copy(w, s);
	struct outcome o = cond ? walk_command(w, &round, cond, in) : (struct outcome){ .status = -1 };

	if (o.stops || (o.status >= 0 && o.status == (c->kind == SH_WHILE ? 1 : 0))) {
		*s = round;
		return (struct outcome){ .status = 0 };
	}
	if (o.status >= 0)
		uncertain(w, &(struct arg){ .at = c->place.at, .len = c->place.len }, "a loop that need not end");
	if (body)
		(void)walk_command(w, &round, body, in);
	/* Any later round. */
	forget_assigned(w, s, c->child);
	round = state_copy(w, s);
	if (cond)
		(void)walk_command(w, &round, cond, NULL);
	if (body)
		(void)walk_command(w, &round, body, NULL);
	state_join(w, s, &round);
	return (struct outcome){ .status = -1 };
}

static struct outcome walk_for(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	enum { ROUNDS = 64 };
	struct args words = { 0 };
	bool all = c->has_in;

	for (const struct sh_word *x = c->words; x; x = x->next)
		expand_word(w, s, x, &words);
	for (size_t i = 0; i < words.n; i++)
		all &= words.v[i].known == SH_LITERAL;
	if (words.vanished || words.endless)
		uncertain(w, &(struct arg){ .at = c->place.at, .len = c->place.len }, "how often this runs depends on a variable or a substitution");
	look_at_variable(w, s, c->name, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, .at = c->place.at, .len = c->place.len });
	if (all && !words.endless && words.n <= ROUNDS) {
		/* Every word is known: one round each, as it would run. */
		struct outcome o = { .status = 0, .out = value_unknown() };

		for (size_t i = 0; i < words.n && c->child; i++) {
			var_set(w, s, c->name, value_of(w, words.v[i].text, strlen(words.v[i].text)));
			o = walk_command(w, s, c->child, in);
			if (o.stops)
				break;
		}
		o.out = value_unknown();
		o.stops = false;
		o.status = -1;
		return o;
	}
	forget_assigned(w, s, c->child);
	var_forget(w, s, c->name);
	{
		struct state round = state_copy(w, s);

		if (c->child)
			(void)walk_command(w, &round, c->child, in);
		state_join(w, s, &round);
	}
	return (struct outcome){ .status = -1 };
}

static struct outcome walk_case(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct arg subject = c->words ? expand_one(w, s, c->words) : nowhere;
	bool sure = subject.known == SH_LITERAL;

	if (subject.followed)
		uncertain(w, &subject, "which branch is taken depends on a variable or a substitution");
	for (const struct sh_case_item *i = c->items; i && !w->spent; i = i->next) {
		bool matches = false, maybe = !sure;
		struct state branch;

		for (const struct sh_word *p = i->patterns; p; p = p->next) {
			struct arg a = expand_one(w, s, p);

			/* What a pattern matches depends on the locale and on options: only the plainest are certain. */
			if (sure && a.known == SH_PATTERN && !strcmp(a.text, "*") && !a.followed)
				matches = true;
			else if (!sure || a.known != SH_LITERAL || a.followed)
				maybe = true;
			else
				matches |= !strcmp(a.text, subject.text);
		}
		if (!matches && !maybe)
			continue;
		branch = state_copy(w, s);
		if (i->body)
			(void)walk_command(w, &branch, i->body, in);
		state_join(w, s, &branch);
		if (matches && i->end == ';')
			break;
		sure &= i->end == ';'; /* falls through: what follows may run */
	}
	return (struct outcome){ .status = -1 };
}

/* -v NAME: a subscript would be evaluated. */
static void doubt_name(struct walk *w, struct state *s, const struct sh_word *x)
{
	struct arg a = expand_one(w, s, x);

	if (a.known != SH_LITERAL || a.followed || strchr(a.text, '['))
		uncertain(w, &a, "an index is evaluated as arithmetic");
	if (a.known == SH_LITERAL)
		scan_arithmetic(w, s, a.text + strcspn(a.text, "["), a.at, a.len);
}

static void walk_condition(struct walk *w, struct state *s, const struct sh_command *c)
{
	static const char *const numeric[] = { "-eq", "-ne", "-lt", "-le", "-gt", "-ge" };
	const struct sh_word *prev = NULL;

	for (const struct sh_word *x = c->words; x && !w->spent; prev = x, x = x->next) {
		struct arg a = expand_one(w, s, x);
		bool arithmetic = false;

		for (size_t i = 0; i < sizeof numeric / sizeof *numeric; i++)
			arithmetic |= a.known == SH_LITERAL && !strcmp(a.text, numeric[i]);
		if (a.known == SH_LITERAL && !strcmp(a.text, "-v") && x->next)
			doubt_name(w, s, x->next);
		if (!arithmetic)
			continue;
		for (int k = 0; k < 2; k++) { /* both sides are evaluated */
			const struct sh_word *side = k ? x->next : prev;
			struct arg v = side ? expand_one(w, s, side) : nowhere;

			if (v.known == SH_LITERAL && v.text)
				scan_arithmetic(w, s, v.text, c->place.at, c->place.len);
			else if (side)
				uncertain(w, &v, "a value that is not known here is evaluated as arithmetic");
		}
	}
}

static struct outcome walk_kind(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct state sub;
	struct outcome o = { .status = -1 };
	struct function *f;

	switch (c->kind) {
	case SH_SIMPLE:
		return walk_simple(w, s, c, in);
	case SH_PIPE:
		return walk_pipe(w, s, c, in);
	case SH_AND:
	case SH_OR:
		return walk_and_or(w, s, c, in);
	case SH_SEQUENCE:
	case SH_GROUP:
		return walk_sequence(w, s, c->child, in);
	case SH_BACKGROUND:
	case SH_SUBSHELL:
	case SH_COPROC:
		sub = state_copy(w, s);
		o = walk_sequence(w, &sub, c->child, in);
		s->files = sub.files;
		o.stops = false;
		o.status = -1; /* an error in it ends it */
		if (c->kind != SH_SUBSHELL) {
			uncertain(w, &(struct arg){ .at = c->place.at, .len = c->place.len }, "what runs in the background may outlive the command");
			o = (struct outcome){ .status = -1 };
		}
		return o;
	case SH_NOT:
		o = c->child ? walk_command(w, s, c->child, in) : o;
		o.status = o.status < 0 ? -1 : !o.status;
		return o;
	case SH_TIME:
		return c->child ? walk_command(w, s, c->child, in) : o;
	case SH_IF:
		return walk_if(w, s, c, in);
	case SH_WHILE:
	case SH_UNTIL:
		return walk_loop(w, s, c, in);
	case SH_FOR:
	case SH_SELECT:
		return walk_for(w, s, c, in);
	case SH_FOR_ARITH:
		forget_assigned(w, s, c->child);
		for (const struct sh_word *x = c->words; x; x = x->next)
			scan_word(w, s, x);
		uncertain(w, &(struct arg){ .at = c->place.at, .len = c->place.len }, "a loop by arithmetic");
		return c->child ? walk_command(w, s, c->child, in) : o;
	case SH_CASE:
		return walk_case(w, s, c, in);
	case SH_FUNCTION:
		if (++w->n_functions > SHW_NAMES) {
			uncertain(w, &(struct arg){ .at = c->place.at, .len = c->place.len }, "more than %d functions", SHW_NAMES);
			s->umbrella = "not all functions are followed";
			return o;
		}
		if (find_function(s, c->name)) /* it may not be possible to take its place */
			s->shadowed = true;
		f = keep_bytes(w->mem, sizeof *f);
		*f = (struct function){ .next = s->functions, .name = c->name, .hash = hash_text(0, c->name), .body = c->child };
		s->functions = f;
		return (struct outcome){ .status = 0, .out = value_of(w, "", 0) };
	case SH_CONDITION:
		walk_condition(w, s, c);
		return o;
	case SH_ARITHMETIC:
		for (const struct sh_word *x = c->words; x; x = x->next)
			scan_word(w, s, x);
		scan_arithmetic(w, s, c->text, c->place.at, c->place.len);
		return o;
	}
	return o;
}

struct outcome walk_command(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in)
{
	struct plumbing p = { 0 };
	struct outcome o = { .status = -1 };

	if (too_much(w, &(struct arg){ .at = c->place.at, .len = c->place.len }))
		return o;
	if (c->kind == SH_SIMPLE)
		return walk_simple(w, s, c, in);
	w->depth++;
	plumb(w, s, c->redirects, &p);
	o = walk_kind(w, s, c, p.has_in ? &p.in : in);
	if (c->redirects && c->kind != SH_FUNCTION)
		o.status = -1, o.stops = false;
	drain(w, s, &p, &o);
	w->depth--;
	return o;
}

struct outcome walk_script(struct walk *w, struct state *s, const struct sh_script *script, const struct value *in)
{
	struct outcome o = { .status = 0, .out = value_of(w, "", 0) };

	if (!script || !script->first)
		return o;
	w->depth++;
	o = walk_sequence(w, s, script->first, in);
	w->depth--;
	return o;
}

struct outcome walk_text(struct walk *w, struct state *s, const char *text, size_t len, uint32_t at, uint32_t at_len, const struct value *in)
{
	struct walk saved = *w;
	struct arg place = { .at = w->nested ? w->at : at, .len = w->nested ? w->len : at_len };
	struct outcome o = { .status = -1 };
	struct sh_script *script = NULL;
	struct cs_err err = { 0 };
	uint32_t where;

	if (too_much(w, &place))
		return o;
	work(w, WORK_PARSE + len / 8);
	if (w->spent)
		return o;
	if (sh_parse(text, len, &script, &where, &err) < 0) {
		uncertain(w, &place, "text that a shell would run cannot be read: %s", err.msg);
		return o;
	}
	w->nested = true;
	w->at = place.at;
	w->len = place.len;
	o = walk_script(w, s, script, in);
	/* Functions that were defined there would point into it: it stays until the end. */
	script_keep(w, script);
	w->nested = saved.nested;
	w->at = saved.at;
	w->len = saved.len;
	return o;
}
