/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_past.c - past formulas, for all tuples of values at once.
 *
 * A formula's state for one tuple is a vector of truth values.  Tuples with the
 * same vector are a class; what happens to a class by an event that binds none of
 * its tuples is worked out once.  An event therefore costs as many steps as there
 * are distinct vectors, of which a formula has few, however many tuples there are.
 * A tuple that an event binds leaves its class for that of its own new vector.
 * Tuples that were never bound, or whose vector is theirs again, are not stored:
 * they are the `other` class.
 *
 * Merging two classes renames the tuples of the smaller one.  Tuples leave a class
 * one by one, each by an event of its own, so renaming costs O(log n) per event
 * on average.
 *
 * Events that no atom of the formula speaks of are not even looked at: they are
 * counted and made up for later, in a bounded number of steps.  For with all atoms
 * false from step 1 on, by induction over the formula every subformula f has the
 * same value from step 1 + p(f) on, p(f) being the most `previously` on a path
 * in f: a boolean is constant once its operands are; once, historically and since
 * are constant from the step at which their operands are (applying
 * s' = a op s twice gives what it gives once, in a lattice that is distributive);
 * a sequence does not move while its events are false; `previously` is constant
 * one step after its operand.  So 1 + (number of `previously`) steps are as good
 * as any larger number.
 */
#include "rules/monitor_internal.h"

#include <stdlib.h>
#include <string.h>

/* A tuple in its class. */
struct rl_member {
	uint32_t class_, next, prev;
	uint32_t pad;
	uint64_t yes, maybe; /* counting only, not there otherwise: to be added to those of the class */
};

static struct rl_member *member(const struct rl_unit_state *s, uint32_t i)
{
	return rl_table_at(&s->tuples, i);
}

/* ---- vectors ---- */

static enum rl_truth slot_get(const uint64_t *bits, uint32_t slot)
{
	return (enum rl_truth)(bits[slot / 32] >> (slot % 32 * 2) & 3);
}

static void slot_set(uint64_t *bits, uint32_t slot, uint8_t v)
{
	bits[slot / 32] |= (uint64_t)v << (slot % 32 * 2);
}

static uint8_t min(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static uint8_t max(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

static uint8_t node_value(const struct rl_node *nodes, uint32_t i, const uint8_t *v, const uint64_t *old, const uint8_t *atoms, bool first)
{
	const struct rl_node *n = &nodes[i];

	switch (n->op) {
	case RL_TRUE: return RL_IS_TRUE;
	case RL_FALSE: return RL_IS_FALSE;
	case RL_EVENT: return atoms[n->atom];
	case RL_NOT: return (uint8_t)(RL_IS_TRUE - v[n->a]);
	case RL_AND: return min(v[n->a], v[n->b]);
	case RL_OR: return max(v[n->a], v[n->b]);
	case RL_ONCE: return max((uint8_t)slot_get(old, n->slot), v[n->a]);
	case RL_HIST: return min((uint8_t)slot_get(old, n->slot), v[n->a]);
	case RL_SINCE: return max(v[n->b], min(v[n->a], (uint8_t)slot_get(old, n->slot)));
	case RL_PREV: return first ? RL_IS_FALSE : (uint8_t)slot_get(old, nodes[n->a].slot);
	case RL_SEQ: return max((uint8_t)slot_get(old, n->slot), min(v[n->a], n->b == RL_NONE ? RL_IS_TRUE : (uint8_t)slot_get(old, nodes[n->b].slot)));
	default: return RL_IS_UNKNOWN;
	}
}

static uint8_t empty_value(const struct rl_node *n, const uint8_t *v)
{
	switch (n->op) {
	case RL_TRUE: case RL_HIST: return RL_IS_TRUE;
	case RL_NOT: return (uint8_t)(RL_IS_TRUE - v[n->a]);
	case RL_AND: return min(v[n->a], v[n->b]);
	case RL_OR: return max(v[n->a], v[n->b]);
	case RL_FALSE: case RL_EVENT: case RL_ONCE: case RL_PREV: case RL_SINCE: case RL_SEQ: return RL_IS_FALSE;
	default: return RL_IS_UNKNOWN;
	}
}

static void keep_slots(const struct rl_unit *u, const uint8_t *v, uint64_t *bits)
{
	memset(bits, 0, u->words * sizeof *bits);
	for (uint32_t i = 0; i < u->n_nodes; i++)
		if (u->nodes[i].slot != RL_NONE)
			slot_set(bits, u->nodes[i].slot, v[i]);
}

/* The vector after an event. `to` may be `old`. */
static void step(const struct rl_unit *u, const uint64_t *old, const uint8_t *atoms, bool first, uint8_t *v, uint64_t *to)
{
	for (uint32_t i = 0; i < u->n_nodes; i++)
		v[i] = node_value(u->nodes, i, v, old, atoms, first);
	keep_slots(u, v, to);
}

static uint64_t *bits_of(const struct rl_unit *u, const struct rl_unit_state *s, uint32_t c)
{
	return s->bits + (size_t)c * u->words;
}

static bool same_bits(const struct rl_unit *u, const uint64_t *a, const uint64_t *b)
{
	return !memcmp(a, b, u->words * sizeof *a);
}

/* ---- classes ---- */

static void count_value(struct rl_class *c, enum rl_truth t, uint64_t times)
{
	if (t == RL_IS_TRUE)
		c->yes += times;
	else if (t == RL_IS_UNKNOWN)
		c->maybe += times;
}

static bool grow_classes(struct rules_monitor *m, const struct rl_unit *u, struct rl_unit_state *s)
{
	uint32_t cap = s->cap_classes ? s->cap_classes * 2 : 2;
	size_t word = u->words * sizeof *s->bits;
	void *p = rl_resize(&m->mem, s->classes, s->cap_classes * sizeof *s->classes, cap * sizeof *s->classes);
	void *q;

	if (!p)
		return false;
	s->classes = p;
	q = rl_resize(&m->mem, s->bits, s->cap_classes * word, cap * word);
	if (!q) { /* each array must have the size that is counted for it */
		s->classes = rl_resize(&m->mem, p, cap * sizeof *s->classes, s->cap_classes * sizeof *s->classes);
		if (!s->classes)
			s->classes = p;
		return false;
	}
	s->bits = q;
	s->cap_classes = cap;
	return true;
}

static uint32_t new_class(struct rules_monitor *m, const struct rl_unit *u, struct rl_unit_state *s, const uint64_t *bits)
{
	uint32_t c = 0;

	while (c < s->n_classes && s->classes[c].live)
		c++;
	if (c == s->cap_classes && !grow_classes(m, u, s))
		return RL_NONE;
	if (c == s->n_classes)
		s->n_classes++;
	s->classes[c] = (struct rl_class){ .head = RL_NONE, .live = true };
	memcpy(bits_of(u, s, c), bits, u->words * sizeof *bits);
	return c;
}

static uint32_t class_of(struct rules_monitor *m, const struct rl_unit *u, struct rl_unit_state *s, const uint64_t *bits)
{
	for (uint32_t c = 0; c < s->n_classes; c++)
		if (s->classes[c].live && same_bits(u, bits_of(u, s, c), bits))
			return c;
	return new_class(m, u, s, bits);
}

static void leave_class(struct rl_unit_state *s, uint32_t i)
{
	struct rl_member *e = member(s, i);
	struct rl_class *c = &s->classes[e->class_];

	if (e->prev == RL_NONE)
		c->head = e->next;
	else
		member(s, e->prev)->next = e->next;
	if (e->next != RL_NONE)
		member(s, e->next)->prev = e->prev;
	if (--c->size || e->class_ == s->other)
		return;
	c->live = false;
	while (s->n_classes && !s->classes[s->n_classes - 1].live)
		s->n_classes--;
}

static void join_class(struct rl_unit_state *s, uint32_t i, uint32_t c)
{
	struct rl_member *e = member(s, i);

	e->class_ = c;
	e->prev = RL_NONE;
	e->next = s->classes[c].head;
	if (e->next != RL_NONE)
		member(s, e->next)->prev = i;
	s->classes[c].head = i;
	s->classes[c].size++;
}

static void forget(struct rules_monitor *m, struct rl_unit_state *s, uint32_t i)
{
	leave_class(s, i);
	rl_tuple_drop(m, &s->tuples, i);
}

/* A tuple with the vector of the rest is one of the rest. Not once the table has been full: then the rest is not known. */
static bool forgettable(const struct rl_unit *u, const struct rl_unit_state *s, uint32_t c)
{
	return c == s->other && !u->counting && !s->tuples.full;
}

/* All of `from` into `to`. */
static void merge_into(struct rules_monitor *m, const struct rl_unit *u, struct rl_unit_state *s, uint32_t from, uint32_t to)
{
	struct rl_class *f = &s->classes[from];
	uint64_t yes = f->yes - s->classes[to].yes, maybe = f->maybe - s->classes[to].maybe;
	uint32_t i;

	if (s->other == from) {
		s->other = to;
		s->other_yes += yes;
		s->other_maybe += maybe;
		f->live = f->size > 0;
	}
	while ((i = f->head) != RL_NONE) {
		struct rl_member *e = member(s, i);

		if (u->counting) {
			e->yes += yes;
			e->maybe += maybe;
		}
		if (forgettable(u, s, to)) {
			forget(m, s, i);
		} else {
			leave_class(s, i);
			join_class(s, i, to);
		}
	}
	while (s->n_classes && !s->classes[s->n_classes - 1].live)
		s->n_classes--;
	if (forgettable(u, s, to))
		while (s->classes[to].head != RL_NONE)
			forget(m, s, s->classes[to].head);
}

static void merge(struct rules_monitor *m, const struct rl_unit *u, struct rl_unit_state *s, uint32_t a, uint32_t b)
{
	/* Into the other ones if those are forgotten by it; else the smaller into the larger. */
	if (a == s->other ? forgettable(u, s, a) : !forgettable(u, s, b) && s->classes[a].size >= s->classes[b].size)
		merge_into(m, u, s, b, a);
	else
		merge_into(m, u, s, a, b);
}

static uint64_t bits_hash(const struct rl_unit *u, const uint64_t *bits)
{
	uint64_t h = 0;

	for (uint32_t i = 0; i < u->words; i++) {
		h = (h ^ bits[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return h;
}

/* Room to see which vectors are equal. Without it classes stay apart, which costs time and changes no verdict. */
static bool room_to_see(struct rules_monitor *m, uint32_t classes)
{
	uint32_t n = m->n_seen ? m->n_seen : 8;
	void *p;

	while (n < classes * 2)
		n *= 2;
	if (n > m->n_seen) {
		p = rl_resize(&m->mem, m->seen, m->n_seen * sizeof *m->seen, n * sizeof *m->seen);
		if (!p)
			return false;
		m->seen = p;
		m->n_seen = n;
	}
	return true;
}

static void merge_equal(struct rules_monitor *m, const struct rl_unit *u, struct rl_unit_state *s)
{
	uint32_t mask = 7;

	if (s->n_classes < 2 || !room_to_see(m, s->n_classes))
		return;
	while (mask + 1 < s->n_classes * 2)
		mask = mask * 2 + 1;
	memset(m->seen, 0xff, (mask + 1) * sizeof *m->seen);
	for (uint32_t c = 0; c < s->n_classes; c++) {
		uint32_t at;

		if (!s->classes[c].live)
			continue;
		at = (uint32_t)(bits_hash(u, bits_of(u, s, c)) >> 32) & mask;
		while (m->seen[at] != RL_NONE && !same_bits(u, bits_of(u, s, m->seen[at]), bits_of(u, s, c)))
			at = (at + 1) & mask;
		if (m->seen[at] != RL_NONE) {
			merge(m, u, s, m->seen[at], c);
			if (!s->classes[c].live)
				continue;
		}
		m->seen[at] = c;
	}
}

/* ---- time goes on ---- */

/* One event for all classes. Whether some vector changed. */
static bool step_classes(struct rules_monitor *m, const struct rl_unit *u, struct rl_unit_state *s, const uint8_t *atoms)
{
	bool changed = false;

	for (uint32_t c = 0; c < s->n_classes; c++) {
		uint64_t *bits = bits_of(u, s, c);

		if (!s->classes[c].live)
			continue;
		step(u, bits, atoms, s->events == 0, m->node_values, m->new_bits);
		changed |= !same_bits(u, bits, m->new_bits);
		memcpy(bits, m->new_bits, u->words * sizeof *bits);
		if (u->counting)
			count_value(&s->classes[c], slot_get(bits, 0), 1);
	}
	s->events++;
	return changed;
}

/* The events since the last one that concerned the formula. */
static void catch_up(struct rules_monitor *m, const struct rl_unit *u, struct rl_unit_state *s)
{
	uint64_t left;
	bool any = false;

	if (s->events == m->events)
		return;
	memset(m->atom_values, RL_IS_FALSE, u->n_atoms);
	for (uint32_t i = 0; !s->rest && i < 1 + u->n_prev && s->events < m->events; i++) {
		bool first = s->events == 0, changed = step_classes(m, u, s, m->atom_values);

		any |= changed;
		s->rest = i == u->n_prev || (!first && !changed);
	}
	if (any)
		merge_equal(m, u, s);
	left = m->events - s->events;
	s->events = m->events;
	for (uint32_t c = 0; u->counting && left && c < s->n_classes; c++)
		if (s->classes[c].live)
			count_value(&s->classes[c], slot_get(bits_of(u, s, c), 0), left);
}

void rl_unit_settle(struct rules_monitor *m, uint32_t unit)
{
	if (!m->units[unit].lost)
		catch_up(m, &m->plan->units[unit], &m->units[unit]);
}

/* ---- an event ---- */

enum rl_truth rl_atom_match(struct rl_eval *e, const struct rl_atom *a, const struct rules_event *ev,
			    const uint32_t *vars, uint32_t n_vars, const struct json **bound, bool *ret_all)
{
	static const enum rl_event kinds[] = { [RULES_EV_USER] = RL_EV_USER, [RULES_EV_CONFIRM] = RL_EV_CONFIRM, [RULES_EV_CALL] = RL_EV_CALL,
					       [RULES_EV_OK] = RL_EV_OK, [RULES_EV_FAIL] = RL_EV_FAIL };
	const struct rl_formula *f = a->event;
	enum rl_truth t = RL_IS_TRUE, w;
	rl_set where;

	*ret_all = false;
	if (ev->kind == RULES_EV_END || kinds[ev->kind] != f->event)
		return RL_IS_FALSE;
	if (f->call)
		t = rl_match(e, f->call, bound);
	if (t != RL_IS_FALSE && f->where) {
		where = rl_eval(e, f->where);
		w = where == RL_MAY_TRUE ? RL_IS_TRUE : where == RL_MAY_FALSE ? RL_IS_FALSE : RL_IS_UNKNOWN;
		t = w < t ? w : t;
	}
	if (t == RL_IS_FALSE || !a->open)
		return t;
	for (uint32_t i = 0; i < n_vars; i++)
		if (!bound[vars[i]]) {
			*ret_all = true;
			return RL_IS_UNKNOWN;
		}
	return t;
}

/* Numbers of atoms and their tuples while one event is looked at. */
struct look {
	struct rl_eval *e;
	const struct rl_unit *u;
	struct rl_unit_state *s;
	const struct json **bound; /* per touched tuple, by the unit's variables */
	uint8_t *closed;           /* per atom: its value for all tuples it does not bind */
	uint8_t *open;             /* per atom: its value for the tuple that it binds */
	uint32_t *tuple;           /* per atom: the touched tuple that it binds, or RL_NONE */
	uint32_t n_touched;
};

static uint32_t touched_of(struct look *l, const struct json *const *by_rule)
{
	const struct json **mine;
	uint32_t k, j;

	for (k = 0; k < l->n_touched; k++) {
		mine = l->bound + (size_t)k * l->u->n_vars;
		for (j = 0; j < l->u->n_vars; j++)
			if (!json_equal(mine[j], by_rule[l->u->vars[j]]))
				break;
		if (j == l->u->n_vars)
			return k;
	}
	mine = l->bound + (size_t)k * l->u->n_vars;
	for (j = 0; j < l->u->n_vars; j++)
		mine[j] = by_rule[l->u->vars[j]];
	l->n_touched++;
	return k;
}

static void look_at_atoms(struct look *l, const struct rules_event *ev)
{
	struct rules_monitor *m = l->e->m;
	const struct json **by_rule = m->bound + (size_t)m->plan->max_atoms * m->plan->max_vars;

	for (uint32_t i = 0; i < l->u->n_atoms; i++) {
		enum rl_truth t;
		bool all;

		memset(by_rule, 0, l->u->rule_vars * sizeof *by_rule);
		t = rl_atom_match(l->e, &l->u->atoms[i], ev, l->u->vars, l->u->n_vars, by_rule, &all);
		l->closed[i] = (uint8_t)t;
		l->tuple[i] = RL_NONE;
		if (!l->u->atoms[i].open || all || t == RL_IS_FALSE)
			continue;
		l->closed[i] = RL_IS_FALSE;
		l->open[i] = (uint8_t)t;
		l->tuple[i] = touched_of(l, by_rule);
	}
}

static uint32_t find_tuple(struct rules_monitor *m, const struct rl_table *t, const struct json *const *values)
{
	for (uint32_t i = 0; i < t->width; i++) {
		m->ids[i] = rl_values_find(&m->values, values[i]);
		if (m->ids[i] == RL_NONE)
			return RL_NONE;
	}
	return rl_table_find(t, m->ids);
}

/* The new vector of touched tuple k, from its old one. */
static void step_touched(struct look *l, uint32_t k, uint64_t *to)
{
	struct rules_monitor *m = l->e->m;
	struct rl_touch *t = &m->touched[k];
	const struct rl_class *c;
	uint32_t from = l->s->other;

	t->at = find_tuple(m, &l->s->tuples, l->bound + (size_t)k * l->u->n_vars);
	t->yes = l->s->other_yes;
	t->maybe = l->s->other_maybe;
	if (t->at != RL_NONE)
		from = member(l->s, t->at)->class_;
	if (t->at != RL_NONE && l->u->counting) {
		t->yes = member(l->s, t->at)->yes;
		t->maybe = member(l->s, t->at)->maybe;
	}
	c = &l->s->classes[from];
	t->yes += c->yes;
	t->maybe += c->maybe;
	for (uint32_t i = 0; i < l->u->n_atoms; i++)
		m->atom_values[i] = l->tuple[i] == k ? l->open[i] : l->closed[i];
	step(l->u, bits_of(l->u, l->s, from), m->atom_values, l->s->events == 0, m->node_values, to);
	if (slot_get(to, 0) == RL_IS_TRUE)
		t->yes++;
	else if (slot_get(to, 0) == RL_IS_UNKNOWN)
		t->maybe++;
}

static bool as_the_rest(const struct look *l, const struct rl_touch *t, uint32_t c)
{
	const struct rl_class *rest = &l->s->classes[c];

	return c == l->s->other &&
	       (!l->u->counting || (t->yes == rest->yes + l->s->other_yes && t->maybe == rest->maybe + l->s->other_maybe));
}

static void move_touched(struct look *l, uint32_t k, const uint64_t *bits)
{
	struct rules_monitor *m = l->e->m;
	struct rl_touch *t = &m->touched[k];
	struct rl_member *e;
	uint32_t c;

	if (t->at == RL_NONE && l->s->tuples.full)
		return;
	if (t->at != RL_NONE)
		leave_class(l->s, t->at);
	c = class_of(m, l->u, l->s, bits);
	if (c == RL_NONE) {
		l->s->lost = true;
		return;
	}
	if (as_the_rest(l, t, c) && (t->at == RL_NONE || !l->s->tuples.full)) {
		if (t->at != RL_NONE)
			rl_tuple_drop(m, &l->s->tuples, t->at);
		return;
	}
	if (t->at == RL_NONE)
		t->at = rl_tuple_add(m, &l->s->tuples, l->bound + (size_t)k * l->u->n_vars);
	if (t->at == RL_NONE) {
		if (!l->s->classes[c].size && c != l->s->other)
			l->s->classes[c].live = false;
		return;
	}
	join_class(l->s, t->at, c);
	if (!l->u->counting)
		return;
	e = member(l->s, t->at);
	e->yes = t->yes - l->s->classes[c].yes;
	e->maybe = t->maybe - l->s->classes[c].maybe;
}

void rl_unit_event(struct rl_eval *e, uint32_t unit, const struct rules_event *ev)
{
	struct rules_monitor *m = e->m;
	const struct rl_unit *u = &m->plan->units[unit];
	struct rl_unit_state *s = &m->units[unit];
	struct look l = { .e = e, .u = u, .s = s, .bound = m->bound };
	uint64_t *bits;

	if (s->lost)
		return;
	catch_up(m, u, s);
	l.closed = m->atom_values + m->plan->max_atoms;
	l.open = l.closed + m->plan->max_atoms;
	l.tuple = m->ids + m->plan->max_vars;
	look_at_atoms(&l, ev);
	bits = m->new_bits + m->plan->max_words;
	for (uint32_t k = 0; k < l.n_touched; k++)
		step_touched(&l, k, bits + (size_t)k * u->words);
	step_classes(m, u, s, l.closed);
	for (uint32_t k = 0; k < l.n_touched && !s->lost; k++)
		move_touched(&l, k, bits + (size_t)k * u->words);
	s->rest = false;
	merge_equal(m, u, s);
}

/* ---- being asked ---- */

static rl_set any_value(const struct rl_unit *u, const struct rl_unit_state *s)
{
	rl_set r = RL_MAY_UNKNOWN;

	for (uint32_t c = 0; c < s->n_classes; c++)
		if (s->classes[c].live)
			r |= rl_only(slot_get(bits_of(u, s, c), 0));
	return r;
}

/* The class of the tuple that is asked about and its place in the table. False: nothing is known. */
static bool asked(struct rl_eval *e, const struct rl_unit *u, struct rl_unit_state *s, const uint32_t *vars, uint32_t *ret_at, bool *ret_any)
{
	enum rl_truth t;

	*ret_at = RL_NONE;
	*ret_any = false;
	if (s->lost) {
		e->over = true;
		return false;
	}
	catch_up(e->m, u, s);
	t = rl_ids_of(e, vars, u->n_vars, e->m->ids, ret_any);
	if (*ret_any)
		return true;
	if (t == RL_IS_UNKNOWN)
		return false;
	if (t == RL_IS_TRUE)
		*ret_at = rl_table_find(&s->tuples, e->m->ids);
	if (*ret_at == RL_NONE && s->tuples.full) {
		e->over = true;
		return false;
	}
	return true;
}

rl_set rl_unit_value(struct rl_eval *e, uint32_t unit, const uint32_t *vars)
{
	const struct rl_unit *u = &e->m->plan->units[unit];
	struct rl_unit_state *s = &e->m->units[unit];
	uint32_t at;
	bool any;

	if (!asked(e, u, s, vars, &at, &any))
		return RL_MAY_UNKNOWN;
	if (any)
		return any_value(u, s);
	return rl_only(slot_get(bits_of(u, s, at == RL_NONE ? s->other : member(s, at)->class_), 0));
}

const struct json *rl_unit_count(struct rl_eval *e, uint32_t unit, const uint32_t *vars)
{
	const struct rl_unit *u = &e->m->plan->units[unit];
	struct rl_unit_state *s = &e->m->units[unit];
	uint64_t yes, maybe;
	uint32_t at, c;
	bool any;

	if (!asked(e, u, s, vars, &at, &any))
		return NULL;
	if (any && (s->tuples.live || s->tuples.full))
		return &rl_any;
	c = at == RL_NONE ? s->other : member(s, at)->class_;
	yes = s->classes[c].yes + (at == RL_NONE ? s->other_yes : member(s, at)->yes);
	maybe = s->classes[c].maybe + (at == RL_NONE ? s->other_maybe : member(s, at)->maybe);
	return maybe ? NULL : json_new_int(&e->m->scratch, (int64_t)yes);
}

/* ---- life ---- */

void rl_unit_init(struct rules_monitor *m, uint32_t unit)
{
	const struct rl_unit *u = &m->plan->units[unit];
	struct rl_unit_state *s = &m->units[unit];

	rl_table_init(&s->tuples, u->n_vars, u->counting ? sizeof(struct rl_member) : offsetof(struct rl_member, yes), m->limits.tuples, m->values.seed);
	for (uint32_t i = 0; i < u->n_nodes; i++)
		m->node_values[i] = empty_value(&u->nodes[i], m->node_values);
	keep_slots(u, m->node_values, m->new_bits);
	s->other = new_class(m, u, s, m->new_bits);
	s->lost = s->other == RL_NONE;
}

void rl_unit_done(struct rules_monitor *m, uint32_t unit)
{
	struct rl_unit_state *s = &m->units[unit];

	rl_release(&m->mem, s->classes, s->cap_classes * sizeof *s->classes);
	rl_release(&m->mem, s->bits, (size_t)s->cap_classes * m->plan->units[unit].words * sizeof *s->bits);
	rl_table_done(&s->tuples, &m->mem);
}

bool rl_unit_copy(struct rules_monitor *to, const struct rules_monitor *from, uint32_t unit)
{
	const struct rl_unit_state *f = &from->units[unit];
	struct rl_unit_state *s = &to->units[unit];
	size_t classes = f->cap_classes * sizeof *f->classes;
	size_t bits = (size_t)f->cap_classes * from->plan->units[unit].words * sizeof *f->bits;

	*s = *f;
	s->classes = f->cap_classes ? rl_resize(&to->mem, NULL, 0, classes) : NULL;
	s->bits = f->cap_classes ? rl_resize(&to->mem, NULL, 0, bits) : NULL;
	if (!rl_table_copy(&s->tuples, &f->tuples, &to->mem) || (f->cap_classes && (!s->classes || !s->bits)))
		return false;
	if (f->cap_classes) {
		memcpy(s->classes, f->classes, classes);
		memcpy(s->bits, f->bits, bits);
	}
	return true;
}
