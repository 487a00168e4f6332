/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_rules.c - caisson rules: look at a file of rules before it counts. */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/text.h"
#include "json/json.h"
#include "prove/prove.h"
#include "gate/gate.h"
#include "rules/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 4 << 20, OUT_MAX = 64 << 20, EXIT_CANNOT = 10 };

struct cmd {
	bool json, traces;
	const char *manifest, *against, *plan;
	struct prove_options prove;
	struct cs_arena arena; /* of the manifest and the plan */
	struct rules_tool *tools;
	size_t n_tools;
	struct cs_buf out;
	struct cs_json j;
	int status; /* the worst so far */
};

/* Wrong beats undecided, and an error beats both. */
static void worsen(struct cmd *c, int status)
{
	static const int order[] = { 0, EXIT_CANNOT, 1, 125, 127 };
	size_t a = 0, b = 0;

	while (order[a] != c->status && a + 1 < sizeof order / sizeof *order)
		a++;
	while (order[b] != status && b + 1 < sizeof order / sizeof *order)
		b++;
	c->status = order[a > b ? a : b];
}

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct cmd *c = arg;
	uint64_t n;

	if (!strcmp(opt->name, "json"))
		c->json = true;
	else if (!strcmp(opt->name, "traces"))
		c->traces = true;
	else if (!strcmp(opt->name, "tools"))
		c->manifest = value;
	else if (!strcmp(opt->name, "against"))
		c->against = value;
	else if (!strcmp(opt->name, "plan"))
		c->plan = value;
	else if (!strcmp(opt->name, "solver"))
		c->prove.solver = value;
	else if (!strcmp(opt->name, "timeout") && (cs_parse_duration(value, &c->prove.total_ms) < 0 || c->prove.total_ms == 0))
		return cs_fail(err, CS_E_INVALID, 0, "--timeout '%s': a time, as in 10s or 2m", value);
	else if (!strcmp(opt->name, "depth")) {
		if (cs_parse_u64(value, &n) < 0 || n < 1 || n > PROVE_DEPTH_MAX)
			return cs_fail(err, CS_E_INVALID, 0, "--depth '%s': a number of steps from 1 to %d", value, PROVE_DEPTH_MAX);
		c->prove.depth = (uint32_t)n;
	}
	return 0;
}

/* ---- reading ---- */

static int read_file(const char *path, struct cs_buf *b, struct cs_err *err)
{
	CS_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return cs_fail(err, CS_E_NOT_FOUND, errno, "'%s'", path);
	return cs_buf_read_fd(b, fd, path, err);
}

static int read_json(struct cmd *c, const char *path, const struct json **ret, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(FILE_MAX);
	int r = read_file(path, &text, err);

	if (r < 0)
		return r;
	r = json_read(&c->arena, cs_buf_text(&text), text.len, NULL, ret, err);
	return r < 0 ? cs_wrap(err, r, "%s", path) : 0;
}

static unsigned effects_of(const struct json *list)
{
	static const char *const names[] = { "reads", "writes", "net", "runs", "spends" };
	unsigned bits = 0;

	for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->n; i++)
		for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
			if (json_str(&list->items[i]) && !strcmp(json_str(&list->items[i]), names[k]))
				bits |= 1u << k;
	return bits;
}

/* As tools/list of the Model Context Protocol answers, or its array alone. */
static int read_manifest(struct cmd *c, struct cs_err *err)
{
	const struct json *j = NULL, *list;
	int r = c->manifest ? read_json(c, c->manifest, &j, err) : 0;

	if (r < 0 || !c->manifest)
		return r;
	list = json_is(j, JSON_OBJECT) ? json_get(j, "tools") : j;
	if (!json_is(list, JSON_ARRAY))
		return cs_fail(err, CS_E_INVALID, 0, "%s: an array of tools, or an object with one under \"tools\"", c->manifest);
	c->tools = cs_calloc(list->n + 1, sizeof *c->tools);
	for (uint32_t i = 0; i < list->n; i++) {
		const struct json *t = &list->items[i], *input = json_get(t, "inputSchema");
		const char *name = json_str(json_get(t, "name"));

		if (!name)
			return cs_fail(err, CS_E_INVALID, 0, "%s: tool %u has no \"name\"", c->manifest, i + 1);
		c->tools[c->n_tools++] = (struct rules_tool){ .name = name, .input = input ? input : json_get(t, "parameters"),
							      .output = json_get(t, "outputSchema"), .effects = effects_of(json_get(t, "effects")) };
	}
	return 0;
}

static bool is_profile(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
}

static int load(struct cmd *c, const char *path, struct rules **ret, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(FILE_MAX);
	int r;

	if (is_profile(path))
		return gate_policy_rules(path, ret, err);
	r = read_file(path, &text, err);
	return r < 0 ? r : rules_load(path, cs_buf_text(&text), text.len, c->tools, c->n_tools, ret, err);
}

/* ---- check ---- */

static void check(struct cmd *c, const char *path)
{
	const struct rules_warning *w;
	struct rules *r = NULL;
	struct cs_err err = { 0 };
	int e = load(c, path, &r, &err);
	size_t n = e < 0 ? 0 : rules_warnings(r, &w);
	uint32_t line;
	char shown[512];

	worsen(c, e < 0 ? err.code == CS_E_NOT_FOUND ? 125 : 1 : 0);
	if (c->json) {
		cs_json_str(&c->j, "error", e < 0 ? err.msg : NULL);
		cs_json_array(&c->j, "warnings");
		for (size_t i = 0; i < n; i++) {
			cs_json_object(&c->j, NULL);
			cs_json_str(&c->j, "file", rules_place(r, w[i].line, &line));
			cs_json_u64(&c->j, "line", line);
			cs_json_u64(&c->j, "column", w[i].column);
			cs_json_str(&c->j, "text", w[i].text);
			cs_json_end(&c->j, '}');
		}
		cs_json_end(&c->j, ']');
	} else if (e < 0) {
		say_error("%s", err.msg);
	} else {
		for (size_t i = 0; i < n; i++) {
			/* The text was escaped where it was made. */
			cs_escape_to(shown, sizeof shown, rules_place(r, w[i].line, &line));
			cs_buf_fmt(&c->out, "%s:%u:%u: %s%s\n", shown, line, w[i].column, strncmp(w[i].text, "note: ", 6) ? "warning: " : "", w[i].text);
		}
		cs_buf_fmt(&c->out, "%s: fine, for %zu tool%s\n", cs_escape_to(shown, sizeof shown, path), rules_tool_count(r), rules_tool_count(r) == 1 ? "" : "s");
	}
	rules_free(r);
}

/* ---- test, explain ---- */

static void test(struct cmd *c, const char *path, const struct rules *r)
{
	struct cs_buf told CS_BUF_AUTO = CS_BUF(OUT_MAX);
	size_t ran = 0, failed = rules_test(r, &ran, &told);
	char shown[512];

	worsen(c, failed ? 1 : 0);
	if (c->json) {
		cs_json_u64(&c->j, "tests", ran);
		cs_json_u64(&c->j, "failed", failed);
		cs_json_str(&c->j, "output", cs_buf_text(&told));
		return;
	}
	if (!ran) {
		cs_buf_fmt(&c->out, "%s: there are no tests in it; write some, such as `test deny [TOOL(ARG=\"x\")] by RULE;`\n", cs_escape_to(shown, sizeof shown, path));
		return;
	}
	cs_buf_str(&c->out, cs_buf_text(&told));
	cs_buf_fmt(&c->out, "%s: %zu passed, %zu failed\n", cs_escape_to(shown, sizeof shown, path), ran - failed, failed);
}

static int explain(struct cmd *c, const struct rules *r, const char *rule, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(OUT_MAX);
	int e = rules_explain(r, rule, &text, err);

	if (e < 0)
		return e;
	if (c->json)
		cs_json_str(&c->j, "text", cs_buf_text(&text));
	else
		cs_buf_fmt(&c->out, "%s%s", cs_buf_text(&text), rule ? "\n" : "");
	return 0;
}

/* ---- prove ---- */

static int outcome_status(const struct prove_report *r)
{
	int status = 0;

	for (uint32_t i = 0; i < r->n; i++)
		if (r->findings[i].outcome == PROVE_FOUND)
			status = 1;
		else if (r->findings[i].outcome == PROVE_CANNOT && !status)
			status = EXIT_CANNOT;
	return status;
}

static void finding_json(struct cs_json *j, const struct prove_finding *f)
{
	cs_json_object(j, NULL);
	cs_json_str(j, "about", prove_about_name(f->about));
	cs_json_str(j, "outcome", prove_outcome_name(f->outcome));
	cs_json_str(j, "name", f->name);
	cs_json_u64(j, "line", f->line);
	cs_json_u64(j, "depth", f->depth);
	cs_json_str(j, "text", f->text);
	cs_json_str(j, "why", f->why);
	if (f->verdict)
		cs_json_str(j, "verdict", f->verdict);
	cs_json_array(j, "rules");
	for (size_t i = 0; f->rules && f->rules[i]; i++)
		cs_json_str(j, NULL, f->rules[i]);
	cs_json_end(j, ']');
	cs_json_str(j, "trace", f->trace);
	cs_json_end(j, '}');
}

static void report_json(struct cs_json *j, const struct prove_report *r)
{
	cs_json_u64(j, "depth", r->depth);
	cs_json_u64(j, "milliseconds", r->ms);
	cs_json_u64(j, "questions", r->questions);
	cs_json_array(j, "findings");
	for (uint32_t i = 0; i < r->n; i++)
		finding_json(j, &r->findings[i]);
	cs_json_end(j, ']');
}

static void write_trace(struct cs_buf *b, const char *trace)
{
	for (unsigned n = 1; *trace; n++) {
		size_t len = strcspn(trace, "\n");

		cs_buf_fmt(b, "      %u. %.*s\n", n, (int)len, trace);
		trace += len + (trace[len] == '\n');
	}
}

static void finding_text(struct cmd *c, const struct prove_finding *f)
{
	static const char *const marks[] = { " ok ", " !! ", " -- ", " ?? " };
	static const char *const colours[] = { "\033[32m", "\033[1;31m", "\033[33m", "\033[33m" };
	bool colour = say_colour(STDOUT_FILENO);

	cs_buf_fmt(&c->out, "%s%s%s%s ", colour ? colours[f->outcome] : "", marks[f->outcome], colour ? "\033[0m" : "",
		   f->about == PROVE_ASSERT ? "" : f->about == PROVE_SUBSUMED || f->about == PROVE_OBLIGATION ? "rule" :
		   f->about == PROVE_NARROWER ? "" : prove_about_name(f->about));
	if (f->about == PROVE_STEP)
		cs_buf_fmt(&c->out, "%u ", f->line);
	cs_escape(&c->out, f->name);
	cs_buf_str(&c->out, f->outcome == PROVE_CANNOT ? ": cannot prove: " : ": ");
	cs_escape(&c->out, f->text);
	if (f->why) {
		cs_buf_str(&c->out, " (");
		cs_escape(&c->out, f->why);
		cs_buf_char(&c->out, ')');
	}
	cs_buf_char(&c->out, '\n');
	if (f->trace && (c->traces || f->outcome == PROVE_FOUND))
		write_trace(&c->out, f->trace); /* escaped when it was written */
}

static void report_write(struct cmd *c, const char *path, const struct prove_report *r)
{
	unsigned n[4] = { 0 };
	char shown[512];

	worsen(c, outcome_status(r));
	if (c->json) {
		report_json(&c->j, r);
		return;
	}
	cs_buf_fmt(&c->out, "%s: to depth %u\n", cs_escape_to(shown, sizeof shown, path), r->depth);
	for (uint32_t i = 0; i < r->n; i++) {
		n[r->findings[i].outcome]++;
		finding_text(c, &r->findings[i]);
	}
	cs_buf_fmt(&c->out, "%u fine, %u found, %u noted, %u not proved; %u questions in %llu ms\n", n[PROVE_FINE], n[PROVE_FOUND], n[PROVE_NOTE],
		   n[PROVE_CANNOT], r->questions, (unsigned long long)r->ms);
}

static int prove_one(struct cmd *c, const struct rules *r, struct prove_report *ret, struct cs_err *err)
{
	const struct json *plan = NULL;
	struct rules *old = NULL;
	int e;

	if (c->plan) {
		e = read_json(c, c->plan, &plan, err);
		if (e < 0)
			return e;
		e = prove_plan(r, plan, &c->prove, ret, err);
		return e == -CS_E_INVALID ? cs_wrap(err, e, "%s", c->plan) : e;
	}
	if (!c->against)
		return prove_rules(r, &c->prove, ret, err);
	e = load(c, c->against, &old, err);
	if (e >= 0)
		e = prove_against(r, old, &c->prove, ret, err);
	rules_free(old);
	return e;
}

static int prove(struct cmd *c, const char *path, const struct rules *r, struct cs_err *err)
{
	struct prove_report report = { .arena = CS_ARENA(0) };
	int e = prove_one(c, r, &report, err);

	if (e >= 0)
		report_write(c, path, &report);
	prove_report_done(&report);
	return e;
}

/* ---- the command ---- */

static int with_file(struct cmd *c, const char *verb, const char *path, const char *rule, struct cs_err *err)
{
	struct rules *r = NULL;
	int e;

	if (!strcmp(verb, "check")) {
		check(c, path);
		return 0;
	}
	e = load(c, path, &r, err);
	if (e < 0)
		return e;
	if (!strcmp(verb, "test"))
		test(c, path, r);
	else if (!strcmp(verb, "explain"))
		e = explain(c, r, rule, err);
	else
		e = prove(c, path, r, err);
	rules_free(r);
	return e;
}

static const char *const verbs[] = { "check", "test", "explain", "prove" };

static bool known_verb(const char *s)
{
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (!strcmp(s, verbs[i]))
			return true;
	return false;
}

static int no_verb(const char *word, struct cs_err *err)
{
	const char *near = cs_nearest(word, verbs, sizeof verbs / sizeof *verbs);
	char shown[96];

	return cs_fail(err, CS_E_INVALID, 0, "no such verb: '%s'%s%s%s: check, test, explain or prove, and a file", cs_escape_to(shown, sizeof shown, word),
		       near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int usage(const struct cmd *c, const struct cs_strv *words, struct cs_err *err)
{
	bool proves = words->n && !strcmp(words->v[0], "prove");

	if (words->n < 1)
		return cs_fail(err, CS_E_INVALID, 0, "nothing to do: check, test, explain or prove, and a file");
	if (!known_verb(words->v[0]))
		return no_verb(words->v[0], err);
	if (words->n < 2)
		return cs_fail(err, CS_E_INVALID, 0, "no file: caisson rules %s FILE", words->v[0]);
	if ((c->against || c->plan || c->prove.depth || c->prove.solver || c->traces || c->prove.total_ms) && !proves)
		return cs_fail(err, CS_E_INVALID, 0, "--against, --plan, --depth, --timeout, --solver and --traces go with prove");
	if (c->against && c->plan)
		return cs_fail(err, CS_E_INVALID, 0, "--against and --plan are two questions: ask one at a time");
	return 0;
}

static int run(struct cmd *c, const struct cs_strv *words, struct cs_err *err)
{
	/* explain FILE [RULE]; the others take many files. */
	bool explains = !strcmp(words->v[0], "explain");
	size_t end = explains ? 2 : words->n;
	int e = read_manifest(c, err);

	cs_json_begin(&c->j, &c->out, /* pretty= */ true);
	if (c->json) {
		cs_json_object(&c->j, NULL);
		cs_json_array(&c->j, "files");
	}
	for (size_t i = 1; e >= 0 && i < end; i++) {
		if (c->json) {
			cs_json_object(&c->j, NULL);
			cs_json_str(&c->j, "file", words->v[i]);
		}
		e = with_file(c, words->v[0], words->v[i], explains && words->n > 2 ? words->v[2] : NULL, err);
		if (c->json)
			cs_json_end(&c->j, '}');
	}
	if (c->json) {
		cs_json_end(&c->j, ']');
		cs_json_end(&c->j, '}');
	}
	return e;
}

int cmd_rules(int argc, char **argv)
{
	struct cmd c = { .arena = CS_ARENA(64 << 20), .out = CS_BUF(OUT_MAX) };
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	int r = cli_parse_words(cli_find("rules"), argc, argv, take, &c, &words, &err);

	if (r >= 0)
		r = usage(&c, &words, &err);
	if (r >= 0)
		r = run(&c, &words, &err);
	if (r < 0) {
		cli_usage_error(&err);
		worsen(&c, cs_code_exit(err.code));
	} else if (c.out.over || cs_write_all(STDOUT_FILENO, cs_buf_text(&c.out), c.out.len) < 0) {
		say_error("the answer could not be written");
		worsen(&c, 125);
	}
	cs_strv_done(&words);
	free(c.tools);
	cs_buf_done(&c.out);
	cs_arena_done(&c.arena);
	return c.status;
}
