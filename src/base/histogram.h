/* A histogram of unsigned numbers in fixed memory: 64 steps to each power of two, so a reported value is at most 1/64
 * (1.6 %) above the true one; numbers below 128 are exact. Numbers beyond HISTOGRAM_MOST count as it.
 * One thread writes; others may read at any time and see each bucket some time soon (relaxed). */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_STEP_BITS 6
#define HISTOGRAM_MOST_BITS 40 /* 2^40: 12 days in microseconds */
#define HISTOGRAM_MOST ((UINT64_C(1) << HISTOGRAM_MOST_BITS) - 1)
#define HISTOGRAM_BUCKET_COUNT ((HISTOGRAM_MOST_BITS - HISTOGRAM_STEP_BITS + 1) << HISTOGRAM_STEP_BITS)

struct histogram {
    _Atomic uint64_t count; /* all of them atomic, relaxed; written by the owner */
    _Atomic uint64_t sum;
    _Atomic uint64_t most;
    _Atomic uint32_t buckets[HISTOGRAM_BUCKET_COUNT]; /* a full one stays full */
};

void histogram_reset(struct histogram *histogram); /* by the writer; also the initial state (all zero) */
void histogram_add(struct histogram *histogram, uint64_t value);
void histogram_merge(struct histogram *into, const struct histogram *from); /* the caller writes `into` */

uint64_t histogram_count(const struct histogram *histogram);
uint64_t histogram_most(const struct histogram *histogram); /* exact */
double histogram_mean(const struct histogram *histogram);
/* The value that `percent` (0 ... 100) of all do not exceed: highest value equivalent to its bucket. 0 if empty. */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);
/* How many are <= value (to the end of its bucket). */
uint64_t histogram_count_upto(const struct histogram *histogram, uint64_t value);
