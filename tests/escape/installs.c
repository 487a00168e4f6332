/* SPDX-License-Identifier: Apache-2.0 */
/* installs.c - `system: scratch`: as root the program is root among ids of its own, with capabilities over them.
 * What was shut by having neither must stay shut.  Rootless it has neither, and the same must hold. */
#include "escape.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRATCH "--profile", "@O/scratch.yaml"
#define POWER "root of its own ids"
#define HERE .flags = { SCRATCH }

/* By the filter; without it by the kernel; without Landlock, too. */
#define WALLS(name_, refused_, ...)                                                                                               \
	{ "G01", name_, POWER, { __VA_ARGS__ }, "EPERM ENOSYS EACCES ENOSPC EPROTONOSUPPORT", .how = BY_NS, HERE },                               \
	{ "G01", "without the filter " name_, POWER ", second wall", { __VA_ARGS__ }, refused_, .how = BY_NS, .with = "seccomp", HERE }, \
	{ "G01", "without filter and Landlock " name_, POWER ", third wall", { __VA_ARGS__ }, refused_, .how = BY_NS,             \
	  .with = "seccomp,landlock", HERE }

#define ON_INIT(word, ...)                                                                                                 \
	{ "G02", word " of process 1 is refused", POWER, { word, "1" }, "EPERM ENOSYS EACCES", .how = BY_NS, HERE,         \
	  .control = { __VA_ARGS__ } },                                                                                    \
	{ "G02", "without filter and Landlock " word " of process 1 is refused", POWER ", second wall", { word, "1" },     \
	  "EPERM EACCES ESRCH", .how = BY_NS, .with = "seccomp,landlock", HERE, .control = { __VA_ARGS__ } }

/* A directory that is written for real gets no set-id file, although layers may. */
#define SUID_ROW(name_, ...)                                                                                                       \
	{ .id = "G04", .name = name_, .class = "set-id files", .probe = { "suid", __VA_ARGS__ }, .refused = "EPERM ENOSYS STRIPPED", \
	  .flags = { SCRATCH, "--rw", "@S", "--cwd", "@S" }, .how = BY_OFF, .off = "seccomp", .flag = TOUCHES | NO_SUID }

static const struct row rows[] = {
	WALLS("no tmpfs is mounted", "EPERM EACCES", "mount", "tmpfs"),
	WALLS("no fresh /proc is mounted", "EPERM EACCES", "mount", "proc"),
	WALLS("the root is not remounted writable", "EPERM EACCES", "remount", "/"),
	{ "G01", "without filter and Landlock a mask over /proc is not unmounted", POWER, { "umount", "/proc/sys" }, "EPERM EINVAL", .how = BY_NS,
	  .with = "seccomp,landlock", HERE, .control = { "umount", "/proc" } },
	WALLS("no bind makes a second view", "EPERM EACCES", "bind", "/usr", "/tmp"),
	WALLS("chroot does not lead out", "EPERM ENOENT ENOTDIR EACCES", "chroot", "@O/secret"),
	WALLS("no new user namespace", "EPERM ENOSPC", "unshare", "user"),
	WALLS("no new mount namespace", "EPERM ENOSPC", "unshare", "mnt"),
	WALLS("no new network namespace", "EPERM ENOSPC", "unshare", "net"),
	WALLS("no user namespace by clone3", "EPERM ENOSPC", "clone3", "user"),
	WALLS("no raw socket", "EPERM EACCES", "socket", "2", "3", "1"),
	WALLS("no interface is made", "EPERM EACCES", "link-new", "dummy"),

	ON_INIT("ptrace", "trace-child"), ON_INIT("vm-read", "vm-read", "1"), ON_INIT("getfd", "getfd", "1"),
	{ "G02", "SIGKILL does not end process 1", POWER, { "signal", "1", "9" }, "ALIVE EPERM ESRCH", .how = BARE, .flag = TOUCHES, HERE,
	  .control = { "suicide-watch", "9" } },
	{ "G02", "without filter and Landlock SIGKILL does not end process 1", POWER ", second wall", { "signal", "1", "9" },
	  "ALIVE EPERM ESRCH", .how = BARE, .with = "seccomp,landlock", HERE, .control = { "suicide-watch", "9" } },
	{ "G02", "without Landlock a process of the host is not reached", POWER, { "kill0", "@I" }, "ESRCH EPERM", .how = BARE,
	  .with = "landlock,seccomp", HERE },
	{ "G02", "ids are not mapped anew", POWER, { "put", "/proc/self/uid_map", "0 0 1" }, "EPERM EACCES EROFS", .how = BARE, HERE,
	  .control = { "own-map" } },

	{ "G03", "no memory device is made", POWER, { "mknod", "c", "1", "1" }, "EPERM", .how = BARE, .flag = ROOT_ONLY, HERE },
	{ "G03", "no disk device is made in a system directory", POWER, { "mknod", "b", "254", "0", "/usr/local/disk" }, "EPERM", .how = BARE,
	  .flag = ROOT_ONLY, HERE, .control = { "mknod", "b", "254", "0" } },
	{ "G03", "without the filter no memory device is made", POWER ", second wall", { "mknod", "c", "1", "1" }, "EPERM EACCES", .how = BARE,
	  .with = "seccomp", .flag = ROOT_ONLY, HERE },
	{ "G03", "no whiteout is forged", POWER, { "mknod", "c", "0", "0" }, "EPERM", .how = BARE, HERE },
	{ "G03", "nothing is opened by handle", POWER, { "handle", "@W" }, "EPERM", .how = BARE, .flag = ROOT_ONLY, HERE },
	{ "G03", "no file capability is set", POWER, { "setcap", "@W/file" }, "EPERM", .how = BY_NS, HERE },

	SUID_ROW("chmod makes no set-uid file where it is written for real", "chmod", "@S/new"),
	SUID_ROW("fchmod makes no set-uid file where it is written for real", "fchmod", "@S/new"),
	SUID_ROW("fchmodat makes no set-gid file where it is written for real", "fchmodat", "@S/new", "sgid"),
	{ "G04", "nothing is created in a read-only tree", POWER, { "create", "@S/new", "x" }, "EROFS EACCES EPERM", .how = BY_FLAGS,
	  .flags = { SCRATCH, "--ro", "@S" }, .instead = { SCRATCH, "--rw", "@S" }, .flag = CHANGES },
	{ "G04", "nothing is created outside", POWER, { "create", "@O/new", "x" }, "ENOENT EROFS EACCES", .how = BY_FLAGS, HERE,
	  .instead = { SCRATCH, "--rw", "@S" }, .flag = CHANGES, .control = { "create", "@S/new", "x" } },

	{ "G05", "the host's password hashes are out of reach", POWER, { "read", "/etc/shadow" }, "EACCES ENOENT", .how = BARE,
	  .flag = ROOT_ONLY, HERE },
	{ "G05", "their backup is out of reach", POWER, { "read", "/etc/shadow-" }, "EACCES ENOENT", .how = BARE, .flag = ROOT_ONLY | MAY_LACK, HERE },
	{ "G05", "core_pattern is not writable", POWER, { "write", "/proc/sys/kernel/core_pattern" }, "EACCES EPERM EROFS ENOENT", .how = BARE,
	  .flag = ROOT_ONLY, HERE, .with = "seccomp,landlock" },
};

/* ---- files of the caller's that the sandbox's root does not own ---- */

/* In a directory that is written for real: another's file, which neither root's power over modes nor a change of
 * owner may reach. */
static void others_file(const char *ret[2], const struct place *p, const char *name)
{
	static char path[300];

	snprintf(path, sizeof path, "%s/%s", p->share, name);
	put_file(path, "ANOTHERS", 0600);
	if (chown(path, 4242, 4242) < 0)
		T_ABSENT("only root can give a file away");
	ret[0] = path;
}

static void others_inside(void)
{
	struct place *p = place_make();
	static struct t_result r;
	const char *file[2];

	others_file(file, p, "others");
	for (int i = 0; i < 2; i++) {
		run_in(p, &r, &(struct run){ .off = i ? "seccomp,landlock" : NULL, .flags = WORDLIST(SCRATCH, "--rw", "@S"),
					     .cmd = WORDLIST("@P", "append", "@S/others", "x") });
		must_refuse(&r, "EACCES EPERM EOVERFLOW", "another's file is written");
		run_in(p, &r, &(struct run){ .off = i ? "seccomp,landlock" : NULL, .flags = WORDLIST(SCRATCH, "--rw", "@S"),
					     .cmd = WORDLIST("@P", "chmod", "666", "@S/others") });
		must_refuse(&r, "EACCES EPERM EOVERFLOW", "another's file is opened to all");
	}
}

static void others_outside(void)
{
	struct place *p = place_make();
	static struct t_result r;
	const char *file[2];

	others_file(file, p, "others");
	t_run(&r, WORDLIST(p->probe, "append", file[0], "x"));
	must_work(&r, "root writes to another's file");
}

static const struct scene scenes[] = {
	{ "G06", "another's file is not written through the sandbox's root", POWER, others_inside, others_outside },
};

TEST_TABLE(installs)
{
	add_rows(rows, COUNT(rows));
	add_scenes(scenes, COUNT(scenes));
}
