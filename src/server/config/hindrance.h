/* What keeps commands from running for a while, in one word: the way of a request looks at it once. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

enum hindrance {
    HINDRANCE_LOADING = 1 << 0, /* the data is not there yet: loading.h */
    HINDRANCE_UNSAVED = 1 << 1, /* snapshots fail, and clients shall hear of it: persistence.h */
    HINDRANCE_UNWRITTEN = 1 << 2, /* likewise the append only file: aof_writer.h */
    HINDRANCE_MOVING = 1 << 3 /* keys are on their way to another server: migrate.h */
};

extern _Atomic unsigned hindrance_bits; /* global, atomic: relaxed where commands look, release where it changes */

static inline unsigned hindrances(void)
{
    return atomic_load_explicit(&hindrance_bits, memory_order_relaxed);
}

static inline void hindrance_set(enum hindrance hindrance, bool on)
{
    if (on)
        (void)atomic_fetch_or_explicit(&hindrance_bits, hindrance, memory_order_release);
    else
        (void)atomic_fetch_and_explicit(&hindrance_bits, ~(unsigned)hindrance, memory_order_release);
}
