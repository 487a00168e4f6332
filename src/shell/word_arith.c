/* SPDX-License-Identifier: Apache-2.0 */
/* word_arith.c - arithmetic: as written, and the expansions in it. */
#include "shell/word.h"

/* One expansion within an expression, as a word of its own. */
static void expression_part(struct reader *r, struct sh_word ***tail)
{
	size_t from = r->s.pos;
	struct sh_word *w;
	struct build b;

	wd_start(&b);
	r->late++; /* bash counts parentheses here, and looks at ${..} later */
	wd_expand(r, &b, true);
	r->late--;
	w = wd_finish(r, &b, from);
	if (!w || w->parts->kind == SH_QUOTED)
		return;
	**tail = w;
	*tail = &w->next;
}

static void refuse_parens(struct reader *r, size_t from)
{
	if (rd_peek(r, from + 1) != '{')
		return;
	for (size_t i = from; i < r->s.pos; i++)
		if (strchr("()'\"\\", r->s.t[i]))
			rd_fail(r, CS_E_UNSUPPORTED, i, "a quote or parenthesis within ${ in arithmetic");
}

const char *rd_arith(struct reader *r, const char *close, struct sh_word **ret_words)
{
	size_t from = r->s.pos, depth = 0, at;
	char open = *close == ')' ? '(' : '[';
	bool quoted = false;
	const char *text;
	int c;

	rd_enter(r);
	for (;;) {
		at = r->s.pos;
		c = rd_peek(r, at);
		if (c < 0)
			rd_fail(r, CS_E_INVALID, from, "no closing %s of arithmetic", close);
		if (c == '\\') {
			int next = rd_peek(r, at + 1);

			if (next == '$' || next == '`')
				rd_fail(r, CS_E_UNSUPPORTED, at, "a backslash in arithmetic may not protect what follows");
			r->s.pos += next < 0 ? 1 : 2;
			continue;
		}
		if (c == '$' && (rd_after(r, at + 1, NULL) == '\'' || rd_after(r, at + 1, NULL) == '"') && !quoted)
			rd_fail(r, CS_E_UNSUPPORTED, at, "$' or $\" in arithmetic");
		if (c == '$' || c == '`') {
			expression_part(r, &ret_words);
			refuse_parens(r, at);
			continue;
		}
		if (c == '\'' && !quoted) {
			const char *end = memchr(r->s.t + at + 1, '\'', r->s.end - at - 1);
			size_t len = end ? (size_t)(end - r->s.t) - at : 0;

			if (!end)
				rd_fail(r, CS_E_INVALID, at, "no closing '");
			if (memchr(r->s.t + at, '$', len) || memchr(r->s.t + at, '`', len))
				rd_fail(r, CS_E_UNSUPPORTED, at, "' ' in arithmetic may not protect what is in it");
			r->s.pos = at + len + 1;
			continue;
		}
		if (c == '"') {
			quoted = !quoted;
		} else if (!quoted && c == open) {
			depth++;
		} else if (!quoted && c == *close) {
			if (!depth)
				break;
			depth--;
		}
		r->s.pos++;
	}
	text = rd_copy(r, r->s.t + from, at - from);
	if (strncmp(r->s.t + at, close, r->s.end - at < strlen(close) ? r->s.end - at : strlen(close)) != 0)
		rd_fail(r, CS_E_UNSUPPORTED, at, "where arithmetic ends is not certain");
	r->s.pos = at + strlen(close);
	rd_leave(r);
	return text;
}
