#include "base/histogram.h"

#include "base/assert.h"

#include <math.h>

#define STEP_COUNT (1U << HISTOGRAM_STEP_BITS)
#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

static uint64_t bucket_last(unsigned index)
{
    unsigned shift;

    if (index < 2 * STEP_COUNT)
        return index;
    shift = (index >> HISTOGRAM_STEP_BITS) - 1;
    return ((uint64_t)(index - (shift << HISTOGRAM_STEP_BITS) + 1) << shift) - 1;
}

void histogram_reset(struct histogram *histogram)
{
    SET(histogram->sum, 0);
    for (unsigned i = 0; i < HISTOGRAM_BUCKET_COUNT; i++)
        SET(histogram->buckets[i], 0);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    SET(into->sum, GET(into->sum) + GET(from->sum));
    for (unsigned i = 0; i < HISTOGRAM_BUCKET_COUNT; i++)
        SET(into->buckets[i], GET(into->buckets[i]) + GET(from->buckets[i]));
}

/* Sums that were read while others counted may be a little behind: never below zero. */
static uint64_t minus(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

void histogram_subtract(struct histogram *from, const struct histogram *earlier)
{
    SET(from->sum, minus(GET(from->sum), GET(earlier->sum)));
    for (unsigned i = 0; i < HISTOGRAM_BUCKET_COUNT; i++)
        SET(from->buckets[i], minus(GET(from->buckets[i]), GET(earlier->buckets[i])));
}

uint64_t histogram_count(const struct histogram *histogram)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKET_COUNT; i++)
        total += GET(histogram->buckets[i]);
    return total;
}

uint64_t histogram_sum(const struct histogram *histogram)
{
    return GET(histogram->sum);
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
    uint64_t total = histogram_count(histogram);
    uint64_t seen = 0;
    uint64_t rank;

    assert(percent >= 0.0 && percent <= 100.0);
    rank = (uint64_t)ceil((double)total * percent / 100.0);
    rank = MIN(MAX(rank, 1), total);
    for (unsigned i = 0; i < HISTOGRAM_BUCKET_COUNT; i++) {
        seen += GET(histogram->buckets[i]);
        if (seen >= rank && seen != 0)
            return bucket_last(i);
    }
    return 0;
}

uint64_t histogram_count_upto(const struct histogram *histogram, uint64_t value)
{
    unsigned last = histogram_bucket(MIN(value, HISTOGRAM_MOST));
    uint64_t seen = 0;

    for (unsigned i = 0; i <= last; i++)
        seen += GET(histogram->buckets[i]);
    return seen;
}
