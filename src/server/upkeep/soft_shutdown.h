/* A soft shutdown: no new clients, those that are here are asked to go (PING answers -SHUTDOWN PENDING), and when the
 * last has gone the server ends as ever. Nothing cancels it. Any thread. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

struct server;

extern _Atomic bool soft_shutdown_pending; /* atomic, relaxed */

static inline bool soft_shutdown_is_pending(void)
{
    return UNLIKELY(atomic_load_explicit(&soft_shutdown_pending, memory_order_relaxed));
}

void soft_shutdown_setup(void);  /* after config_setup: adds the option */
bool soft_shutdown_is_wished(void); /* soft-shutdown yes: signals begin one */
void soft_shutdown_begin(void);
void soft_shutdown_look(struct server *server); /* worker 0, ten times a second: is the last client gone? */
