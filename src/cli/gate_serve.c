/* SPDX-License-Identifier: Apache-2.0 */
/* gate_serve.c - caisson gate --socket: many sessions, two doors.
 *
 * PATH is the host's door: a connection is a session, and its first answer is {"session":"TOKEN"}.
 * PATH.agent is the agent's: its first line is {"session":"TOKEN"}, and from then on plans and calls
 * can be asked there, and nothing else.  Each is answered on its own connection; the host gets a copy
 * of what the agent asked and was told, {"agent":EVENT,"answer":ANSWER}, for it is the host that acts.
 * A session ends with the host's connection.
 */
#include "cli/gate.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/say.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	PEERS_MAX = 512,
	STRANGERS_MAX = 128, /* connections to the agent's door that have named no session: the oldest goes */
	AGENTS_MAX = 16,    /* of one session; none takes the others' places */
	READ_SIZE = 64 << 10,
};

struct session {
	char token[33];
	struct gate *g;
	struct gate_time t;
	unsigned peers; /* connections of it */
	struct peer *host;
};

struct peer {
	int fd;
	enum gate_side side;
	struct session *s; /* NULL: an agent that has not said which */
	struct cs_buf in, out;
	size_t sent;
	uint64_t number;   /* the earlier came, the smaller */
	bool gone;
};

struct server {
	struct gate_cli *cli;
	int door[2]; /* by enum gate_side */
	struct peer *peers[PEERS_MAX];
	size_t n;
	uint64_t came;
};

static volatile sig_atomic_t stopping;

static void on_signal(int sig)
{
	(void)sig;
	stopping = 1;
}

/* ---- doors ---- */

/* A socket that only we may connect to; one that nobody listens at any more is taken away. */
static int open_door(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct stat st;
	mode_t mask;
	int fd, k;

	if (strlen(path) >= sizeof a.sun_path) {
		say_error("--socket %s: the path is longer than %zu bytes", path, sizeof a.sun_path - 1);
		return -1;
	}
	memcpy(a.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
			say_error("--socket %s: another gate listens there", path);
			close(fd);
			return -1;
		}
		unlink(path);
	}
	mask = umask(0177);
	k = bind(fd, (struct sockaddr *)&a, sizeof a);
	umask(mask);
	if (k < 0 || listen(fd, 64) < 0) {
		say_error("--socket %s: %s", path, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

/* ---- peers ---- */

static void new_token(char token[33])
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof raw, 0) != sizeof raw)
		abort(); /* a token that can be guessed is a door that is open */
	for (int i = 0; i < 16; i++)
		snprintf(token + 2 * i, 3, "%02x", raw[i]);
}

static struct session *session_new(struct server *sv, struct peer *host)
{
	struct session *s = cs_new(struct session);
	struct gate_options o = { .role = sv->cli->role, .clock = gate_time_now, .clock_ctx = &s->t, .classify = gate_shell, .classify_ctx = &sv->cli->shell };

	new_token(s->token);
	s->g = gate_new(sv->cli->policy, &o);
	s->host = host;
	s->peers = 1;
	return s;
}

static void session_leave(struct session *s)
{
	if (--s->peers)
		return;
	gate_free(s->g);
	free(s);
}

static void peer_free(struct server *sv, size_t i);

/* Whoever only holds a connection keeps nobody else out. */
static void make_room(struct server *sv)
{
	size_t strangers = 0, oldest = 0;

	for (size_t i = 0; i < sv->n; i++)
		if (!sv->peers[i]->s && (!strangers++ || sv->peers[i]->number < sv->peers[oldest]->number))
			oldest = i;
	if (strangers >= STRANGERS_MAX)
		peer_free(sv, oldest);
}

static void peer_new(struct server *sv, enum gate_side side)
{
	int fd = accept4(sv->door[side], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct peer *p;

	if (fd < 0)
		return;
	if (side == GATE_AGENT)
		make_room(sv);
	if (sv->n == PEERS_MAX) {
		close(fd); /* full: no session is better than a slow one for all */
		return;
	}
	p = cs_new(struct peer);
	p->fd = fd;
	p->side = side;
	p->number = sv->came++;
	p->in.max = GATE_IN_MAX + 1;
	p->out.max = GATE_OUT_MAX;
	if (side == GATE_HOST) {
		p->s = session_new(sv, p);
		cs_buf_fmt(&p->out, "{\"session\":\"%s\"}\n", p->s->token);
	}
	sv->peers[sv->n++] = p;
}

static void peer_free(struct server *sv, size_t i)
{
	struct peer *p = sv->peers[i];

	if (p->s) {
		if (p->s->host == p) {
			p->s->host = NULL;
			/* Without a host nothing can be acted on. */
			for (size_t k = 0; k < sv->n; k++)
				if (sv->peers[k]->s == p->s)
					sv->peers[k]->gone = true;
		}
		session_leave(p->s);
	}
	close(p->fd);
	cs_buf_done(&p->in);
	cs_buf_done(&p->out);
	free(p);
	sv->peers[i] = sv->peers[--sv->n];
}

/* An agent's first line. */
static bool join(struct server *sv, struct peer *p, const char *line, size_t len)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)1 << 20);
	const struct json *v = NULL;
	const char *token;

	if (json_read(&a, line, len, NULL, &v, NULL) < 0)
		return false;
	token = json_str(json_get(v, "session"));
	for (size_t i = 0; token && i < sv->n; i++)
		if (sv->peers[i]->side == GATE_HOST && !strcmp(sv->peers[i]->s->token, token)) {
			if (sv->peers[i]->s->peers > AGENTS_MAX)
				return false;
			p->s = sv->peers[i]->s;
			p->s->peers++;
			return true;
		}
	return false;
}

static void copy_to_host(struct peer *p, const char *line, size_t len, const char *answer, size_t n)
{
	struct peer *host = p->s->host;

	if (!host || !n)
		return;
	cs_buf_str(&host->out, "{\"agent\":");
	cs_buf_add(&host->out, line, len);
	cs_buf_str(&host->out, ",\"answer\":");
	cs_buf_add(&host->out, answer, n - 1); /* without its newline */
	cs_buf_str(&host->out, "}\n");
}

static bool is_object(const char *line, size_t len)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)64 << 20);
	const struct json *v = NULL;

	return json_read(&a, line, len, NULL, &v, NULL) == 0 && v->type == JSON_OBJECT;
}

static void one_line(struct server *sv, struct peer *p, const char *line, size_t len)
{
	size_t before = p->out.len;

	if (!len)
		return;
	if (!p->s) {
		if (!join(sv, p, line, len)) {
			cs_buf_str(&p->out, "{\"verdict\":\"deny\",\"rule\":\"protocol\",\"reason\":\"there is no such session, or it has 16 agents\","
					    "\"fix\":\"send {\\\"session\\\":\\\"TOKEN\\\"} first\"}\n");
			p->gone = true;
		}
		return;
	}
	if (gate_serve_line(sv->cli, p->s->g, &p->s->t, p->s->token, p->side, line, len, &p->out) < 0) {
		p->gone = true;
		return;
	}
	if (p->side == GATE_AGENT && p->out.len > before && is_object(line, len))
		copy_to_host(p, line, len, p->out.data + before, p->out.len - before);
}

static void take_lines(struct server *sv, struct peer *p)
{
	char *at = p->in.data, *end = p->in.data + p->in.len, *eol;

	while (!p->gone && at < end && (eol = memchr(at, '\n', (size_t)(end - at)))) {
		one_line(sv, p, at, (size_t)(eol - at) - (eol > at && eol[-1] == '\r'));
		at = eol + 1;
	}
	memmove(p->in.data, at, (size_t)(end - at));
	p->in.len = (size_t)(end - at);
}

static void peer_read(struct server *sv, struct peer *p)
{
	char buf[READ_SIZE];
	ssize_t n = read(p->fd, buf, sizeof buf);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		p->gone = true;
		return;
	}
	cs_buf_add(&p->in, buf, (size_t)n);
	if (p->in.over)
		p->gone = true; /* a line without end */
	else
		take_lines(sv, p);
}

static void peer_write(struct peer *p)
{
	ssize_t n = send(p->fd, p->out.data + p->sent, p->out.len - p->sent, MSG_NOSIGNAL);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			p->gone = true;
		return;
	}
	p->sent += (size_t)n;
	if (p->sent == p->out.len)
		p->sent = p->out.len = 0;
}

/* ---- the loop ---- */

static void turn(struct server *sv)
{
	struct pollfd fds[PEERS_MAX + 2];
	size_t n = sv->n;

	fds[0] = (struct pollfd){ .fd = sv->door[GATE_HOST], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = sv->door[GATE_AGENT], .events = POLLIN };
	for (size_t i = 0; i < n; i++)
		fds[i + 2] = (struct pollfd){ .fd = sv->peers[i]->fd,
					      .events = (short)(POLLIN | (sv->peers[i]->out.len > sv->peers[i]->sent ? POLLOUT : 0)) };
	if (poll(fds, n + 2, -1) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (fds[i + 2].revents & (POLLIN | POLLHUP | POLLERR))
			peer_read(sv, sv->peers[i]);
		if (sv->peers[i]->out.len > sv->peers[i]->sent)
			peer_write(sv->peers[i]);
		if (sv->peers[i]->out.over)
			sv->peers[i]->gone = true; /* it does not read */
	}
	for (size_t i = sv->n; i-- > 0;)
		if (sv->peers[i]->gone) {
			peer_free(sv, i);
			i = sv->n; /* freeing a host marks others */
		}
	for (int side = 0; side < 2; side++)
		if (fds[side].revents & POLLIN)
			peer_new(sv, (enum gate_side)side);
}

int gate_serve(struct gate_cli *c)
{
	CS_FREE char *agent = cs_printf("%s.agent", c->socket);
	struct server *sv = cs_new(struct server);
	struct sigaction sa = { .sa_handler = on_signal };
	int code = 125;

	sv->cli = c;
	sv->door[GATE_HOST] = open_door(c->socket);
	sv->door[GATE_AGENT] = sv->door[GATE_HOST] >= 0 ? open_door(agent) : -1;
	if (sv->door[GATE_AGENT] >= 0) {
		sigaction(SIGINT, &sa, NULL);
		sigaction(SIGTERM, &sa, NULL);
		say_note("listening: the host's side at %s, the agent's at %s", c->socket, agent);
		while (!stopping)
			turn(sv);
		code = 0;
		unlink(agent);
	}
	if (sv->door[GATE_HOST] >= 0)
		unlink(c->socket);
	while (sv->n)
		peer_free(sv, sv->n - 1);
	free(sv);
	return code;
}
