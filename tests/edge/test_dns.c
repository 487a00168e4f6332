/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "egress/edge/dns.h"

#define HEAD(ar) "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00" ar
#define EXAMPLE "\x03" "wWw\x07" "eXample\x03" "com\x00"
#define A_IN "\x00\x01\x00\x01"
#define OPT_1232 "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"

#define PARSE(literal, q) dns_parse_query((const uint8_t *)(literal), sizeof(literal) - 1, q)

TEST(a_plain_question_is_read_and_its_casing_kept)
{
	struct dns_query q;

	T_INT(PARSE(HEAD("\x00") EXAMPLE A_IN, &q), 0);
	T_INT(q.id, 0x1234);
	T_STR(q.name, "www.example.com");
	T_STR(q.shown, "wWw.eXample.com");
	T_INT(q.type, DNS_A);
	T_INT(q.class, DNS_IN);
	T_TRUE(q.rd && !q.edns);
	T_INT(q.udp_size, 512);
	T_INT(q.question_len, 21);
}

TEST(edns_is_read_with_its_size_and_whatever_options)
{
	struct dns_query q;

	T_INT(PARSE(HEAD("\x01") EXAMPLE A_IN OPT_1232, &q), 0);
	T_TRUE(q.edns);
	T_INT(q.udp_size, 1232);
	T_INT(PARSE(HEAD("\x01") EXAMPLE A_IN "\x00\x00\x29\x00\x10\x00\x00\x80\x00\x00\x0c\x00\x0a\x00\x08" "cookie12", &q), 0);
	T_INT(q.udp_size, 512);
	/* with the AD and CD bits, as stub resolvers send them */
	T_INT(PARSE("\x12\x34\x01\x30\x00\x01\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN, &q), 0);
}

struct row {
	const char *why;
	const char *msg;
	size_t len;
	int want;
};
#define ROW(why, msg, want) { why, msg, sizeof(msg) - 1, want }

static const struct row rows[] = {
	ROW("nothing", "", -1),
	ROW("eleven bytes", "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00", -1),
	ROW("a response", "\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN, -1),
	ROW("opcode status", "\x12\x34\x11\x00\x00\x01\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN, DNS_NOTIMP),
	ROW("opcode update", "\x12\x34\x28\x00\x00\x01\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN, DNS_NOTIMP),
	ROW("truncated flag", "\x12\x34\x03\x00\x00\x01\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN, DNS_FORMERR),
	ROW("a result code", "\x12\x34\x01\x03\x00\x01\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN, DNS_FORMERR),
	ROW("no question", "\x12\x34\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", DNS_FORMERR),
	ROW("two questions", "\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN EXAMPLE A_IN, DNS_FORMERR),
	ROW("an answer", "\x12\x34\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00" EXAMPLE A_IN, DNS_FORMERR),
	ROW("an authority", "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x01\x00\x00" EXAMPLE A_IN, DNS_FORMERR),
	ROW("two additional", "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x02" EXAMPLE A_IN OPT_1232 OPT_1232, DNS_FORMERR),
	ROW("an additional A", HEAD("\x01") EXAMPLE A_IN "\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00", DNS_FORMERR),
	ROW("OPT with a name", HEAD("\x01") EXAMPLE A_IN "\x01" "a" OPT_1232, DNS_FORMERR),
	ROW("OPT cut", HEAD("\x01") EXAMPLE A_IN "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00", DNS_FORMERR),
	ROW("OPT longer than the message", HEAD("\x01") EXAMPLE A_IN "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x05", DNS_FORMERR),
	ROW("an option over the end", HEAD("\x01") EXAMPLE A_IN "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x01",
	    DNS_FORMERR),
	ROW("bytes behind", HEAD("\x00") EXAMPLE A_IN "x", DNS_FORMERR),
	ROW("OPT that was not counted", HEAD("\x00") EXAMPLE A_IN OPT_1232, DNS_FORMERR),
	ROW("a pointer", HEAD("\x00") "\xc0\x0c" A_IN, DNS_FORMERR),
	ROW("a pointer after a label", HEAD("\x00") "\x01" "a\xc0\x0c" A_IN, DNS_FORMERR),
	ROW("an extended label", HEAD("\x00") "\x41" "a\x00" A_IN, DNS_FORMERR),
	ROW("no end of the name", HEAD("\x00") "\x03" "www", DNS_FORMERR),
	ROW("a label over the end", HEAD("\x00") "\x3f" "www", DNS_FORMERR),
	ROW("no type", HEAD("\x00") EXAMPLE, DNS_FORMERR),
	ROW("half a class", HEAD("\x00") EXAMPLE "\x00\x01\x00", DNS_FORMERR),
	ROW("class CH", HEAD("\x00") EXAMPLE "\x00\x10\x00\x03", DNS_NOTIMP),
	ROW("class ANY", HEAD("\x00") EXAMPLE "\x00\x01\x00\xff", DNS_NOTIMP),
	ROW("type ANY", HEAD("\x00") EXAMPLE "\x00\xff\x00\x01", DNS_NOTIMP),
	ROW("type AXFR", HEAD("\x00") EXAMPLE "\x00\xfc\x00\x01", DNS_NOTIMP),
	ROW("type OPT", HEAD("\x00") EXAMPLE "\x00\x29\x00\x01", DNS_NOTIMP),
};

TEST(whatever_is_not_one_plain_question_is_refused)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct dns_query q;
		uint8_t out[DNS_ANSWER_MAX];
		int got = dns_parse_query((const uint8_t *)rows[i].msg, rows[i].len, &q);
		size_t n;

		if (got != rows[i].want)
			T_FAIL("%s: %d, want %d", rows[i].why, got, rows[i].want);
		T_STR(q.name, "");
		if (got < 0)
			continue;
		n = dns_answer(&q, got, NULL, 0, 60, out);
		T_TRUE(n >= 12 && out[0] == 0x12 && out[1] == 0x34 && (out[2] & 0x80) && (out[3] & 15) == got);
	}
}

TEST(a_name_that_is_none_is_shown_and_never_answered)
{
	struct dns_query q;

	T_INT(PARSE(HEAD("\x00") "\x05" "a.com\x00" A_IN, &q), 0); /* a dot inside a label */
	T_STR(q.name, "");
	T_STR(q.shown, "a.com");
	T_INT(PARSE(HEAD("\x00") "\x05" "a\x00\x1b\xff" "b\x03" "com\x00" A_IN, &q), 0);
	T_STR(q.name, "");
	T_STR(q.shown, "a???b.com");
	T_INT(PARSE(HEAD("\x00") "\x03" "127\x01" "1\x00" A_IN, &q), 0);
	T_STR(q.name, "");
	T_INT(PARSE(HEAD("\x00") "\x00" A_IN, &q), 0); /* the root */
	T_STR(q.name, "");
	T_STR(q.shown, "");
}

static size_t long_query(uint8_t *msg, size_t last)
{
	size_t at = 12;

	memcpy(msg, HEAD("\x00"), 12);
	for (int i = 0; i < 4; i++) {
		size_t n = i == 3 ? last : 63;

		msg[at++] = (uint8_t)n;
		memset(msg + at, 'a', n);
		at += n;
	}
	msg[at++] = 0;
	memcpy(msg + at, "\x00\x01\x00\x01", 4);
	return at + 4;
}

TEST(names_end_at_253_bytes_and_messages_at_512)
{
	struct dns_query q;
	uint8_t msg[600], out[DNS_ANSWER_MAX];
	struct net_addr a[40] = { 0 };
	size_t len = long_query(msg, 61), n;

	T_INT(dns_parse_query(msg, len, &q), 0);
	T_INT(strlen(q.name), 253);
	for (size_t i = 0; i < 40; i++)
		a[i].family = 4;
	n = dns_answer(&q, DNS_NOERROR, a, 40, 60, out);
	T_TRUE(n <= 512 && out[7] > 0 && n == len + out[7] * 16u);
	len = long_query(msg, 62);
	T_INT(dns_parse_query(msg, len, &q), DNS_FORMERR);
	memset(msg, 0, sizeof msg);
	memcpy(msg, HEAD("\x01") EXAMPLE A_IN OPT_1232, 12 + 17 + 4 + 11);
	/* one option that fills it to 512, then to 513 */
	for (size_t size = 512; size <= 513; size++) {
		size_t rest = size - 44;

		msg[42] = (uint8_t)(rest >> 8);
		msg[43] = (uint8_t)rest;
		msg[44] = 0;
		msg[45] = 12;
		msg[46] = (uint8_t)((rest - 4) >> 8);
		msg[47] = (uint8_t)(rest - 4);
		T_INT(dns_parse_query(msg, size, &q), size == 512 ? 0 : DNS_FORMERR);
	}
}

TEST(an_answer_echoes_the_question_and_points_to_it)
{
	static const uint8_t want[] = "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x01" EXAMPLE A_IN
				      "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x01\x02\x03\x04"
				      "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00";
	struct net_addr a[2] = { { 6, { 1 } }, { 4, { 1, 2, 3, 4 } } }; /* of another family: not for this question */
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query q;

	T_INT(PARSE(HEAD("\x01") EXAMPLE A_IN OPT_1232, &q), 0);
	T_INT(dns_answer(&q, DNS_NOERROR, a, 2, 60, out), sizeof want - 1);
	T_TRUE(!memcmp(out, want, sizeof want - 1));
}

TEST(refusals_and_empty_answers_hold_no_addresses)
{
	struct net_addr a = { 4, { 1, 2, 3, 4 } };
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query q;

	T_INT(PARSE(HEAD("\x00") EXAMPLE A_IN, &q), 0);
	T_INT(dns_answer(&q, DNS_REFUSED, &a, 1, 60, out), 33);
	T_INT(out[3] & 15, DNS_REFUSED);
	T_INT(out[7], 0);
	T_INT(dns_answer(&q, DNS_NOERROR, NULL, 0, 60, out), 33);
	T_INT(PARSE(HEAD("\x00") EXAMPLE "\x00\x41\x00\x01", &q), 0);
	T_INT(q.type, DNS_HTTPS);
	T_INT(dns_answer(&q, DNS_NOERROR, &a, 1, 60, out), 33);
	T_INT(out[7], 0);
}

TEST(a_ttl_never_has_its_top_bit)
{
	struct net_addr a = { 4, { 1, 2, 3, 4 } };
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query q;

	T_INT(PARSE(HEAD("\x00") EXAMPLE A_IN, &q), 0);
	T_INT(dns_answer(&q, DNS_NOERROR, &a, 1, UINT32_MAX, out), 49);
	T_INT(out[39], 0x7f);
}
