/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - does a rule speak of this request?
 *
 * We and the server must read the same path.  Servers differ in what they undo:
 * escapes (once or twice), dot segments, doubled slashes, backslashes, `;` and
 * what follows it, capitals.  So a path is first brought into one spelling, or
 * found to have none; an allow rule must match it in every reading that is left,
 * a deny rule in any.
 *
 * Time: patterns and paths are bounded (PATTERN_MAX, PATH_READ_MAX), and both
 * levels of wildcards go back only to the last one, so the work is at most
 * pattern times path. */
#include "netpolicy/internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte written as %XX at s, or -1. */
static int escaped(const char *s)
{
	int hi = s[0] == '%' ? hex(s[1]) : -1, lo = hi < 0 ? -1 : hex(s[2]);

	return lo < 0 ? -1 : hi << 4 | lo;
}

/* Is s, at an escape of 0x80 or more, a whole UTF-8 character in its one form, all of it escaped?
 * Returns its length in escapes. */
static size_t escaped_utf8(const char *s)
{
	int c = escaped(s);
	size_t n = c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
	uint32_t cp = n ? (uint32_t)c & (0x7fu >> n) : 0;

	for (size_t i = 1; i < n; i++) {
		int next = escaped(s + 3 * i); /* stops at the NUL: an escape has no NUL in it */

		if (next < 0x80 || next > 0xbf)
			return 0;
		cp = cp << 6 | ((uint32_t)next & 0x3f);
	}
	if ((n == 3 && cp < 0x800) || (n == 4 && cp < 0x10000) || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	/* Full-width forms and look-alikes that some servers turn into . / \ and the rest of ASCII. */
	if ((cp >= 0xff00 && cp <= 0xff5e) || cp == 0x2044 || cp == 0x2215 || cp == 0x2216 || cp == 0x2024 || cp == 0x2025 ||
	    cp == 0x2026 || cp == 0x3002)
		return 0;
	return n;
}

struct spelling {
	char *to;
	size_t len, size;
	bool bad;
};

static void put(struct spelling *o, const char *s, size_t n)
{
	if (o->len + n >= o->size) {
		o->bad = true;
		return;
	}
	memcpy(o->to + o->len, s, n);
	o->len += n;
	o->to[o->len] = 0;
}

static void put_escape(struct spelling *o, int c)
{
	char text[4];

	snprintf(text, sizeof text, "%%%02X", (unsigned)c & 0xff);
	put(o, text, 3);
}

/* One byte or character of a path.  Returns how much of s it was, 0: no single reading. */
static size_t respell(const char *s, bool pattern, struct spelling *o)
{
	int c = *s == '%' ? escaped(s) : (unsigned char)*s;
	size_t used = *s == '%' ? 3 : 1, n;

	if (c < 0x20 || c == 0x7f || c == '\\' || (used == 1 && (c >= 0x80 || c == ' ' || c == '#')) || (used == 3 && c == '/'))
		return 0;
	if (c >= 0x80) {
		n = escaped_utf8(s);
		for (size_t i = 0; i < n; i++)
			put_escape(o, escaped(s + 3 * i));
		return 3 * n;
	}
	if (c == ' ' || c == '%' || c == '?' || c == '#' || (c == ';' && used == 3) || (c == '*' && (!pattern || used == 3)))
		put_escape(o, c);
	else
		put(o, &(char){ (char)c }, 1);
	return used;
}

/* "." and "..", also before a ';'; empty except at the end. */
static bool has_odd_segment(const char *path)
{
	for (const char *s = path + 1;; s++) {
		size_t n = strcspn(s, "/"), dots = strspn(s, ".");

		if (n == 0 && s[0])
			return true;
		if (dots > 0 && (dots == n || s[dots] == ';' || !strncmp(s + dots, "%3B", 3)))
			return true;
		/* nothing but a parameter: becomes "//" when that is left out */
		if (n > 0 && (s[0] == ';' || !strncmp(s, "%3B", 3)))
			return true;
		s += n;
		if (!*s)
			return false;
	}
}

int net_path_read(const char *path, bool pattern, char *ret, size_t size)
{
	struct spelling o = { .to = ret, .size = size };
	size_t n;

	if (path[0] != '/')
		return -1;
	ret[0] = 0;
	for (const char *s = path; *s && (pattern || *s != '?'); s += n) {
		n = respell(s, pattern, &o);
		if (n == 0 || o.bad)
			return -1;
	}
	/* After an escaped '%' no two hex digits: some would undo that too. */
	for (const char *s = ret; (s = strstr(s, "%25")); s += 3)
		if (hex(s[3]) >= 0 && hex(s[4]) >= 0)
			return -1;
	if (has_odd_segment(ret) || (pattern && (strchr(ret, ';') || strstr(ret, "%3B"))))
		return -1;
	return 0;
}

static bool same(char a, char b, bool fold)
{
	if (fold && a >= 'A' && a <= 'Z')
		a = (char)(a - 'A' + 'a');
	if (fold && b >= 'A' && b <= 'Z')
		b = (char)(b - 'A' + 'a');
	return a == b;
}

/* One segment; `*` is any bytes of it.  Capitals count for an allow rule only: there are servers to
 * which they are all one.  The empty segment at the end of /list/ is no match for /list/ and a star,
 * or leave to read an item would be leave to read the list. */
static bool segment_matches(const char *p, size_t pn, const char *t, size_t tn, bool deny)
{
	size_t i = 0, j = 0, star = SIZE_MAX, mark = 0;

	if (tn == 0 && !deny)
		return pn == 0;
	while (j < tn) {
		if (i < pn && p[i] == '*') {
			star = i++;
			mark = j;
		} else if (i < pn && same(p[i], t[j], /* fold= */ deny)) {
			i++;
			j++;
		} else if (star != SIZE_MAX) {
			i = star + 1;
			j = ++mark;
		} else {
			return false;
		}
	}
	while (i < pn && p[i] == '*')
		i++;
	return i == pn;
}

/* p and t are at a '/' or at the end. */
static bool path_matches(const char *p, const char *t, bool deny)
{
	const char *star = NULL, *mark = NULL;

	while (*t) {
		size_t pn = *p ? strcspn(p + 1, "/") : 0, tn = strcspn(t + 1, "/");

		if (*p && pn == 2 && !strncmp(p + 1, "**", 2)) {
			p += 3;
			star = p;
			mark = t;
		} else if (*p && segment_matches(p + 1, pn, t + 1, tn, deny)) {
			p += 1 + pn;
			t += 1 + tn;
		} else if (star) {
			p = star;
			mark += 1 + strcspn(mark + 1, "/");
			t = mark;
		} else {
			return false;
		}
	}
	while (!strncmp(p, "/**", 3) && (!p[3] || p[3] == '/'))
		p += 3;
	return !*p;
}

/* Without `;` and what follows it in each segment, as Java servers read it. */
static void drop_parameters(char *path)
{
	char *to = path;

	for (const char *s = path; *s;) {
		if (*s == ';' || !strncmp(s, "%3B", 3))
			s += strcspn(s, "/");
		else
			*to++ = *s++;
	}
	*to = 0;
}

static bool has_method(const struct net_rule *r, const char *method, bool deny)
{
	size_t n = strlen(method);

	if (!r->methods)
		return true;
	for (const char *s = r->methods; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
		size_t len = strcspn(s, ",");

		if (len == n && (deny ? !strncasecmp(s, method, n) : !strncmp(s, method, n)))
			return true;
	}
	return false;
}

/* A deny rule: in any reading. */
static bool denies_path(const char *pattern, char *read)
{
	size_t n;

	if (path_matches(pattern, read, /* deny= */ true))
		return true;
	drop_parameters(read);
	if (path_matches(pattern, read, /* deny= */ true))
		return true;
	n = strlen(read);
	if (n < 2 || read[n - 1] != '/')
		return false;
	read[n - 1] = 0; /* many serve /admin/ as /admin */
	return path_matches(pattern, read, /* deny= */ true);
}

/* An allow rule: in every reading. */
static bool allows_path(const char *pattern, char *read)
{
	if (!path_matches(pattern, read, /* deny= */ false))
		return false;
	drop_parameters(read);
	return path_matches(pattern, read, /* deny= */ false);
}

bool net_rule_has_request(const struct net_rule *r, const char *method, const char *path, bool deny)
{
	char read[PATH_READ_MAX];

	if (!has_method(r, method, deny))
		return false;
	if (!r->path)
		return true;
	if (net_path_read(path, /* pattern= */ false, read, sizeof read) < 0)
		return deny;
	return deny ? denies_path(r->path, read) : allows_path(r->path, read);
}
