/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "netpolicy/netpolicy.h"

#include <arpa/inet.h>

#define ROWS(rows) (sizeof rows / sizeof *rows)

static void must_parse(const char *text, struct net_rule *r)
{
	struct cs_err err = { 0 };

	if (net_rule_parse(text, r, &err) < 0)
		T_FAIL("'%s' does not parse: %s", text, err.msg);
}

static struct net_addr addr(const char *text)
{
	struct net_addr a = { 0 };

	if (net_addr_parse(text, &a) < 0)
		T_FAIL("'%s' is not an address", text);
	return a;
}

static void add(struct net_policy *p, const char *rule, bool deny)
{
	struct cs_err err = { 0 };

	if (net_policy_add(p, rule, deny, &err) < 0)
		T_FAIL("'%s': %s", rule, err.msg);
}

/* Rules, one after another up to a NULL; a leading '!' denies. */
static struct net_policy policy(const char *const *rules)
{
	struct net_policy p = { 0 };

	for (; *rules; rules++)
		add(&p, **rules == '!' ? *rules + 1 : *rules, **rules == '!');
	return p;
}
#define POLICY(...) policy((const char *const[]){ __VA_ARGS__, NULL })

/* --- rules --------------------------------------------------------------------------------- */

struct row {
	const char *text, *want;
};

TEST(a_rule_is_written_in_one_way_and_reads_the_same_again)
{
	static const struct row rows[] = {
		{ "example.com", "example.com" },
		{ " \tAPI.Example.COM. ", "api.example.com" },
		{ "*", "*" },
		{ "*.example.com:8080", "*.example.com:8080" },
		{ "example.com:*", "example.com:*" },
		{ "example.com:1-65535/http", "example.com:1-65535/http" },
		{ "example.com:80-80", "example.com:80" },
		{ "example.com/tcp", "example.com/tcp" },
		{ "10.0.0.0/8:5432", "10.0.0.0/8:5432" },
		{ "10.0.0.0/8:5432/tcp", "10.0.0.0/8:5432/tcp" },
		{ "10.0.0.0/8/tcp", "10.0.0.0/8/tcp" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "192.0.2.1:22", "192.0.2.1/32:22" },
		{ "192.0.2.1/tls", "192.0.2.1/32/tls" },
		{ "[2001:DB8:0:0::1]", "[2001:db8::1/128]" },
		{ "[fd00::/8]:443/tls", "[fd00::/8]:443/tls" },
		{ "[::/0]:*", "[::/0]:*" },
		{ "_dmarc.example.com", "_dmarc.example.com" },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
		{ "localhost:3000", "localhost:3000" },
		{ "dead:80", "dead:80" },
		{ "a.com  GET,HEAD\t/v1/*", "a.com GET,HEAD /v1/*" },
		{ "a.com * /**/raw/**", "a.com * /**/raw/**" },
		{ "a.com:8443/tls GET /%61%2a%c3%a9/x", "a.com:8443/tls GET /a%2A%C3%A9/x" },
		{ "10.0.0.1:80 GET /health", "10.0.0.1/32:80 GET /health" },
		{ "[fd00::1]:8080/http GET /", "[fd00::1/128]:8080/http GET /" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct net_rule r, again;

		must_parse(rows[i].text, &r);
		T_STR(r.text, rows[i].want);
		must_parse(r.text, &again);
		T_STR(again.text, rows[i].want);
		T_INT(r.port_lo, again.port_lo);
		T_INT(r.port_hi, again.port_hi);
		T_INT(r.proto, again.proto);
		net_rule_done(&r);
		net_rule_done(&again);
	}
}

TEST(a_refused_rule_says_what_to_write_and_leaves_the_output_alone)
{
	static const struct row rows[] = {
		{ "10.0.0.0/8/5432", "'10.0.0.0/8/5432': a port comes after ':', as in 10.0.0.0/8:5432" },
		{ "a.com/8080", "'a.com/8080': a port comes after ':', as in a.com:8080" },
		{ "10.0.0.0:22/8", "'10.0.0.0:22/8': the prefix comes before the port, as in 10.0.0.0/8:22" },
		{ "10.1.0.0/8", "'10.1.0.0/8': the address has bits set beyond /8; the network is 10.0.0.0/8" },
		{ "[fd00::1/8]", "'[fd00::1/8]': the address has bits set beyond /8; the network is [fd00::/8]" },
		{ "10.0.0.0/33",
		  "'10.0.0.0/33': '/33' is not a prefix; of an IPv4 network it is /0 to /32; a port comes after ':'" },
		{ "10/8", "'10/8': '10' is not an address; write all four numbers, as in 10.0.0.0/8" },
		{ "[fd00::]/8:443",
		  "'[fd00::]/8:443': the prefix goes inside the brackets, as in [fd00::/8], and a port after ':'" },
		{ "fd00::/8:443",
		  "'fd00::/8:443': an IPv6 address goes in brackets, as in [2001:db8::1]:443 or [fd00::/8]:443" },
		{ "[fe80::1%eth0]", "'[fe80::1%eth0]': an address has no zone here; leave out the '%' and what follows" },
		{ "[::ffff:10.0.0.1]", "'[::ffff:10.0.0.1]': write an IPv4 address as such and without brackets: 10.0.0.1" },
		{ "[::1", "'[::1': the ']' is missing, as in [2001:db8::/32]:443" },
		{ "https://a.com:8443/v1",
		  "'https://a.com:8443/v1': a rule is a name, not a URL; write 'a.com:8443', or 'a.com:8443 GET /v1'" },
		{ "https://u@a.com", "'https://u@a.com': a rule is a name, not a URL; write it as api.example.com:443" },
		{ "u@a.com", "'u@a.com': a name has no user in it; leave out what is before the '@'" },
		{ "a.com:0", "'a.com:0': '0' is not a port; ports are 1 to 65535, a range is 8000-8010, all are *" },
		{ "a.com:90-80", "'a.com:90-80': a range goes from the lower port to the higher: 80-90" },
		{ "a.com:80x", "'a.com:80x': 'x' is left over; after the name come :PORT and /tcp, /tls or /http" },
		{ "a.com/udp", "'a.com/udp': nothing goes out over udp; the protocols are tcp, tls and http" },
		{ "a.com/https", "'a.com/https': 'https' is called tls here, as in a.com/tls" },
		{ "a*.com", "'a*.com': '*' stands for whole labels at the start only, as in *.example.com" },
		{ "a\033[2J.com", "'a\\x1b[2J.com': the byte 0x1b cannot be in a name" },
		{ "a.com get /", "'a.com get /': 'get' is not a list of methods; they are in capitals with commas and no spaces, as "
				 "in GET,HEAD" },
		{ "a.com GET", "'a.com GET': methods and path come together, as in 'a.com GET /v1/**'" },
		{ "a.com GET /a/**b",
		  "'a.com GET /a/**b': '**' stands for whole segments, as in /v1/** or /**/raw; within one, write '*'" },
		{ "a.com GET /a?b", "'a.com GET /a?b': only the path is matched; leave out '?' and what follows" },
		{ "a.com:8080 GET /", "'a.com:8080 GET /': say what is spoken on that port: a.com:8080/tls or a.com:8080/http" },
		{ "a.com/tcp GET /", "'a.com/tcp GET /': requests can be read in tls and http, not in tcp" },
		{ "10.0.0.1 GET /", "'10.0.0.1 GET /': requests to an address can be read in http only; give the port with /http, or use a "
				    "name" },
		{ "", "a rule is empty; write a name or a network, as in example.com:443 or 10.0.0.0/8:5432" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct net_rule r, before;
		struct cs_err err = { 0 };

		memset(&r, 0x5a, sizeof r);
		memcpy(&before, &r, sizeof r);
		if (net_rule_parse(rows[i].text, &r, &err) >= 0)
			T_FAIL("accepted: %s", rows[i].text);
		T_STR(err.msg, rows[i].want);
		T_TRUE(!memcmp(&r, &before, sizeof r));
		T_TRUE(net_rule_parse(rows[i].text, &r, NULL) < 0);
	}
}

TEST(what_could_be_read_as_another_rule_is_no_rule)
{
	static const char *const rows[] = {
		"*.*", "**", "*.", "*.*.com", "a.*.com", ".", "..", ".com", "a..b", "a b", "a.com:80,81", "a.com:80-", "a.com:-80",
		"a.com:+80", "a.com:080", "a.com: 80", "a.com:65536", "a.com:4294967376", "a.com:18446744073709551696", "a.com/TLS",
		"a.com/", "a.com//tls", "a.com/tls/tcp", "a.com:80:90", "010.0.0.1", "10.0.0.0/08", "10.0.0.0/-1", "10.0.0.1:443 GET /", "[fd00::1]/tls GET /",
		"0x7f000001", "2130706433", "127.1", "1.2.3.4.", "1.2.3.4.5", "256.1.1.1", "[]", "[::1]x", "[::1]]", "[::/129]",
		"[::/0x8]", "[::1/]", "[1.2.3.4]", "[::1]:", "::1", "a.com GET /../x", "a.com GET //x", "a.com GET /a%2fb",
		"a.com GET /a%", "a.com GET /%00", "a.com GET /a\\b", "a.com GET /a;b", "a.com GET, /", "a.com ,GET /",
		"a.com GET /x y", "a.com GET x", "a.com *,GET /", "-a.com", "a\xe3\x80\x82" "com", "b\xc3\xbc" "cher.de", "a,b", "a.com:*-80",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct net_rule r;

		if (net_rule_parse(rows[i], &r, NULL) == 0)
			T_FAIL("'%s' was read as '%s'", rows[i], r.text);
	}
}

TEST(an_overlong_rule_is_a_limit)
{
	char text[4096];
	struct net_rule r;

	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = 0;
	T_INT(net_rule_parse(text, &r, NULL), -CS_E_LIMIT);
	memcpy(text, "a.com GET /", 11);
	text[1024] = 0;
	T_INT(net_rule_parse(text, &r, NULL), -CS_E_LIMIT);
}

TEST(ports_and_protocols_follow_the_rule_or_the_port)
{
	struct net_rule r;

	must_parse("a.com", &r);
	T_TRUE(net_rule_has_port(&r, 443) && net_rule_has_port(&r, 80) && !net_rule_has_port(&r, 8080));
	T_INT(net_rule_proto(&r, 443), NET_TLS);
	T_INT(net_rule_proto(&r, 80), NET_HTTP);
	net_rule_done(&r);
	must_parse("a.com:*", &r);
	T_TRUE(net_rule_has_port(&r, 1) && net_rule_has_port(&r, 65535));
	T_INT(net_rule_proto(&r, 22), NET_TCP);
	net_rule_done(&r);
	must_parse("a.com:8000-8010/http", &r);
	T_TRUE(!net_rule_has_port(&r, 7999) && net_rule_has_port(&r, 8000) && net_rule_has_port(&r, 8010) &&
	       !net_rule_has_port(&r, 8011));
	T_INT(net_rule_proto(&r, 8001), NET_HTTP);
	net_rule_done(&r);
}

TEST(a_wildcard_is_what_is_below_and_a_star_is_every_public_name)
{
	struct net_rule r;

	must_parse("*.example.com", &r);
	T_TRUE(net_rule_has_name(&r, "a.example.com") && net_rule_has_name(&r, "a.b.example.com"));
	T_TRUE(!net_rule_has_name(&r, "example.com") && !net_rule_has_name(&r, "badexample.com") &&
	       !net_rule_has_name(&r, ".example.com"));
	net_rule_done(&r);
	must_parse("*", &r);
	T_TRUE(net_rule_has_name(&r, "example.com"));
	T_TRUE(!net_rule_has_name(&r, "localhost") && !net_rule_has_name(&r, "metadata.google.internal") &&
	       !net_rule_has_name(&r, "metadata"));
	net_rule_done(&r);
	must_parse("*.google.internal", &r);
	T_TRUE(!net_rule_has_name(&r, "metadata.google.internal") && net_rule_has_name(&r, "x.google.internal"));
	net_rule_done(&r);
	must_parse("metadata.google.internal", &r);
	T_TRUE(net_rule_has_name(&r, "metadata.google.internal"));
	net_rule_done(&r);
}

/* --- names --------------------------------------------------------------------------------- */

TEST(a_name_is_lower_case_without_its_last_dot)
{
	char ret[NET_NAME_MAX], longest[256];

	T_INT(net_name_canonical("WWW.Example.Com.", 16, ret, NULL), 0);
	T_STR(ret, "www.example.com");
	T_INT(net_name_canonical("1.2.3.4a", 8, ret, NULL), 0);
	T_INT(net_name_canonical("0x7f.com", 8, ret, NULL), 0);
	T_INT(net_name_canonical("3com.com", 8, ret, NULL), 0);
	memset(longest, 'a', sizeof longest);
	longest[63] = longest[127] = longest[191] = '.';
	T_INT(net_name_canonical(longest, 253, ret, NULL), 0);
	T_INT(strlen(ret), 253);
	T_INT(net_name_canonical(longest, 254, ret, NULL), -CS_E_INVALID);
	longest[253] = '.';
	T_INT(net_name_canonical(longest, 254, ret, NULL), 0);
	longest[63] = 'a';
	T_INT(net_name_canonical(longest, 100, ret, NULL), -CS_E_INVALID);
}

TEST(what_is_or_could_be_an_address_is_no_name)
{
	static const char *const rows[] = {
		"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0X7F000001", "017700000001", "0177.0.0.1", "0x7f.0.0.1", "0x7f.1",
		"0", "0x", "0x.", "1.2.3.0x4", "1.2.3.04", "1.2.3.4.", "a.1", "a.0x1f", "example.com.127", "::1", "[::1]", "fe80::1%lo",
		"::ffff:127.0.0.1", "256.256.256.256", "99999999999999999999", "08", "1.2.3.08", "",  ".", "..", "a..", ".a", "a b",
		"a\tb", "a/b", "a\\b", "a@b", "a:80", "a%00b", "a%2eb", "a?b", "a#b", "a,b", "a;b", "a'b", "a\"b", "a\nb", "*", "*.a",
		"a\xe3\x80\x82" "b", "a\xef\xbc\x8e" "b", "\xe2\x91\xa0.a", "a\xc2\xad", "\xff", "-a", "a\x7f",
	};
	char ret[NET_NAME_MAX] = "untouched";

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct cs_err err = { 0 };

		if (net_name_canonical(rows[i], strlen(rows[i]), ret, &err) != -CS_E_INVALID)
			T_FAIL("'%s' is a name: %s", rows[i], ret);
		T_TRUE(*err.msg && !strchr(err.msg, '\n'));
	}
	T_INT(net_name_canonical("a.com\0.evil.com", 15, ret, NULL), -CS_E_INVALID);
	T_INT(net_name_canonical("a.com\0", 6, ret, NULL), -CS_E_INVALID);
	T_STR(ret, "untouched");
}

TEST(metadata_services_are_known_by_name)
{
	static const char *const yes[] = { "metadata", "metadata.google.internal", "x.metadata.google.internal", "metadata.goog",
					   "instance-data", "instance-data.ec2.internal", "metadata.azure.internal",
					   "metadata.tencentyun.com", "metadata.packet.net", "api.metadata.cloud.ibm.com",
					   "metadata.c.project-1.internal" };
	static const char *const no[] = { "metadata.example.com", "mymetadata", "metadata.google.internal.example.com",
					  "notmetadata.goog", "goog", "google.internal" };

	for (size_t i = 0; i < ROWS(yes); i++)
		if (!net_name_is_metadata(yes[i]))
			T_FAIL("%s is not known", yes[i]);
	for (size_t i = 0; i < ROWS(no); i++)
		if (net_name_is_metadata(no[i]))
			T_FAIL("%s is taken for one", no[i]);
}

/* --- addresses ----------------------------------------------------------------------------- */

TEST(addresses_have_one_text_and_nothing_else_is_one)
{
	static const struct row rows[] = {
		{ "1.2.3.4", "1.2.3.4" }, { "::", "::" }, { "::1", "::1" }, { "2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
		{ "1:0:0:2:0:0:0:3", "1:0:0:2::3" }, { "1:2:3:4:5:6:7:0", "1:2:3:4:5:6:7:0" }, { "1::", "1::" },
		{ "::ffff:1.2.3.4", "1.2.3.4" }, { "::ffff:102:304", "1.2.3.4" }, { "64:ff9b::1.2.3.4", "64:ff9b::102:304" },
		{ "::1.2.3.4", "::102:304" }, { "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8" }, { "0:1:0:1:0:1:0:1", "0:1:0:1:0:1:0:1" },
	};
	static const char *const bad[] = { "", "1", "1.2.3", "1.2.3.4.", "1.2.3.04", "1.2.3.256", "0x1.2.3.4", " 1.2.3.4", "1.2.3.4 ",
					   "1.2.3.4%0", "::1%lo", "::1%1", "[::1]", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "12345::",
					   "::ffff:1.2.3", "::ffff:01.2.3.4", "1.2.3.4::", "1..2.3", "+1.2.3.4", "1.2.3.4\n", "::g" };

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct net_addr a = addr(rows[i].text), again;
		char text[48];

		net_addr_format(&a, text, sizeof text);
		T_STR(text, rows[i].want);
		again = addr(text);
		T_TRUE(net_addr_equal(&a, &again));
	}
	for (size_t i = 0; i < ROWS(bad); i++) {
		struct net_addr a;

		if (net_addr_parse(bad[i], &a) == 0)
			T_FAIL("'%s' is an address", bad[i]);
	}
}

static const struct {
	const char *text;
	enum net_class want;
} classes[] = {
	{ "1.1.1.1", NET_PUBLIC }, { "8.8.8.8", NET_PUBLIC }, { "9.255.255.255", NET_PUBLIC }, { "11.0.0.0", NET_PUBLIC },
	{ "172.15.255.255", NET_PUBLIC }, { "172.32.0.0", NET_PUBLIC }, { "192.167.255.255", NET_PUBLIC },
	{ "223.255.255.255", NET_PUBLIC }, { "100.63.255.255", NET_PUBLIC }, { "100.128.0.0", NET_PUBLIC },
	{ "0.0.0.0", NET_UNSPECIFIED }, { "0.0.0.1", NET_RESERVED }, { "0.255.255.255", NET_RESERVED },
	{ "10.0.0.0", NET_PRIVATE }, { "10.255.255.255", NET_PRIVATE }, { "172.16.0.0", NET_PRIVATE },
	{ "172.31.255.255", NET_PRIVATE }, { "192.168.0.1", NET_PRIVATE }, { "127.0.0.1", NET_LOOPBACK },
	{ "127.255.255.255", NET_LOOPBACK }, { "169.254.0.1", NET_LINK_LOCAL }, { "169.254.169.253", NET_LINK_LOCAL },
	{ "169.254.169.254", NET_METADATA }, { "169.254.170.2", NET_METADATA }, { "169.254.170.23", NET_METADATA },
	{ "100.100.100.200", NET_METADATA }, { "168.63.129.16", NET_METADATA }, { "192.0.0.192", NET_METADATA },
	{ "168.63.129.17", NET_PUBLIC }, { "100.64.0.0", NET_CGNAT }, { "100.127.255.255", NET_CGNAT },
	{ "192.0.0.1", NET_RESERVED }, { "192.0.2.1", NET_RESERVED }, { "192.88.99.1", NET_RESERVED },
	{ "198.18.0.0", NET_RESERVED }, { "198.19.255.255", NET_RESERVED }, { "198.20.0.0", NET_PUBLIC },
	{ "198.51.100.1", NET_RESERVED }, { "203.0.113.1", NET_RESERVED }, { "224.0.0.1", NET_MULTICAST },
	{ "239.255.255.255", NET_MULTICAST }, { "240.0.0.1", NET_RESERVED }, { "255.255.255.255", NET_RESERVED },
	{ "::", NET_UNSPECIFIED }, { "::1", NET_LOOPBACK }, { "::ffff:127.0.0.1", NET_LOOPBACK },
	{ "::ffff:169.254.169.254", NET_METADATA }, { "::ffff:8.8.8.8", NET_PUBLIC }, { "::127.0.0.1", NET_LOOPBACK },
	{ "::10.0.0.1", NET_PRIVATE }, { "::8.8.8.8", NET_PUBLIC }, { "::ffff:0:10.0.0.1", NET_PRIVATE },
	{ "::ffff:0:8.8.8.8", NET_PUBLIC }, { "64:ff9b::8.8.8.8", NET_PUBLIC }, { "64:ff9b::10.0.0.1", NET_PRIVATE },
	{ "64:ff9b::169.254.169.254", NET_METADATA }, { "64:ff9b::127.0.0.1", NET_LOOPBACK },
	{ "64:ff9b:1::8.8.8.8", NET_PUBLIC }, { "64:ff9b:1::10.0.0.1", NET_PRIVATE },
	{ "64:ff9b:1::169.254.169.254", NET_METADATA },
	{ "64:ff9b:1:a9fe:a9:fe00:808:808", NET_METADATA }, /* as a /48: 169.254.169.254 */
	{ "64:ff9b:1:a9fe:a9:fe00:a00:1", NET_METADATA },   /* and as a /96: 10.0.0.1 */
	{ "64:ff9b:1:7f:0:1:808:808", NET_LOOPBACK },       /* as a /56: 127.0.0.1 */
	{ "64:ff9b:1:0:a:0:108:808", NET_PRIVATE },         /* as a /64: 10.0.0.1 */
	{ "64:ff9b:0:1::1", NET_RESERVED }, { "2001:4860:4860::8888", NET_PUBLIC }, { "2606:4700::1111", NET_PUBLIC },
	{ "2001::1", NET_RESERVED }, { "2001:1ff:ffff::", NET_RESERVED }, { "2001:200::1", NET_PUBLIC },
	{ "2001:db8::1", NET_RESERVED }, { "2002:7f00:1::", NET_RESERVED }, { "2002:808:808::1", NET_RESERVED },
	{ "3fff:0fff::1", NET_RESERVED }, { "3fff:1000::1", NET_PUBLIC }, { "3ffe::1", NET_RESERVED },
	{ "2620:4f:8000::1", NET_RESERVED }, { "100::1", NET_RESERVED }, { "5f00::1", NET_RESERVED }, { "4000::1", NET_RESERVED },
	{ "fc00::1", NET_PRIVATE }, { "fdff::1", NET_PRIVATE }, { "fd00:ec2::254", NET_METADATA }, { "fd00:ec2::23", NET_METADATA },
	{ "fd20:ce::254", NET_METADATA }, { "fd00:ec2::253", NET_PRIVATE }, { "fe80::1", NET_LINK_LOCAL },
	{ "fe80::a9fe:a9fe", NET_METADATA }, { "febf::1", NET_LINK_LOCAL }, { "fec0::1", NET_PRIVATE }, { "ff02::1", NET_MULTICAST },
	{ "fe00::1", NET_RESERVED },
};

TEST(every_special_range_is_known_to_its_edges)
{
	struct net_addr none = { 0 };

	for (size_t i = 0; i < ROWS(classes); i++) {
		struct net_addr a = addr(classes[i].text);

		if (net_addr_class(&a) != classes[i].want)
			T_FAIL("%s is %s, want %s", classes[i].text, net_class_name(net_addr_class(&a)),
			       net_class_name(classes[i].want));
	}
	T_INT(net_addr_class(&none), NET_RESERVED);
}

TEST(a_network_holds_its_own_family_to_the_bit)
{
	struct net_addr a = addr("10.128.0.1"), net = addr("10.128.0.0"), six = addr("::");

	T_TRUE(net_addr_within(&a, &net, 9) && net_addr_within(&a, &net, 31) && !net_addr_within(&a, &net, 32));
	T_TRUE(net_addr_within(&a, &net, 0) && !net_addr_within(&a, &six, 0) && !net_addr_within(&a, &net, 33));
	net.family = 0;
	T_TRUE(!net_addr_within(&a, &net, 0) && !net_addr_within(&net, &net, 0));
}

TEST(a_host_is_a_name_and_an_address)
{
	struct cs_err err = { 0 };
	struct net_host h;

	T_INT(net_host_parse("DB.example.=10.0.0.5:5432", &h, &err), 0);
	T_STR(h.name, "db.example");
	T_INT(h.port, 5432);
	T_INT(net_host_parse("db=[fd00::1]", &h, &err), 0);
	T_INT(h.port, 0);
	T_INT(h.addr.family, 6);
	T_INT(net_host_parse("db=[::ffff:10.0.0.1]:1", &h, &err), 0);
	T_INT(h.addr.family, 4);
	static const struct row rows[] = {
		{ "db", "'db': write NAME=ADDRESS or NAME=ADDRESS:PORT, as in db.example=192.0.2.7:5432" },
		{ "db=fd00::1", "'db=fd00::1': an IPv6 address goes in brackets, as in db=[2001:db8::1]:443" },
		{ "db=a.com", "'db=a.com': 'a.com' is not an address; write 192.0.2.7 or [2001:db8::7]" },
		{ "db=[10.0.0.1]", "'db=[10.0.0.1]': '10.0.0.1' is not an address; write 192.0.2.7 or [2001:db8::7]" },
		{ "db=10.0.0.1/32", "'db=10.0.0.1/32': '10.0.0.1/32' is not an address; write 192.0.2.7 or [2001:db8::7]" },
		{ "db=10.0.0.1:80x", "'db=10.0.0.1:80x': 'x' is left over after the address; only :PORT may follow" },
		{ "*.db=10.0.0.1", "'*.db': '*' stands for whole labels at the start only, as in *.example.com" },
		{ "10.0.0.1=10.0.0.1", "'10.0.0.1' is not a name but would be read as an address; an address is four decimal numbers "
				       "from 0 to 255 without leading zeros, as in 192.0.2.1" },
	};
	for (size_t i = 0; i < ROWS(rows); i++) {
		if (net_host_parse(rows[i].text, &h, &err) == 0)
			T_FAIL("accepted: %s", rows[i].text);
		T_STR(err.msg, rows[i].want);
	}
}

/* --- verdicts ------------------------------------------------------------------------------ */

static void expect(const struct net_verdict *v, bool ok, const char *reason, const char *fix)
{
	if (v->ok != ok)
		T_FAIL("%s: %s", ok ? "refused" : "allowed", v->reason);
	T_STR(v->reason, reason);
	T_STR(v->fix, fix);
}

static bool may(const struct net_policy *p, const char *name, uint16_t port)
{
	struct net_verdict v;

	net_judge_name(p, name, port, &v);
	return v.ok;
}

TEST(what_no_rule_allows_is_refused_with_the_flag_that_would)
{
	struct net_policy p = POLICY("api.example.com"), none = { 0 };
	struct net_verdict v;

	net_judge_name(&p, "api.example.com", 443, &v);
	expect(&v, true, "", "");
	T_INT(v.proto, NET_TLS);
	T_TRUE(v.rule == &p.allow[0]);
	net_judge_name(&p, "api.example.com", 8080, &v);
	expect(&v, false, "no rule allows api.example.com:8080", "--allow api.example.com:8080");
	net_judge_name(&p, "other.example.com", 443, &v);
	expect(&v, false, "no rule allows other.example.com:443", "--allow other.example.com");
	net_judge_lookup(&none, "a.com", &v);
	expect(&v, false, "no rule allows a.com", "--allow a.com");
	net_judge_name(&p, "api.example.com", 0, &v);
	T_TRUE(!v.ok && !*v.fix);
	net_judge_name(&p, "API.example.com", 443, &v);
	expect(&v, false, "'API.example.com' is not the name of a host", "");
	net_judge_name(&p, "10.0.0.1", 443, &v);
	expect(&v, false, "'10.0.0.1' is not the name of a host", "");
	net_judge_name(&p, "x\033]0;pwned\a", 443, &v);
	expect(&v, false, "'x\\x1b]0;pwned\\x07' is not the name of a host", "");
	net_policy_done(&p);
}

TEST(deny_wins_for_the_ports_it_names_or_all)
{
	struct net_policy p = POLICY("*.example.com:*", "!bad.example.com", "!half.example.com:22", "!*.deep.example.com");
	struct net_verdict v;

	net_judge_name(&p, "bad.example.com", 9999, &v);
	expect(&v, false, "bad.example.com:9999 is denied by the rule 'bad.example.com'", "");
	T_TRUE(v.rule == &p.deny[0]);
	T_TRUE(!may(&p, "half.example.com", 22) && may(&p, "half.example.com", 443));
	T_TRUE(!may(&p, "x.deep.example.com", 1) && may(&p, "deep.example.com", 1));
	net_judge_lookup(&p, "half.example.com", &v);
	T_TRUE(v.ok);
	net_judge_lookup(&p, "bad.example.com", &v);
	T_TRUE(!v.ok);
	net_policy_done(&p);
	p = POLICY("localhost:*", "metadata", "!*:*");
	T_TRUE(!may(&p, "localhost", 80) && !may(&p, "metadata", 80));
	net_policy_done(&p);
}

TEST(a_denial_that_would_not_hold_is_no_rule)
{
	struct net_policy p = { 0 };
	struct cs_err err = { 0 };

	T_INT(net_policy_add(&p, "10.0.0.0/8:80 GET /x", true, &err), -CS_E_INVALID);
	T_STR(err.msg, "'10.0.0.0/8:80 GET /x': a network is denied whole; leave out the method and the path");
	T_INT(net_policy_add(&p, "a.com/tls", true, &err), -CS_E_INVALID);
	T_STR(err.msg, "'a.com/tls': a denial is of every protocol; leave out '/tls'");
	T_INT(p.n_deny, 0);
}

TEST(metadata_names_need_a_rule_of_that_very_name)
{
	struct net_policy p = POLICY("*:*", "*.google.internal:*");
	struct net_verdict v;

	net_judge_name(&p, "metadata.google.internal", 80, &v);
	expect(&v, false, "metadata.google.internal is a cloud metadata service, which gives out credentials; only a rule with that very "
			  "name allows it",
	       "");
	p.learn = true;
	T_TRUE(!may(&p, "metadata.google.internal", 80) && !may(&p, "metadata", 80) && !may(&p, "localhost", 80));
	add(&p, "metadata.google.internal:80", false);
	T_TRUE(may(&p, "metadata.google.internal", 80));
	net_policy_done(&p);
}

TEST(learning_takes_every_public_name_that_is_not_denied)
{
	struct net_policy p = POLICY("!bad.com");
	struct net_addr a = addr("10.0.0.1");
	struct net_verdict v;

	p.learn = true;
	net_judge_name(&p, "any.com", 22, &v);
	T_TRUE(v.ok && !v.rule && v.proto == NET_TCP);
	T_TRUE(!may(&p, "bad.com", 443));
	net_judge_address(&p, "any.com", &a, 22, false, &v);
	T_TRUE(!v.ok);
	net_judge_literal(&p, &a, 22, &v);
	T_TRUE(!v.ok);
	net_policy_done(&p);
}

TEST(the_closest_rule_says_what_is_spoken)
{
	struct net_policy p = POLICY("*:443/tcp", "*.example.com:443/http", "api.example.com");
	struct net_verdict v;

	net_judge_name(&p, "api.example.com", 443, &v);
	T_INT(v.proto, NET_TLS);
	net_judge_name(&p, "b.example.com", 443, &v);
	T_INT(v.proto, NET_HTTP);
	net_judge_name(&p, "b.com", 443, &v);
	T_INT(v.proto, NET_TCP);
	net_policy_done(&p);
	p = POLICY("a.com:*/tcp", "!a.com POST /x", "!a.com:8443/tls POST /x");
	net_judge_name(&p, "a.com", 443, &v);
	T_INT(v.proto, NET_TLS); /* or the denial could not be seen to */
	net_judge_name(&p, "a.com", 8443, &v);
	T_INT(v.proto, NET_TLS);
	net_judge_name(&p, "a.com", 22, &v);
	T_INT(v.proto, NET_TCP);
	T_TRUE(net_policy_has_requests(&p, "a.com", 443) && net_policy_has_requests(&p, "a.com", 8443) &&
	       !net_policy_has_requests(&p, "a.com", 22) && !net_policy_has_requests(&p, "b.com", 443));
	net_policy_done(&p);
}

static void literal(const struct net_policy *p, const char *text, uint16_t port, struct net_verdict *v)
{
	struct net_addr a = addr(text);

	net_judge_literal(p, &a, port, v);
}

TEST(bare_addresses_need_a_network_of_their_own)
{
	struct net_policy p = POLICY("*:*", "93.184.216.0/24:443", "[2606:4700::/32]");
	struct net_verdict v;

	literal(&p, "93.184.216.34", 443, &v);
	expect(&v, true, "", "");
	T_INT(v.proto, NET_TLS);
	literal(&p, "2606:4700::1", 80, &v);
	T_TRUE(v.ok);
	literal(&p, "93.184.216.34", 22, &v);
	expect(&v, false, "no rule allows the address 93.184.216.34 port 22; rules for names do not hold for bare addresses",
	       "--allow 93.184.216.34/32:22");
	literal(&p, "2a00::1", 443, &v);
	T_STR(v.fix, "--allow '[2a00::1/128]:443'");
	literal(&p, "169.254.169.254", 80, &v);
	expect(&v, false, "169.254.169.254 is the address of a cloud metadata service; it gives out credentials, so opening it is dangerous",
	       "--allow 169.254.169.254/32:80");
	literal(&p, "64:ff9b::169.254.169.254", 80, &v);
	T_TRUE(!v.ok);
	literal(&p, "224.0.0.1", 80, &v);
	expect(&v, false, "224.0.0.1 is a multicast address", "");
	net_policy_done(&p);
}

TEST(a_wide_network_does_not_open_what_is_special_within_it)
{
	struct net_policy p = POLICY("0.0.0.0/0:*", "[::/0]:*", "169.254.0.0/16:*", "169.254.169.254/31:*", "10.0.0.0/8:5432");
	static const char *const shut[] = { "127.0.0.1", "192.168.1.1", "0.0.0.0", "169.254.169.254", "::1", "fd00::1", "::",
					    "fe80::1", "64:ff9b::127.0.0.1", "255.255.255.255", "100.100.100.200", "10.0.0.1" };
	struct net_verdict v;

	for (size_t i = 0; i < ROWS(shut); i++) {
		literal(&p, shut[i], 80, &v);
		if (v.ok)
			T_FAIL("%s is open", shut[i]);
	}
	literal(&p, "192.168.1.1", 80, &v);
	expect(&v, false, "192.168.1.1 is a private address, and the rule '0.0.0.0/0:*' is wider than those",
	       "--allow 192.168.1.1/32:80");
	literal(&p, "8.8.8.8", 53, &v);
	T_TRUE(v.ok);
	literal(&p, "169.254.1.1", 80, &v);
	T_TRUE(v.ok);
	literal(&p, "10.0.0.1", 5432, &v);
	T_TRUE(v.ok);
	add(&p, "169.254.169.254:80", false);
	literal(&p, "169.254.169.254", 80, &v);
	T_TRUE(v.ok);
	net_policy_done(&p);
}

static void resolved(const struct net_policy *p, const char *text, uint16_t port, bool own, struct net_verdict *v)
{
	struct net_addr a = addr(text);

	net_judge_address(p, "db.example.com", &a, port, own, v);
}

TEST(an_allowed_name_may_not_lead_inside)
{
	struct net_policy p = POLICY("db.example.com:5432", "10.1.0.0/16:5432", "!93.184.0.0/16", "!10.1.1.0/24", "10.9.0.1:80 GET /");
	struct net_verdict v;

	resolved(&p, "8.8.8.8", 5432, false, &v);
	expect(&v, true, "", "");
	resolved(&p, "10.0.0.5", 5432, false, &v);
	expect(&v, false, "db.example.com is at 10.0.0.5, a private address", "--allow 10.0.0.5/32:5432");
	resolved(&p, "10.1.0.5", 5432, false, &v);
	T_TRUE(v.ok && v.rule == &p.allow[1]);
	resolved(&p, "10.1.0.5", 80, false, &v);
	T_TRUE(!v.ok);
	resolved(&p, "10.1.1.5", 5432, false, &v);
	expect(&v, false, "db.example.com is at 10.1.1.5, denied by the rule '10.1.1.0/24'", "");
	resolved(&p, "93.184.216.34", 5432, false, &v);
	T_TRUE(!v.ok && v.rule == &p.deny[0]);
	resolved(&p, "64:ff9b::93.184.216.34", 5432, false, &v);
	T_TRUE(!v.ok && v.rule == &p.deny[0]);
	resolved(&p, "8.8.8.8", 5432, true, &v);
	expect(&v, false, "db.example.com is at 8.8.8.8, an address of this machine itself", "--allow 8.8.8.8/32:5432");
	add(&p, "8.8.8.0/24:5432", false);
	resolved(&p, "8.8.8.8", 5432, true, &v);
	T_TRUE(!v.ok);
	add(&p, "8.8.8.8:5432", false);
	resolved(&p, "8.8.8.8", 5432, true, &v);
	T_TRUE(v.ok);
	resolved(&p, "169.254.169.254", 80, false, &v);
	expect(&v, false, "db.example.com is at 169.254.169.254, the address of a cloud metadata service; it gives out credentials, so "
			  "opening it is dangerous",
	       "--allow 169.254.169.254/32:80");
	resolved(&p, "10.9.0.1", 80, false, &v); /* opened for some requests to the address, not for the name */
	T_TRUE(!v.ok);
	net_policy_done(&p);
}

/* --- requests ------------------------------------------------------------------------------ */

static bool request(const struct net_policy *p, const char *method, const char *path)
{
	struct net_verdict v;

	net_judge_request(p, "api.example.com", 443, method, path, &v);
	return v.ok;
}

TEST(a_request_is_allowed_by_method_and_path)
{
	struct net_policy p = POLICY("api.example.com GET,HEAD /v1/*", "api.example.com POST /v1/**/run", "!api.example.com * /v1/admin");
	struct net_verdict v;

	T_TRUE(request(&p, "GET", "/v1/models") && request(&p, "HEAD", "/v1/models?x=/../y") && request(&p, "GET", "/v1/a%20b"));
	T_TRUE(!request(&p, "GET", "/v1/a/b") && !request(&p, "GET", "/v1/") && !request(&p, "GET", "/v1") &&
	       !request(&p, "get", "/v1/a") && !request(&p, "GETX", "/v1/a") && !request(&p, "GE", "/v1/a") && !request(&p, "", "/v1/a"));
	T_TRUE(request(&p, "POST", "/v1/run") && request(&p, "POST", "/v1/a/b/run") && !request(&p, "POST", "/v1/a/runs"));
	net_judge_request(&p, "api.example.com", 443, "DELETE", "/v1/models", &v);
	expect(&v, false, "no rule allows DELETE /v1/models at api.example.com", "--allow 'api.example.com DELETE /v1/models'");
	net_judge_request(&p, "api.example.com", 443, "GET", "/v1/admin", &v);
	expect(&v, false, "GET /v1/admin is denied by the rule 'api.example.com * /v1/admin'", "");
	net_judge_request(&p, "api.example.com", 443, "PUT", "/it's/*", &v);
	T_STR(v.fix, "--allow 'api.example.com PUT /it'\\''s/%2A'");
	net_judge_request(&p, "api.example.com", 443, "GET\r\nX", "/x", &v);
	T_TRUE(!v.ok && !*v.fix && !strchr(v.reason, '\n'));
	net_judge_request(&p, "api.example.com", 8443, "GET", "/v1/models", &v);
	expect(&v, false, "no rule allows api.example.com:8443", "--allow api.example.com:8443");
	T_TRUE(net_policy_has_requests(&p, "api.example.com", 443) && !net_policy_has_requests(&p, "b.example.com", 443));
	net_policy_done(&p);
}

static const char *const ambiguous[] = {
	"/v1/../admin", "/v1/..", "/v1/.", "/v1/./x", "/v1/%2e%2e/x", "/v1/%2E./x", "/v1/.%2e", "/v1/..;/x", "/v1/..;a=b/x", "/v1/.;/x",
	"/v1/..%3b/x", "/v1/%2e%2e%3B/x", "/v1//x", "//v1/x", "/v1/;/x", "/v1/;a", "/v1/a%2fb", "/v1/a%2Fb", "/v1/a\\b", "/v1/a%5cb",
	"/v1/..\\x", "/v1/%252e%252e/x", "/v1/%25%32%65", "/v1/%255c", "/v1/%00", "/v1/x%00.png", "/v1/%0d%0aX", "/v1/%09", "/v1/a%7f",
	"/v1/%", "/v1/%2", "/v1/%zz", "/v1/%u002e", "/v1/%c0%ae%c0%ae/x", "/v1/%e0%80%ae", "/v1/%f0%80%80%ae", "/v1/%ff", "/v1/%c3",
	"/v1/%c3x", "/v1/%ed%a0%80", "/v1/%f4%90%80%80", "/v1/%ef%bc%8f", "/v1/%ef%bc%8e%ef%bc%8e/x", "/v1/%e2%88%95", "/v1/\xc3\xa9",
	"/v1/a b", "/v1/a\tb", "/v1/a#b", "/v1/\x01", "v1/x", "", "*", "http://api.example.com/v1/x", "?x", "\\v1\\x", "/v1/...",
};

TEST(a_path_with_two_readings_is_never_allowed_and_always_denied)
{
	struct net_policy p = POLICY("api.example.com * /**"), d = POLICY("api.example.com", "!api.example.com DELETE /else");
	struct net_verdict v;

	for (size_t i = 0; i < ROWS(ambiguous); i++) {
		if (request(&p, "GET", ambiguous[i]))
			T_FAIL("allowed: %s", ambiguous[i]);
		if (request(&d, "DELETE", ambiguous[i]))
			T_FAIL("not denied: %s", ambiguous[i]);
		if (!request(&d, "GET", ambiguous[i])) /* no rule is about it */
			T_FAIL("denied: %s", ambiguous[i]);
	}
	net_judge_request(&p, "api.example.com", 443, "GET", "/v1/../x", &v);
	expect(&v, false, "the path /v1/../x could be read in two ways; send it without '..', '//', '\\' and %2F", "");
	net_policy_done(&p);
	net_policy_done(&d);
}

TEST(a_denial_holds_for_every_spelling_of_a_path)
{
	struct net_policy p = POLICY("api.example.com", "!api.example.com POST /repos/acme/*/merge", "!api.example.com * /admin");
	static const char *const admin[] = { "/admin", "/ADMIN", "/%61dmin", "/admi%6E", "/admin/", "/admin;x=1", "/admin;/", "/admin%3bx",
					     "/admin?x", "/admin?", "/Admin;a;b/?c" };

	for (size_t i = 0; i < ROWS(admin); i++)
		if (request(&p, "GET", admin[i]) || request(&p, "x", admin[i]))
			T_FAIL("not denied: %s", admin[i]);
	T_TRUE(!request(&p, "POST", "/repos/Acme/x/merge") && !request(&p, "post", "/repos/acme/x/merge") &&
	       !request(&p, "POST", "/repos/acme//merge"));
	T_TRUE(request(&p, "GET", "/repos/acme/x/merge") && request(&p, "GET", "/administration") && request(&p, "GET", "/a/admin"));
	net_policy_done(&p);
}

TEST(parameters_in_a_path_must_be_allowed_with_and_without)
{
	struct net_policy p = POLICY("api.example.com GET /v1/*", "api.example.com GET /x/y*");

	T_TRUE(request(&p, "GET", "/v1/a;b=c") && request(&p, "GET", "/x/y;z"));
	T_TRUE(!request(&p, "GET", "/v1;/a;b/c") && !request(&p, "GET", "/v1/;a"));
	net_policy_done(&p);
	p = POLICY("api.example.com GET /a*b");
	T_TRUE(request(&p, "GET", "/ab") && request(&p, "GET", "/axxb") && !request(&p, "GET", "/a;b") && !request(&p, "GET", "/a%3bb"));
	net_policy_done(&p);
}

TEST(requests_without_a_port_are_denied_wherever_http_is_spoken)
{
	struct net_policy p = POLICY("api.example.com:8443/tls", "api.example.com:22", "!api.example.com DELETE /**", "10.0.0.1:80 GET /x");
	struct net_verdict v;

	net_judge_request(&p, "api.example.com", 8443, "DELETE", "/x", &v);
	T_TRUE(!v.ok);
	net_judge_request(&p, "api.example.com", 8443, "GET", "/x", &v);
	T_TRUE(v.ok);
	T_TRUE(net_policy_has_requests(&p, "api.example.com", 8443) && !net_policy_has_requests(&p, "api.example.com", 22));
	T_TRUE(net_policy_has_requests(&p, "10.0.0.1", 80) && !net_policy_has_requests(&p, "10.0.0.2", 80));
	net_judge_request(&p, "10.0.0.1", 80, "GET", "/x", &v);
	T_TRUE(v.ok);
	net_judge_request(&p, "10.0.0.1", 80, "GET", "/y", &v);
	expect(&v, false, "no rule allows GET /y at 10.0.0.1", "--allow '10.0.0.1/32:80 GET /y'");
	net_policy_done(&p);
}

TEST(every_fix_is_a_rule_that_allows_what_was_refused)
{
	static const struct {
		const char *name, *method, *path;
		uint16_t port;
	} rows[] = {
		{ "a.com", "GET", "/x", 443 }, { "a.com", "GET", "/a%20b/%C3%A9", 80 }, { "a.com", "M-SEARCH", "/*?q", 443 },
		{ "a.com", "GET", "/", 443 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct net_policy p = POLICY("a.com * /other", "a.com:8080/http * /other");
		struct net_verdict v;
		char rule[200];

		net_judge_request(&p, rows[i].name, rows[i].port, rows[i].method, rows[i].path, &v);
		T_TRUE(!v.ok && !strncmp(v.fix, "--allow '", 9));
		snprintf(rule, sizeof rule, "%.*s", (int)strlen(v.fix) - 10, v.fix + 9);
		add(&p, rule, false);
		net_judge_request(&p, rows[i].name, rows[i].port, rows[i].method, rows[i].path, &v);
		if (!v.ok)
			T_FAIL("'%s' does not allow %s: %s", rule, rows[i].path, v.reason);
		net_policy_done(&p);
	}
}

TEST(long_and_hostile_text_is_cut_and_a_fix_never_is)
{
	struct net_policy p = POLICY("api.example.com GET /x");
	char path[9000], name[NET_NAME_MAX];
	struct net_verdict v;

	memset(path, 'a', sizeof path);
	path[0] = '/';
	path[sizeof path - 1] = 0;
	net_judge_request(&p, "api.example.com", 443, "GET", path, &v);
	T_TRUE(!v.ok && !*v.fix);
	path[300] = 0;
	net_judge_request(&p, "api.example.com", 443, "GET", path, &v);
	T_TRUE(!v.ok && !*v.fix && strstr(v.reason, "..."));
	memset(name, 'b', sizeof name);
	for (size_t i = 50; i < sizeof name; i += 51)
		name[i] = '.';
	name[250] = 0;
	net_judge_name(&p, name, 443, &v);
	T_TRUE(!v.ok && !*v.fix && strstr(v.reason, "..."));
	net_policy_done(&p);
}

TEST(a_pattern_made_to_be_slow_is_not)
{
	struct net_policy p = { 0 };
	char rule[600] = "api.example.com GET ", path[4000];
	long start = t_now_ms();

	for (int i = 0; i < 60; i++)
		strcat(rule, "/**/a*a*");
	strcat(rule, "/b");
	add(&p, rule, false);
	memset(path, 'a', sizeof path);
	for (size_t i = 0; i < sizeof path; i += 8)
		path[i] = '/';
	path[sizeof path - 1] = 0;
	for (int i = 0; i < 100; i++)
		T_TRUE(!request(&p, "GET", path));
	T_TRUE(t_now_ms() - start < 5000);
	net_policy_done(&p);
}

TEST(there_are_only_so_many_rules_and_each_counts_once)
{
	struct net_policy p = { 0 };
	struct cs_err err = { 0 };
	char rule[64];

	for (int i = 0; i < NET_RULES_MAX; i++) {
		snprintf(rule, sizeof rule, "h%d.example.com", i);
		add(&p, rule, false);
		add(&p, rule, false);
	}
	T_INT(p.n_allow, NET_RULES_MAX);
	T_INT(net_policy_add(&p, "more.example.com", false, &err), -CS_E_LIMIT);
	T_INT(net_policy_add_host(&p, "db=10.0.0.1", &err), 0);
	T_INT(net_policy_add_host(&p, "db=10.0.0.1", &err), 0);
	T_INT(net_policy_add_host(&p, "db=10.0.0.2", &err), -CS_E_CONFLICT);
	T_INT(p.n_hosts, 1);
	T_TRUE(net_policy_host(&p, "db") && !net_policy_host(&p, "dc"));
	net_policy_done(&p);
	T_INT(p.n_allow, 0);
}

TEST(a_name_in_disguise_is_judged_as_none)
{
	struct net_policy p = POLICY("*:*", "*.com:*", "localhost:*");
	static const char *const rows[] = { "127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "::1", "[::1]", "::ffff:7f00:1",
					    "a.com.", "A.com", "a..com", ".com", "", "*", "*.com", "a.com/", "a.com:80", "u@a.com",
					    "a.com%00", "a.com\n", "localhost.", "LOCALHOST", "a\xe3\x80\x82" "com", "fe80::1%eth0", "a com" };

	p.learn = true;
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct net_verdict v;

		net_judge_lookup(&p, rows[i], &v);
		T_TRUE(!v.ok && !*v.fix && !strchr(v.reason, '\n'));
		net_judge_name(&p, rows[i], 80, &v);
		if (v.ok)
			T_FAIL("allowed: %s", rows[i]);
		net_judge_request(&p, rows[i], 80, "GET", "/", &v);
		if (v.ok)
			T_FAIL("a request to it is allowed: %s", rows[i]);
	}
	T_TRUE(may(&p, "a.com", 80) && may(&p, "localhost", 80));
	net_policy_done(&p);
}
