/* SPDX-License-Identifier: Apache-2.0 */
/* mem.h - allocation and string vectors.
 *
 * Small objects whose size we choose end the process on exhaustion, with a word
 * and status 125 (cs_new, cs_strdup): a launcher that cannot get 100 bytes has
 * nothing sensible left to do, and ending is failing closed.  Whatever grows with outside input goes through
 * struct cs_buf (base/buf.h), which has a maximum and reports CS_E_LIMIT.
 */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

void *cs_calloc(size_t n, size_t size) __attribute__((returns_nonnull));
#define cs_new(type) ((type *)cs_calloc(1, sizeof(type)))
/* Twice the room, or the first few, for elements of this size; their number has a limit of its own. */
void *cs_grow(void *take_v, size_t *room, size_t size) __attribute__((returns_nonnull));
char *cs_strdup(const char *s) __attribute__((returns_nonnull));
char *cs_strndup(const char *s, size_t n) __attribute__((returns_nonnull));
char *cs_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/* A NULL-terminated vector of owned strings.  {0} is a valid empty vector. */
struct cs_strv {
	char **v;
	size_t n;
};

void cs_strv_add(struct cs_strv *s, const char *text);
void cs_strv_take(struct cs_strv *s, char *take_text);
bool cs_strv_has(const struct cs_strv *s, const char *text);
void cs_strv_copy(struct cs_strv *to, const struct cs_strv *from); /* appends */
void cs_strv_done(struct cs_strv *s);
