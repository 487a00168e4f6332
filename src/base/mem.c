/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *or_die(void *p)
{
	if (!p) {
		static const char text[] = "caisson: out of memory\n";
		(void)!write(STDERR_FILENO, text, sizeof text - 1);
		_exit(125);
	}
	return p;
}

void *cs_calloc(size_t n, size_t size)
{
	return or_die(calloc(n ? n : 1, size ? size : 1));
}

void *cs_grow(void *take_v, size_t *room, size_t size)
{
	*room = *room ? *room * 2 : 8;
	return or_die(reallocarray(take_v, *room, size));
}

char *cs_strdup(const char *s)
{
	return or_die(strdup(s));
}

char *cs_strndup(const char *s, size_t n)
{
	return or_die(strndup(s, n));
}

char *cs_printf(const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return or_die(n < 0 ? NULL : s);
}

/* The analyzer loses sight of what a grown array holds. */
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
void cs_strv_take(struct cs_strv *s, char *take_text)
{
	/* Grown in powers of two, always with room for the closing NULL. */
	if ((s->n & (s->n + 1)) == 0)
		s->v = or_die(reallocarray(s->v, (s->n + 1) * 2, sizeof *s->v));
	s->v[s->n++] = take_text;
	s->v[s->n] = NULL;
}
#pragma GCC diagnostic pop

void cs_strv_add(struct cs_strv *s, const char *text)
{
	cs_strv_take(s, cs_strdup(text));
}

bool cs_strv_has(const struct cs_strv *s, const char *text)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i], text))
			return true;
	return false;
}

void cs_strv_copy(struct cs_strv *to, const struct cs_strv *from)
{
	for (size_t i = 0; i < from->n; i++)
		cs_strv_add(to, from->v[i]);
}

void cs_strv_done(struct cs_strv *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct cs_strv){ 0 };
}
