/* SPDX-License-Identifier: Apache-2.0 */
/* layer_probe.c - can a layer be kept in a directory?  Asked by mounting one,
 * in a child with the namespaces that a sandbox would have. */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Exit statuses of the child beside errno's. */
enum { LACKS_SOMETHING = 200, CANNOT_MAP = 201 };

static const char *const parts[] = { "up", "wk", "lo", "at" };

struct trial {
	int dir;    /* holds the parts */
	int userns; /* maps their owner; -1: rootless */
	struct native_ids ids;
};

static int layer_of(const struct trial *t, int dir)
{
	CS_FD int mapped = t->userns < 0 ? -1 : native_clone_attached(dir, t->userns, dir, "at");
	CS_FD int up = -1, wk = -1, lo = -1, fd = -1;
	struct native_overlay o = { .n_lowers = 1, .scratch = -1, .userxattr = t->userns < 0, .disk = true };

	if (t->userns >= 0 && mapped < 0)
		return CANNOT_MAP;
	if (mapped >= 0)
		dir = mapped;
	up = o.upper = openat(dir, "up", O_PATH | O_DIRECTORY | O_CLOEXEC);
	wk = o.work = openat(dir, "wk", O_PATH | O_DIRECTORY | O_CLOEXEC);
	lo = openat(dir, "lo", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (up < 0 || wk < 0 || lo < 0)
		return errno;
	if (native_store_lacks(dir, wk, o.userxattr))
		return LACKS_SOMETHING;
	o.lowers = &lo;
	fd = native_overlay_mount(&o);
	return fd < 0 ? errno : 0;
}

static _Noreturn void try_layer(const struct trial *t)
{
	struct mount_attr private = { .propagation = MS_PRIVATE };
	CS_FD int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (t->userns < 0 && native_write_maps(proc, "self", 0, t->ids.uid, 0, t->ids.gid) < 0)
		_exit(errno);
	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof private) < 0)
		_exit(errno);
	dir = native_reopen(proc, t->dir);
	_exit(dir < 0 ? errno : layer_of(t, dir));
}

static int judge(int status, struct cs_err *err)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;

	if (code == 0)
		return 0;
	if (code == LACKS_SOMETHING)
		return cs_fail(err, CS_E_UNSUPPORTED, 0, "that file system has no extended attributes, or does not list the types of files");
	if (code == CANNOT_MAP)
		return cs_fail(err, CS_E_UNSUPPORTED, 0, "that file system cannot map ids");
	return cs_fail(err, CS_E_UNSUPPORTED, code, "overlayfs cannot keep a layer in that directory");
}

static int run_trial(struct trial *t, struct cs_err *err)
{
	struct clone_args a = { .flags = CLONE_NEWNS, .exit_signal = SIGCHLD };
	struct native_holder *holder = cs_new(struct native_holder);
	CS_FREE void *free_holder = holder;
	struct stat st;
	int status = 0;
	pid_t pid;

	if (!t->ids.ranged)
		a.flags |= CLONE_NEWUSER;
	else if (fstat(t->dir, &st) < 0 || (t->userns = native_idmap_userns(&t->ids, st.st_uid, st.st_gid, false, holder, err)) < 0)
		return -CS_E_SYSTEM;
	pid = sys_clone3(&a);
	if (pid == 0)
		try_layer(t);
	native_idmap_reap(holder);
	if (t->userns >= 0)
		close(t->userns);
	if (pid < 0)
		return cs_fail(err, CS_E_UNSUPPORTED, errno, "new namespaces are refused here");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return judge(status, err);
}

static int make_parts(int dir, const char *name)
{
	int fd;

	if (mkdirat(dir, name, 0700) < 0)
		return -1;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; fd >= 0 && i < sizeof parts / sizeof *parts; i++)
		(void)mkdirat(fd, parts[i], 0700); /* whose absence the trial reports */
	return fd;
}

static void remove_parts(int dir, int fd, const char *name)
{
	CS_FD int wk = openat(fd, "wk", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (wk >= 0) {
		native_overlay_unmark(wk);
		(void)unlinkat(wk, "work", AT_REMOVEDIR);
	}
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		(void)unlinkat(fd, parts[i], AT_REMOVEDIR);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

int sandbox_layer_probe(int dir, struct cs_err *err)
{
	struct trial t = { .userns = -1 };
	CS_FD int fd = -1;
	char name[48];
	int r;

	snprintf(name, sizeof name, ".caisson-probe-%d", (int)getpid());
	r = native_ids_pick(&t.ids, false, false, err);
	if (r < 0)
		return r;
	fd = t.dir = make_parts(dir, name);
	r = fd < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "make a directory to try a layer in") : run_trial(&t, err);
	remove_parts(dir, fd, name);
	native_ids_done(&t.ids);
	return r;
}
