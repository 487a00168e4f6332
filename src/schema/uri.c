/* SPDX-License-Identifier: Apache-2.0 */
/* uri.c - references against a base (RFC 3986, section 5). Nothing is looked up. */
#include "schema/internal.h"

#include <string.h>

struct part {
	const char *s;
	size_t n;
	bool there;
};

struct uri {
	struct part scheme, authority, path, query, fragment;
};

static struct part take(const char **p, const char *end, const char *stop)
{
	struct part r = { *p, 0, true };

	while (*p < end && !strchr(stop, **p))
		(*p)++;
	r.n = (size_t)(*p - r.s);
	return r;
}

static bool is_scheme(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = s[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.')))
			return false;
	}
	return n > 0;
}

/* NULs are refused before. */
static struct uri split(const char *s, size_t len)
{
	const char *p = s, *end = s + len;
	struct uri u = { 0 };
	struct part first = take(&p, end, ":/?#");

	if (p < end && *p == ':' && is_scheme(first.s, first.n)) {
		u.scheme = first;
		p++;
	} else {
		p = s;
	}
	if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
		p += 2;
		u.authority = take(&p, end, "/?#");
	}
	u.path = take(&p, end, "?#");
	if (p < end && *p == '?') {
		p++;
		u.query = take(&p, end, "#");
	}
	if (p < end) {
		p++;
		u.fragment = take(&p, end, "");
	}
	return u;
}

static void add(char **out, struct part p)
{
	if (p.n)
		memcpy(*out, p.s, p.n);
	*out += p.n;
}

/* "a/../b" and "./", in place. */
static size_t without_dots(char *path, size_t n)
{
	size_t in = 0, out = 0;

	while (in < n) {
		const char *slash = memchr(path + in, '/', n - in);
		size_t seg = slash ? (size_t)(slash - (path + in)) : n - in;
		size_t whole = seg + (slash != NULL);

		if (seg == 1 && path[in] == '.') {
			/* nothing */
		} else if (seg == 2 && path[in] == '.' && path[in + 1] == '.') {
			if (out > 1) {
				out--;
				while (out > 0 && path[out - 1] != '/')
					out--;
			}
		} else {
			memmove(path + out, path + in, whole);
			out += whole;
		}
		in += whole;
	}
	return out;
}

/* The path of a reference that has one and does not start at the root, behind the base's last '/'. */
static void add_merged(char **out, const struct uri *base, const struct uri *ref)
{
	size_t keep = base->path.n;

	while (keep > 0 && base->path.s[keep - 1] != '/')
		keep--;
	if (base->authority.there && !base->path.n)
		*(*out)++ = '/';
	add(out, (struct part){ base->path.s, keep, true });
	add(out, ref->path);
}

static void add_path(char **out, const struct uri *base, const struct uri *ref)
{
	char *start = *out;

	if (ref->scheme.there || ref->authority.there || (ref->path.n && ref->path.s[0] == '/'))
		add(out, ref->path);
	else if (!ref->path.n)
		add(out, base->path);
	else
		add_merged(out, base, ref);
	if (memchr(start, '/', (size_t)(*out - start)))
		*out = start + without_dots(start, (size_t)(*out - start));
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static char *decoded(struct cs_arena *a, struct part p)
{
	char *r = cs_arena_get(a, p.n + 1, 1), *out = r;

	for (size_t i = 0; r && i < p.n; i++) {
		if (p.s[i] == '%' && i + 2 < p.n && hex(p.s[i + 1]) >= 0 && hex(p.s[i + 2]) >= 0) {
			*out++ = (char)(hex(p.s[i + 1]) << 4 | hex(p.s[i + 2]));
			i += 2;
		} else {
			*out++ = p.s[i];
		}
	}
	return r;
}

char *schema_uri_resolve(struct cs_arena *a, const char *base_text, const char *ref_text, size_t len, const char **fragment)
{
	struct uri base = split(base_text, strlen(base_text)), ref = split(ref_text, len);
	char *r = cs_arena_get(a, strlen(base_text) + len + 8, 1), *out = r;
	struct part scheme = ref.scheme.there ? ref.scheme : base.scheme;
	bool own = ref.scheme.there || ref.authority.there;
	struct part authority = own ? ref.authority : base.authority;
	struct part query = own || ref.path.n || ref.query.there ? ref.query : base.query;

	*fragment = decoded(a, ref.fragment);
	if (!r || !*fragment)
		return NULL;
	if (scheme.there) {
		add(&out, scheme);
		*out++ = ':';
	}
	if (authority.there) {
		add(&out, (struct part){ "//", 2, true });
		add(&out, authority);
	}
	add_path(&out, &base, &ref);
	if (query.there) {
		*out++ = '?';
		add(&out, query);
	}
	*out = '\0';
	return r;
}
