/* One digest for each hash slot (store/slot.h): servers with equal data have equal digests, whatever the encodings, the
 * order of insertion or the number of stripes, and a slot whose digests differ has a key that differs.
 *
 * A slot's digest is two sums, modulo 2^64 each, of the keyed digests (digest.h) of its keys: database, name, value,
 * deadlines, and the stamp of the last operation if the terms name the origins. A slot without keys has zeros. Not in
 * it: keys and members with a deadline before until_ms (servers free them at different times), deleted keys, libraries
 * of functions. */
#pragma once

#include "persist/digest.h"
#include "store/access.h"
#include "store/slot.h"

struct slot_terms {
    struct digest_secret secret; /* the same on both servers, new for each comparison */
    int64_t until_ms;
    /* By local number of an origin, VERSION_ORIGINS words: what every server calls it. NULL: stamps do not count. */
    const uint64_t *origins;
};

struct slot_sum {
    uint64_t words[2];
};

struct slot_digests {
    struct slot_sum slots[SLOT_COUNT];
};

#define SLOT_SUM_TEXT_BYTES 33
void slot_sum_format(const struct slot_sum *sum, char text[SLOT_SUM_TEXT_BYTES]); /* 32 digits and a zero byte */

/* The secret that a text stands for. */
struct digest_secret slot_secret_of(struct slice text);
/* What this key adds to its slot; false: nothing. Its stripe is held. */
bool slot_digest_of(const struct slot_terms *terms, unsigned db, const struct entry *entry, struct slot_sum *sum);
/* Adds it to its slot's, slot_of its name. */
void slot_digests_add(struct slot_digests *digests, uint32_t slot, const struct slot_terms *terms, unsigned db,
                      const struct entry *entry);
/* Those of all slots, or of those in the bit map `wanted` (SLOT_COUNT bits); the gate is owned. */
void slot_digests_take(struct slot_digests *digests, struct access *access, const struct slot_terms *terms,
                       const uint64_t *wanted);
