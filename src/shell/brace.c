/* SPDX-License-Identifier: Apache-2.0 */
/* brace.c - {a,b} and {1..9} in a word that has been read, and which of its characters are patterns.
 *
 * bash expands braces in the text of a word before it looks for anything else in it.  We have the parts already, so
 * whatever the expansion could put together anew ($x{a,b} is $xa $xb) is refused.  Which '}' belongs to a '{' is found
 * as bash finds it: the first at the same level after a ',' or ".."; {a}b,c} is "a}b" and "c". */
#include "shell/internal.h"

#include <stdlib.h>

struct item {
	int c;                /* an unquoted character, or OTHER */
	struct sh_part *part;
	size_t at;            /* of c in the part's text */
};
enum { OTHER = 256, WORD_MAX = 1 << 16 };

struct braces {
	struct reader *r;
	struct item *v;
	size_t n;
	bool found;
};

struct list {
	struct sh_part *first, **tail;
};

static struct sh_part *expand(struct braces *b, size_t lo, size_t hi, int follow);

static struct sh_part *new_part(struct reader *r, struct list *l, enum sh_part_kind kind, struct sh_place place)
{
	struct sh_part *p = rd_new(r, sizeof *p);

	p->kind = kind;
	p->place = place;
	*l->tail = p;
	l->tail = &p->next;
	return p;
}

static void copy_text(struct reader *r, struct list *l, const struct sh_part *of, enum sh_part_kind kind, size_t from, size_t to)
{
	struct sh_place place = { of->place.at + (uint32_t)from, (uint32_t)(to - from) };
	struct sh_part *p = new_part(r, l, kind, of->place.len == of->len ? place : of->place);

	p->text = rd_copy(r, of->text + from, to - from);
	p->len = to - from;
}

/* Items as they are, without braces of their own. */
static void add_range(struct braces *b, struct list *l, size_t lo, size_t hi)
{
	while (lo < hi) {
		struct item *i = &b->v[lo];
		size_t end = lo + 1;

		if (i->c == OTHER) {
			struct sh_part *p = rd_new(b->r, sizeof *p);

			*p = *i->part;
			p->next = NULL;
			*l->tail = p;
			l->tail = &p->next;
		} else {
			while (end < hi && b->v[end].part == i->part)
				end++;
			copy_text(b->r, l, i->part, SH_LIT, i->at, b->v[end - 1].at + 1);
		}
		lo = end;
	}
}

static size_t find_close(struct braces *b, size_t i, size_t hi, bool *ret_comma)
{
	unsigned level = 0, separators = 0;
	size_t from = i;

	*ret_comma = false;
	for (; i < hi; i++) {
		int c = b->v[i].c;

		if (c == '}' && !level && separators)
			break;
		if (c == '{') {
			level++;
		} else if (c == '}' && level) {
			level--;
		} else if (c == ',' && !level) {
			separators++;
			*ret_comma = true;
		} else if (c == '.' && !level && i + 1 < hi && b->v[i + 1].c == '.' && !(i + 2 < hi && b->v[i + 2].c == '}')) {
			separators++;
		}
	}
	rd_pay(b->r, i - from);
	return i < hi ? i : SIZE_MAX;
}

/* The next '{' that has its '}'. */
static size_t find_open(struct braces *b, size_t lo, size_t hi, size_t *ret_close, bool *ret_comma)
{
	for (size_t i = lo; i < hi; i++) {
		if (b->v[i].c != '{' || (i == lo && (i + 1 == hi || b->v[i + 1].c == '}')))
			continue;
		*ret_close = find_close(b, i + 1, hi, ret_comma);
		if (*ret_close != SIZE_MAX)
			return i;
	}
	return SIZE_MAX;
}

static bool number(const char *s, size_t len)
{
	size_t i = len && (s[0] == '-' || s[0] == '+');

	if (i == len || len - i > 9)
		return false;
	for (; i < len; i++)
		if (!rd_digit((unsigned char)s[i]))
			return false;
	return true;
}

static bool letter(const char *s, size_t len)
{
	return len == 1 && rd_name_start((unsigned char)*s) && *s != '_';
}

/* a..b or a..b..c, and of one kind. */
static bool sequence(struct braces *b, const char *text, struct sh_word **ret)
{
	const char *end[3], *start[3];
	size_t n = 0;

	for (const char *p = text;; p = end[n - 1] + 2) {
		const char *dots = strstr(p, "..");

		if (n == 3)
			return false;
		start[n] = p;
		end[n] = dots ? dots : p + strlen(p);
		n++;
		if (!dots)
			break;
	}
	if (n < 2 || !((number(start[0], (size_t)(end[0] - start[0])) && number(start[1], (size_t)(end[1] - start[1]))) ||
		       (letter(start[0], (size_t)(end[0] - start[0])) && letter(start[1], (size_t)(end[1] - start[1])))))
		return false;
	if (n == 3 && !number(start[2], (size_t)(end[2] - start[2])))
		return false;
	for (size_t i = 0; i < n; i++, ret = &(*ret)->next)
		*ret = rd_literal(b->r, start[i], (size_t)(end[i] - start[i]), b->r->s.pos, b->r->s.pos);
	return true;
}

/* {..} without a comma.  False: it means itself. */
static bool range(struct braces *b, struct list *l, size_t lo, size_t hi)
{
	struct list inner = { NULL, &inner.first };
	struct sh_word *words = NULL;
	struct sh_part *p;

	for (size_t i = lo; i < hi; i++)
		if (b->v[i].c == OTHER || strchr("{},", b->v[i].c))
			rd_fail(b->r, CS_E_UNSUPPORTED, b->r->s.pos, "braces with \"..\" around something else than letters or numbers");
	add_range(b, &inner, lo, hi);
	if (!inner.first)
		return false;
	if (inner.first->len > 32 || inner.first->next) {
		if (strspn(inner.first->text, "0123456789.+-") == inner.first->len)
			rd_fail(b->r, CS_E_UNSUPPORTED, b->r->s.pos, "a sequence with large numbers");
		return false;
	}
	if (!sequence(b, inner.first->text, &words)) {
		if (strspn(inner.first->text, "0123456789.+-") == inner.first->len && inner.first->len > 12)
			rd_fail(b->r, CS_E_UNSUPPORTED, b->r->s.pos, "a sequence with large numbers");
		return false;
	}
	p = new_part(b->r, l, SH_BRACE, inner.first->place);
	p->words = words;
	p->sequence = true;
	return true;
}

static void alternatives(struct braces *b, struct list *l, size_t lo, size_t hi, int follow)
{
	struct sh_part *p = new_part(b->r, l, SH_BRACE, b->v[lo ? lo - 1 : 0].part->place);
	struct sh_word **tail = &p->words;
	unsigned level = 0;
	size_t from = lo;

	for (size_t i = lo; i <= hi; i++) {
		int c = i < hi ? b->v[i].c : ',';

		if (c == '{')
			level++;
		else if (c == '}' && level)
			level--;
		if ((c == ',' && !level) || i == hi) {
			struct sh_word *w = rd_new(b->r, sizeof *w);

			w->parts = expand(b, from, i, follow);
			w->place = p->place;
			*tail = w;
			tail = &w->next;
			from = i + 1;
		}
	}
}

static bool joins(const struct braces *b, size_t end, size_t lo, int follow)
{
	const struct sh_part *p = end > lo ? b->v[end - 1].part : NULL;

	return p && b->v[end - 1].c == OTHER && p->kind == SH_PARAM && p->bare && !p->quoted && rd_name_start((unsigned char)p->param->name[0]) &&
	       (follow == '{' || rd_name_char(follow));
}

static struct sh_part *expand(struct braces *b, size_t lo, size_t hi, int follow)
{
	struct list l = { NULL, &l.first };
	size_t open, close = 0;
	bool comma;

	rd_enter(b->r);
	while ((open = find_open(b, lo, hi, &close, &comma)) != SIZE_MAX) {
		int next = close + 1 < hi ? b->v[close + 1].c : follow;
		bool done = true;

		add_range(b, &l, lo, open);
		if (comma)
			alternatives(b, &l, open + 1, close, next);
		else if (!range(b, &l, open + 1, close))
			done = false;
		if (!done)
			add_range(b, &l, open, close + 1);
		else if (joins(b, open, lo, '{'))
			rd_fail(b->r, CS_E_UNSUPPORTED, b->r->s.pos, "$%s before a brace", b->v[open - 1].part->param->name);
		b->found = b->found || done;
		lo = close + 1;
	}
	if (joins(b, hi, lo, follow))
		rd_fail(b->r, CS_E_UNSUPPORTED, b->r->s.pos, "$%s within braces before a letter", b->v[hi - 1].part->param->name);
	add_range(b, &l, lo, hi);
	rd_leave(b->r);
	return l.first;
}

/* What bash would look at in the text of the word as it looks for braces, and we do not. */
static bool obscure(const struct sh_part *p)
{
	return (p->kind == SH_PARAM && !p->bare && (p->param->op[0] || p->param->index)) || (p->kind == SH_COMMAND && p->backtick) ||
	       (p->kind == SH_ARITH && p->bracket);
}

struct sh_part *rd_braces(struct reader *r, struct sh_part *parts, bool lone_dollar)
{
	struct braces b = { .r = r };
	struct sh_part *result;
	bool strange = lone_dollar;
	size_t n = 0;

	for (struct sh_part *p = parts; p; p = p->next)
		n += p->kind == SH_LIT ? p->len : 1;
	if (n > WORD_MAX)
		rd_fail(r, CS_E_LIMIT, r->s.pos, "braces in a word of more than %d bytes", WORD_MAX);
	b.v = rd_room(r, n * sizeof *b.v);
	for (struct sh_part *p = parts; p; p = p->next) {
		if (p->kind != SH_LIT) {
			strange = strange || obscure(p);
			b.v[b.n++] = (struct item){ .c = OTHER, .part = p };
			continue;
		}
		strange = strange || memchr(p->text, '~', p->len);
		for (size_t i = 0; i < p->len; i++)
			b.v[b.n++] = (struct item){ .c = (unsigned char)p->text[i], .part = p, .at = i };
	}
	result = expand(&b, 0, b.n, -1);
	if (b.found && strange)
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "braces together with ~, ` or ${..} with an operator in one word");
	return b.found ? result : parts;
}

/* ---- patterns ---- */

/* Where the bracket that begins at i ends (at its ']'), or 0. */
static size_t bracket_end(const char *t, size_t i, size_t len)
{
	size_t j = i + 1;

	if (j < len && (t[j] == '!' || t[j] == '^'))
		j++;
	if (j < len && t[j] == ']')
		j++;
	for (; j < len && t[j] != ']'; j++) {
		const char *p;

		if (t[j] != '[' || j + 1 >= len || !strchr(":.=", t[j + 1]))
			continue;
		/* [:alpha:] and its kin are short */
		for (p = t + j + 2; p + 1 < t + len && p < t + j + 20; p++)
			if (p[0] == t[j + 1] && p[1] == ']') {
				j = (size_t)(p - t) + 1;
				break;
			}
	}
	return j < len ? j : 0;
}

static size_t glob_len(const struct sh_part *p, size_t i, size_t last, bool more, bool *ret_bad)
{
	size_t n = 0;

	*ret_bad = false;
	while (i + n < p->len && (p->text[i + n] == '*' || p->text[i + n] == '?'))
		n++;
	if (n || p->text[i] != '[')
		return n;
	n = last != SIZE_MAX && last > i ? bracket_end(p->text, i, p->len) : 0;
	if (n) {
		n = n - i + 1;
		*ret_bad = memchr(p->text + i, '/', n);
		return n;
	}
	*ret_bad = true;
	return more ? 1 : 0; /* what follows may close it */
}

static void split(struct reader *r, struct list *l, struct sh_part *p, bool more)
{
	size_t from = 0, last = SIZE_MAX;

	for (size_t i = 0; i < p->len; i++)
		if (p->text[i] == ']')
			last = i;
	for (size_t i = 0; i < p->len;) {
		bool bad;
		size_t n = glob_len(p, i, last, more, &bad);

		if (!n) {
			i++;
			continue;
		}
		if (i > from)
			copy_text(r, l, p, SH_LIT, from, i);
		copy_text(r, l, p, SH_GLOB, i, i + n);
		((struct sh_part *)(void *)((char *)l->tail - offsetof(struct sh_part, next)))->bad = bad;
		from = i += n;
	}
	if (from < p->len)
		copy_text(r, l, p, SH_LIT, from, p->len);
}

void rd_globs(struct reader *r, struct sh_part **parts)
{
	struct list l = { NULL, &l.first };

	for (struct sh_part *p = *parts, *next; p; p = next) {
		next = p->next;
		if (p->kind == SH_BRACE && !p->sequence)
			for (struct sh_word *w = p->words; w; w = w->next)
				rd_globs(r, &w->parts);
		if (p->kind == SH_LIT && (memchr(p->text, '*', p->len) || memchr(p->text, '?', p->len) || memchr(p->text, '[', p->len))) {
			split(r, &l, p, next);
			continue;
		}
		p->next = NULL;
		*l.tail = p;
		l.tail = &p->next;
	}
	*parts = l.first;
}
