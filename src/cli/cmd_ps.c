/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ps.c - caisson ps, kill and gc: what runs, without a server. */
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
		if (session_kill(argv[i], sig, &err) == 0)
			continue;
		say_error("%s", err.msg);
		code = 1;
	}
	return code;
}

int cmd_gc(int argc, char **argv)
{
	struct cs_err err = { 0 };
	bool json = false;
	int n;

	if (parse_json_flag("gc", argc, argv, &json, &err) < 0)
		return cli_usage_error(&err);
	n = session_gc(0, NULL, &err);
	if (n < 0)
		return cli_usage_error(&err);
	if (json)
		printf("{\"cleared\": %d}\n", n);
	else
		printf("%d cleared\n", n);
	return 0;
}
