#include "base/tick.h"

enum { CALIBRATION_NS = 4000000 };

struct tick_scale tick_scale = { /* global: see tick.h */
    .ns_per_tick = UINT64_C(1) << 32,
    .ticks_per_ns = UINT64_C(1) << 32,
};

void tick_setup(void)
{
    uint64_t from_ns, from, ns, ticks;

    from_ns = clock_monotonic_ns();
    from = tick_now();
    do {
        ns = clock_monotonic_ns() - from_ns;
        ticks = tick_now() - from;
    } while (ns < CALIBRATION_NS);
    tick_scale.ns_per_tick = (uint64_t)(((unsigned __int128)ns << 32) / MAX(ticks, 1));
    tick_scale.ticks_per_ns = (uint64_t)(((unsigned __int128)ticks << 32) / ns);
}

static uint64_t scale(uint64_t number, uint64_t factor)
{
    unsigned __int128 product = (unsigned __int128)number * factor >> 32;

    return product > UINT64_MAX ? UINT64_MAX : (uint64_t)product;
}

uint64_t tick_to_ns(uint64_t ticks)
{
    return scale(ticks, tick_scale.ns_per_tick);
}

uint64_t tick_from_ns(uint64_t ns)
{
    return scale(ns, tick_scale.ticks_per_ns);
}
