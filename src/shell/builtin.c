/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.c - which commands are the shell's own, and those that change it. */
#include "shell/walk.h"

#include <stdlib.h>
#include <string.h>

static const struct outcome fine = { .status = 0 };

bool arg_literal(const struct args *a, size_t i)
{
	return i < a->n && a->v[i].known == SH_LITERAL;
}

struct outcome outcome_quiet(struct walk *w, int status)
{
	return (struct outcome){ .status = status, .out = value_of(w, "", 0) };
}

static struct outcome b_cd(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	size_t i = first + 1;
	struct outcome o = { .status = -1, .out = value_of(w, "", 0) };

	while (i < a->n && arg_literal(a, i) && (!strcmp(a->v[i].text, "-L") || !strcmp(a->v[i].text, "-P") || !strcmp(a->v[i].text, "--")))
		i++;
	s->also = s->also || !s->cwd ? "" : s->cwd; /* "": too many places to follow */
	if (i >= a->n) {
		s->cwd = w->policy->home && !var_find(s, "HOME") ? w->policy->home : NULL;
		return o;
	}
	s->cwd = arg_literal(a, i) && strcmp(a->v[i].text, "-") && !var_find(s, "CDPATH") ? path_resolve(w, s, a->v[i].text) : NULL;
	if (arg_literal(a, i) && a->v[i].followed)
		uncertain(w, &a->v[i], "cd: the directory comes through a variable or a substitution");
	return o;
}

static struct outcome b_set(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	size_t i = first + 1;

	for (; i < a->n; i++) {
		const char *t = a->v[i].text;

		if (!arg_literal(a, i)) {
			s->positional_known = false;
			uncertain(w, &a->v[i], "set: a word that may be an option is not known here");
			return outcome_quiet(w, -1);
		}
		if (!strcmp(t, "--")) {
			i++;
			break;
		}
		if ((*t != '-' && *t != '+') || !t[1])
			break;
		if (strspn(t + 1, "euxvfoC") != strlen(t + 1))
			uncertain(w, &a->v[i], "set: option %s changes how everything runs", t);
		if (strchr(t, 'o') && i + 1 < a->n) {
			static const char *const usual[] = { "errexit", "nounset", "xtrace", "verbose", "noglob", "noclobber", "pipefail", NULL };

			if (!arg_literal(a, ++i) || !is_one_of(a->v[i].text, usual)) {
				uncertain(w, &a->v[i], "set -o: this changes how everything runs");
				s->umbrella = "set -o has changed how everything runs";
			}
		}
	}
	if (a->n == first + 1)
		uncertain(w, &a->v[first], "set shows all variables, and the environment may hold secrets");
	if (i < a->n || (i == a->n && a->n > first + 1 && !strcmp(a->v[a->n - 1].text, "--"))) {
		set_positional(w, s, a, i);
	}
	return outcome_quiet(w, -1);
}

static struct outcome b_command(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	size_t i = first + 1;
	for (; i < a->n && arg_literal(a, i) && a->v[i].text[0] == '-'; i++) {
		if (!strcmp(a->v[i].text, "-v") || !strcmp(a->v[i].text, "-V"))
			return (struct outcome){ .status = -1 };
		if (!strcmp(a->v[i].text, "--")) {
			i++;
			break;
		}
		if (strcmp(a->v[i].text, "-p"))
			uncertain(w, &a->v[i], "%s: option %s is not known", a->v[first].text, a->v[i].text);
	}
	if (i >= a->n)
		return fine;
	return walk_program(w, s, a, i, in);
}

static struct outcome b_exec(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	size_t i = first + 1;
	struct outcome o = { .status = 0 };

	for (; i < a->n && arg_literal(a, i) && a->v[i].text[0] == '-'; i++) {
		if (!strcmp(a->v[i].text, "-a"))
			i++;
		else if (!strcmp(a->v[i].text, "--")) {
			i++;
			break;
		} else if (strcmp(a->v[i].text, "-c") && strcmp(a->v[i].text, "-l")) {
			uncertain(w, &a->v[i], "exec: option %s is not followed", a->v[i].text);
			if (strchr(a->v[i].text, 'a') && !strchr(a->v[i].text, 'a')[1])
				i++;
		}
	}
	if (i >= a->n)
		return o;
	o = walk_program(w, s, a, i, in);
	o.stops = false; /* it may fail: then the script goes on in an interactive shell */
	return o;
}

static struct outcome b_alias(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n; i++) {
		const char *eq = strchr(a->v[i].text, '=');
		struct state sub = state_copy(w, s);

		if (a->v[i].known != SH_LITERAL)
			uncertain(w, &a->v[i], "which name is an alias is not known here"), s->umbrella = "a name may be an alias";
		if (!eq || a->v[i].known != SH_LITERAL)
			continue;
		uncertain(w, &a->v[i], "a name that an alias stands for is not followed");
		s->umbrella = "a name may be an alias";
		/* They count only where somebody has asked for it. */
		if (var_find(s, "shopt expand_aliases"))
			(void)walk_text(w, &sub, eq + 1, strlen(eq + 1), a->v[i].at, a->v[i].len, NULL);
	}
	return outcome_quiet(w, -1);
}

static struct outcome b_shopt(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n; i++) {
		if (arg_literal(a, i) && !strcmp(a->v[i].text, "expand_aliases"))
			var_set(w, s, "shopt expand_aliases", value_unknown());
		if (a->v[i].known != SH_LITERAL || a->v[i].text[0] != '-')
			s->umbrella = "shopt changes how the script is read and expanded";
	}
	return outcome_quiet(w, -1);
}

static struct outcome b_printf(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	struct args rest = { 0 };
	struct value v;

	args_add(w, &rest, a->v[first]);
	for (size_t i = first + 3; i < a->n; i++)
		args_add(w, &rest, a->v[i]);
	v = output_of(w, s, &rest, 0, NULL);
	if (arg_literal(a, first + 2) && strchr(a->v[first + 2].text, '['))
		uncertain(w, &a->v[first + 2], "an index is evaluated as arithmetic");
	if (!arg_literal(a, first + 2)) {
		uncertain(w, &a->v[first], "printf -v sets a variable whose name is not known here");
		s->umbrella = "printf -v sets a variable whose name is not known here";
		return outcome_quiet(w, -1);
	}
	look_at_variable(w, s, a->v[first + 2].text, &(struct arg){ .text = v.known ? v.text : keep_text(w->mem, "", 0), .known = v.known ? SH_LITERAL : SH_DYNAMIC,
								     .at = a->v[first].at, .len = a->v[first].len });
	var_set(w, s, a->v[first + 2].text, v);
	return outcome_quiet(w, -1);
}

static struct outcome b_hash(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n; i++)
		if (!arg_literal(a, i) || !strncmp(a->v[i].text, "-p", 2)) {
			uncertain(w, &a->v[first], "hash -p gives a name to another program");
			s->umbrella = "names may stand for other programs (hash -p)";
		}
	return outcome_quiet(w, -1);
}

static struct outcome b_copy(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	const struct arg *from = a->n >= first + 3 ? &a->v[a->n - 2] : NULL, *to = &a->v[a->n - 1];
	const char *src, *dst, *name;
	struct outcome o = apply_findings(w, s, a, first, in);

	/* A copy of a program under another name is that program; a copy of a file has its content. */
	if (!from || from->known != SH_LITERAL || to->known != SH_LITERAL)
		return o;
	src = path_resolve(w, s, from->text);
	dst = path_resolve(w, s, to->text);
	if (!src || !dst)
		return o;
	name = strrchr(src, '/') + 1;
	if (!strncmp(src, "/bin/", 5) || !strncmp(src, "/usr/bin/", 9) || !strncmp(src, "/sbin/", 6) || !strncmp(src, "/usr/sbin/", 10)) {
		file_set(w, s, dst, value_unknown(), name);
		file_set(w, s, keep_printf(w->mem, "%s/%s", dst, name), value_unknown(), name);
	} else if (file_find(s, src)) {
		file_set(w, s, dst, file_find(s, src)->content, file_find(s, src)->program);
	}
	return o;
}

static struct outcome b_unset(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n; i++) {
		if (!arg_literal(a, i))
			uncertain(w, &a->v[i], "unset of a name that is not known here"), s->umbrella = "unset of a name that is not known here";
		else if (a->v[i].text[0] != '-')
			var_set(w, s, a->v[i].text, value_of(w, "", 0));
		if (arg_literal(a, i) && strchr(a->v[i].text, '['))
			uncertain(w, &a->v[i], "an index is evaluated as arithmetic");
		if (arg_literal(a, i) && a->v[i].text[0] != '-') {
			if (s->functions) /* it may be a variable that goes, or nothing */
				s->shadowed = true;
			look_at_variable(w, s, a->v[i].text, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, .at = a->v[i].at, .len = a->v[i].len });
		}
	}
	return outcome_quiet(w, -1);
}

static struct outcome b_shift(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	long n;

	if (a->n > first + 2 || (a->n > first + 1 && !arg_literal(a, first + 1)) || a->vanished || a->endless)
		s->positional_known = false;
	n = a->n > first + 1 && arg_literal(a, first + 1) ? strtol(a->v[first + 1].text, NULL, 10) : 1;

	if (n < 0 || (size_t)n > s->positional.n)
		return outcome_quiet(w, -1);
	s->positional.v += n;
	s->positional.n -= (size_t)n;
	s->positional.room = 0; /* not ours to grow in place */
	return outcome_quiet(w, -1);
}

static struct outcome b_enable(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n; i++)
		if (!arg_literal(a, i) || a->v[i].text[0] == '-')
			uncertain(w, &a->v[i], "enable may load code, or take a builtin command away");
	s->umbrella = "builtin commands may be others now (enable)";
	return outcome_quiet(w, -1);
}

static struct outcome b_getopts(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n && i < first + 4; i++) { /* one of these is the name */
		if (!arg_literal(a, i) || a->v[i].text[0] == '-' || strchr(a->v[i].text, '[')) {
			uncertain(w, &a->v[i], "getopts: which variable is set is not known here");
			continue;
		}
		look_at_variable(w, s, a->v[i].text, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, .at = a->v[i].at, .len = a->v[i].len });
		var_forget(w, s, a->v[i].text);
	}
	var_forget(w, s, "OPTARG");
	var_forget(w, s, "OPTIND");
	return outcome_quiet(w, -1);
}

/* With other words it may not end anything. */
static bool plain_exit(const struct args *a, size_t first)
{
	const char *t = a->n == first + 2 && arg_literal(a, first + 1) && !a->v[first + 1].followed ? a->v[first + 1].text : "x";

	return !a->endless && !a->vanished && (a->n == first + 1 || (*t && strlen(t) < 9 && strspn(t, "0123456789") == strlen(t)));
}

bool run_builtin(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in, struct outcome *ret)
{
	static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "csh", "tcsh", NULL };
	static const char *const copies[] = { "cp", "ln", "mv", "install", NULL };
	const char *name = a->v[first].text;

	if (!strcmp(name, ":") || !strcmp(name, "true"))
		*ret = outcome_quiet(w, 0);
	else if (!strcmp(name, "false"))
		*ret = outcome_quiet(w, 1);
	else if (!strcmp(name, "cd"))
		*ret = b_cd(w, s, a, first);
	else if (!strcmp(name, "pushd") || !strcmp(name, "popd"))
		s->cwd = NULL, *ret = fine;
	else if (!strcmp(name, "eval"))
		*ret = run_eval(w, s, a, first, in);
	else if (!strcmp(name, "source") || !strcmp(name, "."))
		*ret = run_source(w, s, a, first, in);
	else if (!strcmp(name, "exec"))
		*ret = b_exec(w, s, a, first, in);
	else if (!strcmp(name, "command") || !strcmp(name, "builtin"))
		*ret = b_command(w, s, a, first, in);
	else if (!strcmp(name, "trap"))
		*ret = run_trap(w, s, a, first);
	else if (!strcmp(name, "set"))
		*ret = b_set(w, s, a, first);
	else if (!strcmp(name, "shift"))
		*ret = b_shift(w, s, a, first);
	else if (!strcmp(name, "export") || !strcmp(name, "declare") || !strcmp(name, "typeset") || !strcmp(name, "local") || !strcmp(name, "readonly"))
		*ret = run_declare(w, s, a, first);
	else if (!strcmp(name, "unset"))
		*ret = b_unset(w, s, a, first);
	else if (!strcmp(name, "read"))
		*ret = run_read(w, s, a, first, in);
	else if (!strcmp(name, "mapfile") || !strcmp(name, "readarray"))
		*ret = run_mapfile(w, s, a, first, in);
	else if (!strcmp(name, "alias"))
		*ret = b_alias(w, s, a, first);
	else if (!strcmp(name, "shopt"))
		*ret = b_shopt(w, s, a, first);
	else if (!strcmp(name, "hash"))
		*ret = b_hash(w, s, a, first);
	else if (!strcmp(name, "enable"))
		*ret = b_enable(w, s, a, first);
	else if (!strcmp(name, "getopts"))
		*ret = b_getopts(w, s, a, first);
	else if ((!strcmp(name, "history") || !strcmp(name, "wait")) && a->n > first + 1)
		uncertain(w, &a->v[first], "%s with options is not followed", name), *ret = (struct outcome){ .status = -1 };
	else if (!strcmp(name, "let"))
		for (size_t i = first + 1; i < a->n; i++) {
			if (arg_literal(a, i))
				scan_arithmetic(w, s, a->v[i].text, a->v[i].at, a->v[i].len);
			else
				uncertain(w, &a->v[i], "a value that is not known here is evaluated as arithmetic");
			*ret = (struct outcome){ .status = -1 };
		}
	else if (!strcmp(name, "exit") || !strcmp(name, "logout"))
		*ret = (struct outcome){ .status = -1, .stops = !strcmp(name, "exit") && plain_exit(a, first), .out = value_of(w, "", 0) };
	else if (!strcmp(name, "return") || !strcmp(name, "break") || !strcmp(name, "continue") || !strcmp(name, "wait") || !strcmp(name, "times"))
		*ret = (struct outcome){ .status = -1, .out = value_of(w, "", 0) };
	else if (!strcmp(name, "printf") && arg_literal(a, first + 1) && !strcmp(a->v[first + 1].text, "-v"))
		*ret = b_printf(w, s, a, first);
	else if (is_one_of(name, shells))
		*ret = run_shell(w, s, a, first, in);
	else if (!strcmp(name, "busybox") || !strcmp(name, "toybox"))
		uncertain(w, &a->v[first], "%s: its commands have options of their own", name), *ret = a->n > first + 1 ? walk_program(w, s, a, first + 1, in) : fine;
	else if (is_one_of(name, copies))
		*ret = b_copy(w, s, a, first, in);
	else
		return false;
	return true;
}
