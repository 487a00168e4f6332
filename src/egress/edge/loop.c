/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/edge/loop.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256 };

struct deferred {
	void (*fn)(void *arg);
	void *arg;
};

struct loop {
	int epoll;
	bool stop;
	uint64_t now;
	struct epoll_event events[EVENTS];
	int n_events, at_event;
	struct timer **heap;
	size_t n_heap, room_heap;
	struct deferred *later;
	size_t n_later, room_later;
};

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *grow(void *v, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return v;
	*room = *room ? *room * 2 : 64;
	v = realloc(v, *room * size); /* NOLINT(bugprone-suspicious-realloc-usage): we end without it */
	if (!v)
		abort();
	return v;
}

struct loop *loop_new(void)
{
	struct loop *l = cs_new(struct loop);

	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		free(l);
		return NULL;
	}
	l->now = clock_ms();
	return l;
}

static void run_deferred(struct loop *l)
{
	size_t n = l->n_later;

	/* What these defer waits for the next turn. */
	for (size_t i = 0; i < n; i++)
		l->later[i].fn(l->later[i].arg);
	l->n_later -= n;
	for (size_t i = 0; i < l->n_later; i++)
		l->later[i] = l->later[n + i];
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	while (l->n_later) /* what is only waiting to be freed */
		run_deferred(l);
	close(l->epoll);
	free(l->heap);
	free(l->later);
	free(l);
}

int loop_watch(struct loop *l, struct watch *w, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
		w->fd = -1;
		return -1;
	}
	w->fd = fd;
	w->events = events;
	return 0;
}

void loop_change(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	if (w->fd < 0 || w->events == events)
		return;
	w->events = events;
	(void)epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &e); /* fails only if it is not there */
}

int loop_forget(struct loop *l, struct watch *w)
{
	int fd = w->fd;

	w->fd = -1;
	/* Later events of this turn must not reach it. */
	for (int i = l->at_event; fd >= 0 && i < l->n_events; i++)
		if (l->events[i].data.ptr == w)
			l->events[i].data.ptr = NULL;
	return fd;
}

void loop_unwatch(struct loop *l, struct watch *w)
{
	int fd = loop_forget(l, w);

	if (fd >= 0)
		(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- timers: a binary heap by time ---- */

static void put(struct loop *l, size_t i, struct timer *t)
{
	l->heap[i] = t;
	t->place = i;
}

static void sift(struct loop *l, size_t i, struct timer *t)
{
	while (i > 0 && l->heap[(i - 1) / 2]->at > t->at) {
		put(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	for (size_t c; (c = 2 * i + 1) < l->n_heap; i = c) {
		if (c + 1 < l->n_heap && l->heap[c + 1]->at < l->heap[c]->at)
			c++;
		if (l->heap[c]->at >= t->at)
			break;
		put(l, i, l->heap[c]);
	}
	put(l, i, t);
}

void loop_untimer(struct loop *l, struct timer *t)
{
	struct timer *last;

	if (!t->at)
		return;
	t->at = 0;
	last = l->heap[--l->n_heap];
	if (last != t)
		sift(l, t->place, last);
}

void loop_timer(struct loop *l, struct timer *t, uint64_t ms)
{
	loop_untimer(l, t);
	l->heap = grow(l->heap, l->n_heap, &l->room_heap, sizeof *l->heap);
	t->at = l->now + ms;
	sift(l, l->n_heap++, t);
}

static void fire_due(struct loop *l)
{
	while (l->n_heap && l->heap[0]->at <= l->now) {
		struct timer *t = l->heap[0];

		loop_untimer(l, t);
		t->fire(t);
	}
}

static int wait_ms(const struct loop *l)
{
	if (l->n_later)
		return 0;
	if (!l->n_heap)
		return -1;
	if (l->heap[0]->at <= l->now)
		return 0;
	return l->heap[0]->at - l->now > 60000 ? 60000 : (int)(l->heap[0]->at - l->now);
}

/* ---- turns ---- */

void loop_defer(struct loop *l, void (*fn)(void *arg), void *arg)
{
	l->later = grow(l->later, l->n_later, &l->room_later, sizeof *l->later);
	l->later[l->n_later++] = (struct deferred){ fn, arg };
}

uint64_t loop_now(const struct loop *l)
{
	return l->now;
}

int loop_run(struct loop *l)
{
	l->stop = false;
	while (!l->stop) {
		int n = epoll_wait(l->epoll, l->events, EVENTS, wait_ms(l));

		if (n < 0 && errno != EINTR)
			return -1;
		l->now = clock_ms();
		l->n_events = n < 0 ? 0 : n;
		for (int i = 0; i < l->n_events; i++) {
			struct watch *w = l->events[i].data.ptr;

			l->at_event = i + 1;
			if (w)
				w->ready(w, l->events[i].events);
		}
		l->n_events = l->at_event = 0;
		fire_due(l);
		run_deferred(l);
	}
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
