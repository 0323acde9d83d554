#include "base/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;

    if (clock_gettime(clock, &now) != 0)
        return 0; /* only for the clock of a thread that has ended */
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_monotonic_us(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000;
}

uint64_t clock_monotonic_ms(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t clock_wall_us(void)
{
    return (int64_t)(read_ns(CLOCK_REALTIME) / 1000);
}

int64_t clock_wall_ms(void)
{
    return (int64_t)(read_ns(CLOCK_REALTIME) / 1000000);
}

uint64_t clock_cpu_us(pthread_t thread)
{
    clockid_t clock;

    if (pthread_getcpuclockid(thread, &clock) != 0)
        return 0;
    return read_ns(clock) / 1000;
}

uint64_t clock_cpu_self_us(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;
}

uint64_t clock_cpu_process_us(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000;
}
