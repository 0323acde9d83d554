/* Digests of data, equal on any server with the same data. Two kinds, made by the same walk over a value (type_*.c).
 * Any thread; the entry's stripe is held.
 *
 * Redis' form (secret NULL) is what DEBUG DIGEST replies:
 *
 *     mix(d, x) = sha1(d ^ sha1(x))    for data with an order
 *     add(d, x) = d ^ sha1(x)          for data without an order
 *
 *     value     type (32 bits, network order) mixed into zeros, then: for a string its bytes mixed in; for a list each
 *               element mixed in, in order; for a stream the id of each entry, as "1.2", its fields and values mixed
 *               in; for a set each member added; for a hash the digest of each pair (field and value mixed in that
 *               order into zeros) added as bytes; with a deadline "!!expire!!" added
 *     key       zeros, the name mixed in, then the value as above
 *     database  its number (32 bits, network order) mixed into the total, then each key added
 * The total begins with zeros. Databases without keys do not change it.
 *
 * The keyed form is what slots are compared by (slot_digest.h). It has everything that is the same on equal servers:
 * also the times of deadlines, groups of streams, starts of jobs. It is 20 times as fast: one SipHash-1-3 with 128 bits
 * over what has an order, and two sums of 64 bits of such hashes for what has none.
 *
 *     mix(d, x)  the size of x and its bytes go into d's hash, in words of 64 bits, little-endian
 *     add(d, x)  the hash of x is added to d's sums, modulo 2^64 each
 *     result     the sums go into d's hash, which is ended
 *
 * Anyone can choose data whose sums collide if he knows the hashes: XOR or addition of public hashes is linear algebra,
 * or a birthday of many lists. So whoever compares draws a secret for each comparison, when the data are there already,
 * and tells it to the other server alone. Nobody else sees a hash, and what has collided would not do so again. */
#pragma once

#include "base/sip.h"
#include "base/slice.h"
#include "store/access.h"

#include <stdbool.h>
#include <stdint.h>

enum { DIGEST_BYTES = 20 };

struct digest_secret {
    uint64_t words[2];
};

struct digest {
    const struct digest_secret *secret; /* NULL: Redis' form */
    /* Keyed: members of this entry with a deadline before until_ms are left out; NULL: none. */
    const struct entry *of;
    int64_t until_ms;
    union {
        uint8_t bytes[DIGEST_BYTES];
        struct {
            struct sip ordered;
            uint64_t sums[2];
        } keyed;
    };
};

/* An empty digest of Redis' form is all zeros. */
void digest_begin_keyed(struct digest *digest, const struct digest_secret *secret);
void digest_end_keyed(struct digest *digest, uint64_t result[2]);
static inline bool digest_is_keyed(const struct digest *digest)
{
    return digest->secret != NULL;
}

void digest_mix(struct digest *digest, struct slice bytes);
void digest_mix_u32(struct digest *digest, uint32_t number);
void digest_mix_u64(struct digest *digest, uint64_t number); /* only keyed */
void digest_add(struct digest *digest, struct slice bytes);
/* Adds the digest of both, mixed in this order into zeros. */
void digest_add_pair(struct digest *digest, struct slice first, struct slice second);
/* A digest of its own, of the same form, which is added whole. */
void digest_begin_part(struct digest *part, const struct digest *whole);
void digest_add_part(struct digest *whole, struct digest *part);
/* Mixes the value in, with its type and its deadlines. */
void digest_mix_value(struct digest *digest, const struct entry *entry);
/* All databases, with the gate owned. */
void digest_all(struct digest *digest, struct access *access);

#define DIGEST_TEXT_BYTES (2 * DIGEST_BYTES + 1)
void digest_format(const struct digest *digest, char text[DIGEST_TEXT_BYTES]); /* lower case; a zero byte follows */
