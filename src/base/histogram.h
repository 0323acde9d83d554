/* A histogram of unsigned numbers in fixed memory. Each power of two has 32 buckets. A reported value is the largest of
 * its bucket: at most 1/32 (3 %) too large, never too small. Numbers below 64 are exact. Numbers beyond HISTOGRAM_MOST
 * are not allowed. One thread writes. Other threads may read at any time and see each bucket's new value soon
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
    _Atomic uint64_t sum;                             /* atomic: relaxed; the writer's thread writes it */
    _Atomic uint64_t buckets[HISTOGRAM_BUCKET_COUNT]; /* atomic: likewise */
};

/* The bucket of a value. Each number below 64 has its own. For larger numbers, `shift` is such that value >> shift lies
 * in 32 ... 63, and the bucket is shift * 32 + (value >> shift): a row of 32 for each power of two, without gaps. The
 * value is <= HISTOGRAM_MOST. */
static ALWAYS_INLINE unsigned histogram_bucket(uint64_t value)
{
    const unsigned steps = 1U << HISTOGRAM_STEP_BITS;
    unsigned shift;

    shift = 63 - HISTOGRAM_STEP_BITS - (unsigned)__builtin_clzll(value | (2 * steps - 1));
    return (shift << HISTOGRAM_STEP_BITS) + (unsigned)(value >> shift);
}

/* Only the writer calls it, so a load and a store suffice and no locked instruction is needed. The value is <=
 * HISTOGRAM_MOST. */
static ALWAYS_INLINE void histogram_add(struct histogram *histogram, uint64_t value)
{
    _Atomic uint64_t *bucket = &histogram->buckets[histogram_bucket(value)];

    atomic_store_explicit(&histogram->sum, atomic_load_explicit(&histogram->sum, memory_order_relaxed) + value,
                          memory_order_relaxed);
    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
}

void histogram_reset(struct histogram *histogram); /* by the writer; the initial state is all zero */
void histogram_merge(struct histogram *into, const struct histogram *from); /* the caller is the writer of `into` */
/* `earlier` is an earlier state of `from`; the caller is the writer of `from`. */
void histogram_subtract(struct histogram *from, const struct histogram *earlier);

uint64_t histogram_count(const struct histogram *histogram);
uint64_t histogram_sum(const struct histogram *histogram);
/* The value that `percent` (0 ... 100) of all numbers do not exceed: the largest of its bucket. 0 if empty. */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);
/* The count of numbers <= value, up to the end of its bucket. */
uint64_t histogram_count_upto(const struct histogram *histogram, uint64_t value);
