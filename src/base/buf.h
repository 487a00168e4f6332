/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - a growing byte buffer with a maximum.
 *
 * Once the maximum is passed the buffer is "over": further appends do nothing
 * and cs_buf_over() tells.  Writers append freely and check once at the end.
 * The content is always NUL-terminated.
 */
#pragma once
#include "base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct cs_buf {
	char *data;
	size_t len, cap, max;
	bool over;
};

#define CS_BUF(limit) { .max = (limit) }
#define CS_BUF_AUTO __attribute__((__cleanup__(cs_buf_done)))

void cs_buf_add(struct cs_buf *b, const void *data, size_t len);
void cs_buf_str(struct cs_buf *b, const char *s);
void cs_buf_char(struct cs_buf *b, char c);
void cs_buf_fmt(struct cs_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cs_buf_done(struct cs_buf *b);
const char *cs_buf_text(const struct cs_buf *b); /* never NULL */

/* The whole of a file, at most b->max bytes; CS_E_LIMIT if there is more. */
int cs_buf_read_fd(struct cs_buf *b, int fd, const char *name, struct cs_err *err);
/* All of the buffer to fd, over short writes and EINTR. */
int cs_write_all(int fd, const void *data, size_t len);
