/* Stamps and places: the one order of all operations.
 *
 * A stamp is a 64-bit hybrid clock that ascends at its origin; an origin is one start of one process. A place is a
 * stamp with its origin as tie-break. No two operations have the same place, except evictions that saw the same. An
 * eviction stands behind everything that has the stamp it saw, whatever the origin. */
#pragma once

#include "merge/broken.h"

#include <stdbool.h>
#include <stdint.h>

/* Numbers of origins are below these. */
#define MERGE_ORIGIN_FLOOR (UINT64_MAX - 1)
#define MERGE_ORIGIN_EVICTION UINT64_MAX

/* Ids with this bit are not of nodes, which promise what they send: of servers of other kinds, and of what was brought
 * in from them. Nobody waits for these: the frontiers do not count them, but stay behind the clock while they speak. */
#define MERGE_ORIGIN_FOREIGN (UINT64_C(1) << 63)

static inline bool merge_origin_is_foreign(uint64_t origin)
{
    return (origin & MERGE_ORIGIN_FOREIGN) != 0 && origin < MERGE_ORIGIN_FLOOR;
}

enum { MERGE_COUNTER_BITS = 14 }; /* of a stamp, below its milliseconds; the counter carries over into them */

struct merge_place {
    uint64_t stamp; /* 0: before everything */
    uint64_t origin;
};

static inline int merge_place_compare(struct merge_place a, struct merge_place b)
{
    if (a.stamp != b.stamp)
        return a.stamp < b.stamp ? -1 : 1;
    if (merge_broken(MERGE_BREAK_TIE_BY_STAMP) && a.origin < MERGE_ORIGIN_FLOOR && b.origin < MERGE_ORIGIN_FLOOR)
        return a.origin == b.origin ? 0 : 1;
    return (a.origin > b.origin) - (a.origin < b.origin);
}

static inline bool merge_place_before(struct merge_place a, struct merge_place b)
{
    return merge_place_compare(a, b) < 0;
}

/* The place of an eviction of a key whose last operation has the stamp `seen`. */
static inline struct merge_place merge_place_behind(uint64_t seen)
{
    return (struct merge_place){seen, MERGE_ORIGIN_EVICTION};
}

static inline struct merge_place merge_place_floor(uint64_t floor)
{
    return (struct merge_place){floor, MERGE_ORIGIN_FLOOR};
}
