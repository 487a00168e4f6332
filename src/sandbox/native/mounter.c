/* SPDX-License-Identifier: Apache-2.0 */
/* mounter.c - puts a new layer over a bind of a running sandbox.
 *
 * Process 1 has given up the power to mount, and must not have it while
 * commands run.  So a helper on the host's side keeps it: a child of the
 * caller, in the host's process namespace, which nothing inside can see or
 * reach.  As root it has the sandbox's id, because overlayfs works with the
 * ids of who mounts; rootless it is in the builder's user namespace.
 *
 * Layers must be of the mount namespace of who mounts, so it has one of its
 * own, a copy of the caller's.  A mount is made there, detached; to attach it
 * or take it away the helper enters the sandbox's mount namespace for a
 * moment.  No process of the sandbox's lives at that time but ours.
 *
 * The old mount goes before the new one is made, because its upper layer will
 * be a lower one, and overlayfs warns in the kernel's log where a layer is in
 * use twice.  If the new one cannot be made, the old one is made again.
 *
 * Layers that were opened (and as root mapped) are kept while they are in use:
 * each mount that goes away costs an RCU grace period.
 */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <linux/securebits.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PUSH_LOWERS_MAX = 250 }; /* the kernel passes 253 descriptors in one message */

struct push {
	uint32_t bind; /* of the plan, which has its own order */
	uint32_t n_lowers;
};

/* A directory of the caller's, as a layer of ours. */
struct known {
	dev_t dev;
	ino_t ino;
	int fd;
	size_t bind;
	unsigned used; /* in which push */
	unsigned at;   /* where it is attached: a directory of scratch; 0: not */
};

/* The layers of one bind. */
struct pile {
	size_t bind;
	int dir, upper, work; /* upper and work are its own, all else belongs to known */
	int *lowers;
	size_t n;
};

struct mounter {
	struct native_plan *p;
	int sock;
	int inside, own; /* mount namespaces */
	int scratch;     /* a tmpfs of ours */
	int *bases;      /* per bind, -1: not opened yet */
	struct pile *piles; /* per bind: what is there now */
	struct known *known;
	size_t n_known;
	unsigned push, places, desks;
};

static int fail(struct mounter *m, const char *what)
{
	return cs_fail(&m->p->report->err, CS_E_SYSTEM, errno, "%s", what);
}

/* ---- layers ---- */

static struct known *find(struct mounter *m, const struct stat *st, size_t bind)
{
	for (size_t i = 0; i < m->n_known; i++)
		if (m->known[i].dev == st->st_dev && m->known[i].ino == st->st_ino && m->known[i].bind == bind)
			return &m->known[i];
	return NULL;
}

static void remember(struct mounter *m, const struct stat *st, size_t bind, int take_fd, unsigned at)
{
	m->known = realloc(m->known, (m->n_known + 1) * sizeof *m->known);
	if (!m->known)
		abort();
	m->known[m->n_known++] = (struct known){ st->st_dev, st->st_ino, take_fd, bind, m->push, at };
}

/* Ours for a directory of the caller's; stays ours to close. */
static int layer_for(struct mounter *m, size_t bind, int given)
{
	int userns = m->p->idmap[bind];
	CS_FD int here = -1;
	struct known *k;
	struct stat st;
	char name[24];

	if (fstat(given, &st) < 0)
		return -1;
	k = find(m, &st, bind);
	if (k) {
		k->used = m->push;
		return k->fd;
	}
	here = native_reopen(m->p->proc_fd, given);
	if (here < 0)
		return -1;
	if (userns >= 0) {
		CS_FD int plain = CS_TAKE_FD(here);

		snprintf(name, sizeof name, "at%u", ++m->places);
		here = native_clone_attached(plain, userns, m->scratch, name);
		if (here < 0)
			return -1;
	}
	remember(m, &st, bind, here, userns >= 0 ? m->places : 0);
	return CS_TAKE_FD(here);
}

static int base_for(struct mounter *m, size_t bind, struct stat *st)
{
	const struct sandbox_bind *b = m->p->binds[bind];
	CS_FD int src = -1;

	if (m->bases[bind] < 0) {
		src = sys_open_path(b->source);
		if (src < 0)
			return -1;
		m->p->tmpfs_fd = m->scratch;
		m->bases[bind] = native_open_base(m->p, bind, src, m->p->idmap[bind]);
	}
	return m->bases[bind] < 0 || fstat(m->bases[bind], st) < 0 ? -1 : m->bases[bind];
}

static void drop(struct pile *pl)
{
	cs_close_p(&pl->upper);
	cs_close_p(&pl->work);
	free(pl->lowers);
	*pl = (struct pile){ .dir = -1, .upper = -1, .work = -1 };
}

/* given: the store, then the older layers. */
static int gather(struct mounter *m, size_t bind, const int *given, size_t n, struct pile *ret)
{
	struct pile pl = { .bind = bind, .upper = -1, .work = -1, .n = n - 1, .lowers = cs_calloc(n, sizeof *pl.lowers) };
	struct stat st;
	int up;

	for (size_t i = 1; i < n; i++)
		if ((pl.lowers[i - 1] = layer_for(m, bind, given[i])) < 0) {
			(void)fail(m, "open an older layer");
			goto give_up;
		}
	pl.dir = layer_for(m, bind, given[0]); /* NOLINT(clang-analyzer-core.CallAndMessage): there is always one */
	if (pl.dir < 0) {
		(void)(errno == EINVAL ? native_store_unmapped(m->p, errno, m->p->binds[bind]->source) : fail(m, "open the layer on disk"));
		goto give_up;
	}
	if (native_store_parts(m->p, m->p->binds[bind], pl.dir, &pl.upper, &pl.work) < 0)
		goto give_up;
	up = fstat(pl.upper, &st) < 0 || find(m, &st, bind) ? -1 : fcntl(pl.upper, F_DUPFD_CLOEXEC, 3);
	if (up >= 0)
		remember(m, &st, bind, up, 0); /* it will be a lower one day */
	*ret = pl;
	return 0;
give_up:
	drop(&pl);
	return -1;
}

static int check(struct mounter *m, const struct pile *pl)
{
	struct stat below;

	if (base_for(m, pl->bind, &below) < 0)
		return fail(m, "open what the layer lies over");
	if (pl->n)
		(void)fstat(pl->lowers[0], &below);
	return native_store_check(m->p, m->p->binds[pl->bind], pl->dir, pl->upper, pl->work, &below);
}

/* ---- in the sandbox's mount namespace ---- */

/* Standing in the directory that holds the target; overlay -1: take away what is there. */
static int change(struct mounter *m, int overlay, const char *target)
{
	const uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	const char *name = strrchr(target, '/') + 1;
	CS_FREE char *parent = cs_strndup(target, (size_t)(name - target));
	CS_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1, to = -1;

	dir = root < 0 ? -1 : sys_openat2(root, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, resolve);
	if (dir < 0 || fchdir(dir) < 0)
		return fail(m, "find the layer's place");
	if (overlay < 0)
		return umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? fail(m, "take the old layer away") : 0;
	to = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0 || move_mount(overlay, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return fail(m, "attach the new layer");
	return 0;
}

static int change_inside(struct mounter *m, int overlay, size_t bind)
{
	int r;

	if (setns(m->inside, CLONE_NEWNS) < 0)
		return fail(m, "enter the sandbox's mount namespace");
	r = change(m, overlay, native_target(m->p->binds[bind]));
	if (setns(m->own, CLONE_NEWNS) < 0)
		_exit(125); /* nothing more can be done from here */
	return r;
}

/* A directory of its own for each overlay: what is made in there has the same names every time. */
static int open_desk(struct mounter *m)
{
	char name[24];

	snprintf(name, sizeof name, "%u", ++m->desks);
	if (mkdirat(m->scratch, name, 0700) < 0)
		return -1;
	return openat(m->scratch, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int put_up(struct mounter *m, const struct pile *pl)
{
	struct native_layers l = { .upper = pl->upper, .work = pl->work, .lowers = pl->lowers, .n_lowers = pl->n, .disk = true };
	CS_FD int desk = open_desk(m), overlay = -1;
	struct stat st;

	l.base = base_for(m, pl->bind, &st);
	if (desk < 0 || l.base < 0)
		return fail(m, "open what the layer lies over");
	m->p->tmpfs_fd = desk;
	overlay = native_layer_mount(m->p, pl->bind, &st, &l);
	return overlay < 0 ? -1 : change_inside(m, overlay, pl->bind);
}

/* The new one, or else the old one again. */
static int replace(struct mounter *m, struct pile *pl)
{
	struct pile *old = &m->piles[pl->bind];
	struct cs_err why;

	if (change_inside(m, -1, pl->bind) < 0)
		return -1;
	if (put_up(m, pl) == 0) {
		drop(old);
		*old = *pl;
		return 0;
	}
	why = m->p->report->err;
	if (put_up(m, old) == 0)
		m->p->report->err = why;
	else
		m->p->report->err.code = CS_E_SYSTEM;
	return -1;
}

/* ---- what is left over ---- */

/* NOLINTNEXTLINE(misc-no-recursion): a mask is as deep as a path */
static void remove_tree(int dir, const char *name)
{
	CS_FD int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CS_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (d) {
		(void)CS_TAKE_FD(fd);
		while ((e = readdir(d)))
			if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
				remove_tree(dirfd(d), e->d_name);
	}
	(void)unlinkat(dir, name, d ? AT_REMOVEDIR : 0); /* what is still mounted stays until we end */
}

static void forget(struct mounter *m, struct known *k)
{
	char name[24], path[64];

	close(k->fd);
	if (k->at) {
		snprintf(name, sizeof name, "at%u", k->at);
		snprintf(path, sizeof path, "/proc/self/fd/%d/%s", m->scratch, name);
		(void)umount2(path, MNT_DETACH);
		(void)unlinkat(m->scratch, name, AT_REMOVEDIR);
	}
	*k = m->known[--m->n_known];
}

static bool has_inode(const struct pile *pl, dev_t dev, ino_t ino)
{
	struct stat st;

	if (fstat(pl->upper, &st) == 0 && st.st_dev == dev && st.st_ino == ino)
		return true;
	for (size_t i = 0; i < pl->n; i++)
		if (fstat(pl->lowers[i], &st) == 0 && st.st_dev == dev && st.st_ino == ino)
			return true;
	return false;
}

/* A store is needed as long as its `up` is: that was opened below it. */
static bool is_needed(const struct mounter *m, const struct known *k)
{
	const struct pile *pl = &m->piles[k->bind];
	struct stat up;

	if (k->used == m->push || k->fd == pl->dir || has_inode(pl, k->dev, k->ino))
		return true;
	return fstatat(k->fd, "up", &up, AT_SYMLINK_NOFOLLOW) == 0 && has_inode(pl, up.st_dev, up.st_ino);
}

/* After the answer, so that nobody waits for it. */
static void tidy(struct mounter *m)
{
	char name[24];

	for (size_t i = 0; i < m->n_known;)
		if (is_needed(m, &m->known[i]))
			i++;
		else
			forget(m, &m->known[i]);
	for (unsigned d = m->desks - (m->desks > 2 ? 2 : m->desks); d < m->desks; d++) {
		snprintf(name, sizeof name, "%u", d);
		remove_tree(m->scratch, name);
	}
}

/* ---- requests ---- */

static int serve_push(struct mounter *m, const struct push *q, const int *fds, size_t n)
{
	struct pile pl;
	int r;

	memset(&m->p->report->err, 0, sizeof m->p->report->err);
	m->push++;
	if (q->bind >= m->p->spec->n_binds || n != q->n_lowers + 1u)
		return cs_fail(&m->p->report->err, CS_E_INVALID, 0, "a layer's descriptors got lost");
	if (gather(m, q->bind, fds, n, &pl) < 0)
		return -1;
	r = check(m, &pl) < 0 ? -1 : replace(m, &pl);
	if (r < 0)
		drop(&pl);
	return r;
}

/* What process 1 mounts at this moment, for the day when it has to be mounted again. */
static int gather_first(struct mounter *m)
{
	for (size_t i = 0; i < m->p->spec->n_binds; i++) {
		const struct sandbox_bind *b = m->p->binds[i];
		size_t n = b->n_lowers + 1;
		CS_FREE int *given = cs_calloc(n, sizeof *given);
		struct stat st;

		m->piles[i] = (struct pile){ .dir = -1, .upper = -1, .work = -1 };
		if (b->kind != SANDBOX_LAYER || !b->store)
			continue;
		given[0] = b->store;
		for (size_t k = 1; k < n; k++)
			given[k] = b->lowers[k - 1];
		if (gather(m, i, given, n, &m->piles[i]) < 0 || base_for(m, i, &st) < 0)
			return -1;
	}
	return 0;
}

static bool serve(struct mounter *m)
{
	int fds[PUSH_LOWERS_MAX + 1];
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(PUSH_LOWERS_MAX + 1)];
	struct push q = { 0 };
	struct iovec iov = { &q, sizeof q };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	size_t n;

	if (recvmsg(m->sock, &msg, MSG_CMSG_CLOEXEC) != sizeof q)
		return false;
	n = sys_take_fds(&msg, fds, PUSH_LOWERS_MAX + 1);
	(void)serve_push(m, &q, fds, n);
	if (send(m->sock, &m->p->report->err, sizeof m->p->report->err, MSG_NOSIGNAL) < 0)
		return false;
	while (n)
		close(fds[--n]);
	tidy(m);
	return true;
}

/* ---- becoming it ---- */

/* Process 1 writes its namespace's maps; before that nobody there owns anything. */
static int wait_for_maps(pid_t caller)
{
	char text[64];

	/* Entering the namespace takes away the signal at the caller's death. */
	for (int ms = 0; ms < 5000 && getppid() == caller; ms++) {
		if (sys_get(AT_FDCWD, "/proc/self/uid_map", text, sizeof text) > 0)
			return 0;
		(void)poll(NULL, 0, 1);
	}
	return -1;
}

static int take_power(struct mounter *m, int userns)
{
	const struct native_ids *ids = &m->p->ids;
	pid_t caller = getppid();

	if (userns >= 0)
		return setns(userns, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0 ? -1 : wait_for_maps(caller);
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(ids->gid, ids->gid, ids->gid) < 0 || setresuid(ids->uid, ids->uid, ids->uid) < 0)
		return -1;
	return 0;
}

/* Where no layer can lie. */
static int make_scratch(struct mounter *m)
{
	static const char *const places[] = { "/sys", "/dev", "/proc/tty" };
	CS_FD int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0700", 0) < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	m->scratch = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	for (size_t i = 0; m->scratch >= 0 && i < sizeof places / sizeof *places; i++)
		if (move_mount(m->scratch, "", AT_FDCWD, places[i], MOVE_MOUNT_F_EMPTY_PATH) == 0)
			return 0;
	return -1;
}

static int close_others(struct mounter *m)
{
	struct native_plan *p = m->p;
	size_t n = p->spec->n_binds, k = 0;
	CS_FREE int *keep = cs_calloc(5 + 4 * n + m->n_known, sizeof *keep);
	int null;

	keep[k++] = m->sock;
	keep[k++] = m->inside;
	keep[k++] = m->own;
	keep[k++] = m->scratch;
	keep[k++] = p->proc_fd;
	for (size_t i = 0; i < n; i++) {
		keep[k++] = p->idmap[i];
		keep[k++] = m->bases[i];
		keep[k++] = m->piles[i].upper;
		keep[k++] = m->piles[i].work;
	}
	for (size_t i = 0; i < m->n_known; i++)
		keep[k++] = m->known[i].fd;
	if (native_close_but(keep, k) < 0)
		return -1;
	null = open("/dev/null", O_RDWR | O_CLOEXEC); /* 0, or one that is free */
	for (int i = 0; i < 3; i++)
		if (fcntl(i, F_GETFD) < 0 && dup2(null, i) < 0)
			return -1;
	return 0;
}

static _Noreturn void mounter(struct native_plan *p, int sock, int inside, int userns)
{
	struct mount_attr private = { .propagation = MS_PRIVATE };
	struct mounter m = { .p = p, .sock = sock, .inside = inside };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	p->report = cs_new(struct native_report); /* the shared page is not ours to write to */
	m.bases = cs_calloc(p->spec->n_binds, sizeof *m.bases);
	m.piles = cs_calloc(p->spec->n_binds, sizeof *m.piles);
	for (size_t i = 0; i < p->spec->n_binds; i++)
		m.bases[i] = -1;
	if (take_power(&m, userns) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof private) < 0)
		_exit(125);
	p->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	m.own = openat(p->proc_fd, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	umask(022);
	if (p->proc_fd < 0 || m.own < 0 || make_scratch(&m) < 0 || gather_first(&m) < 0 || close_others(&m) < 0)
		_exit(125);
	while (serve(&m)) /* false also when the caller has gone, before PDEATHSIG was set */
		;
	_exit(0);
}

/* ---- the caller's side ---- */

int native_mounter_start(struct sandbox *s, struct native_plan *p, struct cs_err *err)
{
	struct clone_args a = { .flags = p->builder_userns ? 0 : CLONE_NEWNS, .exit_signal = SIGCHLD };
	CS_FD int user = -1, mnt = -1;
	char path[64];
	int pair[2];

	/* Now, while the child can still be looked at: later only root could. */
	snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)s->pid);
	mnt = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)s->pid);
	if (p->builder_userns)
		user = open(path, O_RDONLY | O_CLOEXEC);
	if (mnt < 0 || (p->builder_userns && user < 0))
		return cs_fail(err, CS_E_SYSTEM, errno, "look at the sandbox's namespaces");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make a socket pair");
	s->mount_sock = pair[0];
	s->mounter = sys_clone3(&a);
	if (s->mounter == 0)
		mounter(p, pair[1], mnt, user);
	close(pair[1]);
	return s->mounter < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "start the helper that mounts") : 0;
}

int native_mounter_push(struct sandbox *s, size_t bind, int store, const int *lowers, size_t n_lowers, struct cs_err *err)
{
	struct push q = { .bind = (uint32_t)s->order[bind], .n_lowers = (uint32_t)n_lowers };
	int fds[PUSH_LOWERS_MAX + 1];
	_Alignas(struct cmsghdr) char control[SYS_FDS_ROOM(PUSH_LOWERS_MAX + 1)] = { 0 };
	struct iovec iov = { &q, sizeof q };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cs_err got;

	if (n_lowers > PUSH_LOWERS_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "%zu layers, at most %d", n_lowers, PUSH_LOWERS_MAX);
	fds[0] = store;
	for (size_t i = 0; i < n_lowers; i++)
		fds[i + 1] = lowers[i];
	sys_put_fds(&m, control, fds, n_lowers + 1);
	if (sendmsg(s->mount_sock, &m, MSG_NOSIGNAL) != sizeof q || recv(s->mount_sock, &got, sizeof got, 0) != sizeof got)
		return cs_fail(err, CS_E_SYSTEM, errno, "the helper that mounts is gone");
	if (got.code == CS_OK)
		return 0;
	if (err)
		*err = got;
	return -(int)got.code;
}

void native_mounter_done(struct sandbox *s)
{
	if (s->mount_sock >= 0)
		close(s->mount_sock);
	s->mount_sock = -1;
	if (s->mounter > 0) {
		kill(s->mounter, SIGKILL);
		while (waitpid(s->mounter, NULL, 0) < 0 && errno == EINTR)
			;
	}
	s->mounter = 0;
}
