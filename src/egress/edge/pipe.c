/* SPDX-License-Identifier: Apache-2.0 */
/* pipe.c - bytes both ways between two sockets.
 *
 * What is little is read and written; what is much is spliced through a pipe and never
 * comes into our memory.  Pipes are borrowed while they hold something, so a connection
 * that is quiet costs two descriptors.  A side that does not read stops the other
 * one's bytes and nobody else's.
 *
 * Both sockets are watched once, edge-triggered, and what was told is remembered until
 * a call says otherwise: a short message costs its recv and send and nothing more. */
#include "egress/edge/edge.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LITTLE = 16384,
	PIPE_SIZE = 1 << 20,
	TURN = 4 << 20,      /* of one direction, before others are served */
	SPARE_PIPES = 64,
	STUCK_MS = 120000,   /* who has hung up is not waited for longer, when the other one reads nothing */
};

struct side {
	struct watch watch;
	struct pair *pair;
	bool readable, writable;
	bool ended;          /* it says no more: there is an end to be read, whatever a short read means otherwise */
};

/* From one side to the other. */
struct way {
	struct side *from, *to;
	int pipe[2];         /* -1: none is needed now */
	size_t held;         /* in the pipe */
	char *rest;          /* what could not be written of a little */
	size_t rest_at, rest_len;
	bool eof, done;      /* nothing more comes; and the other side knows */
	bool progress;       /* since it was last looked at */
	uint64_t bytes;      /* not counted yet */
	uint64_t room;       /* that may still go */
};

struct pair {
	struct loop *loop;
	struct side a, b;
	struct way out, in;
	struct pair_owner owner;
	struct timer timer;  /* while one is stuck */
	bool dead, again;    /* there is more to do, at the turn's end */
};

static int spare_pipes[SPARE_PIPES][2];
static size_t n_spare_pipes;

static int borrow_pipe(int ret[2])
{
	if (n_spare_pipes) {
		n_spare_pipes--;
		ret[0] = spare_pipes[n_spare_pipes][0];
		ret[1] = spare_pipes[n_spare_pipes][1];
		return 0;
	}
	if (pipe2(ret, O_CLOEXEC | O_NONBLOCK) < 0) {
		ret[0] = ret[1] = -1;
		return -1;
	}
	(void)fcntl(ret[0], F_SETPIPE_SZ, PIPE_SIZE); /* a user's limit may say no: then it is smaller */
	return 0;
}

static void return_pipe(struct way *w)
{
	if (w->pipe[0] < 0)
		return;
	if (w->held == 0 && n_spare_pipes < SPARE_PIPES) {
		spare_pipes[n_spare_pipes][0] = w->pipe[0];
		spare_pipes[n_spare_pipes++][1] = w->pipe[1];
	} else {
		close(w->pipe[0]);
		close(w->pipe[1]);
	}
	w->pipe[0] = w->pipe[1] = -1;
}

void reset_and_close(int fd)
{
	struct linger now = { .l_onoff = 1 };

	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
}

static void free_pair(void *arg)
{
	free(arg);
}

static void end(struct pair *p, const char *why, bool reset)
{
	if (p->dead)
		return;
	p->dead = true;
	loop_untimer(p->loop, &p->timer);
	if (reset) {
		reset_and_close(loop_forget(p->loop, &p->a.watch));
		reset_and_close(loop_forget(p->loop, &p->b.watch));
	} else {
		close(loop_forget(p->loop, &p->a.watch));
		close(loop_forget(p->loop, &p->b.watch));
	}
	return_pipe(&p->out);
	return_pipe(&p->in);
	free(p->out.rest);
	free(p->in.rest);
	p->owner.closed(p->owner.arg, why);
	loop_defer(p->loop, free_pair, p);
}

static bool holds(const struct way *w)
{
	return w->held || w->rest_len;
}

/* After a call that failed: 0 when the side is only not ready, -1: errno. */
static int not_now(bool *ready)
{
	if (errno != EAGAIN)
		return -1;
	*ready = false;
	return 0;
}

/* 1: all of what was held is gone; 0: the other side is full; -1: errno. */
static int flush(struct way *w)
{
	int to = w->to->watch.fd;

	while (holds(w) && w->to->writable) {
		ssize_t n = w->rest_len ? send(to, w->rest + w->rest_at, w->rest_len, MSG_NOSIGNAL) :
					  splice(w->pipe[0], NULL, to, NULL, w->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0)
			return not_now(&w->to->writable);
		w->progress = true;
		if (w->rest_len) {
			w->rest_at += (size_t)n;
			w->rest_len -= (size_t)n;
		} else {
			w->held -= (size_t)n;
		}
	}
	return !holds(w);
}

/* What could not be written of a little. */
static void keep(struct way *w, const char *from, size_t n)
{
	if (!w->rest)
		w->rest = cs_calloc(1, LITTLE);
	w->rest_at = 0;
	w->rest_len = n;
	memcpy(w->rest, from, n);
}

/* A first read into memory: most of what is said is short. >0: how much; 0: nothing now, or the end; -1: errno. */
static ssize_t move_little(struct way *w)
{
	static char buf[LITTLE];
	size_t want = w->room < sizeof buf ? (size_t)w->room : sizeof buf;
	ssize_t n = recv(w->from->watch.fd, buf, want, 0), sent;

	if (n < 0)
		return not_now(&w->from->readable);
	if (n == 0) {
		w->eof = true;
		return 0;
	}
	if ((size_t)n < want && !w->from->ended)
		w->from->readable = false; /* that was all; more is told */
	w->bytes += (uint64_t)n;
	sent = send(w->to->watch.fd, buf, (size_t)n, MSG_NOSIGNAL);
	if (sent < 0 && not_now(&w->to->writable) < 0)
		return -1;
	if (sent < 0)
		sent = 0;
	if (sent < n)
		keep(w, buf + sent, (size_t)(n - sent));
	return n;
}

static ssize_t move_much(struct way *w)
{
	ssize_t n;

	if (w->pipe[0] < 0 && borrow_pipe(w->pipe) < 0)
		return move_little(w);
	n = splice(w->from->watch.fd, NULL, w->pipe[1], NULL, w->room < PIPE_SIZE ? (size_t)w->room : PIPE_SIZE, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0)
		return not_now(&w->from->readable);
	if (n == 0) {
		w->eof = true;
		return 0;
	}
	w->held += (size_t)n;
	w->bytes += (uint64_t)n;
	return n;
}

/* Nothing more may go: is there anything that wants to?  1: it is counted, which ends the connection, and stays where it is. */
static int look_beyond(struct way *w)
{
	char one;
	ssize_t n = recv(w->from->watch.fd, &one, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return not_now(&w->from->readable);
	if (n == 0)
		w->eof = true;
	else
		w->bytes++;
	return n > 0;
}

/* As much as goes now, up to a turn's worth.  -1: errno. */
static int move(struct way *w)
{
	size_t moved = 0;
	ssize_t n = 0;
	int r;

	while ((r = flush(w)) > 0 && !w->eof && w->from->readable) {
		if (moved >= TURN) {
			w->from->pair->again = true;
			break;
		}
		/* Once a buffer was filled there is more of it: then without copying. */
		if (!w->room) {
			int beyond = look_beyond(w);

			if (beyond < 0)
				return -1;
			if (beyond)
				break;
			continue;
		}
		n = n >= LITTLE ? move_much(w) : move_little(w);
		if (n < 0)
			return -1;
		moved += (size_t)n;
		w->room -= (uint64_t)n;
	}
	if (r < 0)
		return -1;
	w->progress |= moved > 0;
	if (!w->held)
		return_pipe(w);
	return 0;
}

/* false: it is over. */
static bool work_way(struct pair *p, struct way *w, const struct way *other)
{
	if (w->done)
		return true;
	if (move(w) < 0) {
		end(p, errno == EPIPE || errno == ECONNRESET ? "reset" : "broken", true);
		return false;
	}
	if (w->eof && !holds(w)) {
		if (!other->done) /* else both are closed at once */
			(void)shutdown(w->to->watch.fd, SHUT_WR); /* fails when it is closed: then reading tells */
		w->done = true;
	}
	return true;
}

static bool count(struct pair *p)
{
	uint64_t out = p->out.bytes, in = p->in.bytes;

	p->out.bytes = p->in.bytes = 0;
	return !(out || in) || p->owner.count(p->owner.arg, out, in);
}

/* Who has said its last word may be gone for good.  Then the other one has some time to read what is held. */
static void watch_stuck(struct pair *p)
{
	bool stuck = (holds(&p->out) && p->a.ended) || (holds(&p->in) && p->b.ended), progress = p->out.progress || p->in.progress;

	p->out.progress = p->in.progress = false;
	if (!stuck)
		loop_untimer(p->loop, &p->timer);
	else if (progress || !p->timer.at)
		loop_timer(p->loop, &p->timer, STUCK_MS);
}

static void on_stuck(struct timer *t)
{
	end(LOOP_OF(t, struct pair, timer), "nothing was read any more", true);
}

static void work_later(void *arg);

static void work(struct pair *p)
{
	p->out.room = p->in.room = UINT64_MAX;
	if (p->owner.room)
		p->owner.room(p->owner.arg, &p->out.room, &p->in.room);
	if (!work_way(p, &p->out, &p->in) || !work_way(p, &p->in, &p->out))
		return;
	if (!count(p)) {
		end(p, "a budget is used up", true);
		return;
	}
	if (p->out.done && p->in.done) {
		end(p, NULL, false);
		return;
	}
	watch_stuck(p);
	if (p->again)
		loop_defer(p->loop, work_later, p);
}

static void work_later(void *arg)
{
	struct pair *p = arg;

	p->again = false;
	if (!p->dead)
		work(p);
}

static void ready(struct watch *watch, uint32_t events)
{
	struct side *s = LOOP_OF(watch, struct side, watch);
	struct pair *p = s->pair;

	/* A side that broke, while nothing was to be read from it: told by neither reading nor writing. */
	if (events & EPOLLERR) {
		end(p, "reset", true);
		return;
	}
	s->readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0;
	s->writable |= (events & (EPOLLOUT | EPOLLHUP)) != 0;
	s->ended |= (events & (EPOLLRDHUP | EPOLLHUP)) != 0;
	if (!p->again) /* else it comes at the turn's end */
		work(p);
}

struct pair *pair_new(struct loop *l, int take_a, int take_b, const struct pair_owner *owner)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	struct pair *p = cs_new(struct pair);

	p->loop = l;
	p->owner = *owner;
	p->timer.fire = on_stuck;
	/* Writable until it is not; and who connected has mostly said something already. */
	p->a = (struct side){ .watch = { .fd = -1, .ready = ready }, .pair = p, .readable = true, .writable = true };
	p->b = (struct side){ .watch = { .fd = -1, .ready = ready }, .pair = p, .writable = true };
	p->out = (struct way){ .from = &p->a, .to = &p->b, .pipe = { -1, -1 } };
	p->in = (struct way){ .from = &p->b, .to = &p->a, .pipe = { -1, -1 } };
	if (loop_watch(l, &p->a.watch, take_a, events) < 0 || loop_watch(l, &p->b.watch, take_b, events) < 0) {
		loop_unwatch(l, &p->a.watch);
		free(p);
		return NULL;
	}
	p->again = true;
	loop_defer(l, work_later, p); /* the owner does not know it yet */
	return p;
}

void pair_cut(struct pair *p)
{
	end(p, "cut", true);
}
