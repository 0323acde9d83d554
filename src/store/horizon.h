/* The horizon: what this node of an active group knows of the past. The frontiers F and W, the floor, the last flush of
 * each database. (merge/record.h says what they mean.)
 *
 * Any thread reads it. The node's owner raises the frontiers; whoever frees tombstones raises the floor, before they
 * are freed; flushes are noted by whoever runs them. Everything only rises: an old value that a reader still has is one
 * that was true, too. While active replication is off all is zero. */
#pragma once

#include "base/compiler.h"
#include "merge/record.h"

#include <stdatomic.h>
#include <stdint.h>

struct horizon {
    _Atomic uint64_t frontier;   /* F; atomic: release, so that who sees it sees what it covers; one writer */
    _Atomic int64_t wall;        /* W; likewise */
    _Atomic uint64_t floor;      /* atomic: likewise; any thread raises it */
    _Atomic int64_t freed;       /* atomic: relaxed; raised and read with the key's stripe held */
    _Atomic bool may_evict;      /* atomic: relaxed; the node says so: evictions stand behind what they saw */
    struct merge_place *flushes; /* const pointer; by database, then that of the libraries; changed with the gate owned,
                                  * read inside of the gate */
    bool *late_flushes;          /* likewise: that flush was late here, and others were not told yet */
    unsigned database_count;     /* const */
};

/* Libraries of functions are keys of a database behind all others. It has no entries: only the window and the flush
 * know it. A record there is always that of a missing key, and says which place the library's last operation has. */
static inline unsigned horizon_libraries_db(const struct horizon *horizon)
{
    return horizon->database_count;
}

void horizon_init(struct horizon *horizon, unsigned database_count);
void horizon_fini(struct horizon *horizon);

static inline uint64_t horizon_frontier(const struct horizon *horizon)
{
    return atomic_load_explicit(&horizon->frontier, memory_order_acquire);
}
static inline int64_t horizon_wall(const struct horizon *horizon)
{
    return atomic_load_explicit(&horizon->wall, memory_order_acquire);
}
static inline uint64_t horizon_floor(const struct horizon *horizon)
{
    return atomic_load_explicit(&horizon->floor, memory_order_acquire);
}
/* What an operation with a wall time below this meets may have been freed here, as it had expired. */
static inline int64_t horizon_freed(const struct horizon *horizon)
{
    return atomic_load_explicit(&horizon->freed, memory_order_relaxed);
}

/* What merge_record_* wants to know for keys of this database. Inside of the gate. */
struct merge_horizon horizon_of(const struct horizon *horizon, unsigned db);

/* The node, one thread at a time. What is lower changes nothing. */
void horizon_raise(struct horizon *horizon, uint64_t frontier, int64_t wall);
void horizon_allow_evictions(struct horizon *horizon, bool may); /* the node, likewise */
static inline bool horizon_may_evict(const struct horizon *horizon)
{
    return atomic_load_explicit(&horizon->may_evict, memory_order_relaxed);
}
/* Any thread: of missing keys nothing older is known from here on. Before the tombstones go. */
void horizon_raise_floor(struct horizon *horizon, uint64_t stamp);
/* Before memory of what has a deadline below this goes. */
void horizon_raise_freed(struct horizon *horizon, int64_t wall);
/* With the gate owned. What is older changes nothing. */
void horizon_note_flush(struct horizon *horizon, unsigned db, struct merge_place flush);
/* Inside of the gate: the last flush of this database was late, and others are to hear of it. */
bool horizon_has_late_flush(const struct horizon *horizon, unsigned db);
void horizon_note_late_flush(struct horizon *horizon, unsigned db); /* that is so; with the gate owned */
/* They have. With the gate owned, or the node, inside of the gate: then nobody else looks. */
void horizon_forget_late_flush(struct horizon *horizon, unsigned db);
/* With the gate owned, when the data become those of a file or of another node: the floor and the flushes are theirs,
 * also where these are older; none of these was late. `flushes`: database_count places, and that of the libraries. */
void horizon_replace_past(struct horizon *horizon, uint64_t floor, const struct merge_place *flushes);
