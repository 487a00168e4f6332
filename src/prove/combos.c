/* SPDX-License-Identifier: Apache-2.0 */
/* combos.c - which patterns a string can fit at once, and a shortest string for each set of them.
 *
 * All patterns are run side by side over all strings: a state is, for every pattern, the set of
 * places it may be in; characters that no pattern tells apart are one.  There are few such
 * states for the patterns people write, and where there are too many the answer is "not known".
 *
 * Rejected: asking a solver that knows strings.  Two patterns with a bounded repetition take Z3
 * seconds, and this takes it microseconds. */
#include "prove/internal.h"
#include "rules/pattern_internal.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { STATES_MAX = 20000, CHARS_MAX = 160, BYTES_MAX = 64 << 20 };

struct product {
	const struct pattern *patterns[64];
	uint32_t n;
	uint32_t words;       /* of a state: one bit per place of every pattern */
	uint32_t first[64];   /* bit of a pattern's first place */
	uint32_t chars[CHARS_MAX];
	uint32_t n_chars;
	uint64_t *states;     /* STATES_MAX times words, as they are found */
	uint32_t *parent;
	uint32_t *by;         /* the character that led here */
	uint32_t n_states;
	uint32_t *heads, *next; /* hash table */
};

/* ---- characters ---- */

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* One of [lo, hi]: a letter or digit if there is one, else something that can be printed. */
static uint32_t speaker(uint32_t lo, uint32_t hi)
{
	static const char nice[] = "abcdefghijklmnopqrstuvwxyz1234567890ABCDEFGHIJKLMNOPQRSTUVWXYZ_-./@:#";

	for (const char *c = nice; *c; c++)
		if ((uint32_t)*c >= lo && (uint32_t)*c <= hi)
			return (uint32_t)*c;
	for (uint32_t c = 0x21; c < 0x7f; c++)
		if (c >= lo && c <= hi)
			return c;
	return lo >= 0xd800 && lo < 0xe000 ? 0xe000 : lo ? lo : 1;
}

static int by_niceness(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int nx = (x >= 'a' && x <= 'z') ? 0 : (x >= '0' && x <= '9') ? 1 : x > 0x20 && x < 0x7f ? 2 : 3;
	int ny = (y >= 'a' && y <= 'z') ? 0 : (y >= '0' && y <= '9') ? 1 : y > 0x20 && y < 0x7f ? 2 : 3;

	return nx != ny ? nx - ny : (x > y) - (x < y);
}

static bool add_cut(uint32_t *cuts, uint32_t *n, uint32_t c)
{
	for (uint32_t i = 0; i < *n; i++)
		if (cuts[i] == c)
			return true;
	if (*n == CHARS_MAX || c > PAT_MAX_CHAR)
		return c > PAT_MAX_CHAR;
	cuts[(*n)++] = c;
	return true;
}

static bool add_cuts(const struct pattern *p, uint32_t *cuts, uint32_t *n)
{
	for (uint32_t s = 0; s < p->n; s++) {
		const struct pat_node *read = p->states[s].op == PAT_READ ? p->states[s].read : NULL;

		for (uint32_t k = 0; read && k < read->n; k++)
			if (!add_cut(cuts, n, read->ranges[k].lo) || !add_cut(cuts, n, read->ranges[k].hi + 1))
				return false;
	}
	return true;
}

/* Where some class begins or ends the characters may differ; between two such places they do not. */
static bool find_chars(struct product *p)
{
	uint32_t cuts[CHARS_MAX] = { 0 }, n = 1;

	for (uint32_t i = 0; i < p->n; i++)
		if (!add_cuts(p->patterns[i], cuts, &n))
			return false;
	qsort(cuts, n, sizeof *cuts, by_value);
	for (uint32_t i = 0; i < n; i++)
		p->chars[p->n_chars++] = speaker(cuts[i], i + 1 < n ? cuts[i + 1] - 1 : PAT_MAX_CHAR);
	qsort(p->chars, p->n_chars, sizeof *p->chars, by_niceness);
	return true;
}

/* ---- states ---- */

static bool has(const uint64_t *s, uint32_t bit)
{
	return s[bit / 64] >> bit % 64 & 1;
}

/* Reaches a place and what follows it without a character. Places are few, so the depth is. */
static void enter(const struct product *p, uint32_t pattern, uint32_t at, uint64_t *s)
{
	uint16_t stack[PAT_MAX_STATES * 2];
	uint32_t depth = 0;

	stack[depth++] = (uint16_t)at;
	while (depth) {
		const struct pat_state *st;
		uint32_t bit;

		at = stack[--depth];
		bit = p->first[pattern] + at;
		if (has(s, bit))
			continue;
		s[bit / 64] |= 1ULL << bit % 64;
		st = &p->patterns[pattern]->states[at];
		if (st->op == PAT_SPLIT || st->op == PAT_JUMP)
			stack[depth++] = st->x;
		if (st->op == PAT_SPLIT)
			stack[depth++] = st->y;
	}
}

static bool reads(const struct pat_node *n, uint32_t c)
{
	for (uint32_t i = 0; i < n->n; i++)
		if (c >= n->ranges[i].lo && c <= n->ranges[i].hi)
			return true;
	return false;
}

static void follow(const struct product *p, const uint64_t *from, uint32_t c, uint64_t *to)
{
	memset(to, 0, p->words * sizeof *to);
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t s = 0; s < p->patterns[i]->n; s++) {
			const struct pat_state *st = &p->patterns[i]->states[s];

			if (st->op == PAT_READ && has(from, p->first[i] + s) && reads(st->read, c))
				enter(p, i, s + 1, to);
		}
}

static uint64_t fits_of(const struct product *p, const uint64_t *s)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t k = 0; k < p->patterns[i]->n; k++)
			if (p->patterns[i]->states[k].op == PAT_END && has(s, p->first[i] + k))
				bits |= 1ULL << i;
	return bits;
}

static uint64_t *state(const struct product *p, uint32_t i)
{
	return p->states + (size_t)i * p->words;
}

/* True: it is a new one. The last place holds the candidate. */
static bool keep(struct product *p, uint32_t parent, uint32_t by)
{
	const uint64_t *s = state(p, p->n_states);
	uint64_t h = 0;

	for (uint32_t i = 0; i < p->words; i++)
		h = (h ^ s[i]) * 0x9e3779b97f4a7c15u, h ^= h >> 31;
	h %= STATES_MAX;
	for (uint32_t i = p->heads[h]; i; i = p->next[i - 1])
		if (!memcmp(state(p, i - 1), s, p->words * sizeof *s))
			return false;
	p->next[p->n_states] = p->heads[h];
	p->heads[h] = p->n_states + 1;
	p->parent[p->n_states] = parent;
	p->by[p->n_states++] = by;
	return true;
}

/* ---- the walk ---- */

static size_t put_char(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

static const char *string_to(struct enc *e, const struct product *p, uint32_t at)
{
	uint32_t n = 0;
	size_t used = 0;
	char *s;

	for (uint32_t i = at; i; i = p->parent[i])
		n++;
	s = cs_arena_get(&e->arena, 1, (size_t)n * 4 + 1);
	for (uint32_t k = n; s && k-- > 0;) {
		uint32_t i = at;

		for (uint32_t back = 0; back < k; back++)
			i = p->parent[i];
		used += put_char(s + used, p->by[i]);
	}
	return s;
}

static bool add_combo(struct enc *e, const struct product *p, uint32_t at, uint64_t bits)
{
	for (uint32_t i = 0; i < e->n_combos; i++)
		if (e->combos[i].bits == bits)
			return true;
	if (e->n_combos == COMBOS_MAX)
		return false;
	e->combos[e->n_combos++] = (struct combo){ .bits = bits, .example = string_to(e, p, at) };
	return true;
}

static bool walk(struct enc *e, struct product *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		enter(p, i, 0, state(p, 0));
	keep(p, 0, 0);
	for (uint32_t at = 0; at < p->n_states; at++) {
		if (!add_combo(e, p, at, fits_of(p, state(p, at))))
			return false;
		for (uint32_t c = 0; c < p->n_chars; c++) {
			if (p->n_states + 1 >= STATES_MAX)
				return false;
			follow(p, state(p, at), p->chars[c], state(p, p->n_states));
			keep(p, at, p->chars[c]);
		}
	}
	return true;
}

bool combos_find(struct enc *e)
{
	struct product p = { .n = 0 };
	uint32_t bits = 0;
	bool done = false;

	for (uint32_t i = 0; i < e->n_preds; i++) {
		if (!e->preds[i].pattern)
			continue;
		if (p.n == 64)
			return false;
		p.first[p.n] = bits;
		p.patterns[p.n++] = e->preds[i].pattern;
		bits += e->preds[i].pattern->n;
	}
	p.words = bits / 64 + 1;
	e->combos = cs_arena_get(&e->arena, COMBOS_MAX, sizeof *e->combos);
	if (!e->combos || (size_t)p.words * 8 * STATES_MAX > BYTES_MAX || !find_chars(&p))
		return false;
	p.states = cs_calloc((size_t)p.words * STATES_MAX, sizeof *p.states);
	p.parent = cs_calloc(STATES_MAX, sizeof *p.parent);
	p.by = cs_calloc(STATES_MAX, sizeof *p.by);
	p.heads = cs_calloc(STATES_MAX, sizeof *p.heads);
	p.next = cs_calloc(STATES_MAX, sizeof *p.next);
	done = walk(e, &p);
	free(p.states);
	free(p.parent);
	free(p.by);
	free(p.heads);
	free(p.next);
	return done;
}
