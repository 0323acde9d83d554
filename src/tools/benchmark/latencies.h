/* latencies.h: how long requests took, in nanoseconds, as counts in buckets (a histogram of high dynamic range).
 *
 * Each power of two has 512 buckets, so a value that is read is at most 0.2 % too large, from a nanosecond to hours:
 * what people compare by percents must not be rounded by percents. base/histogram.h is the same with 32 buckets, in a
 * sixteenth of the memory, for the server. One thread writes; others may read at any time, and see soon what is new. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdint.h>

enum { LATENCIES_STEP_BITS = 9, LATENCIES_MOST_BITS = 44 };

#define LATENCIES_MOST_NS ((UINT64_C(1) << LATENCIES_MOST_BITS) - 1)
#define LATENCIES_BUCKETS ((LATENCIES_MOST_BITS - LATENCIES_STEP_BITS + 1) << LATENCIES_STEP_BITS)

struct latencies {
    _Atomic uint64_t sum_ns, least_ns, most_ns;  /* atomic, relaxed; least_ns: one more than it is, 0: none yet */
    _Atomic uint64_t buckets[LATENCIES_BUCKETS]; /* likewise */
};

void latencies_add(struct latencies *latencies, uint64_t ns, uint64_t count); /* `count` requests took so long each */
void latencies_merge(struct latencies *into, const struct latencies *from);

uint64_t latencies_count(const struct latencies *latencies);
uint64_t latencies_least_ns(const struct latencies *latencies); /* 0: there is none */
uint64_t latencies_most_ns(const struct latencies *latencies);
double latencies_mean_ns(const struct latencies *latencies);                         /* 0: there is none */
double latencies_deviation_ns(const struct latencies *latencies);                    /* the standard deviation */
uint64_t latencies_percentile_ns(const struct latencies *latencies, double percent); /* 0 ... 100 */
uint64_t latencies_nth_ns(const struct latencies *latencies, uint64_t nth);          /* from 1, by length */
uint64_t latencies_upto(const struct latencies *latencies, uint64_t ns);             /* how many took at most so long */
