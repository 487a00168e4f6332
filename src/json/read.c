/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - text into values, without recursion.
 *
 * Values that are not yet in a finished array or object wait on one stack, a
 * container below what it holds; when it ends, what it holds is moved into the
 * arena at once and the container alone is left.  Strings are written one after
 * another into one block as long as the text: decoding never makes one longer,
 * and its closing quote (or whatever must follow a number) pays for the NUL.
 */
#include "json/internal.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH = 64,
	VALUES = 1000000,
	FIRST = 64,      /* slots that need no malloc */
	FEW = 8,         /* keys that are compared each with each */
	WORD = 8,        /* bytes of a string looked at together */
	NONE = UINT32_MAX,
};

struct reader {
	const char *text, *p, *end;
	struct cs_arena *arena;
	char *out; /* where the next string goes */
	struct json_member *slots;
	uint32_t n, cap;
	uint32_t open; /* the innermost container that has not ended; its `n` is the next outer one */
	uint32_t depth, depth_max, values;
	const char *key; /* of the member whose value comes next */
	uint32_t key_len;
	uint32_t *table; /* for finding keys that are there twice */
	size_t table_cap;
	struct cs_err *err;
	struct json_member first[FIRST];
};

static int fail_at(struct reader *r, const char *at, enum cs_code code, const char *what)
{
	size_t line = 1, column = 1;

	for (const char *p = r->text; p < at; p++) {
		if (*p == '\n') {
			line++;
			column = 1;
		} else if (((unsigned char)*p & 0xc0) != 0x80) {
			column++;
		}
	}
	return cs_fail(r->err, code, 0, "%zu:%zu: %s", line, column, what);
}

static int fail(struct reader *r, const char *what)
{
	return fail_at(r, r->p, CS_E_INVALID, what);
}

/* "WANT is missing before 'x'". */
static int fail_want(struct reader *r, const char *want)
{
	char what[96], one[2] = "", shown[24];

	if (r->p == r->end) {
		snprintf(what, sizeof what, "the text ends where %s should be", want);
		return fail(r, what);
	}
	one[0] = *r->p;
	snprintf(what, sizeof what, "%s should be here, not '%s'", want, one[0] ? cs_escape_to(shown, sizeof shown, one) : "\\x00");
	return fail(r, what);
}

static void skip_space(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
		r->p++;
}

/* ---- strings ---- */

/* The top bit of each byte that cannot just be copied; of the lowest such byte exactly. */
static uint64_t special(uint64_t w)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
	uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');

	return (w | ((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & tops;
}

static char *copy_plain(struct reader *r, char *out)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lowest byte is the first");
	while (r->end - r->p >= WORD) {
		uint64_t w, hit;

		memcpy(&w, r->p, WORD);
		memcpy(out, &w, WORD);
		hit = special(w);
		if (hit) {
			r->p += __builtin_ctzll(hit) / 8;
			return out + __builtin_ctzll(hit) / 8;
		}
		r->p += WORD;
		out += WORD;
	}
	while (r->p < r->end && (unsigned char)*r->p >= 0x20 && (unsigned char)*r->p < 0x80 && *r->p != '"' && *r->p != '\\')
		*out++ = *r->p++;
	return out;
}

/* Bytes of the UTF-8 sequence at p, 0 if it is none: no overlong forms, no surrogates. */
static size_t utf8_len(const unsigned char *p, size_t left)
{
	size_t n = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;

	if (*p < 0xc2 || *p > 0xf4 || left < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static char *put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		*out++ = (char)c;
		return out;
	}
	if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*out++ = (char)(0xe0 | c >> 12);
		} else {
			*out++ = (char)(0xf0 | c >> 18);
			*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*out++ = (char)(0x80 | (c & 0x3f));
	return out;
}

/* Of "\uXXXX" at r->p; -1 if it is not one. */
static int32_t unit_at(const struct reader *r)
{
	int32_t u = 0;

	if (r->end - r->p < 6 || r->p[0] != '\\' || r->p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		char c = r->p[i];
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (d < 0)
			return -1;
		u = u << 4 | d;
	}
	return u;
}

static int read_unit(struct reader *r, char **out)
{
	const char *at = r->p;
	int32_t u = unit_at(r), low;

	if (u < 0)
		return fail(r, "\\u needs four hexadecimal digits");
	r->p += 6;
	if (u >= 0xd800 && u <= 0xdfff) {
		low = u < 0xdc00 ? unit_at(r) : -1;
		if (low < 0xdc00 || low > 0xdfff)
			return fail_at(r, at, CS_E_INVALID, "half of a surrogate pair stands alone");
		r->p += 6;
		u = 0x10000 + ((u & 0x3ff) << 10 | (low & 0x3ff));
	}
	*out = put_utf8(*out, (uint32_t)u);
	return 0;
}

static int read_escape(struct reader *r, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (r->end - r->p < 2)
		return fail(r, "the text ends inside a string");
	if (r->p[1] == 'u')
		return read_unit(r, out);
	at = memchr(from, r->p[1], sizeof from - 1);
	if (!at)
		return fail(r, "a backslash in a string comes before one of \" \\ / b f n r t u");
	*(*out)++ = to[at - from];
	r->p += 2;
	return 0;
}

static int read_wide(struct reader *r, char **out)
{
	while (r->p < r->end && (unsigned char)*r->p >= 0x80) {
		size_t n = utf8_len((const unsigned char *)r->p, (size_t)(r->end - r->p));

		if (!n)
			return fail(r, "this is not UTF-8");
		memcpy(*out, r->p, n);
		*out += n;
		r->p += n;
	}
	return 0;
}

/* r->p is at the opening quote. */
static int read_string(struct reader *r, const char **ret, uint32_t *ret_len)
{
	char *start = r->out, *out = start;
	int e = 0;

	r->p++;
	for (;;) {
		out = copy_plain(r, out);
		if (r->p == r->end)
			return fail(r, "the text ends inside a string");
		if (*r->p == '"')
			break;
		if (*r->p == '\\')
			e = read_escape(r, &out);
		else if ((unsigned char)*r->p >= 0x80)
			e = read_wide(r, &out);
		else
			e = fail(r, "a control character in a string must be written as \\u00XX");
		if (e)
			return e;
	}
	r->p++;
	*out = '\0';
	r->out = out + 1;
	*ret = start;
	*ret_len = (uint32_t)(out - start);
	return 0;
}

/* ---- numbers ---- */

static size_t digits(struct reader *r)
{
	const char *start = r->p;

	while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
		r->p++;
	return (size_t)(r->p - start);
}

static int read_exponent(struct reader *r, int *ret)
{
	const char *start;
	bool negative = false;
	int e = 0;

	r->p++;
	if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
		negative = *r->p++ == '-';
	start = r->p;
	if (!digits(r))
		return fail_want(r, "a digit of the exponent");
	for (const char *p = start; p < r->p && e <= 2 * JSON_EXPONENT_MAX; p++)
		e = e * 10 + (*p - '0');
	*ret = negative ? -e : e;
	return 0;
}

/* Whether the text of plain digits is an int64, and not "-0", which is no other way to say 0 to everybody. */
static bool to_int(const char *s, size_t len, bool negative, int64_t *ret)
{
	uint64_t u = 0, top = (uint64_t)INT64_MAX + negative;

	if (len > 19)
		return false;
	for (size_t i = 0; i < len; i++)
		u = u * 10 + (uint64_t)(s[i] - '0');
	if (u > top || (negative && !u))
		return false;
	*ret = negative ? (int64_t)(0 - u) : (int64_t)u;
	return true;
}

/* The digits before the point, behind it, and the exponent: no digit may stand for a power of ten
 * beyond the limits, so that every spelling of the same number is within them as well. */
static int check_number(struct reader *r, const char *start, size_t before, size_t behind, int exponent)
{
	if (before + behind > JSON_DIGITS_MAX)
		return fail_at(r, start, CS_E_LIMIT, "a number may have 1000 digits at most");
	if ((int)before - 1 + exponent > JSON_EXPONENT_MAX || exponent - (int)behind < -JSON_EXPONENT_MAX)
		return fail_at(r, start, CS_E_LIMIT, "a number's digits may stand for 1e1000 at most and for 1e-1000 at least");
	return 0;
}

static int read_number(struct reader *r, struct json *v)
{
	const char *start = r->p, *first;
	size_t before, behind = 0;
	int exponent = 0, e = 0;

	if (*r->p == '-')
		r->p++;
	first = r->p;
	before = digits(r);
	if (!before)
		return fail_want(r, "a digit");
	if (before > 1 && *first == '0')
		return fail_at(r, first, CS_E_INVALID, "a number does not start with a superfluous 0");
	if (r->p < r->end && *r->p == '.') {
		r->p++;
		behind = digits(r);
		if (!behind)
			return fail_want(r, "a digit after the point");
	}
	if (r->p < r->end && (*r->p == 'e' || *r->p == 'E'))
		e = read_exponent(r, &exponent);
	if (!e)
		e = check_number(r, start, before, behind, exponent);
	if (e)
		return e;
	v->type = JSON_NUMBER;
	if (r->p == first + before && to_int(first, before, *start == '-', &v->i)) {
		v->whole = true;
		return 0;
	}
	v->n = (uint32_t)(r->p - start);
	v->s = r->out;
	memcpy(r->out, start, v->n);
	r->out[v->n] = '\0';
	r->out += v->n + 1;
	return 0;
}

/* ---- containers ---- */

static int grow(struct reader *r)
{
	uint32_t cap = r->cap * 2;
	struct json_member *to = r->slots == r->first ? NULL : r->slots;

	to = realloc(to, cap * sizeof *to);
	if (!to)
		return cs_fail(r->err, CS_E_LIMIT, 0, "there is no memory for %u values", cap);
	if (r->slots == r->first)
		memcpy(to, r->first, sizeof r->first);
	r->slots = to;
	r->cap = cap;
	return 0;
}

/* A new value on the stack, with the key that was read before it. */
static int push(struct reader *r, struct json v)
{
	if (r->n == r->cap) {
		int e = grow(r);

		if (e)
			return e;
	}
	r->slots[r->n++] = (struct json_member){ r->key, r->key_len, v };
	r->key = NULL;
	r->key_len = 0;
	return 0;
}

static int count_value(struct reader *r)
{
	if (!r->values)
		return fail_at(r, r->p, CS_E_LIMIT, "there are more values than may be read");
	r->values--;
	return 0;
}

static int open_container(struct reader *r, enum json_type type)
{
	char what[64];
	int e;

	if (r->depth == r->depth_max) {
		snprintf(what, sizeof what, "this is nested deeper than %u levels", r->depth_max);
		return fail_at(r, r->p, CS_E_LIMIT, what);
	}
	r->depth++;
	r->p++;
	e = push(r, (struct json){ .type = type, .n = r->open });
	r->open = r->n - 1;
	return e;
}

static bool same_key(const struct json_member *a, const struct json_member *b)
{
	return a->key_len == b->key_len && !memcmp(a->key, b->key, a->key_len);
}

static int fail_twice(struct reader *r, const struct json_member *m)
{
	char what[160], shown[100];

	snprintf(what, sizeof what, "the object that ends here has the key \"%s\" twice", cs_escape_to(shown, sizeof shown, m->key));
	return fail(r, what);
}

static int keys_once_hashed(struct reader *r, const struct json_member *m, uint32_t n)
{
	size_t size = 32;
	uint64_t seed = json_seed();

	while (size < (size_t)n * 2)
		size *= 2;
	if (size > r->table_cap) {
		free(r->table);
		r->table_cap = size;
		r->table = malloc(size * sizeof *r->table);
		if (!r->table)
			return cs_fail(r->err, CS_E_LIMIT, 0, "there is no memory for an object of %u members", n);
	}
	memset(r->table, 0, size * sizeof *r->table);
	for (uint32_t i = 0; i < n; i++) {
		size_t at = json_hash_bytes(m[i].key, m[i].key_len, seed) & (size - 1);

		for (; r->table[at]; at = (at + 1) & (size - 1))
			if (same_key(&m[r->table[at] - 1], &m[i]))
				return fail_twice(r, &m[i]);
		r->table[at] = i + 1;
	}
	return 0;
}

static int keys_once(struct reader *r, const struct json_member *m, uint32_t n)
{
	if (n > FEW)
		return keys_once_hashed(r, m, n);
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (same_key(&m[i], &m[k]))
				return fail_twice(r, &m[i]);
	return 0;
}

static int fail_memory(struct reader *r)
{
	return fail_at(r, r->p, CS_E_LIMIT, "up to here the values need more memory than is allowed");
}

static int move_members(struct reader *r, const struct json_member *from, struct json *v)
{
	struct json_member *to;
	int e = keys_once(r, from, v->n);

	if (e)
		return e;
	to = cs_arena_get(r->arena, v->n, sizeof *to);
	if (!to)
		return fail_memory(r);
	memcpy(to, from, v->n * sizeof *to);
	v->members = to;
	return 0;
}

static int move_items(struct reader *r, const struct json_member *from, struct json *v)
{
	struct json *to = cs_arena_get(r->arena, v->n, sizeof *to);

	if (!to)
		return fail_memory(r);
	for (uint32_t i = 0; i < v->n; i++)
		to[i] = from[i].value;
	v->items = to;
	return 0;
}

/* r->p is at the bracket. */
static int close_container(struct reader *r)
{
	struct json *v = &r->slots[r->open].value;
	const struct json_member *from = &r->slots[r->open + 1];
	uint32_t outer = v->n;
	int e = 0;

	v->n = r->n - r->open - 1;
	if (v->n)
		e = v->type == JSON_OBJECT ? move_members(r, from, v) : move_items(r, from, v);
	r->n = r->open + 1;
	r->open = outer;
	r->depth--;
	r->p++;
	return e;
}

/* ---- the whole ---- */

static int read_word(struct reader *r, const char *word, struct json v)
{
	size_t len = strlen(word);

	if ((size_t)(r->end - r->p) < len || memcmp(r->p, word, len))
		return fail_want(r, "a value");
	r->p += len;
	return push(r, v);
}

static int read_scalar(struct reader *r)
{
	struct json v = { 0 };
	int e;

	switch (*r->p) {
	case '"':
		v.type = JSON_STRING;
		e = read_string(r, &v.s, &v.n);
		break;
	case 't':
		return read_word(r, "true", (struct json){ .type = JSON_BOOL, .b = true });
	case 'f':
		return read_word(r, "false", (struct json){ .type = JSON_BOOL });
	case 'n':
		return read_word(r, "null", v);
	default:
		if (*r->p != '-' && (*r->p < '0' || *r->p > '9'))
			return fail_want(r, "a value");
		e = read_number(r, &v);
	}
	return e ? e : push(r, v);
}

static int read_key(struct reader *r)
{
	int e;

	skip_space(r);
	if (r->p == r->end || *r->p != '"')
		return fail_want(r, "a key in double quotes");
	e = read_string(r, &r->key, &r->key_len);
	if (e)
		return e;
	skip_space(r);
	if (r->p == r->end || *r->p != ':')
		return fail_want(r, "':'");
	r->p++;
	return 0;
}

/* A value's start: all of a scalar, or the bracket and the first key. Returns 1 if a value
 * has to follow. */
static int begin_value(struct reader *r)
{
	enum json_type type;
	int e;

	skip_space(r);
	if (r->p == r->end)
		return fail_want(r, "a value");
	e = count_value(r);
	if (e)
		return e;
	if (*r->p != '{' && *r->p != '[')
		return read_scalar(r);
	type = *r->p == '{' ? JSON_OBJECT : JSON_ARRAY;
	e = open_container(r, type);
	if (e)
		return e;
	skip_space(r);
	if (r->p < r->end && *r->p == (type == JSON_OBJECT ? '}' : ']'))
		return close_container(r);
	if (type == JSON_OBJECT)
		e = read_key(r);
	return e ? e : 1;
}

/* What follows a value inside a container: its ends, or a comma. Returns 1 if a value has to follow. */
static int end_value(struct reader *r)
{
	while (r->open != NONE) {
		bool object = r->slots[r->open].value.type == JSON_OBJECT;
		int e;

		skip_space(r);
		if (r->p < r->end && *r->p == ',') {
			r->p++;
			e = object ? read_key(r) : 0;
			return e ? e : 1;
		}
		if (r->p == r->end || *r->p != (object ? '}' : ']'))
			return fail_want(r, object ? "',' or '}'" : "',' or ']'");
		e = close_container(r);
		if (e)
			return e;
	}
	return 0;
}

static int read_all(struct reader *r)
{
	int e;

	do {
		e = begin_value(r);
		if (!e)
			e = end_value(r);
	} while (e > 0);
	if (e)
		return e;
	skip_space(r);
	return r->p == r->end ? 0 : fail_want(r, "the end of the text");
}

int json_read(struct cs_arena *a, const char *text, size_t len, const struct json_limits *limits,
	      const struct json **ret, struct cs_err *err)
{
	struct reader r;
	struct json *root;
	int e;

	/* Not one initializer: the first slots need no zeros. */
	r.text = r.p = text;
	r.end = text + len;
	r.arena = a;
	r.slots = r.first;
	r.n = 0;
	r.cap = FIRST;
	r.open = NONE;
	r.depth = 0;
	r.depth_max = limits && limits->depth ? limits->depth : DEPTH;
	if (r.depth_max > JSON_DEPTH_MAX)
		r.depth_max = JSON_DEPTH_MAX;
	r.values = limits && limits->values ? limits->values : VALUES;
	r.key = NULL;
	r.key_len = 0;
	r.table = NULL;
	r.table_cap = 0;
	r.err = err;
	if (len >= UINT32_MAX - WORD)
		return cs_fail(err, CS_E_LIMIT, 0, "a JSON text of %zu bytes is too long", len);
	root = cs_arena_new(a, struct json);
	r.out = cs_arena_get(a, len + 1 + WORD, 1);
	if (!root || !r.out)
		return cs_fail(err, CS_E_LIMIT, 0, "a JSON text of %zu bytes needs more memory than is allowed", len);
	e = read_all(&r);
	if (!e) {
		*root = r.slots[0].value;
		*ret = root;
	}
	if (r.slots != r.first)
		free(r.slots);
	free(r.table);
	return e;
}
