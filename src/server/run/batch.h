/* What a batch of changes needs that no client asked for, those of a master or of a peer: the stripes of its keys, or
 * the gate if they are many, if a command needs it, or if clients wait for keys to change others.
 *
 *     batch_add_key, batch_need_gate
 *     batch_take -> BATCH_STRIPED, BATCH_ALONE: everything is held; look whether the batch is still wanted, run it,
 *                   batch_release
 *                -> BATCH_WAITS: something is not free. Nothing is held. Take it again after a wake (the worker_wake
 *                   hook), or batch_drop it
 *     batch_clear, for the next one
 *
 * A batch waits, too, while the writes of clients do: CLIENT PAUSE, a shutdown that waits for replicas of this server,
 * a reader of the journal that is too far behind.
 *
 * One thread, that of its worker, calls everything here. */
#pragma once

#include "base/array.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "server/core/exclusive.h"
#include "store/access.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum { BATCH_STRIPES_MOST = 512 }; /* with more it owns the gate */

enum batch_state {
    BATCH_OPEN,
    BATCH_WAITS,
    BATCH_STRIPED, /* inside of the gate, with the stripes of all keys */
    BATCH_ALONE    /* with the gate owned */
};

/* Owner: the worker's thread. The fields are open for reading. */
struct batch {
    struct worker *worker; /* const */
    uint32_t stripe_mask;  /* const */
    enum gate_wish wish;   /* const: other users of this worker have others */
    enum batch_state state;
    bool needs_gate;
    struct {
        uint32_t *items, count, capacity;
    } stripes; /* each once, ascending when they are held */
    uint64_t known[STORE_STRIPES_MOST / 64];
};

void batch_init(struct batch *batch, struct worker *worker, enum gate_wish wish);
void batch_fini(struct batch *batch); /* nothing is held; drops it */

static inline void batch_add_key(struct batch *batch, const struct key *key)
{
    const uint32_t stripe = (uint32_t)key->hash & batch->stripe_mask;
    const uint64_t bit = UINT64_C(1) << stripe % 64;

    if ((batch->known[stripe / 64] & bit) != 0)
        return;
    batch->known[stripe / 64] |= bit;
    *ARRAY_PUSH(&batch->stripes) = stripe;
}
void batch_need_gate(struct batch *batch);

/* Outside of the gate and with no lock held. `prefers_gate`: the gate is better for this batch. */
must_check enum batch_state batch_take(struct batch *batch, bool prefers_gate);
void batch_release(struct batch *batch); /* what was taken; wakes who waits for it */
void batch_drop(struct batch *batch);    /* stands in no queue any more; does nothing if it does not */
void batch_clear(struct batch *batch);   /* no keys; nothing is held */
