/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify_probe.c - the attacks, one word each.
 *
 * Runs inside the sandbox and, as the control, without one.  Exit status 0:
 * the attack worked; 1: it was refused; one line says how.  What it prints is
 * evidence from a hostile place: the outside judges effects wherever it can.
 */
#include "cli/cmd_verify.h"

#include "base/cleanup.h"
#include "sys/sys.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int did(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int did(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vdprintf(1, fmt, ap);
	va_end(ap);
	return PROBE_DID;
}

static int refused(const char *what, int sys)
{
	dprintf(1, "%s%s%s", what, sys ? ": " : "", sys ? strerrordesc_np(sys) : "");
	return PROBE_REFUSED;
}

/* ---- files ---- */

static bool file_holds(const char *path, const char *token)
{
	char text[4096];

	return sys_get(AT_FDCWD, path, text, sizeof text) > 0 && strstr(text, token);
}

static int probe_read(char **a)
{
	int sys = 0;

	for (char **p = a + 1; *p; p++) {
		errno = 0;
		if (file_holds(*p, a[0]))
			return did("read %s", *p);
		sys = errno;
	}
	return refused("open", sys);
}

static int probe_list(char **a)
{
	CS_DIR DIR *d = opendir(a[0]);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (!strcmp(e->d_name, a[1]))
			return did("the name %s is listed", a[1]);
	return refused("not listed", 0);
}

/* Any way to change it will do. */
static int probe_write(char **a)
{
	int sys = 0;

	for (char **p = a + 1; *p; p++) {
		CS_FREE char *moved = NULL;

		if (asprintf(&moved, "%s.moved", *p) < 0)
			return PROBE_BROKEN;
		if (truncate(*p, 0) == 0 || sys_put(AT_FDCWD, *p, a[0]) == 0)
			return did("wrote %s", *p);
		sys = errno;
		if (chmod(*p, 0666) == 0 || utimensat(AT_FDCWD, *p, NULL, 0) == 0)
			return did("changed the attributes of %s", *p);
		if (rename(*p, moved) == 0 || unlink(*p) == 0)
			return did("removed %s", *p);
	}
	return refused("write", sys);
}

/* Change FILE and make NEW; then see whether the change is there. */
static int probe_change(char **a)
{
	CS_FD int fd = open(a[2], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, a[0], strlen(a[0])) < 0)
		return refused("create", errno);
	if (truncate(a[1], 0) < 0 || sys_put(AT_FDCWD, a[1], a[0]) < 0)
		return refused("write", errno);
	return file_holds(a[1], a[0]) && file_holds(a[2], a[0]) ? did("changed and read back") : refused("read back", 0);
}

static int probe_setuid(char **a)
{
	CS_FREE char *path = NULL;
	CS_FD int fd = -1;
	struct stat st;
	int sys;

	if (asprintf(&path, "%s/set-id", a[0]) < 0)
		return PROBE_BROKEN;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0)
		return PROBE_BROKEN;
	sys = fchmod(fd, 04755) < 0 ? errno : 0;
	if (fstat(fd, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
		return did("a set-user-id file was made");
	return refused("chmod u+s", sys);
}

static int probe_proc(char **a)
{
	static const char *const files[] = { "cmdline", "modules", "interrupts", "iomem", "kallsyms", "timer_list", "keys" };
	char path[64], text[64];
	int sys = ENOENT;

	(void)a;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "/proc/%s", files[i]);
		if (sys_get(AT_FDCWD, path, text, sizeof text) > 0)
			return did("read %s", path);
		sys = errno;
	}
	return refused("open /proc/cmdline and others", sys);
}

/* ---- processes ---- */

/* EPERM is an answer too: it says that there is such a process. */
static int probe_signal(char **a)
{
	char path[64];

	for (; *a; a++) {
		pid_t pid = (pid_t)strtol(*a, NULL, 10);

		if (pid <= 1)
			return PROBE_BROKEN;
		if (kill(pid, SIGKILL) == 0)
			return did("killed process %d", (int)pid);
		if (errno != ESRCH)
			return did("process %d exists: %s", (int)pid, strerrordesc_np(errno));
		snprintf(path, sizeof path, "/proc/%d", (int)pid);
		if (access(path, F_OK) == 0)
			return did("%s is there", path);
	}
	return refused("kill", ESRCH);
}

static bool environ_has(const char *pid, const char *name)
{
	static char text[1 << 17];
	char path[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
	n = sys_get(AT_FDCWD, path, text, sizeof text);
	return n > 0 && memmem(text, (size_t)n, name, strlen(name));
}

static int probe_env(char **a)
{
	CS_DIR DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned seen = 0;

	if (getenv(a[0]))
		return did("in the environment");
	while (d && (e = readdir(d))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		seen++;
		if (environ_has(e->d_name, a[0]))
			return did("in /proc/%.20s/environ", e->d_name);
	}
	dprintf(1, "not in the environment, nor in that of %u processes in /proc", seen);
	return PROBE_REFUSED;
}

static int probe_fds(char **a)
{
	(void)a;
	for (int fd = 3; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return did("descriptor %d is open", fd);
	return refused("3 to 4095 are closed", 0);
}

static int probe_ptrace(char **a)
{
	pid_t child = fork();
	char here = 0, there = 'x';
	struct iovec to = { &here, 1 }, from = { &there, 1 };
	bool traced, copied;
	int sys;

	(void)a;
	if (child == 0)
		for (;;)
			pause();
	traced = ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0;
	sys = errno;
	copied = process_vm_readv(child, &to, 1, &from, 1, 0) == 1;
	kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	if (traced || copied)
		return did("%s", traced ? "traced a process" : "read a process's memory");
	return refused("ptrace", sys);
}

static int probe_ipc(char **a)
{
	int id = shmget((key_t)strtol(a[0], NULL, 10), 0, 0);

	return id >= 0 ? did("a host's shared memory segment can be reached") : refused("shmget", errno);
}

/* ---- network ---- */

static bool reach(int family, int type, const void *addr, socklen_t len)
{
	CS_FD int fd = socket(family, type | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && connect(fd, addr, len) == 0 && send(fd, "!", 1, MSG_NOSIGNAL) == 1;

	return ok;
}

static int probe_connect(char **a)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(a[1], NULL, 10)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t n = strlen(a[1]);
	bool ok;

	if (!strcmp(a[0], "tcp") || !strcmp(a[0], "udp")) {
		ok = reach(AF_INET, *a[0] == 't' ? SOCK_STREAM : SOCK_DGRAM, &in, sizeof in);
	} else {
		if (n >= sizeof un.sun_path)
			return PROBE_BROKEN;
		memcpy(un.sun_path + !strcmp(a[0], "abstract"), a[1], n);
		ok = reach(AF_UNIX, SOCK_STREAM, &un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n));
	}
	return ok ? did("%s: reached", a[0]) : refused(a[0], errno);
}

/* ---- privileges ---- */

static int probe_caps(char **a)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { 0 };

	(void)a;
	if (syscall(SYS_capget, &head, d) < 0)
		return PROBE_BROKEN;
	if (d[0].effective || d[1].effective || d[0].permitted || d[1].permitted || d[0].inheritable || d[1].inheritable)
		return did("capabilities 0x%x%08x", d[1].permitted, d[0].permitted);
	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return did("capability %d is in the bounding set", cap);
	return refused("all sets are empty", 0);
}

static int probe_nnp(char **a)
{
	(void)a;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? refused("no_new_privs is set", 0) : did("no_new_privs is not set");
}

/* Two calls that do nothing and that every unfiltered process may make. */
static int probe_seccomp(char **a)
{
	int sys;

	(void)a;
	if (unshare(0) == 0)
		return did("unshare works");
	sys = errno;
	if (syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, 1, 1) >= 0)
		return did("kcmp works");
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER ? refused("filter mode; unshare(0), kcmp", sys) : did("no filter");
}

static int probe_mount(char **a)
{
	bool here = !strcmp(a[0], "here"); /* else in a mount namespace of its own */
	int sys, fs;

	if (!here && unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return refused("unshare", errno);
	if (!here && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return refused("mount --make-rprivate", errno);
	if (mount("tmpfs", a[1], "tmpfs", 0, "size=4k") == 0)
		return did("mounted a tmpfs");
	sys = errno;
	if (mount(a[1], a[1], NULL, MS_BIND, NULL) == 0 || mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0 || umount2("/proc", MNT_DETACH) == 0)
		return did("changed a mount");
	fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	return fs >= 0 || unshare(CLONE_NEWNS) == 0 ? did("can make mounts") : refused("mount", sys);
}

static int probe_userns(char **a)
{
	struct clone_args c = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	pid_t pid;
	int sys;

	(void)a;
	pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) == 0 ? 255 : errno);
	if (pid < 0 || waitpid(pid, &sys, 0) < 0)
		return PROBE_BROKEN;
	if (WEXITSTATUS(sys) == 255)
		return did("unshare(NEWUSER) works");
	sys = WEXITSTATUS(sys);
	pid = sys_clone3(&c);
	if (pid < 0)
		pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return refused("unshare, clone", sys);
	(void)waitpid(pid, NULL, 0);
	return did("clone(NEWUSER) works");
}

/* ---- being a neighbour ---- */

/* Leave the token at every PATH, then stay until told to go. */
static int probe_hold(char **a)
{
	char c;

	for (char **p = a + 1; *p; p++) {
		CS_FD int fd = open(*p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		if (fd < 0 || write(fd, a[0], strlen(a[0])) < 0 || !file_holds(*p, a[0]))
			return refused("leave a mark", errno);
	}
	dprintf(1, "ready\n");
	while (read(0, &c, 1) > 0)
		;
	return PROBE_DID;
}

static const struct {
	const char *word;
	int (*fn)(char **args);
	int min;
} probes[] = {
	{ "read", probe_read, 2 },     { "list", probe_list, 2 },	{ "write", probe_write, 2 },	 { "change", probe_change, 3 },
	{ "setuid", probe_setuid, 1 }, { "proc", probe_proc, 0 },	{ "signal", probe_signal, 1 },	 { "env", probe_env, 1 },
	{ "fds", probe_fds, 0 },       { "ptrace", probe_ptrace, 0 },	{ "ipc", probe_ipc, 1 },	 { "connect", probe_connect, 2 },
	{ "caps", probe_caps, 0 },     { "nnp", probe_nnp, 0 },		{ "seccomp", probe_seccomp, 0 }, { "mount", probe_mount, 2 },
	{ "userns", probe_userns, 0 }, { "hold", probe_hold, 2 },
};

int verify_probe(int argc, char **argv)
{
	if (argc > 0 && !strcmp(argv[0], "bomb"))
		return verify_bomb(argc - 1, argv + 1);
	for (size_t i = 0; argc > 0 && i < sizeof probes / sizeof *probes; i++)
		if (!strcmp(probes[i].word, argv[0]) && argc - 1 >= probes[i].min)
			return probes[i].fn(argv + 1);
	return PROBE_BROKEN;
}
