/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_kept.c - what is remembered of events beside truth: the latest result of a
 * call, how often and how much within a time.
 *
 * Everything has a size that does not grow with the trace: of a result the part
 * that the rules look at, if it is not larger than the limit; of a window as many
 * events as the rule's constant needs, or 4,096.  What does not fit is remembered
 * as unknown, which satisfies nothing.
 */
#include "rules/monitor_internal.h"

#include <string.h>

/* The latest result for one tuple. */
struct last {
	struct json *v; /* NULL: it had none, or what it had is not known */
	size_t size;
	uint64_t event;
};

struct window_event {
	uint64_t t;
	int64_t digits;
	int32_t scale;
};

/* Events of one tuple, the oldest first from `head`. A sum without a window has one place. */
struct window {
	struct window_event *events;
	uint32_t cap, head, n;
	bool unknown;       /* something that is not known was at unknown_t */
	bool over;          /* because it did not fit */
	uint64_t unknown_t;
	/* SUM without a window. */
	struct rl_num total;
};

static uint32_t stride_of(const struct rl_keep *k)
{
	return k->term->kind == RL_T_LAST ? sizeof(struct last) : sizeof(struct window);
}

/* ---- last ---- */

/* Steps that need no evaluation: what lies behind them is kept. */
static uint32_t fixed_steps(const struct rl_term *t)
{
	uint32_t n = 0;

	while (n < t->steps && !t->path[n].term)
		n++;
	return n;
}

/* Where it is not known whether the event fits, what the latest one said is not known either. */
static void keep_last(struct rl_eval *e, const struct rl_keep *k, struct rl_keep_state *s, uint32_t at, enum rl_truth t)
{
	struct rules_monitor *m = e->m;
	struct last *l = rl_table_at(&s->tuples, at);
	const struct json *v = t == RL_IS_TRUE ? rl_walk(e, e->result, k->term->path, fixed_steps(k->term)) : NULL;

	rl_release(&m->mem, l->v, l->size);
	*l = (struct last){ .event = m->events };
	if (v)
		l->v = rl_pack(&m->mem, v, m->limits.value_bytes, &l->size);
}

static const struct json *last_value(struct rl_eval *e, const struct rl_term *t, const struct rl_keep_state *s, uint32_t at)
{
	const struct last *l = rl_table_at(&s->tuples, at);
	uint32_t fixed = fixed_steps(t);

	if (s->all_event > l->event)
		return NULL;
	return rl_walk(e, l->v, t->path + fixed, t->steps - fixed);
}

/* ---- windows ---- */

static void forget_until(const struct rl_keep *k, struct window *w, uint64_t now)
{
	for (; w->n && now - w->events[w->head].t >= k->term->within_ms; w->n--)
		w->head = (w->head + 1) % w->cap;
}

static bool grow_window(struct rules_monitor *m, const struct rl_keep *k, struct window *w)
{
	uint32_t cap = w->cap ? w->cap * 2 : 2;
	struct window_event *p;

	if (cap > k->window)
		cap = k->window;
	if (cap <= w->cap)
		return false;
	p = rl_resize(&m->mem, NULL, 0, cap * sizeof *p);
	if (!p)
		return false;
	for (uint32_t i = 0; i < w->n; i++)
		p[i] = w->events[(w->head + i) % w->cap];
	rl_release(&m->mem, w->events, w->cap * sizeof *p);
	w->events = p;
	w->cap = cap;
	w->head = 0;
	return true;
}

static void not_known(struct window *w, uint64_t t, bool over)
{
	if (!w->unknown || t > w->unknown_t)
		w->unknown_t = t;
	w->unknown = true;
	w->over |= over;
}

static void window_add(struct rules_monitor *m, const struct rl_keep *k, struct window *w, const struct window_event *ev)
{
	forget_until(k, w, ev->t);
	if (w->n == w->cap && !grow_window(m, k, w)) {
		/* The oldest goes. A count that is full of the newest is more than any constant it is compared with. */
		if (!w->cap || !k->saturates || w->cap < k->window) {
			not_known(w, w->cap ? w->events[w->head].t : ev->t, true);
			if (!w->cap)
				return;
		}
		w->head = (w->head + 1) % w->cap;
		w->n--;
	}
	w->events[(w->head + w->n++) % w->cap] = *ev;
}

static void sum_forever(struct window *w, const struct rl_num *v)
{
	if (!rl_num_add(&w->total, v, &w->total))
		not_known(w, 0, true);
}

static void keep_in_window(struct rl_eval *e, const struct rl_keep *k, struct rl_keep_state *s, uint32_t at, enum rl_truth t)
{
	struct window *w = rl_table_at(&s->tuples, at);
	struct window_event ev = { .t = e->now };
	struct rl_num v = { 0 };

	if (t != RL_IS_TRUE || (k->term->kind == RL_T_SUM && !rl_num_of(rl_eval_term(e, k->term->a), &v))) {
		not_known(w, e->now, false);
		return;
	}
	if (!k->term->within_ms) {
		sum_forever(w, &v);
		return;
	}
	ev.digits = (int64_t)v.digits;
	ev.scale = v.scale;
	if (v.digits != ev.digits)
		not_known(w, e->now, true);
	else
		window_add(e->m, k, w, &ev);
}

static bool in_window(const struct rl_keep *k, uint64_t t, uint64_t now)
{
	return !k->term->within_ms || now - t < k->term->within_ms;
}

/* How many of the oldest have left the window. They are in the order of time. */
static uint32_t gone(const struct rl_keep *k, const struct window *w, uint64_t now)
{
	uint32_t lo = 0, hi = w->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (in_window(k, w->events[(w->head + mid) % w->cap].t, now))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static const struct json *window_value(struct rl_eval *e, const struct rl_keep *k, const struct window *w)
{
	struct rl_num sum = w->total;
	uint32_t from;

	if (w->unknown && in_window(k, w->unknown_t, e->now)) {
		e->over |= w->over;
		return e->any && k->term->within_ms ? &rl_any : NULL;
	}
	from = gone(k, w, e->now);
	/* Before the call is there, time may pass: what is in the window now may have left it by then. */
	if (e->any && from < w->n)
		return &rl_any;
	if (k->term->kind == RL_T_COUNT)
		return json_new_int(&e->m->scratch, w->n - from);
	for (uint32_t i = from; i < w->n; i++) {
		const struct window_event *ev = &w->events[(w->head + i) % w->cap];
		struct rl_num v = { .digits = ev->digits, .scale = ev->scale };

		if (!rl_num_add(&sum, &v, &sum))
			return NULL;
	}
	return rl_num_json(&e->m->scratch, &sum);
}

/* ---- both ---- */

/* An event that may have been of any tuple. */
static void of_all(struct rl_eval *e, struct rl_keep_state *s)
{
	s->all = true;
	s->all_event = e->m->events;
	s->all_time = e->now;
}

static enum rl_truth match(struct rl_eval *e, const struct rl_keep *k, const struct rules_event *ev, const struct json **by_rule, bool *ret_all)
{
	enum rl_truth t;

	if (k->term->kind != RL_T_LAST)
		return rl_atom_match(e, &k->atom, ev, k->vars, k->n_vars, by_rule, ret_all);
	t = rl_match(e, k->term->call, by_rule);
	*ret_all = false;
	for (uint32_t i = 0; i < k->n_vars; i++)
		*ret_all |= !by_rule[k->vars[i]];
	return t;
}

static uint32_t place_of(struct rules_monitor *m, struct rl_table *t, const struct json *const *values)
{
	for (uint32_t i = 0; i < t->width; i++) {
		m->ids[i] = rl_values_find(&m->values, values[i]);
		if (m->ids[i] == RL_NONE)
			return t->full ? RL_NONE : rl_tuple_add(m, t, values);
	}
	return rl_table_find(t, m->ids);
}

void rl_keep_event(struct rl_eval *e, uint32_t keep, const struct rules_event *ev)
{
	struct rules_monitor *m = e->m;
	const struct rl_keep *k = &m->plan->keeps[keep];
	struct rl_keep_state *s = &m->keeps[keep];
	const struct json **by_rule = m->bound + (size_t)m->plan->max_atoms * m->plan->max_vars;
	enum rl_truth t;
	uint32_t at;
	bool all;

	memset(by_rule, 0, k->rule_vars * sizeof *by_rule);
	t = match(e, k, ev, by_rule, &all);
	if (t == RL_IS_FALSE)
		return;
	if (all) {
		of_all(e, s);
		return;
	}
	for (uint32_t i = 0; i < k->n_vars; i++)
		m->bound[i] = by_rule[k->vars[i]];
	at = place_of(m, &s->tuples, m->bound);
	if (at == RL_NONE && !s->tuples.full)
		at = rl_tuple_add(m, &s->tuples, m->bound);
	if (at == RL_NONE)
		return;
	if (k->term->kind == RL_T_LAST)
		keep_last(e, k, s, at, t);
	else
		keep_in_window(e, k, s, at, t);
}

static const struct json *value_of_none(struct rl_eval *e, const struct rl_keep *k, const struct rl_keep_state *s)
{
	struct window none = { 0 };

	if (s->tuples.full) {
		e->over = true;
		return NULL;
	}
	return k->term->kind == RL_T_LAST ? NULL : window_value(e, k, &none);
}

/* `asked` is the term of the rule that asks; k->term has the same text and may be another rule's. */
const struct json *rl_keep_value(struct rl_eval *e, const struct rl_term *asked)
{
	const uint32_t *vars = e->m->rules->kept[asked->id].vars;
	uint32_t keep = e->m->plan->keep_of_kept[asked->id];
	const struct rl_keep *k = &e->m->plan->keeps[keep];
	struct rl_keep_state *s = &e->m->keeps[keep];
	enum rl_truth t;
	uint32_t at = RL_NONE;
	bool any;

	if (k->unit != RL_NONE)
		return rl_unit_count(e, k->unit, vars);
	if (k->term->kind != RL_T_LAST && !k->atom.event)
		return NULL;
	t = rl_ids_of(e, vars, k->n_vars, e->m->ids, &any);
	if (any && (s->tuples.live || s->tuples.full || s->all))
		return &rl_any;
	if (!any && t == RL_IS_UNKNOWN)
		return NULL;
	if (k->term->kind != RL_T_LAST && s->all && in_window(k, s->all_time, e->now))
		return e->any ? &rl_any : NULL;
	if (!any && t == RL_IS_TRUE)
		at = rl_table_find(&s->tuples, e->m->ids);
	if (at == RL_NONE)
		return value_of_none(e, k, s);
	return k->term->kind == RL_T_LAST ? last_value(e, asked, s, at) : window_value(e, k, rl_table_at(&s->tuples, at));
}

/* ---- life ---- */

void rl_keep_init(struct rules_monitor *m, uint32_t keep)
{
	const struct rl_keep *k = &m->plan->keeps[keep];

	if (m->plan->keep_of_kept[keep] == keep)
		rl_table_init(&m->keeps[keep].tuples, k->n_vars, stride_of(k), m->limits.tuples, m->values.seed);
}

void rl_keep_done(struct rules_monitor *m, uint32_t keep)
{
	const struct rl_keep *k = &m->plan->keeps[keep];
	struct rl_table *t = &m->keeps[keep].tuples;

	for (uint32_t i = 0; i < t->used && t->rows; i++) {
		if (!rl_table_row(t, i)->serial)
			continue;
		if (k->term->kind == RL_T_LAST) {
			struct last *l = rl_table_at(t, i);

			rl_release(&m->mem, l->v, l->size);
		} else {
			struct window *w = rl_table_at(t, i);

			rl_release(&m->mem, w->events, w->cap * sizeof *w->events);
		}
	}
	rl_table_done(t, &m->mem);
}

static bool copy_entry(struct rules_monitor *m, const struct rl_keep *k, void *entry)
{
	if (k->term->kind == RL_T_LAST) {
		struct last *l = entry;
		const struct json *v = l->v;

		l->v = NULL;
		if (v)
			l->v = rl_pack(&m->mem, v, SIZE_MAX, &l->size);
		return !v || l->v;
	}
	struct window *w = entry;
	const struct window_event *events = w->events;

	w->events = NULL;
	if (!events)
		return true;
	w->events = rl_resize(&m->mem, NULL, 0, w->cap * sizeof *events);
	if (w->events)
		memcpy(w->events, events, w->cap * sizeof *events);
	return w->events != NULL;
}

bool rl_keep_copy(struct rules_monitor *to, const struct rules_monitor *from, uint32_t keep)
{
	struct rl_table *t = &to->keeps[keep].tuples;
	bool ok;

	to->keeps[keep] = from->keeps[keep];
	if (to->plan->keep_of_kept[keep] != keep)
		return true;
	ok = rl_table_copy(t, &from->keeps[keep].tuples, &to->mem);
	/* Every entry is visited even after a failure: none may be left pointing into `from`. */
	for (uint32_t i = 0; i < t->used && t->rows; i++)
		if (rl_table_row(t, i)->serial)
			ok = copy_entry(to, &to->plan->keeps[keep], rl_table_at(t, i)) && ok;
	return ok;
}
