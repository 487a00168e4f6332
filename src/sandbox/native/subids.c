/* SPDX-License-Identifier: Apache-2.0 */
/* subids.c - the ids that an administrator has given an ordinary user (subuid(5)).
 *
 * Only newuidmap and newgidmap, which are set-id and check the same files, can map them.  They are run by
 * absolute names with an empty environment.  What the files say is only a plan: if the programs
 * disagree the sandbox does not start.
 */
#include "sandbox/native/internal.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The name of an id in /etc/passwd; the C library's way would load libraries into a static program. */
static void user_name(uid_t uid, char ret[64])
{
	static char text[65536];
	char name[64];
	unsigned long id;

	ret[0] = 0;
	if (sys_get(AT_FDCWD, "/etc/passwd", text, sizeof text) < 0)
		return;
	for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (sscanf(at, "%63[^:\n]:%*[^:\n]:%lu:", name, &id) == 2 && id == uid) {
			snprintf(ret, 64, "%s", name);
			return;
		}
}

/* The start of the first line that gives the user a whole block, or 0. */
static uint32_t range_in(const char *path, uid_t uid, const char *name)
{
	static char text[65536];
	char who[64], number[16];
	unsigned long long start, count;

	snprintf(number, sizeof number, "%u", (unsigned)uid);
	if (sys_get(AT_FDCWD, path, text, sizeof text) < 0)
		return 0;
	for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (sscanf(at, "%63[^:\n]:%llu:%llu", who, &start, &count) == 3 && (!strcmp(who, number) || (*name && !strcmp(who, name))) &&
		    start > 0 && count >= NATIVE_BLOCK - 1 && start + count <= UINT32_MAX)
			return (uint32_t)start;
	return 0;
}

bool native_subids_find(struct native_ids *ids)
{
	char tool[64], name[64];

	if (!sys_find_tool("newuidmap", tool) || !sys_find_tool("newgidmap", tool))
		return false;
	user_name(ids->uid, name);
	ids->sub_uid = range_in("/etc/subuid", ids->uid, name);
	ids->sub_gid = range_in("/etc/subgid", ids->uid, name);
	return ids->sub_uid && ids->sub_gid;
}

static int run_tool(const char *name, pid_t builder, uint32_t own, uint32_t sub, struct cs_err *err)
{
	char path[64], pid[16], mine[16], first[16], count[16];
	char zero[] = "0", one[] = "1", *argv[] = { path, pid, zero, mine, one, one, first, count, NULL }, *env[] = { NULL };
	posix_spawnattr_t attr;
	sigset_t none;
	int status = 0, r;
	pid_t child;

	snprintf(pid, sizeof pid, "%d", (int)builder);
	snprintf(mine, sizeof mine, "%u", own);
	snprintf(first, sizeof first, "%u", sub);
	snprintf(count, sizeof count, "%d", NATIVE_BLOCK - 1);
	sigemptyset(&none);
	if (!sys_find_tool(name, path))
		return cs_fail(err, CS_E_UNSUPPORTED, ENOENT, "%s is gone", name);
	if (posix_spawnattr_init(&attr) != 0 || posix_spawnattr_setsigmask(&attr, &none) != 0 || posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK) != 0)
		return cs_fail(err, CS_E_SYSTEM, 0, "prepare %s", path);
	r = posix_spawn(&child, path, NULL, &attr, argv, env);
	(void)posix_spawnattr_destroy(&attr);
	if (r != 0)
		return cs_fail(err, CS_E_SYSTEM, r, "run %s", path);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return cs_fail(err, CS_E_SYSTEM, errno, "wait for %s", path);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return cs_fail(err, CS_E_UNSUPPORTED, 0,
			       "%s did not map %u ids from %u on, which `system: scratch` asked for: is it set-user-id, and does "
			       "/etc/sub%s give them to you?", path, NATIVE_BLOCK - 1, sub, !strcmp(name, "newuidmap") ? "uid" : "gid");
	return 0;
}

int native_subids_map(const struct native_ids *ids, pid_t builder, struct cs_err *err)
{
	int r = run_tool("newuidmap", builder, ids->uid, ids->sub_uid, err);

	return r < 0 ? r : run_tool("newgidmap", builder, ids->gid, ids->sub_gid, err);
}
