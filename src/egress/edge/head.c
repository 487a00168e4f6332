/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/edge/intercept_internal.h"

#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool head_add(struct head *h, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct field *f;

	if (h->n >= HEAD_FIELDS || name_len > HEAD_MAX || value_len > HEAD_MAX || h->size + name_len + value_len > HEAD_MAX)
		return false;
	if (!h->f)
		h->f = cs_calloc(HEAD_FIELDS, sizeof *h->f);
	f = &h->f[h->n++];
	f->name = cs_strndup(name, name_len);
	f->value = cs_strndup(value, value_len);
	h->size += name_len + value_len;
	return true;
}

const char *head_get(const struct head *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (!strcasecmp(h->f[i].name, name))
			return h->f[i].value;
	return NULL;
}

void head_remove_at(struct head *h, size_t at)
{
	h->size -= strlen(h->f[at].name) + strlen(h->f[at].value);
	wipe_free(h->f[at].name);
	wipe_free(h->f[at].value);
	h->n--;
	memmove(h->f + at, h->f + at + 1, (h->n - at) * sizeof *h->f);
}

size_t head_remove(struct head *h, const char *name)
{
	size_t n = 0;

	for (size_t i = h->n; i-- > 0;)
		if (!strcasecmp(h->f[i].name, name)) {
			head_remove_at(h, i);
			n++;
		}
	return n;
}

bool head_set(struct head *h, const char *name, const char *value)
{
	head_remove(h, name);
	return head_add(h, name, strlen(name), value, strlen(value));
}

void head_done(struct head *h)
{
	for (size_t i = 0; i < h->n; i++) {
		wipe_free(h->f[i].name);
		wipe_free(h->f[i].value);
	}
	free(h->f);
	wipe_free(h->method);
	wipe_free(h->target);
	wipe_free(h->authority);
	wipe_free(h->reason);
	*h = (struct head){ 0 };
}

/* ---- what texts may hold ---- */

bool text_is_token(const char *s, size_t n)
{
	if (!n)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c))))
			return false;
	}
	return true;
}

bool text_is_value(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool text_is_target(const char *s, size_t n)
{
	if (!n)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c <= 0x20 || c >= 0x7f || c == '#')
			return false;
	}
	return true;
}

/* ---- answers of our own ---- */

bool refuse(struct refusal *no, int status, const char *error, const char *fmt, ...)
{
	va_list ap;

	*no = (struct refusal){ .status = status, .error = error };
	va_start(ap, fmt);
	(void)vsnprintf(no->reason, sizeof no->reason, fmt, ap); /* a reason may be cut */
	va_end(ap);
	return false;
}

void refusal_json(const struct refusal *no, struct cs_buf *out)
{
	struct cs_json j;

	cs_json_begin(&j, out, /* pretty= */ false);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "error", no->error);
	cs_json_str(&j, "by", "caisson");
	cs_json_str(&j, "reason", no->reason);
	if (no->fix[0])
		cs_json_str(&j, "allow", no->fix);
	else if (no->status == 403)
		cs_json_null(&j, "allow");
	cs_json_end(&j, '}');
}

const char *status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} texts[] = {
		{ 100, "Continue" }, { 400, "Bad Request" }, { 403, "Forbidden" }, { 405, "Method Not Allowed" },
		{ 408, "Request Timeout" }, { 414, "URI Too Long" }, { 417, "Expectation Failed" }, { 421, "Misdirected Request" },
		{ 431, "Request Header Fields Too Large" }, { 501, "Not Implemented" }, { 502, "Bad Gateway" },
		{ 504, "Gateway Timeout" }, { 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "Error";
}
