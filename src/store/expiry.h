/* The deadlines of one database's keys in one stripe: a binary heap of (time, hash of the key). So the next due key is
 * known exactly, and keys without a deadline cost nothing.
 *
 * A record is a hint and is never updated. For a key with a deadline there always is a record at its deadline or before
 * it. When a record comes due, its key is looked up by hash. If the key lives longer, the record is put back with the
 * key's time. So extending a deadline, the common change, is free; shortening it adds a record; deleting the key leaves
 * a record behind. When outdated records outnumber the others, the heap is rebuilt from the table.
 *
 * Keys whose members have deadlines have a second heap of the same kind, `members`, by the earliest of these. So
 * statistics and eviction by the keys' own deadlines do not see it. A third heap, `jobs`, has the times of the jobs'
 * next runs (jobs.h).
 *
 * The stripe's lock guards all of it. Other threads read the atomic fields, for sums. */
#pragma once

#include "base/table.h"

#include <stdatomic.h>
#include <stdint.h>

struct expiry_record {
    int64_t when_ms;
    uint64_t hash;
};

struct expiry {
    _Atomic uint64_t live;       /* number of keys with a deadline */
    _Atomic int64_t near_sum_ms; /* sum of their deadlines, each less EXPIRY_EPOCH_MS; without those in far_sum */
    /* Sum of very late deadlines, in coarse units, so that a million of the latest deadlines do not overflow. */
    _Atomic int64_t far_sum;
    _Atomic int64_t next_ms; /* the first record's time; INT64_MAX: none */
    struct expiry_record *records;
    uint32_t count, capacity;
    /* NULL: not used yet, or this struct is such a heap itself; never freed before the struct. */
    _Atomic(struct expiry *) members;
    _Atomic(struct expiry *) jobs;                                               /* likewise */
    enum expiry_kind { EXPIRY_OF_KEYS, EXPIRY_OF_MEMBERS, EXPIRY_OF_JOBS } kind; /* const */
};

#define EXPIRY_EPOCH_MS INT64_C(1700000000000)     /* keeps the sums small */
double expiry_sum_ms(const struct expiry *expiry); /* sum of the deadlines, each less EXPIRY_EPOCH_MS; any thread */

struct expiry *expiry_create(void);
void expiry_destroy(struct expiry **expiry);
void expiry_clear(struct expiry *expiry);
/* Exchanges the records. The structs stay, since other threads read them. */
void expiry_exchange(struct expiry *expiry, struct expiry *other);
struct expiry *expiry_members(struct expiry *expiry); /* created if it does not exist */
struct expiry *expiry_jobs(struct expiry *expiry);    /* likewise */

/* A key's deadline has changed (expiry_members: the earliest of its members; expiry_jobs: the time of the next run).
 * EXPIRE_NEVER (-1) is no deadline, before or after. `keys` is the table with the key. */
void expiry_changed(struct expiry *expiry, uint64_t hash, int64_t before_ms, int64_t after_ms,
                    const struct table *keys);
/* Removes the first record if it is due before `now_ms`. False: it is not. */
bool expiry_take_due(struct expiry *expiry, int64_t now_ms, struct expiry_record *record);
/* Puts a record back for a key with the deadline `when_ms`. */
void expiry_put_back(struct expiry *expiry, uint64_t hash, int64_t when_ms);
/* Defragments the records. The struct itself stays, since other threads read it. */
struct mem_mover;
void expiry_relocate(struct expiry *expiry, struct mem_mover *mover);
void expiry_validate(const struct expiry *expiry, const struct table *keys); /* asserts the statements above */
