/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"

#include "harness/data.h"

#include <dirent.h>
#include <math.h>

static struct cs_arena arena = CS_ARENA((size_t)256 << 20);

static const struct json *read_len(const char *text, size_t len)
{
	const struct json *v = NULL;
	struct cs_err err;
	char *exact = malloc(len ? len : 1); /* so that a sanitizer sees a byte too many; and the text may go */

	memcpy(exact, text, len);
	if (json_read(&arena, exact, len, NULL, &v, &err))
		T_FAIL("%.200s: %s", text, err.msg);
	free(exact);
	return v;
}

static const struct json *rd(const char *text)
{
	return read_len(text, strlen(text));
}

static const char *written(const struct json *v, bool canonical)
{
	static struct cs_buf b[4];
	static unsigned turn;
	struct cs_buf *to = &b[turn++ % 4];

	to->max = (size_t)64 << 20;
	to->len = 0;
	canonical ? json_write_canonical(to, v) : json_write(to, v);
	T_TRUE(!to->over);
	return cs_buf_text(to);
}

struct bad { const char *text, *says; };

static void refused(const void *arg)
{
	const struct bad *c = arg;
	const struct json *v;
	struct cs_err err;
	int e = json_read(&arena, c->text, strlen(c->text), NULL, &v, &err);

	if (!e)
		T_FAIL("was read as %s", written(v, false));
	T_STR(err.msg, c->says);
}

TEST_TABLE(texts_that_are_not_json)
{
	static const struct bad rows[] = {
		{ "", "1:1: the text ends where a value should be" },
		{ "{\"a\":1,}", "1:8: a key in double quotes should be here, not '}'" },
		{ "[1,]", "1:4: a value should be here, not ']'" },
		{ "{\"a\" 1}", "1:6: ':' should be here, not '1'" },
		{ "[1\n 2]", "2:2: ',' or ']' should be here, not '2'" },
		{ "{\"a\":1", "1:7: the text ends where ',' or '}' should be" },
		{ "[1}", "1:3: ',' or ']' should be here, not '}'" },
		{ "1 2", "1:3: the end of the text should be here, not '2'" },
		{ "01", "1:1: a number does not start with a superfluous 0" },
		{ "-", "1:2: the text ends where a digit should be" },
		{ "1.", "1:3: the text ends where a digit after the point should be" },
		{ "1e+", "1:4: the text ends where a digit of the exponent should be" },
		{ "+1", "1:1: a value should be here, not '+'" },
		{ ".5", "1:1: a value should be here, not '.'" },
		{ "NaN", "1:1: a value should be here, not 'N'" },
		{ "nul", "1:1: a value should be here, not 'n'" },
		{ "'a'", "1:1: a value should be here, not '''" },
		{ "\"a", "1:3: the text ends inside a string" },
		{ "\"a\nb\"", "1:3: a control character in a string must be written as \\u00XX" },
		{ "\"\\x\"", "1:2: a backslash in a string comes before one of \" \\ / b f n r t u" },
		{ "\"\\u12g4\"", "1:2: \\u needs four hexadecimal digits" },
		{ "\"\\ud800\"", "1:2: half of a surrogate pair stands alone" },
		{ "\"\\udc00\"", "1:2: half of a surrogate pair stands alone" },
		{ "\"\\ud800\\ud800\"", "1:2: half of a surrogate pair stands alone" },
		{ "\"\xc3\xa4\xff\"", "1:3: this is not UTF-8" },
		{ "\"\xed\xa0\x80\"", "1:2: this is not UTF-8" },
		{ "\"\xc0\xaf\"", "1:2: this is not UTF-8" },
		{ "\xef\xbb\xbf{}", "1:1: a value should be here, not '\\xef'" },
		{ "{\"a\":1,\"b\":2,\"a\":3}", "1:19: the object that ends here has the key \"a\" twice" },
		{ "{\"a\":1,\"\\u0061\":3}", "1:18: the object that ends here has the key \"a\" twice" },
		{ "{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1,\"3\":1}",
		  "1:61: the object that ends here has the key \"3\" twice" },
		{ "[1e1001]", "1:2: a number's digits may stand for 1e1000 at most and for 1e-1000 at least" },
		{ "[-1e-99999999999999999999]", "1:2: a number's digits may stand for 1e1000 at most and for 1e-1000 at least" },
		{ "[[1], 0.1e-1000]", "1:7: a number's digits may stand for 1e1000 at most and for 1e-1000 at least" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char name[160];

		snprintf(name, sizeof name, "refused: %.60s", rows[i].says);
		t_add(name, refused, &rows[i]);
	}
}

TEST(values_are_as_written)
{
	const struct json *v = rd(" {\"a\" : [1, -2.50, true, false, null, \"x\\n\\u00e4\\ud83d\\ude00\\u0000y\"], \"\": {} } ");
	int64_t i;

	T_TRUE(json_is(v, JSON_OBJECT) && v->n == 2);
	T_STR(written(v, false), "{\"a\":[1,-2.50,true,false,null,\"x\\n\xc3\xa4\xf0\x9f\x98\x80\\u0000y\"],\"\":{}}");
	T_TRUE(json_int(json_at(json_get(v, "a"), 0), &i) && i == 1);
	T_TRUE(fabs(json_num(json_at(json_get(v, "a"), 1)) + 2.5) < 1e-12);
	T_TRUE(!json_get(v, "b") && !json_get(json_get(v, "b"), "c") && !json_at(json_get(v, "a"), 6) && !json_at(v, 0));
	T_TRUE(json_get(v, "") && json_get(v, "")->n == 0);
	T_TRUE(!json_str(json_at(json_get(v, "a"), 5))); /* it holds a NUL */
	T_INT(json_at(json_get(v, "a"), 5)->n, 10);
}

/* Every length, so that words of eight bytes end everywhere. */
TEST(strings_of_every_length_and_with_anything_anywhere)
{
	static const char *const odd[] = { "", "\\n", "\\\"", "\xc3\xa4", "\\u20ac", "\xf0\x9f\x98\x80" };
	char text[128], want[128];

	for (size_t o = 0; o < sizeof odd / sizeof *odd; o++)
		for (int len = 0; len < 40; len++)
			for (int at = 0; at <= len; at++) {
				snprintf(text, sizeof text, "[\"%.*s%s%.*s\",1]", at, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst", odd[o], len - at,
					 "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRST");
				snprintf(want, sizeof want, "%s", text);
				if (o == 4)
					snprintf(want, sizeof want, "[\"%.*s\xe2\x82\xac%.*s\",1]", at, text + 2, len - at, text + 2 + at + 6);
				T_STR(written(rd(text), false), want);
			}
}

TEST(numbers_compare_exactly)
{
	static const struct { const char *a, *b; int cmp; } rows[] = {
		{ "1", "1.0", 0 }, { "100", "1e2", 0 }, { "0", "-0", 0 }, { "0", "0.000e5", 0 }, { "0.1", "1e-1", 0 },
		{ "9007199254740993", "9007199254740992.0", 1 }, { "0.1", "0.10000000000000000555", -1 },
		{ "-1", "1", -1 }, { "-2.5", "-2.4", -1 }, { "9223372036854775807", "9223372036854775808", -1 },
		{ "-9223372036854775808", "-9223372036854775809", 1 }, { "1e1000", "1e999", 1 }, { "1e-1000", "0", 1 },
		{ "123456789012345678901234567890", "123456789012345678901234567891", -1 }, { "12", "1.2", 1 }, { "-0.5", "0", -1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct json *a = rd(rows[i].a), *b = rd(rows[i].b);

		if (json_number_cmp(a, b) != rows[i].cmp || json_number_cmp(b, a) != -rows[i].cmp)
			T_FAIL("%s and %s compare as %d", rows[i].a, rows[i].b, json_number_cmp(a, b));
		T_INT(json_equal(a, b), rows[i].cmp == 0);
		T_INT(json_hash(a, 7) == json_hash(b, 7), rows[i].cmp == 0);
	}
}

TEST(multiples_are_exact)
{
	static const struct { const char *v, *of; bool is; } rows[] = {
		{ "6", "3", true }, { "7", "3", false }, { "0.0075", "0.0001", true }, { "0.00751", "0.0001", false }, { "4.35", "0.01", true },
		{ "1e1000", "0.123456789", false }, { "1e308", "1e-308", true }, { "12391239123", "1e-8", true }, { "0", "5", true }, { "0.0", "0.3", true },
		{ "5", "0", false }, { "-6", "4", false }, { "-9223372036854775808", "-1", true }, { "35", "1.5", false }, { "4.5", "1.5", true },
		{ "246913578024691357802469135780", "123456789012345678901234567890", true },
		{ "246913578024691357802469135781", "123456789012345678901234567890", false },
		{ "15241578753238836750495351562536198787501905199875019052100", "123456789012345678901234567890", true },
		{ "15241578753238836750495351562536198787501905199875019052101", "123456789012345678901234567890", false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (json_number_multiple(rd(rows[i].v), rd(rows[i].of)) != rows[i].is)
			T_FAIL("%s of %s", rows[i].v, rows[i].of);
}

TEST(integers_of_any_spelling)
{
	int64_t i;

	T_TRUE(json_int(rd("3.0"), &i) && i == 3);
	T_TRUE(json_int(rd("-12e1"), &i) && i == -120);
	T_TRUE(json_int(rd("-0"), &i) && i == 0);
	T_TRUE(json_int(rd("-9223372036854775808"), &i) && i == INT64_MIN);
	T_TRUE(json_int(rd("-9223372036854775808.0"), &i) && i == INT64_MIN);
	T_TRUE(!json_int(rd("9223372036854775808"), &i) && !json_int(rd("1e19"), &i) && !json_int(rd("0.5"), &i) && !json_int(rd("\"1\""), &i));
	T_TRUE(json_whole(rd("1e300")) && json_whole(rd("0.0")) && !json_whole(rd("1e-3")));
}

TEST(equal_values_have_one_canonical_text)
{
	static const char *const pairs[][3] = {
		{ "{\"b\":1.0,\"a\":[1e2]}", "{\"a\":[100],\"b\":1}", "{\"a\":[100],\"b\":1}" },
		{ "1e21", "1000000000000000000000", "1e+21" },
		{ "1e20", "100000000000000000000.0", "100000000000000000000" },
		{ "0.000001", "1e-6", "0.000001" },
		{ "1.5e-7", "0.00000015", "1.5e-7" },
		{ "-0", "0e7", "0" },
		{ "-12.340", "-1234e-2", "-12.34" },
		{ "\"\\u0041\\/\\u000a\\u001F\"", "\"A/\\n\\u001f\"", "\"A/\\n\\u001f\"" },
		{ "{\"aa\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"aa\":1}", "{\"\":3,\"a\":2,\"aa\":1}" },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		T_STR(written(rd(pairs[i][0]), true), pairs[i][2]);
		T_STR(written(rd(pairs[i][1]), true), pairs[i][2]);
		T_TRUE(json_equal(rd(pairs[i][0]), rd(pairs[i][1])));
	}
	T_TRUE(!json_equal(rd("[1,2]"), rd("[2,1]")) && !json_equal(rd("0"), rd("false")) && !json_equal(rd("\"1\""), rd("1")));
	T_TRUE(!json_equal(rd("{\"a\":1}"), rd("{\"b\":1}")) && !json_equal(rd("{\"a\":1}"), rd("{\"a\":1,\"b\":1}")));
}

static void add_members(struct cs_buf *b, int n, bool up)
{
	cs_buf_char(b, '{');
	for (int i = 0; i < n; i++)
		cs_buf_fmt(b, "%s\"k%d\":%d", i ? "," : "", up ? i : n - 1 - i, up ? i : n - 1 - i);
	cs_buf_char(b, '}');
}

TEST(big_objects_are_read_and_compared_in_linear_time)
{
	CS_BUF_AUTO struct cs_buf up = CS_BUF((size_t)64 << 20), down = CS_BUF((size_t)64 << 20);
	struct json_limits limits = { .values = 2000000 };
	const struct json *a, *b;
	struct cs_err err;
	long start = t_now_ms();

	add_members(&up, 500000, true);
	add_members(&down, 500000, false);
	T_INT(json_read(&arena, up.data, up.len, &limits, &a, &err), 0);
	T_INT(json_read(&arena, down.data, down.len, &limits, &b, &err), 0);
	T_TRUE(json_equal(a, b));
	T_TRUE(json_hash(a, 3) == json_hash(b, 3));
	up.len--;
	cs_buf_str(&up, ",\"k7\":1}");
	T_INT(json_read(&arena, up.data, up.len, &limits, &a, &err), -CS_E_INVALID);
	T_TRUE(strstr(err.msg, "the key \"k7\" twice"));
	T_TRUE(t_now_ms() - start < 15000); /* each with each would take minutes */
}

TEST(limits_hold)
{
	CS_ARENA_AUTO struct cs_arena small = CS_ARENA(4096);
	struct json_limits limits = { .depth = 3, .values = 5 };
	char text[3000];
	const struct json *v;
	struct cs_err err;

	T_INT(json_read(&arena, "[[[1]]]", 7, &limits, &v, &err), 0);
	T_INT(json_read(&arena, "[[[[]]]]", 8, &limits, &v, &err), -CS_E_LIMIT);
	T_STR(err.msg, "1:4: this is nested deeper than 3 levels");
	T_INT(json_read(&arena, "[1,2,3,4]", 9, &limits, &v, &err), 0);
	T_INT(json_read(&arena, "[1,2,3,4,5]", 11, &limits, &v, &err), -CS_E_LIMIT);
	T_STR(err.msg, "1:10: there are more values than may be read");
	memset(text, '1', sizeof text);
	T_INT(json_read(&arena, text, 1000, NULL, &v, &err), 0);
	T_INT(json_read(&arena, text, 1001, NULL, &v, &err), -CS_E_LIMIT);
	T_INT(json_read(&arena, "1e400", 5, NULL, &v, &err), 0);
	T_TRUE(isinf(json_num(v)));
	memset(text, '[', sizeof text);
	limits = (struct json_limits){ .depth = UINT32_MAX };
	T_INT(json_read(&arena, text, sizeof text, &limits, &v, &err), -CS_E_LIMIT);
	memset(text, ' ', sizeof text);
	for (int i = 0; i < 1400; i++)
		memcpy(text + i * 2, i ? ",1" : "[1", 2);
	text[2999] = ']';
	T_INT(json_read(&small, text, sizeof text, NULL, &v, &err), -CS_E_LIMIT);
	T_TRUE(strstr(err.msg, "more memory than is allowed"));
}

TEST(a_copy_shares_nothing)
{
	CS_ARENA_AUTO struct cs_arena to = CS_ARENA(1 << 20);
	struct cs_arena from = CS_ARENA(1 << 20), none = CS_ARENA(64);
	static const char text[] = "{\"a\":[1,2.5,{\"b\":\"c\"}],\"d\":null}";
	const struct json *v, *c;
	struct cs_err err;

	T_INT(json_read(&from, text, sizeof text - 1, NULL, &v, &err), 0);
	c = json_copy(&to, v);
	T_TRUE(!json_copy(&none, v));
	cs_arena_done(&none);
	cs_arena_done(&from);
	T_STR(written(c, false), text);
	T_STR(json_str(json_new_str(&to, "x", 1)), "x");
	T_STR(written(json_new_int(&to, INT64_MIN), false), "-9223372036854775808");
}

/* y_ must be read, n_ must be refused, i_ may be either; whatever is read comes back the same.
 * Keys that are there twice are allowed by the suite, and not by us. */
TEST(texts_of_the_public_suite)
{
	CS_BUF_AUTO struct cs_buf text = CS_BUF((size_t)4 << 20);
	const char *dir = t_data("json-parsing-test-suite/test_parsing");
	char path[8192];
	DIR *d = opendir(dir);
	int n = 0, bad = 0;

	T_TRUE(d);
	for (struct dirent *e; (e = readdir(d));) {
		const struct json *v;
		struct cs_err err;
		int r;

		if (!strstr(e->d_name, ".json"))
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		t_slurp(&text, path);
		r = json_read(&arena, cs_buf_text(&text), text.len, NULL, &v, &err);
		n++;
		if (strstr(e->d_name, "duplicated_key"))
			*e->d_name = 'n';
		if ((*e->d_name == 'y' && r) || (*e->d_name == 'n' && !r)) {
			t_note("%s: %s", e->d_name, r ? err.msg : "was read");
			bad++;
		}
		if (!r) {
			T_TRUE(json_equal(rd(written(v, false)), v));
			T_TRUE(json_equal(rd(written(v, true)), v));
		}
	}
	closedir(d);
	t_note("%d texts, %d wrong", n, bad);
	T_TRUE(n > 300);
	T_INT(bad, 0);
}
