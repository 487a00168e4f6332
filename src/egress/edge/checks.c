/* SPDX-License-Identifier: Apache-2.0 */
/* checks.c - what the attack tests' positive controls leave out; in a release there is nothing here. */
#include "egress/edge/edge.h"

#include <stdlib.h>
#include <string.h>

#ifdef CS_TEST_SWITCHES
bool edge_checks(enum edge_check c)
{
	static const char *const names[] = {
#define X(name) #name,
		EDGE_CHECKS(X)
#undef X
	};
	const char *off = getenv("CAISSON_EDGE_OFF"), *at = off ? strstr(off, names[c]) : NULL;
	size_t n = strlen(names[c]);

	return !(at && (at == off || at[-1] == ',') && (!at[n] || at[n] == ','));
}
#endif
