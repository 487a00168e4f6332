/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_schema.c - hostile bytes as a schema and a value, one line each.
 *
 * What must hold: a verdict is the same with and without a report; a report has words exactly if the value does not validate,
 * and they are printable; where the schema compiles, so does it when it was written and read again, and means the same. */
#include "schema/schema.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_words(const struct schema_report *rep)
{
	for (unsigned i = 0; i < rep->n; i++) {
		const struct schema_failure *f = &rep->failures[i];

		if (!*f->message || strlen(f->message) >= sizeof f->message)
			abort();
		for (const char *p = f->message; *p; p++)
			if ((unsigned char)*p < 0x20 || *p == 0x7f)
				abort();
	}
}

static bool verdict(const struct schema *s, const struct json *v)
{
	struct schema_report rep = { .steps = 20000 };
	bool ok = schema_validate(s, v, &rep);

	if (ok != (rep.n == 0) || (ok && rep.too_costly))
		abort();
	check_words(&rep);
	/* With a larger budget a verdict changes only if there was none. */
	if (!rep.too_costly && schema_validate(s, v, NULL) != ok)
		abort();
	return ok;
}

static struct schema *again(struct cs_arena *a, const struct json *doc, const struct schema_options *o)
{
	CS_BUF_AUTO struct cs_buf text = CS_BUF((size_t)16 << 20);
	const struct json *copy;
	struct schema *s;

	json_write(&text, doc);
	if (json_read(a, cs_buf_text(&text), text.len, NULL, &copy, NULL) || schema_compile(copy, o, &s, NULL))
		abort();
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)64 << 20);
	const uint8_t *line = memchr(data, '\n', size);
	struct schema_options o = { .formats = true };
	const struct json *doc, *v;
	struct schema *s, *t;
	struct cs_err err;

	if (!line || json_read(&a, (const char *)data, (size_t)(line - data), NULL, &doc, NULL) ||
	    json_read(&a, (const char *)line + 1, size - (size_t)(line - data) - 1, NULL, &v, NULL))
		return 0;
	if (schema_compile(doc, &o, &s, &err)) {
		if (!*err.msg)
			abort();
		return 0;
	}
	t = again(&a, doc, &o);
	if (verdict(s, v) != verdict(t, v))
		abort();
	schema_free(s);
	schema_free(t);
	return 0;
}
