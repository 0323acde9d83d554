/* Who waits for something to come into a key (BLPOP, XREAD BLOCK), in order of arrival.
 *
 * A waiter has a node at each of its keys, guarded by the key's stripe. Every change of a key for which somebody waits
 * makes it ready: the access that changed it lists it, and before the stripes are released whoever runs commands takes
 * the ready keys one after the other and serves those who wait (server/run/blocked.h). So nobody comes between.
 *
 * To serve a waiter may change a second key, its target (BLMOVE). Its stripe is noted in the stripes of the waiter's
 * keys as a need: who is about to change keys there takes the stripes needed as well. */
#pragma once

#include "base/list.h"
#include "store/key_registry.h"

struct wait_node {
    struct list_node node;      /* in the key's list; guarded by the stripe */
    struct registered_key *key; /* NULL: unlinked; guarded by the stripe */
    struct waiter *waiter;
    uint32_t stripe;
};

struct waiter {
    struct wait_node *nodes;
    uint32_t node_count, linked_count; /* linked_count: owner: nodes it has not seen unlinked */
    enum value_type type;              /* what its keys must be to serve it */
    bool wants_losses;                 /* is to be told that a key has gone or become another type, too */
    bool has_target;
    uint32_t target_stripe;
    struct list_node node; /* owner: free for a list of waiters that are to be unlinked */
};

/* A stripe that is needed to serve somebody who waits in this one. */
struct wait_need {
    uint32_t stripe;
    uint32_t count; /* of nodes that need it */
};

/* The waiter's type, wants_losses and target are set; the keys' stripes are held. A key that is named twice counts
 * once, at its first place. */
void waiter_enter(struct waiter *waiter, struct access *access, unsigned db, const struct key *keys,
                  uint32_t key_count);
/* It waits no longer at this key, whose stripe is held. */
void waiter_leave_node(struct store *store, struct wait_node *node);
/* Unlinks what can be unlinked without waiting; true: all of it. No stripe is held; inside the gate. */
must_check bool waiter_try_leave(struct waiter *waiter, struct store *store);

/* Somebody waits who changes a second key. */
static inline bool waiters_have_needs(const struct store *store)
{
    return UNLIKELY(atomic_load_explicit(&store->mover_count, memory_order_relaxed) != 0);
}
/* The stripes needed to serve waiters of this one, which is held: they are told to `visit`. */
void waiters_each_need(const struct stripe *stripe, void (*visit)(uint32_t stripe, void *context), void *context);

static inline bool waiters_are_ready(const struct access *access)
{
    return UNLIKELY(access->ready != NULL);
}
/* The next of the access' ready keys; it is no longer listed then. NULL: there is none. */
struct registered_key *waiters_take_ready(struct access *access);
/* After its waiters have been served: a key for which nobody waits is forgotten. */
void waiters_settle(struct access *access, struct registered_key *key);


/* --- for store/: the stripe is held --- */
void waiters_touch_key(struct access *access, struct stripe *stripe, unsigned db, const struct key *key);
void waiters_touch_db(struct access *access, struct stripe *stripe, unsigned db);
