/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool reserve(struct cs_buf *b, size_t more)
{
	size_t need;
	char *p;

	if (b->over || more > b->max || b->len > b->max - more) {
		b->over = true;
		return false;
	}
	need = b->len + more + 1;
	if (need <= b->cap)
		return true;
	if (need < b->cap * 2)
		need = b->cap * 2;
	if (need < 256)
		need = 256;
	p = realloc(b->data, need);
	if (!p) {
		b->over = true;
		return false;
	}
	b->data = p;
	b->cap = need;
	return true;
}

void cs_buf_add(struct cs_buf *b, const void *data, size_t len)
{
	if (!reserve(b, len))
		return;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = 0;
}

void cs_buf_str(struct cs_buf *b, const char *s)
{
	cs_buf_add(b, s, strlen(s));
}

void cs_buf_char(struct cs_buf *b, char c)
{
	if (!reserve(b, 1))
		return;
	b->data[b->len++] = c;
	b->data[b->len] = 0;
}

void cs_buf_fmt(struct cs_buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n >= 0 && reserve(b, (size_t)n)) {
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void cs_buf_done(struct cs_buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

const char *cs_buf_text(const struct cs_buf *b)
{
	return b->data ? b->data : "";
}

int cs_buf_read_fd(struct cs_buf *b, int fd, const char *name, struct cs_err *err)
{
	char chunk[4096];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof chunk);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "read '%s'", name);
		if (n == 0)
			return 0;
		cs_buf_add(b, chunk, (size_t)n);
		if (b->over)
			return cs_fail(err, CS_E_LIMIT, 0, "'%s' is larger than %zu bytes", name, b->max);
	}
}

int cs_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}
