/* A name for a client that outlives it: what other workers and tables keep of a client. Its owner alone finds the
 * client through it, and finds NULL once it has gone. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct client;
struct server;

struct client_ref {
    _Atomic uint32_t refs; /* atomic */
    _Atomic bool gone;     /* atomic, relaxed: others may save work for it */
    unsigned worker_index; /* const */
    uint64_t id;           /* const */
    struct client *client; /* owner: the client's worker; NULL: it has gone */
};

struct client_ref *client_ref_of(struct client *client); /* its worker; the client's own: acquire what is kept */
/* For somebody who wants it to be told in its place; its card shows that. Acquired; NULL: there is none. Any thread. */
struct client_ref *client_ref_find(struct server *server, uint64_t id);
struct client_ref *client_ref_acquire(struct client_ref *ref);
void client_ref_release(struct client_ref **ref); /* NULL is fine; leaves NULL */
void client_ref_leave(struct client *client);     /* its worker: it goes */

static inline bool client_ref_is_gone(const struct client_ref *ref)
{
    return atomic_load_explicit(&ref->gone, memory_order_relaxed);
}
