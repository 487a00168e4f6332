/* SPDX-License-Identifier: Apache-2.0 */
/* nettle.c - libnettle.a asks the processor what it can do before main(), with CPUID, which traps
 * in a virtual machine (see compat.h). Its plain SHA-256 for x86-64 is named here by the name that
 * would otherwise bring in the one that asks. Nettle 3.9 has other names; there, it asks. */
#include "base/compat.h"

#include <nettle/version.h>
#include <stdint.h>

#if !defined __GLIBC__ && defined __x86_64__ && NETTLE_VERSION_MAJOR == 3 && NETTLE_VERSION_MINOR < 9
void _nettle_sha256_compress_x86_64(uint32_t *state, const uint8_t *block, const uint32_t *k);
void _nettle_sha256_compress(uint32_t *state, const uint8_t *block, const uint32_t *k);

void _nettle_sha256_compress(uint32_t *state, const uint8_t *block, const uint32_t *k)
{
	_nettle_sha256_compress_x86_64(state, block, k);
}
#endif
