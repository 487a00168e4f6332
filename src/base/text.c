/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 sequence at s, 0 if it is not one; *cp is the code point. */
static size_t utf8_at(const unsigned char *s, uint32_t *cp)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : (s[0] & 0xf8) == 0xf0 ? 4 : 0;

	if (n <= 1) {
		*cp = s[0];
		return n;
	}
	*cp = s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3f);
	}
	if (*cp < least[n] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp < 0xe000))
		return 0;
	return n;
}

/* Code points that change how their neighbours are shown, or show as nothing. */
static bool is_deceptive(uint32_t cp)
{
	return (cp >= 0x80 && cp < 0xa0) || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || cp == 0xad || cp == 0x61c ||
	       (cp >= 0xfff9 && cp <= 0xfffb) || (cp >= 0xe0000 && cp <= 0xe0fff);
}

void cs_escape(struct cs_buf *b, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	while (*p) {
		uint32_t cp;
		size_t n = 0;

		while (p[n] >= 0x20 && p[n] < 0x7f && p[n] != '\\')
			n++;
		if (n) { /* nearly all of nearly every text */
			cs_buf_add(b, p, n);
			p += n;
			continue;
		}
		n = utf8_at(p, &cp);
		if (n == 0 || cp < 0x20 || cp == 0x7f) {
			cs_buf_fmt(b, *p == '\n' ? "\\n" : *p == '\t' ? "\\t" : "\\x%02x", *p);
			p++;
			continue;
		}
		if (cp == '\\')
			cs_buf_str(b, "\\\\");
		else if (is_deceptive(cp))
			cs_buf_fmt(b, "\\u{%x}", (unsigned)cp);
		else
			cs_buf_add(b, p, n);
		p += n;
	}
}

void cs_blunt(char *s)
{
	unsigned char *p = (unsigned char *)s;

	while (*p) {
		uint32_t cp;
		size_t n = utf8_at(p, &cp);

		if (n == 0 || cp < 0x20 || cp == 0x7f || is_deceptive(cp)) {
			n = n ? n : 1;
			memset(p, '?', n);
		}
		p += n;
	}
}

char *cs_escape_to(char *dst, size_t size, const char *s)
{
	struct cs_buf b = CS_BUF(1 << 16);

	cs_escape(&b, s);
	snprintf(dst, size, "%s", cs_buf_text(&b));
	if ((b.over || b.len >= size) && size > 4)
		memcpy(dst + size - 4, "...", 4);
	cs_buf_done(&b);
	return dst;
}

int cs_parse_u64(const char *s, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || *end)
		return errno ? -errno : -EINVAL;
	*ret = v;
	return 0;
}

/* A non-negative decimal number and where it ended; no sign, hex, inf or nan. */
static int number(const char *s, double *ret, const char **end)
{
	size_t n = strspn(s, "0123456789.");
	char digits[32], *stop;

	if (n == 0 || n >= sizeof digits || *s == '.')
		return -EINVAL;
	memcpy(digits, s, n);
	digits[n] = 0;
	*ret = strtod(digits, &stop);
	if (*stop)
		return -EINVAL;
	*end = s + n;
	return 0;
}

int cs_parse_size(const char *s, uint64_t *ret)
{
	static const char units[] = "kmgt";
	const char *end, *u;
	double v;
	unsigned shift = 0;

	if (number(s, &v, &end) < 0)
		return -EINVAL;
	if (*end && (u = strchr(units, tolower((unsigned char)*end)))) {
		shift = 10 * (unsigned)(u - units + 1);
		end++;
		if (*end == 'i')
			end++;
	}
	if (*end == 'b' || *end == 'B')
		end++;
	if (*end)
		return -EINVAL;
	v = ldexp(v, (int)shift);
	if (v >= 0x1p62)
		return -ERANGE;
	*ret = (uint64_t)v;
	return 0;
}

int cs_parse_duration(const char *s, uint64_t *ret_ms)
{
	static const struct {
		const char *name;
		double ms;
	} units[] = { { "", 1e3 }, { "ms", 1 }, { "s", 1e3 }, { "m", 6e4 }, { "min", 6e4 }, { "h", 3.6e6 }, { "d", 8.64e7 } };
	const char *end;
	double v;

	if (number(s, &v, &end) < 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].name))
			continue;
		v *= units[i].ms;
		if (v > 1e15)
			return -ERANGE;
		*ret_ms = (uint64_t)(v + 0.5);
		return 0;
	}
	return -EINVAL;
}

int cs_parse_cpus(const char *s, double *ret)
{
	const char *end;
	double v;

	if (number(s, &v, &end) < 0 || *end)
		return -EINVAL;
	if (v < 0.01 || v > 8192)
		return -ERANGE;
	*ret = v;
	return 0;
}

void cs_format_size(char *dst, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)bytes;
	unsigned u = 0;

	while (v >= 1024 && u + 1 < sizeof units / sizeof *units) {
		v /= 1024;
		u++;
	}
	snprintf(dst, size, u == 0 || v == floor(v) ? "%.0f%s" : "%.1f%s", v, units[u]);
}

void cs_format_duration(char *dst, size_t size, uint64_t ms)
{
	if (ms && ms % 86400000 == 0)
		snprintf(dst, size, "%llud", (unsigned long long)ms / 86400000);
	else if (ms && ms % 3600000 == 0)
		snprintf(dst, size, "%lluh", (unsigned long long)ms / 3600000);
	else if (ms && ms % 60000 == 0)
		snprintf(dst, size, "%llum", (unsigned long long)ms / 60000);
	else if (ms % 1000 == 0)
		snprintf(dst, size, "%llus", (unsigned long long)ms / 1000);
	else
		snprintf(dst, size, "%llums", (unsigned long long)ms);
}

/* Damerau-Levenshtein (adjacent swaps count once), bounded by word length. */
static unsigned distance(const char *a, const char *b)
{
	enum { MAX = 40 };
	unsigned row[3][MAX + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > MAX || lb > MAX)
		return UINT_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *cur = row[i % 3], *prev = row[(i + 2) % 3], *prev2 = row[(i + 1) % 3];

		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned best = prev[j - 1] + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));

			if (prev[j] + 1 < best)
				best = prev[j] + 1;
			if (cur[j - 1] + 1 < best)
				best = cur[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && prev2[j - 2] + 1 < best)
				best = prev2[j - 2] + 1;
			cur[j] = best;
		}
	}
	return row[la % 3][lb];
}

const char *cs_nearest(const char *word, const char *const *candidates, size_t n)
{
	const char *best = NULL;
	size_t len = strlen(word);
	unsigned limit = len <= 3 ? 1 : len <= 6 ? 2 : 3, best_d = limit + 1;

	for (size_t i = 0; i < n; i++) {
		unsigned d = distance(word, candidates[i]);

		if (d < best_d) {
			best_d = d;
			best = candidates[i];
		}
	}
	return best;
}

bool cs_glob(const char *pattern, const char *name)
{
	size_t special = strcspn(pattern, "*?[\\");

	/* Most patterns are a plain name or "*.suffix"; fnmatch(3) is slow at both. */
	if (!pattern[special])
		return !strcmp(pattern, name);
	if (strncmp(pattern, name, special))
		return false;
	if (pattern[special] == '*' && !pattern[special + 1 + strcspn(pattern + special + 1, "*?[\\")]) {
		size_t tail = strlen(pattern + special + 1), len = strlen(name + special);

		return len >= tail && !strcmp(name + special + len - tail, pattern + special + 1);
	}
	return fnmatch(pattern, name, 0) == 0;
}
