/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

void cs_sha256_init(struct cs_sha256 *h)
{
	sha256_init(&h->ctx);
}

void cs_sha256_add(struct cs_sha256 *h, const void *data, size_t len)
{
	if (len)
		sha256_update(&h->ctx, len, data);
}

void cs_sha256_end(struct cs_sha256 *h, uint8_t ret[CS_SHA256_SIZE])
{
	sha256_digest(&h->ctx, CS_SHA256_SIZE, ret);
}

void cs_sha256(const void *data, size_t len, uint8_t ret[CS_SHA256_SIZE])
{
	struct cs_sha256 h;

	cs_sha256_init(&h);
	cs_sha256_add(&h, data, len);
	cs_sha256_end(&h, ret);
}

char *cs_sha256_hex(const uint8_t hash[CS_SHA256_SIZE], char ret[CS_SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < CS_SHA256_SIZE; i++) {
		ret[2 * i] = digits[hash[i] >> 4];
		ret[2 * i + 1] = digits[hash[i] & 15];
	}
	ret[CS_SHA256_HEX - 1] = '\0';
	return ret;
}
