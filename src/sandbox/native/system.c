/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - the places where packages are installed, beside the system's layers.
 *
 * Installers want a /var and a /run to write to, accounts, and no service started.
 * /var has the host's directories by name and owner and none of their content, but
 * for what the caller binds there: package lists are no secret, mail and databases
 * are.  The accounts are the host's system accounts: files belong to them by number,
 * and scripts name them.  People's stay outside.
 */
#include "sandbox/native/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ACCOUNTS_MAX = 256 << 10, NAMES_MAX = 512, PEOPLE_FROM = 1000, NOBODY = 65534 };

static int fail(struct native_plan *p, const char *what, const char *path)
{
	return cs_fail(&p->report->err, CS_E_SYSTEM, errno, "%s '%s'", what, path);
}

/* ---- /var and /run ---- */

/* Who has this id inside, in our own numbering. */
static uint32_t mapped(const struct native_plan *p, uint32_t id, uint32_t root)
{
	bool others = p->ids.wide && id != 0 && id < NATIVE_BLOCK && !(p->builder_userns && id == NOBODY); /* so rootless sees who is not mapped */

	return others ? p->ids.block + id : root;
}

static int make_like(const struct native_plan *p, int dir, const char *name, const struct stat *st)
{
	if (mkdirat(dir, name, 0700) < 0)
		return errno == EEXIST ? 0 : -1;
	if (fchownat(dir, name, mapped(p, st->st_uid, native_own_uid(p)), mapped(p, st->st_gid, native_own_gid(p)), AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return fchmodat(dir, name, st->st_mode & 01777, 0);
}

/* The directories of the host's one, and nothing that is in them. */
static int copy_names(const struct native_plan *p, const char *host, int to)
{
	CS_FD int fd = open(host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CS_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st;
	unsigned left = NAMES_MAX;

	if (!d)
		return 0; /* the host has none */
	(void)CS_TAKE_FD(fd); /* the stream's now */
	while (left && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (make_like(p, to, e->d_name, &st) < 0)
			return -1;
		left--;
	}
	return 0;
}

int native_make_var(struct native_plan *p)
{
	static const char *const parts[] = { "lib", "cache", "log", "spool", "local", "mail", "opt" };
	static const char *const tops[] = { "var", "run" };
	CS_FD int var = -1, sub = -1;
	char host[32];

	for (size_t i = 0; i < 2; i++) {
		snprintf(host, sizeof host, "/%s", tops[i]);
		if (mkdirat(p->tmpfs_fd, tops[i], 0755) < 0)
			return fail(p, "mkdir", tops[i]);
		if (native_attach(p, tops[i], host, true) < 0)
			return -1;
	}
	var = openat(p->root_fd, "var", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (var < 0 || mkdirat(p->root_fd, "run/lock", 0755) < 0 || fchmodat(p->root_fd, "run/lock", 01777, 0) < 0 || symlinkat("/run", var, "run") < 0 ||
	    symlinkat("/run/lock", var, "lock") < 0)
		return fail(p, "make", "/var");
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		snprintf(host, sizeof host, "/var/%s", parts[i]);
		if (mkdirat(var, parts[i], 0755) < 0)
			return fail(p, "mkdir", host);
		cs_close_p(&sub);
		sub = openat(var, parts[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (sub < 0 || copy_names(p, host, sub) < 0)
			return fail(p, "make the directories of", host);
	}
	return 0;
}

/* ---- accounts ---- */

/* A line's field, counted from 0, up to its end or the next colon. */
static const char *field(const char *line, const char *end, unsigned n, size_t *ret_len)
{
	for (; n; n--) {
		const char *colon = memchr(line, ':', (size_t)(end - line));

		if (!colon)
			return NULL;
		line = colon + 1;
	}
	*ret_len = (size_t)(end - line);
	if (memchr(line, ':', *ret_len))
		*ret_len = (size_t)((const char *)memchr(line, ':', *ret_len) - line);
	return line;
}

/* The account's or group's number if it is the system's and not root's; 0: it is none. */
static unsigned system_id(const char *line, const char *end)
{
	size_t len = 0;
	const char *text = field(line, end, 2, &len);
	char number[16], *stop;
	unsigned long id;

	if (!text || !len || len >= sizeof number || *line == ':' || *line == '+' || *line == '-')
		return 0;
	memcpy(number, text, len);
	number[len] = 0;
	id = strtoul(number, &stop, 10);
	return !*stop && (id < PEOPLE_FROM || id == NOBODY) ? (unsigned)id : 0;
}

static bool has_account(const struct cs_buf *accounts, const char *name, size_t len)
{
	for (const char *at = cs_buf_text(accounts); at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (!strncmp(at, name, len) && at[len] == ':')
			return true;
	return false;
}

/* A group, and of its members those that are there. */
static void add_group(struct cs_buf *out, const char *line, const char *end, const struct cs_buf *accounts)
{
	size_t len = 0;
	const char *at = field(line, end, 3, &len);
	bool first = true;

	if (!at)
		return;
	cs_buf_add(out, line, (size_t)(at - line));
	end = at + len;
	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;

		if (has_account(accounts, at, (size_t)(stop - at))) {
			cs_buf_str(out, first ? "" : ",");
			cs_buf_add(out, at, (size_t)(stop - at));
			first = false;
		}
		at = stop + 1;
	}
	cs_buf_char(out, '\n');
}

/* accounts: those that were made from passwd, if these are groups. */
static void add_system(struct cs_buf *out, const char *text, const struct cs_buf *accounts)
{
	const char *end;

	for (const char *line = text; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		if (!system_id(line, end))
			continue;
		if (accounts) {
			add_group(out, line, end, accounts);
		} else {
			cs_buf_add(out, line, (size_t)(end - line));
			cs_buf_char(out, '\n');
		}
	}
}

static int read_host(struct native_plan *p, const char *path, struct cs_buf *ret)
{
	CS_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : fail(p, "open", path);
	return cs_buf_read_fd(ret, fd, path, &p->report->err);
}

/* In the place of what the layer has there: it can be changed and replaced, as a cover could not. */
static int put(struct native_plan *p, const char *path, const char *data, size_t len, mode_t mode)
{
	CS_FD int fd = -1;

	if (unlinkat(p->root_fd, path, 0) < 0 && errno != ENOENT)
		return fail(p, "replace", path);
	fd = openat(p->root_fd, path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode);
	return fd < 0 || fchmod(fd, mode) < 0 || cs_write_all(fd, data, len) < 0 ? fail(p, "write", path) : 0;
}

/* Nobody is to be started by an installation: there is nobody who would end it. */
static int bar_services(struct native_plan *p)
{
	static const char text[] = "#!/bin/sh\nexit 101\n", path[] = "usr/sbin/policy-rc.d";

	if (faccessat(p->root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || faccessat(p->root_fd, "usr/sbin/invoke-rc.d", F_OK, 0) < 0)
		return 0;
	return put(p, path, text, sizeof text - 1, 0755);
}

/* apt wants to be another user while it downloads, and there is none. */
static int keep_apt_root(struct native_plan *p)
{
	static const char text[] = "APT::Sandbox::User \"root\";\n";

	if (p->ids.wide || faccessat(p->root_fd, "etc/apt/apt.conf.d", F_OK, 0) < 0)
		return 0;
	return put(p, "etc/apt/apt.conf.d/00caisson", text, sizeof text - 1, 0644);
}

int native_make_accounts(struct native_plan *p)
{
	CS_BUF_AUTO struct cs_buf host = CS_BUF(ACCOUNTS_MAX), groups = CS_BUF(ACCOUNTS_MAX);
	CS_BUF_AUTO struct cs_buf users = CS_BUF(ACCOUNTS_MAX + 1024), out = CS_BUF(ACCOUNTS_MAX + 1024);

	if (read_host(p, "/etc/passwd", &host) < 0 || read_host(p, "/etc/group", &groups) < 0)
		return -1;
	cs_buf_str(&users, "root:x:0:0:root:" NATIVE_HOME ":/bin/sh\n");
	add_system(&users, cs_buf_text(&host), NULL);
	cs_buf_str(&users, NATIVE_USER ":x:1000:1000:" NATIVE_USER ":" NATIVE_HOME ":/bin/sh\n");
	cs_buf_str(&out, "root:x:0:\n");
	add_system(&out, cs_buf_text(&groups), &users);
	cs_buf_str(&out, NATIVE_USER ":x:1000:\n");
	if (users.over || out.over)
		return cs_fail(&p->report->err, CS_E_LIMIT, 0, "/etc/passwd or /etc/group: more than %d bytes of system accounts", ACCOUNTS_MAX);
	/* Copies that were made before a change: of people, too, and another's to write. */
	(void)unlinkat(p->root_fd, "etc/passwd-", 0);
	(void)unlinkat(p->root_fd, "etc/group-", 0);
	if (put(p, "etc/passwd", users.data, users.len, 0644) < 0 || put(p, "etc/group", out.data, out.len, 0644) < 0)
		return -1;
	return bar_services(p) < 0 ? -1 : keep_apt_root(p);
}
