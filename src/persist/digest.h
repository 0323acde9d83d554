/* Fingerprints of data, equal wherever the data are: what DEBUG DIGEST compares servers by. Any thread; the entry's
 * stripe is held.
 *
 *     mix(d, x) = sha1(d ^ sha1(x))    what follows in order
 *     add(d, x) = d ^ sha1(x)          what has no order
 *
 *     value     type (32 bits, network order) mixed into zeros, then the bytes of the string mixed in; or of a list
 *               each element in order mixed in; of a stream of each entry its id, as "1.2", its fields and values;
 *               of a set each member added; of a hash for each pair the digest of field and value, mixed in that
 *               order into zeros, added as bytes; with a deadline "!!expire!!" added
 *     key       zeros, the name mixed in, then what makes a value
 *     database  its number (32 bits, network order) mixed into the total, then each key added
 * The total begins with zeros, and databases without keys leave no trace in it. */
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
/* Both mixed in this order into zeros, added. */
void digest_add_pair(struct digest *digest, struct slice first, struct slice second);
/* Mixes the value in, with its type and whether it has a deadline. */
void digest_mix_value(struct digest *digest, const struct entry *entry);
/* All databases; the gate is held. */
void digest_all(struct digest *digest, struct access *access);

#define DIGEST_TEXT_BYTES (2 * DIGEST_BYTES + 1)
void digest_format(const struct digest *digest, char text[DIGEST_TEXT_BYTES]); /* lower case, a zero byte after it */
