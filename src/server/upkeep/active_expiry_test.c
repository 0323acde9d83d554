#include "server/upkeep/active_expiry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* spent : rest is 25 : 75 by effort 1, 43 : 57 by effort 10. */
static void effort_shares_the_time(void **state)
{
    (void)state;
    assert_int_equal(active_expiry_rest_us(1000, 1), 3000);
    assert_int_equal(active_expiry_rest_us(2700, 2), 7300);
    assert_int_equal(active_expiry_rest_us(4300, 10), 5700);
    assert_int_equal(active_expiry_rest_us(0, 1), 0);
    for (int64_t effort = 2; effort <= 10; effort++)
        assert_true(active_expiry_rest_us(1000, effort) < active_expiry_rest_us(1000, effort - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effort_shares_the_time),
    };

    return cmocka_run_group_tests_name("active_expiry", tests, NULL, NULL);
}
