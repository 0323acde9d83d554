/* The deadlines of one database's keys in one stripe: a binary heap of (time, hash of the key), so that the next due
 * key is known exactly and keys without a deadline cost nothing.
 *
 * A record is a hint and is never updated: a key with a deadline always has one at its deadline or before it. When a
 * record comes due its key is looked up by hash; if the key lives longer, the record goes back with the key's time.
 * So prolonging a deadline, the common change, is free; shortening adds a record; deletion leaves one behind. When
 * superfluous records outnumber the others the heap is built anew from the table.
 * Keys whose members have deadlines have a second heap of the same kind, `members`, by the first of those; so what
 * counts and orders keys by their own deadlines (INFO, eviction) does not see it. A third, `jobs`, knows when which job
 * is to be run (jobs.h).
 * Guarded by the stripe's lock; the atomic fields are read by others for sums. */
#pragma once

#include "base/table.h"

#include <stdatomic.h>
#include <stdint.h>

struct expiry_record {
    int64_t when_ms;
    uint64_t hash;
};

struct expiry {
    _Atomic uint64_t live;       /* keys that have a deadline */
    _Atomic int64_t near_sum_ms; /* of their deadlines, less EXPIRY_EPOCH_MS each; without those that are far off */
    _Atomic int64_t far_sum;     /* of those, in coarse units: a million deadlines at the end of time are no overflow */
    _Atomic int64_t next_ms;     /* the first record's time; INT64_MAX: none */
    struct expiry_record *records;
    uint32_t count, capacity;
    _Atomic(struct expiry *) members; /* NULL: not used yet, or this one is of a kind; stays once it is there */
    _Atomic(struct expiry *) jobs;    /* likewise */
    enum expiry_kind { EXPIRY_OF_KEYS, EXPIRY_OF_MEMBERS, EXPIRY_OF_JOBS } kind; /* const */
};

#define EXPIRY_EPOCH_MS INT64_C(1700000000000)     /* keeps the sums small */
double expiry_sum_ms(const struct expiry *expiry); /* of deadlines, less EXPIRY_EPOCH_MS each; any thread */

struct expiry *expiry_create(void);
void expiry_destroy(struct expiry **expiry);
void expiry_clear(struct expiry *expiry);
struct expiry *expiry_members(struct expiry *expiry); /* made if it is not there */
struct expiry *expiry_jobs(struct expiry *expiry);    /* likewise */

/* A key's deadline changed (of expiry_members the first of its members', of expiry_jobs the time when it is to be run);
 * EXPIRE_NEVER (-1) stands for none, before or after. `keys` is the table it is in. */
void expiry_changed(struct expiry *expiry, uint64_t hash, int64_t before_ms, int64_t after_ms,
                    const struct table *keys);
/* Takes the first record if it is due before `now_ms`. */
bool expiry_take_due(struct expiry *expiry, int64_t now_ms, struct expiry_record *record);
/* Puts a record back for a key that lives until `when_ms`. */
void expiry_put_back(struct expiry *expiry, uint64_t hash, int64_t when_ms);
/* Moves the records to where they leave no holes in memory; the struct itself stays, others look at it. */
struct mem_mover;
void expiry_relocate(struct expiry *expiry, struct mem_mover *mover);
void expiry_validate(const struct expiry *expiry, const struct table *keys); /* asserts what is said above */
