/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - constants of a rules file as JSON values. */
#include "rules/internal.h"

#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct json *rl_json_str(struct parser *p, const char *s)
{
	struct json *v = rl_get(p, 1, sizeof *v);

	if (v)
		*v = (struct json){ .type = JSON_STRING, .n = (uint32_t)strlen(s), .s = s };
	return v;
}

static void take_number(struct parser *p, bool minus, struct json *ret)
{
	const char *digits = p->tok.text;
	size_t len = p->tok.text_len + (minus ? 1 : 0);
	char *text = rl_get(p, len + 1, 1);
	long long i;
	char *end;

	if (!text)
		return;
	text[0] = '-';
	memcpy(text + (minus ? 1 : 0), digits, p->tok.text_len);
	*ret = (struct json){ .type = JSON_NUMBER, .n = (uint32_t)len, .s = text };
	errno = 0;
	i = strtoll(text, &end, 10);
	/* "-0" stays a text: as an integer it would lose its sign. */
	if (!errno && !*end && strcmp(text, "-0") != 0) {
		ret->whole = true;
		ret->n = 0;
		ret->i = i;
	}
	rl_next(p);
}

/* A minus sign that a number follows at once. */
static bool at_negative(const struct parser *p)
{
	return rl_is(p, '-') && p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

bool rl_literal(struct parser *p, struct json *ret)
{
	if (p->tok.kind == TK_STRING) {
		*ret = (struct json){ .type = JSON_STRING, .n = p->tok.text_len, .s = p->tok.text };
		rl_next(p);
	} else if (p->tok.kind == TK_NUMBER) {
		take_number(p, /* minus= */ false, ret);
	} else if (at_negative(p)) {
		rl_next(p);
		if (p->tok.kind != TK_NUMBER)
			rl_fail(p, p->tok.pos, "expected a number after `-`");
		else
			take_number(p, /* minus= */ true, ret);
	} else if (rl_is_word(p, "true") || rl_is_word(p, "false")) {
		*ret = (struct json){ .type = JSON_BOOL, .b = rl_is_word(p, "true") };
		rl_next(p);
	} else if (rl_take_word(p, "null")) {
		*ret = (struct json){ .type = JSON_NULL };
	} else {
		return false;
	}
	return !p->failed;
}

static void read_array(struct parser *p, struct json *ret)
{
	struct json *items = NULL;
	uint32_t n = 0;

	while (!p->failed && !rl_is(p, ']')) {
		if (n)
			rl_expect(p, ',', "between elements");
		items = rl_grow(p, items, n, sizeof *items);
		if (p->failed)
			return;
		rl_value(p, &items[n++]);
	}
	rl_expect(p, ']', "after the elements");
	*ret = (struct json){ .type = JSON_ARRAY, .n = n, .items = items };
}

static bool has_key(const struct json_member *m, uint32_t n, const struct token *key)
{
	for (uint32_t i = 0; i < n; i++)
		if (m[i].key_len == key->text_len && !memcmp(m[i].key, key->text, key->text_len))
			return true;
	return false;
}

static void read_object(struct parser *p, struct json *ret)
{
	struct json_member *m = NULL;
	uint32_t n = 0;

	while (!p->failed && !rl_is(p, '}')) {
		if (n)
			rl_expect(p, ',', "between members");
		if (!p->failed && p->tok.kind != TK_STRING && p->tok.kind != TK_NAME)
			rl_fail(p, p->tok.pos, "expected a key, as in {\"status\": \"paid\"}");
		else if (!p->failed && n < 10000 && has_key(m, n, &p->tok))
			rl_fail(p, p->tok.pos, "the key `%s` is here twice", rl_escape(p, p->tok.text));
		else if (n >= 10000)
			rl_fail_limit(p, p->tok.pos, "an object with more than 10000 members");
		m = rl_grow(p, m, n, sizeof *m);
		if (p->failed)
			return;
		m[n].key = p->tok.text;
		m[n].key_len = p->tok.text_len;
		rl_next(p);
		rl_expect(p, ':', "after the key");
		rl_value(p, &m[n++].value);
	}
	rl_expect(p, '}', "after the members");
	*ret = (struct json){ .type = JSON_OBJECT, .n = n, .members = m };
}

void rl_value(struct parser *p, struct json *ret)
{
	char got[80];

	if (!rl_enter(p))
		return;
	if (rl_take(p, '['))
		read_array(p, ret);
	else if (rl_take(p, '{'))
		read_object(p, ret);
	else if (!rl_literal(p, ret))
		rl_fail(p, p->tok.pos, "expected a value (a string in quotes, a number, true, false, null, [...] or {...}), got %s",
			rl_show_token(p, got, sizeof got));
	rl_leave(p);
}
