/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_text.c - untrusted names on their way to a terminal or into JSON: no control byte, no bidi or
 * zero-width character, no invalid UTF-8 comes out. */
#include "base/json.h"
#include "base/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_harmless(const char *s)
{
	char *copy = strdup(s);

	cs_blunt(copy);
	if (!copy || strcmp(copy, s))
		abort();
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), small[16];
	struct cs_buf out = CS_BUF(1 << 22), json = CS_BUF(1 << 22);
	struct cs_json j;
	uint64_t n;
	double d;

	memcpy(text, data, size);
	text[size] = 0;
	cs_escape(&out, text);
	must_be_harmless(cs_buf_text(&out));
	cs_escape_to(small, sizeof small, text);
	cs_json_begin(&j, &json, false);
	cs_json_array(&j, NULL);
	cs_json_str(&j, NULL, text);
	cs_json_end(&j, ']');
	if (json.len < 5 || memcmp(json.data, "[\"", 2) || memcmp(json.data + json.len - 3, "\"]\n", 3))
		abort();
	(void)cs_parse_size(text, &n);
	(void)cs_parse_duration(text, &n);
	(void)cs_parse_cpus(text, &d);
	(void)cs_glob("*.pem", text);
	cs_buf_done(&out);
	cs_buf_done(&json);
	free(text);
	return 0;
}
