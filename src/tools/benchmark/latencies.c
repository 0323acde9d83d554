#include "tools/benchmark/latencies.h"

#include "base/assert.h"

#include <math.h>

#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

/* As base/histogram.h has it: a row for each power of two, without gaps; numbers below two rows have their own. */
static unsigned bucket_of(uint64_t ns)
{
    const uint64_t steps = UINT64_C(1) << LATENCIES_STEP_BITS;
    const unsigned shift = 63 - LATENCIES_STEP_BITS - (unsigned)__builtin_clzll(ns | (2 * steps - 1));

    return (shift << LATENCIES_STEP_BITS) + (unsigned)(ns >> shift);
}

/* The largest number of a bucket. */
static uint64_t end_of(unsigned bucket)
{
    const unsigned steps = 1U << LATENCIES_STEP_BITS;
    const unsigned shift = bucket < 2 * steps ? 0 : (bucket >> LATENCIES_STEP_BITS) - 1;

    return (((uint64_t)bucket - ((uint64_t)shift << LATENCIES_STEP_BITS) + 1) << shift) - 1;
}

void latencies_add(struct latencies *latencies, uint64_t ns, uint64_t count)
{
    const uint64_t value = MIN(ns, LATENCIES_MOST_NS);
    _Atomic uint64_t *bucket = &latencies->buckets[bucket_of(value)];

    SET(*bucket, GET(*bucket) + count);
    SET(latencies->sum_ns, GET(latencies->sum_ns) + value * count);
    if (value > GET(latencies->most_ns))
        SET(latencies->most_ns, value);
    if (GET(latencies->least_ns) == 0 || value + 1 < GET(latencies->least_ns))
        SET(latencies->least_ns, value + 1);
}

void latencies_merge(struct latencies *into, const struct latencies *from)
{
    for (unsigned i = 0; i < LATENCIES_BUCKETS; i++) {
        const uint64_t count = GET(from->buckets[i]);

        if (count != 0)
            SET(into->buckets[i], GET(into->buckets[i]) + count);
    }
    SET(into->sum_ns, GET(into->sum_ns) + GET(from->sum_ns));
    SET(into->most_ns, MAX(GET(into->most_ns), GET(from->most_ns)));
    if (GET(from->least_ns) != 0 && (GET(into->least_ns) == 0 || GET(from->least_ns) < GET(into->least_ns)))
        SET(into->least_ns, GET(from->least_ns));
}

uint64_t latencies_count(const struct latencies *latencies)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < LATENCIES_BUCKETS; i++)
        count += GET(latencies->buckets[i]);
    return count;
}

uint64_t latencies_least_ns(const struct latencies *latencies)
{
    const uint64_t least_ns = GET(latencies->least_ns);

    return least_ns != 0 ? least_ns - 1 : 0;
}

uint64_t latencies_most_ns(const struct latencies *latencies)
{
    return GET(latencies->most_ns);
}

double latencies_mean_ns(const struct latencies *latencies)
{
    const uint64_t count = latencies_count(latencies);

    return count != 0 ? (double)GET(latencies->sum_ns) / (double)count : 0;
}

double latencies_deviation_ns(const struct latencies *latencies)
{
    const double mean = latencies_mean_ns(latencies);
    double squares = 0, count = 0;

    for (unsigned i = 0; i < LATENCIES_BUCKETS; i++) {
        const double these = (double)GET(latencies->buckets[i]), apart = (double)end_of(i) - mean;

        squares += these * apart * apart;
        count += these;
    }
    return count > 0 ? sqrt(squares / count) : 0;
}

uint64_t latencies_percentile_ns(const struct latencies *latencies, double percent)
{
    assert(percent >= 0 && percent <= 100);
    return latencies_nth_ns(latencies, (uint64_t)ceil((double)latencies_count(latencies) * percent / 100));
}

uint64_t latencies_nth_ns(const struct latencies *latencies, uint64_t nth)
{
    const uint64_t most_ns = latencies_most_ns(latencies), wanted = MAX(nth, (uint64_t)1);
    uint64_t seen = 0;

    for (unsigned i = 0; i < LATENCIES_BUCKETS; i++) {
        seen += GET(latencies->buckets[i]);
        if (seen >= wanted)
            return MIN(end_of(i), most_ns);
    }
    return most_ns;
}

uint64_t latencies_upto(const struct latencies *latencies, uint64_t ns)
{
    const unsigned last = bucket_of(MIN(ns, LATENCIES_MOST_NS));
    uint64_t seen = 0;

    for (unsigned i = 0; i <= last; i++)
        seen += GET(latencies->buckets[i]);
    return seen;
}
