/* SPDX-License-Identifier: Apache-2.0 */
/* The generated filters, run by a small interpreter over every number and many
 * arguments, against the lists they were made from.  The model below is written
 * from the meaning of the checks, not from the generator. */
#include "harness/t.h"

#include "sandbox/native/syscalls.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "gen/seccomp_filter.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define KILL     SECCOMP_RET_KILL_PROCESS
#define ALLOW    SECCOMP_RET_ALLOW
#define NOTIFY   SECCOMP_RET_USER_NOTIF
#define ERR(e)   (SECCOMP_RET_ERRNO | (e))

enum { NR_TESTED = 601 };

struct filter {
	const struct sock_filter *f;
	size_t n;
};
static const struct filter notify = { filter_notify, COUNT(filter_notify) };
static const struct filter plain = { filter_plain, COUNT(filter_plain) };
static const struct filter notify_setid = { filter_notify_setid, COUNT(filter_notify_setid) };
static const struct filter plain_setid = { filter_plain_setid, COUNT(filter_plain_setid) };
static const struct filter init = { filter_init, COUNT(filter_init) };

/* ---- the interpreter: exactly what the kernel lets a seccomp filter do ---- */

static uint32_t run(const struct filter *p, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < p->n; pc++) {
		const struct sock_filter *i = &p->f[pc];
		bool hit;

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (i->k & 3 || i->k + 4 > sizeof *d)
				T_FAIL("instruction %zu loads from %u", pc, i->k);
			memcpy(&a, (const char *)d + i->k, sizeof a);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			continue;
		case BPF_RET | BPF_K:
			return i->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			hit = a == i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			hit = a >= i->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			hit = (a & i->k) != 0;
			break;
		default:
			T_FAIL("instruction %zu has code 0x%x", pc, i->code);
		}
		pc += hit ? i->jt : i->jf;
	}
	T_FAIL("ran off the end");
	return 0;
}

/* ---- the model ---- */

enum check {
	NONE,
#define X(name, check) CHECK_##name,
	SYSCALLS_CHECK(X)
#undef X
};

struct fate {
	uint32_t plain, notify; /* without CHECK */
	enum check check;
	const char *name;
	unsigned lists;         /* in how many it stands */
};

static struct fate fates[NR_TESTED];

static void set(int nr, const char *name, uint32_t in_plain, uint32_t in_notify, enum check c)
{
	if (nr < 0 || nr >= NR_TESTED)
		T_FAIL("%s is number %d", name, nr);
	fates[nr] = (struct fate){ in_plain, in_notify, c, name, fates[nr].lists + 1 };
}

static void make_model(void)
{
	for (int nr = 0; nr < NR_TESTED; nr++)
		fates[nr] = (struct fate){ ERR(ENOSYS), ERR(ENOSYS), NONE, "(none)", 0 };
#define X(name) set(__NR_##name, #name, ALLOW, ALLOW, NONE);
	SYSCALLS_ALLOW(X)
#undef X
#define X(name) set(__NR_##name, #name, ERR(EPERM), NOTIFY, NONE);
	SYSCALLS_REFUSE(X)
#undef X
#define X(name) set(__NR_##name, #name, ERR(EPERM), ERR(EPERM), NONE);
	SYSCALLS_EPERM(X)
#undef X
#define X(name, check) set(__NR_##name, #name, 0, 0, CHECK_##name);
	SYSCALLS_CHECK(X)
#undef X
}

static uint32_t set_id(uint32_t mode)
{
	return mode & (S_ISUID | S_ISGID) ? ERR(EPERM) : ALLOW;
}

static uint32_t opened(uint32_t flags, uint32_t mode)
{
	/* Without O_DIRECTORY the bit of O_TMPFILE is EINVAL in the kernel: no harm in judging it too. */
	bool makes = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));

	return makes ? set_id(mode) : ALLOW;
}

static uint32_t node(uint32_t mode, uint32_t refuse)
{
	if (mode & (S_ISUID | S_ISGID))
		return ERR(EPERM);
	return S_ISCHR(mode) || S_ISBLK(mode) ? refuse : ALLOW;
}

static uint32_t socket_verdict(uint32_t family, uint32_t type, uint32_t protocol)
{
	switch (family) {
	case AF_UNIX:
		return ALLOW;
	case AF_INET:
	case AF_INET6:
		type &= 0xf;
		if (type != SOCK_STREAM && type != SOCK_DGRAM)
			return ERR(EPROTONOSUPPORT);
		return protocol == 0 || protocol == 6 || protocol == 17 ? ALLOW : ERR(EPROTONOSUPPORT);
	case AF_NETLINK:
		return protocol == NETLINK_ROUTE ? ALLOW : ERR(EPROTONOSUPPORT);
	default:
		return ERR(EAFNOSUPPORT);
	}
}

/* Arguments as the kernel takes them: the low 32 bits. */
static uint32_t want(int nr, const __u64 *args, bool with_notifier)
{
	const struct fate *f = &fates[nr];
	uint32_t a[6], refuse = with_notifier ? NOTIFY : ERR(EPERM);

	for (int i = 0; i < 6; i++)
		a[i] = (uint32_t)args[i];
	switch (f->check) {
	case NONE:
		return with_notifier ? f->notify : f->plain;
	case CHECK_chmod:
	case CHECK_fchmod:
	case CHECK_creat:
		return set_id(a[1]);
	case CHECK_fchmodat:
		return set_id(a[2]);
	case CHECK_open:
		return opened(a[1], a[2]);
	case CHECK_openat:
		return opened(a[2], a[3]);
	case CHECK_mknod:
		return node(a[1], refuse);
	case CHECK_mknodat:
		return node(a[2], refuse);
	case CHECK_clone:
		return a[0] & (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | 0x80) ? refuse
																		: ALLOW;
	case CHECK_ioctl:
		return a[1] == TIOCSTI || a[1] == TIOCLINUX || a[1] == TIOCSETD || a[1] == TIOCCONS ? refuse : ALLOW;
	case CHECK_personality:
		return a[0] == 0 || a[0] == 0xffffffff ? ALLOW : ERR(EPERM);
	case CHECK_seccomp:
		return a[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER ? ERR(EPERM) : ALLOW;
	case CHECK_socket:
		return socket_verdict(a[0], a[1], a[2]);
	case CHECK_socketpair:
		return a[0] == AF_UNIX ? ALLOW : ERR(EAFNOSUPPORT);
	case CHECK_connect:
		return with_notifier ? NOTIFY : ALLOW;
	case CHECK_sendmsg:
		return a[2] & (MSG_OOB | MSG_FASTOPEN) ? ERR(EPERM) : ALLOW;
	case CHECK_sendto:
	case CHECK_sendmmsg:
		return a[3] & (MSG_OOB | MSG_FASTOPEN) ? ERR(EPERM) : ALLOW;
	}
	T_FAIL("%s: a check without a model", f->name);
	return 0;
}

static void compare(const struct filter *p, const char *which, const struct seccomp_data *d, uint32_t expected)
{
	uint32_t got = run(p, d);

	if (got != expected)
		T_FAIL("%s: number %d (%s), args %llx %llx %llx %llx: 0x%x, want 0x%x", which, d->nr,
		       d->nr >= 0 && d->nr < NR_TESTED ? fates[d->nr].name : "?", (unsigned long long)d->args[0],
		       (unsigned long long)d->args[1], (unsigned long long)d->args[2], (unsigned long long)d->args[3], got, expected);
}

static bool is_chmod(int nr)
{
	return fates[nr].check == CHECK_chmod || fates[nr].check == CHECK_fchmod || fates[nr].check == CHECK_fchmodat;
}

static void both(struct seccomp_data *d)
{
	compare(&notify, "filter_notify", d, want(d->nr, d->args, true));
	compare(&plain, "filter_plain", d, want(d->nr, d->args, false));
	/* Where packages are installed chmod and its like set what they want; nothing else differs. */
	compare(&notify_setid, "filter_notify_setid", d, is_chmod(d->nr) ? ALLOW : want(d->nr, d->args, true));
	compare(&plain_setid, "filter_plain_setid", d, is_chmod(d->nr) ? ALLOW : want(d->nr, d->args, false));
}

/* ---- arguments worth trying ---- */

static const uint32_t values[] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 18, 29, 38, 40, 44, 58, 132, 136, 255, 0xf, 0x10, 0x11, 0x80, 0xff,
	0644, 0755, 01777, 02000, 02755, 04000, 04755, 06777, S_IFREG | 0644, S_IFIFO | 0600, S_IFSOCK, S_IFLNK, S_IFDIR,
	S_IFCHR, S_IFBLK, S_IFCHR | 0666, S_IFBLK | 04600, S_IFCHR | S_ISGID, O_CREAT, O_TMPFILE, O_DIRECTORY, O_RDWR | O_CREAT | O_EXCL,
	O_PATH, O_DIRECTORY | O_CLOEXEC, O_TRUNC, O_APPEND | O_WRONLY, CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET,
	CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_VM | CLONE_VFORK | 17, CLONE_THREAD | CLONE_VM | CLONE_SIGHAND, 17,
	TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, TIOCGWINSZ, FIONREAD, TIOCSTI | 0x10000, 0x8000, MSG_OOB, MSG_FASTOPEN, MSG_NOSIGNAL,
	MSG_OOB | MSG_DONTWAIT, SOCK_STREAM | SOCK_CLOEXEC, SOCK_DGRAM | SOCK_NONBLOCK, SOCK_RAW, SOCK_RAW | SOCK_CLOEXEC, SOCK_SEQPACKET,
	SOCK_PACKET, SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_FILTER_FLAG_TSYNC, 0x0040000, 0x0800000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
};

static const uint64_t garbage[] = { 0, 0x100000000ull, 0xffffffff00000000ull, 0xdeadbeef00000000ull, 0x8000000000000000ull };

static struct seccomp_data call(int nr)
{
	return (struct seccomp_data){ .nr = nr, .arch = FILTER_ARCH, .instruction_pointer = 0x7f0012345678 };
}

static uint64_t seed = 88172645463325252ull;
static uint64_t chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

TEST(no_number_stands_in_two_lists)
{
	make_model();
	for (int nr = 0; nr < NR_TESTED; nr++)
		if (fates[nr].lists > 1)
			T_FAIL("%s stands in %u lists", fates[nr].name, fates[nr].lists);
}

TEST(every_number_has_the_fate_its_list_says)
{
	make_model();
	for (int nr = 0; nr < NR_TESTED; nr++) {
		struct seccomp_data d = call(nr);

		both(&d);
	}
}

TEST(what_is_in_no_list_is_not_implemented)
{
	static const int absent[] = { __NR_clone3, __NR_openat2, __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register, 462, 463, 512, 547, 600 };

	make_model();
	for (size_t i = 0; i < COUNT(absent); i++) {
		struct seccomp_data d = call(absent[i]);

		T_INT(run(&notify, &d), ERR(ENOSYS));
		T_INT(run(&plain, &d), ERR(ENOSYS));
	}
}

TEST(each_argument_is_judged_whatever_stands_in_its_upper_half)
{
	make_model();
	for (int nr = 0; nr < NR_TESTED; nr++)
		for (int arg = 0; arg < 6; arg++)
			for (size_t v = 0; v < COUNT(values); v++)
				for (size_t g = 0; g < COUNT(garbage); g++) {
					struct seccomp_data d = call(nr);

					d.args[arg] = garbage[g] | values[v];
					both(&d);
				}
}

TEST(pairs_and_triples_of_arguments_of_checked_calls)
{
	make_model();
	for (int nr = 0; nr < NR_TESTED; nr++) {
		if (fates[nr].check == NONE)
			continue;
		for (size_t i = 0; i < COUNT(values); i++)
			for (size_t k = 0; k < COUNT(values); k++)
				for (int at = 0; at < 3; at++) {
					struct seccomp_data d = call(nr);

					d.args[at] = values[i];
					d.args[at + 1] = values[k] | garbage[(i + k) % COUNT(garbage)];
					both(&d);
				}
	}
	for (size_t i = 0; i < COUNT(values); i++)
		for (size_t k = 0; k < COUNT(values); k++)
			for (size_t l = 0; l < COUNT(values); l++) {
				struct seccomp_data d = call(__NR_socket);

				d.args[0] = values[i], d.args[1] = values[k], d.args[2] = values[l];
				both(&d);
			}
}

TEST(random_arguments)
{
	make_model();
	for (int i = 0; i < 2000000; i++) {
		struct seccomp_data d = call((int)(chance() % NR_TESTED));

		for (int k = 0; k < 6; k++)
			d.args[k] = i & 1 ? chance() : chance() << 32 | values[chance() % COUNT(values)];
		both(&d);
	}
}

TEST(set_id_bits_pass_nowhere)
{
	static const struct {
		int nr, flags, mode; /* which argument, -1: none */
		uint64_t with;
	} ways[] = { { __NR_chmod, -1, 1, 0 }, { __NR_fchmod, -1, 1, 0 }, { __NR_fchmodat, -1, 2, 0 }, { __NR_creat, -1, 1, 0 },
		     { __NR_open, 1, 2, O_CREAT }, { __NR_open, 1, 2, O_TMPFILE | O_RDWR }, { __NR_openat, 2, 3, O_CREAT | O_WRONLY },
		     { __NR_openat, 2, 3, O_TMPFILE | O_RDWR }, { __NR_mknod, -1, 1, 0 }, { __NR_mknodat, -1, 2, 0 },
		     { __NR_openat2, -1, 2, 0 }, { 452 /* fchmodat2 */, -1, 2, 0 } };

	for (size_t i = 0; i < COUNT(ways); i++)
		for (uint64_t mode = 0; mode < 010000; mode++) {
			struct seccomp_data d = call(ways[i].nr);
			uint32_t a, b;

			if (ways[i].flags >= 0)
				d.args[ways[i].flags] = ways[i].with;
			d.args[ways[i].mode] = mode;
			a = run(&notify, &d);
			b = run(&plain, &d);
			if (mode & 06000 && (a == ALLOW || b == ALLOW))
				T_FAIL("number %d passes mode %llo", ways[i].nr, (unsigned long long)mode);
		}
}

TEST(a_foreign_abi_is_killed)
{
	static const uint32_t arches[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64LE, AUDIT_ARCH_RISCV64, 0, 0xffffffff, FILTER_ARCH ^ 1,
					   FILTER_ARCH & 0x7fffffff, FILTER_ARCH ^ 0x40000000 };
	const struct filter *all[] = { &notify, &plain, &init };

	for (size_t f = 0; f < COUNT(all); f++)
		for (size_t i = 0; i < COUNT(arches); i++)
			for (int nr = 0; nr < NR_TESTED; nr++) {
				struct seccomp_data d = call(nr);

				d.arch = arches[i];
				T_INT(run(all[f], &d), KILL);
			}
}

#ifdef __x86_64__
TEST(the_x32_numbers_are_killed)
{
	const struct filter *all[] = { &notify, &plain, &init };

	for (size_t f = 0; f < COUNT(all); f++)
		for (uint32_t nr = 0; nr < NR_TESTED; nr++) {
			struct seccomp_data d = call((int)(nr | __X32_SYSCALL_BIT));

			T_INT(run(all[f], &d), KILL);
			d.nr = (int)(nr | 0x80000000u);
			T_INT(run(all[f], &d), KILL);
			d.nr = -1 - (int)nr;
			T_INT(run(all[f], &d), KILL);
		}
}
#endif

TEST(process_1_may_do_what_its_list_says_and_nothing_else)
{
	bool may[NR_TESTED] = { false };

#define X(name) may[__NR_##name] = true;
	SYSCALLS_INIT(X)
#undef X
	for (int nr = 0; nr < NR_TESTED; nr++)
		for (size_t v = 0; v < COUNT(values); v++) {
			struct seccomp_data d = call(nr);

			for (int k = 0; k < 6; k++)
				d.args[k] = values[(v + (size_t)k) % COUNT(values)];
			T_INT(run(&init, &d), may[nr] ? ALLOW : KILL);
		}
}

static void well_formed(const struct filter *p)
{
	T_TRUE(p->n > 0 && p->n <= BPF_MAXINSNS);
	T_INT(BPF_CLASS(p->f[p->n - 1].code), BPF_RET);
	for (size_t i = 0; i < p->n; i++) {
		const struct sock_filter *f = &p->f[i];

		if (BPF_CLASS(f->code) != BPF_JMP)
			continue;
		if (BPF_OP(f->code) == BPF_JA)
			T_TRUE(i + 1 + f->k < p->n);
		else
			T_TRUE(i + 1 + f->jt < p->n && i + 1 + f->jf < p->n);
	}
}

TEST(no_jump_leaves_a_program_and_each_is_short)
{
	well_formed(&notify);
	well_formed(&plain);
	well_formed(&init);
	t_note("instructions: notify %zu, plain %zu, init %zu", notify.n, plain.n, init.n);
}
