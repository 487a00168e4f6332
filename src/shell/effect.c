/* SPDX-License-Identifier: Apache-2.0 */
/* effect.c - from a role and a word to an effect, and whether it is forbidden. */
#include "shell/places.h"
#include "shell/walk.h"

#include "base/text.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void uncertain(struct walk *w, const struct arg *a, const char *fmt, ...)
{
	struct sh_verdict *v = w->v;
	char text[256], shown[300];
	uint32_t hash;
	va_list ap;

	w->work += 2; /* not work(): that would say so here */
	if (v->n_reasons == SHW_REASONS)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	hash = hash_text(0, text);
	for (size_t i = 0; i < v->n_reasons; i++)
		if (w->reason_hash[i] == hash) /* two that look alike to it: one is enough to be uncertain */
			return;
	cs_escape_to(shown, sizeof shown, text);
	if (v->n_reasons == w->room_reasons) {
		w->room_reasons = w->room_reasons ? w->room_reasons * 2 : 8;
		v->reasons = realloc(v->reasons, w->room_reasons * sizeof *v->reasons); /* NOLINT(bugprone-suspicious-realloc-usage) */
		if (!v->reasons)
			abort();
	}
	w->reason_hash[v->n_reasons] = hash;
	v->reasons[v->n_reasons++] = (struct sh_reason){ .text = cs_strdup(shown), .at = a ? a->at : 0, .len = a ? a->len : 0 };
}

void effect_add(struct walk *w, enum sh_effect_kind kind, const char *object, const char *by, const struct arg *a, const char *forbidden)
{
	struct sh_verdict *v = w->v;
	uint32_t hash;

	work(w, 2);
	if (!forbidden && w->policy->forbid & 1u << kind)
		forbidden = "the policy forbids it";
	hash = hash_text((uint32_t)kind << 1 | (forbidden != NULL), object);
	for (size_t i = 0; i < v->n_effects; i++)
		if (w->effect_hash[i] == hash && v->effects[i].kind == kind && !strcmp(v->effects[i].object, object) && v->effects[i].forbidden == (forbidden != NULL))
			return;
	if (v->n_effects == SHW_EFFECTS) {
		uncertain(w, a, "more than %d effects", SHW_EFFECTS);
		if (!forbidden)
			return;
		v->n_effects--; /* one that counts takes the place of one that does not */
		free(v->effects[v->n_effects].object);
		free(v->effects[v->n_effects].by);
	}
	if (v->n_effects == w->room_effects) {
		w->room_effects = w->room_effects ? w->room_effects * 2 : 8;
		v->effects = realloc(v->effects, w->room_effects * sizeof *v->effects); /* NOLINT(bugprone-suspicious-realloc-usage) */
		if (!v->effects)
			abort();
	}
	w->effect_hash[v->n_effects] = hash;
	v->effects[v->n_effects++] = (struct sh_effect){ .kind = kind, .object = cs_strdup(object), .by = cs_strdup(by), .at = a ? a->at : 0,
							 .len = a ? a->len : 0, .forbidden = forbidden != NULL, .why = forbidden };
}

/* ---- paths ---- */

const char *path_resolve(struct walk *w, const struct state *s, const char *path)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(8192);
	const char *parts[2] = { *path == '/' ? "" : s->cwd, path };

	if (*path != '/' && !s->cwd)
		return NULL;
	work(w, 2 + strlen(path) / 16);
	for (int i = 0; i < 2; i++) {
		for (const char *c = parts[i]; *c;) {
			size_t n = strcspn(c, "/");

			if (n == 2 && c[0] == '.' && c[1] == '.') {
				while (out.len && out.data[out.len - 1] != '/')
					out.len--;
				if (out.len)
					out.len--;
				if (out.data)
					out.data[out.len] = 0;
			} else if (n && !(n == 1 && *c == '.')) {
				cs_buf_char(&out, '/');
				cs_buf_add(&out, c, n);
			}
			c += n + (c[n] == '/');
		}
	}
	if (out.over)
		return NULL;
	/* Another way to the same root. */
	if (!strncmp(cs_buf_text(&out), "/proc/self/root", 15) && (out.data[15] == '/' || !out.data[15]))
		return keep_text(w->mem, out.data[15] ? out.data + 15 : "/", out.data[15] ? out.len - 15 : 1);
	return keep_text(w->mem, out.len ? cs_buf_text(&out) : "/", out.len ? out.len : 1);
}

static bool is_harmless_device(const char *path)
{
	static const char *const ok[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/random",
					  "/dev/urandom" };

	for (size_t i = 0; i < sizeof ok / sizeof *ok; i++)
		if (!strcmp(path, ok[i]))
			return true;
	/* 63.N is a process substitution's (expand.c); others could be open on anything. */
	return !strncmp(path, "/dev/fd/63.", 11) || !strcmp(path, "/dev/fd/0") || !strcmp(path, "/dev/fd/1") || !strcmp(path, "/dev/fd/2");
}

/* Commands that show names, sizes and times of files, and nothing of what they hold. */
static bool only_lists(const char *by)
{
	static const char *const names[] = { "ls", "dir", "vdir", "find", "stat", "du", "df", "tree", "test", "[", "readlink", "realpath", "wc", "file", "lsattr", "getfacl", "namei", "locate" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(by, names[i]))
			return true;
	return false;
}

static bool is_secret(const struct walk *w, const char *path, bool pattern)
{
	const char *base = strrchr(path, '/');

	if (sh_is_secret(path, pattern))
		return true;
	for (size_t i = 0; i < w->policy->n_secrets; i++) {
		const char *p = w->policy->secrets[i];

		if (*p == '/' ? sh_within(path, p) : !strchr(p, '/') && base && (cs_glob(p, base + 1) || (pattern && fnmatch(base + 1, p, FNM_PERIOD) == 0)))
			return true;
	}
	return false;
}

/* A tree that would be gone through holds secrets if one could lie in it. */
static bool holds_secrets(const struct walk *w, const char *path)
{
	static const char *const places[] = { "/etc/shadow", "/root", "/home", "/proc", "/run/secrets" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (sh_within(places[i], path) || sh_within(path, "/proc"))
			return true;
	return w->policy->home && sh_within(w->policy->home, path);
}

static bool may_read(const struct walk *w, const char *path)
{
	if (!w->policy->roots)
		return true;
	for (size_t i = 0; i < w->policy->n_roots; i++)
		if (sh_within(path, w->policy->roots[i]))
			return true;
	return false;
}

static bool is_own(const struct walk *w, const char *path)
{
	for (size_t i = 0; i < w->policy->n_own; i++)
		if (sh_within(path, w->policy->own[i]))
			return true;
	return false;
}

static bool is_scratch(const struct walk *w, const char *path)
{
	const char *ws = w->policy->workspace ? w->policy->workspace : w->policy->cwd;

	return (ws && sh_within(path, ws) && strcmp(ws, "/")) || (sh_within(path, "/tmp") && strcmp(path, "/tmp")) ||
	       (sh_within(path, "/var/tmp") && strcmp(path, "/var/tmp")) || (sh_within(path, "/dev/shm") && strcmp(path, "/dev/shm"));
}

static bool is_endless(const char *path)
{
	return !strcmp(path, "/dev/zero") || !strcmp(path, "/dev/full") || !strcmp(path, "/dev/random") || !strcmp(path, "/dev/urandom");
}

static void effect_read(struct walk *w, const struct arg *a, const char *path, const char *by, bool tree, bool pattern)
{
	if (pattern) /* it is matched against the names of all secrets */
		work(w, 16 + strlen(path) / 2);
	if (is_endless(path) && strcmp(by, "head"))
		uncertain(w, a, "%s does not end", path);
	if (is_harmless_device(path))
		return;
	if (is_secret(w, path, false) && only_lists(by)) {
		effect_add(w, SH_EFFECT_READ, path, by, a, NULL);
		uncertain(w, a, "%s is where secrets are", path);
		return;
	}
	if (is_secret(w, path, false)) {
		effect_add(w, SH_EFFECT_SECRET, path, by, a, "secrets may not be read");
		return;
	}
	if (sh_within(path, "/dev") && strcmp(path, "/dev"))
		effect_add(w, SH_EFFECT_DEVICE, path, by, a, NULL), uncertain(w, a, "%s is a device", path);
	effect_add(w, SH_EFFECT_READ, path, by, a, NULL);
	if (!may_read(w, path))
		uncertain(w, a, "%s is outside of what may be read", path);
	if (tree && !only_lists(by))
		uncertain(w, a, "secrets can lie below %s", path);
	/* A pattern stands for names that nobody has seen; a name that begins with a dot needs a dot. */
	if (pattern && !only_lists(by) && (is_secret(w, path, true) || strstr(path, "/.")))
		uncertain(w, a, "secrets can be among %s", path);
}

static void effect_change(struct walk *w, enum sh_effect_kind kind, const struct arg *a, const char *path, const char *by)
{
	const char *why = NULL;

	if (is_harmless_device(path) && kind == SH_EFFECT_WRITE)
		return;
	if (is_own(w, path))
		why = "the policy's own files may not be changed";
	else if (sh_within(path, "/dev") && !sh_within(path, "/dev/shm"))
		kind = SH_EFFECT_DEVICE, why = "devices may not be written";
	else if (kind == SH_EFFECT_WRITE && sh_is_persistent(path))
		kind = SH_EFFECT_PERSISTENCE, why = "what others run or obey by themselves may not be changed";
	else if (sh_within(path, "/proc") || sh_within(path, "/sys"))
		kind = SH_EFFECT_SYSTEM, why = "the kernel's settings may not be changed";
	else if (!is_scratch(w, path) && kind == SH_EFFECT_DELETE)
		why = "nothing outside of the workspace may be deleted";
	else if (!is_scratch(w, path))
		why = "nothing outside of the workspace may be written";
	effect_add(w, kind, path, by, a, why);
	if (!why)
		uncertain(w, a, kind == SH_EFFECT_DELETE ? "deletes %s" : "writes %s", path);
}

void effect_path(struct walk *w, struct state *s, enum sh_effect_kind kind, const struct arg *a, const char *text, const char *by, bool tree)
{
	const char *path = text && *text ? path_resolve(w, s, text) : NULL;

	if (w->policy->look && !w->looking) {
		effect_really(w, s, kind, a, text, by, tree);
		return;
	}
	if (a->known == SH_DYNAMIC || !path) {
		effect_add(w, kind, "", by, a, NULL);
		uncertain(w, a, a->known == SH_DYNAMIC ? "%s: which file is meant is not known here" : "%s: the working directory is not known here", by);
		return;
	}
	if (s->also && *text != '/' && kind == SH_EFFECT_READ) { /* if cd failed */
		struct state there = *s;
		const char *other;

		there.cwd = *s->also ? s->also : NULL;
		other = path_resolve(w, &there, text);
		if (!other || is_secret(w, other, a->known == SH_PATTERN) || (tree && holds_secrets(w, other)))
			uncertain(w, a, "%s: if cd fails, this is another file", by);
	}
	if (a->followed)
		uncertain(w, a, "%s: %s comes through a variable or a substitution", by, path);
	if (a->known == SH_PREFIX || (a->known == SH_PATTERN && strpbrk(path, "*?["))) {
		/* What is certain is the directory that it lies in: a forbidden one stays forbidden. */
		char *dir = keep_text(w->mem, path, strcspn(path, "*?["));
		char *slash = strrchr(dir, '/');
		bool covers = kind == SH_EFFECT_DELETE || kind == SH_EFFECT_WRITE;

		if (a->known == SH_PREFIX)
			uncertain(w, a, "%s: the end of the name is not known here", by);
		if (!covers) {
			effect_read(w, a, path, by, tree, true);
			return;
		}
		if (slash)
			slash[slash == dir] = 0;
	}
	if (kind == SH_EFFECT_READ)
		effect_read(w, a, path, by, tree, false);
	else
		effect_change(w, kind, a, path, by);
}

/* ---- what the table has found ---- */

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
	uncertain(w, a, "%s goes over the network", by);
}

/* Programs in other languages: what is plainly there can be told; that nothing is cannot. */
static void judge_code(struct walk *w, struct state *s, const struct arg *a, const struct sh_finding *f, const char *by)
{
	static const char *const deletes[] = { "rmtree", "unlink", "os.remove", "rmdir", "rmSync", "rm(", "unlinkSync", "rimraf", "File.delete", "FileUtils.rm", "remove(" };
	static const char *const runs[] = { "system", "exec", "popen", "spawn", "subprocess", "child_process", "qx", "`", "| \"", "|\"", "|&" };
	bool deleting = false, running = false;
	const char *path = NULL;

	effect_add(w, SH_EFFECT_EXECUTE, keep_printf(w->mem, "%s code", f->lang ? f->lang : "other"), by, a, NULL);
	uncertain(w, a, "%s: a program in %s is not looked into for a proof", by, f->lang ? f->lang : "another language");
	if (f->known != SH_LITERAL || !f->text)
		return;
	work(w, strlen(f->text) / 8);
	for (size_t i = 0; i < sizeof deletes / sizeof *deletes; i++)
		deleting |= strstr(f->text, deletes[i]) != NULL;
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		running |= strstr(f->text, runs[i]) != NULL;
	/* The constants in quotes that it names. */
	for (const char *c = f->text; !spent(w) && (c = strpbrk(c, "'\"")) && *c; c++) {
		size_t n = strcspn(c + 1, (char[]){ *c, 0 });
		char *word = keep_text(w->mem, c + 1, n);

		if (deleting && *word == '/' && (path = path_resolve(w, s, word)))
			effect_change(w, SH_EFFECT_DELETE, a, path, by);
		if (running && n > 2) {
			struct state sub = state_copy(w, s);

			(void)walk_text(w, &sub, word, n, a->at, a->len, NULL);
		}
		if (!c[1 + n])
			break;
		c += n + 1;
	}
}

static void judge_role(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_finding *f, const struct value *in);

/* sed, awk and jq are small enough to be read: true if this is one of them, and all that it does has been told. */
static bool judge_small_code(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_finding *f, const struct arg *at,
			     const struct value *in)
{
	static const struct {
		const char *lang;
		enum sh_code_verdict (*judge)(const char *script, size_t arg, struct sh_findings *ret);
	} of[] = { { "sed", sh_sed_judge }, { "awk", sh_awk_judge }, { "jq", sh_jq_judge } };
	struct sh_findings found = { 0 };
	enum sh_code_verdict verdict = SH_CODE_UNKNOWN;
	size_t i = 0;

	if (!f->lang || f->known != SH_LITERAL || !f->text)
		return false;
	while (i < sizeof of / sizeof *of && strcmp(of[i].lang, f->lang))
		i++;
	if (i == sizeof of / sizeof *of)
		return false;
	work(w, strlen(f->text) / 8);
	verdict = of[i].judge(f->text, f->arg, &found);
	if (strstr(f->text, strcmp(f->lang, "jq") ? "ENVIRON" : "env") || (!strcmp(f->lang, "jq") && strstr(f->text, "ENV")))
		uncertain(w, at, "a program in %s that sees the environment, which may hold secrets", f->lang);
	for (size_t k = 0; k < found.n && !spent(w); k++)
		judge_role(w, s, a, first, &found.v[k], in);
	if (at->followed && verdict != SH_CODE_HARMLESS)
		uncertain(w, at, "a program in %s comes through a variable or a substitution", f->lang);
	if (verdict == SH_CODE_EXECUTES || verdict == SH_CODE_UNKNOWN) {
		struct state sub = state_copy(w, s);

		uncertain(w, at, verdict == SH_CODE_UNKNOWN ? "a program in %s that cannot be read" : "a program in %s that runs commands", f->lang);
		/* sed's `e` without a command runs the line itself. */
		if (verdict == SH_CODE_EXECUTES && !strcmp(f->lang, "sed") && in && in->known && !in->packed)
			(void)walk_text(w, &sub, in->text, in->len, at->at, at->len, NULL);
		/* ... and s///e what has been put in. */
		if (verdict == SH_CODE_EXECUTES && !strcmp(f->lang, "sed") && *f->text == 's' && f->text[1]) {
			struct cs_buf with CS_BUF_AUTO = CS_BUF(SHW_VALUE_MAX);
			const char *c = f->text + 2;

			for (; *c && *c != f->text[1]; c++)
				c += *c == '\\' && c[1];
			for (c += *c != 0; *c && *c != f->text[1]; c++) {
				c += *c == '\\' && c[1];
				cs_buf_char(&with, *c);
			}
			(void)walk_text(w, &sub, cs_buf_text(&with), with.len, at->at, at->len, NULL);
		}
		judge_code(w, s, at, f, f->lang);
	}
	sh_findings_done(&found);
	return true;
}

static void judge_role(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_finding *f, const struct value *in)
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
		if (f->known != SH_LITERAL) {
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
		uncertain(w, &at, "%s signals processes", by);
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
		uncertain(w, &a->v[first], "%s %s", by, f->does_why ? f->does_why : of[i].why);
	}
	if (f->does & SH_DOES_WRITE_CWD) {
		effect_add(w, SH_EFFECT_WRITE, s->cwd ? s->cwd : "", by, &a->v[first], NULL);
		uncertain(w, &a->v[first], "%s writes files in the directory", by);
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
