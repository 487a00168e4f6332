/* SPDX-License-Identifier: Apache-2.0 */
/* secret.h - values that programs inside never see.
 *
 * A secret is read here, from where the profile says, and held in locked memory
 * that is not dumped.  Inside there is a placeholder. */
#pragma once
#include "base/err.h"
#include "base/mem.h"
#include "netpolicy/netpolicy.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>

enum { SECRET_MAX = 16384, SECRET_MIN = 8 }; /* shorter ones could not be masked without masking half the world */

struct secret {
	char *name;
	char *placeholder;      /* "caisson-secret-GH-<32 hex digits>" */
	char *value;            /* one line; no control bytes */
	size_t value_len;
	struct net_rule *hosts; /* names, with ports or 443 */
	size_t n_hosts;
	char *header, *format;  /* format holds "{}" once */
};
/* env: the variable; file: its first line; command: the first line of its output (sh -c, 10 s at most).
 * Errors never hold the value. */
int secret_load(const struct profile_secret *from, const char *placeholder, struct secret *ret, struct cs_err *err);
void secret_done(struct secret *s); /* wipes */
bool secret_is_for(const struct secret *s, const char *name, uint16_t port);
/* The value that the secret's header is to have.  sent: what the program sent in it, or NULL.  If that
 * holds the placeholder (as it is, or within the base64 of `Basic`), the placeholder is replaced; else
 * it is the format.  The caller wipes and frees. */
char *secret_header(const struct secret *s, const char *sent);
