/* SPDX-License-Identifier: Apache-2.0 */
#include "netpolicy/internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const uint8_t mapped_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

struct net_addr net_addr_of(int af, const void *bytes)
{
	struct net_addr a = { 0 };
	const uint8_t *b = bytes;

	if (af == AF_INET) {
		a.family = 4;
		memcpy(a.b, b, 4);
	} else if (af == AF_INET6 && !memcmp(b, mapped_prefix, sizeof mapped_prefix)) {
		a.family = 4;
		memcpy(a.b, b + 12, 4);
	} else if (af == AF_INET6) {
		a.family = 6;
		memcpy(a.b, b, 16);
	}
	return a;
}

/* One decimal number from 0 to 255 without leading zeros; NULL: it is none. */
static const char *quad_part(const char *s, uint8_t *ret)
{
	size_t n = strspn(s, "0123456789");
	unsigned v = 0;

	if (n == 0 || n > 3 || (n > 1 && *s == '0'))
		return NULL;
	for (size_t i = 0; i < n; i++)
		v = v * 10 + (unsigned)(s[i] - '0');
	if (v > 255)
		return NULL;
	*ret = (uint8_t)v;
	return s + n;
}

static int parse_quad(const char *s, uint8_t b[4])
{
	for (int i = 0; i < 4; i++) {
		if (i > 0 && *s++ != '.')
			return -CS_E_INVALID;
		s = quad_part(s, &b[i]);
		if (!s)
			return -CS_E_INVALID;
	}
	return *s ? -CS_E_INVALID : 0;
}

int net_addr_parse(const char *text, struct net_addr *ret)
{
	uint8_t b[16];

	if (!strchr(text, ':')) {
		if (parse_quad(text, b) < 0)
			return -CS_E_INVALID;
		*ret = net_addr_of(AF_INET, b);
		return 0;
	}
	/* inet_pton() takes no zone, no octal and no short forms, in glibc and in musl; the check of
	 * its letters is a second wall. */
	if (text[strspn(text, "0123456789abcdefABCDEF:.")] || inet_pton(AF_INET6, text, b) != 1)
		return -CS_E_INVALID;
	*ret = net_addr_of(AF_INET6, b);
	return 0;
}

static unsigned group(const struct net_addr *a, int i)
{
	return (unsigned)a->b[2 * i] << 8 | a->b[2 * i + 1];
}

/* The longest run of two or more zero groups, the first of equals (RFC 5952). */
static int longest_zeros(const struct net_addr *a, int *ret_len)
{
	int best = -1, best_len = 1;

	for (int i = 0; i < 8; i++) {
		int n = 0;

		while (i + n < 8 && group(a, i + n) == 0)
			n++;
		if (n > best_len) {
			best = i;
			best_len = n;
		}
		i += n;
	}
	*ret_len = best_len;
	return best;
}

void net_addr_format(const struct net_addr *a, char *ret, size_t size)
{
	char text[48] = "";
	size_t at = 0;
	int zeros, len;

	if (a->family == 4) {
		snprintf(ret, size, "%u.%u.%u.%u", a->b[0], a->b[1], a->b[2], a->b[3]);
		return;
	}
	if (a->family != 6) {
		snprintf(ret, size, "none");
		return;
	}
	/* By hand: the two libcs differ in when they write the last four bytes as a quad. */
	zeros = longest_zeros(a, &len);
	for (int i = 0; i < 8; i++) {
		if (i == zeros) {
			at += (size_t)snprintf(text + at, sizeof text - at, "::");
			i += len - 1;
			continue;
		}
		at += (size_t)snprintf(text + at, sizeof text - at, "%s%x", at && text[at - 1] != ':' ? ":" : "", group(a, i));
	}
	snprintf(ret, size, "%s", text);
}

bool net_addr_equal(const struct net_addr *a, const struct net_addr *b)
{
	return a->family == b->family && !memcmp(a->b, b->b, a->family == 4 ? 4 : 16);
}

bool net_addr_within(const struct net_addr *a, const struct net_addr *net, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (!a->family || a->family != net->family || bits > (a->family == 4 ? 32 : 128))
		return false;
	if (memcmp(a->b, net->b, whole) != 0)
		return false;
	return rest == 0 || (a->b[whole] ^ net->b[whole]) >> (8 - rest) == 0;
}

struct range {
	uint8_t b[16];
	uint8_t bits;
	uint8_t class;
};

/* The IANA special-purpose registry for IPv4 (RFC 6890 and later), and the metadata services.  The
 * first that matches counts.  What the registry calls globally reachable but is no place for
 * servers (AS112, AMT) is reserved here. */
static const struct range ranges4[] = {
	{ { 169, 254, 169, 254 }, 32, NET_METADATA }, /* nearly everyone */
	{ { 169, 254, 170, 2 }, 32, NET_METADATA },   /* AWS, tasks */
	{ { 169, 254, 170, 23 }, 32, NET_METADATA },  /* AWS, pods */
	{ { 169, 254, 0, 23 }, 32, NET_METADATA },    /* Tencent */
	{ { 169, 254, 42, 42 }, 32, NET_METADATA },   /* Scaleway */
	{ { 100, 100, 100, 200 }, 32, NET_METADATA }, /* Alibaba */
	{ { 168, 63, 129, 16 }, 32, NET_METADATA },   /* Azure, wire server */
	{ { 192, 0, 0, 192 }, 32, NET_METADATA },     /* Oracle */
	{ { 0, 0, 0, 0 }, 32, NET_UNSPECIFIED },
	{ { 0 }, 8, NET_RESERVED },
	{ { 10 }, 8, NET_PRIVATE },
	{ { 100, 64 }, 10, NET_CGNAT },
	{ { 127 }, 8, NET_LOOPBACK },
	{ { 169, 254 }, 16, NET_LINK_LOCAL },
	{ { 172, 16 }, 12, NET_PRIVATE },
	{ { 192, 0, 0 }, 24, NET_RESERVED },
	{ { 192, 0, 2 }, 24, NET_RESERVED },
	{ { 192, 31, 196 }, 24, NET_RESERVED },
	{ { 192, 52, 193 }, 24, NET_RESERVED },
	{ { 192, 88, 99 }, 24, NET_RESERVED },
	{ { 192, 168 }, 16, NET_PRIVATE },
	{ { 192, 175, 48 }, 24, NET_RESERVED },
	{ { 198, 18 }, 15, NET_RESERVED },
	{ { 198, 51, 100 }, 24, NET_RESERVED },
	{ { 203, 0, 113 }, 24, NET_RESERVED },
	{ { 224 }, 4, NET_MULTICAST },
	{ { 240 }, 4, NET_RESERVED },
};

/* The same for IPv6, without what carries an IPv4 address.  Outside 2000::/3 nothing is assigned. */
static const struct range ranges6[] = {
	{ { 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 }, 128, NET_METADATA },             /* AWS */
	{ { 0xfd, 0, 0x0e, 0xc2, [15] = 0x23 }, 128, NET_METADATA },                          /* AWS, pods */
	{ { 0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54 }, 128, NET_METADATA },             /* Google */
	{ { 0xfd, 0, 0, 0x42, [15] = 0x42 }, 128, NET_METADATA },                             /* Scaleway */
	{ { 0xfe, 0x80, [12] = 0xa9, [13] = 0xfe, [14] = 0xa9, [15] = 0xfe }, 128, NET_METADATA }, /* OpenStack */
	{ { 0 }, 128, NET_UNSPECIFIED },
	{ { [15] = 1 }, 128, NET_LOOPBACK },
	{ { 0x20, 0x01, 0 }, 23, NET_RESERVED },          /* protocol assignments, Teredo, ORCHID, benchmarking */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, NET_RESERVED }, /* documentation */
	{ { 0x20, 0x02 }, 16, NET_RESERVED },             /* 6to4 */
	{ { 0x26, 0x20, 0, 0x4f, 0x80, 0 }, 48, NET_RESERVED },
	{ { 0x3f, 0xfe }, 16, NET_RESERVED },             /* 6bone, returned */
	{ { 0x3f, 0xff, 0 }, 20, NET_RESERVED },          /* documentation */
	{ { 0x20 }, 3, NET_PUBLIC },
	{ { 0xfc }, 7, NET_PRIVATE },
	{ { 0xfe, 0x80 }, 10, NET_LINK_LOCAL },
	{ { 0xfe, 0xc0 }, 10, NET_PRIVATE },              /* site-local */
	{ { 0xff }, 8, NET_MULTICAST },
};

static enum net_class look_up(const struct net_addr *a, const struct range *r, size_t n, enum net_class otherwise)
{
	for (size_t i = 0; i < n; i++) {
		struct net_addr net = { .family = a->family };

		memcpy(net.b, r[i].b, sizeof net.b);
		if (net_addr_within(a, &net, r[i].bits))
			return r[i].class;
	}
	return otherwise;
}

/* a.b.c.d where the prefix ends at byte `at`; RFC 6052 leaves byte 8 out. */
static struct net_addr embedded(const struct net_addr *a, int at)
{
	struct net_addr in = { .family = 4 };

	for (int i = 0; i < 4; i++, at++) {
		if (at == 8)
			at++;
		in.b[i] = a->b[at];
	}
	return in;
}

size_t net_addr_inner(const struct net_addr *a, struct net_addr ret[4])
{
	static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b }, local[6] = { 0, 0x64, 0xff, 0x9b, 0, 1 },
			     translated[12] = { [8] = 0xff, [9] = 0xff }, compatible[12] = { 0 };
	size_t n = 0;

	if (a->family != 6)
		return 0;
	if (!memcmp(a->b, nat64, 12) || !memcmp(a->b, translated, 12) || !memcmp(a->b, compatible, 12)) {
		ret[0] = embedded(a, 12);
		return 1;
	}
	if (memcmp(a->b, local, 6) != 0)
		return 0;
	/* The local prefix may be a /48, /56, /64 or /96 and nobody can tell from the address.  A
	 * reading in 0.0.0.0/8 is no destination a translator would have, so it does not count. */
	ret[n++] = embedded(a, 12);
	for (int at = 6; at <= 8; at++) {
		ret[n] = embedded(a, at);
		if (ret[n].b[0] != 0)
			n++;
	}
	return n;
}

enum net_class net_addr_class(const struct net_addr *a)
{
	struct net_addr inner[4];
	enum net_class c, in;
	size_t n;

	if (a->family == 4)
		return look_up(a, ranges4, sizeof ranges4 / sizeof *ranges4, NET_PUBLIC);
	if (a->family != 6)
		return NET_RESERVED;
	c = look_up(a, ranges6, sizeof ranges6 / sizeof *ranges6, NET_RESERVED);
	n = c == NET_RESERVED ? net_addr_inner(a, inner) : 0;
	for (size_t i = 0; i < n; i++) {
		in = net_addr_class(&inner[i]);
		if (i == 0 || c == NET_PUBLIC || in == NET_METADATA)
			c = in;
	}
	return c;
}

const char *net_class_name(enum net_class c)
{
	switch (c) {
	case NET_PUBLIC: return "a public address";
	case NET_LOOPBACK: return "a loopback address";
	case NET_PRIVATE: return "a private address";
	case NET_LINK_LOCAL: return "a link-local address";
	case NET_METADATA: return "the address of a cloud metadata service";
	case NET_CGNAT: return "an address of a carrier's inner network";
	case NET_MULTICAST: return "a multicast address";
	case NET_UNSPECIFIED: return "the unspecified address";
	case NET_RESERVED: return "a reserved address";
	}
	return "an address of no known kind";
}
