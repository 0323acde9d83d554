/* Bucket of a value: numbers below 128 have their own. Above, with `shift` chosen so that value >> shift lies in
 * 64 ... 127, the bucket is shift * 64 + (value >> shift): rows of 64 for each power of two, without a gap. */
#include "base/histogram.h"

#include "base/assert.h"

#include <math.h>

#define STEP_COUNT (1U << HISTOGRAM_STEP_BITS)

static unsigned bucket_index(uint64_t value)
{
    unsigned shift;

    if (value > HISTOGRAM_MOST)
        value = HISTOGRAM_MOST;
    if (value < 2 * STEP_COUNT)
        return (unsigned)value;
    shift = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
    return (shift << HISTOGRAM_STEP_BITS) + (unsigned)(value >> shift);
}

static uint64_t bucket_most(unsigned index)
{
    unsigned shift;

    if (index < 2 * STEP_COUNT)
        return index;
    shift = (index >> HISTOGRAM_STEP_BITS) - 1;
    return ((uint64_t)(index - (shift << HISTOGRAM_STEP_BITS) + 1) << shift) - 1;
}

/* One writer: a load and a store do, no locked instruction. */
#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

void histogram_reset(struct histogram *histogram)
{
    SET(histogram->count, 0);
    SET(histogram->sum, 0);
    SET(histogram->most, 0);
    for (unsigned i = 0; i < HISTOGRAM_BUCKET_COUNT; i++)
        SET(histogram->buckets[i], 0);
}

static void add_to_bucket(_Atomic uint32_t *bucket, uint32_t more)
{
    uint32_t now = GET(*bucket);

    SET(*bucket, more > UINT32_MAX - now ? UINT32_MAX : now + more);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    SET(histogram->count, GET(histogram->count) + 1);
    SET(histogram->sum, GET(histogram->sum) + value);
    if (value > GET(histogram->most))
        SET(histogram->most, value);
    add_to_bucket(&histogram->buckets[bucket_index(value)], 1);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    SET(into->count, GET(into->count) + GET(from->count));
    SET(into->sum, GET(into->sum) + GET(from->sum));
    if (GET(from->most) > GET(into->most))
        SET(into->most, GET(from->most));
    for (unsigned i = 0; i < HISTOGRAM_BUCKET_COUNT; i++) {
        uint32_t more = GET(from->buckets[i]);

        if (more != 0)
            add_to_bucket(&into->buckets[i], more);
    }
}

uint64_t histogram_count(const struct histogram *histogram)
{
    return GET(histogram->count);
}

uint64_t histogram_most(const struct histogram *histogram)
{
    return GET(histogram->most);
}

double histogram_mean(const struct histogram *histogram)
{
    uint64_t count = GET(histogram->count);

    return count == 0 ? 0.0 : (double)GET(histogram->sum) / (double)count;
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
    uint64_t total = 0;
    uint64_t seen = 0;
    uint64_t rank;

    assert(percent >= 0.0 && percent <= 100.0);
    for (unsigned i = 0; i < HISTOGRAM_BUCKET_COUNT; i++)
        total += GET(histogram->buckets[i]);
    rank = (uint64_t)ceil((double)total * (percent / 100.0));
    rank = MIN(MAX(rank, 1), total);
    for (unsigned i = 0; i < HISTOGRAM_BUCKET_COUNT; i++) {
        seen += GET(histogram->buckets[i]);
        if (seen >= rank && seen != 0)
            return MIN(bucket_most(i), histogram_most(histogram));
    }
    return 0;
}

uint64_t histogram_count_upto(const struct histogram *histogram, uint64_t value)
{
    unsigned last = bucket_index(value);
    uint64_t seen = 0;

    for (unsigned i = 0; i <= last; i++)
        seen += GET(histogram->buckets[i]);
    return seen;
}
