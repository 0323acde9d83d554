/* Busy scripts: after a script has run for busy-reply-threshold, commands that would have to wait for it get -BUSY
 * instead. Other commands run. The part that runs scripts counts them; any thread reads it. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum busy_kind { BUSY_SCRIPT = 1, BUSY_FUNCTION = 1 << 16 };

extern _Atomic uint32_t busy_count; /* global: atomic: relaxed; the sum of enum busy_kind over those that are busy */

static inline bool busy_is_on(void)
{
    return UNLIKELY(atomic_load_explicit(&busy_count, memory_order_relaxed) != 0);
}
const char *busy_error(void); /* "BUSY ..." */

struct server;
/* From the worker that runs the script. Wakes all workers, so that they answer parked commands. */
void busy_begin(struct server *server, enum busy_kind kind);
void busy_end(enum busy_kind kind);
