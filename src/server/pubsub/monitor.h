/* MONITOR: clients that are shown each command as it runs. A worker collects the lines of its commands while it holds
 * stripes, and hands them to the workers that have monitors before it releases them, once for all of them. */
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

extern _Atomic uint32_t monitor_count; /* atomic, relaxed: clients of all workers that watch */

static inline bool monitor_is_on(void)
{
    return UNLIKELY(atomic_load_explicit(&monitor_count, memory_order_relaxed) != 0);
}

/* Commands that run scripts show themselves before they begin, as what they call is shown on the way. The
 * worker's thread. */
void monitor_note_first(const struct request *request);
void monitor_tell_noted(struct worker *worker); /* for telling.c; its thread */

/* The client's own worker. */
void monitor_start(struct client *client);
void monitor_stop(struct client *client); /* does nothing if it was none */
