/* A clock for short spans: the processor's time stamp counter (which runs evenly, and alike on all processors, on what
 * was built since 2008), or the monotonic clock where there is none. Reading it takes some 20 cycles. Ticks are only
 * good for differences, and a difference may be a few ticks below zero where a thread has changed its processor;
 * conversion is exact to about one in 100,000. Any thread. */
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

void tick_setup(void); /* once, before other threads: compares the counter with the clock, takes some milliseconds */

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
uint64_t tick_from_ns(uint64_t ns); /* UINT64_MAX: more than that */

/* Of less than four seconds. */
static ALWAYS_INLINE uint64_t tick_short_to_us(uint64_t ticks)
{
    return (ticks * tick_scale.ns_per_tick >> 32) / 1000;
}

/* What differences have come to, added up as they are: some of them may have been below zero. */
static inline uint64_t tick_sum(const _Atomic uint64_t *sum)
{
    const uint64_t ticks = atomic_load_explicit(sum, memory_order_relaxed);

    return (int64_t)ticks < 0 ? 0 : ticks;
}
