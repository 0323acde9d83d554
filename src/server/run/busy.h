/* A script that runs for longer than busy-reply-threshold: what cannot be had because of it is not waited for any more,
 * but answered with -BUSY. What others can serve they serve. Set by the part that runs scripts; any thread reads. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum busy_state { BUSY_NOT, BUSY_SCRIPT, BUSY_FUNCTION };

extern _Atomic uint32_t busy_state; /* atomic, relaxed: enum busy_state */

static inline bool busy_is_on(void)
{
    return UNLIKELY(atomic_load_explicit(&busy_state, memory_order_relaxed) != BUSY_NOT);
}
const char *busy_error(void); /* "BUSY ..." */

struct server;
/* From the worker that runs the script; one at a time. Wakes all workers, so that what is parked there is answered. */
void busy_begin(struct server *server, enum busy_state state);
void busy_end(void);
