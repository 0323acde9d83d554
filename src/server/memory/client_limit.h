/* maxmemory-clients: the memory that all clients' buffers, queues and watched keys may take together. Above it the
 * clients that take most are disconnected, but for those that asked not to be (CLIENT NO-EVICT). Each worker keeps the
 * sum of its own clients, as their cards had it last; who finds the sums too large looks at all cards. */
#pragma once

#include "server/core/lifecycle.h"

extern const struct lifecycle client_limit_lifecycle;

void client_limit_setup(void); /* after config_setup: adds the option */
