/* The keyed hash of every table: XXH3 with a secret of 192 random bytes drawn at start, so that nobody outside can
 * choose keys that collide. Never written to disk or network: another process has another secret. */
#pragma once

#include <stdint.h>
#include <stddef.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

extern uint8_t hash_secret[XXH3_SECRET_SIZE_MIN + 56]; /* global: constant after hash_setup */

void hash_setup(void); /* once, before the first table */

static inline uint64_t hash_bytes(const void *data, size_t size)
{
    return XXH3_64bits_withSecret(data, size, hash_secret, sizeof(hash_secret));
}
