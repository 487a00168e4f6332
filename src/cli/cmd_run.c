/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/change.h"
#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/text.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run_args {
	const char *profile, *json;
	int json_fd;
	bool dry_run;
	struct session_opts o;
	struct cs_strv keys, values, origins; /* profile overrides, in order */
	struct cs_strv paths;                 /* what o points to */
};

static int parse_off(const char *list, protection_set *ret, struct cs_err *err)
{
	CS_FREE char *copy = cs_strdup(list);
	char *save = NULL;

	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		int p = protection_by_name(w);

		if (p < 0)
			return cs_fail(err, CS_E_INVALID, 0, "--off: no protection '%s'", w);
		*ret |= PROT_BIT(p);
	}
	return 0;
}

/* Profile keys take absolute paths; people type relative ones. */
static char *absolute(const char *path)
{
	CS_FREE char *here = NULL;

	if (*path == '/' || !strncmp(path, "~/", 2))
		return cs_strdup(path);
	if (strstr(path, "..") && (here = realpath(path, NULL)))
		return CS_TAKE_PTR(here);
	here = realpath(".", NULL);
	if (!strncmp(path, "./", 2))
		path += 2;
	return cs_printf("%s/%s", here ? here : "", path);
}

static void override(struct run_args *a, const char *key, char *take_value, const char *name)
{
	cs_strv_add(&a->keys, key);
	cs_strv_take(&a->values, take_value);
	cs_strv_take(&a->origins, cs_printf("--%s", name));
}

static void override_env(struct run_args *a, const char *value)
{
	char shown[128];

	if (strchr(value, '='))
		override(a, "env.set", cs_strdup(value), "env");
	else
		override(a, "env.pass", cs_strdup(value), "env");
	if (!strpbrk(value, "=*?[") && !getenv(value))
		say_note("--env %s: it is not set here, so it will not be there inside", cs_escape_to(shown, sizeof shown, value));
}

static int override_budget(struct run_args *a, const char *value, struct cs_err *err)
{
	CS_FREE char *key = NULL;
	const char *eq = strchr(value, '=');
	char shown[96];

	if (!eq)
		return cs_fail(err, CS_E_INVALID, 0, "--net-budget '%s': wants KEY=VALUE, such as bytes_out=10M or per_host.requests=100",
			       cs_escape_to(shown, sizeof shown, value));
	key = cs_printf("network.budgets.%.*s", (int)(eq - value), value);
	override(a, key, cs_strdup(eq + 1), "net-budget");
	return 0;
}

/* Of --learn and --net-log: absolute, because a session's keeper works in another directory. */
static int take_file(struct run_args *a, const struct cli_opt *opt, const char *value, const char **ret, struct cs_err *err)
{
	if (!*value)
		return cs_fail(err, CS_E_INVALID, 0, "--%s is given an empty path (an unset variable?)", opt->name);
	cs_strv_take(&a->paths, absolute(value));
	*ret = a->paths.v[a->paths.n - 1];
	return 0;
}

static int must_exist(const struct cli_opt *opt, const char *path, struct cs_err *err)
{
	char shown[256];

	if (access(path, F_OK) == 0)
		return 0;
	return cs_fail(err, CS_E_NOT_FOUND, errno, "--%s '%s'", opt->name, cs_escape_to(shown, sizeof shown, path));
}

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct run_args *a = arg;
	uint64_t n;

	if (opt->key && !strcmp(opt->key, "env")) {
		override_env(a, value);
	} else if (opt->key && !strcmp(opt->name, "net-budget")) {
		return override_budget(a, value, err);
	} else if (opt->key && (!strcmp(opt->name, "ro") || !strcmp(opt->name, "rw"))) {
		char *path;

		if (!*value)
			return cs_fail(err, CS_E_INVALID, 0, "--%s is given an empty path (an unset variable?)", opt->name);
		path = absolute(value);
		override(a, opt->key, path, opt->name);
		return must_exist(opt, path, err);
	} else if (opt->key) {
		override(a, opt->key, cs_strdup(value), opt->name);
	} else if (!strcmp(opt->name, "profile")) {
		a->profile = value;
	} else if (!strcmp(opt->name, "workspace")) {
		a->o.workspace = value;
	} else if (!strcmp(opt->name, "cwd")) {
		a->o.cwd = value;
	} else if (!strcmp(opt->name, "learn")) {
		return take_file(a, opt, value, &a->o.learn, err);
	} else if (!strcmp(opt->name, "net-log")) {
		return take_file(a, opt, value, &a->o.net_log, err);
	} else if (!strcmp(opt->name, "force")) {
		a->o.force = true;
	} else if (!strcmp(opt->name, "json")) {
		a->json = value;
	} else if (!strcmp(opt->name, "json-fd")) {
		if (cs_parse_u64(value, &n) < 0 || n > 1023 || fcntl((int)n, F_GETFD) < 0)
			return cs_fail(err, CS_E_INVALID, 0, "--json-fd '%s' is not an open descriptor", value);
		a->json_fd = (int)n;
	} else if (!strcmp(opt->name, "quiet")) {
		say_set_level(SAY_QUIET);
	} else if (!strcmp(opt->name, "verbose")) {
		say_set_level(SAY_VERBOSE);
	} else if (!strcmp(opt->name, "dry-run")) {
		a->dry_run = true;
	} else if (!strcmp(opt->name, "off")) {
		return parse_off(value, &a->o.off, err);
	}
	return 0;
}

static int load_profile(struct run_args *a, struct profile *p, struct cs_err *err)
{
	int r = profile_load(a->profile ? a->profile : "default", p, err);

	for (size_t i = 0; r == 0 && i < a->keys.n; i++)
		r = profile_set(p, a->keys.v[i], a->values.v[i], a->origins.v[i], err);
	if (r == 0 && a->keys.n)
		r = profile_check(p, cs_strv_has(&a->keys, "network.secrets") ? "--secret" : p->name, err);
	if (r == 0 && a->o.learn && p->locked)
		r = cs_fail(err, CS_E_DENIED, 0, "--learn: the profile is locked; learning would open its network");
	return r;
}

static void args_done(struct run_args *a)
{
	cs_strv_done(&a->keys);
	cs_strv_done(&a->values);
	cs_strv_done(&a->origins);
	cs_strv_done(&a->paths);
}

/* ---- telling ---- */

static void tell_limit(const struct session_result *r, const struct profile_limits *l)
{
	char n[32];

	switch (r->reason) {
	case SESSION_TIMEOUT:
		cs_format_duration(n, sizeof n, l->wall);
		say_note("timed out after %s: everything was ended (--timeout allows more)", n);
		break;
	case SESSION_MEMORY:
		cs_format_size(n, sizeof n, l->memory);
		say_note("memory limit of %s reached: everything was ended (--memory allows more)", n);
		break;
	case SESSION_DISK:
		if (r->usage.inodes_limit && r->usage.inodes_now + 1 > r->usage.inodes_limit) {
			say_note("limit of %llu private files reached: everything was ended (limits.inodes in a profile allows more)",
				 (unsigned long long)l->inodes);
			break;
		}
		cs_format_size(n, sizeof n, l->disk);
		say_note("disk limit of %s reached: everything was ended (--disk allows more)", n);
		break;
	case SESSION_OUTPUT:
		cs_format_size(n, sizeof n, l->output);
		say_note("output limit of %s reached: everything was ended (--max-output allows more)", n);
		break;
	case SESSION_CPU_TIME:
		cs_format_duration(n, sizeof n, l->cpu_time);
		say_note("CPU time limit of %s reached: everything was ended (--cpu-time allows more)", n);
		break;
	default:
		break;
	}
}

static void tell_refusals(const struct session_result *r, const struct profile_limits *l)
{
	enum { SHOWN = 6 };

	for (size_t i = 0; i < r->n_refusals && i < SHOWN; i++) {
		const struct sandbox_refusal *f = &r->refusals[i].what;
		char times[32] = "", shown[128];

		if (r->refusals[i].count > 1)
			snprintf(times, sizeof times, ", %u times", r->refusals[i].count);
		say_note("refused: %s (by %s%s)%s%s", cs_escape_to(shown, sizeof shown, f->what), f->by, times, f->fix ? ": " : "", f->fix ? f->fix : "");
	}
	if (r->n_refusals > SHOWN)
		say_note("refused: %zu more kinds of calls; --json lists them", r->n_refusals - SHOWN + r->refusals_more);
	if (r->usage.pids_denied)
		say_note("refused: more than %llu processes (by limit-pids): --pids allows more", (unsigned long long)l->pids);
}

static void tell_learnt(const struct session_opts *o, const struct session_network *n)
{
	char shown[256];

	if (n->learn == SESSION_LEARN_WRITTEN)
		say_note("learnt %zu rules: %s", n->learnt, cs_escape_to(shown, sizeof shown, o->learn));
	else if (n->learn == SESSION_LEARN_KEPT)
		say_note("nothing was reached, so nothing was learnt: %s is left as it was", cs_escape_to(shown, sizeof shown, o->learn));
}

/* What the boundary refused, each with what would allow it. */
static void tell_network(const struct session_opts *o, const struct session_network *n)
{
	enum { SHOWN = 8 };
	size_t shown = 0, more = n->totals.more;
	char out[32], in[32];

	for (size_t i = 0; i < n->n_told; i++) {
		const struct egress_told *t = &n->told[i];
		char times[32] = "";

		if (t->kind == EGRESS_REACHED)
			continue;
		if (shown == SHOWN) {
			more++;
			continue;
		}
		shown++;
		if (t->count > 1)
			snprintf(times, sizeof times, ", %u times", t->count);
		say_note("refused: %s %s (by network%s): %s%s%s", egress_kind_name((enum egress_kind)t->kind), t->what, times, t->reason,
			 t->fix[0] ? "; " : "", t->fix);
	}
	if (more)
		say_note("refused: %zu more kinds of connections; --json lists them, --net-log FILE tells of each", more);
	if (n->trouble[0])
		say_error("%s", n->trouble);
	tell_learnt(o, n);
	cs_format_size(out, sizeof out, n->totals.bytes_out);
	cs_format_size(in, sizeof in, n->totals.bytes_in);
	if (n->on)
		say_verbose("network: %u lookups, %u connections, %u requests, %s out, %s in, %u refused", n->totals.lookups, n->totals.connections,
			    n->totals.requests, out, in, n->totals.refused);
}

static void tell_steps(const struct session_result *r)
{
	uint64_t last = 0;

	for (size_t i = 0; i < r->n_steps; i++) {
		say_verbose("  %6.3f ms  +%.3f  %s", (double)r->steps[i].ns / 1e6, (double)(r->steps[i].ns - last) / 1e6, r->steps[i].name);
		last = r->steps[i].ns;
	}
}

static void tell_verbose(const struct session_result *r)
{
	struct cs_buf on CS_BUF_AUTO = CS_BUF(4096);

	if (say_get_level() < SAY_VERBOSE || !r->n_steps)
		return;
	for (int p = 0; p < PROT_MAX; p++)
		if (r->active & PROT_BIT(p))
			cs_buf_fmt(&on, " %s", protection_name((enum protection)p));
	say_verbose("%s: on:%s", r->id, cs_buf_text(&on));
	for (int p = 0; p < PROT_MAX; p++)
		if (!(r->active & PROT_BIT(p)))
			say_verbose("%s: off: %s%s%s", r->id, protection_name((enum protection)p), r->why_off[p][0] ? ": " : "", r->why_off[p]);
	if (r->hidden)
		say_verbose("secrets hidden in the workspace: %zu", r->hidden);
	say_verbose("start, step by step:");
	tell_steps(r);
	say_verbose("%s after %llu ms, %llu ms of CPU", session_reason_name(r->reason), (unsigned long long)r->wall_ms,
		    (unsigned long long)r->usage.cpu_ms);
}

/* ---- the result file ---- */

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int open_json(struct run_args *a, struct cs_err *err)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

	if (!a->json)
		return 0;
	/* Opened before the start, so that a bad path costs nothing; emptied only when written. */
	/* A program that ran before may have put a symlink or a FIFO there. */
	if (strncmp(a->json, "/dev/", 5) && strncmp(a->json, "/proc/", 6))
		flags |= O_NOFOLLOW;
	a->json_fd = open(a->json, flags, 0644);
	if (a->json_fd < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "--json '%s'", a->json);
	(void)fcntl(a->json_fd, F_SETFL, 0); /* not O_NONBLOCK any more */
	/* /dev/stdout, or the file that standard output goes to: write where that stands, cut nothing. */
	for (int fd = 1; fd <= 2; fd++) {
		if (!same_file(a->json_fd, fd))
			continue;
		close(a->json_fd);
		a->json_fd = fd;
		a->json = NULL;
		break;
	}
	return 0;
}

static int write_json(const struct run_args *a, const struct session_result *r)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(4 << 20);

	if (a->json_fd < 0)
		return 0;
	session_result_json(&a->o, r, &text);
	if (a->json)
		(void)!ftruncate(a->json_fd, 0); /* a pipe or device has nothing to cut */
	if (text.over || cs_write_all(a->json_fd, cs_buf_text(&text), text.len) < 0) {
		say_error("cannot write the result to %s", a->json ? a->json : "--json-fd");
		return -1;
	}
	return 0;
}

static int dry_run(const struct run_args *a)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 20);
	struct cs_err err = { 0 };

	if (session_explain(&a->o, &text, &err) < 0) {
		say_error("%s", err.msg);
		return session_exit_unstarted(err.code);
	}
	return cs_write_all(STDOUT_FILENO, cs_buf_text(&text), text.len) < 0 ? 125 : 0;
}

static int run(struct run_args *a, struct profile *p)
{
	static struct session_result res;
	int code;

	change_recover(a->o.workspace);
	code = session_run(&a->o, &res);

	if (res.err.code)
		say_error("%s", res.err.msg);
	tell_limit(&res, &p->limits);
	tell_refusals(&res, &p->limits);
	tell_network(&a->o, &res.network);
	tell_verbose(&res);
	(void)change_fate(p, &res); /* the exit status is the program's */
	return write_json(a, &res) < 0 && code == 0 ? 125 : code;
}

/* Before anything is opened: the next file would become what is missing. */
static int check_stdio(struct cs_err *err)
{
	static const char *const what[] = { "input is closed; give it something: </dev/null", "output is closed; give it a place: >/dev/null",
					    "error is closed; give it a place: 2>/dev/null" };

	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return cs_fail(err, CS_E_INVALID, 0, "standard %s", what[fd]);
	return 0;
}

int cmd_run(int argc, char **argv)
{
	struct run_args a = { .json_fd = -1 };
	struct profile p = { 0 };
	struct cs_err err = { 0 };
	int first, code;

	if (check_stdio(&err) < 0)
		return cli_usage_error(&err);
	first = cli_parse(cli_find("run"), argc, argv, take, &a, &err);
	if (first >= 0 && first >= argc && !a.dry_run)
		first = cs_fail(&err, CS_E_INVALID, 0, "no command: caisson run [OPTION...] -- COMMAND [ARG...]");
	if (first < 0 || load_profile(&a, &p, &err) < 0 || open_json(&a, &err) < 0) {
		code = cli_usage_error(&err);
	} else {
		a.o.profile = &p;
		a.o.argv = argv + first;
		code = a.dry_run ? dry_run(&a) : run(&a, &p);
	}
	profile_done(&p);
	args_done(&a);
	return code;
}

int cmd_begin(int argc, char **argv)
{
	char name[] = "session", *none[] = { name, NULL };
	struct run_args a = { .json_fd = -1 };
	struct profile p = { 0 };
	struct cs_err err = { 0 };
	char id[TXN_ID_MAX];
	int code = 0, first = cli_parse(cli_find("begin"), argc, argv, take, &a, &err);

	if (first >= 0 && first < argc)
		first = cs_fail(&err, CS_E_INVALID, 0, "`caisson begin` takes no command: caisson exec ID -- COMMAND runs one");
	if (first < 0 || load_profile(&a, &p, &err) < 0) {
		code = cli_usage_error(&err);
	} else {
		a.o.profile = &p;
		a.o.argv = none;
		change_recover(a.o.workspace);
		if (session_begin(&a.o, id, &err) < 0) {
			say_error("%s", err.msg);
			code = session_exit_unstarted(err.code);
		} else {
			printf("%s\n", id);
		}
	}
	profile_done(&p);
	args_done(&a);
	return code;
}
