/* SPDX-License-Identifier: Apache-2.0 */
/* hook_log.c - a session's events between processes.
 *
 * A client starts a process for each event, so the gate's state is what it was told before: a file of the
 * gate's own lines (docs/gates.md), one per event, in the state directory's hooks/, mode 0600, appended to under
 * a lock and replayed each time.  The gate is deterministic, so that gives the same state.  A line that a crash
 * cut off is dropped.  Lines of type "approval" are for the hook alone. */
#include "cli/hook.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum {
	LOG_MAX = 64 << 20,
	OLD_SECONDS = 30 * 24 * 3600,
	LINE_ARENA = 64 << 20,
};

static const char *const names[] = { [HOOK_CLAUDE_CODE] = "claude-code", [HOOK_CODEX] = "codex", [HOOK_GENERIC] = "generic" };

/* Sessions nobody has gone on with for a month. */
static void drop_old(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CS_DIR DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	time_t t = time(NULL);
	struct stat st;

	if (!d && fd >= 0)
		close(fd);
	for (const struct dirent *e; d && (e = readdir(d));)
		if (strstr(e->d_name, ".jsonl") && fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && t - st.st_mtime > OLD_SECONDS)
			(void)unlinkat(dir, e->d_name, 0);
}

static int lock(int fd)
{
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

static int open_file(int dir, struct hook_log *l, struct cs_err *err)
{
	struct stat st;

	l->fd = openat(dir, l->name, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (l->fd < 0 || fstat(l->fd, &st) < 0 || lock(l->fd) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "open the session's log 'hooks/%s'", l->name);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077 || st.st_nlink != 1)
		return cs_fail(err, CS_E_DENIED, 0, "the session's log 'hooks/%s' is not a file of yours alone: remove it", l->name);
	if (st.st_size == 0)
		drop_old(dir);
	return 0;
}

static int read_lines(struct hook_log *l, struct cs_err *err)
{
	const char *end;
	size_t whole;
	int r = cs_buf_read_fd(&l->text, l->fd, l->name, err);

	if (r < 0)
		return cs_wrap(err, r, "the session is too long, begin a new one");
	end = l->text.len ? memrchr(l->text.data, '\n', l->text.len) : NULL;
	whole = end ? (size_t)(end + 1 - l->text.data) : 0;
	if (whole == l->text.len)
		return 0;
	l->text.len = whole;
	if (ftruncate(l->fd, (off_t)whole) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "repair the session's log 'hooks/%s'", l->name);
	return 0;
}

int hook_log_open(enum hook_client c, const char *session, struct hook_log *ret, struct cs_err *err)
{
	CS_FREE char *state = cs_state_dir(), *path = state ? cs_printf("%s/hooks", state) : NULL;
	uint8_t hash[CS_SHA256_SIZE];
	char hex[CS_SHA256_HEX];
	CS_FD int dir = -1;
	int r;

	*ret = (struct hook_log){ .fd = -1, .text = CS_BUF(LOG_MAX) };
	if (!path)
		return cs_fail(err, CS_E_SYSTEM, 0, "there is no place for the session's log: set HOME, XDG_STATE_HOME or CAISSON_STATE");
	dir = cs_private_dir(path, err);
	if (dir < 0)
		return dir;
	cs_sha256(session, strlen(session), hash);
	snprintf(ret->name, sizeof ret->name, "%s-%.24s.jsonl", names[c], cs_sha256_hex(hash, hex));
	r = open_file(dir, ret, err);
	if (r >= 0)
		r = read_lines(ret, err);
	if (r < 0)
		hook_log_close(ret);
	return r;
}

void hook_log_close(struct hook_log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	cs_buf_done(&l->text);
}

int hook_log_add(struct hook_log *l, const char *line, size_t len, struct cs_err *err)
{
	if (l->text.len + len > LOG_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "the session has more than %d bytes of events: begin a new one", LOG_MAX);
	if (cs_write_all(l->fd, line, len) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "write the session's log 'hooks/%s'", l->name);
	cs_buf_add(&l->text, line, len);
	return 0;
}

static bool is_ours(const struct json *v)
{
	return json_str(json_get(v, "type")) && !strcmp(json_str(json_get(v, "type")), "approval");
}

int hook_log_replay(const struct hook_log *l, struct gate *g, hook_next next, hook_seen seen, void *arg, struct cs_err *err)
{
	CS_ARENA_AUTO struct cs_arena arena = CS_ARENA(LINE_ARENA);
	const char *p = cs_buf_text(&l->text), *end = p + l->text.len;

	for (const char *stop; p < end; p = stop + 1) {
		struct cs_buf answer CS_BUF_AUTO = CS_BUF(1 << 20);
		const struct json *v;
		int r;

		stop = memchr(p, '\n', (size_t)(end - p));
		if (!stop)
			break;
		cs_arena_reset(&arena);
		if (json_read(&arena, p, (size_t)(stop - p), NULL, &v, NULL) < 0)
			return cs_fail(err, CS_E_INVALID, 0, "the session's log 'hooks/%s' is damaged: begin a new session", l->name);
		r = next(v, arg, err);
		if (r < 0)
			return r;
		if (!is_ours(v))
			gate_line(g, GATE_HOST, p, (size_t)(stop - p), &answer);
		seen(v, cs_buf_text(&answer), answer.len, arg);
	}
	return 0;
}
