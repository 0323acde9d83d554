/* Clients that wait for a key to be filled (BLPOP, XREAD BLOCK), in order of arrival.
 *
 * A waiter has a node at each of its keys, guarded by the key's stripe. Every change of a key with waiters makes the
 * key ready: the access that changed it lists it. Before the stripes are released, dispatch takes the ready keys one
 * after the other and serves their waiters (server/run/blocked.h). So no other command comes between.
 *
 * Serving a waiter may change a second key, its target (BLMOVE). The stripe of the target is noted as a need in the
 * stripes of the waiter's keys: a command that is about to change keys there takes the needed stripes as well. */
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
    uint32_t node_count, linked_count; /* linked_count: owner: nodes that the waiter's thread has not seen unlinked */
    enum value_type type;              /* the type that its keys need */
    bool wants_losses;                 /* must be told if a key is deleted or changes its type, too */
    bool has_target;
    uint32_t target_stripe;
    struct list_node node; /* owner: free for a list of waiters to be unlinked */
};

/* A stripe that is needed to serve a waiter of this stripe. */
struct wait_need {
    uint32_t stripe;
    uint32_t count; /* number of nodes that need it */
};

/* Set the waiter's type, wants_losses and target before; the keys' stripes are held. A key that is named twice counts
 * once, at its first place. */
void waiter_enter(struct waiter *waiter, struct access *access, unsigned db, const struct key *keys,
                  uint32_t key_count);
/* Removes one node; the stripe of its key is held. */
void waiter_leave_node(struct store *store, struct wait_node *node);
/* Unlinks the nodes whose stripes are free; true: all nodes. No stripe is held; inside the gate. */
must_check bool waiter_try_leave(struct waiter *waiter, struct store *store);

/* True if a waiter changes a second key. */
static inline bool waiters_have_needs(const struct store *store)
{
    return UNLIKELY(atomic_load_explicit(&store->mover_count, memory_order_relaxed) != 0);
}
/* Visits the stripes that are needed to serve waiters of this stripe, which is held. */
void waiters_each_need(const struct stripe *stripe, void (*visit)(uint32_t stripe, void *context), void *context);

static inline bool waiters_are_ready(const struct access *access)
{
    return UNLIKELY(access->ready != NULL);
}
/* Removes the next ready key from the access's list and returns it. NULL: there is none. */
struct registered_key *waiters_take_ready(struct access *access);
/* Call it after the key's waiters were served: unregisters a key without waiters. */
void waiters_settle(struct access *access, struct registered_key *key);


/* --- for store/: the stripe is held --- */
void waiters_touch_key(struct access *access, struct stripe *stripe, unsigned db, const struct key *key);
void waiters_touch_db(struct access *access, struct stripe *stripe, unsigned db);
