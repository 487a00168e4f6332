/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h - places where a test may end the process, or make a call fail.
 *
 * Every call that changes something on disk passes one first, so killing at the
 * first, the second, ... until none is left visits every state a crash can leave.
 * Only test builds have them:
 *
 *   CAISSON_FAULT=N          SIGKILL at the Nth
 *   CAISSON_FAULT=N:ERRNO    the Nth fails with that number instead
 *   CAISSON_FAULT_LIST=FILE  append the name of each one that is passed
 */
#pragma once
#include <errno.h>

#ifdef CS_TEST_SWITCHES
/* 0, or the errno to fail with. */
int cs_fault(const char *where);
#else
static inline int cs_fault(const char *where)
{
	(void)where;
	return 0;
}
#endif

/* In a function that returns -1 and errno. */
#define CS_FAULT(where)                        \
	do {                                   \
		int e_ = cs_fault(where);      \
		if (e_)                        \
			return errno = e_, -1; \
	} while (0)
