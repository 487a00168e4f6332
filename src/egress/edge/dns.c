/* SPDX-License-Identifier: Apache-2.0 */
/* dns.c - reads one question, writes one answer (RFC 1035, EDNS of RFC 6891).
 *
 *   0   id                 as asked
 *   2   QR Opcode AA TC RD RA Z AD CD Rcode
 *   4   counts             questions 1, answers n, authority 0, additional 0 or 1
 *   12  question           name as labels, type, class; echoed byte for byte, so that the
 *                          casing of the asker (0x20) comes back
 *   ..  answers            a pointer to the question's name, type, class, ttl, length, address
 *   ..  OPT                if the query had one; without options
 *
 * A query has one question, at most one additional record and that an OPT, and
 * nothing behind it.  An answer never needs truncation: addresses that would not
 * fit into what the asker takes are left out. */
#include "egress/edge/dns.h"

#include <string.h>

enum { HEADER = 12, OPT = 41, ADDRS_MAX = 16, OPT_LEN = 11, UDP_LEAST = 512, UDP_OURS = 1232 };

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint8_t *put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static char printable(uint8_t c)
{
	return c > 0x20 && c < 0x7f ? (char)c : '?';
}

/* The labels at msg[12].  Returns the offset behind the name, or 0: compressed, over-long, cut.
 * raw: with dots between them and any bytes, len of it; a label with a dot in it is no name. */
static size_t read_name(const uint8_t *msg, size_t len, char raw[256], size_t *ret_len, struct dns_query *q)
{
	size_t at = HEADER, n = 0;
	bool odd = false;

	while (at < len && msg[at] != 0) {
		size_t label = msg[at++];

		/* 253 is a name's most, without the last dot */
		if (label > 63 || at + label > len || n + label + (n > 0) > NET_NAME_MAX - 1)
			return 0;
		if (n > 0)
			raw[n++] = '.';
		for (size_t i = 0; i < label; i++) {
			odd |= msg[at + i] == '.';
			raw[n++] = (char)msg[at + i];
		}
		at += label;
	}
	if (at >= len)
		return 0;
	for (size_t i = 0; i < n; i++)
		q->shown[i] = printable((uint8_t)raw[i]);
	q->shown[n] = 0;
	*ret_len = odd ? 0 : n;
	return at + 1;
}

/* The record behind the question: an OPT, the last thing in the message.  RFC 6891, 6.1.2. */
static bool read_opt(const uint8_t *p, size_t len, struct dns_query *q)
{
	if (len < OPT_LEN || p[0] != 0 || get16(p + 1) != OPT || get16(p + 9) != len - OPT_LEN)
		return false;
	q->edns = true;
	q->udp_size = get16(p + 3) < UDP_LEAST ? UDP_LEAST : get16(p + 3);
	return true;
}

/* The options of an OPT fill it exactly. */
static bool options_whole(const uint8_t *p, size_t len)
{
	while (len >= 4) {
		size_t n = get16(p + 2);

		if (n > len - 4)
			return false;
		p += 4 + n;
		len -= 4 + n;
	}
	return len == 0;
}

int dns_parse_query(const uint8_t *msg, size_t len, struct dns_query *ret)
{
	struct dns_query q = { .udp_size = UDP_LEAST };
	char raw[256];
	size_t at, name_len;

	memset(ret, 0, sizeof *ret);
	if (len < HEADER || msg[2] & 0x80)
		return -1;
	q.id = get16(msg);
	q.opcode = msg[2] >> 3 & 15;
	q.rd = msg[2] & 1;
	*ret = q;
	if (len > DNS_QUERY_MAX)
		return DNS_FORMERR;
	if (q.opcode != 0)
		return DNS_NOTIMP;
	/* AA, TC and a result are an answer's; of additional records there may be one. */
	if (msg[2] & 0x06 || msg[3] & 0x0f || get16(msg + 4) != 1 || get16(msg + 6) || get16(msg + 8) || get16(msg + 10) > 1)
		return DNS_FORMERR;
	at = read_name(msg, len, raw, &name_len, &q);
	if (at == 0 || len - at < 4)
		return DNS_FORMERR;
	q.type = get16(msg + at);
	q.class = get16(msg + at + 2);
	q.question = msg + HEADER;
	q.question_len = at + 4 - HEADER;
	at += 4;
	*ret = q;
	if (get16(msg + 10) == 0 ? at != len : !read_opt(msg + at, len - at, &q) || !options_whole(msg + at + OPT_LEN, len - at - OPT_LEN))
		return DNS_FORMERR;
	ret->edns = q.edns;
	ret->udp_size = q.udp_size;
	/* Transfers, "any", meta types (RFC 6895: 128-255) and other classes than the Internet's. */
	if (q.class != DNS_IN || (q.type >= 128 && q.type <= 255) || q.type == OPT || q.type == 0)
		return DNS_NOTIMP;
	if (net_name_canonical(raw, name_len, ret->name, NULL) < 0)
		ret->name[0] = 0;
	return 0;
}

/* BADVERS would be the right word for another version of EDNS; nobody has one, and NOERROR with
 * version 0 is what the asker can use. */
static uint8_t *put_opt(uint8_t *p)
{
	*p++ = 0;
	p = put16(p, OPT);
	p = put16(p, UDP_OURS);
	p = put16(p, 0); /* extended rcode, version */
	p = put16(p, 0); /* no DNSSEC */
	return put16(p, 0);
}

static uint8_t *put_address(uint8_t *p, const struct dns_query *q, const struct net_addr *a, uint32_t ttl)
{
	unsigned size = a->family == 4 ? 4 : 16;

	p = put16(p, 0xc000 | HEADER);
	p = put16(p, q->type);
	p = put16(p, DNS_IN);
	p = put16(p, ttl >> 16);
	p = put16(p, ttl & 0xffff);
	p = put16(p, size);
	memcpy(p, a->b, size);
	return p + size;
}

size_t dns_answer(const struct dns_query *q, int rcode, const struct net_addr *addrs, size_t n, uint32_t ttl,
		  uint8_t ret[DNS_ANSWER_MAX])
{
	uint8_t family = q->type == DNS_A ? 4 : q->type == DNS_AAAA ? 6 : 0, *p = ret + HEADER;
	size_t most = q->udp_size < DNS_ANSWER_MAX ? q->udp_size : DNS_ANSWER_MAX, answers = 0;

	if (most < UDP_LEAST)
		most = UDP_LEAST;
	if (ttl > INT32_MAX) /* RFC 2181, 8: the top bit means 0 */
		ttl = INT32_MAX;
	memset(ret, 0, HEADER);
	put16(ret, q->id);
	ret[2] = (uint8_t)(0x80 | (q->opcode & 15) << 3 | q->rd);
	ret[3] = (uint8_t)(0x80 | (rcode & 15));
	if (q->question && q->question_len <= UDP_LEAST - HEADER - OPT_LEN) {
		memcpy(p, q->question, q->question_len);
		p += q->question_len;
		put16(ret + 4, 1);
	}
	for (size_t i = 0; i < n && rcode == DNS_NOERROR && ret[5] && family && answers < ADDRS_MAX; i++) {
		size_t need = 12 + (family == 4 ? 4 : 16) + (q->edns ? OPT_LEN : 0);

		if (addrs[i].family != family)
			continue;
		if ((size_t)(p - ret) + need > most)
			break;
		p = put_address(p, q, &addrs[i], ttl);
		answers++;
	}
	put16(ret + 6, (unsigned)answers);
	if (q->edns) {
		p = put_opt(p);
		put16(ret + 10, 1);
	}
	return (size_t)(p - ret);
}
