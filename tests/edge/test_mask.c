/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/mem.h"
#include "egress/edge/mask.h"
#include "harness/t.h"

#include <time.h>

static struct secret secret(const char *value)
{
	return (struct secret){ .value = cs_strdup(value), .value_len = strlen(value) };
}

static struct mask *mask_of(const char *value)
{
	struct secret *s = cs_new(struct secret);
	const struct secret *list[] = { s };

	*s = secret(value);
	return mask_new(list, 1);
}

/* In pieces of every size, and in place. */
static void masks(const char *value, const char *text, const char *want)
{
	struct mask *m = mask_of(value);
	size_t n = strlen(text), matches = strcmp(text, want) ? 1 : 0;
	char *copy = cs_strdup(text);

	for (size_t piece = 1; piece <= n; piece++) {
		CS_BUF_AUTO struct cs_buf out = CS_BUF(1 << 20);
		size_t found = 0;

		for (size_t i = 0; i < n; i += piece)
			found += mask_feed(m, text + i, n - i < piece ? n - i : piece, i + piece >= n, &out);
		T_STR(cs_buf_text(&out), want);
		T_INT(found, matches);
		T_INT(out.len, n);
	}
	T_INT(mask_text(m, copy, n), matches);
	T_STR(copy, want);
	free(copy);
	mask_free(m);
}

struct row {
	const char *name, *value, *text, *want;
};

static const struct row rows[] = {
	{ "as_it_is", "hunter2-secret", "x hunter2-secret y", "x ************** y" },
	{ "at_both_ends", "hunter2-secret", "hunter2-secret", "**************" },
	{ "nearly_is_left_alone", "hunter2-secret", "hunter2-secreT hunter2-secre", "hunter2-secreT hunter2-secre" },
	{ "percent_in_either_case", "a/b?c&d=", "q=a%2fb%3Fc%26d%3d.", "q=****************." },
	{ "percent_of_letters_too", "abcdefgh", "%61b%63%64efg%68", "****************" },
	{ "percent_broken_off_is_left", "abcdefgh", "%61b%63%64efg%6", "%61b%63%64efg%6" },
	{ "plus_for_a_space", "two words here", "q=two+words%20here&", "q=****************&" },
	{ "json_slash_quote_backslash", "a/b\"c\\d+e", "{\"k\":\"a\\/b\\\"c\\\\d+e\"}", "{\"k\":\"************\"}" },
	{ "json_u_of_ascii", "a<b>c&d'e", "\"a\\u003cb\\u003Ec\\u0026d\\u0027e\"", "\"*****************************\"" },
	{ "json_u_of_two_bytes", "pässwörd", "\"p\\u00e4ssw\\u00F6rd\"", "\"******************\"" },
	{ "json_u_of_three_bytes", "price\xe2\x82\xac" "1", "price\\u20ac1", "************" },
	{ "json_u_of_a_pair", "smile\xf0\x9f\x98\x80!!", "\"smile\\ud83d\\uDE00!!\"", "\"*******************\"" },
	{ "json_half_a_pair_is_left", "smile\xf0\x9f\x98\x80!!", "smile\\ud83d!!", "smile\\ud83d!!" },
	{ "json_u_of_single_bytes", "pässwörd", "p\\u00c3\\u00a4sswörd", "********************" },
	{ "forms_mixed", "a/b/c/d/e", "a%2Fb\\/c/d\\u002fe", "*****************" },
	{ "a_percent_of_its_own", "50%25off!", "x50%25off!x", "x*********x" },
	{ "a_percent_of_its_own_escaped", "50%25off!", "x50%2525off!x", "x***********x" },
	{ "a_backslash_of_its_own", "C:\\u0041bc", "C:\\u0041bc C:\\", "********** C:\\" },
	{ "a_backslash_of_its_own_escaped", "C:\\u0041bc", "\"C:\\\\u0041bc\"", "\"***********\"" },
	{ "overlapping_matches", "abababab", "xababababababx", "x************x" },
	{ "a_false_start_before_it", "aaaaaaab", "aaaaaaaaaaaab", "aaaaa********" },
	{ "a_run_longer_than_it", "aaaaaaaa", "baaaaaaaaaaab", "b***********b" },
	/* printf 'hunter2-secret' | base64 */
	{ "base64", "hunter2-secret", "aHVudGVyMi1zZWNyZXQ=", "*******************=" },
	{ "base64_without_padding", "hunter2-secret", "aHVudGVyMi1zZWNyZXQ", "*******************" },
	/* printf 'u:hunter2-secret', 'xu:hunter2-secret!', 'uu:hunter2-secret!!' */
	{ "base64_after_two_bytes", "hunter2-secret", "Basic dTpodW50ZXIyLXNlY3JldA==", "Basic dT********************==" },
	{ "base64_after_three_bytes", "hunter2-secret", "eHU6aHVudGVyMi1zZWNyZXQh", "eHU6*******************h" },
	{ "base64_after_one_byte", "hunter2-secret", "Omh1bnRlcjItc2VjcmV0", "O*******************" },
	{ "base64_in_lines", "hunter2-secret", "aHVudGVy\r\nMi1zZW\nNyZXQ=\r\n", "**********************=\r\n" },
	{ "base64_in_escaped_lines", "hunter2-secret", "\"aHVudGVy\\r\\nMi1zZW\\nNyZXQ=\\n\"", "\"*************************=\\n\"" },
	{ "base64_across_an_empty_line_is_left", "hunter2-secret", "aHVudGVy\n\nMi1zZWNyZXQ=", "aHVudGVy\n\nMi1zZWNyZXQ=" },
	{ "base64_either_alphabet", "\xfb\xff\xbf\xfb\xff\xbf\xfb\xff", "+/+/+/+/+/8 ", "*********** " },
	{ "base64url", "\xfb\xff\xbf\xfb\xff\xbf\xfb\xff", "-_-_-_-_-_8.", "***********." },
	{ "base64_escaped", "\xfb\xff\xbf\xfb\xff\xbf\xfb\xff", "%2B%2f+\\/\\u002B/+\\u002F+/8", "**************************" },
	{ "hex_in_either_case", "hunter2-secret", "0x68756e746572322d736563726574", "0x****************************" },
	{ "hex_upper", "hunter2-secret", "68756E746572322D736563726574 ", "**************************** " },
};

static void check_row(const void *arg)
{
	const struct row *r = arg;

	masks(r->value, r->text, r->want);
}

TEST_TABLE(rows_of_forms)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		t_add(rows[i].name, check_row, &rows[i]);
}

static size_t fed(struct mask *m, const char *text, bool last)
{
	CS_BUF_AUTO struct cs_buf out = CS_BUF(1 << 20);

	mask_feed(m, text, strlen(text), last, &out);
	return out.len;
}

TEST(an_event_is_passed_on_at_once)
{
	struct mask *m = mask_of("hunter2-secret");

	T_INT(fed(m, "data: ping\n\n", false), 12);
	T_INT(fed(m, "data: hO\n\n", false), 10); /* O may begin base64, a line end may be within */
	T_INT(fed(m, "data: hO\r\n\r\n", false), 12);
	T_INT(fed(m, "data: hunter2\n\n", false), 15);
	T_INT(fed(m, "x hunter2", false), 2);
	T_INT(fed(m, "-secret.", false), 15);
	mask_free(m);
}

TEST(what_was_held_back_comes_with_the_last)
{
	struct mask *m = mask_of("hunter2-secret");

	T_INT(fed(m, "hunter2-", false), 0);
	T_INT(fed(m, "", true), 8);
	T_INT(fed(m, "secret", true), 6);
	mask_free(m);
}

TEST(a_header_can_be_masked_while_a_stream_is_held)
{
	char text[] = "t=hunter2-secret";
	struct mask *m = mask_of("hunter2-secret");

	T_INT(fed(m, "hunter2-", false), 0);
	T_INT(mask_text(m, text, strlen(text)), 1);
	T_STR(text, "t=**************");
	T_INT(fed(m, "secret.", false), 15);
	mask_free(m);
}

TEST(several_secrets_that_overlap)
{
	struct secret a = secret("token-AAAA"), b = secret("AAAA-other"), c = secret("token-AAAA-other-more");
	const struct secret *list[] = { &a, &b, &c };
	struct mask *m = mask_new(list, 3);
	char text[] = "x token-AAAA-other y token-AAAA-other-more";

	T_INT(mask_text(m, text, strlen(text)), 2);
	T_STR(text, "x **************** y *********************");
	mask_free(m);
}

TEST(without_secrets_everything_passes)
{
	struct mask *m = mask_new(NULL, 0);

	T_INT(fed(m, "hunter2-secret %2", false), 17);
	mask_free(m);
}

TEST(a_full_output_gets_nothing_of_what_was_held)
{
	struct mask *m = mask_of("hunter2-secret");
	CS_BUF_AUTO struct cs_buf out = CS_BUF(12);

	T_INT(mask_feed(m, "hunter2-", 8, false, &out), 0);
	T_INT(mask_feed(m, "secreX", 6, false, &out), 0);
	T_TRUE(out.over);
	T_INT(out.len, 0);
	mask_free(m);
}

static double seconds(struct mask *m, const char *text, size_t n)
{
	CS_BUF_AUTO struct cs_buf out = CS_BUF(64 << 20);
	struct timespec a, b;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	for (size_t i = 0; i < n; i += 16384)
		mask_feed(m, text + i, n - i < 16384 ? n - i : 16384, i + 16384 >= n, &out);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	T_INT(out.len, n);
	return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* What is hostile: a long run of what the secret begins with.  Twice the text must not take four times as long. */
TEST(time_is_linear_in_the_input)
{
	enum { N = 1 << 18 };
	char *text = cs_calloc(4 * N, 1), value[513] = { 0 };
	struct mask *m;
	double one, four;

	memset(text, 'a', 4 * N);
	memset(value, 'a', sizeof value - 1);
	memset(value + 480, 'b', 32);
	m = mask_of(value);
	one = seconds(m, text, N / 64);
	four = seconds(m, text, N / 16);
	t_note("%.1f and %.1f ms", one * 1e3, four * 1e3);
	T_TRUE(four < one * 10 + 0.2);
	mask_free(m);
}
