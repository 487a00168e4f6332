/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - a sandbox that waits for commands: the caller's side.
 *
 * Two sockets (SOCK_SEQPACKET): to the nursery, which makes commands, and to
 * the stem, which tells of their ends (stem.c).  All that comes from there is
 * taken as hostile: messages of one fixed size, numbers that are looked up and
 * never used as an index, and whose process sent it as the kernel tells.
 *
 *   to the nursery      a request, native_request and its words
 *   from the nursery    'H' it stands (a: generation)
 *                       'P' a: the number inside of what is about to be executed
 *                       'X' the same, and b: errno and where, or 0
 *   to the stem         'S' signal b to a    'K' sweep, the nursery too
 *                       'N' grow one, a: with rules for a new layer
 *   from the stem       'R' it stands        'E' a has ended with status b
 *                       'D' the nursery died, a: the next generation
 *                       'k' it is swept      'n' it has grown, a: generation
 */
#include "sandbox/native/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { PATIENCE_MS = 10000 };

/* ---- the sockets ---- */

static int open_pair(int *ours, int *theirs)
{
	int pair[2], on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	*ours = pair[0];
	*theirs = pair[1];
	return setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

static int watch_with(int epoll, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

int native_stem_open(struct sandbox *s, struct native_plan *p)
{
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 || open_pair(&s->ctl, &p->stem_ctl) < 0 || open_pair(&s->exec, &p->stem_exec) < 0)
		return -1;
	return watch_with(s->epoll, s->sock) < 0 || watch_with(s->epoll, s->ctl) < 0 ? -1 : 0;
}

void native_stem_done(struct sandbox *s)
{
	int *fds[] = { &s->epoll, &s->ctl, &s->exec };

	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static int tell(struct sandbox *s, char what, int a, int b)
{
	struct native_note n = { .what = (uint32_t)what, .a = a, .b = b };

	return send(s->ctl, &n, sizeof n, MSG_NOSIGNAL) == sizeof n ? 0 : -1;
}

/* One note, if one waits, and which process (as we number them) sent it. */
static bool next_note(int sock, struct native_note *ret, pid_t *ret_pid)
{
	char control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec iov = { ret, sizeof *ret };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *c;
	struct ucred who;

	if (recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof *ret)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_CREDENTIALS || c->cmsg_len != CMSG_LEN(sizeof who))
		return false;
	memcpy(&who, CMSG_DATA(c), sizeof who);
	*ret_pid = who.pid;
	return true;
}

/* ---- what they say ---- */

/* An attempt that failed is told at once, by sandbox_exec(); the end of its process is no news. */
static bool is_failed_attempt(struct sandbox *s, pid_t pid)
{
	for (size_t i = 0; i < NATIVE_FAILED_MAX; i++)
		if (s->failed[i] == pid) {
			s->failed[i] = 0;
			return true;
		}
	return false;
}

static void keep_end(struct sandbox *s, pid_t pid, int status)
{
	if (s->n_ended == NATIVE_ENDED_MAX)
		return; /* nobody asks */
	if (s->n_ended == s->max_ended) {
		s->max_ended = s->max_ended ? s->max_ended * 2 : 16;
		s->ended = realloc(s->ended, s->max_ended * sizeof *s->ended);
		if (!s->ended)
			abort();
	}
	s->ended[s->n_ended++] = (struct native_end){ pid, status };
}

static void read_ctl(struct sandbox *s)
{
	struct native_note n = { 0 };
	pid_t pid;

	while (s->ctl >= 0 && next_note(s->ctl, &n, &pid)) {
		switch (n.what) {
		case 'R':
			s->stem_pid = pid;
			s->generation = n.a;
			break;
		case 'E':
			keep_end(s, n.a, n.b);
			break;
		case 'D':
			s->interrupted = true;
			s->generation = n.a;
			break;
		case 'k':
			s->swept = true;
			s->nursery_pid = 0;
			break;
		case 'n':
			s->generation = n.a;
			s->renewing = false;
			break;
		}
	}
}

static void read_exec(struct sandbox *s)
{
	struct native_note n = { 0 };
	pid_t pid;

	while (s->exec >= 0 && next_note(s->exec, &n, &pid)) {
		if (n.what == 'H') {
			s->nursery_pid = pid;
			s->hello = n.a;
		} else if (n.what == 'P' && n.sequence == s->sequence) {
			s->begun = n.a;
		} else if (n.what == 'X' && n.sequence == s->sequence) {
			s->answer = n;
			s->answered = true;
		}
	}
}

/* Reads on until something has come about; false: it has not, and will not. */
static bool until(struct sandbox *s, bool (*come)(const struct sandbox *))
{
	struct pollfd fds[3] = { { .fd = s->exec, .events = POLLIN }, { .fd = s->ctl, .events = POLLIN }, { .fd = s->pidfd, .events = POLLIN } };
	uint64_t give_up = native_now() + PATIENCE_MS * 1000000ull;

	for (;;) {
		read_ctl(s);
		read_exec(s);
		if (come(s))
			return true;
		if (s->waited || fds[2].revents || native_now() > give_up)
			return false;
		(void)poll(fds, 3, PATIENCE_MS);
		/* Hung up, and nothing more to read: only the end can come. */
		for (int i = 0; i < 2; i++)
			if (fds[i].revents & POLLHUP)
				fds[i].fd = -1;
	}
}

static bool is_answered(const struct sandbox *s)
{
	return s->answered || s->interrupted;
}

/* Who is ours is known. */
static bool is_settled(const struct sandbox *s)
{
	return s->swept || (!s->renewing && s->generation && s->hello >= s->generation);
}

static bool is_swept(const struct sandbox *s)
{
	return s->swept;
}

bool sandbox_take_ended(struct sandbox *s, pid_t *pid, int *status)
{
	read_ctl(s);
	for (size_t i = 0; i < s->n_ended; i++) {
		struct native_end e = s->ended[i];

		memmove(s->ended + i, s->ended + i + 1, (--s->n_ended - i) * sizeof *s->ended);
		if (is_failed_attempt(s, e.pid)) {
			i--;
			continue;
		}
		*pid = e.pid;
		*status = e.status;
		return true;
	}
	return false;
}

/* ---- commands ---- */

/* Why nothing can be asked of it any more. */
static int is_gone(struct sandbox *s, struct cs_err *err)
{
	enum native_state state = atomic_load(&s->report->state);

	if (state != NATIVE_FAILED)
		return cs_fail(err, CS_E_CONFLICT, 0, "the sandbox has ended");
	if (err) {
		*err = s->report->err;
		err->msg[sizeof err->msg - 1] = 0;
		if (err->code <= CS_OK || err->code >= CS_CODE_MAX)
			err->code = CS_E_SYSTEM;
		return -(int)err->code;
	}
	return -CS_E_SYSTEM;
}

static bool has_ended(const struct sandbox *s)
{
	struct pollfd end = { .fd = s->pidfd, .events = POLLIN };

	return s->waited || poll(&end, 1, 0) == 1;
}

static size_t count(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

static void add(struct cs_buf *b, char *const *v)
{
	for (; v && *v; v++)
		cs_buf_add(b, *v, strlen(*v) + 1);
}

/* The words in a memfd, where they do not fit a message. */
static int put_aside(const struct cs_buf *b)
{
	CS_FD int fd = memfd_create("request", MFD_CLOEXEC);

	if (fd < 0 || cs_write_all(fd, b->data, b->len) < 0)
		return -1;
	return CS_TAKE_FD(fd);
}

static int send_request(struct sandbox *s, const struct native_request *q, const struct cs_buf *blob, const int stdio[3])
{
	CS_FD int aside = blob->len > NATIVE_INLINE_MAX ? put_aside(blob) : -1;
	struct iovec iov[2] = { { (void *)(uintptr_t)q, sizeof *q }, { blob->data, blob->len } };
	int fds[4] = { stdio[0], stdio[1], stdio[2], aside };
	size_t n = aside >= 0 ? 4 : 3;
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(4)] = { 0 };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = aside >= 0 ? 1 : 2 };

	if (blob->len > NATIVE_INLINE_MAX && aside < 0)
		return -1;
	sys_put_fds(&m, control, fds, n);
	return sendmsg(s->exec, &m, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static int judge_answer(struct sandbox *s, const struct sandbox_command *c, pid_t *ret, struct cs_err *err)
{
	unsigned at = (unsigned)s->answer.b >> 16;
	int sys = s->answer.b & 0xffff;

	if (s->answer.b == 0) {
		*ret = s->answer.a;
		return 0;
	}
	s->failed[s->next_failed++ % NATIVE_FAILED_MAX] = s->answer.a;
	if (at == NATIVE_FAILED_CWD)
		return cs_fail(err, CS_E_INVALID, sys, "working directory '%s' inside the sandbox", c->cwd);
	if (at == NATIVE_FAILED_EXEC)
		return native_not_executed(err, c->argv[0], c->path, sys);
	return cs_fail(err, sys == E2BIG ? CS_E_LIMIT : CS_E_SYSTEM, sys, "start '%s'", c->argv[0]);
}

static int pack(struct sandbox *s, const struct sandbox_command *c, struct native_request *q, struct cs_buf *blob, struct cs_err *err)
{
	size_t argc = count(c->argv), envc = count(c->env);

	add(blob, c->argv);
	add(blob, c->env);
	cs_buf_add(blob, c->cwd, strlen(c->cwd) + 1);
	cs_buf_add(blob, c->path, strlen(c->path) + 1);
	if (!argc || blob->over || argc + envc > NATIVE_WORDS_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "a command line and environment of more than %d words or %d bytes, or of none", NATIVE_WORDS_MAX,
			       NATIVE_BLOB_MAX);
	*q = (struct native_request){ ++s->sequence, (uint32_t)blob->len, (uint32_t)argc, (uint32_t)envc, c->tty };
	return 0;
}

/* The nursery has died, by a command's hand.  Is the request lost with it?  It notes what it takes up. */
static bool is_lost(const struct sandbox *s)
{
	uint64_t taken = atomic_load(&s->report->taken);

	return (uint32_t)taken == s->sequence && (int)(taken >> 32) < s->generation;
}

/* 0: there is an answer. */
static int ask(struct sandbox *s, const struct sandbox_command *c, const struct native_request *q, const struct cs_buf *blob, struct cs_err *err)
{
	s->answered = false;
	s->begun = 0;
	do {
		s->interrupted = false;
		/* A second time does no harm: what was taken up already is not taken up again. */
		if (send_request(s, q, blob, c->stdio) < 0 && errno != EPIPE && errno != ECONNRESET)
			return cs_fail(err, CS_E_SYSTEM, errno, "hand the command to the sandbox");
		if (!until(s, is_answered))
			return has_ended(s) ? is_gone(s, err) : cs_fail(err, CS_E_SYSTEM, ETIMEDOUT, "start '%s'", c->argv[0]);
		read_exec(s);
		if (!s->answered && is_lost(s) && s->begun) { /* it killed the nursery before that could speak; its end will be told */
			s->answer = (struct native_note){ .what = 'X', .a = s->begun };
			s->answered = true;
		}
		if (!s->answered && is_lost(s))
			return cs_fail(err, CS_E_SYSTEM, EINTR, "start '%s': another command has interfered", c->argv[0]);
	} while (!s->answered);
	return 0;
}

int sandbox_exec(struct sandbox *s, const struct sandbox_command *c, pid_t *ret_pid, struct cs_err *err)
{
	CS_BUF_AUTO struct cs_buf blob = CS_BUF(NATIVE_BLOB_MAX);
	struct native_request q;
	int r;

	if (s->exec < 0)
		return cs_fail(err, CS_E_INVALID, 0, "this sandbox takes no commands");
	r = pack(s, c, &q, &blob, err);
	if (r < 0)
		return r;
	if (s->ids.ranged)
		native_own_stdio(&s->ids, c->stdio, c->tty);
	sandbox_ready(s);
	r = ask(s, c, &q, &blob, err);
	return r < 0 ? r : judge_answer(s, c, ret_pid, err);
}

void sandbox_signal_command(struct sandbox *s, pid_t pid_inside, int sig)
{
	if (s->ctl >= 0)
		(void)tell(s, 'S', pid_inside, sig); /* fails only when all has ended */
}

/* ---- all processes ---- */

static size_t list(struct sandbox *s, pid_t *pids, size_t max)
{
	pid_t ours[] = { s->pid, s->stem_pid, s->nursery_pid };

	return native_usage_list(s->pid, ours, sizeof ours / sizeof *ours, pids, max);
}

size_t sandbox_processes(struct sandbox *s)
{
	pid_t some[1];

	if (s->ctl < 0 || !until(s, is_settled))
		return 0;
	return list(s, some, 1);
}

static void grow(struct sandbox *s, bool pushed)
{
	if (!s->swept || tell(s, 'N', pushed, 0) < 0)
		return; /* who asks for a command next is told why */
	s->swept = s->empty = false;
	s->renewing = true;
}

void sandbox_ready(struct sandbox *s)
{
	grow(s, /* pushed= */ false);
}

int sandbox_clear(struct sandbox *s)
{
	/* A nursery that is on its way would come after the sweep. */
	if (s->ctl < 0 || !until(s, is_settled))
		return -CS_E_CONFLICT;
	if (!s->swept && (tell(s, 'K', 0, 0) < 0 || !until(s, is_swept)))
		return -CS_E_CONFLICT;
	/* Orphans are process 1's to reap: until it has, they are there. */
	for (uint64_t give_up = native_now() + PATIENCE_MS * 1000000ull; !s->empty && sandbox_processes(s); (void)poll(NULL, 0, 1))
		if (native_now() > give_up)
			return -CS_E_CONFLICT;
	s->empty = true;
	return 0;
}

int sandbox_sweep(struct sandbox *s, void (*name)(const char *comm, pid_t pid_inside, void *arg), void *arg)
{
	pid_t pids[256];
	size_t n, all;
	int r;

	if (s->ctl < 0 || !until(s, is_settled))
		return -CS_E_CONFLICT;
	all = list(s, pids, sizeof pids / sizeof *pids);
	n = all < sizeof pids / sizeof *pids ? all : sizeof pids / sizeof *pids;
	for (size_t i = 0; i < n && name; i++) {
		char comm[32];
		pid_t inside = native_usage_name(pids[i], comm, sizeof comm);

		if (inside > 0)
			name(comm, inside, arg);
	}
	r = sandbox_clear(s);
	sandbox_ready(s);
	return r < 0 ? r : (int)all;
}

/* ---- layers ---- */

static int can_push(struct sandbox *s, size_t bind, struct cs_err *err)
{
	if (s->mount_sock < 0 || bind >= s->n_binds || !s->layers[bind])
		return cs_fail(err, CS_E_INVALID, 0, "there is no layer on disk to put another one on");
	if (s->layers[bind] == NATIVE_LAYER_COVERED)
		return cs_fail(err, CS_E_UNSUPPORTED, 0, "something else is bound inside that layer");
	if (!s->swept && sandbox_processes(s))
		return cs_fail(err, CS_E_CONFLICT, 0, "a process still runs in the sandbox");
	/* The nursery's domain knows the old layer only. */
	if (sandbox_clear(s) < 0)
		return is_gone(s, err);
	return 0;
}

int sandbox_push_layer(struct sandbox *s, size_t bind, int store, const int *lowers, size_t n_lowers, struct cs_err *err)
{
	int r = can_push(s, bind, err);

	if (r < 0)
		return r;
	r = native_mounter_push(s, bind, store, lowers, n_lowers, err);
	grow(s, /* pushed= */ true);
	if (r == 0)
		native_quota_push(s, bind, store, lowers, n_lowers);
	return r;
}
