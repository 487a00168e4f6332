/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - one epoll loop: descriptors, timers, and what is done at a turn's end.
 *
 * Single-threaded.  A callback may add, change and remove any watch or timer,
 * its own included.  An object with a watch is freed by loop_defer(), never
 * directly: later events of the same turn may still point to it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;

struct watch {
	int fd;           /* set by loop_watch(); -1 when not watched.  Never closed by the loop. */
	uint32_t events;
	void (*ready)(struct watch *w, uint32_t events);
};

struct timer {
	uint64_t at;      /* ms; 0: not set */
	size_t place;     /* in the loop's heap */
	void (*fire)(struct timer *t);
};

#define LOOP_OF(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

struct loop *loop_new(void); /* NULL: errno */
void loop_free(struct loop *l);
int loop_watch(struct loop *l, struct watch *w, int fd, uint32_t events); /* -1: errno */
void loop_change(struct loop *l, struct watch *w, uint32_t events);
void loop_unwatch(struct loop *l, struct watch *w);                       /* no-op if not watched */
/* For a descriptor that is closed next, and that nobody else holds: closing ends its watch.  Returns it. */
int loop_forget(struct loop *l, struct watch *w);
void loop_timer(struct loop *l, struct timer *t, uint64_t ms);            /* from now; sets anew */
void loop_untimer(struct loop *l, struct timer *t);                       /* no-op if not set */
void loop_defer(struct loop *l, void (*fn)(void *arg), void *arg);        /* after this turn's events */
uint64_t loop_now(const struct loop *l);                                  /* monotonic ms, as of this turn */
int loop_run(struct loop *l);                                             /* until loop_stop(); -1: errno */
void loop_stop(struct loop *l);
