/* The keyed hash of all tables. Nobody outside can choose keys that collide, also not by watching SCAN cursors, which
 * show bits of hashes.
 *
 * That needs a pseudorandom function: without its key, outputs tell nothing about other outputs. A fast hash with a
 * seed is not such a function. XXH3, which was used here before, is for keys of 4 to 8 bytes one public bijection of
 * key XOR a constant.
 *
 *  - Up to HASH_AES_MOST bytes, where the processor has AES: XCBC-MAC (Black and Rogaway, 2000; RFC 3566) with all ten
 *    rounds and three independent keys, 64 of its 128 bits. It is a pseudorandom function for messages of any length as
 *    far as AES is a pseudorandom permutation, up to 2^64 blocks, and keys of up to 16 bytes are one block.
 *  - Longer keys, and all keys on other processors: SipHash-1-3 (Aumasson and Bernstein, 2012, with the number of
 *    rounds that hash tables elsewhere use). It was designed for this purpose. There is no proof of its security, but
 *    no known attack either.
 *
 * Two such functions with independent keys, each for its own sizes, make one such function. XCBC takes 22 instructions
 * for 16 bytes and 36 for 12 bytes; SipHash-1-3 takes 146 and 130; XXH3 took about 45.
 *
 * The key is drawn at start and never written to disk or network. Each process has its own. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HASH_AES_ROUNDS = 10,
    /* AES handles the blocks of a message one after the other: SipHash is as fast at this size and faster beyond. */
    HASH_AES_MOST = 64,
    HASH_SECRET_BYTES = 64
};

struct hash_key {
    uint8_t rounds[HASH_AES_ROUNDS + 1][16] CACHE_ALIGNED;
    uint8_t whole[16];  /* for a last block that is full: XCBC's second key XOR rounds[0] */
    uint8_t padded[16]; /* for a last block that is not full: XCBC's third key XOR rounds[0] */
    uint64_t sip[2];
    bool has_aes; /* all members above except sip are set */
};

extern struct hash_key hash_key; /* global: constant after hash_setup */

void hash_setup(void); /* main thread, once, before the first table */

/* Makes a key of 64 random bytes: 16 each for AES, for full last blocks, for padded last blocks, and for SipHash. */
void hash_key_init(struct hash_key *key, const uint8_t secret[HASH_SECRET_BYTES]);
uint64_t hash_aes(const struct hash_key *key, const void *data, size_t size); /* only if key->has_aes */
uint64_t hash_sip(const struct hash_key *key, const void *data, size_t size);

static inline uint64_t hash_bytes(const void *data, size_t size)
{
    return LIKELY(size <= HASH_AES_MOST && hash_key.has_aes) ? hash_aes(&hash_key, data, size)
                                                             : hash_sip(&hash_key, data, size);
}
