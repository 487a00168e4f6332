/* SPDX-License-Identifier: Apache-2.0 */
/* ids.c - the host ids a sandbox runs under.
 *
 * As root every sandbox gets two ids of its own: the program's and, one above,
 * process 1's.  They come from a region nobody hands out (above systemd's
 * container range, below the 31-bit limit), checked against /etc/subuid and
 * /etc/subgid.  A pair is held by a lock on one byte of one file: it cannot
 * outlive its owner, needs no clearing after a crash, and costs one fcntl.
 *
 * A sandbox that packages are installed in gets a block of 65,536 besides: its root is the program's
 * id of the pair, every other id inside is one of the block.  So whatever is given to
 * somebody inside belongs to nobody on the host.
 *
 * Rootless, or in a user namespace where the region is not mapped (some containers): the
 * caller's own id, which then is not the host's root either.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { IDS_EACH = 2 };

enum { IDS_FIRST = 0x70000000, IDS_PAIRS = 0x00100000 };

/* Above the pairs, below what systemd calls foreign (0x7ffe0000). */
enum { BLOCKS_FIRST = IDS_FIRST + IDS_PAIRS * IDS_EACH, BLOCKS = 0xf00 };

/* The end of the block that starts at id 0 in our own user namespace. */
static uint64_t mapped_from_zero(const char *map)
{
	char text[1024];
	unsigned long long in, out, count;
	char *line;

	if (sys_get(AT_FDCWD, map, text, sizeof text) < 0)
		return 0;
	for (line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (sscanf(line, "%llu %llu %llu", &in, &out, &count) == 3 && in == 0)
			return count;
	return 0;
}

/* Does a line "name:start:count" of a subid file touch the n ids from id on? */
static bool in_subid_file(const char *text, uint32_t id, uint32_t n)
{
	const char *line = text;

	while (line && *line) {
		const char *colon = strchr(line, ':');
		unsigned long long start, count;

		if (colon && sscanf(colon + 1, "%llu:%llu", &start, &count) == 2 && id + n > start &&
		    id < start + count)
			return true;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

static int open_lock(void)
{
	struct stat st;
	int fd;

	if (mkdir("/run/caisson", 0755) < 0 && errno != EEXIST)
		return -1;
	fd = open("/run/caisson/ids.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

/* A byte per pair; after those, one per block. */
static bool lock_byte(int fd, uint32_t n)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = n, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

static char subuid[16384], subgid[16384]; /* a page of stack is paid for, used or not */

static uint64_t mapped_ids(void)
{
	uint64_t uids = mapped_from_zero("/proc/self/uid_map"), gids = mapped_from_zero("/proc/self/gid_map");

	return uids < gids ? uids : gids;
}

static int pick_range(struct native_ids *ids)
{
	CS_FD int fd = -1;
	uint64_t top = mapped_ids();
	uint32_t start;

	if (top < (uint64_t)IDS_FIRST + (uint64_t)IDS_PAIRS * IDS_EACH)
		return -ERANGE;
	fd = open_lock();
	if (fd < 0)
		return -errno;
	if (sys_get(AT_FDCWD, "/etc/subuid", subuid, sizeof subuid) < 0)
		subuid[0] = 0;
	if (sys_get(AT_FDCWD, "/etc/subgid", subgid, sizeof subgid) < 0)
		subgid[0] = 0;
	/* Start at a place of our own, so that a thousand sandboxes do not try the same bytes. */
	start = (uint32_t)getpid() % IDS_PAIRS;
	for (uint32_t i = 0; i < IDS_PAIRS; i++) {
		uint32_t n = (start + i) % IDS_PAIRS, id = IDS_FIRST + n * IDS_EACH;

		if (in_subid_file(subuid, id, IDS_EACH) || in_subid_file(subgid, id, IDS_EACH) || !lock_byte(fd, n))
			continue;
		ids->uid = ids->gid = id;
		ids->lock_fd = CS_TAKE_FD(fd);
		ids->ranged = true;
		return 0;
	}
	return -EAGAIN;
}

/* After pick_range(), whose lock file and lists it uses. */
static void pick_block(struct native_ids *ids)
{
	uint32_t start = (uint32_t)getpid() % BLOCKS;

	if (mapped_ids() < (uint64_t)BLOCKS_FIRST + (uint64_t)BLOCKS * NATIVE_BLOCK)
		return;
	for (uint32_t i = 0; i < BLOCKS && !ids->wide; i++) {
		uint32_t n = (start + i) % BLOCKS, id = BLOCKS_FIRST + n * NATIVE_BLOCK;

		if (!in_subid_file(subuid, id, NATIVE_BLOCK) && !in_subid_file(subgid, id, NATIVE_BLOCK) &&
		    lock_byte(ids->lock_fd, IDS_PAIRS + n)) {
			ids->block = id;
			ids->wide = true;
		}
	}
}

/* Is our effective id the host's real root?  The kernel decides writes to
 * /proc/sys by exactly that, not by capability, so ask it there. */
static bool is_global_root(void)
{
	return faccessat(AT_FDCWD, "/proc/sys/kernel/core_pattern", W_OK, AT_EACCESS) == 0;
}

int native_ids_pick(struct native_ids *ids, bool root, bool block, struct cs_err *err)
{
	*ids = (struct native_ids){ .uid = geteuid(), .gid = getegid(), .root = root, .lock_fd = -1, .why = EPERM };
	if (ids->uid != 0) {
		ids->wide = block && native_subids_find(ids);
		return 0;
	}
	ids->why = -pick_range(ids);
	if (ids->ranged && block)
		pick_block(ids);
	if (ids->ranged)
		return 0;
	if (mapped_from_zero("/proc/self/uid_map") > 65536 || is_global_root())
		return ids->why == ERANGE
			       ? cs_fail(err, CS_E_DENIED, 0,
					 "this user namespace maps the host's root and no other id to run a sandbox under; "
					 "run as an ordinary user, or as root outside of it")
			       : cs_fail(err, CS_E_DENIED, ids->why,
					 "running as root, but no unprivileged id can be had (/run/caisson/ids.lock); "
					 "run as an ordinary user, or make /run writable");
	return 0;
}

void native_ids_done(struct native_ids *ids)
{
	if (ids->lock_fd >= 0)
		close(ids->lock_fd);
	ids->lock_fd = -1;
}

int native_write_maps(int proc_dir, const char *pid, unsigned inside_uid, unsigned outside_uid, unsigned inside_gid,
		      unsigned outside_gid)
{
	char path[64], text[64];

	snprintf(path, sizeof path, "%s/setgroups", pid);
	if (sys_put(proc_dir, path, "deny") < 0)
		return -1;
	snprintf(path, sizeof path, "%s/gid_map", pid);
	snprintf(text, sizeof text, "%u %u 1", inside_gid, outside_gid);
	if (sys_put(proc_dir, path, text) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/uid_map", pid);
	snprintf(text, sizeof text, "%u %u 1", inside_uid, outside_uid);
	return sys_put(proc_dir, path, text);
}

/* Shares our memory: no call here may touch errno, so it asks the kernel directly. */
static _Noreturn int idmap_holder(void *arg)
{
	(void)sys_raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
	if (sys_raw(SYS_getppid, 0, 0, 0) == (long)(intptr_t)arg) /* else the caller died before that line */
		for (;;)
			(void)sys_raw(SYS_rt_sigsuspend, (long)&(uint64_t){ 0 }, 8, 0);
	for (;;)
		(void)sys_raw(SYS_exit_group, 0, 0, 0);
}

/* A line for one id; with a block, one for each of the others. */
static const char *map_text(char text[64], unsigned inside, unsigned outside, bool wide, unsigned block)
{
	int n = snprintf(text, 64, "%u %u 1\n", inside, outside);

	if (wide)
		snprintf(text + n, 64 - (size_t)n, "1 %u %u\n", block + 1, NATIVE_BLOCK - 1u);
	return text;
}

int native_idmap_userns(const struct native_ids *ids, uid_t owner, gid_t group, bool system, struct native_holder *holder, struct cs_err *err)
{
	bool wide = system && ids->wide;
	char path[64], text[64];
	int fd = -1;

	/* A process whose only purpose is to be in the namespace until we hold it. */
	holder->pid = clone(idmap_holder, holder->stack + sizeof holder->stack, CLONE_VM | CLONE_NEWUSER | SIGCHLD, (void *)(intptr_t)getpid());
	if (holder->pid < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make a user namespace for the workspace's ids");
	snprintf(path, sizeof path, "/proc/%d/gid_map", (int)holder->pid);
	if (sys_put(AT_FDCWD, path, map_text(text, wide ? 0 : group, ids->gid, wide, ids->block)) == 0) {
		snprintf(path, sizeof path, "/proc/%d/uid_map", (int)holder->pid);
		if (sys_put(AT_FDCWD, path, map_text(text, wide ? 0 : owner, ids->uid, wide, ids->block)) == 0) {
			snprintf(path, sizeof path, "/proc/%d/ns/user", (int)holder->pid);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
	}
	if (fd < 0) {
		int saved = errno;

		native_idmap_reap(holder);
		return cs_fail(err, CS_E_SYSTEM, saved, "map the workspace's owner to the sandbox's user");
	}
	return fd;
}

void native_idmap_reap(struct native_holder *holder)
{
	if (holder->pid <= 0)
		return;
	kill(holder->pid, SIGKILL);
	while (waitpid(holder->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	holder->pid = 0;
}

/* ---- the program's user namespace, where it has a block ---- */

/* A process by its number in the /proc that we write through, which is not the one that we have for it. */
static int number_in(int proc_fd, int pidfd, char ret[16])
{
	char path[48], text[512], *at;

	snprintf(path, sizeof path, "self/fdinfo/%d", pidfd);
	if (sys_get(proc_fd, path, text, sizeof text) < 0 || !(at = strstr(text, "\nPid:\t")))
		return -1;
	return sscanf(at + 6, "%15[0-9]", ret) == 1 ? 0 : -1;
}

static int map_block(const struct native_plan *p, const char *pid)
{
	char path[64], text[64];

	snprintf(path, sizeof path, "%s/gid_map", pid);
	if (sys_put(p->proc_fd, path, map_text(text, 0, native_own_gid(p), true, p->ids.block)) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/uid_map", pid);
	if (sys_put(p->proc_fd, path, map_text(text, 0, native_own_uid(p), true, p->ids.block)) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/ns/user", pid);
	return openat(p->proc_fd, path, O_RDONLY | O_CLOEXEC);
}

/* More than one id can only be mapped by who has power over the namespace above, so not by who is in it. */
int native_program_userns(const struct native_plan *p)
{
	static struct native_holder h;
	CS_FD int pidfd = -1;
	char pid[16];
	int fd = -1, saved;

	/* What the namespace may hold in all, whichever of its ids, and we: it is born with the limit of who makes it. */
	if (native_limit_processes(p, 1) < 0)
		return -1;
	h.pid = clone(idmap_holder, h.stack + sizeof h.stack, CLONE_VM | CLONE_NEWUSER | CLONE_PIDFD | SIGCHLD, (void *)(intptr_t)getpid(), &pidfd);
	if (h.pid > 0 && number_in(p->proc_fd, pidfd, pid) == 0)
		fd = map_block(p, pid);
	saved = errno;
	if (h.pid > 0)
		(void)kill(h.pid, SIGKILL); /* not waited for: whoever ends here process 1 reaps */
	errno = saved;
	return fd;
}
