/* SPDX-License-Identifier: Apache-2.0 */
/* netpolicy.h - what may be reached: rules, addresses, and the verdict on both.
 *
 * What it knows      the text of a rule; names; which addresses are never public;
 *                    whether a name, an address, a port or a request is allowed.
 *                    No sockets, no files, no clock.
 * May include        base/ only.
 * Trust              rules come from the operator; names, addresses, methods and
 *                    paths that are judged come from hostile programs and servers.
 * Ownership          a policy owns its rules; a verdict points into the policy and
 *                    is good until the policy is changed.
 * Failure            what cannot be parsed is refused, never guessed.
 *
 * A rule, as written in a profile and after --allow and --deny:
 *
 *   NAME[:PORT[-PORT]|:*][/tcp|/tls|/http] [METHOD[,METHOD] PATH]
 *   *.NAME...      every name below NAME, not NAME itself;  *  every public name
 *   CIDR[:PORT...] 10.0.0.0/8:5432, [fd00::/8]:443, 192.0.2.1:22, [2001:db8::1]
 *
 * Without ports: 443 and 80.  Without a protocol: tls on 443, http on 80, else
 * tcp.  METHOD may be `*`; in PATH `*` is within a segment and `**` any number
 * of them.  A rule about requests on another port says what is spoken there, and
 * to a network it is http.
 *
 * Deny wins over allow; what no rule allows is denied.  A denial without ports is
 * of all of them, of a name or network whole or of the requests it speaks of.
 *
 * A network opens what is special in it only if it lies wholly in that kind of
 * space: 0.0.0.0/0 is every public address, as `*` is every public name.  An
 * address of a metadata service is opened by that address alone.
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NET_NAME_MAX = 254, NET_RULES_MAX = 1024 };

enum net_proto { NET_AUTO, NET_TCP, NET_TLS, NET_HTTP };
const char *net_proto_name(enum net_proto p); /* "tcp" */

/* An address in one form: IPv4-mapped IPv6 is IPv4 here. */
struct net_addr {
	uint8_t family; /* 4 or 6; 0: none */
	uint8_t b[16];  /* network order; of IPv4 the first four */
};
/* Dotted quad or RFC 4291 text and nothing else: no octal, hex, short forms or zone. */
int net_addr_parse(const char *text, struct net_addr *ret);
struct net_addr net_addr_of(int af, const void *bytes); /* AF_INET, AF_INET6; folds what is mapped */
void net_addr_format(const struct net_addr *a, char *ret, size_t size);
bool net_addr_equal(const struct net_addr *a, const struct net_addr *b);
bool net_addr_within(const struct net_addr *a, const struct net_addr *net, unsigned bits);

/* What an address is, seen from any host.  Addresses that carry another one
 * (NAT64, IPv4-compatible) are what they carry; 6to4 and Teredo are reserved. */
enum net_class {
	NET_PUBLIC,
	NET_LOOPBACK,
	NET_PRIVATE,
	NET_LINK_LOCAL,
	NET_METADATA, /* 169.254.169.254, fd00:ec2::254 and the others of the big clouds */
	NET_CGNAT,
	NET_MULTICAST,
	NET_UNSPECIFIED,
	NET_RESERVED, /* documentation, benchmarking, broadcast, 6to4, Teredo, unassigned */
};
enum net_class net_addr_class(const struct net_addr *a);
const char *net_class_name(enum net_class c); /* "a private address" */

/* Lower case, without the trailing dot.  CS_E_INVALID: too long, an empty or over-long label, a
 * byte that is not a letter, digit, '-' or '_' (NUL included: len counts), a '-' at its start, or something that is or
 * could be read as an address (decimal, octal, hex, in parts). */
int net_name_canonical(const char *name, size_t len, char ret[NET_NAME_MAX], struct cs_err *err);
bool net_name_is_metadata(const char *canonical); /* of the big clouds' metadata services */

struct net_rule {
	char *text;               /* canonical: parses to the same rule */
	char name[NET_NAME_MAX];  /* "" for a CIDR; "*" for every public name */
	bool wildcard;            /* *.name */
	struct net_addr net;      /* family 0 unless a CIDR */
	uint8_t bits;
	bool default_ports;       /* none were written: 443 and 80 */
	uint16_t port_lo, port_hi; /* 0-65535 after `:*` */
	enum net_proto proto;
	char *methods;            /* "GET,HEAD", or NULL: all */
	char *path;               /* pattern, or NULL: all */
};
int net_rule_parse(const char *text, struct net_rule *ret, struct cs_err *err);
void net_rule_done(struct net_rule *r);
bool net_rule_has_port(const struct net_rule *r, uint16_t port);
bool net_rule_has_name(const struct net_rule *r, const char *canonical);
enum net_proto net_rule_proto(const struct net_rule *r, uint16_t port); /* never NET_AUTO */
/* It speaks of requests, and on some port of its own they come over TLS: then TLS must be read. */
bool net_rule_reads_tls(const struct net_rule *r);
/* Methods and path pattern.  path is a request's path, with or without a query.  What could be read
 * in two ways (%2F, %2E%2E, "..", a backslash, "//") matches no allow rule and every deny rule
 * whose method it has.  A denial is also of other spellings that servers take for the same: in capitals,
 * with a final '/', with `;parameters`. */
bool net_rule_has_request(const struct net_rule *r, const char *method, const char *path, bool deny);

/* NAME=ADDRESS[:PORT]: the operator's own answer for a name. */
struct net_host {
	char name[NET_NAME_MAX];
	struct net_addr addr;
	uint16_t port; /* 0: the one asked for */
};
int net_host_parse(const char *text, struct net_host *ret, struct cs_err *err);

struct net_policy {
	struct net_rule *allow, *deny;
	size_t n_allow, n_deny;
	struct net_host *hosts;
	size_t n_hosts;
	bool ech_deny;
	bool learn; /* every public name, on every port */
};
int net_policy_add(struct net_policy *p, const char *rule, bool deny, struct cs_err *err);
int net_policy_add_host(struct net_policy *p, const char *text, struct cs_err *err);
void net_policy_done(struct net_policy *p);

struct net_verdict {
	bool ok;
	enum net_proto proto;        /* of an allowed connection */
	const struct net_rule *rule; /* that allowed or denied; NULL: none did */
	char reason[160];            /* of a refusal, for a person: "no rule allows api.example.com:8080" */
	char fix[192];               /* "--allow api.example.com:8080", or "" when nothing does */
};
/* May this name be looked up, for whatever port? */
void net_judge_lookup(const struct net_policy *p, const char *name, struct net_verdict *ret);
/* May this name be connected to on this port?  (Its address is judged apart.) */
void net_judge_name(const struct net_policy *p, const char *name, uint16_t port, struct net_verdict *ret);
/* May this address, which the program named itself, be connected to?  Only CIDR rules count. */
void net_judge_literal(const struct net_policy *p, const struct net_addr *a, uint16_t port, struct net_verdict *ret);
/* May `name`, which was allowed, be connected to at this address?  Special ranges only if a CIDR rule
 * covers address and port; a denied CIDR never.  own: the address is one of this host's own.
 * name "": none, the address was judged literally. */
void net_judge_address(const struct net_policy *p, const char *name, const struct net_addr *a, uint16_t port, bool own,
		       struct net_verdict *ret);
/* Does any rule for this name and port speak of methods or paths?  Here and in net_judge_request() an
 * address in text stands for itself: the rules are those of net_judge_literal(). */
bool net_policy_has_requests(const struct net_policy *p, const char *name, uint16_t port);
void net_judge_request(const struct net_policy *p, const char *name, uint16_t port, const char *method, const char *path,
		       struct net_verdict *ret);
const struct net_host *net_policy_host(const struct net_policy *p, const char *name); /* NULL: none */
