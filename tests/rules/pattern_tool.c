/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_tool.c - patterns and strings in, answers out: for test_pattern.py.
 *
 * Lines of standard input, in hexadecimal so that any character may be there:
 * `p HEX` a pattern, answered by `ok TERM` (its SMT-LIB form) or `no WHY`; then any
 * number of `s HEX`, answered by 1 or 0. */
#include "rules/pattern.h"

#include <stdio.h>
#include <string.h>

static size_t unhex(const char *s, char *out)
{
	size_t n = 0;
	unsigned v;

	for (; sscanf(s, "%2x", &v) == 1; s += 2)
		out[n++] = (char)v;
	out[n] = '\0';
	return n;
}

int main(void)
{
	static char line[1 << 16], text[1 << 15];
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA(64 << 20);
	const struct pattern *p = NULL;

	while (fgets(line, sizeof line, stdin)) {
		size_t n = unhex(line + 2, text);

		if (line[0] == 'p') {
			CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 20);
			struct cs_err err = { 0 };

			cs_arena_reset(&a);
			p = NULL;
			if (pattern_compile(&a, text, &p, &err) < 0) {
				printf("no %s\n", err.msg);
				continue;
			}
			pattern_smt(p, &b);
			printf("ok %s\n", cs_buf_text(&b));
		} else {
			printf("%d\n", p && pattern_match(p, text, n));
		}
	}
	return 0;
}
