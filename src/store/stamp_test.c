#include "store/stamp.h"

#include "base/test_dies.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOW_MS INT64_C(1800000000000)
#define COUNTERS (UINT64_C(1) << STAMP_COUNTER_BITS)

static void stamps_of_one_millisecond_count(void **state)
{
    struct stamp_clock clock = {0};
    const uint64_t first = stamp_clock_take(&clock, NOW_MS, 1);

    (void)state;
    assert_int_equal(first, stamp_at(NOW_MS));
    assert_int_equal(stamp_clock_take(&clock, NOW_MS, 1), first + 1);
    assert_int_equal(stamp_clock_take(&clock, NOW_MS, 10), first + 2);
    assert_int_equal(stamp_clock_take(&clock, NOW_MS, 1), first + 12);
    assert_int_equal(stamp_clock_take(&clock, NOW_MS + 1, 1), first + COUNTERS);
}

/* More than a millisecond's counter can tell go into the next ones. */
static void the_counter_carries_over(void **state)
{
    struct stamp_clock clock = {0};
    const uint64_t first = stamp_clock_take(&clock, NOW_MS, 3 * COUNTERS);

    (void)state;
    assert_int_equal(stamp_ms(first), NOW_MS);
    assert_int_equal(stamp_ms(clock.last), NOW_MS + 2);
    assert_int_equal(stamp_clock_take(&clock, NOW_MS + 1, 1), stamp_at(NOW_MS + 3));
}

static void a_clock_that_jumps_back_does_not_take_stamps_back(void **state)
{
    struct stamp_clock clock = {0};
    const uint64_t first = stamp_clock_take(&clock, NOW_MS, 1);

    (void)state;
    assert_int_equal(stamp_clock_take(&clock, NOW_MS - 3600 * 1000, 1), first + 1);
    assert_int_equal(stamp_clock_take(&clock, 0, 1), first + 2);
    assert_int_equal(stamp_clock_take(&clock, INT64_MIN, 1), first + 3);
    assert_int_equal(stamp_clock_promise(&clock, 5), first + 3);
}

static void a_promise_is_kept(void **state)
{
    struct stamp_clock clock = {0};
    const uint64_t promised = stamp_clock_promise(&clock, NOW_MS);

    (void)state;
    assert_int_equal(promised, stamp_at(NOW_MS) - 1); /* what comes in this millisecond is above it */
    assert_int_equal(stamp_clock_take(&clock, NOW_MS, 1), promised + 1);
    assert_int_equal(stamp_clock_promise(&clock, NOW_MS), promised + 1);
    assert_true(stamp_clock_take(&clock, NOW_MS - 100, 1) > promised);
}

static int64_t some_wall_ms(struct random *random, int64_t wall_ms)
{
    switch (random_below(random, 40)) {
    case 0: /* a jump, in either direction */
        return wall_ms + (int64_t)random_below(random, 20000) - 10000;
    case 1:
        return NOW_MS;
    default:
        return wall_ms + (int64_t)random_below(random, 2);
    }
}

/* Whatever happens, stamps are above all that was given, heard or promised before, and not behind the time. */
static void stamps_ascend_whatever_happens(void **state)
{
    struct random random = test_random(__func__);
    struct stamp_clock clock = {0};
    uint64_t bound = 0;
    int64_t wall_ms = NOW_MS;

    (void)state;
    for (unsigned step = 0; step < 1000000; step++) {
        const uint64_t count = 1 + random_below(&random, random_below(&random, 100) == 0 ? 3 * COUNTERS : 4);
        uint64_t stamp;

        wall_ms = some_wall_ms(&random, wall_ms);
        switch (random_below(&random, 4)) {
        case 0:
            stamp = stamp_at(wall_ms + (int64_t)random_below(&random, 30) - 15) + random_below(&random, COUNTERS);
            stamp_clock_raise(&clock, stamp);
            bound = MAX(bound, stamp);
            break;
        case 1:
            stamp = stamp_clock_promise(&clock, wall_ms);
            assert_true(stamp >= bound && stamp + 1 >= stamp_at(wall_ms));
            bound = stamp;
            break;
        default:
            stamp = stamp_clock_take(&clock, wall_ms, count);
            assert_true(stamp > bound && stamp >= stamp_at(wall_ms));
            bound = stamp + count - 1;
        }
    }
}

static void hears_the_impossible(void)
{
    struct stamp_clock clock = {0};

    stamp_clock_raise(&clock, UINT64_MAX);
}

static void times_that_no_version_can_have_are_bounded(void **state)
{
    struct stamp_clock clock = {0};

    (void)state;
    assert_int_equal(stamp_ms(stamp_clock_take(&clock, INT64_MIN, 1)), STAMP_LEAST_MS);
    assert_int_equal(stamp_ms(stamp_clock_take(&clock, INT64_MAX, 1)), STAMP_MOST_MS);
    assert_true(stamp_is_possible(stamp_at(INT64_MIN)));
    assert_true(stamp_is_possible(stamp_at(INT64_MAX) + COUNTERS - 1));
    assert_false(stamp_is_possible(stamp_at(INT64_MIN) - 1));
    assert_false(stamp_is_possible(stamp_at(INT64_MAX) + COUNTERS));
    assert_false(stamp_is_possible(0));
    assert_false(stamp_is_possible(UINT64_MAX));
    stamp_clock_raise(&clock, stamp_at(INT64_MAX) + COUNTERS - 1); /* it can be counted on from there for long */
    (void)version_make(stamp_clock_take(&clock, INT64_MAX, 1000000000000), true, 255);
    assert_true(dies(hears_the_impossible));
}

static void versions_keep_all_of_a_stamp(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned step = 0; step < 200000; step++) {
        const int64_t ms = STAMP_LEAST_MS + (int64_t)random_below(&random, (uint64_t)(STAMP_MOST_MS - STAMP_LEAST_MS));
        const uint64_t stamp = stamp_at(ms) + random_below(&random, COUNTERS);
        const unsigned origin = (unsigned)random_below(&random, VERSION_ORIGINS);
        const bool overwrote = random_below(&random, 2) != 0;
        const uint64_t version = version_make(stamp, overwrote, origin);

        assert_int_not_equal(version, 0);
        assert_int_equal(version_stamp(version), stamp);
        assert_int_equal(version_overwrote(version), overwrote);
        assert_int_equal(version_origin(version), origin);
        assert_true(version < version_make(stamp + 1, false, 0)); /* they have the order of their stamps */
    }
    assert_int_not_equal(version_make(stamp_at(INT64_MIN), false, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stamps_of_one_millisecond_count),
        cmocka_unit_test(the_counter_carries_over),
        cmocka_unit_test(a_clock_that_jumps_back_does_not_take_stamps_back),
        cmocka_unit_test(a_promise_is_kept),
        cmocka_unit_test(stamps_ascend_whatever_happens),
        cmocka_unit_test(times_that_no_version_can_have_are_bounded),
        cmocka_unit_test(versions_keep_all_of_a_stamp),
    };

    return cmocka_run_group_tests_name("stamp", tests, NULL, NULL);
}
