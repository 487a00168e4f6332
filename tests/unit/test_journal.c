/* SPDX-License-Identifier: Apache-2.0 */
/* Journals and heads that are damaged: every bit, every length, other versions. */
#include "harness/t.h"
#include "txn/internal.h"

#include <fcntl.h>

struct bytes {
	char data[8192];
	size_t n;
};

static void slurp(int dir, const char *name, struct bytes *b)
{
	int fd = openat(dir, name, O_RDONLY);
	ssize_t n = read(fd, b->data, sizeof b->data);

	T_TRUE(fd >= 0 && n > 0 && (size_t)n < sizeof b->data);
	b->n = (size_t)n;
	close(fd);
}

static void make_journal(struct bytes *b)
{
	static char xattrs[] = "user.a\0\3\0\0\0abc";
	int dir = open(t_tmpdir(), O_RDONLY | O_DIRECTORY);
	struct journal j = { .part = 1, .calm = true, .after = { 5, 6 } };
	struct cs_err err = { 0 };

	for (int k = STEP_PUT; k < STEP_KIND_MAX; k++) {
		struct step *s = journal_add(&j, (enum step_kind)k, k == STEP_META ? "." : "some/path");

		s->was = (struct step_file){ 11, 12, { 13, 14 } };
		s->is = (struct step_file){ 21, 22, { 23, 24 } };
		if (k != STEP_META)
			continue;
		s->old = (struct step_meta){ .mode = 0755, .xattrs = cs_strdup("") };
		s->new = (struct step_meta){ .mode = 0700, .xattrs = cs_calloc(1, sizeof xattrs), .xattrs_len = sizeof xattrs - 1 };
		memcpy(s->new.xattrs, xattrs, sizeof xattrs);
	}
	T_INT(journal_write(dir, JOURNAL, &j, &err), 0);
	slurp(dir, JOURNAL, b);
	journal_done(&j);
	close(dir);
}

/* In memory of exactly that size, so that a sanitizer sees a read past the end. */
static int parse(const struct bytes *b, size_t n, struct cs_err *err)
{
	char *exact = malloc(n ? n : 1);
	struct journal j;
	int r;

	memcpy(exact, b->data, n);
	*err = (struct cs_err){ 0 };
	r = journal_parse(exact, n, &j, err);
	if (r == 0)
		journal_done(&j);
	free(exact);
	return r;
}

TEST(a_journal_with_any_bit_turned_is_refused)
{
	struct bytes b;
	struct cs_err err;

	make_journal(&b);
	T_INT(parse(&b, b.n, &err), 0);
	for (size_t i = 0; i < b.n * 8; i++) {
		b.data[i / 8] ^= (char)(1 << i % 8);
		if (parse(&b, b.n, &err) == 0)
			T_FAIL("bit %zu of byte %zu can be turned", i % 8, i / 8);
		T_TRUE(strstr(err.msg, "journal") != NULL);
		b.data[i / 8] ^= (char)(1 << i % 8);
	}
	t_note("%zu bytes, %zu turned bits", b.n, b.n * 8);
}

TEST(a_journal_cut_at_any_length_or_with_more_behind_it_is_refused)
{
	struct bytes b;
	struct cs_err err;

	make_journal(&b);
	for (size_t n = 0; n < b.n; n++)
		T_TRUE(parse(&b, n, &err) < 0 && err.msg[0]);
	T_TRUE(parse(&b, b.n + 1, &err) < 0);
}

TEST(a_journal_of_another_version_is_said_to_be_one)
{
	struct bytes b;
	struct cs_err err;

	make_journal(&b);
	b.data[7] = '2';
	T_INT(parse(&b, b.n, &err), -CS_E_UNSUPPORTED);
	T_TRUE(strstr(err.msg, "another version") != NULL);
}

/* ---- heads ---- */

static void make_head(struct bytes *b)
{
	int dir = open(t_tmpdir(), O_RDONLY | O_DIRECTORY);
	struct txn t = { .dir = dir, .ws = -1, .head = openat(dir, "head", O_RDWR | O_CREAT, 0600) };
	struct cs_err err = { 0 };

	strcpy(t.about.id, "t-abcd");
	t.about.workspace = cs_strdup("/some/where");
	t.about.profile = cs_strdup("default");
	t.about.command = cs_strdup("make");
	cs_strv_add(&t.about.protect, ".git/hooks");
	t.about.ino = 4711;
	T_INT(head_write(&t, &err), 0);
	head_stamp(&t);
	slurp(dir, "head", b);
	txn_about_done(&t.about);
	close(t.head);
	close(dir);
}

static int parse_head(const struct bytes *b, size_t n, struct txn *t, struct cs_err *err)
{
	char *exact = malloc(n ? n : 1);
	int r;

	memcpy(exact, b->data, n);
	*t = (struct txn){ .dir = -1 };
	*err = (struct cs_err){ 0 };
	r = head_parse(exact, n, t, err);
	free(exact);
	return r;
}

TEST(a_head_with_any_bit_turned_is_refused_or_has_no_start)
{
	struct bytes b;
	struct cs_err err;
	struct txn t;
	size_t body, slack = 0;

	make_head(&b);
	T_INT(parse_head(&b, b.n, &t, &err), 0);
	T_TRUE(t.start.stamp.sec != 0);
	txn_about_done(&t.about);
	body = b.n - 64;
	for (size_t i = 0; i < b.n * 8; i++) {
		int r;

		b.data[i / 8] ^= (char)(1 << i % 8);
		r = parse_head(&b, b.n, &t, &err);
		if (i / 8 < body) {
			T_TRUE(r < 0 && err.msg[0]);
		} else {
			T_INT(r, 0);
			T_STR(t.about.workspace, "/some/where");
			slack += t.start.stamp.sec != 0; /* behind the start: nobody reads it */
		}
		txn_about_done(&t.about);
		b.data[i / 8] ^= (char)(1 << i % 8);
	}
	T_TRUE(slack <= (64 - offsetof(struct txn_start, crc) - 4) * 8);
}

TEST(a_head_cut_at_any_length_is_refused_or_has_no_start)
{
	struct bytes b;
	struct cs_err err;
	struct txn t;

	make_head(&b);
	for (size_t n = 0; n < b.n; n++) {
		if (parse_head(&b, n, &t, &err) == 0)
			T_TRUE(n >= b.n - 64 && t.start.stamp.sec == 0);
		txn_about_done(&t.about);
	}
	b.data[7] = '2';
	T_INT(parse_head(&b, b.n, &t, &err), -CS_E_UNSUPPORTED);
	T_TRUE(strstr(err.msg, "another version") != NULL);
}
