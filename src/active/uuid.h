/* UUIDs: KeyDB's servers name each start of a process by one, and so do we. Vectors and files use a number instead, the
 * id, which is the halves of the UUID put together. The UUID of an origin of ours can be had back from its id; that of
 * a KeyDB server cannot, so whoever sends operations of it to others has to keep it. Ids of servers of other kinds have
 * the bit of merge_origin_is_foreign, those of nodes of ours have not. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { UUID_BYTES = 16, UUID_TEXT_BYTES = 36 };

struct uuid {
    uint8_t bytes[UUID_BYTES]; /* as printed; all zero: nil, which names nobody */
};

must_check bool uuid_parse(struct slice text, struct uuid *uuid); /* any case; false: not a UUID, or nil */
void uuid_format(const struct uuid *uuid, char out[UUID_TEXT_BYTES + 1]);
bool uuid_is_nil(const struct uuid *uuid);

static inline bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, UUID_BYTES) == 0;
}

/* --- ids --- */

bool uuid_id_is_valid(uint64_t id);         /* not 0, and below the two numbers that places use for themselves */
uint64_t uuid_random_id(void);              /* for a new origin of ours */
uint64_t uuid_random_foreign_id(void);      /* for what a node of ours brings in from servers of other kinds */
uint64_t uuid_id(const struct uuid *uuid);  /* always a valid one */
struct uuid uuid_of_id(uint64_t id);        /* of an origin of ours */
bool uuid_is_ours(const struct uuid *uuid); /* it was made by uuid_of_id */
