/* SPDX-License-Identifier: Apache-2.0 */
/* builtin_variable.c - commands that set variables, and variables that are more than text. */
#include "shell/places.h"
#include "shell/walk.h"

#include <stdlib.h>
#include <string.h>

bool is_one_of(const char *name, const char *const *list)
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
static void assign_word(struct walk *w, struct state *s, const struct arg *a, bool exports)
{
	const char *eq = strchr(a->text, '=');
	struct arg v = *a;
	char *name;

	if (!eq || a->known == SH_DYNAMIC) {
		if (a->known != SH_LITERAL)
			uncertain(w, a, "which variable is meant is not known here");
		else if (strchr(a->text, '['))
			uncertain(w, a, "an index is evaluated as arithmetic");
		else if (exports) /* what it was set to before */
			look_at_exported(w, a->text, a);
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

struct outcome run_declare(struct walk *w, struct state *s, const struct args *a, size_t first)
{
	bool exports = !strcmp(a->v[first].text, "export"), shows = false;
	size_t names = 0;

	for (size_t i = first + 1; i < a->n; i++) {
		const char *t = a->v[i].text;

		if (a->v[i].known == SH_LITERAL && (*t == '-' || *t == '+') && t[1]) {
			if (strchr(t, 'f') && (strchr(t, 'x') || !strcmp(a->v[first].text, "export")))
				s->exported_functions = true;
			exports |= *t == '-' && strchr(t, 'x');
			shows |= strchr(t, 'p') != NULL;
			if (strpbrk(t, "fF"))
				names++; /* functions are no secrets */
			if (strspn(t + 1, "aAgilrtuxfFpI") != strlen(t + 1))
				s->umbrella = "a name may stand for another one (declare -n, or an option that is not known)";
			if (strchr(t, 'i'))
				uncertain(w, &a->v[i], "values are evaluated as arithmetic (-i)");
			continue;
		}
		names++;
		if (shows && (a->v[i].known != SH_LITERAL || (sh_names_secret(t) && !var_find(s, t))))
			uncertain(w, &a->v[i], "%s may hold a secret", t);
		assign_word(w, s, &a->v[i], exports);
		if (a->v[i].known == SH_LITERAL && !strchr(t, '=') && s->umbrella)
			var_forget(w, s, t);
	}
	if (!names || (shows && strcmp(a->v[first].text, "declare") && strcmp(a->v[first].text, "typeset")))
		uncertain(w, &a->v[first], "%s shows all variables, and the environment may hold secrets", a->v[first].text);
	return outcome_quiet(w, -1);
}

struct outcome run_read(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	size_t i = first + 1, names = 0;
	bool simple = true;

	for (; i < a->n && arg_literal(a, i) && a->v[i].text[0] == '-' && a->v[i].text[1]; i++) {
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
		if (!arg_literal(a, k)) {
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

struct outcome run_mapfile(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	const char *name = a->n > first + 1 && arg_literal(a, a->n - 1) && a->v[a->n - 1].text[0] != '-' ? a->v[a->n - 1].text : "MAPFILE";
	struct var *v = var_make(w, s, name);

	*v = (struct var){ .next = v->next, .name = v->name, .hash = v->hash, .set = true, .array = true };
	look_at_variable(w, s, name, &(struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, .at = a->v[first].at, .len = a->v[first].len });
	if (strchr(name, '['))
		uncertain(w, &a->v[first], "an index is evaluated as arithmetic");
	for (size_t i = first + 1; i < a->n; i++)
		if (!arg_literal(a, i) || (a->v[i].text[0] == '-' && strchr(a->v[i].text, 'C')))
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
	return outcome_quiet(w, -1);
}
