/* Stamps: a hybrid clock, and the form in which an entry keeps a stamp.
 *
 *     stamp    milliseconds since 1970 | counter 14
 *     version  milliseconds since 2020 41 | counter 14 | the last operation overwrote 1 | local number of the origin 8
 *
 * The counter carries over into the milliseconds. No stamp is given twice, nor one below another that was given, heard
 * or promised, wherever the machine's clock jumps. Everything here is pure: times come as arguments, and the owner of a
 * clock guards it. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"
#include "merge/place.h"

#include <stdbool.h>
#include <stdint.h>

enum { STAMP_COUNTER_BITS = MERGE_COUNTER_BITS, VERSION_ORIGIN_BITS = 8, VERSION_ORIGINS = 1 << VERSION_ORIGIN_BITS };
enum { VERSION_OWN_ORIGIN = 0 }; /* the local number of this process start */

/* Times of stamps: from 2020 on, for which a version has 41 bits. The last year is for counting on from a stamp that
 * says the latest time. */
#define STAMP_EPOCH_MS INT64_C(1577836800000)
#define STAMP_LEAST_MS (STAMP_EPOCH_MS + 1)
#define STAMP_MOST_MS (STAMP_EPOCH_MS + (INT64_C(1) << 41) - INT64_C(366) * 86400 * 1000)

static inline int64_t stamp_ms(uint64_t stamp)
{
    return (int64_t)(stamp >> STAMP_COUNTER_BITS);
}

/* The first stamp of that millisecond, or of the nearest that stamps can have. */
static inline uint64_t stamp_at(int64_t wall_ms)
{
    return (uint64_t)MIN(MAX(wall_ms, STAMP_LEAST_MS), STAMP_MOST_MS) << STAMP_COUNTER_BITS;
}

/* Whoever hears stamps of others refuses those that are not possible. */
static inline bool stamp_is_possible(uint64_t stamp)
{
    return stamp_ms(stamp) >= STAMP_LEAST_MS && stamp_ms(stamp) <= STAMP_MOST_MS;
}

/* --- the clock --- */

/* Zeroed memory is a clock that has given nothing. */
struct stamp_clock {
    uint64_t last; /* the highest stamp that was given, heard or promised; 0: none */
};

/* Returns the first of `count` successive stamps. */
static inline uint64_t stamp_clock_take(struct stamp_clock *clock, int64_t wall_ms, uint64_t count)
{
    const uint64_t first = MAX(clock->last + 1, stamp_at(wall_ms));

    debug_assert(count != 0);
    clock->last = first + (count - 1);
    return first;
}

/* A stamp that is possible was heard: later ones are above it. */
static inline void stamp_clock_raise(struct stamp_clock *clock, uint64_t stamp)
{
    assert(stamp_is_possible(stamp));
    clock->last = MAX(clock->last, stamp);
}

/* Promises that no stamp at or below the returned one will be given. It is as high as the time allows. */
static inline uint64_t stamp_clock_promise(struct stamp_clock *clock, int64_t wall_ms)
{
    clock->last = MAX(clock->last, stamp_at(wall_ms) - 1);
    return clock->last;
}

/* --- versions --- */

/* Never 0. origin: the local number of the origin, below VERSION_ORIGINS. */
static inline uint64_t version_make(uint64_t stamp, bool overwrote, unsigned origin)
{
    const uint64_t since = stamp - ((uint64_t)STAMP_EPOCH_MS << STAMP_COUNTER_BITS);

    assert(stamp_ms(stamp) >= STAMP_LEAST_MS);
    assert(since >> (41 + STAMP_COUNTER_BITS) == 0);
    assert(origin < VERSION_ORIGINS);
    return since << (1 + VERSION_ORIGIN_BITS) | (uint64_t)overwrote << VERSION_ORIGIN_BITS | origin;
}

/* For versions that are not 0. */
static inline uint64_t version_stamp(uint64_t version)
{
    return (version >> (1 + VERSION_ORIGIN_BITS)) + ((uint64_t)STAMP_EPOCH_MS << STAMP_COUNTER_BITS);
}

static inline bool version_overwrote(uint64_t version)
{
    return (version >> VERSION_ORIGIN_BITS & 1) != 0;
}

static inline unsigned version_origin(uint64_t version)
{
    return (unsigned)version & (VERSION_ORIGINS - 1);
}
