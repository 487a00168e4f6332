/* SPDX-License-Identifier: Apache-2.0 */
/* rule.c - the text of a rule, and what it stands for.
 *
 * `/` is both the prefix of a network and the protocol.  A digit after the `/`
 * that follows an IPv4 address is a prefix; inside brackets it always is; after
 * the ports it never is. */
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "netpolicy/internal.h"

#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"

const char *net_proto_name(enum net_proto p)
{
	switch (p) {
	case NET_AUTO: return "auto";
	case NET_TCP: return "tcp";
	case NET_TLS: return "tls";
	case NET_HTTP: return "http";
	}
	return "?";
}

static int is_url(const char *where, struct cs_err *err)
{
	const char *host = strstr(where, "://") + 3;
	size_t n = strcspn(host, "/?#");
	const char *path = host[n] == '/' ? host + n : "";
	size_t name_len = strcspn(host, ":/?#");
	char name[NET_NAME_MAX];

	/* A name, or a name and a port, can be said again; anything else only in general. */
	if (net_name_canonical(host, name_len, name, NULL) < 0 ||
	    (name_len < n && (n - name_len > 6 || name_len + 1 + strspn(host + name_len + 1, DIGITS) != n)))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a rule is a name, not a URL; write it as api.example.com:443",
			       SHOWN(where));
	if (*path && path[1])
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a rule is a name, not a URL; write '%.*s', or '%.*s GET %s'",
			       SHOWN(where), (int)n, host, (int)n, host, SHOWN(path));
	return cs_fail(err, CS_E_INVALID, 0, "'%s': a rule is a name, not a URL; write '%.*s'", SHOWN(where), (int)n, host);
}

static int parse_port(const char *where, const char *s, size_t n, uint16_t *ret, struct cs_err *err)
{
	unsigned v = 0;

	for (size_t i = 0; i < n && i < 6; i++)
		v = v * 10 + (unsigned)(s[i] - '0');
	if (n == 0 || n > 5 || *s == '0' || v == 0 || v > 65535)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '%.*s' is not a port; ports are 1 to 65535, a range is 8000-8010, all are *",
			       SHOWN(where), (int)(n < 12 ? n : 12), s);
	*ret = (uint16_t)v;
	return 0;
}

/* After the ':'.  *s is moved behind the ports. */
static int parse_ports(const char *where, const char **s, struct net_rule *r, struct cs_err *err)
{
	size_t n = strspn(*s, DIGITS);
	int e;

	r->default_ports = false;
	if (**s == '*') {
		r->port_lo = 0;
		r->port_hi = 65535;
		(*s)++;
		return 0;
	}
	if (n == 0)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a port comes after ':', as in :443, :8000-8010 or :*", SHOWN(where));
	e = parse_port(where, *s, n, &r->port_lo, err);
	if (e < 0)
		return e;
	r->port_hi = r->port_lo;
	*s += n;
	if (**s != '-')
		return 0;
	(*s)++;
	n = strspn(*s, DIGITS);
	e = parse_port(where, *s, n, &r->port_hi, err);
	if (e < 0)
		return e;
	*s += n;
	if (r->port_lo > r->port_hi)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a range goes from the lower port to the higher: %u-%u", SHOWN(where),
			       r->port_hi, r->port_lo);
	return 0;
}

/* A number where a protocol should be: a port or a prefix in the wrong place.  head: what is before. */
static int misplaced_number(const char *where, const char *number, const struct net_rule *r, struct cs_err *err)
{
	const char *slash = number - 1;
	int head = (int)(slash - where), n = (int)strlen(number);

	if (head > 255 || n > 8)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a port comes after ':'", SHOWN(where));
	if (r->default_ports)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a port comes after ':', as in %.*s:%s", SHOWN(where), head, where,
			       number);
	if (r->net.family) {
		const char *colon = strrchr(where, ':');

		return cs_fail(err, CS_E_INVALID, 0, "'%s': the prefix comes before the port, as in %.*s/%s%.*s", SHOWN(where),
			       (int)(colon - where), where, number, (int)(slash - colon), colon);
	}
	return cs_fail(err, CS_E_INVALID, 0, "'%s': a range of ports is written with '-', as in :8000-8010", SHOWN(where));
}

/* After the '/', to the end. */
static int parse_proto(const char *where, const char *s, struct net_rule *r, struct cs_err *err)
{
	int head = (int)(s - 1 - where);

	for (enum net_proto p = NET_TCP; p <= NET_HTTP; p++)
		if (!strcmp(s, net_proto_name(p))) {
			r->proto = p;
			return 0;
		}
	if (*s && s[strspn(s, DIGITS)] == 0)
		return misplaced_number(where, s, r, err);
	if (!strcmp(s, "https") || !strcmp(s, "ssl"))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '%s' is called tls here, as in %.*s/tls", SHOWN(where), s,
			       head < 255 ? head : 255, where);
	if (!strcmp(s, "udp") || !strcmp(s, "quic"))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': nothing goes out over udp; the protocols are tcp, tls and http",
			       SHOWN(where));
	return cs_fail(err, CS_E_INVALID, 0,
		       "'%s': '%s' is not a protocol (tcp, tls, http); a path comes after a method, as in 'example.com GET /path'",
		       SHOWN(where), SHOWN(s));
}

/* [:PORTS][/PROTO], to the end. */
static int parse_tail(const char *where, const char *s, struct net_rule *r, struct cs_err *err)
{
	int e;

	if (*s == ':') {
		s++;
		e = parse_ports(where, &s, r, err);
		if (e < 0)
			return e;
	}
	if (*s == '/')
		return parse_proto(where, s + 1, r, err);
	if (*s)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '%s' is left over; after the name come :PORT and /tcp, /tls or /http",
			       SHOWN(where), SHOWN(s));
	return 0;
}

/* The network of a with only its first bits left. */
static struct net_addr network_of(const struct net_addr *a, unsigned bits)
{
	struct net_addr net = *a;

	for (unsigned i = 0; i < 16; i++)
		net.b[i] = bits >= 8 * (i + 1) ? a->b[i] : bits <= 8 * i ? 0 : (uint8_t)(a->b[i] & 0xff00 >> (bits - 8 * i));
	return net;
}

/* addr and, behind its '/', the prefix (n bytes; prefix NULL: the address alone). */
static int set_network(const char *where, const struct net_addr *a, const char *prefix, size_t n, struct net_rule *r,
		       struct cs_err *err)
{
	unsigned max = a->family == 4 ? 32 : 128, bits = 0;
	struct net_addr net;
	char text[48];

	for (size_t i = 0; prefix && i < n && i < 4; i++)
		bits = bits * 10 + (unsigned)(prefix[i] - '0');
	if (!prefix)
		bits = max;
	else if (n == 0 || n > 3 || bits > max || (n > 1 && *prefix == '0'))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '/%.*s' is not a prefix; of an IPv%u network it is /0 to /%u; a port comes "
						     "after ':'",
			       SHOWN(where), (int)(n < 12 ? n : 12), prefix, a->family, max);
	net = network_of(a, bits);
	net_addr_format(&net, text, sizeof text);
	if (!net_addr_equal(a, &net))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': the address has bits set beyond /%u; the network is %s%s/%u%s",
			       SHOWN(where), bits, a->family == 6 ? "[" : "", text, bits, a->family == 6 ? "]" : "");
	r->net = net;
	r->bits = (uint8_t)bits;
	return 0;
}

/* [ADDRESS[/PREFIX]]..., where is at the '['. */
static int parse_bracketed(const char *where, struct net_rule *r, struct cs_err *err)
{
	const char *end = strchr(where, ']'), *prefix = NULL;
	char text[64];
	struct net_addr a;
	size_t n;
	int e;

	if (!end)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': the ']' is missing, as in [2001:db8::/32]:443", SHOWN(where));
	n = strcspn(where, "/]");
	if (where[n] == '/')
		prefix = where + n + 1;
	snprintf(text, sizeof text, "%.*s", n - 1 < sizeof text ? (int)n - 1 : (int)sizeof text, where + 1);
	if (strchr(text, '%'))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': an address has no zone here; leave out the '%%' and what follows",
			       SHOWN(where));
	if (net_addr_parse(text, &a) < 0)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '%s' is not an IPv6 address", SHOWN(where), SHOWN(text));
	if (a.family == 4) {
		net_addr_format(&a, text, sizeof text);
		return cs_fail(err, CS_E_INVALID, 0, "'%s': write an IPv4 address as such and without brackets: %s", SHOWN(where),
			       text);
	}
	if (prefix && (prefix >= end || prefix + strspn(prefix, DIGITS) != end))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': the prefix of an IPv6 network is /0 to /128, as in [fd00::/8]",
			       SHOWN(where));
	e = set_network(where, &a, prefix, prefix ? (size_t)(end - prefix) : 0, r, err);
	if (e < 0)
		return e;
	if (end[1] == '/' && strspn(end + 2, DIGITS))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': the prefix goes inside the brackets, as in [fd00::/8], and a port after ':'",
			       SHOWN(where));
	return parse_tail(where, end + 1, r, err);
}

static int parse_name(const char *where, size_t n, struct net_rule *r, struct cs_err *err)
{
	const char *name = where;

	if (n == 1 && *name == '*') {
		strcpy(r->name, "*");
		return 0;
	}
	if (n == 2 && !strncmp(name, "*.", 2))
		return cs_fail(err, CS_E_INVALID, 0, "'*.': a name comes after '*.', as in *.example.com; '*' alone is every public name");
	if (n > 2 && !strncmp(name, "*.", 2)) {
		r->wildcard = true;
		name += 2;
		n -= 2;
	}
	return net_name_canonical(name, n, r->name, err);
}

/* Where: the first word of a rule. */
static int parse_where(const char *where, struct net_rule *r, struct cs_err *err)
{
	size_t n = strcspn(where, ":/");
	char text[32];
	struct net_addr a;
	int e;

	if (strstr(where, "://"))
		return is_url(where, err);
	if (*where == '[')
		return parse_bracketed(where, r, err);
	if (where[n] == ':' && strchr(where + n + 1, ':') && strspn(where, DIGITS "abcdefABCDEF:.") >= n + 2)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': an IPv6 address goes in brackets, as in [2001:db8::1]:443 or [fd00::/8]:443",
			       SHOWN(where));
	if (n == 0)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a name or an address comes first, as in example.com:443", SHOWN(where));
	snprintf(text, sizeof text, "%.*s", n < sizeof text ? (int)n : (int)sizeof text, where);
	if (net_addr_parse(text, &a) == 0) {
		const char *s = where + n, *prefix = NULL;
		size_t digits = 0;

		if (*s == '/' && (s[1] == 0 || strspn(s + 1, DIGITS))) {
			prefix = s + 1;
			digits = strspn(prefix, DIGITS);
			s = prefix + digits;
		}
		e = set_network(where, &a, prefix, digits, r, err);
		return e < 0 ? e : parse_tail(where, s, r, err);
	}
	if (where[n] == '/' && strspn(where, DIGITS ".") == n)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '%.*s' is not an address; write all four numbers, as in 10.0.0.0/8",
			       SHOWN(where), n < 32 ? (int)n : 32, where);
	e = parse_name(where, n, r, err);
	return e < 0 ? e : parse_tail(where, where + n, r, err);
}

static int parse_methods(const char *text, char *methods, struct net_rule *r, struct cs_err *err)
{
	if (*methods == '/')
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a method comes before the path, as in 'GET %s', or '*' for all",
			       SHOWN(text), SHOWN(methods));
	if (!strcmp(methods, "*"))
		return 0;
	for (const char *s = methods;;) {
		size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_");

		if (n == 0 || n > 32 || (s[n] && s[n] != ','))
			return cs_fail(err, CS_E_INVALID, 0,
				       "'%s': '%s' is not a list of methods; they are in capitals with commas and no spaces, as in GET,HEAD",
				       SHOWN(text), SHOWN(methods));
		if (!s[n])
			break;
		s += n + 1;
	}
	r->methods = cs_strdup(methods);
	return 0;
}

static int parse_path(const char *text, const char *path, struct net_rule *r, struct cs_err *err)
{
	char read[PATTERN_MAX * 3 + 1];

	if (*path != '/')
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a path begins with '/', and '*' in it is one segment: /v1/* or /**",
			       SHOWN(text));
	if (strlen(path) > PATTERN_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "'%s': a path pattern has at most %d bytes", SHOWN(text), PATTERN_MAX);
	if (strchr(path, '?') || strchr(path, '#'))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': only the path is matched; leave out '%c' and what follows", SHOWN(text),
			       path[strcspn(path, "?#")]);
	for (const char *s = path; (s = strstr(s, "**")); s += 2)
		if (s[-1] != '/' || (s[2] && s[2] != '/'))
			return cs_fail(err, CS_E_INVALID, 0, "'%s': '**' stands for whole segments, as in /v1/** or /**/raw; within one, "
							     "write '*'",
				       SHOWN(text));
	if (net_path_read(path, /* pattern= */ true, read, sizeof read) < 0)
		return cs_fail(err, CS_E_INVALID, 0,
			       "'%s': the path could be read in two ways: no '.' or '..' segments, '//', '\\', ';', %%2F, or bytes that "
			       "are not printable ASCII (escape them as UTF-8)",
			       SHOWN(text));
	r->path = cs_strdup(read);
	return 0;
}

/* A request can only be read where we speak HTTP, and guessing that of a port would be wrong. */
static int check_readable(const char *text, const char *where, const struct net_rule *r, struct cs_err *err)
{
	bool known = r->default_ports || (r->port_lo == r->port_hi && (r->port_lo == 443 || r->port_lo == 80));

	if (r->proto == NET_TCP)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': requests can be read in tls and http, not in tcp", SHOWN(text));
	/* To read TLS we speak for the server, which takes a name. */
	if (r->net.family && !(r->proto == NET_HTTP || (r->proto == NET_AUTO && r->port_lo == 80 && r->port_hi == 80)))
		return cs_fail(err, CS_E_INVALID, 0,
			       "'%s': requests to an address can be read in http only; give the port with /http, or use a name", SHOWN(text));
	if (r->proto == NET_AUTO && !known)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': say what is spoken on that port: %s/tls or %s/http", SHOWN(text),
			       SHOWN(where), SHOWN(where));
	return 0;
}

static void write_canonical(const struct net_rule *r, struct cs_buf *b)
{
	char addr[48];

	if (r->net.family) {
		net_addr_format(&r->net, addr, sizeof addr);
		cs_buf_fmt(b, r->net.family == 6 ? "[%s/%u]" : "%s/%u", addr, r->bits);
	} else {
		cs_buf_fmt(b, "%s%s", r->wildcard ? "*." : "", r->name);
	}
	if (!r->default_ports && r->port_lo == 0)
		cs_buf_str(b, ":*");
	else if (!r->default_ports)
		cs_buf_fmt(b, r->port_lo == r->port_hi ? ":%u" : ":%u-%u", r->port_lo, r->port_hi);
	if (r->proto != NET_AUTO)
		cs_buf_fmt(b, "/%s", net_proto_name(r->proto));
	if (r->path)
		cs_buf_fmt(b, " %s %s", r->methods ? r->methods : "*", r->path);
}

/* word: cut into at most three at blanks. */
static int split(char *copy, char *word[3], struct cs_err *err)
{
	size_t n = 0;
	char *save = NULL;

	for (char *w = strtok_r(copy, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (n == 3)
			return cs_fail(err, CS_E_INVALID, 0, "'%s' is one word too many; a rule is WHERE, or WHERE METHODS PATH, as in "
							     "'example.com GET,HEAD /v1/**'",
				       SHOWN(w));
		word[n++] = w;
	}
	if (n == 0)
		return cs_fail(err, CS_E_INVALID, 0, "a rule is empty; write a name or a network, as in example.com:443 or 10.0.0.0/8:5432");
	if (word[1] && !word[2])
		return cs_fail(err, CS_E_INVALID, 0, "'%s %s': methods and path come together, as in '%s GET /v1/**'", SHOWN(word[0]),
			       SHOWN(word[1]), SHOWN(word[0]));
	return 0;
}

int net_rule_parse(const char *text, struct net_rule *ret, struct cs_err *err)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(2 * RULE_TEXT_MAX);
	CS_CLEANUP(net_rule_done) struct net_rule r = { .default_ports = true };
	CS_FREE char *copy = NULL;
	char *word[3];
	int e;

	if (strlen(text) > RULE_TEXT_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "'%s': a rule has at most %d bytes", SHOWN(text), RULE_TEXT_MAX);
	word[0] = copy = cs_strdup(text);
	word[1] = word[2] = NULL;
	e = split(copy, word, err);
	if (e < 0)
		return e;
	e = parse_where(word[0], &r, err);
	if (e < 0)
		return e;
	if (word[1] && word[2]) {
		e = parse_methods(text, word[1], &r, err);
		if (e == 0)
			e = parse_path(text, word[2], &r, err);
		if (e == 0)
			e = check_readable(text, word[0], &r, err);
		if (e < 0)
			return e;
	}
	write_canonical(&r, &out);
	r.text = cs_strdup(cs_buf_text(&out));
	*ret = r;
	memset(&r, 0, sizeof r); /* the caller's now */
	return 0;
}

void net_rule_done(struct net_rule *r)
{
	if (!r)
		return;
	free(r->text);
	free(r->methods);
	free(r->path);
	memset(r, 0, sizeof *r);
}

bool net_rule_has_port(const struct net_rule *r, uint16_t port)
{
	if (r->default_ports)
		return port == 443 || port == 80;
	return port >= r->port_lo && port <= r->port_hi;
}

bool net_rule_denies_name(const struct net_rule *r, const char *name)
{
	size_t n = strlen(name), tail = strlen(r->name);

	if (r->net.family || !*r->name)
		return false;
	if (!strcmp(r->name, "*"))
		return true;
	if (!r->wildcard)
		return !strcmp(r->name, name);
	return n > tail + 1 && name[n - tail - 1] == '.' && !strcmp(name + n - tail, r->name);
}

bool net_rule_has_name(const struct net_rule *r, const char *name)
{
	bool every = !strcmp(r->name, "*");

	if ((every || r->wildcard) && net_name_is_metadata(name))
		return false;
	if (every && !strchr(name, '.'))
		return false;
	return net_rule_denies_name(r, name);
}

enum net_proto net_rule_proto(const struct net_rule *r, uint16_t port)
{
	if (r->proto != NET_AUTO)
		return r->proto;
	return port == 443 ? NET_TLS : port == 80 ? NET_HTTP : NET_TCP;
}

bool net_rule_reads_tls(const struct net_rule *r)
{
	bool one = !r->default_ports && r->port_lo == r->port_hi;

	return (r->methods || r->path) && r->proto != NET_HTTP && !(one && net_rule_proto(r, r->port_lo) == NET_HTTP);
}

int net_host_parse(const char *text, struct net_host *ret, struct cs_err *err)
{
	const char *eq = strchr(text, '='), *end, *s;
	struct net_host h = { 0 };
	char addr[64];
	size_t n;
	int e;

	if (!eq)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': write NAME=ADDRESS or NAME=ADDRESS:PORT, as in db.example=192.0.2.7:5432",
			       SHOWN(text));
	e = net_name_canonical(text, (size_t)(eq - text), h.name, err);
	if (e < 0)
		return e;
	s = eq + 1;
	if (*s != '[' && strchr(s, ':') && strchr(strchr(s, ':') + 1, ':'))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': an IPv6 address goes in brackets, as in %s=[2001:db8::1]:443", SHOWN(text),
			       SHOWN(h.name));
	end = *s == '[' ? strchr(s, ']') : s + strcspn(s, ":");
	if (!end)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': the ']' is missing", SHOWN(text));
	if (*s == '[')
		s++;
	n = (size_t)(end - s);
	snprintf(addr, sizeof addr, "%.*s", n < sizeof addr ? (int)n : (int)sizeof addr, s);
	if (net_addr_parse(addr, &h.addr) < 0 || (*end == ']') != (strchr(addr, ':') != NULL))
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '%s' is not an address; write 192.0.2.7 or [2001:db8::7]", SHOWN(text),
			       SHOWN(addr));
	if (*end == ']')
		end++;
	if (*end == ':') {
		n = strspn(end + 1, DIGITS);
		e = parse_port(text, end + 1, n, &h.port, err);
		if (e < 0)
			return e;
		end += 1 + n;
	}
	if (*end)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '%s' is left over after the address; only :PORT may follow", SHOWN(text),
			       SHOWN(end));
	*ret = h;
	return 0;
}
