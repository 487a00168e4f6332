/* SPDX-License-Identifier: Apache-2.0 */
/* expand_brace.c - braces: alternatives become words. */
#include "shell/walk.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sh_part *brace_find(const struct sh_part *p)
{
	for (; p; p = p->next)
		if (p->kind == SH_BRACE)
			return p;
	return NULL;
}

/* Copies up to stop, behind *tail; the new tail. */
static struct sh_part **copy_until(struct walk *w, const struct sh_part *from, const struct sh_part *stop, struct sh_part **tail)
{
	for (; from && from != stop; from = from->next) {
		struct sh_part *c = keep_bytes(w->mem, sizeof *c);

		*c = *from;
		c->next = NULL;
		*tail = c;
		tail = &c->next;
	}
	return tail;
}

/* One end of {a..b}: a letter, or a number; how wide it makes all of them if it is filled up with zeros. */
struct end {
	long n;
	size_t width;
	bool letter, zeros;
};

static struct end sequence_end(const struct sh_word *word)
{
	const char *t = word->parts->text;
	struct end e = { .letter = isalpha((unsigned char)*t), .width = word->parts->len };

	e.n = e.letter ? (unsigned char)*t : strtol(t, NULL, 10);
	e.zeros = !e.letter && t[*t == '-'] == '0' && t[(*t == '-') + 1];
	return e;
}

/* {1..9}, {01..10..2}, {a..e} as the words that it stands for, one more than are looked at if there are so many.  NULL: bash would
 * read some of them again: between Z and a stand '`' and '\\'. */
static const struct sh_word *sequence_words(struct walk *w, const struct sh_part *brace)
{
	const struct end from = sequence_end(brace->words), to = sequence_end(brace->words->next);
	const struct sh_word *by = brace->words->next->next;
	long step = by ? labs(strtol(by->parts->text, NULL, 10)) : 1;
	size_t width = from.width > to.width ? from.width : to.width;
	struct sh_word *first = NULL, **tail = &first;
	char text[32];

	step = step ? step : 1;
	if ((from.letter && !islower((unsigned char)from.n) != !islower((unsigned char)to.n)) || width > 16)
		return NULL;
	for (long n = from.n, i = 0; (from.n <= to.n ? n <= to.n : n >= to.n) && i <= SHW_ALTERNATIVES; n += from.n <= to.n ? step : -step, i++) {
		struct sh_part *part = keep_bytes(w->mem, sizeof *part);
		struct sh_word *word = keep_bytes(w->mem, sizeof *word);
		int len = from.letter ? snprintf(text, sizeof text, "%c", (char)n) : snprintf(text, sizeof text, "%0*ld", from.zeros || to.zeros ? (int)width : 1, n);

		*part = (struct sh_part){ .kind = SH_LIT, .place = brace->place, .text = keep_text(w->mem, text, (size_t)len), .len = (size_t)len };
		*word = (struct sh_word){ .place = brace->place, .parts = part };
		*tail = word;
		tail = &word->next;
	}
	return first;
}

/* Each alternative in the place of the braces: "a{b,c}d" is "abd" "acd". */
void expand_braces(struct walk *w, struct state *s, const struct sh_word *word, const struct sh_part *brace, struct args *out, unsigned depth)
{
	const struct sh_word *alt = brace->sequence ? sequence_words(w, brace) : brace->words;
	bool all = alt != NULL && depth <= 8;
	unsigned n = 0;

	for (; all && alt; alt = alt->next) {
		struct sh_word one = { .place = word->place };
		struct sh_part **tail = &one.parts;

		all = ++n <= SHW_ALTERNATIVES && !spent(w);
		if (!all)
			break;
		tail = copy_until(w, word->parts, brace, tail);
		tail = copy_until(w, alt->parts, NULL, tail);
		(void)copy_until(w, brace->next, NULL, tail);
		if (brace_find(one.parts))
			expand_braces(w, s, &one, brace_find(one.parts), out, depth + 1);
		else if (one.parts) /* an empty alternative is no word */
			expand_word(w, s, &one, out);
	}
	if (!all) {
		args_add(w, out, (struct arg){ .text = keep_text(w->mem, "", 0), .known = SH_DYNAMIC, PLACE(w, word) });
		out->endless = true;
	}
}
