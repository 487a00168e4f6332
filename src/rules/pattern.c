/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - patterns are parsed, become a nondeterministic automaton, and are
 * matched by following all of its states at once: time is characters x states,
 * whatever the pattern. */
#include "rules/pattern_internal.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct cs_arena *a;
	const char *text, *at;
	struct cs_err *err;
	int failed; /* sticky: -enum cs_code */
	unsigned nesting;
};

static struct pat_node *parse_alternatives(struct reader *r);

static size_t position(const struct reader *r, const char *at)
{
	size_t n = 1;

	for (const char *s = r->text; s < at; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* `what` holds nothing from outside; `at` is the character meant. */
static void fail(struct reader *r, enum cs_code code, const char *at, const char *what)
{
	if (r->failed)
		return;
	r->failed = cs_fail(r->err, code, 0, "%s at character %zu", what, position(r, at));
	r->at += strlen(r->at);
}

static void *get(struct reader *r, size_t n, size_t size)
{
	void *v = cs_arena_get(r->a, n, size);

	if (!v)
		fail(r, CS_E_LIMIT, r->at, "no memory is left");
	return v;
}

static struct pat_node *node_new(struct reader *r, enum pat_kind kind)
{
	struct pat_node *n = get(r, 1, sizeof *n);

	if (n)
		n->kind = kind;
	return n;
}

/* The character at *s, or -1 where it is not UTF-8. */
static int64_t next_char(const char **s, const char *end)
{
	const unsigned char *p = (const unsigned char *)*s;
	size_t left = (size_t)(end - *s), n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));

	if (n > left || (p[0] >= 0x80 && p[0] < 0xc0) || p[0] > 0xf4)
		return -1;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return -1;
		c = c << 6 | (p[i] & 63);
	}
	if (c < least[n] || c > PAT_MAX_CHAR || (c >= 0xd800 && c < 0xe000))
		return -1;
	*s += n;
	return c;
}

/* ---- classes ---- */

struct ranges {
	struct pat_range *v;
	uint32_t n, cap;
};

static void add_range(struct reader *r, struct ranges *set, uint32_t lo, uint32_t hi)
{
	if (set->n == set->cap) {
		uint32_t cap = set->cap ? set->cap * 2 : 4;
		struct pat_range *v = get(r, cap, sizeof *v);

		if (!v)
			return;
		if (set->n)
			memcpy(v, set->v, set->n * sizeof *v);
		set->v = v;
		set->cap = cap;
	}
	set->v[set->n++] = (struct pat_range){ lo, hi };
}

static int by_start(const void *a, const void *b)
{
	const struct pat_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void tidy(struct ranges *set)
{
	uint32_t n = 0;

	if (set->n)
		qsort(set->v, set->n, sizeof *set->v, by_start);
	for (uint32_t i = 0; i < set->n; i++)
		if (n && set->v[i].lo <= set->v[n - 1].hi + 1) {
			if (set->v[i].hi > set->v[n - 1].hi)
				set->v[n - 1].hi = set->v[i].hi;
		} else {
			set->v[n++] = set->v[i];
		}
	set->n = n;
}

static void invert(struct reader *r, struct ranges *set)
{
	struct ranges out = { 0 };
	uint32_t from = 0;

	tidy(set);
	for (uint32_t i = 0; i < set->n; i++) {
		if (set->v[i].lo > from)
			add_range(r, &out, from, set->v[i].lo - 1);
		from = set->v[i].hi + 1;
	}
	if (from <= PAT_MAX_CHAR)
		add_range(r, &out, from, PAT_MAX_CHAR);
	*set = out;
}

static void add_all(struct reader *r, struct ranges *to, const struct ranges *from)
{
	for (uint32_t i = 0; i < from->n; i++)
		add_range(r, to, from->v[i].lo, from->v[i].hi);
}

/* \d \w \s and their opposites; ASCII, so that what a rule allows does not grow with Unicode. */
static bool add_named(struct reader *r, char name, struct ranges *to)
{
	struct ranges set = { 0 };

	switch (name | 32) {
	case 'd': add_range(r, &set, '0', '9'); break;
	case 'w':
		add_range(r, &set, '0', '9');
		add_range(r, &set, 'A', 'Z');
		add_range(r, &set, '_', '_');
		add_range(r, &set, 'a', 'z');
		break;
	case 's':
		add_range(r, &set, '\t', '\r');
		add_range(r, &set, ' ', ' ');
		break;
	default: return false;
	}
	if (!(name & 32))
		invert(r, &set);
	add_all(r, to, &set);
	return true;
}

/* As itself. Not UTF-8 must be an error here: whoever loops would stand still. */
static int64_t plain_char(struct reader *r)
{
	int64_t c = next_char(&r->at, r->at + strlen(r->at));

	if (c < 0)
		fail(r, CS_E_INVALID, r->at, "not UTF-8");
	return c;
}

/* Behind a backslash: a class into `set` (-1), or one character. */
static int64_t escaped(struct reader *r, struct ranges *set)
{
	const char *back = r->at - 1;
	char c = *r->at;

	if (!c) {
		fail(r, CS_E_INVALID, back, "a backslash with nothing behind it");
		return -1;
	}
	if (strchr("dDwWsS", c)) {
		r->at++;
		add_named(r, c, set);
		return -1;
	}
	if (c == 'n' || c == 't' || c == 'r') {
		r->at++;
		return c == 'n' ? '\n' : c == 't' ? '\t' : '\r';
	}
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
		fail(r, CS_E_INVALID, back, c >= '1' && c <= '9' ? "back-references are not supported: \\" :
		     c == 'b' || c == 'A' || c == 'z' || c == 'Z' ? "the whole string is always meant, and there are no word boundaries: leave out the escape" :
		     "unknown escape (there are \\d \\w \\s \\D \\W \\S \\n \\t \\r, and \\ before a sign)");
		return -1;
	}
	return plain_char(r);
}

/* One end of a range in brackets, or a class (-1). */
static int64_t class_char(struct reader *r, struct ranges *set)
{
	if (*r->at == '\\') {
		r->at++;
		return escaped(r, set);
	}
	return plain_char(r);
}

static void class_item(struct reader *r, struct ranges *set)
{
	const char *start = r->at;
	int64_t lo = class_char(r, set), hi = lo;

	if (r->failed)
		return;
	if (*r->at == '-' && r->at[1] && r->at[1] != ']') {
		struct ranges unused = { 0 };

		r->at++;
		hi = class_char(r, &unused);
		if (r->failed)
			return;
		if (lo < 0 || hi < lo) {
			fail(r, CS_E_INVALID, start, lo < 0 || hi < 0 ? "a class like \\d cannot be the end of a range" : "a range that runs backwards");
			return;
		}
	}
	if (lo >= 0)
		add_range(r, set, (uint32_t)lo, (uint32_t)hi);
}

static struct pat_node *class_node(struct reader *r, struct ranges *set)
{
	struct pat_node *n = node_new(r, PAT_CLASS);

	tidy(set);
	if (!n || r->failed)
		return NULL;
	n->ranges = set->v;
	n->n = set->n;
	n->chars = true;
	return n;
}

/* Behind "[". */
static struct pat_node *parse_class(struct reader *r)
{
	const char *open = r->at - 1;
	struct ranges set = { 0 };
	bool inverted = *r->at == '^';

	r->at += inverted;
	if (*r->at == ']') {
		fail(r, CS_E_INVALID, open, "an empty class; a ] in a class is written \\]");
		return NULL;
	}
	while (*r->at && *r->at != ']')
		class_item(r, &set);
	if (!r->failed && *r->at != ']')
		fail(r, CS_E_INVALID, open, "unclosed [");
	if (r->failed)
		return NULL;
	r->at++;
	if (inverted)
		invert(r, &set);
	return class_node(r, &set);
}

/* ---- the rest ---- */

static struct pat_node *parse_group(struct reader *r)
{
	const char *open = r->at - 1;
	struct pat_node *n;

	if (r->at[0] == '?' && r->at[1] == ':') {
		r->at += 2;
	} else if (*r->at == '?') {
		fail(r, CS_E_INVALID, open, "(? is not supported (no look-around, names or flags); plain groups are ( ) and (?: )");
		return NULL;
	}
	if (++r->nesting > PAT_MAX_NESTING) {
		fail(r, CS_E_LIMIT, open, "groups nested deeper than 64");
		return NULL;
	}
	n = parse_alternatives(r);
	r->nesting--;
	if (!r->failed && *r->at != ')')
		fail(r, CS_E_INVALID, open, "unclosed (");
	if (r->failed)
		return NULL;
	r->at++;
	return n;
}

static struct pat_node *parse_atom(struct reader *r)
{
	struct ranges set = { 0 };
	int64_t c = -1;

	switch (*r->at) {
	case '(': r->at++; return parse_group(r);
	case '[': r->at++; return parse_class(r);
	case '^': case '$':
		fail(r, CS_E_INVALID, r->at, *r->at == '^' ? "a pattern is always about the whole string: leave out ^ (the character itself is \\^),"
			: "a pattern is always about the whole string: leave out $ (the character itself is \\$),");
		return NULL;
	case '*': case '+': case '?':
		fail(r, CS_E_INVALID, r->at, "nothing to repeat (the character itself needs a backslash)");
		return NULL;
	case '{': case '}': case ']':
		fail(r, CS_E_INVALID, r->at, "a bracket without its other half (the character itself needs a backslash)");
		return NULL;
	case '.':
		r->at++;
		add_range(r, &set, 0, PAT_MAX_CHAR);
		return class_node(r, &set);
	case '\\':
		r->at++;
		c = escaped(r, &set);
		break;
	default: c = plain_char(r);
	}
	if (c >= 0)
		add_range(r, &set, (uint32_t)c, (uint32_t)c);
	return class_node(r, &set);
}

static bool parse_count(struct reader *r, uint32_t *ret)
{
	uint32_t n = 0;
	const char *start = r->at;

	for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
		n = n * 10 + (uint32_t)(*r->at - '0');
		if (n > PAT_MAX_COUNT) {
			fail(r, CS_E_LIMIT, start, "repeated more than 1000 times");
			return false;
		}
	}
	*ret = n;
	return r->at > start;
}

/* {n} {n,} {,m} {n,m} */
static void parse_bounds(struct reader *r, uint32_t *min, uint32_t *max)
{
	const char *open = r->at++;
	bool some = parse_count(r, min);

	*max = *min;
	if (*r->at == ',') {
		r->at++;
		*min = some ? *min : 0;
		if (parse_count(r, max))
			some = true;
		else
			*max = UINT32_MAX;
	}
	if (!r->failed && (*r->at != '}' || !some))
		fail(r, CS_E_INVALID, open, "expected {n}, {n,} or {n,m} (the character itself is \\{)");
	else if (!r->failed && *max < *min)
		fail(r, CS_E_INVALID, open, "a repetition whose most is below its least");
	else if (!r->failed)
		r->at++;
}

static struct pat_node *parse_repeat(struct reader *r)
{
	struct pat_node *atom = parse_atom(r), *n;
	const struct pat_node **kid;
	uint32_t min = 0, max = UINT32_MAX;

	if (r->failed || !*r->at || !strchr("*+?{", *r->at))
		return atom;
	if (*r->at == '{') {
		parse_bounds(r, &min, &max);
	} else {
		min = *r->at == '+';
		max = *r->at == '?' ? 1 : UINT32_MAX;
		r->at++;
	}
	if (!r->failed && *r->at && strchr("*+?{", *r->at))
		fail(r, CS_E_INVALID, r->at, *r->at == '?' ? "a lazy repetition: the whole string is meant, so leave out the ?," : "a repetition of a repetition; use brackets");
	n = node_new(r, PAT_REPEAT);
	kid = get(r, 1, sizeof *kid);
	if (r->failed)
		return NULL;
	/* Nothing, however often, is nothing; and must not cost. */
	if (!atom->chars || max == 0) {
		n->kind = PAT_EMPTY;
		return n;
	}
	*kid = atom;
	n->kids = kid;
	n->n = 1;
	n->min = min;
	n->max = max;
	n->chars = true;
	return n;
}

/* Parts up to `stop` into one node; `part` reads one. */
static struct pat_node *parse_list(struct reader *r, enum pat_kind kind)
{
	struct pat_node *n = node_new(r, kind);
	const struct pat_node **kids = NULL;
	uint32_t cap = 0, count = 0;

	while (!r->failed) {
		const struct pat_node *kid;

		if (kind == PAT_CAT && (!*r->at || *r->at == '|' || *r->at == ')'))
			break;
		kid = kind == PAT_CAT ? parse_repeat(r) : parse_list(r, PAT_CAT);
		if (!r->failed && count == cap) {
			const struct pat_node **wider = get(r, cap = cap ? cap * 2 : 4, sizeof *wider);

			if (wider && count)
				memcpy(wider, kids, count * sizeof *wider);
			kids = wider;
		}
		if (r->failed)
			return NULL;
		kids[count++] = kid;
		n->chars |= kid->chars;
		if (kind == PAT_ALT && *r->at != '|')
			break;
		r->at += kind == PAT_ALT;
	}
	if (r->failed)
		return NULL;
	if (count == 1)
		return (struct pat_node *)kids[0];
	if (!count)
		n->kind = PAT_EMPTY;
	n->n = count;
	n->kids = kids;
	return n;
}

static struct pat_node *parse_alternatives(struct reader *r)
{
	return parse_list(r, PAT_ALT);
}

/* ---- the automaton ---- */

struct builder {
	struct pat_state *v;
	uint32_t n;
	bool over;
};

static uint32_t emit(struct builder *b, enum pat_op op, const struct pat_node *read)
{
	if (b->n >= PAT_MAX_STATES) {
		b->over = true;
		return 0;
	}
	b->v[b->n] = (struct pat_state){ .op = (uint8_t)op, .read = read };
	return b->n++;
}

static void build(struct builder *b, const struct pat_node *n);

static void build_alternatives(struct builder *b, const struct pat_node *n, uint32_t at)
{
	uint32_t split, jump;

	if (at + 1 == n->n) {
		build(b, n->kids[at]);
		return;
	}
	split = emit(b, PAT_SPLIT, NULL);
	b->v[split].x = (uint16_t)b->n;
	build(b, n->kids[at]);
	jump = emit(b, PAT_JUMP, NULL);
	b->v[split].y = (uint16_t)b->n;
	if (b->over)
		return;
	build_alternatives(b, n, at + 1);
	b->v[jump].x = (uint16_t)b->n;
}

static void build_repeat(struct builder *b, const struct pat_node *n)
{
	uint32_t split;

	for (uint32_t i = 0; i < n->min && !b->over; i++)
		build(b, n->kids[0]);
	if (n->max == UINT32_MAX) {
		uint32_t jump;

		split = emit(b, PAT_SPLIT, NULL);
		b->v[split].x = (uint16_t)b->n;
		build(b, n->kids[0]);
		jump = emit(b, PAT_JUMP, NULL);
		b->v[jump].x = (uint16_t)split;
		b->v[split].y = (uint16_t)b->n;
		return;
	}
	/* x{0,3} is x?x?x?: the same language, and every part can be left out by itself. */
	for (uint32_t i = n->min; i < n->max && !b->over; i++) {
		split = emit(b, PAT_SPLIT, NULL);
		b->v[split].x = (uint16_t)b->n;
		build(b, n->kids[0]);
		b->v[split].y = (uint16_t)b->n;
	}
}

static void build(struct builder *b, const struct pat_node *n)
{
	if (b->over)
		return;
	switch (n->kind) {
	case PAT_EMPTY: break;
	case PAT_CLASS: emit(b, PAT_READ, n); break;
	case PAT_CAT:
		for (uint32_t i = 0; i < n->n && !b->over; i++)
			build(b, n->kids[i]);
		break;
	case PAT_ALT: build_alternatives(b, n, 0); break;
	case PAT_REPEAT: build_repeat(b, n); break;
	}
}

int pattern_compile(struct cs_arena *a, const char *text, const struct pattern **ret, struct cs_err *err)
{
	struct pat_state states[PAT_MAX_STATES];
	struct builder b = { .v = states };
	struct reader r = { .a = a, .text = text, .at = text, .err = err };
	struct pattern *p = get(&r, 1, sizeof *p);
	struct pat_state *kept;

	if (!p)
		return r.failed;
	p->root = parse_alternatives(&r);
	if (!r.failed && *r.at)
		fail(&r, CS_E_INVALID, r.at, "a ) without its ( (the character itself is \\))");
	if (r.failed)
		return r.failed;
	build(&b, p->root);
	emit(&b, PAT_END, NULL);
	if (b.over)
		return cs_fail(err, CS_E_LIMIT, 0, "the pattern needs more than %d states; use smaller counts", PAT_MAX_STATES);
	kept = get(&r, b.n, sizeof *kept);
	p->text = cs_arena_dup(a, text, strlen(text));
	if (!kept || !p->text)
		return cs_fail(err, CS_E_LIMIT, 0, "no memory is left for the pattern");
	memcpy(kept, states, b.n * sizeof *kept);
	p->states = kept;
	p->n = b.n;
	*ret = p;
	return 0;
}

const char *pattern_text(const struct pattern *p)
{
	return p->text;
}

/* ---- matching ---- */

struct set {
	uint16_t v[PAT_MAX_STATES];
	uint32_t n;
	uint64_t in[(PAT_MAX_STATES + 63) / 64];
};

/* The state, and all that are reached from it without reading. */
static void reach(const struct pattern *p, struct set *s, uint16_t at)
{
	uint16_t stack[PAT_MAX_STATES + 1];
	uint32_t n = 0;

	stack[n++] = at;
	while (n) {
		const struct pat_state *st;

		at = stack[--n];
		if (s->in[at / 64] >> (at % 64) & 1)
			continue;
		s->in[at / 64] |= 1ull << (at % 64);
		st = &p->states[at];
		/* At most two are added per state that is new: never more than there are states. */
		if (st->op == PAT_READ || st->op == PAT_END)
			s->v[s->n++] = at;
		else if (!(s->in[st->x / 64] >> (st->x % 64) & 1) && n < PAT_MAX_STATES)
			stack[n++] = st->x;
		if (st->op == PAT_SPLIT && n < PAT_MAX_STATES)
			stack[n++] = st->y;
	}
}

static bool fits(const struct pat_node *n, uint32_t c)
{
	uint32_t lo = 0, hi = n->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (c < n->ranges[mid].lo)
			hi = mid;
		else if (c > n->ranges[mid].hi)
			lo = mid + 1;
		else
			return true;
	}
	return false;
}

static void clear(struct set *s)
{
	s->n = 0;
	memset(s->in, 0, sizeof s->in);
}

bool pattern_match(const struct pattern *p, const char *text, size_t len)
{
	struct set sets[2], *now = &sets[0], *then = &sets[1], *swap;
	const char *end = text + len;

	clear(now);
	reach(p, now, 0);
	while (text < end && now->n) {
		int64_t c = next_char(&text, end);

		if (c < 0)
			return false;
		clear(then);
		for (uint32_t i = 0; i < now->n; i++) {
			const struct pat_state *st = &p->states[now->v[i]];

			if (st->op == PAT_READ && fits(st->read, (uint32_t)c))
				reach(p, then, (uint16_t)(now->v[i] + 1));
		}
		swap = now;
		now = then;
		then = swap;
	}
	for (uint32_t i = 0; i < now->n; i++)
		if (p->states[now->v[i]].op == PAT_END)
			return text == end;
	return false;
}
