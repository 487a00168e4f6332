/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - the search for what two texts have in common.
 *
 *   1. common lines at both ends are cut off
 *   2. equal lines get equal numbers; a line that only one text has is changed,
 *      and is left out of what follows
 *   3. Myers' O(ND) search in linear space: from both ends at once to a point
 *      on a shortest path, then the same for the two halves
 *   4. a block that could as well lie a few lines lower is moved there, where
 *      people expect it
 *
 * Step 3 is bounded twice.  A single search that finds no meeting point within
 * its cost splits where it came furthest: the result is still right, only not
 * the shortest.  When the budget of all searches together is gone, what is left
 * becomes one removed and one added block.
 */
#include "txn/lines.h"

#include "base/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { COST_LEAST = 256, BUDGET = 1 << 28, FAR = INT_MAX / 2 };

/* ---- lines ---- */

void lines_split(struct lines *l, const char *data, size_t len)
{
	const char *p, *end, *nl;
	size_t n = 0;

	if (!data)
		data = "";
	p = data;
	end = data + len;
	*l = (struct lines){ .data = data };
	while (p < end && (nl = memchr(p, '\n', (size_t)(end - p)))) {
		n++;
		p = nl + 1;
	}
	l->n = n + (p < end);
	l->at = cs_calloc(l->n + 1, sizeof *l->at);
	l->changed = cs_calloc(l->n, 1);
	p = data;
	for (size_t i = 1; i <= n; i++) {
		nl = memchr(p, '\n', (size_t)(end - p));
		p = nl + 1;
		l->at[i] = (size_t)(p - data);
	}
	l->at[l->n] = len;
}

void lines_done(struct lines *l)
{
	free(l->at);
	free(l->changed);
	*l = (struct lines){ 0 };
}

static bool same(const struct lines *a, size_t i, const struct lines *b, size_t j)
{
	size_t len = lines_len(a, i);

	return len == lines_len(b, j) && !memcmp(a->data + a->at[i], b->data + b->at[j], len);
}

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint64_t lines_hash(const char *data, size_t len)
{
	/* Sixteen bytes that the kernel gives every process; always there. */
	const unsigned char *random = (const unsigned char *)(uintptr_t)getauxval(AT_RANDOM);
	uint64_t key[2] = { 0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u }, h, word;

	if (random)
		memcpy(key, random, sizeof key);
	h = key[0] ^ len;
	for (; len >= sizeof word; data += sizeof word, len -= sizeof word) {
		memcpy(&word, data, sizeof word);
		h = fold(h ^ word, key[1] | 1) + key[0];
	}
	word = 0;
	if (len)
		memcpy(&word, data, len);
	h = fold(h ^ word, key[1] | 1) + key[0];
	return fold(h, 0x94d049bb133111ebu);
}

/* ---- equal lines, equal numbers ---- */

struct class {
	uint64_t hash;
	const struct lines *side; /* where it was seen first */
	size_t line;
	bool in_a, in_b;
};

struct classes {
	struct class *v;
	uint32_t n;
	uint32_t *slot, mask; /* of a number + 1; open addressing */
};

static uint32_t number_of(struct classes *c, const struct lines *l, size_t line)
{
	uint64_t hash = lines_hash(l->data + l->at[line], lines_len(l, line));
	uint32_t at = (uint32_t)hash & c->mask;

	for (; c->slot[at]; at = (at + 1) & c->mask) {
		const struct class *k = &c->v[c->slot[at] - 1];

		if (k->hash == hash && same(k->side, k->line, l, line))
			return c->slot[at] - 1;
	}
	c->v[c->n] = (struct class){ .hash = hash, .side = l, .line = line };
	c->slot[at] = ++c->n;
	return c->n - 1;
}

/* ---- the search ---- */

/* The lines of one text that the other has somewhere. */
struct seq {
	uint32_t *number;       /* of each */
	uint32_t *line;         /* which line it is */
	int n;
	unsigned char *changed; /* of the text */
};

struct search {
	struct seq a, b;
	int *forth, *back;      /* furthest position in a, by diagonal; may be indexed -b.n-1 .. a.n+1 */
	int cost;               /* of a single search */
	int64_t budget;
};

struct box {
	int a0, a1, b0, b1;
};

struct point {
	int x, y;
};

struct front {
	int min, max; /* diagonals reached */
};

static void widen(struct front *f, int *v, int least, int most, int edge)
{
	if (f->min > least)
		v[--f->min - 1] = edge;
	else
		f->min++;
	if (f->max < most)
		v[++f->max + 1] = edge;
	else
		f->max--;
}

static bool step_forth(struct search *s, const struct box *q, const struct front *f, const struct front *b, bool odd, struct point *ret)
{
	int *v = s->forth;

	for (int d = f->max; d >= f->min; d -= 2) {
		int x = v[d - 1] >= v[d + 1] ? v[d - 1] + 1 : v[d + 1], y = x - d, from = x;

		while (x < q->a1 && y < q->b1 && s->a.number[x] == s->b.number[y])
			x++, y++;
		s->budget -= 1 + x - from;
		v[d] = x;
		if (odd && b->min <= d && d <= b->max && s->back[d] <= x) {
			*ret = (struct point){ x, y };
			return true;
		}
	}
	return false;
}

static bool step_back(struct search *s, const struct box *q, const struct front *f, const struct front *b, bool odd, struct point *ret)
{
	int *v = s->back;

	for (int d = b->max; d >= b->min; d -= 2) {
		int x = v[d - 1] < v[d + 1] ? v[d - 1] : v[d + 1] - 1, y = x - d, from = x;

		while (x > q->a0 && y > q->b0 && s->a.number[x - 1] == s->b.number[y - 1])
			x--, y--;
		s->budget -= 1 + from - x;
		v[d] = x;
		if (!odd && f->min <= d && d <= f->max && x <= s->forth[d]) {
			*ret = (struct point){ x, y };
			return true;
		}
	}
	return false;
}

/* Where the search from the front came furthest. */
static struct point furthest(const struct search *s, const struct box *q, const struct front *f)
{
	struct point best = { q->a0, q->b0 };

	for (int d = f->max; d >= f->min; d -= 2) {
		int x = s->forth[d] < q->a1 ? s->forth[d] : q->a1, y = x - d;

		if (y > q->b1) {
			y = q->b1;
			x = y + d;
		}
		if (x >= q->a0 && y >= q->b0 && x + y > best.x + best.y)
			best = (struct point){ x, y };
	}
	return best;
}

/* A point on a shortest way through the box, or far along one that is not. */
static struct point middle(struct search *s, const struct box *q)
{
	int least = q->a0 - q->b1, most = q->a1 - q->b0, start = q->a0 - q->b0, end = q->a1 - q->b1;
	struct front f = { start, start }, b = { end, end };
	bool odd = (start - end) & 1;
	struct point p;

	s->forth[start] = q->a0;
	s->back[end] = q->a1;
	for (int cost = 1; cost <= s->cost && s->budget > 0; cost++) {
		widen(&f, s->forth, least, most, -1);
		if (step_forth(s, q, &f, &b, odd, &p))
			return p;
		widen(&b, s->back, least, most, FAR);
		if (step_back(s, q, &f, &b, odd, &p))
			return p;
	}
	return furthest(s, q, &f);
}

static void mark(const struct seq *q, int from, int to)
{
	for (int i = from; i < to; i++)
		q->changed[q->line[i]] = 1;
}

/* Recursion is as deep as the logarithm of a search's cost: the first half costs at most
 * half of the whole; the second is the loop's next round. */
static void solve(struct search *s, struct box q)
{
	for (;;) {
		struct point p;

		while (q.a0 < q.a1 && q.b0 < q.b1 && s->a.number[q.a0] == s->b.number[q.b0])
			q.a0++, q.b0++;
		while (q.a0 < q.a1 && q.b0 < q.b1 && s->a.number[q.a1 - 1] == s->b.number[q.b1 - 1])
			q.a1--, q.b1--;
		if (q.a0 == q.a1 || q.b0 == q.b1 || s->budget <= 0)
			break;
		p = middle(s, &q);
		if (s->budget <= 0 || (p.x == q.a0 && p.y == q.b0) || (p.x == q.a1 && p.y == q.b1))
			break;
		solve(s, (struct box){ q.a0, p.x, q.b0, p.y });
		q.a0 = p.x;
		q.b0 = p.y;
	}
	mark(&s->a, q.a0, q.a1);
	mark(&s->b, q.b0, q.b1);
}

static void search(struct search *s)
{
	size_t diagonals = (size_t)s->a.n + (size_t)s->b.n + 3;
	int *room = cs_calloc(diagonals * 2, sizeof *room);

	s->forth = room + s->b.n + 1;
	s->back = s->forth + diagonals;
	s->budget = BUDGET;
	for (s->cost = COST_LEAST; (size_t)s->cost * (size_t)s->cost < diagonals;)
		s->cost++;
	solve(s, (struct box){ 0, s->a.n, 0, s->b.n });
	free(room);
}

/* The numbers of lines from..to of l; notes which text has them. */
static uint32_t *number_all(struct classes *c, const struct lines *l, size_t from, size_t to, bool is_a)
{
	uint32_t *ret = cs_calloc(to - from, sizeof *ret);

	for (size_t i = from; i < to; i++) {
		uint32_t k = number_of(c, l, i);

		ret[i - from] = k;
		*(is_a ? &c->v[k].in_a : &c->v[k].in_b) = true;
	}
	return ret;
}

/* Keeps in place the numbers that both texts have; the other lines are changed. */
static void keep_common(const struct classes *c, const struct lines *l, size_t from, size_t to, uint32_t *take_number, struct seq *ret)
{
	*ret = (struct seq){ .number = take_number, .line = cs_calloc(to - from, sizeof *ret->line), .changed = l->changed };
	for (size_t i = from; i < to; i++) {
		const struct class *k = &c->v[take_number[i - from]];

		if (k->in_a && k->in_b) {
			ret->number[ret->n] = take_number[i - from];
			ret->line[ret->n++] = (uint32_t)i;
		} else {
			l->changed[i] = 1;
		}
	}
}

static void diff_between(struct lines *a, struct lines *b, size_t from, size_t a_to, size_t b_to)
{
	size_t all = a_to - from + b_to - from, slots = 16;
	struct search s = { 0 };
	struct classes c = { 0 };
	uint32_t *na, *nb;

	while (slots < all * 2)
		slots *= 2;
	c.v = cs_calloc(all, sizeof *c.v);
	c.slot = cs_calloc(slots, sizeof *c.slot);
	c.mask = (uint32_t)(slots - 1);
	na = number_all(&c, a, from, a_to, /* is_a= */ true);
	nb = number_all(&c, b, from, b_to, /* is_a= */ false);
	keep_common(&c, a, from, a_to, na, &s.a);
	keep_common(&c, b, from, b_to, nb, &s.b);
	free(c.v);
	free(c.slot);
	search(&s);
	free(s.a.number);
	free(s.a.line);
	free(s.b.number);
	free(s.b.line);
}

/* ---- where a block lies ---- */

/* A block of l with no counterpart in the other text moves down while its first line equals the one after it. */
static void move_down(struct lines *l, const struct lines *other)
{
	size_t i = 0, j = 0;

	while (i < l->n) {
		size_t start = i, end;

		if (j < other->n && other->changed[j]) { /* both changed here: nothing to move */
			while (j < other->n && other->changed[j])
				j++;
			while (i < l->n && l->changed[i])
				i++;
			continue;
		}
		if (!l->changed[i]) {
			i++;
			j++;
			continue;
		}
		for (end = i; end < l->n && l->changed[end]; end++)
			;
		while (end < l->n && !(j < other->n && other->changed[j]) && same(l, start, l, end)) {
			l->changed[start++] = 0;
			l->changed[end++] = 1;
			j++;
			while (end < l->n && l->changed[end])
				end++;
		}
		i = end;
		while (j < other->n && other->changed[j])
			j++;
	}
}

void lines_diff(struct lines *a, struct lines *b)
{
	size_t least = a->n < b->n ? a->n : b->n, head = 0, tail = 0;

	while (head < least && same(a, head, b, head))
		head++;
	while (tail < least - head && same(a, a->n - 1 - tail, b, b->n - 1 - tail))
		tail++;
	if (head == a->n - tail || head == b->n - tail || a->n > LINES_COUNT || b->n > LINES_COUNT) {
		memset(a->changed + head, 1, a->n - tail - head);
		memset(b->changed + head, 1, b->n - tail - head);
	} else {
		diff_between(a, b, head, a->n - tail, b->n - tail);
	}
	move_down(a, b);
	move_down(b, a);
}
