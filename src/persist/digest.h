/* Digests of data, equal on any server with the same data: DEBUG DIGEST compares servers by them. The algorithm is that
 * of Redis. Any thread; the entry's stripe is held.
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
 * The total begins with zeros. Databases without keys do not change it. */
#pragma once

#include "base/slice.h"
#include "store/access.h"

#include <stdint.h>

enum { DIGEST_BYTES = 20 };

struct digest {
    uint8_t bytes[DIGEST_BYTES];
};

void digest_mix(struct digest *digest, struct slice bytes);
void digest_mix_u32(struct digest *digest, uint32_t number);
void digest_add(struct digest *digest, struct slice bytes);
/* Adds the digest of both, mixed in this order into zeros. */
void digest_add_pair(struct digest *digest, struct slice first, struct slice second);
/* Mixes the value in, with its type and whether it has a deadline. */
void digest_mix_value(struct digest *digest, const struct entry *entry);
/* All databases, with the gate owned. */
void digest_all(struct digest *digest, struct access *access);

#define DIGEST_TEXT_BYTES (2 * DIGEST_BYTES + 1)
void digest_format(const struct digest *digest, char text[DIGEST_TEXT_BYTES]); /* lower case; a zero byte follows */
