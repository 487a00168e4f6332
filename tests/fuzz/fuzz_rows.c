/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_rows.c - hostile bytes as rows, as the words of a command, and as programs for sed, awk and jq.
 *
 * Up to a NUL the input is rows; behind it are words, with the first byte of each saying what is known of it.  What must
 * hold: findings are of words that are there; UNKNOWN says why; rows that are not trusted take nothing away. */
#include "shell/table.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t words_of(char *text, size_t len, struct sh_arg *argv)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < WORDS; i += strlen(text + i) + 1) {
		char *w = text + i;
		size_t cut = strcspn(w, " \n");
		bool more = w[cut] != '\0';

		w[cut] = '\0';
		argv[n] = (struct sh_arg){ .text = w };
		if (*w == '\x01' || *w == '\x02' || *w == '\x03') {
			argv[n].known = (enum sh_known)*w;
			argv[n].text = w + 1;
		}
		n++;
		if (more && i + cut + 1 >= len)
			break;
	}
	return n;
}

static void check(const struct sh_table *t, const struct sh_arg *argv, size_t n, struct sh_findings *f)
{
	sh_table_apply(t, argv, n, f);
	for (size_t i = 0; i < f->n; i++) {
		const struct sh_finding *x = &f->v[i];

		if (x->arg >= n || x->end > n || !x->text || x->role == SH_ROLE_INERT || (x->role == SH_ROLE_UNKNOWN && (!x->why || !*x->why)) ||
		    (x->role == SH_ROLE_COMMAND && (x->arg >= x->end || !x->arg)) || (x->role == SH_ROLE_CODE && (!x->lang || !*x->lang)))
			abort();
		(void)strlen(x->text);
	}
	if (!n && !f->does)
		abort();
}

static void check_narrow(const struct sh_findings *base, const struct sh_findings *both)
{
	if ((base->does & ~both->does) || both->n < base->n)
		abort();
	for (size_t i = 0; i < base->n; i++)
		if (base->v[i].role != both->v[i].role || base->v[i].arg != both->v[i].arg)
			abort();
}

static void apply(const struct sh_table *narrow, const struct sh_table *trusted, const struct sh_arg *argv, size_t n)
{
	struct sh_findings base, f;

	check(sh_table_builtin(), argv, n, &base);
	if (narrow) {
		check(narrow, argv, n, &f);
		check_narrow(&base, &f);
		sh_findings_done(&f);
	}
	if (trusted) {
		check(trusted, argv, n, &f);
		sh_findings_done(&f);
	}
	sh_findings_done(&base);
}

static void programs(const char *text)
{
	enum sh_code_verdict (*const judges[])(const char *, size_t, struct sh_findings *) = { sh_sed_judge, sh_awk_judge, sh_jq_judge };

	for (size_t i = 0; i < 3; i++) {
		struct sh_findings f = { 0 };
		enum sh_code_verdict v = judges[i](text, 1, &f);

		if (v == SH_CODE_HARMLESS && f.n)
			abort();
		sh_findings_done(&f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sh_table *narrow = NULL, *trusted = NULL;
	struct cs_err err = { 0 };
	struct sh_arg argv[WORDS];
	char *text = malloc(size + 1);
	size_t rows, n;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	rows = strlen(text);
	programs(text);
	if (sh_table_extend(sh_table_builtin(), text, rows, "fuzz", /* trusted= */ false, &narrow, &err) < 0) {
		if (!err.code || strncmp(err.msg, "fuzz:", 5) != 0 || strchr(err.msg, '\n'))
			abort();
	} else if (sh_table_extend(sh_table_builtin(), text, rows, "fuzz", /* trusted= */ true, &trusted, NULL) < 0) {
		abort();
	}
	n = rows < size ? words_of(text + rows + 1, size - rows - 1, argv) : 0;
	apply(narrow, trusted, argv, n);
	/* Without rows: all of it as words. */
	n = words_of(text, size, argv);
	apply(narrow, trusted, argv, n);
	sh_table_free(narrow);
	sh_table_free(trusted);
	free(text);
	return 0;
}
