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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_is_off_by_default, forget),
        cmocka_unit_test_setup(writers_wait_no_longer_than_the_time_limit, forget),
        cmocka_unit_test_setup(below_half_of_the_limit_no_time_passes, forget),
        cmocka_unit_test_setup(an_option_that_is_switched_off_excuses_nobody, forget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
