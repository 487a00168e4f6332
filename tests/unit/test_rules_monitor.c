/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor by example; test_rules_model.c compares it with the definition. */
#include "harness/t.h"

#include "base/buf.h"
#include "json/json.h"
#include "rules/rules.h"

#include <inttypes.h>

struct run {
	struct rules *r;
	struct rules_monitor *m;
	struct cs_arena a;
	uint64_t t;
	struct rules_hit hit;
	struct rules_world world;
};

static const char tools[] = "tool get(id: string) -> {user: string, total: number, big?: string} reads;\n"
			    "tool find() -> string reads;\n"
			    "tool refund(order: string, amount: number, to?: string) writes;\n"
			    "tool pair(a: string, b: string);\n"
			    "tool bash(command: string) runs;\n"
			    "tool put(path: string) writes;\n"
			    "tool many(ids: any) reads;\n";

static void begin_with(struct run *c, const char *rules, const struct rules_limits *l)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 20);
	struct cs_err err = { 0 };

	*c = (struct run){ .a = CS_ARENA((size_t)256 << 20), .t = 1000 };
	cs_buf_str(&b, tools);
	cs_buf_str(&b, rules);
	if (rules_load("t.rules", cs_buf_text(&b), b.len, NULL, 0, &c->r, &err) < 0)
		T_FAIL("%s", err.msg);
	c->m = rules_monitor_new(c->r, l);
	T_TRUE(c->m != NULL);
}

static void begin(struct run *c, const char *rules)
{
	begin_with(c, rules, NULL);
}

static void end(struct run *c)
{
	rules_monitor_free(c->m);
	rules_free(c->r);
	cs_arena_done(&c->a);
}

static const struct json *json(struct run *c, const char *text)
{
	const struct json *v = NULL;
	struct cs_err err = { 0 };

	if (text && json_read(&c->a, text, strlen(text), NULL, &v, &err) < 0)
		T_FAIL("%s: %s", text, err.msg);
	return v;
}

static struct rules_event event(struct run *c, int kind, const char *tool, const char *args, const char *result)
{
	struct rules_event e = { .kind = (unsigned)kind, .tool = tool ? rules_tool_index(c->r, tool) : -1, .t_ms = c->t };

	if (tool)
		T_TRUE(e.tool >= 0);
	e.args = json(c, args);
	e.result = json(c, result);
	return e;
}

static enum rules_verdict asked(struct run *c, const char *tool, const char *args)
{
	struct rules_event e = event(c, tool ? RULES_EV_CALL : RULES_EV_END, tool, args, NULL);

	rules_monitor_check(c->m, &e, &c->world, &c->hit);
	return c->hit.verdict;
}

static void note(struct run *c, int kind, const char *tool, const char *args, const char *result)
{
	struct rules_event e = event(c, kind, tool, args, result);

	rules_monitor_note(c->m, &e, &c->world);
}

static void called(struct run *c, const char *tool, const char *args, const char *result)
{
	note(c, RULES_EV_CALL, tool, args, NULL);
	note(c, result ? RULES_EV_OK : RULES_EV_FAIL, tool, args, result);
}

static bool may(struct run *c, const char *tool)
{
	bool all[16];

	T_TRUE(rules_tool_count(c->r) <= 16);
	rules_monitor_next(c->m, &c->world, all);
	return all[rules_tool_index(c->r, tool)];
}

#define ORDER "{\"order\": \"1\", \"amount\": 5}"

TEST(a_desk)
{
	struct run c;

	begin(&c, "rule auth: forbid * unless tool == \"find\" or once ok(find) because \"who\" fix \"ask\";\n"
		  "rule read: forall o. forbid refund(order=o) unless once ok(get(id=o));\n"
		  "rule mine: forall o. forbid refund(order=o) unless last(get(id=o)).user == last(find);\n"
		  "rule most: forall o. forbid refund(order=o) unless amount <= last(get(id=o)).total;\n"
		  "rule yes: forbid refund unless not call(refund) since confirm;\n"
		  "rule twice: forall o. forbid refund(order=o) unless count(call(refund(order=o))) < 1;\n");
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_STR(c.hit.rule, "auth");
	T_STR(c.hit.because, "who");
	T_STR(c.hit.fix, "ask");
	T_TRUE(!c.hit.unknown);
	called(&c, "find", "{}", "\"u1\"");
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_STR(c.hit.rule, "read");
	called(&c, "get", "{\"id\": \"1\"}", "{\"user\": \"u1\", \"total\": 5.5}");
	called(&c, "get", "{\"id\": \"2\"}", "{\"user\": \"u2\", \"total\": 5.5}");
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_STR(c.hit.rule, "yes");
	note(&c, RULES_EV_CONFIRM, NULL, NULL, NULL);
	T_INT(asked(&c, "refund", "{\"order\": \"2\", \"amount\": 5}"), RULES_DENY);
	T_STR(c.hit.rule, "mine");
	T_INT(asked(&c, "refund", "{\"order\": \"1\", \"amount\": 5.51}"), RULES_DENY);
	T_STR(c.hit.rule, "most");
	T_INT(asked(&c, "refund", ORDER), RULES_ALLOW);
	T_TRUE(!c.hit.rule);
	called(&c, "refund", ORDER, NULL);
	note(&c, RULES_EV_CONFIRM, NULL, NULL, NULL);
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_STR(c.hit.rule, "twice");
	end(&c);
}

TEST(an_absent_argument_satisfies_no_guard)
{
	struct run c;

	begin(&c, "rule a: forall t. forbid refund(to=t) unless once ok(get(id=t));\n"
		  "rule b: forbid refund where to != \"me\";\n"
		  "rule c: forbid refund unless not once call(refund where to == \"you\");\n");
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_STR(c.hit.rule, "a");
	T_TRUE(c.hit.unknown);
	end(&c);
	begin(&c, "rule c: forbid find unless not once call(refund where to == \"you\");\n"
		  "rule d: forall o. forbid get(id=o) unless not once call(refund(to=o));\n");
	T_INT(asked(&c, "find", "{}"), RULES_ALLOW);
	called(&c, "refund", ORDER, "1");
	T_INT(asked(&c, "find", "{}"), RULES_DENY);
	T_TRUE(c.hit.unknown);
	T_INT(asked(&c, "get", "{\"id\": \"x\"}"), RULES_DENY);
	T_TRUE(c.hit.unknown);
	end(&c);
	/* An allow needs to be sure of what it allows. */
	begin(&c, "default deny; rule a: allow refund(to=\"me\");\nrule b: forall t. allow refund(to=t) where present(to);\n");
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_TRUE(!c.hit.allowed);
	T_INT(asked(&c, "refund", "{\"order\": \"1\", \"amount\": 5, \"to\": \"me\"}"), RULES_ALLOW);
	T_TRUE(c.hit.allowed);
	end(&c);
}

TEST(the_strictest_wins_and_the_first_of_equals)
{
	struct run c;

	begin(&c, "rule a: allow find;\nrule b: sandbox find;\nrule c: ask find;\nrule d: forbid find;\nrule e: forbid find;\n");
	T_INT(asked(&c, "find", "{}"), RULES_DENY);
	T_STR(c.hit.rule, "d");
	T_TRUE(c.hit.allowed);
	end(&c);
}

TEST(a_window_of_time)
{
	struct run c;

	begin(&c, "rule n: forbid find unless count(call(find)) within 10s < 2;\n"
		  "rule s: forall o. ask refund(order=o) where sum(call(refund(order=o)), amount) within 1m + amount > 0.3;\n");
	called(&c, "find", "{}", "1");
	c.t += 4000;
	called(&c, "find", "{}", "1");
	c.t += 5999;
	T_INT(asked(&c, "find", "{}"), RULES_DENY);
	c.t += 1;
	T_INT(asked(&c, "find", "{}"), RULES_ALLOW);
	/* Time does not run backwards. */
	note(&c, RULES_EV_USER, NULL, NULL, NULL);
	c.t = 0;
	T_INT(asked(&c, "find", "{}"), RULES_ALLOW);
	/* 0.1 + 0.2 is 0.3. */
	c.t = 20000;
	called(&c, "refund", "{\"order\": \"1\", \"amount\": 0.1}", "1");
	T_INT(asked(&c, "refund", "{\"order\": \"1\", \"amount\": 0.2}"), RULES_ALLOW);
	T_INT(asked(&c, "refund", "{\"order\": \"1\", \"amount\": 0.20000000000000000001}"), RULES_ASK);
	T_INT(asked(&c, "refund", "{\"order\": \"2\", \"amount\": 0.3}"), RULES_ALLOW);
	end(&c);
}

/* What is more than a window holds is unknown where the number matters, and enough where only a constant does. */
TEST(a_full_window)
{
	struct run c;

	begin(&c, "rule a: forbid find unless count(call(find)) within 1h < 3;\nrule b: ask many where count(call(find)) within 1h > len(ids);\n");
	for (int i = 0; i < 5000; i++)
		called(&c, "find", "{}", "1");
	T_INT(asked(&c, "find", "{}"), RULES_DENY);
	T_INT(asked(&c, "many", "{\"ids\": [1]}"), RULES_ASK);
	T_TRUE(c.hit.unknown && c.hit.over);
	T_TRUE(rules_monitor_bytes(c.m) < 200000);
	c.t += 3600 * 1000;
	T_INT(asked(&c, "find", "{}"), RULES_ALLOW);
	T_INT(asked(&c, "many", "{\"ids\": [1]}"), RULES_ALLOW);
	end(&c);
}

TEST(a_later_failure_keeps_the_last_result)
{
	struct run c;

	begin(&c, "rule a: forbid refund unless last(get(id=\"1\")).user == \"u\";\n");
	called(&c, "get", "{\"id\": \"1\"}", "{\"user\": \"u\"}");
	called(&c, "get", "{\"id\": \"1\"}", NULL);
	called(&c, "get", "{\"id\": \"2\"}", "{\"user\": \"v\"}");
	T_INT(asked(&c, "refund", ORDER), RULES_ALLOW);
	called(&c, "get", "{\"id\": \"1\"}", "{\"user\": \"v\"}");
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_TRUE(!c.hit.unknown);
	called(&c, "get", "{\"id\": \"1\"}", "{}");
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_TRUE(c.hit.unknown);
	end(&c);
}

TEST(a_result_over_the_limit_is_unknown)
{
	struct rules_limits l = { .value_bytes = 200 };
	char big[600] = "{\"user\": \"u\", \"total\": 1, \"big\": \"";
	struct run c;

	memset(big + strlen(big), 'x', 400);
	strcpy(big + 440, "\"}");
	for (char *p = big; p < big + 440; p++)
		if (!*p)
			*p = 'x';
	begin_with(&c, "rule a: forbid refund unless last(get(id=\"1\")).big != \"\";\nrule b: ask refund unless last(get(id=\"1\")).user == \"u\";\n", &l);
	called(&c, "get", "{\"id\": \"1\"}", big);
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_STR(c.hit.rule, "a");
	T_TRUE(c.hit.unknown);
	called(&c, "get", "{\"id\": \"1\"}", "{\"user\": \"u\", \"total\": 1, \"big\": \"y\"}");
	T_INT(asked(&c, "refund", ORDER), RULES_ALLOW);
	end(&c);
}

TEST(too_many_tuples_fail_closed)
{
	struct rules_limits l = { .tuples = 10 };
	struct run c;
	char args[64];

	begin_with(&c, "rule a: forall o. forbid get(id=o) unless not once call(refund(order=o));\n", &l);
	for (int i = 0; i < 20; i++) {
		snprintf(args, sizeof args, "{\"order\": \"%d\", \"amount\": 1}", i);
		called(&c, "refund", args, "1");
	}
	T_INT(asked(&c, "get", "{\"id\": \"3\"}"), RULES_DENY);
	T_TRUE(!c.hit.over && !c.hit.unknown);
	T_INT(asked(&c, "get", "{\"id\": \"15\"}"), RULES_DENY);
	T_TRUE(c.hit.over && c.hit.unknown);
	/* Nor is anything known of one that never was. */
	T_INT(asked(&c, "get", "{\"id\": \"99\"}"), RULES_DENY);
	T_TRUE(c.hit.over);
	end(&c);
}

TEST(bytes_have_a_limit)
{
	struct rules_limits l = { .bytes = 40000 };
	struct run c;
	char args[80];

	begin_with(&c, "rule a: forall o. forbid get(id=o) unless not once call(refund(order=o));\n", &l);
	for (int i = 0; i < 5000; i++) {
		snprintf(args, sizeof args, "{\"order\": \"order-number-%d\", \"amount\": 1}", i);
		note(&c, RULES_EV_CALL, "refund", args, NULL);
		T_TRUE(rules_monitor_bytes(c.m) <= l.bytes);
		cs_arena_reset(&c.a);
	}
	T_INT(asked(&c, "get", "{\"id\": \"order-number-1\"}"), RULES_DENY);
	T_TRUE(!c.hit.over);
	T_INT(asked(&c, "get", "{\"id\": \"order-number-4999\"}"), RULES_DENY);
	T_TRUE(c.hit.over);
	end(&c);
}

/* Tuples that are as if they had never been are forgotten. */
/* Wherever the memory ends, nothing is freed twice or counted wrongly: the end of the monitor would tell. */
TEST(bytes_may_end_anywhere)
{
	struct rules_limits l = { 0 };
	uint64_t enough;
	struct run c;

	begin(&c, "rule a: forall o. forbid get(id=o) unless count(previously once call(refund(order=o))) == 3;\n");
	enough = rules_monitor_bytes(c.m) + 2000;
	for (l.bytes = 1; l.bytes < enough; l.bytes++) {
		rules_monitor_free(c.m);
		c.m = rules_monitor_new(c.r, &l);
		if (!c.m)
			continue;
		note(&c, RULES_EV_CALL, "refund", "{\"order\": \"1\", \"amount\": 1}", NULL);
		note(&c, RULES_EV_CALL, "refund", "{\"order\": \"2\", \"amount\": 1}", NULL);
		T_INT(asked(&c, "get", "{\"id\": \"1\"}"), RULES_DENY);
		cs_arena_reset(&c.a);
	}
	T_TRUE(c.m != NULL);
	end(&c);
}

TEST(state_does_not_grow_with_the_trace)
{
	struct run c;
	uint64_t bytes;
	char args[80];

	begin(&c, "rule a: forall o. forbid get(id=o) unless not call(refund(order=o)) since confirm;\n"
		  "rule b: forall o. forbid get(id=o) where previously previously call(refund(order=o));\n");
	note(&c, RULES_EV_CONFIRM, NULL, NULL, NULL);
	for (int i = 0, round = 0; round < 20; round++) {
		for (int k = 0; k < 500; k++, i++) {
			snprintf(args, sizeof args, "{\"order\": \"%d\", \"amount\": 1}", i);
			note(&c, RULES_EV_CALL, "refund", args, NULL);
		}
		note(&c, RULES_EV_CONFIRM, NULL, NULL, NULL);
		T_INT(asked(&c, "get", "{\"id\": \"1\"}"), RULES_ALLOW);
		if (!round)
			bytes = rules_monitor_bytes(c.m);
		T_TRUE(rules_monitor_bytes(c.m) <= bytes + 64); /* the values themselves get longer */
		cs_arena_reset(&c.a);
	}
	end(&c);
}

/* Classes with different counts become one: each tuple keeps its own count. */
TEST(counts_of_merged_tuples)
{
	struct run c;

	begin(&c, "rule a: forall o. forbid get(id=o) unless count(previously once call(refund(order=o))) == 3;\n");
	for (int i = 0; i < 4; i++) {
		char args[64];

		snprintf(args, sizeof args, "{\"order\": \"%d\", \"amount\": 1}", i);
		note(&c, RULES_EV_CALL, "refund", args, NULL);
	}
	note(&c, RULES_EV_USER, NULL, NULL, NULL);
	T_INT(asked(&c, "get", "{\"id\": \"0\"}"), RULES_DENY);
	T_INT(asked(&c, "get", "{\"id\": \"1\"}"), RULES_ALLOW);
	T_INT(asked(&c, "get", "{\"id\": \"2\"}"), RULES_DENY);
	for (int i = 0; i < 1; i++)
		note(&c, RULES_EV_USER, NULL, NULL, NULL);
	T_INT(asked(&c, "get", "{\"id\": \"2\"}"), RULES_ALLOW);
	T_INT(asked(&c, "get", "{\"id\": \"1\"}"), RULES_DENY);
	note(&c, RULES_EV_USER, NULL, NULL, NULL);
	T_INT(asked(&c, "get", "{\"id\": \"3\"}"), RULES_ALLOW);
	end(&c);
}

TEST(what_may_come_next)
{
	struct run c;

	begin(&c, "rule a: forbid refund unless once ok(find);\nrule b: forall o. forbid get(id=o) unless once ok(many(ids=o));\n"
		  "rule c: forbid put(path=\"/etc\");\nrule d: forbid bash unless last(get).user == \"u\";\n"
		  "rule e: forbid many unless count(call(find)) within 10s < 1;\n");
	T_TRUE(!may(&c, "refund") && !may(&c, "get") && !may(&c, "bash"));
	T_TRUE(may(&c, "put") && may(&c, "find") && may(&c, "many"));
	called(&c, "find", "{}", "1");
	T_TRUE(may(&c, "refund"));
	/* In ten seconds it may be. */
	T_TRUE(may(&c, "many"));
	called(&c, "many", "{\"ids\": \"1\"}", "1");
	T_TRUE(may(&c, "get"));
	called(&c, "get", "{\"id\": \"1\"}", "{\"user\": \"v\"}");
	T_TRUE(!may(&c, "bash"));
	called(&c, "get", "{\"id\": \"1\"}", "{\"user\": \"u\"}");
	T_TRUE(may(&c, "bash"));
	end(&c);
}

TEST(obligations)
{
	struct run c;

	begin(&c, "rule a: forall o. require ok(get(id=o)) after call(refund(order=o)) because \"look\";\n");
	T_INT(asked(&c, NULL, NULL), RULES_ALLOW);
	called(&c, "refund", ORDER, "1");
	called(&c, "refund", "{\"order\": \"2\", \"amount\": 5}", "1");
	T_INT(asked(&c, NULL, NULL), RULES_DENY);
	T_STR(c.hit.rule, "a");
	T_INT(c.hit.n_values, 1);
	T_STR(json_str(&c.hit.values[0]), "1");
	called(&c, "get", "{\"id\": \"1\"}", "{}");
	T_INT(asked(&c, NULL, NULL), RULES_DENY);
	T_STR(json_str(&c.hit.values[0]), "2");
	called(&c, "get", "{\"id\": \"2\"}", NULL);
	T_INT(asked(&c, NULL, NULL), RULES_DENY);
	called(&c, "get", "{\"id\": \"2\"}", "{}");
	T_INT(asked(&c, NULL, NULL), RULES_ALLOW);
	end(&c);
}

TEST(paths)
{
	static const struct { const char *path; enum rules_verdict unless_under, where_under; } rows[] = {
		{ "/w", RULES_ALLOW, RULES_DENY }, { "/w/a/../b", RULES_ALLOW, RULES_DENY }, { "//w/./x", RULES_ALLOW, RULES_DENY },
		{ "/w/../etc", RULES_DENY, RULES_ALLOW }, { "/wx", RULES_DENY, RULES_ALLOW }, { "/../w/x", RULES_ALLOW, RULES_DENY },
		{ "/", RULES_DENY, RULES_ALLOW },
		/* Where a relative path is, its text does not say. */
		{ "w/x", RULES_DENY, RULES_DENY }, { "../w", RULES_DENY, RULES_DENY }, { "~/w", RULES_DENY, RULES_DENY }, { "", RULES_DENY, RULES_DENY },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char args[64];
		struct run c;

		snprintf(args, sizeof args, "{\"path\": \"%s\"}", rows[i].path);
		begin(&c, "rule a: forbid put unless path under \"/w\";\n");
		if (asked(&c, "put", args) != rows[i].unless_under)
			T_FAIL("%s unless under /w: %s", rows[i].path, rules_verdict_name(c.hit.verdict));
		end(&c);
		begin(&c, "rule a: forbid put where path under \"/w\";\n");
		if (asked(&c, "put", args) != rows[i].where_under)
			T_FAIL("%s where under /w: %s", rows[i].path, rules_verdict_name(c.hit.verdict));
		end(&c);
	}
}

static const struct json *shell(void *ctx, struct cs_arena *a, const struct json *command)
{
	(void)ctx;
	return json_new_str(a, json_str(command) && strstr(json_str(command), "rm") ? "unsafe" : "safe", json_str(command) && strstr(json_str(command), "rm") ? 6 : 4);
}

TEST(the_host_is_asked)
{
	struct run c;

	begin(&c, "rule a: forbid bash unless shell(command) == \"safe\";\nrule b: ask find where once call(bash where shell(command) == \"unsafe\");\n");
	T_INT(asked(&c, "bash", "{\"command\": \"ls\"}"), RULES_DENY); /* nobody there to ask */
	T_TRUE(c.hit.unknown);
	c.world.shell = shell;
	T_INT(asked(&c, "bash", "{\"command\": \"ls\"}"), RULES_ALLOW);
	T_INT(asked(&c, "bash", "{\"command\": \"rm x\"}"), RULES_DENY);
	called(&c, "bash", "{\"command\": \"ls\"}", "1");
	T_INT(asked(&c, "find", "{}"), RULES_ALLOW);
	called(&c, "bash", "{\"command\": \"rm x\"}", "1");
	T_INT(asked(&c, "find", "{}"), RULES_ASK);
	end(&c);
}

TEST(a_fork_goes_its_own_way)
{
	struct rules_monitor *first;
	struct run c;

	begin(&c, "rule a: forall o. forbid refund(order=o) unless once ok(get(id=o));\nrule b: forall o. forbid refund(order=o) unless amount < last(get(id=o)).total;\n"
		  "rule c: forall o. forbid refund(order=o) unless count(call(refund(order=o))) within 1h < 2;\n");
	called(&c, "get", "{\"id\": \"1\"}", "{\"total\": 9}");
	called(&c, "refund", ORDER, "1");
	first = c.m;
	c.m = rules_monitor_fork(first);
	T_INT(asked(&c, "refund", ORDER), RULES_ALLOW);
	called(&c, "get", "{\"id\": \"2\"}", "{\"total\": 9}");
	called(&c, "refund", ORDER, "1");
	T_INT(asked(&c, "refund", ORDER), RULES_DENY);
	T_STR(c.hit.rule, "c");
	T_INT(asked(&c, "refund", "{\"order\": \"2\", \"amount\": 5}"), RULES_ALLOW);
	rules_monitor_free(c.m);
	c.m = first;
	T_INT(asked(&c, "refund", ORDER), RULES_ALLOW);
	T_INT(asked(&c, "refund", "{\"order\": \"2\", \"amount\": 5}"), RULES_DENY);
	end(&c);
}

/* 1 and 1.0 are one value, "1" is another; objects have no order. */
TEST(values_are_values)
{
	struct run c;

	begin(&c, "rule a: forall o. forbid many(ids=o) unless once call(many(ids=o)) or once user;\n");
	T_INT(asked(&c, "many", "{\"ids\": 1}"), RULES_DENY);
	note(&c, RULES_EV_CALL, "many", "{\"ids\": 1}", NULL);
	note(&c, RULES_EV_CALL, "many", "{\"ids\": {\"a\": [1], \"b\": null}}", NULL);
	T_INT(asked(&c, "many", "{\"ids\": 1.0}"), RULES_ALLOW);
	T_INT(asked(&c, "many", "{\"ids\": \"1\"}"), RULES_DENY);
	T_INT(asked(&c, "many", "{\"ids\": {\"b\": null, \"a\": [1e0]}}"), RULES_ALLOW);
	T_INT(asked(&c, "many", "{\"ids\": {\"b\": null}}"), RULES_DENY);
	end(&c);
}

/* Two rules bind one formula's variables in different order. */
TEST(a_shared_formula)
{
	struct run c;

	begin(&c, "rule a: forall o, q. forbid pair(a=o, b=q) unless once call(refund(order=o, to=q));\n"
		  "rule b: forall q, o. ask refund(order=o, to=q) unless once call(refund(order=o, to=q));\n");
	note(&c, RULES_EV_CALL, "refund", "{\"order\": \"1\", \"amount\": 5, \"to\": \"2\"}", NULL);
	T_INT(asked(&c, "pair", "{\"a\": \"1\", \"b\": \"2\"}"), RULES_ALLOW);
	T_INT(asked(&c, "pair", "{\"a\": \"2\", \"b\": \"1\"}"), RULES_DENY);
	T_INT(asked(&c, "refund", "{\"order\": \"1\", \"amount\": 5, \"to\": \"2\"}"), RULES_ALLOW);
	T_INT(asked(&c, "refund", "{\"order\": \"2\", \"amount\": 5, \"to\": \"1\"}"), RULES_ASK);
	end(&c);
}
