/* repl-backpressure-limit for one replica: whether writers wait for it, and how far it may be behind. Pure.
 *
 * A replica that has been behind for longer than the time limit is excused: writers do not wait for it until it has
 * caught up to half of the limit. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct backpressure {
    uint64_t lags_since_us; /* 0: its lag is below half of the limit */
    bool is_excused;
};

/* The lag in bytes beyond which writers wait for the replica; 0: they do not. `limit` is the option; 0: off. */
int64_t backpressure_look(struct backpressure *backpressure, int64_t limit, uint64_t lag, uint64_t now_us,
                          uint64_t timeout_us);
