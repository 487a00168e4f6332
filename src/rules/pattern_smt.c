/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_smt.c - a pattern as a term of SMT-LIB 2.6's theory of strings.
 *
 * That theory knows characters up to U+2FFFF only; what lies above is left out
 * of classes, as no string of the solver can hold it. */
#include "rules/pattern_internal.h"

enum { SMT_MAX_CHAR = 0x2ffff };

static void put_char(struct cs_buf *b, uint32_t c)
{
	if (c == '"')
		cs_buf_str(b, "\"\"");
	else if (c >= 0x20 && c < 0x7f && c != '\\')
		cs_buf_char(b, (char)c);
	else
		cs_buf_fmt(b, "\\u{%x}", c);
}

static bool one_char(const struct pat_node *n)
{
	return n->kind == PAT_CLASS && n->n == 1 && n->ranges[0].lo == n->ranges[0].hi && n->ranges[0].lo <= SMT_MAX_CHAR;
}

static void put_range(struct cs_buf *b, const struct pat_range *r)
{
	uint32_t hi = r->hi < SMT_MAX_CHAR ? r->hi : SMT_MAX_CHAR;

	if (r->lo == 0 && hi == SMT_MAX_CHAR) {
		cs_buf_str(b, "re.allchar");
		return;
	}
	cs_buf_str(b, r->lo == hi ? "(str.to_re \"" : "(re.range \"");
	put_char(b, r->lo);
	if (r->lo != hi) {
		cs_buf_str(b, "\" \"");
		put_char(b, hi);
	}
	cs_buf_str(b, "\")");
}

static void put_class(struct cs_buf *b, const struct pat_node *n)
{
	uint32_t in = 0;

	while (in < n->n && n->ranges[in].lo <= SMT_MAX_CHAR)
		in++;
	if (in == 0) {
		cs_buf_str(b, "re.none");
		return;
	}
	if (in > 1)
		cs_buf_str(b, "(re.union");
	for (uint32_t i = 0; i < in; i++) {
		if (in > 1)
			cs_buf_char(b, ' ');
		put_range(b, &n->ranges[i]);
	}
	if (in > 1)
		cs_buf_char(b, ')');
}

static void put_node(struct cs_buf *b, const struct pat_node *n);

static void put_literal(struct cs_buf *b, const struct pat_node *const *kids, uint32_t n)
{
	cs_buf_str(b, "(str.to_re \"");
	for (uint32_t i = 0; i < n; i++)
		put_char(b, kids[i]->ranges[0].lo);
	cs_buf_str(b, "\")");
}

static uint32_t literal_run(const struct pat_node *n, uint32_t from)
{
	uint32_t at = from;

	while (at < n->n && one_char(n->kids[at]))
		at++;
	return at - from;
}

/* A word at a time: solvers are far quicker with one string than with a chain of characters. */
static void put_cat(struct cs_buf *b, const struct pat_node *n)
{
	uint32_t run = literal_run(n, 0);

	if (run == n->n) {
		put_literal(b, n->kids, n->n);
		return;
	}
	cs_buf_str(b, "(re.++");
	for (uint32_t i = 0; i < n->n;) {
		run = literal_run(n, i);
		cs_buf_char(b, ' ');
		if (run)
			put_literal(b, n->kids + i, run);
		else
			put_node(b, n->kids[i]);
		i += run ? run : 1;
	}
	cs_buf_char(b, ')');
}

static void put_repeat(struct cs_buf *b, const struct pat_node *n)
{
	bool both = n->max == UINT32_MAX && n->min > 1;

	if (both)
		cs_buf_fmt(b, "(re.++ ((_ re.^ %u) ", n->min);
	else if (n->max == UINT32_MAX)
		cs_buf_str(b, n->min ? "(re.+ " : "(re.* ");
	else if (n->min == 0 && n->max == 1)
		cs_buf_str(b, "(re.opt ");
	else if (n->min == n->max)
		cs_buf_fmt(b, "((_ re.^ %u) ", n->min);
	else
		cs_buf_fmt(b, "((_ re.loop %u %u) ", n->min, n->max);
	put_node(b, n->kids[0]);
	if (both) {
		cs_buf_str(b, ") (re.* ");
		put_node(b, n->kids[0]);
		cs_buf_char(b, ')');
	}
	cs_buf_char(b, ')');
}

static void put_node(struct cs_buf *b, const struct pat_node *n)
{
	switch (n->kind) {
	case PAT_EMPTY: cs_buf_str(b, "(str.to_re \"\")"); break;
	case PAT_CLASS: put_class(b, n); break;
	case PAT_CAT: put_cat(b, n); break;
	case PAT_REPEAT: put_repeat(b, n); break;
	case PAT_ALT:
		cs_buf_str(b, "(re.union");
		for (uint32_t i = 0; i < n->n; i++) {
			cs_buf_char(b, ' ');
			put_node(b, n->kids[i]);
		}
		cs_buf_char(b, ')');
		break;
	}
}

void pattern_smt(const struct pattern *p, struct cs_buf *b)
{
	put_node(b, p->root);
}
