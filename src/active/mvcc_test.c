#include "active/mvcc.h"

#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint64_t ms = UINT64_C(1795000000000);

static uint64_t mvcc_at(uint64_t at_ms, uint64_t counter)
{
    return (at_ms << MVCC_COUNTER_BITS) + counter;
}

static uint64_t stamp_of(uint64_t at_ms, uint64_t counter)
{
    return (at_ms << STAMP_COUNTER_BITS) + counter;
}

static void stamps_of_ours_come_back_and_ascend(void **state)
{
    struct random random = test_random("mvcc");
    uint64_t stamp = stamp_of(ms, 0), last = 0;

    (void)state;
    assert_int_equal(mvcc_wall_ms(mvcc_of_stamp(stamp)), ms);
    for (unsigned i = 0; i < 10000; i++) {
        assert_true(mvcc_of_stamp(stamp) > last);
        last = mvcc_of_stamp(stamp);
        assert_int_equal(mvcc_to_stamp(last), stamp);
        stamp += 1 + random_below(&random, 1 << 20);
    }
}

static void small_counters_stay(void **state)
{
    struct mvcc_clock clock = {0};
    uint64_t stamp;

    (void)state;
    assert_true(mvcc_take(&clock, mvcc_at(ms, 0), &stamp));
    assert_int_equal(stamp, stamp_of(ms, 0));
    assert_true(mvcc_take(&clock, mvcc_at(ms, 16383), &stamp));
    assert_int_equal(stamp, stamp_of(ms, 16383));
    assert_true(mvcc_take(&clock, mvcc_at(ms + 1, 5), &stamp));
    assert_int_equal(stamp, stamp_of(ms + 1, 5));
}

static void large_counters_are_carried(void **state)
{
    struct mvcc_clock clock = {0};
    uint64_t stamp;

    (void)state;
    assert_true(mvcc_take(&clock, mvcc_at(ms, 16384), &stamp));
    assert_int_equal(stamp, stamp_of(ms + 1, 0));
    assert_true(mvcc_take(&clock, mvcc_at(ms, (1 << 20) - 1), &stamp));
    assert_int_equal(stamp, stamp_of(ms + 63, 16383));
    assert_true(mvcc_take(&clock, mvcc_at(ms + 1, 0), &stamp)); /* behind what was carried */
    assert_int_equal(stamp, stamp_of(ms + 64, 0));
    assert_true(mvcc_take(&clock, mvcc_at(ms + 65, 0), &stamp)); /* the milliseconds have caught up */
    assert_int_equal(stamp, stamp_of(ms + 65, 0));
}

static void duplicates_change_nothing(void **state)
{
    struct mvcc_clock clock = {0};
    uint64_t stamp = 7;

    (void)state;
    assert_true(mvcc_take(&clock, mvcc_at(ms, 9), &stamp));
    stamp = 7;
    assert_false(mvcc_take(&clock, mvcc_at(ms, 9), &stamp));
    assert_false(mvcc_take(&clock, mvcc_at(ms, 8), &stamp));
    assert_int_equal(stamp, 7);
    mvcc_learn(&clock, mvcc_at(ms, 20), stamp_of(ms + 3, 0)); /* as another node has carried it */
    assert_false(mvcc_take(&clock, mvcc_at(ms, 20), &stamp));
    assert_true(mvcc_take(&clock, mvcc_at(ms, 21), &stamp));
    assert_int_equal(stamp, stamp_of(ms + 3, 1));
}

static void stamps_ascend_whatever_the_clock_does(void **state)
{
    struct random random = test_random("mvcc ascends");
    struct mvcc_clock clock = {0};
    uint64_t mvcc = mvcc_at(ms, 0), stamp, last = 0;

    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        mvcc += 1 + random_below(&random, UINT64_C(1) << random_below(&random, 22));
        assert_true(mvcc_take(&clock, mvcc, &stamp));
        assert_true(stamp > last);
        last = stamp;
    }
    mvcc = mvcc_at((uint64_t)STAMP_MOST_MS - UINT64_C(86400) * 1000 - 1, (1 << 20) - 1);
    assert_true(mvcc_take(&clock, mvcc, &stamp));
    assert_true(stamp > last);
    assert_true(stamp_is_possible(stamp));
    assert_false(mvcc_is_possible(mvcc + 1));
    assert_true(mvcc_is_possible(mvcc_at(STAMP_LEAST_MS, 0)));
    assert_false(mvcc_is_possible(mvcc_at(STAMP_LEAST_MS, 0) - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stamps_of_ours_come_back_and_ascend),
        cmocka_unit_test(small_counters_stay),
        cmocka_unit_test(large_counters_are_carried),
        cmocka_unit_test(duplicates_change_nothing),
        cmocka_unit_test(stamps_ascend_whatever_the_clock_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
