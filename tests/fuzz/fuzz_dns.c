/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dns.c - hostile bytes as a query; every answer to it is whole and about it. */
#include "egress/edge/dns.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static size_t get16(const uint8_t *p)
{
	return (size_t)p[0] << 8 | p[1];
}

/* Reads an answer as a resolver would. */
static void check_answer(const struct dns_query *q, int rcode, const uint8_t *out, size_t len)
{
	size_t at = 12, want = q->type == DNS_A ? 4 : 16;

	must(len >= 12 && len <= DNS_ANSWER_MAX && (len <= 512 || q->udp_size > 512));
	must(get16(out) == q->id && out[2] & 0x80 && !(out[2] & 2) && (out[3] & 15) == rcode);
	must(get16(out + 4) <= 1 && get16(out + 8) == 0 && get16(out + 10) == q->edns);
	if (get16(out + 4)) {
		must(len - at >= q->question_len && !memcmp(out + at, q->question, q->question_len));
		at += q->question_len;
	}
	for (size_t i = get16(out + 6); i; i--) {
		must(rcode == DNS_NOERROR && len - at >= 12 + want && get16(out + at) == 0xc00c && get16(out + at + 2) == q->type);
		must(get16(out + at + 10) == want);
		at += 12 + want;
	}
	if (q->edns) {
		must(len - at >= 11 && out[at] == 0 && get16(out + at + 1) == 41 && get16(out + at + 9) == 0);
		at += 11;
	}
	must(at == len);
}

static void check_names(const struct dns_query *q)
{
	struct net_addr a;
	struct in_addr in;

	must(strlen(q->name) < NET_NAME_MAX && strlen(q->shown) < NET_NAME_MAX);
	for (const char *s = q->shown; *s; s++)
		must(*s > 0x20 && *s < 0x7f);
	if (*q->name)
		must(net_addr_parse(q->name, &a) < 0 && inet_aton(q->name, &in) == 0 && !strcasecmp(q->name, q->shown));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct net_addr addrs[40];
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query q;
	int r = dns_parse_query(data, size, &q);

	must(r == 0 || r == DNS_FORMERR || r == DNS_NOTIMP || r == -1);
	if (r < 0)
		return 0;
	check_names(&q);
	must(r == 0 || !*q.name);
	must(!q.question || (q.question >= data && q.question + q.question_len <= data + size));
	for (size_t i = 0; i < 40; i++)
		addrs[i] = (struct net_addr){ .family = i % 3 ? 4 : 6, .b = { (uint8_t)i } };
	check_answer(&q, r, out, dns_answer(&q, r, addrs, 40, 60, out));
	check_answer(&q, DNS_NXDOMAIN, out, dns_answer(&q, DNS_NXDOMAIN, addrs, 40, 60, out));
	return 0;
}
