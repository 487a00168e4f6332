/* SPDX-License-Identifier: Apache-2.0 */
/* probe_id.c - who we are and what we may become. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The value of a line of /proc/self/status, "" when it is not there. */
static void status_line(const char *key, char *out, size_t size)
{
	static char text[8192];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	char *p;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	out[0] = '\0';
	p = strstr(text, key);
	if (!p)
		return;
	p += strlen(key);
	p += strspn(p, ":\t ");
	snprintf(out, size, "%.*s", (int)strcspn(p, "\n"), p);
}

static int do_id(int argc, char **argv)
{
	char u[128], g[128], gr[512];

	(void)argc; (void)argv;
	status_line("Uid", u, sizeof u);
	status_line("\nGid", g, sizeof g);
	status_line("Groups", gr, sizeof gr);
	for (char *p = u; *p; p++)
		*p = *p == '\t' ? ',' : *p;
	for (char *p = g; *p; p++)
		*p = *p == '\t' ? ',' : *p;
	return p_ok("uid=%s gid=%s groups=%s", u, g, gr);
}

static int do_caps(int argc, char **argv)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	char v[64], line[400] = "";
	size_t len = 0;
	int some = 0;

	(void)argc; (void)argv;
	for (size_t i = 0; i < 5; i++) {
		status_line(sets[i], v, sizeof v);
		if (!v[0])
			return p_cant("no %s line", sets[i]);
		if (strtoull(v, NULL, 16))
			some = 1;
		len += (size_t)snprintf(line + len, sizeof line - len, "%s=%s ", sets[i], v);
	}
	return some ? p_ok("%s", line) : p_no(EPERM, "%s", line);
}

/* KEY must be VALUE (a line of /proc/self/status); anything else is a find. */
static int do_status(int argc, char **argv)
{
	char v[256];

	(void)argc;
	status_line(argv[1], v, sizeof v);
	if (!strcmp(v, argv[2]))
		return p_word("AS_SAID", "%s is %s", argv[1], v);
	return p_ok("%s is %s", argv[1], v);
}

static int do_setuid(int argc, char **argv)
{
	uid_t u = (uid_t)atol(argv[1]);

	(void)argc;
	return p_result(setresuid(u, u, u), "setresuid");
}

static int do_setgid(int argc, char **argv)
{
	gid_t g = (gid_t)atol(argv[1]);

	(void)argc;
	return p_result(setresgid(g, g, g), "setresgid");
}

/* setfsuid has no error: the change is the answer. */
static int do_setfsuid(int argc, char **argv)
{
	(void)argc;
	syscall(SYS_setfsuid, (uid_t)atol(argv[1]));
	if ((uid_t)syscall(SYS_setfsuid, (uid_t)-1) == (uid_t)atol(argv[1]))
		return p_ok("setfsuid %s", argv[1]);
	return p_no(EPERM, "setfsuid %s", argv[1]);
}

/* Groups taken away can open a file that denies a group: CVE-2014-8989. */
static int do_setgroups(int argc, char **argv)
{
	gid_t g[] = { 0, 27 };

	(void)argc; (void)argv;
	return p_result(syscall(SYS_setgroups, 0, g), "setgroups");
}

static int do_cap_raise(int argc, char **argv)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	unsigned some = 1u << CAP_CHOWN | 1u << CAP_SYS_ADMIN;
	struct __user_cap_data_struct d[2] = { { some, some, 0 }, { 0 } };

	(void)argc; (void)argv;
	return p_result(syscall(SYS_capset, &h, d), "capset");
}

static int make_inheritable(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { 0 } };

	if (syscall(SYS_capget, &h, d) < 0)
		return -1;
	d[0].inheritable |= 1u << CAP_SYS_ADMIN | 1u << CAP_DAC_OVERRIDE;
	return (int)syscall(SYS_capset, &h, d);
}

static int do_cap_inheritable(int argc, char **argv)
{
	(void)argc; (void)argv;
	return p_result(make_inheritable(), "inheritable capabilities");
}

static int do_ambient(int argc, char **argv)
{
	(void)argc; (void)argv;
	(void)make_inheritable(); /* the first half of it */
	return p_result(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0), "ambient capability");
}

/* What should be set and locked.  Reading is never refused. */
static int do_securebits(int argc, char **argv)
{
	int want = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
		   SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int now = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);

	(void)argc; (void)argv;
	if (now < 0)
		return p_cant("PR_GET_SECUREBITS: %s", strerror(errno));
	if ((now & want) == want)
		return p_word("LOCKED", "securebits %#x", now);
	return p_ok("securebits %#x, want all of %#x", now, want);
}

static int do_securebits_clear(int argc, char **argv)
{
	(void)argc; (void)argv;
	return p_result(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), "clear securebits");
}

/* Is host id 0 behind any id of ours?  The second column is as our parent namespace counts. */
static int do_uid_map(int argc, char **argv)
{
	char text[512] = "";
	const char *which = argc > 1 ? argv[1] : "uid_map";
	char path[64];
	unsigned in, out, n;
	ssize_t got;
	int fd;

	snprintf(path, sizeof path, "/proc/self/%s", which);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return p_no(errno, "open %s", path);
	got = read(fd, text, sizeof text - 1);
	text[got > 0 ? got : 0] = '\0';
	for (char *save, *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		if (sscanf(l, "%u %u %u", &in, &out, &n) != 3)
			return p_cant("line %s", l);
		/* One id, that of the program; anything wider or any inside root is a find. */
		if (in == 0 || n != 1)
			return p_ok("%s maps %u to %u for %u ids", which, in, out, n);
	}
	return p_word("NARROW", "%s maps one id", which);
}

static int do_env(int argc, char **argv)
{
	const char *v = getenv(argv[1]);

	(void)argc;
	return v ? p_ok("%s=%s", argv[1], v) : p_no(ENOENT, "%s is not set", argv[1]);
}

static int do_env_names(int argc, char **argv)
{
	extern char **environ;
	char line[2000] = "";
	size_t len = 0;

	(void)argc; (void)argv;
	for (char **e = environ; *e && len + 80 < sizeof line; e++)
		len += (size_t)snprintf(line + len, sizeof line - len, "%.*s ", (int)strcspn(*e, "="), *e);
	return p_ok("%s", line);
}

static int do_hostname(int argc, char **argv)
{
	struct utsname u;

	(void)argc; (void)argv;
	if (uname(&u) < 0)
		return p_no(errno, "uname");
	return p_ok("node=%s domain=%s", u.nodename, u.domainname);
}

/* A key of the caller's session, by name. */
static int do_key(int argc, char **argv)
{
	long id = syscall(SYS_keyctl, 10 /* KEYCTL_SEARCH */, -3 /* session */, "user", argv[1], 0);

	(void)argc;
	return p_result(id, "search the session keyring");
}

/* Hold a new session keyring with a key, then run the rest of the line. */
static int do_with_key(int argc, char **argv)
{
	(void)argc;
	if (syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL) < 0 ||
	    syscall(SYS_add_key, "user", argv[1], "secret", 6, -3) < 0)
		return p_cant("keyring: %s", strerror(errno));
	execv(argv[2], argv + 2);
	return p_cant("exec %s: %s", argv[2], strerror(errno));
}

/* Run a set-id program and see whom it made us: it is this same file. */
static int do_suid_exec(int argc, char **argv)
{
	char me[16];

	(void)argc;
	snprintf(me, sizeof me, "%d", (int)geteuid());
	execl(argv[1], argv[1], "euid-changed", me, NULL);
	return p_no(errno, "exec %s", argv[1]);
}

static int do_euid_changed(int argc, char **argv)
{
	(void)argc;
	if (geteuid() != (uid_t)atoi(argv[1]) || geteuid() != getuid())
		return p_ok("uid %d, effective %d", (int)getuid(), (int)geteuid());
	return p_no(EPERM, "effective uid is still %s", argv[1]);
}

/* Run PATH and say which capabilities it got. */
static int do_caps_exec(int argc, char **argv)
{
	(void)argc;
	execl(argv[1], argv[1], "caps-now", NULL);
	return p_no(errno, "exec %s", argv[1]);
}

static int do_caps_now(int argc, char **argv)
{
	char v[64];

	(void)argc; (void)argv;
	status_line("CapPrm", v, sizeof v);
	if (strtoull(v, NULL, 16))
		return p_ok("permitted %s", v);
	return p_no(EPERM, "permitted %s", v);
}

static int do_dumpable(int argc, char **argv)
{
	struct stat st;

	(void)argc;
	if (stat(argv[1], &st) < 0)
		return p_no(errno, "stat %s", argv[1]);
	return st.st_uid == getuid() ? p_ok("%s is ours", argv[1]) : p_no(EPERM, "%s belongs to %u", argv[1], st.st_uid);
}

#define GAIN "capabilities come back, CVE-2022-29162"
const struct probe probes_id[] = {
	{ "id", "I01", "ids and groups, CVE-2026-30892", do_id, 0, NULL },
	{ "setuid", "I01", "another user", do_setuid, 1, "UID" },
	{ "setgid", "I01", "another group", do_setgid, 1, "GID" },
	{ "setfsuid", "I01", "another user for files", do_setfsuid, 1, "UID" },
	{ "setgroups", "I02", "groups are dropped to pass a deny entry, CVE-2014-8989", do_setgroups, 0, NULL },
	{ "caps", "I03", "capabilities are left", do_caps, 0, NULL },
	{ "cap-raise", "I04", GAIN, do_cap_raise, 0, NULL },
	{ "cap-inheritable", "I04", GAIN, do_cap_inheritable, 0, NULL },
	{ "ambient", "I04", GAIN, do_ambient, 0, NULL },
	{ "securebits", "I05", "securebits are not locked", do_securebits, 0, NULL },
	{ "securebits-clear", "I05", "securebits are cleared", do_securebits_clear, 0, NULL },
	{ "status", "I06", "a line of /proc/self/status", do_status, 2, "KEY VALUE" },
	{ "suid-exec", "I07", "a set-id program gives privileges", do_suid_exec, 1, "PATH" },
	{ "euid-changed", "I07", "second half of suid-exec", do_euid_changed, 1, "EUID" },
	{ "caps-exec", "I07", "file capabilities give privileges", do_caps_exec, 1, "PATH" },
	{ "caps-now", "I07", "second half of caps-exec", do_caps_now, 0, NULL },
	{ "uid-map", "I08", "host root is mapped", do_uid_map, 0, "[uid_map|gid_map]" },
	{ "env", "I09", "secrets in the environment", do_env, 1, "NAME" },
	{ "env-names", "I09", "what is in the environment", do_env_names, 0, NULL },
	{ "hostname", "I11", "the host's name", do_hostname, 0, NULL },
	{ "key", "I12", "keys of the caller's session", do_key, 1, "NAME" },
	{ "with-key", "I12", "control: a session with a key", do_with_key, 2, "NAME PROGRAM ARGS" },
	{ "owner", "T10", "who owns a file of /proc", do_dumpable, 1, "PATH" },
	{ 0 },
};
