/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - the subset of YAML a profile needs, as a small tree.
 *
 * Left out on purpose: anchors and aliases (they make small files large),
 * tags, several documents.  Everything is counted before it is kept. */
#include "profile/internal.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
	yaml_parser_t yaml;
	const char *origin, *text;
	size_t len;
	unsigned items;
	struct cs_err *err;
};

int profile_fail(struct cs_err *err, enum cs_code code, const struct place *at, const char *fmt, ...)
{
	char text[512], origin[192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	cs_escape_to(origin, sizeof origin, at->origin);
	if (at->line)
		return cs_fail(err, code, 0, "%s:%u:%u: %s", origin, at->line, at->col, text);
	return cs_fail(err, code, 0, "%s: %s", origin, text);
}

const char *profile_hint(char *dst, size_t size, const char *nearest)
{
	char shown[96];

	*dst = 0;
	if (nearest)
		snprintf(dst, size, " (did you mean '%s'?)", cs_escape_to(shown, sizeof shown, nearest));
	return dst;
}

bool node_is_null(const struct node *n)
{
	return n->kind == NODE_SCALAR && n->plain &&
	       (!*n->text || !strcmp(n->text, "~") || !strcmp(n->text, "null") || !strcmp(n->text, "Null") ||
		!strcmp(n->text, "NULL"));
}

/* Freed along `next` in a loop; only nesting, which is bounded, recurses. */
void tree_free(struct node *n)
{
	while (n) {
		struct node *next = n->next;

		tree_free(n->key);
		tree_free(n->child);
		free(n->text);
		free(n);
		n = next;
	}
}

static struct place place_of_offset(const struct reader *r, size_t offset)
{
	struct place at = { r->origin, 1, 1 };

	for (size_t i = 0; i < offset && i < r->len; i++) {
		if (r->text[i] == '\n') {
			at.line++;
			at.col = 1;
		} else if (((unsigned char)r->text[i] & 0xc0) != 0x80) {
			at.col++;
		}
	}
	return at;
}

/* Length of the well-formed UTF-8 sequence at s (RFC 3629), 0 if there is none. */
static size_t utf8_len(const unsigned char *s, size_t left)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	if (n == 0 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

bool profile_is_utf8(const char *s)
{
	size_t left = strlen(s);

	for (size_t n; left; s += n, left -= n) {
		n = utf8_len((const unsigned char *)s, left);
		if (n == 0)
			return false;
	}
	return true;
}

static int check_bytes(struct reader *r)
{
	const unsigned char *s = (const unsigned char *)r->text;
	struct place at;

	for (size_t i = 0, n; i < r->len; i += n) {
		n = utf8_len(s + i, r->len - i);
		if (n && (s[i] >= 0x20 || strchr("\t\n\r", s[i])) && s[i] && s[i] != 0x7f)
			continue;
		at = place_of_offset(r, i);
		return profile_fail(r->err, CS_E_INVALID, &at, n ? "control byte 0x%02x" : "byte 0x%02x is not UTF-8", s[i]);
	}
	return 0;
}

/* People write `- *.pem` and `- !/etc`, which YAML takes for an alias and a tag. */
static const char *quoting_advice(const char *context)
{
	if (context && strstr(context, "alias"))
		return "; a value that begins with '*' needs quotes";
	if (context && strstr(context, "anchor"))
		return "; a value that begins with '&' needs quotes";
	if (context && strstr(context, "tag"))
		return "; a value that begins with '!' needs quotes";
	return "";
}

static int fail_yaml(struct reader *r)
{
	const yaml_parser_t *y = &r->yaml;
	struct place at = { r->origin, (unsigned)y->problem_mark.line + 1, (unsigned)y->problem_mark.column + 1 };

	if (y->error == YAML_READER_ERROR)
		at = place_of_offset(r, y->problem_offset);
	if (y->error == YAML_MEMORY_ERROR)
		return profile_fail(r->err, CS_E_LIMIT, &at, "out of memory");
	return profile_fail(r->err, CS_E_INVALID, &at, "not YAML: %s%s%s%s", y->problem ? y->problem : "unknown problem",
			    y->context ? " " : "", y->context ? y->context : "", quoting_advice(y->context));
}

static int next_event(struct reader *r, yaml_event_t *e)
{
	return yaml_parser_parse(&r->yaml, e) ? 0 : fail_yaml(r);
}

static struct place place_of_event(const struct reader *r, const yaml_event_t *e)
{
	return (struct place){ r->origin, (unsigned)e->start_mark.line + 1, (unsigned)e->start_mark.column + 1 };
}

static int refuse_extras(struct reader *r, const yaml_event_t *e)
{
	struct place at = place_of_event(r, e);
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (e->type == YAML_ALIAS_EVENT)
		return profile_fail(r->err, CS_E_INVALID, &at, "aliases are not allowed%s", quoting_advice("alias"));
	if (e->type == YAML_SCALAR_EVENT) {
		anchor = e->data.scalar.anchor;
		tag = e->data.scalar.tag;
	} else if (e->type == YAML_SEQUENCE_START_EVENT) {
		anchor = e->data.sequence_start.anchor;
		tag = e->data.sequence_start.tag;
	} else if (e->type == YAML_MAPPING_START_EVENT) {
		anchor = e->data.mapping_start.anchor;
		tag = e->data.mapping_start.tag;
	}
	if (anchor)
		return profile_fail(r->err, CS_E_INVALID, &at, "anchors are not allowed%s", quoting_advice("anchor"));
	if (tag)
		return profile_fail(r->err, CS_E_INVALID, &at, "tags are not allowed%s", quoting_advice("tag"));
	return 0;
}

static int take_scalar(struct reader *r, const yaml_event_t *e, struct node *n)
{
	const char *text = (const char *)e->data.scalar.value;
	struct place at = { r->origin, n->line, n->col };

	if (memchr(text, 0, e->data.scalar.length))
		return profile_fail(r->err, CS_E_INVALID, &at, "a value may not hold a NUL byte");
	n->text = cs_strndup(text, e->data.scalar.length);
	n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	return 0;
}

static int read_node(struct reader *r, const yaml_event_t *e, unsigned nest, struct node **ret);

static int read_members(struct reader *r, struct node *n, unsigned nest)
{
	yaml_event_type_t end = n->kind == NODE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
	struct node **tail = &n->child, *key = NULL;

	for (;;) {
		struct node *member = NULL;
		yaml_event_t e;
		bool last;
		int rc = next_event(r, &e);

		if (rc == 0) {
			last = e.type == end;
			if (!last)
				rc = read_node(r, &e, nest, &member);
			yaml_event_delete(&e);
			if (rc == 0 && last)
				return 0;
		}
		if (rc < 0) {
			tree_free(key);
			return rc;
		}
		if (n->kind == NODE_MAP && !key) {
			key = member;
			continue;
		}
		member->key = key; /* NOLINT(clang-analyzer-core.NullDereference): read_node() gave one */
		key = NULL;
		*tail = member;
		tail = &member->next;
	}
}

static int read_node(struct reader *r, const yaml_event_t *e, unsigned nest, struct node **ret)
{
	struct place at = place_of_event(r, e);
	struct node *n;
	int rc = refuse_extras(r, e);

	if (rc < 0)
		return rc;
	if (++r->items > PROFILE_MAX_ITEMS)
		return profile_fail(r->err, CS_E_LIMIT, &at, "more than %d items", PROFILE_MAX_ITEMS);
	if (nest >= PROFILE_MAX_NEST)
		return profile_fail(r->err, CS_E_LIMIT, &at, "nested deeper than %d", PROFILE_MAX_NEST);
	n = cs_new(struct node);
	n->line = at.line;
	n->col = at.col;
	n->kind = e->type == YAML_SCALAR_EVENT ? NODE_SCALAR : e->type == YAML_MAPPING_START_EVENT ? NODE_MAP : NODE_LIST;
	rc = n->kind == NODE_SCALAR ? take_scalar(r, e, n) : read_members(r, n, nest + 1);
	if (rc < 0) {
		tree_free(n);
		return rc;
	}
	*ret = n;
	return 0;
}

/* The one document, between the stream's and the document's own start and end. */
static int read_stream(struct reader *r, struct node **ret)
{
	struct place at = { r->origin, 1, 1 };
	yaml_event_type_t type;
	yaml_event_t e;
	int rc;

	do {
		rc = next_event(r, &e);
		if (rc < 0)
			return rc;
		type = e.type;
		if (type == YAML_DOCUMENT_START_EVENT && *ret) {
			at = place_of_event(r, &e);
			rc = profile_fail(r->err, CS_E_INVALID, &at, "a second document: a profile is one");
		} else if (type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT ||
			   type == YAML_MAPPING_START_EVENT || type == YAML_ALIAS_EVENT) {
			rc = read_node(r, &e, /* nest= */ 0, ret);
		}
		yaml_event_delete(&e);
		if (rc < 0)
			return rc;
	} while (type != YAML_STREAM_END_EVENT);
	return *ret ? 0 : profile_fail(r->err, CS_E_INVALID, &at, "empty: a profile is a mapping of keys to values");
}

int tree_read(const char *text, size_t len, const char *origin, struct node **ret, struct cs_err *err)
{
	struct reader r = { .origin = origin, .text = text, .len = len, .err = err };
	struct place at = { .origin = origin };
	struct node *root = NULL;
	int rc;

	if (len > PROFILE_MAX_BYTES)
		return profile_fail(err, CS_E_LIMIT, &at, "larger than %d bytes", PROFILE_MAX_BYTES);
	rc = check_bytes(&r);
	if (rc < 0)
		return rc;
	if (!yaml_parser_initialize(&r.yaml))
		return profile_fail(err, CS_E_LIMIT, &at, "out of memory");
	/* Said, not guessed: a byte order mark must not turn the text into UTF-16. */
	yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text, len);
	rc = read_stream(&r, &root);
	yaml_parser_delete(&r.yaml);
	if (rc < 0) {
		tree_free(root);
		return rc;
	}
	*ret = root;
	return 0;
}
