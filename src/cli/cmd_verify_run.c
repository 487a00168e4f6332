/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify_run.c - one probe, in a sandbox or without one.
 *
 * A sandbox is made by session_run(), as for `caisson run`, in a child of ours
 * whose descriptors 0 to 2 are pipes and /dev/null; its result comes back
 * through shared memory.
 */
#include "cli/cmd_verify.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOB_MS = 20000 };

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	interrupted = sig;
}

/* A person's Ctrl-C must not leave our files behind: finish early, then clear. */
void verify_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

bool verify_interrupted(void)
{
	return interrupted;
}

/* ---- starting ---- */

static void take_stdio(int in, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	if (dup2(in >= 0 ? in : null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(125);
}

/* Copies: process 1 of a sandbox wipes the strings it was started with. */
static void build_argv(const struct verify *v, const struct job *j, char *argv[JOB_WORDS + 4])
{
	size_t n = 0;

	argv[n++] = cs_strdup(v->self);
	argv[n++] = cs_strdup("verify");
	argv[n++] = cs_strdup("--probe");
	for (size_t i = 0; i < JOB_WORDS && j->words[i]; i++)
		argv[n++] = cs_strdup(j->words[i]);
	argv[n] = NULL;
}

static int job_profile(const struct verify *v, const struct job *j, struct profile *p, struct cs_err *err)
{
	int r = profile_load("default", p, err);

	if (r == 0)
		r = profile_set(p, "files.read", v->self, "verify", err);
	for (size_t i = 0; r == 0 && i < JOB_SETS && j->set[i][0]; i++)
		r = profile_set(p, j->set[i][0], j->set[i][1], "verify", err);
	return r;
}

static void run_inside(const struct verify *v, const struct job *j, struct session_result *res)
{
	char *argv[JOB_WORDS + 4];
	struct profile p = { 0 };
	struct session_opts o = { .profile = &p, .workspace = j->workspace ? j->workspace : v->ws, .argv = argv, .off = v->off };

	build_argv(v, j, argv);
	o.cwd = o.workspace;
	if (job_profile(v, j, &p, &res->err) == 0)
		(void)session_run(&o, res);
	session_discard(res);
}

static int job_start(const struct verify *v, const struct job *j, struct running *r)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 };

	if (pipe2(out, O_CLOEXEC) < 0 || (j->talk && pipe2(in, O_CLOEXEC) < 0))
		return -1;
	r->in = in[1];
	r->out = out[0];
	r->pid = fork();
	if (r->pid == 0) {
		char *argv[JOB_WORDS + 4];

		take_stdio(in[0], out[1]);
		/* Not inherited further by chance: the other ends of our own pipes. */
		close(out[0]);
		close(out[1]);
		if (j->talk) {
			close(in[0]);
			close(in[1]);
		}
		if (r->res) {
			run_inside(v, j, r->res);
			_exit(0);
		}
		build_argv(v, j, argv);
		execv(v->self, argv);
		_exit(125);
	}
	close(out[1]);
	if (in[0] >= 0)
		close(in[0]);
	return r->pid < 0 ? -1 : 0;
}

int job_start_outside(const struct verify *v, const struct job *j, struct running *ret)
{
	*ret = (struct running){ .pid = -1, .in = -1, .out = -1 };
	return job_start(v, j, ret);
}

int job_start_inside(const struct verify *v, const struct job *j, struct running *ret)
{
	*ret = (struct running){ .pid = -1, .in = -1, .out = -1 };
	ret->res = mmap(NULL, sizeof *ret->res, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ret->res == MAP_FAILED) {
		ret->res = NULL;
		return -1;
	}
	ret->res->reason = SESSION_NOT_STARTED;
	return job_start(v, j, ret);
}

/* ---- reading and ending ---- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* False at the end of file, when time is up, or when somebody wants us to stop. */
static bool read_some(struct running *r, int64_t deadline)
{
	struct pollfd fd = { .fd = r->out, .events = POLLIN };
	int64_t left = deadline - now_ms();
	char rest[4096];
	bool room = r->len + 1 < sizeof r->raw;
	ssize_t n;

	if (left <= 0 || interrupted || poll(&fd, 1, (int)left) <= 0) {
		r->late = true;
		return false;
	}
	n = room ? read(r->out, r->raw + r->len, sizeof r->raw - 1 - r->len) : read(r->out, rest, sizeof rest);
	if (n > 0 && room)
		r->len += (size_t)n;
	return n > 0;
}

bool job_expect(struct running *r, const char *word)
{
	int64_t deadline = now_ms() + JOB_MS;

	while (!strstr(r->raw, word))
		if (!read_some(r, deadline))
			return false;
	return true;
}

void job_finish(struct running *r, struct outcome *ret)
{
	int64_t deadline = now_ms() + JOB_MS;
	int status = 0;

	memset(ret, 0, sizeof *ret);
	if (r->in >= 0)
		close(r->in);
	while (r->out >= 0 && read_some(r, deadline))
		;
	if (r->pid > 0) {
		if (r->late)
			kill(r->pid, SIGKILL);
		while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (r->out >= 0)
		close(r->out);
	r->raw[strcspn(r->raw, "\n")] = 0;
	cs_escape_to(ret->text, sizeof ret->text, r->raw);
	if (r->res) {
		ret->res = *r->res;
		ret->ran = r->pid > 0 && !r->late && WIFEXITED(status) && ret->res.reason == SESSION_EXITED;
		ret->status = ret->res.exit_code;
		(void)munmap(r->res, sizeof *r->res);
	} else {
		ret->ran = r->pid > 0 && !r->late && WIFEXITED(status);
		ret->status = WEXITSTATUS(status);
	}
	*r = (struct running){ .pid = -1, .in = -1, .out = -1 };
}

void job_inside(const struct verify *v, const struct job *j, struct outcome *ret)
{
	struct running r;

	(void)job_start_inside(v, j, &r); /* a failed start is an outcome that did not run */
	job_finish(&r, ret);
}

void job_outside(const struct verify *v, const struct job *j, struct outcome *ret)
{
	struct running r;

	(void)job_start_outside(v, j, &r);
	job_finish(&r, ret);
}

/* ---- verdicts ---- */

void verdict_set(struct verdict *ret, enum verdict_state state, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ret->how, sizeof ret->how, fmt, ap);
	va_end(ap);
	ret->state = state;
}

void verdict_run(struct verdict *ret, const struct outcome *o)
{
	if (o->res.id[0] && ret->n_runs < sizeof ret->runs / sizeof *ret->runs)
		snprintf(ret->runs[ret->n_runs++], sizeof *ret->runs, "%s", o->res.id);
}

bool verdict_ran(struct verdict *ret, const struct outcome *o)
{
	verdict_run(ret, o);
	if (o->ran && o->status != PROBE_BROKEN && o->status <= PROBE_BROKEN)
		return true;
	if (o->res.err.code)
		verdict_set(ret, VERDICT_UNJUDGED, "the sandbox did not start: %.180s", o->res.err.msg);
	else
		verdict_set(ret, VERDICT_UNJUDGED, "the probe did not do its work (%s, status %d) %.120s", session_reason_name(o->res.reason),
			    o->status, o->text);
	return false;
}
