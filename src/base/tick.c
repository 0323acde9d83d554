#include "base/tick.h"

#include "base/thread.h"

enum { CALIBRATION_NS = 4000000, TRIES = 20 };

#define ONE_TO_ONE (UINT64_C(1) << 32)
struct tick_scale tick_scale = {.ns_per_tick = ONE_TO_ONE, .ticks_per_ns = ONE_TO_ONE}; /* global: see tick.h */

/* Reads both clocks at the same moment: of several tries it uses the one with the least time between two readings. */
static void read_both(uint64_t *ns, uint64_t *ticks)
{
    uint64_t least = UINT64_MAX;

    for (unsigned try = 0; try < TRIES; try++) {
        uint64_t before = clock_monotonic_ns(), between = tick_now(), after = clock_monotonic_ns();

        if (after - before < least) {
            least = after - before;
            *ns = before + least / 2;
            *ticks = between;
        }
    }
}

void tick_setup(void)
{
    uint64_t from_ns = 0, from = 0, ns = 0, ticks = 0;

    thread_assert_only();
    read_both(&from_ns, &from);
    do
        read_both(&ns, &ticks);
    while (ns - from_ns < CALIBRATION_NS);
    ns -= from_ns;
    ticks -= from;
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
