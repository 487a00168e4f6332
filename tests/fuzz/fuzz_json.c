/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json.c - hostile bytes as JSON.
 *
 * What must hold of whatever is read: written in either way and read again it is the same value with the same hash, the
 * canonical text of that is the same text, and so is that of a copy. */
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again(struct cs_arena *a, const struct json *v, const struct cs_buf *canonical, const struct cs_buf *text)
{
	CS_BUF_AUTO struct cs_buf again = CS_BUF((size_t)64 << 20);
	const struct json *w;

	if (text->over || json_read(a, cs_buf_text(text), text->len, NULL, &w, NULL))
		abort();
	if (!json_equal(v, w) || json_hash(v, 42) != json_hash(w, 42))
		abort();
	json_write_canonical(&again, w);
	if (again.len != canonical->len || memcmp(again.data, canonical->data, again.len))
		abort();
}

static void numbers(const struct json *v)
{
	for (uint32_t i = 0; i + 1 < v->n; i++) {
		const struct json *x = &v->items[i], *y = &v->items[i + 1];

		if (!json_is(x, JSON_NUMBER) || !json_is(y, JSON_NUMBER))
			continue;
		if (json_number_cmp(x, y) != -json_number_cmp(y, x))
			abort();
		(void)json_number_multiple(x, y);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)256 << 20);
	CS_BUF_AUTO struct cs_buf text = CS_BUF((size_t)64 << 20), canonical = CS_BUF((size_t)64 << 20);
	const struct json *v, *copy;

	if (json_read(&a, (const char *)data, size, NULL, &v, NULL))
		return 0;
	json_write(&text, v);
	json_write_canonical(&canonical, v);
	same_again(&a, v, &canonical, &text);
	same_again(&a, v, &canonical, &canonical);
	copy = json_copy(&a, v);
	if (!copy || !json_equal(copy, v))
		abort();
	if (json_is(v, JSON_ARRAY))
		numbers(v);
	return 0;
}
