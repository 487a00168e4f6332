/* SPDX-License-Identifier: Apache-2.0 */
/* supervise.c - one sandbox from start to end.
 *
 * A single poll(2) loop: the sandbox's end, what it was refused, the relay of
 * its terminal or output, our own signals, and a timer for the limits that the
 * kernel does not enforce.  Samples are taken when a limit could at the
 * soonest have been reached, so an idle sandbox costs next to nothing.
 */
#include "session/session.h"

#include "base/cleanup.h"
#include "base/say.h"
#include "base/text.h"
#include "session/net.h"
#include "session/relay.h"
#include "sys/sys.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

enum {
	SAMPLE_MIN_MS = 5,
	SAMPLE_MAX_MS = 1000,
	GROWTH_PER_MS = 5 << 20, /* the fastest a program here fills memory: 5 GiB/s */
	INODES_PER_MS = 100,     /* the fastest it makes files */
	GRACE_MS = 5000,         /* between a forwarded signal and SIGKILL */
	DRAIN_MS = 100,
	DRAIN_ENDED_MS = 2000,   /* for a reader, after a limit or a signal ended the program */
	GC_ENTRIES = 8,
};

struct run {
	const struct session_opts *o;
	struct session_result *res;
	struct sandbox *box;
	struct relay *relay;
	int sigfd;
	uint64_t started, deadline, next_sample, kill_at; /* ms; 0: none */
	uint64_t sample_cap;                             /* doubles: short lives are looked at closely */
	bool ending;                                     /* the reason is fixed */
	bool inside_gone, notifier_gone;                 /* hung up: polling on would spin */
	int cancel_signal;
	bool tty;
	uint64_t tstp_at;                                /* when we were last asked to stop */
	const char *workspace;
	char record_path[256];
	int record_fd;                                   /* holds the record's lock */
	struct txn *txn;                                 /* takes what is written in the workspace */
	bool in_memory;                                  /* ... when it has ended: no layer can stand there */
	struct session_net *net;                         /* NULL: none */
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void end_for(struct run *r, enum session_reason why)
{
	if (!r->ending)
		r->res->reason = why;
	r->ending = true;
	sandbox_kill(r->box);
}

/* ---- limits by sampling ---- */

static uint64_t soonest(uint64_t used, uint64_t limit)
{
	uint64_t ms = used >= limit ? 0 : (limit - used) / GROWTH_PER_MS;

	return ms < SAMPLE_MIN_MS ? SAMPLE_MIN_MS : ms > SAMPLE_MAX_MS ? SAMPLE_MAX_MS : ms;
}

static bool disk_full(const struct profile_limits *l, const struct sandbox_usage *u)
{
	return l->disk && u->disk_limit &&
	       (u->disk_now + 65536 > u->disk_limit || (u->inodes_limit && u->inodes_now + 1 > u->inodes_limit));
}

/* When the disk limit is to be looked at next.  A tmpfs holds its limits itself, and looking only
 * names them; a layer on disk is held by nothing else. */
static uint64_t soonest_disk(const struct sandbox_usage *u)
{
	uint64_t bytes = soonest(u->disk_now, u->disk_limit), inodes = SAMPLE_MAX_MS;

	if (!u->disk_sampled)
		return bytes < 20 ? 20 : bytes;
	if (u->inodes_limit)
		inodes = u->inodes_now >= u->inodes_limit ? 0 : (u->inodes_limit - u->inodes_now) / INODES_PER_MS;
	if (inodes < SAMPLE_MIN_MS)
		inodes = SAMPLE_MIN_MS;
	return bytes < inodes ? bytes : inodes;
}

static void sample(struct run *r, uint64_t now)
{
	const struct profile_limits *l = &r->o->profile->limits;
	uint64_t wait = r->sample_cap, w;
	struct sandbox_usage u;

	sandbox_usage(r->box, &u);
	if (u.oom)
		end_for(r, SESSION_MEMORY);
	if (disk_full(l, &u))
		end_for(r, SESSION_DISK);
	if (l->cpu_time && u.cpu_ms >= l->cpu_time)
		end_for(r, SESSION_CPU_TIME);
	if (l->memory && (w = soonest(u.memory_now, l->memory)) < wait)
		wait = w;
	if (l->disk && u.disk_limit && (w = soonest_disk(&u)) < wait)
		wait = w;
	if (l->cpu_time && (w = (l->cpu_time - (u.cpu_ms < l->cpu_time ? u.cpu_ms : l->cpu_time)) / 2) < wait)
		wait = w < SAMPLE_MIN_MS ? SAMPLE_MIN_MS : w;
	r->sample_cap = r->sample_cap * 2 < SAMPLE_MAX_MS ? r->sample_cap * 2 : SAMPLE_MAX_MS;
	r->next_sample = now + wait;
}

static bool wants_samples(const struct profile_limits *l)
{
	return l->memory || l->disk || l->cpu_time;
}

static int next_timeout(const struct run *r, uint64_t now)
{
	uint64_t at = UINT64_MAX;

	if (r->deadline)
		at = r->deadline;
	if (r->next_sample && r->next_sample < at)
		at = r->next_sample;
	if (r->kill_at && r->kill_at < at)
		at = r->kill_at;
	if (at == UINT64_MAX)
		return -1;
	return at <= now ? 0 : at - now > 60000 ? 60000 : (int)(at - now);
}

static void on_time(struct run *r)
{
	uint64_t now = now_ms();

	if (r->deadline && now >= r->deadline) {
		r->deadline = 0;
		end_for(r, SESSION_TIMEOUT);
	}
	if (r->kill_at && now >= r->kill_at) {
		r->kill_at = 0;
		end_for(r, SESSION_CANCELLED);
	}
	if (r->next_sample && now >= r->next_sample)
		sample(r, now);
}

/* ---- refusals ---- */

static void count_refusal(struct session_result *res, const struct sandbox_refusal *what)
{
	for (size_t i = 0; i < res->n_refusals; i++) {
		if (strcmp(res->refusals[i].what.what, what->what))
			continue;
		res->refusals[i].count++;
		return;
	}
	if (res->n_refusals == SESSION_REFUSALS_MAX) {
		res->refusals_more++;
		return;
	}
	res->refusals[res->n_refusals].what = *what;
	res->refusals[res->n_refusals++].count = 1;
}

static void take_refusal(struct run *r)
{
	struct sandbox_refusal what;
	static unsigned told;

	if (!sandbox_next_refusal(r->box, &what))
		return;
	count_refusal(r->res, &what);
	/* A program that does nothing but be refused waits, and does not heat our CPU. */
	if (++told > 1000)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* ---- signals ---- */

/* We stop when the program was stopped from the keyboard, ours or the pty's.  A program that just
 * stops itself stays stopped until its time is up, and we watch. */
static bool from_keyboard(const struct run *r)
{
	return r->tty || (r->tstp_at && now_ms() - r->tstp_at < 1000);
}

static void suspend(struct run *r)
{
	sigset_t tstp;

	if (!from_keyboard(r))
		return;
	sigemptyset(&tstp);
	sigaddset(&tstp, SIGTSTP);
	if (r->relay)
		relay_suspend(r->relay);
	/* SIGTSTP and not SIGSTOP: where nobody could continue us, the kernel lets us run on. */
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &tstp, NULL);
	sigprocmask(SIG_BLOCK, &tstp, NULL);
	if (r->relay)
		relay_resume(r->relay);
	sandbox_signal(r->box, SIGCONT);
}

static void on_signal(struct run *r)
{
	struct signalfd_siginfo si;

	while (read(r->sigfd, &si, sizeof si) == sizeof si) {
		switch (si.ssi_signo) {
		case SIGWINCH:
			if (r->relay)
				relay_resize(r->relay);
			break;
		case SIGCONT:
			break;
		case SIGTERM:
		case SIGHUP:
			/* Passed on; who does not go is ended after a while, or at the second signal. */
			if (r->kill_at)
				end_for(r, SESSION_CANCELLED);
			r->kill_at = now_ms() + GRACE_MS;
			/* fall through */
		case SIGINT:
		case SIGQUIT:
			/* From a keyboard: the program may well want to live on, as an interpreter does. */
			r->cancel_signal = (int)si.ssi_signo;
			sandbox_signal(r->box, (int)si.ssi_signo);
			break;
		default: /* SIGTSTP too: we stop when the program has */
			if (si.ssi_signo == SIGTSTP)
				r->tstp_at = now_ms();
			sandbox_signal(r->box, (int)si.ssi_signo);
		}
	}
}

/* ---- the loop ---- */

static void loop(struct run *r)
{
	struct pollfd fds[16];

	for (;;) {
		size_t n = 5;
		int ready;

		fds[0] = (struct pollfd){ .fd = sandbox_pidfd(r->box), .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = r->inside_gone ? -1 : sandbox_event_fd(r->box), .events = POLLIN };
		fds[2] = (struct pollfd){ .fd = r->notifier_gone ? -1 : sandbox_refusal_fd(r->box), .events = POLLIN };
		fds[3] = (struct pollfd){ .fd = r->sigfd, .events = POLLIN };
		fds[4] = (struct pollfd){ .fd = session_net_fd(r->net), .events = POLLIN };
		n += relay_poll(r->relay, fds + 5, sizeof fds / sizeof *fds - 5);
		ready = poll(fds, n, next_timeout(r, now_ms()));
		if (ready < 0 && errno != EINTR)
			break;
		if (ready > 0) {
			if (fds[2].revents & POLLIN)
				take_refusal(r);
			if (fds[3].revents & POLLIN)
				on_signal(r);
			if (fds[1].revents)
				session_net_take(r->net, r->box);
			if (fds[4].revents)
				session_net_handle(r->net);
			relay_handle(r->relay, fds + 5, n - 5);
			if (fds[1].revents & POLLHUP && !r->inside_gone) {
				/* Process 1 has let go of us; while it is torn down on another CPU, what is
				 * left to do costs nothing. */
				r->inside_gone = true;
				sandbox_look_last(r->box);
				(void)session_gc(GC_ENTRIES, r->res->id, NULL); /* best effort: `caisson gc` reports */
			}
			r->notifier_gone |= (fds[2].revents & POLLHUP) != 0 && !(fds[2].revents & POLLIN);
			if (relay_over(r->relay))
				end_for(r, SESSION_OUTPUT);
			if (fds[0].revents & POLLIN)
				return;
		}
		on_time(r);
		/* Whatever woke us: looking at what it uses reads the same messages, and this one would not come again. */
		if (sandbox_take_stop(r->box))
			suspend(r);
	}
	end_for(r, SESSION_CANCELLED);
}

/* ---- verdict ---- */

/* We would not, and not: we could not. */
static bool is_refusal(enum cs_code code)
{
	return code == CS_E_DENIED || code == CS_E_UNSUPPORTED || code == CS_E_INVALID;
}

int session_exit_unstarted(enum cs_code code)
{
	return code == CS_E_NOEXEC || code == CS_E_NOCMD ? cs_code_exit(code) : 125;
}

static void verdict(struct run *r, const struct sandbox_exit *end)
{
	struct session_result *res = r->res;
	const struct profile_limits *l = &r->o->profile->limits;
	const struct sandbox_usage *u = &res->usage;

	if (!end->started) {
		res->err = end->err;
		res->reason = is_refusal(end->err.code) ? SESSION_REFUSED : SESSION_NOT_STARTED;
		res->exit_code = session_exit_unstarted(end->err.code);
		return;
	}
	if (!end->killed_outside && WIFSIGNALED(end->status))
		res->signal = WTERMSIG(end->status);
	if (end->killed_outside)
		res->signal = SIGKILL;
	/* A limit that bit while the program ended by itself: say so when it did not end well. */
	if (!r->ending && (res->signal || WEXITSTATUS(end->status))) {
		if (u->oom)
			end_for(r, SESSION_MEMORY);
		else if (l->cpu_time && res->signal && u->cpu_ms + 50 >= l->cpu_time)
			end_for(r, SESSION_CPU_TIME);
		else if (disk_full(l, u))
			end_for(r, SESSION_DISK);
	}
	if (!r->ending)
		res->reason = r->cancel_signal && res->signal ? SESSION_CANCELLED : res->signal ? SESSION_SIGNALLED : SESSION_EXITED;
	switch (res->reason) {
	case SESSION_EXITED:
		res->exit_code = WEXITSTATUS(end->status);
		break;
	case SESSION_TIMEOUT:
		res->exit_code = 124;
		break;
	case SESSION_SIGNALLED:
		res->exit_code = 128 + res->signal;
		break;
	case SESSION_CANCELLED:
		res->exit_code = 128 + (r->cancel_signal ? r->cancel_signal : SIGKILL);
		break;
	default:
		res->exit_code = 128 + SIGKILL;
	}
}

/* A reader that is slow but there loses nothing; a signal ends our patience. */
static void drain(struct run *r)
{
	struct pollfd sig = { .fd = r->sigfd, .events = POLLIN };

	uint64_t until = r->ending || r->cancel_signal ? now_ms() + DRAIN_ENDED_MS : r->deadline ? r->deadline : UINT64_MAX;

	do
		relay_drain(r->relay, DRAIN_MS);
	while (relay_active(r->relay) && now_ms() < until && poll(&sig, 1, 0) == 0);
}

static void collect(struct run *r)
{
	struct session_result *res = r->res;
	struct sandbox_exit end;

	sandbox_wait(r->box, &end);
	session_net_end(r->net, end.started, &res->network);
	r->net = NULL;
	drain(r);
	res->wall_ms = now_ms() - r->started;
	res->output_bytes = relay_bytes(r->relay);
	res->output_counted = relay_active(r->relay) || res->output_bytes;
	sandbox_usage(r->box, &res->usage);
	res->active = sandbox_active(r->box);
	for (int p = 0; p < PROT_MAX; p++) {
		const char *why = sandbox_why_off(r->box, (enum protection)p);

		snprintf(res->why_off[p], sizeof res->why_off[p], "%s", r->o->off & PROT_BIT(p) ? "switched off" : why ? why : "");
	}
	if (sandbox_unmapped(r->box))
		say_note("the workspace is on a file system that cannot map ids: its files could be read but not changed "
			 "(run as their owner, or keep it on ext4, xfs or btrfs)");
	if (r->o->profile->system == PROFILE_SYSTEM_SCRATCH && !sandbox_has_block(r->box) && end.status)
		say_note("`system: scratch` had one id here: packages with files of other users cannot be installed "
			 "(run as root; `caisson doctor` says more at subuid)");
	res->n_steps = sandbox_steps(r->box, res->steps, sizeof res->steps / sizeof *res->steps);
	verdict(r, &end);
	if (relay_lost(r->relay) && res->exit_code == 0)
		res->exit_code = cs_code_exit((enum cs_code)-cs_fail(&res->err, CS_E_SYSTEM, relay_lost(r->relay), "pass on the program's output"));
	if (relay_over(r->relay) && res->reason != SESSION_OUTPUT && end.started) {
		res->reason = SESSION_OUTPUT;
		res->exit_code = 137;
	}
}

static int refuse(struct session_result *res, enum session_reason why)
{
	res->reason = why;
	return res->exit_code = session_exit_unstarted(res->err.code);
}

static void record(const char *const *cgroups, size_t n, void *arg)
{
	struct run *r = arg;

	if (r->txn)
		txn_settle(r->txn);
	r->record_fd = session_record(r->res->id, r->o, r->workspace, cgroups, n, r->record_path, sizeof r->record_path);
}

/* While a control group is left the record stays, so that a later command tries again. */
static void forget(struct run *r)
{
	if (r->record_fd < 0)
		return;
	if (!r->box || sandbox_cleared(r->box))
		(void)unlink(r->record_path); /* if it stays, `caisson gc` takes it */
	close(r->record_fd);
}

static int start(struct run *r, struct session_spec *s)
{
	struct relay_opts ro = { .max_output = r->o->profile->limits.output,
				 .reopen_safe = sys_landlock_abi() > 0 && !(r->o->off & PROT_BIT(PROT_LANDLOCK)) };
	int e;

	e = relay_open(&ro, &r->relay, s->spec.stdio, &s->spec.tty, &r->res->err);
	if (e < 0)
		return e;
	r->tty = s->spec.tty;
	r->sigfd = session_open_signals();
	r->started = now_ms();
	r->workspace = s->workspace;
	s->spec.record = record;
	s->spec.record_arg = r;
	e = sandbox_start(&s->spec, &r->box, &r->res->err);
	if (e == -CS_E_UNSUPPORTED && s->layer && s->layer->store) {
		/* overlayfs does not work there: the writes go to memory, and to disk at the end. */
		s->layer->store = 0;
		s->spec.one_id = true; /* files of ids that the workspace cannot have would come to disk */
		r->in_memory = true;
		r->res->err = (struct cs_err){ 0 };
		e = sandbox_start(&s->spec, &r->box, &r->res->err);
	}
	if (e < 0)
		return e;
	if (r->txn)
		txn_started(r->txn, sandbox_pid(r->box));
	/* The sandbox is being built now; what follows costs the caller nothing. */
	(void)signal(SIGPIPE, SIG_IGN);
	relay_started(r->relay);
	if (r->o->profile->limits.wall)
		r->deadline = r->started + r->o->profile->limits.wall;
	if (wants_samples(&r->o->profile->limits))
		r->next_sample = r->started + (r->sample_cap = 20);
	loop(r);
	collect(r);
	return 0;
}

/* ---- the workspace's transaction ---- */

static int begin_change(struct run *r, struct session_spec *s, struct cs_err *err)
{
	int e;

	if (!s->layer || r->o->profile->commit == PROFILE_COMMIT_NEVER)
		return 0;
	e = session_txn_begin(r->o, s, false, &r->txn, err);
	if (e < 0)
		return e;
	r->in_memory = txn_needs_import(r->txn);
	s->layer->store = r->in_memory ? 0 : txn_dir(r->txn);
	if (r->in_memory) { /* it stands in the workspace, made just now */
		cs_strv_take(&s->hide, cs_printf("%s/.caisson", s->workspace));
		s->spec.hide = (const char *const *)s->hide.v;
		s->spec.n_hide = s->hide.n;
	}
	s->layer->redirect = true;
	return 0;
}

/* What was written stays with the caller; an empty one leaves no trace. */
static void end_change(struct run *r)
{
	struct cs_err err = { 0 };
	int layer;

	if (!r->txn)
		return;
	layer = r->in_memory && r->box ? sandbox_layer(r->box) : -1;
	if (layer >= 0 && txn_import(r->txn, layer, &err) < 0)
		say_error("what was written in the workspace is lost: %s", err.msg);
	if (layer >= 0)
		close(layer);
	if (!txn_is_empty(r->txn)) {
		r->res->txn = r->txn;
		return;
	}
	if (txn_discard(r->txn, "empty", &err) < 0)
		say_error("%s: nothing was written, and it is still there: %s (the next command clears it)", txn_about(r->txn)->id, err.msg);
	txn_close(r->txn);
}

int session_run(const struct session_opts *o, struct session_result *ret)
{
	struct run r = { .o = o, .res = ret, .sigfd = -1, .record_fd = -1 };
	struct session_spec s;
	char shown[256];
	int e;

	memset(ret, 0, sizeof *ret);
	ret->reason = SESSION_NOT_STARTED;
	session_new_id(ret->id);
	e = session_spec_make(o, &s, &ret->err);
	if (e < 0)
		return refuse(ret, SESSION_REFUSED);
	s.spec.id = ret->id;
	for (size_t i = 0; i < s.hide.n; i++)
		ret->hidden += s.workspace && !strncmp(s.hide.v[i], s.workspace, strlen(s.workspace));
	if (s.hide_partly)
		/* Not silenced by --quiet: it says what is not protected. */
		say_error("'%s' is too large or too deep to be searched for secrets to the end; name with --hide what must not be seen",
			  cs_escape_to(shown, sizeof shown, s.hide_partly));
	ret->hidden_partly = s.hide_partly != NULL;
	e = session_net_open(o, /* rules= */ -1, ret->id, &s, &r.net, &ret->err);
	if (e == 0)
		e = begin_change(&r, &s, &ret->err);
	if (e == 0)
		e = start(&r, &s);
	if (e < 0)
		refuse(ret, is_refusal(ret->err.code) ? SESSION_REFUSED : SESSION_NOT_STARTED);
	end_change(&r);
	forget(&r);
	session_net_end(r.net, /* ran= */ false, &ret->network);
	sandbox_free(r.box);
	relay_free(r.relay);
	if (r.sigfd >= 0)
		close(r.sigfd);
	session_spec_done(&s);
	return ret->exit_code;
}
