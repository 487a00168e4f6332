/* SPDX-License-Identifier: Apache-2.0 */
/* format.c - the formats that are rules if formats are rules.
 *
 * Those of RFC 3339, addresses, names, URIs, pointers and patterns.  Names in
 * other scripts than ASCII are not judged: "idn-..." holds of every string.
 */
#include "schema/internal.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* What is left to read. */
struct in {
	const char *p, *end;
};

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
	return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool take(struct in *s, char c)
{
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/* Exactly n digits; -1 if there are not. */
static int number(struct in *s, int n)
{
	int v = 0;

	if (s->end - s->p < n)
		return -1;
	for (; n; n--, s->p++) {
		if (!digit(*s->p))
			return -1;
		v = v * 10 + (*s->p - '0');
	}
	return v;
}

static bool digits(struct in *s)
{
	const char *start = s->p;

	while (s->p < s->end && digit(*s->p))
		s->p++;
	return s->p > start;
}

/* ---- dates ---- */

static bool date(struct in *s)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y = number(s, 4), m = take(s, '-') ? number(s, 2) : -1, d = take(s, '-') ? number(s, 2) : -1;
	bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);

	return y >= 0 && m >= 1 && m <= 12 && d >= 1 && d <= days[m - 1] + (m == 2 && leap);
}

/* Minutes from UTC. */
static bool offset(struct in *s, int *ret)
{
	int sign, h, m;

	*ret = 0;
	if (take(s, 'Z') || take(s, 'z'))
		return true;
	sign = take(s, '+') ? 1 : take(s, '-') ? -1 : 0;
	h = sign ? number(s, 2) : -1;
	m = take(s, ':') ? number(s, 2) : -1;
	*ret = sign * (h * 60 + m);
	return h >= 0 && h <= 23 && m >= 0 && m <= 59;
}

static bool time_of_day(struct in *s)
{
	int h = number(s, 2), m = take(s, ':') ? number(s, 2) : -1, sec = take(s, ':') ? number(s, 2) : -1, off, utc;

	if (h < 0 || h > 23 || m < 0 || m > 59 || sec < 0 || sec > 60 || (take(s, '.') && !digits(s)) || !offset(s, &off))
		return false;
	utc = ((h * 60 + m - off) % 1440 + 1440) % 1440;
	return sec < 60 || utc == 1439; /* a leap second ends a day of UTC */
}

static bool date_time(struct in *s)
{
	return date(s) && (take(s, 'T') || take(s, 't')) && time_of_day(s);
}

/* Units in their order, without a gap: "P1Y2D" is none, "P1Y2M3D" is. */
static bool units(struct in *s, const char *order)
{
	const char *next = NULL;

	while (s->p < s->end && digit(*s->p)) {
		const char *at;

		digits(s);
		at = s->p < s->end && *s->p ? strchr(order, *s->p) : NULL;
		if (!at || (next && at != next))
			return false;
		next = at + 1;
		s->p++;
	}
	return next != NULL;
}

static bool duration(struct in *s)
{
	struct in week = *s;

	if (!take(s, 'P'))
		return false;
	week.p++;
	if (digits(&week) && take(&week, 'W')) {
		*s = week;
		return true;
	}
	if (take(s, 'T'))
		return units(s, "HMS");
	return units(s, "YMD") && (!take(s, 'T') || units(s, "HMS"));
}

/* ---- addresses and names ---- */

static bool ipv4(struct in *s)
{
	for (int i = 0; i < 4; i++) {
		const char *start = s->p;
		int v = 0;

		if (i && !take(s, '.'))
			return false;
		start += i > 0;
		while (s->p < s->end && digit(*s->p) && s->p - start < 4)
			v = v * 10 + (*s->p++ - '0');
		if (s->p == start || v > 255 || (*start == '0' && s->p - start > 1))
			return false;
	}
	return true;
}

static bool ipv6(struct in *s)
{
	char text[64];
	size_t n = (size_t)(s->end - s->p);
	struct in6_addr a;
	const char *dot;

	if (n >= sizeof text || memchr(s->p, '\0', n))
		return false;
	memcpy(text, s->p, n);
	text[n] = '\0';
	dot = strchr(text, '.');
	if (dot) { /* stricter than inet_pton(): no zeros in front */
		struct in v4 = { strrchr(text, ':') ? strrchr(text, ':') + 1 : text, text + n };

		if (!ipv4(&v4) || v4.p != v4.end)
			return false;
	}
	s->p = s->end;
	return inet_pton(AF_INET6, text, &a) == 1;
}

static bool hostname(struct in *s)
{
	size_t total = (size_t)(s->end - s->p);

	if (!total || total > 253)
		return false;
	do {
		const char *start = s->p;

		while (s->p < s->end && (letter(*s->p) || digit(*s->p) || *s->p == '-'))
			s->p++;
		if (s->p == start || s->p - start > 63 || *start == '-' || s->p[-1] == '-')
			return false;
		if (s->p - start >= 4 && start[2] == '-' && start[3] == '-' && strncasecmp(start, "xn", 2) != 0)
			return false;
	} while (take(s, '.'));
	return true;
}

static bool quoted_local(struct in *s)
{
	for (s->p++; s->p < s->end && *s->p != '"'; s->p++) {
		if (*s->p == '\\' && s->end - s->p > 1)
			s->p++;
		if ((unsigned char)*s->p < 0x20 || (unsigned char)*s->p > 0x7e)
			return false;
	}
	return take(s, '"');
}

static bool dot_atoms(struct in *s)
{
	do {
		const char *start = s->p;

		while (s->p < s->end && *s->p && (letter(*s->p) || digit(*s->p) || strchr("!#$%&'*+-/=?^_`{|}~", *s->p)))
			s->p++;
		if (s->p == start)
			return false;
	} while (take(s, '.'));
	return true;
}

static bool email(struct in *s)
{
	struct in literal;

	if (s->p == s->end || !(*s->p == '"' ? quoted_local(s) : dot_atoms(s)) || !take(s, '@'))
		return false;
	if (s->p == s->end || *s->p != '[')
		return hostname(s);
	if (s->end[-1] != ']')
		return false;
	literal = (struct in){ s->p + 1, s->end - 1 };
	s->p = s->end;
	if (literal.end - literal.p > 5 && !strncasecmp(literal.p, "IPv6:", 5)) {
		literal.p += 5;
		return ipv6(&literal);
	}
	return ipv4(&literal) && literal.p == literal.end;
}

/* ---- URIs ---- */

/* Characters of RFC 3986 that may stand in the part, and those in `more`; beyond ASCII where `wide`. */
static bool uri_chars(struct in *s, const char *more, bool wide)
{
	for (; s->p < s->end; s->p++) {
		if (*s->p == '%') {
			if (s->end - s->p < 3 || !is_hex(s->p[1]) || !is_hex(s->p[2]))
				return false;
			continue;
		}
		if ((unsigned char)*s->p >= 0x80 ? !wide : !*s->p || !(letter(*s->p) || digit(*s->p) || strchr("-._~!$&'()*+,;=", *s->p) || strchr(more, *s->p)))
			break;
	}
	return true;
}

static bool authority(struct in *s, bool wide)
{
	const char *stop = s->p;
	struct in host;

	while (stop < s->end && *stop && !strchr("/?#", *stop))
		stop++;
	host = (struct in){ s->p, stop };
	s->p = stop;
	for (const char *p = stop; p > host.p; p--)
		if (p[-1] == '@') {
			struct in user = { host.p, p - 1 };

			if (!uri_chars(&user, ":", wide) || user.p != user.end)
				return false;
			host.p = p;
			break;
		}
	if (host.p < host.end && *host.p == '[') {
		const char *close = memchr(host.p, ']', (size_t)(host.end - host.p));
		struct in v6 = { host.p + 1, close };

		if (!close || (*v6.p != 'v' && *v6.p != 'V' && (!ipv6(&v6))))
			return false;
		host.p = close + 1;
	} else if (!uri_chars(&host, "", wide)) {
		return false;
	}
	if (take(&host, ':'))
		digits(&host);
	return host.p == host.end;
}

static bool scheme(struct in *s)
{
	const char *p = s->p;

	if (p == s->end || !letter(*p))
		return false;
	while (p < s->end && *p && (letter(*p) || digit(*p) || strchr("+-.", *p)))
		p++;
	if (p == s->end || *p != ':')
		return false;
	s->p = p + 1;
	return true;
}

static bool reference(struct in *s, bool needs_scheme, bool wide)
{
	if (!scheme(s)) {
		const char *colon = memchr(s->p, ':', (size_t)(s->end - s->p)), *slash = memchr(s->p, '/', (size_t)(s->end - s->p));

		/* A relative path's first part has no colon, or it would be a scheme. */
		if (needs_scheme || (colon && !memchr(s->p, '?', (size_t)(colon - s->p)) && !memchr(s->p, '#', (size_t)(colon - s->p)) && (!slash || colon < slash)))
			return false;
	}
	if (s->end - s->p >= 2 && s->p[0] == '/' && s->p[1] == '/') {
		s->p += 2;
		if (!authority(s, wide))
			return false;
	}
	if (!uri_chars(s, ":@/", wide) || (take(s, '?') && !uri_chars(s, ":@/?", wide)))
		return false;
	return !take(s, '#') || uri_chars(s, ":@/?", wide);
}

static bool uri(struct in *s)
{
	return reference(s, true, false);
}

static bool uri_reference(struct in *s)
{
	return reference(s, false, false);
}

static bool iri(struct in *s)
{
	return reference(s, true, true);
}

static bool iri_reference(struct in *s)
{
	return reference(s, false, true);
}

/* One name of RFC 6570, and ":3" or "*" behind it. */
static bool varspec(struct in *s)
{
	const char *start;

	do {
		start = s->p;
		while (s->p < s->end && (letter(*s->p) || digit(*s->p) || *s->p == '_' || *s->p == '%')) {
			if (*s->p == '%' && (s->end - s->p < 3 || !is_hex(s->p[1]) || !is_hex(s->p[2])))
				return false;
			s->p += *s->p == '%' ? 3 : 1;
		}
		if (s->p == start)
			return false;
	} while (take(s, '.'));
	if (take(s, '*') || !take(s, ':'))
		return true;
	start = s->p;
	return digits(s) && *start != '0' && s->p - start <= 4;
}

static bool uri_template(struct in *s)
{
	while (s->p < s->end) {
		if ((unsigned char)*s->p <= 0x20 || *s->p == 0x7f || strchr("\"<>\\^`|}", *s->p))
			return false;
		if (*s->p == '%' && (s->end - s->p < 3 || !is_hex(s->p[1]) || !is_hex(s->p[2])))
			return false;
		if (*s->p++ != '{')
			continue;
		if (s->p < s->end && *s->p && strchr("+#./;?&=,!@|", *s->p))
			s->p++;
		do {
			if (!varspec(s))
				return false;
		} while (take(s, ','));
		if (!take(s, '}'))
			return false;
	}
	return true;
}

/* ---- others ---- */

static bool uuid(struct in *s)
{
	static const char form[] = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";

	for (const char *f = form; *f; f++, s->p++)
		if (s->p == s->end || (*f == 'h' ? !is_hex(*s->p) : *s->p != *f))
			return false;
	return true;
}

static bool json_pointer(struct in *s)
{
	if (s->p < s->end && *s->p != '/')
		return false;
	for (; s->p < s->end; s->p++)
		if (*s->p == '~' && (s->end - s->p < 2 || (s->p[1] != '0' && s->p[1] != '1')))
			return false;
	return true;
}

static bool relative_json_pointer(struct in *s)
{
	const char *start = s->p;

	if (!digits(s) || (*start == '0' && s->p - start > 1))
		return false;
	return take(s, '#') || json_pointer(s);
}

static bool regex(struct in *s)
{
	bool ok = schema_pattern_valid(s->p, (size_t)(s->end - s->p));

	s->p = s->end;
	return ok;
}

bool schema_format(const char *format, const char *text, size_t len)
{
	static const struct {
		const char *name;
		bool (*is)(struct in *s);
	} rows[] = {
		{ "date", date }, { "time", time_of_day }, { "date-time", date_time }, { "duration", duration }, { "ipv4", ipv4 }, { "ipv6", ipv6 },
		{ "hostname", hostname }, { "email", email }, { "uri", uri }, { "uri-reference", uri_reference }, { "iri", iri },
		{ "iri-reference", iri_reference }, { "uri-template", uri_template }, { "uuid", uuid }, { "json-pointer", json_pointer },
		{ "relative-json-pointer", relative_json_pointer }, { "regex", regex },
	};
	struct in s = { text, text + len };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].name, format))
			return rows[i].is(&s) && s.p == s.end;
	return true;
}
