/* SPDX-License-Identifier: Apache-2.0 */
/* test_prove.c - what is proved of small rules is what going through all traces finds.
 *
 * Two tools with a handful of calls, rules made at random, every trace of up to three
 * steps run through the monitor: which tools can be called, which rules fire, which
 * change a verdict, whether an assertion is reached, and after how many steps at the
 * least.  The prover must say the same of all of it.  A second pair of tools has objects and
 * arrays, and rules that look into them with keys and values of the call.  CS_PROVE_RUNS: how
 * many of each (default 24); CS_PROVE_SEED: from which on. */
#include "harness/t.h"

#include "base/buf.h"
#include "base/mem.h"
#include "json/json.h"
#include "prove/prove.h"
#include "prove/sexp.h"
#include "rules/rules.h"

#include <stdint.h>

enum { DEPTH = 3, RULES = 4, NEVER = 99, CALLS_MAX = 8, RESULTS_MAX = 160 };

/* ---- the reader of answers ---- */

static int read_text(const char *text, const struct sexp **ret)
{
	static struct cs_arena a = CS_ARENA(1 << 20);

	return sexp_read(&a, text, strlen(text), ret);
}

TEST(answers_are_read_as_trees)
{
	const struct sexp *s;

	T_INT(read_text("((a \"x\"\"y\") (b (- 3)))\n", &s), 0);
	T_STR(sexp_at(sexp_at(s, 0), 1)->text, "x\"y");
	T_TRUE(sexp_is(sexp_at(sexp_at(sexp_at(s, 1), 1), 0), "-"));
	T_TRUE(sexp_at(s, 2) == NULL);
}

TEST(answers_that_are_cut_or_hostile_are_refused)
{
	static char deep[400];
	const struct sexp *s;

	T_INT(read_text("((a b)", &s), -1);
	T_INT(read_text("(a b))", &s), -1);
	T_INT(read_text("(\"open", &s), -1);
	T_INT(read_text("|open", &s), -1);
	memset(deep, '(', 199);
	memset(deep + 199, ')', 199);
	T_INT(read_text(deep, &s), -1);
}

/* ---- random rules ---- */

static uint64_t state;

static unsigned pick(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static const char manifest[] =
	"[{\"name\": \"t0\", \"inputSchema\": {\"type\": \"object\", \"properties\": {\"x\": {\"enum\": [\"a\", \"b\"]}}, \"required\": [\"x\"]},"
	"  \"outputSchema\": {\"enum\": [\"p\", \"q\"]}},"
	" {\"name\": \"t1\", \"inputSchema\": {\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\", \"enum\": [1, 2]}, \"y\": {\"enum\": [\"a\", \"b\"]}},"
	"  \"required\": [\"n\"]}}]";

static const char *const calls[] = { "{\"x\":\"a\"}", "{\"x\":\"b\"}", "{\"n\":1}", "{\"n\":2}", "{\"n\":1,\"y\":\"a\"}", "{\"n\":2,\"y\":\"a\"}",
				     "{\"n\":1,\"y\":\"b\"}", "{\"n\":2,\"y\":\"b\"}" };
enum { CALLS = sizeof calls / sizeof *calls };

static void event(struct cs_buf *b, bool var)
{
	static const char *const kinds[] = { "call", "ok", "fail" };
	static const char *const t0[] = { "t0", "t0(x=\"a\")", "t0(x=_)", "t0 where x == \"b\"", "t0(x~\"b|c\")" };
	static const char *const t1[] = { "t1", "t1(y=\"a\")", "t1(n=1)", "t1 where n > 1", "t1 where present(y)", "t1 where y != \"a\"", "t1(y=_)", "*" };

	if (var) {
		static const char *const bound[] = { "t0(x=v)", "t1(y=v)", "t1(n=1, y=v)", "t1(y=v) where n == 2" };

		cs_buf_fmt(b, "%s(%s)", kinds[pick(3)], bound[pick(4)]);
	} else if (pick(5) == 0) {
		cs_buf_str(b, pick(2) ? "user" : "confirm");
	} else if (pick(2)) {
		unsigned kind = pick(3);

		cs_buf_fmt(b, "%s(%s)", kinds[kind], kind == 1 && pick(3) == 0 ? "t0 where result == \"p\"" : t0[pick(5)]);
	} else {
		cs_buf_fmt(b, "%s(%s)", kinds[pick(3)], t1[pick(8)]);
	}
}

/* About the past; with `var`, its events bind v. */
static void past(struct cs_buf *b, bool var)
{
	static const char *const before[] = { "once ", "historically not ", "previously ", "not once ", "once (previously ", "" };
	unsigned how = pick(9);

	if (how < 6) {
		cs_buf_str(b, before[how]);
		event(b, var);
		cs_buf_str(b, how == 4 ? ")" : "");
	} else if (how == 6) {
		cs_buf_str(b, "(not ");
		event(b, var);
		cs_buf_str(b, " since ");
		event(b, pick(2) && var);
		cs_buf_char(b, ')');
	} else if (how == 7) {
		cs_buf_str(b, "seq(");
		event(b, var);
		cs_buf_str(b, "; ");
		event(b, var);
		cs_buf_char(b, ')');
	} else {
		cs_buf_str(b, "count(");
		event(b, var);
		cs_buf_fmt(b, ") %s %u", pick(2) ? "<" : ">=", pick(3));
	}
}

/* About the call; which names it may use depends on the tool. */
static void present(struct cs_buf *b, unsigned tool)
{
	static const char *const t0[] = { "x == \"a\"", "x != \"a\"", "x ~ \"[ac]\"", "x in {\"b\"}", "last(t0) == \"p\"", "last(t0(x=\"a\")) != \"q\"", "x contains \"a\"" };
	static const char *const t1[] = { "y == \"a\"", "y != \"a\"", "present(y)", "n < 2", "n + 1 > 2", "sum(call(t1), n) <= 2", "last(t0) == y", "y in {\"a\"}",
					  "sum(ok(t1(y=\"a\")), n) + n < 4" };
	static const char *const any[] = { "tool == \"t0\"", "tool ~ \"t[1-9]\"", "last(t0) == \"q\"" };

	cs_buf_str(b, tool == 0 ? t0[pick(7)] : tool == 1 ? t1[pick(9)] : any[pick(3)]);
}

static void condition(struct cs_buf *b, unsigned tool, bool var, unsigned depth)
{
	switch (pick(depth ? 6 : 3)) {
	case 0: present(b, tool); break;
	case 3:
		cs_buf_char(b, '(');
		condition(b, tool, var, depth - 1);
		cs_buf_str(b, pick(2) ? " and " : " or ");
		condition(b, tool, var, depth - 1);
		cs_buf_char(b, ')');
		break;
	case 4:
		cs_buf_str(b, "not (");
		condition(b, tool, var, depth - 1);
		cs_buf_char(b, ')');
		break;
	default: past(b, var && pick(3)); break;
	}
}

static void rule(struct cs_buf *b, unsigned i)
{
	static const char *const verbs[] = { "forbid", "forbid", "forbid", "forbid", "ask", "sandbox", "allow" };
	unsigned tool = pick(3);
	bool var = tool < 2 && pick(2);

	cs_buf_fmt(b, "rule r%u: %s", i, var ? "forall v. " : "");
	if (pick(8) == 0) {
		cs_buf_str(b, "require ");
		event(b, var);
		cs_buf_str(b, " after ");
		event(b, var);
		cs_buf_str(b, ";\n");
		return;
	}
	cs_buf_fmt(b, "%s %s", verbs[pick(7)], tool == 0 ? "t0" : tool == 1 ? "t1" : "*");
	cs_buf_str(b, var ? tool == 0 ? "(x=v)" : "(y=v)" : "");
	if (pick(2)) {
		cs_buf_str(b, " where ");
		condition(b, tool, var, 1);
	}
	if (pick(3)) {
		cs_buf_str(b, " unless ");
		condition(b, tool, var, 2);
	}
	cs_buf_str(b, ";\n");
}

/* ---- rules that look inside: put() gives an object or an array, and use(k, v) asks with k and v ---- */

#define INSIDE(output)                                                                                                                   \
	"[{\"name\": \"put\", \"inputSchema\": {\"type\": \"object\", \"properties\": {}}, \"outputSchema\": " output "},"                        \
	" {\"name\": \"use\", \"inputSchema\": {\"type\": \"object\", \"required\": [\"k\"],"                                                    \
	"  \"properties\": {\"k\": {\"enum\": [\"a\", \"b\"]}, \"v\": {\"enum\": [\"p\", \"q\"]}}}}]"
static const char object_manifest[] =
	INSIDE("{\"type\": \"object\", \"properties\": {\"m\": {\"type\": \"object\", \"additionalProperties\": {\"enum\": [\"p\", \"q\"]}}}}");
static const char array_manifest[] =
	INSIDE("{\"type\": \"object\", \"required\": [\"l\"], \"properties\": {\"l\": {\"type\": \"array\", \"items\": {\"enum\": [\"a\", \"b\"]}}}}");
static const char *const inside_calls[] = { "{}", "{\"k\":\"a\"}", "{\"k\":\"b\"}", "{\"k\":\"a\",\"v\":\"p\"}", "{\"k\":\"b\",\"v\":\"q\"}", "{\"k\":\"a\",\"v\":\"q\"}",
					    "{\"k\":\"b\",\"v\":\"p\"}" };
static const char *const object_atoms[] = {
	"k in keys(last(put).m)", "keys(last(put).m) contains k", "\"b\" in keys(last(put).m)", "last(put).m[k] == \"p\"", "last(put).m[k] == v", "last(put).m.a == last(put).m[k]",
	"v in values(last(put).m)", "\"p\" in values(last(put).m)", "k in {\"a\"}", "once ok(put where not (\"b\" in keys(result.m)))" };
static const char *const array_atoms[] = { "k in last(put).l", "last(put).l contains \"a\"", "last(put).l[0] == k", "last(put).l[1] != k", "k in {\"a\"}", "last(put).l contains k",
					   "once ok(put where \"a\" in result.l)", "\"b\" in last(put).l" };
static const char *const object_pasts[] = { "seq(ok(put where \"a\" in keys(result.m) and not (\"p\" in values(result.m))); call(use))",
					    "once ok(put where result.m.a == \"q\" and not (\"b\" in keys(result.m)))",
					    "once ok(put where result.m.a == \"q\" and not (\"q\" in values(result.m)))" };
static const char *const array_pasts[] = { "once ok(put where \"a\" in result.l and result.l[0] == \"b\")", "once ok(put where \"a\" in result.l and not (\"a\" in result.l))",
					   "once ok(put where result.l[1] == \"a\" and not (\"b\" in result.l))" };
/* All that the rules can tell apart: what is first, second, and anywhere. */
static const char *const array_results[] = { "{\"l\":[]}", "{\"l\":[\"a\"]}", "{\"l\":[\"b\"]}", "{\"l\":[\"a\",\"a\"]}", "{\"l\":[\"a\",\"b\"]}", "{\"l\":[\"b\",\"a\"]}",
					     "{\"l\":[\"b\",\"b\"]}", "{\"l\":[\"a\",\"a\",\"b\"]}", "{\"l\":[\"b\",\"b\",\"a\"]}" };
static const char *object_results[RESULTS_MAX];

/* What is under a, under b, and under other keys. */
static unsigned make_objects(struct cs_arena *a)
{
	static const char *const of_a[] = { "", ",\"a\":\"p\"", ",\"a\":\"q\"" }, *const of_b[] = { "", ",\"b\":\"p\"", ",\"b\":\"q\"" };
	static const char *const others[] = { "", ",\"x\":\"p\"", ",\"x\":\"q\"", ",\"x\":\"p\",\"y\":\"q\"" };
	unsigned n = 0;

	object_results[n++] = "{}";
	for (unsigned i = 0; i < 3 * 3 * 4; i++) {
		char m[96], text[128];

		snprintf(m, sizeof m, "%s%s%s", of_a[i % 3], of_b[i / 3 % 3], others[i / 9]);
		snprintf(text, sizeof text, "{\"m\":{%s}}", m[0] ? m + 1 : "");
		object_results[n++] = cs_arena_dup(a, text, strlen(text));
	}
	return n;
}

struct inside {
	const char *const *atoms, *const *pasts;
	unsigned n_atoms, n_pasts;
};
static const struct inside objects = { object_atoms, object_pasts, sizeof object_atoms / sizeof *object_atoms, sizeof object_pasts / sizeof *object_pasts };
static const struct inside arrays = { array_atoms, array_pasts, sizeof array_atoms / sizeof *array_atoms, sizeof array_pasts / sizeof *array_pasts };

static void inside_condition(const struct inside *in, struct cs_buf *b, unsigned depth)
{
	if (!depth || pick(3) == 0) {
		cs_buf_fmt(b, "%s%s", pick(3) ? "(" : "not (", in->atoms[pick(in->n_atoms)]);
	} else {
		cs_buf_char(b, '(');
		inside_condition(in, b, depth - 1);
		cs_buf_str(b, pick(2) ? " and " : " or ");
		inside_condition(in, b, depth - 1);
	}
	cs_buf_char(b, ')');
}

static void inside_rule(const struct inside *in, struct cs_buf *b, unsigned i)
{
	static const char *const verbs[] = { "forbid", "forbid", "forbid", "ask", "allow" };

	cs_buf_fmt(b, "rule r%u: %s use %s ", i, verbs[pick(5)], pick(2) ? "where" : "unless");
	inside_condition(in, b, 2);
	cs_buf_str(b, ";\n");
}

/* ---- loading ---- */

struct world {
	struct cs_arena arena;
	struct rules_tool tools[2];
	const struct inside *inside; /* NULL: the tools t0 and t1 */
	const struct json *args[CALLS_MAX], *results[RESULTS_MAX];
	unsigned n_args, of_first, n_results; /* calls of the first tool come first; results are its */
	unsigned depth;
	struct cs_buf head, rule[RULES], past; /* `default`, each rule, the assertion's formula */
	unsigned n;
	struct rules *all, *only[RULES], *but[RULES], *claim;
};

static void load(struct world *w, struct rules **ret, const char *text)
{
	struct cs_err err = { 0 };

	if (rules_load("random", text, strlen(text), w->tools, 2, ret, &err) < 0)
		T_FAIL("%s\n# %s", err.msg, text);
}

static const struct json *json_of(struct world *w, const char *text)
{
	const struct json *j = NULL;

	T_INT(json_read(&w->arena, text, strlen(text), NULL, &j, NULL), 0);
	return j;
}

static void text_of(struct world *w, int only, int but, bool claim, struct cs_buf *b)
{
	if (only < 0)
		cs_buf_str(b, cs_buf_text(&w->head));
	for (unsigned i = 0; i < w->n; i++)
		if ((only < 0 || (int)i == only) && (int)i != but)
			cs_buf_str(b, cs_buf_text(&w->rule[i]));
	if (claim)
		cs_buf_fmt(b, "assert reachable %s;\n", cs_buf_text(&w->past));
}

static void load_text(struct world *w, struct rules **ret, int only, int but, bool claim)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 20);

	text_of(w, only, but, claim, &b);
	load(w, ret, cs_buf_text(&b));
}

static void set_up(struct world *w, const char *tools, const char *const *args, unsigned n, unsigned of_first, const char *const *results, unsigned n_results)
{
	const struct json *list = json_of(w, tools);

	for (unsigned i = 0; i < 2; i++)
		w->tools[i] = (struct rules_tool){ .name = json_str(json_get(json_at(list, i), "name")), .input = json_get(json_at(list, i), "inputSchema"),
						   .output = json_get(json_at(list, i), "outputSchema") };
	for (unsigned i = 0; i < n; i++)
		w->args[i] = json_of(w, args[i]);
	for (unsigned i = 0; i < n_results; i++)
		w->results[i] = json_of(w, results[i]);
	w->n_args = n;
	w->of_first = of_first;
	w->n_results = n_results;
}

static void set_up_any(struct world *w)
{
	static const char *const results[] = { "\"p\"", "\"q\"" };

	w->depth = w->inside == &objects ? 2 : DEPTH;
	if (w->inside == &objects)
		set_up(w, object_manifest, inside_calls, 7, 1, object_results, make_objects(&w->arena));
	else if (w->inside)
		set_up(w, array_manifest, inside_calls, 3, 1, array_results, 9);
	else
		set_up(w, manifest, calls, CALLS, 2, results, 2);
}

static void make(struct world *w)
{
	struct cs_buf claim CS_BUF_AUTO = CS_BUF(1 << 16);

	w->arena = (struct cs_arena)CS_ARENA(8 << 20);
	set_up_any(w);
	w->head = (struct cs_buf)CS_BUF(1 << 16);
	w->past = (struct cs_buf)CS_BUF(1 << 16);
	if (pick(5) == 0)
		cs_buf_str(&w->head, "default deny;\n");
	w->n = 2 + pick(RULES - 1);
	for (unsigned i = 0; i < w->n; i++) {
		w->rule[i] = (struct cs_buf)CS_BUF(1 << 16);
		if (w->inside)
			inside_rule(w->inside, &w->rule[i], i);
		else
			rule(&w->rule[i], i);
	}
	if (w->inside)
		cs_buf_str(&w->past, w->inside->pasts[pick(w->inside->n_pasts)]);
	else
		past(&w->past, false);
	cs_buf_fmt(&claim, "rule claim: allow end where %s;", cs_buf_text(&w->past));
	load(w, &w->claim, cs_buf_text(&claim));
	load_text(w, &w->all, -1, -1, true);
	for (unsigned i = 0; i < w->n; i++) {
		load_text(w, &w->only[i], (int)i, -1, false);
		load_text(w, &w->but[i], -1, (int)i, false);
	}
}

/* ---- all traces ---- */

struct truth { /* after how many steps at the least; NEVER */
	unsigned tool[2], fires[RULES], changes[RULES], claim;
	unsigned wider[RULES][3]; /* than without the rule: at a call of each tool, at the end */
};

struct monitors {
	struct rules_monitor *all, *only[RULES], *but[RULES], *claim;
};

static void least(unsigned *to, unsigned k)
{
	*to = k < *to ? k : *to;
}

static bool verdict(struct rules_monitor *m, const struct rules_event *e, struct rules_hit *ret)
{
	rules_monitor_check(m, e, NULL, ret);
	return ret->verdict != RULES_DENY;
}

/* What is true when `e` is asked about after k steps. Whether it is let through. */
static bool ask(struct world *w, struct monitors *m, const struct rules_event *e, unsigned k, struct truth *t)
{
	struct rules_hit hit, other;
	bool ok = verdict(m->all, e, &hit);

	for (unsigned i = 0; i < w->n; i++) {
		(void)verdict(m->only[i], e, &other);
		if (other.rule)
			least(&t->fires[i], k);
		(void)verdict(m->but[i], e, &other);
		if (other.verdict != hit.verdict)
			least(&t->changes[i], k);
		if (other.verdict > hit.verdict)
			least(&t->wider[i][e->kind == RULES_EV_END ? 2 : e->tool], k);
	}
	if (e->kind == RULES_EV_CALL && ok)
		least(&t->tool[e->tool], k);
	return ok;
}

static void note(struct world *w, struct monitors *m, const struct rules_event *e)
{
	rules_monitor_note(m->all, e, NULL);
	rules_monitor_note(m->claim, e, NULL);
	for (unsigned i = 0; i < w->n; i++) {
		rules_monitor_note(m->only[i], e, NULL);
		rules_monitor_note(m->but[i], e, NULL);
	}
}

static struct monitors fork_all(struct world *w, const struct monitors *m)
{
	struct monitors to = { .all = rules_monitor_fork(m->all), .claim = rules_monitor_fork(m->claim) };

	for (unsigned i = 0; i < w->n; i++) {
		to.only[i] = rules_monitor_fork(m->only[i]);
		to.but[i] = rules_monitor_fork(m->but[i]);
	}
	return to;
}

static void free_all(struct world *w, struct monitors *m)
{
	rules_monitor_free(m->all);
	rules_monitor_free(m->claim);
	for (unsigned i = 0; i < w->n; i++) {
		rules_monitor_free(m->only[i]);
		rules_monitor_free(m->but[i]);
	}
}

static void walk(struct world *w, struct monitors *m, unsigned k, struct truth *t);

static void go(struct world *w, const struct monitors *m, const struct rules_event *e, const struct rules_event *result, unsigned k, struct truth *t)
{
	struct monitors next = fork_all(w, m);

	note(w, &next, e);
	if (result)
		note(w, &next, result);
	walk(w, &next, k + 1, t);
	free_all(w, &next);
}

static void walk(struct world *w, struct monitors *m, unsigned k, struct truth *t)
{
	struct rules_event end = { .kind = RULES_EV_END };
	struct rules_hit hit;

	(void)ask(w, m, &end, k, t);
	(void)verdict(m->claim, &end, &hit);
	if (hit.rule)
		least(&t->claim, k);
	if (k == w->depth)
		return;
	for (unsigned i = 0; i < w->n_args; i++) {
		struct rules_event e = { .kind = RULES_EV_CALL, .tool = i >= w->of_first, .args = w->args[i] }, result = e;

		if (!ask(w, m, &e, k + 1, t))
			continue;
		go(w, m, &e, NULL, k, t);
		result.kind = RULES_EV_FAIL;
		go(w, m, &e, &result, k, t);
		result.kind = RULES_EV_OK;
		for (unsigned r = 0; r < (i < w->of_first ? w->n_results : 1u); r++) {
			result.result = i < w->of_first ? w->results[r] : NULL;
			go(w, m, &e, &result, k, t);
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		struct rules_event e = { .kind = i ? RULES_EV_USER : RULES_EV_CONFIRM };

		go(w, m, &e, NULL, k, t);
	}
}

static void find_truth(struct world *w, struct truth *t)
{
	struct monitors m = { .all = rules_monitor_new(w->all, NULL), .claim = rules_monitor_new(w->claim, NULL) };

	*t = (struct truth){ .claim = NEVER, .tool = { NEVER, NEVER } };
	for (unsigned i = 0; i < RULES; i++) {
		t->fires[i] = t->changes[i] = t->wider[i][0] = t->wider[i][1] = t->wider[i][2] = NEVER;
		if (i < w->n) {
			m.only[i] = rules_monitor_new(w->only[i], NULL);
			m.but[i] = rules_monitor_new(w->but[i], NULL);
		}
	}
	walk(w, &m, 0, t);
	free_all(w, &m);
}

/* ---- what was proved ---- */

static unsigned steps_in(const struct prove_finding *f)
{
	unsigned n = 0;

	for (const char *c = f->trace ? f->trace : ""; *c; c++)
		n += *c == '\n';
	return f->trace ? n : NEVER;
}

static const struct prove_finding *finding(const struct prove_report *r, enum prove_about about, const char *name)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->findings[i].about == about && (!name || !strcmp(r->findings[i].name, name)))
			return &r->findings[i];
	return NULL;
}

static void agree(struct world *w, const struct prove_finding *f, const char *what, unsigned i, unsigned want)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 16);
	unsigned got = f ? steps_in(f) : NEVER;

	if (f && f->outcome != PROVE_CANNOT && got == want)
		return;
	text_of(w, -1, -1, true, &b);
	for (char *c = b.data; *c; c++)
		*c = *c == '\n' ? '|' : *c;
	T_FAIL("%s %u: proved %u (%s%s%s), by going through all %u\n# %s", what, i, got, f ? f->text : "nothing", f && f->why ? ": " : "", f && f->why ? f->why : "",
	       want, cs_buf_text(&b));
}

static void compare(struct world *w, const struct truth *t, const struct prove_report *r)
{
	for (unsigned i = 0; i < 2; i++)
		agree(w, finding(r, PROVE_TOOL, w->tools[i].name), "tool", i, t->tool[i]);
	for (unsigned i = 0; i < w->n; i++) {
		char name[8] = { 'r', (char)('0' + i) };
		const struct prove_finding *f = finding(r, PROVE_SUBSUMED, name);

		agree(w, finding(r, PROVE_RULE, name), "rule", i, t->fires[i]);
		if (t->fires[i] != NEVER && (f != NULL) != (t->changes[i] == NEVER))
			agree(w, f, f ? f->text : "change", i, t->changes[i]);
	}
	agree(w, finding(r, PROVE_ASSERT, NULL), "assert", 0, t->claim);
}

/* The file against itself without one rule: an `allow`, or an `ask` below a default, makes it wider. */
static void compare_against(struct world *w, const struct truth *t, const struct prove_options *o)
{
	for (unsigned i = 0; i < w->n; i++) {
		struct prove_report report;
		struct cs_err err = { 0 };
		bool any = false;

		T_INT(prove_against(w->all, w->but[i], o, &report, &err), 0);
		for (unsigned k = 0; k < 3; k++) {
			const struct prove_finding *f = finding(&report, PROVE_NARROWER, k < 2 ? w->tools[k].name : "end");

			any |= t->wider[i][k] != NEVER;
			if (f || t->wider[i][k] != NEVER)
				agree(w, f, "wider without rule", i, t->wider[i][k]);
		}
		T_INT(report.n && report.findings[0].outcome == PROVE_FINE, !any);
		prove_report_done(&report);
	}
}

static void check_random(unsigned long seed, const struct inside *inside)
{
	struct prove_options o = { .depth = inside == &objects ? 2 : DEPTH };
	struct world w = { .inside = inside };
	struct prove_report report;
	struct cs_err err = { 0 };
	struct truth t;

	state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
	for (unsigned i = 0; i < 8; i++)
		(void)pick(2);
	make(&w);
	find_truth(&w, &t);
	if (prove_rules(w.all, &o, &report, &err) == -CS_E_NOCMD)
		T_SKIP("%s", err.msg);
	T_STR(err.msg, "");
	compare(&w, &t, &report);
	prove_report_done(&report);
	compare_against(&w, &t, &o);
	rules_free(w.all);
	rules_free(w.claim);
	for (unsigned i = 0; i < w.n; i++) {
		rules_free(w.only[i]);
		rules_free(w.but[i]);
		cs_buf_done(&w.rule[i]);
	}
	cs_buf_done(&w.head);
	cs_buf_done(&w.past);
	cs_arena_done(&w.arena);
}

static void random_rules(const void *arg)
{
	check_random((uintptr_t)arg, NULL);
}

static void random_objects(const void *arg)
{
	check_random((uintptr_t)arg, &objects);
}

static void random_arrays(const void *arg)
{
	check_random((uintptr_t)arg, &arrays);
}

TEST_TABLE(what_is_proved_is_what_all_traces_show)
{
	const char *runs = getenv("CS_PROVE_RUNS"), *seed = getenv("CS_PROVE_SEED");
	unsigned long n = runs ? strtoul(runs, NULL, 10) : 24, from = seed ? strtoul(seed, NULL, 10) : 1;

	for (unsigned long i = from; i < from + n; i++) {
		char name[64];

		snprintf(name, sizeof name, "random_rules_%lu_are_proved_as_all_traces_show", i);
		t_add(name, random_rules, (const void *)(uintptr_t)i);
		snprintf(name, sizeof name, "random_looks_into_objects_%lu_are_proved_as_all_traces_show", i);
		t_add(name, random_objects, (const void *)(uintptr_t)i);
		snprintf(name, sizeof name, "random_looks_into_arrays_%lu_are_proved_as_all_traces_show", i);
		t_add(name, random_arrays, (const void *)(uintptr_t)i);
	}
}
