/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/native/internal.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "gen/seccomp_filter.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS      SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int load(const struct sock_filter *f, size_t n, unsigned flags)
{
	struct sock_fprog prog = { .len = (unsigned short)n, .filter = (struct sock_filter *)(uintptr_t)f };

	return sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, &prog);
}

/* Installers make set-id files.  In a layer they mean nothing: every mount inside is nosuid, layers in memory end with
 * the sandbox, and what is committed is judged.  A directory that is written for real has none of that. */
static bool may_set_ids(const struct native_plan *p)
{
	for (size_t i = 0; i < p->spec->n_binds; i++)
		if (p->binds[i]->kind == SANDBOX_RW)
			return false;
	return p->ids.root;
}

static int load_plain(const struct native_plan *p)
{
	return may_set_ids(p) ? load(filter_plain_setid, COUNT(filter_plain_setid), 0) : load(filter_plain, COUNT(filter_plain), 0);
}

static int load_notify(const struct native_plan *p, unsigned more)
{
	unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | more;

	return may_set_ids(p) ? load(filter_notify_setid, COUNT(filter_notify_setid), flags) : load(filter_notify, COUNT(filter_notify), flags);
}

int native_filter_payload(struct native_plan *p, int *ret_listener)
{
	int fd;

	*ret_listener = -1;
	if (!p->spec->notify)
		return load_plain(p);
	fd = load_notify(p, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	if (fd < 0 && errno == EINVAL) /* before Linux 5.19 */
		fd = load_notify(p, 0);
	if (fd < 0 && (errno == EINVAL || errno == EBUSY)) /* no notifier, or another one above us */
		return load_plain(p);
	if (fd < 0)
		return -1;
	/* Who waits for the answer leaves its CPU to who gives it: 7 us for a connect(2) instead of up to 50.  Since Linux 6.6. */
	(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	*ret_listener = fd;
	return 0;
}

/* Where whole CPUs stand in for a share, the program must not give itself more of them. */
int native_filter_affinity(void)
{
	static const struct sock_filter deny[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr) },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 1, __NR_sched_setaffinity },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW }, /* the main filter judges the ABI */
	};

	return load(deny, COUNT(deny), 0);
}

/* A layer on disk is held to its limit by looking often enough.  Writing cannot outrun that, but
 * space reserved without writing can, by far: file systems need not support it, and programs know.
 * A little at a time can be reserved; who asks for more writes zeros instead. */
int native_filter_reserving(void)
{
	enum { LENGTH = offsetof(struct seccomp_data, args[3]), LITTLE = 256 << 10 };
	static const struct sock_filter deny[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr) },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 7, __NR_fallocate },
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args[1]) }, /* little-endian: the low half */
		{ BPF_JMP | BPF_JSET | BPF_K, 5, 0, 2 /* FALLOC_FL_PUNCH_HOLE gives back */ },
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, LENGTH + 4 },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0 },
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, LENGTH },
		{ BPF_JMP | BPF_JGT | BPF_K, 0, 1, LITTLE },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EOPNOTSUPP },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
	};

	return load(deny, COUNT(deny), 0);
}

int native_filter_init(void)
{
	return load(filter_init, COUNT(filter_init), 0);
}
