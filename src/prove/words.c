/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - strings, and what can be asked of them.
 *
 * In the search a string is an element of a sort of its own and a pattern is a
 * predicate on it.  Two patterns may exclude or imply one another; so before the
 * search all sets of patterns that some string fits are listed (combos.c), and only
 * those may occur.  After the search strings are found that fit what the model wants.
 */
#include "prove/internal.h"

#include <stdio.h>
#include <string.h>

bool enc_grow(struct enc *e, void **v, uint32_t n, uint32_t *cap, size_t size)
{
	void *more;

	if (n < *cap)
		return true;
	more = cs_arena_get(&e->arena, n ? n * 2 : 16, size);
	if (!more)
		return false;
	if (n)
		memcpy(more, *v, n * size);
	*v = more;
	*cap = n ? n * 2 : 16;
	return true;
}

/* ---- predicates ---- */

/* Enough to find an example; the monitor knows more about paths. */
static bool below(const char *s, const char *base)
{
	size_t n = strlen(base);

	while (n > 1 && base[n - 1] == '/')
		n--;
	return !strncmp(s, base, n) && (s[n] == '/' || !s[n]) && !strstr(s, "..");
}

bool pred_test(const struct pred *p, const char *s, size_t len)
{
	return p->pattern ? pattern_match(p->pattern, s, len) : below(s, p->under);
}

static bool same_pred(const struct pred *a, const struct pred *b)
{
	if (!a->pattern != !b->pattern)
		return false;
	return a->pattern ? !strcmp(pattern_text(a->pattern), pattern_text(b->pattern)) : !strcmp(a->under, b->under);
}

/* That a path lies below another is left open here: it is the monitor's to say. */
static void say_fact(struct enc *e, uint32_t pred, uint32_t word)
{
	const struct word *w = &e->words[word];
	bool holds = pred_test(&e->preds[pred], w->s, w->len);

	if (e->preds[pred].pattern)
		cs_buf_fmt(e->out, holds ? "(assert (P%u c%u))\n" : "(assert (not (P%u c%u)))\n", pred, word);
}

uint32_t pred_of(struct enc *e, struct pred p)
{
	uint32_t i = 0;

	while (i < e->n_preds && !same_pred(&e->preds[i], &p))
		i++;
	if (i < e->n_preds || !enc_grow(e, (void **)&e->preds, i, &e->cap_preds, sizeof p))
		return i;
	e->preds[e->n_preds++] = p;
	cs_buf_fmt(e->out, "(declare-fun P%u (S) Bool)\n", i);
	for (uint32_t w = 0; w < e->n_words; w++)
		say_fact(e, i, w);
	return i;
}

/* A pattern of our own making, such as ".*part.*". */
static struct pred own_pattern(struct enc *e, const char *text)
{
	struct pred p = { .pattern = NULL, .under = "" };

	for (uint32_t i = 0; i < e->n_preds; i++)
		if (e->preds[i].pattern && !strcmp(pattern_text(e->preds[i].pattern), text))
			return e->preds[i];
	if (pattern_compile(&e->arena, text, &p.pattern, NULL) < 0)
		p.under = x(e, "?%s", text); /* too long for a pattern: nothing is known of it */
	return p;
}

static void quote(struct cs_buf *b, const char *text)
{
	for (; *text; text++) {
		bool sign = !(*text & 0x80) && !(*text >= '0' && *text <= '9') && !(*text >= 'a' && *text <= 'z') && !(*text >= 'A' && *text <= 'Z');

		if (sign)
			cs_buf_char(b, '\\');
		cs_buf_char(b, *text);
	}
}

struct pred pred_part(struct enc *e, const char *part)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 16);

	cs_buf_str(&b, ".*");
	quote(&b, part);
	cs_buf_str(&b, ".*");
	return own_pattern(e, cs_buf_text(&b));
}

struct pred pred_rooted(struct enc *e)
{
	return own_pattern(e, "/.*");
}

/* As the monitor splits paths (eval_compare.c of the rules): nothing, and ~, are no place that is known. */
struct pred pred_relative(struct enc *e)
{
	return own_pattern(e, "[^/~].*");
}

struct pred pred_detour(struct enc *e)
{
	return own_pattern(e, "(.*/)?(\\.\\.?)?(/.*)?");
}

struct pred pred_below(struct enc *e, const char *base)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 16);

	quote(&b, base);
	cs_buf_str(&b, "(/.*)?");
	return own_pattern(e, cs_buf_text(&b));
}

bool pred_is_plain_path(const char *base)
{
	const char *part = base;

	if (!strcmp(base, "."))
		return true;
	if (*base == '~')
		return false;
	for (;; part++) {
		size_t n = strcspn(part, "/");

		if (!n || (part[0] == '.' && (n == 1 || (n == 2 && part[1] == '.'))))
			return false;
		part += n;
		if (!*part)
			return true;
	}
}

ex pred_holds(struct enc *e, uint32_t pred, ex string)
{
	return pred < e->n_preds ? x(e, "(P%u %s)", pred, string) : "false";
}

/* ---- words ---- */

ex word_of(struct enc *e, const char *s, size_t len)
{
	uint32_t i = 0;

	while (i < e->n_words && (e->words[i].len != len || memcmp(e->words[i].s, s, len)))
		i++;
	if (i < e->n_words)
		return x(e, "c%u", i);
	if (!enc_grow(e, (void **)&e->words, i, &e->cap_words, sizeof *e->words))
		return "false";
	e->words[e->n_words++] = (struct word){ .s = s, .len = len };
	cs_buf_fmt(e->out, "(declare-const c%u S)\n", i);
	for (uint32_t k = 0; k < i; k++)
		cs_buf_fmt(e->out, "(assert (not (= c%u c%u)))\n", k, i);
	for (uint32_t p = 0; p < e->n_preds; p++)
		say_fact(e, p, i);
	return x(e, "c%u", i);
}

/* ---- which patterns go together ---- */

static void write_combo(const struct enc *e, struct cs_buf *b, uint64_t bits)
{
	uint32_t k = 0;

	cs_buf_str(b, " (and true");
	for (uint32_t i = 0; i < e->n_preds; i++)
		if (e->preds[i].pattern)
			cs_buf_fmt(b, bits >> k++ & 1 ? " (P%u x)" : " (not (P%u x))", i);
	cs_buf_char(b, ')');
}

void words_settle(struct enc *e)
{
	struct cs_buf can CS_BUF_AUTO = CS_BUF(8 << 20);

	if (!e->n_preds || !combos_find(e)) /* not all of them are known: then any may occur, and the monitor looks at the outcome */
		return;
	for (uint32_t i = 0; i < e->n_combos; i++)
		write_combo(e, &can, e->combos[i].bits);
	if (can.over)
		return;
	cs_buf_fmt(e->out, "(define-fun okS ((x S)) Bool (or false%s))\n", cs_buf_text(&can));
	e->settled = true;
}

void words_constrain(struct enc *e, ex string)
{
	if (e->settled)
		x_assert(e, x(e, "(okS %s)", string));
}

/* ---- strings for a model ---- */

static bool fits(const struct enc *e, const bool *holds, const char *s, const struct word *taken, size_t n_taken)
{
	for (uint32_t i = 0; i < e->n_preds; i++)
		if (pred_test(&e->preds[i], s, strlen(s)) != holds[i])
			return false;
	for (uint32_t i = 0; i < e->n_words; i++)
		if (!strcmp(e->words[i].s, s))
			return false;
	for (size_t i = 0; i < n_taken; i++)
		if (!strcmp(taken[i].s, s))
			return false;
	return true;
}

/* One character of an example changed, or one more: most patterns have many strings that are alike. */
static const char *like_example(struct enc *e, const char *example, const bool *holds, const struct word *taken, size_t n_taken)
{
	static const char letters[] = "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0_-./@";
	size_t n = strlen(example);
	char *s = cs_arena_get(&e->arena, 1, n + 2);

	if (!s)
		return NULL;
	for (size_t at = n + 1; at-- > 0;)
		for (const char *c = letters; *c; c++) {
			memcpy(s, example, n + 1);
			s[at] = *c;
			if (fits(e, holds, s, taken, n_taken))
				return s;
		}
	return NULL;
}

static const char *from_examples(struct enc *e, const bool *holds, const struct word *taken, size_t n_taken)
{
	for (uint32_t i = 0; i < e->n_combos; i++) {
		const char *example = e->combos[i].example;
		bool same = example != NULL;

		for (uint32_t k = 0, bit = 0; k < e->n_preds; k++)
			if (e->preds[k].pattern)
				same &= (e->combos[i].bits >> bit++ & 1) == holds[k];
		if (same)
			return fits(e, holds, example, taken, n_taken) ? example : like_example(e, example, holds, taken, n_taken);
	}
	return NULL;
}

const char *word_find(struct enc *e, const bool *holds, const struct word *taken, size_t n_taken)
{
	/* Short ones first: a trace is read by people. */
	for (unsigned i = 0; i < n_taken + e->n_words + 32; i++) {
		char plain[32] = { (char)('a' + i % 26) };

		if (i >= 26)
			snprintf(plain + 1, sizeof plain - 1, "%u", i / 26);
		if (fits(e, holds, plain, taken, n_taken))
			return cs_arena_dup(&e->arena, plain, strlen(plain));
	}
	for (uint32_t p = 0; p < e->n_preds; p++)
		for (size_t i = 0; holds[p] && e->preds[p].under && i < n_taken + 4; i++) {
			ex path = x(e, "%s/%zu", strcmp(e->preds[p].under, "/") ? e->preds[p].under : "", i);

			if (fits(e, holds, path, taken, n_taken))
				return path;
		}
	return from_examples(e, holds, taken, n_taken);
}
