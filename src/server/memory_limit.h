/* maxmemory: beyond it, commands that may need memory are refused. */
#pragma once

#include "base/compiler.h"
#include "base/mem.h"
#include "server/options.h"

#include <stdbool.h>

/* Any thread. Off by what mem_used() is off by. */
static inline bool memory_limit_is_reached(void)
{
    uint64_t limit = (uint64_t)atomic_load_explicit(&option_maxmemory, memory_order_relaxed);

    return UNLIKELY(limit != 0) && mem_used() > limit;
}
