/* A clock for short spans: the processor's time stamp counter, or the monotonic clock where there is none. Since 2008
 * the counter runs at a constant rate and equally on all processors of a machine. Reading it takes about 20 cycles.
 * Only differences of ticks have a meaning. A difference may be a few ticks below zero if the thread has changed its
 * processor. Conversion is exact to about one in 100,000. Any thread may call these functions. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct tick_scale {
    uint64_t ns_per_tick;  /* as a fraction of 2^32 */
    uint64_t ticks_per_ns; /* likewise */
};
extern struct tick_scale tick_scale; /* global: constant after tick_setup */

void tick_setup(void); /* once, before other threads start; compares the counter with the clock for some milliseconds */

static ALWAYS_INLINE uint64_t tick_now(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t count;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return clock_monotonic_ns();
#endif
}

uint64_t tick_to_ns(uint64_t ticks);
uint64_t tick_from_ns(uint64_t ns); /* UINT64_MAX: the result does not fit */

/* For spans of less than four seconds. */
static ALWAYS_INLINE uint64_t tick_short_to_us(uint64_t ticks)
{
    return (ticks * tick_scale.ns_per_tick >> 32) / 1000;
}

/* Returns a sum of differences, at least 0: single differences may have been below zero. */
static inline uint64_t tick_sum(const _Atomic uint64_t *sum)
{
    const uint64_t ticks = atomic_load_explicit(sum, memory_order_relaxed);

    return (int64_t)ticks < 0 ? 0 : ticks;
}
