/* maxmemory-clients: the limit for the memory of all clients' buffers, queues and watched keys. Above it the clients
 * with the most memory are disconnected, except those with CLIENT NO-EVICT. Each worker keeps the sum over its own
 * clients, from their cards. A worker that finds the sum of all workers too large looks at all cards. */
#pragma once

#include "base/info_row.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle client_limit_lifecycle;
extern const struct info_row client_limit_info[];

void client_limit_setup(void); /* after config_setup: adds the option */
