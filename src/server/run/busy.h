/* Busy scripts: after a script has run for busy-reply-threshold, commands that would have to wait for it get -BUSY
 * instead. Other commands run. The part that runs scripts sets the state; any thread reads it. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum busy_state { BUSY_NOT, BUSY_SCRIPT, BUSY_FUNCTION };

extern _Atomic uint32_t busy_state; /* global: atomic: relaxed; enum busy_state */

static inline bool busy_is_on(void)
{
    return UNLIKELY(atomic_load_explicit(&busy_state, memory_order_relaxed) != BUSY_NOT);
}
const char *busy_error(void); /* "BUSY ..." */

struct server;
/* From the worker that runs the script; one at a time. Wakes all workers, so that they answer parked commands. */
void busy_begin(struct server *server, enum busy_state state);
void busy_end(void);
