/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - the side of a session that a person's command is. */
#include "session/session.h"

#include "base/cleanup.h"
#include "base/say.h"
#include "base/text.h"
#include "session/relay.h"
#include "session/wire.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

static int live_path(const char *id, const char *suffix, char *ret, size_t size, struct cs_err *err)
{
	char dir[200], live[208], shown[64];
	int r = session_dir(dir, sizeof dir, err);

	snprintf(live, sizeof live, "%s.live", dir);
	if (r == 0)
		r = session_own_dir(live, err); /* a stranger's could hold a stranger's keeper */
	if (r < 0)
		return r;
	if (!*id || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(id) || snprintf(ret, size, "%s/%s%s", live, id, suffix) >= (int)size)
		return cs_fail(err, CS_E_INVALID, 0, "'%s' is not the id of a sandbox or a session", cs_escape_to(shown, sizeof shown, id));
	return 0;
}

int session_socket_path(const char *id, char *ret, size_t size, struct cs_err *err)
{
	if (strncmp(id, "t-", 2) != 0)
		return cs_fail(err, CS_E_INVALID, 0, "'%s' is not the id of a session", id);
	return live_path(id, "", ret, size, err);
}

int session_net_path(const char *id, char *ret, size_t size, struct cs_err *err)
{
	return live_path(id, ".net", ret, size, err);
}

static int connect_keeper(const char *id, struct cs_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	CS_FD int fd = -1;
	int r = session_socket_path(id, a.sun_path, sizeof a.sun_path, err);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
		return CS_TAKE_FD(fd);
	if (errno == ENOENT || errno == ECONNREFUSED)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "no session %s is alive (`caisson ps` lists those that are, `caisson txn list --all` what they left)", id);
	return cs_fail(err, CS_E_SYSTEM, errno, "reach the keeper of %s", id);
}

bool session_is_live(const char *id)
{
	CS_FD int fd = connect_keeper(id, NULL);

	return fd >= 0;
}

static bool answers(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	CS_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof a.sun_path)
		return true;
	memcpy(a.sun_path, path, strlen(path) + 1);
	return connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
}

/* Sockets that nobody listens at; a young one may be about to. */
void session_clear_sockets(void)
{
	char dir[200], live[256], path[600];
	CS_DIR DIR *d = NULL;
	struct dirent *e;

	if (session_dir(dir, sizeof dir, NULL) < 0)
		return;
	snprintf(live, sizeof live, "%s.live", dir);
	d = opendir(live);
	while (d && (e = readdir(d))) {
		struct stat st;

		snprintf(path, sizeof path, "%s/%s", live, e->d_name);
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid() ||
		    st.st_mtime + 60 > time(NULL) || answers(path))
			continue;
		(void)unlinkat(dirfd(d), e->d_name, 0); /* if it stays, the next gc tries again */
	}
}

static int gone(const char *id, struct cs_err *err)
{
	return cs_fail(err, CS_E_SYSTEM, 0, "the session %s ended; what it wrote is pending (`caisson txn show %s`)", id, id);
}

/* What the keeper answers, for requests that are one question. */
static int ask(const char *id, const struct wire *w, struct cs_buf *ret, uint64_t *ret_b, struct cs_err *err)
{
	CS_FD int fd = connect_keeper(id, err);
	struct wire back;
	size_t none = 0;

	if (fd < 0)
		return fd;
	(void)wire_send(fd, w, NULL, NULL, 0); /* if it was turned away, there is a reason to read */
	for (;;) {
		cs_buf_done(ret);
		*ret = (struct cs_buf)CS_BUF(WIRE_MAX);
		if (wire_receive(fd, &back, ret, NULL, &none) <= 0)
			return gone(id, err);
		if (back.what == WIRE_NOTE)
			say_note("%s", cs_buf_text(ret));
		if (back.what == WIRE_ERROR)
			return cs_fail(err, back.a && back.a < CS_CODE_MAX ? (enum cs_code)back.a : CS_E_SYSTEM, 0, "%s", cs_buf_text(ret));
		if (back.what == WIRE_OK) {
			*ret_b = back.b;
			return 0;
		}
	}
}

int session_rollback(const char *id, uint32_t step, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(WIRE_MAX);
	uint64_t none;

	return ask(id, &(struct wire){ .what = WIRE_ROLLBACK, .a = step }, &text, &none, err);
}

int session_fork(const char *id, char ret_id[TXN_ID_MAX], struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(WIRE_MAX);
	uint64_t none;
	int r = ask(id, &(struct wire){ .what = WIRE_FORK }, &text, &none, err);

	if (r == 0)
		snprintf(ret_id, TXN_ID_MAX, "%s", cs_buf_text(&text));
	return r;
}

int session_end(const char *id, bool *ret_empty, enum profile_commit *ret_mode, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(WIRE_MAX);
	uint64_t mode = PROFILE_COMMIT_AUTO;
	int r = ask(id, &(struct wire){ .what = WIRE_END }, &text, &mode, err);

	*ret_empty = r == 0 && !strcmp(cs_buf_text(&text), "empty");
	*ret_mode = mode <= PROFILE_COMMIT_NEVER ? (enum profile_commit)mode : PROFILE_COMMIT_AUTO;
	return r;
}

/* ---- a step ---- */

struct step_client {
	int keeper, sigfd;
	struct relay *relay;
	bool tty, done;
	int exit_code;
	uint32_t step;
	const char *id;
	struct cs_err *err;
	int r;
};

static void put_words(struct cs_buf *b, const struct session_step *s)
{
	uint32_t argc = 0, envc = s->env ? (uint32_t)s->env->n : 0;

	while (s->argv[argc])
		argc++;
	cs_buf_add(b, &argc, sizeof argc);
	cs_buf_add(b, &envc, sizeof envc);
	for (uint32_t i = 0; i < argc; i++)
		cs_buf_add(b, s->argv[i], strlen(s->argv[i]) + 1);
	for (uint32_t i = 0; i < envc; i++)
		cs_buf_add(b, s->env->v[i], strlen(s->env->v[i]) + 1);
	cs_buf_add(b, s->cwd ? s->cwd : "", (s->cwd ? strlen(s->cwd) : 0) + 1);
}

static int send_step(struct step_client *c, const struct session_step *s, const int stdio[3], struct cs_err *err)
{
	struct cs_buf words CS_BUF_AUTO = CS_BUF(WIRE_MAX);
	struct wire w = { .what = WIRE_EXEC, .a = (c->tty ? WIRE_TTY : 0) | (s->background ? WIRE_BACKGROUND : 0), .b = s->timeout };

	put_words(&words, s);
	if (words.over)
		return cs_fail(err, CS_E_LIMIT, 0, "the command line is longer than %d bytes", WIRE_MAX);
	w.len = (uint32_t)words.len;
	(void)wire_send(c->keeper, &w, words.data, stdio, 3); /* if it was turned away, there is a reason to read */
	return 0;
}

static void suspend(struct step_client *c)
{
	sigset_t tstp;

	sigemptyset(&tstp);
	sigaddset(&tstp, SIGTSTP);
	relay_suspend(c->relay);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &tstp, NULL);
	sigprocmask(SIG_BLOCK, &tstp, NULL);
	relay_resume(c->relay);
	(void)wire_send(c->keeper, &(struct wire){ .what = WIRE_SIGNAL, .a = SIGCONT }, NULL, NULL, 0);
}

static void from_keeper(struct step_client *c)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(WIRE_MAX);
	struct wire w;
	size_t none = 0;

	if (wire_receive(c->keeper, &w, &text, NULL, &none) <= 0) {
		c->r = gone(c->id, c->err);
		c->done = true;
		return;
	}
	switch (w.what) {
	case WIRE_NOTE:
		say_note("%s", cs_buf_text(&text));
		break;
	case WIRE_STOPPED:
		suspend(c);
		break;
	case WIRE_EXIT:
		c->exit_code = (int)w.a;
		c->step = (uint32_t)w.b;
		c->done = true;
		break;
	case WIRE_ERROR:
		c->r = cs_fail(c->err, w.a && w.a < CS_CODE_MAX ? (enum cs_code)w.a : CS_E_SYSTEM, 0, "%s", cs_buf_text(&text));
		c->done = true;
		break;
	default:
		break;
	}
}

static void on_signal(struct step_client *c)
{
	struct signalfd_siginfo si;

	while (read(c->sigfd, &si, sizeof si) == sizeof si) {
		if (si.ssi_signo == SIGWINCH)
			relay_resize(c->relay);
		else if (si.ssi_signo != SIGCONT)
			(void)wire_send(c->keeper, &(struct wire){ .what = WIRE_SIGNAL, .a = si.ssi_signo }, NULL, NULL, 0);
	}
}

static void loop(struct step_client *c)
{
	struct pollfd fds[16];

	while (!c->done) {
		size_t n = 2;

		fds[0] = (struct pollfd){ .fd = c->keeper, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = c->sigfd, .events = POLLIN };
		n += relay_poll(c->relay, fds + 2, sizeof fds / sizeof *fds - 2);
		if (poll(fds, n, -1) < 0)
			continue;
		if (fds[1].revents & POLLIN)
			on_signal(c);
		relay_handle(c->relay, fds + 2, n - 2);
		if (fds[0].revents)
			from_keeper(c);
	}
	relay_drain(c->relay, 500);
}

int session_exec(const struct session_step *s, int *ret_exit, uint32_t *ret_step, struct cs_err *err)
{
	struct relay_opts ro = { .reopen_safe = sys_landlock_abi() > 0 };
	struct step_client c = { .sigfd = -1, .id = s->id, .err = err };
	int stdio[3], r;

	c.keeper = connect_keeper(s->id, err);
	if (c.keeper < 0)
		return c.keeper;
	r = relay_open(&ro, &c.relay, stdio, &c.tty, err);
	if (r == 0) {
		c.sigfd = session_open_signals();
		r = send_step(&c, s, stdio, err);
	}
	if (r == 0) {
		(void)signal(SIGPIPE, SIG_IGN);
		relay_started(c.relay);
		loop(&c);
		r = c.r;
	}
	relay_free(c.relay);
	close(c.keeper);
	if (c.sigfd >= 0)
		close(c.sigfd);
	*ret_exit = c.exit_code;
	*ret_step = c.step;
	return r;
}
