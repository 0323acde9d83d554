#include "base/clock.h"

#include <sys/time.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void clocks_agree_with_the_system(void **state)
{
    uint64_t before = clock_monotonic_ns();
    struct timeval now;

    (void)state;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    assert_true(clock_monotonic_ns() - before >= 2000000);
    assert_true(clock_monotonic_us() >= before / 1000);
    assert_true(clock_monotonic_ms() >= before / 1000000);
    gettimeofday(&now, NULL);
    assert_true(clock_wall_ms() - now.tv_sec * 1000 < 60000);
    assert_true(clock_wall_us() / 1000000 - now.tv_sec < 60);
    assert_true(clock_wall_us() / 1000000 >= now.tv_sec);
}

static void sleeping_costs_no_processor(void **state)
{
    uint64_t before = clock_cpu_self_us();
    uint64_t begin = clock_monotonic_us();

    (void)state;
    while (clock_monotonic_us() - begin < 20000 && clock_cpu_self_us() - before < 2000)
        ;
    assert_true(clock_cpu_self_us() > before);
    assert_true(clock_cpu_us(pthread_self()) >= before);
    before = clock_cpu_self_us();
    assert_true(clock_cpu_process_us() + 10000 >= before); /* the kernel sums up the process now and then */
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_true(clock_cpu_self_us() - before < 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_agree_with_the_system),
        cmocka_unit_test(sleeping_costs_no_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
