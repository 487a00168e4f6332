/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "rules/pattern.h"

#include <time.h>

/* tests/rules/test_pattern.py compares with Python's re and with z3; here is what it cannot ask. */

static const struct pattern *compile(struct cs_arena *a, const char *text)
{
	const struct pattern *p = NULL;
	struct cs_err err = { 0 };

	if (pattern_compile(a, text, &p, &err) < 0)
		T_FAIL("%s: %s", text, err.msg);
	return p;
}

static bool matches(const char *text, const char *s)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA(1 << 20);

	return pattern_match(compile(&a, text), s, strlen(s));
}

TEST(whole_string)
{
	T_TRUE(matches("abc", "abc"));
	T_TRUE(!matches("abc", "xabc"));
	T_TRUE(!matches("abc", "abcx"));
	T_TRUE(!matches("abc", "abc\n"));
	T_TRUE(!matches("a|b", "ab"));
	T_TRUE(matches("", ""));
	T_TRUE(!matches("", "x"));
	/* A dot is any character: nothing hides behind a new line. */
	T_TRUE(matches(".*secret.*", "a\nsecret\nb"));
}

TEST(characters_not_bytes)
{
	T_TRUE(matches(".", "\xc3\xa9"));
	T_TRUE(matches(".{2}", "\xf0\x9f\x98\x80\xe2\x82\xac"));
	T_TRUE(matches("[\xc3\xa0-\xc3\xbf]+", "\xc3\xa9\xc3\xa8"));
	T_TRUE(!matches("[^\xc3\xa9]", "\xc3\xa9"));
	T_TRUE(!matches("\\w", "\xc3\xa9"));
	T_TRUE(!matches("\\d", "\xd9\xa3")); /* an Arabic digit */
}

TEST(what_is_not_utf8_never_fits)
{
	static const char *const bad[] = { "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		T_TRUE(!matches(".*", bad[i]));
}

TEST(zero_bytes)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA(1 << 20);

	T_TRUE(pattern_match(compile(&a, "a.b"), "a\0b", 3));
	T_TRUE(!pattern_match(compile(&a, "a"), "a\0b", 3));
}

TEST(linear_time)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA(1 << 20);
	const struct pattern *p = compile(&a, "(a*)*(a|a)*(a?){30}a{30}b");
	static char s[20001];
	long start = t_now_ms();

	memset(s, 'a', 20000);
	T_TRUE(!pattern_match(p, s, 20000));
	T_TRUE(t_now_ms() - start < 5000);
}

struct bad {
	const char *text, *error;
};

static void refused(const void *arg)
{
	const struct bad *b = arg;
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA(8 << 20);
	const struct pattern *p = NULL;
	struct cs_err err = { 0 };

	T_TRUE(pattern_compile(&a, b->text, &p, &err) < 0);
	T_TRUE(!p);
	T_STR(err.msg, b->error);
}

TEST_TABLE(refusals)
{
	static const struct bad all[] = {
		{ "^abc", "a pattern is always about the whole string: leave out ^ (the character itself is \\^), at character 1" },
		{ "abc$", "a pattern is always about the whole string: leave out $ (the character itself is \\$), at character 4" },
		{ "a[b", "unclosed [ at character 2" },
		{ "a(b", "unclosed ( at character 2" },
		{ "ab)", "a ) without its ( (the character itself is \\)) at character 3" },
		{ "[]", "an empty class; a ] in a class is written \\] at character 1" },
		{ "[z-a]", "a range that runs backwards at character 2" },
		{ "[\\d-z]", "a class like \\d cannot be the end of a range at character 2" },
		{ "*a", "nothing to repeat (the character itself needs a backslash) at character 1" },
		{ "a**", "a repetition of a repetition; use brackets at character 3" },
		{ "a*?", "a lazy repetition: the whole string is meant, so leave out the ?, at character 3" },
		{ "a{", "expected {n}, {n,} or {n,m} (the character itself is \\{) at character 2" },
		{ "a{3,2}", "a repetition whose most is below its least at character 2" },
		{ "a{1001}", "repeated more than 1000 times at character 3" },
		{ "(a{50}){50}", "the pattern needs more than 2000 states; use smaller counts" },
		{ "(?=a)", "(? is not supported (no look-around, names or flags); plain groups are ( ) and (?: ) at character 1" },
		{ "(a)\\1", "back-references are not supported: \\ at character 4" },
		{ "\\bx", "the whole string is always meant, and there are no word boundaries: leave out the escape at character 1" },
		{ "\xc3\xa9\\q", "unknown escape (there are \\d \\w \\s \\D \\W \\S \\n \\t \\r, and \\ before a sign) at character 2" },
		{ "[^a\xff]", "not UTF-8 at character 4" },
		{ "\\\xff", "not UTF-8 at character 2" },
		{ "\xc3", "not UTF-8 at character 1" },
		{ "a\\", "a backslash with nothing behind it at character 2" },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		t_add(all[i].text, refused, &all[i]);
}

TEST(nothing_repeated_costs_nothing)
{
	T_TRUE(matches("((((){1000}){1000}){1000}){1000}x", "x"));
}

TEST(deep_groups_are_refused)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA(8 << 20);
	const struct pattern *p = NULL;
	struct cs_err err = { 0 };
	char text[141];

	memset(text, '(', 70);
	memset(text + 70, ')', 70);
	text[140] = '\0';
	T_INT(pattern_compile(&a, text, &p, &err), -CS_E_LIMIT);
}

TEST(terms_for_solvers)
{
	static const struct { const char *text, *smt; } all[] = {
		{ "", "(str.to_re \"\")" },
		{ "abc", "(str.to_re \"abc\")" },
		{ "a\"\\\\\xc3\xa9", "(str.to_re \"a\"\"\\u{5c}\\u{e9}\")" },
		{ ".", "re.allchar" },
		{ "[a-z_]", "(re.union (str.to_re \"_\") (re.range \"a\" \"z\"))" },
		{ "[^a]", "(re.union (re.range \"\\u{0}\" \"`\") (re.range \"b\" \"\\u{2ffff}\"))" },
		{ "ab|c*d+", "(re.union (str.to_re \"ab\") (re.++ (re.* (str.to_re \"c\")) (re.+ (str.to_re \"d\"))))" },
		{ "x{2,3}y?", "(re.++ ((_ re.loop 2 3) (str.to_re \"x\")) (re.opt (str.to_re \"y\")))" },
		{ "x{2,}", "(re.++ ((_ re.^ 2) (str.to_re \"x\")) (re.* (str.to_re \"x\")))" },
		{ "[^\\w\\W]", "re.none" },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		CS_ARENA_AUTO struct cs_arena a = CS_ARENA(1 << 20);
		CS_BUF_AUTO struct cs_buf b = CS_BUF(4096);

		pattern_smt(compile(&a, all[i].text), &b);
		T_STR(cs_buf_text(&b), all[i].smt);
	}
}
