/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ps.c - caisson ps, kill and gc: what runs, without a server. */
#include "cli/change.h"
#include "cli/cli.h"

#include "base/json.h"
#include "base/say.h"
#include "base/text.h"
#include "session/session.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int take_json(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	(void)value, (void)err;
	*(bool *)arg |= !strcmp(opt->name, "json");
	return 0;
}

static int parse_json_flag(const char *name, int argc, char **argv, bool *json, struct cs_err *err)
{
	int first = cli_parse(cli_find(name), argc, argv, take_json, json, err);

	if (first >= 0 && first < argc)
		return cs_fail(err, CS_E_INVALID, 0, "`caisson %s` takes no argument '%s'", name, argv[first]);
	return first;
}

struct listing {
	struct cs_json *json; /* NULL: a table */
	unsigned n;
	int narrow;
};

static void show_row(const struct session_entry *e, void *arg)
{
	struct listing *l = arg;
	char age[32];
	uint64_t now = (uint64_t)time(NULL);

	if (!e->alive)
		return;
	if (l->json) {
		cs_json_object(l->json, NULL);
		cs_json_str(l->json, "id", e->id);
		cs_json_i64(l->json, "supervisor", e->supervisor);
		cs_json_u64(l->json, "started", e->started);
		cs_json_str(l->json, "profile", e->profile);
		cs_json_str(l->json, "workspace", e->workspace);
		cs_json_str(l->json, "command", e->command);
		cs_json_end(l->json, '}');
		return;
	}
	if (l->n++ == 0)
		printf("%-10s %-8s %-7s %-10s %s\n", "ID", "PID", "AGE", "PROFILE", "COMMAND");
	cs_format_duration(age, sizeof age, (now - e->started) * 1000);
	printf("%-10s %-8d %-7s %-10s %.*s\n", e->id, (int)e->supervisor, age, e->profile, l->narrow, e->command);
}

int cmd_ps(int argc, char **argv)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(64 << 20);
	struct cs_err err = { 0 };
	struct cs_json j;
	struct listing l = { .narrow = isatty(1) ? 60 : 255 };
	bool json = false;

	if (parse_json_flag("ps", argc, argv, &json, &err) < 0)
		return cli_usage_error(&err);
	(void)session_gc(0, NULL, NULL); /* best effort: `caisson gc` reports */
	if (json) {
		cs_json_begin(&j, &out, true);
		cs_json_array(&j, NULL);
		l.json = &j;
	}
	if (session_list(show_row, &l, &err) < 0)
		return cli_usage_error(&err);
	if (json) {
		cs_json_end(&j, ']');
		return cs_write_all(1, cs_buf_text(&out), out.len) < 0 ? 125 : 0;
	}
	if (l.n == 0)
		say_note("no sandbox runs");
	return 0;
}

static int take_force(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	(void)opt, (void)value, (void)err;
	*(int *)arg = SIGKILL;
	return 0;
}

int cmd_kill(int argc, char **argv)
{
	struct cs_err err = { 0 };
	int sig = SIGTERM, code = 0, first = cli_parse(cli_find("kill"), argc, argv, take_force, &sig, &err);

	if (first >= 0 && first >= argc)
		first = cs_fail(&err, CS_E_INVALID, 0, "which one? `caisson ps` lists ids; caisson kill ID...");
	if (first < 0)
		return cli_usage_error(&err);
	for (int i = first; i < argc; i++) {
		int r = session_kill(argv[i], sig, &err);

		if (r == 0)
			say_note("%s has not ended yet: its program may catch the signal (--force ends it at once)", argv[i]);
		if (r >= 0)
			continue;
		say_error("%s", err.msg);
		code = 1;
	}
	return code;
}

/* ---- gc ---- */

struct gc_args {
	bool json, pending;
	const char *profile;
	struct cs_strv said;
};

static int take_gc(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct gc_args *a = arg;

	(void)err;
	a->json |= !strcmp(opt->name, "json");
	a->pending |= !strcmp(opt->name, "pending");
	if (!strcmp(opt->name, "profile"))
		a->profile = value;
	return 0;
}

static void gc_line(const char *line, void *arg)
{
	struct gc_args *a = arg;

	cs_strv_add(&a->said, line);
}

static int gc_print(const struct gc_args *a, int cleared)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(64 << 20);
	struct cs_json j;

	if (!a->json) {
		for (size_t i = 0; i < a->said.n; i++)
			cs_buf_fmt(&out, "%s\n", a->said.v[i]);
		cs_buf_fmt(&out, "%d cleared\n", cleared);
	} else {
		cs_json_begin(&j, &out, true);
		cs_json_object(&j, NULL);
		cs_json_i64(&j, "cleared", cleared);
		cs_json_array(&j, "transactions");
		for (size_t i = 0; i < a->said.n; i++)
			cs_json_str(&j, NULL, a->said.v[i]);
		cs_json_end(&j, ']');
		cs_json_end(&j, '}');
		cs_buf_char(&out, '\n');
	}
	return cs_write_all(STDOUT_FILENO, cs_buf_text(&out), out.len) < 0 ? 125 : 0;
}

int cmd_gc(int argc, char **argv)
{
	struct gc_args a = { 0 };
	struct profile p = { 0 };
	struct cs_err err = { 0 };
	struct txn_gc g;
	int n = cli_parse(cli_find("gc"), argc, argv, take_gc, &a, &err), code;

	if (n >= 0 && n < argc)
		n = cs_fail(&err, CS_E_INVALID, 0, "`caisson gc` takes no argument '%s'", argv[n]);
	if (n >= 0)
		n = profile_load(a.profile ? a.profile : "default", &p, &err);
	if (n >= 0) {
		change_recover(NULL);
		g = (struct txn_gc){ .age = p.commit_age / 1000, .size = p.commit_size, .pending = a.pending };
		n = session_gc(0, NULL, &err);
		session_clear_sockets();
	}
	if (n >= 0)
		(void)txn_gc(&g, gc_line, &a); /* each is named */
	code = n < 0 ? cli_usage_error(&err) : gc_print(&a, n);
	profile_done(&p);
	cs_strv_done(&a.said);
	return code;
}
