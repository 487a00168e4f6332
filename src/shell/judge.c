/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - what the table has found becomes effects: roles of words, what a command does by itself, commands within commands. */
#include "shell/walk.h"

#include <string.h>

static const char *name_of(const struct args *a, size_t first)
{
	const char *slash = strrchr(a->v[first].text, '/');

	return slash ? slash + 1 : a->v[first].text;
}

static void effect_host(struct walk *w, const struct arg *a, const struct sh_finding *f, const char *by)
{
	bool metadata = f->text && (strstr(f->text, "169.254.169.254") || strstr(f->text, "metadata.google") || strstr(f->text, "fd00:ec2"));

	effect_add(w, metadata ? SH_EFFECT_SECRET : SH_EFFECT_NETWORK, f->known == SH_LITERAL && f->text ? f->text : "", by, a,
		   metadata ? "a cloud's metadata service gives out credentials" : NULL);
	acts(w, a, "%s goes over the network", by);
}

void judge_role(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_finding *f, const struct value *in)
{
	const struct arg *word = &a->v[first + f->arg < a->n ? first + f->arg : first];
	struct arg at = *word;
	const char *by = name_of(a, first);
	struct state sub;

	at.known = f->known;
	if (word->followed)
		at.followed = true;
	switch (f->role) {
	case SH_ROLE_INERT:
		break;
	case SH_ROLE_READ:
	case SH_ROLE_CWD:
		effect_path(w, s, SH_EFFECT_READ, &at, f->text, by, false);
		break;
	case SH_ROLE_READ_TREE:
		effect_path(w, s, SH_EFFECT_READ, &at, f->text, by, true);
		break;
	case SH_ROLE_WRITE:
	case SH_ROLE_WRITE_DIR:
		effect_path(w, s, SH_EFFECT_WRITE, &at, f->text, by, false);
		break;
	case SH_ROLE_DELETE:
	case SH_ROLE_DELETE_TREE:
		effect_path(w, s, SH_EFFECT_DELETE, &at, f->text, by, true);
		break;
	case SH_ROLE_EXEC: {
		struct args one = { 0 };

		if (f->known != SH_LITERAL) {
			effect_add(w, SH_EFFECT_EXECUTE, "", by, &at, NULL);
			uncertain(w, &at, "%s: which program it runs is not known here", by);
			break;
		}
		args_add(w, &one, (struct arg){ .text = keep_text(w->mem, f->text, strlen(f->text)), .known = SH_LITERAL, .at = at.at, .len = at.len });
		one.endless = true;
		(void)walk_args(w, s, &one, 0, NULL);
		uncertain(w, &at, "%s runs %s", by, f->text);
		break;
	}
	case SH_ROLE_SHELL:
		sub = state_copy(w, s);
		if (!s->exported_functions)
			sub.functions = NULL;
		if (f->known == SH_LITERAL && f->text && !strcmp(by, "env")) { /* its own way to write a blank */
			char *t = keep_text(w->mem, f->text, strlen(f->text));

			for (char *c = t; (c = strstr(c, "\\_")); c++)
				c[0] = c[1] = ' ';
			while (*t == '-' || (strchr(t, '=') && strchr(t, '=') < t + strcspn(t, " "))) /* options and variables of env's own */
				t += strcspn(t, " ") + (t[strcspn(t, " ")] == ' ');
			uncertain(w, &at, "env -S has a language of its own");
			(void)walk_text(w, &sub, t, strlen(t), at.at, at.len, in);
			break;
		}
		if (f->known != SH_LITERAL || !f->text) {
			effect_add(w, SH_EFFECT_EXECUTE, "", by, &at, NULL);
			uncertain(w, &at, "%s: what the shell would run is not known here", by);
			break;
		}
		if (at.followed)
			uncertain(w, &at, "%s: what the shell runs comes through a variable or a substitution", by);
		doubt_bashisms(w, &at, f->text);
		(void)walk_text(w, &sub, f->text, strlen(f->text), at.at, at.len, in);
		s->files = sub.files;
		break;
	case SH_ROLE_CODE:
		if (!judge_small_code(w, s, a, first, f, &at, in))
			judge_code(w, s, &at, f, by);
		break;
	case SH_ROLE_HOST:
	case SH_ROLE_URL:
		effect_host(w, &at, f, by);
		break;
	case SH_ROLE_PROCESS:
		effect_add(w, SH_EFFECT_PROCESS, f->known == SH_LITERAL && f->text ? f->text : "", by, &at,
			   f->known == SH_LITERAL && f->text && (!strcmp(f->text, "1") || !strcmp(f->text, "-1")) ? "every process, or the first, may not be signalled" : NULL);
		acts(w, &at, "%s signals processes", by);
		break;
	case SH_ROLE_USER:
	case SH_ROLE_SERVICE:
	case SH_ROLE_PACKAGE:
		uncertain(w, &at, "%s changes users, services or packages", by);
		break;
	case SH_ROLE_ENV: {
		const char *eq = f->text ? strchr(f->text, '=') : NULL;

		if (eq && f->known == SH_LITERAL) {
			struct arg value = at;

			value.text = keep_text(w->mem, eq + 1, strlen(eq + 1));
			look_at_variable(w, s, keep_text(w->mem, f->text, (size_t)(eq - f->text)), &value);
			look_at_exported(w, keep_text(w->mem, f->text, (size_t)(eq - f->text)), &value);
		} else if (f->known != SH_LITERAL) {
			uncertain(w, &at, "%s: which variable is set is not known here", by);
		}
		break;
	}
	case SH_ROLE_COMMAND: /* below */
		break;
	case SH_ROLE_UNKNOWN:
		uncertain(w, &at, "%s", f->why ? f->why : "not known to the table of commands");
		break;
	}
}

/* What it does even without the words that are not known: only that is certain enough to be forbidden. */
static unsigned does_surely(struct walk *w, const struct sh_arg *argv, size_t n, unsigned does)
{
	struct sh_arg *known = keep_bytes(w->mem, n * sizeof *known);
	struct sh_findings f = { 0 };
	size_t m = 0;

	for (size_t i = 0; i < n; i++)
		if (!i || argv[i].known == SH_LITERAL || argv[i].known == SH_PATTERN)
			known[m++] = argv[i];
	if (m == n)
		return does;
	sh_table_apply(w->table, known, m, &f);
	does = f.does;
	sh_findings_done(&f);
	return does;
}

static void judge_does(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_findings *f, unsigned sure, const struct value *in)
{
	static const struct {
		unsigned bit;
		enum sh_effect_kind kind;
		const char *forbidden, *why;
	} of[] = {
		{ SH_DOES_NETWORK, SH_EFFECT_NETWORK, NULL, "goes over the network" },
		{ SH_DOES_PRIVILEGE, SH_EFFECT_PRIVILEGE, "no more rights may be taken", "takes more rights" },
		{ SH_DOES_PERSIST, SH_EFFECT_PERSISTENCE, "what runs by itself later may not be set up", "sets up what runs by itself later" },
		{ SH_DOES_PROCESS, SH_EFFECT_PROCESS, NULL, "acts on processes" },
		{ SH_DOES_DEVICE, SH_EFFECT_DEVICE, "devices may not be changed", "changes devices" },
		{ SH_DOES_SYSTEM, SH_EFFECT_SYSTEM, "the system's own state may not be changed", "changes the system's own state" },
		{ SH_DOES_SECRET, SH_EFFECT_SECRET, "secrets may not be shown", "shows secrets" },
		{ SH_DOES_EXEC_CWD, SH_EFFECT_EXECUTE, NULL, "runs what it finds in the directory" },
	};
	const char *by = name_of(a, first);

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		if (!(f->does & of[i].bit))
			continue;
		effect_add(w, of[i].kind, "", by, &a->v[first], sure & of[i].bit ? of[i].forbidden : NULL);
		(of[i].kind == SH_EFFECT_NETWORK || of[i].kind == SH_EFFECT_PROCESS ? acts : uncertain)(w, &a->v[first], "%s %s", by,
												   f->does_why ? f->does_why : of[i].why);
	}
	if (f->does & SH_DOES_WRITE_CWD) {
		effect_add(w, SH_EFFECT_WRITE, s->cwd ? s->cwd : "", by, &a->v[first], NULL);
		(s->cwd ? acts : uncertain)(w, &a->v[first], "%s writes files in the directory", by);
	}
	if (f->does & SH_DOES_ENVIRONMENT)
		uncertain(w, &a->v[first], "%s shows the environment, which may hold secrets", by);
	if (f->does & SH_DOES_TERMINAL && !w->piped)
		uncertain(w, &a->v[first], "on a terminal %s runs a pager, or takes commands", by);
	if (f->does & SH_DOES_UNKNOWN)
		uncertain(w, &a->v[first], "%s", f->does_why ? f->does_why : "what it does is not known to the table of commands");
	if (f->does & SH_DOES_READ_STDIN_CODE) {
		struct sh_finding code = { .role = SH_ROLE_CODE, .lang = by, .known = SH_LITERAL, .text = in && in->known && !in->packed ? in->text : NULL };

		effect_add(w, SH_EFFECT_EXECUTE, "code from standard input", by, &a->v[first], NULL);
		uncertain(w, &a->v[first], "%s runs what comes from standard input", by);
		if (code.text)
			judge_code(w, s, &a->v[first], &code, by);
	}
}

/* What a constant on standard input would make others run: recipes of make. */
static void judge_recipes(struct walk *w, struct state *s, const struct arg *a, const struct value *in)
{
	for (const char *c = in->text; *c && !spent(w);) {
		size_t n = strcspn(c, "\n");

		if (*c == '\t' && n > 1) {
			struct state sub = state_copy(w, s);

			(void)walk_text(w, &sub, keep_text(w->mem, c + 1, n - 1), n - 1, a->at, a->len, NULL);
		}
		c += n + (c[n] == '\n');
	}
}

/* git -c alias.x='!command', --upload-pack=..., ext::command and the like: text that is run, where it is plain. */
static void judge_git(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n && !spent(w); i++) {
		const char *bang = a->v[i].known == SH_LITERAL ? strstr(a->v[i].text, "=!") : NULL;
		struct state sub = state_copy(w, s);

		if (bang)
			(void)walk_text(w, &sub, bang + 2, strlen(bang + 2), a->v[i].at, a->v[i].len, NULL);
	}
}

/* A command among the words: find -exec ... ;, xargs, env, sudo. */
static struct outcome run_command(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_findings *f,
				  const struct sh_finding *c, const struct value *in)
{
	size_t end = c->end && first + c->end < a->n ? first + c->end : a->n;
	struct args more = { 0 };
	const char *below = NULL;
	struct state sub = state_copy(w, s);
	struct outcome o;

	for (size_t i = 0; f->replace && f->replace_paths && i < f->n; i++)
		if ((f->v[i].role == SH_ROLE_READ_TREE || f->v[i].role == SH_ROLE_READ) && f->v[i].known == SH_LITERAL && f->v[i].text)
			below = below ? below : f->v[i].text;
	for (size_t i = first + c->arg; i < end; i++) {
		struct arg x = a->v[i];

		if (f->replace && x.known == SH_LITERAL && strstr(x.text, f->replace)) {
			bool path = below && !strcmp(x.text, f->replace);

			x.known = path ? SH_PATTERN : SH_DYNAMIC;
			x.text = path ? keep_printf(w->mem, "%s/*", below) : keep_text(w->mem, "", 0);
		}
		args_add(w, &more, x);
	}
	if (f->appends_words)
		args_add(w, &more, (struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, .at = a->v[first].at, .len = a->v[first].len });
	more.endless = a->endless && end == a->n;
	/* It is a program of its own: what it does to directories and variables is gone with it. */
	if (!s->exported_functions)
		sub.functions = NULL;
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].role == SH_ROLE_CWD)
			sub.cwd = f->v[i].known == SH_LITERAL && f->v[i].text && !sub.also ? path_resolve(w, &sub, f->v[i].text) : NULL;
	o = more.n ? walk_program(w, &sub, &more, 0, in) : (struct outcome){ .status = -1 };
	s->files = sub.files;
	o.stops = false;
	o.status = -1;
	return o;
}

/* -C DIR: the other words mean files there. */
static void judge_elsewhere(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_findings *f, const struct value *in)
{
	struct state there = *s;
	bool moved = false;

	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].role != SH_ROLE_CWD)
			continue;
		there.cwd = f->v[i].known == SH_LITERAL && f->v[i].text && !there.also ? path_resolve(w, &there, f->v[i].text) : NULL;
		moved = true;
	}
	for (size_t i = 0; moved && i < f->n; i++)
		if (f->v[i].role >= SH_ROLE_READ && f->v[i].role <= SH_ROLE_DELETE_TREE && f->v[i].text && f->v[i].text[0] != '/')
			judge_role(w, &there, a, first, &f->v[i], in);
}

/* What was followed may show that something is forbidden, never that nothing is: without those values, is all still well? */
static void doubt_followed(struct walk *w, const struct args *a, size_t first, const struct sh_arg *argv, size_t n)
{
	struct sh_arg *less = keep_bytes(w->mem, n * sizeof *less);
	struct sh_findings f = { 0 };
	bool any = false, doubt = false;

	for (size_t i = 0; i < n; i++) {
		less[i] = argv[i];
		if (!i || !a->v[first + i].followed || argv[i].known != SH_LITERAL)
			continue;
		less[i].known = SH_DYNAMIC;
		less[i].text = "";
		any = true;
	}
	if (!any)
		return;
	sh_table_apply(w->table, less, n, &f);
	for (size_t i = 0; i < f.n; i++)
		doubt |= f.v[i].role == SH_ROLE_UNKNOWN || (f.v[i].role != SH_ROLE_INERT && f.v[i].known != SH_LITERAL);
	if (doubt)
		uncertain(w, &a->v[first], "a word of %s comes through a variable or a substitution", argv[0].text);
	sh_findings_done(&f);
}

struct outcome apply_findings(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	struct outcome o = { .status = -1 };
	struct sh_findings f = { 0 };
	size_t n = a->n - first;
	struct sh_arg *argv = keep_bytes(w->mem, n * sizeof *argv);

	for (size_t i = 0; i < n; i++)
		argv[i] = (struct sh_arg){ a->v[first + i].text, a->v[first + i].known, a->v[first + i].at, a->v[first + i].len };
	argv[0].text = name_of(a, first);
	work(w, WORK_COMMAND + 2 * n);
	if (w->spent)
		return o;
	sh_table_apply(w->table, argv, n, &f);
	for (size_t i = 0; i < f.n && !spent(w); i++)
		judge_role(w, s, a, first, &f.v[i], in);
	judge_elsewhere(w, s, a, first, &f, in);
	doubt_followed(w, a, first, argv, n);
	judge_does(w, s, a, first, &f, does_surely(w, argv, n, f.does), in);
	if (a->endless && !f.command_at)
		uncertain(w, &a->v[first], "%s gets more words than can be seen here", argv[0].text);
	for (size_t i = 0; i < f.n && !spent(w); i++)
		if (f.v[i].role == SH_ROLE_COMMAND)
			o = run_command(w, s, a, first, &f, &f.v[i], in);
	o.out = value_unknown();
	o.status = -1;
	if (!strcmp(argv[0].text, "git"))
		judge_git(w, s, a, first);
	if (!strcmp(argv[0].text, "make") && in && in->known && !in->packed)
		judge_recipes(w, s, &a->v[first], in);
	sh_findings_done(&f);
	return o;
}
