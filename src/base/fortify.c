/* SPDX-License-Identifier: Apache-2.0 */
/* fortify.c - Debian's libyaml.a and libpcre2-8.a are compiled against glibc with
 * checks; with musl the functions they take from there are ours, with the checks. */
#include "base/compat.h"

#ifndef __GLIBC__
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__memcpy_chk(void *dst, const void *src, size_t n, size_t size);
int __sprintf_chk(char *dst, int flag, size_t size, const char *fmt, ...);
int __fprintf_chk(FILE *f, int flag, const char *fmt, ...);

void *__memcpy_chk(void *dst, const void *src, size_t n, size_t size)
{
	if (n > size)
		abort();
	return memcpy(dst, src, n);
}

int __sprintf_chk(char *dst, int flag, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, fmt);
	n = vsnprintf(dst, size, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size)
		abort();
	return n;
}
#endif
