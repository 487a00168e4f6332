/* SPDX-License-Identifier: Apache-2.0 */
/* filesystem.c - reading, changing and climbing out of the file tree. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define HIDDEN "host files"
#define READONLY "read-only tree"
#define SECRETS "secrets in the workspace"
#define SUID "set-id file for the host, CVE-2023-0386"
#define DEVICE "device node"
#define REMOUNT "CVE-2021-30465 and its kind: mounts are changed"
#define RO "EROFS EACCES"
#define RO_ROW(id_, name_, ...)                                                                     \
	{ .id = id_, .name = name_, .class = READONLY, .probe = { __VA_ARGS__ }, .refused = RO,     \
	  .flags = { "--ro", "@S" }, .how = BY_FLAGS, .instead = { "--rw", "@S" }, .flag = CHANGES }
#define SUID_ROW(id_, name_, ...)                                                                   \
	{ .id = id_, .name = name_, .class = SUID, .probe = { "suid", __VA_ARGS__ },                \
	  .refused = "EPERM ENOSYS STRIPPED", .flags = { "--rw", "@S", "--cwd", "@S" },             \
	  .how = BY_OFF, .off = "seccomp", .flag = TOUCHES | NO_SUID }

static const struct row rows[] = {
	{ "F01", "the host's password hashes are out of reach", HIDDEN, { "read", "/etc/shadow" }, "EACCES ENOENT", .how = BARE,
	  .flag = ROOT_ONLY },
	{ "F01", "a file outside of the workspace is not there", HIDDEN, { "read", "@O/secret" }, "ENOENT", .how = BARE },
	{ "F01", "the caller's home is not there", HIDDEN, { "read", "@H/.ssh/id_ed25519" }, "ENOENT", .how = BARE },
	{ "F01", "the host's state below /var is not there", HIDDEN, { "exists", "/var/lib/dpkg/status" }, "ENOENT", .how = BARE },
	{ "F01", "a directory that is hidden by flag is not there", HIDDEN, { "read", "@W/file" }, "ENOENT EACCES", .how = BY_FLAGS,
	  .flags = { "--hide", "@W/file" }, .instead = { "--hide", "@W/other" } },

	RO_ROW("F02", "a read-only tree is not opened for appending", "append", "@S/file", "x"),
	RO_ROW("F02", "nothing is created in a read-only tree", "create", "@S/new", "x"),
	RO_ROW("F02", "nothing is created below a read-only tree", "create", "@S/sub/new", "x"),
	RO_ROW("F02", "nothing is renamed in a read-only tree", "rename", "@S/file", "@S/file2"),
	RO_ROW("F02", "nothing is removed from a read-only tree", "unlink", "@S/file"),
	RO_ROW("F02", "no directory is made in a read-only tree", "mkdir", "@S/new"),
	RO_ROW("F02", "no symlink is made in a read-only tree", "symlink", "/etc", "@S/new"),
	RO_ROW("F02", "nothing is truncated in a read-only tree", "truncate", "@S/file"),
	RO_ROW("F02", "no mode is changed in a read-only tree", "chmod", "600", "@S/file"),
	RO_ROW("F02", "no time is changed in a read-only tree", "utimes", "@S/file"),
	RO_ROW("F02", "no attribute is set in a read-only tree", "setxattr", "@S/file"),
	{ "F02", "programs of the system are not writable", READONLY, { "write", "/usr/bin/env" }, RO, .how = BARE, .flag = ROOT_ONLY },
	{ "F02", "settings of the system are not writable", READONLY, { "write", "/etc/debian_version" }, RO, .how = BARE,
	  .flag = ROOT_ONLY | MAY_LACK },
	{ "F02", "a write to the workspace stays in its layer", READONLY, { "append", "@W/../shared/file", "x" },
	  "ENOENT EROFS EACCES", .how = BY_FLAGS, .instead = { "--rw", "@S" }, .flag = CHANGES },
	{ "F02", "Landlock alone keeps a read-only tree", READONLY ", second wall", { "append", "@S/file", "x" }, RO, .how = BY_FLAGS,
	  .with = "seccomp", .flags = { "--ro", "@S" }, .instead = { "--rw", "@S" }, .flag = CHANGES },

	{ "F03", "the root is not remounted writable", REMOUNT, { "remount", "/" }, "EPERM", .how = BY_NS },
	{ "F03", "a system directory is not remounted writable", REMOUNT, { "remount", "/usr" }, "EPERM", .how = BY_NS,
	  .control = { "remount", "/" } },
	{ "F03", "mount_setattr does not clear read-only", REMOUNT, { "remount-attr", "/" }, "EPERM", .how = BY_NS },
	{ "F03", "without the filter the root still is not remounted", REMOUNT ", second wall", { "remount", "/" }, "EPERM", .how = BY_NS,
	  .with = "seccomp" },
	{ "F03", "without filter and Landlock the root still is not remounted", REMOUNT ", third wall", { "remount", "/usr" },
	  "EPERM", .how = BY_NS, .with = "seccomp,landlock", .control = { "remount", "/" } },
	{ "F03", "a mask over /proc is not unmounted", REMOUNT, { "umount", "/proc/sys" }, "EPERM", .how = BY_NS,
	  .control = { "umount", "/proc" } },
	{ "F03", "without the filter a mask still is not unmounted", REMOUNT ", second wall", { "umount", "/proc/sys" },
	  "EPERM EINVAL EACCES", .how = BY_NS, .with = "seccomp,landlock", .control = { "umount", "/proc" } },
	{ "F03", "no bind makes a second view", REMOUNT, { "bind", "/usr", "/tmp" }, "EPERM", .how = BY_NS },

	{ "F06", "a hundred steps up from the workspace stay in the root", "climbing", { "dotdot", "@O/secret" }, "ENOENT", .how = BARE },
	{ "F08", "chroot does not lead out", "chroot and climb", { "chroot", "@O/secret" }, "EPERM", .how = BY_NS },
	{ "F08", "without the filter chroot still does not lead out", "chroot and climb, second wall", { "chroot", "@O/secret" },
	  "EPERM ENOENT", .how = BY_NS, .with = "seccomp" },
	{ "F09", "no hard link from a shared tree into the workspace", "hard links", { "link", "@S/file", "@W/second" },
	  "EXDEV EROFS EACCES EPERM", .how = BARE, .flags = { "--ro", "@S" } },
	{ "F09", "no hard link from the system into /tmp", "hard links", { "link", "/etc/debian_version", "/tmp/second" },
	  "EXDEV EROFS EACCES EPERM", .how = BARE, .control = { "link", "@S/file", "@W/second" } },

	SUID_ROW("F14", "chmod makes no set-uid file", "chmod", "@S/new"),
	SUID_ROW("F14", "fchmod makes no set-uid file", "fchmod", "@S/new"),
	SUID_ROW("F14", "fchmodat makes no set-uid file", "fchmodat", "@S/new"),
	SUID_ROW("F14", "fchmodat2 makes no set-uid file", "fchmodat2", "@S/new"),
	SUID_ROW("F14", "open makes no set-uid file", "open", "@S/new"),
	SUID_ROW("F14", "creat makes no set-uid file", "creat", "@S/new"),
	SUID_ROW("F14", "openat2 makes no set-uid file", "openat2", "@S/new"),
	SUID_ROW("F14", "mknod makes no set-uid file", "mknod", "@S/new"),
	SUID_ROW("F14", "an unnamed file gets no set-uid bit", "tmpfile", "@S/new"),
	SUID_ROW("F14", "high bits in a mode hide no set-uid bit", "high", "@S/new"),
	SUID_ROW("F14", "chmod makes no set-gid file", "chmod", "@S/new", "sgid"),
	SUID_ROW("F14", "open makes no set-gid file", "open", "@S/new", "sgid"),
	{ "F14", "no file capability is set", "file capabilities", { "setcap", "@S/file" }, "EPERM", .how = BY_NS,
	  .flags = { "--rw", "@S" }, .flag = TOUCHES },

	{ "F15", "no memory device is made", DEVICE, { "mknod", "c", "1", "1" }, "EPERM", .how = BARE, .flag = ROOT_ONLY },
	{ "F15", "no disk device is made", DEVICE, { "mknod", "b", "254", "0" }, "EPERM", .how = BARE, .flag = ROOT_ONLY },
	{ "F15", "no whiteout is forged", DEVICE ", overlayfs", { "mknod", "c", "0", "0" }, "EPERM", .how = BARE },
	{ "F15", "without the filter no memory device is made", DEVICE ", second wall", { "mknod", "c", "1", "1" },
	  "EPERM EACCES", .how = BARE, .with = "seccomp", .flag = ROOT_ONLY },
	{ "F15", "no device is made in a shared tree", DEVICE, { "mknod", "c", "1", "3", "@S/null" }, "EPERM", .how = BARE,
	  .flags = { "--rw", "@S" }, .flag = ROOT_ONLY },
	{ "F17", "nothing is opened by handle", "Shocker", { "handle", "@W" }, "EPERM", .how = BARE, .flag = ROOT_ONLY },
	{ "F17", "no handle is given out", "Shocker", { "name-to-handle", "/usr" }, "EPERM ENOSYS", .how = BY_OFF, .off = "seccomp" },

	{ "F19", "a secret of the workspace is not there", SECRETS, { "read", "@W/.env" }, "ENOENT EACCES", .how = BARE },
	{ "F19", "a key in a directory of the workspace is not there", SECRETS, { "read", "@W/conf/server.key" }, "ENOENT EACCES",
	  .how = BARE },
	{ "F19", "a hard link shows no secret", SECRETS, { "link", "@W/.env", "@W/copy" }, "ENOENT EACCES EPERM EXDEV", .how = BARE },
	{ "F19", "O_PATH shows no secret", SECRETS, { "opath", "@W/.env" }, "ENOENT EACCES", .how = BARE },
	{ "F19", "a renamed directory shows no secret", SECRETS, { "rename-parent", "@W/conf", "@W/conf2", "server.key" },
	  "ENOENT EACCES EXDEV EBUSY EPERM", .how = BARE },
	{ "F19", "with a real workspace a secret is not there either", SECRETS, { "read", "@S/.env" }, "ENOENT EACCES", .how = BY_FLAGS,
	  .flags = { "--rw", "@S", "--hide", "@S/.env" }, .instead = { "--rw", "@S" }, .control = { "read", "@S/file" } },
	{ "F20", "no other name leads to a secret", SECRETS, { "aliases", "@W/.env" }, "ENOENT EACCES ENOTDIR", .how = BARE },
	{ "F20", "no other name leads outside", HIDDEN, { "aliases", "@O/secret" }, "ENOENT EACCES ENOTDIR", .how = BARE },
};

#define FILL(where, path)                                                                                            \
	{ "F21", where " is bounded in bytes", "exhaustion", { "fill", path, "48" }, "ENOSPC EFBIG", .how = BY_FLAGS,       \
	  .flags = { "--disk", "16M" }, .instead = { "--disk", "128M" }, .ended = "disk" }
static const struct row bounds[] = {
	FILL("/tmp", "/tmp/big"), FILL("/dev/shm", "/dev/shm/big"), FILL("/var/tmp", "/var/tmp/big"),
	FILL("the home", "/home/agent/big"), FILL("the workspace's layer", "@W/big"),
	{ "F21", "the root itself takes nothing", "exhaustion", { "create", "/big", "x" }, "EROFS EACCES", .how = BY_NS,
	  .control = { "create", "@W/big", "x" } },
	{ "F22", "blocks are not promised past the limit", "exhaustion", { "sparse", "@W/big", "48" }, "ENOSPC EFBIG", .how = BY_FLAGS,
	  .flags = { "--disk", "16M", "--commit", "never" }, .instead = { "--disk", "128M", "--commit", "never" },
	  .ended = "disk" },
};

/* ---- F04: a mount below a read-only directory ----------------------------- */

static struct place *with_submount(bool shared)
{
	struct place *p = place_make();

	own_mounts(shared);
	if (mount("none", place_text(p, "@S/sub"), "tmpfs", 0, "mode=777") < 0)
		T_FAIL("mount: %s", strerror(errno));
	put_file(place_text(p, "@S/sub/file"), "below", 0666);
	return p;
}

static void submount_ro(void)
{
	struct place *p = with_submount(false);
	static struct t_result r;

	run_in(p, &r, &(struct run){ .flags = WORDLIST("--ro", "@S"), .cmd = WORDLIST("@P", "append", "@S/sub/file", "x") });
	must_refuse(&r, RO, "write to a mount below a read-only directory");
	T_INT(umount2(place_text(p, "@S/sub"), MNT_DETACH), 0);
}

static void submount_rw(void)
{
	struct place *p = with_submount(false);
	static struct t_result r;

	t_run(&r, WORDLIST(p->probe, "append", place_text(p, "@S/sub/file"), "x"));
	must_work(&r, "write to the mount outside");
	T_INT(umount2(place_text(p, "@S/sub"), MNT_DETACH), 0);
}

/* ---- F05: a mount made after the start ------------------------------------ */

static void late_mount(struct place *p, struct live *l)
{
	live_wait(l, "READY", 5000);
	if (mount("none", place_text(p, "@S/sub"), "tmpfs", 0, "mode=777") < 0)
		T_FAIL("mount: %s", strerror(errno));
	put_file(place_text(p, "@S/sub/late"), "LATE", 0644);
	live_say(l, "\n");
	live_end(l, 5000);
	umount2(place_text(p, "@S/sub"), MNT_DETACH);
}

static void late_inside(void)
{
	struct place *p = place_make();
	struct live l;

	own_mounts(true);
	live_start(p, &l, &(struct run){ .flags = WORDLIST("--ro", "@S"), .cmd = WORDLIST("@P", "read-later", "@S/sub/late") });
	late_mount(p, &l);
	if (!strstr(l.seen, "NO ENOENT"))
		T_FAIL("a mount made later on the host is seen inside: %s", l.seen);
}

/* The same, in a mount namespace that only follows the host's (slave). */
static void late_slave(void)
{
	struct place *p = place_make();
	struct live l;

	own_mounts(true);
	live_start_bare(&l, WORDLIST("/usr/bin/unshare", "-m", "--propagation", "slave", p->probe, "read-later",
				     place_text(p, "@S/sub/late")));
	late_mount(p, &l);
	if (!strstr(l.seen, "OK"))
		T_FAIL("control: %s", l.seen);
}

/* ---- F07: the directory we stand in is moved away ------------------------- */

static void moved(bool inside)
{
	struct place *p = place_make();
	struct live l;

	if (inside)
		live_start(p, &l, &(struct run){ .flags = WORDLIST("--rw", "@S"),
						 .cmd = WORDLIST("@P", "dotdot-moved", "@O/secret", "@S/sub") });
	else
		live_start_bare(&l, WORDLIST(p->probe, "dotdot-moved", place_text(p, "@O/secret"), place_text(p, "@S/sub")));
	live_wait(&l, "READY", 5000);
	if (rename(place_text(p, "@S/sub"), place_text(p, "@O/sub")) < 0)
		T_FAIL("rename: %s", strerror(errno));
	live_say(&l, "\n");
	live_end(&l, 5000);
	if (inside ? !strstr(l.seen, "NO ENOENT") && !strstr(l.seen, "NO EACCES") : !strstr(l.seen, "OK"))
		T_FAIL("%s: %s", inside ? "climbed out of a moved directory" : "control", l.seen);
}

static void moved_inside(void) { moved(true); }
static void moved_outside(void) { moved(false); }

/* ---- F13: names made to confuse ------------------------------------------- */

static const char *const odd_names[] = {
	"new\nline", "esc\033[31mred", "bad\xff\xfeutf8", "colon:comma,\\back", "-dash", " space ", "percent%s%n",
	"\xe2\x80\xaertl", "a'quote\"s",
};

static void odd_workspace(bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;

	for (size_t i = 0; i < COUNT(odd_names); i++) {
		char dir[512], prog[600];

		snprintf(dir, sizeof dir, "%s/%s", p->top, odd_names[i]);
		if (mkdir(dir, 0755) < 0)
			T_FAIL("mkdir: %s", strerror(errno));
		snprintf(prog, sizeof prog, "%s/probe", dir);
		if (link(p->probe, prog) < 0)
			T_FAIL("link: %s", strerror(errno));
		if (sandbox)
			run_in(p, &r, &(struct run){ .cmd = WORDLIST("./probe", "create", "marker", "x"), .opts.cwd = dir });
		else
			t_run_with(&r, WORDLIST("./probe", "create", "marker", "x"), &(struct t_run_opts){ .cwd = dir });
		must_work(&r, odd_names[i]);
		if (memchr(r.err, '\033', r.err_len))
			T_FAIL("a name's escape sequence reaches the terminal: %s", r.err);
		snprintf(prog, sizeof prog, "%s/marker", dir);
		if (exists(prog) == sandbox)
			T_FAIL("%zu: the file %s on the host", i, sandbox ? "is" : "is not");
	}
}

static void odd_inside(void) { odd_workspace(true); }
static void odd_outside(void) { odd_workspace(false); }

/* ---- the layer ------------------------------------------------------------ */

static void layer(bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	static const char *const ways[][4] = {
		{ "create", "@W/new", "x" }, { "append", "@W/file", "x" }, { "truncate", "@W/file" }, { "chmod", "600", "@W/file" },
		{ "rename", "@W/file", "@W/file2" }, { "unlink", "@W/file" }, { "mkdir", "@W/dir" },
	};

	for (size_t i = 0; i < COUNT(ways); i++) {
		const char *cmd[6] = { p->probe };
		struct stat a, b;
		char text[64];

		put_file(place_text(p, "@W/file"), "work", 0666);
		T_INT(stat(place_text(p, "@W/file"), &a), 0);
		for (int w = 0; w < 4 && ways[i][w]; w++)
			cmd[w + 1] = place_text(p, ways[i][w]);
		if (sandbox)
			run_in(p, &r, &(struct run){ .cmd = cmd });
		else
			t_run(&r, cmd);
		must_work(&r, ways[i][0]); /* inside it works: that is the point of a layer */
		get_file(place_text(p, "@W/file"), text, sizeof text);
		bool same = stat(place_text(p, "@W/file"), &b) == 0 && a.st_mode == b.st_mode && a.st_ino == b.st_ino &&
			    !strcmp(text, "work") && !exists(place_text(p, "@W/new")) && !exists(place_text(p, "@W/dir"));
		if (same != sandbox)
			T_FAIL("%s: the host's workspace is %s", ways[i][0], same ? "as before" : "changed");
		(void)unlink(place_text(p, "@W/file2"));
		(void)unlink(place_text(p, "@W/new"));
		(void)rmdir(place_text(p, "@W/dir"));
	}
}

static void layer_inside(void) { layer(true); }
static void layer_outside(void) { layer(false); }

/* A symlink in the workspace, written through by the program: the link's target is not the host's. */
static void link_out(bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;

	T_INT(symlink(place_text(p, "@S/file"), place_text(p, "@W/way")), 0);
	if (sandbox)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "append", "@W/way", "x") });
	else
		t_run(&r, WORDLIST(p->probe, "append", place_text(p, "@W/way"), "x"));
	if (sandbox)
		must_refuse(&r, "ENOENT EACCES", "write through a symlink");
	else
		must_work(&r, "write through a symlink");
	if ((place_print(p, 1) == p->before) != sandbox)
		T_FAIL("the host's file is %s", sandbox ? "changed" : "as before");
}

static void link_inside(void) { link_out(true); }
static void link_outside(void) { link_out(false); }

static const struct scene scenes[] = {
	{ "F02", "what is written to the workspace is thrown away", "layer", layer_inside, layer_outside },
	{ "F04", "a mount below a read-only directory is read-only too", "recursive flags", submount_ro, submount_rw },
	{ "F05", "a mount made later on the host does not appear", "propagation", late_inside, late_slave },
	{ "F07", "a directory moved outside does not lead there", "climbing", moved_inside, moved_outside },
	{ "F10", "a symlink in the workspace is not followed to the host", "symlinks", link_inside, link_outside },
	{ "F13", "strange names neither break nor speak", "names", odd_inside, odd_outside },
};

TEST_TABLE(filesystem)
{
	add_rows(rows, COUNT(rows));
	add_rows(bounds, COUNT(bounds));
	add_scenes(scenes, COUNT(scenes));
}
