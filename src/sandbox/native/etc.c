/* SPDX-License-Identifier: Apache-2.0 */
/* etc.c - the files of /etc and /dev that are the sandbox's own. */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const struct {
	const char *name, *path, *text;
} files[] = {
	{ "etc-passwd", "/etc/passwd",
	  "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n" NATIVE_USER ":x:1000:1000:" NATIVE_USER ":" NATIVE_HOME
	  ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc-group", "/etc/group", "root:x:0:\n" NATIVE_USER ":x:1000:\nnogroup:x:65534:\n" },
	/* ACCOUNTS */
	{ "etc-hosts", "/etc/hosts", "127.0.0.1 localhost " NATIVE_HOST "\n::1 localhost\n" },
	{ "etc-hostname", "/etc/hostname", NATIVE_HOST "\n" },
};

enum { ACCOUNTS = 2 };

/* The directories above a file of the caller's, where the root is ours. */
static void make_parents(struct native_plan *p, const char *path)
{
	char dir[256];

	for (const char *at = strchr(path + 1, '/'); at && (size_t)(at - path) < sizeof dir; at = strchr(at + 1, '/')) {
		snprintf(dir, sizeof dir, "%.*s", (int)(at - path - 1), path + 1);
		(void)mkdirat(p->root_fd, dir, 0755); /* it is there, or the file will tell */
	}
}

int native_build_etc(struct native_plan *p)
{
	char name[32];

	for (size_t i = p->ids.root ? ACCOUNTS : 0; i < sizeof files / sizeof *files; i++) /* then system.c has made those */
		if (native_provide(p, files[i].name, files[i].path, files[i].text, strlen(files[i].text)) < 0)
			return -1;
	for (size_t i = 0; i < p->spec->n_files; i++) {
		const struct sandbox_file *f = &p->spec->files[i];

		snprintf(name, sizeof name, "file-%zu", i);
		make_parents(p, f->path);
		if (native_provide(p, name, f->path, f->data, f->len) < 0)
			return -1;
	}
	return 0;
}

static const struct {
	const char *name;
	unsigned minor;
} nodes[] = { { "null", 3 }, { "zero", 5 }, { "full", 7 }, { "urandom", 9 } };

static const struct {
	const char *name, *to;
} links[] = { { "fd", "/proc/self/fd" },     { "stdin", "/proc/self/fd/0" }, { "stdout", "/proc/self/fd/1" },
	      { "stderr", "/proc/self/fd/2" }, { "ptmx", "pts/ptmx" },
	      { "random", "urandom" /* the same since Linux 5.6 */ } };

static int fail(struct native_plan *p, const char *what, const char *name)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "%s /dev/%s", what, name);
}

/* The host's node, bound; and it must be what its name says (CVE-2025-31133's lesson). */
static int bind_node(struct native_plan *p, const char *name, unsigned major, unsigned minor)
{
	struct mount_attr a = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC };
	char from[32], to[32];
	CS_FD int fd = -1, made = -1;
	struct stat st;

	snprintf(from, sizeof from, "/dev/%s", name);
	snprintf(to, sizeof to, "dev/%s", name);
	fd = open_tree(AT_FDCWD, from, AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(p, "open the host's", name);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(major, minor)) {
		errno = ENODEV;
		return fail(p, "not the device it should be: the host's", name);
	}
	made = openat(p->root_fd, to, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0666);
	if (made < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &a, sizeof a) < 0 ||
	    move_mount(fd, "", p->root_fd, to, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(p, "bind", name);
	return 0;
}

/* The pty's slave as /dev/console, so that the program can open its terminal by a name. */
static int bind_console(struct native_plan *p)
{
	char link[32], path[64];
	struct stat given, found;
	CS_FD int fd = -1, made = -1;
	ssize_t n;

	for (int i = 0; i < 3; i++) {
		int slave = p->spec->stdio[i];

		if (!isatty(slave) || fstat(slave, &given) < 0)
			continue;
		snprintf(link, sizeof link, "self/fd/%d", slave);
		n = readlinkat(p->proc_fd, link, path, sizeof path - 1);
		if (n <= 0)
			return 0;
		path[n] = 0;
		fd = open_tree(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		/* Another devpts than the one we see (a container's): then there is just no name. */
		if (fd < 0 || fstat(fd, &found) < 0 || found.st_rdev != given.st_rdev || found.st_ino != given.st_ino)
			return 0;
		made = openat(p->root_fd, "dev/console", O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0600);
		if (made < 0 || move_mount(fd, "", p->root_fd, "dev/console", MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return fail(p, "bind", "console");
		return 0;
	}
	return 0;
}

static int mount_devpts(struct native_plan *p)
{
	CS_FD int fs = fsopen("devpts", FSOPEN_CLOEXEC), fd = -1;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0620", 0) < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "max", "256", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(p, "mount", "pts");
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (fd < 0 || move_mount(fd, "", p->root_fd, "dev/pts", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(p, "attach", "pts");
	return 0;
}

int native_build_dev(struct native_plan *p)
{
	char path[32];

	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
		if (bind_node(p, nodes[i].name, 1, nodes[i].minor) < 0)
			return -1;
	if ((p->spec->tty || p->spec->stem) && bind_node(p, "tty", 5, 0) < 0)
		return -1;
	if (p->spec->tty && bind_console(p) < 0)
		return -1;
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		snprintf(path, sizeof path, "dev/%s", links[i].name);
		if (symlinkat(links[i].to, p->root_fd, path) < 0)
			return fail(p, "link", links[i].name);
	}
	if (mount_devpts(p) < 0)
		return -1;
	native_active(p, PROT_DEVFS);
	return 0;
}
