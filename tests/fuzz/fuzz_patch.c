/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_patch.c - two texts of any bytes.  The first byte chooses the context, the next two where the first
 * text ends.  The exact patch turns the one into the other; the escaped one can do nothing to a terminal. */
#include "base/text.h"
#include "harness/unpatch.h"
#include "txn/txn.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_turn_into(const char *a, size_t a_len, const char *b, size_t b_len, unsigned context)
{
	const struct txn_patch_opts o = { .context = context };
	struct cs_buf patch = CS_BUF(64 << 20), out = CS_BUF(64 << 20);
	struct txn_lines n = txn_patch(&patch, a, a_len, b, b_len, &o);
	size_t added, removed;

	if (!unpatch(&out, a, a_len, cs_buf_text(&patch), patch.len, &added, &removed))
		abort();
	if (out.len != b_len || (b_len && memcmp(out.data, b, b_len)) || n.added != added || n.removed != removed)
		abort();
	cs_buf_done(&patch);
	cs_buf_done(&out);
}

/* Line by line, because a line's end and a TAB are all that may act. */
static void must_be_harmless(const char *a, size_t a_len, const char *b, size_t b_len)
{
	const struct txn_patch_opts o = { .context = 3, .escape = true };
	struct cs_buf patch = CS_BUF(64 << 20);

	(void)txn_patch(&patch, a, a_len, b, b_len, &o);
	if (patch.over || (patch.len && strlen(patch.data) != patch.len))
		abort();
	for (char *line = patch.data, *next; line && *line; line = next) {
		CS_BUF_AUTO struct cs_buf was = CS_BUF(64 << 20);

		next = strchr(line, '\n');
		if (!next)
			abort();
		*next++ = 0;
		for (char *p = line; *p; p++)
			if (*p == '\t')
				*p = ' ';
		cs_buf_str(&was, line);
		cs_blunt(line);
		if (strcmp(cs_buf_text(&was), line) || !strchr(" +-@\\", *line))
			abort();
	}
	cs_buf_done(&patch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t cut;
	char *a, *b;

	if (size < 3)
		return 0;
	cut = ((size_t)data[1] << 8 | data[2]) % (size - 2);
	size -= 3;
	a = malloc(cut ? cut : 1); /* apart, so that reading past an end is seen */
	b = malloc(size - cut ? size - cut : 1);
	memcpy(a, data + 3, cut);
	memcpy(b, data + 3 + cut, size - cut);
	must_turn_into(a, cut, b, size - cut, data[0] % 8);
	must_be_harmless(a, cut, b, size - cut);
	(void)txn_is_binary(a, cut);
	free(a);
	free(b);
	return 0;
}
