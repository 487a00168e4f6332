/* SPDX-License-Identifier: Apache-2.0 */
/* probe_fs.c - files: reading what should be hidden, changing what should stay. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static int show(int fd, const char *how)
{
	char buf[256] = "";
	ssize_t n = read(fd, buf, sizeof buf - 1);

	if (n < 0)
		return p_no(errno, "%s: read", how);
	return p_ok("%s: %.*s", how, (int)n, buf);
}

static int do_read(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	(void)argc;
	return fd < 0 ? p_no(errno, "open %s", argv[1]) : show(fd, argv[1]);
}

static int do_write(int argc, char **argv)
{
	int fd = open(argv[1], O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	(void)argc;
	return p_result(fd, "open for writing");
}

static int do_append(int argc, char **argv)
{
	int fd = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);

	(void)argc;
	if (fd < 0)
		return p_no(errno, "open %s", argv[1]);
	return p_result(write(fd, argv[2], strlen(argv[2])), "append");
}

static int do_create(int argc, char **argv)
{
	int fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	(void)argc;
	if (fd < 0)
		return p_no(errno, "create %s", argv[1]);
	return p_result(write(fd, argv[2], strlen(argv[2])), "write");
}

static int do_exists(int argc, char **argv)
{
	struct stat st;

	(void)argc;
	return p_result(lstat(argv[1], &st), "lstat");
}

static int do_list(int argc, char **argv)
{
	char line[3000] = "";
	size_t len = 0;
	DIR *d = opendir(argv[1]);

	(void)argc;
	if (!d)
		return p_no(errno, "opendir %s", argv[1]);
	for (struct dirent *e; (e = readdir(d)) && len + 260 < sizeof line; )
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			len += (size_t)snprintf(line + len, sizeof line - len, "%s ", e->d_name);
	closedir(d);
	return p_ok("%s", line);
}

static int do_rename(int argc, char **argv) { (void)argc; return p_result(rename(argv[1], argv[2]), "rename"); }
static int do_unlink(int argc, char **argv) { (void)argc; return p_result(unlink(argv[1]), "unlink"); }
static int do_mkdir(int argc, char **argv) { (void)argc; return p_result(mkdir(argv[1], 0755), "mkdir"); }
static int do_symlink(int argc, char **argv) { (void)argc; return p_result(symlink(argv[1], argv[2]), "symlink"); }
static int do_truncate(int argc, char **argv) { (void)argc; return p_result(truncate(argv[1], 1), "truncate"); }
static int do_chmod(int argc, char **argv)
{
	(void)argc;
	return p_result(chmod(argv[2], (mode_t)strtoul(argv[1], NULL, 8)), "chmod");
}

static int do_utimes(int argc, char **argv)
{
	struct timespec t[2] = { { 1, 0 }, { 1, 0 } };

	(void)argc;
	return p_result(utimensat(AT_FDCWD, argv[1], t, 0), "utimensat");
}

static int do_setxattr(int argc, char **argv)
{
	(void)argc;
	return p_result(setxattr(argv[1], "user.caisson_probe", "1", 1, 0), "setxattr");
}

/* Link it, then read the new name: a second name for a file that is refused by name. */
static int do_link(int argc, char **argv)
{
	(void)argc;
	if (link(argv[1], argv[2]) < 0)
		return p_no(errno, "link");
	return do_read(2, (char *[]){ argv[0], argv[2], NULL });
}

static int do_rename_parent(int argc, char **argv)
{
	char path[4096];

	(void)argc;
	if (rename(argv[1], argv[2]) < 0)
		return p_no(errno, "rename the directory");
	snprintf(path, sizeof path, "%s/%s", argv[2], argv[3]);
	return do_read(2, (char *[]){ argv[0], path, NULL });
}

static int do_opath(int argc, char **argv)
{
	char path[64];
	int fd = open(argv[1], O_PATH | O_CLOEXEC);

	(void)argc;
	if (fd < 0)
		return p_no(errno, "open O_PATH");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return do_read(2, (char *[]){ argv[0], path, NULL });
}

/* The same file by every other name that leads there. */
static int do_aliases(int argc, char **argv)
{
	static const char *const heads[] = {
		"/proc/self/root", "/proc/thread-self/root", "/proc/self/cwd/", "/proc/1/root", "/proc/self/task/1/root",
		"//", "/./", "/proc/self/fd/0/..", "/dev/fd/../../root",
	};
	const char *base = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
	int last = ENOENT;

	(void)argc;
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		char path[4096];
		int fd;

		snprintf(path, sizeof path, "%s%s", heads[i], i == 2 ? base : argv[1]);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0)
			return show(fd, path);
		last = errno;
	}
	return p_no(last, "none of %zu aliases", sizeof heads / sizeof *heads);
}

static void climb(char *out, size_t size, const char *path)
{
	size_t len = 0;

	for (int i = 0; i < 100; i++)
		len += (size_t)snprintf(out + len, size - len, "../");
	snprintf(out + len, size - len, "%s", path);
}

static int do_dotdot(int argc, char **argv)
{
	char path[4096];

	(void)argc;
	climb(path, sizeof path, argv[1]);
	return do_read(2, (char *[]){ argv[0], path, NULL });
}

/* argv[2]: a directory to stand in.  Waits for a line first, while the test moves it. */
static int do_dotdot_moved(int argc, char **argv)
{
	char path[4096], c;

	(void)argc;
	if (chdir(argv[2]) < 0)
		return p_no(errno, "chdir %s", argv[2]);
	puts("READY");
	if (read(0, &c, 1) != 1)
		return p_cant("no line to wait for");
	climb(path, sizeof path, argv[1]);
	return do_read(2, (char *[]){ argv[0], path, NULL });
}

static int do_read_later(int argc, char **argv)
{
	char c;

	puts("READY");
	if (read(0, &c, 1) != 1)
		return p_cant("no line to wait for");
	return do_read(argc, argv);
}

/* chroot deeper while standing outside of it, then climb. */
static int do_chroot(int argc, char **argv)
{
	char path[4096];
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)argc;
	(void)mkdir("probe-root", 0755);
	if (chroot("probe-root") < 0)
		return p_no(errno, "chroot");
	if (here < 0 || fchdir(here) < 0)
		return p_cant("fchdir: %s", strerror(errno));
	climb(path, sizeof path, argv[1]);
	return do_read(2, (char *[]){ argv[0], path, NULL });
}

/* From every descriptor that is a directory. */
static int do_dotdot_fds(int argc, char **argv)
{
	char path[4096];

	(void)argc;
	climb(path, sizeof path, argv[1]);
	for (int fd = 0; fd < 1024; fd++) {
		int f = openat(fd, path, O_RDONLY | O_CLOEXEC);

		if (f >= 0)
			return show(f, "through a descriptor");
	}
	return p_no(EBADF, "no descriptor leads there");
}

static int do_fds(int argc, char **argv)
{
	char line[2000] = "", link[300], path[64];
	size_t len = 0;

	(void)argc; (void)argv;
	for (int fd = 3; fd < 4096; fd++) {
		ssize_t n;

		if (fcntl(fd, F_GETFD) < 0)
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof link - 1);
		if (len + 340 < sizeof line)
			len += (size_t)snprintf(line + len, sizeof line - len, "%d=%.*s ", fd, n > 0 ? (int)n : 1,
						n > 0 ? link : "?");
	}
	return len ? p_ok("%s", line) : p_no(EBADF, "only 0, 1 and 2 are open");
}

/* A descriptor, opened again with rights it was not given. */
static int do_reopen(int argc, char **argv)
{
	static const int want[] = { O_RDWR, O_WRONLY, O_WRONLY | O_APPEND };
	int base = atoi(argv[1]), last = ENOENT, mode = fcntl(base, F_GETFL);
	const char *const dirs[] = { "/proc/self/fd", "/dev/fd", "/proc/thread-self/fd" };

	(void)argc;
	if (mode < 0)
		return p_cant("descriptor %d is closed", base);
	for (size_t d = 0; d < 3; d++)
		for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
			char path[64];
			int fd;

			/* Append-only to freely writable is more rights too; the same is not. */
			if ((mode & O_ACCMODE) == O_WRONLY && !(mode & O_APPEND) && (want[i] & O_ACCMODE) == O_WRONLY)
				continue;
			snprintf(path, sizeof path, "%s/%d", dirs[d], base);
			fd = open(path, want[i] | O_CLOEXEC);
			if (fd >= 0)
				return p_ok("descriptor %d, flags %#o, again with %#o", base, mode, want[i]);
			last = errno;
		}
	return p_no(last, "reopen descriptor %d (flags %#o)", base, mode);
}

static int do_remount(int argc, char **argv)
{
	(void)argc;
	return p_result(mount(NULL, argv[1], NULL, MS_REMOUNT | MS_BIND, NULL), "remount read-write");
}

static int do_remount_attr(int argc, char **argv)
{
	struct { unsigned long long set, clr, prop, ns; } a = { .clr = 1 /* MOUNT_ATTR_RDONLY */ };

	(void)argc;
	return p_result(syscall(SYS_mount_setattr, AT_FDCWD, argv[1], 0, &a, sizeof a), "mount_setattr -ro");
}

static int do_bind(int argc, char **argv)
{
	(void)argc;
	return p_result(mount(argv[1], argv[2], NULL, MS_BIND, NULL), "bind");
}

static int do_umount(int argc, char **argv)
{
	(void)argc;
	return p_result(umount2(argv[1], MNT_DETACH), "umount");
}

/* argv[1]: which call sets the bit; argv[2]: a name to make. */
static int do_suid(int argc, char **argv)
{
	const char *how = argv[1], *path = argv[2];
	mode_t bits = argc > 3 && !strcmp(argv[3], "sgid") ? 02755 : 04755;
	struct open_how oh = { .flags = O_CREAT | O_EXCL | O_WRONLY, .mode = bits };
	struct stat st;
	long r = -1;
	int fd = -1;

	umask(0);
	if (!strcmp(how, "open"))
		r = open(path, O_CREAT | O_EXCL | O_WRONLY, bits);
	else if (!strcmp(how, "creat"))
		r = syscall(SYS_creat, path, bits);
	else if (!strcmp(how, "openat2"))
		r = syscall(SYS_openat2, AT_FDCWD, path, &oh, sizeof oh);
	else if (!strcmp(how, "tmpfile")) {
		char link[64];

		r = open(".", O_TMPFILE | O_WRONLY, bits);
		snprintf(link, sizeof link, "/proc/self/fd/%ld", r);
		if (r >= 0)
			r = linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
	} else if (!strcmp(how, "mknod"))
		r = mknod(path, S_IFREG | bits, 0);
	else if (!strcmp(how, "mkdir"))
		r = mkdir(path, bits);
	else {
		fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0755);
		if (fd < 0)
			return p_cant("create %s: %s", path, strerror(errno));
		if (!strcmp(how, "chmod"))
			r = syscall(SYS_chmod, path, bits);
		else if (!strcmp(how, "fchmod"))
			r = fchmod(fd, bits);
		else if (!strcmp(how, "fchmodat"))
			r = syscall(SYS_fchmodat, AT_FDCWD, path, bits);
		else if (!strcmp(how, "fchmodat2"))
			r = syscall(SYS_fchmodat2, AT_FDCWD, path, bits, 0);
		else if (!strcmp(how, "high"))
			r = syscall(SYS_chmod, path, 0xffff0000ul << 16 | bits);
		else
			return p_cant("no such way: %s", how);
	}
	if (r < 0)
		return p_no(errno, "%s", how);
	if (lstat(path, &st) < 0)
		return p_cant("lstat: %s", strerror(errno));
	if (!(st.st_mode & 06000))
		return p_word("STRIPPED", "%s made mode %o", how, st.st_mode & 07777);
	return p_ok("%s made mode %o", how, st.st_mode & 07777);
}

static int do_setcap(int argc, char **argv)
{
	struct vfs_cap_data c = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE };

	(void)argc;
	c.data[0].permitted = 1u << CAP_CHOWN;
	return p_result(setxattr(argv[1], "security.capability", &c, sizeof c, 0), "set security.capability");
}

/* c|b MAJOR MINOR, made and opened. */
static int do_mknod(int argc, char **argv)
{
	const char *path = argc > 4 ? argv[4] : "probe-node";
	mode_t type = argv[1][0] == 'b' ? S_IFBLK : S_IFCHR;
	unsigned major_nr = (unsigned)atoi(argv[2]), minor_nr = (unsigned)atoi(argv[3]);
	int r;

	(void)unlink(path);
	r = mknod(path, type | 0600, makedev(major_nr, minor_nr));
	if (r < 0)
		return p_no(errno, "mknod %s %u:%u", argv[1], major_nr, minor_nr);
	(void)unlink(path);
	return p_ok("made %s %u:%u", argv[1], major_nr, minor_nr);
}

/* Open by handle: any inode of the file system, whatever the root is. */
static int do_handle(int argc, char **argv)
{
	struct { struct file_handle h; unsigned char room[128]; } f = { .h.handle_bytes = 128 };
	int id, fd, anchor = open(argv[1], O_RDONLY | O_CLOEXEC);

	(void)argc;
	if (anchor < 0)
		return p_cant("open %s: %s", argv[1], strerror(errno));
	if (name_to_handle_at(anchor, "", &f.h, &id, AT_EMPTY_PATH) < 0)
		return p_no(errno, "name_to_handle_at");
	fd = open_by_handle_at(anchor, &f.h, O_RDONLY);
	return p_result(fd, "open_by_handle_at");
}

static int do_name_to_handle(int argc, char **argv)
{
	struct { struct file_handle h; unsigned char room[128]; } f = { .h.handle_bytes = 128 };
	int id;

	(void)argc;
	return p_result(name_to_handle_at(AT_FDCWD, argv[1], &f.h, &id, 0), "name_to_handle_at");
}

static int do_cwd(int argc, char **argv)
{
	char path[4096];

	(void)argc; (void)argv;
	if (!getcwd(path, sizeof path))
		return p_no(errno, "getcwd");
	return path[0] == '/' ? p_ok("%s", path) : p_word("UNREACHABLE", "%s", path);
}

/* Is there a mount of a type that leads out, or one that is writable and should not be? */
static int do_mounts(int argc, char **argv)
{
	static char text[65536];
	char found[1500] = "";
	size_t len = 0;
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	ssize_t n, got = 0;

	(void)argc;
	if (fd < 0)
		return p_no(errno, "mountinfo");
	while (got < (ssize_t)sizeof text - 1 && (n = read(fd, text + got, sizeof text - 1 - (size_t)got)) > 0)
		got += n;
	for (char *save, *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		if (strstr(l, argv[1]) && len + 300 < sizeof found)
			len += (size_t)snprintf(found + len, sizeof found - len, "%.250s; ", l);
	return len ? p_ok("%s", found) : p_no(ENOENT, "no mount line with %s", argv[1]);
}

#define ALTER "a read-only or hidden tree is changed"
const struct probe probes_fs[] = {
	{ "read", "F01", "host files are read", do_read, 1, "PATH" },
	{ "exists", "F01", "host files are seen", do_exists, 1, "PATH" },
	{ "list", "F16", "a directory is listed", do_list, 1, "PATH" },
	{ "write", "F02", ALTER " (opened for writing only)", do_write, 1, "PATH" },
	{ "append", "F02", ALTER, do_append, 2, "PATH TEXT" },
	{ "create", "F02", ALTER, do_create, 2, "PATH TEXT" },
	{ "rename", "F02", ALTER, do_rename, 2, "FROM TO" },
	{ "unlink", "F02", ALTER, do_unlink, 1, "PATH" },
	{ "mkdir", "F02", ALTER, do_mkdir, 1, "PATH" },
	{ "symlink", "F02", ALTER, do_symlink, 2, "TARGET PATH" },
	{ "truncate", "F02", ALTER, do_truncate, 1, "PATH" },
	{ "chmod", "F02", ALTER, do_chmod, 2, "MODE PATH" },
	{ "utimes", "F02", ALTER, do_utimes, 1, "PATH" },
	{ "setxattr", "F02", ALTER, do_setxattr, 1, "PATH" },
	{ "remount", "F03", "a read-only mount is made writable", do_remount, 1, "PATH" },
	{ "remount-attr", "F03", "a read-only mount is made writable (mount_setattr)", do_remount_attr, 1, "PATH" },
	{ "bind", "F03", "a new view of a mount is made", do_bind, 2, "FROM TO" },
	{ "umount", "F03", "a mask is unmounted", do_umount, 1, "PATH" },
	{ "read-later", "F05", "mount propagation from the host", do_read_later, 1, "PATH" },
	{ "mounts", "F05", "mounts that lead out", do_mounts, 1, "TEXT" },
	{ "dotdot", "F06", "climbing out of the root", do_dotdot, 1, "PATH" },
	{ "dotdot-fds", "F06", "leaked directory descriptor, CVE-2024-21626", do_dotdot_fds, 1, "PATH" },
	{ "fds", "F06", "leaked descriptors, CVE-2016-9962, CVE-2024-21626", do_fds, 0, NULL },
	{ "dotdot-moved", "F07", "climbing out of a directory moved outside", do_dotdot_moved, 2, "PATH DIR" },
	{ "chroot", "F08", "chroot and climb", do_chroot, 1, "PATH" },
	{ "link", "F09", "hard link into another tree", do_link, 2, "FROM TO" },
	{ "suid", "F14", "set-id file is made", do_suid, 2, "HOW PATH [sgid]" },
	{ "setcap", "F14", "file capability is set", do_setcap, 1, "PATH" },
	{ "mknod", "F15", "device node is made", do_mknod, 3, "c|b MAJOR MINOR [PATH]" },
	{ "handle", "F17", "open by handle (Shocker)", do_handle, 1, "DIR" },
	{ "name-to-handle", "F17", "handles are handed out", do_name_to_handle, 1, "PATH" },
	{ "opath", "F19", "O_PATH and /proc/self/fd", do_opath, 1, "PATH" },
	{ "rename-parent", "F19", "a hidden file is moved with its directory", do_rename_parent, 3, "DIR NEW NAME" },
	{ "aliases", "F20", "other names of the same file", do_aliases, 1, "PATH" },
	{ "reopen", "F06", "a descriptor is reopened with more rights", do_reopen, 1, "FD" },
	{ "cwd", "F06", "working directory outside of the root, CVE-2024-21626", do_cwd, 0, NULL },
	{ 0 },
};
