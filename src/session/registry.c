/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - which sandboxes run, known without a server.
 *
 * A record is a small text file of "key value" lines, each value escaped:
 *     supervisor 1234
 *     started 1763240000
 *     profile default
 *     workspace /home/ann/project
 *     command python3 agent.py
 *     cgroup /sys/fs/cgroup/memory/caisson-s-4k2q7x
 * Validity: the file counts as alive exactly while its supervisor holds an OFD
 * write lock on it.  Crash reasoning: the lock goes with the process whatever
 * ends it; the sandbox goes with the process too (PDEATHSIG, and its socket);
 * what stays is this file and empty control groups, and the next command
 * removes the groups first and the file last, so that nothing is forgotten.
 */
#include "session/session.h"

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
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KILL_PATIENCE_MS = 5000 };

int session_own_dir(const char *path, struct cs_err *err)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return cs_fail(err, CS_E_SYSTEM, errno, "make '%s'", path);
	if (lstat(path, &st) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "look at '%s'", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
		return cs_fail(err, CS_E_DENIED, 0, "'%s' is not a directory of yours alone; remove it", path);
	return 0;
}

int session_dir(char *ret, size_t size, struct cs_err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0 && access("/run", W_OK) == 0) {
		if (mkdir("/run/caisson", 0755) < 0 && errno != EEXIST)
			return cs_fail(err, CS_E_SYSTEM, errno, "make '/run/caisson'");
		snprintf(ret, size, "/run/caisson/run");
	} else if (runtime && *runtime == '/' && strlen(runtime) + 16 < size && access(runtime, W_OK) == 0) {
		snprintf(ret, size, "%s/caisson", runtime);
	} else {
		snprintf(ret, size, "/tmp/caisson-%u", (unsigned)geteuid());
	}
	return session_own_dir(ret, err);
}

void session_new_id(char ret[16])
{
	static const char letters[] = "abcdefghjkmnpqrstuvwxyz23456789";
	unsigned char raw[7];

	if (getrandom(raw, sizeof raw, 0) != sizeof raw)
		abort(); /* never fails for so few bytes once the kernel is up */
	memcpy(ret, "s-", 2);
	for (size_t i = 0; i < sizeof raw; i++)
		ret[2 + i] = letters[raw[i] % (sizeof letters - 1)];
	ret[2 + sizeof raw] = 0;
}

static bool lock(int fd, short type, bool test)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET };

	if (fcntl(fd, test ? F_OFD_GETLK : F_OFD_SETLK, &l) < 0)
		return false;
	return !test || l.l_type == F_UNLCK;
}

static void line(struct cs_buf *b, const char *key, const char *value)
{
	cs_buf_fmt(b, "%s ", key);
	cs_escape(b, value);
	cs_buf_char(b, '\n');
}

static void describe(struct cs_buf *b, const struct session_opts *o, const char *workspace, const char *const *cgroups, size_t n)
{
	struct cs_buf cmd CS_BUF_AUTO = CS_BUF(1024);

	for (char *const *a = o->argv; *a && !cmd.over; a++) {
		cs_buf_str(&cmd, a == o->argv ? "" : " ");
		cs_buf_str(&cmd, *a);
	}
	cs_buf_fmt(b, "supervisor %d\nstarted %lld\n", (int)getpid(), (long long)time(NULL));
	line(b, "profile", o->profile->name ? o->profile->name : "");
	line(b, "workspace", workspace ? workspace : "");
	line(b, "command", cs_buf_text(&cmd));
	for (size_t i = 0; i < n; i++)
		line(b, "cgroup", cgroups[i]);
}

int session_record(const char *id, const struct session_opts *o, const char *workspace, const char *const *cgroups,
		   size_t n_cgroups, char *ret_path, size_t size)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(16384);
	char dir[200], self[32];
	CS_FD int fd = -1;

	if (session_dir(dir, sizeof dir, NULL) < 0 || snprintf(ret_path, size, "%s/%s", dir, id) >= (int)size)
		return -1;
	/* It gets its name when it is locked and complete: a record that can be seen without a
	 * lock is a dead one, and somebody else's gc would take it. */
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || !lock(fd, F_WRLCK, false))
		return -1;
	describe(&text, o, workspace, cgroups, n_cgroups);
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	if (cs_write_all(fd, cs_buf_text(&text), text.len) < 0 || linkat(AT_FDCWD, self, AT_FDCWD, ret_path, AT_SYMLINK_FOLLOW) < 0)
		return -1;
	return CS_TAKE_FD(fd);
}

static void parse(struct session_entry *e, char *text)
{
	char *save = NULL;

	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char *v = strchr(l, ' ');

		if (!v)
			continue;
		*v++ = 0;
		if (!strcmp(l, "supervisor"))
			e->supervisor = (pid_t)strtol(v, NULL, 10);
		else if (!strcmp(l, "started"))
			e->started = strtoull(v, NULL, 10);
		else if (!strcmp(l, "profile"))
			snprintf(e->profile, sizeof e->profile, "%s", v);
		else if (!strcmp(l, "workspace"))
			snprintf(e->workspace, sizeof e->workspace, "%s", v);
		else if (!strcmp(l, "command"))
			snprintf(e->command, sizeof e->command, "%s", v);
		else if (!strcmp(l, "cgroup"))
			cs_strv_add(&e->cgroups, v);
	}
}

/* A run's, or a session's, which goes by its transaction's. */
static bool is_id(const char *name)
{
	return !strncmp(name, "s-", 2) || !strncmp(name, "t-", 2);
}

static int load(int dir, const char *name, struct session_entry *e)
{
	char text[16385];
	CS_FD int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	*e = (struct session_entry){ 0 };
	if (fd < 0 || strlen(name) >= sizeof e->id)
		return -1;
	snprintf(e->id, sizeof e->id, "%s", name);
	e->alive = !lock(fd, F_WRLCK, true);
	if (sys_get(dir, name, text, sizeof text) < 0)
		return -1;
	parse(e, text);
	return 0;
}

static int open_dir(struct cs_err *err)
{
	char path[200];
	int fd;

	if (session_dir(path, sizeof path, err) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		(void)cs_fail(err, CS_E_SYSTEM, errno, "open '%s'", path);
	return fd;
}

int session_list(session_visit visit, void *arg, struct cs_err *err)
{
	static struct sys_dir list;
	CS_FD int dir = open_dir(err);
	const struct dirent *e;

	if (dir < 0)
		return -CS_E_SYSTEM;
	sys_dir_start(&list, dir);
	while ((e = sys_dir_next(&list))) {
		struct session_entry entry;

		if (!is_id(e->d_name) || load(dir, e->d_name, &entry) < 0)
			continue;
		visit(&entry, arg);
		cs_strv_done(&entry.cgroups);
	}
	return 0;
}

int session_kill(const char *id, int sig, struct cs_err *err)
{
	CS_FD int dir = open_dir(err);
	struct session_entry entry;
	CS_FD int pidfd = -1;
	char shown[64];

	if (dir < 0)
		return -CS_E_SYSTEM;
	if (!is_id(id) || strchr(id, '/') || load(dir, id, &entry) < 0)
		return cs_fail(err, CS_E_NOT_FOUND, 0, "no sandbox '%s' runs here (`caisson ps` lists them)",
			       cs_escape_to(shown, sizeof shown, id));
	cs_strv_done(&entry.cgroups);
	pidfd = (int)syscall(SYS_pidfd_open, entry.supervisor, 0);
	/* Looked at again after the pidfd is held: a lock that is still there means the pid was not reused. */
	if (pidfd < 0 || load(dir, id, &entry) < 0 || !entry.alive) {
		cs_strv_done(&entry.cgroups);
		return cs_fail(err, CS_E_NOT_FOUND, 0, "sandbox '%s' has ended already", id);
	}
	cs_strv_done(&entry.cgroups);
	if (sys_pidfd_send_signal(pidfd, sig) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "signal sandbox '%s'", id);
	/* So that what follows finds its changes pending and its id free; a program may take its time, or not obey. */
	return poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, KILL_PATIENCE_MS) == 1;
}

/* Only ever what we make ourselves: a directory named for this id below the cgroup tree. */
static void remove_cgroup(const char *path, const char *id)
{
	const char *base = strrchr(path, '/');

	if (!strncmp(path, "/sys/fs/cgroup/", 15) && !strstr(path, "/../") && base && !strncmp(base, "/caisson-", 9) && !strcmp(base + 9, id))
		(void)rmdir(path); /* not empty: a process is still dying; the next command tries again */
}

static bool clear(int dir, const struct session_entry *e)
{
	char path[256];
	bool left = false;

	for (size_t i = 0; i < e->cgroups.n; i++) {
		remove_cgroup(e->cgroups.v[i], e->id);
		left |= access(e->cgroups.v[i], F_OK) == 0;
	}
	if (left || unlinkat(dir, e->id, 0) < 0)
		return false;
	if (session_socket_path(e->id, path, sizeof path, NULL) == 0)
		(void)unlink(path); /* of a keeper that was killed; a run has none */
	return true;
}

int session_gc(unsigned max, const char *own, struct cs_err *err)
{
	static struct sys_dir list;
	CS_FD int dir = open_dir(err);
	const struct dirent *e;
	unsigned seen = 0;
	int cleared = 0;

	if (dir < 0)
		return -CS_E_SYSTEM;
	sys_dir_start(&list, dir);
	while ((max == 0 || seen < max) && (e = sys_dir_next(&list))) {
		struct session_entry entry;

		if (!is_id(e->d_name) || (own && !strcmp(e->d_name, own)) || load(dir, e->d_name, &entry) < 0)
			continue;
		seen++;
		if (!entry.alive && clear(dir, &entry))
			cleared++;
		cs_strv_done(&entry.cgroups);
	}
	return cleared;
}
