/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

enum { STATE_MAX = 4 };

extern char **environ;

static const char *keep(struct session_spec *s, char *take_text)
{
	cs_strv_take(&s->strings, take_text);
	return take_text;
}

static bool is_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (!strcmp(dir, "/"))
		return true;
	return !strncmp(path, dir, n) && (path[n] == 0 || path[n] == '/');
}

static int bad_path(struct cs_err *err, const char *what, const char *path, const char *why)
{
	char shown[256];

	return cs_fail(err, CS_E_INVALID, 0, "%s '%s': %s", what, cs_escape_to(shown, sizeof shown, path), why);
}

/* Places a bind may not take: what the sandbox makes itself. */
static int check_target(const char *what, const char *path, struct cs_err *err)
{
	static const char *const own[] = { "/proc", "/dev", "/sys" };

	if (!strcmp(path, "/"))
		return bad_path(err, what, path, "the whole file system cannot be given to a sandbox; name the directories it needs");
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (is_within(path, own[i]))
			return bad_path(err, what, path, "the sandbox has a /proc and /dev of its own, and no /sys");
	return 0;
}

static int resolve(const char *what, const char *path, char **ret, struct cs_err *err)
{
	char shown[256], *real = realpath(path, NULL);

	if (!real)
		return cs_fail(err, errno == ENOENT ? CS_E_NOT_FOUND : CS_E_SYSTEM, errno, "%s '%s'", what,
			       cs_escape_to(shown, sizeof shown, path));
	*ret = real;
	return 0;
}

static int check_workspace(const char *real, bool force, struct cs_err *err)
{
	const char *home = getenv("HOME");
	CS_FREE char *real_home = home && *home ? realpath(home, NULL) : NULL;
	struct stat st;

	if (stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
		return bad_path(err, "workspace", real, "not a directory");
	if (access(real, R_OK | X_OK) < 0)
		return bad_path(err, "workspace", real, "cannot be read by you");
	if (!strcmp(real, "/"))
		return bad_path(err, "workspace", real, "the whole file system cannot be a workspace; choose a directory with -w DIR");
	if (!force && real_home && !strcmp(real, real_home))
		return bad_path(err, "workspace", real,
				"this is your home directory; choose a project with -w DIR, or say --force if you mean it");
	return check_target("workspace", real, err);
}

/* What a slip of the finger should not open: the system, and the home directory. */
static int check_writable(const char *path, bool force, struct cs_err *err)
{
	static const char *const precious[] = { "/bin", "/boot", "/etc", "/home", "/lib", "/root", "/sbin", "/usr", "/var" };
	const char *home = getenv("HOME");
	CS_FREE char *real_home = home && *home ? realpath(home, NULL) : NULL;
	bool bad = real_home && is_within(real_home, path);

	for (size_t i = 0; i < sizeof precious / sizeof *precious; i++)
		bad |= !strcmp(path, precious[i]);
	if (bad && !force)
		return bad_path(err, "--rw", path, "the system or a home directory, written for real; say --force if you mean it");
	return 0;
}

static int add_bind(struct session_spec *s, enum sandbox_bind_kind kind, const char *path, bool optional, struct cs_err *err)
{
	int r = check_target(kind == SANDBOX_RW ? "--rw" : "--ro", path, err);

	if (r < 0)
		return r;
	s->binds[s->spec.n_binds++] = (struct sandbox_bind){ .kind = kind, .source = path, .optional = optional };
	return 0;
}

/* Of the directories that installers write to, those that are there and no links (/bin -> usr/bin). */
static int add_scratch(struct session_spec *s, const char *path, struct cs_err *err)
{
	struct stat st;
	bool dir = lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
	int r = add_bind(s, dir ? SANDBOX_LAYER : SANDBOX_RO, path, true, err);

	if (r == 0 && dir)
		s->binds[s->spec.n_binds - 1].scratch = !strcmp(path, "/usr") ? "local" : "";
	return r;
}

/* What package managers keep of the system elsewhere: read by everybody on the host. */
static int add_package_state(struct session_spec *s, struct cs_err *err)
{
	static const char *const dirs[STATE_MAX] = { "/var/lib/dpkg", "/var/lib/apt", "/var/lib/ucf", "/var/lib/pam" };
	struct stat st;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof dirs / sizeof *dirs; i++)
		if (lstat(dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
			r = add_scratch(s, dirs[i], err);
	return r;
}

static bool is_system(const char *path)
{
	static const char *const dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt" };

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		if (!strcmp(path, dirs[i]))
			return true;
	return false;
}

static int add_binds(const struct session_opts *o, struct session_spec *s, struct cs_err *err)
{
	const struct profile *p = o->profile;
	bool ws_written = p->workspace == PROFILE_WS_WRITE;
	int r = 0;

	s->binds = cs_calloc(p->files_read.n + p->files_write.n + STATE_MAX + 1, sizeof *s->binds);
	for (size_t i = 0; r == 0 && i < p->files_read.n; i++)
		r = p->system == PROFILE_SYSTEM_SCRATCH && is_system(p->files_read.v[i]) ? add_scratch(s, p->files_read.v[i], err)
										      : add_bind(s, SANDBOX_RO, p->files_read.v[i], true, err);
	if (r == 0 && s->spec.installs)
		r = add_package_state(s, err);
	for (size_t i = 0; r == 0 && i < p->files_write.n; i++) {
		char *real = NULL;

		r = resolve("--rw", p->files_write.v[i], &real, err);
		if (!real)
			return r;
		(void)keep(s, real);
		ws_written |= s->workspace && !strcmp(real, s->workspace);
		if (s->workspace && !strcmp(real, s->workspace))
			continue; /* below: the workspace itself is what is written */
		r = check_writable(real, o->force, err);
		if (r == 0)
			r = add_bind(s, SANDBOX_RW, real, false, err);
	}
	if (r == 0 && s->workspace)
		r = add_bind(s, ws_written ? SANDBOX_RW : p->workspace == PROFILE_WS_LAYER ? SANDBOX_LAYER : SANDBOX_RO,
			     s->workspace, false, err);
	if (r == 0 && s->workspace && s->binds[s->spec.n_binds - 1].kind == SANDBOX_LAYER && !s->binds[s->spec.n_binds - 1].scratch)
		s->layer = &s->binds[s->spec.n_binds - 1];
	s->spec.binds = s->binds;
	return r;
}

static void add_env(struct session_spec *s, const char *name, const char *value)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < s->env.n; i++) {
		if (strncmp(s->env.v[i], name, n) || s->env.v[i][n] != '=')
			continue;
		free(s->env.v[i]);
		s->env.v[i] = cs_printf("%s=%s", name, value);
		return;
	}
	cs_strv_take(&s->env, cs_printf("%s=%s", name, value));
}

void session_spec_env(struct session_spec *s, const char *assignment)
{
	const char *eq = strchr(assignment, '=');
	CS_FREE char *name = cs_strndup(assignment, (size_t)(eq - assignment));

	add_env(s, name, eq + 1);
	s->spec.env = s->env.v;
}

static void pass_env(struct session_spec *s, const struct cs_strv *patterns)
{
	for (char **e = environ; *e; e++) {
		const char *eq = strchr(*e, '=');
		CS_FREE char *name = NULL;

		if (!eq || eq == *e)
			continue;
		name = cs_strndup(*e, (size_t)(eq - *e));
		for (size_t i = 0; i < patterns->n; i++) {
			if (!cs_glob(patterns->v[i], name))
				continue;
			add_env(s, name, eq + 1);
			break;
		}
	}
}

static void make_env(const struct session_opts *o, struct session_spec *s)
{
	const struct profile *p = o->profile;

	add_env(s, "PATH", o->path ? o->path : SYSTEM_PATH);
	add_env(s, "HOME", "/home/agent");
	add_env(s, "USER", "agent");
	add_env(s, "LOGNAME", "agent");
	add_env(s, "SHELL", "/bin/sh");
	if (s->spec.installs) {
		add_env(s, "DEBIAN_FRONTEND", "noninteractive");
		add_env(s, "TAR_OPTIONS", "--no-same-owner"); /* the workspace has one owner, whoever is root */
	}
	pass_env(s, &p->env_pass);
	for (size_t i = 0; i < p->env_set.n; i++) {
		const char *eq = strchr(p->env_set.v[i], '=');
		CS_FREE char *name = cs_strndup(p->env_set.v[i], (size_t)(eq - p->env_set.v[i]));

		add_env(s, name, eq + 1);
	}
	s->spec.env = s->env.v;
	s->spec.path = SYSTEM_PATH;
	for (size_t i = 0; i < s->env.n; i++)
		if (!strncmp(s->env.v[i], "PATH=", 5))
			s->spec.path = s->env.v[i] + 5;
}

/* As it was written, and where its directory really is: binds stand at real paths. */
static void add_absolute(struct session_spec *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	CS_FREE char *dir = slash == path ? cs_strdup("/") : cs_strndup(path, (size_t)(slash - path));
	CS_FREE char *real_dir = realpath(dir, NULL), *real = realpath(path, NULL);

	cs_strv_add(&s->hide, path);
	if (real_dir && strcmp(real_dir, dir))
		cs_strv_take(&s->hide, cs_printf("%s%s", strcmp(real_dir, "/") ? real_dir : "", slash));
	if (real && strcmp(real, path))
		cs_strv_add(&s->hide, real);
}

/* Whatever the profile says: what waits there for a commit must not be written by the program. */
static void hide_stores(struct session_spec *s)
{
	CS_FREE char *inside = s->workspace ? cs_printf("%s/.caisson", s->workspace) : NULL;
	CS_FREE char *state = txn_state_dir();

	if (inside && access(inside, F_OK) == 0)
		cs_strv_add(&s->hide, inside);
	if (state && s->workspace && is_within(state, s->workspace) && access(state, F_OK) == 0)
		cs_strv_add(&s->hide, state);
}

/* Packages bring /usr, and no secrets.  Rootless the rest is closed to us anyway, but for the names: locks and the
 * like, that installers make anew where there are none. */
static void hide_closed(const char *path, struct cs_strv *ret, bool *ret_partly)
{
	if (geteuid() != 0 && (!strcmp(path, "/usr") || !strcmp(path, "/opt")))
		return;
	session_find_closed(!strcmp(path, "/usr") ? "/usr/local" : path, ret, ret_partly);
}

/* Absolute patterns go as they are; relative ones are looked for where the program can read. */
static int make_hide(const struct session_opts *o, struct session_spec *s, struct cs_err *err)
{
	const struct cs_strv *patterns = &o->profile->files_hide;
	bool partly = false;
	int r = 0;

	for (size_t i = 0; i < patterns->n; i++)
		if (patterns->v[i][0] == '/')
			add_absolute(s, patterns->v[i]);
	for (size_t i = 0; r == 0 && i < s->spec.n_binds; i++) {
		const struct sandbox_bind *b = &s->binds[i];

		if ((b->kind != SANDBOX_RO && !b->scratch) || b->source == s->workspace)
			r = session_find_hidden(b->source, patterns, &s->hide, &partly, err);
		else if (b->scratch)
			hide_closed(b->source, &s->hide, &partly);
		if (partly && !s->hide_partly)
			s->hide_partly = b->source;
	}
	hide_stores(s);
	s->spec.hide = (const char *const *)s->hide.v;
	s->spec.n_hide = s->hide.n;
	return r;
}

static int make_cwd(const struct session_opts *o, struct session_spec *s, struct cs_err *err)
{
	CS_FREE char *here = NULL;

	if (o->cwd && o->cwd[0] != '/')
		return bad_path(err, "--cwd", o->cwd, "must be an absolute path inside the sandbox");
	if (o->cwd) {
		s->cwd = cs_strdup(o->cwd);
	} else {
		here = realpath(".", NULL);
		s->cwd = cs_strdup(here && s->workspace && is_within(here, s->workspace) ? here : s->workspace ? s->workspace : "/home/agent");
	}
	s->spec.cwd = s->cwd;
	return 0;
}

static int make_workspace(const struct session_opts *o, struct session_spec *s, struct cs_err *err)
{
	int r;

	if (o->profile->workspace == PROFILE_WS_NONE) {
		if (o->workspace)
			return bad_path(err, "workspace", o->workspace, "the profile has `workspace: none`");
		return 0;
	}
	r = resolve("workspace", o->workspace ? o->workspace : ".", &s->workspace, err);
	return r < 0 ? r : check_workspace(s->workspace, o->force, err);
}

int session_spec_make(const struct session_opts *o, struct session_spec *ret, struct cs_err *err)
{
	struct session_spec *s = ret;
	int r;

	*s = (struct session_spec){ .spec = { .argv = o->argv,
					      .limits = &o->profile->limits,
					      .proc = o->profile->proc,
					      .require = o->profile->require & ~o->off,
					      .off = o->off,
					      .notify = true,
					      .installs = o->profile->system == PROFILE_SYSTEM_SCRATCH } };
	r = make_workspace(o, s, err);
	if (r == 0)
		r = add_binds(o, s, err);
	if (r == 0)
		r = make_cwd(o, s, err);
	if (r == 0)
		r = make_hide(o, s, err);
	if (r < 0) {
		session_spec_done(s);
		return r;
	}
	make_env(o, s);
	return 0;
}

void session_spec_done(struct session_spec *s)
{
	free(s->binds);
	free(s->workspace);
	free(s->cwd);
	cs_strv_done(&s->strings);
	cs_strv_done(&s->env);
	cs_strv_done(&s->hide);
	*s = (struct session_spec){ 0 };
}
