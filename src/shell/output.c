/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - what commands of constants print.
 *
 * Only what is certain; used to see what a shell at the end of a pipe would run. */
#include "shell/walk.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is(const struct args *a, size_t first, const char *name)
{
	return !strcmp(a->v[first].text, name);
}

static bool all_literal(const struct args *a, size_t first)
{
	for (size_t i = first; i < a->n; i++)
		if (a->v[i].known != SH_LITERAL)
			return false;
	return !a->endless;
}

static struct value done(struct walk *w, struct cs_buf *out)
{
	struct value v = out->over ? value_unknown() : value_of(w, cs_buf_text(out), out->len);

	cs_buf_done(out);
	return v;
}

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* The escapes of echo -e and printf; octal is \0nnn for echo and \nnn for printf. */
static const char *escape(const char *c, struct cs_buf *out, bool printf_octal)
{
	static const char names[] = "abefnrtv\\\"'", values[] = "\a\b\033\f\n\r\t\v\\\"'";
	const char *known = *c ? strchr(names, *c) : NULL;
	int v = 0, n = 0;

	if (known) {
		cs_buf_char(out, values[known - names]);
		return c + 1;
	}
	if (*c == 'x' && hex(c[1]) >= 0) {
		for (c++; n < 2 && hex(*c) >= 0; n++)
			v = v * 16 + hex(*c++);
		cs_buf_char(out, (char)v);
		return c;
	}
	if (*c == '0' || (printf_octal && *c >= '1' && *c <= '7')) {
		if (*c == '0' && !printf_octal)
			c++;
		for (; n < 3 && *c >= '0' && *c <= '7'; n++)
			v = v * 8 + (*c++ - '0');
		cs_buf_char(out, (char)v);
		return c;
	}
	cs_buf_char(out, '\\');
	return c;
}

static void add_escaped(const char *c, struct cs_buf *out, bool printf_octal)
{
	while (*c) {
		if (*c == '\\' && c[1])
			c = escape(c + 1, out, printf_octal);
		else
			cs_buf_char(out, *c++);
	}
}

static struct value out_echo(struct walk *w, const struct args *a, size_t first)
{
	struct cs_buf out = CS_BUF(SHW_VALUE_MAX);
	bool newline = true, escapes = false;
	size_t i = first + 1;

	for (; i < a->n && a->v[i].text[0] == '-' && a->v[i].text[1] && strspn(a->v[i].text + 1, "neE") == strlen(a->v[i].text + 1); i++) {
		newline &= !strchr(a->v[i].text, 'n');
		if (strpbrk(a->v[i].text, "eE"))
			escapes = strchr(a->v[i].text, 'e') != NULL;
	}
	for (size_t k = i; k < a->n; k++) {
		if (k > i)
			cs_buf_char(&out, ' ');
		if (escapes)
			add_escaped(a->v[k].text, &out, false);
		else
			cs_buf_str(&out, a->v[k].text);
	}
	if (newline)
		cs_buf_char(&out, '\n');
	return done(w, &out);
}

/* %s %b %d %c %% without widths; anything else is not followed. */
static struct value out_printf(struct walk *w, const struct args *a, size_t first)
{
	struct cs_buf out = CS_BUF(SHW_VALUE_MAX);
	size_t next = first + 2, before;

	if (first + 1 >= a->n || (a->v[first + 1].text[0] == '-' && strcmp(a->v[first + 1].text, "--")))
		return value_unknown();
	if (!strcmp(a->v[first + 1].text, "--")) {
		first++;
		next++;
		if (first + 1 >= a->n)
			return value_unknown();
	}
	do {
		before = next;
		for (const char *c = a->v[first + 1].text; *c;) {
			const char *arg = next < a->n ? a->v[next].text : "";

			if (*c == '\\' && c[1]) {
				c = escape(c + 1, &out, true);
			} else if (*c != '%') {
				cs_buf_char(&out, *c++);
			} else if (c[1] == '%') {
				cs_buf_char(&out, '%');
				c += 2;
			} else if (c[1] && strchr("sbdc", c[1])) {
				if (c[1] == 'b')
					add_escaped(arg, &out, false);
				else if (c[1] == 'c' && *arg)
					cs_buf_char(&out, *arg);
				else if (c[1] != 'c')
					cs_buf_str(&out, arg);
				next++;
				c += 2;
			} else {
				cs_buf_done(&out);
				return value_unknown();
			}
		}
	} while (next < a->n && next > before && !out.over);
	return done(w, &out);
}

static struct value out_cat(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	struct cs_buf out = CS_BUF(SHW_VALUE_MAX);

	if (a->n == first + 1)
		return in ? *in : value_unknown();
	for (size_t i = first + 1; i < a->n; i++) {
		const char *path = path_resolve(w, s, a->v[i].text);
		const struct file *f = path ? file_find(s, path) : NULL;

		if (!strcmp(a->v[i].text, "-") && in && in->known) {
			cs_buf_add(&out, in->text, in->len);
			continue;
		}
		if (!f || !f->content.known) {
			cs_buf_done(&out);
			return value_unknown();
		}
		cs_buf_add(&out, f->content.text, f->content.len);
	}
	return done(w, &out);
}

static int base64_digit(char c)
{
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = c ? strchr(set, c) : NULL;

	return p ? (int)(p - set) : -1;
}

static struct value out_base64(struct walk *w, const struct value *in)
{
	struct cs_buf out = CS_BUF(SHW_VALUE_MAX);
	unsigned v = 0, bits = 0;

	for (size_t i = 0; i < in->len && in->text[i] != '='; i++) {
		int d = base64_digit(in->text[i]);

		if (d < 0)
			continue;
		v = v << 6 | (unsigned)d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			cs_buf_char(&out, (char)(v >> bits));
		}
	}
	return done(w, &out);
}

static struct value out_hex(struct walk *w, const struct value *in)
{
	struct cs_buf out = CS_BUF(SHW_VALUE_MAX);
	int high = -1;

	for (size_t i = 0; i < in->len; i++) {
		int d = hex(in->text[i]);

		if (d < 0)
			continue;
		if (high < 0) {
			high = d;
		} else {
			cs_buf_char(&out, (char)(high * 16 + d));
			high = -1;
		}
	}
	return done(w, &out);
}

static struct value out_rev(struct walk *w, const struct value *in)
{
	struct cs_buf out = CS_BUF(SHW_VALUE_MAX);

	for (const char *c = in->text; *c;) {
		size_t n = strcspn(c, "\n");

		for (size_t i = n; i > 0; i--)
			cs_buf_char(&out, c[i - 1]);
		c += n;
		if (*c)
			cs_buf_char(&out, *c++);
	}
	return done(w, &out);
}

/* "a-z" and the like become every character of them. */
static size_t tr_set(const char *s, char *ret, size_t size)
{
	size_t n = 0;

	for (; *s && n + 1 < size; s++) {
		if (*s == '\\' && s[1]) {
			struct cs_buf one = CS_BUF(8);

			s = escape(s + 1, &one, true) - 1;
			ret[n++] = one.len ? one.data[0] : 0;
			cs_buf_done(&one);
		} else if (s[1] == '-' && s[2] && (unsigned char)s[2] >= (unsigned char)*s) {
			for (int c = (unsigned char)*s; c <= (unsigned char)s[2] && n + 1 < size; c++)
				ret[n++] = (char)c;
			s += 2;
		} else {
			ret[n++] = *s;
		}
	}
	return n;
}

static struct value out_tr(struct walk *w, const struct args *a, size_t first, const struct value *in)
{
	struct cs_buf out = CS_BUF(SHW_VALUE_MAX);
	bool deletes = first + 2 < a->n && !strcmp(a->v[first + 1].text, "-d");
	char from[512], to[512];
	size_t n, m;

	if (a->n != first + 3 || strstr(a->v[first + 1].text, "[:") || strstr(a->v[first + 2].text, "[:"))
		return value_unknown();
	n = tr_set(a->v[first + (deletes ? 2 : 1)].text, from, sizeof from);
	m = tr_set(a->v[first + 2].text, to, sizeof to);
	if (!deletes && (a->v[first + 1].text[0] == '-' || !m))
		return value_unknown();
	for (size_t i = 0; i < in->len; i++) {
		const char *p = memchr(from, in->text[i], n);

		if (!p)
			cs_buf_char(&out, in->text[i]);
		else if (!deletes)
			cs_buf_char(&out, to[(size_t)(p - from) < m ? (size_t)(p - from) : m - 1]);
	}
	return done(w, &out);
}

static bool has_flag(const struct args *a, size_t first, const char *const *flags)
{
	for (size_t i = first + 1; i < a->n; i++)
		for (const char *const *f = flags; *f; f++)
			if (!strcmp(a->v[i].text, *f))
				return true;
	return false;
}

static struct value pack(const struct value *in, const char *how)
{
	struct value v = *in;

	if (!v.known || v.packed)
		return value_unknown();
	v.packed = how;
	return v;
}

static struct value unpack(const struct value *in, const char *how)
{
	struct value v = *in;

	if (!v.known || !v.packed || strcmp(v.packed, how))
		return value_unknown();
	v.packed = NULL;
	return v;
}

static struct value out_packer(const struct args *a, size_t first, const struct value *in)
{
	static const char *const decode[] = { "-d", "--decompress", "-dc", "-cd", "--uncompress", NULL };
	static const struct {
		const char *pack, *unpack, *cat;
	} kinds[] = { { "gzip", "gunzip", "zcat" }, { "bzip2", "bunzip2", "bzcat" }, { "xz", "unxz", "xzcat" }, { "zstd", "unzstd", "zstdcat" } };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (is(a, first, kinds[i].unpack) || is(a, first, kinds[i].cat))
			return unpack(in, kinds[i].pack);
		if (is(a, first, kinds[i].pack))
			return has_flag(a, first, decode) ? unpack(in, kinds[i].pack) : pack(in, kinds[i].pack);
	}
	return value_unknown();
}

struct value output_of(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in)
{
	static const char *const decode[] = { "-d", "--decode", "-D", "-di", NULL };
	bool known_in = in && in->known;

	if (!all_literal(a, first))
		return value_unknown();
	if (is(a, first, "echo"))
		return out_echo(w, a, first);
	if (is(a, first, "printf"))
		return out_printf(w, a, first);
	if (is(a, first, "cat"))
		return out_cat(w, s, a, first, in);
	if (is(a, first, "tee"))
		return in ? *in : value_unknown();
	if (!known_in)
		return value_unknown();
	if (is(a, first, "base64") && !in->packed)
		return has_flag(a, first, decode) ? out_base64(w, in) : value_unknown();
	if (is(a, first, "xxd") && !in->packed && a->n > first + 1 && strstr(a->v[first + 1].text, "r"))
		return out_hex(w, in);
	if (is(a, first, "rev") && !in->packed && a->n == first + 1)
		return out_rev(w, in);
	if (is(a, first, "tr") && !in->packed)
		return out_tr(w, a, first, in);
	return out_packer(a, first, in);
}
