/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_profile.c - caisson profile list|show|check|schema|explain */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/say.h"
#include "base/text.h"
#include "gate/gate.h"
#include "profile/profile.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_CHECK = 1, EXIT_REFUSED = 125, OUTPUT_MAX = 4 << 20 };


struct opts {
	bool json, source, keys;
	char **args;
	int n;
};

static int print(const struct cs_buf *out)
{
	int r = out->over ? -1 : cs_write_all(STDOUT_FILENO, cs_buf_text(out), out->len);

	if (r < 0)
		say_error("cannot write to standard output");
	return r < 0 ? EXIT_REFUSED : 0;
}

static int refuse(const struct cs_err *err)
{
	say_error("%s", err->msg);
	return EXIT_REFUSED;
}

static int list_json(struct cs_buf *out)
{
	struct cs_json j;

	cs_json_begin(&j, out, /* pretty= */ true);
	cs_json_array(&j, NULL);
	for (size_t i = 0; i < profile_builtin_count(); i++) {
		cs_json_object(&j, NULL);
		cs_json_str(&j, "name", profile_builtin_name(i));
		cs_json_str(&j, "description", profile_builtin_summary(i));
		cs_json_end(&j, '}');
	}
	cs_json_end(&j, ']');
	return print(out);
}

static int do_list(const struct opts *o)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);
	bool paint = say_colour(STDOUT_FILENO);

	if (o->json)
		return list_json(&out);
	for (size_t i = 0; i < profile_builtin_count(); i++)
		cs_buf_fmt(&out, "%s%-10s%s %s\n", paint ? "\033[1m" : "", profile_builtin_name(i), paint ? "\033[0m" : "",
			   profile_builtin_summary(i));
	return print(&out);
}

/* As written, with its comments: the built-in's text or the file's bytes. */
static int show_source(const char *name)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);

	for (size_t i = 0; i < profile_builtin_count(); i++)
		if (!strcmp(profile_builtin_name(i), name)) {
			cs_buf_str(&out, profile_builtin_text(i));
			return print(&out);
		}
	say_error("--source shows built-in profiles; a file can be looked at as it is");
	return EXIT_REFUSED;
}

static int do_show(const struct opts *o)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);
	struct profile p;
	struct cs_err err;

	if (o->source)
		return show_source(o->args[0]);
	if (profile_load(o->args[0], &p, &err) < 0)
		return refuse(&err);
	if (o->json)
		profile_write_json(&p, &out);
	else
		profile_write_yaml(&p, &out);
	profile_done(&p);
	return print(&out);
}

static bool is_builtin(const char *name)
{
	for (size_t i = 0; i < profile_builtin_count(); i++)
		if (!strcmp(name, profile_builtin_name(i)))
			return true;
	return false;
}

/* Keys that are the gate's are read as the gate would. */
static int check_file(const char *path, struct cs_err *err)
{
	struct gate_policy *policy = NULL;
	struct profile p;
	bool gate;
	int r = is_builtin(path) ? profile_load(path, &p, err) : profile_load_file(path, &p, err);

	if (r < 0)
		return r;
	gate = p.gate;
	profile_done(&p);
	if (!gate)
		return 0;
	r = gate_policy_load(path, &policy, err);
	if (r >= 0)
		gate_policy_free(policy);
	return r;
}

static void check_one(const char *path, struct cs_json *j, struct cs_buf *out, bool *ret_ok)
{
	struct cs_err err = { 0 };
	bool ok = check_file(path, &err) >= 0;

	if (!ok)
		*ret_ok = false;
	if (j) {
		cs_json_object(j, NULL);
		cs_json_str(j, "file", path);
		cs_json_bool(j, "ok", ok);
		cs_json_str(j, "code", ok ? NULL : cs_code_name(err.code));
		cs_json_str(j, "error", ok ? NULL : err.msg);
		cs_json_end(j, '}');
	} else if (ok) {
		cs_escape(out, path);
		cs_buf_str(out, ": ok\n");
	} else {
		say_error("%s", err.msg);
	}
}

static int do_check(const struct opts *o)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);
	struct cs_json j;
	bool ok = true;
	int r;

	if (o->json) {
		cs_json_begin(&j, &out, /* pretty= */ true);
		cs_json_array(&j, NULL);
	}
	for (int i = 0; i < o->n; i++)
		check_one(o->args[i], o->json ? &j : NULL, &out, &ok);
	if (o->json)
		cs_json_end(&j, ']');
	r = print(&out);
	return r ? r : ok ? 0 : EXIT_CHECK;
}

static int do_schema(const struct opts *o)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);

	(void)o;
	profile_write_schema(&out);
	return print(&out);
}

static int do_explain(const struct opts *o)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);
	struct profile p;
	struct cs_err err;

	if (o->keys) {
		profile_write_keys_text(&out);
		return print(&out);
	}
	if (profile_load(o->args[0], &p, &err) < 0)
		return refuse(&err);
	profile_explain(&p, &out);
	profile_done(&p);
	return print(&out);
}

enum { TAKES_JSON = 1, TAKES_SOURCE = 2, TAKES_KEYS = 4 };

static const struct verb {
	const char *name;
	int (*fn)(const struct opts *);
	int min, max; /* arguments */
	unsigned takes;
	const char *wants;
} verbs[] = {
	{ "list", do_list, 0, 0, TAKES_JSON, "no argument" },
	{ "show", do_show, 1, 1, TAKES_JSON | TAKES_SOURCE, "one profile's name or path" },
	{ "check", do_check, 1, 4096, TAKES_JSON, "at least one file" },
	{ "schema", do_schema, 0, 0, 0, "no argument" },
	{ "explain", do_explain, 1, 1, TAKES_KEYS, "one profile's name or path" },
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static int unknown(const char *what, const char *word, const char *const *names, size_t n)
{
	const char *near = cs_nearest(word, names, n);
	char shown[96];

	cs_escape_to(shown, sizeof shown, word);
	if (near)
		say_error("profile: unknown %s '%s' (did you mean '%s'?)", what, shown, near);
	else
		say_error("profile: unknown %s '%s'; see caisson profile --help", what, shown);
	return -1;
}

static const struct verb *find_verb(const char *word)
{
	const char *names[VERBS];

	for (size_t i = 0; i < VERBS; i++) {
		names[i] = verbs[i].name;
		if (!strcmp(names[i], word))
			return &verbs[i];
	}
	(void)unknown("command", word, names, VERBS);
	return NULL;
}

/* Flags may stand anywhere before "--"; the other words are moved to the front of argv. */
static int parse_flags(const struct verb *v, int argc, char **argv, struct opts *o)
{
	static const char *const flags[] = { "--json", "--source", "--keys", "--help" };
	bool rest = false;

	o->args = argv;
	for (int i = 0; i < argc; i++) {
		if (rest || argv[i][0] != '-')
			o->args[o->n++] = argv[i];
		else if (!strcmp(argv[i], "--"))
			rest = true;
		else if (!strcmp(argv[i], "--json") && v->takes & TAKES_JSON)
			o->json = true;
		else if (!strcmp(argv[i], "--source") && v->takes & TAKES_SOURCE)
			o->source = true;
		else if (!strcmp(argv[i], "--keys") && v->takes & TAKES_KEYS)
			o->keys = true;
		else
			return unknown("flag", argv[i], flags, sizeof flags / sizeof *flags);
	}
	return 0;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return argc > 1 && !strcmp(argv[1], "help");
}

int cmd_profile(int argc, char **argv)
{
	struct opts o = { 0 };
	const struct verb *v;

	if (wants_help(argc, argv)) {
		cli_help(cli_find("profile"));
		return 0;
	}
	if (argc < 2) {
		say_error("profile: wants a command: list, show, check, schema or explain");
		return EXIT_REFUSED;
	}
	v = find_verb(argv[1]);
	if (!v || parse_flags(v, argc - 2, argv + 2, &o) < 0)
		return EXIT_REFUSED;
	if (o.n < (o.keys ? 0 : v->min) || o.n > (o.keys ? 0 : v->max)) {
		say_error("profile %s: wants %s", v->name, o.keys ? "no argument with --keys" : v->wants);
		return EXIT_REFUSED;
	}
	return v->fn(&o);
}
