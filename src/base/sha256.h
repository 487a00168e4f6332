/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - SHA-256, by Nettle. */
#pragma once
#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

enum { CS_SHA256_SIZE = 32, CS_SHA256_HEX = 65 };

struct cs_sha256 {
	struct sha256_ctx ctx;
};

void cs_sha256(const void *data, size_t len, uint8_t ret[CS_SHA256_SIZE]);

void cs_sha256_init(struct cs_sha256 *h);
void cs_sha256_add(struct cs_sha256 *h, const void *data, size_t len);
void cs_sha256_end(struct cs_sha256 *h, uint8_t ret[CS_SHA256_SIZE]); /* h may be used again, from the start */

/* 64 small letters and digits, and a NUL. Returns ret. */
char *cs_sha256_hex(const uint8_t hash[CS_SHA256_SIZE], char ret[CS_SHA256_HEX]);
