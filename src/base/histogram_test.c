#include "base/histogram.h"
#include "base/compiler.h"
#include "base/test_seed.h"

#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct histogram one, two;

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void empty_is_zero(void **state)
{
    (void)state;
    histogram_reset(&one);
    assert_int_equal(histogram_percentile(&one, 99.0), 0);
    assert_int_equal(histogram_count(&one), 0);
    assert_int_equal(histogram_sum(&one), 0);
    assert_int_equal(histogram_count_upto(&one, UINT64_MAX), 0);
}

static void percentiles_agree_with_sorting(void **state)
{
    struct random random = test_random("percentiles_agree_with_sorting");
    static uint64_t values[5000];
    static const double percents[] = {0, 1, 25, 50, 90, 99, 99.9, 100};

    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        size_t count = 1 + random_below(&random, countof(values));
        uint64_t sum = 0;

        histogram_reset(&one);
        histogram_reset(&two);
        for (size_t i = 0; i < count; i++) {
            values[i] = random_u64(&random) >> (20 + random_below(&random, 44));
            sum += values[i];
            histogram_add(i % 3 == 0 ? &two : &one, values[i]);
        }
        histogram_merge(&one, &two);
        qsort(values, count, sizeof(*values), by_value);
        assert_int_equal(histogram_count(&one), count);
        assert_true(histogram_sum(&one) == sum);
        for (size_t i = 0; i < countof(percents); i++) {
            size_t rank = (size_t)ceil((double)count * percents[i] / 100);
            uint64_t exact = values[rank == 0 ? 0 : rank - 1];
            uint64_t reported = histogram_percentile(&one, percents[i]);

            assert_true(reported >= exact);
            assert_true(reported <= exact + exact / 32);
        }
        for (unsigned bits = 0; bits < HISTOGRAM_MOST_BITS; bits++) {
            uint64_t limit = (UINT64_C(1) << bits) - 1; /* the end of a bucket: no error */
            size_t below = 0;

            while (below < count && values[below] <= limit)
                below++;
            assert_int_equal(histogram_count_upto(&one, limit), below);
        }
    }
}

static void to_the_end(void **state)
{
    (void)state;
    histogram_reset(&one);
    histogram_add(&one, HISTOGRAM_MOST);
    assert_true(histogram_percentile(&one, 100) >= HISTOGRAM_MOST - HISTOGRAM_MOST / 32);
    assert_int_equal(histogram_count(&one), 1);
    assert_int_equal(histogram_count_upto(&one, UINT64_MAX), 1);
}

static void what_came_since(void **state)
{
    (void)state;
    histogram_reset(&one);
    histogram_add(&one, 3);
    histogram_add(&one, 1000);
    histogram_reset(&two);
    histogram_merge(&two, &one); /* an earlier state */
    histogram_add(&one, 3);
    histogram_subtract(&one, &two);
    assert_int_equal(histogram_count(&one), 1);
    assert_int_equal(histogram_sum(&one), 3);
    assert_int_equal(histogram_percentile(&one, 100), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_is_zero),
        cmocka_unit_test(percentiles_agree_with_sorting),
        cmocka_unit_test(to_the_end),
        cmocka_unit_test(what_came_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
