/* Links that give others what the journal gets: replicas, and peers of an active server. Each is a client; its worker
 * serves it, and nobody else does.
 *
 *  1. A link that has read everything sets its worker's bit in a mask, and looks once more. A worker that has journaled
 *     takes the mask at the end of its turn and wakes those workers. Its own links it serves itself, before their
 *     output is sent.
 *  2. A link reads only inside of the gate. So nobody who owns the gate sees a link at work.
 *
 * All functions: the thread of the client's worker, except where a comment says otherwise. */
#pragma once

#include "base/list.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

struct client;
struct follower;
struct worker;

extern const struct lifecycle followers_lifecycle;

enum { FOLLOWER_AHEAD_BYTES = 256 * 1024 }; /* copied ahead of the socket at most */

struct follower_kind {
    /* Inside of the gate. Reads the journal, and writes up to FOLLOWER_AHEAD_BYTES ahead of the socket. Returns whether
     * it has read everything, and wants to be woken when there is more. */
    bool (*serve)(struct follower *follower);
    /* The socket has taken what was written: whether there is more to be read before this offset of the journal. */
    bool (*is_behind)(struct follower *follower, uint64_t end);
    /* In each turn, before it is served; `end` is where the journal ends then. May be NULL. */
    void (*look)(struct follower *follower, uint64_t end);
};

struct follower {
    struct list_node node; /* in its worker's list */
    const struct follower_kind *kind;
    struct client *client;
    bool streams; /* what it writes may be sent at once */
};

void follower_init(struct follower *follower, const struct follower_kind *kind, struct client *client);
void follower_begin(struct follower *follower); /* it is served from here on */
void follower_end(struct follower *follower);   /* does nothing if it has not begun */
static inline bool follower_has_begun(const struct follower *follower)
{
    return list_node_is_linked(&follower->node);
}
struct list *followers_of(struct worker *worker); /* of all kinds, by `node` */

/* Wakes the workers whose links have read everything. Any worker's thread, when there is something new for them. */
void followers_wake(struct worker *worker);
