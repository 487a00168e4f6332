/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c - the least a sandboxed program can be.
 *
 *     payload          exits 0 at once
 *     payload wait     writes one byte to standard output, then sleeps for ever
 *
 * Built twice: with -DNO_LIBC -nostdlib it has no start-up code at all, so a
 * measurement of it is a measurement of fork, exec, exit and wait alone; the
 * other build shows what a C library's start-up adds. */
#include <sys/syscall.h>
#include <unistd.h>

#ifdef NO_LIBC

static long call3(long nr, long a, long b, long c)
{
	long r;

#if defined(__x86_64__)
	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	r = x0;
#else
#error "no system call instruction known for this machine"
#endif
	return r;
}

void start(const long *stack) __attribute__((used, noreturn));
void start(const long *stack)
{
	if (stack[0] > 1) {
		call3(SYS_write, 1, (long)".", 1);
		for (;;)
			call3(SYS_ppoll, 0, 0, 0);
	}
	for (;;)
		call3(SYS_exit_group, 0, 0, 0);
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
	(void)argv;
	if (argc > 1) {
		if (write(1, ".", 1) != 1)
			return 1;
		for (;;)
			pause();
	}
	return 0;
}

#endif
