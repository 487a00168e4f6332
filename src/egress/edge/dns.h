/* SPDX-License-Identifier: Apache-2.0 */
/* dns.h - the questions a program asks, and our answers, as bytes.
 *
 * Only messages; no sockets.  A query is hostile: it is at most 512 bytes of one
 * question without compression, or it is refused.  Answers are made by us. */
#pragma once
#include "netpolicy/netpolicy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNS_A = 1, DNS_AAAA = 28, DNS_HTTPS = 65, DNS_IN = 1 };
enum { DNS_NOERROR = 0, DNS_FORMERR = 1, DNS_SERVFAIL = 2, DNS_NXDOMAIN = 3, DNS_NOTIMP = 4, DNS_REFUSED = 5 };
enum { DNS_QUERY_MAX = 512, DNS_ANSWER_MAX = 768 };

struct dns_query {
	uint16_t id, type, class;
	bool rd, edns;
	uint8_t opcode;
	uint16_t udp_size;       /* what the asker takes; 512 without EDNS */
	char name[NET_NAME_MAX]; /* canonical; "" if it is not a name we would ever answer */
	char shown[NET_NAME_MAX]; /* as asked, for a message; may hold any printable bytes, others as '?' */
	const uint8_t *question; /* the question section, to be echoed with its 0x20 casing */
	size_t question_len;
};
/* 0, or DNS_FORMERR/DNS_NOTIMP (then only id, rd, opcode, and the question if there is one, are set),
 * or -1: not even an answer is due (a response, too short). */
int dns_parse_query(const uint8_t *msg, size_t len, struct dns_query *ret);
/* The answer with rcode and, for NOERROR, the addresses of the query's own type (n may be 0).
 * Returns its length; never more than DNS_ANSWER_MAX. */
size_t dns_answer(const struct dns_query *q, int rcode, const struct net_addr *addrs, size_t n, uint32_t ttl,
		  uint8_t ret[DNS_ANSWER_MAX]);
