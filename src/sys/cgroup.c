/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - control groups, both kinds.
 *
 * v1 (and hybrid): one directory per controller below the one we are in.
 * v2: one directory, but a cgroup that holds processes cannot hand controllers
 * to its children, so we walk up from our own cgroup to the nearest ancestor
 * that is ours to write and already hands them down, or is empty, or is the
 * root.  Under systemd that is user@UID.service for a user, the root for root.
 */
#include "sys/sys.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define CGROOT "/sys/fs/cgroup"

static const char *const ctl_name[SYS_CG_MAX] = { "memory", "pids", "cpu", "cpuacct", "unified" };
static const char *const mode_name[] = { "none", "v1", "hybrid", "v2" };

const char *sys_cgroup_ctl_name(enum sys_cgroup_ctl c)
{
	return ctl_name[c];
}

const char *sys_cgroup_mode_name(enum sys_cgroup_mode m)
{
	return mode_name[m];
}

enum sys_cgroup_mode sys_cgroup_mode(void)
{
	struct statfs fs;

	if (statfs(CGROOT, &fs) < 0)
		return SYS_CGROUP_NONE;
	if (fs.f_type == CGROUP2_SUPER_MAGIC)
		return SYS_CGROUP_V2;
	if (statfs(CGROOT "/unified", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
		return SYS_CGROUP_HYBRID;
	if (statfs(CGROOT "/memory", &fs) == 0 && fs.f_type == CGROUP_SUPER_MAGIC)
		return SYS_CGROUP_V1;
	return SYS_CGROUP_NONE;
}

void sys_cgroup_init(struct sys_cgroup *cg)
{
	memset(cg, 0, sizeof *cg);
	for (int c = 0; c < SYS_CG_MAX; c++)
		cg->dir[c] = -1;
}

bool sys_cgroup_has(const struct sys_cgroup *cg, enum sys_cgroup_ctl c)
{
	return cg->dir[c] >= 0;
}

/* Our own cgroup for one hierarchy, from the text of /proc/self/cgroup:
 * lines "N:controllers:/path"; v2 has N 0 and no controllers. */
static int own_path(const char *text, enum sys_cgroup_ctl c, char *ret, size_t size)
{
	const char *line = text;

	while (line && *line) {
		const char *ctl = strchr(line, ':'), *path = ctl ? strchr(ctl + 1, ':') : NULL;
		const char *end = strchr(line, '\n');
		size_t len = strlen(ctl_name[c]), n;
		bool hit = false;

		if (!path)
			break;
		n = end ? (size_t)(end - path - 1) : strlen(path + 1);
		if (c == SYS_CG_UNIFIED)
			hit = ctl[1] == ':' && line[0] == '0';
		for (const char *w = ctl + 1; c != SYS_CG_UNIFIED && w < path; w = strchr(w, ',') ? strchr(w, ',') + 1 : path)
			if (!strncmp(w, ctl_name[c], len) && (w[len] == ',' || w + len == path))
				hit = true;
		if (hit) {
			if (n >= size)
				return -1;
			memcpy(ret, path + 1, n);
			ret[n] = 0;
			return 0;
		}
		line = end ? end + 1 : NULL;
	}
	return -1;
}

static void plan_dir(struct sys_cgroup *cg, enum sys_cgroup_ctl c, const char *base, const char *name)
{
	if (snprintf(cg->path[c], sizeof cg->path[c], "%s/%s", base, name) >= (int)sizeof cg->path[c]) {
		cg->why[c] = ENAMETOOLONG;
		cg->path[c][0] = 0;
	}
}

static void make_dir(struct sys_cgroup *cg, enum sys_cgroup_ctl c)
{
	char *path = cg->path[c];

	if (mkdir(path, 0755) < 0) {
		cg->why[c] = errno;
		path[0] = 0;
		return;
	}
	cg->dir[c] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cg->dir[c] < 0) {
		cg->why[c] = errno;
		(void)rmdir(path);
		path[0] = 0;
	}
}

static void plan_one(struct sys_cgroup *cg, const char *self, const char *name, enum sys_cgroup_ctl c)
{
	char own[160], base[224];

	if (own_path(self, c, own, sizeof own) < 0 || !strcmp(own, "/"))
		own[0] = 0;
	snprintf(base, sizeof base, CGROOT "/%s%s", ctl_name[c], own);
	if (own[0] && access(base, F_OK) < 0) /* a container sees only its part of the tree */
		snprintf(base, sizeof base, CGROOT "/%s", ctl_name[c]);
	plan_dir(cg, c, base, name);
}

/* Do the controllers reach a child of dir? Switch them on if we may. */
static bool hands_down(const char *dir, unsigned want)
{
	char path[300], text[256];

	snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
	for (int try = 0; try < 2; try++) {
		bool all = sys_get(AT_FDCWD, path, text, sizeof text) >= 0;

		for (int c = 0; all && c <= SYS_CG_CPU; c++)
			if (want & 1u << c && !strstr(text, ctl_name[c]))
				all = false;
		if (all)
			return true;
		for (int c = 0; c <= SYS_CG_CPU; c++) {
			char word[16];

			snprintf(word, sizeof word, "+%s", ctl_name[c]);
			if (want & 1u << c)
				(void)sys_put(AT_FDCWD, path, word); /* judged by reading back */
		}
	}
	return false;
}

static void plan_v2(struct sys_cgroup *cg, const char *self, const char *name, unsigned want)
{
	char own[160], base[224];
	char *slash;

	if (own_path(self, SYS_CG_UNIFIED, own, sizeof own) < 0)
		own[0] = 0;
	snprintf(base, sizeof base, CGROOT "%s", strcmp(own, "/") ? own : "");
	for (;;) {
		if (access(base, W_OK) == 0 && hands_down(base, want)) {
			plan_dir(cg, SYS_CG_UNIFIED, base, name);
			return;
		}
		slash = strrchr(base, '/');
		if (strlen(base) <= strlen(CGROOT) || !slash)
			break;
		*slash = 0;
	}
	cg->why[SYS_CG_UNIFIED] = EACCES;
}

void sys_cgroup_plan(struct sys_cgroup *cg, const char *name, unsigned want)
{
	char self[4096];

	sys_cgroup_init(cg);
	cg->mode = sys_cgroup_mode();
	if (cg->mode == SYS_CGROUP_NONE || sys_get(AT_FDCWD, "/proc/self/cgroup", self, sizeof self) < 0) {
		for (int c = 0; c < SYS_CG_MAX; c++)
			cg->why[c] = ENOENT;
		return;
	}
	if (cg->mode == SYS_CGROUP_V2 && want)
		plan_v2(cg, self, name, want);
	for (int c = 0; cg->mode != SYS_CGROUP_V2 && c <= SYS_CG_CPUACCT; c++)
		if (want & 1u << c)
			plan_one(cg, self, name, (enum sys_cgroup_ctl)c);
}

void sys_cgroup_create(struct sys_cgroup *cg)
{
	for (int c = 0; c < SYS_CG_MAX; c++)
		if (cg->path[c][0])
			make_dir(cg, (enum sys_cgroup_ctl)c);
	if (cg->mode == SYS_CGROUP_V2)
		for (int c = 0; c <= SYS_CG_CPU; c++)
			cg->why[c] = cg->why[SYS_CG_UNIFIED];
}

void sys_cgroup_make(struct sys_cgroup *cg, const char *name, unsigned want)
{
	sys_cgroup_plan(cg, name, want);
	sys_cgroup_create(cg);
}

int sys_cgroup_join_v1(const struct sys_cgroup *cg)
{
	if (cg->mode == SYS_CGROUP_V2)
		return 0;
	/* "tasks" and not "cgroup.procs": a thread that moves only itself needs no
	 * global lock, and that lock waits for an RCU grace period, 10 ms and more. */
	for (int c = 0; c <= SYS_CG_CPUACCT; c++) {
		char path[sizeof cg->path[c] + 8];

		snprintf(path, sizeof path, "%s/tasks", cg->path[c]);
		if (cg->path[c][0] && sys_put(AT_FDCWD, path, "0") < 0)
			return -1;
	}
	return 0;
}

bool sys_cgroup_remove(struct sys_cgroup *cg)
{
	bool all = true;

	for (int c = 0; c < SYS_CG_MAX; c++) {
		if (cg->dir[c] < 0)
			continue;
		close(cg->dir[c]);
		cg->dir[c] = -1;
		if (rmdir(cg->path[c]) < 0 && errno != ENOENT)
			all = false; /* `caisson gc` tries again */
	}
	return all;
}
