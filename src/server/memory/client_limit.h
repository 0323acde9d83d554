/* maxmemory-clients: the memory that all clients' buffers, queues and watched keys may take together. Above it the
 * clients that take most are disconnected, but for those that asked not to be (CLIENT NO-EVICT). Each worker keeps the
 * sum of its own clients, as their cards had it last; who finds the sums too large looks at all cards. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct client;
struct worker;

extern _Atomic bool client_limit_on; /* atomic, relaxed */

static inline bool client_limit_is_on(void)
{
    return UNLIKELY(atomic_load_explicit(&client_limit_on, memory_order_relaxed));
}

void client_limit_setup(void); /* after config_setup: adds the option */
void client_limit_start(void); /* after config_load */

/* In the client's worker. */
void client_limit_note(struct client *client);  /* its card has changed; somebody may have to go */
void client_limit_leave(struct client *client); /* it is closed */
