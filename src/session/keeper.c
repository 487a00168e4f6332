/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - a session: a sandbox that stays alive and takes commands, step by step.
 *
 * The keeper is a process of its own, which outlives the command that began the
 * session.  It holds the transaction's lock; when it dies, whatever ends it, the
 * kernel ends the sandbox, and the next command finds the change set.
 *
 * Before each step stands a savepoint: a new layer over those of the steps
 * before, unless the last step wrote nothing.  That needs a sandbox in which
 * nothing runs, so what a step leaves running ends with it and is named, unless
 * the step was started to be left running: then there is no savepoint until it
 * has ended.
 */
#include "session/session.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "session/net.h"
#include "session/wire.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 16, SAMPLE_MS = 50, TOLD_REFUSALS = 6 };

struct step_run {
	bool active, background, timed_out;
	const char *limit;          /* which ended it, or NULL */
	pid_t pid;                  /* inside */
	int client;                 /* who waits for it, -1: has gone */
	uint32_t layer;
	uint64_t started_s, started_us, deadline; /* deadline: ms, 0 none */
	char *command;
	unsigned refusals;
};

struct keeper {
	const struct session_opts *o;
	struct session_spec spec;
	size_t bind;                /* the workspace's */
	struct txn *txn;
	struct sandbox *box;
	struct session_net *net;    /* NULL: none */
	int rules;                  /* of its network: those of the session that this one is a copy of; -1: the profile's */
	int listen, sigfd, ready;   /* ready: tells who began it, -1 once told */
	int clients[CLIENTS];
	struct step_run run;
	uint64_t next_sample;       /* ms */
	uint32_t layer;             /* that is mounted */
	bool left_running;          /* by a step that was started so */
	bool ending, notifier_gone;
	int end_client;
	char record_path[256], socket_path[256];
	int record_fd;
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- telling ---- */

static void tell(int client, enum wire_what what, uint32_t a, uint64_t b, const char *text)
{
	struct wire w = { .what = what, .a = a, .b = b, .len = text ? (uint32_t)strlen(text) : 0 };

	if (client >= 0)
		(void)wire_send(client, &w, text ? text : "", NULL, 0); /* who has gone need not know */
}

static void tell_error(int client, const struct cs_err *err)
{
	tell(client, WIRE_ERROR, err->code, 0, err->msg);
}

static void note(struct keeper *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct keeper *k, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tell(k->run.client, WIRE_NOTE, 0, 0, text);
}

/* ---- a step ---- */

/* A new layer over the last one, if something was written since. */
static int savepoint(struct keeper *k, struct cs_err *err)
{
	struct txn_savepoint sp;
	int r;

	if (k->left_running && sandbox_processes(k->box) > 0)
		return 0; /* `steps` says so */
	k->left_running = false;
	r = txn_savepoint(k->txn, k->layer, &sp, err);
	if (r < 0)
		return r;
	if (sp.mount)
		r = sandbox_push_layer(k->box, k->bind, sp.store, sp.lowers, sp.n_lowers, err);
	if (r == 0)
		k->layer = sp.layer;
	txn_savepoint_done(&sp);
	return r;
}

static int start_step(struct keeper *k, int client, const struct wire *w, const struct wire_words *words, const int *fds, struct cs_err *err)
{
	struct sandbox_command c = { .argv = words->argv, .env = words->env, .cwd = words->cwd && *words->cwd ? words->cwd : k->spec.spec.cwd,
				     .path = k->spec.spec.path, .stdio = { fds[0], fds[1], fds[2] }, .tty = w->a & WIRE_TTY };
	uint64_t began = now_us(), limit = w->b ? w->b : k->o->profile->limits.wall;
	int r = savepoint(k, err);

	if (r < 0)
		return r;
	k->run = (struct step_run){ .client = client, .layer = k->layer, .background = w->a & WIRE_BACKGROUND, .started_s = (uint64_t)time(NULL),
				    .started_us = began, .deadline = limit ? began / 1000 + limit : 0 };
	r = sandbox_exec(k->box, &c, &k->run.pid, err);
	if (r < 0)
		return r;
	k->run.active = true;
	k->next_sample = began / 1000 + SAMPLE_MS;
	k->run.command = session_command_line(words->argv);
	tell(client, WIRE_STARTED, 0, 0, NULL);
	return 0;
}

static void name_left(const char *comm, pid_t pid, void *arg)
{
	char shown[64];

	note(arg, "ended with its step: process %d, '%s' (--background leaves such running)", (int)pid, cs_escape_to(shown, sizeof shown, comm));
}

static int exit_of(const struct step_run *s, int status)
{
	if (s->timed_out)
		return 124;
	if (s->limit)
		return 137;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void end_step(struct keeper *k, int status)
{
	struct step_run *s = &k->run;
	struct txn_step done = { .layer = s->layer, .started = s->started_s, .status = status, .command = s->command };
	struct cs_err err = { 0 };

	s->active = false;
	if (sandbox_processes(k->box) == 0)
		k->left_running = false;
	else if (s->background || k->left_running) /* what an earlier step left must stay, and nobody can tell them apart */
		k->left_running = true;
	else if (sandbox_sweep(k->box, name_left, k) < 0)
		note(k, "what the step left running could not be ended");
	if (s->timed_out)
		note(k, "timed out: everything the step had started was ended (--timeout allows more)");
	if (s->limit)
		note(k, "%s limit reached: everything the step had started was ended", s->limit);
	done.background = s->background && k->left_running;
	done.us = now_us() - s->started_us;
	if (txn_step_record(k->txn, &done, &err) < 0)
		note(k, "%s", err.msg);
	tell(s->client, WIRE_EXIT, (uint32_t)exit_of(s, status), done.n, NULL);
	free(s->command);
	s->command = NULL;
	/* While whoever waits reads the result: the next step finds its savepoint made.  If it cannot be
	 * made now, that step tries again and says why. */
	if (k->left_running)
		return;
	(void)sandbox_clear(k->box); /* also what was being born while they were counted */
	(void)savepoint(k, &err);
	sandbox_ready(k->box);
}

static void take_ended(struct keeper *k)
{
	pid_t pid;
	int status;

	while (sandbox_take_ended(k->box, &pid, &status))
		if (k->run.active && pid == k->run.pid)
			end_step(k, status);
}

/* Everything in there goes; the step's own end comes as an event. */
static void cut_step(struct keeper *k)
{
	(void)sandbox_sweep(k->box, NULL, NULL);
	take_ended(k);
}

/* ---- requests ---- */

static int check_idle(struct keeper *k, struct cs_err *err)
{
	if (k->run.active)
		return cs_fail(err, CS_E_CONFLICT, 0, "a step runs: '%.200s'", k->run.command);
	return 0;
}

static int check_quiet(struct keeper *k, struct cs_err *err)
{
	size_t n = sandbox_processes(k->box);
	int r = check_idle(k, err);

	if (r == 0 && n)
		r = cs_fail(err, CS_E_CONFLICT, 0, "%zu %s still there: end %s first", n, n == 1 ? "process that a step left running is" : "processes that a step left running are", n == 1 ? "it" : "them");
	return r;
}

static void on_exec(struct keeper *k, int client, const struct wire *w, struct cs_buf *payload, const int *fds, size_t n_fds)
{
	struct wire_words words = { 0 };
	struct cs_err err = { 0 };
	int r = check_idle(k, &err);

	if (r == 0 && n_fds != 3)
		r = cs_fail(&err, CS_E_INVALID, 0, "a request without descriptors");
	if (r == 0)
		r = wire_words(payload->data, payload->len, k->spec.spec.env, &words, &err);
	if (r == 0)
		r = start_step(k, client, w, &words, fds, &err);
	if (r < 0)
		tell_error(client, &err);
	wire_words_done(&words);
	take_ended(k); /* a quick one has ended by now, and what said so has been read already */
}

static void on_rollback(struct keeper *k, int client, uint32_t step)
{
	struct cs_err err = { 0 };
	int r = check_quiet(k, &err);

	if (r == 0) {
		r = txn_rollback_to(k->txn, step, &err);
		if (r == 0 || txn_layer(k->txn) != k->layer)
			k->layer = 0; /* what is mounted is gone, or part of it: also if that failed half-way */
	}
	if (r == 0)
		r = savepoint(k, &err);
	if (r < 0)
		tell_error(client, &err);
	else
		tell(client, WIRE_OK, 0, 0, NULL);
}

static int serve(struct keeper *k, struct cs_err *err);
static void drop_box(struct keeper *k, int client);

/* The copy gets a keeper of its own: a child of this one, with the same profile. */
static void on_fork(struct keeper *k, int client)
{
	struct cs_err err = { 0 };
	struct txn *copy = NULL;
	int r = check_quiet(k, &err);
	pid_t pid;

	if (r == 0)
		r = txn_fork(k->txn, &copy, &err);
	if (r < 0) {
		tell_error(client, &err);
		return;
	}
	pid = fork();
	if (pid == 0) {
		if (fork() != 0) /* nobody's child: it may end before this one does */
			_exit(0);
		drop_box(k, client);
		txn_close(k->txn); /* our copy of it: the parent holds the lock */
		k->txn = copy;
		k->ready = client;
		if (serve(k, &err) < 0)
			tell_error(client, &err);
		_exit(0);
	}
	if (pid < 0) {
		(void)cs_fail(&err, CS_E_SYSTEM, errno, "start a keeper");
		tell_error(client, &err);
		(void)txn_discard(copy, "fork-failed", NULL);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	txn_close(copy); /* the child holds the lock now */
}

static void on_client(struct keeper *k, int slot)
{
	struct cs_buf payload CS_BUF_AUTO = CS_BUF(WIRE_MAX + 1);
	int fds[3] = { -1, -1, -1 }, client = k->clients[slot];
	size_t n = 3;
	struct wire w;

	if (wire_receive(client, &w, &payload, fds, &n) <= 0) {
		k->clients[slot] = -1;
		close(client);
		if (k->run.active && k->run.client == client) { /* nobody waits for it any more */
			k->run.client = -1;
			cut_step(k);
		}
	} else if (w.what == WIRE_EXEC) {
		on_exec(k, client, &w, &payload, fds, n);
	} else if (w.what == WIRE_SIGNAL && k->run.active && k->run.client == client) {
		sandbox_signal_command(k->box, k->run.pid, (int)w.a);
	} else if (w.what == WIRE_ROLLBACK) {
		on_rollback(k, client, w.a);
	} else if (w.what == WIRE_FORK) {
		on_fork(k, client);
	} else if (w.what == WIRE_END) {
		k->ending = true;
		k->end_client = client;
	}
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

static void on_connect(struct keeper *k)
{
	const struct timeval patience = { .tv_sec = 5 };
	int fd = accept4(k->listen, NULL, NULL, SOCK_CLOEXEC);
	struct cs_err err = { 0 };

	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	for (int i = 0; i < CLIENTS; i++)
		if (k->clients[i] < 0) {
			k->clients[i] = fd;
			return;
		}
	(void)cs_fail(&err, CS_E_LIMIT, 0, "too many clients of one session at once: at most %d", CLIENTS);
	tell_error(fd, &err);
	close(fd);
}

/* ---- limits and refusals ---- */

static void on_time(struct keeper *k)
{
	const struct profile_limits *l = &k->o->profile->limits;
	struct sandbox_usage u;
	const char *why = NULL;

	uint64_t now = now_us() / 1000;

	if ((!k->run.active && !k->left_running) || now < k->next_sample)
		return;
	k->next_sample = now + SAMPLE_MS;
	take_ended(k);
	if (k->run.active && k->run.deadline && now >= k->run.deadline) {
		k->run.deadline = 0;
		k->run.timed_out = true;
		cut_step(k);
		return;
	}
	sandbox_usage(k->box, &u);
	if (u.disk_limit && (u.disk_now + 65536 > u.disk_limit || (u.inodes_limit && u.inodes_now + 1 > u.inodes_limit)))
		why = "disk";
	if (l->cpu_time && u.cpu_ms >= l->cpu_time)
		why = "CPU time";
	if (why && k->run.active) {
		k->run.limit = why;
		cut_step(k);
	} else if (why) {
		(void)sandbox_sweep(k->box, NULL, NULL);
	}
}

static void take_refusal(struct keeper *k)
{
	struct sandbox_refusal f;
	char shown[128];

	if (sandbox_next_refusal(k->box, &f) && k->run.active && k->run.refusals++ < TOLD_REFUSALS)
		note(k, "refused: %s (by %s)%s%s", cs_escape_to(shown, sizeof shown, f.what), f.by, f.fix ? ": " : "", f.fix ? f.fix : "");
}

static void on_signal(struct keeper *k)
{
	struct signalfd_siginfo si;

	while (read(k->sigfd, &si, sizeof si) == sizeof si) {
		if (si.ssi_signo != SIGCHLD)
			k->ending = true;
	}
}

/* ---- the loop ---- */

static int timeout_of(const struct keeper *k)
{
	return k->run.active || k->left_running ? SAMPLE_MS : -1;
}

static bool loop_once(struct keeper *k)
{
	struct pollfd fds[6 + CLIENTS];
	int n;

	fds[0] = (struct pollfd){ .fd = sandbox_pidfd(k->box), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = sandbox_event_fd(k->box), .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = k->notifier_gone ? -1 : sandbox_refusal_fd(k->box), .events = POLLIN };
	fds[3] = (struct pollfd){ .fd = k->sigfd, .events = POLLIN };
	fds[4] = (struct pollfd){ .fd = k->listen, .events = POLLIN };
	for (int i = 0; i < CLIENTS; i++)
		fds[5 + i] = (struct pollfd){ .fd = k->clients[i], .events = POLLIN };
	fds[5 + CLIENTS] = (struct pollfd){ .fd = session_net_fd(k->net), .events = POLLIN };
	n = poll(fds, 6 + CLIENTS, timeout_of(k));
	if (n < 0 && errno != EINTR)
		return false;
	if (n > 0) {
		if (fds[0].revents & POLLIN)
			return false; /* all of it has ended */
		if (fds[2].revents & POLLIN)
			take_refusal(k);
		k->notifier_gone |= (fds[2].revents & POLLHUP) && !(fds[2].revents & POLLIN);
		if (fds[5 + CLIENTS].revents)
			session_net_handle(k->net);
		if (fds[1].revents) {
			session_net_take(k->net, k->box);
			take_ended(k);
		}
		if (fds[3].revents & POLLIN)
			on_signal(k);
		for (int i = 0; i < CLIENTS; i++)
			if (fds[5 + i].revents && k->clients[i] == fds[5 + i].fd && k->clients[i] >= 0)
				on_client(k, i);
		if (fds[4].revents & POLLIN)
			on_connect(k);
	}
	on_time(k);
	/* Whatever woke us: on_time() reads the same messages. */
	if (sandbox_take_stop(k->box) && k->run.active)
		tell(k->run.client, WIRE_STOPPED, 0, 0, NULL);
	return !k->ending;
}

/* ---- from start to end ---- */

static int listen_here(struct keeper *k, struct cs_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int r = session_socket_path(txn_about(k->txn)->id, k->socket_path, sizeof k->socket_path, err);

	if (r < 0)
		return r;
	if (strlen(k->socket_path) >= sizeof a.sun_path)
		return cs_fail(err, CS_E_LIMIT, 0, "'%s' is too long for a socket", k->socket_path);
	memcpy(a.sun_path, k->socket_path, strlen(k->socket_path) + 1);
	(void)unlink(k->socket_path); /* of a dead one of the same id */
	k->listen = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (k->listen < 0 || bind(k->listen, (struct sockaddr *)&a, sizeof a) < 0 || chmod(k->socket_path, 0600) < 0 || listen(k->listen, CLIENTS) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "listen at '%s'", k->socket_path);
	return 0;
}

static void record(const char *const *cgroups, size_t n, void *arg)
{
	struct keeper *k = arg;

	txn_settle(k->txn);
	k->record_fd = session_record(txn_about(k->txn)->id, k->o, k->spec.workspace, cgroups, n, k->record_path, sizeof k->record_path);
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int start_box(struct keeper *k, struct cs_err *err)
{
	static char *none[] = { NULL };
	struct txn_savepoint sp;
	int r = txn_savepoint(k->txn, /* mounted= */ 0, &sp, err);

	if (r < 0)
		return r;
	k->spec.layer->store = sp.store;
	k->spec.layer->lowers = sp.lowers;
	k->spec.layer->n_lowers = sp.n_lowers;
	k->spec.layer->redirect = false;
	k->layer = sp.layer;
	k->bind = (size_t)(k->spec.layer - k->spec.binds);
	k->spec.spec.id = txn_about(k->txn)->id;
	k->spec.spec.stem = true;
	k->spec.spec.argv = none;
	k->spec.spec.record = record;
	k->spec.spec.record_arg = k;
	r = session_net_open(k->o, k->rules, k->spec.spec.id, &k->spec, &k->net, err);
	if (r == 0)
		r = sandbox_start(&k->spec.spec, &k->box, err);
	if (r == 0)
		txn_started(k->txn, sandbox_pid(k->box));
	txn_savepoint_done(&sp);
	return r;
}

/* In a child that becomes another keeper: the sandbox is not its own. */
static void drop_box(struct keeper *k, int client)
{
	for (int i = 0; i < CLIENTS; i++) {
		if (k->clients[i] >= 0 && k->clients[i] != client)
			close(k->clients[i]); /* else who waits for the other one would not see its end */
		k->clients[i] = -1;
	}
	close(k->listen);
	if (k->record_fd >= 0)
		close(k->record_fd);
	k->record_fd = -1;
	cs_close_p(&k->rules);
	k->rules = session_net_forget(k->net);
	k->net = NULL;
	sandbox_forget(k->box);
	k->box = NULL;
	k->run = (struct step_run){ .client = -1 };
	k->left_running = k->ending = k->notifier_gone = false;
	k->end_client = -1;
}

/* One byte of a command proves that it stands; there is none to run, so look for a name that nobody has. */
static int prove(struct keeper *k, struct cs_err *err)
{
	char *argv[] = { (char *)(uintptr_t)"/", NULL };
	struct sandbox_command c = { .argv = argv, .env = k->spec.spec.env, .cwd = k->spec.spec.cwd, .path = "/", .stdio = { 0, 0, 0 } };
	struct cs_err probe = { 0 };
	pid_t pid;
	int r = sandbox_exec(k->box, &c, &pid, &probe);

	if (r == -CS_E_NOEXEC || r == -CS_E_NOCMD)
		return 0;
	*err = probe;
	return r < 0 ? r : cs_fail(err, CS_E_SYSTEM, 0, "the sandbox does not stand");
}

static void tell_ready(struct keeper *k)
{
	tell(k->ready, WIRE_OK, 0, 0, txn_about(k->txn)->id);
	close(k->ready);
	k->ready = -1;
}

/* To whoever ends the session: each refusal, with what would allow it. */
static void tell_network(struct keeper *k, struct session_network *n)
{
	char text[700];

	for (size_t i = 0; i < n->n_told; i++) {
		const struct egress_told *t = &n->told[i];

		if (t->kind == EGRESS_REACHED)
			continue;
		snprintf(text, sizeof text, "refused: %s %s (by network, %u times): %s%s%s", egress_kind_name((enum egress_kind)t->kind), t->what, t->count,
			 t->reason, t->fix[0] ? "; " : "", t->fix);
		tell(k->end_client, WIRE_NOTE, 0, 0, text);
	}
	if (n->trouble[0])
		tell(k->end_client, WIRE_NOTE, 0, 0, n->trouble);
	free(n->told);
	n->told = NULL;
}

static void finish(struct keeper *k)
{
	struct cs_err err = { 0 };
	struct session_network network = { 0 };
	struct sandbox_exit end;
	bool empty = false;
	int r;

	if (k->run.active) {
		note(k, "the session ends");
		k->run.active = false;
	}
	sandbox_kill(k->box);
	sandbox_wait(k->box, &end);
	session_net_end(k->net, /* ran= */ true, &network);
	tell_network(k, &network);
	r = txn_flatten(k->txn, &err); /* if it fails, the next command tries again */
	if (r == 0) {
		empty = txn_is_empty(k->txn);
		r = empty ? txn_discard(k->txn, "empty", &err) : txn_keep(k->txn, NULL, &err);
	}
	txn_close(k->txn); /* whoever is told may take it up at once */
	(void)unlink(k->socket_path);
	if (k->record_fd >= 0) {
		if (sandbox_cleared(k->box))
			(void)unlink(k->record_path); /* else `caisson gc` takes it */
		close(k->record_fd);
	}
	if (r < 0)
		tell_error(k->end_client, &err);
	else
		tell(k->end_client, WIRE_OK, 0, k->o->profile->commit, empty ? "empty" : "pending");
	sandbox_free(k->box);
}

static int serve(struct keeper *k, struct cs_err *err)
{
	int r = listen_here(k, err);

	if (r == 0)
		r = start_box(k, err);
	if (r == 0)
		r = prove(k, err);
	if (r < 0) {
		struct session_network network = { 0 };

		session_net_end(k->net, /* ran= */ false, &network);
		free(network.told);
		sandbox_free(k->box);
		if (k->record_fd >= 0)
			(void)unlink(k->record_path);
		(void)unlink(k->socket_path);
		(void)txn_discard(k->txn, "not-started", NULL);
		return r;
	}
	tell_ready(k);
	while (loop_once(k))
		;
	finish(k);
	return 0;
}

static int begin_txn(struct keeper *k, struct cs_err *err)
{
	int r;

	if (!k->spec.layer)
		return cs_fail(err, CS_E_INVALID, 0, "a session needs a workspace whose changes are a transaction (workspace: layer)");
	r = session_txn_begin(k->o, &k->spec, true, &k->txn, err);
	if (r == 0 && txn_needs_import(k->txn)) {
		(void)txn_discard(k->txn, "empty", NULL);
		r = cs_fail(err, CS_E_UNSUPPORTED, 0, "the workspace is the root of a mount: no layer can be kept beside it; begin in a directory of it");
	}
	return r;
}

static _Noreturn void keep(const struct session_opts *o, int ready)
{
	static struct keeper k;
	struct cs_err err = { 0 };
	int r, null;

	k = (struct keeper){ .o = o, .rules = -1, .listen = -1, .ready = ready, .record_fd = -1, .end_client = -1, .run = { .client = -1 } };
	for (int i = 0; i < CLIENTS; i++)
		k.clients[i] = -1;
	(void)setsid();
	/* Whoever waits for the end of a pipe or a lock of the caller's does not wait for the session. */
	if (ready > 3)
		(void)close_range(3, (unsigned)ready - 1, 0);
	(void)close_range((unsigned)ready + 1, ~0u, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		(void)dup2(null, fd);
	k.sigfd = open_signals();
	r = session_spec_make(o, &k.spec, &err);
	if (r == 0)
		r = begin_txn(&k, &err);
	if (r == 0)
		r = serve(&k, &err);
	if (r < 0)
		tell_error(ready, &err);
	_exit(r < 0 ? 1 : 0);
}

int session_begin(const struct session_opts *o, char ret_id[TXN_ID_MAX], struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(WIRE_MAX);
	struct wire w;
	size_t none = 0;
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make a socket pair");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		keep(o, pair[1]);
	}
	close(pair[1]);
	r = pid < 0 ? -1 : wire_receive(pair[0], &w, &text, NULL, &none);
	close(pair[0]);
	if (r <= 0)
		return cs_fail(err, CS_E_SYSTEM, pid < 0 ? errno : 0, "the session's keeper could not be started");
	if (w.what == WIRE_ERROR)
		return cs_fail(err, w.a && w.a < CS_CODE_MAX ? (enum cs_code)w.a : CS_E_SYSTEM, 0, "%s", cs_buf_text(&text));
	snprintf(ret_id, TXN_ID_MAX, "%s", cs_buf_text(&text));
	return 0;
}
