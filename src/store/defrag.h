/* Active defragmentation: a walk over a share of the stripes that moves what they hold to where it leaves no holes in
 * the allocator's pages (base/mem_move.h). One step holds one stripe for some DEFRAG_STEP_ITEMS entries.
 *
 * What moves, under its stripe's lock: entries, blobs that nobody else refers to, the parts of values (by a function
 * of their type: relocate in store.h), groups and directories of the tables, records of deadlines. What stays, because
 * others look at it without that lock: the stripes, their databases, struct expiry, blobs that a reply or the journal
 * refers to, and what is registered by key. Prefetching without the lock takes no more than the address of a stripe
 * (server/run/dispatch.c); of a table's root it would take the address, too, and fetch a line that may be freed by
 * then, which does nothing: it follows no pointer.
 *
 * Pointers to entries and slots, also those of an access, are void after a step. A walk belongs to one thread. */
#pragma once

#include "base/mem_move.h"
#include "store/access.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    DEFRAG_STEP_ITEMS = 32,
    DEFRAG_SMALL_FIELDS = 32, /* values of up to so many elements are done with their entries */
    DEFRAG_VALUES_MOST = DEFRAG_STEP_ITEMS + TABLE_SLOTS
};

/* Counted by one thread, read by all (relaxed). */
struct defrag_counters {
    _Atomic uint64_t hits, misses;         /* blocks that moved, that did not */
    _Atomic uint64_t key_hits, key_misses; /* keys of which something moved, nothing */
};

struct defrag_walk {
    uint32_t stripe; /* where it stands: */
    unsigned db;
    bool in_table;        /* there are more keys behind the position */
    uint64_t position;    /* in the table */
    struct defrag_value { /* large values that it has met there: their keys' hashes, and how far it came */
        uint64_t hash, position;
    } values[DEFRAG_VALUES_MOST];
    uint32_t value_count;
    uint64_t most_fields; /* of a large value: elements looked at under one hold of the stripe */
    uint64_t moved, seen; /* blocks, since both were 0 */
    struct defrag_counters *counters;
};

/* A walk over the stripes first, first + distance, first + 2 * distance ...; the worker's counters. */
void defrag_walk_init(struct defrag_walk *walk, uint32_t first, struct defrag_counters *counters);

/* One step; no stripe is held, or all. Stripes that are busy are passed over. False: there was nothing left to do, the
 * walk stands at its beginning again; `moved` and `seen` go on counting unless they are set to 0. */
must_check bool defrag_step(struct access *access, struct defrag_walk *walk, uint32_t first, uint32_t distance);
