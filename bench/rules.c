/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - what the monitor of rules costs, as Markdown on standard output.
 *
 * 1,000 rules over ten tools, so that 100 speak of the tool that is called.  An order that was looked at is a live tuple in
 * 30 to 40 tables: 300 orders are 10,000 tuples, 10,000 orders 300,000, which no cache holds.  Every guard of the call that
 * is measured holds, so that no rule is spared.  Orders are drawn at random.  Processor time of the thread: on a busy machine
 * the other figure is about the other programs. */
#include "base/buf.h"
#include "json/json.h"
#include "rules/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TOOLS = 10, PER_TOOL = 100, ORDERS = 10000, SAMPLES = 20000 };

static int n_orders;

static struct rules *rules;
static struct rules_monitor *m;
static uint64_t now_ms = 1000000;
static struct cs_arena arena = CS_ARENA((size_t)1 << 30), call_arena = CS_ARENA((size_t)1 << 20);
static const struct json *orders[ORDERS], *gets[ORDERS], *result;
static int tool_t0, tool_get[10];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "rules: %s\n", what);
	exit(2);
}

static const struct json *json(struct cs_arena *a, const char *text)
{
	struct cs_err err = { 0 };
	const struct json *v;

	if (json_read(a, text, strlen(text), NULL, &v, &err) < 0)
		die(err.msg);
	return v;
}

/* ---- the rules ---- */

static void add_rule(struct cs_buf *b, int tool, int i)
{
	int g = i / 10;

	cs_buf_fmt(b, "rule t%d_%d: ", tool, i);
	switch (i % 10) {
	case 0: case 1: case 2: case 3:
		cs_buf_fmt(b, "forall o. forbid t%d(order=o) unless once ok(g%d(id=o));\n", tool, g);
		break;
	case 4:
		cs_buf_fmt(b, "forbid t%d unless not call(t%d) since confirm;\n", tool, tool);
		break;
	case 5:
		cs_buf_fmt(b, "forall o. forbid t%d(order=o) unless amount <= last(g%d(id=o)).total;\n", tool, g);
		break;
	case 6:
		cs_buf_fmt(b, "forall o. forbid t%d(order=o) unless count(ok(g%d(id=o))) < 1000000000;\n", tool, g);
		break;
	case 7:
		cs_buf_fmt(b, "forall o. ask t%d(order=o) where count(call(t%d(order=o))) within %dm > 1000;\n", tool, tool, g + 1);
		break;
	case 8:
		cs_buf_fmt(b, "forall o. forbid t%d(order=o) where not ok(g%d(id=o)) since fail(g%d(id=o));\n", tool, g, g);
		break;
	default:
		cs_buf_fmt(b, "forbid t%d where amount > 1000%d or to ~ \"evil%d.*\";\n", tool, i, i);
	}
}

static void load(void)
{
	struct cs_buf b = CS_BUF((size_t)16 << 20);
	struct cs_err err = { 0 };
	char name[16];

	for (int i = 0; i < TOOLS; i++)
		cs_buf_fmt(&b, "tool t%d(order: string, amount: number, to: string) writes;\n", i);
	for (int i = 0; i < 10; i++)
		cs_buf_fmt(&b, "tool g%d(id: string) -> {total: number, user: string} reads;\n", i);
	for (int i = 0; i < TOOLS * PER_TOOL; i++)
		add_rule(&b, i / PER_TOOL, i % PER_TOOL);
	if (b.over || rules_load("bench.rules", b.data, b.len, NULL, 0, &rules, &err) < 0)
		die(err.msg);
	cs_buf_done(&b);
	tool_t0 = rules_tool_index(rules, "t0");
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof name, "g%d", i);
		tool_get[i] = rules_tool_index(rules, name);
	}
}

/* ---- the trace ---- */

static void note(int kind, int tool, const struct json *args, const struct json *res)
{
	struct rules_event e = { .kind = (unsigned)kind, .tool = tool, .args = args, .result = res, .t_ms = now_ms };

	rules_monitor_note(m, &e, NULL);
}

static void look_at(int order)
{
	for (int g = 0; g < 10; g++)
		note(RULES_EV_OK, tool_get[g], gets[order], result);
}

static void make_orders(void)
{
	char text[160];

	result = json(&arena, "{\"total\": 99.5, \"user\": \"u1\", \"items\": [1, 2, 3]}");
	for (int i = 0; i < ORDERS; i++) {
		snprintf(text, sizeof text, "{\"order\": \"order-%06d\", \"amount\": 12.5, \"to\": \"shop@example.com\"}", i);
		orders[i] = json(&arena, text);
		snprintf(text, sizeof text, "{\"id\": \"order-%06d\"}", i);
		gets[i] = json(&arena, text);
	}
}

/* ---- measuring ---- */

static uint64_t rnd_state = 88172645463325252u;

static uint32_t rnd(uint32_t n)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return (uint32_t)(rnd_state >> 33) % n;
}

static uint64_t ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t times[SAMPLES];

static void row(const char *what)
{
	qsort(times, SAMPLES, sizeof *times, by_value);
	printf("| %s | %.1f µs | %.1f µs | %.1f µs |\n", what, (double)times[SAMPLES / 2] / 1e3, (double)times[SAMPLES / 100 * 99] / 1e3,
	       (double)times[SAMPLES - 1] / 1e3);
}

static void must_allow(const struct rules_hit *h)
{
	if (h->rule) {
		fprintf(stderr, "rules: %s fired\n", h->rule);
		exit(2);
	}
}

static void ask(const struct json *args)
{
	struct rules_event e = { .kind = RULES_EV_CALL, .tool = tool_t0, .args = args, .t_ms = now_ms };
	struct rules_hit h;

	rules_monitor_check(m, &e, NULL, &h);
	must_allow(&h);
}

static void measure_check(const char *what)
{
	note(RULES_EV_CONFIRM, -1, NULL, NULL);
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t from;
		int order = (int)rnd((uint32_t)n_orders);

		from = ns();
		ask(orders[order]);
		times[i] = ns() - from;
	}
	row(what);
}

static void measure_parsed(void)
{
	char text[200];

	for (int i = 0; i < SAMPLES; i++) {
		uint64_t from;

		snprintf(text, sizeof text, "{\"order\": \"order-%06d\", \"amount\": 12.5, \"to\": \"shop@example.com\"}", (int)rnd((uint32_t)n_orders));
		from = ns();
		cs_arena_reset(&call_arena);
		ask(json(&call_arena, text));
		times[i] = ns() - from;
	}
	row("ask about a call, its JSON text being read first");
}

static void measure_cycle(void)
{
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t from;
		int order = (int)rnd((uint32_t)n_orders);

		now_ms += 10;
		note(RULES_EV_CONFIRM, -1, NULL, NULL);
		from = ns();
		ask(orders[order]);
		note(RULES_EV_CALL, tool_t0, orders[order], NULL);
		note(RULES_EV_OK, tool_t0, orders[order], result);
		times[i] = ns() - from;
	}
	row("ask, note the call, note its result");
}

static void measure_get(void)
{
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t from;
		int order = (int)rnd((uint32_t)n_orders), g = (int)rnd(10);

		from = ns();
		note(RULES_EV_OK, tool_get[g], gets[order], result);
		times[i] = ns() - from;
	}
	row("note a result that the rules of all ten tools remember");
}

static void measure_next(void)
{
	bool may[2 * TOOLS];

	for (int i = 0; i < SAMPLES; i++) {
		uint64_t from = ns();

		if (i < 2000) {
			rules_monitor_next(m, NULL, may);
			times[i] = ns() - from;
		} else {
			times[i] = times[i % 2000];
		}
	}
	row("which of the 20 tools may be called (2,000 times)");
}

/* Many events that leave as many tuples as there were. */
static void live_on(long events)
{
	for (long i = 0; i < events; i++) {
		int order = (int)rnd((uint32_t)n_orders);

		now_ms += 10;
		switch (rnd(4)) {
		case 0: note(RULES_EV_CONFIRM, -1, NULL, NULL); break;
		case 1: note(RULES_EV_OK, tool_get[rnd(10)], gets[order], result); break;
		case 2: note(RULES_EV_USER, -1, NULL, NULL); break;
		default: note(RULES_EV_CALL, tool_get[rnd(10)], gets[order], NULL);
		}
	}
}

static void with_orders(int n, uint64_t long_trace)
{
	char what[80];
	uint64_t fixed;

	n_orders = n;
	m = rules_monitor_new(rules, NULL);
	fixed = rules_monitor_bytes(m);
	for (int i = 0; i < n; i++)
		look_at(i);
	printf("\n%d orders:\n\n| | median | p99 | longest |\n|---|---|---|---|\n", n);
	measure_check("ask about a call");
	measure_parsed();
	measure_cycle();
	measure_get();
	measure_next();
	live_on(1000);
	measure_check("ask about a call, 1,000 events later");
	live_on((long)long_trace);
	snprintf(what, sizeof what, "ask about a call, %" PRIu64 " events later", long_trace);
	measure_check(what);
	printf("\nMemory of the session: %.1f MiB; %.0f KiB before the first event.\n", (double)rules_monitor_bytes(m) / (1 << 20), (double)fixed / 1024);
	rules_monitor_free(m);
}

int main(void)
{
	uint64_t from = ns();

	load();
	printf("1,000 rules, 100 of them of the tool that is called, loaded in %.0f ms.\n", (double)(ns() - from) / 1e6);
	make_orders();
	with_orders(300, 1000000);
	with_orders(ORDERS, 1000000);
	rules_free(rules);
	cs_arena_done(&arena);
	cs_arena_done(&call_arena);
	return 0;
}
