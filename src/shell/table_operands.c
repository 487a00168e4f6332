/* SPDX-License-Identifier: Apache-2.0 */
/* table_operands.c - which operand is what: the first pattern of the row whose modes and count fit.
 *
 * A pattern of files and an unquoted variable may stand for several words, or for none; then every operand gets each role
 * that it may have. */
#include "shell/table_run.h"

#include <string.h>

/* ---- operands ---- */

/* A pattern of operands: `lead` slots before the one that repeats, `trail` after. */
struct layout {
	const struct sh_table *t;
	const struct sh_slot *slot;
	size_t n, lead, trail;
	bool many;
};

static void lay_out(const struct tbl_run *r, const struct sh_pattern *p, struct layout *ret)
{
	*ret = (struct layout){ .t = r->hit.t, .slot = r->hit.t->slots + p->slot, .n = p->n_slots, .lead = p->n_slots };
	while (ret->n && ret->slot[ret->n - 1].form == SH_FORM_FIXED)
		ret->lead = --ret->n;
	for (size_t k = 0; k < ret->n; k++)
		if (ret->slot[k].repeat == SH_MANY && ret->slot[k].form != SH_FORM_ENVS) {
			ret->many = true;
			ret->lead = k;
			ret->trail = ret->n - k - 1;
			break;
		}
}

static const char *text_of(const struct tbl_run *r, size_t op)
{
	return r->argv[r->operands[op]].text;
}

/* Every operand is one word: each has one place. from: how many are dealt with already (NAME=VALUE of env). */
static void assign(struct tbl_run *r, const struct layout *l, size_t from)
{
	size_t n = r->n_operands, trail = l->trail;
	/* Too few for all: those at the front come first. */
	if (n - from < l->lead + trail)
		trail = n - from > l->lead ? n - from - l->lead : 0;
	for (size_t i = from, k = 0; i < n; i++) {
		const struct sh_slot *s = NULL;

		if (k < l->lead && l->slot[k].form == SH_FORM_ENVS)
			k++;
		if (k < l->lead)
			s = &l->slot[k++];
		else if (l->many && i >= n - trail)
			s = &l->slot[l->n - (n - i)];
		else if (l->many)
			s = &l->slot[l->lead];
		if (!s) {
			tbl_unknown(r, r->operands[i], "%s is one operand too many for %s");
			return;
		}
		if (tbl_takes_rest(r, s, i))
			return;
		tbl_value(r, l->t, s, r->operands[i], text_of(r, i));
	}
}

/* The same where words may be several but a command follows: its place is known, or it is not known where it begins. */
static void assign_before_rest(struct tbl_run *r, const struct layout *l, size_t from)
{
	for (size_t i = from; i < r->n_operands && i - from < l->lead; i++)
		if (tbl_is_many(&r->argv[r->operands[i]])) {
			tbl_unknown(r, r->operands[i], "%s may be several words: what %s runs is not known");
			break;
		}
	assign(r, l, from);
}

/* Some operand may be several words, or none: each gets every role that it may have. */
static void assign_unsure(struct tbl_run *r, const struct layout *l, int count)
{
	size_t n = r->n_operands, first = n, last = 0, fixed_after = 0;

	for (size_t i = 0; i < n; i++)
		if (tbl_is_many(&r->argv[r->operands[i]])) {
			first = first == n ? i : first;
			last = i;
		}
	for (size_t i = 0; i < n; i++)
		fixed_after += r->argv[r->operands[i]].known != SH_DYNAMIC;
	for (size_t i = 0, before = 0; i < n; i++) {
		const struct sh_arg *a = &r->argv[r->operands[i]];
		bool counted = a->known != SH_DYNAMIC;
		size_t after = fixed_after - before - counted, given = 0;
		bool more_before = i >= first, more_after = i <= last && (i < last || tbl_is_many(a));
		uint8_t seen[64];

		for (size_t k = 0; k < l->n; k++) {
			const struct sh_slot *s = &l->slot[k];
			size_t back = l->n - 1 - k;
			bool may, dup = false;

			if (k < l->lead)
				may = s->form == SH_FORM_ENVS || k == before || (k > before && more_before && (count < 0 || k + after < (size_t)count));
			else if (k == l->lead && l->many)
				may = (before >= l->lead || more_before) && (after >= l->trail || more_after);
			else
				may = back == after || (back > after && more_after);
			for (size_t d = 0; d < given; d++)
				dup |= !memcmp(&l->slot[seen[d]], s, sizeof *s);
			if (!may || dup)
				continue;
			if (given < sizeof seen)
				seen[given++] = (uint8_t)k;
			tbl_value(r, l->t, s, r->operands[i], text_of(r, i));
		}
		if (count < 0 && !l->many && (before >= l->n || (more_after && l->n)) && !(r->hit.row->flags & SH_ROW_INERT)) {
			tbl_unknown(r, r->operands[i], "%s may be one operand too many for %s");
			return;
		}
		before += counted;
	}
}

static bool ends_in_rest(const struct layout *l)
{
	return l->n && (l->slot[l->n - 1].form == SH_FORM_REST || l->slot[l->n - 1].form == SH_FORM_REST_C || l->slot[l->n - 1].form == SH_FORM_JOIN);
}

/* NAME=VALUE before a command. Returns how many. */
static size_t take_env(struct tbl_run *r, const struct layout *l)
{
	size_t n = 0;

	if (!l->n || l->slot[0].form != SH_FORM_ENVS)
		return 0;
	for (; n < r->n_operands; n++) {
		const struct sh_arg *a = &r->argv[r->operands[n]];

		if (tbl_is_many(a) || !tbl_is_assignment(a->text))
			break;
		tbl_emit(r, l->t, &l->slot[0], r->operands[n], a->text, a->known);
	}
	return n;
}

static bool condition_holds(const struct tbl_run *r, const struct sh_pattern *p, size_t least, bool exact)
{
	if ((p->modes & r->modes) != p->modes)
		return false;
	if (p->count < 0)
		return true;
	return exact ? (size_t)p->count == least : (size_t)p->count >= least;
}

void tbl_operands(struct tbl_run *r)
{
	const struct sh_pattern *p = r->hit.t->patterns + r->hit.row->pattern;
	size_t least = 0;
	bool exact = true, any = false;

	for (size_t i = 0; i < r->n_operands; i++) {
		const struct sh_arg *a = &r->argv[r->operands[i]];

		least += a->known != SH_DYNAMIC;
		exact &= !tbl_is_many(a);
	}
	for (size_t k = 0; k < r->hit.row->n_patterns; k++, p++) {
		struct layout l;

		if (!condition_holds(r, p, least, exact))
			continue;
		any = true;
		lay_out(r, p, &l);
		tbl_take_does(r, p->does, &r->hit);
		for (size_t x = l.n; x < p->n_slots; x++)
			sh_findings_add(r->f, (struct sh_finding){ .role = l.slot[x].role, .text = l.t->strings + l.slot[x].lang, .known = SH_LITERAL });
		if (exact)
			assign(r, &l, take_env(r, &l));
		else if (ends_in_rest(&l))
			assign_before_rest(r, &l, take_env(r, &l));
		else
			assign_unsure(r, &l, p->count);
		if (exact)
			return;
		/* With another number of words another pattern may be the one. */
		if (p->count < 0)
			return;
	}
	if (!any && r->n_operands)
		tbl_unknown(r, r->operands[0], "%s: the table has no such operands of %s");
}
