/* SPDX-License-Identifier: Apache-2.0 */
/* enosys.c - run COMMAND with system calls missing, to test fallback paths:
 *     enosys 437 make test        # as on a kernel without openat2(2)
 *     enosys 435,437 make test    # without clone3(2) as well
 * Numbers are those of the native ABI; the others are left alone. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MISSING_MAX = 16 };

int main(int argc, char **argv)
{
	struct sock_filter f[2 * MISSING_MAX + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog p = { 1, f };
	char *s = argc > 2 ? argv[1] : NULL, *end = NULL;

	for (int i = 0; s && i < MISSING_MAX; i++) {
		unsigned long nr = strtoul(s, &end, 10);

		if (end == s || (*end && *end != ','))
			break;
		f[p.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1);
		f[p.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
		s = *end ? end + 1 : NULL;
	}
	f[p.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	if (argc < 3 || s || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return fprintf(stderr, "usage: enosys NR[,NR...] COMMAND...\n"), 2;
	execvp(argv[2], argv + 2);
	return perror(argv[2]), 127;
}
