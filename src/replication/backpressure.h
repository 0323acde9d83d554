/* What writers wait for one replica. Pure.
 *
 * repl-backpressure-limit: how far it may be behind. A replica that has been behind for longer than the time limit is
 * excused: writers do not wait for it until it has caught up to half of the limit. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct backpressure {
    uint64_t lags_since_us; /* 0: its lag is below half of the limit */
    bool is_excused;
};

/* Before a lag is so large that it goes to the file, writers are slowed down to half their speed: most replicas catch
 * up then, which costs all less than the file. One that does not within PACING_MOST_US is excused in the same way. */
struct pacing {
    uint64_t since_us; /* 0: its lag has not been above the limit */
    bool holds;        /* writers wait */
    bool is_excused;
};

enum { PACING_STEP_US = 5000, PACING_MOST_US = 2 * 1000 * 1000 };

/* Every PACING_STEP_US while since_us is not 0 and it is not excused. Returns whether writers wait for the next step.
 * `limit` and `lag` in bytes; limit 0: off. */
bool pacing_look(struct pacing *pacing, uint64_t limit, uint64_t lag, uint64_t now_us);

/* The lag in bytes beyond which writers wait for the replica; 0: they do not. `limit` is the option; 0: off. */
int64_t backpressure_look(struct backpressure *backpressure, int64_t limit, uint64_t lag, uint64_t now_us,
                          uint64_t timeout_us);
