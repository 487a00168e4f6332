/* SPDX-License-Identifier: Apache-2.0 */
/* rename.c - a file that went and one that came with the same content: one that moved.
 *
 * For people who read a change set; nothing is decided by it.  First files of
 * equal content (by size, then hash, then every byte), then texts that share
 * most of their lines.  The program chooses how many files there are and what
 * they hold, so the bytes read and the comparisons made have a maximum; what
 * is beyond it stays a deletion and an addition.
 *
 * A deletion that is held back or in conflict is never folded into another
 * entry: it has something to say of its own.
 */
#include "base/cleanup.h"
#include "txn/lines.h"
#include "txn/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_MAX = 256 << 20,  /* bytes, in all */
	LIKE_BYTES = 1 << 20,  /* of a file compared by lines */
	LIKE_FILES = 200,      /* on either side */
	LIKE_LINES = 2 << 20,  /* distinct ones kept, in all */
	LIKE_WORK = 1 << 27,   /* comparisons of lines, in all */
	LIKE_PERCENT = 60,
	SAME_TRIES = 64,       /* of files with equal content */
};

/* One distinct line of a text, and the bytes it accounts for. */
struct share {
	uint64_t hash;
	uint64_t bytes;
};

struct cand {
	struct txn_change *c;
	uint64_t size, hash;
	struct cand *twin;    /* whom it goes with */
	struct share *lines;  /* sorted; NULL: not compared by lines */
	size_t n_lines;
};

struct finder {
	const struct txn *t;
	struct cand *gone, *came;
	size_t n_gone, n_came;
	uint64_t to_read;     /* what is left of the maxima */
	uint64_t to_keep, to_do;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int open_it(const struct finder *f, const struct cand *k)
{
	return k->c->kind == TXN_DELETED ? txn_open_old(f->t, k->c) : txn_open_new(f->t, k->c);
}

/* ---- equal content ---- */

static int by_size_hash(const void *a, const void *b)
{
	const struct cand *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->c < y->c ? -1 : x->c > y->c; /* the order of the list */
}

/* False if it cannot be read to its end as it was found. */
static bool hash_file(struct finder *f, struct cand *k)
{
	CS_FD int fd = -1;
	char buf[64 << 10];
	uint64_t total = 0, h[2] = { 0 };
	ssize_t n;

	if (k->size > f->to_read)
		return false;
	fd = open_it(f, k);
	if (fd < 0)
		return false;
	while ((n = read_full(fd, buf, sizeof buf)) > 0 && total <= k->size) {
		total += (uint64_t)n;
		h[1] = lines_hash(buf, (size_t)n);
		h[0] = lines_hash((const char *)h, sizeof h);
	}
	f->to_read -= k->size;
	k->hash = h[0];
	return n == 0 && total == k->size;
}

static bool equal_content(struct finder *f, const struct cand *x, const struct cand *y)
{
	CS_FD int a = -1;
	CS_FD int b = -1;
	char ba[32 << 10], bb[32 << 10];
	ssize_t n;

	if (x->size > f->to_read)
		return false;
	f->to_read -= x->size;
	a = open_it(f, x);
	b = open_it(f, y);
	if (a < 0 || b < 0)
		return false;
	do {
		n = read_full(a, ba, sizeof ba);
		if (n < 0 || read_full(b, bb, sizeof bb) != n || memcmp(ba, bb, (size_t)n))
			return false;
	} while (n > 0);
	return true;
}

static bool has_size(const struct cand *v, size_t n, uint64_t size)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (v[mid].size < size)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && v[lo].size == size;
}

/* Of those whose size the other list has, too; 0: none. Both lists are sorted by size. */
static void hash_all(struct finder *f, struct cand *v, size_t n, const struct cand *other, size_t n_other)
{
	for (size_t i = 0; i < n; i++)
		if (has_size(other, n_other, v[i].size) && !hash_file(f, &v[i]))
			v[i].hash = 0;
}

/* Among the free ones from `at` that look equal: the one with the same name, else the first. */
static struct cand *pick(struct finder *f, size_t at, const struct cand *came)
{
	struct cand *first = NULL;

	for (size_t i = at; i < f->n_gone && i - at < SAME_TRIES; i++) {
		struct cand *g = &f->gone[i];

		if (g->size != came->size || g->hash != came->hash)
			break;
		if (g->twin)
			continue;
		if (!strcmp(base_name(g->c->path), base_name(came->c->path)))
			return g;
		if (!first)
			first = g;
	}
	return first;
}

static void pair_equal(struct finder *f)
{
	size_t at = 0;

	hash_all(f, f->gone, f->n_gone, f->came, f->n_came);
	hash_all(f, f->came, f->n_came, f->gone, f->n_gone);
	qsort(f->gone, f->n_gone, sizeof *f->gone, by_size_hash);
	qsort(f->came, f->n_came, sizeof *f->came, by_size_hash);
	for (size_t i = 0; i < f->n_came; i++) {
		struct cand *k = &f->came[i], *g;

		/* Both are sorted: `at` only goes forward, past what is smaller or taken. */
		while (at < f->n_gone && (f->gone[at].twin || f->gone[at].size < k->size ||
					  (f->gone[at].size == k->size && f->gone[at].hash < k->hash)))
			at++;
		g = k->hash ? pick(f, at, k) : NULL;
		if (g && equal_content(f, g, k)) {
			g->twin = k;
			k->twin = g;
		}
	}
}

/* ---- nearly equal content ---- */

static int by_hash(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static void take_lines(struct finder *f, struct cand *k, const char *data, size_t len)
{
	struct lines l;
	size_t n = 0;

	lines_split(&l, data, len);
	if (l.n && l.n <= f->to_keep) {
		k->lines = cs_calloc(l.n, sizeof *k->lines);
		for (size_t i = 0; i < l.n; i++)
			k->lines[i] = (struct share){ lines_hash(data + l.at[i], lines_len(&l, i)), lines_len(&l, i) };
		qsort(k->lines, l.n, sizeof *k->lines, by_hash);
		for (size_t i = 1; i < l.n; i++) {
			if (k->lines[i].hash == k->lines[n].hash)
				k->lines[n].bytes += k->lines[i].bytes;
			else
				k->lines[++n] = k->lines[i];
		}
		k->n_lines = n + 1;
		f->to_keep -= k->n_lines;
	}
	lines_done(&l);
}

static void read_lines(struct finder *f, struct cand *k)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(LIKE_BYTES);
	CS_FD int fd = -1;

	if (k->size > f->to_read)
		return;
	f->to_read -= k->size;
	fd = open_it(f, k);
	if (fd >= 0 && cs_buf_read_fd(&b, fd, k->c->path, NULL) == 0 && b.len == k->size && !txn_is_binary(b.data, b.len))
		take_lines(f, k, b.data, b.len);
}

/* How many bytes of the larger one, in percent, lie in lines that both have. */
static unsigned likeness(struct finder *f, const struct cand *x, const struct cand *y)
{
	uint64_t shared = 0, larger = x->size > y->size ? x->size : y->size;
	size_t i = 0, j = 0;

	f->to_do -= x->n_lines + y->n_lines;
	while (i < x->n_lines && j < y->n_lines) {
		const struct share *p = &x->lines[i], *q = &y->lines[j];

		if (p->hash == q->hash)
			shared += p->bytes < q->bytes ? p->bytes : q->bytes;
		i += p->hash <= q->hash;
		j += q->hash <= p->hash;
	}
	return (unsigned)(shared * 100 / larger);
}

struct match {
	struct cand *gone, *came;
	unsigned percent;
	bool named; /* the last component stayed */
};

static int best_first(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	if (x->percent != y->percent)
		return x->percent > y->percent ? -1 : 1;
	if (x->named != y->named)
		return x->named ? -1 : 1;
	if (x->came != y->came)
		return x->came->c < y->came->c ? -1 : 1;
	return x->gone->c < y->gone->c ? -1 : x->gone->c > y->gone->c;
}

/* The first LIKE_FILES that can be compared by lines; returns how many. */
static size_t choose(struct finder *f, struct cand *v, size_t n, struct cand **ret)
{
	size_t m = 0;

	for (size_t i = 0; i < n && m < LIKE_FILES; i++) {
		if (v[i].twin || v[i].size > LIKE_BYTES)
			continue;
		read_lines(f, &v[i]);
		if (v[i].lines)
			ret[m++] = &v[i];
	}
	return m;
}

static void pair_like(struct finder *f)
{
	struct cand *gone[LIKE_FILES], *came[LIKE_FILES];
	size_t n_gone = choose(f, f->gone, f->n_gone, gone), n_came = n_gone ? choose(f, f->came, f->n_came, came) : 0, n = 0;
	struct match *m = cs_calloc(n_gone * n_came, sizeof *m);

	for (size_t i = 0; i < n_came; i++)
		for (size_t j = 0; j < n_gone; j++) {
			struct cand *x = came[i], *y = gone[j];
			uint64_t less = x->size < y->size ? x->size : y->size, more = x->size + y->size - less;
			unsigned p;

			if (less * 100 < more * LIKE_PERCENT || x->n_lines + y->n_lines > f->to_do)
				continue;
			p = likeness(f, x, y);
			if (p >= LIKE_PERCENT)
				m[n++] = (struct match){ y, x, p, !strcmp(base_name(x->c->path), base_name(y->c->path)) };
		}
	qsort(m, n, sizeof *m, best_first);
	for (size_t i = 0; i < n; i++)
		if (!m[i].gone->twin && !m[i].came->twin) {
			m[i].gone->twin = m[i].came;
			m[i].came->twin = m[i].gone;
		}
	free(m);
}

/* ---- the list ---- */

static void merge(const struct cand *came)
{
	struct txn_change *c = came->c, *g = came->twin->c;

	c->kind = TXN_RENAMED;
	free(c->base); /* of an added one: says nothing */
	c->base = NULL;
	c->from = g->base ? CS_TAKE_PTR(g->base) : CS_TAKE_PTR(g->path);
	free(CS_TAKE_PTR(g->path)); /* an entry without one is dropped */
	c->old = g->old;
	/* Lines are kept only of those that were not found equal before. */
	c->differs = (came->lines ? TXN_CONTENT : 0) | (c->old.mode != c->new.mode ? TXN_MODE : 0) |
		     (c->old.uid != c->new.uid || c->old.gid != c->new.gid ? TXN_OWNER : 0);
}

/* Drops the entries without a path. */
static void drop_merged(struct txn_changes *c)
{
	size_t *before = cs_calloc(c->n + 1, sizeof *before), n = 0; /* how many are dropped before i */

	for (size_t i = 0; i < c->n; i++)
		before[i + 1] = before[i] + !c->v[i].path;
	for (size_t i = 0; i < c->n; i++) {
		size_t last = i + 1 + c->v[i].subtree;

		if (!c->v[i].path) {
			free(c->v[i].from);
			free(c->v[i].base);
			continue;
		}
		if (last <= c->n)
			c->v[i].subtree -= (uint32_t)(before[last] - before[i + 1]);
		c->v[n++] = c->v[i];
	}
	c->n = n;
	free(before);
}

static void collect(struct finder *f, struct txn_changes *c)
{
	f->gone = cs_calloc(c->n, sizeof *f->gone);
	f->came = cs_calloc(c->n, sizeof *f->came);
	for (size_t i = 0; i < c->n; i++) {
		struct txn_change *k = &c->v[i];

		/* Empty files are all alike: that says nothing. */
		if (k->kind == TXN_DELETED && S_ISREG(k->old.mode) && k->old.size && !k->hold && !k->conflict)
			f->gone[f->n_gone++] = (struct cand){ .c = k, .size = k->old.size };
		else if (k->kind == TXN_ADDED && S_ISREG(k->new.mode) && k->new.size)
			f->came[f->n_came++] = (struct cand){ .c = k, .size = k->new.size };
	}
	qsort(f->gone, f->n_gone, sizeof *f->gone, by_size_hash);
	qsort(f->came, f->n_came, sizeof *f->came, by_size_hash);
}

void txn_find_renames(const struct txn *t, struct txn_changes *c)
{
	struct finder f = { .t = t, .to_read = READ_MAX, .to_keep = LIKE_LINES, .to_do = LIKE_WORK };
	size_t merged = 0;

	collect(&f, c);
	if (f.n_gone && f.n_came) {
		pair_equal(&f);
		pair_like(&f);
	}
	for (size_t i = 0; i < f.n_came; i++)
		if (f.came[i].twin) {
			merge(&f.came[i]);
			merged++;
		}
	for (size_t i = 0; i < f.n_gone; i++)
		free(f.gone[i].lines);
	for (size_t i = 0; i < f.n_came; i++)
		free(f.came[i].lines);
	free(f.gone);
	free(f.came);
	if (merged) {
		drop_merged(c);
		c->added -= merged;
		c->deleted -= merged;
		c->changed += merged;
	}
}
