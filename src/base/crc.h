/* SPDX-License-Identifier: Apache-2.0 */
/* crc.h - CRC-32C (Castagnoli), as in iSCSI and ext4.  Finds accidents, not attacks. */
#pragma once
#include <stddef.h>
#include <stdint.h>

uint32_t cs_crc32c(uint32_t crc, const void *data, size_t len);
