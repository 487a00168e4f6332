/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/protection.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *what;
} protections[PROT_MAX] = {
#define X(id, name, what) [PROT_##id] = { name, what },
	PROTECTIONS(X)
#undef X
};

const char *protection_name(enum protection p)
{
	return p < PROT_MAX ? protections[p].name : "unknown";
}

const char *protection_what(enum protection p)
{
	return p < PROT_MAX ? protections[p].what : "unknown";
}

int protection_by_name(const char *name)
{
	for (int i = 0; i < PROT_MAX; i++)
		if (!strcmp(protections[i].name, name))
			return i;
	return -1;
}
