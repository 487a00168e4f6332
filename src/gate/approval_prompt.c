/* SPDX-License-Identifier: Apache-2.0 */
/* approval_prompt.c - who answers: a person at a terminal, or a program of theirs. */
#include "gate/approval.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

static uint64_t monotonic_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int left_ms(uint64_t end)
{
	uint64_t t = monotonic_ms();

	return t >= end ? 0 : end - t > 1000000 ? 1000000 : (int)(end - t);
}

/* Readable before the time is over? */
static bool wait_for(int fd, short events, uint64_t end)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n;

	do
		n = poll(&p, 1, left_ms(end));
	while (n < 0 && errno == EINTR);
	return n > 0;
}

/* ---- a person ---- */

/* A line as it was typed; a longer one than fits, or the end, is no answer. */
static bool read_line(int tty, char *line, size_t size, uint64_t end)
{
	size_t n = 0;

	while (n + 1 < size && wait_for(tty, POLLIN, end)) {
		ssize_t got = read(tty, line + n, size - 1 - n);

		if (got <= 0)
			return false;
		n += (size_t)got;
		line[n] = 0;
		if (line[n - 1] == '\n') {
			line[n - 1] = 0;
			return !memchr(line, '\n', n - 1);
		}
	}
	return false;
}

static enum approval_reply meaning(const char *line)
{
	if (!strcmp(line, "y") || !strcmp(line, "yes"))
		return APPROVAL_REPLY_ALLOW;
	if (!strcmp(line, "always"))
		return APPROVAL_REPLY_ALWAYS;
	return APPROVAL_REPLY_DENY;
}

enum approval_reply approval_prompt(const struct approval *a, uint64_t timeout_ms)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(APPROVAL_PROMPT_MAX);
	uint64_t end = monotonic_ms() + timeout_ms;
	CS_FD int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	char line[64];

	if (tty < 0)
		return APPROVAL_NO_REPLY;
	cs_buf_str(&text, "\ncaisson: may this be done?\n\n");
	approval_show(a, &text);
	if (text.over) {
		static const char much[] = "\ncaisson: something is to be approved that is too long for a prompt: see `caisson approvals list`\n";

		(void)cs_write_all(tty, much, sizeof much - 1);
		return APPROVAL_NO_REPLY;
	}
	cs_buf_str(&text, "\nyes: this once; always: this very effect, until it is withdrawn; anything else: no > ");
	(void)tcflush(tty, TCIFLUSH);
	if (text.over || cs_write_all(tty, cs_buf_text(&text), text.len) < 0)
		return APPROVAL_NO_REPLY;
	if (!read_line(tty, line, sizeof line, end)) {
		(void)cs_write_all(tty, "\nno\n", 4);
		(void)tcflush(tty, TCIFLUSH);
		return APPROVAL_REPLY_DENY;
	}
	return meaning(line);
}

/* ---- a program ---- */

static void run_child(const char *const *argv, int in)
{
	sigset_t none;

	(void)setpgid(0, 0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	/* What it prints goes to standard error: ours may be the protocol's. */
	if (dup2(in, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(127);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* As much as it wants to read: one that answers without reading is right, too. */
static void feed(int fd, const char *data, size_t len, uint64_t end)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;

	(void)sigaction(SIGPIPE, &ignore, &before);
	while (len && wait_for(fd, POLLOUT, end)) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		data += n;
		len -= (size_t)n;
	}
	(void)sigaction(SIGPIPE, &before, NULL);
}

/* Its status, or -1 after the time is over: then it and what it started in its group are ended. */
static int end_of(pid_t pid, uint64_t end)
{
	CS_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	bool ended = fd >= 0 && wait_for(fd, POLLIN, end);
	int status = -1;

	if (!ended)
		(void)kill(-pid, SIGKILL);
	if (!ended)
		(void)kill(pid, SIGKILL); /* before it had a group of its own */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum approval_reply approval_hook(const char *const *argv, const struct approval *a, uint64_t timeout_ms, struct cs_err *why)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(4 << 20);
	uint64_t end = monotonic_ms() + timeout_ms;
	char shown[160];
	int pipes[2], status;
	pid_t pid;

	cs_escape_to(shown, sizeof shown, argv[0]);
	approval_write(a, &text);
	cs_buf_char(&text, '\n');
	if (text.over || pipe2(pipes, O_CLOEXEC) < 0)
		return (void)cs_fail(why, CS_E_SYSTEM, text.over ? 0 : errno, "ask '%s'", shown), APPROVAL_NO_REPLY;
	pid = fork();
	if (pid == 0)
		run_child(argv, pipes[0]);
	close(pipes[0]);
	if (pid < 0) {
		close(pipes[1]);
		return (void)cs_fail(why, CS_E_SYSTEM, errno, "start '%s'", shown), APPROVAL_NO_REPLY;
	}
	(void)fcntl(pipes[1], F_SETFL, O_NONBLOCK);
	feed(pipes[1], cs_buf_text(&text), text.len, end);
	close(pipes[1]);
	status = end_of(pid, end);
	if (status == 0)
		return APPROVAL_REPLY_ALLOW;
	if (status == 1)
		return APPROVAL_REPLY_DENY;
	(void)cs_fail(why, status == 127 ? CS_E_NOCMD : CS_E_SYSTEM, 0, status == 127 ? "the approver '%s' could not be started" :
		      status < 0 ? "the approver '%s' did not answer in time, or was killed" : "the approver '%s' gave no answer: 0 allows, 1 denies", shown);
	return APPROVAL_NO_REPLY;
}
