/* Owning the gate, or standing in its queue, in order to be alone with the data. */
#pragma once

#include "base/compiler.h"
#include "server/core/worker.h"

/* In the worker's thread, outside of the gate and with no lock held. True: this worker owns the gate. False: it stands
 * in the queue and is woken when it may own the gate. */
must_check bool exclusive_own_gate(struct worker *worker);

/* Alone with the data for a moment, outside of any command, between begin and end. False: call it again after a wake,
 * or call exclusive_drop, since the gate stays closed for the first in its queue. */
enum gate_wish {
    GATE_WISH_SAVE = 1 << 0,
    GATE_WISH_AOF = 1 << 1,
    GATE_WISH_SHUTDOWN = 1 << 2,
    GATE_WISH_BACKLOG = 1 << 3, /* for src/replication, as those below: to end the backlog */
    GATE_WISH_SYNC = 1 << 4,    /* to begin a snapshot for replicas */
    GATE_WISH_MASTER = 1 << 5,  /* the link to the master */
    GATE_WISH_APPLY = 1 << 6,   /* to apply a batch of the master's stream */
    GATE_WISH_FAILOVER = 1 << 7,
    GATE_WISH_COMPARE = 1 << 10, /* for src/active: to begin and end a walk for digests */
    GATE_WISH_STATE = 1 << 9 /* for src/active: to begin a file with the state, for peers */,
    GATE_WISH_PLACE = 1 << 8 /* for src/active: to place a batch of a peer's entries */
};
must_check bool exclusive_begin(struct worker *worker, enum gate_wish wish);
void exclusive_end(struct worker *worker);
void exclusive_drop(struct worker *worker, enum gate_wish wish); /* does nothing without such a wish */
static inline bool exclusive_is_wished(const struct worker *worker, enum gate_wish wish)
{
    return (worker->gate_wishes & (unsigned)wish) != 0;
}
/* Leaves the gate's queue if no parked command and no wish of this worker needs the gate. Otherwise the gate would stay
 * closed for it. */
void exclusive_stop_asking(struct worker *worker);
