/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "base/cleanup.h"
#include "rules/rules.h"

#include <fcntl.h>

/* Inline tests: what is run, what a failure says, and that docs/rules.md keeps its word. */

static size_t run(const char *name, const char *text, size_t *ret_run, struct cs_buf *out)
{
	struct rules *r = NULL;
	struct cs_err err = { 0 };
	size_t failed;

	if (rules_load(name, text, strlen(text), NULL, 0, &r, &err) < 0)
		T_FAIL("%s", err.msg);
	failed = rules_test(r, ret_run, out);
	rules_free(r);
	return failed;
}

#define TOOLS                                                             \
	"tool get(id: string) -> {n: number} reads; tool put(id: string, n?: number) writes; tool sh(command: string) runs;\n" \
	"rule read_first: forall i. forbid put(id=i) unless once ok(get(id=i));\n"          \
	"rule few: ask put unless n < 5;\n"                                                   \
	"rule caged: sandbox sh; rule due: require call(put) after fail(get);\n"

struct says {
	const char *text, *out; /* "": passes */
};

static void one(const void *arg)
{
	const struct says *s = arg;
	CS_BUF_AUTO struct cs_buf text = CS_BUF(1 << 16), out = CS_BUF(1 << 16);
	size_t n = 0;

	cs_buf_fmt(&text, TOOLS "%s", s->text);
	T_INT(run("a.rules", cs_buf_text(&text), &n, &out), *s->out ? 1 : 0);
	T_INT(n, 1);
	T_STR(cs_buf_text(&out), s->out);
}

TEST_TABLE(verdicts)
{
	static const struct says all[] = {
		{ "test deny [put(id=\"1\", n=1)] by read_first;", "" },
		{ "test deny [put(id=\"1\", n=1)];", "" },
		{ "test allow [get(id=\"1\") -> {\"n\": 1}, put(id=\"1\", n=1)];", "" },
		{ "test ask [get(id=\"1\"), put(id=\"1\", n=9)] by few;", "" },
		/* absent satisfies nothing */
		{ "test ask [get(id=\"1\"), put(id=\"1\")] by few;", "" },
		{ "test deny [get(id=\"1\") -> fail, put(id=\"1\", n=1)] by read_first;", "" },
		{ "test sandbox [sh(command=\"x\")] by caged;", "" },
		/* what is caged has happened */
		{ "test sandbox [sh(command=\"x\"), sh(command=\"y\")] by caged;", "" },
		{ "test allow [end];", "" },
		{ "test deny [get(id=\"1\") -> fail {\"why\": \"gone\"}, end] by due;", "" },
		{ "default deny; test deny [get(id=\"1\")];", "" },
		/* failures */
		{ "test allow [put(id=\"1\", n=1)];", "a.rules:5:1: expected allow, got deny by read_first at step 1 (put)\n" },
		{ "test deny [get(id=\"1\"), confirm, put(id=\"1\", n=1)] by read_first;", "a.rules:5:1: expected deny by read_first, got allow at step 3 (put)\n" },
		{ "test deny [put(id=\"1\", n=1)] by few;", "a.rules:5:1: expected deny by few, got deny by read_first at step 1 (put)\n" },
		{ "test deny [put(id=\"1\", n=1), get(id=\"1\")];", "a.rules:5:1: expected allow, got deny by read_first at step 1 (put), before the last\n" },
		{ "test allow [get(id=\"1\"), put(id=\"1\", n=9), get(id=\"1\")];", "a.rules:5:1: expected allow, got ask by few at step 2 (put), before the last\n" },
		{ "test deny [end] by due;", "a.rules:5:1: expected deny by due, got allow at step 1 (end)\n" },
		{ "default deny; test allow [get(id=\"1\")];", "a.rules:5:15: expected allow, got deny at step 1 (get)\n" },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		t_add(all[i].text, one, &all[i]);
}

TEST(each_on_a_fresh_session)
{
	CS_BUF_AUTO struct cs_buf out = CS_BUF(1 << 16);
	size_t n = 0;

	T_INT(run("a", TOOLS "test allow [get(id=\"1\"), put(id=\"1\", n=1)];\ntest deny [put(id=\"1\", n=1)] by read_first;", &n, &out), 0);
	T_INT(n, 2);
}

TEST(time_passes_by_wait_only)
{
	CS_BUF_AUTO struct cs_buf out = CS_BUF(1 << 16);
	const char *text = "tool t(); rule r: forbid t unless count(call(t)) within 10m < 1;\n"
			   "test deny [t(), t()] by r;\ntest deny [t(), wait 9m, t()] by r;\ntest allow [t(), wait 11m, t()];";
	size_t n = 0;

	T_INT(run("a", text, &n, &out), 0);
	T_INT(n, 3);
}

/* From the top of the tree, where tests are run. */
TEST(the_page_keeps_its_word)
{
	CS_BUF_AUTO struct cs_buf page = CS_BUF(1 << 20);
	CS_FD int fd = open("docs/rules.md", O_RDONLY | O_CLOEXEC);
	size_t blocks = 0, tests = 0;
	char *at;

	if (fd < 0)
		T_SKIP("docs/rules.md is not here");
	T_INT(cs_buf_read_fd(&page, fd, "docs/rules.md", NULL), 0);
	at = page.data;
	while ((at = strstr(at, "```rules\n"))) {
		CS_BUF_AUTO struct cs_buf out = CS_BUF(1 << 16);
		char *end = strstr(at += 9, "```");
		size_t n = 0;

		T_TRUE(end != NULL);
		*end = '\0';
		if (run("docs/rules.md", at, &n, &out))
			T_FAIL("block %zu: %s", blocks + 1, cs_buf_text(&out));
		blocks++;
		tests += n;
		at = end + 1;
	}
	T_TRUE(blocks >= 10 && tests >= 35);
	t_note("%zu blocks, %zu tests", blocks, tests);
}
