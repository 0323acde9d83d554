/* A soft shutdown: no new clients are accepted, PING replies -SHUTDOWN PENDING so that clients leave, and the server
 * ends normally after the last one has left. It cannot be cancelled. Any thread. */
#pragma once

#include "server/core/lifecycle.h"
#include "server/core/server.h"

extern const struct lifecycle soft_shutdown_lifecycle;

static inline bool soft_shutdown_is_pending(void)
{
    return UNLIKELY(atomic_load_explicit(&server_instance()->refuses_clients, memory_order_relaxed));
}

void soft_shutdown_setup(void);     /* main thread, after config_setup: adds the option */
bool soft_shutdown_is_wished(void); /* soft-shutdown yes: signals begin a soft shutdown */
void soft_shutdown_begin(void);
