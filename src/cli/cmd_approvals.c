/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_approvals.c - caisson approvals: what agents have asked for, and the answers. */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/person.h"
#include "gate/approval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_REFUSED = 125, OUTPUT_MAX = 64 << 20 };

struct opts {
	bool json, all, yes;
	const char *by, *store;
};

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct opts *o = arg;

	(void)err;
	if (!strcmp(opt->name, "json"))
		o->json = true;
	else if (!strcmp(opt->name, "all"))
		o->all = true;
	else if (!strcmp(opt->name, "yes"))
		o->yes = true;
	else if (!strcmp(opt->name, "by"))
		o->by = value;
	else if (!strcmp(opt->name, "store"))
		o->store = value;
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int print(const struct cs_buf *out)
{
	if (!out->over && cs_write_all(STDOUT_FILENO, cs_buf_text(out), out->len) >= 0)
		return 0;
	say_error("cannot write to standard output");
	return EXIT_REFUSED;
}

/* ---- looking ---- */

static bool is_open(const struct approval *a)
{
	return a->state == APPROVAL_ASKED || a->state == APPROVAL_ALLOWED;
}

/* "tool command" or "tool {args}", escaped and cut. */
static void summary(const struct approval *a, char *ret, size_t size)
{
	struct cs_arena arena CS_ARENA_AUTO = CS_ARENA(64 << 20);
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 20);
	const struct json *e;

	ret[0] = 0;
	if (json_read(&arena, a->effect, strlen(a->effect), NULL, &e, NULL) < 0)
		return;
	cs_buf_fmt(&text, "%s ", json_str(json_get(e, "tool")) ? json_str(json_get(e, "tool")) : "?");
	if (json_str(json_get(e, "command")))
		cs_buf_str(&text, json_str(json_get(e, "command")));
	else if (json_get(e, "args"))
		json_write_canonical(&text, json_get(e, "args"));
	cs_escape_to(ret, size, cs_buf_text(&text));
}

static void list_text(const struct approval *v, size_t n, bool all, struct cs_buf *out)
{
	uint64_t t = now_ms();

	cs_buf_fmt(out, "%-11s %-8s %-8s %s\n", "ID", "STATE", "LEFT", "WHAT");
	for (size_t i = 0; i < n; i++) {
		char left[32] = "-", what[120];

		if (!all && !is_open(&v[i]))
			continue;
		if (is_open(&v[i]) && v[i].expires_ms > t && !v[i].always)
			cs_format_duration(left, sizeof left, (v[i].expires_ms - t) / 1000 * 1000);
		summary(&v[i], what, sizeof what);
		cs_buf_fmt(out, "%-11s %-8s %-8s %s\n", v[i].id, v[i].always ? "always" : approval_state_name(v[i].state), left, what);
	}
}

static void list_json(const struct approval *v, size_t n, bool all, struct cs_buf *out)
{
	bool more = false;

	cs_buf_char(out, '[');
	for (size_t i = 0; i < n; i++) {
		if (!all && !is_open(&v[i]))
			continue;
		cs_buf_str(out, more ? ",\n " : "\n ");
		approval_write(&v[i], out);
		more = true;
	}
	cs_buf_str(out, "\n]\n");
}

static int do_list(struct approvals *s, const struct opts *o, struct cs_err *err)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);
	struct approval *v;
	size_t n;
	int r = approval_list(s, &v, &n, err);

	if (r < 0)
		return r;
	if (o->json)
		list_json(v, n, o->all, &out);
	else
		list_text(v, n, o->all, &out);
	for (size_t i = 0; i < n; i++)
		approval_done(&v[i]);
	free(v);
	return print(&out);
}

static int show(struct approvals *s, const char *id, bool json, struct cs_err *err)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(OUTPUT_MAX);
	struct approval a = { 0 };
	int r = approval_get(s, id, &a, err);

	if (r < 0)
		return r;
	if (json)
		approval_write(&a, &out);
	else
		approval_show(&a, &out);
	if (json)
		cs_buf_char(&out, '\n');
	approval_done(&a);
	return print(&out);
}

/* ---- answering ---- */

static const struct verb {
	const char *name, *question, *done;
	bool allow, always;
} verbs[] = {
	{ "allow", "allow exactly this, once?", "allowed once", true, false },
	{ "always", "allow exactly this, every time, until it is withdrawn?", "always allowed; `caisson approvals withdraw` takes it back", true, true },
	{ "deny", "deny it?", "denied", false, false },
	{ "withdraw", "withdraw it?", "withdrawn", false, false },
};

/* Who answers sees first what it is, and all of it. */
static int do_answer(struct approvals *s, const struct verb *v, const char *id, const struct opts *o, struct cs_err *err)
{
	char who[160];
	int r = o->by ? 0 : show(s, id, false, err);

	if (r == 0)
		r = person_confirm(v->question, o->yes, o->by, who, sizeof who, err);
	if (r < 0)
		return r;
	r = !strcmp(v->name, "withdraw") ? approval_withdraw(s, id, err) : approval_answer(s, id, v->allow, v->always, who, now_ms(), err);
	if (r >= 0)
		say_note("%s", v->done);
	return r;
}

static int unknown(const char *word, struct cs_err *err)
{
	static const char *const all[] = { "list", "show", "allow", "always", "deny", "withdraw" };
	const char *near = cs_nearest(word, all, sizeof all / sizeof *all);
	char shown[64];

	return cs_fail(err, CS_E_INVALID, 0, "approvals: '%s' is not one of: list, show, allow, always, deny, withdraw%s%s%s",
		       cs_escape_to(shown, sizeof shown, word), near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static const struct verb *verb_of(const char *word)
{
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (!strcmp(word, verbs[i].name))
			return &verbs[i];
	return NULL;
}

static int dispatch(struct approvals *s, const struct cs_strv *words, const struct opts *o, struct cs_err *err)
{
	const char *what = words->n ? words->v[0] : "list";
	bool list = !strcmp(what, "list"), one = !strcmp(what, "show") || verb_of(what);

	if (!list && !one)
		return unknown(what, err);
	if (words->n > (one ? 2u : 1u) || (one && words->n < 2))
		return cs_fail(err, CS_E_INVALID, 0, "caisson approvals list | show ID | allow ID | always ID | deny ID | withdraw ID");
	if (list)
		return do_list(s, o, err);
	if (!verb_of(what))
		return show(s, words->v[1], o->json, err);
	return do_answer(s, verb_of(what), words->v[1], o, err);
}

int cmd_approvals(int argc, char **argv)
{
	struct opts o = { 0 };
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	struct approvals *s = NULL;
	int r = cli_parse_words(cli_find("approvals"), argc, argv, take, &o, &words, &err);

	if (r >= 0)
		r = approvals_open(o.store, &s, &err);
	if (r >= 0)
		r = dispatch(s, &words, &o, &err);
	if (r < 0) {
		say_error("%s", err.msg);
		r = cs_code_exit(err.code);
	}
	approvals_close(s);
	cs_strv_done(&words);
	return r;
}
