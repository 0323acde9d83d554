/* When writers wait for a replica that lags, and when they stop waiting. */
#include "replication/backpressure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { LIMIT = 1000, TIMEOUT_US = 100 };

static struct backpressure pressure;

static int64_t look(uint64_t lag, uint64_t now_us)
{
    return backpressure_look(&pressure, LIMIT, lag, now_us, TIMEOUT_US);
}

static int forget(void **state)
{
    (void)state;
    pressure = (struct backpressure){0};
    return 0;
}

static void it_is_off_by_default(void **state)
{
    (void)state;
    assert_int_equal(backpressure_look(&pressure, 0, UINT64_MAX, 1, TIMEOUT_US), 0);
    assert_int_equal(backpressure_look(&pressure, 0, UINT64_MAX, 1000, TIMEOUT_US), 0);
    assert_false(pressure.is_excused);
}

static void writers_wait_no_longer_than_the_time_limit(void **state)
{
    (void)state;
    assert_int_equal(look(501, 10), LIMIT);
    assert_int_equal(look(5000, 110), LIMIT);
    assert_int_equal(look(5000, 111), 0);
    assert_int_equal(look(501, 112), 0); /* not yet below half */
    assert_int_equal(look(500, 113), LIMIT);
    assert_int_equal(look(501, 200), LIMIT); /* its time begins again */
    assert_int_equal(look(501, 300), LIMIT);
    assert_int_equal(look(501, 301), 0);
}

static void below_half_of_the_limit_no_time_passes(void **state)
{
    (void)state;
    for (uint64_t now_us = 1; now_us < 100000; now_us += 60)
        assert_int_equal(look(now_us % 120 == 1 ? 500 : 900, now_us), LIMIT);
}

static void an_option_that_is_switched_off_excuses_nobody(void **state)
{
    (void)state;
    assert_int_equal(look(900, 1), LIMIT);
    assert_int_equal(look(900, 200), 0);
    assert_int_equal(backpressure_look(&pressure, 0, 900, 201, TIMEOUT_US), 0);
    assert_int_equal(look(900, 202), LIMIT);
}

static struct pacing pacing;

static bool pace(uint64_t lag, uint64_t now_us)
{
    return pacing_look(&pacing, LIMIT, lag, now_us);
}

static void writers_are_slowed_down_to_half(void **state)
{
    uint64_t now_us = 1;
    unsigned held = 0, steps = 0;

    (void)state;
    pacing = (struct pacing){0};
    assert_false(pace(LIMIT, now_us)); /* not too far */
    for (; !pacing.is_excused; now_us += PACING_STEP_US, steps++)
        held += pace(LIMIT / 2 + 1 + LIMIT * (steps < 2), now_us);
    assert_int_equal(held, (steps - 1) / 2 + (steps - 1) % 2);
    assert_true(now_us > PACING_MOST_US && now_us <= PACING_MOST_US + 3 * PACING_STEP_US);
    assert_false(pace(100 * LIMIT, now_us)); /* excused */
    assert_false(pace(LIMIT / 2 + 1, now_us));
    assert_false(pace(LIMIT / 2, now_us)); /* caught up */
    assert_true(pace(LIMIT + 1, now_us));
    assert_false(pace(LIMIT + 1, now_us + PACING_STEP_US));
    assert_true(pace(LIMIT + 1, now_us + 2 * PACING_STEP_US));
    assert_false(pace(LIMIT / 2, now_us + 3 * PACING_STEP_US));
    assert_false(pacing.holds || pacing.since_us != 0);
    assert_false(pacing_look(&pacing, 0, UINT64_MAX, 1)); /* off */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_is_off_by_default, forget),
        cmocka_unit_test_setup(writers_wait_no_longer_than_the_time_limit, forget),
        cmocka_unit_test_setup(below_half_of_the_limit_no_time_passes, forget),
        cmocka_unit_test_setup(an_option_that_is_switched_off_excuses_nobody, forget),
        cmocka_unit_test(writers_are_slowed_down_to_half),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
