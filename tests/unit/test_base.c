/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint64_t seed = 88172645463325252ull;
static uint64_t chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* ---- err ---- */

TEST(an_error_holds_code_errno_and_words)
{
	struct cs_err err = { 0 };

	T_INT(cs_fail(&err, CS_E_NOT_FOUND, ENOENT, "open '%s'", "x"), -CS_E_NOT_FOUND);
	T_INT(err.code, CS_E_NOT_FOUND);
	T_INT(err.sys, ENOENT);
	T_STR(err.msg, "open 'x': No such file or directory");
	T_INT(cs_fail(&err, CS_E_INVALID, 0, "plain"), -CS_E_INVALID);
	T_STR(err.msg, "plain");
	T_INT(cs_wrap(&err, -CS_E_INVALID, "while %s", "testing"), -CS_E_INVALID);
	T_STR(err.msg, "while testing: plain");
	T_INT(err.code, CS_E_INVALID);
	T_INT(cs_fail(NULL, CS_E_LIMIT, EIO, "nobody reads this"), -CS_E_LIMIT);
	T_INT(cs_wrap(NULL, -CS_E_LIMIT, "nor this"), -CS_E_LIMIT);
	(void)cs_fail(&err, CS_E_SYSTEM, 99999, "odd"); /* what no C library has words for */
	T_TRUE(!strncmp(err.msg, "odd: ", 5) && err.msg[5]);
}

TEST(a_long_message_is_cut_and_stays_a_string)
{
	static char text[4096];
	struct cs_err err = { 0 };

	memset(text, 'x', sizeof text - 1);
	(void)cs_fail(&err, CS_E_SYSTEM, EIO, "%s", text);
	T_INT(strlen(err.msg), sizeof err.msg - 1);
	(void)cs_wrap(&err, -1, "outer");
	T_TRUE(!strncmp(err.msg, "outer: xxx", 10));
	T_INT(strlen(err.msg), sizeof err.msg - 1);
	(void)cs_wrap(&err, -1, "%s", text);
	T_INT(strlen(err.msg), sizeof err.msg - 1);
	for (size_t n = sizeof err.msg - 6; n < sizeof err.msg + 3; n++) {
		(void)cs_fail(&err, CS_E_SYSTEM, 0, "inner");
		(void)cs_wrap(&err, -1, "%.*s", (int)n, text);
		T_TRUE(strlen(err.msg) < sizeof err.msg);
	}
}

TEST(every_code_has_a_name_and_an_exit_status)
{
	for (int c = 0; c < CS_CODE_MAX; c++) {
		T_TRUE(cs_code_name((enum cs_code)c) && *cs_code_name((enum cs_code)c));
		T_TRUE(cs_code_http((enum cs_code)c) >= 200);
		T_TRUE(cs_code_exit((enum cs_code)c) != 77);
		for (int d = 0; d < c; d++)
			T_TRUE(strcmp(cs_code_name((enum cs_code)c), cs_code_name((enum cs_code)d)) != 0);
	}
	T_INT(cs_code_exit(CS_E_NOEXEC), 126);
	T_INT(cs_code_exit(CS_E_NOCMD), 127);
	T_INT(cs_code_exit(CS_E_DENIED), 125);
	T_STR(cs_code_name(CS_CODE_MAX), "unknown");
	T_INT(cs_code_exit((enum cs_code)1000), 125);
}

/* ---- buf ---- */

TEST(a_buffer_takes_up_to_its_maximum_and_not_a_byte_more)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(10);

	T_STR(cs_buf_text(&b), "");
	cs_buf_str(&b, "12345");
	cs_buf_fmt(&b, "%d", 67890);
	T_TRUE(!b.over);
	T_STR(cs_buf_text(&b), "1234567890");
	cs_buf_char(&b, 'x');
	T_TRUE(b.over);
	T_INT(b.len, 10);
	cs_buf_add(&b, "", 0);
	T_STR(cs_buf_text(&b), "1234567890");
}

TEST(a_buffer_that_is_over_stays_over)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(4), none CS_BUF_AUTO = CS_BUF(0);

	cs_buf_str(&b, "12345");
	T_TRUE(b.over);
	cs_buf_str(&b, "1");
	T_STR(cs_buf_text(&b), "");
	cs_buf_add(&none, "", 0);
	T_TRUE(!none.over);
	cs_buf_char(&none, 'x');
	T_TRUE(none.over);
	cs_buf_add(&b, "x", SIZE_MAX);
	T_TRUE(b.over);
}

TEST(a_buffer_keeps_bytes_of_every_value)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 20);

	for (int i = 0; i < 100000; i++)
		cs_buf_char(&b, (char)i);
	T_INT(b.len, 100000);
	for (int i = 0; i < 100000; i++)
		T_INT((unsigned char)b.data[i], i & 255);
	T_INT(b.data[b.len], 0);
}

TEST(reading_a_file_stops_at_the_maximum)
{
	struct cs_buf small CS_BUF_AUTO = CS_BUF(1000), large CS_BUF_AUTO = CS_BUF(1 << 20);
	struct cs_err err = { 0 };
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	T_INT(cs_buf_read_fd(&small, fd, "zero", &err), -CS_E_LIMIT);
	T_STR(err.msg, "'zero' is larger than 1000 bytes");
	T_INT(cs_buf_read_fd(&large, null, "null", &err), 0);
	T_INT(large.len, 0);
	T_INT(cs_buf_read_fd(&large, -1, "none", &err), -CS_E_SYSTEM);
	T_INT(cs_write_all(open("/dev/full", O_WRONLY | O_CLOEXEC), "x", 1), -ENOSPC);
	T_INT(cs_write_all(-1, "x", 1), -EBADF);
	T_INT(cs_write_all(-1, "", 0), 0);
}

/* ---- strv ---- */

TEST(a_vector_grows_and_ends_with_null)
{
	struct cs_strv a = { 0 }, b = { 0 };

	for (int i = 0; i < 1000; i++) {
		cs_strv_take(&a, cs_printf("%d", i));
		T_TRUE(a.v[a.n] == NULL);
	}
	T_STR(a.v[999], "999");
	T_TRUE(cs_strv_has(&a, "500") && !cs_strv_has(&a, "1000") && !cs_strv_has(&b, "0"));
	cs_strv_copy(&b, &a);
	cs_strv_done(&a);
	T_INT(a.n, 0);
	T_STR(b.v[0], "0");
	cs_strv_done(&b);
	cs_strv_done(&b);
}

/* ---- escape ---- */

static void escapes(const char *text, const char *wanted)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(4096);

	cs_escape(&b, text);
	T_STR(cs_buf_text(&b), wanted);
}

TEST(escaping_leaves_plain_text_alone)
{
	escapes("", "");
	escapes("a b 'c' \"d\" $e `f`", "a b 'c' \"d\" $e `f`");
	escapes("gr\xc3\xbc\xc3\x9f \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80");
}

TEST(escaping_makes_control_bytes_harmless)
{
	escapes("\033[31mred\033]0;t\007", "\\x1b[31mred\\x1b]0;t\\x07");
	escapes("a\nb\tc\rd\be\177", "a\\nb\\tc\\x0dd\\x08e\\x7f");
	escapes("back\\slash \\n", "back\\\\slash \\\\n");
	escapes("\xc2\x9b" "31m", "\\u{9b}31m"); /* CSI as one character */
	escapes("\x9b" "31m", "\\x9b31m");
}

TEST(escaping_shows_what_turns_or_hides_text)
{
	static const unsigned codes[] = { 0x61c, 0xad, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d,
					  0x202e, 0x2060, 0x2061, 0x2066, 0x2067, 0x2068, 0x2069, 0x206f, 0xfeff, 0xfff9, 0xfffb, 0xe0001, 0xe0041, 0x85 };

	for (size_t i = 0; i < COUNT(codes); i++) {
		unsigned c = codes[i];
		char text[5] = { 0 }, wanted[16];

		if (c < 0x800)
			text[0] = (char)(0xc0 | c >> 6), text[1] = (char)(0x80 | (c & 63));
		else if (c < 0x10000)
			text[0] = (char)(0xe0 | c >> 12), text[1] = (char)(0x80 | (c >> 6 & 63)), text[2] = (char)(0x80 | (c & 63));
		else
			text[0] = (char)(0xf0 | c >> 18), text[1] = (char)(0x80 | (c >> 12 & 63)), text[2] = (char)(0x80 | (c >> 6 & 63)),
			text[3] = (char)(0x80 | (c & 63));
		snprintf(wanted, sizeof wanted, "\\u{%x}", c);
		escapes(text, wanted);
	}
}

TEST(escaping_shows_bytes_that_are_not_utf8)
{
	escapes("\xff\xfe", "\\xff\\xfe");
	escapes("\xc3", "\\xc3");
	escapes("\xc3(", "\\xc3(");
	escapes("\xc0\xaf", "\\xc0\\xaf");             /* overlong / */
	escapes("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	escapes("\xed\xa0\x80", "\\xed\\xa0\\x80");    /* a surrogate */
	escapes("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* past U+10FFFF */
	escapes("\xf0\x9f\x98", "\\xf0\\x9f\\x98");
	escapes("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
}

TEST(no_escaped_text_holds_a_byte_that_acts)
{
	for (int i = 0; i < 200000; i++) {
		char text[24];
		struct cs_buf b CS_BUF_AUTO = CS_BUF(4096);
		size_t n = chance() % (sizeof text - 1);

		for (size_t k = 0; k < n; k++)
			text[k] = (char)(chance() % 3 ? 0x80 | (chance() & 0x7f) : chance());
		text[n] = 0;
		cs_escape(&b, text);
		for (size_t k = 0; k < b.len; k++)
			if ((unsigned char)b.data[k] < 0x20 || b.data[k] == 0x7f)
				T_FAIL("byte 0x%02x came through", (unsigned char)b.data[k]);
		T_TRUE(!strstr(cs_buf_text(&b), "\xe2\x80\xae") && !strstr(cs_buf_text(&b), "\xc2\x9b"));
	}
}

TEST(escaping_into_an_array_is_cut_with_dots)
{
	char d[10], tiny[3], exact[6];

	T_STR(cs_escape_to(d, sizeof d, "short"), "short");
	T_STR(cs_escape_to(d, sizeof d, "123456789"), "123456789");
	T_STR(cs_escape_to(d, sizeof d, "1234567890"), "123456...");
	T_STR(cs_escape_to(exact, sizeof exact, "\n\n\n\n"), "\\n...");
	T_TRUE(strlen(cs_escape_to(tiny, sizeof tiny, "abcdef")) < sizeof tiny);
}

/* ---- numbers ---- */

TEST(sizes_in_every_spelling)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "0", 0 }, { "1", 1 }, { "4096", 4096 }, { "64M", 64 << 20 }, { "64m", 64 << 20 }, { "64MB", 64 << 20 }, { "64MiB", 64 << 20 },
		     { "2GiB", 2ull << 30 }, { "1.5g", 3ull << 29 }, { "1k", 1024 }, { "1KB", 1024 }, { "1B", 1 }, { "1b", 1 }, { "3T", 3ull << 40 },
		     { "0.5K", 512 }, { "1.", 1 }, { "4194303T", 4194303ull << 40 } };
	static const char *const bad[] = { "", " ", "-1", "+1", " 1", "1 ", "1 M", "M", ".5M", "1.2.3", "1e3", "0x10", "nan", "inf", "1MM", "1Mi2", "1iB",
					   "1P", "4194304T", "99999999999999999999T", "1111111111111111111111111111111111111", "1Ki\n", "1,5M", "\xd9\xa1" };
	uint64_t v;

	for (size_t i = 0; i < COUNT(good); i++) {
		v = 42;
		if (cs_parse_size(good[i].text, &v) != 0 || v != good[i].bytes)
			T_FAIL("'%s' is %llu", good[i].text, (unsigned long long)v);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		v = 42;
		if (cs_parse_size(bad[i], &v) >= 0)
			T_FAIL("'%s' is taken as %llu", bad[i], (unsigned long long)v);
		T_INT(v, 42);
	}
}

TEST(durations_in_every_unit)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = { { "0", 0 }, { "1", 1000 }, { "250ms", 250 }, { "1s", 1000 }, { "1.5s", 1500 }, { "10m", 600000 }, { "10min", 600000 }, { "2h", 7200000 },
		     { "1d", 86400000 }, { "0.5ms", 1 }, { "0.4ms", 0 }, { "0.001", 1 } };
	static const char *const bad[] = { "", "s", "-1s", "1 s", "1S", "1M", "1sec", "1ss", "1e3s", "infs", "0x1s", "1h30m", "99999999999999999d", "1.1.1s" };
	uint64_t v;

	for (size_t i = 0; i < COUNT(good); i++) {
		v = 42;
		if (cs_parse_duration(good[i].text, &v) != 0 || v != good[i].ms)
			T_FAIL("'%s' is %llu ms", good[i].text, (unsigned long long)v);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		if (cs_parse_duration(bad[i], &v) >= 0)
			T_FAIL("'%s' is taken", bad[i]);
}

TEST(cpus_and_counts)
{
	static const char *const bad[] = { "", "0", "0.009", "-1", "nan", "inf", "1x", "1 ", "8193", "1e2", ".5", "0x2" };
	double d;
	uint64_t v;

	T_INT(cs_parse_cpus("0.01", &d), 0);
	T_TRUE(fabs(d - 0.01) < 1e-12);
	T_INT(cs_parse_cpus("1.5", &d), 0);
	T_TRUE(fabs(d - 1.5) < 1e-12);
	T_INT(cs_parse_cpus("8192", &d), 0);
	for (size_t i = 0; i < COUNT(bad); i++)
		if (cs_parse_cpus(bad[i], &d) >= 0)
			T_FAIL("'%s' is taken", bad[i]);
	T_INT(cs_parse_u64("18446744073709551615", &v), 0);
	T_TRUE(v == UINT64_MAX);
	T_INT(cs_parse_u64("18446744073709551616", &v), -ERANGE);
	T_INT(cs_parse_u64("", &v), -EINVAL);
	T_INT(cs_parse_u64("-1", &v), -EINVAL);
	T_INT(cs_parse_u64("1x", &v), -EINVAL);
	T_INT(cs_parse_u64(" 1", &v), -EINVAL);
	T_INT(cs_parse_u64("007", &v), 0);
	T_INT(v, 7);
}

TEST(a_locale_with_a_comma_changes_nothing)
{
	uint64_t v;

	(void)setlocale(LC_ALL, "de_DE.UTF-8"); /* where there is none, the test proves little, and passes */
	T_INT(cs_parse_size("1.5K", &v), 0);
	T_INT(v, 1536);
}

TEST(formatted_sizes_and_durations_read_back_as_the_same)
{
	char text[32];
	uint64_t v;

	cs_format_size(text, sizeof text, 3ull << 29);
	T_STR(text, "1.5GiB");
	cs_format_size(text, sizeof text, 0);
	T_STR(text, "0B");
	cs_format_size(text, sizeof text, 1023);
	T_STR(text, "1023B");
	cs_format_duration(text, sizeof text, 90000);
	T_STR(text, "90s");
	cs_format_duration(text, sizeof text, 1500);
	T_STR(text, "1500ms");
	cs_format_duration(text, sizeof text, 0);
	T_STR(text, "0s");
	cs_format_size(text, sizeof text, UINT64_MAX);
	T_TRUE(strlen(text) < sizeof text);
	for (int i = 0; i < 100000; i++) {
		uint64_t ms = chance() % 10 ? chance() % 100000000 : chance() % 1000 * 60000;
		uint64_t size = (1 + chance() % 1023) << 10 * (chance() % 5);

		cs_format_duration(text, sizeof text, ms);
		if (cs_parse_duration(text, &v) != 0 || v != ms)
			T_FAIL("%llu ms is '%s'", (unsigned long long)ms, text);
		cs_format_size(text, sizeof text, size);
		if (cs_parse_size(text, &v) != 0 || v != size)
			T_FAIL("%llu bytes is '%s'", (unsigned long long)size, text);
	}
}

/* ---- nearest ---- */

TEST(the_nearest_word_is_suggested_and_a_far_one_is_not)
{
	static const char *const words[] = { "memory", "timeout", "pids", "workspace", "workspace-mode", "ro", "rw", "json" };
	const size_t n = COUNT(words);

	T_STR(cs_nearest("memroy", words, n), "memory");
	T_STR(cs_nearest("Memory", words, n), "memory");
	T_STR(cs_nearest("timout", words, n), "timeout");
	T_STR(cs_nearest("pid", words, n), "pids");
	T_STR(cs_nearest("jsno", words, n), "json");
	T_STR(cs_nearest("workspacemode", words, n), "workspace-mode");
	T_TRUE(cs_nearest("zzzzzzzz", words, n) == NULL);
	T_TRUE(cs_nearest("", words, n) == NULL || strlen(cs_nearest("", words, n)) <= 1);
	T_TRUE(cs_nearest("memory", words, 0) == NULL);
	T_TRUE(cs_nearest("a-word-that-is-much-longer-than-any-option-could-ever-be-in-here", words, n) == NULL);
}

/* ---- glob ---- */

TEST(globs_match_as_fnmatch_does)
{
	static const char alphabet[] = "ab.*?[]!-\\/a", plain[] = "ab.-]/[";
	unsigned hits = 0;

	for (int i = 0; i < 1500000; i++) {
		char pattern[9], name[9];
		size_t np = chance() % 8, nn = chance() % 8;

		for (size_t k = 0; k < np; k++)
			pattern[k] = alphabet[chance() % (sizeof alphabet - 1)];
		for (size_t k = 0; k < nn; k++)
			name[k] = plain[chance() % (sizeof plain - 1)];
		pattern[np] = name[nn] = 0;
		if (cs_glob(pattern, name) != (fnmatch(pattern, name, 0) == 0))
			T_FAIL("pattern '%s', name '%s': %d", pattern, name, cs_glob(pattern, name));
		hits += cs_glob(pattern, name);
	}
	T_TRUE(hits > 1000);
}

TEST(globs_of_the_kind_that_people_write)
{
	T_TRUE(cs_glob("*.pem", "a.pem") && cs_glob("*.pem", ".pem") && !cs_glob("*.pem", "a.pem.txt") && !cs_glob("*.pem", "pem"));
	T_TRUE(cs_glob(".env.*", ".env.local") && !cs_glob(".env.*", ".env"));
	T_TRUE(cs_glob("service-account*.json", "service-account.json") && cs_glob("service-account*.json", "service-account-1.json"));
	T_TRUE(!cs_glob("ab*ba", "aba") && cs_glob("ab*ba", "abba"));
	T_TRUE(cs_glob("id_rsa", "id_rsa") && !cs_glob("id_rsa", "id_rsa.pub"));
	T_TRUE(cs_glob("LC_*", "LC_ALL") && !cs_glob("LC_*", "LANG"));
	T_TRUE(cs_glob("*", "") && cs_glob("", "") && !cs_glob("", "x"));
	T_TRUE(cs_glob("x[0-9]", "x5") && !cs_glob("x[!0-9]", "x5"));
}

/* ---- json: a small checker of the grammar, so that "valid" is not our own word for it ---- */

static const char *value(const char *p, int depth);

static const char *space(const char *p)
{
	return p + strspn(p, " \n\r\t");
}

static const char *string(const char *p)
{
	if (*p++ != '"')
		return NULL;
	while (*p != '"') {
		unsigned char c = (unsigned char)*p;
		size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;

		if (c < 0x20 || !n)
			return NULL;
		if (c == '\\') {
			if (p[1] == 'u' && strspn(p + 2, "0123456789abcdefABCDEF") >= 4)
				p += 6;
			else if (p[1] && strchr("\"\\/bfnrt", p[1]))
				p += 2;
			else
				return NULL;
			continue;
		}
		for (size_t i = 1; i < n; i++)
			if (((unsigned char)p[i] & 0xc0) != 0x80)
				return NULL;
		p += n;
	}
	return p + 1;
}

static const char *list(const char *p, char close, bool keys, int depth)
{
	p = space(p + 1);
	if (*p == close)
		return p + 1;
	for (;;) {
		if (keys) {
			p = string(space(p));
			if (!p || *(p = space(p)) != ':')
				return NULL;
			p++;
		}
		p = value(p, depth + 1);
		if (!p)
			return NULL;
		p = space(p);
		if (*p == close)
			return p + 1;
		if (*p++ != ',')
			return NULL;
	}
}

static const char *value(const char *p, int depth)
{
	size_t n;

	p = space(p);
	if (depth > 64)
		return NULL;
	if (*p == '{' || *p == '[')
		return list(p, *p == '{' ? '}' : ']', *p == '{', depth);
	if (*p == '"')
		return string(p);
	for (int i = 0; i < 3; i++) {
		static const char *const words[] = { "true", "false", "null" };

		if (!strncmp(p, words[i], strlen(words[i])))
			return p + strlen(words[i]);
	}
	n = strspn(p, "-+.0123456789eE");
	return n ? p + n : NULL;
}

static void valid(const struct cs_buf *b)
{
	const char *end = value(cs_buf_text(b), 0);

	if (!end || *space(end) || strlen(cs_buf_text(b)) != b->len)
		T_FAIL("not JSON: %s", cs_buf_text(b));
}

TEST(json_of_every_kind_of_value)
{
	for (int pretty = 0; pretty < 2; pretty++) {
		struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 16);
		struct cs_json j;

		cs_json_begin(&j, &b, pretty);
		cs_json_object(&j, NULL);
		cs_json_str(&j, "s", "a\"b\\c\n\t\033\177");
		cs_json_str(&j, "none", NULL);
		cs_json_u64(&j, "u", UINT64_MAX);
		cs_json_i64(&j, "i", INT64_MIN);
		cs_json_num(&j, "n", 1.5);
		cs_json_bool(&j, "t", true);
		cs_json_null(&j, "z");
		cs_json_array(&j, "empty");
		cs_json_end(&j, ']');
		cs_json_object(&j, "o");
		cs_json_end(&j, '}');
		cs_json_array(&j, "a");
		cs_json_str(&j, NULL, "x");
		cs_json_object(&j, NULL);
		cs_json_bool(&j, "f", false);
		cs_json_end(&j, '}');
		cs_json_end(&j, ']');
		cs_json_end(&j, '}');
		valid(&b);
		if (!pretty)
			T_STR(cs_buf_text(&b), "{\"s\":\"a\\\"b\\\\c\\u000a\\u0009\\u001b\\u007f\",\"none\":null,\"u\":18446744073709551615,"
					       "\"i\":-9223372036854775808,\"n\":1.5,\"t\":true,\"z\":null,\"empty\":[],\"o\":{},"
					       "\"a\":[\"x\",{\"f\":false}]}\n");
	}
}

TEST(json_of_any_bytes_is_valid)
{
	for (int i = 0; i < 100000; i++) {
		struct cs_buf b CS_BUF_AUTO = CS_BUF(4096);
		struct cs_json j;
		char key[12], text[24];
		size_t nk = chance() % sizeof key, nt = chance() % sizeof text;

		for (size_t k = 0; k < nk; k++)
			key[k] = (char)(chance() % 4 ? 0x80 | chance() : chance());
		for (size_t k = 0; k < nt; k++)
			text[k] = (char)(chance() % 4 ? 0x80 | chance() : chance());
		key[nk ? nk - 1 : 0] = text[nt ? nt - 1 : 0] = 0;
		cs_json_begin(&j, &b, i & 1);
		cs_json_object(&j, NULL);
		cs_json_str(&j, key, text);
		cs_json_end(&j, '}');
		valid(&b);
	}
}

TEST(json_numbers_that_json_does_not_have)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY, 1e300, -0.0 };

	for (size_t i = 0; i < COUNT(odd); i++) {
		struct cs_buf b CS_BUF_AUTO = CS_BUF(256);
		struct cs_json j;

		cs_json_begin(&j, &b, false);
		cs_json_array(&j, NULL);
		cs_json_num(&j, NULL, odd[i]);
		cs_json_end(&j, ']');
		valid(&b);
	}
}

TEST(json_that_is_too_deep_or_too_long_says_so)
{
	struct cs_buf deep CS_BUF_AUTO = CS_BUF(1 << 16), small CS_BUF_AUTO = CS_BUF(8);
	struct cs_json j;

	cs_json_begin(&j, &deep, false);
	for (int i = 0; i < 100; i++)
		cs_json_array(&j, NULL);
	for (int i = 0; i < 100; i++)
		cs_json_end(&j, ']');
	T_TRUE(deep.over);
	cs_json_begin(&j, &small, false);
	cs_json_array(&j, NULL);
	cs_json_str(&j, NULL, "longer than that");
	cs_json_end(&j, ']');
	T_TRUE(small.over);
}

/* ---- sha256: the examples of FIPS 180-4 ---- */

static const char *sha256_of(const char *text, size_t len)
{
	static char hex[CS_SHA256_HEX];
	uint8_t hash[CS_SHA256_SIZE];

	cs_sha256(text, len, hash);
	return cs_sha256_hex(hash, hex);
}

TEST(sha256_of_the_standards_examples)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	static char million[1000000];
	struct cs_sha256 h;
	uint8_t hash[CS_SHA256_SIZE];
	char hex[CS_SHA256_HEX];

	memset(million, 'a', sizeof million);
	T_STR(sha256_of("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	T_STR(sha256_of("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	T_STR(sha256_of(two, sizeof two - 1), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	T_STR(sha256_of(million, sizeof million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	cs_sha256_init(&h);
	for (size_t at = 0, n = 1; at < sizeof million; at += n, n = n * 3 % 977) {
		if (n > sizeof million - at)
			n = sizeof million - at;
		cs_sha256_add(&h, million + at, n);
	}
	cs_sha256_end(&h, hash);
	T_STR(cs_sha256_hex(hash, hex), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	cs_sha256_add(&h, "abc", 3); /* it starts anew */
	cs_sha256_end(&h, hash);
	T_STR(cs_sha256_hex(hash, hex), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
