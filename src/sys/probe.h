/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - what this host gives, found out by trying.
 *
 * Every answer is the outcome of an attempt made now by the calling user, in a
 * child of its own, so that nothing of the process changes.  Nothing is
 * concluded from versions or ids; kernel settings are read only to explain an
 * attempt that failed, and to name the command that allows it.
 *
 * May include        base/ only.  Uses stdio and waits for children: not for
 *                    use between clone and exec.
 * Failure            a probe that cannot be made is a probe that failed.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct sys_probe {
	const char *name;
	bool ok;
	bool extra;       /* nice to have: no protection hangs on it */
	int err;          /* errno of the attempt that failed */
	char detail[192];
	char fix[256];    /* a command or a step; "" when there is none */
};

enum { SYS_PROBES_MAX = 48 };

/* Fills at most max entries, in the order to show them; returns how many. */
size_t sys_probe_host(struct sys_probe *ret, size_t max);
const struct sys_probe *sys_probe_find(const struct sys_probe *p, size_t n, const char *name);
