/* SPDX-License-Identifier: Apache-2.0 */
/* test_patch.c - two texts as a unified diff. */
#include "harness/t.h"
#include "harness/unpatch.h"

#include "base/text.h"
#include "txn/txn.h"

#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint64_t seed = 88172645463325252ull;
static uint64_t chance(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static const struct txn_patch_opts exact = { .context = 3 }, shown = { .context = 3, .escape = true };

static struct txn_lines patch(struct cs_buf *out, const char *a, const char *b, const struct txn_patch_opts *o)
{
	return txn_patch(out, a, strlen(a), b, strlen(b), o);
}

/* ---- what it looks like ---- */

static const struct {
	const char *name, *a, *b;
	unsigned context;
	const char *want;
} rows[] = {
	{ "equal texts have no hunks", "a\nb\n", "a\nb\n", 3, "" },
	{ "nothing and nothing have no hunks", "", "", 3, "" },
	{ "a new file starts at line 0", "", "a\nb\n", 3, "@@ -0,0 +1,2 @@\n+a\n+b\n" },
	{ "a deleted file ends at line 0", "a\nb\n", "", 3, "@@ -1,2 +0,0 @@\n-a\n-b\n" },
	{ "a count of one is left out", "a\n", "b\n", 3, "@@ -1 +1 @@\n-a\n+b\n" },
	{ "a line changes between others", "a\nb\nc\n", "a\nB\nc\n", 3, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n" },
	{ "a line is added at the start", "b\n", "a\nb\n", 3, "@@ -1 +1,2 @@\n+a\n b\n" },
	{ "a line is added at the end", "a\n", "a\nb\n", 3, "@@ -1 +1,2 @@\n a\n+b\n" },
	{ "context is cut to what is asked for", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", 3,
	  "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n" },
	{ "without context a range is only the change", "1\n2\n3\n", "1\nx\n3\n", 0, "@@ -2 +2 @@\n-2\n+x\n" },
	{ "without context an insertion names the line before", "1\n2\n3\n", "1\n2\nx\n3\n", 0, "@@ -2,0 +3 @@\n+x\n" },
	{ "without context a deletion names the line before", "1\n2\n3\n", "1\n3\n", 0, "@@ -2 +1,0 @@\n-2\n" },
	{ "changes whose context touches are one hunk", "a\n1\n2\nb\n", "A\n1\n2\nB\n", 1, "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n-b\n+B\n" },
	{ "changes further apart are two hunks", "a\n1\n2\n3\nb\n", "A\n1\n2\n3\nB\n", 1,
	  "@@ -1,2 +1,2 @@\n-a\n+A\n 1\n@@ -4,2 +4,2 @@\n 3\n-b\n+B\n" },
	{ "a newline that is missing in the old text is said", "a\nb", "a\nb\n", 3,
	  "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n" },
	{ "a newline that is missing in the new text is said", "a\nb\n", "a\nb", 3,
	  "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n" },
	{ "a newline that is missing in both is said twice", "a", "b", 3,
	  "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n" },
	{ "a newline that is missing in context is said once", "1\nb", "2\nb", 3, "@@ -1,2 +1,2 @@\n-1\n+2\n b\n\\ No newline at end of file\n" },
	{ "a carriage return is part of the line", "a\r\nb\r\n", "a\nb\r\n", 3, "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n" },
	{ "an added block ends where people see it end", "f\n{\n}\n\nh\n{\n}\n", "f\n{\n}\n\ng\n{\n}\n\nh\n{\n}\n", 1,
	  "@@ -4,2 +4,6 @@\n \n+g\n+{\n+}\n+\n h\n" },
	{ "a removed repeated line is the last of them", "a\nx\nx\nx\nb\n", "a\nx\nx\nb\n", 1, "@@ -3,3 +3,2 @@\n x\n-x\n b\n" },
	{ "lines that look like a patch are only lines", "--- a\n", "+++ b\n@@ -1 +1 @@\n", 3, "@@ -1 +1,2 @@\n---- a\n++++ b\n+@@ -1 +1 @@\n" },
};

static void look(const void *arg)
{
	const size_t i = (size_t)(uintptr_t)arg;
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	const struct txn_patch_opts o = { .context = rows[i].context };

	(void)patch(&out, rows[i].a, rows[i].b, &o);
	T_STR(cs_buf_text(&out), rows[i].want);
}

TEST_TABLE(every_row)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		t_add(rows[i].name, look, (const void *)(uintptr_t)i);
}

TEST(lines_are_counted)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	struct txn_lines n = patch(&out, "a\nb\nc\n", "a\nx\ny\nc\nz", &exact);

	T_INT(n.added, 3);
	T_INT(n.removed, 1);
}

TEST(lines_are_counted_when_nobody_wants_the_hunks)
{
	struct cs_buf none CS_BUF_AUTO = CS_BUF(0);
	struct txn_lines n = patch(&none, "a\nb\nc\n", "a\nx\ny\nc\nz", &exact);

	T_INT(n.added, 3);
	T_INT(n.removed, 1);
	T_TRUE(none.over && !none.len);
}

TEST(no_data_at_all_is_an_empty_text)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	struct txn_lines n = txn_patch(&out, NULL, 0, "a\n", 2, &exact);

	T_INT(n.added, 1);
	T_STR(cs_buf_text(&out), "@@ -0,0 +1 @@\n+a\n");
	T_INT(txn_patch(&out, NULL, 0, NULL, 0, &exact).added, 0);
	T_TRUE(!txn_is_binary(NULL, 0));
}

TEST(a_buffer_that_is_too_small_is_over_and_nothing_worse)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(10);

	T_INT(patch(&out, "aaaa\nbbbb\n", "cccc\ndddd\n", &exact).added, 2);
	T_TRUE(out.over);
	T_TRUE(out.len <= 10);
}

TEST(colours_are_those_of_git)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	const struct txn_patch_opts o = { .context = 3, .colour = true };

	(void)patch(&out, "a\nb\n", "a\nc", &o);
	T_STR(cs_buf_text(&out), "\033[36m@@ -1,2 +1,2 @@\033[m\n a\n\033[31m-b\033[m\n\033[32m+c\033[m\n\\ No newline at end of file\n");
}

/* ---- for a terminal ---- */

TEST(hostile_content_is_escaped_and_a_tab_stays)
{
	static const char b[] = "\033[2J\r\n\tx\ty\\\n\xc2\x9b" "31m\n\xe2\x80\xae\n\xff\n\0z\n";
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);

	(void)txn_patch(&out, "", 0, b, sizeof b - 1, &shown);
	T_STR(cs_buf_text(&out), "@@ -0,0 +1,6 @@\n+\\x1b[2J\\x0d\n+\tx\ty\\\\\n+\\u{9b}31m\n+\\u{202e}\n+\\xff\n+\\x00z\n");
}

TEST(context_is_escaped_too)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);

	(void)patch(&out, "\033c\na\n", "\033c\nb\n", &shown);
	T_STR(cs_buf_text(&out), "@@ -1,2 +1,2 @@\n \\x1bc\n-a\n+b\n");
}

TEST(a_long_line_is_escaped_as_if_in_one_piece)
{
	static const char *const signs[] = { "a", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x1b", "\xf0\x9f", "\x80", "\\" };

	for (int round = 0; round < 300; round++) {
		struct cs_buf line CS_BUF_AUTO = CS_BUF(1 << 16), got CS_BUF_AUTO = CS_BUF(1 << 18), want CS_BUF_AUTO = CS_BUF(1 << 18);
		size_t plain = chance(2) ? 1000 + chance(60) : 0;

		for (size_t i = 0; i < plain; i++)
			cs_buf_char(&line, '\xc3'), cs_buf_char(&line, '\xbc');
		for (int i = 0; i < 1500; i++)
			cs_buf_str(&line, signs[chance(COUNT(signs))]);
		cs_buf_str(&want, "@@ -0,0 +1 @@\n+");
		cs_escape(&want, line.data);
		cs_buf_str(&want, "\n\\ No newline at end of file\n");
		(void)txn_patch(&got, "", 0, line.data, line.len, &shown);
		T_STR(cs_buf_text(&got), cs_buf_text(&want));
	}
}

/* ---- what is text ---- */

TEST(a_nul_near_the_start_makes_it_binary)
{
	static char data[20000];

	memset(data, 'x', sizeof data);
	T_TRUE(!txn_is_binary(data, sizeof data));
	data[8192] = 0;
	T_TRUE(!txn_is_binary(data, sizeof data));
	data[8191] = 0;
	T_TRUE(txn_is_binary(data, sizeof data));
	T_TRUE(!txn_is_binary(data, 8191));
	T_TRUE(txn_is_binary("", 1));
}

TEST(what_is_too_large_counts_as_binary)
{
	size_t max = 16 << 20;
	char *data = malloc(max + 1);

	T_TRUE(data);
	memset(data, 'x', max + 1);
	T_TRUE(!txn_is_binary(data, max));
	T_TRUE(txn_is_binary(data, max + 1));
	memset(data, '\n', 1 << 20);
	T_TRUE(!txn_is_binary(data, max));
	data[1 << 20] = '\n';
	T_TRUE(txn_is_binary(data, max));
	free(data);
}

/* ---- it is right ---- */

static void must_turn_into(const struct cs_buf *a, const struct cs_buf *b, unsigned context)
{
	struct cs_buf hunks CS_BUF_AUTO = CS_BUF(256 << 20), out CS_BUF_AUTO = CS_BUF(64 << 20);
	const struct txn_patch_opts o = { .context = context };
	struct txn_lines n = txn_patch(&hunks, cs_buf_text(a), a->len, cs_buf_text(b), b->len, &o);
	size_t added, removed;

	T_TRUE(!hunks.over);
	if (!unpatch(&out, cs_buf_text(a), a->len, cs_buf_text(&hunks), hunks.len, &added, &removed))
		T_FAIL("the patch does not apply:\n%.2000s", cs_buf_text(&hunks));
	if (out.len != b->len || (b->len && memcmp(out.data, b->data, b->len)))
		T_FAIL("the patch gives another text:\n%.2000s", cs_buf_text(&hunks));
	T_INT(n.added, added);
	T_INT(n.removed, removed);
}

static void random_line(struct cs_buf *b, uint64_t kinds)
{
	uint64_t k = chance(kinds);

	if (k % 7 == 6) /* any bytes, and what a line must not be mistaken for */
		cs_buf_add(b, (const char *[]){ "\0x", "\\ No", "@@ -", "\r", "-", "+", " ", "\xff" }[k / 7 % 8], 2 - (k / 7 % 8 > 2));
	cs_buf_fmt(b, "%llu\n", (unsigned long long)k);
}

static void maybe_cut(struct cs_buf *b)
{
	if (b->len && chance(3) == 0)
		b->len--;
}

/* b is a with lines left out, put in and changed. */
static void edit(const struct cs_buf *a, struct cs_buf *b, uint64_t kinds, uint64_t rate)
{
	for (const char *p = cs_buf_text(a), *end = p + a->len, *next; p < end; p = next) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		next = nl ? nl + 1 : end;
		if (chance(rate) == 0)
			random_line(b, kinds);
		if (chance(rate))
			cs_buf_add(b, p, (size_t)(next - p));
	}
}

TEST(two_thousand_random_patches_apply)
{
	for (int i = 0; i < 2000; i++) {
		struct cs_buf a CS_BUF_AUTO = CS_BUF(1 << 20), b CS_BUF_AUTO = CS_BUF(1 << 20);
		uint64_t kinds = 1 + chance(60), lines = chance(i % 50 ? 60 : 3000), other = chance(i % 50 ? 60 : 3000);

		for (uint64_t k = 0; k < lines; k++)
			random_line(&a, kinds);
		if (chance(2))
			edit(&a, &b, kinds, 2 + chance(30));
		else
			for (uint64_t k = 0; k < other; k++)
				random_line(&b, kinds);
		maybe_cut(&a);
		maybe_cut(&b);
		must_turn_into(&a, &b, (unsigned)chance(6));
	}
}

/* The length of a longest common subsequence, the plain way. */
static size_t common(const char *a, size_t n, const char *b, size_t m)
{
	static size_t row[2][64];

	memset(row, 0, sizeof row);
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			size_t up = row[(i - 1) & 1][j], left = row[i & 1][j - 1];

			row[i & 1][j] = a[i - 1] == b[j - 1] ? row[(i - 1) & 1][j - 1] + 1 : up > left ? up : left;
		}
	return row[n & 1][m];
}

TEST(patches_of_small_texts_are_the_shortest)
{
	for (int i = 0; i < 5000; i++) {
		struct cs_buf a CS_BUF_AUTO = CS_BUF(1 << 10), b CS_BUF_AUTO = CS_BUF(1 << 10), none CS_BUF_AUTO = CS_BUF(0);
		char x[64], y[64];
		size_t n = chance(60), m = chance(60), kinds = 1 + chance(8), same;
		struct txn_lines got;

		for (size_t k = 0; k < n; k++)
			cs_buf_fmt(&a, "%c\n", x[k] = (char)('a' + chance(kinds)));
		for (size_t k = 0; k < m; k++)
			cs_buf_fmt(&b, "%c\n", y[k] = (char)('a' + chance(kinds)));
		got = txn_patch(&none, cs_buf_text(&a), a.len, cs_buf_text(&b), b.len, &exact);
		same = common(x, n, y, m);
		T_INT(got.removed, n - same);
		T_INT(got.added, m - same);
	}
}

/* ---- it ends ---- */

TEST(a_few_edits_in_a_hundred_thousand_lines_are_found_exactly)
{
	struct cs_buf a CS_BUF_AUTO = CS_BUF(16 << 20), b CS_BUF_AUTO = CS_BUF(16 << 20), none CS_BUF_AUTO = CS_BUF(0);
	long start = t_now_ms();
	struct txn_lines n;

	for (int i = 0; i < 100000; i++) {
		cs_buf_fmt(&a, "line %d\n", i);
		if (i % 1000 != 500)
			cs_buf_fmt(&b, "line %d\n", i);
		if (i % 1000 == 700)
			cs_buf_str(&b, "new\n");
	}
	n = txn_patch(&none, a.data, a.len, b.data, b.len, &exact);
	T_INT(n.removed, 100);
	T_INT(n.added, 100);
	t_note("%ld ms", t_now_ms() - start);
	must_turn_into(&a, &b, 3);
}

TEST(texts_chosen_to_be_slow_end_and_apply)
{
	/* Few kinds of lines in no order: everything is common, and nothing fits. */
	struct cs_buf a CS_BUF_AUTO = CS_BUF(16 << 20), b CS_BUF_AUTO = CS_BUF(16 << 20);

	for (int i = 0; i < 300000; i++) {
		cs_buf_fmt(&a, "%c\n", (char)('a' + chance(20)));
		cs_buf_fmt(&b, "%c\n", (char)('a' + chance(20)));
	}
	must_turn_into(&a, &b, 3);
}

TEST(a_text_in_reverse_ends_and_applies)
{
	struct cs_buf a CS_BUF_AUTO = CS_BUF(16 << 20), b CS_BUF_AUTO = CS_BUF(16 << 20);

	for (int i = 0; i < 200000; i++) {
		cs_buf_fmt(&a, "%d\n", i);
		cs_buf_fmt(&b, "%d\n", 199999 - i);
	}
	must_turn_into(&a, &b, 3);
}

TEST(more_lines_than_are_compared_are_two_blocks_that_apply)
{
	struct cs_buf a CS_BUF_AUTO = CS_BUF(16 << 20), b CS_BUF_AUTO = CS_BUF(16 << 20);

	for (int i = 0; i < (1 << 20) + 5; i++) {
		cs_buf_str(&a, i % 2 ? "\n" : "x\n");
		cs_buf_str(&b, i % 3 ? "\n" : "x\n");
	}
	T_TRUE(txn_is_binary(a.data, a.len));
	must_turn_into(&a, &b, 3);
}
