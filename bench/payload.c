/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c - the least a sandboxed program can be.
 *
 *     payload          exits 0 at once
 *     payload wait     writes one byte to standard output, then sleeps for ever
 *     payload to FILE  writes one byte to FILE, which is made if it is not there
 *
 * Built twice: with -DNO_LIBC -nostdlib it has no start-up code at all, so a
 * measurement of it is a measurement of fork, exec, exit and wait alone; the
 * other build shows what a C library's start-up adds. */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef NO_LIBC

static long call4(long nr, long a, long b, long c, long d)
{
	long r;

#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	r = x0;
#else
#error "no system call instruction known for this machine"
#endif
	return r;
}

void start(const long *stack) __attribute__((used, noreturn));
void start(const long *stack)
{
	if (stack[0] > 2) {
		long fd = call4(SYS_openat, AT_FDCWD, stack[3], O_WRONLY | O_CREAT | O_TRUNC, 0644);

		call4(SYS_exit_group, call4(SYS_write, fd, (long)".", 1, 0) != 1, 0, 0, 0);
	}
	if (stack[0] > 1) {
		call4(SYS_write, 1, (long)".", 1, 0);
		for (;;)
			call4(SYS_ppoll, 0, 0, 0, 0);
	}
	for (;;)
		call4(SYS_exit_group, 0, 0, 0, 0);
}

/* The kernel enters here with argc on top of the stack. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall start\n");
#else
__asm__(".globl _start\n_start: mov x0, sp\nbl start\n");
#endif

#else

int main(int argc, char **argv)
{
	if (argc > 2) {
		int fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);

		return write(fd, ".", 1) != 1;
	}
	if (argc > 1) {
		if (write(1, ".", 1) != 1)
			return 1;
		for (;;)
			pause();
	}
	return 0;
}

#endif
