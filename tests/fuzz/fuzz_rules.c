/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_rules.c - hostile bytes as a rules file, and as a pattern.
 *
 * What must hold: an error names the file and is one line; what was read is
 * printed, and the print is read as the same; every rule can be told; numbers for
 * the monitor are where the tree says.  Tools come from the caller as well, for
 * the printed form has no declarations. */
#include "rules/internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const struct cs_err *err)
{
	if (!err->code || strncmp(err->msg, "fuzz:", 5) != 0 || strchr(err->msg, '\n'))
		abort();
}

static void check_numbers(const struct rules *r)
{
	for (uint32_t i = 0; i < r->n_pasts; i++)
		if (r->pasts[i].formula->id != i || r->pasts[i].n_vars > RL_MAX_VARS)
			abort();
	for (uint32_t i = 0; i < r->n_kept; i++)
		if (r->kept[i].term->id != i || r->kept[i].n_vars > RL_MAX_VARS)
			abort();
}

static void check_told(const struct rules *r)
{
	for (uint32_t i = 0; i < r->n_rules && i < 64; i++) {
		CS_BUF_AUTO struct cs_buf b = CS_BUF(4 << 20);

		if (rules_explain(r, r->rules[i].name, &b, NULL) < 0 && b.len)
			abort();
	}
}

/* Sets are not printed: a file that names them is not read again. */
static bool names_sets(const char *text)
{
	return strstr(text, "set") != NULL;
}

static void check_again(const struct rules *r, const char *text)
{
	CS_BUF_AUTO struct cs_buf first = CS_BUF(8 << 20), second = CS_BUF(8 << 20);
	struct rules *again = NULL;
	struct cs_err err = { 0 };

	rl_print(r, &first);
	if (first.over || first.len > RL_MAX_TEXT || names_sets(text))
		return;
	if (rules_load("fuzz", cs_buf_text(&first), first.len, r->tools, r->n_tools, &again, &err) < 0)
		abort();
	rl_print(again, &second);
	if (first.len != second.len || memcmp(first.data ? first.data : "", second.data ? second.data : "", first.len) != 0)
		abort();
	if (again->n_pasts != r->n_pasts || again->n_kept != r->n_kept)
		abort();
	rules_free(again);
}

static void pattern(const char *text)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA(16 << 20);
	CS_BUF_AUTO struct cs_buf smt = CS_BUF(4 << 20);
	const struct pattern *p = NULL;
	struct cs_err err = { 0 };

	if (pattern_compile(&a, text, &p, &err) < 0) {
		if (!err.code || p)
			abort();
		return;
	}
	if (strcmp(pattern_text(p), text) != 0)
		abort();
	pattern_match(p, text, strlen(text));
	pattern_smt(p, &smt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rules *r = NULL;
	struct cs_err err = { 0 };
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (size < 4096)
		pattern(text);
	if (rules_load("fuzz", text, size, NULL, 0, &r, &err) < 0) {
		check_error(&err);
	} else {
		check_numbers(r);
		check_told(r);
		check_again(r, text);
		rules_free(r);
	}
	free(text);
	return 0;
}
