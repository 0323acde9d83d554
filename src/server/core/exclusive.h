/* Alone with the data: a worker that owns the gate, or stands in its queue for it. */
#pragma once

#include "base/compiler.h"
#include "server/core/worker.h"

/* In the worker's thread, outside of the gate and with no lock held. True: the gate is this worker's. False: the worker
 * stands in the queue and is woken when it may have the gate. */
must_check bool exclusive_own_gate(struct worker *worker);

/* Alone with the data for a moment, outside any command: true between begin and end; false: ask again after a wake, or
 * drop the wish, as the gate stays closed for who is first in its queue. */
enum gate_wish { GATE_WISH_SAVE = 1 << 0, GATE_WISH_AOF = 1 << 1, GATE_WISH_SHUTDOWN = 1 << 2 };
must_check bool exclusive_begin(struct worker *worker, enum gate_wish wish);
void exclusive_end(struct worker *worker);
void exclusive_drop(struct worker *worker, enum gate_wish wish); /* fine if there is none */
static inline bool exclusive_is_wished(const struct worker *worker, enum gate_wish wish)
{
    return (worker->gate_wishes & (unsigned)wish) != 0;
}
/* Nobody here asks for the gate any more (a parked command, or a wish)? Then it must not stay closed for us. */
void exclusive_stop_asking(struct worker *worker);
