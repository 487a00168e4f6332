/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_journal.c - the journal and the head of a transaction, as found after a crash or on a disk that
 * forgets: whatever the bytes, they are refused or every step is one that may be taken.
 *
 * A checksum keeps a fuzzer out, so an input that starts with 'F' has its checksums made right first:
 * the head's, and that of every frame that is whole. */
#include "base/crc.h"
#include "txn/internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(char *at, uint32_t v)
{
	memcpy(at, &v, sizeof v);
}

static void make_right(char *p, size_t n)
{
	uint32_t len;

	if (n < 48)
		return;
	put(p + 44, cs_crc32c(0, p, 44));
	for (size_t at = 48; at + 8 <= n; at += 8 + len) {
		memcpy(&len, p + at, sizeof len);
		if (len > n - at - 8)
			return;
		put(p + at + 4, cs_crc32c(0, p + at + 8, len));
	}
}

static void make_head_right(char *p, size_t n)
{
	uint32_t len;

	if (n < 16)
		return;
	memcpy(&len, p + 8, sizeof len);
	if (len <= n - 16)
		put(p + 12, cs_crc32c(0, p + 16, len));
}

static void judge(const struct journal *j)
{
	for (size_t i = 0; i < j->n; i++) {
		const struct step *s = &j->v[i];
		const char *p = s->path;

		if (!s->path || !*s->path || s->path[0] == '/' || s->kind < STEP_PUT || s->kind >= STEP_KIND_MAX)
			abort();
		for (; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
			if (!strncmp(p, "../", 3) || !strcmp(p, "..") || *p == '/' || !*p)
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool fix = size && data[0] == 'F';
	char *copy = malloc(size + 1);
	struct cs_err err = { 0 };
	struct journal j;
	struct txn t = { .dir = -1 };

	memcpy(copy, data + fix, size - fix);
	size -= fix;
	if (fix)
		make_right(copy, size);
	if (journal_parse(copy, size, &j, &err) == 0) {
		judge(&j);
		journal_done(&j);
	} else if (!err.code || !err.msg[0]) {
		abort();
	}
	if (fix)
		make_head_right(copy, size);
	if (head_parse(copy, size, &t, NULL) == 0 && (!t.about.workspace || t.about.workspace[0] != '/'))
		abort();
	txn_about_done(&t.about);
	free(copy);
	return 0;
}
