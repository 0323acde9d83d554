/* MONITOR: shows each command to monitoring clients. A worker collects the lines of its commands while it holds
 * stripes, and posts them once for all monitors to their workers before it releases the stripes. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle monitor_lifecycle;

struct client;
struct request;
struct worker;

extern _Atomic uint32_t monitor_count; /* global: atomic: relaxed; number of monitors of all workers */

static inline bool monitor_is_on(void)
{
    return UNLIKELY(atomic_load_explicit(&monitor_count, memory_order_relaxed) != 0);
}

/* Commands that run scripts are noted before they begin, since the commands they call are noted while they run. The
 * worker's thread. */
void monitor_note_first(const struct request *request);
void monitor_tell_noted(struct worker *worker); /* for telling.c; its thread */

/* The client's own worker. */
void monitor_start(struct client *client);
void monitor_stop(struct client *client); /* does nothing if the client is not a monitor */
