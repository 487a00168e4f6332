/* SPDX-License-Identifier: Apache-2.0 */
/* gen_seccomp.c - prints the system-call filters as C arrays.
 *
 * Loading a filter costs about 0.6 us per instruction (the kernel compiles it),
 * so the filter is a balanced tree over *ranges* of numbers with the same fate,
 * not a list of numbers, and argument checks are shared by label.
 *
 * Programs are written with labels and resolved at the end; nothing here
 * counts a jump by hand.  tests/unit/test_filter.c runs the result over every
 * number with an interpreter and compares it with the lists.
 */
#include "sandbox/native/syscalls.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <linux/netlink.h>

#if defined __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "no system-call list for this architecture yet"
#endif

enum { NR_MAX = 512, MAX_INSNS = 1024 };

/* Fates and checks are labels: where the tree jumps to. */
#define LABELS(X)                                                                                     \
	X(allow) X(enosys) X(eperm) X(refuse) X(kill) X(afnosupport) X(protonosupport) \
	X(mode1) X(mode2) X(made1) X(node1) X(node2) X(open) X(openat) X(clone) X(ioctl) X(personality) X(seccomp) \
	X(socket) X(socketpair) X(connect) X(send2) X(send3) X(inet) X(inet_proto) X(netlink) X(mode_bits) X(node_bits) X(send_bits)
enum label {
#define X(l) L_##l,
	LABELS(X)
#undef X
	L_TREE /* first of the tree's own labels */
};

struct insn {
	struct sock_filter f;
	int jt, jf; /* labels, -1: fall through */
};

struct prog {
	struct insn in[MAX_INSNS];
	int n;
	int at[MAX_INSNS]; /* label -> index, -1 unset */
	int labels;
	bool used[MAX_INSNS];
};

static int fate[NR_MAX];

static void die(const char *what)
{
	fprintf(stderr, "gen_seccomp: %s\n", what);
	exit(1);
}

static void emit(struct prog *p, uint16_t code, uint32_t k, int jt, int jf)
{
	if (p->n == MAX_INSNS)
		die("program too long");
	p->in[p->n++] = (struct insn){ .f = { .code = code, .k = k }, .jt = jt, .jf = jf };
	if (jt >= 0)
		p->used[jt] = true;
	if (jf >= 0)
		p->used[jf] = true;
}

static void place(struct prog *p, int label)
{
	p->at[label] = p->n;
}

static void load(struct prog *p, size_t off)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)off, -1, -1);
}

/* The kernel uses the low 32 bits of these arguments; so do we (CVE-2019-10063). */
static void load_arg(struct prog *p, int i)
{
	load(p, offsetof(struct seccomp_data, args) + 8 * (size_t)i);
}

static void jeq(struct prog *p, uint32_t k, int jt, int jf)
{
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, k, jt, jf);
}

static void jset(struct prog *p, uint32_t k, int jt, int jf)
{
	emit(p, BPF_JMP | BPF_JSET | BPF_K, k, jt, jf);
}

static void and(struct prog *p, uint32_t k)
{
	emit(p, BPF_ALU | BPF_AND | BPF_K, k, -1, -1);
}

static void go(struct prog *p, int label)
{
	emit(p, BPF_JMP | BPF_JA, 0, label, -1);
}

static void ret(struct prog *p, int label, uint32_t value)
{
	if (!p->used[label])
		return;
	place(p, label);
	emit(p, BPF_RET | BPF_K, value, -1, -1);
}

/* ---- the tree ---- */

struct range {
	uint32_t from;
	int label;
};

static void tree(struct prog *p, const struct range *r, int lo, int hi)
{
	int mid, high;

	if (lo == hi) {
		go(p, r[lo].label);
		return;
	}
	mid = (lo + hi + 1) / 2;
	/* Leaves on either side need no instruction of their own. */
	high = mid == hi ? r[hi].label : p->labels++;
	if (lo == mid - 1) {
		emit(p, BPF_JMP | BPF_JGE | BPF_K, r[mid].from, high, r[lo].label);
	} else {
		emit(p, BPF_JMP | BPF_JGE | BPF_K, r[mid].from, high, -1);
		tree(p, r, lo, mid - 1);
	}
	if (mid != hi) {
		place(p, high);
		tree(p, r, mid, hi);
	}
}

static int ranges(struct range *r)
{
	int n = 0;

	for (int nr = 0; nr < NR_MAX; nr++)
		if (n == 0 || r[n - 1].label != fate[nr])
			r[n++] = (struct range){ (uint32_t)nr, fate[nr] };
	return n;
}

/* ---- argument checks ---- */

/* set_ids: files may be made set-id by chmod(2) and its like; by nothing else, since nothing else is how it is done. */
static void checks(struct prog *p, bool set_ids)
{
	/* set-id bits: a file made inside could be run outside */
	place(p, L_open);
	load_arg(p, 1);
	jset(p, O_CREAT | (O_TMPFILE & ~O_DIRECTORY), -1, L_allow);
	load_arg(p, 2);
	go(p, L_mode_bits);
	place(p, L_openat);
	load_arg(p, 2);
	jset(p, O_CREAT | (O_TMPFILE & ~O_DIRECTORY), -1, L_allow);
	load_arg(p, 3);
	go(p, L_mode_bits);
	place(p, L_made1);
	if (!set_ids)
		place(p, L_mode1);
	load_arg(p, 1);
	go(p, L_mode_bits);
	if (!set_ids)
		place(p, L_mode2);
	load_arg(p, 2);
	place(p, L_mode_bits);
	jset(p, S_ISUID | S_ISGID, L_eperm, L_allow);
	if (set_ids) {
		place(p, L_mode1);
		place(p, L_mode2);
		go(p, L_allow);
	}

	place(p, L_node1);
	load_arg(p, 1);
	go(p, L_node_bits);
	place(p, L_node2);
	load_arg(p, 2);
	place(p, L_node_bits);
	jset(p, S_ISUID | S_ISGID, L_eperm, -1);
	and(p, S_IFMT);
	jeq(p, S_IFCHR, L_refuse, -1);
	jeq(p, S_IFBLK, L_refuse, L_allow);

	place(p, L_clone);
	load_arg(p, 0);
	jset(p, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
			CLONE_NEWCGROUP | 0x80 /* CLONE_NEWTIME, in clone the exit signal's top bit: never valid */,
	     L_refuse, L_allow);

	place(p, L_ioctl);
	load_arg(p, 1);
	jeq(p, TIOCSTI, L_refuse, -1);
	jeq(p, TIOCLINUX, L_refuse, -1);
	jeq(p, TIOCSETD, L_refuse, -1);
	jeq(p, TIOCCONS, L_refuse, L_allow);

	place(p, L_personality);
	load_arg(p, 0);
	jeq(p, 0, L_allow, -1);
	jeq(p, 0xffffffff, L_allow, L_eperm);

	place(p, L_seccomp);
	load_arg(p, 1);
	jset(p, SECCOMP_FILTER_FLAG_NEW_LISTENER, L_eperm, L_allow);

	place(p, L_socket);
	load_arg(p, 0);
	jeq(p, AF_UNIX, L_allow, -1);
	jeq(p, AF_INET, L_inet, -1);
	jeq(p, AF_INET6, L_inet, -1);
	jeq(p, AF_NETLINK, L_netlink, L_afnosupport);
	place(p, L_inet);
	load_arg(p, 1);
	and(p, 0xf);
	jeq(p, SOCK_STREAM, L_inet_proto, -1);
	jeq(p, SOCK_DGRAM, L_inet_proto, L_protonosupport);
	place(p, L_inet_proto);
	load_arg(p, 2);
	jeq(p, 0, L_allow, -1);
	jeq(p, 6, L_allow, -1);
	jeq(p, 17, L_allow, L_protonosupport);
	place(p, L_netlink);
	load_arg(p, 2);
	jeq(p, NETLINK_ROUTE, L_allow, L_protonosupport);

	place(p, L_socketpair);
	load_arg(p, 0);
	jeq(p, AF_UNIX, L_allow, L_afnosupport);

	place(p, L_send2);
	load_arg(p, 2);
	go(p, L_send_bits);
	place(p, L_send3);
	load_arg(p, 3);
	place(p, L_send_bits);
	jset(p, MSG_OOB | MSG_FASTOPEN, L_eperm, L_allow);
}

static void resolve(struct prog *p, const char *name)
{
	printf("static const struct sock_filter %s[] = {\n", name);
	for (int i = 0; i < p->n; i++) {
		struct insn *in = &p->in[i];
		int jt = 0, jf = 0;
		uint32_t k = in->f.k;

		if (in->jt >= 0) {
			if (p->at[in->jt] <= i)
				die("a jump goes backwards or nowhere");
			jt = p->at[in->jt] - i - 1;
		}
		if (in->jf >= 0) {
			if (p->at[in->jf] <= i)
				die("a jump goes backwards or nowhere");
			jf = p->at[in->jf] - i - 1;
		}
		if (in->f.code == (BPF_JMP | BPF_JA)) {
			k = (uint32_t)jt;
			jt = 0;
		}
		if (jt > 255 || jf > 255)
			die("a jump is too long");
		printf("\t{ 0x%02x, %d, %d, 0x%08x },\n", in->f.code, jt, jf, k);
	}
	printf("};\n\n");
}

static void start(struct prog *p)
{
	memset(p, 0, sizeof *p);
	memset(p->at, -1, sizeof p->at);
	p->labels = L_TREE;
	load(p, offsetof(struct seccomp_data, arch));
	jeq(p, NATIVE, -1, L_kill);
	load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
	/* The x32 numbers are a foreign ABI too.  (-1 has the bit as well: nobody calls it.) */
	emit(p, BPF_JMP | BPF_JGE | BPF_K, __X32_SYSCALL_BIT, L_kill, -1);
#endif
}

/* What the program inside runs under.  notify: refused calls and connect(2) go
 * to the notifier, so that they can be named; else they get their errno here. */
static void payload(const char *name, bool notify, bool set_ids)
{
	static struct prog p;
	struct range r[NR_MAX];
	int n;

	start(&p);
	n = ranges(r);
	if (!notify)
		for (int i = 0; i < n; i++)
			if (r[i].label == L_connect)
				r[i].label = L_allow;
	tree(&p, r, 0, n - 1);
	checks(&p, set_ids);
	ret(&p, L_connect, SECCOMP_RET_USER_NOTIF);
	ret(&p, L_allow, SECCOMP_RET_ALLOW);
	ret(&p, L_enosys, SECCOMP_RET_ERRNO | ENOSYS);
	ret(&p, L_refuse, notify ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPERM);
	ret(&p, L_eperm, SECCOMP_RET_ERRNO | EPERM);
	ret(&p, L_afnosupport, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
	ret(&p, L_protonosupport, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
	ret(&p, L_kill, SECCOMP_RET_KILL_PROCESS);
	resolve(&p, name);
}

static void init_filter(void)
{
	static struct prog p;
	struct range r[NR_MAX];
	int n;

	for (int nr = 0; nr < NR_MAX; nr++)
		fate[nr] = L_kill;
#define X(name) fate[__NR_##name] = L_allow;
	SYSCALLS_INIT(X)
#undef X
	start(&p);
	n = ranges(r);
	tree(&p, r, 0, n - 1);
	ret(&p, L_allow, SECCOMP_RET_ALLOW);
	ret(&p, L_kill, SECCOMP_RET_KILL_PROCESS);
	resolve(&p, "filter_init");
}

static void fates(void)
{
	for (int nr = 0; nr < NR_MAX; nr++)
		fate[nr] = L_enosys;
#define X(name) fate[__NR_##name] = L_allow;
	SYSCALLS_ALLOW(X)
#undef X
#define X(name) fate[__NR_##name] = L_refuse;
	SYSCALLS_REFUSE(X)
#undef X
#define X(name) fate[__NR_##name] = L_eperm;
	SYSCALLS_EPERM(X)
#undef X
#define X(name, check) fate[__NR_##name] = L_##check;
	SYSCALLS_CHECK(X)
#undef X
}

int main(void)
{
	printf("/* Made by tools/gen_seccomp.c from src/sandbox/native/syscalls.h. */\n");
	printf("#define FILTER_ARCH 0x%08x\n\n", NATIVE);
	fates();
	payload("filter_notify", true, false);
	payload("filter_plain", false, false);
	payload("filter_notify_setid", true, true);
	payload("filter_plain_setid", false, true);
	init_filter();
	return 0;
}
