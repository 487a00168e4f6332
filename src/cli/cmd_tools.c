/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_tools.c - caisson tools: the manifests of tools, and what of them was approved. */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/person.h"
#include "gate/gate.h"
#include "gate/manifest.h"
#include "gate/scope.h"
#include "schema/schema.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { EXIT_CHECK = 1, EXIT_REFUSED = 125, TEXT_MAX = (4 << 20) + 1, OUTPUT_MAX = 64 << 20, MANIFESTS_MAX = 32 };

struct opts {
	bool json, yes;
	const char *pins, *profile, *by;
};

struct work {
	struct opts o;
	struct manifest *v[MANIFESTS_MAX];
	size_t n;
	struct pins *pins; /* NULL: none are asked for, and there is no file */
	char *pins_path;
	struct gate_policy *policy;
	struct cs_strv names; /* of approve and diff */
};

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct opts *o = arg;

	(void)err;
	if (!strcmp(opt->name, "json"))
		o->json = true;
	else if (!strcmp(opt->name, "yes"))
		o->yes = true;
	else if (!strcmp(opt->name, "pins"))
		o->pins = value;
	else if (!strcmp(opt->name, "profile"))
		o->profile = value;
	else if (!strcmp(opt->name, "by"))
		o->by = value;
	return 0;
}

static int print(const struct cs_buf *out)
{
	if (!out->over && cs_write_all(STDOUT_FILENO, cs_buf_text(out), out->len) >= 0)
		return 0;
	say_error("cannot write to standard output");
	return EXIT_REFUSED;
}

/* ---- reading ---- */

static int read_manifest(struct work *w, const char *path, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(TEXT_MAX);
	bool in = !strcmp(path, "-");
	CS_FD int fd = in ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	char shown[256];
	int r;

	cs_escape_to(shown, sizeof shown, path);
	if (w->n == MANIFESTS_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "at most %d manifests", MANIFESTS_MAX);
	if (fd < 0)
		return cs_fail(err, CS_E_NOT_FOUND, errno, "open the manifest '%s'", shown);
	r = cs_buf_read_fd(&text, fd, shown, err);
	if (r >= 0)
		r = manifest_read(in ? "standard input" : path, cs_buf_text(&text), text.len, &w->v[w->n], err);
	if (r < 0)
		return r;
	(void)manifest_screen(w->v[w->n++]);
	return 0;
}

/* --pins, or a file beside the (first) manifest that is there only when something was pinned. */
static int read_pins(struct work *w, const char *manifest, bool must, struct cs_err *err)
{
	struct cs_err inner = { 0 };
	int r;

	w->pins_path = w->o.pins ? cs_strdup(w->o.pins) : cs_printf("%s.pins", manifest);
	if (!must && !w->o.pins && access(w->pins_path, F_OK) < 0)
		return 0;
	r = pins_load(w->pins_path, &w->pins, &inner);
	if (r < 0) {
		*err = inner;
		return r;
	}
	for (size_t i = 0; i < w->n; i++)
		(void)pins_apply(w->pins, w->v[i]);
	return 0;
}

static void work_done(struct work *w)
{
	for (size_t i = 0; i < w->n; i++)
		manifest_free(w->v[i]);
	pins_free(w->pins);
	free(w->pins_path);
	gate_policy_free(w->policy);
	cs_strv_done(&w->names);
}

static const char *state_of(const struct work *w, const struct manifest_tool *t)
{
	enum pin_state s = w->pins ? pins_state(w->pins, t) : PIN_NONE;

	if (t->refused)
		return "refused";
	if (s == PIN_CHANGED)
		return "changed";
	if (s == PIN_SAME)
		return t->quarantine[0] ? "quarantine" : "pinned";
	return !w->pins && !t->quarantine[0] ? "clean" : w->pins && !strcmp(t->quarantine, "not approved yet") ? "new" : "quarantine";
}

/* ---- check ---- */

struct report {
	struct cs_buf out;
	struct cs_json j;
	bool json;
	size_t findings, tools;
	const struct manifest *m;
	const struct manifest_tool *t;
};

static void tell(const char *check, const char *what, void *arg)
{
	struct report *r = arg;
	char name[160], origin[200];

	r->findings++;
	if (r->json) {
		cs_json_object(&r->j, NULL);
		cs_json_str(&r->j, "check", check);
		cs_json_str(&r->j, "what", what);
		cs_json_end(&r->j, '}');
		return;
	}
	cs_buf_fmt(&r->out, "%s: %s: %s: %s\n", cs_escape_to(origin, sizeof origin, r->m->origin), cs_escape_to(name, sizeof name, r->t->name), check, what);
}

/* The gate refuses a policy whose manifest has one that it cannot read. */
static void check_schema(const struct json *doc, const char *which, struct report *r)
{
	struct schema *s = NULL;
	struct cs_err err = { 0 };
	char what[sizeof err.msg + 64], shown[sizeof err.msg];

	if (doc && schema_compile(doc, NULL, &s, &err) < 0) {
		snprintf(what, sizeof what, "its %s cannot be used: %s", which, cs_escape_to(shown, sizeof shown, err.msg));
		tell("schema", what, r);
	}
	schema_free(s);
}

static void check_tool(struct work *w, struct report *r, const struct manifest *m, const struct manifest_tool *t)
{
	r->m = m;
	r->t = t;
	r->tools++;
	if (r->json) {
		cs_json_object(&r->j, NULL);
		cs_json_str(&r->j, "manifest", m->origin);
		cs_json_str(&r->j, "name", t->name);
		cs_json_str(&r->j, "hash", t->hash);
		cs_json_str(&r->j, "state", state_of(w, t));
		cs_json_array(&r->j, "findings");
	}
	if (t->quarantine[0])
		tell(t->refused ? "refused" : "quarantine", t->quarantine, r);
	check_schema(t->input, "inputSchema", r);
	check_schema(t->output, "outputSchema", r);
	scope_annotations(t, tell, r);
	if (w->policy)
		scope_check(w->policy, t, tell, r);
	if (r->json) {
		cs_json_end(&r->j, ']');
		cs_json_end(&r->j, '}');
	}
}

static void gone(const char *name, void *arg)
{
	char shown[160];

	(void)arg;
	say_note("pinned and no longer there: %s", cs_escape_to(shown, sizeof shown, name));
}

static int do_check(struct work *w, struct cs_err *err)
{
	struct report r = { .out = CS_BUF(OUTPUT_MAX), .json = w->o.json };
	int code;

	if (w->o.profile && gate_policy_load(w->o.profile, &w->policy, err) < 0)
		return -(int)err->code;
	cs_json_begin(&r.j, &r.out, true);
	if (r.json) {
		cs_json_object(&r.j, NULL);
		cs_json_array(&r.j, "tools");
	}
	for (size_t i = 0; i < w->n; i++)
		for (size_t k = 0; k < w->v[i]->n; k++)
			check_tool(w, &r, w->v[i], &w->v[i]->tools[k]);
	if (r.json) {
		cs_json_end(&r.j, ']');
		cs_json_u64(&r.j, "findings", r.findings);
		cs_json_bool(&r.j, "ok", !r.findings);
		cs_json_end(&r.j, '}');
	} else if (!r.findings) {
		cs_buf_fmt(&r.out, "%zu tools, nothing found\n", r.tools);
	}
	if (w->pins && w->n == 1)
		pins_missing(w->pins, w->v[0], gone, NULL);
	code = print(&r.out);
	cs_buf_done(&r.out);
	return code ? code : r.findings ? EXIT_CHECK : 0;
}

/* ---- list ---- */

static void list_json(struct work *w, struct cs_buf *out)
{
	struct cs_json j;

	cs_json_begin(&j, out, true);
	cs_json_array(&j, NULL);
	for (size_t i = 0; i < w->n; i++)
		for (size_t k = 0; k < w->v[i]->n; k++) {
			const struct manifest_tool *t = &w->v[i]->tools[k];

			cs_json_object(&j, NULL);
			cs_json_str(&j, "manifest", w->v[i]->origin);
			cs_json_str(&j, "name", t->name);
			cs_json_str(&j, "hash", t->hash);
			cs_json_str(&j, "state", state_of(w, t));
			cs_json_str(&j, "quarantine", t->quarantine[0] ? t->quarantine : NULL);
			cs_json_end(&j, '}');
		}
	cs_json_end(&j, ']');
}

static int do_list(struct work *w, struct cs_err *err)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);

	(void)err;
	if (w->o.json) {
		list_json(w, &out);
		return print(&out);
	}
	cs_buf_fmt(&out, "%-32s %-12s %-11s %s\n", "TOOL", "HASH", "STATE", "WHY");
	for (size_t i = 0; i < w->n; i++)
		for (size_t k = 0; k < w->v[i]->n; k++) {
			const struct manifest_tool *t = &w->v[i]->tools[k];
			char name[160];

			cs_buf_fmt(&out, "%-32s %.12s %-11s %s\n", cs_escape_to(name, sizeof name, t->name), t->hash, state_of(w, t), t->quarantine);
		}
	return print(&out);
}

/* ---- pin, diff, approve ---- */

static void now_text(char ret[32])
{
	time_t t = time(NULL);
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(ret, 32, "%lld", (long long)t);
}

/* New tools of which nothing is suspected.  What changed, or is suspected, needs `approve`, by name. */
static int do_pin(struct work *w, struct cs_err *err)
{
	size_t n = 0, left = 0;
	char who[160], at[32];
	int r;

	for (size_t i = 0; i < w->v[0]->n; i++)
		if (!strcmp(state_of(w, &w->v[0]->tools[i]), "new"))
			n++;
		else if (w->v[0]->tools[i].quarantine[0])
			left++;
	if (!n) {
		say_note("nothing new to pin%s", left ? "; `caisson tools list` shows what waits for `caisson tools approve`" : "");
		return left ? EXIT_CHECK : 0;
	}
	say_note("%zu new tools of '%s'", n, w->v[0]->origin);
	/* The first time is part of setting up; later a tool that has come is something to be looked at. */
	if (access(w->pins_path, F_OK) < 0 && !w->o.by)
		r = snprintf(who, sizeof who, "uid %u (the first time)", (unsigned)getuid());
	else
		r = person_confirm("pin them as they are?", w->o.yes, w->o.by, who, sizeof who, err);
	if (r < 0)
		return r;
	now_text(at);
	for (size_t i = 0; i < w->v[0]->n; i++)
		if (!strcmp(state_of(w, &w->v[0]->tools[i]), "new"))
			pins_approve(w->pins, &w->v[0]->tools[i], who, at);
	r = pins_save(w->pins, w->pins_path, err);
	if (r < 0)
		return r;
	say_note("pinned in '%s'%s", w->pins_path, left ? "; others wait for `caisson tools approve`" : "");
	return left ? EXIT_CHECK : 0;
}

static void diff_one(struct work *w, const struct manifest_tool *t, struct cs_buf *out)
{
	char name[160];

	cs_buf_fmt(out, "%s: %s\n", cs_escape_to(name, sizeof name, t->name), t->quarantine[0] ? t->quarantine : state_of(w, t));
	pins_diff(w->pins, t, say_colour(STDOUT_FILENO), out);
}

static int do_diff(struct work *w, struct cs_err *err)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);
	size_t n = 0;

	(void)err;
	for (size_t i = 0; i < w->v[0]->n; i++) {
		const struct manifest_tool *t = &w->v[0]->tools[i];

		if ((w->names.n && !cs_strv_has(&w->names, t->name)) || pins_state(w->pins, t) == PIN_SAME)
			continue;
		diff_one(w, t, &out);
		n++;
	}
	pins_missing(w->pins, w->v[0], gone, NULL);
	return print(&out) ? EXIT_REFUSED : n ? EXIT_CHECK : 0;
}

static int approve_one(struct work *w, const char *name, struct cs_err *err)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);
	struct manifest_tool *t = manifest_find(w->v[0], name);
	char shown[160], who[160], at[32];
	int r;

	cs_escape_to(shown, sizeof shown, name);
	if (!t)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "'%s' has no tool '%s'", w->v[0]->origin, shown);
	if (t->refused)
		return cs_fail(err, CS_E_DENIED, 0, "%s cannot be approved: %s", shown, t->quarantine);
	if (pins_state(w->pins, t) == PIN_SAME) {
		say_note("%s is approved as it is", shown);
		return 0;
	}
	diff_one(w, t, &out);
	if (print(&out))
		return cs_fail(err, CS_E_SYSTEM, 0, "what is not shown is not approved");
	r = person_confirm("approve it as it is now?", w->o.yes, w->o.by, who, sizeof who, err);
	if (r < 0)
		return r;
	now_text(at);
	pins_approve(w->pins, t, who, at);
	return pins_save(w->pins, w->pins_path, err);
}

static int do_approve(struct work *w, struct cs_err *err)
{
	int r = 0;

	if (!w->names.n)
		return cs_fail(err, CS_E_INVALID, 0, "name the tools: caisson tools approve MANIFEST TOOL...");
	for (size_t i = 0; r >= 0 && i < w->names.n; i++)
		r = approve_one(w, w->names.v[i], err);
	return r;
}

/* ---- the command ---- */

static const struct verb {
	const char *name;
	int (*run)(struct work *w, struct cs_err *err);
	bool many; /* manifests; else one, and names of tools */
	bool pins; /* needs them; else they count when they are there */
} verbs[] = {
	{ "check", do_check, true, false }, { "list", do_list, true, false }, { "pin", do_pin, false, true },
	{ "diff", do_diff, false, true },   { "approve", do_approve, false, true },
};

static const struct verb *verb_of(const char *word, struct cs_err *err)
{
	const char *names[sizeof verbs / sizeof *verbs], *near;
	char shown[64];

	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		names[i] = verbs[i].name;
		if (!strcmp(word, verbs[i].name))
			return &verbs[i];
	}
	near = cs_nearest(word, names, sizeof names / sizeof *names);
	(void)cs_fail(err, CS_E_INVALID, 0, "tools: '%s' is not one of: check, list, pin, diff, approve%s%s%s", cs_escape_to(shown, sizeof shown, word),
		      near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	return NULL;
}

static int prepare(struct work *w, const struct verb *v, const struct cs_strv *words, struct cs_err *err)
{
	int r = 0;

	for (size_t i = 1; r >= 0 && i < words->n; i++)
		if (v->many || i == 1)
			r = read_manifest(w, words->v[i], err);
		else
			cs_strv_add(&w->names, words->v[i]);
	if (r >= 0 && w->n > 1)
		(void)manifest_screen_across(w->v, w->n);
	if (r >= 0)
		r = read_pins(w, words->v[1], v->pins, err);
	return r;
}

static int run(struct work *w, const struct cs_strv *words, struct cs_err *err)
{
	const struct verb *v = words->n ? verb_of(words->v[0], err) : NULL;
	int r;

	if (words->n && !v)
		return -(int)err->code;
	if (!v || words->n < 2)
		return cs_fail(err, CS_E_INVALID, 0, "caisson tools check|list MANIFEST... | pin MANIFEST | diff|approve MANIFEST [TOOL...]");
	r = prepare(w, v, words, err);
	return r < 0 ? r : v->run(w, err);
}

int cmd_tools(int argc, char **argv)
{
	struct work w = { 0 };
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	int r = cli_parse_words(cli_find("tools"), argc, argv, take, &w.o, &words, &err);

	if (r >= 0)
		r = run(&w, &words, &err);
	if (r < 0)
		r = cli_usage_error(&err);
	work_done(&w);
	cs_strv_done(&words);
	return r;
}
