/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the files of netpolicy share. */
#pragma once
#include "netpolicy/netpolicy.h"

enum {
	RULE_TEXT_MAX = 2048,
	PATTERN_MAX = 512,
	PATH_READ_MAX = 4096, /* a longer path can be read in no way we vouch for */
};

/* s, safe to print, in at most size bytes; "..." at the end when cut. */
char *net_shown(char *dst, size_t size, const char *s);
#define SHOWN(s) net_shown((char[160]){ 0 }, 160, s)

/* Every name this rule stands for, metadata and single labels included: what a denial covers. */
bool net_rule_denies_name(const struct net_rule *r, const char *canonical);

/* The IPv4 addresses an IPv6 address carries, in every way it may be read. At most 4. */
size_t net_addr_inner(const struct net_addr *a, struct net_addr ret[4]);

/* A path in one spelling: what needs no escape has none, other escapes are in capitals, `*` is %2A
 * (in a pattern it stays), no query.  -1: it could be read in two ways, or is too long. */
int net_path_read(const char *path, bool pattern, char *ret, size_t size);

/* NAME[:PORT][/PROTO] or CIDR..., as a rule for just this place and port; proto is written when it is
 * not what the port means. */
void net_place_write(const char *host, uint16_t port, enum net_proto proto, char *ret, size_t size);
