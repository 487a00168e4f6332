/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.c - commands that change the shell, or run what they are given. */
#include "shell/walk.h"

#include <stdlib.h>
#include <string.h>

static const struct outcome fine = { .status = 0 };

static bool literal(const struct args *a, size_t i)
{
	return i < a->n && a->v[i].known == SH_LITERAL;
}

static struct outcome quiet(struct walk *w, int status)
{
	return (struct outcome){ .status = status, .out = value_of(w, "", 0) };
}

/* ---- variables that are more than text ---- */

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

static bool is_usual_path(const char *value)
{
	static const char *const usual[] = { "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin", NULL };

	/* An empty part is the working directory. */
	for (;;) {
		size_t n = strcspn(value, ":");
		char dir[64];

		if (n >= sizeof dir)
			return false;
		memcpy(dir, value, n);
		dir[n] = 0;
		if (!is_one_of(dir, usual))
			return false;
		if (!value[n])
			return true;
		value += n + 1;
	}
}

void look_at_variable(struct walk *w, struct state *s, const char *name, const struct arg *value)
{
	static const char *const code[] = { "PS4", "PS1", "PS0", "PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "EDITOR",
					    "VISUAL", "FCEDIT", "PAGER", "MANPAGER", "SYSTEMD_PAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "RSYNC_RSH", "GIT_SSH",
					    "GIT_PROXY_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "GIT_EXTERNAL_DIFF", "CVS_RSH", "TAPE", NULL };
	static const char *const doubt[] = { "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "TAR_OPTIONS", "MAKEFLAGS", "PERL5OPT", "PERL5LIB", "PERLLIB", "PYTHONSTARTUP",
					     "PYTHONPATH", "PYTHONHOME", "NODE_OPTIONS", "NODE_PATH", "RUBYOPT", "RUBYLIB", "GREP_OPTIONS", "GZIP", "XZ_OPT", "ZIPOPT", "CDPATH",
					     "SHELLOPTS", "BASHOPTS", "BASH_COMPAT", "GLOBIGNORE", "POSIXLY_CORRECT", "TMPDIR", "HOME", "GIT_DIR", "GIT_WORK_TREE",
					     "GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "LESS",
					     "RANDOM", "SECONDS", "SRANDOM", "LINENO", "HISTCMD", "BASHPID", "EPOCHSECONDS", "EPOCHREALTIME", "OPTIND", "BASH_ARGV0", "BASH_CMDS",
					     "BASH_ALIASES", "BASH_XTRACEFD", "BASH_LOADABLES_PATH", "EXECIGNORE", "FUNCNEST", "HISTFILE", "TIMEFORMAT", "TEXTDOMAIN",
					     "TEXTDOMAINDIR", "LANGUAGE", "FIGNORE", "DIRSTACK", "GROUPS", "UID", "EUID", "PPID", "PWD", "OLDPWD", "RIPGREP_CONFIG_PATH", "MAGIC",
					     "JAVA_TOOL_OPTIONS", "CLASSPATH", "GOFLAGS", "CARGO_HOME", "RUSTC_WRAPPER", "CC", "CXX", "LD", "AR", "SHELL", "OPENSSL_CONF",
					     "CURL_HOME", "WGETRC", "INPUTRC", "TERMINFO", "TERMCAP", "NLSPATH", "LOCPATH", "GCONV_PATH", "HOSTALIASES", "RES_OPTIONS",
					     "http_proxy", "https_proxy", "ALL_PROXY", "DOCKER_HOST", "KUBECONFIG", "AWS_PROFILE", "XDG_CONFIG_HOME", "EXINIT", "VIMINIT", NULL };

	if (!strcmp(name, "PATH")) {
		if (value->known != SH_LITERAL || !is_usual_path(value->text))
			s->path_changed = true;
		return;
	}
	if (!strcmp(name, "BASH_ENV") || !strcmp(name, "ENV")) {
		const char *path = value->known == SH_LITERAL ? path_resolve(w, s, value->text) : NULL;
		const struct file *f = path ? file_find(s, path) : NULL;
		struct state sub = state_copy(w, s);

		uncertain(w, value, "%s names a file that every shell reads first", name);
		if (f && f->content.known)
			(void)walk_text(w, &sub, f->content.text, f->content.len, value->at, value->len, NULL);
		else if (value->known == SH_LITERAL && strpbrk(value->text, "$`"))
			(void)walk_text(w, &sub, keep_printf(w->mem, "echo \"%s\"", value->text), strlen(value->text) + 7, value->at, value->len, NULL);
		return;
	}
	if (is_one_of(name, code)) {
		struct state sub = state_copy(w, s);

		uncertain(w, value, "the value of %s is run by others", name);
		if (value->known != SH_LITERAL)
			return;
		if (!strcmp(name, "PS4") || !strcmp(name, "PS1") || !strcmp(name, "PS0"))
			(void)walk_text(w, &sub, keep_printf(w->mem, "echo \"%s\"", value->text), strlen(value->text) + 7, value->at, value->len, NULL);
		else
			(void)walk_text(w, &sub, value->text, strlen(value->text), value->at, value->len, NULL);
		return;
	}
	if (is_one_of(name, doubt) || !strncmp(name, "BASH_FUNC_", 10) || !strncmp(name, "GIT_CONFIG_", 11) || !strncmp(name, "LD_", 3) || !strncmp(name, "DYLD_", 5))
		uncertain(w, value, "%s changes what other commands do", name);
	if (!strcmp(name, "HOME"))
		var_forget(w, s, "HOME");
}

/* Of a name in capitals nobody knows which programs obey it. */
void look_at_exported(struct walk *w, const char *name, const struct arg *value)
{
	static const char *const known[] = { "LANG", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "IFS", "PATH", "FOO", "BAR", "A", "B", "X", "Y", "VAR", NULL };

	if (strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != strlen(name) || !strncmp(name, "LC_", 3) || is_one_of(name, known))
		return;
	uncertain(w, value, "%s may change what other commands do", name);
}

/* NAME=VALUE words of export, declare, local, readonly, env. */
static void assign_word(struct walk *w, struct state *s, const struct arg *a)
{
	const char *eq = strchr(a->text, '=');
	struct arg v = *a;
	char *name;

	if (!eq || a->known == SH_DYNAMIC) {
		if (a->known != SH_LITERAL)
			uncertain(w, a, "which variable is meant is not known here");
		else if (strchr(a->text, '['))
			uncertain(w, a, "an index is evaluated as arithmetic");
		return;
	}
	if (eq[1] == '(')
		uncertain(w, a, "a value in parentheses is read as an array, and what is in it is run");
	name = keep_text(w->mem, a->text, (size_t)(eq - a->text));
	if (*name && name[strlen(name) - 1] == '+')
		name[strlen(name) - 1] = 0;
	v.text = keep_text(w->mem, eq + 1, strlen(eq + 1));
	if (strchr(name, '[')) {
		name[strcspn(name, "[")] = 0;
		uncertain(w, a, "an index is evaluated as arithmetic");
	}
	look_at_variable(w, s, name, &v);
	look_at_exported(w, name, &v);
	if (a->known == SH_LITERAL && eq[-1] != '+')
		var_set(w, s, name, value_of(w, v.text, strlen(v.text)));
	else
		var_forget(w, s, name);
}

static struct outcome b_declare(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	size_t names = 0;

	for (size_t i = first + 1; i < a->n; i++) {
		const char *t = a->v[i].text;

		if (a->v[i].known == SH_LITERAL && (*t == '-' || *t == '+') && t[1]) {
			if (strchr(t, 'f') && (strchr(t, 'x') || !strcmp(a->v[first].text, "export")))
				s->exported_functions = true;
			if (strpbrk(t, "fF"))
				names++; /* functions are no secrets */
			if (strspn(t + 1, "aAgilrtuxfFpI") != strlen(t + 1))
				s->umbrella = "a name may stand for another one (declare -n, or an option that is not known)";
			if (strchr(t, 'i'))
				uncertain(w, &a->v[i], "values are evaluated as arithmetic (-i)");
			continue;
		}
		names++;
		assign_word(w, s, &a->v[i]);
		if (a->v[i].known == SH_LITERAL && !strchr(t, '=') && s->umbrella)
			var_forget(w, s, t);
	}
	if (!names)
		uncertain(w, &a->v[first], "%s shows all variables, and the environment may hold secrets", a->v[first].text);
	return quiet(w, -1);
}

/* ---- text that is run ---- */

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

static struct outcome b_eval(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	size_t from = first + 1 < a->n && literal(a, first + 1) && !strcmp(a->v[first + 1].text, "--") ? first + 2 : first + 1;
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

static struct outcome b_source(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	const char *path = literal(a, first + 1) ? path_resolve(w, s, a->v[first + 1].text) : NULL;
	const struct file *f = path ? file_find(s, path) : literal(a, first + 1) ? file_find(s, a->v[first + 1].text) : NULL;

	effect_add(w, SH_EFFECT_EXECUTE, path ? path : "", a->v[first].text, &a->v[first], NULL);
	uncertain(w, &a->v[first], "%s runs a file", a->v[first].text);
	if (literal(a, first + 1) && (!strcmp(a->v[first + 1].text, "/dev/stdin") || !strncmp(a->v[first + 1].text, "/dev/fd/0", 9)) && in && in->known)
		return walk_text(w, s, in->text, in->len, a->v[first].at, a->v[first].len, NULL);
	if (f && f->content.known && !f->content.packed)
		return walk_text(w, s, f->content.text, f->content.len, a->v[first].at, a->v[first].len, in);
	s->umbrella = "a file that was read in may have changed anything";
	return (struct outcome){ .status = -1 };
}

static struct outcome b_trap(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	size_t i = first + 1;
	struct state sub = state_copy(w, s);

	if (i < a->n && literal(a, i) && (!strcmp(a->v[i].text, "-p") || !strcmp(a->v[i].text, "-l")))
		return (struct outcome){ .status = 0 };
	if (i < a->n && literal(a, i) && !strcmp(a->v[i].text, "--"))
		i++;
	if (i + 1 >= a->n && !a->endless && (i >= a->n || literal(a, i)))
		return (struct outcome){ .status = -1 }; /* `trap SIGNAL`: back to what it was */
	if (!literal(a, i)) {
		uncertain(w, &a->v[first], "trap: what it would run is not known here");
		return (struct outcome){ .status = -1 };
	}
	if (strcmp(a->v[i].text, "-") && *a->v[i].text)
		uncertain(w, &a->v[i], "trap: what it runs runs later, when names may stand for other things"), (void)walk_text(w, &sub, a->v[i].text, strlen(a->v[i].text), a->v[i].at, a->v[i].len, NULL);
	return quiet(w, -1);
}

/* A shell of its own. */
static struct outcome b_shell(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
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

		if (!literal(a, i)) {
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
		if (!literal(a, i)) {
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
		const char *path = literal(a, i) ? path_resolve(w, s, a->v[i].text) : NULL;
		const struct file *f = path ? file_find(s, path) : literal(a, i) ? file_find(s, a->v[i].text) : NULL;

		effect_add(w, SH_EFFECT_EXECUTE, path ? path : "", by, &a->v[i], NULL);
		uncertain(w, &a->v[i], "%s runs a script that is not looked into for a proof", by);
		if (literal(a, i) && !strcmp(a->v[i].text, "/dev/stdin"))
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

/* ---- values from outside ---- */

static struct outcome b_read(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	size_t i = first + 1, names = 0;
	bool simple = true;

	for (; i < a->n && literal(a, i) && a->v[i].text[0] == '-' && a->v[i].text[1]; i++) {
		const char *t = a->v[i].text;

		if (!strcmp(t, "--")) {
			i++;
			break;
		}
		if (strspn(t + 1, "ersdnNptuia") != strlen(t + 1))
			uncertain(w, &a->v[i], "read: option %s is not known", t);
		if (strcmp(t, "-r"))
			simple = false;
		if (strchr(t, 'a') || strpbrk(t, "e")) {
			uncertain(w, &a->v[i], "read %s sets an array, or edits", t);
			s->umbrella = "read sets an array";
		}
		if (strchr("dnNptuia", t[strlen(t) - 1]))
			i++;
	}
	for (size_t k = i; k < a->n; k++, names++) {
		if (!literal(a, k)) {
			uncertain(w, &a->v[k], "read sets a variable whose name is not known here");
			s->umbrella = "read sets a variable whose name is not known here";
			continue;
		}
		look_at_variable(w, s, a->v[k].text, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, .at = a->v[k].at, .len = a->v[k].len });
		if (strchr(a->v[k].text, '['))
			uncertain(w, &a->v[k], "an index is evaluated as arithmetic");
		if (simple && a->n == i + 1 && in && in->known && !in->packed)
			var_set(w, s, a->v[k].text, value_of(w, in->text, strcspn(in->text, "\n")));
		else
			var_forget(w, s, a->v[k].text);
	}
	if (!names)
		var_forget(w, s, "REPLY");
	return (struct outcome){ .status = -1, .out = value_of(w, "", 0) };
}

static struct outcome b_mapfile(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	const char *name = a->n > first + 1 && literal(a, a->n - 1) && a->v[a->n - 1].text[0] != '-' ? a->v[a->n - 1].text : "MAPFILE";
	struct var *v = var_make(w, s, name);

	*v = (struct var){ .next = v->next, .name = v->name, .hash = v->hash, .set = true, .array = true };
	look_at_variable(w, s, name, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, .at = a->v[first].at, .len = a->v[first].len });
	if (strchr(name, '['))
		uncertain(w, &a->v[first], "an index is evaluated as arithmetic");
	for (size_t i = first + 1; i < a->n; i++)
		if (!literal(a, i) || (a->v[i].text[0] == '-' && strchr(a->v[i].text, 'C')))
			uncertain(w, &a->v[i], "mapfile -C runs a command for each line");
	if (in && in->known && !in->packed) {
		const char *c = in->text;

		v->items = keep_bytes(w->mem, (in->len + 1) * sizeof *v->items);
		while (*c) {
			size_t n = strcspn(c, "\n");

			v->items[v->n_items++] = value_of(w, c, n);
			c += n + (c[n] == '\n');
		}
	}
	return quiet(w, -1);
}

/* ---- the rest ---- */

static struct outcome b_cd(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	size_t i = first + 1;
	struct outcome o = { .status = -1, .out = value_of(w, "", 0) };

	while (i < a->n && literal(a, i) && (!strcmp(a->v[i].text, "-L") || !strcmp(a->v[i].text, "-P") || !strcmp(a->v[i].text, "--")))
		i++;
	s->also = s->also || !s->cwd ? "" : s->cwd; /* "": too many places to follow */
	if (i >= a->n) {
		s->cwd = w->policy->home && !var_find(s, "HOME") ? w->policy->home : NULL;
		return o;
	}
	s->cwd = literal(a, i) && strcmp(a->v[i].text, "-") && !var_find(s, "CDPATH") ? path_resolve(w, s, a->v[i].text) : NULL;
	if (literal(a, i) && a->v[i].followed)
		uncertain(w, &a->v[i], "cd: the directory comes through a variable or a substitution");
	return o;
}

static struct outcome b_set(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	size_t i = first + 1;

	for (; i < a->n; i++) {
		const char *t = a->v[i].text;

		if (!literal(a, i)) {
			s->positional_known = false;
			uncertain(w, &a->v[i], "set: a word that may be an option is not known here");
			return quiet(w, -1);
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

			if (!literal(a, ++i) || !is_one_of(a->v[i].text, usual)) {
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
	return quiet(w, -1);
}

static struct outcome b_command(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	size_t i = first + 1;
	for (; i < a->n && literal(a, i) && a->v[i].text[0] == '-'; i++) {
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

	for (; i < a->n && literal(a, i) && a->v[i].text[0] == '-'; i++) {
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
	return quiet(w, -1);
}

static struct outcome b_shopt(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n; i++) {
		if (literal(a, i) && !strcmp(a->v[i].text, "expand_aliases"))
			var_set(w, s, "shopt expand_aliases", value_unknown());
		if (a->v[i].known != SH_LITERAL || a->v[i].text[0] != '-')
			s->umbrella = "shopt changes how the script is read and expanded";
	}
	return quiet(w, -1);
}

static struct outcome b_printf(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	struct args rest = { 0 };
	struct value v;

	args_add(w, &rest, a->v[first]);
	for (size_t i = first + 3; i < a->n; i++)
		args_add(w, &rest, a->v[i]);
	v = output_of(w, s, &rest, 0, NULL);
	if (literal(a, first + 2) && strchr(a->v[first + 2].text, '['))
		uncertain(w, &a->v[first + 2], "an index is evaluated as arithmetic");
	if (!literal(a, first + 2)) {
		uncertain(w, &a->v[first], "printf -v sets a variable whose name is not known here");
		s->umbrella = "printf -v sets a variable whose name is not known here";
		return quiet(w, -1);
	}
	look_at_variable(w, s, a->v[first + 2].text, &(struct arg){ .text = v.known ? v.text : keep_text(w->mem, "", 0), .known = v.known ? SH_LITERAL : SH_DYNAMIC,
								     .at = a->v[first].at, .len = a->v[first].len });
	var_set(w, s, a->v[first + 2].text, v);
	return quiet(w, -1);
}

static struct outcome b_hash(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n; i++)
		if (!literal(a, i) || !strncmp(a->v[i].text, "-p", 2)) {
			uncertain(w, &a->v[first], "hash -p gives a name to another program");
			s->umbrella = "names may stand for other programs (hash -p)";
		}
	return quiet(w, -1);
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
		if (!literal(a, i))
			uncertain(w, &a->v[i], "unset of a name that is not known here"), s->umbrella = "unset of a name that is not known here";
		else if (a->v[i].text[0] != '-')
			var_set(w, s, a->v[i].text, value_of(w, "", 0));
		if (literal(a, i) && strchr(a->v[i].text, '['))
			uncertain(w, &a->v[i], "an index is evaluated as arithmetic");
		if (literal(a, i) && a->v[i].text[0] != '-') {
			if (s->functions) /* it may be a variable that goes, or nothing */
				s->shadowed = true;
			look_at_variable(w, s, a->v[i].text, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, .at = a->v[i].at, .len = a->v[i].len });
		}
	}
	return quiet(w, -1);
}

static struct outcome b_shift(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	long n;

	if (a->n > first + 2 || (a->n > first + 1 && !literal(a, first + 1)) || a->vanished || a->endless)
		s->positional_known = false;
	n = a->n > first + 1 && literal(a, first + 1) ? strtol(a->v[first + 1].text, NULL, 10) : 1;

	if (n < 0 || (size_t)n > s->positional.n)
		return quiet(w, -1);
	s->positional.v += n;
	s->positional.n -= (size_t)n;
	s->positional.room = 0; /* not ours to grow in place */
	return quiet(w, -1);
}

static struct outcome b_enable(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n; i++)
		if (!literal(a, i) || a->v[i].text[0] == '-')
			uncertain(w, &a->v[i], "enable may load code, or take a builtin command away");
	s->umbrella = "builtin commands may be others now (enable)";
	return quiet(w, -1);
}

static struct outcome b_getopts(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	for (size_t i = first + 1; i < a->n && i < first + 4; i++) { /* one of these is the name */
		if (!literal(a, i) || a->v[i].text[0] == '-' || strchr(a->v[i].text, '[')) {
			uncertain(w, &a->v[i], "getopts: which variable is set is not known here");
			continue;
		}
		look_at_variable(w, s, a->v[i].text, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, .at = a->v[i].at, .len = a->v[i].len });
		var_forget(w, s, a->v[i].text);
	}
	var_forget(w, s, "OPTARG");
	var_forget(w, s, "OPTIND");
	return quiet(w, -1);
}

/* With other words it may not end anything. */
static bool plain_exit(const struct args *a, size_t first)
{
	const char *t = a->n == first + 2 && literal(a, first + 1) && !a->v[first + 1].followed ? a->v[first + 1].text : "x";

	return !a->endless && !a->vanished && (a->n == first + 1 || (*t && strlen(t) < 9 && strspn(t, "0123456789") == strlen(t)));
}

bool run_builtin(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in, struct outcome *ret)
{
	static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "csh", "tcsh", NULL };
	static const char *const copies[] = { "cp", "ln", "mv", "install", NULL };
	const char *name = a->v[first].text;

	if (!strcmp(name, ":") || !strcmp(name, "true"))
		*ret = quiet(w, 0);
	else if (!strcmp(name, "false"))
		*ret = quiet(w, 1);
	else if (!strcmp(name, "cd"))
		*ret = b_cd(w, s, a, first);
	else if (!strcmp(name, "pushd") || !strcmp(name, "popd"))
		s->cwd = NULL, *ret = fine;
	else if (!strcmp(name, "eval"))
		*ret = b_eval(w, s, a, first, in);
	else if (!strcmp(name, "source") || !strcmp(name, "."))
		*ret = b_source(w, s, a, first, in);
	else if (!strcmp(name, "exec"))
		*ret = b_exec(w, s, a, first, in);
	else if (!strcmp(name, "command") || !strcmp(name, "builtin"))
		*ret = b_command(w, s, a, first, in);
	else if (!strcmp(name, "trap"))
		*ret = b_trap(w, s, a, first);
	else if (!strcmp(name, "set"))
		*ret = b_set(w, s, a, first);
	else if (!strcmp(name, "shift"))
		*ret = b_shift(w, s, a, first);
	else if (!strcmp(name, "export") || !strcmp(name, "declare") || !strcmp(name, "typeset") || !strcmp(name, "local") || !strcmp(name, "readonly"))
		*ret = b_declare(w, s, a, first);
	else if (!strcmp(name, "unset"))
		*ret = b_unset(w, s, a, first);
	else if (!strcmp(name, "read"))
		*ret = b_read(w, s, a, first, in);
	else if (!strcmp(name, "mapfile") || !strcmp(name, "readarray"))
		*ret = b_mapfile(w, s, a, first, in);
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
			if (literal(a, i))
				scan_arithmetic(w, s, a->v[i].text, a->v[i].at, a->v[i].len);
			else
				uncertain(w, &a->v[i], "a value that is not known here is evaluated as arithmetic");
			*ret = (struct outcome){ .status = -1 };
		}
	else if (!strcmp(name, "exit") || !strcmp(name, "logout"))
		*ret = (struct outcome){ .status = -1, .stops = !strcmp(name, "exit") && plain_exit(a, first), .out = value_of(w, "", 0) };
	else if (!strcmp(name, "return") || !strcmp(name, "break") || !strcmp(name, "continue") || !strcmp(name, "wait") || !strcmp(name, "times"))
		*ret = (struct outcome){ .status = -1, .out = value_of(w, "", 0) };
	else if (!strcmp(name, "printf") && literal(a, first + 1) && !strcmp(a->v[first + 1].text, "-v"))
		*ret = b_printf(w, s, a, first);
	else if (is_one_of(name, shells))
		*ret = b_shell(w, s, a, first, in);
	else if (!strcmp(name, "busybox") || !strcmp(name, "toybox"))
		uncertain(w, &a->v[first], "%s: its commands have options of their own", name), *ret = a->n > first + 1 ? walk_program(w, s, a, first + 1, in) : fine;
	else if (is_one_of(name, copies))
		*ret = b_copy(w, s, a, first, in);
	else
		return false;
	return true;
}
