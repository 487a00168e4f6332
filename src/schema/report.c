/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - words for what is wrong, from which it can be repaired. */
#include "schema/validate.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 96 };

/* JSON's own backslashes stay single; whatever else could act on a terminal is escaped. */
static void escape_json(struct cs_buf *to, const char *json)
{
	while (*json) {
		size_t n = strcspn(json, "\\");
		char run[SHOWN + 1];

		if (n > SHOWN)
			n = SHOWN;
		memcpy(run, json, n);
		run[n] = '\0';
		cs_escape(to, run);
		json += n;
		if (*json == '\\') {
			cs_buf_char(to, '\\');
			json++;
		}
	}
}

/* Cuts where a character ends. */
static void cut(char *s, size_t max)
{
	size_t n = strlen(s);

	if (n <= max)
		return;
	for (n = max - 3; n && ((unsigned char)s[n] & 0xc0) == 0x80;)
		n--;
	memcpy(s + n, "...", 4);
}

const char *schema_shown(const struct json *v)
{
	/* Four at a time. Not as thread-local arrays: more than 128 bytes of those, and every start of the program asks for memory. */
	static _Thread_local char (*ring)[SHOWN + 8];
	static _Thread_local unsigned turn;
	CS_BUF_AUTO struct cs_buf json = CS_BUF(4096), safe = CS_BUF(32768);
	char *to;

	if (!ring)
		ring = cs_calloc(4, sizeof *ring);
	to = ring[turn++ % 4];
	if (v->type == JSON_STRING && v->n > 1024) {
		struct json start = *v;

		start.n = 256;
		while (((unsigned char)v->s[start.n] & 0xc0) == 0x80)
			start.n--;
		json_write(&json, &start);
	} else {
		json_write(&json, v); /* if it is over, what there is is enough to show */
	}
	if (json.data)
		cut(json.data, SHOWN);
	escape_json(&safe, cs_buf_text(&json));
	if (safe.data)
		cut(safe.data, SHOWN);
	snprintf(to, sizeof *ring, "%s", cs_buf_text(&safe));
	return to;
}

const char *schema_shown_text(const char *s, size_t len)
{
	struct json v = { .type = JSON_STRING, .n = (uint32_t)len, .s = s };

	return schema_shown(&v);
}

/* ---- paths ---- */

static void add_pointer(struct cs_buf *b, const struct at *at)
{
	if (!at)
		return;
	add_pointer(b, at->up);
	if (!at->up)
		return;
	cs_buf_char(b, '/');
	if (!at->key) {
		cs_buf_fmt(b, "%u", at->index);
		return;
	}
	for (uint32_t i = 0; i < at->key_len; i++) {
		if (at->key[i] == '~' || at->key[i] == '/')
			cs_buf_fmt(b, "~%c", at->key[i] == '~' ? '0' : '1');
		else
			cs_buf_char(b, at->key[i] ? at->key[i] : '?');
	}
}

static bool is_word(const char *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_' || (i && s[i] >= '0' && s[i] <= '9')))
			return false;
	return n > 0;
}

/* args.list[3]["odd key"] */
static void add_way(struct cs_buf *b, const struct at *at, const char *name)
{
	if (!at->up) {
		cs_buf_str(b, name);
		return;
	}
	add_way(b, at->up, name);
	if (!at->key)
		cs_buf_fmt(b, "[%u]", at->index);
	else if (is_word(at->key, at->key_len))
		cs_buf_fmt(b, ".%.*s", (int)at->key_len, at->key);
	else
		cs_buf_fmt(b, "[%s]", schema_shown_text(at->key, at->key_len));
}

static void keep(char *to, size_t size, const struct cs_buf *from)
{
	cs_escape_to(to, size, cs_buf_text(from));
}

/* Two keywords may say the same of the same place; once is enough. */
static bool told(const struct schema_report *rep, const struct schema_failure *f)
{
	for (unsigned i = 0; i < rep->n; i++)
		if (!strcmp(rep->failures[i].message, f->message))
			return true;
	return false;
}

static void tell(struct run *r, const struct node *n, const char *keyword, const struct at *at, const char *what)
{
	CS_BUF_AUTO struct cs_buf pointer = CS_BUF(65536), rule = CS_BUF(65536), way = CS_BUF(65536);
	struct schema_report *rep = r->report;
	struct schema_failure *f = &rep->failures[rep->n];

	if (rep->n == SCHEMA_FAILURES)
		return;
	add_pointer(&pointer, at);
	keep(f->instance, sizeof f->instance, &pointer);
	cs_buf_fmt(&rule, "%s%s%s", n->path, *keyword ? "/" : "", keyword);
	keep(f->keyword, sizeof f->keyword, &rule);
	add_way(&way, at, rep->name ? rep->name : "value");
	if (way.data)
		cut(way.data, 160);
	snprintf(f->message, sizeof f->message, "%s: %s", cs_buf_text(&way), what);
	if (!told(rep, f))
		rep->n++;
}

bool schema_failed(struct run *r, const struct node *n, const char *keyword, const struct at *at, const char *fmt, ...)
{
	char what[340];
	va_list ap;

	if (r->mode == SCORE) {
		r->failures++;
		if (at->depth > r->deepest)
			r->deepest = at->depth;
		return false;
	}
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	cut(what, sizeof what - 8);
	tell(r, n, keyword, at, what);
	return false;
}
