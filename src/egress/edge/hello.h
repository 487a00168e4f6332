/* SPDX-License-Identifier: Apache-2.0 */
/* hello.h - the TLS ClientHello, read without answering it. */
#pragma once
#include "netpolicy/netpolicy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HELLO_MAX = 16384 + 1024 }; /* of handshake bytes, over records; more is refused */

enum hello_state {
	HELLO_MORE,    /* so far it could become one: read on */
	HELLO_DONE,
	HELLO_NOT_TLS, /* the first bytes are of something else */
	HELLO_BAD,     /* TLS, but broken, over-long or ambiguous (two names, a name twice) */
};

struct hello {
	bool has_name;
	char name[NET_NAME_MAX]; /* canonical; "" if it cannot be a name (then HELLO_BAD) */
	bool ech;                /* encrypted_client_hello (0xfe0d) is there, real or GREASE */
	bool h2, http11;         /* in ALPN */
	bool alpn;               /* ALPN is there */
	const char *why;         /* of HELLO_BAD: constant text */
};
/* bytes: everything read so far, from the first byte on. A hello may span several records. */
enum hello_state hello_parse(const uint8_t *bytes, size_t len, struct hello *ret);
