/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - hashes of bytes, for tables of keys that come from outside. */
#pragma once
#include <stddef.h>
#include <stdint.h>

uint64_t json_hash_bytes(const void *data, size_t len, uint64_t seed);
/* One per process, so that nobody can prepare keys that collide. */
uint64_t json_seed(void);
