/* The bodies of the frames by which two nodes compare their data (compare.h), as bytes.
 *
 *     compare   number 8; secret 16; until 8; clock 8; deeds: vector; count of slots that are wanted, then of each the
 *               difference to the one before (the first: to -1), varint. Without any: the digests of all slots
 *     digests   number 8; kind 1, enum comparison_kind. If it is SUMS or KEYS: clock 8; deeds: vector; clear slots,
 *               2,048 bytes, the lowest bit of the first one is slot 0; of SUMS, for each clear slot, its digest 16; of
 *               KEYS a count, then of each a key
 *     repair    number 8; count, then of each a key
 *     key       db varint; name: size varint, bytes; digest 16; stamp 8, origin 8 (stamp 0: it has none)
 *
 * Vectors are those of notices (notice.h). What is read is checked: slots ascend, keys of an answer are in clear slots,
 * databases are below db_count, stamps are possible, nothing stands behind the end. Pure; an owner each. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "merge/place.h"
#include "merge/vector.h"
#include "persist/slot_digest.h"

#include <stdbool.h>
#include <stdint.h>

enum { COMPARISON_ERROR_BYTES = 128, COMPARISON_SLOT_WORDS = SLOT_COUNT / 64 };

struct comparison_slots {
    uint64_t words[COMPARISON_SLOT_WORDS];
};

static inline bool comparison_has(const struct comparison_slots *slots, uint32_t slot)
{
    return (slots->words[slot / 64] >> (slot % 64) & 1) != 0;
}

static inline void comparison_set(struct comparison_slots *slots, uint32_t slot)
{
    slots->words[slot / 64] |= UINT64_C(1) << (slot % 64);
}

struct comparison_request {
    uint64_t number; /* drawn for each */
    struct digest_secret secret;
    int64_t until_ms;
    uint64_t clock;
    struct merge_vector deeds; /* of the asker, when its walk began */
    struct comparison_slots wanted;
    uint32_t wanted_count; /* 0: the digests of all */
};

struct comparison_key {
    unsigned db;
    struct slice name; /* of the body that was read */
    struct slot_sum sum;
    struct merge_place last;
};

struct comparison_keys {
    struct comparison_key *items;
    uint32_t count, capacity;
};

enum comparison_kind {
    COMPARISON_SUMS = 1,
    COMPARISON_KEYS = 2,
    COMPARISON_BUSY = 3,  /* it compares already: ask later */
    COMPARISON_FAILED = 4 /* it cannot, or has not got what the asker had */
};

struct comparison_answer {
    uint64_t number;
    enum comparison_kind kind;
    uint64_t clock;
    struct merge_vector deeds; /* when the walk began */
    struct comparison_slots clear;
    struct slot_digests *digests; /* COMPARISON_SUMS: of clear slots; owned */
    struct comparison_keys keys;  /* COMPARISON_KEYS */
};

void comparison_request_fini(struct comparison_request *request);
void comparison_answer_fini(struct comparison_answer *answer);

void comparison_write_request(struct buffer *body, const struct comparison_request *request);
void comparison_write_answer(struct buffer *body, const struct comparison_answer *answer);
void comparison_write_repair(struct buffer *body, uint64_t number, const struct comparison_keys *keys);

/* False: `error` has the reason, and what was read is empty. */
must_check bool comparison_read_request(struct slice body, struct comparison_request *request,
                                        char error[COMPARISON_ERROR_BYTES]);
must_check bool comparison_read_answer(struct slice body, unsigned db_count, struct comparison_answer *answer,
                                       char error[COMPARISON_ERROR_BYTES]);
must_check bool comparison_read_repair(struct slice body, unsigned db_count, uint64_t *number,
                                       struct comparison_keys *keys, char error[COMPARISON_ERROR_BYTES]);
