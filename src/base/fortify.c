/* SPDX-License-Identifier: Apache-2.0 */
/* fortify.c - Debian's libyaml.a is compiled against glibc with checks; with musl the one
 * function it takes from there is ours, with the check. */
#include "base/compat.h"

#ifndef __GLIBC__
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int __sprintf_chk(char *dst, int flag, size_t size, const char *fmt, ...);

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
