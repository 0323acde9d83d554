/* Active defragmentation: a walk over a share of the stripes that moves their memory, so that the allocator's pages
 * have fewer holes (base/mem_move.h). One step holds one stripe for about DEFRAG_STEP_ITEMS entries.
 *
 * With the stripe's lock held, these are moved: entries, blobs with one reference, the parts of values (each type has a
 * function: relocate in data/value.h), groups and directories of the tables, records of deadlines. These stay, because
 * others use them without that lock: the stripes, their databases, struct expiry, blobs that a reply or the journal
 * references, and the registries of keys. Prefetching without the lock uses only the address of a stripe
 * (server/run/dispatch.c). If it used the address of a table's root, too, it could fetch a line that was freed
 * meanwhile; that would do no harm, as it follows no pointer.
 *
 * Pointers to entries and slots, also those of an access, are invalid after a step. A walk belongs to one thread. */
#pragma once

#include "base/mem_move.h"
#include "store/access.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    DEFRAG_STEP_ITEMS = 32,
    DEFRAG_SMALL_FIELDS = 32, /* values of up to this many elements are moved together with their entries */
    DEFRAG_VALUES_MOST = DEFRAG_STEP_ITEMS + TABLE_SLOTS
};

/* One thread counts; any thread reads (relaxed). */
struct defrag_counters {
    _Atomic uint64_t hits, misses;         /* blocks that were moved, and that were not */
    _Atomic uint64_t key_hits, key_misses; /* keys with a moved block, and without one */
};

struct defrag_walk {
    uint32_t stripe; /* the position: */
    unsigned db;
    bool in_table;        /* there are more keys behind the position */
    uint64_t position;    /* in the table */
    struct defrag_value { /* large values found there: the hash of the key, and the position in the value */
        uint64_t hash, position;
    } values[DEFRAG_VALUES_MOST];
    uint32_t value_count;
    uint64_t most_fields; /* elements of a large value per hold of the stripe */
    uint64_t moved, seen; /* blocks counted since both were 0 */
    struct defrag_counters *counters;
};

/* Walks over the stripes first, first + distance, first + 2 * distance ...; with the worker's counters. */
void defrag_walk_init(struct defrag_walk *walk, uint32_t first, struct defrag_counters *counters);

/* Runs one step; no stripe is held, or all. Skips busy stripes. False: nothing is left to do, and the walk is at its
 * beginning again. `moved` and `seen` continue counting unless the caller sets them to 0. */
must_check bool defrag_step(struct access *access, struct defrag_walk *walk, uint32_t first, uint32_t distance);
