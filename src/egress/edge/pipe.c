/* SPDX-License-Identifier: Apache-2.0 */
/* pipe.c - bytes both ways between two sockets.
 *
 * What is little is read and written; what is much is spliced through a pipe and never
 * comes into our memory.  Pipes are borrowed while they hold something, so a connection
 * that is quiet costs two descriptors.  A side that does not read stops the other
 * one's bytes and nobody else's. */
#include "egress/edge/edge.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LITTLE = 16384,
	PIPE_SIZE = 1 << 20,
	TURN = 4 << 20,      /* of one direction, before others are served */
	SPARE_PIPES = 64,
};

struct side {
	struct watch watch;
	struct pair *pair;
};

/* From one side to the other. */
struct way {
	int from, to;        /* descriptors */
	int pipe[2];         /* -1: none is needed now */
	size_t held;         /* in the pipe */
	char *rest;          /* what could not be written of a little */
	size_t rest_at, rest_len;
	bool eof, done;      /* nothing more comes; and the other side knows */
	uint64_t bytes;      /* not counted yet */
};

struct pair {
	struct loop *loop;
	struct side a, b;
	struct way out, in;
	struct pair_owner owner;
	bool dead;
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
	int a = p->a.watch.fd, b = p->b.watch.fd;

	if (p->dead)
		return;
	p->dead = true;
	loop_unwatch(p->loop, &p->a.watch);
	loop_unwatch(p->loop, &p->b.watch);
	if (reset) {
		reset_and_close(a);
		reset_and_close(b);
	} else {
		close(a);
		close(b);
	}
	return_pipe(&p->out);
	return_pipe(&p->in);
	free(p->out.rest);
	free(p->in.rest);
	p->owner.closed(p->owner.arg, why);
	loop_defer(p->loop, free_pair, p);
}

/* 1: all of what was held is gone; 0: the other side is full; -1: errno. */
static int flush(struct way *w)
{
	while (w->rest_len) {
		ssize_t n = send(w->to, w->rest + w->rest_at, w->rest_len, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		w->rest_at += (size_t)n;
		w->rest_len -= (size_t)n;
	}
	while (w->held) {
		ssize_t n = splice(w->pipe[0], NULL, w->to, NULL, w->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		w->held -= (size_t)n;
	}
	return 1;
}

/* A first read into memory: most of what is said is short. >0: how much; 0: nothing now; -1: errno; -2: the end. */
static ssize_t move_little(struct way *w)
{
	static char buf[LITTLE];
	ssize_t n = recv(w->from, buf, sizeof buf, 0), sent;

	if (n == 0)
		return -2;
	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	w->bytes += (uint64_t)n;
	sent = send(w->to, buf, (size_t)n, MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN)
		return -1;
	if (sent < 0)
		sent = 0;
	if (sent < n) {
		if (!w->rest)
			w->rest = cs_calloc(1, LITTLE);
		w->rest_at = 0;
		w->rest_len = (size_t)(n - sent);
		for (size_t i = 0; i < w->rest_len; i++)
			w->rest[i] = buf[(size_t)sent + i];
	}
	return n;
}

static ssize_t move_much(struct way *w)
{
	ssize_t n;

	if (w->pipe[0] < 0 && borrow_pipe(w->pipe) < 0)
		return move_little(w);
	n = splice(w->from, NULL, w->pipe[1], NULL, PIPE_SIZE, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n == 0)
		return -2;
	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	w->held += (size_t)n;
	w->bytes += (uint64_t)n;
	return n;
}

/* As much as goes now.  -1: errno. */
static int move(struct way *w)
{
	size_t moved = 0;
	ssize_t n = 0;

	while (!w->eof && moved < TURN) {
		int r = flush(w);

		if (r <= 0)
			return r;
		/* Once a buffer was filled there is more of it: then without copying. */
		n = n >= LITTLE ? move_much(w) : move_little(w);
		if (n == -1)
			return -1;
		if (n == 0)
			break;
		if (n == -2)
			w->eof = true;
		else
			moved += (size_t)n;
	}
	if (flush(w) < 0)
		return -1;
	if (!w->held && !w->rest_len)
		return_pipe(w);
	return 0;
}

static bool holds(const struct way *w)
{
	return w->held || w->rest_len;
}

/* What is to be waited for: readable while nothing is held, writable while something is. */
static uint32_t wants(const struct way *reads, const struct way *writes)
{
	return (!reads->eof && !holds(reads) ? EPOLLIN | EPOLLRDHUP : 0u) | (holds(writes) ? (uint32_t)EPOLLOUT : 0u);
}

static void work(struct pair *p)
{
	struct way *ways[] = { &p->out, &p->in };

	for (int i = 0; i < 2; i++) {
		struct way *w = ways[i];

		if (w->done)
			continue;
		if (move(w) < 0) {
			end(p, errno == EPIPE || errno == ECONNRESET ? "reset" : "broken", true);
			return;
		}
		if (w->eof && !holds(w)) {
			(void)shutdown(w->to, SHUT_WR); /* fails when it is closed: then reading tells */
			w->done = true;
		}
	}
	if (p->out.bytes || p->in.bytes) {
		uint64_t out = p->out.bytes, in = p->in.bytes;

		p->out.bytes = p->in.bytes = 0;
		if (!p->owner.count(p->owner.arg, out, in)) {
			end(p, "a budget is used up", true);
			return;
		}
	}
	if (p->out.done && p->in.done) {
		end(p, NULL, false);
		return;
	}
	loop_change(p->loop, &p->a.watch, wants(&p->out, &p->in));
	loop_change(p->loop, &p->b.watch, wants(&p->in, &p->out));
}

static void ready(struct watch *watch, uint32_t events)
{
	struct pair *p = LOOP_OF(watch, struct side, watch)->pair;

	/* A side that broke, while nothing was to be read from it: told by neither reading nor writing. */
	if (events & EPOLLERR) {
		end(p, "reset", true);
		return;
	}
	work(p);
	if (!p->dead && events & EPOLLHUP && !(watch->events & (EPOLLIN | EPOLLOUT)))
		end(p, "closed", true);
}

struct pair *pair_new(struct loop *l, int take_a, int take_b, const struct pair_owner *owner)
{
	struct pair *p = cs_new(struct pair);

	p->loop = l;
	p->owner = *owner;
	p->a = (struct side){ { .fd = -1, .ready = ready }, p };
	p->b = (struct side){ { .fd = -1, .ready = ready }, p };
	p->out = (struct way){ .from = take_a, .to = take_b, .pipe = { -1, -1 } };
	p->in = (struct way){ .from = take_b, .to = take_a, .pipe = { -1, -1 } };
	if (loop_watch(l, &p->a.watch, take_a, EPOLLIN | EPOLLRDHUP) < 0 || loop_watch(l, &p->b.watch, take_b, EPOLLIN | EPOLLRDHUP) < 0) {
		loop_unwatch(l, &p->a.watch);
		free(p);
		return NULL;
	}
	return p;
}

void pair_cut(struct pair *p)
{
	end(p, "cut", true);
}
