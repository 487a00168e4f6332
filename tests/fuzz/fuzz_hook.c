/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hook.c - what a client gives its hook.  The first byte chooses the client.  It is refused, or has what an event of
 * its kind needs; and the answer is one line of JSON, which never allows what was denied. */
#include "cli/hook.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer(enum hook_client c, const struct hook_event *e, enum rules_verdict v)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(64 << 20);
	struct cs_arena a CS_ARENA_AUTO = CS_ARENA(256 << 20);
	struct hook_answer said = { .verdict = v, .args = v == RULES_SANDBOX ? e->args : NULL, .rewritten = v == RULES_SANDBOX };
	struct hook_style style = { 0 };
	const struct json *read;

	snprintf(said.reason, sizeof said.reason, "%s", e->tool ? e->tool : "");
	hook_write(c, &style, e, &said, &out);
	if (!out.len)
		return;
	if (memchr(out.data, '\n', out.len) != out.data + out.len - 1 || json_read(&a, out.data, out.len, NULL, &read, NULL) < 0)
		abort();
	if (v == RULES_DENY && (strstr(out.data, "\"permissionDecision\":\"allow\"") || strstr(out.data, "\"verdict\":\"allow\"")))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cs_arena a CS_ARENA_AUTO = CS_ARENA(256 << 20);
	enum hook_client c = size ? (enum hook_client)(data[0] % 3) : HOOK_CLAUDE_CODE;
	struct hook_event e;

	if (!size || hook_parse(c, &a, (const char *)data + 1, size - 1, &e, NULL) < 0)
		return 0;
	if (!e.name || !e.session || !*e.session || (e.kind == HOOK_CALL && (!e.tool || !json_is(e.args, JSON_OBJECT))) ||
	    (e.kind == HOOK_USER && !json_is(e.text, JSON_STRING)))
		abort();
	for (enum rules_verdict v = RULES_ALLOW; v <= RULES_DENY; v++)
		answer(c, &e, v);
	return 0;
}
