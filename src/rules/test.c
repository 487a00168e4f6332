/* SPDX-License-Identifier: Apache-2.0 */
/* test.c - the inline tests of a file, each on a monitor of its own.
 *
 * Every step but the last must be let through (allow or sandbox); the last must
 * get the verdict that the test names, by the rule that it names.  What only a
 * host knows (session, provenance, classes of commands) is unknown here.
 */
#include "rules/internal.h"

#include "base/text.h"

#include <string.h>

struct run {
	const struct rules *r;
	const struct rl_test *t;
	struct rules_monitor *m;
	struct rules_world world;
	uint64_t now_ms;
	struct cs_buf *out;
};

static const char *step_name(const struct run *x, uint32_t at)
{
	const struct rl_test_event *e = &x->t->events[at];

	return e->kind == RL_TEST_END ? "end" : x->r->tools[e->tool].name;
}

static void say_verdict(struct cs_buf *b, enum rules_verdict v, const char *rule)
{
	cs_buf_str(b, rules_verdict_name(v));
	if (rule) {
		cs_buf_str(b, " by ");
		cs_escape(b, rule);
	}
}

static void say_place(const struct rules *r, const struct rl_test *t, struct cs_buf *out)
{
	uint32_t line;

	cs_escape(out, rules_place(r, t->pos.line, &line));
	cs_buf_fmt(out, ":%u:%u: ", line, t->pos.column);
}

static void say_failure(struct run *x, uint32_t at, enum rules_verdict got, const char *by)
{
	bool last = at + 1 == x->t->n;

	say_place(x->r, x->t, x->out);
	cs_buf_str(x->out, "expected ");
	say_verdict(x->out, last ? x->t->expect : RULES_ALLOW, last ? x->t->by : NULL);
	cs_buf_str(x->out, ", got ");
	say_verdict(x->out, got, by);
	cs_buf_fmt(x->out, " at step %u (", at + 1);
	cs_escape(x->out, step_name(x, at));
	cs_buf_str(x->out, last ? ")\n" : "), before the last\n");
}

/* Where no rule speaks the file's default does. */
static enum rules_verdict ask(struct run *x, const struct rules_event *e, const char **ret_by)
{
	struct rules_hit hit = { 0 };

	rules_monitor_check(x->m, e, &x->world, &hit);
	*ret_by = hit.rule;
	return hit.rule ? hit.verdict : rules_fallback(x->r, RULES_ALLOW);
}

static bool as_expected(const struct run *x, enum rules_verdict got, const char *by)
{
	return got == x->t->expect && (!x->t->by || (by && !strcmp(by, x->t->by)));
}

static void happened(struct run *x, const struct rl_test_event *s, struct rules_event *e)
{
	rules_monitor_note(x->m, e, &x->world);
	e->kind = s->fail ? RULES_EV_FAIL : RULES_EV_OK;
	e->result = s->result;
	rules_monitor_note(x->m, e, &x->world);
}

/* A call or the end; false where the test has failed. */
static bool judge(struct run *x, uint32_t at)
{
	const struct rl_test_event *s = &x->t->events[at];
	struct rules_event e = { .kind = s->kind == RL_TEST_END ? RULES_EV_END : RULES_EV_CALL, .tool = (int)s->tool, .args = s->args, .t_ms = x->now_ms };
	const char *by;
	enum rules_verdict got = ask(x, &e, &by);

	if (at + 1 == x->t->n ? !as_expected(x, got, by) : got > RULES_SANDBOX) {
		say_failure(x, at, got, by);
		return false;
	}
	if (at + 1 < x->t->n)
		happened(x, s, &e);
	return true;
}

static bool take_step(struct run *x, uint32_t at)
{
	const struct rl_test_event *s = &x->t->events[at];
	struct rules_event e = { .kind = s->kind == RL_TEST_USER ? RULES_EV_USER : RULES_EV_CONFIRM, .tool = -1, .t_ms = x->now_ms };

	switch (s->kind) {
	case RL_TEST_WAIT: x->now_ms += s->wait_ms; return true;
	case RL_TEST_USER: case RL_TEST_CONFIRM: rules_monitor_note(x->m, &e, &x->world); return true;
	case RL_TEST_CALL: case RL_TEST_END: return judge(x, at);
	}
	return false;
}

static bool run_test(const struct rules *r, const struct rl_test *t, struct cs_buf *out)
{
	struct run x = { .r = r, .t = t, .out = out, .m = rules_monitor_new(r, NULL) };
	bool good = x.m != NULL;

	if (!good) {
		say_place(r, t, out);
		cs_buf_str(out, "no memory for a monitor\n");
	}
	for (uint32_t i = 0; i < t->n && good; i++)
		good = take_step(&x, i);
	rules_monitor_free(x.m);
	return good;
}

size_t rules_test(const struct rules *r, size_t *ret_run, struct cs_buf *out)
{
	size_t failed = 0;

	for (uint32_t i = 0; i < r->n_tests; i++)
		failed += !run_test(r, &r->tests[i], out);
	if (ret_run)
		*ret_run = r->n_tests;
	return failed;
}
