/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/edge/intercept_internal.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

/* realloc() would leave a copy behind. */
static bool grow(struct bytes *b, size_t need)
{
	size_t cap = b->cap ? b->cap : 1024;
	char *p;

	while (cap < need)
		cap *= 2;
	p = malloc(cap);
	if (!p)
		return false;
	if (b->data) {
		memcpy(p, b->data + b->at, b->len);
		OPENSSL_cleanse(b->data, b->cap);
		free(b->data);
	}
	b->data = p;
	b->cap = cap;
	b->at = 0;
	return true;
}

static bool reserve(struct bytes *b, size_t more)
{
	size_t end = b->at + b->len;

	if (more > b->max || b->len > b->max - more)
		return false;
	if (b->cap - end >= more && b->data)
		return true;
	if (b->data && b->cap - b->len >= more) {
		memmove(b->data, b->data + b->at, b->len);
		OPENSSL_cleanse(b->data + b->len, end - b->len);
		b->at = 0;
		return true;
	}
	return grow(b, b->len + more);
}

bool bytes_add(struct bytes *b, const void *data, size_t n)
{
	if (!n)
		return true;
	if (!reserve(b, n))
		return false;
	memcpy(b->data + b->at + b->len, data, n);
	b->len += n;
	return true;
}

bool bytes_str(struct bytes *b, const char *s)
{
	return bytes_add(b, s, strlen(s));
}

char *bytes_room(struct bytes *b, size_t want, size_t *ret_room)
{
	size_t room = b->max > b->len ? b->max - b->len : 0;

	if (room > want)
		room = want;
	if (!room || !reserve(b, room))
		return NULL;
	*ret_room = room;
	return b->data + b->at + b->len;
}

void bytes_took(struct bytes *b, size_t n)
{
	b->len += n;
}

void bytes_drop(struct bytes *b, size_t n)
{
	if (!n)
		return;
	OPENSSL_cleanse(b->data + b->at, n);
	b->at += n;
	b->len -= n;
	if (!b->len)
		b->at = 0;
}

void bytes_done(struct bytes *b)
{
	if (b->data)
		OPENSSL_cleanse(b->data, b->cap);
	free(b->data);
	b->data = NULL;
	b->at = b->len = b->cap = 0;
}

void wipe_free(char *s)
{
	if (s)
		OPENSSL_cleanse(s, strlen(s));
	free(s);
}
