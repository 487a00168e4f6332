/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_shell.c - hostile bytes as a script.  What is read must be the same after printing and reading again, what is printed
 * twice must be the same text, and places must be within the script. */
#include "base/buf.h"
#include "shell/syntax.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_place(struct sh_place p, size_t size)
{
	if (p.at > size || p.len > size - p.at)
		abort();
}

static void check_words(const struct sh_word *w, size_t size)
{
	for (; w; w = w->next) {
		check_place(w->place, size);
		for (const struct sh_part *p = w->parts; p; p = p->next) {
			check_place(p->place, size);
			if (p->text && strlen(p->text) != p->len)
				abort();
			check_words(p->words, size);
		}
	}
}

static void check_commands(const struct sh_command *c, size_t size)
{
	for (; c; c = c->next) {
		check_place(c->place, size);
		check_words(c->words, size);
		check_commands(c->child, size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cs_buf a = CS_BUF(64 << 20), b = CS_BUF(64 << 20);
	struct sh_script *s = NULL, *t = NULL;
	struct cs_err err = { 0 };
	uint32_t at = 0;

	if (sh_parse((const char *)data, size, &s, &at, &err) < 0) {
		if (!err.code || !*err.msg || at > size)
			abort();
		return 0;
	}
	check_commands(s->first, size);
	if (!sh_same(s, s))
		abort();
	sh_print(s, &a);
	/* as printed it may be longer than a script can be, or nest once more */
	if (sh_parse(cs_buf_text(&a), a.len, &t, &at, &err) < 0) {
		if (err.code != CS_E_LIMIT)
			abort();
	} else {
		if (!sh_same(s, t))
			abort();
		sh_print(t, &b);
		if (a.len != b.len || memcmp(cs_buf_text(&a), cs_buf_text(&b), a.len) != 0)
			abort();
	}
	sh_free(s);
	sh_free(t);
	cs_buf_done(&a);
	cs_buf_done(&b);
	return 0;
}
