/* A histogram of unsigned numbers in fixed memory: 32 steps to each power of two, and a reported value is the last of
 * its step, so it is at most 1/32 (3 %) too large and never too small; numbers below 64 are exact. Numbers beyond
 * HISTOGRAM_MOST are not for it. One thread writes; others may read at any time and see each bucket some time soon
 * (relaxed). */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_STEP_BITS 5
#define HISTOGRAM_MOST_BITS 44 /* 2^44 ns: 5 hours */
#define HISTOGRAM_MOST ((UINT64_C(1) << HISTOGRAM_MOST_BITS) - 1)
#define HISTOGRAM_BUCKET_COUNT ((HISTOGRAM_MOST_BITS - HISTOGRAM_STEP_BITS + 1) << HISTOGRAM_STEP_BITS)

struct histogram {
    _Atomic uint64_t sum;                             /* atomic, relaxed; written by the owner */
    _Atomic uint64_t buckets[HISTOGRAM_BUCKET_COUNT]; /* likewise */
};

/* Bucket of a value: numbers below 64 have their own. Above, with `shift` such that value >> shift lies in 32 ... 63,
 * it is shift * 32 + (value >> shift): rows of 32 for each power of two, without a gap. Values are <= the most. */
static ALWAYS_INLINE unsigned histogram_bucket(uint64_t value)
{
    const unsigned steps = 1U << HISTOGRAM_STEP_BITS;
    unsigned shift;

    shift = 63 - HISTOGRAM_STEP_BITS - (unsigned)__builtin_clzll(value | (2 * steps - 1));
    return (shift << HISTOGRAM_STEP_BITS) + (unsigned)(value >> shift);
}

/* One writer: a load and a store do, no locked instruction. The value is <= HISTOGRAM_MOST. */
static ALWAYS_INLINE void histogram_add(struct histogram *histogram, uint64_t value)
{
    _Atomic uint64_t *bucket = &histogram->buckets[histogram_bucket(value)];

    atomic_store_explicit(&histogram->sum, atomic_load_explicit(&histogram->sum, memory_order_relaxed) + value,
                          memory_order_relaxed);
    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
}

void histogram_reset(struct histogram *histogram); /* by the writer; also the initial state (all zero) */
void histogram_merge(struct histogram *into, const struct histogram *from);       /* the caller writes `into` */
void histogram_subtract(struct histogram *from, const struct histogram *earlier); /* an earlier state; likewise */

uint64_t histogram_count(const struct histogram *histogram);
uint64_t histogram_sum(const struct histogram *histogram);
/* The value that `percent` (0 ... 100) of all do not exceed: the last one of its bucket. 0 if empty. */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);
/* How many are <= value (to the end of its bucket). */
uint64_t histogram_count_upto(const struct histogram *histogram, uint64_t value);
