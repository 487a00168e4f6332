/* SPDX-License-Identifier: Apache-2.0 */
/* Random rules over random traces: the monitor against the definition (rules_slow.h).
 *
 * CS_RULES_SEED=N repeats a run, CS_RULES_SECONDS=N makes it long. A difference is
 * told with the rules, the seed of the pair and the step. */
#include "harness/t.h"

#include "rules_slow.h"

#include "base/buf.h"
#include "rules/rules.h"

#include <inttypes.h>

static uint64_t state;

static uint32_t rnd(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % n;
}

static bool chance(uint32_t percent)
{
	return rnd(100) < percent;
}

#define PICK(...) ((const char *const[]){ __VA_ARGS__ }[rnd(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))])

/* ---- rules as text ---- */

static const char tools[] = "tool r(id?: string, k?: number, tags?: string[]) -> {st?: string, n?: number, m?: {a?: string, b?: string}} reads;\n"
			    "tool w(id?: string, to?: string, amt?: number, tags?: string[]) -> string writes;\n"
			    "tool x(a?: string, b?: string) -> {st?: string} runs;\n";

static void event_call(struct cs_buf *b, uint32_t vars)
{
	if (vars == 0)
		cs_buf_str(b, PICK("r", "w", "x", "*", "{r, x}", "w(id=\"a\")", "w(amt=1)", "x(a~\"a|b\")", "r(k=_)", "x(a=\"b\", b=\"b\")"));
	else if (vars == 1)
		cs_buf_str(b, PICK("r(id=o)", "w(id=o)", "w(to=o)", "x(a=o)", "x(b=o)", "x(a=o, b=o)", "r(id=o, k=1)", "{r, w}(id=o)", "w(id=o, to=\"a\")", "w(id=o, amt=_)"));
	else
		cs_buf_str(b, PICK("x(a=o, b=q)", "x(a=q, b=o)", "w(id=o, to=q)", "w(to=o, id=q)", "x(b=q, a=o)"));
}

/* A condition inside an event; nothing for tools that differ. */
static const char *event_where(const char *call, bool ok)
{
	if (*call == 'r')
		return ok ? PICK("result.st == \"a\"", "result.n > 1", "k >= 2 and result.st != \"b\"", "result.n == k") : PICK("k > 1", "present(k)", "\"a\" in tags", "all t in tags: t == \"a\"");
	if (*call == 'w')
		return PICK("amt > 1", "not amt > 1", "present(to)", "id == to", "to in {\"a\", \"b\"}", "tags contains \"c\"", "len(tags) < 2");
	if (*call == 'x')
		return PICK("a == b", "a != b", "a in {\"a\", \"b\"}", "b ~ \"a|c\"");
	return NULL;
}

static void event(struct cs_buf *b, uint32_t vars)
{
	const char *kind = PICK("call", "call", "ok", "ok", "fail"), *where;
	size_t at;

	if (!vars && chance(25)) {
		cs_buf_str(b, PICK("user", "confirm"));
		return;
	}
	cs_buf_fmt(b, "%s(", kind);
	at = b->len;
	event_call(b, vars);
	where = chance(25) ? event_where(b->data + at, !strcmp(kind, "ok")) : NULL;
	if (where)
		cs_buf_fmt(b, " where %s", where);
	cs_buf_char(b, ')');
}

/* An event with all variables, or with none. */
static void some_event(struct cs_buf *b, uint32_t vars)
{
	event(b, chance(70) ? vars : 0);
}

static void past(struct cs_buf *b, uint32_t vars, int depth)
{
	uint32_t what = rnd(depth > 0 ? 9 : 2);

	if (what < 2) {
		some_event(b, vars);
		return;
	}
	cs_buf_char(b, '(');
	if (what < 6) {
		cs_buf_fmt(b, "%s ", PICK("once", "historically", "previously", "not"));
		past(b, vars, depth - 1);
	} else if (what == 6) {
		cs_buf_str(b, "seq(");
		for (uint32_t i = 0, n = 1 + rnd(3); i < n; i++) {
			cs_buf_str(b, i ? "; " : "");
			some_event(b, vars);
		}
		cs_buf_char(b, ')');
	} else {
		past(b, vars, depth - 1);
		cs_buf_fmt(b, " %s ", PICK("since", "since", "and", "or"));
		past(b, vars, depth - 1);
	}
	cs_buf_char(b, ')');
}

static uint32_t some_vars(uint32_t vars)
{
	return chance(80) ? vars : vars ? rnd(vars) : 0;
}

/* "count(...)": what the events say in numbers. */
static void number(struct cs_buf *b, uint32_t vars, bool is_w)
{
	switch (chance(25) ? 0 : rnd(is_w ? 6 : 5)) {
	case 0:
		cs_buf_fmt(b, "count(%s", PICK("", "", "previously ", "not previously "));
		past(b, some_vars(vars), 3);
		cs_buf_char(b, ')');
		break;
	case 1:
		cs_buf_str(b, "count(");
		event(b, some_vars(vars));
		cs_buf_fmt(b, ") within %s", PICK("2s", "7s", "1m"));
		break;
	case 2:
		cs_buf_fmt(b, "sum(call(%s), amt)%s", vars == 1 ? PICK("w(id=o)", "w(to=o)") : vars == 2 ? "w(id=o, to=q)" : PICK("w", "w(to=\"a\")", "w(id=_)"), PICK("", " within 3s", " within 20s"));
		break;
	case 3:
		cs_buf_str(b, vars == 1 ? PICK("last(r(id=o)).n", "last(r).n", "last(r(id=o, k=1)).n") : "last(r).n");
		break;
	case 4:
		cs_buf_fmt(b, "%u", rnd(5));
		break;
	default:
		cs_buf_str(b, "amt");
	}
}

static void numbers(struct cs_buf *b, uint32_t vars, bool is_w)
{
	number(b, vars, is_w);
	if (chance(20)) {
		cs_buf_fmt(b, " %s ", PICK("+", "-", "*"));
		number(b, vars, is_w);
	}
}

static void formula(struct cs_buf *b, uint32_t vars, const char *tool, int depth)
{
	uint32_t what = rnd(depth > 0 ? 13 : 9);

	cs_buf_char(b, '(');
	if (what < 4) {
		past(b, some_vars(vars), 3);
	} else if (what < 6) {
		numbers(b, vars, *tool == 'w');
		cs_buf_fmt(b, " %s %u", PICK("<", "<=", ">", ">=", "==", "!="), rnd(chance(30) ? 25 : 5));
	} else if (what == 6) {
		cs_buf_str(b, vars == 1 ? PICK("last(r(id=o)).st == \"a\"", "last(r(id=o)).st != last(r).st", "last(r).st == o", "o == \"a\"", "o in {\"a\", \"b\"}", "last(r(id=o)).m[o] == \"a\"") :
				PICK("last(r).st == \"a\"", "last(x(a=\"a\")).st in {\"a\", \"c\"}", "last(r).m.a != \"b\"", "last(w) == \"a\""));
	} else if (what < 9) {
		cs_buf_str(b, *tool == 'w' ? PICK("amt < 2", "amt >= 2", "id == to", "id != \"a\"", "present(to)", "not present(amt)", "to ~ \"a|b\"", "tags contains \"a\"",
						  "all t in tags: t in {\"a\", \"b\"}", "any t in tags: t == id", "len(tags) > 1", "tags in {\"a\", \"c\"}", "amt <= last(r).n", "any t in tags: t == last(r).st") :
			    *tool == 'r' ? PICK("id == \"a\"", "k > 1", "present(tags)", "id in tags", "k == last(r).n", "last(r).m[id] == \"b\"") :
			    *tool == 'x' ? PICK("a == b", "a == \"a\"", "b != a", "not b ~ \"b\"") : PICK("tool == \"w\"", "tool != \"r\"", "true", "false"));
	} else if (what < 11) {
		cs_buf_str(b, "not ");
		formula(b, vars, tool, depth - 1);
	} else {
		formula(b, vars, tool, depth - 1);
		cs_buf_fmt(b, " %s ", PICK("and", "or"));
		formula(b, vars, tool, depth - 1);
	}
	cs_buf_char(b, ')');
}

static const char *trigger(uint32_t vars)
{
	if (vars == 0)
		return PICK("w", "r", "x", "*", "w(id=\"a\")", "w(to~\"a|b\")", "x(a=_)", "{r, w}");
	if (vars == 1)
		return PICK("w(id=o)", "r(id=o)", "x(a=o)", "x(a=o, b=o)", "w(to=o)", "w(id=o, amt=1)");
	return PICK("w(id=o, to=q)", "x(a=o, b=q)", "x(b=o, a=q)", "w(to=o, id=q)");
}

static void rule(struct cs_buf *b, int i, bool allow)
{
	uint32_t vars = rnd(3);
	const char *call;

	cs_buf_fmt(b, "rule r%d: %s", i, vars == 1 ? "forall o. " : vars ? "forall o, q. " : "");
	if (chance(8)) {
		cs_buf_str(b, "require ");
		some_event(b, vars);
		cs_buf_str(b, " after ");
		event(b, vars);
		cs_buf_str(b, ";\n");
		return;
	}
	call = trigger(vars);
	cs_buf_fmt(b, "%s %s", allow ? PICK("forbid", "ask", "sandbox", "allow") : PICK("forbid", "forbid", "ask", "sandbox"), call);
	if (chance(40)) {
		cs_buf_str(b, " where ");
		formula(b, vars, call, 2);
	}
	if (chance(70)) {
		cs_buf_str(b, " unless ");
		formula(b, vars, call, 2);
	}
	cs_buf_str(b, ";\n");
}

/* ---- traces ---- */

enum { DOMAIN = 4 };
static const char *const names[DOMAIN] = { "a", "b", "c", "unseen" };

static struct json str(const char *s)
{
	return (struct json){ .type = JSON_STRING, .n = (uint32_t)strlen(s), .s = s };
}

static struct json num(int64_t i)
{
	return (struct json){ .type = JSON_NUMBER, .whole = true, .i = i };
}

static struct json tags(struct cs_arena *a)
{
	uint32_t n = rnd(3);
	struct json *v = cs_arena_get(a, n, sizeof *v);

	for (uint32_t i = 0; i < n; i++)
		v[i] = str(names[rnd(3)]);
	return (struct json){ .type = JSON_ARRAY, .n = n, .items = v };
}

struct field {
	const char *name;
	char kind; /* s n t */
};

static const struct field fields_r[] = { { "id", 's' }, { "k", 'n' }, { "tags", 't' }, { 0 } };
static const struct field fields_w[] = { { "id", 's' }, { "to", 's' }, { "amt", 'n' }, { "tags", 't' }, { 0 } };
static const struct field fields_x[] = { { "a", 's' }, { "b", 's' }, { 0 } };
static const struct field fields_m[] = { { "a", 's' }, { "b", 's' }, { 0 } };
static const struct field fields_result[] = { { "st", 's' }, { "n", 'n' }, { 0 } };
static const struct field *const fields[] = { fields_r, fields_w, fields_x };

static const struct json *object(struct cs_arena *a, const struct field *f, uint32_t absent)
{
	struct json_member *m = cs_arena_get(a, 5, sizeof *m);
	struct json *v = cs_arena_new(a, struct json);
	uint32_t n = 0;

	for (; f->name; f++) {
		if (chance(absent))
			continue;
		m[n].key = f->name;
		m[n].key_len = (uint32_t)strlen(f->name);
		m[n].value = f->kind == 's' ? str(names[rnd(3)]) : f->kind == 'n' ? num(rnd(4)) : tags(a);
		n++;
	}
	*v = (struct json){ .type = JSON_OBJECT, .n = n, .members = m };
	return v;
}

static const struct json *result_of(struct cs_arena *a, int tool)
{
	struct json *v;
	struct json_member *m;

	if (chance(5))
		return NULL;
	if (tool == 1) {
		v = cs_arena_new(a, struct json);
		*v = str(names[rnd(3)]);
		return v;
	}
	v = (struct json *)object(a, fields_result, 10);
	m = (struct json_member *)v->members;
	if (tool == 0 && chance(70)) {
		m[v->n].key = "m";
		m[v->n].key_len = 1;
		m[v->n++].value = *object(a, fields_m, 10);
	}
	return v;
}

/* ---- one pair ---- */

struct pair {
	uint64_t seed;
	const char *text;
	struct slow slow;
	struct rules_monitor *m, *small; /* small: with limits that are passed */
	bool has_allow;
	const struct json *domain[DOMAIN];
	uint64_t t;
};

static struct { uint64_t pairs, checks, fired, unknown, refused, over, next_no, ends_no; } seen;

static void differs(const struct pair *p, const char *what, const struct rules_event *e, const struct rules_hit *got, const struct rules_hit *want)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 20);

	for (int i = 0; i < p->slow.n; i++) {
		const struct rules_event *ev = &p->slow.ev[i];

		cs_buf_fmt(&b, "# %d: %" PRIu64 " kind %d tool %d ", i, ev->t_ms, (int)ev->kind, ev->tool);
		if (ev->args && ev->kind >= RULES_EV_CALL && ev->kind <= RULES_EV_FAIL)
			json_write(&b, ev->args);
		cs_buf_str(&b, " -> ");
		if (ev->result)
			json_write(&b, ev->result);
		cs_buf_str(&b, "\n");
	}
	printf("%s# asked: kind %d tool %d ", cs_buf_text(&b), (int)e->kind, e->tool);
	b.len = 0;
	if (e->args)
		json_write(&b, e->args);
	printf("%s\n", b.len ? cs_buf_text(&b) : "");
	for (const char *s = p->text; *s; s++) {
		if (s == p->text || s[-1] == '\n')
			printf("# ");
		putchar(*s);
	}
	T_FAIL("%s: CS_RULES_SEED=%" PRIu64 " step %d: got %s by %s%s%s, want %s by %s%s%s", what, p->seed, p->slow.n, rules_verdict_name(got->verdict),
	       got->rule ? got->rule : "-", got->unknown ? " unknown" : "", got->allowed ? " allowed" : "", rules_verdict_name(want->verdict),
	       want->rule ? want->rule : "-", want->unknown ? " unknown" : "", want->allowed ? " allowed" : "");
}

static bool same_name(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void check(struct pair *p, const struct rules_event *e)
{
	struct rules_hit got, want, less;
	bool end = e->kind == RULES_EV_END;

	rules_monitor_check(p->m, e, NULL, &got);
	slow_check(&p->slow, e, p->domain, DOMAIN, &want);
	seen.checks++;
	seen.fired += got.rule != NULL;
	seen.unknown += got.unknown;
	seen.refused += got.verdict == RULES_DENY;
	seen.ends_no += end && got.rule;
	if (got.verdict != want.verdict || !same_name(got.rule, want.rule) || (!end && got.unknown != want.unknown) || got.allowed != want.allowed)
		differs(p, "verdict", e, &got, &want);
	rules_monitor_check(p->small, e, NULL, &less);
	seen.over += less.over;
	/* What was not kept may forbid more, never less. (Under a default that is stricter than some rules more is not stricter.) */
	if (!p->has_allow && !p->slow.r->has_fallback && less.verdict < want.verdict)
		differs(p, "with limits", e, &less, &want);
}

static void note(struct pair *p, const struct rules_event *e)
{
	rules_monitor_note(p->m, e, NULL);
	rules_monitor_note(p->small, e, NULL);
	slow_note(&p->slow, e);
}

/* Every call of the tool with values of the domain. */
static void all_refused(struct pair *p, struct rules_event *e, const struct field *f, struct json_member *m, uint32_t n)
{
	static const struct json none = { .type = JSON_ARRAY };
	struct json v = { .type = JSON_OBJECT, .n = n, .members = m };
	struct rules_hit hit, want = { .verdict = RULES_DENY };

	if (!f->name) {
		e->args = &v;
		rules_monitor_check(p->m, e, NULL, &hit);
		if (hit.verdict != RULES_DENY)
			differs(p, "not in next, but allowed", e, &hit, &want);
		return;
	}
	all_refused(p, e, f + 1, m, n);
	for (int i = 0; i < (f->kind == 't' ? 1 : DOMAIN); i++) {
		m[n] = (struct json_member){ .key = f->name, .key_len = (uint32_t)strlen(f->name) };
		m[n].value = f->kind == 's' ? str(names[i]) : f->kind == 'n' ? num(i) : none;
		all_refused(p, e, f + 1, m, n + 1);
	}
}

static void check_next(struct pair *p)
{
	struct json_member m[5];
	bool may[3];

	rules_monitor_next(p->m, NULL, may);
	for (int t = 0; t < 3; t++) {
		struct rules_event e = { .kind = RULES_EV_CALL, .tool = t, .t_ms = p->t + rnd(30000) };

		if (may[t])
			continue;
		seen.next_no++;
		all_refused(p, &e, fields[t], m, 0);
	}
}

static void swap_for_fork(struct pair *p)
{
	struct rules_monitor *f = rules_monitor_fork(p->m);

	T_TRUE(f != NULL);
	T_TRUE(rules_monitor_bytes(f) <= rules_monitor_bytes(p->m));
	rules_monitor_free(p->m);
	p->m = f;
}

static void step(struct pair *p, struct cs_arena *a)
{
	struct rules_event e = { .kind = RULES_EV_CALL, .tool = (int)rnd(3) };

	if (chance(40))
		p->t += rnd(4000);
	e.t_ms = chance(5) && p->t > 2000 ? p->t - 2000 : p->t;
	if (chance(12)) {
		e.kind = chance(60) ? RULES_EV_CONFIRM : RULES_EV_USER;
		note(p, &e);
		return;
	}
	e.args = object(a, fields[e.tool], p->seed % 3 ? 6 : 20);
	check(p, &e);
	if (chance(15))
		return;
	note(p, &e);
	if (chance(15))
		return;
	e.kind = chance(80) ? RULES_EV_OK : RULES_EV_FAIL;
	e.result = result_of(a, e.tool);
	note(p, &e);
}

static void run_trace(struct pair *p, const struct rules *r, int events)
{
	struct cs_arena a = CS_ARENA((size_t)64 << 20);
	struct rules_limits tight = { .tuples = 1 + rnd(3), .value_bytes = chance(30) ? 40 : 0, .bytes = 0 };
	struct rules_event end = { .kind = RULES_EV_END };
	struct json domain[DOMAIN];

	for (int i = 0; i < DOMAIN; i++) {
		domain[i] = str(names[i]);
		p->domain[i] = &domain[i];
	}
	p->m = rules_monitor_new(r, NULL);
	if (chance(30))
		tight = (struct rules_limits){ .bytes = rules_monitor_bytes(p->m) + rnd(3000) };
	p->small = rules_monitor_new(r, &tight);
	p->slow = (struct slow){ .r = r, .a = &a };
	p->t = 1000;
	while (p->slow.n < events) {
		step(p, &a);
		if (chance(12))
			check_next(p);
		if (chance(3)) {
			end.t_ms = p->t;
			check(p, &end);
		}
		if (chance(2))
			swap_for_fork(p);
		if (tight.bytes)
			T_TRUE(rules_monitor_bytes(p->small) <= tight.bytes);
	}
	end.t_ms = p->t;
	check(p, &end);
	note(p, &end);
	check(p, &end);
	rules_monitor_free(p->m);
	rules_monitor_free(p->small);
	cs_arena_done(&a);
}

static void run_pair(uint64_t seed)
{
	static struct pair p;
	CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 20);
	struct cs_err err = { 0 };
	struct rules *r = NULL;
	int n;

	state = seed * 0x9e3779b97f4a7c15u + 1;
	rnd(2);
	p = (struct pair){ .seed = seed, .has_allow = chance(30) };
	cs_buf_str(&b, tools);
	if (chance(20))
		cs_buf_fmt(&b, "default %s;\n", PICK("deny", "ask", "sandbox"));
	n = 1 + (int)rnd(5);
	for (int i = 0; i < n; i++)
		rule(&b, i, p.has_allow);
	p.text = cs_buf_text(&b);
	if (rules_load("random.rules", p.text, b.len, NULL, 0, &r, &err) < 0)
		T_FAIL("seed %" PRIu64 ": %s\n%s", seed, err.msg, p.text);
	for (int i = 0; i < 2; i++)
		run_trace(&p, r, chance(10) ? 200 : 30 + (int)rnd(70));
	rules_free(r);
	seen.pairs++;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s && *s ? strtoull(s, NULL, 10) : otherwise;
}

TEST(random_rules)
{
	uint64_t one = number_of("CS_RULES_SEED", 0);
	uint64_t seconds = number_of("CS_RULES_SECONDS", 0);
	long until = t_now_ms() + 1000 * (long)(seconds ? seconds : 15);
	uint64_t seed = one ? one : (uint64_t)t_now_ms() * 1000003 + (uint64_t)getpid();

	t_note("seeds from %" PRIu64, seed);
	if (one) {
		run_pair(one);
		return;
	}
	while (t_now_ms() < until && (seconds || seen.pairs < 2000))
		run_pair(seed++);
	t_note("%" PRIu64 " rule sets with two traces each, %" PRIu64 " questions: %" PRIu64 " rules fired, %" PRIu64 " by something unknown, %" PRIu64 " refused, %" PRIu64
	       " refused ends, %" PRIu64 " tools not in next, %" PRIu64 " over a limit", seen.pairs, seen.checks, seen.fired, seen.unknown, seen.refused, seen.ends_no,
	       seen.next_no, seen.over);
	/* A generator that says nothing would pass. */
	T_TRUE(seen.fired && seen.unknown && seen.refused && seen.ends_no && seen.next_no && seen.over && seen.fired < seen.checks);
}
