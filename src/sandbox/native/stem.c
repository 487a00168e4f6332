/* SPDX-License-Identifier: Apache-2.0 */
/* stem.c - a sandbox that waits for commands: what lives inside.
 *
 * Two processes beside process 1.  The *stem* is the parent of every command
 * and tells the caller of their ends.  The *nursery*, its child, has entered
 * the commands' Landlock domain and makes them, as children of the stem
 * (CLONE_PARENT).  So all commands share one domain and can signal each other,
 * and none of them can signal or trace the stem, which is in no domain: that
 * is what Landlock's signal scope does (ABI 6; before, a command that kills
 * the stem ends its sandbox).  A command can kill the nursery; another grows.
 *
 * Rejected: a domain for each command below that of the stem.  Then a command
 * could not end a server that an earlier one has started.
 *
 * A new overlay has a new root inode, which no rule of an older domain knows,
 * and a rule at its mount point does not count (the kernel skips mount points
 * when it walks up).  The stem holds the ruleset, adds a rule, and grows a
 * nursery again; a sweep before has left none, and no command.
 *
 * Neither process keeps anything open but its sockets, and both stand at `/`.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { NURSERY_FAILED = 3, RULES_ANEW = 32 };

/* A command's process leaves its stack without returning, and the next one gets the same. */
#ifdef CS_ASAN
void __asan_unpoison_memory_region(const volatile void *p, size_t n);
#define STACK_IS_FRESH(s) __asan_unpoison_memory_region((s), sizeof(s))
#else
#define STACK_IS_FRESH(s) ((void)0)
#endif

struct stem {
	struct native_plan *p;
	int ruleset;  /* -1: no Landlock */
	int ready;    /* to process 1, until the first nursery stands */
	int sigfd;
	pid_t nursery;
	int generation; /* of nurseries */
	unsigned pushed; /* layers, since the beginning */
};

static int fail(struct native_plan *p, const char *what)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "%s", what);
}

/* ---- the nursery ---- */

struct job {
	char **argv, **env;
	const char *cwd, *path;
	int stdio[3], sock;
	uint32_t sequence;
	bool tty;
	enum native_failed at;
	int err;
};

static int take_terminal(void)
{
	for (int i = 0; i < 3; i++)
		if (isatty(i))
			return ioctl(i, TIOCSCTTY, 0);
	return 0;
}

static void start_command(struct job *j)
{
	struct native_note begun = { .what = 'P', .a = getpid(), .sequence = j->sequence };
	sigset_t none;

	for (int i = 0; i < 3; i++)
		if (dup2(j->stdio[i], i) < 0)
			goto failed;
	if (j->tty ? setsid() < 0 || take_terminal() < 0 : setpgid(0, 0) < 0)
		goto failed;
	j->at = NATIVE_FAILED_CWD;
	if (chdir(j->cwd) < 0)
		goto failed;
	/* Once it runs it may kill the nursery, before that has told of it. */
	if (send(j->sock, &begun, sizeof begun, MSG_NOSIGNAL) < 0)
		goto failed;
	j->at = NATIVE_FAILED_EXEC;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	j->err = native_exec(j->argv, j->env, j->path);
	return;
failed:
	j->err = errno;
}

/* Shares the nursery's memory until exec. */
static _Noreturn int command(void *arg)
{
	start_command(arg);
	for (;;)
		(void)sys_raw(SYS_exit_group, 127, 0, 0);
}

/* The next string of the blob; NULL: there is none, or it has no end. */
static char *next_string(char **at, const char *end)
{
	char *s = *at, *nul = s < end ? memchr(s, 0, (size_t)(end - s)) : NULL;

	*at = nul ? nul + 1 : s;
	return nul ? s : NULL;
}

static bool fill(char **v, size_t n, char **at, const char *end)
{
	for (size_t i = 0; i < n; i++)
		if (!(v[i] = next_string(at, end)))
			return false;
	v[n] = NULL;
	return true;
}

static int run_job(int sock, const struct native_request *q, char *blob, const int *fds, struct native_note *reply)
{
	static char *words[NATIVE_WORDS_MAX + 2];
	static char stack[65536] __attribute__((aligned(16)));
	static struct job j;
	char *at = blob;
	const char *end = blob + q->size;

	j = (struct job){ .argv = words, .env = words + q->argc + 1, .stdio = { fds[0], fds[1], fds[2] }, .sock = sock,
			  .sequence = q->sequence, .tty = q->tty };
	if (!q->argc || q->argc > NATIVE_WORDS_MAX || q->envc > NATIVE_WORDS_MAX - q->argc || !fill(j.argv, q->argc, &at, end) ||
	    !fill(j.env, q->envc, &at, end) || !(j.cwd = next_string(&at, end)) || !(j.path = next_string(&at, end)))
		return E2BIG;
	STACK_IS_FRESH(stack);
	reply->a = clone(command, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, &j);
	if (reply->a < 0)
		return errno;
	reply->b = j.err ? (int)((unsigned)j.at << 16 | (unsigned)j.err) : 0;
	return 0;
}

/* A request's words: inside the message or, if they are many, in a memfd beside it. */
static int serve(struct stem *st)
{
	_Atomic uint64_t *taken = &st->p->report->taken;
	static char inline_blob[NATIVE_INLINE_MAX];
	struct native_request q = { 0 };
	struct native_note reply = { 0 };
	struct iovec iov[2] = { { &q, sizeof q }, { inline_blob, sizeof inline_blob } };
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(4)];
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control };
	char *blob = inline_blob;
	int fds[4], err = 0, sock = st->p->stem_exec;
	bool again;
	ssize_t got = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	size_t n = got < 0 ? 0 : sys_take_fds(&m, fds, 4);

	if (got <= 0)
		return got < 0 && errno == EINTR ? 0 : -1;
	if (n < 3 || (size_t)got < sizeof q || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || q.size > NATIVE_BLOB_MAX ||
	    (n == 3 && (size_t)got - sizeof q != q.size))
		err = EINVAL;
	again = !err && q.sequence <= (uint32_t)atomic_load(taken); /* sent twice, because a nursery died */
	if (!err && !again)
		atomic_store(taken, (uint64_t)st->generation << 32 | q.sequence);
	if (!err && !again && n == 4 && (blob = mmap(NULL, q.size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[3], 0)) == MAP_FAILED)
		err = errno;
	if (!err && !again)
		err = run_job(sock, &q, blob, fds, &reply);
	if (err)
		reply = (struct native_note){ .a = -1, .b = (int)((unsigned)NATIVE_FAILED_SETUP << 16 | (unsigned)err) };
	reply.what = 'X';
	reply.sequence = q.sequence;
	if (n == 4 && blob != inline_blob && blob != MAP_FAILED)
		munmap(blob, q.size);
	while (n)
		close(fds[--n]);
	return again || send(sock, &reply, sizeof reply, MSG_NOSIGNAL) == sizeof reply ? 0 : -1;
}

static _Noreturn void nursery(struct stem *st)
{
	struct native_plan *p = st->p;
	struct native_note hello = { .what = 'H', .a = st->generation };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || (st->ruleset >= 0 && sys_landlock_enter(st->ruleset) < 0)) {
		(void)fail(p, "Landlock: enter the ruleset");
		_exit(NURSERY_FAILED);
	}
	if (st->ruleset >= 0)
		native_active(p, PROT_LANDLOCK);
	close(p->stem_ctl);
	close(st->sigfd);
	if (st->ruleset >= 0)
		close(st->ruleset);
	(void)send(p->stem_exec, &hello, sizeof hello, MSG_NOSIGNAL);
	if (st->ready >= 0 && write(st->ready, "r", 1) != 1)
		_exit(NURSERY_FAILED);
	if (st->ready >= 0)
		close(st->ready);
	while (serve(st) == 0)
		;
	_exit(0);
}

/* ---- the stem ---- */

static void tell(struct stem *st, char what, int a, int b)
{
	struct native_note n = { .what = (uint32_t)what, .a = a, .b = b };

	if (send(st->p->stem_ctl, &n, sizeof n, MSG_NOSIGNAL) != sizeof n)
		_exit(125); /* the caller is gone */
}

static void grow_nursery(struct stem *st)
{
	st->generation++;
	st->nursery = fork();
	if (st->nursery == 0)
		nursery(st);
	if (st->nursery < 0)
		_exit(125); /* a nursery's place was kept free in every limit: something is wrong */
}

static void ended(struct stem *st, pid_t pid, int status)
{
	if (pid != st->nursery) {
		if (!WIFSTOPPED(status))
			tell(st, 'E', pid, status);
		return;
	}
	if (WIFSTOPPED(status)) { /* a command did that; stopped it would be of no use to anybody */
		(void)kill(pid, SIGKILL);
		return;
	}
	if (WIFEXITED(status)) /* on its own: it could not be set up, or the caller is gone */
		_exit(125);
	grow_nursery(st);
	tell(st, 'D', st->generation, 0);
}

static void reap(struct stem *st)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) > 0)
		ended(st, pid, status);
}

/* Everything in this process namespace but process 1 and us.  Who is forking at that moment does not
 * get away: the kernel looks for signals before it lets the child into the list. */
static void sweep(struct stem *st)
{
	int status;
	pid_t pid;

	(void)kill(-1, SIGKILL);
	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR)
		if (pid > 0 && pid != st->nursery)
			tell(st, 'E', pid, status);
	st->nursery = -1;
	tell(st, 'k', 0, 0);
}

/* Only to a command of ours that has not been reaped: no other process has its number. */
static void signal_command(pid_t pid, int sig)
{
	siginfo_t si;

	if (pid > 1 && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0)
		(void)kill(native_is_for_group((uint32_t)sig) ? -pid : pid, sig); /* may have ended */
}

/* A rule stays when its layer has gone, and entering copies them all: now and then, all anew. */
static int rules_for_layers(struct stem *st)
{
	struct native_plan *p = st->p;

	if (++st->pushed % RULES_ANEW == 0) {
		close(st->ruleset);
		return native_payload_ruleset(p, &st->ruleset);
	}
	for (size_t i = 0; i < p->spec->n_binds; i++)
		if (p->binds[i]->kind == SANDBOX_LAYER &&
		    native_allow(p, st->ruleset, native_target(p->binds[i]), sys_landlock_fs_all(p->landlock_abi)) < 0)
			return -1;
	return 0;
}

static void renew(struct stem *st, bool pushed)
{
	if (pushed && st->ruleset >= 0 && rules_for_layers(st) < 0)
		_exit(125);
	grow_nursery(st);
	tell(st, 'n', st->generation, 0);
}

static void obey(struct stem *st)
{
	struct native_note n;
	ssize_t got = recv(st->p->stem_ctl, &n, sizeof n, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != sizeof n)
		_exit(0);
	switch (n.what) {
	case 'S':
		signal_command(n.a, n.b);
		break;
	case 'K':
		sweep(st);
		break;
	case 'N':
		renew(st, n.a);
		break;
	default:
		_exit(125);
	}
}

static _Noreturn void watch(struct stem *st)
{
	struct pollfd fds[2] = { { .fd = st->p->stem_ctl, .events = POLLIN }, { .fd = st->sigfd, .events = POLLIN } };
	struct signalfd_siginfo si;

	grow_nursery(st);
	tell(st, 'R', st->generation, 0);
	close(st->ready);
	st->ready = -1;
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			_exit(125);
		while (read(st->sigfd, &si, sizeof si) == sizeof si)
			;
		reap(st);
		if (fds[0].revents)
			obey(st);
	}
}

/* ---- becoming it ---- */

static int own_descriptors(struct stem *st)
{
	struct native_plan *p = st->p;
	CS_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int keep[] = { 0, 1, 2, p->stem_ctl, p->stem_exec, st->ready, st->sigfd, st->ruleset };

	for (int i = 0; i < 3; i++)
		if (null < 0 || dup2(null, i) < 0)
			return fail(p, "open /dev/null");
	if (null < 3)
		(void)CS_TAKE_FD(null);
	if (native_close_but(keep, sizeof keep / sizeof *keep) < 0)
		return fail(p, "close inherited descriptors");
	(void)CS_TAKE_FD(null);
	native_active(p, PROT_FDS);
	return 0;
}

static void default_signals(void)
{
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL); /* fails for the two that cannot be otherwise */
}

static int become_stem(struct stem *st)
{
	struct native_plan *p = st->p;
	sigset_t child;

	if (native_payload_userns(p) < 0)
		return -1;
	native_step(p, STEP_USERNS);
	if (native_rlimits(p) < 0)
		return fail(p, "set resource limits");
	if (native_on(p, PROT_NOCORE))
		native_active(p, PROT_NOCORE);
	umask(p->umask);
	default_signals();
	if (native_payload_give_up(p) < 0 || native_payload_ruleset(p, &st->ruleset) < 0)
		return -1;
	native_step(p, STEP_LANDLOCK);
	if (native_wipe_strings(p) < 0)
		return fail(p, "wipe the command line and environment");
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	st->sigfd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK); /* all signals are blocked */
	if (st->sigfd < 0)
		return fail(p, "signalfd");
	if (native_payload_seccomp(p) < 0)
		return -1;
	native_step(p, STEP_SECCOMP);
	return own_descriptors(st);
}

int native_spawn_stem(struct native_plan *p, pid_t *ret)
{
	struct clone_args a = { .exit_signal = SIGCHLD };
	struct stem st = { .p = p, .ruleset = -1, .nursery = -1 };
	int ready[2];
	char c;

	if (native_on(p, PROT_USERNS) && p->program_userns < 0)
		a.flags = CLONE_NEWUSER;
	if (pipe2(ready, O_CLOEXEC) < 0)
		return fail(p, "make a pipe");
	*ret = sys_clone3(&a);
	if (*ret == 0) {
		native_step(p, STEP_FORK);
		st.ready = ready[1];
		if (become_stem(&st) == 0)
			watch(&st);
		atomic_store(&p->report->state, NATIVE_FAILED);
		_exit(125);
	}
	close(ready[1]);
	if (*ret < 0)
		return fail(p, "make the stem's process");
	if (read(ready[0], &c, 1) != 1)
		atomic_store(&p->report->state, NATIVE_FAILED); /* the error is there, or it was killed */
	close(ready[0]);
	return 0;
}
