/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_internal.h - what the files of the monitor share.
 *
 * The plan is what can be known from the rules alone: it is made once and read
 * by all monitors.  The monitor has the state: for every past formula the
 * distinct vectors of truth values and which tuple of values has which.
 *
 * Truth is Kleene's: false < unknown < true; and is min, or is max, not turns
 * round.  Past formulas are kept with two bits per temporal operator, because an
 * event that lacks an argument must not satisfy `not once call(...)` either.
 */
#pragma once
#include "base/arena.h"
#include "rules/ast.h"

enum rl_truth { RL_IS_FALSE, RL_IS_UNKNOWN, RL_IS_TRUE };

/* What a formula may be, as a set: while a call is asked about it has one element; when its
 * arguments are not known yet, as many as there may be. */
typedef uint8_t rl_set;
enum { RL_MAY_FALSE = 1, RL_MAY_UNKNOWN = 2, RL_MAY_TRUE = 4, RL_MAY_ALL = 7 };

static inline rl_set rl_only(enum rl_truth t)
{
	return (rl_set)(1u << t);
}

enum {
	RL_NONE = UINT32_MAX,
	RL_WINDOW_MAX = 4096,      /* events that one count or sum within a time remembers */
	RL_SCRATCH_MAX = 8 << 20,  /* what the terms of one check may need */
	RL_LOCALS_MAX = 32,        /* all/any inside one another */
	RL_ID_CACHE = 16,
};

/* ---- decimals (eval_number.c): exact, or there is none ---- */

struct rl_num {
	__int128 digits; /* digits / 10^scale */
	int scale;
};

bool rl_num_of(const struct json *v, struct rl_num *ret);
bool rl_num_add(const struct rl_num *a, const struct rl_num *b, struct rl_num *ret);
bool rl_num_mul(const struct rl_num *a, const struct rl_num *b, struct rl_num *ret);
const struct json *rl_num_json(struct cs_arena *a, const struct rl_num *n);

/* ---- the plan (monitor_plan.c) ---- */

/* An event in a formula. */
struct rl_atom {
	const struct rl_formula *event;
	bool open; /* binds the unit's variables */
};

/* One node of a past formula, operands before their operators. */
struct rl_node {
	enum rl_op op;
	uint32_t a, b;  /* nodes; SEQ: the event, and the part of the sequence before it or RL_NONE */
	uint32_t atom;  /* EVENT */
	uint32_t slot;  /* where its value is kept from one event to the next, or RL_NONE */
};

/* A formula that is watched: an outermost past one, or what a count without a window counts. Rules that share it bind its
 * variables each in their own way; what is here are those of the first. */
struct rl_unit {
	const uint32_t *vars;
	uint32_t n_vars, rule_vars;
	const struct rl_node *nodes;
	uint32_t n_nodes;
	const struct rl_atom *atoms;
	uint32_t n_atoms;
	uint32_t n_slots, words; /* two bits per slot, 64 bits per word */
	uint32_t n_prev;
	bool counting;
};

/* A last, and a count or sum that is no formula's: of one event, by time or by value. */
struct rl_keep {
	const struct rl_term *term;
	const uint32_t *vars;
	uint32_t n_vars, rule_vars;
	struct rl_atom atom;   /* COUNT, SUM */
	uint32_t window;       /* entries remembered */
	bool saturates;        /* only compared with constants below `window`: more than that is as good as all */
	uint32_t unit;         /* COUNT without a window: its unit; else RL_NONE */
};

/* For a key, a run of numbers: list[start[key]] to list[start[key + 1]]. */
struct rl_runs {
	uint32_t *start, *list;
};

struct rl_plan {
	struct cs_arena arena;
	struct rl_unit *units;
	uint32_t n_units;
	uint32_t *unit_of_past;       /* RL_NONE: of an assert, which no monitor is asked about */
	struct rl_keep *keeps;        /* as many as rules->kept; those that others stand for are empty */
	uint32_t *keep_of_kept;
	struct rl_runs units_by_event, keeps_by_event;
	struct rl_runs rules_by_tool; /* the tool's index; that after the last: `end` */
	uint32_t max_nodes, max_atoms, max_vars, max_words;
};

/* NULL where there is no memory. */
struct rl_plan *rl_plan_new(const struct rules *r);
void rl_plan_free(struct rl_plan *p);
/* The key in *_by_event; RL_NONE for an event that no formula speaks of. */
uint32_t rl_event_key(const struct rules *r, const struct rules_event *e);

/* ---- memory (monitor_table.c) ---- */

struct rl_mem {
	uint64_t used, max;
};

/* As realloc(), counted; NULL over the maximum, and the old block stays. */
void *rl_resize(struct rl_mem *mem, void *p, size_t old, size_t size);
void rl_release(struct rl_mem *mem, void *p, size_t size);
/* A copy in one block. NULL if that is more than `max` or over. */
struct json *rl_pack(struct rl_mem *mem, const struct json *v, size_t max, size_t *ret_size);

/* Every value that some table has as part of a key, once. */
struct rl_value {
	struct json *v;
	uint64_t hash;
	size_t size;
	uint32_t refs, next;
};

struct rl_values {
	struct rl_value *items;
	uint32_t used, cap, free, live;
	uint32_t *heads, n_heads;
	uint64_t seed;
	size_t value_max;
};

uint32_t rl_values_find(const struct rl_values *s, const struct json *v);
uint32_t rl_values_take(struct rl_values *s, struct rl_mem *mem, const struct json *v); /* RL_NONE: over */
void rl_values_drop(struct rl_values *s, struct rl_mem *mem, uint32_t id);

/* From a tuple of values' numbers to `stride` bytes of state. A row has all there is to know of a tuple, so that finding
 * one touches two places in memory. */
struct rl_row {
	uint64_t serial; /* the order of arrival; 0: not in use */
	uint32_t next;   /* in its chain, or of those not in use */
	uint32_t key[];  /* then, aligned, the state */
};

struct rl_table {
	uint32_t width, state_at, row_size, stride, max;
	uint32_t used, cap, free, live;
	uint32_t *heads, n_heads;
	unsigned char *rows;
	uint64_t arrivals, seed;
	bool full; /* something could not be kept: nothing is known of a tuple that is not here */
};

void rl_table_init(struct rl_table *t, uint32_t width, uint32_t stride, uint32_t max, uint64_t seed);
uint32_t rl_table_find(const struct rl_table *t, const uint32_t *ids);
/* Zeroed state. Takes no references. RL_NONE and `full` when over. */
uint32_t rl_table_add(struct rl_table *t, struct rl_mem *mem, const uint32_t *ids);
void rl_table_remove(struct rl_table *t, uint32_t i);
void rl_table_done(struct rl_table *t, struct rl_mem *mem);
bool rl_table_copy(struct rl_table *to, const struct rl_table *from, struct rl_mem *mem);
static inline struct rl_row *rl_table_row(const struct rl_table *t, uint32_t i)
{
	return (struct rl_row *)(void *)(t->rows + (size_t)i * t->row_size);
}
static inline void *rl_table_at(const struct rl_table *t, uint32_t i)
{
	return t->rows + (size_t)i * t->row_size + t->state_at;
}
static inline const uint32_t *rl_table_key(const struct rl_table *t, uint32_t i)
{
	return rl_table_row(t, i)->key;
}

/* ---- the monitor ---- */

/* A tuple that the present event binds. */
struct rl_touch {
	uint32_t at;         /* in the table, or RL_NONE */
	uint64_t yes, maybe; /* counting: how often the formula held, or may have */
};

struct rl_class {
	uint32_t head, size; /* its tuples, linked */
	bool live;
	uint64_t yes, maybe; /* counting: events at which the formula held, or may have, since the class is there */
};

struct rl_unit_state {
	uint64_t events; /* of the trace that are in the vectors */
	bool rest;       /* further events without an atom change no vector */
	bool lost;       /* no memory for a vector: all is unknown */
	uint32_t other;  /* the class of all tuples that are not in the table */
	uint64_t other_yes, other_maybe;
	struct rl_class *classes;
	uint64_t *bits;
	uint32_t n_classes, cap_classes;
	struct rl_table tuples; /* of struct rl_member */
};

struct rl_keep_state {
	struct rl_table tuples; /* of struct rl_last, or struct rl_window */
	uint64_t all_event;     /* LAST: the latest event that may have been of any tuple; 0: none */
	uint64_t all_time;      /* windows: the time of it */
	bool all;
};

struct rules_monitor {
	const struct rules *rules;
	const struct rl_plan *plan;
	struct rl_plan *own_plan;
	struct rules_limits limits;
	struct rl_mem mem;
	uint64_t fixed_bytes; /* of mem.used: what it takes without any event */
	uint64_t events, now;
	struct rl_values values;
	struct rl_unit_state *units;
	struct rl_keep_state *keeps;
	struct cs_arena scratch;
	/* Room for one step. */
	uint8_t *node_values, *atom_values;
	struct rl_touch *touched;
	const struct json **bound; /* (max_atoms + 1) * max_vars */
	const struct json **vars;  /* of the rule that is asked */
	uint32_t *ids;             /* max_vars + max_atoms */
	uint64_t *new_bits;
	uint32_t *seen;
	uint32_t n_seen;
	/* The numbers of values looked up for the present call. */
	struct {
		const struct json *v;
		uint32_t id;
	} cache[RL_ID_CACHE];
	uint32_t n_cache;
};

/* What a formula is asked in. */
struct rl_eval {
	struct rules_monitor *m;
	const struct rules_world *world;
	uint32_t tool; /* RL_NONE: end */
	const struct json *args, *result;
	const struct json **vars; /* of the rule; NULL: absent, &rl_any: not known yet */
	const struct json *locals[RL_LOCALS_MAX];
	uint64_t now;
	bool any;      /* the arguments are not known yet */
	bool in_event; /* inside an event's `where` */
	bool over;     /* a limit made something unknown */
};

extern const struct json rl_any;   /* any value, or none */
extern const struct json rl_other; /* a value that no event had: only for tuples */

/* eval.c */
rl_set rl_eval(struct rl_eval *e, const struct rl_formula *f);
/* NULL: absent or unknown. */
const struct json *rl_eval_term(struct rl_eval *e, const struct rl_term *t);
const struct json *rl_walk(struct rl_eval *e, const struct json *v, const struct rl_step *path, uint32_t steps);
/* Whether arguments fit a pattern; binds variables in `vars` (NULL before). */
enum rl_truth rl_match(struct rl_eval *e, const struct rl_call *c, const struct json **vars);
rl_set rl_not(rl_set a);
rl_set rl_and(rl_set a, rl_set b);
/* eval_compare.c: of two values that are there. */
enum rl_truth rl_compare(enum rl_op op, const struct json *a, const struct json *b);
enum rl_truth rl_matches(const struct json *a, const struct pattern *p);

/* monitor_past.c */
void rl_unit_init(struct rules_monitor *m, uint32_t unit);
void rl_unit_done(struct rules_monitor *m, uint32_t unit);
bool rl_unit_copy(struct rules_monitor *to, const struct rules_monitor *from, uint32_t unit);
void rl_unit_event(struct rl_eval *e, uint32_t unit, const struct rules_event *ev);
/* Makes up for the events since it was looked at last; may forget tuples. */
void rl_unit_settle(struct rules_monitor *m, uint32_t unit);
/* `vars`: those of the rule that asks, in the order of the unit's own. */
rl_set rl_unit_value(struct rl_eval *e, uint32_t unit, const uint32_t *vars);
const struct json *rl_unit_count(struct rl_eval *e, uint32_t unit, const uint32_t *vars);
/* The event's tuple for an atom: true or unknown with `vars` bound, or unknown for all (*ret_all). */
enum rl_truth rl_atom_match(struct rl_eval *e, const struct rl_atom *a, const struct rules_event *ev,
			    const uint32_t *vars, uint32_t n_vars, const struct json **bound, bool *ret_all);

/* monitor_kept.c */
void rl_keep_init(struct rules_monitor *m, uint32_t keep);
void rl_keep_done(struct rules_monitor *m, uint32_t keep);
bool rl_keep_copy(struct rules_monitor *to, const struct rules_monitor *from, uint32_t keep);
void rl_keep_event(struct rl_eval *e, uint32_t keep, const struct rules_event *ev);
const struct json *rl_keep_value(struct rl_eval *e, const struct rl_term *asked);

/* monitor.c */
/* The numbers of the values of `vars`; RL_IS_TRUE if all are known to some table, RL_IS_FALSE if one is not, RL_IS_UNKNOWN if
 * one is absent; *ret_any if one may be anything. */
enum rl_truth rl_ids_of(struct rl_eval *e, const uint32_t *vars, uint32_t n, uint32_t *ids, bool *ret_any);
/* As rl_table_add, with references. */
uint32_t rl_tuple_add(struct rules_monitor *m, struct rl_table *t, const struct json *const *values);
void rl_tuple_drop(struct rules_monitor *m, struct rl_table *t, uint32_t i);
