/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - SHA-256 (FIPS 180-4).
 *
 * Ours, and not a library's: Debian's static ones either look at the processor before main() (CPUID traps in virtual
 * machines, tens of microseconds for every start) or bring a whole TLS stack along.  What is hashed here is small.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { CS_SHA256_SIZE = 32, CS_SHA256_HEX = 65 };

struct cs_sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

void cs_sha256(const void *data, size_t len, uint8_t ret[CS_SHA256_SIZE]);

void cs_sha256_init(struct cs_sha256 *h);
void cs_sha256_add(struct cs_sha256 *h, const void *data, size_t len);
void cs_sha256_end(struct cs_sha256 *h, uint8_t ret[CS_SHA256_SIZE]); /* h may be used again, from the start */

/* 64 small letters and digits, and a NUL. Returns ret. */
char *cs_sha256_hex(const uint8_t hash[CS_SHA256_SIZE], char ret[CS_SHA256_HEX]);
