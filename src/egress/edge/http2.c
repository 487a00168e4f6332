/* SPDX-License-Identifier: Apache-2.0 */
/* http2.c - not offered to clients yet. */
#include "egress/edge/intercept_internal.h"

struct h2 *h2_new(struct intercept *i, bool upstream)
{
	(void)i;
	(void)upstream;
	return NULL;
}

void h2_free(struct h2 *h)
{
	(void)h;
}

bool h2_step(struct h2 *h)
{
	(void)h;
	return false;
}

void h2_over(struct h2 *h, const char *why)
{
	(void)h;
	(void)why;
}
