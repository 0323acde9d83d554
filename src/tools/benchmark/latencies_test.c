#include "tools/benchmark/latencies.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 20000 };

static int compare(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? -1 : one > other;
}

/* Against a sorted list: never too small, and at most 1/512 too large. */
static void percentiles_are_near(void **state)
{
    static const double percents[] = {0, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100};
    struct latencies *latencies = mem_alloc_zero(sizeof(*latencies));
    uint64_t *values = mem_alloc(COUNT * sizeof(*values));
    struct random dice;
    double sum = 0;

    (void)state;
    random_seed(&dice, 3);
    for (int i = 0; i < COUNT; i++) {
        values[i] = random_u64(&dice) >> (24 + random_below(&dice, 40));
        latencies_add(latencies, values[i], 1);
        sum += (double)values[i];
    }
    qsort(values, COUNT, sizeof(*values), compare);
    for (size_t i = 0; i < countof(percents); i++) {
        const size_t wanted = (size_t)(COUNT * percents[i] / 100);
        const uint64_t exact = values[wanted > 0 ? wanted - 1 : 0],
                       told = latencies_percentile_ns(latencies, percents[i]);

        assert_true(told >= exact && told <= exact + exact / 512);
    }
    for (int i = 0; i < COUNT; i += 501) {
        const uint64_t count = latencies_upto(latencies, values[i]);

        assert_true(count >= (uint64_t)i + 1);
        assert_true(count == COUNT || values[count] > values[i]);
    }
    assert_int_equal(latencies_count(latencies), COUNT);
    assert_int_equal(latencies_least_ns(latencies), values[0]);
    assert_int_equal(latencies_most_ns(latencies), values[COUNT - 1]);
    assert_true(latencies_mean_ns(latencies) > sum / COUNT * 0.9999 &&
                latencies_mean_ns(latencies) < sum / COUNT * 1.0001);
    mem_free(values);
    mem_free(latencies);
}

static void nothing_is_nothing(void **state)
{
    struct latencies *none = mem_alloc_zero(sizeof(*none)), *some = mem_alloc_zero(sizeof(*some));

    (void)state;
    assert_int_equal(latencies_percentile_ns(none, 50), 0);
    assert_int_equal(latencies_least_ns(none), 0);
    assert_true(latencies_mean_ns(none) <= 0);
    latencies_add(some, 5, 3);
    latencies_merge(some, none);
    latencies_merge(none, some);
    assert_int_equal(latencies_least_ns(none), 5);
    assert_int_equal(latencies_count(none), 3);
    assert_true(latencies_deviation_ns(none) <= 0);
    latencies_add(none, UINT64_MAX, 1);
    assert_int_equal(latencies_most_ns(none), LATENCIES_MOST_NS);
    mem_free(none);
    mem_free(some);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_near),
        cmocka_unit_test(nothing_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
