/* A soft shutdown: no new clients, those that are here are asked to go (PING answers -SHUTDOWN PENDING), and when the
 * last has gone the server ends as ever. Nothing cancels it. Any thread. */
#pragma once

#include "server/core/lifecycle.h"
#include "server/core/server.h"

extern const struct lifecycle soft_shutdown_lifecycle;

static inline bool soft_shutdown_is_pending(void)
{
    return UNLIKELY(atomic_load_explicit(&server_instance()->refuses_clients, memory_order_relaxed));
}

void soft_shutdown_setup(void);     /* main thread, after config_setup: adds the option */
bool soft_shutdown_is_wished(void); /* soft-shutdown yes: signals begin one */
void soft_shutdown_begin(void);
