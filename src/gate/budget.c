/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - how often, how much, how long; and the same thing over and over. */
#include "gate/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAME_MAX = 256 }; /* different calls whose repetition is watched; the oldest is forgotten */

/* A call that came before: asked again with nothing changed in between, it is a loop. */
struct same {
	uint64_t hash;
	unsigned n;
	uint64_t result; /* hash of its last result */
	uint64_t epoch;  /* of the session's state when it was counted */
};

/* The times of the last calls of one tool: as many as its rate. */
struct rate {
	uint64_t *ring;
	uint64_t n; /* calls so far */
};

struct budget {
	uint64_t calls, tokens;
	double money;
	struct rate *rates; /* by tool */
	size_t n_rates;
	struct same same[SAME_MAX];
	unsigned next;
	uint64_t epoch;
};

struct budget *budget_new(const struct gate_policy *p)
{
	struct budget *b = cs_new(struct budget);

	b->n_rates = p->n_tools;
	b->rates = cs_calloc(p->n_tools + 1, sizeof *b->rates);
	for (size_t i = 0; i < p->n_tools; i++)
		if (p->tools[i].rate_n)
			b->rates[i].ring = cs_calloc(p->tools[i].rate_n, sizeof *b->rates[i].ring);
	return b;
}

void budget_free(struct budget *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n_rates; i++)
		free(b->rates[i].ring);
	free(b->rates);
	free(b);
}

static uint64_t call_hash(const struct gate_call *c)
{
	uint64_t h = 0x9e3779b97f4a7c15u;

	for (const char *s = c->tool; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return json_hash(c->args, h);
}

static struct same *find_same(struct budget *b, uint64_t hash)
{
	for (unsigned i = 0; i < SAME_MAX; i++)
		if (b->same[i].n && b->same[i].hash == hash)
			return &b->same[i];
	return NULL;
}

static void check_loop(struct gate *g, const struct gate_probe *p, struct gate_answer *ret)
{
	struct budget *b = g->budget;
	const struct same *s = g->policy->loop ? find_same(b, call_hash(p->call)) : NULL;

	if (s && s->epoch == b->epoch && s->n >= g->policy->loop)
		gate_raise(ret, RULES_DENY, "loop", "do something else, or stop",
			   "the same call was made %u times and nothing has changed since", s->n);
}

static void check_rate(struct gate *g, const struct gate_probe *p, struct gate_answer *ret)
{
	const struct gate_tool *t = p->tool;
	const struct rate *r = &g->budget->rates[t - g->policy->tools];
	uint64_t oldest;

	if (!t->rate_n || r->n < t->rate_n)
		return;
	oldest = r->ring[r->n % t->rate_n];
	if (g->t_ms - oldest < t->rate_ms)
		gate_raise(ret, RULES_DENY, "rate", "wait, then try again", "%s may be called %llu times in %llu s", t->name,
			   (unsigned long long)t->rate_n, (unsigned long long)t->rate_ms / 1000);
}

/* Of what an argument says, never less than 0: nothing is earned back. An amount that cannot be read is too much. */
static double amount(const struct gate_tool *t, const struct json *args)
{
	const struct json *v = t->money ? json_get(args, t->money) : NULL;

	if (!t->money)
		return 0;
	if (!v || v->type != JSON_NUMBER || !(json_num(v) >= 0))
		return 1e308;
	return json_num(v);
}

void budget_check(struct gate *g, const struct gate_probe *p, struct gate_answer *ret)
{
	const struct gate_budget *most = &g->policy->budget;
	struct budget *b = g->budget;

	if (most->calls && b->calls >= most->calls)
		gate_raise(ret, RULES_DENY, "budget", "end the session", "%llu calls were made, which is all there may be",
			   (unsigned long long)b->calls);
	if (most->tokens && b->tokens + p->call->tokens > most->tokens)
		gate_raise(ret, RULES_DENY, "budget", "end the session", "the tokens of this session are used up (%llu of %llu)",
			   (unsigned long long)b->tokens + p->call->tokens, (unsigned long long)most->tokens);
	if (most->time_ms && g->t_ms - g->t_first > most->time_ms)
		gate_raise(ret, RULES_DENY, "budget", "end the session", "the session is older than %llu s",
			   (unsigned long long)most->time_ms / 1000);
	if (most->money >= 0 && p->tool->money && b->money + amount(p->tool, p->call->args) > most->money)
		gate_raise(ret, RULES_DENY, "budget", "ask the user to raise the budget",
			   "%g was spent, and this would pass the most that may be, %g", b->money, most->money);
	check_rate(g, p, ret);
	check_loop(g, p, ret);
}

void budget_note(struct gate *g, const struct gate_call *c, const struct gate_tool *t)
{
	struct budget *b = g->budget;
	struct rate *r = &b->rates[t - g->policy->tools];
	uint64_t hash = call_hash(c);
	struct same *s;

	b->calls++;
	b->tokens += c->tokens;
	b->money += amount(t, c->args);
	if (t->rate_n)
		r->ring[r->n++ % t->rate_n] = g->t_ms;
	/* A write changes the state that other calls are looked at in. */
	if (t->effects & ~(unsigned)RULES_READ)
		b->epoch++;
	s = find_same(b, hash);
	if (!s) {
		s = &b->same[b->next++ % SAME_MAX];
		*s = (struct same){ .hash = hash };
	}
	s->n = s->epoch == b->epoch || (t->effects & ~(unsigned)RULES_READ && s->n && s->epoch + 1 == b->epoch) ? s->n + 1 : 1;
	s->epoch = b->epoch;
}

/* Another answer than last time is no loop: somebody waits for something. */
void budget_result(struct gate *g, const struct gate_flight *f, const struct json *result)
{
	struct gate_call c = { .tool = f->tool->name, .args = f->args };
	struct same *s = find_same(g->budget, call_hash(&c));
	uint64_t h = result ? json_hash(result, 1) : 0;

	if (!s)
		return;
	if (s->n > 1 && s->result != h)
		s->n = 1;
	s->result = h;
}
