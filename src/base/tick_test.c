#include "base/tick.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void spans_agree_with_the_clock(void **state)
{
    (void)state;
    tick_setup();
    for (unsigned round = 0; round < 20; round++) {
        uint64_t before = clock_monotonic_ns(), first = tick_now(), inside = clock_monotonic_ns();
        uint64_t inner_end, last, after, ns;

        do
            inner_end = clock_monotonic_ns();
        while (inner_end - inside < 2000000);
        last = tick_now();
        after = clock_monotonic_ns();
        ns = tick_to_ns(last - first);
        /* Between the two spans that the clock measured, except for one in 5,000. */
        assert_true(ns + ns / 5000 + 100 >= inner_end - inside);
        assert_true(ns <= after - before + (after - before) / 5000 + 100);
    }
}

static void conversions(void **state)
{
    (void)state;
    assert_true(tick_from_ns(UINT64_MAX) >= UINT64_MAX / 64);
    for (uint64_t ns = 1000; ns < UINT64_C(1) << 50; ns *= 7) {
        uint64_t again = tick_to_ns(tick_from_ns(ns));

        assert_true(again <= ns && again + ns / 1000 + 8 >= ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_agree_with_the_clock),
        cmocka_unit_test(conversions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
