/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "rules/internal.h"

/* The language as its users meet it: what is read, and what every error says. */

#define DESK                                                                                                        \
	"tool find_user(email: string) -> string reads;\n"                                                          \
	"tool get_order(id: string) -> {status: \"open\" | \"paid\", user: string, total: number, lines: {sku: string}[]} reads;\n" \
	"tool refund(order: string, amount: number, note?: string, tags?: string[]) writes spends;\n"               \
	"tool sh(command: string) runs;\n"
/* DESK has four lines: what is tested stands in line 5. */

static struct rules *load_text(const char *text, struct cs_err *err)
{
	struct rules *r = NULL;
	int code = rules_load("f.rules", text, strlen(text), NULL, 0, &r, err);

	T_TRUE((code == 0) == (r != NULL));
	T_TRUE(code == 0 || code == -(int)err->code);
	return r;
}

static struct rules *load(const char *text)
{
	struct cs_err err = { 0 };
	struct rules *r = load_text(text, &err);

	if (!r)
		T_FAIL("%s\n# %s", err.msg, text);
	return r;
}

/* ---- errors ---- */

struct bad {
	const char *text, *error;
};

static void is_refused(const void *arg)
{
	const struct bad *b = arg;
	CS_BUF_AUTO struct cs_buf text = CS_BUF(1 << 16);
	struct cs_err err = { 0 };

	cs_buf_str(&text, DESK);
	cs_buf_str(&text, b->text);
	if (load_text(cs_buf_text(&text), &err))
		T_FAIL("was taken: %s", b->text);
	T_STR(err.msg, b->error);
}

TEST_TABLE(errors)
{
	static const struct bad all[] = {
		/* names */
		{ "rule r: forbid get_ordr;", "f.rules:5:16: unknown tool `get_ordr`; did you mean `get_order`?" },
		{ "rule r: forbid cancel_*;", "f.rules:5:16: no tool fits `cancel_*`" },
		{ "set WRITE = {refund}; rule r: forbid WRTE;", "f.rules:5:38: unknown tool `WRTE`; did you mean `WRITE`?" },
		{ "rule r: forbid teleport;", "f.rules:5:16: unknown tool `teleport`" },
		{ "set refund = {sh};", "f.rules:5:5: the name `refund` is taken; choose another for the set" },
		{ "set W = {};", "f.rules:5:10: an empty set of tools" },
		{ "set W = effect write;", "f.rules:5:16: expected an effect: reads, writes, net, runs or spends" },
		{ "tool sh(a: string);", "f.rules:5:6: tool `sh` is declared twice; remove one" },
		{ "tool end();", "f.rules:5:6: `end` is the end of the session; a tool cannot have that name" },
		{ "tool x(a: strng);", "f.rules:5:11: expected a type (string, number, integer, boolean, any, {...}, \"a\" | \"b\"), got `strng`; did you mean `string`?" },
		{ "tool x(a: string, a: string);", "f.rules:5:19: `a` is declared twice" },
		{ "tool x() wrtes;", "f.rules:5:10: unknown effect `wrtes`; did you mean `writes`?" },
		{ "rule r: forbid sh; rule r: forbid refund;", "f.rules:5:25: a rule `r` is in line 5 already; choose another name" },
		{ "test deny [sh(command=\"x\")] by nobody; rule nobdy: forbid sh;", "f.rules:5:32: unknown rule `nobody`; did you mean `nobdy`?" },
		{ "rule r: forbid refund(oder=\"1\");", "f.rules:5:23: tool `refund` has no argument `oder`; did you mean `order`?" },
		{ "rule r: forbid refund where amont > 3;", "f.rules:5:29: tool `refund` has no argument `amont`; did you mean `amount`?" },
		{ "rule r: forbid refund where present(amont);", "f.rules:5:37: tool `refund` has no argument `amont`; did you mean `amount`?" },
		{ "rule r: forbid {refund, sh}(amount=_);", "f.rules:5:29: tool `sh`, one of `{refund, sh}`, has no argument `amount`; name the tools that have it, or write a rule for each" },
		{ "rule r: forbid refund unless once ok(get_order(idd=\"1\"));", "f.rules:5:48: tool `get_order` has no argument `idd`; did you mean `id`?" },
		{ "rule r: forbid sh unless last(get_order).stauts == \"paid\";", "f.rules:5:26: the result of tool `get_order` has no field `stauts`; did you mean `status`?" },
		{ "rule r: forbid sh unless last(find_user).name == \"x\";", "f.rules:5:26: the result of tool `find_user` is a string and has no fields" },
		{ "rule r: forbid sh unless last(get_order).lines[0].skv == \"x\";", "f.rules:5:26: the result of tool `get_order` has no field `lines[0].skv`; did you mean `sku`?" },
		{ "rule r: forbid sh unless all l in last(get_order).lines: l.skv == \"x\";", "f.rules:5:58: `l` has no field `skv`; did you mean `sku`?" },
		{ "rule r: forbid sh unless once ok(get_order where result.stats == \"x\");", "f.rules:5:50: the result of tool `get_order` has no field `stats`; did you mean `status`?" },
		{ "rule r: forbid refund(order.id=_);", "f.rules:5:23: `order` of tool `refund` is a string and has no fields" },
		{ "rule r: forbid refund unless tool == \"refnd\";", "f.rules:5:38: unknown tool \"refnd\"; did you mean `refund`?" },
		/* types */
		{ "rule r: forbid refund(amount=\"3\");", "f.rules:5:23: `amount` is a number, but \"3\" is a string" },
		{ "rule r: forbid refund where amount == \"3\";", "f.rules:5:39: `amount` is a number, but \"3\" is a string" },
		{ "rule r: forbid refund where amount < \"3\";", "f.rules:5:38: `<` needs numbers, but `\"3\"` is a string" },
		{ "rule r: forbid refund where amount == order;", "f.rules:5:29: `amount` is a number, but `order` is a string: they are never equal" },
		{ "rule r: forbid refund where order > 3;", "f.rules:5:29: `>` needs numbers, but `order` is a string" },
		{ "rule r: forbid refund where amount ~ \"3\";", "f.rules:5:29: `~` needs a string, but `amount` is a number" },
		{ "rule r: forbid refund(amount ~ \"3\");", "f.rules:5:23: a pattern needs a string, but the argument `amount` is a number" },
		{ "rule r: forbid refund where amount in {1, \"2\"};", "f.rules:5:39: `amount` is a number, but \"2\" is a string" },
		{ "rule r: forbid refund where order in \"abc\";", "f.rules:5:38: `in` needs a set or a list on its right, but `\"abc\"` is a string" },
		{ "rule r: forbid refund where tags contains 3;", "f.rules:5:43: `tags` is a string, but 3 is a number" },
		{ "rule r: forbid refund where amount contains 3;", "f.rules:5:29: `contains` needs a string or a list on its left, but `amount` is a number" },
		{ "rule r: forbid refund where amount + order > 3;", "f.rules:5:38: `+` needs numbers, but `order` is a string" },
		{ "rule r: forbid refund where len(amount) > 3;", "f.rules:5:33: `len` needs a string, a list or an object, but `amount` is a number" },
		{ "rule r: forbid refund where all x in order: x == \"a\";", "f.rules:5:38: `all` needs a list, but `order` is a string" },
		{ "rule r: forbid refund where amount under \"/tmp\";", "f.rules:5:29: `under` needs a path (a string or a list of them), but `amount` is a number" },
		{ "rule r: forbid sh unless last(get_order).status == \"payd\";", "f.rules:5:52: `last(get_order).status` is never \"payd\" by its schema; did you mean `paid`?" },
		{ "rule r: forbid sh unless shell(command) == \"save\";", "f.rules:5:44: `shell(command)` is never \"save\"; did you mean `safe`?" },
		{ "rule r: forbid * where effects contains \"write\";", "f.rules:5:41: `effects` is never \"write\"; did you mean `writes`?" },
		{ "rule r: forbid * where \"write\" in effects;", "f.rules:5:24: `effects` is never \"write\"; did you mean `writes`?" },
		{ "rule r: forbid * where {\"write\"} in effects;", "f.rules:5:24: `effects` is never \"write\"; did you mean `writes`?" },
		{ "rule r: forbid * where effects == {\"write\"};", "f.rules:5:35: `effects` is never \"write\"; did you mean `writes`?" },
		{ "rule r: forbid * where any e in effects: e == \"write\";", "f.rules:5:47: `e` is never \"write\"; did you mean `writes`?" },
		{ "rule r: forbid sh where session.untrustd == true;", "f.rules:5:25: the session has no `untrustd`; did you mean `untrusted`?" },
		{ "rule r: forbid sh where session.colour == true;", "f.rules:5:25: the session has no `colour`; it has untrusted, sensitive, secret, planned, suspicion, role, agent and workspace" },
		{ "rule r: forbid sh where session.untrusted == \"x\";", "f.rules:5:46: `session.untrusted` is a boolean, but \"x\" is a string" },
		{ "rule r: forbid sh where session.suspicion == \"x\";", "f.rules:5:46: `session.suspicion` is a number, but \"x\" is a string" },
		{ "rule r: forbid sh where session.untrusted;", "f.rules:5:25: `session.untrusted` is a value where a condition is needed; write `session.untrusted == true`" },
		{ "rule r: forbid sh where from(command) in {\"user\", \"trustd\"};", "f.rules:5:42: `from(command)` is never \"trustd\"; did you mean `trusted`?" },
		{ "rule r: forbid sh where \"trustd\" in from(command);", "f.rules:5:25: `from(command)` is never \"trustd\"; did you mean `trusted`?" },
		{ "rule r: forbid sh where from(command) contains \"fre\";", "f.rules:5:48: `from(command)` is never \"fre\"; did you mean `free`?" },
		{ "rule r: forall a. forbid refund(amount=a) unless once ok(get_order(id=a));", "f.rules:5:68: the variable `a` is a number, but the argument `id` is a string" },
		{ "rule r: forbid refund unless sum(call(refund), order) < 3;", "f.rules:5:48: `sum` adds numbers, but `order` is a string" },
		{ "rule r: forbid sh unless count(true) < 1;", "f.rules:5:32: `count` of something that is no event; write count(call(...)), count(ok(...)) or the like" },
		{ "test allow [refund(order=1)];", "f.rules:5:13: `order` is a string, but 1 is a number" },
		{ "test allow [refund(ordr=\"1\")];", "f.rules:5:13: tool `refund` has no argument `ordr`; did you mean `order`?" },
		{ "test allow [get_order(id=\"1\") -> {\"stat\": \"x\"}, sh()];", "f.rules:5:13: the result of tool `get_order` has no field `stat`; did you mean `status`?" },
		{ "test allow [find_user(email=\"1\") -> 3, sh()];", "f.rules:5:13: the result of tool `find_user` is a string, but 3 is a number" },
		/* variables */
		{ "rule r: forall o. forbid refund unless once ok(get_order(id=o));", "f.rules:5:26: the call does not bind `o`; write it as an argument of `refund`, as in refund(NAME=o), or leave it out of `forall`" },
		{ "rule r: forbid refund(order=o);", "f.rules:5:29: unknown variable `o`; write `forall` before the rule, or quotes for a string" },
		{ "rule r: forall order. forbid refund(order=ordr);", "f.rules:5:43: unknown variable `ordr`; did you mean `order`?" },
		{ "rule r: forall o, o. forbid refund(order=o);", "f.rules:5:19: the variable `o` is here twice" },
		{ "rule r: forall result. forbid refund(order=result);", "f.rules:5:16: `result` is a word of the language; choose another name for the variable" },
		{ "rule r: forall a, b, c, d, e, f, g, h, i. forbid sh;", "f.rules:5:40: more than 8 variables" },
		{ "rule r: forall o, n. forbid refund(order=o, note=n) unless once (call(refund(order=o, note=n)) or ok(get_order(id=o)));",
		  "f.rules:5:99: this event binds `o` but not `n`; below one `once` an event binds all variables or none: bind the rest too, or split the formula with `and`" },
		{ "rule r: forall o. forbid end unless once ok(get_order(id=o));", "f.rules:5:26: `end` binds no variables; write `require B after A`, where A binds `o`" },
		{ "rule r: forall o. require ok(get_order(id=o)) after call(sh);",
		  "f.rules:5:53: the event after `after` does not bind `o`; write it as an argument there, as in call(TOOL(id=o))" },
		{ "rule r: forall o. forbid refund(order=o) where once ok(get_order where result.user == o);",
		  "f.rules:5:87: the variable `o` inside the `where` of an event; bind it in the event's call, as in (id=o)" },
		{ "rule r: forbid refund where all t in tags: once ok(get_order(id=t));",
		  "f.rules:5:65: `t` is a variable of `all` or `any`: the past is remembered for variables of `forall` only" },
		{ "rule r: forall o. forbid refund(order=o) where o.id == 3;", "f.rules:5:49: the variable `o` has no fields; bind it to the field, as in (order.id=o)" },
		/* past and present */
		{ "rule r: forbid refund unless once amount > 3;",
		  "f.rules:5:35: `amount > 3` is about the present call and cannot stand below `once`, which is about the past; put it into an event, as in call(TOOL where ...)" },
		{ "rule r: forbid refund unless confirm since amount > 3;",
		  "f.rules:5:44: `amount > 3` is about the present call and cannot stand below `since`, which is about the past; put it into an event, as in call(TOOL where ...)" },
		{ "rule r: forbid refund unless count(amount > 3) > 3;",
		  "f.rules:5:36: `amount > 3` is about the present call and cannot stand below `count`, which is about the past; put it into an event, as in call(TOOL where ...)" },
		{ "rule r: forbid refund unless once call(refund where once user);",
		  "f.rules:5:58: an event inside the `where` of an event; that speaks of the event's own arguments and result only" },
		{ "rule r: forbid refund unless once call(refund where amount > last(get_order).total);",
		  "f.rules:5:62: `last` inside the `where` of an event; that speaks of the event's own arguments and result only" },
		{ "rule r: forbid refund where result == 3;",
		  "f.rules:5:29: `result` is that of an event: write ok(... where result ...), or last(...) for an earlier result; an argument of that name is `args.result`" },
		{ "rule r: forbid refund unless once call(get_order where result.total > 3);", "f.rules:5:56: a call has no result yet; write ok(...) or fail(...)" },
		{ "rule r: forbid end where amount > 3;", "f.rules:5:26: `end` has no arguments, so there is no `amount`" },
		{ "assert unreachable amount > 3;",
		  "f.rules:5:20: `amount` is an argument of a call, and an assertion is about no call; put it into an event, as in call(TOOL where ...)" },
		{ "rule r: forbid sh unless once call(end);", "f.rules:5:36: `end` is not an event; an obligation is `require B after A`" },
		{ "rule r: forbid sh unless find_user(email=\"x\");", "f.rules:5:26: `find_user` is a tool, not a condition; write once call(find_user(...)) or once ok(find_user(...))" },
		/* grammar */
		{ "rule r: forbid sh", "f.rules:5:18: expected `;` after the rule, got the end of the file" },
		{ "rule r: forbid sh\nrule s: forbid sh;", "f.rules:5:18: expected `;` after the rule, got `rule`" },
		{ "rule r forbid sh;", "f.rules:5:8: expected `:` after the rule's name, got `forbid`" },
		{ "rule r: deny sh;", "f.rules:5:9: expected forbid, ask, sandbox, allow or require, got `deny`; did you mean `forbid`?" },
		{ "rule r: forbd sh;", "f.rules:5:9: expected forbid, ask, sandbox, allow or require, got `forbd`; did you mean `forbid`?" },
		{ "rul r: forbid sh;", "f.rules:5:1: expected default, tool, set, rule, assert or test, got `rul`; did you mean `rule`?" },
		{ "default forbid;", "f.rules:5:9: expected a verdict (allow, ask, sandbox or deny), got `forbid`; did you mean `deny`?" },
		{ "default deny; default ask;", "f.rules:5:23: `default` is given twice" },
		{ "rule r: forbid refund where amount;", "f.rules:5:29: `amount` is a value where a condition is needed; compare it with something" },
		{ "rule r: forbid refund where (once user) > 3;", "f.rules:5:30: a condition stands where a value is needed" },
		{ "rule r: forbid refund where 1 < amount < 3;", "f.rules:5:40: two comparisons in a row; join them with `and`" },
		{ "rule r: forbid refund where amount = 3;", "f.rules:5:29: `amount` is a value where a condition is needed; compare it with something" },
		{ "rule r: forbid refund where amount > 3 && amount < 5;", "f.rules:5:40: unexpected character `&`; write `and`" },
		{ "rule r: forbid refund where order == 'x';", "f.rules:5:38: unexpected character `'`; strings are written in \"double quotes\"" },
		{ "rule r: forbid refund where order == \"x;", "f.rules:5:38: this string does not end on its line; close it with \"" },
		{ "rule r: forbid refund where order ~ \"\\d\";", "f.rules:5:38: unknown escape in a string; JSON's are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX (a backslash of a pattern is written \\\\)" },
		{ "rule r: forbid refund where order ~ \"^1\";", "f.rules:5:37: in the pattern: a pattern is always about the whole string: leave out ^ (the character itself is \\^), at character 1" },
		{ "rule r: forbid refund where lenn(order) > 3;", "f.rules:5:29: unknown function `lenn`; did you mean `len`?" },
		{ "rule r: forbid refund(amount > 3);", "f.rules:5:30: expected `=` or `~` after the argument `amount`, got `>`; other comparisons go into `where`" },
		{ "rule r: forbid sh unless count(call(sh)) within soon < 3;", "f.rules:5:49: expected a duration after `within`, as in 250ms, 30s, 10m, 2h or 1d" },
		{ "rule r: forbid sh unless user where true;", "f.rules:5:31: `where` comes before `unless`" },
		{ "rule r: forbid sh because why;", "f.rules:5:27: expected a text in quotes after `because`" },
		{ "test deny [];", "f.rules:5:12: a test ends with a call or `end`: that is what gets the verdict" },
		{ "test deny [confirm];", "f.rules:5:12: a test ends with a call or `end`: that is what gets the verdict" },
		{ "test deny [end, sh(command=\"x\")];", "f.rules:5:15: nothing comes after `end`" },
		{ "assert unreachable call(sh) to depth 0;", "f.rules:5:38: expected a depth from 1 to 1000" },
		{ "# \xc3\xa9\xc3\xa9\nrule \xc3\xa9: forbid sh;", "f.rules:6:6: unexpected character `\xc3\xa9`" },
		{ "rule r: forbid sh because \"a\xff\";", "f.rules:5:29: the byte 0xff is not UTF-8 text" },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		t_add(all[i].text, is_refused, &all[i]);
}

/* ---- what is read, by what is printed ---- */

struct good {
	const char *text, *printed; /* NULL: as written */
};

static void print_file(const struct rules *r, struct cs_buf *b)
{
	rl_print(r, b);
	T_TRUE(!b->over);
}

static void is_read(const void *arg)
{
	const struct good *g = arg;
	CS_BUF_AUTO struct cs_buf text = CS_BUF(1 << 16), out = CS_BUF(1 << 16), again = CS_BUF(1 << 16), out2 = CS_BUF(1 << 16), want = CS_BUF(1 << 16);
	struct rules *r;

	cs_buf_fmt(&text, "%s%s", DESK, g->text);
	r = load(cs_buf_text(&text));
	print_file(r, &out);
	rules_free(r);
	cs_buf_str(&want, g->printed ? g->printed : g->text);
	if (want.len)
		cs_buf_char(&want, '\n');
	T_STR(cs_buf_text(&out), cs_buf_text(&want));
	cs_buf_fmt(&again, "%s%s", DESK, cs_buf_text(&out));
	r = load(cs_buf_text(&again));
	print_file(r, &out2);
	rules_free(r);
	T_STR(cs_buf_text(&out2), cs_buf_text(&out));
}

TEST_TABLE(trees)
{
	static const struct good all[] = {
		{ "default ask;", NULL },
		{ "rule r: forbid sh;", NULL },
		{ "rule a-b: ask *;", NULL },
		{ "rule r: forbid sh unless session.untrusted == false and (true == session.secret or true);", NULL },
		{ "rule r: sandbox sh where shell(command) != \"safe\" because \"why\" fix \"how\";", NULL },
		{ "rule r: allow {refund,sh};", "rule r: allow {refund, sh};" },
		{ "rule r: forbid \"sh\"(command ~ \"rm .*\");", "rule r: forbid sh(command ~ \"rm .*\");" },
		{ "rule r: forall o, a. forbid refund(order=o, amount=a, note=_);", NULL },
		/* precedence: or, and, since, then the words in front, then comparisons */
		{ "rule r: forbid sh unless user or confirm and not user since confirm;", NULL },
		{ "rule r: forbid sh unless ((user) or (confirm and ((not user) since confirm)));", "rule r: forbid sh unless user or confirm and not user since confirm;" },
		{ "rule r: forbid sh unless (user or confirm) and user;", NULL },
		{ "rule r: forbid sh unless not (user since confirm);", NULL },
		{ "rule r: forbid sh unless user since confirm since user;", NULL },
		{ "rule r: forbid sh unless user since (confirm since user);", NULL },
		{ "rule r: forbid refund unless not amount > 3 and true;", NULL },
		{ "rule r: forbid refund where (amount + 1) * 2 - 3 - 4 > -1;", NULL },
		{ "rule r: forbid refund where amount-1 > 0;", "rule r: forbid refund where amount - 1 > 0;" },
		{ "rule r: forbid refund where amount - (1 - 2) > 0;", NULL },
		{ "rule r: forbid refund where order not in {\"a\", \"b\"};", NULL },
		{ "rule r: forbid refund where not order in {\"a\"};", "rule r: forbid refund where order not in {\"a\"};" },
		{ "rule r: forbid refund where any t in tags: t == \"a\" or t == \"b\";", NULL },
		{ "rule r: forbid refund where (all t in tags: len(t) < 3) and present(note);", NULL },
		{ "rule r: forbid refund where args.amount > 3 or args.\"note\" == \"x\";", "rule r: forbid refund where amount > 3 or note == \"x\";" },
		{ "rule r: forbid refund where amount <= last(get_order(id=\"1\")).total and last(get_order).lines[0].sku == \"x\";", NULL },
		{ "rule r: forbid refund where last(get_order).lines[amount].sku == \"x\";", NULL },
		{ "rule r: forbid sh unless count(call(sh) or fail(sh)) within 10m < 3;", NULL },
		{ "rule r: forbid sh unless count(call(sh)) within 7200 < 3;", "rule r: forbid sh unless count(call(sh)) within 2h < 3;" },
		{ "rule r: forbid refund unless amount + sum(call(refund where amount > 1), amount) within 1d <= 100;", NULL },
		{ "rule r: forbid sh unless previously historically once ok(get_order where result.total > 3 and id == \"x\");", NULL },
		{ "rule r: forbid sh unless seq(ok(get_order); user; call(refund)) or session.role == \"on\";", NULL },
		{ "rule r: forbid sh where writes(command) outside \"/work\" or reads(command) under \"/etc\";", NULL },
		{ "rule r: forbid sh where hosts(command) in {\"a\"} or from(command) contains \"free\";", NULL },
		{ "rule r: forbid * where effects contains \"spends\" and tool != \"sh\";", NULL },
		{ "rule r: forall o. require ok(get_order(id=o)) after call(refund(order=o));", NULL },
		{ "rule r: require confirm after call(refund) because \"x\";", NULL },
		{ "rule r: forbid end unless once confirm;", NULL },
		{ "assert reachable call(sh) and count(call(sh)) == 2 to depth 4;", NULL },
		{ "test deny [user \"hi\\n\", confirm, wait 10m, sh(command=\"x\") -> fail {\"a\": [1, -2.5, null, true]}, end];",
		  "test deny [user \"hi\\n\", confirm, wait 10m, \"sh\"(\"command\"=\"x\") -> fail {\"a\":[1,-2.5,null,true]}, end];" },
		{ "# only a comment", "" },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		t_add(all[i].text, is_read, &all[i]);
}

/* ---- the tree itself ---- */

TEST(sets_and_globs)
{
	struct rules *r = load("rule a: forbid ALL; rule b: forbid get_*; rule c: forbid P; rule d: forbid Q;\n"
			       "set Q = effect spends; set ALL = {get_*, put}; set P = {ALL, x-y};\n"
			       "tool get_a() reads; tool get_b(); tool put() writes spends; tool x-y();");

	T_INT(r->n_rules, 4);
	T_INT(r->rules[0].call->tools.n, 3);
	T_STR(r->rules[0].call->tools.text, "ALL");
	T_INT(r->rules[1].call->tools.n, 2);
	T_INT(r->rules[2].call->tools.n, 4);
	T_INT(r->rules[3].call->tools.n, 1);
	T_INT(r->rules[3].call->tools.ids[0], rules_tool_index(r, "put"));
	T_INT(r->tools[2].effects, RULES_WRITE | RULES_SPEND);
	rules_free(r);
}

TEST(the_past_is_numbered)
{
	struct rules *r = load(DESK "rule r: forall o, n. forbid refund(order=o, note=n) where once ok(get_order(id=o)) and amount > last(get_order(id=o)).total\n"
				    "unless not call(refund(order=o, note=n)) since confirm or count(user) > 2;\nassert unreachable once call(sh);");

	T_INT(r->n_pasts, 3);
	T_INT(r->pasts[0].n_vars, 1);
	T_INT(r->pasts[0].vars[0], 0);
	T_INT(r->pasts[0].formula->op, RL_ONCE);
	T_INT(r->pasts[1].n_vars, 2);
	T_INT(r->pasts[1].formula->op, RL_SINCE);
	T_INT(r->pasts[2].rule, UINT32_MAX);
	for (uint32_t i = 0; i < r->n_pasts; i++)
		T_INT(r->pasts[i].formula->id, i);
	T_INT(r->n_kept, 2);
	T_INT(r->kept[0].term->kind, RL_T_LAST);
	T_INT(r->kept[0].n_vars, 1);
	T_INT(r->kept[1].term->kind, RL_T_COUNT);
	T_INT(r->kept[1].n_vars, 0);
	T_INT(r->rules[0].end_line, 6);
	T_TRUE(r->rules[0].where->temporal);
	T_TRUE(!r->rules[0].where->b->temporal);
	rules_free(r);
}

TEST(obligations)
{
	struct rules *r = load(DESK "rule r: forall o. require ok(get_order(id=o)) after call(refund(order=o));\nrule s: require user after confirm;");

	T_TRUE(r->rules[0].each && r->rules[0].call->tools.end);
	T_INT(r->rules[0].verb, RULES_DENY);
	T_INT(r->rules[0].unless->op, RL_OR);
	T_INT(r->rules[0].unless->a->op, RL_HIST);
	T_INT(r->rules[0].unless->b->op, RL_SINCE);
	T_TRUE(!r->rules[1].each);
	rules_free(r);
}

static const struct json *read_json(struct cs_arena *a, const char *text)
{
	const struct json *v = NULL;
	struct cs_err err = { 0 };

	if (json_read(a, text, strlen(text), NULL, &v, &err) < 0)
		T_FAIL("%s", err.msg);
	return v;
}

static const char *refused_with(const struct rules_tool *tools, size_t n, const char *text)
{
	static struct cs_err err;
	struct rules *r = NULL;

	err.msg[0] = '\0';
	if (rules_load("f", text, strlen(text), tools, n, &r, &err) == 0)
		rules_free(r);
	return err.msg;
}

TEST(schemas_of_others)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA(1 << 20);
	struct rules_tool t[] = {
		{ .name = "open", .input = read_json(&a, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]}},\"additionalProperties\":true}") },
		{ .name = "shut", .input = read_json(&a, "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/x~1y\"},\"b\":{\"type\":\"integer\"}},\"$defs\":{\"x/y\":{\"enum\":[\"p\",\"q\"]}}}") },
		{ .name = "any" },
		{ .name = "either", .input = read_json(&a, "{\"anyOf\":[{\"properties\":{\"a\":{}}},{\"properties\":{\"b\":{}}}],\"properties\":{\"c\":{}}}") },
		{ .name = "loop", .input = read_json(&a, "{\"$ref\":\"#\"}") },
		{ .name = "whole", .input = read_json(&a, "{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"number\"}}}]}") },
		{ .name = "map", .input = read_json(&a, "{\"properties\":{\"m\":{\"additionalProperties\":{\"type\":\"number\"}}}}") },
	};
	size_t n = sizeof t / sizeof *t;

	T_STR(refused_with(t, n, "rule r: forbid open(b=1);"), "");
	T_STR(refused_with(t, n, "rule r: forbid open(a=1);"), "f:1:21: `a` is a string or null, but 1 is a number");
	T_STR(refused_with(t, n, "rule r: forbid open(a=null);"), "");
	T_STR(refused_with(t, n, "rule r: forbid shut(c=1);"), "f:1:21: tool `shut` has no argument `c`; did you mean `a`?");
	T_STR(refused_with(t, n, "rule r: forbid shut(a=\"r\");"), "f:1:21: `a` is never \"r\" by its schema; did you mean `p`?");
	T_STR(refused_with(t, n, "rule r: forbid shut(a=\"q\");"), "");
	T_STR(refused_with(t, n, "rule r: forbid shut(b=1.5);"), "f:1:21: `b` is never 1.5 by its schema");
	T_STR(refused_with(t, n, "rule r: forbid shut(b=1.0);"), "");
	T_STR(refused_with(t, n, "rule r: forbid any(x.y[3]=1);"), "");
	T_STR(refused_with(t, n, "rule r: forbid either(a=1);"), "");
	T_STR(refused_with(t, n, "rule r: forbid either(d=1);"), "");
	T_STR(refused_with(t, n, "rule r: forbid loop(d=1);"), "");
	T_STR(refused_with(t, n, "rule r: forbid whole(a=\"1\");"), "f:1:22: `a` is a number, but \"1\" is a string");
	T_STR(refused_with(t, n, "rule r: forbid map(m.k=\"1\");"), "f:1:20: `m.k` is a number, but \"1\" is a string");
	T_STR(refused_with(t, n, "rule r: forbid {shut, any} where a == \"r\";"), "");
}

TEST(a_tool_of_the_server_and_of_the_file)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA(1 << 20);
	struct rules_tool t[] = { { .name = "x", .input = read_json(&a, "{\"properties\":{\"a\":{\"type\":\"string\"}}}"), .effects = RULES_READ }, { .name = "x" } };
	const char *text = "tool x(b: number) -> {c: string} writes; rule r: forbid x where last(x).c == \"1\";";
	struct rules *r = NULL;
	struct cs_err err = { 0 };

	T_INT(rules_load("f", text, strlen(text), t, 1, &r, &err), 0);
	T_INT(rules_tool_count(r), 1);
	T_INT(r->tools[0].effects, RULES_READ | RULES_WRITE);
	T_TRUE(json_get(json_get(r->tools[0].input, "properties"), "a") != NULL);
	rules_free(r);
	T_STR(refused_with(t, 2, ""), "f:1:1: two tools have the name `x`; a rule could not tell them apart");
}

/* ---- warnings ---- */

static void warns(const char *text, const char *want)
{
	CS_BUF_AUTO struct cs_buf all = CS_BUF(1 << 16), got = CS_BUF(1 << 16);
	const struct rules_warning *w;
	struct rules *r;
	size_t n;

	cs_buf_fmt(&all, "%s%s", DESK, text);
	r = load(cs_buf_text(&all));
	n = rules_warnings(r, &w);
	for (size_t i = 0; i < n; i++)
		if (strncmp(w[i].text, "note:", 5) != 0)
			cs_buf_fmt(&got, "%u:%u: %s\n", w[i].line, w[i].column, w[i].text);
	rules_free(r);
	T_STR(cs_buf_text(&got), want);
}

TEST(warnings)
{
	warns("rule r: forbid refund where note == \"x\";",
	      "5:29: `note` may be absent: the condition is then unknown, and the rule fires; say what is meant with `present(note) and ...` or `not present(note) or ...`\n");
	warns("rule r: forbid refund where present(note) and note == \"x\";", "");
	warns("rule r: allow refund where len(note) < 5;",
	      "5:32: `note` may be absent: the condition is then unknown, and the rule does not allow; say what is meant with `present(note) and ...` or `not present(note) or ...`\n");
	warns("rule r: forbid sh unless once call(refund where note == \"x\");",
	      "5:49: `note` may be absent: an event without it never fits; say so with `present(note) and ...`, or `not present(note) or ...`\n");
	warns("rule r: forbid refund where amount > 3;", "");
	warns("rule r: forbid sh(command ~ \"curl https://example.com/.*\");",
	      "5:19: in the pattern \"curl https://example.com/.*\" the `.` before `com/.*` fits any character; write `\\\\.com/.*`\n");
	warns("rule r: forbid sh(command ~ \"curl https://example\\\\.com/.*\");", "");
	warns("rule r: forbid sh(command ~ \"a.company\");", "");
}

TEST(a_rule_without_a_test_is_noted)
{
	struct rules *r = load(DESK "rule a: forbid sh; rule b: ask refund; test deny [sh(command=\"x\")] by a;");
	const struct rules_warning *w;

	T_INT(rules_warnings(r, &w), 1);
	T_STR(w[0].text, "note: no test shows rule `b` at work; add `test ask [...] by b;`");
	rules_free(r);
}

/* ---- in plain words ---- */

static void is_told(const void *arg)
{
	const struct good *g = arg;
	CS_BUF_AUTO struct cs_buf text = CS_BUF(1 << 16), out = CS_BUF(1 << 16);
	struct cs_err err = { 0 };
	struct rules *r;

	cs_buf_fmt(&text, "set WRITE = {refund}; %srule r: %s;", DESK, g->text);
	r = load(cs_buf_text(&text));
	T_INT(rules_explain(r, "r", &out, &err), 0);
	rules_free(r);
	T_STR(cs_buf_text(&out), g->printed);
}

TEST_TABLE(words)
{
	static const struct good all[] = {
		{ "forbid sh",
		  "Before sh: deny." },
		{ "ask *",
		  "Before any tool: ask." },
		{ "forall o. forbid refund(order=o) unless once ok(get_order(id=o)) because \"w\" fix \"f\"",
		  "Before refund: there must have been a get_order with the same order (as its id) that succeeded. Otherwise: deny. Because: w. To do: f." },
		{ "forall o. forbid refund(order=o) where amount > 100 unless amount <= last(get_order(id=o)).total and last(get_order(id=o)).status == \"paid\"",
		  "Before refund, if its amount is above 100 (or that is not known): its amount must not be above the total in the latest result of get_order with the same order (as its id), and the status in the latest result of get_order with the same order (as its id) must be \"paid\". Otherwise: deny." },
		{ "forbid WRITE unless not call(WRITE) since confirm",
		  "Before WRITE: there must have been a confirmation by the user, and since then not a call of WRITE. Otherwise: deny." },
		{ "forbid WRITE unless not (not call(WRITE) since confirm)",
		  "Before WRITE: it must not be so that there was a confirmation by the user, and since then not a call of WRITE. Otherwise: deny." },
		{ "forall o. forbid refund(order=o) unless count(call(refund(order=o))) within 1d < 3",
		  "Before refund: the number of times of a call of refund with the same order within the last 1d must be below 3. Otherwise: deny." },
		{ "forbid refund unless amount + sum(call(refund), amount) within 1d <= 100",
		  "Before refund: its amount plus the sum of amount over every time of a call of refund within the last 1d must not be above 100. Otherwise: deny." },
		{ "forbid sh unless historically not (call(refund) or user)",
		  "Before sh: there must not have been a call of refund or a message of the user. Otherwise: deny." },
		{ "forbid sh unless historically (user or not confirm)",
		  "Before sh: at every moment before it must have held that (as the latest event, there was a message of the user, or as the latest event, there was not a confirmation by the user). Otherwise: deny." },
		{ "forbid sh unless previously confirm or confirm",
		  "Before sh: one step before the latest event, there must have been a confirmation by the user, or as the latest event, there must have been a confirmation by the user. Otherwise: deny." },
		{ "forbid sh unless seq(user; ok(get_order where result.total > 3); call(refund))",
		  "Before sh: there must have been first a message of the user, later a get_order that succeeded (where the result's total is above 3), later a call of refund. Otherwise: deny." },
		{ "forall o. require ok(get_order(id=o)) after call(refund(order=o))",
		  "When the session ends: every call of refund with some order must have been followed by a get_order with the same order (as its id) that succeeded. Otherwise: deny." },
		{ "allow sh where shell(command) == \"safe\" and command ~ \"ls .*\" unless once fail(sh)",
		  "Before sh, if the class of the command in its command is \"safe\", and its command is of the form \"ls .*\", unless there was a sh that failed: allow." },
		{ "sandbox sh where writes(command) outside \"/work\" or hosts(command) not in {\"a\", \"b\"}",
		  "Before sh, if what is written by its command is outside of \"/work\", or the hosts spoken to by its command is not one of \"a\" or \"b\" (or that is not known): sandbox." },
		{ "forbid refund where all t in tags: t != \"x\"",
		  "Before refund, if for every t in its tags, t is not \"x\" (or that is not known): deny." },
		{ "forbid refund where not (any t in tags: t in {\"x\"}) or not present(note)",
		  "Before refund, if for every t in its tags, t is not one of \"x\", or its note is not given (or that is not known): deny." },
		{ "forbid refund(order=\"1\", note ~ \"a+\") where from(note) contains \"free\" or len(note) * 2 - 1 >= 3 or session.role == \"x\" or tool == \"sh\" or effects contains \"net\"",
		  "Before refund with the order \"1\" and note of the form \"a+\", if the origins of its note contains \"free\", or the length of its note times 2 minus 1 is not below 3, or the session's role is \"x\", or the tool is \"sh\", or the tool's effects contains \"net\" (or that is not known): deny." },
		{ "forbid end unless once confirm",
		  "Before the end of the session: there must have been a confirmation by the user. Otherwise: deny." },
		{ "forbid sh unless true",
		  "Before sh: in every case. Otherwise: deny." },
		{ "forbid sh unless once (user and not confirm)",
		  "Before sh: at some moment before it must have held that (as the latest event, there was a message of the user, and as the latest event, there was not a confirmation by the user). Otherwise: deny." },
		{ "forbid sh unless once call(refund(order=\"1\", note ~ \"x\", amount=_))",
		  "Before sh: there must have been a call of refund with the order \"1\", a note of the form \"x\" and some amount. Otherwise: deny." },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		char name[200];

		snprintf(name, sizeof name, "told: %s", all[i].text);
		t_add(name, is_told, &all[i]);
	}
}

TEST(no_such_rule)
{
	struct rules *r = load(DESK "rule read_first: forbid sh;");
	CS_BUF_AUTO struct cs_buf out = CS_BUF(1 << 16);
	struct cs_err err = { 0 };

	T_INT(rules_explain(r, "read_frist", &out, &err), -CS_E_NOT_FOUND);
	T_STR(err.msg, "no rule `read_frist`; did you mean `read_first`?");
	rules_free(r);
}

/* ---- limits ---- */

static void hits_limit(struct cs_buf *text, const char *part)
{
	struct cs_err err = { 0 };
	struct rules *r = NULL;

	T_TRUE(!text->over);
	T_INT(rules_load("f", cs_buf_text(text), text->len, NULL, 0, &r, &err), -CS_E_LIMIT);
	if (!strstr(err.msg, part))
		T_FAIL("%s", err.msg);
}

static void repeat(struct cs_buf *b, const char *s, size_t n)
{
	while (n--)
		cs_buf_str(b, s);
}

TEST(limits)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(4 << 20);
	struct rules *r;

	repeat(&b, "#23456789012345\n", (1 << 16) + 1);
	hits_limit(&b, "the file has 1048592 bytes");
	b.len = 0;
	cs_buf_str(&b, DESK "rule r: forbid sh where ");
	repeat(&b, "(", 70);
	hits_limit(&b, "nested deeper than 64");
	b.len = 0;
	cs_buf_str(&b, DESK "rule r: forbid sh where ");
	repeat(&b, "not ", 70);
	hits_limit(&b, "nested deeper than 64");
	b.len = 0;
	cs_buf_str(&b, DESK "rule r: forbid sh where user");
	repeat(&b, " since user", 70);
	hits_limit(&b, "nested deeper than 64");
	b.len = 0;
	cs_buf_str(&b, DESK "rule r: forbid refund where 1");
	repeat(&b, " + 1", 70);
	hits_limit(&b, "nested deeper than 64");
	b.len = 0;
	cs_buf_str(&b, "test deny [x(a=");
	repeat(&b, "[", 70);
	b.len = 0;
	cs_buf_str(&b, DESK "rule r: forbid sh unless once (user");
	repeat(&b, " or user", 40);
	cs_buf_str(&b, ");");
	hits_limit(&b, "82 parts below one temporal formula; its state has 64 bits");
	b.len = 0;
	for (int i = 0; i <= 10000; i++)
		cs_buf_fmt(&b, "rule r%d: forbid *;\n", i);
	hits_limit(&b, "more than 10000 rules");
	b.len = 0;
	for (int i = 0; i <= 10000; i++)
		cs_buf_fmt(&b, "tool t%d();\n", i);
	hits_limit(&b, "more than 10000 tools");
	/* A chain is no nesting. */
	b.len = 0;
	cs_buf_str(&b, DESK "rule r: forbid refund where amount > 3");
	repeat(&b, " and amount > 3", 20000);
	cs_buf_str(&b, ";");
	r = load(cs_buf_text(&b));
	rules_free(r);
}

TEST(many_rules_and_tools_are_quick)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 20);
	struct rules *r;
	long start = t_now_ms();

	for (int i = 0; i < 10000; i++)
		cs_buf_fmt(&b, "tool t%d(a: string);\n", i);
	for (int i = 0; i < 5000; i++)
		cs_buf_fmt(&b, "rule r%d: forbid *(a=\"%d\") unless once ok(t%d);\n", i, i, i);
	r = load(cs_buf_text(&b));
	T_INT(r->n_rules, 5000);
	t_note("10,000 tools and 5,000 rules over all of them: %ld ms", t_now_ms() - start);
	rules_free(r);
}
