/* A reference to a client that outlives it, for other workers and tables. Only the client's owner finds the client
 * through it, or NULL after the client was closed. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct client;
struct server;

struct client_ref {
    _Atomic uint32_t refs; /* atomic */
    _Atomic bool gone;     /* atomic: relaxed; lets other threads skip work for a closed client */
    unsigned worker_index; /* const */
    uint64_t id;           /* const */
    struct client *client; /* owner: the client's worker; NULL: it was closed */
};

/* Its worker; not acquired: acquire a reference that you keep. */
struct client_ref *client_ref_of(struct client *client);
/* Finds a client to which another one redirects its invalidations, and marks its card. Acquired; NULL: there is none.
 * Any thread. */
struct client_ref *client_ref_find(struct server *server, uint64_t id);
struct client_ref *client_ref_acquire(struct client_ref *ref);
void client_ref_release(struct client_ref **ref); /* accepts NULL; leaves NULL */
void client_ref_leave(struct client *client);     /* its worker, when the client is closed */

static inline bool client_ref_is_gone(const struct client_ref *ref)
{
    return atomic_load_explicit(&ref->gone, memory_order_relaxed);
}
