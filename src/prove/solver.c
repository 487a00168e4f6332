/* SPDX-License-Identifier: Apache-2.0 */
#include "prove/solver.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 256 << 20, ANSWER_MAX = 16 << 20, GRACE_MS = 1500 };

struct solver {
	pid_t pid;
	int fd;
	struct cs_buf out, in;
	struct solver_limits limits;
	uint64_t ends_ms; /* when the total is used up */
	unsigned questions;
	bool broken;
	char why[160];
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- starting and ending ---- */

static char *find_program(const char *program)
{
	const char *path = getenv("PATH");
	CS_FREE char *dirs = NULL;
	char *save = NULL;

	if (program)
		return access(program, X_OK) == 0 ? cs_strdup(program) : NULL;
	dirs = cs_strdup(path && *path ? path : "/usr/bin:/bin");
	for (char *d = strtok_r(dirs, ":", &save); d; d = strtok_r(NULL, ":", &save)) {
		CS_FREE char *try = NULL;

		if (d[0] != '/') /* never from the directory we happen to be in */
			continue;
		try = cs_printf("%s/z3", d);
		if (access(try, X_OK) == 0)
			return CS_TAKE_PTR(try);
	}
	return NULL;
}

static void limit(int what, uint64_t most)
{
	struct rlimit l = { .rlim_cur = most, .rlim_max = most };

	if (setrlimit(what, &l) < 0)
		_exit(126);
}

static void __attribute__((noreturn)) child(const char *program, int fd, const struct solver_limits *limits, pid_t parent)
{
	static char *const env[] = { NULL };
	char *const argv[] = { (char[]){ "z3" }, (char[]){ "-in" }, (char[]){ "-smt2" }, NULL };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(126);
	if (null < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(null, 2) < 0)
		_exit(126);
	if (syscall(SYS_close_range, 3U, ~0U, 0) < 0)
		_exit(126);
	limit(RLIMIT_AS, limits->memory);
	limit(RLIMIT_CPU, limits->total_ms / 1000 + 2);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	execve(program, argv, env);
	_exit(127);
}

static int start_process(struct solver *s, const char *program, struct cs_err *err)
{
	int pair[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "a socket for the solver");
	s->pid = fork();
	if (s->pid < 0) {
		int sys = errno;

		close(pair[0]);
		close(pair[1]);
		return cs_fail(err, CS_E_SYSTEM, sys, "a process for the solver");
	}
	if (s->pid == 0)
		child(program, pair[1], &s->limits, parent);
	close(pair[1]);
	s->fd = pair[0];
	return 0;
}

int solver_start(const char *program, const struct solver_limits *limits, struct solver **ret, struct cs_err *err)
{
	CS_FREE char *path = find_program(program);
	struct solver *s;
	int r;

	if (!path)
		return cs_fail(err, CS_E_NOCMD, 0, "the solver Z3 is not installed%s%s: 'apt install z3', or name it with --solver PATH",
			       program ? " at " : " (no z3 in PATH)", program ? program : "");
	s = cs_new(struct solver);
	*s = (struct solver){ .fd = -1, .out = CS_BUF(TEXT_MAX), .in = CS_BUF(ANSWER_MAX), .limits = *limits };
	s->ends_ms = now_ms() + limits->total_ms;
	r = start_process(s, path, err);
	if (r < 0) {
		solver_free(s);
		return r;
	}
	cs_buf_str(&s->out, "(set-option :print-success false)\n(set-option :produce-unsat-cores true)\n"
			    "(set-option :produce-models true)\n(set-logic ALL)\n");
	*ret = s;
	return 0;
}

static void end_process(struct solver *s)
{
	int status;

	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	s->pid = 0;
}

void solver_free(struct solver *s)
{
	if (!s)
		return;
	end_process(s);
	cs_buf_done(&s->out);
	cs_buf_done(&s->in);
	free(s);
}

/* ---- asking ---- */

struct cs_buf *solver_text(struct solver *s)
{
	return &s->out;
}

const char *solver_why(const struct solver *s)
{
	return s->why[0] ? s->why : "the solver does not know";
}

unsigned solver_questions(const struct solver *s)
{
	return s->questions;
}

static int give_up(struct solver *s, const char *why)
{
	snprintf(s->why, sizeof s->why, "%s", why);
	s->broken = true;
	end_process(s);
	return -1;
}

/* 1: something was read; 0: nothing there yet; -1: it ended. */
static int take_some(struct solver *s)
{
	char chunk[65536];
	ssize_t n = recv(s->fd, chunk, sizeof chunk, MSG_DONTWAIT);

	if (n > 0)
		cs_buf_add(&s->in, chunk, (size_t)n);
	return n > 0 ? 1 : n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static bool complete(const struct solver *s, const char *mark)
{
	size_t n = strlen(mark);

	return s->in.len >= n && !memcmp(s->in.data + s->in.len - n, mark, n);
}

/* Sends what was said and reads up to the mark that is echoed at the end. */
static int exchange(struct solver *s, uint64_t within_ms)
{
	char mark[32];
	size_t sent = 0;
	uint64_t deadline = now_ms() + within_ms;

	if (s->broken)
		return -1;
	snprintf(mark, sizeof mark, "<%u>\n", ++s->questions);
	cs_buf_fmt(&s->out, "(echo \"<%u>\")\n", s->questions);
	if (s->out.over)
		return give_up(s, "the question is too large for the solver");
	s->in.len = 0;
	while (!complete(s, mark)) {
		struct pollfd p = { .fd = s->fd, .events = (short)(POLLIN | (sent < s->out.len ? POLLOUT : 0)) };
		uint64_t now = now_ms();

		if (now >= deadline)
			return give_up(s, "the time was up");
		if (poll(&p, 1, (int)(deadline - now)) < 0 && errno != EINTR)
			return give_up(s, "the solver could not be waited for");
		if (p.revents & POLLOUT) {
			ssize_t n = send(s->fd, s->out.data + sent, s->out.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

			sent += n > 0 ? (size_t)n : 0;
		}
		if (p.revents & (POLLIN | POLLHUP | POLLERR) && take_some(s) < 0)
			return give_up(s, "the solver ended (out of memory, or a fault of its own)");
		if (s->in.over)
			return give_up(s, "the solver's answer is too long");
	}
	s->in.len -= strlen(mark);
	s->in.data[s->in.len] = 0;
	s->out.len = 0;
	return 0;
}

static bool said_error(struct solver *s)
{
	const char *e = strstr(cs_buf_text(&s->in), "(error \"");
	char shown[120];

	if (!e)
		return false;
	cs_escape_to(shown, sizeof shown, e + 8);
	snprintf(s->why, sizeof s->why, "the solver refused the question: %s", shown);
	s->broken = true;
	end_process(s);
	return true;
}

static bool is_line(const struct solver *s, const char *word)
{
	size_t n = strlen(word);

	return s->in.len == n + 1 && !memcmp(s->in.data, word, n) && s->in.data[n] == '\n';
}

enum solver_answer solver_check(struct solver *s, const char *const *assume, size_t n)
{
	uint64_t now = now_ms(), ms = s->limits.query_ms;

	if (s->broken)
		return SOLVER_UNKNOWN;
	if (now >= s->ends_ms) {
		snprintf(s->why, sizeof s->why, "the time was up");
		return SOLVER_UNKNOWN;
	}
	ms = s->ends_ms - now < ms ? s->ends_ms - now : ms;
	cs_buf_fmt(&s->out, "(set-option :timeout %llu)\n(check-sat-assuming (", (unsigned long long)ms);
	for (size_t i = 0; i < n; i++)
		cs_buf_fmt(&s->out, " %s", assume[i]);
	cs_buf_str(&s->out, "))\n");
	if (exchange(s, ms + GRACE_MS) < 0 || said_error(s))
		return SOLVER_UNKNOWN;
	if (is_line(s, "sat"))
		return SOLVER_SAT;
	if (is_line(s, "unsat"))
		return SOLVER_UNSAT;
	if (is_line(s, "unknown"))
		snprintf(s->why, sizeof s->why, "the solver does not know, or not in time");
	else
		give_up(s, "the solver's answer cannot be read");
	return SOLVER_UNKNOWN;
}

static const struct sexp *ask(struct solver *s, struct cs_arena *a)
{
	const struct sexp *list = NULL;

	if (exchange(s, s->limits.query_ms + GRACE_MS) < 0 || said_error(s))
		return NULL;
	if (sexp_read(a, cs_buf_text(&s->in), s->in.len, &list) < 0 || !list || list->kind != SEXP_LIST || list->next) {
		give_up(s, "the solver's answer cannot be read");
		return NULL;
	}
	return list;
}

const struct sexp *solver_values(struct solver *s, struct cs_arena *a, const char *names)
{
	cs_buf_fmt(&s->out, "(get-value (%s))\n", names);
	return ask(s, a);
}

const struct sexp *solver_core(struct solver *s, struct cs_arena *a)
{
	cs_buf_str(&s->out, "(get-unsat-core)\n");
	return ask(s, a);
}
